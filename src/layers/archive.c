/* Export and import, by libarchive.  See archive.h. */
#include "layers/archive.h"
#include "layers/layers_private.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define BLOCK 10240 /* tar's own */
#define PIECE (64 * KIB)
#define TREE_PREFIX TREE_FOLDER "/"

static int failed(struct archive *archive, const char *what, struct csn_error *err)
{
        const char *why = archive_error_string(archive);
        int sys = archive_errno(archive);
        return err_set(err, sys == ENOSPC || sys == EDQUOT ? CSN_E_BUSY : CSN_E_SYSTEM, 0, "%s: %.300s", what,
                why ? why : "no reason was given");
}

/* ---- export ---- */

struct exporter {
        struct archive *disk, *tar;
        struct archive_entry *entry;
        char folder[40]; /* path of the layer, by the descriptor of its lock */
        char *piece;
};

static int add_content(struct exporter *exporter, struct csn_error *err)
{
        for (;;) {
                la_ssize_t n = archive_read_data(exporter->disk, exporter->piece, PIECE);
                if (n == 0)
                        return 0;
                if (n < 0)
                        return failed(exporter->disk, "read the layer", err);
                if (archive_write_data(exporter->tar, exporter->piece, (size_t)n) < 0)
                        return failed(exporter->tar, "write the archive", err);
        }
}

/* Make names relative to the layer, and drop owners: user ids of this host mean nothing elsewhere. */
static void make_portable(struct exporter *exporter, struct arena *arena)
{
        const char *name = archive_entry_pathname(exporter->entry) + strlen(exporter->folder);
        archive_entry_set_pathname(exporter->entry, arena_text(arena, "%s", name + strspn(name, "/")));
        archive_entry_set_uid(exporter->entry, 0);
        archive_entry_set_gid(exporter->entry, 0);
        archive_entry_set_uname(exporter->entry, NULL);
        archive_entry_set_gname(exporter->entry, NULL);
        archive_entry_sparse_clear(exporter->entry);
}

static int add_members(struct exporter *exporter, const char *start, struct csn_error *err)
{
        struct arena arena = { 0 };
        int rc = 0;
        if (archive_read_disk_open(exporter->disk, start) != ARCHIVE_OK)
                return failed(exporter->disk, "read the layer", err);
        while (rc == 0) {
                archive_entry_clear(exporter->entry);
                int read = archive_read_next_header2(exporter->disk, exporter->entry);
                if (read == ARCHIVE_EOF)
                        break;
                if (read < ARCHIVE_WARN) {
                        rc = failed(exporter->disk, "read the layer", err);
                        break;
                }
                archive_read_disk_descend(exporter->disk);
                make_portable(exporter, &arena);
                if (archive_write_header(exporter->tar, exporter->entry) < ARCHIVE_WARN)
                        rc = failed(exporter->tar, "write the archive", err);
                else if (archive_entry_filetype(exporter->entry) == AE_IFREG)
                        rc = add_content(exporter, err);
                arena_done(&arena);
        }
        archive_read_close(exporter->disk);
        return rc;
}

static int write_archive(struct exporter *exporter, int fd, struct csn_error *err)
{
        struct arena arena = { 0 };
        archive_read_disk_set_symlink_physical(exporter->disk);
        archive_read_disk_set_behavior(exporter->disk,
                ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS);
        archive_write_set_format_pax_restricted(exporter->tar);
        archive_write_set_bytes_per_block(exporter->tar, BLOCK);
        archive_write_set_bytes_in_last_block(exporter->tar, 1); /* no zeros behind the frame of zstd, on pipes */
        int rc = archive_write_add_filter_zstd(exporter->tar) < ARCHIVE_WARN ||
                        archive_write_open_fd(exporter->tar, fd) != ARCHIVE_OK
                ? failed(exporter->tar, "write the archive", err)
                : 0;
        rc = rc < 0 ? rc : add_members(exporter, arena_text(&arena, "%s/" META_FILE, exporter->folder), err);
        rc = rc < 0 ? rc : add_members(exporter, arena_text(&arena, "%s/" TREE_FOLDER, exporter->folder), err);
        if (rc == 0 && archive_write_close(exporter->tar) != ARCHIVE_OK)
                rc = failed(exporter->tar, "write the archive", err);
        arena_done(&arena);
        return rc;
}

