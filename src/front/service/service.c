/* The service of all HTTP fronts: open and close, and events, which are handed on to the fronts; see service.h. */
#include "front/service/service.h"

#include "front/service/bulk.h"
#include "front/service/connections.h"
#include "front/service/parse.h"
#include "front/service/run.h"
#include "grading/grading.h"

/* ---- fronts ---- */

void *service_state(const struct service *service, const struct front *front)
{
        size_t i = 0;
        while (service->fronts[i] != front)
                i++;
        return service->states[i];
}

void *service_state_of(const struct service *service, const char *name)
{
        size_t i = 0;
        while (strcmp(service->fronts[i]->name, name) != 0)
                i++;
        return service->states[i];
}

/* Calls a hook of all fronts with the hook, from the last to the first. */
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

/* Join the routes of all fronts in a table, in which requests are looked up. */
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

static int on_greet(void *owner, struct http_request *request, struct csn_error *err)
{
        return service_greet(owner, request, err);
}

static int on_begin(void *owner, struct http_request *request, struct csn_error *err)
{
        return service_begin(owner, request, err);
}

static void on_answering(void *owner, struct http_request *request)
{
        service_answering(owner, request);
}

static void on_answered(void *owner, struct http_request *request, unsigned status)
{
        struct service *service = owner;
        service->answers[status / 100 < 6 ? status / 100 : 0]++;
        const struct log_context about = {
                .request = request->id, .trace = request->trace.id, .owner = request->tenant
        };
        log_about(LOG_INFO, &about, "%.10s %s answered with %u after %llu us", request->method,
                request->route ? request->route->path : "-", status,
                (unsigned long long)(clock_us() - request->began_us));
}

static void on_over(void *owner, const struct http_request *request)
{
        service_over(owner, request);
        trace_request(owner, request);
}

static void on_ended(void *owner)
{
        const struct service *service = owner;
        if (service_is_idle(service))
                service->idle(service->owner);
}

/* ---- in order ---- */

/* Whether a usable key exists. */
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
        const struct settings *settings = service->settings;
        bool keyless = settings->engine.http_keyless, keys, is_worker = settings->gateway.key_file[0];
        const char *address = http_address(service->http);
        if (is_worker && (keyless || settings->gateway.keys == gateway_keys_GATEWAY))
                return 0;                  /* gateways alone are answered */
        if (keyless && !http_is_local(service->http))
                return err_set(err, CSN_E_CONFIG, 0,
                        "engine.http_keyless is set, and HTTP is at %s, which others can reach; without keys it has to be "
                        "a loopback address or unix:/path",
                        address);
        if (has_keys(service->store, &keys, err) < 0)
                return -err->code;
        if (!keys && !keyless)
                return err_set(err, CSN_E_CONFIG, 0,
                        "nobody could use HTTP (%s): make a key by caisson keys create, or set engine.http_keyless "
                        "for a loopback address",
                        address);
        return 0;
}

static struct shares *open_shares(void)
{
        uint64_t network = service_connections_max(false), local = service_connections_max(true);
        return shares_new((const uint64_t[SHARES_N]){ [SHARE_BODIES] = HTTP_BODIES_MAX,
                [SHARE_STREAMS] = HTTP_QUEUES_MAX,
                [SHARE_READERS] = HTTP_READERS_MAX,
                [SHARE_REQUESTS] = network,
                [SHARE_LOCAL_REQUESTS] = local,
                [SHARE_SESSIONS] = SERVICE_SESSIONS_MAX,
                [SHARE_CONNECTIONS] = network + local });
}

static struct http_options options_of(const struct service *service, bool local)
{
        return (struct http_options){ .shares = service->shares,
                .workers = engine_workers(service->engine),
                .requests = local ? SHARE_LOCAL_REQUESTS : SHARE_REQUESTS,
                .connections_max = service_connections_max(local),
                .head_us = service->settings->engine.http_head_ms * 1000 };
}

static const struct http_events http_events = { .app = on_app,
        .greet = on_greet,
        .begin = on_begin,
        .parse = parse_body,
        .answering = on_answering,
        .answered = on_answered,
        .over = on_over,
        .ended = on_ended };

static void on_charge(void *owner, const char *owner_key, uint64_t cpu_ms)
{
        struct csn_error err;
        if (runs_add_cpu(owner, owner_key, time_now_ms(), cpu_ms, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

static bool read_used(void *owner, const char *owner_key, uint64_t *ret_cpu_ms)
{
        struct csn_error err;
        uint64_t bytes;
        if (runs_used(owner, owner_key, time_now_ms() - SERVICE_DAY_MS, ret_cpu_ms, &bytes, &err) == 0)
                return true;
        log_text(LOG_ERROR, "%s", err.text);
        return false;
}

static const struct usage_listener usage_listener = { on_charge, read_used };

int service_open(struct engine *engine, const struct settings *settings, struct store *store,
                 const struct front *const *fronts, int listener, bool ours, void (*idle)(void *owner), void *owner,
                 struct service **ret, struct csn_error *err)
{
        struct service *service = mem_alloc(sizeof *service);
        *service = (struct service){ .engine = engine,
                .settings = settings,
                .loop = engine_loop(engine),
                .fronts = fronts,
                .store = store,
                .idle = idle,
                .owner = owner,
                .shares = open_shares(),
                .started_us = clock_us() };
        join_fronts(service);
        grading_bound_records(settings);
        service->app = (struct http_app){ .routes = service->routes, .admit = service_admit_own };
        if (store) {
                run_storage_sweep(store);
                engine_set_usage_listener(engine, &usage_listener, store);
                service_open_volumes(engine, store);
        }
        int rc = otlp_open(service->loop, settings, &service->otlp, err);
        const struct http_options options = options_of(service, false);
        http_open_internal(service->loop, &options, &service->app, &http_events, service, &service->inner);
        if (rc == 0 && listener >= 0)
                rc = http_open(service->loop, listener, ours, &options, &http_events, service, &service->http, err);
        if (rc == 0 && service->http)
                rc = check_apps(service, err);
        if (rc < 0) {
                service_close(service);
                return rc;
        }
        for (const struct front *const *front = service->fronts; *front; front++)
                if ((*front)->open)
                        (*front)->open(service);
        *ret = service;
        return 0;
}

int service_serve_local(struct service *service, int listener, bool ours, const uid_t *uids, size_t uids_n,
                        struct csn_error *err)
{
        service->local_uids = uids;
        service->local_uids_n = uids_n;
        const struct http_options options = options_of(service, true);
        return http_open(service->loop, listener, ours, &options, &http_events, service, &service->local, err);
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
        service->local = NULL;                 /* a request cut by the next http_close() asks whether all is idle */
        http_close(service->http);
        service->http = NULL;
        http_close(service->inner);
        CALL_HOOK(service, close);
        otlp_close(service->otlp);
        shares_free(service->shares);
        free_fronts(service);
        free(service);
}
