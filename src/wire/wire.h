/*
 * wire: the binary protocols, as parsers and encoders without I/O.
 *
 *   engine <-> supervisor   SOCK_SEQPACKET, one message a packet, descriptors attached (SCM_RIGHTS)
 *   sandbox -> engine       the private channel of a run: descriptor 3 inside, frames of at most 64 KiB
 *
 * All integers are little-endian.  A message is a header {u32 magic, u16 version, u16 op, u32 job, u32 length of
 * the body} and a body, whose layout depends on the op.  A receiver ends the connection after any message outside
 * of this page; nothing is repaired.
 *
 *   engine -> supervisor
 *     HELLO                                    first message, asks for the abilities of this host
 *     PREPARE wire_shape                       make a sandbox; no program runs in it yet
 *     JOIN    u64                              fork the interpreter of this zygote into a prepared sandbox
 *     WORKER  wire_program                     start this interpreter ahead of time, to wait for its program
 *     START   wire_limits                      start the program, sent over the handoff socket
 *     GUEST   wire_limits                      process 1 becomes the guest (guest_protocol.h), on the
 *                                              handoff socket
 *     JOIN_GUEST u64, u64        wire_entry    fork an interpreter into a guest's sandbox: numbers of
 *                                              sandbox and zygote; `job` is the new job's number
 *     FREEZE  u64                              1: freeze all processes inside; 0: thaw
 *     EXITING u64                              exit status, reported by the interpreter over the channel
 *                                              before its exit
 *     KILL                                     end the sandbox now; EXITED follows
 *     GET_STATS                                ask for the current resource use; STATS follows
 *     ZYGOTE  wire_shape, wire_program         start a zygote; `job` is its number
 *     RETIRE                                   end a zygote; its forks go on
 *     VOLUME  wire_volume_order                make or remove a volume; `job` is a number of the engine's choice
 *   supervisor -> engine
 *     HELLO   wire_abilities
 *     READY   wire_boundary   enum wire_end    the sandbox exists.  Carries our descriptor ends and the
 *                                              sandbox-wide part of the boundary; the per-process
 *                                              part follows with CONFINED
 *     CONFINED wire_boundary                   the whole boundary is in force: an interpreter waits
 *                                              (JOIN, WORKER), or the started program or guest begins
 *                                              to read its input (START, GUEST)
 *     STATS   wire_stats                       current resource use
 *     FROZEN  u64                              1: all processes inside are frozen; 0: they are thawed
 *     FREEZE_FAILED csn_error                  FREEZE failed; the state is unchanged
 *     EXITED  wire_exit                        all processes inside are dead; the counters are final
 *     REFUSED csn_error                        the sandbox or its program could not be made; no program ran
 *     ZYGOTE  text                             the zygote serves; a JSON object with its loaded modules
 *     GONE    csn_error                        the zygote ended, or could not be started
 *     VOLUME_DONE                              the volume of this number was made or removed
 *     VOLUME_FAILED csn_error                  the order of this number had no effect
 *
 *   engine -> future program, over the handoff socket (SOCK_SEQPACKET; no header).  The supervisor sees no source, no
 *   argument and no file name.
 *     FILE    wire_file       0 or 1           an input file: its bytes, or a descriptor to copy from
 *     MODULE  wire_file       0 or 1           a module, with WIRE_MODULES
 *     PROGRAM wire_program    0 or 1           last packet: arguments, environment, and standard input
 *   future program -> engine, over the handoff socket
 *     a byte                  1                the first input file, open for reading
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include "base/base.h"

#define WIRE_MAGIC 0x43534e57U   /* "WNSC" on the wire */
#define WIRE_VERSION 1
#define WIRE_HEADER 16
/* A whole message.  Below the default socket buffer, so a single send is enough. */
#define WIRE_MAX (160 * 1024)
#define WIRE_STDIO 4             /* stdin, stdout, stderr, channel */
#define WIRE_FDS_MAX 20
#define WIRE_PROXY_PORT 3128
#define WIRE_TOOL_SOCKET_PATH "/dev/shm/.caisson-tools"

