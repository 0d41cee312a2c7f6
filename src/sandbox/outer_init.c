/*
 * The outer init: process 1 of a user, mount, pid, net, ipc and uts namespace, a copy of the supervisor without
 * exec.
 *
 * The outer init builds the root file system shared by all sandboxes once.  Process 1 of each sandbox is its child and
 * gets a copy of its mounts, locked because the child lives in another user namespace.  Zygotes are children of the
 * outer init, outside of all sandboxes.  The outer init is also the parent of the zygotes' children
 * (CLONE_PARENT), so the death of a zygote does not end its forks, and exit statuses come from a process that
 * never ran foreign code.
 *
 * The outer init dies with the supervisor, and the kernel then kills all its descendants.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define ZYGOTE_NAMESPACES (CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS)
#define ZYGOTE_UID 1

struct outer_init_state {
        int sock;
        int signals;
        int errors;                /* standard error of the supervisor, for zygotes */
        bool rootless;
        struct nets nets;
};

static pid_t clone_into(uint64_t namespaces, int *ret_pid_fd)
{
        struct clone_args args = {
                .flags = namespaces | (ret_pid_fd ? CLONE_PIDFD : 0),
                .pidfd = (uint64_t)(uintptr_t)ret_pid_fd,
                .exit_signal = SIGCHLD,
        };
        return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static void answer(const struct outer_init_state *outer_init_state, const struct outer_init_message *message, int fd)
{
        if (wire_send(outer_init_state->sock, message, sizeof *message, &fd, fd >= 0) < 0)
                _exit(1);   /* the supervisor is gone */
}

/* ---- sandboxes ---- */

/*
 * A user namespace belongs to its creator's effective uid, and resources used inside count against the owner, too
 * (kernel/ucount.c): so each is made with the sandbox' own id as effective id.
 */
static int become_owner(const struct outer_init_state *outer_init_state, const struct plan *plan)
{
        /* The owner of a namespace enters it without a capability: so a zygote reaches the sandboxes of its domain. */
        uint32_t uid = plan->shape.domain ? ZYGOTE_UID : plan->outer_init_uid;
        if (outer_init_state->rootless)
                return 0;
        return setresgid((gid_t)-1, uid, (gid_t)-1) < 0 || setresuid((uid_t)-1, uid, (uid_t)-1) < 0 ? -1 : 0;
}

static int become_outer_init(const struct outer_init_state *outer_init_state)
{
        if (outer_init_state->rootless)
                return 0;
        return setresuid((uid_t)-1, 0, (uid_t)-1) < 0 || setresgid((gid_t)-1, 0, (gid_t)-1) < 0 ? -1 : 0;
}

/* The sandbox waits for GO until the supervisor knows its pid.  Without maps its first step fails with an error. */
static void map_outside(const struct plan *plan, pid_t pid)
{
        struct csn_error err;
        int rc = plan->shape.flags & WIRE_ROOT ? ns_map_block(pid, plan->outer_init_uid, &err)
                                               : ns_map_user(pid, plan->outer_init_uid, &err);
        if (rc < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

static pid_t make_bare(struct outer_init_state *outer_init_state, struct plan *plan, int fds[WIRE_FDS_MAX],
        int *ret_pid_fd, struct csn_error *err)
{
        mount_look();
        struct net *net = nets_enter(&outer_init_state->nets, err);
        int rc = net ? 0 : -err->code;
        if (rc == 0 && become_owner(outer_init_state, plan) < 0)
                rc = err_set(err, CSN_E_SYSTEM, errno, "take the sandbox' uid for its namespace");
        bool mapped = ns_is_mapped_outside(plan);
        /* The map files of a dumpable child belong to its uid, so we may write; a change of ids clears both flags. */
        if (rc == 0 && mapped && prctl(PR_SET_DUMPABLE, 1) < 0)
                rc = err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        uint64_t made = plan->clone_flags & ~(uint64_t)(CLONE_NEWCGROUP | CLONE_NEWNET);
        pid_t pid = rc < 0 ? -1 : clone_into(made, ret_pid_fd);
        int sys = errno;
        if (pid == 0) {
                plan->boundary.namespaces = made | CLONE_NEWNET;   /* entered above */
                inner_init_main(plan, fds);
        }
        if (become_outer_init(outer_init_state) < 0 || nets_leave(&outer_init_state->nets) < 0)
                _exit(1);
        if (pid < 0 && net)
                nets_drop(&outer_init_state->nets, net);
        if (rc < 0)
                return err_refused(err);
        if (pid < 0) {
                char why[sizeof err->text];
                probe_explain_clone(sys, why, sizeof why);
                return err_set(err, CSN_E_UNSUPPORTED, 0, "%s", why);
        }
        nets_give(&outer_init_state->nets, net, pid);
        if (mapped)
                map_outside(plan, pid);
        return pid;
}

/* ---- zygotes ---- */

static _Noreturn void zygote_main(const struct outer_init_state *outer_init_state, struct plan *plan, int control)
{
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX], errors = outer_init_state->errors;
        int *mine[] = { &control, &errors };
        size_t fds_n;
        struct wire_program program;
        struct arena arena = { 0 };
        struct csn_error err = { 0 };
        sigset_t none;
        sigemptyset(&none);
        ssize_t len = wire_receive(control, bytes, fds, &fds_n);
        if (len <= 0)
                _exit(1);
        if (wire_get_program(bytes, (size_t)len, &arena, &program, &err) == 0 &&
                descriptors_keep(mine, ARRAY_LEN(mine), &err) == 0 && mount_zygote(&plan->shape, &err) == 0 &&
                limits_set(plan, 0, LIMITS_EARLY, &err) == 0 &&
                privs_zygote(outer_init_state->rootless ? SANDBOX_UID : ZYGOTE_UID, plan->shape.domain, &err) == 0 &&
                seccomp_zygote(&err) == 0) {
                for (int sig = 1; sig < NSIG; sig++)
                        signal(sig, SIG_DFL);
                sigprocmask(SIG_SETMASK, &none, NULL);
                if (dup2(errors, STDERR_FILENO) >= 0 && fcntl(STDIN_FILENO, F_SETFD, 0) == 0 &&
                        fcntl(STDOUT_FILENO, F_SETFD, 0) == 0 && chdir(SANDBOX_HOME) == 0 &&
                        dup2(control, ZYGOTE_SOCKET_FD) >= 0)
                        execve(program.argv[0], program.argv, program.env);
                err_interpreter(&err, program.argv[0]);
        }
        struct zygote_message failed = { .op = ZYGOTE_FAILED, .error = err };
        wire_send(control, &failed, sizeof failed, NULL, 0);
        _exit(1);
}

static pid_t make_zygote(const struct outer_init_state *outer_init_state, struct plan *plan, int control,
        int *ret_pid_fd, struct csn_error *err)
{
        pid_t pid = clone_into(ZYGOTE_NAMESPACES, ret_pid_fd);
        if (pid == 0)
                zygote_main(outer_init_state, plan, control);
        return pid < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make the process of a zygote") : pid;
}

/* ---- loop ---- */

static void serve(struct outer_init_state *outer_init_state)
{
        struct outer_init_message message;
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX], pid_fd = -1;
        size_t fds_n;
        struct csn_error err = { 0 };
        ssize_t len = wire_receive(outer_init_state->sock, bytes, fds, &fds_n);
        if (len < 0 && (errno == EMFILE || errno == ENFILE || errno == EPROTO))
                return;   /* the supervisor's own deadline ends the request */
        if (len != (ssize_t)sizeof message)
                _exit(0);
        memcpy(&message, bytes, sizeof message);
        pid_t pid = -1;
        if (message.op == OUTER_INIT_BARE && fds_n == inner_init_fds(&message.plan))
                pid = make_bare(outer_init_state, &message.plan, fds, &pid_fd, &err);
        else if (message.op == OUTER_INIT_ZYGOTE && fds_n == 1)
                pid = make_zygote(outer_init_state, &message.plan, fds[0], &pid_fd, &err);
        else
                _exit(1);
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
        struct outer_init_message made = {
                .op = pid > 0 ? OUTER_INIT_MADE : OUTER_INIT_FAILED, .id = message.id, .pid = pid
        };
        if (pid < 0)
                made.error = err;
        answer(outer_init_state, &made, pid_fd);
        fd_close(&pid_fd);
}

static void reap(struct outer_init_state *outer_init_state)
{
        struct signalfd_siginfo info;
        while (read(outer_init_state->signals, &info, sizeof info) == (ssize_t)sizeof info)
                ;
        for (;;) {
                struct rusage usage;
                int status;
                pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &usage);
                if (pid <= 0)
                        return;
                struct outer_init_message died = {
                        .op = OUTER_INIT_DIED,
                        .pid = pid,
                        .status = status,
                        .cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                                  (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
                        .memory_peak = (uint64_t)usage.ru_maxrss * KIB,
                };
                answer(outer_init_state, &died, -1);
                nets_take_back(&outer_init_state->nets, pid);
        }
}

static int open_signals(int *ret, struct csn_error *err)
{
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGCHLD);
        *ret = sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -1 : signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return *ret < 0 ? err_set(err, CSN_E_SYSTEM, errno, "signalfd") : 0;
}

