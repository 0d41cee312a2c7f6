/*
 * Runs with standard input, in any language: each in a sandbox of its own.  The output is compared outside of the
 * sandbox.  Most cases of Python share a sandbox instead (program_cases.c).
 */
#include "grading/grading_private.h"

#include <stdio.h>

#define AT_ONCE 4
#define OUTPUT_MORE (64 * KIB)         /* kept beyond the length of the expected output */
#define SHOWN 200                      /* characters of an output in a sentence */

/* ---- the end of a run ---- */

static char *shown(struct arena *arena, const struct bytes *bytes)
{
        size_t len;
        char *text = model_utf8(arena, bytes->bytes ? bytes->bytes : "", bytes->len, &len);
        while (len && (text[len - 1] == '\n' || text[len - 1] == ' '))
                len--;
        if (len <= SHOWN)
                return arena_text(arena, "%.*s", (int)len, text);
        len = SHOWN;
        while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
                len--;
        return arena_text(arena, "%.*s...", (int)len, text);
}

static double tolerance_of(const struct grading *grading, const struct grade_case *given)
{
        if (HAS(given, grade_case, tolerance))
                return given->tolerance;
        return HAS(&grading->request, grade_request, tolerance) ? grading->request.tolerance : 1e-6;
}

uint64_t stream_bytes_kept(const struct grade_case *given)
{
        return given->expected_stdout.len + OUTPUT_MORE;
}

void stream_show(struct grading *grading, size_t i, const struct bytes *output)
{
        struct slot *slot = &grading->slots[i];
        SET(slot->result, case_result, output, shown(&grading->arena, output));
        SET(slot->result, case_result, expected, shown(&grading->arena, &slot->given->expected_stdout));
}

void stream_settle(struct grading *grading, size_t i, const struct bytes *output, uint64_t total)
{
        struct slot *slot = &grading->slots[i];
        if (total > output->len) {
                slot_settle(slot, &grading->arena, case_status_FAILED, "it wrote %llu bytes where %zu are expected",
                        (unsigned long long)total, slot->given->expected_stdout.len);
                return;
        }
        if (grading->request.compare == compare_PROGRAM) {
                check_by_program(grading, i, output);
                return;
        }
        const char *wrong = compare_output(grading->request.compare, tolerance_of(grading, slot->given), output,
                &slot->given->expected_stdout, &grading->arena);
        if (*wrong)
                slot_settle(slot, &grading->arena, case_status_FAILED, "%s", wrong);
        else
                slot_settle(slot, &grading->arena, case_status_PASSED, "OK");
}

static void take_result(struct grading *grading, size_t i, const struct attempt *attempt,
        const struct run_result *result)
{
        struct slot *slot = &grading->slots[i];
        struct case_result *of_case = slot->result;
        const char *text;
        SET(of_case, case_result, cpu_ms, result->usage.cpu_ms);
        SET(of_case, case_result, duration_ms, result->usage.wall_ms);
        if (HAS(&result->usage, usage, memory_peak_bytes))
                SET(of_case, case_result, memory_peak_bytes, result->usage.memory_peak_bytes);
        stream_show(grading, i, &result->stdout);
        if (result->stderr.len)
                SET(of_case, case_result, stderr, shown(&grading->arena, &result->stderr));
        if (HAS(result, run_result, error) && HAS(&result->error, failure, type))
                SET(of_case, case_result, error_type, arena_text(&grading->arena, "%s", result->error.type));
        if (HAS(result, run_result, error) && HAS(&result->error, failure, line))
                SET(of_case, case_result, line, result->error.line);
        if (result->status == status_COMPLETED) {
                stream_settle(grading, i, &result->stdout,
                        result->truncated.stdout_bytes ? result->truncated.stdout_total_bytes : 0);
        } else if (result->status == status_FAILED) {
                slot_settle(slot, &grading->arena, case_status_ERROR, "%s",
                        HAS(result, run_result, error) ? result->error.message : "the exit status is not 0");
        } else {
                int status = attempt_verdict(attempt, result, &text);
                slot_settle(slot, &grading->arena, status, "%s", text);
                if (status == case_status_TIMEOUT && kept_waiting(result->usage.waited_ms, result->limits.wall_ms))
                        slot->kept_waiting = grading->kept_waiting = true;
        }
}

static void on_done(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        grading->cases_cpu_ms += result->usage.cpu_ms;
        if (grading->cancelled || (status_is_ours(result->status) && grading_again(grading, result)))
                return;
        if (status_is_final(result->status) || status_is_ours(result->status)) {
                attempt_trouble(attempt, result);
        } else {
                take_result(grading, attempt->from, attempt, result);
        }
}

/* ---- the phase ---- */

static void begin(struct grading *grading, size_t i)
{
        static const struct attempt_kind kind = { .done = on_done };
        const struct grade_case *given = grading->slots[i].given;
        struct attempt *attempt = attempt_new(grading, &kind, NULL);
        struct run_request *request = run_request(attempt->run);
        const struct settings *settings = grading->grader->settings;
        uint64_t usual = HAS(&request->limits, limits, output_bytes) ? request->limits.output_bytes
                                                                     : settings->limits.output_bytes;
        const char *prelude = prelude_text(grading);
        attempt->from = i;
        if (*prelude) {
                SET(request, run_request, prelude,
                    ((struct bytes){ arena_copy(run_arena(attempt->run), prelude, strlen(prelude)), strlen(prelude) }));
                run_set_own_prelude(attempt->run);
        }
        if (HAS(given, grade_case, stdin))
                SET(request, run_request, stdin, given->stdin);
        if (HAS(given, grade_case, argv)) {
                request->args_n = given->argv_n;
                SET(request, run_request, args, given->argv);
        }
        SET(&request->limits, limits, output_bytes,
            min_u64(max_u64(usual, stream_bytes_kept(given)), settings->ceilings.output_bytes));
        attempt_limit(attempt, min_u64(case_cpu_ms(grading, given), cases_cpu_left_ms(grading)),
                case_wall_ms(grading, given));
        attempt_start(attempt);
}

void streams_go_on(struct grading *grading)
{
        size_t most = grading->request.stop_on_fail ? 1 : AT_ONCE, n = 0;
        for (size_t i = 0; i < grading->slots_n && n < most; i++)
                if (!grading->slots[i].settled && HAS(grading->slots[i].given, grade_case, expected_stdout)) {
                        begin(grading, i);
                        n++;
                }
}
