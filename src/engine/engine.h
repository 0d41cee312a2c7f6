/*
 * engine: the life of runs.
 *
 * A run begins as a request in its own arena, gets a sandbox from a backend, and ends as one record.  Its
 * output comes straight from the sandbox through pipes that the engine made; what the kernel says of it
 * comes from the supervisor; what the program says of itself comes over its private channel.
 *
 *   prepare   request -> arguments, environment, input files     (before)
 *   engine    pipes, channel, backend, the end                   (during)
 *   files     what it left behind                                (after)
 *   verdict   evidence -> status, message, hint
 *   record    everything -> struct run_result
 *   render    the record as text for people and models
 *   source check   a check of a program that is not run
 *   tool socket     what programs inside ask for while they go on
 *   queue     runs that wait, fair among owners
 *   metrics   what was done so far, for Prometheus
 *
 * One thread; nothing here blocks but reading input files.  All of it is called from engine_step().
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "backend/backend.h"
#include "engine/tool_io/tool_socket.h"
#include "lang/lang.h"
#include "model/settings.h"
#include "policy/policy.h"

struct engine;
struct run;

struct run_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len);   /* 1: stdout, 2: stderr; may be NULL */
        void (*display)(void *owner, json_t *bundle);   /* of a run in a context, MIME types to data; may be NULL */
        /* The record is the run's and goes with run_free(), which may be called from here. */
        void (*done)(void *owner, const struct run_result *result);
};

/* settings stay the caller's and have to live as long.  Errors: CSN_E_SYSTEM. */
int engine_open(const struct settings *settings, struct engine **ret, struct csn_error *err);

/* Runs that are not done are killed; their done() is not called any more. */
void engine_close(struct engine *engine);

/* The languages that the configuration adds. */
const struct language *engine_languages(struct engine *engine);

/*
 * Keep interpreters and sandboxes ready from now on: start zygotes and fill the pools as the settings say.  For
 * a program that lives long; without it each run makes its own.  One that grades has only what grading in
 * Python needs to begin with, and the rest when it is first asked for.
 */
/*
 * How many sandboxes there can be at once with so many descriptors, by a cautious count; and how many descriptors an engine needs to serve
 * runs at all.  Runs beyond wait.
 */
#define ENGINE_DESCRIPTORS_MIN 128
size_t engine_places(uint64_t descriptors);
/* How many of them its clients may have, so that sandboxes can be made whatever they do. */
size_t engine_client_descriptors(uint64_t descriptors);
/* How many runs go on now. */
size_t engine_running(const struct engine *engine);
void engine_warm(struct engine *engine, bool grades);

/* Whether a Python zygote serves: 1; 0: none does yet.  Errors: CSN_E_SYSTEM (it cannot be made, and Python programs start cold). */
int engine_zygote(const struct engine *engine, struct csn_error *err);

/* The settings or the policies have changed: what begins from now on is by the new ones. */
void engine_reload(struct engine *engine);

/* Its event loop, for watches of the caller's own (signals, sockets). */
struct loop *engine_loop(struct engine *engine);

/* Wait at most max_ms (-1: until something happens) and serve it. */
int engine_step(struct engine *engine, int max_ms, struct csn_error *err);

/* A run that is not started.  Fill in run_request(), with memory from run_arena(). */
struct run *run_new(struct engine *engine);
const char *run_id(const struct run *run);
const char *run_state_name(const struct run *run);   /* "new", "checking", "waiting", "running", "over" */
/* Of one in a context: as how many-th of its interpreter it was begun, from 1 on; 0: it was not. */
uint64_t run_number(const struct run *run);
/* Of one in a context: read nothing of what it prints for now, so that it waits; or go on.  Harmless when it is over. */
void run_hold(struct run *run, bool on);
struct arena *run_arena(struct run *run);
struct run_request *run_request(struct run *run);
/* For whom it runs, as status shows it: "uid:1000".  At most 79 bytes of it are kept. */
void run_set_owner(struct run *run, const char *key);
/* How many its owner may have running and waiting; 0: no limit.  What is said last holds for all. */
void run_set_quota(struct run *run, size_t running_max, size_t queued_max);

/* The limit of waiting runs that a run would exceed. */
struct run_room {
        const char *name;              /* "queue_max": the engine's; "queued_max": its owner's */
        size_t limit, queued, running; /* of all, or of its owner */
};
/*
 * Whether it may start now, as run_start() finds out for itself: then the answer is its record.  Errors: CSN_E_BUSY, with
 * *ret_room.
 */
