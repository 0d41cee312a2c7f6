/* Runs from the inside; for the files of this folder, and for the rooms above it. */
#ifndef ENGINE_RUN_RUN_PRIVATE_H
#define ENGINE_RUN_RUN_PRIVATE_H

#include <stdatomic.h>

#include "base/worker.h"
#include "egress/egress.h"
#include "engine/instance/pool.h"
#include "engine/output/files.h"
#include "engine/output/verdict.h"
#include "engine/run/counters.h"
#include "engine/run/layers.h"
#include "engine/run/review.h"
#include "engine/run/run.h"
#include "engine/run/source_check.h"
#include "engine/run/watcher.h"


enum run_state { RUN_NEW, RUN_EXAMINING, RUN_CHECKING, RUN_QUEUED, RUN_RUNNING, RUN_RECORDING, RUN_OVER };

/* Phases of a run in their order, for the stages in the record. */
enum phase {
        PHASE_NONE,
        PHASE_POLICY,
        PHASE_REVIEW,                  /* begins with the verdict of the policy, whether or not a reviewer is asked */
        PHASE_PACKAGES,
        PHASE_QUEUE,
        PHASE_PREPARE,
        PHASE_RUN,
        PHASES
};

struct stream {
        struct watch watch;
        struct run *run;
        int number;                    /* 1 or 2 */
        struct capture capture;
};

/* Carries out runs in place of queue and instance; a context is one.  All members are set. */
struct run_executor {
        /* The request is prepared: take over the values that the executor decides. */
        void (*prepared)(struct run *run);
        /* The source policy allows the run.  Errors: CSN_E_INPUT, CSN_E_BUSY. */
        int (*submit)(struct run *run, struct csn_error *err);
        void (*cancel)(struct run *run);
        /* The run is freed. */
        void (*forget)(struct run *run);
        void (*hold)(struct run *run, bool on);
};

/* By how much a workspace may grow. */
struct work_room {
        uint64_t left, each;
};

struct run {
        struct engine *engine;
        struct run *next;
        struct launch launch;
        const struct run_events *events;
        void *owner;
        char id[40];
        char owner_key[OWNER_KEY_MAX]; /* or "" */
        enum run_state state;

        /* Queue. */
        struct run *next_queued;
        struct owner *queue_owner;     /* while the run is queued or running (queue.c) */
        struct run_quota quota;
        bool skips_queue;
        bool cold;                     /* a pooled instance was lost: do not take another */
        bool starts_cold;              /* counted in engine->cold: the interpreter is starting */
        bool keeps_profile;            /* the request named a profile */
        unsigned crowded;              /* attempts that found no free descriptor */
        bool handed_on;                /* an interpreter died before the execution began */
        bool quota_spent;              /* ended, because work of the owner used up cpu_ms_per_day */

        /* CPU time of the owner (owner.c, quota.c). */
        struct owner *payer;           /* charged with counted_us; NULL: no program has begun, or its end is settled */
        uint64_t counted_us;
        bool is_charged;               /* run_set_charged() */
        bool unreviewed;               /* run_set_unreviewed() */
        bool own_prelude;              /* run_set_own_prelude() */
        bool held;                     /* run_hold(), of an execution in a context */
        bool is_watched;               /* the watcher knows the begin, and not yet the end */
        uint64_t quota_left_ms;        /* rest of cpu_ms_per_day, if less than limits.cpu_ms; 0: not less */

        /* The inputs (examine.c); the launch of a run that is RUN_EXAMINING is its helper thread's. */
        struct job examination;
        struct timer find;             /* looks up kept files */

        /* Execution in a context. */
        const struct run_executor *executor;   /* NULL: queue and instance */
        struct context *context;       /* while the run is queued or running there */
        uint64_t number;               /* position among the executions of the interpreter; 0: not begun */
        json_t *displays;              /* MIME bundles, an array; or NULL */
        size_t display_bytes;
        struct display_work *display;  /* that a helper thread works on, or NULL */

        /* Sandbox. */
        struct instance *instance;     /* or NULL */
        struct stream streams[2];
        struct watch channel_watch;
        struct channel channel;
        struct send_queue said;        /* messages that the runner has not read yet */
        int home_fd;
        int handoff_fd;                /* on which the first input comes back, or -1 */
        struct egress *egress;         /* the proxy, or NULL */
        bool no_proxy;                 /* the proxy of the sandbox could not be opened */
        bool has_boundary;
        bool handed_over;              /* the sandbox has the whole program, which may have begun */
        bool lost;                     /* the run was begun again after its sandbox was lost */
        unsigned refusals;             /* connections that the proxy refused */
        struct tool_session tool_session;
        struct wire_boundary boundary;
        struct wire_exit how;

