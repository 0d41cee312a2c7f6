/* Messages between the engine and a run: any length, both ways, over the private channel. */
#include "engine/run/run_private.h"

#define TALK_WAITING_MAX 1024          /* unread packets, of at most 64 KiB */

void run_set_message_handler(struct run *run, const struct run_message_handler *message_handler, void *owner)
{
        run->launch.has_messages = true;
        run->message_handler = message_handler;
        run->message_handler_owner = owner;
}

/* Unread messages wait here, up to TALK_WAITING_MAX: a program that does not read is stuck, or attacks our memory. */
int run_send_message(struct run *run, const char *message, size_t len)
{
        struct send_queue_packet *frames = channel_frames(CHANNEL_MESSAGE, message, len);
        return frames ? run_send_frames(run, frames) : -EMSGSIZE;
}

static int may_send(const struct run *run)
{
        if (run->state >= RUN_RECORDING || (run->state == RUN_RUNNING && !run->channel_watch.active))
                return -EPIPE;
        if (run->state != RUN_RUNNING || run->said.n > TALK_WAITING_MAX)
                return -EAGAIN;
        return 0;
}

int run_send_frames(struct run *run, struct send_queue_packet *frames)
{
        int rc = may_send(run);
        if (rc < 0) {
                send_queue_packets_free(frames);
                return rc;
        }
        run->said.loop = run->engine->loop;
        run->said.watch = &run->channel_watch;
        return send_queue_append(&run->said, frames) < 0 ? -EPIPE : 0;
}

void run_take_message(struct run *run, enum channel_type type)
{
        struct buf *part = &run->channel.part[CHANNEL_MESSAGE];
        if (!run->message_handler || run->cancelled || run->channel.pending)
                return;
        if (type == CHANNEL_HELLO && run->message_handler->hello_received)
                run->message_handler->hello_received(run->message_handler_owner);
        if (type == CHANNEL_MESSAGE) {
                size_t max = part->max;
                run->message_handler->said(run->message_handler_owner, part);
                if (part->size > MIB)       /* Much is not kept for little. */
                        buf_done(part);
                part->max = max;
                part->len = 0;
        }
}

void run_hold_messages(struct run *run, bool on)
{
        if (!run->channel_watch.active)
                return;
        run->said.loop = run->engine->loop;
        run->said.watch = &run->channel_watch;
        if (send_queue_hold(&run->said, on) < 0)
                log_text(LOG_WARN, "watch the channel of a runner: %s", strerrordesc_np(errno));
}
