/*
 * Reports to programs inside whether the interpreter of the sandbox is there: GET /health on a port of all addresses,
 * for clients knowing only a port.  The guest starts interpreters, so the guest answers.  All other requests get 404:
 * requests to an interpreter come from outside.
 *
 * A connection has a single request.  Above HEALTH_CLIENTS_MAX connections a new connection replaces the oldest, so a
 * silent client keeps no other client away.
 */
#include "guest/guest.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define HEALTH_CLIENTS_MAX 16
#define HEAD_MAX 4096

struct health_client {
        struct health_client *next;          /* the previous connection */
        struct health *health;
        struct watch sock;
        char head[HEAD_MAX + 1];
        size_t len;
        bool answered; /* later input is discarded, for closing with unread input would be a reset */
};

struct health {
        struct operation op;
        struct watch listener;
        struct health_client *health_clients;
        size_t n;
};

static void health_client_free(struct health_client *health_client)
{
        for (struct health_client **at = &health_client->health->health_clients; *at; at = &(*at)->next)
                if (*at == health_client) {
                        *at = health_client->next;
                        health_client->health->n--;
                        break;
                }
        loop_unwatch(health_client->health->op.guest->loop, &health_client->sock);
        fd_close(&health_client->sock.fd);
        free(health_client);
}

static void answer(struct health_client *health_client)
{
        static const char good[] =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\nConnection: close\r\n\r\n\"OK\"";
        static const char bad[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        bool asks = strncmp(health_client->head, "GET /health ", 12) == 0 ||
                strncmp(health_client->head, "GET /health?", 12) == 0;
        health_client->answered = true;
        if (send(health_client->sock.fd, asks ? good : bad, asks ? sizeof good - 1 : sizeof bad - 1, MSG_NOSIGNAL) <
                        0 ||
                shutdown(health_client->sock.fd, SHUT_WR) < 0)
                health_client_free(health_client);
}

static void health_client_ready(struct watch *watch, uint32_t events)
{
        struct health_client *health_client = watch->owner;
        (void)events;
        if (health_client->answered)
                health_client->len = 0;
        ssize_t n = recv(watch->fd, health_client->head + health_client->len, HEAD_MAX - health_client->len, 0);
        if (n < 0 && errno == EAGAIN)
                return;
        if (n <= 0) {
                health_client_free(health_client);
                return;
        }
        health_client->len += (size_t)n;
        health_client->head[health_client->len] = 0;
        if (!health_client->answered && (health_client->len == HEAD_MAX || strstr(health_client->head, "\r\n\r\n")))
                answer(health_client);
}

static void listener_ready(struct watch *watch, uint32_t events)
{
        struct health *health = watch->owner;
        struct csn_error err;
        (void)events;
        /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
        int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
                return;
        struct health_client *health_client = mem_alloc(sizeof *health_client), *oldest = health->health_clients;
        while (oldest && oldest->next)
                oldest = oldest->next;
        if (health->n == HEALTH_CLIENTS_MAX)
                health_client_free(oldest);
        health_client->next = health->health_clients;
        health_client->health = health;
        health_client->sock = (struct watch){ .fd = fd, .ready = health_client_ready, .owner = health_client };
        health->health_clients = health_client;
        health->n++;
        if (loop_watch(health->op.guest->loop, &health_client->sock, fd, EPOLLIN, &err) < 0)
                health_client_free(health_client);
}

static int open_listener(struct health *health, uint64_t port, struct csn_error *err)
{
        const struct sockaddr_in address = {
                .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_ANY)
        };
        const int on = 1;
        health->listener.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (health->listener.fd < 0 || setsockopt(health->listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
                bind(health->listener.fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
                listen(health->listener.fd, HEALTH_CLIENTS_MAX) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen on port %u", (unsigned)port);
        return loop_watch(health->op.guest->loop, &health->listener, health->listener.fd, EPOLLIN, err);
}

static int health_take(struct operation *op, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        (void)op, (void)bytes, (void)len;
        return err_set(err, CSN_E_PROTOCOL, 0, "an answer about health was sent what is not for it");
}

static void health_room(struct operation *op)
{
        (void)op;
}

static void health_closed(struct operation *op)
{
        struct health *health = (struct health *)op;
        while (health->health_clients) {
                struct health_client *health_client = health->health_clients;
                health->health_clients = health_client->next;
                health_client_free(health_client);
        }
        loop_unwatch(op->guest->loop, &health->listener);
        fd_close(&health->listener.fd);
        operation_release(op);
        free(health);
}

void health_begin(struct guest *guest, uint64_t port, int *sock)
{
        static const struct operation_kind kind = { health_take, health_room, health_closed };
        struct health *health = mem_alloc(sizeof *health);
        struct csn_error err = { 0 };
        health->listener = (struct watch){ .fd = -1, .ready = listener_ready, .owner = health };
        if (!operation_open(&health->op, guest, &kind, sock))
                return;
        if (port == 0 || port > UINT16_MAX)
                err_set(&err, CSN_E_INPUT, EINVAL, "port %u", (unsigned)min_u64(port, UINT32_MAX));
        else
                open_listener(health, port, &err);
        if (err.code)
                operation_fail(&health->op, &err);
        else
                operation_tell_number(&health->op, GUEST_STARTED, 1);
}
