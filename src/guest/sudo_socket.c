/*
 * Root for programs of `user`, if the owner of the sandbox wants sudo: there is no way from `user` to root
 * (credentials.c), so `sudo` inside is a program asking us, on a socket of the file system, to start another program as
 * root with its descriptors.
 *
 * A request is a packet (SOCK_SEQPACKET) of NUL-terminated texts: the working folder, the number of arguments, the
 * arguments, and the environment; with the descriptors 0, 1 and 2.  A later byte from the client is a signal for the
 * process group of the program, and our only packet is the status of wait(2) in text.  A client is as hostile as any
 * program inside, and gets nothing but root inside.
 */
#include "guest/guest.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SHIM "/usr/local/bin/sudo"
#define PROGRAM "/opt/caisson/sudo"   /* bin/caisson-sudo.c */
#define SUDO_REQUESTS_MAX 64          /* at once; more wait in the backlog */
#define TEXTS_MAX 4000

struct sudo_request {
        struct sudo_request *next;
        struct guest *guest;
        struct watch sock;
        pid_t pid;                   /* 0: its program has ended, or is not there yet */
};

struct sudo {
        struct operation op;
        struct watch listener;
        struct sudo_request *sudo_requests;
        size_t n;
};

/* ---- requests ---- */

static void accept_more(struct sudo *sudo);

static void sudo_request_free(struct sudo_request *sudo_request)
{
        struct sudo *sudo = sudo_request->guest->sudo;
        for (struct sudo_request **at = sudo ? &sudo->sudo_requests : NULL; at && *at; at = &(*at)->next)
                if (*at == sudo_request) {
                        *at = sudo_request->next;
                        sudo->n--;
                        break;
                }
        loop_unwatch(sudo_request->guest->loop, &sudo_request->sock);
        fd_close(&sudo_request->sock.fd);
        free(sudo_request);
        if (sudo)
                accept_more(sudo);
}

/* The child's side. */
static _Noreturn void become(const struct guest *guest, char *folder, char **argv, char **env, const int fds[3])
{
        struct csn_error err = { 0 };
        sigset_t none;
        int kept[3];
        for (int i = 0; i < 3; i++)
                kept[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10);
        for (int i = 0; i < 3; i++)
                if (dup2(kept[i], i) < 0)
                        _exit(126);
        if (setsid() < 0 || account_become(guest, true, &err) < 0 || chdir(folder) < 0)
                _exit(126);
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        environ = env;
        execvp(argv[0], argv);
        dprintf(2, "sudo: %.200s: %s\n", argv[0], errno == ENOENT ? "command not found" : strerror(errno));
        _exit(127);
}

/* False: no valid request, or no process. */
static bool start(struct sudo_request *sudo_request, char *bytes, size_t len, const int fds[3])
{
        char *texts[TEXTS_MAX + 1], *argv[TEXTS_MAX + 1], *end;
        size_t n = 0;
        if (!len || bytes[len - 1])
                return false;
        for (char *at = bytes; at < bytes + len && n < TEXTS_MAX; at += strlen(at) + 1)
                texts[n++] = at;
        unsigned long argc = n > 2 ? strtoul(texts[1], &end, 10) : 0;
        if (!argc || *end || argc > n - 2 || n == TEXTS_MAX)
                return false;
        memcpy(argv, texts + 2, argc * sizeof *argv);
        argv[argc] = NULL;
        texts[n] = NULL;
        sudo_request->pid = fork();
        if (sudo_request->pid == 0)
                become(sudo_request->guest, texts[0], argv, texts + 2 + argc, fds);
        if (sudo_request->pid < 0)
                sudo_request->pid = 0;
        return sudo_request->pid > 0;
}

static void sudo_request_ready(struct watch *watch, uint32_t events)
{
        static uint8_t bytes[WIRE_MAX];
        struct sudo_request *sudo_request = watch->owner;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        (void)events;
        ssize_t len = wire_receive(watch->fd, bytes, fds, &fds_n);
        if (len < 0 && errno == EAGAIN)
                return;
        bool good = len > 0;
        if (good && !sudo_request->pid)
                good = fds_n == 3 && start(sudo_request, (char *)bytes, (size_t)len, fds);
        else if (good && bytes[0] < NSIG)
                kill(-sudo_request->pid, bytes[0]);
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                fd_close(&fds[i]);
        if (good)
                return;
        if (sudo_request->pid)
                kill(-sudo_request->pid, SIGHUP);
        sudo_request_free(sudo_request);
}

