/*
 * guest: process 1 of a persistent sandbox.  It starts programs, with pipes or a terminal; reads, writes, lists and watches
 * files; and reaps.  Static, libc and nothing else; the protocol is wire/guest_protocol.h.
 *
 *   guest     requests, and the life of operations
 *   process   programs, descriptors for an interpreter that comes from outside, and connections to programs
 *   files     operations on files
 *   entry     what is told of a file, and its labels
 *   watch     what happens in folders
 *   account   whose rights a program has, in a sandbox with root
 *   sudo      root for programs of `user`, where that is wanted
 *   health    whether the interpreter is there, told to programs inside
 *
 * It has the rights of the programs that it starts and no others: everything it does is done inside, by the sandbox's own
 * uid and under the sandbox's own limits.  So a path needs no check here, and whoever gets the better of it has the sandbox
 * that he was in before.
 *
 * In a sandbox with root it is root, and starts programs as root or as `user`.  What it does itself with files it does as
 * `user` all the same, unless it is asked to do it as root: a link that a program laid must not lead root.
 */
#ifndef GUEST_GUEST_H
#define GUEST_GUEST_H

#include "wire/guest_protocol.h"

struct guest;
struct operation;
struct stat;

struct operation_kind {
        /* A packet from the engine.  Errors end the operation, and are told. */
        int (*take)(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err);
        /* What was sent has gone; there is room for more. */
        void (*room)(struct operation *op);
        /* The engine has closed its socket, or it was ended here: let go of everything, the operation too. */
        void (*closed)(struct operation *op);
};

/* The first member of what belongs to it. */
struct operation {
        struct operation *next;
        struct guest *guest;
        const struct operation_kind *kind;
        struct watch sock;
        struct send_queue out;
        bool over;                   /* DONE or FAILED went out: nothing more is told */
};

struct process;
struct watched;
struct sudo;

struct guest {
        struct loop *loop;
        struct watch sock;           /* to the engine */
        struct watch children;       /* a signalfd for SIGCHLD */
        struct watch happenings;     /* inotify, opened when it is needed first */
        bool has_root;               /* it is root inside */
        struct operation *operations;
        size_t operations_n;
        struct process *processes;
        struct watched *watched;
        size_t watched_n;
        struct sudo *sudo;           /* NULL: there is none */
};

/* Serve the engine until its socket ends.  Never returns: the end of process 1 is that of the sandbox. */
_Noreturn void guest_serve(int sock);

/* ---- for the files of this folder ---- */

/* An operation begins; the socket becomes its own.  False: it is over already, and has been freed. */
bool operation_open(struct operation *op, struct guest *guest, const struct operation_kind *kind, int *sock);
/* Send a packet, or keep it until there is room.  False: the engine has gone, and the operation is freed soon. */
bool operation_send(struct operation *op, const void *bytes, size_t len, const int *fds, size_t fds_n);
bool operation_tell(struct operation *op, enum guest_kind kind);
bool operation_tell_number(struct operation *op, enum guest_kind kind, uint64_t number);
bool operation_tell_entry(struct operation *op, const struct guest_entry *entry);
bool operation_is_full(const struct operation *op);   /* stop producing until room() */
/* room() once more, after others had their turn. */
void operation_again(struct operation *op);
/* It cannot be done: says why.  The socket stays until the engine closes it. */
void operation_fail(struct operation *op, const struct csn_error *err);
/* For closed(): stop listening and close the socket. */
void operation_release(struct operation *op);

/*
 * In a sandbox with root: be `user` towards files from here on, or root for a moment in which something is made that is to
 * belong to root.  Nobody inside reads our memory.
 */
int account_begin(struct csn_error *err);
void account_files(const struct guest *guest, bool root);
/* Whether a request about files can be served as it asks.  Errors: CSN_E_INPUT. */
int account_has(const struct guest *guest, const struct guest_file *what, struct csn_error *err);
/* Towards files, whose rights it asks for; account_files(guest, false) follows. */
void account_enter(const struct guest *guest, uint64_t flags);
/* Whose a file or folder is that it makes. */
int account_own(const struct guest *guest, uint64_t flags, int fd, const char *path);
/* The child's side: become root or `user` for good, before anything of the program's is touched. */
int account_become(const struct guest *guest, bool root, struct csn_error *err);

/* Each takes the socket; what goes wrong is told on it. */
void process_begin(struct guest *guest, const struct guest_process *what, int *sock);
void stdio_begin(struct guest *guest, int *sock);
void connection_begin(struct guest *guest, uint64_t port, int *sock);
void files_begin(struct guest *guest, const struct guest_file *what, int *sock);
void sudo_begin(struct guest *guest, int *sock);
void health_begin(struct guest *guest, uint64_t port, int *sock);
void watch_begin(struct guest *guest, const struct guest_file *what, int *sock);

/* There are too few descriptors: those that are kept only to throw away what is written to them are closed. */
void processes_let_go(struct guest *guest);
/* A child of ours has ended: it may be one of the programs. */
void process_ended(struct guest *guest, pid_t pid, int status);
void sudo_ended(struct guest *guest, pid_t pid, int status);

/* lstat(2) of a path as an entry of this name, with its labels of this space; texts live in the arena.  Errors: CSN_E_INPUT with errno in sys. */
int files_entry(const char *path, const char *name, const char *space, struct arena *arena, struct guest_entry *ret, struct csn_error *err);
/* The same of what is known already, without labels. */
void entry_of(const struct stat *st, const char *name, struct arena *arena, struct guest_entry *ret);
/* Those of a WRITE in place of all of their space.  0, or -1 with errno. */
int entry_set_labels(int fd, const struct guest_file *what);
/* "there is no /a/b", by errno. */
int files_error(struct csn_error *err, const char *what, const char *path);

#endif
