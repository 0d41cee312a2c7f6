/* Operations on files, with the sandbox's own rights.  A long operation continues as the engine reads. */
#include "guest/guest.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define LEVELS_MAX 64          /* depth of a list of folders in folders */
#define NAMES_AT_ONCE 262144   /* names of a folder sorted together */
#define AT_ONCE 16             /* packets of a file, or 64 times as many names, before other operations' turn */

/* A folder being listed: some of its names, in order. */
struct level {
        DIR *dir;
        size_t path_len;             /* of the folder, below the folder of the request */
        char **names;
        size_t names_n, size, at;
};

struct files {
        struct operation op;
        enum guest_verb verb;
        uint64_t flags;
        struct arena arena;          /* texts of the request */
        struct guest_file asked;
        char *path;
        int fd;                      /* READ, WRITE */
        uint64_t left;               /* READ */
        uint64_t mode;               /* WRITE; 0: the mode of the existing file, or 0644 */
        char *temporary;             /* WRITE: path of the incomplete content, or NULL */
        struct level *levels;        /* LIST */
        size_t levels_n;
        uint64_t depth;
        char below[GUEST_PATH_MAX];
};

/* ---- end ---- */

static void drop_temporary(struct files *files)
{
        if (files->temporary)
                unlink(files->temporary);
        free(files->temporary);
        files->temporary = NULL;
}

static void leave(struct files *files)
{
        struct level *level = &files->levels[--files->levels_n];
        while (level->at < level->names_n)
                free(level->names[level->at++]);
        free(level->names);
        closedir(level->dir);
}

static void files_closed(struct operation *op)
{
        struct files *files = (struct files *)op;
        operation_release(op);
        while (files->levels_n)
                leave(files);
        fd_close(&files->fd);
        account_enter(op->guest, files->flags);
        drop_temporary(files);
        account_files(op->guest, false);
        free(files->levels);
        free(files->path);
        arena_done(&files->arena);
        free(files);
}

static int tell_entry(struct files *files, const char *path, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct guest_entry entry;
        int rc = files_entry(path, path, files->asked.space, &arena, &entry, err);
        if (rc == 0)
                operation_tell_entry(&files->op, &entry);
        arena_done(&arena);
        return rc;
}

/* ---- lists ---- */

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Reads and sorts the next NAMES_AT_ONCE names; a larger folder comes in several sorted pieces. */
static void read_names(struct level *level)
{
        const struct dirent *found;
        level->names_n = level->at = 0;
        while (level->names_n < NAMES_AT_ONCE && (found = readdir(level->dir))) {
                if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
                        continue;
                if (level->names_n == level->size) {
                        level->size = level->size ? 2 * level->size : 64;
                        level->names = mem_resize(level->names, level->size * sizeof *level->names);
                }
                level->names[level->names_n++] = mem_copy(found->d_name, strlen(found->d_name));
        }
        if (level->names_n)
                qsort(level->names, level->names_n, sizeof *level->names, compare_names);
}

static int enter(struct files *files, const char *path, size_t path_len, struct csn_error *err)
{
        DIR *dir = own_proc_opendir(path);
        if (!dir)
                return files_error(err, "list", path);
        files->levels[files->levels_n] = (struct level){ .dir = dir, .path_len = path_len };
        read_names(&files->levels[files->levels_n++]);
        return 0;
}

/* Sends the next name.  An unreadable folder is sent like an empty folder. */
static void list_name(struct files *files, const char *name, struct arena *arena)
{
        struct level *level = &files->levels[files->levels_n - 1];
        struct guest_entry entry = { 0 };
        struct csn_error err;
        char *path =
                arena_text(arena, "%.*s%s%s", (int)level->path_len, files->below, level->path_len ? "/" : "", name);
        char *whole = arena_text(arena, "%s/%s", files->path, path);
        size_t len = strlen(path);
        if (len >= sizeof files->below || files_entry(whole, path, files->asked.space, arena, &entry, &err) < 0)
                return;              /* the file is gone by now */
        operation_tell_entry(&files->op, &entry);
        if (!S_ISDIR(entry.mode) || files->levels_n >= files->depth)
                return;
        memcpy(files->below, path, len + 1);
        enter(files, whole, len, &err);
}

