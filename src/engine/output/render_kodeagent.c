/*
 * The form kodeagent: kodeagent's observation for its model.  Standard output comes first, then standard error; any
 * other end of the program is an exception of kodeagent's code runner.
 */
#include "engine/output/render_forms.h"

static bool begins_with(const char *text, const char *word)
{
        return strncmp(text, word, strlen(word)) == 0;
}

/* The type of the exception with which kodeagent, or Python, reports such an end. */
static const char *type_of(const struct run_result *result)
{
        static const struct { int status; const char *type; } rows[] = {
                { status_BLOCKED, "CodeSecurityError" },
                { status_TIMEOUT, "TimeoutError" },
                { status_MEMORY_EXCEEDED, "MemoryError" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].status == result->status)
                        return rows[i].type;
        return begins_with(render_reason(result), "Unsupported code execution env: ") ? "UnknownCodeEnvError"
                                                                                      : "RuntimeError";
}

static void add_exception(const struct run_result *result, const char *before, const char *reason, struct buf *buf)
{
        render_new_line(buf);
        buf_printf(buf, "*** Error running code: %s: %s%s\n", type_of(result), before, reason);
}

static void add_syntax_error(const struct run_result *result, struct buf *buf)
{
        const struct failure *error = &result->error;
        buf_printf(buf, "Code parsing failed due to: SyntaxError\n%s\nError: %s\n",
                HAS(error, failure, text) ? error->text : "", render_reason(result));
}

static bool has_rule(const struct run_result *result, const char *rule)
{
        for (size_t i = 0; i < result->findings_n; i++)
                if (strcmp(result->findings[i].rule, rule) == 0)
                        return true;
        return false;
}

/* A refused import was a result of kodeagent's runner, and each other refusal an exception. */
static void add_refusal(const struct run_result *result, struct buf *buf)
{
        const char *reason = render_reason(result);
        if (HAS(result, run_result, review) && result->review.verdict == review_verdict_INSECURE)
                add_exception(result, "Code execution blocked due to security concerns: ",
                        result->review.reason ? result->review.reason : reason, buf);
        else if (has_rule(result, "disallowed_import"))
                render_line(buf, reason);
        else if (begins_with(reason, "Critical security violations: ") || begins_with(reason, "High risk score ("))
                add_exception(result, "Pattern detection blocked: ", reason, buf);
        else
                add_exception(result, "", reason, buf);
}

void render_kodeagent(const struct render_parts *parts, struct buf *buf)
{
        const struct run_result *result = parts->result;
        if (result->status == status_SYNTAX_ERROR) {
                add_syntax_error(result, buf);
                return;
        }
        if (result->status == status_BLOCKED) {
                add_refusal(result, buf);
                return;
        }
        render_output(parts, buf);
        render_stderr(parts, "", buf);
        bool reported = result->status == status_FAILED && parts->error.len;
        if (result->status != status_COMPLETED && !reported)
                add_exception(result, "", render_reason(result), buf);
}
