/*
 * Shared by the files of src/front/http: the state of a listener and the inside of requests.  Lower files first:
 *
 *   shares            bounded resources by holder
 *   stream_queue      unread bytes of a stream
 *   clients           age and state of connections, and the deadlines of slow senders
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

/*
 * Whether libmicrohttpd itself refuses lines that end with LF alone, folded lines and NULs.  Older versions take such
 * heads, and head.c looks at the buffers that the head was read into; buffers of version 1.0 have another form.
 */
#if MHD_VERSION >= 0x01000000
#define HTTP_LIBRARY_IS_STRICT true
#define HTTP_STRICTNESS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,   /* as strict as RFC 9112 lets servers be */
#else
#define HTTP_LIBRARY_IS_STRICT false
#define HTTP_STRICTNESS
#endif

/*
 * A connection of a listener.  The states up to CLIENT_SENDING have a list each, by the time of entry, and a deadline
 * of the same length for all members.
 */
struct http_client {
        struct http_client *prev, *next;
        struct http *http;
        struct MHD_Connection *connection;
        int fd;
        struct holder *peer;               /* its address or user */
        struct http_request *request;      /* NULL: no request line since the last answer */
        enum {
                CLIENT_NEW,                /* its first head has not arrived */
                CLIENT_IDLE,               /* its last answer has gone out */
                CLIENT_SENDING,            /* a body is read */
                CLIENT_BUSY,               /* an answer is awaited or read */
                CLIENT_CUT,                /* shut down, and still known to libmicrohttpd */
        } state;
        uint64_t since_us;                 /* time of entry into the state, or begin of the window of the rate */
        uint64_t mark;                     /* bytes of the body at since_us */
};

struct http_clients {
        struct http_client *first, *last;
        size_t n;
};

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
        struct http_options options;
        struct http_clients clients[CLIENT_SENDING + 1];
        size_t clients_n, cut_n;           /* open connections; of which CLIENT_CUT */
        struct timer deadline;             /* of the first member of each list of clients */
        uint64_t closed[HTTP_CLOSED_N];
        uint64_t looked_us;                /* time of http_cut_stuck()'s last check, in us */
        unsigned rounds;                   /* rounds since the last event or callback */
        struct http_file *files;           /* see http_close_files() */
        unsigned connections_n;            /* at the end of the last round */
};

/* ---- clients (clients.c) ---- */

/*
 * A connection was accepted: may close another one, so that the next client finds room.  The client is the listener's
 * until http_client_free().
 */
struct http_client *http_client_new(struct http *http, struct MHD_Connection *connection);
void http_client_free(struct http_client *client);
/* Change the state; a second entry into CLIENT_SENDING begins a new window.  NULL is allowed. */
void http_client_enter(struct http_client *client, unsigned state);

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

/*
 * Allocate a request.  A request without a connection is a member of http->requests from here on, other requests from
 * http_request_begin() on: a flood of half-sent heads makes no list long.
 */
struct http_request *http_request_new(struct http *http, struct MHD_Connection *connection, const char *uri);
void http_request_free(struct http_request *request);
/* The request was admitted: its tenant is the holder from now on.  Nothing may be charged yet. */
void http_set_holder(struct http_request *request);
/* Free the body and give back its share. */
void http_drop_body(struct http_request *request);
/* The head has arrived: copy method and path, and set the request's id and trace context. */
void http_request_begin(struct http_request *request, const char *method, const char *path);

/*
 * Close the files of answers that are over.  libmicrohttpd closes a file in the loop, and the last close(2) of a
 * deleted file frees the blocks.  So a request has a second descriptor, which is closed by this function after the
 * round in which libmicrohttpd has closed its descriptor.
 */
void http_close_files(struct http *http);

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
/* Split the authority of an absolute target off: request->uri and request->path begin with "/" then. */
void http_split_target(struct http_request *request);
/* Check the line before the data of a chunk, if the line is still in the buffer.  false: two readings are possible. */
bool http_check_chunk(const struct http_request *request, const char *bytes);
/* Note bytes taken from the chunk. */
void http_took_chunk(struct http_request *request, const char *bytes, size_t len);
/* Answer 400, log the reason and shut the connection down. */
void http_refuse_chunk(const struct http_request *request, const char *why);
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

/* ---- queues of streams (stream_queue.c) ---- */

void stream_add(struct http_queue *queue, const char *bytes, size_t len);
/* The first part of the queue; NULL with 0: the queue is empty. */
const char *stream_front(const struct http_queue *queue, size_t *ret_len);
/* Drop bytes of the first part. */
void stream_drop(struct http_queue *queue, size_t len);
/* Take up to `size` bytes; their number. */
size_t stream_read(struct http_queue *queue, char *bytes, size_t size);
void stream_free(struct http_queue *queue);
/* Charge the holder of the request for the present length of its queue. */
void http_charge_queue(struct http_request *request);
/* Call room() if the producer waits and may go on. */
void http_tell_room(struct http_request *request);

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
