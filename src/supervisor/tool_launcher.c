/*
 * The launcher: starts the programs of the administrator's tools for an engine without the right to do so.
 *
 * An MCP server or a command is no tenant's code, but reads input from tenants' code.  So the program gets the access
 * of its configuration and nothing of the engine's: a user of its own, no capability and no way to gain any, files
 * and network as in the table.  The program lives in a pid namespace, whose process 1 is ours, the minder: when the
 * engine's end of the control socket closes, for any reason, no process of the program is left, however it forked.
 * /proc shows only the processes of this namespace.
 *
 *   launcher   reads the table; for each request a clone into a pid namespace (without root also a user namespace)
 *   minder     process 1 of the namespace: starts the program, reaps, reports its status, ends with the engine
 *   program    gives up rights, then execve(2)
 */
#include "supervisor/supervisor.h"

#include "wire/tool_launcher.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define TERM_MS 1000                       /* between SIGTERM and the end of the namespace */
#define DESCRIPTORS_MAX 4096
#define FIRST_FD 16                        /* above the descriptors of a request */

struct table {
        char *bytes;
        struct arena arena;
        struct launch_program *programs;
        size_t n;
        struct launch_values values;       /* of the current request */
};

/* ---- the program ---- */

static int set_limit(int what, uint64_t value, struct csn_error *err)
{
        const struct rlimit limit = { value, value };
        return setrlimit((__rlimit_resource_t)what, &limit) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "set a limit") : 0;
}

static int set_limits(const struct launch_program *program, struct csn_error *err)
{
        int rc = set_limit(RLIMIT_CORE, 0, err);
        if (rc == 0 && program->memory_bytes)
                rc = set_limit(RLIMIT_DATA, program->memory_bytes, err);
        if (rc == 0 && program->cpu_s)
                rc = set_limit(RLIMIT_CPU, program->cpu_s, err);
        /* RLIMIT_NPROC counts per uid, so it is useless for a tool under the engine's uid. */
        if (rc == 0 && program->processes && program->uid != geteuid())
                rc = set_limit(RLIMIT_NPROC, program->processes, err);
        return rc == 0 ? set_limit(RLIMIT_NOFILE, DESCRIPTORS_MAX, err) : rc;
}

/* Allows the program's own files, and system folders of programs, libraries and their data; not the host's /proc. */
static int make_isolation(const struct launch_program *program, bool own_proc, int *ret_fd, struct csn_error *err)
{
        static const struct landlock_place usual[] = {
                { "/usr", LANDLOCK_RUN },
                { "/lib", LANDLOCK_RUN },
                { "/lib64", LANDLOCK_RUN },
                { "/bin", LANDLOCK_RUN },
                { "/sbin", LANDLOCK_RUN },
                { "/dev/null", LANDLOCK_WRITE },
                { "/dev/zero", LANDLOCK_READ },
                { "/dev/urandom", LANDLOCK_READ },
                { "/dev/random", LANDLOCK_READ },
                /* Configuration of libraries; the rest of /etc is private to the host. */
                { "/etc/alternatives", LANDLOCK_READ },
                { "/etc/ca-certificates", LANDLOCK_READ },
                { "/etc/gai.conf", LANDLOCK_READ },
                { "/etc/group", LANDLOCK_READ },
                { "/etc/host.conf", LANDLOCK_READ },
                { "/etc/hosts", LANDLOCK_READ },
                { "/etc/ld.so.cache", LANDLOCK_READ },
                { "/etc/ld.so.conf", LANDLOCK_READ },
                { "/etc/ld.so.conf.d", LANDLOCK_READ },
                { "/etc/locale.alias", LANDLOCK_READ },
                { "/etc/localtime", LANDLOCK_READ },
                { "/etc/mime.types", LANDLOCK_READ },
                { "/etc/nsswitch.conf", LANDLOCK_READ },
                { "/etc/passwd", LANDLOCK_READ },
                { "/etc/pki", LANDLOCK_READ },
                { "/etc/protocols", LANDLOCK_READ },
                { "/etc/resolv.conf", LANDLOCK_READ },
                { "/etc/services", LANDLOCK_READ },
                { "/etc/ssl/certs", LANDLOCK_READ },
                { "/etc/ssl/openssl.cnf", LANDLOCK_READ },
                { "/etc/timezone", LANDLOCK_READ },
        };
        struct landlock_place places[ARRAY_LEN(usual) + 1 + 2 * LAUNCH_TEXTS_MAX];
        unsigned abi;
        size_t n = ARRAY_LEN(usual);
        memcpy(places, usual, sizeof usual);
        if (own_proc)
                places[n++] = (struct landlock_place){ "/proc", LANDLOCK_READ };
        for (size_t i = 0; i < program->read.n; i++)
                places[n++] = (struct landlock_place){ program->read.texts[i], LANDLOCK_RUN };
        for (size_t i = 0; i < program->write.n; i++)
                places[n++] = (struct landlock_place){ program->write.texts[i], LANDLOCK_WRITE };
        if (landlock_make(places, n, ret_fd, &abi, err) < 0)
                return -err->code;
        return abi ? 0
                   : err_set(err, CSN_E_UNSUPPORTED, 0,
                             "files cannot be confined, for this kernel has no Landlock; see caisson doctor");
}