void sudo_ended(struct guest *guest, pid_t pid, int status)
{
        char text[16];
        for (struct sudo_request *sudo_request = guest->sudo ? guest->sudo->sudo_requests : NULL; sudo_request;
                sudo_request = sudo_request->next) {
                if (sudo_request->pid != pid)
                        continue;
                int len = snprintf(text, sizeof text, "%d", status);
                sudo_request->pid = 0;
                wire_send(sudo_request->sock.fd, text, (size_t)len, NULL, 0);
                sudo_request_free(sudo_request);
                return;
        }
}

/* ---- the listener ---- */

static void listener_ready(struct watch *watch, uint32_t events)
{
        struct sudo *sudo = watch->owner;
        struct csn_error err;
        (void)events;
        /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return;
        struct sudo_request *sudo_request = mem_alloc(sizeof *sudo_request);
        *sudo_request = (struct sudo_request){ .next = sudo->sudo_requests,
                .guest = sudo->op.guest,
                .sock = { .fd = -1, .ready = sudo_request_ready, .owner = sudo_request } };
        sudo->sudo_requests = sudo_request;
        sudo_request->sock.fd = fd;
        if (++sudo->n == SUDO_REQUESTS_MAX)
                loop_unwatch(sudo->op.guest->loop, watch);
        if (loop_watch(sudo->op.guest->loop, &sudo_request->sock, fd, EPOLLIN, &err) < 0)
                sudo_request_free(sudo_request);
}

static void accept_more(struct sudo *sudo)
{
        struct csn_error err;
        if (sudo->listener.fd >= 0 && !sudo->listener.active && sudo->n < SUDO_REQUESTS_MAX)
                loop_watch(sudo->op.guest->loop, &sudo->listener, sudo->listener.fd, EPOLLIN, &err);
}

static int lay_shim(struct csn_error *err)
{
        static const char *const folders[] = { "/usr/local", "/usr/local/bin" };   /* an image may lack both */
        for (size_t i = 0; i < ARRAY_LEN(folders); i++)
                if (mkdir(folders[i], 0755) < 0 && errno != EEXIST)
                        return err_set(err, CSN_E_SYSTEM, errno, "make %s", folders[i]);
        if ((unlink(SHIM) < 0 && errno != ENOENT) || symlink(PROGRAM, SHIM) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make " SHIM);
        return 0;
}

static int open_listener(struct sudo *sudo, struct csn_error *err)
{
        const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = GUEST_SUDO_SOCKET };
        unlink(GUEST_SUDO_SOCKET);
        sudo->listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (sudo->listener.fd < 0 || bind(sudo->listener.fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
                chmod(GUEST_SUDO_SOCKET, 0666) < 0 || listen(sudo->listener.fd, SUDO_REQUESTS_MAX) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen on " GUEST_SUDO_SOCKET);
        return loop_watch(sudo->op.guest->loop, &sudo->listener, sudo->listener.fd, EPOLLIN, err);
}

static int sudo_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        (void)op, (void)bytes, (void)len;
        return err_set(err, CSN_E_PROTOCOL, 0, "sudo was sent what is not for it");
}

static void sudo_room(struct operation *op)
{
        (void)op;
}

static void sudo_closed(struct operation *op)
{
        struct sudo *sudo = (struct sudo *)op;
        if (op->guest->sudo == sudo)
                op->guest->sudo = NULL;
        while (sudo->sudo_requests) {
                struct sudo_request *sudo_request = sudo->sudo_requests;
                sudo->sudo_requests = sudo_request->next;
                sudo_request_free(sudo_request);
        }
        loop_unwatch(op->guest->loop, &sudo->listener);
        fd_close(&sudo->listener.fd);
        operation_release(op);
        free(sudo);
}

void sudo_begin(struct guest *guest, int *sock)
{
        static const struct operation_kind kind = { sudo_take, sudo_room, sudo_closed };
        struct sudo *sudo = mem_alloc(sizeof *sudo);
        struct csn_error err = { 0 };
        sudo->listener = (struct watch){ .fd = -1, .ready = listener_ready, .owner = sudo };
        if (!operation_open(&sudo->op, guest, &kind, sock))
                return;
        if (!guest->has_root || guest->sudo) {
                err_set(&err, CSN_E_INPUT, 0, guest->sudo ? "sudo is there already" : "this sandbox has no root");
        } else {
                guest->sudo = sudo;
                account_files(guest, true);
                if (lay_shim(&err) == 0)
                        open_listener(sudo, &err);
                account_files(guest, false);
        }
        if (err.code)
                operation_fail(&sudo->op, &err);
        else
                operation_tell_number(&sudo->op, GUEST_STARTED, 1);
}
