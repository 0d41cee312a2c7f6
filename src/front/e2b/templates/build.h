/*
 * build: templates that clients of E2B build, which are a base and steps that change its files.
 *
 *   kept      what is known of them: names, tags, builds, and the files that each step left
 *   archive   files of a client's, from which COPY takes
 *   build     a build: a sandbox of its own, in which one step is done after another
 *   build command    a program in a sandbox, of which the lines and the end matter
 *   start     what runs in every sandbox of a template, and when that is ready
 *   builds    what clients ask for: templates, builds, tags
 *
 * There is no registry here.  The base is the host's programs, whatever image a client names, and the log says so; or another template.
 * What is not kept of a build is memory: so the start command runs anew in each sandbox of a template.
 */
#ifndef FRONT_E2B_BUILD_H
#define FRONT_E2B_BUILD_H

#include "front/e2b/e2b.h"

#define BUILD_STEPS_MAX 500
#define BUILD_STEPS_BYTES (256 * KIB)      /* of them as JSON */
#define BUILD_SPEC_BYTES (8 * KIB)       /* of what is kept of a build as JSON: its environment, above all */
#define BUILD_LINES_MAX 1000               /* of a build's log; what comes later is lost */
#define BUILD_LOG_BYTES (128 * KIB)
#define BUILDS_KEPT_MAX 20                 /* of a template; the oldest without a tag go */
#define BUILDS_MAX 50                      /* that are remembered with their logs; the oldest that are over go */
#define BUILDS_OWNER_MAX 4                 /* that go on at once */
#define TEMPLATES_OWNER_MAX 100
#define TAGS_MAX 20                        /* of a template */
#define LAYERS_OWNER_MAX 500               /* files that steps left; those that no template needs go first */
#define ARCHIVES_OWNER_MAX 200             /* the oldest go */
#define BUILD_KEY_LEN 64
#define BUILD_ID_LEN 36

/* ---- what is kept (template_store.c) ---- */

/*
 * A template as JSON: id, tenant, name, cpuCount, memoryMB, createdAt, updatedAt, and builds, newest first.  A build: id, status (waiting,
 * building, ready, error), createdAt, tags, and when it is ready its recipe; when it failed, its reason.
 *
 * A recipe: templateID, name, buildID, base (a template of ours), layer (the key of its files, or ""), env, user, workdir, start, ready.
 */

/* By id or name, whose tag does not matter, or "team/name"; the caller's reference.  NULL: this tenant has none. */
json_t *template_store_find(const struct api *api, const char *tenant, const char *name);
/* All of a tenant's, newest first; the caller's reference.  And how many there are. */
json_t *kept_all(const struct api *api, const char *tenant);
size_t template_store_count(const struct api *api, const char *tenant);
/* The build of a template by its id, or with a tag; NULL: there is none.  Borrowed. */
json_t *template_store_build(const json_t *template, const char *id);
json_t *template_store_tagged(const json_t *template, const char *tag);
/* The tag in "name:tag"; "default" where there is none. */
const char *template_store_tag(const char *name);
bool template_store_is_tag(const char *text);
/* A tag goes from the build that had it to this one. */
void template_store_set_tag(json_t *template, json_t *build, const char *tag);
void template_store_drop_tag(json_t *template, const char *tag);
/* One that is new: id and times.  The caller's reference. */
json_t *template_store_new(const char *tenant, const char *name);
int template_store_save(const struct api *api, const json_t *template, struct csn_error *err);
int template_store_forget(const struct api *api, const json_t *template, struct csn_error *err);

/* Files in the folder `layers` or `archives`, of a tenant, by key. */
enum template_store_kind { TEMPLATE_STORE_LAYER, TEMPLATE_STORE_ARCHIVE };
/* The file, which was used now.  -1: there is none. */
int template_store_open(const struct api *api, enum template_store_kind kind, const char *tenant, const char *key);
bool template_store_has(const struct api *api, enum template_store_kind kind, const char *tenant, const char *key);
/* An open file without a name (O_TMPFILE) gets one; there may be one of this key already. */
int template_store_name(const struct api *api, enum template_store_kind kind, const char *tenant, const char *key, int fd, struct csn_error *err);
/* An empty file without a name, where template_store_name() can give it one. */
int template_store_file(const struct api *api, enum template_store_kind kind, struct csn_error *err);

