/*
 * guest: the protocol between the engine and process 1 of a persistent sandbox.
 *
 * The guest's socket carries requests only.  Each request passes a new socket pair, on which its data, replies
 * and end travel.  So operations are independent, a slow reader delays no other operation, and closing the socket
 * ends the operation.  All sockets are SOCK_SEQPACKET; a packet is a byte with its kind, and its fields
 * (codec.h).
 *
 *   on the socket to the guest
 *     <-  HELLO     u64: version               the guest serves
 *     ->  PROCESS   guest_process       1 fd   start a program
 *     ->  STDIO     nothing             1 fd   make descriptors for an interpreter from outside (a zygote's fork)
 *     ->  FILE      guest_file          1 fd   an operation on files
 *     ->  CONNECT   u64: a port         1 fd   a connection to this port on the sandbox's own loopback
 *     ->  SUDO      nothing             1 fd   root for programs of `user`, while this socket is open
 *     ->  HEALTH    u64: a port         1 fd   answer GET /health of programs inside, while this socket is open
 *     ->  LISTEN    u64: a port, or 0   1 fd   listen on the loopback, or for 0 at WIRE_TOOL_SOCKET_PATH
 *     ->  ACCEPT    u64: a connection   1 fd   take a connection of LISTEN
 *     ->  FACTS     u64: 0 or 1         1 fd   report on this sandbox; 1: after all processes were killed
 *
 *   PROCESS   <- STARTED; then OUT, ERROR, CHANNEL, ROOM; EXITED is the last.    -> IN, IN_END, CHANNEL, SIGNAL, SIZE
 *   STDIO     <- ENDS with stdout, stderr and channel; then as PROCESS; DONE after the end of the channel
 *   FILE      <- ENTRY, DATA, EVENT, by operation; DONE is the last.              -> DATA, DATA_END of a WRITE
 *   CONNECT   <- STARTED once connected; then OUT, ROOM; DONE after the program's end of file.  -> IN, IN_END
 *   SUDO, HEALTH  <- STARTED
 *   LISTEN    <- STARTED; then CONNECTION for each connection
 *   ACCEPT    as CONNECT, but IN_END both ways, and DONE after the second
 *   FACTS     <- FACTS
 *   any       <- FAILED instead of the rest
 *
 * Packets from a guest are as hostile as the output of any program in its sandbox; packets to a guest are
 * trusted.
 */
#ifndef WIRE_GUEST_PROTOCOL_H
#define WIRE_GUEST_PROTOCOL_H

#include "wire/wire.h"

#define GUEST_VERSION 4
#define GUEST_DATA_MAX (64 * KIB)              /* bytes of a stream in one packet */
#define GUEST_PACKET_MAX (GUEST_DATA_MAX + 1)
#define GUEST_PATH_MAX 4096
/* Unread bytes of standard input at most; ROOM reports bytes passed on to the program. */
#define GUEST_IN_MAX (256 * KIB)
#define GUEST_OPERATIONS_MAX 1024              /* at the same time */
#define GUEST_SUDO_SOCKET "/run/sudo.socket"   /* between `sudo` and the guest (src/guest/sudo_socket.c) */
#define GUEST_LABELS_MAX 4096                  /* bytes of names and values, of one file */

