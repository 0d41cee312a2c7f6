/* Runs over HTTP: waited for, started and asked for later, or watched. */
#include "front/api/api.h"

#include "engine/output/files.h"
#include "front/service/bulk.h"
#include "front/service/parse.h"
#include "front/service/run.h"
#include "net/http_headers.h"
#include "tools/tools.h"

#include <stdio.h>

static struct service_run *find(const struct http_request *request)
{
        return service_run_find(request, http_part(request, 0));
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

static void set_location(struct http_request *request, const struct service_run *one)
{
        char link[80];
        snprintf(link, sizeof link, "/v1/runs/%s", one->id);
        http_set_header(request, "Location", link);
}

#define IDEMPOTENCY_MS 86400000            /* how long a name is remembered */
#define IDEMPOTENCY_MAX 255

/* Answer with the record of an ended run, or its text.  False: there is no record. */
static bool answer_found(struct http_request *request, const struct service_found *found)
{
        int form;
        if ((found->record || found->fd >= 0) && api_wants_text(request, &form))
                api_answer_text(request, form, found);
        else if (found->record)
                http_answer(request, MHD_HTTP_OK, "application/json", mem_copy(found->record, found->len), found->len);
        else if (found->fd >= 0)
                http_answer_file(request, MHD_HTTP_OK, "application/json", found->fd, 0, found->len);
        return found->record || found->fd >= 0;
}

/* Digest of method, path and body: requests for two contexts may have the same body. */
static void digest_of(struct http_request *request, char ret[static 65])
{
        if (parse_of(request))
                memcpy(ret, parse_of(request)->sha256, sizeof parse_of(request)->sha256);
        else
                files_sha256_bytes(request->body.bytes ? request->body.bytes : "", request->body.len, ret);
        const char *all = arena_text(&request->arena, "%s %s\n%s", request->method, request->path, ret);
        files_sha256_bytes(all, strlen(all), ret);
}

/* Answer a repeated request with the long record of the run `id`, which carried out the first request. */
static void answer_again(struct http_request *request, const char *id)
{
        struct csn_error err;
        struct service_found found;
        if (service_find_run(request, id, &found, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        if (found.record || found.fd >= 0) {
                http_set_header(request, "Idempotency-Replayed", "true");
                answer_found(request, &found);
                return;
        }
        err_field(&err, "Idempotency-Key",
                "the request of this Idempotency-Key was carried out as %s, whose record is no longer stored", id);
        http_problem(request, MHD_HTTP_CONFLICT, &err);
}

/*
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header): a request sent again after the loss of its answer is not
 * carried out again.  True: carry out the request; *ret is its key, or NULL without a key.
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
                err_field(&err, "Idempotency-Key",
                        "a daemon without engine.http keeps nothing, so it could not know this Idempotency-Key again");
                http_fail(request, &err);
                return false;
        }
        struct idempotency *one = arena_alloc(arena, sizeof *one);
        *one = (struct idempotency){ .tenant = arena_text(arena, "%s", request->tenant),
                .name = arena_text(arena, "%s", name),
                .expires_ms = time_now_ms() + IDEMPOTENCY_MS };
        digest_of(request, one->sha256);
        if (idempotency_take(service_of(request)->store, one, &request->arena, &found, &http, &answer, &len,
                             &err) < 0) {
                service_fail_room(request, &err);
        } else if (found == IDEMPOTENCY_NEW) {
                *ret = one;
                return true;
        } else if (found == IDEMPOTENCY_DONE && http == SERVICE_ANSWER_IS_RECORD) {
                answer_again(request, answer);
        } else if (found == IDEMPOTENCY_DONE) {
                const struct service_found record = { .record = answer, .len = len, .fd = -1 };
                http_set_header(request, "Idempotency-Replayed", "true");
                if (http != MHD_HTTP_OK || !answer_found(request, &record))
                        http_answer(request, (unsigned)http, "application/json", mem_copy(answer, len), len);
        } else {
                err_field(&err, "Idempotency-Key", "%s",
                        found == IDEMPOTENCY_BUSY ? "the request of this Idempotency-Key is being carried out"
                                                  : "this Idempotency-Key was used for another request");
                http_problem(request, found == IDEMPOTENCY_BUSY ? MHD_HTTP_CONFLICT : MHD_HTTP_UNPROCESSABLE_CONTENT,
                        &err);
        }
        return false;
}

/* ---- GET /v1/idempotency-keys/{idempotency_key} ---- */

/* The run of an unfinished request; NULL: the request has no run yet. */
static const struct service_run *find_named(const struct http_request *request, const char *name)
{
        for (const struct service_run *one = service_of(request)->runs; one; one = one->next)
                if (one->name && strcmp(one->name->name, name) == 0 && strcmp(one->tenant, request->tenant) == 0)
                        return one;
        return NULL;
}

static void answer_going_on(struct http_request *request, const char *name)
{
        const struct service_run *one = find_named(request, name);
        json_t *json = json_pack("{s:s}", "state", one && one->run ? run_state_name(one->run) : "running");
        if (one)
                json_object_set_new(json, "id", json_string(one->id));
        http_set_header(request, "Retry-After", "1");
        http_json(request, MHD_HTTP_ACCEPTED, json);
}

static void answer_saved(struct http_request *request, int http, const char *answer, size_t len)
{
        if (http == SERVICE_ANSWER_IS_RECORD) {
                answer_again(request, answer);
                return;
        }
        http_set_header(request, "Idempotency-Replayed", "true");
        http_answer(request, (unsigned)http, "application/json", mem_copy(answer, len), len);
}

void api_get_idempotency_key(struct http_request *request)
{
        const char *name = http_part(request, 0);
        enum idempotency_found found;
        struct csn_error err;
        char *answer;
        size_t len;
        int http;
        if (!service_of(request)->store) {
                api_no_such(request, "Idempotency-Key");
                return;
        }
        if (idempotency_find(service_of(request)->store, request->tenant, name, &request->arena, &found, &http,
                             &answer, &len, &err) < 0)
                http_fail(request, &err);
        else if (found == IDEMPOTENCY_NEW)
                api_no_such(request, "Idempotency-Key");
        else if (found == IDEMPOTENCY_BUSY)
                answer_going_on(request, name);
        else
                answer_saved(request, http, answer, len);
}

/* ---- POST /v1/runs, in order ---- */

static void answer_accepted(struct http_request *request, struct service_run *one)
{
        json_t *state = api_run_state(one);
        char *text = model_write(state, JSON_COMPACT | MODEL_MEASURED);
        json_decref(state);
        if (text)
                service_run_answer_name(one, MHD_HTTP_ACCEPTED, text, strlen(text));
        set_location(request, one);
        http_set_header(request, "Preference-Applied", "respond-async");
        http_answer(request, MHD_HTTP_ACCEPTED, "application/json", text, text ? strlen(text) : 0);
}

/* Whether the run may start now.  False: the request has its answer. */
static bool has_room(struct http_request *request, struct run *run)
{
        struct csn_error err = { 0 };
        struct http_limit limit;
        if (service_may_run(request, run, &limit, &err) == 0)
                return true;
        service_answer_busy(request, &limit, &err);
        return false;
}

/* A draining daemon begins no run, and still answers for each known Idempotency-Key. */
static bool is_refused_for_end(struct http_request *request)
{
        struct service *service = service_of(request);
        const char *name = http_header(request, "Idempotency-Key");
        enum idempotency_found found = IDEMPOTENCY_NEW;
        struct csn_error draining, err;
        char *answer;
        size_t len;
        int http;
        if (service_draining(service, &draining) == 0)
                return false;
        if (name && service->store && idempotency_find(service->store, request->tenant, name, &request->arena, &found,
                                                       &http, &answer, &len, &err) == 0 && found != IDEMPOTENCY_NEW)
                return false;
        service_bar_attempt(request);
        http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &draining);
        return true;
}

void api_post_run_in(struct http_request *request, const char *context)
{
        if (is_refused_for_end(request))
                return;

        bool stream = http_accepts(request, "text/event-stream"),
             ndjson = !stream && http_accepts(request, "application/x-ndjson");
        bool async = api_prefers(request, "respond-async");
        if ((stream || ndjson) && !events_admit(request))
                return;
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
        if (!has_room(request, run) || !take_name(request, run_arena(run), &name)) {
                run_free(run);
                return;
        }
        struct service_run *one = service_run_new(request, run, stream || ndjson || async);
        one->aliases = given.aliases;
        one->as_text = !one->watched && api_wants_text(request, &one->form);
        one->name = name;
        if ((async && service_of(request)->store && store_has_room(service_of(request)->store, &err) < 0) ||
            service_run_begin(one, &err) < 0) {
                service_run_drop_name(one);
                service_run_free(one);
                http_problem(request,
                        err.sys == ENOSPC || err.sys == EDQUOT ? MHD_HTTP_INSUFFICIENT_STORAGE
                                                               : MHD_HTTP_SERVICE_UNAVAILABLE,
                        &err);
                return;
        }
        service_run_start(one);
        if (stream || ndjson) {
                set_location(request, one);
                events_send(&one->events, request, 0, ndjson);
        } else if (async) {
                answer_accepted(request, one);
        } else {
                service_run_wait(one, request);
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

/* Each answer is for itself: a late answer does not keep the others from their calls. */
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
                json_array_append_new(errors,
                        json_pack("{s:s, s:s, s:s}", "call", given.results[i].call, "field", where, "message",
                                err.text));
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
                http_json(request, MHD_HTTP_ACCEPTED, api_run_state(find(request)));
        else if (!answer_found(request, &found))
                not_found(request);
}

void api_delete_run(struct http_request *request)
{
        struct service_run *one = find(request);
        struct service_run *running = service_run_find_running(request, http_part(request, 0));
        struct csn_error err;
        bool kept = false;
        if (running) {
                run_cancel(running->run);
                http_json(request, MHD_HTTP_ACCEPTED, api_run_state(running));
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
        err_field(&err, after ? "after" : "Last-Event-ID", "%s: \"%.40s\" is no number of an event",
                after ? "after" : "Last-Event-ID", text);
        http_fail(request, &err);
        return false;
}

void api_get_events(struct http_request *request)
{
        struct service_run *one = find(request);
        uint64_t after;
        if (!one)
                not_found(request);
        else if (api_after(request, &after) && events_admit(request))
                events_send(&one->events, request, after, http_accepts(request, "application/x-ndjson"));
}


/* ---- POST /v1/runs/bulk ---- */

struct bulk_run {
        struct bulk_one *one;
        struct service *service;
        struct run *run;
        bool aliases, recorded;
        struct buf record;
};

/* Perhaps in a helper thread. */
static void on_line_encode(void *owner, const struct run_result *result)
{
        struct bulk_run *job = owner;
        buf_init(&job->record, FRONT_RECORD_MAX);
        job->recorded = front_record_text(result, job->aliases, &job->record);
}

static void on_line_done(void *owner, const struct run_result *result)
{
        struct bulk_run *job = owner;
        struct bulk_one *one = job->one;
        const struct log_context context = bulk_context(one);
        struct buf record = job->record;
        bool recorded = job->recorded;
        audit_run(job->service->store, &context, bulk_key(one), job->run, result);
        trace_run(job->service, bulk_trace(one), job->run, result);
        run_free(job->run);
        free(job);
        if (!recorded)
                buf_done(&record);
        bulk_answer(one, "record", record.bytes, record.len);
}

static int begin_line(struct http_request *request, struct bulk_one *one, struct parse *parse, void **ret_job,
        struct csn_error *err)
{
        static const struct run_events events = { .encode = on_line_encode, .done = on_line_done };
        struct run_request given = { 0 };
        struct http_limit limit;
        struct run *run = run_new(service_of(request)->engine);
        parse_take(parse, run_arena(run), &given);
        if (service_begin_run(request, run, &limit, err) < 0 ||
                service_check_tools(request, given.profile, &given.tools, err) < 0) {
                run_free(run);
                return -err->code;
        }
        *run_request(run) = given;
        if (run_check_needed(run, err) < 0) {
                run_free(run);
                return -err->code;
        }
        struct bulk_run *job = mem_alloc(sizeof *job);
        *job = (struct bulk_run){ .one = one, .service = service_of(request), .run = run, .aliases = given.aliases };
        const struct log_context context = bulk_context(one);
        struct csn_error full;
        *ret_job = job;
        if (audit_begin(job->service->store, &context, bulk_key(one), run, NULL, false, &full) < 0)
                run_refuse(run, &full, &events, job);
        else
                run_start(run, false, &events, job);
        return 0;
}

static void cancel_line(void *job)
{
        run_cancel(((struct bulk_run *)job)->run);
}

void api_bulk(struct http_request *request)
{
        static const struct bulk_kind runs = {
                .parse = { .object = &object_run_request, .values_max = PARSE_VALUES_MAX, .is_line = true },
                .begin = begin_line,
                .cancel = cancel_line,
        };
        bulk_begin(request, &runs);
}
