/* The stages of a run in its record: before, in and after the program, with the duration of each. */
#include "engine/run/run_private.h"

#define STAGES_MAX 8

void run_phase_begin(struct run *run, enum phase phase)
{
        run->phase = phase;
        run->phase_us[phase] = clock_us();
}

/* The time of a stage, up to the beginning of the next recorded stage. */
static double stage_ms(const struct run *run, enum phase phase)
{
        uint64_t from = run->phase_us[phase];
        if (!from)
                return 0;
        for (size_t next = (size_t)phase + 1; next < PHASES; next++)
                if (run->phase_us[next] >= from)
                        return (double)(run->phase_us[next] - from) / 1000;
        return (double)(clock_us() - from) / 1000;
}

static struct stage *add(struct run *run, const char *name, int verdict, double ms)
{
        struct run_result *result = &run->result;
        struct stage *stage = &result->stages[result->stages_n++];
        SET(stage, stage, name, arena_text(&run->launch.arena, "%s", name));
        SET(stage, stage, verdict, verdict);
        SET(stage, stage, ms, ms < 0 ? 0 : ms);
        return stage;
}

/* Until the runner reported the start of the program, or its syntax error. */
static double syntax_ms(const struct run *run)
{
        if (!run->parsed_us || run->parsed_us < run->started_us)
                return 0;
        double ms = (double)(run->parsed_us - run->started_us) / 1000;
        return ms < run->result.timings.run_ms ? ms : run->result.timings.run_ms;
}

/* Whether a later stage follows; here and below. */
static bool add_syntax(struct run *run)
{
        if (run->result.status == status_SYNTAX_ERROR) {
                add(run, "syntax", stage_verdict_REFUSED, syntax_ms(run));
                return false;
        }
        if (run->phase == PHASE_RUN || run->phase_us[PHASE_POLICY])
                add(run, "syntax", run->launch.language->command ? stage_verdict_SKIPPED : stage_verdict_PASSED,
                        syntax_ms(run));
        return true;
}

static bool add_policy(struct run *run)
{
        const struct check_result *check = &run->check.result;
        bool refused = run->result.status == status_BLOCKED && check->verdict == verdict_DENY;
        bool failed = run->phase == PHASE_POLICY && run->refusal.code;
        struct stage *stage = add(run, "policy",
                !run->phase_us[PHASE_POLICY]  ? stage_verdict_SKIPPED
                        : failed  ? stage_verdict_FAILED
                        : refused ? stage_verdict_REFUSED
                                  : stage_verdict_PASSED,
                stage_ms(run, PHASE_POLICY));
        if (run->phase_us[PHASE_POLICY])
                SET(stage, stage, findings, run->result.findings_n);
        return !refused && !failed;
}

static bool add_review(struct run *run)
{
        const struct review *review = &run->result.review;
        bool asked = HAS(&run->result, run_result, review) && review->verdict != review_verdict_SKIPPED;
        bool refused = run->result.status == status_BLOCKED;
        struct stage *stage = add(run, "review",
                refused                                                      ? stage_verdict_REFUSED
                        : !asked                                             ? stage_verdict_SKIPPED
                        : review->verdict == review_verdict_UNAVAILABLE      ? stage_verdict_FAILED
                                                                             : stage_verdict_PASSED,
                asked ? review->latency_ms : 0);
        if (asked)
                SET(stage, stage, findings, review->findings_n);
        return !refused;
}

static bool add_packages(struct run *run)
{
        bool failed = run->phase == PHASE_PACKAGES && run->refusal.code;
        add(run, "packages",
                failed                                   ? stage_verdict_FAILED
                        : run->phase_us[PHASE_PACKAGES]  ? stage_verdict_PASSED
                                                         : stage_verdict_SKIPPED,
                stage_ms(run, PHASE_PACKAGES));
        return !failed;
}

static bool add_queue(struct run *run)
{
        bool failed = run->phase == PHASE_QUEUE;
        add(run, "queue", failed ? stage_verdict_FAILED : stage_verdict_PASSED,
                failed ? stage_ms(run, PHASE_QUEUE) : run->result.timings.queue_ms);
        return !failed;
}

/* timings.prepare_ms, less the other stages. */
static bool add_prepare(struct run *run)
{
        bool failed = run->phase == PHASE_PREPARE && !run->has_boundary;
        double ms = run->result.timings.prepare_ms - stage_ms(run, PHASE_POLICY) - stage_ms(run, PHASE_PACKAGES);
        if (HAS(&run->result, run_result, review))
                ms -= run->result.review.latency_ms;
        add(run, "prepare", failed ? stage_verdict_FAILED : stage_verdict_PASSED,
                failed ? stage_ms(run, PHASE_PREPARE) : ms);
        return !failed;
}

static bool add_run(struct run *run)
{
        bool done = run->result.status == status_COMPLETED;
        add(run, "run", done ? stage_verdict_PASSED : stage_verdict_FAILED,
                run->result.timings.run_ms - syntax_ms(run));
        return run->phase == PHASE_RUN;
}

static bool add_collect(struct run *run)
{
        add(run, "collect", stage_verdict_PASSED, run->result.timings.collect_ms);
        return true;
}

void run_record_stages(struct run *run)
{
        static bool (*const steps[STAGES_MAX])(struct run *run) = {
                add_syntax, add_policy, add_review, add_packages, add_queue, add_prepare, add_run, add_collect,
        };
        if (run->phase == PHASE_NONE && run->refusal.code != CSN_E_BUSY)
                return;
        run->result.stages = arena_alloc(&run->launch.arena, STAGES_MAX * sizeof *run->result.stages);
        MARK(&run->result, run_result, stages);
        if (run->phase == PHASE_NONE) {
                add(run, "queue", stage_verdict_FAILED, 0);   /* the queue was full when the run came */
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(steps) && steps[i](run); i++)
                ;
}
