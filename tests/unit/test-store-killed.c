/* store: several processes at once, killed at any moment, on disks that are full or read-only. */
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>

#include "store-testing.h"

/* ---- others at the same time ---- */

static void several_processes_make_one_store(void)
{
        for (int round = 0; round < 50; round++) {
                const char *path = new_path();
                pid_t pids[4];
                for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
                        pids[i] = fork();
                        if (pids[i] == 0) {
                                struct store *store = open_store(path);
                                add_run(store, arena_text(&arena, "r%zu", i), "t");
                                store_close(store);
                                _exit(0);
                        }
                }
                for (size_t i = 0; i < ARRAY_LEN(pids); i++)
                        waitpid(pids[i], NULL, 0);
                CHECK(strcmp(sql(path, "SELECT count(*) FROM runs"), "4") == 0 &&
                        strcmp(sql(path, "PRAGMA journal_mode"), "wal") == 0);
        }
}

static void a_daemon_writes_while_the_command_line_adds_keys(void)
{
        const char *path = new_path();
        struct csn_error err;
        store_close(open_store(path));
        int numbers[2], end[2], written = -1;
        CHECK(pipe2(numbers, O_CLOEXEC) == 0 && pipe2(end, O_CLOEXEC | O_NONBLOCK) == 0);
        pid_t daemon = fork();
        if (daemon == 0) {
                struct store *store = open_store(path);
                char byte;
                bool more;
                for (written = 0; written == 0 || read(end[0], &byte, 1) < 0; written++) {
                        add_run(store, arena_text(&arena, "r%d", written), "t");
                        if (written == 0)
                                CHECK(write(numbers[1], &written, sizeof written) == (ssize_t)sizeof written);
                        if (written % 100 == 0)
                                CHECK(store_clean(store, DAY_MS, &more, &err) == 0);
                }
                CHECK(write(numbers[1], &written, sizeof written) == (ssize_t)sizeof written);
                _exit(0);
        }
        int made = 0;
        CHECK(read(numbers[0], &written, sizeof written) == (ssize_t)sizeof written);
        for (uint64_t until = clock_ms() + 600; made == 0 || clock_ms() < until; made++) {
                struct store *store = open_store(path);
                struct store_key *keys;
                char text[KEY_TEXT_MAX];
                size_t n;
                add_key(store, "t", text);
                CHECK(keys_list(store, &arena, &keys, &n, &err) == 0 && n == (size_t)made + 1);
                CHECK(ids_of(store, &(struct runs_filter){ .status = -1, .n = 3 })[0]);
                store_close(store);
        }
        CHECK(write(end[1], "x", 1) == 1);
        CHECK(read(numbers[0], &written, sizeof written) == (ssize_t)sizeof written && written > 0 &&
                waitpid(daemon, NULL, 0) == daemon);
        CHECK(atoi(sql(path, "SELECT count(*) FROM runs")) == written &&
                atoi(sql(path, "SELECT count(*) FROM keys")) == made);
        printf("# %d runs and %d keys at the same time\n", written, made);
        close(numbers[0]), close(numbers[1]), close(end[0]), close(end[1]);
}

/* ---- killed ---- */

/* One line for each thing that is there for good: a letter and an id. */
static void tell(int fd, char what, const char *id)
{
        char line[40];
        int len = snprintf(line, sizeof line, "%c%s\n", what, id);
        if (io_write_all(fd, line, (size_t)len) < 0)
                _exit(1);
}

__attribute__((noreturn)) static void add_until_killed(const char *path, int round, int fd)
{
        struct csn_error err;
        struct store *store = open_store(path);
        for (int i = 0;; i++) {
                char text[KEY_TEXT_MAX], id[30];
                snprintf(id, sizeof id, "%d.%d", round, i);
                add_run(store, id, "t");
                tell(fd, 'r', id);
                CHECK(runs_keep(store, id, "t", "{}", 2, 0, &err) == 0);
                tell(fd, 'c', id);
                tell(fd, 'k', add_key(store, "t", text).id);
                const struct idempotency one = a_name(id, 'a');
                CHECK(take(store, &one, NULL) == IDEMPOTENCY_NEW &&
                        idempotency_answer(store, &one, 201, "x", 1, &err) == 0);
                tell(fd, 'i', id);
        }
}

