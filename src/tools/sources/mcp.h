/*
 * A client of the Model Context Protocol.
 *
 *   mcp.c                    an MCP server as a source of tools: calls, and messages of the server
 *   mcp_session.c            start, version of the protocol, list of tools, failure
 *   mcp_requests.c           requests and their ids
 *   mcp_stdio.c, mcp_http.c  the transports
 *
 * Two versions of the protocol are supported: modern (2026-07-28), where each request carries version and client, and
 * legacy (2025-11-25 and before), which begins with initialize.  The version of a server is determined once: by
 * server/discover, then by initialize.
 *
 * Servers are untrusted: a server may die, hang, answer twice or never, use unknown ids, or list tools without end.
 * All memory and work that a server can cause is bounded.
 */
#ifndef TOOLS_SOURCES_MCP_H
#define TOOLS_SOURCES_MCP_H

#include "net/jsonrpc.h"
#include "tools/sources/server_config.h"

#define MCP_VERSION "2026-07-28"
#define MCP_LEGACY_VERSION "2025-11-25"

#define MCP_MESSAGE_MAX (TOOL_RESULT_MAX + MIB)   /* bytes of one message from a server */
#define MCP_WAITING_MAX 1024               /* requests without an answer */
#define MCP_PAGES_MAX 1000
#define MCP_LIST_MAX (32 * MIB)            /* bytes of a list of tools as text */
#define MCP_PROBE_US (5 * 1000000ULL)      /* wait for an answer to server/discover; then the server counts as legacy */
#define MCP_START_US (60 * 1000000ULL) /* limit for a server to start and list its tools; npx may have to install it */
#define MCP_RELIST_US 1000000ULL           /* between two lists caused by a server's notifications */
#define MCP_AGAIN_US 1000000ULL /* pause before a server that ended is started again; doubled with each failure */
#define MCP_AGAIN_US_MAX (60 * 1000000ULL)

struct mcp;

/* A request without an answer. */
struct waiting {
        struct waiting *next;
        int64_t id;
        const char *method;
        struct tool_call *call;            /* for tools/call, or NULL */
        bool again;                        /* to be sent again with the next session */
        void *post;                        /* for mcp_http */
};

/* A transport of messages. */
struct mcp_transport {
        /*
         * Open the transport; messages can be sent after the return.  Errors: CSN_E_SYSTEM and those of the transport's
         * connection.
         */
        int (*open)(struct mcp *mcp, struct csn_error *err);
        /*
         * Send a message, whose reference becomes the callee's; waiting is the request that expects an answer, or NULL.
         * Errors: CSN_E_BUSY, CSN_E_SYSTEM.
         */
        int (*send)(struct mcp *mcp, json_t *message, struct waiting *waiting, struct csn_error *err);
        /* Drop a request.  false: the caller must notify the server by a message. */
        bool (*forget)(struct mcp *mcp, struct waiting *waiting);
        /* Open the stream for requests of the server; may be NULL. */
        void (*listen)(struct mcp *mcp);
        /*
         * The reason why a tool with this input schema cannot be called by the transport; NULL: callable.  May be NULL.
         */
        const char *(*refuses)(const struct mcp *mcp, json_t *schema);
        /* Close the transport.  Harmless twice. */
        void (*shut)(struct mcp *mcp);
        void (*done)(struct mcp *mcp);     /* after the last shut(): free mcp->way */
};
extern const struct mcp_transport mcp_stdio, mcp_http;

enum mcp_phase { MCP_OFF, MCP_PROBING, MCP_GREETING, MCP_LISTING, MCP_READY };

/* One MCP server. */
struct mcp {
        struct tool_source source;
        struct sources *sources;
        const struct server *server;
        struct loop *loop;
        const struct mcp_transport *transport;
        void *way;                         /* the transport's state */
        enum mcp_phase phase;
        enum mcp_era era;                  /* as far as known */
        char version[16];                  /* version of a legacy session, chosen by the server */
        bool has_tools, tells_changes;
        bool asked_twice;                  /* initialize was repeated with the version that the server offered */
        bool renewing;                     /* a new session replaces one that ended; calls wait */
        int64_t last_id;
        struct waiting *waiting;
        size_t waiting_n;
        struct timer slow;                 /* limit of the current phase */
        struct timer again;                /* the next start, or the next list */
        unsigned failures;                 /* failed starts since the server was last ready */
        uint64_t listed_us;
        json_t *pages;                     /* array of the tools of the list being read */
        json_t *cursors;                   /* cursors seen, as keys of an object */
        size_t list_bytes;
        json_t *listed;                    /* owns the texts in `tools` */
        struct tool *tools;
        size_t tools_n;
        char problem[300];                 /* for the administrator */
        char why[100];                     /* for code in a sandbox */
};

/* Create the source of an entry.  The source is the caller's until tools_add(). */
struct tool_source *mcp_new(struct sources *sources, const struct server *server,
        const struct mcp_transport *transport);

/* ---- reports of a transport ---- */

/* A message has arrived (mcp.c).  false: malformed, and the connection is unusable.  The call may change mcp->phase. */
bool mcp_message(struct mcp *mcp, const char *text, size_t len);
/*
 * The connection has ended or cannot be made.  `last` is the server's last output, for the administrator alone; may be
 * "".
 */
void mcp_lost(struct mcp *mcp, const char *why, const char *last);
/* This request gets no answer, for this reason; its error has the code CSN_E_SYSTEM. */
void mcp_unanswered(struct mcp *mcp, struct waiting *waiting, const char *why);
/* The server has dropped the session. */
void mcp_renew(struct mcp *mcp, struct waiting *waiting);

/* ---- the session (mcp_session.c) ---- */

void mcp_client_init(struct mcp *mcp);   /* starts from the loop, after tools_add() */
/* Close the connection, forget all requests, and free the list of tools. */
void mcp_client_done(struct mcp *mcp);
/* The result of a request of the session itself; len: bytes of the message. */
void mcp_client_take_result(struct mcp *mcp, const char *method, json_t *result, size_t len);
/* The error of such a request; text: the error for logs and the administrator. */
void mcp_client_take_error(struct mcp *mcp, const char *method, const struct rpc *rpc, const char *text);
/* The server has changed its list of tools. */
void mcp_client_list_changed(struct mcp *mcp);

/* ---- requests (mcp_requests.c) ---- */

json_t *mcp_client_info(void);
/*
 * Send a request; params become the callee's.  call: the call of a tool, or NULL.  Errors: CSN_E_BUSY (too many wait)
 * and those of the transport; the request does not wait then.
 */
int mcp_client_ask(struct mcp *mcp, const char *method, json_t *params, struct tool_call *call, struct csn_error *err);
/* Send the message of a pending request, once more in a new session.  Errors: those of the transport. */
int mcp_client_send(struct mcp *mcp, struct waiting *waiting, json_t *params, struct csn_error *err);
/* Send a message without an answer, which becomes the callee's.  A failure is logged; mcp_lost() follows. */
void mcp_client_tell(struct mcp *mcp, json_t *message);
/* The pending request with this id, or NULL. */
struct waiting *mcp_client_find(const struct mcp *mcp, int64_t id);
/* Remove and free a pending request; mcp_client_forget() also tells the server to stop. */
void mcp_client_drop(struct mcp *mcp, struct waiting *waiting);
void mcp_client_forget(struct mcp *mcp, struct waiting *waiting);
/* End all pending requests: calls get an error with this reason. */
void mcp_client_end_waiting(struct mcp *mcp, const char *why);
/* End a call with an error. */
void mcp_client_fail_call(struct tool_call *call, const char *error);

#endif
