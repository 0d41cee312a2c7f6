/*
 * Forwarding of a request: to a worker, to the next worker after a refusal, and to one definite end.
 *
 * A request possibly begun by a worker is sent again only if the request is marked as repeatable (retry: safe) or only
 * reads.
 */
#include "gateway/gateway_private.h"

#include <stdio.h>
#include <strings.h>
#include <sys/random.h>

static void choose(struct forward *forward);
static void on_again(struct timer *timer);
static void ask_again(struct forward *forward, const char *why);
static const struct attempt_events attempt_events;

/* ---- end ---- */

static void stop_questions(struct forward *forward)
{
        key_check_stop(forward->check);
        key_noting_stop(forward->noting);
        forward->check = NULL;
        forward->noting = NULL;
}

static void forward_free(struct forward *forward)
{
        struct gateway *gateway = forward->gateway;
        for (struct forward **at = &gateway->forwards; *at; at = &(*at)->next)
                if (*at == forward) {
                        *at = forward->next;
                        gateway->forwards_n--;
                        break;
                }
        if (forward->state == FORWARD_WAITING)
                gateway->waiting_n--;
        forward->state = FORWARD_OVER;
        attempt_stop(forward);
        find_stop(forward->find);
        stop_questions(forward);
        key_notes_free(&forward->notes);
        key_notes_free(&forward->known);
        key_forget_holders(forward);
        worker_call_stop(&forward->question);
        loop_untimer(gateway->loop, &forward->timer);
        if (forward->worker)
                worker_unref(forward->worker);
        buf_done(&forward->head);
        buf_done(&forward->begin);
        free(forward);
}

static void on_free(struct timer *timer)
{
        forward_free(timer->owner);
}

/* The answer is complete or under way: the rest of the request's body is dropped. */
static size_t drop_body(struct http_request *request, const char *bytes, size_t len)
{
        (void)request, (void)bytes;
        return len;
}

static void drop_end(struct http_request *request)
{
        (void)request;
}

/* No worker is chosen yet: the body waits. */
static size_t hold_body(struct http_request *request, const char *bytes, size_t len)
{
        (void)request, (void)bytes, (void)len;
        return 0;
}

static void note_end(struct http_request *request)
{
        struct forward *forward = request->owner;
        forward->whole = true;
}

/* The request is the caller's to answer.  The memory is freed from the loop: a callback of the link may be running. */
static struct http_request *take_request(struct forward *forward)
{
        struct http_request *request = forward->request;
        forward->request = NULL;
        if (forward->state == FORWARD_WAITING)
                forward->gateway->waiting_n--;
        forward->state = FORWARD_OVER;
        if (request) {
                request->gone = NULL;
                request->room = NULL;
                request->take = drop_body;
                request->whole = request->whole ? drop_end : NULL;
        }
        attempt_stop(forward);
        stop_questions(forward);
        forward->timer.fired = on_free;
        loop_timer(forward->gateway->loop, &forward->timer, 0);
        return request;
}

static void on_done(struct forward *forward)
{
        take_request(forward);
}

static void on_gone(struct http_request *request)
{
        struct forward *forward = request->owner;
        forward->request = NULL;
        take_request(forward);
}

static void refuse(struct forward *forward, unsigned status, int code, const char *fmt, const char *more)
{
        struct csn_error err;
        key_withdraw(forward);
        struct http_request *request = take_request(forward);
        err_set(&err, code, 0, fmt, more);
        forward->gateway->count.refused++;
        if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
                http_set_header(request, "Retry-After", RETRY_AFTER_S);
        http_problem(request, status, &err);
}

/* ---- waiting for a worker ---- */

static void on_waited(struct timer *timer)
{
        struct forward *forward = timer->owner;
        const struct gateway *gateway = forward->gateway;
        const char *trouble = gateway->pool ? pool_trouble(gateway->pool) : "";
        if (forward->kind == FORWARD_NAMED && forward->why[0])
                refuse(forward, MHD_HTTP_SERVICE_UNAVAILABLE, CSN_E_BUSY, "%s", forward->why);
        else if (trouble[0])
                refuse(forward, MHD_HTTP_SERVICE_UNAVAILABLE, CSN_E_BUSY, "no worker is ready: %s", trouble);
        else
                refuse(forward, MHD_HTTP_SERVICE_UNAVAILABLE, CSN_E_BUSY, "no worker is ready%s",
                        fleet_first(gateway->fleet) ? "" : ", and none is known");
}

