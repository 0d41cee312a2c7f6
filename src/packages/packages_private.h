/* packages from the inside; for the files of this folder. */
#ifndef PACKAGES_PACKAGES_PRIVATE_H
#define PACKAGES_PACKAGES_PRIVATE_H

#include "base/worker.h"
#include "packages/index/index.h"
#include "packages/packages.h"
#include "model/package_spec.h"

#include <jansson.h>

/* Part of each layer's id: to be changed with every change of what a build makes of the same lock. */
#define PACKAGES_BUILD_VERSION "1"

/* Languages with layers, in the order in which a query gets them. */
#define PACKAGES_LANGUAGES LAYERS_OF_RUN

struct build;

/* What differs between languages.  The steps of a build are in build.c. */
struct package_language {
        const char *name; /* of layers and of sets, "javascript"; the programs of build sandboxes are in it, too */
        enum package_kind kind;
        const char *installer;                  /* "npm" */
        const char *url_setting, *token_setting; /* "packages.node.registry_url" */
        const char *const *files; /* of the host, and so of a sandbox: runtime and installer; NULL at the end */
        /*
         * Programs (programs.c).  `probe` prints the runtime, the processor and the C library of an image, or of the
         * host for a lock; NULL: a layer is for the host's runtime, which the image has as well (packages_fit_image()).
         */
        const char *resolve, *install, *probe;
        const char *(*url)(const struct settings *settings);        /* "": no index */
        const char *(*token_file)(const struct settings *settings); /* "": none */
        /* The only input of the resolver: its name, and its text in the arena of the build. */
        const char *input_name;
        char *(*input)(struct build *build);
        /*
         * Take the files of the resolver's answer, as far as the index has offered them, into build->files, names and
         * places.  false: the build has failed.
         */
        bool (*judge)(struct build *build, json_t *lock);
        /* Take build->set.lock in place of a resolver's answer: layer_build_take_lock() or a failure follows. */
        void (*resolve_lock)(struct build *build);
        /* Write what the installer reads besides the files.  Errors: CSN_E_SYSTEM. */
        int (*write_lock)(const struct build *build, int work_fd, struct csn_error *err);
        /* In a helper thread: complete the tree, of which only regular files left the sandbox, and list its modules. */
        void (*finish)(struct build *build, int tree_fd);
};

extern const struct package_language packages_python, packages_node;

struct packages {
        struct engine *engine;
        const struct settings *settings;
        struct layers *layers;
        struct build *builds;     /* all, in the order in which they came */
        size_t builds_n, running; /* running: builds beyond BUILD_WAITING */
        char *tokens[PACKAGES_LANGUAGES]; /* of the indexes of Python and Node; or NULL */
        struct package_trust *trust;      /* of the indexes; NULL: the host's authorities */
        struct job prune;
        bool prune_again; /* layers were built while the helper thread pruned */
        struct timer pruning;
        struct timer serving;          /* begins builds that wait, never within find() */
        /* Of the settings, for the helper thread. */
        uint64_t prune_bytes, prune_ttl_ms;
        struct arena prune_arena; /* of the ids */
        const char *const *prune_kept;
        size_t prune_kept_n;
};

enum build_state {
        BUILD_WAITING, /* for a place, or for another process that builds the same request */
        BUILD_PROBING, /* in a sandbox of the image */
        BUILD_RESOLVING,
        BUILD_DOWNLOADING,
        BUILD_INSTALLING,
        BUILD_PUBLISHING, /* a helper thread freezes and publishes the tree */
        BUILD_DISCARDING, /* the build failed: a helper thread removes its files */
};

/* build_lock.c: documents of the names of a lock. */
struct locked {
        json_t *entries; /* by folder */
        void *at;        /* iterator: the next entry whose document is to be loaded; NULL: none is left */
        size_t loading;
};

struct build {
        struct build *next;
        struct packages *packages;
        enum build_state state;
        char hash[LAYER_HASH_MAX]; /* of the request */
        char *domain;
        struct run_quota quota; /* of the key whose request began the build */
        const struct package_language *language;
        const char *token; /* of the index; or NULL */
        struct arena arena;
        struct package_set set;
        const char *image, *image_digest; /* for the probe; or NULL */
        const char *runtime, *arch, *libc; /* the probe's answer; NULL: as the resolver says */
        struct locked locked;
        struct layer_query *queries; /* that wait for this build */
        uint64_t begun_us;
        struct timer timer; /* the next try of BUILD_WAITING; else the time limit */
        struct timer step;  /* the next download */
        int lock_fd;        /* of layers_lock(), or -1 */
        struct run *run;    /* in a build sandbox, or NULL */
        struct package_index *index;
        /* The lock: what the resolver chose and the index had offered. */
        const struct package_file **files;
        char **names;  /* of files[i] in the work folder */
        char **places; /* of files[i] in the layer's metadata: file name, or folder of a module */
        size_t files_n, fetched;
        const char **warnings; /* for the layer's metadata */
        size_t warnings_n;
        json_t *lock;   /* npm: the lock for the installer; or NULL */
        json_t *report; /* the last line of the installer; or NULL */
        /* The layer in the making. */
        struct layer_staging staging;
        char *work_path; /* folder of the second sandbox's inputs and outputs, below the staging */
        struct layer_meta meta;
        struct layer_limits limits;
        struct job job;
        struct csn_error job_error; /* of the helper thread; code 0: none */
        char layer[LAYER_ID_MAX];
        /* Set by source.c: the build has a layer or an error and is to be freed; a waiting build may be tried again. */
        void (*over)(struct build *build);
        void (*due)(struct build *build);
        /* The failure; code 0: none. */
        struct csn_error err;
        const char *problem; /* "no_wheel" */
};

