/* Connections to workers; see link.h. */
#include "gateway/fleet/link.h"

#include "net/tls_client.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READ_MAX (64 * KIB)
#define READS_AT_ONCE 4                    /* then other connections have their turn */
#define OUT_CEILING (2 * LINK_OUT_MAX + 64 * MIB)   /* users send pieces while there is room, so less is queued */

struct link {
        struct link *next;                 /* of the waiting links */
        struct gateway_worker *worker;
        struct loop *loop;
        const struct link_events *events;
        void *owner;
        struct watch watch;
        struct tls *tls;
        struct buf out;
        size_t out_at;                     /* sent bytes of `out` */
        struct timer timer;                /* limit of connect and idle time; deferred news; the end */
        bool connected, open, reused, waiting, held, full, dead, finished;
        const char *why;                   /* of a failure not yet reported */
        char text[120];
};

static void on_ready(struct watch *watch, uint32_t events);

/* ---- the end ---- */

static void on_dead(struct timer *timer)
{
        struct link *link = timer->owner;
        tls_free(link->tls);
        buf_done(&link->out);
        worker_unref(link->worker);
        free(link);
}

/* The memory is freed from the loop: a callback of the link may be running. */
void link_end(struct link *link)
{
        if (!link || link->dead)
                return;
        link->dead = true;
        loop_unwatch(link->loop, &link->watch);
        fd_close(&link->watch.fd);
        link->timer.fired = on_dead;
        loop_timer(link->loop, &link->timer, 0);
}

static void remove_waiting(struct link *link)
{
        for (struct link **at = &link->worker->idle; *at; at = &(*at)->next)
                if (*at == link) {
                        *at = link->next;
                        link->worker->idle_n--;
                        break;
                }
        link->waiting = false;
}

void links_close(struct gateway_worker *worker)
{
        while (worker->idle) {
                struct link *link = worker->idle;
                remove_waiting(link);
                link_end(link);
        }
}

static void on_failed(struct timer *timer)
{
        struct link *link = timer->owner;
        if (!link->finished) {
                link->finished = true;
                link->events->closed(link->owner, link->why);
        }
}

/* Tell the user from the loop, once. */
static void fail(struct link *link, const char *why)
{
        loop_unwatch(link->loop, &link->watch);
        if (why)
                snprintf(link->text, sizeof link->text, "%s", why);
        link->why = why ? link->text : NULL;
        link->timer.fired = on_failed;
        loop_timer(link->loop, &link->timer, 0);
}

static void end(struct link *link, const char *why)
{
        if (link->waiting) {
                remove_waiting(link);
                link_end(link);
                return;
        }
        if (link->finished)
                return;
        link->finished = true;
        loop_unwatch(link->loop, &link->watch);
        loop_untimer(link->loop, &link->timer);
        link->events->closed(link->owner, why);
}

/* ---- sending ---- */

static void listen_on(struct link *link)
{
        struct csn_error err;
        size_t waiting = link->out.len - link->out_at;
        uint32_t events = (link->held ? 0 : EPOLLIN | EPOLLRDHUP) | (waiting || !link->connected ? EPOLLOUT : 0);
        if (!link->dead && loop_watch(link->loop, &link->watch, link->watch.fd, events, &err) < 0)
                fail(link, err.text);
}

/* Bytes of TLS go into the queue of the socket. */
static void move_tls(struct link *link)
{
        const void *bytes;
        for (size_t len; link->tls && (len = tls_waiting(link->tls, &bytes)); tls_gone(link->tls, len))
                if (!buf_add(&link->out, bytes, len)) {
                        fail(link, "too many bytes wait for the worker");
                        return;
                }
}

