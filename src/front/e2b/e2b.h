/*
 * e2b: E2B's API, for E2B's unmodified clients.
 *
 * One port serves all of the API.  A request is for the control plane or for a port of a sandbox: 49983 is E2B's daemon
 * (envd), 49999 its code interpreter, any other a program of the user.  Sandbox and port come from the headers
 * E2b-Sandbox-Id and E2b-Sandbox-Port, or from the first label of Host, PORT-ID; a signed URL has neither, and its
 * signature determines the sandbox.  No daemon of E2B runs inside: the requests for envd and the interpreter are
 * answered outside, by guest calls and contexts (engine/persistent/psandbox.h).
 *
 *   wish          the parameters of a sandbox, and images
 *   base_template  predefined templates
 *   sandbox_list  lookup of sandboxes, and waits for state changes
 *   validate      check of the members of a body                   (pure, fuzzed)
 *   request       request.h: target and members of a request, and answers in E2B's format
 *   command       command.h: a program in a sandbox, with its lines and its end
 *   start_command  the program that runs in every sandbox of a template, and its readiness
 *   env_files     files that tell programs inside about their sandbox
 *   network       network rules of a sandbox
 *   logs          events of a sandbox, and in it
 *   sandbox       E2B's sandboxes: a persistent sandbox each, with E2B's additional state; their life
 *   snapshot      files of a sandbox kept as a template or copied to other sandboxes: snapshots and forks
 *   metrics       resource use of a sandbox
 *   ports         all ports except the two below
 *   envd/         port 49983
 *   interpreter/  port 49999
 *   templates/    templates, and the templates that clients build
 *   app/          the control plane, all tables of routes, and the table for a request
 *
 * src/backend/e2b.c is the other direction: a backend that runs programs at servers with this API.
 *
 * A template is the initial state of a sandbox: the profile `e2b` (root inside, and the account `user`), the host's
 * programs, and for a snapshot its files.
 */
#ifndef FRONT_E2B_E2B_H
#define FRONT_E2B_E2B_H

#include "front/service/service.h"

#define E2B_ENVD_PORT 49983
#define E2B_INTERPRETER_PORT 49999
#define E2B_ENVD_VERSION "0.6.13"          /* the version that tells clients which requests envd supports */
#define E2B_ID_LEN (1 + ID_SHORT_DIGITS)   /* i, then an id of id_new_short() */
#define E2B_TIMEOUT_MAX_S 86400
#define E2B_LIFE_S 300                     /* default life in seconds */
#define E2B_TEXTS_MAX 1000                 /* members of an object of names and texts */
#define E2B_KEPT_MAX (64 * KIB)            /* bytes each of env, metadata and network, as JSON */
#define E2B_FORKS_MAX 100
#define E2B_PAGE_MAX 100
#define E2B_LINES_MAX 100                 /* lines in the log of a sandbox; older lines are dropped */
#define E2B_SNAPSHOTS_MAX 1000             /* of all tenants together; further ones are refused */
#define E2B_SNAPSHOTS_OWNER_MAX 200

struct e2b_template;
struct e2b_sandbox;
struct e2b_logs;
struct start;
struct e2b_env_files;

/*
 * Functions of the rooms above that keep state of a sandbox; front/e2b/app sets them in each wish.  All three are
 * required.
 */
struct e2b_hooks {
        /* The sandbox runs: after its creation and after each resume. */
        void (*runs)(struct e2b_sandbox *sandbox);
        /* clock_us() at the start of the newest program that still runs; 0: none. */
        uint64_t (*program_started_us)(const struct e2b_sandbox *sandbox);
        /* No program runs any more: free envd and interpreter, and set both to NULL.  May be called twice. */
        void (*ended)(struct e2b_sandbox *sandbox);
};

/* The parameters of a sandbox, from the client's request.  e2b_wish_done() frees the members. */
struct e2b_wish {
        const struct e2b_hooks *hooks;     /* static */
        const struct e2b_template *template;
        json_t *build_spec;                /* how the template was built (templates/build.h), or NULL */
        json_t *env, *metadata;            /* names and texts; env applies to every program in the sandbox */
        json_t *network;                   /* as requested, or NULL */
        bool internet;                     /* network access was not switched off by the request */
        bool secure, closed;               /* secure: envd requires a token; closed: so do all other ports */
        /* auto_pause: pause at the end of life instead of killing; keep_memory: with memory, else with files alone */
        bool auto_pause, keep_memory;
        bool auto_resume;                  /* a request to the sandbox resumes it */
        /* of the key that created the sandbox; later requests have a token and no key */
        struct run_quota quota;
};

/*
 * All files of a sandbox, in an unnamed or shared file (see copies in engine/persistent/psandbox.h).
 * Reference-counted.
 */
struct e2b_image {
        unsigned refs;
        int fd;
        const struct service *service;
        char tenant[80];
};

enum e2b_want { E2B_WANTS_READY, E2B_WANTS_PAUSED, E2B_WANTS_OVER };

