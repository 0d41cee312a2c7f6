/*
 * A ring of attempts, newest over oldest, and a hash table of places in the ring.  Ids are random, so their first bits
 * are the hash; entries of the table are found by linear probing, and moved up when an attempt is forgotten (Knuth, The
 * Art of Computer Programming, volume 3, 6.4, algorithm R).
 */
#include "hop/attempts.h"

#define SLOTS_N (2 * ATTEMPTS_N)
#define EMPTY 0                            /* a slot has the place in the ring and 1 */

struct attempt {
        uint64_t id[2];
        uint64_t at_us;
        bool barred, over;
};

struct attempts {
        struct attempt ring[ATTEMPTS_N];
        uint32_t slots[SLOTS_N];
        uint64_t n;                        /* attempts so far; the next one's place is n % ATTEMPTS_N */
        uint64_t uncertain_until_us;       /* end of the time in which forgotten attempts count */
};

struct attempts *attempts_new(void)
{
        return mem_alloc(sizeof(struct attempts));
}

void attempts_free(struct attempts *attempts)
{
        free(attempts);
}

bool attempts_is_id(const char *id)
{
        return strlen(id) == HOP_ATTEMPT_LEN && strspn(id, "0123456789abcdef") == HOP_ATTEMPT_LEN;
}

static void parse(const char *id, uint64_t ret[static 2])
{
        char half[HOP_ATTEMPT_LEN / 2 + 1] = "";
        for (size_t i = 0; i < 2; i++) {
                memcpy(half, id + i * (HOP_ATTEMPT_LEN / 2), HOP_ATTEMPT_LEN / 2);
                ret[i] = strtoull(half, NULL, 16);
        }
}

static uint32_t home_of(const struct attempt *attempt)
{
        return (uint32_t)(attempt->id[0] % SLOTS_N);
}

/* The slot of an id, or the empty slot where the id would be. */
static uint32_t slot_of(const struct attempts *attempts, const uint64_t id[static 2])
{
        uint32_t slot = (uint32_t)(id[0] % SLOTS_N);
        for (; attempts->slots[slot] != EMPTY; slot = (slot + 1) % SLOTS_N) {
                const struct attempt *one = &attempts->ring[attempts->slots[slot] - 1];
                if (one->id[0] == id[0] && one->id[1] == id[1])
                        break;
        }
        return slot;
}

static void forget(struct attempts *attempts, const struct attempt *attempt)
{
        uint32_t hole = slot_of(attempts, attempt->id);
        attempts->slots[hole] = EMPTY;
        for (uint32_t at = (hole + 1) % SLOTS_N; attempts->slots[at] != EMPTY; at = (at + 1) % SLOTS_N) {
                uint32_t home = home_of(&attempts->ring[attempts->slots[at] - 1]);
                /* An entry with its home behind the hole is still found: its probe does not pass the hole. */
                if ((at - home) % SLOTS_N < (at - hole) % SLOTS_N)
                        continue;
                attempts->slots[hole] = attempts->slots[at];
                attempts->slots[at] = EMPTY;
                hole = at;
        }
}

static void add(struct attempts *attempts, const uint64_t id[static 2], bool barred, uint64_t now_us)
{
        uint32_t place = (uint32_t)(attempts->n % ATTEMPTS_N);
        struct attempt *one = &attempts->ring[place];
        if (attempts->n >= ATTEMPTS_N) {
                forget(attempts, one);
                if (one->at_us + ATTEMPTS_KEEP_US > attempts->uncertain_until_us)
                        attempts->uncertain_until_us = one->at_us + ATTEMPTS_KEEP_US;
        }
        attempts->slots[slot_of(attempts, id)] = place + 1;
        *one = (struct attempt){ .id = { id[0], id[1] }, .at_us = now_us, .barred = barred };
        attempts->n++;
}

static const struct attempt *find(const struct attempts *attempts, const uint64_t id[static 2])
{
        uint32_t entry = attempts->slots[slot_of(attempts, id)];
        return entry == EMPTY ? NULL : &attempts->ring[entry - 1];
}

bool attempts_admit(struct attempts *attempts, const char *id, uint64_t now_us)
{
        uint64_t number[2];
        parse(id, number);
        if (find(attempts, number))
                return false;
        add(attempts, number, false, now_us);
        return true;
}

bool attempts_ask(struct attempts *attempts, const char *id, uint64_t now_us)
{
        uint64_t number[2];
        parse(id, number);
        const struct attempt *one = find(attempts, number);
        if (one)
                return !one->barred;
        if (now_us < attempts->uncertain_until_us)
                return true;
        add(attempts, number, true, now_us);
        return false;
}

static struct attempt *find_own(struct attempts *attempts, const char *id)
{
        uint64_t number[2];
        parse(id, number);
        uint32_t entry = attempts->slots[slot_of(attempts, number)];
        return entry == EMPTY ? NULL : &attempts->ring[entry - 1];
}

void attempts_bar(struct attempts *attempts, const char *id)
{
        struct attempt *one = find_own(attempts, id);
        if (one)
                one->barred = true;
}

void attempts_end(struct attempts *attempts, const char *id)
{
        struct attempt *one = find_own(attempts, id);
        if (one)
                one->over = true;
}

bool attempts_is_over(const struct attempts *attempts, const char *id)
{
        uint64_t number[2];
        parse(id, number);
        const struct attempt *one = find(attempts, number);
        return one && one->over;
}
