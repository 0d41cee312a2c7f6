/*
 * Our side of the starter and the opener (supervisor/helper_starter.c, supervisor/file_opener.c); one of each for a
 * process.
 */
#include "backend/backend.h"
#include "base/worker.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define SOCKET_FD 3

/*
 * The loop and the helper threads have an opener each: a thread that opens many files talks to its opener nearly all
 * the time, and with a lower priority than the loop.  The loop alone starts and stops openers.
 */
struct opener {
        struct watch watch;
        pthread_mutex_t lock;            /* held for a request and its answer; used for the opener of the threads */
        int sock;
        pid_t pid;
        atomic_bool broken;              /* an answer is missing, so the socket is unusable */
};

static struct {
        int starter;
        pid_t starter_pid;
        struct opener loop, threads;
} helpers = { -1, 0,
              { .watch = { .fd = -1 }, .lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1 },
              { .watch = { .fd = -1 }, .lock = PTHREAD_MUTEX_INITIALIZER, .sock = -1 } };

static int pair_of(int *ret_ours, int *ret_theirs, struct csn_error *err)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        *ret_ours = pair[0];
        *ret_theirs = pair[1];
        return 0;
}

static _Noreturn void become_starter(const char *program, char *const argv[], int sock)
{
        char *const env[] = { NULL };
        int null = open("/dev/null", O_RDWR);
        if (null < 0 || dup2(sock, SOCKET_FD) < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
                _exit(125);
        close_range(SOCKET_FD + 1, ~0U, 0);
        execve(program, argv, env);
        _exit(127);
}

int helpers_start(const struct helper_options *options, struct csn_error *err)
{
        char uid[16], gid[16];
        int ours, theirs;
        snprintf(uid, sizeof uid, "%u", options->uid);
        snprintf(gid, sizeof gid, "%u", options->gid);
        const char *const argv[] = { "caisson-starter", uid, gid, backend_policy_worker(), options->policies_dir,
                backend_policies_dir(), options->uid_range, options->cgroup_parent, backend_runner_dir(),
                options->layers_dir, options->images_dir, options->volumes_dir, options->devices, options->sockets[0],
                options->sockets[1], options->sockets[2], NULL };
        if (pair_of(&ours, &theirs, err) < 0)
                return -err->code;
        auto_fd sock = theirs;
        helpers.starter = ours;
        const char *program = backend_supervisor();
        helpers.starter_pid = fork();
        if (helpers.starter_pid == 0)
                become_starter(program, (char *const *)(uintptr_t)argv, sock);
        if (helpers.starter_pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork the starter");
        return 0;
}

bool helpers_reap(pid_t pid, uint64_t ms)
{
        const struct timespec pause = { .tv_nsec = 1000000 };
        uint64_t until = clock_us() + ms * 1000;
        while (pid > 0) {
                pid_t ended = waitpid(pid, NULL, WNOHANG);
                if (ended == pid || (ended < 0 && errno == ECHILD))
                        return true;
                if (clock_us() >= until)
                        return false;
                nanosleep(&pause, NULL);
        }
        return true;
}

static struct {
        struct watch watch;
        struct timer ping;
        unsigned silent;                 /* periods without an answer to PING */
        bool asked;                      /* PING has no answer yet */
        struct loop *loop;
        void (*lost)(void *owner, const char *why);
        void *owner;
} starter_watch = { .watch = { .fd = -1 } };

static void starter_lost(const char *why)
{
        struct loop *loop = starter_watch.loop;
        helpers_unwatch();
        shutdown(helpers.starter, SHUT_RDWR);
        if (helpers_reap(helpers.starter_pid, 100))
                helpers.starter_pid = 0;
        if (loop)
                starter_watch.lost(starter_watch.owner, why);
}

/* Other requests wait for their answers at once, so an event is the answer to PING or the end. */
static void on_starter(struct watch *watch, uint32_t events)
{
        int32_t said;
        (void)events;
        ssize_t n = recv(watch->fd, &said, sizeof said, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n != (ssize_t)sizeof said || !starter_watch.asked) {
                starter_lost("was killed");
                return;
        }
        starter_watch.asked = false;
        starter_watch.silent = 0;
}

static void on_starter_ping(struct timer *timer)
{
        const uint8_t byte = WIRE_START_PING;
        if (starter_watch.silent++ >= HELPER_ANSWER_MS / HELPER_PING_MS) {
                starter_lost("does not answer");
                return;
        }
        if (!starter_watch.asked)
                starter_watch.asked = send(helpers.starter, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
        loop_timer(starter_watch.loop, timer, HELPER_PING_MS * 1000ULL);
}

int helpers_watch(struct loop *loop, void (*lost)(void *owner, const char *why), void *owner, struct csn_error *err)
{
        if (!helpers_are_there())
                return 0;
        starter_watch.watch = (struct watch){ .fd = -1, .ready = on_starter };
        starter_watch.ping = (struct timer){ .fired = on_starter_ping };
        starter_watch.loop = loop;
        starter_watch.lost = lost;
        starter_watch.owner = owner;
        loop_timer(loop, &starter_watch.ping, HELPER_PING_MS * 1000ULL);
        return loop_watch(loop, &starter_watch.watch, helpers.starter, EPOLLIN, err);
}

void helpers_unwatch(void)
{
        if (!starter_watch.loop)
                return;
        loop_unwatch(starter_watch.loop, &starter_watch.watch);
        loop_unwatch(starter_watch.loop, &helpers.loop.watch);
        loop_unwatch(starter_watch.loop, &helpers.threads.watch);
        loop_untimer(starter_watch.loop, &starter_watch.ping);
        starter_watch.loop = NULL;
}

bool helpers_are_silent(void)
{
        return starter_watch.silent >= HELPER_SILENT;
}

bool helpers_are_there(void)
{
        return helpers.starter >= 0;
}

/* One answer of the starter, for which the loop waits: the starter is small, trusted, and answers at once. */
static bool hear_starter(int32_t *ret)
{
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct pollfd poll_fd = { .fd = helpers.starter, .events = POLLIN };
        int n;
        do
                n = poll(&poll_fd, 1, HELPER_ANSWER_MS);
        while (n < 0 && errno == EINTR);
        return n == 1 && wire_receive_small(helpers.starter, ret, sizeof *ret, fds, &fds_n) == (ssize_t)sizeof *ret;
}

static int ask_starter(const void *bytes, size_t len, int sock, int32_t *ret, struct csn_error *err)
{
        if (wire_send(helpers.starter, bytes, len, &sock, sock >= 0) < 0 ||
                (starter_watch.asked && !hear_starter(ret)) || !hear_starter(ret)) {
                starter_lost("was killed, or does not answer");
                return err_set(err, CSN_E_SYSTEM, 0, "the process that starts others for the daemon is gone");
        }
        starter_watch.asked = false;
        starter_watch.silent = 0;
        return *ret < 0 ? err_set(err, CSN_E_SYSTEM, -*ret, "ask the process that starts others") : 0;
}

int helpers_kill(pid_t pid, struct csn_error *err)
{
        uint8_t bytes[WIRE_START_MAX] = { WIRE_START_KILL };
        int32_t number = pid;
        if (pid <= 0 || kill(pid, SIGKILL) == 0)
                return 0;
        if (!helpers_are_there())
                return err_set(err, CSN_E_SYSTEM, errno, "kill a helper");
        memcpy(bytes + 1, &number, sizeof number);
        return ask_starter(bytes, sizeof bytes, -1, &number, err);
}

int helpers_spawn(enum wire_start what, int sock, pid_t *ret_pid, struct csn_error *err)
{
        const uint8_t byte = (uint8_t)what;
        int32_t pid = 0;
        if (ask_starter(&byte, 1, sock, &pid, err) < 0)
                return -err->code;
        *ret_pid = pid;
        return 0;
}

void helpers_remove_sockets(void)
{
        const uint8_t byte = WIRE_START_REMOVE;
        struct csn_error err;
        int32_t said = 0;
        if (helpers_are_there() && ask_starter(&byte, 1, -1, &said, &err) < 0)
                log_text(LOG_WARN, "%s", err.text);
}

/* ---- the openers; the lock is held ---- */

static void stop_opener(struct opener *opener)
{
        struct csn_error err;
        if (starter_watch.loop)
                loop_unwatch(starter_watch.loop, &opener->watch);
        fd_close(&opener->sock);
        if (!helpers_reap(opener->pid, 100) &&
                (helpers_kill(opener->pid, &err) < 0 || !helpers_reap(opener->pid, HELPER_ANSWER_MS)))
                log_text(LOG_ERROR, "the file opener does not end");
        opener->pid = 0;
}

/* Watches for EPOLLRDHUP only: a helper thread may be waiting for an answer on this socket. */
static void on_opener(struct watch *watch, uint32_t events)
{
        struct opener *opener = watch->owner;
        (void)events;
        log_text(LOG_WARN, "the file opener was killed; the next file starts it again");
        pthread_mutex_lock(&opener->lock);
        stop_opener(opener);
        pthread_mutex_unlock(&opener->lock);
}

static int start_opener(struct opener *opener, struct csn_error *err)
{
        int ours, theirs;
        if (pair_of(&ours, &theirs, err) < 0)
                return -err->code;
        auto_fd sock = theirs, end = ours;
        if (helpers_spawn(WIRE_START_OPENER, sock, &opener->pid, err) < 0)
                return -err->code;
        /* Bounds the loop's wait; an opener without an answer is killed. */
        const struct timeval patience = { .tv_sec = HELPER_ANSWER_MS / 1000 };
        if (setsockopt(end, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "bound the wait for the file opener");
        opener->watch = (struct watch){ .fd = -1, .ready = on_opener, .owner = opener };
        if (starter_watch.loop && loop_watch(starter_watch.loop, &opener->watch, end, EPOLLRDHUP, err) < 0)
                return -err->code;
        opener->sock = take_fd(&end);
        opener->broken = false;
        return 0;
}

/* -1: the opener has ended. */
static int ask_opener(const struct opener *opener, int dir_fd, const uint8_t *bytes, size_t len, int *ret_fd)
{
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        int32_t said;
        if (opener->sock < 0 || opener->broken || wire_send(opener->sock, bytes, len, &dir_fd, 1) < 0 ||
            wire_receive_small(opener->sock, &said, sizeof said, fds, &fds_n) != (ssize_t)sizeof said)
                return -1;
        *ret_fd = said == 0 && fds_n == 1 ? fds[0] : -1;
        errno = said < 0 ? -said : EPROTO;
        return 0;
}

/* In the loop: restart the opener and repeat the request once. */
static int ask_in_loop(int dir_fd, const uint8_t *bytes, size_t len)
{
        struct opener *opener = &helpers.loop;
        struct csn_error err;
        int fd = -1;
        if (ask_opener(opener, dir_fd, bytes, len, &fd) == 0)
                return fd;
        if (opener->sock >= 0)
                log_text(LOG_WARN, "the file opener was killed or does not answer; it is started again");
        stop_opener(opener);
        if (start_opener(opener, &err) < 0 || ask_opener(opener, dir_fd, bytes, len, &fd) < 0) {
                log_text(LOG_ERROR, "files of a sandbox cannot be read, because the process for that does not start");
                errno = EIO;
                return -1;
        }
        return fd;
}

static int ask_in_thread(int dir_fd, const uint8_t *bytes, size_t len)
{
        struct opener *opener = &helpers.threads;
        int fd = -1;
        pthread_mutex_lock(&opener->lock);
        if (ask_opener(opener, dir_fd, bytes, len, &fd) < 0) {
                opener->broken = true;
                errno = EIO;
        }
        int sys = errno;
        pthread_mutex_unlock(&opener->lock);
        errno = sys;
        return fd;
}

int helpers_open(int dir_fd, const char *name, enum wire_open what)
{
        uint8_t bytes[WIRE_OPEN_MAX];
        size_t len = strlen(name);
        if (len + 1 > sizeof bytes) {
                errno = ENAMETOOLONG;
                return -1;
        }
        bytes[0] = (uint8_t)what;
        for (size_t i = 0; i < len; i++)
                bytes[1 + i] = (uint8_t)name[i];
        return worker_is_here() ? ask_in_thread(dir_fd, bytes, len + 1) : ask_in_loop(dir_fd, bytes, len + 1);
}

void helpers_serve_threads(void)
{
        struct opener *opener = &helpers.threads;
        struct csn_error err;
        if (!helpers_are_there() || (opener->sock >= 0 && !opener->broken))
                return;
        pthread_mutex_lock(&opener->lock);
        stop_opener(opener);
        if (start_opener(opener, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        pthread_mutex_unlock(&opener->lock);
}

void helpers_stop(void)
{
        stop_opener(&helpers.loop);
        stop_opener(&helpers.threads);
        fd_close(&helpers.starter);
        if (!helpers_reap(helpers.starter_pid, HELPER_ANSWER_MS))
                /* The starter runs as root: only the service manager can kill the process. */
                log_text(LOG_ERROR, "the starter does not end");
        helpers.starter_pid = 0;
}
