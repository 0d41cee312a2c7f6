/* Pools: filling, taking, shrinking; see pool.h. */
#include "engine/instance/pool_private.h"


#define TICK_US 250000
#define TRIM_MS 500            /* without a run, until give_memory_back() */
#define REFILL_US 500          /* after the end of a run: its caller may start the next run first */
/* after a bare instance was taken for a persistent sandbox: its first operations come first */
#define REFILL_PSANDBOX_US 20000
#define MAKING_MAX 2

static void on_changed(void *owner, struct instance *instance);
static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how);
static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again);

static const struct instance_user instance_user = {
        .ready = on_changed, .confined = on_changed, .exited = on_exited, .refused = on_refused
};

/* The pool of an instance, or NULL. */
static struct pool *pool_of(const struct instance *instance)
{
        return instance->user == &instance_user ? instance->owner : NULL;
}

/* ---- instances of a pool ---- */

/* Each pool may keep an instance; above the memory bound the largest pool discards its oldest. */
static void keep_bound(struct pools *pools)
{
        while (pools_memory(pools) > pools->instances->settings->engine.pool_memory_bytes) {
                struct pool *largest = NULL;
                for (struct pool *pool = pools->all; pool; pool = pool->next)
                        if (pool->waiting > 1 && (!largest || pool->memory > largest->memory))
                                largest = pool;
                if (!largest)
                        return;
                pool_discard_oldest(largest);
        }
}

/* The creation of an instance failed. */
static void failed(struct pool *pool)
{
        pool->making--;
        /* The image may be gone; the next run in the image fills the pool again. */
        if (pool_has_image(pool) || pool->shape.domain)
                pool->target = 0;
        pool->backoff_ms = pool_next_backoff(pool->backoff_ms);
        pool->backoff_until_ms = clock_ms() + pool->backoff_ms;
}

static void lose(struct pool *pool, struct instance *instance)
{
        if (!pool_unlink(pool, instance))
                failed(pool);
        pools_refill(pool->pools);
}

static int put_interpreter(const struct pool *pool, struct instance *instance, struct csn_error *err)
{
        const struct language *language = pool->language;
        if (language->zygote)
                return pool->zygote->serves ? instance_join(instance, pool->zygote->id, err) : 0;
        struct wire_program program = { 0 };
        struct arena arena = { 0 };
        lang_wait_program(language, pool->interpreter[0] ? pool->interpreter : NULL, launch_usual_env(), &arena,
                &program);
        int rc = instance_worker(instance, &program, err);
        arena_done(&arena);
        return rc;
}

static void on_changed(void *owner, struct instance *instance)
{
        struct pool *pool = owner;
        struct csn_error err;
        if (instance->state == INSTANCE_WARM || !pool->language) {
                pool_link(pool, instance);
                keep_bound(pool->pools);
                pools_refill(pool->pools);
                instances_changed(pool->pools->instances);
        } else if (put_interpreter(pool, instance, &err) < 0) {
                log_text(LOG_WARN, "%s", err.text);
                instance_kill(instance);
        }
}

static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how)
{
        (void)how;
        lose(owner, instance);
}

static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again)
{
        (void)again;
        log_text(LOG_INFO, "a sandbox that waited is gone: %s", error->text);
        lose(owner, instance);
}

/* LIFO: the newest instance still has its memory in the CPU cache. */
static struct instance *take(struct pool *pool)
{
        struct instance *instance = pool ? pool->newest : NULL;
        if (!pool)
                return NULL;
        pool->used_ms = clock_ms();
        if (!instance) {
                pool->misses++;
                return NULL;
        }
        pool_unlink(pool, instance);
        instance_set_user(instance, NULL, NULL);   /* until its taker sets another */
        instance->kept = true;
        pool->hits++;
        return instance;
}

static void grow(struct pool *pool)
{
        pool->target = (size_t)min_u64(pool->target * 2 + 1, pool_target_max(pool));
}

