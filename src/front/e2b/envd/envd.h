/*
 * envd: what E2B's daemon inside of a sandbox answers, answered from outside by calls of the sandbox's guest.
 *
 *   envd          its routes, what of it belongs to a sandbox, and for whom a request is
 *   envelope      Connect RPC: codes, envelopes, members of messages               (pure, fuzzed)
 *   connect       its requests and answers
 *   spelling      accounts, paths, permissions, signatures of URLs, metadata       (pure, fuzzed)
 *   process       process.Process: programs, who listens to them, their input and end
 *   filesystem    filesystem.Filesystem, but for
 *   watch         what happens in folders, as a stream or collected
 *   files         GET /files
 *   upload        POST /files, as it is or as multipart, compressed or not
 *
 * E2B's daemon is root, and so is what it does with files, for whomever: clients expect to read a file of root's as `user`.  What is made belongs to
 * the account of the request.  In a sandbox without root everything is done as `user`.
 */
#ifndef FRONT_E2B_ENVD_H
#define FRONT_E2B_ENVD_H

#include "front/e2b/e2b.h"

#define ENVD_LABELS "user.e2b."            /* metadata of files (xattr(7)) */

struct envd_process;
struct envd_watcher;

struct e2b_envd {
        struct e2b_sandbox *sandbox;
        struct envd_process *processes;    /* that go on, and the last that are over */
        struct envd_watcher *watchers;
        uint64_t watchers_made;
};

/* Of a sandbox; made when it is asked for first. */
struct e2b_envd *envd_of(struct e2b_sandbox *sandbox);
void envd_free_processes(struct e2b_envd *envd);
void envd_free_watchers(struct e2b_envd *envd);

/* ---- Connect RPC (connect_codec.c) ---- */

enum rpc_code {
        RPC_CANCELED = 1, RPC_UNKNOWN, RPC_INVALID_ARGUMENT, RPC_DEADLINE_EXCEEDED, RPC_NOT_FOUND, RPC_ALREADY_EXISTS, RPC_PERMISSION_DENIED,
        RPC_RESOURCE_EXHAUSTED, RPC_FAILED_PRECONDITION, RPC_ABORTED, RPC_OUT_OF_RANGE, RPC_UNIMPLEMENTED, RPC_INTERNAL, RPC_UNAVAILABLE,
        RPC_DATA_LOSS, RPC_UNAUTHENTICATED, RPC_CODES,
};
#define RPC_FLAG_END 2
#define RPC_ENVELOPE 5                     /* bytes before its JSON: flags, and a length in network order */

const char *rpc_code_name(enum rpc_code code);
unsigned rpc_code_status(enum rpc_code code);   /* of HTTP, where the answer is no stream */

/*
 * The one message that the body of a request for a stream has; *ret_at is where its JSON begins.  Errors: CSN_E_INPUT: cut, compressed,
 * or more than one.
 */
int rpc_unwrap(const char *body, size_t len, size_t *ret_at, size_t *ret_len, struct csn_error *err);
void rpc_wrap(unsigned flags, size_t len, uint8_t ret[static RPC_ENVELOPE]);
#define RPC_KEEPALIVE_MAX_S 3600                /* of Keepalive-Ping-Interval */
/* Connect-Timeout-Ms and its like: at most ten digits.  0: there is none. */
uint64_t rpc_header_number(const char *text);

/* A member of a message, of this kind: NULL or `def` where there is none, or another. */
const char *rpc_string(const json_t *json, const char *name);
uint64_t rpc_number(const json_t *json, const char *name, uint64_t def);   /* also as a text, as proto3 writes 64 bits */
bool rpc_bool(const json_t *json, const char *name, bool def);

/* ---- its requests and answers (connect_rpc.c) ---- */

/* The message of a request; the caller's reference.  NULL: it is none, or its members or its time-out are wrong, and that is answered. */
json_t *rpc_body(struct http_request *request, bool stream, const struct e2b_member *members);
/* The answer; takes the reference. */
void rpc_answer(struct http_request *request, json_t *json);
/* Instead: with an HTTP status of its own, or of a stream within it. */
void rpc_fail(struct http_request *request, bool stream, enum rpc_code code, const char *fmt, ...) PRINTF_LIKE(4, 5);
/* The answer is a stream; messages follow, whose references are taken, and the end with code 0 or a code and a text. */
void rpc_begin(struct http_request *request);
/* False: its client has not read for long, and is cut; nothing more may be done with the request. */
bool rpc_send(struct http_request *request, json_t *json);
void rpc_end(struct http_request *request, enum rpc_code code, const char *text);

/* ---- how things are written (format.c) ---- */

/* "user", "root"; "" is user.  False: there is no such account. */
bool spell_account(const char *name, int *ret);
const char *spell_home(int account);
/*
 * A path as it is meant: "~" is the account's home, and what is relative is below the folder, or below the home where that is NULL.  Errors: CSN_E_INPUT: it is somebody else's home, has a NUL, or
 * is too long.
 */
int spell_path(const char *path, int account, const char *folder, char ret[static GUEST_PATH_MAX], struct csn_error *err);
const char *spell_name(const char *path);   /* its last part */
/* Whether a path, which is absolute, is a home, or what has one in it: without it there is no sandbox to speak of. */
bool spell_is_home(const char *path);
/* As ls and Go do: "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx"; at most SPELL_MODE_MAX bytes. */
#define SPELL_MODE_MAX 24
void spell_mode(uint64_t mode, char ret[static SPELL_MODE_MAX]);
/* What signs a URL of /files: v1_ and a SHA-256 in base64 without padding.  expires is NULL or as it is in the URL. */
#define SPELL_SIGNATURE_MAX 48
void spell_signature(const char *path, bool writes, const char *user, const char *token, const char *expires, char ret[static SPELL_SIGNATURE_MAX]);
/* A header as a label: "X-Metadata-Author: me" is "author=me".  0: it is no such header; 1; or negative: CSN_E_INPUT, with what may be. */
int spell_label(const char *header, const char *value, struct arena *arena, char **ret, struct csn_error *err);

/* ---- for whom a request is (envd.c) ---- */

struct envd_target {
        struct e2b_sandbox *sandbox;
        int account;                       /* fields.def */
        const char *folder;                /* below which paths are that are relative; NULL: the home of the account */
        uint64_t flags;                    /* of operations on files: with whose rights, and whose is what they make */
};

/* Of an RPC, by Authorization.  False: that is answered. */
bool envd_target(struct http_request *request, bool stream, struct envd_target *ret);
/* Of /files, by ?username=, the token or the signature. */
bool envd_file_target(struct http_request *request, bool writes, struct envd_target *ret);
/* Why a request for /files of it is refused, by its token or signature; NULL: it is not. */
const char *envd_file_refusal(struct http_request *request, const struct e2b_sandbox *sandbox, bool writes);
/* The object EntryInfo of a path; the caller's reference. */
json_t *envd_entry(const struct guest_entry *entry, const char *path);
/* Its metadata; NULL where there is none.  The caller's reference. */
json_t *envd_metadata(const struct guest_entry *entry);
/* A call that could not begin. */
void envd_refuse(struct http_request *request, bool stream, const struct csn_error *err);
/* A call that ended badly before there was an answer: of an RPC about a path, or about "" none; and of /files. */
void envd_call_failed(struct http_request *request, bool stream, const struct guest_call *call, const struct csn_error *error, const char *path);
void envd_file_failed(struct http_request *request, const struct guest_call *call, const struct csn_error *error, const char *path);

/* ---- handlers ---- */

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
