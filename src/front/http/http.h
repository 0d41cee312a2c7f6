/*
 * http: HTTP/1.1 for the daemon, by libmicrohttpd in the daemon's event loop.
 *
 * libmicrohttpd parses and writes HTTP; this module turns it into requests with an owner, bodies with size limits,
 * deferred answers, and streams.  The meaning of requests is defined by the tables of routes (api.h).
 *
 * A request lives from its head to its last byte, or until its client disconnects.  While an answer is pending the
 * connection is suspended, and its socket is watched for its end; so the owner of a run learns that the client is gone.
 */
#ifndef FRONT_HTTP_HTTP_H
#define FRONT_HTTP_HTTP_H

#include <microhttpd.h>

#include "front/http/shares.h"
#include "net/traceparent.h"
#include "model/model.h"

/* maximum of connections of a listener for this host's users, and of connections with frames */
#define HTTP_LOCAL_MAX 1024
#define HTTP_HEAD_MAX (32 * KIB)           /* bytes of the request line and headers */
#define HTTP_BODY_MAX (64 * MIB)           /* bytes of a body, for routes that take programs and files */
#define HTTP_BODY_USUAL_MAX (256 * KIB)    /* bytes of a body, for a route without a ceiling of its own */
#define HTTP_CONNECTIONS_MAX 12000
#define HTTP_IDLE_S 75 /* limit in seconds for a connection without traffic and without a pending answer */
#define HTTP_BODIES_MAX (256 * MIB)        /* bytes of the bodies of all requests; a tenant gets at most half */
#define HTTP_QUEUES_MAX (24 * MIB)         /* unread bytes of all streams; a tenant gets at most half */
#define HTTP_READERS_MAX 4096              /* streams of events; a tenant gets at most half */
#define HTTP_RATE_MIN 1024                 /* bytes of a body per second, averaged over HTTP_WINDOW_US or head_us */
#define HTTP_WINDOW_US (10 * 1000000ULL)   /* microseconds of a body for which the average rate counts */
#define HTTP_STREAM_MAX (8 * MIB)          /* unread bytes of an answer */
#define HTTP_STREAM_LOW (256 * KIB)        /* bytes from which on http_has_room() is false */
#define HTTP_STREAM_MIN (16 * KIB)         /* bytes below which http_has_room() is true in any case */
#define HTTP_PARTS_MAX 4                   /* {names} in a path */
#define HTTP_FILE_MAX (16 * MIB)           /* bytes of a file as the answer to an internal request */

struct http;
struct http_request;
struct http_client;
struct http_upgrade;
struct http_answers;
struct header;
struct workers;

/*
 * BODY_WHOLE: in one piece, JSON of the route's object if the route takes one.  BODY_TREE: in one piece, JSON in the
 * format of another service.  BODY_RPC: in one piece, a message of JSON-RPC.
 */
enum http_body { BODY_NONE, BODY_WHOLE, BODY_TREE, BODY_RPC, BODY_STREAM };
/* Added to a body in one piece: its maximum in MiB; without: HTTP_BODY_USUAL_MAX bytes. */
#define BODY_MIB(n) ((n) << 8)
#define BODY_MIB_MASK 0xffff00U
/* Added to a body: the handler gets requests while the daemon ends, too, and refuses new work itself. */
#define BODY_LATE (1U << 24)

/* One route: a row of an application's table. */
struct http_route {
        /* "/v1/runs/{id}": {…} is one segment, see http_part(); "*" matches any method, or any path */
        const char *method, *path;
        /*
         * names of the query that the route knows, separated by blanks, or NULL; "end=true|false": the allowed values;
         * with a * all other names are ignored
         */
        const char *query;
        unsigned scope;                    /* the scope that a key must have; 0: no key needed */
        unsigned body;                     /* enum http_body, and BODY_MIB() */
        /* called once, when the body is complete; for BODY_STREAM before the body */
        void (*handle)(struct http_request *request);
        /* For the description of the interface: a summary, and the objects of body and answer, or NULL. */
        const char *summary;
        const struct object *takes, *gives;
};

