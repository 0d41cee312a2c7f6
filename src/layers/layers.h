/*
 * layers: immutable folders of installed packages, in one folder that several daemons may share.
 *
 *   id.c        the name of a layer: a hash over all that decides its content
 *   meta.c      meta.json: reading and writing
 *   freeze.c    check, normalise and hash a tree
 *   folder.c    the folder: opening, locks, removal of what a dead process left
 *   publish.c   staging and publishing
 *   find.c      find, list, verify, remove, prune
 *   memory.c    answers to requests, and failures, for a limited time
 *   archive.c   export and import as tar; a library of its own with a header of its own (archive.h)
 *
 * Content of the folder, where HEX are the 32 digits of an id:
 *
 *   HEX/meta.json, HEX/tree/     a layer; the tree is mounted read-only into sandboxes
 *   .staging/NAME/               a layer in the making, or a layer on its way out
 *   .lock/KEY                    flock(2): the process that builds KEY
 *   .requests/HASH               the layer of a request without a lock
 *   .failed/HASH                 the failure of a request
 *
 * A layer appears by one rename(2) of a complete folder, and disappears by one rename(2) into .staging.  The maker of a
 * folder in .staging holds flock(2) of the folder; a folder without a lock belongs to a dead process, and the next
 * layers_open() removes the folder.  So a kill at any moment leaves whole layers only.
 *
 * The folders HEX and tree have mode 0755, files have 0644 or 0755: a mounter with another user id reads them.
 *
 * No function uses global state.  One `struct layers` may be used by several threads at once.  Functions whose comment
 * says "long" read or remove whole trees and belong in helper threads (base/worker.h); the others take less than a
 * millisecond on a local disk.
 *
 * Errors of all functions: CSN_E_SYSTEM; CSN_E_BUSY with err->sys ENOSPC or EDQUOT (disk full).  Comments name further
 * errors.
 */
#ifndef LAYERS_LAYERS_H
#define LAYERS_LAYERS_H

#include "model/model.h"

#define LAYER_ID_PREFIX "lyr_"
#define LAYER_ID_BYTES 16
#define LAYER_ID_MAX (sizeof LAYER_ID_PREFIX + 2 * LAYER_ID_BYTES) /* with the NUL */
#define LAYER_HASH_MAX 65                                          /* SHA-256 in hexadecimal, with the NUL */
#define LAYER_PACKAGES_MAX 10000 /* packages of a layer; the ceiling of packages.max_count */
#define LAYER_MODULES_MAX 50000  /* modules of a layer that meta.json lists */
#define LAYER_WARNINGS_MAX 64    /* warnings of a layer; further warnings are dropped */
#define LAYER_META_MAX (8 * MIB) /* bytes of meta.json */
#define LAYER_PATH_MAX 1024      /* bytes of a path within a tree, without the NUL */
#define LAYER_DEPTH_MAX 64       /* folders above a file within a tree */
#define LAYER_KEY_MAX 64         /* bytes of a key of layers_lock() and of a request's hash: [0-9a-z_] */
#define LAYER_FAULT_MAX 400      /* bytes of the description of a damage, with the NUL */

/* ---- names ---- */

/* A file of an index.  Texts are never NULL; unknown texts are "". */
struct layer_package {
        const char *name, *version; /* normalised name (PEP 503, or npm's with its scope) */
        const char *file;           /* name of the file in the index */
        const char *hash;           /* 64 hexadecimal digits of SHA-256, or npm's integrity "sha512-..." */
        const char *upload_time;    /* RFC 3339; not part of the id */
};

/* All that decides the content of a layer.  Texts are never NULL. */
struct layer_key {
        const char *domain;      /* tenant; "": the lock came from an administrator */
        const char *language;    /* "python" */
        const char *runtime;     /* "3.11.2" */
        const char *arch, *libc; /* "x86_64", "glibc 2.36" */
        const char *image;       /* digest or name of the image */
        const char *index;       /* identity of the index: its address */
        const char *build;       /* version of the build's own rules */
        const struct layer_package *lock;
        size_t lock_n; /* in any order */
};

/* "lyr_" and the first 16 bytes of SHA-256 over length-prefixed fields and the sorted lock. */
void layer_id(const struct layer_key *key, char ret[static LAYER_ID_MAX]);
/* The bytes of an id, for the supervisor.  False: the text is not an id. */
bool layer_id_parse(const char *text, uint8_t ret[static LAYER_ID_BYTES]);

/* ---- the folder ---- */

struct layers;

/*
 * Open the folder: make missing folders and remove what dead processes left.  *ret belongs to the caller until
 * layers_close().  Long if a large layer was left.  Errors: CSN_E_CONFIG (the path is not a folder, belongs to
 * another user, or its file system has no locks).
 */
int layers_open(const char *path, struct layers **ret, struct csn_error *err);
void layers_close(struct layers *layers); /* NULL is allowed */
const char *layers_path(const struct layers *layers);

/*
 * Take the lock of a key (an id, or the hash of a request), without waiting.  1: taken, until layers_unlock();
 * 0: another process or another caller of this process has the lock: try again later.
 */
int layers_lock(struct layers *layers, const char *key, int *ret_fd, struct csn_error *err);
void layers_unlock(struct layers *layers, const char *key, int *fd);

/* ---- making a layer ---- */

/* packages.max_bytes and packages.max_files. */
struct layer_limits {
        uint64_t max_bytes; /* bytes of all files of a tree */
        uint64_t max_files; /* files, folders and links of a tree */
};

