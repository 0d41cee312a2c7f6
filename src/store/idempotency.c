/* Answers of requests that must run once only: a client's name for a request, and its answer. */
#include "store/sql.h"

#include <stdio.h>

struct taken {
        bool there;
        bool same;                     /* request */
        bool answered;
        bool lives;                    /* the owner of the name */
        int http;
        char *answer;
        size_t len;
};

static int look_up(struct store *store, const struct idempotency *one, struct arena *arena, struct taken *ret,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        *ret = (struct taken){ 0 };
        int rc = sql_open(store, &rows, err, "SELECT sha256, owner, http, answer IS NOT NULL, answer FROM idempotency "
                          "WHERE tenant = ?1 AND name = ?2 AND (expires_ms = 0 OR expires_ms > ?3)",
                          SQL_VALUES(sql_text(one->tenant), sql_text(one->name), sql_number(time_now_ms())));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc <= 0)
                return rc;
        ret->there = true;
        ret->same = strcmp(sql_get_text(&rows, 0, arena), one->sha256) == 0;
        ret->lives = secret_owner_lives(store, sql_get_number(&rows, 1));
        ret->http = (int)sql_get_number(&rows, 2);
        ret->answered = sql_get_number(&rows, 3);
        if (ret->answered && ret->same)
                ret->answer = sql_get_bytes(&rows, 4, arena, &ret->len);
        return 0;
}

static enum idempotency_found judge(const struct taken *taken)
{
        if (!taken->there || (!taken->answered && !taken->lives))
                return IDEMPOTENCY_NEW;
        if (!taken->same)
                return IDEMPOTENCY_OTHER;
        return taken->answered ? IDEMPOTENCY_DONE : IDEMPOTENCY_BUSY;
}

int idempotency_take(struct store *store, const struct idempotency *one, struct arena *arena,
        enum idempotency_found *ret, int *ret_http, char **ret_answer, size_t *ret_len, struct csn_error *err)
{
        struct taken taken = { 0 };
        enum idempotency_found found = IDEMPOTENCY_NEW;
        int rc = sql_begin(store, err);
        if (rc == 0) {
                rc = look_up(store, one, arena, &taken, err);
                found = judge(&taken);
                if (rc == 0 && found == IDEMPOTENCY_NEW && store_has_room(store, err) < 0)
                        rc = -CSN_E_BUSY;
                if (rc == 0 && found == IDEMPOTENCY_NEW)
                        rc = sql_do(store, err,
                                "INSERT OR REPLACE INTO idempotency (tenant, name, sha256, owner, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
                                SQL_VALUES(sql_text(one->tenant), sql_text(one->name), sql_text(one->sha256),
                                        sql_number(store->owner), sql_number(one->expires_ms)));
                rc = sql_end(store, rc, err);
        }
        if (rc < 0)
                return err_wrap(err, "take the name %.100s", one->name);
        *ret = found;
        *ret_http = found == IDEMPOTENCY_DONE ? taken.http : 0;
        *ret_answer = found == IDEMPOTENCY_DONE ? taken.answer : NULL;
        *ret_len = found == IDEMPOTENCY_DONE ? taken.len : 0;
        return 0;
}

int idempotency_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        enum idempotency_found *ret, int *ret_http, char **ret_answer, size_t *ret_len, struct csn_error *err)
{
        struct taken taken = { 0 };
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT sha256 FROM idempotency WHERE tenant = ?1 AND name = ?2",
                SQL_VALUES(sql_text(tenant), sql_text(name)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc > 0) {
                struct idempotency one = { .tenant = tenant, .name = name };
                snprintf(one.sha256, sizeof one.sha256, "%s", sql_get_text(&rows, 0, arena));
                rc = look_up(store, &one, arena, &taken, err);
        }
        if (rc < 0)
                return err_wrap(err, "look for the name %.100s", name);
        *ret = judge(&taken);
        *ret_http = taken.http;
        *ret_answer = taken.answer;
        *ret_len = taken.len;
        return 0;
}

int idempotency_answer(struct store *store, const struct idempotency *one, int http, const char *answer, size_t len,
        struct csn_error *err)
{
        int64_t owner = one->owner ? one->owner : store->owner;
        int rc = sql_do_surely(store, err,
                "UPDATE idempotency SET http = ?5, answer = ?6, expires_ms = ?7 "
                "WHERE tenant = ?1 AND name = ?2 AND sha256 = ?3 AND owner = ?4 AND answer IS NULL",
                SQL_VALUES(sql_text(one->tenant), sql_text(one->name), sql_text(one->sha256), sql_number(owner),
                        sql_number(http), sql_bytes(SQLITE_BLOB, answer, len), sql_number(one->expires_ms)));
        if (rc < 0)
                return err_wrap(err, "keep the answer of %.100s", one->name);
        if (sqlite3_changes(store->db) == 0)
                return err_set(err, CSN_E_INPUT, 0, "the name %.100s is not taken for this request", one->name);
        return 0;
}

int idempotency_drop(struct store *store, const struct idempotency *one, struct csn_error *err)
{
        int rc = sql_do_surely(store, err,
                "DELETE FROM idempotency WHERE tenant = ?1 AND name = ?2 AND sha256 = ?3 AND owner = ?4 AND answer IS NULL",
                SQL_VALUES(sql_text(one->tenant), sql_text(one->name), sql_text(one->sha256),
                        sql_number(store->owner)));
        return rc < 0 ? err_wrap(err, "give back the name %.100s", one->name) : 0;
}
