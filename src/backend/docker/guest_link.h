/* guest link: operations of a container's guest, each a channel of the stream (wire/guest_stream.h). */
#ifndef BACKEND_DOCKER_GUEST_LINK_H
#define BACKEND_DOCKER_GUEST_LINK_H

#include "backend/docker/attach.h"
#include "wire/guest_stream.h"

struct guest_link;

/* One operation.  Embedded in the caller's object; all zeros: none. */
struct guest_op {
        struct guest_op *next;
        struct guest_link *link;         /* NULL: closed */
        uint32_t channel;
        /* A packet; bytes is valid during the call.  NULL: the guest has closed the channel: the operation is over. */
        void (*heard)(struct guest_op *op, const uint8_t *bytes, size_t len);
        void *owner;
};

struct guest_link_events {
        void (*greeted)(void *owner);                               /* the guest serves */
        void (*broken)(void *owner, const struct csn_error *error); /* the guest broke the protocol */
};

/* Embedded in a container. */
struct guest_link {
        struct attach *attach;
        const struct guest_link_events *events;
        void *owner;
        struct buf came;
        uint32_t newest; /* number of the newest channel */
        struct guest_op *ops;
        bool is_broken;
};

void guest_link_open(struct guest_link *link, struct attach *attach, const struct guest_link_events *events,
        void *owner);
/* Take output of the container. */
void guest_link_take(struct guest_link *link, const uint8_t *bytes, size_t len);
/* Forget all operations, without heard(). */
void guest_link_close(struct guest_link *link);

/* Begin an operation with this request; op->heard is set.  The caller keeps the request. */
void guest_op_begin(struct guest_link *link, struct guest_op *op, const struct buf *request);
/* Send a packet; without effect after the end of the operation. */
void guest_op_send(const struct guest_op *op, const void *bytes, size_t len);
/* End the operation without heard().  Harmless twice. */
void guest_op_end(struct guest_op *op);
bool guest_op_is_on(const struct guest_op *op);

#endif
