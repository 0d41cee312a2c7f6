/*
 * Namespaces (namespaces(7), user_namespaces(7)).  The network namespace exists before (netns_pool.c).  The
 * clone3(2) of process 1 makes the others, with two exceptions: the cgroup namespace, whose root is the process's
 * cgroup at its creation, and the second user namespace, which locks the mounts of the first.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/*
 * A process without rights may map ids only with supplementary groups denied (user_namespaces(7)); a process with
 * rights denies supplementary groups where not needed.  A denial in a namespace holds in all namespaces below.
 */
enum groups { GROUPS_DENY, GROUPS_AS_ABOVE };

static int write_maps(const char *folder, enum groups groups, const char *uid_map, const char *gid_map,
        struct csn_error *err)
{
        const char *const files[][2] = { { "setgroups", "deny" }, { "uid_map", uid_map }, { "gid_map", gid_map } };
        for (size_t i = groups == GROUPS_AS_ABOVE; i < ARRAY_LEN(files); i++) {
                char path[64];
                snprintf(path, sizeof path, "%s/%s", folder, files[i][0]);
                if (io_write_file(AT_FDCWD, path, files[i][1]) < 0)
                        return err_set(err, errno == EPERM || errno == EACCES ? CSN_E_UNSUPPORTED : CSN_E_SYSTEM, errno,
                                "map ids into a user namespace (%s), "
                                "which needs CAP_SYS_ADMIN, CAP_SETUID and CAP_SETGID",
                                files[i][0]);
        }
        return 0;
}

int ns_map_outer_init(pid_t pid, const struct uid_range *uids, bool rootless, struct csn_error *err)
{
        char folder[32], uid_map[64], gid_map[64];
        snprintf(folder, sizeof folder, "/proc/%d", pid);
        /* Rootless, only our own ids may be mapped. */
        int inner = rootless ? SANDBOX_UID : 0;
        uint32_t count = rootless ? 1 : uids->count;
        snprintf(uid_map, sizeof uid_map, "%d %u %u", inner, rootless ? geteuid() : uids->first, count);
        snprintf(gid_map, sizeof gid_map, "%d %u %u", inner, rootless ? getegid() : uids->first, count);
        /* Root inside has groups. */
        return write_maps(folder, rootless ? GROUPS_DENY : GROUPS_AS_ABOVE, uid_map, gid_map, err);
}

/* Ids inside are in the order of the block, except the last id, which is `nobody`. */
static int map_block(const char *folder, uint32_t first, uint32_t last, struct csn_error *err)
{
        char map[80];
        snprintf(map, sizeof map, "0 %u %d\n%d %u 1\n", first, UID_BLOCK - 1, SANDBOX_NOBODY, last);
        return write_maps(folder, GROUPS_AS_ABOVE, map, map, err);
}

int ns_map_block(pid_t pid, uint32_t first, struct csn_error *err)
{
        char folder[32];
        snprintf(folder, sizeof folder, "/proc/%d", pid);
        return map_block(folder, first, first + UID_BLOCK - 1, err);
}

/* The owner of the namespace is the zygote's uid, so the namespace's own process may not map another uid. */
int ns_map_user(pid_t pid, uint32_t uid, struct csn_error *err)
{
        char folder[32], map[64];
        snprintf(folder, sizeof folder, "/proc/%d", pid);
        snprintf(map, sizeof map, "%d %u 1", SANDBOX_UID, uid);
        return write_maps(folder, GROUPS_DENY, map, map, err);
}

