/* The pod of a worker; see template.h. */
#include "gateway/pool/template.h"

#include "gateway/kube/kube.h"

#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>

#define DAEMON_MEMORY (512 * MIB)          /* memory in a pod for caissond, its helpers and warm interpreters */
#define FILE_MAX_BYTES MIB
#define STATE_MOUNT "/var/lib/caisson"
#define KEY_MOUNT "/etc/caisson-gateway"
#define KEY_FILE KEY_MOUNT "/key"
#define SMALL_DISK "256Mi"                 /* of /tmp and /run */
#define SHUTDOWN_RESERVE_S 30              /* part of the grace period for the work after the last run */
#define SHUTDOWN_MAX_S 3600                /* of engine.shutdown_ms */

/* ---- labels ---- */

/* The labels of an equality-based selector, "a=b,c==d". */
static int read_labels(const char *selector, json_t *labels, struct csn_error *err)
{
        const char *at = selector;
        while (*at) {
                size_t len = strcspn(at, ","), key_len = strcspn(at, "=!,");
                const char *value = at + key_len + (at[key_len] == '=' && at[key_len + 1] == '=' ? 2 : 1);
                char key[320], text[64];
                if (at[key_len] != '=' || !key_len || key_len >= sizeof key || value > at + len ||
                        (size_t)(at + len - value) >= sizeof text || memchr(at, ' ', len) || memchr(at, '(', len))
                        return err_setting(err, "kubernetes.selector",
                                "kubernetes.selector is \"%.200s\": pods that the gateway makes get its labels, so it has "
                                "to be of the form KEY=VALUE,KEY=VALUE", selector);
                snprintf(key, sizeof key, "%.*s", (int)key_len, at);
                snprintf(text, sizeof text, "%.*s", (int)(at + len - value), value);
                json_object_set_new(labels, key, json_string(text));
                at += len + (at[len] == ',');
        }
        if (json_object_size(labels))
                return 0;
        return err_setting(err, "kubernetes.selector",
                "kubernetes.selector is empty: a label has to tell the gateway's pods from others");
}

/* ---- the built-in pod ---- */

static void add_env(json_t *env, const char *name, const char *value)
{
        json_array_append_new(env, json_pack("{s:s, s:s}", "name", name, "value", value));
}

/* The number of concurrent runs whose memory limits fit into the pod's limit, beside the daemon. */
static uint64_t slots_of(const struct settings *settings)
{
        uint64_t pod = 0, run = settings->limits.memory_bytes;
        if (!size_parse(settings->kubernetes.memory_limit, &pod) || !run)
                return 1;
        return max_u64(pod > DAEMON_MEMORY ? (pod - DAEMON_MEMORY) / run : 0, 1);
}

static json_t *environment(const struct settings *settings)
{
        static const char *const keys[] = { [gateway_keys_WORKERS] = "workers", [gateway_keys_GATEWAY] = "gateway" };
        const struct kubernetes_settings *set = &settings->kubernetes;
        json_t *env = json_array();
        char text[64], slots[24];
        uint64_t shutdown_s = set->grace > SHUTDOWN_RESERVE_S ? set->grace - SHUTDOWN_RESERVE_S : 0;
        snprintf(slots, sizeof slots, "%" PRIu64, slots_of(settings));
        snprintf(text, sizeof text, "0.0.0.0:%" PRIu64, set->port);
        add_env(env, "CAISSON_ENGINE_HTTP", text);
        add_env(env, "CAISSON_LISTEN", text);
        add_env(env, "CAISSON_ENGINE_STATE_DIR", STATE_MOUNT "/state");
        add_env(env, "CAISSON_ENGINE_RUNNING_MAX", slots);
        add_env(env, "CAISSON_ENGINE_SOCKET", "/run/caissond.sock");
        snprintf(text, sizeof text, "%" PRIu64 "s", min_u64(shutdown_s, SHUTDOWN_MAX_S));
        add_env(env, "CAISSON_ENGINE_SHUTDOWN_MS", text);
        if (set->key_secret[0]) {
                add_env(env, "CAISSON_GATEWAY_KEY_FILE", KEY_FILE);
                add_env(env, "CAISSON_GATEWAY_KEYS", keys[settings->gateway.keys]);
        }
        return env;
}

static json_t *probe(const struct kubernetes_settings *set, const char *path, int period_s, int failures)
{
        return json_pack("{s:{s:s, s:I, s:s}, s:i, s:i}", "httpGet", "path", path, "port", (json_int_t)set->port, "scheme",
                set->tls ? "HTTPS" : "HTTP", "periodSeconds", period_s, "failureThreshold", failures);
}

