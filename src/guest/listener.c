/*
 * Sockets for connections of programs to the engine: the tool socket, and the port of the proxy.  The guest reports
 * each connection by a number, and the engine takes the connection by ACCEPT.  Until then connections wait here, and
 * beyond LISTENER_WAITING_MAX in the kernel.
 */
#include "guest/guest.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LISTENER_WAITING_MAX 64
#define BACKLOG 1024

struct waiting {
        struct waiting *next;
        uint64_t number;
        int fd;
};

struct listener {
        struct operation op;
        struct listener *next;
        struct watch sock;
        struct waiting *waiting;
        size_t waiting_n;
};

static void listener_closed(struct operation *op)
{
        struct listener *listener = (struct listener *)op;
        struct guest *guest = op->guest;
        for (struct listener **at = &guest->listeners; *at; at = &(*at)->next)
                if (*at == listener) {
                        *at = listener->next;
                        break;
                }
        loop_unwatch(guest->loop, &listener->sock);
        fd_close(&listener->sock.fd);
        while (listener->waiting) {
                struct waiting *next = listener->waiting->next;
                fd_close(&listener->waiting->fd);
                free(listener->waiting);
                listener->waiting = next;
        }
        operation_release(op);
        free(listener);
}

static int listener_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        (void)op, (void)bytes, (void)len;
        return err_set(err, CSN_E_PROTOCOL, 0, "a listener was sent a packet");
}

static void listener_room(struct operation *op)
{
        (void)op;
}

static void listener_ready(struct watch *watch, uint32_t events)
{
        static uint64_t number;
        struct listener *listener = watch->owner;
        (void)events;
        /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0) {
                if (errno == EMFILE)
                        processes_let_go(listener->op.guest);
                return;
        }
        struct waiting *waiting = mem_alloc(sizeof *waiting);
        number++;
        *waiting = (struct waiting){ .next = listener->waiting, .number = number, .fd = fd };
        listener->waiting = waiting;
        if (++listener->waiting_n == LISTENER_WAITING_MAX)
                loop_unwatch(listener->op.guest->loop, watch);
        operation_tell_number(&listener->op, GUEST_CONNECTION, waiting->number);
}

static int open_socket(uint64_t port, struct csn_error *err)
{
        const struct sockaddr_in loopback = {
                .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)
        };
        const struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = WIRE_TOOL_SOCKET_PATH };
        if (port > UINT16_MAX)
                return err_set(err, CSN_E_INPUT, 0, "there is no port %" PRIu64, port);
        auto_fd sock = socket(port ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (sock < 0 ||
                bind(sock, port ? (const struct sockaddr *)&loopback : (const struct sockaddr *)&path,
                        port ? sizeof loopback : sizeof path) < 0 ||
                listen(sock, BACKLOG) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen on port %" PRIu64 " (0: " WIRE_TOOL_SOCKET_PATH ")",
                        port);
        if (!port && chmod(WIRE_TOOL_SOCKET_PATH, 0666) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "let programs write to " WIRE_TOOL_SOCKET_PATH);
        return take_fd(&sock);
}

void listener_begin(struct guest *guest, uint64_t port, int *sock)
{
        static const struct operation_kind kind = { listener_take, listener_room, listener_closed };
        struct listener *listener = mem_alloc(sizeof *listener);
        struct csn_error err;
        listener->sock = (struct watch){ .fd = -1, .ready = listener_ready, .owner = listener };
        listener->next = guest->listeners;
        guest->listeners = listener;
        if (!operation_open(&listener->op, guest, &kind, sock))
                return;
        int fd = open_socket(port, &err);
        if (fd >= 0)
                listener->sock.fd = fd;
        if (fd < 0 || loop_watch(guest->loop, &listener->sock, fd, EPOLLIN, &err) < 0)
                operation_fail(&listener->op, &err);
        else
                operation_tell_number(&listener->op, GUEST_STARTED, port);
}

/* The descriptor of a waiting connection, which becomes the caller's; -1: none. */
static int take_waiting(struct listener *listener, uint64_t number)
{
        struct csn_error err;
        for (struct waiting **at = &listener->waiting; *at; at = &(*at)->next) {
                struct waiting *waiting = *at;
                if (waiting->number != number)
                        continue;
                int fd = waiting->fd;
                *at = waiting->next;
                free(waiting);
                if (listener->waiting_n-- == LISTENER_WAITING_MAX)
                        loop_watch(listener->op.guest->loop, &listener->sock, listener->sock.fd, EPOLLIN, &err);
                return fd;
        }
        return -1;
}

void accept_begin(struct guest *guest, uint64_t number, int *sock)
{
        int fd = -1;
        for (struct listener *listener = guest->listeners; listener && fd < 0; listener = listener->next)
                fd = take_waiting(listener, number);
        connection_adopt(guest, &fd, sock);
}
