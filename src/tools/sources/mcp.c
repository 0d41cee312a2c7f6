/* An MCP server as a source of tools: calls and their results, and messages of the server; see mcp.h. */
#include "tools/sources/mcp.h"

#include <inttypes.h>
#include <stdio.h>

#define ERROR_TEXT_MAX 400                 /* bytes of a text of the server in an error */

/* ---- answers ---- */

/* Content is an array of objects with a type. */
static bool is_content(const json_t *content)
{
        size_t i;
        json_t *block;
        if (!json_is_array(content))
                return false;
        json_array_foreach(content, i, block) {
                if (!json_is_string(json_object_get(block, "type")))
                        return false;
        }
        return true;
}

static void on_result_of_call(struct mcp *mcp, struct tool_call *call, json_t *json)
{
        const char *type = json_string_value(json_object_get(json, "resultType"));
        struct tool_result result = { .content = json_object_get(json, "content"),
                .structured = json_object_get(json, "structuredContent"),
                .is_error = json_is_true(json_object_get(json, "isError")) };
        char text[300];
        if (type && strcmp(type, "complete") != 0) {
                snprintf(text, sizeof text,
                        "the server %s asks for something besides (%.40s), and nobody is there to be asked",
                        mcp->server->name, type);
                mcp_client_fail_call(call, text);
                return;
        }
        if (json_is_null(result.structured))
                result.structured = NULL;
        if ((result.content && !is_content(result.content)) || (!result.content && !result.structured)) {
                snprintf(text, sizeof text, "the server %s answers with what is no result of a tool",
                        mcp->server->name);
                mcp_client_fail_call(call, text);
                return;
        }
        call->handle = NULL;
        call->done(call, &result);
}

static void on_result(struct mcp *mcp, const char *method, struct tool_call *call, json_t *result, size_t len)
{
        if (call)
                on_result_of_call(mcp, call, result);
        else
                mcp_client_take_result(mcp, method, result, len);
}

static void on_error(struct mcp *mcp, const char *method, struct tool_call *call, const struct rpc *rpc)
{
        const char *message = rpc->message ? rpc->message : "";
        size_t len = strlen(message);
        char text[600];
        len = len > ERROR_TEXT_MAX ? utf8_whole(message, ERROR_TEXT_MAX) : len;
        snprintf(text, sizeof text, "the server %s: %.*s (%" PRId64 ")", mcp->server->name, len ? (int)len : 8,
                len ? message : "an error", rpc->code);
        if (call)
                mcp_client_fail_call(call, text);
        else
                mcp_client_take_error(mcp, method, rpc, text);
}

/* Requests of the server, as sampling, elicitation or roots: only ping is served. */
static void on_request(struct mcp *mcp, const struct rpc *rpc)
{
        bool ping = strcmp(rpc->method, "ping") == 0;
        mcp_client_tell(mcp,
                ping ? rpc_result(rpc->id, json_object())
                     : rpc_error(rpc->id, RPC_METHOD_NOT_FOUND, "this client offers nothing of that kind", NULL));
}

static void on_progress(struct mcp *mcp, const json_t *params)
{
        const json_t *token = json_object_get(params, "progressToken"), *progress = json_object_get(params, "progress");
        struct waiting *waiting = json_is_integer(token) ? mcp_client_find(mcp, json_integer_value(token)) : NULL;
        if (waiting && waiting->call && waiting->call->progress && json_is_number(progress))
                waiting->call->progress(waiting->call, json_number_value(progress),
                        json_number_value(json_object_get(params, "total")),
                        json_string_value(json_object_get(params, "message")));
}