/*
 * One application behind a listener: its routes and its error format.  A path is split before it is decoded, so an
 * encoded slash is part of a segment.
 */
struct http_app {
        const struct http_route *routes; /* ended by a NULL path */
        bool slashes;                    /* a segment for {name} may contain a slash; else such a path does not exist */
        /* Called before the body is read.  An error is sent as the answer. */
        int (*admit)(struct http_request *request, struct csn_error *err);
        /* calls the route's handle(), or answers; at once or later.  NULL: the route's handle() is called */
        void (*handle)(struct http_request *request);
        /*
         * Send an error in the application's format: errors of this module and of handlers.  NULL: problem documents
         * (RFC 9457).
         */
        void (*problem)(struct http_request *request, unsigned status, const struct csn_error *error);
};

/* Events of a listener. */
struct http_events {
        /* The application that a request is for, chosen by its head. */
        const struct http_app *(*app)(void *owner, struct http_request *request);
        /*
         * The head is well-formed; called before a route is looked up.  Errors are answered by the application, with
         * the status of http_refuse().
         */
        int (*greet)(void *owner, struct http_request *request, struct csn_error *err);
        /*
         * The handler of an admitted request is about to be called.  Errors are answered as those of greet(), and the
         * handler is not called.
         */
        int (*begin)(void *owner, struct http_request *request, struct csn_error *err);
        /*
         * The body is complete.  true: http_parsed() follows from the loop, unless the request ends before; false: the
         * handler is called now.
         */
        bool (*parse)(void *owner, struct http_request *request);
        /* An answer is made, and may get further headers by http_set_header(). */
        void (*answering)(void *owner, struct http_request *request);
        /* An answer is being sent. */
        void (*answered)(void *owner, struct http_request *request, unsigned status);
        /* A request ends in any way; freed after the call. */
        void (*over)(void *owner, const struct http_request *request);
        /* A connection has closed. */
        void (*ended)(void *owner);
};

/* A limit, exceeded by a request. */
struct http_limit {
        const char *name;
        uint64_t limit, current;
        uint64_t reset_s;                  /* seconds until a retry can succeed */
        bool has_runs;                     /* the two members below are set */
        uint64_t running, queued;
};

/* The limits of a listener; times in microseconds. */
struct http_options {
        struct shares *shares;             /* the ledger; must outlive the listener */
        struct workers *workers;           /* close files of answers; must outlive the listener */
        enum share requests;               /* the resource of requests in progress */
        unsigned connections_max;          /* see service_connections_max() */
        uint64_t head_us;                  /* for a head, from the begin of its connection */
};

struct http_queue {
        struct http_block *first, *last;
        size_t len;                        /* bytes in all blocks */
};

/* Why a listener closed a connection. */
enum http_closed { HTTP_CLOSED_HEAD, HTTP_CLOSED_IDLE, HTTP_CLOSED_RATE, HTTP_CLOSED_FULL, HTTP_CLOSED_N };

/* A request.  Handlers may use the members up to http.c's own and the functions below. */
struct http_request {
        struct http *http;
        const struct http_app *app;
        const struct http_route *route;    /* NULL: missing */
        struct MHD_Connection *connection;
        char id[65];                       /* X-Request-Id, from the client or generated */
        struct trace trace;                /* the request's span, a child of the client's */
        const char *method, *path;
        const char *uri;                   /* path and query as received */
        const char *received_uri;          /* as in the request line, with scheme and authority */
        const char *authority;             /* of received_uri, or NULL */
        char *parts[HTTP_PARTS_MAX];
        struct buf body;
        struct arena arena;
        uint64_t began_us;
        bool chunked;                      /* the body has chunked coding */
        const char *chunk_end;             /* in the buffer: behind the last taken bytes, or NULL */
        int unread;                        /* bytes in the socket at the last check of http_cut_stuck() */
        unsigned looks;                    /* checks since data was last read */
        const void *caller;                /* set by greet() of the listener's events, or NULL */
        char tenant[80];                   /* set by admit(); "" before */
        const void *key;                   /* set by admit(), or NULL */
        const char *target;                /* set by admit(): the id of the request's target, or NULL */
        void *parsed;                      /* set by parse() of the listener's events */
        void (*parsed_free)(struct http_request *request);   /* the request is freed, body included */