static void kill_it_after(pid_t child, int fd, uint64_t us, struct buf *told)
{
        uint64_t end = clock_us() + us;
        char bytes[4096];
        for (uint64_t now; (now = clock_us()) < end;) {
                struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
                const struct timespec left = { .tv_nsec = (long)(end - now) * 1000 };
                if (ppoll(&poll_fd, 1, &left, NULL) > 0) {
                        ssize_t len = read(fd, bytes, sizeof bytes);
                        CHECK(len > 0 && buf_add(told, bytes, (size_t)len));
                }
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        for (ssize_t len; (len = read(fd, bytes, sizeof bytes)) > 0;)
                CHECK(buf_add(told, bytes, (size_t)len));
}

/* Lines of which there is no row. */
static int missing(const char *path, const struct buf *told)
{
        static const struct { char what; const char *sql;
        } rooms[] = {
                { 'r', "SELECT 1 FROM runs WHERE id = ?1" },
                { 'c', "SELECT 1 FROM records WHERE id = ?1" },
                { 'k', "SELECT 1 FROM keys WHERE id = ?1" },
                { 'i', "SELECT 1 FROM idempotency WHERE name = ?1 AND answer IS NOT NULL" },
        };
        sqlite3 *db;
        int gone = 0;
        CHECK(sqlite3_open(path, &db) == SQLITE_OK);
        for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
                sqlite3_stmt *statement = NULL;
                CHECK(sqlite3_prepare_v2(db, rooms[i].sql, -1, &statement, NULL) == SQLITE_OK);
                for (const char *line = told->bytes, *end; line && (end = strchr(line, '\n')); line = end + 1) {
                        if (line[0] != rooms[i].what)
                                continue;
                        sqlite3_bind_text(statement, 1, line + 1, (int)(end - line - 1), SQLITE_STATIC);
                        gone += sqlite3_step(statement) != SQLITE_ROW;
                        sqlite3_reset(statement);
                }
                sqlite3_finalize(statement);
        }
        sqlite3_close(db);
        return gone;
}

static void kill_9_takes_nothing_that_was_there(void)
{
        char path[100] = "";
        struct buf told = { 0 };
        size_t total = 0;
        srandom((unsigned)clock_us());
        for (int round = 0; round < 200; round++) {
                if (round % 20 == 0) {   /* so that some are killed while they make the file */
                        snprintf(path, sizeof path, "%s", new_path());
                        buf_done(&told);
                        buf_init(&told, 16 * MIB);
                }
                int fds[2];
                CHECK(pipe2(fds, O_CLOEXEC) == 0);
                pid_t child = fork();
                if (child == 0)
                        add_until_killed(path, round, fds[1]);
                close(fds[1]);
                kill_it_after(child, fds[0], (uint64_t)random() % (round % 20 ? 20000 : 4000), &told);
                close(fds[0]);
                store_close(open_store(path));
                CHECK(strcmp(sql(path, "PRAGMA integrity_check"), "ok") == 0 && missing(path, &told) == 0);
                total += round % 20 == 19 ? told.len : 0;
        }
        buf_done(&told);
        printf("# 200 times killed, %zu bytes of lines were true\n", total);
}

/* ---- disks ---- */

/* In a child with a small file system of its own, which goes with it. */
static bool on_disk_of(const char *size, void (*test)(const char *path))
{
        const char *path = new_path();
        char *folder = arena_text(&arena, "%.*s", (int)(strrchr(path, '/') - path), path);
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
                if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
                    mount("tmpfs", folder, "tmpfs", 0, size) < 0)
                        _exit(77);
                test(path);
                _exit(0);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
        return WEXITSTATUS(status) == 0;
}

static bool on_small_disk(void (*test)(const char *path))
{
        return on_disk_of("size=512k", test);
}

