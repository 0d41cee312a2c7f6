/* The form codemie: the answers of CodeMie's executor. */
#include "engine/output/render_forms.h"

/* Whether standard error says what went wrong; the answer of CodeMie has no exit status. */
static bool is_reported(const struct render_parts *parts)
{
        return parts->error.len && (parts->result->status == status_FAILED || render_has_traceback(parts));
}

static void add_violations(const struct run_result *result, struct buf *buf)
{
        if (result->findings_n)
                buf_printf(buf, "Code failed security validation (%zu violation(s) detected):\n", result->findings_n);
        else
                buf_printf(buf, "Code failed security validation: %s\n", render_reason(result));
        for (size_t i = 0; i < result->findings_n; i++)
                buf_printf(buf, "  • [%s] %s\n", choices_severity.values[result->findings[i].severity].text,
                        result->findings[i].message);
        buf_printf(buf, "\nPlease review your code and remove any restricted operations.\n");
}

static void add_timeout(const struct render_parts *parts, double seconds, struct buf *buf)
{
        buf_printf(buf,
                "Code execution timed out after %g seconds. This may indicate an infinite loop or a "
                "resource-intensive operation. Please review your code and consider optimizing it.\n",
                seconds);
        if (parts->out.len)
                render_line(buf, "Output before that:");
        render_output(parts, buf);
        render_stderr(parts, "STDERR:\n", buf);
}

void render_codemie(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        double seconds;
        if (result->status == status_BLOCKED) {
                add_violations(result, buf);
                return;
        }
        if (render_time_limit(result, &seconds)) {
                add_timeout(parts, seconds, buf);
                return;
        }
        bool good = result->status == status_COMPLETED;
        if (!good)
                buf_printf(buf, "Code execution failed.\n\n");
        else if (!parts->out.len && !parts->error.len && !parts->value.len)
                render_line(buf, "Code executed successfully with no output.");
        render_output(parts, buf);
        render_stderr(parts, "STDERR:\n", buf);
        if (!good && !is_reported(parts))
                render_line(buf, render_reason(result));
}
