/*
 * http_answer: the reader of one answer of an HTTP/1.1 server, by http_parser, for servers that may be hostile.
 *
 * Interim answers (1xx, RFC 9110 15.2) are skipped.  After 101 the bytes are raw.  All memory is bounded: at most
 * HTTP_ANSWER_HEADERS_MAX headers, with values of at most HTTP_ANSWER_VALUE_MAX bytes.
 */
#ifndef NET_HTTP_ANSWER_H
#define NET_HTTP_ANSWER_H

#include "base/base.h"

#include <http_parser.h>

#define HTTP_ANSWER_HEADERS_MAX 200
#define HTTP_ANSWER_NAME_MAX KIB           /* bytes of the name of a header */
#define HTTP_ANSWER_VALUE_MAX (32 * KIB)   /* bytes of the value of a header */
#define HTTP_ANSWER_INTERIMS_MAX 10        /* interim answers before the real one */

struct http_answer_header {
        char *name, *value;
};

/* Callbacks of a reader.  Each may end the reader by http_answer_stop(). */
struct http_answer_events {
        /* The head of the answer is complete.  It has no body if http_answer_is_empty(). */
        void (*head)(void *owner);
        void (*bytes)(void *owner, const char *bytes, size_t len);   /* of the body, or raw after 101 */
        void (*end)(void *owner);                                    /* the answer is complete; never after 101 */
};

struct http_answer {
        const struct http_answer_events *events;
        void *owner;
        bool head;                         /* the request was HEAD: no body follows */
        bool upgrade;                      /* the request asked for another protocol: 101 is allowed */
        unsigned status;                   /* 0: the head is not complete */
        struct http_answer_header headers[HTTP_ANSWER_HEADERS_MAX];
        size_t headers_n;
        uint64_t length;                   /* of the body in bytes; UINT64_MAX: not announced */
        bool raw;                          /* 101 was answered */
        bool complete;                     /* end() was called */
        bool keeps;                        /* the connection can be used again after the end */

        /* The reader's own. */
        http_parser parser;
        struct arena arena;
        struct buf name, value;
        bool valued, interim, stopped, taking, freed;
        unsigned interims;
};

/* All members up to `upgrade` are the caller's to set afterwards.  http_answer_done() frees the memory. */
void http_answer_init(struct http_answer *answer, const struct http_answer_events *events, void *owner);
void http_answer_done(struct http_answer *answer);
/* http_answer_done(), and free() of the reader itself.  In a callback: after the callback.  NULL is allowed. */
void http_answer_free(struct http_answer *answer);
/* Read bytes of the connection; len 0: its end.  false: the server does not answer as HTTP/1.1 demands. */
bool http_answer_take(struct http_answer *answer, const char *bytes, size_t len);
/* No further callbacks; for callbacks that end the request. */
void http_answer_stop(struct http_answer *answer);
/* The value of a header; NULL: missing. */
const char *http_answer_header(const struct http_answer *answer, const char *name);
/* Whether the answer has no body by its status or the method of the request. */
bool http_answer_is_empty(const struct http_answer *answer);

#endif
