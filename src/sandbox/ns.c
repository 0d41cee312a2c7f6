/*
 * Namespaces (namespaces(7), user_namespaces(7)).  The network namespace is there before (net.c), and the others are
 * made by the clone3(2) that makes process 1; but the cgroup namespace, which takes its root from where the process is
 * when it is made, and the second user namespace, which locks what was mounted in the first.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

static int write_maps(const char *folder, const char *uid_map, const char *gid_map, struct csn_error *err)
{
        const char *const files[][2] = { { "setgroups", "deny" }, { "uid_map", uid_map }, { "gid_map", gid_map } };
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                char path[64];
                snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
                if (io_write_file(AT_FDCWD, path, files[i][1]) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "write %s", path);
        }
        return 0;
}

int ns_map_keeper(pid_t pid, const struct uid_range *uids, bool rootless, struct csn_error *err)
{
        char folder[32], uid_map[64], gid_map[64];
        snprintf(folder, sizeof folder, "/proc/%d", pid);
        /* Rootless, the only ids that may be mapped are our own. */
        int inner = rootless ? SANDBOX_UID : 0;
        uint32_t count = rootless ? 1 : uids->count;
        snprintf(uid_map, sizeof uid_map, "%d %u %u", inner, rootless ? geteuid() : uids->first, count);
        snprintf(gid_map, sizeof gid_map, "%d %u %u", inner, rootless ? getegid() : uids->first, count);
        return write_maps(folder, uid_map, gid_map, err);
}

int ns_map_self(uint32_t outer, struct csn_error *err)
{
        char map[64];
        /* /proc/self belongs to the overflow uid unless we are dumpable. */
        if (prctl(PR_SET_DUMPABLE, 1) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        snprintf(map, sizeof map, "%d %u 1", SANDBOX_UID, outer);
        return write_maps("/proc/self", map, map, err);
}

/*
 * The only way out, where one was asked for: a socket of this network namespace on which somebody outside
 * accepts.  There is no interface, no route and no packet that leaves.
 */
static int listen_for_proxy(struct plan *plan, struct csn_error *err)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(WIRE_PROXY_PORT),
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        auto_fd sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (sock < 0 || bind(sock, (struct sockaddr *)&address, sizeof address) < 0 || listen(sock, 64) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen for the proxy");
        plan->proxy = take_fd(&sock);
        return 0;
}

int ns_child(struct plan *plan, struct csn_error *err)
{
        if (ns_map_self(plan->keeper_uid, err) < 0)
                return -err->code;
        if (unshare(CLONE_NEWCGROUP) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a cgroup namespace");
        if (plan->shape.flags & WIRE_PROXY && listen_for_proxy(plan, err) < 0)
                return -err->code;
        if (sethostname(SANDBOX_HOST_NAME, strlen(SANDBOX_HOST_NAME)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the host name");
        plan->boundary.namespaces = plan->clone_flags;
        plan->boundary.host_uid = plan->host_uid;
        return 0;
}

/* No namespace of any kind can be made inside from here on, whatever a process may gain. */
static int close_sysctls(int dir_fd, struct csn_error *err)
{
        static const char *const kinds[] = { "user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time" };
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                char file[40];
                snprintf(file, sizeof file, "max_%s_namespaces", kinds[i]);
                /* time namespaces came with Linux 5.6; a kernel can also be built without some kinds. */
                if (io_write_file(dir_fd, file, "0") < 0 && errno != ENOENT)
                        return err_set(err, CSN_E_SYSTEM, errno, "write 0 to %s", file);
        }
        return 0;
}

/*
 * inotify counts against the owner of each user namespace above (kernel/ucount.c), so all sandboxes of one
 * keeper share what the host allows its owner.  A share of it for each leaves something for the others.
 */
#define INOTIFY_INSTANCES "16"
#define INOTIFY_WATCHES "8192"

int ns_lock_child(struct plan *plan, struct csn_error *err)
{
        if (unshare(CLONE_NEWUSER) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the inner user namespace");
        if (ns_map_self(SANDBOX_UID, err) < 0)
                return -err->code;
        if (io_write_file(plan->sysctl_dir, "max_inotify_instances", INOTIFY_INSTANCES) < 0 ||
            io_write_file(plan->sysctl_dir, "max_inotify_watches", INOTIFY_WATCHES) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "bound inotify");
        int rc = close_sysctls(plan->sysctl_dir, err);
        fd_close(&plan->sysctl_dir);
        return rc;
}
