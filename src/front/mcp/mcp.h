/*
 * mcp: Caisson as a server of the Model Context Protocol, at /mcp of the HTTP interface.
 *
 * Two revisions are spoken.  2026-07-28 has no state: each request says which revision it is of and what its client can.
 * 2025-11-25 (and 2025-06-18) begins with `initialize`, which makes a session; its id comes with every request after it.
 * What is asked is the same in both, so there is one table of methods, and a call knows of which kind it is.
 *
 *   mcp            methods: which there are in which revision, and what they answer; sessions
 *   mcp_tools      the tools: each is a route of the HTTP interface in a line of a table
 *   mcp_content    what a route answered as what a tool gives: text, images, files, the record
 *   mcp_resources  files that are kept, and those of sandboxes, as resources; prompts and completions
 *   mcp_http       messages as requests and answers of HTTP
 *
 * A tool is no second way into the engine.  It asks its route as a client would (http_internal_request()), with the key and the tenant of
 * whoever called it: scopes, quotas, bounds, the audit and every error are those of the route.
 *
 * caisson mcp is the same on standard input and output: see front/remote/mcp.c.
 */
#ifndef FRONT_MCP_MCP_H
#define FRONT_MCP_MCP_H

#include "front/service/service.h"
#include "net/jsonrpc.h"

#define MCP_MODERN "2026-07-28"
#define MCP_LEGACY "2025-11-25"            /* what `initialize` gets that asks for another */
#define MCP_SESSIONS_MAX 1000              /* of all tenants; then the one goes that was idle for longest */
#define MCP_SESSION_IDLE_US (3600 * 1000000ULL)
#define MCP_CALLS_MAX 64                   /* of one session at once */
#define MCP_ANSWER_MAX (64 * MIB)          /* of a route */
#define MCP_IMAGES_MAX 10                  /* in one result */
#define MCP_IMAGE_MAX (4 * MIB)
#define MCP_TTL_MS 60000                   /* how long lists may be kept */
#define MCP_NOTE_US 100000                 /* between two notes on progress */

/* Codes besides those of JSON-RPC. */
#define MCP_NOT_FOUND (-32002)             /* of a resource, in 2025-11-25 */
#define MCP_HEADER_MISMATCH (-32020)
#define MCP_UNSUPPORTED_VERSION (-32022)

struct mcp_tool;
struct mcp_call;
struct mcp_session;

/* The state of the front. */
struct mcp {
        struct mcp_session *sessions;
        size_t sessions_n;
        struct mcp_call *listening;        /* calls of subscriptions/listen */
};

extern const struct front mcp_front;

struct mcp *mcp_of(const struct service *service);


/* The way back to whoever called. */
struct mcp_transport {
        void (*note)(void *owner, json_t *message);   /* a notification that belongs to the call; takes the reference */
        void (*answer)(void *owner, unsigned http, json_t *message);   /* the last one; the call is gone.  NULL: nothing is said any more */
};

/* A request that goes on.  Texts and the key are those of the HTTP request that brought it, which outlives it. */
struct mcp_call {
        struct mcp_call *next;             /* of its session, or of those that listen */
        struct service *service;
        struct http_request *http;
        struct mcp_session *session;       /* NULL: it is of the revision without */
        const struct mcp_transport *transport;
        void *owner;
        struct arena arena;
        json_t *id, *params;
        json_t *token;                     /* of progress, or NULL */
        int level;                         /* the least that is logged to the client; -1: nothing */
        bool listens, tools_too;           /* subscriptions/listen; to tools/list, too */

        struct http_request *asked;        /* the route that works on it, or NULL */
        const struct mcp_tool *tool;
        void (*answered)(struct mcp_call *call);   /* what the route says is whole */
        unsigned status;
        char *type;
        bool lines;                        /* the answer comes as events, one a line */
        bool too_long;
        struct buf answer;                 /* of events: the line that is not whole */
        const char *run;                   /* of events: the path of the run that tells them */
        json_t *record;                    /* of events: what the last one had */
        uint64_t begun_us, noted_us;
        json_t *content;                   /* blocks so far */
        size_t at, images;                 /* files of the record that were looked at */
        const char *uri;                   /* of the resource that is read */
        const char *mime;
};

