/*
 * sandbox: the isolation of one program.  Each file is one kernel mechanism; apply.c is the order of the steps.
 *
 *   probe.c        tests of the host's mechanisms, for `caisson doctor` and plan.c
 *   plan.c         request + abilities -> all decisions about a sandbox; pure, needs no rights
 *   uid_pool.c     a host uid, or a block of ids, used by no other live sandbox
 *   idmap.c        an id-mapped mount of a host tree                         parent side
 *   cgroup_hierarchy.c  the supervisor's folders in the hierarchies of cgroups  parent side
 *   cgroup_leaf.c  memory, CPU and process limits: one leaf a sandbox        parent side
 *   outer_init.c   process 1 of the outer namespaces: template of the root file system, parent of sandboxes and zygotes
 *   namespaces.c   namespaces, id maps, host name                            child side
 *   netns_pool.c   pool of network namespaces; a clean namespace is reused
 *   mount.c        the root file system: shared template and private mounts  child side
 *   grants.c       volumes and granted devices of one sandbox                child side
 *   image_root.c   the root file system of a sandbox in an image            child side
 *   overlay.c      the writable root file system of a sandbox with root
 *   proc_usage.c   memory and CPU time from /proc, where a controller is missing
 *   rlimits.c      rlimits                                                   child side
 *   privileges.c   capabilities, securebits, no_new_privs                    child side
 *   landlock.c     second barrier for files, sockets and signals             child side
 *   seccomp.c      allowed system calls                                      child side, last step
 *   apply.c        the order of the steps, as a table
 *   handoff.c      input files, arguments and environment from the engine, over the handoff socket
 *   inner_init.c   process 1 of a sandbox: starts the program, reaps, reports the exit status
 *   zygote_join.c  steps by which a zygote's child joins a sandbox
 *   verify.c       the same steps, seen from outside                        parent side
 *   sandbox.c      a sandbox, seen from the supervisor
 *
 * The *parent* (caisson-supervisor) owns cgroup, uid and clocks; the parent alone decides how a run ended.  The
 * *outer init* is the parent's child and process 1 of its own user, mount and pid namespaces: its mounts are
 * locked for all descendants, and its death kills them.  The *child* becomes process 1 of the namespaces of one
 * sandbox, makes the private part of the isolation and gives up all rights.  The program starts there by
 * execve(2), or arrives as a fork of a zygote.  A step that fails ends the run before any byte of foreign code is
 * read; the error has the step's name (docs/design/isolation.md, Order of steps).
 *
 * The root is built in one user namespace and used in a descendant user namespace: mounts inherited from a parent
 * user namespace are locked (mount_namespaces(7)).  So no capability inside can remove a mask, even without
 * seccomp and with capabilities.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "wire/wire.h"

#define SANDBOX_UID 1000           /* uid and gid inside, of `user` */
#define SANDBOX_HOME "/home/user"
/* Mount points of layers of packages.  /node_modules is a link to the second: both module kinds of Node look there. */
#define SANDBOX_PYTHON_LAYER "/opt/packages"
#define SANDBOX_NODE_LAYER "/opt/node_modules"
#define SANDBOX_MODULES "/opt/caisson/modules"   /* an empty folder of the runners, for a mount with WIRE_MODULES */
/*
 * Sandbox with root: the upper layer, of /usr alone or, in an image, of /.  Has the written files, and a character
 * device for each removed file.
 */
#define SANDBOX_CHANGED "/run/caisson/changed"
/* The folder of the volumes of a sandbox, each below its name. */
#define SANDBOX_VOLUMES "/mnt"
#define SANDBOX_HOST_NAME "sandbox"
/* Descriptor of the private channel, in the program. */
#define SANDBOX_CHANNEL_FD 3
#define GUEST_PATH "/opt/caisson/guest"
/* Descriptor of the socket to the engine, in the guest. */
#define GUEST_SOCKET_FD 3

/* ---- probe ---- */

/* Properties of the host on which a plan depends.  All zeros: no mechanism is available. */
struct abilities {
        bool rootless;             /* no CAP_SYS_ADMIN in the initial user namespace: a single uid */
        unsigned landlock_abi;
        enum wire_cgroup cgroup;
        unsigned controllers;      /* enum wire_controller bits: controllers this process can delegate */
        bool merged_usr;           /* /bin, /lib and their like are links into /usr */
        uint32_t id_blocks;        /* blocks for sandboxes with root; 0: the id range is too small */
};

/* One line of `caisson doctor`. */
enum check_state { CHECK_OK, CHECK_NOTE, CHECK_WEAKER, CHECK_MISSING };

struct doctor_check {
        const char *name;
        enum check_state state;
        char fact[160];            /* the finding */
        char remedy[400];          /* how to repair; "" for CHECK_OK */
};

#define CHECKS_MAX 48

/* Test each mechanism, by use where a use is harmless, in children.  Returns the number of checks. */
size_t probe_doctor(struct doctor_check checks[CHECKS_MAX]);

/* tier: "A" to "F" (docs/use/http.md), or "host"; missing: features that this host lacks, with blanks between. */
struct host_tier { char tier[8], missing[200]; };
void probe_tier(struct host_tier *ret);

/* Write to `text` why clone3(2) failed with errno `sys`, or `what` failed with EPERM, and the remedy. */
void probe_explain_clone(int sys, char *text, size_t size);
void probe_explain_forbidden(const char *what, char *text, size_t size);

/* Landlock ABI version of the kernel; 0: no Landlock. */
unsigned probe_landlock_abi(void);

/* Whether each of /bin, /lib and their like is absent or a link into /usr (file-hierarchy(7)). */
bool probe_merged_usr(void);

