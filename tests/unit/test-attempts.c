/* attempts: an attempt that may have been admitted is never denied, and a denied one is never admitted. */
#include "hop/attempts.h"

#include <stdio.h>

#include "tap.h"

#define S 1000000ULL

static const char *id_of(unsigned long long number)
{
        static char text[4][HOP_ATTEMPT_LEN + 1];
        static unsigned turn;
        char *ret = text[turn++ % 4];
        snprintf(ret, HOP_ATTEMPT_LEN + 1, "%016llx%016llx", number * 0x9e3779b97f4a7c15ULL, number);
        return ret;
}

static void only_32_digits_are_an_id(void)
{
        CHECK(attempts_is_id("0123456789abcdef0123456789abcdef"));
        CHECK(!attempts_is_id(""));
        CHECK(!attempts_is_id("0123456789abcdef0123456789abcde"));
        CHECK(!attempts_is_id("0123456789abcdef0123456789abcdef0"));
        CHECK(!attempts_is_id("0123456789ABCDEF0123456789abcdef"));
        CHECK(!attempts_is_id("0123456789abcdef0123456789abcde/"));
}

static void an_attempt_is_admitted_once(void)
{
        struct attempts *attempts = attempts_new();
        CHECK(attempts_admit(attempts, id_of(1), S));
        CHECK(attempts_ask(attempts, id_of(1), S));
        CHECK(!attempts_admit(attempts, id_of(1), S));
        CHECK(attempts_ask(attempts, id_of(1), 1000 * S));
        attempts_free(attempts);
        attempts_free(NULL);
}

static void a_denied_attempt_is_barred(void)
{
        struct attempts *attempts = attempts_new();
        CHECK(!attempts_ask(attempts, id_of(1), S));
        CHECK(!attempts_admit(attempts, id_of(1), S));
        CHECK(!attempts_ask(attempts, id_of(1), S));
        CHECK(attempts_admit(attempts, id_of(2), S));
        attempts_free(attempts);
}

static void a_refused_attempt_counts_as_not_admitted(void)
{
        struct attempts *attempts = attempts_new();
        CHECK(attempts_admit(attempts, id_of(1), S));
        attempts_bar(attempts, id_of(1));
        attempts_end(attempts, id_of(1));
        CHECK(!attempts_ask(attempts, id_of(1), S) && !attempts_admit(attempts, id_of(1), S));
        attempts_bar(attempts, id_of(2));
        CHECK(attempts_admit(attempts, id_of(2), S));
        attempts_free(attempts);
}

static void an_attempt_is_over_when_its_request_has_ended(void)
{
        struct attempts *attempts = attempts_new();
        CHECK(attempts_admit(attempts, id_of(1), S) && !attempts_is_over(attempts, id_of(1)));
        attempts_end(attempts, id_of(1));
        CHECK(attempts_is_over(attempts, id_of(1)) && attempts_ask(attempts, id_of(1), S));
        attempts_end(attempts, id_of(2));
        CHECK(!attempts_is_over(attempts, id_of(2)) && attempts_admit(attempts, id_of(2), S));
        attempts_free(attempts);
}

static void a_hundred_thousand_attempts_in_a_moment_are_known(void)
{
        struct attempts *attempts = attempts_new();
        bool good = true;
        for (unsigned i = 0; i < 100000; i++)
                good = good && attempts_admit(attempts, id_of(i), S);
        for (unsigned i = 0; i < 100000; i++)
                good = good && attempts_ask(attempts, id_of(i), S + i);
        CHECK(good);
        CHECK(!attempts_ask(attempts, id_of(100000), 2 * S));
        attempts_free(attempts);
}

static void a_full_table_denies_nothing_until_the_forgotten_are_old(void)
{
        struct attempts *attempts = attempts_new();
        bool good = true;
        for (unsigned i = 0; i < 3 * ATTEMPTS_N; i++)
                good = good && attempts_admit(attempts, id_of(i), S);
        for (unsigned i = 2 * ATTEMPTS_N; i < 3 * ATTEMPTS_N; i++)
                good = good && attempts_ask(attempts, id_of(i), S);
        CHECK(good);
        CHECK(attempts_ask(attempts, id_of(1), S));               /* forgotten */
        CHECK(attempts_ask(attempts, id_of(~0ULL), 120 * S));     /* never seen, and not known to be so */
        CHECK(!attempts_ask(attempts, id_of(~0ULL), 121 * S));
        CHECK(!attempts_ask(attempts, id_of(1), 121 * S));
        attempts_free(attempts);
}

static void old_attempts_make_room_without_doubt(void)
{
        struct attempts *attempts = attempts_new();
        bool good = true;
        for (unsigned i = 0; i < 4 * ATTEMPTS_N; i++) {
                uint64_t now = i * 2000ULL;                       /* 500 a second */
                good = good && attempts_admit(attempts, id_of(i), now);
                good = good && (i % 1000 || !attempts_ask(attempts, id_of(i + (1ULL << 40)), now));
                good = good && (i < 60000 || attempts_ask(attempts, id_of(i - 60000), now));
        }
        CHECK(good);
        attempts_free(attempts);
}

/* All of a small set of hashes, so that entries are moved. */
static void ids_with_the_same_first_digits_are_told_apart(void)
{
        struct attempts *attempts = attempts_new();
        char id[HOP_ATTEMPT_LEN + 1];
        bool good = true;
        for (unsigned i = 0; i < 2000; i++) {
                snprintf(id, sizeof id, "%016llx%016x", 2ULL * ATTEMPTS_N - 3 + i % 7, i);
                good = good && attempts_admit(attempts, id, S);
        }
        for (unsigned i = 0; i < ATTEMPTS_N - 1000; i++)
                good = good && attempts_admit(attempts, id_of(i + 5), 200 * S);
        for (unsigned i = 1000; i < 2000; i++) {
                snprintf(id, sizeof id, "%016llx%016x", 2ULL * ATTEMPTS_N - 3 + i % 7, i);
                good = good && attempts_ask(attempts, id, 200 * S);
        }
        CHECK(good);
        snprintf(id, sizeof id, "%016llx%016x", 2ULL * ATTEMPTS_N - 3, 0);
        CHECK(!attempts_ask(attempts, id, 200 * S));
        attempts_free(attempts);
}

int main(void)
{
        RUN(only_32_digits_are_an_id);
        RUN(an_attempt_is_admitted_once);
        RUN(a_denied_attempt_is_barred);
        RUN(a_refused_attempt_counts_as_not_admitted);
        RUN(an_attempt_is_over_when_its_request_has_ended);
        RUN(a_hundred_thousand_attempts_in_a_moment_are_known);
        RUN(a_full_table_denies_nothing_until_the_forgotten_are_old);
        RUN(old_attempts_make_room_without_doubt);
        RUN(ids_with_the_same_first_digits_are_told_apart);
        return tap_done();
}