bool pools_are_warm(struct pools *pools, const struct launch *launch)
{
        if (!pool_fits_ahead(launch))
                return false;
        const struct pool *pool = pool_find(pools, launch, launch->language);
        if (pool && pool->newest)
                return true;
        struct zygote *zygote = launch->language->zygote ? pool_choose_zygote(pools, launch) : NULL;
        if (zygote && !zygote->own)
                pool_zygote_start(pools, zygote);
        return zygote && zygote->serves;
}

/* Takes an instance; an empty pool gets a higher target. */
static struct instance *take_or_grow(struct pool *pool)
{
        struct instance *instance = take(pool);
        if (pool && !instance)
                grow(pool);
        return instance;
}

struct instance *pools_take_bare(struct pools *pools, const struct launch *launch)
{
        struct instance *instance =
                pools && !pool_has_grants(launch) ? take_or_grow(pool_for(pools, launch, NULL)) : NULL;
        if (pools && !pools->refill.active)
                loop_timer(pools->instances->loop, &pools->refill, REFILL_PSANDBOX_US);
        return instance;
}

void pools_take(struct pools *pools, struct launch *launch, struct instance **ret_instance, uint32_t *ret_zygote)
{
        bool forks = launch->language->zygote != NULL, ahead = pool_fits_ahead(launch);
        bool pooled = !pool_has_grants(launch);
        const struct zygote *zygote = forks && ahead ? pool_choose_zygote(pools, launch) : NULL;
        launch->shape.domain = zygote && zygote->own ? zygote->id : 0;
        if (forks && ahead)
                pool_note_use(pools, launch);
        ahead = ahead && (!forks || zygote);
        struct instance *instance = ahead && pooled ? take_or_grow(pool_for(pools, launch, launch->language)) : NULL;
        if (!instance) {
                instance = pooled ? take_or_grow(pool_for(pools, launch, NULL)) : NULL;
                if (zygote && zygote->serves)
                        *ret_zygote = zygote->id;
        }
        *ret_instance = instance;
}

/* ---- more and less ---- */

static bool lacks(const struct pool *pool)
{
        bool possible = !pool->zygote || pool->zygote->serves;
        return possible && pool->waiting + pool->making < pool->target && clock_ms() >= pool->backoff_until_ms;
}

static bool make_one(struct pools *pools, struct pool *pool)
{
        struct csn_error err;
        struct instance *instance;
        struct wire_shape shape = pool->shape;
        shape.label = (char *)(uintptr_t)LAUNCH_LABEL;
        pool->making++;
        if (instance_new(pools->instances, pools->backend, &shape, &instance_user, pool, &instance, &err) == 0)
                return true;
        log_text(LOG_WARN, "%s", err.text);
        failed(pool);
        return false;
}

static bool has_room(const struct pools *pools, const struct pool *pool)
{
        uint64_t size = pool->newest ? pool->newest->boundary.memory_bytes : 0;
        if (pools->instances->n + 1 >= pools->instances->places)   /* one place is for a run */
                return false;
        return pool->waiting + pool->making == 0 ||
               pools_memory(pools) + size * (pool->making + 1) <= pools->instances->settings->engine.pool_memory_bytes;
}

/* A run has asked for an instance of the pool. */
static bool is_asked_for(const struct pool *pool)
{
        return pool->hits || pool->misses;
}

/* An unused pool of Node or Bash leaves the processors to a zygote being started. */
static bool has_time(const struct pools *pools, const struct pool *pool)
{
        return !pool->language || pool->language->zygote || is_asked_for(pool) || !pools_zygote_comes(pools);
}

void pools_make_place(struct pools *pools)
{
        struct pool *largest = NULL;
        for (struct pool *pool = pools ? pools->all : NULL; pool; pool = pool->next)
                if (pool->waiting && (!largest || pool->waiting > largest->waiting))
                        largest = pool;
        if (largest)
                pool_discard_oldest(largest);
}

static bool is_needier(const struct pool *a, const struct pool *b)
{
        size_t has_a = a->waiting + a->making, has_b = b->waiting + b->making;
        if (is_asked_for(a) != is_asked_for(b))
                return is_asked_for(a);
        if (has_a * b->target != has_b * a->target)
                return has_a * b->target < has_b * a->target;
        return a->used_ms > b->used_ms;
}

