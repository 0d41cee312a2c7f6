/* Runs over HTTP: waited for, started and asked for later, or watched as they go on. */
#include "front/api.h"

#include "engine/files.h"

#include <inttypes.h>
#include <stdio.h>

struct api_run {
        struct api_run *next;
        struct api *api;
        struct run *run;                   /* NULL: it is over */
        char id[40];
        char tenant[80], key[20];
        bool aliases;
        struct idempotency *name;          /* of its request, which is answered once; or NULL */
        struct http_request *waiting;      /* who gets the record as soon as it is there, or NULL */
        bool watched;                      /* it has events, and can be asked for when it is over */
        struct events events;
        struct buf record;
        uint64_t created_us;
        struct timer expiry;
};

/* ---- their life ---- */

static void api_run_free(struct api_run *one)
{
        struct api *api = one->api;
        for (struct api_run **at = &api->runs; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        loop_untimer(api->loop, &one->expiry);
        if (one->run)
                api->live--;
        else
                api->kept -= one->record.len + events_bytes(&one->events);
        run_free(one->run);
        events_done(&one->events);
        buf_done(&one->record);
        free(one);
}

static void on_expiry(struct timer *timer)
{
        api_run_free(timer->owner);
}

/* The oldest of those that are over go first: the list has the newest first. */
static void make_room(struct api *api)
{
        while (api->kept > API_KEPT_MAX) {
                struct api_run *oldest = NULL;
                for (struct api_run *one = api->runs; one; one = one->next)
                        if (!one->run && !one->events.readers)
                                oldest = one;
                if (!oldest)
                        return;
                api_run_free(oldest);
        }
}

static void on_output(void *owner, int stream, const void *bytes, size_t len)
{
        struct api_run *one = owner;
        if (one->watched)
                events_output(&one->events, stream, bytes, len);
}

/* For those who ask after a restart. */
static void keep(struct api_run *one)
{
        struct csn_error err;
        int64_t until = time_now_ms() + (int64_t)(API_KEEP_US / 1000);
        if (runs_keep(one->api->store, one->id, one->tenant, one->record.bytes, one->record.len, until, &err) < 0)
                log_text(LOG_ERROR, "the record of %s is not kept: %s", one->id, err.text);
}

static void answer_name(struct api_run *one, int http, const char *text, size_t len)
{
        struct csn_error err;
        if (one->name && idempotency_answer(one->api->store, one->name, http, text, len, &err) < 0)
                log_text(LOG_ERROR, "the answer to an Idempotency-Key is not kept: %s", err.text);
        one->name = NULL;
}

static void on_done(void *owner, const struct run_result *result)
{
        struct api_run *one = owner;
        struct api *api = one->api;
        struct csn_error err;
        buf_init(&one->record, FRONT_RECORD_MAX);
        bool good = front_record_text(result, one->aliases, &one->record);
        audit_run(api->store, one->tenant, one->key, one->run, result);
        if (good)
                answer_name(one, MHD_HTTP_OK, one->record.bytes, one->record.len);
        if (good && one->watched)
                keep(one);
        if (one->waiting) {
                struct http_request *request = one->waiting;
                one->waiting = NULL;
                request->gone = NULL;
                if (good)
                        http_answer(request, MHD_HTTP_OK, "application/json", one->record.bytes, one->record.len);
                else
                        err_set(&err, CSN_E_SYSTEM, 0, "the record could not be written"), http_fail(request, &err);
                one->record = (struct buf){ 0 };
        }
        if (!one->watched) {
                api_run_free(one);
                return;
        }
        events_end(&one->events, one->record.bytes ? one->record.bytes : "null", one->record.bytes ? one->record.len : 4);
        run_free(one->run);
        one->run = NULL;
        api->live--;
        api->kept += one->record.len + events_bytes(&one->events);
        loop_timer(api->loop, &one->expiry, API_KEEP_US);
        make_room(api);
        if (api->live == 0)
                api->idle(api->owner);
}

static const struct run_events run_events = { on_output, on_done };

/* Nobody waits for the record any more. */
static void on_gone(struct http_request *request)
{
        struct api_run *one = request->owner;
        one->waiting = NULL;
        run_cancel(one->run);
}

static struct api_run *find(const struct http_request *request)
{
        for (struct api_run *one = api_of(request)->runs; one; one = one->next)
                if (one->watched && strcmp(one->id, http_part(request, 0)) == 0 && strcmp(one->tenant, request->tenant) == 0)
                        return one;
        return NULL;
}

/* One of before the daemon's last start.  False: there is none. */
static bool answer_kept(struct http_request *request)
{
        struct csn_error err;
        char *record = NULL;
        size_t len;
        if (runs_record(api_of(request)->store, http_part(request, 0), request->tenant, &request->arena, &record, &len, &err) < 0) {
                http_fail(request, &err);
                return true;
        }
        if (record)
                http_answer(request, MHD_HTTP_OK, "application/json", mem_copy(record, len), len);
        return record;
}

static void not_found(struct http_request *request)
{
        struct csn_error err;
        err_field(&err, "", "there is no run %.60s, or it cannot be asked for any more", http_part(request, 0));
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
}

/* ---- POST /v1/runs ---- */

static bool prefers(const struct http_request *request, const char *word)
{
        const char *prefer = http_header(request, "Prefer");
        size_t len = strlen(word);
        for (const char *at = prefer; at && *at; at += strcspn(at, ","), at += *at == ',') {
                at += strspn(at, " \t");
                if (strncasecmp(at, word, len) == 0 && (!at[len] || strchr(" \t;,", at[len])))
                        return true;
        }
        return false;
}

static json_t *state_of(const struct api_run *one)
{
        char link[80];
        snprintf(link, sizeof link, "/v1/runs/%s", one->id);
        return json_pack("{s:s, s:s, s:s, s:I}", "id", one->id, "state", one->run ? run_state_name(one->run) : "over", "url", link, "age_ms",
                         (json_int_t)((clock_us() - one->created_us) / 1000));
}

static void set_location(struct http_request *request, const struct api_run *one)
{
        char link[80];
        snprintf(link, sizeof link, "/v1/runs/%s", one->id);
        http_set_header(request, "Location", link);
}

#define IDEMPOTENCY_MS 86400000            /* how long a name is remembered */
#define IDEMPOTENCY_MAX 255

/*
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): a request that is sent again, because its answer was lost,
 * is not carried out again.  True: it is this one's to carry out, and *ret is its name, or NULL where it has none.
 */
static bool take_name(struct http_request *request, struct arena *arena, struct idempotency **ret)
{
        const char *name = http_header(request, "Idempotency-Key");
        enum idempotency_found found;
        struct csn_error err;
        char *answer = NULL;
        size_t len = 0;
        int http = 0;
        *ret = NULL;
        if (!name)
                return true;
        if (!name[0] || strlen(name) > IDEMPOTENCY_MAX || !utf8_valid(name, strlen(name))) {
                err_field(&err, "Idempotency-Key", "Idempotency-Key is a text of at most %d bytes", IDEMPOTENCY_MAX);
                http_fail(request, &err);
                return false;
        }
        struct idempotency *one = arena_alloc(arena, sizeof *one);
        *one = (struct idempotency){ .tenant = arena_text(arena, "%s", request->tenant), .name = arena_text(arena, "%s", name),
                                     .expires_ms = time_now_ms() + IDEMPOTENCY_MS };
        files_sha256_bytes(request->body.bytes ? request->body.bytes : "", request->body.len, one->sha256);
        if (idempotency_take(api_of(request)->store, one, &request->arena, &found, &http, &answer, &len, &err) < 0) {
                http_fail(request, &err);
        } else if (found == IDEMPOTENCY_NEW) {
                *ret = one;
                return true;
        } else if (found == IDEMPOTENCY_DONE) {
                http_set_header(request, "Idempotency-Replayed", "true");
                http_answer(request, (unsigned)http, "application/json", mem_copy(answer, len), len);
        } else {
                err_field(&err, "Idempotency-Key", "%s", found == IDEMPOTENCY_BUSY ? "the request of this Idempotency-Key is being carried out"
                                                                                    : "this Idempotency-Key was used for another request");
                http_problem(request, found == IDEMPOTENCY_BUSY ? MHD_HTTP_CONFLICT : MHD_HTTP_UNPROCESSABLE_CONTENT, &err);
        }
        return false;
}

static struct api_run *api_run_new(struct http_request *request, struct run *run, bool watched)
{
        struct api *api = api_of(request);
        const struct store_key *key = api_key(request);
        struct api_run *one = mem_alloc(sizeof *one);
        *one = (struct api_run){ .next = api->runs, .api = api, .run = run, .watched = watched, .created_us = clock_us() };
        one->expiry = (struct timer){ .fired = on_expiry, .owner = one };
        snprintf(one->id, sizeof one->id, "%s", run_id(run));
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        snprintf(one->key, sizeof one->key, "%s", key ? key->id : "");
        events_init(&one->events);
        api->runs = one;
        api->live++;
        if (watched)
                events_start(&one->events, one->id);
        return one;
}

static void answer_accepted(struct http_request *request, struct api_run *one)
{
        json_t *state = state_of(one);
        char *text = json_dumps(state, JSON_COMPACT);
        json_decref(state);
        if (text)
                answer_name(one, MHD_HTTP_ACCEPTED, text, strlen(text));
        set_location(request, one);
        http_set_header(request, "Preference-Applied", "respond-async");
        http_answer(request, MHD_HTTP_ACCEPTED, "application/json", text, text ? strlen(text) : 0);
}

void api_post_run(struct http_request *request)
{
        bool stream = http_accepts(request, "text/event-stream"), ndjson = !stream && http_accepts(request, "application/x-ndjson");
        bool async = prefers(request, "respond-async");
        struct run *run = run_new(api_of(request)->engine);
        struct run_request given = { 0 };
        struct idempotency *name = NULL;
        struct csn_error err;
        if (!api_decode(request, &object_run_request, run_arena(run), &given)) {
                run_free(run);
                return;
        }
        if (api_begin_run(request, run, &err) < 0) {
                run_free(run);
                http_fail(request, &err);
                return;
        }
        if (!take_name(request, run_arena(run), &name)) {
                run_free(run);
                return;
        }
        struct api_run *one = api_run_new(request, run, stream || ndjson || async);
        one->aliases = given.aliases;
        one->name = name;
        *run_request(run) = given;
        run_start(run, false, &run_events, one);
        if (stream || ndjson) {
                set_location(request, one);
                events_send(&one->events, request, 0, ndjson);
        } else if (async) {
                answer_accepted(request, one);
        } else {
                one->waiting = request;
                request->owner = one;
                request->gone = on_gone;
        }
}

/* ---- the others ---- */

void api_get_run(struct http_request *request)
{
        const struct api_run *one = find(request);
        if (!one && !answer_kept(request))
                not_found(request);
        else if (one && one->run)
                http_json(request, MHD_HTTP_ACCEPTED, state_of(one));
        else if (one)
                http_answer(request, MHD_HTTP_OK, "application/json", mem_copy(one->record.bytes, one->record.len), one->record.len);
}

void api_list_runs(struct http_request *request)
{
        json_t *list = json_array();
        for (const struct api_run *one = api_of(request)->runs; one; one = one->next)
                if (one->watched && strcmp(one->tenant, request->tenant) == 0)
                        json_array_append_new(list, state_of(one));
        http_json(request, MHD_HTTP_OK, json_pack("{s:o}", "runs", list));
}

void api_delete_run(struct http_request *request)
{
        struct api_run *one = find(request);
        struct csn_error err;
        bool kept = false;
        if (one && one->run) {
                run_cancel(one->run);
                http_json(request, MHD_HTTP_ACCEPTED, state_of(one));
                return;
        }
        if (runs_forget(api_of(request)->store, http_part(request, 0), request->tenant, &kept, &err) < 0) {
                http_fail(request, &err);
        } else if (!one && !kept) {
                not_found(request);
        } else {
                if (one)
                        api_run_free(one);
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
        }
}

void api_get_events(struct http_request *request)
{
        struct csn_error err;
        struct api_run *one = find(request);
        const char *last = http_header(request, "Last-Event-ID"), *after = http_query(request, "after");
        const char *text = after ? after : last ? last : "0";
        char *end;
        if (!one) {
                not_found(request);
                return;
        }
        unsigned long long number = strtoull(text, &end, 10);
        if (*end || !*text || *text == '-') {
                err_field(&err, after ? "after" : "Last-Event-ID", "%s: \"%.40s\" is no number of an event", after ? "after" : "Last-Event-ID", text);
                http_fail(request, &err);
                return;
        }
        events_send(&one->events, request, number, http_accepts(request, "application/x-ndjson"));
}

void api_cancel(struct api *api)
{
        for (struct api_run *one = api->runs; one; one = one->next)
                if (one->run)
                        run_cancel(one->run);
}

void api_runs_close(struct api *api)
{
        for (struct api_run *one = api->runs, *next; one; one = next) {
                next = one->next;
                if (one->waiting)
                        one->waiting->gone = NULL;
                api_run_free(one);
        }
}
