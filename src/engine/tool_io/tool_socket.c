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
        struct hatch_call call;    /* the first member: a call is its connection */
        struct hatch *hatch;
        struct conn *next;
        enum conn_state state;
        struct watch watch;
        struct timer timer;
        uint8_t head[HEAD];
        size_t head_n;             /* bytes of it that are there; then written */
        struct buf text;           /* the request, then the answer */
        size_t size;               /* of the request; counted in hatch->bytes */
        size_t sent;               /* of the answer */
        bool waits;                /* there is no room for its request now */
};

struct hatch {
        struct loop *loop;
        struct watch listener;
        struct timer again;
        size_t message_max;
        const struct hatch_events *events;
        void *owner;
        struct conn *conns;
        size_t conns_n, bytes;
        uint64_t left;             /* connections that may still come */
        bool asked;                /* one has come */
};

/* ---- the life of a connection ---- */

static void listen_more(struct hatch *hatch)
{
        if (hatch->listener.active || hatch->listener.fd < 0 || hatch->conns_n >= HATCH_CONNECTIONS_MAX)
                return;
        if (loop_watch(hatch->loop, &hatch->listener, hatch->listener.fd, EPOLLIN, NULL) < 0)
                loop_timer(hatch->loop, &hatch->again, AGAIN_US);
}

static void want(struct conn *conn, uint32_t events);

/* Bytes are there again: who waits for them reads on. */
static void give_back(struct hatch *hatch, size_t bytes)
{
        hatch->bytes -= bytes;
        for (struct conn *conn = hatch->conns; conn && bytes; conn = conn->next)
                if (conn->waits && conn->state == CONN_READING && hatch->bytes + conn->size <= HATCH_BYTES_MAX) {
                        conn->waits = false;
                        hatch->bytes += conn->size;
                        want(conn, EPOLLIN);
                }
}

static void conn_end(struct conn *conn)
{
        if (conn->state == CONN_OVER)
                return;
        conn->state = CONN_OVER;
        loop_unwatch(conn->hatch->loop, &conn->watch);
        fd_close(&conn->watch.fd);
        buf_done(&conn->text);
        if (!conn->waits)
                give_back(conn->hatch, conn->size);
        conn->size = 0;
        loop_timer(conn->hatch->loop, &conn->timer, 0);
}

static void conn_free(struct conn *conn)
{
        struct hatch *hatch = conn->hatch;
        for (struct conn **at = &hatch->conns; *at; at = &(*at)->next)
                if (*at == conn) {
                        *at = conn->next;
                        break;
                }
        conn_end(conn);
        loop_untimer(hatch->loop, &conn->timer);
        hatch->conns_n--;
        free(conn);
}

static void want(struct conn *conn, uint32_t events)
{
        if (loop_watch(conn->hatch->loop, &conn->watch, conn->watch.fd, events, NULL) < 0)
                conn_end(conn);
}

static void on_clock(struct timer *timer)
{
        struct conn *conn = timer->owner;
        if (conn->state != CONN_OVER) {
                conn_end(conn);            /* this very timer frees it next */
                return;
        }
        struct hatch *hatch = conn->hatch;
        conn_free(conn);
        listen_more(hatch);
}

/* ---- the answer ---- */

