/* Rows of workspaces.  The content of a workspace folder is the concern of its opener. */
#include "store/sql.h"

#include <openssl/sha.h>
#include <stdio.h>

#define OLD_AT_ONCE 20

/* ---- ids ---- */

void workspaces_id(const char *tenant, const char *user, const char *name, char ret[static WORKSPACE_ID_MAX])
{
        const char *const parts[] = { tenant, user, name };
        unsigned char hashes[ARRAY_LEN(parts)][SHA256_DIGEST_LENGTH], hash[SHA256_DIGEST_LENGTH];
        for (size_t i = 0; i < ARRAY_LEN(parts); i++)
                SHA256((const unsigned char *)parts[i], strlen(parts[i]), hashes[i]);
        SHA256(hashes[0], sizeof hashes, hash);
        int len = snprintf(ret, WORKSPACE_ID_MAX, "ws_");
        hex_print(hash, sizeof hash, ret + len);
}

/* ---- use ---- */

int workspaces_use(struct store *store, const char *tenant, const char *user, const char *name, struct csn_error *err)
{
        char id[WORKSPACE_ID_MAX];
        workspaces_id(tenant, user, name, id);
        int rc = sql_do_surely(store, err,
                "INSERT INTO workspaces (id, tenant, user, name, bytes, created_ms, used_ms, in_use) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 1) "
                "ON CONFLICT (id) DO UPDATE SET used_ms = excluded.used_ms, in_use = 1",
                SQL_VALUES(sql_text(id), sql_text(tenant), sql_text(user), sql_text(name),
                        sql_number(STORE_ENTRY_BYTES), sql_number(time_now_ms())));
        return rc < 0 ? err_wrap(err, "use the workspace %.100s", name) : 0;
}

int workspaces_note(struct store *store, const char *id, uint64_t bytes, struct csn_error *err)
{
        int rc = sql_do_surely(store, err, "UPDATE workspaces SET bytes = ?2, used_ms = ?3, in_use = 0 WHERE id = ?1",
                        SQL_VALUES(sql_text(id), sql_count(bytes), sql_number(time_now_ms())));
        return rc < 0 ? err_wrap(err, "note what the workspace %s takes", id) : 0;
}

int workspaces_forget(struct store *store, const char *id, struct csn_error *err)
{
        int rc = sql_do_surely(store, err, "DELETE FROM workspaces WHERE id = ?1", SQL_VALUES(sql_text(id)));
        return rc < 0 ? err_wrap(err, "remove the workspace %s", id) : 0;
}

/* ---- reading ---- */

#define COLUMNS "id, tenant, user, name, bytes, created_ms, used_ms, rowid"

static void read_workspace(struct sql_rows *rows, struct arena *arena, struct store_workspace *ret)
{
        *ret = (struct store_workspace){
                .tenant = sql_get_text(rows, 1, arena),
                .user = sql_get_text(rows, 2, arena),
                .name = sql_get_text(rows, 3, arena),
                .bytes = (uint64_t)sql_get_number(rows, 4),
                .created_ms = sql_get_number(rows, 5),
                .used_ms = sql_get_number(rows, 6),
                .number = sql_get_number(rows, 7),
        };
        snprintf(ret->id, sizeof ret->id, "%s", sql_get_text(rows, 0, arena));
}

int workspaces_find(struct store *store, const char *id, const char *tenant, struct arena *arena,
        struct store_workspace *ret, bool *ret_there, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT " COLUMNS " FROM workspaces WHERE id = ?1 AND tenant = ?2",
                          SQL_VALUES(sql_text(id), sql_text(tenant)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "look for a workspace");
        *ret_there = rc > 0;
        if (rc > 0)
                read_workspace(&rows, arena, ret);
        return 0;
}

int workspaces_known(struct store *store, const char *id, bool *ret, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT 1 FROM workspaces WHERE id = ?1", SQL_VALUES(sql_text(id)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "look for a workspace");
        *ret = rc > 0;
        return 0;
}

static int read_all(struct sql_rows *rows, int rc, struct arena *arena, size_t most, struct store_workspace **ret,
        size_t *ret_n, struct csn_error *err)
{
        struct store_workspace *list = arena_alloc(arena, (most + 1) * sizeof *list);
        size_t n = 0;
        while (rc >= 0 && (rc = sql_next(rows, err)) > 0)
                read_workspace(rows, arena, &list[n++]);
        if (rc < 0)
                return err_wrap(err, "list workspaces");
        *ret = list;
        *ret_n = n;
        return 0;
}

int workspaces_of(struct store *store, const struct workspaces_filter *filter, struct arena *arena,
        struct store_workspace **ret, size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        size_t most = min_u64(filter->n, WORKSPACES_LIST_MAX + 1);
        int rc = sql_open(store, &rows, err,
                "SELECT " COLUMNS
                " FROM workspaces WHERE tenant = ?1 AND (?2 OR user = ?3) AND (used_ms, rowid) < (?4, ?5) "
                "ORDER BY used_ms DESC, rowid DESC LIMIT ?6",
                SQL_VALUES(sql_text(filter->tenant), sql_number(!filter->user), sql_text(filter->user),
                        sql_number(filter->below_ms), sql_number(filter->below_number), sql_count(most)));
        return read_all(&rows, rc, arena, most, ret, ret_n, err);
}

int workspaces_old(struct store *store, int64_t before_ms, struct arena *arena, struct store_workspace **ret,
        size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = before_ms == INT64_MIN
                ? sql_open(store, &rows, err, "SELECT " COLUMNS " FROM workspaces WHERE in_use > 0 LIMIT ?1",
                          SQL_VALUES(sql_number(OLD_AT_ONCE)))
                : sql_open(store, &rows, err,
                          "SELECT " COLUMNS " FROM workspaces WHERE used_ms < ?1 ORDER BY used_ms LIMIT ?2",
                          SQL_VALUES(sql_number(before_ms), sql_number(OLD_AT_ONCE)));
        return read_all(&rows, rc, arena, OLD_AT_ONCE, ret, ret_n, err);
}
