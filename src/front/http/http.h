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

#include "net/traceparent.h"
#include "model/model.h"

#define HTTP_LOCAL_MAX 1024                /* at the most, of a listener of this host's users; and of connections that speak frames */
#define HTTP_CONNECTIONS_MAX 12000
#define HTTP_IDLE_S 75                     /* a connection on which nothing moves, and which waits for nothing of ours */
#define HTTP_HEAD_MAX (32 * KIB)           /* request line and headers */
#define HTTP_BODY_MAX (64 * MIB)
#define HTTP_HELD_MAX (1 * GIB)            /* bodies of all requests together */
#define HTTP_STREAM_MAX (8 * MIB)          /* of an answer that its client does not read */
#define HTTP_PARTS_MAX 4                   /* {names} of a path */
#define HTTP_FILE_MAX (16 * MIB)           /* of a file as the answer to a request of our own */

struct http;
struct http_request;
struct http_upgrade;
struct http_answers;
struct header;

enum http_body { BODY_NONE, BODY_WHOLE, BODY_STREAM };

struct http_route {
        const char *method, *path;         /* "/v1/runs/{id}": {…} is one segment, see http_part(); "*" is any, of both */
        const char *query;                 /* names that it knows, with blanks between, or NULL; "end=true|false": what the value can be; with a * it ignores all others */
        unsigned scope;                    /* what a key must allow; 0: nobody needs one */
        enum http_body body;
        void (*handle)(struct http_request *request);   /* once, when the body is there; of a stream before it */
        /* For the description of the interface: what it does, and what comes and goes, or NULL. */
        const char *summary;
        const struct object *takes, *gives;
};

/*
 * One interface of those that a listener has: its routes, and how it speaks.  A path is split before it is decoded,
 * so an encoded slash is part of a segment.
 */
struct http_app {
        const struct http_route *routes;   /* they end with a NULL path */
        bool slashes;                      /* a segment for {name} may have one; else there is no such path */
        /* Before anything of the body is read.  Errors are answered. */
        int (*admit)(struct http_request *request, struct csn_error *err);
        void (*handle)(struct http_request *request);   /* calls the route's, or answers; at once or later.  NULL: that is called */
        /* An error in its own words, of ours at the door as of the handlers'.  NULL: problems (RFC 9457). */
        void (*problem)(struct http_request *request, unsigned status, const struct csn_error *error);
};

struct http_events {
        /* Which one a request is for, by its head. */
        const struct http_app *(*app)(void *owner, struct http_request *request);
        /* An answer is on its way. */
        void (*answered)(void *owner, struct http_request *request, unsigned status);
        /* A request is over, whichever way, and goes after this. */
        void (*over)(void *owner, const struct http_request *request);
        /* One has gone. */
        void (*ended)(void *owner);
};

/* What routes.c knows of it beside the functions below. */
struct http_request {
        struct http *http;
        const struct http_app *app;
        const struct http_route *route;    /* NULL: there is none */
        struct MHD_Connection *connection;
        char id[65];                       /* X-Request-Id, the client's or ours */
        struct trace trace;                /* its span, below the client's */
        const char *method, *path;
        const char *uri;                   /* path and query as they were sent */
        char *parts[HTTP_PARTS_MAX];
        struct buf body;
        struct arena arena;
        uint64_t began_us;
        bool chunked;                      /* its body */
        int unread;                        /* bytes that its socket had at the last look of http_cut_stuck() */
        unsigned looks;                    /* since something of it was read */
        char tenant[80];                   /* set by admit(); "" */
        const void *key;                   /* the same, or NULL */
        const char *target;                /* the same: the id of what it is for, or NULL */

        /* The handler's, as long as no answer has been given. */
        void *owner;
        void (*gone)(struct http_request *request);    /* the client has; nothing more may be done with the request */
        void (*room)(struct http_request *request);    /* of a stream: half of what was queued has been read */
        /*
         * Of a body that is a stream: takes bytes and says how many; fewer, and nothing comes until http_more().  At
         * its end whole().
         */
        size_t (*take)(struct http_request *request, const char *bytes, size_t len);
        void (*whole)(struct http_request *request);
        bool early;                        /* an answer that handle() gave goes out before the body, and ends the connection */

