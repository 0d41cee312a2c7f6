/*
 * The messages of the Model Context Protocol over HTTP ("Streamable HTTP"): a POST for each, answered by JSON, or by a
 * stream of events if notifications precede the answer.
 *
 * A broken stream is not resumed in either revision: no event is kept, so the request of a stream ends with its client.
 * In the older revision the server sends nothing of its own, so there is no stream for GET.
 */
#include "front/mcp/mcp.h"

#include "front/service/parse.h"

#include <stdio.h>

#define PUSH_BYTES (64 * KIB)              /* of an answer, queued at once */

struct post {
        struct http_request *request;
        struct mcp_call *call;             /* NULL: answered, or not begun */
        struct timer keepalive;
        bool streams;                      /* the answer has begun as a stream of events */
        struct last {
                char *text;                /* the answer of a stream, or NULL */
                size_t len, at;            /* at: bytes of the event already queued */
        } last;
};

static struct mcp *mcp_of(const struct http_request *request)
{
        return service_state(service_of(request), &mcp_front);
}

/* ---- answers ---- */

static void send_json(struct http_request *request, unsigned status, json_t *message)
{
        size_t len;
        char *text = message ? rpc_line(message, &len) : mem_copy("", len = 0);
        http_answer(request, status, "application/json", text, len);
}

static void refuse(struct http_request *request, unsigned status, json_t *id, int64_t code, json_t *data,
        const char *text)
{
        send_json(request, status, rpc_error(id, code, text, data));
}

static void on_keepalive(struct timer *timer)
{
        const struct post *post = timer->owner;
        http_add(post->request, ":\n\n", 3);
        loop_timer(service_of(post->request)->loop, timer, EVENTS_KEEPALIVE_US);
}

static void on_gone(struct http_request *request)
{
        struct post *post = request->owner;
        loop_untimer(service_of(request)->loop, &post->keepalive);
        mcp_cancel(post->call);
        post->call = NULL;
        free(post->last.text);
        post->last.text = NULL;
}

static void begin_stream(struct post *post)
{
        post->streams = true;
        http_set_header(post->request, "X-Accel-Buffering", "no");
        http_stream(post->request, MHD_HTTP_OK, "text/event-stream");
        loop_timer(service_of(post->request)->loop, &post->keepalive, EVENTS_KEEPALIVE_US);
}

#define EVENT_BEGIN "event: message\ndata: "
#define EVENT_END "\n\n"

/* Takes the reference. */
static struct buf event_of(json_t *message)
{
        size_t len;
        char *text = rpc_line(message, &len);
        struct buf event;
        buf_init(&event, len + strlen(EVENT_BEGIN EVENT_END));
        buf_add(&event, EVENT_BEGIN, strlen(EVENT_BEGIN));
        buf_add(&event, text ? text : "", len);
        buf_add(&event, EVENT_END, strlen(EVENT_END));
        free(text);
        return event;
}

/* An event without room is dropped: a slow reader may miss progress. */
static void on_note(void *owner, json_t *message)
{
        struct post *post = owner;
        struct buf event = event_of(message);
        if (http_accepts(post->request, "text/event-stream")) {
                if (!post->streams)
                        begin_stream(post);
                http_add(post->request, event.bytes, event.len);
        }
        buf_done(&event);
}

/* The next bytes of the event with the answer, at most PUSH_BYTES; NULL: the event is sent. */
static const char *piece_of(const struct last *last, size_t *ret_len)
{
        const struct bytes parts[] = { { (char *)(uintptr_t)EVENT_BEGIN, strlen(EVENT_BEGIN) },
                { last->text, last->len }, { (char *)(uintptr_t)EVENT_END, strlen(EVENT_END) } };
        size_t at = last->at;
        for (size_t i = 0; i < ARRAY_LEN(parts); at -= parts[i++].len)
                if (at < parts[i].len) {
                        *ret_len = min_u64(parts[i].len - at, PUSH_BYTES);
                        return parts[i].bytes + at;
                }
        return NULL;
}

