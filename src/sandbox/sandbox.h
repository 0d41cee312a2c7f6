/*
 * sandbox: one kernel mechanism a file, and the order in which they go on.
 *
 *   probe     what this host can enforce                         (doctor, plan)
 *   plan      request + abilities -> everything that will be done; pure, no rights needed
 *   uids      a host uid, or a block of them, that no other live sandbox has
 *   idmap     a tree of the host whose files belong to ids of a block         parent's handoff socket
 *   cgroup    memory, CPU, pids: a leaf for each sandbox          parent's handoff socket
 *   outer init    the process below which all sandboxes live: their root file system, made once, and zygotes
 *   ns        namespaces, id maps, host name                      child's handoff socket
 *   net       network namespaces, used again while they are as new
 *   mount     the root file system: what all share, and what each has for itself
 *   overlay   the root file system of a sandbox with root, which that may write
 *   tree      memory and CPU read from /proc, where no controller counts
 *   limits    rlimits                                             child's handoff socket
 *   privs     capabilities, securebits, no_new_privs              child's handoff socket
 *   landlock  the second wall around files, sockets, signals      child's handoff socket
 *   seccomp   which system calls exist                            child's handoff socket, last
 *   apply     the order, in one table
 *   handoff socket      what comes from the engine: input files, and the program's arguments and environment
 *   init      process 1 inside: starts the program, reaps, tells how it ended
 *   join      the way of a zygote's child into a sandbox
 *
 * The *parent* (caisson-supervisor) owns cgroup, uid and clocks and is the only one that decides how a run
 * ended.  The *outer init* is its child, process 1 of a user, mount and pid namespace of its own: what it has
 * mounted is locked for everybody below, and with it everything dies.  The *child* becomes process 1 of the
 * namespaces of one sandbox, adds what is its own, and gives up everything.  The program is started there by
 * execve(2), or comes as a fork of a zygote that enters.  Any step that fails ends the run before a byte of
 * foreign code was looked at, with the step's name (security.md (b)).
 *
 * The root is built in one user namespace and used in another one below it: mounts that come from a
 * parent user namespace are locked (mount_namespaces(7)), so that no capability inside could ever undo a
 * mask, even before seccomp and the empty capability sets are asked.
 */
#ifndef SANDBOX_SANDBOX_H
#define SANDBOX_SANDBOX_H

#include "wire/wire.h"

#define SANDBOX_UID 1000           /* inside, `user` */
#define SANDBOX_HOME "/home/user"
#define SANDBOX_CHANGED "/run/caisson/usr"   /* of a sandbox with root: what was written to /usr, and character devices for what was removed */
#define SANDBOX_HOST_NAME "sandbox"
#define SANDBOX_CHANNEL_FD 3       /* the private channel inside */
#define GUEST_PATH "/opt/caisson/guest"
#define GUEST_SOCKET_FD 3          /* of the guest, to the engine */

/* ---- probe ---- */

/* What decides how a sandbox is made on this host.  All zeros: nothing is there. */
struct abilities {
        bool rootless;             /* no CAP_SYS_ADMIN in the initial sense: one uid only */
        unsigned landlock_abi;
        enum wire_cgroup cgroup;
        unsigned controllers;      /* enum wire_controller bits that this process can hand out */
        bool merged_usr;           /* what / has of /usr are links into it */
        uint32_t id_blocks;        /* for sandboxes with root; 0: the range is too small */
};

/* One line of `caisson doctor`. */
enum check_state { CHECK_OK, CHECK_WEAKER, CHECK_MISSING };

struct doctor_check {
        const char *name;
        enum check_state state;
        char fact[160];            /* what was found */
        char remedy[240];          /* what to do about it; "" when all is well */
};

#define CHECKS_MAX 24

/* Every mechanism, tried for real where trying is harmless (user namespaces: in a child). */
size_t probe_doctor(struct doctor_check checks[CHECKS_MAX]);

/* In words, why clone3(2) with these namespaces failed with this errno, and the remedy. */
void probe_explain_clone(int sys, char *text, size_t size);

unsigned probe_landlock_abi(void);

