/*
 * pool: launches take what is ready, pools fill when no run is ready to start, and zygotes come and go.  The backend
 * records its requests; time is the event loop's.
 */
#include "engine/instance/pool_private.h"

#include "fake-backend.h"
#include "tap.h"

/* ---- the owner of the pools ---- */

struct owner {
        struct instances instances;
        struct pools *pools;
        bool ready_run;
        int changed;
};

static struct settings settings;

static bool has_ready_run(void *owner)
{
        return ((const struct owner *)owner)->ready_run;
}

static bool has_none(void *owner)
{
        (void)owner;
        return false;
}

static void keep_memory(void *owner)
{
        (void)owner;
}

static const struct pools_user pools_user = { has_ready_run, has_none, has_none, keep_memory };

static void on_changed(void *owner)
{
        ((struct owner *)owner)->changed++;
}

static void on_zygote(void *owner, uint32_t id, const char *info, const struct csn_error *error)
{
        pools_zygote(((const struct owner *)owner)->pools, id, info, error);
}

static void on_lost(void *owner)
{
        pools_lost(((const struct owner *)owner)->pools);
}

static const struct instances_events events = { .changed = on_changed, .zygote = on_zygote, .lost = on_lost };
static const struct wire_boundary boundary = { .memory_bytes = 9 * MIB };

static void begin(struct owner *owner)
{
        struct csn_error err;
        fake = (struct backend_link){ 0 };
        *owner = (struct owner){ .instances = {
                                         .settings = &settings, .events = &events, .owner = owner, .places = 40 } };
        CHECK(loop_new(&owner->instances.loop, &err) == 0);
        owner->pools = pools_open(&owner->instances, &fake_backend, NULL, false, &pools_user, owner);
}

static void end(struct owner *owner)
{
        pools_close(owner->pools);
        instances_free(&owner->instances);
        loop_free(owner->instances.loop);
}

/* Serve timers until the backend has got this many requests for instances, or nothing more happens. */
static void step(struct owner *owner, size_t prepared)
{
        struct csn_error err;
        for (int i = 0; i < 100 && fake.prepared < prepared; i++)
                CHECK(loop_step(owner->instances.loop, 20, &err) == 0);
}

/* The backend reports every instance that is still being made as ready, and puts every interpreter in place. */
static void make_all(struct owner *owner)
{
        for (struct instance *instance = owner->instances.all; instance; instance = instance->next) {
                if (instance->state == INSTANCE_MAKING)
                        fake.events->ready(instance, &boundary, &fake_ends);
                if (instance->state == INSTANCE_CONFINING)
                        fake.events->confined(instance, &boundary);
        }
}

static size_t waiting_in_all(const struct pools *pools)
{
        size_t n = 0;
        for (const struct pool *pool = pools->all; pool; pool = pool->next)
                n += pool->waiting;
        return n;
}

static void prepare(struct launch *launch, const char *language)
{
        struct csn_error err;
        launch_init(launch, &settings, NULL);
        SET(&launch->request, run_request, language, arena_text(&launch->arena, "%s", language));
        SET(&launch->request, run_request, code, ((struct bytes){ .bytes = arena_text(&launch->arena, "%s", "") }));
        CHECK(launch_prepare(launch, &err) == 0);
}

/* ---- tests ---- */

static void a_launch_takes_a_bare_instance_and_then_its_pool_grows(void)
{
        struct owner owner;
        struct launch launch;
        struct instance *instance = NULL;
        uint32_t zygote = 0;
        begin(&owner);
        step(&owner, 1);
        CHECK(fake.prepared >= 1);
        make_all(&owner);
        prepare(&launch, "python");
        pools_take(owner.pools, &launch, &instance, &zygote);
        CHECK(instance && instance->state == INSTANCE_BARE && instance->kept && !instance->user && !zygote);
        struct pool *pool = pool_find(owner.pools, &launch, NULL);
        size_t before = pool->target, max = pool_target_max(pool);
        CHECK(before < max);
        while (pool->waiting)
                pools_take(owner.pools, &launch, &instance, &zygote);
        pools_take(owner.pools, &launch, &instance, &zygote);
        CHECK(!instance && pool->misses == 1 && pool->target == min_u64(2 * before + 1, max));
        launch_done(&launch);
        end(&owner);
}

static void a_pool_rests_while_a_run_is_ready_to_start(void)
{
        struct owner owner;
        begin(&owner);
        owner.ready_run = true;
        step(&owner, 1);
        CHECK(fake.prepared == 0);
        owner.ready_run = false;
        pools_refill(owner.pools);
        step(&owner, 1);
        CHECK(fake.prepared >= 1);
        end(&owner);
}

