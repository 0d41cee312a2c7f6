/* GET /v1/keys: the keys of all tenants, for an administrator. */
#include "front/watch/watch.h"

#include "front/service/page.h"

static json_t *time_json(int64_t ms)
{
        char text[40];
        time_print(ms, text, sizeof text);
        return ms ? json_string(text) : json_null();
}

static json_t *key_json(const struct store_key *key)
{
        return json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "id", key->id, "name", key->name, "tenant",
                key->tenant, "scopes", watch_scopes(key->scopes), "quotas", watch_quotas(key), "created_at",
                time_json(key->created_ms), "expires_at", time_json(key->expires_ms), "revoked_at",
                time_json(key->revoked_ms), "used_at", time_json(key->used_ms));
}

/* Keys are revoked and never removed, so the place of a key in the order of their begins stays. */
void watch_list_keys(struct http_request *request)
{
        struct store *store = service_of(request)->store;
        const char *tenant = http_query(request, "tenant");
        struct service_page page;
        struct store_key *keys;
        struct csn_error err;
        size_t n = 0;
        if (!store) {
                err_field(&err, "", "this daemon knows no keys, for engine.http is empty");
                http_problem(request, MHD_HTTP_NOT_FOUND, &err);
                return;
        }
        if (keys_list(store, &request->arena, &keys, &n, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        if (!service_page_begin(request, SERVICE_PAGE_MAX, "keys", &page))
                return;
        for (size_t i = n; i > 0 && !page.more; i--)
                if ((!tenant || strcmp(tenant, "*") == 0 || strcmp(tenant, keys[i - 1].tenant) == 0) &&
                        service_page_has(&page, i, 0))
                        service_page_add(&page, key_json(&keys[i - 1]));
        service_page_answer(request, &page);
}
