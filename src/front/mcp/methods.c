/* The methods of the Model Context Protocol, by revision, and the sessions of the older one; see mcp.h. */
#include "front/mcp/mcp.h"

#include "config.h"

#include <stdio.h>

#define META "io.modelcontextprotocol/"

struct mcp_session {
        struct mcp_session *next;
        struct service *service;
        char id[40], tenant[80];
        const char *version;
        int level;                         /* of logging/setLevel; -1: nothing was said, and all from "info" on is told */
        bool began;                        /* initialize was answered */
        struct mcp_call *calls;
        struct timer expiry;
        uint64_t used_us;
};

/* The oldest first; those of 2025 are spoken with a session. */
static const char *const versions[] = { "2025-06-18", MCP_LEGACY, MCP_MODERN };

static const char *const levels[] = { "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency" };

static int level_of(const char *name)
{
        for (size_t i = 0; name && i < ARRAY_LEN(levels); i++)
                if (strcmp(levels[i], name) == 0)
                        return (int)i;
        return -1;
}

/* ---- revisions ---- */

bool mcp_is_modern(const struct mcp_call *call)
{
        return !call->session;
}

bool mcp_knows_version(const char *version)
{
        for (size_t i = 0; i + 1 < ARRAY_LEN(versions); i++)
                if (strcmp(versions[i], version) == 0)
                        return true;
        return false;
}

/* Those without sessions: the others are not asked for in this way. */
json_t *mcp_versions(const char *requested)
{
        return json_pack("{s:[s], s:s}", "supported", MCP_MODERN, "requested", requested);
}

static json_t *server_info(void)
{
        return json_pack("{s:s, s:s, s:s}", "name", "caisson", "title", "Caisson", "version", VERSION);
}

/* ---- the life of calls ---- */

static struct mcp_call **place_of(struct mcp_call *call)
{
        return call->listens ? &mcp_of(call->service)->listening : call->session ? &call->session->calls : NULL;
}

static void unlink_call(struct mcp_call *call)
{
        struct mcp_call **at = place_of(call);
        for (; at && *at; at = &(*at)->next)
                if (*at == call) {
                        *at = call->next;
                        break;
                }
}

static void guest_call_free(struct mcp_call *call)
{
        unlink_call(call);
        if (call->asked)
                http_internal_forget(call->asked);
        mcp_drop_run(call);
        json_decref(call->id);
        json_decref(call->params);
        json_decref(call->token);
        json_decref(call->record);
        json_decref(call->content);
        buf_done(&call->answer);
        arena_done(&call->arena);
        free(call);
}

void mcp_cancel(struct mcp_call *call)
{
        if (call)
                guest_call_free(call);
}

static void finish(struct mcp_call *call, unsigned http, json_t *message)
{
        const struct mcp_transport *transport = call->transport;
        void *owner = call->owner;
        guest_call_free(call);
        transport->answer(owner, http, message);
}

void mcp_answer(struct mcp_call *call, json_t *result)
{
        if (mcp_is_modern(call)) {
                json_object_set_new(result, "resultType", json_string("complete"));
                json_object_set_new(result, "_meta", json_pack("{s:o}", META "serverInfo", server_info()));
        }
        finish(call, MHD_HTTP_OK, rpc_result(call->id, result));
}

/* Everybody sees what his own key may see. */
void mcp_answer_list(struct mcp_call *call, json_t *result)
{
        if (mcp_is_modern(call)) {
                json_object_set_new(result, "ttlMs", json_integer(MCP_TTL_MS));
                json_object_set_new(result, "cacheScope", json_string("private"));
        }
        mcp_answer(call, result);
}

static void fail_with(struct mcp_call *call, unsigned http, int64_t code, json_t *data, const char *fmt, va_list args)
{
        char text[800];
        vsnprintf(text, sizeof text, fmt, args);
        finish(call, mcp_is_modern(call) ? http : MHD_HTTP_OK, rpc_error(call->id, code, text, data));
}

void mcp_fail(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        fail_with(call, code == RPC_METHOD_NOT_FOUND ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK, code, data, fmt, args);
        va_end(args);
}

/* What is wrong with the head of a request, and not with what it asks for. */
static void refuse(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...) PRINTF_LIKE(4, 5);

static void refuse(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        fail_with(call, MHD_HTTP_BAD_REQUEST, code, data, fmt, args);
        va_end(args);
}

/* ---- notifications ---- */