        /* Users of the run. */
        const struct run_message_handler *message_handler;
        void *message_handler_owner;
        const struct run_network *network;     /* NULL: the proxy of the engine */
        void *network_owner;
        const struct run_listener *listener;
        void *listener_owner;

        /* Evidence for the record. */
        struct check check;            /* by the policy; all zeros: none */
        void (*examined)(struct run *run);  /* after RUN_EXAMINING */
        void (*checked)(struct run *run);   /* after the check */
        struct layer_query layers;
        void (*has_layers)(struct run *run);   /* after run_find_layers() */
        struct csn_error refusal;      /* code 0: none */
        struct review_query review;
        void (*reviewed)(struct run *run);     /* after run_review() */
        bool waits_for_layers, waits_for_review;
        bool cancelled, output_killed;
        bool blocked;                  /* the policy refuses the run, or the reviewer */
        bool blocked_by_review;        /* result.error says why */
        bool has_traffic;              /* the program has ended, and traffic is that of its proxy */
        enum phase phase;              /* that goes on, or ended the run */
        struct { uint64_t connections, refused, in_bytes, out_bytes; } traffic;
        uint64_t phase_us[PHASES];     /* begin of each; 0: did not happen */
        uint64_t parsed_us;            /* the runner reported the end of the syntax check; 0: not seen before the end */
        uint64_t created_us, queued_us, begun_us, started_us, ended_us;
        char started_at[40];
        struct timer finish, closing;

        /* The record (run_end.c); all of a run that is RUN_RECORDING is its helper thread's. */
        unsigned fair_milli;           /* see struct evidence */
        atomic_bool given_up;          /* the record is not used: the helper thread need not read all files */
        bool publishes;                /* files are kept */
        struct work_room room;
        struct job recording;
        struct timer publish;
        size_t published;              /* files of the record whose kept content is known, or was refused */
        struct run_result result;
};

/* A tenant with work in the engine (owner.c). */
struct owner {
        struct owner *next;            /* a ring, in turn */
        char key[OWNER_KEY_MAX];
        unsigned holds;                /* objects that refer to the owner; owner_release() of the last one frees it */
        struct run *first, *last;      /* queued runs */
        size_t examining, queued, running;   /* runs */
        size_t others;                 /* executions in contexts and programs in sandboxes that are running */
        size_t waiting;                /* executions that wait in contexts */
        size_t running_max;            /* 0: no limit */
        uint64_t stored_us, stored_at_us;   /* CPU time of 24 hours by the usage listener, and clock_us() of that sum */
        uint64_t unsettled_us;         /* CPU time that the listener does not know of yet */
};

/* What the run layer asks of the layers above; set by engine.c. */
struct engine_hooks {
        /* Start queued runs now. */
        void (*serve_queue)(struct engine *engine);
        /* An owner has work with a quota of CPU time: sample all running work. */
        void (*sample_usage)(struct engine *engine);
        /* The request names a context: set the executor.  Errors: CSN_E_INPUT. */
        int (*bind_context)(struct run *run, struct csn_error *err);
};

/* Shared by all runs and persistent sandboxes. */
struct engine {
        const struct settings *settings;
        struct arena arena;
        const struct language *languages;        /* added by the configuration */
        struct loop *loop;
        struct workers *workers;
        const char *host_tier, *host_missing;    /* for records, see engine_set_host(); NULL: not told */
        const struct engine_hooks *hooks;
        struct run *runs;
        struct owner *owners;                    /* a ring; NULL: no owner has a run (queue.c) */
        size_t examining, checking, queued, running;
        size_t beside;                           /* running runs that skipped the queue: not in `running` */
        size_t judged;                           /* running runs of run_set_judged() */
        size_t cold, cores;                      /* runs whose interpreter is starting; processors of this process */
        struct instances instances;
        uint64_t newest_psandbox, newest_context;      /* by clock_number() */
        struct pools *pools;                     /* NULL: nothing is kept ready */
        struct checker *checkers[2];             /* of short and of long programs; NULL: no such program came yet */
        struct psandbox *psandboxes;             /* psandbox.h */
        bool executions_wait;                    /* in contexts, for room in their owner's running_max */
        struct counters counters;
        const struct engine_tools *tools;        /* NULL: no tools */
        void *tools_owner;
        const struct layer_source *layer_source; /* NULL: none */
        void *layer_source_owner;
        const struct review_source *review_source;     /* NULL: none */
        void *review_source_owner;
        const struct review_accounts *review_accounts;     /* NULL: none */
        void *review_accounts_owner;
        const struct volume_source *volume_source;     /* NULL: none */
        void *volume_source_owner;
        struct volume_query *volume_queries;           /* orders without an answer (engine.c) */
        uint32_t newest_volume_query;
        const struct usage_listener *usage_listener;   /* NULL: no CPU time is charged */
        void *usage_listener_owner;
        const struct engine_watcher *watcher;    /* NULL: none */
        void *watcher_owner;
        struct timer usage_sample;               /* set by engine.c */
        char **private_hosts;                    /* of the settings, for egress_rules */
        size_t private_hosts_n;
        struct timer dispatch;                   /* serves the queue; set by engine.c */
        uint64_t crowded_until_us;               /* clock_us(): no queued run begins before; 0: the queue is served */
        struct job trim;                         /* gives memory back; set by engine.c */
};

