/* The engine: one composition of runs, persistent sandboxes, pools and backends; see engine.h. */
#include "engine/engine.h"
#include "engine/persistent/psandbox_private.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>

/* ---- the queue ---- */

static bool has_place(struct engine *engine)
{
        if (engine->instances.n < engine->instances.places)
                return true;
        if (queue_is_ready(engine))
                pools_make_place(engine->pools);   /* its end calls queue_changed() */
        return false;
}

/* At most running_max runs at once, and at most starting_max new sandboxes being made. */
static void serve_queue(struct engine *engine)
{
        const struct engine_settings *settings = &engine->settings->engine;
        while (clock_us() >= engine->crowded_until_us &&
                engine->running < queue_running_max(engine) && engine->instances.starting < settings->starting_max &&
                has_place(engine)) {
                struct run *run = queue_take(engine);
                if (!run)
                        return;
                run_begin(run);
        }
        uint64_t now_us = clock_us();
        if (engine->crowded_until_us > now_us)
                loop_timer(engine->loop, &engine->dispatch, engine->crowded_until_us - now_us);
}

static void dispatch_now(struct timer *timer)
{
        contexts_serve(timer->owner);
        serve_queue(timer->owner);
}

/* ---- CPU time of owners with a quota, while programs run ---- */

#define SAMPLE_US 1000000ULL           /* between two samples of all running work */
#define SAMPLE_NEAR_US 200000ULL       /* the same, if SAMPLE_US could use up the rest of the quota */

static uint64_t sample_after_us(const struct engine *engine, struct owner *owner, const struct run_quota *quota)
{
        return owner_left_us(engine, owner, quota) < engine->cores * SAMPLE_US ? SAMPLE_NEAR_US : SAMPLE_US;
}

/* The answers to these requests charge the CPU time, and end work beyond its quota. */
static void on_sample(struct timer *timer)
{
        struct engine *engine = timer->owner;
        uint64_t after_us = UINT64_MAX;
        for (struct run *run = engine->runs; run; run = run->next)
                if (run->instance && run->payer && run->quota.cpu_ms_per_day) {
                        after_us = min_u64(after_us, sample_after_us(engine, run->payer, &run->quota));
                        instance_request_stats(run->instance);
                }
        for (struct psandbox *psandbox = engine->psandboxes; psandbox; psandbox = psandbox->next)
                if (psandbox->instance && psandbox->payer && psandbox->quota.cpu_ms_per_day) {
                        after_us = min_u64(after_us, sample_after_us(engine, psandbox->payer, &psandbox->quota));
                        psandbox_request_stats(psandbox);
                }
        if (after_us != UINT64_MAX)
                loop_timer(engine->loop, timer, after_us);
}

static void sample_usage(struct engine *engine)
{
        if (!engine->usage_sample.active)
                loop_timer(engine->loop, &engine->usage_sample, SAMPLE_NEAR_US);
}

static const struct engine_hooks hooks = {
        .serve_queue = serve_queue, .sample_usage = sample_usage, .bind_context = context_bind
};

/* ---- news of instances ---- */

static void on_instances_changed(void *owner)
{
        queue_changed(owner);
}

static void on_zygote(void *owner, uint32_t id, const char *info, const struct csn_error *error)
{
        const struct engine *engine = owner;
        pools_zygote(engine->pools, id, info, error);
}

/* ---- orders of volumes ---- */

static void on_volume(void *owner, uint32_t ticket, const struct csn_error *error)
{
        struct engine *engine = owner;
        for (struct volume_query **at = &engine->volume_queries; *at; at = &(*at)->next)
                if ((*at)->ticket == ticket) {
                        struct volume_query *query = *at;
                        *at = query->next;
                        query->done(query, error);
                        return;
                }
}

static void on_lost(void *owner)
{
        struct engine *engine = owner;
        struct csn_error err;
        err_set(&err, CSN_E_BUSY, 0, "the supervisor was lost; ask again");
        struct volume_query *lost = engine->volume_queries;
        engine->volume_queries = NULL;
        for (struct volume_query *next; lost; lost = next) {
                next = lost->next;
                lost->done(lost, &err);
        }
        pools_lost(engine->pools);
}

static const struct instances_events instances_events = { on_instances_changed, on_zygote, on_volume, on_lost };

int engine_order_volume(struct engine *engine, struct volume_query *query, struct csn_error *err)
{
        query->ticket = ++engine->newest_volume_query;
        query->next = engine->volume_queries;
        engine->volume_queries = query;
        int rc = instances_order_volume(&engine->instances, query->ticket, &query->order, err);
        if (rc < 0)
                engine->volume_queries = query->next;
        return rc;
}

