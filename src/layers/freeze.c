/*
 * Check, normalise and hash a tree.
 *
 * The tree was written by foreign programs, and is no longer written to.  The walk goes by descriptors and follows no
 * link.  The kernel resolves links: openat2(2) with RESOLVE_BENEATH (Linux 5.6) fails with EXDEV for each way out, also
 * through other links.
 *
 * The hash covers type, path, execute permission and content of each entry, folders in the order of their names.
 */
#include "layers/layers_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define RULES "caisson tree 1"
#define PIECE (256 * KIB)
#define TRIES_MAX 10000           /* of openat2(2) for one link, while other processes rename folders */
#define FROZEN_TIME 315532800 /* 1980-01-01, the earliest time in a zip file */

struct walk {
        const struct layer_limits *limits;
        struct arena *arena; /* of the caller */
        struct tree_facts *facts;
        struct csn_error *err;
        EVP_MD_CTX *digest;
        int tree_fd;
        bool freeze;
        char *piece;
        size_t path_len;
        char path[LAYER_PATH_MAX + 1];
};

static const struct timespec frozen[2] = { { .tv_sec = FROZEN_TIME }, { .tv_sec = FROZEN_TIME } };

static int refused(const struct walk *walk, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refused(const struct walk *walk, const char *fmt, ...)
{
        char text[200];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        return err_field(walk->err, "tree", "the layer is refused: \"%.200s\" %s", walk->path, text);
}

static int unreadable(const struct walk *walk, const char *what)
{
        return err_storage(walk->err, errno, "%s %.300s of the layer", what,
                walk->path[0] ? walk->path : TREE_FOLDER);
}

static int hash(const struct walk *walk, const void *bytes, size_t len)
{
        if (EVP_DigestUpdate(walk->digest, bytes, len) != 1)
                return err_set(walk->err, CSN_E_SYSTEM, 0, "libcrypto cannot compute SHA-256");
        return 0;
}

static int hash_number(const struct walk *walk, uint64_t number)
{
        uint8_t bytes[8];
        for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (uint8_t)(number >> (56 - 8 * i));
        return hash(walk, bytes, sizeof bytes);
}

/* The head of each entry: its type and path. */
static int hash_entry(const struct walk *walk, char type)
{
        if (hash(walk, &type, 1) < 0 || hash_number(walk, walk->path_len) < 0)
                return -walk->err->code;
        return hash(walk, walk->path, walk->path_len);
}

bool tree_name_is_good(const char *name, const char **ret_why)
{
        size_t len = strlen(name);
        *ret_why = "has a name that is not valid UTF-8";
        if (!utf8_valid(name, len))
                return false;
        *ret_why = "has a control character in its name";
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
                        return false;
        *ret_why = "has a name that leads out of its folder";
        return len > 0 && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/');
}

/* ---- one entry ---- */

static int add_bytes(const struct walk *walk, uint64_t bytes)
{
        if (bytes > walk->limits->max_bytes - walk->facts->bytes)
                return err_field(walk->err, "max_bytes",
                        "the layer has more than %" PRIu64 " bytes (packages.max_bytes)", walk->limits->max_bytes);
        walk->facts->bytes += bytes;
        return 0;
}

static int hash_content(const struct walk *walk, int fd, uint64_t size)
{
        uint64_t left = size;
        for (;;) {
                ssize_t n = read(fd, walk->piece, PIECE);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return unreadable(walk, "read");
                if ((uint64_t)n > left || (n == 0 && left))
                        return refused(walk, "changes while it is read");
                if (n == 0)
                        return 0;
                left -= (uint64_t)n;
                if (hash(walk, walk->piece, (size_t)n) < 0)
                        return -walk->err->code;
        }
}

static void warn_of_pth(const struct walk *walk)
{
        struct tree_facts *facts = walk->facts;
        if (walk->path_len < 4 || strcmp(walk->path + walk->path_len - 4, ".pth") != 0 ||
                facts->warnings_n == LAYER_WARNINGS_MAX)
                return;
        facts->warnings[facts->warnings_n++] =
                arena_text(walk->arena, "%s has no effect: .pth files are not read", walk->path);
}

static int walk_file(const struct walk *walk, int dir_fd, const char *name)
{
        struct stat st;
        auto_fd fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return unreadable(walk, "open");
        if (!S_ISREG(st.st_mode))
                return refused(walk, "changes while it is read");
        if (st.st_nlink != 1)
                return refused(walk, "is a hard link; a layer has files with one name");
        bool executable = st.st_mode & 0100;
        if (add_bytes(walk, (uint64_t)st.st_size) < 0 || hash_entry(walk, executable ? 'x' : 'f') < 0 ||
                hash_number(walk, (uint64_t)st.st_size) < 0 || hash_content(walk, fd, (uint64_t)st.st_size) < 0)
                return -walk->err->code;
        if (walk->freeze && (fchmod(fd, executable ? 0755 : 0644) < 0 || futimens(fd, frozen) < 0))
                return unreadable(walk, "set the mode of");
        warn_of_pth(walk);
        return 0;
}

/* Dangling links and circles stay inside as well: nothing in the tree changes any more. */
static bool stays_inside(const struct walk *walk)
{
        struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
        auto_fd fd = -1;
        /* EAGAIN: somewhere on the host a folder was renamed during the step over ".." (openat2(2)). */
        for (int i = 0; i < TRIES_MAX && fd < 0 && (i == 0 || errno == EAGAIN); i++)
                fd = (int)syscall(SYS_openat2, walk->tree_fd, walk->path, &how, sizeof how);
        return fd >= 0 || errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
}

static int walk_link(const struct walk *walk, int dir_fd, const char *name)
{
        ssize_t len = readlinkat(dir_fd, name, walk->piece, PIECE);
        if (len < 0)
                return unreadable(walk, "read");
        if (!stays_inside(walk))
                return refused(walk, "is a link that leads out of the layer");
        if (hash_entry(walk, 'l') < 0 || hash_number(walk, (size_t)len) < 0 || hash(walk, walk->piece, (size_t)len) < 0)
                return -walk->err->code;
        if (walk->freeze && utimensat(dir_fd, name, frozen, AT_SYMLINK_NOFOLLOW) < 0)
                return unreadable(walk, "set the time of");
        return 0;
}

/* ---- folders ---- */

struct names {
        struct arena arena;
        char **list;
        size_t n, size;
};

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct walk *walk, struct names *names, const char *name)
{
        if (walk->facts->files == walk->limits->max_files)
                return err_field(walk->err, "max_files",
                        "the layer has more than %" PRIu64 " files (packages.max_files)", walk->limits->max_files);
        walk->facts->files++;
        if (names->n == names->size) {
                names->size = 2 * names->size + 16;
                names->list = mem_resize(names->list, names->size * sizeof *names->list);
        }
        names->list[names->n++] = arena_copy(&names->arena, name, strlen(name));
        return 0;
}

