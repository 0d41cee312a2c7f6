/*
 * store: the daemon's persistent state, in one SQLite file (write-ahead log).
 *
 *   store.c        the file: opening, versions, removal of expired rows
 *   sql.c          statements and transactions
 *   secret.c       the secret for the HMACs of keys, and the locks of the file's openers
 *   keys.c         API keys: scopes and quotas
 *   audit.c        the audit: a row for each run
 *   pulled.c       rows of the audit from workers, in the store of their gateway
 *   records.c      whole records, for a limited time; a long one is a file
 *   cpu.c          CPU time of tenants, in the database and what it refused
 *   usage.c        tokens and cost of models, and amounts of money as text
 *   journal.c      runs in progress, so that a killed daemon loses no run
 *   reserve.c      reserved disk space for deletions and for the audit
 *   idempotency.c  answers of requests that must run once only
 *   files.c        stored files: a row each, and the content in a folder beside the database
 *   upload.c       files on the way into the store, and limits of stored bytes
 *   workspaces.c   owner and size of each workspace folder
 *   volumes.c      owner, name and size of each volume
 *   problems.c     problem sets: a row each, and the content in the folder of files
 *   witnesses.c    notes of a worker: to which other worker an Idempotency-Key was sent
 *
 * All functions are called from the daemon's only thread.  A function waits for the disk only where its comment
 * says so; for another process's write the wait is 2 s at most.  A change is permanent when its function returns:
 * after SIGKILL at any moment the file is consistent and contains every change for which a function returned 0.
 * After a power failure the changes of the last second may be missing, except changes before a store_sync().
 *
 * Times are milliseconds since 1970 (UTC); 0 is never.  Texts are UTF-8.  Rows are copied into the caller's
 * arena.
 *
 * Errors of all functions with a database: CSN_E_SYSTEM, CSN_E_BUSY with err->sys ENOSPC (disk full),
 * CSN_E_CONFIG (the file is no database).  Comments name further errors.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "model/model.h"

struct settings;
struct store;

/*
 * Open the file, create it if missing (mode 0600, in an existing folder), and upgrade it to the newest version.
 * Several processes may have the file open.  *ret belongs to the caller until store_close().
 *
 * Errors: CSN_E_SYSTEM; CSN_E_CONFIG (no store, made by a newer program, or store.secret beside the file is
 * missing or damaged).
 */
int store_open(const char *path, struct store **ret, struct csn_error *err);
/* store_open() of caisson.db in settings_state_dir(); makes the folder. */
int store_open_default(const struct settings *settings, struct store **ret, struct csn_error *err);
/* Close the file; NULL is allowed. */
void store_close(struct store *store);
/*
 * Open a folder beside the file; made with mode 0700 if missing.  *ret_fd belongs to the caller.  Errors:
 * CSN_E_SYSTEM.
 */
int store_folder(const struct store *store, const char *name, int *ret_fd, struct csn_error *err);
/*
 * Reserve so many bytes of the disk for deletions and the audit.  Errors: CSN_E_BUSY (disk full; a part or
 * nothing is reserved), CSN_E_SYSTEM.
 */
int store_set_reserve(struct store *store, uint64_t bytes, struct csn_error *err);
/* Check for free disk space beyond the reserve.  Errors: CSN_E_BUSY with err->sys ENOSPC or EDQUOT. */
int store_has_room(struct store *store, struct csn_error *err);
/* Make all earlier changes safe against power failure.  Waits for the disk.  Errors: CSN_E_SYSTEM. */
int store_sync(struct store *store, struct csn_error *err);

/* ---- keys (keys.c) ---- */

/*
 * A key is the text csn_ID_SECRET: 16 and 43 letters of base64url without - and _.  ID finds the row.  SECRET has
 * 256 random bits.  Stored is the HMAC-SHA256 of the whole text under the store's secret, compared in constant
 * time.  A slow password hash would protect guessable secrets only and would slow down every request.
 */
#define KEY_TEXT_MAX 80
#define KEY_NAME_MAX 100
#define TENANT_MAX 64

