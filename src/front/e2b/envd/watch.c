/*
 * Events in folders: streamed to a client, or collected until a client fetches them.  With includeEntry an event
 * carries the state of its file: the files are looked up one after another, so events keep their order.
 */
#include "front/e2b/envd/envd.h"

#include <inttypes.h>
#include <stdio.h>

#define DEPTH_MAX 32                       /* of a recursive watch */
#define COLLECTED_MAX 10000                /* events not fetched; beyond, the oldest are dropped */
#define WAITING_MAX 1000                   /* events waiting for the state of their file; beyond, events carry none */
#define WATCHERS_MAX 100                   /* collecting watchers of a sandbox */

/* An event waiting for the state of its file. */
struct happening {
        struct happening *next;
        json_t *json;
        char path[];                       /* of the file */
};

struct envd_watcher {
        struct envd_watcher *next;
        struct e2b_sandbox *sandbox;
        /* The request to answer; in a collecting watcher only until the watch begins.  NULL: none. */
        struct http_request *request;
        struct guest_call call, look;
        char *folder;
        uint64_t flags;
        bool collects, entries, begun;
        uint64_t id;
        json_t *collected;
        struct happening *first, **last;
        size_t waiting_n;
        struct timer keepalive, deadline;
        uint64_t keepalive_us;
};

static void drop_first(struct envd_watcher *watcher)
{
        struct happening *first = watcher->first;
        watcher->first = first->next;
        if (!watcher->first)
                watcher->last = &watcher->first;
        watcher->waiting_n--;
        json_decref(first->json);
        free(first);
}

static void watcher_free(struct envd_watcher *watcher)
{
        struct loop *loop = watcher->sandbox->service->loop;
        for (struct envd_watcher **at = &watcher->sandbox->envd->watchers; *at; at = &(*at)->next)
                if (*at == watcher) {
                        *at = watcher->next;
                        break;
                }
        while (watcher->first)
                drop_first(watcher);
        if (watcher->request) {
                watcher->request->gone = NULL;
                watcher->request->room = NULL;
        }
        loop_untimer(loop, &watcher->keepalive);
        loop_untimer(loop, &watcher->deadline);
        guest_call_close(&watcher->call);
        guest_call_close(&watcher->look);
        json_decref(watcher->collected);
        free(watcher->folder);
        free(watcher);
}

void envd_free_watchers(struct e2b_envd *envd)
{
        while (envd->watchers)
                watcher_free(envd->watchers);
}

/* ---- events to the client ---- */

static void keepalive(struct envd_watcher *watcher)
{
        if (watcher->keepalive_us)
                loop_timer(watcher->sandbox->service->loop, &watcher->keepalive, watcher->keepalive_us);
}

static void on_orphan(struct timer *timer)
{
        watcher_free(timer->owner);
}

/* Takes the reference. */
static void stream(struct envd_watcher *watcher, json_t *json)
{
        struct http_request *request = watcher->request;
        if (!request) {
                json_decref(json);
        } else if (rpc_send(request, json)) {
                keepalive(watcher);
                guest_call_hold(&watcher->call, !http_has_room(request));
        } else {
                /* The caller may be a callback of the watcher's calls, so a timer frees the watcher. */
                request->gone = NULL;
                watcher->request = NULL;
                loop_untimer(watcher->sandbox->service->loop, &watcher->deadline);
                watcher->keepalive = (struct timer){ .fired = on_orphan, .owner = watcher };
                loop_timer(watcher->sandbox->service->loop, &watcher->keepalive, 0);
        }
}

static void on_keepalive(struct timer *timer)
{
        stream(timer->owner, json_pack("{s:{}}", "keepalive"));
}

static void on_deadline(struct timer *timer)
{
        struct envd_watcher *watcher = timer->owner;
        struct http_request *request = watcher->request;
        bool begun = watcher->begun;
        watcher_free(watcher);
        if (begun)
                rpc_end(request, RPC_DEADLINE_EXCEEDED, "the time-out of the request is over");
        else
                rpc_fail(request, true, RPC_DEADLINE_EXCEEDED, "the time-out of the request is over");
}

static void on_gone(struct http_request *request)
{
        watcher_free(request->owner);
}

static void on_stream_room(struct http_request *request)
{
        struct envd_watcher *watcher = request->owner;
        guest_call_hold(&watcher->call, false);
}

/* Takes the reference. */
static void tell(struct envd_watcher *watcher, json_t *event)
{
        if (!watcher->collects) {
                stream(watcher, json_pack("{s:o}", "filesystem", event));
                return;
        }
        if (json_array_size(watcher->collected) >= COLLECTED_MAX)
                json_array_remove(watcher->collected, 0);
        json_array_append_new(watcher->collected, event);
}

/* Delivers the oldest waiting event, with the state of its file if known. */
static void tell_first(struct envd_watcher *watcher)
{
        json_t *event = json_incref(watcher->first->json);
        drop_first(watcher);
        tell(watcher, event);
}