enum wire_op {
        WIRE_HELLO = 1,
        WIRE_PREPARE,
        WIRE_JOIN,
        WIRE_WORKER,
        WIRE_START,
        WIRE_EXITING,
        WIRE_KILL,
        WIRE_GET_STATS,
        WIRE_ZYGOTE,
        WIRE_RETIRE,
        WIRE_READY,
        WIRE_CONFINED,
        WIRE_STATS,
        WIRE_EXITED,
        WIRE_REFUSED,
        WIRE_GONE,
        WIRE_GUEST,
        WIRE_JOIN_GUEST,
        WIRE_FREEZE,
        WIRE_FROZEN,
        WIRE_FREEZE_FAILED,
        WIRE_PING,
        WIRE_PONG,
        WIRE_VOLUME,
        WIRE_VOLUME_DONE,
        WIRE_VOLUME_FAILED,
};

/* The descriptors of READY, in this order.  The last two are present only with WIRE_PROXY and WIRE_TOOL_SOCKET. */
enum wire_end {
        WIRE_END_HOME,
        WIRE_END_STDOUT,
        WIRE_END_STDERR,
        WIRE_END_CHANNEL,
        WIRE_END_HANDOFF,
        WIRE_END_PROXY,
        WIRE_END_TOOL_SOCKET,
        WIRE_ENDS
};

/* The descriptors of JOIN_GUEST, made by the guest for the new interpreter; the handoff socket is a new socket. */
enum wire_entry { WIRE_ENTRY_STDOUT, WIRE_ENTRY_STDERR, WIRE_ENTRY_CHANNEL, WIRE_ENTRY_HANDOFF, WIRE_ENTRIES };

/* The first byte of a packet over the handoff socket. */
enum wire_handoff { WIRE_HANDOFF_FILE = 1, WIRE_HANDOFF_PROGRAM, WIRE_HANDOFF_MODULE };

struct wire_header {
        uint16_t op;
        uint32_t job;
        uint32_t len;
};

/* Limits of the texts in a message. */
#define WIRE_ARGS_MAX 1024       /* arguments, and environment entries */
#define WIRE_TEXT_MAX (128 * 1024)
#define WIRE_LABEL_MAX 64
#define WIRE_NAME_MAX 1024       /* a file's name below the home directory */
#define WIRE_FILES_MAX 10000
#define WIRE_INLINE_MAX (64 * 1024)   /* content sent in the packet itself, in bytes */
#define WIRE_ZYGOTES_MAX 80
#define WIRE_VOLUMES_MAX 4       /* of one sandbox */
#define WIRE_VOLUME_NAME_MAX 64
#define WIRE_DEVICES_MAX 8       /* granted devices of a supervisor */

/*
 * Properties of a sandbox before any program runs in it.  Numbers are u64 on the wire, in this order.  START
 * cannot change the numbers before memory_bytes.
 */
#define WIRE_SHAPE_NUMBERS(N)                                                                                  \
        N(flags)            /* enum wire_flag */                                                                \
        N(disk_bytes)       /* of the home directory; with WIRE_ROOT all but /tmp and /dev/shm */               \
        N(disk_files)       /* inodes of the same file systems */                                               \
        N(tmp_bytes)        /* of each of /tmp and /dev/shm */                                                  \
        /* ids of layers of packages, 128 bits each; 0: none */                                                  \
        N(python_layer_high)                                                                                   \
        N(python_layer_low)                                                                                    \
        N(node_layer_high)                                                                                     \
        N(node_layer_low)                                                                                      \
        /* id of the image, 128 bits; 0: the host's own /usr */                                                  \
        N(image_high)                                                                                          \
        N(image_low)                                                                                           \
        N(domain)           /* number of the zygote whose domain the sandbox is in; 0: the common one */        \
        /* bit i: the device i of the list that the supervisor was started with */                               \
        N(devices)                                                                                             \
        N(volumes_n)        /* number of wire_volume, which follow the label */                                 \
        N(memory_bytes)     /* of the whole process tree, with tmpfs, no swap */                                \
        N(cpu_milli)        /* CPU share, in thousandths of a core */                                           \
        N(pids)             /* processes and threads */

