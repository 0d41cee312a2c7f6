/*
 * Folders as tar, by libarchive: packed piece by piece on demand, unpacked as the pieces come.
 *
 * An archive out of a sandbox is hostile.  libarchive's SECURE flags refuse names leading out of the folder, by "..",
 * by a slash in front, or by a symbolic link, of this stream or from before;
 * tests/integration/sandboxes/test_sandbox_copy.py tries each.
 */
#include "front/remote/remote.h"

#include <archive.h>
#include <archive_entry.h>
#include <sys/stat.h>

#define PIECE (64 * KIB)
#define BLOCK 10240            /* tar's own */

/* ---- packing ---- */

struct packer {
        struct archive *disk, *tar;
        struct archive_entry *entry;
        struct buf out;
        size_t out_at;
        size_t prefix;             /* length of the folder's own name */
        bool in_file, over;
};

static la_ssize_t add_packed(struct archive *tar, void *owner, const void *bytes, size_t len)
{
        struct packer *packer = owner;
        (void)tar;
        return buf_add(&packer->out, bytes, len) ? (la_ssize_t)len : -1;
}

static int failed(struct archive *archive, const char *what, struct csn_error *err)
{
        const char *why = archive_error_string(archive);
        return err_set(err, CSN_E_SYSTEM, 0, "%s: %.300s", what, why ? why : "no reason was given");
}

int packer_open(const char *folder, struct packer **ret, struct csn_error *err)
{
        struct packer *packer = mem_alloc(sizeof *packer);
        *packer = (struct packer){ .disk = archive_read_disk_new(),
                .tar = archive_write_new(),
                .entry = archive_entry_new(),
                .prefix = strlen(folder) };
        buf_init(&packer->out, 4 * PIECE + BLOCK);
        archive_read_disk_set_symlink_physical(packer->disk);
        archive_read_disk_set_behavior(packer->disk,
                ARCHIVE_READDISK_NO_XATTR | ARCHIVE_READDISK_NO_ACL | ARCHIVE_READDISK_NO_FFLAGS);
        archive_write_set_format_pax_restricted(packer->tar);
        archive_write_set_bytes_per_block(packer->tar, BLOCK);
        int rc = archive_read_disk_open(packer->disk, folder) != ARCHIVE_OK ? failed(packer->disk, folder, err) : 0;
        if (rc == 0 && archive_write_open(packer->tar, packer, NULL, add_packed, NULL) != ARCHIVE_OK)
                rc = failed(packer->tar, folder, err);
        if (rc == 0)
                *ret = packer;
        else
                packer_close(packer);
        return rc;
}

void packer_close(struct packer *packer)
{
        if (!packer)
                return;
        archive_entry_free(packer->entry);
        archive_write_free(packer->tar);
        archive_read_free(packer->disk);
        buf_done(&packer->out);
        free(packer);
}

/* Names in the archive begin below the folder, and owners on our side are nothing for the sandbox. */
static void make_ours(struct packer *packer)
{
        const char *name = archive_entry_pathname(packer->entry) + packer->prefix;
        struct arena arena = { 0 };
        archive_entry_set_pathname(packer->entry, arena_text(&arena, "./%s", name + strspn(name, "/")));
        arena_done(&arena);
        archive_entry_set_uid(packer->entry, 0);
        archive_entry_set_gid(packer->entry, 0);
        archive_entry_set_uname(packer->entry, NULL);
        archive_entry_set_gname(packer->entry, NULL);
        archive_entry_set_hardlink(packer->entry, NULL);
        archive_entry_sparse_clear(packer->entry);
}

static int begin_entry(struct packer *packer, struct csn_error *err)
{
        archive_entry_clear(packer->entry);
        int rc = archive_read_next_header2(packer->disk, packer->entry);
        if (rc == ARCHIVE_EOF) {
                packer->over = true;
                return archive_write_close(packer->tar) == ARCHIVE_OK ? 0 : failed(packer->tar, "pack", err);
        }
        if (rc < ARCHIVE_WARN)
                return failed(packer->disk, "read the folder", err);
        mode_t type = archive_entry_filetype(packer->entry);
        if (type == AE_IFDIR)
                archive_read_disk_descend(packer->disk);
        if (type != AE_IFDIR && type != AE_IFREG && type != AE_IFLNK) {
                fprintf(stderr, "caisson: left out, for it is no file, folder or link: %s\n",
                        archive_entry_pathname(packer->entry));
                return 0;
        }
        make_ours(packer);
        if (archive_write_header(packer->tar, packer->entry) < ARCHIVE_WARN)
                return failed(packer->tar, archive_entry_pathname(packer->entry), err);
        packer->in_file = type == AE_IFREG && archive_entry_size(packer->entry) > 0;
        return 0;
}

