/*
 * What waits: sandboxes, and interpreters in them.  Each serves one run.
 *
 * A pool is for one kind of interpreter in one shape of sandbox, and comes to be when the first run of that kind
 * does.  A run that finds it empty makes it larger; time without a run makes it smaller.  What is missing is made
 * when there is nothing better to do.
 */
#include "engine/run/run_private.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#define TICK_US 250000
#define TRIM_MS 500            /* without a run, and memory that many runs at once needed is given back */
#define REFILL_US 500          /* after the end of a run: its caller may have the next one already */
#define REFILL_PSANDBOX_US 20000   /* after a persistent sandbox was given away: what is done in it first comes first */
#define MAKING_MAX 2
#define RETRY_MS 1000          /* how long a pool that could not be filled rests, or a zygote that failed; doubled with each failure in a row */
#define RETRY_MAX_MS 60000
#define POOLS_MAX 32           /* kinds, of which a request can ask for more; then the one that was not used for the longest time goes */
static const char *const images[] = { [image_SYSTEM] = "system", [image_DATA] = "data", [image_SMALL] = "small" };

#define OWN_ARGUMENTS 2        /* the interpreter and its runner, in every command line */

struct zygote {
        bool asked, serves;
        uint32_t id;
        uint64_t retry_ms, retry_at_ms;
        uint64_t failures;             /* how often it could not be made, or ended */
        char trouble[200];             /* the last one's */
        char *info;
};

struct pool {
        struct pool *next;
        struct engine *engine;
        char name[160];
        struct wire_shape shape;
        const struct language *language;   /* whose interpreter it holds, or NULL: none */
        int image;
        struct instance *newest;                /* of those that wait, linked to the ones before it */
        size_t waiting, making, target;
        bool expected;                     /* of a usual request, and stays */
        uint64_t hits, misses, memory, used_ms, halved_ms, backoff_ms, backoff_until_ms;
};

struct pools {
        struct pool *all;
        size_t n;
        struct zygote zygotes[ARRAY_LEN(images)];    /* one an image */
        uint32_t zygotes_made;
        uint64_t busy_ms;                            /* when there was a run, or 0: not since memory was given back */
        struct timer tick, refill;
};

static void on_changed(void *owner, struct instance *instance);
static void on_exited(void *owner, struct instance *instance, const struct wire_exit *how);
static void on_refused(void *owner, struct instance *instance, const struct csn_error *error, bool again);

static const struct instance_user instance_user = { .ready = on_changed, .confined = on_changed, .exited = on_exited, .refused = on_refused };

/* The pool that an instance belongs to while nothing else uses it, or NULL. */
static struct pool *pool_of(const struct instance *instance)
{
        return instance->user == &instance_user ? instance->owner : NULL;
}

/* ---- zygotes ---- */

/* A request that says nothing but its language, its image and its code, and perhaps a profile, made whole; the caller frees the run. */
static struct run *bare_run(struct engine *engine, const char *language, int image, const char *profile, struct csn_error *err)
{
        struct run *run = run_new(engine);
        struct run_request *request = run_request(run);
        SET(request, run_request, language, arena_text(run_arena(run), "%s", language));
        SET(request, run_request, image, image);
        SET(request, run_request, code, ((struct bytes){ .bytes = arena_text(run_arena(run), "%s", "") }));
        if (profile)
                SET(request, run_request, profile, arena_text(run_arena(run), "%s", profile));
        run->has_messages = image == image_SMALL;   /* who asks for that image grades, but for a few */
        if (run_prepare(run, err) == 0)
                return run;
        run_free(run);
        return NULL;
}

static bool has_image(const struct settings *settings, const char *name, int image)
{
        struct arena arena = { 0 };
        struct profile profile;
        struct csn_error err;
        bool has = profile_find(settings, name, &arena, &profile, &err) == 0 &&
                   (HAS(&profile.request, run_request, image) ? profile.request.image : image_SYSTEM) == image;
        arena_done(&arena);
        return has;
}

/*
 * What most runs with an image are like.  Those with the data image have the profile of that name, and the number of its cores is in their environment; an
 * administrator may allow less.  No profile of the installation is looked at but the default one: what is in a zygote's environment is seen by all its runs.
 */
