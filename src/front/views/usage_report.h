/*
 * usage_report: the usage of models (store/usage.c) as text and as JSON, for the command line and HTTP.
 */
#ifndef FRONT_VIEWS_USAGE_REPORT_H
#define FRONT_VIEWS_USAGE_REPORT_H

#include "base/base.h"

#include <jansson.h>

struct store;

/* A question about usage. */
struct usage_question {
        const char *by;                    /* "component", "model" or "key" */
        const char *since;                 /* YYYY-MM-DD (UTC), or a time before now such as 30d; NULL: all */
        const char *tenant;                /* "": all */
};

/*
 * {since, by, total, usage}; the caller owns the reference.  Errors, NULL: CSN_E_INPUT with the field "by" or "since";
 * those of usage_sums().
 */
json_t *front_usage(struct store *store, const struct usage_question *question, struct csn_error *err);
/* The report as text, appended to buf: totals, then the sums.  Arguments and errors as front_usage(). */
int front_usage_text(struct store *store, const struct usage_question *question, struct buf *buf,
        struct csn_error *err);

#endif
