/*
 * service: what the HTTP fronts share: the engine, the listeners, keys and quotas, the life of runs, files that outlive
 * a run.
 *
 *   front.h         a front, as the service calls it
 *   service.[ch]    open and close; events of the daemon, handed on to the fronts
 *   request.c       the service of a request, its key, and the limits of its tenant
 *   admission.c     admission by key, user and Origin, and of gateways
 *   run.h, runs.c   the life of a run that a request started
 *   ready.c         the last known ability of this host to run programs
 *   events.[ch]     numbered events of a run, and their readers; ceilings of memory for results that are kept
 *   bulk.[ch]       many requests in one body, one a line
 *   page.[ch]       lists by pages
 *   parse.[ch]      JSON from clients within ceilings, long texts by helper threads
 *   json_body.[ch]  a body of JSON in the format of another service
 *   run_storage.c   stored files and workspaces as the engine uses them; workspace.[ch]
 *   audit.c         rows of the audit and lines of the log, usage of models
 *   tracing.c       spans of requests, runs and stages; otlp.[ch]
 *
 * A handler of any front gets the service of its request by service_of().  All functions are called from the event
 * loop. A program that fails is an answer, and its status is in the record; failures of the service are problems (RFC
 * 9457).
 */
#ifndef FRONT_SERVICE_SERVICE_H
#define FRONT_SERVICE_SERVICE_H

#include "engine/persistent/context.h"
#include "front/views/views.h"
#include "front/http/http.h"
#include "front/service/events.h"
#include "front/service/front.h"
#include "front/service/otlp.h"
#include "store/store.h"

#define SERVICE_DAY_MS 86400000LL               /* milliseconds for which CPU time counts in cpu_ms_per_day */
#define SERVICE_SESSIONS_MAX 1000               /* sessions of all tenants that a front keeps between requests */
#define SERVICE_KEEP_US (600 * 1000000ULL)      /* microseconds for which the result of a kept run can be asked for */
/* bytes of a record that the loop writes into the store; a helper thread writes a longer one (long_record.h) */
#define SERVICE_STORED_MAX (1 * MIB)

struct service_run;
struct bulk;
struct hop_worker;

/* The last known ability of this host to run programs (ready.c). */
struct service_ability {
        struct run *probe;                 /* the running probe program, or NULL */
        struct ready_wait *waiting;        /* requests waiting for the end of the probe */
        struct csn_error why;              /* why no program can be run; code 0: programs can */
        bool known;
        uint32_t losses;                   /* engine_answers() then: a supervisor lost since makes the rest unknown */
        uint64_t at_us;                    /* time of the last answer; 0: nothing was learned yet */
        bool lacks_cgroup;                 /* the last probe program ran without a controller */
};

/* What this host gives to sandboxes, as the daemon found at its start. */
struct service_host {
        char tier[8];                      /* of a pod or container, "A" to "F"; "host" outside of these */
        char missing[200];                 /* features that are not there, with blanks between */
};

struct service {
        struct engine *engine;
        const struct settings *settings;
        struct loop *loop;
        const struct front *const *fronts; /* ends with NULL */
        void **states;                     /* of the fronts, in their order; see service_state() */
        struct http_route *routes;         /* of all fronts, in their order; ends with a NULL path */
        struct http_app app;               /* these routes, admitted by service_admit_own() */
        struct shares *shares;             /* what tenants and clients hold of bounded resources */
        struct http *http;                 /* engine.http; NULL: the setting is empty */
        struct http *local;                /* beside engine.socket, for users of this host; NULL: there is none */
        struct http *inner;                /* the routes for requests of fronts themselves (http_internal_request()) */
        const uid_t *local_uids;           /* users that `local` answers; none: all that may connect */
        size_t local_uids_n;
        struct tools *tools;               /* the daemon's; NULL: no servers of tools */
        struct store *store;               /* the daemon's; NULL: engine.http is empty, and nothing is kept */
        struct otlp *otlp;                 /* NULL: no collector of spans is set */
        struct hop_worker *worker;         /* the daemon's; NULL: this is no worker of a gateway */
        const struct service_host *host;   /* the daemon's; NULL: nothing is known of this host */
        void (*idle)(void *owner);         /* called when service_is_idle() became true */
        void *owner;
        struct service_run *runs;          /* running, and kept after the end; newest first */
        uint64_t newest_run;               /* by clock_number() */
        struct bulk *bulks;
        struct retained kept;              /* results of runs; at most engine.kept_bytes */
        size_t live;                       /* running jobs of requests: runs, bulks, gradings */
        bool has_page;                     /* this program has the files of the page at /ui/ */
        struct service_ability ability;
        uint64_t started_us;
        uint64_t answers[6];               /* by the first digit of their status */
};

