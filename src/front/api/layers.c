/* Layers of packages: those of the tenant and the administrator's, made before a run asks for them, and removed. */
#include "front/api/api.h"

#include <stdio.h>

#include "layers/layers.h"

/*
 * Work for a request in a helper thread: a folder may have many layers, and a layer many files.  The daemon closes the
 * folder of layers after the last helper thread.
 */
struct work {
        struct job job;
        struct http_request *request; /* NULL: the client has gone */
        struct layers *layers;
        struct arena arena;
        char *tenant;
        const char *id;                /* NULL: all layers */
        char *text;                    /* of the answer, from http_json_text(); NULL: no such layer */
        bool removes, removed;
        struct csn_error error;        /* code 0: none */
};

static json_t *texts(const char *const *list, size_t n)
{
        json_t *json = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(json, json_string(list[i]));
        return json;
}

static json_t *describe(const struct layer *layer)
{
        const struct layer_key *key = &layer->meta.key;
        bool python = strcmp(key->language, "python") == 0;
        char created[40], used[40], one[600];
        json_t *packages = json_array();
        time_print(layer->meta.created_ms, created, sizeof created);
        time_print(layer->used_ms, used, sizeof used);
        for (size_t i = 0; i < key->lock_n; i++) {
                snprintf(one, sizeof one, "%s%s%s", key->lock[i].name, python ? "==" : "@", key->lock[i].version);
                json_array_append_new(packages, json_string(one));
        }
        return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:I, s:I, s:b, s:b, s:s, s:s}", "id", layer->id, "language",
                key->language, "runtime", key->runtime, "packages", packages, "modules",
                texts(layer->meta.modules, layer->meta.modules_n), "warnings",
                texts(layer->meta.warnings, layer->meta.warnings_n), "size_bytes", (json_int_t)layer->meta.bytes, "files",
                (json_int_t)layer->meta.files, "pinned", (int)layer->meta.pinned, "shared", (int)!key->domain[0],
                "created_at", created, "used_at", used);
}

/* A layer of another tenant is not there. */
static bool is_visible(const struct work *work, const struct layer *layer)
{
        const char *domain = layer->meta.key.domain;
        return !layer->fault && (!domain[0] || strcmp(domain, work->tenant) == 0);
}

static void work_list(struct job *job)
{
        struct work *work = job->owner;
        struct layer *all;
        size_t n;
        if (layers_list(work->layers, &work->arena, &all, &n, &work->error) < 0)
                return;
        json_t *list = json_array();
        for (size_t i = n; i-- > 0;)
                if (is_visible(work, &all[i]))
                        json_array_append_new(list, describe(&all[i]));
        work->text = http_json_text(json_pack("{s:o}", "layers", list));
}

/* The layer of the path; an administrator's layer is removed by the command line alone. */
static void work_one(struct job *job)
{
        struct work *work = job->owner;
        struct layer layer;
        uint8_t bytes[LAYER_ID_BYTES];
        if (!layer_id_parse(work->id, bytes) ||
                layers_find(work->layers, work->id, &work->arena, &layer, NULL, &work->error) <= 0 ||
                !is_visible(work, &layer))
                return;
        if (!work->removes)
                work->text = http_json_text(describe(&layer));
        else if (layer.meta.key.domain[0])
                work->removed = layers_remove(work->layers, work->id, &work->error) == 0;
}

static void answer(struct work *work)
{
        if (work->error.code)
                http_fail(work->request, &work->error);
        else if (work->text)
                http_answer_json(work->request, MHD_HTTP_OK, work->text), work->text = NULL;
        else if (work->removed)
                http_answer(work->request, MHD_HTTP_NO_CONTENT, NULL, NULL, 0);
        else
                api_no_such(work->request, "layer");
}

static void work_free(struct work *work)
{
        arena_done(&work->arena);
        free(work->text);
        free(work);
}

static void on_work_done(struct job *job)
{
        struct work *work = job->owner;
        if (work->request) {
                work->request->gone = NULL;
                answer(work);
        }
        work_free(work);
}

static void on_work_gone(struct http_request *request)
{
        struct work *work = request->owner;
        work->request = NULL;
        if (worker_cancel(engine_workers(service_of(request)->engine), &work->job))
                work_free(work);
}

static void begin(struct http_request *request, bool removes, void (*function)(struct job *job))
{
        struct service *service = service_of(request);
        struct work *work = mem_alloc(sizeof *work);
        *work = (struct work){ .request = request, .layers = service->layers, .removes = removes };
        work->job = (struct job){ .work = function, .done = on_work_done, .owner = work };
        work->tenant = arena_text(&work->arena, "%s", request->tenant);
        if (function == work_one)
                work->id = arena_text(&work->arena, "%.80s", http_part(request, 0));
        request->owner = work;
        request->gone = on_work_gone;
        worker_submit(engine_workers(service->engine), request->tenant, &work->job);
}

