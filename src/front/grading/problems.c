/*
 * Sets of problems: stored once by PUT, then named by requests to grade as SET/ID.
 *
 * A body may have gigabytes.  The loop collects pieces of the body.  A helper thread checks and writes a piece while
 * the client waits.  After an error the rest of the body is read and dropped, and the error is the answer.
 */
#include "front/grading/state.h"

#include "engine/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#define PIECE_MAX (256 * KIB)              /* bytes of a body that a helper thread gets at once */

struct problem_put {
        struct problem_put *next;
        struct service *service;
        struct http_request *request;      /* NULL: the client has gone */
        char *tenant, *name;
        struct arena arena;
        struct problem_writer *writer;
        struct store_use use;
        struct job job;
        bool working, whole;
        bool last; /* of the job: the piece is the last one, and the index follows */
        struct buf piece;
        size_t charged;                    /* bytes of the tenant's share */
        uint64_t sets_max;
        struct store_problem_set set;
        struct csn_error error;            /* code 0: none */
};

static struct store *store_of(struct http_request *request)
{
        struct csn_error err;
        struct store *store = service_of(request)->store;
        if (store)
                return store;
        err_set(&err, CSN_E_UNSUPPORTED, 0, "this daemon stores no problem sets, for engine.http is empty");
        http_fail(request, &err);
        return NULL;
}

static int format_number(const char *format)
{
        for (size_t i = 0; format && i < choices_grade_format.n; i++)
                if (strcmp(choices_grade_format.values[i].text, format) == 0)
                        return (int)i;
        return -1;
}

static json_t *describe(const struct store_problem_set *set)
{
        char created[40];
        time_print(set->created_ms, created, sizeof created);
        return json_pack("{s:s, s:s, s:I, s:I, s:s}", "name", set->name, "format", set->format, "problems",
                (json_int_t)set->problems, "size_bytes", (json_int_t)set->size, "created_at", created);
}

/* ---- PUT /v1/problems/{set} ---- */

static void put_free(struct problem_put *put)
{
        struct service *service = put->service;
        if (put->request) {
                put->request->gone = NULL;
                put->request->owner = NULL;
        }
        for (struct problem_put **at = &grading_state(service)->puts; *at; at = &(*at)->next)
                if (*at == put) {
                        *at = put->next;
                        break;
                }
        problem_writer_free(put->writer);
        buf_done(&put->piece);
        arena_done(&put->arena);
        service->live--;
        if (service_is_idle(service))
                service->idle(service->owner);
        free(put);
}

static void work(struct job *job)
{
        struct problem_put *put = job->owner;
        int rc = problem_writer_add(put->writer, put->piece.bytes ? put->piece.bytes : "", put->piece.len, &put->error);
        if (rc == 0 && put->last)
                problem_writer_end(put->writer, &put->set, &put->error);
}

static void submit(struct problem_put *put)
{
        put->working = true;
        put->last = put->whole;
        worker_submit(engine_workers(put->service->engine), put->tenant, &put->job);
}

static void answer(struct problem_put *put)
{
        struct http_request *request = put->request;
        bool replaced = false;
        if (!put->error.code &&
                problem_sets_put(problem_writer_incoming(put->writer), &put->set, put->sets_max, &replaced,
                        &put->error) < 0)
                replaced = false;
        struct csn_error error = put->error;
        json_t *json = error.code ? NULL : describe(&put->set);
        put_free(put);
        if (error.code) {
                service_fail_room(request, &error);
                return;
        }
        http_json(request, replaced ? MHD_HTTP_OK : MHD_HTTP_CREATED, json);
}

/* The memory of the writer counts as body of the tenant. */
static void charge(struct problem_put *put)
{
        size_t size = problem_writer_memory(put->writer);
        if (size <= put->charged || put->error.code)
                return;
        http_charge(put->request, SHARE_BODIES, size - put->charged, &put->error);
        put->charged = size;
}

static void on_worked(struct job *job)
{
        struct problem_put *put = job->owner;
        put->working = false;
        put->piece.len = 0;
        if (!put->request || job->dropped) {
                put_free(put);
                return;
        }
        charge(put);
        if (put->last || (put->whole && put->error.code))
                answer(put);
        else if (put->whole)
                submit(put);
        else
                http_more(put->request);
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct problem_put *put = request->owner;
        if (put->working)
                return 0;
        if (put->error.code)
                return len;
        size_t n = min_u64(len, PIECE_MAX - put->piece.len);
        buf_add(&put->piece, bytes, n);
        if (put->piece.len == PIECE_MAX)
                submit(put);
        return n;
}

