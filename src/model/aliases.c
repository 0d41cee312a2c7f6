/*
 * Field names of older systems for the content of our record, for programs written for these systems.  The names
 * are members of an object "aliases", present only on request: some repeat the output.
 */
#include "model/model.h"

#include <stdio.h>

/* ---- runs ---- */

static json_t *alias_success(const struct run_result *r)
{
        return json_boolean(r->status == status_COMPLETED);
}
static json_t *text_of(const struct bytes *bytes)
{
        struct arena arena = { 0 };
        size_t len;
        const char *text = model_utf8(&arena, bytes->bytes ? bytes->bytes : "", bytes->len, &len);
        json_t *json = json_stringn(text, len);
        arena_done(&arena);
        return json;
}
static json_t *alias_stdout(const struct run_result *r) { return text_of(&r->stdout); }
static json_t *alias_id(const struct run_result *r) { return json_string(r->id); }
/* -1 for code that never ran: for a syntax error the interpreter has an exit status of its own. */
static json_t *alias_return_code(const struct run_result *r)
{
        return json_integer(HAS(r, run_result, exit_code) && r->status != status_SYNTAX_ERROR ? r->exit_code : -1);
}
static json_t *alias_error(const struct run_result *r)
{
        const struct failure *error = &r->error;
        const char *text = HAS(error, failure, summary) ? error->summary : error->message;
        return json_string(HAS(r, run_result, error) && text ? text : "");
}
/* agentos' sentences for code refused by its sandbox, and the error's own sentence for all else. */
static json_t *exception_of(int status, const struct failure *error)
{
        const char *message = error->message ? error->message : "";
        double seconds;
        if (status == status_BLOCKED)
                return json_string("Security check failed");
        if (status == status_SYNTAX_ERROR && HAS(error, failure, line))
                return json_sprintf("Syntax error: Line %llu: %s", (unsigned long long)error->line, message);
        if (status == status_TIMEOUT && sscanf(message, "Execution timeout after %lf second", &seconds) == 1)
                return json_sprintf("Timeout after %gs", seconds);
        return json_string(HAS(error, failure, summary) ? error->summary : message);
}
static json_t *alias_exception(const struct run_result *r) { return exception_of(r->status, &r->error); }
static json_t *alias_files(const struct run_result *r)
{
        json_t *list = json_array();
        for (size_t i = 0; i < r->files_n; i++)
                json_array_append_new(list, json_string(r->files[i].name));
        return list;
}
static json_t *alias_seconds(const struct run_result *r) { return json_real(r->usage.wall_ms / 1000); }
static json_t *alias_memory_mb(const struct run_result *r)
{
        return json_real((double)r->usage.memory_peak_bytes / (double)MIB);
}
static json_t *alias_value(const struct run_result *r)
{
        if (!HAS(r, run_result, result) || !r->result.value)
                return json_null();
        json_t *json = model_read(r->result.value, strlen(r->result.value), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        return json ? json : json_null();
}
static json_t *alias_metrics(const struct run_result *r) { return model_encode(&object_usage, &r->usage); }
static json_t *alias_list(const struct run_result *r) { (void)r; return json_array(); }
static json_t *alias_false(const struct run_result *r) { (void)r; return json_false(); }
static json_t *alias_started(const struct run_result *r)
{
        return r->started_at ? json_string(r->started_at) : json_null();
}
static json_t *alias_finished(const struct run_result *r)
{
        return r->finished_at ? json_string(r->finished_at) : json_null();
}
static json_t *alias_findings(const struct run_result *r)
{
        json_t *list = json_array();
        for (size_t i = 0; i < r->findings_n; i++)
                json_array_append_new(list, model_encode(&object_finding, &r->findings[i]));
        return list;
}

static const struct {
        const char *name;
        json_t *(*make)(const struct run_result *result);
} aliases[] = {
        { "success", alias_success },
        { "output", alias_stdout },
        { "execution_id", alias_id },
        { "sandbox_id", alias_id },
        { "return_code", alias_return_code },
        { "error", alias_error },
        { "exception", alias_exception },
        { "generated_files", alias_files },
        { "duration", alias_seconds },
        { "execution_time", alias_seconds },
        { "execution_time_seconds", alias_seconds },
        { "max_memory_mb", alias_memory_mb },
        { "return_value", alias_value },
        { "metrics", alias_metrics },
        { "validation_result", alias_findings },
        { "test_results", alias_list },
        { "all_passed", alias_false },
        { "completed_at", alias_finished },
        { "started_at", alias_started },
};

void model_add_aliases(json_t *record, const struct run_result *result)
{
        json_t *object = json_object();
        for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
                json_object_set_new(object, aliases[i].name, aliases[i].make(result));
        json_object_set_new(record, "aliases", object);
}

/* ---- gradings ---- */

/* Milliseconds with two decimals. */
static double rounded(double ms)
{
        return (double)(uint64_t)(ms * 100 + 0.5) / 100;
}

static json_t *text(const char *from)
{
        const struct bytes bytes = { (char *)(uintptr_t)from, from ? strlen(from) : 0 };
        return text_of(&bytes);
}

static json_t *test_result(const struct case_result *one)
{
        return json_pack("{s:o, s:b, s:o, s:o, s:o, s:f}", "name", text(one->name), "passed", (int)one->passed,
                "output", text(one->output), "expected",
                text(HAS(one, case_result, expected) ? one->expected : NULL), "detail", text(one->detail),
                "duration_ms", rounded(one->duration_ms));
}

void model_add_grade_aliases(json_t *record, const struct grade_result *result)
{
        json_t *tests = json_array();
        bool good = result->status == status_COMPLETED;
        for (size_t i = 0; i < result->cases_n; i++)
                json_array_append_new(tests, test_result(&result->cases[i]));
        json_object_set_new(record, "aliases",
                json_pack("{s:b, s:i, s:o, s:o, s:o, s:f, s:f, s:o, s:b}", "success",
                        (int)(good && (result->all_passed || !result->total)), "exit_code", good ? 0 : -1, "stdout",
                        text_of(&result->stdout), "stderr", text_of(&result->stderr), "exception",
                        exception_of(result->status, &result->error), "duration", result->wall_ms / 1000,
                        "max_memory_mb", (double)result->memory_peak_bytes / (double)MIB, "test_results", tests,
                        "all_passed", (int)result->all_passed));
}
