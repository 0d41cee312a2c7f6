/* Requests of the gateway itself to a worker; see call.h. */
#include "gateway/fleet/call.h"

#include <stdio.h>

static const struct link_events link_events;

static void on_over(struct timer *timer)
{
        struct worker_call *call = timer->owner;
        struct gateway_worker *worker = call->worker;
        call->worker = NULL;
        call->done(call, call->end, call->end == CALL_ANSWERED ? NULL : call->failure);
        worker_unref(worker);
}

/* done() may free the call, so it is called when no function of the call's link or reader is running. */
static void finish(struct worker_call *call, enum call_end end, const char *why)
{
        struct link *link = call->link;
        call->link = NULL;
        call->end = end;
        snprintf(call->failure, sizeof call->failure, "%s", why ? why : "the worker closed the connection");
        http_answer_stop(call->answer);
        if (end == CALL_ANSWERED && call->answer->keeps)
                link_release(link);
        else
                link_end(link);
        call->limit.fired = on_over;
        loop_timer(fleet_loop(call->worker->fleet), &call->limit, 0);
}

static void on_late(struct timer *timer)
{
        finish(timer->owner, CALL_LATE, "the worker does not answer in time");
}

/* ---- the answer ---- */

static void on_head(void *owner)
{
        (void)owner;
}

static void on_body(void *owner, const char *bytes, size_t len)
{
        struct worker_call *call = owner;
        if (!buf_add(&call->body, bytes, len))
                finish(call, CALL_BROKEN, "the worker's answer is too long");
}

static void on_end(void *owner)
{
        finish(owner, CALL_ANSWERED, NULL);
}

static const struct http_answer_events answer_events = { on_head, on_body, on_end };

/* ---- the link ---- */

static void on_open(void *owner)
{
        struct worker_call *call = owner;
        link_send(call->link, call->request.bytes, call->request.len);
}

static void on_bytes(void *owner, const char *bytes, size_t len)
{
        struct worker_call *call = owner;
        if (call->link && !http_answer_take(call->answer, bytes, len))
                finish(call, CALL_BROKEN, "the worker does not answer as HTTP does");
}

static void on_room(void *owner)
{
        (void)owner;
}

static void on_closed(void *owner, const char *why)
{
        struct worker_call *call = owner;
        bool open = link_is_open(call->link), fresh = call->answer->status == 0;
        if (open && fresh && link_is_reused(call->link) && !call->again) {
                call->again = true;
                link_end(call->link);
                links_close(call->worker);         /* probably closed as well */
                call->link = link_take(call->worker, &link_events, call);
                return;
        }
        if (open && call->answer->status && http_answer_take(call->answer, "", 0) && !call->link)
                return;
        finish(call, open ? CALL_BROKEN : CALL_REFUSED, why);
}

static const struct link_events link_events = { on_open, on_bytes, on_room, on_closed };

/* ---- calls ---- */

static void write_request(struct worker_call *call, const char *method, const char *target,
        const struct hop_claims *claims, const char *head, const char *body, size_t body_len)
{
        const struct gateway_worker *worker = call->worker;
        const struct hop_keys *keys = fleet_keys(worker->fleet);
        struct arena arena = { 0 };
        buf_init(&call->request, body_len + 64 * KIB);
        buf_printf(&call->request, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, target, worker->host);
        if (keys)
                buf_printf(&call->request, HOP_CALL_HEADER ": %s\r\n", hop_sign(keys, method, target, claims, &arena));
        if (body)
                buf_printf(&call->request, "Content-Type: application/json\r\nContent-Length: %zu\r\n", body_len);
        buf_printf(&call->request, "%s\r\n", head ? head : "");
        buf_add(&call->request, body, body_len);
        arena_done(&arena);
}

void worker_call_start(struct worker_call *call, struct gateway_worker *worker, const char *method, const char *target,
        const struct hop_claims *claims, const char *head, const char *body, size_t body_len, uint64_t ms)
{
        worker_call_stop(call);
        call->worker = worker_ref(worker);
        call->again = false;
        call->answer = mem_alloc(sizeof *call->answer);
        http_answer_init(call->answer, &answer_events, call);
        call->answer->head = strcmp(method, "HEAD") == 0;
        buf_init(&call->body, CALL_ANSWER_MAX);
        write_request(call, method, target, claims, head, body, body_len);
        call->limit = (struct timer){ .fired = on_late, .owner = call };
        loop_timer(fleet_loop(worker->fleet), &call->limit, ms * 1000);
        call->link = link_take(worker, &link_events, call);
        if (link_is_open(call->link))
                on_open(call);
}

void worker_call_stop(struct worker_call *call)
{
        struct gateway_worker *worker = call->worker;
        call->worker = NULL;
        if (worker)
                loop_untimer(fleet_loop(worker->fleet), &call->limit);
        link_end(call->link);
        call->link = NULL;
        http_answer_free(call->answer);
        call->answer = NULL;
        buf_done(&call->body);
        buf_done(&call->request);
        if (worker)
                worker_unref(worker);
}
