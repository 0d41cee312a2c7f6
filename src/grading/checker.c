/*
 * Checkers: programs of the caller for judging an output.  Each run of a checker has a sandbox of its own.
 *
 * A checker that breaks gives no verdict.  Then the checker runs once more, on the expected output, as control.  If the
 * control breaks too, the caller made a mistake: the grading is masked, and its error is checker_failed.  If the
 * control does not break, the submission's output broke the checker, so the case has failed.
 *
 * testlib's points have no scale, so the control shows the full points.
 */
#include "grading/grading_private.h"

#include <math.h>
#include <stdio.h>

#define CHECKER_CPU_MS 10000   /* of a checker; its output may be larger than the submission's work */
#define TEXT_MAX 300           /* bytes of a checker's text in a sentence */

enum { FILE_INPUT, FILE_OUTPUT, FILE_EXPECTED, FILES_N };

/* The outcome of a checker's run. */
struct opinion {
        enum { ACCEPTED, REJECTED, POINTS, BROKEN } kind;
        double points;
        const char *text;              /* from the grading's arena */
};

struct checker_rule {
        const char *files[FILES_N];    /* names in the checker's home */
        size_t args[FILES_N], args_n;  /* files for its arguments, in this order */
        void (*read)(struct grading *grading, const struct run_result *result, struct opinion *ret);
};

/* ---- the verdict of a checker ---- */

/* The beginning of a text, without white space at its end, in UTF-8. */
static const char *shown(struct grading *grading, const char *text)
{
        size_t len = text ? strnlen(text, TEXT_MAX) : 0;
        while (len && strchr(" \t\r\n", text[len - 1]))
                len--;
        return len ? model_utf8(&grading->arena, text, len, &len) : "";
}

static const char *shown_or(struct grading *grading, const struct bytes *bytes, const char *otherwise)
{
        const char *text = shown(grading, bytes->bytes);
        return *text ? text : otherwise;
}

static void refuse(struct grading *grading, const char *text, struct opinion *ret)
{
        ret->kind = REJECTED;
        ret->text = arena_text(&grading->arena, "the checker refuses it: %s", text);
}

static void break_exit(struct grading *grading, const struct run_result *result, struct opinion *ret)
{
        ret->kind = BROKEN;
        ret->text = arena_text(&grading->arena, "exit status %lld is no verdict of such a checker",
                (long long)result->exit_code);
}

static void read_command(struct grading *grading, const struct run_result *result, struct opinion *ret)
{
        if (result->exit_code)
                refuse(grading, shown_or(grading, &result->stdout, "exit status is not 0"), ret);
}

/* "points 12.5" anywhere on standard error. */
static void read_points(struct grading *grading, const struct run_result *result, struct opinion *ret)
{
        const char *text = result->stderr.len ? result->stderr.bytes : "", *at = strstr(text, "points ");
        char *end;
        double points = at ? strtod(at + strlen("points "), &end) : NAN;
        ret->kind = at && end != at + strlen("points ") && isfinite(points) ? POINTS : BROKEN;
        ret->points = points;
        ret->text = arena_text(&grading->arena, "exit status 7 without \"points N\" on standard error: %s",
                shown(grading, text));
}

/* testlib's exit statuses 4 and 8 are for extra output and for an output with an early end. */
static void read_testlib(struct grading *grading, const struct run_result *result, struct opinion *ret)
{
        const char *text = shown_or(grading, &result->stderr, "it gives no reason");
        switch (result->exit_code) {
        case 0:
                break;
        case 1:
        case 2:
        case 4:
        case 8:
                refuse(grading, text, ret);
                break;
        case 3:
                ret->kind = BROKEN;
                ret->text = arena_text(&grading->arena, "judge failure: %s", text);
                break;
        case 7:
                read_points(grading, result, ret);
                break;
        default:
                break_exit(grading, result, ret);
        }
}

