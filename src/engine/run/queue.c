/*
 * Queued runs, waiting for room.  Each owner's runs start in order of arrival, and owners take turns, so an owner of a
 * thousand runs delays another owner by one.  Passed over are: an owner with running_max runs; a run that would start
 * an interpreter while as many interpreters as there are cores are being started; and a judge's run while as many go on
 * as the processors can serve (may_begin()).
 *
 * Executions in contexts and programs in persistent sandboxes count for an owner's running work as runs do (owner.c).
 */
#include "engine/run/run_private.h"

#include <stdio.h>

/*
 * A part 1/QUEUE_RESERVE of the queue is for owners with less than this part of queue_max waiting: an owner alone
 * cannot fill the queue.
 */
#define QUEUE_RESERVE 8
#define JUDGED_PER_CORE 4
/* runs of one owner to search for a runnable run: new arrivals do not make the loop walk ten thousand queued runs */
#define LOOK_AHEAD 64

static struct owner *owner_of(struct run *run)
{
        if (!run->queue_owner)
                run->queue_owner = owner_hold(run->engine, run->owner_key);
        return run->queue_owner;
}

static void leave_owner(struct run *run)
{
        struct owner *owner = run->queue_owner;
        run->queue_owner = NULL;
        owner_release(run->engine, owner);
}

void queue_examine(struct run *run)
{
        owner_of(run)->examining++;
        run->engine->examining++;
}

void queue_examined(struct run *run)
{
        run->queue_owner->examining--;
        run->engine->examining--;
        leave_owner(run);
}

void queue_add(struct run *run, bool front)
{
        struct engine *engine = run->engine;
        struct owner *owner = owner_of(run);
        owner->running_max = run->quota.running_max;   /* the newest word */
        run->next_queued = front ? owner->first : NULL;
        if (front || !owner->first)
                owner->first = run;
        else
                owner->last->next_queued = run;
        if (!front || !owner->last)
                owner->last = run;
        owner->queued++;
        engine->queued++;
}

/* ---- which runs may start ---- */

/* A judge measures a program's own time: the fewer programs share a processor, the more time each gets. */
static size_t judged_max(const struct engine *engine)
{
        uint64_t max = engine->settings->engine.judged_max;
        return max ? max : JUDGED_PER_CORE * engine->cores;
}

static bool may_begin(const struct run *run)
{
        struct engine *engine = run->engine;
        if (run->launch.judged && engine->judged >= judged_max(engine))
                return false;
        if (!launch_starts_slowly(&run->launch) ||
                (engine->pools && !run->cold && pools_are_warm(engine->pools, &run->launch)))
                return true;
        /* One processor is left to a zygote being started: the zygote helps all queued runs. */
        bool shares = engine->pools && pools_zygote_comes(engine->pools) && engine->cores > 1;
        return engine->cold < engine->cores - shares;
}

/*
 * The first runnable run of an owner, and the run before it; a run waiting for its zygote holds up no run of another
 * language.
 */
static struct run *first_of(struct owner *owner, struct run **ret_before)
{
        *ret_before = NULL;
        size_t looks = LOOK_AHEAD;
        for (struct run *run = owner->first; run && looks--; *ret_before = run, run = run->next_queued)
                if (may_begin(run))
                        return run;
        return NULL;
}

/* engine->owners is the owner of the last turn. */
static struct owner *next_owner(const struct engine *engine, struct run **ret_run, struct run **ret_before)
{
        struct owner *start = engine->owners;
        for (struct owner *owner = start ? start->next : NULL; owner; owner = owner == start ? NULL : owner->next)
                if (owner_has_room(owner, owner->running_max) && (*ret_run = first_of(owner, ret_before)))
                        return owner;
        return NULL;
}

bool queue_is_ready(const struct engine *engine)
{
        struct run *run, *before;
        return next_owner(engine, &run, &before);
}

static void unlink_queued(struct owner *owner, struct run *run, struct run *before)
{
        if (before)
                before->next_queued = run->next_queued;
        else
                owner->first = run->next_queued;
        if (owner->last == run)
                owner->last = before;
        owner->queued--;
        run->engine->queued--;
}

struct run *queue_take(struct engine *engine)
{
        struct run *run, *before;
        struct owner *owner = next_owner(engine, &run, &before);
        if (!owner)
                return NULL;
        unlink_queued(owner, run, before);
        owner->running++;
        engine->running++;
        engine->judged += run->launch.judged;
        engine->owners = owner;
        return run;
}

void queue_pass(struct run *run)
{
        owner_of(run)->running++;
        run->engine->beside++;
        run->engine->judged += run->launch.judged;
}

