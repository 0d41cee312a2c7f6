/* Which pool a launch uses, and which instances wait in a pool. */
#include "engine/instance/pool_private.h"

#include <stdio.h>

/* requests can ask for more kinds; then the least recently used pool goes */
#define POOLS_MAX 32

/* ---- waiting instances ---- */

void pool_link(struct pool *pool, struct instance *instance)
{
        instance->next_waiting = pool->newest;
        pool->newest = instance;
        pool->waiting++;
        pool->memory += instance->boundary.memory_bytes;
        pool->making--;
        pool->backoff_ms = 0;
}

bool pool_unlink(struct pool *pool, struct instance *instance)
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

uint64_t pools_memory(const struct pools *pools)
{
        uint64_t bytes = 0;
        for (const struct pool *pool = pools->all; pool; pool = pool->next)
                bytes += pool->memory;
        return bytes;
}

void pool_discard_oldest(struct pool *pool)
{
        struct instance *instance = pool->newest;
        while (instance->next_waiting)
                instance = instance->next_waiting;
        pool_unlink(pool, instance);
        instance_set_user(instance, NULL, NULL);
        instance_kill(instance);
}

/* ---- the pool of a launch ---- */

struct zygote *pool_own_find(const struct pools *pools, uint32_t id)
{
        struct zygote *zygote = pools->own;
        while (zygote && !(zygote->asked && zygote->id == id))
                zygote = zygote->next;
        return zygote;
}

static bool matches(const char *pattern, const char *name)
{
        size_t len = strlen(pattern);
        return len && pattern[len - 1] == '*' ? strncmp(pattern, name, len - 1) == 0 : strcmp(pattern, name) == 0;
}

/* An interpreter that started before the request has read a part of its environment already. */
bool pool_fits_ahead(const struct launch *launch)
{
        const struct language *language = launch->language;
        const struct run_request *request = &launch->request;
        bool worker = language->wait_argv != NULL;
        if (!language->zygote && !worker)
                return false;
        for (size_t i = 0; language->cold_env && i < request->env_n; i++)
                for (const char *const *pattern = language->cold_env; *pattern; pattern++)
                        if (matches(*pattern, request->env[i].name))
                                return false;
        if (worker && language->starts_fast && HAS(request, run_request, prelude))
                return false;          /* Bash reads a prelude as it starts */
        /* A worker has its standard input, its main file's name and the variables of a run without a proxy already. */
        return !worker ||
                (!request->stdin.len && request->network == network_NONE && !launch_wants_tools(&request->tools) &&
                        strcmp(launch->main_file, language->file) == 0 && (!language->wait_plain || !request->args_n));
}

static bool same_shape(const struct wire_shape *a, const struct wire_shape *b)
{
        return a->flags == b->flags && a->disk_bytes == b->disk_bytes && a->disk_files == b->disk_files &&
                a->tmp_bytes == b->tmp_bytes && a->python_layer_high == b->python_layer_high &&
                a->python_layer_low == b->python_layer_low && a->node_layer_high == b->node_layer_high &&
                a->node_layer_low == b->node_layer_low && a->image_high == b->image_high &&
                a->image_low == b->image_low && a->domain == b->domain;
}

size_t pool_target_min(const struct pool *pool)
{
        const struct engine_settings *settings = &pool->pools->instances->settings->engine;
        return (size_t)min_u64(settings->pool_min, pool->language ? settings->pool_max : settings->pool_shells);
}

size_t pool_target_max(const struct pool *pool)
{
        const struct engine_settings *settings = &pool->pools->instances->settings->engine;
        return (size_t)(pool->language ? settings->pool_max : settings->pool_shells);
}

/* The pool at *at, for which no instance is being made. */
static void remove_pool(struct pools *pools, struct pool **at)
{
        struct pool *pool = *at;
        while (pool->waiting)
                pool_discard_oldest(pool);
        *at = pool->next;
        free(pool);
        pools->n--;
}

static void remove_oldest(struct pools *pools)
{
        struct pool **oldest = NULL;
        for (struct pool **at = &pools->all; *at; at = &(*at)->next)
                if (!(*at)->expected && !(*at)->making && (!oldest || (*at)->used_ms < (*oldest)->used_ms))
                        oldest = at;
        if (oldest)
                remove_pool(pools, oldest);
}

void pools_remove_ended(struct pools *pools)
{
        for (struct pool **at = &pools->all; *at;)
                if ((*at)->shape.domain && !(*at)->making && !pool_own_find(pools, (uint32_t)(*at)->shape.domain))
                        remove_pool(pools, at);
                else
                        at = &(*at)->next;
}

/* The domain identifies the zygote chosen by pool_choose_zygote(). */
static struct zygote *zygote_of(struct pools *pools, const struct launch *launch, const struct language *language)
{
        if (!language || !language->zygote)
                return NULL;
        return launch->shape.domain ? pool_own_find(pools, (uint32_t)launch->shape.domain)
                                    : &pools->zygotes[launch->ahead];
}

struct pool *pool_find(struct pools *pools, const struct launch *launch, const struct language *language)
{
        const struct zygote *zygote = zygote_of(pools, launch, language);
        for (struct pool *pool = pools->all; pool; pool = pool->next)
                if (pool->language == language && pool->zygote == zygote && same_shape(&pool->shape, &launch->shape) &&
                        pool->layer_folders == launch->layer_folders)
                        return pool;
        return NULL;
}

struct pool *pool_for(struct pools *pools, const struct launch *launch, const struct language *language)
{
        struct pool *known = pool_find(pools, launch, language);
        struct zygote *zygote = zygote_of(pools, launch, language);
        bool loaded = zygote && !zygote->own && launch->ahead != image_SYSTEM;
        if (known)
                return known;
        if (pools->n == POOLS_MAX)
                remove_oldest(pools);
        if (pools->n == POOLS_MAX)
                return NULL;
        struct pool *pool = mem_alloc(sizeof *pool);
        char disk[24];
        *pool = (struct pool){ .next = pools->all,
                .pools = pools,
                .shape = launch->shape,
                .layer_folders = launch->layer_folders,
                .language = language,
                .zygote = zygote,
                .used_ms = clock_ms() };
        pool->shape.label = NULL;
        if (language && launch->interpreter)
                snprintf(pool->interpreter, sizeof pool->interpreter, "%s", launch->interpreter);
        size_print(pool->shape.disk_bytes, disk, sizeof disk);
        snprintf(pool->name, sizeof pool->name, "%s%s%s/%s%s%s%s%s%s%s%s%s/%s", language ? language->name : "empty",
                loaded ? "+" : "", loaded ? pool_image_names[launch->ahead] : "",
                launch->request.profile ? launch->request.profile : "standard",
                pool->shape.flags & WIRE_PROC_STRICT ? "+strict-proc" : "",
                pool->shape.flags & WIRE_PROXY ? "+network" : "", pool->shape.flags & WIRE_TOOL_SOCKET ? "+tools" : "",
                pool->shape.flags & WIRE_PERSISTENT ? "+lasting" : "", pool->shape.flags & WIRE_ROOT ? "+root" : "",
                pool->shape.python_layer_high || pool->shape.node_layer_high ? "+layer" : "",
                pool_has_image(pool) ? "+image" : "", pool->shape.domain ? "+zygote" : "", disk);
        pool->target = pool_target_min(pool);
        pools->all = pool;
        pools->n++;
        return pool;
}
