/* store/usage.c: sums of the usage of models are exact, also of several processes, and budgets count them. */
#include <inttypes.h>
#include <sys/wait.h>

#include "store-testing.h"

static struct store_usage usage_of(const char *tenant, const char *key, const char *model)
{
        static char component[] = "CodeSecurityReviewer";
        return (struct store_usage){ .tenant = arena_text(&arena, "%s", tenant),
                .key = arena_text(&arena, "%s", key),
                .component = component,
                .model = arena_text(&arena, "%s", model),
                .day = usage_day(time_now_ms()),
                .calls = 1,
                .prompt_tokens = 100,
                .completion_tokens = 20,
                .total_tokens = 120,
                .cached_tokens = 7,
                .reasoning_tokens = 3,
                .cost_nanousd = 11 };
}

static void add(struct store *store, const struct store_usage *usage)
{
        struct csn_error err;
        CHECK(usage_add(store, usage, &err) == 0);
}

static size_t sums(struct store *store, const char *tenant, int64_t since_day, enum usage_by by,
        struct store_usage **ret)
{
        struct csn_error err;
        size_t n = 0;
        const struct usage_filter filter = { .tenant = tenant, .since_day = since_day };
        CHECK(usage_sums(store, &filter, by, &arena, ret, &n, &err) == 0);
        return n;
}

static uint64_t cost_of(struct store *store, const char *key)
{
        struct csn_error err;
        uint64_t cost = 1234;
        CHECK(usage_key_cost(store, key, &cost, &err) == 0);
        return cost;
}

static void sums_have_each_number(void)
{
        struct store *store = open_store(new_path());
        struct store_usage *list;
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 0 && sums(store, "", 0, USAGE_BY_MODEL, &list) == 0);
        struct store_usage one = usage_of("a", "k1", "small"), missing = usage_of("a", "", "large");
        add(store, &one);
        add(store, &one);
        missing = (struct store_usage){ .tenant = missing.tenant, .key = missing.key, .component = missing.component,
                .model = missing.model, .day = missing.day, .calls = 1, .usage_missing = 1 };
        add(store, &missing);
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 1);
        CHECK(list->calls == 3 && list->usage_missing == 1 && list->prompt_tokens == 200 &&
                list->completion_tokens == 40 && list->total_tokens == 240 && list->cached_tokens == 14 &&
                list->reasoning_tokens == 6 && list->cost_nanousd == 22);
        CHECK(sums(store, "", 0, USAGE_BY_MODEL, &list) == 2 && strcmp(list[0].model, "small") == 0 &&
                list[0].calls == 2 && strcmp(list[1].model, "large") == 0 && list[1].cost_nanousd == 0);
        CHECK(sums(store, "", 0, USAGE_BY_KEY, &list) == 2 && strcmp(list[0].key, "k1") == 0 && !list[1].key[0]);
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 1 &&
                strcmp(list->component, "CodeSecurityReviewer") == 0);
        store_close(store);
}

static void a_tenant_and_a_time_choose(void)
{
        struct store *store = open_store(new_path());
        struct store_usage *list, old = usage_of("a", "k1", "m"), other = usage_of("b", "k2", "m");
        old.day -= 10;
        add(store, &old);
        add(store, &other);
        CHECK(sums(store, "a", 0, USAGE_BY_COMPONENT, &list) == 1 && list->calls == 1);
        CHECK(sums(store, "a", old.day, USAGE_BY_COMPONENT, &list) == 1);
        CHECK(sums(store, "a", old.day + 1, USAGE_BY_COMPONENT, &list) == 0);
        CHECK(sums(store, "c", 0, USAGE_BY_COMPONENT, &list) == 0);
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 1 && list->calls == 2);
        store_close(store);
}

static void a_reset_is_of_a_tenant_or_of_all(void)
{
        struct csn_error err;
        struct store *store = open_store(new_path());
        struct store_usage *list, one = usage_of("a", "k1", "m"), other = usage_of("b", "k2", "m");
        add(store, &one);
        add(store, &other);
        CHECK(cost_of(store, "k1") == 11 && cost_of(store, "k2") == 11 && cost_of(store, "k3") == 0);
        CHECK(usage_reset(store, "a", &err) == 0);
        CHECK(cost_of(store, "k1") == 0 && cost_of(store, "k2") == 11);
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 1 && list->calls == 1);
        add(store, &one);
        CHECK(cost_of(store, "k1") == 11 && usage_reset(store, "", &err) == 0 && cost_of(store, "k2") == 0);
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 0);
        store_close(store);
}

