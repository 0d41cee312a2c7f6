/*
 * The connections of a listener: slow clients are closed, and idle clients make room for new clients.
 *
 * A connection is in one of five states (struct http_client).  The lists of the first three are ordered by time, so
 * the deadlines of thousands of connections need one timer, and each event costs the same at any number of connections.
 *
 * When the listener is nearly full, each new connection closes another: the oldest without a head, or the longest
 * idle.  Of the first CANDIDATES of the list, a connection of the address or user with most connections is closed:
 * a client with few connections is not closed for a client with thousands.  A connection with a request in progress is
 * never closed for another; a tenant's requests in progress are bounded by its share (SHARE_REQUESTS).
 */
#include "front/http/http_private.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

#define CANDIDATES 16
#define SPARE_PART 16                      /* this part of all connections is kept free for new clients, */
#define SPARE_MAX 64                       /* and at most so many */
#define DEADLINE_MIN_US 10000              /* deadlines nearer than this are served together */

/* ---- lists ---- */

static void leave_list(struct http_client *client)
{
        if (client->state > CLIENT_SENDING)
                return;
        struct http_clients *list = &client->http->clients[client->state];
        *(client->prev ? &client->prev->next : &list->first) = client->next;
        *(client->next ? &client->next->prev : &list->last) = client->prev;
        client->prev = client->next = NULL;
        list->n--;
}

static void join_list(struct http_client *client)
{
        struct http_clients *list = &client->http->clients[client->state];
        client->prev = list->last;
        *(list->last ? &list->last->next : &list->first) = client;
        list->last = client;
        list->n++;
}

/* The longest time of a client in a state, in microseconds. */
static uint64_t state_us(const struct http *http, unsigned state)
{
        const struct http_options *options = &http->options;
        if (state == CLIENT_SENDING)
                return min_u64(HTTP_WINDOW_US, options->head_us);
        return options->head_us + (state == CLIENT_IDLE ? HTTP_IDLE_S * 1000000ULL : 0);
}

static void arm(struct http *http)
{
        uint64_t now = clock_us(), soonest = UINT64_MAX;
        for (unsigned state = 0; state <= CLIENT_SENDING; state++)
                if (http->clients[state].first)
                        soonest = min_u64(soonest, http->clients[state].first->since_us + state_us(http, state));
        if (soonest == UINT64_MAX)
                loop_untimer(http->loop, &http->deadline);
        else if (!http->deadline.active || http->deadline.at_us > soonest)
                loop_timer(http->loop, &http->deadline,
                        soonest > now + DEADLINE_MIN_US ? soonest - now : DEADLINE_MIN_US);
}

void http_client_enter(struct http_client *client, unsigned state)
{
        if (!client || client->state == CLIENT_CUT)
                return;
        leave_list(client);
        client->state = state;
        client->since_us = clock_us();
        client->mark = client->request ? client->request->received : 0;
        if (state == CLIENT_CUT)
                client->http->cut_n++;
        if (state > CLIENT_SENDING)
                return;
        join_list(client);
        if (client->http->clients[state].n == 1)
                arm(client->http);
}

/* ---- closing ---- */

