/*
 * mcp: Caisson as a server of the Model Context Protocol, at /mcp of the HTTP interface.
 *
 * The server speaks two revisions.  2026-07-28 has no state: each request names its revision and the capabilities of
 * the client.  2025-11-25 (and 2025-06-18) begins with `initialize`, which creates a session; each later request
 * carries the id of the session.  Both revisions share one table of methods, and each call records its revision.
 *
 * The files, lowest first:
 *
 *   call       a request in progress: its answer, its notifications, its request to a route
 *   content    the answer of a route as the result of a tool: text, images, files, the record
 *   tools      the tools; each tool is a route of the HTTP interface, in one row of a table
 *   resources  kept files and files of sandboxes as resources; prompts and completions
 *   session    sessions of revision 2025-11-25
 *   methods    the table of methods, by revision; subscriptions
 *   http       messages as requests and answers of HTTP; the front
 *
 * A tool is no second way into the engine.  It sends an internal request to its route (http_internal_request()) with
 * the key and the tenant of the caller: scopes, quotas, bounds, the audit log and all errors are those of the route.
 *
 * caisson mcp offers the same on standard input and output: see front/remote/mcp.c.
 */
#ifndef FRONT_MCP_MCP_H
#define FRONT_MCP_MCP_H

#include "front/service/service.h"
#include "net/jsonrpc.h"

#define MCP_MODERN "2026-07-28"
#define MCP_LEGACY "2025-11-25"            /* answer to an `initialize` that names an unknown revision */
#define MCP_META "io.modelcontextprotocol/"   /* prefix of the protocol's own names in _meta */
#define MCP_SESSION_IDLE_US (3600 * 1000000ULL)
#define MCP_END_BEGIN "{\"type\":\"end\",\"record\":"   /* of the last event of a run */
#define MCP_CALLS_MAX 64                   /* of one session at once */
#define MCP_ANSWER_MAX (64 * MIB)          /* of a route */
#define MCP_IMAGES_MAX 10                  /* in one result */
#define MCP_IMAGE_MAX (4 * MIB)
#define MCP_TTL_MS 60000                   /* time for which a client may keep a list */
#define MCP_NOTE_US 100000                 /* least time between two notifications of progress */

/* Codes besides those of JSON-RPC. */
#define MCP_NOT_FOUND (-32002)             /* of a resource, in 2025-11-25 */
#define MCP_HEADER_MISMATCH (-32020)
#define MCP_UNSUPPORTED_VERSION (-32022)

struct mcp_tool;
struct mcp_call;
struct mcp_result;
struct mcp_session;

/* The front, and its state. */
extern const struct front mcp_front;

struct mcp {
        struct mcp_session *sessions;
        struct mcp_call *listening;        /* calls of subscriptions/listen */
};

/* The way of messages to the client of a call. */
struct mcp_transport {
        /* A notification of the call.  The reference becomes the callee's. */
        void (*note)(void *owner, json_t *message);
        /*
         * The last message, as a text from malloc(3), which becomes the callee's; the call is freed before.  NULL: no
         * message follows.  http: the HTTP status.
         */
        void (*answer)(void *owner, unsigned http, char *text, size_t len);
};

/* ---- a request in progress (call.c) ---- */

/* Texts and the key are those of the HTTP request, which outlives the call. */
struct mcp_call {
        struct mcp_call *next;             /* of its session, or in mcp.listening */
        struct mcp *mcp;
        struct service *service;
        struct http_request *http;
        struct mcp_session *session;       /* NULL: the call is of revision 2026-07-28 */
        const struct mcp_transport *transport;
        void *owner;
        struct arena arena;
        json_t *id, *params;
        json_t *token;                     /* of progress, or NULL */
        int level;                         /* least level of log messages for the client; -1: none is sent */
        bool listens, tools_too;           /* subscriptions/listen; with changes of tools/list */

        /* the request to a route, and its answer */
        struct http_request *asked;        /* the request in progress, or NULL */
        void (*answered)(struct mcp_call *call);   /* called after the whole answer */
        unsigned status;                   /* HTTP status of the answer; 0: the route broke off */
        char *type;                        /* media type of the answer */
        bool lines;                        /* the answer consists of events, one a line */
        bool too_long;                     /* the answer exceeded MCP_ANSWER_MAX */
        struct buf answer;                 /* of events: the incomplete line; then the last event, if it has a record */
        const char *run;                   /* of events: path of the run */
        bool has_record;                   /* of events: `answer` is the last event */
        uint64_t begun_us, noted_us;       /* start of the call; last notification of progress */

        /* the result of a tool, or the resource */
        const struct mcp_tool *tool;
        const char *uri, *mime;            /* of the resource or file that is read */
        struct mcp_result *result;         /* in progress, or NULL */
        void (*result_drop)(struct mcp_result *result); /* the call of the result ends */
};

bool mcp_is_modern(const struct mcp_call *call);
/*
 * The message of a result, in the revision of the call; listed: the client may keep the result for MCP_TTL_MS.  The
 * reference to the result becomes the callee's.  Any thread may call mcp_result_message().
 */
