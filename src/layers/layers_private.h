/* What the files of this folder share. */
#ifndef LAYERS_LAYERS_PRIVATE_H
#define LAYERS_LAYERS_PRIVATE_H

#include "layers/layers.h"

#define META_FILE "meta.json"
#define TREE_FOLDER "tree"
#define HEX_LEN (2 * LAYER_ID_BYTES)

struct layers {
        char *path;
        int fd;
        int staging_fd, lock_fd, requests_fd, failed_fd;
};

/* ---- folder.c ---- */

/*
 * Open a name of a folder and take a flock(2) of it (LOCK_SH or LOCK_EX), without waiting.  1: taken, and the name
 * still belongs to the descriptor; 0: locked by another.  -1 with errno.
 */
int lock_name(int parent_fd, const char *name, int open_flags, int operation, int *ret_fd);
/* Call each(owner, name) for all names of a folder but "." and "..".  -1 with errno. */
int folder_each(int dir_fd, void (*each)(void *owner, const char *name), void *owner);
/* Move a layer (32 digits) out of sight, into .staging.  ret_name: its name there.  -1 with errno. */
int layer_move_away(struct layers *layers, const char *hex, char ret_name[static 33]);
/* Remove a name of .staging, unless its maker or a holder is alive. */
void staging_remove(struct layers *layers, const char *name);
void layers_sweep(struct layers *layers);
/* CSN_E_INPUT unless the key is one that layers_lock() takes. */
int key_check(const char *key, struct csn_error *err);

/* ---- meta.c ---- */

/* Replace all but printable ASCII: errors have texts of foreign files in them, and end on terminals. */
void clean_text(char *text);

/* meta.json of a complete `meta`, *ret_len bytes; the caller frees the text.  NULL: longer than LAYER_META_MAX. */
char *meta_encode(const struct layer_meta *meta, size_t *ret_len);
/* Read a meta.json; ret_id is the id of its key.  The texts live in `arena`.  False: `fault` says what is wrong. */
bool meta_decode(const char *text, size_t len, struct arena *arena, struct layer_meta *ret,
        char ret_id[static LAYER_ID_MAX], char fault[static LAYER_FAULT_MAX]);
/* Read meta.json of the layer `id` in its folder.  False: as meta_decode(). */
bool meta_read(int dir_fd, const char *id, struct arena *arena, struct layer_meta *ret,
        char fault[static LAYER_FAULT_MAX]);

/* ---- freeze.c ---- */

struct tree_facts {
        char sha256[LAYER_HASH_MAX];
        uint64_t bytes, files;
        const char **warnings; /* in the arena, at most LAYER_WARNINGS_MAX */
        size_t warnings_n;
};

/*
 * Hash the tree and check it.  freeze: also set modes and times.  Errors: CSN_E_INPUT with err->field "tree",
 * "max_bytes" or "max_files".
 */
int tree_read(int tree_fd, bool freeze, const struct layer_limits *limits, struct arena *arena, struct tree_facts *ret,
        struct csn_error *err);
/* Whether a part of a path can be a name in a tree; otherwise *ret_why says why not. */
bool tree_name_is_good(const char *name, const char **ret_why);

#endif
