/* The form linx: the answers of LinX' tool code_execution. */
#include "engine/output/render_forms.h"

/* The engine could not carry out the run; the tool of LinX raised an exception in this case. */
static bool is_refused(int status)
{
        return status == status_BAD_REQUEST || status == status_CAPACITY || status == status_ENGINE_ERROR ||
                status == status_ISOLATION_UNAVAILABLE || status == status_UNSUPPORTED_LANGUAGE;
}

void render_linx(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        size_t printed = parts->out.len + parts->error.len + parts->value.len;
        if (result->status == status_COMPLETED) {
                render_line(buf, printed ? "Code executed successfully:" : "Code executed successfully (no output)");
                render_output(parts, buf);
                render_stderr(parts, "STDERR:\n", buf);
                return;
        }
        if (is_refused(result->status)) {
                buf_printf(buf, "Code execution error: %s\n", render_reason(result));
                return;
        }
        render_line(buf, "Code execution failed:");
        render_stderr(parts, "", buf);
        if (!render_has_traceback(parts))
                render_line(buf, render_reason(result));
        if (parts->out.len)
                render_line(buf, "Output before that:");
        render_output(parts, buf);
}
