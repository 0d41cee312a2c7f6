/*
 * attach: the standard streams of a container, over a connection outside of HTTP (POST /containers/ID/attach).
 *
 * The engine answers 101, or 200 where a proxy or an old engine ignores the Upgrade.  Frames follow: a header {u8
 * stream, 3 zero bytes, u32 length in big-endian order}, and bytes.  The request has no body: podman hands
 * a body to the program as input.
 */
#ifndef BACKEND_DOCKER_ATTACH_H
#define BACKEND_DOCKER_ATTACH_H

#include "backend/docker/engine.h"

#define ATTACH_PIECE (16 * 1024)
#define ATTACH_ERROR_MAX 2048 /* bytes of standard error for error texts */

struct attach_events {
        void (*opened)(void *owner);
        void (*output)(void *owner, const uint8_t *bytes, size_t len); /* of standard output, in order */
        void (*sent)(void *owner);                                     /* all waiting bytes are sent */
        /* Once, the last event: the container or the engine has closed the stream, or the attempt to open failed. */
        void (*ended)(void *owner, const struct csn_error *why);
};

enum attach_state { ATTACH_NONE, ATTACH_CONNECTING, ATTACH_ASKING, ATTACH_OPEN, ATTACH_ENDED };

/* Embedded in a container; all zeros: none. */
struct attach {
        struct loop *loop;
        struct docker_engine *engine;
        const struct attach_events *events;
        void *owner;
        enum attach_state state;
        struct fetch fetch; /* its connection */
        char *request;
        struct watch watch;
        struct buf head; /* of the answer */
        struct buf out;             /* bytes for the engine, from out_at on */
        size_t out_at;
        /* The piece that is being sent: TLS wants the same address again after EAGAIN, and `out` moves. */
        char piece[ATTACH_PIECE];
        size_t piece_at, piece_n;
        bool broken;                /* by this side: the loop tells the end */
        uint8_t header[8]; /* of the incomplete frame */
        size_t header_n;
        uint32_t left;                     /* bytes of the frame */
        bool held;                         /* nothing is read */
        char errors[ATTACH_ERROR_MAX + 1]; /* the begin of standard error */
        size_t errors_n;
};

/* Open the stream to a container before its start.  Failures arrive as ended(), from the loop. */
void attach_open(struct attach *attach, struct loop *loop, struct docker_engine *engine, const char *container,
        const struct attach_events *events, void *owner);
/* Send bytes to standard input.  The bytes are copied.  Failures arrive as ended(), from the loop. */
void attach_send(struct attach *attach, const void *bytes, size_t len);
/* Bytes that wait for the engine. */
size_t attach_waiting(const struct attach *attach);
/* Stop reading, or continue. */
void attach_hold(struct attach *attach, bool on);
/* Close the stream without ended(), and free.  Harmless twice. */
void attach_close(struct attach *attach);

#endif
