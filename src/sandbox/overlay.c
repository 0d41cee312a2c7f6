/*
 * The root file system of a sandbox with root (overlayfs.rst; in a user namespace Linux 5.11): a tmpfs with the
 * sandbox's quota, for /, the home directory, and changes of /usr.
 *
 * Without an image:
 *
 *   root     the future /: a copy of the template's /etc and /var, empty folders, the home directory
 *   lower    the host's /usr by idmap_tree(), read-only
 *   shown    an overlay of `lower` alone
 *   usr      files written to /usr; `work` is overlayfs' own
 *
 * There are two overlays because of read permission.  An overlay reads its layers with the credentials of its
 * mounter.  Root inside owns the host root's files in `lower`, so with root's credentials an overlay could read files
 * hidden from ordinary users of the host (mode 0600).  So `shown` is mounted as uid 65534 without any right over
 * files: only world-readable files of the host can be read through `shown`, by the kernel's own check at each
 * open; other files can be deleted inside, but not read, copied or moved.  The overlay on top has root's
 * credentials, over `shown` and over the tmpfs.
 *
 * In an image one overlay is the whole /:
 *
 *   lower    the tree of the image by idmap_image(), read-only
 *   changed  written files; `work` is overlayfs' own
 *
 * There is no second overlay: an image holds no secret from its programs, and package managers open files of mode 0640.
 *
 * Only the future / can be reached from inside: all other mounts are detached with the template.  In addition root sees
 * the upper layer, read-only, at SANDBOX_CHANGED, for a copy of the sandbox with its changes.
 */
#include "sandbox/mount.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#define LEVELS_MAX 16          /* folders in folders of /etc */
#define ACCOUNTS_MAX ((size_t)64 * 1024) /* bytes read of an image's /etc/passwd and /etc/group */
#define SANDBOX_CHANGED_USR "run/caisson/changed/usr"

#define ACCOUNTS                                         \
        "root:x:0:0:root:/root:/bin/bash\n"              \
        "user:x:1000:1000:user:/home/user:/bin/bash\n"   \
        "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
#define GROUPS "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n"

