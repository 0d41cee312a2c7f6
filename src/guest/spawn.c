/* The descriptors of a program, by pipes or by a terminal, and its start: fork(2) and execve(2). */
#include "guest/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

#define START_LOOKS 100 /* waits for the start of a program */
#define START_LOOK_MS 50

void ends_done(struct ends *ends)
{
        int *all[] = { &ends->in, &ends->out, &ends->error, &ends->channel, &ends->ours_in, &ends->ours_out,
                &ends->ours_error, &ends->ours_channel };
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
                fd_close(all[i]);
}

static int make_pipe(int *ret_read, int *ret_write)
{
        int pair[2];
        if (pipe2(pair, O_CLOEXEC) < 0)
                return -1;
        *ret_read = pair[0];
        *ret_write = pair[1];
        return 0;
}

static int make_channel(struct ends *ends)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -1;
        ends->channel = pair[0];
        ends->ours_channel = pair[1];
        return 0;
}

int ends_make(struct ends *ends, bool input, bool channel, struct csn_error *err)
{
        if ((input && make_pipe(&ends->in, &ends->ours_in) < 0) || make_pipe(&ends->ours_out, &ends->out) < 0 ||
                make_pipe(&ends->ours_error, &ends->error) < 0 || (channel && make_channel(ends) < 0))
                return err_set(err, errno == EMFILE ? CSN_E_BUSY : CSN_E_SYSTEM, errno,
                        "make the descriptors of a program");
        if (!input && (ends->in = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /dev/null");
        return 0;
}

int ends_make_terminal(struct ends *ends, const struct guest_process *what, struct csn_error *err)
{
        const struct winsize size = { .ws_row = (uint16_t)what->rows, .ws_col = (uint16_t)what->columns };
        int unlocked = 0, number;
        char path[32];
        ends->ours_out = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ends->ours_out < 0 || ioctl(ends->ours_out, TIOCSPTLCK, &unlocked) < 0 ||
                ioctl(ends->ours_out, TIOCGPTN, &number) < 0)
                return err_set(err, errno == ENOSPC ? CSN_E_BUSY : CSN_E_SYSTEM, errno, "open a terminal");
        snprintf(path, sizeof path, "/dev/pts/%d", number);
        ends->in = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
        ends->ours_in = fcntl(ends->ours_out, F_DUPFD_CLOEXEC, 0);
        ends->out = fcntl(ends->in, F_DUPFD_CLOEXEC, 0);
        ends->error = fcntl(ends->in, F_DUPFD_CLOEXEC, 0);
        if (ends->in < 0 || ends->ours_in < 0 || ends->out < 0 || ends->error < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s", path);
        if (ioctl(ends->ours_out, TIOCSWINSZ, &size) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the size of a terminal");
        return 0;
}

/* At most `max`; a container may have less. */
static int limit_open_files(uint64_t max, struct csn_error *err)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "getrlimit");
        limit.rlim_cur = limit.rlim_max = min_u64(limit.rlim_max, max);
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "limit the open files of the program");
        return 0;
}

/*
 * Child side.  When memory runs out the kernel kills the program and not the guest (proc(5)); raising needs no
 * privilege.  The file belongs to root while the process is as closed as the guest.  The first program of a container
 * has no neighbour to look into this copy of the guest meanwhile; later programs keep their score.
 */
static void kill_first(const struct guest *guest)
{
        if (guest->processes && guest->processes->next)
                return;
        prctl(PR_SET_DUMPABLE, 1);
        io_write_file(AT_FDCWD, "/proc/self/oom_score_adj", "1000");
        prctl(PR_SET_DUMPABLE, 0);
}

/* Child side.  An error before the program begins is written to `trouble`, which execve(2) closes. */
static _Noreturn void become(const struct guest *guest, const struct guest_process *what, const struct ends *ends,
        int trouble)
{
        struct csn_error err = { 0 };
        sigset_t none;
        int fds[] = { ends->in, ends->out, ends->error, ends->channel };
        int n = ends->channel >= 0 ? 4 : 3;
        int kept[5];
        for (int i = 0; i < n; i++)
                if ((kept[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 10)) < 0)
                        err_set(&err, CSN_E_BUSY, errno, "give the program its descriptor %d", i);
        kept[4] = fcntl(trouble, F_DUPFD_CLOEXEC, 10);
        if (kept[4] < 0) {
                err_set(&err, CSN_E_BUSY, errno, "keep a descriptor");
                kept[4] = trouble;
        }
        if (!err.code && setsid() < 0)
                err_set(&err, CSN_E_SYSTEM, errno, "setsid");
        for (int i = 0; i < n && !err.code; i++)
                if (dup2(kept[i], i) < 0)
                        err_set(&err, CSN_E_SYSTEM, errno, "give the program its descriptor %d", i);
        if (guest->in_container)
                kill_first(guest);
        if (!err.code && what->open_files)
                limit_open_files(what->open_files, &err);
        if (!err.code && what->flags & GUEST_TERMINAL && ioctl(0, TIOCSCTTY, 0) < 0)
                err_set(&err, CSN_E_SYSTEM, errno, "give the program its terminal");
        if (!err.code)
                account_become(guest, what->flags & GUEST_AS_ROOT, &err);
        if (!err.code && chdir(what->folder) < 0) {
                files_error(&err, "go to the working folder", what->folder);
                snprintf(err.field, sizeof err.field, "/cwd");
        }
        if (!err.code) {
                close_range((unsigned)n, (unsigned)kept[4] - 1, CLOSE_RANGE_CLOEXEC);
                for (int sig = 1; sig < NSIG; sig++)
                        signal(sig, SIG_DFL);
                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                environ = what->env;
                execvp(what->argv[0], what->argv);
                int sys = errno;
                files_error(&err, "start", what->argv[0]);
                if (sys == EACCES) {
                        err_set(&err, CSN_E_INPUT, 0,
                                "cannot start %.300s: it is a folder, or a file without permission to execute it (chmod +x)",
                                what->argv[0]);
                        err.sys = sys;
                }
        }
        io_write_all(kept[4], &err, sizeof err);
        _exit(127);
}

/*
 * Whether the child has reported the start of its program, or an error.  Programs with the uid of the child can stop
 * the child earlier, so the wait has a limit: many short waits, because a pause of the sandbox prolongs only one wait.
 */
static bool has_told(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        for (int i = 0; i < START_LOOKS; i++)
                if (poll(&poll_fd, 1, START_LOOK_MS) > 0)
                        return true;
        return false;
}

int spawn(const struct guest *guest, const struct guest_process *what, const struct ends *ends, pid_t *ret,
        struct csn_error *err)
{
        int from, to;
        struct csn_error trouble;
        if (make_pipe(&from, &to) < 0)
                return err_set(err, CSN_E_BUSY, errno, "make a pipe");
        auto_fd reading = from;
        auto_fd writing = to;
        pid_t pid = fork();
        if (pid == 0)
                become(guest, what, ends, writing);
        if (pid < 0)
                return err_set(err, errno == EAGAIN ? CSN_E_BUSY : CSN_E_SYSTEM, errno,
                        "start a process (limits.pids bounds them)");
        fd_close(&writing);
        bool told = has_told(reading);
        if (told && read(reading, &trouble, sizeof trouble) != (ssize_t)sizeof trouble) {
                *ret = pid;
                return 0;
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, __WALL);
        if (!told)
                return err_set(err, CSN_E_BUSY, 0,
                        "%.100s did not start within %d seconds: something in the sandbox hinders it", what->argv[0],
                        START_LOOKS * START_LOOK_MS / 1000);
        *err = trouble;
        return -err->code;
}
