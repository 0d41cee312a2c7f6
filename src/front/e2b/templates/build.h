/*
 * build: templates built by clients of E2B: a base, and steps that change its files.
 *
 *   template        lookup of all templates, and requests about them
 *   template_store  stored templates: names, tags, builds, and the files after each step
 *   copy_source     files of a client for COPY
 *   build           a build: a sandbox of its own, in which the steps run in order
 *   build_steps     steps: check, change of the build spec, command
 *   build_routes    requests for templates, builds and tags
 *
 * There is no image registry.  The base is the template `base`, whatever image a client names, and the log says so; or
 * another template.  A build keeps no memory: the start command runs anew in each sandbox of a template.
 */
#ifndef FRONT_E2B_TEMPLATES_BUILD_H
#define FRONT_E2B_TEMPLATES_BUILD_H

#include "front/e2b/command.h"
#include "front/e2b/request.h"

#define BUILD_STEPS_MAX 500
#define BUILD_STEPS_BYTES (256 * KIB)      /* bytes of all steps as JSON */
#define BUILD_SPEC_BYTES (8 * KIB)       /* bytes of a build spec as JSON, mostly its environment */
#define BUILD_LINES_MAX 1000               /* lines of a build's log; later lines are lost */
#define BUILD_LOG_BYTES (128 * KIB)
#define BUILDS_KEPT_MAX 20                 /* builds per template; the oldest without a tag are removed */
#define BUILDS_MAX 50                      /* builds kept with their logs; the oldest that ended are removed */
#define BUILDS_OWNER_MAX 4                 /* running builds of a tenant */
#define TEMPLATES_OWNER_MAX 100
#define TAGS_MAX 20                        /* per template */
#define LAYERS_OWNER_MAX 500               /* files after steps; files that no template needs are removed first */
#define ARCHIVES_OWNER_MAX 200             /* the oldest are removed */
#define BUILD_KEY_LEN 64
#define BUILD_ID_LEN 36

/* ---- stored templates (template_store.c) ---- */

/*
 * A template as JSON: id, tenant, name, cpuCount, memoryMB, createdAt, updatedAt, and builds, newest first.  A build:
 * id, status (waiting, building, ready, error), createdAt, tags; `recipe`, the build spec, if ready; `reason` if
 * failed.
 *
 * A build spec: templateID, name, buildID, base (a predefined template), layer (the key of its files, or ""), env,
 * user, workdir, start, ready; and packages, where steps install packages in a layer: "python:six", "node:left-pad@1".
 */

/* A template by id, by name with any tag, or by "team/name"; the caller's reference.  NULL: the tenant has none. */
json_t *template_store_find(const struct service *service, const char *tenant, const char *name);
/* All templates of a tenant, newest first; the caller's reference.  And their number. */
json_t *kept_all(const struct service *service, const char *tenant);
size_t template_store_count(const struct service *service, const char *tenant);
/* A build of a template by its id, or by tag; NULL: none.  Borrowed. */
json_t *template_store_build(const json_t *template, const char *id);
json_t *template_store_tagged(const json_t *template, const char *tag);
/* The tag in "name:tag"; "default" without a tag. */
const char *template_store_tag(const char *name);
bool template_store_is_tag(const char *text);
/* Move a tag from its build to this build. */
void template_store_set_tag(json_t *template, json_t *build, const char *tag);
void template_store_drop_tag(json_t *template, const char *tag);
/* Create a template with id and times; the caller's reference. */
json_t *template_store_new(const char *tenant, const char *name);
/* Write a template; delete a template.  Errors: CSN_E_UNSUPPORTED (the daemon has no store), CSN_E_SYSTEM. */
int template_store_save(const struct service *service, const json_t *template, struct csn_error *err);
int template_store_forget(const struct service *service, const json_t *template, struct csn_error *err);

/* Files of a tenant in the folder `layers` or `archives`, by key. */
enum template_store_kind { TEMPLATE_STORE_LAYER, TEMPLATE_STORE_ARCHIVE };
/* Open a file and mark it as used now.  The descriptor is the caller's.  -1: none. */
int template_store_open(const struct service *service, enum template_store_kind kind, const char *tenant,
                        const char *key);
bool template_store_has(const struct service *service, enum template_store_kind kind, const char *tenant,
                        const char *key);
/*
 * Give an unnamed file (O_TMPFILE) its name; a file with this key may exist.  fd stays the caller's.  Errors:
 * CSN_E_UNSUPPORTED (the daemon has no store), CSN_E_BUSY (no space), CSN_E_SYSTEM.
 */
int template_store_name(const struct service *service, enum template_store_kind kind, const char *tenant,
                        const char *key, int fd, struct csn_error *err);
