/* Attributes of a file: lstat(2), names of owner and group, the target of a link, and labels (xattr(7)). */
#include "guest/guest.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define LIST_BYTES_MAX (4 * MIB)   /* of /etc/passwd and /etc/group */
#define NAMES_MAX (64 * KIB)       /* of all attributes of a file: XATTR_LIST_MAX */

/* ---- owner and group ---- */

/*
 * A name from the sandbox' own lists, which root inside may change.  Most look-ups repeat the last id, so the last
 * result is kept.
 */
struct known {
        unsigned id;
        struct timespec changed;
        char name[40];
};

static bool is_known(const struct known *known, unsigned id, const struct stat *list)
{
        return known->name[0] && known->id == id && known->changed.tv_sec == list->st_mtim.tv_sec &&
                known->changed.tv_nsec == list->st_mtim.tv_nsec;
}

/* fgetpwent_r(3) reads this file alone; getpwuid(3) would load libraries. */
static bool find_user(FILE *file, unsigned id, char *name, size_t size)
{
        char line[LINE_MAX];
        struct passwd entry = { 0 }, *found;
        while (fgetpwent_r(file, &entry, line, sizeof line, &found) == 0)
                if (entry.pw_uid == id)
                        return snprintf(name, size, "%s", entry.pw_name) > 0;
        return false;
}

static bool find_group(FILE *file, unsigned id, char *name, size_t size)
{
        char line[LINE_MAX];
        struct group entry = { 0 }, *found;
        while (fgetgrent_r(file, &entry, line, sizeof line, &found) == 0)
                if (entry.gr_gid == id)
                        return snprintf(name, size, "%s", entry.gr_name) > 0;
        return false;
}

/* Root inside may have put anything there: only a regular file of a sensible length is read, and open never blocks. */
static FILE *open_list(const char *path)
{
        struct stat list;
        int fd = own_proc_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
        if (fd >= 0 && fstat(fd, &list) == 0 && S_ISREG(list.st_mode) && list.st_size <= (off_t)LIST_BYTES_MAX)
                return fdopen(fd, "r");
        fd_close(&fd);
        return NULL;
}

static void look_up(struct known *known, unsigned id, const char *path, bool (*find)(FILE *, unsigned, char *, size_t))
{
        struct stat list = { 0 };
        if (stat(path, &list) == 0 && is_known(known, id, &list))
                return;
        *known = (struct known){ .id = id, .changed = list.st_mtim };
        FILE *file = open_list(path);
        if (!file || !find(file, id, known->name, sizeof known->name))
                snprintf(known->name, sizeof known->name, "%u", id);
        if (file)
                fclose(file);
}

/* ---- labels ---- */

static void add_label(struct guest_entry *entry, const char *path, const char *attribute, const char *name,
        struct arena *arena, size_t *left)
{
        char value[GUEST_LABELS_MAX];
        ssize_t n = lgetxattr(path, attribute, value, sizeof value);
        size_t len = n >= 0 ? strlen(name) + 1 + (size_t)n : SIZE_MAX;
        if (!name[0] || strchr(name, '=') || len > *left || memchr(value, 0, (size_t)n) ||
                entry->labels_n == WIRE_ARGS_MAX)
                return;              /* not made as a label */
        entry->labels[entry->labels_n++] = arena_text(arena, "%s=%.*s", name, (int)n, value);
        *left -= len;
}

static void read_labels(struct guest_entry *entry, const char *path, const char *space, struct arena *arena)
{
        static char names[NAMES_MAX];
        size_t left = GUEST_LABELS_MAX, space_len = strlen(space), count = 0;
        ssize_t len = space_len ? llistxattr(path, names, sizeof names) : 0;
        for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
                count++;
        entry->labels = arena_alloc(arena, (count + 1) * sizeof *entry->labels);
        for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
                if (strncmp(names + at, space, space_len) == 0)
                        add_label(entry, path, names + at, names + at + space_len, arena, &left);
}

int entry_set_labels(int fd, const struct guest_file *what)
{
        static char names[NAMES_MAX];
        char name[XATTR_NAME_MAX + 1];
        size_t space_len = strlen(what->space);
        ssize_t len = space_len ? flistxattr(fd, names, sizeof names) : 0;
        for (ssize_t at = 0; at < len; at += (ssize_t)strlen(names + at) + 1)
                if (strncmp(names + at, what->space, space_len) == 0 && fremovexattr(fd, names + at) < 0)
                        return -1;
        for (size_t i = 0; i < what->labels_n; i++) {
                const char *value = strchr(what->labels[i], '=');
                int n = snprintf(name, sizeof name, "%s%.*s", what->space, (int)(value - what->labels[i]),
                        what->labels[i]);
                if (n >= (int)sizeof name) {
                        errno = ENAMETOOLONG;
                        return -1;
                }
                if (fsetxattr(fd, name, value + 1, strlen(value + 1), 0) < 0)
                        return -1;
        }
        return 0;
}

/* ---- entries ---- */

void entry_of(const struct stat *st, const char *name, struct arena *arena, struct guest_entry *ret)
{
        int64_t ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
        static struct known user, group;
        look_up(&user, st->st_uid, "/etc/passwd", find_user);
        look_up(&group, st->st_gid, "/etc/group", find_group);
        *ret = (struct guest_entry){ .mode = st->st_mode,
                .size = (uint64_t)st->st_size,
                .mtime_ms = ms > 0 ? (uint64_t)ms : 0,
                .links = st->st_nlink,
                .path = arena_text(arena, "%s", name),
                .owner = arena_text(arena, "%s", user.name),
                .group = arena_text(arena, "%s", group.name) };
}

static void follow_link(const char *path, struct arena *arena, struct guest_entry *entry)
{
        char target[PATH_MAX];
        struct stat st;
        ssize_t n = readlink(path, target, sizeof target - 1);
        entry->target = arena_copy(arena, target, n > 0 ? (size_t)n : 0);
        char *real = realpath(path, NULL);
        if (real && stat(real, &st) == 0) {
                entry->real = arena_text(arena, "%s", real);
                entry->target_mode = st.st_mode;
        }
        free(real);
}

int files_entry(const char *path, const char *name, const char *space, struct arena *arena, struct guest_entry *ret,
        struct csn_error *err)
{
        struct stat st;
        if (lstat(path, &st) < 0)
                return files_error(err, "look at", name);
        entry_of(&st, name, arena, ret);
        if (S_ISLNK(st.st_mode))
                follow_link(path, arena, ret);
        else
                read_labels(ret, path, space, arena);
        return 0;
}