enum key_scope {
        SCOPE_RUN = 1 << 0,            /* runs, and all objects of runs */
        SCOPE_CHECK = 1 << 1,          /* checks */
        SCOPE_READ = 1 << 2,           /* profiles, policies, the tenant's own runs */
        SCOPE_FILES = 1 << 3,
        SCOPE_SANDBOXES = 1 << 4,
        SCOPE_METRICS = 1 << 5,        /* /metrics, with figures of all tenants */
        SCOPE_ADMIN = 1 << 6,          /* all operations, of all tenants */
        SCOPE_TOOLS = 1 << 7,          /* runs and sandboxes may call the daemon's tools */
        SCOPE_ANY = (1 << 8) - 1,      /* of a route: any key may use it */
};

struct store_key {
        char id[17];
        char *name;                    /* for display */
        char *tenant;                  /* all keys of a tenant share all objects */
        unsigned scopes;
        /* used_ms has a resolution of one minute. */
        int64_t created_ms, expires_ms, revoked_ms, used_ms;
        /* Quotas; 0: only the engine's own limits. */
        uint64_t running_max;          /* running at the same time */
        uint64_t queued_max;           /* waiting in the queue */
        uint64_t cpu_ms_per_day;       /* CPU time within 24 hours, of runs and sandboxes */
        uint64_t stored_bytes;         /* stored records and files */
        uint64_t review_budget_nanousd;   /* cost of reviews, since the key was made or the usage was reset */
};

/* Name of the i-th scope; NULL after the last. */
const char *scope_name(size_t i);
/*
 * Scopes as text: "run,check".  Errors: CSN_E_INPUT (the error text has the unknown scope and the list of
 * scopes).
 */
#define KEY_SCOPES_MAX 80
int scopes_parse(const char *text, unsigned *ret, struct csn_error *err);
void scopes_print(unsigned scopes, char *text, size_t size);

/* Check name, tenant and scopes of a key.  Errors: CSN_E_INPUT with the wrong member. */
int keys_check(const struct store_key *key, struct csn_error *err);
/*
 * Add a key: makes id, created_ms and secret.  ret_text is the only copy of the whole key.  Errors: CSN_E_INPUT
 * with the wrong member, CSN_E_SYSTEM.
 */
int keys_add(struct store *store, struct store_key *key, char ret_text[static KEY_TEXT_MAX], struct csn_error *err);
/*
 * Find the valid key with this text.  Errors: CSN_E_DENIED, with equal text and equal work for unknown,
 * mismatched, revoked and expired keys.
 */
int keys_find(struct store *store, const char *text, struct arena *arena, struct store_key *ret, struct csn_error *err);
/* All keys, oldest first. */
int keys_list(struct store *store, struct arena *arena, struct store_key **ret, size_t *ret_n, struct csn_error *err);
/* Revoke a key; a second call is harmless.  Errors: CSN_E_INPUT (no key with this id). */
int keys_revoke(struct store *store, const char *id, struct csn_error *err);

/* ---- runs (audit.c, cpu.c) ---- */

struct store_run {
        char *id;                      /* the record's id */
        char *tenant, *key;            /* key: the key's id, or "" */
        char *task_id, *user;          /* of the request, or "" */
        char *language, *profile, *policy;
        char code_sha256[65];
        int status;                    /* enum status */
        int64_t exit_code;             /* -1: none */
        char *verdict;                 /* the policy's verdict: "allow", "deny" or "" */
        char *boundary;                /* JSON of the record's boundary, or "" */
        int64_t started_ms, finished_ms;
        uint64_t cpu_ms, wall_ms, memory_peak_bytes;
        char *trace_id;                /* the request's trace id (W3C Trace Context), or "" */
        int64_t number;                /* of lists: increases with each row */
};

/* Add a row to the audit only; an existing row with this id stays unchanged. */
int runs_add_again(struct store *store, const struct store_run *run, struct csn_error *err);

/* ---- runs in progress (journal.c) ---- */

struct idempotency {
        const char *tenant, *name;
        char sha256[65];
        int64_t expires_ms;
        int64_t owner;                 /* opener of the store that reserved the name; 0: this opener */
};

/*
 * Reserve a journal slot for a run, until runs_add().  Does not wait for the disk.  `name` is the idempotency
 * name of the request, or NULL.  `kept`: the run was accepted and its record can be fetched later.  Errors:
 * CSN_E_BUSY (no space for the slot; the run must not begin).
 */
