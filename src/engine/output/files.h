/*
 * Files that a run leaves behind, read after its last process is dead.  Everything goes through the
 * descriptor of the home directory with openat2(2) (RESOLVE_BENEATH, no links of any kind, no other
 * mounts), and only what fstat(2) says is a regular file is ever opened for reading.
 */
#ifndef ENGINE_FILES_H
#define ENGINE_FILES_H

#include <sys/stat.h>

#include "base/base.h"

/* What is known of a file that was put in before the program started. */
struct file_input {
        const char *name;
        uint64_t size;
        char sha256[65];
};

struct file_found {
        char *name;              /* relative to the home; any bytes but NUL */
        uint64_t size;
        char sha256[65];         /* "" when error is set */
        const char *mime;
        bool changed;            /* an input of the same name had other content */
        const char *error;       /* why it cannot be taken, or NULL */
};

struct file_rules {
        uint64_t files_max;      /* how many are listed */
        uint64_t bytes_max;      /* how much is read in all */
        uint64_t time_ms;        /* how long the whole may take */
        const struct file_input *inputs;
        size_t inputs_n;
        int first_fd;            /* inputs[0] as it came from inside, where nobody has to be believed; or -1 */
};

#define FILES_DEPTH_MAX 32                /* folders below the home that are looked into */
#define FILES_SPARSE_MIN (64 * MIB)       /* a larger file must have real blocks to be read */

struct file_list {
        struct file_found *files;
        size_t n;
        bool truncated;          /* there are more than the rules allow to list */
};

/*
 * New and changed regular files below the home, sorted by name.  Links, FIFOs, sockets and folders are left
 * out.  Texts live in the arena.  Errors: CSN_E_SYSTEM (the home itself cannot be read).
 */
int files_collect(int home_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret,
                  struct csn_error *err);

/* Only the names of regular files below a folder of ours, sorted; at most rules->files_max. */
int files_list(int dir_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret, struct csn_error *err);

/*
 * Copy one found file below a folder of the host, which exists; folders in the name are made, a file of
 * that name is replaced and never followed if it is a link.  Mode 0644, time kept.  It is written to temp_fd,
 * a folder of the same file system, and renamed; with -1 beside its place.
 * Errors: CSN_E_INPUT (the name would be unsafe on this host), CSN_E_SYSTEM.
 */
int files_export(int home_fd, const struct file_found *file, int to_dir_fd, int temp_fd, struct csn_error *err);

/* The folder of a name below another one; those that are missing are made, and none is a link.  -1 and an error. */
int files_make_folders(int dir_fd, const char *name, struct csn_error *err);

/* What is at a name below a folder of ours, through no link but itself looked at if it is one.  -1 with errno. */
int files_stat(int dir_fd, const char *name, struct stat *ret);

/* Whether there is a regular file of this name in the home: 0, or the errno; EINVAL: it is something else. */
int files_look(int home_fd, const char *name);

/* Remove a file below a folder, and the folders above it that are empty then.  -1 with errno. */
int files_remove(int dir_fd, const char *name);

/* Bytes of all regular files below a folder, and so many more for each. */
uint64_t files_weigh(int dir_fd, uint64_t each);

/* A regular file of the home for reading, nothing else; -1 and an error. */
int files_open(int home_fd, const char *name, struct csn_error *err);

/* A file below a folder of this host, through no link of any kind; nothing about it is changed.  -1 with errno. */
int files_open_input(int dir_fd, const char *name);

/* True if a glob(7) pattern means this file: without a slash it is compared with the last part of the name. */
bool files_match(const char *pattern, const char *name);

/* By extension, then by the first bytes; "application/octet-stream" if neither tells. */
const char *files_mime(const char *name, const void *head, size_t head_len);

/* SHA-256 of everything that can be read from fd, as hex.  At most max bytes: -1 with EFBIG for more. */
int files_sha256(int fd, uint64_t max, char hex[static 65], uint64_t *ret_size);
void files_sha256_bytes(const void *bytes, size_t len, char hex[static 65]);

#endif