/* The names of a folder, sorted: the order of readdir(3) is the file system's. */
static int list_names(struct walk *walk, int dir_fd, struct names *ret)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                rc = unreadable(walk, "list");
                fd_close(&copy);
                return rc;
        }
        for (struct dirent *entry; rc == 0 && (errno = 0, entry = readdir(dir));)
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        rc = add_name(walk, ret, entry->d_name);
        if (rc == 0 && errno)
                rc = unreadable(walk, "list");
        closedir(dir);
        if (ret->n)
                qsort(ret->list, ret->n, sizeof *ret->list, compare);
        return rc;
}

static int walk_entry(struct walk *walk, int dir_fd, const char *name, unsigned depth);

static int walk_names(struct walk *walk, int dir_fd, unsigned depth)
{
        struct names names = { 0 };
        size_t len = walk->path_len;
        int rc = list_names(walk, dir_fd, &names);
        for (size_t i = 0; rc == 0 && i < names.n; i++) {
                size_t more = strlen(names.list[i]) + (len > 0);
                if (len + more > LAYER_PATH_MAX) {
                        rc = refused(walk, "has a longer path below it than %d bytes", LAYER_PATH_MAX);
                        break;
                }
                snprintf(walk->path + len, sizeof walk->path - len, "%s%s", len ? "/" : "", names.list[i]);
                walk->path_len = len + more;
                rc = walk_entry(walk, dir_fd, names.list[i], depth);
                if (rc == 0)
                        walk->path[walk->path_len = len] = 0;
        }
        free(names.list);
        arena_done(&names.arena);
        return rc;
}

