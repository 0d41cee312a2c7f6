/* A sandbox as its parent sees it: made in one clone3(2), killed by one signal, given back in order. */
#include "sandbox/sandbox.h"

#include <linux/sched.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

void sandbox_init(struct sandbox *box)
{
        *box = (struct sandbox){ .pid_fd = -1, .control = -1, .uid_lock = -1 };
        cgroup_leaf_init(&box->leaf);
}

static int take_uid(struct sandbox *box, const struct uid_range *uids, struct csn_error *err)
{
        if (box->plan.abilities.rootless) {
                box->plan.host_uid = geteuid();
                return 0;
        }
        return uid_take(uids, &box->plan.host_uid, &box->uid_lock, err);
}

/*
 * The program opens /dev/stdout and /dev/stderr by name, which asks for the rights on the pipe's inode; so
 * its pipes belong to the sandbox's uid.  Other kinds of descriptors stay as they are.
 */
static int own_pipes(const struct sandbox *box, const int fds[WIRE_FDS_MAX], struct csn_error *err)
{
        for (int i = 0; i < 3 && !box->plan.abilities.rootless; i++) {
                struct stat st;
                if (fstat(fds[i], &st) == 0 && S_ISFIFO(st.st_mode) && fchown(fds[i], box->plan.host_uid, box->plan.host_uid) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "give the sandbox its pipe %d", i);
        }
        return 0;
}

/*
 * The user namespace belongs to whoever makes it, and what is counted inside is counted against its owner
 * outside too (inotify instances, pending signals: kernel/ucount.c).  So it is made with the sandbox's own
 * uid: made as root, all sandboxes would share root's quotas, whatever their processes' uids.
 */
static int become_owner(const struct sandbox *box)
{
        if (box->plan.abilities.rootless)
                return 0;
        if (setresgid((gid_t)-1, box->plan.host_uid, (gid_t)-1) < 0 || setresuid((uid_t)-1, box->plan.host_uid, (uid_t)-1) < 0)
                return -1;
        return 0;
}

static int become_root(const struct sandbox *box)
{
        if (box->plan.abilities.rootless)
                return 0;
        if (setresuid((uid_t)-1, 0, (uid_t)-1) < 0 || setresgid((gid_t)-1, 0, (gid_t)-1) < 0)
                return -1;
        return 0;
}

static pid_t make_process(struct sandbox *box, int *ret_sys)
{
        int into = cgroup_leaf_clone_fd(&box->leaf);
        struct clone_args args = {
                .flags = (box->plan.clone_flags & ~(uint64_t)CLONE_NEWCGROUP) | CLONE_PIDFD,
                .pidfd = (uint64_t)(uintptr_t)&box->pid_fd,
                .exit_signal = SIGCHLD,
        };
        if (into >= 0) {
                args.flags |= CLONE_INTO_CGROUP;
                args.cgroup = (unsigned)into;
        }
        long pid = syscall(SYS_clone3, &args, sizeof args);
        if (pid < 0 && into >= 0 && (errno == EINVAL || errno == E2BIG || errno == EACCES || errno == EBUSY)) {
                /* Before Linux 5.7 there is no CLONE_INTO_CGROUP; cgroup_leaf_enter() does it then. */
                args.flags &= ~CLONE_INTO_CGROUP;
                args.cgroup = 0;
                pid = syscall(SYS_clone3, &args, sizeof args);
        }
        *ret_sys = errno;
        return (pid_t)pid;
}

static int start_process(struct sandbox *box, const int fds[WIRE_FDS_MAX], struct csn_error *err)
{
        int pair[2], sys;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        auto_fd theirs = pair[1];
        box->control = pair[0];
        /* The owner could not look into a folder of ours (a build in somebody's home), so we open it for him. */
        auto_fd runners = box->plan.abilities.rootless ? -1 : open_tree(AT_FDCWD, box->plan.runner_dir, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        box->plan.runner_tree = runners;
        if (become_owner(box) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "take the sandbox's uid for its namespace");
        box->pid = make_process(box, &sys);
        if (box->pid == 0)
                init_main(&box->plan, theirs, fds);
        box->plan.runner_tree = -1;
        if (become_root(box) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "give the sandbox's uid back");
        if (box->pid < 0) {
                char why[sizeof err->text];
                box->pid = 0;
                probe_explain_clone(sys, why, sizeof why);
                return err_set(err, CSN_E_UNSUPPORTED, 0, "%s", why);
        }
        return 0;
}

int sandbox_open(struct sandbox *box, const struct wire_start *start, const struct abilities *abilities,
                 struct cgroup_base *base, const struct uid_range *uids, const char *runner_dir,
                 const int fds[WIRE_FDS_MAX], struct csn_error *err)
{
        sandbox_init(box);
        if (plan_make(start, abilities, runner_dir, &box->plan, err) < 0)
                return -err->code;
        if (take_uid(box, uids, err) < 0 || own_pipes(box, fds, err) < 0)
                return -err->code;
        if (cgroup_leaf_open(base, start->label, &box->plan.cgroup, &box->leaf, err) < 0)
                return -err->code;
        if (start_process(box, fds, err) < 0)
                return -err->code;
        if (cgroup_leaf_enter(&box->leaf, box->pid, err) < 0 || ns_map_ids(box->pid, box->plan.host_uid, err) < 0)
                return -err->code;
        struct init_message go = { .op = INIT_GO };
        if (wire_send(box->control, &go, sizeof go, NULL, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "let process 1 of the sandbox go on");
        return 0;
}

void sandbox_kill(struct sandbox *box)
{
        /*
         * Process 1 alone is enough and leaves no gap: the kernel stops forks in its pid namespace and kills
         * every process there, whatever it does meanwhile.  A loop over cgroup.procs could not do better.
         */
        if (box->pid_fd >= 0)
                syscall(SYS_pidfd_send_signal, box->pid_fd, SIGKILL, NULL, 0);
        cgroup_leaf_kill(&box->leaf);
}

bool sandbox_close(struct sandbox *box)
{
        if (box->pid > 0) {
                siginfo_t info = { 0 };
                if (waitid(P_PID, (id_t)box->pid, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0)
                        return false;
                box->pid = 0;
        }
        fd_close(&box->pid_fd);
        fd_close(&box->control);
        if (!cgroup_leaf_remove(&box->leaf))
                return false;
        fd_close(&box->uid_lock);
        return true;
}
