/*
 * HTTP/1.1 by libmicrohttpd in the event loop: its rounds, its callbacks, and listening; see http.h.
 *
 * connection.c suspends and resumes, request.c reads requests, routing.c finds the route, response.c answers.
 */
#include "front/http/http_private.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* without effect, though libmicrohttpd asked for each round at once; see http_cut_stuck() */
#define ROUNDS_MAX 100
#define SOCKET_UNSENT_MAX (128 * 1024)      /* bytes of a connection in the kernel, not sent yet */
#define ROUND_US 10000      /* between later rounds; an event of a connection ends the wait */

/* ---- libmicrohttpd in our loop ---- */

/* Many rounds did nothing.  A round sends a part of a file without a callback. */
static bool is_idle(struct http *http)
{
        if (++http->rounds < ROUNDS_MAX)
                return false;
        for (const struct http_request *request = http->requests; request; request = request->next)
                if (request->response && !request->suspended)
                        http->rounds = 0;
        return http->rounds > 0;
}

/*
 * libmicrohttpd stops listening at its maximum of connections, and when accept(2) lacks a descriptor.  libmicrohttpd
 * listens again in the round after the close of a connection, and does not ask for the round.
 */
static void look_closed(struct http *http)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        unsigned n = info ? info->num_connections : 0;
        http->kicked = http->kicked || n < http->connections_n;
        http->connections_n = n;
}

/* libmicrohttpd looks at a connection resumed by a callback in its next round, and does not ask for the round. */
static void run_daemon(struct http *http)
{
        MHD_UNSIGNED_LONG_LONG ms;
        http->kicked = false;
        MHD_run(http->daemon);
        http_close_files(http);
        look_closed(http);
        bool waits = MHD_get_timeout(http->daemon, &ms) == MHD_YES;
        if (waits && ms == 0)
                http_cut_stuck(http);
        if (http->kicked)
                loop_timer(http->loop, &http->timer, 0);
        else if (waits)
                loop_timer(http->loop, &http->timer, ms || !is_idle(http) ? ms * 1000 : ROUND_US);
        else
                loop_untimer(http->loop, &http->timer);
}

static void on_ready(struct watch *watch, uint32_t events)
{
        struct http *http = watch->owner;
        (void)events;
        http->rounds = 0;
        run_daemon(http);
}

static void on_timer(struct timer *timer)
{
        run_daemon(timer->owner);
}

/* ---- requests ---- */

/* While the daemon ends nothing is begun; GET, DELETE and routes with BODY_LATE still work. */
static int refuse_new(const struct http_request *request, unsigned *ret_status, struct csn_error *err)
{
        const struct http_route *route = request->route;
        if (!request->http->draining || !route || strcmp(route->method, "GET") == 0 ||
                strcmp(route->method, "DELETE") == 0 || route->body & BODY_LATE)
                return 0;
        *ret_status = MHD_HTTP_SERVICE_UNAVAILABLE;
        return http_draining(request->http, err);
}

static int refuse_length(const struct http_request *request, struct csn_error *err)
{
        return err_field(err, "/", "the body is longer than %zu bytes, the maximum for %s %s", request->body.max,
                request->method, request->route->path);
}

/*
 * A tenant gets at most half of the total, at any time.  The announced bytes are charged on arrival, so an announcement
 * alone takes no share.
 */
static int check_length(struct http_request *request, uint64_t announced, unsigned *ret_status, struct csn_error *err)
{
        size_t mib = (request->route->body & BODY_MIB_MASK) / BODY_MIB(1);
        request->body.max = min_u64(mib ? mib * MIB : HTTP_BODY_USUAL_MAX,
                shares_total(request->http->options.shares, SHARE_BODIES) / 2);
        if (announced > request->body.max) {
                *ret_status = MHD_HTTP_CONTENT_TOO_LARGE;
                return refuse_length(request, err);
        }
        if (http_charge(request, SHARE_BODIES, announced, err) < 0)
                return -err->code;
        http_drop_body(request);
        return 0;
}

