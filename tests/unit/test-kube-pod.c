/* Pods of the Kubernetes API as the gateway sees them. */
#include "gateway/kube/kube.h"

#include "tap.h"

#define HEAD "{\"metadata\":{\"name\":\"w-0\",\"uid\":\"0b1c\",\"resourceVersion\":\"7\""
#define SPEC "},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"worker\"},{\"name\":\"a-sidecar\"}]},\"status\":{"

static bool read_pod(const char *text, struct kube_pod *ret)
{
        json_t *object = json_loads(text, 0, NULL);
        bool good = object && kube_pod_read(object, ret);
        if (!object)
                printf("# no JSON: %s\n", text);
        json_decref(object);
        return good;
}

static void a_running_pod_has_all_members(void)
{
        struct kube_pod pod;
        CHECK(read_pod(HEAD ",\"creationTimestamp\":\"2026-11-29T10:00:00Z\",\"annotations\":{\"caisson.dev/template\":\"abc\","
                            "\"caisson.dev/cordoned\":\"roll 2026-11-29T10:00:00.000Z\"}" SPEC
                            "\"phase\":\"Running\",\"podIP\":\"10.1.2.3\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},"
                            "{\"type\":\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"name\":\"a-sidecar\",\"restartCount\":9},"
                            "{\"name\":\"worker\",\"restartCount\":2,\"lastState\":{\"terminated\":{\"reason\":\"OOMKilled\","
                            "\"exitCode\":137}},\"state\":{\"running\":{}}}]}}",
                &pod));
        CHECK(strcmp(pod.name, "w-0") == 0 && strcmp(pod.uid, "0b1c") == 0 && strcmp(pod.resource_version, "7") == 0);
        CHECK(strcmp(pod.phase, "Running") == 0 && strcmp(pod.ip, "10.1.2.3") == 0 && strcmp(pod.node, "n1") == 0);
        CHECK(strcmp(pod.template_hash, "abc") == 0 && pod.cordoned && strncmp(pod.cordon, "roll ", 5) == 0);
        CHECK(pod.ready && !pod.deleting && pod.restarts == 2 && strcmp(pod.restart_reason, "OOMKilled") == 0);
        CHECK(pod.created_ms == 1795946400000 && !pod.reason[0] && !pod.waiting[0]);
}

static void a_pod_without_a_usable_name_is_refused(void)
{
        static const char *const texts[] = { "{}", "[]", "{\"metadata\":{\"name\":\"a\"}}", "{\"metadata\":{\"uid\":\"b\"}}",
                "{\"metadata\":{\"name\":\"../a\",\"uid\":\"b\"}}", "{\"metadata\":{\"name\":\"a/b\",\"uid\":\"b\"}}",
                "{\"metadata\":{\"name\":\"\",\"uid\":\"b\"}}", "{\"metadata\":{\"name\":\"A\",\"uid\":\"b\"}}",
                "{\"metadata\":{\"name\":5,\"uid\":\"b\"}}", "{\"metadata\":[]}" };
        struct kube_pod pod;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                CHECK(!read_pod(texts[i], &pod));
}

static void an_address_has_to_be_one(void)
{
        static const struct {
                const char *ip, *wanted;
        } rows[] = { { "10.0.0.1", "10.0.0.1" }, { "fd00::1", "fd00::1" }, { "evil.example", "" }, { "10.0.0.1/", "" },
                { "", "" } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                char text[400];
                struct kube_pod pod;
                snprintf(text, sizeof text, HEAD SPEC "\"podIP\":\"%s\"}}", rows[i].ip);
                CHECK(read_pod(text, &pod) && strcmp(pod.ip, rows[i].wanted) == 0);
        }
}

