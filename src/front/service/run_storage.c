/*
 * Files outliving a run, for the engine (struct run_storage), and volumes (struct volume_source); and the removal of
 * expired files and of leftovers of crashes.
 */
#include "front/service/service.h"
#include "front/service/workspace.h"

#include <stdio.h>

#include "engine/output/files.h"

/* A file with its content written; in the run's arena. */
struct kept {
        struct kept *next;
        struct incoming *incoming;
        struct store_file file;
        char *url;
};

/* In the run's arena. */
struct storage {
        struct store *store;
        struct engine *engine;
        struct store_room room;
        struct store_use use;
        struct csn_error full;         /* why nothing can be kept; code 0: no reason */
        struct kept *first, **last;
        uint64_t keep_ms;
        bool in_session;               /* see run_storage_set_session() */
        char tenant[TENANT_MAX + 1];
        struct workspace workspace;
};

/* ---- for a run ---- */

static int open_content(const struct storage *storage, const char *id, struct arena *arena, struct store_file *ret,
        int *ret_fd, struct csn_error *err)
{
        bool there;
        if (files_content(storage->store, id, storage->tenant, arena, ret, ret_fd, &there, err) < 0)
                return -err->code;
        return there ? 0 : err_field(err, "/files", "file \"%.60s\" does not exist or has expired", id);
}

/* The content is opened, too: a row without content is no file. */
static int on_find(void *owner, const char *id, struct arena *arena, struct launch_kept *ret, struct csn_error *err)
{
        struct store_file file;
        int opened = -1;
        if (open_content(owner, id, arena, &file, &opened, err) < 0)
                return -err->code;
        fd_close(&opened);
        *ret = (struct launch_kept){ .name = file.name, .size = file.size };
        memcpy(ret->sha256, file.sha256, sizeof ret->sha256);
        return 0;
}

static int on_open(void *owner, const char *id, int *ret_fd, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_file file;
        int rc = open_content(owner, id, &arena, &file, ret_fd, err);
        arena_done(&arena);
        return rc;
}

static void on_begin(void *owner)
{
        struct storage *storage = owner;
        storage->full = (struct csn_error){ 0 };
        if (store_use_open(storage->store, storage->tenant, &storage->room, &storage->use, &storage->full) == 0)
                storage->full.code = 0;
}

/* ---- in a helper thread, between on_begin() and on_publish() ---- */

static int copy_in(struct incoming *incoming, int fd, struct csn_error *err)
{
        char bytes[64 * KIB];
        for (;;) {
                ssize_t n = read(fd, bytes, sizeof bytes);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "read a file of the run");
                if (n == 0)
                        return 0;
                if (incoming_add(incoming, bytes, (size_t)n, err) < 0)
                        return -err->code;
        }
}

/* ---- names with folders ---- */

char *stored_name_of_path(struct arena *arena, const char *path)
{
        char *name = arena_alloc(arena, 3 * strlen(path) + 1), *to = name;
        for (const char *at = path; *at; at++) {
                const char *code = *at == '/' ? "%2F" : *at == '%' ? "%25" : NULL;
                size_t len = code ? strlen(code) : 1;
                memcpy(to, code ? code : at, len);
                to += len;
        }
        *to = 0;
        return name;
}

char *stored_path_of_name(struct arena *arena, const char *name)
{
        char *path = arena_text(arena, "%s", name), *to = path;
        for (const char *at = name; *at; to++) {
                bool is_slash = strncmp(at, "%2F", 3) == 0, is_percent = strncmp(at, "%25", 3) == 0;
                *to = is_slash ? '/' : is_percent ? '%' : *at;
                at += is_slash || is_percent ? 3 : 1;
        }
        *to = 0;
        return path;
}