/* Pools in use come first; then the pool with the lowest part of its target; of two equals the most recently used. */
static struct pool *neediest(struct pools *pools)
{
        struct pool *found = NULL;
        for (struct pool *pool = pools->all; pool; pool = pool->next) {
                if (lacks(pool) && has_room(pools, pool) && has_time(pools, pool) &&
                        (!found || is_needier(pool, found)))
                        found = pool;
        }
        return found;
}

/* Queued runs come before instances for pools. */
static void refill(struct timer *timer)
{
        struct pools *pools = timer->owner;
        size_t making = 0;
        for (struct pool *pool = pools->all; pool; pool = pool->next)
                making += pool->making;
        for (struct pool *pool;
                !pools->user->has_ready_run(pools->owner) && making < MAKING_MAX && (pool = neediest(pools));)
                making += make_one(pools, pool);   /* a failed pool pauses (backoff), and is not the neediest */
}

void pools_refill(struct pools *pools)
{
        if (pools && !pools->refill.active)
                loop_timer(pools->instances->loop, &pools->refill,
                        pools->user->has_running(pools->owner) ? REFILL_US : 0);
}

static void shrink(struct pools *pools, struct pool *pool, uint64_t now)
{
        if (now - max_u64(pool->used_ms, pool->halved_ms) < pools->instances->settings->engine.pool_idle_ms)
                return;
        pool->halved_ms = now;
        pool->target = (size_t)max_u64(pool->target / 2, pool_target_min(pool));
        while (pool->waiting > pool->target)
                pool_discard_oldest(pool);
}

static void give_memory_back(struct pools *pools, uint64_t now)
{
        if (pools->user->has_runs(pools->owner)) {
                pools->busy_ms = now;
        } else if (pools->busy_ms && now - pools->busy_ms >= TRIM_MS) {
                pools->user->give_memory_back(pools->owner);
                pools->busy_ms = 0;
        }
}

static void tick(struct timer *timer)
{
        struct pools *pools = timer->owner;
        uint64_t now = clock_ms();
        give_memory_back(pools, now);
        for (struct pool *pool = pools->all; pool; pool = pool->next) {
                shrink(pools, pool, now);
                if (pool->zygote && !pool->zygote->own && pool->zygote != &pools->ended)
                        pool_zygote_start(pools, pool->zygote);
        }
        pool_own_tick(pools);
        pools_remove_ended(pools);
        pools_refill(pools);
        loop_timer(pools->instances->loop, timer, TICK_US);
}

/* ---- news of zygotes ---- */

static void on_serves(struct pools *pools, struct zygote *zygote, const char *info)
{
        zygote->serves = true;
        zygote->retry_ms = 0;
        free(zygote->info);
        zygote->info = mem_copy(info, strlen(info));
        if (zygote->own)
                pool_own_serves(zygote, info);
        for (struct instance *instance = pools->instances->all; instance; instance = instance->next)
                if (pool_of(instance) && pool_of(instance)->language && instance->state == INSTANCE_BARE)
                        on_changed(instance->owner, instance);
        pools_refill(pools);
}

static struct zygote *find_zygote(struct pools *pools, uint32_t id)
{
        for (size_t i = 0; i < POOL_IMAGES; i++)
                if (pools->zygotes[i].asked && pools->zygotes[i].id == id)
                        return &pools->zygotes[i];
        return pool_own_find(pools, id);
}

static void on_gone(struct pools *pools, struct zygote *zygote, const struct csn_error *error)
{
        if (zygote->own)
                log_text(LOG_WARN, "a Python zygote with packages or of an image is gone: %s", error->text);
        else if (zygote->serves)
                log_text(LOG_WARN, "a Python zygote is gone: %s", error->text);
        else
                log_text(LOG_ERROR, "a Python zygote cannot be made, and Python programs start cold: %s", error->text);
        pool_zygote_failed(zygote, error->text);
        if (zygote->own)
                pool_own_ended(pools, zygote);
}

