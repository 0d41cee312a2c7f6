/* Texts for refusals of the API server; see api.h. */
#include "gateway/kube/api.h"

#include <stdio.h>

/* The verb of RBAC for a request. */
static const char *verb_of(const struct kube_question *question)
{
        static const struct {
                const char *method, *verb;
        } verbs[] = { { "POST", "create" }, { "PUT", "update" }, { "PATCH", "patch" }, { "DELETE", "delete" } };
        for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
                if (strcmp(verbs[i].method, question->method) == 0)
                        return verbs[i].verb;
        return strchr(question->path, '/') ? "get" : "list and watch";
}

static bool is_of_leases(const struct kube_question *question)
{
        return strncmp(question->path, "leases", 6) == 0;
}

static enum kube_refusal explain_rights(const struct kube_question *question, const char *message,
        struct csn_error *err)
{
        bool leases = is_of_leases(question);
        err_set(err, CSN_E_DENIED, 0,
                "the service account of the gateway may not %s %s in the namespace %s: its Role needs %s with the verbs %s "
                "(the API server: %.250s)",
                verb_of(question), leases ? "leases" : "pods", question->namespace,
                leases ? "leases of coordination.k8s.io" : "pods",
                leases ? "get, create and update"
                       : "get, list and watch, and in the mode owned create, delete and patch",
                message);
        return KUBE_RIGHTS_MISSING;
}

static enum kube_refusal explain_forbidden(const struct kube_question *question, const char *message,
        struct csn_error *err)
{
        const char *namespace = question->namespace;
        if (strstr(message, "exceeded quota") || strstr(message, "failed quota")) {
                err_set(err, CSN_E_BUSY, 0,
                        "the quota of the namespace %s is reached: raise its ResourceQuota, or lower kubernetes.pool_max or "
                        "the sizes of pods (the API server: %.250s)", namespace, message);
                return KUBE_QUOTA_REACHED;
        }
        if (strstr(message, " cannot ") && strstr(message, " resource "))
                return explain_rights(question, message, err);
        if (strstr(message, "is being terminated")) {
                err_set(err, CSN_E_CONFIG, 0, "the namespace %s (kubernetes.namespace) is being deleted", namespace);
                return KUBE_NAMESPACE_MISSING;
        }
        const char *cause = strstr(message, "violates PodSecurity")
                ? "the Pod Security level of the namespace forbids it; see kubernetes.run_as_user and "
                  "kubernetes.seccomp_profile"
                : strstr(message, "service account") || strstr(message, "serviceaccount")
                ? "see kubernetes.service_account"
                : "an admission of the cluster forbids it";
        err_set(err, CSN_E_CONFIG, 0, "the pod is refused in the namespace %s: %s (the API server: %.300s)", namespace,
                cause, message);
        return KUBE_POD_REFUSED;
}

static enum kube_refusal explain_missing(const struct kube_question *question, const char *message,
        struct csn_error *err)
{
        if (strncmp(message, "namespaces ", 11) == 0) {
                err_set(err, CSN_E_CONFIG, 0, "there is no namespace %s (kubernetes.namespace)", question->namespace);
                return KUBE_NAMESPACE_MISSING;
        }
        err_set(err, CSN_E_SYSTEM, 0, "the API server has no %.100s: %.250s", question->path, message);
        return KUBE_NOT_FOUND;
}

static enum kube_refusal explain_invalid(const struct kube_question *question, long status, const char *message,
        struct csn_error *err)
{
        bool pod = strcmp(question->method, "POST") == 0 && !is_of_leases(question);
        err_set(err, CSN_E_CONFIG, 0, "the API server refuses %s (%ld): %.300s%s", pod ? "the pod" : "the request", status,
                message, pod ? "; the pod comes from kubernetes.template_file or from the settings kubernetes.*" : "");
        return KUBE_INVALID;
}

enum kube_refusal kube_explain(const struct kube_question *question, long status, const char *reason,
        const char *message, struct csn_error *err)
{
        if (status / 100 == 2)
                return KUBE_DONE;
        switch (status) {
        case 0:
                err_set(err, CSN_E_SYSTEM, 0, "the API server at %.200s does not answer: %.200s", question->url, message);
                return KUBE_UNREACHABLE;
        case 401:
                err_set(err, CSN_E_CONFIG, 0,
                        "the API server at %.200s refuses the token of %.200s (kubernetes.token_file): is it one of a service "
                        "account of this cluster?", question->url, question->token_file);
                return KUBE_TOKEN_REFUSED;
        case 403:
                return explain_forbidden(question, message, err);
        case 404:
                return explain_missing(question, message, err);
        case 409:
                err_set(err, CSN_E_BUSY, 0, "the API server reports a conflict: %.300s", message);
                return strcmp(reason, "AlreadyExists") == 0 ? KUBE_EXISTS : KUBE_CONFLICT;
        case 410:
                err_set(err, CSN_E_SYSTEM, 0, "the API server has forgotten the revision: %.250s", message);
                return KUBE_EXPIRED;
        case 400:
        case 415:
        case 422:
                return explain_invalid(question, status, message, err);
        case 429:
                err_set(err, CSN_E_BUSY, 0, "the API server at %.200s has too much to do (429): %.200s", question->url,
                        message);
                return KUBE_BUSY;
        default:
                err_set(err, CSN_E_SYSTEM, 0, "the API server at %.200s answers %ld %.60s: %.250s", question->url, status,
                        reason, message);
                return KUBE_FAILED;
        }
}
