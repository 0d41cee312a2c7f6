/*
 * Admission of requests: by a key, by the user on the listener of this host, or, with engine.http_keyless, by coming
 * from this host.  The Origin and the Host of a request are checked against web pages.
 */
#include "front/service/service.h"

#include "net/http_headers.h"
#include "tools/tools.h"

#include <stdio.h>

/* The front of an admitted request's route; NULL: the route belongs to an application of its own. */
static const struct front *front_of(const struct http_request *request)
{
        for (const struct front *const *front = service_of(request)->fronts; request->route && *front; front++)
                for (const struct http_route *route = (*front)->routes; route && route->path; route++)
                        if (route->handle == request->route->handle && strcmp(route->path, request->route->path) == 0)
                                return *front;
        return NULL;
}

static bool allows_local_pages(const struct http_request *request)
{
        const struct front *front = front_of(request);
        return front && front->local_pages;
}

/* ---- web pages ---- */

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
 * Whether the front admits pages of this host, and the Origin is such a page.  A browser sends a preflight before
 * application/json (Fetch standard), and no route answers a preflight; so such a page needs a proxy.
 */
static bool is_local_page(const struct http_request *request, const char *origin)
{
        return allows_local_pages(request) && strncmp(origin, "http://", 7) == 0 && is_local_name(origin + 7);
}

/*
 * A front that admits pages checks the Origin of requests with a key, too: this host, or the name in the Host header.
 */
static int refuse_other_origins(const struct http_request *request, struct csn_error *err)
{
        const char *origin = http_header(request, "Origin"), *host = http_header(request, "Host");
        const char *name = origin ? strstr(origin, "://") : NULL;
        if (!origin || !allows_local_pages(request) || is_local_page(request, origin) ||
                (name && host && strcasecmp(name + 3, host) == 0))
                return 0;
        return err_set(err, CSN_E_DENIED, 0, "pages of %.100s may not speak to this server", origin);
}

/*
 * Without a key any request that arrives is answered, and a web page can send requests through a browser on this
 * host: with an Origin (Fetch standard), or under a name of the page's own that resolves to this host (DNS
 * rebinding).
 */
static int refuse_web_pages(const struct http_request *request, struct csn_error *err)
{
        const char *origin = http_header(request, "Origin"), *host = http_header(request, "Host");
        if (origin && !is_local_page(request, origin))
                return err_set(err, CSN_E_DENIED, 0, "web pages (Origin: %.100s) are not answered without a key",
                        origin);
        if (host && host[0] && !is_local_name(host))
                return err_set(err, CSN_E_DENIED, 0,
                        "without a key only the names localhost, 127.0.0.1 and [::1] are answered, not %.100s", host);
        return 0;
}

/* ---- keys and users ---- */

/* The password of "Basic ...", which a client sends for http://user:KEY@host; "" without a password. */
static const char *password(struct http_request *request, const char *basic)
{
        struct bytes bytes;
        basic += strspn(basic, " ");
        const char *colon =
                model_unbase64(&request->arena, basic, strlen(basic), &bytes) ? strchr(bytes.bytes, ':') : NULL;
        return colon ? colon + 1 : "";
}

/*
 * "Authorization: Bearer KEY", or "X-API-Key: KEY"; Judge0's clients send X-Auth-Token, and some of SandboxFusion's
 * have a URL alone.
 */
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

static int check_key(struct service *service, struct http_request *request, const char *text, struct csn_error *err)
{
        struct store_key *key = arena_alloc(&request->arena, sizeof *key);
        if (!service->store)
                return err_set(err, CSN_E_DENIED, 0,
                        "this daemon knows no keys, for engine.http is empty; on this socket none is needed");
        if (keys_find(service->store, text, &request->arena, key, err) < 0)
                return -err->code;
        request->key = key;
        snprintf(request->tenant, sizeof request->tenant, "%s", key->tenant);
        return check_scope(request, err);
}

/* Admit by the uid of the client; with a key, the key decides the tenant. */
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
                return err_set(err, CSN_E_DENIED, 0, "that is for root, for user %u, and for keys with the scope admin",
                        geteuid());
        return refuse_web_pages(request, err);
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
                err_set(err, CSN_E_DENIED, 0,
                        "a key is needed: Authorization: Bearer csn_...; caisson keys create makes one");
        if (request->key || err->code != CSN_E_DENIED)
                return -err->code;
        http_set_header(request, "WWW-Authenticate", "Bearer");
        return http_refuse(request, MHD_HTTP_UNAUTHORIZED, err);
}

/* ---- the service's own routes ---- */

/* Whether the operation of a route takes an Idempotency-Key, by its note. */
static bool keeps_names(const struct http_request *request)
{
        const struct front *front = front_of(request);
        for (const struct front_note *note = front ? front->notes : NULL; note && note->handle; note++)
                if (note->handle == request->route->handle)
                        return note->headers && strstr(note->headers, "Idempotency-Key");
        return false;
}

/* Refuse an Idempotency-Key on a route without idempotency: the client would rely on a promise that no code keeps. */
static int check_idempotency(const struct http_request *request, struct csn_error *err)
{
        if (strcmp(request->route->method, "POST") != 0 || !http_header(request, "Idempotency-Key") ||
                keeps_names(request))
                return 0;
        return err_field(err, "Idempotency-Key",
                "POST %s would be carried out again; an Idempotency-Key is for POST /v1/runs, /v1/contexts/{id}/runs and "
                "/v1/sessions/{id}/runs",
                request->route->path);
}

int service_admit_own(struct http_request *request, struct csn_error *err)
{
        unsigned status = 0;
        if (service_admit(request, key_of(request), err) < 0)
                return -err->code;
        if (http_body_of(request->route) == BODY_STREAM && http_check_coding(request, &status, err) < 0)
                return http_refuse(request, status, err);
        return check_idempotency(request, err);
}

/* ---- for handlers ---- */

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