void mcp_note(struct mcp_call *call, const char *method, json_t *params)
{
        call->transport->note(call->owner, rpc_notification(method, params));
}

void mcp_log(struct mcp_call *call, const char *level, const char *logger, const char *text, size_t len)
{
        int least = call->session ? (call->session->level < 0 ? level_of("info") : call->session->level) : call->level;
        if (least >= 0 && level_of(level) >= least)
                mcp_note(call, "notifications/message", json_pack("{s:s, s:s, s:s%}", "level", level, "logger", logger, "data", text, len));
}

/* Its number has to grow, and there is no telling how far it is: so it is the time. */
void mcp_progress(struct mcp_call *call, const char *message)
{
        uint64_t now = clock_us();
        if (!call->token || (call->noted_us && now - call->noted_us < MCP_NOTE_US))
                return;
        call->noted_us = now;
        mcp_note(call, "notifications/progress", json_pack("{s:O, s:f, s:s}", "progressToken", call->token, "progress",
                                                           (double)(now - call->begun_us + 1) / 1e6, "message", message));
}

void mcp_changed(struct service *service)
{
        for (struct mcp_call *call = mcp_of(service)->listening; call; call = call->next)
                if (call->tools_too)
                        mcp_note(call, "notifications/tools/list_changed", json_pack("{s:{s:O}}", "_meta", META "subscriptionId", call->id));
}

/* Who listens would keep the daemon from its end. */
void mcp_drain(struct service *service)
{
        for (struct mcp_call *call = mcp_of(service)->listening, *next; call; call = next) {
                next = call->next;
                finish(call, MHD_HTTP_OK, NULL);
        }
}

/* ---- methods ---- */

static json_t *capabilities(bool modern)
{
        json_t *json = json_pack("{s:{s:b}, s:{}, s:{}, s:{}}", "tools", "listChanged", modern, "resources", "prompts", "completions");
        json_object_set_new(json, "logging", json_object());
        return json;
}

static const char instructions[] =
        "run_code runs a program in a fresh sandbox. Where files or variables have to last, make a sandbox with create_sandbox and an interpreter in it "
        "with create_context, and give run_code the context's id; end it with kill_sandbox. Files that run_code keeps are resources.";

static void on_initialize(struct mcp_call *call)
{
        const char *version = json_string_value(json_object_get(call->params, "protocolVersion"));
        if (call->session->began || !version) {
                mcp_fail(call, version ? RPC_INVALID_REQUEST : RPC_INVALID_PARAMS, NULL, "%s",
                         version ? "this session has begun already" : "initialize has to have a protocolVersion");
                return;
        }
        call->session->version = MCP_LEGACY;
        for (size_t i = 0; i + 1 < ARRAY_LEN(versions); i++)
                if (strcmp(versions[i], version) == 0)
                        call->session->version = versions[i];
        call->session->began = true;
        mcp_answer(call, json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", call->session->version, "capabilities", capabilities(false), "serverInfo",
                                   server_info(), "instructions", instructions));
}

static void on_ping(struct mcp_call *call)
{
        mcp_answer(call, json_object());
}

static void on_discover(struct mcp_call *call)
{
        mcp_answer_list(call, json_pack("{s:[s], s:o, s:o, s:s}", "supportedVersions", MCP_MODERN, "capabilities", capabilities(true), "serverInfo",
                                        server_info(), "instructions", instructions));
}

static void on_set_level(struct mcp_call *call)
{
        const char *name = json_string_value(json_object_get(call->params, "level"));
        int level = level_of(name);
        if (level < 0) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "there is no level \"%.40s\"; known are debug, info, notice, warning, error, critical, alert, emergency",
                         name ? name : "");
                return;
        }
        call->session->level = level;
        mcp_answer(call, json_object());
}

/* The answer stays open; what comes on it is mcp_changed()'s. */
static void on_listen(struct mcp_call *call)
{
        json_t *wanted = json_object_get(call->params, "notifications");
        if (!json_is_object(wanted)) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "notifications has to be an object that says which are wanted");
                return;
        }
        json_t *agreed = json_object();
        call->tools_too = json_is_true(json_object_get(wanted, "toolsListChanged"));
        if (call->tools_too)
                json_object_set_new(agreed, "toolsListChanged", json_true());
        call->listens = true;
        call->next = mcp_of(call->service)->listening;
        mcp_of(call->service)->listening = call;
        mcp_note(call, "notifications/subscriptions/acknowledged",
                 json_pack("{s:{s:O}, s:o}", "_meta", META "subscriptionId", call->id, "notifications", agreed));
}

