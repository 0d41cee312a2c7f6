/*
 * Allowed system calls inside (seccomp(2)): an allow-list for the native ABI.  All other calls fail with ENOSYS,
 * for libraries to use a fallback, or with EPERM where programs expect a missing permission.
 *
 * The filter is generated here instead of by a library: the kernel uses only the low 32 bits of `int` arguments,
 * and a filter comparing 64 bits can be bypassed by setting a high bit; every comparison below loads only the low
 * word.  Call numbers are decided by a balanced tree over intervals of equal verdict, so calls without an
 * argument rule end in the kernel's bitmap of constant verdicts (Linux 5.11).
 *
 * Most of a filter's cost is the kernel's check and translation of the whole table.  So the outer init loads the
 * table once, with the set-up calls allowed; all descendants inherit this filter, and a process with complete
 * isolation refuses the set-up calls by a small filter on top.
 *
 * A name unknown to the kernel headers fails the build; tests/unit/test-seccomp.c reads the headers and fails for
 * a call missing in this table.
 */
#include "sandbox/sandbox.h"

#include <asm/ioctls.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call table is written for x86_64 and aarch64"
#endif

/* Newer than Debian 12's headers; the same number on all architectures.  A current libc needs fchmodat2. */
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452 /* Linux 6.6 */
#endif

enum arg_rule {
        ARG_CLONE, ARG_SOCKET, ARG_IOCTL, ARG_PRCTL, ARG_PERSONALITY, ARG_MKNOD, ARG_MKNODAT,
        ARG_SECCOMP, ARG_NOT_INIT, ARG_PRIORITY, ARG_PRCTL_SETUP, ARG_PRCTL_LAST, ARG_PRCTL_ROOT, ARG_IOCTL_SETUP,
        ARG_IOCTL_LAST, ARG_IOCTL_DEVICES, ARG_THREAD, ARGS,
};

struct row {
        long nr;
        enum seccomp_verdict verdict;
        int value;   /* errno, or enum arg_rule */
};

#define A(name) { SYS_##name, SECCOMP_ALLOW, 0 },
#define C(name, check) { SYS_##name, SECCOMP_CHECK, check },
#define P(name) { SYS_##name, SECCOMP_ERRNO, EPERM },
#define N(name) { SYS_##name, SECCOMP_ERRNO, ENOSYS },
#define M(number) { number, SECCOMP_ERRNO, ENOSYS },