static void list_on(struct files *files)
{
        for (int n = 0; files->levels_n && !operation_is_full(&files->op); n++) {
                if (n == 64 * AT_ONCE) {
                        operation_again(&files->op);
                        return;
                }
                struct level *level = &files->levels[files->levels_n - 1];
                struct arena arena = { 0 };
                if (level->at == level->names_n && level->names_n == NAMES_AT_ONCE)
                        read_names(level);
                if (level->at == level->names_n) {
                        leave(files);
                        continue;
                }
                char *name = level->names[level->at++];
                list_name(files, name, &arena);
                free(name);
                arena_done(&arena);
        }
        if (!files->levels_n && !files->op.over)
                operation_tell(&files->op, GUEST_DONE);
}

static int list(struct files *files, struct csn_error *err)
{
        files->levels = mem_alloc(LEVELS_MAX * sizeof *files->levels);
        files->depth = max_u64(1, min_u64(files->depth, LEVELS_MAX));
        if (enter(files, files->path, 0, err) < 0)
                return -err->code;
        list_on(files);
        return 0;
}

/* ---- reading ---- */

static void read_on(struct files *files)
{
        static uint8_t packet[GUEST_PACKET_MAX];
        struct csn_error err;
        for (int i = 0; files->left && !operation_is_full(&files->op); i++) {
                if (i == AT_ONCE) {
                        operation_again(&files->op);
                        return;
                }
                ssize_t n = read(files->fd, packet + 1, min_u64(files->left, sizeof packet - 1));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0) {
                        files_error(&err, "read", files->path);
                        operation_fail(&files->op, &err);
                        return;
                }
                if (n == 0)
                        files->left = 0;
                packet[0] = GUEST_DATA;
                if (n > 0)
                        operation_send(&files->op, packet, (size_t)n + 1, NULL, 0);
                files->left -= min_u64(files->left, (uint64_t)n);
        }
        if (!files->left && !files->op.over)
                operation_tell(&files->op, GUEST_DONE);
}

static int read_file(struct files *files, uint64_t offset, uint64_t length, struct csn_error *err)
{
        struct stat st;
        struct arena arena = { 0 };
        struct guest_entry entry;
        files->fd = own_proc_open(files->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (files->fd < 0 || fstat(files->fd, &st) < 0)
                return files_error(err, "read", files->path);
        if (S_ISDIR(st.st_mode)) {
                errno = EISDIR;
                return files_error(err, "read", files->path);
        }
        if (!S_ISREG(st.st_mode))
                return err_set(err, CSN_E_INPUT, 0, "cannot read %.300s: it is no regular file", files->path);
        if (lseek(files->fd, (off_t)offset, SEEK_SET) < 0)
                return files_error(err, "read", files->path);
        entry_of(&st, files->path, &arena, &entry);
        operation_tell_entry(&files->op, &entry);
        arena_done(&arena);
        files->left = length;
        read_on(files);
        return 0;
}

/* ---- writing ---- */

/* mkdir -p; the last part too if `whole`. */
static int make_folders(const struct files *files, const char *path, bool whole, struct csn_error *err)
{
        char part[GUEST_PATH_MAX + 1];
        struct stat st;
        size_t len = strlen(path);
        for (size_t i = 1; i <= len; i++) {
                if ((path[i] != '/' && path[i] != 0) || (path[i] == 0 && !whole))
                        continue;
                snprintf(part, sizeof part, "%.*s", (int)i, path);
                int sys = mkdir(part, 0755) < 0 || account_own(files->op.guest, files->flags, -1, part) < 0 ? errno : 0;
                if (sys && sys != EEXIST && stat(part, &st) < 0) {
                        errno = sys;
                        return files_error(err, "make the folder", part);
                }
        }
        if (whole && (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))) {
                err_set(err, CSN_E_INPUT, 0, "cannot make the folder %.300s: there is a file of that name", path);
                err->sys = EEXIST;
                return -CSN_E_INPUT;
        }
        return 0;
}