/* Whether /bin, /lib and their like, as far as they are there, are links into /usr (file-hierarchy(7)). */
bool probe_merged_usr(void);

/* ---- uids ---- */

struct uid_range {
        uint32_t first;            /* at least 65536: never an account of the host */
        uint32_t count;            /* more than UIDS_RESERVED */
};

/*
 * What root can do here with ids.  OWN: these are in a user namespace that has one id, which is an ordinary user's of the host.  FIRST: it may take
 * another id and not map many (no CAP_SYS_ADMIN): the first of the range can be that of all sandboxes.
 */
enum uid_way { UIDS_RANGE, UIDS_OWN, UIDS_FIRST };
enum uid_way uid_way(const struct uid_range *range);

#define UIDS_RESERVED 2            /* the first is the outer init's, the second that of zygotes */

/*
 * A uid of the range that no other live sandbox of this host has.  *ret_lock is a socket bound to the
 * uid's own abstract name: the kernel refuses a second one and frees the name when the last descriptor
 * closes, even after SIGKILL, so that there is no file to leave behind.  Errors: CSN_E_BUSY.
 */
int uid_take(const struct uid_range *range, uint32_t *ret_uid, int *ret_lock, struct csn_error *err);

/*
 * A sandbox with root has a block: ids 0 to UID_BLOCK - 2 inside are its first ones, in order, and `nobody` is the
 * last.  Blocks are the end of the range, half of it at most, and single uids are taken from what is before them.
 */
#define UID_BLOCK 2000
#define SANDBOX_NOBODY 65534

uint32_t uid_blocks(const struct uid_range *range);
int uid_take_block(const struct uid_range *range, uint32_t *ret_first, int *ret_lock, struct csn_error *err);

/* ---- idmap ---- */

/*
 * A detached, read-only mount of a tree of the host, without what is mounted below it.  Files of the host's root and
 * system accounts, ids 0 to 999, belong to `first` and its followers there; those of other accounts to nobody.  Needs
 * CAP_SYS_ADMIN over the tree's file system.  Errors: CSN_E_UNSUPPORTED with the remedy.
 *
 * Source: mount_setattr(2), MOUNT_ATTR_IDMAP (Linux 5.12; as the lower layer of an overlay 5.19).
 */
int idmap_tree(const char *path, uint32_t first, int *ret_fd, struct csn_error *err);

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
        uint64_t cpu_times;        /* how many times the processor time of another leaf it may have where there is too little; 0: as any */
};

struct cgroup_usage {
        uint64_t cpu_us, memory_peak, pids_peak, oom_kills, pids_hits, throttled_us;
        uint64_t oom_hits;         /* v2: how often an allocation failed at the limit of this very cgroup; 0 on v1, which does not count */
};

/* One sandbox's leaf: in every hierarchy on v1, one folder on v2. */
#define CGROUP_PROCS_FDS_MAX 5
struct cgroup_leaf {
        struct cgroup_base *base;
        char name[WIRE_LABEL_MAX + 24];
        int dir[5];                /* v1: memory, cpu, pids, cpuacct (if apart from cpu), freezer (if lasting); v2: only the first */
        bool persistent;              /* it can be frozen, and a lack of memory ends one process and not all */
        int oom_event;             /* v1: eventfd that tells an OOM; v2: -1 (memory.oom.group kills the tree) */
        int files[8], procs_fds[CGROUP_PROCS_FDS_MAX];   /* counters, and where to go in; open where it is used again, else -1 */
        struct cgroup_limits limits;   /* that are in force */
        unsigned limited;          /* enum wire_controller bits: by these controllers */
};

int cgroup_leaf_open(struct cgroup_base *base, const char *label, const struct cgroup_limits *limits, bool persistent,
                     struct cgroup_leaf *ret, struct csn_error *err);
/* Change its limits. */
int cgroup_leaf_limit(struct cgroup_leaf *leaf, const struct cgroup_limits *limits, struct csn_error *err);
/*
 * Stop all its processes, or let them go on; when they stand is told by the second (freezer-subsystem.rst, cgroup-v2.rst).  On v1 what is
 * frozen does not even die.  Errors: CSN_E_UNSUPPORTED, CSN_E_SYSTEM.
 */
