/*
 * wire: the binary protocols, as parsers and encoders that do no I/O.
 *
 *   engine <-> supervisor   SOCK_SEQPACKET, one message a packet, descriptors beside it (SCM_RIGHTS)
 *   sandbox -> engine       the private channel of a run: descriptor 3 inside, frames of at most 64 KiB
 *
 * All integers are little-endian.  A message is a header {u32 magic, u16 version, u16 op, u32 job, u32
 * length of the body} and a body whose layout belongs to its op.  Whoever receives something that this
 * page does not allow ends the connection; nothing is repaired.
 *
 *   engine -> supervisor
 *     HELLO                                    first message, asks what this host can enforce
 *     PREPARE wire_shape                       make a sandbox; nothing runs in it yet
 *     JOIN    u64                              fork the interpreter of this zygote into a prepared sandbox
 *     WORKER  wire_program                     start this interpreter in it ahead of time, to wait for its program
 *     START   wire_limits                      let the program begin that comes through the handoff socket
 *     GUEST   wire_limits                      process 1 becomes the guest (guest_protocol.h), whose socket the handoff socket is
 *     ENTER   u64, u64           wire_entry    the interpreter of a zygote into the sandbox of a guest; job is its number
 *     FREEZE  u64                              0 or 1: stop everything inside, or let it go on
 *     KILL                                     end it now; EXITED follows
 *     LOOK                                     what does it use?
 *     ZYGOTE  wire_program                     start an interpreter that is to be forked; job is its number
 *     RETIRE                                   end that zygote; what was forked from it goes on
 *   supervisor -> engine
 *     HELLO   wire_abilities
 *     READY   wire_boundary   enum wire_end    the sandbox stands, and what a process gives up for itself is not known; our ends of its descriptors
 *     JOINED  wire_boundary                    all of it is in force: an interpreter waits (JOIN, WORKER), or what is started looks at what comes (START, GUEST)
 *     SEEN    wire_stats                        what it uses at this moment
 *     FROZEN  u64                              1: everything inside stands still; 0: it goes on
 *     UNABLE  csn_error                        what was asked with FREEZE cannot be done; all is as before
 *     EXITED  wire_exit                        everything inside is dead; the counters are final
 *     REFUSED csn_error                        the sandbox or its program could not be made; nothing ran
 *     ZYGOTE  text                             the zygote serves; a JSON object that tells what it has loaded
 *     GONE    csn_error                        the zygote ended, or could not be started
 *
 *   engine -> process that will be the program, through the handoff socket (SOCK_SEQPACKET; no header).  The supervisor
 *   sees none of it: no source, no argument, no name of a file.
 *     FILE    wire_file       0 or 1           an input file: its bytes, or a descriptor to copy them from
 *     PROGRAM wire_program    0 or 1           the last one: arguments, environment, and standard input
 *   and back
 *     a byte                  1                the first of those files, open for reading
 */
#ifndef WIRE_WIRE_H
#define WIRE_WIRE_H

#include "base/base.h"

#define WIRE_MAGIC 0x43534e57U   /* "WNSC" on the wire */
#define WIRE_VERSION 1
#define WIRE_HEADER 16
#define WIRE_MAX (160 * 1024)    /* a whole message; below the default socket buffer, so that one send is enough */
#define WIRE_STDIO 4             /* stdin, stdout, stderr, channel */
#define WIRE_FDS_MAX 8
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
};

/* The descriptors of READY, in this order; the last two are there with WIRE_PROXY and WIRE_TOOL_SOCKET alone. */
enum wire_end { WIRE_END_HOME, WIRE_END_STDOUT, WIRE_END_STDERR, WIRE_END_CHANNEL, WIRE_END_HANDOFF, WIRE_END_PROXY, WIRE_END_TOOL_SOCKET, WIRE_ENDS };

/* The descriptors of ENTER: what the guest made for it, and the handoff socket of its own. */
enum wire_entry { WIRE_ENTRY_STDOUT, WIRE_ENTRY_STDERR, WIRE_ENTRY_CHANNEL, WIRE_ENTRY_HANDOFF, WIRE_ENTRIES };

