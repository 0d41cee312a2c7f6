/* seccomp: the filter itself, run by an interpreter of our own on every number and on hostile arguments. */
#include "sandbox/sandbox.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/vm_sockets.h>

#include "tap.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#define HEADER "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"
#else
#define ARCH AUDIT_ARCH_AARCH64
#define HEADER "/usr/include/asm-generic/unistd.h"
#endif

/* Classic BPF as seccomp uses it (seccomp(2)); anything else than these instructions fails the test. */
static uint32_t run_kind(enum seccomp_kind kind, const struct seccomp_data *data)
{
        size_t len;
        const struct sock_filter *insns = seccomp_program(kind, &len);
        uint32_t acc = 0;
        for (size_t pc = 0; pc < len; pc++) {
                const struct sock_filter *i = &insns[pc];
                switch (i->code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        if (i->k + 4 > sizeof *data)
                                return 0xdead0001;
                        memcpy(&acc, (const char *)data + i->k, 4);
                        break;
                case BPF_ALU | BPF_AND | BPF_K: acc &= i->k; break;
                case BPF_JMP | BPF_JA: pc += i->k; break;
                case BPF_JMP | BPF_JEQ | BPF_K: pc += acc == i->k ? i->jt : i->jf; break;
                case BPF_JMP | BPF_JGE | BPF_K: pc += acc >= i->k ? i->jt : i->jf; break;
                case BPF_RET | BPF_K: return i->k;
                default: return 0xdead0002;
                }
        }
        return 0xdead0003;
}

static uint32_t run(const struct seccomp_data *data)
{
        return run_kind(SECCOMP_SANDBOX, data);
}

static uint32_t call(long nr, uint64_t a, uint64_t b, uint64_t c)
{
        struct seccomp_data data = { .nr = (int)nr, .arch = ARCH, .args = { a, b, c } };
        return run(&data);
}

#define ALLOW SECCOMP_RET_ALLOW
#define ERRNO(e) (SECCOMP_RET_ERRNO | (e))
#define HIGH (1ULL << 32)

static void every_number_ends_as_the_table_says(void)
{
        unsigned wrong = 0;
        for (long nr = 0; nr < 4096; nr++) {
                enum seccomp_verdict verdict;
                int number = ENOSYS;
                uint32_t got = call(nr, UINT64_MAX, UINT64_MAX, UINT64_MAX);
                if (!seccomp_lookup(nr, &verdict, &number))
                        verdict = SECCOMP_ERRNO, number = ENOSYS;
                if (verdict == SECCOMP_ALLOW)
                        wrong += got != ALLOW;
                else if (verdict == SECCOMP_ERRNO)
                        wrong += got != ERRNO((uint32_t)number);
                else
                        wrong += (got & 0xffff0000) != SECCOMP_RET_ERRNO && got != ALLOW;
        }
        CHECK(wrong == 0);
}

static const uint64_t arguments[] = { 0, 1, 2, 3, 4, 8, 15, 16, 21, 22, 23, 24, 26, 27, 28, 36, 38, 47, 55, 59, 0x5401,
        0x5412, 0x5421, 0x8913, 0x8914, 0x4b41, 0x10000000, 0x30000001, 0x7e020000, 0xc0106446, 0xc020462a,
        0x100000000 | PR_CAPBSET_DROP, 0x100008914, UINT64_MAX };

/*
 * All filters of a process: the kernel takes the answer that allows least, and of equal ones the newest (seccomp(2)).
 */
static uint32_t run_kinds(const enum seccomp_kind *newest_first, size_t n, const struct seccomp_data *data)
{
        uint32_t least = ALLOW;
        for (size_t i = 0; i < n; i++) {
                uint32_t got = run_kind(newest_first[i], data);
                if ((int32_t)(got & SECCOMP_RET_ACTION_FULL) < (int32_t)(least & SECCOMP_RET_ACTION_FULL))
                        least = got;
        }
        return least;
}

