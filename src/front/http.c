/* HTTP/1.1 by libmicrohttpd; see http.h. */
#include "front/http.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define STREAM_BLOCK (32 * KIB)

struct http {
        struct loop *loop;
        struct MHD_Daemon *daemon;
        const struct http_route *routes;
        const struct http_events *events;
        void *owner;
        struct watch watch;                /* libmicrohttpd's epoll descriptor */
        struct timer timer;                /* its next deadline, or at once */
        int listener;
        char address[160];
        bool local, draining;
        struct http_request *requests;
        size_t held;
};

/* ---- libmicrohttpd in our loop ---- */

/* Its work is done from the loop, and never from within one of its own callbacks. */
static void kick(struct http *http)
{
        loop_timer(http->loop, &http->timer, 0);
}

static void run_daemon(struct http *http)
{
        MHD_UNSIGNED_LONG_LONG ms;
        MHD_run(http->daemon);
        if (MHD_get_timeout(http->daemon, &ms) == MHD_YES)
                loop_timer(http->loop, &http->timer, ms * 1000);
        else
                loop_untimer(http->loop, &http->timer);
}

static void on_ready(struct watch *watch, uint32_t events)
{
        (void)events;
        run_daemon(watch->owner);
}

static void on_timer(struct timer *timer)
{
        run_daemon(timer->owner);
}

static void resume(struct http_request *request)
{
        if (!request->suspended)
                return;
        request->suspended = false;
        loop_unwatch(request->http->loop, &request->watch);
        MHD_resume_connection(request->connection);
        kick(request->http);
}

