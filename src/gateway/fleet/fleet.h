/*
 * fleet: the workers of a gateway, and the choice among the workers.
 *
 *   fleet.c      the table of workers
 *   worker.c     references and states of a worker
 *   link.[ch]    connections to workers
 *   call.[ch]    requests of the gateway itself
 *   heartbeat.c  GET /v1/gateway/status of each worker, once in gateway.heartbeat
 *   choose.c     the choice of a worker for a request
 *   lost.c       lost workers, for gateway.lost_ttl
 *
 * Workers come from a source: the list gateway.workers, or Kubernetes (gateway/kube/kube.h).  The source says that a
 * worker exists; the worker's own answers say that it lives.  A worker is down at the first refused or reset
 * connection, and after gateway.down_after without an answer; a heartbeat brings it back.
 */
#ifndef GATEWAY_FLEET_FLEET_H
#define GATEWAY_FLEET_FLEET_H

#include "hop/hop.h"
#include "model/settings.h"
#include "net/dns.h"

#include <netinet/in.h>

struct fleet;
struct link;
struct worker_call;

enum worker_state {
        WORKER_UNKNOWN,                    /* no heartbeat was answered yet */
        WORKER_READY,
        WORKER_NOT_READY,                  /* answers, and cannot run programs now; `why` has the reason */
        WORKER_DRAINING,                   /* finishes runs in progress; ids of the worker are still answered */
        WORKER_DOWN,                       /* does not answer */
        WORKER_STATES
};

struct gateway_worker {
        struct gateway_worker *next;
        struct fleet *fleet;
        char name[254];                    /* of the pod, or HOST:PORT; the label of metrics */
        char uid[40];                      /* of the pod; "": a worker of the list */
        char url[300];                     /* http://HOST:PORT or https://HOST:PORT */
        char host[256];
        unsigned port;
        bool tls;
        enum worker_state state;
        bool cordoned;                     /* by the source: no new work, whatever the worker says */
        char why[200];                     /* of NOT_READY and DOWN */
        char tag[HOP_TAG_LEN + 1];         /* "": not known yet */
        char boot[33];                     /* of the worker's process; changes with a restart */
        char version[32], tier[8];
        char missing[200];                 /* features without support of the worker's host, between commas */
        uint64_t running, queued, slots;   /* as the worker said last */
        uint64_t sandboxes;                /* persistent sandboxes, contexts of theirs included */
        uint64_t audit_newest;             /* number of the newest row of its audit, as the worker said last */
        uint64_t audit_taken;              /* of the last row that the gateway has */
        bool audited;                      /* the gateway takes the audit of this worker */
        uint64_t sent;                     /* requests in flight of this gateway */
        uint64_t answered_us;              /* clock_us() of the last sign of life */
        uint64_t ready_us;                 /* clock_us() of the change to WORKER_READY */
        uint64_t down_us;                  /* the same to WORKER_DOWN */
        uint64_t added_us;                 /* clock_us() of fleet_add() */
        uint64_t requests, failures;       /* for metrics */
        void *source;                      /* the source's own; NULL */

        /* The fleet's own. */
        struct sockaddr_storage address;   /* of the host; ss_family 0: not known yet */
        struct lookup *lookup;             /* of the host's name */
        struct worker_call *heartbeat;
        struct timer heartbeat_timer;
        struct link *idle;                 /* waiting links, newest first */
        size_t idle_n;
        char restart_reason[64];           /* by fleet_restarted(), until a heartbeat shows the new process */
        unsigned refs;                     /* the table's and those of worker_ref() */
        bool removed;                      /* not in the table any more */
};

/* A lost worker. */
struct lost_worker {
        struct lost_worker *next;
        char name[254], tag[HOP_TAG_LEN + 1], boot[33];
        char reason[64];                   /* OOMKilled, Evicted, Error, Deleted, NodeLost, Unreachable, Restarted */
        int64_t at_ms;
};

/* News of workers, for the gateway and the pool. */
struct fleet_events {
        /* A worker became ready, or stopped to be. */
        void (*changed)(void *owner, struct gateway_worker *worker);
        /* A worker's process has ended: requests that it had accepted have no other end.  The worker is valid still. */
        void (*lost)(void *owner, struct gateway_worker *worker, const char *reason);
};

