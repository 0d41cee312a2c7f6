/*
 * Our side of the starter and the opener (supervisor/helper_starter.c, supervisor/file_opener.c); one of each for a
 * process.
 */
#include "backend/backend.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define SOCKET_FD 3

static struct {
        int starter, opener;
        pid_t starter_pid, opener_pid;
} helpers = { -1, -1, 0, 0 };

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
                options->sockets[0], options->sockets[1], options->sockets[2], NULL };
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

static struct {
        struct watch watch;
        struct loop *loop;
        void (*lost)(void *owner);
        void *owner;
} starter_watch = { .watch = { .fd = -1 } };

/* It never speaks by itself, and each of its answers is waited for; so this is its end. */
static void on_starter(struct watch *watch, uint32_t events)
{
        (void)events;
        loop_unwatch(starter_watch.loop, watch);
        while (helpers.starter_pid > 0 && waitpid(helpers.starter_pid, NULL, 0) < 0 && errno == EINTR)
                ;
        helpers.starter_pid = 0;
        starter_watch.lost(starter_watch.owner);
}

int helpers_watch(struct loop *loop, void (*lost)(void *owner), void *owner, struct csn_error *err)
{
        if (!helpers_are_there())
                return 0;
        starter_watch.watch = (struct watch){ .fd = -1, .ready = on_starter };
        starter_watch.loop = loop;
        starter_watch.lost = lost;
        starter_watch.owner = owner;
        return loop_watch(loop, &starter_watch.watch, helpers.starter, EPOLLIN, err);
}

void helpers_unwatch(void)
{
        if (starter_watch.loop)
                loop_unwatch(starter_watch.loop, &starter_watch.watch);
        starter_watch.loop = NULL;
}

bool helpers_are_there(void)
{
        return helpers.starter >= 0;
}

/* The starter answers at once: it is small, trusted, and does nothing else. */
static int ask_starter(enum wire_start what, int sock, int32_t *ret, struct csn_error *err)
{
        uint8_t byte = (uint8_t)what;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        if (wire_send(helpers.starter, &byte, 1, &sock, sock >= 0) < 0 ||
            wire_receive_small(helpers.starter, ret, sizeof *ret, fds, &fds_n) != (ssize_t)sizeof *ret)
                return err_set(err, CSN_E_SYSTEM, 0,
                        "the process that starts others for the daemon is gone; restart the daemon");
        return *ret < 0 ? err_set(err, CSN_E_SYSTEM, -*ret, "start a process") : 0;
}

int helpers_spawn(enum wire_start what, int sock, pid_t *ret_pid, struct csn_error *err)
{
        int32_t pid = 0;
        if (ask_starter(what, sock, &pid, err) < 0)
                return -err->code;
        *ret_pid = pid;
        return 0;
}

void helpers_remove_sockets(void)
{
        struct csn_error err;
        int32_t said = 0;
        if (helpers_are_there() && ask_starter(WIRE_START_REMOVE, -1, &said, &err) < 0)
                log_text(LOG_WARN, "%s", err.text);
}

/* ---- the opener ---- */

static void stop_opener(void)
{
        fd_close(&helpers.opener);
        while (helpers.opener_pid > 0 && waitpid(helpers.opener_pid, NULL, 0) < 0 && errno == EINTR)
                ;
        helpers.opener_pid = 0;
}

static int start_opener(struct csn_error *err)
{
        int ours, theirs;
        if (pair_of(&ours, &theirs, err) < 0)
                return -err->code;
        auto_fd sock = theirs, end = ours;
        if (helpers_spawn(WIRE_START_OPENER, sock, &helpers.opener_pid, err) < 0)
                return -err->code;
        helpers.opener = take_fd(&end);
        return 0;
}

/* -1: it is gone. */
static int ask_opener(int dir_fd, const uint8_t *bytes, size_t len, int *ret_fd)
{
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        int32_t said;
        if (helpers.opener < 0 || wire_send(helpers.opener, bytes, len, &dir_fd, 1) < 0 ||
            wire_receive_small(helpers.opener, &said, sizeof said, fds, &fds_n) != (ssize_t)sizeof said)
                return -1;
        *ret_fd = said == 0 && fds_n == 1 ? fds[0] : -1;
        errno = said < 0 ? -said : EPROTO;
        return 0;
}

int helpers_open(int dir_fd, const char *name, enum wire_open what)
{
        uint8_t bytes[WIRE_OPEN_MAX];
        size_t len = strlen(name);
        struct csn_error err;
        int fd = -1;
        if (len + 1 > sizeof bytes) {
                errno = ENAMETOOLONG;
                return -1;
        }
        bytes[0] = (uint8_t)what;
        memcpy(bytes + 1, name, len);
        if (ask_opener(dir_fd, bytes, len + 1, &fd) == 0)
                return fd;
        stop_opener();
        if (start_opener(&err) < 0 || ask_opener(dir_fd, bytes, len + 1, &fd) < 0) {
                log_text(LOG_ERROR, "files of a sandbox cannot be read, because the process for that does not start");
                errno = EIO;
                return -1;
        }
        return fd;
}

void helpers_stop(void)
{
        stop_opener();
        fd_close(&helpers.starter);
        while (helpers.starter_pid > 0 && waitpid(helpers.starter_pid, NULL, 0) < 0 && errno == EINTR)
                ;
        helpers.starter_pid = 0;
}
