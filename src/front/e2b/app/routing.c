/* Routing, admission and errors of requests of E2B's clients; see e2b.h. */
#include "front/e2b/app/app.h"
#include "front/http/credentials.h"
#include "front/e2b/envd/envd.h"
#include "front/e2b/interpreter/interpreter.h"
#include "front/e2b/templates/build.h"
#include "front/service/parse.h"

#include <ctype.h>

#define KEY_PREFIX "e2b_"

/* ---- errors ---- */

/* Gateway errors of admission other than CSN_E_LOST come from an absent sandbox. */
static void on_problem(struct http_request *request, unsigned status, const struct csn_error *error)
{
        if (status == MHD_HTTP_BAD_GATEWAY && error->code != CSN_E_LOST)
                e2b_not_found(request);
        else
                e2b_error(request, status == MHD_HTTP_UNPROCESSABLE_CONTENT ? MHD_HTTP_BAD_REQUEST : status, "%s",
                        error->text);
}

/* E2B's interpreter server refuses with plain text. */
static void on_interpreter_problem(struct http_request *request, unsigned status, const struct csn_error *error)
{
        if (status == MHD_HTTP_UNAUTHORIZED)
                http_answer(request, status, "text/plain; charset=utf-8", mem_copy(error->text, strlen(error->text)),
                        strlen(error->text));
        else
                on_problem(request, status, error);
}

/* ---- admission ---- */

/*
 * Clients of E2B always send some key.  Where keys are not needed, every key is accepted, but a Caisson key still names
 * its tenant: only a key beginning with "csn_" is checked then.
 */
static int admit_control(struct http_request *request, struct csn_error *err)
{
        const char *given = http_header(request, "X-API-Key"),
                   *text = given ? credentials_decode(request, given) : NULL;
        bool ours = text && strncmp(text, "csn_", 4) == 0;
        if (!request->route->scope)
                return 0;
        if (service_is_claimed(request))
                return service_admit(request, NULL, err);
        if (!given) {
                err_set(err, CSN_E_DENIED, 0,
                        "an API key is needed, as X-API-Key: a key of caisson keys create, or what caisson e2b env prints");
                return http_refuse(request, MHD_HTTP_UNAUTHORIZED, err);
        }
        return service_admit(request, ours || !service_of(request)->settings->engine.http_keyless ? text : NULL, err);
}

static void find_target(struct http_request *request)
{
        const char *id;
        size_t len;
        if (e2b_parse_target(request, &id, &len))
                request->target = arena_copy(&request->arena, id, len);
}

static int refuse_token(struct http_request *request, unsigned status, const char *text, struct csn_error *err)
{
        err_set(err, CSN_E_DENIED, 0, "%s", text);
        return http_refuse(request, status, err);
}

/* Routes with a token of their own, or without need of a token: /health, and /files by signature. */
static bool is_open(const struct http_request *request)
{
        return strcmp(request->route->path, "/health") == 0 || strcmp(request->route->path, "/files") == 0;
}

/* Whether the sandbox of a request is running, or will be resumed by the request: otherwise its body is not read. */
static bool is_there(const struct e2b_sandbox *sandbox)
{
        return sandbox && !sandbox->killing &&
                (sandbox->state == E2B_RUNNING || (e2b_sandbox_is_paused(sandbox) && sandbox->wish.auto_resume));
}

static int refuse_absent(struct http_request *request, struct csn_error *err)
{
        return refuse_token(request, MHD_HTTP_BAD_GATEWAY, "the sandbox is not there", err);
}

static int admit_envd(struct http_request *request, struct csn_error *err)
{
        const char *token = http_header(request, "X-Access-Token");
        find_target(request);
        if (!request->target)
                return 0;                  /* /files, with the sandbox in its signature */
        const struct e2b_sandbox *sandbox = e2b_sandbox_find(service_of(request), request->target, "");
        if (!is_there(sandbox))
                return refuse_absent(request, err);
        if (!sandbox->token[0] || (token && e2b_same(sandbox->token, token)))
                return 0;
        if (!is_open(request))
                return refuse_token(request, MHD_HTTP_UNAUTHORIZED,
                        "unauthorized: the access token is missing or wrong", err);
        if (sandbox->state == E2B_RUNNING)
                return 0;                  /* the handlers check the token */
        /* A resume needs the right to use the sandbox. */
        if (strcmp(request->route->path, "/health") == 0)
                return refuse_absent(request, err);
        const char *why = envd_file_refusal(request, sandbox, strcmp(request->route->method, "GET") != 0);
        return why ? refuse_token(request, MHD_HTTP_UNAUTHORIZED, why, err) : 0;
}

static const struct http_app interpreter_app;

/* Executing code needs the access token of envd, too. */
static bool may_execute(const struct http_request *request, const struct e2b_sandbox *sandbox)
{
        const char *token = http_header(request, "X-Access-Token");
        return strcmp(request->route->path, "/execute") != 0 || !sandbox->token[0] ||
                (token && e2b_same(sandbox->token, token));
}

static int admit_port(struct http_request *request, struct csn_error *err)
{
        const char *token = http_header(request, "E2B-Traffic-Access-Token");
        find_target(request);
        if (e2b_port(request) == E2B_NO_PORT) {
                err_set(err, CSN_E_INPUT, 0,
                        "Invalid sandbox port: E2b-Sandbox-Port is \"%.40s\"; it has to be a number from 1 to 65535",
                        http_header(request, "E2b-Sandbox-Port"));
                return http_refuse(request, MHD_HTTP_BAD_REQUEST, err);
        }
        const struct e2b_sandbox *sandbox = e2b_sandbox_find(service_of(request), request->target, "");
        if (!is_there(sandbox))
                return refuse_absent(request, err);
        if (request->app == &interpreter_app && !may_execute(request, sandbox))
                return refuse_token(request, MHD_HTTP_UNAUTHORIZED, "Unauthorized", err);
        if (!sandbox->traffic_token[0] || (token && e2b_same(sandbox->traffic_token, token)))
                return 0;
        return refuse_token(request, MHD_HTTP_FORBIDDEN,
                token ? "Sandbox is secured with traffic access token. Provided token is invalid."
                      : "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing.",
                err);
}

