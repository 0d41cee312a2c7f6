/*
 * Landlock (landlock(7), Linux 5.13): a second barrier, effective even with a wrong mount.
 *
 * Debian 12's headers know ABI 2; rights and fields of later ABIs are defined here, with the first kernel.  The
 * kernel is asked for its ABI and gets only known rights.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <sys/syscall.h>

#define ACCESS_FS_TRUNCATE (1ULL << 14)    /* ABI 3, Linux 6.2 */
#define ACCESS_FS_IOCTL_DEV (1ULL << 15)   /* ABI 5, Linux 6.10 */
#define NET_BIND_TCP (1ULL << 0)           /* ABI 4, Linux 6.7 */
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)    /* ABI 6, Linux 6.12 */
#define SCOPE_SIGNAL (1ULL << 1)

struct ruleset {
        uint64_t access_fs;
        uint64_t access_net;   /* ABI 4 */
        uint64_t scoped;       /* ABI 6 */
};

#define FILE_READ LANDLOCK_ACCESS_FS_READ_FILE
#define FILE_WRITE (LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_FS_TRUNCATE)
#define READ (FILE_READ | LANDLOCK_ACCESS_FS_READ_DIR)
#define RUN LANDLOCK_ACCESS_FS_EXECUTE
#define CHANGE                                                                                                  \
        (FILE_WRITE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR | \
         LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |             \
         LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

struct rule {
        const char *path;
        uint64_t rights;
        bool unmerged;   /* needed only if the path is no link into /usr */
};

/*
 * Rights apply beneath the path.  Missing paths are skipped, for a missing path cannot be reached anyway.  Each sandbox
 * goes through the table, so the table has no duplicates.
 */
static const struct rule rules[] = {
        { "/", LANDLOCK_ACCESS_FS_READ_DIR, false },
        { "/usr", READ | RUN, false },
        { "/lib", READ | RUN, true },
        { "/lib64", READ | RUN, true },
        { "/bin", READ | RUN, true },
        { "/sbin", READ | RUN, true },
        { "/opt", READ | RUN, false },                /* the runners, and layers of packages */
        { "/etc", READ, false },
        { "/proc", READ, false },
        { "/dev", FILE_READ | FILE_WRITE, false },   /* five devices (plan.c); no file can be made here */
        { "/dev/pts", READ | FILE_WRITE | ACCESS_FS_IOCTL_DEV, false },
        { "/dev/shm", READ | CHANGE, false },
        { "/tmp", READ | RUN | CHANGE, false },
        { SANDBOX_HOME, READ | RUN | CHANGE, false },
};

/*
 * For a sandbox with root: root may change names in / as well.  A rule for / covers /proc and /dev, too: writes there
 * are up to the other isolation, which holds alone without Landlock.
 */
static const struct rule root_rules[] = {
        { "/", READ | RUN | CHANGE, false },
        { "/dev/pts", READ | FILE_WRITE | ACCESS_FS_IOCTL_DEV, false },
};

unsigned probe_landlock_abi(void)
{
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        return abi < 0 ? 0 : (unsigned)abi;
}

static uint64_t known_rights(unsigned abi)
{
        uint64_t rights = (1ULL << 13) - 1;   /* ABI 1: EXECUTE to MAKE_SYM */
        if (abi >= 2)
                rights |= LANDLOCK_ACCESS_FS_REFER;
        if (abi >= 3)
                rights |= ACCESS_FS_TRUNCATE;
        if (abi >= 5)
                rights |= ACCESS_FS_IOCTL_DEV;
        return rights;
}

bool probe_merged_usr(void)
{
        for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
                char target[16] = "";
                if (!rules[i].unmerged)
                        continue;
                ssize_t len = readlink(rules[i].path, target, sizeof target - 1);
                if (len < 0 && errno == ENOENT)
                        continue;
                if (strncmp(target, "usr/", 4) != 0 && strncmp(target, "/usr/", 5) != 0)
                        return false;
        }
        return true;
}

static int add_beneath(int ruleset_fd, int fd, uint64_t rights)
{
        struct landlock_path_beneath_attr rule = { .allowed_access = rights, .parent_fd = fd };
        return (int)syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

static int add_rule(int ruleset_fd, const char *path, uint64_t rights, struct csn_error *err)
{
        auto_fd fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
                return 0;
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s for a Landlock rule", path);
        int rc = add_beneath(ruleset_fd, fd, rights);
        if (rc < 0 && errno == EINVAL)   /* a file can have only some of the rights */
                rc = add_beneath(ruleset_fd, fd, rights & (FILE_READ | FILE_WRITE | RUN | ACCESS_FS_IOCTL_DEV));
        return rc < 0 ? err_set(err, CSN_E_SYSTEM, errno, "add the Landlock rule for %s", path) : 0;
}

/* Passes only the fields known to the kernel. */
static int make_ruleset(const struct ruleset *ruleset, unsigned abi, struct csn_error *err)
{
        size_t size = abi >= 6 ? sizeof *ruleset : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
        int fd = (int)syscall(SYS_landlock_create_ruleset, ruleset, size, 0);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "create the Landlock rules") : fd;
}

