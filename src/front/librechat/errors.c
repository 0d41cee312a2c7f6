/* Errors in the words of LibreChat. */
#include "front/librechat/librechat.h"

#include <inttypes.h>
#include <stdio.h>

#define RETRY_S 1                          /* seconds, where the limit says nothing */

/* Headers that ask for something absent, and the codes by which LibreChat tells the model not to try again. */
static const struct { const char *header, *code;
} capabilities[] = {
        { LIBRECHAT_PROFILE_HEADER, "execution_profile_mismatch" },
        { LIBRECHAT_WORKSPACE_HEADER, "stateful_workspace_unsupported" },
};

/* LibreChat reads error and retry_after_seconds of a 429 (@librechat/agents, CodeExecutor.ts). */
static json_t *problem_json(struct http_request *request, unsigned status, uint64_t retry_s, const char *text)
{
        size_t len;
        json_t *json = json_pack("{s:s}", "message", model_utf8(&request->arena, text, strlen(text), &len));
        if (status == MHD_HTTP_TOO_MANY_REQUESTS) {
                json_object_set_new(json, "error", json_string("rate_limited"));
                json_object_set_new(json, "retry_after_seconds", json_integer((json_int_t)retry_s));
        }
        return json;
}

/* The codes of errors give 422 where LibreChat's service gives 400. */
void librechat_problem(struct http_request *request, unsigned status, const struct csn_error *error)
{
        unsigned as = status == MHD_HTTP_UNPROCESSABLE_CONTENT ? MHD_HTTP_BAD_REQUEST : status;
        json_t *json = problem_json(request, as, RETRY_S, error->text);
        for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
                if (strcmp(capabilities[i].header, error->field) == 0)
                        json_object_set_new(json, "code", json_string(capabilities[i].code));
        http_json(request, as, json);
}

void librechat_fail(struct http_request *request, const struct csn_error *error)
{
        if (error->sys == ENOENT && error->code == CSN_E_INPUT)
                librechat_problem(request, MHD_HTTP_NOT_FOUND, error);
        else
                service_fail_room(request, error);
}

void librechat_busy(struct http_request *request, const struct http_limit *limit, const struct csn_error *error)
{
        char text[24];
        if (!limit->name) {
                librechat_fail(request, error);
                return;
        }
        snprintf(text, sizeof text, "%" PRIu64, limit->reset_s);
        http_set_header(request, "Retry-After", text);
        http_json(request, MHD_HTTP_TOO_MANY_REQUESTS,
                problem_json(request, MHD_HTTP_TOO_MANY_REQUESTS, limit->reset_s, error->text));
}
