/* Volumes: made, listed, removed. */
#include "front/api/api.h"

#include "wire/wire.h"

#include <inttypes.h>
#include <stdio.h>

/* An order to the supervisor, carried out to its end, also when the client has gone. */
struct volume_work {
        struct volume_query query;
        struct http_request *request;      /* NULL: the client has gone */
        struct store *store;
        struct store_volume volume;
        struct arena arena;
        struct engine *engine;
        struct timer retry;
        unsigned tries;
};

#define REMOVE_TRIES 20                    /* an ended program still holds its volume for some milliseconds */
#define REMOVE_RETRY_US 25000

static json_t *describe(const struct store_volume *volume)
{
        char created[40];
        time_print(volume->created_ms, created, sizeof created);
        return json_pack("{s:s, s:I, s:o, s:s}", "name", volume->name, "size_bytes", (json_int_t)volume->bytes, "path",
                json_sprintf("/mnt/%s", volume->name), "created_at", created);
}

static struct store *store_of(struct http_request *request)
{
        struct csn_error err;
        struct store *store = service_of(request)->store;
        if (store)
                return store;
        err_set(&err, CSN_E_UNSUPPORTED, 0, "this daemon has no volumes, for engine.http is empty");
        http_fail(request, &err);
        return NULL;
}

static void conflict(struct http_request *request, int code, const char *text)
{
        struct csn_error err;
        err_set(&err, code, 0, "%s", text);
        http_problem(request, MHD_HTTP_CONFLICT, &err);
}

/* ---- orders ---- */

static void on_gone(struct http_request *request)
{
        struct volume_work *work = request->owner;
        work->request = NULL;
}

static void note_failure(int rc, const struct csn_error *err)
{
        if (rc < 0)
                log_text(LOG_ERROR, "%s", err->text);
}

static void finish(struct volume_work *work)
{
        if (work->request)
                work->request->gone = NULL;
}

static void begin(struct http_request *request, struct volume_work *work, uint64_t bytes,
        void (*done)(struct volume_query *query, const struct csn_error *error))
{
        struct csn_error err;
        work->request = request;
        work->engine = service_of(request)->engine;
        work->query.done = done;
        work->query.owner = work;
        volume_order_of(&work->volume, bytes, &work->query.order);
        request->owner = work;
        request->gone = on_gone;
        if (engine_order_volume(service_of(request)->engine, &work->query, &err) < 0)
                done(&work->query, &err);
}

static struct volume_work *work_new(struct store *store)
{
        struct volume_work *work = mem_alloc(sizeof *work);
        *work = (struct volume_work){ .store = store };
        return work;
}

static void work_free(struct volume_work *work)
{
        arena_done(&work->arena);
        free(work);
}

/* ---- a new volume ---- */

/* After REMOVE_TRIES failures the row stays, and the next daemon removes the volume. */
static void on_undone(struct volume_query *query, const struct csn_error *error)
{
        struct volume_work *work = query->owner;
        struct csn_error err;
        if (error && ++work->tries < REMOVE_TRIES) {
                loop_timer(engine_loop(work->engine), &work->retry, REMOVE_RETRY_US);
                return;
        }
        note_failure(error ? -error->code : volumes_forget(work->store, work->volume.id, &err), error ? error : &err);
        work_free(work);
}

static void on_undo(struct timer *timer)
{
        struct volume_work *work = timer->owner;
        struct csn_error err;
        work->query.done = on_undone;
        volume_order_of(&work->volume, 0, &work->query.order);
        if (engine_order_volume(work->engine, &work->query, &err) < 0)
                on_undone(&work->query, &err);
}

/* The supervisor may have been lost after making the file.  From a timer: the engine is just reporting the loss. */
static void undo(struct volume_work *work)
{
        work->request = NULL;
        work->retry = (struct timer){ .fired = on_undo, .owner = work };
        loop_timer(engine_loop(work->engine), &work->retry, 0);
}

static void on_made(struct volume_query *query, const struct csn_error *error)
{
        struct volume_work *work = query->owner;
        struct http_request *request = work->request;
        struct csn_error err;
        finish(work);
        /* A supervisor undoes a failed order before its answer; after the loss of a supervisor the state is unknown. */
        bool unknown = error && error->code == CSN_E_BUSY;
        int rc = !error ? volumes_set_state(work->store, work->volume.id, VOLUME_READY, &err)
                : unknown ? 0
                          : volumes_forget(work->store, work->volume.id, &err);
        note_failure(rc, &err);
        if (request && (error || rc < 0)) {
                service_fail_room(request, error ? error : &err);
        } else if (request) {
                char link[96];
                snprintf(link, sizeof link, "/v1/volumes/%s", work->volume.name);
                http_set_header(request, "Location", link);
                http_answer_json(request, MHD_HTTP_CREATED, http_json_text(describe(&work->volume)));
        }
        if (unknown || rc < 0)
                undo(work);
        else
                work_free(work);
}