/* A server that reports absurd numbers makes no sum negative and no statement fail. */
static void huge_numbers_stay_at_the_ceiling(void)
{
        struct store *store = open_store(new_path());
        struct store_usage *list, one = usage_of("a", "k1", "m");
        one.prompt_tokens = UINT64_MAX;
        one.cost_nanousd = INT64_MAX;
        for (int i = 0; i < 3; i++)
                add(store, &one);
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 1 && list->prompt_tokens == 1000000000000000 &&
                list->cost_nanousd == 1000000000000000 && list->calls == 3);
        CHECK(cost_of(store, "k1") == 1000000000000000);
        store_close(store);
}

static void processes_add_at_the_same_time(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct store_usage *list;
        fflush(stdout);
        for (int i = 0; i < 4; i++)
                if (fork() == 0) {
                        struct csn_error err;
                        struct store *own = open_store(path);
                        const struct store_usage one = usage_of("a", "k1", "m");
                        int rc = 0;
                        for (int k = 0; k < 25 && rc == 0; k++)
                                rc = usage_add(own, &one, &err);
                        store_close(own);
                        _exit(rc < 0);
                }
        for (int status, i = 0; i < 4; i++)
                CHECK(wait(&status) > 0 && status == 0);
        CHECK(sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 1 && list->calls == 100 &&
                list->prompt_tokens == 10000 && list->cost_nanousd == 1100);
        CHECK(cost_of(store, "k1") == 1100);
        store_close(store);
}

/* Another connection holds the lock, as a full disk would: budgets count, and a later call writes. */
static void what_the_database_refuses_is_counted(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        struct store_usage *list, one = usage_of("a", "k1", "m");
        sqlite3 *db;
        CHECK(sqlite3_open(path, &db) == SQLITE_OK &&
                sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
        CHECK(usage_add(store, &one, &err) < 0);
        CHECK(cost_of(store, "k1") == 11);
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
        sqlite3_close(db);
        runs_retry(store);
        CHECK(cost_of(store, "k1") == 11 && sums(store, "", 0, USAGE_BY_COMPONENT, &list) == 1 && list->calls == 1);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM usage"), "1") == 0);
        store_close(store);
}

static void a_key_keeps_its_budget(void)
{
        struct csn_error err;
        char text[KEY_TEXT_MAX];
        struct store *store = open_store(new_path());
        struct store_key key = a_key("a"), found;
        key.review_budget_nanousd = 1500000000;
        CHECK(keys_add(store, &key, text, &err) == 0);
        CHECK(keys_find(store, text, &arena, &found, &err) == 0 && found.review_budget_nanousd == 1500000000);
        store_close(store);
}

static void amounts_of_money(void)
{
        static const struct {
                const char *text;
                bool good;
                uint64_t nanousd;
        } cases[] = {
                { "0", true, 0 }, { "1", true, 1000000000 }, { "0.000000001", true, 1 }, { "2.5", true, 2500000000 },
                { "1000000", true, 1000000000000000 }, { "1000000.1", false, 0 }, { "10000000", false, 0 },
                { "0.0000000001", false, 0 }, { "", false, 0 }, { ".5", false, 0 }, { "1.", false, 0 },
                { "-1", false, 0 }, { "1e3", false, 0 }, { "1,5", false, 0 }, { " 1", false, 0 }, { "1 ", false, 0 },
                { "0x10", false, 0 }, { "nan", false, 0 },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                uint64_t nanousd = 0;
                CHECK(usd_parse(cases[i].text, &nanousd) == cases[i].good && nanousd == cases[i].nanousd);
        }
        static const struct {
                uint64_t nanousd;
                unsigned digits;
                const char *text;
        } prints[] = {
                { 0, 4, "0.0000" }, { 49999, 4, "0.0000" }, { 50000, 4, "0.0000" }, { 150000, 4, "0.0002" },
                { 50001, 4, "0.0001" }, { 1234567890, 4, "1.2346" }, { 1234567890, 9, "1.234567890" },
                { 999999999, 4, "1.0000" }, { 5, 9, "0.000000005" }, { 1000000000000000, 4, "1000000.0000" },
        };
        for (size_t i = 0; i < ARRAY_LEN(prints); i++) {
                char text[40];
                usd_print(prints[i].nanousd, prints[i].digits, text, sizeof text);
                CHECK(strcmp(text, prints[i].text) == 0);
        }
}

int main(void)
{
        RUN(sums_have_each_number);
        RUN(a_tenant_and_a_time_choose);
        RUN(a_reset_is_of_a_tenant_or_of_all);
        RUN(huge_numbers_stay_at_the_ceiling);
        RUN(processes_add_at_the_same_time);
        RUN(what_the_database_refuses_is_counted);
        RUN(a_key_keeps_its_budget);
        RUN(amounts_of_money);
        remove_top();
        arena_done(&arena);
        return tap_done();
}
