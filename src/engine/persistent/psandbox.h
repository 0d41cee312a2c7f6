/*
 * sandbox: a persistent sandbox, and what lives in it.
 *
 *   sandbox      its life: made, used, paused, ended
 *   call      one operation of the guest in it (wire/guest_protocol.h)
 *   copy      all of its files, out of it and into another
 *   context   a live interpreter in it, which executes runs
 *
 * A sandbox is an instance whose process 1 is the guest.  Everything that is asked of it goes through a call, with a socket of its
 * own; so who asks for much and reads little holds up only himself.
 */
#ifndef ENGINE_PSANDBOX_H
#define ENGINE_PSANDBOX_H

#include "engine/engine.h"
#include "wire/guest_protocol.h"

struct psandbox;
struct context;
struct egress_rules;
struct guest_call;

/* ---- sandboxes ---- */

enum psandbox_state { PSANDBOX_MAKING, PSANDBOX_READY, PSANDBOX_PAUSED, PSANDBOX_OVER };

/* Somebody who waits for something of a sandbox; embedded in its owner. */
enum psandbox_want {
        PSANDBOX_WANTS_READY,            /* it is made, or goes on again */
        PSANDBOX_WANTS_PAUSED,
        PSANDBOX_WANTS_OVER,
        PSANDBOX_WANTS_STATS,             /* what it uses was looked at: psandbox_use() */
};

struct psandbox_waiter {
        struct psandbox_waiter *next;
        struct psandbox *psandbox;           /* NULL: it does not wait */
        enum psandbox_want want;
        /* Once; error is NULL where it came about.  What it belonged to may be gone after PSANDBOX_OVER. */
        void (*done)(struct psandbox_waiter *waiter, const struct csn_error *error);
        void *owner;
};

/*
 * Make one for an owner, as runs have them.  The request stays the caller's.  It is ready later, and everything else has
 * to wait for that.  Errors: those of a run's preparation; CSN_E_BUSY: there are as many as there may be.
 */
int psandbox_open(struct engine *engine, const struct sandbox_request *request, const char *owner, struct psandbox **ret, struct csn_error *err);

/* By id, of an owner; NULL: there is none, or it is over. */
struct psandbox *psandbox_find(struct engine *engine, const char *id, const char *owner);
/* One after another; NULL begins.  An owner is not shown those that are being ended; without an owner all are. */
struct psandbox *psandbox_next(struct engine *engine, struct psandbox *psandbox, const char *owner);
const char *psandbox_id(const struct psandbox *psandbox);
/* Its place among those of the engine, and a context's among all: later ones have a higher number, and come first in lists. */
uint64_t psandbox_number(const struct psandbox *psandbox);
uint64_t context_number(const struct context *context);
enum psandbox_state psandbox_state(const struct psandbox *psandbox);
/* Those that it has, by request, profile and defaults. */
const struct limits *psandbox_limits(const struct psandbox *psandbox);
/* The object `sandbox` of fields.def.  The caller's reference. */
json_t *psandbox_describe(const struct psandbox *psandbox);
/* By looking at it anew; PSANDBOX_WANTS_STATS tells when it is there.  The object `sandbox_use`. */
void psandbox_request_stats(struct psandbox *psandbox);
json_t *psandbox_use(const struct psandbox *psandbox);

void psandbox_wait(struct psandbox *psandbox, enum psandbox_want want, struct psandbox_waiter *waiter);
void psandbox_unwait(struct psandbox_waiter *waiter);

/* It lives that long from now on.  Errors: CSN_E_INPUT, beyond what the settings allow. */
int psandbox_extend(struct psandbox *psandbox, uint64_t ttl_ms, struct csn_error *err);
/* Other rules for what programs in it reach, from now on: hosts, ranges and public_.  Errors: CSN_E_INPUT, it was made without a network, or a host is none. */
int psandbox_set_network(struct psandbox *psandbox, const struct egress_rules *rules, struct csn_error *err);
/* Everything inside stands still, or goes on; its memory stays charged.  Errors: CSN_E_BUSY, in another state. */
int psandbox_pause(struct psandbox *psandbox, struct csn_error *err);
int psandbox_resume(struct psandbox *psandbox, struct csn_error *err);
void psandbox_kill(struct psandbox *psandbox);

/* ---- calls ---- */

struct guest_call_events {
        /* A packet of the guest's; descriptors are the callee's to take. */
        void (*packet)(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len, int fds[WIRE_FDS_MAX]);
        /* There is room for more, after guest_call_send() said that there was none. */
        void (*room)(struct guest_call *call);
        /*
         * The last one: it was done (error is NULL), or not.  The call is closed, and may be freed.  EXITED and DONE come as packets
         * before it.
         */
        void (*ended)(struct guest_call *call, const struct csn_error *error);
};

/* Embedded in its owner; all zeros is none. */
struct guest_call {
        struct guest_call *next;
        struct psandbox *psandbox;           /* NULL: it is over */
        struct watch watch;
        const struct guest_call_events *events;
        void *owner;
        bool done;                   /* EXITED, DONE: the end that follows is a good one */
        bool refused;                /* the guest said why it was not done; else an error is the end of the sandbox, or nearly so */
};

