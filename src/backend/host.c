/*
 * The host backend, for development: the program is a plain child in a temporary folder.  No namespace, no filter, no
 * cgroup; rlimits and the wall clock only.  The configuration must allow the backend and the request must name the
 * backend; the record says isolation "none".
 */
#include "backend/backend.h"

#include "model/model.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lang/lang.h"
#include "sandbox/sandbox.h"

struct host_job {
        struct host_job *next;
        struct backend_link *link;
        uint32_t id;
        void *owner;
        pid_t pid;
        struct watch death;
        struct timer deadline;
        char folder[64];
        int home;
        int fds[WIRE_STDIO];             /* ends of the program, until the start */
        uint64_t started_us, disk_bytes;
        unsigned reasons;
        struct timer dropped;            /* killed before its program began: reported from the loop */
};

struct backend_link {
        struct loop *loop;
        const struct backend_events *events;
        struct host_job *jobs;
};

static int host_open(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
                     struct backend_link **ret, struct csn_error *err)
{
        (void)options, (void)err;
        struct backend_link *link = mem_alloc(sizeof *link);
        *link = (struct backend_link){ .loop = loop, .events = events };
        *ret = link;
        return 0;
}

static void job_free(struct host_job *job)
{
        loop_unwatch(job->link->loop, &job->death);
        loop_untimer(job->link->loop, &job->deadline);
        loop_untimer(job->link->loop, &job->dropped);
        fd_close(&job->death.fd);
        fd_close(&job->home);
        for (int i = 0; i < WIRE_STDIO; i++)
                fd_close(&job->fds[i]);
        for (struct host_job **at = &job->link->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        free(job);
}

/* Kill the program's process group.  Processes that called setsid(2) escape; a sandbox would prevent this. */
static void job_kill(struct host_job *job, unsigned reason)
{
        job->reasons |= reason;
        if (job->pid <= 0) {
                loop_timer(job->link->loop, &job->dropped, 0);
                return;
        }
        kill(-job->pid, SIGKILL);
        kill(job->pid, SIGKILL);
}

static void job_deadline(struct timer *timer)
{
        job_kill(timer->owner, WIRE_WALL);
}

static void job_dropped(struct timer *timer)
{
        struct host_job *job = timer->owner;
        const struct backend_events *news = job->link->events;
        void *owner = job->owner;
        const struct wire_exit how = { .reasons = job->reasons };
        io_remove_tree(AT_FDCWD, job->folder);
        job_free(job);
        news->exited(owner, &how);
}

static void job_died(struct watch *watch, uint32_t events)
{
        struct host_job *job = watch->owner;
        struct rusage usage = { 0 };
        int status = 0;
        (void)events;
        bool reaped = wait4(job->pid, &status, 0, &usage) == job->pid;
        kill(-job->pid, SIGKILL);
        struct wire_exit how = {
                .status = (uint64_t)(unsigned)status,
                .has_status = reaped,
                .reasons = job->reasons,
                .wall_us = clock_us() - job->started_us,
                .cpu_us = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
                          (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
                .memory_peak = (uint64_t)usage.ru_maxrss * KIB,
        };
        if (job->reasons)
                how.has_status = 0;
        const struct backend_events *news = job->link->events;
        void *owner = job->owner;
        char folder[sizeof job->folder];
        memcpy(folder, job->folder, sizeof folder);
        job_free(job);
        news->exited(owner, &how);   /* the engine collects the files, so the folder can go */
        io_remove_tree(AT_FDCWD, folder);
}

/* ---- starting ---- */

int backend_put_file(int home, const struct wire_file *file, int source, struct csn_error *err)
{
        auto_fd dir = fcntl(home, F_DUPFD_CLOEXEC, 0);
        const char *name = file->name;
        for (const char *slash = strchr(name, '/'); slash; slash = strchr(name, '/')) {
                char part[256];
                snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
                if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
                        return err_set(err, CSN_E_SYSTEM, errno, "make the folder %s", part);
                int next = openat(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "open the folder %s", part);
                fd_close(&dir);
                dir = next;
                name = slash + 1;
        }
        auto_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)file->mode | 0200);
        off_t offset = 0;
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the input file %s", file->name);
        if (file->content && io_write_all(fd, file->content, file->content_len) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "write the input file %s", file->name);
        if (file->content)
                return 0;
        ssize_t n;
        while ((n = sendfile(fd, source, &offset, 16 * MIB)) != 0)
                if (n < 0 && errno != EINTR)
                        return err_set(err, CSN_E_SYSTEM, errno, "copy the input file %s", file->name);
        return 0;
}

