/*
 * store: what outlives the daemon, in one SQLite file (write-ahead log).
 *
 *   store       the file: opening, versions, what is old
 *   sql         statements and transactions
 *   secret      what is beside the file: the secret of its keys, and who has it open
 *   keys        API keys: who may ask, and for how much
 *   runs        the audit: one row for every run, and for a while its whole record
 *   journal     runs that go on, so that none is forgotten when the daemon is killed
 *   reserve     room on the disk for removing and for the audit
 *   idempotency answers that must not be made twice
 *   files       files that are kept: a row each, and their content in a folder beside the database
 *   workspaces  whose folder is which, and what it takes
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
/* A folder beside the file, made for its owner alone if it is missing.  Errors: CSN_E_SYSTEM. */
int store_folder(const struct store *store, const char *name, int *ret_fd, struct csn_error *err);
/*
 * Keep so many bytes of the disk for removing and for the audit.  Errors: CSN_E_BUSY: the disk is full, and there is a part of them or nothing;
 * CSN_E_SYSTEM.
 */
int store_set_reserve(struct store *store, uint64_t bytes, struct csn_error *err);
/* Whether there is room for more than that.  Errors: CSN_E_BUSY with err->sys ENOSPC or EDQUOT. */
int store_has_room(struct store *store, struct csn_error *err);
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
        SCOPE_TOOLS = 1 << 7,          /* runs and sandboxes may call the daemon's tools */
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
        uint64_t cpu_ms_per_day;       /* CPU time within 24 hours, of runs and in sandboxes */
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

/* ---- runs (audit.c) ---- */

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
        char *trace_id;                /* of the request (W3C Trace Context), or "" */
};

/*
 * A row of the audit, which has neither code nor output.  Where the database cannot take it, it stays in the journal if the run has its place
 * there, and store_clean() tries again.
 */
int runs_add(struct store *store, const struct store_run *run, struct csn_error *err);
/* Only into the audit; one of that id that is there is left as it is. */
int runs_add_again(struct store *store, const struct store_run *run, struct csn_error *err);

/* ---- runs that go on (journal.c) ---- */

struct idempotency {
        const char *tenant, *name;
        char sha256[65];
        int64_t expires_ms;
        int64_t owner;                 /* the opener of the store that took it; 0: this one */
};

/*
 * A run has its place in the journal from here on until runs_add(); it waits for no disk.  name: that of its request, or NULL.  kept: it was
 * accepted, and is asked for later.  Errors: CSN_E_BUSY: there is no room for that, and it should not begin.
 */
int runs_begin(struct store *store, const struct store_run *run, const struct idempotency *name, bool kept, struct csn_error *err);
/* Its code_sha256 as it was told then; NULL: it did not begin.  Good until another begins. */
const char *runs_begun_code(const struct store *store, const char *id);
/* Whether another one could. */
int runs_can_begin(struct store *store, struct csn_error *err);
/* Rows that the database did not take. */
void runs_retry(struct store *store);

/* A run that went on when an opener of the store died, or was over then and is not in the audit. */
struct run_left {
        struct store_run run;
        bool ended;                    /* its row is whole */
        bool kept;
        struct idempotency name;       /* name "": it had none */
};
/* All of them, once; `left` may be called again for one where something failed. */
int runs_recover(struct store *store, int (*left)(void *owner, const struct run_left *one, struct csn_error *err), void *owner, size_t *ret_n,
                 struct csn_error *err);

/* CPU time that a tenant used in something that is no run. */
int runs_add_cpu(struct store *store, const char *tenant, int64_t at_ms, uint64_t cpu_ms, struct csn_error *err);

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
 * CPU time of a tenant's runs that finished in the minute of since_ms or later, and bytes of what is kept of it.
 * Both are sums that are kept up with each change, CPU time for two days, so this costs the same whatever there is.
 */
int runs_used(struct store *store, const char *tenant, int64_t since_ms, uint64_t *ret_cpu_ms, uint64_t *ret_bytes, struct csn_error *err);

/*
 * When a tenant that used too much is below `cpu_ms` again, if it uses nothing more: as soon as what finished before
 * *ret_ms does not count.  0: it is below.
 */
