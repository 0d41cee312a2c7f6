/*
 * Answers: headers, a whole body, a file, a stream, or 101.
 *
 * An answer to a request without a connection goes through request->answers, which internal_request.c sets.
 */
#include "front/http/http_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define STREAM_BLOCK (32 * KIB)

struct header {
        struct header *next;
        const char *name, *value;
};

void http_set_header(struct http_request *request, const char *name, const char *value)
{
        struct header *header = arena_alloc(&request->arena, sizeof *header);
        *header = (struct header){ request->headers, arena_text(&request->arena, "%s", name),
                arena_text(&request->arena, "%s", value) };
        request->headers = header;
}

void http_set_range(struct http_request *request, uint64_t offset, uint64_t length, uint64_t size)
{
        char text[100];
        if (length)
                snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, offset, offset + length - 1,
                        size);
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
        request->http->events->answering(request->http->owner, request);
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
        if (!MHD_get_response_header(response, "Cache-Control"))
                MHD_add_response_header(response, "Cache-Control", "no-store");
}

void http_answer(struct http_request *request, unsigned status, const char *type, char *text, size_t len)
{
        if (request->answers) {
                request->answers->answer(request, status, type, text, len);
                return;
        }
        request->state = HTTP_ANSWERED;
        set_response(request, status, type, MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE));
        http_resume(request);
}

void http_answer_shared(struct http_request *request, unsigned status, const char *type, const char *text, size_t len,
        void (*release)(void *text))
{
        void *shared = (void *)(uintptr_t)text;
        if (request->answers) {
                request->answers->answer(request, status, type, mem_copy(text, len), len);
                if (release)
                        release(shared);
                return;
        }
        request->state = HTTP_ANSWERED;
        set_response(request, status, type,
                release ? MHD_create_response_from_buffer_with_free_callback(len, shared, release)
                        : MHD_create_response_from_buffer(len, shared, MHD_RESPMEM_PERSISTENT));
        http_resume(request);
}

void http_answer_file(struct http_request *request, unsigned status, const char *type, int fd, uint64_t offset,
        uint64_t size)
{
        if (request->answers) {
                request->answers->answer_file(request, status, type, fd, offset, size);
                return;
        }
        request->state = HTTP_ANSWERED;
        request->file_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* -1: libmicrohttpd has the last descriptor */
        set_response(request, status, type, MHD_create_response_from_fd_at_offset64(size, fd, offset));
        http_resume(request);
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
        size_t left = http_queued(request);
        (void)at;
        if (request->state == HTTP_GONE || (request->cut && !left))
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (!left && request->ended)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (!left) {
                http_suspend(request);
                return 0;
        }
        size_t n = stream_read(&request->queue, bytes, size);
        http_charge_queue(request);
        http_tell_room(request);
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
        if (request->answers)
                request->answers->head(request, status, type);
        /* To HEAD, libmicrohttpd 0.9.75 sends the end of a body in chunks all the same. */
        else if (size == UINT64_MAX && strcmp(request->method, "HEAD") == 0)
                set_response(request, status, type, MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
        else
                set_response(request, status, type,
                        MHD_create_response_from_callback(size, STREAM_BLOCK, read_stream, request, NULL));
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
        size_t all = http_queued(request) + len;
        bool fits = all <= HTTP_STREAM_LOW ||
                (all <= HTTP_STREAM_MAX && share_fits(request->holder, SHARE_STREAMS, len));
        if (fits)
                stream_add(&request->queue, bytes, len);
        request->waits = request->waits || !fits;
        http_charge_queue(request);
        http_resume(request);
        upgrade_flush(request);
        return fits;
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
