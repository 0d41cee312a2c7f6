/*
 * The socket of a request: suspend and resume its connection, and notice the end of its client.
 *
 * Of the folder this file calls clients.c alone.  http->timer, which http_reschedule() arms, runs libmicrohttpd from
 * server.c.
 */
#include "front/http/http_private.h"

#include <sys/epoll.h>

#define RESCHEDULE_US 50000

/* libmicrohttpd does its work from the loop, and never from within its own callbacks. */
void http_reschedule(struct http *http)
{
        http->kicked = true;
        loop_timer(http->loop, &http->timer, 0);
}

void http_resume(struct http_request *request)
{
        if (request->inner)
                loop_timer(request->http->loop, &request->reschedule, 0);
        if (!request->suspended)
                return;
        request->suspended = false;
        loop_unwatch(request->http->loop, &request->watch);
        MHD_resume_connection(request->connection);
        http_reschedule(request->http);
        if (request->client && request->client->state == CLIENT_SENDING)
                http_client_enter(request->client, CLIENT_SENDING);
        if (request->state == HTTP_OWNED && request->whole)
                http_watch_end(request);
}

/*
 * libmicrohttpd waits for edges, and takes a short read for the end of the available bytes; so an end behind the last
 * bytes is seen only when the connection is idle for too long.  A resumed connection is read from again.
 */
void http_on_reschedule(struct timer *timer)
{
        struct http_request *request = timer->owner;
        if (request->suspended || request->state != HTTP_OWNED || !request->whole)
                return;
        MHD_suspend_connection(request->connection);
        MHD_resume_connection(request->connection);
        http_reschedule(request->http);
        loop_timer(request->http->loop, timer, RESCHEDULE_US);
}

/* Nothing is read from a suspended connection, so its end would not be noticed. */
static void on_socket(struct watch *watch, uint32_t events)
{
        struct http_request *request = watch->owner;
        if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
                return;
        if (!request->suspended) {
                loop_unwatch(request->http->loop, watch);
                loop_timer(request->http->loop, &request->reschedule, 0);
                return;
        }
        bool told = (request->state == HTTP_OWNED || request->state == HTTP_STREAMING) && !request->ended;
        request->state = HTTP_GONE;
        if (told && request->gone)
                request->gone(request);
        http_resume(request);
}

void http_suspend(struct http_request *request)
{
        MHD_suspend_connection(request->connection);
        request->suspended = true;
        http_watch_end(request);
}

void http_watch_end(struct http_request *request)
{
        struct csn_error err;
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        loop_unwatch(request->http->loop, &request->watch);
        request->watch = (struct watch){ .fd = -1, .ready = on_socket, .owner = request };
        if (info && loop_watch(request->http->loop, &request->watch, info->connect_fd, EPOLLRDHUP, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}
