/* Statements and transactions; for the files of this folder. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "store/store.h"

#include <sqlite3.h>

struct store {
        sqlite3 *db;
        char *path;
        int folder_fd;
        int version;               /* of the file's tables, when it was opened */
        uint8_t secret[32];        /* for the HMACs of keys; it is in a file of its own */
        int secret_fd;             /* holds a lock, which tells others that this opener lives */
        int64_t owner;             /* the byte that is locked */
        int files_fd;              /* the folder of what files contain, or -1: it was not needed yet */
        struct incoming *incoming; /* uploads that go on (files.c) */
        struct journal *journal;   /* runs that go on (journal.c); NULL: none did */
        int reserve_fd;            /* store.reserve (reserve.c), or -1: there is none */
        uint64_t reserve_bytes;    /* that it should have; 0: this opener does not look after it */
        bool opened;               /* from now on error texts may reach clients, and name no path */
};

/* ---- values of a statement's ?1, ?2, ... ---- */

struct sql_value {
        int type;                  /* SQLITE_INTEGER, SQLITE_TEXT or SQLITE_BLOB */
        int64_t number;
        const void *bytes;         /* they have to be there until the statement is done */
        size_t len;
};

static inline struct sql_value sql_number(int64_t number)
{
        return (struct sql_value){ .type = SQLITE_INTEGER, .number = number };
}

/* SQLite's numbers have a sign; counters of ours that are beyond them are cut. */
static inline struct sql_value sql_count(uint64_t count)
{
        return sql_number((int64_t)min_u64(count, INT64_MAX));
}

/* NULL is "". */
static inline struct sql_value sql_text(const char *text)
{
        text = text ? text : "";
        return (struct sql_value){ .type = SQLITE_TEXT, .bytes = text, .len = strlen(text) };
}

static inline struct sql_value sql_bytes(int type, const void *bytes, size_t len)
{
        return (struct sql_value){ .type = type, .bytes = len ? bytes : "", .len = len };
}

/* The last two arguments of the functions below. */
#define SQL_VALUES(...) \
        (const struct sql_value[]){ __VA_ARGS__ }, sizeof((const struct sql_value[]){ __VA_ARGS__ }) / sizeof(struct sql_value)

/* ---- statements ---- */

/*
 * Fill err with what SQLite says about what failed last, behind the path of the file.  Errors: CSN_E_CONFIG where the
 * file is no database; CSN_E_BUSY with err->sys ENOSPC where the disk is full; else CSN_E_SYSTEM.
 */
int sql_error(struct store *store, struct csn_error *err);

/* Statements without values, one after the other. */
int sql_script(struct store *store, const char *sql, struct csn_error *err);

/* A statement that gives no rows; sqlite3_changes(store->db) tells how many it changed. */
int sql_do(struct store *store, struct csn_error *err, const char *sql, const struct sql_value *values, size_t n);

/*
 * The same for what has to be done on a full disk, too: for removing, for the audit, and for the answer to a request that was taken.  It takes
 * room from the reserve.
 */
int sql_do_surely(struct store *store, struct csn_error *err, const char *sql, const struct sql_value *values, size_t n);
/* After the tries-th failure (from 0): whether it says that the disk is full, and there may be room now. */
bool sql_make_room(struct store *store, const struct csn_error *err, unsigned tries);

/* Rows of a statement.  All zeros is one that is done; while it is not, others cannot empty the log. */
struct sql_rows {
        struct store *store;
        sqlite3_stmt *statement;
};

int sql_open(struct store *store, struct sql_rows *ret, struct csn_error *err, const char *sql, const struct sql_value *values, size_t n);
int sql_next(struct sql_rows *rows, struct csn_error *err);   /* 1: there is a row, 0: no more, negative: an error */
void sql_done(struct sql_rows *rows);

#define auto_rows __attribute__((cleanup(sql_done))) struct sql_rows

/* Columns of the row; texts and bytes are copied. */
int64_t sql_get_number(struct sql_rows *rows, int column);
char *sql_get_text(struct sql_rows *rows, int column, struct arena *arena);
char *sql_get_bytes(struct sql_rows *rows, int column, struct arena *arena, size_t *ret_len);

/* ---- transactions ---- */

int sql_begin(struct store *store, struct csn_error *err);
/* Commit where rc is not negative, else roll back.  Returns rc, or the error of the commit. */
int sql_end(struct store *store, int rc, struct csn_error *err);

/* ---- the secret, and who is alive (secret.c) ---- */

/* Read store.secret, or make it where the store is new, and take the lock of this opener. */
int secret_open(struct store *store, struct csn_error *err);
bool secret_owner_lives(const struct store *store, int64_t owner);

/* ---- room for what must not fail (reserve.c) ---- */

void reserve_open(struct store *store);        /* where it is there */
uint64_t reserve_left(const struct store *store);
bool reserve_release(struct store *store);     /* false: nothing is left of it */

/* ---- runs that are not in the audit (journal.c) ---- */

void journal_over(struct store *store, const char *id);
/* Its row waits there for runs_retry().  Negative errno; -ENOENT: the run has no slot. */
int journal_keep(struct store *store, const struct store_run *run);
void journal_close(struct store *store);

/* After how many pages of the log SQLite moves it into the file by itself; while the disk is full, so that it does not grow. */
#define LOG_PAGES 16384                    /* of 4 KiB */
#define LOG_PAGES_FULL 32

/* The folder `files`, made if it is missing; the store's own. */
int files_folder(struct store *store, struct csn_error *err);

/* A new file of this store's folder for its owner alone, or -1 with errno.  What root makes belongs to the folder's owner. */
int store_make_file(const struct store *store, const char *name);

#endif
