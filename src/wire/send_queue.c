/* Packets waiting for a slow peer: our processes never block on a peer. */
#include "wire/wire.h"

#include <fcntl.h>
#include <sys/epoll.h>

struct send_queue_packet {
        struct send_queue_packet *next;
        size_t len, fds_n;
        int fds[WIRE_FDS_MAX];
        uint8_t bytes[];
};

static int listen_now(struct send_queue *send_queue)
{
        struct csn_error err;
        uint32_t events = (send_queue->held ? 0 : EPOLLIN) | (send_queue->n ? EPOLLOUT : 0);
        if (loop_watch(send_queue->loop, send_queue->watch, send_queue->watch->fd, events, &err) == 0)
                return 0;
        errno = err.sys;
        return -1;
}

static void packet_free(struct send_queue_packet *packet)
{
        for (size_t i = 0; i < packet->fds_n; i++)
                fd_close(&packet->fds[i]);
        free(packet);
}

static int keep(struct send_queue *send_queue, const void *bytes, size_t len, const int *fds, size_t fds_n)
{
        if (send_queue->n == SEND_QUEUE_MAX) {
                errno = ENOBUFS;
                return -1;
        }
        struct send_queue_packet *packet = mem_alloc(sizeof *packet + len);
        packet->len = len;
        memcpy(packet->bytes, bytes, len);
        for (; packet->fds_n < fds_n; packet->fds_n++) {
                packet->fds[packet->fds_n] = fcntl(fds[packet->fds_n], F_DUPFD_CLOEXEC, 0);
                if (packet->fds[packet->fds_n] < 0) {
                        packet_free(packet);
                        return -1;
                }
        }
        if (send_queue->last)
                send_queue->last->next = packet;
        else
                send_queue->first = packet;
        send_queue->last = packet;
        send_queue->n++;
        return send_queue->n == 1 ? listen_now(send_queue) : 0;
}

int send_queue_put(struct send_queue *send_queue, const void *bytes, size_t len, const int *fds, size_t fds_n)
{
        if (!send_queue->n && wire_send(send_queue->watch->fd, bytes, len, fds, fds_n) == 0)
                return 0;
        if (!send_queue->n && errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS)
                return -1;
        return keep(send_queue, bytes, len, fds, fds_n);
}

void send_queue_packets_free(struct send_queue_packet *packets)
{
        while (packets) {
                struct send_queue_packet *next = packets->next;
                packet_free(packets);
                packets = next;
        }
}

int send_queue_append(struct send_queue *send_queue, struct send_queue_packet *packets)
{
        size_t n = 0;
        for (const struct send_queue_packet *packet = packets; packet; packet = packet->next)
                n++;
        if (n > SEND_QUEUE_MAX - send_queue->n) {
                send_queue_packets_free(packets);
                errno = ENOBUFS;
                return -1;
        }
        if (send_queue->last)
                send_queue->last->next = packets;
        else
                send_queue->first = packets;
        for (; packets; packets = packets->next)
                send_queue->last = packets;
        send_queue->n += n;
        if (send_queue->n > n)
                return 0;
        return send_queue_flush(send_queue) < 0 ? -1 : listen_now(send_queue);
}

struct send_queue_packet *channel_frames(enum channel_type type, const char *message, size_t len)
{
        enum { ROOM = CHANNEL_FRAME_MAX - CHANNEL_HEADER };
        struct send_queue_packet *first = NULL, **last = &first;
        if (len > CHANNEL_MESSAGE_MAX)
                return NULL;
        for (size_t at = 0; at < len || at == 0; at += ROOM) {
                size_t n = len - at < ROOM ? len - at : ROOM;
                const uint8_t head[CHANNEL_HEADER] = { 'C', 'S', 'N', '1', (uint8_t)type,
                        at + n < len ? CHANNEL_MORE : 0, 0, 0, (uint8_t)n, (uint8_t)(n >> 8), 0, 0 };
                struct send_queue_packet *packet = mem_resize(NULL, sizeof *packet + CHANNEL_HEADER + n);
                *packet = (struct send_queue_packet){ .len = CHANNEL_HEADER + n };
                memcpy(packet->bytes, head, sizeof head);
                memcpy(packet->bytes + CHANNEL_HEADER, message + at, n);
                *last = packet;
                last = &packet->next;
        }
        return first;
}

int send_queue_flush(struct send_queue *send_queue)
{
        for (size_t sent = 0; send_queue->first; sent++) {
                struct send_queue_packet *packet = send_queue->first;
                if (sent == SEND_QUEUE_AT_ONCE)
                        return 0;
                if (wire_send(send_queue->watch->fd, packet->bytes, packet->len, packet->fds, packet->fds_n) < 0)
                        return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? 0 : -1;
                send_queue->first = packet->next;
                if (!send_queue->first)
                        send_queue->last = NULL;
                send_queue->n--;
                packet_free(packet);
        }
        return listen_now(send_queue);
}

int send_queue_hold(struct send_queue *send_queue, bool on)
{
        send_queue->held = on;
        return listen_now(send_queue);
}

void send_queue_done(struct send_queue *send_queue)
{
        send_queue_packets_free(send_queue->first);
        send_queue->first = send_queue->last = NULL;
        send_queue->n = 0;
}