/* Refuse by the head alone as far as possible, so no client has to send a body for nothing. */
static int check_head(struct http_request *request, const char *method, const char *target, const char *version,
        unsigned *ret_status, struct csn_error *err)
{
        struct http *http = request->http;
        size_t announced = http_announced(request);
        http_split_target(request);
        request->app = http->events->app(http->owner, request);
        if (http_check_form(request, target, version, ret_status, err) < 0)
                return -err->code;
        if (http->events->greet(http->owner, request, err) < 0) {
                *ret_status = request->status;
                return -err->code;
        }
        if (http_find_route(request, method, ret_status, err) < 0)
                return -err->code;
        if (refuse_new(request, ret_status, err) < 0 || http_check_query(request, err) < 0)
                return -err->code;
        if (request->app->admit(request, err) < 0) {
                *ret_status = request->status;
                return -err->code;
        }
        http_set_holder(request);
        if (http_charge(request, http->options.requests, 1, err) < 0)
                return -err->code;
        if (http_body_of(request->route) == BODY_NONE && announced)
                return err_field(err, "/", "%s %s takes no body", method, request->route->path);
        if (!http_body_is_whole(request->route))
                return 0;
        if (http_check_coding(request, ret_status, err) < 0)
                return -err->code;
        return check_length(request, announced, ret_status, err);
}

/* The first line of a request has come.  No other callback gets the path as sent. */
static void *on_uri(void *owner, const char *uri, struct MHD_Connection *connection)
{
        return http_request_new(owner, connection, uri);
}

static enum MHD_Result send_response(struct http_request *request)
{
        http_client_enter(request->client, CLIENT_BUSY);
        enum MHD_Result rc = MHD_queue_response(request->connection, request->status, request->response);
        request->http->events->answered(request->http->owner, request, request->status);
        return rc;
}

/* Hand on, keep or drop bytes of the body; *len becomes the number of bytes not taken. */
static enum MHD_Result take_bytes(struct http_request *request, const char *bytes, size_t *len)
{
        struct csn_error err;
        if (request->state == HTTP_OWNED) {
                size_t taken = request->take(request, bytes, *len);
                request->received += taken;
                *len -= taken;
                if (*len)
                        http_suspend(request);
                return MHD_YES;
        }
        if (request->state == HTTP_GONE)
                return MHD_NO;
        request->received += *len;
        if (request->state == HTTP_READING) {
                if (!request->body.len)
                        buf_reserve(&request->body, http_announced(request));
                bool fits = *len <= request->body.max - request->body.len;
                if (fits && http_charge(request, SHARE_BODIES, *len, &err) < 0) {
                        http_drop_body(request);
                        http_answer_excess(request, &err);
                } else if (!fits || !buf_add(&request->body, bytes, *len)) {
                        http_drop_body(request);
                        refuse_length(request, &err);
                        http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, &err);
                }
        } else if ((request->refused += *len) > HTTP_BODY_MAX) {
                return MHD_NO;   /* the refused body goes on; libmicrohttpd would answer at its end only */
        }
        *len = 0;
        return MHD_YES;
}

static enum MHD_Result take_body(struct http_request *request, const char *bytes, size_t *len)
{
        size_t all = *len;
        if (request->chunked && !http_check_chunk(request, bytes)) {
                http_refuse_chunk(request, "have a line that does not end with CR and LF, or a size that is no number");
                return MHD_NO;
        }
        enum MHD_Result rc = take_bytes(request, bytes, len);
        if (request->chunked)
                http_took_chunk(request, bytes, all - *len);
        return rc;
}

static void handle(struct http_request *request)
{
        const struct http_events *events = request->http->events;
        struct csn_error err;
        if (events->begin(request->http->owner, request, &err) < 0) {
                http_problem(request, request->status, &err);
                return;
        }
        request->state = HTTP_OWNED;
        if (!http_body_is_whole(request->route) || !events->parse(request->http->owner, request))
                http_call_handler(request);
}

