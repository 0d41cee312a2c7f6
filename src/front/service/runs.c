/* Runs over HTTP: waited for, started and asked for later, or watched. */
#include "front/service/run.h"

#include "engine/output/render.h"

#include <stdio.h>

/* ---- their life ---- */

/* Bytes of an ended run, in memory and in a file not counted by the store. */
static size_t retained_bytes(const struct service_run *one)
{
        return one->record.len + (one->file.fd >= 0 ? one->file.size : 0) + events_bytes(&one->events);
}

void service_run_free(struct service_run *one)
{
        struct service *service = one->service;
        for (struct service_run **at = &service->runs; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        loop_untimer(service->loop, &one->expiry);
        run_detach(one->run);
        if (one->responder && one->responder->drop)
                one->responder->drop(one->own);
        if (one->run)
                service->live--;
        else
                retained_drop(&service->kept, one->tenant, retained_bytes(one));
        run_free(one->run);
        share_charge_done(&one->body);
        events_done(&one->events);
        buf_done(&one->record);
        buf_done(&one->text);
        long_record_done(&one->file, engine_workers(service->engine), one->tenant);
        free(one);
}

static void on_expiry(struct timer *timer)
{
        service_run_free(timer->owner);
}

/* The oldest ended run of a tenant with at least `least` bytes, else of any tenant: the list has the newest first. */
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
        if (one->responder && one->responder->output)
                one->responder->output(one->own, stream, bytes, len);
}

/* A watched run has no responder with displays. */
static display_encoder *find_encoder(void *owner)
{
        const struct service_run *one = owner;
        if (one->watched)
                return events_encode_display;
        return one->responder && one->responder->display_encoder ? one->responder->display_encoder(one->own) : NULL;
}

static void on_display(void *owner, const char *text, size_t len)
{
        struct service_run *one = owner;
        if (one->watched)
                events_add(&one->events, text, len);
        else
                one->responder->display(one->own, text, len);
}

/* For questions after a restart of the daemon. */
static void keep(struct service_run *one)
{
        struct csn_error err;
        int64_t until = one->name ? one->name->expires_ms : time_now_ms() + (int64_t)(SERVICE_KEEP_US / 1000);
        if (one->record.len > SERVICE_STORED_MAX)
                one->filed = long_record_keep(&one->file, one->id, until) || one->file.fd >= 0;
        else if (one->watched && one->service->store && runs_keep(one->service->store, one->id, one->tenant,
                                                                  one->record.bytes, one->record.len, until, &err) < 0)
                log_text(LOG_ERROR, "the record of %s is not kept: %s", one->id, err.text);
}

void service_run_answer_name(struct service_run *one, int http, const char *text, size_t len)
{
        struct csn_error err;
        if (len > SERVICE_STORED_MAX) {
                http = SERVICE_ANSWER_IS_RECORD;
                text = one->id;
                len = strlen(one->id);
        }
        if (one->name && idempotency_answer(one->service->store, one->name, http, text, len, &err) < 0)
                log_text(LOG_ERROR, "the answer to an Idempotency-Key is not kept: %s", err.text);
        one->name = NULL;
}

/* For a request not carried out: a repetition with the same key is carried out. */
void service_run_drop_name(struct service_run *one)
{
        struct csn_error err;
        if (one->name && idempotency_drop(one->service->store, one->name, &err) < 0)
                log_text(LOG_ERROR, "an Idempotency-Key is not given back: %s", err.text);
        one->name = NULL;
}

static void answer_waiting(struct service_run *one, const struct run_result *result)
{
        struct http_request *request = one->waiting;
        struct csn_error err;
        one->waiting = NULL;
        request->gone = NULL;
        if (one->responder) {
                one->responder->answer(request, one->own, result);
                return;
        }
        if (service_ran_nothing(result)) {
                service_error_of(result, &err);
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
                return;
        }
        if (one->as_text) {
                http_answer(request, MHD_HTTP_OK, SERVICE_TEXT_TYPE, one->text.bytes, one->text.len);
                one->text = (struct buf){ 0 };
                return;
        }
        if (one->recorded)
                http_answer(request, MHD_HTTP_OK, "application/json", one->record.bytes, one->record.len);
        else
                err_set(&err, CSN_E_SYSTEM, 0, "the record could not be written"), http_fail(request, &err);
        one->record = (struct buf){ 0 };
}

