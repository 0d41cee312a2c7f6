/*
 * The form agentos: the sentences of agentos' code sandbox and of its extractor of feedback.  The extractor read the
 * last lines of standard error; this form has the same lines.
 */
#include "engine/output/render_forms.h"

#include <inttypes.h>

#define TAIL_LINES 5               /* last lines of standard error */

/* Where the last lines of a text begin. */
static size_t tail_of(const struct bytes *text)
{
        size_t at = text->len;
        for (unsigned lines = 0; at; at--)
                if (text->bytes[at - 1] == '\n' && ++lines == TAIL_LINES)
                        break;
        return at;
}

static void add_violations(const struct run_result *result, struct buf *buf)
{
        buf_printf(buf, "Security check failed\nSECURITY VIOLATION: ");
        for (size_t i = 0; i < result->findings_n; i++)
                buf_printf(buf, "%s%s", i ? "; " : "", result->findings[i].message);
        buf_printf(buf, "%s\nCode violates sandbox security rules; avoid system calls and I/O.\n",
                result->findings_n ? "" : render_reason(result));
        for (size_t i = 0; i < result->findings_n; i++)
                buf_printf(buf, "Line %" PRIu64 ": %s\n", result->findings[i].line, result->findings[i].message);
}

static void add_syntax_error(const struct run_result *result, struct buf *buf)
{
        const struct failure *error = &result->error;
        if (HAS(error, failure, line))
                buf_printf(buf, "Syntax error: Line %" PRIu64 ": %s\n", error->line, render_reason(result));
        else
                buf_printf(buf, "Syntax error: %s\n", render_reason(result));
}

/* The end of standard error, which has the exception; other ends have the engine's sentence. */
static void add_failure(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        size_t from = tail_of(&parts->error);
        double seconds;
        if (parts->error.len) {
                render_new_line(buf);
                buf_printf(buf, "STDERR: ");
                buf_add(buf, parts->error.bytes + from, parts->error.len - from);
                buf_add(buf, "\n", 1);
        }
        render_new_line(buf);
        if (render_time_limit(result, &seconds))
                buf_printf(buf, "Timeout after %gs\n", seconds);
        else if (!render_has_traceback(parts))
                render_line(buf, render_reason(result));
}

void render_agentos(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        if (result->status == status_BLOCKED) {
                add_violations(result, buf);
                return;
        }
        if (result->status == status_SYNTAX_ERROR) {
                add_syntax_error(result, buf);
        } else {
                render_output(parts, buf);
                if (result->status != status_COMPLETED)
                        add_failure(parts, buf);
                else
                        render_stderr(parts, "STDERR: ", buf);
        }
        if (result->status == status_COMPLETED && !buf->len)
                render_line(buf, "Code executed, no tests");
        else if (HAS(&result->error, failure, hint))
                render_line(buf, result->error.hint);
        else if (result->status == status_FAILED)
                render_line(buf, "Code failed to execute. Check logic and edge cases.");
}
