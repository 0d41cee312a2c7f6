/*
 * Id-mapped mounts: of a volume, and of a host tree for a sandbox with root.  Files copied up by overlayfs need an
 * owner inside, and the host's root has no id inside.  A mount with an id map replaces each owner's id.  Only a process
 * with rights over the file system itself may make such a mount: the supervisor, and no process below.
 *
 * The map is taken from a user namespace, made for this purpose by a short-lived process.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Root and system accounts of the host (login.defs(5), SYS_UID_MAX); ids of people are `nobody` inside, not `user`. */
#define HOST_IDS 1000

/* `n` ids from `uid` and from `gid` on become the ids from `first` on. */
struct id_map {
        uint32_t uid, gid, first, n;
};

static int write_map(pid_t pid, const char *file, uint32_t from, const struct id_map *ids, struct csn_error *err)
{
        char path[40], map[40];
        snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
        snprintf(map, sizeof map, "%u %u %u", from, ids->first, ids->n);
        if (io_write_file(AT_FDCWD, path, map) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "write %s", path);
        return 0;
}

static int open_map(pid_t pid, const struct id_map *ids, struct csn_error *err)
{
        char path[40];
        if (write_map(pid, "uid_map", ids->uid, ids, err) < 0 || write_map(pid, "gid_map", ids->gid, ids, err) < 0)
                return -err->code;
        snprintf(path, sizeof path, "/proc/%d/ns/user", pid);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open %s", path) : fd;
}

static int make_map(const struct id_map *ids, struct csn_error *err)
{
        struct clone_args args = { .flags = CLONE_NEWUSER };
        pid_t self = getpid(), pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
        /* The child dies with its parent, even if the parent dies before this call. */
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

/* Texts for the errors documented in mount_setattr(2). */
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

static int map_tree(int tree, const char *path, const struct id_map *ids, struct csn_error *err)
{
        auto_fd map = make_map(ids, err);
        if (map < 0)
                return map;
        /* Private: a copy of a shared mount would get the host's mounts, and the host ours. */
        struct mount_attr attr = { .attr_set =
                                           MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                .propagation = MS_PRIVATE,
                .userns_fd = (uint64_t)map };
        if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return refused(path, errno, err);
        return 0;
}

int idmap_tree(const char *path, uint32_t first, int *ret_fd, struct csn_error *err)
{
        const struct id_map ids = { .first = first, .n = HOST_IDS };
        auto_fd tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s of the host", path);
        if (map_tree(tree, path, &ids, err) < 0)
                return -err->code;
        *ret_fd = take_fd(&tree);
        return 0;
}

/*
 * The folder of images may belong to the engine's user, which has fewer rights than this process.  So no link below the
 * folder is followed, and only files of the owner of the folder get an id inside: a hard link to a file of another
 * account belongs to `nobody`.
 */
int idmap_image(int images_dir, const struct wire_shape *shape, uint32_t first, int *ret_fd, struct csn_error *err)
{
        struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
        char path[48];
        struct stat st;
        snprintf(path, sizeof path, "%016llx%016llx/tree", (unsigned long long)shape->image_high,
                (unsigned long long)shape->image_low);
        if (images_dir < 0)
                return err_set(err, CSN_E_SYSTEM, ENOENT, "open the folder of images");
        auto_fd folder = (int)syscall(SYS_openat2, images_dir, path, &how, sizeof how);
        auto_fd tree = folder < 0
                ? -1
                : open_tree(folder, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (tree < 0 || fstat(images_dir, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the image %.32s", path);
        const struct id_map ids = { .uid = st.st_uid, .gid = st.st_gid, .first = first, .n = 1 };
        if (map_tree(tree, "the folder of images", &ids, err) < 0)
                return -err->code;
        *ret_fd = take_fd(&tree);
        return 0;
}

int idmap_mount(int mount_fd, uint32_t on_disk, uint32_t first, uint32_t count, struct csn_error *err)
{
        const struct id_map ids = { .uid = on_disk, .gid = on_disk, .first = first, .n = count };
        auto_fd map = make_map(&ids, err);
        if (map < 0)
                return map;
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)map };
        if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return err_set(err, CSN_E_UNSUPPORTED, errno,
                        "volumes need mounts that map ids (Linux 5.12, and root of the host outside of a container)");
        return 0;
}