int layers_export(struct layers *layers, const char *id, int fd, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct layer layer;
        char fault[LAYER_FAULT_MAX];
        auto_fd held = -1;
        int rc = layers_verify(layers, id, fault, err);
        if (rc == 0)
                return err_field(err, "layer", "layer %s is damaged: %s", id, fault);
        rc = rc < 0 ? rc : layers_find(layers, id, &arena, &layer, &held, err);
        arena_done(&arena);
        if (rc <= 0)
                return rc < 0 ? rc : err_field(err, "layer", "layer %s was removed meanwhile", id);
        struct exporter exporter = { .disk = archive_read_disk_new(),
                .tar = archive_write_new(),
                .entry = archive_entry_new(),
                .piece = mem_alloc(PIECE) };
        snprintf(exporter.folder, sizeof exporter.folder, "/proc/self/fd/%d", held);
        rc = write_archive(&exporter, fd, err);
        archive_entry_free(exporter.entry);
        archive_write_free(exporter.tar);
        archive_read_free(exporter.disk);
        free(exporter.piece);
        return rc;
}

/* ---- import ---- */

struct importer {
        struct archive *tar;
        const struct layer_limits *limits;
        struct layer_staging staging;
        struct csn_error *err;
        struct buf meta; /* the text of meta.json */
        uint64_t bytes, files;
        const char *name; /* of the member, for errors */
};

