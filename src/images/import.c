/* From an archive to an image: the layers, their order, and their hashes. */
#include "images/import_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define INDEXES_MAX 4           /* length of a chain of indexes */
#define HEADERS_BYTES 4096ULL   /* of a member in a tar stream */
#define DIGEST_PREFIX "sha256:"

struct layer {
        const char *path;   /* of the member */
        const char *sha256; /* of the member; NULL: unpacked */
        const char *diff_id;/* of the content after decompression; NULL: unknown */
};

struct importer {
        const struct image_import *import;
        struct source source;
        struct arena *arena;
        struct stored_image *image;
        struct layer layers[IMAGE_LAYERS_MAX];
        size_t layers_n;
};

static int refused(const struct importer *importer, const char *fmt, ...) PRINTF_LIKE(2, 3);
static int refused(const struct importer *importer, const char *fmt, ...)
{
        char text[300];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        image_clean_text(text);
        return archive_refused(importer->source.err, "the archive is refused: %s", text);
}

/* The digits of a digest "sha256:...", in the arena.  NULL: another algorithm, or no digest. */
static const char *digits_of(const struct importer *importer, const char *digest)
{
        size_t prefix = strlen(DIGEST_PREFIX);
        if (!digest || strncmp(digest, DIGEST_PREFIX, prefix) != 0 || strlen(digest) != prefix + SHA256_LEN ||
                strspn(digest + prefix, "0123456789abcdef") != SHA256_LEN)
                return NULL;
        return arena_text(importer->arena, "%s", digest + prefix);
}

static int add_layer(struct importer *importer, const char *path, const char *sha256, const char *diff_id)
{
        if (importer->layers_n == IMAGE_LAYERS_MAX)
                return refused(importer, "it has more than %d layers", IMAGE_LAYERS_MAX);
        importer->layers[importer->layers_n++] =
                (struct layer){ arena_text(importer->arena, "%s", path), sha256, diff_id };
        return 0;
}

static void note_digest(struct importer *importer, const char *sha256)
{
        importer->image->digest = arena_text(importer->arena, DIGEST_PREFIX "%s", sha256);
}

/* ---- docker save ---- */

/* The name of a configuration is its hash, with a folder in front or with .json behind. */
static const char *hash_in_name(const struct importer *importer, const char *path)
{
        const char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        const char *rest = name + strspn(name, "0123456789abcdef");
        if (rest - name != SHA256_LEN || (rest[0] && strcmp(rest, ".json") != 0))
                return NULL;
        return arena_copy(importer->arena, name, SHA256_LEN);
}

static int add_docker_layers(struct importer *importer, json_t *names, json_t *config)
{
        json_t *ids = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
        if (json_array_size(names) == 0)
                return refused(importer, "manifest.json names no layer");
        if (json_array_size(ids) != json_array_size(names))
                return refused(importer, "manifest.json names %zu layers, and the configuration has %zu diff_ids",
                        json_array_size(names), json_array_size(ids));
        for (size_t i = 0; i < json_array_size(names); i++) {
                const char *path = json_string_value(json_array_get(names, i));
                const char *digits = digits_of(importer, json_string_value(json_array_get(ids, i)));
                if (!path || !digits)
                        return refused(importer, "layer %zu has no path or no sha256 diff_id", i);
                if (add_layer(importer, path, NULL, digits) < 0)
                        return -importer->source.err->code;
        }
        return 0;
}

static int read_docker(struct importer *importer)
{
        json_t *manifest = NULL, *config = NULL;
        char hash[SHA256_LEN + 1];
        int rc = source_read_json(&importer->source, "manifest.json", NULL, &manifest);
        json_t *entry = json_array_get(manifest, 0);
        const char *named = json_string_value(json_object_get(entry, "Config")), *path = named ? named : "";
        if (rc == 0 && json_array_size(manifest) != 1)
                rc = refused(importer, "it has %zu images; save one image a file", json_array_size(manifest));
        if (rc == 0 && !named)
                rc = refused(importer, "manifest.json names no configuration");
        if (rc == 0)
                rc = source_read_json(&importer->source, path, hash_in_name(importer, path), &config);
        if (rc == 0)
                rc = source_hash(&importer->source, path, false, hash);
        if (rc == 0)
                rc = add_docker_layers(importer, json_object_get(entry, "Layers"), config);
        if (rc == 0)
                note_digest(importer, hash);
        json_decref(manifest);
        json_decref(config);
        return rc;
}

