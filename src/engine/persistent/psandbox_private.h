/* Persistent sandboxes and contexts from the inside; for the files of this folder. */
#ifndef ENGINE_PERSISTENT_PSANDBOX_PRIVATE_H
#define ENGINE_PERSISTENT_PSANDBOX_PRIVATE_H

#include "engine/persistent/context.h"
#include "engine/run/run_private.h"

/* Told about a sandbox by psandbox.c; the contexts in it are one.  All members are set. */
struct psandbox_observer {
        void (*stats)(struct psandbox *psandbox, const struct wire_stats *seen);
        void (*frozen)(struct psandbox *psandbox, bool on);
        void (*ended)(struct psandbox *psandbox, const struct csn_error *error);
        bool (*is_executing)(const struct psandbox *psandbox);
        size_t (*idle_calls)(const struct psandbox *psandbox);   /* open guest calls that carry no work */
};

/* Told about a sandbox by its guest calls.  All members are set. */
struct guest_call_user {
        void (*used)(struct psandbox *psandbox);              /* a call begins or ends: the sandbox is not idle */
        void (*program_ended)(struct psandbox *psandbox);     /* its CPU time is to be reported soon */
};

struct psandbox {
        struct psandbox *next;
        struct engine *engine;
        struct instance *instance;                 /* NULL: it is over */
        char id[40];
        char owner[OWNER_KEY_MAX];
        enum psandbox_state state;
        bool usage_report_due;                  /* the meter's timer is about a program that ended */
        bool changing;                   /* it was asked to pause or to go on */
        struct launch launch;            /* request, shape, limits and environment of a run that never starts */
        struct wire_boundary boundary;
        bool has_boundary;
        struct tool_session tool_session;
        const struct guest_call_user *call_user;
        const struct psandbox_observer *observer;   /* NULL: there was no context yet */
        struct sandbox_request request;  /* in the launch's arena */
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
        struct timer ttl, idle, gone, greeting, usage_report;
        uint64_t paused_us;
        uint64_t number, programs_n;     /* programs_n: programs so far */
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
        void (*looked)(struct context *context, const struct csn_error *error);
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
        struct timer usage_report;       /* looks at the CPU time of an execution */
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

/* ---- psandbox.c ---- */

/* An operation begins or ends: the sandbox is not idle. */
void psandbox_touch(struct psandbox *psandbox);
void psandboxes_close(struct engine *engine);

/* ---- context_execution.c ---- */

#define PENDING_MAX (64 * KIB)   /* bytes per stream that are kept while nothing is executed; they belong to the next execution */

/* Set the clock of a context, in ms, for one of the meanings of context->meaning; in a paused sandbox it stands. */
void context_set_clock(struct context *context, int meaning, uint64_t ms);
void context_stop_clock(struct context *context);
/*
 * Make the text of a run for the interpreter.  `first`: the interpreter has executed nothing yet.  False: it cannot be
 * written.
 */
bool context_make_text(struct context *context, const struct run *run, bool first);
/* Send as much of the text as there is room for. */
void context_send_text(struct context *context);
void context_drop_text(struct context *context);
/* Give output that came while nothing was executed to a run. */
void context_give_pending(struct context *context, struct run *run);
/* Send a signal to the interpreter. */
void context_signal(struct context *context, int sig);
/*
 * Interrupt the execution, and kill the interpreter if the execution does not end within the grace time.  The reason is
 * the limit that was reached (WIRE_WALL, WIRE_CPU), or 0 for a cancelled run.
 */
void context_end_execution(struct context *context, unsigned reason);
/* Compare the CPU time of the execution, which is that of the whole sandbox since it began, with its limit. */
void context_measure(struct context *context, const struct wire_stats *seen);
/* Look at the CPU time soon. */
void context_measure_soon(struct context *context);

/* ---- context_limits.c: the folder of a context, and the values that an execution has from its sandbox ---- */

/* Whether a context begins in another folder than the home directory; the folder may be missing. */
bool context_is_elsewhere(const struct context *context);
/* Look whether the folder can be used; looked() follows, with an error if not.  Errors: those of guest_call_file(). */
int context_look(struct context *context, void (*looked)(struct context *context, const struct csn_error *error), struct csn_error *err);
/*
 * The context that a request names has to exist.  The language of the request is the context's, and missing limits are
 * those of the sandbox.  Errors: CSN_E_INPUT, also for values that only a whole sandbox can have.
 */
int context_take_limits(struct run *run, const struct context *context, struct csn_error *err);
/* The request is complete: values that belong to the sandbox replace those of the run. */
void context_adopt(struct run *run);

#endif
