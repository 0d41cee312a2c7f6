/*
 * Internal requests: from a front to routes, in place of a client; see http_internal_request() in http.h.
 *
 * An internal request has no connection, so a timer of its own does the work of libmicrohttpd: everything is reported
 * from the loop, and never from within a called function.
 */
#include "front/http/http_private.h"

#include <stdio.h>
#include <unistd.h>

#define PIECE_MAX (32 * KIB)               /* bytes of a body for take() at once */
#define ANSWER_PIECE_MAX (256 * KIB)       /* bytes of an answer reported in a step of the loop */

/* ---- answers ---- */

static void inner_head(struct http_request *request, unsigned status, const char *type)
{
        request->status = status;
        request->type = arena_text(&request->arena, "%s", type);
}

static void inner_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len)
{
        request->state = HTTP_ANSWERED;
        request->ended = true;
        inner_head(request, status, type);
        request->whole_answer = (struct buf){ .bytes = text, .len = len, .size = len, .max = len };
        http_resume(request);
}

static void inner_answer_file(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset,
        uint64_t size)
{
        struct csn_error err;
        if (size > HTTP_FILE_MAX) {
                close(fd);
                err_field(&err, "", "the file is longer than %llu MiB; fetch it over HTTP", HTTP_FILE_MAX / MIB);
                http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, &err);
                return;
        }
        request->answer_fd = fd;
        request->answer_at = offset;
        request->answer_left = size;
        inner_answer(request, status, type, NULL, 0);
}

static const struct http_answers inner_answers = {
        .head = inner_head, .answer = inner_answer, .answer_file = inner_answer_file,
};

static void inner_free(struct http_request *request)
{
        const struct http *http = request->http;
        http->events->over(http->owner, request);
        http_request_free(request);
        http->events->ended(http->owner);
}

/* The next piece of a file.  An early end of the file cuts the answer. */
static void read_piece(struct http_request *request)
{
        struct buf *piece = &request->whole_answer;
        size_t len = min_u64(request->answer_left, ANSWER_PIECE_MAX);
        if (!piece->bytes)
                *piece = (struct buf){ .bytes = mem_alloc(len), .size = len, .max = len };
        ssize_t n = pread(request->answer_fd, piece->bytes, len, (off_t)request->answer_at);
        request->cut = n <= 0;
        piece->len = n > 0 ? (size_t)n : 0;
        request->whole_at = 0;
        request->answer_at += piece->len;
        request->answer_left -= n > 0 ? piece->len : request->answer_left;
}

/* A piece of an answer without a stream.  False: no piece follows. */
static bool deliver_piece(struct http_request *request)
{
        struct buf *answer = &request->whole_answer;
        if (request->whole_at == answer->len && request->answer_left)
                read_piece(request);
        size_t len = min_u64(answer->len - request->whole_at, ANSWER_PIECE_MAX);
        request->whole_at += len;
        if (len)
                request->inner->bytes(request->inner_owner, answer->bytes + request->whole_at - len, len);
        return request->state != HTTP_GONE && (request->whole_at < answer->len || request->answer_left);
}

/* False: a later step reports more. */
static bool inner_deliver(struct http_request *request)
{
        const struct http_internal *inner = request->inner;
        size_t len;
        if (request->type) {
                request->http->events->answered(request->http->owner, request, request->status);
                inner->begun(request->inner_owner, request->status, request->type);
                request->type = NULL;
        }
        if (deliver_piece(request)) {
                http_resume(request);
                return false;
        }
        size_t left = ANSWER_PIECE_MAX;
        for (const char *front; left && request->state != HTTP_GONE && (front = stream_front(&request->queue, &len));) {
                len = min_u64(len, left);
                left -= len;
                inner->bytes(request->inner_owner, front, len);
                stream_drop(&request->queue, len);
        }
        http_charge_queue(request);
        /* The receiver of the bytes may have let go of the request. */
        if (request->state == HTTP_GONE)
                return true;
        http_tell_room(request);
        bool more = http_queued(request) > 0;
        if (more)
                http_resume(request);
        return !more;
}

/* A piece a step, as from a connection; a receiver of a whole piece gets the next without asking. */
static void take_piece(struct http_request *request)
{
        size_t len = min_u64(request->body.len - request->body_at, PIECE_MAX);
        size_t n = request->take(request, request->body.bytes + request->body_at, len);
        request->body_at += n;
        if (n == len && request->body_at < request->body.len)
                http_resume(request);
}