int runs_begin(struct store *store, const struct store_run *run, const struct idempotency *name, bool kept,
        struct csn_error *err);
/*
 * Add a row to the audit, without code and output.  If the database refuses the row and the run has a journal
 * slot, the row stays in the journal and store_clean() tries again.
 */
int runs_add(struct store *store, const struct store_run *run, struct csn_error *err);
/* code_sha256 given to runs_begin(); NULL: no such run.  Valid until the next runs_begin(). */
const char *runs_begun_code(const struct store *store, const char *id);
/* Check whether another run can begin.  Errors: CSN_E_BUSY, as runs_begin(). */
int runs_can_begin(struct store *store, struct csn_error *err);
/* Write rows, CPU time and usage of models refused by the database earlier. */
void runs_retry(struct store *store);

/* A run of a dead opener: in progress at its death, or ended and missing in the audit. */
struct run_left {
        struct store_run run;
        bool ended;                    /* the row is complete */
        bool kept;
        struct idempotency name;       /* name "": no idempotency name */
};
/*
 * Call `left` for each run of dead openers.  After an error of `left` a later call repeats the same run.  *ret_n
 * is the number of recovered runs.
 */
int runs_recover(struct store *store, int (*left)(void *owner, const struct run_left *one, struct csn_error *err),
        void *owner, size_t *ret_n, struct csn_error *err);

/*
 * Add CPU time of a tenant outside of runs.  After an error runs_used() of this opener counts the time all the same,
 * and runs_retry() writes it.
 */
int runs_add_cpu(struct store *store, const char *tenant, int64_t at_ms, uint64_t cpu_ms, struct csn_error *err);

/* ---- records (records.c) ---- */

/* Store the whole record as JSON text until expires_ms; counts as stored_bytes of the tenant. */
int runs_keep(struct store *store, const char *id, const char *tenant, const char *record, size_t len,
        int64_t expires_ms, struct csn_error *err);
/*
 * Store the received content as the record of a run of its tenant, until expires_ms.  For long records, which a helper
 * thread writes (incoming_open_apart()).  The caller still closes `incoming`.  Errors: as incoming_add().
 */
struct incoming;
int runs_keep_content(struct incoming *incoming, const char *id, int64_t expires_ms, struct csn_error *err);

/* A stored record; without text and with fd -1 the record does not exist, or has expired. */
struct store_record {
        char *text;                    /* of a short record, in the arena; or NULL */
        int fd;                        /* of a long record: its file, for reading, the caller's; or -1 */
        size_t len;
};
/* Fetch a record; tenant "" matches all tenants. */
int runs_record(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_record *ret,
        struct csn_error *err);
/* Delete a record.  *ret_there is false if no such record exists. */
int runs_forget(struct store *store, const char *id, const char *tenant, bool *ret_there, struct csn_error *err);

/* ---- lists of the audit (audit.c) ---- */

/* Filter for rows of the audit, older than the run `before`.  A text of "" or NULL matches all. */
#define RUNS_LIST_MAX 10000
struct runs_filter {
        const char *tenant, *before, *task_id, *user;
        int status;                    /* -1: all */
        size_t n;                      /* at most RUNS_LIST_MAX rows */
};
/* List rows of the audit, newest first.  Errors: CSN_E_INPUT (no run `before`). */
int runs_list(struct store *store, const struct runs_filter *filter, struct arena *arena, struct store_run **ret,
        size_t *ret_n, struct csn_error *err);
/*
 * Find rows of the audit with a number below `below`, newest first.  A text of NULL matches all.  A search looks at
 * RUNS_SCAN_MAX rows of the tenant at most, so that rare matches hold up no other work: *ret_next is the number below
 * which the next search goes on, or 0 after the last row.
 */
#define RUNS_SCAN_MAX 2000
struct runs_search {
        const char *tenant, *key, *language, *profile;
        int status;                    /* -1: all */
        int64_t below;
        size_t n;                      /* at most so many rows */
};
int runs_search(struct store *store, const struct runs_search *search, struct arena *arena, struct store_run **ret,
        size_t *ret_n, int64_t *ret_next, struct csn_error *err);
