/* One attempt of a request at a worker: the request is sent, and the answer passed on. */
#include "gateway/gateway_private.h"

#include "front/http/relay.h"
#include "gateway/fleet/link.h"

#include <stdio.h>
#include <strings.h>

#define PIECE (64 * KIB)                   /* bytes of a body sent at once */

/* ---- end ---- */

void attempt_stop(struct forward *forward)
{
        if (!forward->answer)
                return;
        if (forward->worker)
                forward->worker->sent--;
        link_end(forward->link);
        forward->link = NULL;
        http_answer_free(forward->answer);
        forward->answer = NULL;
        buf_done(&forward->head);
}

/* The answer is complete: the link goes back, if the whole request was sent. */
static void release(struct forward *forward)
{
        bool sent = forward->streams ? !forward->took || forward->end_sent || (forward->whole && !forward->chunked)
                                     : forward->body_at == forward->request->body.len;
        struct link *link = forward->link;
        forward->link = NULL;
        worker_answered(forward->worker, http_answer_header(forward->answer, HOP_LOAD_HEADER));
        if (sent && forward->answer->keeps)
                link_release(link);
        else
                link_end(link);
}

/* ---- the request ---- */

static void send_kept(struct forward *forward)
{
        const struct buf *body = &forward->request->body;
        while (forward->body_at < body->len && link_has_room(forward->link)) {
                size_t len = min_u64(body->len - forward->body_at, PIECE);
                link_send(forward->link, body->bytes + forward->body_at, len);
                forward->body_at += len;
        }
}

static void send_last_chunk(struct forward *forward)
{
        if (forward->whole && forward->chunked && !forward->end_sent && forward->link && link_is_open(forward->link)) {
                forward->end_sent = true;
                link_send(forward->link, "0\r\n\r\n", 5);
        }
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct forward *forward = request->owner;
        char head[RELAY_CHUNK_EXTRA];
        if (!forward->link || !link_is_open(forward->link) || !link_has_room(forward->link) ||
                forward->state != FORWARD_TRYING)
                return 0;
        len = min_u64(len, PIECE);
        forward->took = true;
        if (!forward->chunked || forward->answer->raw) {
                link_send(forward->link, bytes, len);
                return len;
        }
        link_send(forward->link, head, relay_chunk_head(head, len));
        link_send(forward->link, bytes, len);
        link_send(forward->link, "\r\n", 2);
        return len;
}

static void whole(struct http_request *request)
{
        struct forward *forward = request->owner;
        forward->whole = true;
        send_last_chunk(forward);
}

static bool write_head(struct forward *forward)
{
        static const char *const drops[] = { HOP_CALL_HEADER, HOP_ATTEMPT_HEADER, "traceparent", "X-Request-Id", NULL };
        struct http_request *request = forward->request;
        const struct gateway *gateway = forward->gateway;
        char trace[TRACEPARENT_MAX];
        /* The gateway exports no spans: the worker's span is below the client's, or the first of the trace. */
        struct trace above = request->trace;
        if (above.parent[0])
                memcpy(above.span, above.parent, sizeof above.span);
        trace_print(&above, trace);
        size_t spread = gateway_spread(request, fleet_ready(gateway->fleet));
        const char *host = http_header(request, "Host");
        const char *signature = gateway->keys ? hop_sign(gateway->keys, request->method, request->uri,
                                                        gateway_claims(request, spread), &request->arena) : NULL;
        const char *more = arena_text(&request->arena, "traceparent: %s\r\nX-Request-Id: %s\r\n" HOP_ATTEMPT_HEADER ": %s\r\n%s%s%s",
                trace, request->id, forward->attempt, signature ? HOP_CALL_HEADER ": " : "", signature ? signature : "",
                signature ? "\r\n" : "");
        const struct relay_rules rules = { .drops = drops, .host = host ? host : forward->worker->host, .more = more,
                                           .whole = !forward->streams, .keeps = true };
        return relay_write_head(request, &rules, &forward->head, &forward->chunked);
}

/* ---- the answer ---- */

static bool is_refusal(const struct forward *forward, unsigned status)
{
        bool unknown = status == MHD_HTTP_UNAUTHORIZED || status == MHD_HTTP_FORBIDDEN || status == MHD_HTTP_NOT_FOUND;
        return status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE ||
               (unknown && forward->kind == FORWARD_SEARCH);
}