/* ---- resume on request ---- */

struct wake {
        struct e2b_waiter waiter;
        struct http_request *request;
};

static void on_awake(struct e2b_waiter *waiter, const struct csn_error *error)
{
        struct wake *wake = waiter->owner;
        struct http_request *request = wake->request;
        (void)error;
        free(wake);
        request->owner = NULL;
        request->gone = NULL;
        request->take = NULL;
        if (!e2b_target(request)) {
                e2b_not_found(request);
                return;
        }
        request->route->handle(request);
        if (http_body_of(request->route) == BODY_STREAM)
                http_more(request);
}

static void on_sleeper_gone(struct http_request *request)
{
        struct wake *wake = request->owner;
        e2b_unwait(&wake->waiter);
        free(wake);
}

static size_t take_nothing(struct http_request *request, const char *bytes, size_t len)
{
        (void)request, (void)bytes, (void)len;
        return 0;
}

static void wake(struct http_request *request, struct e2b_sandbox *sandbox)
{
        struct csn_error err;
        if (e2b_sandbox_resume(sandbox, sandbox->life_ms, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        struct wake *one = mem_alloc(sizeof *one);
        *one = (struct wake){ .waiter = { .done = on_awake, .owner = one }, .request = request };
        request->owner = one;
        request->gone = on_sleeper_gone;
        request->take = take_nothing;
        e2b_wait(sandbox, E2B_WANTS_READY, &one->waiter);
}

static void handle(struct http_request *request)
{
        struct e2b_sandbox *sandbox = request->target ? e2b_sandbox_find(service_of(request), request->target, "")
                : NULL;
        if (sandbox && e2b_sandbox_is_paused(sandbox) && sandbox->wish.auto_resume)
                wake(request, sandbox);
        else if (e2b_target(request) || !request->target)   /* no target: /files with a signature */
                request->route->handle(request);
        else
                e2b_not_found(request);
}

/* ---- the four applications ---- */

static const struct http_app control_app = {
        .routes = e2b_control_routes, .slashes = true, .admit = admit_control, .problem = on_problem
};

static const struct http_app envd_app = {
        .routes = e2b_envd_routes, .admit = admit_envd, .handle = handle, .problem = on_problem
};

static const struct http_app interpreter_app = {
        .routes = e2b_interpreter_routes, .admit = admit_port, .handle = handle, .problem = on_interpreter_problem
};

static const struct http_app port_app = {
        .routes = e2b_port_routes, .slashes = true, .admit = admit_port, .handle = handle, .problem = on_problem
};

static const struct http_app *app_of(struct http_request *request)
{
        static const struct http_route files[] = { { .path = "/files" }, { .path = NULL } };
        /* Prefixes used by E2B alone: unknown paths below them get an error of E2B. */
        static const char *const theirs[] = { "/v2/", "/v3/", "/sandboxes/", "/templates/", "/snapshots/", "/volumes/",
                "/volumecontent/", "/secrets/", "/teams/", "/nodes/", "/events/", "/api-keys/", "/access-tokens/" };
        const char *id;
        size_t len;
        unsigned port = e2b_parse_target(request, &id, &len);
        if (port)
                return port == E2B_ENVD_PORT ? &envd_app : port == E2B_INTERPRETER_PORT ? &interpreter_app : &port_app;
        if (http_is_for(request, e2b_control_routes, true))
                return &control_app;
        for (size_t i = 0; i < ARRAY_LEN(theirs); i++) {
                size_t name = strlen(theirs[i]) - 1;
                if (strncmp(request->path, theirs[i], name) == 0 &&
                        (request->path[name] == '/' || request->path[name] == 0))
                        return &control_app;
        }
        /* A signed URL names no sandbox. */
        return http_is_for(request, files, false) ? &envd_app : NULL;
}

/* The application of E2B for a request; NULL: none.  A program behind a port answers CORS itself. */
static const struct http_app *e2b_app(struct service *service, struct http_request *request)
{
        const struct http_app *app = app_of(request);
        return app == &port_app ? app : e2b_app_for_page(service, request, app);
}

/* End all sandboxes and builds, and free their state. */
static void e2b_close(struct service *service)
{
        e2b_sandboxes_close(service);
        build_close(service);
}

static enum front_found find_name(struct service *service, const struct front_name *name)
{
        if (strcmp(name->kind, "template") != 0)
                return FRONT_ABSENT;
        if (e2b_template_named(name->name))
                return FRONT_EVERYWHERE;
        json_t *kept = template_store_find(service, name->tenant, name->name);
        bool found = kept || e2b_snapshot_is_there(service, name->tenant, name->name);
        json_decref(kept);
        return found ? FRONT_FOUND : FRONT_ABSENT;
}

static const struct parse_converter converters[] = {
        { .handle = e2b_execute, .convert = e2b_convert_execution, .drop = e2b_drop_execution },
        { .handle = envd_start, .load = rpc_load_stream, .keeps_tree = true },
        { .handle = envd_connect, .load = rpc_load_stream, .keeps_tree = true },
        { .handle = envd_watch, .load = rpc_load_stream, .keeps_tree = true },
        { .handle = NULL },
};

const struct front e2b_front = { .name = "e2b",
        .converters = converters,
        .state_size = sizeof(struct e2b),
        .app = e2b_app,
        .find = find_name,
        .close = e2b_close };