        /* Set by the handler, valid until the answer is given. */
        void *owner;
        /* the client has disconnected; the request must not be used any more */
        void (*gone)(struct http_request *request);
        void (*room)(struct http_request *request);    /* of a stream: http_has_room() is true again */
        /*
         * For BODY_STREAM: consumes bytes and returns their number; after fewer than `len`, no call follows until
         * http_more().  whole() is called at the end of the body.
         */
        size_t (*take)(struct http_request *request, const char *bytes, size_t len);
        void (*whole)(struct http_request *request);
        bool early; /* an answer given in handle() is sent before the body, and ends the connection */

        /* Private to this folder. */
        enum { HTTP_BEGINNING, HTTP_READING, HTTP_OWNED, HTTP_ANSWERED, HTTP_STREAMING, HTTP_GONE } state;
        bool suspended, ended, cut;
        bool waits;                            /* of a stream: room() is awaited */
        struct http_client *client;            /* NULL: an internal request */
        struct holder *holder;                 /* the tenant; the client's address or user before admission */
        uint64_t charged[SHARES_N];            /* for the holder; given back at the end of the request */
        struct http_limit excess;              /* set by a failed http_charge() */
        uint64_t received;                     /* bytes of the body so far */
        struct http_upgrade *raw;              /* the connection was upgraded (upgrade.c) */
        struct header *headers;
        unsigned status;
        struct MHD_Response *response;
        int file_fd;        /* second descriptor of the answer, or -1; see http_close_files() */
        struct watch watch; /* on the socket, while the connection is not read or its end could be missed */
        struct timer reschedule;
        struct http_queue queue;           /* unread bytes of a stream */
        size_t refused;                    /* bytes of a body that arrived after the refusal */
        struct http_request *next, **link;     /* link: the pointer to this request */

        /* Of an internal request, see http_internal_request(). */
        const struct http_internal *inner;    /* NULL: the request has a connection */
        const struct http_answers *answers;   /* receiver of the answer; NULL: the connection */
        void *inner_owner;
        struct { const struct pair *headers, *query; size_t headers_n, query_n; } asked;
        const char *type;                  /* of an answer not yet reported */
        struct buf whole_answer;           /* other than a stream */
        size_t whole_at;                   /* bytes of whole_answer that are reported */
        int answer_fd;                     /* of a file as the answer, or -1 */
        bool dropped;                      /* the end is not reported */
        uint64_t answer_at, answer_left;   /* bytes of the file that are not reported */
        size_t body_at;
};

/*
 * Create a socket for "127.0.0.1:8080", "[::1]:8080", "0.0.0.0:80" or "unix:/path", which does not listen yet.  *ret_fd
 * is the caller's.  Errors: CSN_E_CONFIG (invalid address), CSN_E_SYSTEM.
 */
int http_bind(const char *address, int *ret_fd, struct csn_error *err);
/*
 * Write the socket's address as the kernel reports it, with the port chosen for :0.  Returns whether only this host can
 * reach it.
 */
bool http_note_address(int listener, char *ret, size_t size);
/*
 * Serve a bound socket, or with `ours` false a socket that listens already.  listener becomes the callee's even on
 * failure; the options are copied; events must outlive *ret, which is the caller's until http_close().  Errors:
 * CSN_E_SYSTEM.
 */
int http_open(struct loop *loop, int listener, bool ours, const struct http_options *options,
        const struct http_events *events, void *owner, struct http **ret, struct csn_error *err);
