/* How many worker pods are wanted; see scale.h. */
#include "gateway/pool/scale.h"

/* After a step up, utilization is to be so much of the threshold: 60 percent for a threshold of 70. */
#define TARGET_NUMERATOR 6
#define TARGET_DENOMINATOR 7

static uint64_t clamp(const struct scale_limits *limits, uint64_t pods)
{
        return min_u64(max_u64(pods, limits->pool_min), limits->pool_max);
}

void scale_begin(struct scale_state *state, const struct scale_limits *limits, uint64_t pods)
{
        *state = (struct scale_state){ .wanted = clamp(limits, pods) };
}

/* How long a condition has held; *since is updated. */
static uint64_t held_us(uint64_t *since, bool condition, uint64_t now_us)
{
        if (!condition)
                *since = 0;
        else if (!*since)
                *since = now_us ? now_us : 1;
        return *since ? now_us - *since : 0;
}

/* Pods for a demand: the least number whose utilization is at most the target. */
static uint64_t pods_for(const struct scale_limits *limits, const struct scale_load *load, uint64_t demand)
{
        uint64_t slots = load->ready ? max_u64(load->slots / load->ready, 1) : 0;
        uint64_t per_pod = slots * limits->up_at * TARGET_NUMERATOR;
        if (!per_pod)
                return demand ? 1 : 0;
        return (demand * 100 * TARGET_DENOMINATOR + per_pod - 1) / per_pod;
}

static double utilization(const struct scale_load *load, uint64_t demand)
{
        if (load->slots)
                return (double)demand / (double)load->slots;
        return demand ? 1 : 0;
}

static void step_up(struct scale_state *state, const struct scale_limits *limits, const struct scale_load *load,
        uint64_t demand)
{
        bool busy = load->slots && demand * 100 > load->slots * limits->up_at;
        bool waits = load->waiting && load->wait_ms > SCALE_WAIT_MS;
        uint64_t held = held_us(&state->high_us, busy || waits, load->now_us);
        uint64_t pods = state->wanted;
        if (load->woken && !load->ready)
                pods = max_u64(pods, 1);
        if (state->high_us && held >= limits->up_after_us) {
                uint64_t target = pods_for(limits, load, demand);
                /* Requests waiting despite free slots need an additional pod. */
                if (waits && !busy && load->ready && load->pods <= load->ready)
                        target = max_u64(target, load->pods + 1);
                pods = max_u64(pods, target);
        }
        state->wanted = clamp(limits, pods);
}

/* Whether a pod may go: the demand is low for long, and stays below the target without the pod. */
static bool step_down(struct scale_state *state, const struct scale_limits *limits, const struct scale_load *load,
        uint64_t demand)
{
        bool low = load->ready && !load->waiting && !load->woken && demand * 100 < load->slots * limits->down_at;
        uint64_t held = held_us(&state->low_us, low || (load->ready && !demand && !load->waiting && !load->woken),
                load->now_us);
        bool soon = state->removed_us && load->now_us - state->removed_us < limits->down_every_us;
        if (!state->low_us || held < limits->down_after_us)
                return false;
        /* Wanted pods that could not be created are no longer wanted. */
        state->wanted = clamp(limits, min_u64(state->wanted, load->pods));
        if (soon || !load->may_remove || !load->idle)
                return false;
        return load->pods > limits->pool_min && pods_for(limits, load, demand) < load->pods;
}

struct scale_step scale_step(struct scale_state *state, const struct scale_limits *limits,
        const struct scale_load *load)
{
        uint64_t demand = load->running + load->queued + load->waiting;
        struct scale_step step = { .utilization = utilization(load, demand) };
        step_up(state, limits, load, demand);
        step.remove = step_down(state, limits, load, demand);
        if (step.remove)
                state->removed_us = load->now_us;
        return step;
}
