/*
 * Connections of programs to the tool socket and to the proxy.  The guest listens inside, and the engine listens on a
 * socket in a private folder of this host; a connection inside becomes a connection to that socket, and its bytes are
 * passed on.  So the broker of tools and the proxy serve containers as they serve sandboxes.
 */
#include "backend/docker/run.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CONNECTIONS_MAX 256
#define CONNECTION_MAX (256 * MIB) /* run->flow() bounds all connections together long before */
#define BACKLOG 128

struct run_connection {
        struct run_connection *next;
        struct docker_run *run;
        struct guest_op op;
        struct watch watch; /* the connection on this host */
        struct buf out;     /* bytes of the program, from out_at on */
        size_t out_at;
        uint64_t room; /* window of the guest, in bytes */
        bool program_ended, host_ended;
};

static void connection_free(struct run_connection *connection)
{
        struct docker_run *run = connection->run;
        for (struct run_connection **at = &run->connections; *at; at = &(*at)->next)
                if (*at == connection) {
                        *at = connection->next;
                        break;
                }
        guest_op_end(&connection->op);
        run->connections_waiting -= connection->out.len - connection->out_at;
        loop_unwatch(run->link->loop, &connection->watch);
        fd_close(&connection->watch.fd);
        buf_done(&connection->out);
        free(connection);
        run->flow(run);
}

/* Watch for the events needed.  False: the connection is over, and freed. */
static bool watch_connection(struct run_connection *connection)
{
        size_t left = connection->out.len - connection->out_at;
        uint32_t events = (connection->room && !connection->host_ended ? EPOLLIN : 0) | (left ? EPOLLOUT : 0);
        if (connection->program_ended && !left) {
                shutdown(connection->watch.fd, SHUT_WR);
                if (connection->host_ended || !guest_op_is_on(&connection->op)) {
                        connection_free(connection);
                        return false;
                }
        }
        if (!events)
                loop_unwatch(connection->run->link->loop, &connection->watch);
        else if (loop_watch(connection->run->link->loop, &connection->watch, connection->watch.fd, events, NULL) < 0) {
                connection_free(connection);
                return false;
        }
        return true;
}

/* Write the program's bytes to the connection on this host.  False: the connection is over, and freed. */
static bool write_out(struct run_connection *connection)
{
        while (connection->out_at < connection->out.len) {
                ssize_t n = send(connection->watch.fd, connection->out.bytes + connection->out_at,
                        connection->out.len - connection->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0) {
                        connection_free(connection);
                        return false;
                }
                connection->out_at += (size_t)n;
                connection->run->connections_waiting -= (size_t)n;
        }
        if (connection->out_at == connection->out.len)
                connection->out.len = connection->out_at = 0;
        connection->run->flow(connection->run);
        return watch_connection(connection);
}

/* Pass bytes from this host to the guest.  False: the connection is over, and freed. */
static bool read_in(struct run_connection *connection)
{
        static uint8_t packet[GUEST_PACKET_MAX];
        static const uint8_t end = GUEST_IN_END;
        packet[0] = GUEST_IN;
        while (connection->room && !connection->host_ended) {
                ssize_t n =
                        recv(connection->watch.fd, packet + 1, min_u64(GUEST_DATA_MAX, connection->room), MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n <= 0) {
                        guest_op_send(&connection->op, &end, 1);
                        connection->host_ended = true;
                        break;
                }
                connection->room -= (uint64_t)n;
                guest_op_send(&connection->op, packet, (size_t)n + 1);
        }
        return watch_connection(connection);
}

static void connection_ready(struct watch *watch, uint32_t events)
{
        struct run_connection *connection = watch->owner;
        if (events & EPOLLOUT && !write_out(connection))
                return;
        if (events & ~(uint32_t)EPOLLOUT)
                read_in(connection);
}

static void on_accepted(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct run_connection *connection = op->owner;
        uint64_t number;
        struct csn_error err;
        switch (bytes ? guest_kind_of(bytes, len) : GUEST_FAILED) {
        case GUEST_STARTED:
                break;
        case GUEST_OUT:
                if (buf_add(&connection->out, bytes + 1, len - 1)) {
                        connection->run->connections_waiting += len - 1;
                        write_out(connection);
                } else {
                        connection_free(connection);
                }
                break;
        case GUEST_ROOM:
                if (guest_get_number(bytes, len, &number, &err) == 0 && number <= GUEST_IN_MAX - connection->room) {
                        connection->room += number;
                        watch_connection(connection);
                }
                break;
        case GUEST_IN_END:
                connection->program_ended = true;
                watch_connection(connection);
                break;
        case GUEST_DONE:
                guest_op_end(op);
                watch_connection(connection);
                break;
        default:
                connection_free(connection);
        }
}