static void on_notification(struct mcp *mcp, const struct rpc *rpc)
{
        if (strcmp(rpc->method, "notifications/progress") == 0)
                on_progress(mcp, rpc->params);
        else if (strcmp(rpc->method, "notifications/tools/list_changed") == 0)
                mcp_client_list_changed(mcp);
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static size_t skip_blanks(const char *text, size_t len, size_t at)
{
        while (at < len && (text[at] == ' ' || text[at] == '\t'))
                at++;
        return at;
}

/*
 * The id of an unreadable answer, so that its call fails at once; -1: no id.  Half a pair of surrogates or 5,000 levels
 * of nesting leave the outermost object readable.
 */
static int64_t id_of_unreadable(const char *text, size_t len)
{
        int64_t id = -1;
        size_t depth = 0;
        for (size_t at = 0; at < len; at++) {
                if (text[at] == '{' || text[at] == '[')
                        depth++;
                else if ((text[at] == '}' || text[at] == ']') && depth)
                        depth--;
                if (text[at] != '"')
                        continue;
                const char *name = text + at + 1;
                for (at++; at < len && text[at] != '"'; at++)
                        at += text[at] == '\\';
                size_t next = skip_blanks(text, len, at + 1);
                if (depth != 1 || next >= len || text[next] != ':')
                        continue;
                if (strncmp(name, "method\"", 7) == 0)
                        return -1;
                if (strncmp(name, "id\"", 3) != 0)
                        continue;
                next = skip_blanks(text, len, next + 1);
                for (id = next < len && is_digit(text[next]) ? 0 : -1;
                        next < len && is_digit(text[next]) && id < INT32_MAX; next++)
                        id = id * 10 + text[next] - '0';
        }
        return id;
}

bool mcp_message(struct mcp *mcp, const char *text, size_t len)
{
        struct rpc rpc = { 0 };
        struct csn_error err;
        if (rpc_read(text, len, &rpc, &err) < 0) {
                struct waiting *meant = mcp_client_find(mcp,
                        rpc.json ? json_is_integer(rpc.id) ? json_integer_value(rpc.id) : -1
                                 : id_of_unreadable(text, len));
                log_text(LOG_WARN, "MCP server %s says what is no message: %s", mcp->server->name, err.text);
                rpc_done(&rpc);
                if (meant)
                        mcp_unanswered(mcp, meant, err.text);
                return false;
        }
        if (rpc.kind == RPC_REQUEST) {
                on_request(mcp, &rpc);
        } else if (rpc.kind == RPC_NOTIFICATION) {
                on_notification(mcp, &rpc);
        } else {
                struct waiting *waiting =
                        json_is_integer(rpc.id) ? mcp_client_find(mcp, json_integer_value(rpc.id)) : NULL;
                if (waiting) {
                        struct tool_call *call = waiting->call;
                        const char *method = waiting->method;
                        mcp_client_drop(mcp, waiting);
                        if (rpc.kind == RPC_RESULT)
                                on_result(mcp, method, call, rpc.result, len);
                        else
                                on_error(mcp, method, call, &rpc);
                }
        }
        rpc_done(&rpc);
        return true;
}

/* ---- as a source ---- */

static struct mcp *mcp_of(struct tool_source *source)
{
        return (struct mcp *)source;
}

static const struct tool *mcp_list(struct tool_source *source, size_t *ret_n)
{
        const struct mcp *mcp = mcp_of(source);
        *ret_n = mcp->tools_n;
        return mcp->tools;
}

static int mcp_call(struct tool_source *source, struct tool_call *call, struct csn_error *err)
{
        struct mcp *mcp = mcp_of(source);
        if (mcp->phase != MCP_READY)
                return err_set(err, mcp->phase == MCP_OFF ? CSN_E_SYSTEM : CSN_E_BUSY, 0,
                        "the server %s cannot be used now: %s", mcp->server->name,
                        mcp->why[0] ? mcp->why : "it is starting");
        if (server_hides(mcp->server, call->name))
                return err_set(err, CSN_E_DENIED, 0, "the tool %.128s of the server %s is not allowed", call->name,
                        mcp->server->name);
        json_t *params = json_pack("{s:s, s:O}", "name", call->name, "arguments", call->arguments);
        return mcp_client_ask(mcp, "tools/call", params, call, err);
}

static void mcp_cancel(struct tool_source *source, struct tool_call *call)
{
        struct waiting *waiting = call->handle;
        call->handle = NULL;
        if (waiting)
                mcp_client_forget(mcp_of(source), waiting);
}

static void mcp_close(struct tool_source *source)
{
        struct mcp *mcp = mcp_of(source);
        mcp_client_done(mcp);
        mcp->transport->done(mcp);
        free(mcp);
}

static const struct tool_source_kind mcp_kind = {
        .list = mcp_list, .call = mcp_call, .cancel = mcp_cancel, .close = mcp_close
};

struct tool_source *mcp_new(struct sources *sources, const struct server *server, const struct mcp_transport *transport)
{
        struct mcp *mcp = mem_alloc(sizeof *mcp);
        *mcp = (struct mcp){ .source = { .kind = &mcp_kind, .server = server->name, .state = TOOLS_STARTING },
                .sources = sources,
                .server = server,
                .loop = sources->loop,
                .transport = transport,
                .era = server->era };
        mcp_client_init(mcp);
        return &mcp->source;
}