/* Nothing is read from a connection that is suspended, so its end would not be noticed. */
static void on_socket(struct watch *watch, uint32_t events)
{
        struct http_request *request = watch->owner;
        if (!(events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
                return;
        bool told = request->state == HTTP_OWNED || request->state == HTTP_STREAMING;
        request->state = HTTP_GONE;
        if (told && request->gone)
                request->gone(request);
        resume(request);
}

static void suspend(struct http_request *request)
{
        struct csn_error err;
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        MHD_suspend_connection(request->connection);
        request->suspended = true;
        request->watch = (struct watch){ .fd = -1, .ready = on_socket, .owner = request };
        if (info && loop_watch(request->http->loop, &request->watch, info->connect_fd, EPOLLRDHUP, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
}

/* ---- requests ---- */

static void make_id(struct http_request *request)
{
        const char *given = http_header(request, "X-Request-Id");
        size_t len = given ? strlen(given) : 0;
        bool good = len > 0 && len < sizeof request->id;
        for (size_t i = 0; good && i < len; i++)
                good = given[i] > ' ' && given[i] < 0x7f && given[i] != '"' && given[i] != '\\';
        if (good) {
                memcpy(request->id, given, len + 1);
                return;
        }
        uint64_t number[2] = { 0 };
        if (getrandom(number, sizeof number, 0) != (ssize_t)sizeof number)
                number[0] = clock_us();
        snprintf(request->id, sizeof request->id, "req_%016" PRIx64 "%08" PRIx32, number[0], (uint32_t)number[1]);
}

/* One segment of a path and of a pattern.  What stands for {name} is copied. */
static bool match_path(struct http_request *request, const char *pattern, const char *path)
{
        size_t parts = 0;
        while (*pattern || *path) {
                if (*pattern != '{') {
                        if (*pattern++ != *path++)
                                return false;
                        continue;
                }
                size_t len = strcspn(path, "/");
                if (!len || parts == HTTP_PARTS_MAX)
                        return false;
                request->parts[parts++] = arena_copy(&request->arena, path, len);
                path += len;
                pattern += strcspn(pattern, "}");
                pattern += *pattern == '}';
        }
        return true;
}

static bool is_method(const struct http_route *route, const char *method)
{
        return strcmp(route->method, method) == 0 || (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

static int find_route(struct http_request *request, const char *method, unsigned *ret_status, struct csn_error *err)
{
        struct buf allowed;
        buf_init(&allowed, KIB);
        for (const struct http_route *route = request->http->routes; route->path; route++) {
                if (!match_path(request, route->path, request->path))
                        continue;
                request->route = route;
                if (is_method(route, method)) {
                        buf_done(&allowed);
                        return 0;
                }
                buf_printf(&allowed, "%s%s", allowed.len ? ", " : "", route->method);
        }
        bool there = request->route;
        request->route = NULL;
        *ret_status = there ? MHD_HTTP_METHOD_NOT_ALLOWED : MHD_HTTP_NOT_FOUND;
        if (there) {
                http_set_header(request, "Allow", allowed.bytes);
                err_field(err, "", "%.20s is nothing that %.200s does; it does %s", method, request->path, allowed.bytes);
        } else {
                err_field(err, "", "there is nothing at %.200s; /openapi.json has what there is", request->path);
        }
        buf_done(&allowed);
        return -err->code;
}

struct query_check {
        const char *known;
        struct csn_error *err;
        bool wrong;
};

static enum MHD_Result check_query_name(void *owner, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct query_check *check = owner;
        size_t len = strlen(name);
        (void)kind, (void)value;
        for (const char *at = check->known; at && *at; at += strcspn(at, " "), at += *at == ' ')
                if (strcspn(at, " ") == len && memcmp(at, name, len) == 0)
                        return MHD_YES;
        check->wrong = true;
        err_field(check->err, "", "the query has an unknown name \"%.60s\"; known are: %s", name, check->known ? check->known : "none");
        return MHD_NO;
}

static int check_query(struct http_request *request, struct csn_error *err)
{
        struct query_check check = { request->route ? request->route->query : NULL, err, false };
        MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, check_query_name, &check);
        return check.wrong ? -err->code : 0;
}

/* What can be refused by the head alone is, so that nobody has to send a body for nothing. */
static int check_head(struct http_request *request, const char *method, unsigned *ret_status, struct csn_error *err)
{
        struct http *http = request->http;
        const char *length = http_header(request, "Content-Length");
        uint64_t announced = length ? strtoull(length, NULL, 10) : 0;
        if (find_route(request, method, ret_status, err) < 0)
                return -err->code;
        if (http->draining)
                return err_set(err, CSN_E_BUSY, 0, "the daemon is about to end"), *ret_status = MHD_HTTP_SERVICE_UNAVAILABLE, -err->code;
        if (check_query(request, err) < 0)
                return -err->code;
        if (http->events->admit(http->owner, request, err) < 0) {
                *ret_status = request->status;
                return -err->code;
        }
        if (request->route->body == BODY_NONE && announced)
                return err_field(err, "/", "%s %s takes no body", method, request->route->path);
        if (request->route->body == BODY_WHOLE && (announced > HTTP_BODY_MAX || http->held + announced > HTTP_HELD_MAX)) {
                *ret_status = announced > HTTP_BODY_MAX ? MHD_HTTP_CONTENT_TOO_LARGE : MHD_HTTP_SERVICE_UNAVAILABLE;
                return err_field(err, "/", "the body is longer than %llu MiB, or all bodies together are longer than %llu MiB",
                                 HTTP_BODY_MAX / MIB, HTTP_HELD_MAX / MIB);
        }
        return 0;
}

static struct http_request *request_new(struct http *http, struct MHD_Connection *connection, const char *path)
{
        struct http_request *request = mem_alloc(sizeof *request);
        *request = (struct http_request){ .http = http, .connection = connection, .next = http->requests, .began_us = clock_us(),
                                          .watch = { .fd = -1 } };
        http->requests = request;
        request->path = arena_text(&request->arena, "%s", path);
        buf_init(&request->body, HTTP_BODY_MAX + 1);
        buf_init(&request->out, HTTP_STREAM_MAX);
        make_id(request);
        return request;
}

static void request_free(struct http_request *request)
{
        struct http *http = request->http;
        for (struct http_request **at = &http->requests; *at; at = &(*at)->next)
                if (*at == request) {
                        *at = request->next;
                        break;
                }
        if (request->response)
                MHD_destroy_response(request->response);
        http->held -= request->body.len;
        loop_unwatch(http->loop, &request->watch);
        buf_done(&request->body);
        buf_done(&request->out);
        arena_done(&request->arena);
        free(request);
}

static enum MHD_Result send_response(struct http_request *request)
{
        enum MHD_Result rc = MHD_queue_response(request->connection, request->status, request->response);
        request->http->events->answered(request->http->owner, request, request->status);
        return rc;
}

static enum MHD_Result take_body(struct http_request *request, const char *bytes, size_t *len)
{
        struct csn_error err;
        if (request->state == HTTP_OWNED) {
                *len -= request->take(request, bytes, *len);
                if (*len)
                        suspend(request);
                return MHD_YES;
        }
        if (request->state == HTTP_GONE)
                return MHD_NO;
        if (request->state == HTTP_READING) {
                request->http->held += *len;
                if (request->http->held > HTTP_HELD_MAX || !buf_add(&request->body, bytes, *len)) {
                        request->http->held -= *len;
                        err_field(&err, "/", "the body is longer than %llu MiB", HTTP_BODY_MAX / MIB);
                        http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, &err);
                }
        } else if (request->body.len + *len > 2 * HTTP_BODY_MAX) {
                return MHD_NO;   /* it was refused, and goes on all the same */
        }
        *len = 0;
        return MHD_YES;
}

/* libmicrohttpd's callback: with the head, with each part of the body, at its end, and again when it was resumed. */
static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
                                  const char *bytes, size_t *len, void **own)
{
        struct http_request *request = *own;
        struct csn_error err;
        unsigned status = 0;
        (void)version;
        if (!request) {
                *own = request = request_new(owner, connection, url);
                if (check_head(request, method, &status, &err) == 0) {
                        if (request->route && request->route->body == BODY_STREAM) {
                                request->state = HTTP_OWNED;
                                request->route->handle(request);
                        }
                        return MHD_YES;
                }
                status ? http_problem(request, status, &err) : http_fail(request, &err);
                /* An answer before a body ends the connection, for nobody could tell where the next request begins. */
                bool body = http_header(request, "Transfer-Encoding") || strcmp(http_header(request, "Content-Length") ? : "0", "0") != 0;
                return body ? send_response(request) : MHD_YES;
        }
        if (*len)
                return take_body(request, bytes, len);
        if (request->state == HTTP_READING) {
                request->state = HTTP_OWNED;
                request->route->handle(request);
        }
        if (request->state == HTTP_OWNED && request->whole) {
                void (*whole)(struct http_request *) = request->whole;
                request->whole = NULL;
                whole(request);
        }
        if (request->state == HTTP_GONE)
                return MHD_NO;
        if (request->response)
                return send_response(request);
        suspend(request);
        return MHD_YES;
}

static void on_completed(void *owner, struct MHD_Connection *connection, void **own, enum MHD_RequestTerminationCode how)
{
        struct http_request *request = *own;
        (void)owner, (void)connection, (void)how;
        *own = NULL;
        if (!request)
                return;
        const struct http *http = request->http;
        bool told = (request->state == HTTP_OWNED || request->state == HTTP_STREAMING) && !request->ended;
        request->state = HTTP_GONE;
        if (told && request->gone)
                request->gone(request);
        request_free(request);
        http->events->ended(http->owner);
}

void *http_owner(const struct http_request *request)
{
        return request->http->owner;
}

/* ---- what came ---- */

const char *http_header(const struct http_request *request, const char *name)
{
        return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

const char *http_query(const struct http_request *request, const char *name)
{
        return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_part(const struct http_request *request, size_t n)
{
        return n < HTTP_PARTS_MAX ? request->parts[n] : NULL;
}

bool http_accepts(const struct http_request *request, const char *type)
{
        const char *accept = http_header(request, "Accept");
        size_t len = strlen(type);
        for (const char *at = accept; at && *at; at += strcspn(at, ","), at += *at == ',') {
                at += strspn(at, " \t");
                if (strncasecmp(at, type, len) == 0 && (!at[len] || strchr(" \t;,", at[len])))
                        return true;
        }
        return !len && !accept;
}

void http_more(struct http_request *request)
{
        resume(request);
}

/* ---- what goes ---- */

struct header {
        struct header *next;
        const char *name, *value;
};

void http_set_header(struct http_request *request, const char *name, const char *value)
{
        struct header *header = arena_alloc(&request->arena, sizeof *header);
        *header = (struct header){ request->headers, arena_text(&request->arena, "%s", name), arena_text(&request->arena, "%s", value) };
        request->headers = header;
}

static void set_response(struct http_request *request, unsigned status, const char *type, struct MHD_Response *response)
{
        request->response = response;
        request->status = status;
        MHD_add_response_header(response, "Content-Type", type);
        MHD_add_response_header(response, "X-Request-Id", request->id);
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "Cache-Control", "no-store");
        for (const struct header *header = request->headers; header; header = header->next)
                MHD_add_response_header(response, header->name, header->value);
}

void http_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len)
{
        request->state = HTTP_ANSWERED;
        set_response(request, status, type, MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE));
        resume(request);
}

void http_json(struct http_request *request, unsigned status, json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENSURE_ASCII * 0);
        struct csn_error err;
        json_decref(json);
        if (text) {
                http_answer(request, status, "application/json", text, strlen(text));
                return;
        }
        err_set(&err, CSN_E_SYSTEM, 0, "the answer could not be written");
        http_fail(request, &err);
}

static const char *title_of(unsigned status)
{
        const char *title = MHD_get_reason_phrase_for(status);
        return title && strcmp(title, "Unknown") != 0 ? title : status == 499 ? "Cancelled" : "Error";
}

void http_problem(struct http_request *request, unsigned status, const struct csn_error *error)
{
        size_t len;
        const char *detail = model_utf8(&request->arena, error->text, strlen(error->text), &len);
        const char *path = model_utf8(&request->arena, request->path, strlen(request->path), &len);
        const char *code = status == MHD_HTTP_NOT_FOUND            ? "not_found"
                           : status == MHD_HTTP_METHOD_NOT_ALLOWED ? "method_not_allowed"
                           : status == MHD_HTTP_UNAUTHORIZED       ? "unauthorized"
                           : status == MHD_HTTP_CONTENT_TOO_LARGE  ? "too_large"
                                                                   : csn_code_name(error->code);
        bool retryable = status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE;
        json_t *json = json_pack("{s:s+, s:s, s:i, s:s, s:s, s:s, s:s, s:b, s:s}", "type", "/problems#", code, "title", title_of(status), "status",
                                 (int)status, "detail", detail, "instance", path, "code", code, "message", detail, "retryable", retryable,
                                 "request_id", request->id);
        if (error->field[0])
                json_object_set_new(json, "field", json_string(error->field));
        char *text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        if (retryable)
                http_set_header(request, "Retry-After", "1");
        http_answer(request, status, "application/problem+json", text, text ? strlen(text) : 0);
}

int http_refuse(struct http_request *request, unsigned status, const struct csn_error *error)
{
        request->status = status;
        return -error->code;
}

void http_fail(struct http_request *request, const struct csn_error *error)
{
        http_problem(request, (unsigned)csn_code_http(error->code), error);
}

/* ---- streams ---- */

/* libmicrohttpd asks for more of the answer. */
static ssize_t read_stream(void *owner, uint64_t at, char *bytes, size_t size)
{
        struct http_request *request = owner;
        size_t left = request->out.len - request->out_at, n = left < size ? left : size;
        (void)at;
        if (request->state == HTTP_GONE || (request->cut && !left))
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (!left && request->ended)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (!left) {
                suspend(request);
                return 0;
        }
        memcpy(bytes, request->out.bytes + request->out_at, n);
        request->out_at += n;
        if (request->out_at == request->out.len)
                request->out_at = request->out.len = 0;
        if (request->room && !request->ended && left - n < HTTP_STREAM_MAX / 2 && left >= HTTP_STREAM_MAX / 2)
                request->room(request);
        return (ssize_t)n;
}

void http_stream(struct http_request *request, unsigned status, const char *type)
{
        request->state = HTTP_STREAMING;
        set_response(request, status, type, MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, read_stream, request, NULL));
        resume(request);
}

