/*
 * Admission of requests: by a key, by the user on the listener of this host, or, with engine.http_keyless, by coming
 * from this host.  A worker of a gateway answers signed requests alone.  The Origin and the Host of a request are
 * checked against web pages.
 */
#include "front/service/service.h"

#include "front/http/credentials.h"
#include "hop/worker.h"
#include "tools/tools.h"

#include <arpa/inet.h>
#include <ctype.h>
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

/* ---- gateways ---- */

const struct service_caller *service_caller(const struct http_request *request)
{
        return request->caller;
}

struct header_search {
        const char *name, *value;
        size_t n;
};

static bool count_header(void *owner, const char *name, const char *value)
{
        struct header_search *search = owner;
        if (strcasecmp(name, search->name) == 0) {
                search->value = value;
                search->n++;
        }
        return true;
}

/* The only header of this name; NULL: none.  Errors: CSN_E_DENIED (several: programs between might differ). */
static int find_single(const struct http_request *request, const char *name, const char **ret, struct csn_error *err)
{
        struct header_search search = { .name = name };
        http_each_header(request, count_header, &search);
        *ret = search.value;
        return search.n > 1 ? err_set(err, CSN_E_DENIED, 0, "%s is there %zu times", name, search.n) : 0;
}

static bool is_key_id(const char *id)
{
        size_t len = strlen(id), room = sizeof((struct store_key *)NULL)->id;
        for (size_t i = 0; i < len; i++)
                if (!isalnum((unsigned char)id[i]))
                        return false;
        return len > 0 && len < room;
}

static int take_claims(const struct hop_claims *claims, struct arena *arena, const struct store_key **ret,
        struct csn_error *err)
{
        struct store_key *key = arena_alloc(arena, sizeof *key);
        if (!is_key_id(claims->key) || claims->scopes > UINT32_MAX)
                return err_set(err, CSN_E_DENIED, 0,
                        "the claims in " HOP_CALL_HEADER " have a key or scopes that no store has");
        *key = (struct store_key){ .name = claims->key,
                .tenant = claims->tenant,
                .scopes = (unsigned)claims->scopes,
                .running_max = claims->running_max,
                .queued_max = claims->queued_max,
                .cpu_ms_per_day = claims->cpu_ms_per_day,
                .stored_bytes = claims->stored_bytes,
                .review_budget_nanousd = claims->review_budget_nanousd };
        snprintf(key->id, sizeof key->id, "%s", claims->key);
        if (keys_check(key, err) < 0) {
                err->code = CSN_E_DENIED;
                err->field[0] = 0;
                return err_wrap(err, "the claims in " HOP_CALL_HEADER);
        }
        *ret = key;
        return 0;
}

static int check_call(const struct service *service, struct http_request *request, struct csn_error *err)
{
        struct hop_claims *claims = NULL;
        const char *value = NULL;
        bool trusts = service->settings->gateway.keys == gateway_keys_GATEWAY;
        if (find_single(request, HOP_CALL_HEADER, &value, err) < 0)
                return -err->code;
        if (!value)
                return err_set(err, CSN_E_DENIED, 0,
                        "this daemon is a worker (gateway.key_file) and answers its gateways alone: the request has no " HOP_CALL_HEADER
                        " header; send it to the gateway");
        if (!service->worker)
                return err_set(err, CSN_E_DENIED, 0, "this worker has no keys yet");
        if (hop_worker_verify(service->worker, value, request->method, request->received_uri, &request->arena, &claims,
                    err) < 0)
                return -err->code;
        struct service_caller *caller = arena_alloc(&request->arena, sizeof *caller);
        caller->keys_are_gateways = trusts;
        if (trusts && claims && take_claims(claims, &request->arena, &caller->key, err) < 0)
                return -err->code;
        request->caller = caller;
        return 0;
}

/* Health probes of kubelets and service managers, which sign nothing. */
static bool is_probe(const struct http_request *request)
{
        bool is_read = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
        return is_read && (strcmp(request->path, "/healthz") == 0 || strcmp(request->path, "/readyz") == 0);
}