/*
 * Create an empty unnamed file on the file system of the store.  Returns the descriptor, the caller's.  Errors: as
 * template_store_name().
 */
int template_store_file(const struct service *service, enum template_store_kind kind, struct csn_error *err);

/* ---- steps (build_steps.c) ---- */

#define BUILD_CONTEXT "/tmp/.caisson-context"   /* folder in which the archive of COPY is unpacked */

/* Check the steps of a request: {type, args, ...}.  Errors: CSN_E_INPUT. */
int build_steps_check(const json_t *steps, struct csn_error *err);
/* Argument i of a step; "" if there is none. */
const char *build_step_arg(const json_t *step, size_t i);
/* Whether a step changes files, and so has a layer of its own. */
bool build_step_changes_files(const json_t *step);
/* Change environment, user and working folder of the build spec by a step.  Errors: CSN_E_INPUT. */
int build_step_apply(json_t *build_spec, const json_t *step, struct csn_error *err);
/*
 * The command of a step that changes files; of COPY once its archive is unpacked.  helper: the account that may change
 * owners.  *ret refers to both JSON values and to path.  Errors: CSN_E_INPUT (unknown account).
 */
int build_step_command(const json_t *build_spec, const json_t *step, int helper, char path[static GUEST_PATH_MAX],
        struct build_command_what *ret, struct csn_error *err);

/*
 * Whether a step is RUN with a command such as "pip install six" or "npm install left-pad", and the settings name an
 * index of the language: then a layer has the packages.  A command with other options, addresses, paths or quotes is
 * for the shell.  The packages are added to `ret`, in the form of the field packages; ret may be NULL.
 */
bool build_step_packages(const struct settings *settings, const json_t *step, json_t *ret);

/* ---- a build (build.c) ---- */

struct build {
        struct build *next;                /* list of all, newest first */
        struct service *service;
        char tenant[80], template_id[21], id[BUILD_ID_LEN + 1];
        struct run_quota quota;            /* of the key */
        enum { BUILD_BUILDING, BUILD_READY, BUILD_ERROR } state;
        json_t *steps, *build_spec, *log;      /* steps: NULL after the end */
        size_t log_bytes;
        char *reason, *step;               /* for BUILD_ERROR */
        char layer[BUILD_KEY_LEN + 1];     /* key of the files in the sandbox; "": the base */

        /* Private to build.c. */
        size_t at, cached;                 /* the current step; the number of steps with stored files */
        bool needs_psandbox;
        char (*keys)[BUILD_KEY_LEN + 1];   /* after each step, a digest of all steps so far */
        struct e2b_image *image;           /* of the base */
        struct psandbox *psandbox;
        struct psandbox_waiter ready, over;
        struct psandbox_copy copy;
        struct build_command build_command;
        struct start start;
        int fd;                            /* source or target of a copy, or -1 */
        struct timer deadline;             /* engine.build_ms */
};

/*
 * Begin a build of a stored template from the body of E2B's request: fromImage or fromTemplate, steps, startCmd,
 * readyCmd, force.  The build is then among struct e2b's builds.  Errors: CSN_E_INPUT; CSN_E_BUSY (the maximum of
 * running builds, or no CPU time is left).
 */
int build_begin(struct http_request *request, const json_t *template, const char *id, const json_t *body,
        struct csn_error *err);
struct build *build_find(const struct service *service, const char *tenant, const char *id);   /* NULL: not kept */
void build_close(struct service *service);

/* A digest of a text as the key of a file. */
void build_key(const char *text, char key[static BUILD_KEY_LEN + 1]);

/* ---- templates by name (template.c) ---- */

/*
 * Find a template by id or name, with or without a tag.  For a snapshot *ret is the template of its sandbox, for a
 * built template the template it was built from.  *ret_image has its files and *ret_build_spec its build, both as
 * references of the caller, or NULL.  Errors: CSN_E_INPUT with ENOENT in sys, CSN_E_SYSTEM.
 */
int e2b_template_find(const struct service *service, const char *tenant, const char *name,
                      const struct e2b_template **ret, struct e2b_image **ret_image,
                      json_t **ret_build_spec, struct csn_error *err);

/* ---- handlers (build_routes.c, copy_source.c, template.c) ---- */

void builds_post_template(struct http_request *request);
void builds_post(struct http_request *request);
void builds_status(struct http_request *request);
void builds_post_tags(struct http_request *request);
void builds_delete_tags(struct http_request *request);
void builds_get_tags(struct http_request *request);
void builds_patch_template(struct http_request *request);
void archive_get(struct http_request *request);
void archive_put(struct http_request *request);
void e2b_template_alias(struct http_request *request);
void e2b_list_templates(struct http_request *request);
void e2b_get_template(struct http_request *request);
void e2b_delete_template(struct http_request *request);

#endif
