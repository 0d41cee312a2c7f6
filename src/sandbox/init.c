/*
 * Process 1 of a sandbox: a copy of the supervisor, without exec, that applies the layers to itself, takes
 * the input files, starts the program, reaps, and tells the supervisor how the program ended.
 *
 * It has the program's uid but is not dumpable, ignores every signal from inside (pid_namespaces(7)) and
 * dies with the supervisor (PR_SET_PDEATHSIG), and when it dies the kernel kills everything inside.
 */
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

struct init {
        struct plan *plan;
        int control;
        int fds[WIRE_FDS_MAX];     /* the program's four, and the files socket or -1 */
        int home;
};

static int tell(int control, const struct init_message *message, const int *fds, size_t fds_n)
{
        return wire_send(control, message, sizeof *message, fds, fds_n);
}

static _Noreturn void fail(int control, const struct csn_error *err)
{
        struct init_message message = { .op = INIT_FAILED, .error = *err };
        tell(control, &message, NULL, 0);   /* the supervisor sees our end in any case */
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

static void wipe_title(void)
{
        explicit_bzero(title.text, title.len);
        memcpy(title.text, "init", min_u64(title.len, 4));
        prctl(PR_SET_NAME, "init");
}

/* ---- descriptors ---- */

static int by_number(const void *a, const void *b)
{
        return *(const int *)a - *(const int *)b;
}

/*
 * Keep control and what the engine gave us and close all else: whatever the supervisor had open for other
 * sandboxes must not be here for a moment longer than needed.  0, 1 and 2 become /dev/null, so that no
 * later descriptor can be taken for one of them.
 */
static int keep_descriptors(struct init *init, struct csn_error *err)
{
        int *mine[2 + WIRE_FDS_MAX] = { &init->control, &init->plan->runner_tree };
        int keep[ARRAY_LEN(mine)];
        size_t n = 0;
        for (size_t i = 0; i < WIRE_FDS_MAX; i++)
                mine[2 + i] = &init->fds[i];
        for (size_t i = 0; i < ARRAY_LEN(mine); i++) {
                if (*mine[i] < 0)
                        continue;
                keep[n] = fcntl(*mine[i], F_DUPFD_CLOEXEC, 10);
                if (keep[n] < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "keep a descriptor");
                *mine[i] = keep[n++];
        }
        qsort(keep, n, sizeof keep[0], by_number);
        unsigned from = 0;
        for (size_t i = 0; i <= n; i++) {
                unsigned to = i < n ? (unsigned)keep[i] - 1 : ~0U;
                if (from <= to && close_range(from, to, 0) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "close_range");
                from = to + 2;
        }
        for (int fd = 0; fd < 3; fd++)
                if (open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
                        return err_set(err, CSN_E_SYSTEM, errno, "open /dev/null");
        return 0;
}

/* ---- input files ---- */

/* The folder of a name below the home, made if need be; *ret_base is the last part of the name. */
static int open_parent(int home, char *name, const char **ret_base, struct csn_error *err)
{
        auto_fd dir = fcntl(home, F_DUPFD_CLOEXEC, 10);
        char *part = name;
        for (char *slash = strchr(part, '/'); slash && dir >= 0; slash = strchr(part, '/')) {
                *slash = 0;
                if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
                        return err_set(err, CSN_E_SYSTEM, errno, "make the folder %s", part);
                int next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                fd_close(&dir);
                dir = next;
                part = slash + 1;
        }
        if (dir < 0 && (errno == ENOTDIR || errno == ELOOP))
                return err_field(err, "/files", "the name of one input file is a folder in the name of another (%s)", part);
        if (dir < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of %s", part);
        *ret_base = part;
        return take_fd(&dir);
}

static int copy_content(int from, int to, struct csn_error *err)
{
        off_t offset = 0;
        for (;;) {
                ssize_t n = sendfile(to, from, &offset, 16 * MIB);
                if (n == 0)
                        return 0;
                if (n < 0 && errno == ENOSPC)
                        return err_set(err, CSN_E_INPUT, 0, "the input files do not fit in the home directory; raise the disk "
                                                            "limit (--disk)");
                if (n < 0 && errno != EINTR)
                        return err_set(err, CSN_E_SYSTEM, errno, "copy an input file");
        }
}

static int put_file(int home, struct wire_file *file, int source, struct csn_error *err)
{
        const char *base = file->name;
        struct stat st;
        auto_fd dir = open_parent(home, file->name, &base, err);
        if (dir < 0)
                return dir;
        auto_fd fd = openat(dir, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
                return err_field(err, "files", "two input files have the name %s", base);
        if (fd < 0 && errno == ENOSPC)
                return err_field(err, "files", "more input files than the limit of files allows (--files-max)");
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the input file %s", base);
        if (copy_content(source, fd, err) < 0)
                return -err->code;
        if (fchmod(fd, (mode_t)file->mode) < 0 || fstat(source, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "finish the input file %s", base);
        struct timespec times[2] = { st.st_mtim, st.st_mtim };
        if (futimens(fd, times) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set the time of the input file %s", base);
        return 0;
}

static int take_file(struct init *init, struct csn_error *err)
{
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct wire_file file;
        struct arena arena = { 0 };
        ssize_t len = wire_receive(init->fds[WIRE_FILES], bytes, fds, &fds_n);
        if (len <= 0)
                _exit(1);   /* the engine is gone */
        auto_fd source = fds[0];
        for (size_t i = 1; i < fds_n; i++)
                fd_close(&fds[i]);
        int rc = fds_n == 1 ? wire_get_file(bytes, (size_t)len, &arena, &file, err)
                            : err_set(err, CSN_E_PROTOCOL, 0, "an input file without its descriptor");
        if (rc == 0)
                rc = put_file(init->home, &file, source, err);
        arena_done(&arena);
        return rc;
}

/* ---- the program ---- */

static int program_enter(const struct init *init, struct csn_error *err)
{
        if (setsid() < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "setsid");
        for (int fd = 0; fd < WIRE_STDIO; fd++)
                if (dup2(init->fds[fd], fd) < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "give the program its descriptor %d", fd);
        /* All but control, which tells a failed exec and closes itself by one that works. */
        unsigned control = (unsigned)init->control;
        if (close_range(WIRE_STDIO, control - 1, 0) < 0 || close_range(control + 1, ~0U, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "close_range");
        if (chdir(SANDBOX_HOME) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "chdir %s", SANDBOX_HOME);
        /* Ours is not dumpable; exec makes the program's own memory its own again. */
        return limits_child(init->plan, err);
}

static _Noreturn void program_main(const struct init *init)
{
        const struct wire_start *start = &init->plan->start;
        struct csn_error err = { 0 };
        sigset_t none;
        sigemptyset(&none);
        if (program_enter(init, &err) < 0)
                fail(init->control, &err);
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(start->argv[0], start->argv, start->env);
        err_set(&err, CSN_E_UNSUPPORTED, errno, "start %s inside the sandbox (is the interpreter installed on this host, "
                                                "below /usr?)", start->argv[0]);
        fail(init->control, &err);
}

static _Noreturn void reap(const struct init *init, pid_t program)
{
        for (;;) {
                int status;
                pid_t pid = waitpid(-1, &status, __WALL);
                if (pid == program) {
                        struct init_message message = { .op = INIT_EXITED, .status = status };
                        if (tell(init->control, &message, NULL, 0) < 0)
                                _exit(1);
                }
                if (pid < 0 && errno == ECHILD)
                        _exit(0);
        }
}

/* ---- in order ---- */

static void wait_for_go(int control)
{
        struct init_message message;
        ssize_t n;
        do
                n = recv(control, &message, sizeof message, 0);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t)sizeof message || message.op != INIT_GO)
                _exit(1);
}

/* Credentials change while the layers go on, and each change forgets it; so it is set after the last one. */
static int die_with_parent(struct csn_error *err)
{
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "prctl PR_SET_PDEATHSIG");
        return 0;
}

static int prepare(struct init *init, struct csn_error *err)
{
        if (apply_child(init->plan, err) < 0 || die_with_parent(err) < 0)
                return -err->code;
        init->home = open(SANDBOX_HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (init->home < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open %s", SANDBOX_HOME);
        struct init_message ready = { .op = INIT_READY };
        const int fds[] = { init->home, init->plan->proxy };
        if (tell(init->control, &ready, fds, init->plan->proxy >= 0 ? 2 : 1) < 0)
                _exit(1);
        fd_close(&init->plan->proxy);
        for (uint64_t i = 0; i < init->plan->start.files_n; i++)
                if (take_file(init, err) < 0)
                        return -err->code;
        fd_close(&init->fds[WIRE_FILES]);
        fd_close(&init->plan->runner_tree);
        fd_close(&init->home);
        return 0;
}

_Noreturn void init_main(struct plan *plan, int control, const int fds[WIRE_FDS_MAX])
{
        struct init init = { .plan = plan, .control = control, .home = -1 };
        struct csn_error err = { 0 };
        memcpy(init.fds, fds, sizeof init.fds);

        wipe_title();
        if (keep_descriptors(&init, &err) < 0)
                fail(init.control, &err);
        wait_for_go(init.control);
        if (prepare(&init, &err) < 0)
                fail(init.control, &err);

        struct init_message running = { .op = INIT_RUNNING, .boundary = plan->boundary };
        if (tell(init.control, &running, NULL, 0) < 0)
                _exit(1);
        pid_t program = fork();
        if (program == 0)
                program_main(&init);
        if (program < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "fork the program");
                fail(init.control, &err);
        }
        for (int fd = 0; fd < WIRE_FDS_MAX; fd++)
                fd_close(&init.fds[fd]);
        reap(&init, program);
}
