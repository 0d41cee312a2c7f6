/*
 * Stored files.  The content is in the folder `files` beside the database, under the file's id; SQLite would have
 * to copy the content and hold the whole content in memory.  Long records are in the same folder (records.c).  Adding
 * the row and naming the content is one transaction.  A crash can leave content without a row; the search for such
 * content runs in a transaction, too.
 */
#include "store/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define CLEAN_AT_ONCE 50 /* rows of a call: 2 ms */
#define ID_PREFIX "file_"
#define ID_DIGITS 32

static bool is_id(const char *text)
{
        size_t len = strlen(ID_PREFIX);
        return strncmp(text, ID_PREFIX, len) == 0 && strlen(text) == len + ID_DIGITS &&
                strspn(text + len, "0123456789abcdef") == ID_DIGITS;
}

int files_check_name(const char *name, size_t len, struct csn_error *err)
{
        if (len == 0 || len > FILE_NAME_BYTES_MAX)
                return err_field(err, "name",
                        "a file's name has 1 to %d bytes, and this one %zu; give ?name=", FILE_NAME_BYTES_MAX, len);
        if (memchr(name, '/', len) || memchr(name, 0, len) || (len == 1 && name[0] == '.') ||
                (len == 2 && memcmp(name, "..", 2) == 0))
                return err_field(err, "name", "a file's name has no slash and no NUL, and is neither . nor ..");
        return 0;
}

/* ---- adding ---- */

void files_make_id(char id[static FILE_ID_MAX])
{
        snprintf(id, FILE_ID_MAX, ID_PREFIX);
        id_new(id + strlen(ID_PREFIX));
}

void files_make_compact_id(char id[static FILE_ID_MAX])
{
        snprintf(id, FILE_ID_MAX, ID_PREFIX);
        id_new_compact(id + strlen(ID_PREFIX));
}

static int insert(struct store *store, const void *row, struct csn_error *err)
{
        const struct store_file *file = row;
        return sql_do(store, err,
                "INSERT INTO files (id, tenant, name, size, sha256, mime, run, user, created_ms, expires_ms, bytes) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                SQL_VALUES(sql_text(file->id), sql_text(file->tenant),
                        sql_bytes(SQLITE_BLOB, file->name, strlen(file->name)), sql_count(file->size),
                        sql_text(file->sha256), sql_text(file->mime), sql_text(file->run), sql_text(file->user),
                        sql_number(file->created_ms), sql_number(file->expires_ms),
                        sql_count(file->size + STORE_ENTRY_BYTES)));
}

int content_add(struct incoming *incoming, const char *name, content_insert *add, const void *row,
        struct csn_error *err)
{
        struct store *store = incoming->store;
        int rc = sql_begin(store, err);
        if (rc < 0)
                return rc;
        rc = room_check(store, incoming->tenant, &incoming->room, incoming, incoming->size + STORE_ENTRY_BYTES, err);
        rc = rc < 0 ? rc : add(store, row, err);
        bool added = rc == 0;
        if (added && incoming_name(incoming, name) < 0)
                rc = err_set(err, CSN_E_SYSTEM, errno, "name the content");
        rc = sql_end(store, rc, err);
        if (rc < 0 && added && !incoming->name[0])
                unlinkat(store->files_fd, name, 0);
        return rc;
}

int files_add(struct incoming *incoming, struct store_file *file, struct csn_error *err)
{
        struct store_file new = *file;
        int rc = files_check_name(new.name, strlen(new.name), err);
        rc = rc < 0 ? rc : incoming_digest(incoming, new.sha256, err);
        if (rc < 0)
                return rc;
        if (!new.id[0])
                files_make_id(new.id);
        new.tenant = incoming->tenant;
        new.size = incoming->size;
        new.created_ms = time_now_ms();
        rc = content_add(incoming, new.id, insert, &new, err);
        if (rc < 0)
                return rc;
        new.tenant = file->tenant;
        *file = new;
        return 0;
}

/* ---- reading ---- */

#define COLUMNS "id, tenant, name, size, sha256, mime, run, user, created_ms, expires_ms, number"

static void read_file(struct sql_rows *rows, struct arena *arena, struct store_file *ret)
{
        *ret = (struct store_file){
                .tenant = sql_get_text(rows, 1, arena),
                .name = sql_get_text(rows, 2, arena),
                .size = (uint64_t)sql_get_number(rows, 3),
                .mime = sql_get_text(rows, 5, arena),
                .run = sql_get_text(rows, 6, arena),
                .user = sql_get_text(rows, 7, arena),
                .created_ms = sql_get_number(rows, 8),
                .expires_ms = sql_get_number(rows, 9),
                .number = sql_get_number(rows, 10),
        };
        snprintf(ret->id, sizeof ret->id, "%s", sql_get_text(rows, 0, arena));
        snprintf(ret->sha256, sizeof ret->sha256, "%s", sql_get_text(rows, 4, arena));
}

