/* HTTP/1.1 by libmicrohttpd; see http.h. */
#include "front/http/http_private.h"

#include "engine/engine.h"
#include "net/http_headers.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define STREAM_BLOCK (32 * KIB)
#define RESCHEDULE_US 50000
#define ROUNDS_MAX 100      /* that did nothing, though libmicrohttpd asked for each of them at once; see http_cut_stuck() */
#define ROUND_US 10000      /* between those that follow; an event of a connection ends the wait */

/* ---- libmicrohttpd in our loop ---- */

/* Its work is done from the loop, and never from within one of its own callbacks. */
void http_reschedule(struct http *http)
{
        http->kicked = true;
        loop_timer(http->loop, &http->timer, 0);
}

/* Many rounds did nothing.  Of an answer that is a file, a round sends a part without a callback. */
static bool is_idle(struct http *http)
{
        if (++http->rounds < ROUNDS_MAX)
                return false;
        for (const struct http_request *request = http->requests; request; request = request->next)
                if (request->response && !request->suspended)
                        http->rounds = 0;
        return http->rounds > 0;
}

/* libmicrohttpd that has all connections it may have does not listen, and looks whether it may again in a round that it does not ask for. */
static void look_full(struct http *http)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
        bool was = http->full;
        http->full = info && info->num_connections >= http->most;
        http->kicked = http->kicked || (was && !http->full);
}

/* What a callback resumes, libmicrohttpd looks at in its next round, which it does not ask for by itself. */
static void run_daemon(struct http *http)
{
        MHD_UNSIGNED_LONG_LONG ms;
        http->kicked = false;
        MHD_run(http->daemon);
        look_full(http);
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

static void watch_end(struct http_request *request);

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
        if (request->state == HTTP_OWNED && request->whole)
                watch_end(request);
}

/*
 * libmicrohttpd waits for edges, and takes a short read for the end of what there is; so an end that came behind the last bytes is seen
 * only when the connection is idle for too long.  One that was resumed is read from again.
 */
static void on_reschedule(struct timer *timer)
{
        struct http_request *request = timer->owner;
        if (request->suspended || request->state != HTTP_OWNED || !request->whole)
                return;
        MHD_suspend_connection(request->connection);
        MHD_resume_connection(request->connection);
        http_reschedule(request->http);
        loop_timer(request->http->loop, timer, RESCHEDULE_US);
}

/* Nothing is read from a connection that is suspended, so its end would not be noticed. */
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

static void suspend(struct http_request *request)
{
        MHD_suspend_connection(request->connection);
        request->suspended = true;
        watch_end(request);
}

static void watch_end(struct http_request *request)
{
        struct csn_error err;
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        loop_unwatch(request->http->loop, &request->watch);
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
        len = (size_t)snprintf(request->id, sizeof request->id, "req_");
        hex_random(12, request->id + len);
}

struct header_count {
        const char *name, *value;
        size_t n;
};

static enum MHD_Result count_header(void *owner, enum MHD_ValueKind kind, const char *name, const char *value)
{
        struct header_count *count = owner;
        (void)kind;
        if (strcasecmp(name, count->name) == 0) {
                count->value = value;
                count->n++;
        }
        return MHD_YES;
}

/* Of two headers nobody knows which is right. */
static void begin_trace(struct http_request *request)
{
        struct header_count count = { "traceparent", NULL, 0 };
        MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_header, &count);
        trace_begin(&request->trace, count.n == 1 ? count.value : NULL, false);
}

/* A segment of a path, decoded; NULL: it has a NUL, or a slash where none may be. */
static char *decode_segment(struct http_request *request, const char *segment, size_t len, bool slashes)
{
        char *text = arena_copy(&request->arena, segment, len);
        size_t decoded = MHD_http_unescape(text);
        return memchr(text, 0, decoded) || (!slashes && memchr(text, '/', decoded)) ? NULL : text;
}

