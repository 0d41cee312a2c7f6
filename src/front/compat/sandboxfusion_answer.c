/*
 * Answers of SandboxFusion, for /run_code (sandboxfusion.c) and /submit (sandboxfusion_submit.c): the errors of FastAPI
 * and pydantic, and the record of a run in the words of the service.
 */
#include "front/compat/sandboxfusion.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>

/* ---- errors in a request ---- */

void fusion_add_flaw(json_t *flaws, const char *type, const char *message, const char *field, json_t *part,
        json_t *input)
{
        json_t *place = json_pack("[s, s]", "body", field);
        if (part)
                json_array_append_new(place, part);
        json_array_append_new(flaws,
                json_pack("{s:s, s:o, s:s, s:O}", "type", type, "loc", place, "msg", message, "input", input));
}

json_t *fusion_flaws(json_t *flaws)
{
        return json_pack("{s:o}", "detail", flaws);
}

json_t *fusion_detail(const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        json_t *text = json_vsprintf(fmt, args);
        va_end(args);
        return json_pack("{s:o}", "detail", text);
}

json_t *fusion_no_json(const struct csn_error *error)
{
        return json_pack("[{s:s, s:[s], s:s, s:{}, s:{s:s}}]", "type", "json_invalid", "loc", "body", "msg",
                "JSON decode error", "input", "ctx", "error", error->text);
}

/* ---- records of runs ---- */

enum answer { SUCCESS, FAILED, SANDBOX_ERROR };

static bool was_cut(const struct run_result *result)
{
        return result->truncated.stdout_bytes || result->truncated.stderr_bytes;
}

/* A program with truncated output counts as failed: the rest of its output is unknown. */
static enum answer answer_of(const struct run_result *result)
{
        switch (result->status) {
        case status_COMPLETED:
                return was_cut(result) ? FAILED : SUCCESS;
        case status_FAILED:
        case status_BLOCKED:
        case status_SYNTAX_ERROR:
        case status_TIMEOUT:
        case status_MEMORY_EXCEEDED:
        case status_DISK_EXCEEDED:
        case status_PROCESS_LIMIT:
        case status_OUTPUT_LIMIT:
        case status_CRASHED:
                return FAILED;
        default:
                return SANDBOX_ERROR;
        }
}

/* The exit status, or the negative number of the signal, as for a parent process. */
static json_t *return_code(const struct run_result *result)
{
        if (result->status == status_TIMEOUT)
                return json_null();
        if (HAS(result, run_result, exit_code))
                return json_integer(result->exit_code);
        return json_integer(HAS(result, run_result, signal) ? -result->signal : -SIGKILL);
}

static json_t *run_result_of(const struct run_result *result, enum answer answer)
{
        if (answer == SANDBOX_ERROR || result->status == status_BLOCKED)
                return json_null();
        return json_pack("{s:s, s:f, s:o, s:o, s:o}", "status",
                result->status == status_TIMEOUT ? "TimeLimitExceeded" : "Finished", "execution_time",
                result->usage.wall_ms / 1000, "return_code", return_code(result), "stdout",
                json_text(result->stdout.bytes, result->stdout.len), "stderr",
                json_text(result->stderr.bytes, result->stderr.len));
}

/* Empty if the program ended by itself or by the time limit: stdout, stderr and return_code say the rest. */
static const char *message_of(const struct run_result *result)
{
        bool own = result->status == status_FAILED || result->status == status_SYNTAX_ERROR ||
                result->status == status_CRASHED || result->status == status_TIMEOUT ||
                result->status == status_COMPLETED;
        return own || !HAS(result, run_result, error) ? "" : result->error.message;
}

static json_t *answer_with(enum answer answer, json_t *message, json_t *run, json_t *files)
{
        static const char *const names[] = { "Success", "Failed", "SandboxError" };
        return json_pack("{s:s, s:o, s:n, s:o, s:n, s:o}", "status", names[answer], "message", message,
                "compile_result", "run_result", run, "executor_pod_name", "files", files);
}

json_t *fusion_no_run(const struct csn_error *error)
{
        return answer_with(SANDBOX_ERROR, json_text(error->text, strlen(error->text)), json_null(), json_object());
}

json_t *fusion_answer(const struct run_result *result, json_t *files)
{
        enum answer answer = answer_of(result);
        const char *message = message_of(result);
        json_t *text = json_text(message, strlen(message));
        if (result->status == status_COMPLETED && was_cut(result)) {
                json_decref(text);
                text = json_sprintf("the output is longer than output_bytes=%" PRIu64 " allows, and was cut",
                        result->limits.output_bytes);
        }
        return answer_with(answer, text, run_result_of(result, answer), files);
}

bool fusion_succeeded(const struct run_result *result)
{
        return answer_of(result) == SUCCESS;
}