static void read_openr1(struct grading *grading, const struct run_result *result, struct opinion *ret)
{
        const char *text = shown(grading, result->stdout.bytes);
        char *end;
        double score = strtod(text, &end);
        bool number = end != text && isfinite(score) && !*end;
        if (result->exit_code) {
                break_exit(grading, result, ret);
        } else if (!number) {
                ret->kind = BROKEN;
                ret->text = arena_text(&grading->arena, "no score on standard output: %s", text);
        } else if (score < 1) {
                refuse(grading, arena_text(&grading->arena, "score %g", score), ret);
        }
}

static void read_scalebox(struct grading *grading, const struct run_result *result, struct opinion *ret)
{
        if (result->exit_code == 1)
                refuse(grading, shown_or(grading, &result->stdout, "exit status 1"), ret);
        else if (result->exit_code)
                break_exit(grading, result, ret);
}

static const struct checker_rule kinds[] = {
        [checker_kind_COMMAND] = { .files = { "input", "output", "expected" }, .read = read_command },
        [checker_kind_TESTLIB] = { .files = { "input", "output", "answer" },
                .args = { FILE_INPUT, FILE_OUTPUT, FILE_EXPECTED },
                .args_n = FILES_N,
                .read = read_testlib },
        [checker_kind_OPENR1] = { .files = { "input.txt", "solution_output.txt", "correct_output.txt" },
                .args = { FILE_INPUT, FILE_EXPECTED, FILE_OUTPUT },
                .args_n = FILES_N,
                .read = read_openr1 },
        [checker_kind_SCALEBOX] = { .files = { "stdin.txt", "answer.txt", "stdout.txt" }, .read = read_scalebox },
};

/* Only a normal exit is a verdict: no other end of the run, and no uncaught exception. */
static struct opinion opinion_of(struct grading *grading, const struct run_result *result)
{
        struct opinion opinion = { .kind = ACCEPTED };
        bool exited = result->status == status_COMPLETED || result->status == status_FAILED;
        bool raised = HAS(result, run_result, error) && HAS(&result->error, failure, type);
        if (exited && !raised && HAS(result, run_result, exit_code)) {
                kinds[grading->request.checker.kind].read(grading, result, &opinion);
                return opinion;
        }
        opinion.kind = BROKEN;
        opinion.text = arena_text(&grading->arena, "%s: %s", raised ? result->error.type : status_name(result->status),
                shown(grading, HAS(result, run_result, error) ? result->error.message : ""));
        return opinion;
}

/* ---- runs ---- */

static void start(struct grading *grading, const struct attempt_kind *kind, size_t i, const struct bytes *output)
{
        const struct grade_checker *checker = &grading->request.checker;
        const struct checker_rule *of = &kinds[checker->kind];
        const struct grade_case *given = grading->slots[i].given;
        struct attempt *attempt = attempt_new(grading, kind, &checker->code);
        struct run_request *request = run_request(attempt->run);
        struct arena *arena = run_arena(attempt->run);
        const struct bytes contents[] = { given->stdin, *output, given->expected_stdout };
        struct input_file *files = arena_alloc(arena, FILES_N * sizeof *files);
        if (HAS(checker, grade_checker, language))
                SET(request, run_request, language, checker->language);
        for (size_t k = 0; k < FILES_N; k++) {
                SET(&files[k], input_file, name, arena_text(arena, "%s", of->files[k]));
                SET(&files[k], input_file, content,
                        ((struct bytes){ arena_copy(arena, contents[k].bytes ? contents[k].bytes : "", contents[k].len),
                                contents[k].len }));
        }
        request->files_n = FILES_N;
        SET(request, run_request, files, files);
        if (of->args_n) {
                char **args = arena_alloc(arena, of->args_n * sizeof *args);
                for (size_t k = 0; k < of->args_n; k++)
                        args[k] = arena_text(arena, "%s", of->files[of->args[k]]);
                request->args_n = of->args_n;
                SET(request, run_request, args, args);
        }
        attempt->from = i;
        request->limits = (struct limits){ 0 };   /* the request's limits are the submission's */
        attempt_limit(attempt, max_u64(CHECKER_CPU_MS, case_cpu_ms(grading, given)),
                max_u64(2 * CHECKER_CPU_MS + 1000, case_wall_ms(grading, given)));
        attempt_start(attempt);
}

