/*
 * The proxy's connections: accept, read the head, decide, resolve, check, connect, relay.
 *
 * The program is hostile and shares one thread with all other runs, so each connection has fixed buffers and a time
 * limit in every state, and watches only for events that can be served at once.  Without room nothing is read (TCP's
 * window carries the back-pressure), and a descriptor without events to wait for leaves epoll, which would report the
 * hang-up for ever.
 *
 * Only a connection's own timer frees the connection; all other code may end a connection and still read its members.
 */
#include "egress/egress.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define FLOW_MAX ((size_t)65536)
#define LINGER_US 2000000          /* wait for the program to read the answer */
#define LINGER_BYTES_MAX MIB       /* bytes read and dropped during the wait */
#define LINGERING_MAX 16           /* connections beyond connections_max, each answered with 503 */
#define ACCEPTS_AT_ONCE 16
#define ACCEPT_AGAIN_US 100000

enum conn_state {
        CONN_HEAD,                 /* reading the request */
        CONN_RESOLVE,
        CONN_CONNECT,
        CONN_RELAY,
        CONN_ANSWER,               /* writing an answer of our own */
        CONN_LINGER,               /* closing with unread bytes would be a reset, and the answer would be lost */
        CONN_OVER,                 /* to be freed */
};

/* One direction. */
struct flow {
        char *bytes;               /* FLOW_MAX */
        size_t at, len;
        bool ended;                /* no more input */
        bool shut;                 /* all output was written */
};

/* One end of a connection, and the events watched. */
struct side {
        struct watch watch;
        uint32_t events;
};

struct conn {
        struct egress *egress;
        struct conn *next;
        enum conn_state state;
        struct side client, server;
        struct flow up, down;      /* from the program; to the program */
        struct timer timer;
        uint64_t deadline_us;      /* of resolving and connecting */
        uint64_t moved_us;         /* time of the last byte in either direction */
        size_t lingered;
        struct egress_request request;
        struct lookup *lookup;
        struct net_address addresses[DNS_ADDRESSES_MAX];
        size_t addresses_n, address_at;
        int problem;               /* errno of the last address tried */
        bool reported;
};

struct egress {
        struct loop *loop;
        struct watch listener;
        struct timer again;        /* accept(2) found no room in this process */
        struct arena arena;
        struct egress_rules rules;
        const struct egress_events *events;
        void *owner;
        struct resolver *resolver;
        struct conn *conns;
        size_t conns_n, served_n;  /* all connections; connections before CONN_ANSWER */
        uint64_t requests, refused, bytes_in, bytes_out;
};

/* ---- the life of a connection ---- */

static bool is_served(const struct conn *conn)
{
        return conn->state < CONN_ANSWER;
}

/* Change the state; all changes go through this function. */
static void conn_enter(struct conn *conn, enum conn_state state)
{
        bool served = is_served(conn);
        conn->state = state;
        if (served && !is_served(conn))
                conn->egress->served_n--;
}

static void side_close(struct conn *conn, struct side *side)
{
        loop_unwatch(conn->egress->loop, &side->watch);
        side->events = 0;
        fd_close(&side->watch.fd);
}

static void conn_end(struct conn *conn)
{
        if (conn->state == CONN_OVER)
                return;
        lookup_forget(&conn->lookup);
        side_close(conn, &conn->client);
        side_close(conn, &conn->server);
        conn_enter(conn, CONN_OVER);
        loop_timer(conn->egress->loop, &conn->timer, 0);
}

static void side_want(struct conn *conn, struct side *side, uint32_t events)
{
        if (conn->state == CONN_OVER || events == side->events)
                return;
        side->events = events;
        if (!events)
                loop_unwatch(conn->egress->loop, &side->watch);
        else if (loop_watch(conn->egress->loop, &side->watch, side->watch.fd, events, NULL) < 0)
                conn_end(conn);
}

static void listen_more(struct egress *egress);

static void conn_free(struct conn *conn)
{
        struct egress *egress = conn->egress;
        for (struct conn **at = &egress->conns; *at; at = &(*at)->next)
                if (*at == conn) {
                        *at = conn->next;
                        break;
                }
        conn_end(conn);
        loop_untimer(egress->loop, &conn->timer);
        free(conn->up.bytes);
        free(conn->down.bytes);
        free(conn);
        egress->conns_n--;
}