void pools_zygote(struct pools *pools, uint32_t id, const char *info, const struct csn_error *error)
{
        struct zygote *zygote = pools ? find_zygote(pools, id) : NULL;
        if (!zygote)
                return;   /* a retired own zygote */
        if (error)
                on_gone(pools, zygote, error);
        else
                on_serves(pools, zygote, info);
        instances_changed(pools->instances);   /* runs waiting for the zygote may start, warm or cold */
}

void pools_lost(struct pools *pools)
{
        for (size_t i = 0; pools && i < POOL_IMAGES; i++)
                if (pools->zygotes[i].asked)
                        pool_zygote_failed(&pools->zygotes[i], "the backend is gone");
        for (struct zygote *zygote = pools ? pools->own : NULL; zygote; zygote = zygote->next) {
                if (!zygote->asked)
                        continue;
                pool_own_ended(pools, zygote);
                pool_zygote_failed(zygote, "the backend is gone");
                zygote->retry_at_ms = clock_ms();   /* no fault of the zygote */
        }
}

/* ---- begin and end ---- */

/* Make the pools of a usual request before the first run. */
static void expect(struct pools *pools, const struct language *language, int image)
{
        struct csn_error err;
        struct launch launch;
        if (pool_usual_launch(pools, language->name, image, &launch, &err) < 0) {
                log_text(LOG_WARN, "%s", err.text);
        } else {
                pool_for(pools, &launch, NULL)->expected = true;
                if (pool_fits_ahead(&launch))
                        pool_for(pools, &launch, language)->expected = true;
        }
        launch_done(&launch);
}

struct pools *pools_open(struct instances *instances, const struct backend *backend, const struct language *added,
        bool grades, const struct pools_user *user, void *owner)
{
        struct pools *pools = mem_alloc(sizeof *pools);
        *pools = (struct pools){ .instances = instances,
                .backend = backend,
                .added = added,
                .user = user,
                .owner = owner,
                .tick = { .fired = tick, .owner = pools },
                .refill = { .fired = refill, .owner = pools } };
        if (grades)
                expect(pools, &lang_python, image_SMALL);
        for (size_t i = 0; lang_at(i) && !grades; i++)
                expect(pools, lang_at(i), image_SYSTEM);
        loop_timer(instances->loop, &pools->tick, 0);
        return pools;
}

void pools_close(struct pools *pools)
{
        if (!pools)
                return;
        loop_untimer(pools->instances->loop, &pools->tick);
        loop_untimer(pools->instances->loop, &pools->refill);
        for (struct pool *pool = pools->all, *next; pool; pool = next) {
                next = pool->next;
                free(pool);
        }
        for (size_t i = 0; i < POOL_IMAGES; i++)
                free(pools->zygotes[i].info);
        pool_own_free(pools);
        free(pools);
}

/* ---- status ---- */

void pools_count(const struct pools *pools, size_t *ret_ready, uint64_t *ret_memory_bytes)
{
        *ret_ready = 0;
        *ret_memory_bytes = 0;
        for (const struct pool *pool = pools ? pools->all : NULL; pool; pool = pool->next) {
                *ret_ready += pool->waiting;
                *ret_memory_bytes += pool->memory;
        }
}

json_t *pools_status(const struct pools *pools)
{
        json_t *list = json_array();
        for (const struct pool *pool = pools ? pools->all : NULL; pool; pool = pool->next) {
                json_t *item = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "key", pool->name, "ready",
                        (json_int_t)pool->waiting, "making", (json_int_t)pool->making, "target",
                        (json_int_t)pool->target, "min", (json_int_t)pool_target_min(pool), "max",
                        (json_int_t)pool_target_max(pool), "memory_bytes", (json_int_t)pool->memory, "hits",
                        (json_int_t)pool->hits, "misses", (json_int_t)pool->misses);
                json_t *info = pool->zygote && pool->zygote->serves ? json_loads(pool->zygote->info, 0, NULL) : NULL;
                if (pool->zygote)
                        json_object_set_new(item, "zygote", info ? info : json_null());
                json_array_append_new(list, item);
        }
        return list;
}
