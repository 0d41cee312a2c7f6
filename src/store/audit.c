/* The audit. */
#include "store/sql.h"

#include <stdio.h>

/* In the order of add() and read_run(). */
#define COLUMNS \
        "id, tenant, key, task_id, user, language, profile, policy, code_sha256, status, exit_code, verdict, boundary, started_ms, " \
        "finished_ms, cpu_ms, wall_ms, memory_peak_bytes, trace_id"

#define ADD_VALUES "INTO runs (" COLUMNS ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)"

static int add(struct store *store, const char *sql, const struct store_run *run, struct csn_error *err)
{
        int rc = sql_do_surely(store, err, sql,
                SQL_VALUES(sql_text(run->id), sql_text(run->tenant), sql_text(run->key), sql_text(run->task_id),
                        sql_text(run->user), sql_text(run->language), sql_text(run->profile), sql_text(run->policy),
                        sql_text(run->code_sha256), sql_text(status_name(run->status)), sql_number(run->exit_code),
                        sql_text(run->verdict), sql_text(run->boundary), sql_number(run->started_ms),
                        sql_number(run->finished_ms), sql_count(run->cpu_ms), sql_count(run->wall_ms),
                        sql_count(run->memory_peak_bytes), sql_text(run->trace_id)));
        return rc < 0 ? err_wrap(err, "add the run %.60s to the audit", run->id) : 0;
}

/* An existing row is left as it is: a run may have been added just before its slot was to be released. */
int runs_add_again(struct store *store, const struct store_run *run, struct csn_error *err)
{
        return add(store, "INSERT OR IGNORE " ADD_VALUES, run, err);
}

int audit_add(struct store *store, const struct store_run *run, struct csn_error *err)
{
        return add(store, "INSERT " ADD_VALUES, run, err);
}

/* ---- lists ---- */

static int status_of(const char *name)
{
        for (size_t i = 0; i < choices_status.n; i++)
                if (strcmp(choices_status.values[i].text, name) == 0)
                        return (int)i;
        return status_ENGINE_ERROR;
}

static void read_run(struct sql_rows *rows, struct arena *arena, struct store_run *ret)
{
        *ret = (struct store_run){
                .id = sql_get_text(rows, 0, arena),
                .tenant = sql_get_text(rows, 1, arena),
                .key = sql_get_text(rows, 2, arena),
                .task_id = sql_get_text(rows, 3, arena),
                .user = sql_get_text(rows, 4, arena),
                .language = sql_get_text(rows, 5, arena),
                .profile = sql_get_text(rows, 6, arena),
                .policy = sql_get_text(rows, 7, arena),
                .status = status_of(sql_get_text(rows, 9, arena)),
                .exit_code = sql_get_number(rows, 10),
                .verdict = sql_get_text(rows, 11, arena),
                .boundary = sql_get_text(rows, 12, arena),
                .started_ms = sql_get_number(rows, 13),
                .finished_ms = sql_get_number(rows, 14),
                .cpu_ms = (uint64_t)sql_get_number(rows, 15),
                .wall_ms = (uint64_t)sql_get_number(rows, 16),
                .memory_peak_bytes = (uint64_t)sql_get_number(rows, 17),
                .trace_id = sql_get_text(rows, 18, arena),
                .number = sql_get_number(rows, 19),
        };
        snprintf(ret->code_sha256, sizeof ret->code_sha256, "%s", sql_get_text(rows, 8, arena));
}

static bool given(const char *text)
{
        return text && text[0];
}

