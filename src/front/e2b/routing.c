/* Whom a request of E2B's clients is for, whether it may, and what is wrong in their words; see e2b.h. */
#include "front/e2b/envd/envd.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>

#define KEY_PREFIX "e2b_"
#define NO_PORT 65536                      /* E2b-Sandbox-Port is none, and nobody's */

/* ---- what is wrong ---- */

/* Takes the reference. */
static void send_error(struct http_request *request, unsigned status, json_t *json)
{
        if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
                http_set_header(request, "Retry-After", "1");
        http_json(request, status, json);
}

static json_t *error_of(struct http_request *request, unsigned status, const char *text)
{
        size_t len;
        const char *clean = model_utf8(&request->arena, text, strlen(text), &len);
        return json_pack("{s:i, s:s%}", "code", (int)status, "message", clean, len);
}

void e2b_error(struct http_request *request, unsigned status, const char *fmt, ...)
{
        char text[600];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        send_error(request, status, error_of(request, status, text));
}


/* Whom a person with a browser asked, and no client of ours. */
static bool is_browser(const struct http_request *request)
{
        const char *agent = http_header(request, "User-Agent");
        unsigned port = e2b_port(request);
        return port && port != E2B_ENVD_PORT && port != E2B_INTERPRETER_PORT && agent && strncmp(agent, "Mozilla/5.0", 11) == 0;
}

static void show_page(struct http_request *request, const char *title, const char *text)
{
        struct buf page;
        buf_init(&page, 4 * KIB);
        buf_printf(&page, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title></head>\n<body><h1>%s</h1><p>%s.</p></body></html>\n", title, title,
                   text);
        http_answer(request, MHD_HTTP_BAD_GATEWAY, "text/html; charset=utf-8", page.bytes, page.len);
}

/* The same three members as E2B's own proxy has, and for people a page. */
static void bad_gateway(struct http_request *request, const char *title, const char *text, unsigned port)
{
        if (is_browser(request)) {
                show_page(request, title, text);
                return;
        }
        json_t *json = error_of(request, MHD_HTTP_BAD_GATEWAY, text);
        json_object_set_new(json, "sandboxId", json_string(request->target ? request->target : ""));
        if (port)
                json_object_set_new(json, "port", json_integer((json_int_t)port));
        http_json(request, MHD_HTTP_BAD_GATEWAY, json);
}

void e2b_not_found(struct http_request *request)
{
        bad_gateway(request, "Sandbox Not Found", "The sandbox was not found", 0);
}

/* The one gateway error at the door is a sandbox that is not there. */
static void on_problem(struct http_request *request, unsigned status, const struct csn_error *error)
{
        if (status == MHD_HTTP_BAD_GATEWAY)
                e2b_not_found(request);
        else
                e2b_error(request, status == MHD_HTTP_UNPROCESSABLE_CONTENT ? MHD_HTTP_BAD_REQUEST : status, "%s", error->text);
}

/* Its server says who may not in a text. */
static void on_interpreter_problem(struct http_request *request, unsigned status, const struct csn_error *error)
{
        if (status == MHD_HTTP_UNAUTHORIZED)
                http_answer(request, status, "text/plain; charset=utf-8", mem_copy(error->text, strlen(error->text)), strlen(error->text));
        else
                on_problem(request, status, error);
}

void e2b_closed_port(struct http_request *request, unsigned port)
{
        bad_gateway(request, "Closed Port Error", "The sandbox is running but port is not open", port);
}