void forwards_tell_pool(struct gateway *gateway)
{
        uint64_t now_us = clock_us(), oldest_us = now_us;
        if (!gateway->pool)
                return;
        for (const struct forward *forward = gateway->forwards; forward; forward = forward->next)
                if (forward->state == FORWARD_WAITING)
                        oldest_us = min_u64(oldest_us, forward->waits_us);
        pool_set_waiting(gateway->pool, gateway->waiting_n, (now_us - oldest_us) / 1000);
}

/* Has the request waited for gateway.wait in total? */
static bool has_waited(struct forward *forward)
{
        uint64_t now = clock_us();
        if (!forward->wait_end_us)
                forward->wait_end_us = now + forward->gateway->settings->gateway.wait * 1000;
        return now >= forward->wait_end_us;
}

static void wait_for_worker(struct forward *forward)
{
        struct gateway *gateway = forward->gateway;
        if (gateway->pool)
                pool_wake(gateway->pool);
        if (has_waited(forward) || gateway->waiting_n >= gateway->settings->gateway.waiting_max) {
                on_waited(&forward->timer);
                return;
        }
        forward->state = FORWARD_WAITING;
        forward->waits_us = clock_us();
        gateway->waiting_n++;
        gateway->count.waited++;
        forward->timer.fired = on_waited;
        uint64_t left_us = forward->wait_end_us - min_u64(forward->waits_us, forward->wait_end_us);
        loop_timer(gateway->loop, &forward->timer, left_us);
}

void forwards_wake(struct gateway *gateway)
{
        for (struct forward *forward = gateway->forwards, *next; forward; forward = next) {
                next = forward->next;
                if (forward->state != FORWARD_WAITING)
                        continue;
                gateway->waiting_n--;
                forward->state = FORWARD_TRYING;
                loop_untimer(gateway->loop, &forward->timer);
                forward->key_is_free = false;
                choose(forward);
        }
}

/* ---- the worker ---- */

static void send_attempt(struct forward *forward)
{
        forward->state = FORWARD_TRYING;
        forward->reason[0] = 0;
        snprintf(forward->boot, sizeof forward->boot, "%s", forward->worker->boot);
        attempt_send(forward, &attempt_events);
}

/* The attempt was not accepted, and will not be. */
static void spend_attempt(struct forward *forward)
{
        if (forward->spent_n == ARRAY_LEN(forward->spent)) {
                memmove(forward->spent[0], forward->spent[1], sizeof forward->spent - sizeof forward->spent[0]);
                forward->spent_n--;
        }
        memcpy(forward->spent[forward->spent_n++], forward->attempt, sizeof forward->attempt);
}

static void on_noted(struct forward *forward, enum key_noted noted)
{
        if (noted == KEY_NOTED && !forward->worker->removed) {
                send_attempt(forward);
                return;
        }
        key_withdraw(forward);             /* else two gateways with a note each would wait for each other */
        spend_attempt(forward);
        ask_again(forward, noted == KEY_TAKEN ? "another gateway sends this Idempotency-Key to a worker"
                                              : "no other worker takes a note of this Idempotency-Key");
}

/* New work with a key is noted before sending. */
static void try_worker(struct forward *forward, struct gateway_worker *worker)
{
        if (forward->worker)
                worker_unref(forward->worker);
        forward->worker = worker_ref(worker);
        hex_random(HOP_ATTEMPT_LEN / 2, forward->attempt);
        if (!forward->key_is_free || strcmp(forward->request->method, "POST") != 0) {
                send_attempt(forward);
                return;
        }
        forward->state = FORWARD_FINDING;
        forward->noting = key_noting_start(forward, worker, on_noted);
}

static struct gateway_worker *choose_new(const struct forward *forward)
{
        struct fleet *fleet = forward->gateway->fleet;
        size_t spread = gateway_spread(forward->request, fleet_ready(fleet));
        return fleet_choose(fleet, gateway_identity(forward->request), spread, forward->tried, forward->tried_n);
}

/* May any worker serve the request, one after the other? */
static bool is_free(const struct forward *forward)
{
        return forward->kind == FORWARD_NEW || forward->kind == FORWARD_SEARCH;
}

