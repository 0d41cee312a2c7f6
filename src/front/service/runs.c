/* Runs over HTTP: waited for, started and asked for later, or watched as they go on. */
#include "front/api/api.h"

#include "engine/output/files.h"
#include "net/http_headers.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <stdio.h>

struct service_run {
        struct service_run *next;
        struct service *service;
        struct run *run;                   /* NULL: it is over */
        char id[40];
        char tenant[80], key[20], request_id[65];
        struct trace trace;                /* its span, below the request's */
        bool aliases;
        struct idempotency *name;          /* of its request, which is answered once; or NULL */
        const struct run_responder *words;     /* NULL: ours */
        void *own;                         /* theirs */
        struct http_request *waiting;      /* who gets the record as soon as it is there, or NULL */
        bool watched;                      /* it has events, and can be asked for when it is over */
        struct events events;
        struct buf record;
        uint64_t number;                   /* of its place in the list; later ones have a higher one */
        uint64_t created_us;
        struct timer expiry;
};

/* ---- their life ---- */

static void service_run_free(struct service_run *one)
{
        struct service *service = one->service;
        for (struct service_run **at = &service->runs; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        loop_untimer(service->loop, &one->expiry);
        if (one->words && one->words->drop)
                one->words->drop(one->own);
        if (one->run)
                service->live--;
        else
                retained_drop(&service->kept, one->tenant, one->record.len + events_bytes(&one->events));
        run_free(one->run);
        events_done(&one->events);
        buf_done(&one->record);
        free(one);
}

static void on_expiry(struct timer *timer)
{
        service_run_free(timer->owner);
}

/* Of those that are over, of whoever has most: the list has the newest first.  Then of anybody. */
static struct service_run *oldest_of(const struct service *service, size_t least)
{
        struct service_run *oldest = NULL;
        for (struct service_run *one = service->runs; one; one = one->next)
                if (!one->run && !one->events.readers && retained_of(&service->kept, one->tenant) >= least)
                        oldest = one;
        return oldest || !least ? oldest : oldest_of(service, 0);
}

static void make_room(struct service *service)
{
        for (struct service_run *oldest; service->kept.bytes > service->settings->engine.kept_bytes &&
             (oldest = oldest_of(service, retained_most(&service->kept)));)
                service_run_free(oldest);
}

static void on_output(void *owner, int stream, const void *bytes, size_t len)
{
        struct service_run *one = owner;
        if (one->watched)
                events_output(&one->events, stream, bytes, len);
        if (one->words && one->words->output)
                one->words->output(one->own, stream, bytes, len);
}

static void on_display(void *owner, json_t *bundle)
{
        struct service_run *one = owner;
        if (one->watched)
                events_display(&one->events, bundle);
        if (one->words && one->words->display)
                one->words->display(one->own, bundle);
}

/* For those who ask after a restart. */
static void keep(struct service_run *one)
{
        struct csn_error err;
        int64_t until = time_now_ms() + (int64_t)(SERVICE_KEEP_US / 1000);
        if (one->service->store && runs_keep(one->service->store, one->id, one->tenant, one->record.bytes,
                                             one->record.len, until, &err) < 0)
                log_text(LOG_ERROR, "the record of %s is not kept: %s", one->id, err.text);
}

static void answer_name(struct service_run *one, int http, const char *text, size_t len)
{
        struct csn_error err;
        if (one->name && idempotency_answer(one->service->store, one->name, http, text, len, &err) < 0)
                log_text(LOG_ERROR, "the answer to an Idempotency-Key is not kept: %s", err.text);
        one->name = NULL;
}

/* Of a request that came to nothing: sent again, it is carried out. */
static void drop_name(struct service_run *one)
{
        struct csn_error err;
        if (one->name && idempotency_drop(one->service->store, one->name, &err) < 0)
                log_text(LOG_ERROR, "an Idempotency-Key is not given back: %s", err.text);
        one->name = NULL;
}

static void answer_waiting(struct service_run *one, bool good, const struct run_result *result)
{
        struct http_request *request = one->waiting;
        struct csn_error err;
        one->waiting = NULL;
        request->gone = NULL;
        if (one->words) {
                one->words->answer(request, one->own, result);
                return;
        }
        if (service_ran_nothing(result)) {
                service_error_of(result, &err);
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
                return;
        }
        if (good)
                http_answer(request, MHD_HTTP_OK, "application/json", one->record.bytes, one->record.len);
        else
                err_set(&err, CSN_E_SYSTEM, 0, "the record could not be written"), http_fail(request, &err);
        one->record = (struct buf){ 0 };
}

static void on_done(void *owner, const struct run_result *result)
{
        struct service_run *one = owner;
        struct service *service = one->service;
        buf_init(&one->record, FRONT_RECORD_MAX);
        bool good = front_record_text(result, one->aliases, &one->record);
        if (service_ran_nothing(result))
                drop_name(one);
        else if (good)
                answer_name(one, MHD_HTTP_OK, one->record.bytes, one->record.len);
        if (good && one->watched)
                keep(one);
        /* Last, for its place in the journal goes with it. */
        audit_run(service->store, &(struct log_context){ .request = one->request_id, .trace = one->trace.id,
                                                         .owner = one->tenant }, one->key, one->run, result);
        trace_run(service, &one->trace, one->run, result);
        service_note_run(service, result);
        if (one->waiting)
                answer_waiting(one, good, result);
        if (!one->watched) {
                service_run_free(one);
                return;
        }
        events_end(&one->events, one->record.bytes ? one->record.bytes : "null", one->record.bytes ? one->record.len : 4);
        if (one->words && one->words->drop)
                one->words->drop(one->own);
        one->words = NULL;
        run_free(one->run);
        one->run = NULL;
        service->live--;
        retained_add(&service->kept, one->tenant, one->record.len + events_bytes(&one->events));
        loop_timer(service->loop, &one->expiry, SERVICE_KEEP_US);
        make_room(service);
        if (service->live == 0)
                service->idle(service->owner);
}

static const struct run_events run_events = { on_output, on_display, on_done };

static void on_told(void *owner, json_t *event)
{
        struct service_run *one = owner;
        events_tell(&one->events, event);
}

static const struct run_listener listener = { on_told };

/* Nobody waits for the record any more; but whoever named his request lost its answer perhaps, and asks for it again. */
static void on_gone(struct http_request *request)
{
        struct service_run *one = request->owner;
        one->waiting = NULL;
        if (one->name)
                return;
        if (one->words && one->words->gone)
                one->words->gone(one->own);
        run_cancel(one->run);
}

static void on_room(struct http_request *request)
{
        struct service_run *one = request->owner;
        if (one->words && one->words->room)
                one->words->room(one->own);
}

static struct service_run *find_by(const struct http_request *request, const char *id)
{
        for (struct service_run *one = service_of(request)->runs; one; one = one->next)
                if (one->watched && strcmp(one->id, id) == 0 && strcmp(one->tenant, request->tenant) == 0)
                        return one;
        return NULL;
}

static struct service_run *find(const struct http_request *request)
{
        return find_by(request, http_part(request, 0));
}

int service_find_run(struct http_request *request, const char *id, struct service_found *ret, struct csn_error *err)
{
        const struct service_run *one = find_by(request, id);
        char *kept = NULL;
        *ret = (struct service_found){ 0 };
        if (one && one->run) {
                ret->run = one->run;
                return 0;
        }
        if (one) {
                ret->record = one->record.bytes;
                ret->len = one->record.len;
                return 0;
        }
        /* One of before the daemon's last start. */
        if (service_of(request)->store && runs_record(service_of(request)->store, id, request->tenant,
                                                      &request->arena, &kept, &ret->len, err) < 0)
                return -err->code;
        ret->record = kept;
        return 0;
}

static void not_found(struct http_request *request)
{
        struct csn_error err;
        err_field(&err, "", "there is no run %.60s, or it cannot be asked for any more", http_part(request, 0));
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
}

/* ---- POST /v1/runs ---- */

bool api_prefers(const struct http_request *request, const char *word)
{
        return header_lists(http_header(request, "Prefer"), word);
}

static json_t *state_of(const struct service_run *one)
{
        char link[80];
        snprintf(link, sizeof link, "/v1/runs/%s", one->id);
        return json_pack("{s:s, s:s, s:s, s:I}", "id", one->id, "state", one->run ? run_state_name(one->run) : "over", "url", link, "age_ms",
                         (json_int_t)((clock_us() - one->created_us) / 1000));
}

static void set_location(struct http_request *request, const struct service_run *one)
{
        char link[80];
        snprintf(link, sizeof link, "/v1/runs/%s", one->id);
        http_set_header(request, "Location", link);
}

#define IDEMPOTENCY_MS 86400000            /* how long a name is remembered */
#define IDEMPOTENCY_MAX 255

/* Of all that makes two requests the same: the method and the path, too, for two contexts are given the same body. */
static void digest_of(struct http_request *request, char ret[static 65])
{
        files_sha256_bytes(request->body.bytes ? request->body.bytes : "", request->body.len, ret);
        const char *all = arena_text(&request->arena, "%s %s\n%s", request->method, request->path, ret);
        files_sha256_bytes(all, strlen(all), ret);
}

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
        if (!service_of(request)->store) {
                err_field(&err, "Idempotency-Key", "a daemon without engine.http keeps nothing, so it could not know this Idempotency-Key again");
                http_fail(request, &err);
                return false;
        }
        struct idempotency *one = arena_alloc(arena, sizeof *one);
        *one = (struct idempotency){ .tenant = arena_text(arena, "%s", request->tenant), .name = arena_text(arena, "%s", name),
                                     .expires_ms = time_now_ms() + IDEMPOTENCY_MS };
        digest_of(request, one->sha256);
        if (idempotency_take(service_of(request)->store, one, &request->arena, &found, &http, &answer, &len,
                             &err) < 0) {
                service_fail_room(request, &err);
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

static struct service_run *service_run_new(struct http_request *request, struct run *run, bool watched)
{
        struct service *service = service_of(request);
        const struct store_key *key = service_key(request);
        struct service_run *one = mem_alloc(sizeof *one);
        *one = (struct service_run){ .next = service->runs, .service = service, .run = run, .watched = watched, .number = ++service->runs_made, .created_us = clock_us() };
        one->expiry = (struct timer){ .fired = on_expiry, .owner = one };
        snprintf(one->id, sizeof one->id, "%s", run_id(run));
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        snprintf(one->key, sizeof one->key, "%s", key ? key->id : "");
        snprintf(one->request_id, sizeof one->request_id, "%s", request->id);
        trace_below(&request->trace, &one->trace);
        events_init(&one->events);
        service->runs = one;
        service->live++;
        if (watched)
                events_start(&one->events, one->id);
        return one;
}

static void answer_accepted(struct http_request *request, struct service_run *one)
{
        json_t *state = state_of(one);
        char *text = model_write(state, JSON_COMPACT);
        json_decref(state);
        if (text)
                answer_name(one, MHD_HTTP_ACCEPTED, text, strlen(text));
        set_location(request, one);
        http_set_header(request, "Preference-Applied", "respond-async");
        http_answer(request, MHD_HTTP_ACCEPTED, "application/json", text, text ? strlen(text) : 0);
}

#define RETRY_S 1                          /* a run that waits may be over at any moment */

int service_may_run(struct http_request *request, struct run *run, bool in_context, struct http_limit *ret_limit,
                    struct csn_error *err)
{
        struct run_room room;
        *ret_limit = (struct http_limit){ 0 };
        int rc = service_begin_run(request, run, ret_limit, err);
        if (rc == 0 && !in_context && (rc = run_has_room(run, &room, err)) < 0)
                *ret_limit = (struct http_limit){ .name = room.name, .limit = room.limit, .current = room.queued, .reset_s = RETRY_S, .has_runs = true,
                                                  .running = room.running, .queued = room.queued };
        return rc;
}

void service_answer_busy(struct http_request *request, const struct http_limit *limit, const struct csn_error *error)
{
        if (limit->name)
                http_too_many(request, limit, error);
        else
                http_fail(request, error);
}

/* Whether it may start now; a context has a queue of its own.  False: the request has its answer. */
static bool has_room(struct http_request *request, struct run *run, bool in_context)
{
        struct csn_error err = { 0 };
        struct http_limit limit;
        if (service_may_run(request, run, in_context, &limit, &err) == 0)
                return true;
        service_answer_busy(request, &limit, &err);
        return false;
}

static void wait_for(struct service_run *one, struct http_request *request)
{
        one->waiting = request;
        request->owner = one;
        request->gone = on_gone;
        request->room = on_room;
}

/* It is in the audit from here on, whatever becomes of this process. */
static int begin(struct service_run *one, struct csn_error *err)
{
        const struct log_context about = { .request = one->request_id, .trace = one->trace.id, .owner = one->tenant };
        return audit_begin(one->service->store, &about, one->key, one->run, one->name, one->watched, err);
}

void service_start_run(struct http_request *request, struct run *run, const struct run_responder *words, void *own,
                       bool kept)
{
        struct service_run *one = service_run_new(request, run, kept);
        one->words = words;
        struct csn_error err;
        one->own = own;
        if (begin(one, &err) < 0)
                run_refuse(run, &err, &run_events, one);
        else
                run_start(run, false, &run_events, one);
        if (words)
                wait_for(one, request);
}

void api_post_run_in(struct http_request *request, const char *context)
{
        bool stream = http_accepts(request, "text/event-stream"), ndjson = !stream && http_accepts(request, "application/x-ndjson");
        bool async = api_prefers(request, "respond-async");
        struct run *run = run_new(service_of(request)->engine);
        struct run_request given = { 0 };
        struct idempotency *name = NULL;
        struct csn_error err;
        if (!service_decode(request, &object_run_request, run_arena(run), &given)) {
                run_free(run);
                return;
        }
        if (context && HAS(&given, run_request, context) && strcmp(given.context, context) != 0) {
                run_free(run);
                err_field(&err, "/context", "the context is that of the path");
                http_fail(request, &err);
                return;
        }
        if (context)
                SET(&given, run_request, context, arena_text(run_arena(run), "%s", context));
        *run_request(run) = given;
        if (run_check_needed(run, &err) < 0 || service_check_tools(request, given.profile, &given.tools, &err) < 0 ||
            run_storage_is_free(request, &given, &err) < 0) {
                run_free(run);
                service_fail_room(request, &err);
                return;
        }
        if (!has_room(request, run, HAS(&given, run_request, context)) || !take_name(request, run_arena(run), &name)) {
                run_free(run);
                return;
        }
        struct service_run *one = service_run_new(request, run, stream || ndjson || async);
        one->aliases = given.aliases;
        one->name = name;
        if ((async && service_of(request)->store && store_has_room(service_of(request)->store, &err) < 0) ||
            begin(one, &err) < 0) {
                drop_name(one);
                service_run_free(one);
                http_problem(request, err.sys == ENOSPC || err.sys == EDQUOT ? MHD_HTTP_INSUFFICIENT_STORAGE : MHD_HTTP_SERVICE_UNAVAILABLE, &err);
                return;
        }
        if (one->watched)
                run_set_listener(run, &listener, one);
        run_start(run, false, &run_events, one);
        if (stream || ndjson) {
                set_location(request, one);
                events_send(&one->events, request, 0, ndjson);
        } else if (async) {
                answer_accepted(request, one);
        } else {
                wait_for(one, request);
        }
}

void api_post_run(struct http_request *request)
{
        api_post_run_in(request, NULL);
}

void api_post_context_run(struct http_request *request)
{
        if (api_context(request))
                api_post_run_in(request, http_part(request, 0));
}

/* ---- POST /v1/runs/{id}/tool-results ---- */

/* Each answer is for itself: one that comes too late does not keep the others from their calls. */
void api_post_tool_results(struct http_request *request)
{
        struct tool_answers given = { 0 };
        struct service_run *one = find(request);
        struct csn_error err;
        size_t taken = 0;
        if (!one || !one->run) {
                not_found(request);
                return;
        }
        if (!service_decode(request, &object_tool_answers, &request->arena, &given))
                return;
        json_t *errors = json_array();
        for (size_t i = 0; i < given.results_n; i++) {
                if (broker_answer(one->run, &given.results[i], &err) == 0) {
                        taken++;
                        continue;
                }
                char *where = arena_text(&request->arena, "/results/%zu%s", i, err.field);
                snprintf(err.field, sizeof err.field, "%s", where);
                json_array_append_new(errors, json_pack("{s:s, s:s, s:s}", "call", given.results[i].call, "field", where, "message", err.text));
        }
        if (given.results_n && !taken) {
                json_decref(errors);
                api_conflict(request, &err);
                return;
        }
        http_json(request, MHD_HTTP_OK, json_pack("{s:I, s:o}", "taken", (json_int_t)taken, "errors", errors));
}

/* ---- the others ---- */

void api_get_run(struct http_request *request)
{
        struct csn_error err;
        struct service_found found;
        if (service_find_run(request, http_part(request, 0), &found, &err) < 0)
                http_fail(request, &err);
        else if (found.run)
                http_json(request, MHD_HTTP_ACCEPTED, state_of(find(request)));
        else if (found.record)
                http_answer(request, MHD_HTTP_OK, "application/json", mem_copy(found.record, found.len), found.len);
        else
                not_found(request);
}

void api_list_runs(struct http_request *request)
{
        struct service_page page;
        if (!service_page_begin(request, SERVICE_PAGE_MAX, &page))
                return;
        for (const struct service_run *one = service_of(request)->runs; one && !page.more; one = one->next)
                if (one->watched && strcmp(one->tenant, request->tenant) == 0 && service_page_has(&page, one->number,
                                                                                                  0))
                        json_array_append_new(page.list, state_of(one));
        service_page_answer(request, &page, "runs");
}

void api_delete_run(struct http_request *request)
{
        struct service_run *one = find(request);
        struct csn_error err;
        bool kept = false;
        if (one && one->run) {
                run_cancel(one->run);
                http_json(request, MHD_HTTP_ACCEPTED, state_of(one));
                return;
        }
        if (service_of(request)->store && runs_forget(service_of(request)->store, http_part(request, 0),
                                                      request->tenant, &kept, &err) < 0) {
                http_fail(request, &err);
        } else if (!one && !kept) {
                not_found(request);
        } else {
                if (one)
                        service_run_free(one);
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
        }
}

bool api_after(struct http_request *request, uint64_t *ret)
{
        const char *last = http_header(request, "Last-Event-ID"), *after = http_query(request, "after");
        const char *text = after ? after : last ? last : "0";
        struct csn_error err;
        if (header_event(text, ret))
                return true;
        err_field(&err, after ? "after" : "Last-Event-ID", "%s: \"%.40s\" is no number of an event", after ? "after" : "Last-Event-ID", text);
        http_fail(request, &err);
        return false;
}

void api_get_events(struct http_request *request)
{
        struct service_run *one = find(request);
        uint64_t after;
        if (!one)
                not_found(request);
        else if (api_after(request, &after))
                events_send(&one->events, request, after, http_accepts(request, "application/x-ndjson"));
}

void service_cancel(struct service *service)
{
        for (struct service_run *one = service->runs; one; one = one->next)
                if (one->run)
                        run_cancel(one->run);
        bulks_cancel(service);
        api_cancel_gradings(service);
}

void service_runs_close(struct service *service)
{
        for (struct service_run *one = service->runs, *next; one; one = next) {
                next = one->next;
                if (one->waiting)
                        one->waiting->gone = NULL;
                service_run_free(one);
        }
}
