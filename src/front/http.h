/*
 * http: HTTP/1.1 for the daemon, by libmicrohttpd in our own event loop.
 *
 * libmicrohttpd parses and writes HTTP; here it becomes requests that have an owner, bodies with ceilings, answers that
 * come later, and streams.  What a request means is the business of whoever made the table of routes (api.h).
 *
 * A request lives from its head to its last byte, or until its client goes.  While its answer is awaited the connection
 * is suspended, and its socket is watched for its end; so whoever waits for a run that nobody wants any more learns it.
 */
#ifndef FRONT_HTTP_H
#define FRONT_HTTP_H

#include <microhttpd.h>

#include "model/model.h"

#define HTTP_CONNECTIONS_MAX 12000
#define HTTP_IDLE_S 75                     /* a connection on which nothing moves, and which waits for nothing of ours */
#define HTTP_HEAD_MAX (32 * KIB)           /* request line and headers */
#define HTTP_BODY_MAX (64 * MIB)
#define HTTP_HELD_MAX (1 * GIB)            /* bodies of all requests together */
#define HTTP_STREAM_MAX (8 * MIB)          /* of an answer that its client does not read */
#define HTTP_PARTS_MAX 4                   /* {names} of a path */

struct http;
struct http_request;
struct header;

enum http_body { BODY_NONE, BODY_WHOLE, BODY_STREAM };

struct http_route {
        const char *method, *path;         /* "/v1/runs/{id}": {…} is one segment, see http_part() */
        const char *query;                 /* names that it knows, with blanks between, or NULL */
        unsigned scope;                    /* what a key must allow; 0: nobody needs one */
        enum http_body body;
        void (*handle)(struct http_request *request);   /* once, when the body is there; of a stream before it */
        /* For the description of the interface: what it does, and what comes and goes, or NULL. */
        const char *summary;
        const struct object *takes, *gives;
};

struct http_events {
        /* Before anything of the body is read.  Errors are answered as problems. */
        int (*admit)(void *owner, struct http_request *request, struct csn_error *err);
        /* An answer is on its way. */
        void (*answered)(void *owner, struct http_request *request, unsigned status);
        /* A request is over, whichever way. */
        void (*ended)(void *owner);
};

/* What api.c knows of it beside the functions below. */
struct http_request {
        struct http *http;
        const struct http_route *route;    /* NULL: there is none */
        struct MHD_Connection *connection;
        char id[65];                       /* X-Request-Id, the client's or ours */
        const char *path;
        char *parts[HTTP_PARTS_MAX];
        struct buf body;
        struct arena arena;
        uint64_t began_us;
        char tenant[80];                   /* set by admit(); "" */
        const void *key;                   /* the same, or NULL */

        /* The handler's, as long as no answer has been given. */
        void *owner;
        void (*gone)(struct http_request *request);    /* the client has; nothing more may be done with the request */
        void (*room)(struct http_request *request);    /* of a stream: half of what was queued has been read */
        /* Of a body that is a stream: takes bytes and says how many; fewer, and nothing comes until http_more().  At its end whole(). */
        size_t (*take)(struct http_request *request, const char *bytes, size_t len);
        void (*whole)(struct http_request *request);

        /* http.c's own. */
        enum { HTTP_READING, HTTP_OWNED, HTTP_ANSWERED, HTTP_STREAMING, HTTP_GONE } state;
        bool suspended, ended, cut;
        struct header *headers;
        unsigned status;
        struct MHD_Response *response;
        struct watch watch;                /* of the socket, while nothing is read from it */
        struct buf out;                    /* of a stream; from out_at on it has not been read */
        size_t out_at;
        struct http_request *next;
};

/*
 * Listen on "127.0.0.1:8080", "[::1]:8080", "0.0.0.0:80" or "unix:/path".  The routes end with a NULL path.  Errors: CSN_E_CONFIG (no such
 * address), CSN_E_SYSTEM.
 */
int http_open(struct loop *loop, const char *address, const struct http_route *routes, const struct http_events *events, void *owner,
              struct http **ret, struct csn_error *err);
const char *http_address(const struct http *http);   /* with the port that was chosen for :0 */
bool http_is_local(const struct http *http);         /* loopback, or a Unix socket */
/* No new connections; what is being answered goes on. */
void http_drain(struct http *http);
size_t http_busy(const struct http *http);           /* requests that are not answered */
size_t http_connections(const struct http *http);
void http_close(struct http *http);                  /* what is not answered is cut */

void *http_owner(const struct http_request *request);   /* as given to http_open() */

/* ---- what came ---- */

const char *http_header(const struct http_request *request, const char *name);   /* NULL: there is none */
const char *http_query(const struct http_request *request, const char *name);
const char *http_part(const struct http_request *request, size_t n);             /* of the path, in its order */
/* Whether the client accepts a media type, by Accept and without weights; "" where it does not say. */
bool http_accepts(const struct http_request *request, const char *type);

/* There is room for more of the body again. */
void http_more(struct http_request *request);

/* ---- what goes: one of these, once ---- */

/* More headers of the answer; before it. */
void http_set_header(struct http_request *request, const char *name, const char *value);
/* Takes the text, which was allocated. */
void http_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len);
/* Takes the reference. */
void http_json(struct http_request *request, unsigned status, json_t *json);
/* For admit(): the error is answered with this status.  Returns -error->code. */
int http_refuse(struct http_request *request, unsigned status, const struct csn_error *error);
/* RFC 9457: application/problem+json with code, field, retryable and request_id besides. */
void http_problem(struct http_request *request, unsigned status, const struct csn_error *error);
/* The same, with the status that goes with the error's code. */
void http_fail(struct http_request *request, const struct csn_error *error);

/* An answer in parts.  The request stays its owner's until the end; gone() tells if its client does not wait for that. */
void http_stream(struct http_request *request, unsigned status, const char *type);
/* False: its client does not read, and this was not queued. */
bool http_add(struct http_request *request, const void *bytes, size_t len);
size_t http_queued(const struct http_request *request);
void http_end(struct http_request *request);
void http_cut(struct http_request *request);         /* an end that nobody takes for a whole answer */

#endif
