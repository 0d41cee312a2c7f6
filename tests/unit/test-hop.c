/* hop: what gateway and worker agree on; keys that change, ids that name their worker, signed calls. */
#include "hop/hop.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tap.h"

#define OLD "old-secret-0123456789-0123456789-old"
#define NEW "new-secret-0123456789-0123456789-new"
#define TAG "0badcafe"

static char folder[] = "/tmp/test-hop.XXXXXX", path[100];

/* As Kubernetes does it: the new content is another file, of the same name. */
static void write_keys(const char *text, size_t len)
{
        char temporary[120];
        snprintf(temporary, sizeof temporary, "%s.new", path);
        auto_fd fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && io_write_all(fd, text, len) == 0 && rename(temporary, path) == 0);
}

static struct hop_keys *keys_of(const char *text)
{
        struct hop_keys *keys = NULL;
        struct csn_error err = { 0 };
        write_keys(text, strlen(text));
        CHECK(hop_keys_open(path, &keys, &err) == 0);
        return keys;
}

/* ---- keys ---- */

static bool is_refused(const char *text, size_t len)
{
        struct hop_keys *keys = NULL;
        struct csn_error err = { 0 };
        write_keys(text, len);
        int rc = hop_keys_open(path, &keys, &err);
        hop_keys_free(keys);
        return rc == -CSN_E_CONFIG && strstr(err.text, "gateway.key_file") &&
                strcmp(err.field, "gateway.key_file") == 0 && !strstr(err.text, "secret-");
}

static void a_file_of_other_content_is_refused_without_naming_its_secrets(void)
{
        static const char *const wrong[] = {
                "", "\n\n", "secret-too-short", "secret-0123456789 0123456789-0123456789\n",
                OLD "\nsecret-too-short\n", OLD "\n" NEW "\n" OLD "\n", OLD "\n" NEW "\001\n",
        };
        char long_line[400];
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                CHECK(is_refused(wrong[i], strlen(wrong[i])));
        memset(long_line, 'a', sizeof long_line);
        CHECK(!is_refused(long_line, 256));
        CHECK(is_refused(long_line, 257));
        CHECK(!is_refused(long_line, 32));
        CHECK(is_refused(long_line, 31));
        CHECK(is_refused(OLD "\0" OLD, 2 * sizeof OLD - 1));
        char *large = mem_alloc(100 * KIB);
        memset(large, '\n', 100 * KIB);
        CHECK(is_refused(large, 100 * KIB));
        free(large);
}

static void what_is_no_file_is_refused(void)
{
        struct hop_keys *keys = NULL;
        struct csn_error err = { 0 };
        CHECK(hop_keys_open("/nonexistent/keys", &keys, &err) == -CSN_E_CONFIG);
        CHECK(strstr(err.text, "/nonexistent/keys"));
        CHECK(hop_keys_open(folder, &keys, &err) == -CSN_E_CONFIG && strstr(err.text, "regular"));
        CHECK(hop_keys_open("/dev/zero", &keys, &err) == -CSN_E_CONFIG && !keys);
        hop_keys_free(NULL);
}

static bool verifies(const struct hop_keys *keys, const char *value)
{
        struct arena arena = { 0 };
        struct hop_claims *claims;
        struct csn_error err = { 0 };
        int rc = hop_verify(keys, value, "GET", "/v1/runs", &arena, &claims, &err);
        CHECK(rc == 0 || (rc == -CSN_E_DENIED && err.text[0]));
        arena_done(&arena);
        return rc == 0;
}

static void a_secret_is_replaced_in_two_steps(void)
{
        struct arena arena = { 0 };
        struct hop_keys *keys = keys_of(OLD "\r\n\n");
        const char *by_old = hop_sign(keys, "GET", "/v1/runs", NULL, &arena);
        CHECK(!hop_keys_refresh(keys));
        write_keys(NEW "\n" OLD, strlen(NEW "\n" OLD));
        CHECK(hop_keys_refresh(keys));
        CHECK(!hop_keys_refresh(keys));
        const char *by_new = hop_sign(keys, "GET", "/v1/runs", NULL, &arena);
        CHECK(verifies(keys, by_old) && verifies(keys, by_new));
        write_keys(NEW "\n", strlen(NEW "\n"));
        CHECK(hop_keys_refresh(keys));
        CHECK(!verifies(keys, by_old) && verifies(keys, by_new));
        hop_keys_free(keys);
        arena_done(&arena);
}

