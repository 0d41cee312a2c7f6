/*
 * api: our own HTTP interface, /v1, those of other services, and what every daemon has beside it: health, metrics, its own
 * description.
 *
 *   api          the table of routes, who may use which, the life of the whole
 *   api_runs     runs: waited for, started and asked for later, or watched as they go on
 *   api_events   what happens in a run, as numbered events that can be read from any one on
 *   api_bulk     many runs over one connection, a line each
 *   api_sandboxes  persistent sandboxes, and the contexts in them
 *   api_sessions   sandboxes with one context each, for those who want no more
 *   api_processes  programs in them
 *   api_files    their files
 *   api_upload   many files in one body
 *   service_page     lists by pages
 *   api_stored   files that are kept
 *   api_workspaces  folders of users that last
 *   storage        both for runs
 *   api_info     checks, profiles, policies, languages, health
 *   api_trace    spans of requests, runs and their stages
 *   words        what these have in common, which speak the words of another service:
 *   compat_parse    what of it is text, not JSON
 *   fusion         SandboxFusion
 *   fusion_submit  its tests
 *   piston         Piston
 *   judge0         Judge0
 *   e2b/           E2B: a folder with a header of its own
 *   mcp/           the Model Context Protocol: likewise
 *   openapi      the table of routes and fields.def as OpenAPI 3.1, and pages that show them (openapi.h)
 *
 * A program that fails is an answer, and its status is in the record.  What could not be done is a problem (RFC 9457).
 */
#ifndef FRONT_API_H
#define FRONT_API_H

#include "engine/persistent/psandbox.h"
#include "front/views/views.h"
#include "front/http/http.h"
#include "front/service/otlp.h"
#include "grading/grading.h"
#include "store/store.h"

#define RETAINED_SHARES 256                     /* tenants are told apart in what is kept by so many */
#define SERVICE_KEEP_US (600 * 1000000ULL)     /* how long one can be asked for */
#define EVENTS_MAX (4 * MIB)           /* of one run; the oldest go */
#define EVENTS_KEEPALIVE_US (15 * 1000000ULL)      /* a sign of life on a stream on which nothing happens */

struct mcp_session;
struct mcp_call;

/* Bytes that can still be asked for, and whose they are: who has most loses his oldest first (events.c). */
struct retained {
        size_t bytes, of[RETAINED_SHARES];      /* by a number made of the tenant */
};

/* The Model Context Protocol (mcp/mcp.h); all zeros is none. */
struct mcp {
        struct mcp_session *sessions;
        size_t sessions_n;
        struct mcp_call *listening;        /* subscriptions/listen */
};

struct service {
        struct engine *engine;
        const struct settings *settings;
        struct loop *loop;
        struct http *http;                 /* engine.http; NULL: there is none */
        struct http *local;                /* beside engine.socket; NULL: there is none */
        struct http *inner;                /* routes that are asked by a front of ours (http_internal_request()) */
        const uid_t *local_uids;           /* who is answered there; none: everybody who may connect */
        size_t local_uids_n;
        struct store *store;               /* the daemon's; NULL: it has none, for there is no engine.http */
        struct otlp *otlp;                 /* NULL: nobody collects spans */
        void (*idle)(void *owner);         /* the last run that went on is over; called from the loop */
        void *owner;
        struct service_run *runs;              /* live, and those that can still be asked for */
        struct api_session *sessions;
        struct api_process *processes;     /* in sandboxes; live, and those that can still be asked for */
        uint64_t runs_made, sessions_made, processes_made;
        struct bulk *bulks;
        struct grader *grader;
        struct api_grading *gradings;      /* that are no line of a bulk */
        struct mcp mcp;
        struct piston *piston;             /* versions of interpreters, once somebody asked */
        struct e2b_sandbox *e2b;           /* the sandboxes that were made in E2B's words */
        struct build *builds;              /* of templates, that go on or are remembered (e2b/build.h) */
        struct retained processes_kept, kept;      /* of those that are over, and of runs; each up to engine.kept_bytes */
        size_t live;
        struct service_ability {
                struct run *probe;         /* a small program that goes on, or NULL */
                struct ready_wait *waiting;
                struct csn_error why;      /* why none can be run; code 0: they can */
                bool known;
                uint64_t at_us;
        } ability;                         /* to run programs (ready.c) */
        struct buf description, docs, problems;    /* that were asked for (openapi.h) */
        uint64_t started_us;
        uint64_t answers[6];               /* by the first digit of their status */
};

