#include "lang/python/grading/case.h"

#include <endian.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "lang/python/run/channel.h"

#define WAITING 4                      /* factor of the wall-clock limit for a case waiting for the CPU */
#define LOOK_MS 100                    /* several threads use CPU time faster than time passes */
#define CPUCLOCK_SCHED 2               /* MAKE_PROCESS_CPUCLOCK() of the kernel, as in clock_getcpuclockid(3) */
#define FILE_MAX (64 * MIB)            /* written by a case, with its output, which is in memory */
#define HEADER 8                       /* of a message: its length */
#define USUAL 4096                     /* bytes of a message for which nothing is allocated */

static double now(void)
{
        return (double)clock_us() / 1e6;
}

/* ---- in the case's process ---- */

static int limit(int kind, rlim_t soft, rlim_t hard)
{
        struct rlimit most;
        if (getrlimit(kind, &most) < 0)
                return -1;
        /* RLIM_INFINITY is the largest number. */
        return setrlimit(kind, &(struct rlimit){ min_u64(soft, most.rlim_max), min_u64(hard, most.rlim_max) });
}

static int enter(const struct case_rules *rules, const int outputs[2], int writer)
{
        rlim_t seconds = (rlim_t)rules->cpu_s + 2;
        close(rules->channel_fd);
        if (!rules->alone)
                setsid();
        writer = channel_move_away(writer);
        if (dup2(rules->null_fd, 0) < 0 || dup2(outputs[0], 1) < 0 || dup2(outputs[1], 2) < 0)
                _exit(1);
        if (limit(RLIMIT_CPU, seconds, seconds + 1) < 0 || limit(RLIMIT_FSIZE, FILE_MAX, FILE_MAX) < 0)
                _exit(1);
        return writer;
}

/* ---- in the waiting process ---- */

struct guard {
        const struct case_rules *rules;
        struct case_end *end;
        struct buf *message;
        pid_t pid;
        int reader;
        double started, until;
};

