/* store: what goes in comes out, what is no store is refused, and keys that are not valid all look the same. */
#include <signal.h>
#include <sys/wait.h>

#include "store-testing.h"

/* ---- the file ---- */

static const char *secret_of(const char *path)
{
        return arena_text(&arena, "%.*s/store.secret", (int)(strrchr(path, '/') - path), path);
}

static void put(const char *path, const char *bytes, size_t len)
{
        auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && io_write_all(fd, bytes, len) == 0);
}

static bool file_has(const char *path, const char *text)
{
        static char bytes[4 * MIB + 1];
        ssize_t len = io_read_file(AT_FDCWD, path, bytes, sizeof bytes - 1);
        return len > 0 && memmem(bytes, (size_t)len, text, strlen(text));
}

static unsigned mode_of(const char *path)
{
        struct stat st;
        return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static void a_new_store_is_for_its_owner_alone(void)
{
        const char *path = new_path();
        const mode_t mask = umask(0);
        struct store *store = open_store(path);
        struct csn_error err;
        CHECK(mode_of(path) == 0600 && mode_of(secret_of(path)) == 0600);
        add_run(store, "r", "t");
        CHECK(mode_of(arena_text(&arena, "%s-wal", path)) == 0600 &&
                mode_of(arena_text(&arena, "%s-shm", path)) == 0600);
        CHECK(store_sync(store, &err) == 0);
        store_close(store);
        store_close(NULL);
        umask(mask);
        CHECK(strcmp(sql(path, "PRAGMA journal_mode"), "wal") == 0 &&
                strcmp(sql(path, "PRAGMA user_version"), NEWEST) == 0);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%STRICT%'"),
                      "0") == 0);
}

static void the_secret_is_made_once(void)
{
        const char *path = new_path();
        char before[33] = "", after[33] = "";
        store_close(open_store(path));
        CHECK(io_read_file(AT_FDCWD, secret_of(path), before, 32) == 32);
        store_close(open_store(path));
        CHECK(io_read_file(AT_FDCWD, secret_of(path), after, 32) == 32 && memcmp(before, after, 32) == 0);
        const char *other = new_path();
        store_close(open_store(other));
        CHECK(io_read_file(AT_FDCWD, secret_of(other), after, 32) == 32 && memcmp(before, after, 32) != 0);
}

static void a_store_without_its_secret_is_refused(void)
{
        const char *path = new_path();
        struct csn_error err;
        store_close(open_store(path));
        put(secret_of(path), "short", 5);
        CHECK(refusal(path, &err) == -CSN_E_CONFIG && strstr(err.text, "store.secret") && strstr(err.text, path));
        unlink(secret_of(path));
        CHECK(refusal(path, &err) == -CSN_E_CONFIG && strstr(err.text, "store.secret is missing") &&
                strstr(err.text, path));
        CHECK(access(secret_of(path), F_OK) < 0);
        put(secret_of(path), "01234567890123456789012345678901", 32);
        store_close(open_store(path));
}

static void what_is_no_store_is_refused_and_left_alone(void)
{
        const char *path = new_path();
        struct csn_error err;
        char bytes[100];
        put(path, "this is a text, and no database", 31);
        CHECK(refusal(path, &err) == -CSN_E_CONFIG && strstr(err.text, path) && strstr(err.text, "not a database"));
        CHECK(io_read_file(AT_FDCWD, path, bytes, sizeof bytes - 1) == 31);
        unlink(path);
        sql(path, "CREATE TABLE t (a)");
        CHECK(refusal(path, &err) == -CSN_E_CONFIG && strstr(err.text, path) && strstr(err.text, "another program"));
        unlink(path);
        sql(path, "PRAGMA application_id = 7");
        CHECK(refusal(path, &err) == -CSN_E_CONFIG && strstr(err.text, "another program"));
        CHECK(strcmp(sql(path, "SELECT count(*) FROM sqlite_schema"), "0") == 0 &&
                strcmp(sql(path, "PRAGMA journal_mode"), "delete") == 0);
        CHECK(access(secret_of(path), F_OK) < 0);
}

static void a_newer_store_is_refused(void)
{
        const char *path = new_path();
        struct csn_error err;
        store_close(open_store(path));
        sql(path, "PRAGMA user_version = 1000");
        CHECK(refusal(path, &err) == -CSN_E_CONFIG && strstr(err.text, path) &&
                strstr(err.text, "newer Caisson (version 1000"));
        CHECK(strcmp(sql(path, "PRAGMA user_version"), "1000") == 0);
}

static void a_file_of_version_0_is_brought_up(void)
{
        const char *path = new_path();
        put(path, "", 0);
        struct store *store = open_store(path);
        add_run(store, "r", "t");
        store_close(store);
        CHECK(strcmp(sql(path, "PRAGMA user_version"), NEWEST) == 0 &&
                strcmp(sql(path, "PRAGMA application_id"), "1667328371") == 0);
}

static void a_file_of_version_1_is_brought_up_with_its_rows(void)
{
        const char *path = new_path();
        struct csn_error err;
        struct store_run *got;
        size_t n;
        struct store *store = open_store(path);
        add_run(store, "old", "t");
        store_close(store);
        sql(path, "ALTER TABLE runs DROP COLUMN trace_id; DROP TABLE files; DROP TABLE workspaces");
        undo_to_version_3(path);
        sql(path, "PRAGMA user_version = 1");
        store = open_store(path);
        add_run(store, "new", "t");
        CHECK(runs_list(store, &(struct runs_filter){ .status = -1, .n = 5 }, &arena, &got, &n, &err) == 0 && n == 2);
        CHECK(strcmp(got[1].id, "old") == 0 && strcmp(got[1].trace_id, "") == 0 && got[1].memory_peak_bytes == MIB);
        store_close(store);
        CHECK(strcmp(sql(path, "PRAGMA user_version"), NEWEST) == 0);
}

