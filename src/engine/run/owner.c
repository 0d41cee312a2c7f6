/*
 * Owners: the tenants with work in the engine, their running work, and their used CPU time.
 *
 * The listener (engine_set_usage_listener()) keeps the CPU time of ended work, as a sum over 24 hours.  The CPU time of
 * running work is in `unsettled_us` here.  The sum of both is compared with cpu_ms_per_day, so that a quota holds while
 * programs run.  Work settles its share after its end was reported to the listener.
 */
#include "engine/run/run_private.h"

#include <stdio.h>

#define STORED_US 1000000ULL   /* microseconds for which a sum of the listener is used again */

static struct owner *owner_lookup(const struct engine *engine, const char *key)
{
        for (struct owner *owner = engine->owners; owner; owner = owner->next == engine->owners ? NULL : owner->next)
                if (strcmp(owner->key, key) == 0)
                        return owner;
        return NULL;
}

static struct owner *owner_get(struct engine *engine, const char *key)
{
        struct owner *owner = owner_lookup(engine, key);
        if (owner)
                return owner;
        owner = mem_alloc(sizeof *owner);
        snprintf(owner->key, sizeof owner->key, "%s", key);
        if (engine->owners) {
                owner->next = engine->owners->next;
                engine->owners->next = owner;
        } else {
                engine->owners = owner->next = owner;
        }
        return owner;
}

struct owner *owner_hold(struct engine *engine, const char *key)
{
        struct owner *owner = owner_get(engine, key);
        owner->holds++;
        return owner;
}

void owner_release(struct engine *engine, struct owner *owner)
{
        struct owner *before = owner;
        if (--owner->holds)
                return;
        while (before->next != owner)
                before = before->next;
        before->next = owner->next;
        if (engine->owners == owner)
                engine->owners = before == owner ? NULL : before;
        free(owner);
}

/* ---- running work ---- */

size_t owner_running(const struct owner *owner)
{
        return owner->running + owner->others;
}

bool owner_has_room(const struct owner *owner, size_t running_max)
{
        return !running_max || owner_running(owner) < running_max;
}

void owner_begin_other(struct owner *owner)
{
        owner->others++;
}

void owner_end_other(struct owner *owner)
{
        owner->others--;
}

int owner_may_begin(const struct engine *engine, const char *key, const struct run_quota *quota,
        struct run_room *ret_room, struct csn_error *err)
{
        const struct owner *owner = owner_lookup(engine, key);
        size_t running = owner ? owner_running(owner) : 0;
        *ret_room = (struct run_room){ "running_max", quota->running_max, owner ? owner->queued : 0, running };
        if (!quota->running_max || running < quota->running_max)
                return 0;
        return err_set(err, CSN_E_BUSY, 0,
                "this key may have %zu programs at once (--running), and %zu are running; try again when one has ended",
                quota->running_max, running);
}

/* ---- CPU time ---- */

void owner_use(struct owner *owner, uint64_t *counted_us, uint64_t cpu_us)
{
        owner->unsettled_us += cpu_us - *counted_us;
        *counted_us = cpu_us;
}

void owner_charge(const struct engine *engine, struct owner *owner, uint64_t cpu_ms)
{
        if (!engine->usage_listener || !cpu_ms)
                return;
        engine->usage_listener->charge(engine->usage_listener_owner, owner->key, cpu_ms);
        owner->stored_us += cpu_ms * 1000;
}

void owner_settle(struct owner *owner, uint64_t *counted_us)
{
        owner_use(owner, counted_us, 0);
        owner->stored_at_us = 0;
}

uint64_t owner_unsettled_us(const struct engine *engine, const char *key)
{
        const struct owner *owner = owner_lookup(engine, key);
        return owner ? owner->unsettled_us : 0;
}

uint64_t owner_left_us(const struct engine *engine, struct owner *owner, const struct run_quota *quota)
{
        const struct usage_listener *listener = engine->usage_listener;
        uint64_t now = clock_us(), most = quota->cpu_ms_per_day * 1000, cpu_ms;
        if (!most || !listener)
                return UINT64_MAX;
        if (!owner->stored_at_us || now - owner->stored_at_us >= STORED_US) {
                /* If the store cannot be read, the last sum stays. */
                if (listener->used(engine->usage_listener_owner, owner->key, &cpu_ms))
                        owner->stored_us = cpu_ms * 1000;
                owner->stored_at_us = now;
        }
        return most - min_u64(most, owner->stored_us + owner->unsettled_us);
}