static struct run *usual_run(struct engine *engine, const char *language, int image, struct csn_error *err)
{
        static const char *const profiles[ARRAY_LEN(images)] = { [image_DATA] = "data" };
        struct run *run = NULL;
        if (profiles[image] && !has_image(engine->settings, engine->settings->engine.profile, image))
                run = bare_run(engine, language, image, profiles[image], err);
        return run ? run : bare_run(engine, language, image, NULL, err);
}

static void start_zygote(struct engine *engine, int image)
{
        struct zygote *zygote = &engine->pools->zygotes[image];
        struct csn_error err = { 0 };
        char *argv[16], warming[32];
        size_t n = 0;
        if (zygote->asked || clock_ms() < zygote->retry_at_ms)
                return;
        for (; lang_python.zygote[n]; n++)
                argv[n] = (char *)(uintptr_t)lang_python.zygote[n];
        argv[n++] = (char *)(uintptr_t)images[image];
        snprintf(warming, sizeof warming, "%" PRIu64, engine->settings->engine.pool_warming);
        argv[n++] = warming;
        /* With the arguments and the environment of a usual run, which then finds them as they are. */
        struct run *run = usual_run(engine, lang_python.name, image, &err);
        zygote->id = ++engine->pools->zygotes_made;
        zygote->asked = true;
        struct wire_program program = { .argv = argv, .argv_n = n };
        if (run) {
                const struct wire_program *usual = &run->what.program;
                for (size_t i = OWN_ARGUMENTS; i < usual->argv_n && program.argv_n < ARRAY_LEN(argv); i++)
                        argv[program.argv_n++] = usual->argv[i];
                program.env = arena_alloc(run_arena(run), (usual->env_n + 1) * sizeof *program.env);
                for (; program.env_n < usual->env_n; program.env_n++)
                        program.env[program.env_n] = usual->env[program.env_n];
                if (lang_python.zygote_env)
                        program.env[program.env_n++] = arena_text(run_arena(run), "%s", lang_python.zygote_env);
        }
        if (!run || instances_open_link(&engine->instances, &backend_native, &err) < 0 ||
            backend_native.zygote(engine->instances.links[0], zygote->id, &program, &err) < 0)
                pools_zygote(engine, zygote->id, NULL, &err);
        run_free(run);
}

static uint64_t next_backoff(uint64_t backoff_ms)
{
        return backoff_ms ? min_u64(backoff_ms * 2, RETRY_MAX_MS) : RETRY_MS;
}

static void zygote_failed(struct zygote *zygote, const char *why)
{
        zygote->failures++;
        snprintf(zygote->trouble, sizeof zygote->trouble, "%s", why);
        zygote->asked = zygote->serves = false;
        zygote->retry_ms = next_backoff(zygote->retry_ms);
        zygote->retry_at_ms = clock_ms() + zygote->retry_ms;
}

void pools_zygote(struct engine *engine, uint32_t id, const char *info, const struct csn_error *error)
{
        struct pools *pools = engine->pools;
        for (size_t i = 0; pools && i < ARRAY_LEN(pools->zygotes); i++) {
                struct zygote *zygote = &pools->zygotes[i];
                if (!zygote->asked || zygote->id != id)
                        continue;
                if (error) {
                        if (zygote->serves)
                                log_text(LOG_WARN, "a Python zygote is gone: %s", error->text);
                        else
                                log_text(LOG_ERROR, "a Python zygote cannot be made, and Python programs start cold: %s", error->text);
                        zygote_failed(zygote, error->text);
                        engine_dispatch(engine);   /* nothing comes that runs could wait for */
                        return;
                }
                zygote->serves = true;
                zygote->retry_ms = 0;
                free(zygote->info);
                zygote->info = mem_copy(info, strlen(info));
                for (struct instance *instance = engine->instances.all; instance; instance = instance->next)
                        if (pool_of(instance) && pool_of(instance)->language && instance->state == INSTANCE_BARE)
                                on_changed(instance->owner, instance);
                pools_refill(engine);
                engine_dispatch(engine);
        }
}

bool pools_zygote_comes(const struct engine *engine)
{
        for (size_t i = 0; i < ARRAY_LEN(engine->pools->zygotes); i++)
                if (engine->pools->zygotes[i].asked && !engine->pools->zygotes[i].serves)
                        return true;
        return false;
}

uint32_t pools_find_zygote(struct engine *engine, int image)
{
        if (!engine->pools)
                return 0;
        start_zygote(engine, image);
        return engine->pools->zygotes[image].serves ? engine->pools->zygotes[image].id : 0;
}