/* ---- OCI layouts ---- */

/* The path of the blob of a descriptor; *ret_digits is its hash. */
static int blob_of(const struct importer *importer, json_t *descriptor, const char **ret_path, const char **ret_digits)
{
        *ret_digits = digits_of(importer, json_string_value(json_object_get(descriptor, "digest")));
        if (!*ret_digits)
                return refused(importer, "a descriptor has no digest with SHA-256");
        *ret_path = arena_text(importer->arena, "blobs/sha256/%s", *ret_digits);
        return 0;
}

static const char *own_architecture(void)
{
        static struct utsname names;
        uname(&names);
        return strcmp(names.machine, "x86_64") == 0 ? "amd64" : strcmp(names.machine, "aarch64") == 0 ? "arm64"
                                                                                                      : names.machine;
}

/* Whether an image of an index is for this machine; an image without a platform is for all. */
static bool is_own_platform(json_t *descriptor)
{
        json_t *platform = json_object_get(descriptor, "platform");
        const char *os = json_string_value(json_object_get(platform, "os"));
        const char *arch = json_string_value(json_object_get(platform, "architecture"));
        return (!os || strcmp(os, "linux") == 0) && (!arch || strcmp(arch, own_architecture()) == 0);
}

static int choose(const struct importer *importer, json_t *index, json_t **ret)
{
        json_t *all = json_object_get(index, "manifests");
        size_t found = 0;
        for (size_t i = 0; i < json_array_size(all); i++)
                if (is_own_platform(json_array_get(all, i))) {
                        *ret = json_array_get(all, i);
                        found++;
                }
        if (found == 1)
                return 0;
        return found ? refused(importer, "it has %zu images for this machine; give an archive with one image", found)
                     : refused(importer, "it has no image for linux/%s", own_architecture());
}

static int add_oci_layers(struct importer *importer, json_t *manifest)
{
        json_t *all = json_object_get(manifest, "layers");
        if (json_array_size(all) == 0)
                return refused(importer, "the manifest names no layer");
        for (size_t i = 0; i < json_array_size(all); i++) {
                json_t *row = json_array_get(all, i);
                const char *path, *digits, *type = json_string_value(json_object_get(row, "mediaType"));
                if (type && (strstr(type, "encrypted") || !strstr(type, "tar")))
                        return refused(importer, "layer %zu is of the type \"%.80s\", which is no tar file", i, type);
                if (blob_of(importer, row, &path, &digits) < 0 ||
                        add_layer(importer, path, digits, NULL) < 0)
                        return -importer->source.err->code;
        }
        return 0;
}

/* From an index, possibly by further indexes, to the manifest of an image.  Takes the reference of the index. */
static int read_manifest(struct importer *importer, json_t *index)
{
        int rc = 0;
        for (int i = 0; rc == 0 && json_object_get(index, "manifests"); i++) {
                json_t *chosen = NULL, *next = NULL;
                const char *path = "", *digits = "";
                rc = i == INDEXES_MAX ? refused(importer, "more than %d indexes lead to one another", INDEXES_MAX)
                                      : choose(importer, index, &chosen);
                rc = rc < 0 ? rc : blob_of(importer, chosen, &path, &digits);
                rc = rc < 0 ? rc : source_read_json(&importer->source, path, digits, &next);
                json_decref(index);
                index = next;
        }
        const char *path = "", *digits = "";
        json_t *config = NULL;
        rc = rc < 0 ? rc : blob_of(importer, json_object_get(index, "config"), &path, &digits);
        rc = rc < 0 ? rc : source_read_json(&importer->source, path, digits, &config);
        rc = rc < 0 ? rc : add_oci_layers(importer, index);
        if (rc == 0)
                note_digest(importer, digits);
        json_decref(config);
        json_decref(index);
        return rc;
}

