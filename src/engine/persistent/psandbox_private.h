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
        void (*quota_spent)(struct psandbox *psandbox);
};

/* Told about a sandbox by its guest calls.  All members are set. */
struct guest_call_user {
        void (*used)(struct psandbox *psandbox);              /* a call begins or ends: the sandbox is not idle */
        void (*program_ended)(struct psandbox *psandbox);     /* its CPU time is to be reported soon */
};

struct psandbox {
        struct psandbox *next;
        struct engine *engine;
        char id[40];
        char owner[OWNER_KEY_MAX];
        enum psandbox_state state;
        bool changing;                       /* a request to pause or resume is on its way */
        bool is_watched;                     /* its begin was told to the watcher */
        struct csn_error why;                /* reason of an end that no caller asked for */
        struct psandbox_waiter *waiters;

        /* Request and sandbox. */
        struct launch launch;                /* request, shape, limits and environment of a run that never starts */
        struct sandbox_request request;      /* in the launch's arena */
        struct limits bounds;                /* limits in the request: the maxima of executions */
        struct layer_query layers;
        void (*has_layers)(struct psandbox *psandbox, const struct csn_error *error);
        bool waits_for_layers;               /* the instance is made when the layers are there */
        struct instance *instance;           /* NULL: the sandbox waits for layers, or is over */
        struct wire_boundary boundary;
        bool has_boundary;
        int home_fd;                         /* for statfs(2) alone; the guest reads files */
        struct egress *egress;
        struct tool_session tool_session;

        /* The guest and its calls. */
        struct watch sock;
        struct send_queue out;
        bool hello_received;
        struct guest_call *calls;
        const struct guest_call_user *call_user;
        struct guest_call sudo;              /* open while programs inside may use sudo */

        /* Contexts. */
        struct context *contexts;
        const struct psandbox_observer *observer;   /* NULL: no context was opened yet */

        /* Times and use. */
        struct timer ttl, idle, gone, greeting, usage_report;
        bool usage_report_due;               /* usage_report was set by the end of a program */
        uint64_t paused_us;                  /* clock_us() of the last pause */
        int64_t created_ms, expires_ms;
        uint64_t number;                     /* creation number */
        uint64_t programs_n;                 /* programs so far */
        struct wire_stats seen;
        uint64_t told_us;                    /* CPU time that a charge or a record has */
        struct run_quota quota;
        struct owner *payer;                 /* the owner, charged with counted_us */
        uint64_t counted_us;
        uint64_t spent_us;                   /* CPU time when the quota was found used up; 0: it is not */
};

enum context_state { CONTEXT_STARTING, CONTEXT_IDLE, CONTEXT_BUSY, CONTEXT_DEAD };

struct context {
        struct context *next;
        struct psandbox *psandbox;
        char id[40];
        enum context_state state;
        const struct language *language;
        struct arena arena;
        struct context_request request;      /* in the arena */
        uint64_t made;                       /* creation number among all contexts of the engine */
        int64_t created_ms;
        struct context_waiter *waiter;       /* for the start of the interpreter */

        /* The interpreter. */
        struct guest_call call;              /* carries output, errors and the private channel */
        struct guest_call look;              /* looks whether the folder of the context exists */
        void (*looked)(struct context *context, const struct csn_error *error);
        struct instance *instance;           /* an interpreter from a zygote; NULL: the guest started the interpreter */
        struct arena started;                /* for `program` */
        struct backend_program program;
        uint64_t pid;                        /* as the interpreter reports */
        bool cold;                           /* a zygote could not give an interpreter */
        bool used;                           /* the interpreter has executed something */
        bool left;                           /* the interpreter has ended, and its last output is on the way */
        bool dying;                          /* the same, and the sandbox is asked whether memory was the reason */
        bool stopping;                       /* no execution may begin */
        bool no_interpreter;                 /* this host has no interpreter of the language */
        bool is_watched;                     /* the begin of the interpreter was told to the watcher */
        struct wire_exit how;                /* end of the interpreter */
        char why[200];                       /* reason of CONTEXT_DEAD */

        /* Executions. */
        struct run *current, *first, *last;  /* the one that is executed; the queue */
        size_t waiting;                      /* length of the queue */
        struct capture pending[2];           /* output while nothing was executed */
        char *text;                          /* of the execution, while it is sent; or NULL */
        size_t text_len, text_at;
        uint64_t executions;                 /* of this context */
        uint64_t number;                     /* of this interpreter */
        uint64_t began_us;
        bool before_due;                     /* the execution waits for the statistics before it */
        struct wire_stats before;
        bool cancel_pending, interrupt_pending;   /* requested while before_due */
        bool done, after_due;                /* the runner reported the end; the statistics after it are on the way */

        /* Clocks. */
        struct timer clock;
        enum { CLOCK_START, CLOCK_WALL, CLOCK_GRACE, CLOCK_LEFT } meaning;   /* of the clock */
        uint64_t clock_left_us;              /* of a clock that stands in a paused sandbox */
        struct timer usage_report;           /* looks at the CPU time of an execution */
        unsigned timed_out;                  /* WIRE_WALL or WIRE_CPU; 0: no limit was reached */
};

/* ---- psandbox.c ---- */

/* An operation begins or ends: the sandbox is not idle. */
void psandbox_touch(struct psandbox *psandbox);
void psandboxes_close(struct engine *engine);
/* told_us or the CPU time has changed: charge the owner with the difference. */
void psandbox_count_use(struct psandbox *psandbox);

/* ---- tell.c ---- */

/* Tell the watcher of the engine; an end without a begin is left out. */
void psandbox_tell(struct psandbox *psandbox, enum watched_kind kind);
void context_tell(struct context *context, enum watched_kind kind);

/* ---- psandbox_layers.c ---- */

/*
 * Find the layers of packages that the request names.  1: they are in the shape of the sandbox, or there are none.  0:
 * found() follows from the loop, with an error if the packages cannot be installed, unless psandbox_forget_layers() is
 * called.  Errors: CSN_E_INPUT; CSN_E_BUSY (the same request may succeed later).
 */
int psandbox_find_layers(struct psandbox *psandbox,
        void (*found)(struct psandbox *psandbox, const struct csn_error *error), struct csn_error *err);
/* Stop waiting; harmless if the sandbox does not wait. */
void psandbox_forget_layers(struct psandbox *psandbox);

/* ---- context.c ---- */

/* Begin executions that waited for room in running_max. */
void contexts_serve(struct engine *engine);

/* ---- context_execution.c ---- */

/* bytes per stream that are kept while nothing is executed; they belong to the next execution */
#define PENDING_MAX (64 * KIB)

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
int context_look(struct context *context, void (*looked)(struct context *context, const struct csn_error *error),
        struct csn_error *err);
/*
 * The context that a request names has to exist.  The language of the request is the context's, and missing limits are
 * those of the sandbox.  Errors: CSN_E_INPUT, also for values that only a whole sandbox can have.
 */
int context_take_limits(struct run *run, const struct context *context, struct csn_error *err);
/* The request is complete: values that belong to the sandbox replace those of the run. */
void context_adopt(struct run *run);

#endif
