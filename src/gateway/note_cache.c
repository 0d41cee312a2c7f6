/*
 * The notes made by this gateway about Idempotency-Keys.  When a witness is removed, the gateway gives the note to
 * another worker, and answers from its own copy meanwhile: a fleet whose workers are all replaced within seconds keeps
 * its notes as long as one gateway lives.
 *
 * The notes are in a table by name and in a list by age.
 */
#include "gateway/gateway_private.h"

#include <stdio.h>

#define BUCKETS 4096
#define LOOK_US 100000                     /* after a change of the fleet */
#define LOOK_MAX 500                       /* notes in one step of the loop */

struct kept {
        struct kept *next_there;           /* in the bucket */
        struct kept *newer, *older;
        struct arena arena;                /* of the texts */
        const char *name, *key, *head;
        struct hop_claims *claims;         /* NULL: the workers have the keys */
        struct key_note note;              /* without a holder */
        struct gateway_worker *holders[WITNESSES];   /* references */
        struct gateway_worker *worker;     /* to which the key was sent; a reference */
        size_t holders_n;
        uint64_t at_us;
};

struct note_cache {
        struct gateway *gateway;
        struct kept *buckets[BUCKETS];
        struct kept *newest, *oldest;
        struct kept *next;                 /* next note of the current look, or NULL */
        size_t n;
        bool again;                        /* the fleet has changed during the look */
        struct timer look;
};

/* ---- the table ---- */

static struct kept **place_of(struct note_cache *cache, const char *name)
{
        struct kept **at = &cache->buckets[hash_text(name, strlen(name)) % BUCKETS];
        while (*at && strcmp((*at)->name, name) != 0)
                at = &(*at)->next_there;
        return at;
}

static void kept_free(struct note_cache *cache, struct kept *kept)
{
        *place_of(cache, kept->name) = kept->next_there;
        *(kept->newer ? &kept->newer->older : &cache->newest) = kept->older;
        *(kept->older ? &kept->older->newer : &cache->oldest) = kept->newer;
        if (cache->next == kept)
                cache->next = kept->older;
        while (kept->holders_n)
                worker_unref(kept->holders[--kept->holders_n]);
        worker_unref(kept->worker);
        cache->n--;
        arena_done(&kept->arena);
        free(kept);
}

static void make_room(struct note_cache *cache)
{
        const struct gateway_settings *settings = &cache->gateway->settings->gateway;
        uint64_t now_us = clock_us(), ttl_us = settings->lost_ttl * 1000;
        while (cache->oldest && (cache->n >= settings->notes_max || now_us - cache->oldest->at_us > ttl_us))
                kept_free(cache, cache->oldest);
}

static void hold(struct kept *kept, struct gateway_worker *worker)
{
        if (kept->holders_n < WITNESSES)
                kept->holders[kept->holders_n++] = worker_ref(worker);
}

static struct hop_claims *copy_claims(struct arena *arena, const struct hop_claims *from)
{
        if (!from)
                return NULL;
        struct hop_claims *claims = arena_alloc(arena, sizeof *claims);
        *claims = *from;
        claims->tenant = arena_text(arena, "%s", from->tenant);
        claims->key = arena_text(arena, "%s", from->key);
        return claims;
}

void note_cache_add(struct note_cache *cache, const struct witness_sender *sender, const char *name, const char *key,
        const struct key_note *note, const struct note_holders *holders)
{
        if (*place_of(cache, name))
                kept_free(cache, *place_of(cache, name));
        make_room(cache);
        if (!cache->gateway->settings->gateway.notes_max)
                return;
        struct kept *kept = mem_alloc(sizeof *kept), **place = place_of(cache, name);
        *kept = (struct kept){ .older = cache->newest, .note = *note, .at_us = clock_us() };
        kept->name = arena_text(&kept->arena, "%s", name);
        kept->key = arena_text(&kept->arena, "%s", key);
        kept->head = arena_text(&kept->arena, "%s", sender->head);
        kept->claims = copy_claims(&kept->arena, sender->claims);
        kept->worker = worker_ref(holders->worker);
        for (size_t i = 0; i < holders->n; i++)
                hold(kept, holders->witnesses[i]);
        *place = kept;
        *(cache->newest ? &cache->newest->newer : &cache->oldest) = kept;
        cache->newest = kept;
        cache->n++;
}