/* ---- uids ---- */

struct uid_range {
        uint32_t first;            /* at least 65536, above all accounts of the host */
        uint32_t count;            /* more than UIDS_RESERVED */
};

/*
 * How root can use host ids here.
 *   UIDS_RANGE  the ids of the range.
 *   UIDS_OWN    its own id only; the user namespace maps a single id, an ordinary user of the host.
 *   UIDS_FIRST  the first id of the range, shared by all sandboxes; root may switch to another id and may not write
 *               a map of several ids (CAP_SETUID and CAP_SETGID without CAP_SYS_ADMIN)
 */
enum uid_way { UIDS_RANGE, UIDS_OWN, UIDS_FIRST };
enum uid_way uid_way(const struct uid_range *range);

#define UIDS_RESERVED 2            /* the first id of the range is the outer init's, the second the zygotes' */

/*
 * Reserve a uid of the range, used by no other live sandbox of this host.  *ret_lock is a socket bound to the
 * uid's abstract name and belongs to the caller.  The kernel refuses a second socket with this name and frees the
 * name with the last descriptor, even after SIGKILL; no lock file can remain.
 *
 * Errors: CSN_E_BUSY (no free uid found), CSN_E_SYSTEM.  Source: unix(7).
 */
int uid_take(const struct uid_range *range, uint32_t *ret_uid, int *ret_lock, struct csn_error *err);

/*
 * A sandbox with root has a block of UID_BLOCK ids.  Ids 0 to UID_BLOCK - 2 inside are the first ids of the
 * block, in order; `nobody` inside is the last id.  Blocks lie at the end of the range and fill at most half;
 * single uids are reserved from the part before the blocks.
 */
#define UID_BLOCK 2000
#define SANDBOX_NOBODY 65534

/* Number of blocks in the range; 0: the range is too small. */
uint32_t uid_blocks(const struct uid_range *range);
/*
 * uid_take() for a block; *ret_first is the first id of the block.  Errors: CSN_E_UNSUPPORTED (the range has no
 * block), CSN_E_BUSY (no free block), CSN_E_SYSTEM.
 */
int uid_take_block(const struct uid_range *range, uint32_t *ret_first, int *ret_lock, struct csn_error *err);

/* ---- idmap ---- */

/*
 * Make a detached, read-only, id-mapped mount of a host tree, without its submounts.  Files of the host's root
 * and system accounts (ids 0 to 999) belong to the id `first` and the following ids of the block; files of other
 * accounts belong to `nobody`.  *ret_fd belongs to the caller.  Needs CAP_SYS_ADMIN over the tree's file system.
 *
 * Errors: CSN_E_UNSUPPORTED with the remedy, CSN_E_SYSTEM (`path` cannot be opened).  Source: mount_setattr(2),
 * MOUNT_ATTR_IDMAP (Linux 5.12; as the lower layer of an overlay 5.19).
 */
int idmap_tree(const char *path, uint32_t first, int *ret_fd, struct csn_error *err);
/*
 * The same for the tree of the image that the shape names, below the folder of all images; images_dir -1: there is no
 * such folder.  The files belong to the id `first`.
 */
int idmap_image(int images_dir, const struct wire_shape *shape, uint32_t first, int *ret_fd, struct csn_error *err);
/*
 * Set the id map of a detached mount of a volume: the id `on_disk` and the following `count` - 1 ids belong to the host
 * id `first` and the following ids; others to `nobody`.  Needs CAP_SYS_ADMIN over the file system.  Errors:
 * CSN_E_UNSUPPORTED with the remedy, CSN_E_SYSTEM.
 */
int idmap_mount(int mount_fd, uint32_t on_disk, uint32_t first, uint32_t count, struct csn_error *err);

/* ---- cgroup ---- */

/* The cgroup folder of one supervisor, parent of the leaves of all its sandboxes. */
struct cgroup_base;

/*
 * Find controllers, make this supervisor's folder, and remove folders of dead supervisors (a live supervisor
 * holds a flock(2) on its folder).  `parent` names the cgroup in which the folder is made.  "" selects the parent
 * automatically: our own cgroup, or on v2 the nearest ancestor with usable controllers.  Without any usable
 * controller *ret has mode WIRE_CGROUP_NONE.  *ret belongs to the caller until cgroup_close().
 *
 * Errors: CSN_E_CONFIG, only for a named parent (bad path, or no usable controller).
 */
int cgroup_open(const char *parent, struct cgroup_base **ret, struct csn_error *err);
/* Close and remove the folder; NULL is allowed. */
void cgroup_close(struct cgroup_base *base);
enum wire_cgroup cgroup_mode(const struct cgroup_base *base);
unsigned cgroup_controllers(const struct cgroup_base *base);
/* Paths of the folder in all hierarchies, newline-separated, for the janitor (supervisor.h).  Owned by `base`. */
const char *cgroup_paths(const struct cgroup_base *base);
/* Kill all processes below `paths` (a text of cgroup_paths()) and remove the folders. */
void cgroup_sweep(const char *paths);

struct cgroup_limits {
        uint64_t memory_bytes, cpu_milli, pids;
        /* CPU weight as a multiple of an ordinary leaf's weight; effective under contention only.  0: ordinary. */
        uint64_t cpu_times;
};

struct cgroup_usage {
        uint64_t cpu_us, memory_peak, pids_peak, oom_kills, pids_hits, throttled_us;
        /* v2: allocation failures at this cgroup's own limit.  v1 has no such counter: 0. */
        uint64_t oom_hits;
};

