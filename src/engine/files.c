/* Collecting and exporting what a dead run left in its home directory. */
#include "engine/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "wire/wire.h"

#define ENTRIES_MAX 1000000

/* ---- opening ---- */

static int open_beneath(int dir_fd, const char *name, uint64_t flags, uint64_t mode)
{
        struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode,
                                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
        return (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);
}

/*
 * Open again what an O_PATH descriptor already holds: by then fstat(2) has said what it is, and nothing can
 * be put in its place.  A program may have taken the rights away from its own files; as root or as their
 * owner we give them back first.
 */
static int reopen(int path_fd, int flags, mode_t rights)
{
        char path[40];
        snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
        int fd = open(path, flags | O_CLOEXEC);
        if (fd < 0 && errno == EACCES && chmod(path, rights) == 0)
                fd = open(path, flags | O_CLOEXEC);
        return fd;
}

int files_open(int home_fd, const char *name, struct csn_error *err)
{
        struct stat st;
        auto_fd path = open_beneath(home_fd, name, O_PATH | O_NOFOLLOW, 0);
        if (path < 0 || fstat(path, &st) < 0)
                return err_set(err, CSN_E_INPUT, errno, "open");
        if (!S_ISREG(st.st_mode))
                return err_set(err, CSN_E_INPUT, 0, "not a regular file");
        if (st.st_nlink != 1)
                return err_set(err, CSN_E_INPUT, 0, "it has more than one name (hard links)");
        int fd = reopen(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0600);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open");
        return fd;
}

int files_open_input(int dir_fd, const char *name)
{
        return open_beneath(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0);
}

/* ---- hashing ---- */

