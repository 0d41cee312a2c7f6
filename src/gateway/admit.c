/* The tenant of a request: by its key, if the gateway has the keys. */
#include "gateway/gateway_private.h"

#include "front/http/credentials.h"

#include <stdio.h>

/*
 * A request without a key, at an address reachable from this host only, must use a local host name: a web page may
 * point its own name at the address (DNS rebinding).  The worker checks the Origin, and ports of sandboxes have tokens
 * of their own.
 */
static int refuse_other_names(const struct http_request *request, struct csn_error *err)
{
        const char *host = http_header(request, "Host");
        if (target_has_sandbox_app(request) || !host || !http_is_local(request->http) ||
                credentials_is_local_name(host))
                return 0;
        return err_set(err, CSN_E_DENIED, 0,
                "without a key only the names localhost, 127.0.0.1 and [::1] are answered, not %.100s", host);
}

/* Routes between gateways and workers are not for clients: the worker trusts the gateway's claims. */
static int refuse_own_questions(const struct http_request *request, struct csn_error *err)
{
        static const char path[] = "/v1/gateway";
        if (strncmp(request->path, path, strlen(path)) != 0)
                return 0;
        return err_set(err, CSN_E_DENIED, 0, "%.100s is for gateways", request->path);
}

/* Check the scope of the gateway's own routes; the worker checks the scopes of all others. */
static int check_scope(struct http_request *request, const struct store_key *key, struct csn_error *err)
{
        char scope[KEY_SCOPES_MAX];
        if (!request->route->scope || (key->scopes & (request->route->scope | SCOPE_ADMIN)))
                return 0;
        scopes_print(request->route->scope, scope, sizeof scope);
        err_set(err, CSN_E_DENIED, 0, "this key does not allow it: it needs the scope %s", scope);
        return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
}

static int refuse_without_key(struct http_request *request, struct csn_error *err)
{
        err_set(err, CSN_E_DENIED, 0, "a key is needed: Authorization: Bearer csn_...; caisson keys create makes one");
        http_set_header(request, "WWW-Authenticate", "Bearer");
        return http_refuse(request, MHD_HTTP_UNAUTHORIZED, err);
}

/*
 * A request without a valid key is passed on without claims: the worker answers in the form of its front, and ports of
 * sandboxes have tokens of their own.
 */
int gateway_admit(struct http_request *request, struct csn_error *err)
{
        const struct gateway *gateway = gateway_of(request);
        const char *text = credentials_of(request);
        if (refuse_own_questions(request, err) < 0 || (!text && refuse_other_names(request, err) < 0))
                return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
        if (!gateway->store || (!text && !request->route->scope))
                return 0;
        if (!text)
                return refuse_without_key(request, err);
        struct store_key *key = arena_alloc(&request->arena, sizeof *key);
        if (keys_find(gateway->store, credentials_decode(request, text), &request->arena, key, err) == 0) {
                request->key = key;
                snprintf(request->tenant, sizeof request->tenant, "%s", key->tenant);
                return check_scope(request, key, err);
        }
        if (err->code == CSN_E_DENIED && target_has_sandbox_app(request))
                return 0;
        if (err->code != CSN_E_DENIED)
                return -err->code;
        http_set_header(request, "WWW-Authenticate", "Bearer");
        return http_refuse(request, MHD_HTTP_UNAUTHORIZED, err);
}

const char *gateway_identity(struct http_request *request)
{
        const char *text = request->tenant[0] ? request->tenant : credentials_of(request);
        return text ? text : "";
}

const char *gateway_credentials(struct http_request *request)
{
        static const char *const names[] = { "Authorization", "X-API-Key", "X-Auth-Token" };
        const char *head = "";
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                const char *value = http_header(request, names[i]);
                if (value && strlen(value) < KIB)
                        head = arena_text(&request->arena, "%s%s: %s\r\n", head, names[i], value);
        }
        return head;
}

size_t gateway_spread(const struct http_request *request, size_t ready)
{
        const struct store_key *key = request->key;
        uint64_t n = UINT64_MAX;
        if (!key)
                return SIZE_MAX;
        const uint64_t quotas[] = { key->running_max, key->queued_max, key->cpu_ms_per_day, key->stored_bytes,
                                    key->review_budget_nanousd };
        for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
                if (quotas[i])
                        n = min_u64(n, quotas[i]);
        return n == UINT64_MAX ? SIZE_MAX : (size_t)min_u64(n, ready);
}

const struct hop_claims *gateway_claims(struct http_request *request, size_t workers_n)
{
        const struct store_key *key = request->key;
        if (!key)
                return NULL;
        uint64_t n = workers_n ? workers_n : 1;
        struct hop_claims *claims = arena_alloc(&request->arena, sizeof *claims);
        *claims = (struct hop_claims){ .tenant = key->tenant,
                .key = arena_text(&request->arena, "%s", key->id),
                .scopes = key->scopes,
                .running_max = key->running_max / n,
                .queued_max = key->queued_max / n,
                .cpu_ms_per_day = key->cpu_ms_per_day / n,
                .stored_bytes = key->stored_bytes / n,
                .review_budget_nanousd = key->review_budget_nanousd / n };
        return claims;
}
