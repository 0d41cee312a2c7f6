/* POST /v1/grade: one submission as JSON, or many as JSON lines. */
#include "front/api/api.h"
#include "front/grading/gradings.h"
#include "front/service/bulk.h"
#include "front/views/views.h"

#include <stdio.h>
#include <strings.h>

#define BODY_MAX (64 * MIB)

struct api_grading {
        struct api_grading *next;
        struct service *service;
        struct http_request *request;      /* NULL: the client has gone, or the submission is a line of many */
        struct bulk_one *one;              /* the line, or NULL */
        struct buf body;
        struct parse *parse;               /* of the whole body, or NULL */
        struct grade_job *job;             /* NULL: the body is not whole or not parsed yet, or the grading is over */
        char *text;                        /* the result, from on_encode(); NULL also if the writing failed */
        char tenant[80];
        struct trace trace;
};

/* ---- the end ---- */

static void grading_drop(struct api_grading *grading)
{
        struct service *service = grading->service;
        if (grading->request) {
                grading->request->gone = NULL;
                grading->request->owner = NULL;
        }
        for (struct api_grading **at = &api_state(service)->gradings; *at; at = &(*at)->next)
                if (*at == grading) {
                        *at = grading->next;
                        break;
                }
        grade_job_free(grading->job);
        free(grading->text);
        parse_free(grading->parse);
        buf_done(&grading->body);
        if (!grading->one) {
                service->live--;
                if (service_is_idle(service))
                        service->idle(service->owner);
        }
        free(grading);
}

/* Perhaps in a helper thread. */
static void on_encode(void *owner, const struct grade_request *request, const struct grade_result *result)
{
        struct api_grading *grading = owner;
        grading->text = http_json_text(front_grade_result(result, request->aliases));
}

static void on_done(void *owner, const struct grade_result *result, const struct csn_error *error)
{
        struct api_grading *grading = owner;
        struct bulk_one *one = grading->one;
        struct http_request *request = grading->request;
        char *text = grading->text;
        grading->text = NULL;
        grading->job = NULL;
        grading_drop(grading);
        if (one && error)
                bulk_fail(one, error);
        else if (one)
                bulk_answer(one, "result", text, text ? strlen(text) : 0);
        else if (!request)
                free(text);
        else if (error)
                http_fail(request, error);
        else if (result->mask)
                grade_answer_masked(request, text);
        else
                http_answer_json(request, MHD_HTTP_OK, text);
}

static const struct grade_job_events events = { .encode = on_encode, .done = on_done };

/* ---- many ---- */

static int begin_line(struct http_request *request, struct bulk_one *one, struct parse *parse, void **ret_job,
        struct csn_error *err)
{
        struct http_limit limit;
        struct api_grading *grading = mem_alloc(sizeof *grading);
        *grading = (struct api_grading){ .service = service_of(request), .one = one };
        if (grade_job_start_parsed(request, bulk_trace(one), parse, &events, grading, &grading->job, &limit, err) < 0) {
                grading_drop(grading);
                return -err->code;
        }
        *ret_job = grading;
        return 0;
}

static void cancel_line(void *owner)
{
        grade_job_cancel(((struct api_grading *)owner)->job);
}

/* ---- a single submission ---- */

static void on_gone(struct http_request *request)
{
        struct api_grading *grading = request->owner;
        grading->request = NULL;
        if (grading->job)
                grade_job_cancel(grading->job); /* its end follows, without a client */
        else
                grading_drop(grading);
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct api_grading *grading = request->owner;
        struct csn_error err;
        if (!grading->body.len)
                buf_reserve(&grading->body, http_announced(request));
        if (buf_add(&grading->body, bytes, len))
                return len;
        err_field(&err, "", "the body is longer than %llu MiB", BODY_MAX / MIB);
        grading_drop(grading);
        http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, &err);
        return len;
}

static void fail(struct api_grading *grading, const struct http_limit *limit, const struct csn_error *error)
{
        struct http_request *request = grading->request;
        grading_drop(grading);
        if (limit->name)
                http_too_many(request, limit, error);
        else
                service_fail_room(request, error);
}

static void on_parsed(void *owner)
{
        struct api_grading *grading = owner;
        struct csn_error err = grading->parse->error;
        struct http_limit limit = { 0 };
        if (err.code ||
                grade_job_start_parsed(grading->request, &grading->trace, grading->parse, &events, grading,
                        &grading->job, &limit, &err) < 0) {
                fail(grading, &limit, &err);
                return;
        }
        parse_free(grading->parse);
        grading->parse = NULL;
}

static const struct parse_kind one_kind = {
        .object = &object_grade_request,
        .decode = grade_job_decode,
        .keeps_tree = problem_is_named,
        .values_max = PARSE_CASES_VALUES_MAX
};

static void on_whole(struct http_request *request)
{
        struct api_grading *grading = request->owner;
        struct buf body = grading->body;
        grading->body = (struct buf){ 0 };
        if (body.len > PARSE_AT_ONCE_MAX) {
                grading->parse = parse_start(engine_workers(grading->service->engine), grading->tenant, &one_kind,
                        body.bytes, body.len, false, on_parsed, grading);
                return;
        }
        grading->parse = parse_now(&one_kind, body.bytes ? body.bytes : "", body.len);
        buf_done(&body);
        on_parsed(grading);
}

void api_grade(struct http_request *request)
{
        static const struct bulk_kind lines = {
                .parse = { .object = &object_grade_request,
                        .decode = grade_job_decode,
                        .keeps_tree = problem_is_named,
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
        struct api_grading *grading = mem_alloc(sizeof *grading);
        *grading = (struct api_grading){ .next = api_state(service)->gradings, .service = service, .request = request };
        api_state(service)->gradings = grading;
        snprintf(grading->tenant, sizeof grading->tenant, "%s", request->tenant);
        trace_below(&request->trace, &grading->trace);
        buf_init(&grading->body, BODY_MAX);
        service->live++;
        request->owner = grading;
        request->gone = on_gone;
        request->take = take;
        request->whole = on_whole;
}

/* Lines of many belong to the bulk and end with the bulk. */
void api_close_gradings(struct service *service)
{
        for (struct api_grading *grading = api_state(service)->gradings, *next; grading; grading = next) {
                next = grading->next;
                grading_drop(grading);
        }
}