/* The first byte of a packet through the handoff socket. */
enum wire_handoff { WIRE_HANDOFF_FILE = 1, WIRE_HANDOFF_PROGRAM };

struct wire_header {
        uint16_t op;
        uint32_t job;
        uint32_t len;
};

/* Ceilings of the texts in a message. */
#define WIRE_ARGS_MAX 1024       /* arguments, and environment entries */
#define WIRE_TEXT_MAX (128 * 1024)
#define WIRE_LABEL_MAX 64
#define WIRE_NAME_MAX 1024       /* a file's name below the home directory */
#define WIRE_FILES_MAX 10000
#define WIRE_INLINE_MAX (64 * 1024)   /* content of a file that goes in the packet itself */
#define WIRE_ZYGOTES_MAX 16

/*
 * What a sandbox is before anything runs in it.  Numbers are u64 on the wire, in this order.  The first four
 * are built in and cannot be changed by START.
 */
#define WIRE_SHAPE_NUMBERS(N)                                                                                  \
        N(flags)            /* enum wire_flag */                                                                \
        N(disk_bytes)       /* of the home directory; with WIRE_ROOT of all but /tmp and /dev/shm */            \
        N(disk_files)       /* inodes of the same */                                                            \
        N(tmp_bytes)        /* of /tmp and of /dev/shm, each */                                                 \
        N(memory_bytes)     /* of the whole tree, tmpfs included, no swap */                                    \
        N(cpu_milli)        /* share of the machine, in thousandths of a core */                                \
        N(pids)             /* processes and threads */

enum wire_flag {
        WIRE_LANDLOCK_REQUIRED = 1 << 0,   /* no Landlock: refuse */
        WIRE_LANDLOCK_OFF = 1 << 1,        /* do not use it (for tests and for comparison) */
        WIRE_CGROUP_REQUIRED = 1 << 2,     /* no memory, CPU or pids controller: refuse, do not fall back to rlimits */
        WIRE_PROC_STRICT = 1 << 3,         /* /proc with subset=pid,hidepid=invisible */
        WIRE_PROXY = 1 << 4,               /* listen on 127.0.0.1:WIRE_PROXY_PORT inside, and hand the socket out */
        WIRE_PERSISTENT = 1 << 5,             /* for a guest: it can be frozen, and a lack of memory ends one process and not all */
        WIRE_ROOT = 1 << 6,                /* for a guest: a block of ids, root among them, and a root file system that root may write */
        WIRE_TOOL_SOCKET = 1 << 7,               /* listen at WIRE_TOOL_SOCKET_PATH inside, where programs call tools, and hand the socket out */
        WIRE_FLAGS = (1 << 8) - 1,
};

struct wire_shape {
#define N(name) uint64_t name;
        WIRE_SHAPE_NUMBERS(N)
#undef N
        char *label;     /* for the cgroup's name: [A-Za-z0-9_-] only */
};

/* What the program in it may use. */
#define WIRE_LIMITS_NUMBERS(N)                                                                                 \
        N(wall_ms)          /* from the program's first instruction until everything is killed */              \
        N(waiting_ms)       /* so much later at the most, for the time in which other programs had the CPU */   \
        N(cpu_ms)           /* CPU time of all processes together; 0: as wall_ms allows */                      \
        N(memory_bytes)                                                                                         \
        N(cpu_milli)                                                                                            \
        N(pids)                                                                                                 \
        N(open_files)       /* RLIMIT_NOFILE */                                                                 \
        N(background_ms)    /* how long processes that the program left behind may go on */

struct wire_limits {
#define N(name) uint64_t name;
        WIRE_LIMITS_NUMBERS(N)
#undef N
};

/* A command line: of a program, or of a zygote. */
struct wire_program {
        char **argv;     /* NULL-terminated; argv[0] is an absolute path inside */
        size_t argv_n;
        char **env;      /* NULL-terminated "NAME=value" */
        size_t env_n;
};