        /* http.c's own. */
        enum { HTTP_BEGINNING, HTTP_READING, HTTP_OWNED, HTTP_ANSWERED, HTTP_STREAMING, HTTP_GONE } state;
        bool suspended, ended, cut;
        struct http_upgrade *raw;              /* it speaks something else by now (upgrade.c) */
        struct header *headers;
        unsigned status;
        struct MHD_Response *response;
        struct watch watch;                /* of the socket, while nothing is read from it, or its end could be missed */
        struct timer reschedule;
        struct buf out;                    /* of a stream; from out_at on it has not been read */
        size_t out_at;
        size_t refused;                    /* bytes of a body that came after it was refused */
        struct http_request *next;

        /* Of one without a connection, see http_internal_request(). */
        const struct http_internal *inner;    /* NULL: it has one */
        const struct http_answers *answers;   /* where its answer goes; NULL: to its connection */
        void *inner_owner;
        struct { const struct pair *headers, *query; size_t headers_n, query_n; } asked;
        const char *type;                  /* of an answer that was not told yet */
        size_t body_at;
        bool dropped;                      /* nobody is told its end */
};

/*
 * A socket for "127.0.0.1:8080", "[::1]:8080", "0.0.0.0:80" or "unix:/path" that does not listen yet.  Errors:
 * CSN_E_CONFIG (no such address), CSN_E_SYSTEM.
 */
int http_bind(const char *address, int *ret_fd, struct csn_error *err);
/* Its address as the kernel has it: with the port that it chose for :0.  Whether only this host can reach it. */
bool http_note_address(int listener, char *ret, size_t size);
/*
 * Serve a bound socket, or one that listens already and is not `ours`; takes the descriptor in any case.  most:
 * connections at once; see service_connections_max().  Errors: CSN_E_SYSTEM.
 */
int http_open(struct loop *loop, int listener, bool ours, unsigned most, const struct http_events *events, void *owner, struct http **ret,
              struct csn_error *err);
const char *http_address(const struct http *http);   /* with the port that was chosen for :0 */
bool http_is_local(const struct http *http);         /* loopback, or a Unix socket */
/* From now on only GET and DELETE are answered; for anything else there is a 503. */
void http_drain(struct http *http);
/* CSN_E_BUSY if that was said. */
int http_draining(const struct http *http, struct csn_error *err);
size_t http_busy(const struct http *http);           /* requests that have come whole and are not answered */
size_t http_connections(const struct http *http);
void http_close(struct http *http);                  /* what is not answered is cut */

void *http_owner(const struct http_request *request);   /* as given to http_open() */

/* ---- what came ---- */

const char *http_header(const struct http_request *request, const char *name);   /* NULL: there is none */
/* All of them in their order, for as long as it says true. */
void http_each_header(const struct http_request *request, bool (*each)(void *owner, const char *name, const char *value), void *owner);
const char *http_query(const struct http_request *request, const char *name);
const char *http_part(const struct http_request *request, size_t n);             /* of the path, in its order */
/* Whether these routes have its path, whatever the method. */
bool http_is_for(struct http_request *request, const struct http_route *routes, bool slashes);
/* Whether the client accepts a media type, by Accept and without weights; "" where it does not say. */
bool http_accepts(const struct http_request *request, const char *type);

/* Errors: its body has a Content-Encoding, with *ret_status 415.  Bodies that come whole were looked at for that. */
int http_check_coding(struct http_request *request, unsigned *ret_status, struct csn_error *err);

/* Who is at the other end of a Unix socket, by the kernel (SO_PEERCRED, unix(7)).  False: it does not say. */
bool http_peer(const struct http_request *request, uid_t *ret);

/* A value of the query with its length, which may have any bytes; NULL: there is none. */
const char *http_query_bytes(const struct http_request *request, const char *name, size_t *ret_len);

/* There is room for more of the body again. */
void http_more(struct http_request *request);

/* ---- what goes: one of these, once ---- */

