#include "lang/python/run/channel.h"

#include "wire/wire.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define CHANNEL_FD 3

int channel_move_away(int fd)
{
        static const int lowest[] = { CHANNEL_USUAL_FD, 200, 20 };   /* the first below RLIMIT_NOFILE */
        for (size_t i = 0; i < ARRAY_LEN(lowest); i++) {
                int high = fcntl(fd, F_DUPFD_CLOEXEC, lowest[i]);
                if (high >= 0) {
                        close(fd);
                        return high;
                }
        }
        return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? -1 : fd;
}

bool channel_open(struct where *ret_where)
{
        struct stat about;
        int fd = fstat(CHANNEL_FD, &about) == 0 && S_ISSOCK(about.st_mode) ? channel_move_away(CHANNEL_FD) : -1;
        if (fd >= 0)
                *ret_where = (struct where){ fd, getpid(), about.st_dev, about.st_ino };
        return fd >= 0;
}

bool channel_send(const struct where *to, int type, int flags, const char *payload, size_t len, int how)
{
        struct stat about;
        uint8_t header[CHANNEL_HEADER] = { 'C', 'S', 'N', '1', (uint8_t)type, (uint8_t)flags, 0, 0, len & 0xff,
                len >> 8 & 0xff, len >> 16 & 0xff, len >> 24 & 0xff };
        struct iovec parts[] = { { header, sizeof header }, { (void *)(uintptr_t)payload, len } };
        errno = EBADF;
        if (to->pid != getpid() || fstat(to->fd, &about) < 0 || about.st_dev != to->device || about.st_ino != to->inode)
                return false;
        return sendmsg(to->fd, &(struct msghdr){ .msg_iov = parts, .msg_iovlen = 2 }, how | MSG_NOSIGNAL) >= 0;
}

void channel_say(const struct where *to, int type, const char *payload, size_t len)
{
        while (!channel_send(to, type, 0, payload, len, 0) && errno == EINTR)
                ;
}