/* The cgroup of one sandbox: a folder in each hierarchy on v1, a single folder on v2.  Owns all its descriptors. */
#define CGROUP_PROCS_FDS_MAX 5
struct cgroup_leaf {
        struct cgroup_base *base;
        char name[WIRE_LABEL_MAX + 24];
        /*
         * v1: memory, cpu, pids, cpuacct (if separate from cpu), freezer (if persistent).  v2: the first entry
         * only.
         */
        int dir[5];
        /* The leaf can be frozen, and an OOM kills a single process instead of all. */
        bool persistent;
        /* v1: eventfd for OOM events.  v2: -1 (memory.oom.group kills the tree). */
        int oom_event;
        /* Counter files and cgroup.procs (v1: tasks) files.  Kept open in a reused leaf, else -1. */
        int files[8], procs_fds[CGROUP_PROCS_FDS_MAX];
        struct cgroup_limits limits;   /* limits in force */
        unsigned limited;          /* enum wire_controller bits of the limits in force */
};

/*
 * Make a leaf with these limits, or reuse a spare leaf.  `label` is the prefix of the leaf's name and is copied.
 * After an error the caller still calls cgroup_leaf_remove().  Errors: CSN_E_SYSTEM.
 */
int cgroup_leaf_open(struct cgroup_base *base, const char *label, const struct cgroup_limits *limits, bool persistent,
                     struct cgroup_leaf *ret, struct csn_error *err);
/* Change the limits of the leaf.  Errors: CSN_E_SYSTEM. */
int cgroup_leaf_limit(struct cgroup_leaf *leaf, const struct cgroup_limits *limits, struct csn_error *err);
/*
 * Freeze or thaw all processes.  Asynchronous: poll cgroup_leaf_is_frozen().  On v1 a frozen process does not
 * die, even of SIGKILL.  Errors: CSN_E_UNSUPPORTED (no freezer, with the remedy), CSN_E_SYSTEM.
 *
 * Source: freezer-subsystem.rst, cgroup-v2.rst.
 */
int cgroup_leaf_freeze(const struct cgroup_leaf *leaf, bool on, struct csn_error *err);
bool cgroup_leaf_is_frozen(const struct cgroup_leaf *leaf);
/*
 * Descriptors of the leaf's cgroup.procs (v1: tasks) files, for a single-threaded process that joins by itself: a
 * migration can take an RCU grace period (20 ms), too long for the supervisor's loop.  Returns the number of
 * descriptors, or a negative code.  cgroup_leaf_procs_fds_done() closes all but the descriptors kept by the leaf.
 * Errors: CSN_E_SYSTEM.
 */
int cgroup_leaf_procs_fds(const struct cgroup_leaf *leaf, int procs_fds[CGROUP_PROCS_FDS_MAX], struct csn_error *err);
void cgroup_leaf_procs_fds_done(const struct cgroup_leaf *leaf, int procs_fds[], int n);
/*
 * Process side: move the calling process into the cgroup.  The kernel checks the rights of the process that
 * opened the descriptors (Linux 5.16 and stable branches, cgroups v1 and v2).  Errors: CSN_E_SYSTEM.
 */
int cgroup_join_self(const int procs_fds[], size_t n, struct csn_error *err);
/*
 * Controllers (enum wire_controller bits) in force for a process that joined by `procs_fds` descriptors; 0 unless
 * the number equals the number of the leaf's hierarchies.
 */
unsigned cgroup_leaf_limited(const struct cgroup_leaf *leaf, int procs_fds);
/* Move process `pid` into the leaf, from outside.  Errors: CSN_E_SYSTEM. */
int cgroup_leaf_enter(const struct cgroup_leaf *leaf, pid_t pid, struct csn_error *err);
/* Current memory in bytes, and current number of processes and threads; 0: unknown. */
uint64_t cgroup_leaf_memory(const struct cgroup_leaf *leaf);
uint64_t cgroup_leaf_processes(const struct cgroup_leaf *leaf);
/* Whether the leaf has at most one process beside process 1, with any number of threads; false: unknown. */
bool cgroup_leaf_has_one_program(const struct cgroup_leaf *leaf);
/* Read all counters; 0: unknown. */
void cgroup_leaf_usage(const struct cgroup_leaf *leaf, struct cgroup_usage *ret);
/* Kill all processes of the leaf: cgroup.kill on v2 (Linux 5.14), else a signal to each listed process. */
void cgroup_leaf_kill(const struct cgroup_leaf *leaf);
/*
 * True if the leaf is empty: the leaf is then closed and removed, or stored as a spare for the next sandbox, with
 * its name.  Only v1 leaves are stored (a v1 leaf is a folder in each of four hierarchies), and only if every
 * counter is zero or could be reset to zero.  False: processes remain; call again later.
 */
bool cgroup_leaf_remove(struct cgroup_leaf *leaf);
/* An empty leaf; cgroup_leaf_remove() accepts an empty leaf. */
void cgroup_leaf_init(struct cgroup_leaf *leaf);

/* ---- usage from /proc, in place of a missing controller ---- */

struct tree_usage {
        uint64_t memory_bytes, cpu_us, processes;
        uint64_t waited_us;    /* longest run-queue delay of a process */
};

/* Memory (anonymous pages only), CPU time and number of processes of `root` and all its descendants. */
void tree_usage(pid_t root, struct tree_usage *ret);

/* ---- granted devices ---- */

#define DEVICE_NAME_MAX 48

/*
 * Check a path that an administrator grants: below /dev, at most one folder deep, DEVICE_NAME_MAX bytes without
 * "/dev/", letters, digits, ".", "_" and "-"; and not a device by which a program leaves the sandbox or harms the host.
 * 0, or -CSN_E_CONFIG with the rule as text.
 */
