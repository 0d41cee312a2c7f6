/* A message is a packet, with attached descriptors (unix(7), SCM_RIGHTS). */
#include "wire/wire.h"

#include <sys/socket.h>

int wire_send(int sock, const void *bytes, size_t len, const int *fds, size_t fds_n)
{
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
        } control = { 0 };
        struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
        if (fds_n > 0) {
                msg.msg_control = control.bytes;
                msg.msg_controllen = CMSG_SPACE(sizeof(int) * fds_n);
                struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
                cmsg->cmsg_level = SOL_SOCKET;
                cmsg->cmsg_type = SCM_RIGHTS;
                cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fds_n);
                memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fds_n);
        }
        ssize_t n;
        do
                n = sendmsg(sock, &msg, MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        return n < 0 ? -1 : 0;
}

/*
 * A peer closing a Unix socket with unread packets causes a single ECONNRESET, which comes before the packets sent by
 * the peer (unix(7); the kernel clears the error on reporting the error).
 */
static bool is_no_end(ssize_t n)
{
        return n < 0 && (errno == EINTR || errno == ECONNRESET);
}

ssize_t wire_receive_packet(int sock, void *bytes, size_t size, int flags)
{
        ssize_t n;
        do
                n = recv(sock, bytes, size, flags);
        while (is_no_end(n));
        return n;
}

/* Descriptors above WIRE_FDS_MAX, or of a truncated message, are an attack, and are closed. */
static size_t take_descriptors(struct msghdr *msg, int fds[WIRE_FDS_MAX], bool *ret_cut)
{
        size_t n = 0;
        for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
                if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
                        continue;
                size_t got = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                for (size_t i = 0; i < got; i++) {
                        int fd;
                        memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof fd, sizeof fd);
                        if (n < WIRE_FDS_MAX) {
                                fds[n++] = fd;
                        } else {
                                fd_close(&fd);
                                *ret_cut = true;
                        }
                }
        }
        return n;
}

/* ret_lost NULL: lost descriptors are an attack. */
static ssize_t receive(int sock, void *bytes, size_t size, int fds[WIRE_FDS_MAX], size_t *ret_fds_n, bool *ret_lost)
{
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int) * WIRE_FDS_MAX)];
        } control;
        struct iovec iov = { .iov_base = bytes, .iov_len = size };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                fds[i] = -1;
        *ret_fds_n = 0;

        ssize_t n;
        do
                n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
        while (is_no_end(n));
        if (n < 0)
                return -1;
        bool cut = (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
        size_t got = take_descriptors(&msg, fds, &cut);
        if (cut) {
                for (size_t i = 0; i < got; i++)
                        fd_close(&fds[i]);
                got = 0;
        }
        if (cut && (!ret_lost || msg.msg_flags & MSG_TRUNC)) {
                errno = EPROTO;
                return -1;
        }
        if (ret_lost)
                *ret_lost = cut;
        *ret_fds_n = got;
        return n;
}

ssize_t wire_receive_small(int sock, void *bytes, size_t size, int fds[WIRE_FDS_MAX], size_t *ret_fds_n)
{
        return receive(sock, bytes, size, fds, ret_fds_n, NULL);
}

ssize_t wire_receive_lossy(int sock, void *bytes, int fds[WIRE_FDS_MAX], size_t *ret_fds_n, bool *ret_lost)
{
        return receive(sock, bytes, WIRE_MAX, fds, ret_fds_n, ret_lost);
}

ssize_t wire_receive(int sock, void *bytes, int fds[WIRE_FDS_MAX], size_t *ret_fds_n)
{
        return wire_receive_small(sock, bytes, WIRE_MAX, fds, ret_fds_n);
}