/* By segments.  What stands for {name} is the request's. */
static bool match_path(struct http_request *request, const char *pattern, bool slashes)
{
        const char *path = request->uri;
        size_t parts = 0;
        if (strcmp(pattern, "*") == 0)
                return true;
        while (*pattern == '/' && *path == '/') {
                size_t wanted = strcspn(++pattern, "/"), len = strcspn(++path, "/?");
                char *segment = decode_segment(request, path, len, slashes);
                bool named = *pattern == '{';
                if (!segment || (named && (!*segment || parts == HTTP_PARTS_MAX)))
                        return false;
                if (!named && (strlen(segment) != wanted || memcmp(segment, pattern, wanted) != 0))
                        return false;
                if (named)
                        request->parts[parts++] = segment;
                pattern += wanted;
                path += len;
        }
        return !*pattern && (!*path || *path == '?');
}

bool http_is_for(struct http_request *request, const struct http_route *routes, bool slashes)
{
        for (const struct http_route *route = routes; route->path; route++)
                if (match_path(request, route->path, slashes))
                        return true;
        return false;
}

static bool is_method(const struct http_route *route, const char *method)
{
        return strcmp(route->method, method) == 0 || strcmp(route->method, "*") == 0 || (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

int http_find_route(struct http_request *request, const char *method, unsigned *ret_status, struct csn_error *err)
{
        struct buf allowed;
        buf_init(&allowed, KIB);
        for (const struct http_route *route = request->app->routes; route->path; route++) {
                if (!match_path(request, route->path, request->app->slashes))
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

static bool is_choice(const char *choices, const char *value)
{
        size_t len = strlen(value);
        for (const char *at = choices;; at += strcspn(at, "| ") + 1) {
                if (strcspn(at, "| ") == len && memcmp(at, value, len) == 0)
                        return true;
                if (at[strcspn(at, "| ")] != '|')
                        return false;
        }
}

static enum MHD_Result check_query_name(void *owner, enum MHD_ValueKind kind, const char *name, size_t name_size, const char *value, size_t value_size)
{
        struct query_check *check = owner;
        size_t len = strlen(name);
        (void)kind, (void)name_size;
        if (value && memchr(value, 0, value_size)) {
                check->wrong = true;
                err_field(check->err, name, "%.60s has a NUL in it (%%00)", name);
                return MHD_NO;
        }
        for (const char *at = check->known; at && *at; at += strcspn(at, " "), at += *at == ' ') {
                if (*at == '*')
                        return MHD_YES;
                if (strcspn(at, " =") != len || memcmp(at, name, len) != 0)
                        continue;
                if (at[len] != '=' || is_choice(at + len + 1, value ? value : ""))
                        return MHD_YES;
                check->wrong = true;
                err_field(check->err, name, "%s is \"%.40s\"; it can be: %.*s", name, value ? value : "", (int)strcspn(at + len + 1, " "), at + len + 1);
                return MHD_NO;
        }
        check->wrong = true;
        err_field(check->err, "", "the query has an unknown name \"%.60s\"; known are: %s", name, check->known ? check->known : "none");
        return MHD_NO;
}

static int check_query(struct http_request *request, struct csn_error *err)
{
        struct query_check check = { request->route ? request->route->query : NULL, err, false };
        MHD_get_connection_values_n(request->connection, MHD_GET_ARGUMENT_KIND, check_query_name, &check);
        return check.wrong ? -err->code : 0;
}

/* While the daemon ends nothing is begun; what goes on can still be looked at and ended. */
static int refuse_new(const struct http_request *request, unsigned *ret_status, struct csn_error *err)
{
        const struct http_route *route = request->route;
        if (!request->http->draining || !route || strcmp(route->method, "GET") == 0 || strcmp(route->method, "DELETE") == 0)
                return 0;
        *ret_status = MHD_HTTP_SERVICE_UNAVAILABLE;
        return http_draining(request->http, err);
}

/* What can be refused by the head alone is, so that nobody has to send a body for nothing. */
static int check_head(struct http_request *request, const char *method, const char *target, const char *version, unsigned *ret_status,
                      struct csn_error *err)
{
        struct http *http = request->http;
        const char *length = http_header(request, "Content-Length");
        uint64_t announced = length ? strtoull(length, NULL, 10) : 0;
        request->app = http->events->app(http->owner, request);
        if (http_check_form(request, target, version, ret_status, err) < 0 || http_find_route(request, method, ret_status, err) < 0)
                return -err->code;
        if (refuse_new(request, ret_status, err) < 0 || check_query(request, err) < 0)
                return -err->code;
        if (request->app->admit(request, err) < 0) {
                *ret_status = request->status;
                return -err->code;
        }
        if (request->route->body == BODY_NONE && announced)
                return err_field(err, "/", "%s %s takes no body", method, request->route->path);
        if (request->route->body == BODY_WHOLE && http_check_coding(request, ret_status, err) < 0)
                return -err->code;
        if (request->route->body == BODY_WHOLE && (announced > HTTP_BODY_MAX || http->held + announced > HTTP_HELD_MAX)) {
                *ret_status = announced > HTTP_BODY_MAX ? MHD_HTTP_CONTENT_TOO_LARGE : MHD_HTTP_SERVICE_UNAVAILABLE;
                return err_field(err, "/", "the body is longer than %llu MiB, or all bodies together are longer than %llu MiB",
                                 HTTP_BODY_MAX / MIB, HTTP_HELD_MAX / MIB);
        }
        return 0;
}

struct http_request *http_request_new(struct http *http, struct MHD_Connection *connection, const char *uri)
{
        struct http_request *request = mem_alloc(sizeof *request);
        *request = (struct http_request){ .http = http, .connection = connection, .next = http->requests, .began_us = clock_us(),
                                          .watch = { .fd = -1 }, .reschedule = { .fired = on_reschedule, .owner = request } };
        http->requests = request;
        request->uri = arena_text(&request->arena, "%s", uri);
        request->method = request->path = "";
        buf_init(&request->body, HTTP_BODY_MAX + 1);
        buf_init(&request->out, HTTP_STREAM_MAX);
        return request;
}

/* Its first line has come, of which this is the only place that has the path as it was sent. */
static void *on_uri(void *owner, const char *uri, struct MHD_Connection *connection)
{
        return http_request_new(owner, connection, uri);
}

/* And all of its head. */
static void begin(struct http_request *request, const char *method, const char *path)
{
        request->state = HTTP_READING;
        request->method = arena_text(&request->arena, "%s", method);
        request->path = arena_text(&request->arena, "%s", path);
        make_id(request);
        begin_trace(request);
}

void http_request_free(struct http_request *request)
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
        loop_untimer(http->loop, &request->reschedule);
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
        } else if ((request->refused += *len) > HTTP_BODY_MAX) {
                return MHD_NO;   /* it was refused, and goes on all the same; libmicrohttpd would answer at its end only */
        }
        *len = 0;
        return MHD_YES;
}

static void handle(struct http_request *request)
{
        request->state = HTTP_OWNED;
        if (request->app->handle)
                request->app->handle(request);
        else
                request->route->handle(request);
}

/* libmicrohttpd's callback: with the head, with each part of the body, at its end, and again when it was resumed. */
static enum MHD_Result on_request(void *owner, struct MHD_Connection *connection, const char *url, const char *method, const char *version,
                                  const char *bytes, size_t *len, void **own)
{
        struct http_request *request = *own;
        struct csn_error err;
        unsigned status = 0;
        (void)owner, (void)connection;
        if (request->http->closing)
                return MHD_NO;   /* came in its last round, and who would be suspended now would never go on */
        request->looks = 0;
        request->http->rounds = 0;
        if (request->state == HTTP_BEGINNING) {
                begin(request, method, url);
                if (check_head(request, method, url, version, &status, &err) == 0) {
                        if (request->route && request->route->body == BODY_STREAM) {
                                handle(request);
                                if (request->state == HTTP_OWNED)
                                        watch_end(request);
                        }
                        return request->early && request->response ? send_response(request) : MHD_YES;
                }
                status ? http_problem(request, status, &err) : http_fail(request, &err);
                /* An answer before a body ends the connection, for nobody could tell where the next request begins. */
                bool body = http_header(request, "Transfer-Encoding") || strcmp(http_header(request, "Content-Length") ? : "0", "0") != 0;
                return body ? send_response(request) : MHD_YES;
        }
        if (*len)
                return take_body(request, bytes, len);
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
        bool begun = request->state != HTTP_BEGINNING;
        bool told = (request->state == HTTP_OWNED || request->state == HTTP_STREAMING) && !request->ended;
        request->state = HTTP_GONE;
        if (told && request->gone)
                request->gone(request);
        if (begun)
                http->events->over(http->owner, request);
        http_request_free(request);
        if (begun)
                http->events->ended(http->owner);
}

void *http_owner(const struct http_request *request)
{
        return request->http->owner;
}

/* ---- what came ---- */

static const char *given(const struct pair *pairs, size_t n, const char *name)
{
        for (size_t i = 0; i < n; i++)
                if (strcasecmp(pairs[i].name, name) == 0)
                        return pairs[i].value;
        return NULL;
}

const char *http_header(const struct http_request *request, const char *name)
{
        if (request->inner)
                return given(request->asked.headers, request->asked.headers_n, name);
        return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

struct each_header {
        bool (*each)(void *owner, const char *name, const char *value);
        void *owner;
};

static enum MHD_Result on_header(void *owner, enum MHD_ValueKind kind, const char *name, const char *value)
{
        const struct each_header *to = owner;
        (void)kind;
        return to->each(to->owner, name, value ? value : "") ? MHD_YES : MHD_NO;
}

void http_each_header(const struct http_request *request, bool (*each)(void *owner, const char *name, const char *value), void *owner)
{
        struct each_header to = { each, owner };
        MHD_get_connection_values(request->connection, MHD_HEADER_KIND, on_header, &to);
}

const char *http_query(const struct http_request *request, const char *name)
{
        if (request->inner)
                return given(request->asked.query, request->asked.query_n, name);
        return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_query_bytes(const struct http_request *request, const char *name, size_t *ret_len)
{
        const char *value = request->inner ? http_query(request, name) : NULL;
        *ret_len = value ? strlen(value) : 0;
        if (!request->inner)
                MHD_lookup_connection_value_n(request->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value, ret_len);
        return value;
}

const char *http_part(const struct http_request *request, size_t n)
{
        return n < HTTP_PARTS_MAX ? request->parts[n] : NULL;
}

bool http_accepts(const struct http_request *request, const char *type)
{
        const char *accept = http_header(request, "Accept");
        return type[0] ? header_lists(accept, type) : !accept;
}

bool http_peer(const struct http_request *request, uid_t *ret)
{
        const union MHD_ConnectionInfo *info = MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct ucred who = { .uid = (uid_t)-1 };
        socklen_t len = sizeof who;
        if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.uid == (uid_t)-1)
                return false;
        *ret = who.uid;
        return true;
}

void http_more(struct http_request *request)
{
        http_resume(request);
        upgrade_more(request);
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

void http_set_range(struct http_request *request, uint64_t offset, uint64_t length, uint64_t size)
{
        char text[100];
        if (length)
                snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, offset, offset + length - 1, size);
        else
                snprintf(text, sizeof text, "bytes */%" PRIu64, size);
        http_set_header(request, "Content-Range", text);
}

void http_set_modified(struct http_request *request, uint64_t ms)
{
        char text[64];
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        http_set_header(request, "Last-Modified", text);
}

static void set_response(struct http_request *request, unsigned status, const char *type, struct MHD_Response *response)
{
        char traceparent[TRACEPARENT_MAX];
        trace_print(&request->trace, traceparent);
        request->response = response;
        request->status = status;
        for (const struct header *header = request->headers; header; header = header->next)
                MHD_add_response_header(response, header->name, header->value);
        if (!type)
                return;
        MHD_add_response_header(response, "Content-Type", type);
        MHD_add_response_header(response, "X-Request-Id", request->id);
        MHD_add_response_header(response, "traceparent", traceparent);
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "Cache-Control", "no-store");
}

void http_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len)
{
        if (request->inner) {
                http_internal_answer(request, status, type, text, len);
                return;
        }
        request->state = HTTP_ANSWERED;
        set_response(request, status, type, MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE));
        http_resume(request);
}

