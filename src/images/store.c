/* The folder of images: names, finding, listing, removal, making. */
#include "images/images_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TRIES_MAX 100  /* attempts to lock a folder whose name moves to another folder meanwhile */
#define LISTED_MAX 400 /* bytes of the names in an error */

static bool is_id(const char *text)
{
        return strlen(text) == IMAGE_ID_LEN && strspn(text, "0123456789abcdef") == IMAGE_ID_LEN;
}

/* ---- the folder ---- */

static int open_folder(const char *path, bool make, struct csn_error *err)
{
        bool made = make && mkdir(path, 0755) == 0;
        if (make && !made && errno == ENOENT)
                made = io_make_folders(path) == 0;
        auto_fd fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_set(err, !make && errno == ENOENT ? CSN_E_INPUT : CSN_E_SYSTEM, errno,
                        "open the folder of images %s", path);
        /* Independent of the umask: another user id mounts the images. */
        if (made && fchmod(fd, 0755) < 0)
                return err_storage(err, errno, "chmod %s", path);
        return take_fd(&fd);
}

int images_open(const char *path, bool make, struct images **ret, struct csn_error *err)
{
        auto_fd fd = open_folder(path, make, err);
        if (fd < 0)
                return fd;
        bool made = make && mkdirat(fd, IMAGE_NAMES, 0755) == 0;
        auto_fd names_fd = openat(fd, IMAGE_NAMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (names_fd < 0)
                return err_set(err, errno == ENOENT ? CSN_E_INPUT : CSN_E_SYSTEM, errno, "open %s/" IMAGE_NAMES, path);
        if (made && fchmod(names_fd, 0755) < 0)
                return err_storage(err, errno, "chmod %s/" IMAGE_NAMES, path);
        struct images *images = mem_alloc(sizeof *images);
        *images = (struct images){ .path = mem_copy(path, strlen(path)) };
        images->fd = take_fd(&fd);
        images->names_fd = take_fd(&names_fd);
        *ret = images;
        return 0;
}

void images_close(struct images *images)
{
        if (!images)
                return;
        fd_close(&images->fd);
        fd_close(&images->names_fd);
        free(images->path);
        free(images);
}

/* Open a folder HEX and lock it without waiting.  1: locked; 0: another process has a lock; -1 with errno. */
static int lock_id(int dir_fd, const char *id, int operation, int *ret_fd)
{
        struct stat opened, named;
        auto_fd fd = openat(dir_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -1;
        if (flock(fd, operation | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? 0 : -1;
        if (fstat(fd, &opened) < 0 || fstatat(dir_fd, id, &named, AT_SYMLINK_NOFOLLOW) < 0)
                return -1;
        if (opened.st_ino != named.st_ino || opened.st_dev != named.st_dev) {
                errno = ENOENT;
                return -1;
        }
        *ret_fd = take_fd(&fd);
        return 1;
}

/* Read the id of a name.  False with errno: no id. */
static bool read_name(int names_fd, const char *name, char ret_id[static IMAGE_ID_LEN + 1])
{
        char target[IMAGE_ID_LEN + 8];
        ssize_t len = readlinkat(names_fd, name, target, sizeof target - 1);
        if (len < 0)
                return false;
        target[len] = 0;
        if (strncmp(target, "../", 3) != 0 || !is_id(target + 3)) {
                errno = ENOENT;
                return false;
        }
        memcpy(ret_id, target + 3, IMAGE_ID_LEN + 1);
        return true;
}

struct names {
        char **list;
        size_t n, size;
};

static int by_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All names of a folder without a leading dot, sorted; in `arena`. */
static int list_folder(int dir_fd, struct arena *arena, struct names *ret)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        *ret = (struct names){ 0 };
        if (!dir) {
                fd_close(&copy);
                return -1;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                if (entry->d_name[0] == '.')
                        continue;
                if (ret->n == ret->size) {
                        ret->size = 2 * ret->size + 16;
                        ret->list = mem_resize(ret->list, ret->size * sizeof *ret->list);
                }
                ret->list[ret->n++] = arena_text(arena, "%s", entry->d_name);
        }
        closedir(dir);
        if (ret->n)
                qsort(ret->list, ret->n, sizeof *ret->list, by_text);
        return 0;
}

static bool is_named(const struct images *images, const struct names *names, const char *id)
{
        char found[IMAGE_ID_LEN + 1];
        for (size_t i = 0; i < names->n; i++)
                if (read_name(images->names_fd, names->list[i], found) && strcmp(found, id) == 0)
                        return true;
        return false;
}

/* The names are read under the lock: a maker gives the name before releasing the lock. */
static void sweep_id(struct images *images, const char *id)
{
        struct arena arena = { 0 };
        struct names names = { 0 };
        auto_fd fd = -1;
        if (lock_id(images->fd, id, LOCK_EX, &fd) > 0 && list_folder(images->names_fd, &arena, &names) == 0 &&
                !is_named(images, &names, id))
                io_remove_tree(images->fd, id);
        free(names.list);
        arena_done(&arena);
}

void images_sweep(struct images *images)
{
        struct arena arena = { 0 };
        struct names all;
        if (list_folder(images->fd, &arena, &all) == 0)
                for (size_t i = 0; i < all.n; i++)
                        if (is_id(all.list[i]))
                                sweep_id(images, all.list[i]);
        free(all.list);
        arena_done(&arena);
}

/* ---- finding ---- */

static int unknown(const char *path, const char *name, const char *field, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct names names = { 0 };
        char known[LISTED_MAX] = "";
        size_t len = 0;
        char *folder = arena_text(&arena, "%s/" IMAGE_NAMES, path);
        auto_fd fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0)
                list_folder(fd, &arena, &names);
        for (size_t i = 0; i < names.n && len + IMAGE_NAME_MAX + 8 < sizeof known; i++)
                len += (size_t)snprintf(known + len, sizeof known - len, ", %s%s", names.list[i],
                        i + 1 < names.n && len + 2 * (IMAGE_NAME_MAX + 8) >= sizeof known ? ", ..." : "");
        free(names.list);
        arena_done(&arena);
        return err_field(err, field,
                "there is no image \"%.64s\"; there are system, data, small%s; caisson image import FILE --name %.64s "
                "makes one",
                name, known, name);
}

/* 1: found and held; 0: no image of that name; -1 with errno. */
static int hold(int dir_fd, int names_fd, const char *name, char ret_id[static IMAGE_ID_LEN + 1], int *ret_fd)
{
        for (int i = 0; i < TRIES_MAX; i++) {
                char again[IMAGE_ID_LEN + 1];
                auto_fd fd = -1;
                if (!read_name(names_fd, name, ret_id))
                        return errno == ENOENT ? 0 : -1;
                int rc = lock_id(dir_fd, ret_id, LOCK_SH, &fd);
                if (rc < 0 && errno != ENOENT)
                        return -1;
                /* The name may lead to another image meanwhile. */
                if (rc > 0 && read_name(names_fd, name, again) && strcmp(again, ret_id) == 0) {
                        *ret_fd = take_fd(&fd);
                        return 1;
                }
        }
        errno = EAGAIN;
        return -1;
}

int image_find(const char *path, const char *name, const char *field, struct arena *arena, struct stored_image *ret,
        int *ret_hold, struct csn_error *err)
{
        char id[IMAGE_ID_LEN + 1];
        auto_fd held = -1;
        if (image_name_check(name, field, err) < 0)
                return -err->code;
        auto_fd dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_fd names_fd = dir_fd < 0
                ? -1
                : openat(dir_fd, IMAGE_NAMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (names_fd < 0)
                return errno == ENOENT ? unknown(path, name, field, err)
                                       : err_set(err, CSN_E_SYSTEM, errno, "open the folder of images %s", path);
        int rc = hold(dir_fd, names_fd, name, id, &held);
        if (rc <= 0)
                return rc == 0 ? unknown(path, name, field, err)
                               : err_set(err, CSN_E_SYSTEM, errno, "open the image %s", name);
        if (image_read_manifest(held, name, id, arena, ret, err) < 0)
                return -err->code;
        *ret_hold = take_fd(&held);
        return 0;
}

int images_list(const char *path, struct arena *arena, struct stored_image **ret, size_t *ret_n, struct csn_error *err)
{
        struct names names = { 0 };
        *ret_n = 0;
        auto_fd dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_fd names_fd = dir_fd < 0
                ? -1
                : openat(dir_fd, IMAGE_NAMES, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (names_fd < 0 || list_folder(names_fd, arena, &names) < 0)
                return errno == ENOENT ? 0 : err_set(err, CSN_E_SYSTEM, errno, "list the folder of images %s", path);
        *ret = arena_alloc(arena, (names.n + 1) * sizeof **ret);
        for (size_t i = 0; i < names.n; i++) {
                struct stored_image *image = &(*ret)[*ret_n];
                struct csn_error why = { 0 };
                char id[IMAGE_ID_LEN + 1];
                auto_fd held = -1;
                if (image_name_check(names.list[i], "name", &why) < 0)
                        continue;
                int rc = hold(dir_fd, names_fd, names.list[i], id, &held);
                if (rc == 0)
                        continue;
                *image = (struct stored_image){ .name = names.list[i] };
                if (rc < 0)
                        image->fault = arena_text(arena, "%s", strerrordesc_np(errno));
                else if (image_read_manifest(held, names.list[i], id, arena, image, &why) < 0)
                        *image = (struct stored_image){ .name = names.list[i],
                                .fault = arena_text(arena, "%s", why.text) };
                (*ret_n)++;
        }
        free(names.list);
        return 0;
}

int image_remove(struct images *images, const char *name, struct csn_error *err)
{
        if (image_name_check(name, "name", err) < 0)
                return -err->code;
        if (unlinkat(images->names_fd, name, 0) < 0)
                return errno == ENOENT ? unknown(images->path, name, "name", err)
                                       : err_storage(err, errno, "remove the image %s", name);
        images_sweep(images);
        return 0;
}

/* ---- making ---- */

int image_stage(struct images *images, struct image_staging *ret, struct csn_error *err)
{
        struct image_staging staging = IMAGE_STAGING_NONE;
        int rc = 0;
        /* Another process may sweep the folder before the lock is there. */
        for (int i = 0; i < TRIES_MAX && rc <= 0; i++) {
                hex_random(IMAGE_ID_LEN / 2, staging.id);
                if (mkdirat(images->fd, staging.id, 0700) < 0 && errno != EEXIST)
                        return err_storage(err, errno, "make a folder in %s", images->path);
                rc = lock_id(images->fd, staging.id, LOCK_EX, &staging.fd);
        }
        if (rc <= 0)
                return err_storage(err, errno, "lock a folder in %s", images->path);
        if (mkdirat(staging.fd, IMAGE_TREE, 0755) < 0 ||
                (staging.tree_fd = openat(staging.fd, IMAGE_TREE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
                        0 ||
                fchmod(staging.tree_fd, 0755) < 0) {
                rc = err_storage(err, errno, "make a folder in %s", images->path);
                image_abort(images, &staging);
                return rc;
        }
        *ret = staging;
        return 0;
}

void image_abort(struct images *images, struct image_staging *staging)
{
        if (staging->fd >= 0)
                io_remove_tree(images->fd, staging->id);
        fd_close(&staging->tree_fd);
        fd_close(&staging->fd);
        *staging = IMAGE_STAGING_NONE;
}

/* rename(2) replaces a name atomically; symlink(2) refuses an existing name. */
static int give_name(struct images *images, const struct stored_image *image, const char *id, bool replace,
        struct csn_error *err)
{
        char target[IMAGE_ID_LEN + 8], temporary[40] = ".";
        snprintf(target, sizeof target, "../%s", id);
        hex_random(16, temporary + 1);
        if (!replace) {
                if (symlinkat(target, images->names_fd, image->name) == 0)
                        return 0;
                return errno == EEXIST ? image_exists(image->name, err)
                                       : err_storage(err, errno, "give an image its name");
        }
        if (symlinkat(target, images->names_fd, temporary) < 0 ||
                renameat(images->names_fd, temporary, images->names_fd, image->name) < 0)
                return err_storage(err, errno, "give an image its name");
        return 0;
}

int image_publish(struct images *images, struct image_staging *staging, struct stored_image *image, bool replace,
        struct csn_error *err)
{
        memcpy(image->id, staging->id, sizeof image->id);
        image->created_ms = time_now_ms();
        int rc = image_may_be_named(image->name, err);
        rc = rc < 0 ? rc : image_write_manifest(staging->fd, image, err);
        if (rc == 0 && (fchmod(staging->fd, 0755) < 0 || syncfs(staging->fd) < 0))
                rc = err_storage(err, errno, "write an image to the disk");
        rc = rc < 0 ? rc : give_name(images, image, staging->id, replace, err);
        if (rc < 0) {
                image_abort(images, staging);
                return rc;
        }
        fsync(images->names_fd);
        fd_close(&staging->tree_fd);
        fd_close(&staging->fd);
        *staging = IMAGE_STAGING_NONE;
        images_sweep(images);
        return 0;
}
