/* The guest: requests become operations, each with a socket of its own; and dead children are reaped. */
#include "guest/guest.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define HOME "/home/user"

/* ---- requests ---- */

/* Refuses a request before its operation begins. */
static void refuse(int sock, const struct csn_error *err)
{
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        if (guest_put_error(&packet, err))
                wire_send(sock, packet.bytes, packet.len, NULL, 0);
        buf_done(&packet);
}

static void begin(struct guest *guest, const uint8_t *bytes, size_t len, int *sock)
{
        struct arena arena = { 0 };
        struct csn_error err = { 0 };
        struct guest_process process;
        struct guest_file file;
        uint64_t number;
        if (guest->operations_n >= GUEST_OPERATIONS_MAX) {
                err_set(&err, CSN_E_BUSY, 0, "%d operations go on in this sandbox, as many as there may be",
                        GUEST_OPERATIONS_MAX);
                refuse(*sock, &err);
                return;
        }
        switch (guest_kind_of(bytes, len)) {
        case GUEST_PROCESS:
                if (guest_get_process(bytes, len, &arena, &process, &err) == 0)
                        process_begin(guest, &process, sock);
                break;
        case GUEST_STDIO: stdio_begin(guest, sock); break;
        case GUEST_FILE:
                if (guest_get_file(bytes, len, &arena, &file, &err) < 0)
                        break;
                if (file.verb == GUEST_WATCH)
                        watch_begin(guest, &file, sock);
                else
                        files_begin(guest, &file, sock);
                break;
        case GUEST_CONNECT:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        connection_begin(guest, number, sock);
                break;
        case GUEST_SUDO: sudo_begin(guest, sock); break;
        case GUEST_HEALTH:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        health_begin(guest, number, sock);
                break;
        case GUEST_LISTEN:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        listener_begin(guest, number, sock);
                break;
        case GUEST_ACCEPT:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        accept_begin(guest, number, sock);
                break;
        case GUEST_FACTS:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        facts_begin(guest, number, sock);
                break;
        default: err_set(&err, CSN_E_PROTOCOL, 0, "the engine sent a request of no kind");
        }
        if (err.code)
                refuse(*sock, &err);
        arena_done(&arena);
}

static void guest_ready(struct watch *watch, uint32_t events)
{
        static uint8_t bytes[WIRE_MAX];
        struct guest *guest = watch->owner;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        (void)events;
        ssize_t len = wire_receive(watch->fd, bytes, fds, &fds_n);
        if (len < 0 && errno == EAGAIN)
                return;
        if (len < 0 && errno == EPROTO) {
                /*
                 * No descriptor was left for the socket of the request.  The engine sees the end of the socket, and
                 * may repeat the request.
                 */
                processes_let_go(guest);
                return;
        }
        if (len <= 0)
                _exit(0); /* the engine is gone; our exit ends all processes inside */
        if (fds_n == 1)
                begin(guest, bytes, (size_t)len, &fds[0]);
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
}

/* ---- children ---- */

static void child_ready(struct watch *watch, uint32_t events)
{
        struct guest *guest = watch->owner;
        struct signalfd_siginfo info;
        int status;
        pid_t pid;
        (void)events;
        while (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info)
                ;
        while ((pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0) {
                process_ended(guest, pid, status);
                sudo_ended(guest, pid, status);
        }
}

/* ---- set-up ---- */

static int watch_children(struct guest *guest, struct csn_error *err)
{
        sigset_t signals;
        sigemptyset(&signals);
        sigaddset(&signals, SIGCHLD);
        if (sigprocmask(SIG_SETMASK, &signals, NULL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "sigprocmask");
        signal(SIGPIPE, SIG_IGN);
        int fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "signalfd");
        return loop_watch(guest->loop, &guest->children, fd, EPOLLIN, err);
}

static int listen_to(struct guest *guest, int sock, struct csn_error *err)
{
        if (fcntl(sock, F_SETFD, FD_CLOEXEC) < 0 || fcntl(sock, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set up the engine's socket");
        return loop_watch(guest->loop, &guest->sock, sock, EPOLLIN, err);
}

/* All but the connection to the engine. */
static int set_up(struct guest *guest, struct csn_error *err)
{
        *guest = (struct guest){ .sock = { .fd = -1, .ready = guest_ready, .owner = guest },
                .children = { .fd = -1, .ready = child_ready, .owner = guest },
                .happenings = { .fd = -1 },
                .has_root = geteuid() == 0 };
        umask(022);
        /*
         * Our memory and descriptors are not for the programs, which have the same uid; execve(2) has made both
         * readable (proc(5)).
         */
        prctl(PR_SET_DUMPABLE, 0);
        prctl(PR_SET_NAME, "init");
        if (guest->has_root && account_begin(err) < 0)
                return -err->code;
        account_files(guest, false);
        if (loop_new(&guest->loop, err) < 0 || watch_children(guest, err) < 0)
                return -err->code;
        return chdir(HOME) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "go to %s", HOME) : 0;
}

static _Noreturn void serve(const struct guest *guest)
{
        struct csn_error err = { 0 };
        while (loop_step(guest->loop, -1, &err) == 0)
                ;
        _exit(1);
}

_Noreturn void guest_serve(int sock)
{
        static struct guest guest;
        struct csn_error err = { 0 };
        struct buf greeting;
        if (set_up(&guest, &err) < 0 || listen_to(&guest, sock, &err) < 0) {
                refuse(sock, &err);
                _exit(1);
        }
        buf_init(&greeting, 64);
        if (guest_put_number(&greeting, GUEST_HELLO, GUEST_VERSION))
                wire_send(sock, greeting.bytes, greeting.len, NULL, 0);
        buf_done(&greeting);
        serve(&guest);
}

/* Each connection takes four descriptors, and an engine's usual soft limit is 1024. */
static void raise_open_files(void)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return;
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
}

_Noreturn void guest_serve_stream(void)
{
        static struct guest guest;
        struct csn_error err = { 0 };
        struct buf greeting;
        int rc = set_up(&guest, &err);
        guest.in_container = true;
        raise_open_files();
        if (rc < 0 || stream_open(&guest, begin, &err) < 0) {
                dprintf(STDERR_FILENO, "%s\n", err.text);
                _exit(1);
        }
        buf_init(&greeting, 64);
        if (guest_put_number(&greeting, GUEST_HELLO, GUEST_VERSION))
                stream_greet(greeting.bytes, greeting.len);
        buf_done(&greeting);
        serve(&guest);
}
