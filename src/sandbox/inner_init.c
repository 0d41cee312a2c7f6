/*
 * Process 1 of a sandbox: a copy of the outer init, without exec.  Process 1 builds the isolation, waits for a program,
 * confines itself, starts the program, reaps, and reports the exit status to the supervisor.
 *
 * Process 1 may also become the guest of a persistent sandbox, a program of its own (src/guest).  In a sandbox
 * with root the guest has root's uid and capabilities; otherwise the statements below about the uid apply to the
 * guest, too.
 *
 * There are three ways to start a program.  By execve(2), once the program is known.  By an interpreter started
 * ahead, which waits at a socket for the program from process 1 (a worker; docs/protocols/runner-channel.md).  Or
 * by a zygote's child, which joins the sandbox and takes the program from the handoff socket itself; process 1
 * then only reaps.
 *
 * Process 1 has the program's uid, is not dumpable, ignores every signal from inside (pid_namespaces(7)) and dies with
 * the outer init, process 1 of the enclosing pid namespace.  The death of process 1 kills all processes inside.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKER_GO_FD 4

struct inner_init {
        struct plan *plan;
        int control;
        int out, error, channel;   /* the program's descriptors 1, 2 and 3 */
        int handoff;
        int home;
        pid_t program;             /* 0: none yet */
        int go;                    /* socket of a waiting worker, or -1 */
};

static void tell(const struct inner_init *init, const struct inner_init_message *message)
{
        if (wire_send(init->control, message, sizeof *message, NULL, 0) < 0)
                _exit(1);
}

static _Noreturn void fail(const struct inner_init *init, const struct csn_error *err)
{
        struct inner_init_message message = { .op = INNER_INIT_FAILED, .error = *err };
        tell(init, &message);
        _exit(1);
}

static struct {
        char *text;
        size_t len;
} title;

void init_own_title(int argc, char **argv)
{
        /* The kernel lays the arguments out one behind the other. */
        title.text = argv[0];
        title.len = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) - argv[0]);
}

void init_wipe_title(void)
{
        explicit_bzero(title.text, title.len);
        memcpy(title.text, "init", min_u64(title.len, 4));
        prctl(PR_SET_NAME, "init");
}

/* ---- descriptors ---- */

size_t inner_init_fds(const struct plan *plan)
{
        return (size_t)INNER_INIT_FDS + (plan->shape.flags & WIRE_ROOT ? 1 : 0) + plan->shape.volumes_n +
                plan->devices_n;
}

/* Moves the descriptors after the fixed ones into the plan.  mine: address of each; returns their number. */
static size_t take_mounts(struct plan *plan, const int *fds, int **mine)
{
        size_t n = 0;
        plan->lower = -1;
        if (plan->shape.flags & WIRE_ROOT)
                mine[n++] = &plan->lower;
        for (size_t i = 0; i < plan->shape.volumes_n; i++)
                mine[n++] = &plan->volumes[i];
        for (size_t i = 0; i < plan->devices_n; i++)
                mine[n++] = &plan->devices[i];
        for (size_t i = 0; i < n; i++)
                *mine[i] = fds[i];
        return n;
}

static int by_number(const void *a, const void *b)
{
        return *(const int *)a - *(const int *)b;
}