static int on_keep(void *owner, const char *run_id, const char *user, const char *name, const char *mime, int fd,
        struct arena *arena, char **ret_url, struct csn_error *err)
{
        struct storage *storage = owner;
        struct incoming *incoming = NULL;
        if (storage->full.code) {
                *err = storage->full;
                return -err->code;
        }
        if (incoming_open_apart(storage->store, storage->tenant, &storage->use, &incoming, err) < 0)
                return -err->code;
        if (copy_in(incoming, fd, err) < 0 || incoming_seal(incoming, err) < 0) {
                incoming_close(incoming);
                return -err->code;
        }
        const char *slash = strrchr(name, '/');
        struct kept *kept = arena_alloc(arena, sizeof *kept);
        *kept = (struct kept){ .incoming = incoming,
                .file = { .name = storage->in_session ? stored_name_of_path(arena, name)
                                                      : arena_text(arena, "%s", slash ? slash + 1 : name),
                        .mime = arena_text(arena, "%s", mime),
                        .run = arena_text(arena, "%s", run_id),
                        .user = arena_text(arena, "%s", user),
                        .expires_ms = time_now_ms() + (int64_t)storage->keep_ms } };
        storage->in_session ? files_make_compact_id(kept->file.id) : files_make_id(kept->file.id);
        kept->url = arena_text(arena, "sandbox:/v1/files/%s", kept->file.id);
        *storage->last = kept;
        storage->last = &kept->next;
        *ret_url = kept->url;
        return 0;
}

static void on_weigh(void *owner)
{
        struct storage *storage = owner;
        workspace_weigh(&storage->workspace);
}

/* ---- in the loop again ---- */

static struct kept *take_kept(struct storage *storage)
{
        struct kept *kept = storage->first;
        if (kept && !(storage->first = kept->next))
                storage->last = &storage->first;
        return kept;
}

static int on_publish(void *owner, const char **ret_url, struct csn_error *err)
{
        struct kept *kept = take_kept(owner);
        if (!kept)
                return 0;
        *ret_url = kept->url;
        int rc = files_add(kept->incoming, &kept->file, err);
        incoming_close(kept->incoming);
        return rc < 0 ? rc : 1;
}

static void on_drop(void *owner)
{
        for (struct kept *kept; (kept = take_kept(owner));)
                incoming_close(kept->incoming);
}

static int on_enter(void *owner, const char *user, const char *name, int *ret_dir, int *ret_temp, struct csn_error *err)
{
        struct storage *storage = owner;
        if (workspace_take(storage->store, storage->tenant, user, name, &storage->room, &storage->workspace, err) < 0)
                return -err->code;
        *ret_dir = storage->workspace.dir;
        *ret_temp = storage->workspace.temp;
        return 0;
}

static uint64_t on_room(void *owner, uint64_t *ret_each)
{
        const struct storage *storage = owner;
        struct csn_error err;
        uint64_t left;
        *ret_each = STORE_ENTRY_BYTES;
        if (store_room_left(storage->store, storage->tenant, &storage->room, &left, &err) == 0)
                return left;
        log_text(LOG_ERROR, "%s", err.text);
        return 0;
}

static void on_leave(void *owner)
{
        struct storage *storage = owner;
        workspace_leave(&storage->workspace, engine_workers(storage->engine));
}

static struct storage *set_storage(const struct http_request *request, struct run *run)
{
        static const struct run_storage functions = { .find = on_find,
                .open = on_open,
                .begin = on_begin,
                .keep = on_keep,
                .publish = on_publish,
                .drop = on_drop,
                .enter = on_enter,
                .room = on_room,
                .weigh = on_weigh,
                .leave = on_leave };
        const struct service *service = service_of(request);
        const struct store_key *key = service_key(request);
        if (!service->store || (key && !(key->scopes & (SCOPE_FILES | SCOPE_ADMIN))))
                return NULL;
        struct storage *storage = arena_alloc(run_arena(run), sizeof *storage);
        *storage = (struct storage){ .store = service->store,
                .engine = service->engine,
                .room = service_room(request),
                .keep_ms = service->settings->engine.files_keep_ms,
                .workspace = { .dir = -1, .temp = -1 } };
        storage->last = &storage->first;
        snprintf(storage->tenant, sizeof storage->tenant, "%s", request->tenant);
        run_set_storage(run, &functions, storage);
        return storage;
}

void run_storage_set(const struct http_request *request, struct run *run)
{
        set_storage(request, run);
}

bool run_storage_set_session(const struct http_request *request, struct run *run)
{
        struct storage *storage = set_storage(request, run);
        if (storage)
                storage->in_session = true;
        return storage;
}