static void a_wrong_new_content_leaves_the_old_keys(void)
{
        struct arena arena = { 0 };
        struct hop_keys *keys = keys_of(OLD);
        const char *value = hop_sign(keys, "GET", "/v1/runs", NULL, &arena);
        log_set_level(LOG_ERROR);
        write_keys("short", 5);
        CHECK(!hop_keys_refresh(keys));
        CHECK(verifies(keys, value));
        CHECK(unlink(path) == 0);
        CHECK(!hop_keys_refresh(keys));
        CHECK(verifies(keys, value));
        write_keys(NEW, strlen(NEW));
        CHECK(hop_keys_refresh(keys));
        CHECK(!verifies(keys, value));
        hop_keys_free(keys);
        arena_done(&arena);
}

static void a_mounted_secret_is_followed_through_its_links(void)
{
        char data[100], first[100], second[100], link[100], file[120];
        struct hop_keys *keys = NULL;
        struct csn_error err = { 0 };
        struct arena arena = { 0 };
        snprintf(data, sizeof data, "%s/..data", folder);
        snprintf(first, sizeof first, "%s/..1", folder);
        snprintf(second, sizeof second, "%s/..2", folder);
        snprintf(link, sizeof link, "%s/key", folder);
        CHECK(mkdir(first, 0700) == 0 && mkdir(second, 0700) == 0);
        for (int i = 0; i < 2; i++) {
                snprintf(file, sizeof file, "%s/key", i ? second : first);
                auto_fd fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                CHECK(io_write_all(fd, i ? NEW : OLD, strlen(OLD)) == 0);
        }
        CHECK(symlink("..1", data) == 0 && symlink("..data/key", link) == 0);
        CHECK(hop_keys_open(link, &keys, &err) == 0);
        const char *value = hop_sign(keys, "GET", "/v1/runs", NULL, &arena);
        snprintf(file, sizeof file, "%s/..tmp", folder);
        CHECK(symlink("..2", file) == 0 && rename(file, data) == 0);
        CHECK(hop_keys_refresh(keys));
        CHECK(!verifies(keys, value));
        hop_keys_free(keys);
        arena_done(&arena);
}

/* ---- ids ---- */

static bool names(const struct hop_keys *keys, const char *id)
{
        char tag[HOP_TAG_LEN + 1] = "";
        bool found = hop_tag_of(keys, id, strlen(id), tag);
        CHECK(!found || strcmp(tag, TAG) == 0);
        return found;
}

static void ids_of_each_form_name_their_worker(void)
{
        struct hop_keys *keys = keys_of(NEW "\n" OLD "\n");
        char id[ID_DIGITS + 1], other[ID_DIGITS + 1], uuid[ID_UUID_LEN + 1], text[80];
        char *small = mem_alloc(ID_SHORT_DIGITS + 1);
        hop_name_ids(keys, TAG);
        for (int i = 0; i < 200; i++) {
                id_new(id);
                id_new(other);
                id_new_short(small);
                id_new_uuid(uuid);
                CHECK(strlen(id) == 32 && strcmp(id, other) != 0 && strncmp(id, TAG, 8) == 0);
                CHECK(strlen(small) == 20 && strlen(uuid) == 36 && uuid[14] == '4' && uuid[19] == 'a');
                CHECK(names(keys, id) && names(keys, small) && names(keys, uuid));
                snprintf(text, sizeof text, "run_%s", id);
                CHECK(names(keys, text));
                snprintf(text, sizeof text, "i%s", small);
                CHECK(names(keys, text));
                text[0] = 'j';
                CHECK(!names(keys, text));
        }
        id_set_form(NULL);
        id_new(id);
        id_new_short(small);
        CHECK(!names(keys, id) && strlen(small) == 20);
        free(small);
        hop_keys_free(keys);
}