static void answer_refusal(struct http_request *request, unsigned status, const struct csn_error *err)
{
        if (status)
                http_problem(request, status, err);
        else if (request->excess.reset_s)
                http_answer_excess(request, err);
        else
                http_fail(request, err);
}

/* libmicrohttpd's callback: with the head, with each part of the body, at its end, and again after a resumption. */
static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *url, const char *method,
        const char *version, const char *bytes, size_t *len, void **own)
{
        struct http_request *request = *own;
        struct csn_error err;
        unsigned status = 0;
        (void)owner, (void)connection;
        if (request->http->closing)
                return MHD_NO;   /* from the last round: a request suspended now would never go on */
        request->looks = 0;
        request->http->rounds = 0;
        if (request->state == HTTP_BEGINNING) {
                http_request_begin(request, method, url);
                http_client_enter(request->client, CLIENT_SENDING);
                if (check_head(request, method, url, version, &status, &err) == 0) {
                        if (request->route && http_body_of(request->route) == BODY_STREAM) {
                                handle(request);
                                if (request->state == HTTP_OWNED)
                                        http_watch_end(request);
                        }
                        return request->early && request->response ? send_response(request) : MHD_YES;
                }
                answer_refusal(request, status, &err);
                /* An answer before a body ends the connection, for the begin of the next request is unknown. */
                bool body = http_header(request, "Transfer-Encoding") ||
                        strcmp(http_header(request, "Content-Length") ?: "0", "0") != 0;
                return body ? send_response(request) : MHD_YES;
        }
        if (*len)
                return take_body(request, bytes, len);
        http_client_enter(request->client, CLIENT_BUSY);
        if (request->state == HTTP_READING && refuse_new(request, &status, &err) < 0) {
                http_problem(request, status, &err);
        } else if (request->state == HTTP_READING) {
                handle(request);
        }
        if (request->state == HTTP_OWNED && request->whole) {
                void (*whole)(struct http_request *) = request->whole;
                request->whole = NULL;
                loop_unwatch(request->http->loop, &request->watch);
                loop_untimer(request->http->loop, &request->reschedule);
                whole(request);
        }
        if (request->state == HTTP_GONE)
                return MHD_NO;
        if (request->response)
                return send_response(request);
        http_suspend(request);
        return MHD_YES;
}

static void end_request(struct http_request *request)
{
        struct http_client *client = request->client;
        const struct http *http = request->http;
        bool begun = request->state != HTTP_BEGINNING;
        bool told = (request->state == HTTP_OWNED || request->state == HTTP_STREAMING) && !request->ended;
        request->state = HTTP_GONE;
        if (told && request->gone)
                request->gone(request);
        if (begun)
                http->events->over(http->owner, request);
        http_request_free(request);
        http_client_enter(client, CLIENT_IDLE);
        if (begun)
                http->events->ended(http->owner);
}

static void on_completed(void *owner, struct MHD_Connection *connection, void **own,
        enum MHD_RequestTerminationCode how)
{
        struct http_request *request = *own;
        (void)owner, (void)connection, (void)how;
        *own = NULL;
        if (request)
                end_request(request);
}

/*
 * A connection was accepted, or is closed after on_completed().  libmicrohttpd 1.0 closes without on_completed() when
 * the library itself has answered the body of a request.
 */
static void on_connection(void *owner, struct MHD_Connection *connection, void **context,
        enum MHD_ConnectionNotificationCode what)
{
        if (what == MHD_CONNECTION_NOTIFY_STARTED) {
                *context = http_client_new(owner, connection);
        } else if (*context) {
                struct http_client *client = *context;
                if (client->request)
                        end_request(client->request);
                http_client_free(client);
                *context = NULL;
        }
}

/* ---- listening ---- */

