/*
 * Witnesses of an Idempotency-Key: before a worker is sent a new key, up to two other workers note the key, the worker
 * and the attempt (POST /v1/gateway/witness).  If the worker is deleted with its store, the notes are what is left.
 *
 * A search that finds a note at fewer than two workers gives the note to others, so notes outlive their witnesses as
 * long as a client asks.
 *
 * A witness that has a note of another attempt refuses, so of two gateways with the same new key at most one goes on.
 */
#include "gateway/gateway_private.h"

#include <inttypes.h>

#define WITNESSES 2
#define HOLDERS_MAX (WITNESSES + KEY_NOTES_MAX)
#define AWAIT_US 3000000ULL                /* how long a request waits for another worker that is expected */
#define WITNESS_MS 1000                    /* a witness that does not answer in this time is gone without */

struct witness {
        struct key_noting *noting;
        struct worker_call call;
};

struct key_noting {
        struct forward *forward;
        struct gateway *gateway;
        key_noted_fn *done;
        struct witness witnesses[HOLDERS_MAX];
        size_t n, left;
        size_t noted, unable;              /* unable: the worker answers, and takes no notes */
        bool taken;                        /* a witness has the key, or a note of another attempt */
        bool awaits;                       /* there is no other worker, and one is expected */
        struct timer end;
};

/* A message to a witness; nothing waits for the answer. */
struct witness_message {
        struct witness_message *next;
        struct gateway *gateway;
        struct worker_call call;
};

/* ---- bodies ---- */

/* Of the body: so that a key with another request is told from a request that is sent again. */
static const char *hash_of(struct http_request *request)
{
        const struct buf *body = &request->body;
        return arena_text(&request->arena, "%016" PRIx64, hash_text(body->bytes ? body->bytes : "", body->len));
}

bool key_is_of_request(struct http_request *request, const struct key_note *note)
{
        return strcmp(request->method, "POST") != 0 || strcmp(note->hash, hash_of(request)) == 0;
}

static json_t *begin_body(struct http_request *request, const char *key, const char *attempt)
{
        const struct hop_claims *claims = gateway_claims(request, 1);
        json_t *body = json_pack("{s:s, s:s}", "idempotency_key", key, "attempt", attempt);
        if (claims)
                json_object_set_new(body, "tenant", json_string(claims->tenant));
        return body;
}

static char *note_body(const struct forward *forward, const struct gateway_worker *worker)
{
        json_t *body = begin_body(forward->request, forward->key, forward->attempt), *replaces = json_array();
        json_object_set_new(body, "tag", json_string(worker->tag));
        json_object_set_new(body, "pod", json_string(worker->uid[0] ? worker->name : ""));
        json_object_set_new(body, "uid", json_string(worker->uid));
        json_object_set_new(body, "hash", json_string(hash_of(forward->request)));
        for (size_t i = 0; i < forward->notes.n; i++)
                json_array_append_new(replaces, json_string(forward->notes.list[i].attempt));
        for (size_t i = 0; i < forward->spent_n; i++)
                json_array_append_new(replaces, json_string(forward->spent[i]));
        json_object_set_new(body, "replaces", replaces);
        char *text = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        return text ? text : mem_copy("{}", 2);
}

/* ---- notes ---- */

void key_noting_stop(struct key_noting *noting)
{
        if (!noting)
                return;
        loop_untimer(noting->gateway->loop, &noting->end);
        for (size_t i = 0; i < noting->n; i++)
                worker_call_stop(&noting->witnesses[i].call);
        free(noting);
}

static void on_end(struct timer *timer)
{
        struct key_noting *noting = timer->owner;
        struct forward *forward = noting->forward;
        key_noted_fn *done = noting->done;
        bool silent = noting->awaits || (noting->n && !noting->noted && !noting->unable);
        enum key_noted noted = noting->taken ? KEY_TAKEN : silent ? KEY_UNNOTED : KEY_NOTED;
        forward->noting = NULL;
        key_noting_stop(noting);
        done(forward, noted);
}

static void on_noted(struct worker_call *call, enum call_end end, const char *why)
{
        struct witness *witness = call->owner;
        struct key_noting *noting = witness->noting;
        unsigned status = end == CALL_ANSWERED ? call->answer->status : 0;
        (void)why;
        noting->noted += status == MHD_HTTP_OK;
        noting->taken = noting->taken || status == MHD_HTTP_CONFLICT;
        noting->unable += status && status != MHD_HTTP_OK && status != MHD_HTTP_CONFLICT;
        if (--noting->left == 0)
                loop_timer(noting->gateway->loop, &noting->end, 0);
}

static bool is_in(struct gateway_worker *const *list, size_t n, const struct gateway_worker *worker)
{
        for (size_t i = 0; i < n; i++)
                if (list[i] == worker)
                        return true;
        return false;
}

/* The two witnesses, and who has a note that is to be replaced. */
static size_t choose_holders(const struct forward *forward, const struct gateway_worker *worker,
        struct gateway_worker *ret[static HOLDERS_MAX])
{
        struct http_request *request = forward->request;
        const char *name = arena_text(&request->arena, "%s/%s", gateway_identity(request), forward->key);
        size_t n = fleet_witnesses(forward->gateway->fleet, name, worker, ret, WITNESSES);
        for (size_t i = 0; i < forward->notes.n; i++) {
                struct gateway_worker *holder = forward->notes.list[i].holder;
                if (!holder->removed && holder->state != WORKER_DOWN && !is_in(ret, n, holder))
                        ret[n++] = holder;
        }
        return n;
}

static void keep_holder(struct forward *forward, struct gateway_worker *holder)
{
        if (!is_in(forward->holders, forward->holders_n, holder) && forward->holders_n < ARRAY_LEN(forward->holders))
                forward->holders[forward->holders_n++] = worker_ref(holder);
}