static void a_path_that_cannot_be_is_named(void)
{
        struct csn_error err;
        const char *path = new_path();
        CHECK(refusal("/nonexistent/a/caisson.db", &err) == -CSN_E_SYSTEM &&
                strstr(err.text, "/nonexistent/a/caisson.db") && err.sys == ENOENT);
        CHECK(mkdir(path, 0700) == 0);
        CHECK(refusal(path, &err) == -CSN_E_SYSTEM && strstr(err.text, path));
        CHECK(store_open("/nonexistent/a", &(struct store *){ NULL }, NULL) == -CSN_E_SYSTEM);
}

static void damage_is_an_error(void)
{
        const char *path = new_path();
        struct csn_error err;
        struct arena own = { 0 };
        struct store_key *keys;
        size_t n;
        store_close(open_store(path));
        auto_fd fd = open(path, O_WRONLY | O_CLOEXEC);
        char page[4096];
        memset(page, 0xa5, sizeof page);
        /* Not the first pages: they say what tables there are, and without them it could not be opened. */
        CHECK(pwrite(fd, page, sizeof page,
                      (atoi(sql(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'keys'")) - 1) * 4096L) ==
                (ssize_t)sizeof page);
        struct store *store = open_store(path);
        CHECK(keys_list(store, &own, &keys, &n, &err) == -CSN_E_SYSTEM && strstr(err.text, "list keys"));
        CHECK(!strchr(err.text, '/'));   /* a client may read it */
        store_close(store);
        arena_done(&own);
}

/* ---- keys ---- */

static void a_key_is_found_with_all_that_it_has(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        char text[KEY_TEXT_MAX];
        struct store_key key = a_key("acme"), got, *list;
        size_t n;
        key.expires_ms = time_now_ms() + DAY_MS;
        key.running_max = 4, key.queued_max = 5, key.cpu_ms_per_day = 6, key.stored_bytes = 7;
        CHECK(keys_add(store, &key, text, &err) == 0);
        CHECK(strlen(text) == 64 && strncmp(text, "csn_", 4) == 0 && strncmp(text + 4, key.id, 16) == 0 &&
                text[20] == '_');
        CHECK(strspn(text + 21, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") == 43);
        CHECK(keys_find(store, text, &arena, &got, &err) == 0);
        CHECK(strcmp(got.id, key.id) == 0 && strcmp(got.name, "a key of acme") == 0 && strcmp(got.tenant, "acme") == 0);
        CHECK(got.scopes == (SCOPE_RUN | SCOPE_READ) && got.created_ms == key.created_ms &&
                got.expires_ms == key.expires_ms);
        CHECK(got.running_max == 4 && got.queued_max == 5 && got.cpu_ms_per_day == 6 && got.stored_bytes == 7);
        add_key(store, "other", text);
        CHECK(keys_list(store, &arena, &list, &n, &err) == 0 && n == 2);
        CHECK(strcmp(list[0].tenant, "acme") == 0 && strcmp(list[1].tenant, "other") == 0 && list[1].used_ms == 0);
        store_close(store);
}

static void keys_that_are_not_valid_all_look_the_same(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct store_key got;
        char good[KEY_TEXT_MAX], old[KEY_TEXT_MAX], revoked[KEY_TEXT_MAX], wrong[KEY_TEXT_MAX],
                longer[KEY_TEXT_MAX + 2], much[5000];
        add_key(store, "t", good);
        struct store_key key = a_key("t");
        key.expires_ms = time_now_ms() - 1;
        CHECK(keys_add(store, &key, old, &err) == 0);
        key = add_key(store, "t", revoked);
        CHECK(keys_revoke(store, key.id, &err) == 0 && keys_revoke(store, key.id, &err) == 0);
        memcpy(wrong, good, sizeof wrong);
        wrong[60] = wrong[60] == 'a' ? 'b' : 'a';
        snprintf(longer, sizeof longer, "%sa", good);
        memset(much, 'a', sizeof much - 1);
        much[sizeof much - 1] = 0;
        const char *const texts[] = { wrong, old, revoked, longer, much, "", "csn_", "csn_aaaaaaaaaaaaaaaa_x", "Bearer",
                "csn_' OR 1=1 --", "csn_aaaaaaaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
        char first[sizeof err.text] = "";
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                CHECK(keys_find(store, texts[i], &arena, &got, &err) == -CSN_E_DENIED);
                CHECK(i == 0 || strcmp(first, err.text) == 0);
                memcpy(first, err.text, sizeof first);
        }
        CHECK(keys_find(store, good, &arena, &got, &err) == 0);
        store_close(store);
}

static void a_key_of_one_store_is_nothing_in_another(void)
{
        const char *path = new_path(), *copy = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        struct store_key got;
        char text[KEY_TEXT_MAX];
        add_key(store, "t", text);
        store_close(store);
        /* The very same database, beside another secret. */
        store_close(open_store(copy));
        sql(path, arena_text(&arena, "ATTACH '%s' AS copy; INSERT INTO copy.keys SELECT * FROM main.keys", copy));
        store = open_store(copy);
        CHECK(strcmp(sql(copy, "SELECT count(*) FROM keys"), "1") == 0 &&
                keys_find(store, text, &arena, &got, &err) == -CSN_E_DENIED);
        store_close(store);
}

static void the_file_does_not_have_the_key(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        char text[KEY_TEXT_MAX];
        struct store_key key = add_key(store, "t", text);
        const char *log = arena_text(&arena, "%s-wal", path);
        CHECK(file_has(log, key.id) && !file_has(log, text + 21));
        store_close(store);
        CHECK(file_has(path, key.id) && !file_has(path, text + 21) && !file_has(secret_of(path), text + 21));
}

static void a_use_is_noted_once_a_minute(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        struct store_key got;
        char text[KEY_TEXT_MAX];
        add_key(store, "t", text);
        sql(path,
                "CREATE TABLE uses (a); CREATE TRIGGER u AFTER UPDATE ON keys BEGIN INSERT INTO uses VALUES (1); END");
        for (int i = 0; i < 5; i++)
                CHECK(keys_find(store, text, &arena, &got, &err) == 0 && time_now_ms() - got.used_ms < 10000);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM uses"), "1") == 0);
        sql(path, "UPDATE keys SET used_ms = used_ms - 61000; DELETE FROM uses");
        for (int i = 0; i < 5; i++)
                CHECK(keys_find(store, text, &arena, &got, &err) == 0 && time_now_ms() - got.used_ms < 10000);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM uses"), "1") == 0);
        /* That it cannot be noted refuses nobody. */
        sql(path,
                "UPDATE keys SET used_ms = 0; CREATE TRIGGER w BEFORE UPDATE ON keys BEGIN SELECT raise(FAIL, 'no'); END");
        log_set_level(LOG_ERROR);
        CHECK(keys_find(store, text, &arena, &got, &err) == 0 && got.used_ms == 0);
        log_set_level(LOG_WARN);
        store_close(store);
}

static void scopes_are_read_and_printed(void)
{
        struct csn_error err;
        unsigned scopes = 0;
        char text[KEY_SCOPES_MAX], all[KEY_SCOPES_MAX];
        CHECK(scopes_parse("read,run,run", &scopes, &err) == 0 && scopes == (SCOPE_RUN | SCOPE_READ));
        scopes_print(scopes, text, sizeof text);
        CHECK(strcmp(text, "run,read") == 0);
        scopes_print(~0U, all, sizeof all);
        CHECK(scopes_parse(all, &scopes, &err) == 0 && scopes == SCOPE_TOOLS * 2 - 1 && !scope_name(8));
        CHECK(strcmp(all, "run,check,read,files,sandboxes,metrics,admin,tools") == 0);
        scopes_print(0, text, sizeof text);
        CHECK(text[0] == 0);
        static const char *const wrong[][2] = { { "", "\"\"" }, { "run,", "\"\"" }, { "run,dance", "\"dance\"" },
                { "RUN", "\"RUN\"" }, { "run, read", "\" read\"" } };
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                CHECK(scopes_parse(wrong[i][0], &scopes, &err) == -CSN_E_INPUT && strstr(err.text, wrong[i][1]) &&
                        strstr(err.text, all));
}

static void a_key_that_cannot_be_is_refused(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        char text[KEY_TEXT_MAX], longest[KEY_NAME_MAX + 2];
        memset(longest, 'x', sizeof longest - 1);
        longest[sizeof longest - 1] = 0;
        const struct { char *name; const char *tenant; unsigned scopes; const char *field;
        } wrong[] = {
                { NULL, "t", 1, "name" },
                { "", "t", 1, "name" },
                { longest, "t", 1, "name" },
                { "a\nb", "t", 1, "name" },
                { "\xff", "t", 1, "name" },
                { "n", "", 1, "tenant" },
                { "n", "a b", 1, "tenant" },
                { "n", longest, 1, "tenant" },
                { "n", "\xc3\xa4", 1, "tenant" },
                { "n", "t", 0, "scopes" },
                { "n", "t", 1U << 8, "scopes" },
        };
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
                struct store_key key = { .name = wrong[i].name,
                        .tenant = arena_text(&arena, "%s", wrong[i].tenant),
                        .scopes = wrong[i].scopes };
                CHECK(keys_add(store, &key, text, &err) == -CSN_E_INPUT && strcmp(err.field, wrong[i].field) == 0 &&
                        key.id[0] == 0);
        }
        struct store_key none = { .name = longest + 1, .scopes = 1 };
        CHECK(keys_add(store, &none, text, &err) == -CSN_E_INPUT && strcmp(err.field, "tenant") == 0);
        CHECK(keys_revoke(store, "nosuch", &err) == -CSN_E_INPUT && strstr(err.text, "\"nosuch\""));
        store_close(store);
}

/* ---- runs ---- */

static void a_run_comes_back_as_it_went_in(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct store_run run = a_run("run_1", "acme"), *got;
        size_t n;
        char key[] = "k", task[] = "task \xe2\x82\xac\n", user[] = "u", profile[] = "strict", policy[] = "linx",
             verdict[] = "allow";
        char trace_id[] = "0af7651916cd43dd8448eb211c80319c";
        run.key = key, run.task_id = task, run.user = user, run.profile = profile, run.policy = policy,
        run.verdict = verdict;
        run.trace_id = trace_id;
        run.status = status_TIMEOUT, run.exit_code = -1, run.cpu_ms = UINT64_MAX;
        memset(run.code_sha256, 'f', 64);
        CHECK(runs_add(store, &run, &err) == 0);
        CHECK(runs_list(store, &(struct runs_filter){ .status = -1, .n = 5 }, &arena, &got, &n, &err) == 0 && n == 1);
        CHECK(strcmp(got->id, "run_1") == 0 && strcmp(got->tenant, "acme") == 0 && strcmp(got->key, key) == 0 &&
                strcmp(got->task_id, task) == 0);
        CHECK(strcmp(got->user, user) == 0 && strcmp(got->language, "python") == 0 &&
                strcmp(got->profile, profile) == 0);
        CHECK(strcmp(got->policy, policy) == 0 && strcmp(got->verdict, verdict) == 0 &&
                strcmp(got->boundary, run.boundary) == 0);
        CHECK(strcmp(got->code_sha256, run.code_sha256) == 0 && got->status == status_TIMEOUT && got->exit_code == -1);
        CHECK(got->started_ms == run.started_ms && got->finished_ms == run.finished_ms && got->cpu_ms == INT64_MAX);
        CHECK(got->wall_ms == 20 && got->memory_peak_bytes == MIB && strcmp(got->trace_id, trace_id) == 0);
        CHECK(runs_add(store, &run, &err) == -CSN_E_SYSTEM && strstr(err.text, "run_1"));
        store_close(store);
}

static void runs_are_listed_newest_first_by_what_was_asked(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        static const struct { const char *id, *tenant, *task, *user; int status;
        } rows[] = {
                { "a", "t1", "x", "", status_COMPLETED },
                { "b", "t2", "x", "u", status_FAILED },
                { "c", "t1", "", "u", status_FAILED },
                { "d", "t1", "x", "u", status_COMPLETED },
                { "e", "t2", "", "", status_COMPLETED },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct store_run run = a_run(rows[i].id, rows[i].tenant);
                run.task_id = arena_text(&arena, "%s", rows[i].task);
                run.user = arena_text(&arena, "%s", rows[i].user);
                run.status = rows[i].status;
                CHECK(runs_add(store, &run, &err) == 0);
        }
        static const struct { struct runs_filter filter; const char *ids;
        } lists[] = {
                { { .status = -1, .n = 9 }, "e d c b a" },
                { { .status = -1, .n = 2 }, "e d" },
                { { .status = -1, .n = 0 }, "" },
                { { .status = -1, .n = 2, .before = "d" }, "c b" },
                { { .status = -1, .n = 9, .tenant = "t1" }, "d c a" },
                { { .status = -1, .n = 9, .tenant = "t1", .before = "d" }, "c a" },
                { { .status = -1, .n = 9, .tenant = "t1", .before = "e" }, "error" },
                { { .status = -1, .n = 9, .before = "nosuch" }, "error" },
                { { .status = -1, .n = 9, .task_id = "x" }, "d b a" },
                { { .status = -1, .n = 9, .task_id = "x", .tenant = "t1" }, "d a" },
                { { .status = -1, .n = 9, .task_id = "x", .user = "u" }, "d b" },
                { { .status = -1, .n = 9, .user = "u", .tenant = "t2" }, "b" },
                { { .status = status_FAILED, .n = 9 }, "c b" },
                { { .status = status_COMPLETED, .n = 9, .task_id = "x", .user = "u", .tenant = "t1", .before = "e" },
                        "error" },
                { { .status = status_COMPLETED, .n = 9, .task_id = "x", .user = "u", .tenant = "t1" }, "d" },
                { { .status = -1, .n = 9, .tenant = "t1' OR '1" }, "" },
        };
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
                const char *ids = ids_of(store, &lists[i].filter);
                CHECK(strcmp(ids, lists[i].ids) == 0);
        }
        store_close(store);
}

static void a_list_reads_no_more_than_it_shows(void)
{
        const char *path = new_path();
        static const char *const plans[][2] = {
                { "SELECT * FROM runs WHERE number < 9 AND tenant = 't' ORDER BY number DESC LIMIT 9",
                        "SEARCH runs USING INDEX runs_by_tenant" },
                { "SELECT * FROM runs WHERE number < 9 AND task_id = ?2 AND task_id <> '' AND +tenant = 't' ORDER BY number DESC LIMIT 9",
                        "SEARCH runs USING INDEX runs_by_task" },
                { "SELECT * FROM runs WHERE number < 9 ORDER BY number DESC LIMIT 9",
                        "SEARCH runs USING INTEGER PRIMARY KEY" },
        };
        store_close(open_store(path));
        for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
                /* One row of the plan: a second would be a sort. */
                const char *plan = arena_text(&arena, "EXPLAIN QUERY PLAN %s", plans[i][0]);
                sqlite3 *db;
                sqlite3_stmt *statement = NULL;
                CHECK(sqlite3_open(path, &db) == SQLITE_OK &&
                        sqlite3_prepare_v2(db, plan, -1, &statement, NULL) == SQLITE_OK);
                CHECK(sqlite3_step(statement) == SQLITE_ROW &&
                        strstr((const char *)sqlite3_column_text(statement, 3), plans[i][1]));
                CHECK(sqlite3_step(statement) == SQLITE_DONE);
                sqlite3_finalize(statement);
                sqlite3_close(db);
        }
}

static void records_are_kept_until_they_expire(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        int64_t now = time_now_ms();
        struct store_record record;
        bool there;
        CHECK(runs_keep(store, "a", "t1", "{\"a\":1}", 7, now + DAY_MS, &err) == 0);
        CHECK(runs_keep(store, "b", "t1", "{}", 2, now - 1, &err) == 0);
        CHECK(runs_keep(store, "c", "t2", "[]", 2, 0, &err) == 0);
        CHECK(runs_keep(store, "a", "t1", "{}", 2, 0, &err) == -CSN_E_SYSTEM && strstr(err.text, "run a"));
        CHECK(runs_record(store, "a", "t1", &arena, &record, &err) == 0 && record.len == 7 &&
                strcmp(record.text, "{\"a\":1}") == 0);
        CHECK(runs_record(store, "a", "", &arena, &record, &err) == 0 && record.len == 7);
        CHECK(runs_record(store, "a", "t2", &arena, &record, &err) == 0 && !record.text && record.fd < 0);
        CHECK(runs_record(store, "b", "t1", &arena, &record, &err) == 0 && !record.text);
        CHECK(runs_record(store, "c", "t2", &arena, &record, &err) == 0 && record.len == 2);
        CHECK(runs_forget(store, "a", "t2", &there, &err) == 0 && !there);
        CHECK(runs_forget(store, "a", "t1", &there, &err) == 0 && there);
        CHECK(runs_forget(store, "a", "t1", &there, &err) == 0 && !there);
        CHECK(runs_forget(store, "c", "", &there, &err) == 0 && there);
        CHECK(runs_record(store, "a", "", &arena, &record, &err) == 0 && !record.text);
        store_close(store);
}

static void what_a_tenant_used_is_added_up(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        int64_t now = time_now_ms();
        uint64_t cpu_ms, bytes;
        bool there, more;
        for (int i = 0; i < 20; i++) {
                struct store_run run = a_run(arena_text(&arena, "r%d", i), i % 2 ? "odd" : "even");
                run.finished_ms = now - i * 3600 * 1000LL;
                run.cpu_ms = (uint64_t)i;
                CHECK(runs_add(store, &run, &err) == 0);
                CHECK(runs_keep(store, run.id, run.tenant, "1234567890", (size_t)i % 10, now + DAY_MS, &err) == 0);
        }
        CHECK(runs_used(store, "odd", now - DAY_MS, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 100 && bytes == 50);
        CHECK(runs_used(store, "even", now - DAY_MS, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 90 && bytes == 40);
        CHECK(runs_used(store, "odd", now - 5 * 3600 * 1000LL, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 9);
        CHECK(runs_used(store, "nobody", 0, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 0 && bytes == 0);
        CHECK(runs_forget(store, "r9", "odd", &there, &err) == 0 && there);
        CHECK(runs_used(store, "odd", now - DAY_MS, &cpu_ms, &bytes, &err) == 0 && bytes == 41);
        /* The rows of the audit may go; what was used was used. */
        CHECK(store_clean(store, 1, &more, &err) == 0);
        CHECK(runs_used(store, "odd", now - DAY_MS, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 100);
        store_close(store);
}

static void cpu_time_that_the_database_refuses_counts(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        const int64_t now = time_now_ms();
        uint64_t cpu_ms, bytes;
        sqlite3 *db;
        struct store_run run = a_run("refused", "t"), unknown = a_run("unknown", "t");
        run.finished_ms = unknown.finished_ms = now;
        run.cpu_ms = 100, unknown.cpu_ms = 20;
        CHECK(runs_begin(store, &run, NULL, false, &err) == 0);
        /* Another connection holds the lock, as a full disk would: nothing can be written. */
        CHECK(sqlite3_open(path, &db) == SQLITE_OK);
        CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
        CHECK(runs_add(store, &run, &err) == 0 && runs_add(store, &unknown, &err) < 0);
        CHECK(runs_add_cpu(store, "t", now, 3, &err) < 0);
        CHECK(runs_used(store, "t", now - DAY_MS, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 123);
        CHECK(runs_used(store, "t", now + DAY_MS, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 0);
        CHECK(runs_used(store, "other", now - DAY_MS, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 0);
        CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK && sqlite3_close(db) == SQLITE_OK);
        runs_retry(store);
        CHECK(runs_used(store, "t", now - DAY_MS, &cpu_ms, &bytes, &err) == 0 && cpu_ms == 123);
        store_close(store);
        CHECK(strcmp(sql(path, "SELECT sum(cpu_ms) FROM cpu_used WHERE tenant = 't'"), "123") == 0);
}

/* ---- idempotency ---- */

static void a_name_is_taken_once_and_answered_once(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        const struct idempotency one = a_name("n", 'a'), other = a_name("n", 'b'), empty = a_name("e", 'a');
        struct idempotency elsewhere = a_name("n", 'a');
        elsewhere.tenant = "t2";
        CHECK(take(store, &one, NULL) == IDEMPOTENCY_NEW);
        CHECK(take(store, &one, NULL) == IDEMPOTENCY_BUSY);
        CHECK(take(store, &other, NULL) == IDEMPOTENCY_OTHER);
        CHECK(take(store, &elsewhere, NULL) == IDEMPOTENCY_NEW);
        CHECK(idempotency_answer(store, &other, 201, "x", 1, &err) == -CSN_E_INPUT && strstr(err.text, " n "));
        CHECK(idempotency_answer(store, &one, 201, "{\"a\":1}", 7, &err) == 0);
        CHECK(idempotency_answer(store, &one, 201, "again", 5, &err) == -CSN_E_INPUT);
        CHECK(take(store, &one, "{\"a\":1}") == IDEMPOTENCY_DONE);
        CHECK(take(store, &other, NULL) == IDEMPOTENCY_OTHER);
        CHECK(idempotency_drop(store, &one, &err) == 0 && take(store, &one, "{\"a\":1}") == IDEMPOTENCY_DONE);
        CHECK(idempotency_drop(store, &elsewhere, &err) == 0 && take(store, &elsewhere, NULL) == IDEMPOTENCY_NEW);
        CHECK(take(store, &empty, NULL) == IDEMPOTENCY_NEW && idempotency_answer(store, &empty, 201, "", 0, &err) == 0);
        CHECK(take(store, &empty, "") == IDEMPOTENCY_DONE);
        store_close(store);
}

static bool note(struct store *store, const char *name, const char *attempt, int64_t ms, const char *const *replaces,
        size_t n)
{
        const struct store_note one = { .tenant = "t", .name = name, .hash = "h", .tag = "0badcafe", .attempt = attempt,
                                        .at_ms = time_now_ms(), .expires_ms = time_now_ms() + ms };
        struct csn_error err;
        bool added = false;
        return witnesses_add(store, &one, replaces, n, 3, &added, &err) == 0 && added;
}

static bool is_noted(struct store *store, const char *tenant, const char *name, const char *attempt)
{
        struct csn_error err;
        struct store_note found;
        bool there = false;
        CHECK(witnesses_find(store, tenant, name, &arena, &found, &there, &err) == 0);
        return there && strcmp(found.attempt, attempt) == 0;
}

static void a_note_is_replaced_by_a_gateway_that_knows_of_it(void)
{
        const char *path = new_path(), *const known[] = { "x", "a1" };
        struct store *store = open_store(path);
        struct csn_error err;
        CHECK(note(store, "n", "a1", 60000, NULL, 0) && note(store, "n", "a1", 60000, NULL, 0));
        CHECK(!note(store, "n", "a2", 60000, NULL, 0) && !note(store, "n", "a2", 60000, known, 1));
        CHECK(is_noted(store, "t", "n", "a1") && !is_noted(store, "other", "n", "a1"));
        CHECK(note(store, "n", "a2", 60000, known, 2) && is_noted(store, "t", "n", "a2"));
        store_close(store);
        store = open_store(path);
        CHECK(is_noted(store, "t", "n", "a2"));
        CHECK(witnesses_drop(store, "t", "n", "a1", &err) == 0 && is_noted(store, "t", "n", "a2"));
        CHECK(witnesses_drop(store, "t", "n", "a2", &err) == 0 && !is_noted(store, "t", "n", "a2"));
        store_close(store);
}

static void notes_end_by_age_and_number(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        bool more;
        CHECK(note(store, "old", "a", -1, NULL, 0) && !is_noted(store, "t", "old", "a"));
        CHECK(note(store, "old", "b", -1, NULL, 0) && store_clean(store, 0, &more, &err) == 0);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM witnesses"), "0") == 0);
        for (int i = 0; i < 4; i++)
                CHECK(note(store, arena_text(&arena, "n%d", i), "a", 60000, NULL, 0));
        CHECK(!is_noted(store, "t", "n0", "a") && is_noted(store, "t", "n1", "a") && is_noted(store, "t", "n3", "a"));
        store_close(store);
}

#define PULLED 50

static void rows_of_a_worker_are_added_once_with_the_position(void)
{
        struct store *worker = open_store(new_path()), *gateway = open_store(new_path());
        struct csn_error err;
        struct store_run *rows, read[PULLED];
        size_t n = 0;
        int64_t newest, position;
        bool good = true;
        CHECK(runs_newest(worker, &newest, &err) == 0 && newest == 0);
        for (int i = 0; i < 2 * PULLED; i++) {
                const struct store_run run = a_run(arena_text(&arena, "run_%d", i), "t");
                good = good && runs_add_again(worker, &run, &err) == 0;
        }
        CHECK(good && runs_newest(worker, &newest, &err) == 0 && newest == 2 * PULLED);
        CHECK(runs_after(worker, newest - PULLED, PULLED, &arena, &rows, &n, &err) == 0 && n == PULLED);
        for (size_t i = 0; i < n; i++) {
                json_t *json = runs_write_row(&rows[i]);
                good = good && runs_read_row(json, &arena, &read[i]) && strcmp(read[i].id, rows[i].id) == 0 &&
                        read[i].status == rows[i].status && read[i].exit_code == rows[i].exit_code &&
                        read[i].wall_ms == rows[i].wall_ms && strcmp(read[i].code_sha256, rows[i].code_sha256) == 0;
                json_decref(json);
        }
        CHECK(good && read[PULLED - 1].number == newest);
        CHECK(pulled_position(gateway, "0badcafe", &position, &err) == 0 && position == 0);
        uint64_t began_us = clock_us();
        CHECK(pulled_add(gateway, "0badcafe", read, n, newest, &err) == 0);
        printf("# %llu us for pulled_add() of %d rows\n", (unsigned long long)(clock_us() - began_us), PULLED);
        CHECK(pulled_add(gateway, "0badcafe", read, n, newest, &err) == 0);
        CHECK(pulled_position(gateway, "0badcafe", &position, &err) == 0 && position == newest);
        CHECK(pulled_position(gateway, "other", &position, &err) == 0 && position == 0);
        const struct runs_filter filter = { .status = -1, .n = 1000 };
        CHECK(runs_list(gateway, &filter, &arena, &rows, &n, &err) == 0 && n == PULLED);
        json_t *wrong = json_pack("{s:s}", "id", "run_1");
        CHECK(!runs_read_row(wrong, &arena, &read[0]) && !runs_read_row(NULL, &arena, &read[0]));
        json_decref(wrong);
        store_close(worker);
        store_close(gateway);
}

static void a_name_that_expired_is_new(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct idempotency one = a_name("n", 'a');
        one.expires_ms = time_now_ms() - 1;
        CHECK(take(store, &one, NULL) == IDEMPOTENCY_NEW && idempotency_answer(store, &one, 201, "x", 1, &err) == 0);
        CHECK(take(store, &one, NULL) == IDEMPOTENCY_NEW);
        one.expires_ms = 0;   /* never */
        CHECK(idempotency_answer(store, &one, 201, "x", 1, &err) == 0 && take(store, &one, "x") == IDEMPOTENCY_DONE);
        store_close(store);
}

static void what_a_dead_daemon_had_taken_is_new(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        const struct idempotency one = a_name("n", 'a'), other = a_name("n", 'b'), done = a_name("d", 'a');
        int ready[2];
        CHECK(pipe2(ready, O_CLOEXEC) == 0);
        pid_t daemon = fork();
        if (daemon == 0) {
                struct store *its = open_store(path);
                struct csn_error err;
                CHECK(take(its, &one, NULL) == IDEMPOTENCY_NEW && take(its, &done, NULL) == IDEMPOTENCY_NEW);
                CHECK(idempotency_answer(its, &done, 201, "x", 1, &err) == 0);
                CHECK(write(ready[1], "x", 1) == 1);
                for (;;)
                        pause();
        }
        char byte;
        CHECK(read(ready[0], &byte, 1) == 1);
        CHECK(take(store, &one, NULL) == IDEMPOTENCY_BUSY && take(store, &other, NULL) == IDEMPOTENCY_OTHER);
        kill(daemon, SIGKILL);
        CHECK(waitpid(daemon, NULL, 0) == daemon);
        CHECK(take(store, &other, NULL) == IDEMPOTENCY_NEW && take(store, &one, NULL) == IDEMPOTENCY_OTHER);
        CHECK(take(store, &done, "x") == IDEMPOTENCY_DONE);
        store_close(store);
        /* An end in peace is an end, too. */
        store = open_store(path);
        CHECK(take(store, &one, NULL) == IDEMPOTENCY_NEW);
        store_close(store);
        close(ready[0]);
        close(ready[1]);
}

/* ---- cleaning ---- */

static void what_is_old_goes_and_the_rest_stays(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        int64_t now = time_now_ms();
        bool more = true;
        struct store_run run = a_run("old", "t");
        run.finished_ms = now - 3 * DAY_MS;
        CHECK(runs_add(store, &run, &err) == 0);
        add_run(store, "new", "t");
        CHECK(runs_keep(store, "old", "t", "{}", 2, now - 1, &err) == 0 &&
                runs_keep(store, "new", "t", "{}", 2, now + DAY_MS, &err) == 0 &&
                runs_keep(store, "always", "t", "{}", 2, 0, &err) == 0);
        struct idempotency old = a_name("old", 'a'), new = a_name("new", 'a'), always = a_name("always", 'a');
        old.expires_ms = now - 1, always.expires_ms = 0;
        CHECK(take(store, &old, NULL) == IDEMPOTENCY_NEW && take(store, &new, NULL) == IDEMPOTENCY_NEW &&
                take(store, &always, NULL) == IDEMPOTENCY_NEW);
        CHECK(store_clean(store, 0, &more, &err) == 0 && !more);
        CHECK(strcmp(sql(path, "SELECT group_concat(id) FROM (SELECT id FROM records ORDER BY id)"), "always,new") ==
                0);
        CHECK(strcmp(sql(path, "SELECT group_concat(name) FROM (SELECT name FROM idempotency ORDER BY name)"),
                      "always,new") == 0);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM cpu_used"), "1") == 0);
        CHECK(strcmp(ids_of(store, &(struct runs_filter){ .status = -1, .n = 9 }), "new old") == 0);
        CHECK(store_clean(store, 4 * DAY_MS, &more, &err) == 0 &&
                strcmp(ids_of(store, &(struct runs_filter){ .status = -1, .n = 9 }), "new old") == 0);
        CHECK(store_clean(store, DAY_MS, &more, &err) == 0 &&
                strcmp(ids_of(store, &(struct runs_filter){ .status = -1, .n = 9 }), "new") == 0);
        CHECK(store_clean(store, UINT64_MAX, &more, &err) == 0 &&
                strcmp(ids_of(store, &(struct runs_filter){ .status = -1, .n = 9 }), "new") == 0);
        store_close(store);
}

static void it_is_known_when_a_tenant_may_use_more(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        const int64_t minute = 60000, day = DAY_MS, now = 1000 * day;
        static const struct {
                int minutes_ago;
                uint64_t cpu_ms;
        } rows[] = { { 1500, 1000 }, { 100, 40 }, { 50, 30 }, { 50, 10 }, { 10, 5 } };
        static const struct {
                uint64_t limit;
                int minutes_ago;
        } wanted[] = { { 85, 100 }, { 46, 100 }, { 45, 50 }, { 6, 50 }, { 5, 10 }, { 1, 10 } };
        int64_t until;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct store_run run = a_run(arena_text(&arena, "r%zu", i), "t");
                run.finished_ms = now - rows[i].minutes_ago * minute + 1234, run.cpu_ms = rows[i].cpu_ms;
                CHECK(runs_add(store, &run, &err) == 0);
        }
        for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
                CHECK(runs_used_until(store, "t", now - day, wanted[i].limit, &until, &err) == 0 &&
                        until == now - (wanted[i].minutes_ago - 1) * minute);
        CHECK(runs_used_until(store, "t", now - day, 86, &until, &err) == 0 && until == 0);
        CHECK(runs_used_until(store, "nobody", now - day, 1, &until, &err) == 0 && until == 0);
        /* At that moment it is so, and a minute before it is not. */
        uint64_t used, bytes;
        CHECK(runs_used_until(store, "t", now - day, 46, &until, &err) == 0);
        CHECK(runs_used(store, "t", until, &used, &bytes, &err) == 0 && used == 45);
        CHECK(runs_used(store, "t", until - 1, &used, &bytes, &err) == 0 && used == 85);
        store_close(store);
}

static void much_that_is_old_goes_in_parts(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        bool more = true;
        sql(path,
                "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) INSERT INTO runs SELECT i, 'r' || i, 't', '', '', '', '', '', '', '', "
                "'completed', 0, '', '', 0, 0, 0, 0, 0, '' FROM n");
        for (int i = 0; i < 2; i++)
                CHECK(store_clean(store, DAY_MS, &more, &err) == 0 && more);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM runs"), "500") == 0);
        CHECK(store_clean(store, DAY_MS, &more, &err) == 0 && !more);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM runs"), "0") == 0);
        store_close(store);
}

static void on_log_grew(void *owner)
{
        ++*(int *)owner;
}

/* Rows in the file itself: with immutable=1 SQLite does not look for a log (sqlite.org/uri.html). */
static int rows_without_log(const char *path)
{
        sqlite3 *db;
        sqlite3_stmt *statement = NULL;
        int n = -1;
        CHECK(sqlite3_open_v2(arena_text(&arena, "file:%s?immutable=1", path), &db,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL) == SQLITE_OK);
        if (sqlite3_prepare_v2(db, "SELECT count(*) FROM records", -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW)
                n = sqlite3_column_int(statement, 0);
        sqlite3_finalize(statement);
        sqlite3_close(db);
        return n;
}

static void the_log_is_checkpointed_when_it_has_grown(void)
{
        enum { ROWS = 300, ROW = 50000 };   /* 15 MB */
        struct csn_error err;
        struct stat st;
        int grew = 0, last = 0;
        const char *path = new_path();
        struct store *store = open_store(path);
        char *record = mem_alloc(ROW);
        memset(record, 'x', ROW);
        store_set_log_listener(store, on_log_grew, &grew);
        for (int i = 0; i < ROWS; i++) {
                CHECK(runs_keep(store, arena_text(&arena, "%d", i), "t", record, ROW, 0, &err) == 0);
                if (grew == last)
                        continue;
                last = grew;
                CHECK(rows_without_log(path) <= i);
                CHECK(store_checkpoint(store_path(store), &err) == 0);
                CHECK(rows_without_log(path) == i + 1);
        }
        CHECK(grew >= 2 && grew <= 8);      /* once each 4 MiB, and not after each change */
        CHECK(stat(arena_text(&arena, "%s-wal", path), &st) == 0 && st.st_size < 8000000);
        free(record);
        store_close(store);
}

int main(void)
{
        atexit(remove_top);
        RUN(a_new_store_is_for_its_owner_alone);
        RUN(the_secret_is_made_once);
        RUN(a_store_without_its_secret_is_refused);
        RUN(what_is_no_store_is_refused_and_left_alone);
        RUN(a_newer_store_is_refused);
        RUN(a_file_of_version_0_is_brought_up);
        RUN(a_file_of_version_1_is_brought_up_with_its_rows);
        RUN(a_path_that_cannot_be_is_named);
        RUN(damage_is_an_error);
        RUN(a_key_is_found_with_all_that_it_has);
        RUN(keys_that_are_not_valid_all_look_the_same);
        RUN(a_key_of_one_store_is_nothing_in_another);
        RUN(the_file_does_not_have_the_key);
        RUN(a_use_is_noted_once_a_minute);
        RUN(scopes_are_read_and_printed);
        RUN(a_key_that_cannot_be_is_refused);
        RUN(a_run_comes_back_as_it_went_in);
        RUN(runs_are_listed_newest_first_by_what_was_asked);
        RUN(a_list_reads_no_more_than_it_shows);
        RUN(records_are_kept_until_they_expire);
        RUN(what_a_tenant_used_is_added_up);
        RUN(cpu_time_that_the_database_refuses_counts);
        RUN(a_name_is_taken_once_and_answered_once);
        RUN(a_name_that_expired_is_new);
        RUN(a_note_is_replaced_by_a_gateway_that_knows_of_it);
        RUN(notes_end_by_age_and_number);
        RUN(rows_of_a_worker_are_added_once_with_the_position);
        RUN(what_a_dead_daemon_had_taken_is_new);
        RUN(what_is_old_goes_and_the_rest_stays);
        RUN(it_is_known_when_a_tenant_may_use_more);
        RUN(much_that_is_old_goes_in_parts);
        RUN(the_log_is_checkpointed_when_it_has_grown);
        arena_done(&arena);
        return tap_done();
}