int device_check_path(const char *path, struct csn_error *err);
/*
 * Open a granted device as a detached mount.  The node is checked once more by type and number, so a link or a renamed
 * node is no way around device_check_path().  *ret_fd belongs to the caller.  Errors: CSN_E_UNSUPPORTED (no node, no
 * character device, a refused number).
 */
int device_open(const char *path, int *ret_fd, struct csn_error *err);
/* device_open() without the mount, for `caisson doctor`. */
int device_look(const char *path, struct csn_error *err);

/* ---- plan ---- */

/* A folder or file of the host, visible inside, read-only. */
struct plan_bind {
        const char *source;
        const char *target;
        bool required;
};

/* All decisions about one sandbox.  Contains no pointers, because the plan travels between processes. */
struct plan {
        struct wire_shape shape;   /* label is NULL */
        struct wire_limits limits; /* known from START on */
        struct abilities abilities;
        uint64_t clone_flags;      /* CLONE_NEW* */
        uint32_t host_uid;
        /* host_uid as an id of the outer init's user namespace; of a block the first id. */
        uint32_t outer_init_uid;
        bool landlock;
        bool degraded;             /* a controller is missing; rlimits and a poll replace its limit */
        struct cgroup_limits cgroup;
        int proxy;                 /* child: listening socket for the proxy, or -1 */
        int tool_socket;                 /* child: listening tool socket, or -1 */
        /* Child: /proc/sys/user, writable until the second user namespace is locked. */
        int sysctl_dir;
        int modules_dir;           /* child: with WIRE_MODULES the folder of modules, writable here alone; or -1 */
        int lower;                 /* child: with WIRE_ROOT the mapped /usr of the host or tree of the image, or -1 */
        /* Child: detached mounts of the shape's volumes and devices, in order; set by struct sandbox_mounts. */
        int volumes[WIRE_VOLUMES_MAX], devices[WIRE_DEVICES_MAX];
        size_t devices_n;
        char device_names[WIRE_DEVICES_MAX][DEVICE_NAME_MAX + 1];   /* below /dev */
        /* Each step writes its own part, after the step is in force. */
        struct wire_boundary boundary;
};

/*
 * Decide about namespaces, limits and layers.  Changes nothing on the host.
 *
 * Errors: CSN_E_INPUT (a number out of bounds), CSN_E_UNSUPPORTED (the host lacks a required mechanism; the text
 * has the remedy).
 */
int plan_make(const struct wire_shape *shape, const struct abilities *abilities, struct plan *ret,
        struct csn_error *err);

/*
 * Check the program's limits by the same rules and write them to the plan of an existing sandbox.  Errors:
 * CSN_E_INPUT.
 */
int plan_limit(struct plan *plan, const struct wire_limits *limits, struct csn_error *err);

struct plan_rlimit {
        int resource;
        bool early;                /* equal for all programs: set before the program is known */
        uint64_t soft, hard;
};

#define PLAN_RLIMITS_MAX 16
/* The rlimits of the plan.  Returns their number. */
size_t plan_rlimits(const struct plan *plan, struct plan_rlimit limits[PLAN_RLIMITS_MAX]);

/* Tables of the root file system, for mount.c and the tests. */
extern const struct plan_bind plan_binds[];
extern const size_t plan_binds_n;
extern const char *const plan_masked_files[];
extern const char *const plan_masked_folders[];   /* both NULL-terminated, relative to /proc */
#define PLAN_DEVICES 5             /* entries of plan_devices */
extern const char *const plan_devices[];

/* ---- the steps, child side ---- */

/*
 * Each step returns 0 or a negative code and writes the resulting fact to plan->boundary.  Errors: CSN_E_SYSTEM;
 * CSN_E_UNSUPPORTED (the kernel refuses an id map or the overlay of a sandbox with root).
 *
 * The suffix names the process: _child is process 1 as an ancestor of programs, _confined a zygote's child,
 * _reaper a process 1 with no other duty than to reap.
 */
int ns_child(struct plan *plan, struct csn_error *err);
int mount_child(struct plan *plan, struct csn_error *err);
int ns_lock_child(struct plan *plan, struct csn_error *err);   /* second user namespace */
int privs_child(struct plan *plan, struct csn_error *err);
int privs_confined(struct plan *plan, struct csn_error *err);
int privs_reaper(struct plan *plan, struct csn_error *err);
int landlock_child(struct plan *plan, struct csn_error *err);
int seccomp_child(struct plan *plan, struct csn_error *err);
int seccomp_confined(struct plan *plan, struct csn_error *err);
int seccomp_reaper(struct plan *plan, struct csn_error *err);

/*
 * Set rlimits of process `pid`, 0 for the caller.  A waiting interpreter gets the early rlimits at its start and
 * the late rlimits once its program is known.  Errors: CSN_E_SYSTEM.
 */
enum limits_when { LIMITS_EARLY, LIMITS_LATE, LIMITS_ALL };
int limits_set(const struct plan *plan, pid_t pid, enum limits_when when, struct csn_error *err);

/*
 * Run the steps in order (docs/design/isolation.md, Order of steps).  Process 1 calls apply_isolation(), then
 * apply_child() (it will be the program's ancestor) or apply_reaper() (a zygote's child has joined).  The zygote's
 * child calls apply_confined().  No foreign code exists in the sandbox before.  Errors: those of the steps, with the
 * name of the step.
 */
int apply_isolation(struct plan *plan, struct csn_error *err);
int apply_child(struct plan *plan, struct csn_error *err);
int apply_reaper(struct plan *plan, struct csn_error *err);
int apply_confined(struct plan *plan, struct csn_error *err);