/* An input file, created before the program starts. */
struct wire_file {
        uint64_t mode;         /* permission bits, at most 0777 */
        char *name;            /* relative, checked by wire_name_check */
        const void *content;   /* content_len bytes; NULL: it is read from the descriptor beside the packet */
        size_t content_len;
};

/* What this host can enforce, told in the answer to HELLO. */
#define WIRE_ABILITIES_NUMBERS(N)                                                                              \
        N(rootless)         /* 1: no privileges; one uid, delegated cgroups or rlimits */                       \
        N(landlock_abi)     /* 0: none */                                                                       \
        N(cgroup)           /* enum wire_cgroup */                                                              \
        N(controllers)      /* enum wire_controller bits */

/* How the controllers are reached. */
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
        WIRE_NET_HOST,             /* that of the host */
        WIRE_NET_OWN,              /* a network namespace with loopback alone */
        WIRE_NET_PROXY,            /* the same, and in it a socket that listens for a proxy outside */
};

/* The boundary that is in force for one run: facts, collected after each layer was applied. */
#define WIRE_BOUNDARY_NUMBERS(N)                                                                               \
        N(namespaces)       /* CLONE_NEW* bits */                                                               \
        N(seccomp)          /* 1: the filter is loaded */                                                       \
        N(landlock_abi)     /* 0: not in force */                                                               \
        N(cgroup)           /* enum wire_cgroup */                                                              \
        N(controllers)      /* enum wire_controller bits in force for this run */                               \
        N(no_new_privs)                                                                                        \
        N(capabilities)     /* how many capabilities are left in any set: 0 but for root inside */              \
        N(host_uid)         /* the uid that the host sees, or the first of them */                              \
        N(ids)              /* how many there are from that on */                                               \
        N(overlay)          /* 1: root inside may write its root file system, which is its own */               \
        N(own_uid)          /* 1: no other live sandbox has this uid */                                         \
        N(rootless)                                                                                            \
        N(proc_strict)                                                                                         \
        N(memory_bytes)     /* that the sandbox uses while it waits; 0: unknown */                              \
        N(network)          /* enum wire_network */

struct wire_boundary {
#define N(name) uint64_t name;
        WIRE_BOUNDARY_NUMBERS(N)
#undef N
};

/* How a run ended.  All of it comes from the kernel, but for the status of a program that said LEFT. */
#define WIRE_EXIT_NUMBERS(N)                                                                                   \
        N(status)           /* of the program: wait(2) status word */                                           \
        N(has_status)       /* 0: the program was killed with the sandbox before it ended by itself */          \
        N(reasons)          /* enum wire_reason bits */                                                         \
        N(wall_us)          /* from the program's first instruction to its end */                               \
        N(cpu_us)                                                                                              \
        N(memory_peak)      /* bytes; 0: unknown */                                                             \
        N(pids_peak)        /* 0: unknown */                                                                    \
        N(oom_kills)        /* processes that the memory limit killed */                                        \
        N(pids_hits)        /* forks that the process limit refused */                                          \
        N(throttled_us)     /* time in which the CPU share made it wait */                                      \
        N(waited_us)        /* of a run that WALL or KILL ended: the longest run-queue delay of a process */    \
        N(prepare_us)       /* from PREPARE, or from START where it was ready before, to the first instruction */

enum wire_reason {
        WIRE_WALL = 1 << 0,        /* wall_ms passed */
        WIRE_CPU = 1 << 1,         /* cpu_ms used up */
        WIRE_MEMORY = 1 << 2,      /* killed for memory, by the kernel or by the poll that stands in for it */
        WIRE_KILLED = 1 << 3,      /* KILL came */
        WIRE_LEFTOVERS = 1 << 4,   /* processes outlived the program and were killed */
};

struct wire_exit {
#define N(name) uint64_t name;
        WIRE_EXIT_NUMBERS(N)
#undef N
};

/* What a sandbox uses at a moment; 0: unknown. */
#define WIRE_STATS_NUMBERS(N)                                                                                   \
        N(cpu_us)                                                                                              \
        N(memory_bytes)                                                                                        \
        N(processes)                                                                                            \
        N(memory_peak)                                                                                         \
        N(oom_kills)        /* processes that the memory limit killed so far */                                 \
        N(pids_hits)        /* forks that the process limit refused so far */

