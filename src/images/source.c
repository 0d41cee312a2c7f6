/*
 * The archive of an image: its kind, its documents, its layers.
 *
 * Members are found by reading the tar file from its start each time, because the order of members is free and no
 * content is stored before its hash is checked.  libarchive seeks over the content of members.
 */
#include "images/import_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

int archive_refused(struct csn_error *err, const char *fmt, ...)
{
        char text[sizeof err->text];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        return err_field(err, "archive", "%s", text);
}

int archive_unreadable(struct archive *tar, struct csn_error *err)
{
        char text[300];
        const char *why = archive_error_string(tar);
        snprintf(text, sizeof text, "%s", why ? why : "it is damaged");
        image_clean_text(text);
        return archive_refused(err, "the archive cannot be read: %s", text);
}

static struct archive *new_tar(void)
{
        struct archive *tar = archive_read_new();
        archive_read_support_format_tar(tar);
        archive_read_support_filter_gzip(tar);
        archive_read_support_filter_zstd(tar);
        return tar;
}

int source_open_tar(const struct source *source, struct archive **ret)
{
        *ret = new_tar();
        if (lseek(source->fd, 0, SEEK_SET) < 0)
                return err_set(source->err, CSN_E_SYSTEM, errno, "read the archive");
        return archive_read_open_fd(*ret, source->fd, PIECE) != ARCHIVE_OK ? archive_unreadable(*ret, source->err) : 0;
}

/* The name of a member without "./" in front; NULL: no regular file. */
static const char *file_name(struct archive_entry *entry)
{
        const char *name = archive_entry_pathname(entry);
        while (name && strncmp(name, "./", 2) == 0)
                name += 2;
        return archive_entry_filetype(entry) == AE_IFREG && !archive_entry_hardlink(entry) ? name : NULL;
}

/* The process changed to the owner of the images after opening the folder. */
static int closed(const struct source *source)
{
        return archive_refused(source->err,
                "the OCI layout cannot be read as user %u, who owns the images: give that user the right to read the "
                "folder, or give the layout as a tar file",
                geteuid());
}

/* ---- kinds ---- */

