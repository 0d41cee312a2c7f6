/* Local pipes, channel and folder of a program outside the native backend; see far_ends.h. */
#include "backend/far_ends.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void write_output(struct far_output *output)
{
        struct loop *loop = output->ends->loop;
        while (output->at < output->text.len) {
                ssize_t n = write(output->watch.fd, output->text.bytes + output->at, output->text.len - output->at);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN && !output->watch.active)
                        loop_watch(loop, &output->watch, output->watch.fd, EPOLLOUT, NULL);
                if (n < 0 && errno == EAGAIN)
                        return;
                output->at += n < 0 ? output->text.len - output->at : (size_t)n;
        }
        output->at = output->text.len = 0;
        loop_unwatch(loop, &output->watch);
}

static void on_room(struct watch *watch, uint32_t events)
{
        struct far_output *output = watch->owner;
        (void)events;
        write_output(output);
        output->ends->events->taken(output->ends->owner);
}

static void on_channel(struct watch *watch, uint32_t events)
{
        static uint8_t bytes[CHANNEL_FRAME_MAX];
        struct far_ends *ends = watch->owner;
        bool good = !(events & EPOLLOUT) || send_queue_flush(&ends->frames) == 0;
        if (good && events & ~(uint32_t)EPOLLOUT) {
                ssize_t n = wire_receive_packet(watch->fd, bytes, sizeof bytes, MSG_DONTWAIT);
                good = n > 0 || (n < 0 && errno == EAGAIN);
                if (n > 0 && ends->events->heard)
                        ends->events->heard(ends->owner, bytes, (size_t)n);
        }
        if (!good) { /* the engine has closed its end */
                send_queue_done(&ends->frames);
                loop_unwatch(ends->loop, watch);
        }
        ends->events->taken(ends->owner);
}

bool far_ends_print(struct far_ends *ends, int stream, const void *bytes, size_t len)
{
        struct far_output *output = &ends->printed[stream];
        bool fits = buf_add(&output->text, bytes, len);
        write_output(output);
        return fits;
}

void far_ends_frame(struct far_ends *ends, const void *bytes, size_t len)
{
        /* An error: the engine has closed its end, which the loop reports. */
        send_queue_put(&ends->frames, bytes, len, NULL, 0);
}

void far_ends_say(struct far_ends *ends, enum channel_type type, const char *text, size_t len)
{
        struct send_queue_packet *packets = channel_frames(type, text, len);
        if (packets)
                send_queue_append(&ends->frames, packets);
}

size_t far_ends_waiting(const struct far_ends *ends)
{
        return ends->printed[0].text.len + ends->printed[1].text.len + ends->frames.n * CHANNEL_FRAME_MAX;
}

static int make_ends(struct far_ends *ends, struct backend_ends *ret, struct csn_error *err)
{
        int pair[2];
        for (int i = 0; i < 2; i++) {
                if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "pipe");
                *(i == 0 ? &ret->out : &ret->error) = pair[0];
                ends->printed[i].watch.fd = pair[1];
        }
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        ret->channel = pair[0];
        ends->channel.fd = pair[1];
        if (!mkdtemp(ends->folder)) {
                ends->folder[0] = 0;
                return err_set(err, CSN_E_SYSTEM, errno, "make a folder for the run in /var/tmp");
        }
        ends->home = open(ends->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ret->home = ends->home < 0 ? -1 : fcntl(ends->home, F_DUPFD_CLOEXEC, 0);
        if (ret->home < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the run's folder");
        return loop_watch(ends->loop, &ends->channel, ends->channel.fd, EPOLLIN, err);
}

int far_ends_open(struct far_ends *ends, struct loop *loop, const char *name, const struct far_ends_events *events,
        void *owner, struct backend_ends *ret, struct csn_error *err)
{
        *ends = (struct far_ends){ .loop = loop,
                .events = events,
                .owner = owner,
                .channel = { .fd = -1, .ready = on_channel, .owner = ends },
                .frames = { .loop = loop, .watch = &ends->channel },
                .home = -1 };
        for (int i = 0; i < 2; i++) {
                ends->printed[i].ends = ends;
                ends->printed[i].watch = (struct watch){ .fd = -1, .ready = on_room, .owner = &ends->printed[i] };
                buf_init(&ends->printed[i].text, FAR_ENDS_PRINTED_MAX);
        }
        snprintf(ends->folder, sizeof ends->folder, "/var/tmp/caisson-%s-XXXXXX", name);
        *ret = (struct backend_ends){ -1, -1, -1, -1, -1, -1 };
        if (make_ends(ends, ret, err) == 0)
                return 0;
        fd_close(&ret->home);
        fd_close(&ret->out);
        fd_close(&ret->error);
        fd_close(&ret->channel);
        far_ends_close(ends);
        if (ends->folder[0])
                io_remove_tree(AT_FDCWD, ends->folder);
        return -err->code;
}

void far_ends_close(struct far_ends *ends)
{
        send_queue_done(&ends->frames);
        loop_unwatch(ends->loop, &ends->channel);
        fd_close(&ends->channel.fd);
        for (int i = 0; i < 2; i++) {
                loop_unwatch(ends->loop, &ends->printed[i].watch);
                fd_close(&ends->printed[i].watch.fd);
                buf_done(&ends->printed[i].text);
        }
        fd_close(&ends->home);
}
