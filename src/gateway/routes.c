/* Routes of the gateway: which worker a request is for. */
#include "gateway/gateway_private.h"

/* A body in memory: can be sent again after a refusal of the first worker. */
#define KEPT (BODY_WHOLE | BODY_MIB(64))

#define NEW(method, path) { method, path, "*", 0, KEPT, forward_new, "New work.", NULL, NULL }
#define NEW_STREAM(method, path) { method, path, "*", 0, BODY_STREAM, forward_new, "New work, streamed.", NULL, NULL }
#define ANY(path) { "GET", path, "*", 0, BODY_NONE, forward_new, "The same at each worker.", NULL, NULL }
#define ID(method, path) { method, path, "*", 0, BODY_STREAM, forward_by_id, "At the worker that the id names.", NULL, NULL }
#define NAMED(method, path) { method, path, "*", 0, BODY_STREAM, forward_named, "At the worker that has the name.", NULL, NULL }
#define NAMED_KEPT(method, path) { method, path, "*", 0, KEPT, forward_named, "At the worker that has the name.", NULL, NULL }
#define ALL(method, path) { method, path, "*", 0, KEPT, join_all, "The sum of all workers.", NULL, NULL }
#define ALIKE(method, path) { method, path, "*", 0, KEPT, join_alike, "The same at all workers.", NULL, NULL }
#define OWN(path, scope, handle) { "GET", path, NULL, scope, BODY_NONE, handle, "The gateway's own.", NULL, NULL }