static void the_last_filter_makes_the_table_of_those_below(void)
{
        static const enum seccomp_kind child[] = { SECCOMP_LAST, SECCOMP_OUTER_INIT },
                                       confined[] = { SECCOMP_LAST, SECCOMP_ZYGOTE, SECCOMP_OUTER_INIT };
        unsigned wrong = 0;
        for (long nr = -1; nr < 4096; nr++)
                for (size_t a = 0; a < ARRAY_LEN(arguments); a++)
                        for (size_t b = 0; b < ARRAY_LEN(arguments); b++) {
                                struct seccomp_data data = {
                                        .nr = (int)nr, .arch = ARCH, .args = { arguments[a], arguments[b], 1 }
                                };
                                wrong += run_kinds(child, ARRAY_LEN(child), &data) != run(&data);
                                wrong += run_kinds(confined, ARRAY_LEN(confined), &data) != run(&data);
                        }
        CHECK(wrong == 0);
}

/* What it loads comes from the administrator, and is held as foreign code is. */
static void a_zygote_may_enter_a_sandbox_with_its_memory_and_nothing_more(void)
{
        static const enum seccomp_kind zygote[] = { SECCOMP_ZYGOTE, SECCOMP_OUTER_INIT };
        unsigned wrong = 0;
        for (long nr = -1; nr < 4096; nr++)
                for (size_t a = 0; a < ARRAY_LEN(arguments); a++)
                        for (size_t b = 0; b < ARRAY_LEN(arguments); b++) {
                                struct seccomp_data data = {
                                        .nr = (int)nr, .arch = ARCH, .args = { arguments[a], arguments[b], 1 }
                                };
                                if (nr != SYS_setns && nr != SYS_prctl && nr != SYS_process_madvise)
                                        wrong += run_kinds(zygote, ARRAY_LEN(zygote), &data) != run(&data);
                        }
        CHECK(wrong == 0);
        struct seccomp_data drop = { .nr = SYS_prctl, .arch = ARCH, .args = { PR_CAPBSET_DROP } },
                            enter = { .nr = SYS_setns, .arch = ARCH };
        CHECK(run_kinds(zygote, ARRAY_LEN(zygote), &drop) == ALLOW);
        CHECK(run_kinds(zygote, ARRAY_LEN(zygote), &enter) == ALLOW);
        /* Of others' memory only with CAP_SYS_NICE, which it does not have. */
        struct seccomp_data ready = { .nr = SYS_process_madvise, .arch = ARCH };
        CHECK(run_kinds(zygote, ARRAY_LEN(zygote), &ready) == ALLOW && run(&ready) != ALLOW);
}

static void other_architectures_kill(void)
{
        struct seccomp_data data = { .nr = SYS_getpid, .arch = AUDIT_ARCH_I386 };
        CHECK(run(&data) == SECCOMP_RET_KILL_PROCESS);
        data.arch = 0;
        CHECK(run(&data) == SECCOMP_RET_KILL_PROCESS);
}

static void x32_numbers_do_not_exist(void)
{
        for (long nr = 0; nr < 600; nr++)
                if (call(nr | 0x40000000, 0, 0, 0) != ERRNO(ENOSYS))
                        CHECK(call(nr | 0x40000000, 0, 0, 0) == ERRNO(ENOSYS));
        CHECK(call(-1, 0, 0, 0) == ERRNO(ENOSYS));
}

static void clone_makes_threads_but_no_namespace(void)
{
        static const uint64_t kinds[] = { CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC,
                CLONE_NEWUTS, CLONE_NEWCGROUP };
        CHECK(call(SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, 0, 0) == ALLOW);
        CHECK(call(SYS_clone, 17, 0, 0) == ALLOW);
        for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
                CHECK(call(SYS_clone, kinds[i] | 17, 0, 0) == ERRNO(EPERM));
                CHECK(call(SYS_clone, kinds[i] | 17 | HIGH, 0, 0) == ERRNO(EPERM));
        }
        CHECK(call(SYS_clone3, 0, 0, 0) == ERRNO(ENOSYS));
}

