/*
 * Programs: their descriptors, their terminal, their end.  And the same descriptors for an interpreter that comes from outside; and
 * a connection to a program that listens, which is written to and read from as one.
 */
#include "guest/guest.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

#define MESSAGES_MAX 1024      /* more than the channel's buffer can hold */
#define START_LOOKS 100        /* how often it is looked whether a program has started */
#define START_LOOK_MS 50
#define READS_AT_ONCE 8        /* of 64 KiB, before others have their turn */
#define DRAIN_MAX MIB          /* what a pipe can hold of what was written before a message of the channel, or the end */
#define KILL_PASSES_MAX 100

struct source {
        struct watch watch;
        enum guest_kind kind;
        struct process *process;
};

enum { OUT, ERROR, CHANNEL, SOURCES };

struct process {
        struct operation op;
        struct process *next;
        pid_t pid;                   /* 0: it has ended, or is no child of ours */
        bool discards_output;                   /* the operation is over: what still comes is thrown away, so that nobody dies of a closed pipe */
        bool terminal;
        struct source sources[SOURCES];
        struct watch in;
        struct buf rest;             /* of standard input */
        size_t rest_at;
        struct send_queue messages;      /* for the channel, that its reader has not taken */
        bool in_ends;                /* close it when the rest is written */
        bool connects, six;          /* its standard input is a connection that is not there yet; by IPv6 */
        uint64_t port;               /* 0: it is no connection */
};

static void connection_over(struct process *process);

/* ---- its end ---- */

/* How many processes of the session there are, by one number: two looks at the same ones give the same. */
static uint64_t signal_session(pid_t session, int sig)
{
        uint64_t sum = 0;
        DIR *dir = opendir("/proc");
        for (struct dirent *found = dir ? readdir(dir) : NULL; found; found = readdir(dir)) {
                long pid = strtol(found->d_name, NULL, 10);
                if (pid > 1 && getsid((pid_t)pid) == session && kill((pid_t)pid, sig) == 0)
                        sum += (uint64_t)pid << 32 | 1;
        }
        if (dir)
                closedir(dir);
        return sum;
}

/*
 * All of it: a shell with job control gives every job a process group of its own.  Who forks while we look is found by the next look;
 * at last those are left that are dead and not reaped yet.
 */
static void kill_session(pid_t session)
{
        kill(-session, SIGKILL);
        uint64_t before = 0, now = signal_session(session, SIGKILL);
        for (int i = 0; now != before && i < KILL_PASSES_MAX; i++) {
                before = now;
                now = signal_session(session, SIGKILL);
        }
}

static void close_source(struct source *source)
{
        loop_unwatch(source->process->op.guest->loop, &source->watch);
        fd_close(&source->watch.fd);
        if (source->kind == GUEST_CHANNEL)
                send_queue_done(&source->process->messages);
}

static void close_in(struct process *process)
{
        if (process->port)
                shutdown(process->in.fd, SHUT_WR);   /* reading goes on, by another descriptor of it */
        loop_unwatch(process->op.guest->loop, &process->in);
        fd_close(&process->in.fd);
        buf_done(&process->rest);
        process->rest_at = 0;
}

static void forget(struct process *process)
{
        for (struct process **at = &process->op.guest->processes; *at; at = &(*at)->next)
                if (*at == process) {
                        *at = process->next;
                        break;
                }
        free(process);
}

/* Nobody asks for it any more, and nothing of it is left. */
static void forget_if_done(struct process *process)
{
        bool open = false;
        for (int i = 0; i < SOURCES; i++)
                open = open || process->sources[i].watch.fd >= 0;
        if (process->discards_output && !process->pid && !open)
                forget(process);
}

static void discard_output(struct process *process)
{
        struct csn_error err;
        close_in(process);
        operation_release(&process->op);
        process->discards_output = true;
        close_source(&process->sources[CHANNEL]);
        for (int i = 0; i < SOURCES; i++) {
                struct source *source = &process->sources[i];
                if (source->watch.fd >= 0 && (process->terminal || loop_watch(process->op.guest->loop, &source->watch, source->watch.fd, EPOLLIN, &err) < 0))
                        close_source(source);
        }
        forget_if_done(process);
}

