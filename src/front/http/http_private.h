/*
 * HTTP from the inside; for the files of this folder.  Lower files first:
 *
 *   connection        suspends and resumes the connection of a request, and watches its socket
 *   upgrade           connections that speak another protocol after 101
 *   request           life of a request, and what came with its head
 *   response          headers, bodies and streams
 *   problem           answers in JSON
 *   routing, head     the route and the form of a head
 *   internal_request  requests without a connection
 *   server            callbacks of libmicrohttpd, and listening
 */
#ifndef FRONT_HTTP_PARTS_H
#define FRONT_HTTP_PARTS_H

#include "front/http/http.h"

struct http {
        struct loop *loop;
        struct MHD_Daemon *daemon;
        const struct http_events *events;
        void *owner;
        const struct http_app *inner;     /* of requests of our own; such a one does not listen */
        struct watch watch;                /* libmicrohttpd's epoll descriptor */
        struct timer timer;                /* its next deadline, or at once */
        bool kicked;                       /* since its last round began */
        int listener;
        char address[160];
        bool ours;                         /* a socket of the file system that is removed at the end */
        bool local, draining, closing;
        struct http_request *requests;
        size_t held;
        uint64_t looked_us;                /* http_cut_stuck() */
        unsigned rounds;                   /* since the last event or callback */
        unsigned most;                     /* connections at once */
        bool full;                         /* there were so many at the end of the last round */
};

/* ---- connections (connection.c) ---- */

/* libmicrohttpd has work: server.c runs it from the loop. */
void http_reschedule(struct http *http);
/*
 * The state of a request changed, and its connection is served again from the loop.  Harmless for a connection that
 * is not suspended.
 */
void http_resume(struct http_request *request);
/* Nothing is read from the connection until http_resume(); its socket is watched for its end meanwhile. */
void http_suspend(struct http_request *request);
/* Watch the socket for its end (EPOLLRDHUP).  A socket that cannot be watched is logged. */
void http_watch_end(struct http_request *request);
/* Fires for request->reschedule of a request with a connection. */
void http_on_reschedule(struct timer *timer);

/* ---- requests (request.c) ---- */

/* A request whose head is not known yet, in http->requests until http_request_free(). */
struct http_request *http_request_new(struct http *http, struct MHD_Connection *connection, const char *uri);
void http_request_free(struct http_request *request);
/* Its head is there: copies the method and the path, and gives the request an identifier and a trace context. */
void http_request_begin(struct http_request *request, const char *method, const char *path);

/* ---- routes (routing.c) ---- */

/* Sets request->route.  Errors: CSN_E_INPUT, with *ret_status 404 or 405. */
int http_find_route(struct http_request *request, const char *method, unsigned *ret_status, struct csn_error *err);
/* Whether the route knows the names of the query, and their values are possible.  Errors: CSN_E_INPUT. */
int http_check_query(struct http_request *request, struct csn_error *err);

/* ---- the form of a head (head.c) ---- */

/*
 * target and version are those of libmicrohttpd's callback.  Errors: CSN_E_INPUT: the head could be read in two ways,
 * with *ret_status, and the connection ends with the answer.
 */
int http_check_form(struct http_request *request, const char *target, const char *version, unsigned *ret_status,
                    struct csn_error *err);
/*
 * Before 0.9.77, libmicrohttpd reads no more of a chunk extension that is longer than its buffer, and asks to be
 * called again at once until the connection is idle for too long.  Requests whose bytes stay unread while it asks for
 * that are refused; for one that fills the buffer to the last byte it is called less often.
 */
void http_cut_stuck(struct http *http);

/* ---- answers (response.c) ---- */

/*
 * Where the answer of a request without a connection goes, set by internal_request.c; the functions of http.h with
 * these names call it.
 */
struct http_answers {
        void (*head)(struct http_request *request, unsigned status, const char *type);
        /* Takes the text. */
        void (*answer)(struct http_request *request, unsigned status, const char *type, char *text, size_t len);
        /* Takes the descriptor. */
        void (*answer_file)(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset,
                            uint64_t size);
};

/* ---- other protocols (upgrade.c) ---- */

/*
 * Connections that speak something else after 101 (upgrade.c): the answer after which one does, without headers.
 * Those behind it do nothing to a request that is none.
 */
struct MHD_Response *upgrade_response(struct http_request *request);
/* What was added, or is left of it, goes as far as its client takes it. */
void upgrade_flush(struct http_request *request);
/* There is room for what came. */
void upgrade_more(struct http_request *request);
/* It ends; what has not gone does not go any more. */
void upgrade_close(struct http_request *request);

#endif