/* ---- run.c ---- */

/* End a run that did not begin. */
void run_finish_refused(struct run *run, const struct csn_error *error);
/* End a run of a context; run->ended_us is set. */
void run_context_over(struct run *run, const struct wire_exit *how);
/* Give a queued run an instance and start it; queue_take() counted the run as running. */
void run_begin(struct run *run);

/* ---- watcher.c ---- */

/* Tell the watcher of the begin and the end of a run, once each; result NULL: the run is freed before its end. */
void run_tell_started(struct run *run);
void run_tell_finished(struct run *run, const struct run_result *result);

/* ---- examine.c ---- */

/*
 * Examine the inputs of a prepared run.  0: they are examined.  1: that takes longer, and run_examine_rest() follows.
 * Errors: CSN_E_INPUT, CSN_E_SYSTEM.
 */
int run_examine(struct run *run, struct csn_error *err);
/*
 * Examine the rest while the run is RUN_EXAMINING.  examined() follows from the loop: run->refusal is set, or the
 * inputs are examined.
 */
void run_examine_rest(struct run *run, void (*examined)(struct run *run));
/* The result is not used: examined() follows, at once or from the loop. */
void run_examine_cancel(struct run *run);
/* Wait for the helper thread; examined() is not called, and the run is over. */
void run_examine_stop(struct run *run);

/* ---- layers.c ---- */

/* Whether run_find_layers() comes before the queue. */
bool run_needs_layers(const struct run *run);
/* Find the layers of the request; then call has_layers(), with an error in run->refusal. */
void run_find_layers(struct run *run, void (*has_layers)(struct run *run));
/* Stop waiting; has_layers() is not called.  Harmless if the run does not wait. */
void run_forget_layers(struct run *run);
/* Ask the layer source of the engine.  Errors: CSN_E_INPUT (no layer source), and the errors of layer_source.find(). */
int layers_ask(struct engine *engine, struct layer_query *query, struct csn_error *err);

/* ---- review.c ---- */

/* Whether run_review() comes before layers and queue. */
bool run_needs_review(const struct run *run);
/* Get a verdict of the reviewer; then call reviewed(), with run->blocked set if the program may not run. */
void run_review(struct run *run, void (*reviewed)(struct run *run));
/* The tools of an execution in a context are those of its sandbox.  The names are copied. */
void run_set_reviewed_tools(struct run *run, const struct tools_request *tools);
/* Stop waiting; reviewed() is not called.  Harmless if the run does not wait. */
void run_forget_review(struct run *run);

/* ---- run_end.c ---- */

/* Nothing of the run goes on any more: make its record, and call done(), now or later. */
void run_end(struct run *run);

/* ---- run_object.c ---- */

/* End the program, if there is one; the end of the run follows. */
void run_kill(struct run *run);

/* ---- run_io.c ---- */

/* Read the setting engine.private_hosts.  Errors: CSN_E_CONFIG. */
int run_read_private_hosts(struct engine *engine, struct csn_error *err);

/* Take over the descriptors of an instance.  Problems become warnings. */
void run_attach(struct run *run, struct instance *instance);
/* All processes are dead: read the rest of the pipes. */
void run_drain(struct run *run);
/* Read nothing more; the descriptors stay open. */
void run_stop_io(struct run *run);
void run_close_io(struct run *run);
/* Output of the program. */
void run_printed(struct run *run, int stream, const void *bytes, size_t len);

/* ---- messages.c, display.c ---- */

/* A frame of this type has arrived. */
void run_take_message(struct run *run, enum channel_type type);
/* A frame DISPLAY has arrived whole. */
void run_display(struct run *run);
/* Whether a helper thread works on a display: the context is not read meanwhile. */
bool run_has_display(const struct run *run);
/* The run ends before that work. */
void run_drop_display(struct run *run);

/* ---- queue.c: each owner's runs in order, and the owners in turn ---- */

