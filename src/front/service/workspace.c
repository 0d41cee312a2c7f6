/* Folders of workspaces: made, locked, counted and removed; see workspace.h. */
#include "front/service/workspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "engine/output/files.h"

#define GONE_PREFIX "gone."                /* of a workspace being removed */
#define CLEAN_US 2000                      /* microseconds of a workspace_clean() */

static int open_root(const struct store *store, struct csn_error *err)
{
        int fd = -1;
        return store_folder(store, "workspaces", &fd, err) < 0 ? -err->code : fd;
}

static int open_folder(int dir_fd, const char *name)
{
        return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int make_folder(int dir_fd, const char *name)
{
        return mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST ? -1 : open_folder(dir_fd, name);
}

/* Remove the unfinished files of a dead process.  Only with the lock. */
static void empty(int dir_fd)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                fd_close(&copy);
                return;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
                if (entry->d_type != DT_DIR)
                        unlinkat(dir_fd, entry->d_name, 0);
        closedir(dir);
}

static int lock_folder(struct store *store, const char *id, struct workspace *ret, struct csn_error *err)
{
        auto_fd root = open_root(store, err);
        if (root < 0)
                return root;
        auto_fd top = make_folder(root, id);
        auto_fd dir = top < 0 ? -1 : make_folder(top, "files");
        auto_fd temp = dir < 0 ? -1 : make_folder(top, "new");
        if (temp < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of a workspace");
        if (flock(dir, LOCK_EX | LOCK_NB) < 0)
                return err_field(err, "/workspace", "the workspace is busy: another run works in it"),
                       err->code = CSN_E_BUSY, -CSN_E_BUSY;
        empty(temp);
        *ret = (struct workspace){ .store = store, .dir = take_fd(&dir), .temp = take_fd(&temp) };
        snprintf(ret->id, sizeof ret->id, "%s", id);
        return 0;
}

/* The row first: a folder without a row would be swept. */
int workspace_take(struct store *store, const char *tenant, const char *user, const char *name,
        const struct store_room *room, struct workspace *ret, struct csn_error *err)
{
        char id[WORKSPACE_ID_MAX];
        bool known;
        workspaces_id(tenant, user, name, id);
        if (workspaces_known(store, id, &known, err) < 0 ||
                (!known && (store_has_room(store, err) < 0 || store_room_check(store, tenant, room, 0, err) < 0)))
                return -err->code;
        int rc = workspaces_use(store, tenant, user, name, err);
        rc = rc < 0 ? rc : lock_folder(store, id, ret, err);
        if (rc == 0)
                snprintf(ret->tenant, sizeof ret->tenant, "%s", tenant);
        return rc;
}

void workspace_weigh(struct workspace *workspace)
{
        workspace->weight = STORE_ENTRY_BYTES + files_weigh(workspace->dir, STORE_ENTRY_BYTES);
}

static void leave(struct workspace *workspace)
{
        struct csn_error err;
        if (workspaces_note(workspace->store, workspace->id, workspace->weight, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        fd_close(&workspace->temp);
        fd_close(&workspace->dir);
}

/* A workspace left before it is weighed. */
struct leaving {
        struct job job;
        struct workspace workspace;
};

static void work_weigh(struct job *job)
{
        struct leaving *leaving = job->owner;
        workspace_weigh(&leaving->workspace);
}

static void on_weighed(struct job *job)
{
        struct leaving *leaving = job->owner;
        if (job->dropped)
                workspace_weigh(&leaving->workspace);
        leave(&leaving->workspace);
        free(leaving);
}

void workspace_leave(struct workspace *workspace, struct workers *workers)
{
        if (workspace->dir < 0)
                return;
        if (workspace->weight || !workers) {
                if (!workspace->weight)
                        workspace_weigh(workspace);
                leave(workspace);
                return;
        }
        struct leaving *leaving = mem_alloc(sizeof *leaving);
        *leaving = (struct leaving){ .job = { .work = work_weigh, .done = on_weighed, .owner = leaving },
                .workspace = *workspace };
        workspace->dir = workspace->temp = -1;
        worker_submit(workers, leaving->workspace.tenant, &leaving->job);
}

int workspace_look(struct store *store, const char *id)
{
        struct csn_error err;
        auto_fd root = open_root(store, &err);
        auto_fd top = root < 0 ? -1 : open_folder(root, id);
        return top < 0 ? -1 : open_folder(top, "files");
}

bool workspace_is_free(struct store *store, const char *id)
{
        auto_fd dir = workspace_look(store, id);
        return dir < 0 || flock(dir, LOCK_EX | LOCK_NB) == 0;
}

/* ---- removal ---- */

/* Under the lock, for otherwise a run could enter the folder between the two changes. */
static int rename_folder(struct store *store, const char *id, const char *gone, struct csn_error *err)
{
        auto_fd root = open_root(store, err);
        if (root < 0)
                return root;
        if (renameat(root, id, root, gone) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "remove a workspace");
        int rc = workspaces_forget(store, id, err);
        if (rc < 0 && renameat(root, gone, root, id) < 0)
                log_text(LOG_ERROR, "a workspace that stays has no folder: %s", strerrordesc_np(errno));
        return rc;
}

/* The number: a workspace of the same id may have been removed before, and its folder may still be there. */
int workspace_detach(struct store *store, const char *id, char ret[static WORKSPACE_GONE_MAX], struct csn_error *err)
{
        struct workspace held = { .dir = -1, .temp = -1 };
        char number[17];
        if (lock_folder(store, id, &held, err) < 0)
                return -err->code;
        hex_random(8, number);
        snprintf(ret, WORKSPACE_GONE_MAX, GONE_PREFIX "%s.%s", id, number);
        int rc = rename_folder(store, id, ret, err);
        fd_close(&held.temp);
        fd_close(&held.dir);
        return rc;
}

void workspace_remove(const struct store *store, const char *gone)
{
        struct csn_error err;
        auto_fd root = open_root(store, &err);
        if (root >= 0)
                io_remove_tree(root, gone);
}

/* ---- expiry and leftovers ---- */

/* The folder of an expired workspace. */
struct expired {
        struct job job;
        const struct store *store; /* is closed after the helper threads have ended */
        char gone[WORKSPACE_GONE_MAX];
};

static void work_remove(struct job *job)
{
        const struct expired *expired = job->owner;
        workspace_remove(expired->store, expired->gone);
}

/* The folder of a dropped job is there at the next start of a daemon. */
static void on_removed(struct job *job)
{
        free(job->owner);
}

static int expire(struct store *store, struct workers *workers, const struct store_workspace *one,
        struct csn_error *err)
{
        struct expired *expired = mem_alloc(sizeof *expired);
        *expired = (struct expired){ .job = { .work = work_remove, .done = on_removed, .owner = expired },
                .store = store };
        int rc = workspace_detach(store, one->id, expired->gone, err);
        if (rc < 0)
                free(expired);
        else
                worker_submit(workers, one->tenant, &expired->job);
        return rc;
}

int workspace_clean(struct store *store, struct workers *workers, uint64_t keep_ms, bool *ret_more,
        struct csn_error *err)
{
        uint64_t until_us = clock_us() + CLEAN_US;
        struct arena arena = { 0 };
        struct store_workspace *list;
        size_t n = 0, gone = 0;
        int rc = workspaces_old(store, time_now_ms() - (int64_t)keep_ms, &arena, &list, &n, err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
                rc = expire(store, workers, &list[i], err);
                gone += rc == 0;
                rc = rc == -CSN_E_BUSY ? 0 : rc;   /* a workspace in use is not old any more */
                if (gone && clock_us() >= until_us)
                        break;
        }
        arena_done(&arena);
        *ret_more = gone > 0;
        return rc;
}

/* Weigh the workspaces still in use at the end of the daemon before. */
static int sweep_rows(struct store *store, struct csn_error *err)
{
        size_t n = 0, noted = 1;
        int rc = 0;
        while (rc == 0 && noted) {
                struct arena arena = { 0 };
                struct store_workspace *list;
                rc = workspaces_old(store, INT64_MIN, &arena, &list, &n, err);
                noted = 0;
                for (size_t i = 0; rc == 0 && i < n; i++) {
                        struct workspace held = { .dir = -1, .temp = -1 };
                        if (lock_folder(store, list[i].id, &held, err) == 0) {
                                workspace_leave(&held, NULL);
                                noted++;
                        }
                }
                arena_done(&arena);
        }
        return rc;
}

int workspace_sweep(struct store *store, struct csn_error *err)
{
        auto_fd root = open_root(store, err);
        int copy = root < 0 ? -1 : openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = root < 0 ? root : 0;
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                fd_close(&copy);
                return rc < 0 ? rc : err_set(err, CSN_E_SYSTEM, errno, "read the folder of workspaces");
        }
        for (struct dirent *entry = readdir(dir); entry && rc == 0; entry = readdir(dir)) {
                bool known = true, left = strncmp(entry->d_name, GONE_PREFIX, strlen(GONE_PREFIX)) == 0;
                if (!left && strncmp(entry->d_name, "ws_", 3) == 0)
                        rc = workspaces_known(store, entry->d_name, &known, err);
                if (rc == 0 && (left || !known))
                        io_remove_tree(root, entry->d_name);
        }
        closedir(dir);
        return rc < 0 ? rc : sweep_rows(store, err);
}