enum wire_flag {
        WIRE_LANDLOCK_REQUIRED = 1 << 0,   /* fail if the kernel has no Landlock */
        WIRE_LANDLOCK_OFF = 1 << 1,        /* do not use Landlock (tests, comparison) */
        /* Fail if the memory, CPU or pids controller is missing; no fallback to rlimits. */
        WIRE_CGROUP_REQUIRED = 1 << 2,
        WIRE_PROC_STRICT = 1 << 3,         /* mount /proc with subset=pid,hidepid=invisible */
        /* Listen on 127.0.0.1:WIRE_PROXY_PORT inside; READY carries the listening socket. */
        WIRE_PROXY = 1 << 4,
        /* For a guest: the sandbox can be frozen, and an OOM kills a single process instead of all. */
        WIRE_PERSISTENT = 1 << 5,
        /* For a guest: a block of ids with root, and a root file system writable by root. */
        WIRE_ROOT = 1 << 6,
        /* Listen at WIRE_TOOL_SOCKET_PATH inside for tool calls; READY carries the listening socket. */
        WIRE_TOOL_SOCKET = 1 << 7,
        /* A folder of modules, filled over the handoff socket and read-only for programs. */
        WIRE_MODULES = 1 << 8,
        WIRE_FLAGS = (1 << 9) - 1,
};

/* A volume of a sandbox: the file of its file system, by 128 bits, and its folder in SANDBOX_VOLUMES. */
#define WIRE_VOLUME_NUMBERS(N)                                                                                 \
        N(high)                                                                                                \
        N(low)                                                                                                 \
        N(read_only)        /* 0 or 1 */

struct wire_volume {
#define N(name) uint64_t name;
        WIRE_VOLUME_NUMBERS(N)
#undef N
        char name[WIRE_VOLUME_NAME_MAX + 1];   /* wire_volume_name_check() */
};

struct wire_shape {
#define N(name) uint64_t name;
        WIRE_SHAPE_NUMBERS(N)
#undef N
        char *label;     /* prefix of the cgroup's name: [A-Za-z0-9_-] only */
        struct wire_volume volumes[WIRE_VOLUMES_MAX];
};

/* What the engine wants of the folder of volumes. */
#define WIRE_VOLUME_ORDER_NUMBERS(N)                                                                            \
        N(high)                                                                                                \
        N(low)                                                                                                 \
        N(bytes)            /* size of a new volume; 0: remove the volume */

struct wire_volume_order {
#define N(name) uint64_t name;
        WIRE_VOLUME_ORDER_NUMBERS(N)
#undef N
};

/* Limits of the program. */
#define WIRE_LIMITS_NUMBERS(N)                                                                                 \
        N(wall_ms)          /* from the program's first instruction to the kill of all processes */            \
        N(waiting_ms)       /* longest extension of wall_ms, for time in which other programs had the CPU */    \
        N(cpu_ms)           /* CPU time of all processes together; 0: as wall_ms allows */                      \
        N(memory_bytes)                                                                                         \
        N(cpu_milli)                                                                                            \
        N(pids)                                                                                                 \
        N(open_files)       /* RLIMIT_NOFILE */                                                                 \
        N(background_ms)    /* longest run time of processes left behind by the program */

struct wire_limits {
#define N(name) uint64_t name;
        WIRE_LIMITS_NUMBERS(N)
#undef N
};

/* A command line, of a program or of a zygote. */
struct wire_program {
        char **argv;     /* NULL-terminated; argv[0] is an absolute path inside */
        size_t argv_n;
        char **env;      /* NULL-terminated "NAME=value" */
        size_t env_n;
};

/* An input file or a module, created before the program starts. */
struct wire_file {
        bool module;           /* below SANDBOX_MODULES, and not in the home directory */
        uint64_t mode;         /* permission bits, at most 0777 */
        char *name;            /* relative, checked by wire_name_check() */
        const void *content;   /* content_len bytes; NULL: read from the attached descriptor */
        size_t content_len;
};

