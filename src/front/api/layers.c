/* Layers of packages: made on request, listed, removed. */
#include "front/api/api.h"
#include "front/service/page.h"
#include "front/service/parse.h"
#include "images/images.h"
#include "layers/layers.h"
#include "model/package_spec.h"

#include <stdio.h>
#include <stdlib.h>

#define LISTED_MAX 10000 /* layers of a list; the ceiling of layer_list.layers in answers.def */

/*
 * A request for layers.  A query for a new layer waits in the loop.  The folder of layers is read by a job in a helper
 * thread, which opens the folder for itself.
 */
struct layer_work {
        struct job job;
        struct http_request *request; /* NULL: the client has gone */
        struct arena arena;
        const char *path, *tenant, *id; /* id: of a layer, in the arena */
        unsigned status;                /* of the answer */
        bool missing;                   /* there is no such layer for the tenant */
        char *text;                     /* of the answer, from http_json_text(); NULL: an empty answer */
        struct csn_error error;         /* code 0: none */
        struct run_request asked;       /* of the query */
        struct run_quota quota;         /* of the query */
        struct stored_image image;      /* of the query */
        int image_hold;                 /* keeps the image from removal, or -1 */
        struct layer_query query;
        bool is_list;
        struct service_page page;       /* of a list */
};

/* ---- work in helper threads ---- */

static struct layer_work *work_new(struct http_request *request, unsigned status)
{
        struct layer_work *work = mem_alloc(sizeof *work);
        *work = (struct layer_work){ .request = request,
                .status = status,
                .image_hold = -1,
                .query = { .holds = { -1, -1 } } };
        work->path = settings_layers_dir(service_of(request)->settings, &work->arena);
        work->tenant = arena_text(&work->arena, "%s", request->tenant);
        return work;
}

static void work_free(struct layer_work *work)
{
        layer_query_release(&work->query);
        fd_close(&work->image_hold);
        service_page_done(&work->page);
        arena_done(&work->arena);
        free(work->text);
        free(work);
}

static void on_work_done(struct job *job)
{
        struct layer_work *work = job->owner;
        struct http_request *request = work->request;
        if (request) {
                request->gone = NULL;
                if (work->missing)
                        api_no_such(request, "layer");
                else if (work->error.code)
                        http_fail(request, &work->error);
                else if (work->is_list)
                        service_page_answer(request, &work->page), work->page = (struct service_page){ 0 };
                else if (work->text)
                        http_answer_json(request, work->status, work->text), work->text = NULL;
                else
                        http_answer(request, work->status, "application/json", mem_copy("", 0), 0);
        }
        work_free(work);
}

/* A removal in progress goes on. */
static void on_work_gone(struct http_request *request)
{
        struct layer_work *work = request->owner;
        work->request = NULL;
        if (worker_cancel(engine_workers(service_of(request)->engine), &work->job))
                work_free(work);
}

static void work_begin(struct layer_work *work, void (*function)(struct job *job))
{
        struct http_request *request = work->request;
        request->owner = work;
        request->gone = on_work_gone;
        work->job = (struct job){ .work = function, .done = on_work_done, .owner = work };
        worker_submit(engine_workers(service_of(request)->engine), request->tenant, &work->job);
}

/* ---- descriptions ---- */

static bool is_own(const struct layer_work *work, const struct layer *layer)
{
        return strcmp(layer->meta.key.domain, work->tenant) == 0;
}

/* A layer of another tenant does not exist for this tenant. */
static bool may_see(const struct layer_work *work, const struct layer *layer)
{
        return !layer->fault && (!layer->meta.key.domain[0] || is_own(work, layer));
}

static json_t *describe(const struct layer_work *work, const struct layer *layer)
{
        const struct layer_meta *meta = &layer->meta;
        const char *between = strcmp(meta->key.language, "python") == 0 ? "==" : "@";
        char created[40], used[40];
        json_t *packages = json_array(), *notes = json_array();
        time_print(meta->created_ms, created, sizeof created);
        time_print(layer->used_ms, used, sizeof used);
        for (size_t i = 0; i < meta->key.lock_n; i++)
                json_array_append_new(packages,
                        json_sprintf("%s%s%s", meta->key.lock[i].name, between, meta->key.lock[i].version));
        for (size_t i = 0; i < meta->warnings_n; i++)
                json_array_append_new(notes, json_string(meta->warnings[i]));
        return json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:o, s:I, s:I, s:s, s:s}", "id", layer->id, "language",
                meta->key.language, "runtime", meta->key.runtime, "own", (int)is_own(work, layer), "pinned",
                (int)meta->pinned, "packages", packages, "notes", notes, "size_bytes", (json_int_t)meta->bytes, "files",
                (json_int_t)meta->files, "created_at", created, "used_at", used);
}

