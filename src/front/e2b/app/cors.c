/*
 * CORS (Fetch standard) for web pages as clients.  E2B admits every page, for no page can do anything without a key, or
 * the token of a sandbox.  Caisson does the same where keys are needed.  Without keys, any page open on this host could
 * do everything its user can, so browsers get no CORS headers.
 */
#include "front/e2b/app/app.h"
#include "front/e2b/envd/envd.h"
#include "front/e2b/interpreter/interpreter.h"

#define READABLE "X-Next-Token, X-Total-Running, X-Request-Id, Retry-After, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset"
#define METHODS "GET, HEAD, POST, PUT, PATCH, DELETE"
#define LASTS_S "7200"

static void let(struct http_request *request)
{
        http_set_header(request, "Access-Control-Allow-Origin", "*");
}

/* Allows all requested headers by name: "*" never includes Authorization. */
static void answer(struct http_request *request)
{
        const char *headers = http_header(request, "Access-Control-Request-Headers");
        let(request);
        http_set_header(request, "Access-Control-Allow-Methods", METHODS);
        if (headers)
                http_set_header(request, "Access-Control-Allow-Headers", headers);
        http_set_header(request, "Access-Control-Max-Age", LASTS_S);
        e2b_no_content(request);
}

/* A preflight request has no key yet. */
static int admit(struct http_request *request, struct csn_error *err)
{
        (void)request, (void)err;
        return 0;
}

static const struct http_route routes[] = {
        { "OPTIONS", "*", "*", 0, BODY_NONE, answer, "What pages may ask.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};
static const struct http_app page_app = { .routes = routes, .slashes = true, .admit = admit };

/* A preflight request does not name the sandbox of the request to follow. */
static bool is_ours(struct http_request *request, const struct http_app *app)
{
        return app || http_is_for(request, e2b_envd_routes, false) ||
                http_is_for(request, e2b_interpreter_routes, false);
}

const struct http_app *e2b_app_for_page(const struct service *service, struct http_request *request,
                                        const struct http_app *app)
{
        if (service->settings->engine.http_keyless || !http_header(request, "Origin"))
                return app;
        if (strcmp(request->method, "OPTIONS") == 0 && http_header(request, "Access-Control-Request-Method"))
                return is_ours(request, app) ? &page_app : NULL;
        if (app) {
                let(request);
                http_set_header(request, "Access-Control-Expose-Headers", READABLE);
        }
        return app;
}
