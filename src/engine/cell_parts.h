/* Cells from the inside; for the files of this folder. */
#ifndef ENGINE_CELL_PARTS_H
#define ENGINE_CELL_PARTS_H

#include "engine/cell.h"
#include "engine/run.h"

struct cell {
        struct cell *next;
        struct engine *engine;
        struct box *box;                 /* NULL: it is over */
        char id[40];
        char owner[OWNER_KEY_MAX];
        enum cell_state state;
        bool changing;                   /* it was asked to pause or to go on */
        struct run *template;            /* never started: its request, shape, limits and environment */
        struct sandbox_request request;  /* in the template's arena */
        struct egress *egress;
        struct watch sock;               /* to the guest */
        struct outbox out;
        bool greeted;
        struct call *calls;
        struct call sudo;                /* while it is there, for those inside alone */
        struct context *contexts;
        struct cell_waiter *waiters;
        struct timer ttl, idle, gone, greeting;
        uint64_t paused_us;
        int64_t created_ms, expires_ms;
        struct wire_seen seen;
        struct csn_error why;            /* of its end, if it was not asked for */
};

/* News of its box. */
void cell_attached(struct cell *cell, struct box *box);
void cell_seen(struct cell *cell, const struct wire_seen *seen);
void cell_frozen(struct cell *cell, bool on, const struct csn_error *error);
void cell_exited(struct cell *cell, const struct wire_exit *how);
void cell_ended(struct cell *cell, const struct csn_error *error);
/* It could not be begun; `again`: in a box that waited, and another may do. */
void cell_refused(struct cell *cell, const struct csn_error *error, bool again);
/* Something is done in it: it is not idle. */
void cell_touch(struct cell *cell);
void cells_close(struct engine *engine);

/* News of the box of an interpreter that came from a zygote. */
void context_joined(struct context *context);
void context_left(struct context *context, const struct wire_exit *how, const struct csn_error *error);
/* Its cell was looked at. */
void context_cell_seen(struct context *context, const struct wire_seen *seen);
/* Those that wait for something to execute: their calls are open, and mean nothing. */
size_t contexts_resting(const struct cell *cell);
/* A request that names a context: it has to exist, and its language is the request's.  Errors: CSN_E_INPUT. */
int context_bind(struct run *run, struct csn_error *err);
/* A run for a context, from run_checked() on.  Errors: CSN_E_INPUT (there is none), CSN_E_BUSY. */
int context_submit(struct run *run, struct csn_error *err);
/* A run of a context is not wanted any more. */
void context_cancel(struct run *run);
/* It is freed. */
void context_forget(struct run *run);
void contexts_end(struct cell *cell, const struct csn_error *error);
/* Their cell stands still, or goes on. */
void contexts_frozen(struct cell *cell, bool on);

#endif