/* Abilities of this host, in the answer to HELLO. */
#define WIRE_ABILITIES_NUMBERS(N)                                                                              \
        N(rootless)         /* 1: no privileges; a single uid, delegated cgroups or rlimits */                  \
        N(landlock_abi)     /* 0: none */                                                                       \
        N(cgroup)           /* enum wire_cgroup */                                                              \
        N(controllers)      /* enum wire_controller bits */

/* Version of the cgroup hierarchy with the controllers. */
enum wire_cgroup { WIRE_CGROUP_NONE, WIRE_CGROUP_V1, WIRE_CGROUP_V2 };

enum wire_controller {
        WIRE_CTL_MEMORY = 1 << 0,
        WIRE_CTL_CPU = 1 << 1,
        WIRE_CTL_PIDS = 1 << 2,
        WIRE_CTL_ALL = (1 << 3) - 1,
};

struct wire_abilities {
#define N(name) uint64_t name;
        WIRE_ABILITIES_NUMBERS(N)
#undef N
};

/* The network of a sandbox. */
enum wire_network {
        WIRE_NET_HOST,             /* the host's network */
        WIRE_NET_OWN,              /* a network namespace with loopback only */
        /* As WIRE_NET_OWN, with a listening socket for a proxy outside. */
        WIRE_NET_PROXY,
};

/* The boundary in force for one run: facts, recorded after each layer was applied. */
#define WIRE_BOUNDARY_NUMBERS(N)                                                                               \
        N(namespaces)       /* CLONE_NEW* bits */                                                               \
        N(seccomp)          /* 1: the filter is loaded */                                                       \
        N(landlock_abi)     /* 0: not in force */                                                               \
        N(cgroup)           /* enum wire_cgroup */                                                              \
        N(controllers)      /* enum wire_controller bits in force for this run */                               \
        N(no_new_privs)                                                                                        \
        N(capabilities)     /* number of capabilities in any set: 0 except for root inside */                   \
        N(host_uid)         /* the uid on the host, or the first uid of the block */                            \
        N(ids)              /* number of ids from host_uid on */                                                \
        N(overlay)          /* 1: root inside may write its private root file system */                         \
        N(own_uid)          /* 1: no other live sandbox has this uid */                                         \
        N(rootless)                                                                                            \
        N(proc_strict)                                                                                         \
        N(memory_bytes)     /* memory use of the waiting sandbox; 0: unknown */                                 \
        N(network)          /* enum wire_network */

struct wire_boundary {
#define N(name) uint64_t name;
        WIRE_BOUNDARY_NUMBERS(N)
#undef N
};

/*
 * How a run ended.  All members come from the kernel, except the status of a program that reported its exit over
 * the channel (EXITING).
 */
#define WIRE_EXIT_NUMBERS(N)                                                                                   \
        N(status)           /* of the program: wait(2) status word */                                           \
        N(has_status)       /* 0: the program was killed with the sandbox before its own end */                 \
        N(reasons)          /* enum wire_reason bits */                                                         \
        N(wall_us)          /* from the program's first instruction to its end */                               \
        N(cpu_us)                                                                                              \
        N(memory_peak)      /* bytes; 0: unknown */                                                             \
        N(pids_peak)        /* 0: unknown */                                                                    \
        N(oom_kills)        /* processes killed by the memory limit */                                          \
        N(pids_hits)        /* forks refused by the process limit */                                            \
        N(throttled_us)     /* time spent throttled by the CPU share */                                         \
        N(waited_us)        /* of a run ended by WALL or KILL: the longest run-queue delay of a process */      \
        N(prepare_us)       /* from PREPARE (prepared ahead: from START) to the first instruction */            \
        /* 1: no block, no inode is left in the home directory, which is not in a file system of this host */   \
        N(home_full)                                                                                           \
        N(inodes_full)

enum wire_reason {
        WIRE_WALL = 1 << 0,        /* wall_ms passed */
        WIRE_CPU = 1 << 1,         /* cpu_ms used up */
        WIRE_MEMORY = 1 << 2,      /* killed for memory, by the kernel or by the poll without a controller */
        WIRE_KILLED = 1 << 3,      /* KILL was received */
        WIRE_LEFTOVERS = 1 << 4,   /* processes outlived the program and were killed */
};

