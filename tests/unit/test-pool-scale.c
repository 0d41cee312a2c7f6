/* The wanted number of pods, second by second. */
#include "gateway/pool/scale.h"

#include "tap.h"

#define S 1000000ULL

static const struct scale_limits limits = { .pool_min = 1, .pool_max = 5, .up_at = 70, .down_at = 40,
        .up_after_us = 3 * S, .down_after_us = 300 * S, .down_every_us = 30 * S };

/* The wanted number when a load holds for some seconds, seen once a second. */
static uint64_t wanted_after(struct scale_state *state, struct scale_load load, uint64_t seconds, unsigned *ret_removed)
{
        unsigned removed = 0;
        static uint64_t now = 1000 * S;
        for (uint64_t i = 0; i <= seconds; i++) {
                load.now_us = now += S;
                removed += scale_step(state, &limits, &load).remove;
        }
        if (ret_removed)
                *ret_removed = removed;
        return state->wanted;
}

static void the_pool_begins_with_what_is_there(void)
{
        struct scale_state state;
        static const uint64_t rows[][2] = { { 0, 1 }, { 1, 1 }, { 3, 3 }, { 9, 5 } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                scale_begin(&state, &limits, rows[i][0]);
                CHECK(state.wanted == rows[i][1]);
        }
}

static void load_decides_the_number(void)
{
        static const struct {
                const char *what;
                struct scale_load load;
                uint64_t seconds, wanted;
        } rows[] = {
                { "no load", { .ready = 2, .pods = 2, .slots = 8 }, 10, 2 },
                { "70 percent is not above 70 percent", { .ready = 1, .pods = 1, .slots = 10, .running = 7 }, 10, 1 },
                { "above for 3 s: ceil(8 / 0.6 / 10)", { .ready = 1, .pods = 1, .slots = 10, .running = 8 }, 3, 2 },
                { "above for 2 s", { .ready = 1, .pods = 1, .slots = 10, .running = 8 }, 2, 1 },
                { "a queue counts", { .ready = 1, .pods = 1, .slots = 4, .running = 4, .queued = 4 }, 3, 4 },
                { "bounded by the maximum", { .ready = 1, .pods = 1, .slots = 4, .running = 4, .queued = 90 }, 3, 5 },
                { "requests that wait in the gateway",
                        { .ready = 1, .pods = 1, .slots = 4, .running = 4, .waiting = 4, .wait_ms = 500 }, 3, 4 },
                { "a wait with free slots: one pod more",
                        { .ready = 2, .pods = 2, .slots = 8, .waiting = 1, .wait_ms = 101 }, 3, 3 },
                { "a wait with a pod that comes", { .ready = 2, .pods = 3, .slots = 8, .waiting = 1, .wait_ms = 101 },
                        3, 2 },
                { "a short wait", { .ready = 2, .pods = 2, .slots = 8, .waiting = 1, .wait_ms = 100 }, 10, 2 },
                { "none is ready yet", { .pods = 1, .waiting = 9, .wait_ms = 9000 }, 10, 1 },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct scale_state state;
                scale_begin(&state, &limits, rows[i].load.pods > 2 ? 2 : rows[i].load.pods);
                uint64_t wanted = wanted_after(&state, rows[i].load, rows[i].seconds, NULL);
                if (wanted != rows[i].wanted)
                        printf("# %s: %u\n", rows[i].what, (unsigned)wanted);
                CHECK(wanted == rows[i].wanted);
        }
}

static void a_request_wakes_an_empty_pool_at_once(void)
{
        struct scale_limits none = limits;
        struct scale_state state;
        none.pool_min = 0;
        scale_begin(&state, &none, 0);
        struct scale_load load = { .now_us = S };
        CHECK(!scale_step(&state, &none, &load).remove && state.wanted == 0);
        load.woken = true;
        scale_step(&state, &none, &load);
        CHECK(state.wanted == 1);
}

