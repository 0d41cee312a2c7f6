/*
 * The starter: the root process beside an engine without rights.
 *
 * An engine needs a new supervisor when the old supervisor has died, a new policy process when the old one is worn, and
 * the opener.  The engine names the kind, hands over the socket for the new process, and receives its pid.  The
 * programs and their arguments are fixed at the start of the starter, and cannot be changed.  The starter kills
 * processes that no longer answer the engine, because the engine has no right to; only processes started here, by their
 * pidfd (pidfd_send_signal(2), Linux 5.1).
 */
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#define STARTED_MAX 16

static _Noreturn void become(const char *program, char *const argv[], int sock)
{
        char *const env[] = {
                NULL
        }; /* a supervisor becomes process 1 of every sandbox: no secret of ours may be in its environment */
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
                args[STARTER_CGROUP], "--runner-dir", args[STARTER_RUNNERS], "--layers-dir", args[STARTER_LAYERS],
                "--images-dir", args[STARTER_IMAGES], "--volumes-dir", args[STARTER_VOLUMES], "--devices",
                args[STARTER_DEVICES], NULL };
        char *const policy[] = { "caisson-policy", user, args[STARTER_POLICIES], args[STARTER_BUILTIN], NULL };
        char *const opener[] = { "caisson-opener", args[STARTER_UID], args[STARTER_GID], NULL };
        if (what == WIRE_START_POLICY)
                become(args[STARTER_WORKER], policy, sock);
        become("/proc/self/exe", what == WIRE_START_OPENER ? opener : supervisor, sock);
}

/* The newest processes; the oldest gives way. */
static struct {
        int32_t pid;
        int pid_fd;
} started[STARTED_MAX];
static size_t started_n;

static void remember(int32_t pid, int pid_fd)
{
        size_t i = started_n++ % ARRAY_LEN(started);
        if (started[i].pid)
                fd_close(&started[i].pid_fd);
        started[i].pid = pid;
        started[i].pid_fd = pid_fd;
}

/* The new process is a child of the engine, which gets its SIGCHLD and reaps it. */
static int32_t fork_for_engine(enum wire_start what, char *const args[STARTER_ARGS], int sock)
{
        int pid_fd = -1;
        long pid = syscall(SYS_clone, CLONE_PARENT | CLONE_PIDFD | SIGCHLD, 0, &pid_fd, 0, 0);
        if (pid == 0)
                start(what, args, sock);
        if (pid < 0)
                return -errno;
        remember((int32_t)pid, pid_fd);
        return (int32_t)pid;
}

static int32_t kill_started(int32_t pid)
{
        for (size_t i = 0; i < ARRAY_LEN(started); i++)
                if (pid > 0 && started[i].pid == pid)
                        return syscall(SYS_pidfd_send_signal, started[i].pid_fd, SIGKILL, NULL, 0) < 0 ? -errno : 0;
        return -ESRCH;
}

static int32_t answer(const uint8_t *bytes, ssize_t len, int fd, char *const *paths, char *const args[STARTER_ARGS])
{
        int32_t pid;
        if (len == WIRE_START_MAX && bytes[0] == WIRE_START_KILL) {
                memcpy(&pid, bytes + 1, sizeof pid);
                return kill_started(pid);
        }
        if (len != 1)
                return -EPROTO;
        if (bytes[0] == WIRE_START_PING)
                return 0;
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
        /* The engine handles a Ctrl-C at the terminal; we end with its socket. */
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
