/*
 * The file: opening, tables by version, and deletion of expired rows.
 *
 * SQLite with a write-ahead log, synchronous=NORMAL: when a function returns, its change is in the log, in the
 * kernel's hands, and survives any death of this process.  A power failure may lose the newest changes, but the
 * file stays consistent (https://www.sqlite.org/wal.html).  Only a checkpoint waits for the disk.  SQLite's own
 * checkpoint would run every 1000 pages, in the middle of a request; here store_checkpoint() runs checkpoints, and
 * SQLite only without calls of store_checkpoint().
 */
#include "store/sql.h"

#include "model/settings.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define APPLICATION "0x63616973"           /* "cais" */
#define APPLICATION_NUMBER 0x63616973
/* The command line's transactions last less than a millisecond; the time-out is for a process stopped in the middle. */
#define BUSY_MS 2000
/* the process making the tables holds the lock during several fsync(2) */
#define OPEN_BUSY_MS 30000

#define ROWS_AT_ONCE 1000
#define PULLED_MS (365LL * 86400000)       /* how long the audit position of a deleted worker stays */
#define USED_DAYS 2                        /* how long the CPU time of tenants is kept */

/*
 * Migrations of a file from version N (the index here) to N + 1.  A released row does not change any more.
 *
 * cpu_used, bytes_kept and usage_costs are sums: of the CPU time of runs and sandboxes, of records, files, workspaces
 * and problem sets, and of the cost of models.  So a quota costs the same for any number of runs, and holds when the
 * rows of the audit are gone.  Triggers update the sums at every insertion and removal.
 */
