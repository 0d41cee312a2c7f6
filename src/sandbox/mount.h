/* What builds a root file system; for mount.c and overlay.c.  Descriptors are mounts, targets relative to one. */
#ifndef SANDBOX_MOUNTS_H
#define SANDBOX_MOUNTS_H

#include "sandbox/sandbox.h"

#include <sys/mount.h>

#define ATTR_FILES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define ATTR_DATA (ATTR_FILES | MOUNT_ATTR_NOEXEC)

struct option {
        const char *key, *value;   /* value NULL: a flag */
};

/* A new file system as a detached mount.  Options end with key NULL. */
int mount_new(const char *type, const struct option *options, unsigned attrs, struct csn_error *err);
int mount_attach(int mount_fd, int dir_fd, const char *target, struct csn_error *err);
/* mount_new() and mount_attach(). */
int mount_attach_new(int root_fd, const char *type, const char *target, const struct option *options, unsigned attrs, struct csn_error *err);

/*
 * The root of a sandbox with root: a tmpfs of its own with /usr laid over that of the host.  *ret_root is a mount that
 * is attached where nobody looks, with /dev and /opt/caisson of the template in it, and is to become the root.  The
 * caller is root of the sandbox' first user namespace and still in the template.
 */
int overlay_build(struct plan *plan, int *ret_root, struct csn_error *err);
/* Once /proc is there: a boot_id of the sandbox' own, for to those inside it is a machine that was started then. */
int overlay_boot_id(int root_fd, struct csn_error *err);

#endif
