/* Helpers for all handlers of E2B: the sandbox and the members of a request, and answers in E2B's form. */
#include "front/e2b/request.h"

#include "front/service/parse.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- texts ---- */

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

json_t *e2b_time(int64_t ms)
{
        char text[40];
        time_print(ms, text, sizeof text);
        return json_string(text);
}

/* ---- the sandbox of a request ---- */

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

/* Older clients name no sandbox in requests for files; each sandbox has its own token, so the token identifies it. */
static unsigned parse_token(const struct http_request *request, const char **ret_id, size_t *ret_len)
{
        const char *token = http_header(request, "X-Access-Token");
        for (const struct e2b_sandbox *one = token ? e2b_of(service_of(request))->sandboxes : NULL; one;
                one = one->next)
                if (one->token[0] && e2b_same(one->token, token)) {
                        *ret_id = one->id;
                        *ret_len = strlen(one->id);
                        return E2B_ENVD_PORT;
                }
        return 0;
}

unsigned e2b_parse_target(const struct http_request *request, const char **ret_id, size_t *ret_len)
{
        const char *host = http_header(request, "Host"), *id = http_header(request, "E2b-Sandbox-Id"),
                   *port = http_header(request, "E2b-Sandbox-Port");
        unsigned number = host ? parse_label(host, ret_id, ret_len) : 0;
        if (number)
                return number;
        if (!id)
                return parse_token(request, ret_id, ret_len);
        *ret_id = id;
        *ret_len = strlen(id);
        bool digits = port && port[0] && strlen(port) <= 5 && !port[strspn(port, "0123456789")];
        unsigned long given = port ? digits ? strtoul(port, NULL, 10) : 0 : E2B_ENVD_PORT;
        return given > 0 && given <= 65535 ? (unsigned)given : E2B_NO_PORT;
}

unsigned e2b_port(const struct http_request *request)
{
        const char *id;
        size_t len;
        unsigned port = e2b_parse_target(request, &id, &len);
        return port || !request->target ? port : E2B_ENVD_PORT;
}

struct e2b_sandbox *e2b_target(const struct http_request *request)
{
        struct e2b_sandbox *sandbox = request->target ? e2b_sandbox_find(service_of(request), request->target, "")
                : NULL;
        return sandbox && sandbox->state == E2B_RUNNING && !sandbox->killing ? sandbox : NULL;
}

int e2b_has_cpu_time(const struct e2b_sandbox *sandbox, struct http_limit *ret_limit, struct csn_error *err)
{
        return service_tenant_has_cpu_time(sandbox->service, sandbox->tenant, sandbox->wish.quota.cpu_ms_per_day,
                                           ret_limit, err);
}

int e2b_may_begin_program(const struct e2b_sandbox *sandbox, struct http_limit *ret_limit, struct csn_error *err)
{
        return service_may_begin_program(sandbox->service, sandbox->tenant, &sandbox->wish.quota, sandbox->psandbox,
                                         ret_limit, err);
}

/* ---- answers ---- */

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

/* Whether a person with a browser sent the request, and not a client of E2B. */
static bool is_browser(const struct http_request *request)
{
        const char *agent = http_header(request, "User-Agent");
        unsigned port = e2b_port(request);
        return port && port != E2B_ENVD_PORT && port != E2B_INTERPRETER_PORT && agent &&
                strncmp(agent, "Mozilla/5.0", 11) == 0;
}

static void show_page(struct http_request *request, const char *title, const char *text)
{
        struct buf page;
        buf_init(&page, 4 * KIB);
        buf_printf(&page,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title></head>\n<body><h1>%s</h1><p>%s.</p></body></html>\n",
                title, title, text);
        http_answer(request, MHD_HTTP_BAD_GATEWAY, "text/html; charset=utf-8", page.bytes, page.len);
}

/* The same three members as in answers of E2B's own proxy; a page for people. */
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

void e2b_closed_port(struct http_request *request, unsigned port)
{
        bad_gateway(request, "Closed Port Error", "The sandbox is running but port is not open", port);
}

void e2b_no_content(struct http_request *request)
{
        http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

void e2b_fail(struct http_request *request, const struct csn_error *error)
{
        if (error->code == CSN_E_INPUT && error->sys == ENOENT)
                e2b_error(request, MHD_HTTP_NOT_FOUND, "%s", error->text);
        else
                http_fail(request, error);
}

void e2b_conflict(struct http_request *request, const struct csn_error *error)
{
        if (error->code == CSN_E_BUSY)
                e2b_error(request, MHD_HTTP_CONFLICT, "%s", error->text);
        else
                http_fail(request, error);
}

/* ---- members of a request ---- */

json_t *e2b_body(struct http_request *request, const struct e2b_member *members)
{
        struct csn_error err;
        json_t *body = request->body.len ? json_body(request, &err) : json_object();
        if (body && e2b_check(body, members, &err) == 0)
                return body;
        e2b_error(request, MHD_HTTP_BAD_REQUEST, "%s", err.text);
        json_decref(body);
        return NULL;
}

bool e2b_life(struct http_request *request, const json_t *body, const char *name, unsigned usual_s, uint64_t *ret_ms)
{
        const json_t *given = json_object_get(body, name);
        bool none = !given || json_is_null(given);
        double seconds = none ? usual_s : json_number_value(given);
        uint64_t most_s = min_u64(service_of(request)->settings->engine.sandbox_ttl_ms / 1000, E2B_TIMEOUT_MAX_S);
        char shown[E2B_SHOWN_MAX];
        if (none ? !usual_s : !json_is_number(given) || seconds < 0 || seconds > (double)most_s) {
                e2b_show(given, shown);
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "%s has to be a number of seconds from 0 to %llu; it is %s",
                        name, (unsigned long long)most_s, shown);
                return false;
        }
        *ret_ms = (uint64_t)(seconds * 1000);
        return true;
}

static struct e2b_sandbox *named(struct http_request *request, bool killing)
{
        const char *id = http_part(request, 0);
        struct e2b_sandbox *sandbox = e2b_sandbox_find(service_of(request), id, request->tenant);
        if (sandbox && (killing || !sandbox->killing))
                return sandbox;
        e2b_error(request, MHD_HTTP_NOT_FOUND, "Sandbox %.60s doesn't exist or you don't have access to it", id);
        return NULL;
}

struct e2b_sandbox *e2b_named(struct http_request *request)
{
        return named(request, false);
}

struct e2b_sandbox *e2b_named_or_ending(struct http_request *request)
{
        return named(request, true);
}

bool e2b_limit(struct http_request *request, size_t *ret)
{
        const char *limit = http_query(request, "limit");
        char *end = NULL;
        unsigned long number = limit ? strtoul(limit, &end, 10) : E2B_PAGE_MAX;
        *ret = number;
        if (!end || (!*end && number >= 1 && number <= E2B_PAGE_MAX))
                return true;
        e2b_error(request, MHD_HTTP_BAD_REQUEST, "limit is \"%.40s\"; it has to be a number from 1 to %d", limit,
                E2B_PAGE_MAX);
        return false;
}

bool e2b_query_number(struct http_request *request, const char *name, int64_t usual, int64_t *ret)
{
        const char *text = http_query(request, name);
        *ret = text && *text ? strtoll(text, NULL, 10) : usual;
        if (!text || (strlen(text) < 19 && !text[strspn(text, "0123456789")]))
                return true;
        e2b_error(request, MHD_HTTP_BAD_REQUEST, "%s is \"%.40s\"; it has to be a whole number, from 0 on", name, text);
        return false;
}