static void on_log(void *owner, const char *fmt, va_list args)
{
        char text[400];
        (void)owner;
        vsnprintf(text, sizeof text, fmt, args);
        text[strcspn(text, "\n")] = 0;
        /* Clients leaving in the middle of a request or an answer are no news, and could fill the log. */
        bool left = strncmp(text, "Failed to send", 14) == 0 || strncmp(text, "Connection was closed", 21) == 0;
        log_text(left ? LOG_DEBUG : LOG_INFO, "http: %s", text);
}

int http_open(struct loop *loop, int listener, bool ours, const struct http_options *options,
        const struct http_events *events, void *owner, struct http **ret, struct csn_error *err)
{
        const int unsent = SOCKET_UNSENT_MAX;
        struct http *http = mem_alloc(sizeof *http);
        *http = (struct http){
                .loop = loop, .ours = ours, .events = events, .owner = owner, .listener = listener, .options = *options
        };
        http->watch = (struct watch){ .fd = -1, .ready = on_ready, .owner = http };
        http->timer = (struct timer){ .fired = on_timer, .owner = http };
        /* Unread answers stay in the daemon, which counts the bytes, and not in the kernel (tcp(7), Linux 3.12). */
        setsockopt(listener, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
        http->local = http_note_address(listener, http->address, sizeof http->address);
        if (ours && listen(listener, SOMAXCONN) < 0) {
                err_set(err, CSN_E_SYSTEM, errno, "listen on %s", http->address);
                http_close(http);
                return -err->code;
        }
        http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE |
                        MHD_USE_ERROR_LOG,
                0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET,
                http->listener, MHD_OPTION_URI_LOG_CALLBACK, on_uri, http, MHD_OPTION_NOTIFY_COMPLETED, on_completed,
                NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_CONNECTION_LIMIT,
                options->connections_max, MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_S,
                HTTP_STRICTNESS MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_MAX, MHD_OPTION_END);
        const union MHD_DaemonInfo *info =
                http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        if (!info) {
                http_close(http);
                return err_set(err, CSN_E_SYSTEM, 0, "the HTTP server could not be started");
        }
        if (loop_watch(loop, &http->watch, info->epoll_fd, EPOLLIN, err) < 0) {
                http_close(http);
                return -err->code;
        }
        http_reschedule(http);
        *ret = http;
        return 0;
}

const char *http_address(const struct http *http)
{
        return http->address;
}

bool http_is_local(const struct http *http)
{
        return http->local;
}

void http_drain(struct http *http)
{
        http->draining = true;
}

int http_draining(const struct http *http, struct csn_error *err)
{
        return http->draining ? err_set(err, CSN_E_BUSY, 0,
                                        "draining: the daemon is about to end; send it to another, or again in a while")
                              : 0;
}

size_t http_busy(const struct http *http)
{
        size_t n = 0;
        for (const struct http_request *request = http->requests; request; request = request->next)
                n += request->state != HTTP_BEGINNING && request->state != HTTP_READING && request->state != HTTP_GONE;
        return n;
}

size_t http_connections(const struct http *http)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        return info ? info->num_connections : 0;
}

void http_close(struct http *http)
{
        if (!http)
                return;
        http->closing = true;
        for (struct http_request *request = http->requests; request; request = request->next) {
                bool told = (request->state == HTTP_OWNED || request->state == HTTP_STREAMING) && !request->ended;
                request->state = HTTP_GONE;
                if (told && request->gone)
                        request->gone(request);
                http_resume(request);
                upgrade_close(request);
        }
        for (struct http_request *request = http->daemon ? NULL : http->requests, *next; request; request = next) {
                next = request->next;
                http_request_free(request);
        }
        loop_unwatch(http->loop, &http->watch);
        loop_untimer(http->loop, &http->timer);
        if (http->daemon) {
                MHD_run(http->daemon);
                MHD_stop_daemon(http->daemon);   /* closes the listener, too */
                http_close_files(http);
        } else {
                fd_close(&http->listener);
        }
        loop_untimer(http->loop, &http->deadline);
        if (http->ours && strncmp(http->address, "unix:", 5) == 0)
                unlink(http->address + 5);
        free(http);
}