void queue_left(struct run *run)
{
        struct owner *owner = run->queue_owner;
        if (run->skips_queue)
                run->engine->beside--;
        else
                run->engine->running--;
        run->engine->judged -= run->launch.judged;
        owner->running--;
        leave_owner(run);
}

void queue_remove(struct run *run)
{
        struct owner *owner = run->state == RUN_QUEUED ? run->queue_owner : NULL;
        struct run *before = NULL;
        for (struct run *at = owner ? owner->first : NULL; at; before = at, at = at->next_queued)
                if (at == run) {
                        unlink_queued(owner, run, before);
                        leave_owner(run);
                        return;
                }
}

/* Runs of this owner that may begin within its own limit; SIZE_MAX: no limit. */
static size_t own_room(const struct owner *owner)
{
        size_t running = owner_running(owner);
        if (!owner->running_max)
                return SIZE_MAX;
        return running < owner->running_max ? owner->running_max - running : 0;
}

/*
 * Queued runs waiting for the end of another run, if `slots` more runs may start: the rest waits only for its own
 * start.
 */
static size_t queue_waiting(const struct engine *engine, size_t slots)
{
        size_t coming = engine->examining + engine->checking, may_begin = coming;
        for (const struct owner *owner = engine->owners; owner;
                owner = owner->next == engine->owners ? NULL : owner->next)
                may_begin += owner->queued < own_room(owner) ? owner->queued : own_room(owner);
        return engine->queued + coming - (may_begin < slots ? may_begin : slots);
}

static void queue_count(const struct engine *engine, const char *key, size_t *ret_queued, size_t *ret_running)
{
        *ret_queued = *ret_running = 0;
        for (const struct owner *owner = engine->owners; owner;
                owner = owner->next == engine->owners ? NULL : owner->next)
                if (strcmp(owner->key, key) == 0) {
                        *ret_queued = owner->examining + owner->queued + owner->waiting;
                        *ret_running = owner_running(owner);
                }
}

size_t queue_running_max(const struct engine *engine)
{
        return (size_t)min_u64(engine->settings->engine.running_max, engine->instances.places);
}

/*
 * An owner with many waiting runs leaves a part of the queue to owners with few (QUEUE_RESERVE).
 *
 * queue_max does not count a run that need not wait for the end of another run.  An execution in a context waits in the
 * queue of the context, which has its own bound.
 */
int run_has_room(const struct run *run, struct run_room *ret_room, struct csn_error *err)
{
        const struct engine *engine = run->engine;
        size_t max = queue_running_max(engine), slots = engine->running < max ? max - engine->running : 0;
        size_t waiting = queue_waiting(engine, slots), queued, running,
               begin_soon = engine->examining + engine->checking + engine->queued - waiting;
        queue_count(engine, run->owner_key, &queued, &running);
        const struct run_quota *quota = &run->quota;
        bool waits = !run->skips_queue && !HAS(&run->launch.request, run_request, context) &&
                (begin_soon >= slots || (quota->running_max && queued + running >= quota->running_max) ||
                        (run->launch.judged && engine->judged >= judged_max(engine)));
        size_t queue_max = (size_t)engine->settings->engine.queue_max, reserve = queue_max / QUEUE_RESERVE;
        *ret_room = (struct run_room){ "queue_max", queue_max, waiting, engine->running };
        if (waits && waiting >= queue_max - (queued >= reserve ? reserve : 0))
                return err_set(err, CSN_E_BUSY, 0,
                        "the queue is full: %zu waiting (engine.queue_max), %zu of them of this owner, %zu running; try again later, or raise "
                        "engine.queue_max",
                        waiting, queued, engine->running);
        *ret_room = (struct run_room){ "queued_max", quota->queued_max, queued, running };
        if (quota->queued_max && queued >= quota->queued_max && quota->running_max &&
                running >= quota->running_max)
                return err_set(err, CSN_E_BUSY, 0,
                        "this key has no room for another run: %zu waiting, %zu running; try again when a run has ended",
                        queued, running);
        return 0;
}

/* ---- starting interpreters ---- */

void queue_changed(struct engine *engine)
{
        if (engine->executions_wait || queue_is_ready(engine))
                loop_timer(engine->loop, &engine->dispatch, 0);
}

void queue_starts_cold(struct run *run)
{
        run->starts_cold = true;
        run->engine->cold++;
}

void queue_started(struct run *run)
{
        if (!run->starts_cold)
                return;
        run->starts_cold = false;
        run->engine->cold--;
        queue_changed(run->engine);
}
