/*
 * Files that outlive a run, as the engine wants them (struct run_storage); and what is left of them by time and by
 * crashes.
 */
#include "front/service/service.h"
#include "front/service/workspace.h"

#include <stdio.h>

#include "engine/output/files.h"

/* In the run's arena. */
struct storage {
        struct store *store;
        struct store_room room;
        uint64_t keep_ms;
        char tenant[TENANT_MAX + 1];
        struct workspace workspace;
};

/* ---- for a run ---- */

static int on_open(void *owner, const char *id, struct arena *arena, char **ret_name, int *ret_fd,
        struct csn_error *err)
{
        const struct storage *storage = owner;
        struct store_file file;
        bool there;
        if (files_content(storage->store, id, storage->tenant, arena, &file, ret_fd, &there, err) < 0)
                return -err->code;
        if (!there)
                return err_field(err, "/files", "there is no file \"%.60s\", or no more", id);
        *ret_name = file.name;
        return 0;
}

static int copy_in(struct incoming *incoming, int fd, struct csn_error *err)
{
        static char bytes[256 * KIB];
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

static int on_keep(void *owner, const char *run_id, const char *user, const char *name, const char *mime, int fd,
        struct arena *arena, char **ret_url, struct csn_error *err)
{
        const struct storage *storage = owner;
        struct incoming *incoming = NULL;
        struct store_file file = { .name = arena_text(arena, "%s", name),
                .mime = arena_text(arena, "%s", mime),
                .run = arena_text(arena, "%s", run_id),
                .user = arena_text(arena, "%s", user),
                .expires_ms = time_now_ms() + (int64_t)storage->keep_ms };
        int rc = incoming_open(storage->store, storage->tenant, &storage->room, &incoming, err);
        rc = rc < 0 ? rc : copy_in(incoming, fd, err);
        rc = rc < 0 ? rc : files_add(incoming, &file, err);
        incoming_close(incoming);
        if (rc == 0)
                *ret_url = arena_text(arena, "sandbox:/v1/files/%s", file.id);
        return rc;
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
        workspace_leave(&storage->workspace);
}

void run_storage_set(const struct http_request *request, struct run *run)
{
        static const struct run_storage functions = { on_open, on_keep, on_enter, on_room, on_leave };
        const struct service *service = service_of(request);
        const struct store_key *key = service_key(request);
        if (!service->store || (key && !(key->scopes & (SCOPE_FILES | SCOPE_ADMIN))))
                return;
        struct storage *storage = arena_alloc(run_arena(run), sizeof *storage);
        *storage = (struct storage){ .store = service->store,
                .room = service_room(request),
                .keep_ms = service->settings->engine.files_keep_ms,
                .workspace = { .dir = -1, .temp = -1 } };
        snprintf(storage->tenant, sizeof storage->tenant, "%s", request->tenant);
        run_set_storage(run, &functions, storage);
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

bool run_storage_clean(struct store *store, const struct settings *settings)
{
        struct csn_error err;
        bool files = false, folders = false;
        if (files_clean(store, &files, &err) < 0 ||
                workspace_clean(store, settings->engine.workspace_keep_ms, &folders, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        return files || folders;
}
