/*
 * guest: the protocol between the engine and process 1 of a persistent sandbox.
 *
 * The engine has one socket to it.  Over that go requests only, and with each request comes a socket of its own on which
 * the operation lives: its data, its answers, its end.  So operations know nothing of each other, a slow reader holds up
 * nobody else, and to end one is to close its socket.  All sockets are SOCK_SEQPACKET; a packet is a byte that tells its
 * kind, and its fields (codec.h).
 *
 *   on the socket to the guest
 *     <-  GREET     version                    the guest serves
 *     ->  PROCESS   guest_process       1 fd   start a program
 *     ->  STDIO     nothing             1 fd   make descriptors for an interpreter that comes from outside (a zygote's fork)
 *     ->  FILE      guest_file          1 fd   an operation on files
 *     ->  CONNECT   u64: a port         1 fd   a connection to whoever listens there, on the sandbox's own loopback
 *     ->  SUDO      nothing             1 fd   root for programs of `user`, as long as its socket is open
 *     ->  HEALTH    u64: a port         1 fd   GET /health of programs inside is answered there, as long as its socket is open
 *
 *   PROCESS   <- STARTED; then OUT, ERROR, CHANNEL, ROOM; EXITED is the last.    -> IN, IN_END, CHANNEL, SIGNAL, SIZE
 *   STDIO     <- ENDS with stdout, stderr and channel; then as a process; DONE when the channel has ended
 *   FILE      <- ENTRY, DATA, EVENT as the operation has them; DONE is the last.  -> DATA, DATA_END of a WRITE
 *   CONNECT   <- STARTED when it is there; then OUT, ROOM; DONE when the program has ended it.  -> IN, IN_END
 *   SUDO, HEALTH  <- STARTED
 *   any       <- FAILED instead of the rest
 *
 * What comes from a guest is as hostile as what comes from any program in its sandbox; what goes there is ours.
 */
#ifndef WIRE_GUEST_H
#define WIRE_GUEST_H

#include "wire/wire.h"

#define GUEST_VERSION 3
#define GUEST_DATA_MAX (64 * KIB)              /* bytes of a stream in one packet */
#define GUEST_PACKET_MAX (GUEST_DATA_MAX + 1)
#define GUEST_PATH_MAX 4096
#define GUEST_IN_MAX (256 * KIB)               /* of standard input that the program has not read; ROOM tells what went */
#define GUEST_OPERATIONS_MAX 1024              /* at once */
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
        GUEST_CHANNEL,                         /* both ways: one packet of the private channel */
        GUEST_ENDS,                            /* 3 descriptors */
        GUEST_ROOM,                            /* u64: bytes of standard input that went to the program */
        GUEST_EXITED,                          /* u64: wait(2) status word */
        GUEST_IN,                              /* bytes */
        GUEST_IN_END,
        GUEST_SIGNAL,                          /* u64 signal, u64 pid: 0 is its own process group, and of SIGKILL its session */
        GUEST_SIZE,                            /* u64 rows, u64 columns */
        /* of files */
        GUEST_ENTRY,                           /* guest_entry */
        GUEST_DATA,                            /* bytes, both ways */
        GUEST_DATA_END,
        GUEST_EVENT,                           /* guest_event */
        /* ends */
        GUEST_DONE,
        GUEST_FAILED,                          /* csn_error */
        /* on the socket to the guest, too */
        GUEST_CONNECT,                         /* u64: a port */
        GUEST_SUDO,
        GUEST_HEALTH,                          /* u64: a port */
        GUEST_KINDS,
};

enum guest_process_flag {
        GUEST_TERMINAL = 1 << 0,               /* a PTY is its standard input, output and error */
        GUEST_CHANNELED = 1 << 1,              /* descriptor 3 is a private channel */
        GUEST_INPUT = 1 << 2,                  /* standard input is a pipe, and not /dev/null */
        GUEST_AS_ROOT = 1 << 3,                /* in a sandbox that has root: with its ids and capabilities, else as `user` */
        GUEST_PROCESS_FLAGS = (1 << 4) - 1,
};

struct guest_process {
        uint64_t flags, rows, columns;
        char *folder;                          /* working folder */
        char **argv;                           /* NULL-terminated; argv[0] is looked for in PATH of env */
        size_t argv_n;
        char **env;
        size_t env_n;
};

