/* New mounts by descriptor: fsopen(2), fsmount(2) and move_mount(2), Linux 5.2. */
#include "sandbox/mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

int mount_new(const char *type, const struct option *options, unsigned attrs, struct csn_error *err)
{
        auto_fd fs = fsopen(type, FSOPEN_CLOEXEC);
        if (fs < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fsopen %s", type);
        for (; options->key; options++) {
                int rc = options->value ? fsconfig(fs, FSCONFIG_SET_STRING, options->key, options->value, 0)
                                        : fsconfig(fs, FSCONFIG_SET_FLAG, options->key, NULL, 0);
                if (rc < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "%s option %s=%s", type, options->key,
                                       options->value ? options->value : "");
        }
        if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "create a %s", type);
        int mount = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
        if (mount < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "mount a %s", type);
        return mount;
}

int mount_attach(int mount_fd, int dir_fd, const char *target, struct csn_error *err)
{
        if (move_mount(mount_fd, "", dir_fd, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "attach the mount on /%s", target);
        return 0;
}

/* The copy is read-only if the template's mount is, and locked. */
int mount_attach_copy(int template_fd, int root_fd, const char *path, struct csn_error *err)
{
        auto_fd copy = open_tree(template_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
        if (copy < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "copy the mounts of /%s", path);
        return mount_attach(copy, root_fd, path, err);
}

int mount_attach_new(int root_fd, const char *type, const char *target, const struct option *options, unsigned attrs,
        struct csn_error *err)
{
        auto_fd fd = mount_new(type, options, attrs, err);
        if (fd < 0)
                return fd;
        return mount_attach(fd, root_fd, target, err);
}

/* Before Linux 5.12: remounts the mount itself, but no mounts below (there are none then). */
static int remount(int mount_fd, unsigned attrs)
{
        unsigned long flags = MS_REMOUNT | MS_BIND;
        char path[40];
        flags |= attrs & MOUNT_ATTR_RDONLY ? MS_RDONLY : 0;
        flags |= attrs & MOUNT_ATTR_NOSUID ? MS_NOSUID : 0;
        flags |= attrs & MOUNT_ATTR_NODEV ? MS_NODEV : 0;
        flags |= attrs & MOUNT_ATTR_NOEXEC ? MS_NOEXEC : 0;
        snprintf(path, sizeof path, "/proc/self/fd/%d", mount_fd);
        return mount(NULL, path, NULL, flags, NULL);
}

int mount_add_attrs(int mount_fd, unsigned attrs, bool below, struct csn_error *err)
{
        struct mount_attr attr = { .attr_set = attrs };
        int rc = mount_setattr(mount_fd, "", AT_EMPTY_PATH | (below ? AT_RECURSIVE : 0), &attr, sizeof attr);
        if (rc < 0 && errno == ENOSYS)
                rc = remount(mount_fd, attrs);
        if (rc < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the flags of a mount");
        return 0;
}