int service_greet(struct service *service, struct http_request *request, struct csn_error *err)
{
        bool is_guarded = service->settings->gateway.key_file[0] && request->http == service->http;
        if (!is_guarded || check_call(service, request, err) == 0 || is_probe(request))
                return 0;
        return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
}

int service_begin(struct service *service, struct http_request *request, struct csn_error *err)
{
        const char *id;
        if (!request->caller)
                return 0;
        if (find_single(request, HOP_ATTEMPT_HEADER, &id, err) < 0)
                return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
        if (!id)
                return 0;
        if (!attempts_is_id(id)) {
                err_set(err, CSN_E_INPUT, 0, HOP_ATTEMPT_HEADER " has %d hexadecimal digits in lower case",
                        HOP_ATTEMPT_LEN);
                return http_refuse(request, MHD_HTTP_BAD_REQUEST, err);
        }
        if (attempts_admit(service->worker->attempts, id, clock_us())) {
                struct service_caller *caller = (struct service_caller *)(uintptr_t)request->caller;
                caller->attempt = arena_text(&request->arena, "%s", id);
                return 0;
        }
        http_set_header(request, HOP_ATTEMPT_HEADER, HOP_ATTEMPT_BARRED);
        err_set(err, CSN_E_DENIED, 0,
                "this attempt was carried out before, or a gateway was told that it was not admitted");
        return http_refuse(request, MHD_HTTP_CONFLICT, err);
}

void service_answering(struct service *service, struct http_request *request)
{
        char text[80];
        if (!request->caller)
                return;
        const struct engine_load load = engine_load(service->engine);
        snprintf(text, sizeof text, "%zu %zu %zu", load.running, load.queued, load.slots);
        http_set_header(request, HOP_LOAD_HEADER, text);
        http_set_header(request, HOP_BOOT_HEADER, service->worker->boot);
}

void service_bar_attempt(const struct http_request *request)
{
        const struct service_caller *caller = request->caller;
        if (caller && caller->attempt)
                attempts_bar(service_of(request)->worker->attempts, caller->attempt);
}

void service_over(const struct service *service, const struct http_request *request)
{
        const struct service_caller *caller = request->caller;
        if (caller && caller->attempt)
                attempts_end(service->worker->attempts, caller->attempt);
}

/* ---- web pages ---- */

/*
 * Whether the front admits pages of this host, and the Origin is such a page.  A browser sends a preflight before
 * application/json (Fetch standard), and no route answers a preflight; so such a page needs a proxy.
 */
static bool is_local_page(const struct http_request *request, const char *origin)
{
        return allows_local_pages(request) && strncmp(origin, "http://", 7) == 0 &&
                credentials_is_local_name(origin + 7);
}

/*
 * A front with pages checks the Origin of requests with a key, too: this host, or the name in the Host header.
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

/* Bytes of a Host without its port; 0: the text is no Host. */
static size_t name_len(const char *host)
{
        const char *end = host[0] == '[' ? strchr(host, ']') : NULL;
        size_t len = end ? (size_t)(end + 1 - host) : strcspn(host, ":");
        const char *port = host + len;
        return *port && (*port != ':' || port[1 + strspn(port + 1, "0123456789")]) ? 0 : len;
}

/* An entry of http.allowed_hosts; its names have no ports. */
static bool is_allowed_name(const struct service *service, const char *host)
{
        size_t len = name_len(host);
        for (const char *at = service->settings->http.allowed_hosts; *at; at += strcspn(at, ","), at += *at == ',') {
                at += strspn(at, " \t");
                if (strcspn(at, ", \t") == len && strncasecmp(at, host, len) == 0)
                        return len > 0;
        }
        return false;
}

/* A local or allowed name, or an address: a foreign page cannot make such a host point here (DNS rebinding). */
static bool is_page_host(const struct service *service, const char *host)
{
        char address[64];
        uint8_t bytes[16];
        size_t len = name_len(host);
        bool is_v6 = host[0] == '[';
        if (credentials_is_local_name(host) || is_allowed_name(service, host))
                return true;
        snprintf(address, sizeof address, "%.*s", (int)min_u64(len - (is_v6 ? 2 : 0), sizeof address), host + is_v6);
        return len > 2 && inet_pton(is_v6 ? AF_INET6 : AF_INET, address, bytes) == 1;
}