/*
 * Parent side: write the id maps of a waiting outer init, all ids of `uids` or, rootless, our own id.  Errors:
 * CSN_E_UNSUPPORTED (no right to map ids), CSN_E_SYSTEM.
 */
int ns_map_outer_init(pid_t pid, const struct uid_range *uids, bool rootless, struct csn_error *err);
/*
 * Outer init side: write the id maps of a sandbox with root.  `first` is the block's first id in the outer init's
 * user namespace.  Errors: as ns_map_outer_init().
 */
int ns_map_block(pid_t pid, uint32_t first, struct csn_error *err);
/*
 * Outer init side: write the id maps of a sandbox in the domain of a zygote.  `uid` is the id of SANDBOX_UID in the
 * outer init's user namespace.  Errors: as ns_map_outer_init().
 */
int ns_map_user(pid_t pid, uint32_t uid, struct csn_error *err);
/* Whether the outer init writes the id maps: process 1 of such a sandbox has no right to. */
static inline bool ns_is_mapped_outside(const struct plan *plan)
{
        return plan->shape.flags & WIRE_ROOT || (plan->shape.domain && !plan->abilities.rootless);
}

struct shared_trees;
/*
 * Build the outer init's root: the host's /usr, the shared folders, which stay the caller's, and a private /proc.
 * Errors: CSN_E_SYSTEM.
 */
int mount_template(const struct shared_trees *trees, struct csn_error *err);
/*
 * Outer init side, before each sandbox.  Kernel modules add /proc entries at run time, so the list of entries to
 * mask is rebuilt, at most once a second.
 */
void mount_look(void);

/*
 * Reduce the caller to the capabilities of a zygote, needed to join a sandbox and kept over execve(2):
 * CAP_SYS_ADMIN, CAP_SYS_CHROOT, CAP_SYS_PTRACE.  `owns`: CAP_SYS_ADMIN alone, for a zygote that owns the user
 * namespaces of the sandboxes of its domain.  Takes `uid` and sets no_new_privs.  Errors: CSN_E_SYSTEM.
 */
int privs_zygote(uint32_t uid, bool owns, struct csn_error *err);
/* The zygote's filter.  Errors: CSN_E_SYSTEM. */
int seccomp_zygote(struct csn_error *err);
/*
 * The base filter, inherited by all sandboxes and zygotes.  Loaded once, with CAP_SYS_ADMIN in the outer init's
 * user namespace.  Errors: CSN_E_SYSTEM.
 */
int seccomp_outer_init(struct csn_error *err);
/*
 * Mount a private /tmp, /dev/shm and home for a zygote, and the layers and the image of its shape.  Errors:
 * CSN_E_SYSTEM.
 */
int mount_zygote(const struct wire_shape *shape, struct csn_error *err);

/* ---- seccomp programs, for the tests and the fuzzers ---- */

struct sock_filter;
/*
 * The filter of `kind` for this architecture, *ret_len instructions in static memory.
 *
 * Filters stack.  SECCOMP_OUTER_INIT is the filter of a sandbox plus the set-up calls (calls needed to build the
 * isolation).  SECCOMP_ZYGOTE refuses the set-up calls except for calls by which a zygote's child joins a
 * sandbox.  SECCOMP_LAST refuses all set-up calls; on top of SECCOMP_OUTER_INIT the result equals
 * SECCOMP_SANDBOX.  SECCOMP_LAST_ROOT also lets a process of a sandbox with root give up capabilities.  The two
 * _DEVICES allow ioctl(2) with the numbers of drivers of GPUs, for sandboxes with granted devices.
 * SECCOMP_REAPER, of a process 1 with no other duty than to reap, allows next to nothing.
 */
enum seccomp_kind {
        SECCOMP_SANDBOX,
        SECCOMP_OUTER_INIT,
        SECCOMP_ZYGOTE,
        SECCOMP_LAST,
        SECCOMP_LAST_ROOT,
        SECCOMP_LAST_DEVICES,
        SECCOMP_LAST_ROOT_DEVICES,
        SECCOMP_REAPER,
        SECCOMP_ENGINE,
        SECCOMP_OPENER,
        SECCOMP_KINDS
};
const struct sock_filter *seccomp_program(enum seccomp_kind kind, size_t *ret_len);

enum seccomp_verdict { SECCOMP_ALLOW, SECCOMP_CHECK, SECCOMP_ERRNO };
/*
 * The table's verdict for system call number `nr`; *ret_errno is set for SECCOMP_ERRNO.  False: the table has no
 * such call.
 */
bool seccomp_lookup(long nr, enum seccomp_verdict *ret_verdict, int *ret_errno);

/* ---- the same mechanisms for our own processes: rights the engine gives up before listening ---- */

#define SANDBOX_UIDS_MIN 65536     /* ids below belong to accounts of the host */

/*
 * privs_bound() empties the bounding set, if permitted.  privs_drop() empties all other sets and sets
 * no_new_privs, for good.  Errors: CSN_E_SYSTEM.
 */
int privs_bound(struct csn_error *err);
int privs_drop(struct csn_error *err);
/* Load the filter of `kind` for the calling process.  Errors: CSN_E_SYSTEM. */
int seccomp_self(enum seccomp_kind kind, struct csn_error *err);

enum landlock_use { LANDLOCK_READ, LANDLOCK_WRITE /* and read */, LANDLOCK_RUN /* and read */ };
struct landlock_place {
        const char *path;          /* "" and paths without a file are skipped */
        enum landlock_use use;
};
/*
 * Make Landlock rules for these places and the files below; execution elsewhere, all TCP ports and foreign
 * abstract sockets are refused.  The rules are made while the places are still reachable, and enforced later by
 * landlock_enter().  Without Landlock in the kernel *ret_abi is 0 and *ret_fd -1.  *ret_fd belongs to the caller.
 * Errors: CSN_E_SYSTEM.
 */
