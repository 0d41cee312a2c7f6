/* A connection to a program listening on a port: the guest relays bytes as for a program with pipes. */
#include "guest/process.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static void connection_closed(struct operation *op)
{
        struct process *process = (struct process *)op;
        process_close_source(&process->sources[OUT]);
        process_discard_output(process);
}

/* Without waiting: 0, or an errno. */
static int try_to_connect(struct process *process)
{
        const struct sockaddr_in v4 = { .sin_family = AF_INET,
                .sin_port = htons((uint16_t)process->port),
                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        const struct sockaddr_in6 v6 = {
                .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)process->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT
        };
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
        if (process_listen_to(process, OUT, &reading, &err) < 0)
                operation_fail(&process->op, &err);
        else
                process_write_in(process);
}

/* The result of an attempt, 0 or an errno.  A program not listening on IPv4 may listen on IPv6. */
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

/* `in` is ready: the attempt has ended, or the connection takes bytes again. */
static void connection_ready(struct watch *watch, uint32_t events)
{
        struct process *process = watch->owner;
        int sys = 0;
        socklen_t len = sizeof sys;
        (void)events;
        if (!process->connects) {
                process_write_in(process);
                return;
        }
        loop_unwatch(process->op.guest->loop, &process->in);
        connection_tried(process, getsockopt(process->in.fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0 ? errno : sys);
}

void connection_begin(struct guest *guest, uint64_t port, int *sock)
{
        static const struct operation_kind kind = { process_take, process_room, connection_closed };
        struct process *process = process_new(guest);
        process->port = port;
        process->in.ready = connection_ready;
        if (operation_open(&process->op, guest, &kind, sock))
                connection_tried(process, port && port <= UINT16_MAX ? try_to_connect(process) : EINVAL);
}

void connection_adopt(struct guest *guest, int *fd, int *sock)
{
        static const struct operation_kind kind = { process_take, process_room, connection_closed };
        struct process *process = process_new(guest);
        struct csn_error err;
        process->port = UINT16_MAX + 1;
        process->in.ready = connection_ready;
        process->in.fd = take_fd(fd);
        if (!operation_open(&process->op, guest, &kind, sock))
                return;
        if (fcntl(process->in.fd, F_SETFL, O_NONBLOCK) < 0)
                operation_fail(&process->op,
                        (err_set(&err, CSN_E_SYSTEM, errno, "make a connection non-blocking"), &err));
        else
                connection_made(process);
}
