/*
 * watch: the rights of a caller, a stream of the daemon's events, and figures of the last hour.
 *
 *   front.c    the front: its routes and their description
 *   me.c       GET /v1/me: the caller's key and its rights
 *   keys.c     GET /v1/keys: all keys, for an administrator
 *   feed.c     the last events of the daemon in a bounded ring, and their readers
 *   events.c   GET /v1/events: from happenings of the engine and changes of pools to events of the feed
 *   series.c   GET /v1/metrics/series: figures of the last hour, in steps of ten seconds
 *
 * A stream shows objects of its tenant alone.  Requests of administrators may ask for other tenants.
 */
#ifndef FRONT_WATCH_WATCH_H
#define FRONT_WATCH_WATCH_H

#include "front/service/service.h"

/* ---- the feed (feed.c) ---- */

#define FEED_EVENTS_MAX 8192               /* kept events, for readers with Last-Event-ID or in arrears */
#define FEED_BYTES_MAX (4 * MIB)           /* bytes of their texts */
#define FEED_LINE_MAX 1024                 /* bytes of an event */
#define FEED_GATHER_US 20000               /* microseconds from an event to its delivery: events are gathered */
#define FEED_STEP_US 2000                  /* microseconds of a step of the loop for readers */
#define FEED_PAUSE_US 1000                 /* microseconds between two steps */

struct feed_event {
        uint64_t id;                       /* rises, also over restarts of the daemon */
        unsigned type;                     /* a bit */
        unsigned json_at, text_len;        /* in the text: where the JSON begins, and the bytes of the whole event */
        char tenant[80];                   /* the owner; "": none, and every reader of the type gets the event */
        char text[];                       /* in the format of text/event-stream */
};

struct feed_reader {
        struct feed_reader *prev, *next;
        struct feed *feed;
        struct http_request *request;
        unsigned types;                    /* bits of the wanted events */
        const char *tenant;                /* in the request's arena; NULL: of all tenants */
        uint64_t at;                       /* number of the next event in the order of the ring */
        bool ndjson;
        bool waits;                        /* its client has to read first */
        struct timer keepalive;
        uint64_t sent_us;                  /* time of the last event or comment */
};

struct feed {
        struct loop *loop;
        struct feed_event *ring[FEED_EVENTS_MAX];
        uint64_t first, end;               /* numbers of the oldest event, and behind the newest */
        size_t bytes;
        uint64_t newest_id;
        struct feed_reader *readers, *turn;   /* turn: the next reader of this round, or NULL */
        size_t readers_n;
        struct timer round;                /* serves the readers */
};

void feed_open(struct feed *feed, struct loop *loop);
/* Add an event; json begins with {"type":"…" and is complete.  `name` is the type's. */
void feed_add(struct feed *feed, unsigned type, const char *name, const char *tenant, const char *json, size_t len);
/* Answer with the events after `after`; 0: with new events alone.  The request was admitted by events_admit(). */
void feed_send(struct feed *feed, struct http_request *request, unsigned types, const char *tenant, uint64_t after);
/* Whether a stream gets events of the types. */
bool feed_is_read(const struct feed *feed, unsigned types);
void feed_end_all(struct feed *feed);      /* end all streams; the connections go on */
void feed_close(struct feed *feed);        /* cut all streams, and free the events */

/* ---- events (events.c) ---- */

struct watch_events {
        struct feed feed;
        struct timer pools;                /* compares the pools with `seen`, while a stream shows pools */
        json_t *seen;                      /* the pools at the last look, or NULL */
};

void watch_open_events(struct service *service);
void watch_end_events(struct service *service);
void watch_close_events(struct service *service);
void watch_get_events(struct http_request *request);

/* ---- series (series.c) ---- */

#define SERIES_STEP_S 10
#define SERIES_STEPS 360                   /* an hour */
#define SERIES_LATENCIES_MAX 1024          /* durations of a step for its quantiles; a random choice of more */

enum watch_series {
        SERIES_RUNS,
        SERIES_LATENCY_P50,
        SERIES_LATENCY_P99,
        SERIES_QUEUE_DEPTH,
        SERIES_RUNNING,
        SERIES_POOL_READY,
        SERIES_MEMORY,
        SERIES_DENIALS,
        SERIES_ERRORS,
        SERIES_FAILURES,
        SERIES_CPU,
        SERIES_SANDBOXES,
        SERIES_CONTEXTS,
        SERIES_REQUESTS,
        SERIES_CONNECTIONS,
        SERIES_N
};

struct watch_samples {
        struct timer timer;
        int64_t newest_s;                  /* seconds since 1970 of the newest sample; 0: there is none */
        size_t n, at;                      /* number of samples, and place of the next sample */
        double values[SERIES_STEPS][SERIES_N];  /* NAN: nothing to tell */
        int64_t times[SERIES_STEPS];
        /* Of the current step, and sums at its begin. */
        uint64_t runs, errors, failures, seen;
        float latencies[SERIES_LATENCIES_MAX];
        struct { uint64_t denied, answers, us; double cpu_seconds; } before;
};

void watch_open_series(struct service *service);
void watch_close_series(struct service *service);
/* A run is over. */
void watch_count_run(struct watch_samples *samples, const struct run_result *result);
void watch_get_series(struct http_request *request);

/* ---- the caller (me.c) ---- */

void watch_get_me(struct http_request *request);
/* The scopes of a key as a list, and its quotas (me_quotas).  The caller's references. */
json_t *watch_scopes(unsigned scopes);
json_t *watch_quotas(const struct store_key *key);

/* ---- keys (keys.c) ---- */

void watch_list_keys(struct http_request *request);

/* ---- the front (front.c) ---- */

struct watch_state {
        struct watch_events events;
        struct watch_samples samples;
};

static inline struct watch_state *watch_state(const struct service *service)
{
        return service_state_of(service, "watch");
}

extern const struct front watch_front;

#endif