int landlock_make(const struct landlock_place *places, size_t n, int *ret_fd, unsigned *ret_abi, struct csn_error *err);
int landlock_enter(int rules_fd, struct csn_error *err);

/* ---- handoff socket, receiving side ---- */

struct handoff_taken {
        struct wire_program program;
        int in;                    /* standard input, owned by the caller; or -1 */
        /* The only input file: sent with its content in the packet, and in no folder.  Otherwise without a name. */
        struct wire_file only;
};

/* Where files are written; modules is -1 in a sandbox without WIRE_MODULES. */
struct handoff_folders {
        int home, modules;
};

/*
 * Receive input files and modules into their folders until PROGRAM arrives.  Memory of *ret lives in `arena`.  The
 * first file, in most runs the program's own text, goes back over the socket as a descriptor: after the run the file
 * opener is then not needed for this file.  The end of the connection means the engine's death and ends this
 * process.
 *
 * Errors: CSN_E_INPUT (a file does not fit, two files have the same name), CSN_E_PROTOCOL, CSN_E_SYSTEM.
 */
int handoff_take(int handoff, const struct handoff_folders *folders, struct arena *arena, struct handoff_taken *ret,
        struct csn_error *err);

/* ---- network namespaces, made and kept by the outer init ---- */

#define NET_FILES 6

struct net {
        struct net *next;
        int fd;
        int files[NET_FILES];      /* kernel files with the namespace's state, or -1 */
        bool is_open;              /* all of `files` are open */
        pid_t pid;                 /* process 1 of the sandbox in this namespace */
};

struct nets {
        int own;                   /* the outer init's own namespace */
        struct net *ready, *used;  /* clean; in use */
        size_t ready_n, open_n;    /* open_n: namespaces with open files */
        char fresh[32 * 1024];     /* state of a new namespace, in the kernel's text */
        size_t fresh_len;
};

void nets_init(struct nets *nets);
/*
 * Enter a new or clean network namespace.  The caller owns the result until nets_give() or nets_drop().  NULL on
 * error: CSN_E_SYSTEM.
 */
struct net *nets_enter(struct nets *nets, struct csn_error *err);
/* Return to the outer init's own namespace.  0; -1 with errno. */
int nets_leave(const struct nets *nets);
/* Record the namespace as used by the sandbox with process 1 `pid`. */
void nets_give(struct nets *nets, struct net *net, pid_t pid);
/* Close and free a namespace. */
void nets_drop(struct nets *nets, struct net *net);
/*
 * After process 1 `pid` was reaped (its whole pid namespace is dead then): recycle the namespace if its state
 * equals a new namespace's, else drop the namespace.
 */
void nets_take_back(struct nets *nets, pid_t pid);

/* ---- the outer init ---- */

struct outer_init {
        pid_t pid;
        int sock;                  /* SOCK_SEQPACKET, struct outer_init_message */
        bool rootless;             /* the outer init has a single id: its starter's */
};

enum outer_init_op {
        OUTER_INIT_READY = 1,  /* outer init: the root is built */
        /*
         * Parent: make process 1 of a sandbox.  Descriptors: control socket, stdout, stderr, channel, handoff
         * socket; with WIRE_ROOT the lower layer; volumes; devices.
         */
        OUTER_INIT_BARE,
        /* Parent: start a zygote.  Descriptor: its control socket, with the command line queued as PROGRAM. */
        OUTER_INIT_ZYGOTE,
        OUTER_INIT_MADE,       /* outer init: pid, with a pidfd */
        OUTER_INIT_FAILED,     /* outer init: an error */
        OUTER_INIT_DIED,       /* outer init: pid, wait(2) status word and counters of a child */
};

struct outer_init_message {
        uint32_t op;
        uint32_t id;               /* of the job or the zygote */
        int32_t pid;               /* in the outer init's pid namespace */
        int32_t status;
        uint64_t cpu_us, memory_peak;
        union {
                struct plan plan;
                struct csn_error error;
        };
};

/*
 * Folders of this host that sandboxes can have, read-only.  A layer is the folder <32 hexadecimal digits>/tree of
 * layers_dir, an image that of images_dir; "": there are none, and the same holds for a folder that does not exist.
 */
struct shared_folders {
        const char *runner_dir, *layers_dir, *images_dir;
};

/* The same folders as descriptors: detached mounts, or the folders themselves (O_PATH).  -1: none. */
struct shared_trees {
        int runners, layers, images;
};

/*
 * Open the folders, before other programs can put links in their places.  The caller owns the descriptors until
 * shared_dirs_close().  A folder that cannot be opened is -1.
 */
void shared_dirs_open(const struct shared_folders *folders, struct shared_trees *ret);
void shared_dirs_close(struct shared_trees *dirs);

/*
 * Start an outer init, which then builds its root and sends OUTER_INIT_READY or OUTER_INIT_FAILED.  Requests may be
 * sent before.  With privileges the root has `dirs`, without privileges it has `folders`.  The caller owns *outer_init
 * until outer_init_stop(), after an error too.
 *
 * Errors: CSN_E_UNSUPPORTED with the remedy, CSN_E_SYSTEM.
 */
int outer_init_start(struct outer_init *outer_init, const struct uid_range *uids, bool rootless,
        const struct shared_folders *folders, const struct shared_trees *dirs, struct csn_error *err);
/* Wait for OUTER_INIT_READY.  Errors: those of the outer init; CSN_E_SYSTEM (it ended). */
int outer_init_await(const struct outer_init *outer_init, struct csn_error *err);
/* Kill the outer init; the kernel then kills all descendants (pid_namespaces(7)). */
void outer_init_stop(struct outer_init *outer_init);