const char *http_address(const struct http *http);   /* with the port chosen for :0 */
bool http_is_local(const struct http *http);         /* loopback, or a Unix socket */
/* Answer only GET and DELETE from now on; other methods get 503. */
void http_drain(struct http *http);
/* CSN_E_BUSY after http_drain(), else 0. */
int http_draining(const struct http *http, struct csn_error *err);
size_t http_busy(const struct http *http);           /* requests that are complete and not answered */
size_t http_connections(const struct http *http);
uint64_t http_closed(const struct http *http, enum http_closed why);   /* closed connections so far */
void http_close(struct http *http);                  /* unanswered requests are cut */

void *http_owner(const struct http_request *request);   /* the owner passed to http_open() */

/* ---- the request ---- */

const char *http_header(const struct http_request *request, const char *name);   /* NULL: missing */
/* Call each() for all headers in their order, until it returns false. */
void http_each_header(const struct http_request *request,
        bool (*each)(void *owner, const char *name, const char *value), void *owner);
/* A value of the query; NULL: missing. */
const char *http_query(const struct http_request *request, const char *name);
const char *http_part(const struct http_request *request, size_t n);             /* the n-th {name} of the path */
/* Whether these routes have the request's path, with any method. */
bool http_is_for(struct http_request *request, const struct http_route *routes, bool slashes);
/* Whether the client accepts a media type, by Accept without weights; "" without that header. */
bool http_accepts(const struct http_request *request, const char *type);
/* The request's Content-Length in bytes, or 0. */
size_t http_announced(const struct http_request *request);

/* Errors: CSN_E_INPUT (the body has a Content-Encoding), with *ret_status 415.  Complete bodies are checked already. */
int http_check_coding(struct http_request *request, unsigned *ret_status, struct csn_error *err);

/* The uid of the peer of a Unix socket, from the kernel (SO_PEERCRED, unix(7)).  false: unknown. */
bool http_peer(const struct http_request *request, uid_t *ret);

/* A value of the query with its length; may contain any bytes.  NULL: missing. */
const char *http_query_bytes(const struct http_request *request, const char *name, size_t *ret_len);

/* The body that events->parse() looked at is parsed: call the handler.  From the loop. */
void http_parsed(struct http_request *request);
enum http_body http_body_of(const struct http_route *route);
/* Whether a body arrives in one piece before its route's handler is called. */
bool http_body_is_whole(const struct http_route *route);

/* Continue to call take() for the body. */
void http_more(struct http_request *request);

/* ---- the answer: exactly one of these calls, once ---- */

/* Add a header; before the answer. */
void http_set_header(struct http_request *request, const char *name, const char *value);
/*
 * Set Content-Range (RFC 9110, 14.4): the part of `size` bytes in the answer; length 0: the range is not satisfiable.
 */
void http_set_range(struct http_request *request, uint64_t offset, uint64_t length, uint64_t size);
/* Set Last-Modified (RFC 9110, 8.8.2), from ms since 1970. */
void http_set_modified(struct http_request *request, uint64_t ms);
/* Answer with a text allocated by malloc(3), which becomes the callee's. */
void http_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len);
/*
 * Answer with a text that other answers use as well: slow readers hold no copies.  release() is called once, with the
 * text, when the answer is over; NULL: the text outlives the listener.
 */
void http_answer_shared(struct http_request *request, unsigned status, const char *type, const char *text, size_t len,
        void (*release)(void *text));
/* Answer with `size` bytes of a regular file, from offset.  The descriptor becomes the callee's. */
void http_answer_file(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset,
        uint64_t size);
/* Answer with JSON.  The reference becomes the callee's. */
void http_json(struct http_request *request, unsigned status, json_t *json);
/*
 * The same in two parts: http_json_text() takes the reference and writes the text, which is the caller's, also in a
 * helper thread.  http_answer_json() takes the text; NULL: the text could not be written, which is an error.
 */
char *http_json_text(json_t *json);
void http_answer_json(struct http_request *request, unsigned status, char *text);
/* For admit(): answer with this error and status.  Returns -error->code. */
int http_refuse(struct http_request *request, unsigned status, const struct csn_error *error);
/* The code of a problem by status alone; the last row has no code. */
struct http_code {
        unsigned status;
        const char *code, *meaning;
};
extern const struct http_code http_codes[];
/* Answer with RFC 9457 application/problem+json, with the members code, field, retryable and request_id. */
void http_problem(struct http_request *request, unsigned status, const struct csn_error *error);
/* The same, with the status of the error's code. */
void http_fail(struct http_request *request, const struct csn_error *error);
/* Cut the connection without an answer. */
void http_drop(struct http_request *request);