static int refused(const struct importer *importer, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refused(const struct importer *importer, const char *fmt, ...)
{
        char text[300], name[200];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        snprintf(name, sizeof name, "%s", importer->name);
        clean_text(name);
        return err_field(importer->err, "archive", "the archive is refused: member \"%s\" %s", name, text);
}

static int unwritable(const struct importer *importer)
{
        return err_storage(importer->err, errno, "write a layer");
}

/* A read error is an error of the input: the archive is truncated, or is no archive. */
static int unreadable(const struct importer *importer)
{
        char text[300];
        const char *why = archive_error_string(importer->tar);
        snprintf(text, sizeof text, "%s", why ? why : "it is damaged");
        clean_text(text);
        return err_field(importer->err, "archive", "the archive cannot be read: %s", text);
}

static int count_file(struct importer *importer)
{
        if (importer->files == importer->limits->max_files)
                return err_field(importer->err, "max_files",
                        "the layer has more than %" PRIu64 " files (packages.max_files)", importer->limits->max_files);
        importer->files++;
        return 0;
}

/* The folder of a member, made if missing; no component may be a link. */
static int enter_folder(struct importer *importer, int at_fd, const char *name, int *ret_fd)
{
        if (mkdirat(at_fd, name, 0700) == 0) {
                if (count_file(importer) < 0)
                        return -importer->err->code;
        } else if (errno != EEXIST) {
                return unwritable(importer);
        }
        *ret_fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (*ret_fd < 0 && (errno == ENOTDIR || errno == ELOOP))
                return refused(importer, "leads through \"%.80s\", which is not a folder", name);
        return *ret_fd < 0 ? unwritable(importer) : 0;
}

/*
 * Go to the folder of a path below the tree.  `path` loses its slashes; *ret_last is its last name, or "" for the tree
 * itself.
 */
static int enter_path(struct importer *importer, char *path, int *ret_fd, const char **ret_last)
{
        size_t depth = 0, len = strlen(path);
        if (len > LAYER_PATH_MAX)
                return refused(importer, "has a path of more than %d bytes", LAYER_PATH_MAX);
        if (len && path[len - 1] == '/')
                path[len - 1] = 0;
        auto_fd folder = openat(importer->staging.tree_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
                return unwritable(importer);
        for (char *name = path; *name || name != path; depth++) {
                const char *why;
                char *slash = strchr(name, '/');
                if (slash)
                        *slash = 0;
                if (depth > LAYER_DEPTH_MAX)
                        return refused(importer, "is below more than %d folders", LAYER_DEPTH_MAX);
                if (!tree_name_is_good(name, &why))
                        return refused(importer, "%s", why);
                if (!slash) {
                        path = name;
                        break;
                }
                int below;
                if (enter_folder(importer, folder, name, &below) < 0)
                        return -importer->err->code;
                fd_close(&folder);
                folder = below;
                name = slash + 1;
        }
        *ret_last = path;
        *ret_fd = take_fd(&folder);
        return 0;
}

/* Content may come in pieces with holes between; libarchive keeps offsets below the size of the entry. */
static int take_content(struct importer *importer, int fd, uint64_t size)
{
        for (;;) {
                const void *bytes;
                size_t len;
                la_int64_t at;
                int rc = archive_read_data_block(importer->tar, &bytes, &len, &at);
                if (rc == ARCHIVE_EOF)
                        return ftruncate(fd, (off_t)size) < 0 ? unwritable(importer) : 0;
                if (rc < ARCHIVE_WARN)
                        return unreadable(importer);
                if (at < 0 || (uint64_t)at > size || len > size - (uint64_t)at)
                        return refused(importer, "has more content than its size");
                for (size_t done = 0; done < len;) {
                        ssize_t n = pwrite(fd, (const char *)bytes + done, len - done, at + (la_int64_t)done);
                        if (n < 0 && errno != EINTR)
                                return unwritable(importer);
                        done += n > 0 ? (size_t)n : 0;
                }
        }
}

static int take_file(struct importer *importer, int at_fd, const char *name, struct archive_entry *entry)
{
        la_int64_t size = archive_entry_size(entry);
        if (size < 0 || (uint64_t)size > importer->limits->max_bytes - importer->bytes)
                return err_field(importer->err, "max_bytes",
                        "the layer has more than %" PRIu64 " bytes (packages.max_bytes)", importer->limits->max_bytes);
        importer->bytes += (uint64_t)size;
        mode_t mode = archive_entry_perm(entry) & 0100 ? 0700 : 0600;
        auto_fd fd = openat(at_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0)
                return errno == EEXIST ? refused(importer, "is there twice") : unwritable(importer);
        return take_content(importer, fd, (uint64_t)size);
}

static int take_link(struct importer *importer, int at_fd, const char *name, struct archive_entry *entry)
{
        const char *target = archive_entry_symlink(entry);
        if (!target || !target[0] || strlen(target) > LAYER_PATH_MAX)
                return refused(importer, "is a link without a target of at most %d bytes", LAYER_PATH_MAX);
        if (symlinkat(target, at_fd, name) < 0)
                return errno == EEXIST ? refused(importer, "is there twice") : unwritable(importer);
        return 0;
}

static int take_member(struct importer *importer, char *path, struct archive_entry *entry)
{
        const char *name = "";
        auto_fd folder = -1, made = -1;
        mode_t type = archive_entry_filetype(entry);
        if (archive_entry_hardlink(entry))
                return refused(importer, "is a hard link; a layer has files with one name");
        if (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK)
                return refused(importer, "is a device, pipe or socket");
        if (enter_path(importer, path, &folder, &name) < 0)
                return -importer->err->code;
        if (!name[0])
                return type == AE_IFDIR ? 0 : refused(importer, "is not a folder");
        if (type == AE_IFDIR)
                return enter_folder(importer, folder, name, &made);
        if (count_file(importer) < 0)
                return -importer->err->code;
        return type == AE_IFLNK ? take_link(importer, folder, name, entry) : take_file(importer, folder, name, entry);
}

static int take_meta(struct importer *importer, struct archive_entry *entry)
{
        char piece[4096];
        if (importer->meta.len)
                return refused(importer, "is there twice");
        if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
                return refused(importer, "is not a file");
        for (;;) {
                la_ssize_t n = archive_read_data(importer->tar, piece, sizeof piece);
                if (n < 0)
                        return unreadable(importer);
                if (n == 0)
                        return importer->meta.len ? 0 : refused(importer, "is empty");
                if (!buf_add(&importer->meta, piece, (size_t)n))
                        return refused(importer, "has more than %llu bytes", LAYER_META_MAX);
        }
}

static int take_entry(struct importer *importer, struct archive_entry *entry)
{
        const char *name = archive_entry_pathname(entry);
        struct arena arena = { 0 };
        importer->name = name ? name : "?";
        if (!name)
                return refused(importer, "has a name that is not valid UTF-8");
        while (strncmp(name, "./", 2) == 0)
                name += 2;
        if ((!name[0] || strcmp(name, ".") == 0) && archive_entry_filetype(entry) == AE_IFDIR)
                return 0;
        if (strcmp(name, META_FILE) == 0)
                return take_meta(importer, entry);
        bool is_tree = strcmp(name, TREE_FOLDER) == 0;
        if (!is_tree && strncmp(name, TREE_PREFIX, strlen(TREE_PREFIX)) != 0)
                return refused(importer, "is neither " META_FILE " nor below " TREE_PREFIX);
        char *path = arena_text(&arena, "%s", is_tree ? "" : name + strlen(TREE_PREFIX));
        int rc = take_member(importer, path, entry);
        arena_done(&arena);
        return rc;
}

static int take_all(struct importer *importer, int fd)
{
        struct archive_entry *entry;
        archive_read_support_format_tar(importer->tar);
        archive_read_support_filter_zstd(importer->tar);
        if (archive_read_open_fd(importer->tar, fd, PIECE) != ARCHIVE_OK)
                return unreadable(importer);
        for (;;) {
                int rc = archive_read_next_header(importer->tar, &entry);
                if (rc == ARCHIVE_EOF)
                        return 0;
                if (rc < ARCHIVE_WARN)
                        return unreadable(importer);
                if (take_entry(importer, entry) < 0)
                        return -importer->err->code;
        }
}

static int commit(struct layers *layers, struct importer *importer, char ret_id[static LAYER_ID_MAX])
{
        struct arena arena = { 0 };
        struct layer_meta meta;
        struct layer layer;
        char fault[LAYER_FAULT_MAX], id[LAYER_ID_MAX];
        int rc = 0;
        importer->name = META_FILE;
        if (!importer->meta.len)
                rc = refused(importer, "is missing");
        else if (!meta_decode(importer->meta.bytes, importer->meta.len, &arena, &meta, id, fault))
                rc = err_field(importer->err, "archive", "the archive is refused: %s", fault);
        /* A damaged layer of this name is moved away, and does not stay in the way. */
        rc = rc < 0 ? rc : layers_find(layers, id, &arena, &layer, NULL, importer->err);
        rc = rc < 0 ? rc
                    : layers_commit(layers, &importer->staging, importer->limits, &meta, &arena, ret_id, importer->err);
        arena_done(&arena);
        return rc;
}

int layers_import(struct layers *layers, int fd, const struct layer_limits *limits, char ret_id[static LAYER_ID_MAX],
        struct csn_error *err)
{
        struct csn_error why = { 0 };
        struct importer importer = { .limits = limits, .staging = LAYER_STAGING_NONE, .err = &why, .name = "" };
        int rc = layers_stage(layers, &importer.staging, &why);
        if (rc == 0) {
                importer.tar = archive_read_new();
                buf_init(&importer.meta, LAYER_META_MAX);
                rc = take_all(&importer, fd);
                rc = rc < 0 ? rc : commit(layers, &importer, ret_id);
                archive_read_free(importer.tar);
                buf_done(&importer.meta);
        }
        layers_abort(layers, &importer.staging);
        if (rc < 0 && err)
                *err = why;
        return rc;
}