/* Resolves links in the path of the file to write. */
static int follow(struct files *files, struct csn_error *err)
{
        struct stat st;
        if (stat(files->path, &st) < 0)
                return 0;
        if (S_ISDIR(st.st_mode)) {
                errno = EISDIR;
                return files_error(err, "write", files->path);
        }
        if (!S_ISREG(st.st_mode))
                return err_set(err, CSN_E_INPUT, 0, "cannot write %.300s: it is no regular file", files->path);
        if (!files->mode)
                files->mode = st.st_mode & 07777;
        char *real = realpath(files->path, NULL);
        if (!real)
                return files_error(err, "write", files->path);
        free(files->path);
        files->path = real;
        return 0;
}

static int write_file(struct files *files, struct csn_error *err)
{
        uint32_t random;
        if (follow(files, err) < 0 || make_folders(files, files->path, false, err) < 0)
                return -err->code;
        const char *slash = strrchr(files->path, '/');
        size_t folder = slash ? (size_t)(slash - files->path) + 1 : 0;
        if (!files->path[folder])
                return err_set(err, CSN_E_INPUT, 0, "cannot write %.300s: the name of the file is missing",
                        files->path);
        if (files->flags & GUEST_FILE_IN_PLACE) {
                files->fd = own_proc_open(files->path,
                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
                return files->fd < 0 ? files_error(err, "write", files->path) : 0;
        }
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
                random = (uint32_t)clock_us();
        size_t size = folder + 40;
        char *temporary = mem_alloc(size);
        snprintf(temporary, size, "%.*s.upload-%08x%08x", (int)folder, files->path, random, (uint32_t)clock_us());
        files->fd = own_proc_open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
        if (files->fd < 0) {
                free(temporary);
                return files_error(err, "write", files->path);
        }
        files->temporary = temporary;
        return 0;
}

static int finish_write(struct files *files, struct csn_error *err)
{
        if (account_own(files->op.guest, files->flags, files->fd, NULL) < 0 ||
                (files->asked.space[0] && entry_set_labels(files->fd, &files->asked) < 0))
                return files_error(err, "write", files->path);
        if (files->temporary &&
                (fchmod(files->fd, files->mode ? (mode_t)files->mode : 0644) < 0 ||
                        rename(files->temporary, files->path) < 0))
                return files_error(err, "write", files->path);
        if (!files->temporary && files->asked.mode && fchmod(files->fd, (mode_t)files->asked.mode) < 0)
                return files_error(err, "write", files->path);
        free(files->temporary);
        files->temporary = NULL;
        if (tell_entry(files, files->path, err) < 0)
                return -err->code;
        operation_tell(&files->op, GUEST_DONE);
        return 0;
}

static int files_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        struct files *files = (struct files *)op;
        enum guest_kind kind = guest_kind_of(bytes, len);
        if (files->verb != GUEST_WRITE || files->fd < 0 || (kind != GUEST_DATA && kind != GUEST_DATA_END))
                return err_set(err, CSN_E_PROTOCOL, 0, "an operation on files was sent what is not for it");
        account_enter(op->guest, files->flags);
        int rc = kind == GUEST_DATA_END ? finish_write(files, err)
                 : io_write_all(files->fd, bytes + 1, len - 1) < 0 ? files_error(err, "write", files->path) : 0;
        if (rc < 0)
                drop_temporary(files);         /* a failed write leaves no incomplete file */
        account_files(op->guest, false);
        return rc;
}

static void files_room(struct operation *op)
{
        struct files *files = (struct files *)op;
        account_enter(op->guest, files->flags);
        if (files->verb == GUEST_LIST && !op->over)
                list_on(files);
        else if (files->verb == GUEST_READ && !op->over)
                read_on(files);
        account_files(op->guest, false);
}

/* ---- other operations ---- */

