/*
 * pool: ready instances and interpreters.  Each serves one run.
 *
 * A pool holds one kind of interpreter in one shape of sandbox, and is made when the first run of that kind comes.  A
 * run with an empty pool makes the target of the pool larger; time without a run makes the target smaller.
 * Refilling waits for moments in which no run is ready to start.
 *
 * Python interpreters are forked from zygotes, one per image.  `pools` may be NULL in the functions that say so: then
 * nothing is ever ready.
 */
#ifndef ENGINE_INSTANCE_POOL_H
#define ENGINE_INSTANCE_POOL_H

#include "engine/instance/instance.h"
#include "engine/launch/launch.h"

struct pools;

/* What the owner of the pools does at the moment.  Refilling asks before it takes a processor. */
struct pools_user {
        bool (*has_ready_run)(void *owner);    /* a queued run may start now */
        bool (*has_running)(void *owner);      /* a run has an instance */
        bool (*has_runs)(void *owner);         /* a run exists in any state */
        /* There has been no run for half a second: give back the memory of a burst of runs. */
        void (*give_memory_back)(void *owner);
};

/*
 * Begin to fill pools with instances of a backend that has join() and zygote(), as the settings say.  `grades`: prepare
 * only what grading in Python needs, and the rest on first use.  The instances, the user and the added languages must
 * outlive the pools.
 */
struct pools *pools_open(struct instances *instances, const struct backend *backend, const struct language *added,
        bool grades, const struct pools_user *user, void *owner);
/* The instances in the pools stay; instances_free() frees them.  NULL is harmless. */
void pools_close(struct pools *pools);

/*
 * Take the best that is ready for a launch: an interpreter (*ret_instance is warm), a bare instance, or nothing (NULL).
 * *ret_zygote is the zygote to join if *ret_instance is not warm, or 0.  The caller becomes the user of the instance.
 * Sets the domain in the shape of the launch.
 */
void pools_take(struct pools *pools, struct launch *launch, struct instance **ret_instance, uint32_t *ret_zygote);
/* Modules that the zygote of a launch did not import, with the reasons; "": none.  Valid until the next event. */
const char *pools_not_preloaded(const struct pools *pools, const struct launch *launch);
/* Take a bare instance of the shape of a launch; NULL: none is ready.  pools may be NULL. */
struct instance *pools_take_bare(struct pools *pools, const struct launch *launch);

/* Whether an interpreter is ready for a launch, or can be forked.  Starts the zygote of the launch. */
bool pools_are_warm(struct pools *pools, const struct launch *launch);
/* Whether a zygote is starting. */
bool pools_zygote_comes(const struct pools *pools);
/*
 * The id of the zygote of the host that serves a persistent sandbox.  0: none serves yet, and the call has begun to
 * start a zygote; in an imported image, and with granted devices, Python starts cold.  `pools` may be NULL.
 */
uint32_t pools_zygote_for(struct pools *pools, const struct launch *launch);

/* News of struct instances_events.  pools may be NULL. */
void pools_zygote(struct pools *pools, uint32_t id, const char *info, const struct csn_error *error);
void pools_lost(struct pools *pools);

/* A run ended: make what will be needed next, soon.  pools may be NULL. */
void pools_refill(struct pools *pools);
/* End one pooled instance to make place for a run of another kind.  pools may be NULL. */
void pools_make_place(struct pools *pools);

/* Whether a zygote serves: 1; 0: none does yet.  Errors: CSN_E_SYSTEM (no zygote can be made).  pools may be NULL. */
int pools_zygote_state(const struct pools *pools, struct csn_error *err);
/* How many interpreters and sandboxes wait, and their memory in bytes by the kernel's count.  pools may be NULL. */
void pools_count(const struct pools *pools, size_t *ret_ready, uint64_t *ret_memory_bytes);
/* Arrays for status and metrics; the caller's references.  pools may be NULL. */
json_t *pools_status(const struct pools *pools);
json_t *pools_zygotes(const struct pools *pools);

#endif