int runs_used_until(struct store *store, const char *tenant, int64_t since_ms, uint64_t cpu_ms, int64_t *ret_ms, struct csn_error *err);

/* ---- idempotency (idempotency.c) ---- */

enum idempotency_found { IDEMPOTENCY_NEW, IDEMPOTENCY_BUSY, IDEMPOTENCY_DONE, IDEMPOTENCY_OTHER };

/*
 * Take a name for a request: NEW, it is the caller's now; BUSY, it was taken and is not answered; DONE, with the answer;
 * OTHER, it was taken for another request (sha256 differs).  What was BUSY when a daemon died is NEW for the next one.
 */
int idempotency_take(struct store *store, const struct idempotency *one, struct arena *arena, enum idempotency_found *ret, int *ret_http,
                     char **ret_answer, size_t *ret_len, struct csn_error *err);
/* Errors: CSN_E_INPUT: the name is not the caller's, or no more. */
int idempotency_answer(struct store *store, const struct idempotency *one, int http, const char *answer, size_t len, struct csn_error *err);
/* The request came to nothing and may be sent again. */
int idempotency_drop(struct store *store, const struct idempotency *one, struct csn_error *err);

/* ---- how much is kept (files.c) ---- */

/* What is kept costs this much besides its bytes, for its name and its place; so empty files are bounded, too. */
#define STORE_ENTRY_BYTES 512

/* How much may be kept; 0: no limit. */
struct store_room {
        uint64_t file_max;             /* bytes of one file */
        uint64_t tenant_max;           /* of all that is kept of a tenant */
        uint64_t all_max;              /* of all tenants */
};

/* Bytes that may still be added, with uploads that go on already taken off; UINT64_MAX: no limit. */
int store_room_left(struct store *store, const char *tenant, const struct store_room *room, uint64_t *ret, struct csn_error *err);
/* Whether there is room for a file of so many bytes.  Errors: as incoming_add(). */
int store_room_check(struct store *store, const char *tenant, const struct store_room *room, uint64_t size, struct csn_error *err);

/* ---- files (files.c) ---- */

#define FILE_ID_MAX 40
#define FILE_NAME_BYTES_MAX 255

struct store_file {
        char id[FILE_ID_MAX];          /* "file_" and 32 hex digits: 128 random bits, so nobody finds one by trying */
        char *tenant;
        char *name;                    /* any bytes that Linux allows in a name, so it may not be UTF-8 */
        uint64_t size;
        char sha256[65];
        char *mime;
        char *run, *user;              /* that made it, for whom; or "" */
        int64_t created_ms, expires_ms;
        int64_t number;                /* later ones have a higher one */
};

/*
 * What is on its way into the store: a file under a name of its own, which is gone with its opener.  Errors of adding, with
 * err->sys and the numbers in the text: EFBIG, the file is larger than one may be; EDQUOT, its tenant has too much; ENOSPC,
 * all have, or the disk is full.
 */
struct incoming;
int incoming_open(struct store *store, const char *tenant, const struct store_room *room, struct incoming **ret, struct csn_error *err);
int incoming_add(struct incoming *incoming, const void *bytes, size_t len, struct csn_error *err);
uint64_t incoming_size(const struct incoming *incoming);
/* What it has so far becomes the file `name` of another folder of the same file system, and replaces one that is there.  -1 with errno. */
int incoming_move(struct incoming *incoming, int dir_fd, const char *name);
/* Harmless for NULL.  What was not kept or moved is gone. */
void incoming_close(struct incoming *incoming);

/* Whether Linux could have a file of this name.  Errors: CSN_E_INPUT, field name. */
int files_check_name(const char *name, size_t len, struct csn_error *err);
/*
 * What came is a file from now on: makes id, size, sha256, created_ms and takes the rest from *file.  Content without a row
 * can be left behind by a crash, and files_sweep() removes it; a row without content cannot.  Errors: as incoming_add();
 * the incoming one is still to be closed.
 */
int files_add(struct incoming *incoming, struct store_file *file, struct csn_error *err);
/* A tenant's file.  *ret_there is false in the same way for one that never was, is another's, or has expired. */
int files_find(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_file *ret, bool *ret_there,
               struct csn_error *err);
