/*
 * Shared by the files of src/front/http: the state of a listener and the inside of requests.  Lower files first:
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
#ifndef FRONT_HTTP_HTTP_PRIVATE_H
#define FRONT_HTTP_HTTP_PRIVATE_H

#include "front/http/http.h"

/* A listener, or the routes for internal requests. */
struct http {
        struct loop *loop;
        struct MHD_Daemon *daemon;
        const struct http_events *events;
        void *owner;
        const struct http_app *inner;      /* application for internal requests; such a struct does not listen */
        struct watch watch;                /* epoll descriptor of libmicrohttpd */
        struct timer timer;                /* libmicrohttpd's next deadline, or now */
        bool kicked;                       /* since the begin of the last round */
        int listener;
        char address[160];
        bool ours;                         /* a Unix socket, removed at the end */
        bool local, draining, closing;
        struct http_request *requests;
        size_t held;
        uint64_t looked_us;                /* time of http_cut_stuck()'s last check, in us */
        unsigned rounds;                   /* rounds since the last event or callback */
        unsigned most;                     /* maximum of connections */
        bool full;                         /* the maximum was reached at the end of the last round */
};

/* ---- connections (connection.c) ---- */

/* libmicrohttpd has work: server.c runs it from the loop. */
void http_reschedule(struct http *http);
/*
 * The state of a request changed, and its connection is served again from the loop.  Harmless for a connection that is
 * not suspended.
 */
void http_resume(struct http_request *request);
/* Stop reading from the connection until http_resume(), and watch its socket for its end. */
void http_suspend(struct http_request *request);
/* Watch the socket for its end (EPOLLRDHUP).  A socket that cannot be watched is logged. */
void http_watch_end(struct http_request *request);
/* Fires for request->reschedule of a request with a connection. */
void http_on_reschedule(struct timer *timer);

/* ---- requests (request.c) ---- */

/* Allocate a request before its head is known; a member of http->requests until http_request_free(). */
struct http_request *http_request_new(struct http *http, struct MHD_Connection *connection, const char *uri);
void http_request_free(struct http_request *request);
/* The head has arrived: copy method and path, and set the request's id and trace context. */
void http_request_begin(struct http_request *request, const char *method, const char *path);

/* Call the handler of the request's application or route. */
void http_call_handler(struct http_request *request);

/* ---- routes (routing.c) ---- */

/* Sets request->route.  Errors: CSN_E_INPUT, with *ret_status 404 or 405. */
int http_find_route(struct http_request *request, const char *method, unsigned *ret_status, struct csn_error *err);
/* Check the query against the names and values that the route allows.  Errors: CSN_E_INPUT. */
int http_check_query(struct http_request *request, struct csn_error *err);

/* ---- the form of a head (head.c) ---- */

/*
 * Check the form of a head; target and version come from libmicrohttpd's callback.  Errors: CSN_E_INPUT (the head is
 * ambiguous), with *ret_status; the connection ends after the answer.
 */
int http_check_form(struct http_request *request, const char *target, const char *version, unsigned *ret_status,
                    struct csn_error *err);
/*
 * Work-around for libmicrohttpd before 0.9.77: a chunk extension longer than its buffer stops reading, and
 * libmicrohttpd asks to be called again at once until the idle time-out.  Requests whose bytes stay unread meanwhile
 * are refused; for a request that fills the buffer to the last byte libmicrohttpd asks less often.
 */
void http_cut_stuck(struct http *http);

/* ---- answers (response.c) ---- */

/*
 * Receiver of the answer to an internal request, set by internal_request.c.  The functions of http.h with the same
 * names call these functions.
 */
struct http_answers {
        void (*head)(struct http_request *request, unsigned status, const char *type);
        /* The text, from malloc(3), becomes the callee's. */
        void (*answer)(struct http_request *request, unsigned status, const char *type, char *text, size_t len);
        /* The descriptor becomes the callee's. */
        void (*answer_file)(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset,
                            uint64_t size);
};

/* ---- other protocols (upgrade.c) ---- */

/*
 * Upgraded connections (upgrade.c).  upgrade_response(): the 101 answer, without headers.  The functions after it
 * ignore requests without an upgrade.
 */
struct MHD_Response *upgrade_response(struct http_request *request);
/* Send what http_add() queued, as far as the client reads. */
void upgrade_flush(struct http_request *request);
/* Resume reading: there is room for more bytes. */
void upgrade_more(struct http_request *request);
/* Close; unsent bytes are dropped. */
void upgrade_close(struct http_request *request);

#endif
