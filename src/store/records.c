/*
 * Stored records.  A short record is a column of its row.  A long record is a file in the folder `files`, because
 * SQLite would copy the text, and the transaction would hold up the loop; its row has an empty text.
 */
#include "store/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define RECORDS_AT_ONCE 100                /* each may have a megabyte, which is overwritten */

static void content_name(const char *id, char name[static RECORD_FILE_NAME_MAX])
{
        snprintf(name, RECORD_FILE_NAME_MAX, RECORD_FILE_PREFIX "%s", id);
}

/* ---- adding ---- */

struct row {
        const char *id, *tenant, *text;
        size_t len;                    /* bytes of the text */
        uint64_t bytes;                /* charged to the tenant */
        int64_t expires_ms;
};

static int insert(struct store *store, const void *given, struct csn_error *err)
{
        const struct row *row = given;
        return sql_do(store, err,
                "INSERT INTO records (id, tenant, expires_ms, bytes, record) VALUES (?1, ?2, ?3, ?4, ?5)",
                SQL_VALUES(sql_text(row->id), sql_text(row->tenant), sql_number(row->expires_ms), sql_count(row->bytes),
                        sql_bytes(SQLITE_TEXT, row->text, row->len)));
}

int runs_keep(struct store *store, const char *id, const char *tenant, const char *record, size_t len,
        int64_t expires_ms, struct csn_error *err)
{
        const struct row row = { .id = id, .tenant = tenant, .text = record, .len = len, .bytes = len,
                                 .expires_ms = expires_ms };
        if (store_has_room(store, err) < 0 || insert(store, &row, err) < 0)
                return err_wrap(err, "keep the record of the run %.60s", id);
        return 0;
}

int runs_keep_content(struct incoming *incoming, const char *id, int64_t expires_ms, struct csn_error *err)
{
        const struct row row = { .id = id, .tenant = incoming->tenant, .text = "",
                                 .bytes = incoming->size + STORE_ENTRY_BYTES, .expires_ms = expires_ms };
        char name[RECORD_FILE_NAME_MAX];
        if (strlen(id) > RECORD_ID_MAX)
                return err_field(err, "id", "the id of a run has at most %d bytes", RECORD_ID_MAX);
        content_name(id, name);
        if (store_has_room(incoming->store, err) < 0 || content_add(incoming, name, insert, &row, err) < 0)
                return err_wrap(err, "keep the record of the run %.60s", id);
        return 0;
}

/* ---- reading ---- */

/* After a power failure the file may be shorter than its row says: such a record does not exist any more. */
static int open_content(struct store *store, const char *id, uint64_t size, struct store_record *ret,
        struct csn_error *err)
{
        char name[RECORD_FILE_NAME_MAX];
        struct stat st;
        bool there;
        if (files_folder(store, err) < 0)
                return -err->code;
        content_name(id, name);
        auto_fd fd = openat(store->files_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno != ENOENT)
                return err_set(err, CSN_E_SYSTEM, errno, "open the record of the run %.60s", id);
        if (fd < 0 || fstat(fd, &st) < 0 || (uint64_t)st.st_size != size) {
                log_text(LOG_WARN, "the file with the record of %.60s is missing or too short; the record is removed",
                        id);
                return runs_forget(store, id, "", &there, err);
        }
        ret->fd = take_fd(&fd);
        ret->len = (size_t)size;
        return 0;
}

int runs_record(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_record *ret,
        struct csn_error *err)
{
        auto_rows rows = { 0 };
        *ret = (struct store_record){ .fd = -1 };
        int rc = sql_open(store, &rows, err,
                "SELECT record, bytes FROM records WHERE id = ?1 AND (?2 = '' OR tenant = ?2) AND "
                "(expires_ms = 0 OR expires_ms > ?3)",
                SQL_VALUES(sql_text(id), sql_text(tenant), sql_number(time_now_ms())));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "read the record of the run %.60s", id);
        if (rc == 0)
                return 0;
        ret->text = sql_get_bytes(&rows, 0, arena, &ret->len);
        uint64_t bytes = (uint64_t)sql_get_number(&rows, 1);
        if (ret->len || bytes < STORE_ENTRY_BYTES)
                return 0;
        ret->text = NULL;
        sql_done(&rows);
        return open_content(store, id, bytes - STORE_ENTRY_BYTES, ret, err);
}

/* ---- removing ---- */

int runs_forget(struct store *store, const char *id, const char *tenant, bool *ret_there, struct csn_error *err)
{
        char name[RECORD_FILE_NAME_MAX];
        int rc = files_folder(store, err);
        rc = rc < 0 ? rc : sql_do_surely(store, err, "DELETE FROM records WHERE id = ?1 AND (?2 = '' OR tenant = ?2)",
                                   SQL_VALUES(sql_text(id), sql_text(tenant)));
        if (rc < 0)
                return err_wrap(err, "forget the record of the run %.60s", id);
        *ret_there = sqlite3_changes(store->db) > 0;
        if (*ret_there) {
                content_name(id, name);
                content_remove(store, tenant, name);
        }
        return 0;
}

int records_clean(struct store *store, bool *ret_more, struct csn_error *err)
{
        return content_clean(store,
                "DELETE FROM records WHERE rowid IN (SELECT rowid FROM records WHERE expires_ms > 0 AND expires_ms <= ?1 LIMIT ?2) "
                "RETURNING '" RECORD_FILE_PREFIX "' || id", RECORDS_AT_ONCE, ret_more, err);
}
