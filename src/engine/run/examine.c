/*
 * The inputs of a run, before its source policy.
 *
 * Short inputs are examined at once.  For all others the run is RUN_EXAMINING:
 *
 *   find           loop     look up kept files, some in each step
 *   work_examine   thread   list, read and hash
 *   on_done        loop     examined()
 *
 * A run that is examined counts as one that waits.
 */
#include "engine/run/run_private.h"

#define FIND_US 2000                   /* of one step of looking up kept files */

static void end(struct run *run)
{
        queue_examined(run);
        run->examined(run);
}

static void work_examine(struct job *job)
{
        struct run *run = job->owner;
        struct csn_error err;
        if (launch_examine(&run->launch, &err) < 0)
                run->refusal = err;
}

static void on_done(struct job *job)
{
        end(job->owner);
}

/*
 * An execution in a context has only its code, 1 MiB at most, and keeps its place before later executions.  The workers
 * end before the engine does.
 */
static bool is_for_a_thread(const struct run *run)
{
        return run->engine->workers && !run->executor && launch_is_long(&run->launch);
}

static void find(struct timer *timer)
{
        struct run *run = timer->owner;
        struct csn_error err;
        int rc = launch_find_kept(&run->launch, clock_us() + FIND_US, &err);
        if (rc < 0) {
                run->refusal = err;
                end(run);
        } else if (rc > 0) {
                loop_timer(run->engine->loop, timer, 0);
        } else if (is_for_a_thread(run)) {
                worker_submit(run->engine->workers, run->owner_key, &run->examination);
        } else {
                work_examine(&run->examination);
                end(run);
        }
}

int run_examine(struct run *run, struct csn_error *err)
{
        int rc = launch_find_kept(&run->launch, clock_us() + FIND_US, err);
        if (rc == 0 && !is_for_a_thread(run))
                rc = launch_examine(&run->launch, err);
        else if (rc == 0)
                rc = 1;
        return rc;
}

void run_examine_rest(struct run *run, void (*examined)(struct run *run))
{
        run->state = RUN_EXAMINING;
        run->examined = examined;
        run->find = (struct timer){ .fired = find, .owner = run };
        run->examination = (struct job){ .work = work_examine, .done = on_done, .owner = run };
        queue_examine(run);
        loop_timer(run->engine->loop, &run->find, 0);
}

void run_examine_cancel(struct run *run)
{
        atomic_store(&run->launch.given_up, true);
        bool finds = run->find.active;
        loop_untimer(run->engine->loop, &run->find);
        if (finds || worker_cancel(run->engine->workers, &run->examination))
                end(run);
}

void run_examine_stop(struct run *run)
{
        atomic_store(&run->launch.given_up, true);
        loop_untimer(run->engine->loop, &run->find);
        worker_wait(run->engine->workers, &run->examination);
        queue_examined(run);
        run->state = RUN_OVER;
}