static int read_oci(struct importer *importer)
{
        json_t *index = NULL;
        int rc = source_read_json(&importer->source, "index.json", NULL, &index);
        if (rc == 0 && !json_object_get(index, "manifests")) {
                json_decref(index);
                return refused(importer, "index.json names no image");
        }
        return rc < 0 ? rc : read_manifest(importer, index);
}

/* ---- unpacking ---- */

static int check_layer(struct importer *importer, const struct layer *layer)
{
        char found[SHA256_LEN + 1];
        const char *wanted = layer->sha256 ? layer->sha256 : layer->diff_id;
        if (source_hash(&importer->source, layer->path, !layer->sha256, found) < 0)
                return -importer->source.err->code;
        if (strcmp(found, wanted) == 0)
                return 0;
        return refused(importer, "layer \"%.100s\" has the SHA-256 %.16s..., and %.16s... was named", layer->path, found,
                wanted);
}

static int unpack_pass(struct importer *importer, struct unpacker *unpacker, const struct layer *layer,
        enum unpack_pass pass)
{
        struct stream stream;
        struct archive *tar = archive_read_new();
        archive_read_support_format_tar(tar);
        archive_read_support_format_empty(tar);
        archive_read_support_filter_gzip(tar);
        archive_read_support_filter_zstd(tar);
        int rc = source_open_member(&importer->source, layer->path, &stream);
        if (rc == 0 && archive_read_open(tar, &stream, NULL, member_callback, NULL) != ARCHIVE_OK)
                rc = archive_unreadable(tar, importer->source.err);
        rc = rc < 0 ? rc : unpack_tar(unpacker, tar, pass);
        archive_read_free(tar);
        member_done(&stream);
        return rc;
}

static int unpack_layers(struct importer *importer, struct unpacker *unpacker)
{
        for (size_t i = 0; i < importer->layers_n; i++) {
                const struct layer *layer = &importer->layers[i];
                if (check_layer(importer, layer) < 0 ||
                        unpack_pass(importer, unpacker, layer, UNPACK_WHITEOUTS) < 0 ||
                        unpack_pass(importer, unpacker, layer, UNPACK_FILES) < 0)
                        return -importer->source.err->code;
                unpack_done(unpacker);
        }
        return 0;
}

static int unpack_root(struct importer *importer, struct unpacker *unpacker)
{
        struct archive *tar;
        int rc = source_open_tar(&importer->source, &tar);
        rc = rc < 0 ? rc : unpack_tar(unpacker, tar, UNPACK_ALL);
        archive_read_free(tar);
        return rc;
}

static int hash_file(struct importer *importer)
{
        char piece[16384], sha256[SHA256_LEN + 1];
        uint8_t bytes[EVP_MAX_MD_SIZE];
        ssize_t n = 0;
        EVP_MD_CTX *digest = EVP_MD_CTX_new();
        bool good = EVP_DigestInit_ex(digest, EVP_sha256(), NULL) == 1 && lseek(importer->source.fd, 0, SEEK_SET) == 0;
        while (good && (n = read(importer->source.fd, piece, sizeof piece)) > 0)
                good = EVP_DigestUpdate(digest, piece, (size_t)n) == 1;
        good = good && n == 0 && EVP_DigestFinal_ex(digest, bytes, NULL) == 1;
        EVP_MD_CTX_free(digest);
        if (!good)
                return err_set(importer->source.err, CSN_E_SYSTEM, n < 0 ? errno : 0, "hash the archive");
        hex_print(bytes, SHA256_LEN / 2, sha256);
        note_digest(importer, sha256);
        return 0;
}