int run_has_room(const struct run *run, struct run_room *ret_room, struct csn_error *err);

/*
 * Whether the request of a run that is not started has what each needs: code; and a language, or a context, a profile or a file name
 * that tells it.  For an interface that refuses a body without them.  Errors: CSN_E_INPUT naming the field.
 */
int run_check_needed(struct run *run, struct csn_error *err);

/* The stages that a run went through, in order, by clock_us(); when it is over. */
#define RUN_STAGES_MAX 5
struct run_stage {
        const char *name;              /* "check", "queue", "prepare", "run", "collect" */
        uint64_t begun_us, ended_us;
};
size_t run_stages(const struct run *run, struct run_stage stages[static RUN_STAGES_MAX]);
uint64_t run_created_us(const struct run *run);

/*
 * Start it.  done() is called exactly once, from a later engine_step(), also for a request that is refused:
 * then the record says why.  `local` allows paths of this host in the request.
 */
void run_start(struct run *run, bool local, const struct run_events *events, void *owner);

/* As run_start(), for a request that could not even be read: the record has this error. */
void run_refuse(struct run *run, const struct csn_error *error, const struct run_events *events, void *owner);

/* End it now; done() follows with status "cancelled", or what it was before.  Harmless twice. */
void run_cancel(struct run *run);

void run_free(struct run *run);

/* ---- runs that are talked with (messages.c) ---- */

/*
 * The runner has a role in grading then, which the first message names (docs/protocols/grading-roles.md).  What it says is as
 * hostile as any output.
 */
struct run_message_handler {
        void (*hello_received)(void *owner);  /* it is there, and waits to be told; may be NULL */
        /* The run may be cancelled from here, and not freed. */
        void (*said)(void *owner, const char *message, size_t len);
        void (*protocol_error)(void *owner);    /* what came is no runner's; nothing more is heard of it, and it is killed; may be NULL */
};

/* Before run_start().  The owner has to live as long as the run. */
void run_set_message_handler(struct run *run, const struct run_message_handler *message_handler, void *owner);
/*
 * Before run_start(): it starts at once, whatever waits, because a run that goes on already would wait for it.
 */
void run_set_skips_queue(struct run *run);
/*
 * Before run_start(): its wall-clock limit is a judge's, and means the program's own time.  Time in which it was ready to run and
 * other programs had the CPU does not count, as far as nine times the limit; and no more of such runs go on at once than
 * engine.judged_max says, which by itself is as many as the processors can serve.
 */
void run_set_judged(struct run *run);
/*
 * 0; or -EMSGSIZE: more than CHANNEL_TALK_MAX bytes; -EAGAIN: it does not listen yet, or has not read what it was told before;
 * -EPIPE: it has ended, and its end will be told.
 */
int run_send_message(struct run *run, const char *message, size_t len);

/* ---- files that outlive a run ---- */

/*
 * Whoever keeps files does so for the engine, which knows neither ids nor folders of his.  Descriptors that he gives are for
 * reading where nothing else is said.
 */
struct run_storage {
        /*
         * A kept file that the request names; *ret_name is what it is called, from the arena.  Errors: CSN_E_INPUT, the
         * same whether there is none or it is another's.
         */
        int (*open)(void *owner, const char *id, struct arena *arena, char **ret_name, int *ret_fd, struct csn_error *err);
        /* Keep what a run made: all that can be read from fd.  *ret_url is where it is then. */
        int (*keep)(void *owner, const char *run_id, const char *user, const char *name, const char *mime, int fd, struct arena *arena, char **ret_url,
                    struct csn_error *err);
        /*
         * The folder of a workspace, for this run alone until leave(), and a folder of the same file system for files that
         * are not whole.  Both stay the storage's.  Errors: CSN_E_BUSY, another run works in it.
         */
        int (*enter)(void *owner, const char *user, const char *name, int *ret_dir, int *ret_temp, struct csn_error *err);
        /* Bytes by which it may grow; each file in it takes *ret_each besides its own. */
        uint64_t (*room)(void *owner, uint64_t *ret_each);
        void (*leave)(void *owner);
};

/* The error of a file that was to be kept by its very name, and is an input that is still what it was. */
/* The warning that files were asked for, in a folder of this host, and are not there. */
#define RUN_EXPORT_FAILED "export_failed"

#define RUN_FILE_UNCHANGED "it is as the run got it"

/* Before run_start().  The owner has to live as long as the run. */
void run_set_storage(struct run *run, const struct run_storage *storage, void *owner);

