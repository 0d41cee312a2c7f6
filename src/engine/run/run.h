/*
 * run: one execution of a program, from its request to its record.
 *
 *   new -> examining (long inputs) -> checking (source policy) -> queued -> running -> recording (large results)
 *       -> over
 *
 * A run begins as a request in its own arena, gets an instance, and ends as one record.  Output comes from the sandbox
 * through pipes; what the kernel measured comes from the supervisor; what the program says of itself comes over its
 * private channel.
 *
 *   run            life: start, cancel, end; and the accessors
 *   run_io         pipes and private channel
 *   examine        the inputs; helper threads for long ones
 *   queue          waiting runs, in turn among owners
 *   owner, quota   owners, their running work and CPU time; quotas of a run
 *   policy_check   the source policy of a run
 *   layers         layers of packages for a run
 *   review         the verdict of a reviewer on a run
 *   run_end        the end: the record and done(); helper threads for large results
 *   record         the result, with record_files and record_boundary
 *   counters       sums over all runs, for metrics
 *   watcher        begins and ends, told to one watcher
 *
 * All callbacks but encode() come from engine_step().  Nothing blocks.
 */
#ifndef ENGINE_RUN_RUN_H
#define ENGINE_RUN_RUN_H

#include "engine/launch/launch.h"
#include "engine/tool_io/tool_session.h"

struct engine;
struct run;

/* Makes a text of a display, from malloc(3); NULL: the display has none.  Any thread may call an encoder. */
typedef char *display_encoder(const json_t *bundle);

struct run_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len); /* 1: stdout, 2: stderr; may be NULL */
        /* The encoder of displays, which are bundles from MIME types to data; NULL: display() is not called. */
        display_encoder *(*display_encoder)(void *owner);
        void (*display)(void *owner, const char *text, size_t len); /* of a run in a context */
        /*
         * Make a text of the record, before done(); may be NULL.  A helper thread calls encode() for a large record, so
         * encode() uses only the record and memory of the owner that nothing else uses meanwhile.
         */
        void (*encode)(void *owner, const struct run_result *result);
        /* The run is over.  The record is the run's; run_free() may be called from here. */
        void (*done)(void *owner, const struct run_result *result);
};

/* Make a run.  Fill in run_request(), with memory from run_arena(), and call run_start(). */
struct run *run_new(struct engine *engine);
/* Free a run; one that is not over is killed, and done() is not called.  NULL is harmless. */
void run_free(struct run *run);

/*
 * No callback and no helper thread uses the owner from here on; run_free() follows.  For an owner that frees its memory
 * before the run: waits for the helper thread of a run that is examined or recorded.  NULL is harmless.
 */
void run_detach(struct run *run);

/* ---- before run_start() ---- */

/* The owner as status shows it: "uid:1000".  At most 79 bytes are kept. */
void run_set_owner(struct run *run, const char *key);
/*
 * The quotas of an owner's key; 0: no limit.  running_max and queued_max are numbers of programs: runs, executions in
 * contexts and programs in persistent sandboxes; those of the last run hold for all runs of the owner.  cpu_ms_per_day
 * is CPU time in ms: a run gets at most the rest of the quota, and running programs are ended at the end of the quota.
 */
struct run_quota {
        size_t running_max, queued_max;
        uint64_t cpu_ms_per_day;
        uint64_t review_budget_nanousd;    /* cost of reviews of the key */
        char key[17];                      /* id of the key; "": none */
};
#define QUOTA_CPU "cpu_ms_per_day"     /* name of this quota in answers and records */

void run_set_quota(struct run *run, const struct run_quota *quota);

/* Charge the CPU time at the end to the owner, by usage_listener.charge(): nothing makes a record of the run. */
void run_set_charged(struct run *run);
/* The run installs packages, and its request may name an internal profile. */
void run_set_builds(struct run *run);
/* No reviewer looks at the program: the program is ours, or the caller has had it reviewed. */
void run_set_unreviewed(struct run *run);
/* The policy does not look at the prelude: the prelude is a text of ours. */
void run_set_own_prelude(struct run *run);

/* The keeper of the CPU time of owners; see engine_set_usage_listener(). */
struct usage_listener {
        /* CPU time without a record: of programs in persistent sandboxes, and of runs without an end. */
        void (*charge)(void *owner, const char *owner_key, uint64_t cpu_ms);
        /* The CPU time of the last 24 hours, of all records and charges.  False: unknown. */
        bool (*used)(void *owner, const char *owner_key, uint64_t *ret_cpu_ms);
};

/* Give the run an id of id_new_compact(). */
void run_make_compact_id(struct run *run);
/*
 * The statements of a Python program are the body of a coroutine where the program has `await` or `return` outside of
 * functions.  Other languages are not affected.
 */
void run_set_awaits(struct run *run);

/* Start at once, past the queue: another run that is running waits for this one. */
void run_set_skips_queue(struct run *run);
/*
 * The wall-clock limit is a judge's, and means the program's own time.  Time in which the program was ready to run and
 * other programs had the CPU does not count, up to nine times the limit; and no more judged runs are running at once
 * than engine.judged_max, by default as many as the processors can serve.
 */
