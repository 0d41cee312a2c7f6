/* Requests to an MCP server, and messages without an answer; see mcp.h. */
#include "tools/sources/mcp.h"

#include "config.h"

#include <stdio.h>

json_t *mcp_client_info(void)
{
        return json_pack("{s:s, s:s, s:s}", "name", "caisson", "title", "Caisson", "version", VERSION);
}

/* Each request of the modern era carries the version of the protocol and the client. */
static json_t *with_meta(const struct mcp *mcp, json_t *params)
{
        json_t *meta = json_object_get(params, "_meta");
        if (mcp->era == MCP_LEGACY)
                return params;
        if (!params)
                params = json_object();
        if (!meta) {
                meta = json_object();
                json_object_set_new(params, "_meta", meta);
        }
        json_object_set_new(meta, "io.modelcontextprotocol/protocolVersion", json_string(MCP_VERSION));
        json_object_set_new(meta, "io.modelcontextprotocol/clientInfo", mcp_client_info());
        json_object_set_new(meta, "io.modelcontextprotocol/clientCapabilities", json_object());
        return params;
}

struct waiting *mcp_client_find(const struct mcp *mcp, int64_t id)
{
        struct waiting *waiting = mcp->waiting;
        while (waiting && waiting->id != id)
                waiting = waiting->next;
        return waiting;
}

/* Unlink the request; its memory stays the caller's. */
static void take_out(struct mcp *mcp, struct waiting *waiting)
{
        for (struct waiting **at = &mcp->waiting; *at; at = &(*at)->next)
                if (*at == waiting) {
                        *at = waiting->next;
                        mcp->waiting_n--;
                        break;
                }
}

void mcp_client_drop(struct mcp *mcp, struct waiting *waiting)
{
        take_out(mcp, waiting);
        mcp->transport->forget(mcp, waiting);
        free(waiting);
}

int mcp_client_send(struct mcp *mcp, struct waiting *waiting, json_t *params, struct csn_error *err)
{
        json_t *id = json_integer(waiting->id);
        json_t *message = rpc_call(id, waiting->method, with_meta(mcp, params));
        json_decref(id);
        return mcp->transport->send(mcp, message, waiting, err);
}

int mcp_client_ask(struct mcp *mcp, const char *method, json_t *params, struct tool_call *call, struct csn_error *err)
{
        if (mcp->waiting_n >= MCP_WAITING_MAX) {
                json_decref(params);
                return err_set(err, CSN_E_BUSY, 0,
                        "the server %s has %d calls that it has not answered; try again later", mcp->server->name,
                        MCP_WAITING_MAX);
        }
        struct waiting *waiting = mem_alloc(sizeof *waiting);
        *waiting = (struct waiting){ .next = mcp->waiting, .id = ++mcp->last_id, .method = method, .call = call };
        mcp->waiting = waiting;
        mcp->waiting_n++;
        if (call) {
                call->handle = waiting;
                json_object_set_new(params, "_meta", json_pack("{s:I}", "progressToken", (json_int_t)waiting->id));
        }
        int rc = mcp_client_send(mcp, waiting, params, err);
        if (rc < 0)
                mcp_client_drop(mcp, waiting);
        return rc;
}

void mcp_client_tell(struct mcp *mcp, json_t *message)
{
        struct csn_error err;
        if (mcp->transport->send(mcp, message, NULL, &err) < 0)
                log_text(LOG_DEBUG, "MCP server %s: %s", mcp->server->name, err.text);
}

void mcp_client_fail_call(struct tool_call *call, const char *error)
{
        const struct tool_result result = { .is_error = true, .error = error };
        call->handle = NULL;
        call->done(call, &result);
}

void mcp_client_end_waiting(struct mcp *mcp, const char *why)
{
        char text[400];
        snprintf(text, sizeof text, "the server %s cannot be used: %s", mcp->server->name, why);
        while (mcp->waiting) {
                struct tool_call *call = mcp->waiting->call;
                mcp_client_drop(mcp, mcp->waiting);
                if (call)
                        mcp_client_fail_call(call, text);
        }
}

void mcp_client_forget(struct mcp *mcp, struct waiting *waiting)
{
        int64_t id = waiting->id;
        take_out(mcp, waiting);
        bool told = mcp->transport->forget(mcp, waiting);
        free(waiting);
        if (told || mcp->phase != MCP_READY)
                return;
        json_t *params = json_pack("{s:I, s:s}", "requestId", (json_int_t)id, "reason", "nobody waits for it any more");
        mcp_client_tell(mcp, rpc_notification("notifications/cancelled", with_meta(mcp, params)));
}
