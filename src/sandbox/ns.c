/*
 * Namespaces (namespaces(7), user_namespaces(7)).  All are made by the clone3(2) that makes process 1,
 * but the cgroup namespace, which takes its root from where the process is when it is made, and the second
 * user namespace, which locks what was mounted in the first.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

int ns_map_ids(pid_t pid, uint32_t host_uid, struct csn_error *err)
{
        const char *const files[] = { "setgroups", "uid_map", "gid_map" };
        char map[64];
        snprintf(map, sizeof map, "%d %u 1", SANDBOX_UID, host_uid);
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                char path[64];
                char gid_map[64];
                snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
                /* Rootless, the only gid that may be mapped is our own (user_namespaces(7)). */
                snprintf(gid_map, sizeof gid_map, "%d %u 1", SANDBOX_UID, host_uid == geteuid() ? getegid() : host_uid);
                const char *text = i == 0 ? "deny" : i == 1 ? map : gid_map;
                if (io_write_file(AT_FDCWD, path, text) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "write %s", path);
        }
        return 0;
}

/* Programs talk to themselves over loopback; there is no other interface and no route. */
static int loopback_up(struct csn_error *err)
{
        auto_fd sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        struct ifreq lo = { .ifr_name = "lo" };
        if (sock < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socket for the loopback interface");
        lo.ifr_flags = IFF_UP | IFF_RUNNING;
        if (ioctl(sock, SIOCSIFFLAGS, &lo) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "bring up the loopback interface");
        return 0;
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
        if (unshare(CLONE_NEWCGROUP) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a cgroup namespace");
        if (loopback_up(err) < 0)
                return -err->code;
        if (plan->start.flags & WIRE_PROXY && listen_for_proxy(plan, err) < 0)
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

int ns_lock_child(struct plan *plan, struct csn_error *err)
{
        char map[64];
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the inner user namespace");
        /* /proc/self belongs to the overflow uid unless we are dumpable; privs_child() ends that again. */
        if (prctl(PR_SET_DUMPABLE, 1) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        snprintf(map, sizeof map, "%d %d 1", SANDBOX_UID, SANDBOX_UID);
        if (io_write_file(AT_FDCWD, "/proc/self/uid_map", map) < 0 || io_write_file(AT_FDCWD, "/proc/self/gid_map", map) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "map the ids of the inner user namespace");
        int rc = close_sysctls(plan->sysctl_dir, err);
        fd_close(&plan->sysctl_dir);
        return rc;
}
