/*
 * sandbox: one kernel mechanism a file, and the order in which they go on.
 *
 *   probe     what this host can enforce                         (doctor, plan)
 *   plan      request + abilities -> everything that will be done; pure, no rights needed
 *   uids      a host uid that no other live sandbox has
 *   cgroup    memory, CPU, pids: a leaf for each sandbox          parent's door
 *   ns        namespaces, id maps, loopback, host name            both doors
 *   mount     the root file system                                child's door
 *   tree      memory and CPU read from /proc, where no controller counts
 *   limits    rlimits                                             child's door
 *   privs     capabilities, securebits, no_new_privs              child's door
 *   landlock  the second wall around files, sockets, signals      child's door
 *   seccomp   which system calls exist                            child's door, last
 *   apply     the order, in one table
 *   init      process 1 inside: receives files, starts the program, reaps, tells how it ended
 *
 * Two processes work on a sandbox.  The *parent* (caisson-supervisor) owns cgroup, uid and clocks and is
 * the only one that decides how a run ended.  The *child* becomes process 1 of the new namespaces, builds
 * the root, gives up everything, and then starts the program.  Any step that fails ends the run before a
 * byte of foreign code was looked at, with the step's name (security.md (b)).
 *
 * The root is built in one user namespace and used in a second one below it: mounts that come from a
 * parent user namespace are locked (mount_namespaces(7)), so that no capability inside could ever undo a
 * mask, even before seccomp and the empty capability sets are asked.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "wire/wire.h"

#define SANDBOX_UID 1000           /* inside, `user` */
#define SANDBOX_HOME "/home/user"
#define SANDBOX_HOST_NAME "sandbox"
#define SANDBOX_CHANNEL_FD 3       /* the private channel inside */

/* ---- probe ---- */

/* What decides how a sandbox is made on this host.  All zeros: nothing is there. */
struct abilities {
        bool rootless;             /* no CAP_SYS_ADMIN in the initial sense: one uid only */
        unsigned landlock_abi;
        enum wire_cgroup cgroup;
        unsigned controllers;      /* enum wire_controller bits that this process can hand out */
        bool swap_limit;           /* memory+swap can be bounded (v1: memsw files) */
};

/* One line of `caisson doctor`. */
enum check_state { CHECK_OK, CHECK_WEAKER, CHECK_MISSING };

struct check {
        const char *name;
        enum check_state state;
        char fact[160];            /* what was found */
        char remedy[240];          /* what to do about it; "" when all is well */
};

#define CHECKS_MAX 24

/* Every mechanism, tried for real where trying is harmless (user namespaces: in a child). */
size_t probe_doctor(struct check checks[CHECKS_MAX]);

/* In words, why clone3(2) with these namespaces failed with this errno, and the remedy. */
void probe_explain_clone(int sys, char *text, size_t size);

unsigned probe_landlock_abi(void);

/* ---- uids ---- */

struct uid_range {
        uint32_t first;            /* at least 65536: never an account of the host */
        uint32_t count;
};

/*
 * A uid of the range that no other live sandbox of this host has.  *ret_lock is a socket bound to the
 * uid's own abstract name: the kernel refuses a second one and frees the name when the last descriptor
 * closes, even after SIGKILL, so that there is no file to leave behind.  Errors: CSN_E_BUSY.
 */
int uid_take(const struct uid_range *range, uint32_t *ret_uid, int *ret_lock, struct csn_error *err);

/* ---- cgroup ---- */

/* The folder that all sandboxes of one supervisor share. */
struct cgroup_base;

/*
 * Find controllers, make this supervisor's own folder, and remove the folders that dead supervisors left
 * (each live one holds a flock(2) on its own).  `parent` names the cgroup below which to work; "" is
 * automatic: our own cgroup, or on v2 the nearest ancestor that can have controllers.  Fails only for a
 * parent that was named; without any usable controller *ret has mode WIRE_CGROUP_NONE.
 */
