/*
 * Used by all fronts and by the service's other files: the service of a request, its key, the limits of its
 * tenant, and whether any job goes on.
 */
#include "front/service/service.h"

#include "front/service/parse.h"

#include <unistd.h>

struct service *service_of(const struct http_request *request)
{
        return http_owner(request);
}

const struct store_key *service_key(const struct http_request *request)
{
        return request->key;
}

/* As in service_admit(): without a key a user of this host has all rights if he is root or the daemon's user. */
bool service_is_admin(const struct http_request *request)
{
        const struct service *service = service_of(request);
        const struct store_key *key = service_key(request);
        uid_t uid;
        if (key)
                return key->scopes & SCOPE_ADMIN;
        if (service->local && request->http == service->local)
                return http_peer(request, &uid) && (uid == 0 || uid == geteuid());
        return service->settings->engine.http_keyless;
}

int service_asked_tenant(struct http_request *request, const char **ret, struct csn_error *err)
{
        const char *asked = http_query(request, "tenant");
        *ret = arena_text(&request->arena, "%s", request->tenant);
        if (!asked || strcmp(asked, request->tenant) == 0)
                return 0;
        if (!service_is_admin(request))
                return err_set(err, CSN_E_DENIED, 0, "tenant=%.64s: another tenant's things need a key with the scope admin",
                        asked);
        *ret = strcmp(asked, "*") == 0 ? NULL : arena_text(&request->arena, "%s", asked);
        return 0;
}

int service_draining(const struct service *service, struct csn_error *err)
{
        const struct http *http = service->http ? service->http : service->local;
        return http ? http_draining(http, err) : 0;
}

bool service_is_idle(const struct service *service)
{
        return service->live == 0 && (!service->http || http_busy(service->http) == 0) &&
               (!service->local || http_busy(service->local) == 0) && http_busy(service->inner) == 0;
}

bool service_decode(struct http_request *request, const struct object *object, struct arena *arena, void *ret)
{
        struct csn_error err;
        struct parse *parse = parse_of(request);
        if (parse && parse->error.code) {
                service_fail_room(request, &parse->error);
                return false;
        }
        if (parse) {
                parse_take(parse, arena, ret);
                return true;
        }
        const char *text = request->body.bytes ? request->body.bytes : "";
        if (model_decode_text(object, text, request->body.len, arena, ret, &err) == 0)
                return true;
        http_fail(request, &err);
        return false;
}

/* ---- limits of a tenant ---- */

struct run_quota service_quota(const struct http_request *request)
{
        const struct store_key *key = request->key;
        struct run_quota quota = { 0 };
        if (!key)
                return quota;
        quota = (struct run_quota){ .running_max = (size_t)key->running_max,
                .queued_max = (size_t)key->queued_max,
                .cpu_ms_per_day = key->cpu_ms_per_day,
                .review_budget_nanousd = key->review_budget_nanousd };
        snprintf(quota.key, sizeof quota.key, "%s", key->id);
        return quota;
}

int service_tenant_has_cpu_time(const struct service *service, const char *tenant, uint64_t cpu_ms_per_day,
                                struct http_limit *ret_limit, struct csn_error *err)
{
        uint64_t cpu_ms, bytes;
        int64_t now_ms = time_now_ms(), until_ms;
        if (!cpu_ms_per_day)
                return 0;
        if (runs_used(service->store, tenant, now_ms - SERVICE_DAY_MS, &cpu_ms, &bytes, err) < 0)
                return -err->code;
        cpu_ms += engine_unsettled_cpu_ms(service->engine, tenant);
        if (cpu_ms < cpu_ms_per_day)
                return 0;
        if (runs_used_until(service->store, tenant, now_ms - SERVICE_DAY_MS, cpu_ms_per_day, &until_ms, err) < 0)
                return -err->code;
        if (!until_ms)   /* running programs use up the rest */
                until_ms = now_ms;
        *ret_limit = (struct http_limit){ .name = QUOTA_CPU, .limit = cpu_ms_per_day, .current = cpu_ms,
                                          .reset_s = (uint64_t)(until_ms + SERVICE_DAY_MS - now_ms + 999) / 1000 };
        return err_set(err, CSN_E_BUSY, 0,
                "what ran within the last 24 hours took %llu ms of CPU time, and the key allows %llu",
                (unsigned long long)cpu_ms, (unsigned long long)cpu_ms_per_day);
}

int service_has_cpu_time(const struct http_request *request, struct http_limit *ret_limit, struct csn_error *err)
{
        const struct store_key *key = request->key;
        return key ? service_tenant_has_cpu_time(service_of(request), key->tenant, key->cpu_ms_per_day, ret_limit,
                                                 err) : 0;
}

struct store_room service_room(const struct http_request *request)
{
        const struct engine_settings *settings = &service_of(request)->settings->engine;
        const struct store_key *key = service_key(request);
        return (struct store_room){ .file_max = settings->file_bytes_max,
                .tenant_max = key ? key->stored_bytes : 0,
                .all_max = settings->files_bytes_max };
}

/*
 * 413 for a file too large at any time.  A lack of room at the moment is not the fault of the request (RFC 4918, 11.5):
 * 507.
 */
void service_fail_room(struct http_request *request, const struct csn_error *error)
{
        if (error->sys == EFBIG)
                http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, error);
        else if (error->sys == EDQUOT || error->sys == ENOSPC)
                http_problem(request, MHD_HTTP_INSUFFICIENT_STORAGE, error);
        else
                http_fail(request, error);
}