static json_t *seccomp(const struct kubernetes_settings *set)
{
        if (!set->seccomp_profile[0])
                return json_pack("{s:s}", "type", "RuntimeDefault");
        return json_pack("{s:s, s:s}", "type", "Localhost", "localhostProfile", set->seccomp_profile);
}

static json_t *security_of_container(const struct kubernetes_settings *set)
{
        if (set->run_as_user == 0)
                return json_pack("{s:b, s:b, s:s, s:{s:[s], s:[s,s,s,s,s,s,s,s]}}", "allowPrivilegeEscalation", 1,
                        "readOnlyRootFilesystem", 1, "procMount", "Unmasked", "capabilities", "drop", "ALL", "add",
                        "SETUID", "SETGID", "SETFCAP", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SYS_CHROOT");
        /* With the parts of /proc covered, no sandbox could mount a /proc of its own: tier C runs no program. */
        return json_pack("{s:b, s:b, s:s, s:{s:[s]}}", "allowPrivilegeEscalation", 0, "readOnlyRootFilesystem", 1,
                "procMount", "Unmasked", "capabilities", "drop", "ALL");
}

static json_t *security_of_pod(const struct kubernetes_settings *set)
{
        json_t *security = json_pack("{s:I, s:I, s:I, s:o}", "runAsUser", (json_int_t)set->run_as_user, "runAsGroup",
                (json_int_t)set->run_as_group, "fsGroup", (json_int_t)set->fs_group, "seccompProfile", seccomp(set));
        if (set->run_as_user)
                json_object_set_new(security, "runAsNonRoot", json_true());
        return security;
}

static void add_volume(json_t *volumes, json_t *mounts, const char *name, const char *path, json_t *source)
{
        json_object_set_new(source, "name", json_string(name));
        json_array_append_new(volumes, source);
        json_array_append_new(mounts, json_pack("{s:s, s:s}", "name", name, "mountPath", path));
}

/*
 * The file has the group of the pod's volumes.  A caissond started as root drops that group and reads the file again
 * later, so the file is then readable for all.
 */
static json_t *key_volume(const struct kubernetes_settings *set)
{
        return json_pack("{s:s, s:{s:s, s:i, s:[{s:s, s:s}]}}", "name", "gateway-key", "secret", "secretName",
                set->key_secret, "defaultMode", set->run_as_user ? 0440 : 0444, "items", "key", "key", "path", "key");
}

static json_t *key_mount(void)
{
        return json_pack("{s:s, s:s, s:b}", "name", "gateway-key", "mountPath", KEY_MOUNT, "readOnly", 1);
}

static json_t *built_in_container(const struct settings *settings, json_t *volumes)
{
        const struct kubernetes_settings *set = &settings->kubernetes;
        json_t *mounts = json_array();
        add_volume(volumes, mounts, "state", STATE_MOUNT,
                json_pack("{s:{s:s}}", "emptyDir", "sizeLimit", set->disk_limit));
        add_volume(volumes, mounts, "tmp", "/tmp", json_pack("{s:{s:s}}", "emptyDir", "sizeLimit", SMALL_DISK));
        add_volume(volumes, mounts, "run", "/run", json_pack("{s:{s:s}}", "emptyDir", "sizeLimit", SMALL_DISK));
        json_t *container = json_pack("{s:s, s:[{s:s, s:I}], s:o, s:o, s:o, s:o, s:o, s:o}", "name", "worker", "ports", "name",
                "http", "containerPort", (json_int_t)set->port, "env", environment(settings), "securityContext",
                security_of_container(set), "startupProbe", probe(set, "/readyz", 1, 60), "readinessProbe",
                probe(set, "/readyz", 1, 2), "livenessProbe", probe(set, "/healthz", 10, 6), "volumeMounts", mounts);
        if (set->key_secret[0]) {
                json_array_append_new(volumes, key_volume(set));
                json_array_append_new(mounts, key_mount());
                /* The image's own command creates a key at the first start; a worker of the pool needs no key. */
                json_object_set_new(container, "args", json_pack("[s]", "caissond"));
        }
        return container;
}

static json_t *built_in(const struct settings *settings, const json_t *labels)
{
        const struct kubernetes_settings *set = &settings->kubernetes;
        json_t *volumes = json_array();
        json_t *container = built_in_container(settings, volumes);
        json_t *spec = json_pack("{s:b, s:b, s:b, s:s, s:I, s:o, s:[o], s:o, s:[{s:i, s:s, s:s, s:{s:O}}]}", "hostUsers", 0,
                "automountServiceAccountToken", 0, "enableServiceLinks", 0, "restartPolicy", "Always",
                "terminationGracePeriodSeconds", (json_int_t)set->grace, "securityContext", security_of_pod(set),
                "containers", container, "volumes", volumes, "topologySpreadConstraints", "maxSkew", 1, "topologyKey",
                "kubernetes.io/hostname", "whenUnsatisfiable", "ScheduleAnyway", "labelSelector", "matchLabels", labels);
        if (set->service_account[0])
                json_object_set_new(spec, "serviceAccountName", json_string(set->service_account));
        return json_pack("{s:s, s:s, s:{}, s:o}", "apiVersion", "v1", "kind", "Pod", "metadata", "spec", spec);
}

/* ---- the pod of a file ---- */

static bool is_number(const char *text, const char *digits)
{
        const char *at = text + (*text == '-');
        return *at && strlen(at) < 18 && at[strspn(at, digits)] == 0;
}

/* A plain scalar, by the rules of YAML 1.1 as Kubernetes reads them: 0440 is octal. */
static json_t *scalar_of(const struct yaml_node *node)
{
        static const char *const words[2][3] = { { "false", "False", "FALSE" }, { "true", "True", "TRUE" } };
        const char *text = node->value;
        char *end;
        if (node->quoted)
                return json_string(text);
        for (int i = 0; i < 6; i++)
                if (strcmp(text, words[i / 3][i % 3]) == 0)
                        return json_boolean(i / 3);
        if (text[0] == '0' && is_number(text, "01234567"))
                return json_integer(strtoll(text, NULL, 8));
        if (text[0] != '0' && is_number(text, "0123456789"))
                return json_integer(strtoll(text, NULL, 10));
        if (strchr(text, '.') && is_number(text, "0123456789.")) {
                double number = strtod(text, &end);
                if (!*end)
                        return json_real(number);
        }
        return json_string(text);
}

/* Recursion is bounded by the depth limit of yaml_parse(). */
static json_t *tree_of(const struct yaml_node *node)
{
        if (node->value)
                return scalar_of(node);
        json_t *tree = node->is_list ? json_array() : json_object();
        for (const struct yaml_node *child = node->children; child; child = child->next)
                if (node->is_list)
                        json_array_append_new(tree, tree_of(child));
                else
                        json_object_set_new(tree, child->key, tree_of(child));
        return tree;
}

static int read_text(const char *path, const char *text, size_t len, json_t **ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct yaml_node root;
        json_error_t where;
        if (text[strspn(text, " \t\r\n")] == '{') {
                *ret = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
                return *ret ? 0
                            : err_setting(err, "kubernetes.template_file", "kubernetes.template_file %.200s:%d: %.200s", path,
                                      where.line, where.text);
        }
        int rc = yaml_parse(text, len, path, &arena, &root, err);
        if (rc == 0)
                *ret = tree_of(&root);
        else
                err_wrap(err, "kubernetes.template_file");
        arena_done(&arena);
        return rc;
}

static int read_file(const char *path, json_t **ret, struct csn_error *err)
{
        char *text = mem_alloc(FILE_MAX_BYTES + 1);
        ssize_t len = io_read_file(AT_FDCWD, path, text, FILE_MAX_BYTES);
        json_t *pod = NULL;
        int rc = len < 0 ? err_setting(err, "kubernetes.template_file", "kubernetes.template_file is \"%.300s\": %s", path,
                                   strerror(errno))
                         : read_text(path, text, (size_t)len, &pod, err);
        free(text);
        if (rc < 0)
                return rc;
        const json_t *kind = json_object_get(pod, "kind");
        const json_t *first = json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);
        if (!json_is_object(first) || !kind ||
                strcmp(json_string_value(kind) ? json_string_value(kind) : "", "Pod") != 0) {
                json_decref(pod);
                return err_setting(err, "kubernetes.template_file",
                        "kubernetes.template_file %.300s has no Pod with a container", path);
        }
        *ret = pod;
        return 0;
}