static void print_digest(const unsigned char digest[32], char hex[static 65])
{
        for (size_t i = 0; i < 32; i++)
                snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void files_sha256_bytes(const void *bytes, size_t len, char hex[static 65])
{
        unsigned char digest[32];
        SHA256(bytes, len, digest);
        print_digest(digest, hex);
}

int files_sha256(int fd, uint64_t max, char hex[static 65], uint64_t *ret_size)
{
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        unsigned char digest[32];
        static char bytes[256 * KIB];
        uint64_t size = 0;
        bool good = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1;
        int sys = good ? 0 : ENOMEM;
        while (good) {
                ssize_t n = pread(fd, bytes, sizeof bytes, (off_t)size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n == 0)
                        break;
                sys = n < 0 ? errno : size + (uint64_t)n > max ? EFBIG : 0;
                good = sys == 0 && EVP_DigestUpdate(ctx, bytes, (size_t)n) == 1;
                size += n > 0 ? (uint64_t)n : 0;
        }
        good = good && EVP_DigestFinal_ex(ctx, digest, NULL) == 1;
        EVP_MD_CTX_free(ctx);
        if (!good) {
                errno = sys ? sys : EIO;
                return -1;
        }
        print_digest(digest, hex);
        *ret_size = size;
        return 0;
}

/* ---- walking ---- */

struct names {
        char **names;
        size_t n, size;
        bool truncated;
};

static void add_name(struct names *list, char *name)
{
        if (list->n == list->size) {
                list->size = list->size ? list->size * 2 : 64;
                list->names = mem_resize(list->names, list->size * sizeof *list->names);
        }
        list->names[list->n++] = name;
}

static int open_folder(int dir_fd, const char *name)
{
        struct stat st;
        auto_fd path = open_beneath(dir_fd, name, O_PATH | O_NOFOLLOW, 0);
        if (path < 0 || fstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return -1;
        return reopen(path, O_RDONLY | O_DIRECTORY, 0700);
}

/* Depth is bounded, so the descriptors and the C stack that this takes are too. */
static void walk(int dir_fd, const char *prefix, unsigned depth, uint64_t until_ms, struct arena *arena, struct names *list)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                fd_close(&copy);
                list->truncated = true;
                return;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                if (list->n >= ENTRIES_MAX || clock_ms() > until_ms) {
                        list->truncated = true;
                        break;
                }
                char *name = arena_text(arena, "%s%s%s", prefix, prefix[0] ? "/" : "", entry->d_name);
                if (entry->d_type == DT_REG)
                        add_name(list, name);
                if (entry->d_type != DT_DIR)
                        continue;
                auto_fd below = depth < FILES_DEPTH_MAX ? open_folder(dir_fd, entry->d_name) : -1;
                if (below >= 0)
                        walk(below, name, depth + 1, until_ms, arena, list);
                else
                        list->truncated = true;
        }
        closedir(dir);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static const struct file_input *find_input(const struct file_rules *rules, const char *name)
{
        for (size_t i = 0; i < rules->inputs_n; i++)
                if (strcmp(rules->inputs[i].name, name) == 0)
                        return &rules->inputs[i];
        return NULL;
}

/* Read and hash one file.  *left is what may still be read of all files together. */
static void examine(int home_fd, struct file_found *file, uint64_t *left, struct arena *arena)
{
        struct csn_error err;
        struct stat st;
        char head[16];
        file->mime = files_mime(file->name, "", 0);
        auto_fd fd = files_open(home_fd, file->name, &err);
        if (fd < 0 || fstat(fd, &st) < 0) {
                file->error = fd < 0 ? arena_copy(arena, err.text, strlen(err.text)) : "cannot be read";
                return;
        }
        file->size = (uint64_t)st.st_size;
        if (file->size >= FILES_SPARSE_MIN && (uint64_t)st.st_blocks * 512 < file->size / 2) {
                file->error = "sparse: its size is mostly holes";
                return;
        }
        ssize_t n = pread(fd, head, sizeof head, 0);
        file->mime = files_mime(file->name, head, n > 0 ? (size_t)n : 0);
        if (file->size > *left) {
                file->error = "the files of this run are together larger than may be collected";
                return;
        }
        uint64_t size = 0;
        if (files_sha256(fd, *left, file->sha256, &size) < 0) {
                file->sha256[0] = 0;
                file->error = arena_text(arena, "cannot be read: %s", strerrordesc_np(errno));
                return;
        }
        *left -= size;
        file->size = size;
}

/* Sorted names of the regular files below; the caller frees list.names. */
static int list_names(int dir_fd, uint64_t until_ms, struct arena *arena, struct names *ret,
                      int *ret_readable, struct csn_error *err)
{
        auto_fd path = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        auto_fd readable = path < 0 ? -1 : reopen(path, O_RDONLY | O_DIRECTORY, 0700);
        if (readable < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "read the folder");
        walk(readable, "", 0, until_ms, arena, ret);
        if (ret->n)
                qsort(ret->names, ret->n, sizeof *ret->names, by_name);
        *ret_readable = take_fd(&readable);
        return 0;
}

int files_list(int dir_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret, struct csn_error *err)
{
        struct names list = { 0 };
        int opened = -1;
        *ret = (struct file_list){ 0 };
        if (list_names(dir_fd, clock_ms() + rules->time_ms, arena, &list, &opened, err) < 0)
                return -err->code;
        fd_close(&opened);
        ret->n = (size_t)min_u64(list.n, rules->files_max);
        ret->truncated = list.truncated || list.n > rules->files_max;
        ret->files = arena_alloc(arena, ret->n * sizeof *ret->files + 1);
        for (size_t i = 0; i < ret->n; i++)
                ret->files[i].name = list.names[i];
        free(list.names);
        return 0;
}

int files_collect(int home_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret,
                  struct csn_error *err)
{
        struct names list = { 0 };
        uint64_t until_ms = clock_ms() + rules->time_ms;
        uint64_t left = rules->bytes_max;
        int opened = -1;
        *ret = (struct file_list){ 0 };
        if (list_names(home_fd, until_ms, arena, &list, &opened, err) < 0)
                return err_wrap(err, "the home directory of the run");
        auto_fd readable = opened;
        ret->files = arena_alloc(arena, (size_t)min_u64(list.n, rules->files_max) * sizeof *ret->files + 1);
        ret->truncated = list.truncated;
        for (size_t i = 0; i < list.n; i++) {
                struct file_found file = { .name = list.names[i] };
                const struct file_input *input = find_input(rules, file.name);
                if ((!input && ret->n == rules->files_max) || clock_ms() > until_ms) {
                        ret->truncated = true;
                        break;
                }
                examine(readable, &file, &left, arena);
                if (input && !file.error && file.size == input->size && strcmp(file.sha256, input->sha256) == 0)
                        continue;
                file.changed = input != NULL;
                if (ret->n == rules->files_max) {
                        ret->truncated = true;
                        break;
                }
                ret->files[ret->n++] = file;
        }
        free(list.names);
        return 0;
}

/* ---- export ---- */

bool files_match(const char *pattern, const char *name)
{
        const char *slash = strrchr(name, '/');
        if (strchr(pattern, '/'))
                return fnmatch(pattern, name, FNM_PATHNAME | FNM_PERIOD) == 0;
        return fnmatch(pattern, slash ? slash + 1 : name, FNM_PERIOD) == 0;
}

static int make_folders(int dir_fd, const char *name, struct csn_error *err)
{
        auto_fd dir = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
        for (const char *slash = strchr(name, '/'); slash && dir >= 0; slash = strchr(name, '/')) {
                char part[256];
                snprintf(part, sizeof part, "%.*s", (int)(slash - name), name);
                if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
                        return err_set(err, CSN_E_SYSTEM, errno, "make the folder %s", part);
                int next = open_beneath(dir, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
                fd_close(&dir);
                dir = next;
                name = slash + 1;
        }
        if (dir < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder of %s", name);
        return take_fd(&dir);
}

static int copy_bytes(int from, int to, uint64_t size)
{
        while (size) {
                ssize_t n = sendfile(to, from, NULL, (size_t)min_u64(size, 64 * MIB));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return -1;
                size -= (uint64_t)n;
        }
        return 0;
}

int files_export(int home_fd, const struct file_found *file, int to_dir_fd, struct csn_error *err)
{
        struct stat st;
        if (file->error)
                return err_set(err, CSN_E_INPUT, 0, "%s", file->error);
        if (wire_name_check(file->name, strlen(file->name), err) < 0)
                return -err->code;
        auto_fd from = files_open(home_fd, file->name, err);
        if (from < 0)
                return from;
        auto_fd dir = make_folders(to_dir_fd, file->name, err);
        if (dir < 0)
                return dir;
        const char *slash = strrchr(file->name, '/');
        const char *base = slash ? slash + 1 : file->name;
        char temp[64];
        snprintf(temp, sizeof temp, ".caisson-%d-%llx", getpid(), (unsigned long long)clock_us());
        auto_fd to = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (to < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a file for %s", base);
        int rc = fstat(from, &st) < 0 || copy_bytes(from, to, file->size) < 0 ? -1 : 0;
        struct timespec times[2] = { st.st_mtim, st.st_mtim };
        if (rc == 0)
                rc = futimens(to, times);
        if (rc == 0)
                rc = renameat(dir, temp, dir, base);   /* replaces a link of that name, never follows it */
        if (rc < 0) {
                int sys = errno;
                unlinkat(dir, temp, 0);
                return err_set(err, CSN_E_SYSTEM, sys, "write %s", base);
        }
        return 0;
}