static void flush(struct link *link)
{
        move_tls(link);
        while (link->out_at < link->out.len) {
                ssize_t n = send(link->watch.fd, link->out.bytes + link->out_at, link->out.len - link->out_at,
                        MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;             /* reading reports the end of the connection */
                link->out_at += (size_t)n;
        }
        if (link->out_at == link->out.len) {
                link->out.len = link->out_at = 0;
                buf_trim(&link->out);
        } else if (link->out_at > LINK_OUT_MAX) {
                memmove(link->out.bytes, link->out.bytes + link->out_at, link->out.len - link->out_at);
                link->out.len -= link->out_at;
                link->out_at = 0;
        }
        listen_on(link);
}

bool link_has_room(const struct link *link)
{
        return link->out.len - link->out_at < LINK_OUT_MAX;
}

void link_send(struct link *link, const void *bytes, size_t len)
{
        if (link->dead || link->finished || link->timer.fired == on_failed)
                return;
        size_t sent = 0;
        if (link->tls ? !tls_write(link->tls, bytes, len) : false) {
                fail(link, "TLS to the worker broke off");
                return;
        }
        if (!link->tls && link->out.len == link->out_at && link->open) {
                ssize_t n = send(link->watch.fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
                sent = n > 0 ? (size_t)n : 0;
        }
        if (!link->tls && sent < len && !buf_add(&link->out, (const char *)bytes + sent, len - sent)) {
                fail(link, "too many bytes wait for the worker");
                return;
        }
        if (link->tls || sent < len)
                flush(link);
        link->full = !link_has_room(link);
}

void link_hold(struct link *link, bool hold)
{
        if (link->held == hold || link->dead || link->finished)
                return;
        link->held = hold;
        listen_on(link);
}

/* ---- connecting and receiving ---- */

static void opened(struct link *link)
{
        loop_untimer(link->loop, &link->timer);
        link->open = true;
        link->events->open(link->owner);
}

static void greet(struct link *link)
{
        bool done;
        if (!tls_greet(link->tls, &done)) {
                end(link, "the worker does not speak TLS, or its certificate is not valid");
                return;
        }
        flush(link);
        if (done)
                opened(link);
}

static void connected(struct link *link)
{
        int error = 0;
        socklen_t len = sizeof error;
        getsockopt(link->watch.fd, SOL_SOCKET, SO_ERROR, &error, &len);
        if (error) {
                end(link, strerrordesc_np(error));
                return;
        }
        link->connected = true;
        if (link->tls)
                greet(link);
        else
                opened(link);
        if (!link->dead && !link->finished)
                flush(link);
}

static void take_tls(struct link *link, const char *bytes, size_t len)
{
        static char plain[READ_MAX];
        ssize_t n = tls_take(link->tls, bytes, len) ? 0 : -1;
        if (n == 0 && !link->open)
                greet(link);
        while (n >= 0 && link->open && !link->dead && !link->finished &&
               (n = tls_read(link->tls, plain, sizeof plain)) > 0)
                link->events->bytes(link->owner, plain, (size_t)n);
        if (n < 0 && !link->dead)
                end(link, "TLS to the worker broke off");
}

/* False: nothing more can be read now. */
static bool receive(struct link *link)
{
        static char bytes[READ_MAX];
        ssize_t n = recv(link->watch.fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n <= 0 || link->waiting)
                end(link, n < 0 ? strerrordesc_np(errno) : NULL);
        else if (link->tls)
                take_tls(link, bytes, (size_t)n);
        else
                link->events->bytes(link->owner, bytes, (size_t)n);
        return n == sizeof bytes;
}

static void on_ready(struct watch *watch, uint32_t events)
{
        struct link *link = watch->owner;
        if (!link->connected) {
                connected(link);
                return;
        }
        if (events & EPOLLOUT)
                flush(link);
        if (!link->dead && !link->finished && link->full && link_has_room(link)) {
                link->full = false;
                link->events->room(link->owner);
        }
        for (int i = 0; i < READS_AT_ONCE && !link->dead && !link->finished && !link->held; i++)
                if (!receive(link))
                        break;
        /* A held connection has failed: without a read no other code would report the failure. */
        if (!link->dead && !link->finished && link->held && events & EPOLLERR)
                end(link, "the connection to the worker failed");
}

static void on_connect_limit(struct timer *timer)
{
        end(timer->owner, "the worker does not accept a connection in time");
}

static void on_idle_limit(struct timer *timer)
{
        end(timer->owner, NULL);
}

static void start(struct link *link)
{
        const struct gateway_worker *worker = link->worker;
        const struct gateway_settings *settings = &fleet_settings(worker->fleet)->gateway;
        const struct sockaddr *address = (const struct sockaddr *)&worker->address;
        const int no_delay = 1;
        const unsigned unacknowledged_ms = (unsigned)settings->down_after;
        struct csn_error err;
        if (!address->sa_family) {
                fail(link, "the worker's name has no address");
                return;
        }
        if (worker->tls && !(link->tls = tls_new_verified(settings->tls_ca, worker->host, &err))) {
                fail(link, err.text);
                return;
        }
        link->watch.fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        setsockopt(link->watch.fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
        setsockopt(link->watch.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
        socklen_t len = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if (link->watch.fd < 0 || (connect(link->watch.fd, address, len) < 0 && errno != EINPROGRESS)) {
                fail(link, strerrordesc_np(errno));
                return;
        }
        link->timer.fired = on_connect_limit;
        loop_timer(link->loop, &link->timer, settings->connect_timeout * 1000);
        listen_on(link);
}

struct link *link_take(struct gateway_worker *worker, const struct link_events *events, void *owner)
{
        struct link *link = worker->idle;
        if (link) {
                remove_waiting(link);
                loop_untimer(link->loop, &link->timer);
                link->events = events;
                link->owner = owner;
                link->reused = true;
                return link;
        }
        link = mem_alloc(sizeof *link);
        *link = (struct link){ .worker = worker_ref(worker), .loop = fleet_loop(worker->fleet), .events = events,
                               .owner = owner, .watch = { .fd = -1, .ready = on_ready, .owner = link },
                               .timer = { .owner = link } };
        buf_init(&link->out, OUT_CEILING);
        start(link);
        return link;
}

bool link_is_open(const struct link *link)
{
        return link->open;
}

bool link_is_reused(const struct link *link)
{
        return link->reused;
}

void link_release(struct link *link)
{
        struct gateway_worker *worker = link->worker;
        bool usable = link->open && !link->finished && !link->dead && link->out.len == link->out_at &&
                      link->timer.fired != on_failed && !worker->removed && worker->idle_n < LINK_IDLE_MAX;
        if (!usable) {
                link_end(link);
                return;
        }
        link->held = link->full = false;
        link->waiting = true;
        link->next = worker->idle;
        worker->idle = link;
        worker->idle_n++;
        link->timer.fired = on_idle_limit;
        loop_timer(link->loop, &link->timer, LINK_IDLE_US);
        listen_on(link);
}
