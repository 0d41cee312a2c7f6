/* The settings of a container, and its reported boundary. */
#include "backend/docker/container.h"

#include "lang/lang.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>

#define HOME "/home/user"
#define SEPARATORS ", \t"
#define GUEST_PIDS 2 /* process 1, and a child being started */
#define OOM_SCORE_ADJ 500

/* ---- settings ---- */

int container_image(const struct docker_settings *settings, const char *language, char *ret, size_t size,
        struct csn_error *err)
{
        const char *list = settings->images;
        size_t len = strlen(language);
        snprintf(ret, size, "%s", settings->image);
        for (const char *at = list + strspn(list, SEPARATORS); *at; at += strspn(at, SEPARATORS)) {
                size_t entry = strcspn(at, SEPARATORS);
                const char *equals = memchr(at, '=', entry);
                if (!equals || equals == at || equals + 1 == at + entry)
                        return err_setting(err, "docker.images",
                                "docker.images has \"%.*s\"; an entry is a language, = and an image, such as python=python-data",
                                (int)min_u64(entry, 80), at);
                if ((size_t)(equals - at) == len && strncmp(at, language, len) == 0)
                        snprintf(ret, size, "%.*s", (int)(entry - len - 1), equals + 1);
                at += entry;
        }
        if (!ret[0])
                return err_setting(err, "docker.image",
                        "image_missing: no image for %.40s: name one in docker.image, or %.40s=IMAGE in docker.images",
                        language, language);
        return 0;
}

int container_check_settings(const struct docker_settings *settings, struct csn_error *err)
{
        unsigned long uid = 0, gid = 0;
        int n = 0;
        char image[256];
        if (sscanf(settings->user, "%lu:%lu%n", &uid, &gid, &n) != 2 || settings->user[n] || !uid || uid > INT32_MAX ||
                gid > INT32_MAX)
                return err_setting(err, "docker.user",
                        "docker.user is \"%.60s\"; it has to be numbers UID:GID, such as 1001:1001, and UID not 0",
                        settings->user);
        struct csn_error none;
        if (container_image(settings, "", image, sizeof image, &none) < 0 && strcmp(none.field, "docker.images") == 0)
                return *err = none, -err->code;
        return 0;
}

/* ---- the creation ---- */

static json_t *device_requests(const char *gpus)
{
        if (!gpus[0])
                return NULL;
        json_t *request = json_pack("{s:s, s:[[s]]}", "Driver", "", "Capabilities", "gpu");
        if (strcmp(gpus, "all") == 0) {
                json_object_set_new(request, "Count", json_integer(-1));
        } else if (strspn(gpus, "0123456789") == strlen(gpus)) {
                json_object_set_new(request, "Count", json_integer(strtoll(gpus, NULL, 10)));
        } else {
                json_t *ids = json_array();
                for (const char *at = gpus + strspn(gpus, SEPARATORS); *at; at += strspn(at, SEPARATORS)) {
                        size_t len = strcspn(at, SEPARATORS);
                        json_array_append_new(ids, json_stringn(at, len));
                        at += len;
                }
                json_object_set_new(request, "DeviceIDs", ids);
        }
        return json_pack("[o]", request);
}

/*
 * Docker 20.10 ignores mode= where the image has the folder with another mode, so the owner is set; podman 4.3 refuses
 * uid= and nr_inodes=, and is asked again with the mode alone.
 */
static json_t *tmpfs(const struct container *container)
{
        const struct container_key *key = &container->key;
        const char *user = container->link->settings->user;
        int uid = (int)strcspn(user, ":");
        if (container->other_tmpfs)
                return json_pack("{s:o, s:o}", HOME,
                        json_sprintf("rw,exec,nosuid,nodev,mode=1777,size=%" PRIu64, key->disk_bytes), "/tmp",
                        json_sprintf("rw,exec,nosuid,nodev,mode=1777,size=%" PRIu64, key->tmp_bytes));
        return json_pack("{s:o, s:o}", HOME,
                json_sprintf("rw,exec,nosuid,nodev,mode=0755,uid=%.*s,gid=%s,size=%" PRIu64 ",nr_inodes=%" PRIu64, uid,
                        user, user + uid + 1, key->disk_bytes, key->disk_files + 1),
                "/tmp", json_sprintf("rw,exec,nosuid,nodev,mode=1777,size=%" PRIu64, key->tmp_bytes));
}