/* All layers visible to the tenant, oldest use first; in the arena. */
static int find_all(struct layer_work *work, struct layers **ret_folder, struct layer **ret, size_t *ret_n)
{
        *ret_folder = NULL;
        *ret_n = 0;
        if (layers_open(work->path, ret_folder, &work->error) < 0 ||
                layers_list(*ret_folder, &work->arena, ret, ret_n, &work->error) < 0)
                return -work->error.code;
        size_t n = 0;
        for (size_t i = 0; i < *ret_n; i++)
                if (may_see(work, &(*ret)[i]))
                        (*ret)[n++] = (*ret)[i];
        *ret_n = n;
        return 0;
}

/* NULL: there is none, or an error. */
static const struct layer *find_one(struct layer_work *work, struct layers **ret_folder)
{
        struct layer *all;
        size_t n;
        if (find_all(work, ret_folder, &all, &n) < 0)
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (strcmp(all[i].id, work->id) == 0)
                        return &all[i];
        work->missing = true;
        return NULL;
}

/* ---- routes of existing layers ---- */

/* Numbers of a list fall from member to member, and the list begins with the oldest use. */
#define OLDEST (1ULL << 62)

static uint64_t place_among_equals(const struct layer *layer)
{
        return hash_text(layer->id, strlen(layer->id)) >> 1;
}

static int compare_use(const void *first, const void *second)
{
        const struct layer *a = first, *b = second;
        if (a->used_ms != b->used_ms)
                return a->used_ms < b->used_ms ? -1 : 1;
        uint64_t x = place_among_equals(a), y = place_among_equals(b);
        return x > y ? -1 : x < y;
}

static void work_list(struct job *job)
{
        struct layer_work *work = job->owner;
        struct layers *folder;
        struct layer *all;
        size_t n;
        if (find_all(work, &folder, &all, &n) == 0) {
                qsort(all, n, sizeof *all, compare_use);
                for (size_t i = 0; i < n && !work->page.more; i++)
                        if (service_page_has(&work->page, OLDEST - (uint64_t)all[i].used_ms,
                                    place_among_equals(&all[i])))
                                service_page_add(&work->page, describe(work, &all[i]));
                work->page.tail = work->page.more ? "\"truncated\":true" : "\"truncated\":false";
        }
        layers_close(folder);
}

static void work_show(struct job *job)
{
        struct layer_work *work = job->owner;
        struct layers *folder;
        const struct layer *layer = find_one(work, &folder);
        if (layer)
                work->text = http_json_text(describe(work, layer));
        layers_close(folder);
}

static void work_find(struct job *job)
{
        struct layer_work *work = job->owner;
        struct layers *folder;
        bool found = find_one(work, &folder);
        if (found || work->missing)
                work->text = http_json_text(json_pack("{s:b, s:b}", "found", (int)found, "everywhere", 0));
        work->missing = false;
        layers_close(folder);
}

static void work_remove(struct job *job)
{
        struct layer_work *work = job->owner;
        struct layers *folder;
        const struct layer *layer = find_one(work, &folder);
        if (layer && !is_own(work, layer))
                err_set(&work->error, CSN_E_DENIED, 0, "the layer %s came from an administrator, who can remove it",
                        work->id);
        else if (layer)
                layers_remove(folder, work->id, &work->error);
        layers_close(folder);
}

void api_list_layers(struct http_request *request)
{
        struct service_page page;
        if (!service_page_begin(request, LISTED_MAX, "layers", &page))
                return;
        struct layer_work *work = work_new(request, MHD_HTTP_OK);
        work->is_list = true;
        work->page = page;
        work_begin(work, work_list);
}

static struct layer_work *work_of_part(struct http_request *request, unsigned status)
{
        struct layer_work *work = work_new(request, status);
        work->id = arena_text(&work->arena, "%s", http_part(request, 0));
        return work;
}

void api_get_layer(struct http_request *request)
{
        work_begin(work_of_part(request, MHD_HTTP_OK), work_show);
}

void api_find_layer(struct http_request *request, const char *tenant, const char *id)
{
        struct layer_work *work = work_new(request, MHD_HTTP_OK);
        work->tenant = arena_text(&work->arena, "%s", tenant);
        work->id = arena_text(&work->arena, "%s", id);
        work_begin(work, work_find);
}

void api_delete_layer(struct http_request *request)
{
        work_begin(work_of_part(request, MHD_HTTP_NO_CONTENT), work_remove);
}

/* ---- a new layer ---- */

static void refuse(struct layer_work *work, const struct csn_error *error)
{
        work->request->gone = NULL;
        http_fail(work->request, error);
        work_free(work);
}

