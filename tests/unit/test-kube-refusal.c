/* Refusals of the API server, with its own messages, in words. */
#include "gateway/kube/api.h"

#include "tap.h"

#define RBAC "pods is forbidden: User \"system:serviceaccount:w:gw\" cannot create resource \"pods\" in API group \"\" in the namespace \"w\""
#define RBAC_LEASE "leases.coordination.k8s.io \"p\" is forbidden: User \"u\" cannot get resource \"leases\" in API group \"coordination.k8s.io\" in the namespace \"w\""
#define QUOTA "pods \"w-2\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=2, limited: pods=2"
#define SECURITY "pods \"w-0\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false"
#define ACCOUNT "pods \"w-0\" is forbidden: error looking up service account w/x: serviceaccount \"x\" not found"
#define ENDS "pods \"w-0\" is forbidden: unable to create new content in namespace w because it is being terminated"

static void each_refusal_names_its_remedy(void)
{
        static const struct {
                const char *method, *path;
                long status;
                const char *reason, *message;
                enum kube_refusal wanted;
                const char *words[3];
        } rows[] = {
                { "POST", "pods", 201, "", "", KUBE_DONE, { "" } },
                { "GET", "pods", 0, "", "Connection refused", KUBE_UNREACHABLE,
                        { "https://api", "Connection refused" } },
                { "GET", "pods", 401, "Unauthorized", "Unauthorized", KUBE_TOKEN_REFUSED,
                        { "kubernetes.token_file", "/t" } },
                { "POST", "pods", 403, "Forbidden", RBAC, KUBE_RIGHTS_MISSING,
                        { "may not create pods", "Role", "namespace w" } },
                { "GET", "leases/p", 403, "Forbidden", RBAC_LEASE, KUBE_RIGHTS_MISSING,
                        { "may not get leases", "coordination.k8s.io", "update" } },
                { "POST", "pods", 403, "Forbidden", QUOTA, KUBE_QUOTA_REACHED,
                        { "quota", "kubernetes.pool_max", "pods=2" } },
                { "POST", "pods", 403, "Forbidden", SECURITY, KUBE_POD_REFUSED,
                        { "Pod Security", "kubernetes.run_as_user" } },
                { "POST", "pods", 403, "Forbidden", ACCOUNT, KUBE_POD_REFUSED, { "kubernetes.service_account" } },
                { "POST", "pods", 403, "Forbidden", ENDS, KUBE_NAMESPACE_MISSING,
                        { "kubernetes.namespace", "deleted" } },
                { "POST", "pods", 404, "NotFound", "namespaces \"w\" not found", KUBE_NAMESPACE_MISSING,
                        { "kubernetes.namespace" } },
                { "DELETE", "pods/w-0", 404, "NotFound", "pods \"w-0\" not found", KUBE_NOT_FOUND, { "pods/w-0" } },
                { "POST", "pods", 409, "AlreadyExists", "pods \"w-0\" already exists", KUBE_EXISTS,
                        { "already exists" } },
                { "DELETE", "pods/w-0", 409, "Conflict", "the UID in the precondition", KUBE_CONFLICT,
                        { "precondition" } },
                { "GET", "pods", 410, "Expired", "too old resource version", KUBE_EXPIRED, { "too old" } },
                { "POST", "pods", 422, "Invalid", "spec.containers[0].image: Required value", KUBE_INVALID,
                        { "kubernetes.template_file", "image" } },
                { "POST", "pods", 400, "BadRequest", "strict decoding error: unknown field \"spec.x\"", KUBE_INVALID,
                        { "kubernetes.template_file", "spec.x" } },
                { "GET", "pods", 429, "TooManyRequests", "later", KUBE_BUSY, { "429" } },
                { "GET", "pods", 500, "InternalError", "etcd", KUBE_FAILED, { "500", "etcd" } },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct csn_error err = { 0 };
                struct kube_question question = { .url = "https://api",
                        .namespace = "w",
                        .token_file = "/t",
                        .method = rows[i].method,
                        .path = rows[i].path };
                enum kube_refusal found =
                        kube_explain(&question, rows[i].status, rows[i].reason, rows[i].message, &err);
                bool good = found == rows[i].wanted;
                for (size_t k = 0; k < 3 && rows[i].words[k]; k++)
                        good = good && strstr(err.text, rows[i].words[k]);
                if (!good)
                        printf("# row %zu: %d %s\n", i, found, err.text);
                CHECK(good);
        }
}