static void a_peak_of_two_seconds_is_forgotten(void)
{
        struct scale_state state;
        scale_begin(&state, &limits, 1);
        struct scale_load busy = { .ready = 1, .pods = 1, .slots = 4, .running = 4 }, calm = busy;
        calm.running = 1;
        for (int i = 0; i < 5; i++) {
                CHECK(wanted_after(&state, busy, 1, NULL) == 1);
                CHECK(wanted_after(&state, calm, 0, NULL) == 1);
        }
}

static void pods_go_one_by_one_after_five_calm_minutes(void)
{
        unsigned removed;
        struct scale_state state;
        struct scale_load load = { .ready = 4, .pods = 4, .slots = 16, .running = 1, .idle = 3, .may_remove = true };
        scale_begin(&state, &limits, 4);
        wanted_after(&state, load, 298, &removed);
        CHECK(removed == 0);
        wanted_after(&state, load, 3, &removed);
        CHECK(removed == 1);
        wanted_after(&state, load, 60, &removed);
        CHECK(removed == 2);
}

static void a_pod_stays_that_is_needed_or_not_ours_to_remove(void)
{
        static const struct {
                const char *what;
                struct scale_load load;
        } rows[] = {
                { "no lease", { .ready = 3, .pods = 3, .slots = 12, .idle = 3 } },
                { "no idle pod", { .ready = 3, .pods = 3, .slots = 12, .may_remove = true } },
                { "the minimum", { .ready = 1, .pods = 1, .slots = 4, .idle = 1, .may_remove = true } },
                { "the rest would be too busy",
                        { .ready = 2, .pods = 2, .slots = 8, .running = 3, .idle = 1, .may_remove = true } },
                { "40 percent is not below 40 percent",
                        { .ready = 5, .pods = 5, .slots = 20, .running = 8, .idle = 1, .may_remove = true } },
                { "requests wait",
                        { .ready = 3, .pods = 3, .slots = 12, .waiting = 1, .idle = 1, .may_remove = true } },
                { "none is ready", { .pods = 3, .idle = 0, .may_remove = true } },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                unsigned removed;
                struct scale_state state;
                scale_begin(&state, &limits, rows[i].load.pods);
                wanted_after(&state, rows[i].load, 400, &removed);
                if (removed)
                        printf("# %s: %u\n", rows[i].what, removed);
                CHECK(removed == 0);
        }
}

static void pods_that_could_not_be_made_are_forgotten_in_calm(void)
{
        struct scale_state state;
        scale_begin(&state, &limits, 1);
        struct scale_load calm = { .ready = 1, .pods = 1, .slots = 4 }, busy = calm;
        busy.running = 4;
        busy.queued = 20;
        CHECK(wanted_after(&state, busy, 5, NULL) == 5);
        CHECK(wanted_after(&state, calm, 299, NULL) == 5);
        CHECK(wanted_after(&state, calm, 2, NULL) == 1);
}

static void utilization_is_demand_over_slots(void)
{
        struct scale_state state;
        scale_begin(&state, &limits, 1);
        struct scale_load load = { .now_us = S, .ready = 2, .slots = 8, .running = 3, .queued = 1 };
        CHECK(scale_step(&state, &limits, &load).utilization == 0.5);
        load = (struct scale_load){ .now_us = 2 * S };
        CHECK(scale_step(&state, &limits, &load).utilization == 0);
        load.waiting = 1;
        CHECK(scale_step(&state, &limits, &load).utilization == 1);
}

int main(void)
{
        RUN(the_pool_begins_with_what_is_there);
        RUN(load_decides_the_number);
        RUN(a_request_wakes_an_empty_pool_at_once);
        RUN(a_peak_of_two_seconds_is_forgotten);
        RUN(pods_go_one_by_one_after_five_calm_minutes);
        RUN(a_pod_stays_that_is_needed_or_not_ours_to_remove);
        RUN(pods_that_could_not_be_made_are_forgotten_in_calm);
        RUN(utilization_is_demand_over_slots);
        return tap_done();
}
