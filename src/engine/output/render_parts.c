/* Parts of a record shared by the forms of render: streams, value, reason. */
#include "engine/output/render_forms.h"

void render_new_line(struct buf *buf)
{
        if (buf->len && buf->bytes[buf->len - 1] != '\n')
                buf_add(buf, "\n", 1);
}

void render_line(struct buf *buf, const char *text)
{
        if (!text[0])
                return;
        render_new_line(buf);
        buf_add(buf, text, strlen(text));
        buf_add(buf, "\n", 1);
}

/*
 * Append a stream, with a mark at the place where its middle was cut; without the mark, the lines before and after the
 * cut would read as one line.  The cut is moved back to the begin of a UTF-8 character.
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

void render_output(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        if (parts->out.len || result->truncated.stdout_bytes) {
                render_new_line(buf);
                add_stream(buf, &parts->out, result->truncated.stdout_bytes, result);
                buf_add(buf, "\n", 1);
        }
        if (!parts->value.len)
                return;
        render_new_line(buf);
        buf_add(buf, parts->value.bytes, parts->value.len);
        buf_printf(buf, "%s\n", result->result.truncated ? "\n... (value truncated)" : "");
}

void render_stderr(const struct render_parts *parts, const char *title, struct buf *buf)
{
        if (!parts->error.len && !parts->result->truncated.stderr_bytes)
                return;
        render_new_line(buf);
        buf_add(buf, title, strlen(title));
        add_stream(buf, &parts->error, parts->result->truncated.stderr_bytes, parts->result);
        buf_add(buf, "\n", 1);
}

const char *render_reason(const struct run_result *result)
{
        return HAS(result, run_result, error) && result->error.message ? result->error.message
                                                                       : status_name(result->status);
}

bool render_has_traceback(const struct render_parts *parts)
{
        const struct run_result *result = parts->result;
        return parts->error.len && result->error.type &&
                (result->status == status_FAILED || result->status == status_SYNTAX_ERROR);
}

bool render_time_limit(const struct run_result *result, double *ret_seconds)
{
        const char *limit = HAS(&result->error, failure, limit) ? result->error.limit : "wall_ms";
        if (result->status != status_TIMEOUT || strcmp(limit, "cpu_ms_per_day") == 0)
                return false;
        *ret_seconds = (double)(strcmp(limit, "cpu_ms") == 0 ? result->limits.cpu_ms : result->limits.wall_ms) / 1000;
        return true;
}
