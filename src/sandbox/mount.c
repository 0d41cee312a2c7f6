/*
 * The root file system: a small read-only tmpfs with the host's /usr, a private /tmp, /dev/shm and home, a new
 * /proc with masks, a few devices, no /sys.  The outer init builds the common part once; the mount namespace of a
 * sandbox is a copy of the outer init's, with private mounts added.
 *
 * All accesses use descriptors (open_tree(2), fsopen(2), move_mount(2), Linux 5.2), so no path is resolved twice:
 * the checked file is the mounted file.  Flags are set by mount_setattr(2) (Linux 5.12), before 5.12 by a remount
 * of the attached path.
 */
#include "sandbox/mount.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define TREE_FLAGS (OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)

/* Without mount_setattr(2) the flags of mounts below could not be changed, so submounts are left out. */
static int tree_open(int dir_fd, const char *path)
{
        static int can_recurse = -1;
        if (can_recurse < 0) {
                struct mount_attr attr = { 0 };
                can_recurse = !(mount_setattr(-1, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 && errno == ENOSYS);
        }
        return open_tree(dir_fd, path, TREE_FLAGS | (can_recurse ? AT_RECURSIVE : 0));
}

/* ---- trees of the host, opened before the root changes ---- */

#define BINDS_MAX 16
#define DEVICES_MAX 8

/* /bin, /lib and so on: links into /usr on a merged system, folders of their own on an old system. */
static const char *const top_dirs[] = { "bin", "sbin", "lib", "lib32", "lib64", "libx32" };

struct host_trees {
        int binds[BINDS_MAX];
        bool is_dir[BINDS_MAX];
        int devices[DEVICES_MAX];
        int tops[ARRAY_LEN(top_dirs)];
        char links[ARRAY_LEN(top_dirs)][64];   /* the link's text, or "" */
        int runners, layers, images;
};

static void host_trees_done(struct host_trees *host)
{
        for (size_t i = 0; i < BINDS_MAX; i++)
                fd_close(&host->binds[i]);
        for (size_t i = 0; i < DEVICES_MAX; i++)
                fd_close(&host->devices[i]);
        for (size_t i = 0; i < ARRAY_LEN(top_dirs); i++)
                fd_close(&host->tops[i]);
        fd_close(&host->runners);
        fd_close(&host->layers);
        fd_close(&host->images);
}

/* Opens a folder as an attachable tree, a file for reading. */
static int open_bind(const struct plan_bind *bind, int *ret_fd, bool *ret_is_dir, struct csn_error *err)
{
        struct stat st;
        if (stat(bind->source, &st) < 0)
                return errno == ENOENT && !bind->required
                        ? 0
                        : err_set(err, CSN_E_SYSTEM, errno, "look at %s of the host", bind->source);
        *ret_is_dir = S_ISDIR(st.st_mode);
        auto_fd fd =
                *ret_is_dir ? tree_open(AT_FDCWD, bind->source) : open(bind->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0 && errno == EACCES && !bind->required)
                return 0;   /* no process inside could read the file */
        if (fd < 0 || fstat(fd, &st) < 0 || S_ISDIR(st.st_mode) != *ret_is_dir ||
                !(S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)))
                return err_set(err, CSN_E_SYSTEM, fd < 0 ? errno : 0, "open %s of the host", bind->source);
        *ret_fd = take_fd(&fd);
        return 0;
}

/* The numbers of the devices in Linux' own table (Documentation/admin-guide/devices.txt); all have major 1. */
static int open_device(const char *name, int *ret_fd, struct csn_error *err)
{
        static const struct {
                const char *name;
                unsigned minor;
        } numbers[] = { { "null", 3 }, { "zero", 5 }, { "full", 7 }, { "random", 8 }, { "urandom", 9 } };
        char path[32];
        struct stat st;
        snprintf(path, sizeof path, "/dev/%s", name);
        auto_fd fd = open_tree(AT_FDCWD, path, TREE_FLAGS);
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s of the host", path);
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                if (strcmp(numbers[i].name, name) == 0 && S_ISCHR(st.st_mode) && major(st.st_rdev) == 1 &&
                    minor(st.st_rdev) == numbers[i].minor) {
                        *ret_fd = take_fd(&fd);
                        return 0;
                }
        return err_set(err, CSN_E_SYSTEM, 0, "%s of the host is not the device of that name", path);
}

