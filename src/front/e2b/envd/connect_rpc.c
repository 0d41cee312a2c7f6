/*
 * Connect RPC over HTTP/1.1 with its JSON codec, as spoken by E2B's clients (https://connectrpc.com/docs/protocol).
 * Errors of unary calls have an HTTP status.  Streams always have status 200, with the outcome in the last envelope.
 */
#include "front/e2b/envd/envd.h"

#include "front/service/json_body.h"
#include "front/service/parse.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- requests ---- */

#define NO_OBJECT "the message is no JSON object: "

static bool is_type(const struct http_request *request, const char *wanted)
{
        const char *type = http_header(request, "Content-Type");
        size_t len = strlen(wanted);
        return type && strncasecmp(type, wanted, len) == 0 && (!type[len] || strchr("; \t", type[len]));
}

/* An unreadable time-out is an error, and not the same as none. */
static bool has_time(const struct http_request *request)
{
        const char *timeout = http_header(request, "Connect-Timeout-Ms");
        return !timeout || (timeout[0] && strlen(timeout) <= 10 && !timeout[strspn(timeout, "0123456789")]);
}

json_t *rpc_load_stream(const char *text, size_t len, struct csn_error *err)
{
        struct csn_error why;
        size_t at = 0;
        if (rpc_unwrap(text, len, &at, &len, err) < 0)
                return NULL;
        json_t *json = len ? json_body_parse(text + at, len, JSON_REJECT_DUPLICATES, &why) : json_object();
        if (!json)
                err_field(err, "", NO_OBJECT "%s", why.text);
        return json;
}

static json_t *read_message(struct http_request *request, bool stream, struct csn_error *err)
{
        struct csn_error why;
        json_t *json = stream || request->body.len ? json_body(request, &why) : json_object();
        if (!json && stream)
                *err = why;
        else if (!json)
                err_field(err, "", NO_OBJECT "%s", why.text);
        return json;
}

json_t *rpc_body(struct http_request *request, bool stream, const struct e2b_member *members)
{
        const char *wanted = stream ? "application/connect+json" : "application/json";
        struct csn_error err;
        if (!is_type(request, wanted)) {
                http_set_header(request, "Accept-Post", wanted);
                e2b_error(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "this takes %s", wanted);
                return NULL;
        }
        if (!has_time(request)) {
                rpc_fail(request, stream, RPC_INVALID_ARGUMENT,
                        "protocol error: Connect-Timeout-Ms is \"%.40s\"; it has to be a number of milliseconds, of at most ten digits",
                        http_header(request, "Connect-Timeout-Ms"));
                return NULL;
        }
        json_t *json = read_message(request, stream, &err);
        if (!json) {
                rpc_fail(request, stream, RPC_INVALID_ARGUMENT, "%s", err.text);
        } else if (e2b_check(json, members, &err) < 0) {
                rpc_fail(request, stream, RPC_INVALID_ARGUMENT, "%s", err.text);
                json_decref(json);
                json = NULL;
        }
        return json;
}

/* ---- answers ---- */

static json_t *error_json(struct http_request *request, enum rpc_code code, const char *text)
{
        size_t len;
        const char *clean = model_utf8(&request->arena, text, strlen(text), &len);
        return json_pack("{s:s, s:s%}", "code", rpc_code_name(code), "message", clean, len);
}

void rpc_answer(struct http_request *request, json_t *json)
{
        http_json(request, MHD_HTTP_OK, json);
}

void rpc_fail(struct http_request *request, bool stream, enum rpc_code code, const char *fmt, ...)
{
        char text[600];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        if (!stream) {
                http_json(request, rpc_code_status(code), error_json(request, code, text));
                return;
        }
        rpc_begin(request);
        rpc_end(request, code, text);
}

void rpc_begin(struct http_request *request)
{
        http_stream(request, MHD_HTTP_OK, "application/connect+json");
}

static bool send_envelope(struct http_request *request, unsigned flags, json_t *json)
{
        uint8_t head[RPC_ENVELOPE];
        char *text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        size_t len = text ? strlen(text) : 0;
        rpc_wrap(flags, len, head);
        /* An envelope is sent whole or not at all; if the queue is full, the client has not read for long. */
        bool sent = text && http_queued(request) + len + sizeof head <= HTTP_STREAM_MAX &&
                http_add(request, head, sizeof head) && http_add(request, text, len);
        free(text);
        if (!sent)
                http_cut(request);
        return sent;
}

bool rpc_send(struct http_request *request, json_t *json)
{
        return send_envelope(request, 0, json);
}

void rpc_end(struct http_request *request, enum rpc_code code, const char *text)
{
        json_t *json = json_object();
        if (code)
                json_object_set_new(json, "error", error_json(request, code, text));
        request->gone = NULL;
        if (send_envelope(request, RPC_FLAG_END, json))
                http_end(request);
}