/* The rows with a number above `after`, the oldest first, at most `most`. */
int runs_after(struct store *store, int64_t after, size_t most, struct arena *arena, struct store_run **ret,
        size_t *ret_n, struct csn_error *err);
/* The number of the newest row; 0: none.  Numbers begin with 1 again when all rows have expired. */
int runs_newest(struct store *store, int64_t *ret, struct csn_error *err);

/* Delete the oldest rows beyond `most`, a limited number a call; *ret_more: more remain.  0: none are deleted. */
int runs_trim(struct store *store, uint64_t most, bool *ret_more, struct csn_error *err);

/* ---- rows of workers (pulled.c) ---- */

/* A row as JSON, and back; the texts are copied.  false: the JSON is no row. */
json_t *runs_write_row(const struct store_run *run);
bool runs_read_row(const json_t *json, struct arena *arena, struct store_run *ret);
/* The number of the last row of a worker that pulled_add() was called with; 0: none. */
int pulled_position(struct store *store, const char *tag, int64_t *ret, struct csn_error *err);
/* runs_add_again() for all rows, and the position, in one transaction. */
int pulled_add(struct store *store, const char *tag, const struct store_run *runs, size_t n, int64_t number,
        struct csn_error *err);

/*
 * CPU time of a tenant's runs finished in the minute of since_ms or later, and bytes of the tenant's stored
 * objects.  Both sums are updated with each change (CPU time for two days), so the cost is constant.  CPU time that the
 * database refused counts, so that a full disk opens no quota.
 */
int runs_used(struct store *store, const char *tenant, int64_t since_ms, uint64_t *ret_cpu_ms, uint64_t *ret_bytes,
        struct csn_error *err);

/*
 * Earliest time at which a tenant above the quota is below `cpu_ms` again, without further use: runs finished
 * before *ret_ms must no longer count.  0: the tenant is below.
 */
int runs_used_until(struct store *store, const char *tenant, int64_t since_ms, uint64_t cpu_ms, int64_t *ret_ms,
        struct csn_error *err);

/* ---- idempotency (idempotency.c) ---- */

enum idempotency_found { IDEMPOTENCY_NEW, IDEMPOTENCY_BUSY, IDEMPOTENCY_DONE, IDEMPOTENCY_OTHER };

/*
 * Reserve a name for a request.  NEW: the name now belongs to the caller.  BUSY: reserved, not yet answered.
 * DONE: with the answer.  OTHER: reserved for another request (sha256 differs).  Names BUSY at the death of a
 * daemon are NEW for the next daemon.
 */
int idempotency_take(struct store *store, const struct idempotency *one, struct arena *arena,
        enum idempotency_found *ret, int *ret_http, char **ret_answer, size_t *ret_len, struct csn_error *err);
/* Find the request with a name, without reserving the name.  NEW: there is none; else BUSY or DONE, as above. */
int idempotency_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        enum idempotency_found *ret, int *ret_http, char **ret_answer, size_t *ret_len, struct csn_error *err);
/* Store the answer of a request.  Errors: CSN_E_INPUT (the name does not, or no longer, belong to the caller). */
int idempotency_answer(struct store *store, const struct idempotency *one, int http, const char *answer, size_t len,
        struct csn_error *err);
/* Release a name after a request without effect; the request may be repeated. */
int idempotency_drop(struct store *store, const struct idempotency *one, struct csn_error *err);

/* ---- notes about keys at other workers (witnesses.c) ---- */

/* An attempt of a request with an Idempotency-Key at another worker. */
struct store_note {
        const char *tenant, *name;     /* name: the key */
        const char *hash;              /* of the request's body, as its gateway made it */
        const char *tag, *pod, *uid;   /* of the other worker; pod and uid: "" without Kubernetes */
        const char *attempt;
        int64_t at_ms, expires_ms;
};

/*
 * Add a note, if there is none for the tenant and the name, or one of the attempts in `replaces` or of the same
 * attempt; *ret_added tells.  The oldest notes go if there are more than `most`.  Does not wait for the disk.  Errors:
 * CSN_E_BUSY (disk full).
 */
