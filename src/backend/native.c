/* The native backend: our side of the socket to caisson-supervisor. */
#include "backend/backend.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define HELLO_MS 10000
#define SOCKET_FD 3

/* The input files of a job that is being set up, sent as fast as process 1 takes them. */
struct sender {
        struct sender *next;
        struct backend_link *link;
        struct watch watch;
        struct backend_job job;
        size_t sent;
};

struct native_job {
        struct native_job *next;
        uint32_t id;
        void *owner;
};

struct backend_link {
        struct loop *loop;
        const struct backend_events *events;
        void *engine;
        pid_t pid;
        int sock;
        struct watch watch;
        struct native_job *jobs;
        struct sender *senders;
};

/* ---- the supervisor's process ---- */

static _Noreturn void become_supervisor(int sock, const struct backend_options *options)
{
        char *const argv[] = { "caisson-supervisor", "--uid-range", (char *)(uintptr_t)options->uid_range, "--cgroup-parent",
                               (char *)(uintptr_t)options->cgroup_parent, "--runner-dir",
                               (char *)(uintptr_t)backend_runner_dir(), NULL };
        char *const env[] = { NULL };   /* it becomes process 1 of every sandbox: no secret of ours may be in it */
        sigset_t none;
        sigemptyset(&none);
        /* Its own session: a Ctrl-C at the terminal is ours to handle. */
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

static int start_supervisor(struct backend_link *link, const struct backend_options *options, struct csn_error *err)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        auto_fd theirs = pair[1];
        link->sock = pair[0];
        backend_supervisor();   /* looked up before the fork: snprintf and readlink are for the parent */
        backend_runner_dir();
        link->pid = fork();
        if (link->pid == 0)
                become_supervisor(theirs, options);
        if (link->pid < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "fork the supervisor");
        return 0;
}

static int send_message(struct backend_link *link, struct buf *message, bool fits, const int *fds, size_t fds_n,
                        struct csn_error *err)
{
        if (!fits)
                return err_set(err, CSN_E_INPUT, 0, "arguments and environment together are longer than %d KiB",
                               WIRE_MAX / 1024);
        if (wire_send(link->sock, message->bytes, message->len, fds, fds_n) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "send to the supervisor");
        return 0;
}

static int greet(struct backend_link *link, struct csn_error *err)
{
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct wire_header header;
        struct wire_abilities abilities;
        struct buf message;
        buf_init(&message, WIRE_MAX);
        int rc = send_message(link, &message, wire_put_plain(&message, WIRE_HELLO, 0), NULL, 0, err);
        buf_done(&message);
        if (rc < 0)
                return rc;
        struct pollfd poll_fd = { .fd = link->sock, .events = POLLIN };
        int n;
        do
                n = poll(&poll_fd, 1, HELLO_MS);
        while (n < 0 && errno == EINTR);
        ssize_t len = n == 1 ? wire_receive(link->sock, bytes, fds, &fds_n) : 0;
        if (len <= 0)
                return err_set(err, CSN_E_SYSTEM, 0, "%s did not start; is it installed beside this program?", backend_supervisor());
        if (wire_get_header(bytes, (size_t)len, &header, err) < 0)
                return -err->code;
        if (header.op != WIRE_HELLO)
                return err_set(err, CSN_E_PROTOCOL, 0, "the supervisor did not greet");
        return wire_get_abilities(bytes + WIRE_HEADER, header.len, &abilities, err);
}

/* ---- input files ---- */

static void sender_free(struct sender *sender)
{
        loop_unwatch(sender->link->loop, &sender->watch);
        fd_close(&sender->watch.fd);
        for (struct sender **at = &sender->link->senders; *at; at = &(*at)->next)
                if (*at == sender) {
                        *at = sender->next;
                        break;
                }
        free(sender);
}