/* The worker was asked for this attempt earlier, and has barred the attempt. */
static bool is_barred(const struct http_answer *answer)
{
        const char *word = http_answer_header(answer, HOP_ATTEMPT_HEADER);
        return answer->status == MHD_HTTP_CONFLICT && word && strcmp(word, HOP_ATTEMPT_BARRED) == 0;
}

/* Is this a status with which a worker does not keep the Idempotency-Key? */
static bool leaves_key(unsigned status)
{
        static const unsigned statuses[] = { MHD_HTTP_BAD_REQUEST, MHD_HTTP_UNAUTHORIZED, MHD_HTTP_FORBIDDEN,
                MHD_HTTP_CONTENT_TOO_LARGE, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, MHD_HTTP_TOO_MANY_REQUESTS,
                MHD_HTTP_SERVICE_UNAVAILABLE, MHD_HTTP_INSUFFICIENT_STORAGE };
        for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
                if (status == statuses[i])
                        return true;
        return false;
}

static void note_frames(struct forward *forward)
{
        const char *type = http_answer_header(forward->answer, "Content-Type");
        if (type && strncasecmp(type, "text/event-stream", 17) == 0)
                forward->frames = FRAMES_SSE;
        else if (type && strncasecmp(type, "application/x-ndjson", 20) == 0)
                forward->frames = FRAMES_LINES;
}

/* A restarted worker does not know the runs of its earlier process. */
static bool is_lost_record(struct forward *forward)
{
        char tag[HOP_TAG_LEN + 1];
        const struct http_request *request = forward->request;
        return forward->answer->status == MHD_HTTP_NOT_FOUND && forward->kind == FORWARD_ID &&
               strcmp(request->method, "GET") == 0 && strncmp(request->path, "/v1/runs/", 9) == 0 &&
               target_tag(forward->request, tag) && fleet_lost_tag(forward->gateway->fleet, tag);
}

static void on_head(void *owner)
{
        static const char *const drops[] = { HOP_LOAD_HEADER, HOP_BOOT_HEADER, HOP_ATTEMPT_HEADER, NULL };
        struct forward *forward = owner;
        struct http_answer *answer = forward->answer;
        char why[40];
        bool barred = is_barred(answer) && !forward->took;
        if (barred || (is_refusal(forward, answer->status) && forward->events->has_other(forward))) {
                worker_answered(forward->worker, http_answer_header(answer, HOP_LOAD_HEADER));
                http_answer_stop(answer);
                snprintf(why, sizeof why, "it answers %u", answer->status);
                forward->events->not_accepted(forward, why);
                return;
        }
        if (is_lost_record(forward)) {
                http_answer_stop(answer);
                forward->events->forgotten(forward);
                return;
        }
        if (leaves_key(answer->status))
                forward->events->refused(forward);
        forward->passed = true;
        note_frames(forward);
        http_set_header(forward->request, "Caisson-Worker", forward->worker->name);
        if (http_answer_is_empty(answer) && !answer->head) {
                struct http_request *request = forward->request;
                http_answer_stop(answer);
                release(forward);
                relay_begin_answer(request, answer, drops);
                forward->events->done(forward);
                return;
        }
        relay_begin_answer(forward->request, answer, drops);
}

#define RUN_PREFIX "run_"
#define BEGIN_MAX KIB                      /* bytes of a stream searched for the id of its run */

/* The first event of a stream has the run's id, needed for the end of a lost run. */
static void note_run(struct forward *forward, const char *bytes, size_t len)
{
        if (forward->frames == FRAMES_NONE || forward->run[0] || forward->begin.len == BEGIN_MAX)
                return;
        buf_add(&forward->begin, bytes, min_u64(len, BEGIN_MAX - forward->begin.len));
        const char *at = memmem(forward->begin.bytes, forward->begin.len, RUN_PREFIX, strlen(RUN_PREFIX));
        size_t id_len = strlen(RUN_PREFIX) + ID_DIGITS;
        if (at && at + id_len <= forward->begin.bytes + forward->begin.len)
                snprintf(forward->run, sizeof forward->run, "%.*s", (int)id_len, at);
}

#define END_EVENT "{\"type\":\"end\""    /* how the line of a run's last event begins */