extern const struct http_route api_routes[];

/*
 * The listener of engine.http is taken, as by http_open(); -1: there is none.  Errors: those of http_open(); CSN_E_CONFIG: nobody
 * could use it, or everybody.
 */
int service_open(struct engine *engine, const struct settings *settings, struct store *store, int listener, bool ours,
                 void (*idle)(void *owner),
             void *owner, struct service **ret, struct csn_error *err);
/* And this one, for users of this host: their tenant is "uid:N", and they need no key. */
int service_serve_local(struct service *service, int listener, bool ours, const uid_t *uids, size_t uids_n,
                        struct csn_error *err);
const char *service_address(const struct service *service);   /* of engine.http; NULL: there is none */
void service_drain(struct service *service);           /* nothing new is begun */
bool service_is_idle(const struct service *service);   /* no run of ours goes on, and all answers have been read */
void service_cancel(struct service *service);          /* all of them end */
void service_close(struct service *service);
/* Settings or policies have changed. */
void service_changed(struct service *service);

/* Nothing of the run began, for a reason that lies here and not in its request; and that reason. */
bool service_ran_nothing(const struct run_result *result);
void service_error_of(const struct run_result *result, struct csn_error *ret);
/* What a run proves of the ability to run others; GET /readyz tells it. */
void service_note_run(struct service *service, const struct run_result *result);
void service_ready_close(struct service *service);

/* A request's body as an object of fields.def; answers with a problem where it is none. */
bool service_decode(struct http_request *request, const struct object *object, struct arena *arena, void *ret);
struct service *service_of(const struct http_request *request);

/* Whether a request may come in, by the text of its key; NULL: it has none.  Errors: those that were refused by http_refuse(). */
int service_admit(struct http_request *request, const char *text, struct csn_error *err);
/* The key that a request came with; NULL: it needed none. */
const struct store_key *service_key(const struct http_request *request);
/*
 * Whether its key lets a request say this of tools: only one with the scope may widen what the profile grants (NULL: that of the
 * settings).  Those that its client serves need nothing.  Errors: CSN_E_DENIED; those of profile_find().
 */
int service_check_tools(const struct http_request *request, const char *profile, const struct tools_request *tools,
                        struct csn_error *err);
/* Whether its tenant has CPU time for another run, which then has its quotas.  Errors: CSN_E_BUSY with *ret_limit, CSN_E_SYSTEM. */
int service_begin_run(const struct http_request *request, struct run *run, struct http_limit *ret_limit,
                      struct csn_error *err);
/* Only the first half of that; and the same of a tenant whose key is not there. */
int service_has_cpu_time(const struct http_request *request, struct http_limit *ret_limit, struct csn_error *err);
int service_tenant_has_cpu_time(const struct service *service, const char *tenant, uint64_t cpu_ms_per_day,
                                struct http_limit *ret_limit,
                            struct csn_error *err);

/* ---- runs in the words of others (compat.h) ---- */

struct run_responder {
        /* Of a run that its request waits for: it is over, and this answers. */
        void (*answer)(struct http_request *request, void *own, const struct run_result *result);
        void (*output)(void *own, int stream, const void *bytes, size_t len);   /* or NULL */
        void (*display)(void *own, json_t *bundle);   /* or NULL */
        void (*room)(void *own);           /* of a stream: half of what was queued has been read; or NULL */
        void (*gone)(void *own);           /* who waited does so no more, and the run ends; or NULL */
        void (*drop)(void *own);           /* once, whatever became of it; or NULL */
};