/* ---- the control ---- */

static void blame_checker(struct grading *grading, const struct run_result *result, const char *text)
{
        char why[2 * TEXT_MAX + 100];
        snprintf(why, sizeof why, "the checker breaks on the expected output, too: %s", text);
        grading->persists = !status_is_ours(result->status);
        grading_fail_text(grading, status_ENGINE_ERROR, "checker_failed", "/checker/code", why);
}

static void settle_points(struct slot *slot, struct arena *arena, double points, const struct opinion *control)
{
        if (control->kind != POINTS)
                slot_settle(slot, arena, case_status_FAILED,
                        "points %g, and the expected output gets no points that would be full", points);
        else if (points >= control->points && points > 0)
                slot_settle(slot, arena, case_status_PASSED, "points %g of %g", points, control->points);
        else
                slot_settle(slot, arena, case_status_FAILED, "points %g of %g", points, control->points);
}

static void on_control(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        struct slot *slot = &grading->slots[attempt->from];
        if (grading->cancelled || (status_is_ours(result->status) && grading_retry(grading, result))) {
                slot->answered = false;      /* another run of the checker needs the output again */
                return;
        }
        struct opinion control = opinion_of(grading, result);
        if (control.kind == BROKEN) {
                blame_checker(grading, result, control.text);
        } else if (slot->checker_points) {
                settle_points(slot, &grading->arena, *slot->checker_points, &control);
        } else {
                slot_settle(slot, &grading->arena, case_status_FAILED, "the output breaks the checker: %s",
                        slot->checker_text);
                grading_sign(grading, "breaks_checker", slot->checker_text, slot->result->name);
        }
}

static void start_control(struct grading *grading, size_t i, const struct opinion *opinion)
{
        static const struct attempt_kind kind = { .done = on_control };
        struct slot *slot = &grading->slots[i];
        slot->checker_text = opinion->text;
        slot->checker_points = NULL;
        if (opinion->kind == POINTS) {
                double *points = arena_alloc(&grading->arena, sizeof *points);
                *points = opinion->points;
                slot->checker_points = points;
        }
        start(grading, &kind, i, &slot->given->expected_stdout);
}

/* ---- the output ---- */

static void on_checked(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        struct slot *slot = &grading->slots[attempt->from];
        if (grading->cancelled || (status_is_ours(result->status) && grading_retry(grading, result))) {
                slot->answered = false;      /* another run of the checker needs the output again */
                return;
        }
        struct opinion opinion = opinion_of(grading, result);
        if (opinion.kind == ACCEPTED)
                slot_settle(slot, &grading->arena, case_status_PASSED, "OK");
        else if (opinion.kind == REJECTED)
                slot_settle(slot, &grading->arena, case_status_FAILED, "%s", opinion.text);
        else
                start_control(grading, attempt->from, &opinion);
}

void check_by_program(struct grading *grading, size_t i, const struct bytes *output)
{
        static const struct attempt_kind kind = { .done = on_checked };
        start(grading, &kind, i, output);
}

int checker_check(const struct grading *grading, struct csn_error *err)
{
        const struct grade_request *request = &grading->request;
        const struct grade_checker *checker = &request->checker;
        const struct language *language;
        struct csn_error unknown;
        if (HAS(request, grade_request, compare) && request->compare == compare_PROGRAM &&
                !HAS(request, grade_request, checker))
                return err_field(err, "/checker",
                        "compare is \"program\", and there is no checker; give checker {kind, language, code}");
        if (!HAS(request, grade_request, checker))
                return 0;
        if (HAS(request, grade_request, compare) && request->compare != compare_PROGRAM)
                return err_field(err, "/compare",
                        "compare is \"%s\" beside a checker, which compares itself; leave compare out, or checker",
                        choices_compare.values[request->compare].text);
        if (HAS(checker, grade_checker, language) &&
                lang_find(engine_languages(grading->grader->engine), checker->language, &language, &unknown) < 0)
                return err_field(err, "/checker/language",
                        "%.200s; translate the checker, or add its language to this host (engine.languages_dir)",
                        unknown.text);
        return 0;
}
