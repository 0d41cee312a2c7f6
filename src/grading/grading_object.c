/* Helpers of all grading phases: clocks, texts, slots, signs of tampering, failure, and another try. */
#include "grading/grading_private.h"

#include <stdio.h>

#define BUSY_MS 50             /* before the next try; doubled with each try */
#define SIGNS_MAX 200

uint64_t load_ms(const struct grading *grading)
{
        const struct limits *given = &grading->request.limits, *usual = &grading->grader->settings->limits;
        return HAS(given, limits, wall_ms) ? given->wall_ms : usual->wall_ms;
}

uint64_t case_cpu_ms(const struct grading *grading, const struct grade_case *given)
{
        if (HAS(given, grade_case, cpu_ms))
                return given->cpu_ms;
        return HAS(&grading->request, grade_request, case_cpu_ms) ? grading->request.case_cpu_ms
                                                                  : min_u64(CASE_CPU_MS, load_ms(grading));
}

/* The wall-clock limit also ends a sleeping program.  A grading kept waiting for the CPU gets twice the limit. */
uint64_t case_wall_ms(const struct grading *grading, const struct grade_case *given)
{
        uint64_t wall_ms = HAS(given, grade_case, wall_ms) && given->wall_ms ? given->wall_ms
                                                                             : 2 * case_cpu_ms(grading, given) + 1000;
        return grading->retried ? 2 * wall_ms : wall_ms;
}

int case_status_of(const char *name)
{
        for (size_t i = 0; name && i < choices_case_status.n; i++)
                if (strcmp(choices_case_status.values[i].text, name) == 0)
                        return (int)i;
        return -1;
}

char *grading_text(struct grading *grading, const char *text)
{
        size_t len = text ? strlen(text) : 0;
        return len ? model_utf8(&grading->arena, text, len < CASE_TEXT_MAX ? len : CASE_TEXT_MAX, &len) : NULL;
}

void grading_note(struct grading *grading, struct case_result *result, const json_t *message)
{
        char *out = grading_text(grading, json_string_value(json_object_get(message, "stdout")));
        char *error = grading_text(grading, json_string_value(json_object_get(message, "stderr")));
        json_int_t line = json_integer_value(json_object_get(message, "line"));
        json_int_t memory = json_integer_value(json_object_get(message, "memory"));
        SET(result, case_result, cpu_ms, json_number_value(json_object_get(message, "cpu_ms")));
        SET(result, case_result, duration_ms, json_number_value(json_object_get(message, "wall_ms")));
        if (out)
                SET(result, case_result, stdout, out);
        if (error)
                SET(result, case_result, stderr, error);
        if (line > 0)
                SET(result, case_result, line, (uint64_t)line);
        if (memory > 0)
                SET(result, case_result, memory_peak_bytes, (uint64_t)memory);
}

void grading_put(struct grading *grading, struct workers *workers)
{
        if (--grading->messages_n || !grading->freed)
                return;
        worker_free(workers, grading->owner_key, &grading->arena);
        free(grading);
}

uint64_t cases_cpu_left_ms(const struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        if (!HAS(request, grade_request, total_cpu_ms) || !request->total_cpu_ms)
                return UINT64_MAX;
        uint64_t used = (uint64_t)grading->cases_cpu_ms;
        return used < request->total_cpu_ms ? request->total_cpu_ms - used : 0;
}

void slot_settle(struct slot *slot, struct arena *arena, int status, const char *fmt, ...)
{
        char text[1000];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        slot->settled = true;
        slot->result->status = status;
        slot->result->passed = status == case_status_PASSED;
        slot->result->detail = arena_text(arena, "%s", text);
}

void grading_keep(struct grading *grading, const struct object *object, const void *from, void *to)
{
        struct csn_error err;
        json_t *json = model_encode(object, from);
        if (model_decode(object, json, &grading->arena, to, &err) < 0)
                log_text(LOG_ERROR, "%s: %s", object->name, err.text);   /* the JSON is our own */
        json_decref(json);
}

void grading_sign(struct grading *grading, const char *sign, const char *detail, const char *name)
{
        if (!grading->signs)
                grading->signs = arena_alloc(&grading->arena, SIGNS_MAX * sizeof *grading->signs);
        for (size_t i = 0; i < grading->signs_n; i++)
                if (strcmp(grading->signs[i].sign, sign) == 0 &&
                        strcmp(grading->signs[i].case_name ? grading->signs[i].case_name : "", name ? name : "") == 0)
                        return;
        if (grading->signs_n == SIGNS_MAX)
                return;
        struct grade_sign *one = &grading->signs[grading->signs_n++];
        SET(one, grade_sign, sign, arena_text(&grading->arena, "%.63s", sign));
        if (detail && *detail)
                SET(one, grade_sign, detail, arena_text(&grading->arena, "%.500s", detail));
        if (name)
                SET(one, grade_sign, case_name, arena_text(&grading->arena, "%s", name));
}

void grading_signs(struct grading *grading, const json_t *signs, const char *name)
{
        size_t i;
        json_t *one;
        json_array_foreach(signs, i, one) {
                const char *sign = json_string_value(json_object_get(one, "sign"));
                if (sign)
                        grading_sign(grading, sign, json_string_value(json_object_get(one, "detail")), name);
        }
}

void grading_fail(struct grading *grading, int status, const struct failure *error)
{
        if (grading->has_error)
                return;
        grading->has_error = true;
        grading->result.status = status;
        MARK(&grading->result, grade_result, error);
        grading_keep(grading, &object_failure, error, &grading->result.error);
}

void grading_fail_text(struct grading *grading, int status, const char *code, const char *field, const char *text)
{
        struct failure error = { 0 };
        SET(&error, failure, message, arena_text(&grading->arena, "%s", text));
        if (code)
                SET(&error, failure, code, arena_text(&grading->arena, "%s", code));
        if (field && *field)
                SET(&error, failure, field, arena_text(&grading->arena, "%s", field));
        grading_fail(grading, status, &error);
}

/* A submission lost by the engine may have begun, and is not run again. */
static bool is_lost(const struct run_result *result)
{
        return HAS(&result->error, failure, code) && strcmp(result->error.code, csn_code_name(CSN_E_LOST)) == 0;
}

bool grading_retry(struct grading *grading, const struct run_result *result)
{
        if (is_lost(result) || grading->tries == BUSY_TRIES || grading->cancelled)
                return false;
        loop_timer(engine_loop(grading->grader->engine), &grading->later, (BUSY_MS << grading->tries++) * 1000ULL);
        return true;
}

bool grading_again(struct grading *grading, const struct run_result *result)
{
        bool fault = result->status == status_ENGINE_ERROR && !is_lost(result) && !grading->cancelled;
        if (fault && grading->fault == FAULT_SUSPECTED) {
                grading->fault = FAULT_RECURRED;
                return false;
        }
        if (grading_retry(grading, result))
                return true;
        if (!fault)
                return false;
        grading->fault = FAULT_CONTROL_DUE;
        loop_timer(engine_loop(grading->grader->engine), &grading->later, 0);
        return true;
}
