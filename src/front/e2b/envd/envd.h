/*
 * envd: the API of E2B's daemon inside a sandbox, answered from outside by guest calls.
 *
 *   connect_codec  Connect RPC: codes, envelopes, members of messages               (pure, fuzzed)
 *   connect_rpc    its requests and answers
 *   format         paths, permissions, signatures of URLs, metadata                 (pure, fuzzed)
 *   request        the target of a request, files in answers, errors of calls
 *   process        process.Process: programs and their end
 *   process_output listeners of a program
 *   process_input  requests that wait for the input of a program, or for its end
 *   filesystem     filesystem.Filesystem, but for
 *   watch          changes in folders, as a stream or collected
 *   download       GET /files
 *   upload         POST /files, as it is or as multipart, compressed or not
 *   envd           its routes, and the end of its state
 *
 * E2B's daemon runs as root and accesses files as root for every account: clients expect to read files of root as
 * `user`.  New files belong to the account of the request.  In a sandbox without root everything runs as `user`.
 */
#ifndef FRONT_E2B_ENVD_ENVD_H
#define FRONT_E2B_ENVD_ENVD_H

#include "front/e2b/request.h"

#define ENVD_LABELS "user.e2b."            /* prefix of extended attributes for file metadata (xattr(7)) */

struct envd_process;
struct envd_watcher;

/* State of envd for one sandbox. */
struct e2b_envd {
        struct e2b_sandbox *sandbox;
        struct envd_process *processes;    /* running, and the last that ended */
        struct envd_watcher *watchers;
        uint64_t watchers_made;
};

/* The state of a sandbox, created at first use. */
struct e2b_envd *envd_of(struct e2b_sandbox *sandbox);
/* NULL is harmless. */
void e2b_envd_free(struct e2b_envd *envd);
/* When the last of its programs that still run was started, by clock_us(); 0: none runs.  envd may be NULL. */
uint64_t e2b_envd_started_us(const struct e2b_envd *envd);
/* Free the processes; free the watchers. */
void envd_free_processes(struct e2b_envd *envd);
void envd_free_watchers(struct e2b_envd *envd);

/* ---- Connect RPC (connect_codec.c) ---- */

enum rpc_code {
        RPC_CANCELED = 1,
        RPC_UNKNOWN,
        RPC_INVALID_ARGUMENT,
        RPC_DEADLINE_EXCEEDED,
        RPC_NOT_FOUND,
        RPC_ALREADY_EXISTS,
        RPC_PERMISSION_DENIED,
        RPC_RESOURCE_EXHAUSTED,
        RPC_FAILED_PRECONDITION,
        RPC_ABORTED,
        RPC_OUT_OF_RANGE,
        RPC_UNIMPLEMENTED,
        RPC_INTERNAL,
        RPC_UNAVAILABLE,
        RPC_DATA_LOSS,
        RPC_UNAUTHENTICATED,
        RPC_CODES,
};
#define RPC_FLAG_END 2
#define RPC_ENVELOPE 5                     /* bytes before the JSON: flags, and a length in network byte order */

const char *rpc_code_name(enum rpc_code code);
unsigned rpc_code_status(enum rpc_code code);   /* HTTP status of an answer that is no stream */

/*
 * The single message in the body of a request for a stream; *ret_at is the offset of its JSON.  Errors: CSN_E_INPUT
 * (cut, compressed, or several messages).
 */
int rpc_unwrap(const char *body, size_t len, size_t *ret_at, size_t *ret_len, struct csn_error *err);
void rpc_wrap(unsigned flags, size_t len, uint8_t ret[static RPC_ENVELOPE]);
#define RPC_KEEPALIVE_MAX_S 3600                /* of Keepalive-Ping-Interval */
/* The value of Connect-Timeout-Ms and similar headers: at most ten digits.  0: none. */
uint64_t rpc_header_number(const char *text);

/* A member of a message with this type; NULL or `def` if missing or of another type. */
const char *rpc_string(const json_t *json, const char *name);
uint64_t rpc_number(const json_t *json, const char *name, uint64_t def); /* also as a text, as proto3 writes 64 bits */
bool rpc_bool(const json_t *json, const char *name, bool def);

/* ---- requests and answers (connect_rpc.c) ---- */

/*
 * The message of a request; the caller's reference.  NULL: malformed, or a wrong member or time-out, and the request
 * was answered.
 */
