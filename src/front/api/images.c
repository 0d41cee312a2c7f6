/* Images, listed and described.  They are made and removed on the command line, by an administrator. */
#include "front/api/api.h"
#include "front/service/page.h"
#include "images/images.h"

#define LISTED_MAX 10000 /* images of a list; the ceiling of image_list.images in answers.def */

/* A GET request; a helper thread reads the answer from the folder of images. */
struct image_work {
        struct job job;
        struct http_request *request; /* NULL: the client has gone */
        struct arena arena;
        const char *path, *name; /* name: of one image, or NULL for all */
        bool missing;
        char *text; /* of the answer, from http_json_text() */
        struct csn_error error;
        struct service_page page;      /* of a list */
};

static void work_free(struct image_work *work)
{
        service_page_done(&work->page);
        arena_done(&work->arena);
        free(work->text);
        free(work);
}

static void on_done(struct job *job)
{
        struct image_work *work = job->owner;
        struct http_request *request = work->request;
        if (request) {
                request->gone = NULL;
                if (work->missing)
                        api_no_such(request, "image");
                else if (work->error.code)
                        http_fail(request, &work->error);
                else if (work->name)
                        http_answer_json(request, MHD_HTTP_OK, work->text), work->text = NULL;
                else
                        service_page_answer(request, &work->page), work->page = (struct service_page){ 0 };
        }
        work_free(work);
}

static void on_gone(struct http_request *request)
{
        struct image_work *work = request->owner;
        work->request = NULL;
        if (worker_cancel(engine_workers(service_of(request)->engine), &work->job))
                work_free(work);
}

static json_t *describe(const struct stored_image *image)
{
        char created[40];
        json_t *interpreters = json_array(), *libraries = json_array();
        time_print(image->created_ms, created, sizeof created);
        for (int i = 0; i < IMAGE_LANGUAGES; i++)
                if (image->interpreters[i].path[0])
                        json_array_append_new(interpreters,
                                json_pack("{s:s, s:s, s:s}", "name", image_language_name((enum image_language)i),
                                        "path", image->interpreters[i].path, "version",
                                        image->interpreters[i].version));
        for (size_t i = 0; i < image->libraries_n; i++)
                json_array_append_new(libraries, json_string(image->libraries[i]));
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o}", "name", image->name, "id", image->id, "kind",
                image->kind, "digest", image->digest, "created_at", created, "size_bytes", (json_int_t)image->bytes,
                "files", (json_int_t)image->files, "interpreters", interpreters, "libraries", libraries);
}

/*
 * The answer leaves out an image with a damaged description; caisson image list shows it.  A cursor is a place in the
 * order of names: images are changed by an administrator only, and rarely.
 */
static void work_read(struct job *job)
{
        struct image_work *work = job->owner;
        struct stored_image *all;
        size_t n;
        if (images_list(work->path, &work->arena, &all, &n, &work->error) < 0)
                return;
        work->missing = work->name;
        for (size_t i = 0; i < n && i < LISTED_MAX && !work->page.more; i++) {
                if (all[i].fault || (work->name && strcmp(work->name, all[i].name) != 0))
                        continue;
                if (work->name) {
                        work->text = http_json_text(describe(&all[i]));
                        work->missing = false;
                        return;
                }
                if (service_page_has(&work->page, LISTED_MAX - i, 0))
                        service_page_add(&work->page, describe(&all[i]));
        }
}

static void begin(struct http_request *request, const char *name)
{
        struct service_page page = { 0 };
        if (!name && !service_page_begin(request, LISTED_MAX, "images", &page))
                return;
        struct image_work *work = mem_alloc(sizeof *work);
        *work = (struct image_work){ .request = request, .page = page };
        work->path = settings_images_dir(service_of(request)->settings, &work->arena);
        work->name = name ? arena_text(&work->arena, "%s", name) : NULL;
        request->owner = work;
        request->gone = on_gone;
        work->job = (struct job){ .work = work_read, .done = on_done, .owner = work };
        worker_submit(engine_workers(service_of(request)->engine), request->tenant, &work->job);
}

void api_list_images(struct http_request *request)
{
        begin(request, NULL);
}

void api_get_image(struct http_request *request)
{
        begin(request, http_part(request, 0));
}
