/* The record as text, in the forms that models were trained to read; each one file's worth of an older system. */
#include "engine/output/render.h"

#include <inttypes.h>

static const char render_formats[] = "plain, brief, linx, codemie";

static void add_bytes(struct buf *buf, const struct bytes *bytes)
{
        buf_add(buf, bytes->bytes ? bytes->bytes : "", bytes->len);
}

/* Without blanks at the end, as a model would strip them. */
static struct bytes stripped(const struct bytes *bytes)
{
        struct bytes copy = *bytes;
        while (copy.len && strchr(" \t\r\n", copy.bytes[copy.len - 1]))
                copy.len--;
        return copy;
}

/*
 * A stream as it was kept, with a mark where its middle is missing: without one the line before and the line after read
 * as one. What was left out at the edges for being half a character moves the place by as much.
 */
static void add_stream(struct buf *buf, const struct bytes *bytes, uint64_t missing, const struct run_result *result)
{
        size_t head = missing ? min_u64(bytes->len, result->limits.output_bytes - result->limits.output_bytes / 2)
                              : bytes->len;
        while (head && head < bytes->len && ((unsigned char)bytes->bytes[head] & 0xc0) == 0x80)
                head--;
        buf_add(buf, bytes->bytes ? bytes->bytes : "", head);
        if (missing)
                buf_printf(buf, "\n... (output truncated)%s", head < bytes->len ? "\n" : "");
        if (head < bytes->len)
                buf_add(buf, bytes->bytes + head, bytes->len - head);
}

