/*
 * mcp: a client of the Model Context Protocol, for the files of this folder.
 *
 * Two eras of it: the modern one (2026-07-28), in which each request says its version and who asks, and the legacy one
 * (2025-11-25 and before), which begins with initialize.  Which one a server is of is found out once: by server/discover,
 * and by initialize where that is not known.
 *
 * What a server says is hostile: it may die, hang, answer twice or never, to ids that nobody used, list tools without end.
 * Everything it can make us hold or do has a bound.
 */
#ifndef TOOLS_MCP_H
#define TOOLS_MCP_H

#include "net/jsonrpc.h"
#include "tools/sources/server_config.h"

#define MCP_VERSION "2026-07-28"
#define MCP_LEGACY_VERSION "2025-11-25"

#define MCP_MESSAGE_MAX (TOOL_RESULT_MAX + MIB)   /* of one message from a server */
#define MCP_WAITING_MAX 1024               /* requests that are not answered */
#define MCP_PAGES_MAX 1000
#define MCP_LIST_MAX (32 * MIB)            /* of a list of tools as text */
#define MCP_PROBE_US (5 * 1000000ULL)      /* for an answer to server/discover, before it is taken for a legacy server */
#define MCP_START_US (60 * 1000000ULL)     /* until a server has started and listed its tools; npx may have to install it */
#define MCP_RELIST_US 1000000ULL           /* between two lists that a server's notifications ask for */
#define MCP_AGAIN_US 1000000ULL            /* until a server that has ended is started again; then twice as long each time */
#define MCP_AGAIN_US_MAX (60 * 1000000ULL)

struct mcp;

/* A request that is not answered yet. */
struct waiting {
        struct waiting *next;
        int64_t id;
        const char *method;
        struct tool_call *call;            /* of tools/call, or NULL */
        bool again;                        /* to be sent once more when the session is there again */
        void *post;                        /* mcp_http's */
};

/* What carries messages. */
struct mcp_transport {
        /* Begin: messages can be sent from then on.  Errors: those of whatever it takes. */
        int (*open)(struct mcp *mcp, struct csn_error *err);
        /* Send a message, which is taken; waiting is what it asks for, or NULL.  Errors: CSN_E_BUSY, CSN_E_SYSTEM. */
        int (*send)(struct mcp *mcp, json_t *message, struct waiting *waiting, struct csn_error *err);
        /* Nobody waits for the answer any more.  False: the server has to be told by a message. */
        bool (*forget)(struct mcp *mcp, struct waiting *waiting);
        /* Requests of the server's come over a way of their own, which is to be opened; may be NULL. */
        void (*listen)(struct mcp *mcp);
        /* A tool with this input schema cannot be called by it, and why; NULL: it can.  May be NULL. */
        const char *(*refuses)(const struct mcp *mcp, json_t *schema);
        /* End what was begun.  Harmless twice. */
        void (*shut)(struct mcp *mcp);
        void (*done)(struct mcp *mcp);     /* after shut(), at the end of all: free what is in mcp->way */
};
extern const struct mcp_transport mcp_stdio, mcp_http;

enum mcp_phase { MCP_OFF, MCP_PROBING, MCP_GREETING, MCP_LISTING, MCP_READY };

struct mcp {
        struct tool_source source;
        struct sources *sources;
        const struct server *server;
        struct loop *loop;
        const struct mcp_transport *transport;
        void *way;                         /* the road's */
        enum mcp_phase phase;
        enum mcp_era era;                  /* as far as it is known */
        char version[16];                  /* of a legacy session, as the server has it */
        bool has_tools, tells_changes;
        bool asked_twice;                  /* for the version that it refused and says to have */
        bool renewing;                     /* a session has ended, and another begins; calls wait */
        int64_t last_id;
        struct waiting *waiting;
        size_t waiting_n;
        struct timer slow;                 /* the server is late with the phase */
        struct timer again;                /* the next start, or the next list */
        unsigned failures;                 /* starts since it was ready last */
        uint64_t listed_us;
        json_t *pages;                     /* tools of the list that is being read: an array */
        json_t *cursors;                   /* that were seen, as keys */
        size_t list_bytes;
        json_t *listed;                    /* what `tools` points into */
        struct tool *tools;
        size_t tools_n;
        char problem[300];                 /* as its administrator reads it */
        char why[100];                     /* as code in a sandbox does */
};

/* By a road: a message has come; false: it was none, and the connection is of no use.  mcp may be in another phase then. */
bool mcp_message(struct mcp *mcp, const char *text, size_t len);
/* By a road: the connection is gone, or cannot be made.  `last` is what the server printed last, for its administrator alone; may be "". */
void mcp_lost(struct mcp *mcp, const char *why, const char *last);
/* By a road: this request has no answer, and why; err->code CSN_E_SYSTEM. */
void mcp_unanswered(struct mcp *mcp, struct waiting *waiting, const char *why);
/* By a road: the server does not know the session any more. */
void mcp_renew(struct mcp *mcp, struct waiting *waiting);
/* Is there still such a request? */
struct waiting *mcp_find(const struct mcp *mcp, int64_t id);

#endif
