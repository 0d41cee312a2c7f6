/*
 * Opening files for the engine, but never the guest's own entries of /proc.
 *
 * The kernel lets a process open its own /proc/self/mem, environ, maps and fd regardless of PR_SET_DUMPABLE
 * (ptrace(2), access mode checks): a request for such a path would read or write the guest itself, which no program
 * inside can.  Magic links (proc(5)) are not followed, because a magic link leads to an open file of the guest.  A path
 * is resolved by openat2(2) (Linux 5.6), and the opened descriptor is checked, so no program can exchange a link
 * between check and open.
 */
#include "guest/guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

static bool is_in_proc(int fd)
{
        struct statfs fs;
        return fstatfs(fd, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC;
}

static bool is_own(int fd)
{
        char link[40], target[GUEST_PATH_MAX], own[24];
        if (!is_in_proc(fd))
                return false;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        int own_len = snprintf(own, sizeof own, "/proc/%d", getpid());
        ssize_t n = readlink(link, target, sizeof target - 1);
        if (n <= 0)
                return true;
        target[n] = 0;
        return strncmp(target, own, (size_t)own_len) == 0 && (target[own_len] == 0 || target[own_len] == '/');
}

static int open_path(const char *path, int flags, mode_t mode)
{
        const struct open_how how = { .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
                .mode = flags & O_CREAT ? mode : 0,
                .resolve = RESOLVE_NO_MAGICLINKS };
        return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

int own_proc_open(const char *path, int flags, mode_t mode)
{
        int fd = open_path(path, flags, mode);
        if (fd < 0 || !is_own(fd))
                return fd;
        fd_close(&fd);
        errno = EACCES;
        return -1;
}

DIR *own_proc_opendir(const char *path)
{
        int fd = own_proc_open(path, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
        DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
        if (!dir)
                fd_close(&fd);
        return dir;
}

/* 1: the path may be used; 0: no such path; -1 with errno: the path may not be used. */
static int check(const char *path)
{
        struct stat st;
        auto_fd link = open_path(path, O_PATH | O_NOFOLLOW, 0);
        if (link < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
        if (is_own(link) || fstat(link, &st) < 0) {
                errno = EACCES;
                return -1;
        }
        if (!S_ISLNK(st.st_mode))
                return 1;
        auto_fd target = open_path(path, O_PATH, 0);
        /* The link itself may be looked at, a magic link or a loop; own_proc_open() follows neither. */
        if (target < 0 && errno == ELOOP)
                return 1;
        if (target < 0)
                return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
        if (!is_own(target))
                return 1;
        errno = EACCES;
        return -1;
}

int own_proc_check(const char *path)
{
        char part[GUEST_PATH_MAX + 1];
        int rc, len = snprintf(part, sizeof part, "%s", path);
        if (len >= (int)sizeof part) {
                errno = ENAMETOOLONG;
                return -1;
        }
        /* Of a missing path the existing part is checked. */
        while ((rc = check(part)) == 0) {
                char *slash = strrchr(part, '/');
                if (!slash || slash == part)
                        return 0;
                *slash = 0;
        }
        return rc < 0 ? -1 : 0;
}