static const struct row rows[] = {
        /* files */
        A(read) A(write) A(close) A(openat) A(openat2) A(fstat) A(statx) A(lseek) A(pread64) A(pwrite64) A(readv)
                A(writev) A(preadv) A(pwritev) A(preadv2) A(pwritev2) A(faccessat) A(faccessat2) A(fcntl) A(flock) A(
                        fsync) A(fdatasync) A(sync) A(syncfs) A(sync_file_range) A(truncate) A(ftruncate) A(fallocate)
                        A(fadvise64) A(readahead) A(getdents64) A(getcwd) A(chdir) A(fchdir) A(renameat) A(renameat2) A(
                                mkdirat) A(linkat) A(unlinkat) A(symlinkat) A(readlinkat) A(fchmod) A(fchmodat)
                                A(fchmodat2) A(fchown) A(fchownat) A(umask) A(utimensat) A(statfs) A(fstatfs) C(mknodat,
                                        ARG_MKNODAT) A(copy_file_range) A(sendfile) A(splice)
                                        A(tee) A(vmsplice) A(setxattr) A(lsetxattr) A(fsetxattr) A(getxattr)
                                                A(lgetxattr) A(fgetxattr) A(listxattr) A(llistxattr) A(flistxattr) A(
                                                        removexattr) A(lremovexattr) A(fremovexattr) A(inotify_init1)
                                                        A(inotify_add_watch) A(inotify_rm_watch) A(memfd_create) A(
                                                                dup) A(dup3) A(close_range)
#if defined(__x86_64__)
                                                                A(open) A(creat) A(stat) A(lstat) A(
                                                                        newfstatat) A(access) A(getdents)
                                                                        A(rename) A(mkdir) A(rmdir) A(link) A(unlink) A(
                                                                                symlink) A(readlink) A(chmod) A(chown)
                                                                                A(lchown) A(utime) A(utimes)
                                                                                        A(futimesat) C(mknod, ARG_MKNOD)
                                                                                                A(inotify_init) A(dup2)
#else
                                                                A(newfstatat)
#endif
        /* memory */
        A(mmap) A(mprotect) A(munmap) A(brk) A(mremap) A(msync) A(mincore) A(madvise) A(mlock) A(mlock2) A(munlock)
                A(mlockall) A(munlockall) A(pkey_alloc) A(pkey_mprotect) A(pkey_free) A(membarrier)
        /* processes */
        C(clone, ARG_CLONE) N(clone3) A(execve) A(execveat) A(exit) A(exit_group) A(wait4) A(waitid) A(kill) A(tkill) A(
                tgkill) A(getpid) A(getppid) A(gettid) A(getpgid) A(setpgid) A(getsid) A(setsid) A(getuid) A(geteuid)
                A(getgid) A(getegid) A(getresuid) A(getresgid) A(getgroups) A(setuid) A(
                        setgid) A(setreuid) A(setregid) A(setresuid) A(setresgid) A(setfsuid) A(setfsgid)
                        A(setgroups) A(capget) A(capset) C(prctl, ARG_PRCTL) A(set_tid_address)
                                A(set_robust_list) A(get_robust_list) A(rseq) A(futex) A(futex_waitv) A(sched_yield) A(
                                        sched_getaffinity) C(sched_setaffinity,
                                        ARG_NOT_INIT) A(sched_getparam) C(sched_setparam,
                                        ARG_NOT_INIT) A(sched_getscheduler)
                                        C(sched_setscheduler, ARG_NOT_INIT) A(sched_getattr) C(sched_setattr,
                                                ARG_NOT_INIT) A(sched_get_priority_min)
                                                A(sched_get_priority_max) A(sched_rr_get_interval) A(getpriority) C(
                                                        setpriority, ARG_PRIORITY) A(ioprio_get)
                                                        A(getrlimit) A(setrlimit) C(prlimit64, ARG_NOT_INIT) A(
                                                                getrusage) A(times) A(sysinfo) A(uname) A(getcpu)
                                                                A(pidfd_open) A(pidfd_send_signal) A(
                                                                        landlock_create_ruleset) A(landlock_add_rule)
                                                                        A(landlock_restrict_self) C(seccomp,
                                                                                ARG_SECCOMP) C(personality,
                                                                                ARG_PERSONALITY) A(getrandom)
                                                                                A(restart_syscall)
#if defined(__x86_64__)
                                                                                        A(fork) A(vfork) A(pause)
                                                                                                A(getpgrp) A(arch_prctl)
#endif
        /* signals and time */
        A(rt_sigaction) A(rt_sigprocmask) A(rt_sigpending) A(rt_sigtimedwait) A(rt_sigqueueinfo) A(rt_sigsuspend)
                A(rt_sigreturn) A(rt_tgsigqueueinfo) A(sigaltstack) A(getitimer) A(setitimer) A(timer_create)
                        A(timer_settime) A(timer_gettime) A(timer_getoverrun) A(timer_delete) A(timerfd_create)
                                A(timerfd_settime) A(timerfd_gettime) A(nanosleep) A(clock_nanosleep) A(clock_gettime)
                                        A(clock_getres) A(gettimeofday) A(signalfd4)
#if defined(__x86_64__)
                                                A(alarm) A(time) A(signalfd)
#endif
        /* events */
        A(ppoll) A(pselect6) A(epoll_create1) A(epoll_ctl) A(epoll_pwait) A(epoll_pwait2) A(eventfd2) A(pipe2)
#if defined(__x86_64__)
                A(poll) A(select) A(epoll_create) A(epoll_wait) A(eventfd) A(pipe)
#endif
        /* sockets */
        C(socket, ARG_SOCKET) C(socketpair, ARG_SOCKET) A(bind) A(connect) A(listen) A(accept) A(accept4) A(sendto)
                A(recvfrom) A(sendmsg) A(recvmsg) A(sendmmsg) A(recvmmsg) A(getsockname) A(getpeername) A(getsockopt)
                        A(setsockopt) A(shutdown)
        /* System V and POSIX objects, private by the ipc namespace */
        A(shmget) A(shmat) A(shmctl) A(shmdt) A(semget) A(semop) A(semctl) A(semtimedop) A(msgget) A(msgsnd) A(msgrcv)
                A(msgctl) A(mq_open) A(mq_unlink) A(mq_timedsend) A(mq_timedreceive) A(mq_notify) A(mq_getsetattr)
        /* devices */
        C(ioctl, ARG_IOCTL)
        /* refused: a question of permission */
        P(unshare) P(setns) P(pivot_root) P(chroot) P(mount) P(umount2) P(ptrace) P(reboot) P(swapon) P(swapoff) P(acct)
                P(quotactl) P(quotactl_fd) P(syslog) P(init_module) P(finit_module) P(delete_module) P(kexec_load)
                        P(kexec_file_load) P(vhangup) P(clock_settime) P(settimeofday) P(adjtimex) P(clock_adjtime)
                                P(sethostname) P(setdomainname) P(ioprio_set) P(process_vm_readv) P(process_vm_writev)
                                        P(kcmp) P(bpf) P(perf_event_open) P(open_by_handle_at) P(name_to_handle_at)
                                                P(add_key) P(request_key) P(keyctl) P(fanotify_init) P(fanotify_mark)
                                                        P(pidfd_getfd) P(nfsservctl)
#if defined(__x86_64__)
                                                                P(iopl) P(ioperm)
#endif
        /* refused: as if unknown to the kernel */
        N(fsopen) N(fsmount) N(fsconfig) N(fspick) N(open_tree) N(move_mount) N(mount_setattr) N(io_uring_setup)
                N(io_uring_enter) N(io_uring_register) N(userfaultfd) N(memfd_secret) N(process_madvise)
                        N(process_mrelease) N(lookup_dcookie) N(move_pages) N(migrate_pages) N(mbind) N(set_mempolicy)
                                N(get_mempolicy) N(set_mempolicy_home_node) N(remap_file_pages)
        /*
         * Newer than Debian 12's headers, with the same number on all architectures: cachestat, map_shadow_stack,
         * futex_wake, futex_wait, futex_requeue, statmount, listmount, lsm_get_self_attr, lsm_set_self_attr,
         * lsm_list_modules, mseal; and 335 of x86_64, uretprobe.
         */
        M(451) M(453) M(454) M(455) M(456) M(457) M(458) M(459) M(460) M(461) M(462)
        /* fs.aio-max-nr is a limit of the whole host; libraries fall back to threads */
        N(io_setup) N(io_submit) N(io_getevents) N(io_pgetevents) N(io_cancel) N(io_destroy)
#if defined(__x86_64__)
                M(335)
                N(modify_ldt) N(ustat) N(sysfs) N(uselib) N(_sysctl) N(create_module) N(get_kernel_syms) N(query_module)
                        N(getpmsg) N(putpmsg) N(afs_syscall) N(tuxcall) N(security) N(set_thread_area)
                                N(get_thread_area) N(epoll_ctl_old) N(epoll_wait_old) N(vserver)
#endif
};