void note_cache_drop(struct note_cache *cache, const char *name, const char *attempt)
{
        struct kept *kept = *place_of(cache, name);
        if (kept && strcmp(kept->note.attempt, attempt) == 0)
                kept_free(cache, kept);
}

/* ---- removed witnesses ---- */

static void drop_gone(struct kept *kept)
{
        for (size_t i = 0; i < kept->holders_n;) {
                struct gateway_worker *holder = kept->holders[i];
                if (!holder->removed) {
                        i++;
                        continue;
                }
                kept->holders[i] = kept->holders[--kept->holders_n];
                worker_unref(holder);
        }
}

static bool holds(const struct kept *kept, const struct gateway_worker *worker)
{
        for (size_t i = 0; i < kept->holders_n; i++)
                if (kept->holders[i] == worker)
                        return true;
        return false;
}

static void renew(struct note_cache *cache, struct kept *kept)
{
        struct gateway_worker *chosen[2 * WITNESSES], *fresh[WITNESSES];
        const struct fleet *fleet = cache->gateway->fleet;
        size_t fresh_n = 0;
        drop_gone(kept);
        if (kept->holders_n == WITNESSES)
                return;
        size_t n = fleet_witnesses(fleet, kept->name, fleet_by_tag(fleet, kept->note.tag), chosen, ARRAY_LEN(chosen));
        for (size_t i = 0; i < n && kept->holders_n < WITNESSES; i++) {
                if (holds(kept, chosen[i]))
                        continue;
                hold(kept, chosen[i]);
                fresh[fresh_n++] = chosen[i];
        }
        const struct witness_sender sender = { cache->gateway, kept->claims, kept->head };
        if (fresh_n)
                witness_tell(&sender, fresh, fresh_n,
                        witness_body(kept->claims, kept->key, &kept->note, json_array()));
}

/* Renew a part of the notes, the newest first: clients ask for new keys. */
static void on_look(struct timer *timer)
{
        struct note_cache *cache = timer->owner;
        if (!cache->next) {
                cache->next = cache->newest;
                cache->again = false;
        }
        for (size_t i = 0; cache->next && i < LOOK_MAX; i++) {
                struct kept *kept = cache->next;
                cache->next = kept->older;
                renew(cache, kept);
        }
        if (cache->next || cache->again)
                loop_timer(cache->gateway->loop, timer, cache->next ? 0 : LOOK_US);
}

void note_cache_wake(struct note_cache *cache)
{
        cache->again = true;
        if (!cache->look.active)
                loop_timer(cache->gateway->loop, &cache->look, LOOK_US);
}

/* ---- questions ---- */

void note_cache_tell(struct note_cache *cache, const char *name, struct key_notes *notes)
{
        make_room(cache);
        struct kept *kept = *place_of(cache, name);
        if (!kept)
                return;
        for (size_t i = 0; i < notes->n; i++)
                if (strcmp(notes->list[i].attempt, kept->note.attempt) == 0)
                        return;
        if (kept->worker->removed) {       /* else the worker knows more than the note */
                kept->note.age_ms = (clock_us() - kept->at_us) / 1000;
                key_note_keep(notes, &kept->note, kept->worker);
        }
}

void note_cache_open(struct gateway *gateway)
{
        struct note_cache *cache = gateway->note_cache = mem_alloc(sizeof *cache);
        *cache = (struct note_cache){ .gateway = gateway, .look = { .fired = on_look, .owner = cache } };
}

void note_cache_close(struct note_cache *cache)
{
        if (!cache)
                return;
        loop_untimer(cache->gateway->loop, &cache->look);
        for (struct kept *kept = cache->newest, *older; kept; kept = older) {
                older = kept->older;
                kept_free(cache, kept);
        }
        free(cache);
}
