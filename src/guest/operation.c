/* An operation: packets to the engine on the socket of the operation, and its end. */
#include "guest/guest.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FULL 4                 /* packets waiting for the engine */

static void operation_ready(struct watch *watch, uint32_t events)
{
        static uint8_t bytes[WIRE_MAX];
        struct operation *op = watch->owner;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct csn_error err = { 0 };
        if (events & EPOLLOUT) {
                if (send_queue_flush(&op->out) < 0) {
                        op->kind->closed(op);
                        return;
                }
                if (!operation_is_full(op)) {
                        op->kind->room(op);
                        return;   /* the operation may be freed; the loop reports unread packets again */
                }
        }
        if (!(events & ~(uint32_t)EPOLLOUT))
                return;
        ssize_t len = wire_receive(op->sock.fd, bytes, fds, &fds_n);
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
        if (len < 0 && errno == EAGAIN)
                return;
        if (len <= 0)
                op->kind->closed(op);
        else if (!op->over && op->kind->take(op, bytes, (size_t)len, &err) < 0)
                operation_fail(op, &err);
}

bool operation_open(struct operation *op, struct guest *guest, const struct operation_kind *kind, int *sock)
{
        struct csn_error err;
        op->guest = guest;
        op->kind = kind;
        op->sock = (struct watch){ .fd = -1, .ready = operation_ready, .owner = op };
        op->out = (struct send_queue){ .loop = guest->loop, .watch = &op->sock };
        op->next = guest->operations;
        guest->operations = op;
        guest->operations_n++;
        op->sock.fd = take_fd(sock);
        if (fcntl(op->sock.fd, F_SETFL, O_NONBLOCK) < 0 ||
                loop_watch(guest->loop, &op->sock, op->sock.fd, EPOLLIN, &err) < 0) {
                kind->closed(op);
                return false;
        }
        return true;
}

bool operation_send(struct operation *op, const void *bytes, size_t len, const int *fds, size_t fds_n)
{
        /* The loop serves the end of a broken connection. */
        return !op->over && send_queue_put(&op->out, bytes, len, fds, fds_n) == 0;
}

bool operation_tell(struct operation *op, enum guest_kind kind)
{
        uint8_t byte = (uint8_t)kind;
        bool sent = operation_send(op, &byte, 1, NULL, 0);
        if (kind == GUEST_DONE)
                op->over = true;
        return sent;
}

static bool send_packet(struct operation *op, struct buf *packet, bool fits)
{
        bool sent = fits && operation_send(op, packet->bytes, packet->len, NULL, 0);
        buf_done(packet);
        return sent;
}

bool operation_tell_number(struct operation *op, enum guest_kind kind, uint64_t number)
{
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        return send_packet(op, &packet, guest_put_number(&packet, kind, number));
}

bool operation_tell_entry(struct operation *op, const struct guest_entry *entry)
{
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        return send_packet(op, &packet, guest_put_entry(&packet, entry));
}

bool operation_is_full(const struct operation *op)
{
        return op->out.n >= FULL;
}

void operation_again(struct operation *op)
{
        struct csn_error err;
        if (loop_watch(op->guest->loop, &op->sock, op->sock.fd, EPOLLIN | EPOLLOUT, &err) < 0)
                operation_fail(op, &err);
}

void operation_fail(struct operation *op, const struct csn_error *err)
{
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        send_packet(op, &packet, guest_put_error(&packet, err));
        op->over = true;
}

void operation_release(struct operation *op)
{
        for (struct operation **at = &op->guest->operations; *at; at = &(*at)->next)
                if (*at == op) {
                        *at = op->next;
                        op->guest->operations_n--;
                        break;
                }
        loop_unwatch(op->guest->loop, &op->sock);
        send_queue_done(&op->out);
        fd_close(&op->sock.fd);
}