/* ---- zygotes ---- */

#define ZYGOTE_SOCKET_FD 3

enum zygote_op {
        ZYGOTE_SERVES = 1, /* zygote: modules are loaded; info is a JSON object */
        /* Parent.  Descriptors: pidfd of the sandbox's process 1, talk, stdout, stderr, channel, handoff socket. */
        ZYGOTE_FORK,
        ZYGOTE_FORKED,     /* zygote: pid in the outer init's pid namespace, with a pidfd */
        ZYGOTE_FAILED,     /* zygote: an error; id 0: the zygote cannot serve at all */
};

struct zygote_message {
        uint32_t op;
        uint32_t id;               /* of the job */
        int32_t pid;
        union {
                struct plan plan;
                struct csn_error error;
                char info[4096];
        };
};

/*
 * Zygote's child, right after fork(2): take descriptors and namespaces of a sandbox, give up all rights, and send
 * INNER_INIT_CONFINED.  `fds` has the order of ZYGOTE_FORK; all other descriptors are closed.  in_cgroup() is
 * called once memory is charged to the sandbox and before the first isolation step.  An error is reported to the
 * parent, too.  Errors: CSN_E_SYSTEM and those of apply_confined().
 */
int join_enter(struct plan *plan, int fds[6], void (*in_cgroup)(void), struct csn_error *err);

/*
 * Wait for the program: files, arguments, environment, and INNER_INIT_RUN from the parent.  On return standard
 * input and rlimits are in place and ret->in is -1.  Errors: as handoff_take(), limits_set().
 */
int join_wait(struct plan *plan, struct arena *arena, struct handoff_taken *ret, struct csn_error *err);

/* ---- a sandbox, parent side ---- */

struct sandbox {
        /* Process 1, in the outer init's pid namespace; 0: none, or dead. */
        pid_t pid;
        int pid_fd;
        int control;               /* SOCK_SEQPACKET to process 1 */
        /*
         * An interpreter inside a guest's sandbox; has no sandbox of its own.  pid_fd is a duplicate of the
         * guest's.
         */
        bool visits;
        /* The forked interpreter, in the outer init's pid namespace; its parent is the outer init. */
        pid_t program;
        int program_fd;
        int talk;                  /* SOCK_SEQPACKET to the interpreter */
        int uid_lock;
        /* Stdout, stderr, channel and handoff socket, until an interpreter has received them. */
        int inner[4];
        int outer[WIRE_ENDS];      /* the engine's ends, until READY hands them over */
        struct cgroup_leaf leaf;
        struct plan plan;
};

/* An empty sandbox: sandbox_close() accepts an empty sandbox. */
void sandbox_init(struct sandbox *sandbox);

/*
 * What a sandbox is made of, from the supervisor.  open_mounts() opens the volumes and devices of plan->shape into the
 * plan, once the ids of the sandbox are known; descriptors that were set are closed by sandbox_open() in each case.
 */
struct sandbox_host {
        const struct abilities *abilities;
        struct cgroup_base *cgroups;
        const struct uid_range *uids;
        int images_dir;            /* the folder of all images, or -1 */
        struct send_queue *outer_init;
        int (*open_mounts)(void *owner, struct plan *plan, struct csn_error *err);
        void *owner;
};

/*
 * Request a sandbox from the outer init; call sandbox_made() after the outer init's answer.  The caller calls
 * sandbox_close() in each case, after an error too.
 *
 * Errors: CSN_E_INPUT (shape), CSN_E_UNSUPPORTED with the remedy, CSN_E_BUSY (no free uid or descriptor),
 * CSN_E_SYSTEM.
 */
int sandbox_open(struct sandbox *sandbox, uint32_t id, const struct wire_shape *shape,
        const struct sandbox_host *host, struct csn_error *err);

/* The pid in the caller's pid namespace of the process of a pidfd; -1: it is dead, or the descriptor is no pidfd. */
pid_t sandbox_pid_of(int pid_fd);
/*
 * Look from outside whether the joined interpreter is confined: uid, capabilities, no_new_privs, seccomp, namespaces,
 * cgroup.  Landlock and the content of its last filter cannot be seen.  For an interpreter from a zygote with foreign
 * code, after INNER_INIT_CONFINED and before the program.  Errors: CSN_E_SYSTEM (it is not).
 */
int sandbox_verify(const struct sandbox *sandbox, struct csn_error *err);

/* Move a process into a cgroup, by its pidfd.  Errors: CSN_E_SYSTEM. */
int sandbox_enter_leaf(const struct cgroup_leaf *leaf, int pid_fd, struct csn_error *err);

/* tree_usage() of all processes inside. */
void sandbox_tree(const struct sandbox *sandbox, struct tree_usage *ret);

/* Current resource use, from the available controllers, otherwise from /proc.  `processes` excludes process 1. */
void sandbox_read_stats(const struct sandbox *sandbox, struct wire_stats *ret);

/*
 * Process 1 exists: send its cgroup descriptors and let process 1 continue.  Takes ownership of pid_fd.  Errors:
 * CSN_E_SYSTEM.
 */
int sandbox_made(struct sandbox *sandbox, pid_t pid, int pid_fd, struct csn_error *err);

/*
 * Request a fork of the interpreter from a zygote; call sandbox_confined() after the zygote's answer.  Errors:
 * CSN_E_BUSY (no free descriptor), CSN_E_SYSTEM.
 */
