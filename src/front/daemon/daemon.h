/* caissond from the inside; for the files of this folder. */
#ifndef FRONT_DAEMON_DAEMON_H
#define FRONT_DAEMON_DAEMON_H

#include "base/discard.h"
#include "front/daemon/confine.h"
#include "front/daemon/fronts.h"
#include "front/service/service.h"
#include "front/socket/endpoint.h"
#include "front/socket/frames.h"
#include "front/views/views.h"

#include "tools/sources/sources.h"

/* Ceilings of memory for clients. */
#define PEERS_MAX 256                      /* connections in all */
#define PEERS_RESERVE 8                    /* one in so many is for users that have no more than this part */
#define CONNECTION_REQUESTS_MAX 4096                 /* live requests of one connection */
#define CONNECTION_INPUT 16384                   /* bytes read at once */
#define CONNECTION_PAUSE (MIB)                   /* a connection with more to read is not read from */
#define CONNECTION_OUTPUT_MAX (16 * MIB)         /* beyond this its OUTPUT is left out */
#define CONNECTION_QUEUE_MAX (1 * GIB)           /* beyond this, which only records can reach, the connection ends */
#define DAEMON_OUTPUT_MAX (256 * MIB)      /* OUTPUT of all connections */

enum daemon_state {
        SERVING,
        DRAINING,                  /* no new requests; runs go on for engine.shutdown_ms */
        CANCELLING,                /* runs are being killed */
        FLUSHING,                  /* no runs; clients read their last frames */
        OVER,
};

struct daemon {
        const struct settings_sources *sources;
        struct settings *settings;
        struct engine *engine;
        struct tools *tools;
        struct sources *sources_of_tools;
        struct packages *packages;             /* prepared and not opened, or NULL */
        struct reviewer *reviewer;             /* likewise */
        struct loop *loop;
        struct endpoint endpoint;
        enum daemon_state state;
        struct watch listener, signals;
        struct timer deadline;     /* of this state */
        struct timer again;        /* accept once more, when there were no descriptors */
        struct service *service;
        struct store *store;       /* NULL: there is no engine.http */
        struct store *usage;       /* of reviews, where there is no store; or NULL */
        struct timer clean;        /* the store */
        size_t clean_kind;         /* of the objects that the next step removes, see on_clean() */
        struct job checkpoint;     /* of the store's log, in a helper thread */
        struct csn_error checkpoint_error;
        struct timer watchdog;     /* the service manager's */
        struct csn_error failure;  /* why the daemon ends without a signal; code 0: no failure */
        struct confine confine;
        struct hop_worker *worker;         /* NULL: no worker of a gateway */
        struct service_host host;
        int http_fd;               /* for the HTTP interface, until service_open() */
        bool http_ours;            /* and not the service manager's */
        struct connection *connections;
        size_t connections_n;
        struct request *requests;
        size_t queued;
        uint64_t started_us;
        struct arena arena;
        uid_t *uids;               /* the users that are answered; none: all */
        size_t uids_n;
};

/* A live request.  It outlives its connection for as long as its run or its check takes to end. */
struct request {
        struct request *next;
        struct daemon *daemon;
        struct connection *connection;         /* NULL: the client has gone */
        struct run *run;           /* NULL: a check, or its frame is being parsed */
        struct source_check source_check;
        struct parse *parse;       /* of the frame, or NULL */
        char owner[32];
        uint32_t id;
        struct share_charge body;  /* bytes of its frame */
        bool aliases, is_check;
        bool cancelled;            /* while its frame was being parsed */
        struct buf record;         /* its run's, by on_encode() */
        bool recorded;             /* the record is whole */
};

void job_cancel(struct request *request);
void request_free(struct request *request);   /* a live run is killed */

/* A frame on its way out. */
struct outgoing {
        struct outgoing *next;
        uint8_t head[FRAME_HEADER];
        char *payload;
        size_t len, sent;          /* the header included */
};

struct connection {
        struct connection *next;
        struct daemon *daemon;
        struct watch watch;
        uid_t uid;
        struct frame_reader reader;
        uint8_t input[CONNECTION_INPUT];
        size_t input_at, input_n;
        struct share_charge body;  /* bytes announced for the frame that is being read */
        size_t requests_n;
        struct outgoing *queue, **queue_end;
        size_t queued;
        bool closing;              /* queued frames go out, nothing comes in */
        struct timer slow;         /* while a frame has begun and is not whole: the end of a window */
        uint64_t received, mark;   /* bytes altogether; bytes at the begin of the window */
};

/* connection.c: takes the descriptor. */
void connection_new(struct daemon *daemon, int fd);
void connection_close(struct connection *connection);
void connection_end(struct connection *connection);      /* when its queue is empty */

/* reload.c */
void daemon_reload(struct daemon *daemon);
int daemon_test_policies(const struct settings *settings, struct csn_error *err);

/* idle.c: whether requests of the socket or of the service go on. */
bool daemon_is_working(const struct daemon *daemon);
/*
 * A request or a connection has ended: let the deadline of the state fire at once if the state waits for nothing else.
 */
void daemon_look(struct daemon *daemon);

#endif