int cgroup_leaf_freeze(const struct cgroup_leaf *leaf, bool on, struct csn_error *err);
bool cgroup_leaf_is_frozen(const struct cgroup_leaf *leaf);
/*
 * Its doors, for a process of one thread that is to go in by itself: a move can take as long as an RCU grace period, 20 ms, and
 * who has others to serve must not wait for that.  Returns how many; the second closes what is not kept open.
 */
int cgroup_leaf_procs_fds(const struct cgroup_leaf *leaf, int procs_fds[CGROUP_PROCS_FDS_MAX], struct csn_error *err);
void cgroup_leaf_procs_fds_done(const struct cgroup_leaf *leaf, int procs_fds[], int n);
/* The process' side.  The kernel asks for the rights of who opened the handoff socket (cgroup-v1 and -v2, Linux 5.16 and stable). */
int cgroup_join_self(const int procs_fds[], size_t n, struct csn_error *err);
/* The controllers that limit a process which went in by so many doors: none, unless it was all of them. */
unsigned cgroup_leaf_limited(const struct cgroup_leaf *leaf, int procs_fds);
/* Put a process in, from outside. */
int cgroup_leaf_enter(const struct cgroup_leaf *leaf, pid_t pid, struct csn_error *err);
/* Memory and processes now; 0: unknown. */
uint64_t cgroup_leaf_memory(const struct cgroup_leaf *leaf);
uint64_t cgroup_leaf_processes(const struct cgroup_leaf *leaf);
/* Whether at most one process is in it beside process 1, with however many threads; false: unknown. */
bool cgroup_leaf_has_one_program(const struct cgroup_leaf *leaf);
void cgroup_leaf_usage(const struct cgroup_leaf *leaf, struct cgroup_usage *ret);
/* Kill everything in it (v2: cgroup.kill, Linux 5.14; else signals to what is listed). */
void cgroup_leaf_kill(const struct cgroup_leaf *leaf);
/*
 * True when nothing is in it any more: then it is closed, and removed, or kept for the next, under its name.  That is done
 * on v1, where a leaf is a folder in each of four hierarchies, and only if every counter is zero or could be set to it.
 */
bool cgroup_leaf_remove(struct cgroup_leaf *leaf);
void cgroup_leaf_init(struct cgroup_leaf *leaf);

/* ---- tree: what stands in for a controller that is missing ---- */

struct tree_usage {
        uint64_t memory_bytes, cpu_us, processes;
        uint64_t waited_us;    /* the longest run-queue delay of one of the processes */
};

/* Memory (without file-backed and shared pages) and times of a process and all below it. */
void tree_usage(pid_t root, struct tree_usage *ret);

/* ---- plan ---- */

/* A folder or file of the host that is seen inside, read-only. */
struct plan_bind {
        const char *source;
        const char *target;
        bool required;
};

/* Without a pointer in it, because it travels from process to process. */
struct plan {
        struct wire_shape shape;   /* label is NULL */
        struct wire_limits limits; /* from START on */
        struct abilities abilities;
        uint64_t clone_flags;      /* CLONE_NEW* */
        uint32_t host_uid;
        uint32_t outer_init_uid;       /* the same id, as the outer init's user namespace calls it; of a block the first */
        bool landlock;
        bool degraded;             /* some controller is missing: rlimits and a poll stand in */
        struct cgroup_limits cgroup;
        int proxy;                 /* child: the socket that listens for the proxy, or -1 */
        int tool_socket;                 /* child: the one on which tools are called, or -1 */
        int sysctl_dir;            /* child: /proc/sys/user, kept writable until the second namespace is closed */
        int usr;                   /* child: with WIRE_ROOT the host's /usr by idmap_tree(), or -1 */
        struct wire_boundary boundary;   /* each layer that went on writes its own part, as a fact */
};

/*
 * Decide everything.  Errors: CSN_E_INPUT (a number out of bounds), CSN_E_UNSUPPORTED (what is required is
 * not there; the text has the remedy).  Nothing is touched.
 */