static int open_dir(const char *path)
{
        return path[0] ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

void shared_dirs_open(const struct shared_folders *folders, struct shared_trees *ret)
{
        *ret = (struct shared_trees){ .runners = open_dir(folders->runner_dir),
                .layers = open_dir(folders->layers_dir),
                .images = open_dir(folders->images_dir) };
}

void shared_dirs_close(struct shared_trees *dirs)
{
        fd_close(&dirs->runners);
        fd_close(&dirs->layers);
        fd_close(&dirs->images);
}

/* Without the runners errno has the reason. */
static struct shared_trees open_shared(const struct shared_trees *dirs)
{
        const unsigned flags = AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
        struct shared_trees trees = { .layers = dirs->layers < 0 ? -1 : open_tree(dirs->layers, "", flags),
                .images = dirs->images < 0 ? -1 : open_tree(dirs->images, "", flags) };
        trees.runners = open_tree(dirs->runners, "", flags);
        errno = dirs->runners < 0 ? ENOENT : errno;
        return trees;
}

/* In our own mount namespace: only there may a process without privileges clone mounts. */
static struct shared_trees open_shared_here(const struct shared_folders *folders)
{
        struct shared_trees dirs, trees;
        shared_dirs_open(folders, &dirs);
        trees = open_shared(&dirs);
        int sys = errno;
        shared_dirs_close(&dirs);
        errno = sys;
        return trees;
}

static int settle(struct outer_init_state *outer_init_state, struct shared_trees *trees,
        const struct shared_folders *folders, struct csn_error *err)
{
        uint32_t id = outer_init_state->rootless ? SANDBOX_UID : 0;
        if (outer_init_state->rootless)
                *trees = open_shared_here(folders);
        if (trees->runners < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of the language runners, %s",
                        folders->runner_dir);
        if (setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "take the outer init's ids");
        /* A change of credentials clears PR_SET_PDEATHSIG, so the call follows the last change. */
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_PDEATHSIG");
        umask(022);
        int rc = mount_template(trees, err);
        fd_close(&trees->runners);
        fd_close(&trees->layers);
        fd_close(&trees->images);
        if (rc < 0)
                return rc;
        return open_signals(&outer_init_state->signals, err);
}

static _Noreturn void outer_init_main(bool rootless, int sock, struct shared_trees trees,
        const struct shared_folders *folders)
{
        struct outer_init_state outer_init_state = {
                .sock = sock, .signals = -1, .errors = STDERR_FILENO, .rootless = rootless
        };
        nets_init(&outer_init_state.nets);
        int *mine[] = { &outer_init_state.sock, &outer_init_state.errors, &trees.runners, &trees.layers,
                &trees.images };
        struct csn_error err = { 0 };
        char go;
        prctl(PR_SET_NAME, "outer-init");
        loop_set_usual_scheduling();
        int rc = descriptors_keep(mine, ARRAY_LEN(mine), &err);
        if (recv(outer_init_state.sock, &go, 1, 0) != 1)
                _exit(1);
        if (rc == 0)
                rc = settle(&outer_init_state, &trees, folders, &err);
        if (rc == 0)
                rc = seccomp_outer_init(&err);
        struct outer_init_message ready = { .op = rc < 0 ? OUTER_INIT_FAILED : OUTER_INIT_READY };
        if (rc < 0) {
                err_refused(&err);
                ready.error = err;
        }
        answer(&outer_init_state, &ready, -1);
        if (rc < 0)
                _exit(1);
        init_wipe_title();
        prctl(PR_SET_NAME, "outer-init");
        for (;;) {
                struct pollfd fds[] = { { .fd = outer_init_state.signals, .events = POLLIN },
                        { .fd = outer_init_state.sock, .events = POLLIN } };
                if (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno != EINTR)
                        _exit(1);
                /* Deaths first: a client waits for the result of a dead sandbox, and none yet for a new sandbox. */
                if (fds[0].revents)
                        reap(&outer_init_state);
                if (fds[1].revents)
                        serve(&outer_init_state);
        }
}

/* ---- the parent's side ---- */

int outer_init_await(const struct outer_init *outer_init, struct csn_error *err)
{
        struct outer_init_message message;
        ssize_t n;
        do
                n = recv(outer_init->sock, &message, sizeof message, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof message)
                return err_set(err, CSN_E_SYSTEM, 0, "the outer init ended while it was set up");
        if (message.op == OUTER_INIT_READY)
                return 0;
        *err = message.error;
        return -err->code;
}

int outer_init_start(struct outer_init *outer_init, const struct uid_range *uids, bool rootless,
        const struct shared_folders *folders, const struct shared_trees *dirs, struct csn_error *err)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        auto_fd theirs = pair[1];
        outer_init->sock = pair[0];
        /* The supervisor opens its folders: the outer init's uid may lack access to a build in a home directory. */
        struct shared_trees trees = { -1, -1, -1 };
        if (!rootless)
                trees = open_shared(dirs);
        auto_fd runners = trees.runners, layers = trees.layers, images = trees.images;
        if (!rootless &&
                (setresgid((gid_t)-1, uids->first, (gid_t)-1) < 0 || setresuid((uid_t)-1, uids->first, (uid_t)-1) < 0))
                return err_set(err, CSN_E_UNSUPPORTED, errno,
                        "root here has no uid %u to give to sandboxes (engine.uid_first): start it outside of this user "
                        "namespace, or as an ordinary user",
                        uids->first);
        outer_init->pid = clone_into(NAMESPACES, NULL);
        int sys = errno;
        if (outer_init->pid == 0)
                outer_init_main(rootless, theirs,
                        (struct shared_trees){ .runners = runners, .layers = layers, .images = images }, folders);
        if (!rootless && (setresuid((uid_t)-1, 0, (uid_t)-1) < 0 || setresgid((gid_t)-1, 0, (gid_t)-1) < 0))
                return err_set(err, CSN_E_SYSTEM, errno, "give the outer init's uid back");
        if (outer_init->pid < 0) {
                char why[sizeof err->text];
                outer_init->pid = 0;
                probe_explain_clone(sys, why, sizeof why);
                return err_set(err, CSN_E_UNSUPPORTED, 0, "%s", why);
        }
        fd_close(&theirs);
        if (ns_map_outer_init(outer_init->pid, uids, rootless, err) < 0)
                return -err->code;
        outer_init->rootless = rootless;
        if (send(outer_init->sock, "", 1, MSG_NOSIGNAL) != 1)
                return err_set(err, CSN_E_SYSTEM, errno, "let the outer init go on");
        return 0;
}

void outer_init_stop(struct outer_init *outer_init)
{
        if (outer_init->pid > 0) {
                kill(outer_init->pid, SIGKILL);
                while (waitpid(outer_init->pid, NULL, __WALL) < 0 && errno == EINTR)
                        ;
        }
        outer_init->pid = 0;
        fd_close(&outer_init->sock);
}
