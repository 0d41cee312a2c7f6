/* A log of JSON lines: an object a line for any input bytes; no input can forge a line. */
#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

static enum log_level max_level = LOG_WARN;
static enum log_format format = LOG_FORMAT_JSON;

const char *log_level_name(size_t level)
{
        static const char *const names[] = { "error", "warn", "info", "debug" };
        return level < ARRAY_LEN(names) ? names[level] : NULL;
}

void log_set_level(enum log_level level)
{
        max_level = level;
}

void log_set_format(enum log_format wanted)
{
        format = wanted;
}

static size_t escape(char *out, size_t size, const char *text)
{
        size_t len = 0;
        for (size_t left = strlen(text); left && len + 8 < size;) {
                size_t n = utf8_step(text, left);
                unsigned char c = (unsigned char)text[0];
                if (n == 0 || c < 0x20 || c == 0x7f || c == '"' || c == '\\') {
                        len += (size_t)snprintf(out + len, size - len, "\\u%04x", n ? c : 0xfffdU);
                        n = 1;
                } else {
                        memcpy(out + len, text, n);
                        len += n;
                }
                text += n;
                left -= n;
        }
        out[len] = 0;
        return len;
}

#define LOOKS 64   /* at the size of the file, for as many bytes as the file may have */

static int file_fd = -1;
static char *file_path;
static uint64_t file_max;

/* If two daemons log to a file, the first with the lock renames the file; the other finds a new file under the name. */
static void change_file(void)
{
        struct stat ours, there;
        char *old = NULL;
        flock(file_fd, LOCK_EX);
        bool moved = stat(file_path, &there) < 0 || fstat(file_fd, &ours) < 0 || there.st_ino != ours.st_ino ||
                there.st_dev != ours.st_dev;
        if (!moved && asprintf(&old, "%s" LOG_OLD, file_path) > 0)
                rename(file_path, old);
        free(old);
        fd_close(&file_fd);   /* also releases the lock */
        file_fd = open(file_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int log_open(const char *path, uint64_t max_bytes, struct csn_error *err)
{
        log_close();
        file_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (file_fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the log %.300s", path);
        file_path = mem_copy(path, strlen(path));
        file_max = max_bytes;
        return 0;
}

void log_close(void)
{
        fd_close(&file_fd);
        free(file_path);
        file_path = NULL;
}

/* One write(2) for each line: lines of two daemons do not mix. */
static void keep(const char *line, size_t len)
{
        static uint64_t unlooked;      /* bytes since the last look at the size of the file */
        struct stat st;
        unlooked += len;
        if (file_fd >= 0 && unlooked > file_max / LOOKS && fstat(file_fd, &st) == 0) {
                unlooked = len;
                if ((uint64_t)st.st_size + len > file_max / 2 - file_max / LOOKS)
                        change_file();
        }
        if (file_fd >= 0 && io_write_all(file_fd, line, len) < 0)
                return;   /* the disk is full; other code reports a full disk */
}

static size_t add_fields(char *line, size_t size, const struct log_context *context, bool json)
{
        const struct { const char *name, *value;
        } fields[] = {
                { "request_id", context->request },
                { "trace_id", context->trace },
                { "run_id", context->run },
                { "owner", context->owner },
        };
        size_t len = 0;
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
                char value[200];
                if (!fields[i].value || !fields[i].value[0])
                        continue;
                escape(value, sizeof value, fields[i].value);
                len += (size_t)snprintf(line + len, size - len, json ? ",\"%s\":\"%s\"" : " %s=%s", fields[i].name,
                        value);
        }
        line[len] = 0;
        return len;
}

static void put(enum log_level level, const struct log_context *context, const char *fmt, va_list args)
{
        char text[1024], safe[2048], fields[900], line[3100], stamp[40];
        bool told = level <= max_level, kept = file_fd >= 0 && level <= (max_level > LOG_INFO ? max_level : LOG_INFO);
        if (!told && !kept)
                return;
        vsnprintf(text, sizeof text, fmt, args);
        escape(safe, sizeof safe, text);
        time_print(time_now_ms(), stamp, sizeof stamp);
        add_fields(fields, sizeof fields, context, true);
        int len = snprintf(line, sizeof line, "{\"time\":\"%s\",\"level\":\"%s\",\"text\":\"%s\"%s}\n", stamp,
                log_level_name(level), safe, fields);
        if (len > 0 && kept)
                keep(line, (size_t)len);
        if (told && format == LOG_FORMAT_TEXT) {
                add_fields(fields, sizeof fields, context, false);
                len = snprintf(line, sizeof line, "%s %-5s %s%s\n", stamp, log_level_name(level), safe, fields);
        }
        if (len > 0 && told && io_write_all(STDERR_FILENO, line, (size_t)len) < 0)
                return;   /* no reader; a failed write to the log is no reason to end */
}

void log_text(enum log_level level, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        put(level, &(struct log_context){ 0 }, fmt, args);
        va_end(args);
}

void log_about(enum log_level level, const struct log_context *context, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        put(level, context, fmt, args);
        va_end(args);
}
