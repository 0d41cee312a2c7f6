/*
 * Devices of the host, granted by the administrator to programs of a profile.
 *
 * A grant is an order, but some devices undo the isolation despite the filter and the rules: memory, disks, terminals,
 * and devices for making mounts, networks or virtual machines.  Such a grant is refused.  The check of the path is for
 * the message; the check of the node decides.
 */
#include "sandbox/mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

/* Majors of Documentation/admin-guide/devices.txt, of character devices. */
static const struct {
        unsigned major;
        const char *what;
} refused_majors[] = {
        { 2, "terminals" },      { 3, "terminals" },      { 4, "terminals" },
        { 5, "terminals" },      { 7, "screens of virtual terminals" },
        { 9, "tapes" },          { 10, "miscellaneous devices such as fuse, kvm, net/tun and loop-control" },
        { 13, "keyboards and mice" },
        { 21, "SCSI commands to disks" },                 { 86, "media changers" },
        { 89, "the I2C bus" },   { 90, "flash memory" },  { 136, "terminals" },
        { 153, "the SPI bus" },  { 162, "raw disks" },    { 189, "the USB bus" },
        { 202, "registers of processors" },               { 203, "registers of processors" },
};

/* Devices with majors chosen by the kernel, by prefix of their names. */
static const struct {
        const char *prefix, *what;
} refused_names[] = {
        { "bsg/", "SCSI commands to disks" }, { "nvme", "commands to disks" }, { "ng", "commands to disks" },
        { "hidraw", "keyboards and mice" },   { "vfio/", "the PCI bus" },      { "watchdog", "a reset of the host" },
        { "gpiochip", "pins of the board" },  { "usbmon", "the USB bus" },     { "iommu", "the PCI bus" },
};

/* Minors of major 1 other than memory and log of the host. */
static const unsigned harmless_minors[] = { 3, 5, 7, 8, 9 };

/* Entries of /dev in each sandbox, files and folders. */
static const char *const own_names[] = { "fd", "null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr",
        "ptmx", "pts", "shm" };

static int refused(const char *path, const char *what, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0, "%.60s cannot be granted: it gives access to %s", path, what);
}

static int check_name(const char *path, struct csn_error *err)
{
        const char *name = path + strlen("/dev/"), *slash = strchr(name, '/');
        if (!slash)
                for (size_t i = 0; i < ARRAY_LEN(own_names); i++)
                        if (strcmp(name, own_names[i]) == 0)
                                return err_set(err, CSN_E_CONFIG, 0, "%.60s cannot be granted: each sandbox has that name",
                                        path);
        if (strncmp(name, "pts/", 4) == 0 || strncmp(name, "shm/", 4) == 0 || strncmp(name, "fd/", 3) == 0)
                return err_set(err, CSN_E_CONFIG, 0, "%.60s cannot be granted: each sandbox has that folder", path);
        for (size_t i = 0; i < ARRAY_LEN(refused_names); i++)
                if (strncmp(name, refused_names[i].prefix, strlen(refused_names[i].prefix)) == 0)
                        return refused(path, refused_names[i].what, err);
        return 0;
}

int device_check_path(const char *path, struct csn_error *err)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
        const char *name = path + strlen("/dev/");
        size_t parts = 0;
        if (strncmp(path, "/dev/", strlen("/dev/")) != 0 || strlen(name) > DEVICE_NAME_MAX)
                return err_set(err, CSN_E_CONFIG, 0, "%.60s is no device: give a path below /dev, with %d bytes after /dev/",
                        path, DEVICE_NAME_MAX);
        for (const char *at = name;; at++) {
                size_t len = strspn(at, letters);
                if (len == 0 || at[0] == '.' || (at[len] && at[len] != '/') || ++parts > 2)
                        return err_set(err, CSN_E_CONFIG, 0,
                                "%.60s is no device: /dev/NAME and /dev/FOLDER/NAME are possible, of letters, digits, "
                                "\".\", \"_\" and \"-\"",
                                path);
                at += len;
                if (!*at)
                        break;
        }
        return check_name(path, err);
}

static int check_node(const char *path, const struct stat *st, struct csn_error *err)
{
        bool harmless = major(st->st_rdev) != 1;
        if (!S_ISCHR(st->st_mode))
                return err_set(err, CSN_E_UNSUPPORTED, 0, "%.60s is no character device, and only those can be granted", path);
        for (size_t i = 0; i < ARRAY_LEN(harmless_minors); i++)
                harmless = harmless || minor(st->st_rdev) == harmless_minors[i];
        if (!harmless)
                return refused(path, "memory or the log of the host", err);
        /* 137 to 143 are terminals, too. */
        if (major(st->st_rdev) > 136 && major(st->st_rdev) <= 143)
                return refused(path, "terminals", err);
        for (size_t i = 0; i < ARRAY_LEN(refused_majors); i++)
                if (refused_majors[i].major == major(st->st_rdev))
                        return refused(path, refused_majors[i].what, err);
        return 0;
}

static int absent(const char *path, struct csn_error *err)
{
        return err_set(err, CSN_E_UNSUPPORTED, errno == ENOENT ? 0 : errno,
                "the device %.60s is granted and is not there: load its driver, or take the grant back", path);
}

int device_look(const char *path, struct csn_error *err)
{
        struct stat st;
        if (device_check_path(path, err) < 0)
                return -err->code;
        return lstat(path, &st) < 0 ? absent(path, err) : check_node(path, &st, err);
}

int device_open(const char *path, int *ret_fd, struct csn_error *err)
{
        struct stat st;
        if (device_check_path(path, err) < 0)
                return -err->code;
        auto_fd fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
        if (fd < 0 || fstat(fd, &st) < 0)
                return absent(path, err);
        if (check_node(path, &st, err) < 0)
                return -err->code;
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, .propagation = MS_PRIVATE };
        if (mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return err_set(err, CSN_E_UNSUPPORTED, errno, "granted devices need mount_setattr(2) (Linux 5.12)");
        *ret_fd = take_fd(&fd);
        return 0;
}
