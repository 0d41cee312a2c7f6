/*
 * Abilities of this host: for `caisson doctor`, and for the error text of a failed sandbox.
 * Mechanisms are tested by use where a use is harmless; version numbers are no evidence.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <sys/wait.h>

/* ---- surroundings of this process: for remedies alone, not for decisions ---- */

enum surroundings { HOST, CHROOT, DOCKER, PODMAN, KUBERNETES, CONTAINER };

/*
 * In a chroot(2) of a folder no mount has the mount point "/" (proc(5), mountinfo: mount points are relative to the
 * root of the process).
 */
static bool is_chroot(void)
{
        FILE *file = fopen("/proc/self/mountinfo", "re");
        char line[4096], point[2048];
        bool any = false, root = false;
        while (file && fgets(line, sizeof line, file)) {
                any = true;
                root = root || (sscanf(line, "%*s %*s %*s %*s %2047s", point) == 1 && strcmp(point, "/") == 0);
        }
        if (file)
                fclose(file);
        return any && !root;
}

static enum surroundings look(void)
{
        const char *name = getenv("container");   /* by the container interface of systemd */
        if (getenv("KUBERNETES_SERVICE_HOST"))
                return KUBERNETES;
        if (access("/run/.containerenv", F_OK) == 0 || (name && strcmp(name, "podman") == 0))
                return PODMAN;
        if (access("/.dockerenv", F_OK) == 0)
                return DOCKER;
        if (name && name[0])
                return CONTAINER;
        return is_chroot() ? CHROOT : HOST;
}

/* Options for the container of this process to allow sandboxes; on a host, possible causes of a refusal. */
static const char *container_remedy(void)
{
        static const char *const remedies[] = {
                [HOST] = "this service or container forbids it: allow the clone and unshare system calls with CLONE_NEWUSER (its "
                         "seccomp profile) and a /proc without mounts below it (no ProtectKernelTunables), or run outside of it",
                [CHROOT] = "this is a chroot(2), in which the kernel makes no user namespaces: enter the folder by pivot_root(2), "
                           "as systemd-nspawn and containers do",
                [DOCKER] = "start this Docker container with --security-opt seccomp=seccomp.json "
                           "(share/caisson/container/seccomp.json) and --security-opt systempaths=unconfined; no capability is "
                           "needed",
                [PODMAN] = "start this Podman container with --security-opt seccomp=seccomp.json "
                           "(share/caisson/container/seccomp.json) and --security-opt unmask=ALL; no capability is needed",
                [KUBERNETES] = "this pod needs securityContext.seccompProfile {type: Localhost, localhostProfile: the file "
                               "share/caisson/container/seccomp.json} and procMount: Unmasked with hostUsers: false",
                [CONTAINER] = "this container needs a seccomp profile that allows namespaces and mounts, and a /proc without "
                              "covered parts (nesting, where its manager has that switch)",
        };
        return remedies[look()];
}

/* ---- why user namespaces fail ---- */

static bool sysctl_is(const char *path, const char *value)
{
        char text[32];
        if (io_read_file(AT_FDCWD, path, text, sizeof text - 1) < 0)
                return false;
        text[strcspn(text, "\n")] = 0;
        return strcmp(text, value) == 0;
}