static void ids_of_21_characters_stand_for_their_digits_and_name_their_worker(void)
{
        static const char *const none[] = {
                "", "AAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAA.", "AAAAAAAAAA/AAAAAAAAAA",
                "AAAAAAAAAAAAAAAAAAAA=", "\303\274AAAAAAAAAAAAAAAAAAA",
        };
        struct hop_keys *keys = keys_of(NEW "\n" OLD "\n");
        char id[ID_DIGITS + 1], again[ID_DIGITS + 1], compact[ID_COMPACT_LEN + 1];
        for (int tagged = 0; tagged < 2; tagged++) {
                hop_name_ids(keys, "88badcaf");        /* compact ids of this tag begin with i, as those of E2B do */
                if (!tagged)
                        id_set_form(NULL);
                for (int i = 0; i < 200; i++) {
                        id_new_compact(id);
                        id_to_compact(id, compact);
                        CHECK(strlen(compact) == 21 && strlen(id) == 32 && (!tagged || compact[0] == 'i'));
                        CHECK(id_from_compact(compact, 21, again) && strcmp(id, again) == 0);
                        char tag[HOP_TAG_LEN + 1];
                        bool found = hop_tag_of(keys, compact, 21, tag);
                        CHECK(found == tagged && (!found || strcmp(tag, "88badcaf") == 0));
                        if (!tagged)
                                continue;
                        compact[20] = compact[20] == 'Q' ? 'g' : 'Q';
                        CHECK(!hop_tag_of(keys, compact, 21, tag) && hop_tag_unsealed(compact, 21, tag));
                }
        }
        id_set_form(NULL);
        id_to_compact("00000000000000000000000000000000", compact);
        CHECK(strcmp(compact, "AAAAAAAAAAAAAAAAAAAAA") == 0);
        id_to_compact("fffffffffffffffffffffffffffffffc", compact);
        CHECK(strcmp(compact, "_____________________") == 0);
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(!id_from_compact(none[i], strlen(none[i]), again));
        CHECK(!id_from_compact("AAAAAAAAAAAAAAAAAAAA\0", 21, again));
        hop_keys_free(keys);
}

static void every_changed_digit_breaks_the_seal(void)
{
        struct hop_keys *keys = keys_of(OLD);
        char ids[3][ID_UUID_LEN + 1];
        hop_name_ids(keys, TAG);
        id_new(ids[0]);
        id_new_short(ids[1]);
        id_new_uuid(ids[2]);
        id_set_form(NULL);
        for (size_t n = 0; n < 3; n++) {
                for (size_t i = 0; ids[n][i]; i++) {
                        char was = ids[n][i], tag[HOP_TAG_LEN + 1];
                        if (was == '-')
                                continue;
                        ids[n][i] = was == '0' ? '1' : '0';
                        CHECK(!hop_tag_of(keys, ids[n], strlen(ids[n]), tag));
                        ids[n][i] = was == 'G' ? 'H' : 'G';
                        CHECK(!hop_tag_of(keys, ids[n], strlen(ids[n]), tag));
                        ids[n][i] = was;
                }
                CHECK(names(keys, ids[n]));
        }
        hop_keys_free(keys);
}

static void texts_that_are_no_ids_name_none(void)
{
        static const char *const none[] = {
                "", "_", "run_", "0badcafe", "run_0badcafe", "0badcafe0123456701234567012345670", "../../etc/passwd",
                "zzzzzzzzzzzzzzzzzzzz", "--------------------------------", "0badcafe-0123-4567-0123-456701234567",
                "0badcafe01234567_0123456701234567",
        };
        struct hop_keys *keys = keys_of(OLD);
        char tag[HOP_TAG_LEN + 1], id[ID_DIGITS + 1];
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(!hop_tag_of(keys, none[i], strlen(none[i]), tag));
        hop_name_ids(keys, TAG);
        id_new(id);
        id_set_form(NULL);
        CHECK(!hop_tag_of(keys, id, 31, tag));
        CHECK(hop_tag_of(keys, id, 32, tag));
        hop_keys_free(keys);
}

static void ids_outlive_their_secret_without_a_seal(void)
{
        struct hop_keys *keys = keys_of(OLD);
        char tag[HOP_TAG_LEN + 1], id[ID_DIGITS + 1], small[ID_SHORT_DIGITS + 1];
        hop_name_ids(keys, TAG);
        id_new(id);
        id_new_short(small);
        id_set_form(NULL);
        write_keys(NEW "\n" OLD, strlen(NEW "\n" OLD));
        CHECK(hop_keys_refresh(keys));
        CHECK(names(keys, id) && names(keys, small));
        write_keys(NEW, strlen(NEW));
        CHECK(hop_keys_refresh(keys));
        CHECK(!names(keys, id) && !names(keys, small));
        CHECK(hop_tag_unsealed(id, strlen(id), tag) && strcmp(tag, TAG) == 0);
        CHECK(hop_tag_unsealed(small, strlen(small), tag) && strcmp(tag, TAG) == 0);
        CHECK(!hop_tag_unsealed("zzzzzzzzzzzzzzzzzzzz", 20, tag));
        CHECK(!hop_tag_unsealed("", 0, tag));
        hop_keys_free(keys);
}

/* ---- calls ---- */

