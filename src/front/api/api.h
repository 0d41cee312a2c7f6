/*
 * api: our own HTTP interface, /v1, and the operation of the daemon: health, metrics, the log, the description of all
 * fronts.
 *
 *   routes.c        the front of /v1: its routes
 *   operations.c    the front of the daemon's operation: its routes, health, metrics and the log
 *   runs.c          runs and tool results; many runs in one body
 *   run_list.c      lists of runs
 *   run_text.c      records of runs as text
 *   grade.c         gradings
 *   sandboxes.c     persistent sandboxes and their contexts
 *   processes.c     programs in sandboxes
 *   files.c         files in sandboxes; upload.c files of a request
 *   sessions.c      a sandbox with one context
 *   stored_files.c  stored files; workspaces.c folders that last from run to run
 *   images.c        images
 *   volumes.c       volumes
 *   usage.c         usage of models
 *   layers.c        layers of packages
 *   gateway.c       the front for gateways: status, attempts, names
 *   info.c          checks, profiles, policies, languages
 *   describe.c      descriptions of run_code for models
 *   openapi.[ch]    the description (OpenAPI 3.1) of the routes of all fronts; openapi_notes.c, openapi_page.c,
 *                   descriptions.c
 *
 * A handler answers its request once: with an object of fields.def, a stream of events, or a problem (RFC 9457).
 */
#ifndef FRONT_API_API_H
#define FRONT_API_API_H

#include "base/worker.h"
#include "front/service/service.h"

/* The state of the front of /v1. */
struct api_state {
        struct api_session *sessions;
        struct api_process *processes;     /* in sandboxes: those that go on, and those that can still be asked for */
        uint64_t newest_session;           /* by clock_number() */
        struct retained processes_kept;    /* records of processes that are over; at most engine.kept_bytes */
        struct api_grading *gradings;      /* that are no line of a bulk */
        struct api_upload *uploads;        /* uploads that are adding or removing rows of stored files */
};

enum description { DESCRIPTION_OPENAPI, DESCRIPTION_DOCS, DESCRIPTION_PROBLEMS, DESCRIPTIONS_N };

/* The state of the front of the daemon's operation: texts that are made for the first request. */
struct operations_state {
        struct job job; /* makes the texts, and owns them until done() */
        struct buf texts[DESCRIPTIONS_N];
        bool has_texts;
        struct api_waiter *waiting; /* requests, until has_texts */
};

extern const struct front api_front, operations_front, gateway_front;

struct api_state *api_state(const struct service *service);
struct operations_state *operations_state(const struct service *service);

/* The description of the routes of api_front (openapi_notes.c). */
extern const struct front_note api_notes[];
extern const struct front_value api_headers[], api_parameters[];
extern const struct front_tag api_tags[];
extern const struct object *const api_objects[];

/* Hooks: parts of the front's stop and close. */
void api_close_gradings(struct service *service);
void api_close_uploads(struct service *service);
void api_close_descriptions(struct service *service);
void api_sessions_close(struct service *service);
void api_processes_close(struct service *service);

/* ---- for the handlers ---- */

/* Whether the header Prefer has this word, such as "respond-async". */
bool api_prefers(const struct http_request *request, const char *word);

/* ---- lists of runs (run_list.c) ---- */

struct service_run;
/* The object kept_run.  The caller's reference. */
json_t *api_run_state(const struct service_run *one);

/* ---- records as text (run_text.c) ---- */

/* Whether the client wants a record as text; *ret_form: of enum text_form, or SERVICE_OWN_FORM. */
bool api_wants_text(const struct http_request *request, int *ret_form);
/* Answer with a record that was found as text.  The descriptor becomes the callee's. */
void api_answer_text(struct http_request *request, int form, const struct service_found *found);
/*
 * The number of the last event that the client has, by Last-Event-ID or ?after=.  False: it is no number, and an error
 * was answered.
 */
