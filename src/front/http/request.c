/* A received request: its life, identifier, trace context, headers, query and path. */
#include "front/http/http_private.h"

#include "base/discard.h"
#include "net/http_headers.h"

#include <stdio.h>
#include <sys/socket.h>

/* ---- life ---- */

static struct http_client *client_of(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                connection ? MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT) : NULL;
        return info ? info->socket_context : NULL;
}

static void join_list(struct http_request *request)
{
        struct http *http = request->http;
        request->next = http->requests;
        request->link = &http->requests;
        if (http->requests)
                http->requests->link = &request->next;
        http->requests = request;
}

struct http_request *http_request_new(struct http *http, struct MHD_Connection *connection, const char *uri)
{
        struct http_request *request = mem_alloc(sizeof *request);
        *request = (struct http_request){ .http = http,
                .connection = connection,
                .client = client_of(connection),
                .began_us = clock_us(),
                .watch = { .fd = -1 },
                .file_fd = -1,
                .reschedule = { .fired = http_on_reschedule, .owner = request } };
        if (!connection)
                join_list(request);
        if (request->client) {
                request->client->request = request;
                request->holder = holder_ref(request->client->peer);
        }
        request->uri = arena_text(&request->arena, "%s", uri);
        request->method = request->path = "";
        buf_init(&request->body, HTTP_BODY_MAX + 1);
        return request;
}

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
        hex_id(12, request->id + len);
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

/* Of two headers either may be wrong. */
static void begin_trace(struct http_request *request)
{
        struct header_count count = { "traceparent", NULL, 0 };
        MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_header, &count);
        trace_begin(&request->trace, count.n == 1 ? count.value : NULL, false);
}

/* And all of its head. */
void http_request_begin(struct http_request *request, const char *method, const char *path)
{
        join_list(request);
        request->state = HTTP_READING;
        request->method = arena_text(&request->arena, "%s", method);
        request->path = arena_text(&request->arena, "%s", path);
        make_id(request);
        begin_trace(request);
}

/* A file of an ended answer. */
struct http_file {
        struct http_file *next;
        int fd;
        char share[sizeof((struct http_request *)NULL)->tenant];
};

static void keep_file(struct http_request *request)
{
        if (request->file_fd < 0)
                return;
        struct http_file *file = mem_alloc(sizeof *file);
        *file = (struct http_file){ .next = request->http->files, .fd = take_fd(&request->file_fd) };
        memcpy(file->share, request->tenant, sizeof file->share);
        request->http->files = file;
}

void http_close_files(struct http *http)
{
        for (struct http_file *file = http->files, *next; file; file = next) {
                next = file->next;
                discard_fd(http->options.workers, file->share, &file->fd);
                free(file);
        }
        http->files = NULL;
}

void http_request_free(struct http_request *request)
{
        struct http *http = request->http;
        if (request->link)
                *request->link = request->next;
        if (request->next)
                request->next->link = request->link;
        if (request->response)
                MHD_destroy_response(request->response);
        if (request->parsed)
                request->parsed_free(request);
        if (request->client)
                request->client->request = NULL;
        for (size_t i = 0; i < SHARES_N; i++)
                if (request->charged[i])
                        share_give(request->holder, (enum share)i, request->charged[i]);
        holder_put(request->holder);
        loop_unwatch(http->loop, &request->watch);
        loop_untimer(http->loop, &request->reschedule);
        buf_done(&request->body);
        buf_done(&request->whole_answer);
        if (request->inner)
                discard_fd(http->options.workers, request->tenant, &request->answer_fd);
        keep_file(request);
        stream_free(&request->queue);
        arena_done(&request->arena);
        free(request);
}

/* ---- shares ---- */

void http_set_holder(struct http_request *request)
{
        char name[sizeof "tenant " + sizeof request->tenant];
        if (!request->tenant[0] && request->holder)
                return;
        snprintf(name, sizeof name, "tenant %s", request->tenant);
        holder_put(request->holder);
        request->holder = holder_get(request->http->options.shares, name);
}

int http_charge(struct http_request *request, enum share share, uint64_t amount, struct csn_error *err)
{
        if (share_take(request->holder, share, amount, err) < 0) {
                bool own = !share_is_exhausted(request->holder, share, amount);
                request->excess = (struct http_limit){ .name = own ? share_name(share) : NULL,
                        .limit = share_limit(request->holder, share),
                        .current = share_held(request->holder, share),
                        .reset_s = 1 };
                return -err->code;
        }
        request->charged[share] += amount;
        return 0;
}

void http_move_body(struct http_request *request, struct share_charge *ret)
{
        *ret = (struct share_charge){ holder_ref(request->holder), SHARE_BODIES, request->charged[SHARE_BODIES] };
        request->charged[SHARE_BODIES] = 0;
        buf_done(&request->body);
}

void http_drop_body(struct http_request *request)
{
        struct share_charge charge;
        http_move_body(request, &charge);
        share_charge_done(&charge);
}

void *http_owner(const struct http_request *request)
{
        return request->http->owner;
}

/* ---- headers, query and path ---- */

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

void http_each_header(const struct http_request *request,
        bool (*each)(void *owner, const char *name, const char *value), void *owner)
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
                MHD_lookup_connection_value_n(request->connection, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value,
                        ret_len);
        return value;
}

const char *http_part(const struct http_request *request, size_t n)
{
        return n < HTTP_PARTS_MAX ? request->parts[n] : NULL;
}

size_t http_announced(const struct http_request *request)
{
        const char *length = http_header(request, "Content-Length");
        return length ? strtoull(length, NULL, 10) : 0;
}

bool http_accepts(const struct http_request *request, const char *type)
{
        const char *accept = http_header(request, "Accept");
        return type[0] ? header_lists(accept, type) : !accept;
}

bool http_peer(const struct http_request *request, uid_t *ret)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct ucred who = { .uid = (uid_t)-1 };
        socklen_t len = sizeof who;
        if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.uid == (uid_t)-1)
                return false;
        *ret = who.uid;
        return true;
}

enum http_body http_body_of(const struct http_route *route)
{
        return (enum http_body)(route->body & (BODY_MIB(1) - 1));
}

bool http_body_is_whole(const struct http_route *route)
{
        enum http_body body = http_body_of(route);
        return body == BODY_WHOLE || body == BODY_TREE || body == BODY_RPC;
}

void http_call_handler(struct http_request *request)
{
        if (request->app->handle)
                request->app->handle(request);
        else
                request->route->handle(request);
}

void http_parsed(struct http_request *request)
{
        if (request->state == HTTP_OWNED)
                http_call_handler(request);
}

void http_more(struct http_request *request)
{
        http_resume(request);
        upgrade_more(request);
}