json_t *rpc_body(struct http_request *request, bool stream, const struct e2b_member *members);
/* load() of the converters of streams: the message is in an envelope of Connect RPC. */
json_t *rpc_load_stream(const char *text, size_t len, struct csn_error *err);
/* Send the answer.  The reference becomes the callee's. */
void rpc_answer(struct http_request *request, json_t *json);
/* Send an error: with its HTTP status, or inside a stream. */
void rpc_fail(struct http_request *request, bool stream, enum rpc_code code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* Begin a stream as the answer.  rpc_send() takes references; rpc_end() has code 0, or a code and a text. */
void rpc_begin(struct http_request *request);
/* false: the client has not read for long and was cut; the request must not be used any more. */
bool rpc_send(struct http_request *request, json_t *json);
void rpc_end(struct http_request *request, enum rpc_code code, const char *text);

/* ---- formats (format.c) ---- */

/*
 * Resolve a path: "~" is the account's home; a relative path is below `folder`, or below the home if `folder` is NULL.
 * Errors: CSN_E_INPUT (another account's home, a NUL, or too long).
 */
int spell_path(const char *path, int account, const char *folder, char ret[static GUEST_PATH_MAX],
        struct csn_error *err);
const char *spell_name(const char *path);   /* the last part of a path */
/* Whether an absolute path is a home or an ancestor of a home, which must not be removed. */
bool spell_is_home(const char *path);
/* Permissions in the format of ls and Go: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx"; at most SPELL_MODE_MAX bytes. */
#define SPELL_MODE_MAX 24
void spell_mode(uint64_t mode, char ret[static SPELL_MODE_MAX]);
/*
 * Signature of a URL of /files: v1_ and a SHA-256 in base64 without padding.  expires is NULL, or the text in the URL.
 */
#define SPELL_SIGNATURE_MAX 48
void spell_signature(const char *path, bool writes, const char *user, const char *token, const char *expires,
        char ret[static SPELL_SIGNATURE_MAX]);
/*
 * A header as a label: "X-Metadata-Author: me" becomes "author=me", from the arena.  Returns 1, or 0 for another
 * header.  Errors: CSN_E_INPUT, with the allowed form.
 */
int spell_label(const char *header, const char *value, struct arena *arena, char **ret, struct csn_error *err);

/* ---- the target of a request (request.c) ---- */

/* The sandbox and account of a request. */
struct envd_target {
        struct e2b_sandbox *sandbox;
        int account;            /* account of fields.def */
        const char *folder;     /* base of relative paths; NULL: the account's home */
        uint64_t flags;         /* GUEST_FILE_ flags: the rights of file operations, and the owner of new files */
};

/* The target of an RPC, by Authorization.  false: the request was answered. */
bool envd_target(struct http_request *request, bool stream, struct envd_target *ret);
/* The target of /files, by ?username=, token or signature.  false: the request was answered. */
bool envd_file_target(struct http_request *request, bool writes, struct envd_target *ret);
/* The reason why token or signature do not allow a request for /files; NULL: allowed. */
const char *envd_file_refusal(struct http_request *request, const struct e2b_sandbox *sandbox, bool writes);
/* The object EntryInfo of a path; the caller's reference. */
json_t *envd_entry(const struct guest_entry *entry, const char *path);
/* Metadata of a file; NULL: none.  The caller's reference. */
json_t *envd_metadata(const struct guest_entry *entry);
/* Answer after a guest call that could not begin. */
void envd_refuse(struct http_request *request, bool stream, const struct csn_error *err);
/* Answer after a guest call that failed before there was an answer: of an RPC about a path ("": none), or of /files. */
void envd_call_failed(struct http_request *request, bool stream, const struct guest_call *call,
        const struct csn_error *error, const char *path);
void envd_file_failed(struct http_request *request, const struct guest_call *call, const struct csn_error *error,
        const char *path);

/* ---- handlers of routes ---- */

extern const struct http_route e2b_envd_routes[];

void envd_get_file(struct http_request *request);
void envd_post_files(struct http_request *request);
void envd_start(struct http_request *request);
void envd_connect(struct http_request *request);
void envd_list_processes(struct http_request *request);
void envd_signal(struct http_request *request);
void envd_input(struct http_request *request);
void envd_close_input(struct http_request *request);
void envd_update(struct http_request *request);
void envd_stat(struct http_request *request);
void envd_list(struct http_request *request);
void envd_make_folder(struct http_request *request);
void envd_move(struct http_request *request);
void envd_remove(struct http_request *request);
void envd_watch(struct http_request *request);
void envd_create_watcher(struct http_request *request);
void envd_watcher_events(struct http_request *request);
void envd_remove_watcher(struct http_request *request);

#endif
