/*
 * A request of the Model Context Protocol in progress: its answer, its notifications, and its request to a route; see
 * mcp.h.
 */
#include "front/mcp/mcp.h"

#include "config.h"

#include <stdio.h>

bool mcp_is_modern(const struct mcp_call *call)
{
        return !call->session;
}

json_t *mcp_server_info(void)
{
        return json_pack("{s:s, s:s, s:s}", "name", "caisson", "title", "Caisson", "version", VERSION);
}

int mcp_level_of(const char *name)
{
        static const char *const levels[] = { "debug", "info", "notice", "warning", "error", "critical", "alert",
                "emergency" };
        for (size_t i = 0; name && i < ARRAY_LEN(levels); i++)
                if (strcmp(levels[i], name) == 0)
                        return (int)i;
        return -1;
}

/* ---- the end ---- */

static void ignore_begun(void *owner, unsigned status, const char *type)
{
        (void)owner, (void)status, (void)type;
}

static void ignore_bytes(void *owner, const char *bytes, size_t len)
{
        (void)owner, (void)bytes, (void)len;
}

static void ignore_over(void *owner, bool whole)
{
        (void)owner, (void)whole;
}

/*
 * A run with a stream of events continues without a reader, for a later request of its record.  Clients of MCP send no
 * such request, so the run is deleted.
 */
static void drop_run(struct mcp_call *call)
{
        static const struct http_internal inner = { ignore_begun, ignore_bytes, ignore_over };
        const struct http_internal_answered asked = { .method = "DELETE",
                .path = call->run,
                .id = call->http->id,
                .tenant = call->http->tenant,
                .key = call->http->key,
                .trace = &call->http->trace };
        if (call->run)
                http_internal_request(call->service->inner, &asked, &inner, NULL)->key =
                        NULL; /* the internal request may outlive the client's request and its key */
}

