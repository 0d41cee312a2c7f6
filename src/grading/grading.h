/*
 * grading: verdicts on submissions that a submission cannot forge.
 *
 * A submission runs in sandboxes of its own, and its verdict comes from processes that never ran submitted code.
 * Expected values never enter the submission's sandbox: results leave the sandbox in a form without code and are
 * compared elsewhere.
 *
 *   grading         the phases of a grading, and retries after failures of the engine or of a busy machine
 *   attempt         one run of a submission
 *   function_cases  calls of the submission's functions: one sandbox, a process for each call
 *   program_cases   standard input cases of Python: one sandbox, a process for each case
 *   stdio_cases     other runs of the submission with standard input
 *   test_code       test code in one sandbox, the submission in another, and messages between them
 *   judge           interpreters that run no submission, and compare values by the language's own equality
 *   compare_output  comparison of standard output with the expected output
 *   checker         programs of the caller that decide about an output
 *   import          request formats of older systems and datasets
 *   formats/        records of data sets that trainers have, one file a family
 *   prelude         imports that are executed before a submission
 *   reference       expected values that a program of the caller gives
 *   report          from verdicts to a result, with advice
 *
 * Like the engine, grading has one thread and runs inside engine_step().  A helper thread makes the result of a long
 * grading, see docs/design/loop-steps.md.
 */
#ifndef GRADING_GRADING_H
#define GRADING_GRADING_H

#include "engine/engine.h"

struct grader;
struct grading;

struct grading_events {
        /* A run of the grading is about to begin; any error refuses the run with *err.  May be NULL. */
        int (*begins)(void *owner, struct run *run, struct csn_error *err);
        /* A sandbox of the grading has ended; may be NULL. */
        void (*ran)(void *owner, struct run *run, const struct run_result *result);
        /*
         * The grading has ended; done() follows.  Called in a helper thread if the result is long: the function uses
         * memory that nothing else uses before done() or grading_free().  May be NULL.
         */
        void (*encode)(void *owner, const struct grade_result *result);
        /*
         * The grading has ended.  The result belongs to the grading until grading_free(), which may be called from
         * here.
         */
        void (*done)(void *owner, const struct grade_result *result);
};

/* Create a grader.  engine and settings stay the caller's and must outlive the grader. */
struct grader *grader_open(struct engine *engine, const struct settings *settings);
/* End all gradings without done(), and free the grader. */
void grader_close(struct grader *grader);

/*
 * Allocate a grading.  The caller fills grading_request(), with memory from grading_arena(), then starts the grading.
 */
struct grading *grading_new(struct grader *grader);
struct arena *grading_arena(struct grading *grading);
struct grade_request *grading_request(struct grading *grading);
/* Owner and queue limits of the runs: see run_set_owner() and run_set_quota(). */
void grading_set_owner(struct grading *grading, const char *key, const struct run_quota *quota);

/* Start a grading.  done() is called exactly once, from a later engine_step(), also for a refused request. */
void grading_start(struct grading *grading, bool local, const struct grading_events *events, void *owner);
/* The same for a request that could not be decoded: the grading ends with this error. */
void grading_refuse(struct grading *grading, const struct csn_error *error, const struct grading_events *events,
        void *owner);
/* Cancel a grading.  done() follows with status "cancelled", or with an earlier status.  Harmless twice. */
void grading_cancel(struct grading *grading);
/* Free a grading; a running grading ends without done(). */
void grading_free(struct grading *grading);

/* ---- requests (import.c) ---- */

/*
 * Decode a request: Caisson's own, with the field names of older systems, or a problem in the format of HumanEval or
 * MBPP, or with the member `format` a record of that data set (formats/).  `json` is modified.  Errors: CSN_E_INPUT,
 * CSN_E_FORMAT or CSN_E_RECORD with a JSON pointer; ret->id is set even then.
 */
int grading_decode(json_t *json, struct arena *arena, struct grade_request *ret, struct csn_error *err);
/* Bound compressed tests of records by settings->grading.record_bytes.  Call before the first grading_decode(). */
void grading_bound_records(const struct settings *settings);

#endif