/* More headers of the answer; before it. */
void http_set_header(struct http_request *request, const char *name, const char *value);
/*
 * Content-Range (RFC 9110, 14.4): what of `size` bytes is answered; with a length of 0, that none of the range is
 * there.
 */
void http_set_range(struct http_request *request, uint64_t offset, uint64_t length, uint64_t size);
/* Last-Modified (RFC 9110, 8.8.2), of milliseconds since 1970. */
void http_set_modified(struct http_request *request, uint64_t ms);
/* Takes the text, which was allocated. */
void http_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len);
/* Takes the descriptor, of a regular file: these bytes of it. */
void http_answer_file(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset, uint64_t size);
/* Takes the reference. */
void http_json(struct http_request *request, unsigned status, json_t *json);
/* For admit(): the error is answered with this status.  Returns -error->code. */
int http_refuse(struct http_request *request, unsigned status, const struct csn_error *error);
/* What a problem's code is, whatever its error, by its status; the last one has no code. */
struct http_code {
        unsigned status;
        const char *code, *meaning;
};
extern const struct http_code http_codes[];
/* RFC 9457: application/problem+json with code, field, retryable and request_id besides. */
void http_problem(struct http_request *request, unsigned status, const struct csn_error *error);
/* The same, with the status that goes with the error's code. */
void http_fail(struct http_request *request, const struct csn_error *error);
/* None: the connection is cut. */
void http_drop(struct http_request *request);

/* A limit that a request is over, for now. */
struct http_limit {
        const char *name;
        uint64_t limit, current;
        uint64_t reset_s;                  /* when it may be tried again */
        bool has_runs;                     /* the two below are known */
        uint64_t running, queued;
};
/* 429 with all of that, in the problem and in Retry-After and RateLimit-Limit, -Remaining and -Reset. */
void http_too_many(struct http_request *request, const struct http_limit *limit, const struct csn_error *error);

/*
 * An answer in parts.  The request stays its owner's until the end; gone() tells if its client does not wait for
 * that.  Without a type it is somebody else's answer, that is passed on: with the headers that were set, and none of
 * ours.
 */
void http_stream(struct http_request *request, unsigned status, const char *type);
/* The same, with its length in bytes told before; what ends earlier has to be cut. */
void http_stream_sized(struct http_request *request, unsigned status, const char *type, uint64_t size);
/*
 * 101, with the headers that were set: from then on the connection speaks something else.  What comes goes to take(),
 * as with a body, and what goes is added, until one of both ends it.
 */
void http_upgrade(struct http_request *request);
/* False: its client does not read, and this was not queued. */
bool http_add(struct http_request *request, const void *bytes, size_t len);
size_t http_queued(const struct http_request *request);
void http_end(struct http_request *request);
void http_cut(struct http_request *request);         /* an end that nobody takes for a whole answer */

/* ---- requests of our own ---- */

/*
 * A front that speaks of what the routes do in other words asks them as a client would, without a connection: who
 * asks is known, and what comes back is told from the loop.
 */
struct http_internal_answered {
        const char *method, *path;         /* the path as it would be sent, without a query */
        const struct pair *headers, *query;
        size_t headers_n, query_n;
        const char *body;
        size_t body_len;
        const char *id, *tenant;           /* as in the request for which this is asked */
        const void *key;                   /* or NULL; has to live until over() or http_internal_forget() */
        const struct trace *trace;
};

struct http_internal {
        void (*begun)(void *owner, unsigned status, const char *type);
        void (*bytes)(void *owner, const char *bytes, size_t len);
        /* The last one: that was all of the answer, or it broke off.  The request is gone. */
        void (*over)(void *owner, bool whole);
};

/* Routes of a face that are asked in this way alone. */
void http_open_internal(struct loop *loop, const struct http_app *app, const struct http_events *events, void *owner, struct http **ret);
/* Everything but the key is copied. */
struct http_request *http_internal_request(struct http *http, const struct http_internal_answered *asked, const struct http_internal *inner, void *owner);
/* Before over(): nothing more is told, and what was asked for ends as for a client that has gone. */
void http_internal_forget(struct http_request *request);

#endif