void engine_set_volumes(struct engine *engine, const struct volume_source *source, void *owner)
{
        engine->volume_source = source;
        engine->volume_source_owner = owner;
}

/* ---- callbacks of the pools ---- */

static bool has_ready_run(void *owner)
{
        return queue_is_ready(owner);
}

static bool has_running(void *owner)
{
        const struct engine *engine = owner;
        return engine->running + engine->beside > 0;
}

static bool has_runs(void *owner)
{
        const struct engine *engine = owner;
        return engine->runs != NULL;
}

/* The helper thread trims after a job. */
static void work_nothing(struct job *job)
{
        (void)job;
}

static void on_trimmed(struct job *job)
{
        (void)job;
}

/* malloc_trim(3) of a large heap takes 20 ms. */
static void give_memory_back(void *owner)
{
        struct engine *engine = owner;
        if (!engine->trim.active)
                worker_submit(engine->workers, "", &engine->trim);
}

static const struct pools_user pools_user = { has_ready_run, has_running, has_runs, give_memory_back };

/* ---- descriptors ---- */

/*
 * The supervisor and the engine each need up to 64 descriptors for zygotes, sockets and cgroups being removed.  Open
 * files of reused cgroups take at most one descriptor in eight.  A sandbox takes ten descriptors in the supervisor and
 * five in the engine.  A client of the engine takes one or two more.
 */
#define OWN_DESCRIPTORS 64
#define KEPT_SHARE 8
#define INSTANCE_DESCRIPTORS 12

size_t engine_places(uint64_t descriptors)
{
        uint64_t free_ = descriptors - descriptors / KEPT_SHARE;
        return free_ < OWN_DESCRIPTORS + INSTANCE_DESCRIPTORS
                ? 1
                : (size_t)min_u64((free_ - OWN_DESCRIPTORS) / INSTANCE_DESCRIPTORS, 1000000);
}

#define INSTANCE_DESCRIPTORS_HERE 5             /* the engine's part of INSTANCE_DESCRIPTORS */

size_t engine_client_descriptors(uint64_t descriptors)
{
        uint64_t own = OWN_DESCRIPTORS + engine_places(descriptors) * INSTANCE_DESCRIPTORS_HERE;
        return descriptors > own ? (size_t)min_u64(descriptors - own, 1000000) : 0;
}

/* The supervisor raises the soft limit for itself. */
static size_t places(void)
{
        struct rlimit limit;
        return engine_places(getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : RLIM_INFINITY);
}

/* ---- opening and closing ---- */

static size_t cores(void)
{
        cpu_set_t set;
        int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
        return n > 0 ? (size_t)n : 1;
}

int engine_check_settings(const struct settings *settings, struct csn_error *err)
{
        struct arena arena = { 0 };
        const char *const *ids;
        size_t n;
        int rc = image_pins(settings->images.layers, NULL, &arena, &ids, &n, err);
        arena_done(&arena);
        return rc;
}

int engine_open(const struct settings *settings, struct engine **ret, struct csn_error *err)
{
        struct engine *engine = mem_alloc(sizeof *engine);
        *engine = (struct engine){ .settings = settings,
                .cores = cores(),
                .hooks = &hooks,
                .instances = { .settings = settings, .events = &instances_events, .owner = engine, .places = places() },
                .trim = { .work = work_nothing, .done = on_trimmed },
                .dispatch = { .fired = dispatch_now, .owner = engine },
                .usage_sample = { .fired = on_sample, .owner = engine } };
        snprintf(engine->instances.uid_range, sizeof engine->instances.uid_range, "%llu:%llu",
                (unsigned long long)settings->engine.uid_first, (unsigned long long)settings->engine.uid_count);
        engine->instances.layers_dir = settings_layers_dir(settings, &engine->arena);
        engine->instances.images_dir = settings_images_dir(settings, &engine->arena);
        engine->instances.volumes_dir = settings_volumes_dir(settings, &engine->arena);
        engine->instances.devices = device_grants_list(settings, &engine->arena);
        struct device_grants grants;
        if (device_grants_read(settings, &engine->arena, &grants, err) < 0 || run_read_private_hosts(engine, err) < 0 ||
                engine_check_settings(settings, err) < 0 ||
                lang_load(settings->engine.languages_dir, &engine->arena, &engine->languages, err) < 0 ||
                loop_new(&engine->loop, err) < 0 || workers_new(engine->loop, &engine->workers, err) < 0) {
                loop_free(engine->loop);
                arena_done(&engine->arena);
                free(engine);
                return -err->code;
        }
        engine->instances.loop = engine->loop;
        *ret = engine;
        return 0;
}

