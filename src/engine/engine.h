/*
 * engine: the composition of all parts of the engine.
 *
 *   output       the remains of a finished run, and its text for people and models
 *   launch       a request made whole
 *   tool_io      the socket on which code inside calls tools
 *   instance     sandboxes of the backends, and pools of ready sandboxes
 *   run          one program, from request to record
 *   persistent   lasting sandboxes, and their live interpreters
 *
 * Each room uses the rooms above it in this list.  All functions are called from one thread, and all callbacks come
 * from engine_step(); long work is done by helper threads (docs/design/loop-steps.md).
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "engine/output/render.h"
#include "engine/run/layers.h"
#include "engine/run/review.h"
#include "engine/run/run.h"
#include "engine/run/source_check.h"
#include "engine/run/watcher.h"

struct engine;
struct workers;

/* ---- life ---- */

/* Check the settings of the engine for a reload.  Errors: CSN_E_CONFIG. */
int engine_check_settings(const struct settings *settings, struct csn_error *err);
/*
 * The settings stay the caller's and must outlive the engine.  Errors: CSN_E_SYSTEM; CSN_E_CONFIG
 * (engine.private_hosts, or a language of the configuration).
 */
int engine_open(const struct settings *settings, struct engine **ret, struct csn_error *err);
/* Kill and free all runs and sandboxes; done() is not called.  NULL is harmless. */
void engine_close(struct engine *engine);
/* Settings or policies have changed: later runs use the new state. */
void engine_reload(struct engine *engine);

/* The event loop, for watches of the caller (signals, sockets). */
struct loop *engine_loop(struct engine *engine);
/* Helper threads for long work of runs and of the caller; see base/worker.h. */
struct workers *engine_workers(struct engine *engine);
/* Wait at most max_ms (-1: until something happens) and serve events. */
int engine_step(struct engine *engine, int max_ms, struct csn_error *err);

/* ---- composition; each before the first run ---- */

/*
 * Keep interpreters and sandboxes ready: start zygotes, and fill the pools as the settings say.  For a program with a
 * long life; without this call each run makes its own.  `grades`: prepare only what grading in Python needs, and the
 * rest on first use.
 */
void engine_warm(struct engine *engine, bool grades);
/* Once. */
void engine_set_tools(struct engine *engine, const struct engine_tools *tools, void *owner);
/* Once.  Without a source, packages of a request are recorded and not installed. */
void engine_set_layers(struct engine *engine, const struct layer_source *source, void *owner);
/* Once.  Without a source no program has a verdict of a reviewer. */
void engine_set_review(struct engine *engine, const struct review_source *source, void *owner);
/* Once.  The budget of a key is asked before each review. */
void engine_set_review_accounts(struct engine *engine, const struct review_accounts *accounts, void *owner);
/* Once.  Without a source there are no volumes. */
void engine_set_volumes(struct engine *engine, const struct volume_source *source, void *owner);
/*
 * Charge the CPU time of persistent sandboxes to a listener, with the key of the sandbox's owner (run_set_owner()), and
 * compare quotas of CPU time with the listener's sums.  The time of runs and executions is not charged; their records
 * have it.  A charge comes soon after a program in a sandbox has ended, each minute, each second where the owner has a
 * quota, and at the end of the sandbox.  Set the listener once, a constant.
 */
void engine_set_usage_listener(struct engine *engine, const struct usage_listener *listener, void *owner);
/*
 * Let records tell what this host gives to sandboxes: a tier, and missing features with blanks between.  Both texts
 * must outlive the engine.
 */
void engine_set_host(struct engine *engine, const char *tier, const char *missing);
/* CPU time in ms of an owner's running work that the listener was not told of. */
uint64_t engine_unsettled_cpu_ms(const struct engine *engine, const char *owner_key);
/*
 * Whether an owner's program that cannot wait, such as one in a persistent sandbox, may begin now.  Errors: CSN_E_BUSY,
 * with *ret_room.
 */
int engine_may_begin(const struct engine *engine, const char *owner_key, const struct run_quota *quota,
        struct run_room *ret_room, struct csn_error *err);

/* ---- layers of packages ---- */

/* Ask the layer source, without a run.  As find() of struct layer_source; without a source CSN_E_INPUT. */
int engine_find_layers(struct engine *engine, struct layer_query *query, struct csn_error *err);
/* Stop waiting for the answer to engine_find_layers(). */
void engine_forget_layers(struct engine *engine, struct layer_query *query);

/* ---- volumes ---- */

/* An order to the supervisor: make a volume, or remove one (bytes 0).  Embedded in the object that asks. */
struct volume_query {
        struct wire_volume_order order;
        /* The answer, from the event loop; error NULL: it was carried out. */
        void (*done)(struct volume_query *query, const struct csn_error *error);
        void *owner;
        /* The engine's. */
        struct volume_query *next;
        uint32_t ticket;
};

/*
 * Carry out an order; done() follows, unless the engine is closed.  Errors: as of the backend; then done() is not
 * called.
 */
int engine_order_volume(struct engine *engine, struct volume_query *query, struct csn_error *err);

/* ---- state ---- */

/* The languages of the configuration. */
const struct language *engine_languages(struct engine *engine);
/* The number of running runs. */
size_t engine_running(const struct engine *engine);
/* The current load: runs, executions in contexts and programs in sandboxes. */
struct engine_load {
        size_t running;
        size_t queued;                     /* waiting, or being checked */
        size_t slots;                      /* maximum of runs at the same time */
};
struct engine_load engine_load(const struct engine *engine);
/* Figures of this moment, and sums since the begin of the engine. */
struct engine_gauges {
        size_t pool_ready;                 /* waiting interpreters and sandboxes */
        uint64_t pool_memory_bytes;        /* their memory, by the kernel's count */
        size_t sandboxes, contexts;
        uint64_t denied;                   /* runs refused by a policy or a reviewer */
        double cpu_seconds;                /* of ended programs */
};
struct engine_gauges engine_gauges(struct engine *engine);
/*
 * Whether the supervisors answer.  *ret_losses counts lost supervisors.  Errors:
 * CSN_E_SYSTEM, which names the process.
 */
int engine_answers(const struct engine *engine, uint32_t *ret_losses, struct csn_error *err);
/*
 * Whether a Python zygote serves: 1; 0: none does yet.  Errors: CSN_E_SYSTEM (no zygote can be made; Python programs
 * start cold).
 */
int engine_zygote(const struct engine *engine, struct csn_error *err);
/*
 * {"runs":[{id, state, language, profile, owner, age_ms, …}], "queue":{waiting, running, max}, "pools":[{key, ready,
 * min, max, memory_bytes, hits, misses}]}.  A max of 0 means none.  The caller's reference.
 */
json_t *engine_status(struct engine *engine);
/* The member `pools` of engine_status() alone. */
json_t *engine_pools(const struct engine *engine);
/* Counters and gauges in the text format of Prometheus 0.0.4. */
void engine_metrics(struct engine *engine, struct buf *buf);

/* ---- descriptors ---- */

#define ENGINE_DESCRIPTORS_MIN 128     /* RLIMIT_NOFILE below which an engine cannot serve runs */
/* The number of sandboxes that can exist at once with so many descriptors, by a cautious count.  Further runs wait. */
size_t engine_places(uint64_t descriptors);
/* The number of descriptors left for clients, so that sandboxes can be made in any case. */
size_t engine_client_descriptors(uint64_t descriptors);

#endif
