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
 *   inquiry   a check of a program that is not run
 *   queue     runs that wait, fair among owners
 *   metrics   what was done so far, for Prometheus
 *
 * One thread; nothing here blocks but reading input files.  All of it is called from engine_step().
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "backend/backend.h"
#include "lang/lang.h"
#include "model/settings.h"
#include "policy/policy.h"

struct engine;
struct run;

struct run_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len);   /* 1: stdout, 2: stderr; may be NULL */
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
 * a program that lives long; without it each run makes its own.
 */
void engine_warm(struct engine *engine);

/* Its event loop, for watches of the caller's own (signals, sockets). */
struct loop *engine_loop(struct engine *engine);

/* Wait at most max_ms (-1: until something happens) and serve it. */
int engine_step(struct engine *engine, int max_ms, struct csn_error *err);

/* A run that is not started.  Fill in run_request(), with memory from run_arena(). */
struct run *run_new(struct engine *engine);
const char *run_id(const struct run *run);
const char *run_state_name(const struct run *run);   /* "new", "checking", "waiting", "running", "over" */
struct arena *run_arena(struct run *run);
struct run_request *run_request(struct run *run);
/* For whom it runs, as status shows it: "uid:1000".  At most 79 bytes of it are kept. */
void run_set_owner(struct run *run, const char *key);
/* How many its owner may have running and waiting; 0: no limit.  What is said last holds for all. */
void run_set_quota(struct run *run, size_t running_max, size_t queued_max);

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

/* ---- a check without a run (inquiry.c) ---- */

/* Embedded in its owner; all zeros is none. */
struct inquiry {
        struct check check;            /* fill in check.request; check.result is there when done() is called */
        void (*done)(struct inquiry *inquiry);
        void *owner;
        const char *run_owner;         /* as for run_set_owner(), or NULL */
        struct engine *engine;
        struct run *run;               /* the interpreter is being asked */
};

/* The language of its request by its own name.  Errors: CSN_E_INPUT, CSN_E_LANGUAGE (none, or none of that name). */
int inquiry_find_language(struct engine *engine, struct inquiry *inquiry, struct csn_error *err);

/*
 * done() is called once, from a later engine_step().  The program is not run.  Of Python that does not parse the
 * interpreter says why, in a sandbox in which it compiles only; where none can be had the words are our parser's.
 */
void inquiry_start(struct engine *engine, struct inquiry *inquiry);
/* Starts it and waits for its end.  Errors: what engine_step() says. */
int inquiry_wait(struct engine *engine, struct inquiry *inquiry, struct csn_error *err);
/* It ends soon, and done() is called. */
void inquiry_cancel(struct inquiry *inquiry);
/* Ends it if it goes on, and lets go of the result.  Harmless twice. */
void inquiry_done(struct inquiry *inquiry);

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
