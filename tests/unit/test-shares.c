/* The ledger of shares: what one holder may have beside others. */
#include "front/http/shares.h"

#include "tap.h"

#include <stdio.h>

#define TOTAL (256 * MIB)
#define PIECE (64 * KIB)

static struct shares *ledger(void)
{
        static const uint64_t totals[SHARES_N] = { [SHARE_BODIES] = TOTAL, [SHARE_SESSIONS] = 10 };
        return shares_new(totals);
}

/* Takes pieces until one is refused; returns what the holder has then. */
static uint64_t take_all(struct holder *holder)
{
        struct csn_error err;
        while (share_take(holder, SHARE_BODIES, PIECE, &err) == 0)
                ;
        CHECK(err.code == CSN_E_BUSY && strstr(err.text, "request bodies"));
        return share_held(holder, SHARE_BODIES);
}

static void one_greedy_holder_gets_half(void)
{
        struct shares *shares = ledger();
        struct holder *one = holder_get(shares, "tenant a");
        CHECK(take_all(one) == TOTAL / 2);
        share_give(one, SHARE_BODIES, TOTAL / 2);
        CHECK(shares_used(shares, SHARE_BODIES) == 0);
        holder_put(one);
        shares_free(shares);
}

/* They take in turns; then one more comes. */
static void greedy_holders_get_equal_shares_and_leave_one_more(void)
{
        for (unsigned n = 2; n < 9; n++) {
                struct shares *shares = ledger();
                struct holder *holders[10];
                struct csn_error err;
                char name[40];
                for (unsigned i = 0; i <= n; i++) {
                        snprintf(name, sizeof name, "tenant %u", i);
                        holders[i] = holder_get(shares, name);
                }
                for (unsigned took = 1; took;) {
                        took = 0;
                        for (unsigned i = 0; i < n; i++)
                                took += share_take(holders[i], SHARE_BODIES, PIECE, &err) == 0;
                }
                for (unsigned i = 0; i < n; i++)
                        CHECK(share_held(holders[i], SHARE_BODIES) <= TOTAL / (n + 1) + PIECE &&
                                share_held(holders[i], SHARE_BODIES) >= TOTAL / (n + 1) - PIECE);
                CHECK(take_all(holders[n]) >= TOTAL / (n + 1) / 2 - PIECE);
                shares_free(shares);
        }
}

static void a_minimum_is_for_everybody_while_the_total_permits(void)
{
        struct shares *shares = ledger();
        struct csn_error err;
        char name[40];
        unsigned served = 0;
        for (unsigned i = 0; i < 12; i++) {
                snprintf(name, sizeof name, "tenant %u", i);
                struct holder *holder = holder_get(shares, name);
                for (unsigned j = 0; j < 2; j++)
                        served += share_take(holder, SHARE_SESSIONS, 1, &err) == 0;
        }
        CHECK(served == 10 && shares_used(shares, SHARE_SESSIONS) == 10);
        struct holder *late = holder_get(shares, "tenant late");
        CHECK(share_take(late, SHARE_SESSIONS, 1, &err) < 0 && share_is_exhausted(late, SHARE_SESSIONS, 1));
        shares_free(shares);
}

static void a_charge_is_given_back_once(void)
{
        struct shares *shares = ledger();
        struct csn_error err;
        struct holder *holder = holder_get(shares, "tenant a");
        CHECK(holder_get(shares, "tenant a") == holder);
        CHECK(share_take(holder, SHARE_BODIES, 1000, &err) == 0);
        struct share_charge charge = { holder_ref(holder), SHARE_BODIES, 1000 };
        share_charge_done(&charge);
        share_charge_done(&charge);
        CHECK(shares_used(shares, SHARE_BODIES) == 0 && share_held(holder, SHARE_BODIES) == 0);
        holder_put(holder);
        holder_put(holder);
        holder_put(NULL);
        shares_free(shares);
        shares_free(NULL);
}

static void huge_amounts_do_not_overflow(void)
{
        struct shares *shares = ledger();
        struct csn_error err;
        struct holder *holder = holder_get(shares, "tenant a");
        CHECK(share_take(holder, SHARE_BODIES, UINT64_MAX, &err) < 0);
        CHECK(share_take(holder, SHARE_BODIES, 1, &err) == 0);
        CHECK(share_take(holder, SHARE_BODIES, UINT64_MAX, &err) < 0);
        share_count(holder, SHARE_BODIES, 2 * TOTAL);
        CHECK(share_take(holder, SHARE_BODIES, 1, &err) < 0 && share_limit(holder, SHARE_BODIES) == 2 * TOTAL + 1);
        shares_free(shares);
}

int main(void)
{
        RUN(one_greedy_holder_gets_half);
        RUN(greedy_holders_get_equal_shares_and_leave_one_more);
        RUN(a_minimum_is_for_everybody_while_the_total_permits);
        RUN(a_charge_is_given_back_once);
        RUN(huge_amounts_do_not_overflow);
        return tap_done();
}
