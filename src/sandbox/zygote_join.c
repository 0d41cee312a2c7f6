/*
 * A zygote's child on its way into a sandbox.  The child was forked into the sandbox's pid namespace and enters
 * the other namespaces by setns(2) on the pidfd of process 1 (Linux 5.8).  The child then gives up the same rights as
 * process 1 before a program, takes the program from the handoff socket, and runs the program.
 *
 * The child's memory is a copy of the zygote's.  In the common domain no foreign code ran there.  In a domain of its
 * own a zygote has imported foreign code, so the supervisor verifies the child from outside (verify.c).
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ENTERED (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* Our descriptors until the program comes; the program gets 0 to 3 only. */
enum { TALK_FD = 4, HANDOFF_FD, HOME_FD, FDS };

static int report(uint32_t op, const struct wire_boundary *boundary, const struct csn_error *error)
{
        struct inner_init_message message = { .op = op };
        if (boundary)
                message.boundary = *boundary;
        if (error)
                message.error = *error;
        return wire_send(TALK_FD, &message, sizeof message, NULL, 0);
}

static int expect(uint32_t op, struct inner_init_message *ret)
{
        ssize_t n;
        do
                n = recv(TALK_FD, ret, sizeof *ret, 0);
        while (n < 0 && errno == EINTR);
        return n == (ssize_t)sizeof *ret && ret->op == op ? 0 : -1;
}

/* Moves all descriptors to their numbers: 0 to 3 are the program's, higher numbers are ours; all others are closed. */
static int place(int fds[6], struct csn_error *err)
{
        int *mine[] = { &fds[0], &fds[1], &fds[2], &fds[3], &fds[4], &fds[5] };
        static const int places[] = { -1, TALK_FD, STDOUT_FILENO, STDERR_FILENO, SANDBOX_CHANNEL_FD, HANDOFF_FD };
        if (descriptors_keep(mine, ARRAY_LEN(mine), err) < 0)
                return -err->code;
        for (size_t i = 1; i < ARRAY_LEN(places); i++)
                if (dup3(fds[i], places[i], places[i] > SANDBOX_CHANNEL_FD ? O_CLOEXEC : 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "put a descriptor in its place");
        return 0;
}

static int enter(int pid_fd, struct csn_error *err)
{
        if (setns(pid_fd, ENTERED) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "enter the sandbox");
        if (setresgid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0 ||
                setresuid(SANDBOX_UID, SANDBOX_UID, SANDBOX_UID) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "take the sandbox' uid");
        if (setsid() < 0 || chdir(SANDBOX_HOME) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "take the sandbox' home and a session");
        return 0;
}

static int confine(struct plan *plan, void (*in_cgroup)(void), struct csn_error *err)
{
        int procs_fds;
        if (inner_init_go(TALK_FD, &procs_fds, err) < 0)
                return -err->code;
        in_cgroup();
        if (apply_confined(plan, err) < 0)
                return -err->code;
        /* A change of ids cleared the dumpable flag; after execve(2) a program is dumpable, too. */
        if (prctl(PR_SET_DUMPABLE, 1) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        if (descriptors_null(err) < 0)
                return -err->code;
        if (fcntl(STDIN_FILENO, F_SETFD, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "keep standard input");
        int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (home < 0 || (home != HOME_FD && dup3(home, HOME_FD, O_CLOEXEC) < 0))
                return err_set(err, CSN_E_SYSTEM, errno, "open the home directory");
        /* Closes all other descriptors, including a duplicate of HOME_FD. */
        return close_range(FDS, ~0U, 0) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "close_range") : 0;
}

int join_enter(struct plan *plan, int fds[6], void (*in_cgroup)(void), struct csn_error *err)
{
        sigset_t none;
        sigemptyset(&none);
        if (place(fds, err) < 0)
                return -err->code;
        if (enter(fds[0], err) < 0 || confine(plan, in_cgroup, err) < 0) {
                err_refused(err);
                report(INNER_INIT_FAILED, NULL, err);
                return -err->code;
        }
        sigprocmask(SIG_SETMASK, &none, NULL);
        return 0;
}

int join_wait(struct plan *plan, struct arena *arena, struct handoff_taken *ret, struct csn_error *err)
{
        struct inner_init_message run;
        if (report(INNER_INIT_CONFINED, &plan->boundary, NULL) < 0)
                _exit(1);
        const struct handoff_folders folders = { .home = HOME_FD, .modules = -1 };
        int rc = handoff_take(HANDOFF_FD, &folders, arena, ret, err);
        if (rc == 0 && expect(INNER_INIT_RUN, &run) < 0)
                _exit(1);
        if (rc == 0) {
                plan->limits = run.limits;
                rc = limits_set(plan, 0, LIMITS_LATE, err);
        }
        if (rc == 0 && ret->in >= 0 && dup2(ret->in, STDIN_FILENO) < 0)
                rc = err_set(err, CSN_E_SYSTEM, errno, "give the program its standard input");
        report(rc == 0 ? INNER_INIT_RUNNING : INNER_INIT_FAILED, NULL, rc == 0 ? NULL : err);
        fd_close(&ret->in);
        close_range(TALK_FD, FDS - 1, 0);   /* descriptors opened by a waiting interpreter stay */
        return rc;
}