/*
 * Whether a run of this request's tenant may start now.  Errors: CSN_E_BUSY with *ret_limit, CSN_E_SYSTEM.  What run_set_storage() is
 * told after it counts.
 */
int service_may_run(struct http_request *request, struct run *run, bool in_context, struct http_limit *ret_limit,
                    struct csn_error *err);
/* That it may not. */
void service_answer_busy(struct http_request *request, const struct http_limit *limit, const struct csn_error *error);
/*
 * Start one that may.  With words the request waits for its end.  One that is kept can be asked for as those of respond-async.  `own`
 * has to live as long as the run.
 */
void service_start_run(struct http_request *request, struct run *run, const struct run_responder *words, void *own,
                       bool kept);

/* One of the tenant's that is kept: its run while it goes on, then its record as text; neither: there is none. */
struct service_found {
        struct run *run;
        const char *record;
        size_t len;
};
/* Errors: CSN_E_SYSTEM. */
int service_find_run(struct http_request *request, const char *id, struct service_found *ret, struct csn_error *err);

/* "Prefer: respond-async" and its like. */
bool api_prefers(const struct http_request *request, const char *word);
/* The number of the last event that a client has, by Last-Event-ID or ?after=.  False: it is none, and that is answered. */
bool api_after(struct http_request *request, uint64_t *ret);
/* As POST /v1/runs, in this context; NULL: in none. */
void api_post_run_in(struct http_request *request, const char *context);
/* The sandbox of the path; NULL: there is none, and that is answered. */
struct psandbox *api_psandbox(struct http_request *request);
/* The same of a context. */
struct context *api_context(struct http_request *request);
/* The same with the path of ?path=, which has to be there. */
struct psandbox *api_file_target(struct http_request *request, const char **ret_path);
/* The object `entry` of the interface. */
json_t *api_entry(const struct guest_entry *entry);
/* What an operation on files could not do, with the status of its errno. */
void api_file_error(struct http_request *request, const struct csn_error *error);
/* {code, message}; its text may be a guest's, or was cut anywhere. */
json_t *api_error(const struct csn_error *error);
/* ---- files that are kept ---- */

/* What a request's tenant may keep. */
struct store_room service_room(const struct http_request *request);
/* 413, 507 or what goes with the error. */
void service_fail_room(struct http_request *request, const struct csn_error *error);
/* The tenant's file or folder is not there, or is another's: the same 404. */
void api_no_such(struct http_request *request, const char *what);
/* Answers with a regular file, as an attachment; with Range, a part of it.  Takes the descriptor. */
void api_send_file(struct http_request *request, int fd, const char *name);

/* Keeping files for a run of this request, if its key may (run_storage.c). */
void run_storage_set(const struct http_request *request, struct run *run);
/* Whether the workspace that it names is free now.  Errors: CSN_E_BUSY. */
int run_storage_is_free(const struct http_request *request, const struct run_request *given, struct csn_error *err);
/* What a daemon that died left. */
void run_storage_sweep(struct store *store);
/* What has expired; true: there is more. */
bool run_storage_clean(struct store *store, const struct settings *settings);

/* ---- lists by pages (page.c) ---- */

/*
 * A list whose members have numbers: each new one a higher one, and the newest comes first.  ?limit= says how many a page has, and ?cursor= is
 * `next` of the page before, so a member that is made or removed meanwhile neither repeats nor hides another one.
 */
#define SERVICE_PAGE_MAX 1000
struct service_page {
        uint64_t most;                     /* how many it has */
        uint64_t below, below_second;      /* it begins behind this number, and of equal ones behind the second number */
        json_t *list;
        uint64_t last, last_second;        /* the numbers of the last one in it */
        bool more;                         /* there are members behind it */
};

/* `usual` is the limit where the query has none.  False: the query is wrong, and that is answered. */
bool service_page_begin(struct http_request *request, uint64_t usual, struct service_page *ret);
/* Whether a member belongs to the page; then it has to be appended to the list.  Asked in the order of the list; second: 0, or of equal numbers. */
bool service_page_has(struct service_page *page, uint64_t number, uint64_t second);
/* {name: [...], "next": "..."}; takes the list. */
void service_page_answer(struct http_request *request, struct service_page *page, const char *name);

