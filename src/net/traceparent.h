/*
 * trace: W3C Trace Context (https://www.w3.org/TR/trace-context/), the header `traceparent`.
 *
 * A request belongs to the trace that its client names, or else to a new trace; the work for a request is a span of the
 * trace.  An invalid header counts as missing, as the specification says: no request is refused for its header.
 */
#ifndef NET_TRACEPARENT_H
#define NET_TRACEPARENT_H

#include "base/base.h"

#define TRACE_ID_MAX 33                /* 16 bytes in hexadecimal, and a NUL */
#define SPAN_ID_MAX 17
#define TRACEPARENT_MAX 56

struct trace {
        char id[TRACE_ID_MAX];
        char parent[SPAN_ID_MAX];          /* the client's span; "": none */
        char span[SPAN_ID_MAX];            /* the request's span */
        bool sampled;                      /* collectors are to keep the spans */
};

/*
 * Begin the trace of a request with this header (NULL: missing, or several), with a new span.  `sampled` applies to a
 * new trace; a client's trace has a flag of its own.
 */
void trace_begin(struct trace *trace, const char *traceparent, bool sampled);
/* Begin a new span below the span of `above`. */
void trace_below(const struct trace *above, struct trace *trace);
/* Write the header with the request's span. */
void trace_print(const struct trace *trace, char text[static TRACEPARENT_MAX]);

#endif