static void a_call_is_verified_with_its_claims(void)
{
        struct hop_keys *keys = keys_of(OLD);
        struct arena arena = { 0 };
        struct csn_error err = { 0 };
        struct hop_claims *got = NULL;
        const struct hop_claims claims = { .tenant = "a+b/?\xc3\xa4", .key = "key1", .scopes = 129, .running_max = 1,
                .queued_max = 2, .cpu_ms_per_day = 3, .stored_bytes = INT64_MAX, .review_budget_nanousd = 5 };
        const char *value = hop_sign(keys, "POST", "/v1/runs?x=%20", &claims, &arena);
        CHECK(strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_ ") == strlen(value));
        CHECK(hop_verify(keys, value, "POST", "/v1/runs?x=%20", &arena, &got, &err) == 0 && got);
        CHECK(got && strcmp(got->tenant, claims.tenant) == 0 && strcmp(got->key, "key1") == 0 && got->scopes == 129);
        CHECK(got && got->running_max == 1 && got->queued_max == 2 && got->cpu_ms_per_day == 3);
        CHECK(got && got->stored_bytes == INT64_MAX && got->review_budget_nanousd == 5);
        value = hop_sign(keys, "POST", "/v1/runs?x=%20", NULL, &arena);
        CHECK(hop_verify(keys, value, "POST", "/v1/runs?x=%20", &arena, &got, &err) == 0 && !got);
        hop_keys_free(keys);
        arena_done(&arena);
}

static void another_request_with_the_same_signature_is_refused(void)
{
        struct hop_keys *keys = keys_of(OLD), *others;
        struct arena arena = { 0 };
        struct csn_error err = { 0 };
        struct hop_claims *claims = NULL;
        const char *value = hop_sign(keys, "GET", "/v1/runs", NULL, &arena);
        static const char *const targets[][2] = { { "POST", "/v1/runs" }, { "GET", "/v1/runs/" }, { "GET", "/v1/run" },
                { "GET", "/v1/runs?limit=1" }, { "GET", "" }, { "", "/v1/runs" }, { "GET\n", "v1/runs" } };
        for (size_t i = 0; i < ARRAY_LEN(targets); i++)
                CHECK(hop_verify(keys, value, targets[i][0], targets[i][1], &arena, &claims, &err) == -CSN_E_DENIED);
        CHECK(!claims);
        others = keys_of(NEW);
        CHECK(!verifies(others, value));
        CHECK(verifies(keys, value));
        hop_keys_free(others);
        hop_keys_free(keys);
        arena_done(&arena);
}

static void every_changed_letter_breaks_the_signature(void)
{
        struct hop_keys *keys = keys_of(OLD);
        struct arena arena = { 0 };
        const struct hop_claims claims = { .tenant = "t", .key = "k", .scopes = 1 };
        char *value = hop_sign(keys, "GET", "/v1/runs", &claims, &arena);
        CHECK(verifies(keys, value));
        for (size_t i = 0; value[i]; i++) {
                char was = value[i];
                value[i] = was == '0' ? '1' : '0';
                CHECK(!verifies(keys, value));
                value[i] = ' ';
                CHECK(was == ' ' || !verifies(keys, value));
                value[i] = 0;
                CHECK(!verifies(keys, value));
                value[i] = was;
        }
        CHECK(!verifies(keys, arena_text(&arena, "%s ", value)));
        CHECK(!verifies(keys, arena_text(&arena, " %s", value)));
        CHECK(!verifies(keys, arena_text(&arena, "%s, %s", value, value)));
        CHECK(!verifies(keys, arena_text(&arena, "%s%05000d", value, 0)));
        CHECK(!verifies(keys, ""));
        CHECK(!verifies(keys, "v1 - - -"));
        hop_keys_free(keys);
        arena_done(&arena);
}

int main(void)
{
        if (!mkdtemp(folder))
                return 1;
        snprintf(path, sizeof path, "%s/keys", folder);
        RUN(a_file_of_other_content_is_refused_without_naming_its_secrets);
        RUN(what_is_no_file_is_refused);
        RUN(a_secret_is_replaced_in_two_steps);
        RUN(a_wrong_new_content_leaves_the_old_keys);
        RUN(a_mounted_secret_is_followed_through_its_links);
        RUN(ids_of_each_form_name_their_worker);
        RUN(ids_of_21_characters_stand_for_their_digits_and_name_their_worker);
        RUN(every_changed_digit_breaks_the_seal);
        RUN(texts_that_are_no_ids_name_none);
        RUN(ids_outlive_their_secret_without_a_seal);
        RUN(a_call_is_verified_with_its_claims);
        RUN(another_request_with_the_same_signature_is_refused);
        RUN(every_changed_letter_breaks_the_signature);
        io_remove_tree(AT_FDCWD, folder);
        return tap_done();
}
