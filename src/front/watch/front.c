/* The front for those who watch the daemon: its routes and their description. */
#include "front/watch/watch.h"

static const struct http_route routes[] = {
        { "GET", "/v1/me", NULL, SCOPE_ANY, BODY_NONE, watch_get_me,
                "The key of the request, what it may do, its quotas and what of them is used.", NULL, &object_me_info },
        { "GET", "/v1/keys", "limit cursor tenant", SCOPE_ADMIN, BODY_NONE, watch_list_keys,
                "The keys of all tenants, or of `?tenant=`, newest first: what they may do, their quotas and their last use.",
                NULL, &object_key_list },
        { "GET", "/v1/events", "types tenant", SCOPE_READ | SCOPE_SANDBOXES | SCOPE_METRICS, BODY_NONE,
                watch_get_events,
                "What happens from now on, as events: begins and ends of the tenant's runs, sandboxes and contexts; for keys with the scope metrics changes of pools. "
                "With `Last-Event-ID` the events after this one come first, as far as they are kept. A stream that is read too slowly ends with the event `lagged`.",
                NULL, NULL },
        { "GET", "/v1/metrics/series", "name since", SCOPE_METRICS, BODY_NONE, watch_get_series,
                "Figures of the last hour in steps of ten seconds, as pairs of a time (seconds since 1970, UTC) and a value; null where there is none.",
                NULL, &object_metrics_series },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { watch_list_keys, "200:key_list", "404", NULL, NULL, NULL, NULL },
        { watch_get_events, "200:events|daemon_events", NULL, NULL, "Last-Event-ID", NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

#define TEXT_SCHEMA "{\"type\": \"string\"}"

static const struct front_value parameters[] = {
        { "types", TEXT_SCHEMA, NULL, false, "Types of events between commas, such as `run.*,sandbox.ended`. Without it: all that the key shows." },
        { "/v1/metrics/series?name", TEXT_SCHEMA, "runs_per_s,running", false, "Names of series between commas. Without it: all." },
        { "/v1/metrics/series?since", TEXT_SCHEMA, NULL, false,
          "Only values after this time, such as 2026-11-30T10:00:00Z, or a time before now such as 10min." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { "/v1/me", "Watching", "Who asks, what happens, and how the figures went." },
        { "/v1/keys", "Watching", NULL },
        { "/v1/events", "Watching", NULL },
        { "/v1/metrics/series", "Watching", NULL },
        { NULL, NULL, NULL },
};

static const struct object *const objects[] = { &object_daemon_event, NULL };

static void on_open(struct service *service)
{
        watch_open_events(service);
        watch_open_series(service);
}

/* Streams of events would keep the daemon from its end. */
static void on_drain(struct service *service)
{
        watch_end_events(service);
}

static void on_close(struct service *service)
{
        watch_close_series(service);
        watch_close_events(service);
}

const struct front watch_front = { .name = "watch",
        .routes = routes,
        .notes = notes,
        .parameters = parameters,
        .tags = tags,
        .objects = objects,
        .state_size = sizeof(struct watch_state),
        .open = on_open,
        .drain = on_drain,
        .close = on_close };