struct wire_exit {
#define N(name) uint64_t name;
        WIRE_EXIT_NUMBERS(N)
#undef N
};

/* Current resource use of a sandbox; 0: unknown. */
#define WIRE_STATS_NUMBERS(N)                                                                                   \
        N(cpu_us)                                                                                              \
        N(memory_bytes)                                                                                        \
        N(processes)                                                                                            \
        N(memory_peak)                                                                                         \
        N(oom_kills)        /* processes killed by the memory limit so far */                                   \
        N(pids_hits)        /* forks refused by the process limit so far */

struct wire_stats {
#define N(name) uint64_t name;
        WIRE_STATS_NUMBERS(N)
#undef N
};

/*
 * Encoders append a whole message to `buf` (created with WIRE_MAX); false: the message does not fit.  Decoders
 * take a body and fill *ret.  Texts in *ret live in `arena`.  0, or -CSN_E_PROTOCOL.
 */
bool wire_put_plain(struct buf *buf, enum wire_op op, uint32_t job);
bool wire_put_shape(struct buf *buf, uint32_t job, const struct wire_shape *shape);
/* JOIN, EXITING, FREEZE, FROZEN */
bool wire_put_number(struct buf *buf, enum wire_op op, uint32_t job, uint64_t number);
bool wire_put_volume(struct buf *buf, uint32_t job, const struct wire_volume_order *order);
bool wire_put_join_guest(struct buf *buf, uint32_t job, uint32_t sandbox, uint32_t zygote);
bool wire_put_limits(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_limits *limits);
bool wire_put_zygote(struct buf *buf, uint32_t job, const struct wire_shape *shape, const struct wire_program *program);
bool wire_put_abilities(struct buf *buf, const struct wire_abilities *abilities);
bool wire_put_boundary(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_boundary *boundary);
bool wire_put_stats(struct buf *buf, uint32_t job, const struct wire_stats *seen);
bool wire_put_exit(struct buf *buf, uint32_t job, const struct wire_exit *how);
bool wire_put_error(struct buf *buf, enum wire_op op, uint32_t job, const struct csn_error *error);
bool wire_put_text(struct buf *buf, enum wire_op op, uint32_t job, const char *text);

/* Packets of the handoff socket, without a header. */
bool wire_put_file(struct buf *buf, const struct wire_file *file);
bool wire_put_program(struct buf *buf, const struct wire_program *program);

int wire_get_header(const uint8_t *bytes, size_t len, struct wire_header *ret, struct csn_error *err);
int wire_get_shape(const uint8_t *body, size_t len, struct arena *arena, struct wire_shape *ret, struct csn_error *err);
/* Decode a body with a single number of at most `max`; `what` is the message's name for the error text. */
int wire_get_number(const uint8_t *body, size_t len, const char *what, uint32_t max, uint32_t *ret,
        struct csn_error *err);
int wire_get_join_guest(const uint8_t *body, size_t len, uint32_t *ret_sandbox, uint32_t *ret_zygote,
        struct csn_error *err);
int wire_get_volume(const uint8_t *body, size_t len, struct wire_volume_order *ret, struct csn_error *err);
int wire_get_limits(const uint8_t *body, size_t len, struct wire_limits *ret, struct csn_error *err);
int wire_get_zygote(const uint8_t *body, size_t len, struct arena *arena, struct wire_shape *ret_shape,
        struct wire_program *ret_program, struct csn_error *err);
int wire_get_abilities(const uint8_t *body, size_t len, struct wire_abilities *ret, struct csn_error *err);
int wire_get_boundary(const uint8_t *body, size_t len, struct wire_boundary *ret, struct csn_error *err);
int wire_get_stats(const uint8_t *body, size_t len, struct wire_stats *ret, struct csn_error *err);
int wire_get_exit(const uint8_t *body, size_t len, struct wire_exit *ret, struct csn_error *err);
int wire_get_error(const uint8_t *body, size_t len, struct csn_error *ret, struct csn_error *err);
int wire_get_text(const uint8_t *body, size_t len, struct arena *arena, char **ret, struct csn_error *err);