const char *service_no_page(const struct http_request *request)
{
        const struct service *service = service_of(request);
        int mode = service->settings->http.web;
        if (!service->has_page)
                return "this program was built without npm, so the page is not in it";
        if (mode == web_modes_OFF)
                return "http.web is off";
        if (mode == web_modes_AUTO && request->http == service->http && !http_is_local(service->http))
                return "http.web is auto, and others can reach the address of engine.http; set http.web to on";
        return NULL;
}

/* The scheme may be https: a proxy before the daemon has the certificate. */
static bool is_same_origin(const char *origin, const char *host)
{
        size_t scheme = strncmp(origin, "http://", 7) == 0 ? 7 : strncmp(origin, "https://", 8) == 0 ? 8 : 0;
        return scheme && host && strcasecmp(origin + scheme, host) == 0;
}

int service_check_page(const struct http_request *request, struct csn_error *err)
{
        const char *origin = http_header(request, "Origin"), *host = http_header(request, "Host");
        if (host && host[0] && !is_page_host(service_of(request), host))
                return err_set(err, CSN_E_DENIED, 0,
                        "the name %.100s is not one of this daemon's: call it by an address, or set http.allowed_hosts",
                        host);
        if (origin && !is_same_origin(origin, host))
                return err_set(err, CSN_E_DENIED, 0, "pages of %.100s may not load the page of this daemon", origin);
        return 0;
}

/* The daemon's own page. */
static bool is_own_page(const struct http_request *request, const char *origin)
{
        const char *host = http_header(request, "Host");
        return !service_no_page(request) && is_same_origin(origin, host) && is_page_host(service_of(request), host);
}

/*
 * Without a key any request is answered, and a web page can send requests through a browser on this host: with an
 * Origin (Fetch standard), or under a name of the page's own, made to resolve to this host (DNS rebinding).
 */
static int refuse_web_pages(const struct http_request *request, struct csn_error *err)
{
        const char *origin = http_header(request, "Origin"), *host = http_header(request, "Host");
        if (origin && !is_local_page(request, origin) && !is_own_page(request, origin))
                return err_set(err, CSN_E_DENIED, 0, "web pages (Origin: %.100s) are not answered without a key",
                        origin);
        if (request->caller)
                return 0;                  /* the gateway has checked its own name */
        if (host && host[0] && !credentials_is_local_name(host) && !is_allowed_name(service_of(request), host))
                return err_set(err, CSN_E_DENIED, 0,
                        "without a key only the names localhost, 127.0.0.1 and [::1], and those of http.allowed_hosts, "
                        "are answered, not %.100s",
                        host);
        return 0;
}

/* ---- keys and users ---- */

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

/* With gateway.keys = gateway: take key and tenant of the request from the signed claims. */
static int admit_claims(struct http_request *request, struct csn_error *err)
{
        request->key = service_caller(request)->key;
        snprintf(request->tenant, sizeof request->tenant, "%s", service_key(request)->tenant);
        if (check_scope(request, err) < 0)
                return -err->code;
        return refuse_other_origins(request, err);
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

bool service_is_claimed(const struct http_request *request)
{
        const struct service_caller *caller = service_caller(request);
        return caller && caller->keys_are_gateways;
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
        if (service_is_claimed(request)) {
                if (service_caller(request)->key)
                        return admit_claims(request, err);
                text = NULL;
        }
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

/* Refuse an Idempotency-Key on a route without idempotency: the client would rely on a promise kept by no code. */
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
        if (service_admit(request, credentials_of(request), err) < 0)
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

json_t *service_tools(const struct http_request *request, const char *name, bool named)
{
        const struct store_key *key = request->key;
        const struct service *service = service_of(request);
        struct arena arena = { 0 };
        struct profile profile;
        struct csn_error err;
        bool all = named && (!key || (key->scopes & (SCOPE_TOOLS | SCOPE_ADMIN)));
        json_t *list = NULL;
        if (service->tools && profile_find(service->settings, name, &arena, &profile, &err) == 0 &&
                (profile.request.tools.enabled || profile.request.tools.allow_n))
                list = tools_describe(service->tools, &profile.request.tools, all);
        arena_done(&arena);
        return list;
}
