/* POST /v1/grade: one submission as JSON, or many as JSON lines. */
#include "front/api/api.h"
#include "grading/grading.h"
#include "front/service/bulk.h"

#include <stdio.h>
#include <strings.h>

#define BODY_MAX (64 * MIB)

struct api_grading {
        struct api_grading *next;
        struct service *service;
        struct http_request *request;      /* NULL: it has gone, or it is a line of many */
        struct bulk_one *one;              /* that line, or NULL */
        struct buf body;
        struct parse *parse;               /* of the whole body, or NULL */
        struct grading *grading;           /* NULL: the body is not whole or not parsed yet */
        char *text;                        /* the result, from on_encode(); NULL also where it could not be written */
        char tenant[80], key[20], request_id[65];
        struct trace trace;
};

static struct grader *grader_of(struct service *service)
{
        struct api_state *state = api_state(service);
        if (!state->grader)
                state->grader = grader_open(service->engine, service->settings);
        return state->grader;
}

/* ---- the end ---- */

static int on_begins(void *owner, struct run *run, struct csn_error *err)
{
        const struct api_grading *job = owner;
        const struct log_context single = { .request = job->request_id, .trace = job->trace.id, .owner = job->tenant };
        const struct log_context context = job->one ? bulk_context(job->one) : single;
        return audit_begin(job->service->store, &context, job->one ? bulk_key(job->one) : job->key, run, NULL, false,
                           err);
}

static void on_ran(void *owner, struct run *run, const struct run_result *result)
{
        const struct api_grading *job = owner;
        const struct log_context single = { .request = job->request_id, .trace = job->trace.id, .owner = job->tenant };
        const struct log_context context = job->one ? bulk_context(job->one) : single;
        audit_run(job->service->store, &context, job->one ? bulk_key(job->one) : job->key, run, result);
        trace_run(job->service, job->one ? bulk_trace(job->one) : &job->trace, run, result);
}

static void job_free(struct api_grading *job)
{
        struct service *service = job->service;
        if (job->request) {
                job->request->gone = NULL;
                job->request->owner = NULL;
        }
        for (struct api_grading **at = &api_state(service)->gradings; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        grading_free(job->grading);
        free(job->text);
        parse_free(job->parse);
        buf_done(&job->body);
        if (!job->one) {
                service->live--;
                if (service_is_idle(service))
                        service->idle(service->owner);
        }
        free(job);
}

/* Perhaps in a helper thread. */
static void on_encode(void *owner, const struct grade_result *result)
{
        struct api_grading *job = owner;
        job->text = http_json_text(model_encode(&object_grade_result, result));
}

static void on_done(void *owner, const struct grade_result *result)
{
        struct api_grading *job = owner;
        struct bulk_one *one = job->one;
        struct http_request *request = job->request;
        char *text = job->text;
        (void)result;
        job->text = NULL;
        job_free(job);
        if (one)
                bulk_answer(one, "result", text, text ? strlen(text) : 0);
        else if (request)
                http_answer_json(request, MHD_HTTP_OK, text);
        else
                free(text);
}

static const struct grading_events events = {
        .begins = on_begins, .ran = on_ran, .encode = on_encode, .done = on_done
};

/* ---- the beginning ---- */

static int decode_request(json_t *json, struct arena *arena, void *ret, struct csn_error *err)
{
        return grading_decode(json, arena, ret, err);
}

static int begin(struct http_request *request, struct api_grading *job, struct parse *parse, struct http_limit *limit,
        struct csn_error *err)
{
        const struct run_quota quota = service_quota(request);
        if (service_has_cpu_time(request, limit, err) < 0)
                return -err->code;
        job->grading = grading_new(grader_of(job->service));
        grading_set_owner(job->grading, request->tenant, &quota);
        parse_take(parse, grading_arena(job->grading), grading_request(job->grading));
        grading_start(job->grading, false, &events, job);
        return 0;
}

/* ---- many ---- */

static int begin_line(struct http_request *request, struct bulk_one *one, struct parse *parse, void **ret_job,
        struct csn_error *err)
{
        struct http_limit limit;
        struct api_grading *job = mem_alloc(sizeof *job);
        *job = (struct api_grading){ .service = service_of(request), .one = one };
        if (begin(request, job, parse, &limit, err) < 0) {
                job_free(job);
                return -err->code;
        }
        *ret_job = job;
        return 0;
}

static void cancel_line(void *owner)
{
        grading_cancel(((struct api_grading *)owner)->grading);
}

/* ---- one ---- */

static void on_gone(struct http_request *request)
{
        struct api_grading *job = request->owner;
        job->request = NULL;
        if (job->grading)
                grading_cancel(job->grading);   /* its end follows, and is for nobody */
        else
                job_free(job);
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct api_grading *job = request->owner;
        struct csn_error err;
        if (!job->body.len)
                buf_reserve(&job->body, http_announced(request));
        if (buf_add(&job->body, bytes, len))
                return len;
        err_field(&err, "", "the body is longer than %llu MiB", BODY_MAX / MIB);
        job_free(job);
        http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, &err);
        return len;
}

