/*
 * Witnesses of an Idempotency-Key: before a new key is sent to a worker, up to two other workers note the key, the
 * worker and the attempt (POST /v1/gateway/witness).  The notes remain if the worker is deleted with its store.
 *
 * A search that finds a note at fewer than two workers gives the note to others, and so does the gateway that made the
 * note (note_cache.c).
 *
 * A witness with a note of another attempt refuses, so of two gateways with the same new key at most one proceeds.
 */
#include "gateway/gateway_private.h"

#include <inttypes.h>
#include <stdio.h>

#define HOLDERS_MAX (WITNESSES + KEY_NOTES_MAX)
#define AWAIT_US 3000000ULL                /* wait of a request for another, expected worker */
#define WITNESS_MS 1000                    /* limit of a witness's answer; a late witness is left out */

struct witness {
        struct key_noting *noting;
        struct gateway_worker *worker;     /* a reference, valid while among the request's holders */
        bool noted;
        struct worker_call call;
};

struct key_noting {
        struct forward *forward;
        struct gateway *gateway;
        key_noted_fn *done;
        struct witness witnesses[HOLDERS_MAX];
        size_t n, left;
        size_t noted, unable;              /* unable: workers that answer but take no notes */
        bool taken;                        /* a witness has the key, or a note of another attempt */
        bool awaits;                       /* no other worker is present, but expected */
        struct timer end;
};

/* ---- bodies ---- */

const char *key_name(const struct forward *forward)
{
        return arena_text(&forward->request->arena, "%s/%s", gateway_identity(forward->request), forward->key);
}

/* Hash of the body: distinguishes a repeated request from another request with the same key. */
static const char *hash_of(struct http_request *request)
{
        const struct buf *body = &request->body;
        return arena_text(&request->arena, "%016" PRIx64, hash_text(body->bytes ? body->bytes : "", body->len));
}

bool key_is_of_request(struct http_request *request, const struct key_note *note)
{
        return strcmp(request->method, "POST") != 0 || strcmp(note->hash, hash_of(request)) == 0;
}

static struct key_note note_of(const struct forward *forward, const struct gateway_worker *worker)
{
        struct key_note note = { 0 };
        snprintf(note.tag, sizeof note.tag, "%s", worker->tag);
        snprintf(note.attempt, sizeof note.attempt, "%s", forward->attempt);
        snprintf(note.pod, sizeof note.pod, "%s", worker->uid[0] ? worker->name : "");
        snprintf(note.uid, sizeof note.uid, "%s", worker->uid);
        snprintf(note.hash, sizeof note.hash, "%s", hash_of(forward->request));
        return note;
}

static char *note_body(const struct forward *forward, const struct gateway_worker *worker)
{
        const struct key_note note = note_of(forward, worker);
        json_t *replaces = json_array(),
               *body = witness_body(gateway_claims(forward->request, 1), forward->key, &note, replaces);
        for (size_t i = 0; i < forward->notes.n; i++)
                json_array_append_new(replaces, json_string(forward->notes.list[i].attempt));
        for (size_t i = 0; i < forward->spent_n; i++)
                json_array_append_new(replaces, json_string(forward->spent[i]));
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

static struct witness_sender sender_of(const struct forward *forward)
{
        return (struct witness_sender){ forward->gateway, gateway_claims(forward->request, 1),
                gateway_credentials(forward->request) };
}

static void keep(const struct key_noting *noting)
{
        const struct forward *forward = noting->forward;
        const struct witness_sender sender = sender_of(forward);
        const struct key_note note = note_of(forward, forward->worker);
        struct gateway_worker *holders[HOLDERS_MAX];
        size_t n = 0;
        for (size_t i = 0; i < noting->n; i++)
                if (noting->witnesses[i].noted)
                        holders[n++] = noting->witnesses[i].worker;
        const struct note_holders have = { forward->worker, holders, n };
        note_cache_add(forward->gateway->note_cache, &sender, key_name(forward), forward->key, &note, &have);
}

static void on_end(struct timer *timer)
{
        struct key_noting *noting = timer->owner;
        struct forward *forward = noting->forward;
        key_noted_fn *done = noting->done;
        bool silent = noting->awaits || (noting->n && !noting->noted && !noting->unable);
        enum key_noted noted = noting->taken ? KEY_TAKEN : silent ? KEY_UNNOTED : KEY_NOTED;
        if (noted == KEY_NOTED)
                keep(noting);
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
        witness->noted = status == MHD_HTTP_OK;
        noting->noted += witness->noted;
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

/* The two witnesses, and holders of notes to be replaced. */
static size_t choose_holders(const struct forward *forward, const struct gateway_worker *worker,
        struct gateway_worker *ret[static HOLDERS_MAX])
{
        size_t n = fleet_witnesses(forward->gateway->fleet, key_name(forward), worker, ret, WITNESSES);
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

/* Wait for a starting or restarting pod, a witness soon. */
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
                witness->worker = holders[i];
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

/* ---- withdrawal and renewal of notes ---- */

void key_withdraw(struct forward *forward)
{
        if (!forward->key || !forward->request)
                return;
        note_cache_drop(forward->gateway->note_cache, key_name(forward), forward->attempt);
        if (!forward->holders_n)
                return;
        const struct witness_sender sender = sender_of(forward);
        witness_tell(&sender, forward->holders, forward->holders_n,
                witness_withdrawal(sender.claims, forward->key, forward->attempt));
        key_forget_holders(forward);
}

/* Workers with a note of the same attempt. */
static size_t holders_of(const struct key_notes *notes, const struct key_note *note,
        struct gateway_worker *ret[static KEY_NOTES_MAX])
{
        size_t n = 0;
        for (size_t i = 0; i < notes->n; i++)
                if (strcmp(notes->list[i].attempt, note->attempt) == 0 && !notes->list[i].holder->removed)
                        ret[n++] = notes->list[i].holder;
        return n;
}

static void renew(struct forward *forward, const struct key_notes *notes, const struct key_note *note)
{
        struct gateway_worker *have[KEY_NOTES_MAX], *chosen[2 * WITNESSES], *fresh[WITNESSES];
        const struct fleet *fleet = forward->gateway->fleet;
        const struct witness_sender sender = sender_of(forward);
        size_t have_n = holders_of(notes, note, have), fresh_n = 0;
        if (have_n >= WITNESSES)
                return;
        size_t n = fleet_witnesses(fleet, key_name(forward), fleet_by_tag(fleet, note->tag), chosen, ARRAY_LEN(chosen));
        for (size_t i = 0; i < n && have_n + fresh_n < WITNESSES; i++)
                if (!is_in(have, have_n, chosen[i]))
                        fresh[fresh_n++] = chosen[i];
        if (fresh_n)
                witness_tell(&sender, fresh, fresh_n, witness_body(sender.claims, forward->key, note, json_array()));
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