json_t *mcp_result_message(bool modern, json_t *id, json_t *result, bool listed);
/* Name and version of this server, for an answer. */
json_t *mcp_server_info(void);
/* Rank of a log level by its name; -1: unknown. */
int mcp_level_of(const char *name);

/* Answer the call, which frees the call.  The references become the callee's; data may be NULL. */
void mcp_answer(struct mcp_call *call, json_t *result);
void mcp_answer_list(struct mcp_call *call, json_t *result);   /* a list that the client may keep for MCP_TTL_MS */
/* The same with a message from mcp_result_message() and rpc_line(), which becomes the callee's. */
void mcp_answer_text(struct mcp_call *call, char *text, size_t len);
void mcp_fail(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The same for a request that is itself invalid: HTTP status 400 in revision 2026-07-28. */
void mcp_refuse(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* End the call without an answer; the transport gets NULL. */
void mcp_finish(struct mcp_call *call);
/* Free the call without a word to the transport, which is gone.  NULL is harmless. */
void mcp_cancel(struct mcp_call *call);

/* Send a notification of the call. */
void mcp_note(struct mcp_call *call, const char *method, json_t *params);

/*
 * Send a request to the route at `path`; answered() is called after the whole answer.  body: from malloc(3), becomes
 * the callee's.  `lines`: ask for the answer as events, which become notifications of the call.
 */
void mcp_ask(struct mcp_call *call, const char *method, const char *path, const struct pair *query, size_t query_n,
        char *body, size_t body_len, bool lines, void (*answered)(struct mcp_call *call));
/* The route's answer as JSON.  The caller owns the reference; NULL: the answer is no JSON. */
json_t *mcp_json(const struct mcp_call *call);
/* Text of the problem in the route's answer, from the arena of the call. */
const char *mcp_problem(struct mcp_call *call);

/* ---- results of tools (content.c) ---- */

enum mcp_gives { GIVES_RECORD, GIVES_JSON, GIVES_BYTES, GIVES_NOTHING, GIVES_RESOURCE };

/*
 * Answer the call with the route's answer: as the result of a tool, or as the content of a resource.  A helper thread
 * makes the message of a long answer.
 */
void mcp_give(struct mcp_call *call, enum mcp_gives gives);

/* ---- tools (tools.c) ---- */

void mcp_list_tools(struct mcp_call *call);
/* Describe run_code with a profile, appended to buf.  Errors: as front_describe(). */
int mcp_describe(const struct mcp_call *call, const char *profile, struct buf *buf, struct csn_error *err);
void mcp_call_tool(struct mcp_call *call);
/* The converter of messages: a tool's arguments become the request to its route. */
void *mcp_begin(struct http_request *request, struct arena *arena);
void *mcp_convert(json_t *message, const struct csn_error *error, void *context, struct arena *arena);
void mcp_drop(void *given);

/* ---- resources, prompts, completions (resources.c) ---- */

void mcp_list_resources(struct mcp_call *call);
void mcp_list_templates(struct mcp_call *call);
void mcp_read_resource(struct mcp_call *call);
void mcp_list_prompts(struct mcp_call *call);
void mcp_get_prompt(struct mcp_call *call);
void mcp_complete(struct mcp_call *call);

/* ---- sessions (session.c) ---- */

struct mcp_session {
        struct mcp_session *next;
        struct mcp *mcp;
        struct service *service;
        char id[40], tenant[80];
        struct share_charge share;
        const char *version;               /* its revision */
        int level;                         /* of logging/setLevel; -1: not set, which means "info" */
        bool began;                        /* initialize was answered */
        struct mcp_call *calls;            /* its calls in progress */
        struct timer expiry;
        uint64_t used_us;                  /* time of the last request */
};

/*
 * Create a session for the tenant of the request.  Where the tenant has its share of sessions (SHARE_SESSIONS), the
 * tenant's longest idle session ends.  NULL with CSN_E_BUSY: all of them have calls in progress.
 */
struct mcp_session *mcp_session_new(struct mcp *mcp, struct http_request *http, struct csn_error *err);
/* The session with this id of the request's tenant, or NULL. */
struct mcp_session *mcp_session_find(struct mcp *mcp, const struct http_request *http, const char *id);
/* End a session: its calls fail. */
void mcp_session_end(struct mcp_session *session);
void mcp_sessions_end(struct mcp *mcp);

/* ---- methods (methods.c) ---- */

bool mcp_knows_version(const char *version);   /* whether `version` is a revision with sessions */
/* {supported, requested}: data of an error about the revision. */
json_t *mcp_versions(const char *requested);

/*
 * Carry out a request.  rpc stays the caller's.  The transport may be called before the return.  Returns the call while
 * the call is in progress, and NULL after its answer.
 */
struct mcp_call *mcp_take(struct mcp *mcp, struct http_request *http, struct mcp_session *session,
        const struct rpc *rpc, const struct mcp_transport *transport, void *owner);
/* Carry out a notification of the client: notifications/cancelled ends a call; others have no effect. */
void mcp_notice(struct mcp_session *session, const struct rpc *rpc);

/* Tell all calls of subscriptions/listen that the list of tools may have changed. */
void mcp_changed(struct mcp *mcp);
/* End all calls of subscriptions/listen, which would delay the end of the daemon. */
void mcp_drain(struct mcp *mcp);

#endif
