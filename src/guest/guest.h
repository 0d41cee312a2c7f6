/*
 * guest: process 1 of a persistent sandbox.  The guest starts programs with pipes or a terminal; reads, writes, lists
 * and watches files; and reaps children.  The program is static and links libc alone.  Protocol: wire/guest_protocol.h.
 *
 *   guest.c            requests
 *   operation.c        the life of operations: sockets, packets, end
 *   process.[ch]       programs, and descriptors for an interpreter from outside
 *   spawn.c            pipes, terminals, and the start of a program
 *   connection.c       connections to ports of programs
 *   listener.c         listening sockets for connections of programs to the engine
 *   stream.c           the engine at standard input and output, in a container
 *   facts.c            the kernel's report on the sandbox
 *   files.c            operations on files
 *   file_error.c       texts of errors of file operations
 *   own_proc.c         opening files, but never the guest's own entries of /proc
 *   file_info.c        attributes of a file, and its labels
 *   watch.c            changes in folders, by inotify(7)
 *   credentials.c      the uid of a program and of file operations, in a sandbox with root
 *   sudo_socket.c      root for programs of `user`, where configured
 *   health_endpoint.c  reports to programs inside whether the interpreter is there
 *
 * The guest has the rights of the programs that it starts and no others: each operation runs inside, under the
 * sandbox's uid and the sandbox's limits.  So paths need one check alone, against the guest's own entries of /proc, and
 * an attacker in control of the guest gains no right beyond the sandbox.
 *
 * In a sandbox with root the guest is root, and starts programs as root or as `user`.  Its file operations run as
 * `user`, unless the request asks for root: a symbolic link created by `user` must not be followed with the rights of
 * root.
 */
#ifndef GUEST_GUEST_H
#define GUEST_GUEST_H

#include "wire/guest_protocol.h"

#include <dirent.h>

struct guest;
struct operation;
struct stat;

/* The functions of one kind of operation. */
struct operation_kind {
        /* A packet from the engine.  An error ends the operation and is sent as FAILED. */
        int (*take)(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err);
        /* The send queue has room again. */
        void (*room)(struct operation *op);
        /* The engine closed the socket, or the operation was ended here: release everything, the operation included. */
        void (*closed)(struct operation *op);
};

/*
 * One operation and its socket.  The first member of the operation's own struct, which the operation's kind allocates
 * and frees.
 */
struct operation {
        struct operation *next;
        struct guest *guest;
        const struct operation_kind *kind;
        struct watch sock;
        struct send_queue out;
        bool over;                   /* DONE or FAILED was sent: nothing more is sent */
};

struct process;
struct watched;
struct sudo;
struct listener;

/* The state of the process.  There is one. */
struct guest {
        struct loop *loop;
        struct watch sock;           /* to the engine */
        struct watch children;       /* a signalfd for SIGCHLD */
        struct watch happenings;     /* inotify; opened at the first WATCH */
        bool has_root;               /* the guest is root inside */
        bool in_container;           /* the engine is at standard input and output (stream.c) */
        struct operation *operations;
        size_t operations_n;
        struct process *processes;
        struct watched *watched;
        size_t watched_n;
        struct sudo *sudo;           /* NULL: no sudo service */
        struct listener *listeners;
};

/* Serve the engine until its socket closes, then exit: the end of process 1 ends the sandbox. */
_Noreturn void guest_serve(int sock);
/*
 * The same as process 1 of a container: the engine is at the descriptors 0 and 1 (wire/guest_stream.h).  The end of the
 * container's standard input ends the guest.
 */
_Noreturn void guest_serve_stream(void);

/* ---- for the files of this folder ---- */

/*
 * Serve standard input and output.  request() begins the operation of a request: it takes the socket from *sock, or has
 * sent a refusal on the socket.  Errors: those of loop_watch().
 */
int stream_open(struct guest *guest,
        void (*request)(struct guest *guest, const uint8_t *bytes, size_t len, int *sock), struct csn_error *err);
/* Send a packet of channel 0. */
void stream_greet(const void *bytes, size_t len);

/*
 * Register an operation and watch its socket, which becomes the operation's.  false: watching failed; closed() has run
 * and the operation is freed.
 */
bool operation_open(struct operation *op, struct guest *guest, const struct operation_kind *kind, int *sock);
/*
 * Send a packet, or queue a copy until the socket has room.  The descriptors stay the caller's.  false: nothing was
 * sent, because the operation is over or the engine is gone; closed() follows from the loop.
 */
bool operation_send(struct operation *op, const void *bytes, size_t len, const int *fds, size_t fds_n);
/* Send a packet of this kind alone, with a number, or with an entry.  GUEST_DONE ends the operation. */
bool operation_tell(struct operation *op, enum guest_kind kind);
bool operation_tell_number(struct operation *op, enum guest_kind kind, uint64_t number);
bool operation_tell_entry(struct operation *op, const struct guest_entry *entry);
bool operation_is_full(const struct operation *op);   /* true: stop producing until room() */
/* Call room() again from the loop, after other operations had their turn. */
void operation_again(struct operation *op);
/* Send FAILED with this error; the operation is over.  The socket stays open until the engine closes its end. */
void operation_fail(struct operation *op, const struct csn_error *err);
/* For closed(): stop watching, close the socket and leave the list.  The memory stays the caller's. */
void operation_release(struct operation *op);

