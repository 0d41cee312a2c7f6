/*
 * Persistent sandboxes, and the objects in them.
 *
 *   psandbox    a persistent sandbox: created, used, paused, ended
 *   guest_call  one operation of the guest (wire/guest_protocol.h)
 *   file_copy   all files of a sandbox, saved to a file or loaded into another sandbox
 *   context     a live interpreter in a sandbox, which executes runs
 *
 * A persistent sandbox is an instance with the guest as process 1.  Each operation is a guest call with a socket of its
 * own; so a client that sends much and reads little delays only itself.
 */
#ifndef ENGINE_PERSISTENT_PSANDBOX_H
#define ENGINE_PERSISTENT_PSANDBOX_H

#include "engine/engine.h"
#include "wire/guest_protocol.h"

struct psandbox;
struct context;
struct egress_rules;
struct guest_call;

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
 * Create a sandbox for an owner, as for runs.  The request stays the caller's.  The sandbox becomes ready later; other
 * operations must wait.  *ret stays the engine's.  Errors: as a run's preparation; CSN_E_BUSY (the maximum of
 * sandboxes).
 */
int psandbox_open(struct engine *engine, const struct sandbox_request *request, const char *owner, struct psandbox **ret, struct csn_error *err);

/* Find a sandbox of an owner by id; NULL: none, or over. */
struct psandbox *psandbox_find(struct engine *engine, const char *id, const char *owner);
/*
 * Iterate; NULL begins and ends.  With an owner, sandboxes that are being ended are skipped; owner NULL: all sandboxes.
 */
struct psandbox *psandbox_next(struct engine *engine, struct psandbox *psandbox, const char *owner);
const char *psandbox_id(const struct psandbox *psandbox);
/* Creation number of a sandbox, and of a context: later ones are higher, and come first in lists. */
uint64_t psandbox_number(const struct psandbox *psandbox);
uint64_t context_number(const struct context *context);
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

/* ---- guest calls ---- */

/* Events of a guest call, from the loop. */
struct guest_call_events {
        /* A packet of the guest; the callee may take descriptors by setting them to -1. */
        void (*packet)(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len, int fds[WIRE_FDS_MAX]);
        /* The socket has room, after guest_call_send() returned false. */
        void (*room)(struct guest_call *call);
        /*
         * The last event: success (error is NULL), or failure.  The call is closed and may be freed.  EXITED and DONE
         * arrive as packets before.
         */
        void (*ended)(struct guest_call *call, const struct csn_error *error);
};

/* Embedded in the caller's object; all zeros means none. */
struct guest_call {
        struct guest_call *next;
        struct psandbox *psandbox;           /* NULL: the call is over */
        struct watch watch;
        const struct guest_call_events *events;
        void *owner;
        bool done;      /* EXITED or DONE arrived: the following end is a success */
        bool refused;   /* the guest reported why the operation failed; other errors come from the end of the sandbox */
};

/*
 * Begin a call; ended() follows unless the call is closed.  Errors: CSN_E_BUSY (the sandbox is paused, not ready, or
 * over), CSN_E_INPUT (too long), CSN_E_SYSTEM.
 */
int guest_call_process(struct psandbox *psandbox, struct guest_call *call, const struct guest_process *process, struct csn_error *err);
int guest_call_stdio(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err);
int guest_call_file(struct psandbox *psandbox, struct guest_call *call, const struct guest_file *file, struct csn_error *err);
/*
 * Connect to a program that listens on this port of the sandbox's loopback: STARTED when connected, then as a process.
 * Fails with ECONNREFUSED in sys if no program listens.  Errors: as above.
 */
int guest_call_connect(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err);

/*
 * While the call is open, programs of `user` may become root by sudo.  Fails in a sandbox without root.  Errors: as
 * above.
 */
int guest_call_sudo(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err);
/*
 * While the call is open, GET /health on this port of the sandbox's loopback is answered with success.  Fails if the
 * port is in use.  Errors: as above.
 */
int guest_call_health(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err);

/* Send one packet, a kind and its bytes.  false: no room now, or the call is over. */
bool guest_call_send(struct guest_call *call, enum guest_kind kind, const void *bytes, size_t len);
bool guest_call_signal(struct guest_call *call, int signal, uint64_t pid);
bool guest_call_resize(struct guest_call *call, unsigned rows, unsigned columns);
/* Stop reading, so that the guest waits; or continue. */
void guest_call_hold(struct guest_call *call, bool on);
/* Close the call without ended().  A running program is killed.  Harmless twice. */
void guest_call_close(struct guest_call *call);

/* Whether programs can run as this account (fields.def).  Errors: CSN_E_INPUT. */
int psandbox_has_account(const struct psandbox *psandbox, int account, struct csn_error *err);
/* The environment of programs as "NAME=value", overlaid with `more`; from the arena, NULL-terminated. */
char **psandbox_env(const struct psandbox *psandbox, int account, const struct pair *more, size_t more_n, struct arena *arena, size_t *ret_n);

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
int psandbox_unpack(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, const char *folder, struct csn_error *err);
/* End a copy without done().  Harmless twice. */
void psandbox_copy_done(struct psandbox_copy *copy);

/* ---- contexts ---- */

/* A pending wait for an interpreter; embedded in the caller's object. */
struct context_waiter {
        struct context *context;           /* NULL: not waiting */
        void (*done)(struct context_waiter *waiter, const struct csn_error *error);
        void *owner;
};

/*
 * Create a context.  The request stays the caller's; *ret stays the sandbox's.  waiter may be NULL; its done() is
 * called once when the interpreter is ready or has failed.  After CSN_E_INPUT with the field /cwd the context no longer
 * exists: it cannot use its folder.  Errors: CSN_E_INPUT, CSN_E_LANGUAGE, CSN_E_BUSY, CSN_E_SYSTEM.
 */
int context_open(struct psandbox *psandbox, const struct context_request *request, struct context_waiter *waiter, struct context **ret, struct csn_error *err);
struct context *context_find(struct engine *engine, const char *id, const char *owner);
struct context *context_next(struct psandbox *psandbox, struct context *context);
const char *context_id(const struct context *context);
/* the object `context` of fields.def; the caller's reference */
json_t *context_describe(const struct context *context);
/* Interrupt the current execution; the context lives on. */
void context_interrupt(struct context *context);
/* Replace the interpreter by a new one; the current and the waiting executions end.  Errors: as context_open(). */
int context_restart(struct context *context, struct context_waiter *waiter, struct csn_error *err);
void context_unwait(struct context_waiter *waiter);   /* harmless twice */
void context_close(struct context *context);

#endif