static int become_user(const struct launch_program *program, bool privileged, struct csn_error *err)
{
        if (privileged && (setgroups(0, NULL) < 0 || setresgid(program->gid, program->gid, program->gid) < 0))
                return err_set(err, CSN_E_SYSTEM, errno, "become group %u", program->gid);
        if (privs_bound(err) < 0)
                return -err->code;
        if (privileged && setresuid(program->uid, program->uid, program->uid) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "become user %u", program->uid);
        return privs_drop(err);
}

static int give_up(const struct launch_program *program, bool privileged, bool own_proc, struct csn_error *err)
{
        int isolation = -1;
        sigset_t none;
        sigemptyset(&none);
        if (!(program->flags & LAUNCH_NETWORK) && unshare(CLONE_NEWNET) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "take the network away");
        if (set_limits(program, err) < 0 ||
                (program->flags & LAUNCH_ISOLATION && make_isolation(program, own_proc, &isolation, err) < 0) ||
                become_user(program, privileged, err) < 0 || landlock_enter(isolation, err) < 0)
                return -err->code;
        if (chdir(program->folder) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "go to the folder %.300s", program->folder);
        umask(022);
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        return sigprocmask(SIG_SETMASK, &none, NULL) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "sigprocmask") : 0;
}

/* An error goes to the standard error of the program. */
static _Noreturn void become_program(const struct launch_program *program, bool privileged, bool own_proc, char **argv,
        const int fds[LAUNCH_FDS])
{
        struct csn_error err = { 0 };
        char **env = program->env.texts;
        setsid();
        for (int i = LAUNCH_STDIN; i <= LAUNCH_STDERR; i++)
                if (dup2(fds[i], i) < 0)
                        _exit(126);
        close_range(LAUNCH_CONTROL, ~0U, 0);
        if (give_up(program, privileged, own_proc, &err) == 0) {
                environ = env;
                execvp(argv[0], argv);
                err_set(&err, CSN_E_SYSTEM, errno, "start %.300s", argv[0]);
        }
        dprintf(STDERR_FILENO, LAUNCH_PROBLEM "%s\n", err.text);
        _exit(LAUNCH_NOT_STARTED);
}

/* ---- the minder ---- */

/* Without root the user namespace has one user, mapped to the same uid. */
static int map_self(uint32_t uid, uint32_t gid)
{
        char text[64];
        snprintf(text, sizeof text, "%u %u 1", uid, uid);
        if (io_write_file(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 ||
                io_write_file(AT_FDCWD, "/proc/self/uid_map", text) < 0)
                return -1;
        snprintf(text, sizeof text, "%u %u 1", gid, gid);
        return io_write_file(AT_FDCWD, "/proc/self/gid_map", text);
}

/*
 * Hides all processes of the host.  False: the kernel refuses, as in a user namespace where parts of /proc are covered
 * (mount_namespaces(7)).
 */
static bool mount_proc(void)
{
        return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) == 0 &&
               mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
}

/* True: the program has ended.  Process 1 inherits all orphans. */
static bool reap(pid_t program, int32_t *ret_status)
{
        int status;
        bool ended = false;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
                if (pid == program) {
                        *ret_status = status;
                        ended = true;
                }
        return ended;
}

static _Noreturn void mind(pid_t program, int signals, int control)
{
        struct pollfd ways[] = { { .fd = signals, .events = POLLIN }, { .fd = control, .events = POLLIN } };
        struct signalfd_siginfo info;
        int32_t status = -1;
        uint64_t end_ms = 0;
        for (;;) {
                int wait_ms = end_ms ? (int)(end_ms - min_u64(clock_ms(), end_ms)) : -1;
                if (poll(ways, ARRAY_LEN(ways), wait_ms) == 0)
                        _exit(0);
                if (ways[0].revents && read(signals, &info, sizeof info) > 0 && reap(program, &status)) {
                        wire_send(control, &status, sizeof status, NULL, 0);
                        _exit(0);
                }
                /* The engine never sends a message here, so an event means a closed socket. */
                if (ways[1].revents) {
                        kill(-program, SIGTERM);
                        kill(program, SIGTERM);
                        ways[1].fd = -1;
                        end_ms = clock_ms() + TERM_MS;
                }
        }
}