/* ---- a program in a sandbox (command.c) ---- */

/* Embedded in its owner, who sets the first three; all zeros is none. */
struct build_command {
        void (*line)(struct build_command *build_command, bool error, const char *text);
        /* Once: the status of wait(2), or an error if it could not be started or the sandbox has gone.  It may run again then. */
        void (*done)(struct build_command *build_command, int status, const struct csn_error *error);
        void *owner;
        struct guest_call call;
        struct buf lines[2];
        int status;
};

struct build_command_what {
        int account;                       /* fields.def */
        const char *folder;
        json_t *env;                       /* names and texts, or NULL */
        const char *command;               /* of bash, as one who logs in has it */
        const char *args[6];               /* $1 and so on; NULL ends them */
};

int build_command_run(struct psandbox *psandbox, struct build_command *build_command, const struct build_command_what *what, struct csn_error *err);
/* Harmless twice; what goes on of it is killed, and done() is not called. */
void build_command_stop(struct build_command *build_command);

/* ---- what runs in every sandbox (start_command.c) ---- */

/* Embedded in its owner, who sets the first three; all zeros is none. */
struct start {
        void (*line)(struct start *start, bool error, const char *text);
        /* Once: it is ready, or will not be.  The program goes on, if it does not end by itself, until start_stop(). */
        void (*done)(struct start *start, const struct csn_error *error);
        void *owner;
        struct psandbox *psandbox;
        struct loop *loop;
        json_t *build_spec;
        struct build_command program, check;
        struct timer again, deadline;
        bool told;
};

/* Whether a recipe has something to run. */
bool start_is_there(const json_t *build_spec);
/* `whole`: also a check that only sleeps is waited for. */
int start_begin(struct start *start, struct api *api, struct psandbox *psandbox, json_t *build_spec, bool whole, struct csn_error *err);
void start_stop(struct start *start);      /* harmless twice */


/* ---- a build (build.c) ---- */

struct build {
        struct build *next;                /* of all, newest first */
        struct api *api;
        char tenant[80], template_id[21], id[BUILD_ID_LEN + 1];
        enum { BUILD_BUILDING, BUILD_READY, BUILD_ERROR } state;
        json_t *steps, *build_spec, *log;      /* steps: NULL when it is over */
        size_t log_bytes;
        char *reason, *step;               /* of BUILD_ERROR */
        char layer[BUILD_KEY_LEN + 1];     /* what its sandbox began with, or has by now; "": the base */

        /* build.c's own. */
        size_t at, cached;                 /* the step that is done; those before this one are there already */
        bool needs_psandbox;
        char (*keys)[BUILD_KEY_LEN + 1];   /* behind each step, of all that led there */
        struct e2b_image *image;           /* of the base */
        struct psandbox *psandbox;
        struct psandbox_waiter ready, over;
        struct psandbox_copy copy;
        struct build_command build_command;
        struct start start;
        int fd;                            /* that is copied from or to, or -1 */
        struct timer deadline;             /* engine.build_ms */
};

/*
 * Begin one for a template that is kept, by the body of E2B's request: fromImage or fromTemplate, steps, startCmd, readyCmd, force.  It is in
 * api->builds from then on.  Errors: CSN_E_INPUT; CSN_E_BUSY: as many go on as may.
 */
int build_begin(struct api *api, const char *tenant, const json_t *template, const char *id, const json_t *body, struct csn_error *err);
struct build *build_find(const struct api *api, const char *tenant, const char *id);   /* NULL: it is not remembered */
void build_close(struct api *api);

/* A digest of a text, as key of a file. */
void build_key(const char *text, char key[static BUILD_KEY_LEN + 1]);

/* ---- handlers (build_routes.c, copy_source.c) ---- */

void builds_post_template(struct http_request *request);
void builds_post(struct http_request *request);
void builds_status(struct http_request *request);
void builds_post_tags(struct http_request *request);
void builds_delete_tags(struct http_request *request);
void builds_get_tags(struct http_request *request);
void builds_patch_template(struct http_request *request);
void archive_get(struct http_request *request);
void archive_put(struct http_request *request);

#endif