/* ---- state of files ---- */

static void look_on(struct envd_watcher *watcher);

static void on_look_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct envd_watcher *watcher = call->owner;
        struct arena arena = { 0 };
        struct guest_entry entry;
        struct csn_error err;
        (void)fds;
        if (kind == GUEST_ENTRY && watcher->first && guest_get_entry(bytes, len, &arena, &entry, &err) == 0)
                json_object_set_new(watcher->first->json, "entry", envd_entry(&entry, watcher->first->path));
        arena_done(&arena);
}

static void on_look_room(struct guest_call *call)
{
        (void)call;
}

/* The event of a file removed meanwhile has no state. */
static void on_look_ended(struct guest_call *call, const struct csn_error *error)
{
        struct envd_watcher *watcher = call->owner;
        if (error && !call->refused)
                return;                    /* the end of the watch follows */
        if (watcher->first)
                tell_first(watcher);
        look_on(watcher);
}

static void look_on(struct envd_watcher *watcher)
{
        static const struct guest_call_events events = { on_look_packet, on_look_room, on_look_ended };
        struct csn_error err;
        while (watcher->first && !watcher->look.psandbox) {
                const struct guest_file file = { .verb = GUEST_STAT,
                        .flags = watcher->flags,
                        .path = watcher->first->path,
                        .space = (char[]){ ENVD_LABELS } };
                watcher->look = (struct guest_call){ .events = &events, .owner = watcher };
                if (guest_call_file(watcher->sandbox->psandbox, &watcher->look, &file, &err) == 0)
                        return;
                tell_first(watcher);
        }
}

/* ---- events from the guest ---- */

static void begin(struct envd_watcher *watcher)
{
        struct http_request *request = watcher->request;
        char id[24];
        if (watcher->begun)
                return;
        watcher->begun = true;
        if (!watcher->collects) {
                rpc_begin(request);
                stream(watcher, json_pack("{s:{}}", "start"));
                return;
        }
        watcher->request = NULL;
        request->gone = NULL;
        snprintf(id, sizeof id, "%" PRIu64, watcher->id);
        rpc_answer(request, json_pack("{s:s}", "watcherId", id));
}

static void happened(struct envd_watcher *watcher, const struct guest_event *event)
{
        static const char *const names[] = { [GUEST_CREATED] = "EVENT_TYPE_CREATE",
                [GUEST_CHANGED] = "EVENT_TYPE_WRITE",
                [GUEST_ATTRIBUTES] = "EVENT_TYPE_CHMOD",
                [GUEST_REMOVED] = "EVENT_TYPE_REMOVE",
                [GUEST_RENAMED] = "EVENT_TYPE_RENAME",
                [GUEST_LOST] = NULL };
        struct arena arena = { 0 };
        size_t len;
        if (!names[event->what]) {
                log_text(LOG_INFO, "more happened in a folder of %s than its watcher was told", watcher->sandbox->id);
                return;
        }
        const char *name = event->path[0] ? model_utf8(&arena, event->path, strlen(event->path), &len) : ".";
        json_t *json = json_pack("{s:s, s:s}", "name", name, "type", names[event->what]);
        const char *path = arena_text(&arena, "%s%s%s", watcher->folder, event->path[0] ? "/" : "", event->path);
        bool there = event->what != GUEST_REMOVED && event->what != GUEST_RENAMED && strlen(path) < GUEST_PATH_MAX;
        /* Events keep their order: an event without a file waits for earlier events. */
        if (!watcher->entries || watcher->waiting_n >= WAITING_MAX || (!there && !watcher->first)) {
                tell(watcher, json);
        } else {
                struct happening *one = mem_alloc(sizeof *one + strlen(path) + 1);
                one->json = json;
                memcpy(one->path, path, strlen(path) + 1);
                *watcher->last = one;
                watcher->last = &one->next;
                watcher->waiting_n++;
                look_on(watcher);
        }
        arena_done(&arena);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct envd_watcher *watcher = call->owner;
        struct arena arena = { 0 };
        struct guest_event event;
        struct csn_error err;
        (void)fds;
        if (kind == GUEST_ENTRY)
                begin(watcher);
        else if (kind == GUEST_EVENT && watcher->begun && guest_get_event(bytes, len, &arena, &event, &err) == 0)
                happened(watcher, &event);
        arena_done(&arena);
}

static void on_room(struct guest_call *call)
{
        (void)call;
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct envd_watcher *watcher = call->owner;
        struct http_request *request = watcher->request;
        struct csn_error ended;
        if (!error)
                err_set(&ended, CSN_E_PROTOCOL, 0, "the watch ended");
        if (request && watcher->begun)
                http_cut(request);
        else if (request)
                envd_call_failed(request, !watcher->collects, call, error ? error : &ended, watcher->folder);
        watcher_free(watcher);
}