/*
 * Decode a packet of the handoff socket, with its first byte.  ret->content of a file points into `bytes`.  0, or
 * -CSN_E_PROTOCOL.
 */
int wire_get_file(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_file *ret, struct csn_error *err);
int wire_get_program(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_program *ret,
        struct csn_error *err);

/*
 * Check a file name given in a request: relative, UTF-8, 1 to 255 bytes a part, at most 32 parts and 1024 bytes,
 * no ".", "..", empty part, control character or bidirectional override.  0, or -CSN_E_INPUT with the violated
 * rule as text.
 */
int wire_name_check(const char *name, size_t len, struct csn_error *err);
/*
 * Check the name of a volume: 1 to WIRE_VOLUME_NAME_MAX of a-z, 0-9, ".", "_" and "-", beginning with a letter or
 * digit.  0, or -CSN_E_INPUT with the rule as text.
 */
int wire_volume_name_check(const char *name, struct csn_error *err);

/* ---- helpers of an engine without rights (supervisor.h) ---- */

/* ms; a helper or supervisor without an answer after this time is stopped or deadlocked, and is killed */
#define HELPER_ANSWER_MS 5000
#define HELPER_PING_MS 1000                /* ms between two PINGs */

/*
 * engine -> starter: a byte and, for a new process, its socket; after KILL the pid of a process of the starter, an
 * int32.  The answer is an int32: the pid, 0, or -errno.
 */
enum wire_start {
        WIRE_START_SUPERVISOR = 1,
        WIRE_START_POLICY,
        WIRE_START_OPENER,
        WIRE_START_REMOVE,
        WIRE_START_PING,
        WIRE_START_KILL,
};
#define WIRE_START_MAX 5                   /* the byte and a pid */

/*
 * engine -> opener: a byte, a name, and the descriptor of its folder.  The answer is an int32: 0 with a
 * descriptor, or -errno.
 */
enum wire_open { WIRE_OPEN_FILE = 1, WIRE_OPEN_FOLDER };
#define WIRE_OPEN_MAX 4200                 /* the byte and the longest name */

/* ---- sockets with descriptors (socket.c) ---- */

/*
 * Send one message with descriptors, which stay the caller's.  0; -1 with errno (EAGAIN: the peer's buffer is
 * full).
 */
int wire_send(int sock, const void *bytes, size_t len, const int *fds, size_t fds_n);

/*
 * Receive one message of at most WIRE_MAX bytes.  Returns its length, 0 at the end of the connection, -1 with
 * errno (EAGAIN; EPROTO: bytes or descriptors were truncated, an attack).  *ret_fds_n descriptors belong to the
 * caller and are close-on-exec; entries beyond are -1.
 */
ssize_t wire_receive(int sock, void *bytes, int fds[WIRE_FDS_MAX], size_t *ret_fds_n);
/*
 * wire_receive() from a trusted peer.  If descriptors were truncated because this process is out of descriptors,
 * the message is returned without any descriptor and *ret_lost is true.
 */
ssize_t wire_receive_lossy(int sock, void *bytes, int fds[WIRE_FDS_MAX], size_t *ret_fds_n, bool *ret_lost);
/*
 * Receive a packet without descriptors, by the flags of recv(2).  Returns the length, 0 at the end of the connection,
 * -1 with errno.
 */
ssize_t wire_receive_packet(int sock, void *bytes, size_t size, int flags);
/* wire_receive() for messages of at most `size` bytes. */
ssize_t wire_receive_small(int sock, void *bytes, size_t size, int fds[WIRE_FDS_MAX], size_t *ret_fds_n);

/*
 * Packets waiting for a slow peer (send_queue.c).  Built on a watch for EPOLLIN; the watch's owner calls
 * send_queue_flush() on EPOLLOUT.
 */
struct send_queue {
        struct loop *loop;
        struct watch *watch;             /* its fd is the socket, non-blocking */
        struct send_queue_packet *first, *last;
        size_t n;
        bool held;                       /* see send_queue_hold() */
};

#define SEND_QUEUE_MAX 65536                 /* most waiting packets; a peer with more is stuck */
#define SEND_QUEUE_AT_ONCE 16                /* packets that one step of the loop sends */