int cgroup_open(const char *parent, struct cgroup_base **ret, struct csn_error *err);
void cgroup_close(struct cgroup_base *base);
enum wire_cgroup cgroup_mode(const struct cgroup_base *base);
unsigned cgroup_controllers(const struct cgroup_base *base);
/* The folder's paths, one a line, for the janitor; see supervisor.h. */
const char *cgroup_paths(const struct cgroup_base *base);
/* Kill what is in the folders (a text of cgroup_paths()) and remove them. */
void cgroup_sweep(const char *paths);

struct cgroup_limits {
        uint64_t memory_bytes, cpu_milli, pids;
};

struct cgroup_usage {
        uint64_t cpu_us, memory_peak, pids_peak, oom_kills, pids_hits, throttled_us;
};

/* One sandbox's leaf: in every hierarchy on v1, one folder on v2. */
struct cgroup_leaf {
        struct cgroup_base *base;
        char name[WIRE_LABEL_MAX + 24];
        int dir[4];                /* v1: memory, cpu, pids, cpuacct (if apart from cpu); v2: only the first */
        int oom_event;             /* v1: eventfd that tells an OOM; v2: -1 (memory.oom.group kills the tree) */
};

int cgroup_leaf_open(struct cgroup_base *base, const char *label, const struct cgroup_limits *limits,
                     struct cgroup_leaf *ret, struct csn_error *err);
/* Put a process in, from outside (v1, and v2 without CLONE_INTO_CGROUP). */
int cgroup_leaf_enter(const struct cgroup_leaf *leaf, pid_t pid, struct csn_error *err);
/* The descriptor for CLONE_INTO_CGROUP (Linux 5.7), or -1 on v1. */
int cgroup_leaf_clone_fd(const struct cgroup_leaf *leaf);
void cgroup_leaf_usage(const struct cgroup_leaf *leaf, struct cgroup_usage *ret);
/* Kill everything in it (v2: cgroup.kill, Linux 5.14; else signals to what is listed). */
void cgroup_leaf_kill(const struct cgroup_leaf *leaf);
/* True when it could be removed, that is, when nothing is in it any more.  Closes the leaf. */
bool cgroup_leaf_remove(struct cgroup_leaf *leaf);
void cgroup_leaf_init(struct cgroup_leaf *leaf);

/* ---- tree: what stands in for a controller that is missing ---- */

struct tree_usage {
        uint64_t memory_bytes, cpu_us, processes;
};

/* Memory (without file-backed and shared pages) and CPU time of a process and all below it. */
void tree_usage(pid_t root, struct tree_usage *ret);

/* ---- plan ---- */

/* A folder or file of the host that is seen inside, read-only. */
struct plan_bind {
        const char *source;
        const char *target;
        bool required;
};

struct plan {
        struct wire_start start;
        struct abilities abilities;
        uint64_t clone_flags;      /* CLONE_NEW* */
        const char *runner_dir;    /* of the host; mounted at /opt/caisson */
        int runner_tree;           /* the same as a detached mount of the parent's, or -1: the child opens it */
        uint32_t host_uid;
        bool own_uid;
        bool landlock;
        bool degraded;             /* some controller is missing: rlimits and a poll stand in */
        struct cgroup_limits cgroup;
        int proxy;                 /* child: the socket that listens for the proxy, or -1 */
        int sysctl_dir;            /* child: /proc/sys/user, kept writable until the second namespace is closed */
        struct wire_boundary boundary;   /* each layer that went on writes its own part, as a fact */
};

/*
 * Decide everything.  Errors: CSN_E_INPUT (a number out of bounds), CSN_E_UNSUPPORTED (what is required is
 * not there; the text has the remedy).  Nothing is touched.
 */
int plan_make(const struct wire_start *start, const struct abilities *abilities, const char *runner_dir,
              struct plan *ret, struct csn_error *err);

struct plan_rlimit {
        int resource;
        uint64_t soft, hard;
};

#define PLAN_RLIMITS_MAX 16
size_t plan_rlimits(const struct plan *plan, struct plan_rlimit limits[PLAN_RLIMITS_MAX]);

