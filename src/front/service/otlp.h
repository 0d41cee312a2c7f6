/*
 * otlp: spans to a collector, by OTLP over HTTP with JSON (https://opentelemetry.io/docs/specs/otlp/).
 *
 * A span that is over goes into a queue with a ceiling, and from there, many at a time, to the collector: by libcurl in
 * our loop, so nobody waits for it.  What a collector does not take after some attempts, and what there is no room for, is
 * dropped and counted.  Names are resolved by c-ares, because libcurl would start a thread for that.
 */
#ifndef FRONT_OTLP_H
#define FRONT_OTLP_H

#include <jansson.h>

#include "net/traceparent.h"
#include "model/settings.h"

#define OTLP_QUEUE_MAX 2048                /* spans, as OpenTelemetry's own libraries have it */
#define OTLP_BATCH_MAX 512                 /* of one request */
#define OTLP_TRIES_MAX 4
#define OTLP_DELAY_US 1000000ULL           /* until a span that is alone is sent; and after the first failure, then twice as long each */
#define OTLP_END_MS 2000                   /* at the daemon's end, for all that is left */

struct otlp;

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2 };

struct span {
        const struct trace *trace;
        const char *name;
        enum span_kind kind;
        uint64_t begun_us, ended_us;       /* clock_us() */
        json_t *attributes;                /* an object of plain values; or NULL */
        const char *error;                 /* what went wrong, or NULL */
};

struct otlp_counts {
        uint64_t sent, dropped;
        size_t queued;                     /* those under way included */
};

/* *ret is NULL where the settings name no collector.  Errors: CSN_E_CONFIG (a setting is wrong), CSN_E_SYSTEM. */
int otlp_open(struct loop *loop, const struct settings *settings, struct otlp **ret, struct csn_error *err);
/* Sends what is left, for OTLP_END_MS at the most. */
void otlp_close(struct otlp *otlp);
/* Takes the reference to the attributes.  Harmless where otlp is NULL. */
void otlp_add(struct otlp *otlp, const struct span *span);
struct otlp_counts otlp_counts(const struct otlp *otlp);

#endif