void api_list_layers(struct http_request *request)
{
        begin(request, false, work_list);
}

void api_get_layer(struct http_request *request)
{
        begin(request, false, work_one);
}

void api_delete_layer(struct http_request *request)
{
        begin(request, true, work_one);
}

/* ---- making a layer ---- */

#define WAIT_MS 120000                 /* the default of wait_ms in fields.def */

struct making {
        struct http_request *request;
        struct arena arena;
        struct layer_request given;
        struct run_request run;        /* the packages, as a run names them */
        struct layer_query query;
        struct timer timer;            /* wait_ms */
};

static void making_free(struct making *making)
{
        struct service *service = service_of(making->request);
        making->request->gone = NULL;
        loop_untimer(service->loop, &making->timer);
        layer_query_release(&making->query);
        arena_done(&making->arena);
        free(making);
}

static void answer_made(struct making *making)
{
        struct http_request *request = making->request;
        const struct layer_use *use = making->query.uses_n ? &making->query.uses[0] : NULL;
        json_t *packages = json_array();
        for (size_t i = 0; use && i < use->packages_n; i++)
                json_array_append_new(packages, json_string(use->packages[i]));
        json_t *json = json_pack("{s:s, s:s, s:b, s:I, s:o}", "id", use ? use->id : "", "language", making->given.language,
                "cached", (int)(use && use->cached), "wait_ms", use ? (json_int_t)use->wait_ms : 0, "packages", packages);
        bool made = use != NULL;
        struct csn_error err;
        if (!made)
                err_field(&err, "/packages", "%s",
                        making->query.warnings_n ? making->query.warnings[0].text : "no package is named");
        making_free(making);
        if (made)
                http_json(request, MHD_HTTP_OK, json);
        else
                http_fail(request, &err);
        if (!made)
                json_decref(json);
}

static void answer_failed(struct making *making, const struct csn_error *error)
{
        struct http_request *request = making->request;
        struct csn_error copy = *error;
        bool refused = making->query.problem != NULL;
        making_free(making);
        if (refused)
                http_problem(request, MHD_HTTP_UNPROCESSABLE_CONTENT, &copy);
        else
                http_fail(request, &copy);
}

static void on_found(struct layer_query *query, const struct csn_error *error)
{
        struct making *making = query->owner;
        if (error)
                answer_failed(making, error);
        else
                answer_made(making);
}

static void on_making_gone(struct http_request *request)
{
        struct making *making = request->owner;
        engine_forget_layers(service_of(request)->engine, &making->query);
        making_free(making);
}

/* The build goes on; the same request waits for the same build. */
static void on_making_late(struct timer *timer)
{
        struct making *making = timer->owner;
        struct http_request *request = making->request;
        struct csn_error err;
        engine_forget_layers(service_of(request)->engine, &making->query);
        making_free(making);
        err_set(&err, CSN_E_BUSY, 0, "the layer is being built; send the same request again to wait for it");
        http_fail(request, &err);
}

void api_post_layer(struct http_request *request)
{
        struct service *service = service_of(request);
        struct making *making = mem_alloc(sizeof *making);
        struct csn_error err;
        *making = (struct making){ .request = request, .query = { .holds = { -1, -1 } } };
        if (!service_decode(request, &object_layer_request, &making->arena, &making->given)) {
                arena_done(&making->arena);
                free(making);
                return;
        }
        if (!HAS(&making->given, layer_request, language))
                making->given.language = arena_text(&making->arena, "python");
        if (!HAS(&making->given, layer_request, wait_ms))
                making->given.wait_ms = WAIT_MS;
        making->run.packages = making->given.packages;
        making->run.packages_n = making->given.packages_n;
        making->run.deps = deps_LOCKED;
        if (HAS(&making->given, layer_request, requirements))
                SET(&making->run, run_request, requirements, making->given.requirements);
        making->query = (struct layer_query){ .request = &making->run, .language = making->given.language,
                .owner_key = request->tenant, .arena = &making->arena, .done = on_found, .owner = making,
                .holds = { -1, -1 } };
        making->timer = (struct timer){ .fired = on_making_late, .owner = making };
        int rc = engine_find_layers(service->engine, &making->query, &err);
        if (rc < 0) {
                answer_failed(making, &err);
        } else if (rc > 0) {
                answer_made(making);
        } else {
                request->owner = making;
                request->gone = on_making_gone;
                loop_timer(service->loop, &making->timer, making->given.wait_ms * 1000);
        }
}
