/*
 * The CPU time of tenants: sums by minute in the table cpu_used, and charges refused by the database.
 *
 * A trigger adds the CPU time of each row of the audit.  On a full disk the database refuses charges and rows; their
 * CPU time is counted in memory until runs_retry() has written the rows.
 */
#include "store/sql.h"

struct unsaved_cpu {
        struct unsaved_cpu *next;
        int64_t minute;
        uint64_t cpu_ms;               /* to be written by cpu_retry() */
        uint64_t rows_ms;              /* of rows waiting in the journal */
        char tenant[];
};

static int add(struct store *store, const char *tenant, int64_t minute, uint64_t cpu_ms, struct csn_error *err)
{
        return sql_do_surely(store, err,
                "INSERT INTO cpu_used VALUES (?1, ?2, ?3) ON CONFLICT (tenant, minute) DO UPDATE SET cpu_ms = cpu_ms + excluded.cpu_ms",
                SQL_VALUES(sql_text(tenant), sql_number(minute), sql_count(cpu_ms)));
}

/* ---- refused charges ---- */

static struct unsaved_cpu *unsaved(struct store *store, const char *tenant, int64_t minute)
{
        struct unsaved_cpu *one = store->unsaved;
        while (one && (one->minute != minute || strcmp(one->tenant, tenant) != 0))
                one = one->next;
        if (one)
                return one;
        size_t size = strlen(tenant) + 1;
        one = mem_alloc(sizeof *one + size);
        one->next = store->unsaved;
        one->minute = minute;
        memcpy(one->tenant, tenant, size);
        return store->unsaved = one;
}

void cpu_keep(struct store *store, const struct store_run *run)
{
        unsaved(store, run->tenant, run->finished_ms / 60000)->cpu_ms += run->cpu_ms;
}

void cpu_row_waits(struct store *store, const struct store_run *run)
{
        unsaved(store, run->tenant, run->finished_ms / 60000)->rows_ms += run->cpu_ms;
}

void cpu_row_added(struct store *store, const struct store_run *run)
{
        struct unsaved_cpu *one = unsaved(store, run->tenant, run->finished_ms / 60000);
        one->rows_ms -= min_u64(one->rows_ms, run->cpu_ms);
}

void cpu_retry(struct store *store)
{
        for (struct unsaved_cpu **at = &store->unsaved, *one; (one = *at);) {
                if (one->cpu_ms && add(store, one->tenant, one->minute, one->cpu_ms, NULL) < 0)
                        return;            /* further rows would fail, too */
                one->cpu_ms = 0;
                if (one->rows_ms) {
                        at = &one->next;
                        continue;
                }
                *at = one->next;
                free(one);
        }
}

void cpu_close(struct store *store)
{
        for (struct unsaved_cpu *one = store->unsaved, *next; one; one = next) {
                next = one->next;
                free(one);
        }
        store->unsaved = NULL;
}

static uint64_t unsaved_ms(const struct store *store, const char *tenant, int64_t minute)
{
        uint64_t sum_ms = 0;
        for (const struct unsaved_cpu *one = store->unsaved; one; one = one->next)
                if (one->minute >= minute && strcmp(one->tenant, tenant) == 0)
                        sum_ms += one->cpu_ms + one->rows_ms;
        return sum_ms;
}

/* ---- public functions ---- */

int runs_add_cpu(struct store *store, const char *tenant, int64_t at_ms, uint64_t cpu_ms, struct csn_error *err)
{
        if (add(store, tenant, at_ms / 60000, cpu_ms, err) == 0)
                return 0;
        unsaved(store, tenant, at_ms / 60000)->cpu_ms += cpu_ms;
        return err_wrap(err, "add what %.64s used", tenant);
}

int runs_used(struct store *store, const char *tenant, int64_t since_ms, uint64_t *ret_cpu_ms, uint64_t *ret_bytes,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err,
                "SELECT (SELECT sum(cpu_ms) FROM cpu_used WHERE tenant = ?1 AND minute >= ?2), "
                "(SELECT bytes FROM bytes_kept WHERE tenant = ?1)",
                SQL_VALUES(sql_text(tenant), sql_number(since_ms / 60000)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "add up what %.64s used", tenant);
        *ret_cpu_ms = (uint64_t)sql_get_number(&rows, 0) + unsaved_ms(store, tenant, since_ms / 60000);
        *ret_bytes = (uint64_t)sql_get_number(&rows, 1);
        return 0;
}

int runs_used_until(struct store *store, const char *tenant, int64_t since_ms, uint64_t cpu_ms, int64_t *ret_ms,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        /* The newest minute from which the sum up to now is too much: this minute has to go. */
        int rc = sql_open(store, &rows, err,
                "SELECT coalesce(max(minute) + 1, 0) FROM (SELECT minute, sum(cpu_ms) OVER (ORDER BY minute DESC) AS used "
                "FROM cpu_used WHERE tenant = ?1 AND minute >= ?2) WHERE used >= ?3",
                SQL_VALUES(sql_text(tenant), sql_number(since_ms / 60000), sql_count(cpu_ms)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "add up what %.64s used", tenant);
        *ret_ms = sql_get_number(&rows, 0) * 60000;
        return 0;
}
