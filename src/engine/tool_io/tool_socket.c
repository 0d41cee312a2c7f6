/*
 * Requests of programs inside, one a connection: accept, read, ask the owner, write his answer.
 *
 * As in proxy.c a connection is freed only by its own timer; all other code may end it and still look at it.
 */
#include "engine/tool_io/tool_socket.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define HEAD 4
#define ACCEPTS_AT_ONCE 16
#define AGAIN_US 100000            /* accept(2) found no room in this process */
#define READS_AT_ONCE 16
#define READ_SIZE (64 * KIB)

enum conn_state {
        CONN_READING,
        CONN_ASKING,               /* its owner has it */
        CONN_WRITING,
        CONN_OVER,                 /* to be freed */
};

struct conn {
        struct tool_socket_call call;    /* the first member: a call is its connection */
        struct tool_socket *tool_socket;
        struct conn *next;
        enum conn_state state;
        struct watch watch;
        struct timer timer;
        uint8_t head[HEAD];
        size_t head_n;             /* bytes of it that are there; then written */
        struct buf text;           /* the request, then the answer */
        size_t size;               /* of the request; counted in tool_socket->bytes */
        size_t sent;               /* of the answer */
        bool waits;                /* there is no room for its request now */
};

struct tool_socket {
        struct loop *loop;
        struct watch listener;
        struct timer again;
        size_t message_max;
        const struct tool_socket_events *events;
        void *owner;
        struct conn *conns;
        size_t conns_n, bytes;
        uint64_t left;             /* connections that may still come */
        bool asked;                /* one has come */
};

/* ---- the life of a connection ---- */

static void listen_more(struct tool_socket *tool_socket)
{
        if (tool_socket->listener.active || tool_socket->listener.fd < 0 ||
                tool_socket->conns_n >= TOOL_SOCKET_CONNECTIONS_MAX)
                return;
        if (loop_watch(tool_socket->loop, &tool_socket->listener, tool_socket->listener.fd, EPOLLIN, NULL) < 0)
                loop_timer(tool_socket->loop, &tool_socket->again, AGAIN_US);
}

static void want(struct conn *conn, uint32_t events);

/* Bytes are there again: who waits for them reads on. */
static void give_back(struct tool_socket *tool_socket, size_t bytes)
{
        tool_socket->bytes -= bytes;
        for (struct conn *conn = tool_socket->conns; conn && bytes; conn = conn->next)
                if (conn->waits && conn->state == CONN_READING &&
                        tool_socket->bytes + conn->size <= TOOL_SOCKET_BYTES_MAX) {
                        conn->waits = false;
                        tool_socket->bytes += conn->size;
                        want(conn, EPOLLIN);
                }
}

static void conn_end(struct conn *conn)
{
        if (conn->state == CONN_OVER)
                return;
        conn->state = CONN_OVER;
        loop_unwatch(conn->tool_socket->loop, &conn->watch);
        fd_close(&conn->watch.fd);
        buf_done(&conn->text);
        if (!conn->waits)
                give_back(conn->tool_socket, conn->size);
        conn->size = 0;
        loop_timer(conn->tool_socket->loop, &conn->timer, 0);
}

static void conn_free(struct conn *conn)
{
        struct tool_socket *tool_socket = conn->tool_socket;
        for (struct conn **at = &tool_socket->conns; *at; at = &(*at)->next)
                if (*at == conn) {
                        *at = conn->next;
                        break;
                }
        conn_end(conn);
        loop_untimer(tool_socket->loop, &conn->timer);
        tool_socket->conns_n--;
        free(conn);
}

static void want(struct conn *conn, uint32_t events)
{
        if (loop_watch(conn->tool_socket->loop, &conn->watch, conn->watch.fd, events, NULL) < 0)
                conn_end(conn);
}

static void on_clock(struct timer *timer)
{
        struct conn *conn = timer->owner;
        if (conn->state != CONN_OVER) {
                conn_end(conn);            /* this very timer frees it next */
                return;
        }
        struct tool_socket *tool_socket = conn->tool_socket;
        conn_free(conn);
        listen_more(tool_socket);
}

/* ---- the answer ---- */