void processes_let_go(struct guest *guest)
{
        for (struct process *process = guest->processes, *next; process; process = next) {
                next = process->next;
                if (!process->discards_output)
                        continue;
                for (int i = 0; i < SOURCES; i++)
                        close_source(&process->sources[i]);
                forget_if_done(process);
        }
}

static void process_closed(struct operation *op)
{
        struct process *process = (struct process *)op;
        if (process->pid)
                kill_session(process->pid);
        discard_output(process);
}

static void stdio_closed(struct operation *op)
{
        discard_output((struct process *)op);
}

/* ---- what comes out of it ---- */

/* One packet, of so many bytes.  0: nothing is there now, or never again. */
static size_t pass_on(struct source *source)
{
        static uint8_t packet[GUEST_PACKET_MAX];
        struct process *process = source->process;
        if (source->watch.fd < 0)
                return 0;
        ssize_t n;
        do
                n = read(source->watch.fd, packet + 1, sizeof packet - 1);
        while (n < 0 && errno == EINTR);
        if (n > 0) {
                packet[0] = (uint8_t)source->kind;
                if (!process->discards_output)
                        operation_send(&process->op, packet, (size_t)n + 1, NULL, 0);
                return (size_t)n;
        }
        if (n == 0 || errno != EAGAIN) { /* EIO: the last one has closed a terminal */
                close_source(source);
                connection_over(process);
        }
        return 0;
}

/* What was written before is told before; a terminal gives it in pieces of 4 KiB. */
static void drain(struct process *process)
{
        for (int i = OUT; i <= ERROR; i++)
                for (size_t n = 1, all = 0; n && all < DRAIN_MAX; all += n)
                        n = pass_on(&process->sources[i]);
}

static void pass_on_message(struct source *source)
{
        static uint8_t packet[GUEST_PACKET_MAX];
        struct process *process = source->process;
        drain(process);   /* first, for who sent it may write more as soon as it was taken */
        ssize_t n = recv(source->watch.fd, packet + 1, sizeof packet - 1, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n > 0 && n < (ssize_t)sizeof packet) {
                packet[0] = GUEST_CHANNEL;
                operation_send(&process->op, packet, (size_t)n + 1, NULL, 0);
                return;
        }
        close_source(source);
        if (process->op.kind->closed == stdio_closed)
                operation_tell(&process->op, GUEST_DONE);
}

static void listen_to_sources(struct process *process, bool on)
{
        struct csn_error err;
        struct loop *loop = process->op.guest->loop;
        for (int i = 0; i < SOURCES; i++) {
                struct source *source = &process->sources[i];
                if (source->watch.fd < 0)
                        continue;
                if (!on)
                        loop_unwatch(loop, &source->watch);
                else if (loop_watch(loop, &source->watch, source->watch.fd, i == CHANNEL && process->messages.n ? EPOLLIN | EPOLLOUT : EPOLLIN, &err) < 0)
                        close_source(source);
        }
}

static void source_ready(struct watch *watch, uint32_t events)
{
        struct source *source = watch->owner;
        struct process *process = source->process;
        if (events & EPOLLOUT && send_queue_flush(&process->messages) < 0)
                close_source(source);
        else if (source->kind == GUEST_CHANNEL && events & ~(uint32_t)EPOLLOUT)
                pass_on_message(source);
        else if (source->kind != GUEST_CHANNEL)
                for (int i = 0; i < READS_AT_ONCE && (process->discards_output || !operation_is_full(&process->op)) && pass_on(source) > 0; i++)
                        ;
        if (process->discards_output)
                forget_if_done(process);
        else if (operation_is_full(&process->op))
                listen_to_sources(process, false);
}

static void process_room(struct operation *op)
{
        listen_to_sources((struct process *)op, true);
}