/* A pending wait for a state change of a sandbox; embedded in the caller's object. */
struct e2b_waiter {
        struct e2b_waiter *next;
        struct e2b_sandbox *sandbox;       /* NULL: not waiting */
        enum e2b_want want;
        /* called once; error is NULL on success */
        void (*done)(struct e2b_waiter *waiter, const struct csn_error *error);
        void *owner;
};

/* A sandbox.  Freed after its end; look it up again by e2b_sandbox_find() or e2b_target(). */
struct e2b_sandbox {
        struct e2b_sandbox *next;          /* list of all, newest first */
        struct service *service;
        char id[E2B_ID_LEN + 1];
        char tenant[80];
        enum { E2B_MAKING, E2B_RUNNING, E2B_PAUSING, E2B_PAUSED, E2B_RESUMING } state;
        struct psandbox *psandbox;      /* NULL: paused, with its image as the only state */
        bool networked;                 /* the administrator allowed network access at creation (engine.network) */
        struct e2b_wish wish;
        char token[65];                    /* X-Access-Token of envd; "": no token required */
        char traffic_token[65];            /* E2B-Traffic-Access-Token of all other ports; "": no token required */
        uint64_t cpus, memory_bytes, disk_bytes;
        int64_t started_ms, end_ms;
        uint64_t life_ms;                  /* the life last granted, in ms */

        int64_t looked_ms;                 /* time of the last metrics, 0: never; and CPU time then */
        double looked_cpu_ms;

        struct e2b_logs *logs;             /* NULL: no log yet */

        /* Private to sandbox.c. */
        struct e2b_waiter *waiters;
        struct psandbox_waiter over, news;      /* state changes of the persistent sandbox */
        struct psandbox_copy copy;              /* copy of its image, in either direction */
        struct e2b_env_files *env_files;        /* files being written inside, or NULL */
        struct start *start;                    /* the template's start command, or NULL */
        struct e2b_image *image;
        struct timer end, freeze;
        bool killing;                       /* killed: requests no longer find the sandbox */

        /*
         * Created by the rooms envd and interpreter at first use, and freed by hooks->ended().  NULL after a pause
         * without memory.
         */
        struct e2b_envd *envd;
        struct e2b_interpreter *interpreter;
};

/* The state of the front. */
struct e2b {
        struct e2b_sandbox *sandboxes;     /* newest first */
        struct build *builds; /* of templates: those that go on or are remembered (e2b/templates/build.h) */
};

struct e2b *e2b_of(const struct service *service);

/* ---- members of a body (validate.c) ---- */

enum e2b_kind { E2B_TEXT, E2B_BOOL, E2B_NUMBER, E2B_OBJECT, E2B_TEXTS, E2B_VARIABLES, E2B_WORD };

/* A row of a table of allowed members. */
struct e2b_member {
        const char *name;                  /* "process.cmd" is a member of the member `process`; NULL ends a table */
        enum e2b_kind kind;
        uint64_t most;                     /* maximum of a number */
        const char *words;                 /* valid words, separated by blanks */
};

/*
 * Check the members that a table names; missing and null ones pass.  Errors: CSN_E_INPUT with the name, the value and
 * the expected kind.
 */
int e2b_check(const json_t *body, const struct e2b_member *members, struct csn_error *err);
/* A whole number from 0 on, or the same as a text, as proto3 writes 64 bits.  false: neither. */
bool e2b_number(const json_t *value, uint64_t *ret);
/* The account (fields.def) for "user" or "root"; "" is user.  false: no such account. */
bool e2b_account(const char *name, int *ret);
/* A value as JSON for an error text, cut to this size; NULL becomes "missing". */
#define E2B_SHOWN_MAX 64
void e2b_show(const json_t *value, char ret[static E2B_SHOWN_MAX]);

extern const struct http_route e2b_port_routes[];

/* ---- sandboxes (sandbox.c) ---- */

/*
 * Create a sandbox, with files or NULL, and wait for E2B_WANTS_READY.  The wish stays the caller's.  *ret stays the
 * module's.  Errors: as psandbox_open().
 */
int e2b_sandbox_new(struct service *service, const char *tenant, const struct e2b_wish *wish, struct e2b_image *image,
                    struct e2b_sandbox **ret,
                    struct csn_error *err);
/* Free the members of a wish.  e2b_wish_copy(): a copy with references of its own. */
void e2b_wish_done(struct e2b_wish *wish);
/*
 * Create a persistent sandbox with the profile, a template and its build, and with these labels; build_spec may be
 * NULL.  Errors: as psandbox_open().
 */
int e2b_open_psandbox(struct service *service, const char *tenant, const struct run_quota *quota,
        const struct e2b_template *template, const json_t *build_spec, json_t *env, const char *label,
        struct psandbox **ret, struct csn_error *err);
