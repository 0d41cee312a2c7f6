/* The native backend: our side of the socket to caisson-supervisor. */
#include "backend/backend.h"

#include "model/model.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define HELLO_MS 10000
/* descriptors of one sandbox and its supervisor, with a reserve; more sandboxes are a question of load */
#define DESCRIPTORS_MIN 36
#define SOCKET_FD 3
/* A program may have WIRE_FILES_MAX files and contents up to a body's limit; see docs/design/loop-steps.md. */
#define FEED_US 2000                             /* limit of one step of sending a program */
#define COPY_SLICE (256 * KIB)                   /* bytes copied into a memfd between two reads of the clock */

struct native_job {
        struct native_job *next;
        struct backend_link *link;
        uint32_t id;
        void *owner;
        uint64_t flags;                          /* of the sandbox's shape */
        struct watch handoff;                       /* owns its fd; -1 before READY and after the last file */
        const struct backend_program *program;   /* to be sent, or NULL */
        size_t sent;                             /* files sent */
        int copy_fd;                             /* memfd of a long content to be sent next, or -1 */
        size_t copied;                           /* bytes of the content in copy_fd */
};

struct backend_link {
        struct loop *loop;
        const struct backend_events *events;
        void *engine;
        pid_t pid;
        struct watch watch;                      /* of the socket to the supervisor */
        struct send_queue instance;
        struct native_job *jobs;
        struct timer ping;
        unsigned silent;               /* PINGs, and periods since, without PONG */
};

/* ---- the supervisor's process ---- */

static _Noreturn void become_supervisor(int sock, const struct backend_options *options)
{
        char *const argv[] = { "caisson-supervisor", "--uid-range", (char *)(uintptr_t)options->uid_range,
                "--cgroup-parent", (char *)(uintptr_t)options->cgroup_parent, "--runner-dir",
                (char *)(uintptr_t)backend_runner_dir(), "--layers-dir", (char *)(uintptr_t)options->layers_dir,
                "--images-dir", (char *)(uintptr_t)options->images_dir, "--volumes-dir",
                (char *)(uintptr_t)options->volumes_dir, "--devices", (char *)(uintptr_t)options->devices, NULL };
        char *const env[] = { NULL };   /* becomes that of process 1 of every sandbox: no secrets */
        sigset_t none;
        sigemptyset(&none);
        /* A session of its own: Ctrl-C at the terminal must reach the daemon only. */
        if (setsid() < 0 || dup2(sock, SOCKET_FD) < 0)
                _exit(125);
        int null = open("/dev/null", O_RDWR);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
                _exit(125);
        close_range(SOCKET_FD + 1, ~0U, 0);
        for (int sig = 1; sig < NSIG; sig++)
                signal(sig, SIG_DFL);
        sigprocmask(SIG_SETMASK, &none, NULL);
        execve(backend_supervisor(), argv, env);
        _exit(127);
}

/* Only the hard limit matters: the supervisor raises its soft limit, as caissond does. */
static int check_descriptors(struct csn_error *err)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < DESCRIPTORS_MIN)
                return err_set(err, CSN_E_UNSUPPORTED, 0,
                        "a sandbox needs %d open files at once, and this process may have %llu: raise the hard limit "
                        "(ulimit -Hn)",
                        DESCRIPTORS_MIN, (unsigned long long)limit.rlim_max);
        return 0;
}