void run_set_judged(struct run *run);
/*
 * Serve the network of the sandbox in place of the engine's proxy: 127.0.0.1:WIRE_PROXY_PORT inside is the only address
 * that the program reaches.  serve() gets the listening socket, which becomes the callee's.  The owner has to outlive
 * the run.
 */
struct run_network {
        void (*serve)(void *owner, int listen_fd);
};
void run_set_network(struct run *run, const struct run_network *network, void *owner);
/* The owner has to outlive the run. */
void run_set_storage(struct run *run, const struct run_storage *storage, void *owner);

/*
 * Whether a request has the members that every run needs: code; and a language, or a context, profile or file name that
 * implies the language.  For a front that refuses a body without them.  Errors: CSN_E_INPUT with the field.
 */
int run_check_needed(struct run *run, struct csn_error *err);

/* The limit of queued runs that a run would exceed. */
struct run_room {
        /* "queue_max": the engine's; "queued_max", "running_max": the owner's */
        const char *name;
        size_t limit, queued, running; /* of all runs, or of the owner's */
};
/*
 * Whether a run may start now; run_start() asks the same, and then the record has the error.  Errors: CSN_E_BUSY, with
 * *ret_room.
 */
int run_has_room(const struct run *run, struct run_room *ret_room, struct csn_error *err);

/* ---- start and end ---- */

/*
 * Start a run.  done() is called exactly once, from a later engine_step(), also for a request that is refused: then the
 * record says why.  `local` allows paths of this host in the request.
 */
void run_start(struct run *run, bool local, const struct run_events *events, void *owner);
/* End a run with this error, for a request that could not even be read.  done() follows as for run_start(). */
void run_refuse(struct run *run, const struct csn_error *error, const struct run_events *events, void *owner);
/*
 * End a run now; done() follows with status "cancelled", or with the status that the run had before.  Harmless twice,
 * and while the record is made.
 */
void run_cancel(struct run *run);

/* ---- accessors ---- */

const char *run_id(const struct run *run);
const char *run_state_name(const struct run *run);   /* "new", "checking", "waiting", "running", "over" */
struct arena *run_arena(struct run *run);
struct run_request *run_request(struct run *run);
uint64_t run_created_us(const struct run *run);      /* clock_us() */
/* Add a warning to the record; `code` is a stable name. */
void run_warn(struct run *run, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The stages of a run that is over, in order, by clock_us(). */
#define RUN_STAGES_MAX 5
struct run_stage {
        const char *name;              /* "check", "queue", "prepare", "run", "collect" */
        uint64_t begun_us, ended_us;
};
size_t run_stages(const struct run *run, struct run_stage stages[static RUN_STAGES_MAX]);

/* Of a run in a context: its position among the executions of the interpreter, from 1 on; 0: it has not begun. */
uint64_t run_number(const struct run *run);
/*
 * Of a run in a context: stop reading output, so that the program waits; or continue.  Harmless when the run is over.
 */
void run_hold(struct run *run, bool on);

/* warning: a file that was to be in a folder of this host is not there */
#define RUN_EXPORT_FAILED "export_failed"
#define RUN_OUTPUT_TRUNCATED "output_truncated"      /* warning: the record has head and tail of a stream */
#define RUN_VALUE_TRUNCATED "return_value_truncated" /* warning: the record has the beginning of the value */
#define RUN_FILE_UNCHANGED "it is as the run got it" /* error of an exported input that still has its content */

/* ---- messages between engine and runner (messages.c) ---- */

/*
 * The runner has a role in grading, which the first message names (docs/protocols/grading-roles.md).  Its messages are
 * as hostile as any output.
 */
struct run_message_handler {
        void (*hello_received)(void *owner);  /* the runner waits for a message; may be NULL */
        /* The run may be cancelled from here, and not freed.  The callee may take the bytes, and leaves zeros then. */
        void (*said)(void *owner, struct buf *message);
        void (*protocol_error)(void *owner);  /* the bytes are no message: the run is killed; may be NULL */
};

/* Before run_start().  The owner has to outlive the run. */
void run_set_message_handler(struct run *run, const struct run_message_handler *message_handler, void *owner);
/*
 * 0; -EMSGSIZE: more than CHANNEL_MESSAGE_MAX bytes; -EAGAIN: the runner is not ready, or has not read earlier
 * messages; -EPIPE: the runner has ended, and done() follows.
 */
int run_send_message(struct run *run, const char *message, size_t len);
/* The same for frames of channel_frames(); takes the frames in each case. */
int run_send_frames(struct run *run, struct send_queue_packet *frames);
/*
 * Stop reading messages, so that the runner waits; or continue.  Messages before the end of the run are still
 * delivered.  Harmless when the run is over.
 */
void run_hold_messages(struct run *run, bool on);

/* ---- tools ---- */

/* The broker of a run, from run_start() on; NULL: no tools. */
void *run_broker(const struct run *run);

/*
 * The client that started a run reads its events, and can serve tools and give consent.  The answers go to the broker.
 */
struct run_listener {
        void (*told)(void *owner, json_t *event);     /* takes the reference */
};
/* Before run_start(). */
void run_set_listener(struct run *run, const struct run_listener *listener, void *owner);
bool run_has_listener(const struct run *run);
/* Takes the reference. */
void run_tell(struct run *run, json_t *event);

#endif