/* Part of the answer is to be read, or part of the body may be taken. */
static void on_inner(struct timer *timer)
{
        struct http_request *request = timer->owner;
        const struct http_internal *inner = request->inner;
        if (request->state == HTTP_READING) {
                request->state = HTTP_OWNED;
                if (!http_body_is_whole(request->route) || !request->http->events->parse(request->http->owner, request))
                        request->route->handle(request);
        }
        if (request->state == HTTP_OWNED && request->take && request->body_at < request->body.len)
                take_piece(request);
        if (request->state == HTTP_OWNED && request->whole && request->body_at == request->body.len) {
                void (*whole)(struct http_request *) = request->whole;
                request->whole = NULL;
                whole(request);
        }
        if (request->state != HTTP_GONE && !inner_deliver(request))
                return;
        if (!request->ended && request->state != HTTP_GONE)
                return;
        void *owner = request->inner_owner;
        bool good = request->ended && !request->cut && request->state != HTTP_GONE, told = !request->dropped;
        inner_free(request);
        if (told)
                inner->over(owner, good);
}

void http_internal_forget(struct http_request *request)
{
        bool told = (request->state == HTTP_OWNED || request->state == HTTP_STREAMING) && !request->ended;
        request->state = HTTP_GONE;
        request->dropped = true;
        if (told && request->gone)
                request->gone(request);
        request->key = NULL;
        http_resume(request);
}

/* ---- asking ---- */

static struct pair *copy_pairs(struct arena *arena, const struct pair *pairs, size_t n)
{
        struct pair *copy = arena_alloc(arena, (n + 1) * sizeof *copy);
        for (size_t i = 0; i < n; i++)
                copy[i] = (struct pair){ arena_text(arena, "%s", pairs[i].name),
                        arena_text(arena, "%s", pairs[i].value) };
        return copy;
}

struct http_request *http_internal_request(struct http *http, const struct http_internal_answered *asked,
        const struct http_internal *inner, void *owner)
{
        struct http_request *request = http_request_new(http, NULL, asked->path);
        struct csn_error err;
        unsigned status = 0;
        request->state = HTTP_READING;
        request->method = arena_text(&request->arena, "%s", asked->method);
        request->path = arena_text(&request->arena, "%s", asked->path);
        request->app = http->inner;
        request->inner = inner;
        request->inner_owner = owner;
        request->answers = &inner_answers;
        request->answer_fd = -1;
        request->asked.headers = copy_pairs(&request->arena, asked->headers, asked->headers_n);
        request->asked.headers_n = asked->headers_n;
        request->asked.query = copy_pairs(&request->arena, asked->query, asked->query_n);
        request->asked.query_n = asked->query_n;
        request->reschedule.fired = on_inner;
        snprintf(request->id, sizeof request->id, "%s", asked->id);
        snprintf(request->tenant, sizeof request->tenant, "%s", asked->tenant);
        request->key = asked->key;
        trace_below(asked->trace, &request->trace);
        http_set_holder(request);
        request->body = (struct buf){
                .bytes = asked->body, .len = asked->body_len, .size = asked->body_len, .max = asked->body_len
        };
        if (http_charge(request, SHARE_BODIES, asked->body_len, &err) < 0) {
                http_answer_excess(request, &err);
        } else if (asked->body_len > HTTP_BODY_MAX) {
                err_field(&err, "/", "the body is longer than %llu MiB", HTTP_BODY_MAX / MIB);
                http_problem(request, MHD_HTTP_CONTENT_TOO_LARGE, &err);
        } else if (http_find_route(request, asked->method, &status, &err) < 0) {
                http_problem(request, status, &err);
        } else if (request->app->admit(request, &err) < 0) {
                request->status ? http_problem(request, request->status, &err) : http_fail(request, &err);
        }
        http_resume(request);
        return request;
}

void http_open_internal(struct loop *loop, const struct http_options *options, const struct http_app *app,
        const struct http_events *events, void *owner, struct http **ret)
{
        struct http *http = mem_alloc(sizeof *http);
        *http = (struct http){ .loop = loop,
                .options = *options,
                .inner = app,
                .events = events,
                .owner = owner,
                .listener = -1,
                .local = true };
        http->watch = (struct watch){ .fd = -1 };
        *ret = http;
}