enum { LEGACY = 1, MODERN = 2, BOTH = 3 };

static const struct { const char *name; int revisions; void (*run)(struct mcp_call *call); } methods[] = {
        { "initialize", LEGACY, on_initialize },
        { "ping", LEGACY, on_ping },
        { "logging/setLevel", LEGACY, on_set_level },
        { "server/discover", MODERN, on_discover },
        { "subscriptions/listen", MODERN, on_listen },
        { "tools/list", BOTH, mcp_list_tools },
        { "tools/call", BOTH, mcp_call_tool },
        { "resources/list", BOTH, mcp_list_resources },
        { "resources/templates/list", BOTH, mcp_list_templates },
        { "resources/read", BOTH, mcp_read_resource },
        { "prompts/list", BOTH, mcp_list_prompts },
        { "prompts/get", BOTH, mcp_get_prompt },
        { "completion/complete", BOTH, mcp_complete },
};

/* ---- requests ---- */

/* What each request of the newer revision says of itself.  False: it is answered. */
static bool check_meta(struct mcp_call *call, json_t *meta)
{
        const char *version = json_string_value(json_object_get(meta, META "protocolVersion"));
        json_t *level = json_object_get(meta, META "logLevel");
        if (!version || !json_is_object(json_object_get(meta, META "clientCapabilities"))) {
                refuse(call, RPC_INVALID_PARAMS, NULL, "params._meta has to have %s", version ? META "clientCapabilities, an object" : META "protocolVersion, a text");
                return false;
        }
        if (strcmp(version, MCP_MODERN) != 0) {
                refuse(call, MCP_UNSUPPORTED_VERSION, mcp_versions(version), "revision \"%.40s\" is not spoken in this way; " MCP_MODERN " is, and "
                       MCP_LEGACY " with initialize", version);
                return false;
        }
        call->level = level_of(json_string_value(level));
        if (level && call->level < 0) {
                refuse(call, RPC_INVALID_PARAMS, NULL, "params._meta has a " META "logLevel that is no level");
                return false;
        }
        return true;
}

/* Whether it may go on; false: it is answered. */
static bool check_session(struct mcp_call *call, const char *method)
{
        size_t n = 0;
        for (const struct mcp_call *other = call->session->calls; other; other = other->next) {
                n++;
                if (other != call && rpc_same_id(other->id, call->id)) {
                        mcp_fail(call, RPC_INVALID_REQUEST, NULL, "a request with this id goes on already");
                        return false;
                }
        }
        if (n > MCP_CALLS_MAX) {
                mcp_fail(call, RPC_INVALID_REQUEST, NULL, "this session has %d requests that go on, and may not have more", MCP_CALLS_MAX);
                return false;
        }
        if (!call->session->began && strcmp(method, "initialize") != 0 && strcmp(method, "ping") != 0) {
                mcp_fail(call, RPC_INVALID_REQUEST, NULL, "a session begins with initialize");
                return false;
        }
        return true;
}

static bool check(struct mcp_call *call, const char *method)
{
        json_t *meta = json_object_get(call->params, "_meta"), *token = json_object_get(meta, "progressToken");
        if (call->session ? !check_session(call, method) : !check_meta(call, meta))
                return false;
        if (token && !rpc_is_id(token)) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "params._meta.progressToken is an integer or a short text");
                return false;
        }
        call->token = json_incref(token);
        return true;
}

/* Whether a call that has begun is still there is known by this alone: it may have been answered from within. */
struct watched {
        const struct mcp_transport *transport;
        void *owner;
        bool over;
};

static void watched_note(void *owner, json_t *message)
{
        const struct watched *watched = owner;
        watched->transport->note(watched->owner, message);
}

static void watched_answer(void *owner, unsigned http, json_t *message)
{
        struct watched *watched = owner;
        watched->over = true;
        watched->transport->answer(watched->owner, http, message);
}

static void run(struct mcp_call *call, const char *method)
{
        for (size_t i = 0; i < ARRAY_LEN(methods); i++)
                if (strcmp(methods[i].name, method) == 0 && (methods[i].revisions & (mcp_is_modern(call) ? MODERN : LEGACY))) {
                        methods[i].run(call);
                        return;
                }
        mcp_fail(call, RPC_METHOD_NOT_FOUND, NULL, "there is no method \"%.100s\" in revision %s", method,
                 call->session ? call->session->version : MCP_MODERN);
}