static void the_end_of_a_pod_has_a_reason(void)
{
        static const struct {
                const char *deleted, *status, *wanted;
        } rows[] = {
                { "", "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"containerStatuses\":[{\"name\":\"worker\",\"state\":"
                      "{\"terminated\":{\"reason\":\"Error\"}}}]", "Evicted" },
                { "", "\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"worker\",\"state\":{\"terminated\":"
                      "{\"reason\":\"OOMKilled\"}}}]", "OOMKilled" },
                { "", "\"phase\":\"Failed\"", "Error" },
                { "", "\"phase\":\"Succeeded\",\"containerStatuses\":[{\"name\":\"worker\",\"state\":{\"terminated\":"
                      "{\"reason\":\"Completed\"}}}]", "" },
                { "", "\"phase\":\"Running\",\"reason\":\"NodeLost\"", "NodeLost" },
                { "", "\"phase\":\"Failed\",\"reason\":\"NodeShutdown\"", "Evicted" },
                { "", "\"phase\":\"Failed\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"
                      "\"DeletionByTaintManager\"}]", "NodeLost" },
                { "", "\"phase\":\"Running\",\"conditions\":[{\"type\":\"DisruptionTarget\",\"status\":\"True\",\"reason\":"
                      "\"EvictionByEvictionAPI\"}]", "Evicted" },
                { ",\"deletionTimestamp\":\"2026-11-29T10:00:00Z\"", "\"phase\":\"Running\",\"containerStatuses\":[{\"name\":"
                      "\"worker\",\"state\":{\"terminated\":{\"reason\":\"Error\"}}}]", "" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                char text[1000];
                struct kube_pod pod;
                snprintf(text, sizeof text, HEAD "%s" SPEC "%s}}", rows[i].deleted, rows[i].status);
                CHECK(read_pod(text, &pod) && strcmp(pod.reason, rows[i].wanted) == 0);
                CHECK(pod.deleting == (rows[i].deleted[0] != 0));
        }
}

static void a_pod_that_cannot_start_tells_why(void)
{
        static const struct {
                const char *status, *reason, *text;
        } rows[] = {
                { "\"containerStatuses\":[{\"name\":\"worker\",\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":"
                  "\"Back-off pulling\"}}}]", "ImagePullBackOff", "Back-off pulling" },
                { "\"containerStatuses\":[{\"name\":\"worker\",\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]", "", "" },
                { "\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]",
                  "CrashLoopBackOff", "" },
                { "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":"
                  "\"0/3 nodes\"}]", "Unschedulable", "0/3 nodes" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                char text[1000];
                struct kube_pod pod;
                snprintf(text, sizeof text, HEAD SPEC "\"phase\":\"Pending\",%s}}", rows[i].status);
                CHECK(read_pod(text, &pod) && strcmp(pod.waiting, rows[i].reason) == 0 &&
                        strcmp(pod.waiting_text, rows[i].text) == 0);
        }
}

static void the_default_container_is_the_worker(void)
{
        struct kube_pod pod;
        CHECK(read_pod(HEAD ",\"annotations\":{\"kubectl.kubernetes.io/default-container\":\"a-sidecar\"}" SPEC
                            "\"containerStatuses\":[{\"name\":\"a-sidecar\",\"restartCount\":9},{\"name\":\"worker\","
                            "\"restartCount\":2}]}}",
                &pod));
        CHECK(pod.restarts == 9);
        CHECK(read_pod(HEAD "},\"status\":{\"containerStatuses\":[{\"name\":\"x\",\"restartCount\":3}]}}", &pod));
        CHECK(pod.restarts == 3);
}

static void wrong_types_are_missing_members(void)
{
        struct kube_pod pod;
        CHECK(read_pod(HEAD ",\"annotations\":[],\"creationTimestamp\":5,\"deletionTimestamp\":null},\"spec\":7,\"status\":"
                            "{\"phase\":{},\"podIP\":[],\"conditions\":{},\"containerStatuses\":[5,null]}}",
                &pod));
        CHECK(!pod.phase[0] && !pod.ip[0] && !pod.ready && !pod.deleting && !pod.restarts && !pod.created_ms);
}

static void the_annotation_false_is_no_cordon(void)
{
        struct kube_pod pod;
        CHECK(read_pod(HEAD ",\"annotations\":{\"caisson.dev/cordoned\":\"false\"}" SPEC "}}", &pod) && !pod.cordoned);
        CHECK(read_pod(HEAD ",\"annotations\":{\"caisson.dev/cordoned\":\"true\"}" SPEC "}}", &pod) && pod.cordoned);
}

static void times_are_of_rfc_3339(void)
{
        int64_t ms = 0;
        CHECK(kube_time_parse("1970-01-01T00:00:01Z", &ms) && ms == 1000);
        CHECK(kube_time_parse("1970-01-01T00:00:01.250000Z", &ms) && ms == 1250);
        CHECK(!kube_time_parse("1970-01-01T00:00:01", &ms) && !kube_time_parse("", &ms) &&
                !kube_time_parse("now", &ms));
}

int main(void)
{
        RUN(a_running_pod_has_all_members);
        RUN(a_pod_without_a_usable_name_is_refused);
        RUN(an_address_has_to_be_one);
        RUN(the_end_of_a_pod_has_a_reason);
        RUN(a_pod_that_cannot_start_tells_why);
        RUN(the_default_container_is_the_worker);
        RUN(wrong_types_are_missing_members);
        RUN(the_annotation_false_is_no_cordon);
        RUN(times_are_of_rfc_3339);
        return tap_done();
}