/* A shortened file is filled up with zeros, as tar(1) does. */
static int add_data(struct packer *packer, struct csn_error *err)
{
        static char bytes[PIECE];
        la_ssize_t n = archive_read_data(packer->disk, bytes, sizeof bytes);
        if (n < 0)
                return failed(packer->disk, archive_entry_pathname(packer->entry), err);
        if (n > 0 && archive_write_data(packer->tar, bytes, (size_t)n) < 0)
                return failed(packer->tar, archive_entry_pathname(packer->entry), err);
        packer->in_file = n > 0;
        return 0;
}

ssize_t packer_read(struct packer *packer, char *bytes, size_t size, struct csn_error *err)
{
        while (packer->out_at == packer->out.len && !packer->over) {
                packer->out.len = packer->out_at = 0;
                if ((packer->in_file ? add_data(packer, err) : begin_entry(packer, err)) < 0)
                        return -err->code;
        }
        size_t n = min_u64(size, packer->out.len - packer->out_at);
        if (n)
                memcpy(bytes, packer->out.bytes + packer->out_at, n);
        packer->out_at += n;
        return (ssize_t)n;
}

/* ---- unpacking ---- */

struct source {
        ssize_t (*read)(void *owner, const void **ret, struct csn_error *err);
        void *owner;
        struct csn_error error;
};

static la_ssize_t pull(struct archive *tar, void *owner, const void **ret)
{
        struct source *source = owner;
        ssize_t n = source->read(source->owner, ret, &source->error);
        if (n < 0)
                archive_set_error(tar, EIO, "%s", source->error.text);
        return n < 0 ? -1 : n;
}

static int copy_data(struct archive *tar, struct archive *disk, const char *name, struct csn_error *err)
{
        for (;;) {
                const void *bytes;
                size_t len;
                la_int64_t at;
                int rc = archive_read_data_block(tar, &bytes, &len, &at);
                if (rc == ARCHIVE_EOF)
                        return 0;
                if (rc < ARCHIVE_WARN)
                        return failed(tar, name, err);
                if (archive_write_data_block(disk, bytes, len, at) < ARCHIVE_WARN)
                        return failed(disk, name, err);
        }
}

static int unpack_entry(struct archive *tar, struct archive *disk, struct archive_entry *entry, struct csn_error *err)
{
        const char *name = archive_entry_pathname(entry);
        mode_t type = archive_entry_filetype(entry);
        if (!name || strcmp(name, ".") == 0 || strcmp(name, "./") == 0)
                return 0;
        if (!archive_entry_hardlink(entry) && type != AE_IFDIR && type != AE_IFREG && type != AE_IFLNK) {
                fprintf(stderr, "caisson: left out, for it is no file, folder or link: ");
                remote_print(STDERR_FILENO, false, name, strlen(name));
                fprintf(stderr, "\n");
                return 0;
        }
        archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777);
        if (archive_write_header(disk, entry) < ARCHIVE_WARN)
                return failed(disk, name, err);
        if (archive_entry_size(entry) > 0 && copy_data(tar, disk, name, err) < 0)
                return -err->code;
        return archive_write_finish_entry(disk) < ARCHIVE_WARN ? failed(disk, name, err) : 0;
}

static int unpack_all(struct archive *tar, struct archive *disk, struct csn_error *err)
{
        struct archive_entry *entry;
        for (;;) {
                int rc = archive_read_next_header(tar, &entry);
                if (rc == ARCHIVE_EOF)
                        return archive_write_close(disk) < ARCHIVE_WARN ? failed(disk, "finish the folder", err) : 0;
                if (rc < ARCHIVE_WARN)
                        return failed(tar, "read the stream", err);
                if (unpack_entry(tar, disk, entry, err) < 0)
                        return -err->code;
        }
}

int unpack(ssize_t (*read)(void *owner, const void **ret, struct csn_error *err), void *owner, const char *folder,
        struct csn_error *err)
{
        struct source source = { .read = read, .owner = owner };
        if (chdir(folder) < 0)
                return err_set(err, CSN_E_INPUT, errno, "%s", folder);
        struct archive *tar = archive_read_new(), *disk = archive_write_disk_new();
        archive_read_support_format_tar(tar);
        archive_write_disk_set_options(disk,
                ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_SECURE_SYMLINKS | ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                        ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
        int rc = archive_read_open(tar, &source, NULL, pull, NULL) == ARCHIVE_OK ? unpack_all(tar, disk, err)
                                                                                 : failed(tar, "read the stream", err);
        /* Behind the end of the archive comes only the news whether the transfer was whole. */
        const void *rest;
        ssize_t n = rc == 0 ? 1 : 0;
        while (n > 0)
                n = read(owner, &rest, &source.error);
        if (n < 0)
                rc = (int)n;
        if (source.error.code)
                *err = source.error;
        archive_write_free(disk);
        archive_read_free(tar);
        return rc;
}
