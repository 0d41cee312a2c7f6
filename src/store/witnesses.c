/*
 * Notes of a worker about other workers: an Idempotency-Key was sent there.  A gateway makes the notes, so that the
 * key is not free again when the worker is deleted with its store (docs/design/gateway.md).
 */
#include "store/sql.h"

#define COLUMNS "hash, tag, attempt, pod, uid, at_ms"

static int read_note(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_note *ret, bool *ret_there, struct csn_error *err)
{
        auto_rows rows = { 0 };
        *ret_there = false;
        int rc = sql_open(store, &rows, err,
                "SELECT " COLUMNS " FROM witnesses WHERE tenant = ?1 AND name = ?2 AND expires_ms > ?3",
                SQL_VALUES(sql_text(tenant), sql_text(name), sql_number(time_now_ms())));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc <= 0)
                return rc;
        *ret_there = true;
        *ret = (struct store_note){ .tenant = tenant,
                .name = name,
                .hash = sql_get_text(&rows, 0, arena),
                .tag = sql_get_text(&rows, 1, arena),
                .attempt = sql_get_text(&rows, 2, arena),
                .pod = sql_get_text(&rows, 3, arena),
                .uid = sql_get_text(&rows, 4, arena),
                .at_ms = sql_get_number(&rows, 5) };
        return 0;
}

int witnesses_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_note *ret, bool *ret_there, struct csn_error *err)
{
        int rc = read_note(store, tenant, name, arena, ret, ret_there, err);
        return rc < 0 ? err_wrap(err, "look for a note about the name %.100s", name) : 0;
}

/* The oldest notes go: numbers only grow, so the rows above the limit have the lowest numbers. */
static int add(struct store *store, const struct store_note *note, uint64_t most, struct csn_error *err)
{
        int rc = sql_do(store, err,
                "INSERT OR REPLACE INTO witnesses (tenant, name, " COLUMNS ", expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                SQL_VALUES(sql_text(note->tenant), sql_text(note->name), sql_text(note->hash), sql_text(note->tag),
                        sql_text(note->attempt), sql_text(note->pod), sql_text(note->uid), sql_number(note->at_ms),
                        sql_number(note->expires_ms)));
        if (rc < 0)
                return rc;
        return sql_do(store, err, "DELETE FROM witnesses WHERE number <= ?1",
                SQL_VALUES(sql_number(sqlite3_last_insert_rowid(store->db) - (int64_t)min_u64(most, INT64_MAX))));
}

static bool may_replace(const struct store_note *there, const struct store_note *note, const char *const *replaces,
        size_t n)
{
        if (strcmp(there->attempt, note->attempt) == 0)
                return true;
        for (size_t i = 0; i < n; i++)
                if (strcmp(there->attempt, replaces[i]) == 0)
                        return true;
        return false;
}

int witnesses_add(struct store *store, const struct store_note *note, const char *const *replaces, size_t n,
        uint64_t most, bool *ret_added, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_note there;
        bool is_there = false, free_for_it = false;
        int rc = sql_begin(store, err);
        if (rc == 0) {
                rc = read_note(store, note->tenant, note->name, &arena, &there, &is_there, err);
                free_for_it = rc == 0 && (!is_there || may_replace(&there, note, replaces, n));
                if (free_for_it && store_has_room(store, err) < 0)
                        rc = -CSN_E_BUSY;
                if (rc == 0 && free_for_it)
                        rc = add(store, note, most, err);
                rc = sql_end(store, rc, err);
        }
        arena_done(&arena);
        if (rc < 0)
                return err_wrap(err, "note where the name %.100s was sent", note->name);
        *ret_added = free_for_it;
        return 0;
}

int witnesses_drop(struct store *store, const char *tenant, const char *name, const char *attempt,
        struct csn_error *err)
{
        int rc = sql_do_surely(store, err, "DELETE FROM witnesses WHERE tenant = ?1 AND name = ?2 AND attempt = ?3",
                SQL_VALUES(sql_text(tenant), sql_text(name), sql_text(attempt)));
        return rc < 0 ? err_wrap(err, "drop the note about the name %.100s", name) : 0;
}
