/*
 * sse: a stream of events as servers send it (the WHATWG's HTML, 9.2), bytes in, messages out.
 *
 * Of an event its data matters, and for taking a stream up again its id and the time to wait.  A stream may be of any length, one of
 * its lines or messages is not.
 */
#ifndef TOOLS_SSE_H
#define TOOLS_SSE_H

#include "base/base.h"

#define SSE_ID_MAX 1024                    /* bytes of an id and its end; one that is longer is left alone */
#define SSE_RETRY_MS 1000                  /* where the server says nothing else */
#define SSE_RETRY_MS_MIN 100
#define SSE_RETRY_MS_MAX 60000

struct sse {
        struct buf line, data;             /* what is not whole yet */
        char id[SSE_ID_MAX];               /* of the last event that had one; printable ASCII, or "" */
        uint64_t retry_ms;
        uint64_t events;                   /* that had data, if only an empty line of it */
};

/* A message has at most max bytes. */
void sse_init(struct sse *sse, size_t max);
void sse_done(struct sse *sse);
/* Another stream begins; id and time stay. */
void sse_reset(struct sse *sse);

/*
 * The next bytes.  message() is called for the data of each event that has some; where it returns false nothing more is looked at.  Errors:
 * CSN_E_INPUT, a line or a message is too long.
 */
int sse_take(struct sse *sse, const char *bytes, size_t len, bool (*message)(void *owner, const char *text, size_t len), void *owner,
             struct csn_error *err);

#endif