/* The answer is never dropped: its event is sent as fast as the client reads. */
static void push(struct http_request *request)
{
        struct post *post = request->owner;
        const char *piece;
        for (size_t n; post->last.text && (piece = piece_of(&post->last, &n)); post->last.at += n)
                if (!http_has_room(request) || !http_add(request, piece, n))
                        return;
        free(post->last.text);
        post->last.text = NULL;
        request->gone = NULL;
        http_end(request);
}

static void on_answer(void *owner, unsigned status, char *text, size_t len)
{
        struct post *post = owner;
        post->call = NULL;
        if (!post->streams && text) {
                post->request->gone = NULL;
                http_answer(post->request, status, "application/json", text, len);
                return;
        }
        if (!post->streams)
                begin_stream(post);
        loop_untimer(service_of(post->request)->loop, &post->keepalive);
        post->last = (struct last){ .text = text, .len = len };
        post->request->gone = on_gone;
        post->request->room = push;
        push(post->request);
}

static void take(struct http_request *request, struct mcp_session *session, const struct rpc *rpc)
{
        static const struct mcp_transport transport = { on_note, on_answer };
        struct post *post = arena_alloc(&request->arena, sizeof *post);
        *post = (struct post){ .request = request, .keepalive = { .fired = on_keepalive, .owner = post } };
        request->owner = post;
        post->call = mcp_take(mcp_of(request), request, session, rpc, &transport, post);
        if (post->call)
                request->gone = on_gone;
}

/* ---- the newer revision: headers repeat members of the message ---- */

#define CODED "=?base64?"

/* Without the blanks around the value (RFC 9110, 5.5): libmicrohttpd leaves blanks at its end. */
static const char *value_of(struct http_request *request, const char *name)
{
        const char *value = http_header(request, name);
        size_t len = value ? strlen(value) : 0;
        while (len && strchr(" \t", value[len - 1]))
                len--;
        return value ? arena_copy(&request->arena, value, len) : NULL;
}

/* A header's value, decoded; NULL: malformed. */
static const char *decoded(struct http_request *request, const char *value)
{
        size_t len = strlen(value), begin = strlen(CODED);
        struct bytes bytes;
        if (len < begin + 2 || strncmp(value, CODED, begin) != 0 || strcmp(value + len - 2, "?=") != 0)
                return value;
        const char *inside = arena_copy(&request->arena, value + begin, len - begin - 2);
        if (!model_unbase64(&request->arena, inside, strlen(inside), &bytes) || strlen(bytes.bytes) != bytes.len)
                return NULL;
        return bytes.bytes;
}