struct wire_stats {
#define N(name) uint64_t name;
        WIRE_STATS_NUMBERS(N)
#undef N
};

/*
 * Encoders append a whole message to buf (created with WIRE_MAX); false: it does not fit.
 * Decoders get a body and fill *ret, texts pointing into the arena; 0, or -CSN_E_PROTOCOL.
 */
bool wire_put_plain(struct buf *buf, enum wire_op op, uint32_t job);
bool wire_put_shape(struct buf *buf, uint32_t job, const struct wire_shape *shape);
bool wire_put_number(struct buf *buf, enum wire_op op, uint32_t job, uint64_t number);   /* JOIN, LEFT, FREEZE, FROZEN */
bool wire_put_join_guest(struct buf *buf, uint32_t job, uint32_t sandbox, uint32_t zygote);
bool wire_put_limits(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_limits *limits);
bool wire_put_command(struct buf *buf, enum wire_op op, uint32_t job, const struct wire_program *program);
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
/* One number of at most `max`; `what` is the message's name. */
int wire_get_number(const uint8_t *body, size_t len, const char *what, uint32_t max, uint32_t *ret, struct csn_error *err);
int wire_get_join_guest(const uint8_t *body, size_t len, uint32_t *ret_sandbox, uint32_t *ret_zygote, struct csn_error *err);
int wire_get_limits(const uint8_t *body, size_t len, struct wire_limits *ret, struct csn_error *err);
int wire_get_command(const uint8_t *body, size_t len, struct arena *arena, struct wire_program *ret, struct csn_error *err);
int wire_get_abilities(const uint8_t *body, size_t len, struct wire_abilities *ret, struct csn_error *err);
int wire_get_boundary(const uint8_t *body, size_t len, struct wire_boundary *ret, struct csn_error *err);
int wire_get_stats(const uint8_t *body, size_t len, struct wire_stats *ret, struct csn_error *err);
int wire_get_exit(const uint8_t *body, size_t len, struct wire_exit *ret, struct csn_error *err);
int wire_get_error(const uint8_t *body, size_t len, struct csn_error *ret, struct csn_error *err);
int wire_get_text(const uint8_t *body, size_t len, struct arena *arena, char **ret, struct csn_error *err);

/* A packet of the handoff socket by its first byte.  A file's content points into `bytes`. */
int wire_get_file(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_file *ret, struct csn_error *err);
int wire_get_program(const uint8_t *bytes, size_t len, struct arena *arena, struct wire_program *ret, struct csn_error *err);

/*
 * A name below a directory that may be created for a request: relative, UTF-8, 1 to 255 bytes a part, at
 * most 32 parts and 1024 bytes, no ".", "..", empty part, control character or bidirectional override.
 * 0, or -CSN_E_INPUT with a text that names the rule.
 */
int wire_name_check(const char *name, size_t len, struct csn_error *err);

/* ---- helpers of an engine that has given up its rights (supervisor.h) ---- */

/* engine -> starter: a byte and, but for REMOVE, the socket that the new process serves.  The answer: int32, its pid or -errno. */
enum wire_start { WIRE_START_SUPERVISOR = 1, WIRE_START_POLICY, WIRE_START_OPENER, WIRE_START_REMOVE };

/* engine -> opener: a byte, a name, and the folder that it is in.  The answer: int32, 0 with a descriptor or -errno. */
enum wire_open { WIRE_OPEN_FILE = 1, WIRE_OPEN_FOLDER };
#define WIRE_OPEN_MAX 4200                 /* the byte and the longest name */

/* ---- sockets with descriptors (socket.c) ---- */

/* Send one message with descriptors.  0; -1 with errno (EAGAIN: the peer does not read). */
int wire_send(int sock, const void *bytes, size_t len, const int *fds, size_t fds_n);

