/* Packets that wait for a peer who does not read: nothing of ours ever blocks on somebody else. */
#include "wire/wire.h"

#include <fcntl.h>
#include <sys/epoll.h>

struct outbox_packet {
        struct outbox_packet *next;
        size_t len, fds_n;
        int fds[WIRE_FDS_MAX];
        uint8_t bytes[];
};

static int listen_for(struct outbox *outbox, uint32_t events)
{
        struct csn_error err;
        if (loop_watch(outbox->loop, outbox->watch, outbox->watch->fd, events, &err) == 0)
                return 0;
        errno = err.sys;
        return -1;
}

static void packet_free(struct outbox_packet *packet)
{
        for (size_t i = 0; i < packet->fds_n; i++)
                fd_close(&packet->fds[i]);
        free(packet);
}

static int keep(struct outbox *outbox, const void *bytes, size_t len, const int *fds, size_t fds_n)
{
        if (outbox->n == OUTBOX_MAX) {
                errno = ENOBUFS;
                return -1;
        }
        struct outbox_packet *packet = mem_alloc(sizeof *packet + len);
        packet->len = len;
        memcpy(packet->bytes, bytes, len);
        for (; packet->fds_n < fds_n; packet->fds_n++) {
                packet->fds[packet->fds_n] = fcntl(fds[packet->fds_n], F_DUPFD_CLOEXEC, 0);
                if (packet->fds[packet->fds_n] < 0) {
                        packet_free(packet);
                        return -1;
                }
        }
        if (outbox->last)
                outbox->last->next = packet;
        else
                outbox->first = packet;
        outbox->last = packet;
        outbox->n++;
        return outbox->n == 1 ? listen_for(outbox, EPOLLIN | EPOLLOUT) : 0;
}

int outbox_put(struct outbox *outbox, const void *bytes, size_t len, const int *fds, size_t fds_n)
{
        if (!outbox->n && wire_send(outbox->watch->fd, bytes, len, fds, fds_n) == 0)
                return 0;
        if (!outbox->n && errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS)
                return -1;
        return keep(outbox, bytes, len, fds, fds_n);
}

int outbox_flush(struct outbox *outbox)
{
        while (outbox->first) {
                struct outbox_packet *packet = outbox->first;
                if (wire_send(outbox->watch->fd, packet->bytes, packet->len, packet->fds, packet->fds_n) < 0)
                        return errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS ? 0 : -1;
                outbox->first = packet->next;
                if (!outbox->first)
                        outbox->last = NULL;
                outbox->n--;
                packet_free(packet);
        }
        return listen_for(outbox, EPOLLIN);
}

void outbox_done(struct outbox *outbox)
{
        while (outbox->first) {
                struct outbox_packet *next = outbox->first->next;
                packet_free(outbox->first);
                outbox->first = next;
        }
        outbox->last = NULL;
        outbox->n = 0;
}
