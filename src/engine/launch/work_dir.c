/*
 * The work folder of a run on this host, if the request names one: its files are the inputs, and new or changed files
 * are written back when everything inside is dead.  Two runs in one folder would mix their files, so each holds a lock
 * on the folder.  A workspace is a work folder of the storage.
 */
#include "engine/launch/launch_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

static int make_folder(struct launch *launch, struct csn_error *err)
{
        char *state = settings_state_dir(launch->settings, &launch->arena);
        char *path = arena_text(&launch->arena, "%s/runs/%s", state, launch->id);
        if (io_make_folders(path) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the folder %s", path);
        launch_warn(launch, "work_dir_missing",
                "the folder %s does not exist; %s is used instead and kept for the time of "
                "engine.retention_ms",
                launch->request.work_dir, path);
        launch->work_dir = path;
        return 0;
}

static int enter_workspace(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        if (launch->storage->enter(launch->storage_owner, request->user ? request->user : "", request->workspace,
                    &launch->work_fd, &launch->work_temp_fd, err) < 0)
                return -err->code;
        launch->entered = true;
        return 0;
}

int work_open(struct launch *launch, struct csn_error *err)
{
        if (HAS(&launch->request, run_request, workspace))
                return enter_workspace(launch, err);
        if (!HAS(&launch->request, run_request, work_dir))
                return 0;
        launch->work_dir = realpath(launch->request.work_dir, NULL);
        if (launch->work_dir) {
                char *path = arena_text(&launch->arena, "%s", launch->work_dir);
                free((void *)(uintptr_t)launch->work_dir);
                launch->work_dir = path;
        } else if (errno != ENOENT) {
                return err_field(err, "/work_dir", "%.200s: %s", launch->request.work_dir, strerrordesc_np(errno));
        } else if (make_folder(launch, err) < 0) {
                return -err->code;
        }
        launch->work_fd = open(launch->work_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (launch->work_fd < 0)
                return err_field(err, "/work_dir", "%.200s: %s", launch->work_dir, strerrordesc_np(errno));
        if (flock(launch->work_fd, LOCK_EX | LOCK_NB) < 0)
                return err_field(err, "/work_dir", "work_dir busy: another run works in %.200s", launch->work_dir);
        return 0;
}

void launch_close_work(struct launch *launch)
{
        if (launch->entered) {
                launch->storage->leave(launch->storage_owner);
                launch->entered = false;
                launch->work_fd = launch->work_temp_fd = -1;
        }
        if (launch->storage && launch->storage->drop)
                launch->storage->drop(launch->storage_owner);
        fd_close(&launch->work_fd);   /* gives the lock back */
        fd_close(&launch->image_hold);
}

size_t launch_collect_garbage(const struct settings *settings)
{
        struct arena arena = { 0 };
        size_t gone = 0;
        char *path = arena_text(&arena, "%s/runs", settings_state_dir(settings, &arena));
        auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = opendir(path);
        for (struct dirent *entry = dir && fd >= 0 ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
                struct stat st;
                if (strncmp(entry->d_name, "run_", 4) != 0 || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                auto_fd folder = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                uint64_t age_ms = (uint64_t)(time(NULL) - st.st_mtime) * 1000;
                if (folder < 0 || age_ms < settings->engine.retention_ms || flock(folder, LOCK_EX | LOCK_NB) < 0)
                        continue;
                io_remove_tree(fd, entry->d_name);
                gone++;
        }
        if (dir)
                closedir(dir);
        arena_done(&arena);
        return gone;
}
