/* A pod of the Kubernetes API (core/v1 Pod) as struct kube_pod; see kube.h. */
#include "gateway/kube/kube.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <time.h>

static void copy_text(char *into, size_t size, const json_t *text)
{
        snprintf(into, size, "%s", json_is_string(text) ? json_string_value(text) : "");
}

static const json_t *member(const json_t *object, const char *section, const char *name)
{
        return json_object_get(json_object_get(object, section), name);
}

static bool is_text(const json_t *value, const char *text)
{
        return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

bool kube_time_parse(const char *text, int64_t *ret_ms)
{
        struct tm tm = { 0 };
        const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        int64_t ms = 0, scale = 100;
        if (!rest)
                return false;
        if (*rest == '.')
                for (rest++; *rest >= '0' && *rest <= '9'; rest++, scale /= 10)
                        ms += (*rest - '0') * scale;
        if (strcmp(rest, "Z") != 0)
                return false;
        *ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
        return true;
}

/* A name of Kubernetes (RFC 1123): safe in a path and in a label of metrics. */
static bool is_name(const char *text)
{
        size_t len = strlen(text);
        return len && len < 254 && text[0] != '.' && text[0] != '-' &&
                strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len;
}

static void read_ip(const json_t *status, struct kube_pod *pod)
{
        uint8_t address[16];
        copy_text(pod->ip, sizeof pod->ip, json_object_get(status, "podIP"));
        if (inet_pton(AF_INET, pod->ip, address) != 1 && inet_pton(AF_INET6, pod->ip, address) != 1)
                pod->ip[0] = 0;
}

/* The worker's container: the default of kubectl, else the first container.  "": no containers. */
static const char *worker_container(const json_t *object)
{
        const json_t *chosen = json_object_get(member(object, "metadata", "annotations"),
                "kubectl.kubernetes.io/default-container");
        const json_t *first = json_array_get(member(object, "spec", "containers"), 0);
        const char *name = json_string_value(chosen ? chosen : json_object_get(first, "name"));
        return name ? name : "";
}

static const json_t *worker_status(const json_t *object)
{
        const json_t *statuses = member(object, "status", "containerStatuses"), *one;
        const char *name = worker_container(object);
        size_t i;
        json_array_foreach(statuses, i, one)
                if (is_text(json_object_get(one, "name"), name))
                        return one;
        return json_array_get(statuses, 0);
}

/* Translate the API's reason of a container's end to the fleet's reason. */
static void read_end(const json_t *terminated, char *into, size_t size)
{
        copy_text(into, size, json_object_get(terminated, "reason"));
        if (strcmp(into, "Completed") == 0 || strcmp(into, "ContainerStatusUnknown") == 0)
                snprintf(into, size, "%s", into[1] == 'o' && into[2] == 'm' ? "Restarted" : "NodeLost");
}

static void read_worker(const json_t *object, struct kube_pod *pod)
{
        const json_t *status = worker_status(object);
        json_int_t restarts = json_integer_value(json_object_get(status, "restartCount"));
        pod->restarts = restarts > 0 ? (uint64_t)restarts : 0;
        read_end(member(status, "lastState", "terminated"), pod->restart_reason, sizeof pod->restart_reason);
        read_end(member(status, "state", "terminated"), pod->reason, sizeof pod->reason);
}

/* The first container with a reason to wait other than the usual start order; init containers begin first. */
static void read_waiting(const json_t *status, struct kube_pod *pod)
{
        static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };
        for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
                const json_t *one;
                size_t i;
                json_array_foreach(json_object_get(status, lists[k]), i, one)
                {
                        const json_t *waiting = member(one, "state", "waiting");
                        const json_t *reason = json_object_get(waiting, "reason");
                        if (!reason || is_text(reason, "ContainerCreating") || is_text(reason, "PodInitializing"))
                                continue;
                        copy_text(pod->waiting, sizeof pod->waiting, reason);
                        copy_text(pod->waiting_text, sizeof pod->waiting_text, json_object_get(waiting, "message"));
                        return;
                }
        }
}