/* No other answer has begun, so this answer is whole. */
static void send_timeout(const struct http_client *client)
{
        static const char body[] = "{\"type\":\"/problems#request_timeout\",\"title\":\"Request Timeout\",\"status\":408,"
                                   "\"code\":\"request_timeout\",\"retryable\":true,\"detail\":\"the head or the body came more "
                                   "slowly than engine.http_head_ms allows\"}";
        char head[200];
        int len = snprintf(head, sizeof head,
                "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/problem+json\r\n"
                "Content-Length: %zu\r\n\r\n",
                sizeof body - 1);
        send(client->fd, head, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
        send(client->fd, body, sizeof body - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* libmicrohttpd notices the end of the socket in its next round, and closes the connection. */
static void cut(struct http_client *client, enum http_closed why)
{
        const struct http_request *request = client->request;
        if ((why == HTTP_CLOSED_HEAD || why == HTTP_CLOSED_RATE) && (!request || !request->response))
                send_timeout(client);
        if (why == HTTP_CLOSED_RATE)
                log_text(LOG_INFO, "http: the client of request %s is cut, because its body comes too slowly",
                        request->id);
        client->http->closed[why]++;
        http_client_enter(client, CLIENT_CUT);
        shutdown(client->fd, SHUT_RDWR);
}

/* Whether the body came fast enough since the begin of the window, or was not read by ourselves. */
static bool keeps_rate(const struct http_client *client)
{
        const struct http_request *request = client->request;
        uint64_t wanted = HTTP_RATE_MIN * state_us(client->http, CLIENT_SENDING) / 1000000;
        return !request || request->suspended || request->received - client->mark >= wanted;
}

static void on_deadline(struct timer *timer)
{
        static const enum http_closed why[] = { HTTP_CLOSED_HEAD, HTTP_CLOSED_IDLE, HTTP_CLOSED_RATE };
        struct http *http = timer->owner;
        uint64_t now = clock_us();
        for (unsigned state = 0; state <= CLIENT_SENDING; state++)
                for (struct http_client *client; (client = http->clients[state].first) &&
                     client->since_us + state_us(http, state) <= now;) {
                        if (state == CLIENT_SENDING && keeps_rate(client))
                                http_client_enter(client, CLIENT_SENDING);
                        else
                                cut(client, why[state]);
                }
        arm(http);
}

/* The client to close: of the oldest few, a client of the address or user with most connections. */
static struct http_client *find_victim(const struct http_clients *list, const struct http_client *newest)
{
        struct http_client *victim = NULL;
        unsigned looked = 0;
        for (struct http_client *one = list->first; one && looked++ < CANDIDATES; one = one->next)
                if (one != newest && (!victim || share_held(one->peer, SHARE_CONNECTIONS) >
                                                         share_held(victim->peer, SHARE_CONNECTIONS)))
                        victim = one;
        return victim;
}

static void make_room(struct http *http, const struct http_client *newest)
{
        unsigned most = http->options.connections_max, spare = most / SPARE_PART;
        spare = spare > SPARE_MAX ? SPARE_MAX : spare < 1 ? 1 : spare;
        if (http->clients_n - http->cut_n + spare <= most)
                return;
        const struct http_clients *fresh = &http->clients[CLIENT_NEW], *idle = &http->clients[CLIENT_IDLE];
        struct http_client *victim = NULL;
        /* Few connections without a head are new clients, and their heads are on the way. */
        if (fresh->n > spare || !idle->n)
                victim = find_victim(fresh, newest);
        if (!victim)
                victim = find_victim(idle, newest);
        if (victim)
                cut(victim, HTTP_CLOSED_FULL);
}

/* ---- beginning and end ---- */

/* "address 192.0.2.1", "address 2001:db8:0:1::/64" (a client's own part of IPv6), or "user 1000". */
static struct holder *find_peer(struct http *http, struct MHD_Connection *connection, int fd)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        const struct sockaddr *address = info ? info->client_addr : NULL;
        struct ucred who = { .uid = (uid_t)-1 };
        socklen_t len = sizeof who;
        char text[INET6_ADDRSTRLEN] = "unknown", name[sizeof text + 20];
        if (address && address->sa_family == AF_INET) {
                inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)address)->sin_addr, text, sizeof text);
                snprintf(name, sizeof name, "address %s", text);
        } else if (address && address->sa_family == AF_INET6) {
                struct in6_addr net = ((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
                bool mapped = IN6_IS_ADDR_V4MAPPED(&net);
                if (!mapped)
                        memset(net.s6_addr + 8, 0, 8);
                inet_ntop(AF_INET6, &net, text, sizeof text);
                snprintf(name, sizeof name, "address %s%s", text, mapped ? "" : "/64");
        } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid != (uid_t)-1) {
                snprintf(name, sizeof name, "user %u", who.uid);
        } else {
                snprintf(name, sizeof name, "address %s", text);
        }
        return holder_get(http->options.shares, name);
}

struct http_client *http_client_new(struct http *http, struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct http_client *client = mem_alloc(sizeof *client);
        *client = (struct http_client){
                .http = http, .connection = connection, .fd = info ? info->connect_fd : -1, .state = CLIENT_BUSY
        };
        client->peer = find_peer(http, connection, client->fd);
        share_count(client->peer, SHARE_CONNECTIONS, 1);
        http->clients_n++;
        http->deadline.fired = on_deadline;
        http->deadline.owner = http;
        http_client_enter(client, CLIENT_NEW);
        make_room(http, client);
        return client;
}

void http_client_free(struct http_client *client)
{
        struct http *http = client->http;
        leave_list(client);
        http->clients_n--;
        http->cut_n -= client->state == CLIENT_CUT;
        if (client->request)
                client->request->client = NULL;
        share_give(client->peer, SHARE_CONNECTIONS, 1);
        holder_put(client->peer);
        free(client);
}

uint64_t http_closed(const struct http *http, enum http_closed why)
{
        return http->closed[why];
}