void probe_explain_clone(int sys, char *text, size_t size)
{
        static const struct {
                const char *path, *value, *remedy;
        } causes[] = {
                { "/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000" },
                { "/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1" },
                { "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
                        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for caisson-supervisor" },
        };
        for (size_t i = 0; i < ARRAY_LEN(causes); i++)
                if (sysctl_is(causes[i].path, causes[i].value)) {
                        snprintf(text, size, "no user namespaces here: %s is %s; run: %s", causes[i].path,
                                causes[i].value, causes[i].remedy);
                        return;
                }
        snprintf(text, size, "namespaces cannot be made (%s): %s", strerrordesc_np(sys),
                sys == ENOSPC ? "a limit in /proc/sys/user/max_*_namespaces is reached; raise it"
                        : sys == EPERM
                        ? container_remedy()
                        : sys == ENOSYS
                        /* Seccomp profiles of Docker and Podman answer ENOSYS to clone3(2) without CAP_SYS_ADMIN. */
                        ? look() == HOST
                                ? "clone3 is missing; Linux 5.3 or later is needed, and a seccomp profile that allows it"
                                : container_remedy()
                        : "see caisson doctor");
}

void probe_explain_forbidden(const char *what, char *text, size_t size)
{
        snprintf(text, size, "%s: %s", what, container_remedy());
}

/* ---- doctor ---- */

struct report {
        struct doctor_check *checks;
        size_t n;
};

static struct doctor_check *add(struct report *report, const char *name, enum check_state state)
{
        if (report->n == CHECKS_MAX)
                return &report->checks[CHECKS_MAX - 1];
        struct doctor_check *check = &report->checks[report->n++];
        *check = (struct doctor_check){ .name = name, .state = state };
        return check;
}

/*
 * Make the namespace in a short-lived child; 0 or the errno.  Podman's seccomp profile lets a process without
 * CAP_SYS_ADMIN make a uts namespace, and forbids sethostname(2) inside.
 */
static int try_namespace(unsigned long flags)
{
        pid_t pid = fork();
        if (pid == 0)
                _exit(unshare((int)flags) < 0 || (flags & CLONE_NEWUTS && sethostname("caisson", 7) < 0) ? errno : 0);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static void check_namespaces(struct report *report)
{
        static const struct {
                const char *name;
                unsigned long flag;
        } kinds[] = { { "mount", CLONE_NEWNS }, { "pid", CLONE_NEWPID }, { "network", CLONE_NEWNET },
                      { "ipc", CLONE_NEWIPC },  { "uts", CLONE_NEWUTS }, { "cgroup", CLONE_NEWCGROUP } };
        int sys = try_namespace(CLONE_NEWUSER);
        struct doctor_check *user = add(report, "user namespaces", sys ? CHECK_MISSING : CHECK_OK);
        snprintf(user->fact, sizeof user->fact, "%s", sys ? strerrordesc_np(sys) : "can be made");
        if (sys) {
                probe_explain_clone(sys, user->remedy, sizeof user->remedy);
                return;
        }
        struct doctor_check *others = add(report, "other namespaces", CHECK_OK);
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                sys = try_namespace(CLONE_NEWUSER | kinds[i].flag);
                size_t len = strlen(others->fact);
                if (sys) {
                        others->state = CHECK_MISSING;
                        snprintf(others->remedy, sizeof others->remedy, "%s namespace: %s; %s", kinds[i].name,
                                strerrordesc_np(sys),
                                sys == EPERM ? container_remedy()
                                             : "a kernel with all namespaces is needed, and room in "
                                               "/proc/sys/user/max_*_namespaces");
                } else {
                        snprintf(others->fact + len, sizeof others->fact - len, "%s%s", len ? ", " : "", kinds[i].name);
                }
        }
}

static void check_kernel(struct report *report)
{
        struct utsname name;
        uname(&name);
        int fd = fsopen("tmpfs", FSOPEN_CLOEXEC);
        bool has = fd >= 0 || errno != ENOSYS;
        fd_close(&fd);
        struct doctor_check *kernel = add(report, "kernel", has ? CHECK_OK : CHECK_MISSING);
        snprintf(kernel->fact, sizeof kernel->fact, "Linux %.60s on %.30s", name.release, name.machine);
        if (!has)
                snprintf(kernel->remedy, sizeof kernel->remedy,
                        "the file system calls of Linux 5.2 are missing; a newer kernel is needed");
}

/* A new /proc may be mounted only where the old one is fully visible (mount_namespaces(7)).  0 or the errno. */
static int try_proc(void)
{
        pid_t pid = fork();
        if (pid == 0) {
                if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID) < 0)
                        _exit(errno);
                pid_t inner = fork();
                if (inner == 0) {
                        int fs = fsopen("proc", FSOPEN_CLOEXEC);
                        if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 || fsmount(fs, 0, 0) < 0)
                                _exit(errno);
                        _exit(0);
                }
                int status = 0;
                waitpid(inner, &status, 0);
                _exit(WIFEXITED(status) ? WEXITSTATUS(status) : EINTR);
        }
        int status = 0;
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static void check_proc(struct report *report)
{
        int sys = try_proc();
        struct doctor_check *proc = add(report, "private /proc", sys ? CHECK_MISSING : CHECK_OK);
        snprintf(proc->fact, sizeof proc->fact, "%s", sys ? strerrordesc_np(sys) : "can be mounted");
        if (sys)
                probe_explain_forbidden("/proc here has parts covered", proc->remedy, sizeof proc->remedy);
}

static void check_seccomp(struct report *report)
{
        bool has = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
        size_t len = 0;
        seccomp_program(SECCOMP_SANDBOX, &len);
        struct doctor_check *check = add(report, "seccomp", has ? CHECK_OK : CHECK_MISSING);
        snprintf(check->fact, sizeof check->fact,
                has ? "filters can be loaded; ours has %zu instructions" : "no filters", len);
        if (!has)
                snprintf(check->remedy, sizeof check->remedy, "a kernel with CONFIG_SECCOMP_FILTER is needed");
}