/* ---- requests ---- */

static void keep_time(struct envd_watcher *watcher, const struct http_request *request)
{
        uint64_t timeout_ms = rpc_header_number(http_header(request, "Connect-Timeout-Ms"));
        watcher->keepalive_us =
                min_u64(rpc_header_number(http_header(request, "Keepalive-Ping-Interval")), RPC_KEEPALIVE_MAX_S) *
                1000000;
        watcher->keepalive = (struct timer){ .fired = on_keepalive, .owner = watcher };
        watcher->deadline = (struct timer){ .fired = on_deadline, .owner = watcher };
        if (timeout_ms)
                loop_timer(watcher->sandbox->service->loop, &watcher->deadline, timeout_ms * 1000);
}

static bool has_room(struct http_request *request, struct e2b_envd *envd, bool collects)
{
        size_t n = 0;
        for (const struct envd_watcher *watcher = envd->watchers; watcher; watcher = watcher->next)
                n += watcher->collects;
        if (!collects || n < WATCHERS_MAX)
                return true;
        rpc_fail(request, false, RPC_RESOURCE_EXHAUSTED,
                "%d watchers collect in this sandbox, as many as there may be; remove one", WATCHERS_MAX);
        return false;
}

static void watch(struct http_request *request, bool collects)
{
        static const struct e2b_member members[] = { { .name = "path", .kind = E2B_TEXT },
                { .name = "recursive", .kind = E2B_BOOL }, { .name = "includeEntry", .kind = E2B_BOOL },
                { .name = "allowNetworkMounts", .kind = E2B_BOOL }, { 0 } };
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct envd_target target;
        struct csn_error err;
        char path[GUEST_PATH_MAX];
        json_t *message = envd_target(request, !collects, &target) ? rpc_body(request, !collects, members) : NULL;
        if (!message)
                return;
        const char *given = rpc_string(message, "path");
        bool deep = rpc_bool(message, "recursive", false), entries = rpc_bool(message, "includeEntry", false);
        int rc = spell_path(given ? given : "", target.account, target.folder, path, &err);
        json_decref(message);
        if (rc < 0) {
                envd_refuse(request, !collects, &err);
                return;
        }
        struct e2b_envd *envd = envd_of(target.sandbox);
        if (!has_room(request, envd, collects))
                return;
        struct envd_watcher *watcher = mem_alloc(sizeof *watcher);
        *watcher = (struct envd_watcher){ .sandbox = target.sandbox,
                .request = request,
                .call = { .events = &events, .owner = watcher },
                .folder = mem_copy(path, strlen(path)),
                .flags = target.flags,
                .collects = collects,
                .entries = entries,
                .id = ++envd->watchers_made,
                .collected = json_array(),
                .last = &watcher->first,
                .next = envd->watchers };
        envd->watchers = watcher;
        if (!collects) {
                keep_time(watcher, request);
                request->room = on_stream_room;
        }
        request->owner = watcher;
        request->gone = on_gone;
        const struct guest_file file = {
                .verb = GUEST_WATCH, .flags = target.flags, .depth = deep ? DEPTH_MAX : 1, .path = path
        };
        if (guest_call_file(target.sandbox->psandbox, &watcher->call, &file, &err) < 0) {
                watcher_free(watcher);
                envd_refuse(request, !collects, &err);
        }
}

void envd_watch(struct http_request *request)
{
        watch(request, false);
}

void envd_create_watcher(struct http_request *request)
{
        watch(request, true);
}

/* The watcher named by a request.  NULL: none; the request is answered. */
static struct envd_watcher *find(struct http_request *request)
{
        struct envd_target target;
        static const struct e2b_member members[] = { { .name = "watcherId", .kind = E2B_TEXT }, { 0 } };
        json_t *message = envd_target(request, false, &target) ? rpc_body(request, false, members) : NULL;
        uint64_t id = rpc_number(message, "watcherId", 0);
        const char *given = arena_text(&request->arena, "%s", message ? e2b_text(message, "watcherId") : "");
        if (!message)
                return NULL;
        json_decref(message);
        for (struct envd_watcher *watcher = envd_of(target.sandbox)->watchers; watcher; watcher = watcher->next)
                if (watcher->collects && watcher->begun && watcher->id == id)
                        return watcher;
        rpc_fail(request, false, RPC_NOT_FOUND, "watcher with id %.40s not found", given);
        return NULL;
}

void envd_watcher_events(struct http_request *request)
{
        struct envd_watcher *watcher = find(request);
        if (!watcher)
                return;
        rpc_answer(request, json_pack("{s:o}", "events", watcher->collected));
        watcher->collected = json_array();
}

void envd_remove_watcher(struct http_request *request)
{
        struct envd_watcher *watcher = find(request);
        if (!watcher)
                return;
        watcher_free(watcher);
        rpc_answer(request, json_object());
}
