/* Pools from the inside; for the files of this folder. */
#ifndef ENGINE_INSTANCE_POOL_PRIVATE_H
#define ENGINE_INSTANCE_POOL_PRIVATE_H

#include "engine/instance/pool.h"

#define POOL_IMAGES (image_SMALL + 1)

struct zygote {
        bool asked, serves;
        uint32_t id;
        uint64_t retry_ms, retry_at_ms;
        uint64_t failures;                 /* starts that failed, and ends */
        char trouble[200];                 /* reason of the last failure */
        char *info;
};

struct pool {
        struct pool *next;
        struct pools *pools;
        char name[160];
        struct wire_shape shape;
        uint64_t layer_folders;            /* of struct launch: a sandbox keeps a removed folder of a layer mounted */
        const struct language *language;   /* of the interpreter in each instance, or NULL: bare instances */
        int image;
        char interpreter[64];              /* path of the language's interpreter in the image of the shape, or "" */
        struct instance *newest;           /* of the waiting instances, linked to older ones */
        size_t waiting, making, target;
        bool expected;                     /* holds what usual requests need, and stays */
        uint64_t hits, misses, memory, used_ms, halved_ms, backoff_ms, backoff_until_ms;
};

struct pools {
        struct instances *instances;
        const struct backend *backend;
        const struct language *added;
        const struct pools_user *user;
        void *owner;                       /* of the user */
        struct pool *all;
        size_t n;
        struct zygote zygotes[POOL_IMAGES];
        uint32_t zygotes_made;
        uint64_t busy_ms;                  /* time of the last run, or 0: memory was given back since */
        struct timer tick, refill;
};

static inline bool pool_has_image(const struct pool *pool)
{
        return pool->shape.image_high || pool->shape.image_low;
}

/* The next delay after a failure, in ms: doubled up to one minute. */
uint64_t pool_next_backoff(uint64_t backoff_ms);

/* ---- pool_zygote.c ---- */

extern const char *const pool_image_names[POOL_IMAGES];

/*
 * Prepare what most runs with an image are like, so that a zygote or a pool is made for them.  The caller frees *ret by
 * launch_done(), also after an error.  Errors: those of launch_prepare().
 */
int pool_usual_launch(const struct pools *pools, const char *language, int image, struct launch *ret,
        struct csn_error *err);
void pool_zygote_start(struct pools *pools, int image);
void pool_zygote_failed(struct zygote *zygote, const char *why);

/* ---- pool_select.c ---- */

void pool_link(struct pool *pool, struct instance *instance);
/* False: the instance was not waiting. */
bool pool_unlink(struct pool *pool, struct instance *instance);
/* End the waiting instance that would be taken last. */
void pool_discard_oldest(struct pool *pool);
uint64_t pools_memory(const struct pools *pools);
size_t pool_target_min(const struct pool *pool);
size_t pool_target_max(const struct pool *pool);
/* Whether an interpreter that started before the request can serve the request. */
bool pool_fits_ahead(const struct launch *launch);
/*
 * The pool of a launch; language NULL: of bare instances.  pool_find(): NULL if there is none; pool_for(): if there is
 * no place.
 */
struct pool *pool_find(const struct pools *pools, const struct launch *launch, const struct language *language);
struct pool *pool_for(struct pools *pools, const struct launch *launch, const struct language *language);

#endif