/* ---- what waits in one ---- */

static void link_waiting(struct pool *pool, struct instance *instance)
{
        instance->next_waiting = pool->newest;
        pool->newest = instance;
        pool->waiting++;
        pool->memory += instance->boundary.memory_bytes;
        pool->making--;
        pool->backoff_ms = 0;
}

static bool unlink_waiting(struct pool *pool, struct instance *instance)
{
        for (struct instance **at = &pool->newest; *at; at = &(*at)->next_waiting)
                if (*at == instance) {
                        *at = instance->next_waiting;
                        pool->waiting--;
                        pool->memory -= instance->boundary.memory_bytes;
                        return true;
                }
        return false;
}

static uint64_t memory_of_all(const struct pools *pools)
{
        uint64_t bytes = 0;
        for (const struct pool *pool = pools->all; pool; pool = pool->next)
                bytes += pool->memory;
        return bytes;
}

/* The oldest, which is the last that would be taken. */
static void discard_oldest(struct pool *pool)
{
        struct instance *instance = pool->newest;
        while (instance->next_waiting)
                instance = instance->next_waiting;
        unlink_waiting(pool, instance);
        instance_set_user(instance, NULL, NULL);
        instance_kill(instance);
}

/* ---- which pool ---- */

static bool matches(const char *pattern, const char *name)
{
        size_t len = strlen(pattern);
        return len && pattern[len - 1] == '*' ? strncmp(pattern, name, len - 1) == 0 : strcmp(pattern, name) == 0;
}

/* An interpreter that started before the request has read some of its environment already. */
static bool fits_ahead(const struct run *run)
{
        const struct language *language = run->language;
        const struct run_request *request = &run->request;
        bool worker = language->wait_argv != NULL;
        if (!language->zygote && !worker)
                return false;
        for (size_t i = 0; language->cold_env && i < request->env_n; i++)
                for (const char *const *pattern = language->cold_env; *pattern; pattern++)
                        if (matches(*pattern, request->env[i].name))
                                return false;
        /* A worker has its standard input, its main file's name and the variables of a run without a proxy already. */
        return !worker || (!request->stdin.len && request->network == network_NONE && !tool_session_wanted(&request->tools) && strcmp(run->main_file, language->file) == 0 && (!language->wait_plain || !request->args_n));
}

static bool same_shape(const struct wire_shape *a, const struct wire_shape *b)
{
        return a->flags == b->flags && a->disk_bytes == b->disk_bytes && a->disk_files == b->disk_files && a->tmp_bytes == b->tmp_bytes;
}

static size_t target_min(const struct engine *engine, const struct pool *pool)
{
        const struct engine_settings *settings = &engine->settings->engine;
        return (size_t)min_u64(settings->pool_min, pool->language ? settings->pool_max : settings->pool_shells);
}

static size_t target_max(const struct engine *engine, const struct pool *pool)
{
        const struct engine_settings *settings = &engine->settings->engine;
        return (size_t)(pool->language ? settings->pool_max : settings->pool_shells);
}

static void remove_oldest(struct pools *pools)
{
        struct pool **oldest = NULL;
        for (struct pool **at = &pools->all; *at; at = &(*at)->next)
                if (!(*at)->expected && !(*at)->making && (!oldest || (*at)->used_ms < (*oldest)->used_ms))
                        oldest = at;
        if (!oldest)
                return;
        struct pool *pool = *oldest;
        while (pool->waiting)
                discard_oldest(pool);
        *oldest = pool->next;
        free(pool);
        pools->n--;
}

static int image_of(const struct run *run, const struct language *language)
{
        return language && language->zygote ? run->request.image : image_SYSTEM;
}

static struct pool *find_pool(const struct engine *engine, const struct run *run, const struct language *language)
{
        int image = image_of(run, language);
        for (struct pool *pool = engine->pools->all; pool; pool = pool->next)
                if (pool->language == language && pool->image == image && same_shape(&pool->shape, &run->shape))
                        return pool;
        return NULL;
}

