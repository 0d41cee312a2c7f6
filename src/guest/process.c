/* Programs: input, output, signals and end.  And the same descriptors for an interpreter from outside. */
#include "guest/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

#define MESSAGES_MAX 1024      /* more than the channel's buffer can hold */
#define READS_AT_ONCE 8        /* of 64 KiB, before other sources have their turn */
#define DRAIN_MAX MIB          /* bytes of a pipe sent before a message of the channel, or before the end */
#define KILL_PASSES_MAX 100

/* ---- end ---- */

/*
 * Signal all processes of a session.  Returns a sum over their pids: two passes over the same processes return the
 * same sum.
 */
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
 * Kill a session, not only a process group: a shell with job control gives each job a process group of its own.  A
 * process forked during a pass is found by the next pass.  The passes end when only unreaped processes are left.
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

void process_close_source(struct source *source)
{
        loop_unwatch(source->process->op.guest->loop, &source->watch);
        fd_close(&source->watch.fd);
        if (source->kind == GUEST_CHANNEL)
                send_queue_done(&source->process->messages);
}

static void close_in(struct process *process)
{
        if (process->port)
                shutdown(process->in.fd, SHUT_WR);   /* reading goes on, by the duplicate in sources[OUT] */
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

/* Free a process once its operation is over, its program has ended, and its output is closed. */
static void forget_if_done(struct process *process)
{
        bool open = false;
        for (int i = 0; i < SOURCES; i++)
                open = open || process->sources[i].watch.fd >= 0;
        if (process->discards_output && !process->pid && !open)
                forget(process);
}

void process_discard_output(struct process *process)
{
        struct csn_error err;
        close_in(process);
        operation_release(&process->op);
        process->discards_output = true;
        process_close_source(&process->sources[CHANNEL]);
        for (int i = 0; i < SOURCES; i++) {
                struct source *source = &process->sources[i];
                if (source->watch.fd >= 0 &&
                        (process->terminal ||
                                loop_watch(process->op.guest->loop, &source->watch, source->watch.fd, EPOLLIN, &err) <
                                        0))
                        process_close_source(source);
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
                        process_close_source(&process->sources[i]);
                forget_if_done(process);
        }
}

static void process_closed(struct operation *op)
{
        struct process *process = (struct process *)op;
        if (process->pid)
                kill_session(process->pid);
        process_discard_output(process);
}

static void stdio_closed(struct operation *op)
{
        process_discard_output((struct process *)op);
}

/* ---- output ---- */

/*
 * A connection has ended in one direction.  For a connection of the guest's own the end of the program's bytes is the
 * end; a connection to a listener goes on until both directions have ended.
 */
static void tell_end(struct process *process)
{
        bool open = process->port > UINT16_MAX && process->in.fd >= 0;
        operation_tell(&process->op, open ? GUEST_IN_END : GUEST_DONE);
}

/* Send at most one packet of output.  Returns its bytes; 0: no output now, or the source is closed. */
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
        if (n == 0 || errno != EAGAIN) { /* EIO: the last process has closed the terminal */
                process_close_source(source);
                if (process->port)
                        tell_end(process);
        }
        return 0;
}

/* Output written before an event is sent before the event.  A terminal is read in pieces of 4 KiB. */
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
        drain(process);   /* first: the sender may write more output as soon as its message was received */
        ssize_t n = wire_receive_packet(source->watch.fd, packet + 1, sizeof packet - 1, MSG_DONTWAIT | MSG_TRUNC);
        if (n < 0 && errno == EAGAIN)
                return;
        if (n > 0 && n < (ssize_t)sizeof packet) {
                packet[0] = GUEST_CHANNEL;
                operation_send(&process->op, packet, (size_t)n + 1, NULL, 0);
                return;
        }
        process_close_source(source);
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
                else if (loop_watch(loop, &source->watch, source->watch.fd,
                                 i == CHANNEL && process->messages.n ? EPOLLIN | EPOLLOUT : EPOLLIN, &err) < 0)
                        process_close_source(source);
        }
}

static void source_ready(struct watch *watch, uint32_t events)
{
        struct source *source = watch->owner;
        struct process *process = source->process;
        if (events & EPOLLOUT && send_queue_flush(&process->messages) < 0)
                process_close_source(source);
        else if (source->kind == GUEST_CHANNEL && events & ~(uint32_t)EPOLLOUT)
                pass_on_message(source);
        else if (source->kind != GUEST_CHANNEL)
                for (int i = 0; i < READS_AT_ONCE && (process->discards_output || !operation_is_full(&process->op)) &&
                        pass_on(source) > 0;
                        i++)
                        ;
        if (process->discards_output)
                forget_if_done(process);
        else if (operation_is_full(&process->op))
                listen_to_sources(process, false);
}

void process_room(struct operation *op)
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
                /* At most MESSAGES_MAX: a process with an inherited channel may write without end. */
                for (int i = 0; i < MESSAGES_MAX && process->sources[CHANNEL].watch.fd >= 0 &&
                        process->sources[CHANNEL].watch.active;
                        i++) {
                        uint8_t byte;
                        if (wire_receive_packet(process->sources[CHANNEL].watch.fd, &byte, 1,
                                    MSG_PEEK | MSG_DONTWAIT) <= 0)
                                break;
                        pass_on_message(&process->sources[CHANNEL]);
                }
                operation_tell_number(&process->op, GUEST_EXITED, (uint64_t)(unsigned)status);
                process->op.over = true;
                return;
        }
}

/* ---- input ---- */

