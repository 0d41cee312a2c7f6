/*
 * The resolver's connections: accept, read the head of one GET, wait for the document or the file, answer, close.
 *
 * The client is a program in a sandbox and shares the event loop with all other clients, so each connection has a clock
 * in every state but CONN_WAIT, where the upstream's clock runs, and each step sends at most SEND_STEP bytes.  A
 * connection is freed only by its own timer; all other code may end the connection and still look at it.
 */
#include "packages/index/index_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define HEAD_MAX ((size_t)8192)            /* bytes of a request's head */
#define ANSWER_HEAD_MAX 1024               /* bytes of the head of an answer, and of a short text */
#define SEND_STEP ((size_t)(64 * KIB))
#define HEAD_US 10000000                   /* from accept(2) to the end of the head */
#define SEND_US 30000000                   /* without progress of the answer */
#define LINGER_US 2000000                  /* closing with unread bytes would be a reset, which loses the answer */
#define LINGER_BYTES_MAX MIB
#define ACCEPT_AGAIN_US 100000

enum conn_state { CONN_HEAD, CONN_WAIT, CONN_SEND, CONN_LINGER, CONN_OVER };

struct conn {
        struct server *server;
        struct conn *next;
        enum conn_state state;
        struct watch watch;
        uint32_t events;
        struct timer timer;
        uint64_t moved_us;                 /* the last progress of the answer */
        char head[HEAD_MAX + 1];
        size_t head_len;
        struct waiter waiter;
        struct project *project;           /* awaited project, or NULL */
        struct spool *spool;
        char answer[ANSWER_HEAD_MAX];      /* the head of the answer */
        size_t answer_at, answer_len;
        const char *body;                  /* of a document, owned by the index */
        int body_fd;                       /* of a file; -1: body */
        uint64_t body_at, body_len;
        size_t lingered;
};

struct server {
        struct package_index *index;
        struct watch listener;
        struct timer again;                /* accept(2) found no room in this process */
        struct conn *conns;
        size_t conns_n;
};

/* ---- the life of a connection ---- */

static void conn_leave(struct conn *conn)
{
        if (conn->project)
                project_leave(conn->project, &conn->waiter);
        if (conn->spool)
                spool_leave(conn->spool, &conn->waiter);
        conn->project = NULL;
        conn->spool = NULL;
}

static void conn_end(struct conn *conn)
{
        struct loop *loop = conn->server->index->loop;
        if (conn->state == CONN_OVER)
                return;
        conn->state = CONN_OVER;
        conn_leave(conn);
        loop_unwatch(loop, &conn->watch);
        fd_close(&conn->watch.fd);
        fd_close(&conn->body_fd);
        loop_timer(loop, &conn->timer, 0);
}

static void conn_want(struct conn *conn, uint32_t events)
{
        if (conn->state == CONN_OVER || conn->events == events)
                return;
        conn->events = events;
        if (loop_watch(conn->server->index->loop, &conn->watch, conn->watch.fd, events, NULL) < 0)
                conn_end(conn);
}

static void conn_free(struct conn *conn)
{
        struct server *server = conn->server;
        for (struct conn **at = &server->conns; *at; at = &(*at)->next)
                if (*at == conn) {
                        *at = conn->next;
                        break;
                }
        conn_end(conn);
        loop_untimer(server->index->loop, &conn->timer);
        free(conn);
        server->conns_n--;
}

/* ---- answers ---- */

static const char *reason_of(int status)
{
        static const struct { int status; const char *text; } rows[] = {
                { 200, "OK" }, { 400, "Bad Request" }, { 403, "Forbidden" }, { 404, "Not Found" },
                { 405, "Method Not Allowed" }, { 408, "Request Timeout" }, { 424, "Failed Dependency" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].status == status)
                        return rows[i].text;
        return "Error";
}

