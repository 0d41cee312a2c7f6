/*
 * archive: a layer as a tar file, for sites without a connection.  A library of its own, for programs that have
 * libarchive.
 *
 * Members: meta.json, and below tree/ the content.  Written with zstd (RFC 8878); read with zstd or without a filter.
 *
 * Both functions are long, and use the locale for names beyond ASCII: the caller sets LC_CTYPE to a UTF-8 locale.
 */
#ifndef LAYERS_ARCHIVE_H
#define LAYERS_ARCHIVE_H

#include "layers/layers.h"

/* Verify a layer and write it to a descriptor.  Errors: CSN_E_INPUT (no such layer, or a damaged one). */
int layers_export(struct layers *layers, const char *id, int fd, struct csn_error *err);

/*
 * Read a layer from a descriptor and publish it.  The archive is hostile: a member outside of the tree, through a link,
 * twice, or with another type than file, folder and symbolic link is refused, then the tree is checked as by
 * layers_commit() and compared with the hash in meta.json.  The id is computed from the fields of meta.json.
 *
 * Errors: CSN_E_INPUT (refused; err->field is "archive", or as layers_commit()).
 */
int layers_import(struct layers *layers, int fd, const struct layer_limits *limits, char ret_id[static LAYER_ID_MAX],
        struct csn_error *err);

#endif