static void an_interpreter_is_forked_from_a_zygote_that_serves(void)
{
        struct owner owner;
        struct launch launch;
        struct instance *instance = NULL;
        struct csn_error err;
        uint32_t zygote = 0;
        begin(&owner);
        prepare(&launch, "python");
        step(&owner, 1);
        CHECK(fake.zygotes == 1 && pools_zygote_comes(owner.pools) && pools_zygote_state(owner.pools, &err) == 0);
        CHECK(!pools_are_warm(owner.pools, &launch));
        fake.events->zygote(fake.engine, fake.zygote, "{\"python\":\"3.11.2\"}", NULL);
        CHECK(!pools_zygote_comes(owner.pools) && pools_zygote_state(owner.pools, &err) == 1 && owner.changed);
        CHECK(pools_are_warm(owner.pools, &launch));
        for (int i = 0; i < 10 && !pool_find(owner.pools, &launch, launch.language)->waiting; i++) {
                make_all(&owner);
                step(&owner, fake.prepared + 1);
        }
        pools_take(owner.pools, &launch, &instance, &zygote);
        CHECK(fake.joined >= 1 && instance && instance->state == INSTANCE_WARM);
        launch_done(&launch);
        end(&owner);
}

static void a_zygote_that_fails_rests_and_runs_start_cold(void)
{
        struct owner owner;
        struct launch launch;
        struct csn_error error, err;
        begin(&owner);
        prepare(&launch, "python");
        step(&owner, 1);
        err_set(&error, CSN_E_SYSTEM, 0, "no interpreter");
        fake.events->zygote(fake.engine, fake.zygote, NULL, &error);
        CHECK(pools_zygote_state(owner.pools, &err) < 0 && strcmp(err.text, "no interpreter") == 0);
        CHECK(pools_zygote_for(owner.pools, &launch) == 0 && fake.zygotes == 1);
        launch_done(&launch);
        end(&owner);
}

static void an_instance_that_cannot_be_made_makes_its_pool_rest(void)
{
        struct owner owner;
        struct launch launch;
        begin(&owner);
        prepare(&launch, "python");
        fake.refuses = true;
        step(&owner, 1);
        struct pool *pool = pool_find(owner.pools, &launch, NULL);
        CHECK(fake.prepared == 0 && pool->making == 0 && pool->backoff_ms && pool->backoff_until_ms >= clock_ms());
        fake.refuses = false;
        launch_done(&launch);
        end(&owner);
}

static void an_instance_that_dies_while_it_waits_leaves_its_pool(void)
{
        struct owner owner;
        struct launch launch;
        begin(&owner);
        prepare(&launch, "python");
        step(&owner, 1);
        make_all(&owner);
        struct pool *pool = pool_find(owner.pools, &launch, NULL);
        size_t waiting = pool->waiting;
        CHECK(waiting >= 1);
        fake.events->exited(pool->newest, &(const struct wire_exit){ .has_status = 1 });
        CHECK(pool->waiting == waiting - 1 && pool->memory == (waiting - 1) * boundary.memory_bytes);
        step(&owner, fake.prepared + 1);
        make_all(&owner);
        waiting = waiting_in_all(owner.pools);
        CHECK(waiting >= 1 && fake.killed == 0);
        pools_make_place(owner.pools);
        CHECK(fake.killed == 1 && waiting_in_all(owner.pools) == waiting - 1);
        launch_done(&launch);
        end(&owner);
}

static void a_request_with_standard_input_gets_no_waiting_worker(void)
{
        struct launch plain, fed;
        prepare(&plain, "bash");
        CHECK(pool_fits_ahead(&plain));
        prepare(&fed, "bash");
        SET(&fed.request, run_request, stdin, ((struct bytes){ .bytes = (char[]){ "x" }, .len = 1 }));
        CHECK(!pool_fits_ahead(&fed));
        launch_done(&plain);
        launch_done(&fed);
}

static void without_pools_nothing_is_ready(void)
{
        struct csn_error err;
        struct launch launch;
        prepare(&launch, "python");
        CHECK(!pools_take_bare(NULL, &launch) && pools_zygote_for(NULL, &launch) == 0 &&
                pools_zygote_state(NULL, &err) == 0);
        json_t *status = pools_status(NULL), *zygotes = pools_zygotes(NULL);
        CHECK(json_array_size(status) == 0 && json_array_size(zygotes) == 0);
        json_decref(status);
        json_decref(zygotes);
        pools_refill(NULL);
        pools_make_place(NULL);
        pools_lost(NULL);
        pools_close(NULL);
        launch_done(&launch);
}

int main(void)
{
        struct csn_error err;
        backend_add(&fake_backend);
        CHECK(settings_load(&(const struct settings_sources){ .env = (char *const[]){ NULL } }, &settings, &err) == 0);
        RUN(a_launch_takes_a_bare_instance_and_then_its_pool_grows);
        RUN(a_pool_rests_while_a_run_is_ready_to_start);
        RUN(an_interpreter_is_forked_from_a_zygote_that_serves);
        RUN(a_zygote_that_fails_rests_and_runs_start_cold);
        RUN(an_instance_that_cannot_be_made_makes_its_pool_rest);
        RUN(an_instance_that_dies_while_it_waits_leaves_its_pool);
        RUN(a_request_with_standard_input_gets_no_waiting_worker);
        RUN(without_pools_nothing_is_ready);
        settings_done(&settings);
        return tap_done();
}