static size_t tries_max(const struct forward *forward)
{
        return forward->kind == FORWARD_SEARCH ? TRIES_MAX : forward->gateway->settings->gateway.tries;
}

static bool has_other(const struct forward *forward)
{
        struct forward *copy = (struct forward *)(uintptr_t)forward;
        if (!is_free(forward) || forward->took || forward->tried_n + 1 >= tries_max(forward))
                return false;
        copy->tried[copy->tried_n++] = forward->worker;
        bool other = choose_new(forward);
        copy->tried_n--;
        return other;
}

/* The request names no object of a worker: any worker answers so, in the words of its front. */
static void choose_any(struct forward *forward)
{
        if (fleet_ready(forward->gateway->fleet) || strcmp(forward->request->path, "/mcp") == 0) {
                forward->kind = FORWARD_NEW;
                choose(forward);
                return;
        }
        refuse(forward, MHD_HTTP_NOT_FOUND, CSN_E_INPUT,
                "%.200s names nothing: its id was made by no worker of this gateway", forward->request->path);
}

/* Clients of E2B handle "not found" and have no answer for a lost sandbox. */
static bool speaks_e2b(const struct http_request *request)
{
        static const char *const paths[] = { "/sandboxes/", "/v2/sandboxes/", "/templates/", "/v2/templates/" };
        for (size_t i = 0; i < ARRAY_LEN(paths); i++)
                if (strncmp(request->path, paths[i], strlen(paths[i])) == 0)
                        return true;
        return target_has_sandbox_app(request);
}

static void choose_by_id(struct forward *forward)
{
        char tag[HOP_TAG_LEN + 1];
        const struct fleet *fleet = forward->gateway->fleet;
        bool sealed = target_tag(forward->request, tag);
        struct gateway_worker *worker =
                sealed || target_old_tag(forward->request, tag) ? fleet_by_tag(fleet, tag) : NULL;
        const struct lost_run *lost = lost_find(forward->request);
        if (lost)
                lost_answer_run(take_request(forward), lost);
        else if (worker)
                try_worker(forward, worker);
        else if (sealed && !speaks_e2b(forward->request))
                lost_answer_tag(take_request(forward), tag);
        else
                choose_any(forward);
}

/* No worker has the name: choose the home worker of the name. */
static struct gateway_worker *home_of(const struct forward *forward)
{
        struct http_request *request = forward->request;
        const struct fleet *fleet = forward->gateway->fleet;
        const char *owner = gateway_identity(request);
        /* A worker down for a moment keeps its place among the workers of the owner. */
        return fleet_home(fleet, owner, gateway_spread(request, SIZE_MAX),
                arena_text(&request->arena, "%s/%s/%s", owner, forward->name.kind, forward->name.name));
}

/* Half to one and a half of FIND_AGAIN_MS, so that two gateways with the same key do not collide again. */
static uint64_t again_us(void)
{
        uint16_t random = 0;
        (void)!getrandom(&random, sizeof random, 0);
        return FIND_AGAIN_MS * 500 + FIND_AGAIN_MS * 1000ULL * random / UINT16_MAX;
}

/* A living worker gave no answer and may have the name, so ask again later. */
static void ask_again(struct forward *forward, const char *why)
{
        snprintf(forward->why, sizeof forward->why, "%s", why);
        if (has_waited(forward)) {
                on_waited(&forward->timer);
                return;
        }
        forward->state = FORWARD_TRYING;
        forward->timer.fired = on_again;
        loop_timer(forward->gateway->loop, &forward->timer, again_us());
}

/* Send to the worker with the name; NULL: to the home of the name. */
static void try_named(struct forward *forward, struct gateway_worker *worker)
{
        struct gateway_worker *home = worker ? worker : home_of(forward);
        forward->why[0] = 0;
        if (home && (worker || worker_takes_work(home))) {
                try_worker(forward, home);
                return;
        }
        if (home)
                snprintf(forward->why, sizeof forward->why,
                        "worker %.100s takes no work now, and may have what the request names", home->name);
        wait_for_worker(forward);
}

static void on_found(void *owner, struct find_result *result)
{
        struct forward *forward = owner;
        forward->find = NULL;
        if (forward->state != FORWARD_FINDING)
                return;
        if (result->everywhere) {
                forward->kind = FORWARD_NEW;
                choose(forward);
        } else if (result->unsure) {
                ask_again(forward, "a worker does not say whether it has what the request names");
        } else {
                try_named(forward, result->worker);
        }
}

