/* A log of JSON lines: one object a line, whatever bytes come in, so that nobody can forge a line. */
#include "base/base.h"

#include <stdio.h>

static enum log_level max_level = LOG_WARN;

void log_set_level(enum log_level level)
{
        max_level = level;
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

void log_text(enum log_level level, const char *fmt, ...)
{
        static const char *const names[] = { "error", "warn", "info", "debug" };
        if (level > max_level)
                return;

        char text[1024], safe[2048], line[2300];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        escape(safe, sizeof safe, text);

        char stamp[40];
        time_print(time_now_ms(), stamp, sizeof stamp);
        int len = snprintf(line, sizeof line, "{\"time\":\"%s\",\"level\":\"%s\",\"text\":\"%s\"}\n", stamp, names[level], safe);
        if (len > 0 && io_write_all(STDERR_FILENO, line, (size_t)len) < 0)
                return;   /* nobody listens; a log that cannot be written is no reason to end */
}