static const char *const migrations[] = {
        "CREATE TABLE keys ("
        " id TEXT PRIMARY KEY, hash BLOB NOT NULL, name TEXT NOT NULL, tenant TEXT NOT NULL, scopes INTEGER NOT NULL,"
        " created_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL, revoked_ms INTEGER NOT NULL DEFAULT 0,"
        " used_ms INTEGER NOT NULL DEFAULT 0, running_max INTEGER NOT NULL, queued_max INTEGER NOT NULL,"
        " cpu_ms_per_day INTEGER NOT NULL, stored_bytes INTEGER NOT NULL"
        ") STRICT;"

        "CREATE TABLE runs ("
        " number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, key TEXT NOT NULL, task_id TEXT NOT NULL,"
        " user TEXT NOT NULL, language TEXT NOT NULL, profile TEXT NOT NULL, policy TEXT NOT NULL, code_sha256 TEXT NOT NULL,"
        " status TEXT NOT NULL, exit_code INTEGER NOT NULL, verdict TEXT NOT NULL, boundary TEXT NOT NULL,"
        " started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, cpu_ms INTEGER NOT NULL, wall_ms INTEGER NOT NULL,"
        " memory_peak_bytes INTEGER NOT NULL"
        ") STRICT;"
        "CREATE INDEX runs_by_tenant ON runs (tenant);"
        "CREATE INDEX runs_by_task ON runs (task_id) WHERE task_id <> '';"
        "CREATE INDEX runs_by_user ON runs (user) WHERE user <> '';"
        "CREATE INDEX runs_by_end ON runs (finished_ms);"

        "CREATE TABLE cpu_used ("
        " tenant TEXT NOT NULL, minute INTEGER NOT NULL, cpu_ms INTEGER NOT NULL, PRIMARY KEY (tenant, minute)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE INDEX cpu_used_by_minute ON cpu_used (minute);"
        "CREATE TRIGGER run_used_cpu AFTER INSERT ON runs WHEN new.cpu_ms > 0 BEGIN"
        " INSERT INTO cpu_used VALUES (new.tenant, new.finished_ms / 60000, new.cpu_ms)"
        " ON CONFLICT (tenant, minute) DO UPDATE SET cpu_ms = cpu_ms + excluded.cpu_ms;"
        "END;"

        "CREATE TABLE records ("
        " id TEXT PRIMARY KEY, tenant TEXT NOT NULL, expires_ms INTEGER NOT NULL, bytes INTEGER NOT NULL, record TEXT NOT NULL"
        ") STRICT;"
        "CREATE INDEX records_by_end ON records (expires_ms) WHERE expires_ms > 0;"
        "CREATE TABLE bytes_kept (tenant TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "CREATE TRIGGER record_is_kept AFTER INSERT ON records BEGIN"
        " INSERT INTO bytes_kept VALUES (new.tenant, new.bytes) ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;"
        "END;"
        "CREATE TRIGGER record_is_gone AFTER DELETE ON records BEGIN"
        " UPDATE bytes_kept SET bytes = bytes - old.bytes WHERE tenant = old.tenant;"
        "END;"

        "CREATE TABLE idempotency ("
        " tenant TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL, owner INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
        " http INTEGER NOT NULL DEFAULT 0, answer BLOB, PRIMARY KEY (tenant, name)"
        ") STRICT;"
        "CREATE INDEX idempotency_by_end ON idempotency (expires_ms);"

        "PRAGMA application_id = " APPLICATION "; PRAGMA user_version = 1;",

        "ALTER TABLE runs ADD COLUMN trace_id TEXT NOT NULL DEFAULT '';"
        "PRAGMA user_version = 2;",

        "CREATE TABLE files ("
        " number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, name BLOB NOT NULL, size INTEGER NOT NULL,"
        " sha256 TEXT NOT NULL, mime TEXT NOT NULL, run TEXT NOT NULL, user TEXT NOT NULL, created_ms INTEGER NOT NULL,"
        " expires_ms INTEGER NOT NULL, bytes INTEGER NOT NULL"
        ") STRICT;"
        "CREATE INDEX files_by_tenant ON files (tenant);"
        "CREATE INDEX files_by_end ON files (expires_ms) WHERE expires_ms > 0;"
        "CREATE TRIGGER file_is_kept AFTER INSERT ON files BEGIN"
        " INSERT INTO bytes_kept VALUES (new.tenant, new.bytes) ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;"
        "END;"
        "CREATE TRIGGER file_is_gone AFTER DELETE ON files BEGIN"
        " UPDATE bytes_kept SET bytes = bytes - old.bytes WHERE tenant = old.tenant;"
        "END;"

        "CREATE TABLE workspaces ("
        " id TEXT PRIMARY KEY, tenant TEXT NOT NULL, user TEXT NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL,"
        " created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL, in_use INTEGER NOT NULL, UNIQUE (tenant, user, name)"
        ") STRICT;"
        "CREATE INDEX workspaces_by_use ON workspaces (used_ms);"
        "CREATE INDEX workspaces_in_use ON workspaces (in_use) WHERE in_use > 0;"
        "CREATE TRIGGER workspace_is_kept AFTER INSERT ON workspaces BEGIN"
        " INSERT INTO bytes_kept VALUES (new.tenant, new.bytes) ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;"
        "END;"
        "CREATE TRIGGER workspace_changed AFTER UPDATE OF bytes ON workspaces BEGIN"
        " UPDATE bytes_kept SET bytes = bytes + new.bytes - old.bytes WHERE tenant = new.tenant;"
        "END;"
        "CREATE TRIGGER workspace_is_gone AFTER DELETE ON workspaces BEGIN"
        " UPDATE bytes_kept SET bytes = bytes - old.bytes WHERE tenant = old.tenant;"
        "END;"

        "PRAGMA user_version = 3;",

        "CREATE TABLE volumes ("
        " id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, bytes INTEGER NOT NULL, created_ms INTEGER NOT NULL,"
        " state INTEGER NOT NULL, UNIQUE (tenant, name)"
        ") STRICT;"
        "PRAGMA user_version = 4;",

        "ALTER TABLE keys ADD COLUMN review_budget_nanousd INTEGER NOT NULL DEFAULT 0;"
        "CREATE TABLE usage ("
        " tenant TEXT NOT NULL, key TEXT NOT NULL, component TEXT NOT NULL, model TEXT NOT NULL, day INTEGER NOT NULL,"
        " calls INTEGER NOT NULL, usage_missing INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,"
        " completion_tokens INTEGER NOT NULL, total_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,"
        " reasoning_tokens INTEGER NOT NULL, cost_nanousd INTEGER NOT NULL,"
        " PRIMARY KEY (tenant, key, component, model, day)"
        ") STRICT, WITHOUT ROWID;"
        "CREATE TABLE usage_costs (key TEXT PRIMARY KEY, cost_nanousd INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "CREATE TRIGGER usage_costs_more AFTER INSERT ON usage WHEN new.key <> '' BEGIN"
        " INSERT INTO usage_costs VALUES (new.key, new.cost_nanousd)"
        " ON CONFLICT (key) DO UPDATE SET cost_nanousd = cost_nanousd + excluded.cost_nanousd;"
        "END;"
        "CREATE TRIGGER usage_costs_changed AFTER UPDATE OF cost_nanousd ON usage WHEN new.key <> '' BEGIN"
        " UPDATE usage_costs SET cost_nanousd = cost_nanousd + new.cost_nanousd - old.cost_nanousd WHERE key = new.key;"
        "END;"
        "CREATE TRIGGER usage_costs_less AFTER DELETE ON usage WHEN old.key <> '' BEGIN"
        " UPDATE usage_costs SET cost_nanousd = cost_nanousd - old.cost_nanousd WHERE key = old.key;"
        "END;"
        "PRAGMA user_version = 5;",

        "CREATE TABLE problem_sets ("
        " id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, format TEXT NOT NULL, problems INTEGER NOT NULL,"
        " size INTEGER NOT NULL, index_at INTEGER NOT NULL, created_ms INTEGER NOT NULL, bytes INTEGER NOT NULL,"
        " UNIQUE (tenant, name)"
        ") STRICT;"
        "CREATE TRIGGER problem_set_is_kept AFTER INSERT ON problem_sets BEGIN"
        " INSERT INTO bytes_kept VALUES (new.tenant, new.bytes) ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;"
        "END;"
        "CREATE TRIGGER problem_set_is_gone AFTER DELETE ON problem_sets BEGIN"
        " UPDATE bytes_kept SET bytes = bytes - old.bytes WHERE tenant = old.tenant;"
        "END;"
        "CREATE TABLE witnesses ("
        " number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, hash TEXT NOT NULL, tag TEXT NOT NULL,"
        " attempt TEXT NOT NULL, pod TEXT NOT NULL, uid TEXT NOT NULL, at_ms INTEGER NOT NULL, expires_ms INTEGER NOT NULL,"
        " UNIQUE (tenant, name)"
        ") STRICT;"
        "CREATE INDEX witnesses_by_end ON witnesses (expires_ms);"
        "CREATE TABLE pulled (tag TEXT PRIMARY KEY, number INTEGER NOT NULL, at_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "PRAGMA user_version = 6;",
};