static int check_request(const struct http_request *request, const struct volume_request *given, struct csn_error *err)
{
        uint64_t most = service_of(request)->settings->volumes.max_bytes;
        struct csn_error why;
        if (wire_volume_name_check(given->name, &why) < 0)
                return err_field(err, "/name", "\"%.80s\": %s", given->name, why.text);
        if (given->size_bytes > most)
                return err_field(err, "/size_bytes",
                        "size_bytes is %" PRIu64 "; the administrator allows %" PRIu64 " (volumes.max_bytes)",
                        given->size_bytes, most);
        return 0;
}

void api_post_volume(struct http_request *request)
{
        const struct volumes_settings *settings = &service_of(request)->settings->volumes;
        const struct volumes_room room = { .tenant_max = settings->tenant_bytes, .all_max = settings->total_bytes };
        struct store *store = store_of(request);
        struct volume_request given = { 0 };
        struct csn_error err;
        bool known;
        if (!store || !service_decode(request, &object_volume_request, &request->arena, &given))
                return;
        model_defaults(&object_volume_request, &given);
        if (check_request(request, &given, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        struct volume_work *work = work_new(store);
        work->volume.tenant = arena_text(&work->arena, "%s", request->tenant);
        work->volume.name = arena_text(&work->arena, "%s", given.name);
        work->volume.bytes = given.size_bytes;
        int rc = volumes_add(store, &work->volume, &room, &known, &err);
        if (rc == 0 && !known) {
                begin(request, work, given.size_bytes, on_made);
                return;
        }
        if (rc < 0)
                service_fail_room(request, &err);
        else
                conflict(request, CSN_E_INPUT, "there is a volume of this name; take another name, or remove that volume");
        work_free(work);
}

/* ---- existing volumes ---- */

void api_list_volumes(struct http_request *request)
{
        struct store *store = store_of(request);
        struct store_volume *list;
        struct csn_error err;
        size_t n;
        if (!store)
                return;
        if (volumes_of(store, request->tenant, &request->arena, &list, &n, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        json_t *array = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(array, describe(&list[i]));
        http_answer_json(request, MHD_HTTP_OK, http_json_text(json_pack("{s:o}", "volumes", array)));
}

/* False: the request is answered, in the same way where the volume is another tenant's. */
static bool find(struct http_request *request, struct store *store, struct arena *arena, struct store_volume *ret)
{
        struct csn_error err;
        bool there = false;
        if (volumes_find(store, request->tenant, http_part(request, 0), arena, ret, &there, &err) < 0)
                http_fail(request, &err);
        else if (!there)
                api_no_such(request, "volume");
        return there;
}

void api_get_volume(struct http_request *request)
{
        struct store *store = store_of(request);
        struct store_volume volume;
        if (store && find(request, store, &request->arena, &volume))
                http_answer_json(request, MHD_HTTP_OK, http_json_text(describe(&volume)));
}

static void on_removed(struct volume_query *query, const struct csn_error *error);

static void on_retry(struct timer *timer)
{
        struct volume_work *work = timer->owner;
        struct csn_error err;
        if (engine_order_volume(work->engine, &work->query, &err) < 0)
                on_removed(&work->query, &err);
}

/* A volume in use stays, and is there again. */
static void on_removed(struct volume_query *query, const struct csn_error *error)
{
        struct volume_work *work = query->owner;
        struct http_request *request = work->request;
        struct csn_error err;
        if (error && error->code == CSN_E_BUSY && ++work->tries < REMOVE_TRIES) {
                work->retry = (struct timer){ .fired = on_retry, .owner = work };
                loop_timer(engine_loop(work->engine), &work->retry, REMOVE_RETRY_US);
                return;
        }
        finish(work);
        int rc = error ? volumes_set_state(work->store, work->volume.id, VOLUME_READY, &err)
                       : volumes_forget(work->store, work->volume.id, &err);
        note_failure(rc, &err);
        if (request && error && error->code == CSN_E_BUSY)
                conflict(request, CSN_E_BUSY, error->text);
        else if (request && (error || rc < 0))
                http_fail(request, error ? error : &err);
        else if (request)
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
        work_free(work);
}

void api_delete_volume(struct http_request *request)
{
        struct store *store = store_of(request);
        struct csn_error err;
        if (!store)
                return;
        struct volume_work *work = work_new(store);
        if (!find(request, store, &work->arena, &work->volume)) {
                work_free(work);
                return;
        }
        /* From here on no new program finds the volume. */
        if (volumes_set_state(store, work->volume.id, VOLUME_REMOVING, &err) < 0) {
                http_fail(request, &err);
                work_free(work);
                return;
        }
        begin(request, work, 0, on_removed);
}