/* A pod that starts or is restarted will be a witness soon. */
static bool awaits_witness(struct forward *forward, const struct gateway_worker *worker)
{
        uint64_t now_us = clock_us(), wait_us = forward->gateway->settings->gateway.wait * 1000;
        if (!fleet_awaits_worker(forward->gateway->fleet, worker))
                return false;
        if (!forward->witness_end_us)
                forward->witness_end_us = now_us + min_u64(AWAIT_US, wait_us / 2);
        return now_us < forward->witness_end_us;
}

struct key_noting *key_noting_start(struct forward *forward, struct gateway_worker *worker, key_noted_fn *done)
{
        struct gateway_worker *holders[HOLDERS_MAX];
        struct key_noting *noting = mem_alloc(sizeof *noting);
        struct http_request *request = forward->request;
        *noting = (struct key_noting){ .forward = forward, .gateway = forward->gateway, .done = done,
                                       .end = { .fired = on_end, .owner = noting } };
        noting->n = noting->left = choose_holders(forward, worker, holders);
        noting->awaits = !noting->n && awaits_witness(forward, worker);
        char *body = note_body(forward, worker);
        for (size_t i = 0; i < noting->n; i++) {
                struct witness *witness = &noting->witnesses[i];
                keep_holder(forward, holders[i]);
                witness->noting = noting;
                witness->call.owner = witness;
                witness->call.done = on_noted;
                worker_call_start(&witness->call, holders[i], "POST", "/v1/gateway/witness", gateway_claims(request, 1),
                        gateway_credentials(request), body, strlen(body), WITNESS_MS);
        }
        free(body);
        if (!noting->n)
                loop_timer(noting->gateway->loop, &noting->end, 0);
        return noting;
}

/* ---- notes that are taken back, and notes for other witnesses ---- */

static void witness_message_free(struct witness_message *message)
{
        worker_call_stop(&message->call);
        free(message);
}

static void on_told(struct worker_call *call, enum call_end end, const char *why)
{
        struct witness_message *message = call->owner, **at = &message->gateway->messages;
        (void)end, (void)why;
        while (*at != message)
                at = &(*at)->next;
        *at = message->next;
        witness_message_free(message);
}

/* Send the body to workers.  Takes the reference. */
static void tell(struct forward *forward, struct gateway_worker *const *workers, size_t n, json_t *json)
{
        struct http_request *request = forward->request;
        char *body = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        for (size_t i = 0; body && i < n; i++) {
                struct witness_message *message = mem_alloc(sizeof *message);
                *message = (struct witness_message){ .next = forward->gateway->messages, .gateway = forward->gateway };
                forward->gateway->messages = message;
                message->call.owner = message;
                message->call.done = on_told;
                worker_call_start(&message->call, workers[i], "POST", "/v1/gateway/witness",
                        gateway_claims(request, 1), gateway_credentials(request), body, strlen(body), ASK_MS);
        }
        free(body);
}

void key_withdraw(struct forward *forward)
{
        if (!forward->holders_n || !forward->request)
                return;
        json_t *body = begin_body(forward->request, forward->key, forward->attempt);
        json_object_set_new(body, "withdraw", json_true());
        tell(forward, forward->holders, forward->holders_n, body);
        key_forget_holders(forward);
}

/* Workers that have a note of the same attempt. */
static size_t holders_of(const struct key_notes *notes, const struct key_note *note,
        struct gateway_worker *ret[static KEY_NOTES_MAX])
{
        size_t n = 0;
        for (size_t i = 0; i < notes->n; i++)
                if (strcmp(notes->list[i].attempt, note->attempt) == 0 && !notes->list[i].holder->removed)
                        ret[n++] = notes->list[i].holder;
        return n;
}

static json_t *body_of(const struct forward *forward, const struct key_note *note)
{
        json_t *body = begin_body(forward->request, forward->key, note->attempt);
        json_object_set_new(body, "tag", json_string(note->tag));
        json_object_set_new(body, "pod", json_string(note->pod));
        json_object_set_new(body, "uid", json_string(note->uid));
        json_object_set_new(body, "hash", json_string(note->hash));
        json_object_set_new(body, "replaces", json_array());
        return body;
}

static void renew(struct forward *forward, const struct key_notes *notes, const struct key_note *note)
{
        struct gateway_worker *have[KEY_NOTES_MAX], *chosen[2 * WITNESSES], *fresh[WITNESSES];
        const struct fleet *fleet = forward->gateway->fleet;
        struct http_request *request = forward->request;
        size_t have_n = holders_of(notes, note, have), fresh_n = 0;
        if (have_n >= WITNESSES)
                return;
        const char *name = arena_text(&request->arena, "%s/%s", gateway_identity(request), forward->key);
        size_t n = fleet_witnesses(fleet, name, fleet_by_tag(fleet, note->tag), chosen, ARRAY_LEN(chosen));
        for (size_t i = 0; i < n && have_n + fresh_n < WITNESSES; i++)
                if (!is_in(have, have_n, chosen[i]))
                        fresh[fresh_n++] = chosen[i];
        if (fresh_n)
                tell(forward, fresh, fresh_n, body_of(forward, note));
}

void key_renew(struct forward *forward, const struct key_notes *notes)
{
        for (size_t i = 0; i < notes->n; i++)
                renew(forward, notes, &notes->list[i]);
}

void key_forget_holders(struct forward *forward)
{
        while (forward->holders_n)
                worker_unref(forward->holders[--forward->holders_n]);
}

void key_messages_close(struct gateway *gateway)
{
        while (gateway->messages) {
                struct witness_message *next = gateway->messages->next;
                witness_message_free(gateway->messages);
                gateway->messages = next;
        }
}