static void write_answer(struct conn *conn)
{
        while (conn->sent < conn->text.len) {
                ssize_t n =
                        send(conn->watch.fd, conn->text.bytes + conn->sent, conn->text.len - conn->sent, MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN) {
                        want(conn, EPOLLOUT);
                        return;
                }
                if (n < 0)
                        break;
                conn->sent += (size_t)n;
        }
        conn_end(conn);
}

bool tool_socket_has_room(const struct tool_socket_call *call, size_t len)
{
        const struct conn *conn = (const struct conn *)call;
        return conn->state == CONN_OVER || conn->tool_socket->bytes - conn->size + len <= TOOL_SOCKET_BYTES_MAX;
}

void tool_socket_answer(struct tool_socket_call *call, const char *message, size_t len)
{
        struct conn *conn = (struct conn *)call;
        struct tool_socket *tool_socket = conn->tool_socket;
        uint8_t head[HEAD];
        if (conn->state == CONN_OVER)
                return;
        conn->state = CONN_WRITING;
        for (size_t i = 0; i < HEAD; i++)
                head[i] = (uint8_t)(len >> 8 * i);
        size_t before = conn->size;
        buf_done(&conn->text);
        buf_init(&conn->text, TOOL_SOCKET_MESSAGE_MAX + HEAD);
        conn->size = len;
        tool_socket->bytes += len;
        give_back(tool_socket, before);
        if (!buf_add(&conn->text, head, HEAD) || !buf_add(&conn->text, message, len)) {
                conn_end(conn);
                return;
        }
        loop_timer(tool_socket->loop, &conn->timer, TOOL_SOCKET_WRITE_MS * 1000ULL);
        write_answer(conn);
}

/* ---- the request ---- */

static void ask(struct conn *conn, const char *message, size_t len)
{
        conn->state = CONN_ASKING;
        loop_untimer(conn->tool_socket->loop, &conn->timer);
        /* Only his end is of interest now. */
        want(conn, EPOLLRDHUP);
        if (conn->state == CONN_ASKING)
                conn->tool_socket->events->asked(conn->tool_socket->owner, &conn->call, message, len);
}

/* The length is known.  False: nothing more is to be read now. */
static bool take_head(struct conn *conn)
{
        struct tool_socket *tool_socket = conn->tool_socket;
        size_t size = 0;
        for (size_t i = 0; i < HEAD; i++)
                size |= (size_t)conn->head[i] << 8 * i;
        if (size > tool_socket->message_max) {
                ask(conn, NULL, size);
                return false;
        }
        conn->size = size;
        buf_init(&conn->text, size);
        if (tool_socket->bytes + size > TOOL_SOCKET_BYTES_MAX) {
                conn->waits = true;
                loop_unwatch(tool_socket->loop, &conn->watch);
                return false;
        }
        tool_socket->bytes += size;
        return true;
}

/* One read.  False: nothing there now, or nothing more to be read. */
static bool read_some(struct conn *conn)
{
        static char bytes[READ_SIZE];
        bool heading = conn->head_n < HEAD;
        size_t room = heading ? HEAD - conn->head_n : (size_t)min_u64(sizeof bytes, conn->size - conn->text.len);
        ssize_t n = room ? recv(conn->watch.fd, bytes, room, 0) : 0;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return errno == EINTR;
        if (n < 0 || (n == 0 && room)) {
                conn_end(conn);
                return false;
        }
        if (heading) {
                memcpy(conn->head + conn->head_n, bytes, (size_t)n);
                conn->head_n += (size_t)n;
                if (conn->head_n == HEAD && !take_head(conn))
                        return false;
        } else {
                buf_add(&conn->text, bytes, (size_t)n);
        }
        if (conn->head_n < HEAD || conn->text.len < conn->size)
                return true;
        ask(conn, conn->text.bytes ? conn->text.bytes : "", conn->text.len);
        return false;
}

static void conn_ready(struct watch *watch, uint32_t events)
{
        struct conn *conn = watch->owner;
        if (conn->state == CONN_READING) {
                for (int i = 0; i < READS_AT_ONCE && conn->state == CONN_READING && !conn->waits && read_some(conn);
                        i++)
                        ;
        } else if (conn->state == CONN_WRITING) {
                write_answer(conn);
        } else if (conn->state == CONN_ASKING && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
                conn->tool_socket->events->gone(conn->tool_socket->owner, &conn->call);
                conn_end(conn);
        }
}