void http_answer_file(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset, uint64_t size)
{
        if (request->inner) {
                http_internal_answer_file(request, status, type, fd, offset, size);
                return;
        }
        request->state = HTTP_ANSWERED;
        set_response(request, status, type, MHD_create_response_from_fd_at_offset64(size, fd, offset));
        http_resume(request);
}

void http_json(struct http_request *request, unsigned status, json_t *json)
{
        char *text = model_write(json, JSON_COMPACT | JSON_ENCODE_ANY);
        struct csn_error err;
        json_decref(json);
        if (text) {
                http_answer(request, status, "application/json", text, strlen(text));
                return;
        }
        err_set(&err, CSN_E_SYSTEM, 0, "the answer could not be written");
        http_fail(request, &err);
}

void http_drop(struct http_request *request)
{
        request->state = HTTP_GONE;
        http_resume(request);
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
        http_stream_sized(request, status, type, UINT64_MAX);
}

void http_stream_sized(struct http_request *request, unsigned status, const char *type, uint64_t size)
{
        _Static_assert(MHD_SIZE_UNKNOWN == UINT64_MAX, "a size that is not known");
        request->state = HTTP_STREAMING;
        if (request->inner)
                http_internal_head(request, status, type);
        /* To HEAD, libmicrohttpd 0.9.75 sends the end of a body in chunks all the same. */
        else if (size == UINT64_MAX && strcmp(request->method, "HEAD") == 0)
                set_response(request, status, type, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
        else
                set_response(request, status, type, MHD_create_response_from_callback(size, STREAM_BLOCK, read_stream, request, NULL));
        http_resume(request);
}

void http_upgrade(struct http_request *request)
{
        request->state = HTTP_STREAMING;
        set_response(request, MHD_HTTP_SWITCHING_PROTOCOLS, NULL, upgrade_response(request));
        http_resume(request);
}

bool http_add(struct http_request *request, const void *bytes, size_t len)
{
        if (request->out_at && request->out.len + len > request->out.max) {
                memmove(request->out.bytes, request->out.bytes + request->out_at, request->out.len - request->out_at);
                request->out.len -= request->out_at;
                request->out_at = 0;
        }
        bool fits = buf_add(&request->out, bytes, len);
        http_resume(request);
        upgrade_flush(request);
        return fits;
}

size_t http_queued(const struct http_request *request)
{
        return request->out.len - request->out_at;
}

void http_end(struct http_request *request)
{
        request->ended = true;
        http_resume(request);
        upgrade_flush(request);
}

void http_cut(struct http_request *request)
{
        request->ended = request->cut = true;
        http_resume(request);
        upgrade_close(request);
}

/* ---- listening ---- */

static void on_log(void *owner, const char *fmt, va_list args)
{
        char text[400];
        (void)owner;
        vsnprintf(text, sizeof text, fmt, args);
        text[strcspn(text, "\n")] = 0;
        log_text(LOG_INFO, "http: %s", text);
}

/* A quarter of what clients may have is for a listener of this host's users, a quarter for the socket of frames, and the rest for the network. */
unsigned http_connections_max(bool local)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return HTTP_CONNECTIONS_MAX;
        size_t all = engine_client_descriptors(limit.rlim_cur), shared = min_u64(all / 4, HTTP_LOCAL_MAX);
        return (unsigned)min_u64(max_u64(local ? shared : all - 2 * shared, 4), HTTP_CONNECTIONS_MAX);
}

