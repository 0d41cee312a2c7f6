/*
 * The engine at standard input and output, in a container (wire/guest_stream.h).  Each channel of the stream is an end
 * of a socket pair, and the other end is the socket of an operation: so operations are the same as in a persistent
 * sandbox.
 *
 * Both directions have flow control: the stream is not read while an operation has RELAY_WAITING_MAX packets to
 * take, and operations are not read while STREAM_OUT_MAX bytes wait for the engine.
 */
#include "guest/guest.h"

#include "wire/guest_stream.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define STREAM_OUT_MAX (512 * KIB)
#define STREAM_READ (64 * KIB)
#define RELAY_WAITING_MAX 16

/* A channel. */
struct relay {
        struct relay *next;
        uint32_t channel;
        struct watch sock;         /* its end of the socket pair */
        struct send_queue waiting; /* packets not yet taken by the operation */
};

/* A process has a single stream. */
static struct stream {
        struct guest *guest;
        void (*request)(struct guest *guest, const uint8_t *bytes, size_t len, int *sock);
        struct watch in, out;
        struct buf came, goes;
        size_t gone; /* written bytes of `goes` */
        struct relay *relays;
        bool full; /* operations are not read */
} stream;

static void write_out(void);

static void relay_free(struct relay *relay)
{
        for (struct relay **at = &stream.relays; *at; at = &(*at)->next)
                if (*at == relay) {
                        *at = relay->next;
                        break;
                }
        loop_unwatch(stream.guest->loop, &relay->sock);
        send_queue_done(&relay->waiting);
        fd_close(&relay->sock.fd);
        free(relay);
}

/* ---- to the engine ---- */

static void send_frame(uint32_t channel, const void *bytes, size_t len)
{
        if (!guest_stream_put(&stream.goes, channel, bytes, len))
                _exit(1); /* the buffer has room for a frame beyond STREAM_OUT_MAX */
}

void stream_greet(const void *bytes, size_t len)
{
        send_frame(0, bytes, len);
        write_out();
}

static void hold_relays(bool on)
{
        for (struct relay *relay = stream.relays; relay; relay = relay->next)
                if (send_queue_hold(&relay->waiting, on) < 0)
                        _exit(1);
}

static void write_out(void)
{
        struct csn_error err;
        while (stream.gone < stream.goes.len) {
                ssize_t n = write(stream.out.fd, stream.goes.bytes + stream.gone, stream.goes.len - stream.gone);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n <= 0)
                        _exit(0); /* the engine is gone */
                stream.gone += (size_t)n;
        }
        size_t left = stream.goes.len - stream.gone;
        if (stream.gone > STREAM_OUT_MAX || !left) {
                if (left)
                        memmove(stream.goes.bytes, stream.goes.bytes + stream.gone, left);
                stream.goes.len = left;
                stream.gone = 0;
        }
        if (!left)
                loop_unwatch(stream.guest->loop, &stream.out);
        else if (loop_watch(stream.guest->loop, &stream.out, stream.out.fd, EPOLLOUT, &err) < 0)
                _exit(1);
        bool full = left > STREAM_OUT_MAX;
        if (full != stream.full) {
                stream.full = full;
                hold_relays(full);
        }
}

static void out_ready(struct watch *watch, uint32_t events)
{
        (void)watch, (void)events;
        write_out();
}

/* ---- between the stream and operations ---- */

static bool is_held_back(void)
{
        for (const struct relay *relay = stream.relays; relay; relay = relay->next)
                if (relay->waiting.n >= RELAY_WAITING_MAX)
                        return true;
        return false;
}

static void take_frames(void);

static void listen_to_engine(void)
{
        struct csn_error err;
        bool on = !is_held_back();
        if (on && !stream.in.active) {
                if (loop_watch(stream.guest->loop, &stream.in, stream.in.fd, EPOLLIN, &err) < 0)
                        _exit(1);
                take_frames();
        } else if (!on) {
                loop_unwatch(stream.guest->loop, &stream.in);
        }
}

