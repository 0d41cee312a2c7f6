/*
 * Standard input cases of Python in one sandbox: each fork of the runner executes the submission as its main program
 * (role `cases`).  The output of the process is the answer, and is compared outside of the sandbox.
 */
#include "grading/grading_private.h"

#include <stdio.h>

#define TEXT_MAX (1 * MIB)             /* bytes of an input or an expected output; a longer text has a sandbox */

bool program_can_fork(const struct grading *grading, const struct grade_case *given)
{
        return grading->language == &lang_python && HAS(given, grade_case, expected_stdout) &&
                !HAS(given, grade_case, argv) && given->stdin.len <= TEXT_MAX &&
                given->expected_stdout.len <= TEXT_MAX;
}

json_t *program_encode(const struct grade_case *given)
{
        json_t *json = json_pack("{s:I}", "keep", (json_int_t)stream_bytes_kept(given));
        json_t *text = json_stringn(given->stdin.bytes ? given->stdin.bytes : "", given->stdin.len);
        if (text) {
                json_object_set_new(json, "stdin", text);
                return json;
        }
        struct arena arena = { 0 };
        char *base64 = model_base64(&arena, given->stdin.bytes, given->stdin.len);
        json_object_set_new(json, "stdin_base64", json_string(base64));
        arena_done(&arena);
        return json;
}

/* The bytes of the member `output` or `output_base64`, from the arena. */
static bool take_output(struct grading *grading, const json_t *message, struct bytes *ret)
{
        const json_t *text = json_object_get(message, "output");
        if (json_is_string(text)) {
                ret->len = json_string_length(text);
                ret->bytes = arena_copy(&grading->arena, json_string_value(text), ret->len);
                return true;
        }
        const char *base64 = json_string_value(json_object_get(message, "output_base64"));
        return base64 && model_unbase64(&grading->arena, base64, strlen(base64), ret);
}

static void note_error(struct grading *grading, struct case_result *result, const json_t *error)
{
        json_int_t line = json_integer_value(json_object_get(error, "line"));
        char *type = grading_text(grading, json_string_value(json_object_get(error, "type")));
        if (type)
                SET(result, case_result, error_type, type);
        if (line > 0)
                SET(result, case_result, line, (uint64_t)line);
}

static void settle_exited(struct grading *grading, size_t i, const json_t *message, const struct bytes *output)
{
        struct slot *slot = &grading->slots[i];
        json_int_t total = json_integer_value(json_object_get(message, "output_bytes")),
                   code = json_integer_value(json_object_get(message, "exit_code"));
        const json_t *error = json_object_get(message, "error");
        if (code) {
                const char *type = json_string_value(json_object_get(error, "type")),
                           *text = json_string_value(json_object_get(error, "message"));
                note_error(grading, slot->result, error);
                if (type)
                        slot_settle(slot, &grading->arena, case_status_ERROR, "%.200s: %.600s", type, text ? text : "");
                else
                        slot_settle(slot, &grading->arena, case_status_ERROR, "the exit status is %lld",
                                (long long)code);
                return;
        }
        stream_settle(grading, i, output, total > 0 ? (uint64_t)total : 0);
}

bool program_take(struct grading *grading, size_t i, const json_t *message)
{
        struct slot *slot = &grading->slots[i];
        struct bytes output;
        const char *how = json_string_value(json_object_get(message, "how")),
                   *by = json_string_value(json_object_get(message, "by"));
        if (!how || !take_output(grading, message, &output))
                return false;
        slot->answered = true;
        grading_note(grading, slot->result, message);
        grading_signs(grading, json_object_get(message, "signs"), slot->result->name);
        stream_show(grading, i, &output);
        if (strcmp(how, "exited") == 0)
                settle_exited(grading, i, message, &output);
        else if (strcmp(how, "timeout") == 0)
                slot_settle(slot, &grading->arena, case_status_TIMEOUT, "Timeout after %.3gs%s",
                        (by && strcmp(by, "cpu") == 0 ? slot->result->cpu_ms : slot->result->duration_ms) / 1000,
                        by && strcmp(by, "cpu") == 0 ? " of CPU time" : "");
        else if (strcmp(how, "signalled") == 0)
                slot_settle(slot, &grading->arena, case_status_CRASH, "ended by signal %lld",
                        (long long)json_integer_value(json_object_get(message, "signal")));
        else
                return false;
        return true;
}