/* ---- methods (methods.c) ---- */

/*
 * Carry out a request, which is the caller's; the road is told what comes of it, maybe from within.  Returns the call while it goes
 * on, and NULL when it is answered.
 */
struct mcp_call *mcp_take(struct http_request *http, struct mcp_session *session, const struct rpc *rpc, const struct mcp_transport *transport, void *owner);
/* Nobody waits for it any more: it ends, and the road is not told. */
void mcp_cancel(struct mcp_call *call);
/* notifications/cancelled and others. */
void mcp_notice(struct mcp_session *session, const struct rpc *rpc);

/* Answers, after which the call is gone.  Take the references; data may be NULL. */
void mcp_answer(struct mcp_call *call, json_t *result);
void mcp_fail(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* A list that may be kept for a while. */
void mcp_answer_list(struct mcp_call *call, json_t *result);
/* A notification about the call. */
void mcp_note(struct mcp_call *call, const char *method, json_t *params);
/* What a program printed, where the client wants to know. */
void mcp_log(struct mcp_call *call, const char *level, const char *logger, const char *text, size_t len);
/* That it goes on. */
void mcp_progress(struct mcp_call *call, const char *message);

bool mcp_is_modern(const struct mcp_call *call);
/* {supported, requested} of an error. */
json_t *mcp_versions(const char *requested);
bool mcp_knows_version(const char *version);   /* one of 2025 */

/* The tools may read otherwise from now on. */
void mcp_changed(struct service *service);
/* The daemon is about to end. */
void mcp_drain(struct service *service);

/* ---- sessions ---- */

struct mcp_session *mcp_session_new(struct http_request *http);
/* Of this tenant; NULL: there is none. */
struct mcp_session *mcp_session_find(const struct http_request *http, const char *id);
const char *mcp_session_id(const struct mcp_session *session);
bool mcp_session_began(const struct mcp_session *session);
void mcp_session_end(struct mcp_session *session);
void mcp_stop(struct service *service);

/* ---- asking routes (tools.c) ---- */

/* The route at a path; answered() follows.  `lines`: as events, where it has some. */
void mcp_ask(struct mcp_call *call, const char *method, const char *path, const struct pair *query, size_t query_n, const char *body, size_t body_len,
             bool lines, void (*answered)(struct mcp_call *call));
/* The run that tells events ends, and is forgotten. */
void mcp_drop_run(struct mcp_call *call);
/* What it said, as JSON.  The caller's reference; NULL: it is none. */
json_t *mcp_json(const struct mcp_call *call);
/* What a problem says, from the call's arena. */
const char *mcp_problem(struct mcp_call *call);

void mcp_list_tools(struct mcp_call *call);
void mcp_call_tool(struct mcp_call *call);

/* ---- what tools give (content.c) ---- */

enum mcp_gives { GIVES_RECORD, GIVES_JSON, GIVES_BYTES, GIVES_NOTHING };

/* The route has answered: the tool's result. */
void mcp_give(struct mcp_call *call, enum mcp_gives gives);
/* {type, data, mimeType} or {text} or {blob} of bytes: how a resource, or a block, has them. */
json_t *mcp_resource(const char *uri, const char *mime, const char *bytes, size_t len);
/* By the first bytes, where the name of the type says too little. */
const char *mcp_image_type(const char *bytes, size_t len);   /* NULL: it is no image that clients know */

/* ---- resources, prompts, completions (resources.c) ---- */

void mcp_list_resources(struct mcp_call *call);
void mcp_list_templates(struct mcp_call *call);
void mcp_read_resource(struct mcp_call *call);
void mcp_list_prompts(struct mcp_call *call);
void mcp_get_prompt(struct mcp_call *call);
void mcp_complete(struct mcp_call *call);

#endif