static _Noreturn void become_minder(const struct launch_program *program, char **argv, const int given[LAUNCH_FDS],
        uint32_t uid, uint32_t gid)
{
        static const int child[] = { SIGCHLD };
        int fds[LAUNCH_FDS];
        struct csn_error err;
        bool privileged = uid == 0;
        /* A process that is not dumpable cannot write its own id maps (proc(5)). */
        if (!privileged && (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 || map_self(uid, gid) < 0))
                _exit(125);
        bool own_proc = mount_proc();
        signal(SIGCHLD, SIG_DFL);
        for (int i = 0; i < LAUNCH_FDS; i++)
                if ((fds[i] = fcntl(given[i], F_DUPFD_CLOEXEC, FIRST_FD)) < 0)
                        _exit(125);
        close_range(SUPERVISOR_SOCKET_FD, FIRST_FD - 1, 0);
        int signals = io_signals(child, 1, &err);
        pid_t pid = signals < 0 ? -1 : fork();
        if (pid == 0)
                become_program(program, privileged, own_proc, argv, fds);
        if (pid < 0 || become_user(program, privileged, &err) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                _exit(125);
        /* The program's streams end with the program. */
        for (int i = LAUNCH_STDIN; i <= LAUNCH_STDERR; i++)
                fd_close(&fds[i]);
        mind(pid, signals, fds[LAUNCH_CONTROL]);
}

/* ---- the launcher ---- */

static int32_t launch(struct table *table, const char *bytes, size_t len, const int fds[LAUNCH_FDS])
{
        struct arena arena = { 0 };
        struct csn_error err;
        size_t which;
        char **argv = NULL;
        int32_t said = -EPROTO;
        const uint32_t uid = geteuid(), gid = getegid();
        if (launch_get_request(bytes, len, &arena, &which, &table->values, &err) == 0 && which < table->n &&
            launch_fill(&table->programs[which], &table->values, &arena, &argv, &err) == 0) {
                unsigned long flags = CLONE_NEWPID | SIGCHLD | (uid ? CLONE_NEWUSER : 0UL);
                long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
                if (pid == 0)
                        become_minder(&table->programs[which], argv, fds, uid, gid);
                said = pid < 0 ? -errno : 0;
        }
        arena_done(&arena);
        return said;
}

static int read_table(struct table *table, struct csn_error *err)
{
        struct stat st;
        size_t at = 0;
        if (fstat(LAUNCH_TABLE_FD, &st) < 0 || st.st_size <= 0 || (uint64_t)st.st_size > LAUNCH_TABLE_MAX)
                return err_set(err, CSN_E_INPUT, 0, "there is no table of programs");
        size_t len = (size_t)st.st_size;
        table->bytes = mem_alloc(len);
        if (pread(LAUNCH_TABLE_FD, table->bytes, len, 0) != (ssize_t)len)
                return err_set(err, CSN_E_SYSTEM, errno, "read the table of programs");
        close(LAUNCH_TABLE_FD);
        table->programs = arena_alloc(&table->arena, LAUNCH_PROGRAMS_MAX * sizeof *table->programs);
        while (at < len) {
                if (table->n == LAUNCH_PROGRAMS_MAX)
                        return err_set(err, CSN_E_INPUT, 0, "the table has too many programs");
                if (launch_get_program(table->bytes, len, &at, &table->arena, &table->programs[table->n++], err) < 0)
                        return -err->code;
        }
        return 0;
}

int launcher_main(void)
{
        static char bytes[LAUNCH_REQUEST_MAX];
        static struct table table;
        struct csn_error err;
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        ssize_t len;
        if (read_table(&table, &err) < 0) {
                log_text(LOG_ERROR, "%s", err.text);
                return 64;
        }
        /* No process waits for minders.  The engine handles a Ctrl-C at the terminal; we end with its socket. */
        signal(SIGCHLD, SIG_IGN);
        setsid();
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);   /* there are secrets in the table */
        while ((len = wire_receive_small(SUPERVISOR_SOCKET_FD, bytes, sizeof bytes, fds, &fds_n)) > 0) {
                int32_t said = fds_n == LAUNCH_FDS ? launch(&table, bytes, (size_t)len, fds) : -EPROTO;
                for (size_t i = 0; i < fds_n; i++)
                        fd_close(&fds[i]);
                if (wire_send(SUPERVISOR_SOCKET_FD, &said, sizeof said, NULL, 0) < 0)
                        return 125;
        }
        return 0;
}
