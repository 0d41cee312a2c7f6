/*
 * Rows of problem sets: owner, name, format and size.  The content of a set, its problems with an index, is a file in
 * the folder `files` (front/grading/problem_file.h has its form), so that a request reads one problem without SQLite.
 */
#include "store/files.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define COLUMNS "id, tenant, name, format, problems, size, index_at, created_ms"

static void content_name(const char *id, char name[static PROBLEMS_FILE_NAME_MAX])
{
        snprintf(name, PROBLEMS_FILE_NAME_MAX, PROBLEMS_FILE_PREFIX "%s", id);
}

static void read_set(struct sql_rows *rows, struct arena *arena, struct store_problem_set *ret)
{
        *ret = (struct store_problem_set){ .tenant = sql_get_text(rows, 1, arena),
                .name = sql_get_text(rows, 2, arena),
                .format = sql_get_text(rows, 3, arena),
                .problems = (uint64_t)sql_get_number(rows, 4),
                .size = (uint64_t)sql_get_number(rows, 5),
                .index_at = (uint64_t)sql_get_number(rows, 6),
                .created_ms = sql_get_number(rows, 7) };
        snprintf(ret->id, sizeof ret->id, "%s", sql_get_text(rows, 0, arena));
}

/* ---- adding ---- */

struct row {
        const struct store_problem_set *set;
        uint64_t most;                 /* sets of the tenant */
};

static int check_count(struct store *store, const struct row *row, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT count(*) FROM problem_sets WHERE tenant = ?1",
                SQL_VALUES(sql_text(row->set->tenant)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return rc;
        uint64_t count = (uint64_t)sql_get_number(&rows, 0);
        if (count < row->most)
                return 0;
        err_set(err, CSN_E_BUSY, 0,
                "problems.tenant_sets is %" PRIu64 ", and the tenant has %" PRIu64 " sets; remove a set", row->most,
                count);
        err->sys = EDQUOT;
        return -CSN_E_BUSY;
}

/* Removes an earlier set of the name first; the caller removes the earlier set's content. */
static int insert(struct store *store, const void *given, struct csn_error *err)
{
        const struct row *row = given;
        const struct store_problem_set *set = row->set;
        int rc = sql_do(store, err, "DELETE FROM problem_sets WHERE tenant = ?1 AND name = ?2",
                SQL_VALUES(sql_text(set->tenant), sql_text(set->name)));
        rc = rc < 0 ? rc : check_count(store, row, err);
        return rc < 0 ? rc
                      : sql_do(store, err,
                                "INSERT INTO problem_sets (" COLUMNS ", bytes) "
                                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                                SQL_VALUES(sql_text(set->id), sql_text(set->tenant), sql_text(set->name),
                                        sql_text(set->format), sql_count(set->problems), sql_count(set->size),
                                        sql_count(set->index_at), sql_number(set->created_ms),
                                        sql_count(set->size + STORE_ENTRY_BYTES)));
}

int problem_sets_put(struct incoming *incoming, struct store_problem_set *set, uint64_t most, bool *ret_replaced,
        struct csn_error *err)
{
        struct store *store = incoming->store;
        struct store_problem_set before;
        struct arena arena = { 0 };
        char name[PROBLEMS_FILE_NAME_MAX];
        bool replaces = false;
        int rc = problem_sets_find(store, set->tenant, set->name, &arena, &before, &replaces, err);
        if (rc == 0) {
                id_new(set->id);
                set->created_ms = time_now_ms();
                set->size = incoming->size;
                content_name(set->id, name);
                const struct row row = { .set = set, .most = most };
                rc = content_add(incoming, name, insert, &row, err);
        }
        if (rc == 0 && replaces) {
                content_name(before.id, name);
                content_remove(store, set->tenant, name);
        }
        arena_done(&arena);
        *ret_replaced = replaces;
        return rc < 0 ? err_wrap(err, "store the problem set %.64s", set->name) : 0;
}

/* ---- reading ---- */

int problem_sets_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_problem_set *ret, bool *ret_there, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT " COLUMNS " FROM problem_sets WHERE tenant = ?1 AND name = ?2",
                SQL_VALUES(sql_text(tenant), sql_text(name)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "look for a problem set");
        *ret_there = rc > 0;
        if (rc > 0)
                read_set(&rows, arena, ret);
        return 0;
}

int problem_sets_of(struct store *store, const char *tenant, struct arena *arena, struct store_problem_set **ret,
        size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        struct store_problem_set *list = arena_alloc(arena, PROBLEM_SETS_LIST_MAX * sizeof *list);
        size_t n = 0;
        int rc = sql_open(store, &rows, err, "SELECT " COLUMNS " FROM problem_sets WHERE tenant = ?1 ORDER BY name",
                SQL_VALUES(sql_text(tenant)));
        while (rc >= 0 && n < PROBLEM_SETS_LIST_MAX && (rc = sql_next(&rows, err)) > 0)
                read_set(&rows, arena, &list[n++]);
        if (rc < 0)
                return err_wrap(err, "list problem sets");
        *ret = list;
        *ret_n = n;
        return 0;
}

/* After a power failure the file may be shorter than its row says: such a set does not exist any more. */
int problem_sets_open(struct store *store, const struct store_problem_set *set, int *ret_fd, bool *ret_there,
        struct csn_error *err)
{
        char name[PROBLEMS_FILE_NAME_MAX];
        struct stat st;
        if (files_folder(store, err) < 0)
                return -err->code;
        content_name(set->id, name);
        auto_fd fd = openat(store->files_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
                return err_set(err, CSN_E_SYSTEM, errno, "open the problem set %.64s", set->name);
        if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != set->size) {
                log_text(LOG_WARN, "the file of the problem set %s is missing or too short; the set is removed",
                        set->name);
                int rc = problem_sets_forget(store, set->tenant, set->name, ret_there, err);
                *ret_there = false;
                return rc;
        }
        *ret_there = true;
        *ret_fd = take_fd(&fd);
        return 0;
}

/* ---- removing ---- */

int problem_sets_forget(struct store *store, const char *tenant, const char *name, bool *ret_there,
        struct csn_error *err)
{
        struct store_problem_set set;
        struct arena arena = { 0 };
        char file[PROBLEMS_FILE_NAME_MAX];
        bool there = false;
        int rc = problem_sets_find(store, tenant, name, &arena, &set, &there, err);
        rc = rc < 0 ? rc : files_folder(store, err);
        if (rc == 0 && there)
                rc = sql_do_surely(store, err, "DELETE FROM problem_sets WHERE id = ?1", SQL_VALUES(sql_text(set.id)));
        if (rc == 0 && there) {
                content_name(set.id, file);
                content_remove(store, tenant, file);
                store_has_room(store, NULL); /* there may be room for the reserve now */
        }
        arena_done(&arena);
        *ret_there = there;
        return rc < 0 ? err_wrap(err, "remove the problem set %.64s", name) : 0;
}
