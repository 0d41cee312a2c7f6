/*
 * The starter: what is left of root beside an engine that has given up its rights.
 *
 * An engine needs a new supervisor when one has died, a new process that looks at programs when one is worn, and the
 * opener.  It says which, hands over the socket that the new process is to serve, and hears its number.  What is
 * started, and with which arguments, was said when the starter was, and cannot be changed.
 */
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

static _Noreturn void become(const char *program, char *const argv[], int sock)
{
        char *const env[] = {
                NULL
        }; /* a supervisor becomes process 1 of every sandbox: no secret of ours may be in it */
        sigset_t none;
        sigemptyset(&none);
        if (dup2(sock, SUPERVISOR_SOCKET_FD) < 0)
                _exit(125);
        close_range(SUPERVISOR_SOCKET_FD + 1, ~0U, 0);
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(program, argv, env);
        _exit(127);
}

static _Noreturn void start(enum wire_start what, char *const args[STARTER_ARGS], int sock)
{
        char user[80];
        snprintf(user, sizeof user, "--user=%.30s:%.30s", args[STARTER_UID], args[STARTER_GID]);
        char *const supervisor[] = { "caisson-supervisor", "--uid-range", args[STARTER_RANGE], "--cgroup-parent",
                args[STARTER_CGROUP], "--runner-dir", args[STARTER_RUNNERS], NULL };
        char *const policy[] = { "caisson-policy", user, args[STARTER_POLICIES], args[STARTER_BUILTIN], NULL };
        char *const opener[] = { "caisson-opener", args[STARTER_UID], args[STARTER_GID], NULL };
        if (what == WIRE_START_POLICY)
                become(args[STARTER_WORKER], policy, sock);
        become("/proc/self/exe", what == WIRE_START_OPENER ? opener : supervisor, sock);
}

/* The engine's child and not ours: it hears of its end, and waits for it. */
static int32_t fork_for_engine(enum wire_start what, char *const args[STARTER_ARGS], int sock)
{
        long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
                start(what, args, sock);
        return pid < 0 ? -errno : (int32_t)pid;
}

static int32_t answer(const uint8_t *bytes, ssize_t len, int fd, char *const *paths, char *const args[STARTER_ARGS])
{
        if (len != 1)
                return -EPROTO;
        if (bytes[0] == WIRE_START_REMOVE) {
                for (; *paths; paths++)
                        unlink(*paths);
                return 0;
        }
        bool known =
                bytes[0] == WIRE_START_SUPERVISOR || bytes[0] == WIRE_START_POLICY || bytes[0] == WIRE_START_OPENER;
        return known && fd >= 0 ? fork_for_engine((enum wire_start)bytes[0], args, fd) : -EPROTO;
}

int starter_main(int argc, char *const *argv)
{
        uint8_t bytes[16];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        ssize_t len;
        if (argc < 1 + STARTER_ARGS)
                return 64;
        /* A Ctrl-C at the terminal is the engine's to handle; we end with its socket. */
        setsid();
        while ((len = wire_receive_small(SUPERVISOR_SOCKET_FD, bytes, sizeof bytes, fds, &fds_n)) > 0) {
                int32_t said = answer(bytes, len, fds[0], argv + 1 + STARTER_ARGS, argv + 1);
                for (size_t i = 0; i < fds_n; i++)
                        fd_close(&fds[i]);
                if (said == -EPROTO || wire_send(SUPERVISOR_SOCKET_FD, &said, sizeof said, NULL, 0) < 0)
                        return 125;
        }
        return 0;
}