/* ---- opening ---- */

static int find_folder(struct store *store, struct csn_error *err)
{
        char *copy = mem_copy(store->path, strlen(store->path));
        store->folder_fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        free(copy);
        if (store->folder_fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of %.300s", store->path);
        reserve_open(store);
        return 0;
}

/*
 * SQLite would make the file readable for all.  Only a new file is opened here: closing an existing file would drop the
 * locks (fcntl(2)) of every connection of this process to the file.
 */
static int make_file(struct store *store, struct csn_error *err)
{
        const char *slash = strrchr(store->path, '/');
        auto_fd fd = store_make_file(store, slash ? slash + 1 : store->path);
        return fd < 0 && errno != EEXIST ? err_set(err, CSN_E_SYSTEM, errno, "make %.300s", store->path) : 0;
}

static int connect_file(struct store *store, struct csn_error *err)
{
        const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
        sqlite3_close(store->db);   /* of a try before */
        store->db = NULL;
        if (sqlite3_open_v2(store->path, &store->db, flags, NULL) != SQLITE_OK)
                return sql_error(store, err);
        sqlite3_busy_timeout(store->db, OPEN_BUSY_MS);
        return 0;
}

/*
 * Checks the file's application and version before any change.  A single statement, so changes of other processes come
 * before or after.
 */
static int check_file(struct store *store, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err,
                "SELECT user_version, application_id, (SELECT count(*) FROM sqlite_schema) "
                "FROM pragma_user_version, pragma_application_id",
                NULL, 0);
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return rc;
        int64_t version = sql_get_number(&rows, 0), application = sql_get_number(&rows, 1),
                tables = sql_get_number(&rows, 2);
        bool is_new = version == 0 && application == 0 && tables == 0;
        if (!is_new && application != APPLICATION_NUMBER)
                return err_set(err, CSN_E_CONFIG, 0, "%.300s: this is the database of another program", store->path);
        if (version > (int64_t)ARRAY_LEN(migrations))
                return err_set(err, CSN_E_CONFIG, 0,
                        "%.300s was written by a newer Caisson (version %lld, and this one knows %zu); use that one, or "
                        "another engine.state_dir",
                        store->path, (long long)version, ARRAY_LEN(migrations));
        store->version = (int)version;
        return 0;
}