static void report(struct conn *conn, const char *refusal)
{
        const struct egress *egress = conn->egress;
        const struct egress_target *target = &conn->request.target;
        if (!conn->reported && target->host[0] && egress->events && egress->events->connection)
                egress->events->connection(egress->owner, target->host, target->port, refusal);
        conn->reported = true;
}

/* ---- answers of our own ---- */

static const struct { int status; const char *text; } reasons[] = {
        { 400, "Bad Request" }, { 403, "Forbidden" },           { 408, "Request Timeout" },
        { 502, "Bad Gateway" }, { 503, "Service Unavailable" }, { 504, "Gateway Timeout" },
};

/*
 * Answer with an error.  The text goes into the reason phrase (Python shows nothing else of an answer to CONNECT) and
 * into the body.  `text` is a constant or comes from egress_host(), so plain ASCII without line ends.
 */
static void answer(struct conn *conn, int status, const char *text)
{
        const char *reason = "Error";
        for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
                if (reasons[i].status == status)
                        reason = reasons[i].text;
        lookup_forget(&conn->lookup);
        side_close(conn, &conn->server);
        conn->egress->refused++;
        if (!conn->down.bytes)
                conn->down.bytes = mem_alloc(FLOW_MAX);
        conn->down.at = 0;
        conn->down.len = (size_t)snprintf(conn->down.bytes, FLOW_MAX,
                                          "HTTP/1.1 %d %s (%s)\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
                                          "Connection: close\r\n\r\n%s\n",
                                          status, reason, text, strlen(text) + 1, text);
        conn_enter(conn, CONN_ANSWER);
        loop_timer(conn->egress->loop, &conn->timer, LINGER_US);
        side_want(conn, &conn->client, EPOLLOUT);
        report(conn, text);
}

static void linger(struct conn *conn)
{
        side_close(conn, &conn->server);
        conn_enter(conn, CONN_LINGER);
        shutdown(conn->client.watch.fd, SHUT_WR);
        loop_timer(conn->egress->loop, &conn->timer, LINGER_US);
        side_want(conn, &conn->client, EPOLLIN);
}

static void on_linger(struct conn *conn)
{
        char nowhere[4096];
        ssize_t n = recv(conn->client.watch.fd, nowhere, sizeof nowhere, 0);
        if (n > 0)
                conn->lingered += (size_t)n;
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR) || conn->lingered > LINGER_BYTES_MAX)
                conn_end(conn);
}

/* ---- relaying ---- */