static int connect_here(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
                return -1;
        return take_fd(&fd);
}

static void take_connection(struct run_socket *socket_, uint64_t number)
{
        struct docker_run *run = socket_->run;
        struct buf request;
        size_t n = 0;
        for (const struct run_connection *one = run->connections; one; one = one->next)
                n++;
        int fd = n < CONNECTIONS_MAX ? connect_here(socket_->path) : -1;
        struct run_connection *connection = mem_alloc(sizeof *connection);
        *connection = (struct run_connection){ .next = run->connections,
                .run = run,
                .op = { .heard = on_accepted, .owner = connection },
                .watch = { .fd = fd, .ready = connection_ready, .owner = connection },
                .room = GUEST_IN_MAX };
        buf_init(&connection->out, CONNECTION_MAX);
        run->connections = connection;
        buf_init(&request, 64);
        if (guest_put_number(&request, GUEST_ACCEPT, number))
                guest_op_begin(&run->container->guest, &connection->op, &request);
        buf_done(&request);
        /* Without a counterpart the program sees the end of its connection. */
        if (fd < 0)
                connection_free(connection);
        else
                watch_connection(connection);
}

static void on_listening(struct guest_op *op, const uint8_t *bytes, size_t len)
{
        struct run_socket *socket_ = op->owner;
        struct docker_run *run = socket_->run;
        uint64_t number;
        struct csn_error err, error;
        enum guest_kind kind = bytes ? guest_kind_of(bytes, len) : 0;
        if (kind == GUEST_STARTED) {
                socket_->listens = true;
                run_sockets_listen(run);
        } else if (kind == GUEST_CONNECTION && guest_get_number(bytes, len, &number, &err) == 0) {
                take_connection(socket_, number);
        } else {
                if (kind != GUEST_FAILED || guest_get_error(bytes, len, &error, &err) < 0)
                        err_set(&error, CSN_E_PROTOCOL, 0, "process 1 of the container does not listen for programs");
                run->fail(run, &error);
        }
}

void run_sockets_listen(struct docker_run *run)
{
        struct buf request;
        for (size_t i = 0; i < ARRAY_LEN(run->sockets); i++) {
                struct run_socket *socket_ = &run->sockets[i];
                if (!socket_->wanted || socket_->listens)
                        continue;
                if (guest_op_is_on(&socket_->op))
                        return;
                buf_init(&request, 64);
                socket_->op.heard = on_listening;
                socket_->op.owner = socket_;
                if (guest_put_number(&request, GUEST_LISTEN, socket_->port))
                        guest_op_begin(&run->container->guest, &socket_->op, &request);
                buf_done(&request);
                return;
        }
        if (run->step == STEP_LISTEN)
                run->go(run, STEP_PROGRAM);
}

static int listen_here(const char *path, struct csn_error *err)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
        auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) < 0 || listen(fd, BACKLOG) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen at %s", path);
        return take_fd(&fd);
}

int run_sockets_open(struct docker_run *run, uint64_t flags, struct backend_ends *ends, struct csn_error *err)
{
        const struct {
                uint64_t flag, port;
                const char *name;
                int *end;
        } sockets[] = { { WIRE_PROXY, WIRE_PROXY_PORT, "proxy", &ends->proxy },
                { WIRE_TOOL_SOCKET, 0, "tools", &ends->tool_socket } };
        if (!(flags & (WIRE_PROXY | WIRE_TOOL_SOCKET)))
                return 0;
        snprintf(run->sockets_folder, sizeof run->sockets_folder, "/var/tmp/caisson-sockets-XXXXXX");
        if (!mkdtemp(run->sockets_folder)) {
                run->sockets_folder[0] = 0;
                return err_set(err, CSN_E_SYSTEM, errno, "make a folder for sockets in /var/tmp");
        }
        for (size_t i = 0; i < ARRAY_LEN(sockets); i++) {
                struct run_socket *socket_ = &run->sockets[i];
                if (!(flags & sockets[i].flag))
                        continue;
                *socket_ = (struct run_socket){ .run = run, .port = sockets[i].port, .wanted = true };
                snprintf(socket_->path, sizeof socket_->path, "%s/%s", run->sockets_folder, sockets[i].name);
                *sockets[i].end = listen_here(socket_->path, err);
                if (*sockets[i].end < 0)
                        return -err->code;
        }
        return 0;
}

void run_sockets_close(struct docker_run *run)
{
        for (struct run_connection *connection = run->connections, *next; connection; connection = next) {
                next = connection->next;
                connection_free(connection);
        }
        for (size_t i = 0; i < ARRAY_LEN(run->sockets); i++)
                guest_op_end(&run->sockets[i].op);
        if (run->sockets_folder[0])
                io_remove_tree(AT_FDCWD, run->sockets_folder);
        run->sockets_folder[0] = 0;
}
