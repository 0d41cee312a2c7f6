/* The choice of a worker for a request. */
#include "gateway/fleet/fleet_private.h"

#include <sys/random.h>

size_t fleet_ready(const struct fleet *fleet)
{
        size_t n = 0;
        for (const struct gateway_worker *worker = fleet->first; worker; worker = worker->next)
                n += worker_takes_work(worker);
        return n;
}

static bool is_in(struct gateway_worker *const *list, size_t n, const struct gateway_worker *worker)
{
        for (size_t i = 0; i < n; i++)
                if (list[i] == worker)
                        return true;
        return false;
}

/* Whether the first worker is less loaded; by cross-multiplication, as slots differ. */
static bool is_less_loaded(const struct gateway_worker *one, const struct gateway_worker *other)
{
        uint64_t one_load = max_u64(one->running + one->queued, one->sent),
                 other_load = max_u64(other->running + other->queued, other->sent);
        return one_load * max_u64(other->slots, 1) < other_load * max_u64(one->slots, 1);
}

static uint64_t random_below(uint64_t n)
{
        uint64_t number;
        while (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
                ;
        return number % n;
}

/* The rank of a worker for a name (rendezvous hashing). */
static uint64_t rank(const struct gateway_worker *worker, const char *name)
{
        uint64_t parts[2] = { hash_text(worker->name, strlen(worker->name)), hash_text(name, strlen(name)) };
        return hash_text((const char *)parts, sizeof parts);
}

struct candidates {
        const struct fleet *fleet;
        const char *name;
        uint64_t least;                    /* rank of the last worker for the name; 0: all workers */
        struct gateway_worker *const *tried;
        size_t tried_n;
};

static int compare_ranks(const void *one, const void *other)
{
        uint64_t first = *(const uint64_t *)one, second = *(const uint64_t *)other;
        return (first < second) - (first > second);
}

/* The rank of worker number `spread` for the name, among `ready` workers that take work. */
static uint64_t least_rank(const struct fleet *fleet, const char *name, size_t spread, size_t ready)
{
        if (spread >= ready)
                return 0;
        if (!spread)
                return UINT64_MAX;
        uint64_t *ranks = mem_alloc(ready * sizeof *ranks);
        size_t n = 0;
        for (const struct gateway_worker *worker = fleet->first; worker; worker = worker->next)
                if (worker_takes_work(worker))
                        ranks[n++] = rank(worker, name);
        qsort(ranks, n, sizeof *ranks, compare_ranks);
        uint64_t least = ranks[spread - 1];
        free(ranks);
        return least;
}

static bool is_candidate(const struct candidates *choice, const struct gateway_worker *worker)
{
        return worker_takes_work(worker) && !is_in(choice->tried, choice->tried_n, worker) &&
               (!choice->least || rank(worker, choice->name) >= choice->least);
}

static struct gateway_worker *nth(const struct candidates *choice, size_t n)
{
        for (struct gateway_worker *worker = choice->fleet->first; worker; worker = worker->next)
                if (is_candidate(choice, worker) && n-- == 0)
                        return worker;
        return NULL;
}

struct gateway_worker *fleet_choose(struct fleet *fleet, const char *name, size_t spread,
        struct gateway_worker *const *tried, size_t tried_n)
{
        const struct candidates choice = { fleet, name, least_rank(fleet, name, spread, fleet_ready(fleet)), tried,
                tried_n };
        size_t n = 0;
        for (const struct gateway_worker *worker = fleet->first; worker; worker = worker->next)
                n += is_candidate(&choice, worker);
        if (n < 2)
                return nth(&choice, 0);
        size_t first = random_below(n), second = random_below(n - 1);
        struct gateway_worker *one = nth(&choice, first), *other = nth(&choice, second + (second >= first));
        return is_less_loaded(other, one) ? other : one;
}

/*
 * The objects of a worker are unknown while the worker starts or does not answer; a leaving worker gets no more names.
 */
static bool may_be_home(const struct gateway_worker *worker)
{
        return worker_takes_work(worker) || (worker->state != WORKER_READY && worker->state != WORKER_DRAINING);
}

/* Whether fewer than `spread` other possible homes come before the worker for the owner. */
static bool is_owners(const struct fleet *fleet, const struct gateway_worker *worker, const char *owner, size_t spread)
{
        size_t before = 0;
        for (const struct gateway_worker *other = fleet->first; other && before < spread; other = other->next)
                before += may_be_home(other) && rank(other, owner) > rank(worker, owner);
        return before < spread;
}

struct gateway_worker *fleet_home(const struct fleet *fleet, const char *owner, size_t spread, const char *name)
{
        struct gateway_worker *home = NULL;
        for (struct gateway_worker *worker = fleet->first; worker; worker = worker->next)
                if (may_be_home(worker) && (!home || rank(worker, name) > rank(home, name)) &&
                        is_owners(fleet, worker, owner, spread))
                        home = worker;
        return home;
}

size_t fleet_witnesses(const struct fleet *fleet, const char *name, const struct gateway_worker *except,
        struct gateway_worker **ret, size_t max)
{
        size_t n = 0;
        for (struct gateway_worker *worker = fleet->first; worker; worker = worker->next) {
                bool answers = worker->state == WORKER_READY || worker->state == WORKER_NOT_READY;
                if (worker == except || !answers || worker->cordoned || worker->removed)
                        continue;
                size_t at = n;
                while (at && rank(worker, name) > rank(ret[at - 1], name))
                        at--;
                if (at == max)
                        continue;
                n = n < max ? n + 1 : max;
                memmove(&ret[at + 1], &ret[at], (n - at - 1) * sizeof(struct gateway_worker *));
                ret[at] = worker;
        }
        return n;
}

#define HIDING_MAX 8                       /* workers; in a larger fleet a key has two witnesses with near certainty */
#define HIDING_US (60 * 1000000ULL)        /* how long a change of the fleet, and a worker that went down, count */

bool fleet_may_hide_keys(const struct fleet *fleet)
{
        uint64_t now_us = clock_us();
        size_t n = 0, down = 0;
        for (const struct gateway_worker *worker = fleet->first; worker; worker = worker->next) {
                n += worker->answered_us != 0;
                down += worker->answered_us && worker->state == WORKER_DOWN && now_us - worker->down_us < HIDING_US;
        }
        return down && n <= HIDING_MAX && fleet->changed_us && now_us - fleet->changed_us < HIDING_US;
}

bool fleet_awaits_worker(const struct fleet *fleet, const struct gateway_worker *except)
{
        uint64_t now_us = clock_us();
        for (const struct gateway_worker *worker = fleet->first; worker; worker = worker->next) {
                bool recent = now_us - max_u64(worker->added_us, worker->down_us) < HIDING_US;
                if (worker != except && recent && !worker->cordoned &&
                        worker->state != WORKER_READY && worker->state != WORKER_DRAINING)
                        return true;
        }
        return false;
}