/* In quotes, on one line: a name is the program's to choose, and must not be able to look like another line. */
static void add_name(struct buf *buf, const char *name)
{
        for (const char *at = name; *at; at++) {
                if ((unsigned char)*at < 0x20 || *at == 0x7f)
                        buf_printf(buf, "\\x%02x", (unsigned char)*at);
                else
                        buf_printf(buf, *at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
        }
}

/* A line for each file that is kept, so that a model can link it. */
static void add_files(const struct run_result *result, struct buf *buf)
{
        for (size_t i = 0; i < result->files_n; i++) {
                const struct output_file *file = &result->files[i];
                if (!HAS(file, output_file, url))
                        continue;
                if (buf->len && buf->bytes[buf->len - 1] != '\n')
                        buf_add(buf, "\n", 1);
                buf_printf(buf, "File '");
                add_name(buf, file->name);
                buf_printf(buf, "': %s\n", file->url);
        }
}

static const char *reason(const struct run_result *result)
{
        return HAS(result, run_result, error) && result->error.message ? result->error.message
                                                                       : status_name(result->status);
}

/* The program's value as text; of length 0 without one.  The bytes belong to the result. */
static struct bytes value_of(const struct run_result *result)
{
        const struct value *value = &result->result;
        const char *text = HAS(value, value, value) ? value->value : HAS(value, value, repr) ? value->repr : "";
        for (size_t i = 0; i < value->data_n; i++)
                if (strcmp(value->data[i].name, "text/plain") == 0)
                        text = value->data[i].value;
        bool is_there = HAS(result, run_result, result);
        return (struct bytes){ (char *)(uintptr_t)text, is_there ? strlen(text) : 0 };
}

static const char *value_end(const struct run_result *result)
{
        return HAS(result, run_result, result) && result->result.truncated ? "\n... (value truncated)" : "";
}

/* On lines of its own below what was printed. */
static void add_value(struct buf *buf, const struct bytes *value, const struct run_result *result)
{
        if (!value->len)
                return;
        buf_printf(buf, "%s", buf->len && buf->bytes[buf->len - 1] != '\n' ? "\n" : "");
        add_bytes(buf, value);
        buf_printf(buf, "%s", value_end(result));
}

/* Output and value, then "STDERR: ..." on its own line, then what went wrong. */
static void plain(const struct run_result *result, struct buf *buf)
{
        struct bytes out = stripped(&result->stdout), error = stripped(&result->stderr), value = value_of(result);
        add_stream(buf, &out, result->truncated.stdout_bytes, result);
        add_value(buf, &value, result);
        if (error.len) {
                buf_printf(buf, "%sSTDERR: ", buf->len ? "\n" : "");
                add_stream(buf, &error, result->truncated.stderr_bytes, result);
        }
        if (result->status != status_COMPLETED)
                buf_printf(buf, "%s%s: %s", buf->len ? "\n" : "", status_name(result->status), reason(result));
        buf_add(buf, "\n", 1);
}

/* The first and the last part of a text, so that the useful end of a traceback stays. */
static void add_cut(struct buf *buf, const struct bytes *bytes, size_t max)
{
        if (bytes->len <= max) {
                add_bytes(buf, bytes);
                return;
        }
        size_t head = max / 2, tail = max - head;
        while (head && ((unsigned char)bytes->bytes[head] & 0xc0) == 0x80)
                head--;
        while (tail && ((unsigned char)bytes->bytes[bytes->len - tail] & 0xc0) == 0x80)
                tail--;
        buf_add(buf, bytes->bytes, head);
        buf_printf(buf, "\n... (%zu bytes omitted)\n", bytes->len - head - tail);
        buf_add(buf, bytes->bytes + bytes->len - tail, tail);
}

static void add_brief_part(struct buf *buf, const char *title, const struct bytes *bytes)
{
        if (!bytes->len)
                return;
        buf_printf(buf, "%s:\n", title);
        add_cut(buf, bytes, 500);
        buf_add(buf, "\n", 1);
}

static void brief(const struct run_result *result, struct buf *buf)
{
        struct bytes out = stripped(&result->stdout), error = stripped(&result->stderr), value = value_of(result);
        buf_printf(buf, "status: %s", status_name(result->status));
        if (HAS(result, run_result, exit_code))
                buf_printf(buf, ", exit_code: %" PRId64, result->exit_code);
        buf_printf(buf, ", duration: %.2fs, memory: %.1f MB\n", result->usage.wall_ms / 1000,
                   (double)result->usage.memory_peak_bytes / 1e6);
        add_brief_part(buf, "stdout", &out);
        add_brief_part(buf, "value", &value);
        add_brief_part(buf, "stderr", &error);
        for (size_t i = 0; i < result->feedback_n; i++)
                buf_printf(buf, "%.300s\n", result->feedback[i]);
}

/* A stream on lines of its own, below its title; nothing where it is empty. */
static void add_part(struct buf *buf, const char *title, const struct bytes *bytes, uint64_t missing,
        const struct run_result *result)
{
        if (!bytes->len)
                return;
        buf_printf(buf, "%s", title);
        add_stream(buf, bytes, missing, result);
        buf_add(buf, "\n", 1);
}

/* The sentences of the older systems come first as they were; what they left out of what was printed follows them. */
#define PRINTED_BEFORE "Output before that:\n"

static void linx(const struct run_result *result, struct buf *buf)
{
        struct bytes out = stripped(&result->stdout), error = stripped(&result->stderr), value = value_of(result);
        if (result->status == status_COMPLETED) {
                buf_printf(buf,
                        out.len || error.len || value.len ? "Code executed successfully:\n"
                                                          : "Code executed successfully (no output)\n");
                add_part(buf, "", &out, result->truncated.stdout_bytes, result);
                add_value(buf, &value, result);
                buf_printf(buf, value.len ? "\n" : "");
                add_part(buf, "STDERR:\n", &error, result->truncated.stderr_bytes, result);
        } else {
                buf_printf(buf, "Code execution failed:\n");
                add_part(buf, "", &error, result->truncated.stderr_bytes, result);
                buf_printf(buf, "%s\n", reason(result));
                add_part(buf, PRINTED_BEFORE, &out, result->truncated.stdout_bytes, result);
        }
}

/* Whether standard error says what went wrong: an exit status says no more, and of a limit it knows nothing. */
static bool is_told(const struct run_result *result)
{
        return result->stderr.len &&
                (result->status == status_FAILED || (result->status == status_SYNTAX_ERROR && result->error.type));
}

static void codemie(const struct run_result *result, struct buf *buf)
{
        struct bytes out = stripped(&result->stdout), error = stripped(&result->stderr), value = value_of(result);
        if (result->status == status_TIMEOUT) {
                buf_printf(buf,
                        "Code execution timed out after %g seconds. This may indicate an infinite loop or a resource-intensive "
                        "operation. Please review your code and consider optimizing it.\n",
                        (double)result->limits.wall_ms / 1000);
                add_part(buf, PRINTED_BEFORE, &out, result->truncated.stdout_bytes, result);
                add_part(buf, "STDERR:\n", &error, result->truncated.stderr_bytes, result);
                return;
        }
        bool good = result->status == status_COMPLETED;
        if (!good)
                buf_printf(buf, "Code execution failed.\n\n");
        if (good && !out.len && !error.len && !value.len)
                buf_printf(buf, "Code executed successfully with no output.");
        add_stream(buf, &out, result->truncated.stdout_bytes, result);
        add_value(buf, &value, result);
        if (error.len) {
                buf_printf(buf, "%sSTDERR:\n", out.len || value.len ? "\n" : "");
                add_stream(buf, &error, result->truncated.stderr_bytes, result);
        }
        if (!good && !is_told(result))
                buf_printf(buf, "%s%s", out.len || error.len ? "\n" : "", reason(result));
        buf_add(buf, "\n", 1);
}

int render_text(const char *format, const struct run_result *result, struct buf *buf, struct csn_error *err)
{
        static const struct {
                const char *name;
                void (*render)(const struct run_result *result, struct buf *buf);
        } formats[] = { { "plain", plain }, { "brief", brief }, { "linx", linx }, { "codemie", codemie } };
        for (size_t i = 0; i < ARRAY_LEN(formats); i++)
                if (strcmp(formats[i].name, format) == 0) {
                        formats[i].render(result, buf);
                        add_files(result, buf);
                        return 0;
                }
        return err_field(err, "--format", "there is no format \"%.40s\"; known are %s", format, render_formats);
}
