/* Sessions of revision 2025-11-25 of the Model Context Protocol; see mcp.h. */
#include "front/mcp/mcp.h"

#include <stdio.h>

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

/* End the tenant's longest idle session. */
static void make_room(struct mcp *mcp, const char *tenant)
{
        struct mcp_session *oldest = NULL;
        for (struct mcp_session *one = mcp->sessions; one; one = one->next)
                if (strcmp(one->tenant, tenant) == 0 && !one->calls && (!oldest || one->used_us < oldest->used_us))
                        oldest = one;
        if (oldest)
                mcp_session_end(oldest);
}

struct mcp_session *mcp_session_new(struct mcp *mcp, struct http_request *http, struct csn_error *err)
{
        if (!share_fits(http->holder, SHARE_SESSIONS, 1))
                make_room(mcp, http->tenant);
        if (share_take(http->holder, SHARE_SESSIONS, 1, err) < 0)
                return NULL;
        struct mcp_session *session = mem_alloc(sizeof *session);
        *session = (struct mcp_session){
                .next = mcp->sessions,
                .mcp = mcp,
                .service = service_of(http),
                .share = { holder_ref(http->holder), SHARE_SESSIONS, 1 },
                .version = MCP_LEGACY,
                .level = -1,
        };
        session->expiry = (struct timer){ .fired = on_expiry, .owner = session };
        id_new(session->id);
        snprintf(session->tenant, sizeof session->tenant, "%s", http->tenant);
        mcp->sessions = session;
        touch(session);
        return session;
}

struct mcp_session *mcp_session_find(struct mcp *mcp, const struct http_request *http, const char *id)
{
        for (struct mcp_session *session = mcp->sessions; session; session = session->next)
                if (strcmp(session->id, id) == 0 && strcmp(session->tenant, http->tenant) == 0) {
                        touch(session);
                        return session;
                }
        return NULL;
}

void mcp_session_end(struct mcp_session *session)
{
        struct mcp *mcp = session->mcp;
        while (session->calls)
                mcp_fail(session->calls, RPC_INTERNAL_ERROR, NULL, "the session has ended");
        for (struct mcp_session **at = &mcp->sessions; *at; at = &(*at)->next)
                if (*at == session) {
                        *at = session->next;
                        break;
                }
        share_charge_done(&session->share);
        loop_untimer(session->service->loop, &session->expiry);
        free(session);
}

void mcp_sessions_end(struct mcp *mcp)
{
        for (struct mcp_session *session = mcp->sessions, *next; session; session = next) {
                next = session->next;
                mcp_session_end(session);
        }
}