/*
 * Send now, or store a copy of the packet and duplicates of the descriptors; `fds` stay the caller's.  0; -1 with
 * errno: the connection is unusable (ENOBUFS: SEND_QUEUE_MAX packets wait).
 */
int send_queue_put(struct send_queue *send_queue, const void *bytes, size_t len, const int *fds, size_t fds_n);
/*
 * Take packets that channel_frames() has made, and send what the peer's buffer takes.  Return and errors: as
 * send_queue_put().
 */
int send_queue_append(struct send_queue *send_queue, struct send_queue_packet *packets);
/* Free packets that no queue has taken.  NULL is allowed. */
void send_queue_packets_free(struct send_queue_packet *packets);
/* Stop watching the socket for packets of the peer, or continue.  loop and watch are set, and the watch is active. */
int send_queue_hold(struct send_queue *send_queue, bool on);
/*
 * Send waiting packets until the peer's buffer is full, at most SEND_QUEUE_AT_ONCE.  0; -1 with errno: the connection
 * is unusable.
 */
int send_queue_flush(struct send_queue *send_queue);
/* Free all waiting packets and close their descriptors. */
void send_queue_done(struct send_queue *send_queue);

/* ---- the private channel of a run (runner_channel.c) ---- */

/*
 * Messages of the runner inside: frames {4 bytes "CSN1", u8 type, u8 flags, u16 zero, u32 length} and a payload.
 * The program controls the sending process.  So each frame is a claim of the program, trusted only about the
 * program itself: its value, its exception, the place of its syntax error.
 */
#define CHANNEL_HEADER 12
#define CHANNEL_FRAME_MAX 65536

enum channel_type {
        CHANNEL_HELLO = 1,     /* JSON: the runner's name */
        CHANNEL_SYNTAX,        /* JSON: syntax error of the text; the run ends */
        CHANNEL_STARTED,       /* the program's own code begins */
        CHANNEL_ERROR,         /* JSON: the exception that ended the program */
        CHANNEL_VALUE,         /* JSON: the program's value */
        CHANNEL_DONE,
        /* The exit status in decimal: all output is written, the process is about to exit (EXITING). */
        CHANNEL_EXITING,
        CHANNEL_DISPLAY,       /* JSON: a MIME bundle; of a context, any number */
        CHANNEL_EXECUTE,       /* engine -> runner. JSON: code for a context to execute */
        /* Both directions, of a runner with a role: the receiver, and JSON; any number. */
        CHANNEL_MESSAGE,
        CHANNEL_TYPES,
};

#define CHANNEL_MESSAGE_MAX (16 * MIB)

#define CHANNEL_MORE 1         /* flag: the payload continues in the next frame of the same type */

enum channel_state { CHANNEL_NEW, CHANNEL_READY, CHANNEL_RUNNING, CHANNEL_ENDED, CHANNEL_GONE, CHANNEL_BROKEN };

struct channel {
        enum channel_state state;
        enum channel_type pending;       /* type of the incomplete payload, or 0 */
        struct buf part[CHANNEL_TYPES];  /* payloads by type */
        unsigned frames;
        bool has_messages;                      /* CHANNEL_MESSAGE is allowed */
};

/*
 * An empty channel; the payload of CHANNEL_VALUE has at most `value_max` bytes.  channel_done() frees the
 * payloads.
 */
void channel_init(struct channel *channel, size_t value_max);
void channel_done(struct channel *channel);

/*
 * Receive one frame.  0, or -CSN_E_PROTOCOL: the state is CHANNEL_BROKEN from then on, and no earlier frame is
 * trusted.
 */
int channel_take(struct channel *channel, const uint8_t *bytes, size_t len, struct csn_error *err);

/*
 * The frames of a message, as packets for send_queue_append(); from any thread.  NULL: the message is longer than
 * CHANNEL_MESSAGE_MAX.
 */
struct send_queue_packet *channel_frames(enum channel_type type, const char *message, size_t len);

/* The exit status of a CHANNEL_EXITING frame, or -1: no such frame, or no valid status. */
int channel_exit_status(const struct channel *channel);

#endif