/* ---- life ---- */

/*
 * Open the service for these fronts (a constant list ending with NULL).  The listener of engine.http is taken in any
 * case, as by http_open(); -1: there is none.  idle() is called from the loop.  Errors: those of http_open() and
 * otlp_open(); CSN_E_CONFIG: HTTP without a key that could be used, or without keys at an address within reach of other
 * hosts.
 */
int service_open(struct engine *engine, const struct settings *settings, struct store *store,
        const struct front *const *fronts, int listener, bool ours, void (*idle)(void *owner), void *owner,
        struct service **ret, struct csn_error *err);
/*
 * Serve users of this host at a second listener: their tenant is "uid:N", and no key is needed.  uids stay the
 * caller's.
 */
int service_serve_local(struct service *service, int listener, bool ours, const uid_t *uids, size_t uids_n,
        struct csn_error *err);
const char *service_address(const struct service *service);   /* of engine.http; NULL: there is none */
void service_drain(struct service *service);           /* begin nothing new */
/* CSN_E_BUSY after service_drain(), else 0; the same with and without engine.http. */
int service_draining(const struct service *service, struct csn_error *err);
bool service_is_idle(const struct service *service);   /* no job goes on, and all answers have been read */
void service_cancel(struct service *service);          /* end all jobs; their clients get the results */
void service_changed(struct service *service);         /* settings or policies were read again */
void service_close(struct service *service);           /* NULL is allowed */

/* The state of a front of the service: state_size bytes, zero at first, freed by service_close(). */
void *service_state(const struct service *service, const struct front *front);
/* The same by the name of the front, for files below the front. */
void *service_state_of(const struct service *service, const char *name);

/* ---- admission (admission.c) ---- */

/* A request at engine.http with a valid signature of a gateway; request->caller. */
struct service_caller {
        const struct store_key *key;       /* of the claims; NULL: none, or the keys are the worker's */
        bool keys_are_gateways;            /* the request's own key does not count */
        const char *attempt;               /* its id, set by service_begin(); NULL: none was admitted */
};
/* NULL: the request has no signature. */
const struct service_caller *service_caller(const struct http_request *request);
/*
 * Events of struct http_events.  With gateway.key_file service_greet() refuses requests without a signature, but GET
 * /healthz and GET /readyz; service_begin() remembers the attempt, and service_over() that its request has ended;
 * service_answering() adds the load.
 */
int service_greet(struct service *service, struct http_request *request, struct csn_error *err);
int service_begin(struct service *service, struct http_request *request, struct csn_error *err);
void service_answering(struct service *service, struct http_request *request);
void service_over(const struct service *service, const struct http_request *request);
/* The request is refused before it begins anything: its gateway may send it to another worker. */
void service_bar_attempt(const struct http_request *request);

/*
 * Admit a request by the text of its key; NULL: the request has none.  On success request->key and request->tenant are
 * set. Errors are answered by http_refuse().
 */
int service_admit(struct http_request *request, const char *text, struct csn_error *err);
/* Whether the claims of a gateway, and no key in the request, say whose the request is (gateway.keys = gateway). */
bool service_is_claimed(const struct http_request *request);
/* service_admit() for the service's own routes: the key is in Authorization, X-API-Key or X-Auth-Token. */
int service_admit_own(struct http_request *request, struct csn_error *err);
/* ---- pages (admission.c) ---- */

/* Why a request does not see the page; NULL: the page is shown. */
const char *service_no_page(const struct http_request *request);
/*
 * Check a request for a page or a file of a page: its Host has to be an address, a local name or a name of
 * http.allowed_hosts, and an Origin the same.  Errors: CSN_E_DENIED.
 */
int service_check_page(const struct http_request *request, struct csn_error *err);

/*
 * Check that the key may ask for these tools: without SCOPE_TOOLS a request may only narrow the tools of its profile
 * (NULL: the profile of the settings).  Tools served by the client need no scope.  Errors: CSN_E_DENIED; those of
 * profile_find().
 */
