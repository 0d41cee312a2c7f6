/* Functions of a worker for all files of the fleet: references, states, and the worker's fleet. */
#include "gateway/fleet/fleet_private.h"

#include <stdio.h>

static const char *const state_names[WORKER_STATES] = { "unknown", "ready", "not_ready", "draining", "down" };

const char *worker_state_name(enum worker_state state)
{
        return state_names[state];
}

struct loop *fleet_loop(const struct fleet *fleet)
{
        return fleet->loop;
}

const struct settings *fleet_settings(const struct fleet *fleet)
{
        return fleet->settings;
}

const struct hop_keys *fleet_keys(const struct fleet *fleet)
{
        return fleet->keys;
}

/* ---- references ---- */

struct gateway_worker *worker_ref(struct gateway_worker *worker)
{
        worker->refs++;
        return worker;
}

void worker_unref(struct gateway_worker *worker)
{
        if (--worker->refs)
                return;
        free(worker->heartbeat);
        free(worker);
}

/* ---- states ---- */

void worker_tell_changed(struct gateway_worker *worker)
{
        const struct fleet *fleet = worker->fleet;
        for (size_t i = 0; i < fleet->listeners_n; i++)
                fleet->listeners[i].events->changed(fleet->listeners[i].owner, worker);
}

bool worker_takes_work(const struct gateway_worker *worker)
{
        return worker->state == WORKER_READY && !worker->cordoned && !worker->removed;
}

void worker_set_state(struct gateway_worker *worker, enum worker_state state, const char *why)
{
        bool took = worker_takes_work(worker);
        enum worker_state before = worker->state;
        worker->state = state;
        snprintf(worker->why, sizeof worker->why, "%s", why ? why : "");
        if (state != before)
                log_text(state == WORKER_DOWN ? LOG_WARN : LOG_INFO, "worker %s is %s%s%s", worker->name,
                        state_names[state], worker->why[0] ? ": " : "", worker->why);
        if (state == WORKER_READY && !worker->ready_us && worker->uid[0])
                worker->fleet->changed_us = clock_us();
        if (state == WORKER_READY && before != WORKER_READY)
                worker->ready_us = clock_us();
        if (state == WORKER_DOWN && before != WORKER_DOWN)
                worker->down_us = clock_us();
        if (took != worker_takes_work(worker))
                worker_tell_changed(worker);
}

void worker_answered(struct gateway_worker *worker, const char *load)
{
        unsigned long long running, queued, slots;
        worker->answered_us = clock_us();
        if (load && sscanf(load, "%llu %llu %llu", &running, &queued, &slots) == 3) {
                worker->running = running;
                worker->queued = queued;
                worker->slots = slots;
        }
}