/* The id and name of a wish's template, or of the template it was built from. */
const char *e2b_template_id(const struct e2b_wish *wish);
const char *e2b_template_name(const struct e2b_wish *wish);
struct e2b_wish e2b_wish_copy(const struct e2b_wish *wish);
/* A sandbox by id; of a tenant, or "" of all.  NULL: none, or the sandbox was never ready. */
struct e2b_sandbox *e2b_sandbox_find(const struct service *service, const char *id, const char *tenant);
/* Wait for a state; the waiter's done() is called once.  e2b_unwait(): stop waiting. */
void e2b_wait(struct e2b_sandbox *sandbox, enum e2b_want want, struct e2b_waiter *waiter);
void e2b_unwait(struct e2b_waiter *waiter);
/* Call done() of each waiter for a state.  Each wait ends before its done(), which may end other waits. */
void e2b_notify(struct e2b_sandbox *sandbox, enum e2b_want want, const struct csn_error *error);
bool e2b_sandbox_is_paused(const struct e2b_sandbox *sandbox);
/*
 * Pause or resume a sandbox; wait with E2B_WANTS_PAUSED and E2B_WANTS_READY.  ms is its life from the resume.  With
 * memory the sandbox is frozen; without memory the persistent sandbox ends, and a new one gets its files.  Errors:
 * CSN_E_BUSY (wrong state); as psandbox_save() and psandbox_open().
 */
int e2b_sandbox_pause(struct e2b_sandbox *sandbox, bool memory, struct csn_error *err);
int e2b_sandbox_resume(struct e2b_sandbox *sandbox, uint64_t ms, struct csn_error *err);
/* Set the end of a sandbox to now + ms. */
void e2b_sandbox_set_end(struct e2b_sandbox *sandbox, uint64_t ms);
/* End a sandbox: all connections to it are cut, then it is freed. */
void e2b_sandbox_kill(struct e2b_sandbox *sandbox);
/*
 * An image: an empty unnamed file in the state folder, or the descriptor fd, which becomes the image's.  Errors:
 * CSN_E_SYSTEM.
 */
int e2b_image_new(const struct service *service, const char *tenant, struct e2b_image **ret, struct csn_error *err);
struct e2b_image *e2b_image_of(const struct service *service, const char *tenant, int fd);
struct e2b_image *e2b_image_ref(struct e2b_image *image);   /* NULL stays NULL */
void e2b_image_unref(struct e2b_image *image);
/* Close a descriptor of a tenant's file, which may be the last one; see base/discard.h. */
void e2b_close_file(const struct service *service, const char *tenant, int *fd);
/* Remove the name of a tenant's file; a helper thread frees a long file.  -1 with errno. */
int e2b_remove_file(const struct service *service, const char *tenant, int folder, const char *name);
/* The objects Sandbox and SandboxDetail of E2B; the caller's reference. */
json_t *e2b_sandbox_made(const struct e2b_sandbox *sandbox);
/* `tokens`: with its tokens, for requests that have the rights of the tokens. */
json_t *e2b_sandbox_describe(const struct e2b_sandbox *sandbox, bool tokens);
/* End all sandboxes and free their state. */
void e2b_sandboxes_close(struct service *service);

/* ---- predefined templates and snapshots (base_template.c, snapshot.c) ---- */

/* A predefined template. */
struct e2b_template {
        const char *id, *name;
        const char *image;                 /* fields.def: preloaded Python modules */
        bool interprets;                   /* a Python context is started in advance */
};

/* A template without files of its own, by name; NULL: none. */
const struct e2b_template *e2b_template_named(const char *name);
/* The predefined templates in their order; NULL after the last one. */
const struct e2b_template *e2b_base_template(size_t n);
/*
 * A snapshot, with its files and its build as e2b_template_find() returns them (templates/build.h).  NULL with
 * err->code 0: no snapshot of this name.
 */
const struct e2b_template *e2b_snapshot_find(const struct service *service, const char *tenant, const char *name,
                                             struct e2b_image **ret_image,
                                             json_t **ret_build_spec, struct csn_error *err);
/* Whether a tenant has a snapshot of this name or id. */
bool e2b_snapshot_is_there(const struct service *service, const char *tenant, const char *name);
/* Delete a snapshot.  false: none of this name. */
bool e2b_snapshot_forget(const struct service *service, const char *tenant, const char *name);

/* ---- information for programs inside (env_files.c) ---- */

/* Write the files in a sandbox with root that is ready; done() follows in every case, failures are ignored. */
void e2b_mark(struct e2b_sandbox *sandbox, void (*done)(struct e2b_sandbox *sandbox));
void e2b_env_files_free(struct e2b_env_files *env_files);

/* ---- the log (logs.c) ---- */

/* Add a line to a sandbox's log; the level is a literal: info, warn, error. */
void e2b_log(struct e2b_sandbox *sandbox, const char *level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* ---- network rules (network.c) ---- */

/* Check the network rules of a request.  Errors: CSN_E_INPUT. */
int e2b_network_check(const json_t *network, struct csn_error *err);
/* Apply the requested rules to the sandbox.  Errors: as psandbox_set_network(). */
int e2b_network_apply(struct e2b_sandbox *sandbox, struct csn_error *err);

/* ---- handlers of routes ---- */

void e2b_post_snapshot(struct http_request *request);
void e2b_list_snapshots(struct http_request *request);
void e2b_get_logs(struct http_request *request);
void e2b_put_network(struct http_request *request);
void e2b_fork(struct http_request *request);
void e2b_metrics(struct http_request *request);

#endif
