/*
 * api: our own HTTP interface, /v1, and what every daemon has beside it: health, metrics, its own description.
 *
 *   api          the table of routes, who may use which, the life of the whole
 *   api_runs     runs: waited for, started and asked for later, or watched as they go on
 *   api_events   what happens in a run, as numbered events that can be read from any one on
 *   api_bulk     many runs over one connection, a line each
 *   api_info     checks, profiles, policies, languages, health
 *   openapi      the table of routes and fields.def as OpenAPI 3.1, and a page that shows it
 *
 * A program that fails is an answer, and its status is in the record.  What could not be done is a problem (RFC 9457).
 */
#ifndef FRONT_API_H
#define FRONT_API_H

#include "front/front.h"
#include "front/http.h"
#include "store/store.h"

#define API_KEPT_MAX (256 * MIB)           /* records and events of runs that are over */
#define API_KEEP_US (600 * 1000000ULL)     /* how long one can be asked for */
#define API_EVENTS_MAX (4 * MIB)           /* of one run; the oldest go */
#define API_BEAT_US (15 * 1000000ULL)      /* a sign of life on a stream on which nothing happens */

struct api {
        struct engine *engine;
        const struct settings *settings;
        struct loop *loop;
        struct http *http;
        struct store *store;               /* the daemon's */
        void (*idle)(void *owner);         /* the last run that went on is over; called from the loop */
        void *owner;
        struct api_run *runs;              /* live, and those that can still be asked for */
        size_t live, kept;                 /* kept: bytes */
        uint64_t started_us;
        uint64_t answers[6];               /* by the first digit of their status */
};

extern const struct http_route api_routes[];

/* Listens as engine.http says.  Errors: those of http_open(); CSN_E_CONFIG: nobody could use it, or everybody. */
int api_open(struct engine *engine, const struct settings *settings, struct store *store, void (*idle)(void *owner), void *owner, struct api **ret,
             struct csn_error *err);
const char *api_address(const struct api *api);
void api_drain(struct api *api);           /* new requests are refused */
bool api_is_idle(const struct api *api);   /* no run of ours goes on, and all answers have been read */
void api_cancel(struct api *api);          /* all of them end */
void api_close(struct api *api);

/* A request's body as an object of fields.def; answers with a problem where it is none. */
bool api_decode(struct http_request *request, const struct object *object, struct arena *arena, void *ret);
struct api *api_of(const struct http_request *request);

/* The key that a request came with; NULL: it needed none. */
const struct store_key *api_key(const struct http_request *request);
/* Whether its tenant may start another run now, which then has its quotas.  Errors: CSN_E_BUSY. */
int api_begin_run(const struct http_request *request, struct run *run, struct csn_error *err);

/* ---- events (api_events.c) ---- */

/* The events of one run: bytes of JSON lines, of which the first may be gone. */
struct event {
        uint64_t id;
        size_t at, len;                    /* in the text */
};

struct events {
        struct buf text;
        struct event *list;
        size_t n, size;
        uint64_t next_id;
        struct buf rest[3];                /* of a stream: bytes of a character that is not whole yet */
        struct reader *readers;
        bool over;
};

void events_init(struct events *events);
void events_done(struct events *events);   /* readers are cut */
size_t events_bytes(const struct events *events);
void events_start(struct events *events, const char *id);
void events_output(struct events *events, int stream, const void *bytes, size_t len);
/* The last one: it has the record, as text. */
void events_end(struct events *events, const char *record, size_t len);
/*
 * Answer a request with all events after an id, and those to come, as text/event-stream or application/x-ndjson.
 */
void events_send(struct events *events, struct http_request *request, uint64_t after, bool ndjson);

/* ---- handlers ---- */

void api_post_run(struct http_request *request);
void api_bulk(struct http_request *request);
void api_get_run(struct http_request *request);
void api_list_runs(struct http_request *request);
void api_delete_run(struct http_request *request);
void api_get_events(struct http_request *request);
void api_runs_close(struct api *api);

/* A run that is over, into the audit (audit.c).  key is "" where there was none. */
void audit_run(struct store *store, const char *tenant, const char *key, struct run *run, const struct run_result *result);

void api_check(struct http_request *request);
void api_profiles(struct http_request *request);
void api_profile(struct http_request *request);
void api_policies(struct http_request *request);
void api_policy(struct http_request *request);
void api_languages(struct http_request *request);
void api_health(struct http_request *request);
void api_ready(struct http_request *request);
void api_metrics(struct http_request *request);
void api_openapi(struct http_request *request);
void api_docs(struct http_request *request);

#endif