int http_open(struct loop *loop, int listener, bool ours, unsigned most, const struct http_events *events, void *owner, struct http **ret,
              struct csn_error *err)
{
        struct http *http = mem_alloc(sizeof *http);
        *http = (struct http){ .loop = loop, .ours = ours, .events = events, .owner = owner, .listener = listener, .most = most };
        http->watch = (struct watch){ .fd = -1, .ready = on_ready, .owner = http };
        http->timer = (struct timer){ .fired = on_timer, .owner = http };
        http->local = http_note_address(listener, http->address, sizeof http->address);
        if (ours && listen(listener, SOMAXCONN) < 0) {
                err_set(err, CSN_E_SYSTEM, errno, "listen on %s", http->address);
                http_close(http);
                return -err->code;
        }
        http->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, http,
                                        MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, http->listener,
                                        MHD_OPTION_URI_LOG_CALLBACK, on_uri, http, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
                                        MHD_OPTION_CONNECTION_LIMIT, most,
                                        MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_MAX,
                                        MHD_OPTION_END);
        const union MHD_DaemonInfo *info = http->daemon ? MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
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
        return http->draining ? err_set(err, CSN_E_BUSY, 0, "draining: the daemon is about to end; send it to another, or again in a while") : 0;
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
        } else {
                fd_close(&http->listener);
        }
        if (http->ours && strncmp(http->address, "unix:", 5) == 0)
                unlink(http->address + 5);
        free(http);
}