/* ---- build.c ---- */

/* Fail a build, with one of the codes of docs/use/packages.md.  The first failure stays. */
void layer_build_fail(struct build *build, const char *problem, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Make room for the files of a lock.  false: the build has failed, because the lock has too many packages. */
bool layer_build_take_files(struct build *build, size_t n);
/* Write a text into a new file of a folder.  Errors: CSN_E_SYSTEM. */
int layer_build_write(int work_fd, const char *name, const char *text, size_t len, struct csn_error *err);

/* Open the index of a build, for a resolver on a listening socket or without clients (-1).  false: a failure. */
bool layer_build_open_index(struct build *build, int listen_fd);
/* Judge the lock in report["lock"], and go on to the downloads. */
void layer_build_take_lock(struct build *build, json_t *report);

/* Begin a build that waits.  Nothing happens while another process has the lock of the request. */
void layer_build_begin(struct build *build);
/* End a build at once, without answers, and free the build. */
void layer_build_free(struct build *build);

/* ---- build_lock.c ---- */

/* Take the entries of a package-lock.json and its direct dependencies into a set.  Errors: CSN_E_INPUT with /lock. */
int lock_read(struct package_set *set, const char *text, struct csn_error *err);
/* resolve_lock() of packages_node. */
void lock_resolve(struct build *build);

/* ---- named.c ---- */

/* Add a layer to the answer of a query.  query->holds[query->uses_n] has the descriptor that keeps the layer. */
void named_note(struct layer_query *query, const struct layer *layer, bool cached, uint64_t wait_ms);
/* Whether the answer has a layer of a language. */
bool named_has(const struct layer_query *query, const struct package_language *language);
/* Use the layers of the request.  Errors: CSN_E_INPUT. */
int named_use(struct packages *packages, struct layer_query *query, struct csn_error *err);
/*
 * Find the layer of a language in query->pinned.  1: *ret_hold is the caller's; 0: none.
 * Errors: CSN_E_INPUT (the layer does not exist or does not fit the image).
 */
int named_find_pin(struct packages *packages, const struct package_language *language, struct layer_query *query,
        struct layer *ret, int *ret_hold, struct csn_error *err);
/* Add the packages of a layer to a set, as far as the set does not name them. */
int named_add_pin(struct package_set *set, const struct layer *pin, struct csn_error *err);

/* ---- image.c ---- */

/*
 * Whether programs in an image find a layer of a language, and can use the layer; NULL, the host's own file system,
 * can.  Errors: CSN_E_INPUT with the field "/image".
 */
int packages_fit_image(const struct package_language *language, const struct stored_image *image,
        struct csn_error *err);
/* Whether imports_add() can know what an image has.  Errors: CSN_E_INPUT with the field "/deps". */
int packages_know_image(const struct stored_image *image, struct csn_error *err);

/* ---- imports.c ---- */

/* What decides on the package of an import. */
struct import_rules {
        const char *allow, *deny;         /* packages.allow, packages.deny */
        const struct stored_image *image; /* which has modules of its own; NULL: the host's file system */
        const struct layer *pin;          /* pinned to the image; or NULL */
};

/*
 * Add to the set the packages of a program's imports that the image has not.  A package that `allow` does not list (for
 * Node: by its name or a beginning, not by "*"), and a module of Python that no table has, are not added: *ret_warnings
 * tells which.  Everything lives in the arena.
 */
void imports_add(struct package_set *set, char *const *imports, size_t imports_n, const struct import_rules *rules,
        struct arena *arena, struct warning **ret_warnings, size_t *ret_n);
/* "a, b c" as a list; in the arena. */
char **imports_split(const char *text, struct arena *arena, size_t *ret_n);

/* ---- programs.c ---- */

/* The programs of packages_python: the last line of resolve is a JSON object with the lock. */
extern const char packages_pip_resolve[], packages_pip_install[];
/* The programs of packages_node: the same; the last line of install is a JSON object with the links. */
extern const char packages_npm_resolve[], packages_npm_install[];
/* The last line is a JSON object with the runtime and the C library. */
extern const char packages_node_probe[];

#endif