static bool has_file(const struct source *source, const char *name)
{
        struct stat st;
        return fstatat(source->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

static int kind_of(bool has_index, bool has_layout, bool has_manifest, bool has_root, enum source_kind *ret)
{
        *ret = has_root ? SOURCE_TAR : has_index && has_layout ? SOURCE_OCI : has_manifest ? SOURCE_DOCKER : SOURCE_TAR;
        return 0;
}

int source_find_kind(struct source *source, enum source_kind *ret)
{
        static const char *const roots[] = { "usr/", "bin/", "etc/", "lib/" };
        bool index = false, layout = false, manifest = false, root = false;
        struct archive *tar;
        struct archive_entry *entry;
        if (source->is_folder) {
                *ret = SOURCE_OCI;
                if (faccessat(source->fd, ".", R_OK | X_OK, AT_EACCESS) < 0)
                        return closed(source);
                return has_file(source, "index.json") && has_file(source, "oci-layout")
                        ? 0
                        : archive_refused(source->err,
                                  "the folder is no OCI layout: it lacks index.json or oci-layout; give a tar file of "
                                  "a root file system as a file");
        }
        int rc = source_open_tar(source, &tar);
        while (rc == 0 && !root) {
                int found = archive_read_next_header(tar, &entry);
                if (found == ARCHIVE_EOF)
                        break;
                if (found < ARCHIVE_WARN) {
                        rc = archive_unreadable(tar, source->err);
                        break;
                }
                const char *any = archive_entry_pathname(entry), *name = file_name(entry);
                any = any && strncmp(any, "./", 2) == 0 ? any + 2 : any;
                index |= name && strcmp(name, "index.json") == 0;
                layout |= name && strcmp(name, "oci-layout") == 0;
                manifest |= name && strcmp(name, "manifest.json") == 0;
                for (size_t i = 0; any && i < ARRAY_LEN(roots); i++)
                        root |= strncmp(any, roots[i], strlen(roots[i])) == 0;
        }
        archive_read_free(tar);
        return rc < 0 ? rc : kind_of(index, layout, manifest, root, ret);
}

/* ---- streams ---- */

static int missing(const struct source *source, const char *path)
{
        char shown[200];
        snprintf(shown, sizeof shown, "%s", path);
        image_clean_text(shown);
        return archive_refused(source->err, "the archive is refused: it has no file \"%s\"", shown);
}

/* `path` is below blobs/, or a document; links are not followed, so no link leads out of the folder. */
static int open_in_folder(struct source *source, const char *path, struct stream *ret)
{
        struct stat st;
        char name[IMAGE_PATH_MAX + 1];
        snprintf(name, sizeof name, "%s", path);
        auto_fd folder = openat(source->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char *at = name;
        for (char *slash = strchr(at, '/'); folder >= 0 && slash; slash = strchr(at, '/')) {
                *slash = 0;
                int below = openat(folder, at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                fd_close(&folder);
                folder = below;
                at = slash + 1;
        }
        ret->fd = folder < 0 || strcmp(at, "..") == 0
                ? -1 /* errno of openat(2) */
                : openat(folder, at, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (ret->fd < 0)
                return errno == EACCES ? closed(source) : missing(source, path);
        return fstat(ret->fd, &st) == 0 && S_ISREG(st.st_mode) ? 0 : missing(source, path);
}

int source_open_member(struct source *source, const char *path, struct stream *ret)
{
        struct archive_entry *entry;
        *ret = (struct stream){ .source = source, .fd = -1, .digest = EVP_MD_CTX_new(), .piece = mem_alloc(PIECE) };
        if (EVP_DigestInit_ex(ret->digest, EVP_sha256(), NULL) != 1)
                return err_set(source->err, CSN_E_SYSTEM, 0, "libcrypto has no SHA-256");
        if (source->is_folder)
                return open_in_folder(source, path, ret);
        if (source_open_tar(source, &ret->outer) < 0)
                return -source->err->code;
        for (;;) {
                int rc = archive_read_next_header(ret->outer, &entry);
                if (rc == ARCHIVE_EOF)
                        return missing(source, path);
                if (rc < ARCHIVE_WARN)
                        return archive_unreadable(ret->outer, source->err);
                const char *name = file_name(entry);
                if (name && strcmp(name, path) == 0)
                        return 0;
        }
}

void member_done(struct stream *stream)
{
        archive_read_free(stream->outer);
        EVP_MD_CTX_free(stream->digest);
        fd_close(&stream->fd);
        free(stream->piece);
}

/* Read a piece of at most PIECE bytes into stream->piece.  0: the end.  -1: source->err is set. */
static ssize_t member_read(struct stream *stream)
{
        struct csn_error *err = stream->source->err;
        ssize_t n;
        do
                n = stream->outer ? (ssize_t)archive_read_data(stream->outer, stream->piece, PIECE)
                                  : read(stream->fd, stream->piece, PIECE);
        while (n < 0 && !stream->outer && errno == EINTR);
        if (n < 0) {
                if (stream->outer)
                        archive_unreadable(stream->outer, err);
                else
                        err_set(err, CSN_E_SYSTEM, errno, "read the archive");
                return -1;
        }
        stream->bytes += (uint64_t)n;
        if (stream->bytes > stream->source->read_max) {
                archive_refused(err, "the archive is refused: it unpacks to more bytes than images.max_bytes allows");
                return -1;
        }
        if (EVP_DigestUpdate(stream->digest, stream->piece, (size_t)n) != 1) {
                err_set(err, CSN_E_SYSTEM, 0, "libcrypto cannot compute SHA-256");
                return -1;
        }
        return n;
}

static int print_digest(EVP_MD_CTX *digest, char ret[static SHA256_LEN + 1], struct csn_error *err)
{
        uint8_t bytes[EVP_MAX_MD_SIZE];
        if (EVP_DigestFinal_ex(digest, bytes, NULL) != 1)
                return err_set(err, CSN_E_SYSTEM, 0, "libcrypto cannot compute SHA-256");
        hex_print(bytes, SHA256_LEN / 2, ret);
        return 0;
}

/* Read the rest, and print the hash of all bytes. */
static int member_finish(struct stream *stream, char ret_sha256[static SHA256_LEN + 1])
{
        ssize_t n;
        while ((n = member_read(stream)) > 0)
                ;
        return n < 0 ? -stream->source->err->code : print_digest(stream->digest, ret_sha256, stream->source->err);
}

/* ---- documents ---- */

static int read_document(struct source *source, const char *path, struct buf *text,
        char ret_sha256[static SHA256_LEN + 1])
{
        struct stream stream;
        ssize_t n = 0;
        int rc = source_open_member(source, path, &stream);
        while (rc == 0 && (n = member_read(&stream)) > 0)
                if (!buf_add(text, stream.piece, (size_t)n))
                        rc = archive_refused(source->err,
                                "the archive is refused: the document \"%.100s\" has more than %llu bytes", path,
                                (unsigned long long)IMAGE_DOCUMENT_MAX);
        if (rc == 0)
                rc = n < 0 ? -source->err->code : print_digest(stream.digest, ret_sha256, source->err);
        member_done(&stream);
        return rc;
}

int source_read_json(struct source *source, const char *path, const char *sha256, json_t **ret)
{
        char found[SHA256_LEN + 1], shown[100];
        struct buf text;
        json_error_t why;
        snprintf(shown, sizeof shown, "%s", path);
        image_clean_text(shown);
        buf_init(&text, IMAGE_DOCUMENT_MAX);
        int rc = read_document(source, path, &text, found);
        if (rc == 0 && sha256 && strcmp(sha256, found) != 0)
                rc = archive_refused(source->err,
                        "the archive is refused: the document \"%s\" has the SHA-256 %.16s..., and %.16s... was named",
                        shown, found, sha256);
        *ret = rc < 0 ? NULL : json_loadb(text.len ? text.bytes : "", text.len, JSON_REJECT_DUPLICATES, &why);
        buf_done(&text);
        if (rc == 0 && !*ret)
                rc = archive_refused(source->err, "the archive is refused: \"%s\" is no JSON (line %d)", shown,
                        why.line);
        return rc;
}

/* ---- hashes ---- */

la_ssize_t member_callback(struct archive *tar, void *owner, const void **ret)
{
        struct stream *stream = owner;
        ssize_t n = member_read(stream);
        *ret = stream->piece;
        if (n < 0)
                archive_set_error(tar, EIO, "%s", stream->source->err->text);
        return n;
}

/* Hash the decompressed content, without parsing the content. */
static int hash_unpacked(struct stream *stream, char ret_sha256[static SHA256_LEN + 1])
{
        struct csn_error *err = stream->source->err;
        struct archive *raw = archive_read_new();
        struct archive_entry *entry;
        EVP_MD_CTX *digest = EVP_MD_CTX_new();
        char *piece = mem_alloc(PIECE);
        uint64_t bytes = 0;
        la_ssize_t n = 0;
        archive_read_support_format_raw(raw);
        archive_read_support_format_empty(raw);
        archive_read_support_filter_gzip(raw);
        archive_read_support_filter_zstd(raw);
        int rc = EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1
                ? 0
                : err_set(err, CSN_E_SYSTEM, 0, "libcrypto has no SHA-256");
        if (rc == 0 &&
                (archive_read_open(raw, stream, NULL, member_callback, NULL) != ARCHIVE_OK ||
                        archive_read_next_header(raw, &entry) < ARCHIVE_WARN))
                rc = archive_unreadable(raw, err);
        while (rc == 0 && (n = archive_read_data(raw, piece, PIECE)) > 0) {
                bytes += (uint64_t)n;
                if (bytes > stream->source->read_max)
                        rc = archive_refused(err,
                                "the archive is refused: it unpacks to more bytes than images.max_bytes allows");
                else if (EVP_DigestUpdate(digest, piece, (size_t)n) != 1)
                        rc = err_set(err, CSN_E_SYSTEM, 0, "libcrypto cannot compute SHA-256");
        }
        if (rc == 0)
                rc = n < 0 ? archive_unreadable(raw, err) : print_digest(digest, ret_sha256, err);
        archive_read_free(raw);
        EVP_MD_CTX_free(digest);
        free(piece);
        return rc;
}

int source_hash(struct source *source, const char *path, bool unpacked, char ret_sha256[static SHA256_LEN + 1])
{
        struct stream stream;
        int rc = source_open_member(source, path, &stream);
        if (rc == 0)
                rc = (unpacked ? hash_unpacked : member_finish)(&stream, ret_sha256);
        member_done(&stream);
        return rc;
}