enum guest_kind {
        /* on the socket to the guest */
        GUEST_HELLO = 1,
        GUEST_PROCESS,
        GUEST_STDIO,
        GUEST_FILE,
        /* of a process */
        GUEST_STARTED,                         /* u64: its pid inside */
        GUEST_OUT,                             /* bytes */
        GUEST_ERROR,
        GUEST_CHANNEL,                         /* both directions: a packet of the private channel */
        GUEST_ENDS,                            /* 3 descriptors */
        GUEST_ROOM,                            /* u64: bytes of standard input passed to the program */
        GUEST_EXITED,                          /* u64: wait(2) status word */
        GUEST_IN,                              /* bytes */
        GUEST_IN_END,
        /* u64 signal, u64 pid.  pid 0: the process's own group; SIGKILL then reaches its whole session. */
        GUEST_SIGNAL,
        GUEST_SIZE,                            /* u64 rows, u64 columns */
        /* of files */
        GUEST_ENTRY,                           /* guest_entry */
        GUEST_DATA,                            /* bytes, both directions */
        GUEST_DATA_END,
        GUEST_EVENT,                           /* guest_event */
        /* ends */
        GUEST_DONE,
        GUEST_FAILED,                          /* csn_error */
        /* on the socket to the guest */
        GUEST_CONNECT,                         /* u64: a port */
        GUEST_SUDO,
        GUEST_HEALTH,                          /* u64: a port */
        GUEST_LISTEN,                          /* u64: a port; 0: WIRE_TOOL_SOCKET_PATH */
        GUEST_CONNECTION,                      /* u64: number of a connection, for ACCEPT */
        GUEST_ACCEPT,                          /* u64: number of a connection */
        GUEST_FACTS,                           /* u64: 1 kills all processes before; the answer is guest_facts */
        GUEST_KINDS,
};

enum guest_process_flag {
        GUEST_TERMINAL = 1 << 0,               /* standard input, output and error are a PTY */
        GUEST_CHANNELED = 1 << 1,              /* descriptor 3 is a private channel */
        GUEST_INPUT = 1 << 2,                  /* standard input is a pipe instead of /dev/null */
        /* In a sandbox with root: run with root's ids and capabilities.  Without this flag: as `user`. */
        GUEST_AS_ROOT = 1 << 3,
        GUEST_PROCESS_FLAGS = (1 << 4) - 1,
};

struct guest_process {
        uint64_t flags, rows, columns;
        uint64_t open_files;                   /* RLIMIT_NOFILE at most; 0: that of the guest */
        char *folder;                          /* working directory */
        char **argv;                           /* NULL-terminated; argv[0] is searched in PATH of env */
        size_t argv_n;
        char **env;
        size_t env_n;
};

enum guest_verb {
        GUEST_STAT = 1,                        /* ENTRY */
        /* ENTRY for each file, `depth` folders deep, sorted by name; a folder's content follows the folder. */
        GUEST_LIST,
        /* ENTRY, then DATA: `length` bytes from `offset` on; UINT64_MAX: to the end. */
        GUEST_READ,
        /* DATA, DATA_END; atomic: the whole file is written, or nothing.  ENTRY. */
        GUEST_WRITE,
        GUEST_FOLDER,                          /* make a folder and missing parents; ENTRY */
        GUEST_REMOVE,                          /* recursive */
        GUEST_RENAME,                          /* from `path` to `to`; ENTRY */
        GUEST_MODE,                            /* chmod(2); ENTRY */
        /* EVENT for changes in a folder, `depth` deep; ENTRY once the watch is set. */
        GUEST_WATCH,
        GUEST_VERBS,
};

enum guest_file_flag {
        /* In a sandbox with root: run with root's rights; new files belong to root. */
        GUEST_FILE_AS_ROOT = 1 << 0,
        GUEST_FILE_FOR_USER = 1 << 1,          /* with AS_ROOT: new files belong to `user` */
        /* WRITE: overwrite the existing file instead of replacing it; not atomic. */
        GUEST_FILE_IN_PLACE = 1 << 2,
        GUEST_FILE_NEW = 1 << 3,               /* FOLDER: EALREADY if the folder exists */
        GUEST_FILE_FLAGS = (1 << 4) - 1,
};

/*
 * A file operation.  Labels are extended attributes (xattr(7)) as "name=value".  Label names lack the prefix
 * `space`; on the disk names begin with it ("user.mine.").  WRITE replaces all attributes of the space, and an
 * entry lists all of them.  "": no labels.
 */
struct guest_file {
        uint64_t verb, flags, mode, offset, length, depth;
        char *path, *to;                       /* relative to the home directory, unless absolute */
        char *space;
        char **labels;
        size_t labels_n;
};