/* Signals are not scoped: an engine ends a policy process, which the starter made and which is outside. */
int landlock_make(const struct landlock_place *places, size_t n, int *ret_fd, unsigned *ret_abi, struct csn_error *err)
{
        static const uint64_t uses[] = {
                [LANDLOCK_READ] = READ, [LANDLOCK_WRITE] = READ | CHANGE, [LANDLOCK_RUN] = READ | RUN
        };
        unsigned abi = probe_landlock_abi();
        uint64_t known = known_rights(abi);
        const struct ruleset ruleset = { .access_fs = known,
                .access_net = abi >= 4 ? NET_BIND_TCP : 0,
                .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX : 0 };
        *ret_abi = abi;
        *ret_fd = -1;
        if (!abi)
                return 0;
        auto_fd fd = make_ruleset(&ruleset, abi, err);
        if (fd < 0)
                return fd;
        for (size_t i = 0; i < n; i++)
                if (places[i].path && places[i].path[0] &&
                    add_rule(fd, places[i].path, uses[places[i].use] & known, err) < 0)
                        return -err->code;
        *ret_fd = take_fd(&fd);
        return 0;
}

int landlock_enter(int rules_fd, struct csn_error *err)
{
        if (rules_fd >= 0 && syscall(SYS_landlock_restrict_self, rules_fd, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "landlock_restrict_self");
        return 0;
}

static int add_rules(int ruleset_fd, const struct rule *rows, size_t n, unsigned abi, bool merged_usr,
        struct csn_error *err)
{
        uint64_t known = known_rights(abi);
        for (size_t i = 0; i < n; i++)
                if (!(rows[i].unmerged && merged_usr) &&
                        add_rule(ruleset_fd, rows[i].path, rows[i].rights & known, err) < 0)
                        return -err->code;
        return 0;
}

/*
 * Volumes, with read-only mounts if requested; modules, with a mount shown read-only to programs; and granted devices
 * with their ioctl(2).
 */
static int add_grants(int ruleset_fd, const struct plan *plan, struct csn_error *err)
{
        uint64_t known = known_rights(plan->abilities.landlock_abi);
        if (plan->shape.volumes_n && add_rule(ruleset_fd, SANDBOX_VOLUMES, (READ | RUN | CHANGE) & known, err) < 0)
                return -err->code;
        if (plan->modules_dir >= 0 && add_beneath(ruleset_fd, plan->modules_dir, (READ | CHANGE) & known) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "add the Landlock rule for modules");
        for (size_t i = 0; i < plan->devices_n; i++) {
                char path[DEVICE_NAME_MAX + 8];
                snprintf(path, sizeof path, "/dev/%s", plan->device_names[i]);
                if (add_rule(ruleset_fd, path, (FILE_READ | FILE_WRITE | ACCESS_FS_IOCTL_DEV) & known, err) < 0)
                        return -err->code;
        }
        return 0;
}

int landlock_child(struct plan *plan, struct csn_error *err)
{
        if (!plan->landlock)
                return 0;
        unsigned abi = plan->abilities.landlock_abi;
        struct ruleset ruleset = { .access_fs = known_rights(abi) };
        /*
         * Interpreters joining a guest's sandbox from outside each have a domain of their own, but belong together;
         * the pid and network namespaces keep the processes inside apart from all others.
         */
        if (abi >= 6 && !(plan->shape.flags & WIRE_PERSISTENT))
                ruleset.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
        auto_fd fd = make_ruleset(&ruleset, abi, err);
        if (fd < 0)
                return fd;
        bool root = plan->shape.flags & WIRE_ROOT;
        /* In an image /bin, /lib and so on may be folders instead of links into /usr. */
        bool merged_usr = plan->abilities.merged_usr && !plan->shape.image_high && !plan->shape.image_low;
        if (add_rules(fd, root ? root_rules : rules, root ? ARRAY_LEN(root_rules) : ARRAY_LEN(rules), abi, merged_usr,
                    err) < 0 ||
                add_grants(fd, plan, err) < 0)
                return -err->code;
        if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "landlock_restrict_self");
        plan->boundary.landlock_abi = abi;
        return 0;
}