/* The member `name`; created if missing or no object. */
static json_t *object_in(json_t *parent, const char *name)
{
        json_t *object = json_object_get(parent, name);
        if (json_is_object(object))
                return object;
        json_object_set_new(parent, name, object = json_object());
        return object;
}

static json_t *array_in(json_t *parent, const char *name)
{
        json_t *array = json_object_get(parent, name);
        if (json_is_array(array))
                return array;
        json_object_set_new(parent, name, array = json_array());
        return array;
}

static bool has_named(const json_t *array, const char *name)
{
        const json_t *one;
        size_t i;
        json_array_foreach(array, i, one)
        {
                const char *text = json_string_value(json_object_get(one, "name"));
                if (text && strcmp(text, name) == 0)
                        return true;
        }
        return false;
}

/* Add the key of the fleet, unless the template sets a key. */
static void add_key(const struct settings *settings, json_t *spec, json_t *container)
{
        const struct kubernetes_settings *set = &settings->kubernetes;
        json_t *env = array_in(container, "env");
        if (!set->key_secret[0] || has_named(env, "CAISSON_GATEWAY_KEY_FILE") ||
                has_named(json_object_get(spec, "volumes"), "gateway-key"))
                return;
        add_env(env, "CAISSON_GATEWAY_KEY_FILE", KEY_FILE);
        if (!has_named(env, "CAISSON_GATEWAY_KEYS"))
                add_env(env, "CAISSON_GATEWAY_KEYS",
                        settings->gateway.keys == gateway_keys_GATEWAY ? "gateway" : "workers");
        json_array_append_new(array_in(spec, "volumes"), key_volume(set));
        json_array_append_new(array_in(container, "volumeMounts"), key_mount());
}

