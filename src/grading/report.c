/* The result of all cases; and advice for a model that will try again. */
#include "grading/grading_private.h"

#include "engine/output/verdict.h"

#define FEEDBACK_CHARS 2000
#define FEEDBACK_LINES 200

static bool may_show(const struct grading *grading)
{
        return !HAS(&grading->request, grade_request, show_expected) || grading->request.show_expected;
}

/* ---- the cases ---- */

/* Sentences about a wrong answer name the right answer, and so do the lines of test code. */
static void hide(struct grading *grading, struct case_result *result, bool of_tests, size_t number)
{
        struct arena *arena = &grading->arena;
        result->present &= ~((uint64_t)1 << FIELD_case_result_expected);
        if (of_tests)
                SET(result, case_result, name, arena_text(arena, "test %zu", number));
        if (result->status == case_status_FAILED)
                SET(result, case_result, detail,
                        HAS(result, case_result, output) && !of_tests
                                ? arena_text(arena, "Wrong answer: got %s", result->output)
                                : arena_text(arena, "Wrong answer"));
        else if (of_tests && result->status != case_status_PASSED && !HAS(result, case_result, error_type))
                SET(result, case_result, detail,
                        arena_text(arena, "%s", choices_case_status.values[result->status].meaning));
}

/*
 * Whether the engine or the checker is at fault.  A submission cannot get here: see status_is_ours() for recurring
 * faults, and checker.c for breaking checkers.
 */
static bool is_fault(const struct grading *grading)
{
        int status = grading->result.status;
        return status_is_ours(status) || status == status_CANCELLED || status == status_DEPENDENCY_FAILED ||
                status == status_UNSUPPORTED_LANGUAGE || status == status_ISOLATION_UNAVAILABLE;
}

/* LiveCodeBench's code for a case without success. */
static int lcb_code(int status)
{
        switch (status) {
        case case_status_FAILED:
                return -2;
        case case_status_TIMEOUT:
                return -3;
        case case_status_BAD_CASE:
                return -5;
        default:
                return -4;
        }
}

/* LiveCodeBench ends with the first failure, so its list does. */
static void add_codes(struct grading *grading)
{
        struct grade_result *whole = &grading->result;
        json_t *codes = json_array();
        for (size_t i = 0; i < whole->cases_n; i++) {
                const struct case_result *result = &whole->cases[i];
                if (result->status == case_status_SKIPPED)
                        continue;
                json_array_append_new(codes, result->passed ? json_true() : json_integer(lcb_code(result->status)));
                if (!result->passed)
                        break;
        }
        char *text = json_dumps(codes, JSON_COMPACT);
        SET(whole, grade_result, codes, arena_text(&grading->arena, "%s", text));
        free(text);
        json_decref(codes);
}

static void gather(struct grading *grading)
{
        struct grade_result *whole = &grading->result;
        double all = 0, good = 0;
        size_t n = grading->slots_n + grading->tests_n;
        whole->cases = arena_alloc(&grading->arena, (n + 1) * sizeof *whole->cases);
        whole->cases_n = n;
        for (size_t i = 0; i < n; i++) {
                bool of_tests = i >= grading->slots_n;
                struct case_result *result = &whole->cases[i];
                *result = of_tests ? grading->tests[i - grading->slots_n] : *grading->slots[i].result;
                if (!may_show(grading))
                        hide(grading, result, of_tests, i - grading->slots_n + 1);
                if (result->status == case_status_SKIPPED) {     /* by itself: nothing was asked of the submission */
                        whole->skipped++;
                        continue;
                }
                all += result->weight;
                good += result->passed ? result->weight : 0;
                whole->passed += result->passed;
        }
        whole->total = n;
        size_t judged = n - whole->skipped;
        whole->failed = judged - whole->passed;
        whole->mask = is_fault(grading);
        whole->all_passed = judged > 0 && whole->passed == judged && !grading->has_error && !whole->mask;
        if (whole->mask) {
                whole->retryable = status_is_ours(whole->status) && !grading->persists;
                return;
        }
        double part = judged ? (double)whole->passed / (double)judged : 0;
        SET(whole, grade_result, score, all > 0 ? good / all : part);
        SET(&whole->reward, grade_reward, binary, whole->all_passed);
        SET(&whole->reward, grade_reward, partial, part);
        SET(&whole->reward, grade_reward, passed, whole->passed);
        SET(&whole->reward, grade_reward, total, judged);
        for (size_t i = 0; i < n && !HAS(&whole->reward, grade_reward, first_fail_index); i++)
                if (!whole->cases[i].passed && whole->cases[i].status != case_status_SKIPPED)
                        SET(&whole->reward, grade_reward, first_fail_index, i);
        MARK(whole, grade_result, reward);
        if (grading->request.compat_codes)
                add_codes(grading);
}

/* ---- advice ---- */

struct lines {
        struct grading *grading;
        size_t left;
};

