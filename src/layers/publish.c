/*
 * Staging and publishing.
 *
 * Order at publishing: the tree and meta.json are on the disk (syncfs(2), one call for a hundred thousand files), then
 * the folder gets its name, then the name is on the disk.
 */
#include "layers/layers_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#define TRIES_MAX 100 /* attempts to lock a new folder before a sweep removes the folder */

/* 1: made and locked; 0: another process swept the folder before the lock; -1 with errno. */
static int make_locked(struct layers *layers, struct layer_staging *ret)
{
        hex_random(16, ret->name);
        if (mkdirat(layers->staging_fd, ret->name, 0700) < 0)
                return errno == EEXIST ? 0 : -1;
        int rc = lock_name(layers->staging_fd, ret->name, O_RDONLY | O_DIRECTORY, LOCK_EX, &ret->fd);
        return rc < 0 && errno == ENOENT ? 0 : rc;
}

int layers_stage(struct layers *layers, struct layer_staging *ret, struct csn_error *err)
{
        struct layer_staging staging = LAYER_STAGING_NONE;
        int rc = 0;
        for (int i = 0; i < TRIES_MAX && rc == 0; i++)
                rc = make_locked(layers, &staging);
        if (rc <= 0)
                return err_storage(err, rc < 0 ? errno : EAGAIN, "make a folder in %s/.staging", layers->path);
        if (mkdirat(staging.fd, TREE_FOLDER, 0755) < 0 ||
                (staging.tree_fd = openat(staging.fd, TREE_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) <
                        0) {
                rc = err_storage(err, errno, "make a folder in %s/.staging", layers->path);
                layers_abort(layers, &staging);
                return rc;
        }
        *ret = staging;
        return 0;
}

char *layers_staging_tree(const struct layers *layers, const struct layer_staging *staging, struct arena *arena)
{
        return arena_text(arena, "%s/.staging/%s/" TREE_FOLDER, layers->path, staging->name);
}

/* The lock is held during the removal, so that no sweep removes the same files. */
void layers_abort(struct layers *layers, struct layer_staging *staging)
{
        if (staging->fd >= 0)
                io_remove_tree(layers->staging_fd, staging->name);
        fd_close(&staging->tree_fd);
        fd_close(&staging->fd);
        *staging = LAYER_STAGING_NONE;
}

static int write_meta(const struct layer_staging *staging, const struct layer_meta *meta, struct csn_error *err)
{
        size_t len;
        char *text = meta_encode(meta, &len);
        if (!text)
                return err_field(err, "meta",
                        META_FILE " would have more than %llu bytes, or has a text that is not UTF-8", LAYER_META_MAX);
        auto_fd fd = openat(staging->fd, META_FILE, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        int rc = fd < 0 || io_write_all(fd, text, len) < 0 || fchmod(fd, 0644) < 0
                ? err_storage(err, errno, "write " META_FILE " of a layer")
                : 0;
        free(text);
        return rc;
}

static void join_warnings(struct layer_meta *meta, const struct tree_facts *facts, struct arena *arena)
{
        size_t n = min_u64(meta->warnings_n, LAYER_WARNINGS_MAX);
        const char **all = arena_alloc(arena, LAYER_WARNINGS_MAX * sizeof *all);
        if (n)
                memcpy(all, meta->warnings, n * sizeof *all);
        for (size_t i = 0; i < facts->warnings_n && n < LAYER_WARNINGS_MAX; i++) {
                bool known = false;
                for (size_t k = 0; k < meta->warnings_n && !known; k++)
                        known = strcmp(meta->warnings[k], facts->warnings[i]) == 0;
                if (!known)
                        all[n++] = facts->warnings[i];
        }
        meta->warnings = all;
        meta->warnings_n = n;
}

static int freeze(const struct layer_staging *staging, const struct layer_limits *limits, struct layer_meta *meta,
        struct arena *arena, struct csn_error *err)
{
        struct tree_facts facts;
        if (tree_read(staging->tree_fd, true, limits, arena, &facts, err) < 0)
                return -err->code;
        if (meta->tree_sha256[0] && strcmp(meta->tree_sha256, facts.sha256) != 0)
                return err_field(err, "tree",
                        "the layer is refused: its files have the hash %.16s..., and " META_FILE " has %.16s...",
                        facts.sha256, meta->tree_sha256);
        memcpy(meta->tree_sha256, facts.sha256, sizeof facts.sha256);
        meta->bytes = facts.bytes;
        meta->files = facts.files;
        meta->created_ms = meta->created_ms ? meta->created_ms : time_now_ms();
        join_warnings(meta, &facts, arena);
        return write_meta(staging, meta, err);
}

static int publish(struct layers *layers, struct layer_staging *staging, const char *hex, struct csn_error *err)
{
        if (fchmod(staging->fd, 0755) < 0 || syncfs(staging->fd) < 0)
                return err_storage(err, errno, "write a layer to the disk");
        if (renameat(layers->staging_fd, staging->name, layers->fd, hex) < 0) {
                /* rename(2) replaces an empty folder only, and a layer is never empty. */
                if (errno != EEXIST && errno != ENOTEMPTY)
                        return err_storage(err, errno, "publish a layer in %s", layers->path);
                layers_abort(layers, staging);
                return 0;
        }
        fd_close(&staging->tree_fd);
        fd_close(&staging->fd);
        if (fsync(layers->fd) < 0)
                return err_storage(err, errno, "write %s to the disk", layers->path);
        return 0;
}

int layers_commit(struct layers *layers, struct layer_staging *staging, const struct layer_limits *limits,
        struct layer_meta *meta, struct arena *arena, char ret_id[static LAYER_ID_MAX], struct csn_error *err)
{
        char id[LAYER_ID_MAX];
        layer_id(&meta->key, id);
        int rc = freeze(staging, limits, meta, arena, err);
        rc = rc < 0 ? rc : publish(layers, staging, id + strlen(LAYER_ID_PREFIX), err);
        layers_abort(layers, staging);
        if (rc == 0)
                memcpy(ret_id, id, sizeof id);
        return rc;
}
