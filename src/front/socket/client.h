/*
 * client: the client's side of a connection to caissond, in an event loop.
 *
 * One request is pending at a time: a run, the status, or a check.  Functions return at once; callbacks from the loop
 * deliver the results.  A callback must not close the client.
 */
#ifndef FRONT_SOCKET_CLIENT_H
#define FRONT_SOCKET_CLIENT_H

#include "front/socket/endpoint.h"
#include "front/socket/frames.h"

struct client;

/* Events of a connection.  bytes, text and error are valid during the call. */
struct client_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len);
        void (*answer)(void *owner, enum frame_type type, const char *text, size_t len); /* RECORD, STATUS or CHECKED */
        /* The last event.  `refused`: the daemon refused the request and has done nothing. */
        void (*failed)(void *owner, const struct csn_error *error, bool refused);
};

/*
 * Connect to this user's daemon, else to root's.  *ret is the caller's until client_close().  Errors: CSN_E_SYSTEM (no
 * daemon, or no permission; the text has the path).
 */
int client_open(struct loop *loop, const struct settings *settings, const struct client_events *events, void *owner,
                struct client **ret, struct csn_error *err);
/* The path of the connected socket; valid until client_close(). */
const char *client_path(const struct client *client);

/* Send REQUEST or CHECK with a text, which is copied; CANCEL or ASK without a text. */
void client_send(struct client *client, enum frame_type type, const char *text, size_t len);
void client_close(struct client *client);

/* ---- blocking ASK and CHECK (query.c) ---- */

/* A connection for one blocking request after the other. */
struct daemon_query {
        struct loop *loop;
        struct client *client;
        struct timer late;
        json_t *answer;            /* the last answer */
        bool answered;
        struct csn_error err;      /* code 0: no error; after an error no further request is possible */
};

/*
 * Errors of daemon_query_open() and daemon_query_wait(): in daemon_query->err, those of client_open() and of the
 * daemon.  The caller ends with daemon_query_close() in any case.
 */
int daemon_query_open(struct daemon_query *daemon_query, const struct settings *settings);
void daemon_query_close(struct daemon_query *daemon_query);
void daemon_query_ask(struct daemon_query *daemon_query, enum frame_type type, const char *text, size_t len);
int daemon_query_wait(struct daemon_query *daemon_query);

#endif
