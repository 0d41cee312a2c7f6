/* Clean-up after a supervisor is killed: its cgroups are empty by then, but still there. */
#include "supervisor/supervisor.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/wait.h>

#define JANITOR_PIPE_FD 3

static _Noreturn void become_janitor(int pipe_fd, const char *paths)
{
        char *const argv[] = { "caisson-janitor", (char *)(uintptr_t)paths, NULL };
        char *const env[] = { NULL };
        if (dup2(pipe_fd, JANITOR_PIPE_FD) < 0)
                _exit(125);
        close_range(JANITOR_PIPE_FD + 1, ~0U, 0);
        execve("/proc/self/exe", argv, env);
        _exit(125);
}

int janitor_start(struct janitor *janitor, const char *paths, struct csn_error *err)
{
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pipe for the janitor");
        auto_fd theirs = ends[0];
        auto_fd ours = ends[1];
        pid_t pid = fork();
        if (pid == 0)
                become_janitor(theirs, paths);
        if (pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork the janitor");
        janitor->pipe = take_fd(&ours);
        janitor->pid = pid;
        return 0;
}

bool janitor_is_lost(const struct janitor *janitor)
{
        siginfo_t info = { 0 };
        return janitor->pid > 0 &&
                waitid(P_PID, (id_t)janitor->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid;
}

void janitor_stop(struct janitor *janitor)
{
        if (janitor_is_lost(janitor))
                kill(janitor->pid, SIGKILL);
        fd_close(&janitor->pipe);
        while (janitor->pid > 0 && waitpid(janitor->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        janitor->pid = 0;
}

int janitor_main(const char *paths)
{
        char byte;
        /* No signal to the supervisor's process group or terminal may end us before our work. */
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_IGN);
        ssize_t n;
        do
                n = read(JANITOR_PIPE_FD, &byte, 1);
        while (n > 0 || (n < 0 && errno == EINTR));
        cgroup_sweep(paths);
        return 0;
}
