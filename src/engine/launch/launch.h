/*
 * launch: a request made whole: all input of a backend.
 *
 * A launch is values and files of this host: no process, and no descriptor of a sandbox.  A run, a persistent sandbox
 * and a pool each embed one.
 */
#ifndef ENGINE_LAUNCH_LAUNCH_H
#define ENGINE_LAUNCH_LAUNCH_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "engine/output/files.h"
#include "images/images.h"
#include "lang/lang.h"
#include "model/settings.h"

#define LAUNCH_WARNINGS_MAX 32
#define OWNER_KEY_MAX 80           /* bytes of the key of a tenant, with the NUL */
/* label of a sandbox without task_id in its request (struct wire_shape) */
#define LAUNCH_LABEL "run"
/* Of one run; fields.def has the same numbers for requests by JSON. */
#define LAUNCH_PRELUDE_BYTES MIB
#define LAUNCH_INPUT_BYTES MIB
#define LAUNCH_MODULES_MAX 1000
#define LAUNCH_MODULES_BYTES (16 * MIB)    /* of all modules together */
#define LAUNCH_MODULE_FOLDERS 16           /* in the name of a module */
#define LAUNCH_INPUT_NAME ".input.json"    /* in the home directory */
#define TOOLS_PATH ":/opt/caisson/tools/bin"      /* appended to PATH where the command `tool` exists */

/* A kept file, as its owner knows the file.  The name is from the arena. */
struct launch_kept {
        const char *name;
        uint64_t size;
        char sha256[65];
};

/*
 * The owner of lasting files.  The engine knows neither ids nor folders of such files.  Descriptors are for
 * reading where nothing else is said.
 */
struct run_storage {
        /*
         * Find a kept file of the request, and open its content.  Errors: CSN_E_INPUT, the same for a missing
         * file and for a file of another owner.
         */
        int (*find)(void *owner, const char *id, struct arena *arena, struct launch_kept *ret, struct csn_error *err);
        int (*open)(void *owner, const char *id, int *ret_fd, struct csn_error *err);
        /*
         * begin() is called before the functions that a helper thread may call: keep(), weigh().  These use nothing
         * of the storage but what is the run's.  begin() may be NULL.
         */
        void (*begin)(void *owner);
        /*
         * Keep an output file: all bytes of fd.  name: with its folders.  *ret_url tells where the
         * file is afterwards.
         */
        int (*keep)(void *owner, const char *run_id, const char *user, const char *name, const char *mime, int fd,
                struct arena *arena, char **ret_url, struct csn_error *err);
        /*
         * Make the next kept file known, in the order of keep().  1; 0: no more.  An error is about the file with the
         * address *ret_url, and a call for the next file may follow.  NULL: keep() is all.  launch_close_work() drops
         * unpublished files.
         */
        int (*publish)(void *owner, const char **ret_url, struct csn_error *err);
        /* Forget unpublished files.  With publish(). */
        void (*drop)(void *owner);
        /*
         * Lock the folder of a workspace for one run until leave().  *ret_temp is a folder of the same file system for
         * incomplete files.  Both descriptors stay the storage's.  Errors: CSN_E_BUSY (another run works in the
         * workspace).
         */
        int (*enter)(void *owner, const char *user, const char *name, int *ret_dir, int *ret_temp,
                struct csn_error *err);
        /* Bytes by which the workspace may grow; *ret_each is the cost of a file in addition to its bytes. */
        uint64_t (*room)(void *owner, uint64_t *ret_each);
        /* Measure the workspace for leave(), after the last change. */
        void (*weigh)(void *owner);
        void (*leave)(void *owner);
};

/* An input file for the program: bytes in memory, a file of this host, or a kept file. */
struct launch_input {
        const char *name;
        const char *path;              /* or NULL */
        const char *id;                /* of a kept file, or NULL */
        const struct launch_kept *kept;
        struct bytes content;
        unsigned mode;
        bool hidden;                   /* the program itself, its prelude or its input: not listed among the inputs */
        bool work;                     /* path is below the work folder, which other processes may change */
};

/* Ids of the layers of packages that a sandbox has, 128 bits each; 0: none. */
struct launch_layers {
        uint64_t python_high, python_low, node_high, node_low;
        uint64_t folders;              /* identity of the folders: a layer that was built again has another one */
};

/* The keeper of volumes. */
struct volume_source {
        /*
         * Set high and low of the owner's volume with this name.  Errors: CSN_E_INPUT (the owner has no such volume),
         * CSN_E_SYSTEM.
         */
        int (*find)(void *owner, const char *owner_key, struct wire_volume *volume, struct csn_error *err);
};

/* Granted devices (engine.devices). */
#define DEVICE_GRANTS_MAX 64
struct device_grant {
        const char *profile;
        size_t device;                 /* its place in paths, which is its bit in a shape */
};
struct device_grants {
        const char *paths[WIRE_DEVICES_MAX];
        struct device_grant list[DEVICE_GRANTS_MAX];
        size_t paths_n, n;
};

/* Read engine.devices; the texts are in the arena.  Errors: CSN_E_CONFIG. */
int device_grants_read(const struct settings *settings, struct arena *arena, struct device_grants *ret,
        struct csn_error *err);
/* The paths between commas, for a supervisor; "" for a wrong setting. */
char *device_grants_list(const struct settings *settings, struct arena *arena);

