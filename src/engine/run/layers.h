/*
 * layers: how runs and persistent sandboxes get the layers of packages that their requests name.
 *
 * A layer source is made by src/packages, which uses the engine; the engine knows only the functions below.  A run asks
 * when its source policy has allowed the run, and waits in the state RUN_CHECKING.
 */
#ifndef ENGINE_RUN_LAYERS_H
#define ENGINE_RUN_LAYERS_H

#include "engine/launch/launch.h"

#define LAYERS_OF_RUN 2 /* one of Python, one of Node */

struct run_quota;

/* A question to the source, embedded in the object that asks. */
struct layer_query {
        /* Set by the asker; all texts are the asker's until the answer, or until forget(). */
        const struct run_request *request;
        const char *language;  /* "python", "javascript", "typescript", "bash" */
        const struct stored_image *image; /* of the programs; NULL: the host's own file system */
        const char *const *pinned;        /* ids of layers, pinned to the image by the administrator */
        size_t pinned_n;
        const char *owner_key; /* the trust domain of a layer that is built (docs/design/packages.md) */
        const struct run_quota *quota; /* of the owner's key, for builds; NULL: none */
        char **imports; /* modules that the program cannot do without, for deps "auto" */
        size_t imports_n;
        struct arena *arena; /* for the texts of the answer */
        /* The answer.  error NULL: `found` is set.  Called from the event loop, and not from find(). */
        void (*done)(struct layer_query *query, const struct csn_error *error);
        void *owner;
        /* The answer: the layers, and their lines in the record. */
        struct launch_layers found;
        struct layer_use *uses;
        size_t uses_n;
        struct warning *warnings; /* for the record: packages that are not installed, with the reason */
        size_t warnings_n;
        const char *problem;      /* with an error: its code for the record, such as "no_wheel"; or NULL */
        bool retryable;           /* with a problem: the same request may succeed later */
        int holds[LAYERS_OF_RUN]; /* descriptors that keep the layers from removal: the asker closes them; or -1 */
        /* The source's. */
        struct layer_query *next;
        void *build;
        size_t next_language;          /* languages before this one have their answer */
        uint64_t asked_us;             /* clock_us() when the query began to wait */
};

struct layer_source {
        /*
         * Answer a query.  1: query->found is set.  0: done() follows, unless forget() is called.  Errors: CSN_E_INPUT
         * (with the field of the request); CSN_E_SYSTEM with the field "/packages" (the packages cannot be installed).
         */
        int (*find)(void *owner, struct layer_query *query, struct csn_error *err);
        /* End a query without an answer.  A build goes on while other queries wait for the build. */
        void (*forget)(void *owner, struct layer_query *query);
        /*
         * The engine ends: queries are not answered any more, and forget() is not called.  Loop, runs and helper
         * threads still exist.
         */
        void (*end)(void *owner);
};

/* Whether a request names layers or packages to install, or the image of the request has layers. */
bool layers_are_wanted(const struct launch *launch);
/*
 * Convert the error of a query for an asker that has no record.  If the query has a problem, the code becomes
 * CSN_E_BUSY for a retryable problem, else CSN_E_INPUT.  The text begins with the code of the problem.
 * *ret may be *error.
 */
int layer_query_refuse(const struct layer_query *query, const struct csn_error *error, struct csn_error *ret);
/* Close the descriptors of an answer.  Harmless twice, and for a query that is all zeros but for `holds`. */
void layer_query_release(struct layer_query *query);

#endif