int files_find(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_file *ret,
        bool *ret_there, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err,
                "SELECT " COLUMNS " FROM files WHERE id = ?1 AND tenant = ?2 AND (expires_ms = 0 OR expires_ms > ?3)",
                SQL_VALUES(sql_text(id), sql_text(tenant), sql_number(time_now_ms())));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "look for the file %.60s", id);
        *ret_there = rc > 0;
        if (rc > 0)
                read_file(&rows, arena, ret);
        return 0;
}

int files_content(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_file *ret,
        int *ret_fd, bool *ret_there, struct csn_error *err)
{
        bool there = false;
        struct stat st;
        if (files_folder(store, err) < 0 || files_find(store, id, tenant, arena, ret, &there, err) < 0)
                return -err->code;
        *ret_there = there;
        if (!there)
                return 0;
        auto_fd fd = openat(store->files_fd, ret->id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        bool lost = fd < 0 && errno == ENOENT;
        if (fd >= 0)   /* written without fsync(2): a power failure may have cut the content */
                lost = fstat(fd, &st) < 0 || (uint64_t)st.st_size != ret->size;
        if (lost) {
                log_text(LOG_WARN, "the content of %s is gone, and so is the file", ret->id);
                return files_forget(store, id, tenant, ret_there, err) < 0 ? -err->code : (*ret_there = false, 0);
        }
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the content of %s", ret->id);
        *ret_fd = take_fd(&fd);
        return 0;
}

/* ---- lists ---- */

static bool given(const char *text)
{
        return text && text[0];
}

static int number_before(struct store *store, const struct files_filter *filter, int64_t *ret, struct csn_error *err)
{
        auto_rows rows = { 0 };
        *ret = INT64_MAX;
        if (!given(filter->before))
                return 0;
        int rc = sql_open(store, &rows, err, "SELECT number FROM files WHERE id = ?1 AND tenant = ?2",
                          SQL_VALUES(sql_text(filter->before), sql_text(filter->tenant)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc == 0)
                return err_field(err, "before", "file \"%.60s\" does not exist or has expired", filter->before);
        if (rc > 0)
                *ret = sql_get_number(&rows, 0);
        return rc < 0 ? rc : 0;
}

int files_of(struct store *store, const struct files_filter *filter, struct arena *arena, struct store_file **ret,
        size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int64_t before;
        size_t n = 0, most = min_u64(filter->n, FILES_LIST_MAX + 1);
        if (number_before(store, filter, &before, err) < 0)
                return -err->code;
        if (filter->below && filter->below < before)
                before = filter->below;
        struct store_file *files = arena_alloc(arena, (most + 1) * sizeof *files);
        int rc = sql_open(store, &rows, err,
                "SELECT " COLUMNS " FROM files WHERE tenant = ?1 AND number < ?2 AND (?3 = '' OR run = ?3) AND "
                "(?4 = '' OR user = ?4) AND (expires_ms = 0 OR expires_ms > ?5) ORDER BY number DESC LIMIT ?6",
                SQL_VALUES(sql_text(filter->tenant), sql_number(before), sql_text(filter->run), sql_text(filter->user),
                        sql_number(time_now_ms()), sql_count(most)));
        while (rc >= 0 && (rc = sql_next(&rows, err)) > 0)
                read_file(&rows, arena, &files[n++]);
        if (rc < 0)
                return err_wrap(err, "list files");
        *ret = files;
        *ret_n = n;
        return 0;
}

/* ---- removing ---- */

/* The row first: a crash in between leaves content without a row. */
int files_forget(struct store *store, const char *id, const char *tenant, bool *ret_there, struct csn_error *err)
{
        if (files_folder(store, err) < 0 ||
                sql_do_surely(store, err,
                        "DELETE FROM files WHERE id = ?1 AND tenant = ?2 AND (expires_ms = 0 OR expires_ms > ?3)",
                        SQL_VALUES(sql_text(id), sql_text(tenant), sql_number(time_now_ms()))) < 0)
                return err_wrap(err, "remove the file %.60s", id);
        *ret_there = sqlite3_changes(store->db) > 0;
        if (*ret_there)
                content_remove(store, tenant, id);
        store_has_room(store, NULL);   /* there may be room for the reserve now */
        return 0;
}

static int take_expired(struct store *store, const char *sql, struct arena *arena, char **names, size_t most,
        size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        size_t n = 0;
        int rc = sql_open(store, &rows, err, sql, SQL_VALUES(sql_number(time_now_ms()), sql_count(most)));
        while (rc >= 0 && (rc = sql_next(&rows, err)) > 0)
                if (n < most)
                        names[n++] = sql_get_text(&rows, 0, arena);
        *ret_n = n;
        return rc;
}

int content_clean(struct store *store, const char *sql, size_t most, bool *ret_more, struct csn_error *err)
{
        struct arena arena = { 0 };
        char **names = arena_alloc(&arena, most * sizeof *names);
        size_t n = 0;
        int rc = files_folder(store, err);
        if (rc == 0) {
                unsigned tries = 0;
                do
                        rc = take_expired(store, sql, &arena, names, most, &n, err);
                while (rc < 0 && sql_make_room(store, err, tries++));
        }
        for (size_t i = 0; rc == 0 && i < n; i++)
                content_remove(store, "", names[i]);
        arena_done(&arena);
        *ret_more = n == most;
        return rc;
}

int files_clean(struct store *store, bool *ret_more, struct csn_error *err)
{
        int rc = content_clean(store,
                "DELETE FROM files WHERE number IN (SELECT number FROM files WHERE expires_ms > 0 AND expires_ms <= ?1 LIMIT ?2) "
                "RETURNING id", CLEAN_AT_ONCE, ret_more, err);
        return rc < 0 ? err_wrap(err, "remove files that have expired") : 0;
}

/* Content of the folder, by the begin of its name. */
static const struct content_kind {
        const char *prefix, *sql;
        size_t skipped;                    /* bytes of the name before the id in the row */
} content_kinds[] = {
        { ID_PREFIX, "SELECT 1 FROM files WHERE id = ?1", 0 },
        { RECORD_FILE_PREFIX, "SELECT 1 FROM records WHERE id = ?1", sizeof RECORD_FILE_PREFIX - 1 },
        { PROBLEMS_FILE_PREFIX, "SELECT 1 FROM problem_sets WHERE id = ?1", sizeof PROBLEMS_FILE_PREFIX - 1 },
};

/* NULL: the name belongs to no content. */
static const struct content_kind *kind_of(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(content_kinds); i++)
                if (strncmp(name, content_kinds[i].prefix, strlen(content_kinds[i].prefix)) == 0)
                        return i > 0 || is_id(name) ? &content_kinds[i] : NULL;
        return NULL;
}

/* Whether a content of this name belongs to a row. */
static int has_row(struct store *store, const char *name, bool *ret, struct csn_error *err)
{
        auto_rows rows = { 0 };
        const struct content_kind *kind = kind_of(name);
        int rc = sql_open(store, &rows, err, kind->sql, SQL_VALUES(sql_text(name + kind->skipped)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        *ret = rc > 0;
        return rc < 0 ? rc : 0;
}

/* The second check is in a transaction, and so waits for a writer with an uncommitted row. */
static int sweep_content(struct store *store, const char *name, size_t *gone, struct csn_error *err)
{
        bool known = true;
        int rc = has_row(store, name, &known, err);
        if (rc < 0 || known)
                return rc;
        rc = sql_begin(store, err);
        if (rc < 0)
                return rc;
        rc = has_row(store, name, &known, err);
        if (rc == 0 && !known && unlinkat(store->files_fd, name, 0) == 0)
                (*gone)++;
        return sql_end(store, rc, err);
}

static bool is_left(const struct store *store, const char *name)
{
        size_t len = strlen(INCOMING_PREFIX);
        char *end;
        if (strncmp(name, INCOMING_PREFIX, len) != 0)
                return false;
        unsigned long long owner = strtoull(name + len, &end, 16);
        return *end == '.' && !secret_owner_lives(store, (int64_t)owner);
}

int files_sweep(struct store *store, size_t *ret_gone, struct csn_error *err)
{
        size_t gone = 0;
        int rc = files_folder(store, err);
        int copy = rc < 0 ? -1 : openat(store->files_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                fd_close(&copy);
                return rc < 0 ? rc : err_set(err, CSN_E_SYSTEM, errno, "read the folder of files");
        }
        for (struct dirent *entry = readdir(dir); entry && rc == 0; entry = readdir(dir)) {
                if (kind_of(entry->d_name))
                        rc = sweep_content(store, entry->d_name, &gone, err);
                else if (is_left(store, entry->d_name) && unlinkat(store->files_fd, entry->d_name, 0) == 0)
                        gone++;
        }
        closedir(dir);
        *ret_gone = gone;
        return rc;
}
