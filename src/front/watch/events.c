/* GET /v1/events: from happenings of the engine and changes of pools to events of the feed. */
#include "front/watch/watch.h"

#include "engine/engine.h"
#include "net/http_headers.h"

#include <inttypes.h>
#include <stdio.h>

#define POOLS_US 1000000ULL                /* between two looks at the pools */

enum { TYPE_POOL_CHANGED = WATCHED_KINDS, TYPES };

#define BIT(type) (1U << (type))
#define RUNS (BIT(WATCHED_RUN_STARTED) | BIT(WATCHED_RUN_FINISHED))
#define POOLS BIT(TYPE_POOL_CHANGED)

static const char *const names[TYPES] = { [WATCHED_RUN_STARTED] = "run.started",
        [WATCHED_RUN_FINISHED] = "run.finished",
        [WATCHED_SANDBOX_CREATED] = "sandbox.created",
        [WATCHED_SANDBOX_PAUSED] = "sandbox.paused",
        [WATCHED_SANDBOX_RESUMED] = "sandbox.resumed",
        [WATCHED_SANDBOX_ENDED] = "sandbox.ended",
        [WATCHED_CONTEXT_CREATED] = "context.created",
        [WATCHED_CONTEXT_ENDED] = "context.ended",
        [TYPE_POOL_CHANGED] = "pool.changed" };

/* ---- events of the engine ---- */

static void add_text(struct buf *buf, const char *name, const char *text)
{
        if (!text || !text[0])
                return;
        buf_printf(buf, ",\"%s\":", name);
        model_put_text(buf, text, strlen(text));
}

static void begin_event(struct buf *buf, unsigned type, const char *id)
{
        char time[40];
        time_print(time_now_ms(), time, sizeof time);
        buf_printf(buf, "{\"type\":\"%s\",\"time\":\"%s\"", names[type], time);
        add_text(buf, "id", id);
}

static void add_result(struct buf *buf, const struct run_result *result)
{
        if (!result) {
                add_text(buf, "status", status_name(status_CANCELLED));
                return;
        }
        add_text(buf, "status", status_name(result->status));
        if (HAS(result, run_result, exit_code))
                buf_printf(buf, ",\"exit_code\":%" PRId64, result->exit_code);
        buf_printf(buf, ",\"total_ms\":%.3f,\"cpu_ms\":%.3f,\"memory_peak_bytes\":%" PRIu64, result->timings.total_ms,
                result->usage.cpu_ms, result->usage.memory_peak_bytes);
}

/* An event above the ceiling is left out; its texts would have to be longer than any that the daemon accepts. */
static void end_event(struct feed *feed, unsigned type, const char *tenant, struct buf *buf)
{
        if (buf_add(buf, "}", 1))
                feed_add(feed, type, names[__builtin_ctz(type)], tenant, buf->bytes, buf->len);
        buf_done(buf);
}

static void on_happened(void *owner, const struct watched_event *what)
{
        const struct service *service = owner;
        struct watch_state *state = watch_state(service);
        struct buf buf;
        buf_init(&buf, FEED_LINE_MAX);
        begin_event(&buf, what->kind, what->id);
        add_text(&buf, "tenant", what->owner);
        add_text(&buf, "key_id", what->key);
        add_text(&buf, "language", what->language);
        add_text(&buf, "profile", what->profile);
        add_text(&buf, "sandbox", what->sandbox);
        add_text(&buf, "context", what->context);
        if (what->kind == WATCHED_RUN_FINISHED)
                add_result(&buf, what->result);
        end_event(&state->events.feed, BIT(what->kind), what->owner, &buf);
        if (what->kind == WATCHED_RUN_FINISHED && what->result)
                watch_count_run(&state->samples, what->result);
}

/* ---- pools ---- */

static json_t *pool_before(const json_t *pools, const char *key)
{
        json_t *pool;
        size_t i;
        json_array_foreach(pools, i, pool) {
                if (strcmp(json_string_value(json_object_get(pool, "key")), key) == 0)
                        return pool;
        }
        return NULL;
}

static bool is_changed(const json_t *pool, const json_t *before)
{
        static const char *const members[] = { "ready", "making", "target" };
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                if (!before ||
                        json_integer_value(json_object_get(pool, members[i])) !=
                                json_integer_value(json_object_get(before, members[i])))
                        return true;
        return false;
}

static void tell_pool(struct feed *feed, const json_t *pool)
{
        static const char *const members[] = { "ready", "making", "target", "memory_bytes" };
        struct buf buf;
        buf_init(&buf, FEED_LINE_MAX);
        begin_event(&buf, TYPE_POOL_CHANGED, json_string_value(json_object_get(pool, "key")));
        for (size_t i = 0; i < ARRAY_LEN(members); i++)
                buf_printf(&buf, ",\"%s\":%" JSON_INTEGER_FORMAT, members[i],
                        json_integer_value(json_object_get(pool, members[i])));
        end_event(feed, POOLS, "", &buf);
}

