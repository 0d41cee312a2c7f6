/* Statements and transactions, for the files of this folder. */
#ifndef STORE_SQL_H
#define STORE_SQL_H

#include "store/store.h"

#include <sqlite3.h>

struct store {
        sqlite3 *db;
        char *path;
        int folder_fd;
        int version;               /* version of the tables when the file was opened */
        uint8_t secret[32];        /* for the HMACs of keys; stored in store.secret */
        int secret_fd;             /* holds a lock as proof of life for other openers */
        int64_t owner;             /* the locked byte */
        int files_fd;              /* folder of the files' content; -1: not yet opened */
        struct incoming *incoming; /* uploads in progress (upload.c) */
        struct unsaved_cpu *unsaved;   /* CPU time that the database refused (cpu.c) */
        struct unsaved_usage *unsaved_usage;   /* usage of models that the database refused (usage.c) */
        struct journal *journal;   /* runs in progress (journal.c); NULL: none yet */
        int reserve_fd;            /* store.reserve (reserve.c); -1: not present */
        uint64_t reserve_bytes;    /* target size; 0: not managed by this opener */
        int log_pages_max;         /* pages of the write-ahead log at which a change checkpoints the log itself */
        int log_pages_due;         /* pages at which log_grew() is called next */
        void (*log_grew)(void *owner);   /* see store_set_log_listener(); NULL: no listener */
        void *log_owner;
        store_discard *discard; /* see store_set_discard(); NULL: content is removed at once */
        void *discard_owner;
        bool opened;               /* error texts may reach clients from now on: no paths */
};

/* ---- values of a statement's ?1, ?2, ... ---- */

struct sql_value {
        int type;                  /* SQLITE_INTEGER, SQLITE_TEXT or SQLITE_BLOB */
        int64_t number;
        const void *bytes;         /* borrowed until the statement is done */
        size_t len;
};

static inline struct sql_value sql_number(int64_t number)
{
        return (struct sql_value){ .type = SQLITE_INTEGER, .number = number };
}

/* SQLite's integers are signed; larger counters are capped. */
static inline struct sql_value sql_count(uint64_t count)
{
        return sql_number((int64_t)min_u64(count, INT64_MAX));
}

/* NULL becomes "". */
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
        (const struct sql_value[]){ __VA_ARGS__ }, \
                sizeof((const struct sql_value[]){ __VA_ARGS__ }) / sizeof(struct sql_value)

/* ---- statements ---- */

/*
 * Fill `err` from SQLite's last error, prefixed with the file's path.  Returns a negative code.  Errors:
 * CSN_E_CONFIG (the file is no database), CSN_E_BUSY with err->sys ENOSPC (disk full), else CSN_E_SYSTEM.  The
 * functions below have the same errors.
 */
int sql_error(struct store *store, struct csn_error *err);

/* Run statements without values, in order. */
int sql_script(struct store *store, const char *sql, struct csn_error *err);

/* Run a statement without rows; sqlite3_changes(store->db) is the number of changed rows. */
int sql_do(struct store *store, struct csn_error *err, const char *sql, const struct sql_value *values, size_t n);

/*
 * sql_do() for statements that must succeed on a full disk: deletions, the audit, the answer of an accepted
 * request.  Uses space of the reserve.
 */
int sql_do_surely(struct store *store, struct csn_error *err, const char *sql, const struct sql_value *values,
        size_t n);
/*
 * Call after failure number `tries` (from 0) of a statement.  On a full disk: checkpoint the log and, from the second
 * failure on, release space of the reserve.  False: a retry is useless (another error, or the reserve is empty).
 */
bool sql_make_room(struct store *store, const struct csn_error *err, unsigned tries);

/*
 * Rows of a statement.  All zeros: done.  An open statement prevents other connections from a checkpoint of the
 * log.
 */
struct sql_rows {
        struct store *store;
        sqlite3_stmt *statement;
};

int sql_open(struct store *store, struct sql_rows *ret, struct csn_error *err, const char *sql,
        const struct sql_value *values, size_t n);
int sql_next(struct sql_rows *rows, struct csn_error *err);   /* 1: a row, 0: no more rows, negative: an error */
void sql_done(struct sql_rows *rows);

#define auto_rows __attribute__((cleanup(sql_done))) struct sql_rows

/* Columns of the current row; texts and bytes are copied into `arena`. */
int64_t sql_get_number(struct sql_rows *rows, int column);
char *sql_get_text(struct sql_rows *rows, int column, struct arena *arena);
char *sql_get_bytes(struct sql_rows *rows, int column, struct arena *arena, size_t *ret_len);

/* ---- transactions ---- */

int sql_begin(struct store *store, struct csn_error *err);
/* Commit if rc is not negative, else roll back.  Returns rc, or the error of the commit. */
int sql_end(struct store *store, int rc, struct csn_error *err);

/* ---- the secret, and live openers (secret.c) ---- */

/*
 * Read store.secret, or make it for a new store, and take this opener's lock.  Errors: CSN_E_CONFIG (missing or
 * damaged), CSN_E_SYSTEM.
 */
int secret_open(struct store *store, struct csn_error *err);
/* Whether the opener with this number is alive. */
bool secret_owner_lives(const struct store *store, int64_t owner);

/* ---- reserved disk space (reserve.c) ---- */

void reserve_open(struct store *store);        /* if present */
uint64_t reserve_left(const struct store *store);
bool reserve_release(struct store *store);     /* false: the reserve is empty */

/* ---- runs (audit.c) ---- */

/* Add a row to the audit; an existing row with this id is an error.  runs_add() frees the journal slot, too. */
int audit_add(struct store *store, const struct store_run *run, struct csn_error *err);

/* ---- CPU time that the database refused (cpu.c) ---- */

/* The row of a run is lost: its CPU time counts, and is written later. */
void cpu_keep(struct store *store, const struct store_run *run);
/* The row of a run waits in the journal, and its CPU time counts; the row was written. */
void cpu_row_waits(struct store *store, const struct store_run *run);
void cpu_row_added(struct store *store, const struct store_run *run);
void cpu_retry(struct store *store);
void cpu_close(struct store *store);

/* ---- usage of models that the database refused (usage.c) ---- */

void usage_retry(struct store *store);
void usage_close(struct store *store);

/* ---- records (records.c) ---- */

/* Delete expired records, a limited number a call; *ret_more: more may have expired. */
int records_clean(struct store *store, bool *ret_more, struct csn_error *err);

/* ---- runs in progress (journal.c) ---- */

void journal_close(struct store *store);

/*
 * Pages of 4 KiB in the write-ahead log.  After each LOG_PAGES_DUE pages the store tells its listener that a checkpoint
 * is due.  At LOG_PAGES the change itself checkpoints the log.  LOG_PAGES_FULL replaces LOG_PAGES while the disk is
 * full, so that the log does not grow.
 */
#define LOG_PAGES_DUE 1000
#define LOG_PAGES 16384
#define LOG_PAGES_FULL 32

/* The folder `files`, made if missing; the descriptor belongs to the store.  Errors: CSN_E_SYSTEM. */
int files_folder(struct store *store, struct csn_error *err);

/*
 * Create a file in the store's folder with mode 0600.  A file made by root gets the folder's owner.  The
 * descriptor belongs to the caller; -1 with errno.
 */
int store_make_file(const struct store *store, const char *name);

#endif