/* 409: not in this state. */
void api_conflict(struct http_request *request, const struct csn_error *error);

/* ---- many over one connection (bulk.c) ---- */

struct bulk_one;                           /* a line that is not answered yet */

struct bulk_kind {
        /* Begins what a line asks for, without its id; bulk_answer() follows, from the loop, if it does not fail. */
        int (*begin)(struct http_request *request, struct bulk_one *one, json_t *json, void **ret_job, struct csn_error *err);
        void (*cancel)(void *job);
};

void bulk_begin(struct http_request *request, const struct bulk_kind *kind);
/* The answer has this member; takes the reference.  `one` is gone then, and its job has to be, too. */
void bulk_answer(struct bulk_one *one, const char *name, json_t *json);
struct log_context bulk_context(const struct bulk_one *one);
const char *bulk_key(const struct bulk_one *one);
const struct trace *bulk_trace(const struct bulk_one *one);

/* ---- what is kept of what is over, and events (events.c) ---- */

void retained_add(struct retained *kept, const char *tenant, size_t bytes);
void retained_drop(struct retained *kept, const char *tenant, size_t bytes);
/* What whoever has most has, and what a tenant has; with 256 shares two may have one. */
size_t retained_most(const struct retained *kept);
size_t retained_of(const struct retained *kept, const char *tenant);

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
        struct reader *flow_control;              /* for whom nothing may be lost, or NULL */
        void (*room)(struct events *events);   /* it has read; more may come */
        bool over;
};

void events_init(struct events *events);
void events_done(struct events *events);   /* readers are cut */
size_t events_bytes(const struct events *events);
void events_start(struct events *events, const char *id);
/* The first one of something else than a run, and its last.  Take the reference. */
void events_begin(struct events *events, json_t *json);
void events_finish(struct events *events, json_t *record);
/* Any other one; takes the reference.  "type" is its first member. */
void events_tell(struct events *events, json_t *json);
void events_display(struct events *events, json_t *bundle);
void events_output(struct events *events, int stream, const void *bytes, size_t len);
/* The last one: it has the record, as text. */
void events_end(struct events *events, const char *record, size_t len);
/*
 * Answer a request with all events after an id, and those to come unless it says ?follow=false, as text/event-stream or
 * application/x-ndjson.
 */
void events_send(struct events *events, struct http_request *request, uint64_t after, bool ndjson);

/* The last reader sets the pace: while events_wait() nothing should be added, until room(). */
void events_set_flow_control(struct events *events, void (*room)(struct events *events));
bool events_wait(const struct events *events);

/* Events that nobody can ask for later: the stream begins with the first.  Take the reference; "type" is its first member. */
void events_begin_line(struct http_request *request, json_t *json);
void events_line(struct http_request *request, json_t *json);

/* ---- handlers ---- */

void api_post_run(struct http_request *request);
void api_bulk(struct http_request *request);
void bulks_cancel(struct service *service);
void api_grade(struct http_request *request);
void api_cancel_gradings(struct service *service);
void api_close_gradings(struct service *service);
void api_get_run(struct http_request *request);
void api_list_runs(struct http_request *request);
void api_delete_run(struct http_request *request);
void api_get_events(struct http_request *request);
void api_post_tool_results(struct http_request *request);
void service_runs_close(struct service *service);

/*
 * A run is about to begin, and is in the audit even if this daemon is killed.  name: that of its request, or NULL; kept: it can be asked for later.
 * Errors: CSN_E_BUSY with err->sys (ENOSPC): there is no room for that, and it must not begin.
 */
int audit_begin(struct store *store, const struct log_context *about, const char *key, struct run *run, const struct idempotency *name, bool kept,
                struct csn_error *err);