/* Errors: CSN_E_BUSY (the sandbox is paused, not ready, or over), CSN_E_INPUT (too long), CSN_E_SYSTEM. */
int guest_call_process(struct psandbox *psandbox, struct guest_call *call, const struct guest_process *process, struct csn_error *err);
int guest_call_stdio(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err);
int guest_call_file(struct psandbox *psandbox, struct guest_call *call, const struct guest_file *file, struct csn_error *err);
/*
 * A connection to a program that listens on this port of the sandbox's own loopback: STARTED when it is there, then as a process.  It
 * fails with ECONNREFUSED in sys where nobody listens.
 */
int guest_call_connect(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err);

/* From now on, and as long as the call is open, programs of `user` may become root by sudo.  It fails where there is no root. */
int guest_call_sudo(struct psandbox *psandbox, struct guest_call *call, struct csn_error *err);
/* The same, programs that ask for GET /health on this port of the sandbox' own are told that all is well.  It fails where the port is taken. */
int guest_call_health(struct psandbox *psandbox, struct guest_call *call, unsigned port, struct csn_error *err);

/* One packet, a kind and its bytes.  False: there is no room now, or the call is over. */
bool guest_call_send(struct guest_call *call, enum guest_kind kind, const void *bytes, size_t len);
bool guest_call_signal(struct guest_call *call, int signal, uint64_t pid);
bool guest_call_resize(struct guest_call *call, unsigned rows, unsigned columns);
/* Read nothing for now, so that the guest waits; or go on. */
void guest_call_hold(struct guest_call *call, bool on);
/* Harmless twice.  A program that goes on is killed; ended() is not called. */
void guest_call_close(struct guest_call *call);

/* Whether programs can be started as this account (fields.def) there.  Errors: CSN_E_INPUT. */
int psandbox_has_account(const struct psandbox *psandbox, int account, struct csn_error *err);
/* The environment that programs of it have, "NAME=value", with more laid over; from the arena, NULL-terminated. */
char **psandbox_env(const struct psandbox *psandbox, int account, const struct pair *more, size_t more_n, struct arena *arena, size_t *ret_n);

/* ---- copies ---- */

/* Embedded in its owner, who sets the first two; all zeros is none. */
struct psandbox_copy {
        /* Once, whichever way it went.  It may be freed then. */
        void (*done)(struct psandbox_copy *copy, const struct csn_error *error);
        void *owner;
        /* copy.c's own. */
        struct guest_call call;
        int fd;
        bool saves, ended;
        uint64_t bytes, max, in_flight;
        struct buf said;
        int status;                  /* wait(2) */
        struct csn_error why;        /* it was given up */
        struct engine *engine;
        struct timer deadline;       /* engine.copy_ms */
};

/*
 * Every file that a sandbox has beside those of a new one, of a sandbox with root as of one without, into a regular file of the caller's, which
 * has to stay open; and from such a file into a sandbox that was just made, in place of what it has.  Programs go on meanwhile;
 * what they change is in the copy or is not.  What was removed of /usr is removed there, too.  One that takes longer than
 * engine.copy_ms, or is too large, fails with CSN_E_SYSTEM.  Errors: those of guest_call_process().
 */
int psandbox_save(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, struct csn_error *err);
int psandbox_load(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, struct csn_error *err);
/* An archive of tar, which gzip may have compressed, into a folder of a sandbox, which is made; what is in it belongs to nobody but who can write there. */
int psandbox_unpack(struct psandbox *psandbox, struct psandbox_copy *copy, int fd, const char *folder, struct csn_error *err);
/* Harmless twice.  One that goes on is given up; done() is not called. */
void psandbox_copy_done(struct psandbox_copy *copy);

/* ---- contexts ---- */

/* Somebody who waits for an interpreter; embedded in its owner. */
struct context_waiter {
        struct context *context;           /* NULL: it does not wait */
        void (*done)(struct context_waiter *waiter, const struct csn_error *error);
        void *owner;
};

/*
 * The request stays the caller's.  waiter may be NULL; it is told once when the interpreter is there, or is not.  With a CSN_E_INPUT, of the
 * field /cwd, the context is not there any more: it cannot work in its folder.
 */
int context_open(struct psandbox *psandbox, const struct context_request *request, struct context_waiter *waiter, struct context **ret, struct csn_error *err);
struct context *context_find(struct engine *engine, const char *id, const char *owner);
struct context *context_next(struct psandbox *psandbox, struct context *context);
const char *context_id(const struct context *context);
json_t *context_describe(const struct context *context);   /* the object `context` */
/* What goes on there is interrupted; the context lives on. */
void context_interrupt(struct context *context);
/* A new interpreter in its place; what goes on and what waits there ends. */
int context_restart(struct context *context, struct context_waiter *waiter, struct csn_error *err);
void context_unwait(struct context_waiter *waiter);   /* harmless twice */
void context_close(struct context *context);

#endif
