/* What the files of the library that imports images share. */
#ifndef IMAGES_IMPORT_PRIVATE_H
#define IMAGES_IMPORT_PRIVATE_H

#include "images/images_private.h"
#include "images/import.h"

#include <archive.h>
#include <archive_entry.h>
#include <openssl/evp.h>

#define PIECE ((size_t)256 * 1024) /* bytes that are read at once */
#define SHA256_LEN 64              /* hexadecimal digits */

/* ---- source.c ---- */

struct source {
        int fd;              /* the archive, seekable; or a folder */
        bool is_folder;
        uint64_t read_max;   /* bytes that a compressed stream may have */
        struct csn_error *err;
};

/* Bytes of a member or a file, and their hash. */
struct stream {
        struct source *source;
        struct archive *outer; /* the tar file that has the member, or NULL */
        int fd;                /* the file, or -1 */
        EVP_MD_CTX *digest;
        uint64_t bytes;
        char *piece;
};

enum source_kind { SOURCE_TAR, SOURCE_DOCKER, SOURCE_OCI };

/* err_field() for the field "archive". */
int archive_refused(struct csn_error *err, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The read error of an archive is the fault of the archive. */
int archive_unreadable(struct archive *tar, struct csn_error *err);
/* Begin to read a tar file at its first byte.  The caller frees *ret. */
int source_open_tar(const struct source *source, struct archive **ret);
/* Tell docker save and OCI layouts from root file systems by their members. */
int source_find_kind(struct source *source, enum source_kind *ret);
/* Open a member by its path.  The caller calls member_done(), after an error too. */
int source_open_member(struct source *source, const char *path, struct stream *ret);
/* An archive_read_callback of archive_read_open(3) for a struct stream: pieces of at most PIECE bytes. */
la_ssize_t member_callback(struct archive *tar, void *stream, const void **ret);
void member_done(struct stream *stream);
/* Parse a JSON document.  `sha256`: its hash, or NULL for any.  The caller owns *ret. */
int source_read_json(struct source *source, const char *path, const char *sha256, json_t **ret);
/*
 * Hash of a member; with `unpacked` of its content after decompression.  Errors: CSN_E_INPUT (missing, unreadable).
 */
int source_hash(struct source *source, const char *path, bool unpacked, char ret_sha256[static SHA256_LEN + 1]);

/* ---- unpack.c ---- */

struct unpacker {
        const struct image_limits *limits;
        int tree_fd;
        struct csn_error *err;
        uint64_t bytes, files, dropped;
        uint64_t *seen; /* hashes of the paths of this layer, open addressing; 0: free */
        size_t seen_n, seen_size;
        const char *member; /* for errors */
};

enum unpack_pass { UNPACK_ALL, UNPACK_WHITEOUTS, UNPACK_FILES };

/*
 * Take the members of a tar stream that is open.  A layer is read twice: its whiteouts are for the layers below and
 * come first.  UNPACK_ALL: a root file system, in which names of whiteouts are plain names.
 */
int unpack_tar(struct unpacker *unpacker, struct archive *tar, enum unpack_pass pass);
void unpack_done(struct unpacker *unpacker);

#endif