/* Answer 429 with the limit in the problem, Retry-After, and RateLimit-Limit, -Remaining and -Reset. */
void http_too_many(struct http_request *request, const struct http_limit *limit, const struct csn_error *error);

/*
 * Charge the holder of the request until the request ends.  Errors: CSN_E_BUSY; http_answer_excess() answers 429 for
 * the holder's own excess, and 503 where other holders have taken all.
 */
int http_charge(struct http_request *request, enum share share, uint64_t amount, struct csn_error *err);
void http_answer_excess(struct http_request *request, const struct csn_error *err);
/* Free the body.  The charge for its bytes moves to *ret, for the object made of the body. */
void http_move_body(struct http_request *request, struct share_charge *ret);

/*
 * Begin an answer in parts.  The request stays its owner's until the end; gone() is called if the client disconnects.
 * type NULL: a forwarded answer of another server, with the headers that were set and none of the daemon's.
 */
void http_stream(struct http_request *request, unsigned status, const char *type);
/* The same with a known length in bytes; a shorter answer must be cut. */
void http_stream_sized(struct http_request *request, unsigned status, const char *type, uint64_t size);
/*
 * Answer 101 with the headers that were set: the connection then carries another protocol.  take() receives bytes as
 * for a body, and http_add() sends, until one side ends the connection.
 */
void http_upgrade(struct http_request *request);
/*
 * Queue bytes.  false: the client does not read, and the bytes were not queued.  A producer that calls http_has_room()
 * before each call and adds at most HTTP_STREAM_LOW - HTTP_STREAM_MIN bytes never gets false.
 */
bool http_add(struct http_request *request, const void *bytes, size_t len);
/*
 * Whether the producer of a stream may queue more: HTTP_STREAM_LOW bytes, or less where the holder's share is used up.
 * false: the producer has to wait for room().
 */
bool http_has_room(struct http_request *request);
/* Bytes in the queue. */
size_t http_queued(const struct http_request *request);
/* End an answer. */
void http_end(struct http_request *request);
void http_cut(struct http_request *request);         /* an end that no client mistakes for a complete answer */

/* ---- internal requests ---- */

/*
 * Internal requests: a front with another protocol calls the routes as a client would, without a connection.  The
 * caller is already authenticated, and the answer arrives from the loop.
 */
struct http_internal_answered {
        const char *method, *path;         /* the path as a client would send it, without a query */
        const struct pair *headers, *query;
        size_t headers_n, query_n;
        char *body;                        /* from malloc(3), becomes the callee's; or NULL */
        size_t body_len;
        const char *id, *tenant;           /* as in the request that causes this one */
        const void *key;                   /* or NULL; must live until over() or http_internal_forget() */
        const struct trace *trace;
};

/* Callbacks of an internal request, from the loop. */
struct http_internal {
        void (*begun)(void *owner, unsigned status, const char *type);
        void (*bytes)(void *owner, const char *bytes, size_t len);
        /* The last call: the answer is complete, or was cut.  The request is freed. */
        void (*over)(void *owner, bool whole);
};

/*
 * Serve an application for internal requests alone.  Of the options, shares and workers are used.  *ret is the caller's
 * until http_close().
 */
void http_open_internal(struct loop *loop, const struct http_options *options, const struct http_app *app,
        const struct http_events *events, void *owner, struct http **ret);
/* Start an internal request.  All but the body and the key is copied. */
struct http_request *http_internal_request(struct http *http, const struct http_internal_answered *asked,
        const struct http_internal *inner, void *owner);
/* Cancel before over(): no further callback; the request ends as after a disconnect. */
void http_internal_forget(struct http_request *request);

#endif