int witnesses_add(struct store *store, const struct store_note *note, const char *const *replaces, size_t n,
        uint64_t most, bool *ret_added, struct csn_error *err);
/* Find a note that has not expired; expires_ms is 0. */
int witnesses_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_note *ret, bool *ret_there, struct csn_error *err);
/* Delete the note of this attempt; another attempt's note stays. */
int witnesses_drop(struct store *store, const char *tenant, const char *name, const char *attempt,
        struct csn_error *err);

/* ---- limits of stored bytes (upload.c) ---- */

/*
 * Bytes charged for each stored object beside its content, for row and folder entry; bounds the number of empty
 * files.
 */
#define STORE_ENTRY_BYTES 512

/* Limits of stored bytes; 0: no limit. */
struct store_room {
        uint64_t file_max;             /* of one file */
        uint64_t tenant_max;           /* of all stored objects of a tenant */
        uint64_t all_max;              /* of all tenants */
};

/* Bytes still free, without the bytes of uploads in progress; UINT64_MAX: no limit. */
int store_room_left(struct store *store, const char *tenant, const struct store_room *room, uint64_t *ret,
        struct csn_error *err);
/* Check for space for a file of `size` bytes.  Errors: as incoming_add(). */
int store_room_check(struct store *store, const char *tenant, const struct store_room *room, uint64_t size,
        struct csn_error *err);

/* ---- files (files.c) ---- */

#define FILE_ID_MAX 40
#define FILE_NAME_BYTES_MAX 255

struct store_file {
        char id[FILE_ID_MAX];          /* "file_" and 32 hex digits: 128 random bits, not guessable */
        char *tenant;
        char *name;                    /* all bytes allowed by Linux in a name; maybe no UTF-8 */
        uint64_t size;
        char sha256[65];
        char *mime;
        /* Id of the run with this output file, and user of its request; or "". */
        char *run, *user;
        int64_t created_ms, expires_ms;
        int64_t number;                /* increases with each file */
};

/*
 * An upload: a file under a temporary name, deleted after the death of its opener.
 *
 * Errors of incoming_add(), with err->sys and the numbers in the text: CSN_E_INPUT with EFBIG (above the limit of
 * one file), CSN_E_BUSY with EDQUOT (above the tenant's limit) or ENOSPC (above the limit of all tenants, or disk
 * full); CSN_E_SYSTEM.  *ret belongs to the caller until incoming_close().
 */
int incoming_open(struct store *store, const char *tenant, const struct store_room *room, struct incoming **ret,
        struct csn_error *err);
int incoming_add(struct incoming *incoming, const void *bytes, size_t len, struct csn_error *err);
uint64_t incoming_size(const struct incoming *incoming);
/*
 * Move the received content to file `name` of another folder of the same file system, replacing an existing file.
 * -1 with errno.
 */
int incoming_move(struct incoming *incoming, int dir_fd, const char *name);
/* Free the upload; content not yet stored or moved is deleted.  NULL is allowed. */
void incoming_close(struct incoming *incoming);

/*
 * Uploads that a helper thread writes.  store_use_open() looks up in the loop what is kept, so that the thread needs
 * no database.  incoming_open_apart() and incoming_seal() belong to the thread, as incoming_add() between them.
 * files_add() checks again for space, in the loop.  The folder of files is open for as long as the store.
 */
struct store_use {
        struct store_room room;
        uint64_t own, all;             /* bytes: kept, coming in, and written with this use */
};
/* Errors: as incoming_add(). */
int store_use_open(struct store *store, const char *tenant, const struct store_room *room, struct store_use *ret,
        struct csn_error *err);
/* `use` has to outlive incoming_seal().  *ret belongs to the caller until incoming_close().  Errors: CSN_E_SYSTEM. */
int incoming_open_apart(struct store *store, const char *tenant, struct store_use *use, struct incoming **ret,
        struct csn_error *err);
/* The content for reading, while it has no permanent name.  The caller's; -1 with errno. */
int incoming_open_content(const struct incoming *incoming);
/* The content is whole: close its descriptor, since many uploads may wait for files_add().  Errors: CSN_E_SYSTEM. */
int incoming_seal(struct incoming *incoming, struct csn_error *err);

