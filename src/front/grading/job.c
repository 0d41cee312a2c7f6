/*
 * A grading of a request: prepared by a helper thread if the request names a stored problem or comes as JSON, then run
 * by the grader, with rows of the audit and spans for its sandboxes.
 */
#include "front/grading/gradings.h"
#include "front/grading/state.h"
#include "front/service/json_body.h"

#include <stdio.h>

/* A request in the making, which a helper thread decodes. */
struct preparation {
        struct job job;
        struct grade_job *owner;           /* NULL: nobody waits */
        json_t *json;                      /* the members of the request */
        int fd;                            /* the set of the problem; -1: the request names none */
        struct store_problem_set set;
        const char *name, *id;             /* of set and problem */
        struct arena texts;                /* of the three members above */
        struct arena arena;
        struct grade_request given;        /* in `arena` */
        struct csn_error error;            /* code 0: `given` is good */
};

struct grade_job {
        struct grade_job *next;
        struct service *service;
        struct preparation *preparation;   /* or NULL */
        struct grading *grading;           /* NULL: the request is prepared */
        bool cancelled;
        struct run_quota quota;
        char tenant[80], key[20], request_id[65];
        struct trace trace;
        const struct grade_job_events *events;
        void *owner;
};

static struct grader *grader_of(struct service *service)
{
        struct grading_state *state = grading_state(service);
        if (!state->grader)
                state->grader = grader_open(service->engine, service->settings);
        return state->grader;
}

/* ---- requests ---- */

int grade_job_decode(json_t *json, struct arena *arena, void *ret, struct csn_error *err)
{
        const struct grade_request *request = ret;
        if (grading_decode(json, arena, ret, err) < 0)
                return -err->code;
        if (HAS(request, grade_request, code) || HAS(request, grade_request, completion))
                return 0;
        return err_field(err, "/code", "code is missing; give it, or completion, the answer of a model");
}

json_t *grade_body_load(const char *text, size_t len, struct csn_error *err)
{
        json_error_t where;
        if (model_is_deeper(text, len, JSON_BODY_DEPTH_MAX)) {
                err_field(err, "", "the JSON is nested deeper than %d levels", JSON_BODY_DEPTH_MAX);
                return NULL;
        }
        if (model_has_many_parts(text, len, PARSE_CASES_VALUES_MAX)) {
                err_field(err, "", "the JSON has more than %d values and names", PARSE_CASES_VALUES_MAX);
                return NULL;
        }
        json_t *json = model_load(text, len, &where);
        if (!json)
                err_field(err, "", "not JSON: %s (line %d, column %d)", where.text, where.line, where.column);
        else if (!json_is_object(json))
                err_field(err, "", "the body is no object");
        if (json_is_object(json))
                return json;
        json_decref(json);
        return NULL;
}

/* The submission of the request takes the place of one in the problem; and an old name must not be beside the new. */
static void drop_replaced(json_t *problem, const json_t *request)
{
        if (json_object_get(request, "code") || json_object_get(request, "completion")) {
                json_object_del(problem, "code");
                json_object_del(problem, "completion");
        }
        if (json_object_get(request, "compare") && json_is_string(json_object_get(problem, "checker")))
                json_object_del(problem, "checker");
}

/* The request becomes the problem with the members of the request. */
static int add_problem(struct preparation *preparation)
{
        struct csn_error *err = &preparation->error;
        json_t *problem = problem_read(preparation->fd, &preparation->set, preparation->id, err);
        if (!problem && err->code)
                return -err->code;
        if (!problem)
                return err_field(err, "/problem", "the set %s has no problem \"%.80s\"; GET /v1/problems/%s has its size",
                        preparation->name, preparation->id, preparation->name);
        drop_replaced(problem, preparation->json);
        if (!json_object_get(problem, "format"))
                json_object_set_new(problem, "format", json_string(preparation->set.format));
        json_object_del(preparation->json, "problem");
        json_object_update(problem, preparation->json);
        json_decref(preparation->json);
        preparation->json = problem;
        return 0;
}

static void work(struct job *job)
{
        struct preparation *preparation = job->owner;
        if (preparation->fd < 0 || add_problem(preparation) == 0)
                grade_job_decode(preparation->json, &preparation->arena, &preparation->given, &preparation->error);
        json_decref(preparation->json);
        preparation->json = NULL;
}

static void preparation_free(struct preparation *preparation)
{
        json_decref(preparation->json);
        fd_close(&preparation->fd);
        arena_done(&preparation->texts);
        arena_done(&preparation->arena);
        free(preparation);
}

/* Find the set of the problem that the request names.  Errors: CSN_E_INPUT with the field /problem. */
static int find_problem(struct preparation *preparation, const struct http_request *request, struct csn_error *err)
{
        const json_t *problem = json_object_get(preparation->json, "problem");
        struct store *store = service_of(request)->store;
        bool there = false;
        if (!problem_is_named(preparation->json))
                return 0;
        if (!json_is_string(problem))
                return err_field(err, "/problem", "problem has to be a text, SET/ID");
        if (problem_split(json_string_value(problem), &preparation->texts, &preparation->name, &preparation->id,
                    err) < 0)
                return -err->code;
        if (store &&
                (problem_sets_find(store, request->tenant, preparation->name, &preparation->texts, &preparation->set,
                         &there, err) < 0 ||
                        (there && problem_sets_open(store, &preparation->set, &preparation->fd, &there, err) < 0)))
                return -err->code;
        return there ? 0
                     : err_field(err, "/problem",
                               "there is no problem set \"%s\"; store one by PUT /v1/problems/%s", preparation->name,
                               preparation->name);
}

/* ---- the end ---- */