static int make_folder(int dir_fd, const char *path, mode_t mode, struct csn_error *err)
{
        /* The full mode, regardless of the umask. */
        if (mkdirat(dir_fd, path, mode) < 0 || fchmodat(dir_fd, path, mode, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the folder %s", path);
        return 0;
}

static int write_file(int dir_fd, const char *path, const char *text, struct csn_error *err)
{
        auto_fd fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make /%s", path);
        return 0;
}

/* ---- copies of small folders ---- */

static int copy_link(int from, int to, const char *name, struct csn_error *err)
{
        char target[4096];
        ssize_t n = readlinkat(from, name, target, sizeof target - 1);
        if (n < 0)
                return 0;   /* the link has gone */
        target[n] = 0;
        return symlinkat(target, to, name) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "copy the link %s", name) : 0;
}

static int copy_file(int from, int to, const char *name, struct csn_error *err)
{
        struct stat st;
        ssize_t n;
        /* A file not readable by all users cannot be opened here, and is left out. */
        auto_fd in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (in < 0 || fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        auto_fd out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, st.st_mode & 0755);
        if (out < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "copy %s", name);
        while ((n = sendfile(out, in, NULL, 1 << 20)) > 0)
                ;
        return n < 0 ? err_set(err, CSN_E_SYSTEM, errno, "copy %s", name) : 0;
}

static int copy_tree(int from_dir, int to_dir, const char *name, unsigned level, struct csn_error *err)
{
        int rc = 0, from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *dir = from < 0 ? NULL : fdopendir(from);
        if (!dir) {
                fd_close(&from);
                return 0;
        }
        auto_fd to = make_folder(to_dir, name, 0755, err) < 0
                ? -err->code
                : openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (to < 0)
                rc = to == -1 ? err_set(err, CSN_E_SYSTEM, errno, "open the folder %s", name) : to;
        for (struct dirent *found; rc == 0 && (found = readdir(dir));) {
                struct stat st;
                const char *inner = found->d_name;
                if (strcmp(inner, ".") == 0 || strcmp(inner, "..") == 0 ||
                        fstatat(from, inner, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (S_ISLNK(st.st_mode))
                        rc = copy_link(from, to, inner, err);
                else if (S_ISDIR(st.st_mode) && level < LEVELS_MAX)
                        rc = copy_tree(from, to, inner, level + 1, err);
                else if (S_ISREG(st.st_mode))
                        rc = copy_file(from, to, inner, err);
        }
        closedir(dir);
        return rc;
}

/* /bin, /lib and so on.  Hosts without merged /usr have folders in their place, and each would need an overlay. */
static int copy_top_links(int template_fd, int root_fd, struct csn_error *err)
{
        static const char *const names[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                struct stat st;
                if (fstatat(template_fd, names[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (!S_ISLNK(st.st_mode))
                        return err_set(err, CSN_E_UNSUPPORTED, 0,
                                "root inside needs a host whose /%s is a link into /usr (usrmerge)", names[i]);
                if (copy_link(template_fd, root_fd, names[i], err) < 0)
                        return -err->code;
        }
        return 0;
}

static int fill(int template_fd, int root_fd, struct csn_error *err)
{
        static const struct {
                const char *path;
                mode_t mode;
        } folders[] = { { "usr", 0755 }, { "proc", 0755 }, { "dev", 0755 }, { "tmp", 0755 }, { "home", 0755 },
                { SANDBOX_HOME + 1, 0700 }, { "root", 0700 }, { "opt", 0755 }, { "opt/caisson", 0755 },
                { SANDBOX_PYTHON_LAYER + 1, 0755 }, { SANDBOX_NODE_LAYER + 1, 0755 }, { "run", 0755 },
                { "run/caisson", 0700 }, { SANDBOX_CHANGED + 1, 0755 }, { SANDBOX_CHANGED_USR, 0755 }, { "mnt", 0755 },
                { "srv", 0755 }, { "var/log", 0755 } };
        if (copy_tree(template_fd, root_fd, "etc", 0, err) < 0 || copy_tree(template_fd, root_fd, "var", 0, err) < 0 ||
            copy_top_links(template_fd, root_fd, err) < 0)
                return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(folders); i++)
                if (make_folder(root_fd, folders[i].path, folders[i].mode, err) < 0)
                        return -err->code;
        if (symlinkat(SANDBOX_NODE_LAYER + 1, root_fd, "node_modules") < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make /node_modules");
        if (fchownat(root_fd, SANDBOX_HOME + 1, SANDBOX_UID, SANDBOX_UID, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "give `user` its home directory");
        return write_file(root_fd, "etc/passwd", ACCOUNTS, err);
}

/* ---- /usr ---- */

/* The path of a layer; "" is the mount or folder of the descriptor itself. */
struct layer {
        char path[40];
};

static struct layer layer(int fd)
{
        struct layer layer;
        snprintf(layer.path, sizeof layer.path, "/proc/self/fd/%d", fd);
        return layer;
}

static int no_overlay(struct csn_error *err)
{
        if (err->sys == ENODEV || err->sys == EPERM || err->sys == EINVAL)
                err->code = CSN_E_UNSUPPORTED;
        return err_wrap(err,
                "root inside needs overlayfs over a mapped folder in a user namespace (Linux 5.19, CONFIG_OVERLAY_FS)");
}

/* Mounts `shown` as uid 65534 with CAP_SYS_ADMIN alone, so the overlay can read only world-readable files. */
static int show(int lower, int empty, struct csn_error *err)
{
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct all[2], weak[2];
        char layers[90];
        snprintf(layers, sizeof layers, "%s:%s", layer(lower).path, layer(empty).path);
        const struct option options[] = { { "lowerdir", layers }, { "userxattr", NULL }, { NULL, NULL } };
        if (syscall(SYS_capget, &header, all) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "capget");
        if (setgroups(0, NULL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "drop the supplementary groups");
        memcpy(weak, all, sizeof weak);
        weak[0].effective = 1U << CAP_SYS_ADMIN;
        weak[1].effective = 0;
        setfsgid(SANDBOX_NOBODY);
        setfsuid(SANDBOX_NOBODY);
        /* setfsgid(2) and setfsuid(2) return the previous id, so a second call returns the current id. */
        if (setfsgid(SANDBOX_NOBODY) != SANDBOX_NOBODY || setfsuid(SANDBOX_NOBODY) != SANDBOX_NOBODY)
                return err_set(err, CSN_E_SYSTEM, 0, "become nobody to look at /usr");
        if (syscall(SYS_capset, &header, weak) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "capset");
        int mount = mount_new("overlay", options, MOUNT_ATTR_RDONLY | ATTR_FILES, err);
        setfsuid(0);
        setfsgid(0);
        if (syscall(SYS_capset, &header, all) < 0 || setfsuid(0) != 0 || setfsgid(0) != 0)
                _exit(1);   /* credentials are only half restored: no later step could be trusted */
        return mount < 0 ? no_overlay(err) : mount;
}

static int open_folder(int dir_fd, const char *path, struct csn_error *err)
{
        int fd = openat(dir_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open the folder %s of the sandbox' disk", path) : fd;
}

static int make_layers(int disk, const char *const *names, struct csn_error *err)
{
        for (; *names; names++)
                if (make_folder(disk, *names, 0755, err) < 0)
                        return -err->code;
        return 0;
}

static int lay_over(int disk, int usr, int root, struct csn_error *err)
{
        static const char *const folders[] = { "lower", "empty", "shown", "usr", "work", NULL };
        if (make_layers(disk, folders, err) < 0)
                return -err->code;
        /* Layers have to be mounts of this namespace. */
        if (mount_attach(usr, disk, "lower", err) < 0)
                return -err->code;
        auto_fd empty = open_folder(disk, "empty", err);
        auto_fd shown = empty < 0 ? empty : show(usr, empty, err);
        if (shown < 0 || mount_attach(shown, disk, "shown", err) < 0)
                return -err->code;
        auto_fd upper = open_folder(disk, "usr", err);
        auto_fd work = upper < 0 ? upper : open_folder(disk, "work", err);
        if (work < 0)
                return -err->code;
        const struct layer lower = layer(shown), top = layer(upper), scratch = layer(work);
        const struct option options[] = { { "lowerdir", lower.path }, { "upperdir", top.path },
                { "workdir", scratch.path }, { "userxattr", NULL }, { NULL, NULL } };
        return mount_attach_new(root, "overlay", "usr", options, ATTR_FILES, err) < 0 ? no_overlay(err) : 0;
}

/*
 * Programs written for other images call `python`, an optional name in Debian.  A host without /usr/local/bin gets no
 * link.
 */
static void name_python(int root)
{
        if (faccessat(root, "usr/bin/python", F_OK, AT_SYMLINK_NOFOLLOW) < 0 &&
                faccessat(root, "usr/bin/python3", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
                symlinkat("/usr/bin/python3", root, "usr/local/bin/python") < 0 && errno != EEXIST)
                log_text(LOG_DEBUG, "there is no python beside python3 in a sandbox with root: %s",
                        strerrordesc_np(errno));
}

/* The upper layer, a folder of the disk, read-only at a path of the root. */
static int show_changed(int disk, const char *upper, int root, const char *path, struct csn_error *err)
{
        auto_fd changed = open_tree(disk, upper, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (changed < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "show the files that were written");
        if (mount_attach(changed, root, path, err) < 0)
                return -err->code;
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | ATTR_DATA };
        if (mount_setattr(changed, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the files that were written read-only");
        return 0;
}

/* ---- / of an image ---- */

static int lay_over_image(int disk, int tree, struct csn_error *err)
{
        static const char *const folders[] = { "lower", "changed", "work", NULL };
        if (make_layers(disk, folders, err) < 0 || mount_attach(tree, disk, "lower", err) < 0)
                return -err->code;
        auto_fd upper = open_folder(disk, "changed", err);
        auto_fd work = upper < 0 ? upper : open_folder(disk, "work", err);
        if (work < 0)
                return -err->code;
        const struct layer lower = layer(tree), top = layer(upper), scratch = layer(work);
        const struct option options[] = { { "lowerdir", lower.path }, { "upperdir", top.path },
                { "workdir", scratch.path }, { "userxattr", NULL }, { NULL, NULL } };
        int mount = mount_new("overlay", options, ATTR_FILES, err);
        return mount < 0 ? no_overlay(err) : mount;
}

/* Whether the line's first field is the name of a line of `own`. */
static bool is_own(const char *line, size_t name_len, const char *own)
{
        for (const char *at = own; *at; at = strchr(at, '\n') + 1)
                if (strncmp(at, line, name_len) == 0 && at[name_len] == ':')
                        return true;
        return false;
}

/*
 * The sandbox's own accounts or groups, then the image's accounts or groups with other names, which own files of
 * packages.  The first line of an id counts (passwd(5)), so 1000 is `user` everywhere.
 */
static int merge_accounts(int root, const char *path, const char *own, struct csn_error *err)
{
        static char text[ACCOUNTS_MAX];
        struct buf merged;
        auto_fd fd = openat(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        ssize_t len = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
        text[len > 0 ? len : 0] = 0;
        char *last = strrchr(text, '\n');
        text[last ? last - text : 0] = 0;   /* drop a truncated last line */
        buf_init(&merged, 2 * ACCOUNTS_MAX);
        buf_add(&merged, own, strlen(own));
        char *rest = NULL;
        for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
                size_t name_len = strcspn(line, ":");
                if (name_len && line[name_len] && !is_own(line, name_len, own))
                        buf_printf(&merged, "%s\n", line);
        }
        buf_add(&merged, "", 1);
        int rc = write_file(root, path, (const char *)merged.bytes, err);
        buf_done(&merged);
        return rc;
}

/* A login shell sets PATH anew; the answers to typed installations (src/lang/installs) stay first. */
static int keep_path(int etc, struct csn_error *err)
{
        auto_fd folder = openat(etc, "profile.d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return folder < 0 ? 0
                          : write_file(folder, "caisson.sh", "PATH=/opt/caisson/installs/bin:$PATH\n", err);
}

/* The mount points and the folders of /etc are no links (src/images/settle.c). */
static int fill_image(int template, int root, struct csn_error *err)
{
        static const char *const files[] = { "nsswitch.conf", "hosts", "hostname", "resolv.conf" };
        auto_fd from = open_folder(template, "etc", err);
        auto_fd to = from < 0 ? from : open_folder(root, "etc", err);
        if (to < 0)
                return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
                if (unlinkat(to, files[i], 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "replace /etc/%s", files[i]);
                if (copy_file(from, to, files[i], err) < 0)
                        return -err->code;
        }
        if (mkdirat(root, "root", 0700) < 0 && errno != EEXIST)
                return err_set(err, CSN_E_SYSTEM, errno, "make /root");
        if (fchownat(root, SANDBOX_HOME + 1, SANDBOX_UID, SANDBOX_UID, AT_SYMLINK_NOFOLLOW) < 0 ||
                fchmodat(root, SANDBOX_HOME + 1, 0700, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "give `user` its home directory");
        return keep_path(to, err) < 0 || make_folder(root, "run/caisson", 0700, err) < 0 ||
                        make_folder(root, SANDBOX_CHANGED + 1, 0755, err) < 0 ||
                        merge_accounts(root, "etc/passwd", ACCOUNTS, err) < 0 ||
                        merge_accounts(root, "etc/group", GROUPS, err) < 0
                ? -err->code
                : 0;
}

/* ---- the disk ---- */

/* overlayfs marks the replacement of a folder by another folder with an attribute. */
static int can_note(int disk_fd, struct csn_error *err)
{
        auto_fd fd = openat(disk_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsetxattr(fd, "user.caisson", "1", 1, 0) < 0 || fremovexattr(fd, "user.caisson") < 0)
                return err_set(err, CSN_E_UNSUPPORTED, errno,
                        "root inside needs attributes of users on tmpfs (Linux 6.6, CONFIG_TMPFS_XATTR)");
        return 0;
}

/* The quota is for later files: files placed on the disk so far are not counted. */
static int bound_disk(int disk_fd, const struct wire_shape *shape, struct csn_error *err)
{
        struct statvfs used;
        char size[24], inodes[24];
        if (fstatvfs(disk_fd, &used) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "look at the sandbox' disk");
        snprintf(size, sizeof size, "%llu",
                (unsigned long long)(used.f_blocks - used.f_bfree) * used.f_frsize + shape->disk_bytes);
        snprintf(inodes, sizeof inodes, "%llu", (unsigned long long)(used.f_files - used.f_ffree) + shape->disk_files);
        auto_fd fs = fspick(disk_fd, "", FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
        if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
                fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", inodes, 0) < 0 ||
                fsconfig(fs, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the quota of the sandbox' disk");
        return 0;
}

int overlay_boot_id(int root_fd, struct csn_error *err)
{
        static const char path[] = "run/caisson/boot_id";
        char hex[33], text[40];
        hex_random(16, hex);
        /* RFC 9562, version 4. */
        snprintf(text, sizeof text, "%.8s-%.4s-4%.3s-8%.3s-%.12s\n", hex, hex + 8, hex + 13, hex + 17, hex + 20);
        if (write_file(root_fd, path, text, err) < 0)
                return -err->code;
        auto_fd file = open_tree(root_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (file < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the boot_id a mount");
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | ATTR_DATA };
        if (mount_attach(file, root_fd, "proc/sys/kernel/random/boot_id", err) < 0)
                return -err->code;
        if (mount_setattr(file, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the boot_id read-only");
        return 0;
}

/* / of the host: a folder of the disk, with an overlay of /usr. */
static int build_host(int template, int disk, int lower, int *ret_root, struct csn_error *err)
{
        if (make_folder(disk, "root", 0755, err) < 0)
                return -err->code;
        auto_fd root = open_tree(disk, "root", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (root < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the sandbox' root a mount");
        if (mount_attach(root, template, "tmp", err) < 0 || fill(template, root, err) < 0 ||
                lay_over(disk, lower, root, err) < 0)
                return -err->code;
        name_python(root);
        if (show_changed(disk, "usr", root, SANDBOX_CHANGED_USR, err) < 0)
                return -err->code;
        *ret_root = take_fd(&root);
        return 0;
}

static int build_image(int template, int disk, int lower, int *ret_root, struct csn_error *err)
{
        auto_fd root = lay_over_image(disk, lower, err);
        if (root < 0 || mount_attach(root, template, "tmp", err) < 0 || fill_image(template, root, err) < 0 ||
                show_changed(disk, "changed", root, SANDBOX_CHANGED + 1, err) < 0)
                return -err->code;
        name_python(root);
        *ret_root = take_fd(&root);
        return 0;
}

int overlay_build(struct plan *plan, int *ret_root, struct csn_error *err)
{
        /* Room for our own files; bound_disk() sets the quota. */
        static const struct option options[] = { { "size", "64m" }, { "nr_inodes", "65536" }, { "mode", "0755" },
                { NULL, NULL } };
        auto_fd template = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_fd disk = template <0 ? err_set(err, CSN_E_SYSTEM, errno, "open /")
                                   : mount_new("tmpfs", options, ATTR_FILES, err);
        if (disk < 0)
                return -err->code;
        auto_fd root = -1;
        int (*build)(int template, int disk, int lower, int *ret_root, struct csn_error *err) =
                has_image(&plan->shape) ? build_image : build_host;
        /* Mount points in the template, until the template goes: /home for the disk, /tmp for the root. */
        if (mount_attach(disk, template, "home", err) < 0 || can_note(disk, err) < 0 ||
                build(template, disk, plan->lower, &root, err) < 0 ||
                mount_attach_copy(template, root, "dev", err) < 0 ||
                mount_attach_copy(template, root, "opt/caisson", err) < 0 || bound_disk(disk, &plan->shape, err) < 0)
                return -err->code;
        fd_close(&plan->lower);
        plan->boundary.overlay = 1;
        *ret_root = take_fd(&root);
        return 0;
}