/* Count a run as waiting while it is examined. */
void queue_examine(struct run *run);
void queue_examined(struct run *run);
void queue_add(struct run *run, bool front);
/* Take the next run that may start; it counts as running until queue_left().  NULL: none. */
struct run *queue_take(struct engine *engine);
bool queue_is_ready(const struct engine *engine);
/* Count a run as running, beside running_max, that was never queued. */
void queue_pass(struct run *run);
void queue_left(struct run *run);
/* Harmless for a run that is not queued. */
void queue_remove(struct run *run);
/* Runs may start now that could not before: serve the queue soon. */
void queue_changed(struct engine *engine);
/* The interpreter of a run is starting (counted while it does), and has started or is gone. */
void queue_starts_cold(struct run *run);
void queue_started(struct run *run);
/* Maximum of running runs, by the settings and the descriptors of this process. */
size_t queue_running_max(const struct engine *engine);

/* ---- owner.c ---- */

/* The owner with this key, made if there is none; owner_release() gives the reference back. */
struct owner *owner_hold(struct engine *engine, const char *key);
void owner_release(struct engine *engine, struct owner *owner);
/* Running work of all kinds. */
size_t owner_running(const struct owner *owner);
/* running_max 0: no limit. */
bool owner_has_room(const struct owner *owner, size_t running_max);
/* An execution or a program in a sandbox begins, or is over; queue_changed() follows the end. */
void owner_begin_other(struct owner *owner);
void owner_end_other(struct owner *owner);
/* Whether a program without a queue may begin now.  Errors: CSN_E_BUSY, with *ret_room. */
int owner_may_begin(const struct engine *engine, const char *key, const struct run_quota *quota,
        struct run_room *ret_room, struct csn_error *err);
/* CPU time of running work rose from *counted_us to cpu_us; *counted_us becomes cpu_us. */
void owner_use(struct owner *owner, uint64_t *counted_us, uint64_t cpu_us);
/* Tell the listener of CPU time that no record has. */
void owner_charge(const struct engine *engine, struct owner *owner, uint64_t cpu_ms);
/* The listener has been told of *counted_us, which becomes 0. */
void owner_settle(struct owner *owner, uint64_t *counted_us);
uint64_t owner_unsettled_us(const struct engine *engine, const char *key);
/* CPU time left of a quota, in microseconds; UINT64_MAX: no limit. */
uint64_t owner_left_us(const struct engine *engine, struct owner *owner, const struct run_quota *quota);

/* ---- quota.c: the CPU time of one run ---- */

/*
 * A program is about to begin: its CPU time is charged from now on, and the rest of the quota is its limit
 * (run->quota_left_ms).  Errors: CSN_E_BUSY (nothing is left).
 */
int run_quota_begin(struct run *run, struct csn_error *err);
/* Take note of the CPU time so far.  false: nothing is left of the quota. */
bool run_quota_note(struct run *run, uint64_t cpu_us);
/* The run is freed, and done() was not called: charge the listener with the CPU time that was seen. */
void run_quota_drop(struct run *run);
/* Limit of CPU time in ms by request and quota; 0: none. */
uint64_t run_quota_cpu_max_ms(const struct run *run);
/* Whether the quota ended a run that is over, and no limit of its own. */
bool run_quota_ended(const struct run *run);
/* Nothing is left of the quota: end the run; the record says so. */
void run_quota_end(struct run *run);

/* ---- counters.c ---- */

/* A run is over and has its record. */
void counters_add(struct run *run);
/* A review is over. */
void counters_add_review(struct engine *engine, const struct review *review);

/* ---- policy_check.c, source_check.c ---- */

/*
 * Compare the program with its policy.  checked() follows from the loop: run->refusal or run->blocked is set, or
 * neither.
 */
void run_check(struct run *run, void (*checked)(struct run *run));
/* Checks from now on use the policies as they are in the files now. */
void run_reload_policies(struct engine *engine);
/*
 * The checker for a check of a run or of a source; opened on first use.  A checker works on one program at a time, up
 * to CHECK_TIME_MS, so programs above CHECK_SHORT_MAX bytes have a checker of their own and hold up no short one.
 */
#define CHECK_SHORT_MAX (8 * KIB)
struct checker *engine_checker(struct engine *engine, const struct check *check);
/* The interpreter can read a program, and our parser cannot: say so in the result. */
void check_unreadable(struct check *check);

/* ---- record.c and its parts: fill run->result ---- */

/* In the loop, before run_record(): take what the record needs of the engine, the storage and the tools. */
void run_record_begin(struct run *run);
/* In the loop or in a helper thread. */
void run_record(struct run *run);
void run_record_files(struct run *run);
/* Of the record, when its status and timings are known. */
void run_record_stages(struct run *run);

/* ---- record_stages.c ---- */

void run_phase_begin(struct run *run, enum phase phase);

/* Describe a boundary.  no_proxy: the proxy of the sandbox is missing. */
void boundary_describe(const struct launch *launch, const struct wire_boundary *fact, bool no_proxy,
        struct arena *arena, struct boundary *ret);

#endif
