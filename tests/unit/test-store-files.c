/* store: files and workspaces: whose they are, what they count, what is left of them. */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "store-testing.h"

static const struct store_room no_limit = { 0 };

/* ---- helpers ---- */

static char *folder_of(const char *path)
{
        return arena_text(&arena, "%.*s/files", (int)(strrchr(path, '/') - path), path);
}

static int entries(const char *folder)
{
        DIR *dir = opendir(folder);
        int n = 0;
        for (const struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
                n += entry->d_name[0] != '.';
        if (dir)
                closedir(dir);
        return n;
}

static struct store_file plan(const char *name)
{
        return (struct store_file){ .name = arena_text(&arena, "%s", name),
                .mime = arena_text(&arena, "text/plain"),
                .run = arena_text(&arena, "%s", ""),
                .user = arena_text(&arena, "%s", ""),
                .expires_ms = time_now_ms() + DAY_MS };
}

/* 0, or what adding said. */
static int add(struct store *store, const char *tenant, const struct store_room *room, const char *name, size_t size,
        struct store_file *ret, struct csn_error *err)
{
        static char bytes[100000];
        struct incoming *incoming = NULL;
        *ret = plan(name);
        memset(bytes, 'a', sizeof bytes);
        int rc = incoming_open(store, tenant, room, &incoming, err);
        for (size_t at = 0; rc == 0 && at < size; at += sizeof bytes)
                rc = incoming_add(incoming, bytes, min_u64(size - at, sizeof bytes), err);
        rc = rc < 0 ? rc : files_add(incoming, ret, err);
        incoming_close(incoming);
        return rc;
}

static char *added(struct store *store, const char *tenant, const char *name, size_t size)
{
        struct csn_error err = { 0 };
        struct store_file file;
        CHECK(add(store, tenant, &no_limit, name, size, &file, &err) == 0);
        return arena_text(&arena, "%s", file.id);
}

static bool is_there(struct store *store, const char *id, const char *tenant)
{
        struct csn_error err;
        struct store_file file;
        bool there = false;
        int fd = -1;
        CHECK(files_content(store, id, tenant, &arena, &file, &fd, &there, &err) == 0 && there == (fd >= 0));
        fd_close(&fd);
        return there;
}

static uint64_t kept(struct store *store, const char *tenant)
{
        struct csn_error err;
        uint64_t cpu, bytes = 0;
        CHECK(runs_used(store, tenant, 0, &cpu, &bytes, &err) == 0);
        return bytes;
}

/* ---- files ---- */

static void a_file_is_its_bytes_and_a_row(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        struct store_file file, got;
        struct stat st;
        bool there;
        CHECK(add(store, "t", &no_limit, "a b.txt", 3, &file, &err) == 0);
        CHECK(strncmp(file.id, "file_", 5) == 0 && strlen(file.id) == 37 && file.size == 3);
        CHECK(strcmp(file.sha256, "9834876dcfb05cb167a5c24953eba58c4ac89b1adf57f28f2f9d09af107ee8f0") == 0);
        CHECK(files_find(store, file.id, "t", &arena, &got, &there, &err) == 0 && there &&
                strcmp(got.name, "a b.txt") == 0 && got.size == 3);
        const char *content = arena_text(&arena, "%s/%s", folder_of(path), file.id);
        CHECK(stat(content, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size == 3);
        CHECK(stat(folder_of(path), &st) == 0 && (st.st_mode & 0777) == 0700 && entries(folder_of(path)) == 1);
        CHECK(strcmp(sql(path, "SELECT sum(length(sql)) > 0 FROM sqlite_schema WHERE name = 'files'"), "1") == 0);
        CHECK(files_forget(store, file.id, "t", &there, &err) == 0 && there && access(content, F_OK) < 0 &&
                !is_there(store, file.id, "t"));
        CHECK(files_forget(store, file.id, "t", &there, &err) == 0 && !there);
        store_close(store);
}

static void only_its_tenant_has_it(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct store_file *list;
        size_t n;
        bool there;
        const char *id = added(store, "t", "x", 10);
        CHECK(is_there(store, id, "t") && !is_there(store, id, "u") && !is_there(store, id, "") &&
                !is_there(store, "file_0", "t"));
        CHECK(files_forget(store, id, "u", &there, &err) == 0 && !there && is_there(store, id, "t"));
        CHECK(files_of(store, &(struct files_filter){ .tenant = "u", .n = 10 }, &arena, &list, &n, &err) == 0 &&
                n == 0);
        CHECK(files_of(store, &(struct files_filter){ .tenant = "u", .before = id, .n = 10 }, &arena, &list, &n,
                      &err) == -CSN_E_INPUT);
        store_close(store);
}

static void names_are_bytes(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct store_file file, got;
        char longest[256];
        bool there;
        memset(longest, 'n', 255), longest[255] = 0;
        const char *const good[] = { "[Video] Template (1) \xc3\xa9.pptx", "a\nb", "\"'\\", "\xff\xfe", "-rf", "...",
                " ", longest };
        for (size_t i = 0; i < ARRAY_LEN(good); i++) {
                CHECK(add(store, "t", &no_limit, good[i], 1, &file, &err) == 0);
                CHECK(files_find(store, file.id, "t", &arena, &got, &there, &err) == 0 && there &&
                        strcmp(got.name, good[i]) == 0);
        }
        const char *const bad[] = { "", ".", "..", "a/b", "/", arena_text(&arena, "%sn", longest) };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(add(store, "t", &no_limit, bad[i], 1, &file, &err) == -CSN_E_INPUT &&
                        strcmp(err.field, "name") == 0);
        CHECK(files_check_name("a\0b", 3, &err) == -CSN_E_INPUT);
        store_close(store);
}

static void lists_are_newest_first_and_go_on(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct store_file *list;
        size_t n;
        char *ids[5];
        for (size_t i = 0; i < 5; i++)
                ids[i] = added(store, i == 2 ? "u" : "t", "x", 1);
        CHECK(files_of(store, &(struct files_filter){ .tenant = "t", .n = 2 }, &arena, &list, &n, &err) == 0 && n == 2);
        CHECK(strcmp(list[0].id, ids[4]) == 0 && strcmp(list[1].id, ids[3]) == 0);
        CHECK(files_of(store, &(struct files_filter){ .tenant = "t", .before = ids[3], .n = 9 }, &arena, &list, &n,
                      &err) == 0 &&
                n == 2);
        CHECK(strcmp(list[0].id, ids[1]) == 0 && strcmp(list[1].id, ids[0]) == 0);
        store_close(store);
}

static void what_expired_is_not_there_and_goes(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        bool more;
        const char *old = added(store, "t", "old", 100), *new = added(store, "t", "new", 100);
        sql(path, arena_text(&arena, "UPDATE files SET expires_ms = 1 WHERE id = '%s'", old));
        CHECK(!is_there(store, old, "t") && is_there(store, new, "t") && entries(folder_of(path)) == 2);
        CHECK(files_clean(store, &more, &err) == 0 && !more && entries(folder_of(path)) == 1 &&
                is_there(store, new, "t"));
        CHECK(kept(store, "t") == 100 + STORE_ENTRY_BYTES);
        store_close(store);
}

static void content_that_is_gone_takes_its_row_along(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        const char *id = added(store, "t", "x", 100);
        CHECK(unlink(arena_text(&arena, "%s/%s", folder_of(path), id)) == 0);
        CHECK(!is_there(store, id, "t") && strcmp(sql(path, "SELECT count(*) FROM files"), "0") == 0 &&
                kept(store, "t") == 0);
        id = added(store, "t", "x", 100);
        CHECK(truncate(arena_text(&arena, "%s/%s", folder_of(path), id), 50) == 0);
        CHECK(!is_there(store, id, "t") && entries(folder_of(path)) == 0 && kept(store, "t") == 0);
        store_close(store);
}

/* ---- long records ---- */

/* Write the record of a run as a helper thread does, and make it known.  0, or the error. */
static int keep_long(struct store *store, const char *id, const struct store_room *room, size_t size,
        int64_t expires_ms, struct csn_error *err)
{
        struct store_use use;
        struct incoming *incoming = NULL;
        char *text = arena_alloc(&arena, size);
        memset(text, 'r', size);
        int rc = store_use_open(store, "t", room, &use, err);
        rc = rc < 0 ? rc : incoming_open_apart(store, "t", &use, &incoming, err);
        rc = rc < 0 ? rc : incoming_add(incoming, text, size, err);
        rc = rc < 0 ? rc : incoming_seal(incoming, err);
        rc = rc < 0 ? rc : runs_keep_content(incoming, id, expires_ms, err);
        incoming_close(incoming);
        return rc;
}

/* Bytes of the stored record; 0: there is none. */
static size_t long_record(struct store *store, const char *id, const char *tenant)
{
        struct csn_error err;
        struct store_record record;
        struct stat st = { 0 };
        CHECK(runs_record(store, id, tenant, &arena, &record, &err) == 0 && !record.text);
        CHECK(record.fd < 0 || (fstat(record.fd, &st) == 0 && (size_t)st.st_size == record.len));
        fd_close(&record.fd);
        return record.len;
}

static void a_long_record_is_a_file(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        bool there;
        CHECK(keep_long(store, "run_1", &no_limit, 3000, 0, &err) == 0 && entries(folder_of(path)) == 1);
        CHECK(long_record(store, "run_1", "t") == 3000 && long_record(store, "run_1", "") == 3000 &&
                long_record(store, "run_1", "u") == 0 && kept(store, "t") == 3000 + STORE_ENTRY_BYTES);
        CHECK(keep_long(store, "run_1", &no_limit, 10, 0, &err) < 0 && long_record(store, "run_1", "t") == 3000);
        store_close(store);
        store = open_store(path);
        CHECK(long_record(store, "run_1", "t") == 3000);
        CHECK(runs_forget(store, "run_1", "u", &there, &err) == 0 && !there && entries(folder_of(path)) == 1);
        CHECK(runs_forget(store, "run_1", "t", &there, &err) == 0 && there && entries(folder_of(path)) == 0 &&
                kept(store, "t") == 0 && long_record(store, "run_1", "t") == 0);
        store_close(store);
}

static void a_long_record_expires_with_its_file(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        bool more;
        CHECK(keep_long(store, "old", &no_limit, 3000, time_now_ms() - 1, &err) == 0 &&
                keep_long(store, "new", &no_limit, 3000, time_now_ms() + DAY_MS, &err) == 0);
        CHECK(long_record(store, "old", "t") == 0 && entries(folder_of(path)) == 2);
        CHECK(store_clean(store, 0, &more, &err) == 0 && !more && entries(folder_of(path)) == 1);
        CHECK(long_record(store, "new", "t") == 3000 && kept(store, "t") == 3000 + STORE_ENTRY_BYTES);
        store_close(store);
}

static void a_long_record_with_a_damaged_file_is_gone(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        const char *file = arena_text(&arena, "%s/record_run", folder_of(path));
        CHECK(keep_long(store, "run", &no_limit, 3000, 0, &err) == 0 && truncate(file, 2999) == 0);
        CHECK(long_record(store, "run", "t") == 0 && kept(store, "t") == 0 && access(file, F_OK) < 0);
        CHECK(keep_long(store, "run", &no_limit, 3000, 0, &err) == 0 && unlink(file) == 0);
        CHECK(long_record(store, "run", "t") == 0 && kept(store, "t") == 0);
        store_close(store);
}

static void a_long_record_needs_room(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        const struct store_room room = { .tenant_max = 5000 };
        CHECK(keep_long(store, "a", &room, 3000, 0, &err) == 0);
        CHECK(keep_long(store, "b", &room, 3000, 0, &err) == -CSN_E_BUSY && err.sys == EDQUOT);
        CHECK(long_record(store, "b", "t") == 0 && entries(folder_of(path)) == 1);
        char id[100];
        memset(id, 'x', sizeof id);
        id[sizeof id - 1] = 0;
        CHECK(keep_long(store, id, &no_limit, 10, 0, &err) == -CSN_E_INPUT && strstr(err.text, "64"));
        store_close(store);
}

static void files_of_records_without_a_row_are_swept(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        size_t gone = 0;
        CHECK(keep_long(store, "run", &no_limit, 3000, 0, &err) == 0);
        auto_fd fd = open(arena_text(&arena, "%s/record_dead", folder_of(path)), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && files_sweep(store, &gone, &err) == 0 && gone == 1);
        CHECK(entries(folder_of(path)) == 1 && long_record(store, "run", "t") == 3000);
        store_close(store);
}

/* ---- how much ---- */

static void files_count_with_records(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        const struct store_room room = { .tenant_max = 2000 };
        struct store_file file;
        uint64_t left;
        bool there;
        CHECK(runs_keep(store, "r", "t", "{\"a\":1}", 7, 0, &err) == 0);
        CHECK(add(store, "t", &room, "x", 1000, &file, &err) == 0 && kept(store, "t") == 7 + 1000 + STORE_ENTRY_BYTES);
        CHECK(store_room_left(store, "t", &room, &left, &err) == 0 && left == 2000 - 7 - 1000 - STORE_ENTRY_BYTES);
        struct store_file second;
        CHECK(add(store, "t", &room, "y", 0, &second, &err) == -CSN_E_BUSY && err.sys == EDQUOT &&
                strstr(err.text, "2000") && strstr(err.text, "1519") && strstr(err.text, "512"));
        CHECK(add(store, "u", &room, "y", 0, &second, &err) == 0);   /* another has room */
        CHECK(files_forget(store, file.id, "t", &there, &err) == 0 && kept(store, "t") == 7);
        CHECK(add(store, "t", &room, "x", 1000, &file, &err) == 0);
        store_close(store);
}

static void one_file_and_all_tenants_have_limits_too(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        struct store_file file;
        CHECK(add(store, "t", &(struct store_room){ .file_max = 1000 }, "x", 1001, &file, &err) == -CSN_E_INPUT &&
                err.sys == EFBIG && strstr(err.text, "1000"));
        CHECK(add(store, "t", &(struct store_room){ .file_max = 1000 }, "x", 1000, &file, &err) == 0);
        CHECK(add(store, "u", &(struct store_room){ .all_max = 3000 }, "x", 1000, &file, &err) == -CSN_E_BUSY &&
                err.sys == ENOSPC && strstr(err.text, "3000"));
        CHECK(entries(folder_of(path)) == 1);
        store_close(store);
}

static void what_comes_in_at_the_same_time_counts(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        const struct store_room room = { .tenant_max = 3 * MIB };
        struct incoming *first = NULL, *second = NULL;
        char *bytes = mem_alloc(2 * MIB);
        struct store_file file = plan("x");
        CHECK(incoming_open(store, "t", &room, &first, &err) == 0 &&
                incoming_open(store, "t", &room, &second, &err) == 0);
        CHECK(incoming_add(first, bytes, 2 * MIB, &err) == 0 &&
                incoming_add(second, bytes, 2 * MIB, &err) == -CSN_E_BUSY && err.sys == EDQUOT);
        incoming_close(second);
        CHECK(files_add(first, &file, &err) == 0 && file.size == 2 * MIB);
        incoming_close(first);
        CHECK(entries(folder_of(path)) == 1);
        free(bytes);
        store_close(store);
}

/* ---- crashes ---- */

static void an_upload_that_did_not_end_leaves_nothing(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        struct incoming *incoming = NULL;
        size_t gone = 0;
        CHECK(incoming_open(store, "t", &no_limit, &incoming, &err) == 0 &&
                incoming_add(incoming, "abc", 3, &err) == 0);
        CHECK(entries(folder_of(path)) == 1 && files_sweep(store, &gone, &err) == 0 && gone == 0 &&
                entries(folder_of(path)) == 1);
        struct store *other = open_store(path);
        CHECK(files_sweep(other, &gone, &err) == 0 && gone == 0);   /* whose it is lives */
        store_close(other);
        incoming_close(incoming);
        CHECK(entries(folder_of(path)) == 0 && kept(store, "t") == 0);
        store_close(store);
}

static void sweeping_takes_what_nobody_knows_and_nothing_else(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        size_t gone = 0;
        const char *id = added(store, "t", "x", 10), *folder = folder_of(path);
        auto_fd dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const char *const left[] = { "file_0123456789abcdef0123456789abcdef", "new.1234.5678" },
                          *const stays[] = { "notes.txt", "file_short" };
        for (size_t i = 0; i < 2; i++) {
                close(openat(dir, left[i], O_CREAT | O_WRONLY, 0600));
                close(openat(dir, stays[i], O_CREAT | O_WRONLY, 0600));
        }
        CHECK(files_sweep(store, &gone, &err) == 0 && gone == 2 && entries(folder) == 3 && is_there(store, id, "t"));
        store_close(store);
}

__attribute__((noreturn)) static void upload_until_killed(const char *path, int fd)
{
        struct csn_error err;
        struct store *store = open_store(path);
        for (int i = 0;; i++) {
                struct store_file file;
                char line[64];
                if (add(store, "t", &no_limit, "x", 300000, &file, &err) < 0)
                        _exit(1);
                int len = snprintf(line, sizeof line, "%s\n", file.id);
                if (io_write_all(fd, line, (size_t)len) < 0)
                        _exit(1);
        }
}

static void kill_9_leaves_whole_files_and_nothing_else(void)
{
        const char *path = new_path();
        struct csn_error err;
        size_t swept = 0;
        int told = 0, missing = 0;
        store_close(open_store(path));
        srandom((unsigned)clock_us());
        for (int round = 0; round < 60; round++) {
                int fds[2];
                char line[64];
                CHECK(pipe2(fds, O_CLOEXEC) == 0);
                pid_t child = fork();
                if (child == 0)
                        upload_until_killed(path, fds[1]);
                close(fds[1]);
                if (round % 2)   /* so that something is there, however slow this machine may be */
                        CHECK(poll(&(struct pollfd){ .fd = fds[0], .events = POLLIN }, 1, 20000) == 1);
                usleep(3000 + (useconds_t)random() % 20000);
                kill(child, SIGKILL);
                waitpid(child, NULL, 0);
                struct store *store = open_store(path);
                size_t gone = 0;
                CHECK(files_sweep(store, &gone, &err) == 0);
                swept += gone;
                FILE *lines = fdopen(fds[0], "r");
                while (lines && fgets(line, sizeof line, lines)) {
                        line[strcspn(line, "\n")] = 0;
                        told++;
                        missing += !is_there(store, line, "t");
                }
                if (lines)
                        fclose(lines);
                CHECK(entries(folder_of(path)) == atoi(sql(path, "SELECT count(*) FROM files")));
                CHECK(kept(store, "t") == (uint64_t)atoll(sql(path, "SELECT count(*) * (300000 + 512) FROM files")));
                store_close(store);
        }
        CHECK(missing == 0 && told > 0 && strcmp(sql(path, "PRAGMA integrity_check"), "ok") == 0);
        printf("# 60 times killed: %d files are there, %zu that were not whole went\n", told, swept);
}

/* ---- versions ---- */

/* As a program before this one left it. */
static void a_file_of_version_2_keeps_what_it_has(void)
{
        const char *path = new_path();
        struct csn_error err;
        char text[KEY_TEXT_MAX];
        struct store_key got;
        struct store *store = open_store(path);
        add_key(store, "t", text);
        add_run(store, "r", "t");
        CHECK(runs_keep(store, "r", "t", "{}", 2, 0, &err) == 0);
        store_close(store);
        undo_to_version_3(path);
        sql(path, "DROP TABLE files; DROP TABLE workspaces; PRAGMA user_version = 2");
        store = open_store(path);
        CHECK(strcmp(sql(path, "PRAGMA user_version"), NEWEST) == 0 &&
                keys_find(store, text, &arena, &got, &err) == 0 && kept(store, "t") == 2);
        CHECK(strcmp(ids_of(store, &(struct runs_filter){ .status = -1, .n = 9 }), "r") == 0);
        added(store, "t", "x", 10);
        CHECK(kept(store, "t") == 2 + 10 + STORE_ENTRY_BYTES);
        store_close(store);
}

/* ---- workspaces ---- */

static void no_two_workspaces_have_one_id(void)
{
        static const char *const parts[] = { "", ".", "..", "a", "b", "ab", "a/b", "a_b", "/", "a/", "/b", "\x01", "A",
                " " };
        enum { N = ARRAY_LEN(parts) };
        char (*ids)[WORKSPACE_ID_MAX] = mem_alloc((size_t)N * N * N * WORKSPACE_ID_MAX);
        size_t n = 0, same = 0;
        for (size_t t = 0; t < N; t++)
                for (size_t u = 0; u < N; u++)
                        for (size_t w = 0; w < N; w++)
                                workspaces_id(parts[t], parts[u], parts[w], ids[n++]);
        for (size_t i = 0; i < n; i++) {
                CHECK(strlen(ids[i]) == 67 && strspn(ids[i] + 3, "0123456789abcdef") == 64);
                for (size_t k = 0; k < i; k++)
                        same += strcmp(ids[i], ids[k]) == 0;
        }
        CHECK(same == 0);
        workspaces_id("a", "b", "ab", ids[0]);
        workspaces_id("a", "b", "ab", ids[1]);
        CHECK(strcmp(ids[0], ids[1]) == 0);
        free(ids);
}

static void workspaces_count_and_are_their_tenants(void)
{
        const char *path = new_path();
        struct store *store = open_store(path);
        struct csn_error err;
        struct store_workspace *list, one;
        char id[WORKSPACE_ID_MAX];
        size_t n;
        bool there;
        workspaces_id("t", "u", "w", id);
        CHECK(workspaces_use(store, "t", "u", "w", &err) == 0 && workspaces_use(store, "t", "u", "w", &err) == 0 &&
                kept(store, "t") == STORE_ENTRY_BYTES);
        CHECK(workspaces_old(store, INT64_MIN, &arena, &list, &n, &err) == 0 && n == 1 && strcmp(list[0].id, id) == 0);
        CHECK(workspaces_note(store, id, 5000, &err) == 0 && kept(store, "t") == 5000);
        CHECK(workspaces_old(store, INT64_MIN, &arena, &list, &n, &err) == 0 && n == 0);
        CHECK(workspaces_use(store, "t", "", "w", &err) == 0 && workspaces_use(store, "v", "u", "w", &err) == 0);
        CHECK(workspaces_of(store, &(struct workspaces_filter){ .tenant = "t", .below_ms = INT64_MAX, .n = 9 }, &arena,
                      &list, &n, &err) == 0 &&
                n == 2);
        CHECK(workspaces_of(store,
                      &(struct workspaces_filter){ .tenant = "t", .user = "", .below_ms = INT64_MAX, .n = 9 }, &arena,
                      &list, &n, &err) == 0 &&
                n == 1 && list[0].user[0] == 0);
        CHECK(workspaces_find(store, id, "v", &arena, &one, &there, &err) == 0 && !there);
        CHECK(workspaces_find(store, id, "t", &arena, &one, &there, &err) == 0 && there && one.bytes == 5000 &&
                strcmp(one.user, "u") == 0);
        sql(path, arena_text(&arena, "UPDATE workspaces SET used_ms = 5 WHERE id = '%s'", id));
        CHECK(workspaces_old(store, 6, &arena, &list, &n, &err) == 0 && n == 1 && strcmp(list[0].id, id) == 0);
        CHECK(workspaces_forget(store, id, &err) == 0 && kept(store, "t") == STORE_ENTRY_BYTES);
        store_close(store);
}

/* ---- volumes ---- */

static bool has_volume(struct store *store, const char *tenant, const char *name)
{
        struct store_volume found;
        struct csn_error err;
        bool there = false;
        CHECK(volumes_find(store, tenant, name, &arena, &found, &there, &err) == 0);
        return there;
}

static void volumes_count_and_are_their_tenants(void)
{
        char t[] = "t", v[] = "v", data[] = "data", more[] = "more";
        const struct volumes_room room = { .tenant_max = 100, .all_max = 150 };
        struct store_volume one = { .tenant = t, .name = data, .bytes = 60 },
                            two = { .tenant = t, .name = more, .bytes = 41 },
                            other = { .tenant = v, .name = data, .bytes = 91 };
        struct store_volume *list;
        struct store *store = open_store(new_path());
        struct csn_error err;
        bool known;
        size_t n;
        CHECK(volumes_add(store, &one, &room, &known, &err) == 0 && !known && strlen(one.id) == 32);
        /* What is being made does not exist yet, and counts. */
        CHECK(!has_volume(store, "t", "data") && volumes_add(store, &one, &room, &known, &err) == 0 && known);
        CHECK(volumes_unsettled(store, &arena, &list, &n, &err) == 0 && n == 1 && strcmp(list[0].id, one.id) == 0);
        CHECK(volumes_set_state(store, one.id, VOLUME_READY, &err) == 0 && has_volume(store, "t", "data"));
        CHECK(!has_volume(store, "v", "data") && !has_volume(store, "t", "more"));
        CHECK(volumes_add(store, &two, &room, &known, &err) == -CSN_E_BUSY && err.sys == EDQUOT &&
                strstr(err.text, "volumes.tenant_bytes") && strstr(err.text, "60"));
        CHECK(volumes_add(store, &other, &room, &known, &err) == -CSN_E_BUSY &&
                strstr(err.text, "volumes.total_bytes"));
        two.bytes = 40;
        CHECK(volumes_add(store, &two, &room, &known, &err) == 0 && !known);
        CHECK(volumes_of(store, "t", &arena, &list, &n, &err) == 0 && n == 1 && list[0].bytes == 60);
        CHECK(volumes_set_state(store, one.id, VOLUME_REMOVING, &err) == 0 && !has_volume(store, "t", "data"));
        CHECK(volumes_forget(store, one.id, &err) == 0);
        CHECK(volumes_add(store, &other, &room, &known, &err) == 0 && !known);
        store_close(store);
}

int main(void)
{
        RUN(a_file_is_its_bytes_and_a_row);
        RUN(only_its_tenant_has_it);
        RUN(names_are_bytes);
        RUN(lists_are_newest_first_and_go_on);
        RUN(what_expired_is_not_there_and_goes);
        RUN(content_that_is_gone_takes_its_row_along);
        RUN(a_long_record_is_a_file);
        RUN(a_long_record_expires_with_its_file);
        RUN(a_long_record_with_a_damaged_file_is_gone);
        RUN(a_long_record_needs_room);
        RUN(files_of_records_without_a_row_are_swept);
        RUN(files_count_with_records);
        RUN(one_file_and_all_tenants_have_limits_too);
        RUN(what_comes_in_at_the_same_time_counts);
        RUN(an_upload_that_did_not_end_leaves_nothing);
        RUN(sweeping_takes_what_nobody_knows_and_nothing_else);
        RUN(kill_9_leaves_whole_files_and_nothing_else);
        RUN(a_file_of_version_2_keeps_what_it_has);
        RUN(no_two_workspaces_have_one_id);
        RUN(workspaces_count_and_are_their_tenants);
        RUN(volumes_count_and_are_their_tenants);
        remove_top();
        return tap_done();
}