struct launch {
        /* Set by launch_init(). */
        const struct settings *settings;
        const struct language *added;          /* languages of the configuration */
        /* Set by the caller before launch_prepare(). */
        const char *id; /* of the run; part of names, or NULL where the request has neither task_id nor work_dir */
        bool local;                            /* the request may name paths of this host */
        bool has_messages;                     /* the runner exchanges messages with the engine */
        bool judged;                           /* run_set_judged() */
        bool served;                           /* the caller serves the network of the sandbox: run_set_network() */
        bool persistent;                       /* a persistent sandbox: programs of any language follow */
        bool compile_only;                     /* compile the program without a run */
        bool awaits;                           /* see run_set_awaits() */
        bool builds;                           /* installs packages: the request may name an internal profile */
        const struct run_storage *storage;     /* NULL: no kept files and no workspaces */
        void *storage_owner;
        const struct volume_source *volumes;   /* NULL: no volumes */
        void *volumes_owner;
        const char *owner_key;                 /* of the tenant: its volumes, and its zygotes with packages; or NULL */
        /* The request; complete after launch_prepare(). */
        struct arena arena;
        struct run_request request;
        /* Set by launch_prepare(). */
        const struct language *language;
        const struct backend *backend;
        int ahead;                             /* enum image: preloaded modules; SYSTEM with an image */
        const struct stored_image *image;      /* in the arena; NULL: the host's own file system */
        const char *const *pinned;             /* ids of the layers of the image (images.layers) */
        size_t pinned_n;
        int image_hold;                        /* keeps the image from removal, or -1 */
        const char *interpreter;               /* path in the image; NULL: that of the language */
        struct wire_shape shape;
        char **devices;                        /* paths of the granted devices in the shape */
        size_t devices_n;
        uint64_t layer_folders;                /* of struct launch_layers */
        struct backend_program program;        /* limits, arguments, environment, standard input, files */
        const char *main_file;
        int work_fd;                           /* the work folder, locked, or -1 */
        const char *work_dir;                  /* path of the work folder; NULL: none, or a workspace */
        int work_temp_fd;                      /* of a workspace: folder for incomplete files */
        bool entered;                          /* the work folder is a workspace of the storage */
        struct warning *warnings;              /* for the record of the run */
        size_t warnings_n;
        /* Set by launch_find_kept(): of the files of the request that have an id. */
        struct launch_kept *kept;
        size_t sought;                         /* files of the request without a look-up */
        /* Set by launch_examine(). */
        struct launch_input *inputs;
        size_t inputs_n;
        struct file_input *digests;            /* sizes and hashes of the inputs, in the same order */
        atomic_bool given_up;                  /* set by any thread: the result of launch_examine() is not used */
};

/* The settings and the added languages stay the caller's and must outlive the launch. */
void launch_init(struct launch *launch, const struct settings *settings, const struct language *added);
/* Close the work folder and the image, and free the arena. */
void launch_done(struct launch *launch);

/*
 * Complete the request from profile, defaults and ceilings, derive the rest from it, and open the work folder.  A
 * program that is started needs launch_find_kept() and launch_examine() in addition.  Errors: as records have them,
 * with the field of the request.
 */
int launch_prepare(struct launch *launch, struct csn_error *err);
/*
 * Find kept files of the request until a time by clock_us(), at least one.  1: files are left for another call.
 * Errors: as of launch_prepare().
 */
int launch_find_kept(struct launch *launch, uint64_t until_us, struct csn_error *err);
/* Whether launch_examine() is for a helper thread: it may take longer than a step of the loop may. */
bool launch_is_long(const struct launch *launch);
/*
 * List the input files with their sizes and hashes; launch->program is complete after that.  In the loop or in a helper
 * thread: uses nothing but the launch.  Errors: as of launch_prepare(); any, if the result is not used (given_up).
 */
int launch_examine(struct launch *launch, struct csn_error *err);
/* After launch_prepare() and before an instance is chosen: mount layers of packages. */
void launch_set_layers(struct launch *launch, const struct launch_layers *layers);
/* After launch_prepare(): change the arguments so that the program is compiled and not run. */
void launch_for_compiling(struct launch *launch);
/*
 * Whether a request has the members that every run needs: code; and a language, or a context, profile or file name that
 * implies the language.  Errors: CSN_E_INPUT with the field.
 */
int launch_check_needed(struct launch *launch, struct csn_error *err);

/* Unlock and close the work folder, drop files that are not published, and let the image go.  Harmless twice. */
void launch_close_work(struct launch *launch);
/*
 * The frame EXECUTE of a request for a live interpreter (docs/protocols/runner-channel.md), without the member "code".
 * The caller's reference.
 */
json_t *launch_as_execution(const struct launch *launch);
/*
 * The path of a language's interpreter in the image, in the memory of the launch.  *ret is NULL without an image, and
 * for a language of the configuration.  Errors: CSN_E_INPUT (the image lacks the interpreter).
 */
int launch_interpreter(const struct launch *launch, const struct language *language, const char **ret,
        struct csn_error *err);
/* The image for a record, in the memory of the launch, which has an image. */
void launch_describe_image(const struct launch *launch, struct image_use *ret);
/* Add a warning to the record; `code` is a stable name.  Warnings beyond LAUNCH_WARNINGS_MAX are dropped. */
void launch_warn(struct launch *launch, const char *code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void launch_vwarn(struct launch *launch, const char *code, const char *fmt, va_list args);

/* Whether a request makes tools available to the program. */
bool launch_wants_tools(const struct tools_request *request);
/*
 * Whether the program starts a new interpreter that takes a noticeable time and reports over the channel when it is
 * done.
 */
bool launch_starts_slowly(const struct launch *launch);
/* Environment of every program, "NAME=value"; NULL-terminated. */
const char *const *launch_usual_env(void);

/*
 * Remove folders that runs made for a missing work_dir and that are older than engine.retention_ms.  Returns their
 * number.
 */
size_t launch_collect_garbage(const struct settings *settings);

#endif