/* ---- both ---- */

static void set_default(json_t *object, const char *name, const char *value)
{
        if (value[0] && !json_object_get(object, name))
                json_object_set_new(object, name, json_string(value));
}

/* A size of the template wins over the setting; the default of a request is the limit. */
static void add_size(json_t *resources, const char *name, const char *limit, const char *request)
{
        json_t *limits = object_in(resources, "limits"), *requests = object_in(resources, "requests");
        set_default(limits, name, limit);
        set_default(requests, name, request);
        if (!json_object_get(requests, name) && json_object_get(limits, name))
                json_object_set(requests, name, json_object_get(limits, name));
}

static void add_sizes(const struct kubernetes_settings *set, json_t *container)
{
        json_t *resources = object_in(container, "resources");
        add_size(resources, "cpu", set->cpu_limit, set->cpu_request);
        add_size(resources, "memory", set->memory_limit, set->memory_request);
        add_size(resources, "ephemeral-storage", set->disk_limit, "");
}

static int add_image(const struct kubernetes_settings *set, json_t *container, struct csn_error *err)
{
        if (set->image[0])
                json_object_set_new(container, "image", json_string(set->image));
        if (json_is_string(json_object_get(container, "image")))
                return 0;
        return err_setting(err, "kubernetes.image",
                "kubernetes.image is empty: the gateway makes pods (kubernetes.mode = owned) and needs their image");
}

static void add_hash(json_t *pod)
{
        unsigned char sum[EVP_MAX_MD_SIZE];
        unsigned len = 0;
        char text[2 * EVP_MAX_MD_SIZE + 1] = "";
        char *dump = json_dumps(pod, JSON_COMPACT | JSON_SORT_KEYS);
        if (EVP_Digest(dump, strlen(dump), sum, &len, EVP_sha256(), NULL) == 1)
                hex_print(sum, len, text);
        free(dump);
        json_object_set_new(object_in(object_in(pod, "metadata"), "annotations"), KUBE_TEMPLATE, json_string(text));
}

int pool_template_new(const struct settings *settings, json_t **ret, struct csn_error *err)
{
        const struct kubernetes_settings *set = &settings->kubernetes;
        json_t *labels = json_object(), *pod = NULL;
        int rc = read_labels(set->selector, labels, err);
        if (rc == 0 && set->template_file[0])
                rc = read_file(set->template_file, &pod, err);
        else if (rc == 0)
                pod = built_in(settings, labels);
        if (rc == 0) {
                json_t *metadata = object_in(pod, "metadata"), *spec = json_object_get(pod, "spec");
                json_t *container = json_array_get(json_object_get(spec, "containers"), 0);
                json_object_del(metadata, "name");
                json_object_del(metadata, "namespace");
                json_object_update(object_in(metadata, "labels"), labels);
                set_default(object_in(metadata, "labels"), "app.kubernetes.io/managed-by", "caisson-gateway");
                add_sizes(set, container);
                if (set->template_file[0])
                        add_key(settings, spec, container);
                rc = add_image(set, container, err);
        }
        json_decref(labels);
        if (rc < 0) {
                json_decref(pod);
                return rc;
        }
        add_hash(pod);
        *ret = pod;
        return 0;
}

const char *pool_template_hash(const json_t *template)
{
        const json_t *annotations = json_object_get(json_object_get(template, "metadata"), "annotations");
        return json_string_value(json_object_get(annotations, KUBE_TEMPLATE));
}

json_t *pool_template_pod(const json_t *template, const char *name)
{
        json_t *pod = json_deep_copy(template);
        json_object_set_new(object_in(pod, "metadata"), "name", json_string(name));
        return pod;
}
