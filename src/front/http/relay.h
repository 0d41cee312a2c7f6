/*
 * relay: a request of a client written anew for another HTTP/1.1 server, and the server's answer passed on.
 *
 * The connection to the server is the caller's.  Headers that belong to one connection are not passed on in either
 * direction (RFC 9110, 7.6.1).
 */
#ifndef FRONT_HTTP_RELAY_H
#define FRONT_HTTP_RELAY_H

#include "front/http/http.h"
#include "net/http_answer.h"

#define RELAY_CHUNK_EXTRA 32               /* bytes around a piece of a body with chunked coding */

/* How the head is written. */
struct relay_rules {
        const char *const *drops;          /* further headers that are not passed on, ended by NULL; or NULL */
        const char *host;                  /* the value of Host; NULL: no Host */
        const char *more;                  /* further headers, each with its line end; or NULL */
        bool whole;                        /* the body is request->body, sent with Content-Length */
        bool keeps;                        /* the connection will be used again */
        const char *uri;                   /* the target; NULL: the request's own */
};

/* Whether the client asks for another protocol (Upgrade, listed in Connection). */
bool relay_wants_upgrade(const struct http_request *request);
/*
 * Append the head.  *ret_chunked: the body has to be sent with chunked coding.  false: the head does not fit into the
 * buffer, or has a control character or a blank by which servers could read it in two ways.
 */
bool relay_write_head(const struct http_request *request, const struct relay_rules *rules, struct buf *head,
        bool *ret_chunked);
/* Write the line before a piece of `len` bytes with chunked coding; its end is "\r\n".  Returns the length. */
size_t relay_chunk_head(char text[static RELAY_CHUNK_EXTRA], size_t len);

/*
 * Begin the answer to the client with status and headers of the server's answer, without those of `drops` (ended by
 * NULL, or NULL).  true: the answer is complete with its
 * head, and the request must not be used any more.  After 101 the request's take() gets raw bytes.
 */
bool relay_begin_answer(struct http_request *request, const struct http_answer *answer, const char *const *drops);

#endif
