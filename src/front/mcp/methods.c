/* The methods of the Model Context Protocol, by revision; see mcp.h. */
#include "front/mcp/mcp.h"

/* Oldest first; the revisions of 2025 need a session. */
static const char *const versions[] = { "2025-06-18", MCP_LEGACY, MCP_MODERN };

bool mcp_knows_version(const char *version)
{
        for (size_t i = 0; i + 1 < ARRAY_LEN(versions); i++)
                if (strcmp(versions[i], version) == 0)
                        return true;
        return false;
}

/* Lists only the revision without sessions: the others are requested by initialize. */
json_t *mcp_versions(const char *requested)
{
        return json_pack("{s:[s], s:s}", "supported", MCP_MODERN, "requested", requested);
}

/* ---- methods ---- */

static json_t *capabilities(bool modern)
{
        json_t *json = json_pack("{s:{s:b}, s:{}, s:{}, s:{}}", "tools", "listChanged", modern, "resources", "prompts",
                "completions");
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
        mcp_answer(call,
                json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", call->session->version, "capabilities",
                        capabilities(false), "serverInfo", mcp_server_info(), "instructions", instructions));
}

static void on_ping(struct mcp_call *call)
{
        mcp_answer(call, json_object());
}

static void on_discover(struct mcp_call *call)
{
        mcp_answer_list(call,
                json_pack("{s:[s], s:o, s:o, s:s}", "supportedVersions", MCP_MODERN, "capabilities", capabilities(true),
                        "serverInfo", mcp_server_info(), "instructions", instructions));
}

static void on_set_level(struct mcp_call *call)
{
        const char *name = json_string_value(json_object_get(call->params, "level"));
        int level = mcp_level_of(name);
        if (level < 0) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL,
                        "there is no level \"%.40s\"; known are debug, info, notice, warning, error, critical, alert, emergency",
                        name ? name : "");
                return;
        }
        call->session->level = level;
        mcp_answer(call, json_object());
}

/* The answer stays open for notifications of mcp_changed(). */
static void on_listen(struct mcp_call *call)
{
        json_t *wanted = json_object_get(call->params, "notifications");
        if (!json_is_object(wanted)) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL,
                        "notifications has to be an object that says which are wanted");
                return;
        }
        json_t *agreed = json_object();
        call->tools_too = json_is_true(json_object_get(wanted, "toolsListChanged"));
        if (call->tools_too)
                json_object_set_new(agreed, "toolsListChanged", json_true());
        call->listens = true;
        call->next = call->mcp->listening;
        call->mcp->listening = call;
        mcp_note(call, "notifications/subscriptions/acknowledged",
                 json_pack("{s:{s:O}, s:o}", "_meta", MCP_META "subscriptionId", call->id, "notifications", agreed));
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

/* Checks params._meta of a request of the newer revision.  False: the request is answered. */
static bool check_meta(struct mcp_call *call, json_t *meta)
{
        const char *version = json_string_value(json_object_get(meta, MCP_META "protocolVersion"));
        json_t *level = json_object_get(meta, MCP_META "logLevel");
        if (!version || !json_is_object(json_object_get(meta, MCP_META "clientCapabilities"))) {
                mcp_refuse(call, RPC_INVALID_PARAMS, NULL, "params._meta has to have %s",
                        version ? MCP_META "clientCapabilities, an object" : MCP_META "protocolVersion, a text");
                return false;
        }
        if (strcmp(version, MCP_MODERN) != 0) {
                mcp_refuse(call, MCP_UNSUPPORTED_VERSION, mcp_versions(version),
                        "revision \"%.40s\" is not spoken in this way; " MCP_MODERN " is, and " MCP_LEGACY
                        " with initialize",
                        version);
                return false;
        }
        call->level = mcp_level_of(json_string_value(level));
        if (level && call->level < 0) {
                mcp_refuse(call, RPC_INVALID_PARAMS, NULL, "params._meta has a " MCP_META "logLevel that is no level");
                return false;
        }
        return true;
}

/* Whether the request may go on; false: the request is answered. */
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
                mcp_fail(call, RPC_INVALID_REQUEST, NULL,
                        "this session has %d requests that go on, and may not have more", MCP_CALLS_MAX);
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

/* Records an answer given while mcp_take() runs: the call is freed then. */
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

static void watched_answer(void *owner, unsigned http, char *text, size_t len)
{
        struct watched *watched = owner;
        watched->over = true;
        watched->transport->answer(watched->owner, http, text, len);
}

static void run(struct mcp_call *call, const char *method)
{
        for (size_t i = 0; i < ARRAY_LEN(methods); i++)
                if (strcmp(methods[i].name, method) == 0 &&
                        (methods[i].revisions & (mcp_is_modern(call) ? MODERN : LEGACY))) {
                        methods[i].run(call);
                        return;
                }
        mcp_fail(call, RPC_METHOD_NOT_FOUND, NULL, "there is no method \"%.100s\" in revision %s", method,
                 call->session ? call->session->version : MCP_MODERN);
}

struct mcp_call *mcp_take(struct mcp *mcp, struct http_request *http, struct mcp_session *session,
        const struct rpc *rpc, const struct mcp_transport *transport, void *owner)
{
        static const struct mcp_transport watching = { watched_note, watched_answer };
        struct watched watched = { transport, owner, false };
        struct mcp_call *call = mem_alloc(sizeof *call);
        *call = (struct mcp_call){ .mcp = mcp,
                .service = service_of(http),
                .http = http,
                .session = session,
                .transport = &watching,
                .owner = &watched,
                .level = -1,
                .begun_us = clock_us(),
                .id = json_incref(rpc->id) };
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
                        mcp_finish(call);
                        return;
                }
}

/* ---- subscriptions ---- */

void mcp_changed(struct mcp *mcp)
{
        for (struct mcp_call *call = mcp->listening; call; call = call->next)
                if (call->tools_too)
                        mcp_note(call, "notifications/tools/list_changed",
                                json_pack("{s:{s:O}}", "_meta", MCP_META "subscriptionId", call->id));
}

void mcp_drain(struct mcp *mcp)
{
        for (struct mcp_call *call = mcp->listening, *next; call; call = next) {
                next = call->next;
                mcp_finish(call);
        }
}