static void conn_send(struct conn *conn, int status, const char *type, uint64_t body_len)
{
        conn->answer_len = (size_t)snprintf(conn->answer, sizeof conn->answer,
                "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %llu\r\n%sCache-Control: no-store\r\n"
                "Connection: close\r\n\r\n",
                status, reason_of(status), type, (unsigned long long)body_len,
                status == 405 ? "Allow: GET\r\n" : "");
        conn->state = CONN_SEND;
        conn->moved_us = clock_us();
        loop_timer(conn->server->index->loop, &conn->timer, SEND_US);
        conn_want(conn, EPOLLOUT);
}

/* Answer with a text of this program, in one line. */
static void answer_text(struct conn *conn, int status, const char *text)
{
        conn_send(conn, status, "text/plain", strlen(text) + 1);
        conn->answer_len += (size_t)snprintf(conn->answer + conn->answer_len, sizeof conn->answer - conn->answer_len,
                "%s\n", text);
}

/*
 * The statuses are final ones: pip repeats requests after 500 and 503, npm after every 5xx, but the index has the
 * same answer again.
 */
static void answer_problem(struct conn *conn, enum package_problem problem, const char *text)
{
        char line[PACKAGE_TEXT_MAX + 40];
        int status = problem == PACKAGE_NOT_FOUND ? 404 : problem == PACKAGE_NOT_ALLOWED ? 403 : 424;
        snprintf(line, sizeof line, "%s: %s", package_problem_name(problem), text);
        answer_text(conn, status, line);
}

static void on_project(struct waiter *waiter)
{
        struct conn *conn = waiter->owner;
        const struct document *document = &conn->project->document;
        const bool node = conn->server->index->settings.kind == PACKAGE_NODE;
        conn->project = NULL;
        if (!document->body) {
                answer_problem(conn, document->problem, document->text);
                return;
        }
        conn->body = document->body;
        conn->body_len = document->body_len;
        conn_send(conn, 200, node ? "application/json" : "application/vnd.pypi.simple.v1+json", conn->body_len);
}

static void on_file(struct waiter *waiter)
{
        struct conn *conn = waiter->owner;
        const struct spool *spool = conn->spool;
        conn->spool = NULL;
        if (spool->problem != PACKAGE_FINE) {
                answer_problem(conn, spool->problem, spool->text);
                return;
        }
        conn->body_fd = fcntl(spool->fd, F_DUPFD_CLOEXEC, 0);
        conn->body_len = spool->size;
        if (conn->body_fd < 0)
                conn_end(conn);
        else
                conn_send(conn, 200, "application/octet-stream", conn->body_len);
}

/* ---- the request ---- */

/* Decode %XX; the path must consist of printable ASCII.  false: no such path. */
static bool decode_path(const char *text, size_t len, char *ret)
{
        size_t n = 0;
        for (size_t i = 0; i < len; i++) {
                uint8_t byte = (uint8_t)text[i];
                if (byte == '%') {
                        char digits[3] = { 0 };
                        if (len - i < 3)
                                return false;
                        memcpy(digits, text + i + 1, 2);
                        if (!package_hex_parse(digits, &byte, 1))
                                return false;
                        i += 2;
                }
                if (byte <= ' ' || byte >= 0x7f || byte == '?' || byte == '#' || byte == '%')
                        return false;
                ret[n++] = (char)byte;
        }
        ret[n] = 0;
        return n > 0 && ret[0] == '/';
}

/* The name in the path of a document.  NULL: another path. */
static const char *name_in_path(const struct package_index *index, const char *path, size_t *ret_len)
{
        static const char simple[] = "/simple/";
        const bool node = index->settings.kind == PACKAGE_NODE;
        if (!node && strncmp(path, simple, sizeof simple - 1) != 0)
                return NULL;
        const char *name = path + (node ? 1 : sizeof simple - 1);
        size_t len = strlen(name);
        if (!node && len && name[len - 1] == '/')
                len--;
        const char *slash = memchr(name, '/', len);
        if (len == 0 || (slash && (name[0] != '@' || memchr(slash + 1, '/', (size_t)(name + len - slash - 1)))))
                return NULL;
        *ret_len = len;
        return name;
}

