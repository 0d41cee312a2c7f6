/*
 * Rows of the audit on their way from a worker to its gateway: as JSON, and into the gateway's store, which has the
 * position in each worker's audit.
 */
#include "store/sql.h"

#include <stdio.h>

/* The texts of a row, and the numbers. */
static const struct { const char *name; size_t at; } texts[] = {
        { "id", offsetof(struct store_run, id) },
        { "tenant", offsetof(struct store_run, tenant) },
        { "key", offsetof(struct store_run, key) },
        { "task_id", offsetof(struct store_run, task_id) },
        { "user", offsetof(struct store_run, user) },
        { "language", offsetof(struct store_run, language) },
        { "profile", offsetof(struct store_run, profile) },
        { "policy", offsetof(struct store_run, policy) },
        { "verdict", offsetof(struct store_run, verdict) },
        { "boundary", offsetof(struct store_run, boundary) },
        { "trace_id", offsetof(struct store_run, trace_id) },
}, numbers[] = {
        { "number", offsetof(struct store_run, number) },
        { "exit_code", offsetof(struct store_run, exit_code) },
        { "started_ms", offsetof(struct store_run, started_ms) },
        { "finished_ms", offsetof(struct store_run, finished_ms) },
        { "cpu_ms", offsetof(struct store_run, cpu_ms) },
        { "wall_ms", offsetof(struct store_run, wall_ms) },
        { "memory_peak_bytes", offsetof(struct store_run, memory_peak_bytes) },
};

json_t *runs_write_row(const struct store_run *run)
{
        json_t *json = json_pack("{s:s, s:s}", "code_sha256", run->code_sha256, "status", status_name(run->status));
        const char *base = (const char *)run;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                json_t *text = json_string(*(char *const *)(base + texts[i].at));
                json_object_set_new(json, texts[i].name, text ? text : json_string(""));
        }
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
                json_object_set_new(json, numbers[i].name,
                        json_integer((json_int_t) * (const int64_t *)(base + numbers[i].at)));
        return json;
}

bool runs_read_row(const json_t *json, struct arena *arena, struct store_run *ret)
{
        const char *hash = json_string_value(json_object_get(json, "code_sha256")),
                   *status = json_string_value(json_object_get(json, "status"));
        char *base = (char *)ret;
        *ret = (struct store_run){ .status = status_ENGINE_ERROR };   /* also for a status of a newer worker */
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                const char *text = json_string_value(json_object_get(json, texts[i].name));
                if (!text)
                        return false;
                *(char **)(base + texts[i].at) = arena_text(arena, "%s", text);
        }
        for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
                const json_t *number = json_object_get(json, numbers[i].name);
                if (!json_is_integer(number))
                        return false;
                *(int64_t *)(base + numbers[i].at) = json_integer_value(number);
        }
        for (size_t i = 0; status && i < choices_status.n; i++)
                if (strcmp(choices_status.values[i].text, status) == 0)
                        ret->status = (int)i;
        if (!hash || strlen(hash) >= sizeof ret->code_sha256 || !ret->id[0])
                return false;
        snprintf(ret->code_sha256, sizeof ret->code_sha256, "%s", hash);
        return true;
}

int pulled_position(struct store *store, const char *tag, int64_t *ret, struct csn_error *err)
{
        auto_rows rows = { 0 };
        *ret = 0;
        int rc = sql_open(store, &rows, err, "SELECT number FROM pulled WHERE tag = ?1", SQL_VALUES(sql_text(tag)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc > 0)
                *ret = sql_get_number(&rows, 0);
        return rc < 0 ? err_wrap(err, "read the position in the audit of worker %.20s", tag) : 0;
}

int pulled_add(struct store *store, const char *tag, const struct store_run *runs, size_t n, int64_t number,
        struct csn_error *err)
{
        int rc = sql_begin(store, err);
        if (rc < 0)
                return err_wrap(err, "add the audit of worker %.20s", tag);
        for (size_t i = 0; rc == 0 && i < n; i++)
                rc = runs_add_again(store, &runs[i], err);
        if (rc == 0)
                rc = sql_do(store, err, "INSERT OR REPLACE INTO pulled (tag, number, at_ms) VALUES (?1, ?2, ?3)",
                        SQL_VALUES(sql_text(tag), sql_number(number), sql_number(time_now_ms())));
        rc = sql_end(store, rc, err);
        return rc < 0 ? err_wrap(err, "add the audit of worker %.20s", tag) : 0;
}