static void on_pools(struct timer *timer)
{
        const struct service *service = timer->owner;
        struct watch_events *events = &watch_state(service)->events;
        json_t *pools = NULL, *pool;
        size_t i;
        if (feed_is_read(&events->feed, POOLS)) {
                pools = engine_pools(service->engine);
                loop_timer(service->loop, timer, POOLS_US);
        }
        json_array_foreach(pools, i, pool) {
                const json_t *before = pool_before(events->seen, json_string_value(json_object_get(pool, "key")));
                if (events->seen && is_changed(pool, before))
                        tell_pool(&events->feed, pool);
        }
        json_decref(events->seen);
        events->seen = pools;
}

/* ---- the request ---- */

/* What a request may see: each of its scopes shows types of its own. */
static unsigned types_allowed(const struct http_request *request)
{
        const struct store_key *key = service_key(request);
        unsigned all = BIT(TYPES) - 1;
        if (!key || (key->scopes & SCOPE_ADMIN))
                return all;
        return (key->scopes & SCOPE_READ ? all & ~POOLS : 0) |
                (key->scopes & SCOPE_SANDBOXES ? all & ~POOLS & ~RUNS : 0) | (key->scopes & SCOPE_METRICS ? POOLS : 0);
}

/* "run.started", "run.*" or "*" */
static unsigned types_of(const char *pattern, size_t len)
{
        unsigned types = 0;
        bool is_group = len && pattern[len - 1] == '*';
        for (unsigned i = 0; i < TYPES; i++)
                if (is_group ? strncmp(names[i], pattern, len - 1) == 0 && (len == 1 || pattern[len - 2] == '.')
                             : strlen(names[i]) == len && memcmp(names[i], pattern, len) == 0)
                        types |= BIT(i);
        return types;
}

static int take_types(const struct http_request *request, unsigned *ret, struct csn_error *err)
{
        const char *text = http_query(request, "types");
        unsigned allowed = types_allowed(request);
        *ret = 0;
        if (!text) {
                *ret = allowed;
                return 0;
        }
        for (bool more = true; more; text++) {
                size_t len = strcspn(text, ",");
                unsigned types = types_of(text, len);
                if (!types)
                        return err_field(err, "types",
                                "types has \"%.*s\"; there are run.started, run.finished, sandbox.created, sandbox.paused, "
                                "sandbox.resumed, sandbox.ended, context.created, context.ended and pool.changed, and groups such as run.*",
                                (int)min_u64(len, 40), text);
                if (types & ~allowed)
                        return err_set(err, CSN_E_DENIED, 0,
                                "this key does not show %.*s: events of runs need the scope read, of sandboxes and contexts read or "
                                "sandboxes, of pools metrics",
                                (int)min_u64(len, 40), text);
                *ret |= types;
                text += len;
                more = *text == ',';
        }
        return 0;
}

/* The id of the last event that the client has, or 0. */
static int take_after(const struct http_request *request, uint64_t *ret, struct csn_error *err)
{
        const char *last = http_header(request, "Last-Event-ID");
        *ret = 0;
        if (last && last[0] && !header_event(last, ret))
                return err_field(err, "Last-Event-ID", "Last-Event-ID: \"%.40s\" is no number of an event", last);
        return 0;
}

void watch_get_events(struct http_request *request)
{
        struct service *service = service_of(request);
        struct watch_events *events = &watch_state(service)->events;
        struct csn_error err;
        const char *tenant;
        uint64_t after;
        unsigned types;
        if (take_types(request, &types, &err) < 0 || take_after(request, &after, &err) < 0 ||
                service_asked_tenant(request, &tenant, &err) < 0 || service_draining(service, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        if (!events_admit(request))
                return;
        feed_send(&events->feed, request, types, tenant, after);
        if ((types & POOLS) && !events->pools.active)
                loop_timer(service->loop, &events->pools, 0);
}

/* ---- in order ---- */

void watch_open_events(struct service *service)
{
        static const struct engine_watcher watcher = { on_happened };
        struct watch_events *events = &watch_state(service)->events;
        feed_open(&events->feed, service->loop);
        events->pools = (struct timer){ .fired = on_pools, .owner = service };
        engine_set_watcher(service->engine, &watcher, service);
}

void watch_end_events(struct service *service)
{
        feed_end_all(&watch_state(service)->events.feed);
}

void watch_close_events(struct service *service)
{
        struct watch_events *events = &watch_state(service)->events;
        engine_set_watcher(service->engine, NULL, NULL);
        feed_close(&events->feed);
        loop_untimer(service->loop, &events->pools);
        json_decref(events->seen);
        events->seen = NULL;
}