static void only_plain_sockets_exist_whatever_the_high_bits_say(void)
{
        static const struct { uint64_t family, type, protocol; bool allowed;
        } rows[] = {
                { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, true },
                { AF_UNIX, SOCK_SEQPACKET, 0, true },
                { AF_UNIX, SOCK_RAW, 0, false },
                { AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 6, true },
                { AF_INET, SOCK_DGRAM, 17, true },
                { AF_INET, SOCK_STREAM, 0, true },
                { AF_INET6, SOCK_DGRAM, 0, true },
                { AF_INET, SOCK_RAW, 1, false },
                { AF_INET, SOCK_DGRAM, 1, false },
                { AF_INET, SOCK_STREAM, 262, false },
                { AF_INET, SOCK_SEQPACKET, 132, false },
                { AF_NETLINK, SOCK_RAW, 0, true },
                { AF_NETLINK, SOCK_RAW, 15, false },
                { AF_NETLINK, SOCK_DGRAM, 9, false },
                { AF_VSOCK, SOCK_STREAM, 0, false },
                { AF_PACKET, SOCK_RAW, 0, false },
                { 38, SOCK_SEQPACKET, 0, false },
                { 15, SOCK_RAW, 2, false },
                { 44, SOCK_RAW, 0, false },
                { AF_BLUETOOTH, SOCK_RAW, 0, false },
                { 0, SOCK_STREAM, 0, false },
                { 4294967295ULL, SOCK_STREAM, 0, false },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                uint32_t want = rows[i].allowed ? ALLOW : ERRNO(EAFNOSUPPORT);
                CHECK(call(SYS_socket, rows[i].family, rows[i].type, rows[i].protocol) == want);
                CHECK(call(SYS_socket, rows[i].family | HIGH, rows[i].type | HIGH, rows[i].protocol | HIGH) == want);
                CHECK(call(SYS_socketpair, rows[i].family, rows[i].type, rows[i].protocol) == want);
        }
}

static void terminals_cannot_be_fed(void)
{
        CHECK(call(SYS_ioctl, 0, TCGETS, 0) == ALLOW);
        CHECK(call(SYS_ioctl, 0, FIONREAD, 0) == ALLOW);
        static const uint64_t bad[] = { TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD, 0x40049409 /* FICLONE */,
                0x40086602 /* SETFLAGS */ };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                CHECK(call(SYS_ioctl, 0, bad[i], 0) == ERRNO(ENOTTY));
                CHECK(call(SYS_ioctl, 0, bad[i] | HIGH, 0) == ERRNO(ENOTTY));
        }
}

static void prctl_asks_but_does_not_raise(void)
{
        CHECK(call(SYS_prctl, PR_SET_NAME, 0, 0) == ALLOW);
        CHECK(call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 0) == ALLOW);
        CHECK(call(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 0) == ERRNO(EINVAL));
        CHECK(call(SYS_prctl, PR_SET_MM, 0, 0) == ERRNO(EINVAL));
        CHECK(call(SYS_prctl, PR_SET_SECUREBITS, 0, 0) == ERRNO(EINVAL));
        CHECK(call(SYS_prctl, PR_SET_MM | HIGH, 0, 0) == ERRNO(EINVAL));
}