/* Perhaps in a helper thread.  With an answer of a responder, and without later questions, no record is needed. */
static void on_encode(void *owner, const struct run_result *result)
{
        struct service_run *one = owner;
        if (one->responder && one->responder->encode)
                one->responder->encode(one->own, result);
        if (one->responder && !one->watched && !one->name)
                return;
        buf_init(&one->record, FRONT_RECORD_MAX);
        one->recorded = front_record_text(result, one->aliases, &one->record);
        buf_trim(&one->record);
        if (one->as_text) {
                buf_init(&one->text, FRONT_RECORD_MAX);
                render_text(one->form == SERVICE_OWN_FORM ? result->format : one->form, result, &one->text);
        }
        if (one->recorded && one->record.len > SERVICE_STORED_MAX && (one->watched || one->name))
                long_record_write(&one->file, one->service->store, one->tenant, one->record.bytes, one->record.len);
}

/* Fields of lists for a run with a freed request. */
static void note_end(struct service_run *one, const struct run_result *result)
{
        one->status = result->status;
        one->total_ms = result->timings.total_ms;
        snprintf(one->language, sizeof one->language, "%s", HAS(result, run_result, language) ? result->language : "");
        snprintf(one->profile, sizeof one->profile, "%s", HAS(result, run_result, profile) ? result->profile : "");
}

static void on_done(void *owner, const struct run_result *result)
{
        struct service_run *one = owner;
        struct service *service = one->service;
        note_end(one, result);
        if (one->recorded)
                keep(one);
        if (service_ran_nothing(result))
                service_run_drop_name(one);
        else if (one->recorded)
                service_run_answer_name(one, MHD_HTTP_OK, one->record.bytes, one->record.len);
        /* Last, because the audit gives up the run's place in the journal. */
        audit_run(service->store, &(struct log_context){ .request = one->request_id, .trace = one->trace.id,
                                                         .owner = one->tenant }, one->key, one->run, result);
        trace_run(service, &one->trace, one->run, result);
        service_note_run(service, result);
        if (one->waiting)
                answer_waiting(one, result);
        if (!one->watched) {
                service_run_free(one);
                return;
        }
        events_end(&one->events, one->recorded ? one->record.bytes : NULL, one->record.len);
        if (one->responder && one->responder->drop)
                one->responder->drop(one->own);
        one->responder = NULL;
        run_free(one->run);
        one->run = NULL;
        share_charge_done(&one->body);
        service->live--;
        if (one->filed)
                buf_done(&one->record);
        retained_add(&service->kept, one->tenant, retained_bytes(one));
        loop_timer(service->loop, &one->expiry, SERVICE_KEEP_US);
        make_room(service);
        if (service->live == 0)
                service->idle(service->owner);
}

static const struct run_events run_events = {
        .output = on_output,
        .display_encoder = find_encoder,
        .display = on_display,
        .encode = on_encode,
        .done = on_done
};

static void on_told(void *owner, json_t *event)
{
        struct service_run *one = owner;
        events_tell(&one->events, event);
}

static const struct run_listener listener = { on_told };

/*
 * No client waits for the record any more.  With an Idempotency-Key the run goes on: the client may have lost the
 * answer, and may repeat the request.
 */
static void on_gone(struct http_request *request)
{
        struct service_run *one = request->owner;
        one->waiting = NULL;
        if (one->name)
                return;
        if (one->responder && one->responder->gone)
                one->responder->gone(one->own);
        run_cancel(one->run);
}

static void on_room(struct http_request *request)
{
        struct service_run *one = request->owner;
        if (one->responder && one->responder->room)
                one->responder->room(one->own);
}

struct service_run *service_run_find(const struct http_request *request, const char *id)
{
        for (struct service_run *one = service_of(request)->runs; one; one = one->next)
                if (one->watched && strcmp(one->id, id) == 0 && strcmp(one->tenant, request->tenant) == 0)
                        return one;
        return NULL;
}

struct service_run *service_run_find_running(const struct http_request *request, const char *id)
{
        for (struct service_run *one = service_of(request)->runs; one; one = one->next)
                if (one->run && strcmp(one->id, id) == 0 && strcmp(one->tenant, request->tenant) == 0)
                        return one;
        return NULL;
}

int service_find_run(struct http_request *request, const char *id, struct service_found *ret, struct csn_error *err)
{
        const struct service_run *one = service_run_find(request, id);
        struct store_record kept = { .fd = -1 };
        *ret = (struct service_found){ .fd = -1 };
        if (one && one->run) {
                ret->run = one->run;
                return 0;
        }
        if (one && one->record.len) {
                ret->record = one->record.bytes;
                ret->len = one->record.len;
                return 0;
        }
        if (one && one->file.fd >= 0) {
                ret->fd = long_record_open(&one->file);
                ret->len = one->file.size;
                return ret->fd >= 0 ? 0 : err_set(err, CSN_E_SYSTEM, errno, "open the record of %s", id);
        }
        /* A long record, or a record of before the daemon's last start. */
        if (service_of(request)->store && runs_record(service_of(request)->store, id, request->tenant, &request->arena,
                                                      &kept, err) < 0)
                return -err->code;
        ret->record = kept.text;
        ret->fd = kept.fd;
        ret->len = kept.len;
        return 0;
}

