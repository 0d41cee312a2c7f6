/* Helpers for descriptors, with correct handling of EINTR, size limits and seals. */
#include "base/base.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

void fd_close(int *fd)
{
        if (*fd < 0)
                return;
        int saved = errno;
        close(*fd);
        *fd = -1;
        errno = saved;
}

int io_write_all(int fd, const void *bytes, size_t len)
{
        const char *at = bytes;
        while (len > 0) {
                ssize_t n = write(fd, at, len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -1;
                at += n;
                len -= (size_t)n;
        }
        return 0;
}

ssize_t io_read_file(int dir_fd, const char *path, char *buf, size_t max)
{
        auto_fd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -1;
        size_t len = 0;
        while (len <= max) {
                /* There is room for max + 1 bytes, so "exactly max" and "more than max" differ. */
                ssize_t n = read(fd, buf + len, max + 1 - len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -1;
                if (n == 0) {
                        buf[len] = 0;
                        return (ssize_t)len;
                }
                len += (size_t)n;
        }
        errno = EFBIG;
        return -1;
}

int io_make_folders(const char *path)
{
        char part[4096];
        for (size_t i = 1; path[i - 1]; i++)
                if (path[i] == '/' || path[i] == 0) {
                        snprintf(part, sizeof part, "%.*s", (int)i, path);
                        if (mkdir(part, 0700) < 0 && errno != EEXIST)
                                return -1;
                        if (path[i] == 0)
                                break;
                }
        return 0;
}

int io_write_file(int dir_fd, const char *path, const char *text)
{
        auto_fd fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -1;
        size_t len = strlen(text);
        ssize_t n;
        do
                n = write(fd, text, len);
        while (n < 0 && errno == EINTR);
        if (n >= 0 && (size_t)n != len)
                errno = EIO;
        return n >= 0 && (size_t)n == len ? 0 : -1;
}

int io_seal(int fd)
{
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -1;
        return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0 ? -1 : 0;
}

int io_memfd(const char *name, const void *bytes, size_t len)
{
        auto_fd fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0 || io_write_all(fd, bytes, len) < 0 || io_seal(fd) < 0)
                return -1;
        return take_fd(&fd);
}

const int io_ends[IO_ENDS] = { SIGINT, SIGTERM, SIGHUP };

int io_signals(const int *numbers, size_t n, struct csn_error *err)
{
        sigset_t set;
        sigemptyset(&set);
        for (size_t i = 0; i < n; i++)
                sigaddset(&set, numbers[i]);
        int fd = sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "watch for signals") : fd;
}