static int map_self(uint32_t outer, enum groups groups, struct csn_error *err)
{
        char map[64];
        /* /proc/self belongs to the overflow uid unless we are dumpable. */
        if (prctl(PR_SET_DUMPABLE, 1) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        snprintf(map, sizeof map, "%d %u 1", SANDBOX_UID, outer);
        return write_maps("/proc/self", groups, map, map, err);
}

/*
 * The only way out, if requested: a listening socket of this network namespace; a process outside accepts.  There is
 * no interface and no route, and no packet leaves.
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

/*
 * A socket in a file, because an abstract socket of ours would be out of reach for processes in a Landlock scope.  A
 * program removing the file loses its tools, and a program replacing the file deceives only itself.
 */
static int listen_for_tools(struct plan *plan, struct csn_error *err)
{
        const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = WIRE_TOOL_SOCKET_PATH };
        auto_fd sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (sock < 0 || bind(sock, (const struct sockaddr *)&address, sizeof address) < 0 ||
                chmod(WIRE_TOOL_SOCKET_PATH, 0666) < 0 || listen(sock, 1024) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen at %s", WIRE_TOOL_SOCKET_PATH);
        plan->tool_socket = take_fd(&sock);
        return 0;
}

int ns_child(struct plan *plan, struct csn_error *err)
{
        if (!ns_is_mapped_outside(plan) && map_self(plan->outer_init_uid, GROUPS_DENY, err) < 0)
                return -err->code;
        plan->boundary.host_uid = plan->host_uid;
        plan->boundary.ids = 1;
        if (unshare(CLONE_NEWCGROUP) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a cgroup namespace");
        plan->boundary.namespaces |= CLONE_NEWCGROUP;
        if (plan->shape.flags & WIRE_PROXY && listen_for_proxy(plan, err) < 0)
                return -err->code;
        if (plan->boundary.namespaces & CLONE_NEWNET)
                plan->boundary.network = plan->proxy >= 0 ? WIRE_NET_PROXY : WIRE_NET_OWN;
        if (sethostname(SANDBOX_HOST_NAME, strlen(SANDBOX_HOST_NAME)) == 0)
                return 0;
        if (errno != EPERM)
                return err_set(err, CSN_E_SYSTEM, errno, "set the host name");
        /* The root is the sandbox's by now, so the kind of container cannot be detected here. */
        return err_set(err, CSN_E_UNSUPPORTED, 0,
                "set the host name of a new namespace, which this container forbids: see caisson doctor");
}

/* No namespace of any kind can be made inside from here on, even with rights gained later. */
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
 * outer init share its owner's limit on the host.  A bound for each sandbox leaves a share for the others.
 */
#define INOTIFY_INSTANCES "16"
#define INOTIFY_WATCHES "8192"

static int bound_inotify(int dir_fd, struct csn_error *err)
{
        if (io_write_file(dir_fd, "max_inotify_instances", INOTIFY_INSTANCES) < 0 ||
                io_write_file(dir_fd, "max_inotify_watches", INOTIFY_WATCHES) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "bound inotify");
        return 0;
}

static int enter_inner(struct csn_error *err)
{
        return unshare(CLONE_NEWUSER) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make the inner user namespace") : 0;
}

/*
 * Mapping two ids or more needs rights in the namespace above, which we leave.  So a fork of us stays there until the
 * maps are written; no foreign code is here yet.
 */
static int enter_inner_block(struct csn_error *err)
{
        int pair[2], status;
        char go;
        if (pipe2(pair, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a pipe");
        auto_fd reading = pair[0];
        auto_fd writing = pair[1];
        pid_t pid = fork();
        if (pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork for the inner user namespace");
        if (pid == 0) {
                fd_close(&writing);
                int rc = read(reading, &go, 1) == 1 ? map_block("/proc/1", 0, SANDBOX_NOBODY, err) : -1;
                _exit(rc < 0 ? (err->sys ? err->sys : EIO) : 0);
        }
        int rc = enter_inner(err);
        if (rc == 0 && prctl(PR_SET_DUMPABLE, 1) < 0)
                rc = err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        if (rc == 0 && write(writing, "", 1) != 1)
                rc = err_set(err, CSN_E_SYSTEM, errno, "write to a pipe");
        fd_close(&writing);
        if (waitpid(pid, &status, 0) != pid)
                return err_set(err, CSN_E_SYSTEM, errno, "wait for the maps of the inner user namespace");
        if (rc == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
                rc = err_set(err, CSN_E_SYSTEM, WIFEXITED(status) ? WEXITSTATUS(status) : 0,
                        "map the ids of the inner user namespace");
        return rc;
}

static int enter_inner_self(struct csn_error *err)
{
        return enter_inner(err) < 0 ? -err->code : map_self(SANDBOX_UID, GROUPS_AS_ABOVE, err);
}

int ns_lock_child(struct plan *plan, struct csn_error *err)
{
        bool rooted = plan->shape.flags & WIRE_ROOT;
        /* The bound is per uid, and root has many uids: in this namespace all count as the inner namespace's owner. */
        if (rooted && bound_inotify(plan->sysctl_dir, err) < 0)
                return -err->code;
        if ((rooted ? enter_inner_block(err) : enter_inner_self(err)) < 0 || bound_inotify(plan->sysctl_dir, err) < 0)
                return -err->code;
        if (plan->shape.flags & WIRE_TOOL_SOCKET && listen_for_tools(plan, err) < 0)
                return -err->code;
        if (rooted)
                plan->boundary.ids = UID_BLOCK;
        int rc = close_sysctls(plan->sysctl_dir, err);
        fd_close(&plan->sysctl_dir);
        return rc;
}