static void conn_route(struct conn *conn, const char *path)
{
        static const char files[] = "/files/";
        struct package_index *index = conn->server->index;
        bool is_metadata;
        size_t len;
        if (strncmp(path, files, sizeof files - 1) == 0) {
                const struct document_file *file = package_index_find_path(index, path, &is_metadata);
                if (file) {
                        conn->waiter.ready = on_file;
                        spool_wait(index, file, is_metadata, &conn->waiter, &conn->spool);
                } else {
                        answer_text(conn, 404, "this index does not offer this file");
                }
                return;
        }
        const char *name = name_in_path(index, path, &len);
        if (!name) {
                answer_text(conn, 404, "this index has no such page");
                return;
        }
        conn->waiter.ready = on_project;
        project_wait(index, name, len, &conn->waiter, &conn->project);
}

static void conn_request(struct conn *conn)
{
        char path[HEAD_MAX + 1] = "";
        const char *line_end = strstr(conn->head, "\r\n");
        const char *target = strchr(conn->head, ' '), *version = target ? strchr(target + 1, ' ') : NULL;
        conn->state = CONN_WAIT;
        loop_untimer(conn->server->index->loop, &conn->timer);
        if (!version || version > line_end || strncmp(version, " HTTP/1.", 8) != 0)
                answer_text(conn, 400, "this is no request of HTTP/1.1");
        else if (strncmp(conn->head, "GET ", 4) != 0)
                answer_text(conn, 405, "this index answers GET alone");
        else if (!decode_path(target + 1, (size_t)(version - target - 1), path))
                answer_text(conn, 404, "this index has no such page");
        else
                conn_route(conn, path);
}

static void on_head(struct conn *conn)
{
        ssize_t n = recv(conn->watch.fd, conn->head + conn->head_len, HEAD_MAX - conn->head_len, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                conn_end(conn);
                return;
        }
        conn->head_len += (size_t)n;
        conn->head[conn->head_len] = 0;
        if (memchr(conn->head, 0, conn->head_len))
                answer_text(conn, 400, "the request has a byte 0");
        else if (strstr(conn->head, "\r\n\r\n"))
                conn_request(conn);
        else if (conn->head_len == HEAD_MAX)
                answer_text(conn, 400, "the head of the request is too long");
}

/* The client has closed the connection, or sends a second request. */
static void on_early_bytes(struct conn *conn)
{
        char byte;
        ssize_t n = recv(conn->watch.fd, &byte, 1, MSG_PEEK);
        if (n >= 0 || (errno != EAGAIN && errno != EINTR))
                conn_end(conn);
}

/* ---- sending ---- */

static ssize_t send_part(struct conn *conn)
{
        int fd = conn->watch.fd;
        size_t len = (size_t)min_u64(SEND_STEP, conn->body_len - conn->body_at);
        off_t at = (off_t)conn->body_at;
        if (conn->answer_at < conn->answer_len)
                return send(fd, conn->answer + conn->answer_at, conn->answer_len - conn->answer_at,
                        MSG_NOSIGNAL | (len ? MSG_MORE : 0));
        return conn->body_fd < 0 ? send(fd, conn->body + conn->body_at, len, MSG_NOSIGNAL)
                                 : sendfile(fd, conn->body_fd, &at, len);
}

static void conn_linger(struct conn *conn)
{
        conn->state = CONN_LINGER;
        fd_close(&conn->body_fd);
        shutdown(conn->watch.fd, SHUT_WR);
        loop_timer(conn->server->index->loop, &conn->timer, LINGER_US);
        conn_want(conn, EPOLLIN);
}

static void on_room(struct conn *conn)
{
        ssize_t n = send_part(conn);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                conn_end(conn);
                return;
        }
        conn->moved_us = clock_us();
        if (conn->answer_at < conn->answer_len)
                conn->answer_at += (size_t)n;
        else
                conn->body_at += (uint64_t)n;
        if (conn->answer_at == conn->answer_len && conn->body_at == conn->body_len)
                conn_linger(conn);
}

static void on_linger(struct conn *conn)
{
        char unused[4096];
        ssize_t n = recv(conn->watch.fd, unused, sizeof unused, 0);
        if (n > 0)
                conn->lingered += (size_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || conn->lingered > LINGER_BYTES_MAX)
                conn_end(conn);
}

