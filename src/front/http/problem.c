/*
 * Answers in JSON: a value, or a problem (RFC 9457).  A front with a problem() of its own writes the problem instead.
 */
#include "front/http/http_private.h"

#include <inttypes.h>
#include <stdio.h>

static const char *title_of(unsigned status)
{
        const char *title = MHD_get_reason_phrase_for(status);
        return title && strcmp(title, "Unknown") != 0 ? title : status == 499 ? "Cancelled" : "Error";
}

const struct http_code http_codes[] = {
        { MHD_HTTP_UNAUTHORIZED, "unauthorized", "there is no key, or it is not valid any more" },
        { MHD_HTTP_NOT_FOUND, "not_found", "what the path names is not there, or belongs to another tenant" },
        { MHD_HTTP_METHOD_NOT_ALLOWED, "method_not_allowed",
                "the path has no such method; the header Allow has those that it has" },
        { MHD_HTTP_REQUEST_TIMEOUT, "request_timeout",
                "the head or the body came more slowly than engine.http_head_ms allows" },
        { MHD_HTTP_CONTENT_TOO_LARGE, "too_large", "the body, or a file in it, is longer than it may be at any time" },
        { 0, NULL, NULL },
};

static const char *code_of(unsigned status, const struct csn_error *error)
{
        for (const struct http_code *one = http_codes; one->code; one++)
                if (one->status == status)
                        return one->code;
        return csn_code_name(error->code);
}

static json_t *problem_of(struct http_request *request, unsigned status, const struct csn_error *error)
{
        size_t len;
        const char *detail = model_utf8(&request->arena, error->text, strlen(error->text), &len);
        const char *path = model_utf8(&request->arena, request->path, strlen(request->path), &len);
        const char *code = code_of(status, error);
        bool retryable = status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE;
        json_t *json = json_pack("{s:s+, s:s, s:i, s:s, s:s, s:s, s:s, s:b, s:s}", "type", "/problems#", code, "title",
                title_of(status), "status", (int)status, "detail", detail, "instance", path, "code", code, "message",
                detail, "retryable", retryable, "request_id", request->id);
        if (error->field[0])
                json_object_set_new(json, "field", json_string(error->field));
        return json;
}

/* Takes the reference. */
static void send_problem(struct http_request *request, unsigned status, json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        http_answer(request, status, "application/problem+json", text, text ? strlen(text) : 0);
}

void http_problem(struct http_request *request, unsigned status, const struct csn_error *error)
{
        if (request->app && request->app->problem) {
                request->app->problem(request, status, error);
                return;
        }
        json_t *json = problem_of(request, status, error);
        if (json_is_true(json_object_get(json, "retryable")))
                http_set_header(request, "Retry-After", "1");
        send_problem(request, status, json);
}

static void set_number(struct http_request *request, const char *name, uint64_t number)
{
        char text[24];
        snprintf(text, sizeof text, "%" PRIu64, number);
        http_set_header(request, name, text);
}

void http_too_many(struct http_request *request, const struct http_limit *limit, const struct csn_error *error)
{
        uint64_t left = limit->limit > limit->current ? limit->limit - limit->current : 0;
        json_t *json = problem_of(request, MHD_HTTP_TOO_MANY_REQUESTS, error);
        json_t *more = json_pack("{s:s, s:I, s:I, s:I, s:I}", "quota", limit->name, "limit", (json_int_t)limit->limit,
                "current", (json_int_t)limit->current, "remaining", (json_int_t)left, "retry_after_s",
                (json_int_t)limit->reset_s);
        if (limit->has_runs) {
                json_object_set_new(more, "running", json_integer((json_int_t)limit->running));
                json_object_set_new(more, "queued", json_integer((json_int_t)limit->queued));
        }
        json_object_update(json, more);
        json_decref(more);
        set_number(request, "Retry-After", limit->reset_s);
        set_number(request, "RateLimit-Limit", limit->limit);
        set_number(request, "RateLimit-Remaining", left);
        set_number(request, "RateLimit-Reset", limit->reset_s);
        if (request->app->problem) {
                json_decref(json);
                request->app->problem(request, MHD_HTTP_TOO_MANY_REQUESTS, error);
                return;
        }
        send_problem(request, MHD_HTTP_TOO_MANY_REQUESTS, json);
}

void http_answer_excess(struct http_request *request, const struct csn_error *err)
{
        if (request->excess.name)
                http_too_many(request, &request->excess, err);
        else
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, err);
}

int http_refuse(struct http_request *request, unsigned status, const struct csn_error *error)
{
        request->status = status;
        return -error->code;
}

void http_fail(struct http_request *request, const struct csn_error *error)
{
        http_problem(request, (unsigned)csn_code_http(error->code), error);
}

char *http_json_text(json_t *json)
{
        char *text = model_write(json, JSON_COMPACT | JSON_ENCODE_ANY | MODEL_MEASURED);
        json_decref(json);
        return text;
}

void http_answer_json(struct http_request *request, unsigned status, char *text)
{
        struct csn_error err;
        if (text) {
                http_answer(request, status, "application/json", text, strlen(text));
                return;
        }
        err_set(&err, CSN_E_SYSTEM, 0, "the answer could not be written");
        http_fail(request, &err);
}

void http_json(struct http_request *request, unsigned status, json_t *json)
{
        http_answer_json(request, status, http_json_text(json));
}