/*
 * Remove a file of the folder dir_fd, which is open for as long as the store; base/discard.h.  Without such a function
 * content is removed at once.  share: the tenant, or "" for expired files.
 */
typedef void store_discard(void *owner, const char *share, int dir_fd, const char *name);
void store_set_discard(struct store *store, store_discard *discard, void *owner);

void files_make_id(char id[static FILE_ID_MAX]);
void files_make_compact_id(char id[static FILE_ID_MAX]);       /* of id_new_compact() */
/* Check for a valid Linux file name.  Errors: CSN_E_INPUT, field name. */
int files_check_name(const char *name, size_t len, struct csn_error *err);
/*
 * Store the received content as a file: makes id, size, sha256, created_ms and takes all other members from
 * *file.  A crash can leave content without a row (removed by files_sweep()), never a row without content.  The
 * caller still closes `incoming`.  A file with an id keeps the id; see files_make_id().  Errors: as incoming_add().
 */
int files_add(struct incoming *incoming, struct store_file *file, struct csn_error *err);
/* Find a tenant's file.  *ret_there is false for unknown, foreign and expired files alike. */
int files_find(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_file *ret,
        bool *ret_there, struct csn_error *err);
/*
 * files_find() with the content open for reading; *ret_fd belongs to the caller.  A row with lost content
 * (deleted from outside, or by a power failure) is deleted.
 */
int files_content(struct store *store, const char *id, const char *tenant, struct arena *arena, struct store_file *ret,
        int *ret_fd, bool *ret_there, struct csn_error *err);
/* Delete a tenant's file.  *ret_there as of files_find(). */
int files_forget(struct store *store, const char *id, const char *tenant, bool *ret_there, struct csn_error *err);

/*
 * Filter for a tenant's files, older than the file `before` and with a number below `below`.  NULL, "" and 0
 * match all.
 */
#define FILES_LIST_MAX 1000
struct files_filter {
        const char *tenant, *before, *run, *user;
        int64_t below;
        /* At most FILES_LIST_MAX + 1: the extra row shows that more files exist. */
        size_t n;
};
/* List files, newest first.  Errors: CSN_E_INPUT (no file `before`). */
int files_of(struct store *store, const struct files_filter *filter, struct arena *arena, struct store_file **ret,
        size_t *ret_n, struct csn_error *err);
/* Delete expired files, a limited number a call. */
int files_clean(struct store *store, bool *ret_more, struct csn_error *err);
/* Delete leftovers of dead openers: unfinished uploads, and content without a row. */
int files_sweep(struct store *store, size_t *ret_gone, struct csn_error *err);

/* ---- workspaces (workspaces.c) ---- */

#define WORKSPACE_ID_MAX 72
#define WORKSPACE_NAME_MAX 255
#define WORKSPACE_USER_MAX 1024

struct store_workspace {
        char id[WORKSPACE_ID_MAX];     /* "ws_" and 64 hex digits; also the folder's name */
        char *tenant, *user, *name;
        uint64_t bytes;
        int64_t created_ms, used_ms;
        int64_t number;                /* increases with each workspace */
};

/*
 * Id of the workspace `name` of a tenant's user: SHA-256 over the SHA-256 of each of the three texts.  The inner
 * digests have a fixed length, so no two triples give the same input ("a", "b/c" and "a/b", "c"), and ids are as
 * unique as SHA-256.  A folder name consists of letters and digits only, for any user name ("..", "a/b", "").
 */
void workspaces_id(const char *tenant, const char *user, const char *name, char ret[static WORKSPACE_ID_MAX]);
/* Record the use of a workspace; adds a row if new.  The size is unknown until workspaces_note(). */
int workspaces_use(struct store *store, const char *tenant, const char *user, const char *name, struct csn_error *err);
/* Record the size of a workspace at the end of its use. */
int workspaces_note(struct store *store, const char *id, uint64_t bytes, struct csn_error *err);
/* Find a tenant's workspace.  *ret_there is false for unknown and foreign workspaces alike. */
int workspaces_find(struct store *store, const char *id, const char *tenant, struct arena *arena,
        struct store_workspace *ret, bool *ret_there, struct csn_error *err);
/*
 * Filter for a tenant's workspaces: last used before below_ms, or at below_ms with a number below below_number.
 * user NULL matches all.
 */
