/*
 * Statements.  Each text is compiled once and then found in SQLite's list of a connection's statements, about
 * thirty.
 */
#include "store/sql.h"

int sql_error(struct store *store, struct csn_error *err)
{
        int code = sqlite3_errcode(store->db) & 0xff;
        bool of_disk = code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_FULL;
        int sys = code == SQLITE_FULL ? ENOSPC : of_disk ? sqlite3_system_errno(store->db) : 0;
        return err_set(err,
                code == SQLITE_NOTADB         ? CSN_E_CONFIG
                        : code == SQLITE_FULL ? CSN_E_BUSY
                                              : CSN_E_SYSTEM,
                sys, "%.300s: %.150s", store->opened ? "the store" : store->path, sqlite3_errmsg(store->db));
}

int sql_script(struct store *store, const char *sql, struct csn_error *err)
{
        return sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sql_error(store, err);
}

static sqlite3_stmt *find(struct store *store, const char *sql)
{
        sqlite3_stmt *statement = NULL;
        while ((statement = sqlite3_next_stmt(store->db, statement)))
                if (strcmp(sqlite3_sql(statement), sql) == 0)
                        return statement;
        return sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, NULL) == SQLITE_OK
                ? statement
                : NULL;
}

static int bind(sqlite3_stmt *statement, int place, const struct sql_value *value)
{
        if (value->type == SQLITE_INTEGER)
                return sqlite3_bind_int64(statement, place, value->number);
        if (value->type == SQLITE_TEXT)
                return sqlite3_bind_text64(statement, place, value->bytes, value->len, SQLITE_STATIC, SQLITE_UTF8);
        return sqlite3_bind_blob64(statement, place, value->bytes, value->len, SQLITE_STATIC);
}

int sql_open(struct store *store, struct sql_rows *ret, struct csn_error *err, const char *sql,
        const struct sql_value *values, size_t n)
{
        sqlite3_stmt *statement = find(store, sql);
        if (!statement)
                return sql_error(store, err);
        for (size_t i = 0; i < n; i++)
                if (bind(statement, (int)i + 1, &values[i]) != SQLITE_OK)
                        return sql_error(store, err);
        *ret = (struct sql_rows){ store, statement };
        return 0;
}

int sql_next(struct sql_rows *rows, struct csn_error *err)
{
        int code = sqlite3_step(rows->statement);
        if (code == SQLITE_ROW)
                return 1;
        int rc = code == SQLITE_DONE ? 0 : sql_error(rows->store, err);
        sql_done(rows);
        return rc;
}

void sql_done(struct sql_rows *rows)
{
        if (rows->statement) {
                sqlite3_reset(rows->statement);
                sqlite3_clear_bindings(rows->statement);   /* the bindings point at memory of the caller */
        }
        rows->statement = NULL;
}

int sql_do(struct store *store, struct csn_error *err, const char *sql, const struct sql_value *values, size_t n)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, sql, values, n);
        return rc < 0 ? rc : sql_next(&rows, err);
}

/*
 * After a checkpoint the log starts from its beginning again and needs no room; the file may need some for the
 * checkpoint.
 */
bool sql_make_room(struct store *store, const struct csn_error *err, unsigned tries)
{
        if (err->sys != ENOSPC && err->sys != EDQUOT)
                return false;
        if (tries > 0 && !reserve_release(store))
                return false;
        if (store->db)
                sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        return true;
}

int sql_do_surely(struct store *store, struct csn_error *err, const char *sql, const struct sql_value *values, size_t n)
{
        struct csn_error own = { 0 };
        unsigned tries = 0;
        int rc;
        err = err ? err : &own;
        do
                rc = sql_do(store, err, sql, values, n);
        while (rc < 0 && sql_make_room(store, err, tries++));
        return rc;
}

int64_t sql_get_number(struct sql_rows *rows, int column)
{
        return sqlite3_column_int64(rows->statement, column);
}

char *sql_get_bytes(struct sql_rows *rows, int column, struct arena *arena, size_t *ret_len)
{
        const char *bytes = sqlite3_column_blob(rows->statement, column);
        *ret_len = (size_t)sqlite3_column_bytes(rows->statement, column);
        return arena_copy(arena, bytes ? bytes : "", *ret_len);
}

char *sql_get_text(struct sql_rows *rows, int column, struct arena *arena)
{
        size_t len;
        return sql_get_bytes(rows, column, arena, &len);
}

int sql_begin(struct store *store, struct csn_error *err)
{
        return sql_do(store, err, "BEGIN IMMEDIATE", NULL, 0);
}

int sql_end(struct store *store, int rc, struct csn_error *err)
{
        int committed = rc < 0 ? rc : sql_do(store, err, "COMMIT", NULL, 0);
        /* Some errors roll back by themselves; then ROLLBACK fails, without harm. */
        if (committed < 0)
                sql_do(store, NULL, "ROLLBACK", NULL, 0);
        return committed < 0 ? committed : rc;
}
