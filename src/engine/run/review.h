/*
 * review: how runs and gradings get the verdict of a reviewer, a model that reads programs before their start.
 *
 * A review source is made by src/review; the engine knows only the functions below.  A run asks after its source policy
 * and waits in the state RUN_CHECKING.  A reviewer can refuse a program; the refusals of policy and sandbox stand in
 * any case (docs/design/review.md).
 */
#ifndef ENGINE_RUN_REVIEW_H
#define ENGINE_RUN_REVIEW_H

#include "model/settings.h"

/* Codes of warnings; the last two are codes of errors as well. */
#define REVIEW_INSECURE "review_insecure"
#define REVIEW_UNAVAILABLE "review_unavailable"
#define REVIEW_BUDGET_EXHAUSTED "review_budget_exhausted"

struct engine;
struct run_quota;

/* A question to the source, embedded in the object that asks. */
struct review_query {
        /* Set by the asker; all texts are the asker's until the answer, or until forget(). */
        int mode;              /* review_mode_ADVISORY or review_mode_REQUIRED */
        const char *id;        /* of the run or grading; in lines of the log the trace */
        const char *owner_key; /* or "" */
        const struct run_quota *quota; /* of the owner's key; or NULL */
        const char *language;  /* "python", "javascript", "typescript", "bash", or one of the configuration */
        const char *profile;   /* or NULL */
        struct bytes code;
        char *const *tools;    /* names of the program's tools */
        size_t tools_n;
        const struct finding *findings; /* of the source policy */
        size_t findings_n;
        bool checked;              /* a source policy looked at the program */
        const struct pair *env;    /* environment of the program: its values are not sent */
        size_t env_n;
        struct arena *arena;       /* for the texts of the answer */
        /* Called from the event loop, and not from ask(). */
        void (*done)(struct review_query *query);
        void *owner;
        /* The answer. */
        bool answered;
        struct review review;
        const char *problem;       /* verdict unavailable: the code for the record, such as REVIEW_UNAVAILABLE */
        bool retryable;            /* with a problem: the same request may succeed later */
        /* The source's. */
        void *work;
};

struct review_source {
        /* Answer a query.  true: query->review is set.  false: done() follows, unless forget() is called. */
        bool (*ask)(void *owner, struct review_query *query);
        /* End a query without an answer.  query->review.usage becomes the usage up to now. */
        void (*forget)(void *owner, struct review_query *query);
        /* The engine ends: queries are not answered any more, and forget() is not called.  The loop still exists. */
        void (*end)(void *owner);
};

/* The keeper of what reviews use. */
struct review_accounts {
        /* Whether nothing is left of the budget of the quota's key for reviews. */
        bool (*spent)(void *owner, const struct run_quota *quota);
        /* A review that has sent something is over or was given up; review->usage is set.  quota may be NULL. */
        void (*used)(void *owner, const char *owner_key, const struct run_quota *quota, const struct review *review);
};

/* The stricter one of the setting review.mode and the mode of a request. */
int review_mode_of(const struct settings *settings, int asked);
/* Set the answer of a query without a verdict.  The text, in English, is copied. */
void review_fail(struct review_query *query, const char *problem, bool retryable, const char *fmt, ...)
        PRINTF_LIKE(4, 5);
/* Set the answer of a query which the settings exempt. */
void review_skip(struct review_query *query);
/* Whether the answer refuses the program: then *ret is the error of the record, with texts from the arena. */
bool review_refuses(const struct review_query *query, struct failure *ret);
/* The warning of an answer without a refusal, with its code; NULL: none.  From the arena. */
const char *review_warning(const struct review_query *query, const char **ret_code);

/* Log and count an answer: the first act of done(). */
void review_settle(struct engine *engine, const struct review_query *query);
/* Ask the review source of an engine, as ask() of struct review_source; the answer true is settled. */
bool review_ask(struct engine *engine, struct review_query *query);
/* Stop waiting.  Harmless for an answered query, and for a query of zeros. */
void review_forget(struct engine *engine, struct review_query *query);

#endif
