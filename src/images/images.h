/*
 * images: root file systems that programs can run in, in one folder that several daemons may share.
 *
 *   store.c      the folder: names, finding, listing, removal, making
 *   names.c      names, errors
 *   pins.c       the setting images.layers, which pins layers of packages to images
 *   manifest.c   image.json: reading and writing
 *   settle.c     a tree after unpacking: mount points, interpreters
 *   modules.c    libraries and modules of a tree
 *   import.c     from an archive to an image; a library of its own with a header of its own (import.h)
 *   source.c     the archive: its kind, its documents, its layers       (of the same library)
 *   unpack.c     one layer into a tree                                  (of the same library)
 *
 * Content of the folder, where HEX are the 32 digits of an id:
 *
 *   .names/NAME     a link to HEX: the image of this name
 *   HEX/image.json  facts about the image
 *   HEX/tree/       the root file system, mounted read-only into sandboxes
 *
 * An image exists if a name leads to its folder.  Users of an image hold a shared flock(2) of the folder HEX, its maker
 * holds an exclusive one.  images_sweep() removes folders without a name and without a lock, so a kill at any moment
 * leaves whole images only.
 *
 * No function uses global state.  Functions whose comment says "long" read or remove whole trees; the others take less
 * than a millisecond on a local disk.
 *
 * Errors of all functions: CSN_E_SYSTEM; CSN_E_BUSY with err->sys ENOSPC or EDQUOT (disk full).  Comments name further
 * errors.
 */
#ifndef IMAGES_IMAGES_H
#define IMAGES_IMAGES_H

#include "model/model.h"

#define IMAGE_ID_LEN 32               /* hexadecimal digits of an id */
#define IMAGE_NAME_MAX 64             /* bytes of a name */
#define IMAGE_MANIFEST_MAX (4 * MIB)  /* bytes of image.json */
#define IMAGE_LIBRARIES_MAX 10000     /* distributions of Python that image.json lists */
#define IMAGE_MODULES_MAX 20000       /* modules of a language that image.json lists */
#define IMAGE_PATH_MAX 4000           /* bytes of a path within a tree, without the NUL */
#define IMAGE_DEPTH_MAX 128           /* folders above a file within a tree */

enum image_language { IMAGE_PYTHON, IMAGE_NODE, IMAGE_BASH, IMAGE_LANGUAGES };

/* An interpreter of an image.  path is "" where the image has none. */
struct stored_interpreter {
        const char *path;    /* absolute, inside */
        const char *version; /* "3.11"; "" where the file's name has none */
};

struct stored_image {
        const char *name;
        char id[IMAGE_ID_LEN + 1];
        uint64_t high, low;  /* the id as two numbers, for the shape of a sandbox */
        const char *kind;    /* of the archive: "tar", "docker" or "oci" */
        const char *digest;  /* "sha256:..." of the configuration of the image, or of the archive of kind tar */
        int64_t created_ms;
        uint64_t bytes, files; /* unpacked; of all layers */
        uint64_t dropped;      /* devices, pipes and sockets, and files of /dev, /proc and /sys */
        struct stored_interpreter interpreters[IMAGE_LANGUAGES];
        bool has_glibc; /* the GNU C library, and not another one */
        const char *const *libraries; /* distributions of Python, "numpy 1.24.2", sorted */
        size_t libraries_n;
        /*
         * Installed modules, sorted, without the modules of the interpreter itself: top-level names of Python, and of
         * Node names of packages.  Bash has none.
         */
        const char *const *modules[IMAGE_LANGUAGES];
        size_t modules_n[IMAGE_LANGUAGES];
        bool lists_modules;       /* false: an older version imported the image, and `modules` is empty */
        bool hides_node_packages; /* /node_modules is the image's own, so a layer of Node is not found */
        const char *const *expected; /* distributions that /usr/share/caisson/libraries of the image names */
        size_t expected_n;
        const char *fault; /* NULL; or why image.json cannot be read (images_list() only) */
};

/* Whether an image lists a module of a language. */
bool image_has_module(const struct stored_image *image, enum image_language language, const char *name);
/* The words by which image.json and answers name the interpreters: "python", "node", "bash". */
const char *image_language_name(enum image_language language);

/* ---- the folder ---- */

struct images;

/*
 * Open the folder; with `make` a missing folder is made.  *ret belongs to the caller until images_close().  Errors:
 * CSN_E_INPUT (there is no such folder, without `make`).
 */
int images_open(const char *path, bool make, struct images **ret, struct csn_error *err);
void images_close(struct images *images); /* NULL is allowed */
/* Remove folders without a name and without a hold.  Long. */
void images_sweep(struct images *images);

/*
 * Find an image by its name in the folder `path`, which may be missing.  Texts live in `arena`.  *ret_hold keeps the
 * image from removal until the caller closes the descriptor.  Errors: CSN_E_INPUT with err->field `field` (no such
 * image; the text lists the names that exist), CSN_E_SYSTEM (a damaged image.json).
 */
int image_find(const char *path, const char *name, const char *field, struct arena *arena, struct stored_image *ret,
        int *ret_hold, struct csn_error *err);
/* All images, by name, the damaged ones too; in `arena`.  A missing folder has none. */
int images_list(const char *path, struct arena *arena, struct stored_image **ret, size_t *ret_n, struct csn_error *err);
/*
 * Remove a name, and the image after its last hold.  Long.  Errors: CSN_E_INPUT (no such image; err->field is "name").
 */
int image_remove(struct images *images, const char *name, struct csn_error *err);

/*
 * The ids of layers in a text such as "python-data=lyr_…, other=lyr_…", the setting images.layers: the ids of one
 * image, or all for NULL.  The ids are not checked.  In `arena`.  Errors: CSN_E_CONFIG (an entry has another form).
 */
int image_pins(const char *text, const char *name, struct arena *arena, const char *const **ret, size_t *ret_n,
        struct csn_error *err);

/* ---- making an image ---- */

struct image_staging {
        char id[IMAGE_ID_LEN + 1];
        int fd;      /* the folder HEX, locked */
        int tree_fd; /* its folder `tree`, empty at first */
};

#define IMAGE_STAGING_NONE ((struct image_staging){ .fd = -1, .tree_fd = -1 })

/* Make an empty folder.  It ends by image_publish() or image_abort(). */
int image_stage(struct images *images, struct image_staging *ret, struct csn_error *err);
/*
 * Make the mount points of a sandbox in the tree, and fill in interpreters, libraries and expected.  New texts live in
 * `arena`.  Errors: CSN_E_INPUT (the tree is no root file system; err->field is "archive").
 */
int image_settle(const struct image_staging *staging, struct arena *arena, struct stored_image *image,
        struct csn_error *err);
/*
 * Write image.json and give the image its name.  With `replace` an image of the same name loses the name.  In each case
 * the staging has ended.  Long: waits for the disk.  Errors: CSN_E_INPUT (there is an image of this name; err->field is
 * "name").
 */
int image_publish(struct images *images, struct image_staging *staging, struct stored_image *image, bool replace,
        struct csn_error *err);
/* Remove a staging.  Long.  Nothing happens for IMAGE_STAGING_NONE. */
void image_abort(struct images *images, struct image_staging *staging);

/* ---- descriptions ---- */

/* The facts of image.json with its name and id.  The caller owns the reference. */
json_t *image_json(const struct stored_image *image);

#endif
