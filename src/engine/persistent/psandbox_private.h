/* Cells from the inside; for the files of this folder. */
#ifndef ENGINE_PERSISTENT_PSANDBOX_PRIVATE_H
#define ENGINE_PERSISTENT_PSANDBOX_PRIVATE_H

#include "engine/persistent/psandbox.h"
#include "engine/run/run_private.h"

struct psandbox {
        struct psandbox *next;
        struct engine *engine;
        struct instance *instance;                 /* NULL: it is over */
        char id[40];
        char owner[OWNER_KEY_MAX];
        enum psandbox_state state;
        bool usage_report_due;                  /* the meter's timer is about a program that ended */
        bool changing;                   /* it was asked to pause or to go on */
        struct run *template;            /* never started: its request, shape, limits and environment */
        struct sandbox_request request;  /* in the template's arena */
        struct limits bounds;            /* of executions: those that the request itself had */
        struct egress *egress;
        struct watch sock;               /* to the guest */
        struct send_queue out;
        int home_fd;                     /* for statfs(2) alone: what is in it is the guest's to read */
        bool hello_received;
        struct guest_call *calls;
        struct guest_call sudo;                /* while it is there, for those inside alone */
        struct context *contexts;
        struct psandbox_waiter *waiters;
        struct timer ttl, idle, gone, greeting, usage_listener;
        uint64_t paused_us;
        uint64_t number;
        int64_t created_ms, expires_ms;
        struct wire_stats seen;
        uint64_t told_us;                /* CPU time that somebody was told of: the meter, or a record */
        struct csn_error why;            /* of its end, if it was not asked for */
};

enum context_state { CONTEXT_STARTING, CONTEXT_IDLE, CONTEXT_BUSY, CONTEXT_DEAD };

struct context {
        struct context *next;
        struct psandbox *psandbox;
        char id[40];
        enum context_state state;
        const struct language *language;
        struct arena arena;
        struct context_request request;  /* in the arena */
        struct guest_call call;
        struct guest_call look;                /* whether its folder is there */
        struct instance *instance;                 /* of an interpreter from a zygote */
        struct backend_program program;  /* its; in `started` */
        struct arena started;
        bool left;                       /* it has ended, and what it printed last is on its way */
        struct wire_exit how;
        uint64_t pid;                    /* as it says */
        struct context_waiter *waiter;
        struct run *current, *first, *last;
        size_t waiting;
        struct capture pending[2];
        char *text;                      /* of the execution, while it is sent; or NULL */
        size_t text_len, text_at;
        struct timer clock;              /* of the start, of an execution, of its end */
        uint64_t clock_left_us;          /* it stands, as its sandbox does */
        enum { CLOCK_START, CLOCK_WALL, CLOCK_GRACE, CLOCK_LEFT } meaning;
        struct timer usage_listener;              /* of the CPU time of an execution */
        unsigned timed_out;              /* WIRE_WALL or WIRE_CPU; 0: it was not */
        bool done, after_due;
        bool before_due;                 /* an execution waits until it is known what was used before it */
        bool cancel_pending, interrupt_pending;            /* meanwhile that one was cancelled, or interrupted */
        bool dying;                      /* it has ended, and its sandbox is asked whether memory was the reason */
        bool stopping;                   /* nothing begins now */
        bool cold;                       /* a zygote could not give one */
        bool used;                       /* something was executed by this interpreter */
        struct wire_stats before;
        uint64_t executions, began_us;
        uint64_t number;                 /* of those, how many this interpreter has begun */
        uint64_t made;                   /* its number among all of the engine */
        int64_t created_ms;
        char why[200];                   /* it is dead */
        bool no_interpreter;             /* because this host has none of its language */
};

/* A program in it has ended: what that used is told soon. */
void psandbox_report_usage(struct psandbox *psandbox);
/* Something is done in it: it is not idle. */
void psandbox_touch(struct psandbox *psandbox);
void psandboxes_close(struct engine *engine);

/* Its sandbox was looked at. */
void context_on_stats(struct context *context, const struct wire_stats *seen);
/* Its folder was looked at; with an error it cannot begin there, or nobody knows. */
void context_looked(struct context *context, const struct csn_error *error);
/* Those that wait for something to execute: their calls are open, and mean nothing. */
size_t contexts_resting(const struct psandbox *psandbox);

/* ---- the folder that a context is to begin in (context_limits.c) ---- */

/* It begins in another folder than all do, and that may not be there. */
bool context_is_elsewhere(const struct context *context);
/* context_looked() follows.  Errors: those of guest_call_file(). */
int context_look(struct context *context, struct csn_error *err);

/* ---- executions: what one asks for, and what it has of its sandbox (context_limits.c) ---- */

/*
 * A request that names a context: it has to exist, and its language is the request's, and so are the limits of its sandbox that the
 * request does not have.  Errors: CSN_E_INPUT, also for what only the whole sandbox could have.
 */
int context_bind(struct run *run, struct csn_error *err);
/* Its request is whole: what belongs to the sandbox is as it is there; `profile`: that of the sandbox, too. */
void context_adopt(struct run *run, bool profile);

/* ---- context.c: executions ---- */

/* A run for a context, from run_checked() on.  Errors: CSN_E_INPUT (there is none), CSN_E_BUSY. */
int context_submit(struct run *run, struct csn_error *err);
/* A run of a context is not wanted any more. */
void context_cancel(struct run *run);
/* It is freed. */
void context_forget(struct run *run);
void contexts_end(struct psandbox *psandbox, const struct csn_error *error);
/* Their sandbox stands still, or goes on. */
void contexts_frozen(struct psandbox *psandbox, bool on);

#endif