static int walk_folder(struct walk *walk, int dir_fd, const char *name, unsigned depth)
{
        if (depth == LAYER_DEPTH_MAX)
                return refused(walk, "is below more than %d folders", LAYER_DEPTH_MAX);
        auto_fd fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return unreadable(walk, "open");
        if (hash_entry(walk, 'd') < 0 || walk_names(walk, fd, depth + 1) < 0)
                return -walk->err->code;
        return walk->freeze && (fchmod(fd, 0755) < 0 || futimens(fd, frozen) < 0) ? unreadable(walk, "set the mode of")
                                                                                  : 0;
}

/* Bounded by LAYER_DEPTH_MAX. */
static int walk_entry(struct walk *walk, int dir_fd, const char *name, unsigned depth)
{
        const char *why;
        struct stat st;
        if (!tree_name_is_good(name, &why)) {
                walk->path[walk->path_len -= strlen(name)] = 0;
                return refused(walk, "holds an entry that %s", why);
        }
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return unreadable(walk, "stat");
        switch (st.st_mode & S_IFMT) {
        case S_IFREG: return walk_file(walk, dir_fd, name);
        case S_IFDIR: return walk_folder(walk, dir_fd, name, depth);
        case S_IFLNK: return walk_link(walk, dir_fd, name);
        default: return refused(walk, "is a device, pipe or socket");
        }
}

static int walk_tree(struct walk *walk)
{
        uint8_t digest[EVP_MAX_MD_SIZE];
        if (!walk->digest || EVP_DigestInit_ex(walk->digest, EVP_sha256(), NULL) != 1)
                return err_set(walk->err, CSN_E_SYSTEM, 0, "libcrypto has no SHA-256");
        if (hash(walk, RULES, strlen(RULES)) < 0 || walk_names(walk, walk->tree_fd, 0) < 0)
                return -walk->err->code;
        if (walk->freeze && (fchmod(walk->tree_fd, 0755) < 0 || futimens(walk->tree_fd, frozen) < 0))
                return unreadable(walk, "set the mode of");
        if (EVP_DigestFinal_ex(walk->digest, digest, NULL) != 1)
                return err_set(walk->err, CSN_E_SYSTEM, 0, "libcrypto cannot compute SHA-256");
        hex_print(digest, (LAYER_HASH_MAX - 1) / 2, walk->facts->sha256);
        return 0;
}

int tree_read(int tree_fd, bool freeze, const struct layer_limits *limits, struct arena *arena, struct tree_facts *ret,
        struct csn_error *err)
{
        struct csn_error none = { 0 };
        struct walk walk = { .limits = limits,
                .arena = arena,
                .facts = ret,
                .err = err ? err : &none,
                .digest = EVP_MD_CTX_new(),
                .tree_fd = tree_fd,
                .freeze = freeze,
                .piece = mem_alloc(PIECE) };
        *ret = (struct tree_facts){ .warnings = arena_alloc(arena, LAYER_WARNINGS_MAX * sizeof *ret->warnings) };
        int rc = walk_tree(&walk);
        EVP_MD_CTX_free(walk.digest);
        free(walk.piece);
        return rc;
}
