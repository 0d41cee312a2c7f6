/*
 * e2b: the words of E2B, whose clients work here unmodified.
 *
 * One port answers for all of it.  A request is for the control plane, or for a port of a sandbox: 49983 is E2B's daemon inside
 * (envd), 49999 its code interpreter, and any other is a program of the user's.  Which sandbox and port is in the headers
 * E2b-Sandbox-Id and E2b-Sandbox-Port, or in the first label of the Host, PORT-ID; a URL that was signed has neither, and its
 * signature tells.  There is no daemon of E2B inside:
 * what envd and the interpreter are asked is answered out here, by calls of the sandbox's guest and by contexts (engine/persistent/psandbox.h).
 *
 *   e2b           whom a request is for, whether it may, what is wrong in E2B's words
 *   sandbox       the sandboxes: a sandbox each, and what E2B knows of it beside that; their life
 *   members       what the members of a body may be    (pure, fuzzed)
 *   marks         files by which programs inside know where they are
 *   template      what a template is here
 *   snapshot      files of a sandbox that are kept as a template, or go into others: snapshots and forks
 *   metrics       what a sandbox uses
 *   network       what programs in it may reach
 *   logs          what happened to it, and in it
 *   control       the control plane: sandboxes are made, asked about, changed and ended
 *   list          and listed, by pages and filters
 *   envd          port 49983: its routes
 *   interpreter   port 49999: interpreter.h, with execute.c and front/e2b/interpreter/result.c
 *   ports         all other ports
 *   pages         web pages of other places as clients
 *   tls           TLS towards programs that listen with it on such a port
 *   build         templates that clients build: build.h, with template_store.c, build_routes.c, copy_source.c, front/e2b/templates/command.c and start_command.c
 *   client        the other direction: a backend, by which runs of ours go to other servers of these words
 *
 * A template is what a sandbox is made from: the profile `e2b`, with root inside and the account `user`, the host's programs, and of a
 * snapshot the files that it has beside those.
 */
#ifndef FRONT_E2B_E2B_H
#define FRONT_E2B_E2B_H

#include "front/api/api.h"

#define E2B_ENVD_PORT 49983
#define E2B_INTERPRETER_PORT 49999
#define E2B_ENVD_VERSION "0.6.13"          /* by which clients know what they may ask */
#define E2B_ID_LEN 21                      /* i, and 20 of a-z and 0-9 */
#define E2B_TIMEOUT_MAX_S 86400
#define E2B_LIFE_S 300                     /* where no time is given */
#define E2B_TEXTS_MAX 1000                 /* of an object with names and texts */
#define E2B_KEPT_MAX (64 * KIB)            /* each of env, metadata and network, as JSON */
#define E2B_FORKS_MAX 100
#define E2B_PAGE_MAX 100
#define E2B_LINES_MAX 100                 /* of the log of a sandbox; the oldest go */
#define E2B_SNAPSHOTS_MAX 1000             /* of all tenants; more are refused */
#define E2B_SNAPSHOTS_OWNER_MAX 200

struct e2b_template;
struct e2b_sandbox;
struct e2b_logs;
struct start;
struct e2b_env_files;

/* What a client asked for. */
struct e2b_wish {
        const struct e2b_template *template;
        json_t *build_spec;                    /* of a template that was built from that (build.h), or NULL */
        json_t *env, *metadata;            /* names and texts; env is that of every program in it */
        json_t *network;                   /* as it was asked for, or NULL */
        bool internet;                     /* it was not asked to be without */
        bool secure, closed;               /* it has a token for envd, and one for all other ports */
        bool auto_pause, keep_memory;      /* at its end, in place of being killed; with what goes on in it, or its files alone */
        bool auto_resume;                  /* by what is sent to it */
        uint64_t cpu_ms_per_day;           /* of the key that it was made with, 0: no bound; later requests come with a token and no key */
};

/* All files of a sandbox, in a file of ours that has no name or that others have, too (engine/persistent/psandbox.h, copies). */
struct e2b_image {
        unsigned refs;
        int fd;
};

enum e2b_want { E2B_WANTS_READY, E2B_WANTS_PAUSED, E2B_WANTS_OVER };