static int send_file(struct sender *sender, struct csn_error *err)
{
        struct wire_file file;
        int source = -1;
        if (sender->job.file(sender->job.owner, sender->sent, &file, &source, err) < 0)
                return -err->code;
        auto_fd fd = source;
        struct buf message;
        buf_init(&message, WIRE_MAX);
        wire_put_file(&message, &file);
        int rc = wire_send(sender->watch.fd, message.bytes, message.len, &fd, 1);
        int sys = errno;
        buf_done(&message);
        if (rc < 0)
                return err_set(err, sys == EAGAIN ? CSN_E_BUSY : CSN_E_SYSTEM, sys, "send an input file to the sandbox");
        return 0;
}

static struct native_job *find_job(struct backend_link *link, uint32_t id)
{
        for (struct native_job *job = link->jobs; job; job = job->next)
                if (job->id == id)
                        return job;
        return NULL;
}

static void forget_job(struct backend_link *link, struct native_job *job)
{
        for (struct sender *sender = link->senders, *next; sender; sender = next) {
                next = sender->next;
                if (sender->job.id == job->id)
                        sender_free(sender);
        }
        for (struct native_job **at = &link->jobs; *at; at = &(*at)->next)
                if (*at == job) {
                        *at = job->next;
                        break;
                }
        free(job);
}

static void native_kill(struct backend_link *link, uint32_t id)
{
        struct buf message;
        struct csn_error err;
        buf_init(&message, WIRE_MAX);
        if (send_message(link, &message, wire_put_plain(&message, WIRE_KILL, id), NULL, 0, &err) < 0)
                log_text(LOG_DEBUG, "%s", err.text);   /* the supervisor is gone, and with it the job */
        buf_done(&message);
}

static void sender_ready(struct watch *watch, uint32_t events)
{
        struct sender *sender = watch->owner;
        struct csn_error err = { 0 };
        while (sender->sent < sender->job.start.files_n && !(events & (EPOLLERR | EPOLLHUP))) {
                if (send_file(sender, &err) < 0) {
                        if (err.code == CSN_E_BUSY)
                                return;
                        break;
                }
                sender->sent++;
        }
        bool done = sender->sent == sender->job.start.files_n;
        struct backend_link *link = sender->link;
        struct native_job *job = find_job(link, sender->job.id);
        if (!done && err.code && err.sys != EPIPE && job) {
                /* Ours to tell; the supervisor's own word on the kill that follows finds nobody any more. */
                native_kill(link, job->id);
                link->events->refused(job->owner, &err);
                forget_job(link, job);
                return;
        }
        sender_free(sender);   /* all sent; or process 1 failed, and the supervisor will say why */
}

/* ---- messages ---- */

static int handle(struct backend_link *link, const struct wire_header *header, const uint8_t *body, int fds[WIRE_FDS_MAX],
                  struct csn_error *err)
{
        struct native_job *job = find_job(link, header->job);
        struct wire_boundary boundary;
        struct wire_exit how;
        struct csn_error refusal;
        if (!job)
                return 0;   /* we gave it up before */
        void *owner = job->owner;
        switch (header->op) {
        case WIRE_RUNNING:
                if (wire_get_boundary(body, header->len, &boundary, err) < 0 || fds[0] < 0)
                        return err_set(err, CSN_E_PROTOCOL, 0, "RUNNING is malformed");
                link->events->running(owner, &boundary, take_fd(&fds[0]), take_fd(&fds[1]));
                return 0;
        case WIRE_EXITED:
                if (wire_get_exit(body, header->len, &how, err) < 0)
                        return -err->code;
                forget_job(link, job);
                link->events->exited(owner, &how);
                return 0;
        case WIRE_REFUSED:
                if (wire_get_refused(body, header->len, &refusal, err) < 0)
                        return -err->code;
                forget_job(link, job);
                link->events->refused(owner, &refusal);
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
                forget_job(link, link->jobs);
                link->events->refused(owner, error);
        }
        link->events->lost(link->engine, error);
}

