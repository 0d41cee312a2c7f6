/* The routes of the HTTP interface, and who may use them. */
#include "front/api.h"

#include <stdio.h>

#define DAY_MS 86400000

const struct http_route api_routes[] = {
        { "POST", "/v1/runs", NULL, SCOPE_RUN, BODY_WHOLE, api_post_run,
          "Run a program. The answer is its record; with `Prefer: respond-async` it is a link to it, and with `Accept: text/event-stream` or "
          "`application/x-ndjson` the events as they happen.", &object_run_request, &object_run_result },
        { "POST", "/v1/runs/bulk", NULL, SCOPE_RUN, BODY_STREAM, api_bulk,
          "Many runs: each line is a request, with an `id` of yours if you like, and each is answered by a line with `id`, `line` and `record` (or `error`) "
          "as soon as it is done. `{\"cancel\": ID}` ends one.", NULL, NULL },
        { "GET", "/v1/runs", NULL, SCOPE_READ, BODY_NONE, api_list_runs, "Runs that go on, and those that can still be asked for.", NULL, NULL },
        { "GET", "/v1/runs/{id}", NULL, SCOPE_READ, BODY_NONE, api_get_run,
          "A run that was started with `Prefer: respond-async` or as a stream: its record, or its state while it goes on (202).", NULL, &object_run_result },
        { "DELETE", "/v1/runs/{id}", NULL, SCOPE_RUN, BODY_NONE, api_delete_run, "End a run that goes on; forget one that is over.", NULL, NULL },
        { "GET", "/v1/runs/{id}/events", "after", SCOPE_READ, BODY_NONE, api_get_events,
          "What happens in a run, from the event after `Last-Event-ID` (or `?after=`) on.", NULL, NULL },
        { "POST", "/v1/check", NULL, SCOPE_CHECK, BODY_WHOLE, api_check, "Compare a program with a source policy. Nothing is run.", &object_check_request,
          &object_check_result },
        { "GET", "/v1/profiles", NULL, SCOPE_READ, BODY_NONE, api_profiles, "The profiles, and what each is for.", NULL, NULL },
        { "GET", "/v1/profiles/{name}", NULL, SCOPE_READ, BODY_NONE, api_profile, "What a profile sets.", NULL, &object_run_request },
        { "GET", "/v1/policies", NULL, SCOPE_READ, BODY_NONE, api_policies, "The source policies.", NULL, NULL },
        { "GET", "/v1/policies/{name}", NULL, SCOPE_READ, BODY_NONE, api_policy, "Every rule of a source policy.", NULL, NULL },
        { "GET", "/v1/languages", NULL, SCOPE_READ, BODY_NONE, api_languages, "The languages, with their aliases.", NULL, NULL },
        { "GET", "/healthz", NULL, 0, BODY_NONE, api_health, "Whether the daemon answers.", NULL, NULL },
        { "GET", "/readyz", NULL, 0, BODY_NONE, api_ready, "Whether it takes runs: 503 while it ends.", NULL, NULL },
        { "GET", "/metrics", NULL, SCOPE_METRICS, BODY_NONE, api_metrics, "Counters for Prometheus.", NULL, NULL },
        { "GET", "/openapi.json", NULL, 0, BODY_NONE, api_openapi, "This description.", NULL, NULL },
        { "GET", "/docs", NULL, 0, BODY_NONE, api_docs, "A page that shows this description.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

/* ---- who may ---- */

static bool is_local_name(const char *host)
{
        static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };
        size_t len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strlen(names[i]) == len && strncasecmp(host, names[i], len) == 0)
                        return true;
        return false;
}

/*
 * Without a key it is enough to reach us, and a web page can make the browser of somebody on this host reach us: with
 * an Origin (Fetch standard), or under a name of its own that leads here (DNS rebinding).
 */
static int refuse_web_pages(const struct http_request *request, struct csn_error *err)
{
        const char *origin = http_header(request, "Origin"), *host = http_header(request, "Host");
        if (origin)
                return err_set(err, CSN_E_DENIED, 0, "web pages (Origin: %.100s) are not answered without a key", origin);
        if (host && host[0] && !is_local_name(host))
                return err_set(err, CSN_E_DENIED, 0, "without a key only the names localhost, 127.0.0.1 and [::1] are answered, not %.100s", host);
        return 0;
}

/* "Authorization: Bearer KEY", or "X-API-Key: KEY". */
static const char *key_of(const struct http_request *request)
{
        const char *bearer = http_header(request, "Authorization"), *plain = http_header(request, "X-API-Key");
        if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
                return bearer + 7 + strspn(bearer + 7, " ");
        return bearer ? bearer : plain;
}

