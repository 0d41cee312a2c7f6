/*
 * An operation with input and output; shared by process.c (programs and interpreters) and connection.c (connections to
 * ports of programs).
 */
#ifndef GUEST_PROCESS_H
#define GUEST_PROCESS_H

#include "guest/guest.h"

/* A descriptor that the guest reads for the engine. */
struct source {
        struct watch watch;
        enum guest_kind kind;
        struct process *process;
};

enum { OUT, ERROR, CHANNEL, SOURCES };

/* A program, an interpreter from outside, or a connection to a port: an operation with input and output. */
struct process {
        struct operation op;
        struct process *next;
        pid_t pid;                   /* 0: the program has ended, or is no child of the guest */
        bool discards_output; /* the operation is over; output is read and dropped, so that no program gets SIGPIPE */
        bool terminal;
        struct source sources[SOURCES];
        struct watch in;
        struct buf rest;             /* input that the program has not taken */
        size_t rest_at;
        struct send_queue messages;  /* for the channel, that the interpreter has not taken */
        bool in_ends;                /* close `in` once the rest is written */
        bool connects, six;          /* a connection: not established yet; over IPv6 */
        uint64_t port;               /* 0: no connection; above UINT16_MAX: a connection to a listener */
};

/* A member of guest.processes without descriptors; the caller opens its operation.  Never NULL. */
struct process *process_new(struct guest *guest);
/* Functions of struct operation_kind, except closed(). */
int process_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err);
void process_room(struct operation *op);

/* Watch the descriptor as source i, which takes *fd if *fd is not -1.  Errors: CSN_E_SYSTEM. */
int process_listen_to(struct process *process, int i, int *fd, struct csn_error *err);
void process_close_source(struct source *source);
/* Write the rest of the input, as much as `in` takes. */
void process_write_in(struct process *process);
/* For closed(): close the input and release the operation.  The process is freed once the output has ended. */
void process_discard_output(struct process *process);

#endif