/* After the last event of a run no second end may follow, even if the worker is lost before closing the stream. */
static void note_end(struct forward *forward, const char *bytes, size_t len)
{
        const char *mark = forward->frames == FRAMES_SSE ? "data: " END_EVENT : END_EVENT;
        size_t mark_len = strlen(mark);
        while (len && forward->frames != FRAMES_NONE) {
                if (forward->line_at < mark_len && *bytes == mark[forward->line_at]) {
                        forward->line_at++;
                        bytes++;
                        len--;
                        continue;
                }
                if (forward->line_at < mark_len)
                        forward->line_at = SIZE_MAX;   /* another line */
                const char *end = memchr(bytes, '\n', len);
                if (!end)
                        return;
                forward->ended = forward->ended || forward->line_at == mark_len;
                forward->line_at = 0;
                len -= (size_t)(end + 1 - bytes);
                bytes = end + 1;
        }
}

static void on_body(void *owner, const char *bytes, size_t len)
{
        struct forward *forward = owner;
        note_run(forward, bytes, len);
        note_end(forward, bytes, len);
        if (!http_add(forward->request, bytes, len)) {
                struct http_request *request = forward->request;
                forward->events->done(forward);
                http_cut(request);
        } else if (!http_has_room(forward->request)) {
                link_hold(forward->link, true);
        }
}

static void on_end(void *owner)
{
        struct forward *forward = owner;
        struct http_request *request = forward->request;
        release(forward);
        forward->events->done(forward);
        http_end(request);
}

static const struct http_answer_events answer_events = { on_head, on_body, on_end };

/* ---- the link ---- */

static void go_on(struct forward *forward)
{
        if (!forward->streams)
                send_kept(forward);
        else if (!forward->whole || forward->answer->raw)
                http_more(forward->request);
        send_last_chunk(forward);
}

static void on_open(void *owner)
{
        struct forward *forward = owner;
        link_send(forward->link, forward->head.bytes, forward->head.len);
        go_on(forward);
}

static void on_bytes(void *owner, const char *bytes, size_t len)
{
        struct forward *forward = owner;
        if (!http_answer_take(forward->answer, bytes, len))
                forward->events->uncertain(forward, "the worker does not answer as HTTP does");
}

static void on_room(void *owner)
{
        go_on(owner);
}

static void on_closed(void *owner, const char *why)
{
        struct forward *forward = owner;
        if (!link_is_open(forward->link)) {
                worker_failed(forward->worker, why ? why : "the worker closed the connection");
                forward->events->not_accepted(forward, why ? why : "the worker closed the connection");
                return;
        }
        if (forward->answer->raw) {
                struct http_request *request = forward->request;
                forward->events->done(forward);
                http_end(request);
                return;
        }
        /* The end of the connection is the end of an answer without a length; on_end() ends the attempt then. */
        if (forward->answer->status && !why)
                http_answer_take(forward->answer, "", 0);
        if (forward->state == FORWARD_TRYING && forward->link)
                forward->events->uncertain(forward, why);
}

static const struct link_events link_events = { on_open, on_bytes, on_room, on_closed };

static void on_stream_room(struct http_request *request)
{
        struct forward *forward = request->owner;
        if (forward->link)
                link_hold(forward->link, false);
}

void attempt_send(struct forward *forward, const struct attempt_events *events)
{
        struct http_request *request = forward->request;
        struct csn_error err;
        forward->events = events;
        forward->body_at = 0;
        buf_init(&forward->head, 2 * HTTP_HEAD_MAX);
        forward->answer = mem_alloc(sizeof *forward->answer);
        http_answer_init(forward->answer, &answer_events, forward);
        forward->answer->head = strcmp(request->method, "HEAD") == 0;
        forward->answer->upgrade = relay_wants_upgrade(request);
        forward->worker->sent++;
        forward->worker->requests++;
        request->room = on_stream_room;
        request->take = take;
        request->whole = request->whole ? whole : NULL;    /* NULL: the body is complete */
        if (request->uri[0] != '/' || !write_head(forward)) {
                err_field(&err, "", "the head of the request is too long, or has a control character");
                forward->events->done(forward);
                http_problem(request, MHD_HTTP_BAD_REQUEST, &err);
                return;
        }
        forward->link = link_take(forward->worker, &link_events, forward);
        if (link_is_open(forward->link))
                on_open(forward);
}