static void fill_it(const char *path)
{
        struct store *store = open_store(path);
        struct csn_error err = { 0 };
        struct store_key got;
        char text[KEY_TEXT_MAX], *record = mem_alloc(10000);
        int rc = 0, kept = 0;
        bool more;
        add_key(store, "t", text);
        CHECK(keys_find(store, text, &arena, &got, &err) == 0);
        memset(record, 'x', 10000);
        for (; rc == 0 && kept < 1000; kept += rc == 0)
                rc = runs_keep(store, arena_text(&arena, "%d", kept), "t", record, 10000, 1, &err);
        CHECK(rc == -CSN_E_BUSY && err.sys == ENOSPC && strstr(err.text, "full") && !strchr(err.text, '/') && kept > 0);
        CHECK(keys_find(store, text, &arena, &got, &err) == 0);   /* what is there can be read */
        store_clean(store, 0, &more, &err);                       /* may have no room either */
        store_checkpoint(store_path(store), &err);
        store_close(store);
        free(record);
        CHECK(strcmp(sql(path, "PRAGMA integrity_check"), "ok") == 0);
        CHECK(atoi(sql(path, "SELECT count(*) FROM records")) <= kept);
}

static void open_it_read_only(const char *path)
{
        struct csn_error err;
        store_close(open_store(path));
        char *folder = arena_text(&arena, "%.*s", (int)(strrchr(path, '/') - path), path);
        CHECK(mount(NULL, folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
        CHECK(refusal(path, &err) == -CSN_E_SYSTEM && strstr(err.text, path));
        CHECK(refusal(arena_text(&arena, "%s2", path), &err) == -CSN_E_SYSTEM &&
                strstr(err.text, "Read-only file system"));
}

/* To the last byte. */
static void fill(const char *path)
{
        static const char zeros[4096];
        auto_fd fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        while (write(fd, zeros, sizeof zeros) > 0)
                ;
        CHECK(errno == ENOSPC);
}

static const char *beside(const char *path, const char *name)
{
        return arena_text(&arena, "%.*s/%s", (int)(strrchr(path, '/') - path), path, name);
}

static void full(struct store *store)
{
        struct csn_error err = { 0 };
        struct idempotency name = { .tenant = "t", .name = "n", .expires_ms = INT64_MAX };
        enum idempotency_found found;
        struct incoming *incoming;
        char *answer;
        size_t len;
        int http;
        CHECK(store_has_room(store, &err) == -CSN_E_BUSY && err.sys == ENOSPC);
        CHECK(runs_keep(store, "kept", "t", "x", 1, 1, &err) == -CSN_E_BUSY && err.sys == ENOSPC);
        CHECK(idempotency_take(store, &name, &arena, &found, &http, &answer, &len, &err) == -CSN_E_BUSY &&
                err.sys == ENOSPC);
        CHECK(incoming_open(store, "t", &(struct store_room){ 0 }, &incoming, &err) == -CSN_E_BUSY &&
                err.sys == ENOSPC && !strchr(err.text, '/'));
}

static void remove_and_audit(const char *path)
{
        enum { RUNS = 300, RESERVE = 3 * MIB };
        struct store *store = open_store(path);
        struct csn_error err = { 0 };
        struct store_file file = { .name = arena_text(&arena, "f"),
                .mime = arena_text(&arena, "text/plain"),
                .run = arena_text(&arena, "%s", ""),
                .user = arena_text(&arena, "%s", "") };
        struct incoming *incoming = NULL;
        bool there = false, more;
        CHECK(store_set_reserve(store, RESERVE, &err) == 0);
        CHECK(incoming_open(store, "t", &(struct store_room){ 0 }, &incoming, &err) == 0 &&
                incoming_add(incoming, "x", 1, &err) == 0);
        CHECK(files_add(incoming, &file, &err) == 0 && runs_keep(store, "record", "t", "x", 1, 0, &err) == 0);
        incoming_close(incoming);
        fill(beside(path, "filler"));
        for (int i = 0; i < RUNS; i++) {
                struct store_run run = a_run(arena_text(&arena, "run_%d", i), "t");
                CHECK(runs_begin(store, &run, NULL, true, &err) == 0 && runs_add(store, &run, &err) == 0);
        }
        CHECK(atoi(sql(path, "SELECT count(*) FROM runs")) == RUNS);
        full(store);
        CHECK(files_forget(store, file.id, "t", &there, &err) == 0 && there &&
                runs_forget(store, "record", "t", &there, &err) == 0 && there);
        /* Other programs take all that the reserve gives: the rows wait in the journal. */
        struct store_run last = a_run(arena_text(&arena, "last"), "t");
        CHECK(runs_begin(store, &last, NULL, true, &err) == 0);
        CHECK(truncate(beside(path, "store.reserve"), 0) == 0);
        fill(beside(path, "filler"));
        for (int i = 0; i < RUNS && strcmp(sql(path, "SELECT count(*) FROM runs WHERE id = 'last'"), "0") == 0; i++) {
                struct store_run run = a_run(arena_text(&arena, "more_%d", i), "t");
                if (runs_begin(store, &run, NULL, true, &err) == 0)
                        CHECK(runs_add(store, &run, &err) == 0);
                else
                        CHECK(err.sys == ENOSPC && runs_can_begin(store, &err) == -CSN_E_BUSY);
        }
        CHECK(runs_add(store, &last, &err) == 0);
        CHECK(unlink(beside(path, "filler")) == 0 && store_checkpoint(store_path(store), &err) == 0 &&
                store_clean(store, 0, &more, &err) == 0 &&
                store_has_room(store, &err) == 0);
        CHECK(strcmp(sql(path, "SELECT count(*) FROM runs WHERE id = 'last'"), "1") == 0 &&
                runs_can_begin(store, &err) == 0);
        store_close(store);
        CHECK(strcmp(sql(path, "PRAGMA integrity_check"), "ok") == 0);
}

static void a_full_disk_has_room_to_remove_and_to_audit(void)
{
        if (!on_disk_of("size=8m", remove_and_audit))
                SKIP("needs root: a file system cannot be mounted");
}

static void open_full(const char *path)
{
        struct store *store = open_store(path);
        struct csn_error err = { 0 };
        struct store_run run = a_run(arena_text(&arena, "run"), "t");
        CHECK(store_set_reserve(store, 3 * MIB, &err) == 0);
        store_close(store);
        fill(beside(path, "filler"));
        store = open_store(path);
        CHECK(store_set_reserve(store, 3 * MIB, &err) == -CSN_E_BUSY &&
                runs_begin(store, &run, NULL, true, &err) == 0 && runs_add(store, &run, &err) == 0);
        full(store);
        store_close(store);
}

static void a_store_can_be_opened_on_a_full_disk(void)
{
        if (!on_disk_of("size=8m", open_full))
                SKIP("needs root: a file system cannot be mounted");
}

/* ---- runs that went on when their daemon was killed ---- */

static struct store_run seen[8];
static struct run_left left_of[8];
static size_t seen_n;

static int note_left(void *owner, const struct run_left *one, struct csn_error *err)
{
        (void)owner, (void)err;
        CHECK(seen_n < ARRAY_LEN(seen));
        left_of[seen_n] = *one;
        seen[seen_n] = one->run;
        seen[seen_n].id = arena_text(&arena, "%s", one->run.id);
        seen[seen_n].task_id = arena_text(&arena, "%s", one->run.task_id);
        left_of[seen_n++].name.name = arena_text(&arena, "%s", one->name.name);
        return 0;
}

static void begin_and_wait(const char *path, int ready)
{
        struct store *store = open_store(path);
        struct csn_error err;
        char long_text[1025], task[] = "task \xe2\x82\xac";
        struct store_run runs[] = { a_run("goes_on", "t"), a_run("over", "t"), a_run("named", "t") };
        struct idempotency name = { .tenant = "t", .name = "n", .expires_ms = 99 };
        memset(long_text, 'u', sizeof long_text - 1);
        long_text[sizeof long_text - 1] = 0;
        memset(name.sha256, 'a', 64);
        runs[0].task_id = task, runs[0].user = long_text;
        for (size_t i = 0; i < ARRAY_LEN(runs); i++)
                CHECK(runs_begin(store, &runs[i], i == 2 ? &name : NULL, i == 0, &err) == 0);
        CHECK(runs_add(store, &runs[1], &err) == 0);
        CHECK(write(ready, "", 1) == 1);
        pause();
}

static void what_went_on_when_a_daemon_was_killed_is_known(void)
{
        const char *path = new_path();
        struct csn_error err;
        int fds[2];
        size_t n;
        char byte;
        store_close(open_store(path));
        CHECK(pipe2(fds, O_CLOEXEC) == 0);
        pid_t child = fork();
        if (child == 0)
                begin_and_wait(path, fds[1]);
        CHECK(read(fds[0], &byte, 1) == 1);
        struct store *store = open_store(path);
        CHECK(runs_recover(store, note_left, NULL, &n, &err) == 0 && n == 0);   /* it lives */
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        CHECK(runs_recover(store, note_left, NULL, &n, &err) == 0 && n == 2 && seen_n == 2);
        CHECK(strcmp(seen[0].id, "goes_on") == 0 && left_of[0].kept && !left_of[0].ended && !left_of[0].name.name[0]);
        CHECK(strcmp(seen[0].task_id, "task \xe2\x82\xac") == 0);
        CHECK(strcmp(seen[1].id, "named") == 0 && !left_of[1].kept && strcmp(left_of[1].name.name, "n") == 0 &&
                left_of[1].name.expires_ms == 99);
        CHECK(left_of[1].name.sha256[63] == 'a' && left_of[1].name.owner != 0);
        CHECK(runs_recover(store, note_left, NULL, &n, &err) == 0 && n == 0);   /* once */
        store_close(store);
        close(fds[0]);
        close(fds[1]);
}

static void what_runs_begin_costs(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct store_run run = a_run("run", "t");
        enum { ROUNDS = 5000 };
        uint64_t begun_us = 0;
        for (int i = 0; i < ROUNDS; i++) {
                run.id = arena_text(&arena, "run_%d", i);
                uint64_t start = clock_us();
                CHECK(runs_begin(store, &run, NULL, false, &err) == 0);
                begun_us += clock_us() - start;
                CHECK(runs_add(store, &run, &err) == 0);
        }
        printf("# %.1f us for each runs_begin\n", (double)begun_us / ROUNDS);
        store_close(store);
}

static void a_full_disk_is_an_error(void)
{
        if (!on_small_disk(fill_it))
                SKIP("needs root: a file system cannot be mounted");
}

static void a_folder_that_cannot_be_written_is_an_error(void)
{
        if (!on_small_disk(open_it_read_only))
                SKIP("needs root: a file system cannot be mounted");
}

/* ---- what it costs ---- */

static void it_costs(void)
{
        struct store *store = open_store(new_path());
        struct csn_error err;
        struct store_run run = a_run("", "tenant");
        char id[40], boundary[401] = "", task[] = "task", text[KEY_TEXT_MAX];
        struct store_key got;
        enum { ROUNDS = 5000 };
        memset(boundary, 'x', sizeof boundary - 1);
        run.boundary = boundary, run.id = id, run.task_id = task;
        add_key(store, "tenant", text);
        uint64_t start = clock_us();
        for (int i = 0; i < ROUNDS; i++) {
                snprintf(id, sizeof id, "run_%08x%08x%08x", (unsigned)random(), (unsigned)random(), (unsigned)i);
                CHECK(runs_add(store, &run, &err) == 0);
        }
        uint64_t added = clock_us();
        for (int i = 0; i < ROUNDS; i++)
                CHECK(keys_find(store, text, &arena, &got, &err) == 0);
        uint64_t found = clock_us();
        printf("# %.1f us for each runs_add, %.1f us for each keys_find\n", (double)(added - start) / ROUNDS,
                (double)(found - added) / ROUNDS);
        store_close(store);
}

int main(void)
{
        atexit(remove_top);
        RUN(several_processes_make_one_store);
        RUN(a_daemon_writes_while_the_command_line_adds_keys);
        RUN(a_full_disk_is_an_error);
        RUN(a_full_disk_has_room_to_remove_and_to_audit);
        RUN(a_store_can_be_opened_on_a_full_disk);
        RUN(what_went_on_when_a_daemon_was_killed_is_known);
        RUN(what_runs_begin_costs);
        RUN(a_folder_that_cannot_be_written_is_an_error);
        RUN(kill_9_takes_nothing_that_was_there);
        RUN(it_costs);
        arena_done(&arena);
        return tap_done();
}