static const struct http_route routes[] = {
        OWN("/healthz", 0, own_health),
        OWN("/readyz", 0, own_ready),
        OWN("/health", 0, own_health),
        OWN("/metrics", SCOPE_METRICS, own_metrics),
        OWN("/v1/scale", SCOPE_METRICS, own_scale),
        OWN("/v1/workers", SCOPE_METRICS, own_workers),

        /* runs */
        NAMED_KEPT("POST", "/v1/runs"),
        NEW_STREAM("POST", "/v1/runs/bulk"),
        ALL("GET", "/v1/runs"),
        ID("*", "/v1/runs/{id}"),
        ID("*", "/v1/runs/{id}/{part}"),
        NAMED("GET", "/v1/idempotency-keys/{key}"),
        NEW("POST", "/v1/check"),
        NEW("POST", "/v1/grade"),
        NEW("POST", "/v1/tool"),

        /* sandboxes, contexts, sessions */
        NAMED_KEPT("POST", "/v1/sandboxes"),
        ALL("GET", "/v1/sandboxes"),
        ID("*", "/v1/sandboxes/{id}"),
        ID("*", "/v1/sandboxes/{id}/{part}"),
        ID("*", "/v1/sandboxes/{id}/{part}/{number}"),
        ID("*", "/v1/sandboxes/{id}/{part}/{number}/{action}"),
        ID("*", "/v1/contexts/{id}"),
        ID("*", "/v1/contexts/{id}/{part}"),
        NAMED_KEPT("POST", "/v1/sessions"),
        ALL("GET", "/v1/sessions"),
        ID("*", "/v1/sessions/{id}"),
        ID("*", "/v1/sessions/{id}/{part}"),

        /* persistent objects */
        NEW_STREAM("POST", "/v1/files"),
        ALL("GET", "/v1/files"),
        ID("*", "/v1/files/{id}"),
        ID("*", "/v1/files/{id}/{part}"),
        ALL("GET", "/v1/workspaces"),
        NAMED("*", "/v1/workspaces/{name}"),
        NAMED("*", "/v1/workspaces/{name}/{part}"),
        ALL("GET", "/v1/volumes"),
        NAMED_KEPT("POST", "/v1/volumes"),
        NAMED("*", "/v1/volumes/{name}"),
        ALIKE("GET", "/v1/problems"),
        ALIKE("*", "/v1/problems/{set}"),
        ALL("GET", "/v1/layers"),
        NEW("POST", "/v1/layers"),
        NAMED("*", "/v1/layers/{id}"),
        ALL("GET", "/v1/usage"),
        ALL("POST", "/v1/usage/reset"),
        ALL("GET", "/v1/logs"),

        /* the same at each worker */
        ANY("/v1/describe"),
        ANY("/v1/images"),
        ANY("/v1/images/{name}"),
        ANY("/v1/languages"),
        ANY("/v1/me"),
        ANY("/v1/policies"),
        ANY("/v1/policies/{name}"),
        ANY("/v1/profiles"),
        ANY("/v1/profiles/{name}"),
        ANY("/v1/tool-schema"),
        ANY("/v1/ping"),
        ANY("/openapi.json"),
        ANY("/docs"),
        ANY("/problems"),
        ANY("/"),

        /* MCP: a session is on one worker */
        { "POST", "/mcp", "*", 0, KEPT, forward_by_id, "At the worker of the session, or at any.", NULL, NULL },
        ID("*", "/mcp"),

        /* SandboxFusion, Piston, Judge0 */
        NEW("POST", "/run_code"),
        NEW("POST", "/submit"),
        NEW("POST", "/get_prompts"),
        NEW("POST", "/get_prompt_by_id"),
        NEW("POST", "/get_metrics"),
        NEW("POST", "/get_metrics_function"),
        NEW("POST", "/list_ids"),
        ANY("/list_datasets"),
        NEW("POST", "/api/v2/execute"),
        ANY("/api/v2/runtimes"),
        NEW("POST", "/submissions"),
        NEW("POST", "/submissions/batch"),
        ID("GET", "/submissions/batch"),
        ID("*", "/submissions/{token}"),
        ANY("/languages"),
        ANY("/languages/{id}"),
        ANY("/statuses"),
        ANY("/config_info"),
        ANY("/about"),

        /* trainers: ScaleBox, NeMo-Skills, rewards of slime and OpenRLHF */
        NEW("POST", "/common_evaluate_batch"),
        NEW("POST", "/reward/slime"),
        NEW("POST", "/reward/openrlhf"),
        NAMED_KEPT("POST", "/execute"),
        ALL("GET", "/sessions"),
        NAMED("*", "/sessions/{id}"),

        /* LibreChat: ids of sessions, files and tokens name their worker */
        NAMED_KEPT("POST", "/librechat/v1/exec"),
        NAMED_KEPT("POST", "/librechat/v1/exec/programmatic"),
        NEW_STREAM("POST", "/librechat/v1/upload"),
        NEW_STREAM("POST", "/librechat/v1/upload/batch"),
        ID("GET", "/librechat/v1/download/{session}/{file}"),
        ID("*", "/librechat/v1/files/{session}"),
        ID("*", "/librechat/v1/files/{session}/{file}"),
        ID("GET", "/librechat/v1/sessions/{session}/objects/{file}"),
        ANY("/librechat/v1/health"),

        /* files of an E2B sandbox, by a signature or a token alone */
        { "*", "/files", "*", 0, KEPT, forward_search, "At the worker that knows the signature.", NULL, NULL },

        /* E2B's control plane */
        NAMED_KEPT("POST", "/sandboxes"),
        NAMED_KEPT("POST", "/v2/sandboxes"),
        ALL("GET", "/sandboxes"),
        ALL("GET", "/v2/sandboxes"),
        ID("*", "/sandboxes/{id}"),
        ID("*", "/sandboxes/{id}/{part}"),
        ID("*", "/v2/sandboxes/{id}/{part}"),
        ALL("GET", "/snapshots"),
        ALL("GET", "/templates"),
        ALL("GET", "/v2/templates"),
        NAMED_KEPT("POST", "/v2/templates"),
        NAMED_KEPT("POST", "/v3/templates"),
        NAMED("*", "/v2/templates/{id}"),
        NAMED("*", "/v2/templates/{id}/builds/{build}"),
        NAMED("*", "/templates/aliases/{alias}"),
        ID("PUT", "/templates/files/{key}"),
        NAMED_KEPT("POST", "/templates/tags"),
        NAMED_KEPT("DELETE", "/templates/tags"),
        NAMED("*", "/templates/{id}"),
        NAMED("*", "/templates/{id}/{part}"),
        NAMED("*", "/templates/{id}/{part}/{hash}"),
        NAMED("*", "/templates/{id}/builds/{build}/status"),

        /* unknown paths and methods: a worker refuses in the words of its fronts */
        ID("*", "*"),
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

/* All requests to a port of a sandbox: envd, the code interpreter, programs of the user. */
static const struct http_route sandbox_routes[] = {
        ID("*", "*"),
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

/* Preflights of browsers (Fetch standard): the worker of the sandbox answers, or any. */
static const struct http_route preflight_routes[] = {
        { "OPTIONS", "*", "*", 0, BODY_NONE, forward_by_id, "What pages may ask.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct http_app preflight_app = { .routes = preflight_routes, .slashes = true, .admit = gateway_admit };
static const struct http_app gateway_app = { .routes = routes, .admit = gateway_admit };
static const struct http_app gateway_sandbox_app = {
        .routes = sandbox_routes, .slashes = true, .admit = gateway_admit
};

const struct http_app *gateway_choose_app(void *owner, struct http_request *request)
{
        (void)owner;
        if (strcmp(request->method, "OPTIONS") == 0 && http_header(request, "Access-Control-Request-Method"))
                return &preflight_app;
        return target_is_sandbox(request) ? &gateway_sandbox_app : &gateway_app;
}