int service_check_tools(const struct http_request *request, const char *profile, const struct tools_request *tools,
        struct csn_error *err);

/*
 * The tools of the profile for programs of this request's tenant, as tools_describe().  named: with the scope tools, or
 * without keys, also tools for which a run needs an entry in tools.allow.  NULL: the profile has no tools.  The
 * caller's reference.
 */
json_t *service_tools(const struct http_request *request, const char *profile, bool named);

/* ---- a request and its tenant (request.c) ---- */

/* The service of a request that a listener of the service got. */
struct service *service_of(const struct http_request *request);
/* The key of an admitted request; NULL: none was needed. */
const struct store_key *service_key(const struct http_request *request);
/* Whether the request has the rights of an administrator: by its key, or without keys by its user. */
bool service_is_admin(const struct http_request *request);
/*
 * The tenant of the objects that a request asks for, in the request's arena: the request's own, or for an
 * administrator that of ?tenant=; NULL: all.  Errors: CSN_E_DENIED.
 */
int service_asked_tenant(struct http_request *request, const char **ret, struct csn_error *err);
/* The quotas of the request's key; without a key: no limits. */
struct run_quota service_quota(const struct http_request *request);
/* Whether the tenant has CPU time left within 24 hours.  Errors: CSN_E_BUSY with *ret_limit, CSN_E_SYSTEM. */
int service_has_cpu_time(const struct http_request *request, struct http_limit *ret_limit, struct csn_error *err);
/* The same for a tenant without a request; cpu_ms_per_day: milliseconds, 0: no limit. */
int service_tenant_has_cpu_time(const struct service *service, const char *tenant, uint64_t cpu_ms_per_day,
        struct http_limit *ret_limit, struct csn_error *err);
/* The limits of the tenant's stored files, in bytes. */
struct store_room service_room(const struct http_request *request);
/* Answer an error of the store: 413, 507, or the status of its code. */
void service_fail_room(struct http_request *request, const struct csn_error *error);
/* Decode the body as an object of fields.def into *ret; texts live in the arena.  False: an error was answered. */
bool service_decode(struct http_request *request, const struct object *object, struct arena *arena, void *ret);

/* ---- runs of requests (runs.c) ---- */

/* How a front answers for a run in its own format.  Members may be NULL, except answer(). */
struct run_responder {
        /* Make what answer() sends, as encode() of struct run_events; also of a run whose client has gone. */
        void (*encode)(void *own, const struct run_result *result);
        /* The run of a waiting request is over: answer the request. */
        void (*answer)(struct http_request *request, void *own, const struct run_result *result);
        void (*output)(void *own, int stream, const void *bytes, size_t len);   /* stream: 1 or 2 */
        display_encoder *(*display_encoder)(void *own);                         /* as in struct run_events */
        void (*display)(void *own, const char *text, size_t len);
        void (*room)(void *own);           /* half of the queued bytes of a streamed answer were read */
        void (*gone)(void *own);           /* the client of a waiting request has gone, and the run ends */
        void (*drop)(void *own);           /* free `own`; called once, in every case */
};

/* Give a run the owner, storage and quotas of its request.  Errors: those of service_has_cpu_time(). */
int service_begin_run(const struct http_request *request, struct run *run, struct http_limit *ret_limit,
        struct csn_error *err);
/* Whether a run of this request's tenant may start now.  Errors: CSN_E_BUSY with *ret_limit, CSN_E_SYSTEM. */
int service_may_run(struct http_request *request, struct run *run, struct http_limit *ret_limit, struct csn_error *err);
/*
 * Whether a program of a tenant may start in a sandbox now, which then has these quotas.  Errors: as service_may_run().
 */
int service_may_begin_program(const struct service *service, const char *tenant, const struct run_quota *quota,
        struct psandbox *psandbox, struct http_limit *ret_limit, struct csn_error *err);
/* Answer a request whose run may not start. */
void service_answer_busy(struct http_request *request, const struct http_limit *limit, const struct csn_error *error);
/*
 * Start a run after service_may_run(); the run is the service's from here on.  With a responder the request waits for
 * the end of the run.  kept: its record can be asked for later, like that of respond-async.  `own` has to live as long
 * as the run.
 */
void service_start_run(struct http_request *request, struct run *run, const struct run_responder *responder, void *own,
        bool kept);