int plan_make(const struct wire_shape *shape, const struct abilities *abilities, struct plan *ret, struct csn_error *err);

/* The limits of the program, checked in the same way, into the plan of a sandbox that is there. */
int plan_limit(struct plan *plan, const struct wire_limits *limits, struct csn_error *err);

struct plan_rlimit {
        int resource;
        bool early;                /* the same for every program: set before it is known */
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
int privs_confined(struct plan *plan, struct csn_error *err);
int privs_reaper(struct plan *plan, struct csn_error *err);
int landlock_child(struct plan *plan, struct csn_error *err);
int seccomp_child(struct plan *plan, struct csn_error *err);
int seccomp_confined(struct plan *plan, struct csn_error *err);
int seccomp_reaper(struct plan *plan, struct csn_error *err);

/*
 * rlimits of one process, 0 for the caller.  An interpreter that waits gets the early ones when it starts, and the
 * late ones when its program is known.
 */
enum limits_when { LIMITS_EARLY, LIMITS_LATE, LIMITS_ALL };
int limits_set(const struct plan *plan, pid_t pid, enum limits_when when, struct csn_error *err);

/*
 * All of the above in its order (security.md (b)): process 1 puts up the isolation; then it becomes the ancestor of what will run, or the reaper of what has
 * entered.  What enters does the rest for itself.  Nothing foreign is there before.
 */
int apply_isolation(struct plan *plan, struct csn_error *err);
int apply_child(struct plan *plan, struct csn_error *err);
int apply_reaper(struct plan *plan, struct csn_error *err);
int apply_confined(struct plan *plan, struct csn_error *err);

/* Parent's handoff socket of ns: the id maps of an outer init that waits, all of `uids` or, rootless, our own. */
int ns_map_outer_init(pid_t pid, const struct uid_range *uids, bool rootless, struct csn_error *err);
/* The outer init's handoff socket: those of a sandbox with root, whose block begins at this id of the outer init's. */
int ns_map_block(pid_t pid, uint32_t first, struct csn_error *err);

/* The outer init's root: the host's /usr and the rest that all sandboxes see, and its own /proc. */
int mount_template(int runner_tree, struct csn_error *err);
/* In the outer init, before each sandbox: which entries of /proc there are to mask.  They come with modules of the kernel, so it looks every second. */
void mount_look(void);

/* Capabilities of a zygote: what entering a sandbox needs, kept over execve(2). */
int privs_zygote(uint32_t uid, struct csn_error *err);
int seccomp_zygote(struct csn_error *err);
/* What all filters of sandboxes and zygotes lie on; once, and with CAP_SYS_ADMIN in our user namespace. */
int seccomp_outer_init(struct csn_error *err);
/* A zygote's own /tmp, /dev/shm and home. */
int mount_zygote(struct csn_error *err);

/* ---- seccomp's program, for the tests and the fuzzers ---- */

struct sock_filter;
/*
 * The filters for this architecture; static, *ret_len instructions.  The outer init's is that of a sandbox and lets the
 * calls pass by which isolation are made.  Those on top of it refuse these: a zygote's all but how its children enter a
 * sandbox, the last one all, and together they are the sandbox' filter.  In a sandbox with root a process may give up
 * capabilities for good, besides.  A process 1 that only reaps has next to nothing.
 */
enum seccomp_kind {
        SECCOMP_SANDBOX, SECCOMP_OUTER_INIT, SECCOMP_ZYGOTE, SECCOMP_LAST, SECCOMP_LAST_ROOT, SECCOMP_REAPER, SECCOMP_ENGINE, SECCOMP_OPENER, SECCOMP_KINDS
};
const struct sock_filter *seccomp_program(enum seccomp_kind kind, size_t *ret_len);

enum seccomp_verdict { SECCOMP_ALLOW, SECCOMP_CHECK, SECCOMP_ERRNO };
/* How the table treats a system call by number; *ret_errno for SECCOMP_ERRNO.  false: it is not in the table. */
bool seccomp_lookup(long nr, enum seccomp_verdict *ret_verdict, int *ret_errno);

/* ---- the same for our own processes: what an engine gives up before it listens ---- */

#define SANDBOX_UIDS_MIN 65536     /* below are accounts of the host */

/* Empty the bounding set, where that is permitted; then every other set, for good.  Errors: CSN_E_SYSTEM. */
int privs_bound(struct csn_error *err);
int privs_drop(struct csn_error *err);
/* From now on only what this kind of process needs. */
int seccomp_self(enum seccomp_kind kind, struct csn_error *err);

enum landlock_use { LANDLOCK_READ, LANDLOCK_WRITE /* and read */, LANDLOCK_RUN /* and read */ };
struct landlock_place {
        const char *path;          /* "" and one that is not there are skipped */
        enum landlock_use use;
};
/*
 * Rules for nothing but what lies beneath these places; no other program, no TCP port, no abstract socket of others.  They are
 * made while the places can be reached, and put in force later.  *ret_abi is 0 where the kernel has no Landlock, and then
 * *ret_fd is -1.
 */
int landlock_make(const struct landlock_place *places, size_t n, int *ret_fd, unsigned *ret_abi, struct csn_error *err);
int landlock_enter(int rules_fd, struct csn_error *err);

/* ---- what comes through the handoff socket ---- */

struct handoff_taken {
        struct wire_program program;
        int in;                    /* for standard input, the caller's to close; or -1 */
        struct wire_file only;     /* without a name: there were other files than one that came with its content and is in no folder */
};

/*
 * Take input files into `home` until the program comes; what *ret points to lives in the arena.  The first file, which is the
 * program's own text in most runs, goes back as a descriptor, so that nobody has to be asked for it when the run is over.
 * Errors: CSN_E_INPUT (a file does not fit, two have one name), CSN_E_PROTOCOL.  The end of the connection ends this process:
 * the engine is gone.
 */
int handoff_take(int handoff, int home, struct arena *arena, struct handoff_taken *ret, struct csn_error *err);

/* ---- network namespaces, which the outer init makes and keeps ---- */

#define NET_FILES 6

struct net {
        struct net *next;
        int fd;
        int files[NET_FILES];      /* what the kernel shows of it, or -1 */
        bool is_open;              /* all of them */
        pid_t pid;                 /* process 1 of the sandbox that is in it */
};

struct nets {
        int own;                   /* the outer init's */
        struct net *ready, *used;  /* as good as new; in use */
        size_t ready_n, open_n;    /* open_n: of how many files are open */
        char fresh[32 * 1024];     /* what the kernel shows of a new one */
        size_t fresh_len;
};

void nets_init(struct nets *nets);
/* Go into one that is new or as good as new.  The caller owns it, up to nets_give() or nets_drop().  NULL; errors: CSN_E_SYSTEM. */
struct net *nets_enter(struct nets *nets, struct csn_error *err);
/* Back to the outer init's own.  -1 with errno. */
int nets_leave(const struct nets *nets);
/* The sandbox with this process 1 is in it now. */
void nets_give(struct nets *nets, struct net *net, pid_t pid);
void nets_drop(struct nets *nets, struct net *net);
/* That process is reaped, and with it the whole pid namespace is gone. */
void nets_take_back(struct nets *nets, pid_t pid);

/* ---- the outer init ---- */

struct outer_init {
        pid_t pid;
        int sock;                  /* SOCK_SEQPACKET, struct outer_init_message */
        bool rootless;             /* it was given one id: that of who started it */
};

enum outer_init_op {
        OUTER_INIT_READY = 1,  /* outer init: the root is built */
        OUTER_INIT_BARE,      /* parent: make the process 1 of a sandbox; its control socket, stdout, stderr, channel, handoff socket, and for root /usr */
        OUTER_INIT_ZYGOTE,     /* parent: start a zygote; its control socket, on which its command line waits as PROGRAM */
        OUTER_INIT_MADE,       /* outer init: pid, and a pidfd beside it */
        OUTER_INIT_FAILED,     /* outer init: an error */
        OUTER_INIT_DIED,       /* outer init: pid, wait(2) status and counters of a child */
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

/* Make it and wait until its root stands.  Errors: CSN_E_UNSUPPORTED with the remedy, CSN_E_SYSTEM. */
int outer_init_start(struct outer_init *outer_init, const struct uid_range *uids, bool rootless, const char *runner_dir, struct csn_error *err);
/* It dies, and with it everything below (pid_namespaces(7)). */
void outer_init_stop(struct outer_init *outer_init);

/* ---- zygotes ---- */

#define ZYGOTE_SOCKET_FD 3

enum zygote_op {
        ZYGOTE_SERVES = 1, /* zygote: everything is loaded; info is a JSON object */
        ZYGOTE_FORK,       /* parent: pidfd of the sandbox' process 1, talk, stdout, stderr, channel, handoff socket */
        ZYGOTE_FORKED,     /* zygote: pid in the outer init's pid namespace, and a pidfd beside it */
        ZYGOTE_FAILED,     /* zygote: an error; with id 0 it cannot serve at all */
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
 * The child of a zygote, right after its fork: takes descriptors and namespaces, gives up what it was, and
 * says INNER_INIT_CONFINED.  fds in the order of ZYGOTE_FORK; all other descriptors are closed.  Errors were told.
 * in_cgroup() is called where memory is counted for the sandbox already, and no wall stands yet.
 */
int join_enter(struct plan *plan, int fds[6], void (*in_cgroup)(void), struct csn_error *err);

/*
 * Wait for the program: files, arguments, environment, and the parent's word to go on.  After it standard
 * input and the rlimits are in place, and ret->in is -1.
 */
int join_wait(struct plan *plan, struct arena *arena, struct handoff_taken *ret, struct csn_error *err);

/* ---- a sandbox, seen by the parent ---- */

struct sandbox {
        pid_t pid;                 /* of process 1, in the outer init's pid namespace; 0: none, or dead */
        int pid_fd;
        int control;               /* SOCK_SEQPACKET to process 1 */
        bool visits;               /* no sandbox of its own: an interpreter in that of a guest; pid_fd is the guest's */
        pid_t program;             /* of a forked interpreter likewise, whose parent the outer init is */
        int program_fd;
        int talk;                  /* SOCK_SEQPACKET to it */
        int uid_lock;
        int inner[4];              /* until an interpreter has them: stdout, stderr, channel, handoff socket */
        int outer[WIRE_ENDS];      /* the engine's ends, until READY hands them over */
        struct cgroup_leaf leaf;
        struct plan plan;
};

void sandbox_init(struct sandbox *sandbox);

/*
 * Ask the outer init for a sandbox.  sandbox_made() follows when it answered.  Errors: CSN_E_UNSUPPORTED with the
 * remedy, CSN_E_BUSY (no uid or no descriptor free), CSN_E_SYSTEM.
 */
int sandbox_open(struct sandbox *sandbox, uint32_t id, const struct wire_shape *shape, const struct abilities *abilities,
                 struct cgroup_base *base, const struct uid_range *uids, struct send_queue *outer_init, struct csn_error *err);

/* Put a process into a cgroup, by its pidfd. */
int sandbox_enter_leaf(const struct cgroup_leaf *leaf, int pid_fd, struct csn_error *err);

/* tree_usage() of everything inside. */
void sandbox_tree(const struct sandbox *sandbox, struct tree_usage *ret);

/* What it uses now, by the controllers that there are and /proc for the others; process 1 is not counted as one. */
void sandbox_read_stats(const struct sandbox *sandbox, struct wire_stats *ret);

/* Process 1 is there: put it into its cgroup and let it go on.  pid_fd becomes the sandbox'. */
int sandbox_made(struct sandbox *sandbox, pid_t pid, int pid_fd, struct csn_error *err);

/* Ask a zygote for an interpreter in it; sandbox_confined() follows when it answered. */
int sandbox_join(struct sandbox *sandbox, uint32_t id, struct send_queue *zygote, struct csn_error *err);
/* It goes into `leaf`, which is the sandbox' own, or that of the guest where it visits. */
int sandbox_confined(struct sandbox *sandbox, const struct cgroup_leaf *leaf, pid_t pid, int pid_fd, struct csn_error *err);
/* One that visits `host`, with descriptors as ENTER has them, which are taken. */
int sandbox_join_guest(struct sandbox *sandbox, const struct sandbox *host, int fds[WIRE_ENTRIES], struct csn_error *err);

/* Let process 1, or the interpreter that joined, go on with this: INNER_INIT_WORKER, INNER_INIT_RUN, INNER_INIT_END. */
int sandbox_tell(struct sandbox *sandbox, uint32_t op, struct csn_error *err);

/* Change the cgroup's limits to those of the program, where they differ; one that visits has those of its host. */
int sandbox_limit(struct sandbox *sandbox, struct csn_error *err);

/* Kill everything inside, at once: process 1 takes its whole pid namespace along (pid_namespaces(7)). */
void sandbox_kill(struct sandbox *sandbox);
/* The interpreter that joined alone, if one did. */
void sandbox_kill_program(const struct sandbox *sandbox);
/* Whether it is there still, dead or alive: false once its parent has taken its status. */
bool sandbox_has_program(const struct sandbox *sandbox);

/*
 * Give back uid and cgroup once process 1 is dead.  False: the cgroup is not empty yet, call again later
 * (the uid stays taken until then).
 */
bool sandbox_close(struct sandbox *sandbox);

/* What processes inside and the parent tell each other over control and talk, one packet each. */
enum inner_init_op {
        INNER_INIT_GO = 1,       /* parent: go into the cgroup by these doors, and go on */
        INNER_INIT_READY,        /* process 1: the isolation stand; the home directory, then the listening sockets of WIRE_PROXY and WIRE_TOOL_SOCKET */
        INNER_INIT_WORKER,       /* parent: the handoff socket has an interpreter's command line; start it, its program comes later */
        INNER_INIT_RELEASE,        /* parent: a zygote's child has come; keep nothing of the program's, reap */
        INNER_INIT_CONFINED,       /* an interpreter is in its place and waits; of one that entered the boundary follows */
        INNER_INIT_RUN,          /* parent: take the program from the handoff socket and start it; its limits follow */
        INNER_INIT_GUEST,        /* parent: become the guest; the limits of all that it starts follow */
        INNER_INIT_CLOSED,       /* process 1: it has given up what programs do, and has looked at nothing that comes from them; its boundary follows */
        INNER_INIT_RUNNING,      /* the program starts, or the guest */
        INNER_INIT_EXITED,       /* process 1: the program ended; a wait(2) status word follows, and whether anything is left */
        INNER_INIT_END,          /* parent: the program ended; end when nothing is left */
        INNER_INIT_FAILED,       /* a struct csn_error follows */
};

#define INNER_INIT_FDS_MAX 6

struct inner_init_message {
        uint32_t op;
        union {
                struct {
                        int status;
                        int left;  /* 1: processes remain, or it is not known */
                };
                struct wire_limits limits;
                struct {
                        struct wire_boundary boundary;
                        int procs_fds;   /* READY: of how many cgroups process 1 is a member now */
                };
                struct csn_error error;
        };
};

/*
 * Anyone inside may read /proc/1/cmdline.  Called once by main() with its own argv (whose texts it copied
 * before), so that process 1 can wipe them and be called "init".
 */
void init_own_title(int argc, char **argv);
void init_wipe_title(void);

/* Wait for INNER_INIT_GO, and go into the cgroup whose doors come with it. */
int inner_init_go(int sock, int *ret_procs_fds, struct csn_error *err);

/* Process 1; control, stdout, stderr, channel, handoff socket, and with WIRE_ROOT the host's /usr.  Never returns. */
_Noreturn void inner_init_main(struct plan *plan, int fds[INNER_INIT_FDS_MAX]);

/*
 * Keep these n descriptors, entries of -1 left out, at numbers from 10 up, and close all else; 0, 1 and 2
 * become /dev/null, so that no later descriptor can be taken for one of them.
 */
int descriptors_keep(int *fds[], size_t n, struct csn_error *err);

/* Standard input once more, from the /dev/null of the root that we are in by now. */
int descriptors_null(struct csn_error *err);

#endif
