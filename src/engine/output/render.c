/*
 * The record as text: the table of the forms, and Caisson's own forms plain and brief.  The form of an older system has
 * the sentences of the older system; parts left out by the older system follow.
 */
#include "engine/output/render_forms.h"

#include <inttypes.h>

/* ---- the parts of a record ---- */

/* Without blanks at the end, as a model would strip them. */
static struct bytes stripped(const struct bytes *bytes)
{
        struct bytes copy = *bytes;
        while (copy.len && strchr(" \t\r\n", copy.bytes[copy.len - 1]))
                copy.len--;
        return copy;
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

/* ---- files ---- */

/* U+0080 to U+009F (for terminals), U+2028 to U+202E and U+2066 to U+2069 (ends of lines, directions of text). */
static bool is_hidden(const unsigned char *at)
{
        return (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f) ||
                (at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0xa8 && at[2] <= 0xae) ||
                (at[0] == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
}

/* In quotes, on one line: the program chooses the name, which must not look like another line. */
static void add_name(struct buf *buf, const char *name)
{
        unsigned hidden = 0; /* bytes left of a hidden character */
        for (const char *at = name; *at; at++) {
                if (is_hidden((const unsigned char *)at))
                        hidden = *(const unsigned char *)at == 0xc2 ? 2 : 3;
                if (hidden || (unsigned char)*at < 0x20 || *at == 0x7f)
                        buf_printf(buf, "\\x%02x", (unsigned char)*at);
                else
                        buf_printf(buf, *at == '\'' || *at == '\\' ? "\\%c" : "%c", *at);
                hidden -= hidden > 0;
        }
}

/* A line for each exported file, so that a model can link the file, and for each failed export. */
static void add_files(const struct run_result *result, struct buf *buf)
{
        for (size_t i = 0; i < result->files_n; i++) {
                const struct output_file *file = &result->files[i];
                const char *place = HAS(file, output_file, url) ? file->url
                        : HAS(file, output_file, path)          ? file->path
                                                                : NULL;
                if (!place && !HAS(file, output_file, error))
                        continue;
                render_new_line(buf);
                buf_printf(buf, "File '");
                add_name(buf, file->name);
                buf_printf(buf, "': %s%s\n", place ? "" : "not exported: ", place ? place : file->error);
        }
}

/* ---- Caisson's own forms ---- */

/* Output and value, then "STDERR: ..." on its own line, then the reason of a failure. */
static void plain(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        render_output(parts, buf);
        render_stderr(parts, "STDERR: ", buf);
        if (result->status != status_COMPLETED) {
                render_new_line(buf);
                buf_printf(buf, "%s: %s\n", status_name(result->status), render_reason(result));
        }
}

/* The first and the last part of a text: the useful end of a traceback stays. */
static void add_cut(struct buf *buf, const struct bytes *bytes, size_t max)
{
        if (bytes->len <= max) {
                buf_add(buf, bytes->bytes ? bytes->bytes : "", bytes->len);
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

#define BRIEF_STREAM_MAX 500       /* bytes of a stream or value */
#define BRIEF_SENTENCE_MAX 300     /* bytes of a sentence of the feedback */

static void add_brief_part(struct buf *buf, const char *title, const struct bytes *bytes)
{
        if (!bytes->len)
                return;
        buf_printf(buf, "%s:\n", title);
        add_cut(buf, bytes, BRIEF_STREAM_MAX);
        buf_add(buf, "\n", 1);
}

static void brief(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        buf_printf(buf, "status: %s", status_name(result->status));
        if (HAS(result, run_result, exit_code))
                buf_printf(buf, ", exit_code: %" PRId64, result->exit_code);
        buf_printf(buf, ", duration: %.2fs, memory: %.1f MB\n", result->usage.wall_ms / 1000,
                   (double)result->usage.memory_peak_bytes / 1e6);
        add_brief_part(buf, "stdout", &parts->out);
        add_brief_part(buf, "value", &parts->value);
        add_brief_part(buf, "stderr", &parts->error);
        for (size_t i = 0; i < result->feedback_n; i++) {
                const struct bytes sentence = { result->feedback[i], strlen(result->feedback[i]) };
                add_cut(buf, &sentence, BRIEF_SENTENCE_MAX);
                buf_add(buf, "\n", 1);
        }
}

/* ---- all forms ---- */

static void (*const forms[])(const struct render_parts *parts, struct buf *buf) = {
        [text_form_PLAIN] = plain,
        [text_form_BRIEF] = brief,
        [text_form_KODEAGENT] = render_kodeagent,
        [text_form_AGENTOS] = render_agentos,
        [text_form_LINX] = render_linx,
        [text_form_CODEMIE] = render_codemie,
        [text_form_MCP_LIGHT] = render_mcp_light,
};

void render_text(int form, const struct run_result *result, struct buf *buf)
{
        const struct render_parts parts = { .result = result,
                .out = stripped(&result->stdout),
                .error = stripped(&result->stderr),
                .value = value_of(result) };
        forms[form](&parts, buf);
        add_files(result, buf);
        if (!buf->len)
                buf_add(buf, "\n", 1);
}