/*
 * A kept run of the tenant: while running the run, afterwards its record: a text, or a file.  Without these the tenant
 * has no such run.
 */
struct service_found {
        struct run *run;
        const char *record;                /* or NULL; valid until the handler returns */
        int fd;                            /* the caller's, for reading from offset 0 on; or -1 */
        size_t len;                        /* bytes of the text, or of the file */
};
/* Errors: CSN_E_SYSTEM. */
int service_find_run(struct http_request *request, const char *id, struct service_found *ret, struct csn_error *err);

/* ---- readiness (ready.c) ---- */

/* Whether nothing of the run began, for a reason in this host and not in the request; and the error of this reason. */
bool service_ran_nothing(const struct run_result *result);
void service_error_of(const struct run_result *result, struct csn_error *ret);
/* Learn from the end of a run whether this host can run programs. */
void service_note_run(struct service *service, const struct run_result *result);
/* Answer whether programs can be run now: 200 or 503.  A small program is run first where nothing recent is known. */
void service_answer_ready(struct http_request *request);
/*
 * The same at once, by what is known: where nothing recent is known, a small program is started for the next answer.
 */
bool service_is_ready(struct service *service, struct csn_error *ret_why);
/* The names of features that this host does not give to sandboxes.  The caller's reference. */
json_t *service_missing(const struct service *service);
void service_ready_close(struct service *service);

/* ---- files that outlive a run (run_storage.c) ---- */

/* Let a run of this request keep files, if the key has SCOPE_FILES. */
void run_storage_set(const struct http_request *request, struct run *run);
/*
 * The same in place of run_storage_set(), for a front with sessions: files have ids of id_new_compact(), and names by
 * stored_name_of_path().  false: the run can keep no files.
 */
bool run_storage_set_session(const struct http_request *request, struct run *run);
/* A path as a name of a stored file, which has no slash: "%2F" is a slash, "%25" a percent sign; and the path again. */
char *stored_name_of_path(struct arena *arena, const char *path);
char *stored_path_of_name(struct arena *arena, const char *name);
/* Whether the workspace that a request names is free now.  Errors: CSN_E_BUSY. */
int run_storage_is_free(const struct http_request *request, const struct run_request *given, struct csn_error *err);
/* Remove unfinished files of dead daemons. */
void run_storage_sweep(struct store *store);
/* Remove some expired files; true: more have expired. */
bool run_storage_clean_files(struct store *store);
/* Remove some expired workspaces; helper threads remove the folders.  true: more have expired. */
bool run_storage_clean_workspaces(struct store *store, struct workers *workers, const struct settings *settings);

/* ---- volumes (run_storage.c) ---- */

/* Let runs and sandboxes of the engine find the volumes of the store, and remove what dead daemons began to make. */
void service_open_volumes(struct engine *engine, struct store *store);
/* The order to make a volume with so many bytes, or to remove it: 0. */
void volume_order_of(const struct store_volume *volume, uint64_t bytes, struct wire_volume_order *ret);

/* ---- the audit (audit.c) ---- */

/*
 * Write that a run is about to begin, so that the audit has the run even if this daemon is killed.  store may be NULL.
 * name: the Idempotency-Key of the request, or NULL; kept: the result can be asked for later.  Errors: CSN_E_BUSY with
 * err->sys (ENOSPC): the disk is full, and the run must not begin.
 */
int audit_begin(struct store *store, const struct log_context *about, const char *key, struct run *run,
        const struct idempotency *name, bool kept, struct csn_error *err);
/* Settle the runs of dead daemons. */
void audit_recover(struct store *store);
/*
 * Write an ended run into the audit (if store is not NULL) and the log.  key and texts of `about` are "" or NULL if
 * unknown.
 */
void audit_run(struct store *store, const struct log_context *about, const char *key, struct run *run,
        const struct run_result *result);

/* ---- usage of models (audit.c) ---- */

/* Keep what reviews of the engine use in the store, which outlives the engine, and hold keys to their budgets. */
void service_open_usage(struct engine *engine, struct store *store);

/* ---- spans (tracing.c) ---- */

void trace_admitted(const struct service *service, struct http_request *request);
void trace_request(const struct service *service, const struct http_request *request);   /* after the answer */
void trace_run(const struct service *service, const struct trace *trace, struct run *run,
        const struct run_result *result);
void trace_metrics(const struct service *service, struct buf *buf);   /* for Prometheus */

#endif
