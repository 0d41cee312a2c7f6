/* Pools from the inside; for the files of this folder. */
#ifndef ENGINE_INSTANCE_POOL_PRIVATE_H
#define ENGINE_INSTANCE_POOL_PRIVATE_H

#include "engine/instance/pool.h"

#define POOL_IMAGES (image_SMALL + 1)
#define POOL_SEEN 64                       /* launches with packages that are remembered for their second use */

/*
 * What an own zygote is for: launches with the same layer and the same image.  A zygote with a layer belongs to one
 * tenant.
 */
struct zygote_key {
        uint64_t layer_high, layer_low, folders, image_high, image_low;
        char owner[OWNER_KEY_MAX];         /* "": no layer, all tenants */
        int ahead;                         /* enum image */
        char image[65];                    /* name of the image at the time of the first launch, or "" */
        char profile[65];                  /* of the first launch; its runs are like most others */
};

struct zygote {
        struct zygote *next;               /* of own zygotes */
        bool own;                          /* has foreign code, and a domain of its own */
        struct zygote_key key;             /* of an own zygote */
        uint64_t used_ms;
        char left_out[400];                /* modules that the zygote did not import, with reasons, or "" */
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
        struct zygote *zygote;             /* from which the interpreters are forked, or NULL */
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
        struct zygote *own;                /* zygotes with foreign code, in no order */
        struct zygote_key seen[POOL_SEEN]; /* of launches that had no zygote, the newest at seen_at - 1 */
        size_t seen_at;
        struct zygote ended;               /* stands in for an own zygote that is gone; never serves */
        uint32_t zygotes_made;
        uint64_t busy_ms;                  /* time of the last run, or 0: memory was given back since */
        struct timer tick, refill;
};

static inline bool pool_has_image(const struct pool *pool)
{
        return pool->shape.image_high || pool->shape.image_low;
}

/* A volume is mounted as a sandbox is made, and a waiting sandbox would keep it in use; the same holds for a device. */
static inline bool pool_has_grants(const struct launch *launch)
{
        return launch->shape.volumes_n || launch->shape.devices;
}

/* The next delay after a failure, in ms: doubled up to one minute. */
uint64_t pool_next_backoff(uint64_t backoff_ms);

/* ---- pool_zygote.c ---- */

extern const char *const pool_image_names[POOL_IMAGES];

/*
 * Prepare the launch of a usual run with an image, for a zygote or a pool.  The caller frees *ret by
 * launch_done(), also after an error.  Errors: those of launch_prepare().
 */
int pool_usual_launch(const struct pools *pools, const char *language, int image, struct launch *ret,
        struct csn_error *err);
/* Start a zygote that does not exist and is not asked for, unless the last failure is too recent. */
void pool_zygote_start(struct pools *pools, struct zygote *zygote);
void pool_zygote_failed(struct zygote *zygote, const char *why);

/* ---- pool_own.c ---- */

/*
 * The zygote for a launch of a language with zygotes: an own zygote that serves, or the host's for its `ahead`; NULL:
 * the launch starts cold.
 */
struct zygote *pool_choose_zygote(struct pools *pools, const struct launch *launch);
/*
 * A program of the launch begins.  The second one with the same packages asks for an own zygote, and the first one in
 * an image.
 */
void pool_note_use(struct pools *pools, const struct launch *launch);
/* End own zygotes that are unused, and start those that are asked for.  Called every 250 ms. */
void pool_own_tick(struct pools *pools);
/* An own zygote is gone: its pools end. */
void pool_own_ended(struct pools *pools, struct zygote *zygote);
/* The zygote serves, and says this of itself: its text is foreign. */
void pool_own_serves(struct zygote *zygote, const char *info);
void pool_own_free(struct pools *pools);

/* ---- pool_select.c ---- */

void pool_link(struct pool *pool, struct instance *instance);
/* False: the instance was not waiting. */
bool pool_unlink(struct pool *pool, struct instance *instance);
/* End the waiting instance that would be taken last. */
void pool_discard_oldest(struct pool *pool);
uint64_t pools_memory(const struct pools *pools);
size_t pool_target_min(const struct pool *pool);
size_t pool_target_max(const struct pool *pool);
/* Remove pools in domains of own zygotes that are gone. */
void pools_remove_ended(struct pools *pools);
/* The own zygote with this number, or NULL. */
struct zygote *pool_own_find(const struct pools *pools, uint32_t id);
/* Whether an interpreter that started before the request can serve the request. */
bool pool_fits_ahead(const struct launch *launch);
/*
 * The pool of a launch; language NULL: of bare instances.  pool_find(): NULL if there is none; pool_for(): if there is
 * no place.
 */
struct pool *pool_find(struct pools *pools, const struct launch *launch, const struct language *language);
struct pool *pool_for(struct pools *pools, const struct launch *launch, const struct language *language);

#endif
