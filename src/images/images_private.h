/* What the files of this folder share. */
#ifndef IMAGES_IMAGES_PRIVATE_H
#define IMAGES_IMAGES_PRIVATE_H

#include "images/images.h"

#define IMAGE_MANIFEST "image.json"
#define IMAGE_TREE "tree"
#define IMAGE_NAMES ".names"

struct images {
        char *path;
        int fd, names_fd;
};

/* Replace all but printable ASCII: errors have texts of foreign files in them, and end on terminals. */
void image_clean_text(char *text);
/* CSN_E_INPUT unless the text is a name: [a-z0-9][a-z0-9._-]{0,63}.  err->field is `field`. */
int image_name_check(const char *name, const char *field, struct csn_error *err);
/* CSN_E_INPUT unless an image can have the name; err->field is "name". */
int image_may_be_named(const char *name, struct csn_error *err);
/* CSN_E_INPUT: there is an image of the name. */
int image_exists(const char *name, struct csn_error *err);
/* Remove a file, or a folder with its content.  Nothing happens for a missing name.  0; -1 with errno. */
int image_remove_entry(int dir_fd, const char *name);

/* ---- modules.c ---- */

/* Open a path as a program inside would: links are followed, and / is the tree.  -1 with errno. */
int image_open_inside(int tree_fd, const char *path, int flags);
/*
 * Fill in libraries, modules and hides_node_packages from the folders of the tree; interpreters are known.  Texts live
 * in `arena`.
 */
void image_find_modules(int tree_fd, struct arena *arena, struct stored_image *image);

/* ---- manifest.c ---- */

/* Write image.json into a folder.  Errors: CSN_E_INPUT (larger than IMAGE_MANIFEST_MAX). */
int image_write_manifest(int dir_fd, const struct stored_image *image, struct csn_error *err);
/* Read image.json of a folder.  Errors: CSN_E_SYSTEM (missing or damaged). */
int image_read_manifest(int dir_fd, const char *name, const char *id, struct arena *arena, struct stored_image *ret,
        struct csn_error *err);

#endif