static double cpu_of(pid_t pid)
{
        struct timespec used;
        if (clock_gettime((clockid_t)((~(unsigned)pid << 3) | CPUCLOCK_SCHED), &used) < 0)
                return 0;   /* gone */
        return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* Read the available bytes, up to the limit.  False: no more bytes will come. */
static bool take_message(struct guard *guard)
{
        char bytes[USUAL];
        for (;;) {
                size_t room = guard->rules->message_max + 1 - guard->message->len;
                ssize_t n = read(guard->reader, bytes, min_u64(room, sizeof bytes));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 && errno == EAGAIN;
                buf_add(guard->message, bytes, (size_t)n);
        }
}

/* After a whole message, the end of the pipe only means the end of the process. */
static bool is_whole(const struct guard *guard)
{
        uint64_t len;
        if (guard->message->len > guard->rules->message_max)
                return true;
        if (guard->message->len < HEADER)
                return false;
        memcpy(&len, guard->message->bytes, sizeof len);
        return guard->message->len - HEADER >= le64toh(len);
}

/* The time without a CPU while ready to run: the second number of /proc/PID/schedstat, in ns. */
static double waited_by(pid_t pid)
{
        char path[64], text[128], *end;
        snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
        ssize_t len = io_read_file(AT_FDCWD, path, text, sizeof text - 1);
        if (len <= 0)
                return 0;
        text[len] = 0;
        strtoull(text, &end, 10);
        return (double)strtoull(end, NULL, 10) / 1e9;
}

/* Time in which the process was kept waiting does not count, within bounds. */
static bool is_late(struct guard *guard)
{
        if (now() < guard->until)
                return false;
        double waited = waited_by(guard->pid), most = (WAITING - 1) * guard->rules->wall_s;
        guard->until = guard->started + guard->rules->wall_s + (waited < most ? waited : most);
        return now() >= guard->until;
}

static const char *reason_to_end(struct guard *guard, bool gone)
{
        if (gone)
                return "gone";
        if (is_late(guard))
                return "wall";
        return cpu_of(guard->pid) >= guard->rules->cpu_s ? "cpu" : NULL;
}

static int patience_ms(const struct guard *guard)
{
        double wall = guard->until - now(), cpu = guard->rules->cpu_s - cpu_of(guard->pid),
               left_ms = 1000 * (wall < cpu ? wall : cpu);
        return left_ms < 1 ? 1 : left_ms > LOOK_MS ? LOOK_MS : (int)left_ms;
}

/* Wait for the end of the process, and kill the process at a limit. */
static void watch_case(struct guard *guard, int process)
{
        struct pollfd on[] = { { process, POLLIN, 0 }, { guard->reader, POLLIN, 0 },
                { guard->rules->channel_fd, 0, 0 } };
        while (!(on[0].revents & POLLIN)) {
                for (size_t i = 0; i < ARRAY_LEN(on); i++)
                        on[i].revents = 0;   /* poll() leaves old events when a signal ends the call */
                poll(on, guard->end->reason ? 2 : 3, guard->end->reason ? -1 : patience_ms(guard));
                if (on[1].revents) {
                        bool more = take_message(guard) && !is_whole(guard);
                        on[1].fd = more ? guard->reader : -1;
                        if (guard->message->len > guard->rules->message_max)
                                kill(guard->pid,
                                        SIGKILL); /* too long for a result, and the writer would wait for a reader */
                }
                if (on[0].revents || guard->end->reason)
                        continue;
                guard->end->reason = reason_to_end(guard, on[2].revents != 0);
                if (guard->end->reason)
                        kill(guard->pid, SIGKILL);
        }
}

/* Kill all processes of the case.  In a sandbox kill(2) with -1 spares only us and the first process. */
static void kill_rest(const struct guard *guard)
{
        kill(guard->rules->alone ? -1 : -guard->pid, SIGKILL);
}

static void reap(struct guard *guard)
{
        struct rusage used = { 0 };
        while (wait4(guard->pid, &guard->end->status, 0, &used) < 0 && errno == EINTR)
                ;
        guard->end->cpu_s = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
        guard->end->memory = (unsigned long)used.ru_maxrss * 1024;
        /* The first process of a sandbox inherits the children left by the case. */
        while (getpid() == 1 && (waitpid(-1, NULL, 0) >= 0 || errno == EINTR))
                ;
}

static void finish(struct guard *guard, int process)
{
        watch_case(guard, process);
        kill_rest(guard);
        reap(guard);
        take_message(guard);
}

int case_run(const struct case_rules *rules, pid_t (*fork)(void), struct case_end *ret, int *ret_writer,
        struct csn_error *err)
{
        static struct buf message;   /* keeps its memory for the next case */
        double started = now();
        int ends[2];
        auto_fd out = memfd_create("stdout", MFD_CLOEXEC), error = memfd_create("stderr", MFD_CLOEXEC);
        if (out < 0 || error < 0 || pipe2(ends, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open what a case writes to");
        auto_fd reader = ends[0], writer = ends[1];
        pid_t pid = fork();
        if (pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork for a case");
        if (pid == 0) {
                *ret_writer = enter(rules, (int[]){ out, error }, take_fd(&writer));
                return 1;
        }
        fd_close(&writer);
        *ret = (struct case_end){ 0 };
        message.max = rules->message_max + 1;
        message.len = 0;
        struct guard guard = { rules, ret, &message, pid, reader, started, started + rules->wall_s };
        auto_fd process = (int)syscall(SYS_pidfd_open, pid, 0);
        if (process < 0 || fcntl(reader, F_SETFL, O_NONBLOCK) < 0) {
                err_set(err, CSN_E_SYSTEM, errno, "watch a case");
                kill(pid, SIGKILL);
                reap(&guard);
                return -err->code;
        }
        finish(&guard, process);
        ret->wall_s = now() - started;
        ret->message = message.bytes;
        ret->len = message.len;
        ret->outputs[0] = take_fd(&out);
        ret->outputs[1] = take_fd(&error);
        return 0;
}

/* ---- messages of a case ---- */

bool case_is_plain(const char *message, size_t len, const char *ending)
{
        static const char beginning[] = CASE_RETURNED;
        const char *at = message + sizeof beginning - 1, *end = message + len;
        if (len < sizeof beginning || memcmp(message, beginning, sizeof beginning - 1) != 0)
                return false;
        for (; at < end && *at != '"'; at++) {
                if (*at == '\\' && (++at == end || (*at != '"' && *at != '\\')))
                        return false;
                if (*at < ' ' || *at > '~')
                        return false;
        }
        return (size_t)(end - at) == strlen(ending) && memcmp(at, ending, strlen(ending)) == 0;
}