/* Somebody who waits for something of a sandbox; embedded in its owner. */
struct e2b_waiter {
        struct e2b_waiter *next;
        struct e2b_sandbox *sandbox;       /* NULL: it does not wait */
        enum e2b_want want;
        void (*done)(struct e2b_waiter *waiter, const struct csn_error *error);   /* once */
        void *owner;
};

struct e2b_sandbox {
        struct e2b_sandbox *next;          /* of all, newest first */
        struct api *api;
        char id[E2B_ID_LEN + 1];
        char tenant[80];
        enum { E2B_MAKING, E2B_RUNNING, E2B_PAUSING, E2B_PAUSED, E2B_RESUMING } state;
        struct psandbox *psandbox;                 /* NULL: it is paused, and all there is of it is its image */
        bool networked;                    /* the administrator allowed a way out when its sandbox was made (engine.network) */
        struct e2b_wish wish;
        char token[65];                    /* X-Access-Token of envd; "": none is needed */
        char traffic_token[65];            /* E2B-Traffic-Access-Token of all other ports; "": none is needed */
        uint64_t cpus, memory_bytes, disk_bytes;
        int64_t started_ms, end_ms;
        uint64_t life_ms;                  /* how long it was last given */

        int64_t looked_ms;                 /* when its use was told last, 0: never, and its CPU time then */
        double looked_cpu_ms;

        struct e2b_logs *logs;             /* NULL: there are none yet */

        /* sandbox.c's own. */
        struct e2b_waiter *waiters;
        struct psandbox_waiter over, news;     /* of the sandbox */
        struct psandbox_copy copy;             /* of its image, out or in */
        struct e2b_env_files *env_files;           /* files that are being written in it, or NULL */
        struct start *start;               /* what its template runs in it, or NULL */
        struct e2b_image *image;
        struct timer end, freeze;
        bool killing;                       /* it was killed: what is sent to it finds nothing any more */

        /* The other files' own; theirs to make when they first need it, and to free.  A sandbox that was paused without its memory has none. */
        struct e2b_envd *envd;
        struct e2b_interpreter *interpreter;
};

/* ---- whom a request is for (routing.c) ---- */

/* The interface of E2B that a request is for; NULL: it is for none. */
const struct http_app *e2b_app(struct api *api, struct http_request *request);
/* The same for a page in a browser: it is told what it may read, and whether it may ask (cors.c).  face may be NULL. */
const struct http_app *e2b_app_for_page(const struct api *api, struct http_request *request, const struct http_app *app);
/*
 * The sandbox of a request to one of its ports.  When a handler is called it is there and runs: a request for one that is gone or paused has
 * its answer before, and one that is to be woken waits.  Later it may have gone: ask again, and NULL has to be answered.  Calls
 * and executions in it end before it does.
 */