static int start_supervisor(struct backend_link *link, const struct backend_options *options, struct csn_error *err)
{
        int pair[2];
        if (check_descriptors(err) < 0)
                return -err->code;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        auto_fd theirs = pair[1];
        link->watch.fd = pair[0];
        if (helpers_are_there())
                return helpers_spawn(WIRE_START_SUPERVISOR, theirs, &link->pid, err);
        backend_supervisor();   /* finds the path before the fork: snprintf and readlink are for the parent */
        backend_runner_dir();
        link->pid = fork();
        if (link->pid == 0)
                become_supervisor(theirs, options);
        if (link->pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork the supervisor");
        return 0;
}

static int send_message(struct backend_link *link, struct buf *message, bool fits, struct csn_error *err)
{
        int rc = 0;
        if (!fits)
                rc = err_set(err, CSN_E_INPUT, 0, "a message is longer than %d KiB", WIRE_MAX / 1024);
        else if (send_queue_put(&link->instance, message->bytes, message->len, NULL, 0) < 0 && errno != EPIPE &&
                errno != ECONNRESET)   /* the end of the supervisor is reported by its socket, and all jobs fail */
                rc = err_set(err, CSN_E_SYSTEM, errno, "send to the supervisor");
        buf_done(message);
        return rc;
}

static int send_plain(struct backend_link *link, enum wire_op op, uint32_t id, struct csn_error *err)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        return send_message(link, &message, wire_put_plain(&message, op, id), err);
}

static int greet(struct backend_link *link, struct csn_error *err)
{
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct wire_header header;
        struct wire_abilities abilities;
        if (send_plain(link, WIRE_HELLO, 0, err) < 0)
                return -err->code;
        struct pollfd poll_fd = { .fd = link->watch.fd, .events = POLLIN };
        int n;
        do
                n = poll(&poll_fd, 1, HELLO_MS);
        while (n < 0 && errno == EINTR);
        ssize_t len = n == 1 ? wire_receive(link->watch.fd, bytes, fds, &fds_n) : 0;
        if (len <= 0)
                return err_set(err, CSN_E_SYSTEM, 0, "%s did not start; is it installed beside this program?",
                        backend_supervisor());
        if (wire_get_header(bytes, (size_t)len, &header, err) < 0)
                return -err->code;
        if (header.op != WIRE_HELLO)
                return err_set(err, CSN_E_PROTOCOL, 0, "the supervisor did not greet");
        return wire_get_abilities(bytes + WIRE_HEADER, header.len, &abilities, err);
}

/* ---- jobs ---- */

static struct native_job *find_job(struct backend_link *link, uint32_t id)
{
        for (struct native_job *job = link->jobs; job; job = job->next)
                if (job->id == id)
                        return job;
        return NULL;
}

