/*
 * Persistent sandboxes, and the objects in them.
 *
 *   psandbox    a persistent sandbox: created, used, paused, ended
 *   guest_call  one operation of the guest, in guest_call.h
 *   file_copy   all files of a sandbox, saved to a file or loaded into another sandbox
 *   context     a live interpreter in a sandbox, which executes runs, in context.h
 *
 * A persistent sandbox is an instance with the guest as process 1.  Each operation is a guest call with a socket of its
 * own; so a client that sends much and reads little delays only itself.
 */
#ifndef ENGINE_PERSISTENT_PSANDBOX_H
#define ENGINE_PERSISTENT_PSANDBOX_H

#include "engine/persistent/guest_call.h"
#include "model/model.h"

struct egress_rules;
struct engine;
struct run_quota;
struct psandbox;

/* ---- sandboxes ---- */

enum psandbox_state { PSANDBOX_MAKING, PSANDBOX_READY, PSANDBOX_PAUSED, PSANDBOX_OVER };

/* The state changes that a waiter can wait for. */
enum psandbox_want {
        PSANDBOX_WANTS_READY,            /* created, or resumed */
        PSANDBOX_WANTS_PAUSED,
        PSANDBOX_WANTS_OVER,
        PSANDBOX_WANTS_STATS,             /* fresh statistics arrived: psandbox_use() */
};

/* A pending wait for a state change; embedded in the caller's object. */
struct psandbox_waiter {
        struct psandbox_waiter *next;
        struct psandbox *psandbox;           /* NULL: not waiting */
        enum psandbox_want want;
        /* Called once; error is NULL on success.  After PSANDBOX_WANTS_OVER the sandbox may be freed. */
        void (*done)(struct psandbox_waiter *waiter, const struct csn_error *error);
        void *owner;
};

/*
 * Create a sandbox for an owner, as for runs.  The request stays the caller's; quota NULL: no limits.  The sandbox
 * becomes ready later; other operations must wait.  *ret stays the engine's.  Errors: as a run's preparation;
 * CSN_E_BUSY (the maximum of sandboxes).
 */
int psandbox_open(struct engine *engine, const struct sandbox_request *request, const char *owner,
        const struct run_quota *quota, struct psandbox **ret, struct csn_error *err);
/*
 * Replace the quotas of a sandbox.  When the CPU time of its owner is used up, executions and programs in it are ended,
 * and the sandbox itself if it goes on to use CPU time.
 */
void psandbox_set_quota(struct psandbox *psandbox, const struct run_quota *quota);

/* Find a sandbox of an owner by id; NULL: none, or over. */
struct psandbox *psandbox_find(struct engine *engine, const char *id, const char *owner);
/*
 * Iterate; NULL begins and ends.  With an owner, sandboxes that are being ended are skipped; owner NULL: all sandboxes.
 */
struct psandbox *psandbox_next(struct engine *engine, struct psandbox *psandbox, const char *owner);
const char *psandbox_id(const struct psandbox *psandbox);
/* Creation number of a sandbox: later ones are higher, and come first in lists. */
uint64_t psandbox_number(const struct psandbox *psandbox);
/* Number of the next program in this sandbox: 1, 2 and so on, so that a number tells nothing of other sandboxes. */
uint64_t psandbox_count_program(struct psandbox *psandbox);
enum psandbox_state psandbox_state(const struct psandbox *psandbox);
/* The sandbox's limits, from request, profile and defaults. */
const struct limits *psandbox_limits(const struct psandbox *psandbox);
/* The object `sandbox` of fields.def.  The caller's reference. */
json_t *psandbox_describe(const struct psandbox *psandbox);
/*
 * Request fresh statistics, reported by PSANDBOX_WANTS_STATS.  psandbox_use(): the object `sandbox_use`, the caller's
 * reference.
 */
void psandbox_request_stats(struct psandbox *psandbox);
json_t *psandbox_use(const struct psandbox *psandbox);

/* Wait for a state change; stop waiting. */
void psandbox_wait(struct psandbox *psandbox, enum psandbox_want want, struct psandbox_waiter *waiter);
void psandbox_unwait(struct psandbox_waiter *waiter);

/* Set the end of the sandbox to now + ttl_ms.  Errors: CSN_E_INPUT (beyond the settings' maximum). */
int psandbox_extend(struct psandbox *psandbox, uint64_t ttl_ms, struct csn_error *err);
/*
 * Replace the network rules hosts, ranges and public_.  Errors: CSN_E_INPUT (the sandbox was created without network,
 * or a host is invalid).
 */
int psandbox_set_network(struct psandbox *psandbox, const struct egress_rules *rules, struct csn_error *err);
/* Freeze or thaw all processes inside; their memory stays charged.  Errors: CSN_E_BUSY (wrong state). */
int psandbox_pause(struct psandbox *psandbox, struct csn_error *err);
int psandbox_resume(struct psandbox *psandbox, struct csn_error *err);
/* End the sandbox. */
void psandbox_kill(struct psandbox *psandbox);

/* ---- programs ---- */

/* Whether programs can run as this account (fields.def).  Errors: CSN_E_INPUT. */
int psandbox_has_account(const struct psandbox *psandbox, int account, struct csn_error *err);
/* The environment of programs as "NAME=value", overlaid with `more`; from the arena, NULL-terminated. */
char **psandbox_env(const struct psandbox *psandbox, int account, const struct pair *more, size_t more_n,
        struct arena *arena, size_t *ret_n);

/* ---- copies ---- */

/* Embedded in the caller's object; the caller sets done and owner.  All zeros means none. */
struct psandbox_copy {
        /* Called once at the end; the copy may then be freed. */
        void (*done)(struct psandbox_copy *copy, const struct csn_error *error);
        void *owner;
        /* Private to file_copy.c. */
        struct guest_call call;
        int fd;
        bool saves, ended;
        uint64_t bytes, max, in_flight;
        struct buf said;
        int status;                  /* as from wait(2) */
        struct csn_error why;        /* reason of a cancellation */
        struct engine *engine;
        struct timer deadline;       /* engine.copy_ms */
};

/*
 * Save all files of a sandbox that differ from a new one to a regular file of the caller, which must stay open; load
 * such a file into a new sandbox, replacing its files.  Works with and without root inside.  Programs keep running;
 * their changes meanwhile may or may not be included.  Removals in /usr are included.  A copy that takes longer than
 * engine.copy_ms, or is too large, fails with CSN_E_SYSTEM.  Errors: as guest_call_process().
 */
int psandbox_save(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, struct csn_error *err);
int psandbox_load(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, struct csn_error *err);
/*
 * Unpack a tar archive, possibly compressed by gzip, to a new folder of a sandbox; its files belong to the account that
 * unpacks them.  Errors: as guest_call_process().
 */
int psandbox_unpack(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, const char *folder,
        struct csn_error *err);
/* End a copy without done().  Harmless twice. */
void psandbox_copy_done(struct psandbox_copy *copy);

#endif
