/* Texts on standard output and standard error: errors, control characters, colours, lines of tables, JSON. */
#include "front/cli/toolkit/toolkit.h"

#include <stdarg.h>

/* ---- errors ---- */

int cli_fail(const struct csn_error *err)
{
        struct arena arena = { 0 };
        fprintf(stderr, "caisson: %s\n", cli_in_options(err->text, err->field, &arena));
        arena_done(&arena);
        return csn_code_exit(err->code);
}

static void complain(const char *fmt, va_list args, const char *end)
{
        fprintf(stderr, "caisson: ");
        vfprintf(stderr, fmt, args);
        fprintf(stderr, "%s\n", end);
}

int cli_usage(const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        complain(fmt, args, "; see caisson help");
        va_end(args);
        return 64;
}

int cli_usage_of(const char *command, const char *fmt, ...)
{
        va_list args;
        fprintf(stderr, "caisson: %s: ", command);
        va_start(args, fmt);
        vfprintf(stderr, fmt, args);
        va_end(args);
        fprintf(stderr, "; see caisson help %s\n", command);
        return 64;
}

void cli_note(const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        complain(fmt, args, "");
        va_end(args);
}

/* ---- on a terminal ---- */

bool cli_colours(FILE *stream)
{
        const char *term = getenv("TERM"), *no = getenv("NO_COLOR");
        return isatty(fileno(stream)) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
}

/* Output of a program may have control sequences for the terminal; they become visible text. */
size_t cli_visible(const char *bytes, size_t len, char *out)
{
        static const char digits[] = "0123456789abcdef";
        size_t n = 0;
        while (len) {
                unsigned char c = (unsigned char)bytes[0];
                size_t step = utf8_step(bytes, len);
                bool control = (c < 0x20 && !strchr("\n\t\r", c)) || c == 0 || c == 0x7f ||
                               (step == 2 && c == 0xc2 && (unsigned char)bytes[1] < 0xa0);
                if (control || !step) {
                        unsigned char shown = step == 2 ? (unsigned char)bytes[1] : c;
                        const char text[] = { '\\', 'x', digits[shown >> 4], digits[shown & 15] };
                        memcpy(out + n, text, sizeof text);
                        n += sizeof text;
                        step = step ? step : 1;
                } else {
                        memcpy(out + n, bytes, step);
                        n += step;
                }
                bytes += step;
                len -= step;
        }
        return n;
}

/* ---- tables ---- */

#define CELL_MAX 64
#define REASON_MAX 300

void cli_add_cell(struct buf *buf, int width, const char *text)
{
        char visible[4 * CELL_MAX + 1];
        size_t len = strlen(text);
        visible[cli_visible(text, len < CELL_MAX ? len : CELL_MAX, visible)] = 0;
        for (char *c = visible; *c; c++)
                *c = strchr("\n\t\r", *c) ? ' ' : *c;
        buf_printf(buf, "%-*s ", width, visible);
}

void cli_end_line(struct buf *buf)
{
        while (buf->len && buf->bytes[buf->len - 1] == ' ')
                buf->bytes[--buf->len] = 0;
        buf_add(buf, "\n", 1);
}

void cli_add_reason(struct buf *buf, const char *text)
{
        char visible[4 * REASON_MAX + 1];
        visible[cli_visible(text, strnlen(text, REASON_MAX), visible)] = 0;
        for (char *c = visible; *c; c++)
                *c = strchr("\n\t\r", *c) ? ' ' : *c;
        buf_printf(buf, "%s\n", visible);
}

void cli_add_time(struct buf *buf, int64_t ms)
{
        char text[40] = "-";
        if (ms) {
                time_print(ms, text, sizeof text);
                text[strlen("2026-11-21")] = ' ';
                text[strlen("2026-11-21 10:00")] = 0;
        }
        cli_add_cell(buf, 16, text);
}

json_t *cli_json_time(int64_t ms)
{
        char text[40];
        time_print(ms, text, sizeof text);
        return ms ? json_string(text) : json_null();
}

/* ---- JSON ---- */

void cli_print_json(json_t *json)
{
        char *text = model_write(json, JSON_INDENT(2) | MODEL_MEASURED);
        puts(text ? text : "null");
        free(text);
        json_decref(json);
}