static int put_files(const struct backend_program *what, int home, struct csn_error *err)
{
        for (uint64_t i = 0; i < what->files_n; i++) {
                struct wire_file file;
                int source = -1;
                if (what->file(what->owner, i, &file, &source, err) < 0)
                        return -err->code;
                auto_fd fd = source;
                if (backend_put_file(home, &file, fd, err) < 0)
                        return -err->code;
        }
        return 0;
}

/* Translate the sandbox paths of the runner and the program to paths of the host. */
static char **host_argv(struct arena *arena, const struct wire_program *start, const char *folder)
{
        char **argv = arena_alloc(arena, (start->argv_n + 1) * sizeof *argv);
        for (size_t i = 0; i < start->argv_n; i++) {
                const char *text = start->argv[i];
                size_t mount = strlen(LANG_RUNNER_MOUNT "/"), home = strlen(SANDBOX_HOME "/");
                if (i == 1 && strncmp(text, LANG_RUNNER_MOUNT "/", mount) == 0)
                        argv[i] = arena_text(arena, "%s/%s", backend_runner_dir(), text + mount);
                else if (i == 3 && strncmp(text, SANDBOX_HOME "/", home) == 0)
                        argv[i] = arena_text(arena, "%s/%s", folder, text + home);
                else
                        argv[i] = arena_text(arena, "%s", text);
        }
        return argv;
}

static char **host_env(struct arena *arena, const struct wire_program *start, const char *folder)
{
        char **env = arena_alloc(arena, (start->env_n + 1) * sizeof *env);
        for (size_t i = 0; i < start->env_n; i++)
                env[i] = strncmp(start->env[i], "HOME=", 5) == 0 ? arena_text(arena, "HOME=%s", folder)
                                                                : arena_text(arena, "%s", start->env[i]);
        return env;
}

static _Noreturn void become_program(const struct host_job *job, const struct backend_program *what, char *const *argv,
        char *const *env)
{
        struct plan plan = { .limits = what->limits,
                .shape = { .disk_bytes = job->disk_bytes },
                .abilities = { .controllers = WIRE_CTL_PIDS } };
        struct csn_error err;
        sigset_t none;
        int fds[WIRE_STDIO];
        sigemptyset(&none);
        for (int i = 0; i < WIRE_STDIO; i++)
                fds[i] = fcntl(job->fds[i], F_DUPFD_CLOEXEC, 10);
        for (int i = 0; i < WIRE_STDIO; i++)
                if (dup2(fds[i], i) < 0)
                        _exit(126);
        close_range(WIRE_STDIO, ~0U, 0);
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (setsid() < 0 || chdir(job->folder) < 0 || limits_set(&plan, 0, LIMITS_ALL, &err) < 0)
                _exit(126);
        execve(argv[0], argv, env);
        _exit(127);
}

