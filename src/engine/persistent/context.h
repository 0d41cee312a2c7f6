/*
 * context: a live interpreter in a persistent sandbox, which executes one run after another and keeps its variables.
 *
 * A run names its context in the request; bound to a context, it uses neither queue nor pool.
 */
#ifndef ENGINE_PERSISTENT_CONTEXT_H
#define ENGINE_PERSISTENT_CONTEXT_H

#include "engine/persistent/psandbox.h"
#include "engine/run/run.h"

struct context;

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
int context_open(struct psandbox *psandbox, const struct context_request *request, struct context_waiter *waiter,
        struct context **ret, struct csn_error *err);
struct context *context_find(struct engine *engine, const char *id, const char *owner);
struct context *context_next(struct psandbox *psandbox, struct context *context);
/* Creation number: later contexts have higher ones, and come first in lists. */
uint64_t context_number(const struct context *context);
const char *context_id(const struct context *context);
/* The object `context` of fields.def.  The caller's reference. */
json_t *context_describe(const struct context *context);
/* Interrupt the current execution; the context lives on. */
void context_interrupt(struct context *context);
/* Replace the interpreter by a new one; the current and the waiting executions end.  Errors: as context_open(). */
int context_restart(struct context *context, struct context_waiter *waiter, struct csn_error *err);
void context_unwait(struct context_waiter *waiter);   /* harmless twice */
void context_close(struct context *context);

/* For engine.c: bind a run whose request names a context.  Errors: CSN_E_INPUT. */
int context_bind(struct run *run, struct csn_error *err);

#endif
