/*
 * What the tests of the store share: folders of their own, stores in them, and SQL past the store.
 */
#ifndef TESTS_UNIT_STORE_TESTING_H
#define TESTS_UNIT_STORE_TESTING_H

#include "store/store.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tap.h"

#define DAY_MS (24LL * 3600 * 1000)

static struct arena arena;

/* ---- folders and files ---- */

static inline const char *top(void)
{
        static char path[] = "/tmp/test-store-XXXXXX";
        static bool made;
        made = made || mkdtemp(path);
        return path;
}

static inline void remove_top(void)
{
        auto_fd tmp = open("/tmp", O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(tmp, top() + strlen("/tmp/"));
}

/* The path of a store in a folder of its own. */
static inline const char *new_path(void)
{
        static int number;
        char *folder = arena_text(&arena, "%s/%d", top(), number++);
        CHECK(mkdir(folder, 0755) == 0);
        return arena_text(&arena, "%s/caisson.db", folder);
}

/* ---- stores ---- */

static inline struct store *open_store(const char *path)
{
        struct csn_error err = { 0 };
        struct store *store = NULL;
        int rc = store_open(path, &store, &err);
        if (rc < 0)
                printf("# %s\n", err.text);
        CHECK(rc == 0 && store);
        if (!store)
                _exit(1);
        return store;
}

static inline int refusal(const char *path, struct csn_error *err)
{
        struct store *store = NULL;
        *err = (struct csn_error){ 0 };
        int rc = store_open(path, &store, err);
        CHECK((rc < 0) == !store && rc == -err->code);
        store_close(store);
        return rc;
}

/* SQL past the store, as another program would.  The first column of the first row, as text. */
static inline char *sql(const char *path, const char *text)
{
        sqlite3 *db;
        sqlite3_stmt *statement;
        char *answer = arena_text(&arena, "%s", "");
        CHECK(sqlite3_open(path, &db) == SQLITE_OK);
        sqlite3_busy_timeout(db, 2000);
        for (const char *rest = text; *rest;) {
                CHECK(sqlite3_prepare_v2(db, rest, -1, &statement, &rest) == SQLITE_OK);
                if (sqlite3_step(statement) == SQLITE_ROW)
                        answer = arena_text(&arena, "%s", (const char *)sqlite3_column_text(statement, 0));
                sqlite3_finalize(statement);
        }
        sqlite3_close(db);
        return answer;
}

#define NEWEST "6"                         /* the version that open_store() makes */

/* Take back what versions 4 to 6 added, so that version 3 is left. */
static inline void undo_to_version_3(const char *path)
{
        sql(path,
                "DROP TABLE volumes; DROP TABLE usage; DROP TABLE usage_costs; DROP TABLE witnesses; DROP TABLE pulled; "
                "DROP TABLE problem_sets; "
                "ALTER TABLE keys DROP COLUMN review_budget_nanousd");
}

static inline struct store_key a_key(const char *tenant)
{
        return (struct store_key){ .name = arena_text(&arena, "a key of %s", tenant),
                .tenant = arena_text(&arena, "%s", tenant),
                .scopes = SCOPE_RUN | SCOPE_READ };
}

static inline struct store_key add_key(struct store *store, const char *tenant, char text[static KEY_TEXT_MAX])
{
        struct csn_error err;
        struct store_key key = a_key(tenant);
        CHECK(keys_add(store, &key, text, &err) == 0);
        return key;
}

static inline struct store_run a_run(const char *id, const char *tenant)
{
        static char empty[] = "", language[] = "python", boundary[] = "{\"backend\":\"native\"}";
        return (struct store_run){ .id = arena_text(&arena, "%s", id),
                .tenant = arena_text(&arena, "%s", tenant),
                .key = empty,
                .task_id = empty,
                .user = empty,
                .language = language,
                .profile = empty,
                .policy = empty,
                .code_sha256 = "ab",
                .exit_code = 0,
                .status = status_COMPLETED,
                .verdict = empty,
                .boundary = boundary,
                .started_ms = time_now_ms(),
                .finished_ms = time_now_ms(),
                .cpu_ms = 10,
                .wall_ms = 20,
                .memory_peak_bytes = MIB,
                .trace_id = empty };
}

static inline void add_run(struct store *store, const char *id, const char *tenant)
{
        struct csn_error err;
        const struct store_run run = a_run(id, tenant);
        CHECK(runs_add(store, &run, &err) == 0);
}

/* The ids of a list, "c b a". */
static inline const char *ids_of(struct store *store, const struct runs_filter *filter)
{
        struct csn_error err;
        struct store_run *runs;
        size_t n;
        char *ids = arena_text(&arena, "%s", "");
        if (runs_list(store, filter, &arena, &runs, &n, &err) < 0)
                return err.text[0] ? "error" : "";
        for (size_t i = 0; i < n; i++)
                ids = arena_text(&arena, "%s%s%s", ids, i ? " " : "", runs[i].id);
        return ids;
}

static inline struct idempotency a_name(const char *name, char letter)
{
        struct idempotency one = { .tenant = "t", .name = name, .expires_ms = time_now_ms() + DAY_MS };
        memset(one.sha256, letter, 64);
        return one;
}

static inline enum idempotency_found take(struct store *store, const struct idempotency *one, const char *answer)
{
        struct csn_error err;
        enum idempotency_found found = IDEMPOTENCY_OTHER;
        char *got;
        size_t len;
        int http;
        CHECK(idempotency_take(store, one, &arena, &found, &http, &got, &len, &err) == 0);
        CHECK((found == IDEMPOTENCY_DONE) == (got != NULL));
        if (answer)
                CHECK(found == IDEMPOTENCY_DONE && http == 201 && len == strlen(answer) && strcmp(got, answer) == 0);
        return found;
}

#endif
