/*
 * otlp: sends spans to a collector, by OTLP over HTTP with JSON (https://opentelemetry.io/docs/specs/otlp/).
 *
 * A finished span enters a bounded queue, and is sent with others in one request, by libcurl in the daemon's loop: no
 * request waits for the collector.  Spans that the collector refuses after some attempts, or that do not fit in the
 * queue, are dropped and counted.  Names are resolved by c-ares, because libcurl would start a thread.
 */
#ifndef FRONT_SERVICE_OTLP_H
#define FRONT_SERVICE_OTLP_H

#include <jansson.h>

#include "net/traceparent.h"
#include "model/settings.h"

#define OTLP_QUEUE_MAX 2048                /* spans, as in OpenTelemetry's own libraries */
#define OTLP_BATCH_MAX 512                 /* spans in one request */
#define OTLP_TRIES_MAX 4
/* wait before a single span is sent; and after the first failure, then doubled each time */
#define OTLP_DELAY_US 1000000ULL
#define OTLP_END_MS 2000                   /* limit at the daemon's end, for all remaining spans */

struct otlp;

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2 };

/* A finished span.  otlp_add() copies the texts. */
struct span {
        const struct trace *trace;
        const char *name;
        enum span_kind kind;
        uint64_t begun_us, ended_us;       /* by clock_us() */
        json_t *attributes;                /* an object of plain values; or NULL */
        const char *error;                 /* description of the failure, or NULL */
};

struct otlp_counts {
        uint64_t sent, dropped;
        size_t queued;                     /* including spans being sent */
};

/*
 * Connect to the settings' collector; *ret is NULL without one.  The caller ends with otlp_close().  Errors:
 * CSN_E_CONFIG (a setting is wrong), CSN_E_SYSTEM.
 */
int otlp_open(struct loop *loop, const struct settings *settings, struct otlp **ret, struct csn_error *err);
/* Send the remaining spans, for at most OTLP_END_MS, and free.  NULL is fine. */
void otlp_close(struct otlp *otlp);
/* Queue a span.  The reference to the attributes becomes the callee's.  With otlp NULL the span is dropped. */
void otlp_add(struct otlp *otlp, const struct span *span);
struct otlp_counts otlp_counts(const struct otlp *otlp);

#endif