static void forget_job(struct native_job *job)
{
        loop_unwatch(job->link->loop, &job->handoff);
        fd_close(&job->handoff.fd);
        fd_close(&job->copy_fd);
        for (struct native_job **at = &job->link->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        free(job);
}

static void native_kill(struct backend_link *link, uint32_t id)
{
        struct csn_error err;
        struct native_job *job = find_job(link, id);
        /* The caller may free the program now; data already sent through the handoff socket is useless. */
        if (job) {
                loop_unwatch(link->loop, &job->handoff);
                job->program = NULL;
        }
        if (send_plain(link, WIRE_KILL, id, &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);   /* the supervisor has ended, and so has the job */
}

static void native_exiting(struct backend_link *link, uint32_t id, unsigned status)
{
        struct buf message;
        struct csn_error err;
        buf_init(&message, WIRE_MAX);
        if (send_message(link, &message, wire_put_number(&message, WIRE_EXITING, id, status), &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);
}

static void native_request_stats(struct backend_link *link, uint32_t id)
{
        struct csn_error err;
        if (send_plain(link, WIRE_GET_STATS, id, &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);
}

/* ---- through the handoff socket ---- */

static int send_packet(struct native_job *job, struct buf *packet, bool fits, int fd, struct csn_error *err)
{
        int rc = 0;
        if (!fits)
                rc = err_set(err, CSN_E_INPUT, 0, "arguments and environment together are longer than %d KiB",
                        WIRE_MAX / 1024);
        else if (wire_send(job->handoff.fd, packet->bytes, packet->len, &fd, fd >= 0) < 0)
                rc = err_set(err, errno == EAGAIN ? CSN_E_BUSY : CSN_E_SYSTEM, errno,
                        "send the program to its sandbox");
        buf_done(packet);
        return rc;
}

/* Go on copying a content to job->copy_fd.  0: the whole content is there; 1: the time is over; -1 with errno. */
static int copy_content(struct native_job *job, const char *bytes, size_t len, uint64_t until_us)
{
        if (job->copy_fd >= 0 && job->copied == len)
                return 0;
        if (job->copy_fd < 0) {
                job->copied = 0;
                job->copy_fd = memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        }
        if (job->copy_fd < 0)
                return -1;
        do {
                size_t n = min_u64(COPY_SLICE, len - job->copied);
                if (io_write_all(job->copy_fd, bytes + job->copied, n) < 0)
                        return -1;
                job->copied += n;
                if (job->copied == len)
                        return io_seal(job->copy_fd);
        } while (clock_us() < until_us);
        return 1;
}

/* 1: the time is over, and the file is not sent. */
static int send_file(struct native_job *job, uint64_t until_us, struct csn_error *err)
{
        const struct backend_program *program = job->program;
        struct wire_file file;
        struct buf packet;
        int source = -1;
        if (program->file(program->owner, job->sent, &file, &source, err) < 0)
                return -err->code;
        auto_fd fd = source;
        if (file.content_len > WIRE_INLINE_MAX) {
                int rc = copy_content(job, file.content, file.content_len, until_us);
                if (rc != 0)
                        return rc > 0 ? rc : err_set(err, CSN_E_SYSTEM, errno, "hold the input file %s", file.name);
                file.content = NULL;
                file.content_len = 0;
        }
        buf_init(&packet, WIRE_MAX);
        int rc = send_packet(job, &packet, wire_put_file(&packet, &file), fd >= 0 ? fd : job->copy_fd, err);
        if (rc == 0)
                fd_close(&job->copy_fd);
        return rc;
}

/* 1: the time is over, and something is left. */
static int send_rest(struct native_job *job, uint64_t until_us, struct csn_error *err)
{
        const struct backend_program *program = job->program;
        struct buf packet;
        for (; job->sent < program->files_n; job->sent++) {
                int rc = clock_us() < until_us ? send_file(job, until_us, err) : 1;
                if (rc != 0)
                        return rc;
        }
        int rc = program->stdin_len ? copy_content(job, program->stdin_bytes, program->stdin_len, until_us) : 0;
        if (rc != 0)
                return rc > 0 ? rc : err_set(err, CSN_E_SYSTEM, errno, "make standard input");
        buf_init(&packet, WIRE_MAX);
        rc = send_packet(job, &packet, wire_put_program(&packet, &program->program), job->copy_fd, err);
        if (rc == 0)
                fd_close(&job->copy_fd);
        return rc;
}

/* Report the failure here; the supervisor's report of the kill then finds no job. */
static void give_up(struct native_job *job, const struct csn_error *err)
{
        struct backend_link *link = job->link;
        void *owner = job->owner;
        native_kill(link, job->id);
        forget_job(job);
        link->events->refused(owner, err);
}

/*
 * Send the rest of a program for FEED_US.  The loop calls feed() again for a further rest, once the handoff socket has
 * room.
 */
static void feed(struct native_job *job)
{
        struct backend_link *link = job->link;
        struct csn_error err = { 0 };
        if (!job->program || job->handoff.fd < 0)
                return;
        int rc = send_rest(job, clock_us() + FEED_US, &err);
        if (rc != 0) {
                bool later = rc > 0 || (err.code == CSN_E_BUSY && err.sys == EAGAIN);
                if (later && loop_watch(link->loop, &job->handoff, job->handoff.fd, EPOLLOUT, &err) == 0)
                        return;
                if (err.sys != EPIPE) {
                        give_up(job, &err);
                        return;
                }
                /* The process of the program failed; the supervisor reports the reason. */
                loop_unwatch(link->loop, &job->handoff);
                fd_close(&job->handoff.fd);
                return;
        }
        loop_unwatch(link->loop, &job->handoff);
        link->events->sent(job->owner, take_fd(&job->handoff.fd));
}

static void handoff_ready(struct watch *watch, uint32_t events)
{
        (void)events;
        feed(watch->owner);
}

/* ---- messages ---- */

static int take_ready(struct native_job *job, const struct wire_boundary *boundary, int fds[WIRE_FDS_MAX],
        struct csn_error *err)
{
        if (job->handoff.fd >= 0)
                return err_set(err, CSN_E_PROTOCOL, 0, "READY came twice");
        const int proxy = WIRE_END_PROXY, tool_socket = job->flags & WIRE_PROXY ? WIRE_END_TOOL_SOCKET : WIRE_END_PROXY;
        const int n = WIRE_END_PROXY + !!(job->flags & WIRE_PROXY) + !!(job->flags & WIRE_TOOL_SOCKET);
        for (int i = 0; i < n; i++)
                if (fds[i] < 0)
                        return err_set(err, CSN_E_PROTOCOL, 0, "READY without its descriptors");
        const struct backend_ends ends = { .home = take_fd(&fds[WIRE_END_HOME]),
                .out = take_fd(&fds[WIRE_END_STDOUT]),
                .error = take_fd(&fds[WIRE_END_STDERR]),
                .channel = take_fd(&fds[WIRE_END_CHANNEL]),
                .proxy = job->flags & WIRE_PROXY ? take_fd(&fds[proxy]) : -1,
                .tool_socket = job->flags & WIRE_TOOL_SOCKET ? take_fd(&fds[tool_socket]) : -1 };
        job->handoff.fd = take_fd(&fds[WIRE_END_HANDOFF]);
        struct backend_link *link = job->link;
        uint32_t id = job->id;
        link->events->ready(job->owner, boundary, &ends);
        job = find_job(link, id);
        if (job)
                feed(job);
        return 0;
}

/* ---- whether the supervisor answers ---- */

static void link_lost(struct backend_link *link, const struct csn_error *error);

/* The supervisor may have another uid; then only the starter may kill the process. */
static void kill_supervisor(const struct backend_link *link)
{
        struct csn_error err;
        if (helpers_kill(link->pid, &err) < 0)
                log_text(LOG_ERROR, "the supervisor cannot be killed: %s", err.text);
}

/*
 * Counts unanswered pings, not time: the loop reads the socket between two pings, so a late loop does not count as
 * silence of the supervisor.
 */
static void on_ping(struct timer *timer)
{
        struct backend_link *link = timer->owner;
        struct csn_error err;
        if (link->silent++ >= HELPER_ANSWER_MS / HELPER_PING_MS) {
                kill_supervisor(link);
                err_set(&err, CSN_E_LOST, 0, "the supervisor did not answer within %d seconds and was killed",
                        HELPER_ANSWER_MS / 1000);
                link_lost(link, &err);
                return;
        }
        if (link->silent == 1 && send_plain(link, WIRE_PING, 0, &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);   /* the socket reports the end */
        loop_timer(link->loop, timer, HELPER_PING_MS * 1000ULL);
}

static bool native_is_silent(const struct backend_link *link)
{
        return link->silent >= HELPER_SILENT;
}

static int take_volume_answer(const struct backend_link *link, const struct wire_header *header, const uint8_t *body,
        struct csn_error *err)
{
        struct csn_error error;
        bool failed = header->op == WIRE_VOLUME_FAILED;
        if (failed && wire_get_error(body, header->len, &error, err) < 0)
                return -err->code;
        link->events->volume(link->engine, header->job, failed ? &error : NULL);
        return 0;
}

static int handle(struct backend_link *link, const struct wire_header *header, const uint8_t *body,
        int fds[WIRE_FDS_MAX], struct csn_error *err)
{
        struct wire_boundary boundary;
        struct wire_exit how;
        struct wire_stats seen;
        struct csn_error error;
        uint32_t number;
        struct native_job *job = find_job(link, header->job);
        void *owner = job ? job->owner : NULL;
        switch (header->op) {
        case WIRE_ZYGOTE: {
                struct arena arena = { 0 };
                char *info;
                int rc = wire_get_text(body, header->len, &arena, &info, err);
                if (rc == 0)
                        link->events->zygote(link->engine, header->job, info, NULL);
                arena_done(&arena);
                return rc;
        }
        case WIRE_GONE:
                if (wire_get_error(body, header->len, &error, err) < 0)
                        return -err->code;
                link->events->zygote(link->engine, header->job, NULL, &error);
                return 0;
        case WIRE_READY:
                if (wire_get_boundary(body, header->len, &boundary, err) < 0)
                        return -err->code;
                return job ? take_ready(job, &boundary, fds, err) : 0;
        case WIRE_CONFINED:
                if (wire_get_boundary(body, header->len, &boundary, err) < 0)
                        return -err->code;
                if (job)
                        link->events->confined(owner, &boundary);
                return 0;
        case WIRE_STATS:
                if (wire_get_stats(body, header->len, &seen, err) < 0)
                        return -err->code;
                if (job)
                        link->events->seen(owner, &seen);
                return 0;
        case WIRE_FROZEN:
                if (wire_get_number(body, header->len, "FROZEN", 1, &number, err) < 0)
                        return -err->code;
                if (job)
                        link->events->frozen(owner, number == 1, NULL);
                return 0;
        case WIRE_FREEZE_FAILED:
                if (wire_get_error(body, header->len, &error, err) < 0)
                        return -err->code;
                if (job)
                        link->events->frozen(owner, false, &error);
                return 0;
        case WIRE_VOLUME_DONE:
        case WIRE_VOLUME_FAILED:
                return take_volume_answer(link, header, body, err);
        case WIRE_PONG:
                link->silent = 0;
                return 0;
        case WIRE_EXITED:
                if (wire_get_exit(body, header->len, &how, err) < 0)
                        return -err->code;
                if (!job)
                        return 0;   /* given up before */
                forget_job(job);
                link->events->exited(owner, &how);
                return 0;
        case WIRE_REFUSED:
                if (wire_get_error(body, header->len, &error, err) < 0)
                        return -err->code;
                if (!job)
                        return 0;
                forget_job(job);
                link->events->refused(owner, &error);
                return 0;
        default:
                return err_set(err, CSN_E_PROTOCOL, 0, "the supervisor sent message %u", header->op);
        }
}

static void link_lost(struct backend_link *link, const struct csn_error *error)
{
        loop_unwatch(link->loop, &link->watch);
        while (link->jobs) {
                void *owner = link->jobs->owner;
                forget_job(link->jobs);
                link->events->refused(owner, error);
        }
        link->events->lost(link->engine, error);
}

/* End one sandbox after EMFILE at receiving its descriptors; other sandboxes go on. */
static void lose(struct backend_link *link, uint32_t id)
{
        struct native_job *job = find_job(link, id);
        struct csn_error err;
        err_set(&err, CSN_E_BUSY, EMFILE, "take what belongs to a sandbox");
        if (job)
                give_up(job, &err);
}

/* Take one message.  False: no message is waiting, or the link is lost. */
static bool take_message(struct backend_link *link)
{
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct csn_error err;
        struct wire_header header;
        bool lost = false;
        ssize_t len = wire_receive_lossy(link->watch.fd, bytes, fds, &fds_n, &lost);
        if (len < 0 && errno == EAGAIN)
                return false;
        if (len <= 0) {
                err_set(&err, CSN_E_LOST, len < 0 ? errno : 0, "the supervisor ended unexpectedly");
                link_lost(link, &err);
                return false;
        }
        int rc = wire_get_header(bytes, (size_t)len, &header, &err);
        if (rc == 0 && lost)
                lose(link, header.job);
        else if (rc == 0)
                rc = handle(link, &header, bytes + WIRE_HEADER, fds, &err);
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
        if (rc < 0)
                link_lost(link, &err);
        return rc == 0;
}

static void link_ready(struct watch *watch, uint32_t events)
{
        struct backend_link *link = watch->owner;
        struct csn_error err;
        if (events & EPOLLOUT && send_queue_flush(&link->instance) < 0) {
                err_set(&err, CSN_E_SYSTEM, errno, "send to the supervisor");
                link_lost(link, &err);
                return;
        }
        if (events & ~(uint32_t)EPOLLOUT)
                take_message(link);
}

/* ---- functions of the backend ---- */

static void native_close(struct backend_link *link)
{
        if (!link)
                return;
        loop_unwatch(link->loop, &link->watch);
        loop_untimer(link->loop, &link->ping);
        while (link->jobs)
                forget_job(link->jobs);
        send_queue_done(&link->instance);
        fd_close(&link->watch.fd);
        /* The supervisor ends with its socket, after killing and removing all sandboxes. */
        if (!helpers_reap(link->pid, HELPER_ANSWER_MS)) {
                kill_supervisor(link);
                helpers_reap(link->pid, HELPER_ANSWER_MS);
        }
        free(link);
}

static int native_open(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
                       struct backend_link **ret, struct csn_error *err)
{
        struct backend_link *link = mem_alloc(sizeof *link);
        *link = (struct backend_link){ .loop = loop, .events = events, .engine = options->engine };
        link->watch = (struct watch){ .fd = -1, .ready = link_ready, .owner = link };
        link->instance = (struct send_queue){ .loop = loop, .watch = &link->watch };
        link->ping = (struct timer){ .fired = on_ping, .owner = link };
        if (start_supervisor(link, options, err) < 0 || greet(link, err) < 0 ||
            loop_watch(loop, &link->watch, link->watch.fd, EPOLLIN, err) < 0) {
                native_close(link);
                return -err->code;
        }
        if (fcntl(link->watch.fd, F_SETFL, O_NONBLOCK) < 0) {
                err_set(err, CSN_E_SYSTEM, errno, "make the supervisor's socket non-blocking");
                native_close(link);
                return -err->code;
        }
        loop_timer(loop, &link->ping, HELPER_PING_MS * 1000ULL);
        *ret = link;
        return 0;
}

static struct native_job *job_new(struct backend_link *link, uint32_t id, void *owner)
{
        struct native_job *job = mem_alloc(sizeof *job);
        *job = (struct native_job){ .next = link->jobs, .link = link, .id = id, .owner = owner, .copy_fd = -1,
                                    .handoff = { .fd = -1, .ready = handoff_ready, .owner = job } };
        link->jobs = job;
        return job;
}

static int native_prepare(struct backend_link *link, uint32_t id, void *owner, const struct wire_shape *shape,
        struct csn_error *err)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        if (send_message(link, &message, wire_put_shape(&message, id, shape), err) < 0)
                return -err->code;
        job_new(link, id, owner)->flags = shape->flags;
        return 0;
}

static int native_join(struct backend_link *link, uint32_t id, uint32_t zygote, struct csn_error *err)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        return send_message(link, &message, wire_put_number(&message, WIRE_JOIN, id, zygote), err);
}

/* The worker's command line goes through the handoff socket, as for a program. */
static int native_worker(struct backend_link *link, uint32_t id, const struct wire_program *program,
        struct csn_error *err)
{
        struct native_job *job = find_job(link, id);
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        if (!job || job->handoff.fd < 0)
                return err_set(err, CSN_E_SYSTEM, 0, "a worker for a sandbox that is not ready");
        if (send_packet(job, &packet, wire_put_program(&packet, program), -1, err) < 0)
                return -err->code;
        return send_plain(link, WIRE_WORKER, id, err);
}

static int native_start(struct backend_link *link, uint32_t id, const struct backend_program *program,
        struct csn_error *err)
{
        struct native_job *job = find_job(link, id);
        struct buf message;
        if (!job)
                return err_set(err, CSN_E_SYSTEM, 0, "a program for a sandbox that is gone");
        /* Send the program first: reading the program takes longer than the START message through the supervisor. */
        job->program = program;
        feed(job);
        if (!(job = find_job(link, id)))
                return 0;   /* given up and reported; the program may be freed */
        buf_init(&message, WIRE_MAX);
        if (send_message(link, &message, wire_put_limits(&message, WIRE_START, id, &program->limits), err) == 0)
                return 0;
        job->program = NULL;
        return -err->code;
}

static int native_guest(struct backend_link *link, uint32_t id, const struct wire_limits *limits, int *ret_sock,
        struct csn_error *err)
{
        struct native_job *job = find_job(link, id);
        struct buf message;
        if (!job || job->handoff.fd < 0)
                return err_set(err, CSN_E_SYSTEM, 0, "a guest for a sandbox that is not ready");
        buf_init(&message, WIRE_MAX);
        if (send_message(link, &message, wire_put_limits(&message, WIRE_GUEST, id, limits), err) < 0)
                return -err->code;
        *ret_sock = take_fd(&job->handoff.fd);
        return 0;
}

static int native_join_guest(struct backend_link *link, uint32_t id, void *owner, uint32_t sandbox, uint32_t zygote,
        const int fds[WIRE_ENTRY_HANDOFF], struct csn_error *err)
{
        struct buf message;
        int handoff[2], rc = 0;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, handoff) < 0)
                return err_set(err, errno == EMFILE || errno == ENFILE ? CSN_E_BUSY : CSN_E_SYSTEM, errno,
                        "make a pair of sockets");
        auto_fd theirs = handoff[1], ours = handoff[0];
        const int all[WIRE_ENTRIES] = { fds[WIRE_ENTRY_STDOUT], fds[WIRE_ENTRY_STDERR], fds[WIRE_ENTRY_CHANNEL],
                theirs };
        buf_init(&message, WIRE_MAX);
        if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0 || !wire_put_join_guest(&message, id, sandbox, zygote) ||
            send_queue_put(&link->instance, message.bytes, message.len, all, WIRE_ENTRIES) < 0)
                rc = err_set(err, CSN_E_SYSTEM, errno, "send to the supervisor");
        buf_done(&message);
        if (rc == 0)
                job_new(link, id, owner)->handoff.fd = take_fd(&ours);
        return rc;
}

