/* packages from the inside; for the files of this folder. */
#ifndef PACKAGES_PACKAGES_PRIVATE_H
#define PACKAGES_PACKAGES_PRIVATE_H

#include "base/worker.h"
#include "packages/index/index.h"
#include "packages/packages.h"
#include "model/package_spec.h"

/* Part of each layer's id: to be changed with every change of what a build makes of the same lock. */
#define PACKAGES_BUILD_VERSION "1"

struct build;

struct packages {
        struct engine *engine;
        const struct settings *settings;
        struct layers *layers;
        struct build *builds;     /* all, in the order in which they came */
        size_t builds_n, running; /* running: builds beyond BUILD_WAITING */
        char *token, *ca_pem;     /* of the Python index; or NULL */
        struct job prune;
        struct timer pruning;
        struct timer serving;          /* begins builds that wait, never within find() */
        uint64_t prune_bytes, prune_ttl_ms;   /* of the settings, for the helper thread */
};

enum build_state {
        BUILD_WAITING, /* for a place, or for another process that builds the same request */
        BUILD_RESOLVING,
        BUILD_DOWNLOADING,
        BUILD_INSTALLING,
        BUILD_PUBLISHING, /* a helper thread freezes and publishes the tree */
        BUILD_DISCARDING, /* the build failed: a helper thread removes its files */
};

struct build {
        struct build *next;
        struct packages *packages;
        enum build_state state;
        char hash[LAYER_HASH_MAX]; /* of the request */
        char *domain;
        struct arena arena;
        struct package_set set;
        struct layer_query *queries; /* that wait for this build */
        uint64_t begun_us;
        struct timer timer; /* the next try of BUILD_WAITING; else the time limit */
        struct timer step;  /* the next download */
        int lock_fd;        /* of layers_lock(), or -1 */
        struct run *run;    /* in a build sandbox, or NULL */
        struct package_index *index;
        /* The lock: what the resolver chose and the index had offered. */
        const struct package_file **files;
        size_t files_n, fetched;
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

/* Begin a build that waits.  Nothing happens while another process has the lock of the request. */
void layer_build_begin(struct build *build);
/* End a build at once, without answers, and free the build. */
void layer_build_free(struct build *build);

/* ---- imports.c ---- */

/*
 * Add to the set the distributions of a program's imports that the image has not.  A distribution that `allow` does not
 * list, and a module that no table has, are not added: *ret_warnings tells which.  Everything lives in the arena.
 */
void imports_add(struct package_set *set, char *const *imports, size_t imports_n, const char *allow, const char *deny,
        struct arena *arena, struct warning **ret_warnings, size_t *ret_n);
/* "a, b c" as a list; in the arena. */
char **imports_split(const char *text, struct arena *arena, size_t *ret_n);

/* ---- programs.c ---- */

/* Resolves requirements.txt; the last line of standard output is a JSON object with the lock. */
extern const char packages_resolve[];
/* Installs lock.txt from wheels/ into tree/. */
extern const char packages_install[];

#endif