static void write_answer(struct conn *conn)
{
        while (conn->sent < conn->text.len) {
                ssize_t n = send(conn->watch.fd, conn->text.bytes + conn->sent, conn->text.len - conn->sent, MSG_NOSIGNAL);
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

bool hatch_has_room(const struct hatch_call *call, size_t len)
{
        const struct conn *conn = (const struct conn *)call;
        return conn->state == CONN_OVER || conn->hatch->bytes - conn->size + len <= HATCH_BYTES_MAX;
}

void hatch_answer(struct hatch_call *call, const char *message, size_t len)
{
        struct conn *conn = (struct conn *)call;
        struct hatch *hatch = conn->hatch;
        uint8_t head[HEAD];
        if (conn->state == CONN_OVER)
                return;
        conn->state = CONN_WRITING;
        for (size_t i = 0; i < HEAD; i++)
                head[i] = (uint8_t)(len >> 8 * i);
        size_t before = conn->size;
        buf_done(&conn->text);
        buf_init(&conn->text, HATCH_MESSAGE_MAX + HEAD);
        conn->size = len;
        hatch->bytes += len;
        give_back(hatch, before);
        if (!buf_add(&conn->text, head, HEAD) || !buf_add(&conn->text, message, len)) {
                conn_end(conn);
                return;
        }
        loop_timer(hatch->loop, &conn->timer, HATCH_WRITE_MS * 1000ULL);
        write_answer(conn);
}

/* ---- the request ---- */

static void ask(struct conn *conn, const char *message, size_t len)
{
        conn->state = CONN_ASKING;
        loop_untimer(conn->hatch->loop, &conn->timer);
        /* Only his end is of interest now. */
        want(conn, EPOLLRDHUP);
        if (conn->state == CONN_ASKING)
                conn->hatch->events->asked(conn->hatch->owner, &conn->call, message, len);
}

/* The length is known.  False: nothing more is to be read now. */
static bool take_head(struct conn *conn)
{
        struct hatch *hatch = conn->hatch;
        size_t size = 0;
        for (size_t i = 0; i < HEAD; i++)
                size |= (size_t)conn->head[i] << 8 * i;
        if (size > hatch->message_max) {
                ask(conn, NULL, size);
                return false;
        }
        conn->size = size;
        buf_init(&conn->text, size);
        if (hatch->bytes + size > HATCH_BYTES_MAX) {
                conn->waits = true;
                loop_unwatch(hatch->loop, &conn->watch);
                return false;
        }
        hatch->bytes += size;
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
                for (int i = 0; i < READS_AT_ONCE && conn->state == CONN_READING && !conn->waits && read_some(conn); i++)
                        ;
        } else if (conn->state == CONN_WRITING) {
                write_answer(conn);
        } else if (conn->state == CONN_ASKING && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
                conn->hatch->events->gone(conn->hatch->owner, &conn->call);
                conn_end(conn);
        }
}

/* ---- accepting ---- */

static void conn_new(struct hatch *hatch, int fd)
{
        struct conn *conn = mem_alloc(sizeof *conn);
        *conn = (struct conn){ .hatch = hatch, .next = hatch->conns, .watch = { .fd = fd, .ready = conn_ready, .owner = conn },
                               .timer = { .fired = on_clock, .owner = conn } };
        hatch->conns = conn;
        hatch->conns_n++;
        hatch->left--;
        hatch->asked = true;
        loop_timer(hatch->loop, &conn->timer, HATCH_READ_MS * 1000ULL);
        want(conn, EPOLLIN);
        /* Most have written already. */
        if (conn->state == CONN_READING)
                conn_ready(&conn->watch, EPOLLIN);
}

static void on_listener(struct watch *watch, uint32_t events)
{
        struct hatch *hatch = watch->owner;
        (void)events;
        for (int i = 0; i < ACCEPTS_AT_ONCE && hatch->left && hatch->conns_n < HATCH_CONNECTIONS_MAX; i++) {
                /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
                int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0) {
                        conn_new(hatch, fd);
                        continue;
                }
                if (errno == EAGAIN)
                        return;
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                /* No descriptors or no memory; it would stay readable, and we would spin. */
                loop_unwatch(hatch->loop, watch);
                loop_timer(hatch->loop, &hatch->again, AGAIN_US);
                return;
        }
        if (hatch->conns_n >= HATCH_CONNECTIONS_MAX || !hatch->left)
                loop_unwatch(hatch->loop, watch);
        if (!hatch->left)
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

int hatch_open(struct loop *loop, int listen_fd, size_t message_max, uint64_t requests_max, const struct hatch_events *events, void *owner, struct hatch **ret,
               struct csn_error *err)
{
        auto_fd fd = listen_fd;
        if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_STREAM) || !has_option(fd, SO_ACCEPTCONN, 1))
                return err_set(err, CSN_E_PROTOCOL, 0, "what came out of the sandbox is no socket that listens for calls of tools");
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set up the socket for calls of tools");
        struct hatch *hatch = mem_alloc(sizeof *hatch);
        *hatch = (struct hatch){ .loop = loop, .message_max = (size_t)min_u64(message_max, HATCH_MESSAGE_MAX), .left = max_u64(requests_max, 1), .events = events, .owner = owner,
                                 .listener = { .fd = fd, .ready = on_listener, .owner = hatch }, .again = { .fired = on_again, .owner = hatch } };
        if (loop_watch(loop, &hatch->listener, fd, EPOLLIN, err) < 0) {
                free(hatch);
                return -err->code;
        }
        take_fd(&fd);
        *ret = hatch;
        return 0;
}

void hatch_close(struct hatch *hatch)
{
        if (!hatch)
                return;
        loop_untimer(hatch->loop, &hatch->again);
        loop_unwatch(hatch->loop, &hatch->listener);
        fd_close(&hatch->listener.fd);
        for (struct conn *conn = hatch->conns, *next; conn; conn = next) {
                next = conn->next;
                conn_free(conn);
        }
        free(hatch);
}

bool hatch_was_asked(const struct hatch *hatch)
{
        return hatch && hatch->asked;
}