int run_storage_is_free(const struct http_request *request, const struct run_request *given, struct csn_error *err)
{
        char id[WORKSPACE_ID_MAX];
        if (!HAS(given, run_request, workspace) || !service_of(request)->store)
                return 0;
        if (store_has_room(service_of(request)->store, err) < 0)
                return -err->code;
        workspaces_id(request->tenant, given->user ? given->user : "", given->workspace, id);
        if (workspace_is_free(service_of(request)->store, id))
                return 0;
        err_field(err, "/workspace", "the workspace is busy: another run works in it");
        err->code = CSN_E_BUSY;
        return -CSN_E_BUSY;
}

/* ---- for all ---- */

void run_storage_sweep(struct store *store)
{
        struct csn_error err;
        size_t gone = 0;
        if (files_sweep(store, &gone, &err) < 0 || workspace_sweep(store, &err) < 0)
                log_text(LOG_ERROR, "what a daemon that died may have left is not removed: %s", err.text);
        if (gone)
                log_text(LOG_INFO, "%zu files that nobody knows were removed", gone);
}

bool run_storage_clean_files(struct store *store)
{
        struct csn_error err;
        bool more = false;
        if (files_clean(store, &more, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        return more;
}

bool run_storage_clean_workspaces(struct store *store, struct workers *workers, const struct settings *settings)
{
        struct csn_error err;
        bool more = false;
        if (workspace_clean(store, workers, settings->engine.workspace_keep_ms, &more, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        return more;
}

/* ---- volumes, which src/front/api/volumes.c makes and removes ---- */

void volume_order_of(const struct store_volume *volume, uint64_t bytes, struct wire_volume_order *ret)
{
        char high[17];
        snprintf(high, sizeof high, "%.16s", volume->id);
        *ret = (struct wire_volume_order){ .high = strtoull(high, NULL, 16),
                .low = strtoull(volume->id + 16, NULL, 16),
                .bytes = bytes };
}

static int on_find_volume(void *owner, const char *owner_key, struct wire_volume *volume, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_volume found;
        bool there = false;
        int rc = volumes_find(owner, owner_key, volume->name, &arena, &found, &there, err);
        if (rc == 0 && !there)
                rc = err_field(err, "/volumes",
                        "there is no volume \"%s\"; make it with POST /v1/volumes or caisson volume create", volume->name);
        if (rc == 0) {
                struct wire_volume_order order;
                volume_order_of(&found, 0, &order);
                volume->high = order.high;
                volume->low = order.low;
        }
        arena_done(&arena);
        return rc;
}

/* A volume which a dead daemon began to make or to remove. */
struct leftover {
        struct volume_query query;
        struct store *store;
        char id[VOLUME_ID_MAX];
};

static void on_leftover_removed(struct volume_query *query, const struct csn_error *error)
{
        struct leftover *leftover = query->owner;
        struct csn_error err;
        if (error)
                log_text(LOG_WARN, "a volume that a daemon began to make or remove stays: %s", error->text);
        else if (volumes_forget(leftover->store, leftover->id, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        free(leftover);
}

static void remove_leftover(struct engine *engine, struct store *store, const struct store_volume *volume)
{
        struct csn_error err;
        struct leftover *leftover = mem_alloc(sizeof *leftover);
        *leftover = (struct leftover){ .store = store, .query = { .done = on_leftover_removed, .owner = leftover } };
        memcpy(leftover->id, volume->id, sizeof leftover->id);
        volume_order_of(volume, 0, &leftover->query.order);
        if (engine_order_volume(engine, &leftover->query, &err) < 0)
                on_leftover_removed(&leftover->query, &err);
}

void service_open_volumes(struct engine *engine, struct store *store)
{
        static const struct volume_source source = { .find = on_find_volume };
        struct arena arena = { 0 };
        struct store_volume *list;
        struct csn_error err;
        size_t n;
        engine_set_volumes(engine, &source, store);
        if (volumes_unsettled(store, &arena, &list, &n, &err) < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                n = 0;
        }
        for (size_t i = 0; i < n; i++)
                remove_leftover(engine, store, &list[i]);
        arena_done(&arena);
}