/* The same, and its content for reading.  A row goes whose content somebody took away, or a power failure. */
int files_content(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_file *ret, int *ret_fd, bool *ret_there,
                  struct csn_error *err);
int files_forget(struct store *store, const char *id, const char *tenant, bool *ret_there, struct csn_error *err);

/* A tenant's, newest first, older than the file `before` and of a number below `below`.  Texts that are NULL or "" are any, and so is 0. */
#define FILES_LIST_MAX 1000
struct files_filter {
        const char *tenant, *before, *run, *user;
        int64_t below;
        size_t n;                      /* FILES_LIST_MAX + 1 at the most, so that it is known whether there are more */
};
/* Errors: CSN_E_INPUT: there is no file `before`. */
int files_of(struct store *store, const struct files_filter *filter, struct arena *arena, struct store_file **ret, size_t *ret_n,
             struct csn_error *err);
/* Remove what has expired, some of it a call. */
int files_clean(struct store *store, bool *ret_more, struct csn_error *err);
/* Remove what openers that are dead left in the folder: uploads that did not end, and content without a row. */
int files_sweep(struct store *store, size_t *ret_gone, struct csn_error *err);

/* ---- workspaces (workspaces.c) ---- */

#define WORKSPACE_ID_MAX 72
#define WORKSPACE_NAME_MAX 255
#define WORKSPACE_USER_MAX 1024

struct store_workspace {
        char id[WORKSPACE_ID_MAX];     /* "ws_" and 64 hex digits; the name of its folder */
        char *tenant, *user, *name;
        uint64_t bytes;
        int64_t created_ms, used_ms;
        int64_t number;                /* later ones have a higher one */
};

/*
 * The id of a tenant's workspace of a user: SHA-256 over the SHA-256 of each of the three.  Each of these has one length,
 * so no two triples become the same bytes ("a", "b/c" and "a/b", "c"), and ids of two differ as surely as SHA-256 has no
 * collisions; and whatever a user is called ("..", "a/b", ""), a folder's name has letters and digits only.
 */
void workspaces_id(const char *tenant, const char *user, const char *name, char ret[static WORKSPACE_ID_MAX]);
/* It is used now, and is made if it is new; until workspaces_note() what it takes is not known. */
int workspaces_use(struct store *store, const char *tenant, const char *user, const char *name, struct csn_error *err);
/* What it takes, now that it is not used any more. */
int workspaces_note(struct store *store, const char *id, uint64_t bytes, struct csn_error *err);
/* A tenant's; in the same way there is none where it is another's. */
int workspaces_find(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_workspace *ret, bool *ret_there,
                    struct csn_error *err);
/* A tenant's, the last used first; user NULL is any.  Those that were last used before below_ms, or then and have a number below below_number. */
#define WORKSPACES_LIST_MAX 1000
struct workspaces_filter {
        const char *tenant, *user;
        int64_t below_ms, below_number;
        size_t n;                      /* WORKSPACES_LIST_MAX + 1 at the most */
};
int workspaces_of(struct store *store, const struct workspaces_filter *filter, struct arena *arena, struct store_workspace **ret, size_t *ret_n,
                  struct csn_error *err);
int workspaces_forget(struct store *store, const char *id, struct csn_error *err);
/* Some that were last used before; or, with INT64_MIN, those whose user died (workspaces_use() without workspaces_note()). */
int workspaces_old(struct store *store, int64_t before_ms, struct arena *arena, struct store_workspace **ret, size_t *ret_n, struct csn_error *err);
/* Whether there is a row of this id, whosever. */
int workspaces_known(struct store *store, const char *id, bool *ret, struct csn_error *err);

/* ---- what is old (store.c) ---- */

/*
 * Remove what has expired: records, names of idempotency, rows of the audit older than audit_ms (0: none).  At most a few
 * thousand rows a call; *ret_more: there are more.  Waits for the disk, because it also moves the log into the file; without
 * a call now and then the log grows to 64 MiB before a change has to wait for that.
 */
int store_clean(struct store *store, uint64_t audit_ms, bool *ret_more, struct csn_error *err);

#endif
