/* Persistent folders of users: lists, and access to single files.  run_storage.c has the use by runs. */
#include "front/api/api.h"
#include "front/service/page.h"
#include "front/service/workspace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/output/files.h"
#include "wire/wire.h"

#define ENTRIES_MAX 10000                  /* of a list */
#define LIST_MS 10000

struct upload {
        struct http_request *request;
        struct incoming *incoming;
        const char *user, *name, *path;
        struct csn_error error;            /* code 0: none */
};

/*
 * Work for a request in a helper thread, since a workspace has as many files as its disk may have: a list, or a change
 * of one file, after which the workspace is weighed.
 */
struct work {
        struct job job;
        struct http_request *request; /* NULL: the client has gone */
        void (*answer)(struct work *work);
        const struct store *store;
        struct arena arena;
        const char *path;
        int dir;                       /* -1: of a list, no folder */
        struct workspace held;         /* of a change */
        struct incoming *incoming;     /* of an upload */
        uint64_t bytes_max;            /* of the workspace with the upload */
        char gone[WORKSPACE_GONE_MAX]; /* of the folder to remove */
        bool was_there;                /* the file to remove */
        char *text;                    /* of the answer, from http_json_text() */
        struct csn_error error;        /* code 0: none */
};

/* ---- finding ---- */

static const char *user_of(const struct http_request *request)
{
        const char *user = http_query(request, "user");
        return user ? user : "";
}

/*
 * The path has the name, or an id from the list, for names with a slash; the user has to be right in both cases.
 * False: there is no such workspace; another tenant's workspace does not exist for this tenant.
 */
static bool find(struct http_request *request, struct store_workspace *ret, struct csn_error *err)
{
        struct store *store = service_of(request)->store;
        char id[WORKSPACE_ID_MAX];
        bool there = false;
        *err = (struct csn_error){ 0 };
        workspaces_id(request->tenant, user_of(request), http_part(request, 0), id);
        if (workspaces_find(store, id, request->tenant, &request->arena, ret, &there, err) < 0)
                return false;
        if (!there &&
                workspaces_find(store, http_part(request, 0), request->tenant, &request->arena, ret, &there, err) < 0)
                return false;
        return there && strcmp(ret->user, user_of(request)) == 0;
}

/* Find the workspace of the path.  False: the request is answered; what: the word for the missing object. */
static bool find_or_answer(struct http_request *request, const char *what, struct store_workspace *ret)
{
        struct csn_error err;
        if (find(request, ret, &err))
                return true;
        if (err.code)
                http_fail(request, &err);
        else
                api_no_such(request, what);
        return false;
}

static int check_text(const char *field, const char *text, size_t len, size_t max, struct csn_error *err)
{
        if (!text || strlen(text) != len || len > max || !utf8_valid(text, len))
                return err_field(err, field, "%s is a text of at most %zu bytes, without NUL", field, max);
        return 0;
}

/* The file of the query.  NULL: missing or invalid, and the request is answered. */
static const char *path_of(struct http_request *request)
{
        struct csn_error err;
        size_t len;
        const char *path = http_query_bytes(request, "path", &len);
        if (!path || wire_name_check(path, len, &err) < 0) {
                struct csn_error field;
                err_field(&field, "path", "%s",
                        path ? err.text : "path is missing; give ?path=, the file's name in the workspace");
                http_fail(request, &field);
                return NULL;
        }
        return path;
}

/* ---- work in helper threads ---- */

static struct work *work_new(struct http_request *request, void (*answer)(struct work *work))
{
        struct work *work = mem_alloc(sizeof *work);
        *work = (struct work){ .request = request,
                .answer = answer,
                .store = service_of(request)->store,
                .dir = -1,
                .held = { .dir = -1, .temp = -1 } };
        return work;
}

static void work_free(struct work *work, struct workers *workers)
{
        workspace_leave(&work->held, workers);
        incoming_close(work->incoming);
        fd_close(&work->dir);
        arena_done(&work->arena);
        free(work->text);
        free(work);
}

/* The workers are used only if the request still exists, because this may be the end of the workers. */
static void on_work_done(struct job *job)
{
        struct work *work = job->owner;
        struct http_request *request = work->request;
        if (request) {
                request->gone = NULL;
                workspace_leave(&work->held, engine_workers(service_of(request)->engine));
                work->answer(work);
        }
        work_free(work, NULL);
}

/* A change in progress is completed, and its workspace left afterwards; a renamed folder is always removed. */
static void on_work_gone(struct http_request *request)
{
        struct work *work = request->owner;
        struct workers *workers = engine_workers(service_of(request)->engine);
        work->request = NULL;
        if (!work->gone[0] && worker_cancel(workers, &work->job))
                work_free(work, workers);
}

static void work_begin(struct work *work, void (*function)(struct job *job))
{
        struct http_request *request = work->request;
        request->owner = work;
        request->gone = on_work_gone;
        work->job = (struct job){ .work = function, .done = on_work_done, .owner = work };
        worker_submit(engine_workers(service_of(request)->engine), request->tenant, &work->job);
}

/* ---- lists ---- */

