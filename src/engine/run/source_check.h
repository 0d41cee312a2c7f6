/*
 * source_check: a policy check of a program that is not run.
 *
 * Of Python that does not parse the interpreter says why, in a sandbox in which it compiles only; without a sandbox the
 * words are our parser's.
 */
#ifndef ENGINE_RUN_SOURCE_CHECK_H
#define ENGINE_RUN_SOURCE_CHECK_H

#include "policy/policy.h"

struct engine;
struct run;

/* Embedded in the owner's object; all zeros: none. */
struct source_check {
        struct check check;            /* fill in check.request; check.result is there when done() is called */
        void (*done)(struct source_check *source_check);
        void *owner;
        const char *run_owner;         /* as for run_set_owner(), or NULL */
        struct engine *engine;
        struct run *run;               /* while the interpreter is asked */
};

/*
 * Replace the language of the request by its canonical name, and take from its profile what a run of the program would
 * be compared with: the policy, unless that is off, and the lists of modules.  Errors: CSN_E_INPUT (no language),
 * CSN_E_LANGUAGE (unknown), those of profile_find() and profile_overlay().
 */
int source_check_prepare(struct engine *engine, struct source_check *source_check, struct csn_error *err);

/* done() is called once, from a later engine_step(). */
void source_check_start(struct engine *engine, struct source_check *source_check);
/* Start a check and wait for its end.  Errors: those of engine_step(). */
int source_check_wait(struct engine *engine, struct source_check *source_check, struct csn_error *err);
/* In done(): whether the policy denies the program.  *ret_checked: the check did not fail. */
bool source_check_is_denied(const struct source_check *source_check, bool *ret_checked);
/* End a check soon; done() follows. */
void source_check_cancel(struct source_check *source_check);
/* End a check if it goes on, and free the result.  Harmless twice. */
void source_check_done(struct source_check *source_check);

#endif