static void check_landlock(struct report *report)
{
        unsigned abi = probe_landlock_abi();
        struct doctor_check *check = add(report, "Landlock", abi == 0 ? CHECK_WEAKER : CHECK_OK);
        snprintf(check->fact, sizeof check->fact, abi ? "ABI %u%s" : "not there", abi,
                 abi >= 6 ? "" : abi >= 3 ? ", without scopes" : ", without truncate and scopes");
        if (!abi)
                snprintf(check->remedy, sizeof check->remedy,
                        "the second wall is missing, the others hold: boot with lsm=landlock,... on "
                        "Linux 5.13 or later");
}

static void check_cgroups(struct report *report, bool rootless)
{
        struct cgroup_base *base;
        struct csn_error err;
        if (cgroup_open("", &base, &err) < 0) {
                struct doctor_check *check = add(report, "cgroups", CHECK_MISSING);
                snprintf(check->fact, sizeof check->fact, "%.150s", err.text);
                return;
        }
        unsigned on = cgroup_controllers(base);
        struct doctor_check *check = add(report, "cgroups", on == WIRE_CTL_ALL ? CHECK_OK : CHECK_WEAKER);
        snprintf(check->fact, sizeof check->fact, "%s%s%s%s",
                cgroup_mode(base) == WIRE_CGROUP_V2           ? "v2:"
                        : cgroup_mode(base) == WIRE_CGROUP_V1 ? "v1:"
                                                              : "none usable",
                on & WIRE_CTL_MEMORY ? " memory" : "", on & WIRE_CTL_CPU ? " cpu" : "",
                on & WIRE_CTL_PIDS ? " pids" : "");
        if (on != WIRE_CTL_ALL)
                snprintf(check->remedy, sizeof check->remedy, "%s",
                        rootless
                                ? "limits fall back to rlimits and a poll: start it by systemd-run --user --scope -p Delegate=yes, or as root"
                                : "limits fall back to rlimits and a poll: mount the controllers, and let this process write to its cgroup");
        cgroup_close(base);
}

#define SANDBOX_UIDS_FROM 65536        /* the least value of engine.uid_first */

/* Whether this user namespace has ids above the ids of a host's users (user_namespaces(7), uid_map). */
static bool has_ids(void)
{
        char text[4096];
        ssize_t n = io_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof text - 1);
        for (const char *line = n > 0 ? text : NULL; line; line = strchr(line, '\n')) {
                unsigned long long inside, outside, count;
                line += *line == '\n';
                if (sscanf(line, "%llu %llu %llu", &inside, &outside, &count) == 3 &&
                        inside + count > SANDBOX_UIDS_FROM)
                        return true;
        }
        return false;
}