static struct pool *pool_for(struct engine *engine, const struct run *run, const struct language *language)
{
        struct pools *pools = engine->pools;
        struct pool *known = find_pool(engine, run, language);
        int image = image_of(run, language);
        if (known)
                return known;
        if (pools->n == POOLS_MAX)
                remove_oldest(pools);
        if (pools->n == POOLS_MAX)
                return NULL;
        struct pool *pool = mem_alloc(sizeof *pool);
        char disk[24];
        *pool = (struct pool){ .next = pools->all, .engine = engine, .shape = run->shape, .language = language, .image = image, .used_ms = clock_ms() };
        pool->shape.label = NULL;
        size_print(pool->shape.disk_bytes, disk, sizeof disk);
        snprintf(pool->name, sizeof pool->name, "%s%s%s/%s%s%s%s%s%s/%s", language ? language->name : "empty",
                 image == image_SYSTEM ? "" : "+", image == image_SYSTEM ? "" : images[image], run->request.profile ? run->request.profile : "standard",
                 pool->shape.flags & WIRE_PROC_STRICT ? "+strict-proc" : "", pool->shape.flags & WIRE_PROXY ? "+network" : "",
                 pool->shape.flags & WIRE_TOOL_SOCKET ? "+tools" : "", pool->shape.flags & WIRE_PERSISTENT ? "+lasting" : "",
                 pool->shape.flags & WIRE_ROOT ? "+root" : "", disk);
        pool->target = target_min(engine, pool);
        pools->all = pool;
        pools->n++;
        return pool;
}

/* ---- its instances ---- */

/* Each pool may have one; what goes beyond the bound with it is taken from where most waits. */
static void keep_bound(struct engine *engine)
{
        while (memory_of_all(engine->pools) > engine->settings->engine.pool_memory_bytes) {
                struct pool *largest = NULL;
                for (struct pool *pool = engine->pools->all; pool; pool = pool->next)
                        if (pool->waiting > 1 && (!largest || pool->memory > largest->memory))
                                largest = pool;
                if (!largest)
                        return;
                discard_oldest(largest);
        }
}

/* One that was being made did not come to be. */
static void failed(struct pool *pool)
{
        pool->making--;
        pool->backoff_ms = next_backoff(pool->backoff_ms);
        pool->backoff_until_ms = clock_ms() + pool->backoff_ms;
}

static void lose(struct pool *pool, struct instance *instance)
{
        if (!unlink_waiting(pool, instance))
                failed(pool);
        pools_refill(pool->engine);
}

static int put_interpreter(const struct pool *pool, struct instance *instance, struct csn_error *err)
{
        const struct language *language = pool->language;
        struct zygote *zygote = &pool->engine->pools->zygotes[pool->image];
        if (language->zygote)
                return zygote->serves ? instance_join(instance, zygote->id, err) : 0;
        struct wire_program program = { 0 };
        struct arena arena = { 0 };
        lang_wait_program(language, run_usual_env(), &arena, &program);
        int rc = instance_worker(instance, &program, err);
        arena_done(&arena);
        return rc;
}

