/*
 * Unpacking of one layer into a tree.
 *
 * The walk to a member goes by descriptors, folder by folder, and follows no link; so no place outside of the tree can
 * be reached, whichever links the archive made before.  A file is always a new file: a member that replaces another
 * member removes the name first, and never writes into an inode with a second name.
 */
#include "images/import_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define WHITEOUT ".wh."
#define OPAQUE ".wh..wh..opq"
#define WHITEOUT_OWN ".wh..wh." /* AUFS's own names */

static int refused(const struct unpacker *unpacker, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refused(const struct unpacker *unpacker, const char *fmt, ...)
{
        char text[300], name[200];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        snprintf(name, sizeof name, "%s", unpacker->member);
        image_clean_text(name);
        image_clean_text(text);
        return archive_refused(unpacker->err, "the archive is refused: member \"%s\" %s", name, text);
}

static int unwritable(const struct unpacker *unpacker)
{
        char name[200];
        int sys = errno;
        snprintf(name, sizeof name, "%s", unpacker->member);
        image_clean_text(name);
        return err_storage(unpacker->err, sys, "write \"%s\" of an image", name);
}

/* ---- members of this layer ---- */

static void remember(struct unpacker *unpacker, uint64_t hash)
{
        size_t at = (size_t)hash & (unpacker->seen_size - 1);
        while (unpacker->seen[at])
                at = (at + 1) & (unpacker->seen_size - 1);
        unpacker->seen[at] = hash;
        unpacker->seen_n++;
}

static void grow(struct unpacker *unpacker)
{
        uint64_t *old = unpacker->seen;
        size_t n = unpacker->seen_size;
        unpacker->seen_size = n ? 2 * n : 1024;
        unpacker->seen = mem_alloc(unpacker->seen_size * sizeof *unpacker->seen);
        unpacker->seen_n = 0;
        for (size_t i = 0; i < n; i++)
                if (old[i])
                        remember(unpacker, old[i]);
        free(old);
}

/* False: the layer already had the path.  Two paths with the same hash count as one path, and are refused. */
static bool is_first(struct unpacker *unpacker, const char *path)
{
        uint64_t hash = hash_text(path, strlen(path)) | 1;
        if (2 * (unpacker->seen_n + 1) > unpacker->seen_size)
                grow(unpacker);
        for (size_t at = (size_t)hash & (unpacker->seen_size - 1); unpacker->seen[at];
                at = (at + 1) & (unpacker->seen_size - 1))
                if (unpacker->seen[at] == hash)
                        return false;
        remember(unpacker, hash);
        return true;
}

void unpack_done(struct unpacker *unpacker)
{
        free(unpacker->seen);
        unpacker->seen = NULL;
        unpacker->seen_n = unpacker->seen_size = 0;
}

/* ---- paths ---- */

/* Normalise: no "./" and no "/" at the end.  The tree itself is "". */
static int clean_path(const struct unpacker *unpacker, const char *given, char path[static IMAGE_PATH_MAX + 1])
{
        size_t len = 0, depth = 0;
        path[0] = 0;
        if (given[0] == '/')
                return refused(unpacker, "has an absolute name");
        for (const char *at = given; *at;) {
                size_t part = strcspn(at, "/");
                if (part == 2 && strncmp(at, "..", 2) == 0)
                        return refused(unpacker, "leads out of the image");
                for (size_t i = 0; i < part; i++)
                        if ((unsigned char)at[i] < 0x20 || at[i] == 0x7f)
                                return refused(unpacker, "has a control character in its name");
                if (part && !(part == 1 && at[0] == '.')) {
                        if (len + part + 1 > IMAGE_PATH_MAX || part > 255)
                                return refused(unpacker, "has a path of more than %d bytes, or a name of more than 255",
                                        IMAGE_PATH_MAX);
                        if (++depth > IMAGE_DEPTH_MAX)
                                return refused(unpacker, "is below more than %d folders", IMAGE_DEPTH_MAX);
                        len += (size_t)snprintf(path + len, IMAGE_PATH_MAX + 1 - len, "%s%.*s", len ? "/" : "",
                                (int)part, at);
                }
                at += part;
                at += *at == '/';
        }
        path[len] = 0;
        return 0;
}

static int count_file(struct unpacker *unpacker)
{
        if (unpacker->files == unpacker->limits->max_files)
                return err_field(unpacker->err, "max_files",
                        "the image has more than %" PRIu64 " files, folders and links; images.max_files is the limit",
                        unpacker->limits->max_files);
        unpacker->files++;
        return 0;
}

/* The folder of a member; with `make` missing folders are made.  1: found; 0: not there; negative: an error. */
static int enter_folder(struct unpacker *unpacker, int at_fd, const char *name, bool make, int *ret_fd)
{
        if (make && mkdirat(at_fd, name, 0755) == 0) {
                if (count_file(unpacker) < 0)
                        return -unpacker->err->code;
        } else if (make && errno != EEXIST) {
                return unwritable(unpacker);
        }
        *ret_fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (*ret_fd >= 0)
                return 1;
        if (errno == ENOENT)
                return 0;
        return errno == ENOTDIR || errno == ELOOP ? refused(unpacker, "leads through \"%.80s\", which is no folder", name)
                                                  : unwritable(unpacker);
}

/*
 * Go to the folder of a clean path.  `path` loses its slashes; *ret_last is its last name.  Returns as enter_folder().
 */
static int enter_path(struct unpacker *unpacker, char *path, bool make, int *ret_fd, const char **ret_last)
{
        auto_fd folder = openat(unpacker->tree_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
                return unwritable(unpacker);
        char *name = path;
        for (char *slash = strchr(name, '/'); slash; slash = strchr(name, '/')) {
                int below = -1;
                *slash = 0;
                int rc = enter_folder(unpacker, folder, name, make, &below);
                if (rc <= 0)
                        return rc;
                fd_close(&folder);
                folder = below;
                name = slash + 1;
        }
        *ret_last = name;
        *ret_fd = take_fd(&folder);
        return 1;
}

/* ---- one member ---- */

/* Content may come in pieces with holes between. */
static int take_content(struct unpacker *unpacker, struct archive *tar, int fd, uint64_t size)
{
        for (;;) {
                const void *bytes;
                size_t len;
                la_int64_t at;
                int rc = archive_read_data_block(tar, &bytes, &len, &at);
                if (rc == ARCHIVE_EOF)
                        return ftruncate(fd, (off_t)size) < 0 ? unwritable(unpacker) : 0;
                if (rc < ARCHIVE_WARN)
                        return archive_unreadable(tar, unpacker->err);
                if (at < 0 || (uint64_t)at > size || len > size - (uint64_t)at)
                        return refused(unpacker, "has more content than its size");
                for (size_t done = 0; done < len;) {
                        ssize_t n = pwrite(fd, (const char *)bytes + done, len - done, at + (la_int64_t)done);
                        if (n < 0 && errno != EINTR)
                                return unwritable(unpacker);
                        done += n > 0 ? (size_t)n : 0;
                }
        }
}

/* The bits set-user-ID, set-group-ID and sticky, and the rights of others to write, are not taken over. */
static mode_t mode_of(struct archive_entry *entry, mode_t least)
{
        return (archive_entry_perm(entry) & 0755) | least;
}

/* Compiled modules of Python are valid by the time of their source. */
static void set_time(int fd, struct archive_entry *entry)
{
        const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
                { .tv_sec = archive_entry_mtime(entry), .tv_nsec = archive_entry_mtime_nsec(entry) } };
        futimens(fd, times);
}

static int make_way(struct unpacker *unpacker, int at_fd, const char *name)
{
        return image_remove_entry(at_fd, name) < 0 ? unwritable(unpacker) : 0;
}

static int take_file(struct unpacker *unpacker, struct archive *tar, int at_fd, const char *name,
        struct archive_entry *entry)
{
        la_int64_t size = archive_entry_size(entry);
        if (size < 0 || (uint64_t)size > unpacker->limits->max_bytes - unpacker->bytes)
                return err_field(unpacker->err, "max_bytes",
                        "the files of the image have more than %" PRIu64 " bytes; images.max_bytes is the limit",
                        unpacker->limits->max_bytes);
        unpacker->bytes += (uint64_t)size;
        if (make_way(unpacker, at_fd, name) < 0)
                return -unpacker->err->code;
        auto_fd fd = openat(at_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return unwritable(unpacker);
        if (take_content(unpacker, tar, fd, (uint64_t)size) < 0)
                return -unpacker->err->code;
        if (fchmod(fd, mode_of(entry, 0400)) < 0)
                return unwritable(unpacker);
        set_time(fd, entry);
        return 0;
}

static int take_folder(struct unpacker *unpacker, int at_fd, const char *name, struct archive_entry *entry)
{
        struct stat st;
        bool there = fstatat(at_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (there && !S_ISDIR(st.st_mode) && make_way(unpacker, at_fd, name) < 0)
                return -unpacker->err->code;
        if (mkdirat(at_fd, name, 0755) < 0 && errno != EEXIST)
                return unwritable(unpacker);
        auto_fd fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fchmod(fd, mode_of(entry, 0700)) < 0)
                return unwritable(unpacker);
        return 0;
}

static int take_symlink(struct unpacker *unpacker, int at_fd, const char *name, struct archive_entry *entry)
{
        const char *target = archive_entry_symlink(entry);
        if (!target || !target[0] || strlen(target) > IMAGE_PATH_MAX)
                return refused(unpacker, "is a link without a target of at most %d bytes", IMAGE_PATH_MAX);
        if (make_way(unpacker, at_fd, name) < 0)
                return -unpacker->err->code;
        return symlinkat(target, at_fd, name) < 0 ? unwritable(unpacker) : 0;
}

static int take_hard_link(struct unpacker *unpacker, int at_fd, const char *name, const char *path,
        struct archive_entry *entry)
{
        char target[IMAGE_PATH_MAX + 1];
        const char *given = archive_entry_hardlink(entry), *last = "";
        struct stat st;
        auto_fd folder = -1;
        /* Some writers of layers give the target with the name of the root in front. */
        if (clean_path(unpacker, given + (given[0] == '/'), target) < 0)
                return -unpacker->err->code;
        if (strcmp(target, path) == 0)
                return refused(unpacker, "is a hard link to itself");
        char shown[100];
        snprintf(shown, sizeof shown, "%s", target);
        int rc = enter_path(unpacker, target, false, &folder, &last);
        if (rc < 0)
                return rc;
        if (rc == 0 || !last[0] || fstatat(folder, last, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return refused(unpacker, "is a hard link to \"%.80s\", which the image has not", shown);
        if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode))
                return refused(unpacker, "is a hard link to \"%.80s\", which is no file", shown);
        if (make_way(unpacker, at_fd, name) < 0)
                return -unpacker->err->code;
        return linkat(folder, last, at_fd, name, 0) < 0 ? unwritable(unpacker) : 0;
}

/* ---- whiteouts ---- */

static const char *whiteout_of(const char *path)
{
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        return strncmp(name, WHITEOUT, strlen(WHITEOUT)) == 0 ? name : NULL;
}

/* Empty a folder; the folder stays, with its mode. */
static int empty_folder(struct unpacker *unpacker, int dir_fd)
{
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
        DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        if (!dir) {
                rc = unwritable(unpacker);
                fd_close(&copy);
                return rc;
        }
        for (struct dirent *entry = readdir(dir); rc == 0 && entry; entry = readdir(dir))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        rc = make_way(unpacker, dir_fd, entry->d_name);
        closedir(dir);
        return rc;
}

static int take_whiteout(struct unpacker *unpacker, char *path)
{
        auto_fd folder = -1;
        const char *last = "";
        int rc = enter_path(unpacker, path, false, &folder, &last);
        if (rc <= 0)
                return rc;
        if (strcmp(last, OPAQUE) == 0)
                return empty_folder(unpacker, folder);
        if (strncmp(last, WHITEOUT_OWN, strlen(WHITEOUT_OWN)) == 0)
                return 0;
        const char *name = last + strlen(WHITEOUT);
        if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return refused(unpacker, "is a whiteout that leads out of its folder");
        return make_way(unpacker, folder, name);
}

/* ---- all members ---- */

/* The kernel's own file systems are mounted there, or nothing is. */
static bool is_covered(const char *path)
{
        static const char *const places[] = { "dev/", "proc/", "sys/" };
        for (size_t i = 0; i < ARRAY_LEN(places); i++)
                if (strncmp(path, places[i], strlen(places[i])) == 0)
                        return true;
        return false;
}

static int take_plain(struct unpacker *unpacker, struct archive *tar, struct archive_entry *entry, char *path)
{
        auto_fd folder = -1;
        const char *last = "";
        char whole[IMAGE_PATH_MAX + 1];
        mode_t type = archive_entry_filetype(entry);
        bool linked = archive_entry_hardlink(entry) != NULL;
        if (is_covered(path) || (!linked && type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)) {
                unpacker->dropped++;
                return count_file(unpacker);
        }
        if (!path[0])
                return type == AE_IFDIR && !linked ? 0 : refused(unpacker, "has no name");
        bool first = is_first(unpacker, path);
        if (!first && (linked || type != AE_IFDIR))
                return refused(unpacker, "is there twice");
        snprintf(whole, sizeof whole, "%s", path);
        int rc = count_file(unpacker);
        rc = rc < 0 ? rc : enter_path(unpacker, path, true, &folder, &last);
        if (rc < 0)
                return rc;
        if (rc == 0)
                return refused(unpacker, "lost its folder");
        if (linked)
                return take_hard_link(unpacker, folder, last, whole, entry);
        if (type == AE_IFDIR)
                return take_folder(unpacker, folder, last, entry);
        return type == AE_IFLNK ? take_symlink(unpacker, folder, last, entry)
                                : take_file(unpacker, tar, folder, last, entry);
}

static int take_member(struct unpacker *unpacker, struct archive *tar, struct archive_entry *entry,
        enum unpack_pass pass)
{
        char path[IMAGE_PATH_MAX + 1] = "";
        const char *given = archive_entry_pathname(entry);
        unpacker->member = given ? given : "?";
        if (!given)
                return refused(unpacker, "has a name that is not valid UTF-8");
        if (clean_path(unpacker, given, path) < 0)
                return -unpacker->err->code;
        bool whiteout = pass != UNPACK_ALL && whiteout_of(path);
        if (whiteout != (pass == UNPACK_WHITEOUTS))
                return 0;
        if (!whiteout)
                return take_plain(unpacker, tar, entry, path);
        return count_file(unpacker) < 0 ? -unpacker->err->code : take_whiteout(unpacker, path);
}

int unpack_tar(struct unpacker *unpacker, struct archive *tar, enum unpack_pass pass)
{
        struct archive_entry *entry;
        for (;;) {
                int rc = archive_read_next_header(tar, &entry);
                if (rc == ARCHIVE_EOF)
                        return 0;
                if (rc < ARCHIVE_WARN)
                        return archive_unreadable(tar, unpacker->err);
                if (take_member(unpacker, tar, entry, pass) < 0)
                        return -unpacker->err->code;
        }
}
