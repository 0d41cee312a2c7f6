/*
 * import: an archive becomes an image.  A library of its own, for programs that have libarchive.
 *
 * Archives: the tar file of a root file system, the output of `docker save`, and an OCI image layout (image-layout.md
 * of the OCI image specification) as a tar file or a folder.  The tar file and the layers may be compressed with gzip
 * or zstd.  Each document and layer of an OCI layout is compared with its digest before it is parsed, each layer of
 * docker save with its diff_id.
 *
 * The archive is hostile.  A member that leaves the tree, or leads through a link, is refused.  Owners, extended
 * attributes, file capabilities and the bits set-user-ID, set-group-ID and sticky are not taken over.  Devices, pipes
 * and sockets are dropped, as are files of /dev, /proc and /sys.
 *
 * image_import() is long, and uses the locale for names beyond ASCII: the caller sets LC_CTYPE to a UTF-8 locale.
 */
#ifndef IMAGES_IMPORT_H
#define IMAGES_IMPORT_H

#include "images/images.h"

#define IMAGE_LAYERS_MAX 512              /* layers of an image */
#define IMAGE_DOCUMENT_MAX (4 * MIB)      /* bytes of a JSON document of an archive */

/* images.max_bytes and images.max_files. */
struct image_limits {
        uint64_t max_bytes; /* bytes of all files of all layers, unpacked */
        uint64_t max_files; /* members of all layers */
};

struct image_import {
        int fd;              /* the archive: a regular file, a pipe, or a folder; stays the caller's */
        const char *name;    /* of the image */
        bool replace;        /* an image of the same name loses the name */
        struct image_limits limits;
};

/*
 * Unpack and publish.  *ret describes the image; texts live in `arena`.  Errors: CSN_E_INPUT (refused; err->field is
 * "archive", "name", "max_bytes" or "max_files").
 */
int image_import(struct images *images, const struct image_import *import, struct arena *arena,
        struct stored_image *ret, struct csn_error *err);

#endif