/*
 * In a sandbox with root: prepare the switch of accounts (CSN_E_SYSTEM), and take the file rights of `user`, or of root
 * for the moment in which a file of root is created.  No process inside can read the guest's memory (PR_SET_DUMPABLE).
 */
int account_begin(struct csn_error *err);
void account_files(const struct guest *guest, bool root);
/* Whether a file request can be served with the rights that the request asks for.  Errors: CSN_E_INPUT. */
int account_has(const struct guest *guest, const struct guest_file *what, struct csn_error *err);
/* Take the file rights that these request flags ask for; the caller ends with account_files(guest, false). */
void account_enter(const struct guest *guest, uint64_t flags);
/* Give a new file or folder to the account that these request flags name.  0, or -1 with errno. */
int account_own(const struct guest *guest, uint64_t flags, int fd, const char *path);
/*
 * Child side: become root or `user` for good, before the child touches anything of the program.  Errors: CSN_E_SYSTEM.
 */
int account_become(const struct guest *guest, bool root, struct csn_error *err);

/* Descriptors of a program: the program's and the guest's.  -1: none. */
struct ends {
        int in, out, error, channel;
        int ours_in, ours_out, ours_error, ours_channel;
};
#define ENDS_NONE { -1, -1, -1, -1, -1, -1, -1, -1 }
/*
 * Make pipes, and a socket for the channel; without input, /dev/null.  Errors: CSN_E_BUSY (EMFILE in err->sys),
 * CSN_E_SYSTEM.
 */
int ends_make(struct ends *ends, bool input, bool channel, struct csn_error *err);
/* The same with a terminal of the size that the request names (pty(7)). */
int ends_make_terminal(struct ends *ends, const struct guest_process *what, struct csn_error *err);
void ends_done(struct ends *ends);
/*
 * Start a program with these descriptors, in a session of its own.  Returns once execve(2) has succeeded.  Errors:
 * CSN_E_BUSY (no process, or no start within 5 s), CSN_E_INPUT (folder or program), CSN_E_SYSTEM.
 */
int spawn(const struct guest *guest, const struct guest_process *what, const struct ends *ends, pid_t *ret,
        struct csn_error *err);

/*
 * Begin an operation.  The socket is taken from *sock; failures are sent on the socket.  Request data is copied or used
 * before the return.
 */
void process_begin(struct guest *guest, const struct guest_process *what, int *sock);
void stdio_begin(struct guest *guest, int *sock);
void connection_begin(struct guest *guest, uint64_t port, int *sock);
/* The same for an accepted connection of a listener; *fd is taken. */
void connection_adopt(struct guest *guest, int *fd, int *sock);
void listener_begin(struct guest *guest, uint64_t port, int *sock);
void accept_begin(struct guest *guest, uint64_t number, int *sock);
/* kills: end all processes beside the guest before the answer. */
void facts_begin(struct guest *guest, bool kills, int *sock);
void files_begin(struct guest *guest, const struct guest_file *what, int *sock);
void sudo_begin(struct guest *guest, int *sock);
void health_begin(struct guest *guest, uint64_t port, int *sock);
void watch_begin(struct guest *guest, const struct guest_file *what, int *sock);

/* Descriptors are exhausted: close those kept only to discard the output of programs. */
void processes_let_go(struct guest *guest);
/* A child was reaped: end the program, or the sudo request, with this pid.  status as from wait(2). */
void process_ended(struct guest *guest, pid_t pid, int status);
void sudo_ended(struct guest *guest, pid_t pid, int status);

/*
 * Attributes of a path by lstat(2), as an entry of this name with the labels of this space.  Texts live in the arena.
 * Errors: CSN_E_INPUT with errno in err->sys.
 */
int files_entry(const char *path, const char *name, const char *space, struct arena *arena, struct guest_entry *ret,
        struct csn_error *err);
/* Fill an entry from attributes that the caller has already, without labels. */
void entry_of(const struct stat *st, const char *name, struct arena *arena, struct guest_entry *ret);
/* Replace all labels of the request's space by the labels of the WRITE request.  0, or -1 with errno. */
int entry_set_labels(int fd, const struct guest_file *what);
/*
 * open(2), with O_CLOEXEC, and opendir(3) for the engine.  EACCES: the guest's own entries of /proc; ELOOP: a path
 * through a magic link.
 */
int own_proc_open(const char *path, int flags, mode_t mode);
DIR *own_proc_opendir(const char *path);
/*
 * Check a path for a system call by path; of a missing path the existing part.  0, or -1 with errno (EACCES: the
 * guest's own entries).
 */
int own_proc_check(const char *path);
/* Set "cannot WHAT PATH: reason" by errno, with errno in err->sys.  Returns -CSN_E_INPUT. */
int files_error(struct csn_error *err, const char *what, const char *path);

#endif