/* Create a fleet; the list gateway.workers is added.  keys: NULL, or must outlive the fleet.  Errors: CSN_E_CONFIG. */
int fleet_open(struct loop *loop, const struct settings *settings, const struct hop_keys *keys, struct fleet **ret,
        struct csn_error *err);
struct loop *fleet_loop(const struct fleet *fleet);
const struct settings *fleet_settings(const struct fleet *fleet);
const struct hop_keys *fleet_keys(const struct fleet *fleet);   /* NULL: calls are not signed */
void fleet_listen(struct fleet *fleet, const struct fleet_events *events, void *owner);   /* up to four listeners */
void fleet_close(struct fleet *fleet);   /* NULL is allowed */

/* ---- for sources ---- */

/*
 * Add a worker, or find the worker with this name and uid; its heartbeat begins at once.  A worker of the same name
 * with another uid or URL is lost before ("Deleted").  The worker is the fleet's.
 */
struct gateway_worker *fleet_add(struct fleet *fleet, const char *name, const char *uid, const char *url);
void fleet_cordon(struct gateway_worker *worker, bool cordoned);
/* The source says that the worker is gone; reason NULL: the source ends.  The worker must not be used any more. */
void fleet_remove(struct gateway_worker *worker, const char *reason);
/* The source says that the process in the worker was restarted, before a heartbeat tells. */
void fleet_restarted(struct gateway_worker *worker, const char *reason);

/* ---- for requests ---- */

struct gateway_worker *fleet_first(const struct fleet *fleet);
struct gateway_worker *fleet_by_tag(const struct fleet *fleet, const char *tag);   /* NULL: none */
struct gateway_worker *fleet_by_name(const struct fleet *fleet, const char *name);
struct gateway_worker *fleet_by_uid(const struct fleet *fleet, const char *uid);   /* NULL: none, or uid is "" */
const struct lost_worker *fleet_lost_tag(const struct fleet *fleet, const char *tag);   /* NULL: none */
/*
 * Choose a worker for new work: the less loaded of two random ready ones (load: running, queued and sent, over slots),
 * without those of `tried`, among the first `spread` by rendezvous hashing of `name`.  NULL: none is ready.
 */
struct gateway_worker *fleet_choose(struct fleet *fleet, const char *name, size_t spread,
        struct gateway_worker *const *tried, size_t tried_n);
/*
 * The first worker for a name by rendezvous hashing, without draining workers, among the first `spread` of the owner.
 * While the worker takes no work, the owner of the name is unknown, and no other worker may get the name.  NULL:
 * none.
 */
struct gateway_worker *fleet_home(const struct fleet *fleet, const char *owner, size_t spread, const char *name);
/*
 * Up to `max` workers that answer and are not cordoned, the first for a name by rendezvous hashing, without `except`:
 * the witnesses of a key (gateway/witness.c).  Returns their number.
 */
size_t fleet_witnesses(const struct fleet *fleet, const char *name, const struct gateway_worker *except,
        struct gateway_worker **ret, size_t max);
/*
 * Whether workers that do not answer may be all that know of a key, because the fleet is small and has changed: a
 * worker of then may have had fewer witnesses, or the witnesses are gone.
 */
bool fleet_may_hide_keys(const struct fleet *fleet);
/*
 * Whether another worker than `except` may take work soon: it came or went down a short time ago.
 */
bool fleet_awaits_worker(const struct fleet *fleet, const struct gateway_worker *except);
/* Whether the worker takes new work. */
bool worker_takes_work(const struct gateway_worker *worker);
/* Number of workers that take new work. */
size_t fleet_ready(const struct fleet *fleet);
struct gateway_worker *worker_ref(struct gateway_worker *worker);
void worker_unref(struct gateway_worker *worker);
/* A connection to the worker was refused or reset: down, and asked at once by a heartbeat. */
void worker_failed(struct gateway_worker *worker, const char *why);
/* The worker answered, with the value of HOP_LOAD_HEADER or NULL. */
void worker_answered(struct gateway_worker *worker, const char *load);
const char *worker_state_name(enum worker_state state);

#endif
