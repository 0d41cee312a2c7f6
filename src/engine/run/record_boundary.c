/* The boundary of a sandbox, as records and descriptions of persistent sandboxes show it. */
#include "engine/run/run_private.h"

#include <sched.h>

#define DEGRADED_MAX 8

/* A text with static lifetime. */
static char *fixed(const char *text)
{
        return (char *)(uintptr_t)text;
}

static char **name_bits(struct arena *arena, uint64_t set, const char *const *names, const uint64_t *bits, size_t n,
        size_t *ret_n)
{
        char **texts = arena_alloc(arena, n * sizeof *texts + 1);
        *ret_n = 0;
        for (size_t i = 0; i < n; i++)
                if (set & bits[i])
                        texts[(*ret_n)++] = fixed(names[i]);
        return texts;
}

static void degrade(struct boundary *boundary, struct arena *arena, const char *text)
{
        if (!boundary->degraded)
                boundary->degraded = arena_alloc(arena, DEGRADED_MAX * sizeof *boundary->degraded);
        boundary->degraded[boundary->degraded_n++] = fixed(text);
        boundary->isolation = isolation_DEGRADED;
}

/* A backend without sockets of its own reports only what the request asked for. */
static const char *network_of(const struct launch *launch, const struct wire_boundary *fact, bool no_proxy)
{
        if (!launch->backend->has_sockets)
                return launch->backend == &backend_host           ? "host"
                        : launch->request.network == network_NONE ? "none"
                                                                  : "remote";
        if (fact->network == WIRE_NET_PROXY && !no_proxy)
                return "proxy";
        return fact->network == WIRE_NET_HOST ? "host" : "none";
}

void boundary_describe(const struct launch *launch, const struct wire_boundary *fact, bool no_proxy,
        struct arena *arena, struct boundary *ret)
{
        static const char *const kinds[] = { "user", "mount", "pid", "network", "ipc", "uts", "cgroup" };
        static const uint64_t kind_bits[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                CLONE_NEWUTS, CLONE_NEWCGROUP };
        static const char *const controllers[] = { "memory", "cpu", "pids" };
        static const uint64_t controller_bits[] = { WIRE_CTL_MEMORY, WIRE_CTL_CPU, WIRE_CTL_PIDS };
        static const char *const modes[] = { "none", "v1", "v2" };
        bool here = launch->backend == &backend_native, contained = launch->backend->isolation == isolation_CONTAINER;
        *ret = (struct boundary){ .backend = fixed(launch->backend->name), .isolation = launch->backend->isolation };
        ret->namespaces = name_bits(arena, fact->namespaces, kinds, kind_bits, ARRAY_LEN(kinds), &ret->namespaces_n);
        ret->controllers = name_bits(arena, fact->controllers, controllers, controller_bits, ARRAY_LEN(controllers),
                &ret->controllers_n);
        ret->seccomp = fact->seccomp == 1;
        ret->landlock_abi = fact->landlock_abi;
        ret->no_new_privileges = fact->no_new_privs == 1;
        if (here || contained)
                SET(ret, boundary, capabilities, fact->capabilities);
        ret->cgroup = fixed(modes[fact->cgroup < ARRAY_LEN(modes) ? fact->cgroup : 0]);
        ret->network = fixed(network_of(launch, fact, no_proxy));
        ret->host_uid = fact->host_uid;
        ret->host_uids = fact->ids;
        ret->overlay = fact->overlay == 1;
        ret->own_uid = fact->own_uid == 1;
        ret->rootless = fact->rootless == 1;
        ret->strict_proc = fact->proc_strict == 1;
        if (contained && (!fact->seccomp || !fact->no_new_privs || fact->capabilities))
                degrade(ret, arena,
                        "container: the kernel reports no seccomp filter, new privileges, or capabilities; see the other members, and "
                        "the configuration of the engine");
        if (contained && fact->controllers != WIRE_CTL_ALL)
                degrade(ret, arena, "limits: the engine did not limit memory, cpu and processes of the container");
        if (here && fact->controllers != WIRE_CTL_ALL)
                degrade(ret, arena,
                        "limits: without the controllers for memory, cpu and pids, rlimits and a poll stand in; run as root, or in a "
                        "delegated cgroup (systemd-run --user --scope -p Delegate=yes)");
        if (here && !fact->landlock_abi)
                degrade(ret, arena, "Landlock is not in force; boot with lsm=landlock,... on Linux 5.13 or later");
        if (here && fact->rootless)
                degrade(ret, arena, "one uid for all sandboxes of this user; run as root for a uid each");
}