int descriptors_keep(int *fds[], size_t n, struct csn_error *err)
{
        int keep[WIRE_FDS_MAX] = { 0 };
        size_t kept = 0;
        for (size_t i = 0; i < n && kept < ARRAY_LEN(keep); i++) {
                if (*fds[i] < 0)
                        continue;
                keep[kept] = fcntl(*fds[i], F_DUPFD_CLOEXEC, 10);
                if (keep[kept] < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "keep a descriptor");
                *fds[i] = keep[kept++];
        }
        qsort(keep, kept, sizeof keep[0], by_number);
        unsigned from = 0;
        for (size_t i = 0; i <= kept; i++) {
                unsigned to = i < kept ? (unsigned)keep[i] - 1 : ~0U;
                if (from <= to && close_range(from, to, 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "close_range");
                from = to + 2;
        }
        if (open("/dev/null", O_RDWR | O_CLOEXEC) != STDIN_FILENO || dup3(STDIN_FILENO, STDOUT_FILENO, O_CLOEXEC) < 0 ||
            dup3(STDIN_FILENO, STDERR_FILENO, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /dev/null");
        return 0;
}

int descriptors_null(struct csn_error *err)
{
        auto_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0 || dup3(null, STDIN_FILENO, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /dev/null inside");
        return 0;
}

/* ---- the program ---- */

/*
 * The child's side, up to execve.  `in` is standard input or -1, `go` a worker's socket or -1.  All other descriptors
 * are closed but control: control reports a failed exec, and a successful exec closes control.
 */
static int program_enter(const struct inner_init *init, int in, int go, struct csn_error *err)
{
        const int fds[] = { in >= 0 ? in : STDIN_FILENO, init->out, init->error, init->channel, go };
        int n = go >= 0 ? 5 : 4;
        if (setsid() < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "setsid");
        if (in < 0 && descriptors_null(err) < 0)
                return -err->code;
        for (int fd = 0; fd < n; fd++) {
                if (fds[fd] == fd && fcntl(fd, F_SETFD, 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "give the program its descriptor %d", fd);
                if (fds[fd] != fd && dup2(fds[fd], fd) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "give the program its descriptor %d", fd);
        }
        unsigned control = (unsigned)init->control;
        if (close_range((unsigned)n, control - 1, 0) < 0 || close_range(control + 1, ~0U, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "close_range");
        if (chdir(SANDBOX_HOME) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "chdir %s", SANDBOX_HOME);
        /* Our memory is not dumpable; after exec the program's memory is. */
        return limits_set(init->plan, 0, go >= 0 ? LIMITS_EARLY : LIMITS_ALL, err);
}

static _Noreturn void program_main(const struct inner_init *init, const struct wire_program *program, int in, int go)
{
        struct csn_error err = { 0 };
        sigset_t none;
        sigemptyset(&none);
        if (program_enter(init, in, go, &err) < 0)
                fail(init, &err);
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(program->argv[0], program->argv, program->env);
        err_interpreter(&err, program->argv[0]);
        fail(init, &err);
}

static void start(struct inner_init *init, const struct wire_program *program, int in, int go)
{
        struct csn_error err;
        init->program = fork();
        if (init->program == 0)
                program_main(init, program, in, go);
        if (init->program < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "fork the program");
                fail(init, &err);
        }
}

/*
 * The program has our uid, and must neither read our memory nor look at our descriptors.  A zygote's child may,
 * until foreign code is here: setns(2) needs this right.
 */
static void hide(const struct inner_init *init)
{
        struct csn_error err;
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0)
                return;
        err_set(&err, CSN_E_SYSTEM, errno, "prctl PR_SET_DUMPABLE");
        fail(init, &err);
}

/* Runs before process 1 becomes the parent of a program. */
static void become_ancestor(const struct inner_init *init)
{
        struct csn_error err;
        if (apply_child(init->plan, &err) < 0)
                fail(init, &err);
        struct inner_init_message closed = { .op = INNER_INIT_CLOSED, .boundary = init->plan->boundary };
        tell(init, &closed);
}

/* Closes our copies of the program's descriptors: its pipes end with the program. */
static void let_go(struct inner_init *init)
{
        fd_close(&init->out);
        fd_close(&init->error);
        fd_close(&init->channel);
        fd_close(&init->handoff);
        fd_close(&init->home);
        fd_close(&init->plan->modules_dir);
        fd_close(&init->go);
}

static int take_program(const struct inner_init *init, struct arena *arena, struct handoff_taken *ret,
        struct csn_error *err)
{
        const struct handoff_folders folders = { .home = init->home, .modules = init->plan->modules_dir };
        return handoff_take(init->handoff, &folders, arena, ret, err);
}

/* ---- workers ---- */

static void start_worker(struct inner_init *init, struct arena *arena)
{
        struct handoff_taken taken;
        struct csn_error err;
        int pair[2];
        char ready;
        become_ancestor(init);
        hide(init);
        if (take_program(init, arena, &taken, &err) < 0)
                fail(init, &err);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "socketpair for a worker");
                fail(init, &err);
        }
        auto_fd theirs = pair[1];
        init->go = pair[0];
        start(init, &taken.program, taken.in, theirs);
        fd_close(&taken.in);
        fd_close(&theirs);
        if (read(init->go, &ready, 1) != 1 || ready != 'R') {
                err_set(&err, CSN_E_SYSTEM, 0, "%s did not get ready to wait for its program", taken.program.argv[0]);
                fail(init, &err);
        }
        struct inner_init_message confined = { .op = INNER_INIT_CONFINED };
        tell(init, &confined);
}

static void leave(struct inner_init *init)
{
        struct inner_init_message confined = { .op = INNER_INIT_CONFINED };
        struct csn_error err;
        hide(init);
        let_go(init);
        signal(SIGCHLD, SIG_IGN);   /* orphans of the program are reaped by the kernel */
        if (apply_reaper(init->plan, &err) < 0)
                fail(init, &err);
        tell(init, &confined);
}

/* The interpreter and the runner are in the worker's command line already; the worker gets the other arguments. */
static int hand_over(int go, const struct wire_program *program, struct csn_error *err)
{
        struct buf document;
        buf_init(&document, WIRE_MAX);
        size_t from = program->argv_n < 2 ? program->argv_n : 2;
        buf_printf(&document, "%zu%c", program->argv_n - from, 0);
        for (size_t i = from; i < program->argv_n; i++)
                buf_add(&document, program->argv[i], strlen(program->argv[i]) + 1);
        buf_printf(&document, "%zu%c", program->env_n, 0);
        for (size_t i = 0; i < program->env_n; i++)
                buf_add(&document, program->env[i], strlen(program->env[i]) + 1);
        int rc = io_write_all(go, document.bytes, document.len) < 0
                ? err_set(err, CSN_E_SYSTEM, errno, "hand the program over")
                : 0;
        buf_done(&document);
        return rc;
}

/* ---- the guest ---- */

/* No foreign code is here yet.  The supervisor gets no later message: the guest serves the engine alone. */
static _Noreturn void become_guest(struct inner_init *init, const struct wire_limits *limits)
{
        static char *const argv[] = { "init", NULL }, *const env[] = { NULL };
        struct inner_init_message running = { .op = INNER_INIT_RUNNING };
        struct csn_error err;
        become_ancestor(init);
        init->plan->limits = *limits;
        if (limits_set(init->plan, 0, LIMITS_ALL, &err) < 0)
                fail(init, &err);
        tell(init, &running);
        if (dup2(init->handoff, GUEST_SOCKET_FD) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "give the guest its socket");
                fail(init, &err);
        }
        execve(GUEST_PATH, argv, env);
        err_set(&err, CSN_E_SYSTEM, errno, "start the guest, %s", GUEST_PATH);
        fail(init, &err);
}

/* ---- run, reap, main loop ---- */

static void run(struct inner_init *init, const struct wire_limits *limits, struct arena *arena)
{
        struct handoff_taken taken;
        struct csn_error err;
        struct inner_init_message running = { .op = INNER_INIT_RUNNING };
        if (!init->program)
                become_ancestor(init);
        hide(init);
        init->plan->limits = *limits;
        if (take_program(init, arena, &taken, &err) < 0)
                fail(init, &err);
        if (init->program && limits_set(init->plan, init->program, LIMITS_LATE, &err) < 0)
                fail(init, &err);
        tell(init, &running);
        if (!init->program)
                start(init, &taken.program, taken.in, -1);
        else if (hand_over(init->go, &taken.program, &err) < 0)
                fail(init, &err);
        fd_close(&taken.in);
        let_go(init);
}

/* Exits when no other process is left inside. */
static _Noreturn void reap(const struct inner_init *init)
{
        for (;;) {
                int status;
                pid_t pid = waitpid(-1, &status, __WALL);
                if (pid == init->program) {
                        siginfo_t info = { 0 };
                        struct inner_init_message message = { .op = INNER_INIT_EXITED, .status = status };
                        message.left =
                                !(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 && errno == ECHILD);
                        tell(init, &message);
                }
                if (pid < 0 && errno == ECHILD)
                        _exit(0);
        }
}

static void receive(const struct inner_init *init, struct inner_init_message *message)
{
        ssize_t n;
        do
                n = recv(init->control, message, sizeof *message, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof *message)
                _exit(1);   /* the supervisor is gone */
}

int inner_init_go(int sock, int *ret_procs_fds, struct csn_error *err)
{
        struct inner_init_message go;
        int procs_fds[WIRE_FDS_MAX];
        size_t n;
        if (wire_receive_small(sock, &go, sizeof go, procs_fds, &n) != (ssize_t)sizeof go || go.op != INNER_INIT_GO)
                _exit(1);   /* the supervisor is gone */
        int rc = cgroup_join_self(procs_fds, n, err);
        for (size_t i = 0; i < n; i++)
                fd_close(&procs_fds[i]);
        *ret_procs_fds = rc == 0 ? (int)n : 0;
        return rc;
}

static int prepare(struct inner_init *init, int procs_fds, struct csn_error *err)
{
        if (apply_isolation(init->plan, err) < 0)
                return -err->code;
        init->home = open(SANDBOX_HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (init->home < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s", SANDBOX_HOME);
        struct inner_init_message ready = {
                .op = INNER_INIT_READY, .boundary = init->plan->boundary, .procs_fds = procs_fds
        };
        int fds[3] = { init->home };
        size_t n = 1;
        if (init->plan->proxy >= 0)
                fds[n++] = init->plan->proxy;
        if (init->plan->tool_socket >= 0)
                fds[n++] = init->plan->tool_socket;
        if (wire_send(init->control, &ready, sizeof ready, fds, n) < 0)
                _exit(1);
        /* No process inside may accept on these sockets, nor change how the engine accepts. */
        fd_close(&init->plan->proxy);
        fd_close(&init->plan->tool_socket);
        return 0;
}

_Noreturn void inner_init_main(struct plan *plan, int fds[INNER_INIT_FDS_MAX])
{
        struct inner_init init = { .plan = plan,
                .control = fds[0],
                .out = fds[1],
                .error = fds[2],
                .channel = fds[3],
                .handoff = fds[4],
                .home = -1,
                .go = -1 };
        int *mine[INNER_INIT_FDS_MAX] = { &init.control, &init.out, &init.error, &init.channel, &init.handoff };
        struct inner_init_message message;
        struct csn_error err = { 0 };
        struct arena arena = { 0 };
        int procs_fds = 0;

        size_t mine_n = INNER_INIT_FDS + take_mounts(plan, fds + INNER_INIT_FDS, mine + INNER_INIT_FDS);
        init_wipe_title();
        prctl(PR_SET_NAME, "init");
        if (descriptors_keep(mine, mine_n, &err) < 0)
                fail(&init, &err);
        if (inner_init_go(init.control, &procs_fds, &err) < 0 || prepare(&init, procs_fds, &err) < 0) {
                err_refused(&err);
                fail(&init, &err);
        }
        for (;;) {
                receive(&init, &message);
                switch (message.op) {
                case INNER_INIT_WORKER:
                        start_worker(&init, &arena);
                        break;
                case INNER_INIT_RELEASE:
                        leave(&init);
                        break;
                case INNER_INIT_RUN:
                        run(&init, &message.limits, &arena);
                        reap(&init);
                case INNER_INIT_GUEST:
                        become_guest(&init, &message.limits);
                case INNER_INIT_END:
                        reap(&init);
                default:
                        _exit(1);
                }
        }
}