static json_t *host_config(const struct container *container)
{
        const struct container_key *key = &container->key;
        const struct docker_settings *settings = container->link->settings;
        json_t *config = json_pack("{s:s, s:b, s:[s], s:[s], s:I, s:I, s:I, s:I, s:i, s:I, s:s, s:{s:s}, s:o}",
                "NetworkMode", "none", "ReadonlyRootfs", 1, "CapDrop", "ALL", "SecurityOpt", "no-new-privileges",
                "Memory", (json_int_t)key->memory_bytes, "MemorySwap", (json_int_t)key->memory_bytes, "NanoCpus",
                (json_int_t)key->cpu_milli * 1000000, "PidsLimit", (json_int_t)key->pids + GUEST_PIDS, "OomScoreAdj",
                OOM_SCORE_ADJ, "ShmSize", (json_int_t)key->tmp_bytes, "IpcMode", "private", "LogConfig", "Type", "none",
                "Tmpfs", tmpfs(container));
        if (settings->runtime[0])
                json_object_set_new(config, "Runtime", json_string(settings->runtime));
        if (settings->guest == docker_guest_BIND)
                json_object_set_new(config, "Mounts",
                        json_pack("[{s:s, s:s, s:s, s:b}]", "Type", "bind", "Source", backend_runner_dir(), "Target",
                                LANG_RUNNER_MOUNT, "ReadOnly", 1));
        json_t *gpus = device_requests(settings->gpus);
        if (gpus)
                json_object_set_new(config, "DeviceRequests", gpus);
        return config;
}

json_t *container_body(const struct container *container)
{
        return json_pack("{s:s, s:[s], s:[s], s:s, s:s, s:s, s:{s:s}, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:o}", "Image",
                container->key.image, "Entrypoint", LANG_RUNNER_MOUNT "/guest", "Cmd", "stream", "User",
                container->link->settings->user, "WorkingDir", "/", "Hostname", "caisson", "Labels", DOCKER_LABEL,
                docker_engine_identity(container->link->engine), "OpenStdin", 1, "StdinOnce", 1, "AttachStdin", 1,
                "AttachStdout", 1, "AttachStderr", 1, "Tty", 0, "NetworkDisabled", 1, "HostConfig",
                host_config(container));
}

/* ---- the boundary ---- */

static bool has_own(const json_t *config, const char *key)
{
        const char *mode = json_string_value(json_object_get(config, key));
        return mode && strcmp(mode, "host") != 0;
}

void container_read_report(const json_t *inspected, struct container_report *ret)
{
        const json_t *config = json_object_get(inspected, "HostConfig");
        const char *cgroup = json_string_value(json_object_get(config, "CgroupnsMode"));
        *ret = (struct container_report){ .namespaces = CLONE_NEWNS };
        ret->namespaces |= has_own(config, "PidMode") ? CLONE_NEWPID : 0;
        ret->namespaces |= has_own(config, "NetworkMode") ? CLONE_NEWNET : 0;
        ret->namespaces |= has_own(config, "IpcMode") ? CLONE_NEWIPC : 0;
        ret->namespaces |= has_own(config, "UTSMode") ? CLONE_NEWUTS : 0;
        ret->namespaces |= cgroup && strcmp(cgroup, "private") == 0 ? CLONE_NEWCGROUP : 0;
        ret->controllers |= json_integer_value(json_object_get(config, "Memory")) > 0 ? WIRE_CTL_MEMORY : 0;
        ret->controllers |= json_integer_value(json_object_get(config, "NanoCpus")) > 0 ||
                        json_integer_value(json_object_get(config, "CpuQuota")) > 0
                ? WIRE_CTL_CPU
                : 0;
        ret->controllers |= json_integer_value(json_object_get(config, "PidsLimit")) > 0 ? WIRE_CTL_PIDS : 0;
}

void container_boundary(const struct container *container, bool serves, struct wire_boundary *ret)
{
        const struct guest_facts *facts = &container->facts;
        *ret = (struct wire_boundary){
                .namespaces = container->report.namespaces | (facts->maps_ids ? CLONE_NEWUSER : 0),
                .seccomp = facts->seccomp == 2,
                .cgroup = facts->cgroup,
                /* Inside a container without a visible cgroup only the engine's report counts. */
                .controllers = facts->cgroup ? facts->controllers : container->report.controllers,
                .no_new_privs = facts->no_new_privs,
                .capabilities = facts->capabilities,
                .host_uid = facts->host_uid,
                .ids = 1,
                .network = facts->interfaces ? WIRE_NET_HOST
                        : serves             ? WIRE_NET_PROXY
                                             : WIRE_NET_OWN,
        };
}