static int remove_all(const char *path, struct csn_error *err)
{
        struct stat st, above;
        char parent[GUEST_PATH_MAX + 4];
        if (lstat(path, &st) < 0)
                return files_error(err, "remove", path);
        if (!S_ISDIR(st.st_mode))
                return unlink(path) < 0 ? files_error(err, "remove", path) : 0;
        /*
         * A folder of a read-only mount cannot be removed, so its contents stay, too, even writable folders: /home
         * contains /home/user.
         */
        struct statvfs fs;
        if (statvfs(path, &fs) == 0 && fs.f_flag & ST_RDONLY) {
                errno = EROFS;
                return files_error(err, "remove", path);
        }
        snprintf(parent, sizeof parent, "%s/..", path);
        if (stat(parent, &above) < 0 || above.st_dev != st.st_dev || above.st_ino == st.st_ino) {
                err_set(err, CSN_E_INPUT, 0, "cannot remove %.300s: it is a part of the sandbox itself", path);
                err->sys = EBUSY;
                return -CSN_E_INPUT;
        }
        io_remove_tree(AT_FDCWD, path);
        if (lstat(path, &st) < 0)
                return 0;
        errno = EACCES;
        return files_error(err, "remove", path);
}

static int make_folder(const struct files *files, struct csn_error *err)
{
        struct stat st;
        if (files->flags & GUEST_FILE_NEW && stat(files->path, &st) == 0 && S_ISDIR(st.st_mode)) {
                err_set(err, CSN_E_INPUT, 0, "cannot make the folder %.300s: it is there", files->path);
                err->sys = EALREADY;
                return -CSN_E_INPUT;
        }
        return make_folders(files, files->path, true, err);
}

static int change(struct files *files, const struct guest_file *what, struct csn_error *err)
{
        int rc = 0;
        const char *path = files->path;
        if (what->verb == GUEST_FOLDER)
                rc = make_folder(files, err);
        else if (what->verb == GUEST_REMOVE)
                rc = remove_all(path, err);
        else if (what->verb == GUEST_MODE)
                rc = chmod(path, (mode_t)what->mode) < 0 ? files_error(err, "change the mode of", path) : 0;
        else if (what->verb == GUEST_RENAME)
                rc = make_folders(files, what->to, false, err) < 0 ? -err->code
                        : rename(path, what->to) < 0               ? files_error(err, "rename", path)
                                                                   : 0;
        if (rc == 0 && what->verb != GUEST_REMOVE)
                rc = tell_entry(files, what->verb == GUEST_RENAME ? what->to : path, err);
        if (rc == 0)
                operation_tell(&files->op, GUEST_DONE);
        return rc;
}

/* Copies the texts, for the operation outlives the packet of its request. */
static void keep_request(struct files *files, const struct guest_file *what)
{
        files->asked = *what;
        files->asked.space = arena_text(&files->arena, "%s", what->space);
        files->asked.labels = arena_alloc(&files->arena, (what->labels_n + 1) * sizeof *what->labels);
        for (size_t i = 0; i < what->labels_n; i++)
                files->asked.labels[i] = arena_text(&files->arena, "%s", what->labels[i]);
}

static int begin(struct files *files, const struct guest_file *what, struct csn_error *err)
{
        if (account_has(files->op.guest, what, err) < 0)
                return -err->code;
        if (own_proc_check(files->path) < 0)
                return files_error(err, "use", files->path);
        if (what->verb == GUEST_RENAME && own_proc_check(what->to) < 0)
                return files_error(err, "use", what->to);
        switch (files->verb) {
        case GUEST_LIST:
                return list(files, err);
        case GUEST_READ:
                return read_file(files, what->offset, what->length, err);
        case GUEST_WRITE:
                return write_file(files, err);
        default:
                return change(files, what, err);
        }
}

void files_begin(struct guest *guest, const struct guest_file *what, int *sock)
{
        static const struct operation_kind kind = { files_take, files_room, files_closed };
        struct files *files = mem_alloc(sizeof *files);
        struct csn_error err;
        files->verb = (enum guest_verb)what->verb;
        files->flags = what->flags;
        files->path = mem_copy(what->path, strlen(what->path));
        files->fd = -1;
        files->mode = what->mode;
        files->depth = what->depth;
        keep_request(files, what);
        if (!operation_open(&files->op, guest, &kind, sock))
                return;
        account_enter(guest, files->flags);
        int rc = begin(files, what, &err);
        account_files(guest, false);
        if (rc < 0)
                operation_fail(&files->op, &err);
}