static int open_top(size_t i, struct host_trees *host, struct csn_error *err)
{
        char path[16];
        snprintf(path, sizeof path, "/%s", top_dirs[i]);
        ssize_t len = readlink(path, host->links[i], sizeof host->links[i] - 1);
        if (len >= 0) {
                host->links[i][len] = 0;
                return 0;
        }
        if (errno == ENOENT)
                return 0;
        host->tops[i] = tree_open(AT_FDCWD, path);
        if (host->tops[i] < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s of the host", path);
        return 0;
}

/* *ret_fd stays -1 for a missing folder. */
static int keep_tree(int tree, const char *what, int *ret_fd, struct csn_error *err)
{
        *ret_fd = tree < 0 ? -1 : fcntl(tree, F_DUPFD_CLOEXEC, 0);
        return tree >= 0 && *ret_fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "keep the folder of the %s", what) : 0;
}

static int host_trees_open(const struct shared_trees *trees, struct host_trees *host, struct csn_error *err)
{
        _Static_assert(BINDS_MAX >= 10 && DEVICES_MAX >= PLAN_DEVICES, "room for the tables of plan.c");
        for (size_t i = 0; i < plan_binds_n; i++)
                if (open_bind(&plan_binds[i], &host->binds[i], &host->is_dir[i], err) < 0)
                        return -err->code;
        for (size_t i = 0; plan_devices[i]; i++)
                if (open_device(plan_devices[i], &host->devices[i], err) < 0)
                        return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(top_dirs); i++)
                if (open_top(i, host, err) < 0)
                        return -err->code;
        if (keep_tree(trees->runners, "language runners", &host->runners, err) < 0 ||
                keep_tree(trees->layers, "layers", &host->layers, err) < 0)
                return -err->code;
        return keep_tree(trees->images, "images", &host->images, err);
}

/* ---- the new root ---- */

/* Folders of the root, parents first.  Mount points of files are made at the time of the mount. */
static const char *const folders[] = {
        "usr", "etc", "etc/ssl", "proc", "dev", "dev/pts", "dev/shm", "tmp", "home", "home/user", "opt", "opt/caisson",
        SANDBOX_PYTHON_LAYER + 1, SANDBOX_NODE_LAYER + 1,        "run", "var", "var/lib", "var/cache",
        SANDBOX_VOLUMES + 1,
};

static const struct {
        const char *path, *target;
} links[] = {
        { "var/tmp", "../tmp" },               { "var/run", "../run" },
        { "etc/os-release", "../usr/lib/os-release" }, { "etc/mtab", "../proc/self/mounts" },
        { "node_modules", "opt/node_modules" },
        /* /mnt/data: work folder of other code interpreters, where models write files; volumes cover all of /mnt. */
        { SANDBOX_VOLUMES "/data" + 1, "../home/user" },
};

