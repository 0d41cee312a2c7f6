/* Collecting and exporting the files left by an ended run in its home directory. */
#include "engine/output/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "backend/backend.h"

#define ENTRIES_MAX 1000000
#define READ_SIZE (64 * KIB)   /* on the stack: helper threads hash at the same time */

/* ---- opening ---- */

static int open_beneath(int dir_fd, const char *name, uint64_t flags, uint64_t mode)
{
        struct open_how how = { .flags = flags | O_CLOEXEC,
                .mode = mode,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
        return (int)syscall(SYS_openat2, dir_fd, name, &how, sizeof how);
}

/*
 * Opens the object of an O_PATH descriptor for use: fstat(2) has checked its type, and the object cannot be replaced.
 * A program may have removed the rights of its own files; as root, or as the owner, we restore the rights first.
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

/*
 * Whether the folder belongs to a sandbox, without rights for the engine.  The folder of a run elsewhere is the
 * engine's own.  Without privileges both folders have our uid, and Landlock refuses the sandbox's folder to the engine.
 */
static bool is_foreign(int dir_fd)
{
        struct stat st;
        if (!helpers_are_there())
                return false;
        if (fstat(dir_fd, &st) < 0 || st.st_uid != geteuid())
                return true;
        auto_fd fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return fd < 0;
}

static int open_by_helper(int home_fd, const char *name, struct csn_error *err)
{
        struct stat st;
        auto_fd fd = helpers_open(home_fd, name, WIRE_OPEN_FILE);
        if (fd < 0 && errno == EINVAL)
                return err_set(err, CSN_E_INPUT, 0, "not a regular file");
        if (fd < 0 || fstat(fd, &st) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open");
        if (st.st_nlink != 1)
                return err_set(err, CSN_E_INPUT, 0, "it has more than one name (hard links)");
        return take_fd(&fd);
}

int files_open(int home_fd, const char *name, struct csn_error *err)
{
        struct stat st;
        if (is_foreign(home_fd))
                return open_by_helper(home_fd, name, err);
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

/* Fetched once: a fetch takes longer than hashing most files (EVP_MD_fetch(3)). */
static const EVP_MD *sha256(void)
{
        static _Atomic(const EVP_MD *) found;   /* helper threads hash, too */
        const EVP_MD *md = found;
        if (!md)
                found = md = EVP_MD_fetch(NULL, "SHA256", NULL);
        return md ? md : EVP_sha256();
}

void files_sha256_bytes(const void *bytes, size_t len, char hex[static 65])
{
        unsigned char digest[32];
        if (EVP_Digest(bytes, len, digest, NULL, sha256(), NULL) != 1) {
                log_text(LOG_ERROR, "libcrypto has no memory for a digest");
                _exit(125);
        }
        hex_print(digest, sizeof digest, hex);
}

int files_sha256(int fd, uint64_t max, char hex[static 65], uint64_t *ret_size)
{
        EVP_MD_CTX *ctx = EVP_MD_CTX_new();
        unsigned char digest[32];
        char bytes[READ_SIZE];
        uint64_t size = 0;
        bool good = ctx && EVP_DigestInit_ex(ctx, sha256(), NULL) == 1;
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
        hex_print(digest, sizeof digest, hex);
        *ret_size = size;
        return 0;
}

/* ---- walking ---- */

struct name {
        char *text;
        ino_t number;            /* inode of the named file */
};

struct names {
        struct name *names;
        size_t n, size;
        bool truncated;
};

/* How long a search may go on. */
struct search {
        bool ours;               /* a folder of ours, not of a sandbox */
        uint64_t until_ms;
        const atomic_bool *given_up;   /* or NULL */
};

static bool is_out_of_time(const struct search *search)
{
        return (search->given_up && atomic_load_explicit(search->given_up, memory_order_relaxed)) ||
                clock_ms() > search->until_ms;
}

static void add_name(struct names *list, char *text, ino_t number)
{
        if (list->n == list->size) {
                list->size = list->size ? list->size * 2 : 64;
                list->names = mem_resize(list->names, list->size * sizeof *list->names);
        }
        list->names[list->n++] = (struct name){ text, number };
}

/* Opens a folder of a sandbox, or our own: helpers do not open our own folders. */
static int open_folder(int dir_fd, const char *name, bool ours)
{
        struct stat st;
        if (!ours && is_foreign(dir_fd))
                return helpers_open(dir_fd, name, WIRE_OPEN_FOLDER);
        auto_fd path = open_beneath(dir_fd, name, O_PATH | O_NOFOLLOW, 0);
        if (path < 0 || fstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
                return -1;
        return reopen(path, O_RDONLY | O_DIRECTORY, 0700);
}

/* The depth is bounded, and so are descriptors and C stack. */
static void walk(int dir_fd, const char *prefix, unsigned depth, const struct search *search, struct arena *arena,
        struct names *list)
{
        int copy = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);   /* shares the position, which no other code uses */
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                fd_close(&copy);
                list->truncated = true;
                return;
        }
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
                if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                        continue;
                if (list->n >= ENTRIES_MAX || is_out_of_time(search)) {
                        list->truncated = true;
                        break;
                }
                char *name = arena_text(arena, "%s%s%s", prefix, prefix[0] ? "/" : "", entry->d_name);
                if (entry->d_type == DT_REG)
                        add_name(list, name, entry->d_ino);
                if (entry->d_type != DT_DIR)
                        continue;
                auto_fd below = depth < FILES_DEPTH_MAX ? open_folder(dir_fd, entry->d_name, search->ours) : -1;
                if (below >= 0)
                        walk(below, name, depth + 1, search, arena, list);
                else
                        list->truncated = true;
        }
        closedir(dir);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Inputs by name. */
struct inputs {
        const struct file_input **sorted;
        size_t n;
};

static int by_input_name(const void *a, const void *b)
{
        return strcmp((*(const struct file_input *const *)a)->name, (*(const struct file_input *const *)b)->name);
}

static void sort_inputs(const struct file_rules *rules, struct inputs *ret)
{
        const size_t each = sizeof(void *);
        *ret = (struct inputs){ .sorted = mem_alloc(rules->inputs_n * each), .n = rules->inputs_n };
        for (size_t i = 0; i < ret->n; i++)
                ret->sorted[i] = &rules->inputs[i];
        qsort(ret->sorted, ret->n, each, by_input_name);
}

static const struct file_input *find_input(const struct inputs *inputs, const char *name)
{
        const struct file_input key = { .name = name }, *wanted = &key;
        const struct file_input **found =
                bsearch(&wanted, inputs->sorted, inputs->n, sizeof(void *), by_input_name);
        return found ? *found : NULL;
}

/*
 * Whether a descriptor, wherever its origin, is file i of the list.  The list is complete and the folder does not
 * change any more, so a file with one link is the file with the same inode number, if the number occurs once: after
 * 2^32 new files a tmpfs reuses numbers.
 */
static bool is_that(int fd, int home_fd, const struct names *list, size_t i)
{
        struct stat st, home;
        if (fd < 0 || list->truncated || fstat(fd, &st) < 0 || fstat(home_fd, &home) < 0)
                return false;
        if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_dev != home.st_dev || st.st_ino != list->names[i].number)
                return false;
        for (size_t k = 0; k < list->n; k++)
                if (k != i && list->names[k].number == st.st_ino)
                        return false;
        return true;
}

/* Reads and hashes a file, which may be open already.  *left: bytes that may still be read of all files together. */
static void examine(int home_fd, int open_fd, struct file_found *file, uint64_t *left, struct arena *arena)
{
        struct csn_error err;
        struct stat st;
        char head[16];
        file->mime = files_mime(file->name, "", 0);
        auto_fd opened = open_fd < 0 ? files_open(home_fd, file->name, &err) : -1;
        int fd = open_fd < 0 ? opened : open_fd;
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

/* The home of a run came from inside the sandbox, open for reading: no helper has to open the folder. */
static int open_for_names(int dir_fd, bool ours)
{
        int flags = fcntl(dir_fd, F_GETFL);
        if (flags < 0 || flags & O_PATH || lseek(dir_fd, 0, SEEK_SET) < 0)
                return open_folder(dir_fd, ".", ours);
        return fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
}

/* Sorted names of the regular files below; the caller frees list.names. */
static int list_names(int dir_fd, const struct search *search, struct arena *arena, struct names *ret,
        int *ret_readable, struct csn_error *err)
{
        auto_fd readable = open_for_names(dir_fd, search->ours);
        if (readable < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "read the folder");
        walk(readable, "", 0, search, arena, ret);
        if (ret->n)
                qsort(ret->names, ret->n, sizeof *ret->names, by_name);
        *ret_readable = take_fd(&readable);
        return 0;
}

int files_list(int dir_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret,
        struct csn_error *err)
{
        const struct search search = { .ours = true, .until_ms = clock_ms() + rules->time_ms };
        struct names list = { 0 };
        int opened = -1;
        *ret = (struct file_list){ 0 };
        if (list_names(dir_fd, &search, arena, &list, &opened, err) < 0)
                return -err->code;
        fd_close(&opened);
        ret->n = (size_t)min_u64(list.n, rules->files_max);
        ret->truncated = list.truncated || list.n > rules->files_max;
        ret->files = arena_alloc(arena, ret->n * sizeof *ret->files + 1);
        for (size_t i = 0; i < ret->n; i++)
                ret->files[i].name = list.names[i].text;
        free(list.names);
        return 0;
}

int files_collect(int home_fd, const struct file_rules *rules, struct arena *arena, struct file_list *ret,
                  struct csn_error *err)
{
        const struct search search = { .until_ms = clock_ms() + rules->time_ms, .given_up = rules->given_up };
        struct names list = { 0 };
        struct inputs inputs;
        uint64_t left = rules->bytes_max;
        int opened = -1;
        *ret = (struct file_list){ 0 };
        if (list_names(home_fd, &search, arena, &list, &opened, err) < 0)
                return err_wrap(err, "the home directory of the run");
        auto_fd readable = opened;
        ret->files = arena_alloc(arena, (size_t)min_u64(list.n, rules->files_max) * sizeof *ret->files + 1);
        ret->truncated = list.truncated;
        sort_inputs(rules, &inputs);
        for (size_t i = 0; i < list.n; i++) {
                struct file_found file = { .name = list.names[i].text };
                const struct file_input *input = find_input(&inputs, file.name);
                bool is_first = input && input == rules->inputs && is_that(rules->first_fd, readable, &list, i);
                if ((!input && ret->n == rules->files_max) || is_out_of_time(&search)) {
                        ret->truncated = true;
                        break;
                }
                examine(readable, is_first ? rules->first_fd : -1, &file, &left, arena);
                if (input && !file.error && file.size == input->size && strcmp(file.sha256, input->sha256) == 0)
                        continue;
                file.changed = input != NULL;
                if (ret->n == rules->files_max) {
                        ret->truncated = true;
                        break;
                }
                ret->files[ret->n++] = file;
        }
        free(inputs.sorted);
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

int files_make_folders(int dir_fd, const char *name, struct csn_error *err)
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

int files_export(int home_fd, const struct file_found *file, int to_dir_fd, int temp_fd, struct csn_error *err)
{
        struct stat st;
        if (file->error)
                return err_set(err, CSN_E_INPUT, 0, "%s", file->error);
        if (wire_name_check(file->name, strlen(file->name), err) < 0)
                return -err->code;
        auto_fd from = files_open(home_fd, file->name, err);
        if (from < 0)
                return from;
        auto_fd dir = files_make_folders(to_dir_fd, file->name, err);
        if (dir < 0)
                return dir;
        const char *slash = strrchr(file->name, '/');
        const char *base = slash ? slash + 1 : file->name;
        char temp[64];
        temp_fd = temp_fd < 0 ? dir : temp_fd;
        snprintf(temp, sizeof temp, ".caisson-%d-%llx", getpid(), (unsigned long long)clock_us());
        auto_fd to = openat(temp_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (to < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "make a file for %s", base);
        int rc = fstat(from, &st) < 0 || copy_bytes(from, to, file->size) < 0 ? -1 : 0;
        struct timespec times[2] = { st.st_mtim, st.st_mtim };
        if (rc == 0)
                rc = futimens(to, times);
        if (rc == 0)
                rc = renameat(temp_fd, temp, dir, base);   /* replaces a link of this name, never follows the link */
        if (rc < 0) {
                int sys = errno;
                unlinkat(temp_fd, temp, 0);
                return err_set(err, CSN_E_SYSTEM, sys, "write %s", base);
        }
        return 0;
}

/* ---- a folder of ours in which runs leave files ---- */

int files_stat(int dir_fd, const char *name, struct stat *ret)
{
        auto_fd path = open_beneath(dir_fd, name, O_PATH | O_NOFOLLOW, 0);
        return path < 0 ? -1 : fstat(path, ret);
}

int files_remove(int dir_fd, const char *name)
{
        char *path = mem_copy(name, strlen(name));
        int sys = 0;
        for (bool first = true;; first = false) {
                char *slash = strrchr(path, '/');
                if (slash)
                        *slash = 0;
                auto_fd dir = slash ? open_beneath(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
                                    : fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
                const char *base = slash ? slash + 1 : path;
                bool gone = dir >= 0 && unlinkat(dir, base, first ? 0 : AT_REMOVEDIR) == 0;
                sys = first && !gone ? errno : sys;
                if (!gone || !slash)
                        break;
        }
        free(path);
        errno = sys;
        return sys ? -1 : 0;
}

uint64_t files_weigh(int dir_fd, uint64_t each)
{
        const struct search search = { .ours = true, .until_ms = UINT64_MAX };
        struct arena arena = { 0 };
        struct names list = { 0 };
        struct csn_error err;
        struct stat st;
        uint64_t bytes = 0;
        int opened = -1;
        if (list_names(dir_fd, &search, &arena, &list, &opened, &err) < 0)
                log_text(LOG_ERROR, "%s", err.text);
        auto_fd dir = opened;
        for (size_t i = 0; i < list.n; i++)
                if (files_stat(dir, list.names[i].text, &st) == 0)
                        bytes += (uint64_t)st.st_size + each;
        free(list.names);
        arena_done(&arena);
        return bytes;
}

int files_look(int home_fd, const char *name)
{
        struct stat st;
        if (is_foreign(home_fd)) {
                auto_fd fd = helpers_open(home_fd, name, WIRE_OPEN_FILE);
                return fd < 0 ? errno : 0;
        }
        return files_stat(home_fd, name, &st) < 0 ? errno : S_ISREG(st.st_mode) ? 0 : EINVAL;
}
