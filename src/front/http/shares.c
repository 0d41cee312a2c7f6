/* The ledger of bounded resources: a hash table of holders with one counter for each resource; see shares.h. */
#include "front/http/shares.h"

#include <inttypes.h>
#include <stdio.h>

#define BUCKETS 1024
#define NAME_MAX_BYTES 96                  /* "tenant " and the name of a tenant */

static const struct {
        const char *name, *unit;
        uint64_t minimum;                  /* a holder may have this much while the total permits */
        const char *remedy;
} table[SHARES_N] = {
        [SHARE_BODIES] = { "body_bytes", " bytes of request bodies", 256 * KIB,
                "send it again when other requests are answered" },
        [SHARE_STREAMS] = { "stream_bytes", " bytes of unread answers", 256 * KIB, "read the other answers" },
        [SHARE_READERS] = { "event_readers", " readers of events", 4, "end other readers of events" },
        [SHARE_REQUESTS] = { "requests", " requests in progress", 4, "send it again when other requests are answered" },
        [SHARE_LOCAL_REQUESTS] = { "local_requests", " requests in progress on this socket", 4,
                "send it again when other requests are answered" },
        [SHARE_SESSIONS] = { "mcp_sessions", " MCP sessions", 4, "end other sessions" },
        [SHARE_CONNECTIONS] = { "connections", " connections", 0, "close other connections" },
};

struct holder {
        struct holder *next;
        struct shares *shares;
        size_t refs;
        uint64_t held[SHARES_N];
        char name[NAME_MAX_BYTES];
};

struct shares {
        uint64_t totals[SHARES_N], used[SHARES_N];
        struct holder *buckets[BUCKETS];
};

struct shares *shares_new(const uint64_t totals[static SHARES_N])
{
        struct shares *shares = mem_alloc(sizeof *shares);
        memcpy(shares->totals, totals, sizeof shares->totals);
        return shares;
}

void shares_free(struct shares *shares)
{
        for (size_t i = 0; shares && i < BUCKETS; i++)
                for (struct holder *holder = shares->buckets[i], *next; holder; holder = next) {
                        next = holder->next;
                        free(holder);
                }
        free(shares);
}

const char *share_name(enum share share)
{
        return table[share].name;
}

uint64_t shares_total(const struct shares *shares, enum share share)
{
        return shares->totals[share];
}

uint64_t shares_used(const struct shares *shares, enum share share)
{
        return shares->used[share];
}

/* ---- holders ---- */

static size_t bucket_of(const char *name)
{
        return hash_text(name, strlen(name)) % BUCKETS;
}

struct holder *holder_ref(struct holder *holder)
{
        holder->refs++;
        return holder;
}

const char *holder_name(const struct holder *holder)
{
        return holder->name;
}

struct holder *holder_get(struct shares *shares, const char *name)
{
        struct holder **bucket = &shares->buckets[bucket_of(name)];
        for (struct holder *holder = *bucket; holder; holder = holder->next)
                if (strcmp(holder->name, name) == 0)
                        return holder_ref(holder);
        struct holder *holder = mem_alloc(sizeof *holder);
        *holder = (struct holder){ .next = *bucket, .shares = shares, .refs = 1 };
        snprintf(holder->name, sizeof holder->name, "%s", name);
        return *bucket = holder;
}

void holder_put(struct holder *holder)
{
        if (!holder || --holder->refs)
                return;
        for (struct holder **at = &holder->shares->buckets[bucket_of(holder->name)]; *at; at = &(*at)->next)
                if (*at == holder) {
                        *at = holder->next;
                        break;
                }
        free(holder);
}

/* ---- the rule ---- */

static uint64_t free_of(const struct holder *holder, enum share share)
{
        const struct shares *shares = holder->shares;
        return shares->totals[share] > shares->used[share] ? shares->totals[share] - shares->used[share] : 0;
}

uint64_t share_held(const struct holder *holder, enum share share)
{
        return holder->held[share];
}

/* The largest n with n <= free - (n - held), the rest then free. */
uint64_t share_limit(const struct holder *holder, enum share share)
{
        uint64_t held = holder->held[share], left = free_of(holder, share),
                 limit = max_u64((left + held) / 2, min_u64(table[share].minimum, left + held));
        return max_u64(limit, held);
}

bool share_is_exhausted(const struct holder *holder, enum share share, uint64_t amount)
{
        return holder->held[share] <= table[share].minimum && amount <= holder->shares->totals[share] / 2;
}

bool share_fits(const struct holder *holder, enum share share, uint64_t amount)
{
        uint64_t held = holder->held[share];
        return amount <= free_of(holder, share) && held + amount <= share_limit(holder, share);
}

int share_take(struct holder *holder, enum share share, uint64_t amount, struct csn_error *err)
{
        if (!share_fits(holder, share, amount))
                return err_set(err, CSN_E_BUSY, 0,
                        "%s may have %" PRIu64 "%s at present, has %" PRIu64 ", and this request needs %" PRIu64
                        " more (all clients together: %" PRIu64 " of %" PRIu64 "); %s",
                        holder->name, share_limit(holder, share), table[share].unit, holder->held[share], amount,
                        holder->shares->used[share], holder->shares->totals[share], table[share].remedy);
        share_count(holder, share, amount);
        return 0;
}

void share_count(struct holder *holder, enum share share, uint64_t amount)
{
        holder->held[share] += amount;
        holder->shares->used[share] += amount;
}

void share_give(struct holder *holder, enum share share, uint64_t amount)
{
        holder->held[share] -= amount;
        holder->shares->used[share] -= amount;
}

void share_charge_done(struct share_charge *charge)
{
        if (charge->holder)
                share_give(charge->holder, charge->share, charge->amount);
        holder_put(charge->holder);
        *charge = (struct share_charge){ 0 };
}
