/* Operations of a container's guest; see guest_link.h. */
#include "backend/docker/guest_link.h"

void guest_link_open(struct guest_link *link, struct attach *attach, const struct guest_link_events *events,
        void *owner)
{
        *link = (struct guest_link){ .attach = attach, .events = events, .owner = owner };
        buf_init(&link->came, 2 * (size_t)GUEST_STREAM_FRAME_MAX + 64 * KIB);
}

static void break_off(struct guest_link *link, const struct csn_error *error)
{
        link->is_broken = true;
        link->events->broken(link->owner, error);
}

/* Version of the greeting; a guest of another build is no guest. */
static void take_greeting(struct guest_link *link, const struct guest_frame *frame)
{
        uint64_t version = 0;
        struct csn_error err;
        if (guest_kind_of(frame->bytes, frame->len) == GUEST_HELLO &&
                guest_get_number(frame->bytes, frame->len, &version, &err) == 0 && version == GUEST_VERSION) {
                link->events->greeted(link->owner);
                return;
        }
        err_set(&err, CSN_E_PROTOCOL, 0,
                "image_unsuitable: process 1 of the container speaks version %u of the guest's protocol, and this program speaks "
                "version %d; put the folder lang of the same release into the image (COPY lang /opt/caisson)",
                (unsigned)version, GUEST_VERSION);
        break_off(link, &err);
}

static void take_frame(struct guest_link *link, const struct guest_frame *frame)
{
        if (frame->channel == 0) {
                take_greeting(link, frame);
                return;
        }
        struct guest_op *op = link->ops;
        while (op && op->channel != frame->channel)
                op = op->next;
        if (!op)
                return; /* it ended here meanwhile */
        if (frame->len) {
                op->heard(op, frame->bytes, frame->len);
        } else {
                guest_op_end(op);
                op->heard(op, NULL, 0);
        }
}

void guest_link_take(struct guest_link *link, const uint8_t *bytes, size_t len)
{
        struct guest_frame frame;
        struct csn_error err;
        ssize_t n = 1;
        size_t at = 0;
        if (link->is_broken)
                return;
        if (!buf_add(&link->came, bytes, len)) {
                err_set(&err, CSN_E_PROTOCOL, 0, "the guest sent more than a frame without an end");
                break_off(link, &err);
                return;
        }
        while (!link->is_broken &&
                (n = guest_stream_take((const uint8_t *)link->came.bytes + at, link->came.len - at, &frame, &err)) >
                        0) {
                at += (size_t)n;
                take_frame(link, &frame);
        }
        if (n < 0) {
                break_off(link, &err);
                return;
        }
        memmove(link->came.bytes, link->came.bytes + at, link->came.len - at);
        link->came.len -= at;
}

void guest_link_close(struct guest_link *link)
{
        while (link->ops)
                guest_op_end(link->ops);
        buf_done(&link->came);
        *link = (struct guest_link){ 0 };
}

static void send_frame(struct guest_link *link, uint32_t channel, const void *bytes, size_t len)
{
        struct buf frame;
        buf_init(&frame, GUEST_STREAM_FRAME_MAX);
        if (guest_stream_put(&frame, channel, bytes, len))
                attach_send(link->attach, frame.bytes, frame.len);
        buf_done(&frame);
}

void guest_op_begin(struct guest_link *link, struct guest_op *op, const struct buf *request)
{
        op->link = link;
        op->channel = ++link->newest;
        op->next = link->ops;
        link->ops = op;
        send_frame(link, op->channel | GUEST_STREAM_OPEN, request->bytes, request->len);
}

void guest_op_send(const struct guest_op *op, const void *bytes, size_t len)
{
        if (op->link)
                send_frame(op->link, op->channel, bytes, len);
}

void guest_op_end(struct guest_op *op)
{
        if (!op->link)
                return;
        for (struct guest_op **at = &op->link->ops; *at; at = &(*at)->next)
                if (*at == op) {
                        *at = op->next;
                        break;
                }
        send_frame(op->link, op->channel, "", 0);
        op->link = NULL;
}

bool guest_op_is_on(const struct guest_op *op)
{
        return op->link != NULL;
}