static const struct {
        const char *path, *text;
} files[] = {
        { "etc/passwd",
                "root:x:0:0:root:/:/usr/sbin/nologin\n"
                "user:x:1000:1000:user:/home/user:/bin/bash\n"
                "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
        { "etc/group", "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n" },
        { "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n" },
        { "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost ip6-localhost ip6-loopback\n" },
        { "etc/hostname", SANDBOX_HOST_NAME "\n" },
        { "etc/resolv.conf", "" },
        /* Without this file `openssl req` makes no certificate at all. */
        { "etc/ssl/openssl.cnf",
                "[req]\ndistinguished_name = name\nx509_extensions = ca\n"
                "[name]\ncommonName = Common Name\n"
                "[ca]\nsubjectKeyIdentifier = hash\nauthorityKeyIdentifier = keyid:always,issuer\nbasicConstraints = critical,CA:true\n" },
};

static int touch(int root_fd, const char *path, const char *text, struct csn_error *err)
{
        auto_fd fd = openat(root_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0 || io_write_all(fd, text, strlen(text)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make /%s", path);
        return 0;
}

static int fill_root(int root_fd, struct csn_error *err)
{
        for (size_t i = 0; i < ARRAY_LEN(folders); i++)
                if (mkdirat(root_fd, folders[i], 0755) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make /%s", folders[i]);
        for (size_t i = 0; i < ARRAY_LEN(links); i++)
                if (symlinkat(links[i].target, root_fd, links[i].path) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make /%s", links[i].path);
        for (size_t i = 0; i < dev_links_n; i++) {
                char path[32];
                snprintf(path, sizeof path, "dev/%s", dev_links[i].name);
                if (symlinkat(dev_links[i].target, root_fd, path) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make /%s", path);
        }
        for (size_t i = 0; i < ARRAY_LEN(files); i++)
                if (touch(root_fd, files[i].path, files[i].text, err) < 0)
                        return -err->code;
        return 0;
}

/*
 * Copies the current contents of a host's file.  A mount would show no newer contents: ldconfig, apt and timedatectl
 * replace such a file by a new inode.  Each mount is copied for each sandbox and undone at its end.
 */
static int copy_host(int root_fd, int fd, const char *target, struct csn_error *err)
{
        char piece[16 * KIB];
        ssize_t n = 0;
        auto_fd to = openat(root_fd, target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        while (to >= 0 && (n = read(fd, piece, sizeof piece)) > 0)
                if (io_write_all(to, piece, (size_t)n) < 0)
                        n = -1;
        return to < 0 || n < 0 ? err_set(err, CSN_E_SYSTEM, errno, "copy the host's file to /%s", target) : 0;
}

/* Attach a tree of the host read-only below the root; makes its mount point. */
static int attach_host(int root_fd, int tree_fd, const char *target, bool is_dir, unsigned attrs, struct csn_error *err)
{
        if (!is_dir && touch(root_fd, target, "", err) < 0)
                return -err->code;
        if (is_dir && mkdirat(root_fd, target, 0755) < 0 && errno != EEXIST)
                return err_set(err, CSN_E_SYSTEM, errno, "make /%s", target);
        if (mount_attach(tree_fd, root_fd, target, err) < 0)
                return -err->code;
        return mount_add_attrs(tree_fd, attrs, is_dir, err);
}

static int attach_host_trees(int root_fd, const struct host_trees *host, struct csn_error *err)
{
        for (size_t i = 0; i < plan_binds_n; i++) {
                bool program = plan_binds[i].required;   /* /usr alone may be executed */
                unsigned attrs = MOUNT_ATTR_RDONLY | (program ? ATTR_FILES : ATTR_DATA);
                if (host->binds[i] < 0)
                        continue;
                if (host->is_dir[i] ? attach_host(root_fd, host->binds[i], plan_binds[i].target, true, attrs, err) < 0
                                    : copy_host(root_fd, host->binds[i], plan_binds[i].target, err) < 0)
                        return -err->code;
        }
        for (size_t i = 0; i < ARRAY_LEN(top_dirs); i++) {
                if (host->links[i][0] && symlinkat(host->links[i], root_fd, top_dirs[i]) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "make /%s", top_dirs[i]);
                if (host->tops[i] >= 0 && attach_host(root_fd, host->tops[i], top_dirs[i], true,
                                                      MOUNT_ATTR_RDONLY | ATTR_FILES, err) < 0)
                        return -err->code;
        }
        for (size_t i = 0; plan_devices[i]; i++) {
                char target[32];
                snprintf(target, sizeof target, "dev/%s", plan_devices[i]);
                if (attach_host(root_fd, host->devices[i], target, false, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err) <
                        0)
                        return -err->code;
        }
        if (host->layers >= 0 &&
                attach_host(root_fd, host->layers, "tmp", true, MOUNT_ATTR_RDONLY | ATTR_FILES, err) < 0)
                return -err->code;
        if (host->images >= 0 && attach_host(root_fd, host->images, IMAGES_PLACE + 1, true,
                                         MOUNT_ATTR_RDONLY | ATTR_FILES, err) < 0)
                return -err->code;
        return attach_host(root_fd, host->runners, "opt/caisson", true, MOUNT_ATTR_RDONLY | ATTR_FILES, err);
}

/* ---- layers of packages ---- */

/*
 * The template has the folder of all layers at /tmp.  Each sandbox and each zygote covers /tmp with a file system of
 * its own: so a sandbox sees only its own layers, and a layer built after the template can be mounted.
 */
static int open_layer(uint64_t high, uint64_t low, int *ret, struct csn_error *err)
{
        char path[64];
        if (!high && !low)
                return 0;
        snprintf(path, sizeof path, "/tmp/%016llx%016llx/tree", (unsigned long long)high, (unsigned long long)low);
        *ret = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        return *ret < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open layer %016llx%016llx", (unsigned long long)high,
                                  (unsigned long long)low)
                        : 0;
}

struct layer_trees {
        int python, node;
};

static int open_layers(const struct wire_shape *shape, struct layer_trees *ret, struct csn_error *err)
{
        if (open_layer(shape->python_layer_high, shape->python_layer_low, &ret->python, err) < 0)
                return -err->code;
        return open_layer(shape->node_layer_high, shape->node_layer_low, &ret->node, err);
}

static int attach_layers(int root_fd, const struct layer_trees *trees, struct csn_error *err)
{
        const unsigned attrs = MOUNT_ATTR_RDONLY | ATTR_FILES;
        if (trees->python >= 0 && attach_host(root_fd, trees->python, SANDBOX_PYTHON_LAYER + 1, true, attrs, err) < 0)
                return -err->code;
        return trees->node >= 0 ? attach_host(root_fd, trees->node, SANDBOX_NODE_LAYER + 1, true, attrs, err) : 0;
}

#define OPTIONS_MAX 8

/* The tmpfs belongs to the ids of the mounter (tmpfs(5)): the sandbox' user, or its root. */
static int attach_tmpfs(int root_fd, const char *target, uint64_t bytes, uint64_t inodes, const char *mode,
        unsigned attrs, struct csn_error *err)
{
        char size[24], nr_inodes[24];
        snprintf(size, sizeof size, "%llu", (unsigned long long)bytes);
        snprintf(nr_inodes, sizeof nr_inodes, "%llu", (unsigned long long)inodes);
        const struct option options[OPTIONS_MAX] = { { "size", size }, { "nr_inodes", nr_inodes }, { "mode", mode } };
        return mount_attach_new(root_fd, "tmpfs", target, options, attrs, err);
}

static int attach_private(int root_fd, const struct wire_shape *shape, struct csn_error *err)
{
        static const struct option pts[] = { { "ptmxmode", "0666" }, { "mode", "0620" }, { "max", "16" },
                { NULL, NULL } };
        /* With root the home directory is on root's disk, and world-writable folders belong to root. */
        bool rooted = shape->flags & WIRE_ROOT;
        /* The root folder of the home tmpfs takes an inode in addition to the request. */
        if (!rooted &&
                attach_tmpfs(root_fd, "home/user", shape->disk_bytes, shape->disk_files + 1, "0700", ATTR_FILES, err) <
                        0)
                return -err->code;
        if (attach_tmpfs(root_fd, "tmp", shape->tmp_bytes, 16384, "1777", ATTR_FILES, err) < 0 ||
            attach_tmpfs(root_fd, "dev/shm", shape->tmp_bytes, 4096, "1777", ATTR_DATA, err) < 0)
                return -err->code;
        return mount_attach_new(root_fd, "devpts", "dev/pts", pts, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, err);
}

/* ---- modules ---- */

/* Most of LAUNCH_MODULES_BYTES and of the folders of 1,000 modules; a file takes whole pages. */
static const struct option modules_options[] = { { "size", "24m" }, { "nr_inodes", "20000" }, { "mode", "0755" },
        { NULL, NULL } };

/*
 * Two mounts of one tmpfs at one place.  The handoff writes through a descriptor of the first mount, which no path
 * reaches, because the second mount covers the first and is read-only.
 */
static int attach_modules(int root_fd, struct plan *plan, struct csn_error *err)
{
        const char *place = SANDBOX_MODULES + 1;
        if (!(plan->shape.flags & WIRE_MODULES))
                return 0;
        if (mount_attach_new(root_fd, "tmpfs", place, modules_options, ATTR_FILES, err) < 0)
                return -err->code;
        plan->modules_dir = openat(root_fd, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        auto_fd cover = open_tree(root_fd, place, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        if (plan->modules_dir < 0 || cover < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of modules");
        if (mount_attach(cover, root_fd, place, err) < 0)
                return -err->code;
        return mount_add_attrs(cover, MOUNT_ATTR_RDONLY | ATTR_FILES, false, err);
}

/* ---- /proc ---- */

/* The kernel's overflowuid: shown in a namespace for unmapped ids (user_namespaces(7)). */
#define NOBODY 65534

/* Indexed like plan_masked_files and plan_masked_folders. */
#define MASKS_MAX 64
static bool closed_files[MASKS_MAX], closed_folders[MASKS_MAX];

/*
 * Missing entries need no mask.  Nor do entries of the host's root without rights for group and others: no process
 * inside is the host's root, and capabilities do not count for files of unmapped ids (capable_wrt_inode_uidgid() in
 * kernel/capability.c).  A mask is a mount to make and to undo in every sandbox; masks were much of a sandbox' cost.
 */
static void find_closed(const char *const *entries, bool closed[MASKS_MAX])
{
        char path[64];
        struct stat st;
        for (size_t i = 0; i < MASKS_MAX && entries[i]; i++) {
                snprintf(path, sizeof path, "/proc/%s", entries[i]);
                if (stat(path, &st) == 0)
                        closed[i] = st.st_uid == NOBODY && st.st_gid == NOBODY && !(st.st_mode & (S_IRWXG | S_IRWXO));
                else
                        closed[i] = errno == ENOENT;
        }
}

#define LOOK_US 1000000

void mount_look(void)
{
        static uint64_t looked_us;
        uint64_t now = clock_us();
        if (looked_us && now - looked_us < LOOK_US)
                return;
        looked_us = now;
        find_closed(plan_masked_files, closed_files);
        find_closed(plan_masked_folders, closed_folders);
}

/*
 * Cover entries of /proc, the current directory.  Entries gone since mount_look() are no leak.  By path and mount(2),
 * for once: no other process is in this mount namespace, and a detached copy for each mask is two calls more.
 */
static int mask(const char *cover, const char *const *entries, const bool closed[MASKS_MAX], struct csn_error *err)
{
        for (size_t i = 0; entries[i]; i++)
                if (!(i < MASKS_MAX && closed[i]) && mount(cover, entries[i], NULL, MS_BIND, NULL) < 0 &&
                        errno != ENOENT && errno != EACCES)
                        return err_set(err, CSN_E_SYSTEM, errno, "mask /proc/%s", entries[i]);
        return 0;
}

static int mask_proc(int proc_fd, struct csn_error *err)
{
        if (fchdir(proc_fd) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "go to /proc");
        /* Files are masked by the device checked in open_device(), folders by the empty /run. */
        if (mask("/dev/null", plan_masked_files, closed_files, err) < 0 ||
                mask("/run", plan_masked_folders, closed_folders, err) < 0)
                return -err->code;
        if (chdir("/") < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "chdir /");

        auto_fd sys = open_tree(proc_fd, "sys", TREE_FLAGS);
        if (sys < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "copy /proc/sys");
        if (mount_attach(sys, proc_fd, "sys", err) < 0)
                return -err->code;
        return mount_add_attrs(sys, MOUNT_ATTR_RDONLY | ATTR_DATA, false, err);
}

static const struct option plain[] = { { NULL, NULL } };

static int new_proc(const struct option *options, struct csn_error *err)
{
        int fd = mount_new("proc", options, ATTR_DATA, err);
        if (fd < 0 && err->sys == EPERM) {
                char why[sizeof err->text];
                probe_explain_forbidden("/proc here has parts covered", why, sizeof why);
                return err_set(err, CSN_E_UNSUPPORTED, 0, "%s", why);
        }
        return fd;
}

static int attach_proc(int root_fd, struct plan *plan, struct csn_error *err)
{
        static const struct option strict[] = { { "subset", "pid" }, { "hidepid", "invisible" }, { NULL, NULL } };
        bool is_strict = plan->shape.flags & WIRE_PROC_STRICT;

        auto_fd proc = new_proc(is_strict ? strict : plain, err);
        if (proc < 0)
                return proc;
        if (mount_attach(proc, root_fd, "proc", err) < 0)
                return -err->code;
        plan->boundary.proc_strict = is_strict;

        /* subset=pid has no sys/; the sysctls are then reached through a second /proc, never attached. */
        auto_fd whole = is_strict ? new_proc(plain, err) : -1;
        if (is_strict && whole < 0)
                return whole;
        plan->sysctl_dir = openat(is_strict ? whole : proc, "sys/user", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        if (plan->sysctl_dir < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /proc/sys/user");
        if (is_strict)
                return 0;
        if (mask_proc(proc, err) < 0)
                return -err->code;
        return plan->boundary.overlay ? overlay_boot_id(root_fd, err) : 0;
}

/* ---- roots of the template, of sandboxes and of zygotes ---- */

static int take_ids(uint32_t id, struct csn_error *err)
{
        if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "take uid and gid %u", id);
        return 0;
}

static int enter_root(int root_fd, struct csn_error *err)
{
        /* pivot_root(2), "pivot_root(".", ".")": the old root ends on top of the new root and is unmounted there. */
        if (fchdir(root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pivot_root");
        if (umount2(".", MNT_DETACH) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "unmount the old root");
        if (chdir("/") < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "chdir /");
        return 0;
}

static int build_template(const struct host_trees *host, struct csn_error *err)
{
        static const struct option options[] = { { "size", "16m" }, { "nr_inodes", "256" }, { "mode", "0755" },
                { NULL, NULL } };
        static const struct option empty[] = { { "size", "4k" }, { "nr_inodes", "1" }, { "mode", "0555" },
                { NULL, NULL } };
        auto_fd root = mount_new("tmpfs", options, ATTR_DATA, err);
        if (root < 0)
                return root;
        auto_fd proc = new_proc(plain, err);
        if (proc < 0)
                return proc;
        /* Before pivot_root(2) the new root has to be attached somewhere; /usr exists and is already opened. */
        if (move_mount(root, "", AT_FDCWD, "/usr", MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "attach the new root");
        /* /proc is the outer init's own; a sandbox needs this /proc to mount its own /proc over it. */
        if (fill_root(root, err) < 0 || attach_host_trees(root, host, err) < 0 ||
                mount_attach_new(root, "tmpfs", "run", empty, MOUNT_ATTR_RDONLY | ATTR_DATA, err) < 0 ||
                mount_attach(proc, root, "proc", err) < 0 ||
                mount_add_attrs(root, MOUNT_ATTR_RDONLY, false, err) < 0)
                return -err->code;
        return enter_root(root, err);
}

int mount_template(const struct shared_trees *trees, struct csn_error *err)
{
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the mounts private");
        struct host_trees host;
        memset(&host, 0xff, sizeof host);   /* every descriptor -1 */
        memset(host.links, 0, sizeof host.links);
        int rc = host_trees_open(trees, &host, err);
        if (rc == 0)
                rc = build_template(&host, err);
        host_trees_done(&host);
        /* Trees opened by the supervisor are slave mounts if its root is a slave, as in a container. */
        if (rc == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the mounts of sandboxes private");
        return rc;
}

static int open_root(struct plan *plan, int *ret, struct csn_error *err)
{
        if (plan->shape.flags & WIRE_ROOT)
                return overlay_build(plan, ret, err);
        if (has_image(&plan->shape))
                return image_root_build(&plan->shape, ret, err);
        *ret = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return *ret < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open /") : 0;
}

/* From here on files are made with the sandbox's own id: the host's id is not mapped and could not own files. */
int mount_child(struct plan *plan, struct csn_error *err)
{
        bool rooted = plan->shape.flags & WIRE_ROOT, own_root = rooted || has_image(&plan->shape);
        auto_fd root = -1;
        struct layer_trees layers = { -1, -1 };
        if (take_ids(rooted ? 0 : SANDBOX_UID, err) < 0 || open_layers(&plan->shape, &layers, err) < 0 ||
                open_root(plan, &root, err) < 0 || attach_layers(root, &layers, err) < 0 ||
                grants_attach_volumes(root, plan, err) < 0 || grants_attach_devices(root, plan, err) < 0 ||
                attach_private(root, &plan->shape, err) < 0 || attach_modules(root, plan, err) < 0 ||
                attach_proc(root, plan, err) < 0)
                return -err->code;
        fd_close(&layers.python);
        fd_close(&layers.node);
        /* The masks of /proc come from the template, so the template goes after the masks. */
        return own_root ? enter_root(root, err) : 0;
}

/* The root of an image gets a copy of the template's /proc, of the outer init's pid namespace. */
static int open_zygote_root(const struct wire_shape *shape, int *ret, struct csn_error *err)
{
        if (!has_image(shape)) {
                *ret = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
                return *ret < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open /") : 0;
        }
        auto_fd template = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto_fd root = -1;
        if (template < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /");
        if (image_root_build(shape, &root, err) < 0 || mount_attach_copy(template, root, "proc", err) < 0)
                return -err->code;
        *ret = take_fd(&root);
        return 0;
}

int mount_zygote(const struct wire_shape *shape, struct csn_error *err)
{
        static const struct option options[] = { { "size", "64m" }, { "nr_inodes", "4096" }, { "mode", "1777" },
                { NULL, NULL } };
        static const char *const targets[] = { "home/user", "tmp", "dev/shm" };
        auto_fd root = -1;
        struct layer_trees layers = { -1, -1 };
        if (open_layers(shape, &layers, err) < 0 || open_zygote_root(shape, &root, err) < 0 ||
                attach_layers(root, &layers, err) < 0)
                return -err->code;
        fd_close(&layers.python);
        fd_close(&layers.node);
        for (size_t i = 0; i < ARRAY_LEN(targets); i++)
                if (mount_attach_new(root, "tmpfs", targets[i], options, ATTR_DATA, err) < 0)
                        return -err->code;
        return has_image(shape) ? enter_root(root, err) : 0;
}
