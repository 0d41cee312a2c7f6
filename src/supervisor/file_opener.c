/*
 * The opener: opens files owned by the uid of a sandbox.
 *
 * The home directory of a run belongs to its uid, and a program may remove even the owner's permissions from its files.
 * So an engine without rights cannot collect the files.  The opener has one right, CAP_DAC_READ_SEARCH, for one use:
 * to open a regular file or a folder beneath a given folder, of a tmpfs, and owned by the same uid.  A compromised
 * engine gains only the files of sandboxes, and has access to their contents anyway.
 */
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

static uid_t own;   /* owner of the files of all sandboxes where all have one uid; 0: each has its own */

/* Without root there is no right to keep, but the files belong to our own uid. */
static int drop(uid_t uid, gid_t gid, struct csn_error *err)
{
        const uint32_t right = 1U << CAP_DAC_READ_SEARCH;
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct sets[2] = { { .effective = right, .permitted = right } };
        if (geteuid() != 0) {
                own = geteuid();
        } else {
                if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
                        setresuid(uid, uid, uid) < 0 || syscall(SYS_capset, &header, sets) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "keep CAP_DAC_READ_SEARCH alone");
        }
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl");
        return seccomp_self(SECCOMP_OPENER, err);
}

/* The file was checked, and a second open cannot reach another file: the first descriptor holds the inode. */
static int open_again(int path_fd, int flags, mode_t rights)
{
        char path[40];
        snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
        int fd = open(path, flags | O_CLOEXEC);
        if (fd < 0 && errno == EACCES && chmod(path, rights) == 0)   /* as its owner */
                fd = open(path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int open_one(int dir_fd, const char *name, bool folder)
{
        struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
        struct stat above, st;
        struct statfs fs;
        if (fstatfs(dir_fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fstat(dir_fd, &above) < 0)
                return -EPERM;
        auto_fd path = (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);
        if (path < 0 || fstat(path, &st) < 0)
                return -errno;
        if (st.st_uid != above.st_uid || (st.st_uid < SANDBOX_UIDS_MIN && (!own || st.st_uid != own)))
                return -EPERM;
        if (folder)
                return S_ISDIR(st.st_mode) ? open_again(path, O_RDONLY | O_DIRECTORY, 0700) : -ENOTDIR;
        return S_ISREG(st.st_mode) ? open_again(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0600) : -EINVAL;
}

int opener_main(int argc, char *const *argv)
{
        static uint8_t bytes[WIRE_OPEN_MAX + 1];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        ssize_t len;
        struct csn_error err;
        if (argc != 3)
                return 64;
        if (drop((uid_t)strtoul(argv[1], NULL, 10), (gid_t)strtoul(argv[2], NULL, 10), &err) < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                return 125;
        }
        while ((len = wire_receive_small(SUPERVISOR_SOCKET_FD, bytes, WIRE_OPEN_MAX, fds, &fds_n)) > 0) {
                bytes[len] = 0;
                bool good = len >= 2 && fds_n == 1;
                int opened = good ? open_one(fds[0], (const char *)bytes + 1, bytes[0] == WIRE_OPEN_FOLDER) : -EPROTO;
                int32_t said = opened < 0 ? opened : 0;
                for (size_t i = 0; i < fds_n; i++)
                        fd_close(&fds[i]);
                if (wire_send(SUPERVISOR_SOCKET_FD, &said, sizeof said, &opened, opened >= 0) < 0)
                        return 125;
                fd_close(&opened);
        }
        return 0;
}