/* False: the connection is broken. */
static bool flow_write(struct conn *conn, struct flow *flow, int fd)
{
        while (flow->len) {
                ssize_t n = send(fd, flow->bytes + flow->at, flow->len, MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN;
                flow->at += (size_t)n;
                flow->len -= (size_t)n;
                conn->moved_us = clock_us();
        }
        flow->at = 0;
        return true;
}

static uint64_t bytes_left(const struct egress *egress)
{
        uint64_t used = egress->bytes_in + egress->bytes_out;
        return used < egress->rules.bytes_max ? egress->rules.bytes_max - used : 0;
}

/* Into an empty buffer.  False: error, or no byte more is allowed in this run. */
static bool flow_read(struct conn *conn, struct flow *flow, int fd, uint64_t *total)
{
        size_t room = (size_t)min_u64(FLOW_MAX, bytes_left(conn->egress));
        if (room == 0)
                return false;
        ssize_t n = recv(fd, flow->bytes, room, 0);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        flow->at = 0;
        flow->len = (size_t)n;
        flow->ended = n == 0;
        *total += (uint64_t)n;
        conn->moved_us = clock_us();
        return true;
}

/*
 * True: the request is complete.  The proxy then keeps its side of the connection open: some servers take a shutdown
 * for a closed client, and send no answer.
 */
static bool is_whole(const struct conn *conn)
{
        return conn->request.body.kind != EGRESS_BODY_TUNNEL && conn->request.body.done;
}

/* Keep the received bytes up to the end of the request.  False: malformed chunks. */
static bool keep_own(struct conn *conn)
{
        struct flow *up = &conn->up;
        ssize_t own = egress_body_take(&conn->request.body, up->bytes + up->at, up->len, NULL);
        if (own < 0)
                return false;
        up->len = (size_t)own;
        up->ended = up->ended || is_whole(conn);
        return true;
}

static void relay_wants(struct conn *conn)
{
        const struct flow *up = &conn->up, *down = &conn->down;
        side_want(conn, &conn->client, (!up->len && !up->ended ? EPOLLIN : 0) | (down->len ? EPOLLOUT : 0));
        side_want(conn, &conn->server, (!down->len && !down->ended ? EPOLLIN : 0) | (up->len ? EPOLLOUT : 0));
}

/* Write buffered bytes, and pass on the end of each direction. */
static void relay_out(struct conn *conn)
{
        struct flow *up = &conn->up, *down = &conn->down;
        if (!flow_write(conn, down, conn->client.watch.fd)) {
                conn_end(conn);
                return;
        }
        if (!flow_write(conn, up, conn->server.watch.fd)) {
                up->len = 0;               /* the server's answer may still arrive */
                up->ended = up->shut = true;
        }
        if (up->ended && !up->len && !up->shut) {
                up->shut = true;
                if (!is_whole(conn))
                        shutdown(conn->server.watch.fd, SHUT_WR);
        }
        if (down->ended && !down->len && !down->shut) {
                down->shut = true;
                shutdown(conn->client.watch.fd, SHUT_WR);
        }
        if (down->shut && up->shut)
                conn_end(conn);
        else if (down->shut && conn->request.body.kind != EGRESS_BODY_TUNNEL)
                linger(conn);              /* the server answered before reading the whole request */
        else
                relay_wants(conn);
}

static void relay(struct conn *conn, struct side *ready, uint32_t events)
{
        struct egress *egress = conn->egress;
        bool readable = ready->events & EPOLLIN && events & ~(uint32_t)EPOLLOUT;
        if (readable && !bytes_left(egress)) {
                conn_end(conn);
                return;
        }
        if (readable && ready == &conn->client)
                if (!flow_read(conn, &conn->up, conn->client.watch.fd, &egress->bytes_out) || !keep_own(conn)) {
                        conn_end(conn);
                        return;
                }
        if (readable && ready == &conn->server &&
                !flow_read(conn, &conn->down, conn->server.watch.fd, &egress->bytes_in))
                conn->down.ended = true;
        relay_out(conn);
}

/* ---- connecting ---- */

static void wait_idle(struct conn *conn)
{
        uint64_t idle_us = conn->egress->rules.idle_ms * 1000, since = clock_us() - conn->moved_us;
        if (since >= idle_us)
                conn_end(conn);
        else
                loop_timer(conn->egress->loop, &conn->timer, idle_us - since);
}

static const char no_bytes_left[] = "this run has used up its bytes of network traffic";

/* Replace the program's head by the rewritten head; the bytes behind stay. */
static bool put_head(struct conn *conn, size_t head_len)
{
        struct flow *up = &conn->up;
        struct buf head;
        buf_init(&head, FLOW_MAX - EGRESS_HEAD_MAX);
        bool fits = egress_rewrite(&conn->request, up->bytes, &head);
        if (fits) {
                memmove(up->bytes + head.len, up->bytes + head_len, up->len);
                memcpy(up->bytes, head.bytes, head.len);
                up->at = 0;
                up->len += head.len;
        }
        buf_done(&head);
        return fits;
}

static void on_connected(struct conn *conn)
{
        static const char established[] = "HTTP/1.1 200 Connection established\r\n\r\n";
        struct flow *up = &conn->up;
        const int on = 1;
        size_t head_len = up->at;
        bool tunnel = conn->request.body.kind == EGRESS_BODY_TUNNEL;
        if (!keep_own(conn)) {
                answer(conn, 400, "the body is not in chunks");
                return;
        }
        if (!tunnel && !put_head(conn, head_len)) {
                answer(conn, 400, "the head is too long");
                return;
        }
        if (up->len > bytes_left(conn->egress)) {
                answer(conn, 403, no_bytes_left);
                return;
        }
        conn->egress->bytes_out += up->len;
        conn->down.bytes = mem_alloc(FLOW_MAX);
        if (tunnel) {
                memcpy(conn->down.bytes, established, sizeof established - 1);
                conn->down.len = sizeof established - 1;
        }
        setsockopt(conn->server.watch.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        setsockopt(conn->client.watch.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        conn_enter(conn, CONN_RELAY);
        conn->moved_us = clock_us();
        wait_idle(conn);
        report(conn, NULL);
        relay_out(conn);
}

static socklen_t sockaddr_of(const struct net_address *address, unsigned port, struct sockaddr_storage *ret)
{
        memset(ret, 0, sizeof *ret);
        if (address->len == 4) {
                struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
                v4->sin_family = AF_INET;
                v4->sin_port = htons((uint16_t)port);
                memcpy(&v4->sin_addr, address->bytes, 4);
                return sizeof *v4;
        }
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        memcpy(&v6->sin6_addr, address->bytes, 16);
        return sizeof *v6;
}

/*
 * Is this global address one of this host?  A connection to the address would look local, behind every firewall.  For
 * such a destination the kernel chooses the same address as source; connecting a UDP socket sends nothing.
 */
static bool is_own(const struct net_address *address)
{
        struct sockaddr_storage there, here;
        socklen_t len = sockaddr_of(address, 9, &there), here_len = sizeof here;
        auto_fd fd = socket(there.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&there, len) < 0)
                return false;      /* TCP then fails too, and reports the reason */
        memset(&here, 0, sizeof here);
        if (getsockname(fd, (struct sockaddr *)&here, &here_len) < 0)
                return true;
        if (address->len == 4)
                return memcmp(&((struct sockaddr_in *)&here)->sin_addr, address->bytes, 4) == 0;
        return memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, address->bytes, 16) == 0;
}

const char *egress_refused_class(const struct net_address *address)
{
        const char *class_ = egress_class(address);
        return class_ ? class_ : is_own(address) ? "an address of this host" : NULL;
}

static const char *judge(const struct egress *egress, const struct net_address *address)
{
        return egress->rules.class_ ? egress->rules.class_(address) : egress_refused_class(address);
}

static void answer_unreachable(struct conn *conn, int status, const char *why)
{
        char text[EGRESS_TEXT_MAX];
        snprintf(text, sizeof text, "%s cannot be reached: %s", conn->request.target.host, why);
        answer(conn, status, text);
}

/* Connect to the next address; each address gets a share of the time, the last address all the rest. */
static void connect_next(struct conn *conn)
{
        struct egress *egress = conn->egress;
        uint64_t now = clock_us();
        while (conn->address_at < conn->addresses_n && now < conn->deadline_us) {
                struct sockaddr_storage there;
                socklen_t len = sockaddr_of(&conn->addresses[conn->address_at++], conn->request.target.port, &there);
                side_close(conn, &conn->server);
                conn->server.watch.fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                if (conn->server.watch.fd < 0 ||
                    (connect(conn->server.watch.fd, (struct sockaddr *)&there, len) < 0 && errno != EINPROGRESS)) {
                        conn->problem = errno;
                        continue;
                }
                uint64_t left = conn->deadline_us - now;
                bool last = conn->address_at == conn->addresses_n;
                conn_enter(conn, CONN_CONNECT);
                loop_timer(egress->loop, &conn->timer,
                        last ? left : min_u64(left, egress->rules.connect_ms * 1000 / 4));
                side_want(conn, &conn->server, EPOLLOUT);
                return;
        }
        bool late = now >= conn->deadline_us || conn->problem == ETIMEDOUT;
        answer_unreachable(conn, late ? 504 : 502, strerrordesc_np(late ? ETIMEDOUT : conn->problem));
}

static void on_connect(struct conn *conn)
{
        int problem = 0;
        socklen_t len = sizeof problem;
        if (getsockopt(conn->server.watch.fd, SOL_SOCKET, SO_ERROR, &problem, &len) < 0)
                problem = errno;
        if (problem == 0) {
                on_connected(conn);
                return;
        }
        conn->problem = problem;
        connect_next(conn);
}

/* Every address must be allowed: a private address beside a public address is an attempt to get around the rules. */
static void on_resolved(void *owner, const struct net_address *addresses, size_t n, const char *problem, bool timed_out)
{
        struct conn *conn = owner;
        if (problem) {
                answer_unreachable(conn, timed_out ? 504 : 502, problem);
                return;
        }
        bool private_ = egress_is_private_host(&conn->egress->rules, &conn->request.target);
        for (size_t i = 0; i < n; i++) {
                const char *class_ = judge(conn->egress, &addresses[i]);
                if (class_ && !(private_ && !egress_is_metadata(class_))) {
                        char text[EGRESS_TEXT_MAX];
                        snprintf(text, sizeof text, "%s %s no public address: %s", conn->request.target.host,
                                 conn->request.target.literal ? "is" : "has", class_);
                        answer(conn, 403, text);
                        return;
                }
                if (!egress_in_range(&conn->egress->rules, &conn->request.target, &addresses[i])) {
                        char text[EGRESS_TEXT_MAX];
                        snprintf(text, sizeof text, "%s is in a range that is denied here", conn->request.target.host);
                        answer(conn, 403, text);
                        return;
                }
        }
        memcpy(conn->addresses, addresses, n * sizeof *addresses);
        conn->addresses_n = n;
        connect_next(conn);
}

/* ---- the request ---- */

static void resolve(struct conn *conn)
{
        struct egress *egress = conn->egress;
        const struct egress_target *target = &conn->request.target;
        struct csn_error err;
        conn_enter(conn, CONN_RESOLVE);
        conn->deadline_us = clock_us() + egress->rules.connect_ms * 1000;
        loop_timer(egress->loop, &conn->timer, egress->rules.connect_ms * 1000);
        if (target->literal)
                on_resolved(conn, &target->address, 1, NULL, false);
        else if (!egress->resolver &&
                 resolver_open(egress->loop, egress->rules.dns, egress->rules.connect_ms, &egress->resolver, &err) < 0)
                answer_unreachable(conn, 502, "names cannot be resolved on this host");
        else if (resolver_pending(egress->resolver) >= 2 * egress->rules.connections_max)
                answer(conn, 503, "too many names of this run are being resolved; try again later");
        else
                resolver_ask(egress->resolver, target->host, on_resolved, conn, &conn->lookup);
}

static void on_head(struct conn *conn)
{
        struct flow *up = &conn->up;
        struct csn_error err;
        char why[EGRESS_TEXT_MAX];
        ssize_t n = recv(conn->client.watch.fd, up->bytes + up->len, EGRESS_HEAD_MAX - up->len, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0) {
                conn_end(conn);
                return;
        }
        up->len += (size_t)n;
        ssize_t used = egress_parse(up->bytes, up->len, &conn->request, &err);
        if (used == 0)
                return;
        if (used < 0) {
                answer(conn, 400, err.text);
                return;
        }
        up->at = (size_t)used;
        up->len -= (size_t)used;
        side_want(conn, &conn->client, 0);
        if (!egress_allows(&conn->egress->rules, &conn->request.target, why))
                answer(conn, 403, why);
        else if (!bytes_left(conn->egress))
                answer(conn, 403, no_bytes_left);
        else
                resolve(conn);
}

static void on_answer(struct conn *conn)
{
        if (!flow_write(conn, &conn->down, conn->client.watch.fd))
                conn_end(conn);
        else if (!conn->down.len)
                linger(conn);
}

/* The state decides the handler; side_want() has chosen the watched side. */
static void on_side(struct conn *conn, struct side *side, uint32_t events)
{
        switch (conn->state) {
        case CONN_HEAD:
                on_head(conn);
                break;
        case CONN_CONNECT:
                on_connect(conn);
                break;
        case CONN_RELAY:
                relay(conn, side, events);
                break;
        case CONN_ANSWER:
                on_answer(conn);
                break;
        case CONN_LINGER:
                on_linger(conn);
                break;
        case CONN_RESOLVE:
        case CONN_OVER:
                break;
        }
}

static void on_client(struct watch *watch, uint32_t events)
{
        struct conn *conn = watch->owner;
        on_side(conn, &conn->client, events);
}

static void on_server(struct watch *watch, uint32_t events)
{
        struct conn *conn = watch->owner;
        on_side(conn, &conn->server, events);
}

static void on_clock(struct timer *timer)
{
        struct conn *conn = timer->owner;
        struct egress *egress = conn->egress;
        switch (conn->state) {
        case CONN_HEAD:
                answer(conn, 408, "the head of the request did not come in time");
                break;
        case CONN_RESOLVE:
                answer_unreachable(conn, 504, "its name was not resolved in time");
                break;
        case CONN_CONNECT:
                conn->problem = ETIMEDOUT;
                connect_next(conn);
                break;
        case CONN_RELAY:
                wait_idle(conn);
                break;
        case CONN_ANSWER:
        case CONN_LINGER:
        case CONN_OVER:
                conn_free(conn);
                listen_more(egress);
                break;
        }
}

/* ---- accepting ---- */

static void conn_new(struct egress *egress, int fd)
{
        struct conn *conn = mem_alloc(sizeof *conn);
        conn->egress = egress;
        conn->next = egress->conns;
        conn->client.watch = (struct watch){ .fd = fd, .ready = on_client, .owner = conn };
        conn->server.watch = (struct watch){ .fd = -1, .ready = on_server, .owner = conn };
        conn->timer = (struct timer){ .fired = on_clock, .owner = conn };
        egress->conns = conn;
        egress->conns_n++;
        egress->served_n++;
        egress->requests++;
        if (egress->served_n > egress->rules.connections_max) {
                char text[EGRESS_TEXT_MAX];
                snprintf(text, sizeof text, "this run has %llu connections open, which is all it may; close some",
                         (unsigned long long)egress->rules.connections_max);
                answer(conn, 503, text);
                return;
        }
        conn->up.bytes = mem_alloc(FLOW_MAX);
        loop_timer(egress->loop, &conn->timer, egress->rules.head_ms * 1000);
        side_want(conn, &conn->client, EPOLLIN);
}

static bool has_room(const struct egress *egress)
{
        return egress->conns_n < egress->rules.connections_max + LINGERING_MAX &&
                egress->requests < egress->rules.requests_max;
}

static void on_listener(struct watch *watch, uint32_t events)
{
        struct egress *egress = watch->owner;
        (void)events;
        for (int i = 0; i < ACCEPTS_AT_ONCE && has_room(egress); i++) {
                /* cppcheck-suppress nullPointer ; accept(2): no address is filled in then */
                int fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
                if (fd >= 0) {
                        conn_new(egress, fd);
                        continue;
                }
                if (errno == EAGAIN)
                        return;
                if (errno == EINTR || errno == ECONNABORTED)
                        continue;
                /* No descriptors or no memory.  The listener stays readable, so watching again at once would spin. */
                loop_unwatch(egress->loop, watch);
                loop_timer(egress->loop, &egress->again, ACCEPT_AGAIN_US);
                return;
        }
        if (!has_room(egress))
                loop_unwatch(egress->loop, watch);
        if (egress->requests >= egress->rules.requests_max)
                fd_close(&watch->fd);
}

static void listen_more(struct egress *egress)
{
        if (egress->listener.fd < 0 || egress->listener.active || !has_room(egress))
                return;
        if (loop_watch(egress->loop, &egress->listener, egress->listener.fd, EPOLLIN, NULL) < 0)
                loop_timer(egress->loop, &egress->again, ACCEPT_AGAIN_US);
}

static void on_again(struct timer *timer)
{
        listen_more(timer->owner);
}

/* ---- the whole ---- */

static char **copy_texts(struct egress *egress, char *const *from, size_t n)
{
        char **texts = arena_alloc(&egress->arena, (n + 1) * sizeof *texts);
        for (size_t i = 0; i < n; i++)
                texts[i] = arena_copy(&egress->arena, from[i], strlen(from[i]));
        return texts;
}

static void copy_rules(struct egress *egress, const struct egress_rules *from)
{
        static const struct egress_rules usual = { .connections_max = 64, .requests_max = 10000, .bytes_max = GIB,
                                                   .head_ms = 10000, .connect_ms = 10000, .idle_ms = 60000 };
        struct egress_rules *rules = &egress->rules;
        char **hosts = copy_texts(egress, from->hosts, from->hosts_n);
        char **private_hosts = copy_texts(egress, from->private_hosts, from->private_hosts_n);
        *rules = *from;
        rules->hosts = hosts;
        rules->private_hosts = private_hosts;
        struct egress_range *ranges = arena_alloc(&egress->arena, (from->ranges_n + 1) * sizeof *ranges);
        memcpy(ranges, from->ranges_n ? from->ranges : ranges, from->ranges_n * sizeof *ranges);
        rules->ranges = ranges;
        rules->dns = from->dns ? arena_copy(&egress->arena, from->dns, strlen(from->dns)) : NULL;
        rules->connections_max = from->connections_max ? from->connections_max : usual.connections_max;
        rules->requests_max = from->requests_max ? from->requests_max : usual.requests_max;
        rules->bytes_max = from->bytes_max ? from->bytes_max : usual.bytes_max;
        rules->head_ms = from->head_ms ? from->head_ms : usual.head_ms;
        rules->connect_ms = from->connect_ms ? from->connect_ms : usual.connect_ms;
        rules->idle_ms = from->idle_ms ? from->idle_ms : usual.idle_ms;
}

int egress_open(struct loop *loop, int listen_fd, const struct egress_rules *rules, const struct egress_events *events,
                void *owner, struct egress **ret, struct csn_error *err)
{
        auto_fd fd = listen_fd;
        int flags = fcntl(fd, F_GETFL);
        if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set up the proxy's socket");
        for (size_t i = 0; i < rules->hosts_n; i++)
                if (egress_check_rule(rules->hosts[i], err) < 0)
                        return -CSN_E_INPUT;
        struct egress *egress = mem_alloc(sizeof *egress);
        egress->loop = loop;
        egress->events = events;
        egress->owner = owner;
        egress->listener = (struct watch){ .fd = -1, .ready = on_listener, .owner = egress };
        egress->again = (struct timer){ .fired = on_again, .owner = egress };
        copy_rules(egress, rules);
        /* Opening a resolver reads files, so a run gets one at its first name; configured servers are checked here. */
        int rc = rules->dns ? resolver_open(loop, rules->dns, egress->rules.connect_ms, &egress->resolver, err) : 0;
        if (rc == 0)
                rc = loop_watch(loop, &egress->listener, fd, EPOLLIN, err);
        if (rc < 0) {
                egress_close(egress);
                return rc;
        }
        take_fd(&fd);
        *ret = egress;
        return 0;
}

int egress_change(struct egress *egress, const struct egress_rules *rules, struct csn_error *err)
{
        struct arena before = egress->arena;
        struct egress_rules new = egress->rules;
        for (size_t i = 0; i < rules->hosts_n; i++)
                if (egress_check_rule(rules->hosts[i], err) < 0)
                        return -err->code;
        new.public_ = rules->public_;
        new.hosts = rules->hosts;
        new.hosts_n = rules->hosts_n;
        new.ranges = rules->ranges;
        new.ranges_n = rules->ranges_n;
        egress->arena = (struct arena){ 0 };
        copy_rules(egress, &new);
        arena_done(&before);
        return 0;
}

void egress_close(struct egress *egress)
{
        if (!egress)
                return;
        for (struct conn *conn = egress->conns, *next; conn; conn = next) {
                next = conn->next;
                conn_free(conn);
        }
        resolver_close(egress->resolver);
        loop_untimer(egress->loop, &egress->again);
        loop_unwatch(egress->loop, &egress->listener);
        fd_close(&egress->listener.fd);
        arena_done(&egress->arena);
        free(egress);
}

void egress_usage(const struct egress *egress, uint64_t *ret_connections, uint64_t *ret_refused, uint64_t *ret_bytes_in,
                  uint64_t *ret_bytes_out)
{
        *ret_connections = egress->requests;
        *ret_refused = egress->refused;
        *ret_bytes_in = egress->bytes_in;
        *ret_bytes_out = egress->bytes_out;
}
