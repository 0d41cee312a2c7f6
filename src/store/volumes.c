/* Rows of volumes: owner, name and size.  Their files belong to the supervisor (src/supervisor/volumes.c). */
#include "store/sql.h"

#include <inttypes.h>
#include <stdio.h>

static int count_bytes(struct store *store, const char *tenant, uint64_t *ret_own, uint64_t *ret_all,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err,
                "SELECT coalesce(sum(bytes) FILTER (WHERE tenant = ?1), 0), coalesce(sum(bytes), 0) FROM volumes",
                SQL_VALUES(sql_text(tenant)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "add up volumes");
        *ret_own = (uint64_t)sql_get_number(&rows, 0);
        *ret_all = (uint64_t)sql_get_number(&rows, 1);
        return 0;
}

static int refuse(const char *setting, uint64_t most, uint64_t used, uint64_t more, struct csn_error *err)
{
        err_set(err, CSN_E_BUSY, 0,
                "size_bytes is %" PRIu64 ", and %s is %" PRIu64 ", of which %" PRIu64
                " are taken; ask for less, or remove a volume",
                more, setting, most, used);
        err->sys = EDQUOT;
        snprintf(err->field, sizeof err->field, "/size_bytes");
        return -CSN_E_BUSY;
}

static int check_room(struct store *store, const struct store_volume *volume, const struct volumes_room *room,
        struct csn_error *err)
{
        uint64_t own, all;
        if (count_bytes(store, volume->tenant, &own, &all, err) < 0)
                return -err->code;
        if (own > room->tenant_max || volume->bytes > room->tenant_max - own)
                return refuse("volumes.tenant_bytes", room->tenant_max, own, volume->bytes, err);
        if (all > room->all_max || volume->bytes > room->all_max - all)
                return refuse("volumes.total_bytes", room->all_max, all, volume->bytes, err);
        return 0;
}

#define COLUMNS "id, tenant, name, bytes, created_ms, state"

static void read_volume(struct sql_rows *rows, struct arena *arena, struct store_volume *ret)
{
        *ret = (struct store_volume){ .tenant = sql_get_text(rows, 1, arena),
                .name = sql_get_text(rows, 2, arena),
                .bytes = (uint64_t)sql_get_number(rows, 3),
                .created_ms = sql_get_number(rows, 4),
                .state = (enum volume_state)sql_get_number(rows, 5) };
        snprintf(ret->id, sizeof ret->id, "%s", sql_get_text(rows, 0, arena));
}

static int find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_volume *ret, bool *ret_there, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT " COLUMNS " FROM volumes WHERE tenant = ?1 AND name = ?2",
                SQL_VALUES(sql_text(tenant), sql_text(name)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "look for a volume");
        *ret_there = rc > 0;
        if (rc > 0)
                read_volume(&rows, arena, ret);
        return 0;
}

static int add_row(struct store *store, struct store_volume *volume, const struct volumes_room *room, bool *ret_known,
        struct csn_error *err)
{
        struct arena arena = { 0 };
        struct store_volume known;
        int rc = find(store, volume->tenant, volume->name, &arena, &known, ret_known, err);
        arena_done(&arena);
        if (rc < 0 || *ret_known)
                return rc;
        if (check_room(store, volume, room, err) < 0)
                return -err->code;
        id_new(volume->id);
        volume->created_ms = time_now_ms();
        return sql_do(store, err, "INSERT INTO volumes (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                SQL_VALUES(sql_text(volume->id), sql_text(volume->tenant), sql_text(volume->name),
                        sql_count(volume->bytes), sql_number(volume->created_ms), sql_number(VOLUME_MAKING)));
}

int volumes_add(struct store *store, struct store_volume *volume, const struct volumes_room *room, bool *ret_known,
        struct csn_error *err)
{
        *ret_known = false;
        int rc = sql_begin(store, err);
        if (rc < 0)
                return err_wrap(err, "add the volume %.64s", volume->name);
        rc = add_row(store, volume, room, ret_known, err);
        return sql_end(store, rc, err);
}

int volumes_set_state(struct store *store, const char *id, enum volume_state state, struct csn_error *err)
{
        int rc = sql_do_surely(store, err, "UPDATE volumes SET state = ?2 WHERE id = ?1",
                SQL_VALUES(sql_text(id), sql_number(state)));
        return rc < 0 ? err_wrap(err, "note the state of a volume") : 0;
}

int volumes_forget(struct store *store, const char *id, struct csn_error *err)
{
        int rc = sql_do_surely(store, err, "DELETE FROM volumes WHERE id = ?1", SQL_VALUES(sql_text(id)));
        return rc < 0 ? err_wrap(err, "forget a volume") : 0;
}

int volumes_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_volume *ret, bool *ret_there, struct csn_error *err)
{
        int rc = find(store, tenant, name, arena, ret, ret_there, err);
        *ret_there = rc == 0 && *ret_there && ret->state == VOLUME_READY;
        return rc;
}

static int read_all(struct sql_rows *rows, int rc, struct arena *arena, struct store_volume **ret, size_t *ret_n,
        struct csn_error *err)
{
        struct store_volume *list = arena_alloc(arena, VOLUMES_LIST_MAX * sizeof *list);
        size_t n = 0;
        while (rc >= 0 && n < VOLUMES_LIST_MAX && (rc = sql_next(rows, err)) > 0)
                read_volume(rows, arena, &list[n++]);
        if (rc < 0)
                return err_wrap(err, "list volumes");
        *ret = list;
        *ret_n = n;
        return 0;
}

int volumes_of(struct store *store, const char *tenant, struct arena *arena, struct store_volume **ret, size_t *ret_n,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err,
                "SELECT " COLUMNS " FROM volumes WHERE tenant = ?1 AND state = ?2 ORDER BY name",
                SQL_VALUES(sql_text(tenant), sql_number(VOLUME_READY)));
        return read_all(&rows, rc, arena, ret, ret_n, err);
}

int volumes_unsettled(struct store *store, struct arena *arena, struct store_volume **ret, size_t *ret_n,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT " COLUMNS " FROM volumes WHERE state <> ?1",
                SQL_VALUES(sql_number(VOLUME_READY)));
        return read_all(&rows, rc, arena, ret, ret_n, err);
}