static void on_changed(void *owner, struct instance *instance)
{
        struct pool *pool = owner;
        struct csn_error err;
        if (instance->state == INSTANCE_WARM || !pool->language) {
                link_waiting(pool, instance);
                keep_bound(pool->engine);
                pools_refill(pool->engine);
                engine_dispatch(pool->engine);
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

/* The newest, whose memory the processor still has near. */
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
        unlink_waiting(pool, instance);
        instance_set_user(instance, NULL, NULL);   /* until its taker sets another */
        instance->kept = true;
        pool->hits++;
        return instance;
}

static void grow(const struct engine *engine, struct pool *pool)
{
        pool->target = (size_t)min_u64(pool->target * 2 + 1, target_max(engine, pool));
}

bool pools_are_warm(struct engine *engine, const struct run *run)
{
        if (!fits_ahead(run))
                return false;
        const struct pool *pool = find_pool(engine, run, run->language);
        return (pool && pool->newest) || (run->language->zygote && pools_find_zygote(engine, run->request.image));
}

/* One that waits, or else more will. */
static struct instance *take_or_grow(struct engine *engine, struct pool *pool)
{
        struct instance *instance = take(pool);
        if (pool && !instance)
                grow(engine, pool);
        return instance;
}

struct instance *pools_take_bare(struct engine *engine, const struct run *run)
{
        struct instance *instance = engine->pools ? take_or_grow(engine, pool_for(engine, run, NULL)) : NULL;
        if (engine->pools && !engine->pools->refill.active)
                loop_timer(engine->loop, &engine->pools->refill, REFILL_PSANDBOX_US);
        return instance;
}

void pools_take(struct engine *engine, struct run *run, struct instance **ret_instance, uint32_t *ret_zygote)
{
        bool ahead = fits_ahead(run);
        struct instance *instance = ahead ? take_or_grow(engine, pool_for(engine, run, run->language)) : NULL;
        if (!instance) {
                instance = take_or_grow(engine, pool_for(engine, run, NULL));
                const struct zygote *zygote = &engine->pools->zygotes[run->request.image];
                if (ahead && run->language->zygote && zygote->serves)
                        *ret_zygote = zygote->id;
        }
        *ret_instance = instance;
}

/* ---- more and less ---- */

static bool lacks(const struct engine *engine, const struct pool *pool)
{
        bool possible = !pool->language || !pool->language->zygote || engine->pools->zygotes[pool->image].serves;
        return possible && pool->waiting + pool->making < pool->target && clock_ms() >= pool->backoff_until_ms;
}

static bool make_one(struct engine *engine, struct pool *pool)
{
        struct csn_error err;
        struct instance *instance;
        struct wire_shape shape = pool->shape;
        shape.label = (char *)(uintptr_t)POOL_LABEL;
        pool->making++;
        if (instance_new(&engine->instances, &backend_native, &shape, &instance_user, pool, &instance, &err) == 0)
                return true;
        log_text(LOG_WARN, "%s", err.text);
        failed(pool);
        return false;
}

static bool has_room(const struct engine *engine, const struct pool *pool)
{
        uint64_t size = pool->newest ? pool->newest->boundary.memory_bytes : 0;
        if (engine->instances.n + 1 >= engine->instances.places)   /* one place is for a run */
                return false;
        return pool->waiting + pool->making == 0 ||
               memory_of_all(engine->pools) + size * (pool->making + 1) <= engine->settings->engine.pool_memory_bytes;
}

/* A run has looked for what it holds. */
static bool is_asked_for(const struct pool *pool)
{
        return pool->hits || pool->misses;
}

/* A Node or a Bash that nobody has asked for yet does not take the processors from a zygote that is coming. */
static bool has_time(const struct engine *engine, const struct pool *pool)
{
        return !pool->language || pool->language->zygote || is_asked_for(pool) || !pools_zygote_comes(engine);
}

void pools_make_place(struct engine *engine)
{
        struct pool *largest = NULL;
        for (struct pool *pool = engine->pools ? engine->pools->all : NULL; pool; pool = pool->next)
                if (pool->waiting && (!largest || pool->waiting > largest->waiting))
                        largest = pool;
        if (largest)
                discard_oldest(largest);
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

/* One that runs have asked for comes first; then the one that has least of what it should have; of two the one that was used last. */
static struct pool *neediest(struct engine *engine)
{
        struct pool *found = NULL;
        for (struct pool *pool = engine->pools->all; pool; pool = pool->next) {
                if (lacks(engine, pool) && has_room(engine, pool) && has_time(engine, pool) && (!found || is_needier(pool, found)))
                        found = pool;
        }
        return found;
}

/* Runs that wait are made first. */
static void refill(struct timer *timer)
{
        struct engine *engine = timer->owner;
        size_t making = 0;
        for (struct pool *pool = engine->pools->all; pool; pool = pool->next)
                making += pool->making;
        for (struct pool *pool; !queue_is_ready(engine) && making < MAKING_MAX && (pool = neediest(engine));)
                making += make_one(engine, pool);   /* one that failed rests, and is not the neediest then */
}

void pools_refill(struct engine *engine)
{
        if (!engine->pools->refill.active)
                loop_timer(engine->loop, &engine->pools->refill, engine->running ? REFILL_US : 0);
}

static void shrink(struct engine *engine, struct pool *pool, uint64_t now)
{
        if (now - max_u64(pool->used_ms, pool->halved_ms) < engine->settings->engine.pool_idle_ms)
                return;
        pool->halved_ms = now;
        pool->target = (size_t)max_u64(pool->target / 2, target_min(engine, pool));
        while (pool->waiting > pool->target)
                discard_oldest(pool);
}

static void give_memory_back(struct engine *engine, uint64_t now)
{
        struct pools *pools = engine->pools;
        if (engine->runs) {
                pools->busy_ms = now;
        } else if (pools->busy_ms && now - pools->busy_ms >= TRIM_MS) {
                malloc_trim(0);
                pools->busy_ms = 0;
        }
}

static void tick(struct timer *timer)
{
        struct engine *engine = timer->owner;
        uint64_t now = clock_ms();
        give_memory_back(engine, now);
        for (struct pool *pool = engine->pools->all; pool; pool = pool->next) {
                shrink(engine, pool, now);
                if (pool->language && pool->language->zygote)
                        start_zygote(engine, pool->image);
        }
        pools_refill(engine);
        loop_timer(engine->loop, timer, TICK_US);
}

/* ---- begin and end ---- */

/* The pools of a request that says nothing but its language and its image, so that the first run finds one. */
static void expect(struct engine *engine, const struct language *language, int image)
{
        struct csn_error err;
        struct run *run = usual_run(engine, language->name, image, &err);
        if (!run) {
                log_text(LOG_WARN, "%s", err.text);
                return;
        }
        pool_for(engine, run, NULL)->expected = true;
        if (fits_ahead(run))
                pool_for(engine, run, language)->expected = true;
        run_free(run);
}

void pools_open(struct engine *engine, bool grades)
{
        if (engine->pools)
                return;
        engine->pools = mem_alloc(sizeof *engine->pools);
        engine->pools->tick = (struct timer){ .fired = tick, .owner = engine };
        engine->pools->refill = (struct timer){ .fired = refill, .owner = engine };
        if (grades)
                expect(engine, &lang_python, image_SMALL);
        for (size_t i = 0; lang_at(i) && !grades; i++)
                expect(engine, lang_at(i), image_SYSTEM);
        loop_timer(engine->loop, &engine->pools->tick, 0);
}

void pools_lost(struct engine *engine)
{
        for (size_t i = 0; engine->pools && i < ARRAY_LEN(engine->pools->zygotes); i++)
                if (engine->pools->zygotes[i].asked)
                        zygote_failed(&engine->pools->zygotes[i], "the backend is gone");
}

void pools_close(struct engine *engine)
{
        struct pools *pools = engine->pools;
        if (!pools)
                return;
        loop_untimer(engine->loop, &pools->tick);
        loop_untimer(engine->loop, &pools->refill);
        for (struct pool *pool = pools->all, *next; pool; pool = next) {
                next = pool->next;
                free(pool);
        }
        for (size_t i = 0; i < ARRAY_LEN(pools->zygotes); i++)
                free(pools->zygotes[i].info);
        free(pools);
        engine->pools = NULL;
}

json_t *pools_zygotes(const struct engine *engine)
{
        json_t *list = json_array();
        for (size_t i = 0; engine->pools && i < ARRAY_LEN(images); i++) {
                const struct zygote *zygote = &engine->pools->zygotes[i];
                if (zygote->id)
                        json_array_append_new(list, json_pack("{s:s, s:i, s:I}", "image", images[i], "serves", zygote->serves, "failures",
                                                              (json_int_t)zygote->failures));
        }
        return list;
}

int engine_zygote(const struct engine *engine, struct csn_error *err)
{
        for (size_t i = 0; engine->pools && i < ARRAY_LEN(images); i++) {
                const struct zygote *zygote = &engine->pools->zygotes[i];
                if (zygote->serves)
                        return 1;
                if (zygote->failures)
                        return err_set(err, CSN_E_SYSTEM, 0, "%s", zygote->trouble);
        }
        return 0;
}

json_t *pools_status(const struct engine *engine)
{
        json_t *list = json_array();
        for (const struct pool *pool = engine->pools ? engine->pools->all : NULL; pool; pool = pool->next) {
                const struct zygote *zygote = &engine->pools->zygotes[pool->image];
                json_t *item = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "key", pool->name, "ready", (json_int_t)pool->waiting,
                                         "making", (json_int_t)pool->making, "target", (json_int_t)pool->target, "min",
                                         (json_int_t)target_min(engine, pool), "max", (json_int_t)target_max(engine, pool), "memory_bytes",
                                         (json_int_t)pool->memory, "hits", (json_int_t)pool->hits, "misses", (json_int_t)pool->misses);
                if (pool->language && pool->language->zygote)
                        json_object_set_new(item, "zygote", zygote->serves ? json_loads(zygote->info, 0, NULL) : json_null());
                json_array_append_new(list, item);
        }
        return list;
}