static void relay_ready(struct watch *watch, uint32_t events)
{
        static uint8_t bytes[WIRE_MAX];
        struct relay *relay = watch->owner;
        if (events & EPOLLOUT && send_queue_flush(&relay->waiting) < 0)
                send_queue_done(&relay->waiting); /* the operation is over; its end is read below */
        if (events & ~(uint32_t)EPOLLOUT && !stream.full) {
                ssize_t n = wire_receive_packet(watch->fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
                if (n > 0 && n <= (ssize_t)sizeof bytes) {
                        send_frame(relay->channel, bytes, (size_t)n);
                } else if (n >= 0 || errno != EAGAIN) {
                        send_frame(relay->channel, "", 0);
                        relay_free(relay);
                }
                write_out();
        }
        listen_to_engine();
}

static void open_channel(uint32_t channel, const uint8_t *bytes, size_t len)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
                processes_let_go(stream.guest);
                send_frame(channel, "", 0);
                return;
        }
        auto_fd theirs = pair[1];
        struct relay *relay = mem_alloc(sizeof *relay);
        *relay = (struct relay){ .next = stream.relays,
                .channel = channel,
                .sock = { .fd = pair[0], .ready = relay_ready, .owner = relay },
                .waiting = { .loop = stream.guest->loop, .watch = &relay->sock } };
        stream.relays = relay;
        if (send_queue_hold(&relay->waiting, stream.full) < 0)
                _exit(1);
        stream.request(stream.guest, bytes, len, &theirs);
}

static void take_frame(const struct guest_frame *frame)
{
        if (frame->channel & GUEST_STREAM_OPEN) {
                open_channel(frame->channel & ~GUEST_STREAM_OPEN, frame->bytes, frame->len);
                return;
        }
        struct relay *relay = stream.relays;
        while (relay && relay->channel != frame->channel)
                relay = relay->next;
        if (!relay)
                return; /* its operation ended meanwhile */
        if (!frame->len)
                relay_free(relay);
        else if (send_queue_put(&relay->waiting, frame->bytes, frame->len, NULL, 0) < 0)
                send_queue_done(&relay->waiting);
}

static void take_frames(void)
{
        struct guest_frame frame;
        struct csn_error err;
        size_t at = 0;
        ssize_t n = 1;
        while (!is_held_back() && n > 0) {
                n = guest_stream_take((const uint8_t *)stream.came.bytes + at, stream.came.len - at, &frame, &err);
                if (n < 0)
                        _exit(1);
                if (n > 0)
                        take_frame(&frame);
                at += (size_t)n;
        }
        if (at) {
                memmove(stream.came.bytes, stream.came.bytes + at, stream.came.len - at);
                stream.came.len -= at;
        }
        write_out();
        listen_to_engine();
}

static void in_ready(struct watch *watch, uint32_t events)
{
        (void)events;
        char *room = buf_extend(&stream.came, STREAM_READ);
        ssize_t n = room ? read(watch->fd, room, STREAM_READ) : 0;
        bool again = n < 0 && (errno == EAGAIN || errno == EINTR);
        if (room)
                stream.came.len -= STREAM_READ - (n > 0 ? (size_t)n : 0);
        if (n <= 0 && !again)
                _exit(0); /* the engine is gone; our exit ends all processes inside */
        take_frames();
}

int stream_open(struct guest *guest,
        void (*request)(struct guest *guest, const uint8_t *bytes, size_t len, int *sock), struct csn_error *err)
{
        stream = (struct stream){ .guest = guest,
                .request = request,
                .in = { .fd = STDIN_FILENO, .ready = in_ready },
                .out = { .fd = STDOUT_FILENO, .ready = out_ready } };
        buf_init(&stream.came, 2 * (size_t)GUEST_STREAM_FRAME_MAX + STREAM_READ);
        buf_init(&stream.goes, 2 * (size_t)STREAM_OUT_MAX + 2 * (size_t)GUEST_STREAM_FRAME_MAX);
        for (int fd = STDIN_FILENO; fd <= STDOUT_FILENO; fd++)
                if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "set up the stream to the engine");
        return loop_watch(guest->loop, &stream.in, stream.in.fd, EPOLLIN, err);
}