static void on_ready(struct watch *watch, uint32_t events)
{
        struct conn *conn = watch->owner;
        (void)events;
        switch (conn->state) {
        case CONN_HEAD:
                on_head(conn);
                break;
        case CONN_WAIT:
                on_early_bytes(conn);
                break;
        case CONN_SEND:
                on_room(conn);
                break;
        case CONN_LINGER:
                on_linger(conn);
                break;
        case CONN_OVER:
                break;
        }
}

static void listen_more(struct server *server);

static void on_clock(struct timer *timer)
{
        struct conn *conn = timer->owner;
        struct server *server = conn->server;
        uint64_t since = clock_us() - conn->moved_us;
        if (conn->state == CONN_HEAD) {
                answer_text(conn, 408, "the head of the request did not come in time");
        } else if (conn->state == CONN_SEND && since < SEND_US) {
                loop_timer(server->index->loop, timer, SEND_US - since);
        } else {
                conn_free(conn);
                listen_more(server);
        }
}

/* ---- accepting ---- */

static void conn_new(struct server *server, int fd)
{
        struct conn *conn = mem_alloc(sizeof *conn);
        conn->server = server;
        conn->next = server->conns;
        conn->watch = (struct watch){ .fd = fd, .ready = on_ready, .owner = conn };
        conn->timer = (struct timer){ .fired = on_clock, .owner = conn };
        conn->waiter.owner = conn;
        conn->body_fd = -1;
        server->conns = conn;
        server->conns_n++;
        server->index->usage.requests++;
        loop_timer(server->index->loop, &conn->timer, HEAD_US);
        conn_want(conn, EPOLLIN);
}

static bool has_room(const struct server *server)
{
        return server->conns_n < PACKAGE_CONNECTIONS_MAX && server->index->usage.requests < PACKAGE_REQUESTS_MAX;
}

static void on_listener(struct watch *watch, uint32_t events)
{
        struct server *server = watch->owner;
        (void)events;
        while (has_room(server)) {
                /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
                int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0) {
                        conn_new(server, fd);
                        continue;
                }
                if (errno == EAGAIN)
                        return;
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                /* No descriptors or no memory: the socket would stay readable, and the loop would spin. */
                loop_unwatch(server->index->loop, watch);
                loop_timer(server->index->loop, &server->again, ACCEPT_AGAIN_US);
                return;
        }
        loop_unwatch(server->index->loop, watch);
        if (server->index->usage.requests >= PACKAGE_REQUESTS_MAX)
                fd_close(&watch->fd);
}

static void listen_more(struct server *server)
{
        if (server->listener.fd < 0 || server->listener.active || !has_room(server))
                return;
        if (loop_watch(server->index->loop, &server->listener, server->listener.fd, EPOLLIN, NULL) < 0)
                loop_timer(server->index->loop, &server->again, ACCEPT_AGAIN_US);
}

static void on_again(struct timer *timer)
{
        listen_more(timer->owner);
}

int server_open(struct package_index *index, int listen_fd, struct csn_error *err)
{
        auto_fd fd = listen_fd;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set up the socket of the package index");
        struct server *server = mem_alloc(sizeof *server);
        server->index = index;
        server->listener = (struct watch){ .fd = -1, .ready = on_listener, .owner = server };
        server->again = (struct timer){ .fired = on_again, .owner = server };
        if (loop_watch(index->loop, &server->listener, fd, EPOLLIN, err) < 0) {
                free(server);
                return -err->code;
        }
        take_fd(&fd);
        index->server = server;
        return 0;
}

void server_close(struct package_index *index)
{
        struct server *server = index->server;
        if (!server)
                return;
        for (struct conn *conn = server->conns, *next; conn; conn = next) {
                next = conn->next;
                conn_free(conn);
        }
        loop_untimer(index->loop, &server->again);
        loop_unwatch(index->loop, &server->listener);
        fd_close(&server->listener.fd);
        free(server);
        index->server = NULL;
}
