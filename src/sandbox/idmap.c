/*
 * Id-mapped mounts: of a volume, and of a host tree for a sandbox with root.  Files copied up by overlayfs need an
 * owner inside, and the host's root has no id inside.  A mount with an id map replaces each owner's id.  Only a process
 * with rights over the file system itself may make such a mount: the supervisor, and no process below.
 *
 * The map is taken from a user namespace, made for this purpose by a process that ends at once.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Of the host, root and system accounts (login.defs(5), SYS_UID_MAX); people's are nobody's inside, and not `user`. */
#define HOST_IDS 1000

struct id_map {
        uint32_t on_disk, first, count;
};

static int write_map(pid_t pid, const char *file, const struct id_map *ids, struct csn_error *err)
{
        char path[40], map[40];
        snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
        snprintf(map, sizeof map, "%u %u %u", ids->on_disk, ids->first, ids->count);
        if (io_write_file(AT_FDCWD, path, map) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "write %s", path);
        return 0;
}

static int open_map(pid_t pid, const struct id_map *ids, struct csn_error *err)
{
        char path[40];
        if (write_map(pid, "uid_map", ids, err) < 0 || write_map(pid, "gid_map", ids, err) < 0)
                return -err->code;
        snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open %s", path) : fd;
}

static int make_map(const struct id_map *ids, struct csn_error *err)
{
        struct clone_args args = { .flags = CLONE_NEWUSER };
        pid_t self = getpid(), pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
        /* It goes with us, even with one of us that dies right now. */
        if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != self))
                _exit(1);
        if (pid == 0)
                for (;;)
                        pause();
        if (pid < 0)
                return err_set(err, CSN_E_UNSUPPORTED, errno, "make a user namespace for a map of ids");
        int fd = open_map(pid, ids, err);
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
                ;
        return fd;
}

/* In words, for what mount_setattr(2) documents. */
static int refused(const char *path, int sys, struct csn_error *err)
{
        return err_set(err, CSN_E_UNSUPPORTED, sys, "root inside needs the ids of %s mapped, and this host cannot: %s",
                path,
                sys == ENOSYS ? "Linux 5.19 or later is needed"
                        : sys == EINVAL
                        ? "its file system has no mapped mounts; ext4, xfs, btrfs and, from Linux 6.3 on, tmpfs have, overlayfs has not"
                        : sys == EPERM
                        ? "this process has no rights over its file system; start caissond as root of the host, and not in a container"
                        : "see mount_setattr(2)");
}

int idmap_tree(const char *path, uint32_t first, int *ret_fd, struct csn_error *err)
{
        auto_fd tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s of the host", path);
        auto_fd map = make_map(&(const struct id_map){ 0, first, HOST_IDS }, err);
        if (map < 0)
                return map;
        /* Private: a copy of a shared mount would hear of the host's mounts, and the host of ours. */
        struct mount_attr attr = { .attr_set =
                                           MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                .propagation = MS_PRIVATE,
                .userns_fd = (uint64_t)map };
        if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return refused(path, errno, err);
        *ret_fd = take_fd(&tree);
        return 0;
}

int idmap_mount(int mount_fd, uint32_t on_disk, uint32_t first, uint32_t count, struct csn_error *err)
{
        auto_fd map = make_map(&(const struct id_map){ on_disk, first, count }, err);
        if (map < 0)
                return map;
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)map };
        if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return err_set(err, CSN_E_UNSUPPORTED, errno,
                        "volumes need mounts that map ids (Linux 5.12, and root of the host outside of a container)");
        return 0;
}