bool api_after(struct http_request *request, uint64_t *ret);
/* Handle POST /v1/runs in this context; NULL: in none. */
void api_post_run_in(struct http_request *request, const char *context);
/* The sandbox of the path; NULL: there is none, and 404 was answered. */
struct psandbox *api_psandbox(struct http_request *request);
/* The sandbox of a session by its id, and the session's mode; NULL: there is none, and 404 was answered. */
struct psandbox *api_session_psandbox(struct http_request *request, const char *id, int *ret_mode);
/* The context of the path; NULL: there is none, and 404 was answered. */
struct context *api_context(struct http_request *request);
/* The sandbox of the path, and the required ?path=; NULL: one is missing, and an error was answered. */
struct psandbox *api_file_target(struct http_request *request, const char **ret_path);
/* The object `entry` of the interface.  The caller's reference. */
json_t *api_entry(const struct guest_entry *entry);
/* Answer the error of an operation on files, with the status of its errno. */
void api_file_error(struct http_request *request, const struct csn_error *error);
/* {code, message}; the text may be a guest's and cut inside a character.  The caller's reference. */
json_t *api_error(const struct csn_error *error);
/* Answer 404: a file or folder of the tenant is missing, or belongs to another tenant. */
/* Answer whether a tenant may have programs with this layer: {"found": bool, "everywhere": false}. */
void api_find_layer(struct http_request *request, const char *tenant, const char *id);
void api_no_such(struct http_request *request, const char *what);
/* Answer a regular file as an attachment, or the bytes of the header Range.  Takes the descriptor. */
void api_send_file(struct http_request *request, int fd, const char *name);
/* Answer 409: not in this state. */
void api_conflict(struct http_request *request, const struct csn_error *error);

/* ---- handlers ---- */

void api_post_run(struct http_request *request);
void api_bulk(struct http_request *request);
void api_list_runs(struct http_request *request);
void api_get_idempotency_key(struct http_request *request);
void api_get_run(struct http_request *request);
void api_delete_run(struct http_request *request);
void api_get_events(struct http_request *request);
void api_post_tool_results(struct http_request *request);
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
void api_post_context_run(struct http_request *request);
void api_interrupt_context(struct http_request *request);
void api_restart_context(struct http_request *request);
void api_delete_context(struct http_request *request);
void api_post_session(struct http_request *request);
void api_list_sessions(struct http_request *request);
void api_get_session(struct http_request *request);
void api_post_session_run(struct http_request *request);
void api_delete_session(struct http_request *request);
void api_post_process(struct http_request *request);
void api_list_processes(struct http_request *request);
void api_get_process(struct http_request *request);
void api_delete_process(struct http_request *request);
void api_process_events(struct http_request *request);
void api_process_stdin(struct http_request *request);
void api_process_signal(struct http_request *request);
void api_process_size(struct http_request *request);
void api_get_file(struct http_request *request);
void api_put_file(struct http_request *request);
void api_post_files(struct http_request *request);
void api_change_file(struct http_request *request);
void api_delete_file(struct http_request *request);
void api_list_files(struct http_request *request);
void api_stat_file(struct http_request *request);
void api_watch_files(struct http_request *request);
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
void api_post_volume(struct http_request *request);
void api_list_volumes(struct http_request *request);
void api_get_volume(struct http_request *request);
void api_delete_volume(struct http_request *request);
void api_get_usage(struct http_request *request);
void api_reset_usage(struct http_request *request);
void api_post_layer(struct http_request *request);
void api_list_images(struct http_request *request);
void api_get_image(struct http_request *request);
void api_list_layers(struct http_request *request);
void api_get_layer(struct http_request *request);
void api_delete_layer(struct http_request *request);
void api_check(struct http_request *request);
void api_grade(struct http_request *request);
void api_profiles(struct http_request *request);
void api_profile(struct http_request *request);
void api_policies(struct http_request *request);
void api_policy(struct http_request *request);
void api_languages(struct http_request *request);
void api_describe(struct http_request *request);
void api_tool_schema(struct http_request *request);
void api_openapi(struct http_request *request);
void api_docs(struct http_request *request);
void api_problems(struct http_request *request);

#endif
