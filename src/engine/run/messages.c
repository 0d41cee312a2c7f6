/* Runs that are talked with: messages of any length over the private channel, both ways. */
#include "engine/run/run_private.h"

#define TALK_WAITING_MAX 1024          /* packets, of at most 64 KiB, that are not read yet */
#define FRAME_ROOM (CHANNEL_FRAME_MAX - CHANNEL_HEADER)

void run_set_message_handler(struct run *run, const struct run_message_handler *message_handler, void *owner)
{
        run->launch.has_messages = true;
        run->message_handler = message_handler;
        run->message_handler_owner = owner;
}

/* What it does not read adds up here, and somebody who reads nothing is stuck, or wants our memory. */
int run_send_message(struct run *run, const char *message, size_t len)
{
        if (len > CHANNEL_MESSAGE_MAX)
                return -EMSGSIZE;
        if (run->state >= RUN_RECORDING || (run->state == RUN_RUNNING && !run->channel_watch.active))
                return -EPIPE;
        if (run->state != RUN_RUNNING || run->said.n > TALK_WAITING_MAX)
                return -EAGAIN;
        run->said.loop = run->engine->loop;
        run->said.watch = &run->channel_watch;
        for (size_t at = 0; at < len || at == 0; at += FRAME_ROOM) {
                size_t n = len - at < FRAME_ROOM ? len - at : FRAME_ROOM;
                uint8_t frame[CHANNEL_FRAME_MAX] = { 'C', 'S', 'N', '1', CHANNEL_MESSAGE,
                        at + n < len ? CHANNEL_MORE : 0 };
                for (int i = 0; i < 4; i++)
                        frame[8 + i] = (uint8_t)(n >> 8 * i);
                memcpy(frame + CHANNEL_HEADER, message + at, n);
                if (send_queue_put(&run->said, frame, CHANNEL_HEADER + n, NULL, 0) < 0)
                        return -EPIPE;
        }
        return 0;
}

void run_take_message(struct run *run, enum channel_type type)
{
        struct buf *part = &run->channel.part[CHANNEL_MESSAGE];
        if (!run->message_handler || run->cancelled || run->channel.pending)
                return;
        if (type == CHANNEL_HELLO && run->message_handler->hello_received)
                run->message_handler->hello_received(run->message_handler_owner);
        if (type == CHANNEL_MESSAGE) {
                run->message_handler->said(run->message_handler_owner, part->bytes ? part->bytes : "", part->len);
                /* Much is not kept for little. */
                if (part->size > MIB)
                        buf_done(part);
                part->len = 0;
        }
}