bool http_add(struct http_request *request, const void *bytes, size_t len)
{
        if (request->out_at && request->out.len + len > request->out.max) {
                memmove(request->out.bytes, request->out.bytes + request->out_at, request->out.len - request->out_at);
                request->out.len -= request->out_at;
                request->out_at = 0;
        }
        bool fits = buf_add(&request->out, bytes, len);
        resume(request);
        return fits;
}

size_t http_queued(const struct http_request *request)
{
        return request->out.len - request->out_at;
}

void http_end(struct http_request *request)
{
        request->ended = true;
        resume(request);
}

void http_cut(struct http_request *request)
{
        request->ended = request->cut = true;
        resume(request);
}

/* ---- listening ---- */

static int bad_address(const char *address, struct csn_error *err)
{
        return err_set(err, CSN_E_CONFIG, 0, "engine.http is \"%.120s\"; it has to be an address as 127.0.0.1:8080, [::1]:8080 or unix:/path", address);
}

static int parse_address(const char *address, struct sockaddr_storage *ret, socklen_t *ret_len, struct csn_error *err)
{
        struct sockaddr_un *local = (struct sockaddr_un *)ret;
        struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
        const char *colon = strrchr(address, ':');
        char host[64], *end;
        *ret = (struct sockaddr_storage){ 0 };
        if (strncmp(address, "unix:", 5) == 0) {
                int n = snprintf(local->sun_path, sizeof local->sun_path, "%s", address + 5);
                if (n <= 0 || (size_t)n >= sizeof local->sun_path)
                        return bad_address(address, err);
                local->sun_family = AF_UNIX;
                *ret_len = sizeof *local;
                return 0;
        }
        unsigned long port = colon && isdigit((unsigned char)colon[1]) ? strtoul(colon + 1, &end, 10) : 65536;
        bool bracket = colon && address[0] == '[' && colon > address + 1 && colon[-1] == ']';
        size_t len = colon ? (size_t)(colon - address) - (bracket ? 2U : 0U) : 0;
        if (port > 65535 || *end || len == 0 || len >= sizeof host)
                return bad_address(address, err);
        memcpy(host, address + bracket, len);
        host[len] = 0;
        if (bracket && inet_pton(AF_INET6, host, &v6->sin6_addr) == 1) {
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons((uint16_t)port);
                *ret_len = sizeof *v6;
                return 0;
        }
        if (bracket || inet_pton(AF_INET, host, &v4->sin_addr) != 1)
                return bad_address(address, err);
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        *ret_len = sizeof *v4;
        return 0;
}