struct service_run *service_run_new(struct http_request *request, struct run *run, bool watched)
{
        struct service *service = service_of(request);
        const struct store_key *key = service_key(request);
        struct service_run *one = mem_alloc(sizeof *one);
        *one = (struct service_run){ .next = service->runs,
                .service = service,
                .run = run,
                .watched = watched,
                .number = clock_number(&service->newest_run),
                .created_us = clock_us(),
                .created_ms = time_now_ms(),
                .status = -1 };
        const struct store_room room = service_room(request);
        long_record_init(&one->file, &room);
        one->expiry = (struct timer){ .fired = on_expiry, .owner = one };
        snprintf(one->id, sizeof one->id, "%s", run_id(run));
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        snprintf(one->key, sizeof one->key, "%s", key ? key->id : "");
        snprintf(one->request_id, sizeof one->request_id, "%s", request->id);
        trace_below(&request->trace, &one->trace);
        http_move_body(request, &one->body);
        events_init(&one->events);
        service->runs = one;
        service->live++;
        if (watched)
                events_start(&one->events, one->id);
        return one;
}

#define RETRY_S 1                          /* a waiting run may be over at any moment */

int service_begin_run(const struct http_request *request, struct run *run, struct http_limit *ret_limit,
                      struct csn_error *err)
{
        const struct run_quota quota = service_quota(request);
        run_set_owner(run, request->tenant);
        run_storage_set(request, run);
        if (request->key)
                run_set_quota(run, &quota);
        return service_has_cpu_time(request, ret_limit, err);
}

static struct http_limit limit_of(const struct run_room *room, size_t current)
{
        return (struct http_limit){ .name = room->name,
                .limit = room->limit,
                .current = current,
                .reset_s = RETRY_S,
                .has_runs = true,
                .running = room->running,
                .queued = room->queued };
}

int service_may_run(struct http_request *request, struct run *run, struct http_limit *ret_limit, struct csn_error *err)
{
        struct run_room room;
        *ret_limit = (struct http_limit){ 0 };
        int rc = service_begin_run(request, run, ret_limit, err);
        if (rc == 0 && (rc = run_has_room(run, &room, err)) < 0)
                *ret_limit = limit_of(&room, room.queued);
        return rc;
}

int service_may_begin_program(const struct service *service, const char *tenant, const struct run_quota *quota,
                              struct psandbox *psandbox, struct http_limit *ret_limit, struct csn_error *err)
{
        struct run_room room;
        *ret_limit = (struct http_limit){ 0 };
        int rc = service_tenant_has_cpu_time(service, tenant, quota->cpu_ms_per_day, ret_limit, err);
        if (rc == 0 && (rc = engine_may_begin(service->engine, tenant, quota, &room, err)) < 0)
                *ret_limit = limit_of(&room, room.running);
        if (rc == 0)
                psandbox_set_quota(psandbox, quota);
        return rc;
}

void service_answer_busy(struct http_request *request, const struct http_limit *limit, const struct csn_error *error)
{
        if (limit->name)
                http_too_many(request, limit, error);
        else
                http_fail(request, error);
}

void service_run_wait(struct service_run *one, struct http_request *request)
{
        one->waiting = request;
        request->owner = one;
        request->gone = on_gone;
        request->room = on_room;
}

/* From here on the run is in the audit, also after a crash of the process. */
int service_run_begin(struct service_run *one, struct csn_error *err)
{
        const struct log_context about = { .request = one->request_id, .trace = one->trace.id, .owner = one->tenant };
        return audit_begin(one->service->store, &about, one->key, one->run, one->name, one->watched, err);
}

void service_run_start(struct service_run *one)
{
        if (one->watched)
                run_set_listener(one->run, &listener, one);
        run_start(one->run, false, &run_events, one);
}

void service_start_run(struct http_request *request, struct run *run, const struct run_responder *responder, void *own,
                       bool kept)
{
        struct service_run *one = service_run_new(request, run, kept);
        one->responder = responder;
        struct csn_error err;
        one->own = own;
        if (service_run_begin(one, &err) < 0)
                run_refuse(run, &err, &run_events, one);
        else
                run_start(run, false, &run_events, one);
        if (responder)
                service_run_wait(one, request);
}

void service_runs_cancel(struct service *service)
{
        for (struct service_run *one = service->runs; one; one = one->next)
                if (one->run)
                        run_cancel(one->run);
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
