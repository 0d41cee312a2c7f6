/*
 * store: what outlives the daemon, in one SQLite file (write-ahead log).
 *
 *   store       the file: opening, versions, what is old
 *   sql         statements and transactions
 *   secret      what is beside the file: the secret of its keys, and who has it open
 *   keys        API keys: who may ask, and for how much
 *   runs        the audit: one row for every run, and for a while its whole record
 *   idempotency answers that must not be made twice
 *
 * Everything here is called from the daemon's one thread and waits for the disk only where it says so; for another
 * process that changes something it waits two seconds at most.  A function
 * that changes something has changed it for good when it returns: after kill -9 at any moment the file is whole, and
 * has everything for which a function had returned 0.  (After a power failure the last second may be missing;
 * store_sync() is for what must not be.)
 *
 * Times are milliseconds since 1970 (UTC).  0 is never.  Texts are UTF-8.  Rows are copied into the arena that a
 * function is given.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "model/model.h"

struct settings;
struct store;

/*
 * Open the file, make it if it is missing (mode 0600, in a folder that is there), and bring it to the newest version.
 * Several processes may have it open.  Errors: CSN_E_SYSTEM; CSN_E_CONFIG (it is no store, a newer program made it, or the
 * file store.secret beside it is gone).
 */
int store_open(const char *path, struct store **ret, struct csn_error *err);
/* The store of these settings: caisson.db in settings_state_dir(), which is made. */
int store_open_default(const struct settings *settings, struct store **ret, struct csn_error *err);
void store_close(struct store *store);
/* Until it returns 0 a power failure may take what was changed last.  Waits for the disk. */
int store_sync(struct store *store, struct csn_error *err);

/* ---- keys (keys.c) ---- */

/*
 * A key is the text csn_ID_SECRET: 16 and 43 letters of base64url without - and _.  ID finds the row, and SECRET has
 * 256 random bits, so what is stored is the whole text's HMAC-SHA256 under a secret of this store, compared in constant
 * time.  A slow password hash protects secrets that can be guessed; these cannot, and every request would pay for it.
 */
#define KEY_TEXT_MAX 80
#define KEY_NAME_MAX 100
#define TENANT_MAX 64

enum key_scope {
        SCOPE_RUN = 1 << 0,            /* runs, and what belongs to them */
        SCOPE_CHECK = 1 << 1,          /* checks */
        SCOPE_READ = 1 << 2,           /* profiles, policies, one's own runs */
        SCOPE_FILES = 1 << 3,
        SCOPE_SANDBOXES = 1 << 4,
        SCOPE_METRICS = 1 << 5,        /* /metrics, which is about everybody */
        SCOPE_ADMIN = 1 << 6,          /* everything, of everybody */
};

struct store_key {
        char id[17];
        char *name;                    /* for people */
        char *tenant;                  /* for whom; keys of one tenant share everything */
        unsigned scopes;
        int64_t created_ms, expires_ms, revoked_ms, used_ms;   /* used_ms: to the minute */
        /* Quotas; 0: none but the engine's own. */
        uint64_t running_max;          /* runs at once */
        uint64_t queued_max;           /* runs that wait */
        uint64_t cpu_ms_per_day;       /* CPU time of runs that ended within 24 hours */
        uint64_t stored_bytes;         /* records and files that are kept */
};

/* The word of the i-th scope; NULL after the last. */
const char *scope_name(size_t i);
/* Scopes as people write them: "run,check".  Errors: CSN_E_INPUT (the text has the word, and those that there are). */
#define KEY_SCOPES_MAX 80
int scopes_parse(const char *text, unsigned *ret, struct csn_error *err);
void scopes_print(unsigned scopes, char *text, size_t size);

/*
 * Makes id, created_ms and secret; ret_text is the only place where the whole key ever stands.  Errors: CSN_E_INPUT with the
 * member that is wrong, CSN_E_SYSTEM.
 */
int keys_add(struct store *store, struct store_key *key, char ret_text[static KEY_TEXT_MAX], struct csn_error *err);
/*
 * Whose key this text is.  Errors: CSN_E_DENIED, the same for a key that was never there, has another secret, is revoked
 * or has expired, and after the same work.
 */