/* The fixed tables of the root file system, for mount.c and for the tests. */
extern const struct plan_bind plan_binds[];
extern const size_t plan_binds_n;
extern const char *const plan_masked_files[];
extern const char *const plan_masked_folders[];   /* both NULL-terminated, relative to /proc */
extern const char *const plan_devices[];

/* ---- the layers, child's doors; each reports the fact in plan->boundary ---- */

int ns_child(struct plan *plan, struct csn_error *err);
int mount_child(struct plan *plan, struct csn_error *err);
int ns_lock_child(struct plan *plan, struct csn_error *err);   /* the second user namespace */
int privs_child(struct plan *plan, struct csn_error *err);
int landlock_child(struct plan *plan, struct csn_error *err);
int seccomp_child(struct plan *plan, struct csn_error *err);
int limits_child(const struct plan *plan, struct csn_error *err);   /* for the program only */

/* Parent's door of ns: id maps of a child that waits. */
int ns_map_ids(pid_t pid, uint32_t host_uid, struct csn_error *err);

/* Everything of the above in its order (security.md (b)). */
int apply_child(struct plan *plan, struct csn_error *err);

/* ---- seccomp's program, for the tests and the fuzzers ---- */

struct sock_filter;
/* The filter for this architecture; static, *ret_len instructions. */
const struct sock_filter *seccomp_program(size_t *ret_len);

enum seccomp_verdict { SECCOMP_ALLOW, SECCOMP_CHECK, SECCOMP_ERRNO };
/* How the table treats a system call by number; *ret_errno for SECCOMP_ERRNO.  false: it is not in the table. */
bool seccomp_lookup(long nr, enum seccomp_verdict *ret_verdict, int *ret_errno);

/* ---- a sandbox, seen by the parent ---- */

struct sandbox {
        pid_t pid;                 /* of process 1, in our pid namespace */
        int pid_fd;
        int control;               /* SOCK_SEQPACKET to process 1 */
        int uid_lock;
        struct cgroup_leaf leaf;
        struct plan plan;
};

void sandbox_init(struct sandbox *box);

/*
 * Make a sandbox and its process 1, which builds the root and waits for start.files_n files.  fds are the
 * program's stdin, stdout, stderr and channel, and the files socket or -1; they stay the caller's.
 * Errors: CSN_E_UNSUPPORTED with the remedy, CSN_E_BUSY (no uid free), CSN_E_SYSTEM.
 */
int sandbox_open(struct sandbox *box, const struct wire_start *start, const struct abilities *abilities,
                 struct cgroup_base *base, const struct uid_range *uids, const char *runner_dir,
                 const int fds[WIRE_FDS_MAX], struct csn_error *err);

/* Kill everything inside, at once: process 1 takes its whole pid namespace along (pid_namespaces(7)). */
void sandbox_kill(struct sandbox *box);

/*
 * Give back uid and cgroup once process 1 is dead.  False: the cgroup is not empty yet, call again later
 * (the uid stays taken until then).
 */
bool sandbox_close(struct sandbox *box);

/* What process 1 tells the parent over the control socket, one packet each. */
enum init_op {
        INIT_GO = 1,       /* parent: id maps and cgroup are in place */
        INIT_READY,        /* child: the root is built; the home directory, and with WIRE_PROXY the listening socket */
        INIT_RUNNING,      /* child: everything is in force, the program starts; a struct wire_boundary follows */
        INIT_EXITED,       /* child: the program ended; a wait(2) status word follows */
        INIT_FAILED,       /* child: a struct csn_error follows */
};

struct init_message {
        uint32_t op;
        union {
                int status;
                struct wire_boundary boundary;
                struct csn_error error;
        };
};

/*
 * Anyone inside may read /proc/1/cmdline.  Called once by main() with its own argv (whose texts it copied
 * before), so that process 1 can wipe them and be called "init".
 */
void init_own_title(int argc, char **argv);

/* Process 1.  Never returns. */
_Noreturn void init_main(struct plan *plan, int control, const int fds[WIRE_FDS_MAX]);

#endif
