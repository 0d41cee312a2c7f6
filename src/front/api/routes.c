/* The routes of the HTTP interface, and who may use them. */
#include "front/api/api.h"

#include "front/e2b/app/app.h"
#include "net/http_headers.h"
#include "front/mcp/mcp.h"
#include "front/service/connections.h"
#include "tools/tools.h"

#include <stdio.h>

#define DAY_MS 86400000

const struct http_route api_routes[] = {
        { "POST", "/v1/runs", NULL, SCOPE_RUN, BODY_WHOLE, api_post_run,
          "Run a program. The answer is its record; with `Prefer: respond-async` it is a link to it, and with `Accept: text/event-stream` or "
          "`application/x-ndjson` the events as they happen.", &object_run_request, &object_run_result },
        { "POST", "/v1/runs/bulk", NULL, SCOPE_RUN, BODY_STREAM, api_bulk,
          "Many runs: each line is a request, with an `id` of yours if you like, and each is answered by a line with `id`, `line` and `record` (or `error`), "
          "in the order in which they end. Lines are carried out as they come, and the answer begins when the whole body has come. `{\"cancel\": ID}` ends one.", NULL, NULL },
        { "GET", "/v1/runs", "limit cursor", SCOPE_READ, BODY_NONE, api_list_runs, "Runs that go on, and those that can still be asked for; newest first.", NULL, &object_kept_runs },
        { "GET", "/v1/runs/{id}", NULL, SCOPE_READ, BODY_NONE, api_get_run,
          "A run that was started with `Prefer: respond-async` or as a stream: its record, or its state while it goes on (202).", NULL, &object_run_result },
        { "DELETE", "/v1/runs/{id}", NULL, SCOPE_RUN, BODY_NONE, api_delete_run, "End a run that goes on; forget one that is over.", NULL, NULL },
        { "GET", "/v1/runs/{id}/events", "after follow=true|false", SCOPE_READ, BODY_NONE, api_get_events,
          "What happens in a run, from the event after `Last-Event-ID` (or `?after=`) on; with `?follow=false` those that were.", NULL, NULL },
        { "POST", "/v1/runs/{id}/tool-results", NULL, SCOPE_RUN, BODY_WHOLE, api_post_tool_results,
          "Answer calls of tools that the client serves, and questions whether a call may be made: those of the events tool_call and approval.", &object_tool_answers, &object_tools_taken },
        { "POST", "/v1/sandboxes", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_post_sandbox, "Make a persistent sandbox. The answer comes when it runs.",
          &object_sandbox_request, &object_sandbox_info },
        { "GET", "/v1/sandboxes", "limit cursor", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_list_sandboxes, "The persistent sandboxes of this key's tenant, newest first.", NULL, &object_sandbox_list },
        { "GET", "/v1/sandboxes/{id}", NULL, SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_get_sandbox, "What it is: state, limits, boundary.", NULL, &object_sandbox_info },
        { "PATCH", "/v1/sandboxes/{id}", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_patch_sandbox, "Let it live longer, or less long.", &object_sandbox_change, &object_sandbox_info },
        { "DELETE", "/v1/sandboxes/{id}", NULL, SCOPE_SANDBOXES, BODY_NONE, api_delete_sandbox, "End it, with everything in it.", NULL, NULL },
        { "POST", "/v1/sandboxes/{id}/pause", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_pause_sandbox,
          "Everything in it stands still. Its memory stays in use, and its time goes on.", NULL, &object_sandbox_info },
        { "POST", "/v1/sandboxes/{id}/resume", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_resume_sandbox, "It goes on.", NULL, &object_sandbox_info },
        { "GET", "/v1/sandboxes/{id}/metrics", NULL, SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_sandbox_metrics, "CPU, memory, disk and processes, by the kernel's count.", NULL,
          &object_sandbox_usage },
        { "POST", "/v1/sandboxes/{id}/contexts", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_post_context,
          "Start a live interpreter in it, whose variables last. The answer comes when it waits.", &object_context_request, &object_context_info },
        { "GET", "/v1/sandboxes/{id}/contexts", "limit cursor", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_list_contexts, "The contexts in it, newest first.", NULL, &object_context_list },
        { "GET", "/v1/contexts/{id}", NULL, SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_get_context, "A context.", NULL, &object_context_info },
        { "POST", "/v1/contexts/{id}/runs", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_post_context_run,
          "Execute in a context. As POST /v1/runs; executions of one context go on one after another.", &object_run_request, &object_run_result },
        { "POST", "/v1/contexts/{id}/interrupt", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_interrupt_context,
          "Interrupt what it executes (KeyboardInterrupt, and its equals); it lives on.", NULL, &object_context_info },
        { "POST", "/v1/contexts/{id}/restart", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_restart_context, "A new interpreter in its place.", NULL, &object_context_info },
        { "DELETE", "/v1/contexts/{id}", NULL, SCOPE_SANDBOXES, BODY_NONE, api_delete_context, "Close it.", NULL, NULL },
        { "POST", "/v1/sessions", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_post_session,
          "A sandbox with one context, in which files last, or variables too. It ends after idle_ms without an execution.", &object_session_request, &object_session_info },
        { "GET", "/v1/sessions", "limit cursor", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_list_sessions, "The sessions of this key's tenant, newest first.", NULL, &object_session_list },
        { "GET", "/v1/sessions/{id}", NULL, SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_get_session, "A session, its sandbox and its context.", NULL, &object_session_info },
        { "POST", "/v1/sessions/{id}/runs", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_post_session_run,
          "Execute in it. As POST /v1/runs; those of one session go on one after another.", &object_run_request, &object_run_result },
        { "DELETE", "/v1/sessions/{id}", NULL, SCOPE_SANDBOXES, BODY_NONE, api_delete_session, "End it, with its sandbox and its files.", NULL, NULL },
        { "POST", "/v1/sandboxes/{id}/processes", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_post_process,
          "Start a program. The answer is its record at its end; with `Prefer: respond-async` a link to it, and with `Accept: text/event-stream` or "
          "`application/x-ndjson` the events as they happen.", &object_process_request, &object_process_info },
        { "GET", "/v1/sandboxes/{id}/processes", "limit cursor", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_list_processes, "Programs that go on, and the last that are over; newest first.", NULL, &object_process_list },
        { "GET", "/v1/sandboxes/{id}/processes/{number}", NULL, SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_get_process, "A program, and what it printed so far.", NULL, &object_process_info },
        { "DELETE", "/v1/sandboxes/{id}/processes/{number}", NULL, SCOPE_SANDBOXES, BODY_NONE, api_delete_process,
          "Kill a program that goes on; forget one that is over.", NULL, NULL },
        { "GET", "/v1/sandboxes/{id}/processes/{number}/events", "after follow=true|false", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_process_events,
          "What happens, from the event after `Last-Event-ID` (or `?after=`) on; with `?follow=false` those that were.", NULL, NULL },
        { "POST", "/v1/sandboxes/{id}/processes/{number}/stdin", "end=true|false", SCOPE_SANDBOXES, BODY_STREAM, api_process_stdin,
          "Write the body to its standard input, as fast as it reads; with `?end=true` that ends then.", NULL, NULL },
        { "POST", "/v1/sandboxes/{id}/processes/{number}/signal", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_process_signal,
          "Send a signal to its process group; KILL, to its whole session.", &object_process_signal, NULL },
        { "POST", "/v1/sandboxes/{id}/processes/{number}/size", NULL, SCOPE_SANDBOXES, BODY_WHOLE, api_process_size, "Change the size of its terminal.",
          &object_process_size, NULL },
        { "GET", "/v1/sandboxes/{id}/files", "path format=tar", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_get_file,
          "The content of the file `?path=`, from /home/user on unless absolute; with `Range`, a part of it; with `?format=tar`, a folder.", NULL, NULL },
        { "PUT", "/v1/sandboxes/{id}/files", "path format=tar mode", SCOPE_SANDBOXES, BODY_STREAM, api_put_file,
          "Write a file, which is there as a whole or not at all, and the folders above it; with `?format=tar`, unpack into a folder.", NULL, &object_entry_info },
        { "POST", "/v1/sandboxes/{id}/files", "path", SCOPE_SANDBOXES, BODY_STREAM, api_post_files,
          "Write many files into the folder `?path=`: a body of multipart/form-data, in which every file has a filename. The answer has those that were "
          "written, and what hindered the others.", NULL, &object_upload_result },
        { "PATCH", "/v1/sandboxes/{id}/files", "path", SCOPE_SANDBOXES, BODY_WHOLE, api_change_file, "Rename it, change its mode, or make a folder.",
          &object_file_change, &object_entry_info },
        { "DELETE", "/v1/sandboxes/{id}/files", "path", SCOPE_SANDBOXES, BODY_NONE, api_delete_file, "Remove a file, or a folder with all in it.", NULL, NULL },
        { "GET", "/v1/sandboxes/{id}/entries", "path depth", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_list_files, "What is in a folder, `?depth=` folders deep.", NULL, &object_entry_list },
        { "GET", "/v1/sandboxes/{id}/entry", "path", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_stat_file, "One file or folder: type, size, mode, time.", NULL, &object_entry_info },
        { "GET", "/v1/sandboxes/{id}/watch", "path depth", SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, api_watch_files,
          "What happens in a folder, as events, for as long as the connection is there.", NULL, NULL },
        { "POST", "/v1/files", "name user", SCOPE_FILES, BODY_STREAM, api_post_stored,
          "Keep a file: the body is its content and `?name=` its name, or the body is multipart/form-data with one or more files.", NULL, &object_stored_file },
        { "GET", "/v1/files", "before limit cursor run user", SCOPE_FILES, BODY_NONE, api_list_stored, "The files that are kept, newest first.", NULL, &object_stored_list },
        { "GET", "/v1/files/{id}", NULL, SCOPE_FILES, BODY_NONE, api_get_stored, "The content of a file; with `Range`, a part of it.", NULL, NULL },
        { "GET", "/v1/files/{id}/info", NULL, SCOPE_FILES, BODY_NONE, api_stored_info, "What is known of a file.", NULL, &object_stored_file },
        { "DELETE", "/v1/files/{id}", NULL, SCOPE_FILES, BODY_NONE, api_delete_stored, "Remove a file.", NULL, NULL },
        { "GET", "/v1/workspaces", "limit cursor user", SCOPE_FILES, BODY_NONE, api_list_workspaces, "Workspaces, those of `?user=` or all; the last used first.", NULL, &object_workspace_list },
        { "DELETE", "/v1/workspaces/{name}", "user", SCOPE_FILES, BODY_NONE, api_delete_workspace,
          "Remove a workspace of a user, with all in it. Here and below, {name} is its name or its id.", NULL, NULL },
        { "GET", "/v1/workspaces/{name}/files", "user", SCOPE_FILES, BODY_NONE, api_workspace_files, "The files in it.", NULL, &object_workspace_files },
        { "GET", "/v1/workspaces/{name}/file", "user path", SCOPE_FILES, BODY_NONE, api_workspace_get, "The content of the file `?path=`; with `Range`, a part of it.",
          NULL, NULL },
        { "PUT", "/v1/workspaces/{name}/file", "user path", SCOPE_FILES, BODY_STREAM, api_workspace_put,
          "Write the file `?path=`, which is there as a whole or not at all; the workspace is made if it is not there.", NULL, &object_workspace_file },
        { "DELETE", "/v1/workspaces/{name}/file", "user path", SCOPE_FILES, BODY_NONE, api_workspace_delete, "Remove the file `?path=`.", NULL, NULL },
        { "POST", "/v1/check", NULL, SCOPE_CHECK, BODY_WHOLE, api_check, "Compare a program with a source policy. Nothing is run.", &object_check_request,
          &object_check_result },
        { "POST", "/v1/grade", NULL, SCOPE_RUN, BODY_STREAM, api_grade,
          "Grade a submission by cases and test code. With `Content-Type: application/x-ndjson` many: each line is a request, and is answered by a line with "
          "`id`, `line` and `result` (or `error`), in the order in which they end; the answer begins when the whole body has come. `{\"cancel\": ID}` ends one.", &object_grade_request, &object_grade_result },
        { "GET", "/v1/profiles", NULL, SCOPE_READ, BODY_NONE, api_profiles, "The profiles, and what each is for.", NULL, &object_profile_list },
        { "GET", "/v1/profiles/{name}", NULL, SCOPE_READ, BODY_NONE, api_profile, "What a profile sets.", NULL, &object_run_request },
        { "GET", "/v1/policies", NULL, SCOPE_READ, BODY_NONE, api_policies, "The source policies.", NULL, &object_policy_list },
        { "GET", "/v1/policies/{name}", NULL, SCOPE_READ, BODY_NONE, api_policy, "Every rule of a source policy.", NULL, &object_policy_detail },
        { "GET", "/v1/languages", NULL, SCOPE_READ, BODY_NONE, api_languages, "The languages, with their aliases.", NULL, &object_language_list },
        { "POST", "/run_code", NULL, SCOPE_RUN, BODY_WHOLE, fusion_run_code, "As SandboxFusion: run a program and fetch its files. docs/use/compat.md has what of it works.",
          NULL, NULL },
        { "GET", "/list_datasets", NULL, SCOPE_READ, BODY_NONE, fusion_list_datasets, "As SandboxFusion: its data sets, of which there are none here.", NULL, NULL },
        { "POST", "/list_ids", NULL, SCOPE_RUN, BODY_WHOLE, fusion_dataset, "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/get_prompts", NULL, SCOPE_RUN, BODY_WHOLE, fusion_dataset, "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/get_prompt_by_id", NULL, SCOPE_RUN, BODY_WHOLE, fusion_dataset, "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/submit", NULL, SCOPE_RUN, BODY_WHOLE, fusion_submit, "As SandboxFusion: run the program in a model's answer with the tests that come with it.",
          NULL, NULL },
        { "POST", "/get_metrics", NULL, SCOPE_RUN, BODY_WHOLE, fusion_dataset, "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "POST", "/get_metrics_function", NULL, SCOPE_RUN, BODY_WHOLE, fusion_dataset, "As SandboxFusion where it does not know the data set: 400.", NULL, NULL },
        { "GET", "/v1/ping", NULL, 0, BODY_NONE, fusion_ping, "As SandboxFusion: whether it answers.", NULL, NULL },
        { "POST", "/api/v2/execute", "*", SCOPE_RUN, BODY_WHOLE, piston_execute, "As Piston: run a program.", NULL, NULL },
        { "GET", "/api/v2/runtimes", "*", SCOPE_READ, BODY_NONE, piston_runtimes, "As Piston: the languages, and the versions of their interpreters.", NULL, NULL },
        { "POST", "/submissions/batch", "base64_encoded *", SCOPE_RUN, BODY_WHOLE, judge0_submit_batch, "As Judge0: start up to 20 submissions. The answer has their tokens.",
          NULL, NULL },
        { "GET", "/submissions/batch", "tokens base64_encoded fields *", SCOPE_READ, BODY_NONE, judge0_batch, "As Judge0: submissions by their tokens.", NULL, NULL },
        { "POST", "/submissions", "base64_encoded wait fields *", SCOPE_RUN, BODY_WHOLE, judge0_submit,
          "As Judge0: start a submission. The answer has its token, with `?wait=true` what became of it.", NULL, NULL },
        { "GET", "/submissions/{token}", "base64_encoded fields *", SCOPE_READ, BODY_NONE, judge0_submission, "As Judge0: a submission by its token.", NULL, NULL },
        { "GET", "/languages", "*", SCOPE_READ, BODY_NONE, judge0_languages, "As Judge0: the languages that run here, by its ids.", NULL, NULL },
        { "GET", "/languages/{id}", "*", SCOPE_READ, BODY_NONE, judge0_language, "As Judge0: one of them.", NULL, NULL },
        { "GET", "/statuses", "*", SCOPE_READ, BODY_NONE, judge0_statuses, "As Judge0: what a submission's status can be.", NULL, NULL },
        { "GET", "/config_info", "*", SCOPE_READ, BODY_NONE, judge0_config, "As Judge0: limits, and what is switched off.", NULL, NULL },
        { "GET", "/about", "*", SCOPE_READ, BODY_NONE, judge0_about, "As Judge0: the version whose words these are.", NULL, NULL },
        { "POST", "/mcp", NULL, SCOPE_RUN | SCOPE_CHECK | SCOPE_READ | SCOPE_FILES | SCOPE_SANDBOXES, BODY_WHOLE, mcp_post,
          "The Model Context Protocol, revisions 2026-07-28 and 2025-11-25: one message of JSON-RPC, answered by JSON or by a stream of events.", NULL, NULL },
        { "DELETE", "/mcp", NULL, SCOPE_RUN | SCOPE_CHECK | SCOPE_READ | SCOPE_FILES | SCOPE_SANDBOXES, BODY_NONE, mcp_delete,
          "End the session of `Mcp-Session-Id`, of revision 2025-11-25.", NULL, NULL },
        { "GET", "/healthz", NULL, 0, BODY_NONE, api_health, "Whether the daemon answers.", NULL, &object_health },
        { "GET", "/readyz", NULL, 0, BODY_NONE, api_ready, "Whether it can run programs: 503, with the reason, where the last one could not begin, and while the daemon ends.", NULL, &object_health },
        { "GET", "/metrics", NULL, SCOPE_METRICS, BODY_NONE, api_metrics, "Counters for Prometheus.", NULL, NULL },
        { "GET", "/v1/logs", "n level run request trace owner", SCOPE_ADMIN, BODY_NONE, api_logs,
          "The last `n` lines that the daemon has logged, oldest first, of a `level` and what is worse, or about a run, a request, a trace or an owner.", NULL,
          NULL },
        { "GET", "/openapi.json", NULL, 0, BODY_NONE, api_openapi, "This description.", NULL, NULL },
        { "GET", "/docs", NULL, 0, BODY_NONE, api_docs, "A page that shows this description.", NULL, NULL },
        { "GET", "/problems", NULL, 0, BODY_NONE, api_problems, "A page that explains each `code` of a problem; `type` of a problem leads there.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

/* ---- who may ---- */

static bool is_local_name(const char *host)
{
        static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
        const char *port = strrchr(host, ':');
        bool has_port = port && port[strspn(port + 1, "0123456789") + 1] == 0;   /* "[::1]" has none */
        size_t len = has_port ? (size_t)(port - host) : strlen(host);
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strlen(names[i]) == len && strncasecmp(host, names[i], len) == 0)
                        return true;
        return false;
}

/*
 * A page of this host may speak the Model Context Protocol, as its inspector does.  A page has to ask first before it sends
 * application/json (Fetch standard), and nothing here answers that; so it is one behind a proxy of its own.
 */
static bool is_local_page(const struct http_request *request, const char *origin)
{
        return mcp_is_mcp(request) && strncmp(origin, "http://", 7) == 0 && is_local_name(origin + 7);
}

/* That protocol wants an Origin looked at with a key, too: it is this host, or the name by which we were called. */
static int refuse_other_origins(const struct http_request *request, struct csn_error *err)
{
        const char *origin = mcp_is_mcp(request) ? http_header(request, "Origin") : NULL, *host = http_header(request, "Host");
        const char *name = origin ? strstr(origin, "://") : NULL;
        if (!origin || is_local_page(request, origin) || (name && host && strcasecmp(name + 3, host) == 0))
                return 0;
        return err_set(err, CSN_E_DENIED, 0, "pages of %.100s may not speak to this server", origin);
}

/*
 * Without a key it is enough to reach us, and a web page can make the browser of somebody on this host reach us: with
 * an Origin (Fetch standard), or under a name of its own that leads here (DNS rebinding).
 */
static int refuse_web_pages(const struct http_request *request, struct csn_error *err)
{
        const char *origin = http_header(request, "Origin"), *host = http_header(request, "Host");
        if (origin && !is_local_page(request, origin))
                return err_set(err, CSN_E_DENIED, 0, "web pages (Origin: %.100s) are not answered without a key", origin);
        if (host && host[0] && !is_local_name(host))
                return err_set(err, CSN_E_DENIED, 0, "without a key only the names localhost, 127.0.0.1 and [::1] are answered, not %.100s", host);
        return 0;
}

/* The password of "Basic ...", which is what a client makes of http://user:KEY@host; "" if there is none. */
static const char *password(struct http_request *request, const char *basic)
{
        struct bytes bytes;
        basic += strspn(basic, " ");
        const char *colon = model_unbase64(&request->arena, basic, strlen(basic), &bytes) ? strchr(bytes.bytes, ':') : NULL;
        return colon ? colon + 1 : "";
}

/* "Authorization: Bearer KEY", or "X-API-Key: KEY"; Judge0's clients send X-Auth-Token, and some of SandboxFusion's have a URL alone. */
static const char *key_of(struct http_request *request)
{
        const char *authorization = http_header(request, "Authorization"), *plain = http_header(request, "X-API-Key");
        if (authorization && strncasecmp(authorization, "Basic ", 6) == 0)
                return password(request, authorization + 6);
        if (authorization)
                return header_bearer(authorization);
        return plain ? plain : http_header(request, "X-Auth-Token");
}

static int check_scope(struct http_request *request, struct csn_error *err)
{
        const struct store_key *key = request->key;
        char scope[KEY_SCOPES_MAX];
        if (!key || !request->route->scope || (key->scopes & (request->route->scope | SCOPE_ADMIN)))
                return 0;
        scopes_print(request->route->scope, scope, sizeof scope);
        err_set(err, CSN_E_DENIED, 0, "this key does not allow it: it needs the scope %s", scope);
        return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
}

int service_check_tools(const struct http_request *request, const char *name, const struct tools_request *tools,
                        struct csn_error *err)
{
        const struct store_key *key = request->key;
        const struct settings *settings = service_of(request)->settings;
        struct arena arena = { 0 };
        struct profile profile;
        if (!key || !tools->present || (key->scopes & (SCOPE_TOOLS | SCOPE_ADMIN)))
                return 0;
        int rc = profile_find(settings, name ? name : settings->engine.profile, &arena, &profile, err);
        rc = rc < 0 ? rc : tools_check_narrow(tools, &profile.request.tools, profile.name, err);
        arena_done(&arena);
        return rc;
}

static int check_key(struct service *service, struct http_request *request, const char *text, struct csn_error *err)
{
        struct store_key *key = arena_alloc(&request->arena, sizeof *key);
        if (!service->store)
                return err_set(err, CSN_E_DENIED, 0, "this daemon knows no keys, for engine.http is empty; on this socket none is needed");
        if (keys_find(service->store, text, &request->arena, key, err) < 0)
                return -err->code;
        request->key = key;
        snprintf(request->tenant, sizeof request->tenant, "%s", key->tenant);
        return check_scope(request, err);
}

/* By the user; a key, if there is one, says more. */
static int admit_local(const struct service *service, struct http_request *request, bool has_key, struct csn_error *err)
{
        uid_t uid;
        bool welcome = service->local_uids_n == 0;
        if (!http_peer(request, &uid))
                return err_set(err, CSN_E_SYSTEM, 0, "the kernel does not say whose this connection is");
        for (size_t i = 0; i < service->local_uids_n; i++)
                welcome = welcome || service->local_uids[i] == uid;
        if (!welcome)
                return err_set(err, CSN_E_DENIED, 0, "user %u is not in engine.socket_uids", uid);
        if (!request->route->scope || has_key)
                return 0;
        snprintf(request->tenant, sizeof request->tenant, "uid:%u", uid);
        if (request->route->scope == SCOPE_ADMIN && uid != 0 && uid != geteuid())
                return err_set(err, CSN_E_DENIED, 0, "that is for root, for user %u, and for keys with the scope admin", geteuid());
        return refuse_web_pages(request, err);
}

/* A header that promises that nothing is made twice is not ignored where nothing keeps that promise. */
static int check_idempotency(const struct http_request *request, struct csn_error *err)
{
        static void (*const keep[])(struct http_request *) = { api_post_run, api_post_context_run, api_post_session_run };
        if (strcmp(request->route->method, "POST") != 0 || !http_header(request, "Idempotency-Key"))
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(keep); i++)
                if (request->route->handle == keep[i])
                        return 0;
        return err_field(err, "Idempotency-Key", "POST %s would be carried out again; an Idempotency-Key is for POST /v1/runs, /v1/contexts/{id}/runs and "
                         "/v1/sessions/{id}/runs", request->route->path);
}

/* "Bearer KEY" of our own, or in the words of another service. */
static int admit(struct http_request *request, struct csn_error *err)
{
        unsigned status = 0;
        if (service_admit(request, key_of(request), err) < 0)
                return -err->code;
        if (request->route->body == BODY_STREAM && http_check_coding(request, &status, err) < 0)
                return http_refuse(request, status, err);
        return check_idempotency(request, err);
}

static const struct http_app api_app = { .routes = api_routes, .admit = admit };

static const struct http_app *on_app(void *owner, struct http_request *request)
{
        const struct http_app *app = e2b_app(owner, request);
        return app ? app : &api_app;
}

int service_admit(struct http_request *request, const char *text, struct csn_error *err)
{
        struct service *service = service_of(request);
        bool local = service->local && request->http == service->local;
        if (!request->inner)
                trace_admitted(service, request);
        if (request->route->scope == SCOPE_FILES && !service->store) {
                err_set(err, CSN_E_UNSUPPORTED, 0, "this daemon keeps no files, for engine.http is empty");
                return http_refuse(request, MHD_HTTP_SERVICE_UNAVAILABLE, err);
        }
        if (request->inner)
                return check_scope(request, err);
        if (local && admit_local(service, request, text, err) < 0)
                return -err->code;
        if (local && !text)
                return 0;
        if (!request->route->scope)
                return 0;
        if (text && check_key(service, request, text, err) == 0)
                return refuse_other_origins(request, err);
        if (!text && service->settings->engine.http_keyless) {
                snprintf(request->tenant, sizeof request->tenant, "local");
                return refuse_web_pages(request, err);
        }
        if (!text)
                err_set(err, CSN_E_DENIED, 0, "a key is needed: Authorization: Bearer csn_...; caisson keys create makes one");
        if (request->key || err->code != CSN_E_DENIED)
                return -err->code;
        http_set_header(request, "WWW-Authenticate", "Bearer");
        return http_refuse(request, MHD_HTTP_UNAUTHORIZED, err);
}

static void on_answered(void *owner, struct http_request *request, unsigned status)
{
        struct service *service = owner;
        service->answers[status / 100 < 6 ? status / 100 : 0]++;
        const struct log_context about = { .request = request->id, .trace = request->trace.id, .owner = request->tenant };
        log_about(LOG_INFO, &about, "%.10s %s answered with %u after %llu us", request->method, request->route ? request->route->path : "-", status,
                  (unsigned long long)(clock_us() - request->began_us));
}

static void on_over(void *owner, const struct http_request *request)
{
        trace_request(owner, request);
}

static void on_ended(void *owner)
{
        const struct service *service = owner;
        if (service_is_idle(service))
                service->idle(service->owner);
}

/* ---- for the handlers ---- */

struct service *service_of(const struct http_request *request)
{
        return http_owner(request);
}

const struct store_key *service_key(const struct http_request *request)
{
        return request->key;
}

int service_tenant_has_cpu_time(const struct service *service, const char *tenant, uint64_t cpu_ms_per_day,
                                struct http_limit *ret_limit,
                            struct csn_error *err)
{
        uint64_t cpu_ms, bytes;
        int64_t now_ms = time_now_ms(), until_ms;
        if (!cpu_ms_per_day)
                return 0;
        if (runs_used(service->store, tenant, now_ms - DAY_MS, &cpu_ms, &bytes, err) < 0)
                return -err->code;
        if (cpu_ms < cpu_ms_per_day)
                return 0;
        if (runs_used_until(service->store, tenant, now_ms - DAY_MS, cpu_ms_per_day, &until_ms, err) < 0)
                return -err->code;
        *ret_limit = (struct http_limit){ .name = "cpu_ms_per_day", .limit = cpu_ms_per_day, .current = cpu_ms,
                                          .reset_s = (uint64_t)(until_ms + DAY_MS - now_ms + 999) / 1000 };
        return err_set(err, CSN_E_BUSY, 0, "what ran within the last 24 hours took %llu ms of CPU time, and the key allows %llu",
                       (unsigned long long)cpu_ms, (unsigned long long)cpu_ms_per_day);
}

int service_has_cpu_time(const struct http_request *request, struct http_limit *ret_limit, struct csn_error *err)
{
        const struct store_key *key = request->key;
        return key ? service_tenant_has_cpu_time(service_of(request), key->tenant, key->cpu_ms_per_day, ret_limit,
                                                 err) : 0;
}

int service_begin_run(const struct http_request *request, struct run *run, struct http_limit *ret_limit,
                      struct csn_error *err)
{
        const struct store_key *key = request->key;
        run_set_owner(run, request->tenant);
        run_storage_set(request, run);
        if (key)
                run_set_quota(run, key->running_max, key->queued_max);
        return service_has_cpu_time(request, ret_limit, err);
}

bool service_decode(struct http_request *request, const struct object *object, struct arena *arena, void *ret)
{
        struct csn_error err;
        const char *text = request->body.bytes ? request->body.bytes : "";
        if (model_decode_text(object, text, request->body.len, arena, ret, &err) == 0)
                return true;
        http_fail(request, &err);
        return false;
}

json_t *api_error(const struct csn_error *error)
{
        struct arena arena = { 0 };
        size_t len;
        json_t *json = json_pack("{s:s, s:s}", "code", csn_code_name(error->code), "message", model_utf8(&arena, error->text, strlen(error->text), &len));
        arena_done(&arena);
        return json;
}

/* ---- in order ---- */

/* Whether anybody has a key that can be used. */
static int has_keys(struct store *store, bool *ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_key *keys;
        size_t n;
        int rc = keys_list(store, &arena, &keys, &n, err);
        *ret = false;
        for (size_t i = 0; rc == 0 && i < n; i++)
                *ret = *ret || (!keys[i].revoked_ms && (!keys[i].expires_ms || keys[i].expires_ms > time_now_ms()));
        arena_done(&arena);
        return rc;
}

static int check_apps(const struct service *service, struct csn_error *err)
{
        bool keyless = service->settings->engine.http_keyless, keys;
        const char *address = http_address(service->http);
        if (keyless && !http_is_local(service->http))
                return err_set(err, CSN_E_CONFIG, 0, "engine.http_keyless is set, and HTTP is at %s, which others can reach; without keys it has to be "
                               "a loopback address or unix:/path", address);
        if (has_keys(service->store, &keys, err) < 0)
                return -err->code;
        if (!keys && !keyless)
                return err_set(err, CSN_E_CONFIG, 0, "nobody could use HTTP (%s): make a key by caisson keys create, or set engine.http_keyless "
                               "for a loopback address", address);
        return 0;
}

static const struct http_events http_events = { on_app, on_answered, on_over, on_ended };

/* Of a sandbox's programs, which have no records. */
static void on_used(void *owner, const char *whose, uint64_t cpu_ms)
{
        struct csn_error err;
        if (runs_add_cpu(owner, whose, time_now_ms(), cpu_ms, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

int service_open(struct engine *engine, const struct settings *settings, struct store *store, int listener, bool ours,
                 void (*idle)(void *owner),
             void *owner, struct service **ret, struct csn_error *err)
{
        struct service *service = mem_alloc(sizeof *service);
        *service = (struct service){ .engine = engine, .settings = settings, .loop = engine_loop(engine), .store = store, .idle = idle, .owner = owner,
                             .started_us = clock_us() };
        if (store) {
                run_storage_sweep(store);
                engine_set_usage_listener(engine, on_used, store);
        }
        int rc = otlp_open(service->loop, settings, &service->otlp, err);
        http_open_internal(service->loop, &api_app, &http_events, service, &service->inner);
        if (rc == 0 && listener >= 0)
                rc = http_open(service->loop, listener, ours, service_connections_max(false), &http_events, service,
                               &service->http, err);
        if (rc == 0 && service->http)
                rc = check_apps(service, err);
        if (rc < 0) {
                service_close(service);
                return rc;
        }
        *ret = service;
        return 0;
}

int service_serve_local(struct service *service, int listener, bool ours, const uid_t *uids, size_t uids_n,
                        struct csn_error *err)
{
        service->local_uids = uids;
        service->local_uids_n = uids_n;
        return http_open(service->loop, listener, ours, service_connections_max(true), &http_events, service,
                         &service->local, err);
}

const char *service_address(const struct service *service)
{
        return service->http ? http_address(service->http) : NULL;
}

void service_drain(struct service *service)
{
        mcp_drain(&service->mcp);
        if (service->http)
                http_drain(service->http);
        if (service->local)
                http_drain(service->local);
}

bool service_is_idle(const struct service *service)
{
        return service->live == 0 && (!service->http || http_busy(service->http) == 0) && (!service->local ||
                http_busy(service->local) == 0) && http_busy(service->inner) == 0;
}

void service_changed(struct service *service)
{
        mcp_changed(&service->mcp);
}

void service_close(struct service *service)
{
        if (!service)
                return;
        mcp_close(service);
        service_ready_close(service);
        service_runs_close(service);
        api_close_gradings(service);
        api_processes_close(service);
        api_sessions_close(service);
        http_close(service->local);
        service->local = NULL;                 /* a request of the other one that is cut asks whether all is idle */
        http_close(service->http);
        service->http = NULL;
        http_close(service->inner);
        e2b_close(service);
        piston_close(service->piston);
        otlp_close(service->otlp);
        buf_done(&service->description);
        buf_done(&service->docs);
        buf_done(&service->problems);
        free(service);
}