struct e2b_sandbox *e2b_target(const struct http_request *request);
/* Whether one more program may start in it.  Errors: those of api_tenant_has_cpu_time(). */
int e2b_has_cpu_time(const struct e2b_sandbox *sandbox, struct http_limit *ret_limit, struct csn_error *err);
/* The port that it is for; 0: none, it is for the control plane. */
unsigned e2b_port(const struct http_request *request);
/* {"code": status, "message": ...} */
void e2b_error(struct http_request *request, unsigned status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* 502, and why: of one that is gone, of a port on which nobody listens. */
void e2b_not_found(struct http_request *request);
void e2b_closed_port(struct http_request *request, unsigned port);
/* An answer without a body. */
void e2b_no_content(struct http_request *request);
/* Whether both are the same, in a time that does not tell where they differ. */
bool e2b_same(const char *one, const char *other);

/* A text of an object; "" where there is none.  Borrowed. */
const char *e2b_text(const json_t *json, const char *name);

/* ---- what the members of a body may be (validate.c) ---- */

enum e2b_kind { E2B_TEXT, E2B_BOOL, E2B_NUMBER, E2B_OBJECT, E2B_TEXTS, E2B_VARIABLES, E2B_WORD };

struct e2b_member {
        const char *name;                  /* "process.cmd" is a member of the member `process`; NULL ends a table */
        enum e2b_kind kind;
        uint64_t most;                     /* of a number */
        const char *words;                 /* of a word: all that there are, with blanks between */
};

/* Whether those that a table names are what it says.  Errors: CSN_E_INPUT: with the name, what it is, and what it has to be. */
int e2b_check(const json_t *body, const struct e2b_member *members, struct csn_error *err);
/* A whole number from 0 on; also as a text, as proto3 writes 64 bits.  False: it is none. */
bool e2b_number(const json_t *value, uint64_t *ret);
/* A value as JSON in an error, not longer than that; NULL is "missing". */
#define E2B_SHOWN_MAX 64
void e2b_show(const json_t *value, char ret[static E2B_SHOWN_MAX]);

extern const struct http_route e2b_control_routes[], e2b_envd_routes[], e2b_interpreter_routes[], e2b_port_routes[];

/* ---- sandboxes (sandbox.c) ---- */

/* One that begins, with files or NULL; E2B_WANTS_READY.  The wish stays the caller's.  Errors: those of psandbox_open(). */
int e2b_sandbox_new(struct api *api, const char *tenant, const struct e2b_wish *wish, struct e2b_image *image, struct e2b_sandbox **ret,
                    struct csn_error *err);
void e2b_wish_done(struct e2b_wish *wish);
/* A sandbox as the profile, a template and what was built of it have it, with these labels; the recipe may be NULL.  Errors: those of psandbox_open(). */
int e2b_open_psandbox(struct api *api, const char *tenant, const struct e2b_template *template, const json_t *build_spec, json_t *env, const char *label,
                  struct psandbox **ret, struct csn_error *err);
/* Its template's, or that it was built from. */
const char *e2b_template_id(const struct e2b_wish *wish);
const char *e2b_template_name(const struct e2b_wish *wish);
struct e2b_wish e2b_wish_copy(const struct e2b_wish *wish);
/* By id; of a tenant, or "" of any.  NULL: there is none, or none that was ready once. */
struct e2b_sandbox *e2b_sandbox_find(const struct api *api, const char *id, const char *tenant);
void e2b_wait(struct e2b_sandbox *sandbox, enum e2b_want want, struct e2b_waiter *waiter);
void e2b_unwait(struct e2b_waiter *waiter);
bool e2b_sandbox_is_paused(const struct e2b_sandbox *sandbox);
/*
 * E2B_WANTS_PAUSED and E2B_WANTS_READY tell when it is; it lives that long from then.  With its memory it is frozen; without it the sandbox
 * goes, and a new one gets its files.  Errors: CSN_E_BUSY, in another state; those of psandbox_save() and psandbox_open().
 */
int e2b_sandbox_pause(struct e2b_sandbox *sandbox, bool memory, struct csn_error *err);
int e2b_sandbox_resume(struct e2b_sandbox *sandbox, uint64_t ms, struct csn_error *err);
/* From now on; its end is that many milliseconds away. */
void e2b_sandbox_set_end(struct e2b_sandbox *sandbox, uint64_t ms);
/* What was asked for is over: all connections to it are cut, then it is gone. */
void e2b_sandbox_kill(struct e2b_sandbox *sandbox);
/* Empty, in the state folder, without a name; or of a descriptor, which it takes.  Errors: CSN_E_SYSTEM. */
int e2b_image_new(const struct api *api, struct e2b_image **ret, struct csn_error *err);
struct e2b_image *e2b_image_of(int fd);
struct e2b_image *e2b_image_ref(struct e2b_image *image);   /* NULL has none */
void e2b_image_unref(struct e2b_image *image);
/* The objects Sandbox and SandboxDetail; the caller's reference. */
json_t *e2b_sandbox_made(const struct e2b_sandbox *sandbox);
/* With its tokens only for who may do with it what they allow. */
json_t *e2b_sandbox_describe(const struct e2b_sandbox *sandbox, bool tokens);
void e2b_close(struct api *api);

/* "2026-01-02T03:04:05.678Z" */
json_t *e2b_time(int64_t ms);

/* ---- templates and snapshots (template.c, snapshot.c) ---- */

struct e2b_template {
        const char *id, *name;
        const char *image;                 /* fields.def: what is loaded ahead in Python */
        bool interprets;                   /* its Python is started ahead */
};

/*
 * By id or name, with a tag or without; of a snapshot it is the one that its sandbox had, and of one that was built what it is built from.
 * *ret_image has its files and *ret_build_spec how it was built, with references, or NULL.  Errors: CSN_E_INPUT with ENOENT in sys, CSN_E_SYSTEM.
 */
int e2b_template_find(const struct api *api, const char *tenant, const char *name, const struct e2b_template **ret, struct e2b_image **ret_image,
                      json_t **ret_build_spec, struct csn_error *err);
/* One that needs no files. */
const struct e2b_template *e2b_template_named(const char *name);
/* The same of a snapshot.  NULL with err->code 0: there is none of that name. */
const struct e2b_template *e2b_snapshot_find(const struct api *api, const char *tenant, const char *name, struct e2b_image **ret_image,
                                             json_t **ret_build_spec, struct csn_error *err);
/* False: there is none. */
bool e2b_snapshot_forget(const struct api *api, const char *tenant, const char *name);

/* ---- what goes with a sandbox (envd.c, interpreter.c) ---- */

void e2b_envd_free(struct e2b_envd *envd);
/* When the last of its programs that go on was started, by clock_us(); 0: none goes on.  envd may be NULL. */
uint64_t e2b_envd_started_us(const struct e2b_envd *envd);
/* Its Python starts, for whoever comes next wants it; and programs inside are told by its port that it is there. */
void e2b_interpreter_warm(struct e2b_sandbox *sandbox);
void e2b_interpreter_free(struct e2b_interpreter *interpreter);

/* ---- what programs inside find (env_files.c) ---- */

/* Of a sandbox with root that is ready; done() when they are there.  None of them is a reason to fail. */
void e2b_mark(struct e2b_sandbox *sandbox, void (*done)(struct e2b_sandbox *sandbox));
void e2b_env_files_free(struct e2b_env_files *env_files);

/* ---- the log (logs.c) ---- */

/* A line; the level is a literal: info, warn, error. */
void e2b_log(struct e2b_sandbox *sandbox, const char *level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- the way out (network.c) ---- */

/* What a client wants of it.  Errors: CSN_E_INPUT. */
int e2b_network_check(const json_t *network, struct csn_error *err);
/* What its sandbox was asked to let through.  Errors: those of psandbox_set_network(). */
int e2b_network_apply(struct e2b_sandbox *sandbox, struct csn_error *err);

/* ---- for the handlers of the control plane (control.c, control_list.c) ---- */

/* The body, or an object without members where there is none; the caller's reference.  NULL: it is wrong, or its members are, and that is answered. */
json_t *e2b_body(struct http_request *request, const struct e2b_member *members);
/* Seconds of a member as milliseconds; usual_s is 0 where they may not be missing.  False: they are wrong, and that is answered. */
bool e2b_life(struct http_request *request, const json_t *body, const char *name, unsigned usual_s, uint64_t *ret_ms);
/* The sandbox of the path; NULL: there is none, or it is being killed, and that is answered. */
struct e2b_sandbox *e2b_named(struct http_request *request);
/* What could not be made; what could not be changed (409 where it is busy). */
void e2b_fail(struct http_request *request, const struct csn_error *error);
void e2b_conflict(struct http_request *request, const struct csn_error *error);
/* ?limit= of a list.  False: it is wrong, and that is answered. */
bool e2b_limit(struct http_request *request, size_t *ret);
/* A number of the query, or the usual one where there is none.  False: it is something else, and that is answered. */
bool e2b_query_number(struct http_request *request, const char *name, int64_t usual, int64_t *ret);

/* ---- handlers ---- */

void e2b_list(struct http_request *request);
void e2b_post_snapshot(struct http_request *request);
void e2b_list_snapshots(struct http_request *request);
void e2b_get_logs(struct http_request *request);
void e2b_put_network(struct http_request *request);
void e2b_fork(struct http_request *request);
void e2b_metrics(struct http_request *request);
void e2b_template_alias(struct http_request *request);
void e2b_list_templates(struct http_request *request);
void e2b_get_template(struct http_request *request);
void e2b_delete_template(struct http_request *request);

#endif
