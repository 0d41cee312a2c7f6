/*
 * Building blocks of a root file system, for mount.c and overlay.c.  Descriptors are mounts; targets are relative
 * to a mount.
 */
#ifndef SANDBOX_MOUNT_H
#define SANDBOX_MOUNT_H

#include "sandbox/sandbox.h"

#include <sys/mount.h>

#define ATTR_FILES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define ATTR_DATA (ATTR_FILES | MOUNT_ATTR_NOEXEC)

struct option {
        const char *key, *value;   /* NULL: `key` is a flag */
};

/*
 * Make a file system as a detached mount.  `options` ends with key NULL.  Returns a descriptor, owned by the
 * caller, or a negative code.  Errors: CSN_E_SYSTEM.  Source: fsopen(2), fsmount(2) (Linux 5.2).
 */
int mount_new(const char *type, const struct option *options, unsigned attrs, struct csn_error *err);
/* Attach a detached mount at `target` below dir_fd.  The descriptor stays the caller's.  Errors: CSN_E_SYSTEM. */
int mount_attach(int mount_fd, int dir_fd, const char *target, struct csn_error *err);
/* Add flags to an attached mount, and with `below` to the mounts below it.  Errors: CSN_E_SYSTEM. */
int mount_add_attrs(int mount_fd, unsigned attrs, bool below, struct csn_error *err);
/* mount_new() and mount_attach().  Errors: CSN_E_SYSTEM. */
int mount_attach_new(int root_fd, const char *type, const char *target, const struct option *options, unsigned attrs,
        struct csn_error *err);

/*
 * The template has the folder of all images here; each sandbox and each zygote covers it with a file system of its own,
 * or leaves the template.
 */
#define IMAGES_PLACE SANDBOX_HOME

/* Links of /dev, in each sandbox. */
struct dev_link {
        const char *name, *target;
};
extern const struct dev_link dev_links[];
extern const size_t dev_links_n;

/* Attach the volumes and the devices of the plan below the root of a sandbox.  Errors: CSN_E_SYSTEM. */
int grants_attach_volumes(int root_fd, const struct plan *plan, struct csn_error *err);
int grants_attach_devices(int root_fd, const struct plan *plan, struct csn_error *err);

static inline bool has_image(const struct wire_shape *shape)
{
        return shape->image_high || shape->image_low;
}

/*
 * Make an image the root of a sandbox: the tree of the image, read-only, with the template's /dev, /run, /opt/caisson
 * and files of /etc.  *ret_root belongs to the caller: a mount attached at a hidden path, ready to become the root.
 * Errors: CSN_E_SYSTEM.
 */
int image_root_build(const struct wire_shape *shape, int *ret_root, struct csn_error *err);
/* Attach a copy of a part of the template with all its mounts, at the same path below a root.  Errors: CSN_E_SYSTEM. */
int mount_attach_copy(int template_fd, int root_fd, const char *path, struct csn_error *err);

/*
 * Build the root of a sandbox with root: a private tmpfs, with an overlay of /usr over the host's /usr; in an image an
 * overlay of / over the image.
 * *ret_root belongs to the caller: a mount attached at a hidden path, with the template's /dev and /opt/caisson,
 * ready to become the root.  The caller is root of the sandbox's first user namespace and still in the template.
 *
 * Errors: CSN_E_UNSUPPORTED (no overlay in a user namespace, or a host without merged /usr), CSN_E_SYSTEM.
 */
int overlay_build(struct plan *plan, int *ret_root, struct csn_error *err);
/*
 * Set a private boot_id, once /proc is mounted: for programs inside the sandbox is a machine booted at that
 * moment.  Errors: CSN_E_SYSTEM.
 */
int overlay_boot_id(int root_fd, struct csn_error *err);

#endif