/* All or nothing: a migration killed in the middle leaves the old version. */
static int migrate(struct store *store, struct csn_error *err)
{
        if (store->version == ARRAY_LEN(migrations))
                return 0;
        int rc = sql_begin(store, err);
        if (rc < 0)
                return rc;
        /* Again, because another process may have been faster. */
        rc = check_file(store, err);
        for (size_t i = (size_t)store->version; rc == 0 && i < ARRAY_LEN(migrations); i++)
                rc = sql_script(store, migrations[i], err);
        return sql_end(store, rc, err);
}

/* Two processes doing this at once would wait for each other, so SQLite's own timeout is not used. */
static int use_log(struct store *store, struct csn_error *err)
{
        const struct timespec pause = { .tv_nsec = 5000000 };
        for (uint64_t end = clock_ms() + OPEN_BUSY_MS;; nanosleep(&pause, NULL)) {
                int rc = sql_script(store, "PRAGMA journal_mode = WAL", err);
                if (rc == 0 || (sqlite3_errcode(store->db) & 0xff) != SQLITE_BUSY || clock_ms() > end)
                        return rc;
        }
}

/* After each change.  Returns the change's result: the change is in the log whatever becomes of the checkpoint. */
static int on_log(void *owner, sqlite3 *db, const char *name, int pages)
{
        struct store *store = owner;
        bool due = pages >= store->log_pages_due;
        if (due)
                store->log_pages_due = pages + LOG_PAGES_DUE;
        else if (pages < LOG_PAGES_DUE)   /* the log is written from its beginning again */
                store->log_pages_due = LOG_PAGES_DUE;
        if (pages >= store->log_pages_max)
                sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        else if (due && store->log_grew)
                store->log_grew(store->log_owner);
        return SQLITE_OK;
}

static int set_up(struct store *store, struct csn_error *err)
{
        sqlite3_busy_timeout(store->db, BUSY_MS);
        store->log_pages_max = LOG_PAGES;
        store->log_pages_due = LOG_PAGES_DUE;
        sqlite3_wal_hook(store->db, on_log, store);   /* in place of sqlite3_wal_autocheckpoint() */
        return sql_script(store, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA secure_delete = ON",
                err);
}

/* An existing store can be opened on a full disk, too. */
static int try_step(struct store *store, int (*step)(struct store *, struct csn_error *), struct csn_error *err)
{
        unsigned tries = 0;
        int rc;
        do
                rc = step(store, err);
        while (rc < 0 && sql_make_room(store, err, tries++));
        return rc;
}

int store_open(const char *path, struct store **ret, struct csn_error *err)
{
        static int (*const steps[])(struct store *, struct csn_error *) = {
                find_folder, make_file, connect_file, check_file, secret_open, migrate, use_log, set_up,
        };
        struct csn_error own = { 0 };
        struct store *store = mem_alloc(sizeof *store);
        *store = (struct store){
                .path = mem_copy(path, strlen(path)), .folder_fd = -1, .secret_fd = -1, .files_fd = -1, .reserve_fd = -1
        };
        err = err ? err : &own;
        for (size_t i = 0; i < ARRAY_LEN(steps); i++)
                if (try_step(store, steps[i], err) < 0) {
                        store_close(store);
                        return -err->code;
                }
        store->opened = true;
        *ret = store;
        return 0;
}