static int watch_child(struct host_job *job, const struct backend_program *what, struct csn_error *err)
{
        job->death.fd = (int)syscall(SYS_pidfd_open, job->pid, 0);
        if (job->death.fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pidfd_open");
        loop_timer(job->link->loop, &job->deadline, what->limits.wall_ms * 1000);
        return loop_watch(job->link->loop, &job->death, job->death.fd, EPOLLIN, err);
}

static int make_ends(struct host_job *job, struct backend_ends *ret, struct csn_error *err)
{
        int out[2], error[2], channel[2];
        if (pipe2(out, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pipe");
        job->fds[1] = out[1];
        ret->out = out[0];
        if (pipe2(error, O_CLOEXEC) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "pipe");
        job->fds[2] = error[1];
        ret->error = error[0];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        job->fds[3] = channel[1];
        ret->channel = channel[0];
        ret->home = fcntl(job->home, F_DUPFD_CLOEXEC, 0);
        if (ret->home < 0 || fcntl(ret->out, F_SETFL, O_NONBLOCK) < 0 || fcntl(ret->error, F_SETFL, O_NONBLOCK) < 0 ||
            fcntl(ret->channel, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the pipes of a run");
        return 0;
}

static int host_prepare(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape,
        struct csn_error *err)
{
        struct backend_ends ends = { -1, -1, -1, -1, -1, -1 };
        struct host_job *job = mem_alloc(sizeof *job);
        *job = (struct host_job){ .next = link->jobs,
                .link = link,
                .id = id,
                .owner = owner,
                .home = -1,
                .fds = { -1, -1, -1, -1 },
                .disk_bytes = shape->disk_bytes,
                .death = { .fd = -1, .ready = job_died, .owner = job },
                .deadline = { .fired = job_deadline, .owner = job },
                .dropped = { .fired = job_dropped, .owner = job } };
        link->jobs = job;
        snprintf(job->folder, sizeof job->folder, "/tmp/caisson-host-XXXXXX");
        int rc = mkdtemp(job->folder) ? 0 : err_set(err, CSN_E_SYSTEM, errno, "make a folder for the run");
        if (rc == 0) {
                job->home = open(job->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                rc = job->home < 0 ? err_set(err, CSN_E_SYSTEM, errno, "open the run's folder")
                                   : make_ends(job, &ends, err);
        }
        if (rc < 0) {
                fd_close(&ends.home);
                fd_close(&ends.out);
                fd_close(&ends.error);
                fd_close(&ends.channel);
                io_remove_tree(AT_FDCWD, job->folder);
                job_free(job);
                return rc;
        }
        const struct wire_boundary none = {
                .host_uid = geteuid(), .ids = 1, .capabilities = geteuid() == 0 ? UINT64_MAX : 0
        };
        link->events->ready(owner, &none, &ends);
        return 0;
}

static struct host_job *find_job(struct backend_link *link, uint32_t id)
{
        for (struct host_job *job = link->jobs; job; job = job->next)
                if (job->id == id)
                        return job;
        return NULL;
}

static int host_start(struct backend_link *link, uint32_t id, const struct backend_program *what, struct csn_error *err)
{
        struct host_job *job = find_job(link, id);
        if (!job)
                return err_set(err, CSN_E_SYSTEM, 0, "a program for a run that is gone");
        if (access(what->program.argv[0], X_OK) < 0)
                return err_interpreter(err, what->program.argv[0]);
        if (put_files(what, job->home, err) < 0)
                return -err->code;
        job->fds[0] = what->stdin_len ? io_memfd("stdin", what->stdin_bytes, what->stdin_len)
                                      : open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (job->fds[0] < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make standard input");
        struct arena arena = { 0 };
        char **argv = host_argv(&arena, &what->program, job->folder);
        char **env = host_env(&arena, &what->program, job->folder);
        job->started_us = clock_us();
        job->pid = fork();
        if (job->pid == 0)
                become_program(job, what, argv, env);
        int rc = job->pid < 0 ? err_set(err, CSN_E_SYSTEM, errno, "fork") : watch_child(job, what, err);
        arena_done(&arena);
        for (int i = 0; i < WIRE_STDIO; i++)
                fd_close(&job->fds[i]);
        return rc;
}

static void host_kill(struct backend_link *link, uint32_t id)
{
        struct host_job *job = find_job(link, id);
        if (job)
                job_kill(job, WIRE_KILLED);
}

static void host_close(struct backend_link *link)
{
        if (!link)
                return;
        for (struct host_job *job = link->jobs, *next; job; job = next) {
                next = job->next;
                job_kill(job, WIRE_KILLED);
                if (job->pid > 0)
                        waitpid(job->pid, NULL, 0);
                io_remove_tree(AT_FDCWD, job->folder);
                job_free(job);
        }
        free(link);
}

const struct backend backend_host = {
        .name = "host",
        .isolation = isolation_ABSENT,
        .has_runners = true,
        .open = host_open,
        .prepare = host_prepare,
        .start = host_start,
        .kill = host_kill,
        .close = host_close,
};