/* Runs that went on when a daemon died. */
void audit_recover(struct store *store);
/* A run that is over, into the audit, if there is one, and into the log (front/service/audit.c).  key and texts of `about` are "" or NULL where there was none. */
void audit_run(struct store *store, const struct log_context *about, const char *key, struct run *run, const struct run_result *result);

void api_post_sandbox(struct http_request *request);
void api_list_sandboxes(struct http_request *request);
void api_get_sandbox(struct http_request *request);
void api_patch_sandbox(struct http_request *request);
void api_delete_sandbox(struct http_request *request);
void api_pause_sandbox(struct http_request *request);
void api_resume_sandbox(struct http_request *request);
void api_sandbox_metrics(struct http_request *request);
void api_post_context(struct http_request *request);
void api_list_contexts(struct http_request *request);
void api_get_context(struct http_request *request);
void api_delete_context(struct http_request *request);
void api_interrupt_context(struct http_request *request);
void api_restart_context(struct http_request *request);
void api_post_context_run(struct http_request *request);
void api_post_session(struct http_request *request);
void api_list_sessions(struct http_request *request);
void api_get_session(struct http_request *request);
void api_delete_session(struct http_request *request);
void api_post_session_run(struct http_request *request);
void api_sessions_close(struct service *service);
void api_post_process(struct http_request *request);
void api_list_processes(struct http_request *request);
void api_get_process(struct http_request *request);
void api_process_events(struct http_request *request);
void api_process_stdin(struct http_request *request);
void api_process_signal(struct http_request *request);
void api_process_size(struct http_request *request);
void api_delete_process(struct http_request *request);
void api_processes_close(struct service *service);
void api_list_files(struct http_request *request);
void api_stat_file(struct http_request *request);
void api_delete_file(struct http_request *request);
void api_watch_files(struct http_request *request);
void api_change_file(struct http_request *request);
void api_get_file(struct http_request *request);
void api_put_file(struct http_request *request);
/* ---- spans (tracing.c) ---- */

void trace_admitted(const struct service *service, struct http_request *request);
void trace_request(const struct service *service, const struct http_request *request);   /* which is over */
void trace_run(const struct service *service, const struct trace *trace, struct run *run,
               const struct run_result *result);
void trace_metrics(const struct service *service, struct buf *buf);
void api_post_files(struct http_request *request);

void api_post_stored(struct http_request *request);
void api_list_stored(struct http_request *request);
void api_get_stored(struct http_request *request);
void api_stored_info(struct http_request *request);
void api_delete_stored(struct http_request *request);
void api_list_workspaces(struct http_request *request);
void api_delete_workspace(struct http_request *request);
void api_workspace_files(struct http_request *request);
void api_workspace_get(struct http_request *request);
void api_workspace_put(struct http_request *request);
void api_workspace_delete(struct http_request *request);

void api_check(struct http_request *request);
void api_profiles(struct http_request *request);
void api_profile(struct http_request *request);
void api_policies(struct http_request *request);
void api_policy(struct http_request *request);
void api_languages(struct http_request *request);
void api_logs(struct http_request *request);
void api_health(struct http_request *request);
void api_ready(struct http_request *request);
void api_metrics(struct http_request *request);

void fusion_run_code(struct http_request *request);
void fusion_list_datasets(struct http_request *request);
void fusion_dataset(struct http_request *request);
void fusion_submit(struct http_request *request);
void fusion_ping(struct http_request *request);
void piston_execute(struct http_request *request);
void piston_runtimes(struct http_request *request);
void piston_close(struct piston *piston);
void judge0_submit(struct http_request *request);
void judge0_submission(struct http_request *request);
void judge0_submit_batch(struct http_request *request);
void judge0_batch(struct http_request *request);
void judge0_languages(struct http_request *request);
void judge0_language(struct http_request *request);
void judge0_statuses(struct http_request *request);
void judge0_config(struct http_request *request);
void judge0_about(struct http_request *request);

void api_openapi(struct http_request *request);
void api_docs(struct http_request *request);
void api_problems(struct http_request *request);

#endif
