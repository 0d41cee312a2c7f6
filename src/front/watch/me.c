/* GET /v1/me: whose the request is, and what its key may do. */
#include "front/watch/watch.h"

#include "config.h"

json_t *watch_scopes(unsigned scopes)
{
        json_t *list = json_array();
        for (size_t i = 0; scope_name(i); i++)
                if (scopes & 1U << i)
                        json_array_append_new(list, json_string(scope_name(i)));
        return list;
}

json_t *watch_quotas(const struct store_key *key)
{
        char usd[40];
        json_t *json = json_pack("{s:I, s:I, s:I, s:I}", "running_max", (json_int_t)key->running_max, "queued_max",
                (json_int_t)key->queued_max, "cpu_ms_per_day", (json_int_t)key->cpu_ms_per_day, "stored_bytes",
                (json_int_t)key->stored_bytes);
        usd_print(key->review_budget_nanousd, 9, usd, sizeof usd);
        json_object_set_new(json, "review_budget_usd", key->review_budget_nanousd ? json_string(usd) : json_null());
        return json;
}

static json_t *used_json(const struct service *service, const char *tenant)
{
        struct csn_error err;
        uint64_t cpu_ms = 0, bytes = 0;
        if (!service->store ||
                runs_used(service->store, tenant, time_now_ms() - SERVICE_DAY_MS, &cpu_ms, &bytes, &err) < 0)
                return json_null();
        return json_pack("{s:I, s:I}", "cpu_ms", (json_int_t)cpu_ms, "stored_bytes", (json_int_t)bytes);
}

static json_t *may_json(const struct http_request *request)
{
        static const struct {
                const char *name;
                unsigned scopes;           /* any of these, or admin */
                bool stored;               /* needs a store */
        } rights[] = {
                { "run", SCOPE_RUN, false },
                { "grade", SCOPE_RUN, false },
                { "check", SCOPE_CHECK, false },
                { "sandboxes", SCOPE_SANDBOXES, false },
                { "contexts", SCOPE_SANDBOXES, false },
                { "layers", SCOPE_RUN, false },
                { "images", SCOPE_RUN | SCOPE_READ, false },
                { "volumes", SCOPE_FILES, true },
                { "files", SCOPE_FILES, true },
                { "tools", SCOPE_TOOLS, false },
                { "events", SCOPE_READ | SCOPE_SANDBOXES | SCOPE_METRICS, false },
                { "metrics", SCOPE_METRICS, false },
                { "audit", SCOPE_READ, true },
                { "usage", SCOPE_READ, true },
                { "keys", SCOPE_ADMIN, true },
                { "logs", SCOPE_ADMIN, false },
        };
        const struct service *service = service_of(request);
        const struct store_key *key = service_key(request);
        bool admin = service_is_admin(request);
        json_t *json = json_object();
        for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
                bool has = admin || (key ? key->scopes & rights[i].scopes : rights[i].scopes != SCOPE_ADMIN);
                json_object_set_new(json, rights[i].name, json_boolean(has && (!rights[i].stored || service->store)));
        }
        return json;
}

void watch_get_me(struct http_request *request)
{
        const struct store_key *key = service_key(request);
        json_t *json = json_pack("{s:s, s:s, s:b, s:o, s:o}", "version", VERSION, "tenant", request->tenant, "admin",
                (int)service_is_admin(request), "may", may_json(request), "used",
                used_json(service_of(request), request->tenant));
        json_object_set_new(json, "key", key ? json_pack("{s:s, s:s}", "id", key->id, "name", key->name) : json_null());
        json_object_set_new(json, "scopes", key ? watch_scopes(key->scopes) : json_null());
        json_object_set_new(json, "quotas", key ? watch_quotas(key) : json_null());
        const char *no_page = service_no_page(request);
        json_object_set_new(json, "page", no_page ? json_string(no_page) : json_null());
        http_json(request, MHD_HTTP_OK, json);
}
