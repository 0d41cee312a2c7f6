/* Runs over HTTP: waited for, started and asked for later, or watched as they go on. */
#include "front/api.h"

#include <inttypes.h>
#include <stdio.h>

struct api_run {
        struct api_run *next;
        struct api *api;
        struct run *run;                   /* NULL: it is over */
        char id[40];
        char tenant[80];
        bool aliases;
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

static void on_done(void *owner, const struct run_result *result)
{
        struct api_run *one = owner;
        struct api *api = one->api;
        struct csn_error err;
        buf_init(&one->record, FRONT_RECORD_MAX);
        bool good = front_record_text(result, one->aliases, &one->record);
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

void api_post_run(struct http_request *request)
{
        struct api *api = api_of(request);
        bool stream = http_accepts(request, "text/event-stream"), ndjson = !stream && http_accepts(request, "application/x-ndjson");
        bool async = prefers(request, "respond-async");
        struct run *run = run_new(api->engine);
        struct run_request given = { 0 };
        if (!api_decode(request, &object_run_request, run_arena(run), &given)) {
                run_free(run);
                return;
        }
        struct api_run *one = mem_alloc(sizeof *one);
        *one = (struct api_run){ .next = api->runs, .api = api, .run = run, .aliases = given.aliases, .watched = stream || ndjson || async,
                                 .created_us = clock_us() };
        one->expiry = (struct timer){ .fired = on_expiry, .owner = one };
        snprintf(one->id, sizeof one->id, "%s", run_id(run));
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        events_init(&one->events);
        api->runs = one;
        api->live++;
        *run_request(run) = given;
        run_set_owner(run, one->tenant);
        if (one->watched)
                events_start(&one->events, one->id);
        run_start(run, false, &run_events, one);
        if (stream || ndjson) {
                set_location(request, one);
                events_send(&one->events, request, 0, ndjson);
        } else if (async) {
                set_location(request, one);
                http_set_header(request, "Preference-Applied", "respond-async");
                http_json(request, MHD_HTTP_ACCEPTED, state_of(one));
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
        if (!one)
                not_found(request);
        else if (one->run)
                http_json(request, MHD_HTTP_ACCEPTED, state_of(one));
        else
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
        if (!one) {
                not_found(request);
                return;
        }
        if (one->run) {
                run_cancel(one->run);
                http_json(request, MHD_HTTP_ACCEPTED, state_of(one));
        } else {
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