static struct log_context context_of(const struct grade_job *job)
{
        return (struct log_context){ .request = job->request_id, .trace = job->trace.id, .owner = job->tenant };
}

static int on_begins(void *owner, struct run *run, struct csn_error *err)
{
        const struct grade_job *job = owner;
        const struct log_context context = context_of(job);
        return audit_begin(job->service->store, &context, job->key, run, NULL, false, err);
}

static void on_ran(void *owner, struct run *run, const struct run_result *result)
{
        const struct grade_job *job = owner;
        const struct log_context context = context_of(job);
        audit_run(job->service->store, &context, job->key, run, result);
        trace_run(job->service, &job->trace, run, result);
}

/* Perhaps in a helper thread. */
static void on_encode(void *owner, const struct grade_result *result)
{
        struct grade_job *job = owner;
        if (job->events->encode)
                job->events->encode(job->owner, grading_request(job->grading), result);
}

void grade_job_free(struct grade_job *job)
{
        if (!job)
                return;
        for (struct grade_job **at = &grading_state(job->service)->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        grading_free(job->grading);
        if (job->preparation)
                job->preparation->owner = NULL; /* on_prepared() frees it */
        free(job);
}

static void on_done(void *owner, const struct grade_result *result)
{
        struct grade_job *job = owner;
        job->events->done(job->owner, result, NULL);
        grade_job_free(job);
}

static const struct grading_events events = {
        .begins = on_begins, .ran = on_ran, .encode = on_encode, .done = on_done
};

/* ---- the beginning ---- */

static void begin(struct grade_job *job)
{
        grading_start(job->grading, false, &events, job);
        if (job->cancelled)
                grading_cancel(job->grading);
}

static void new_grading(struct grade_job *job)
{
        job->grading = grading_new(grader_of(job->service));
        grading_set_owner(job->grading, job->tenant, &job->quota);
}

static void on_prepared(struct job *helper)
{
        struct preparation *preparation = helper->owner;
        struct grade_job *job = preparation->owner;
        struct csn_error error = preparation->error;
        if (job) {
                job->preparation = NULL;
                if (!error.code) {
                        new_grading(job);
                        *grading_request(job->grading) = preparation->given;
                        arena_join(grading_arena(job->grading), &preparation->arena);
                }
        }
        bool dropped = helper->dropped;
        preparation_free(preparation);
        if (!job || dropped)
                return;
        if (!error.code) {
                begin(job);
                return;
        }
        job->events->done(job->owner, NULL, &error);
        grade_job_free(job);
}

static struct grade_job *job_new(struct http_request *request, const struct trace *trace,
        const struct grade_job_events *events_, void *owner)
{
        struct service *service = service_of(request);
        struct grading_state *state = grading_state(service);
        struct grade_job *job = mem_alloc(sizeof *job);
        *job = (struct grade_job){ .next = state->jobs,
                .service = service,
                .quota = service_quota(request),
                .trace = *trace,
                .events = events_,
                .owner = owner };
        state->jobs = job;
        snprintf(job->tenant, sizeof job->tenant, "%s", request->tenant);
        snprintf(job->key, sizeof job->key, "%s", service_key(request) ? service_key(request)->id : "");
        snprintf(job->request_id, sizeof job->request_id, "%s", request->id);
        return job;
}

int grade_job_start(struct http_request *request, const struct trace *trace, json_t *json,
        const struct grade_job_events *events_, void *owner, struct grade_job **ret, struct http_limit *ret_limit,
        struct csn_error *err)
{
        struct preparation *preparation = mem_alloc(sizeof *preparation);
        *preparation = (struct preparation){ .json = json, .fd = -1 };
        preparation->job = (struct job){ .work = work, .done = on_prepared, .owner = preparation };
        if (service_has_cpu_time(request, ret_limit, err) < 0 || find_problem(preparation, request, err) < 0) {
                preparation_free(preparation);
                return -err->code;
        }
        struct grade_job *job = job_new(request, trace, events_, owner);
        job->preparation = preparation;
        preparation->owner = job;
        worker_submit(engine_workers(job->service->engine), job->tenant, &preparation->job);
        *ret = job;
        return 0;
}

int grade_job_start_parsed(struct http_request *request, const struct trace *trace, struct parse *parse,
        const struct grade_job_events *events_, void *owner, struct grade_job **ret, struct http_limit *ret_limit,
        struct csn_error *err)
{
        json_t *tree = parse->tree;
        parse->tree = NULL;
        if (tree)
                return grade_job_start(request, trace, tree, events_, owner, ret, ret_limit, err);
        if (service_has_cpu_time(request, ret_limit, err) < 0)
                return -err->code;
        struct grade_job *job = job_new(request, trace, events_, owner);
        new_grading(job);
        parse_take(parse, grading_arena(job->grading), grading_request(job->grading));
        begin(job);
        *ret = job;
        return 0;
}

void grade_job_cancel(struct grade_job *job)
{
        job->cancelled = true;
        if (job->grading)
                grading_cancel(job->grading);
}

void grade_jobs_cancel(struct service *service)
{
        for (struct grade_job *job = grading_state(service)->jobs; job; job = job->next)
                grade_job_cancel(job);
}

void grade_jobs_close(struct service *service)
{
        struct grading_state *state = grading_state(service);
        for (struct grade_job *job = state->jobs, *next; job; job = next) {
                next = job->next;
                grade_job_free(job);
        }
        grader_close(state->grader);
        state->grader = NULL;
}

void grade_answer_masked(struct http_request *request, char *text)
{
        http_set_header(request, "Retry-After", "1");
        http_answer_json(request, MHD_HTTP_SERVICE_UNAVAILABLE, text);
}