/* The number of the run before which the list begins. */
static int number_before(struct store *store, const struct runs_filter *filter, int64_t *ret, struct csn_error *err)
{
        auto_rows rows = { 0 };
        *ret = INT64_MAX;
        if (!given(filter->before))
                return 0;
        int rc = sql_open(store, &rows, err, "SELECT number FROM runs WHERE id = ?1 AND (?2 = '' OR tenant = ?2)",
                          SQL_VALUES(sql_text(filter->before), sql_text(filter->tenant)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc == 0)
                return err_field(err, "before", "the audit has no run \"%.60s\", or it has expired", filter->before);
        if (rc > 0)
                *ret = sql_get_number(&rows, 0);
        return rc < 0 ? rc : 0;
}

/* Only requested conditions: each combination is a statement of its own, which can use an index. */
static void compose(const struct runs_filter *filter, char *sql, size_t size)
{
        bool few = given(filter->task_id) || given(filter->user);
        snprintf(sql, size, "SELECT " COLUMNS ", number FROM runs WHERE number < ?1%s%s%s%s ORDER BY number DESC LIMIT ?6",
                given(filter->task_id) ? " AND task_id = ?2 AND task_id <> ''" : "",
                given(filter->user) ? " AND user = ?3 AND user <> ''" : "",
                !given(filter->tenant) ? ""
                        : few          ? " AND +tenant = ?4"
                                       : " AND tenant = ?4", /* +: not by this index */
                filter->status >= 0 ? " AND status = ?5" : "");
}

int runs_list(struct store *store, const struct runs_filter *filter, struct arena *arena, struct store_run **ret,
        size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        char sql[600];
        int64_t before;
        size_t n = 0, most = min_u64(filter->n, RUNS_LIST_MAX);
        int rc = number_before(store, filter, &before, err);
        if (rc < 0)
                return rc;
        compose(filter, sql, sizeof sql);
        struct store_run *runs = arena_alloc(arena, (most + 1) * sizeof *runs);
        rc = sql_open(store, &rows, err, sql,
                SQL_VALUES(sql_number(before), sql_text(filter->task_id), sql_text(filter->user),
                        sql_text(filter->tenant), sql_text(status_name(filter->status)), sql_count(most)));
        while (rc >= 0 && (rc = sql_next(&rows, err)) > 0)
                read_run(&rows, arena, &runs[n++]);
        if (rc < 0)
                return err_wrap(err, "list runs");
        *ret = runs;
        *ret_n = n;
        return 0;
}

/* The rows of a search, before the conditions without an index. */
#define SCAN "FROM runs WHERE number < ?1 AND ?2 = '' ORDER BY number DESC LIMIT ?3"
#define SCAN_TENANT "FROM runs WHERE number < ?1 AND tenant = ?2 ORDER BY number DESC LIMIT ?3"
#define CONDITIONS \
        " WHERE (?4 = '' OR key = ?4) AND (?5 = '' OR language = ?5) AND (?6 = '' OR profile = ?6) AND (?7 = '' OR status = ?7)" \
        " ORDER BY number DESC LIMIT ?8"

/* Where a search without enough rows goes on. */
static int scan_end(struct store *store, const struct runs_search *search, int64_t *ret_next, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err,
                search->tenant ? "SELECT count(*), min(number) FROM (SELECT number " SCAN_TENANT ")"
                               : "SELECT count(*), min(number) FROM (SELECT number " SCAN ")",
                SQL_VALUES(sql_number(search->below), sql_text(search->tenant), sql_number(RUNS_SCAN_MAX)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc > 0 && sql_get_number(&rows, 0) == RUNS_SCAN_MAX)
                *ret_next = sql_get_number(&rows, 1);
        return rc;
}

int runs_search(struct store *store, const struct runs_search *search, struct arena *arena, struct store_run **ret,
        size_t *ret_n, int64_t *ret_next, struct csn_error *err)
{
        auto_rows rows = { 0 };
        size_t n = 0;
        struct store_run *runs = arena_alloc(arena, (search->n + 1) * sizeof *runs);
        *ret_next = 0;
        int rc = sql_open(store, &rows, err,
                search->tenant ? "SELECT " COLUMNS ", number FROM (SELECT * " SCAN_TENANT ")" CONDITIONS
                               : "SELECT " COLUMNS ", number FROM (SELECT * " SCAN ")" CONDITIONS,
                SQL_VALUES(sql_number(search->below), sql_text(search->tenant), sql_number(RUNS_SCAN_MAX),
                        sql_text(search->key), sql_text(search->language), sql_text(search->profile),
                        sql_text(search->status < 0 ? "" : status_name(search->status)), sql_count(search->n)));
        while (rc >= 0 && n < search->n && (rc = sql_next(&rows, err)) > 0)
                read_run(&rows, arena, &runs[n++]);
        if (rc >= 0 && n && n == search->n)
                *ret_next = runs[n - 1].number;
        else if (rc >= 0)
                rc = scan_end(store, search, ret_next, err);
        if (rc < 0)
                return err_wrap(err, "list runs");
        *ret = runs;
        *ret_n = n;
        return 0;
}

int runs_after(struct store *store, int64_t after, size_t most, struct arena *arena, struct store_run **ret,
        size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        size_t n = 0;
        struct store_run *runs = arena_alloc(arena, (most + 1) * sizeof *runs);
        int rc = sql_open(store, &rows, err,
                "SELECT " COLUMNS ", number FROM runs WHERE number > ?1 ORDER BY number LIMIT ?2",
                SQL_VALUES(sql_number(after), sql_count(most)));
        while (rc >= 0 && (rc = sql_next(&rows, err)) > 0)
                read_run(&rows, arena, &runs[n++]);
        if (rc < 0)
                return err_wrap(err, "list runs");
        *ret = runs;
        *ret_n = n;
        return 0;
}

int runs_newest(struct store *store, int64_t *ret, struct csn_error *err)
{
        auto_rows rows = { 0 };
        *ret = 0;
        int rc = sql_open(store, &rows, err, "SELECT max(number) FROM runs", NULL, 0);
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc > 0)
                *ret = sql_get_number(&rows, 0);
        return rc < 0 ? err_wrap(err, "list runs") : 0;
}

#define TRIM_AT_ONCE 1000

/* By the numbers, which have gaps at expired rows: expired rows are the oldest as well. */
int runs_trim(struct store *store, uint64_t most, bool *ret_more, struct csn_error *err)
{
        int64_t newest;
        *ret_more = false;
        if (!most)
                return 0;
        int rc = runs_newest(store, &newest, err);
        if (rc == 0)
                rc = sql_do_surely(store, err,
                        "DELETE FROM runs WHERE number IN (SELECT number FROM runs WHERE number <= ?1 ORDER BY number LIMIT ?2)",
                        SQL_VALUES(sql_number(newest - (int64_t)min_u64(most, INT64_MAX)), sql_number(TRIM_AT_ONCE)));
        if (rc < 0)
                return err_wrap(err, "remove what is old");
        *ret_more = sqlite3_changes(store->db) == TRIM_AT_ONCE;
        return 0;
}
