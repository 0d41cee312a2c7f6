/*
 * The process for parsing foreign text.  The worker has its policies in memory, a socket, and nothing else: no file, no
 * network, no other program, no more memory than a program of 1 MiB can need.  Its answer counts no more than a claim
 * of the checked program about itself: the sandbox does not rely on the answer.
 *
 * seccomp(2) allows the few calls of malloc, read and write; every other call kills the process.
 */
#include "policy/policy.h"
#include "policy/analysis/tree.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define JSON_MAX (8 * MIB)         /* of a request, with its prelude */
#define RESULT_MAX (16 * MIB)
#define WORKER_MEMORY (1536 * MIB)
#define KEPT_MEMORY (16 * MIB)     /* kept for the next request, instead of page faults each time */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

#ifndef SANITIZED
static const struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(write),
        ALLOW(brk),
        ALLOW(mmap),
        ALLOW(munmap),
        ALLOW(mremap),
        ALLOW(madvise),
        ALLOW(exit_group),
        ALLOW(exit),
        ALLOW(clock_gettime),
        ALLOW(futex),
        ALLOW(rt_sigreturn),
        ALLOW(rt_sigprocmask),
        ALLOW(getrandom),
        ALLOW(gettid),
        ALLOW(getpid),
        /*
         * No tgkill, although abort(3) uses the call: tgkill would reach every process of the user.  This filter ends
         * abort as well.
         */
        /* qsort(3) asks for the size of the memory, and works without an answer. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sysinfo, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
#endif

static int limit(int resource, rlim_t most)
{
        const struct rlimit to = { most, most };
        return setrlimit(resource, &to);
}

/* Sanitizers need threads, files and terabytes of address space; a sanitized worker only closes descriptors. */
static int confine(const struct worker_user *user)
{
#ifndef SANITIZED
        const struct sock_fprog program = { .len = ARRAY_LEN(filter),
                .filter = (struct sock_filter *)(uintptr_t)filter };
#endif
        if (syscall(SYS_close_range, WORKER_SOCKET_FD + 1, ~0U, 0) < 0)
                for (int fd = WORKER_SOCKET_FD + 1; fd < 1024; fd++)   /* before Linux 5.9 */
                        close(fd);
        if (user->uid != (uid_t)-1 && geteuid() == 0 &&
                (setgroups(0, NULL) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
                        setresuid(user->uid, user->uid, user->uid) < 0))
                return -1;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
                limit(RLIMIT_CORE, 0) < 0 || limit(RLIMIT_FSIZE, 0) < 0 || limit(RLIMIT_NPROC, 0) < 0 ||
                limit(RLIMIT_MEMLOCK, 0) < 0)
                return -1;
#ifndef SANITIZED
        /* The caller's terminal or log is nothing for foreign text either. */
        for (int fd = 0; fd < WORKER_SOCKET_FD; fd++)
                close(fd);
        if (limit(RLIMIT_NOFILE, WORKER_SOCKET_FD + 1) < 0 || limit(RLIMIT_AS, WORKER_MEMORY) < 0)
                return -1;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
#else
        return 0;
#endif
}

/*
 * The other end of the socket is closed: the answer has no reader.  Without this handler, a worker with a killed caller
 * would go on with a text of minutes.
 */
static void on_socket(int number, siginfo_t *info, void *context)
{
        (void)number;
        (void)context;
        if (info->si_code == POLL_HUP)
                _exit(0);
}

/* Have the kernel signal the end of the peer (fcntl(2), F_SETSIG), before confine() forbids the calls. */
static int watch_socket(void)
{
        struct sigaction action = { .sa_sigaction = on_socket, .sa_flags = SA_SIGINFO | SA_RESTART };
        int flags = fcntl(WORKER_SOCKET_FD, F_GETFL);
        return flags < 0 || sigaction(SIGIO, &action, NULL) < 0 || fcntl(WORKER_SOCKET_FD, F_SETSIG, SIGIO) < 0 ||
                        fcntl(WORKER_SOCKET_FD, F_SETOWN, getpid()) < 0 ||
                        fcntl(WORKER_SOCKET_FD, F_SETFL, flags | O_ASYNC) < 0
                ? -1
                : 0;
}

/* ---- requests ---- */

static bool read_all(void *bytes, size_t len)
{
        char *at = bytes;
        while (len) {
                ssize_t n = read(WORKER_SOCKET_FD, at, len);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return false;
                at += n;
                len -= (size_t)n;
        }
        return true;
}

static int add_part(const char *bytes, size_t len, void *buf)
{
        return buf_add(buf, bytes, len) ? 0 : -1;
}

static bool answer(const struct check_result *result, bool doubtful)
{
        struct buf buf;
        uint32_t len = 0;
        json_t *json = model_encode(&object_check_result, result);
        buf_init(&buf, RESULT_MAX);
        bool good = buf_add(&buf, &len, sizeof len) && json_dump_callback(json, add_part, &buf, JSON_COMPACT) == 0;
        json_decref(json);
        if (good) {
                len = (uint32_t)(buf.len - sizeof len) | (tree_is_worn() ? WORKER_LAST : 0) |
                        (doubtful ? WORKER_DOUBTFUL : 0);
                memcpy(buf.bytes, &len, sizeof len);
                good = io_write_all(WORKER_SOCKET_FD, buf.bytes, buf.len) == 0;
        }
        buf_done(&buf);
        return good;
}

static bool serve_one(const struct policies *policies, const struct csn_error *why, char **text, size_t *size)
{
        struct worker_head head;
        struct arena arena = { 0 };
        struct check_request request = { 0 };
        struct check_result result;
        struct csn_error err;
        bool doubtful = false;
        if (!read_all(&head, sizeof head) || head.json > JSON_MAX || head.code > CHECK_CODE_MAX)
                return false;
        size_t len = (size_t)head.json + head.code;
        if (len >= *size) {
                *size = len + 1;
                *text = mem_resize(*text, *size);
        }
        if (!read_all(*text, len))
                return false;
        (*text)[len] = 0;
        int rc = model_decode_text(&object_check_request, *text, head.json, &arena, &request, &err);
        request.code = (struct bytes){ *text + head.json, head.code };
        if (rc < 0) {
                policy_refuse(&request, &err, &arena, &result);
        } else if (!policies) {
                policy_refuse(&request, why, &arena, &result);
        } else {
                policy_defaults(&request);
                policy_check(policies, &request, &arena, &result, &doubtful);
        }
        bool good = answer(&result, doubtful);
        arena_done(&arena);
        return good;
}

int worker_main(const struct worker_user *user, const char *const *folders, size_t n)
{
        struct policies *policies = NULL;
        struct csn_error err = { 0 };
        char *text = NULL;
        size_t size = 0;
        /* A wrong policy is the answer to every request, so every client gets the place of the mistake. */
        policies_load(folders, n, &policies, &err);
        mallopt(M_TRIM_THRESHOLD, (int)KEPT_MEMORY);
        mallopt(M_MMAP_THRESHOLD, (int)KEPT_MEMORY);
        mallopt(M_TOP_PAD, (int)MIB);
        json_object_seed(0);   /* else jansson would open /dev/urandom with its first object */
        if (watch_socket() < 0 || confine(user) < 0)
                return 125;
        while (serve_one(policies, &err, &text, &size) && !tree_is_worn())
                ;
        free(text);
        policies_free(policies);
        return 0;
}