void process_ended(struct guest *guest, pid_t pid, int status)
{
        for (struct process *process = guest->processes; process; process = process->next) {
                if (process->pid != pid)
                        continue;
                process->pid = 0;
                if (process->discards_output) {
                        forget_if_done(process);
                        return;
                }
                drain(process);
                /* Somebody who has the channel from it may go on to write for ever. */
                for (int i = 0; i < MESSAGES_MAX && process->sources[CHANNEL].watch.fd >= 0 && process->sources[CHANNEL].watch.active; i++) {
                        uint8_t byte;
                        if (recv(process->sources[CHANNEL].watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
                                break;
                        pass_on_message(&process->sources[CHANNEL]);
                }
                operation_tell_number(&process->op, GUEST_EXITED, (uint64_t)(unsigned)status);
                process->op.over = true;
                return;
        }
}

/* ---- what goes into it ---- */

static void write_in(struct process *process)
{
        struct csn_error err;
        while (process->rest_at < process->rest.len) {
                ssize_t n = write(process->in.fd, process->rest.bytes + process->rest_at, process->rest.len - process->rest_at);
                if (n < 0 && errno == EINTR)
                        continue;
                bool full = n == 0 || (n < 0 && errno == EAGAIN);
                if (full && loop_watch(process->op.guest->loop, &process->in, process->in.fd, EPOLLOUT, &err) == 0)
                        return;
                if (n <= 0) {
                        /* Nobody reads it any more: what is left of it is of no use, and no error of the writer's. */
                        operation_tell_number(&process->op, GUEST_ROOM, process->rest.len - process->rest_at);
                        close_in(process);
                        return;
                }
                process->rest_at += (size_t)n;
                operation_tell_number(&process->op, GUEST_ROOM, (uint64_t)n);
        }
        loop_unwatch(process->op.guest->loop, &process->in);
        process->rest.len = process->rest_at = 0;
        if (process->in_ends)
                close_in(process);
}

static void connected(struct process *process);

static void in_ready(struct watch *watch, uint32_t events)
{
        struct process *process = watch->owner;
        (void)events;
        if (process->connects)
                connected(process);
        else
                write_in(process);
}

static int take_in(struct process *process, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        if (process->in.fd < 0) {
                operation_tell_number(&process->op, GUEST_ROOM, len);   /* thrown away */
                return 0;
        }
        if (process->rest.len - process->rest_at + len > GUEST_IN_MAX)
                return err_set(err, CSN_E_PROTOCOL, 0, "more standard input came than there is room for");
        if (process->rest_at == process->rest.len)
                process->rest.len = process->rest_at = 0;
        if (process->rest_at > 0) {
                memmove(process->rest.bytes, process->rest.bytes + process->rest_at, process->rest.len - process->rest_at);
                process->rest.len -= process->rest_at;
                process->rest_at = 0;
        }
        buf_add(&process->rest, bytes, len);
        if (!process->connects)
                write_in(process);
        return 0;
}

static void end_in(struct process *process)
{
        static const char end_of_file = 4;   /* VEOF of a terminal in its usual mode */
        process->in_ends = !process->terminal;
        if (process->in.fd < 0 || process->connects)
                return;
        if (process->terminal)
                buf_add(&process->rest, &end_of_file, 1);
        write_in(process);
}

static int take_signal(const struct process *process, uint64_t sig, uint64_t pid, struct csn_error *err)
{
        if (sig == 0 || sig >= NSIG || pid == 1 || pid > INT32_MAX)
                return err_set(err, CSN_E_PROTOCOL, 0, "a signal came that is none");
        if (pid == 0 && process->pid && sig == SIGKILL)
                kill_session(process->pid);
        else if (pid == 0 && process->pid)
                kill(-process->pid, (int)sig);
        else if (pid)
                kill((pid_t)pid, (int)sig);
        return 0;
}

static int process_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        struct process *process = (struct process *)op;
        uint64_t first, second;
        struct source *channel = &process->sources[CHANNEL];
        switch (guest_kind_of(bytes, len)) {
        case GUEST_IN:
                return take_in(process, bytes + 1, len - 1, err);
        case GUEST_IN_END:
                end_in(process);
                return 0;
        case GUEST_CHANNEL:
                /* An execution may be longer than the socket's buffer; a signal that comes behind it must not wait until it is read. */
                if (channel->watch.fd >= 0 && send_queue_put(&process->messages, bytes + 1, len - 1, NULL, 0) < 0 && errno == ENOBUFS)
                        return err_set(err, CSN_E_BUSY, 0, "the interpreter does not read what it is sent");
                return 0;
        case GUEST_SIGNAL:
                return guest_get_pair(bytes, len, &first, &second, err) < 0 ? -err->code : take_signal(process, first, second, err);
        case GUEST_SIZE:
                if (guest_get_pair(bytes, len, &first, &second, err) < 0)
                        return -err->code;
                if (process->terminal)
                        ioctl(process->sources[OUT].watch.fd, TIOCSWINSZ, &(struct winsize){ .ws_row = (uint16_t)first, .ws_col = (uint16_t)second });
                return 0;
        default:
                return err_set(err, CSN_E_PROTOCOL, 0, "a process was sent what is not for it");
        }
}

/* ---- its beginning ---- */

struct ends {
        int in, out, error, channel;   /* the program's */
        int ours_in, ours_out, ours_error, ours_channel;
};

static void ends_done(struct ends *ends)
{
        int *all[] = { &ends->in, &ends->out, &ends->error, &ends->channel, &ends->ours_in, &ends->ours_out, &ends->ours_error, &ends->ours_channel };
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

static int make_ends(struct ends *ends, bool input, bool channel, struct csn_error *err)
{
        if ((input && make_pipe(&ends->in, &ends->ours_in) < 0) || make_pipe(&ends->ours_out, &ends->out) < 0 ||
            make_pipe(&ends->ours_error, &ends->error) < 0 || (channel && make_channel(ends) < 0))
                return err_set(err, errno == EMFILE ? CSN_E_BUSY : CSN_E_SYSTEM, errno, "make the descriptors of a program");
        if (!input && (ends->in = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open /dev/null");
        return 0;
}

static int make_terminal(struct ends *ends, const struct guest_process *what, struct csn_error *err)
{
        const struct winsize size = { .ws_row = (uint16_t)what->rows, .ws_col = (uint16_t)what->columns };
        int unlocked = 0, number;
        char path[32];
        ends->ours_out = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ends->ours_out < 0 || ioctl(ends->ours_out, TIOCSPTLCK, &unlocked) < 0 || ioctl(ends->ours_out, TIOCGPTN, &number) < 0)
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

/* The child's side: never returns; what goes wrong before the program is written to `trouble`, which closes itself by execve(2). */
static _Noreturn void become(const struct guest *guest, const struct guest_process *what, const struct ends *ends, int trouble)
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
                files_error(&err, "start", what->argv[0]);
        }
        io_write_all(kept[4], &err, sizeof err);
        _exit(127);
}

/*
 * Whether a child went on to its program, or could not.  It has the uid of programs that can stop it right there, and must not
 * stop us.  Many short looks, because pausing the sandbox makes one of them as long as the pause.
 */
static bool has_told(int fd)
{
        struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
        for (int i = 0; i < START_LOOKS; i++)
                if (poll(&poll_fd, 1, START_LOOK_MS) > 0)
                        return true;
        return false;
}

static int start(struct process *process, const struct guest_process *what, const struct ends *ends, struct csn_error *err)
{
        int from, to;
        struct csn_error trouble;
        if (make_pipe(&from, &to) < 0)
                return err_set(err, CSN_E_BUSY, errno, "make a pipe");
        auto_fd reading = from;
        auto_fd writing = to;
        pid_t pid = fork();
        if (pid == 0)
                become(process->op.guest, what, ends, writing);
        if (pid < 0)
                return err_set(err, errno == EAGAIN ? CSN_E_BUSY : CSN_E_SYSTEM, errno, "start a process (limits.pids bounds them)");
        fd_close(&writing);
        bool told = has_told(reading);
        if (told && read(reading, &trouble, sizeof trouble) != (ssize_t)sizeof trouble) {
                process->pid = pid;
                return 0;
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, __WALL);
        if (!told)
                return err_set(err, CSN_E_BUSY, 0, "%.100s did not start within %d seconds: something in the sandbox hinders it", what->argv[0],
                               START_LOOKS * START_LOOK_MS / 1000);
        *err = trouble;
        return -err->code;
}

static int listen_to_source(struct process *process, int i, int *fd, struct csn_error *err)
{
        struct source *source = &process->sources[i];
        if (*fd < 0)
                return 0;
        if (fcntl(*fd, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a descriptor non-blocking");
        source->watch.fd = take_fd(fd);
        return loop_watch(process->op.guest->loop, &source->watch, source->watch.fd, EPOLLIN, err);
}

static int listen_to_program(struct process *process, struct ends *ends, struct csn_error *err)
{
        if (ends->ours_in >= 0 && fcntl(ends->ours_in, F_SETFL, O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a descriptor non-blocking");
        process->in.fd = take_fd(&ends->ours_in);
        if (listen_to_source(process, OUT, &ends->ours_out, err) < 0 || listen_to_source(process, ERROR, &ends->ours_error, err) < 0)
                return -err->code;
        return listen_to_source(process, CHANNEL, &ends->ours_channel, err);
}

static struct process *process_new(struct guest *guest)
{
        static const enum guest_kind kinds[SOURCES] = { GUEST_OUT, GUEST_ERROR, GUEST_CHANNEL };
        struct process *process = mem_alloc(sizeof *process);
        process->op.guest = guest;
        process->in = (struct watch){ .fd = -1, .ready = in_ready, .owner = process };
        buf_init(&process->rest, GUEST_IN_MAX + 1);
        for (int i = 0; i < SOURCES; i++)
                process->sources[i] = (struct source){ .watch = { .fd = -1, .ready = source_ready, .owner = &process->sources[i] }, .kind = kinds[i],
                                                       .process = process };
        process->messages = (struct send_queue){ .loop = guest->loop, .watch = &process->sources[CHANNEL].watch };
        process->next = guest->processes;
        guest->processes = process;
        return process;
}

#define NO_ENDS { -1, -1, -1, -1, -1, -1, -1, -1 }

static int launch(struct process *process, const struct guest_process *what, struct ends *ends, struct csn_error *err)
{
        /* Pipes and terminals belong to whoever makes them, and `user` must not open those of root. */
        account_files(process->op.guest, what->flags & GUEST_AS_ROOT);
        int rc = process->terminal ? make_terminal(ends, what, err)
                                   : make_ends(ends, what->flags & GUEST_INPUT, what->flags & GUEST_CHANNELED, err);
        account_files(process->op.guest, false);
        return rc < 0 ? rc : start(process, what, ends, err);
}

void process_begin(struct guest *guest, const struct guest_process *what, int *sock)
{
        static const struct operation_kind kind = { process_take, process_room, process_closed };
        struct process *process = process_new(guest);
        struct ends ends = NO_ENDS;
        struct csn_error err = { 0 };
        if (!operation_open(&process->op, guest, &kind, sock))
                return;
        process->terminal = what->flags & GUEST_TERMINAL;
        bool as_root = what->flags & GUEST_AS_ROOT;
        if (as_root && !guest->has_root) {
                err_set(&err, CSN_E_INPUT, 0, "this sandbox has no root");
                operation_fail(&process->op, &err);
                return;
        }
        int rc = launch(process, what, &ends, &err);
        if (rc < 0 && err.sys == EMFILE) {
                ends_done(&ends);
                processes_let_go(guest);
                rc = launch(process, what, &ends, &err);
        }
        if (rc == 0) {
                operation_tell_number(&process->op, GUEST_STARTED, (uint64_t)process->pid);
                rc = listen_to_program(process, &ends, &err);
        }
        ends_done(&ends);
        if (rc < 0) {
                if (process->pid)
                        kill_session(process->pid);
                operation_fail(&process->op, &err);
        }
}

void stdio_begin(struct guest *guest, int *sock)
{
        static const struct operation_kind kind = { process_take, process_room, stdio_closed };
        static const uint8_t packet[] = { GUEST_ENDS };
        struct process *process = process_new(guest);
        struct ends ends = NO_ENDS;
        struct csn_error err = { 0 };
        if (!operation_open(&process->op, guest, &kind, sock))
                return;
        int rc = make_ends(&ends, false, true, &err);
        if (rc < 0 && err.sys == EMFILE) {
                ends_done(&ends);
                processes_let_go(guest);
                rc = make_ends(&ends, false, true, &err);
        }
        const int fds[] = { ends.out, ends.error, ends.channel };
        if (rc == 0 && operation_send(&process->op, packet, sizeof packet, fds, ARRAY_LEN(fds)))
                rc = listen_to_program(process, &ends, &err);
        ends_done(&ends);
        if (rc < 0)
                operation_fail(&process->op, &err);
}

/* ---- connections ---- */

static void connection_closed(struct operation *op)
{
        struct process *process = (struct process *)op;
        close_source(&process->sources[OUT]);
        discard_output(process);
}

static void connection_over(struct process *process)
{
        if (process->op.kind->closed == connection_closed)
                operation_tell(&process->op, GUEST_DONE);
}

/* Without waiting: 0, or an errno. */
static int try_to_connect(struct process *process)
{
        const struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)process->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        const struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)process->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT };
        const struct sockaddr *address = process->six ? (const struct sockaddr *)&v6 : (const struct sockaddr *)&v4;
        fd_close(&process->in.fd);
        process->in.fd = socket(process->six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (process->in.fd < 0)
                return errno;
        return connect(process->in.fd, address, process->six ? sizeof v6 : sizeof v4) < 0 ? errno : 0;
}

static void connection_failed(struct process *process, int sys)
{
        struct csn_error err;
        err_set(&err, sys == EMFILE ? CSN_E_BUSY : CSN_E_INPUT, 0, "connect to port %u: %s", (unsigned)process->port,
                sys == ECONNREFUSED ? "nobody listens there" : strerrordesc_np(sys));
        err.sys = sys;
        operation_fail(&process->op, &err);
}

static void connection_made(struct process *process)
{
        struct csn_error err;
        int reading = fcntl(process->in.fd, F_DUPFD_CLOEXEC, 0);
        if (reading < 0) {
                connection_failed(process, errno);
                return;
        }
        operation_tell_number(&process->op, GUEST_STARTED, process->port);
        if (listen_to_source(process, OUT, &reading, &err) < 0)
                operation_fail(&process->op, &err);
        else
                write_in(process);
}

/* What came of an attempt.  Who does not listen by IPv4 may do so by IPv6. */
static void connection_tried(struct process *process, int sys)
{
        struct csn_error err;
        process->connects = false;
        if (sys == ECONNREFUSED && !process->six) {
                process->six = true;
                sys = try_to_connect(process);
                if (sys == EAFNOSUPPORT || sys == EADDRNOTAVAIL)
                        sys = ECONNREFUSED;
        }
        if (sys == 0) {
                connection_made(process);
        } else if (sys != EINPROGRESS) {
                connection_failed(process, sys);
        } else {
                process->connects = true;
                if (loop_watch(process->op.guest->loop, &process->in, process->in.fd, EPOLLOUT, &err) < 0)
                        operation_fail(&process->op, &err);
        }
}

static void connected(struct process *process)
{
        int sys = 0;
        socklen_t len = sizeof sys;
        loop_unwatch(process->op.guest->loop, &process->in);
        connection_tried(process, getsockopt(process->in.fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0 ? errno : sys);
}

void connection_begin(struct guest *guest, uint64_t port, int *sock)
{
        static const struct operation_kind kind = { process_take, process_room, connection_closed };
        struct process *process = process_new(guest);
        process->port = port;
        if (operation_open(&process->op, guest, &kind, sock))
                connection_tried(process, port && port <= UINT16_MAX ? try_to_connect(process) : EINVAL);
}