#define WORKSPACES_LIST_MAX 1000
struct workspaces_filter {
        const char *tenant, *user;
        int64_t below_ms, below_number;
        size_t n;                      /* at most WORKSPACES_LIST_MAX + 1 */
};
/* List workspaces, most recently used first. */
int workspaces_of(struct store *store, const struct workspaces_filter *filter, struct arena *arena,
        struct store_workspace **ret, size_t *ret_n, struct csn_error *err);
/* Delete the row of a workspace. */
int workspaces_forget(struct store *store, const char *id, struct csn_error *err);
/*
 * Some workspaces last used before before_ms.  INT64_MIN: workspaces of dead openers (workspaces_use() without
 * workspaces_note()).
 */
int workspaces_old(struct store *store, int64_t before_ms, struct arena *arena, struct store_workspace **ret,
        size_t *ret_n, struct csn_error *err);
/* Whether a row with this id exists, of any tenant. */
int workspaces_known(struct store *store, const char *id, bool *ret, struct csn_error *err);

/* ---- volumes (volumes.c) ---- */

#define VOLUMES_LIST_MAX 10000
#define VOLUME_ID_MAX 33

/*
 * A row is there before the file of its volume and after it, so a crash leaves no file without a row.  A volume that is
 * not VOLUME_READY does not exist for its tenant, and is removed by the next daemon.
 */
enum volume_state { VOLUME_MAKING, VOLUME_READY, VOLUME_REMOVING };

struct store_volume {
        char id[VOLUME_ID_MAX];        /* 32 hex digits; the name of the file */
        char *tenant, *name;
        uint64_t bytes;
        int64_t created_ms;
        enum volume_state state;
};

/* The most bytes of all volumes of a tenant, and of all tenants. */
struct volumes_room {
        uint64_t tenant_max, all_max;
};

/*
 * Add a volume in the state VOLUME_MAKING: makes id and created_ms.  *ret_known: the tenant has a volume of this name,
 * and nothing was added.  Errors: CSN_E_BUSY with EDQUOT (a limit of `room`, with the numbers).
 */
int volumes_add(struct store *store, struct store_volume *volume, const struct volumes_room *room, bool *ret_known,
        struct csn_error *err);
int volumes_set_state(struct store *store, const char *id, enum volume_state state, struct csn_error *err);
/* Delete the row of a volume. */
int volumes_forget(struct store *store, const char *id, struct csn_error *err);
/* Find a tenant's volume.  *ret_there is false for unknown and foreign volumes alike. */
int volumes_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_volume *ret, bool *ret_there, struct csn_error *err);
/* The volumes of a tenant, by name. */
int volumes_of(struct store *store, const char *tenant, struct arena *arena, struct store_volume **ret, size_t *ret_n,
        struct csn_error *err);
/* Volumes that are being made or removed, or were when a daemon died. */
int volumes_unsettled(struct store *store, struct arena *arena, struct store_volume **ret, size_t *ret_n,
        struct csn_error *err);

/* ---- problem sets (problems.c) ---- */

#define PROBLEM_SETS_LIST_MAX 10000
#define PROBLEM_SET_ID_MAX 33

struct store_problem_set {
        char id[PROBLEM_SET_ID_MAX];   /* 32 hex digits; part of the name of the file */
        char *tenant, *name;
        char *format;                  /* of its problems, as in a request */
        uint64_t problems;             /* how many */
        uint64_t size;                 /* bytes of the file */
        uint64_t index_at;             /* where the index begins in the file */
        int64_t created_ms;
};

/*
 * Store the received content as the set of this name, in place of an earlier set: makes id, size and created_ms.  Bytes
 * count as stored_bytes of the tenant.  most: sets of a tenant.  The caller still closes `incoming`.  Errors: as
 * incoming_add(); CSN_E_BUSY with EDQUOT (`most` sets).
 */
int problem_sets_put(struct incoming *incoming, struct store_problem_set *set, uint64_t most, bool *ret_replaced,
        struct csn_error *err);
/* Find a tenant's set.  *ret_there is false for unknown and foreign sets alike. */
int problem_sets_find(struct store *store, const char *tenant, const char *name, struct arena *arena,
        struct store_problem_set *ret, bool *ret_there, struct csn_error *err);