static void fail(struct api_grading *job, const struct http_limit *limit, const struct csn_error *error)
{
        struct http_request *request = job->request;
        job_free(job);
        if (limit->name)
                http_too_many(request, limit, error);
        else
                service_fail_room(request, error);
}

static void on_parsed(void *owner)
{
        struct api_grading *job = owner;
        struct csn_error err = job->parse->error;
        struct http_limit limit = { 0 };
        if (err.code || begin(job->request, job, job->parse, &limit, &err) < 0) {
                fail(job, &limit, &err);
                return;
        }
        parse_free(job->parse);
        job->parse = NULL;
}

static const struct parse_kind one_kind = {
        .object = &object_grade_request, .decode = decode_request, .values_max = PARSE_CASES_VALUES_MAX
};

static void on_whole(struct http_request *request)
{
        struct api_grading *job = request->owner;
        struct buf body = job->body;
        job->body = (struct buf){ 0 };
        if (body.len > PARSE_AT_ONCE_MAX) {
                job->parse = parse_start(engine_workers(job->service->engine), job->tenant, &one_kind, body.bytes,
                        body.len, false, on_parsed, job);
                return;
        }
        job->parse = parse_now(&one_kind, body.bytes ? body.bytes : "", body.len);
        buf_done(&body);
        on_parsed(job);
}

void api_grade(struct http_request *request)
{
        static const struct bulk_kind lines = {
                .parse = { .object = &object_grade_request,
                        .decode = decode_request,
                        .values_max = PARSE_CASES_VALUES_MAX,
                        .is_line = true },
                .begin = begin_line,
                .cancel = cancel_line,
        };
        struct service *service = service_of(request);
        const char *type = http_header(request, "Content-Type");
        if (type && strncasecmp(type, "application/x-ndjson", strlen("application/x-ndjson")) == 0) {
                bulk_begin(request, &lines);
                return;
        }
        struct api_grading *job = mem_alloc(sizeof *job);
        *job = (struct api_grading){ .next = api_state(service)->gradings, .service = service, .request = request };
        api_state(service)->gradings = job;
        snprintf(job->tenant, sizeof job->tenant, "%s", request->tenant);
        snprintf(job->key, sizeof job->key, "%s", service_key(request) ? service_key(request)->id : "");
        snprintf(job->request_id, sizeof job->request_id, "%s", request->id);
        trace_below(&request->trace, &job->trace);
        buf_init(&job->body, BODY_MAX);
        service->live++;
        request->owner = job;
        request->gone = on_gone;
        request->take = take;
        request->whole = on_whole;
}

void api_cancel_gradings(struct service *service)
{
        for (struct api_grading *job = api_state(service)->gradings, *next; job; job = next) {
                next = job->next;
                if (job->grading)
                        grading_cancel(job->grading);
        }
}

/* Lines of many are the bulk's, and end with it. */
void api_close_gradings(struct service *service)
{
        for (struct api_grading *job = api_state(service)->gradings, *next; job; job = next) {
                next = job->next;
                job_free(job);
        }
        grader_close(api_state(service)->grader);
        api_state(service)->grader = NULL;
}