/* The worker with the key was removed. */
static void answer_lost(struct forward *forward, const struct key_note *note)
{
        struct csn_error err;
        const char *key = forward->key;
        struct http_request *request = take_request(forward);
        if (key_is_of_request(request, note)) {
                lost_answer_run(request, lost_keep_noted(request, key, note));
                return;
        }
        err_field(&err, "Idempotency-Key", "this Idempotency-Key was used for another request");
        http_problem(request, MHD_HTTP_UNPROCESSABLE_CONTENT, &err);
}

static void on_key(struct forward *forward, const struct key_answer *answer)
{
        const struct lost_run *lost = answer->worker || forward->safe ? NULL : lost_find(forward->request);
        if (lost) {
                lost_answer_run(take_request(forward), lost);
        } else if (answer->fate == KEY_FOUND) {
                try_named(forward, answer->worker);
        } else if (answer->fate == KEY_UNSURE) {
                ask_again(forward, answer->why);
        } else if (answer->fate == KEY_LOST) {
                answer_lost(forward, answer->note);
        } else {
                key_notes_free(&forward->known);
                key_notes_free(&forward->notes);
                forward->notes = *answer->notes;
                *answer->notes = (struct key_notes){ 0 };
                forward->key_is_free = true;
                choose(forward);
        }
}

static void choose_by_key(struct forward *forward)
{
        if (!fleet_ready(forward->gateway->fleet)) {
                wait_for_worker(forward);
                return;
        }
        forward->state = FORWARD_FINDING;
        forward->check = key_check_start(forward, on_key);
}

static void choose_by_name(struct forward *forward)
{
        char tag[HOP_TAG_LEN + 1];
        struct gateway *gateway = forward->gateway;
        if (strcmp(forward->name.kind, "id") == 0) {
                struct gateway_worker *worker = NULL;
                if (gateway->keys && hop_tag_of(gateway->keys, forward->name.name, strlen(forward->name.name), tag) &&
                        !(worker = fleet_by_tag(gateway->fleet, tag))) {
                        lost_answer_tag(take_request(forward), tag);
                        return;
                }
                forward->kind = worker ? FORWARD_NAMED : FORWARD_NEW;
                if (worker)
                        try_worker(forward, worker);
                else
                        choose(forward);
                return;
        }
        if (!fleet_ready(gateway->fleet)) {
                wait_for_worker(forward);
                return;
        }
        if (forward->key_is_free && strcmp(forward->name.kind, "idempotency_key") == 0) {
                try_named(forward, NULL);
                return;
        }
        forward->state = FORWARD_FINDING;
        forward->find = find_start(gateway, forward->request, &forward->name, on_found, forward);
}

static void choose(struct forward *forward)
{
        struct gateway_worker *worker;
        if (forward->key && !forward->key_is_free) {
                choose_by_key(forward);
        } else if (forward->kind == FORWARD_ID) {
                choose_by_id(forward);
        } else if (forward->kind == FORWARD_NAMED) {
                choose_by_name(forward);
        } else if ((worker = choose_new(forward))) {
                try_worker(forward, worker);
        } else if (forward->tried_n && fleet_ready(forward->gateway->fleet)) {
                refuse(forward, MHD_HTTP_SERVICE_UNAVAILABLE, CSN_E_BUSY, "no worker accepts the request: %s",
                        forward->why);
        } else {
                forward->tried_n = 0;
                wait_for_worker(forward);
        }
}

/* ---- ends of attempts ---- */

static void on_again(struct timer *timer)
{
        struct forward *forward = timer->owner;
        forward->key_is_free = false;      /* another gateway may have sent the key meanwhile */
        choose(forward);
}

/* From the loop, because a callback of the link may be running. */
static void choose_soon(struct forward *forward)
{
        forward->state = FORWARD_TRYING;
        forward->timer.fired = on_again;
        loop_timer(forward->gateway->loop, &forward->timer, 0);
}

