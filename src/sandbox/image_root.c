/*
 * The root file system of a sandbox in an image.
 *
 * The folder of all images is a read-only mount of the template, without set-user-ID programs and without devices.  The
 * tree of the image is a copy of this mount with the same flags, and both are locked: the template belongs to a user
 * namespace above the sandbox's own.  The caller leaves the template by pivot_root(2), so a program sees no other
 * image.
 *
 * Mount points are folders and files without links: src/images/settle.c made them at the import.
 */
#include "sandbox/mount.h"

#include <fcntl.h>
#include <stdio.h>

/* Files of /etc with the same contents in each sandbox, in any image: accounts, names, and no resolver. */
static const char *const files[] = { "passwd", "group", "nsswitch.conf", "hosts", "hostname", "resolv.conf" };

static int attach_tree(const struct wire_shape *shape, int template_fd, int *ret_root, struct csn_error *err)
{
        char path[80];
        snprintf(path, sizeof path, IMAGES_PLACE "/%016llx%016llx/tree", (unsigned long long)shape->image_high,
                (unsigned long long)shape->image_low);
        auto_fd root = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (root < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open image %016llx%016llx",
                        (unsigned long long)shape->image_high, (unsigned long long)shape->image_low);
        /* /tmp of the template is the mount point until the template goes. */
        if (mount_attach(root, template_fd, "tmp", err) < 0)
                return -err->code;
        *ret_root = take_fd(&root);
        return 0;
}

int image_root_build(const struct wire_shape *shape, int *ret_root, struct csn_error *err)
{
        static const char *const folders[] = { "dev", "run", "opt/caisson" };
        auto_fd template = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_fd root = -1;
        char path[40];
        if (template < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /");
        if (attach_tree(shape, template, &root, err) < 0)
                return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(folders); i++)
                if (mount_attach_copy(template, root, folders[i], err) < 0)
                        return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                snprintf(path, sizeof path, "etc/%s", files[i]);
                if (mount_attach_copy(template, root, path, err) < 0)
                        return -err->code;
        }
        *ret_root = take_fd(&root);
        return 0;
}
