/*
 * The CPU time quota of a run's key for a day: the charge while the program runs, and the end of a run beyond the
 * quota.
 */
#include "engine/run/run_private.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

int run_quota_begin(struct run *run, struct csn_error *err)
{
        struct engine *engine = run->engine;
        uint64_t own_ms = run->launch.request.limits.cpu_ms;
        if (!engine->usage_listener || run->payer)
                return 0;
        run->payer = owner_hold(engine, run->owner_key);
        uint64_t left_us = owner_left_us(engine, run->payer, &run->quota);
        if (left_us == UINT64_MAX)
                return 0;
        if (!left_us) {
                err_set(err, CSN_E_BUSY, 0, "the CPU time that the key allows in 24 hours is used up (" QUOTA_CPU "=%" PRIu64 ")",
                        run->quota.cpu_ms_per_day);
                snprintf(err->field, sizeof err->field, QUOTA_CPU);
                return -err->code;
        }
        run->quota_left_ms = (left_us + 999) / 1000;
        if (own_ms && own_ms <= run->quota_left_ms)
                run->quota_left_ms = 0;
        engine->hooks->sample_usage(engine);
        return 0;
}

bool run_quota_note(struct run *run, uint64_t cpu_us)
{
        if (!run->payer)
                return true;
        owner_use(run->payer, &run->counted_us, max_u64(run->counted_us, cpu_us));
        return owner_left_us(run->engine, run->payer, &run->quota) > 0;
}

void run_quota_drop(struct run *run)
{
        struct engine *engine = run->engine;
        if (!run->payer)
                return;
        owner_charge(engine, run->payer, run->counted_us / 1000);
        owner_settle(run->payer, &run->counted_us);
        owner_release(engine, run->payer);
        run->payer = NULL;
}

uint64_t run_quota_cpu_max_ms(const struct run *run)
{
        return run->quota_left_ms ? run->quota_left_ms : run->launch.request.limits.cpu_ms;
}

bool run_quota_ended(const struct run *run)
{
        const struct wire_exit *how = &run->how;
        bool by_cpu = how->reasons & WIRE_CPU ||
                (how->has_status && WIFSIGNALED((int)how->status) && WTERMSIG((int)how->status) == SIGXCPU);
        return (run->quota_left_ms && by_cpu) || (run->quota_spent && (by_cpu || how->reasons & WIRE_KILLED));
}

void run_quota_end(struct run *run)
{
        run->quota_spent = true;
        run_kill(run);
}