static void on_not_accepted(struct forward *forward, const char *why)
{
        attempt_stop(forward);
        spend_attempt(forward);
        snprintf(forward->why, sizeof forward->why, "%s", why);
        bool more = forward->tried_n + 1 < tries_max(forward) && !forward->took;
        if (forward->tried_n < TRIES_MAX)
                forward->tried[forward->tried_n++] = is_free(forward) ? forward->worker : NULL;
        if (more && (is_free(forward) || forward->worker->state != WORKER_DOWN)) {
                forward->gateway->count.retried++;
                choose_soon(forward);
        } else {
                char text[sizeof forward->why + sizeof forward->worker->name + 8];
                snprintf(text, sizeof text, "%s: %s", forward->worker->name, forward->why);
                refuse(forward, MHD_HTTP_SERVICE_UNAVAILABLE, CSN_E_BUSY,
                        "the worker of this request does not accept it now: %s", text);
        }
}

static void on_refused(struct forward *forward)
{
        key_withdraw(forward);
}

static void on_forgotten(struct forward *forward)
{
        char tag[HOP_TAG_LEN + 1];
        struct http_request *request = take_request(forward);
        if (target_tag(request, tag))
                lost_answer_tag(request, tag);
}

static bool only_reads(const struct http_request *request)
{
        return strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
}

static void tell_lost(struct forward *forward)
{
        struct lost_end end;
        enum forward_frames frames = forward->frames;
        bool passed = forward->passed;
        lost_keep(forward, &end);
        struct http_request *request = take_request(forward);
        if (passed)
                lost_end_stream(request, &end, frames);
        else
                lost_answer(request, &end);
}

/* The end event of the run was sent; only the end of the stream is missing. */
static void end_stream(struct forward *forward)
{
        bool sse = forward->frames == FRAMES_SSE;
        struct http_request *request = take_request(forward);
        if (sse)
                http_add(request, "\n", 1);
        http_end(request);
}

static void lose(struct forward *forward)
{
        struct gateway *gateway = forward->gateway;
        if (forward->ended) {
                end_stream(forward);
                return;
        }
        gateway->count.lost++;
        if (!forward->passed && forward->safe && forward->kind != FORWARD_ID && !forward->took &&
                forward->tried_n + 1 < gateway->settings->gateway.tries) {
                forward->kind = forward->kind == FORWARD_NAMED && forward->name.kind ? FORWARD_NAMED : FORWARD_NEW;
                forward->tried[forward->tried_n++] = forward->worker;
                choose_soon(forward);
        } else {
                tell_lost(forward);
        }
}

static void lose_for(struct forward *forward, const char *reason)
{
        snprintf(forward->reason, sizeof forward->reason, "%s", reason);
        lose(forward);
}

static void on_no_reason(struct timer *timer)
{
        lose_for(timer->owner, "Unreachable");
}

/* The worker was lost: wait a little for the reason from Kubernetes. */
static void grieve(struct forward *forward)
{
        const struct gateway_worker *worker = forward->worker;
        attempt_stop(forward);
        forward->state = FORWARD_GRIEVING;
        forward->timer.fired = on_no_reason;
        if (forward->reason[0])
                lose(forward);
        else if (worker->removed || strcmp(worker->boot, forward->boot) != 0)
                lose_for(forward, "Restarted");
        else
                loop_timer(forward->gateway->loop, &forward->timer, forward->gateway->kube ? REASON_MS * 1000 : 0);
}

static bool is_same_process(const struct forward *forward, const struct worker_call *call, enum call_end end)
{
        const char *boot = end == CALL_ANSWERED ? http_answer_header(call->answer, HOP_BOOT_HEADER) : NULL;
        return boot && strcmp(boot, forward->boot) == 0;
}

/* 404 of the same process: the worker has not seen the attempt, and will not admit the attempt later. */
static bool was_not_seen(const struct forward *forward, const struct worker_call *call, enum call_end end)
{
        return is_same_process(forward, call, end) && call->answer->status == MHD_HTTP_NOT_FOUND;
}

static void on_asked(struct worker_call *call, enum call_end end, const char *why)
{
        struct forward *forward = call->owner;
        bool unseen = was_not_seen(forward, call, end);
        if (end == CALL_REFUSED || end == CALL_LATE)
                worker_failed(forward->worker, why);
        if (!forward->request)
                return;
        if (forward->passed && !forward->ended && is_same_process(forward, call, end))
                http_cut(take_request(forward)); /* the living worker has cut the answer, so cut it here */
        else if (!forward->passed && (unseen || (only_reads(forward->request) && end == CALL_ANSWERED)))
                on_not_accepted(forward, forward->why);
        else
                grieve(forward);
}