static int read_and_unpack(struct importer *importer, struct unpacker *unpacker)
{
        static const char *const names[] = {
                [SOURCE_TAR] = "tar", [SOURCE_DOCKER] = "docker", [SOURCE_OCI] = "oci"
        };
        enum source_kind kind;
        int rc = source_find_kind(&importer->source, &kind);
        if (rc < 0)
                return rc;
        importer->image->kind = names[kind];
        if (kind == SOURCE_TAR)
                return hash_file(importer) < 0 ? -importer->source.err->code : unpack_root(importer, unpacker);
        rc = kind == SOURCE_OCI ? read_oci(importer) : read_docker(importer);
        return rc < 0 ? rc : unpack_layers(importer, unpacker);
}

/* ---- the archive as a seekable file ---- */

/* A pipe is copied to a file without a name in the folder of images. */
static int copy_pipe(const struct images *images, const struct image_import *import, int *ret_fd,
        struct csn_error *err)
{
        auto_fd fd = openat(images->fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        char *piece = mem_alloc(PIECE);
        uint64_t left = import->limits.max_bytes;
        ssize_t n = 0;
        int rc = fd < 0 ? err_storage(err, errno, "make a file in %s", images->path) : 0;
        while (rc == 0 && (n = read(import->fd, piece, PIECE)) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        rc = err_set(err, CSN_E_INPUT, errno, "read the archive");
                else if ((uint64_t)n > left)
                        rc = err_field(err, "max_bytes",
                                "the archive has more than %" PRIu64 " bytes; images.max_bytes is the limit",
                                import->limits.max_bytes);
                else if (io_write_all(fd, piece, (size_t)n) < 0)
                        rc = err_storage(err, errno, "copy the archive");
                left -= rc == 0 ? (uint64_t)n : 0;
        }
        free(piece);
        *ret_fd = rc < 0 ? -1 : take_fd(&fd);
        return rc;
}

static int open_source(const struct images *images, const struct image_import *import, struct source *ret,
        struct csn_error *err)
{
        struct stat st;
        if (fstat(import->fd, &st) < 0)
                return err_set(err, CSN_E_INPUT, errno, "look at the archive");
        *ret = (struct source){ .fd = -1,
                .is_folder = S_ISDIR(st.st_mode),
                .read_max = import->limits.max_bytes + HEADERS_BYTES * import->limits.max_files,
                .err = err };
        if (S_ISREG(st.st_mode) || ret->is_folder)
                ret->fd = fcntl(import->fd, F_DUPFD_CLOEXEC, 0);
        else
                return copy_pipe(images, import, &ret->fd, err);
        return ret->fd < 0 ? err_set(err, CSN_E_SYSTEM, errno, "keep the archive") : 0;
}

/* Checked early; give_name() checks again. */
static int check_name(const struct images *images, const struct image_import *import, struct csn_error *err)
{
        if (image_may_be_named(import->name, err) < 0)
                return -err->code;
        if (!import->replace && faccessat(images->names_fd, import->name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return image_exists(import->name, err);
        return 0;
}

int image_import(struct images *images, const struct image_import *import, struct arena *arena,
        struct stored_image *ret, struct csn_error *err)
{
        struct image_staging staging = IMAGE_STAGING_NONE;
        struct importer *importer = mem_alloc(sizeof *importer);
        *ret = (struct stored_image){ .name = arena_text(arena, "%s", import->name), .kind = "", .digest = "" };
        *importer = (struct importer){ .import = import, .arena = arena, .image = ret };
        int rc = check_name(images, import, err);
        rc = rc < 0 ? rc : open_source(images, import, &importer->source, err);
        rc = rc < 0 ? rc : image_stage(images, &staging, err);
        struct unpacker unpacker = { .limits = &import->limits, .tree_fd = staging.tree_fd, .err = err };
        rc = rc < 0 ? rc : read_and_unpack(importer, &unpacker);
        ret->bytes = unpacker.bytes;
        ret->files = unpacker.files;
        ret->dropped = unpacker.dropped;
        rc = rc < 0 ? rc : image_settle(&staging, arena, ret, err);
        rc = rc < 0 ? rc : image_publish(images, &staging, ret, import->replace, err);
        image_abort(images, &staging);
        unpack_done(&unpacker);
        fd_close(&importer->source.fd);
        free(importer);
        return rc;
}
