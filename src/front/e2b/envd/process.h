/* A program of a sandbox and its requests; shared by process.c, process_output.c and process_input.c. */
#ifndef FRONT_E2B_ENVD_PROCESS_H
#define FRONT_E2B_ENVD_PROCESS_H

#include "front/e2b/envd/envd.h"

/* A stream of the output and the end of a program. */
struct envd_listener {
        struct envd_listener *next;
        struct envd_process *process;
        struct http_request *request;
        bool began;                        /* the request began the program, and its time-out is the program's */
        struct timer keepalive, deadline;       /* deadline: for listeners that did not begin the program */
        uint64_t keepalive_us;                  /* 0: none */
};

/* A request that waits until its bytes went into the input, or until the program has ended. */
struct envd_waiting {
        struct envd_waiting *next, **list;
        struct envd_process *process;
        struct http_request *request;
        struct bytes bytes;                /* the request's */
        size_t at;
        bool ends;                         /* the input ends after these bytes */
        struct timer patience;
};

struct envd_process {
        struct envd_process *next;
        struct e2b_envd *envd;
        struct loop *loop;
        struct guest_call call;
        uint64_t pid, started_us;
        json_t *config;
        char *tag;                         /* or NULL */
        bool terminal, input, over, timed_out;
        int status;                        /* wait(2) */
        uint64_t in_flight;                /* bytes of input that the program has not read */
        struct envd_listener *listeners;
        struct envd_waiting *inputs, *killers;
        struct timer deadline, expiry;
};

/* ---- listeners (process_output.c) ---- */

/* Add a listener.  begins: the request began the program, so the time-out in its headers becomes the program's. */
struct envd_listener *envd_listener_new(struct envd_process *process, struct http_request *request, bool begins);
void envd_listener_free(struct envd_listener *listener);
/* Begin the stream with the pid.  false: the listener has gone and is freed. */
bool envd_listener_greet(struct envd_listener *listener);
/* Send the end of the program and free the listener. */
void envd_listener_end(struct envd_listener *listener);
/* Send output to all listeners. */
void envd_tell_output(struct envd_process *process, enum guest_kind kind, const uint8_t *bytes, size_t len);

/* ---- waiting requests (process_input.c) ---- */

/* Append a request to a list of the program. */
struct envd_waiting *envd_waiting_new(struct envd_waiting **list, struct envd_process *process,
        struct http_request *request);
void envd_waiting_free(struct envd_waiting *waiting);
/* Remove the first of a list.  The request is the caller's to answer. */
struct http_request *envd_waiting_take(struct envd_waiting **list);
/* Answer all requests of a list by this function. */
void envd_waiting_answer(struct envd_waiting **list, void (*answer)(struct http_request *));
/* Answer with an empty message. */
void envd_answer_empty(struct http_request *request);
/* Send waiting input to the guest, as much as the program's pipe and the socket take.  Called when either has room. */
void envd_send_input(struct guest_call *call);

#endif
