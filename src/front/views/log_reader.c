/* The log of daemons; see log_reader.h. */
#include "front/views/log_reader.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_MAX_BYTES (256 * MIB)         /* the maximum of engine.log_bytes */
#define MORE_AT_ONCE (4 * MIB)

char *logs_path(const struct settings *settings, struct arena *arena)
{
        return arena_text(arena, "%s/caissond.log", settings_state_dir(settings, arena));
}

int logs_level(const char *word, const char *field, enum log_level *ret, struct csn_error *err)
{
        for (size_t i = 0; log_level_name(i); i++)
                if (strcmp(log_level_name(i), word) == 0) {
                        *ret = (enum log_level)i;
                        return 0;
                }
        return err_field(err, field, "%s is \"%.40s\"; it has to be error, warn, info or debug", field, word);
}

/* ---- selection of lines ---- */

/* Quotes in a line's texts are escaped, so a quoted name matches only at its place. */
static bool has(const char *line, size_t len, const char *name, const char *value)
{
        char text[300];
        if (!value || !value[0])
                return true;
        int n = snprintf(text, sizeof text, "\"%s\":\"%s\"", name, value);
        return n > 0 && (size_t)n < sizeof text && !strpbrk(value, "\"\\") && memmem(line, len, text, (size_t)n);
}

static bool is_wanted(const struct logs_filter *filter, const char *line, size_t len)
{
        bool level = false;
        for (size_t i = 0; i <= (size_t)filter->level && !level; i++)
                level = has(line, len, "level", log_level_name(i));
        return level && has(line, len, "run_id", filter->run) && has(line, len, "request_id", filter->request) &&
               has(line, len, "trace_id", filter->trace) && has(line, len, "owner", filter->owner);
}

/* Start of the last n matching lines, going back from `end`; *n becomes the number of lines missing. */
static size_t go_back(const char *bytes, size_t end, const struct logs_filter *filter, size_t *n)
{
        size_t first = end;
        while (end && *n) {
                const char *feed = memrchr(bytes, '\n', end - 1);
                size_t at = feed ? (size_t)(feed - bytes) + 1 : 0;
                if (is_wanted(filter, bytes + at, end - at)) {
                        first = at;
                        --*n;
                }
                end = at;
        }
        return first;
}

static void add_wanted(const char *bytes, size_t len, const struct logs_filter *filter, struct buf *buf)
{
        for (size_t at = 0, next; at < len; at = next) {
                const char *feed = memchr(bytes + at, '\n', len - at);
                next = feed ? (size_t)(feed - bytes) + 1 : len;
                if (is_wanted(filter, bytes + at, next - at))
                        buf_add(buf, bytes + at, next - at);
        }
}

/* ---- files ---- */

/* Reads complete lines from offset *at, and moves *at behind the last. */
static int read_lines(int fd, off_t *at, size_t max, struct buf *ret, struct csn_error *err)
{
        static char bytes[64 * KIB];
        buf_init(ret, max);
        for (;;) {
                ssize_t n = pread(fd, bytes, min_u64(sizeof bytes, max - ret->len), *at + (off_t)ret->len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "read the log");
                if (n == 0)
                        break;
                buf_add(ret, bytes, (size_t)n);
        }
        const char *feed = ret->len ? memrchr(ret->bytes, '\n', ret->len) : NULL;
        ret->len = feed ? (size_t)(feed - ret->bytes) + 1 : 0;
        *at += (off_t)ret->len;
        return 0;
}

static int open_log(const char *path, int *ret_fd, struct csn_error *err)
{
        *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
        if (*ret_fd < 0 && errno == ENOENT)
                return err_field(err, "",
                        "there is no log at %.300s: no daemon has kept one there; see engine.state_dir and engine.log_bytes",
                        path);
        return *ret_fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open the log %.300s", path) : 0;
}

int logs_read(const char *path, const struct logs_filter *filter, size_t n, struct buf *buf,
        struct logs_place *ret_place, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct buf new = { 0 }, old = { 0 };
        auto_fd fd = -1;
        off_t at = 0, ignored = 0;
        /* The current file first: a file rotated meanwhile is then read twice at the worst, and not missed. */
        int rc = open_log(path, &fd, err);
        auto_fd old_fd = open(arena_text(&arena, "%s" LOG_OLD, path), O_RDONLY | O_CLOEXEC);
        struct stat one = { 0 }, two = { 0 };
        bool same =
                fd >= 0 && old_fd >= 0 && fstat(fd, &one) == 0 && fstat(old_fd, &two) == 0 && one.st_ino == two.st_ino;
        rc = rc < 0 ? rc : read_lines(fd, &at, FILE_MAX_BYTES, &new, err);
        size_t from = rc < 0 ? 0 : go_back(new.bytes, new.len, filter, &n);
        if (rc == 0 && n && old_fd >= 0 && !same)
                rc = read_lines(old_fd, &ignored, FILE_MAX_BYTES, &old, err);
        if (rc == 0) {
                size_t old_from = go_back(old.bytes, old.len, filter, &n);
                if (old.len)
                        add_wanted(old.bytes + old_from, old.len - old_from, filter, buf);
                if (new.len)
                        add_wanted(new.bytes + from, new.len - from, filter, buf);
        }
        if (rc == 0 && ret_place)
                *ret_place = (struct logs_place){ take_fd(&fd), at };
        buf_done(&new);
        buf_done(&old);
        arena_done(&arena);
        return rc;
}

/* Whether the path has a file other than the open file. */
static bool has_moved(const char *path, int fd)
{
        struct stat ours, there;
        return stat(path, &there) == 0 && fstat(fd, &ours) == 0 &&
                (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev);
}

int logs_more(const char *path, const struct logs_filter *filter, struct logs_place *place, struct buf *buf,
        struct csn_error *err)
{
        struct buf lines;
        /* Checked before the read: the open file gets no line after its rotation. */
        bool moved = has_moved(path, place->fd);
        int rc = read_lines(place->fd, &place->at, MORE_AT_ONCE, &lines, err);
        if (rc == 0 && lines.len)
                add_wanted(lines.bytes, lines.len, filter, buf);
        if (rc == 0 && !lines.len && moved) {
                fd_close(&place->fd);
                place->at = 0;
                rc = open_log(path, &place->fd, err);
        }
        buf_done(&lines);
        return rc;
}