/* Numbers of nvidia-uvm, nvidia, kfd and DRM, and some that no sandbox has. */
static void numbers_of_drivers_are_for_sandboxes_with_devices(void)
{
        static const uint32_t driver[] = { 0x30000001, 27, 0xc020462a, 0xc0104b02, 0xc0106446, 0x6400 },
                              bad[] = { TIOCSTI, TIOCLINUX, TIOCSETD, SIOCSIFFLAGS, 0x40049409, 0x40086602, 0xae00,
                                      0x1260 };
        static const enum seccomp_kind with[][2] = { { SECCOMP_LAST_DEVICES, SECCOMP_OUTER_INIT },
                { SECCOMP_LAST_ROOT_DEVICES, SECCOMP_OUTER_INIT } },
                                       without[][2] = { { SECCOMP_LAST, SECCOMP_OUTER_INIT },
                                               { SECCOMP_LAST_ROOT, SECCOMP_OUTER_INIT },
                                               { SECCOMP_ZYGOTE, SECCOMP_OUTER_INIT } };
        for (size_t i = 0; i < ARRAY_LEN(driver); i++) {
                struct seccomp_data data = { .nr = SYS_ioctl, .arch = ARCH, .args = { 3, driver[i] } };
                for (size_t k = 0; k < ARRAY_LEN(with); k++)
                        CHECK(run_kinds(with[k], 2, &data) == ALLOW);
                for (size_t k = 0; k < ARRAY_LEN(without); k++)
                        CHECK(run_kinds(without[k], 2, &data) == ERRNO(ENOTTY));
                CHECK(run(&data) == ERRNO(ENOTTY));
        }
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct seccomp_data data = { .nr = SYS_ioctl, .arch = ARCH, .args = { 3, bad[i] } };
                for (size_t k = 0; k < ARRAY_LEN(with); k++)
                        CHECK(run_kinds(with[k], 2, &data) == ERRNO(ENOTTY));
        }
}

/* Root inside may give up capabilities, and everything else is as it is for everybody. */
static void root_inside_is_filtered_as_others_are(void)
{
        static const enum seccomp_kind root[] = { SECCOMP_LAST_ROOT, SECCOMP_OUTER_INIT };
        unsigned wrong = 0;
        for (long nr = -1; nr < 4096; nr++)
                for (size_t a = 0; a < ARRAY_LEN(arguments); a++)
                        for (size_t b = 0; b < ARRAY_LEN(arguments); b++) {
                                struct seccomp_data data = {
                                        .nr = (int)nr, .arch = ARCH, .args = { arguments[a], arguments[b], 1 }
                                };
                                uint32_t got = run_kinds(root, ARRAY_LEN(root), &data), option = (uint32_t)arguments[a];
                                if (nr == SYS_prctl &&
                                        (option == PR_CAPBSET_DROP || option == PR_SET_SECUREBITS ||
                                                option == PR_GET_SECUREBITS || option == PR_SET_KEEPCAPS))
                                        wrong += got != ALLOW || run(&data) == ALLOW;
                                else
                                        wrong += got != run(&data);
                        }
        CHECK(wrong == 0);
        struct seccomp_data ambient = {
                .nr = SYS_prctl, .arch = ARCH, .args = { PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE }
        };
        CHECK(run_kinds(root, ARRAY_LEN(root), &ambient) == ERRNO(EINVAL));
}

static void a_process_1_that_only_reaps_has_next_to_nothing(void)
{
        static const long calls[] = { SYS_recvfrom, SYS_sendmsg, SYS_wait4, SYS_exit, SYS_exit_group, SYS_rt_sigreturn,
                SYS_restart_syscall };
        unsigned wrong = 0;
        for (long nr = -1; nr < 4096; nr++) {
                struct seccomp_data data = { .nr = (int)nr, .arch = ARCH };
                bool has = false;
                for (size_t i = 0; i < ARRAY_LEN(calls); i++)
                        has = has || calls[i] == nr;
                wrong += run_kind(SECCOMP_REAPER, &data) != (has ? ALLOW : ERRNO(EPERM));
        }
        CHECK(wrong == 0);
}