int store_open_default(const struct settings *settings, struct store **ret, struct csn_error *err)
{
        struct arena arena = { 0 };
        const char *folder = settings_state_dir(settings, &arena);
        int rc = io_make_folders(folder) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "make the folder %.300s", folder)
                                             : store_open(arena_text(&arena, "%s/caisson.db", folder), ret, err);
        arena_done(&arena);
        return rc;
}

void store_close(struct store *store)
{
        if (!store)
                return;
        for (sqlite3_stmt *statement; store->db && (statement = sqlite3_next_stmt(store->db, NULL));)
                sqlite3_finalize(statement);
        sqlite3_close(store->db);
        while (store->incoming)
                incoming_close(store->incoming);
        journal_close(store);
        cpu_close(store);
        usage_close(store);
        fd_close(&store->reserve_fd);
        fd_close(&store->files_fd);
        fd_close(&store->secret_fd);
        fd_close(&store->folder_fd);
        explicit_bzero(store->secret, sizeof store->secret);
        free(store->path);
        free(store);
}

/* SQLite has no call for this; synchronous=FULL does the same at the end of each transaction. */
int store_sync(struct store *store, struct csn_error *err)
{
        sqlite3_file *log = NULL;
        if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) != SQLITE_OK)
                return sql_error(store, err);
        if (log && log->pMethods && log->pMethods->xSync(log, SQLITE_SYNC_NORMAL) != SQLITE_OK)
                return err_set(err, CSN_E_SYSTEM, errno, "fsync the store");
        return 0;
}

/* ---- expired rows ---- */

int store_clean(struct store *store, uint64_t audit_ms, bool *ret_more, struct csn_error *err)
{
        int64_t now = time_now_ms();
        const struct { const char *sql; int64_t before, most;
        } rooms[] = {
                { "DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency WHERE expires_ms > 0 AND expires_ms <= ?1 LIMIT ?2)",
                        now, ROWS_AT_ONCE },
                { "DELETE FROM witnesses WHERE number IN (SELECT number FROM witnesses WHERE expires_ms <= ?1 LIMIT ?2)",
                        now, ROWS_AT_ONCE },
                { "DELETE FROM pulled WHERE tag IN (SELECT tag FROM pulled WHERE at_ms < ?1 LIMIT ?2)",
                        now - PULLED_MS, ROWS_AT_ONCE },
                { "DELETE FROM runs WHERE number IN (SELECT number FROM runs WHERE finished_ms < ?1 LIMIT ?2)",
                        audit_ms ? now - (int64_t)min_u64(audit_ms, (uint64_t)now) : INT64_MIN, ROWS_AT_ONCE },
                { "DELETE FROM cpu_used WHERE (tenant, minute) IN (SELECT tenant, minute FROM cpu_used WHERE minute < ?1 LIMIT ?2)",
                        now / 60000 - USED_DAYS * 24 * 60, ROWS_AT_ONCE },
        };
        bool more = false;
        if (records_clean(store, &more, err) < 0)
                return err_wrap(err, "remove what is old");
        for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
                int rc = sql_do_surely(store, err, rooms[i].sql,
                        SQL_VALUES(sql_number(rooms[i].before), sql_number(rooms[i].most)));
                if (rc < 0)
                        return err_wrap(err, "remove what is old");
                more = more || sqlite3_changes(store->db) == rooms[i].most;
        }
        runs_retry(store);
        store_has_room(store, NULL);
        *ret_more = more;
        return 0;
}

int store_checkpoint(const char *path, struct csn_error *err)
{
        sqlite3 *db = NULL;
        int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        /* A new connection does not know of the log before reading the file, and would checkpoint nothing. */
        if (code == SQLITE_OK)
                code = sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        sqlite3_close(db);
        if (code == SQLITE_OK || code == SQLITE_BUSY)   /* busy: another process makes a checkpoint */
                return 0;
        return err_set(err, CSN_E_SYSTEM, 0, "checkpoint %.300s: %s", path, sqlite3_errstr(code));
}

void store_set_log_listener(struct store *store, void (*grew)(void *owner), void *owner)
{
        store->log_grew = grew;
        store->log_owner = owner;
}

const char *store_path(const struct store *store)
{
        return store->path;
}