/* ---- tools that code calls outside (tool_session.c) ---- */

/* For whom they are.  Everything lives as long as its broker. */
struct tools_for {
        const struct tools_request *request;   /* whole */
        const char *id, *owner;                /* of the run or the persistent sandbox; whose it is, or "" */
        struct run *run;                       /* NULL: it is a sandbox */
};

/* Whoever knows tools does so for the engine, which moves the bytes of calls. */
struct engine_tools {
        struct tool_socket_events tool_socket;             /* their owner is the broker; tool_socket_close() may not be called from them */
        /* A broker.  Errors: CSN_E_INPUT with the field of the request. */
        int (*open)(void *owner, const struct tools_for *whom, void **ret_broker, struct csn_error *err);
        /* Nobody inside asks any more, and all calls that are open are forgotten. */
        void (*stop)(void *broker);
        /* What was called, from the arena; and warnings for the record of its run. */
        void (*report)(void *broker, struct arena *arena, struct tools_used *ret);
        void (*close)(void *broker);
        /* The engine ends.  There are no brokers any more, and still a loop. */
        void (*end)(void *owner);
};

/*
 * Who is told what CPU time the persistent sandboxes of an owner used, beside that of executions in their contexts, which is in those' records:
 * soon after a program in one has ended, each minute, and at its end.  Before any sandbox; once.
 */
void engine_set_usage_listener(struct engine *engine, void (*used)(void *owner, const char *whose, uint64_t cpu_ms), void *owner);

/* Before any run; once. */
void engine_set_tools(struct engine *engine, const struct engine_tools *tools, void *owner);
/* That of a run, from run_start() on; NULL: it has no tools. */
void *run_broker(const struct run *run);

/*
 * Before run_start(): whoever started it reads its events, so it can serve tools itself and say yes.  `told` gets such events;
 * it takes the reference.  The answers go to the broker.
 */
struct run_listener {
        void (*told)(void *owner, json_t *event);
};
void run_set_listener(struct run *run, const struct run_listener *listener, void *owner);
bool run_has_listener(const struct run *run);
void run_tell(struct run *run, json_t *event);

/* Something for its record that the caller should know, before that is made; `code` is a stable name. */
void run_warn(struct run *run, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- a check without a run (source_check.c) ---- */

/* Embedded in its owner; all zeros is none. */
struct source_check {
        struct check check;            /* fill in check.request; check.result is there when done() is called */
        void (*done)(struct source_check *source_check);
        void *owner;
        const char *run_owner;         /* as for run_set_owner(), or NULL */
        struct engine *engine;
        struct run *run;               /* the interpreter is being asked */
};

/* The language of its request by its own name.  Errors: CSN_E_INPUT, CSN_E_LANGUAGE (none, or none of that name). */
int source_check_find_language(struct engine *engine, struct source_check *source_check, struct csn_error *err);

/*
 * done() is called once, from a later engine_step().  The program is not run.  Of Python that does not parse the
 * interpreter says why, in a sandbox in which it compiles only; where none can be had the words are our parser's.
 */
void source_check_start(struct engine *engine, struct source_check *source_check);
/* Starts it and waits for its end.  Errors: what engine_step() says. */
int source_check_wait(struct engine *engine, struct source_check *source_check, struct csn_error *err);
/* It ends soon, and done() is called. */
void source_check_cancel(struct source_check *source_check);
/* Ends it if it goes on, and lets go of the result.  Harmless twice. */
void source_check_done(struct source_check *source_check);

/* ---- what it does now (status.c) ---- */

/*
 * {"runs":[{id, state, language, profile, owner, age_ms, …}], "queue":{waiting, running, max}, "pools":[{key,
 * ready, min, max, memory_bytes, hits, misses}]}.  A max of 0 is none.  The caller's reference.
 */
json_t *engine_status(struct engine *engine);

/* Counters and gauges in Prometheus' text form (metrics.c). */
void engine_metrics(struct engine *engine, struct buf *buf);

/* ---- the record as text (render.c) ---- */

/*
 * "plain", "brief", "linx" or "codemie": the forms that models were trained to read.  Errors: CSN_E_INPUT
 * for another name.
 */
int render_text(const char *format, const struct run_result *result, struct buf *buf, struct csn_error *err);
/* All formats, separated by commas. */
extern const char render_formats[];

/* ---- work folders that were made for a missing one ---- */

/* Remove those older than the retention; returns how many went. */
size_t work_collect_garbage(const struct settings *settings);

#endif