#define INSNS_MAX 2048
#define NR_END 512   /* the highest number with a verdict, plus 1; all higher numbers are ENOSYS */

struct program {
        struct sock_filter insns[INSNS_MAX];
        size_t len;
};

static void emit(struct program *p, uint16_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
        /* The table is fixed, so a program too long shows in the first test and not at a user's. */
        if (p->len < INSNS_MAX)
                p->insns[p->len++] = (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
}

static void emit_return(struct program *p, uint32_t action)
{
        emit(p, BPF_RET | BPF_K, action, 0, 0);
}

static void emit_errno(struct program *p, int number)
{
        emit_return(p, SECCOMP_RET_ERRNO | (uint32_t)number);
}

/* The low word of an argument: both architectures are little-endian. */
static void emit_argument(struct program *p, unsigned i)
{
        emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, args) + i * sizeof(uint64_t)), 0, 0);
}

static void emit_mask(struct program *p, uint32_t mask)
{
        emit(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
}

static void emit_allow_if(struct program *p, uint32_t value)
{
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void emit_refuse_if(struct program *p, uint32_t value, int number)
{
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        emit_errno(p, number);
}

static void emit_allow_list(struct program *p, unsigned argument, const uint32_t *values, size_t n, int otherwise)
{
        emit_argument(p, argument);
        for (size_t i = 0; i < n; i++)
                emit_allow_if(p, values[i]);
        emit_errno(p, otherwise);
}

/* ---- rules on arguments ---- */

/* All CLONE_NEW* flags of clone(2), which does not know CLONE_NEWTIME. */
#define CLONE_NAMESPACES 0x7e020000U

static void check_clone(struct program *p)
{
        emit_argument(p, 0);
        emit_mask(p, CLONE_NAMESPACES);
        emit_allow_if(p, 0);
        emit_errno(p, EPERM);
}

/* Threads of this process, but no new process. */
static void check_thread(struct program *p)
{
        emit_argument(p, 0);
        emit_mask(p, CLONE_THREAD | CLONE_NAMESPACES);
        emit_allow_if(p, CLONE_THREAD);
        emit_errno(p, EPERM);
}

/* Families with their allowed types and protocols; all others do not exist here. */
static const struct {
        uint32_t family;
        uint32_t types[3];       /* 0 ends */
        uint32_t protocols[3];
        unsigned protocols_n;
} families[] = {
        { AF_UNIX, { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET }, { 0 }, 1 },
        { AF_INET, { SOCK_STREAM, SOCK_DGRAM }, { 0, IPPROTO_TCP, IPPROTO_UDP }, 3 },
        { AF_INET6, { SOCK_STREAM, SOCK_DGRAM }, { 0, IPPROTO_TCP, IPPROTO_UDP }, 3 },
        { AF_NETLINK, { SOCK_RAW, SOCK_DGRAM }, { NETLINK_ROUTE }, 1 },
};

#define SOCK_TYPE_MASK 0xfU   /* the rest are flags; kernel: include/linux/net.h */

static void check_socket(struct program *p)
{
        for (size_t i = 0; i < ARRAY_LEN(families); i++) {
                unsigned types = 0;
                while (types < ARRAY_LEN(families[i].types) && families[i].types[types])
                        types++;
                /* load type, mask, a compare each, refuse; load protocol, two each, refuse */
                uint8_t block = (uint8_t)(2 + types + 1 + 1 + 2 * families[i].protocols_n + 1);
                emit_argument(p, 0);
                emit(p, BPF_JMP | BPF_JEQ | BPF_K, families[i].family, 0, block);
                emit_argument(p, 1);
                emit_mask(p, SOCK_TYPE_MASK);
                for (unsigned t = 0; t < types; t++)
                        emit(p, BPF_JMP | BPF_JEQ | BPF_K, families[i].types[t], (uint8_t)(types - t), 0);
                emit_errno(p, EAFNOSUPPORT);
                emit_argument(p, 2);
                for (unsigned n = 0; n < families[i].protocols_n; n++)
                        emit_allow_if(p, families[i].protocols[n]);
                emit_errno(p, EAFNOSUPPORT);
        }
        emit_errno(p, EAFNOSUPPORT);
}

static void check_ioctl(struct program *p)
{
        static const uint32_t allowed[] = {
                TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGWINSZ, TIOCSWINSZ, TIOCGPGRP, TIOCSPGRP, TIOCGSID, TIOCSCTTY,
                TIOCNOTTY, TIOCGPTN, TIOCSPTLCK, TIOCGPTPEER, TIOCOUTQ, FIONREAD, FIONBIO, FIOASYNC, FIOCLEX, FIONCLEX,
                SIOCGIFCONF, SIOCGIFNAME, SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFINDEX,
        };
        emit_allow_list(p, 1, allowed, ARRAY_LEN(allowed), ENOTTY);
}

/*
 * ioctl(2) types of GPU drivers (ioctl-number.rst of the kernel): none (nvidia-uvm), nvidia, AMD's kfd, DRM.
 * Only for sandboxes with granted devices; Landlock restricts the calls to these devices.
 */
#define IOCTL_TYPE 0xff00U
static const uint32_t driver_types[] = { 0, 'F' << 8, 'K' << 8, 'd' << 8 };

/* The outer init brings up loopback, and its filter is below the filters of sandboxes with devices. */
static void check_ioctl_setup(struct program *p)
{
        emit_argument(p, 1);
        emit_allow_if(p, SIOCSIFFLAGS);
        emit_mask(p, IOCTL_TYPE);
        for (size_t i = 0; i < ARRAY_LEN(driver_types); i++)
                emit_allow_if(p, driver_types[i]);
        check_ioctl(p);
}

static void check_ioctl_last(struct program *p)
{
        emit_argument(p, 1);
        emit_refuse_if(p, SIOCSIFFLAGS, ENOTTY);
        emit_mask(p, IOCTL_TYPE);
        for (size_t i = 0; i < ARRAY_LEN(driver_types); i++)
                emit_refuse_if(p, driver_types[i], ENOTTY);
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void check_ioctl_devices(struct program *p)
{
        emit_argument(p, 1);
        emit_refuse_if(p, SIOCSIFFLAGS, ENOTTY);
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void check_prctl(struct program *p)
{
        static const uint32_t allowed[] = {
                PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_SET_NAME, PR_GET_NAME, PR_SET_DUMPABLE, PR_GET_DUMPABLE,
                PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_CHILD_SUBREAPER,
                PR_GET_CHILD_SUBREAPER, PR_GET_TID_ADDRESS, PR_SET_SECCOMP, PR_GET_SECCOMP, PR_CAPBSET_READ,
                PR_GET_KEEPCAPS, PR_SET_VMA,
        };
        emit_argument(p, 0);
        for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
                emit_allow_if(p, allowed[i]);
        /* The ambient set may only be read. */
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, PR_CAP_AMBIENT, 1, 0);
        emit_errno(p, EINVAL);
        emit_argument(p, 1);
        emit_allow_if(p, PR_CAP_AMBIENT_IS_SET);
        emit_errno(p, EINVAL);
}

/*
 * For root inside.  Giving up capabilities for good takes a capability; keeping capabilities across a change of user
 * gives none.
 */
static const uint32_t prctl_roots[] = { PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_GET_SECUREBITS, PR_SET_KEEPCAPS };

/* Set-up makes the calls of root, and changes the ambient set. */
static void check_prctl_setup(struct program *p)
{
        emit_argument(p, 0);
        for (size_t i = 0; i < ARRAY_LEN(prctl_roots); i++)
                emit_allow_if(p, prctl_roots[i]);
        emit_allow_if(p, PR_CAP_AMBIENT);
        check_prctl(p);
}

static void check_prctl_root(struct program *p)
{
        emit_argument(p, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, PR_CAP_AMBIENT, 1, 0);
        emit_return(p, SECCOMP_RET_ALLOW);
        emit_argument(p, 1);
        emit_allow_if(p, PR_CAP_AMBIENT_IS_SET);
        emit_errno(p, EINVAL);
}

static void check_prctl_last(struct program *p)
{
        emit_argument(p, 0);
        for (size_t i = 0; i < ARRAY_LEN(prctl_roots); i++)
                emit_refuse_if(p, prctl_roots[i], EINVAL);
        check_prctl_root(p);
}

static void check_personality(struct program *p)
{
        static const uint32_t allowed[] = { 0, PER_LINUX32, 0xffffffff };
        emit_allow_list(p, 0, allowed, ARRAY_LEN(allowed), EPERM);
}

static void mknod_mode(struct program *p, unsigned argument)
{
        emit_argument(p, argument);
        emit_mask(p, S_IFMT);
        emit_allow_if(p, 0);
        emit_allow_if(p, S_IFREG);
        emit_allow_if(p, S_IFIFO);
        emit_allow_if(p, S_IFSOCK);
        emit_errno(p, EPERM);
}

static void check_mknod(struct program *p) { mknod_mode(p, 1); }
static void check_mknodat(struct program *p) { mknod_mode(p, 2); }

/* A listener would let a program answer the calls of its children in its own way. */
static void check_seccomp(struct program *p)
{
        emit_argument(p, 1);
        emit_mask(p, SECCOMP_FILTER_FLAG_NEW_LISTENER);
        emit_allow_if(p, 0);
        emit_errno(p, EPERM);
}

/* Process 1 has the program's uid, and must not be slowed down or limited by the program. */
static void check_not_init(struct program *p)
{
        emit_argument(p, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1);
        emit_errno(p, EPERM);
        emit_return(p, SECCOMP_RET_ALLOW);
}

/* As check_not_init(); PRIO_USER (2) would reach process 1, too. */
static void check_priority(struct program *p)
{
        emit_argument(p, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 1);
        emit_errno(p, EPERM);
        emit_argument(p, 1);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 1);
        emit_errno(p, EPERM);
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void (*const checks[ARGS])(struct program *) = {
        [ARG_CLONE] = check_clone, [ARG_SOCKET] = check_socket, [ARG_IOCTL] = check_ioctl,
        [ARG_PRCTL] = check_prctl, [ARG_PERSONALITY] = check_personality, [ARG_MKNOD] = check_mknod,
        [ARG_MKNODAT] = check_mknodat, [ARG_SECCOMP] = check_seccomp, [ARG_NOT_INIT] = check_not_init,
        [ARG_PRIORITY] = check_priority, [ARG_PRCTL_SETUP] = check_prctl_setup, [ARG_PRCTL_LAST] = check_prctl_last,
        [ARG_PRCTL_ROOT] = check_prctl_root, [ARG_IOCTL_SETUP] = check_ioctl_setup, [ARG_IOCTL_LAST] = check_ioctl_last,
        [ARG_IOCTL_DEVICES] = check_ioctl_devices, [ARG_THREAD] = check_thread,
};

/* ---- the tree over numbers ---- */

struct interval {
        uint32_t from;
        enum seccomp_verdict verdict;
        int value;
};

struct builder {
        struct program *program;
        struct interval intervals[NR_END + 1];
        size_t n;
        size_t jumps[NR_END];      /* jump instructions to the blocks of checks */
        enum arg_rule targets[NR_END];
        size_t jumps_n;
};

/*
 * Set-up calls: refused by the table, and needed to make the isolation.  The outer init's filter, below all others,
 * allows set-up calls, and the last filter refuses set-up calls.
 */
static const struct row setup_rows[] = { A(unshare) A(setns) A(clone3) A(sethostname) A(mount) A(umount2) A(pivot_root)
                A(open_tree) A(move_mount) A(fsopen) A(fsconfig) A(fsmount) A(fspick) A(mount_setattr)
                        A(process_madvise) C(prctl, ARG_PRCTL_SETUP) C(ioctl, ARG_IOCTL_SETUP) };

/* Calls of a zygote's child for joining a sandbox after the fork, and for preparing its memory there. */
static const long zygote_calls[] = { SYS_setns, SYS_prctl, SYS_process_madvise };

static bool is_setup(uint32_t nr)
{
        for (size_t i = 0; i < ARRAY_LEN(setup_rows); i++)
                if (setup_rows[i].nr == (long)nr)
                        return true;
        return false;
}

static bool is_zygote_call(uint32_t nr)
{
        for (size_t i = 0; i < ARRAY_LEN(zygote_calls); i++)
                if (zygote_calls[i] == (long)nr)
                        return true;
        return false;
}

/*
 * Calls of the table kept by our own processes, with its rules on arguments.  An engine starts threads, no process and
 * no program, and keeps its user: no execve, no set*id, no ptrace, no mounts, no keys, no objects of System V.
 */
static const long engine_calls[] = {
        SYS_read,
        SYS_write,
        SYS_close,
        SYS_openat,
        SYS_openat2,
        SYS_fstat,
        SYS_statx,
        SYS_newfstatat,
        SYS_lseek,
        SYS_pread64,
        SYS_pwrite64,
        SYS_readv,
        SYS_writev,
        SYS_preadv,
        SYS_pwritev,
        SYS_faccessat,
        SYS_faccessat2,
        SYS_fcntl,
        SYS_flock,
        SYS_fsync,
        SYS_fdatasync,
        SYS_syncfs,
        SYS_ftruncate,
        SYS_fallocate,
        SYS_fadvise64,
        SYS_getdents64,
        SYS_getcwd,
        SYS_renameat,
        SYS_renameat2,
        SYS_mkdirat,
        SYS_linkat,
        SYS_unlinkat,
        SYS_symlinkat,
        SYS_readlinkat,
        SYS_fchmod,
        SYS_fchmodat,
        SYS_fchown,
        SYS_umask,
        SYS_utimensat,
        SYS_statfs,
        SYS_fstatfs,
        SYS_copy_file_range,
        SYS_sendfile,
        SYS_splice,
        SYS_memfd_create,
        SYS_dup,
        SYS_dup3,
        SYS_close_range,
        SYS_mmap,
        SYS_mprotect,
        SYS_munmap,
        SYS_brk,
        SYS_mremap,
        SYS_msync,
        SYS_mincore,
        SYS_madvise,
        SYS_clone,     /* threads only, see check_thread(); clone3 is ENOSYS, and glibc uses clone then */
        SYS_clone3,
        SYS_setpriority,
        SYS_exit,
        SYS_exit_group,
        SYS_wait4,
        SYS_waitid,
        SYS_kill,
        SYS_tgkill,
        SYS_getpid,
        SYS_getppid,
        SYS_gettid,
        SYS_getuid,
        SYS_geteuid,
        SYS_getgid,
        SYS_getegid,
        SYS_capget,
        SYS_prctl,
        SYS_set_robust_list,
        SYS_rseq,
        SYS_futex,
        SYS_sched_yield,
        SYS_sched_getaffinity,
        SYS_prlimit64,
        SYS_getrlimit,
        SYS_setrlimit,
        SYS_getrusage,
        SYS_sysinfo,
        SYS_uname,
        SYS_getcpu,
        SYS_getrandom,
        SYS_restart_syscall,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_rt_sigtimedwait,
        SYS_sigaltstack,
        SYS_timerfd_create,
        SYS_timerfd_settime,
        SYS_nanosleep,
        SYS_clock_nanosleep,
        SYS_clock_gettime,
        SYS_clock_getres,
        SYS_gettimeofday,
        SYS_signalfd4,
        SYS_ppoll,
        SYS_pselect6,
        SYS_epoll_create1,
        SYS_epoll_ctl,
        SYS_epoll_pwait,
        SYS_epoll_pwait2,
        SYS_eventfd2,
        SYS_pipe2,
        SYS_socket,
        SYS_socketpair,
        SYS_bind,
        SYS_connect,
        SYS_listen,
        SYS_accept,
        SYS_accept4,
        SYS_sendto,
        SYS_recvfrom,
        SYS_sendmsg,
        SYS_recvmsg,
        SYS_sendmmsg,
        SYS_recvmmsg,
        SYS_getsockname,
        SYS_getpeername,
        SYS_getsockopt,
        SYS_setsockopt,
        SYS_shutdown,
        SYS_ioctl,
#if defined(__x86_64__)
        SYS_open,
        SYS_stat,
        SYS_lstat,
        SYS_access,
        SYS_rename,
        SYS_mkdir,
        SYS_rmdir,
        SYS_unlink,
        SYS_readlink,
        SYS_chmod,
        SYS_dup2,
        SYS_time,
        SYS_poll,
        SYS_select,
        SYS_epoll_create,
        SYS_epoll_wait,
        SYS_eventfd,
        SYS_pipe,
#endif
};
static const long opener_calls[] = {
        SYS_read,
        SYS_write,
        SYS_close,
        SYS_openat,
        SYS_openat2,
        SYS_fstat,
        SYS_newfstatat,
        SYS_fstatfs,
        SYS_fchmodat,
        SYS_sendmsg,
        SYS_recvmsg,
        SYS_exit,
        SYS_exit_group,
        SYS_rt_sigreturn,
        SYS_restart_syscall,
#if defined(__x86_64__)
        SYS_open,
        SYS_chmod,
#endif
};

/*
 * A reaper waits at its socket, and at last for all remaining processes.  Each sandbox loads this filter, so all other
 * calls get the same errno, for a shorter program.
 */
static const long reaper_calls[] = { SYS_recvfrom, SYS_sendmsg, SYS_wait4, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
        SYS_restart_syscall };

static const struct {
        const long *calls;         /* NULL: all of the table */
        size_t n;
} kept[SECCOMP_KINDS] = {
        [SECCOMP_ENGINE] = { engine_calls, ARRAY_LEN(engine_calls) },
        [SECCOMP_OPENER] = { opener_calls, ARRAY_LEN(opener_calls) },
        [SECCOMP_REAPER] = { reaper_calls, ARRAY_LEN(reaper_calls) },
};

static bool is_kept(enum seccomp_kind kind, long nr)
{
        for (size_t i = 0; i < kept[kind].n; i++)
                if (kept[kind].calls[i] == nr)
                        return true;
        return !kept[kind].calls;
}

static void put_rows(struct interval by_number[], const struct row *from, size_t n)
{
        for (size_t i = 0; i < n; i++)
                by_number[from[i].nr] = (struct interval){ (uint32_t)from[i].nr, from[i].verdict, from[i].value };
}

/* For a filter above the outer init's: refuses only set-up calls, except the set-up calls still needed by this kind. */
static void put_above(struct interval by_number[], enum seccomp_kind kind)
{
        bool root = kind == SECCOMP_LAST_ROOT || kind == SECCOMP_LAST_ROOT_DEVICES;
        bool devices = kind == SECCOMP_LAST_DEVICES || kind == SECCOMP_LAST_ROOT_DEVICES;
        by_number[SYS_ioctl] = (struct interval){ SYS_ioctl, SECCOMP_CHECK,
                devices ? ARG_IOCTL_DEVICES : ARG_IOCTL_LAST };
        by_number[SYS_prctl] = (struct interval){ SYS_prctl, SECCOMP_CHECK, root ? ARG_PRCTL_ROOT : ARG_PRCTL_LAST };
        for (uint32_t nr = 0; nr <= NR_END; nr++)
                if (!is_setup(nr) || (kind == SECCOMP_ZYGOTE && is_zygote_call(nr)))
                        by_number[nr] = (struct interval){ nr, SECCOMP_ALLOW, 0 };
}

static bool is_above(enum seccomp_kind kind)
{
        return kind == SECCOMP_ZYGOTE || kind == SECCOMP_LAST || kind == SECCOMP_LAST_ROOT ||
                kind == SECCOMP_LAST_DEVICES || kind == SECCOMP_LAST_ROOT_DEVICES;
}

static void collect_intervals(struct builder *b, enum seccomp_kind kind)
{
        struct interval by_number[NR_END + 1];
        for (uint32_t nr = 0; nr <= NR_END; nr++)
                by_number[nr] = (struct interval){ nr, SECCOMP_ERRNO, ENOSYS };
        put_rows(by_number, rows, ARRAY_LEN(rows));
        if (kind == SECCOMP_OUTER_INIT)
                put_rows(by_number, setup_rows, ARRAY_LEN(setup_rows));
        if (kind == SECCOMP_ENGINE)
                by_number[SYS_clone] = (struct interval){ SYS_clone, SECCOMP_CHECK, ARG_THREAD };
        if (is_above(kind))
                put_above(by_number, kind);
        for (uint32_t nr = 0; nr <= NR_END; nr++)
                if (!is_kept(kind, nr))
                        by_number[nr] = (struct interval){ nr, SECCOMP_ERRNO,
                                by_number[nr].verdict == SECCOMP_ERRNO && kind != SECCOMP_REAPER ? by_number[nr].value
                                                                                                 : EPERM };
        for (uint32_t nr = 0; nr <= NR_END; nr++) {
                const struct interval *last = b->n ? &b->intervals[b->n - 1] : NULL;
                if (!last || last->verdict != by_number[nr].verdict || last->value != by_number[nr].value)
                        b->intervals[b->n++] = by_number[nr];
        }
}

static void emit_leaf(struct builder *b, const struct interval *interval)
{
        if (interval->verdict == SECCOMP_ALLOW) {
                emit_return(b->program, SECCOMP_RET_ALLOW);
        } else if (interval->verdict == SECCOMP_ERRNO) {
                emit_errno(b->program, interval->value);
        } else {
                b->jumps[b->jumps_n] = b->program->len;
                b->targets[b->jumps_n++] = (enum arg_rule)interval->value;
                emit(b->program, BPF_JMP | BPF_JA, 0, 0, 0);
        }
}

/* Conditional jumps reach 255 instructions, which is the lower half of 256 intervals; no kind has as many. */
static void emit_tree(struct builder *b, size_t from, size_t to)
{
        if (to - from == 1) {
                emit_leaf(b, &b->intervals[from]);
                return;
        }
        size_t middle = from + (to - from) / 2, jump = b->program->len;
        emit(b->program, BPF_JMP | BPF_JGE | BPF_K, b->intervals[middle].from, 0, 0);
        emit_tree(b, from, middle);
        b->program->insns[jump].jt = (uint8_t)(b->program->len - jump - 1);
        emit_tree(b, middle, to);
}

static void emit_checks(struct builder *b)
{
        size_t at[ARGS];
        for (size_t i = 0; i < ARGS; i++) {
                at[i] = b->program->len;
                for (size_t k = 0; k < b->jumps_n; k++)
                        if (b->targets[k] == (enum arg_rule)i) {
                                checks[i](b->program);
                                break;
                        }
        }
        for (size_t i = 0; i < b->jumps_n; i++)
                b->program->insns[b->jumps[i]].k = (uint32_t)(at[b->targets[i]] - b->jumps[i] - 1);
}

static void build(struct program *p, enum seccomp_kind kind)
{
        struct builder b = { .program = p };
        emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
        emit_return(p, SECCOMP_RET_KILL_PROCESS);   /* i386 by int 0x80, or a far jump into another mode */
        emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
        collect_intervals(&b,
                kind); /* the last interval has no upper end: x32 numbers are ENOSYS, like all unknown numbers */
        emit_tree(&b, 0, b.n);
        emit_checks(&b);
}

const struct sock_filter *seccomp_program(enum seccomp_kind kind, size_t *ret_len)
{
        static struct program programs[SECCOMP_KINDS];
        struct program *program = &programs[kind];
        if (!program->len)
                build(program, kind);
        *ret_len = program->len;
        return program->insns;
}

bool seccomp_lookup(long nr, enum seccomp_verdict *ret_verdict, int *ret_errno)
{
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].nr == nr) {
                        *ret_verdict = rows[i].verdict;
                        *ret_errno = rows[i].verdict == SECCOMP_ERRNO ? rows[i].value : 0;
                        return true;
                }
        return false;
}

static int load(enum seccomp_kind kind, struct csn_error *err)
{
        size_t len;
        const struct sock_filter *insns = seccomp_program(kind, &len);
        struct sock_fprog fprog = { .len = (unsigned short)len, .filter = (struct sock_filter *)(uintptr_t)insns };
        /* This process has a single thread; TSYNC would change nothing here, and hide a second thread. */
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &fprog) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "load the system call filter");
        return 0;
}

