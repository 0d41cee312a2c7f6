/*
 * Own zygotes: Python zygotes with foreign imports, from the packages of a layer or the modules of an image.
 *
 * Each has a domain of its own (src/supervisor/domain.h), which also has its sandboxes.  So foreign code imported by a
 * zygote reaches sandboxes of the same layer, image and tenant, and no others (docs/decisions).
 */
#include "engine/instance/pool_private.h"

#include <stdio.h>

#define PLACES_OF_ZYGOTE 16       /* a zygote takes the descriptors of one or two sandboxes */
#define EVICT_MS 5000             /* a zygote used more recently is not evicted */

/* ---- launches with an own zygote ---- */

static bool key_of(const struct launch *launch, struct zygote_key *ret)
{
        const struct wire_shape *shape = &launch->shape;
        bool layer = shape->python_layer_high || shape->python_layer_low;
        memset(ret, 0, sizeof *ret);
        /* A judge, and judged programs, share no domain with code chosen by a tenant. */
        if ((!layer && !launch->image) || launch->judged || launch->has_messages || launch->persistent ||
                pool_has_grants(launch))
                return false;
        ret->layer_high = shape->python_layer_high;
        ret->layer_low = shape->python_layer_low;
        ret->folders = layer ? launch->layer_folders : 0;
        ret->image_high = shape->image_high;
        ret->image_low = shape->image_low;
        ret->ahead = launch->ahead;
        if (layer && launch->owner_key)
                snprintf(ret->owner, sizeof ret->owner, "%s", launch->owner_key);
        if (launch->image)
                snprintf(ret->image, sizeof ret->image, "%s", launch->image->name);
        if (launch->request.profile)
                snprintf(ret->profile, sizeof ret->profile, "%s", launch->request.profile);
        return true;
}

static bool same_key(const struct zygote_key *a, const struct zygote_key *b)
{
        return a->layer_high == b->layer_high && a->layer_low == b->layer_low && a->folders == b->folders &&
                a->image_high == b->image_high && a->image_low == b->image_low && a->ahead == b->ahead &&
                strcmp(a->owner, b->owner) == 0;
}

/* Whether a launch with this key came before; remembers the key. */
static bool was_seen(struct pools *pools, const struct zygote_key *key)
{
        for (size_t i = 0; i < POOL_SEEN; i++)
                if (same_key(&pools->seen[i], key))
                        return true;
        pools->seen[pools->seen_at++ % POOL_SEEN] = *key;
        return false;
}

static const struct packages_settings *settings_of(const struct pools *pools)
{
        return &pools->instances->settings->packages;
}

/* ---- begin and end ---- */

static void forget(struct pools *pools, struct zygote *zygote)
{
        pool_own_ended(pools, zygote);
        for (struct zygote **at = &pools->own; *at; at = &(*at)->next)
                if (*at == zygote) {
                        *at = zygote->next;
                        break;
                }
        if (zygote->asked && pools->backend->retire && pools->instances->links[backend_index(pools->backend)])
                pools->backend->retire(pools->instances->links[backend_index(pools->backend)], zygote->id);
        free(zygote->info);
        free(zygote);
}

static size_t count(const struct pools *pools)
{
        size_t n = 0;
        for (const struct zygote *zygote = pools->own; zygote; zygote = zygote->next)
                n++;
        return n;
}

/* False: every zygote is in use, or being started. */
static bool make_room(struct pools *pools, uint64_t now)
{
        struct zygote *oldest = NULL;
        uint64_t max = min_u64(settings_of(pools)->zygotes_max, pools->instances->places / PLACES_OF_ZYGOTE);
        if (count(pools) < max)
                return true;
        for (struct zygote *zygote = pools->own; zygote; zygote = zygote->next)
                if ((!oldest || zygote->used_ms < oldest->used_ms) && now - zygote->used_ms >= EVICT_MS)
                        oldest = zygote;
        if (!oldest || !max)
                return false;
        forget(pools, oldest);
        return true;
}

