/* Accessors of a run, and helpers for every part of a run. */
#include "engine/run/run_private.h"

void run_warn(struct run *run, const char *code, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        launch_vwarn(&run->launch, code, fmt, args);
        va_end(args);
}

void run_kill(struct run *run)
{
        if (run->context)
                run->executor->cancel(run);
        else if (run->instance)
                instance_kill(run->instance);
}

/* ---- before the start ---- */

void run_set_owner(struct run *run, const char *key)
{
        snprintf(run->owner_key, sizeof run->owner_key, "%s", key);
}

void run_set_quota(struct run *run, const struct run_quota *quota)
{
        run->quota = *quota;
}

void run_set_charged(struct run *run)
{
        run->is_charged = true;
}

void run_set_builds(struct run *run)
{
        run->launch.builds = true;
}

void run_set_storage(struct run *run, const struct run_storage *storage, void *owner)
{
        run->launch.storage = storage;
        run->launch.storage_owner = owner;
}

void run_set_judged(struct run *run)
{
        run->launch.judged = true;
}

void run_set_network(struct run *run, const struct run_network *network, void *owner)
{
        run->network = network;
        run->network_owner = owner;
        run->launch.served = true;
}

void run_set_skips_queue(struct run *run)
{
        run->skips_queue = true;
}

int run_check_needed(struct run *run, struct csn_error *err)
{
        return launch_check_needed(&run->launch, err);
}

/* ---- accessors ---- */

const char *run_id(const struct run *run)
{
        return run->id;
}

uint64_t run_number(const struct run *run)
{
        return run->number;
}

struct arena *run_arena(struct run *run)
{
        return &run->launch.arena;
}

struct run_request *run_request(struct run *run)
{
        return &run->launch.request;
}

const char *run_state_name(const struct run *run)
{
        static const char *const states[] = { [RUN_NEW] = "new", [RUN_EXAMINING] = "checking",
                                              [RUN_CHECKING] = "checking", [RUN_QUEUED] = "waiting",
                                              [RUN_RUNNING] = "running", [RUN_RECORDING] = "running",
                                              [RUN_OVER] = "over" };
        return states[run->state];
}

uint64_t run_created_us(const struct run *run)
{
        return run->created_us;
}

size_t run_stages(const struct run *run, struct run_stage stages[static RUN_STAGES_MAX])
{
        const bool checked = run->launch.request.policy && strcmp(run->launch.request.policy, "off") != 0,
                   ran = run->ended_us;
        uint64_t now = clock_us(), left_queue = run->begun_us ? run->begun_us : now,
                 began = ran ? run->started_us : now;
        const struct { const char *name; bool there; uint64_t begun_us, ended_us; } all[RUN_STAGES_MAX] = {
                { "check", checked, run->created_us, run->queued_us ? run->queued_us : now },
                { "queue", run->queued_us, run->queued_us, left_queue },
                { "prepare", run->begun_us, run->begun_us, began },
                { "run", ran, run->started_us, run->ended_us },
                { "collect", ran, run->ended_us, now },
        };
        size_t n = 0;
        for (size_t i = 0; i < RUN_STAGES_MAX; i++)
                if (all[i].there)
                        stages[n++] = (struct run_stage){ all[i].name, all[i].begun_us,
                                max_u64(all[i].begun_us, all[i].ended_us) };
        return n;
}

void run_hold(struct run *run, bool on)
{
        run->held = on;
        if (run->context && !run->display)
                run->executor->hold(run, on);
}

/* ---- tools ---- */

void *run_broker(const struct run *run)
{
        return run->tool_session.broker;
}

void run_set_listener(struct run *run, const struct run_listener *listener, void *owner)
{
        run->listener = listener;
        run->listener_owner = owner;
}

bool run_has_listener(const struct run *run)
{
        return run->listener != NULL;
}

void run_tell(struct run *run, json_t *event)
{
        if (run->listener)
                run->listener->told(run->listener_owner, event);
        else
                json_decref(event);
}
