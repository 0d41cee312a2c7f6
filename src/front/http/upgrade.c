/*
 * Connections with another protocol after 101 (RFC 9110, 15.2.2): libmicrohttpd hands over the socket, and takes the
 * socket back for the close.  The request lives on as the owner of the connection.
 */
#include "front/http/http_private.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#define READ_MAX (16 * KIB)

struct http_upgrade {
        struct http_request *request;
        struct MHD_UpgradeResponseHandle *handle;
        struct watch watch;
        struct buf in;                     /* received, and not taken yet */
};

void upgrade_close(struct http_request *request)
{
        struct http_upgrade *raw = request->raw;
        if (!raw)
                return;
        request->raw = NULL;
        request->state = HTTP_GONE;
        loop_unwatch(request->http->loop, &raw->watch);
        loop_untimer(request->http->loop, &request->reschedule);
        buf_done(&raw->in);
        MHD_upgrade_action(raw->handle, MHD_UPGRADE_ACTION_CLOSE);
        http_reschedule(request->http);
        free(raw);
}

static void broken(struct http_request *request)
{
        void (*gone)(struct http_request *) = request->ended ? NULL : request->gone;
        upgrade_close(request);
        if (gone)
                gone(request);
}

/* The client has read nothing for as long as libmicrohttpd would wait. */
static void on_stall(struct timer *timer)
{
        broken(timer->owner);
}

/* The time begins when bytes wait, and again whenever the client has read some. */
static void watch_stall(struct http_request *request, bool progress)
{
        if (!http_queued(request))
                loop_untimer(request->http->loop, &request->reschedule);
        else if (progress || !request->reschedule.active)
                loop_timer(request->http->loop, &request->reschedule, HTTP_IDLE_S * 1000000ULL);
}

/* Reads only when all received bytes are taken, and writes only when bytes wait. */
static void listen_on(struct http_upgrade *raw)
{
        struct csn_error err;
        uint32_t events = (raw->in.len ? 0 : EPOLLIN) | (http_queued(raw->request) ? EPOLLOUT : 0);
        if (loop_watch(raw->request->http->loop, &raw->watch, raw->watch.fd, events | EPOLLRDHUP, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

/* False: the connection cannot be used any more. */
static bool give(struct http_upgrade *raw, const char *bytes, size_t len)
{
        struct http_request *request = raw->request;
        size_t taken = request->take(request, bytes, len);
        return request->raw && buf_add(&raw->in, bytes + taken, len - taken);
}

void upgrade_more(struct http_request *request)
{
        struct http_upgrade *raw = request->raw;
        if (!raw || !raw->in.len)
                return;
        size_t taken = request->take(request, raw->in.bytes, raw->in.len);
        if (!request->raw)
                return;
        memmove(raw->in.bytes, raw->in.bytes + taken, raw->in.len - taken);
        raw->in.len -= taken;
        listen_on(raw);
}

void upgrade_flush(struct http_request *request)
{
        struct http_upgrade *raw = request->raw;
        if (!raw)
                return;
        size_t len, before = http_queued(request);
        for (const char *front; (front = stream_front(&request->queue, &len));) {
                ssize_t n = send(raw->watch.fd, front, len, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;             /* a broken connection fails at the next read */
                stream_drop(&request->queue, (size_t)n);
        }
        http_charge_queue(request);
        watch_stall(request, http_queued(request) < before);
        if (!http_queued(request) && request->ended) {
                upgrade_close(request);
                return;
        }
        listen_on(raw);
        http_tell_room(request);
}

static void on_ready(struct watch *watch, uint32_t events)
{
        struct http_upgrade *raw = watch->owner;
        struct http_request *request = raw->request;
        char bytes[READ_MAX];
        if (events & EPOLLOUT)
                upgrade_flush(request);
        if (!request->raw || !(events & ~(uint32_t)EPOLLOUT))
                return;
        if (raw->in.len && events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)) {
                broken(request);           /* the client has gone, with input not taken */
                return;
        }
        ssize_t n = recv(watch->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n <= 0 || !give(raw, bytes, (size_t)n))
                broken(request);
        else
                listen_on(raw);
}

static void on_upgraded(void *owner, struct MHD_Connection *connection, void *own, const char *more, size_t more_len,
        MHD_socket fd, struct MHD_UpgradeResponseHandle *handle)
{
        struct http_request *request = owner;
        struct http_upgrade *raw = mem_alloc(sizeof *raw);
        (void)connection, (void)own;
        *raw = (struct http_upgrade){
                .request = request, .handle = handle, .watch = { .fd = fd, .ready = on_ready, .owner = raw }
        };
        buf_init(&raw->in, HTTP_HEAD_MAX + READ_MAX);
        request->raw = raw;
        request->reschedule = (struct timer){ .fired = on_stall, .owner = request };
        if (request->state == HTTP_GONE || (more_len && !give(raw, more, more_len))) {
                broken(request);
                return;
        }
        upgrade_flush(request);
}

struct MHD_Response *upgrade_response(struct http_request *request)
{
        return MHD_create_response_for_upgrade(on_upgraded, request);
}
