/* uids: single ones and blocks, which no two sandboxes of this host have at once. */
#include "sandbox/sandbox.h"

#include "tap.h"

/* A range of nobody's, so that no supervisor of this host is in the way. */
static const struct uid_range range = { .first = 3900000000U, .count = 2 * 3 * UID_BLOCK + 500 };

static void blocks_are_whole_and_in_the_upper_half(void)
{
        const struct uid_range small = { .first = range.first, .count = 2 * UID_BLOCK - 1 };
        int locks[3];
        uint32_t first[3];
        struct csn_error err;
        CHECK(uid_blocks(&range) == 3 && uid_blocks(&small) == 0);
        for (size_t i = 0; i < 3; i++) {
                CHECK(uid_take_block(&range, &first[i], &locks[i], &err) == 0);
                CHECK(first[i] >= range.first + range.count / 2 && first[i] + UID_BLOCK <= range.first + range.count);
                for (size_t k = 0; k < i; k++)
                        CHECK(first[k] + UID_BLOCK <= first[i] || first[i] + UID_BLOCK <= first[k]);
        }
        int none;
        uint32_t id;
        CHECK(uid_take_block(&range, &id, &none, &err) == -CSN_E_BUSY && strstr(err.text, "of 3"));
        fd_close(&locks[1]);
        CHECK(uid_take_block(&range, &id, &locks[1], &err) == 0 && id == first[1]); /* its lock was all that held it */
        CHECK(uid_take_block(&small, &id, &none, &err) == -CSN_E_UNSUPPORTED && strstr(err.text, "engine.uid_count"));
        for (size_t i = 0; i < 3; i++)
                fd_close(&locks[i]);
}

static void single_uids_are_never_of_a_block(void)
{
        const struct uid_range small = { .first = range.first, .count = 2 * UID_BLOCK };
        struct csn_error err;
        uint32_t id, highest = 0;
        for (int i = 0; i < 20000; i++) {
                int lock;
                if (uid_take(&small, &id, &lock, &err) < 0) {
                        CHECK(false);
                        return;
                }
                highest = id > highest ? id : highest;
                fd_close(&lock);
                if (id < small.first + UIDS_RESERVED || id >= small.first + UID_BLOCK) {
                        CHECK(false);
                        return;
                }
        }
        CHECK(highest > small.first + UID_BLOCK / 2);
}

static void two_sandboxes_never_have_one_uid(void)
{
        const struct uid_range tiny = { .first = range.first, .count = UIDS_RESERVED + 1 };
        struct csn_error err;
        uint32_t id;
        int lock, second;
        CHECK(uid_take(&tiny, &id, &lock, &err) == 0 && id == tiny.first + UIDS_RESERVED);
        CHECK(uid_take(&tiny, &id, &second, &err) == -CSN_E_BUSY);
        fd_close(&lock);
        CHECK(uid_take(&tiny, &id, &lock, &err) == 0);
        fd_close(&lock);
}

int main(void)
{
        RUN(blocks_are_whole_and_in_the_upper_half);
        RUN(single_uids_are_never_of_a_block);
        RUN(two_sandboxes_never_have_one_uid);
        return tap_done();
}