static bool is_loopback(const struct sockaddr_storage *address)
{
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
        if (address->ss_family == AF_INET)
                return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
        return address->ss_family == AF_UNIX || IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

/* The port that the kernel chose for 0. */
static void note_address(struct http *http, const char *given)
{
        struct sockaddr_storage address = { 0 };
        socklen_t len = sizeof address;
        char host[INET6_ADDRSTRLEN];
        snprintf(http->address, sizeof http->address, "%s", given);
        if (getsockname(http->listener, (struct sockaddr *)&address, &len) < 0 || address.ss_family == AF_UNIX)
                return;
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;
        if (address.ss_family == AF_INET && inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host))
                snprintf(http->address, sizeof http->address, "%s:%u", host, ntohs(v4->sin_port));
        if (address.ss_family == AF_INET6 && inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host))
                snprintf(http->address, sizeof http->address, "[%s]:%u", host, ntohs(v6->sin6_port));
}

static int listen_at(struct http *http, const char *given, struct csn_error *err)
{
        struct sockaddr_storage address = { 0 };
        socklen_t len = 0;
        const int yes = 1;
        if (parse_address(given, &address, &len, err) < 0)
                return -err->code;
        http->local = is_loopback(&address);
        auto_fd fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "socket");
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (address.ss_family == AF_UNIX)
                unlink(given + 5);
        if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, SOMAXCONN) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "listen on %s", given);
        http->listener = take_fd(&fd);
        note_address(http, given);
        return 0;
}