static void link_ready(struct watch *watch, uint32_t events)
{
        struct backend_link *link = watch->owner;
        (void)events;
        static uint8_t bytes[WIRE_MAX];
        int fds[WIRE_FDS_MAX];
        size_t fds_n;
        struct csn_error err;
        struct wire_header header;
        ssize_t len = wire_receive(link->sock, bytes, fds, &fds_n);
        if (len < 0 && errno == EAGAIN)
                return;
        if (len <= 0) {
                err_set(&err, CSN_E_SYSTEM, len < 0 ? errno : 0, "the supervisor ended unexpectedly");
                link_lost(link, &err);
                return;
        }
        int rc = wire_get_header(bytes, (size_t)len, &header, &err);
        if (rc == 0)
                rc = handle(link, &header, bytes + WIRE_HEADER, fds, &err);
        for (size_t i = 0; i < fds_n; i++)
                fd_close(&fds[i]);
        if (rc < 0)
                link_lost(link, &err);
}

/* ---- the backend's own functions ---- */

static void native_close(struct backend_link *link)
{
        if (!link)
                return;
        loop_unwatch(link->loop, &link->watch);
        while (link->senders)
                sender_free(link->senders);
        while (link->jobs)
                forget_job(link, link->jobs);
        fd_close(&link->sock);
        /* It ends when the socket does, after it has killed and removed all that it made. */
        while (link->pid > 0 && waitpid(link->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        free(link);
}

static int native_open(struct loop *loop, const struct backend_options *options, const struct backend_events *events,
                       struct backend_link **ret, struct csn_error *err)
{
        struct backend_link *link = mem_alloc(sizeof *link);
        *link = (struct backend_link){ .loop = loop, .events = events, .engine = options->engine, .sock = -1 };
        link->watch = (struct watch){ .ready = link_ready, .owner = link };
        if (start_supervisor(link, options, err) < 0 || greet(link, err) < 0 ||
            loop_watch(loop, &link->watch, link->sock, EPOLLIN, err) < 0) {
                native_close(link);
                return -err->code;
        }
        if (fcntl(link->sock, F_SETFL, O_NONBLOCK) < 0) {
                err_set(err, CSN_E_SYSTEM, errno, "make the supervisor's socket non-blocking");
                native_close(link);
                return -err->code;
        }
        *ret = link;
        return 0;
}

static int open_sender(struct backend_link *link, const struct backend_job *job, int *ret_theirs, struct csn_error *err)
{
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socketpair");
        struct sender *sender = mem_alloc(sizeof *sender);
        *sender = (struct sender){ .next = link->senders, .link = link, .job = *job };
        sender->watch = (struct watch){ .fd = pair[0], .ready = sender_ready, .owner = sender };
        link->senders = sender;
        *ret_theirs = pair[1];
        if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make the files socket non-blocking");
        return loop_watch(link->loop, &sender->watch, pair[0], EPOLLOUT, err);
}

static int native_start(struct backend_link *link, const struct backend_job *job, struct csn_error *err)
{
        auto_fd files = -1;
        struct native_job *entry = mem_alloc(sizeof *entry);
        *entry = (struct native_job){ .next = link->jobs, .id = job->id, .owner = job->owner };
        link->jobs = entry;

        struct buf message;
        buf_init(&message, WIRE_MAX);
        int rc = job->start.files_n ? open_sender(link, job, &files, err) : 0;
        if (rc == 0) {
                int fds[WIRE_FDS_MAX];
                memcpy(fds, job->stdio, sizeof job->stdio);
                fds[WIRE_FILES] = files;
                rc = send_message(link, &message, wire_put_start(&message, job->id, &job->start), fds,
                                  WIRE_STDIO + (job->start.files_n > 0), err);
        }
        buf_done(&message);
        if (rc < 0)
                forget_job(link, entry);
        return rc;
}

const struct backend backend_native = {
        .name = "native", .open = native_open, .start = native_start, .kill = native_kill, .close = native_close,
};