static void addresses_and_files_are_checked(void)
{
        static const struct {
                const char *url, *token, *namespace, *words;
        } rows[] = {
                { "http://10.0.0.1:80", "", "w", "has to be https" },
                { "http://127.0.0.1.evil.example", "", "w", "has to be https" },
                { "http://localhost.evil.example", "", "w", "has to be https" },
                { "ftp://127.0.0.1", "", "w", "kubernetes.api_url" },
                { "http://user:hunter2@127.0.0.1", "", "w", "kubernetes.token_file" },
                { "", "", "w", "KUBERNETES_SERVICE_HOST" },
                { "https://127.0.0.1", "", "w", "kubernetes.token_file" },
                { "https://127.0.0.1", "/none/token", "w", "/none/token" },
                { "http://127.0.0.1:1", "/none/token", "", "/none/namespace" },
                { "http://127.0.0.1:1", "", "A/b", "kubernetes.namespace" },
        };
        struct csn_error err;
        struct kube_times times = { .token_ms = 1000 };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct kube_api api;
                struct settings settings = { .kubernetes = { .api_url = (char *)rows[i].url,
                                                     .token_file = (char *)rows[i].token,
                                                     .ca_file = "",
                                                     .namespace = (char *)rows[i].namespace } };
                err.text[0] = 0;
                bool good = kube_api_open(&api, NULL, NULL, &settings, &times, &err) < 0 && err.code == CSN_E_CONFIG &&
                        strstr(err.text, rows[i].words) && !strstr(err.text, "hunter2");
                if (!good)
                        printf("# row %zu: %s\n", i, err.text);
                CHECK(good);
        }
        static const char *const loopback[] = { "http://127.0.0.1:8001", "http://127.9.9.9/", "http://[::1]:1/k8s",
                "http://localhost" };
        for (size_t i = 0; i < ARRAY_LEN(loopback); i++) {
                struct kube_api api;
                struct settings settings = { .kubernetes = { .api_url = (char *)loopback[i],
                                                     .token_file = "",
                                                     .ca_file = "",
                                                     .namespace = "w" } };
                CHECK(kube_api_open(&api, NULL, NULL, &settings, &times, &err) == 0);
                kube_api_close(&api);
        }
}

static void the_pods_own_server_is_found(void)
{
        struct csn_error err;
        struct kube_api api;
        struct kube_times times = { .token_ms = 1000 };
        char path[] = "/tmp/caisson-kube-token-XXXXXX";
        int fd = mkstemp(path);
        CHECK(fd >= 0 && write(fd, "abc\n", 4) == 4 && close(fd) == 0);
        struct settings settings = { .kubernetes = {
                                             .api_url = "", .token_file = path, .ca_file = "", .namespace = "w" } };
        setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
        setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
        CHECK(kube_api_open(&api, NULL, NULL, &settings, &times, &err) == 0);
        CHECK(strcmp(api.url, "https://[fd00::1]:6443") == 0 && strcmp(api.token, "abc") == 0);
        CHECK(truncate(path, 0) == 0);
        kube_api_renew_token(&api);
        CHECK(strcmp(api.token, "abc") == 0);
        kube_api_close(&api);
        unlink(path);
}

int main(void)
{
        log_set_level(LOG_ERROR);
        RUN(each_refusal_names_its_remedy);
        RUN(addresses_and_files_are_checked);
        RUN(the_pods_own_server_is_found);
        return tap_done();
}
