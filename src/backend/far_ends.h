/*
 * far ends: the engine's descriptors of a program in a foreign place: pipes for standard output and error, a socket
 * for the runner channel, and a folder on this host as a mirror of the program's home directory.  Shared by the
 * backends e2b and docker.
 */
#ifndef BACKEND_FAR_ENDS_H
#define BACKEND_FAR_ENDS_H

#include "backend/backend.h"

#define FAR_ENDS_PRINTED_MAX (64 * MIB) /* unread bytes of one stream */

struct far_ends;

struct far_ends_events {
        /* A frame of the engine for the runner.  NULL: the engine's frames are dropped. */
        void (*heard)(void *owner, const uint8_t *bytes, size_t len);
        void (*taken)(void *owner); /* bytes or frames were read */
};

/* One output stream. */
struct far_output {
        struct far_ends *ends;
        struct watch watch; /* the writing end of a pipe, watched while the pipe is full */
        struct buf text;    /* bytes from `at` on wait for the pipe */
        size_t at;
};

/* All zeros is no valid object: far_ends_open() initializes. */
struct far_ends {
        struct loop *loop;
        const struct far_ends_events *events;
        void *owner;
        struct far_output printed[2]; /* standard output, standard error */
        struct watch channel;
        struct send_queue frames;
        char folder[64]; /* absolute path, or "" */
        int home;
};

/*
 * Make the ends; `name` is a part of the folder's name.  *ret is the caller's to give to the engine.  On an error
 * nothing is left.  Errors: CSN_E_SYSTEM.
 */
int far_ends_open(struct far_ends *ends, struct loop *loop, const char *name, const struct far_ends_events *events,
        void *owner, struct backend_ends *ret, struct csn_error *err);
/* Close all but the folder; the caller removes far_ends.folder after its last use by the engine. */
void far_ends_close(struct far_ends *ends);
/* Pass on output of stream 0 or 1, in order.  false: FAR_ENDS_PRINTED_MAX bytes wait, and the bytes are dropped. */
bool far_ends_print(struct far_ends *ends, int stream, const void *bytes, size_t len);
/* Send the engine a frame of the runner channel, whole as a runner would, or in frames of this type. */
void far_ends_frame(struct far_ends *ends, const void *bytes, size_t len);
void far_ends_say(struct far_ends *ends, enum channel_type type, const char *text, size_t len);
/* Waiting bytes, each frame counted with its largest size; 0: all is in the pipes. */
size_t far_ends_waiting(const struct far_ends *ends);

#endif