static void devices_and_listeners_cannot_be_made(void)
{
        CHECK(call(SYS_mknodat, 0, 0, S_IFREG | 0644) == ALLOW);
        CHECK(call(SYS_mknodat, 0, 0, S_IFIFO | 0644) == ALLOW);
        CHECK(call(SYS_mknodat, 0, 0, S_IFCHR | 0644) == ERRNO(EPERM));
        CHECK(call(SYS_mknodat, 0, 0, S_IFBLK | 0644 | HIGH) == ERRNO(EPERM));
#ifdef SYS_mknod
        CHECK(call(SYS_mknod, 0, S_IFBLK | 0644, 0) == ERRNO(EPERM));
        CHECK(call(SYS_mknod, 0, S_IFSOCK | 0644, 0) == ALLOW);
#endif
        CHECK(call(SYS_seccomp, 1, 0, 0) == ALLOW);
        CHECK(call(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER, 0) == ERRNO(EPERM));
        CHECK(call(SYS_seccomp, 1, SECCOMP_FILTER_FLAG_NEW_LISTENER | 1 | HIGH, 0) == ERRNO(EPERM));
        CHECK(call(SYS_personality, 0xffffffff, 0, 0) == ALLOW);
        CHECK(call(SYS_personality, 0x0040000 /* ADDR_NO_RANDOMIZE */, 0, 0) == ERRNO(EPERM));
}

static void dangerous_calls_are_refused(void)
{
        static const long calls[] = { SYS_mount, SYS_umount2, SYS_unshare, SYS_setns, SYS_pivot_root, SYS_chroot,
                SYS_ptrace, SYS_bpf, SYS_keyctl, SYS_add_key, SYS_io_uring_setup, SYS_userfaultfd, SYS_perf_event_open,
                SYS_process_vm_readv, SYS_open_by_handle_at, SYS_kexec_load, SYS_init_module, SYS_reboot, SYS_fsopen,
                SYS_move_mount, SYS_open_tree, SYS_mount_setattr, SYS_pidfd_getfd, SYS_memfd_secret, SYS_clone3,
                SYS_fanotify_init, SYS_syslog, SYS_settimeofday, SYS_sethostname, SYS_swapon, SYS_acct };
        for (size_t i = 0; i < ARRAY_LEN(calls); i++)
                CHECK((call(calls[i], 0, 0, 0) & 0xffff0000) == SECCOMP_RET_ERRNO);
}

/* The generic header has 403 to 423, which are calls of 32-bit architectures, and two names that are no calls. */
static bool is_call_of_64_bits(const char *name, long nr)
{
        return (nr < 403 || nr > 423) && strcmp(name, "syscalls") != 0 && strncmp(name, "arch_specific", 13) != 0;
}

/* What the kernel headers know and the table does not mention was added since somebody thought about it. */
static void the_table_knows_every_call_of_the_headers(void)
{
        FILE *file = fopen(HEADER, "re");
        char line[256], name[128];
        long nr;
        unsigned known = 0;
        if (!file)
                SKIP("the kernel headers are not installed");
        while (fgets(line, sizeof line, file)) {
                enum seccomp_verdict verdict;
                int number;
                if (sscanf(line, "#define __NR_%127s %ld", name, &nr) != 2 &&
                        sscanf(line, "#define __NR3264_%127s %ld", name, &nr) != 2)
                        continue;
                if (!is_call_of_64_bits(name, nr))
                        continue;
                known++;
                if (!seccomp_lookup(nr, &verdict, &number)) {
                        printf("# %s (%ld) is neither allowed nor refused by name\n", name, nr);
                        CHECK(false);
                }
        }
        fclose(file);
        CHECK(known > 250);
}

int main(void)
{
        RUN(every_number_ends_as_the_table_says);
        RUN(the_last_filter_makes_the_table_of_those_below);
        RUN(a_zygote_may_enter_a_sandbox_with_its_memory_and_nothing_more);
        RUN(other_architectures_kill);
        RUN(x32_numbers_do_not_exist);
        RUN(clone_makes_threads_but_no_namespace);
        RUN(only_plain_sockets_exist_whatever_the_high_bits_say);
        RUN(terminals_cannot_be_fed);
        RUN(numbers_of_drivers_are_for_sandboxes_with_devices);
        RUN(prctl_asks_but_does_not_raise);
        RUN(root_inside_is_filtered_as_others_are);
        RUN(a_process_1_that_only_reaps_has_next_to_nothing);
        RUN(devices_and_listeners_cannot_be_made);
        RUN(dangerous_calls_are_refused);
        RUN(the_table_knows_every_call_of_the_headers);
        return tap_done();
}
