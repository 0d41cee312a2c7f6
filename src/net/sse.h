/*
 * sse: a parser for server-sent events (WHATWG HTML, 9.2), bytes in, messages out.
 *
 * The parser keeps an event's data, and its id and retry time for a reconnection.  A stream may have any length; a line
 * and a message are limited.
 */
#ifndef NET_SSE_H
#define NET_SSE_H

#include "base/base.h"

#define SSE_ID_MAX 1024                    /* bytes of an id with its NUL; longer ids are ignored */
#define SSE_RETRY_MS 1000                  /* default without a value from the server */
#define SSE_RETRY_MS_MIN 100
#define SSE_RETRY_MS_MAX 60000

struct sse {
        struct buf line, data;             /* incomplete input */
        char id[SSE_ID_MAX];               /* last id; printable ASCII, or "" */
        uint64_t retry_ms;
        uint64_t events;                   /* events with data, even if only an empty line */
};

/* max: bytes of a message.  The caller ends with sse_done(). */
void sse_init(struct sse *sse, size_t max);
void sse_done(struct sse *sse);
/* Begin another stream; id and retry time stay. */
void sse_reset(struct sse *sse);

/*
 * Parse the next bytes.  message() is called with the data of each event that has data; false stops the parsing.
 * Errors: CSN_E_INPUT (a line or a message is too long).
 */
int sse_take(struct sse *sse, const char *bytes, size_t len, bool (*message)(void *owner, const char *text, size_t len),
        void *owner, struct csn_error *err);

#endif