/*
 * Receive one message of at most WIRE_MAX bytes.  Returns its length, 0 at the end of the connection, -1
 * with errno (EAGAIN, or EPROTO when bytes or descriptors were cut: an attack).  *ret_fds_n descriptors
 * are the caller's, close-on-exec; entries beyond are -1.
 */
ssize_t wire_receive(int sock, void *bytes, int fds[WIRE_FDS_MAX], size_t *ret_fds_n);
/*
 * The same, from a peer that is trusted: where descriptors were cut, because this process may have no more, the message comes without any of them,
 * and *ret_lost is true.
 */
ssize_t wire_receive_lossy(int sock, void *bytes, int fds[WIRE_FDS_MAX], size_t *ret_fds_n, bool *ret_lost);
/* wire_receive() for messages of at most `size` bytes. */
ssize_t wire_receive_small(int sock, void *bytes, size_t size, int fds[WIRE_FDS_MAX], size_t *ret_fds_n);

/*
 * What could not be sent at once, because the peer does not read now (send_queue.c).  It is on top of a watch for
 * EPOLLIN, whose owner calls send_queue_flush() when EPOLLOUT is among the events.
 */
struct send_queue {
        struct loop *loop;
        struct watch *watch;             /* its fd is the socket, which has to be non-blocking */
        struct send_queue_packet *first, *last;
        size_t n;
};

#define SEND_QUEUE_MAX 65536                 /* packets that wait; more is a peer that is stuck */

/* Send now or keep a copy, with copies of the descriptors.  0; -1 with errno: the connection is of no use any more. */
int send_queue_put(struct send_queue *send_queue, const void *bytes, size_t len, const int *fds, size_t fds_n);
int send_queue_flush(struct send_queue *send_queue);
void send_queue_done(struct send_queue *send_queue);

/* ---- the private channel of a run (runner_channel.c) ---- */

/*
 * What the runner inside tells: frames {4 bytes "CSN1", u8 type, u8 flags, u16 zero, u32 length} and a
 * payload.  The program owns the process that speaks, so everything here is a claim of the program's own
 * and is believed only about itself: its value, its exception, where its syntax is wrong.
 */
#define CHANNEL_HEADER 12
#define CHANNEL_FRAME_MAX 65536

enum channel_type {
        CHANNEL_HELLO = 1,     /* JSON: which runner */
        CHANNEL_SYNTAX,        /* JSON: the text does not parse; the run ends */
        CHANNEL_STARTED,       /* the program's own code begins */
        CHANNEL_ERROR,         /* JSON: the exception that ended the program */
        CHANNEL_VALUE,         /* JSON: its value */
        CHANNEL_DONE,
        CHANNEL_LEFT,          /* the exit status in decimal: everything is written, the process only has to die */
        CHANNEL_DISPLAY,       /* JSON: a MIME bundle; of a context, as often as it likes */
        CHANNEL_EXECUTE,       /* the other way: JSON, what a context is to execute */
        CHANNEL_TALK,          /* both ways, of a runner that has a role: for whom, and JSON; as often as it likes */
        CHANNEL_TYPES,
};

#define CHANNEL_TALK_MAX (16 * MIB)

#define CHANNEL_MORE 1         /* flag: the payload goes on in the next frame of the same type */

enum channel_state { CHANNEL_NEW, CHANNEL_READY, CHANNEL_RUNNING, CHANNEL_ENDED, CHANNEL_GONE, CHANNEL_BROKEN };

struct channel {
        enum channel_state state;
        enum channel_type pending;       /* type whose pieces are being joined, or 0 */
        struct buf part[CHANNEL_TYPES];  /* payloads by type */
        unsigned frames;
        bool has_messages;                      /* TALK may come */
};

void channel_init(struct channel *channel, size_t value_max);
void channel_done(struct channel *channel);

/*
 * Take one frame.  0, or -CSN_E_PROTOCOL: the state is CHANNEL_BROKEN from then on and nothing that came
 * is believed any more.
 */
int channel_take(struct channel *channel, const uint8_t *bytes, size_t len, struct csn_error *err);

/* The exit status of a LEFT frame, or -1: none came, or it is no status. */
int channel_left(const struct channel *channel);

#endif