static void on_log(void *owner, const char *fmt, va_list args)
{
        char text[400];
        (void)owner;
        vsnprintf(text, sizeof text, fmt, args);
        text[strcspn(text, "\n")] = 0;
        log_text(LOG_INFO, "http: %s", text);
}

int http_open(struct loop *loop, const char *address, const struct http_route *routes, const struct http_events *events, void *owner,
              struct http **ret, struct csn_error *err)
{
        struct http *http = mem_alloc(sizeof *http);
        *http = (struct http){ .loop = loop, .routes = routes, .events = events, .owner = owner, .listener = -1 };
        http->watch = (struct watch){ .fd = -1, .ready = on_ready, .owner = http };
        http->timer = (struct timer){ .fired = on_timer, .owner = http };
        if (listen_at(http, address, err) < 0) {
                http_close(http);
                return -err->code;
        }
        http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, http,
                                        MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, http->listener,
                                        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX,
                                        MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_MAX,
                                        MHD_OPTION_END);
        const union MHD_DaemonInfo *info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
        if (!info) {
                http_close(http);
                return err_set(err, CSN_E_SYSTEM, 0, "the HTTP server at %s could not be started", address);
        }
        if (loop_watch(loop, &http->watch, info->epoll_fd, EPOLLIN, err) < 0) {
                http_close(http);
                return -err->code;
        }
        kick(http);
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

size_t http_busy(const struct http *http)
{
        size_t n = 0;
        for (const struct http_request *request = http->requests; request; request = request->next)
                n++;
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
        for (struct http_request *request = http->requests; request; request = request->next) {
                bool told = request->state == HTTP_OWNED || request->state == HTTP_STREAMING;
                request->state = HTTP_GONE;
                if (told && request->gone)
                        request->gone(request);
                resume(request);
        }
        loop_unwatch(http->loop, &http->watch);
        loop_untimer(http->loop, &http->timer);
        if (http->daemon) {
                MHD_run(http->daemon);
                MHD_stop_daemon(http->daemon);   /* closes the listener, too */
        } else {
                fd_close(&http->listener);
        }
        if (strncmp(http->address, "unix:", 5) == 0)
                unlink(http->address + 5);
        free(http);
}