/* Whether root may switch to an id of a sandbox, in a child; 0 or the errno. */
static int try_id(void)
{
        pid_t pid = fork();
        if (pid == 0)
                _exit(setresgid((gid_t)-1, SANDBOX_UIDS_FROM, (gid_t)-1) < 0 ||
                                      setresuid((uid_t)-1, SANDBOX_UIDS_FROM, (uid_t)-1) < 0
                              ? errno
                              : 0);
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static void check_user(struct report *report, bool rootless)
{
        if (!rootless && try_id() == EPERM) {
                struct doctor_check *none = add(report, "host uid for each sandbox", CHECK_MISSING);
                snprintf(none->fact, sizeof none->fact, "root here has no CAP_SETUID or no CAP_SETGID");
                snprintf(none->remedy, sizeof none->remedy,
                        "start it with both (of a container: --cap-add SETUID --cap-add SETGID), or as an ordinary user");
                return;
        }
        if (!rootless && !has_ids()) {
                struct doctor_check *none = add(report, "host uid for each sandbox", CHECK_MISSING);
                snprintf(none->fact, sizeof none->fact, "root of this user namespace has no ids to give to sandboxes");
                snprintf(none->remedy, sizeof none->remedy,
                        "start it outside of this user namespace, as an ordinary user, or with a map of more ids");
                return;
        }
        struct doctor_check *check = add(report, "host uid for each sandbox", rootless ? CHECK_WEAKER : CHECK_OK);
        snprintf(check->fact, sizeof check->fact, "%s",
                rootless ? "all sandboxes use your uid" : "distinct, from the configured range");
        if (rootless)
                snprintf(check->remedy, sizeof check->remedy,
                        "sandboxes share the kernel's quotas of one user: run as root for a uid each");
}

/* The mount has no layer: EINVAL means overlays are allowed here, and another errno gives the reason of a refusal. */
static int try_overlay(void)
{
        pid_t pid = fork();
        if (pid == 0) {
                if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                        _exit(errno);
                int fs = fsopen("overlay", FSOPEN_CLOEXEC);
                if (fs < 0)
                        _exit(errno);
                _exit(fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 && errno == EINVAL ? 0 : errno);
        }
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int try_attributes(void)
{
        auto_fd fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
        auto_fd mount =
                fs >= 0 && fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0 ? fsmount(fs, FSMOUNT_CLOEXEC, 0) : -1;
        auto_fd dir = mount < 0 ? -1 : openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return dir < 0 || fsetxattr(dir, "user.caisson", "1", 1, 0) < 0 ? errno : 0;
}

static void check_root(struct report *report, bool rootless)
{
        struct doctor_check *check = add(report, "root inside", CHECK_WEAKER);
        struct csn_error err;
        int sys;
        snprintf(check->fact, sizeof check->fact, "not available");
        if (rootless) {
                snprintf(check->remedy, sizeof check->remedy,
                        "persistent sandboxes with root need a block of host ids and mounts that map them: run as root");
                return;
        }
        auto_fd tree = -1;
        if (idmap_tree("/usr", SANDBOX_UIDS_MIN, &tree, &err) < 0)
                snprintf(check->remedy, sizeof check->remedy, "%.230s", err.text);
        else if ((sys = try_overlay()) != 0)
                snprintf(check->remedy, sizeof check->remedy,
                        "no overlayfs in a user namespace (%s): Linux 5.19 with CONFIG_OVERLAY_FS is needed",
                        strerrordesc_np(sys));
        else if ((sys = try_attributes()) != 0)
                snprintf(check->remedy, sizeof check->remedy,
                        "no attributes of users on tmpfs (%s): Linux 6.6 with CONFIG_TMPFS_XATTR is needed",
                        strerrordesc_np(sys));
        else
                check->state = CHECK_OK,
                snprintf(check->fact, sizeof check->fact,
                        "persistent sandboxes can have it: /usr is mapped, overlayfs writes over it");
}

static void check_program(struct report *report, const char *path, const char *language, const char *package)
{
        bool there = access(path, X_OK) == 0;
        struct doctor_check *check = add(report, language, there ? CHECK_OK : CHECK_WEAKER);
        snprintf(check->fact, sizeof check->fact, "%s%s", path, there ? "" : " is missing");
        if (!there)
                snprintf(check->remedy, sizeof check->remedy, "apt-get install %s", package);
}

/* Programs expected by E2B's clients in a sandbox, beside interpreters: each is used by a helper of the clients. */
static void check_tools(struct report *report)
{
        static const struct {
                const char *path, *package;
        } tools[] = { { "/usr/bin/git", "git" }, { "/usr/bin/curl", "curl" }, { "/usr/bin/ss", "iproute2" },
                { "/usr/bin/pgrep", "procps" }, { "/usr/bin/tput", "ncurses-bin" } };
        struct doctor_check *check = add(report, "programs of E2B's clients", CHECK_OK);
        char missing[80] = "", packages[80] = "";
        for (size_t i = 0; i < ARRAY_LEN(tools); i++)
                if (access(tools[i].path, X_OK) < 0) {
                        snprintf(missing + strlen(missing), sizeof missing - strlen(missing), "%s ",
                                strrchr(tools[i].path, '/') + 1);
                        snprintf(packages + strlen(packages), sizeof packages - strlen(packages), " %s",
                                tools[i].package);
                        check->state = CHECK_WEAKER;
                }
        snprintf(check->fact, sizeof check->fact, "%s", missing[0] ? missing : "git curl ss pgrep tput");
        if (missing[0]) {
                snprintf(check->fact + strlen(check->fact), sizeof check->fact - strlen(check->fact), "missing");
                snprintf(check->remedy, sizeof check->remedy, "apt-get install%s", packages);
        }
}

size_t probe_doctor(struct doctor_check checks[CHECKS_MAX])
{
        struct report report = { .checks = checks };
        const struct uid_range usual = { .first = SANDBOX_UIDS_MIN };
        bool rootless = geteuid() != 0 || uid_way(&usual) != UIDS_RANGE;
        check_kernel(&report);
        check_namespaces(&report);
        check_proc(&report);
        check_seccomp(&report);
        check_landlock(&report);
        check_cgroups(&report, rootless);
        check_user(&report, rootless);
        check_root(&report, rootless);
        check_program(&report, "/usr/bin/python3", "python", "python3");
        check_program(&report, "/usr/bin/node", "javascript", "nodejs");
        check_program(&report, "/bin/bash", "bash", "bash");
        check_tools(&report);
        return report.n;
}

/* ---- the tier of a pod ---- */

#define CAP_SYS_ADMIN_BIT 21

static int try_user_namespace(void)
{
        return try_namespace(CLONE_NEWUSER);
}

static int try_network(void)
{
        return try_namespace(CLONE_NEWUSER | CLONE_NEWNET);
}

static int try_mount(void)
{
        pid_t pid = fork();
        if (pid == 0) {
                if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                        _exit(errno);
                int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
                if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 || fsmount(fs, 0, 0) < 0)
                        _exit(errno);
                _exit(0);
        }
        int status;
        if (pid < 0 || waitpid(pid, &status, 0) != pid)
                return errno;
        return WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
}

static int try_id_range(void)
{
        const struct uid_range usual = { .first = SANDBOX_UIDS_MIN };
        return geteuid() == 0 && uid_way(&usual) == UIDS_RANGE && has_ids() ? 0 : EPERM;
}

/* Without arguments the kernel's own answer is EINVAL or EFAULT; a seccomp filter answers EPERM or ENOSYS. */
static int try_call(long number)
{
        return syscall(number, 0L, 0L) < 0 && (errno == ENOSYS || errno == EPERM) ? errno : 0;
}

static int try_clone3(void)
{
        return try_call(SYS_clone3);
}

static int try_io_uring(void)
{
        return try_call(SYS_io_uring_setup);
}

static int try_landlock(void)
{
        return probe_landlock_abi() ? 0 : ENOSYS;
}

enum feature { USER_NAMESPACES, ID_RANGES, NEW_PROC, MOUNTS, NETWORK, CLONE3, LANDLOCK, IO_URING };

static const struct {
        const char *name;
        int (*try)(void);
} features[] = {
        [USER_NAMESPACES] = { "user_namespaces", try_user_namespace },
        [ID_RANGES] = { "id_ranges", try_id_range },
        [NEW_PROC] = { "new_proc", try_proc },
        [MOUNTS] = { "mounts", try_mount },
        [NETWORK] = { "network", try_network },
        [CLONE3] = { "clone3", try_clone3 },
        [LANDLOCK] = { "landlock", try_landlock },
        [IO_URING] = { "io_uring", try_io_uring },
};

/* Whether this process is in the user namespace of the host, whose map has all ids (user_namespaces(7)). */
static bool is_in_host_users(void)
{
        char text[128];
        unsigned long long inside, outside, count;
        ssize_t n = io_read_file(AT_FDCWD, "/proc/self/uid_map", text, sizeof text - 1);
        return n > 0 && sscanf(text, "%llu %llu %llu", &inside, &outside, &count) == 3 && count == UINT32_MAX;
}

static bool has_sys_admin(void)
{
        char status[8192];
        ssize_t n = io_read_file(AT_FDCWD, "/proc/self/status", status, sizeof status - 1);
        const char *line = n > 0 ? strstr(status, "\nCapEff:") : NULL;
        return line && strtoull(line + strlen("\nCapEff:"), NULL, 16) >> CAP_SYS_ADMIN_BIT & 1;
}

static const char *tier_of(unsigned found)
{
        bool proc = found & 1U << NEW_PROC;
        if (has_sys_admin())
                return is_in_host_users() ? "F" : "D";
        if (!(found & 1U << USER_NAMESPACES) || !(found & 1U << MOUNTS) || !(found & 1U << CLONE3))
                return "E";
        if (found & 1U << ID_RANGES)
                return proc ? "A" : "A'";
        return proc ? "B" : is_in_host_users() ? "C'" : "C";
}

void probe_tier(struct host_tier *ret)
{
        unsigned found = 0;
        *ret = (struct host_tier){ 0 };
        for (size_t i = 0; i < ARRAY_LEN(features); i++) {
                size_t len = strlen(ret->missing);
                if (features[i].try() == 0)
                        found |= 1U << i;
                else
                        snprintf(ret->missing + len, sizeof ret->missing - len, "%s%s", len ? " " : "",
                                features[i].name);
        }
        bool is_contained = look() != HOST && look() != CHROOT;
        snprintf(ret->tier, sizeof ret->tier, "%s", is_contained ? tier_of(found) : "host");
}