/* Translate the reason of a disruption (core/v1 DisruptionTarget) to the fleet's reason. */
static const char *disruption(const char *reason)
{
        return strcmp(reason, "DeletionByTaintManager") == 0 || strcmp(reason, "DeletionByPodGC") == 0 ? "NodeLost"
                                                                                                       : "Evicted";
}

static void read_conditions(const json_t *status, struct kube_pod *pod)
{
        const json_t *one;
        size_t i;
        json_array_foreach(json_object_get(status, "conditions"), i, one)
        {
                const json_t *type = json_object_get(one, "type"), *reason = json_object_get(one, "reason");
                bool is_true = is_text(json_object_get(one, "status"), "True");
                if (is_text(type, "Ready"))
                        pod->ready = is_true;
                if (is_text(type, "DisruptionTarget") && is_true && json_is_string(reason) &&
                        strcmp(pod->reason, "OOMKilled") != 0)
                        snprintf(pod->reason, sizeof pod->reason, "%s", disruption(json_string_value(reason)));
                if (is_text(type, "PodScheduled") && !is_true && is_text(reason, "Unschedulable")) {
                        copy_text(pod->waiting, sizeof pod->waiting, reason);
                        copy_text(pod->waiting_text, sizeof pod->waiting_text, json_object_get(one, "message"));
                }
        }
}

/* A pod ended on request has no reason. */
static void settle_reason(const json_t *status, struct kube_pod *pod)
{
        char reason[sizeof pod->reason];
        copy_text(reason, sizeof reason, json_object_get(status, "reason"));
        if (strcmp(reason, "NodeLost") == 0 || strcmp(reason, "Evicted") == 0)
                snprintf(pod->reason, sizeof pod->reason, "%s", reason);
        else if (strcmp(reason, "NodeShutdown") == 0 || strcmp(reason, "Terminated") == 0)
                snprintf(pod->reason, sizeof pod->reason, "Evicted");
        else if (strcmp(pod->reason, "Restarted") == 0 ||
                (pod->deleting && strcmp(pod->reason, "Error") == 0))
                pod->reason[0] = 0;
        else if (strcmp(pod->phase, "Failed") == 0 && !pod->reason[0])
                snprintf(pod->reason, sizeof pod->reason, "Error");
}

bool kube_pod_read(const json_t *object, struct kube_pod *ret)
{
        const json_t *metadata = json_object_get(object, "metadata"), *status = json_object_get(object, "status");
        const json_t *annotations = json_object_get(metadata, "annotations");
        const char *created = json_string_value(json_object_get(metadata, "creationTimestamp"));
        *ret = (struct kube_pod){ 0 };
        copy_text(ret->name, sizeof ret->name, json_object_get(metadata, "name"));
        copy_text(ret->uid, sizeof ret->uid, json_object_get(metadata, "uid"));
        if (!is_name(ret->name) || !is_name(ret->uid))
                return false;
        copy_text(ret->resource_version, sizeof ret->resource_version, json_object_get(metadata, "resourceVersion"));
        copy_text(ret->template_hash, sizeof ret->template_hash, json_object_get(annotations, KUBE_TEMPLATE));
        copy_text(ret->cordon, sizeof ret->cordon, json_object_get(annotations, KUBE_CORDONED));
        ret->cordoned = ret->cordon[0] && strcmp(ret->cordon, "false") != 0;
        ret->deleting = json_is_string(json_object_get(metadata, "deletionTimestamp"));
        if (!created || !kube_time_parse(created, &ret->created_ms))
                ret->created_ms = 0;
        copy_text(ret->node, sizeof ret->node, member(object, "spec", "nodeName"));
        copy_text(ret->phase, sizeof ret->phase, json_object_get(status, "phase"));
        read_ip(status, ret);
        read_worker(object, ret);
        read_waiting(status, ret);
        read_conditions(status, ret);
        settle_reason(status, ret);
        return true;
}