struct mcp_call *mcp_take(struct http_request *http, struct mcp_session *session, const struct rpc *rpc, const struct mcp_transport *transport, void *owner)
{
        static const struct mcp_transport watching = { watched_note, watched_answer };
        struct watched watched = { transport, owner, false };
        struct mcp_call *call = mem_alloc(sizeof *call);
        *call = (struct mcp_call){ .service = service_of(http), .http = http, .session = session, .transport = &watching, .owner = &watched, .level = -1,
                                   .begun_us = clock_us(), .id = json_incref(rpc->id) };
        call->params = rpc->params ? json_incref(rpc->params) : json_object();
        buf_init(&call->answer, MCP_ANSWER_MAX);
        if (session) {
                call->next = session->calls;
                session->calls = call;
        }
        if (check(call, rpc->method))
                run(call, rpc->method);
        if (watched.over)
                return NULL;
        call->transport = transport;
        call->owner = owner;
        return call;
}

void mcp_notice(struct mcp_session *session, const struct rpc *rpc)
{
        json_t *id = json_object_get(rpc->params, "requestId");
        if (strcmp(rpc->method, "notifications/cancelled") != 0)
                return;
        for (struct mcp_call *call = session->calls; call; call = call->next)
                if (rpc_same_id(call->id, id)) {
                        finish(call, MHD_HTTP_OK, NULL);
                        return;
                }
}

/* ---- sessions ---- */

static void on_expiry(struct timer *timer)
{
        struct mcp_session *session = timer->owner;
        if (session->calls)
                loop_timer(session->service->loop, timer, MCP_SESSION_IDLE_US);
        else
                mcp_session_end(session);
}

static void touch(struct mcp_session *session)
{
        session->used_us = clock_us();
        loop_timer(session->service->loop, &session->expiry, MCP_SESSION_IDLE_US);
}

/* Whoever makes many has his own end before those of others; the one that rested longest goes. */
static void make_room(struct mcp *mcp, const char *tenant)
{
        struct mcp_session *oldest = NULL;
        for (int own = 1; own >= 0 && !oldest; own--)
                for (struct mcp_session *one = mcp->sessions; one; one = one->next)
                        if ((!own || strcmp(one->tenant, tenant) == 0) && !one->calls && (!oldest || one->used_us < oldest->used_us))
                                oldest = one;
        if (oldest)
                mcp_session_end(oldest);
}

struct mcp_session *mcp_session_new(struct http_request *http)
{
        struct service *service = service_of(http);
        struct mcp *mcp = mcp_of(service);
        if (mcp->sessions_n >= MCP_SESSIONS_MAX)
                make_room(mcp, http->tenant);
        if (mcp->sessions_n >= MCP_SESSIONS_MAX)
                return NULL;
        struct mcp_session *session = mem_alloc(sizeof *session);
        *session = (struct mcp_session){ .next = mcp->sessions, .service = service, .version = MCP_LEGACY, .level = -1 };
        session->expiry = (struct timer){ .fired = on_expiry, .owner = session };
        hex_random(16, session->id);
        snprintf(session->tenant, sizeof session->tenant, "%s", http->tenant);
        mcp->sessions = session;
        mcp->sessions_n++;
        touch(session);
        return session;
}

struct mcp_session *mcp_session_find(const struct http_request *http, const char *id)
{
        for (struct mcp_session *session = mcp_of(service_of(http))->sessions; session; session = session->next)
                if (strcmp(session->id, id) == 0 && strcmp(session->tenant, http->tenant) == 0) {
                        touch(session);
                        return session;
                }
        return NULL;
}

const char *mcp_session_id(const struct mcp_session *session)
{
        return session->id;
}

bool mcp_session_began(const struct mcp_session *session)
{
        return session->began;
}

void mcp_session_end(struct mcp_session *session)
{
        struct mcp *mcp = mcp_of(session->service);
        while (session->calls)
                mcp_fail(session->calls, RPC_INTERNAL_ERROR, NULL, "the session has ended");
        for (struct mcp_session **at = &mcp->sessions; *at; at = &(*at)->next)
                if (*at == session) {
                        *at = session->next;
                        break;
                }
        mcp->sessions_n--;
        loop_untimer(session->service->loop, &session->expiry);
        free(session);
}

void mcp_stop(struct service *service)
{
        for (struct mcp_session *session = mcp_of(service)->sessions, *next; session; session = next) {
                next = session->next;
                mcp_session_end(session);
        }
}
