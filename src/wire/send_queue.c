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

static int listen_for(struct send_queue *send_queue, uint32_t events)
{
        struct csn_error err;
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
        return send_queue->n == 1 ? listen_for(send_queue, EPOLLIN | EPOLLOUT) : 0;
}

int send_queue_put(struct send_queue *send_queue, const void *bytes, size_t len, const int *fds, size_t fds_n)
{
        if (!send_queue->n && wire_send(send_queue->watch->fd, bytes, len, fds, fds_n) == 0)
                return 0;
        if (!send_queue->n && errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS)
                return -1;
        return keep(send_queue, bytes, len, fds, fds_n);
}

int send_queue_flush(struct send_queue *send_queue)
{
        while (send_queue->first) {
                struct send_queue_packet *packet = send_queue->first;
                if (wire_send(send_queue->watch->fd, packet->bytes, packet->len, packet->fds, packet->fds_n) < 0)
                        return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? 0 : -1;
                send_queue->first = packet->next;
                if (!send_queue->first)
                        send_queue->last = NULL;
                send_queue->n--;
                packet_free(packet);
        }
        return listen_for(send_queue, EPOLLIN);
}

void send_queue_done(struct send_queue *send_queue)
{
        while (send_queue->first) {
                struct send_queue_packet *next = send_queue->first->next;
                packet_free(send_queue->first);
                send_queue->first = next;
        }
        send_queue->last = NULL;
        send_queue->n = 0;
}