void process_write_in(struct process *process)
{
        struct csn_error err;
        while (process->rest_at < process->rest.len) {
                ssize_t n = write(process->in.fd, process->rest.bytes + process->rest_at,
                        process->rest.len - process->rest_at);
                if (n < 0 && errno == EINTR)
                        continue;
                bool full = n == 0 || (n < 0 && errno == EAGAIN);
                if (full && loop_watch(process->op.guest->loop, &process->in, process->in.fd, EPOLLOUT, &err) == 0)
                        return;
                if (n <= 0) {
                        /* The program does not read any more: the rest is dropped, which is no error of the writer. */
                        operation_tell_number(&process->op, GUEST_ROOM, process->rest.len - process->rest_at);
                        close_in(process);
                        return;
                }
                process->rest_at += (size_t)n;
                operation_tell_number(&process->op, GUEST_ROOM, (uint64_t)n);
        }
        loop_unwatch(process->op.guest->loop, &process->in);
        process->rest.len = process->rest_at = 0;
        if (!process->in_ends)
                return;
        close_in(process);
        if (process->port > UINT16_MAX && process->sources[OUT].watch.fd < 0)
                tell_end(process);
}

static void in_ready(struct watch *watch, uint32_t events)
{
        (void)events;
        process_write_in(watch->owner);
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
                memmove(process->rest.bytes, process->rest.bytes + process->rest_at,
                        process->rest.len - process->rest_at);
                process->rest.len -= process->rest_at;
                process->rest_at = 0;
        }
        buf_add(&process->rest, bytes, len);
        if (!process->connects)
                process_write_in(process);
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
        process_write_in(process);
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

int process_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
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
                /*
                 * An execution may exceed the socket's buffer, so the rest is queued: a later signal must not wait
                 * for the reader.
                 */
                if (channel->watch.fd >= 0 && send_queue_put(&process->messages, bytes + 1, len - 1, NULL, 0) < 0 &&
                        errno == ENOBUFS)
                        return err_set(err, CSN_E_BUSY, 0, "the interpreter does not read what it is sent");
                return 0;
        case GUEST_SIGNAL:
                return guest_get_pair(bytes, len, &first, &second, err) < 0 ? -err->code
                                                                            : take_signal(process, first, second, err);
        case GUEST_SIZE:
                if (guest_get_pair(bytes, len, &first, &second, err) < 0)
                        return -err->code;
                if (process->terminal)
                        ioctl(process->sources[OUT].watch.fd, TIOCSWINSZ,
                                &(struct winsize){ .ws_row = (uint16_t)first, .ws_col = (uint16_t)second });
                return 0;
        default:
                return err_set(err, CSN_E_PROTOCOL, 0, "a process was sent what is not for it");
        }
}

/* ---- begin ---- */

int process_listen_to(struct process *process, int i, int *fd, struct csn_error *err)
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
        if (process_listen_to(process, OUT, &ends->ours_out, err) < 0 ||
                process_listen_to(process, ERROR, &ends->ours_error, err) < 0)
                return -err->code;
        return process_listen_to(process, CHANNEL, &ends->ours_channel, err);
}

struct process *process_new(struct guest *guest)
{
        static const enum guest_kind kinds[SOURCES] = { GUEST_OUT, GUEST_ERROR, GUEST_CHANNEL };
        struct process *process = mem_alloc(sizeof *process);
        process->op.guest = guest;
        process->in = (struct watch){ .fd = -1, .ready = in_ready, .owner = process };
        buf_init(&process->rest, GUEST_IN_MAX + 1);
        for (int i = 0; i < SOURCES; i++)
                process->sources[i] =
                        (struct source){ .watch = { .fd = -1, .ready = source_ready, .owner = &process->sources[i] },
                                .kind = kinds[i],
                                .process = process };
        process->messages = (struct send_queue){ .loop = guest->loop, .watch = &process->sources[CHANNEL].watch };
        process->next = guest->processes;
        guest->processes = process;
        return process;
}

static int launch(struct process *process, const struct guest_process *what, struct ends *ends, struct csn_error *err)
{
        /* The creator owns pipes and terminals, and `user` must not open pipes and terminals of root. */
        account_files(process->op.guest, what->flags & GUEST_AS_ROOT);
        int rc = process->terminal ? ends_make_terminal(ends, what, err)
                                   : ends_make(ends, what->flags & GUEST_INPUT, what->flags & GUEST_CHANNELED, err);
        account_files(process->op.guest, false);
        return rc < 0 ? rc : spawn(process->op.guest, what, ends, &process->pid, err);
}

void process_begin(struct guest *guest, const struct guest_process *what, int *sock)
{
        static const struct operation_kind kind = { process_take, process_room, process_closed };
        struct process *process = process_new(guest);
        struct ends ends = ENDS_NONE;
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
        struct ends ends = ENDS_NONE;
        struct csn_error err = { 0 };
        if (!operation_open(&process->op, guest, &kind, sock))
                return;
        int rc = ends_make(&ends, false, true, &err);
        if (rc < 0 && err.sys == EMFILE) {
                ends_done(&ends);
                processes_let_go(guest);
                rc = ends_make(&ends, false, true, &err);
        }
        const int fds[] = { ends.out, ends.error, ends.channel };
        if (rc == 0 && operation_send(&process->op, packet, sizeof packet, fds, ARRAY_LEN(fds)))
                rc = listen_to_program(process, &ends, &err);
        ends_done(&ends);
        if (rc < 0)
                operation_fail(&process->op, &err);
}