static const char *name_of(const struct rpc *rpc)
{
        static const struct {
                const char *method, *member;
        } rows[] = { { "tools/call", "name" }, { "prompts/get", "name" }, { "resources/read", "uri" } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (strcmp(rows[i].method, rpc->method) == 0)
                        return json_string_value(json_object_get(rpc->params, rows[i].member));
        return NULL;
}

/* The difference between headers and message, or NULL. */
static const char *mismatch(struct http_request *request, const struct rpc *rpc, const char *version)
{
        const char *in_head = value_of(request, "MCP-Protocol-Version"), *method = value_of(request, "Mcp-Method");
        const char *name = value_of(request, "Mcp-Name"), *wanted = name_of(rpc);
        if (!in_head || (version && strcmp(in_head, version) != 0))
                return in_head ? "the header MCP-Protocol-Version is not the revision in params._meta"
                               : "the header MCP-Protocol-Version is missing";
        if (!method || strcmp(method, rpc->method) != 0)
                return method ? "the header Mcp-Method is not the message's method"
                              : "the header Mcp-Method is missing";
        const char *plain = name ? decoded(request, name) : NULL;
        if (wanted && (!plain || strcmp(plain, wanted) != 0))
                return name ? "the header Mcp-Name is not what the message names" : "the header Mcp-Name is missing";
        return NULL;
}

static void take_modern(struct http_request *request, const struct rpc *rpc, const char *version)
{
        if (rpc->kind == RPC_NOTIFICATION) {
                send_json(request, MHD_HTTP_ACCEPTED, NULL);
                return;
        }
        const char *what = mismatch(request, rpc, version);
        if (what)
                refuse(request, MHD_HTTP_BAD_REQUEST, rpc->id, MCP_HEADER_MISMATCH, NULL, what);
        else
                take(request, NULL, rpc);
}

/* ---- the older revision: sessions ---- */

static void initialize(struct http_request *request, const struct rpc *rpc)
{
        struct csn_error err;
        struct mcp_session *session = mcp_session_new(mcp_of(request), request, &err);
        if (!session) {
                refuse(request, MHD_HTTP_TOO_MANY_REQUESTS, rpc->id, RPC_INTERNAL_ERROR, NULL, err.text);
                return;
        }
        http_set_header(request, "Mcp-Session-Id", session->id);
        take(request, session, rpc);
        if (!session->began)
                mcp_session_end(session);
}

static void take_legacy(struct http_request *request, const struct rpc *rpc)
{
        const char *id = http_header(request, "Mcp-Session-Id");
        if (rpc->kind == RPC_REQUEST && !id && strcmp(rpc->method, "initialize") == 0) {
                initialize(request, rpc);
                return;
        }
        struct mcp_session *session = id ? mcp_session_find(mcp_of(request), request, id) : NULL;
        if (!session) {
                refuse(request, id ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST, rpc->id, RPC_INVALID_REQUEST, NULL,
                        id ? "the session does not exist or has expired; begin a new one with initialize"
                           : "the header Mcp-Session-Id is missing: begin with initialize, or speak revision " MCP_MODERN);
        } else if (rpc->kind == RPC_REQUEST) {
                take(request, session, rpc);
        } else {
                if (rpc->kind == RPC_NOTIFICATION)
                        mcp_notice(session, rpc);
                send_json(request, MHD_HTTP_ACCEPTED, NULL);
        }
}

/* ---- POST ---- */

static bool is_json(const struct http_request *request)
{
        const char *type = http_header(request, "Content-Type");
        static const char json[] = "application/json";
        size_t len = sizeof json - 1;
        return type && strncasecmp(type, json, len) == 0 && strchr(" ;\t", type[len]);
}

static void take_message(struct http_request *request, const struct rpc *rpc)
{
        const char *in_head = value_of(request, "MCP-Protocol-Version");
        json_t *meta = json_object_get(rpc->params, "_meta");
        const char *version = json_string_value(json_object_get(meta, "io.modelcontextprotocol/protocolVersion"));
        bool legacy = !version && (!in_head || mcp_knows_version(in_head) || strcmp(in_head, "2025-03-26") == 0);
        if (rpc->kind == RPC_RESULT || rpc->kind == RPC_ERROR) {
                if (legacy)
                        take_legacy(request, rpc);
                else
                        refuse(request, MHD_HTTP_BAD_REQUEST, NULL, RPC_INVALID_REQUEST, NULL,
                                "nothing was asked, so there is nothing to answer");
        } else if (!rpc->method) {   /* rpc_take() refuses such a call already */
                refuse(request, MHD_HTTP_BAD_REQUEST, rpc->id, RPC_INVALID_REQUEST, NULL, "the message has no method");
        } else if (legacy) {
                take_legacy(request, rpc);
        } else if (!version && in_head && strcmp(in_head, MCP_MODERN) != 0) {
                refuse(request, MHD_HTTP_BAD_REQUEST, rpc->id, MCP_UNSUPPORTED_VERSION, mcp_versions(in_head),
                        "the revision in MCP-Protocol-Version is not spoken");
        } else {
                take_modern(request, rpc, version);
        }
}

static int read_message(struct http_request *request, struct rpc *ret, struct csn_error *err)
{
        const struct parse *parse = parse_of(request);
        if (parse->tree)
                return rpc_take(json_incref(parse->tree), ret, err);
        *ret = (struct rpc){ .code = RPC_PARSE_ERROR };
        *err = parse->error;
        return -err->code;
}

static void mcp_post(struct http_request *request)
{
        struct csn_error err;
        struct rpc rpc = { 0 };
        if (!is_json(request)) {
                refuse(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, NULL, RPC_INVALID_REQUEST, NULL,
                        "the body has to be application/json");
                return;
        }
        if (!http_accepts(request, "") && !http_accepts(request, "application/json") && !http_accepts(request, "*/*")) {
                refuse(request, MHD_HTTP_NOT_ACCEPTABLE, NULL, RPC_INVALID_REQUEST, NULL,
                        "Accept has to list application/json and text/event-stream");
                return;
        }
        if (read_message(request, &rpc, &err) < 0)
                refuse(request, MHD_HTTP_BAD_REQUEST, rpc.id, rpc.code, NULL, err.text);
        else
                take_message(request, &rpc);
        rpc_done(&rpc);
}

/* ---- DELETE ---- */

static void mcp_delete(struct http_request *request)
{
        const char *id = http_header(request, "Mcp-Session-Id");
        struct mcp_session *session = id ? mcp_session_find(mcp_of(request), request, id) : NULL;
        if (!session) {
                refuse(request, id ? MHD_HTTP_NOT_FOUND : MHD_HTTP_BAD_REQUEST, NULL, RPC_INVALID_REQUEST, NULL,
                       id ? "the session does not exist or has expired" : "the header Mcp-Session-Id is missing");
                return;
        }
        mcp_session_end(session);
        send_json(request, MHD_HTTP_NO_CONTENT, NULL);
}

/* ---- the front ---- */

#define MCP_HEADERS "MCP-Protocol-Version Mcp-Session-Id Mcp-Method Mcp-Name"
#define TEXT_SCHEMA "{\"type\": \"string\"}"

static const struct http_route routes[] = {
        { "POST", "/mcp", NULL, SCOPE_RUN | SCOPE_CHECK | SCOPE_READ | SCOPE_FILES | SCOPE_SANDBOXES,
                BODY_RPC | BODY_MIB(16), mcp_post,
                "The Model Context Protocol, revisions 2026-07-28 and 2025-11-25: one message of JSON-RPC, answered by JSON or by a stream of events.",
                NULL, NULL },
        { "DELETE", "/mcp", NULL, SCOPE_RUN | SCOPE_CHECK | SCOPE_READ | SCOPE_FILES | SCOPE_SANDBOXES, BODY_NONE,
                mcp_delete, "End the session of `Mcp-Session-Id`, of revision 2025-11-25.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { mcp_post, "200:json|events 202", "400:json 404:json 406:json 415:json 503:json", "json", MCP_HEADERS,
                "Mcp-Session-Id X-Accel-Buffering",
                "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"initialize\", \"params\": {\"protocolVersion\": \"2025-11-25\", \"capabilities\": {}, "
                "\"clientInfo\": {\"name\": \"example\", \"version\": \"1\"}}}" },
        { mcp_delete, "204", "400:json 404:json", NULL, "MCP-Protocol-Version Mcp-Session-Id!", NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_value headers[] = {
        { "Mcp-Session-Id", TEXT_SCHEMA, NULL, false, "The session, of revision 2025-11-25." },
        { "X-Accel-Buffering", TEXT_SCHEMA, NULL, false, "`no`: a proxy passes the events on as they come." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_value parameters[] = {
        { "MCP-Protocol-Version", TEXT_SCHEMA, NULL, false, "The revision of the protocol." },
        { "Mcp-Method", TEXT_SCHEMA, NULL, false, "The method of the message, of revision 2026-07-28." },
        { "Mcp-Name", TEXT_SCHEMA, NULL, false, "The tool or resource of the message, of revision 2026-07-28." },
        { "Mcp-Session-Id", TEXT_SCHEMA, NULL, false, "The session, of revision 2025-11-25." },
        { "Mcp-Session-Id!", TEXT_SCHEMA, "$SESSION", true, "The session that ends." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { "/mcp", "Model Context Protocol", "For assistants and agents." },
        { NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = mcp_post, .begin = mcp_begin, .convert = mcp_convert, .drop = mcp_drop, .keeps_tree = true },
        { .handle = NULL },
};

static void on_changed(struct service *service)
{
        mcp_changed(service_state(service, &mcp_front));
}

static void on_drain(struct service *service)
{
        mcp_drain(service_state(service, &mcp_front));
}

static void on_stop(struct service *service)
{
        mcp_sessions_end(service_state(service, &mcp_front));
}

const struct front mcp_front = { .name = "mcp",
        .routes = routes,
        .notes = notes,
        .converters = converters,
        .headers = headers,
        .parameters = parameters,
        .tags = tags,
        .local_pages = true,
        .state_size = sizeof(struct mcp),
        .changed = on_changed,
        .drain = on_drain,
        .stop = on_stop };