static void on_uncertain(struct forward *forward, const char *why)
{
        char target[80];
        attempt_stop(forward);
        snprintf(forward->why, sizeof forward->why, "%s", why ? why : "the worker closed the connection");
        forward->state = FORWARD_ASKING;
        forward->question.owner = forward;
        forward->question.done = on_asked;
        snprintf(target, sizeof target, "/v1/gateway/attempts/%s", forward->attempt);
        worker_call_start(&forward->question, forward->worker, "GET", target, NULL, NULL, NULL, 0, ASK_MS);
}

/* A worker's process has ended, but its connection is open: a dead host would never close the connection. */
static void on_lingered(struct timer *timer)
{
        struct forward *forward = timer->owner;
        if (forward->request && forward->state == FORWARD_TRYING && forward->link)
                grieve(forward);
}

void forwards_lose(struct gateway *gateway, struct gateway_worker *worker, const char *reason)
{
        for (struct forward *forward = gateway->forwards, *next; forward; forward = next) {
                next = forward->next;
                if (forward->worker != worker || forward->state == FORWARD_OVER || forward->state == FORWARD_WAITING ||
                        strcmp(forward->boot, worker->boot) != 0)
                        continue;
                snprintf(forward->reason, sizeof forward->reason, "%s", reason);
                if (forward->state == FORWARD_GRIEVING) {
                        loop_untimer(gateway->loop, &forward->timer);
                        lose(forward);
                } else if (strcmp(reason, "Unreachable") == 0 && forward->state == FORWARD_TRYING && forward->link) {
                        grieve(forward);
                } else if (forward->state == FORWARD_TRYING && forward->link) {
                        forward->timer.fired = on_lingered;
                        loop_timer(gateway->loop, &forward->timer, LINGER_MS * 1000);
                }
        }
}

static const struct attempt_events attempt_events = { .done = on_done, .not_accepted = on_not_accepted,
        .uncertain = on_uncertain, .refused = on_refused, .forgotten = on_forgotten, .has_other = has_other };

/* ---- begin ---- */

/* Does the body have retry: safe? */
static bool says_safe(const struct http_request *request)
{
        const struct buf *body = &request->body;
        if (!body->len || !memmem(body->bytes, body->len, "\"retry\"", 7))
                return false;
        json_t *json = json_loadb(body->bytes, body->len, JSON_ALLOW_NUL, NULL);
        const char *retry = json_string_value(json_object_get(json, "retry"));
        bool safe = retry && strcmp(retry, "safe") == 0;
        json_decref(json);
        return safe;
}

static void begin(struct http_request *request, enum forward_kind kind)
{
        struct gateway *gateway = gateway_of(request);
        struct forward *forward = mem_alloc(sizeof *forward);
        *forward = (struct forward){ .next = gateway->forwards, .gateway = gateway, .request = request, .kind = kind,
                                     .state = FORWARD_TRYING };
        forward->timer.owner = forward;
        buf_init(&forward->begin, KIB);
        forward->streams = http_body_of(request->route) == BODY_STREAM;
        forward->safe = says_safe(request);
        gateway->forwards = forward;
        gateway->forwards_n++;
        gateway->count.requests++;
        request->owner = forward;
        request->gone = on_gone;
        request->take = hold_body;
        request->whole = forward->streams ? note_end : NULL;
        if (kind == FORWARD_NAMED && !target_name(request, &forward->name))
                forward->kind = FORWARD_NEW;
        forward->key = kind == FORWARD_NAMED ? target_key(request) : NULL;
        choose(forward);
}

void forward_new(struct http_request *request)
{
        begin(request, FORWARD_NEW);
}

void forward_by_id(struct http_request *request)
{
        begin(request, FORWARD_ID);
}

void forward_search(struct http_request *request)
{
        begin(request, FORWARD_SEARCH);
}

void forward_named(struct http_request *request)
{
        begin(request, FORWARD_NAMED);
}

void forwards_close(struct gateway *gateway)
{
        for (struct forward *forward = gateway->forwards, *next; forward; forward = next) {
                next = forward->next;
                if (forward->request)
                        forward->request->gone = NULL;
                forward_free(forward);
        }
}