/* Open the file of a set for reading; *ret_fd belongs to the caller.  A set with a lost file is removed. */
int problem_sets_open(struct store *store, const struct store_problem_set *set, int *ret_fd, bool *ret_there,
        struct csn_error *err);
/* The sets of a tenant, by name. */
int problem_sets_of(struct store *store, const char *tenant, struct arena *arena, struct store_problem_set **ret,
        size_t *ret_n, struct csn_error *err);
int problem_sets_forget(struct store *store, const char *tenant, const char *name, bool *ret_there,
        struct csn_error *err);

/* ---- usage of models (usage.c) ---- */

/* Sums of calls of a model.  Numbers of tokens are those that the server reported. */
struct store_usage {
        char *tenant, *key;            /* key: the key's id, or "" */
        char *component, *model;
        int64_t day;                   /* usage_day() */
        uint64_t calls;
        uint64_t usage_missing;        /* calls without a report of the server */
        uint64_t prompt_tokens, completion_tokens, total_tokens;
        uint64_t cached_tokens, reasoning_tokens;   /* of the prompts, and of the answers */
        uint64_t cost_nanousd;         /* 10^-9 US dollars */
};

/* The day (UTC) of a time, in days since 1970. */
int64_t usage_day(int64_t ms);
/*
 * Add usage to the sums; several processes may do this at the same time.  After an error sums and budgets of this
 * opener count the usage all the same, and runs_retry() writes it.
 */
int usage_add(struct store *store, const struct store_usage *usage, struct csn_error *err);

/* usage_add() of what a review used; nothing, if nothing was sent. */
int usage_add_review(struct store *store, const char *tenant, const char *key, const struct review *review,
        struct csn_error *err);

enum usage_by { USAGE_BY_COMPONENT, USAGE_BY_MODEL, USAGE_BY_KEY };

/* Errors: CSN_E_INPUT with the field "by". */
int usage_parse_by(const char *word, enum usage_by *ret, struct csn_error *err);
const char *usage_by_name(enum usage_by by);

struct usage_filter {
        const char *tenant;            /* "": all */
        int64_t since_day;             /* this day and later */
};
/*
 * Sums by component, by model or by tenant and key, those with the highest cost first; the other texts are "".
 */
int usage_sums(struct store *store, const struct usage_filter *filter, enum usage_by by, struct arena *arena,
        struct store_usage **ret, size_t *ret_n, struct csn_error *err);
/* Delete the usage of a tenant, or of all (""). */
int usage_reset(struct store *store, const char *tenant, struct csn_error *err);
/* Cost of a key, since the key was made or its usage was reset. */
int usage_key_cost(struct store *store, const char *key, uint64_t *ret_nanousd, struct csn_error *err);

/*
 * Parse an amount of US dollars: a decimal number with at most nine digits behind the point, up to 1000000.  False:
 * the text is no such number.
 */
bool usd_parse(const char *text, uint64_t *ret_nanousd);
/* Print an amount with so many digits behind the point, 1 to 9, rounded half to even. */
void usd_print(uint64_t nanousd, unsigned digits, char *text, size_t size);

/* ---- expiry (store.c) ---- */

/*
 * Delete expired records, expired idempotency names and notes, and audit rows older than audit_ms (0: none), a few
 * thousand rows a call; *ret_more: more remain.
 */
int store_clean(struct store *store, uint64_t audit_ms, bool *ret_more, struct csn_error *err);
/*
 * Checkpoint the write-ahead log of the store's file (store_path()), which waits for the disk: for a helper thread, by
 * a connection of its own.  Without regular calls the log grows to 64 MiB before a change waits for a checkpoint.
 * Errors: CSN_E_SYSTEM.
 */
int store_checkpoint(const char *path, struct csn_error *err);
const char *store_path(const struct store *store);
/*
 * grew() is called when the write-ahead log has grown by 4 MiB (LOG_PAGES_DUE): store_checkpoint() is due.  The call
 * comes from within functions of the store, which grew() must not call.
 */
void store_set_log_listener(struct store *store, void (*grew)(void *owner), void *owner);

#endif
