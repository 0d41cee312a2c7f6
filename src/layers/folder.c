/* The folder of layers: opening, locks, and leftovers of dead processes. */
#include "layers/layers_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TRIES_MAX 100   /* attempts to lock a folder whose name moves to another folder meanwhile */
#define LEFTOVER_S 3600 /* seconds, the age at which a temporary file of memory.c is a leftover */

int lock_name(int parent_fd, const char *name, int open_flags, int operation, int *ret_fd)
{
        for (int i = 0; i < TRIES_MAX; i++) {
                struct stat opened, named;
                auto_fd fd = openat(parent_fd, name, open_flags | O_NOFOLLOW | O_CLOEXEC, 0600);
                if (fd < 0)
                        return -1;
                if (flock(fd, operation | LOCK_NB) < 0)
                        return errno == EWOULDBLOCK ? 0 : -1;
                if (fstat(fd, &opened) < 0)
                        return -1;
                if (fstatat(parent_fd, name, &named, AT_SYMLINK_NOFOLLOW) < 0 || named.st_ino != opened.st_ino ||
                        named.st_dev != opened.st_dev)
                        continue;
                *ret_fd = take_fd(&fd);
                return 1;
        }
        errno = EAGAIN;
        return -1;
}

int folder_each(int dir_fd, void (*each)(void *owner, const char *name), void *owner)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                fd_close(&copy);
                return -1;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        each(owner, entry->d_name);
        closedir(dir);
        return 0;
}

/* ---- removal ---- */

int layer_move_away(struct layers *layers, const char *hex, char ret_name[static 33])
{
        hex_random(16, ret_name);
        return renameat(layers->fd, hex, layers->staging_fd, ret_name);
}

void staging_remove(struct layers *layers, const char *name)
{
        auto_fd fd = -1;
        int rc = lock_name(layers->staging_fd, name, O_RDONLY | O_DIRECTORY, LOCK_EX, &fd);
        if (rc > 0)
                io_remove_tree(layers->staging_fd, name);
        else if (rc < 0 && errno == ENOTDIR)
                unlinkat(layers->staging_fd, name, 0);
}

static void sweep_staging(void *owner, const char *name)
{
        staging_remove(owner, name);
}

static void sweep_lock(void *owner, const char *name)
{
        struct layers *layers = owner;
        auto_fd fd = -1;
        if (lock_name(layers->lock_fd, name, O_RDWR, LOCK_EX, &fd) > 0)
                unlinkat(layers->lock_fd, name, 0);
}

static void sweep_temporary(int dir_fd, const char *name)
{
        struct stat st;
        if (name[0] == '.' && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                st.st_mtime + LEFTOVER_S < time_now_ms() / 1000)
                unlinkat(dir_fd, name, 0);
}

static void sweep_request(void *owner, const char *name)
{
        sweep_temporary(((struct layers *)owner)->requests_fd, name);
}

static void sweep_failure(void *owner, const char *name)
{
        sweep_temporary(((struct layers *)owner)->failed_fd, name);
}

void layers_sweep(struct layers *layers)
{
        folder_each(layers->staging_fd, sweep_staging, layers);
        folder_each(layers->lock_fd, sweep_lock, layers);
        folder_each(layers->requests_fd, sweep_request, layers);
        folder_each(layers->failed_fd, sweep_failure, layers);
}

/* ---- opening ---- */

static int open_folder(const char *path, int *ret_fd, struct csn_error *err)
{
        bool made = mkdir(path, 0755) == 0;
        if (!made && errno == ENOENT)
                made = io_make_folders(path) == 0;
        if (!made && errno != EEXIST)
                return err_storage(err, errno, "make the folder of layers %s", path);
        auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_set(err, errno == ENOTDIR ? CSN_E_CONFIG : CSN_E_SYSTEM, errno,
                        "open the folder of layers %s", path);
        /* Independent of the umask: another user id mounts the layers. */
        if (made && fchmod(fd, 0755) < 0)
                return err_storage(err, errno, "chmod %s", path);
        *ret_fd = take_fd(&fd);
        return 0;
}