int keys_find(struct store *store, const char *text, struct arena *arena, struct store_key *ret, struct csn_error *err);
/* All, oldest first. */
int keys_list(struct store *store, struct arena *arena, struct store_key **ret, size_t *ret_n, struct csn_error *err);
/* Errors: CSN_E_INPUT: there is none of that id.  Harmless twice. */
int keys_revoke(struct store *store, const char *id, struct csn_error *err);

/* ---- runs (runs.c) ---- */

struct store_run {
        char *id;                      /* of the record */
        char *tenant, *key;            /* key: its id, or "" */
        char *task_id, *user;          /* of the request, or "" */
        char *language, *profile, *policy;
        char code_sha256[65];
        int status;                    /* enum status */
        int64_t exit_code;             /* -1: none */
        char *verdict;                 /* of the policy: "allow", "deny" or "" */
        char *boundary;                /* JSON of the record's boundary, or "" */
        int64_t started_ms, finished_ms;
        uint64_t cpu_ms, wall_ms, memory_peak_bytes;
};

/* A row of the audit, which has neither code nor output. */
int runs_add(struct store *store, const struct store_run *run, struct csn_error *err);

/* The whole record as JSON text, until expires_ms; it counts against the tenant's stored_bytes. */
int runs_keep(struct store *store, const char *id, const char *tenant, const char *record, size_t len, int64_t expires_ms, struct csn_error *err);
/* *ret_record is NULL where there is none of that id and tenant ("" is any tenant), or none any more. */
int runs_record(struct store *store, const char *id, const char *tenant, struct arena *arena, char **ret_record, size_t *ret_len, struct csn_error *err);
int runs_forget(struct store *store, const char *id, const char *tenant, bool *ret_there, struct csn_error *err);

/* Newest first, at most n of them, older than the run `before`.  A text that is "" or NULL is any. */
#define RUNS_LIST_MAX 10000
struct runs_filter {
        const char *tenant, *before, *task_id, *user;
        int status;                    /* -1: any */
        size_t n;                      /* RUNS_LIST_MAX at the most */
};
/* Errors: CSN_E_INPUT: there is no run `before`. */
int runs_list(struct store *store, const struct runs_filter *filter, struct arena *arena, struct store_run **ret, size_t *ret_n,
              struct csn_error *err);
/*
 * CPU time of a tenant's runs that finished in the minute of since_ms or later, and bytes of its records that are kept.
 * Both are sums that are kept up with each change, CPU time for two days, so this costs the same whatever there is.
 */
int runs_used(struct store *store, const char *tenant, int64_t since_ms, uint64_t *ret_cpu_ms, uint64_t *ret_bytes, struct csn_error *err);

/* ---- idempotency (idempotency.c) ---- */

enum idempotency_found { IDEMPOTENCY_NEW, IDEMPOTENCY_BUSY, IDEMPOTENCY_DONE, IDEMPOTENCY_OTHER };

/*
 * Take a name for a request: NEW, it is the caller's now; BUSY, it was taken and is not answered; DONE, with the answer;
 * OTHER, it was taken for another request (sha256 differs).  What was BUSY when a daemon died is NEW for the next one.
 */
struct idempotency {
        const char *tenant, *name;
        char sha256[65];
        int64_t expires_ms;
};
int idempotency_take(struct store *store, const struct idempotency *one, struct arena *arena, enum idempotency_found *ret, int *ret_http,
                     char **ret_answer, size_t *ret_len, struct csn_error *err);
/* Errors: CSN_E_INPUT: the name is not the caller's, or no more. */
int idempotency_answer(struct store *store, const struct idempotency *one, int http, const char *answer, size_t len, struct csn_error *err);
/* The request came to nothing and may be sent again. */
int idempotency_drop(struct store *store, const struct idempotency *one, struct csn_error *err);

/* ---- what is old (store.c) ---- */

/*
 * Remove what has expired: records, names of idempotency, rows of the audit older than audit_ms (0: none).  At most a few
 * thousand rows a call; *ret_more: there are more.  Waits for the disk, because it also moves the log into the file; without
 * a call now and then the log grows to 64 MiB before a change has to wait for that.
 */
int store_clean(struct store *store, uint64_t audit_ms, bool *ret_more, struct csn_error *err);

#endif
