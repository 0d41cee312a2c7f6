/*
 * grading: verdicts that a program cannot forge.
 *
 * A submission is judged by what it does in sandboxes of its own, and by nobody who ever shared a process with it.  What is
 * expected never enters its sandbox: results come out in a form that has no code in it, and are compared elsewhere.
 *
 *   grading   a submission's way: phases, and retries of what the engine or a busy machine is to blame for
 *   attempt   one run of it
 *   cases     calls of its functions, in one sandbox, each in a process of its own
 *   streams   runs of it with standard input
 *   tests     test code in one sandbox, the submission in another, and messages between them
 *   judge     interpreters that run no submission, and compare values by the language's own equality
 *   compare   standard output with what it should be
 *   forms     requests as older systems and datasets have them
 *   report    verdicts into a result, and advice
 *
 * Like the engine it has one thread, and is called from engine_step().
 */
#ifndef GRADING_GRADING_H
#define GRADING_GRADING_H

#include "engine/engine.h"

struct grader;
struct grading;

struct grading_events {
        /* A run of it is about to begin, and is refused where this fails; may be NULL. */
        int (*begins)(void *owner, struct run *run, struct csn_error *err);
        /* A sandbox of it has ended; may be NULL. */
        void (*ran)(void *owner, struct run *run, const struct run_result *result);
        /* The result is the grading's and goes with grading_free(), which may be called from here. */
        void (*done)(void *owner, const struct grade_result *result);
};

/* Both stay the caller's, and have to live as long. */
struct grader *grader_open(struct engine *engine, const struct settings *settings);
/* Gradings that are not done end; their done() is not called any more. */
void grader_close(struct grader *grader);

/* One that is not started.  Fill in grading_request(), with memory from grading_arena(). */
struct grading *grading_new(struct grader *grader);
const char *grading_id(const struct grading *grading);
struct arena *grading_arena(struct grading *grading);
struct grade_request *grading_request(struct grading *grading);
/* For whom its runs are: as run_set_owner() and run_set_quota(). */
void grading_set_owner(struct grading *grading, const char *key, size_t running_max, size_t queued_max);

/* done() is called exactly once, from a later engine_step(), also for a request that is refused. */
void grading_start(struct grading *grading, bool local, const struct grading_events *events, void *owner);
/* As grading_start(), for a request that could not even be read. */
void grading_refuse(struct grading *grading, const struct csn_error *error, const struct grading_events *events, void *owner);
/* done() follows with status "cancelled", or what it was before.  Harmless twice. */
void grading_cancel(struct grading *grading);
void grading_free(struct grading *grading);

/* ---- requests (import.c) ---- */

/*
 * JSON into a request: ours, with the names that older systems gave to its fields, or a problem of HumanEval or MBPP as
 * these have it.  `json` is changed.  Errors: CSN_E_INPUT with a JSON pointer; ret->id is there all the same.
 */
int grading_decode(json_t *json, struct arena *arena, struct grade_request *ret, struct csn_error *err);

#endif
