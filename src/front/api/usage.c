/* The usage of models over HTTP. */
#include "front/api/api.h"

#include "front/views/usage_report.h"

#include <stdio.h>

/* The tenant of the question: the request's own, or for a key of an administrator ?tenant=; * is all. */
static int tenant_of(struct http_request *request, const char **ret, struct csn_error *err)
{
        const char *asked = http_query(request, "tenant");
        const struct store_key *key = service_key(request);
        *ret = request->tenant;
        if (!asked || strcmp(asked, request->tenant) == 0)
                return 0;
        if (!key || !(key->scopes & SCOPE_ADMIN))
                return err_set(err, CSN_E_DENIED, 0, "the usage of another tenant needs a key with the scope admin");
        *ret = strcmp(asked, "*") == 0 ? "" : asked;
        return 0;
}

static struct store *store_of(struct http_request *request)
{
        struct store *store = service_of(request)->store;
        struct csn_error err;
        if (!store) {
                err_field(&err, "", "usage is recorded by a daemon with a store; set engine.http");
                http_problem(request, MHD_HTTP_NOT_FOUND, &err);
        }
        return store;
}

void api_get_usage(struct http_request *request)
{
        struct store *store = store_of(request);
        const char *by = http_query(request, "by");
        struct usage_question question = { .by = by ? by : "component", .since = http_query(request, "since") };
        struct csn_error err;
        if (!store)
                return;
        json_t *answer = tenant_of(request, &question.tenant, &err) < 0 ? NULL : front_usage(store, &question, &err);
        if (answer)
                http_json(request, MHD_HTTP_OK, answer);
        else
                http_fail(request, &err);
}

void api_reset_usage(struct http_request *request)
{
        struct store *store = store_of(request);
        const char *tenant;
        struct csn_error err;
        if (!store)
                return;
        if (tenant_of(request, &tenant, &err) < 0 || usage_reset(store, tenant, &err) < 0)
                http_fail(request, &err);
        else
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}
