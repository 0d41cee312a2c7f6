/* HTTP from the inside; for server.c, internal_request.c, problem.c and upgrade.c. */
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

/* One without a head yet. */
struct http_request *http_request_new(struct http *http, struct MHD_Connection *connection, const char *uri);
void http_request_free(struct http_request *request);
/* Errors: there is none, with *ret_status. */
int http_find_route(struct http_request *request, const char *method, unsigned *ret_status, struct csn_error *err);
/*
 * The form of a head (head.c); target and version are those of libmicrohttpd's callback.  Errors: it could be read in two ways, with
 * *ret_status, and the connection ends with the answer.
 */
int http_check_form(struct http_request *request, const char *target, const char *version, unsigned *ret_status, struct csn_error *err);
/*
 * Before 0.9.77, libmicrohttpd reads no more of a chunk extension that is longer than its buffer, and asks to be called again at once until the
 * connection is idle for too long.  Requests whose bytes stay unread while it asks for that are refused; for one that fills the buffer to the
 * last byte it is called less often.
 */
void http_cut_stuck(struct http *http);
/* Something of it has changed, and is looked at from the loop. */
void http_resume(struct http_request *request);

/* The answers of http.h, to a request of our own. */
void http_internal_head(struct http_request *request, unsigned status, const char *type);
void http_internal_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len);
void http_internal_answer_file(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset, uint64_t size);

/* libmicrohttpd has something to do. */
void http_reschedule(struct http *http);

/*
 * Connections that speak something else after 101 (upgrade.c): the answer after which one does, without headers.  Those behind it do nothing to
 * a request that is none.
 */
struct MHD_Response *upgrade_response(struct http_request *request);
/* What was added, or is left of it, goes as far as its client takes it. */
void upgrade_flush(struct http_request *request);
/* There is room for what came. */
void upgrade_more(struct http_request *request);
/* It ends; what has not gone does not go any more. */
void upgrade_close(struct http_request *request);

#endif