void engine_close(struct engine *engine)
{
        if (!engine)
                return;
        for (struct run *run = engine->runs; run; run = run->next)
                run_detach(run);
        /* Builds of layers have runs and jobs of their own. */
        if (engine->layer_source)
                engine->layer_source->end(engine->layer_source_owner);
        engine->layer_source = NULL;
        if (engine->review_source)
                engine->review_source->end(engine->review_source_owner);
        engine->review_source = NULL;
        workers_free(engine->workers);   /* done() of their jobs needs the rest of the engine */
        engine->workers = NULL;
        instances_close_links(&engine->instances);
        psandboxes_close(engine);
        pools_close(engine->pools);
        for (struct run *run = engine->runs, *next; run; run = next) {
                next = run->next;
                run_free(run);
        }
        instances_free(&engine->instances);
        if (engine->tools)
                engine->tools->end(engine->tools_owner);
        for (size_t i = 0; i < ARRAY_LEN(engine->checkers); i++)
                checker_close(engine->checkers[i]);
        loop_free(engine->loop);
        arena_done(&engine->arena);
        free(engine);
}

/* ---- settings of the owner ---- */

void engine_set_usage_listener(struct engine *engine, const struct usage_listener *listener, void *owner)
{
        engine->usage_listener = listener;
        engine->usage_listener_owner = owner;
}

void engine_set_host(struct engine *engine, const char *tier, const char *missing)
{
        engine->host_tier = tier;
        engine->host_missing = missing;
}

uint64_t engine_unsettled_cpu_ms(const struct engine *engine, const char *owner_key)
{
        return owner_unsettled_us(engine, owner_key) / 1000;
}

int engine_may_begin(const struct engine *engine, const char *owner_key, const struct run_quota *quota,
        struct run_room *ret_room, struct csn_error *err)
{
        return owner_may_begin(engine, owner_key, quota, ret_room, err);
}

void engine_set_tools(struct engine *engine, const struct engine_tools *tools, void *owner)
{
        engine->tools = tools;
        engine->tools_owner = owner;
}

void engine_set_layers(struct engine *engine, const struct layer_source *source, void *owner)
{
        engine->layer_source = source;
        engine->layer_source_owner = owner;
}

void engine_set_review(struct engine *engine, const struct review_source *source, void *owner)
{
        engine->review_source = source;
        engine->review_source_owner = owner;
}

void engine_set_review_accounts(struct engine *engine, const struct review_accounts *accounts, void *owner)
{
        engine->review_accounts = accounts;
        engine->review_accounts_owner = owner;
}

int engine_find_layers(struct engine *engine, struct layer_query *query, struct csn_error *err)
{
        return layers_ask(engine, query, err);
}

void engine_forget_layers(struct engine *engine, struct layer_query *query)
{
        if (engine->layer_source)
                engine->layer_source->forget(engine->layer_source_owner, query);
}

void engine_warm(struct engine *engine, bool grades)
{
        if (!engine->pools)
                engine->pools =
                        pools_open(&engine->instances, &backend_native, engine->languages, grades, &pools_user, engine);
}

int engine_answers(const struct engine *engine, uint32_t *ret_losses, struct csn_error *err)
{
        *ret_losses = engine->instances.losses;
        if (helpers_are_silent())
                return err_set(err, CSN_E_SYSTEM, 0, "the starter does not answer; no program can be started now");
        if (instances_are_silent(&engine->instances))
                return err_set(err, CSN_E_SYSTEM, 0, "the supervisor does not answer; no program can be started now");
        return 0;
}

int engine_zygote(const struct engine *engine, struct csn_error *err)
{
        return pools_zygote_state(engine->pools, err);
}

void engine_reload(struct engine *engine)
{
        run_reload_policies(engine);
        queue_changed(engine);
}

size_t engine_running(const struct engine *engine)
{
        return engine->running + engine->beside;
}

struct engine_load engine_load(const struct engine *engine)
{
        struct engine_load load = { .running = engine->running,
                .queued = engine->queued + engine->examining + engine->checking,
                .slots = queue_running_max(engine) };
        const struct owner *owner = engine->owners;
        for (bool more = owner; more; more = owner != engine->owners) {
                load.running += owner->others;
                load.queued += owner->waiting;
                owner = owner->next;
        }
        return load;
}

const struct language *engine_languages(struct engine *engine)
{
        return engine->languages;
}

struct loop *engine_loop(struct engine *engine)
{
        return engine->loop;
}

struct workers *engine_workers(struct engine *engine)
{
        return engine->workers;
}

int engine_step(struct engine *engine, int max_ms, struct csn_error *err)
{
        return loop_step(engine->loop, max_ms, err);
}
