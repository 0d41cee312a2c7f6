/* The form mcp-light: the output of the light executor with an object of tools, then its error. */
#include "engine/output/render_forms.h"

#include <inttypes.h>

#define REFUSAL "Forbidden operation detected: '"

/* The message of a finding of the policy mcp-light is such a sentence already. */
static void add_refusal(const struct run_result *result, struct buf *buf)
{
        if (!result->findings_n)
                render_line(buf, render_reason(result));
        for (size_t i = 0; i < result->findings_n; i++) {
                const struct finding *finding = &result->findings[i];
                if (strncmp(finding->message, REFUSAL, strlen(REFUSAL)) == 0)
                        buf_printf(buf, "%s", finding->message);
                else
                        buf_printf(buf,
                                REFUSAL "%s'. Cannot execute code that accesses filesystem, network, or OS.",
                                finding->rule);
                buf_printf(buf, " (line %" PRIu64 ")\n", finding->line);
        }
}

static void add_error(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        const struct failure *error = &result->error;
        double seconds;
        render_new_line(buf);
        if (result->status == status_BLOCKED)
                add_refusal(result, buf);
        else if (result->status == status_SYNTAX_ERROR && HAS(error, failure, line))
                buf_printf(buf, "Syntax error: %s (line %" PRIu64 ")\n", render_reason(result), error->line);
        else if (result->status == status_SYNTAX_ERROR)
                buf_printf(buf, "Syntax error: %s\n", render_reason(result));
        else if (render_time_limit(result, &seconds))
                buf_printf(buf, "TimeoutError: Code execution exceeded timeout of %g seconds\n", seconds);
        else if (!render_has_traceback(parts))
                render_line(buf, render_reason(result));
}

void render_mcp_light(const struct render_parts *parts, struct buf *buf)
{
        render_output(parts, buf);
        if (parts->result->status != status_SYNTAX_ERROR)   /* its error is the sentence below */
                render_stderr(parts, "STDERR: ", buf);
        if (parts->result->status != status_COMPLETED)
                add_error(parts, buf);
}