/* ---- accepting ---- */

static void conn_new(struct tool_socket *tool_socket, int fd)
{
        struct conn *conn = mem_alloc(sizeof *conn);
        *conn = (struct conn){ .tool_socket = tool_socket,
                .next = tool_socket->conns,
                .watch = { .fd = fd, .ready = conn_ready, .owner = conn },
                .timer = { .fired = on_clock, .owner = conn } };
        tool_socket->conns = conn;
        tool_socket->conns_n++;
        tool_socket->left--;
        tool_socket->asked = true;
        loop_timer(tool_socket->loop, &conn->timer, TOOL_SOCKET_READ_MS * 1000ULL);
        want(conn, EPOLLIN);
        /* Most have written already. */
        if (conn->state == CONN_READING)
                conn_ready(&conn->watch, EPOLLIN);
}

static void on_listener(struct watch *watch, uint32_t events)
{
        struct tool_socket *tool_socket = watch->owner;
        (void)events;
        for (int i = 0; i < ACCEPTS_AT_ONCE && tool_socket->left && tool_socket->conns_n < TOOL_SOCKET_CONNECTIONS_MAX;
                i++) {
                /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
                int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0) {
                        conn_new(tool_socket, fd);
                        continue;
                }
                if (errno == EAGAIN)
                        return;
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                /* No descriptors or no memory; it would stay readable, and we would spin. */
                loop_unwatch(tool_socket->loop, watch);
                loop_timer(tool_socket->loop, &tool_socket->again, AGAIN_US);
                return;
        }
        if (tool_socket->conns_n >= TOOL_SOCKET_CONNECTIONS_MAX || !tool_socket->left)
                loop_unwatch(tool_socket->loop, watch);
        if (!tool_socket->left)
                fd_close(&watch->fd);
}

static void on_again(struct timer *timer)
{
        listen_more(timer->owner);
}

/* ---- the whole ---- */

static bool has_option(int fd, int option, int wanted)
{
        int value = 0;
        socklen_t size = sizeof value;
        return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && value == wanted;
}

int tool_socket_open(struct loop *loop, int listen_fd, size_t message_max, uint64_t requests_max,
        const struct tool_socket_events *events, void *owner, struct tool_socket **ret, struct csn_error *err)
{
        auto_fd fd = listen_fd;
        if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_STREAM) ||
                !has_option(fd, SO_ACCEPTCONN, 1))
                return err_set(err, CSN_E_PROTOCOL, 0,
                        "what came out of the sandbox is no socket that listens for calls of tools");
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set up the socket for calls of tools");
        struct tool_socket *tool_socket = mem_alloc(sizeof *tool_socket);
        *tool_socket = (struct tool_socket){ .loop = loop,
                .message_max = (size_t)min_u64(message_max, TOOL_SOCKET_MESSAGE_MAX),
                .left = max_u64(requests_max, 1),
                .events = events,
                .owner = owner,
                .listener = { .fd = fd, .ready = on_listener, .owner = tool_socket },
                .again = { .fired = on_again, .owner = tool_socket } };
        if (loop_watch(loop, &tool_socket->listener, fd, EPOLLIN, err) < 0) {
                free(tool_socket);
                return -err->code;
        }
        take_fd(&fd);
        *ret = tool_socket;
        return 0;
}

void tool_socket_close(struct tool_socket *tool_socket)
{
        if (!tool_socket)
                return;
        loop_untimer(tool_socket->loop, &tool_socket->again);
        loop_unwatch(tool_socket->loop, &tool_socket->listener);
        fd_close(&tool_socket->listener.fd);
        for (struct conn *conn = tool_socket->conns, *next; conn; conn = next) {
                next = conn->next;
                conn_free(conn);
        }
        free(tool_socket);
}

bool tool_socket_was_asked(const struct tool_socket *tool_socket)
{
        return tool_socket && tool_socket->asked;
}