static void on_whole(struct http_request *request)
{
        struct problem_put *put = request->owner;
        put->whole = true;
        if (put->working)
                return;
        if (put->error.code)
                answer(put);
        else
                submit(put);
}

static void on_gone(struct http_request *request)
{
        struct problem_put *put = request->owner;
        put->request = NULL;
        if (!put->working)
                put_free(put);
}

static int check_put(struct http_request *request, struct problem_limits *ret, struct csn_error *err)
{
        const struct problems_settings *settings = &service_of(request)->settings->problems;
        const char *format = http_query(request, "format"), *name = http_part(request, 0);
        if (!problem_is_set_name(name))
                return err_field(err, "/set",
                        "\"%.80s\" is no name of a problem set; a name has 1 to %d letters, digits, '.', '_' and '-', and "
                        "begins with a letter or a digit",
                        name, PROBLEM_NAME_MAX);
        *ret = (struct problem_limits){ .format = format ? format_number(format) : grade_format_CAISSON,
                .bytes_max = settings->set_bytes,
                .count_max = settings->set_count };
        if (ret->format >= 0)
                return 0;
        char allowed[600];
        model_allowed(model_field(&object_grade_request, "format"), allowed, sizeof allowed);
        return err_field(err, "/format", "format is \"%.40s\"; it has to be %.400s", format, allowed);
}

void problem_sets_handle_put(struct http_request *request)
{
        struct service *service = service_of(request);
        struct store *store = store_of(request);
        struct store_room room = service_room(request);
        struct problem_limits limits;
        struct store_use use;
        struct csn_error err;
        if (!store)
                return;
        room.file_max = 0; /* problems.set_bytes bounds a set */
        if (check_put(request, &limits, &err) < 0 ||
                store_use_open(store, request->tenant, &room, &use, &err) < 0) {
                service_fail_room(request, &err);
                return;
        }
        struct problem_put *put = mem_alloc(sizeof *put);
        *put = (struct problem_put){ .next = grading_state(service)->puts,
                .service = service,
                .request = request,
                .use = use,
                .sets_max = service->settings->problems.tenant_sets };
        grading_state(service)->puts = put;
        put->tenant = arena_text(&put->arena, "%s", request->tenant);
        put->name = arena_text(&put->arena, "%s", http_part(request, 0));
        put->set = (struct store_problem_set){ .tenant = put->tenant,
                .name = put->name,
                .format = arena_text(&put->arena, "%s", choices_grade_format.values[limits.format].text) };
        put->job = (struct job){ .work = work, .done = on_worked, .owner = put };
        put->writer = problem_writer_new(store, put->tenant, &put->use, &limits);
        buf_init(&put->piece, PIECE_MAX);
        service->live++;
        request->owner = put;
        request->gone = on_gone;
        request->take = take;
        request->whole = on_whole;
}

/* ---- GET, DELETE ---- */

static void no_such(struct http_request *request)
{
        struct csn_error err;
        err_field(&err, "", "the problem set does not exist or was removed");
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
}

void problem_sets_handle_list(struct http_request *request)
{
        struct store *store = store_of(request);
        struct store_problem_set *list;
        struct csn_error err;
        size_t n;
        if (!store)
                return;
        if (problem_sets_of(store, request->tenant, &request->arena, &list, &n, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        json_t *array = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(array, describe(&list[i]));
        http_json(request, MHD_HTTP_OK, json_pack("{s:o}", "problem_sets", array));
}

void problem_sets_handle_get(struct http_request *request)
{
        struct store *store = store_of(request);
        struct store_problem_set set;
        struct csn_error err;
        bool there = false;
        if (!store)
                return;
        if (problem_sets_find(store, request->tenant, http_part(request, 0), &request->arena, &set, &there, &err) < 0)
                http_fail(request, &err);
        else if (there)
                http_json(request, MHD_HTTP_OK, describe(&set));
        else
                no_such(request);
}

void problem_sets_handle_delete(struct http_request *request)
{
        struct store *store = store_of(request);
        struct csn_error err;
        bool there = false;
        if (!store)
                return;
        if (problem_sets_forget(store, request->tenant, http_part(request, 0), &there, &err) < 0)
                http_fail(request, &err);
        else if (there)
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
        else
                no_such(request);
}

void problem_sets_stop(struct service *service)
{
        for (struct problem_put *put = grading_state(service)->puts, *next; put; put = next) {
                next = put->next;
                if (put->working)
                        worker_wait(engine_workers(service->engine), &put->job);
                put->working = false;
                put_free(put);
        }
}