static void add_line(struct lines *lines, const char *text)
{
        struct grade_result *whole = &lines->grading->result;
        size_t len;
        if (!text || whole->feedback_n == FEEDBACK_LINES || lines->left < 2)
                return;
        for (size_t i = 0; i < whole->feedback_n; i++)
                if (strcmp(whole->feedback[i], text) == 0)
                        return;
        char *line = arena_text(&lines->grading->arena, "%.*s", (int)min_u64(lines->left, 4000), text);
        line = model_utf8(&lines->grading->arena, line, strlen(line),
                &len); /* the cut may be in the middle of a character */
        lines->left -= min_u64(len, lines->left);
        whole->feedback[whole->feedback_n++] = line;
}

static const char *advice_for_case(int status)
{
        switch (status) {
        case case_status_TIMEOUT:
                return feedback_for_type(NULL, "TimeoutError");
        case case_status_MEMORY_EXCEEDED:
                return feedback_for_type(NULL, "MemoryError");
        case case_status_UNENCODABLE:
                return "Return a plain value: numbers, texts, lists, tuples, dicts, sets.";
        default:
                return NULL;
        }
}

/* A submission refused by the source policy is not reviewed (review.c). */
static bool policy_refused(const struct grade_result *whole)
{
        return whole->status == status_BLOCKED &&
                (!HAS(whole, grade_result, review) || whole->review.verdict == review_verdict_SKIPPED);
}

/* The sentences of a run refused by the policy (engine/run/record.c). */
static void advise_blocked(struct lines *lines)
{
        const struct grade_result *whole = &lines->grading->result;
        add_line(lines, "Code violates sandbox security rules; avoid system calls and I/O.");
        add_line(lines, whole->error.message);
        for (size_t i = 0; i < whole->findings_n; i++) {
                const struct finding *finding = &whole->findings[i];
                add_line(lines,
                        arena_text(&lines->grading->arena, "Line %llu: %s", (unsigned long long)finding->line,
                                finding->message));
                if (HAS(finding, finding, advice))
                        add_line(lines, finding->advice);
        }
}

/* Failed tests first, then advice by their errors; each sentence once. */
static void advise(struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        struct grade_result *whole = &grading->result;
        struct lines lines = { grading,
                HAS(request, grade_request, feedback_chars) ? request->feedback_chars : FEEDBACK_CHARS };
        const char *language = grading->language ? grading->language->name : NULL;
        whole->feedback = arena_alloc(&grading->arena, FEEDBACK_LINES * sizeof *whole->feedback);
        if (whole->all_passed)
                return;
        if (policy_refused(whole)) {
                advise_blocked(&lines);
        } else if (grading->has_error) {
                const struct failure *error = &whole->error;
                const char *by_type = HAS(error, failure, type) ? feedback_for_type(language, error->type) : NULL;
                add_line(&lines,
                        HAS(error, failure, line) ? arena_text(&grading->arena, "Line %llu: %s",
                                                            (unsigned long long)error->line, error->message)
                                                  : error->message);
                add_line(&lines, HAS(error, failure, hint) ? error->hint : by_type);
                if (whole->status == status_TIMEOUT)
                        add_line(&lines, feedback_for_type(NULL, "TimeoutError"));
        }
        for (size_t i = 0; i < whole->cases_n; i++)
                if (!whole->cases[i].passed && whole->cases[i].status != case_status_NOT_RUN)
                        add_line(&lines,
                                arena_text(&grading->arena, "Test '%s' failed: %s", whole->cases[i].name,
                                        whole->cases[i].detail));
        for (size_t i = 0; i < whole->cases_n; i++)
                if (!whole->cases[i].passed)
                        add_line(&lines,
                                HAS(&whole->cases[i], case_result, error_type)
                                        ? feedback_for_type(language, whole->cases[i].error_type)
                                        : advice_for_case(whole->cases[i].status));
        if (!whole->feedback_n && (whole->total || grading->has_error))
                add_line(&lines, "Code failed to execute. Check logic and edge cases.");
}

void report(struct grading *grading)
{
        struct grade_result *whole = &grading->result;
        struct arena *arena = &grading->arena;
        whole->schema = arena_text(arena, MODEL_GRADE_SCHEMA_VERSION);
        whole->grade_id = grading->id;
        if (HAS(&grading->request, grade_request, id))
                SET(whole, grade_result, id, grading->request.id);
        if (grading->language)
                SET(whole, grade_result, language, arena_text(arena, "%s", grading->language->name));
        whole->signs = grading->signs;
        whole->signs_n = grading->signs_n;
        if (grading->slots_n)
                SET(whole, grade_result, instance, grading->instance);
        whole->shared_process = grading->request.shared_process;
        whole->runs = grading->runs;
        whole->retried = grading->retried;
        whole->wall_ms = (double)(clock_us() - grading->created_us) / 1000;
        gather(grading);
        advise(grading);
}