/* The folder belongs to the user of an earlier daemon, or of another program. */
static int belongs_to_another(const struct layers *layers, const struct stat *st, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0,
                "the folder of layers %s belongs to user %u, and this process is user %u; as root, with no daemon: chown -R "
                "%u %s",
                layers->path, st->st_uid, geteuid(), geteuid(), layers->path);
}

static int open_inner(const struct layers *layers, const char *name, int *ret_fd, struct csn_error *err)
{
        struct stat st;
        int rc = mkdirat(layers->fd, name, 0700);
        *ret_fd = rc == 0 || errno == EEXIST
                ? openat(layers->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                : -1;
        int sys = errno;
        if (*ret_fd >= 0)
                return 0;
        if ((sys == EACCES || sys == EPERM) && fstat(layers->fd, &st) == 0 && st.st_uid != geteuid())
                return belongs_to_another(layers, &st, err);
        return err_storage(err, sys, "make and open the folder %s/%s", layers->path, name);
}

/* flock(2) of a folder fails on file systems without locks, such as some network file systems. */
static int check_locks(const struct layers *layers, struct csn_error *err)
{
        auto_fd fd = openat(layers->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || (flock(fd, LOCK_SH | LOCK_NB) < 0 && errno != EWOULDBLOCK))
                return err_set(err, CSN_E_CONFIG, errno, "the file system of %s has no locks of folders", layers->path);
        return 0;
}

int layers_open(const char *path, struct layers **ret, struct csn_error *err)
{
        struct layers *layers = mem_alloc(sizeof *layers);
        *layers = (struct layers){ .path = mem_copy(path, strlen(path)),
                .fd = -1,
                .staging_fd = -1,
                .lock_fd = -1,
                .requests_fd = -1,
                .failed_fd = -1 };
        int rc = open_folder(path, &layers->fd, err);
        rc = rc < 0 ? rc : check_locks(layers, err);
        rc = rc < 0 ? rc : open_inner(layers, ".staging", &layers->staging_fd, err);
        rc = rc < 0 ? rc : open_inner(layers, ".lock", &layers->lock_fd, err);
        rc = rc < 0 ? rc : open_inner(layers, ".requests", &layers->requests_fd, err);
        rc = rc < 0 ? rc : open_inner(layers, ".failed", &layers->failed_fd, err);
        if (rc < 0) {
                layers_close(layers);
                return rc;
        }
        layers_sweep(layers);
        *ret = layers;
        return 0;
}

void layers_close(struct layers *layers)
{
        if (!layers)
                return;
        fd_close(&layers->staging_fd);
        fd_close(&layers->lock_fd);
        fd_close(&layers->requests_fd);
        fd_close(&layers->failed_fd);
        fd_close(&layers->fd);
        free(layers->path);
        free(layers);
}

const char *layers_path(const struct layers *layers)
{
        return layers->path;
}

/* ---- locks of builders ---- */

int key_check(const char *key, struct csn_error *err)
{
        size_t len = strlen(key);
        if (len == 0 || len > LAYER_KEY_MAX || strspn(key, "0123456789abcdefghijklmnopqrstuvwxyz_") != len)
                return err_field(err, "key", "\"%.80s\" is not a key of at most %d small letters and digits", key,
                        LAYER_KEY_MAX);
        return 0;
}

int layers_lock(struct layers *layers, const char *key, int *ret_fd, struct csn_error *err)
{
        if (key_check(key, err) < 0)
                return -CSN_E_INPUT;
        int rc = lock_name(layers->lock_fd, key, O_RDWR | O_CREAT, LOCK_EX, ret_fd);
        return rc < 0 ? err_storage(err, errno, "lock %s/.lock/%s", layers->path, key) : rc;
}

void layers_unlock(struct layers *layers, const char *key, int *fd)
{
        if (*fd >= 0)
                unlinkat(layers->lock_fd, key, 0);
        fd_close(fd);
}