/* A file, as of lstat(2). */
struct guest_entry {
        uint64_t mode, size, mtime_ms, links;
        uint64_t target_mode;                  /* mode of a symbolic link's target; 0: dangling, or no link */
        char *path;                            /* as requested; in a LIST below the requested path */
        char *target;                          /* of a symbolic link, or "" */
        /* Absolute path of a symbolic link's target, without links; or "". */
        char *real;
        char *owner, *group;                   /* names; a number without a name in decimal */
        char **labels;
        size_t labels_n;
};

/* GUEST_LOST: the queue overflowed and events were lost. */
enum guest_happening { GUEST_CREATED = 1, GUEST_CHANGED, GUEST_ATTRIBUTES, GUEST_REMOVED, GUEST_RENAMED, GUEST_LOST };

struct guest_event {
        uint64_t what, is_folder;
        char *path;                            /* relative to the folder */
};

/*
 * The kernel's report to the guest on its own sandbox (proc(5), cgroups(7)).  Numbers are u64 on the wire, in this
 * order; 0: unknown.
 */
#define GUEST_FACTS_NUMBERS(N)                                                                                 \
        N(seccomp)          /* Seccomp of /proc/self/status: 2 is a filter */                                   \
        N(no_new_privs)                                                                                        \
        N(capabilities)     /* number of capabilities in any set */                                             \
        N(uid)                                                                                                 \
        N(maps_ids)         /* 1: a user namespace in which ids are mapped */                                   \
        N(host_uid)         /* the uid outside the user namespace, as /proc/self/uid_map has it */               \
        N(cgroup)           /* enum wire_cgroup */                                                              \
        N(controllers)      /* enum wire_controller bits: limits in force */                                    \
        N(interfaces)       /* network interfaces beside the loopback */                                        \
        N(processes)        /* living processes beside the guest, before a kill */                              \
        N(cpu_us)           /* of the cgroup, or of ended children of the guest */                              \
        N(memory_peak)      /* bytes */                                                                         \
        N(pids_peak)                                                                                           \
        N(oom_kills)                                                                                           \
        N(pids_hits)        /* forks refused by the limit of processes */                                       \
        N(throttled_us)                                                                                        \
        N(home_full)        /* 1: no block is free in the home directory's file system */                       \
        N(inodes_full)      /* 1: no inode is free there */

struct guest_facts {
#define N(name) uint64_t name;
        GUEST_FACTS_NUMBERS(N)
#undef N
};

/* Encoders append a whole packet to `buf`; false: the packet does not fit. */
bool guest_put(struct buf *buf, enum guest_kind kind);
bool guest_put_number(struct buf *buf, enum guest_kind kind, uint64_t number);
bool guest_put_pair(struct buf *buf, enum guest_kind kind, uint64_t first, uint64_t second);
bool guest_put_process(struct buf *buf, const struct guest_process *process);
bool guest_put_file(struct buf *buf, const struct guest_file *file);
bool guest_put_entry(struct buf *buf, const struct guest_entry *entry);
bool guest_put_event(struct buf *buf, const struct guest_event *event);
bool guest_put_error(struct buf *buf, const struct csn_error *error);
bool guest_put_facts(struct buf *buf, const struct guest_facts *facts);

/* Kind of a packet; 0: unknown kind or empty packet. */
enum guest_kind guest_kind_of(const uint8_t *bytes, size_t len);

/* Decoders take a whole packet of their kind.  Texts in *ret live in `arena`.  0, or -CSN_E_PROTOCOL. */
int guest_get_number(const uint8_t *bytes, size_t len, uint64_t *ret, struct csn_error *err);
int guest_get_pair(const uint8_t *bytes, size_t len, uint64_t *ret_first, uint64_t *ret_second, struct csn_error *err);
int guest_get_process(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_process *ret,
        struct csn_error *err);
int guest_get_file(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_file *ret,
        struct csn_error *err);
int guest_get_entry(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_entry *ret,
        struct csn_error *err);
int guest_get_event(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_event *ret,
        struct csn_error *err);
int guest_get_error(const uint8_t *bytes, size_t len, struct csn_error *ret, struct csn_error *err);
int guest_get_facts(const uint8_t *bytes, size_t len, struct guest_facts *ret, struct csn_error *err);

#endif