static void native_freeze(struct backend_link *link, uint32_t id, bool on)
{
        struct buf message;
        struct csn_error err;
        buf_init(&message, WIRE_MAX);
        if (send_message(link, &message, wire_put_number(&message, WIRE_FREEZE, id, on), &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);
}

static int native_zygote(struct backend_link *link, uint32_t id, const struct wire_shape *shape,
        const struct wire_program *program, struct csn_error *err)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        return send_message(link, &message, wire_put_zygote(&message, id, shape, program), err);
}

static void native_retire(struct backend_link *link, uint32_t id)
{
        struct csn_error err;
        if (send_plain(link, WIRE_RETIRE, id, &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);
}

static int native_volume(struct backend_link *link, uint32_t ticket, const struct wire_volume_order *order,
        struct csn_error *err)
{
        struct buf message;
        buf_init(&message, WIRE_MAX);
        return send_message(link, &message, wire_put_volume(&message, ticket, order), err);
}

const struct backend backend_native = {
        .name = "native",
        .isolation = isolation_FULL,
        .has_runners = true,
        .has_sockets = true,
        .open = native_open,
        .prepare = native_prepare,
        .join = native_join,
        .worker = native_worker,
        .start = native_start,
        .guest = native_guest,
        .enter = native_join_guest,
        .freeze = native_freeze,
        .left = native_exiting,
        .kill = native_kill,
        .look = native_request_stats,
        .is_silent = native_is_silent,
        .zygote = native_zygote,
        .retire = native_retire,
        .volume = native_volume,
        .close = native_close,
};
