/*
 * Volumes and granted devices of a sandbox.  Both come as detached mounts from the supervisor, which alone may mount
 * the file system of a volume and sees the host's /dev.  The mounts are attached in the sandbox's first user namespace;
 * no process is left there, so no process inside can change the mounts.
 */
#include "sandbox/mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

const struct dev_link dev_links[] = {
        { "fd", "/proc/self/fd" },       { "stdin", "/proc/self/fd/0" }, { "stdout", "/proc/self/fd/1" },
        { "stderr", "/proc/self/fd/2" }, { "ptmx", "pts/ptmx" },
};
const size_t dev_links_n = ARRAY_LEN(dev_links);

/* A small file system for mount points, writable until mount_add_attrs().  The descriptor is the caller's. */
static int new_folder(int root_fd, const char *target, struct csn_error *err)
{
        static const struct option options[] = { { "size", "64k" }, { "nr_inodes", "64" }, { "mode", "0755" },
                { NULL, NULL } };
        auto_fd folder = mount_new("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
        if (folder < 0 || mount_attach(folder, root_fd, target, err) < 0)
                return -err->code;
        return take_fd(&folder);
}

int grants_attach_volumes(int root_fd, const struct plan *plan, struct csn_error *err)
{
        const struct wire_shape *shape = &plan->shape;
        if (!shape->volumes_n)
                return 0;
        auto_fd folder = new_folder(root_fd, SANDBOX_VOLUMES + 1, err);
        if (folder < 0)
                return folder;
        for (size_t i = 0; i < shape->volumes_n; i++) {
                if (mkdirat(folder, shape->volumes[i].name, 0755) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make the folder of the volume %s",
                                shape->volumes[i].name);
                if (mount_attach(plan->volumes[i], folder, shape->volumes[i].name, err) < 0)
                        return -err->code;
        }
        return mount_add_attrs(folder, MOUNT_ATTR_RDONLY | ATTR_DATA, false, err);
}

/* ---- devices ---- */

static int touch(int dir_fd, const char *name, struct csn_error *err)
{
        auto_fd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make /dev/%s", name) : 0;
}

static int attach_device(int folder, int device, const char *name, struct csn_error *err)
{
        char above[DEVICE_NAME_MAX + 1];
        const char *slash = strchr(name, '/');
        snprintf(above, sizeof above, "%.*s", slash ? (int)(slash - name) : 0, name);
        if (slash && mkdirat(folder, above, 0755) < 0 && errno != EEXIST)
                return err_set(err, CSN_E_SYSTEM, errno, "make /dev/%s", above);
        if (touch(folder, name, err) < 0)
                return -err->code;
        return mount_attach(device, folder, name, err);
}

/* Copies the mounts of the usual devices, before the new /dev covers the old. */
static int copy_usual(int root_fd, int usual[], struct csn_error *err)
{
        for (size_t i = 0; plan_devices[i]; i++) {
                char path[32];
                snprintf(path, sizeof path, "dev/%s", plan_devices[i]);
                usual[i] = open_tree(root_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
                if (usual[i] < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "copy the mount of /%s", path);
        }
        return 0;
}

static int fill_dev(int folder, const int usual[], const struct plan *plan, struct csn_error *err)
{
        if (mkdirat(folder, "pts", 0755) < 0 || mkdirat(folder, "shm", 0755) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the folders of /dev");
        for (size_t i = 0; i < dev_links_n; i++)
                if (symlinkat(dev_links[i].target, folder, dev_links[i].name) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make /dev/%s", dev_links[i].name);
        for (size_t i = 0; plan_devices[i]; i++)
                if (attach_device(folder, usual[i], plan_devices[i], err) < 0)
                        return -err->code;
        for (size_t i = 0; i < plan->devices_n; i++)
                if (attach_device(folder, plan->devices[i], plan->device_names[i], err) < 0)
                        return -err->code;
        return 0;
}

/*
 * A device needs a mount point, and /dev of the template is the same for all sandboxes.  So a sandbox with devices has
 * a /dev of its own, and the name of a device is seen by no other sandbox.
 */
int grants_attach_devices(int root_fd, const struct plan *plan, struct csn_error *err)
{
        int usual[PLAN_DEVICES];
        if (!plan->devices_n)
                return 0;
        memset(usual, 0xff, sizeof usual);
        int rc = copy_usual(root_fd, usual, err);
        auto_fd folder = rc < 0 ? -1 : new_folder(root_fd, "dev", err);
        if (rc == 0)
                rc = folder < 0 ? folder : fill_dev(folder, usual, plan, err);
        for (size_t i = 0; i < PLAN_DEVICES; i++)
                fd_close(&usual[i]);
        return rc < 0 ? rc : mount_add_attrs(folder, MOUNT_ATTR_RDONLY | ATTR_DATA, false, err);
}