static struct mcp_call **place_of(struct mcp_call *call)
{
        return call->listens ? &call->mcp->listening : call->session ? &call->session->calls : NULL;
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

static void call_free(struct mcp_call *call)
{
        unlink_call(call);
        if (call->asked)
                http_internal_forget(call->asked);
        drop_run(call);
        json_decref(call->id);
        json_decref(call->params);
        json_decref(call->token);
        if (call->result)
                call->result_drop(call->result);
        buf_done(&call->answer);
        arena_done(&call->arena);
        free(call);
}

void mcp_cancel(struct mcp_call *call)
{
        if (call)
                call_free(call);
}

static void finish_with(struct mcp_call *call, unsigned http, char *text, size_t len)
{
        const struct mcp_transport *transport = call->transport;
        void *owner = call->owner;
        call_free(call);
        transport->answer(owner, http, text, len);
}

/* Takes the reference. */
static void finish_with_json(struct mcp_call *call, unsigned http, json_t *message)
{
        size_t len;
        char *text = rpc_line(message, &len);
        finish_with(call, http, text, len);
}

void mcp_finish(struct mcp_call *call)
{
        finish_with(call, MHD_HTTP_OK, NULL, 0);
}

/* ---- answers ---- */

/* A list depends on the key of the caller. */
json_t *mcp_result_message(bool modern, json_t *id, json_t *result, bool listed)
{
        if (modern && listed) {
                json_object_set_new(result, "ttlMs", json_integer(MCP_TTL_MS));
                json_object_set_new(result, "cacheScope", json_string("private"));
        }
        if (modern) {
                json_object_set_new(result, "resultType", json_string("complete"));
                json_object_set_new(result, "_meta", json_pack("{s:o}", MCP_META "serverInfo", mcp_server_info()));
        }
        return rpc_result(id, result);
}

void mcp_answer(struct mcp_call *call, json_t *result)
{
        finish_with_json(call, MHD_HTTP_OK, mcp_result_message(mcp_is_modern(call), call->id, result, false));
}

void mcp_answer_list(struct mcp_call *call, json_t *result)
{
        finish_with_json(call, MHD_HTTP_OK, mcp_result_message(mcp_is_modern(call), call->id, result, true));
}

void mcp_answer_text(struct mcp_call *call, char *text, size_t len)
{
        finish_with(call, MHD_HTTP_OK, text, len);
}

static void fail_with(struct mcp_call *call, unsigned http, int64_t code, json_t *data, const char *fmt, va_list args)
{
        char text[800];
        vsnprintf(text, sizeof text, fmt, args);
        finish_with_json(call, mcp_is_modern(call) ? http : MHD_HTTP_OK, rpc_error(call->id, code, text, data));
}

void mcp_fail(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        fail_with(call, code == RPC_METHOD_NOT_FOUND ? MHD_HTTP_NOT_FOUND : MHD_HTTP_OK, code, data, fmt, args);
        va_end(args);
}

void mcp_refuse(struct mcp_call *call, int64_t code, json_t *data, const char *fmt, ...)
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

/* Whether the client asked for log messages of this level. */
static bool wants_log(const struct mcp_call *call, const char *level)
{
        int least =
                call->session ? (call->session->level < 0 ? mcp_level_of("info") : call->session->level) : call->level;
        return least >= 0 && mcp_level_of(level) >= least;
}

/*
 * Send progress, if the client asked for progress; at most one notification in MCP_NOTE_US.  The number of progress has
 * to grow, and the end is unknown: so the number is the time.
 */
static void send_progress(struct mcp_call *call, const char *message)
{
        uint64_t now = clock_us();
        if (!call->token || (call->noted_us && now - call->noted_us < MCP_NOTE_US))
                return;
        call->noted_us = now;
        mcp_note(call, "notifications/progress",
                json_pack("{s:O, s:f, s:s}", "progressToken", call->token, "progress",
                        (double)(now - call->begun_us + 1) / 1e6, "message", message));
}

/* ---- the request to a route ---- */

static bool begins(const char *text, size_t len, const char *with)
{
        return len > strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static void take_start(struct mcp_call *call, const char *text, size_t len)
{
        json_t *event = model_read(text, len, 0, NULL);
        const char *id = json_string_value(json_object_get(event, "id"));
        if (id)
                call->run = arena_text(&call->arena, "/v1/runs/%s", id);
        send_progress(call, "started");
        json_decref(event);
}

/* The output of a program, of at most one read of a pipe. */
static void take_output(struct mcp_call *call, const char *level, const char *logger, const char *text, size_t len)
{
        send_progress(call, "running");
        if (!wants_log(call, level))
                return;
        json_t *event = model_read(text, len, JSON_ALLOW_NUL, NULL), *printed = json_object_get(event, "text");
        if (printed)
                mcp_note(call, "notifications/message",
                        json_pack("{s:s, s:s, s:O}", "level", level, "logger", logger, "data", printed));
        json_decref(event);
}

/* Each line begins with the type of its event.  The last event may be long: content.c reads its record.  True: kept. */
static bool take_line(struct mcp_call *call, const char *text, size_t len)
{
        call->has_record = begins(text, len, MCP_END_BEGIN "{");
        if (begins(text, len, "{\"type\":\"start\""))
                take_start(call, text, len);
        else if (begins(text, len, "{\"type\":\"stdout\""))
                take_output(call, "info", "stdout", text, len);
        else if (begins(text, len, "{\"type\":\"stderr\""))
                take_output(call, "warning", "stderr", text, len);
        else if (len && !begins(text, len, MCP_END_BEGIN))
                send_progress(call, "running");
        return call->has_record;
}

static void on_begun(void *owner, unsigned status, const char *type)
{
        struct mcp_call *call = owner;
        call->status = status;
        call->type = arena_text(&call->arena, "%s", type);
        call->lines = strcmp(type, "application/x-ndjson") == 0;
}

/* Events are taken line by line; all other bytes are kept.  `from`: start of the bytes not searched yet. */
static void take_lines(struct mcp_call *call, size_t from)
{
        struct buf *answer = &call->answer;
        size_t begin = 0;
        for (char *end; (end = memchr(answer->bytes + from, '\n', answer->len - from));) {
                from = (size_t)(end - answer->bytes) + 1;
                if (take_line(call, answer->bytes + begin, from - 1 - begin)) {
                        answer->len = from - 1;
                        break;
                }
                begin = from;
        }
        if (begin)
                memmove(answer->bytes, answer->bytes + begin, answer->len - begin);
        answer->len -= begin;
}

static void on_bytes(void *owner, const char *bytes, size_t len)
{
        struct mcp_call *call = owner;
        size_t from = call->answer.len;
        if (call->has_record)
                return;
        if (!buf_add(&call->answer, bytes, len)) {
                call->too_long = true;
                http_internal_forget(call->asked);
                call->asked = NULL;
                call->status = MHD_HTTP_CONTENT_TOO_LARGE;
                call->answered(call);
                return;
        }
        if (call->lines)
                take_lines(call, from);
}

static void on_over(void *owner, bool whole)
{
        struct mcp_call *call = owner;
        call->asked = NULL;
        if (!whole)
                call->status = 0;
        call->answered(call);
}

void mcp_ask(struct mcp_call *call, const char *method, const char *path, const struct pair *query, size_t query_n,
        char *body, size_t body_len, bool lines, void (*answered)(struct mcp_call *call))
{
        static const struct http_internal inner = { on_begun, on_bytes, on_over };
        struct pair headers[] = { { (char *)(uintptr_t) "Accept",
                (char *)(uintptr_t)(lines ? "application/x-ndjson" : "application/json") } };
        const struct http_internal_answered asked = { .method = method,
                .path = path,
                .headers = headers,
                .headers_n = 1,
                .query = query,
                .query_n = query_n,
                .body = body,
                .body_len = body_len,
                .id = call->http->id,
                .tenant = call->http->tenant,
                .key = call->http->key,
                .trace = &call->http->trace };
        call->answered = answered;
        call->answer.len = 0;
        call->has_record = call->lines = false;
        call->status = 0;
        call->asked = http_internal_request(call->service->inner, &asked, &inner, call);
}

json_t *mcp_json(const struct mcp_call *call)
{
        return call->answer.len ? model_read(call->answer.bytes, call->answer.len, JSON_ALLOW_NUL, NULL) : NULL;
}

const char *mcp_problem(struct mcp_call *call)
{
        json_t *json = call->status >= 300 && !call->too_long ? mcp_json(call) : NULL;
        const json_t *masked = json_object_get(json_object_get(json, "error"), "message"); /* of a grading */
        const char *detail = json_string_value(masked ? masked : json_object_get(json, "detail")),
                   *field = json_string_value(json_object_get(json, "field"));
        const char *text = call->too_long
                ? arena_text(&call->arena, "the answer is longer than %llu MiB", MCP_ANSWER_MAX / MIB)
                : detail ? arena_text(&call->arena, field && field[0] ? "%s (%s)" : "%s", detail, field)
                         : "the work was broken off; the daemon's log says why";
        json_decref(json);
        return text;
}