int seccomp_child(struct plan *plan, struct csn_error *err)
{
        static const enum seccomp_kind kinds[2][2] = { { SECCOMP_LAST, SECCOMP_LAST_DEVICES },
                { SECCOMP_LAST_ROOT, SECCOMP_LAST_ROOT_DEVICES } };
        if (load(kinds[(plan->shape.flags & WIRE_ROOT) != 0][plan->shape.devices != 0], err) < 0)
                return -err->code;
        plan->boundary.seccomp = 1;
        return 0;
}

int seccomp_confined(struct plan *plan, struct csn_error *err)
{
        /* Without a filter below, SECCOMP_LAST would refuse set-up calls only. */
        bool has_filter = prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
        if (load(has_filter ? SECCOMP_LAST : SECCOMP_SANDBOX, err) < 0)
                return -err->code;
        plan->boundary.seccomp = 1;
        return 0;
}

int seccomp_reaper(struct plan *plan, struct csn_error *err)
{
        (void)plan;
        return load(SECCOMP_REAPER, err);
}

int seccomp_zygote(struct csn_error *err)
{
        return load(SECCOMP_ZYGOTE, err);
}

int seccomp_outer_init(struct csn_error *err)
{
        size_t len;
        seccomp_program(SECCOMP_LAST, &len);   /* once, and not in every sandbox */
        seccomp_program(SECCOMP_LAST_ROOT, &len);
        seccomp_program(SECCOMP_REAPER, &len);
        return load(SECCOMP_OUTER_INIT, err);
}

int seccomp_self(enum seccomp_kind kind, struct csn_error *err)
{
        return load(kind, err);
}
