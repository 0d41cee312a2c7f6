/*
 * The service of all HTTP fronts: its life, admission, and quotas; see service.h.
 *
 * A request is admitted by its key, by its user on the listener of this host, or, with engine.http_keyless, by coming from
 * this host.  What depends on the front (its routes, its applications, its hooks) is reached through struct front.
 */
#include "front/service/service.h"

#include "front/service/bulk.h"
#include "front/service/connections.h"
#include "front/service/run.h"
#include "net/http_headers.h"
#include "tools/tools.h"

#include <stdio.h>

#define DAY_MS 86400000

/* ---- fronts ---- */

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

void *service_state(const struct service *service, const struct front *front)
{
        size_t i = 0;
        while (service->fronts[i] != front)
                i++;
        return service->states[i];
}

/* Calls a hook of all fronts that have it, from the last to the first. */
#define CALL_HOOK(service, hook) \
        for (size_t left_ = fronts_n((service)->fronts); left_ > 0; left_--) \
                if ((service)->fronts[left_ - 1]->hook) \
                        (service)->fronts[left_ - 1]->hook(service)

static size_t fronts_n(const struct front *const *fronts)
{
        size_t n = 0;
        while (fronts[n])
                n++;
        return n;
}

/* One table of the routes of all fronts, in which requests are looked up. */
static void join_fronts(struct service *service)
{
        static const struct http_route end = { .path = NULL };
        size_t fronts = fronts_n(service->fronts), n = 0;
        for (size_t i = 0; i < fronts; i++)
                for (const struct http_route *route = service->fronts[i]->routes; route && route->path; route++)
                        n++;
        service->states = mem_alloc((fronts + 1) * sizeof *service->states);
        service->routes = mem_alloc((n + 1) * sizeof *service->routes);
        n = 0;
        for (size_t i = 0; i < fronts; i++) {
                service->states[i] = service->fronts[i]->state_size ? mem_alloc(service->fronts[i]->state_size) : NULL;
                for (const struct http_route *route = service->fronts[i]->routes; route && route->path; route++)
                        service->routes[n++] = *route;
        }
        service->routes[n] = end;
}

static void free_fronts(struct service *service)
{
        for (size_t i = 0; service->states && service->fronts[i]; i++)
                free(service->states[i]);
        free(service->states);
        free(service->routes);
}

/* ---- admission ---- */

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
 * A page of this host that the front admits.  A page sends a preflight before application/json (Fetch standard), and no route
 * answers that; so such a page is served by a proxy of its own.
 */
static bool is_local_page(const struct http_request *request, const char *origin)
{
        return allows_local_pages(request) && strncmp(origin, "http://", 7) == 0 && is_local_name(origin + 7);
}

/* A front that admits pages checks the Origin with a key, too: it has to be this host, or the name in the Host header. */
static int refuse_other_origins(const struct http_request *request, struct csn_error *err)
{
        const char *origin = http_header(request, "Origin"), *host = http_header(request, "Host");
        const char *name = origin ? strstr(origin, "://") : NULL;
        if (!origin || !allows_local_pages(request) || is_local_page(request, origin) || (name && host && strcasecmp(name + 3, host) == 0))
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

/* Whether the operation of a route takes an Idempotency-Key, by its note. */
static bool keeps_names(const struct http_request *request)
{
        const struct front *front = front_of(request);
        for (const struct front_note *note = front ? front->notes : NULL; note && note->handle; note++)
                if (note->handle == request->route->handle)
                        return note->headers && strstr(note->headers, "Idempotency-Key");
        return false;
}

/* A header that promises that a request is carried out once is not ignored where nothing keeps that promise. */
static int check_idempotency(const struct http_request *request, struct csn_error *err)
{
        if (strcmp(request->route->method, "POST") != 0 || !http_header(request, "Idempotency-Key") || keeps_names(request))
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

static const struct http_app *on_app(void *owner, struct http_request *request)
{
        struct service *service = owner;
        for (const struct front *const *front = service->fronts; *front; front++) {
                const struct http_app *app = (*front)->app ? (*front)->app(service, request) : NULL;
                if (app)
                        return app;
        }
        return &service->app;
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

struct store_room service_room(const struct http_request *request)
{
        const struct engine_settings *settings = &service_of(request)->settings->engine;
        const struct store_key *key = service_key(request);
        return (struct store_room){ .file_max = settings->file_bytes_max, .tenant_max = key ? key->stored_bytes : 0, .all_max = settings->files_bytes_max };
}

/*
 * 413 for a file that would be too large at any time.  Where there is no room for what could be kept at another, the fault
 * is not the request's (RFC 4918, 11.5): 507.
 */
void service_fail_room(struct http_request *request, const struct csn_error *error)
{
        if (error->sys == EFBIG)
                http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, error);
        else if (error->sys == EDQUOT || error->sys == ENOSPC)
                http_problem(request, MHD_HTTP_INSUFFICIENT_STORAGE, error);
        else
                http_fail(request, error);
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

int service_open(struct engine *engine, const struct settings *settings, struct store *store,
                 const struct front *const *fronts, int listener, bool ours, void (*idle)(void *owner), void *owner,
                 struct service **ret, struct csn_error *err)
{
        struct service *service = mem_alloc(sizeof *service);
        *service = (struct service){ .engine = engine, .settings = settings, .loop = engine_loop(engine), .fronts = fronts,
                                     .store = store, .idle = idle, .owner = owner, .started_us = clock_us() };
        join_fronts(service);
        service->app = (struct http_app){ .routes = service->routes, .admit = admit };
        if (store) {
                run_storage_sweep(store);
                engine_set_usage_listener(engine, on_used, store);
        }
        int rc = otlp_open(service->loop, settings, &service->otlp, err);
        http_open_internal(service->loop, &service->app, &http_events, service, &service->inner);
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
        CALL_HOOK(service, drain);
        if (service->http)
                http_drain(service->http);
        if (service->local)
                http_drain(service->local);
}

bool service_is_idle(const struct service *service)
{
        return service->live == 0 && (!service->http || http_busy(service->http) == 0) &&
               (!service->local || http_busy(service->local) == 0) && http_busy(service->inner) == 0;
}

void service_cancel(struct service *service)
{
        service_runs_cancel(service);
        bulks_cancel(service);
        CALL_HOOK(service, cancel);
}

void service_changed(struct service *service)
{
        CALL_HOOK(service, changed);
}

void service_close(struct service *service)
{
        if (!service)
                return;
        CALL_HOOK(service, stop);
        service_runs_close(service);
        http_close(service->local);
        service->local = NULL;                 /* a request of the other one that is cut asks whether all is idle */
        http_close(service->http);
        service->http = NULL;
        http_close(service->inner);
        CALL_HOOK(service, close);
        otlp_close(service->otlp);
        free_fronts(service);
        free(service);
}