void e2b_no_content(struct http_request *request)
{
        http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

bool e2b_same(const char *one, const char *other)
{
        size_t len = strlen(one);
        return strlen(other) == len && CRYPTO_memcmp(one, other, len) == 0;
}

const char *e2b_text(const json_t *json, const char *name)
{
        const char *text = json_string_value(json_object_get(json, name));
        return text ? text : "";
}

/* ---- whom it is for ---- */

/* "49983-i...": 0 if the host's first label is something else. */
static unsigned parse_label(const char *host, const char **ret_id, size_t *ret_len)
{
        char *end;
        if (!isdigit((unsigned char)host[0]))
                return 0;
        unsigned long port = strtoul(host, &end, 10);
        size_t len = *end == '-' ? strspn(end + 1, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
        if (!len || port == 0 || port > 65535 || end[1 + len] != '.')
                return 0;
        *ret_id = end + 1;
        *ret_len = len;
        return (unsigned)port;
}

/* Clients of a year ago name no sandbox when they ask for files; but its token says which, for each has its own. */
static unsigned parse_token(const struct http_request *request, const char **ret_id, size_t *ret_len)
{
        const char *token = http_header(request, "X-Access-Token");
        for (const struct e2b_sandbox *one = token ? service_of(request)->e2b : NULL; one; one = one->next)
                if (one->token[0] && e2b_same(one->token, token)) {
                        *ret_id = one->id;
                        *ret_len = strlen(one->id);
                        return E2B_ENVD_PORT;
                }
        return 0;
}

static unsigned parse_target(const struct http_request *request, const char **ret_id, size_t *ret_len)
{
        const char *host = http_header(request, "Host"), *id = http_header(request, "E2b-Sandbox-Id"), *port = http_header(request, "E2b-Sandbox-Port");
        unsigned number = host ? parse_label(host, ret_id, ret_len) : 0;
        if (number)
                return number;
        if (!id)
                return parse_token(request, ret_id, ret_len);
        *ret_id = id;
        *ret_len = strlen(id);
        bool digits = port && port[0] && strlen(port) <= 5 && !port[strspn(port, "0123456789")];
        unsigned long given = port ? digits ? strtoul(port, NULL, 10) : 0 : E2B_ENVD_PORT;
        return given > 0 && given <= 65535 ? (unsigned)given : NO_PORT;
}

unsigned e2b_port(const struct http_request *request)
{
        const char *id;
        size_t len;
        unsigned port = parse_target(request, &id, &len);
        return port || !request->target ? port : E2B_ENVD_PORT;
}

struct e2b_sandbox *e2b_target(const struct http_request *request)
{
        struct e2b_sandbox *sandbox = request->target ? e2b_sandbox_find(service_of(request), request->target, "")
                : NULL;
        return sandbox && sandbox->state == E2B_RUNNING && !sandbox->killing ? sandbox : NULL;
}

/* ---- whether it may ---- */

int e2b_has_cpu_time(const struct e2b_sandbox *sandbox, struct http_limit *ret_limit, struct csn_error *err)
{
        return service_tenant_has_cpu_time(sandbox->service, sandbox->tenant, sandbox->wish.cpu_ms_per_day, ret_limit,
                                           err);
}

/* One of our keys, as it is or in E2B's spelling, which older clients insist on: e2b_ and its bytes in hex.  NULL: neither. */
static const char *key_text(struct http_request *request, const char *given)
{
        size_t len = strlen(given), prefix = strlen(KEY_PREFIX), n = 0;
        if (len <= prefix || strncmp(given, KEY_PREFIX, prefix) != 0)
                return given;
        char *text = arena_alloc(&request->arena, len);
        for (const char *at = given + prefix; isxdigit((unsigned char)at[0]) && isxdigit((unsigned char)at[1]); at += 2) {
                const char pair[] = { at[0], at[1], 0 };
                text[n++] = (char)strtoul(pair, NULL, 16);
        }
        text[n] = 0;
        return text;
}

/*
 * Clients of E2B always send some key, and where none is needed each will do.  One of ours still says who it is: it is asked for
 * by its text, and what is none of ours would be refused.
 */
static int admit_control(struct http_request *request, struct csn_error *err)
{
        const char *given = http_header(request, "X-API-Key"), *text = given ? key_text(request, given) : NULL;
        bool ours = text && strncmp(text, "csn_", 4) == 0;
        if (!request->route->scope)
                return 0;
        if (!given) {
                err_set(err, CSN_E_DENIED, 0, "an API key is needed, as X-API-Key: a key of caisson keys create, or what caisson e2b env prints");
                return http_refuse(request, MHD_HTTP_UNAUTHORIZED, err);
        }
        return service_admit(request, ours || !service_of(request)->settings->engine.http_keyless ? text : NULL, err);
}

static void find_target(struct http_request *request)
{
        const char *id;
        size_t len;
        if (parse_target(request, &id, &len))
                request->target = arena_copy(&request->arena, id, len);
}

static int refuse_token(struct http_request *request, unsigned status, const char *text, struct csn_error *err)
{
        err_set(err, CSN_E_DENIED, 0, "%s", text);
        return http_refuse(request, status, err);
}

/* What has a token of its own, or needs none: whether the sandbox is alive, and files by signature. */
static bool is_open(const struct http_request *request)
{
        return strcmp(request->route->path, "/health") == 0 || strcmp(request->route->path, "/files") == 0;
}

/* Whether the sandbox of a request is there, or is to be woken by it: for no other a body is taken. */
static bool is_there(const struct e2b_sandbox *sandbox)
{
        return sandbox && !sandbox->killing && (sandbox->state == E2B_RUNNING || (e2b_sandbox_is_paused(sandbox) && sandbox->wish.auto_resume));
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
                return 0;                  /* /files, whose signature tells it */
        const struct e2b_sandbox *sandbox = e2b_sandbox_find(service_of(request), request->target, "");
        if (!is_there(sandbox))
                return refuse_absent(request, err);
        if (!sandbox->token[0] || (token && e2b_same(sandbox->token, token)))
                return 0;
        if (!is_open(request))
                return refuse_token(request, MHD_HTTP_UNAUTHORIZED, "unauthorized: the access token is missing or wrong", err);
        if (sandbox->state == E2B_RUNNING)
                return 0;                  /* the handlers look */
        /* Nobody wakes one without a right to it. */
        if (strcmp(request->route->path, "/health") == 0)
                return refuse_absent(request, err);
        const char *why = envd_file_refusal(request, sandbox, strcmp(request->route->method, "GET") != 0);
        return why ? refuse_token(request, MHD_HTTP_UNAUTHORIZED, why, err) : 0;
}

static const struct http_app interpreter_app;

/* Code is taken from those alone who may use envd, too. */
static bool may_execute(const struct http_request *request, const struct e2b_sandbox *sandbox)
{
        const char *token = http_header(request, "X-Access-Token");
        return strcmp(request->route->path, "/execute") != 0 || !sandbox->token[0] || (token && e2b_same(sandbox->token, token));
}

static int admit_port(struct http_request *request, struct csn_error *err)
{
        const char *token = http_header(request, "E2B-Traffic-Access-Token");
        find_target(request);
        if (e2b_port(request) == NO_PORT) {
                err_set(err, CSN_E_INPUT, 0, "Invalid sandbox port: E2b-Sandbox-Port is \"%.40s\"; it has to be a number from 1 to 65535",
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
        return refuse_token(request, MHD_HTTP_FORBIDDEN, token ? "Sandbox is secured with traffic access token. Provided token is invalid."
                                                               : "Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' is missing.", err);
}

/* ---- one that is to be woken ---- */

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
        if (request->route->body == BODY_STREAM)
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
        else if (e2b_target(request) || !request->target)   /* none: /files, whose signature tells it */
                request->route->handle(request);
        else
                e2b_not_found(request);
}

/* ---- the four of them ---- */

static const struct http_app control_app = { .routes = e2b_control_routes, .slashes = true, .admit = admit_control, .problem = on_problem };
static const struct http_app envd_app = { .routes = e2b_envd_routes, .admit = admit_envd, .handle = handle, .problem = on_problem };
static const struct http_app interpreter_app = { .routes = e2b_interpreter_routes, .admit = admit_port, .handle = handle, .problem = on_interpreter_problem };
static const struct http_app port_app = { .routes = e2b_port_routes, .slashes = true, .admit = admit_port, .handle = handle, .problem = on_problem };

static const struct http_app *app_of(struct http_request *request)
{
        static const struct http_route files[] = { { .path = "/files" }, { .path = NULL } };
        /* Where nobody else has anything: what is not there is told in E2B's words. */
        static const char *const theirs[] = { "/v2/", "/v3/", "/sandboxes/", "/templates/", "/snapshots/", "/volumes/", "/volumecontent/", "/secrets/", "/teams/",
                                              "/nodes/", "/events/", "/api-keys/", "/access-tokens/" };
        const char *id;
        size_t len;
        unsigned port = parse_target(request, &id, &len);
        if (port)
                return port == E2B_ENVD_PORT ? &envd_app : port == E2B_INTERPRETER_PORT ? &interpreter_app : &port_app;
        if (http_is_for(request, e2b_control_routes, true))
                return &control_app;
        for (size_t i = 0; i < ARRAY_LEN(theirs); i++) {
                size_t name = strlen(theirs[i]) - 1;
                if (strncmp(request->path, theirs[i], name) == 0 && (request->path[name] == '/' || request->path[name] == 0))
                        return &control_app;
        }
        /* A signed URL names no sandbox. */
        return http_is_for(request, files, false) ? &envd_app : NULL;
}

/* What pages may ask of a program of the user's is for the program to say. */
const struct http_app *e2b_app(struct service *service, struct http_request *request)
{
        const struct http_app *app = app_of(request);
        return app == &port_app ? app : e2b_app_for_page(service, request, app);
}
