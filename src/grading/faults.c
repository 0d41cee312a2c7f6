/*
 * Recurring faults of the engine.  A fault that outlasts all tries has two explanations: the host is in trouble, or the
 * submission provokes the fault.  An empty program with the same limits decides, when nothing else of the grading runs:
 *
 *   the empty program fails, too    the fault is the engine's, and the grading is masked
 *   the empty program runs          the submission runs once more; if the fault recurs, the fault is the submission's
 *
 * A program that may have begun when its supervisor was lost is not run again (see grading_again()), and is masked.
 */
#include "grading/grading_private.h"

static void on_control(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        if (grading->cancelled)
                return;
        if (status_is_ours(result->status))
                grading_fail(grading, result->status, &result->error);
        else
                grading->fault = FAULT_SUSPECTED;
}

void control_go_on(struct grading *grading)
{
        static const struct attempt_kind kind = { .done = on_control };
        static char nothing[] = "";
        struct attempt *attempt = attempt_new(grading, &kind, NULL);
        SET(run_request(attempt->run), run_request, code, ((struct bytes){ nothing, 0 }));
        run_set_unreviewed(attempt->run);
        attempt_limit(attempt, load_ms(grading), load_ms(grading));
        attempt_start(attempt);
}
