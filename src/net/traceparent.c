/* The header `traceparent`; see traceparent.h. */
#include "net/traceparent.h"

#include <stdio.h>

#define TRACEPARENT_LEN 55             /* of version 00: 00-TRACE-PARENT-FLAGS */
#define TRACE_AT 3
#define PARENT_AT 36
#define FLAGS_AT 53
#define SAMPLED 1

/* n digits, lower case by the specification, and not all 0 if `some` is set. */
static bool is_hex(const char *text, size_t n, bool some)
{
        return strspn(text, "0123456789abcdef") >= n && !(some && strspn(text, "0") >= n);
}

/* Of an unknown version the known part is taken; more text begins with a dash. */
static bool is_valid(const char *text)
{
        size_t len = strlen(text);
        if (len < TRACEPARENT_LEN || !is_hex(text, 2, false) || memcmp(text, "ff", 2) == 0)
                return false;
        if (len > TRACEPARENT_LEN && (memcmp(text, "00", 2) == 0 || text[TRACEPARENT_LEN] != '-'))
                return false;
        return text[TRACE_AT - 1] == '-' && text[PARENT_AT - 1] == '-' && text[FLAGS_AT - 1] == '-' &&
                is_hex(text + TRACE_AT, TRACE_ID_MAX - 1, true) && is_hex(text + PARENT_AT, SPAN_ID_MAX - 1, true) &&
                is_hex(text + FLAGS_AT, 2, false);
}

void trace_begin(struct trace *trace, const char *traceparent, bool sampled)
{
        *trace = (struct trace){ .sampled = sampled };
        hex_id(8, trace->span);
        if (!traceparent || !is_valid(traceparent)) {
                hex_id(16, trace->id);
                return;
        }
        memcpy(trace->id, traceparent + TRACE_AT, TRACE_ID_MAX - 1);
        memcpy(trace->parent, traceparent + PARENT_AT, SPAN_ID_MAX - 1);
        trace->sampled = strtoul(traceparent + FLAGS_AT, NULL, 16) & SAMPLED;
}

void trace_below(const struct trace *above, struct trace *trace)
{
        *trace = *above;
        memcpy(trace->parent, above->span, sizeof trace->parent);
        hex_id(8, trace->span);
}

void trace_print(const struct trace *trace, char text[static TRACEPARENT_MAX])
{
        snprintf(text, TRACEPARENT_MAX, "00-%s-%s-%02x", trace->id, trace->span, trace->sampled ? SAMPLED : 0);
}