int sandbox_join(struct sandbox *sandbox, uint32_t id, struct send_queue *zygote, struct csn_error *err);
/*
 * The interpreter exists: send the cgroup descriptors of `leaf` (the sandbox's own leaf; for JOIN_GUEST the leaf
 * of the guest's sandbox).  Takes ownership of pid_fd.  Errors: CSN_E_SYSTEM.
 */
int sandbox_confined(struct sandbox *sandbox, const struct cgroup_leaf *leaf, pid_t pid, int pid_fd,
        struct csn_error *err);
/*
 * Initialize *sandbox as an interpreter inside the guest's sandbox `host`.  `fds` are the descriptors of
 * JOIN_GUEST and are taken.  Errors: CSN_E_BUSY (no free descriptor), CSN_E_SYSTEM.
 */
int sandbox_join_guest(struct sandbox *sandbox, const struct sandbox *host, int fds[WIRE_ENTRIES],
        struct csn_error *err);

/*
 * Send INNER_INIT_WORKER, _RELEASE, _RUN, _GUEST or _END to process 1; _RUN goes to the joined interpreter, if
 * present.  Errors: CSN_E_SYSTEM.
 */
int sandbox_tell(struct sandbox *sandbox, uint32_t op, struct csn_error *err);

/*
 * Set the cgroup's limits to the program's limits where the two differ; no effect for an interpreter inside a
 * guest's sandbox.  Errors: CSN_E_SYSTEM.
 */
int sandbox_limit(struct sandbox *sandbox, struct csn_error *err);

/*
 * Kill all processes inside, at once: the death of process 1 ends its whole pid namespace (pid_namespaces(7)).
 * For an interpreter inside a guest's sandbox, kill the interpreter only.
 */
void sandbox_kill(struct sandbox *sandbox);
/* Kill only the joined interpreter, if present. */
void sandbox_kill_program(const struct sandbox *sandbox);
/* Whether the interpreter exists, alive or as a zombie; false after its parent has reaped the process. */
bool sandbox_has_program(const struct sandbox *sandbox);

/*
 * Close all descriptors and release cgroup and uid, after the death of process 1.  False: the cgroup is not
 * empty; call again later (the uid stays reserved until then).
 */
bool sandbox_close(struct sandbox *sandbox);

/* Messages between the parent and processes inside, over control and talk, one a packet. */
enum inner_init_op {
        /* Parent: join the cgroup by the attached cgroup.procs descriptors, and continue. */
        INNER_INIT_GO = 1,
        /*
         * Process 1: the isolation is complete.  Descriptors: home directory, listening sockets of WIRE_PROXY and
         * WIRE_TOOL_SOCKET.
         */
        INNER_INIT_READY,
        /*
         * Parent: start the interpreter whose command line waits on the handoff socket; its program follows
         * later.
         */
        INNER_INIT_WORKER,
        /* Parent: a zygote's child has joined.  Close all descriptors of the program and reap. */
        INNER_INIT_RELEASE,
        /* The interpreter is in place and waits.  From a zygote's child, with its boundary. */
        INNER_INIT_CONFINED,
        /* Parent: take the program from the handoff socket and start it.  Carries the limits. */
        INNER_INIT_RUN,
        /* Parent: become the guest.  Carries the limits of all its programs. */
        INNER_INIT_GUEST,
        /* Process 1: all rights are given up, and no input of a program was read before.  Carries the boundary. */
        INNER_INIT_CLOSED,
        INNER_INIT_RUNNING,      /* the program starts, or the guest */
        /* Process 1: the program ended.  Carries the wait(2) status word and whether processes remain. */
        INNER_INIT_EXITED,
        INNER_INIT_END,          /* parent: the program ended; exit after the last process */
        INNER_INIT_FAILED,       /* carries a struct csn_error */
};

#define INNER_INIT_FDS 5
#define INNER_INIT_FDS_MAX (INNER_INIT_FDS + 1 + WIRE_VOLUMES_MAX + WIRE_DEVICES_MAX)
/* The number of descriptors of OUTER_INIT_BARE with this plan. */
size_t inner_init_fds(const struct plan *plan);

struct inner_init_message {
        uint32_t op;
        union {
                struct {
                        int status;
                        int left;  /* 1: processes remain, or unknown */
                };
                struct wire_limits limits;
                struct {
                        struct wire_boundary boundary;
                        int procs_fds;   /* READY: number of cgroups joined by process 1 */
                };
                struct csn_error error;
        };
};

/*
 * /proc/1/cmdline is readable for every process inside.  main() calls init_own_title() once with its own argv,
 * whose texts main() has copied before; init_wipe_title() erases the texts and sets the title "init".
 */
void init_own_title(int argc, char **argv);
void init_wipe_title(void);

/*
 * Wait for INNER_INIT_GO and join the cgroup by the attached descriptors.  *ret_procs_fds is their number.  The
 * end of the connection (the supervisor is dead) ends this process.  Errors: CSN_E_SYSTEM.
 */
int inner_init_go(int sock, int *ret_procs_fds, struct csn_error *err);

/*
 * Body of process 1.  `fds`: control, stdout, stderr, channel, handoff socket; with WIRE_ROOT the lower layer; the
 * volumes; the devices.
 */
_Noreturn void inner_init_main(struct plan *plan, int fds[INNER_INIT_FDS_MAX]);

/*
 * Move these n descriptors (entries of -1 are skipped) to numbers from 10 up and close all other descriptors.  0,
 * 1 and 2 become /dev/null, so that no later descriptor gets such a number.  Errors: CSN_E_SYSTEM.
 */
int descriptors_keep(int *fds[], size_t n, struct csn_error *err);

/* Reopen standard input as /dev/null of the current root.  Errors: CSN_E_SYSTEM. */
int descriptors_null(struct csn_error *err);

#endif