struct layer_meta {
        struct layer_key key;
        bool pinned;                /* made from a lock: never expires, and is evicted by the ceiling of bytes alone */
        int64_t created_ms;         /* layers_commit() fills in 0 */
        const char *const *modules; /* top-level names that a program can import, for hints */
        size_t modules_n;
        const char *const *warnings; /* layers_commit() adds one for each .pth file */
        size_t warnings_n;
        char tree_sha256[LAYER_HASH_MAX]; /* layers_commit() fills in ""; another value has to be the tree's hash */
        uint64_t bytes, files;            /* filled in by layers_commit() */
};

struct layer_staging {
        char name[33]; /* below .staging */
        int fd;        /* the folder, locked */
        int tree_fd;   /* its folder `tree`, empty at first */
};

#define LAYER_STAGING_NONE ((struct layer_staging){ .fd = -1, .tree_fd = -1 })

/* Make an empty folder.  It ends by layers_commit() or layers_abort(). */
int layers_stage(struct layers *layers, struct layer_staging *ret, struct csn_error *err);
/* Absolute path of the staging's tree, if the folder was opened by an absolute path; in `arena`. */
char *layers_staging_tree(const struct layers *layers, const struct layer_staging *staging, struct arena *arena);

/*
 * Freeze the staging's tree, write meta.json and publish the layer under layer_id(&meta->key).  If the
 * layer exists, the staging is discarded, and that is a success.  In each case the staging has ended.
 *
 * Freezing refuses everything but files, folders and symbolic links that stay inside; files with several names; names
 * with control characters or invalid UTF-8.  Modes become 0644 or 0755 and all times the same.  So a .pyc file that
 * records the time of its source is never valid: compile with --invalidation-mode unchecked-hash.  A .pth file stays
 * without effect, because the site module does not read PYTHONPATH for .pth files.
 *
 * Long: reads the whole tree, and waits for the disk (syncfs(2)).  `meta` is filled in; new texts live in `arena`.
 * Errors: CSN_E_INPUT (the tree is refused; err->field is "tree", "max_bytes" or "max_files").
 */
int layers_commit(struct layers *layers, struct layer_staging *staging, const struct layer_limits *limits,
        struct layer_meta *meta, struct arena *arena, char ret_id[static LAYER_ID_MAX], struct csn_error *err);
/* Remove a staging.  Long.  Nothing happens for LAYER_STAGING_NONE. */
void layers_abort(struct layers *layers, struct layer_staging *staging);

/* ---- using layers ---- */

struct layer {
        char id[LAYER_ID_MAX];
        struct layer_meta meta;
        int64_t used_ms;   /* last layers_find(), or the layer's publishing */
        const char *fault; /* NULL; or why the layer cannot be used (layers_list() only) */
};

/*
 * Look for a layer and note its use.  1: found; its texts live in `arena`.  0: there is no such layer, or it is damaged
 * and was moved away, so that it can be built again.  The tree itself is not read: see layers_verify().
 *
 * ret_hold: NULL, or a descriptor that keeps the layer from removal until the caller closes the descriptor.
 */
int layers_find(struct layers *layers, const char *id, struct arena *arena, struct layer *ret, int *ret_hold,
        struct csn_error *err);
/* meta.json of a layer, with used_ms; or id, used_ms and fault.  The caller owns the reference. */
json_t *layer_json(const struct layer *layer);
/* All layers, oldest use first, the damaged ones too; in `arena`. */
int layers_list(struct layers *layers, struct arena *arena, struct layer **ret, size_t *ret_n, struct csn_error *err);
/*
 * Compare a layer's tree with its meta.json.  1: intact.  0: damaged, and moved away; `fault` says how.  Long.  Errors:
 * CSN_E_INPUT (no such layer).
 */
int layers_verify(struct layers *layers, const char *id, char fault[static LAYER_FAULT_MAX], struct csn_error *err);
/*
 * Remove a layer.  The content of a layer that is held stays for its holders, and goes when the folder is opened or
 * pruned after the last hold.  Long.  Errors: CSN_E_INPUT (no such layer).
 */
int layers_remove(struct layers *layers, const char *id, struct csn_error *err);

struct layers_pruned {
        size_t layers;
        uint64_t bytes;
};

struct layers_prune_rules {
        uint64_t max_bytes; /* of all layers; 0: no ceiling */
        uint64_t ttl_ms;
        int64_t now_ms;
        const char *const *kept; /* ids of layers that stay in each case */
        size_t kept_n;
};

/*
 * Remove expired layers (not pinned, and last used ttl_ms before now_ms or earlier), then the least recently used ones
 * until the others have at most max_bytes, pinned ones too.  Layers that are held stay.  Also removes answers and
 * failures that are older than ttl_ms, and what dead processes left.  Long.
 */
int layers_prune(struct layers *layers, const struct layers_prune_rules *rules, struct layers_pruned *ret,
        struct csn_error *err);

/* ---- answers and failures ---- */

/* Remember the layer of a request without a lock, replacing an older answer. */
int layers_remember_request(struct layers *layers, const char *hash, const char *id, struct csn_error *err);
/* 1: the answer of at most ttl_ms ago; the layer itself may be gone.  0: none. */
int layers_request(struct layers *layers, const char *hash, uint64_t ttl_ms, char ret_id[static LAYER_ID_MAX],
        struct csn_error *err);

struct layer_failure {
        char code[64];   /* "package_not_found" */
        char text[2048]; /* a longer text is cut */
};

/* Remember that the build of a request failed, replacing an older failure. */
int layers_remember_failure(struct layers *layers, const char *hash, const struct layer_failure *failure,
        struct csn_error *err);
/* 1: a failure of at most ttl_ms ago.  0: none. */
int layers_failure(struct layers *layers, const char *hash, uint64_t ttl_ms, struct layer_failure *ret,
        struct csn_error *err);

#endif
