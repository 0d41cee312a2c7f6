/*
 * Files that a run leaves behind, read after its last process is dead.  All access goes through the descriptor of the
 * home directory with openat2(2) (RESOLVE_BENEATH, no links of any kind, no other mounts), and only regular files by
 * fstat(2) are opened for reading.
 */
#ifndef ENGINE_OUTPUT_FILES_H
#define ENGINE_OUTPUT_FILES_H

#include <sys/stat.h>

#include "base/base.h"

#include <stdatomic.h>

/* An input file, written before the program started. */
struct file_input {
        const char *name;
        uint64_t size;
        char sha256[65];
        double ms;               /* to open and to hash it */
};

/* A file of the home.  Texts live in the arena. */
struct file_found {
        char *name;              /* relative to the home; any bytes but NUL */
        uint64_t size;
        char sha256[65];         /* "" if error is set */
        const char *mime;
        bool changed;            /* an input of the same name had other content */
        const char *error;       /* why the file cannot be read, or NULL */
};

/* Limits of a collection. */
struct file_rules {
        uint64_t files_max;      /* maximum of listed files */
        uint64_t bytes_max;      /* maximum of bytes read in all */
        uint64_t time_ms;        /* time limit in ms for all of it */
        const struct file_input *inputs;
        size_t inputs_n;
        const atomic_bool *given_up;   /* true: the result is not used, and nothing more is read; or NULL */
        int first_fd;            /* inputs[0] as returned from inside, where nothing is trusted; or -1 */
};

#define FILES_DEPTH_MAX 32                /* depth of folders below the home */
#define FILES_SPARSE_MIN (64 * MIB)       /* bytes; a larger file is read only if its blocks are allocated */

struct file_list {
        struct file_found *files;
        size_t n;
        bool truncated;          /* there are more than files_max */
};

/*
 * Collect the new and changed regular files below the home, sorted by name.  Links, FIFOs, sockets and folders are left
 * out.  Texts live in the arena.  Errors: CSN_E_SYSTEM (the home itself cannot be read).
 */
int files_collect(int home_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret,
                  struct csn_error *err);

/* List the names of regular files below a trusted folder, sorted; at most rules->files_max.  Errors: CSN_E_SYSTEM. */
int files_list(int dir_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret,
        struct csn_error *err);

/*
 * Copy a found file to below an existing folder of the host; folders in the name are created.  A file or link of the
 * name is replaced, and never followed.  Mode 0644; the time is kept.  The copy is written in temp_fd, a folder of the
 * same file system, and renamed; with -1, beside its final place.  Errors: CSN_E_INPUT (the name would be unsafe on
 * this host), CSN_E_SYSTEM.
 */
int files_export(int home_fd, const struct file_found *file, int to_dir_fd, int temp_fd, struct csn_error *err);

/*
 * Open the folder of a name below dir_fd; missing folders are created, links are refused.  Returns the descriptor, the
 * caller's.  Errors: CSN_E_SYSTEM.
 */
int files_make_folders(int dir_fd, const char *name, struct csn_error *err);

/* stat(2) of a name below a trusted folder, without following links; a link itself is reported.  -1 with errno. */
int files_stat(int dir_fd, const char *name, struct stat *ret);

/* Whether the home has a regular file of this name: 0, or the errno; EINVAL for other kinds of files. */
int files_look(int home_fd, const char *name);

/* Remove a file below a folder, and the parent folders that are then empty.  -1 with errno. */
int files_remove(int dir_fd, const char *name);

/* Total bytes of all regular files below a folder, plus `each` for each file. */
uint64_t files_weigh(int dir_fd, uint64_t each);

/*
 * Open a regular file of the home, without further hard links, for reading.  Returns the descriptor, the caller's.
 * Errors: CSN_E_INPUT (another kind of file), CSN_E_SYSTEM.
 */
int files_open(int home_fd, const char *name, struct csn_error *err);

/*
 * Open a file below a folder of this host for reading, through no link of any kind, without changing its times.  -1
 * with errno.
 */
int files_open_input(int dir_fd, const char *name);

/* Whether a glob(7) pattern matches the file; a pattern without a slash is compared with the last part of the name. */
bool files_match(const char *pattern, const char *name);

/* The media type by extension, else by the first bytes, else "application/octet-stream".  Static text. */
const char *files_mime(const char *name, const void *head, size_t head_len);

/* SHA-256 of all bytes read from fd, in hexadecimal.  -1 with errno; EFBIG for more than max bytes. */
int files_sha256(int fd, uint64_t max, char hex[static 65], uint64_t *ret_size);
void files_sha256_bytes(const void *bytes, size_t len, char hex[static 65]);

#endif