static int check_key(struct api *api, struct http_request *request, const char *text, struct csn_error *err)
{
        struct store_key *key = arena_alloc(&request->arena, sizeof *key);
        char scope[KEY_SCOPES_MAX];
        if (keys_find(api->store, text, &request->arena, key, err) < 0)
                return -err->code;
        request->key = key;
        snprintf(request->tenant, sizeof request->tenant, "%s", key->tenant);
        if (key->scopes & (request->route->scope | SCOPE_ADMIN))
                return 0;
        scopes_print(request->route->scope, scope, sizeof scope);
        err_set(err, CSN_E_DENIED, 0, "this key does not allow it: it needs the scope %s", scope);
        return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
}

static int on_admit(void *owner, struct http_request *request, struct csn_error *err)
{
        struct api *api = owner;
        const char *text = key_of(request);
        if (!request->route->scope)
                return 0;
        if (text && check_key(api, request, text, err) == 0)
                return 0;
        if (!text && api->settings->engine.http_keyless) {
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
        struct api *api = owner;
        api->answers[status / 100 < 6 ? status / 100 : 0]++;
        log_text(LOG_INFO, "%s: %s answered with %u after %llu us", request->id, request->route ? request->route->path : "-", status,
                 (unsigned long long)(clock_us() - request->began_us));
}

static void on_ended(void *owner)
{
        const struct api *api = owner;
        if (api_is_idle(api))
                api->idle(api->owner);
}

/* ---- for the handlers ---- */

struct api *api_of(const struct http_request *request)
{
        return http_owner(request);
}

const struct store_key *api_key(const struct http_request *request)
{
        return request->key;
}

int api_begin_run(const struct http_request *request, struct run *run, struct csn_error *err)
{
        const struct store_key *key = request->key;
        uint64_t cpu_ms, bytes;
        run_set_owner(run, request->tenant);
        if (!key)
                return 0;
        run_set_quota(run, key->running_max, key->queued_max);
        if (!key->cpu_ms_per_day)
                return 0;
        if (runs_used(api_of(request)->store, key->tenant, time_now_ms() - DAY_MS, &cpu_ms, &bytes, err) < 0)
                return -err->code;
        if (cpu_ms < key->cpu_ms_per_day)
                return 0;
        return err_set(err, CSN_E_BUSY, 0, "the runs of the last 24 hours took %llu ms of CPU time, and this key allows %llu",
                       (unsigned long long)cpu_ms, (unsigned long long)key->cpu_ms_per_day);
}

bool api_decode(struct http_request *request, const struct object *object, struct arena *arena, void *ret)
{
        struct csn_error err;
        const char *text = request->body.bytes ? request->body.bytes : "";
        if (model_decode_text(object, text, request->body.len, arena, ret, &err) == 0)
                return true;
        http_fail(request, &err);
        return false;
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

static int check_doors(const struct api *api, struct csn_error *err)
{
        bool keyless = api->settings->engine.http_keyless, keys;
        const char *address = api->settings->engine.http;
        if (keyless && !http_is_local(api->http))
                return err_set(err, CSN_E_CONFIG, 0, "engine.http_keyless is set, and engine.http is %s, which others can reach; without keys it has to be "
                               "a loopback address or unix:/path", address);
        if (has_keys(api->store, &keys, err) < 0)
                return -err->code;
        if (!keys && !keyless)
                return err_set(err, CSN_E_CONFIG, 0, "nobody could use engine.http (%s): make a key by caisson keys create, or set engine.http_keyless "
                               "for a loopback address", address);
        return 0;
}

int api_open(struct engine *engine, const struct settings *settings, struct store *store, void (*idle)(void *owner), void *owner, struct api **ret,
             struct csn_error *err)
{
        static const struct http_events events = { on_admit, on_answered, on_ended };
        struct api *api = mem_alloc(sizeof *api);
        *api = (struct api){ .engine = engine, .settings = settings, .loop = engine_loop(engine), .store = store, .idle = idle, .owner = owner,
                             .started_us = clock_us() };
        int rc = http_open(api->loop, settings->engine.http, api_routes, &events, api, &api->http, err);
        if (rc == 0)
                rc = check_doors(api, err);
        if (rc < 0) {
                api_close(api);
                return rc;
        }
        *ret = api;
        return 0;
}

const char *api_address(const struct api *api)
{
        return http_address(api->http);
}

void api_drain(struct api *api)
{
        http_drain(api->http);
}

bool api_is_idle(const struct api *api)
{
        return api->live == 0 && http_busy(api->http) == 0;
}

void api_close(struct api *api)
{
        if (!api)
                return;
        api_runs_close(api);
        http_close(api->http);
        free(api);
}