/* The query has its answer: a layer, or the reason why no package is installed here. */
static void take_layer(struct layer_work *work)
{
        char link[80];
        struct csn_error err;
        if (!work->query.uses_n) {
                err_field(&err, "/packages", "%s",
                        work->query.warnings_n ? work->query.warnings[0].text
                                               : "the request names no package; give packages, requirements or lock");
                refuse(work, &err);
                return;
        }
        work->id = work->query.uses[0].id;
        work->status = work->query.uses[0].cached ? MHD_HTTP_OK : MHD_HTTP_CREATED;
        snprintf(link, sizeof link, "/v1/layers/%s", work->id);
        if (work->status == MHD_HTTP_CREATED)
                http_set_header(work->request, "Location", link);
        work_begin(work, work_show);
}

static void on_found(struct layer_query *query, const struct csn_error *error)
{
        struct layer_work *work = query->owner;
        struct csn_error refusal;
        if (!error) {
                take_layer(work);
                return;
        }
        layer_query_refuse(query, error, &refusal);
        refuse(work, &refusal);
}

/* The build goes on while others wait for the layer. */
static void on_query_gone(struct http_request *request)
{
        struct layer_work *work = request->owner;
        engine_forget_layers(service_of(request)->engine, &work->query);
        work_free(work);
}

static void name_packages(struct layer_work *work, const struct layer_request *given)
{
        struct run_request *asked = &work->asked;
        asked->packages = arena_alloc(&work->arena, (given->packages_n + 1) * sizeof *asked->packages);
        for (size_t i = 0; i < given->packages_n; i++)
                asked->packages[i] = arena_text(&work->arena, "%s", given->packages[i]);
        asked->packages_n = given->packages_n;
        asked->deps = deps_LOCKED;
        if (HAS(given, layer_request, requirements))
                SET(asked, run_request, requirements, arena_text(&work->arena, "%s", given->requirements));
        if (HAS(given, layer_request, lock))
                SET(asked, run_request, lock, arena_text(&work->arena, "%s", given->lock));
}

/* A layer is of one language; a run may have a layer of each. */
static int check_language(const struct layer_request *given, struct csn_error *err)
{
        const bool has_lock = HAS(given, layer_request, lock);
        const bool has_requirements = HAS(given, layer_request, requirements);
        const char *first = has_requirements ? "python" : has_lock ? "javascript" : NULL;
        if (has_lock && has_requirements)
                return err_field(err, "/lock", "lock is of Node, and requirements of Python; make a layer for each language");
        for (size_t i = 0; i < given->packages_n; i++) {
                const char *text = given->packages[i], *named = package_entry_language(&text);
                const char *language = named ? named : "python";
                if (first && strcmp(first, language) != 0)
                        return err_field(err, "/packages",
                                "\"%.60s\" is of another language than the packages before; make a layer for each language",
                                given->packages[i]);
                first = language;
        }
        return 0;
}

/* The image for programs with the layer.  A name of the host's own file system means no image. */
static int find_image(struct layer_work *work, const struct layer_request *given, struct csn_error *err)
{
        const struct settings *settings = service_of(work->request)->settings;
        if (!HAS(given, layer_request, image))
                return 0;
        for (size_t i = 0; i < choices_image.n; i++)
                if (strcmp(choices_image.values[i].text, given->image) == 0)
                        return 0;
        if (image_find(settings_images_dir(settings, &work->arena), given->image, "/image", &work->arena, &work->image,
                    &work->image_hold, err) < 0)
                return -err->code;
        work->query.image = &work->image;
        return 0;
}

void api_post_layer(struct http_request *request)
{
        struct layer_request given = { 0 };
        struct http_limit limit = { 0 };
        struct csn_error err;
        struct service *service = service_of(request);
        if (!service_decode(request, &object_layer_request, &request->arena, &given))
                return;
        if (service_has_cpu_time(request, &limit, &err) < 0) {
                service_answer_busy(request, &limit, &err);
                return;
        }
        if (check_language(&given, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        struct layer_work *work = work_new(request, MHD_HTTP_CREATED);
        name_packages(work, &given);
        work->quota = service_quota(request);
        work->query = (struct layer_query){ .request = &work->asked,
                .language = "python",
                .owner_key = work->tenant,
                .quota = &work->quota,
                .arena = &work->arena,
                .done = on_found,
                .owner = work,
                .holds = { -1, -1 } };
        request->owner = work;
        request->gone = on_query_gone;
        int rc = find_image(work, &given, &err);
        rc = rc < 0 ? rc : engine_find_layers(service->engine, &work->query, &err);
        if (rc < 0) {
                layer_query_refuse(&work->query, &err, &err);
                refuse(work, &err);
        } else if (rc > 0) {
                take_layer(work);
        }
}
