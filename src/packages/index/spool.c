/*
 * Files of the upstream: fetched whole into an unlinked file, verified, and kept until the index is closed; see
 * index_private.h.
 *
 * The hash is computed as bytes arrive, in pieces of READ_BYTES (upstream.c).
 */
#include "packages/index/index_private.h"

#include "base/discard.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/mman.h>

static void spool_free(struct spool *spool)
{
        struct package_index *index = spool->index;
        for (struct spool **at = &index->spools; *at; at = &(*at)->next)
                if (*at == spool) {
                        *at = spool->next;
                        break;
                }
        upstream_stop(&spool->request);
        EVP_MD_CTX_free(spool->hash);
        discard_fd(index->workers, index->settings.share, &spool->fd);
        free(spool);
}

static void note_failure(struct package_index *index, enum package_problem problem, const struct document_file *file,
        const char *text)
{
        index->failure = problem;
        snprintf(index->failure_text, sizeof index->failure_text, "%.150s: %s", file->file.filename, text);
}

static void spool_finish(struct spool *spool, enum package_problem problem, const char *text)
{
        struct package_index *index = spool->index;
        spool->is_finished = true;
        spool->problem = problem;
        snprintf(spool->text, sizeof spool->text, "%s", text);
        upstream_stop(&spool->request);
        if (problem != PACKAGE_FINE)
                note_failure(index, problem, spool->file, text);
        if (problem != PACKAGE_FINE)
                discard_fd(index->workers, index->settings.share, &spool->fd);
        else
                index->usage.downloads += !spool->is_metadata;
        waiters_call(&spool->waiters);
        if (spool->is_metadata || problem != PACKAGE_FINE)
                spool_free(spool);
}

static bool is_expected(struct spool *spool)
{
        const struct document_file *file = spool->file;
        const uint8_t *expected = spool->is_metadata ? file->metadata_digest : file->digest;
        uint8_t digest[EVP_MAX_MD_SIZE];
        unsigned len = 0;
        return EVP_DigestFinal_ex(spool->hash, digest, &len) == 1 && memcmp(digest, expected, len) == 0;
}

static bool on_bytes(struct upstream_request *request, const void *bytes, size_t len)
{
        struct spool *spool = request->owner;
        struct package_index *index = spool->index;
        uint64_t max = spool->is_metadata ? PACKAGE_METADATA_BYTES_MAX : index->settings.max_bytes;
        index->usage.bytes += len;
        index->spooled_bytes += len;
        spool->size += len;
        if (spool->size > max || index->spooled_bytes > index->settings.max_bytes)
                return false;
        /* A full disk ends the transfer as a ceiling does. */
        return EVP_DigestUpdate(spool->hash, bytes, len) == 1 && io_write_all(spool->fd, bytes, len) == 0;
}

static void on_done(struct upstream_request *request, enum package_problem problem, const char *text)
{
        struct spool *spool = request->owner;
        if (problem == PACKAGE_FINE && !is_expected(spool))
                spool_finish(spool, PACKAGE_HASH_MISMATCH, "the index sent other bytes than its document promised");
        else
                spool_finish(spool, problem, text);
}

static int spool_open_file(const struct package_index *index)
{
        return index->settings.spool_folder
                ? open(index->settings.spool_folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)
                : memfd_create("package", MFD_CLOEXEC);
}

static bool spool_prepare(struct spool *spool)
{
        const bool sha512 = !spool->is_metadata && spool->index->settings.kind == PACKAGE_NODE;
        spool->fd = spool_open_file(spool->index);
        spool->hash = EVP_MD_CTX_new();
        return spool->fd >= 0 && spool->hash &&
                EVP_DigestInit_ex(spool->hash, sha512 ? EVP_sha512() : EVP_sha256(), NULL) == 1;
}

static void spool_start(struct spool *spool)
{
        struct package_index *index = spool->index;
        const struct document_file *file = spool->file;
        char url[PACKAGE_URL_MAX + sizeof ".metadata"];
        /* The extension belongs to the path, before the query. */
        size_t len = strcspn(file->url, "?");
        snprintf(url, sizeof url, "%.*s%s%s", (int)len, file->url, spool->is_metadata ? ".metadata" : "",
                file->url + len);
        if (!spool->is_metadata && file->file.size > index->settings.max_bytes)
                spool_finish(spool, PACKAGE_TOO_LARGE, "the file is larger than it may be");
        else if (index->spooled_files >= index->settings.max_files)
                spool_finish(spool, PACKAGE_TOO_MANY, "more files were fetched than may be");
        else if (!spool_prepare(spool))
                spool_finish(spool, PACKAGE_UNREACHABLE, "the file cannot be stored on this host");
        else if (!upstream_start(&spool->request, &index->upstream, url))
                spool_finish(spool, PACKAGE_UNTRUSTED, "the index names an address that is not permitted");
        else
                index->spooled_files += !spool->is_metadata;
}

void spool_wait(struct package_index *index, const struct document_file *file, bool is_metadata, struct waiter *waiter,
        struct spool **ret)
{
        struct spool *spool = index->spools;
        while (spool && (spool->file != file || spool->is_metadata != is_metadata))
                spool = spool->next;
        bool is_new = !spool;
        if (is_new) {
                spool = mem_alloc(sizeof *spool);
                *spool = (struct spool){ .index = index, .next = index->spools, .file = file,
                        .is_metadata = is_metadata, .fd = -1,
                        .request = { .is_file = true, .bytes = on_bytes, .done = on_done, .owner = spool } };
                index->spools = spool;
        }
        *ret = spool;
        waiters_add(&spool->waiters, waiter);
        if (is_new)
                spool_start(spool);
        else if (spool->is_finished)
                waiters_call(&spool->waiters);
}

void spool_leave(struct spool *spool, struct waiter *waiter)
{
        waiters_remove(&spool->waiters, waiter);
        if (!spool->waiters && !spool->is_finished)
                spool_free(spool);
}

void spools_close(struct package_index *index)
{
        for (struct spool *spool = index->spools, *next; spool; spool = next) {
                next = spool->next;
                spool_free(spool);
        }
}