static json_t *workspace_json(const struct service *service, const struct store_workspace *one)
{
        char created[40], used[40], expires[40];
        time_print(one->created_ms, created, sizeof created);
        time_print(one->used_ms, used, sizeof used);
        time_print(one->used_ms + (int64_t)service->settings->engine.workspace_keep_ms, expires, sizeof expires);
        return json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:s}", "id", one->id, "name", one->name, "user", one->user,
                "stored_bytes", (json_int_t)one->bytes, "created_at", created, "used_at", used, "expires_at", expires);
}

void api_list_workspaces(struct http_request *request)
{
        struct store_workspace *all;
        struct service_page page;
        struct csn_error err;
        size_t n;
        if (!service_page_begin(request, SERVICE_PAGE_MAX, "workspaces", &page))
                return;
        const struct workspaces_filter filter = { .tenant = request->tenant,
                .user = http_query(request, "user"),
                .below_ms = (int64_t)page.below,
                .below_number = (int64_t)page.below_second,
                .n = page.most + 1 };
        if (workspaces_of(service_of(request)->store, &filter, &request->arena, &all, &n, &err) < 0) {
                service_page_done(&page);
                http_fail(request, &err);
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (service_page_has(&page, (uint64_t)all[i].used_ms, (uint64_t)all[i].number))
                        service_page_add(&page, workspace_json(service_of(request), &all[i]));
        service_page_answer(request, &page);
}

static json_t *file_json(const char *name, const struct stat *st)
{
        char modified[40];
        time_print((int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000, modified, sizeof modified);
        return json_pack("{s:s, s:I, s:s}", "name", name, "size_bytes", (json_int_t)st->st_size, "modified_at",
                modified);
}

static void work_list(struct job *job)
{
        const struct file_rules rules = { .files_max = ENTRIES_MAX, .time_ms = LIST_MS };
        struct work *work = job->owner;
        struct file_list found = { 0 };
        struct stat st;
        if (work->dir >= 0 && files_list(work->dir, &rules, &work->arena, &found, &work->error) < 0)
                return;
        json_t *list = json_array();
        for (size_t i = 0; i < found.n; i++)
                if (files_stat(work->dir, found.files[i].name, &st) == 0)
                        json_array_append_new(list, file_json(found.files[i].name, &st));
        work->text = http_json_text(json_pack("{s:o, s:b}", "files", list, "truncated", (int)found.truncated));
}

static void answer_text(struct work *work, unsigned status)
{
        if (work->error.code)
                service_fail_room(work->request, &work->error);
        else
                http_answer_json(work->request, status, work->text), work->text = NULL;
}

static void answer_list(struct work *work)
{
        answer_text(work, MHD_HTTP_OK);
}

void api_workspace_files(struct http_request *request)
{
        struct store_workspace one;
        if (!find_or_answer(request, "workspace", &one))
                return;
        struct work *work = work_new(request, answer_list);
        work->dir = workspace_look(service_of(request)->store, one.id);
        work_begin(work, work_list);
}

/* ---- one file ---- */

void api_workspace_get(struct http_request *request)
{
        const char *path = path_of(request);
        struct store_workspace one;
        struct stat st;
        if (!path || !find_or_answer(request, "file", &one))
                return;
        auto_fd dir = workspace_look(service_of(request)->store, one.id);
        auto_fd fd = dir < 0 ? -1 : files_open_input(dir, path);
        const char *slash = strrchr(path, '/');
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                api_no_such(request, "file");
        else
                api_send_file(request, take_fd(&fd), slash ? slash + 1 : path);
}

static void answer_gone(struct http_request *request)
{
        http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

static void work_delete(struct job *job)
{
        struct work *work = job->owner;
        work->was_there = files_remove(work->held.dir, work->path) == 0;
        workspace_weigh(&work->held);
}

static void answer_deleted(struct work *work)
{
        if (work->was_there)
                answer_gone(work->request);
        else
                api_no_such(work->request, "file");
}

void api_workspace_delete(struct http_request *request)
{
        const char *path = path_of(request);
        const struct store_room room = service_room(request);
        struct store_workspace one;
        struct workspace held;
        struct csn_error err;
        if (!path || !find_or_answer(request, "file", &one))
                return;
        if (workspace_take(service_of(request)->store, request->tenant, one.user, one.name, &room, &held, &err) < 0) {
                service_fail_room(request, &err);
                return;
        }
        struct work *work = work_new(request, answer_deleted);
        work->held = held;
        work->path = arena_text(&work->arena, "%s", path);
        work_begin(work, work_delete);
}

/* After the rename no client sees the workspace; the answer waits until its space is free, too. */
static void work_remove(struct job *job)
{
        const struct work *work = job->owner;
        workspace_remove(work->store, work->gone);
}

static void answer_removed(struct work *work)
{
        answer_gone(work->request);
}

void api_delete_workspace(struct http_request *request)
{
        struct store_workspace one;
        struct csn_error err;
        if (!find_or_answer(request, "workspace", &one))
                return;
        struct work *work = work_new(request, answer_removed);
        if (workspace_detach(service_of(request)->store, one.id, work->gone, &err) < 0) {
                work_free(work, NULL);
                http_fail(request, &err);
        } else {
                work_begin(work, work_remove);
        }
}

/* ---- uploads ---- */

static void upload_free(struct upload *upload)
{
        incoming_close(upload->incoming);
        free(upload);
}

static void on_gone(struct http_request *request)
{
        upload_free(request->owner);
}

static size_t on_bytes(struct http_request *request, const char *bytes, size_t len)
{
        struct upload *upload = request->owner;
        if (!upload->error.code && incoming_add(upload->incoming, bytes, len, &upload->error) < 0) {
                incoming_close(upload->incoming);   /* received bytes take room from other files */
                upload->incoming = NULL;
        }
        return len;
}

/* As in runs: the file appears whole or not at all, and replaces an older file. */
static int place(struct work *work, struct csn_error *err)
{
        const char *slash = strrchr(work->path, '/');
        struct stat st;
        auto_fd dir = files_make_folders(work->held.dir, work->path, err);
        if (dir < 0 && err->sys == ENOTDIR)
                return err_field(err, "path", "%.200s: a part of it is a file", work->path);
        if (dir < 0)
                return dir;
        if (incoming_move(work->incoming, dir, slash ? slash + 1 : work->path) < 0)
                return err_field(err, "path", "%.200s: %s", work->path, strerrordesc_np(errno));
        if (files_stat(work->held.dir, work->path, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "look at a file");
        work->text = http_json_text(file_json(work->path, &st));
        return 0;
}

/* No workspace is larger than ceilings.disk_bytes, the largest disk of a run. */
static int check_size(const struct work *work, struct csn_error *err)
{
        uint64_t size = incoming_size(work->incoming), max = work->bytes_max, has = files_weigh(work->held.dir, 0);
        if (has <= max && size <= max - has)
                return 0;
        err_set(err, CSN_E_BUSY, 0,
                "the workspace has %" PRIu64 " bytes and would have %" PRIu64 " more; ceilings.disk_bytes is %" PRIu64,
                has, size, max);
        err->sys = EDQUOT;
        return -err->code;
}

static void work_put(struct job *job)
{
        struct work *work = job->owner;
        struct csn_error err;
        if (check_size(work, &err) < 0 || place(work, &err) < 0)
                work->error = err;
        workspace_weigh(&work->held);
}

static void answer_put(struct work *work)
{
        answer_text(work, MHD_HTTP_CREATED);
}

/* The bytes of the upload are counted as coming in. */
static int take(struct upload *upload, struct workspace *ret, struct csn_error *err)
{
        const struct http_request *request = upload->request;
        const struct store_room room = service_room(request);
        struct store *store = service_of(request)->store;
        if (store_room_check(store, request->tenant, &room, 0, err) < 0)
                return -err->code;
        return workspace_take(store, request->tenant, upload->user, upload->name, &room, ret, err);
}

static void on_whole(struct http_request *request)
{
        struct upload *upload = request->owner;
        struct workspace held;
        request->gone = NULL;
        if (upload->error.code || take(upload, &held, &upload->error) < 0) {
                service_fail_room(request, &upload->error);
                upload_free(upload);
                return;
        }
        struct work *work = work_new(request, answer_put);
        work->held = held;
        work->incoming = upload->incoming;
        work->path = arena_text(&work->arena, "%s", upload->path);
        work->bytes_max = service_of(request)->settings->ceilings.disk_bytes;
        free(upload);
        work_begin(work, work_put);
}

static int begin_upload(struct upload *upload, struct csn_error *err)
{
        struct http_request *request = upload->request;
        struct store *store = service_of(request)->store;
        const struct store_room room = service_room(request);
        const char *length = http_header(request, "Content-Length");
        size_t user_len;
        const char *user = http_query_bytes(request, "user", &user_len);
        struct store_workspace one;
        upload->user = user_of(request);
        upload->name = http_part(request, 0);
        if (find(request, &one, err))
                upload->name = one.name;
        else if (err->code)
                return -err->code;
        if ((user && check_text("user", user, user_len, WORKSPACE_USER_MAX, err) < 0) ||
            check_text("name", upload->name, strlen(upload->name), WORKSPACE_NAME_MAX, err) < 0)
                return -err->code;
        uint64_t size = length ? strtoull(length, NULL, 10) : 0;
        if (store_room_check(store, request->tenant, &room, size, err) < 0) {
                request->early = size > HTTP_BODY_MAX;
                return -err->code;
        }
        return incoming_open(store, request->tenant, &room, &upload->incoming, err);
}

void api_workspace_put(struct http_request *request)
{
        const char *path = path_of(request);
        struct csn_error err;
        if (!path)
                return;
        struct upload *upload = mem_alloc(sizeof *upload);
        *upload = (struct upload){ .request = request, .path = path };
        if (begin_upload(upload, &err) < 0) {
                upload_free(upload);
                service_fail_room(request, &err);
                return;
        }
        request->owner = upload;
        request->gone = on_gone;
        request->take = on_bytes;
        request->whole = on_whole;
}