enum guest_verb {
        GUEST_STAT = 1,                        /* ENTRY */
        GUEST_LIST,                            /* ENTRY for each, `depth` folders deep: by name, and what is in a folder behind it */
        GUEST_READ,                            /* ENTRY, then DATA: `length` bytes from `offset` on; UINT64_MAX: to the end */
        GUEST_WRITE,                           /* DATA, DATA_END; the file is there as a whole or not at all; ENTRY */
        GUEST_FOLDER,                          /* make it, and those above it; ENTRY */
        GUEST_REMOVE,                          /* with everything below it */
        GUEST_RENAME,                          /* path to `to`; ENTRY */
        GUEST_MODE,                            /* chmod(2); ENTRY */
        GUEST_WATCH,                           /* EVENT for what happens in a folder, `depth` deep; ENTRY when it watches */
        GUEST_VERBS,
};

enum guest_file_flag {
        GUEST_FILE_AS_ROOT = 1 << 0,           /* in a sandbox that has root: with root's rights, and what is made is root's */
        GUEST_FILE_FOR_USER = 1 << 1,          /* with AS_ROOT: what is made is `user`'s all the same */
        GUEST_FILE_IN_PLACE = 1 << 2,          /* WRITE: into the file itself, of which a part may be there then, and not by a new one in its place */
        GUEST_FILE_NEW = 1 << 3,               /* FOLDER: EALREADY where there is one */
        GUEST_FILE_FLAGS = (1 << 4) - 1,
};

/*
 * Labels are extended attributes (xattr(7)) as "name=value", their names without `space`, with which they begin on the
 * disk ("user.mine.").  WRITE replaces all of this space; entries have those of it.  "" is no space.
 */
struct guest_file {
        uint64_t verb, flags, mode, offset, length, depth;
        char *path, *to;                       /* from the home directory on, unless absolute */
        char *space;
        char **labels;
        size_t labels_n;
};

/* A file, as lstat(2) has it. */
struct guest_entry {
        uint64_t mode, size, mtime_ms, links;
        uint64_t target_mode;                  /* of what a symbolic link leads to; 0: it leads nowhere, or is none */
        char *path;                            /* as it was asked for; in a LIST below that */
        char *target;                          /* of a symbolic link, or "" */
        char *real;                            /* where that leads, absolute and without links, or "" */
        char *owner, *group;                   /* by name, or as a number that has none */
        char **labels;
        size_t labels_n;
};

enum guest_happening { GUEST_CREATED = 1, GUEST_CHANGED, GUEST_ATTRIBUTES, GUEST_REMOVED, GUEST_RENAMED, GUEST_LOST };   /* LOST: more happened than could be told */

struct guest_event {
        uint64_t what, is_folder;
        char *path;                            /* below the folder */
};

/* Encoders append a whole packet to buf; false: it does not fit. */
bool guest_put(struct buf *buf, enum guest_kind kind);
bool guest_put_number(struct buf *buf, enum guest_kind kind, uint64_t number);
bool guest_put_pair(struct buf *buf, enum guest_kind kind, uint64_t first, uint64_t second);
bool guest_put_process(struct buf *buf, const struct guest_process *process);
bool guest_put_file(struct buf *buf, const struct guest_file *file);
bool guest_put_entry(struct buf *buf, const struct guest_entry *entry);
bool guest_put_event(struct buf *buf, const struct guest_event *event);
bool guest_put_error(struct buf *buf, const struct csn_error *error);

/* 0: no packet of any kind. */
enum guest_kind guest_kind_of(const uint8_t *bytes, size_t len);

/* Decoders get a whole packet of their kind.  0, or -CSN_E_PROTOCOL; texts live in the arena. */
int guest_get_number(const uint8_t *bytes, size_t len, uint64_t *ret, struct csn_error *err);
int guest_get_pair(const uint8_t *bytes, size_t len, uint64_t *ret_first, uint64_t *ret_second, struct csn_error *err);
int guest_get_process(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_process *ret, struct csn_error *err);
int guest_get_file(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_file *ret, struct csn_error *err);
int guest_get_entry(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_entry *ret, struct csn_error *err);
int guest_get_event(const uint8_t *bytes, size_t len, struct arena *arena, struct guest_event *ret, struct csn_error *err);
int guest_get_error(const uint8_t *bytes, size_t len, struct csn_error *ret, struct csn_error *err);

#endif
