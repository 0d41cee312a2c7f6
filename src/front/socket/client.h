/*
 * client: our side of a connection to caissond, in an event loop.
 *
 * One thing is asked at a time: a run, the status, or a check.  Functions return at once; what comes is told by
 * callbacks from the loop, none of which may close the client.
 */
#ifndef FRONT_CLIENT_H
#define FRONT_CLIENT_H

#include "front/socket/endpoint.h"
#include "front/socket/frames.h"

struct client;

struct client_events {
        void (*output)(void *owner, int stream, const void *bytes, size_t len);
        void (*answer)(void *owner, enum frame_type type, const char *text, size_t len);   /* RECORD, STATUS or CHECKED */
        /* The last call.  `refused`: the daemon said so, and has done nothing. */
        void (*failed)(void *owner, const struct csn_error *error, bool refused);
};

/*
 * Connect to the daemon of this user, else to the one of root; *ret_path is where.  Errors: CSN_E_SYSTEM
 * (there is none, or it does not let us in; the text has the path).
 */
int client_open(struct loop *loop, const struct settings *settings, const struct client_events *events, void *owner,
                struct client **ret, struct csn_error *err);
const char *client_path(const struct client *client);

/* REQUEST or CHECK with a text (copied), CANCEL or ASK without one. */
void client_send(struct client *client, enum frame_type type, const char *text, size_t len);
void client_close(struct client *client);

/* A record's JSON into a struct; model_decode() without what stands there twice.  Errors: CSN_E_PROTOCOL. */
int client_read_record(json_t *record, struct arena *arena, struct run_result *ret, struct csn_error *err);

/* A request as JSON text at the end of buf; false past its ceiling. */
bool client_write_request(const struct run_request *request, struct buf *buf);
bool client_write_check(const struct check_request *request, struct buf *buf);

/* ---- ASK and CHECK, for who has nothing else to do meanwhile (query.c) ---- */

struct daemon_query {
        struct loop *loop;
        struct client *client;
        struct timer late;
        json_t *answer;            /* the last one */
        bool answered;
        struct csn_error err;      /* code 0: none; from an error on nothing more can be asked */
};

/* Errors, also of daemon_query_wait(): in asker->err.  To be closed in any case. */
int daemon_query_open(struct daemon_query *daemon_query, const struct settings *settings);
void daemon_query_close(struct daemon_query *daemon_query);
void daemon_query_ask(struct daemon_query *daemon_query, enum frame_type type, const char *text, size_t len);
int daemon_query_wait(struct daemon_query *daemon_query);

#endif