static void add(struct pools *pools, const struct zygote_key *key, uint64_t now)
{
        if (!make_room(pools, now))
                return;
        struct zygote *zygote = mem_alloc(sizeof *zygote);
        *zygote = (struct zygote){ .next = pools->own, .own = true, .key = *key, .used_ms = now };
        pools->own = zygote;
}

static struct zygote *find(const struct pools *pools, const struct zygote_key *key)
{
        struct zygote *own = pools->own;
        while (own && !same_key(&own->key, key))
                own = own->next;
        return own;
}

struct zygote *pool_choose_zygote(struct pools *pools, const struct launch *launch)
{
        struct zygote_key key;
        struct zygote *own = key_of(launch, &key) ? find(pools, &key) : NULL;
        if (own && own->serves)
                return own;
        /* The filter of a zygote refuses the numbers by which drivers of devices are used. */
        return launch->image || launch->shape.devices ? NULL : &pools->zygotes[launch->ahead];
}

void pool_note_use(struct pools *pools, const struct launch *launch)
{
        struct zygote_key key;
        if (!key_of(launch, &key))
                return;
        struct zygote *own = find(pools, &key);
        if (own)
                own->used_ms = clock_ms();
        else if (was_seen(pools, &key) || launch->image)
                add(pools, &key, clock_ms());
}

/* Not while a run could start: a zygote only helps later runs. */
static void start_one(struct pools *pools)
{
        for (struct zygote *zygote = pools->own; zygote; zygote = zygote->next)
                if (zygote->asked && !zygote->serves)
                        return;
        for (struct zygote *zygote = pools->own; zygote; zygote = zygote->next)
                if (!zygote->asked && clock_ms() >= zygote->retry_at_ms &&
                        !pools->user->has_ready_run(pools->owner)) {
                        pool_zygote_start(pools, zygote);
                        return;
                }
}

void pool_own_tick(struct pools *pools)
{
        uint64_t now = clock_ms(), idle = settings_of(pools)->zygote_idle;
        for (struct zygote *zygote = pools->own, *next; zygote; zygote = next) {
                next = zygote->next;
                if (idle && now - zygote->used_ms >= idle)
                        forget(pools, zygote);
        }
        start_one(pools);
}

void pool_own_ended(struct pools *pools, struct zygote *zygote)
{
        for (struct pool *pool = pools->all; pool; pool = pool->next) {
                if (!zygote->id || pool->shape.domain != zygote->id)
                        continue;
                pool->target = 0;
                pool->used_ms = 0;             /* the next to go */
                if (pool->zygote)
                        pool->zygote = &pools->ended;
                while (pool->waiting)
                        pool_discard_oldest(pool);
        }
}

void pool_own_serves(struct zygote *zygote, const char *info)
{
        json_t *facts = json_loads(info, 0, NULL), *reason;
        const char *name;
        size_t len = 0;
        zygote->left_out[0] = 0;
        json_object_foreach(json_object_get(facts, "left_out"), name, reason)
                if (json_is_string(reason) && len < sizeof zygote->left_out)
                        len += (size_t)snprintf(zygote->left_out + len, sizeof zygote->left_out - len,
                                "%s%.100s (%.100s)", len ? ", " : "", name, json_string_value(reason));
        json_decref(facts);
        len = strlen(zygote->left_out);
        zygote->left_out[utf8_whole(zygote->left_out, len)] = 0;
}

const char *pools_not_preloaded(const struct pools *pools, const struct launch *launch)
{
        const struct zygote *zygote =
                launch->shape.domain ? pool_own_find(pools, (uint32_t)launch->shape.domain) : NULL;
        return zygote ? zygote->left_out : "";
}

void pool_own_free(struct pools *pools)
{
        while (pools->own) {
                struct zygote *zygote = pools->own;
                pools->own = zygote->next;
                free(zygote->info);
                free(zygote);
        }
}
