/*
 * trace: W3C Trace Context (https://www.w3.org/TR/trace-context/), the header `traceparent`.
 *
 * A request belongs to the trace that its client names, or to a new one of its own; what we do for it is a span of that
 * trace.  A header that breaks a rule is as good as none, as the specification has it: nobody is refused for it.
 */
#ifndef FRONT_TRACE_H
#define FRONT_TRACE_H

#include "base/base.h"

#define TRACE_ID_MAX 33                /* 16 bytes in hexadecimal, and a NUL */
#define SPAN_ID_MAX 17
#define TRACEPARENT_MAX 56

struct trace {
        char id[TRACE_ID_MAX];
        char parent[SPAN_ID_MAX];          /* the span of who asked; "": none */
        char span[SPAN_ID_MAX];            /* ours */
        bool sampled;                      /* whoever collects spans is to keep them */
};

/*
 * The trace of a request with this header, NULL where there is none or more than one; with a new span.  `sampled` holds
 * for a new trace; one that was begun by others says for itself.
 */
void trace_begin(struct trace *trace, const char *traceparent, bool sampled);
/* A span of ours below that of `above`. */
void trace_below(const struct trace *above, struct trace *trace);
/* The header, with our span. */
void trace_print(const struct trace *trace, char text[static TRACEPARENT_MAX]);

#endif
