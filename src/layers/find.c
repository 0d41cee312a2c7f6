/* Existing layers: finding, listing, verifying, removing. */
#include "layers/layers_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

static const char *hex_of(const char *id)
{
        return id + strlen(LAYER_ID_PREFIX);
}

static int check_id(const char *id, struct csn_error *err)
{
        uint8_t bytes[LAYER_ID_BYTES];
        if (!layer_id_parse(id, bytes))
                return err_field(err, "layer",
                        "\"%.60s\" is not the id of a layer: " LAYER_ID_PREFIX " and %d hexadecimal digits", id,
                        HEX_LEN);
        return 0;
}

static int no_layer(const struct layers *layers, const char *id, struct csn_error *err)
{
        return err_field(err, "layer", "there is no layer %.60s in %s; caisson layers list shows all", id,
                layers->path);
}

/* Hold a layer.  1: held; 0: no such layer, or under removal. */
static int hold(const struct layers *layers, const char *id, int *ret_fd, struct csn_error *err)
{
        int rc = lock_name(layers->fd, hex_of(id), O_RDONLY | O_DIRECTORY, LOCK_SH, ret_fd);
        if (rc < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
                return err_storage(err, errno, "open %s/%s", layers->path, hex_of(id));
        return rc > 0;
}

/* False: `fault` says why the layer cannot be used. */
static bool read_layer(int dir_fd, const char *id, struct arena *arena, struct layer *ret,
        char fault[static LAYER_FAULT_MAX])
{
        struct stat tree, meta;
        *ret = (struct layer){ .fault = NULL };
        memcpy(ret->id, id, LAYER_ID_MAX);
        if (fstatat(dir_fd, META_FILE, &meta, AT_SYMLINK_NOFOLLOW) == 0)
                ret->used_ms = (int64_t)meta.st_mtim.tv_sec * 1000 + meta.st_mtim.tv_nsec / 1000000;
        if (!meta_read(dir_fd, id, arena, &ret->meta, fault))
                return false;
        snprintf(fault, LAYER_FAULT_MAX, TREE_FOLDER " is not a folder");
        return fstatat(dir_fd, TREE_FOLDER, &tree, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(tree.st_mode);
}

int layers_find(struct layers *layers, const char *id, struct arena *arena, struct layer *ret, int *ret_hold,
        struct csn_error *err)
{
        char fault[LAYER_FAULT_MAX], name[33];
        struct layer layer;
        auto_fd fd = -1;
        if (check_id(id, err) < 0)
                return -CSN_E_INPUT;
        int rc = hold(layers, id, &fd, err);
        if (rc <= 0)
                return rc;
        if (!read_layer(fd, id, arena, &layer, fault)) {
                /* The next sweep removes the content: a removal can take long. */
                log_text(LOG_WARN, "layer %s is damaged and is moved away: %s", id, fault);
                layer_move_away(layers, hex_of(id), name);
                return 0;
        }
        /* Fails for a reader without ownership; such a use does not count. */
        if (utimensat(fd, META_FILE, NULL, AT_SYMLINK_NOFOLLOW) == 0)
                layer.used_ms = time_now_ms();
        *ret = layer;
        if (ret_hold)
                *ret_hold = take_fd(&fd);
        return 1;
}

/* ---- the list ---- */

struct list {
        struct layers *layers;
        struct arena *arena;
        struct layer *items; /* on the heap while the list grows */
        size_t n, size;
};

static void list_name(void *owner, const char *name)
{
        struct list *list = owner;
        char fault[LAYER_FAULT_MAX];
        uint8_t bytes[LAYER_ID_BYTES];
        struct arena text = { 0 };
        const char *id = arena_text(&text, LAYER_ID_PREFIX "%s", name);
        auto_fd fd = -1;
        if (layer_id_parse(id, bytes) && hold(list->layers, id, &fd, NULL) > 0) {
                if (list->n == list->size) {
                        list->size = 2 * list->size + 16;
                        list->items = mem_resize(list->items, list->size * sizeof *list->items);
                }
                struct layer *layer = &list->items[list->n++];
                if (!read_layer(fd, id, list->arena, layer, fault))
                        layer->fault = arena_text(list->arena, "%s", fault);
        }
        arena_done(&text);
}

static int compare(const void *a, const void *b)
{
        const struct layer *left = a, *right = b;
        if (left->used_ms != right->used_ms)
                return left->used_ms < right->used_ms ? -1 : 1;
        return strcmp(left->id, right->id);
}

int layers_list(struct layers *layers, struct arena *arena, struct layer **ret, size_t *ret_n, struct csn_error *err)
{
        struct list list = { .layers = layers, .arena = arena };
        if (folder_each(layers->fd, list_name, &list) < 0)
                return err_storage(err, errno, "list %s", layers->path);
        *ret = arena_alloc(arena, (list.n + 1) * sizeof **ret);
        *ret_n = list.n;
        if (list.n) {
                memcpy(*ret, list.items, list.n * sizeof **ret);
                qsort(*ret, list.n, sizeof **ret, compare);
        }
        free(list.items);
        return 0;
}

/* ---- verifying ---- */

/* 1: the tree matches meta.json; 0: `fault` names the difference. */
static int compare_tree(int dir_fd, const struct layer_meta *meta, struct arena *arena,
        char fault[static LAYER_FAULT_MAX], struct csn_error *err)
{
        const struct layer_limits limits = { .max_bytes = meta->bytes, .max_files = meta->files };
        struct tree_facts facts;
        auto_fd tree = openat(dir_fd, TREE_FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (tree < 0)
                return err_storage(err, errno, "open the tree of a layer");
        int rc = tree_read(tree, false, &limits, arena, &facts, err);
        if (rc < 0 && err->code != CSN_E_INPUT)
                return rc;
        bool limited = rc < 0 && strcmp(err->field, "tree") != 0;
        if (limited)
                snprintf(fault, LAYER_FAULT_MAX, "the tree has more files or bytes than " META_FILE " says");
        else if (rc < 0)
                snprintf(fault, LAYER_FAULT_MAX, "%s", err->text);
        else if (strcmp(facts.sha256, meta->tree_sha256) != 0)
                snprintf(fault, LAYER_FAULT_MAX, "the tree has the hash %.16s..., and " META_FILE " has %.16s...",
                        facts.sha256, meta->tree_sha256);
        else
                return 1;
        return 0;
}

int layers_verify(struct layers *layers, const char *id, char fault[static LAYER_FAULT_MAX], struct csn_error *err)
{
        struct arena arena = { 0 };
        struct csn_error why = { 0 };
        struct layer layer;
        char name[33];
        auto_fd fd = -1;
        if (check_id(id, err) < 0)
                return -CSN_E_INPUT;
        int rc = hold(layers, id, &fd, err);
        if (rc <= 0)
                return rc < 0 ? rc : no_layer(layers, id, err);
        rc = read_layer(fd, id, &arena, &layer, fault) ? compare_tree(fd, &layer.meta, &arena, fault, &why) : 0;
        if (rc < 0 && err)
                *err = why;
        if (rc == 0 && layer_move_away(layers, hex_of(id), name) == 0) {
                fd_close(&fd);
                staging_remove(layers, name);
        }
        arena_done(&arena);
        return rc;
}

/* ---- removing ---- */

int layers_remove(struct layers *layers, const char *id, struct csn_error *err)
{
        char name[33];
        if (check_id(id, err) < 0)
                return -CSN_E_INPUT;
        if (layer_move_away(layers, hex_of(id), name) < 0)
                return errno == ENOENT ? no_layer(layers, id, err)
                                       : err_storage(err, errno, "remove %s/%s", layers->path, hex_of(id));
        staging_remove(layers, name);
        return 0;
}

/* False: held, or already removed. */
static bool remove_unless_held(struct layers *layers, const struct layer *layer, struct layers_pruned *pruned)
{
        char name[33];
        auto_fd fd = -1;
        if (lock_name(layers->fd, hex_of(layer->id), O_RDONLY | O_DIRECTORY, LOCK_EX, &fd) <= 0 ||
                layer_move_away(layers, hex_of(layer->id), name) < 0)
                return false;
        fd_close(&fd);
        staging_remove(layers, name);
        pruned->layers++;
        pruned->bytes += layer->meta.bytes;
        return true;
}

struct aged {
        int dir_fd;
        int64_t before_ms;
};

static void remove_aged(void *owner, const char *name)
{
        const struct aged *aged = owner;
        struct stat st;
        if (fstatat(aged->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (int64_t)st.st_mtime * 1000 < aged->before_ms)
                unlinkat(aged->dir_fd, name, 0);
}

static bool is_kept(const struct layers_prune_rules *rules, const char *id)
{
        for (size_t i = 0; i < rules->kept_n; i++)
                if (strcmp(rules->kept[i], id) == 0)
                        return true;
        return false;
}

int layers_prune(struct layers *layers, const struct layers_prune_rules *rules, struct layers_pruned *ret,
        struct csn_error *err)
{
        struct arena arena = { 0 };
        struct layer *list = NULL;
        size_t n = 0;
        uint64_t bytes = 0;
        int64_t before_ms = rules->now_ms - (int64_t)rules->ttl_ms;
        const struct aged requests = { layers->requests_fd, before_ms }, failures = { layers->failed_fd, before_ms };
        *ret = (struct layers_pruned){ 0 };
        if (layers_list(layers, &arena, &list, &n, err) < 0) {
                arena_done(&arena);
                return -err->code;
        }
        for (size_t i = 0; i < n; i++) {
                if (!list[i].fault && is_kept(rules, list[i].id)) {
                        bytes += list[i].meta.bytes;
                        list[i].id[0] = 0;
                        continue;
                }
                bool expired = list[i].fault || (!list[i].meta.pinned && list[i].used_ms <= before_ms);
                if (expired && remove_unless_held(layers, &list[i], ret))
                        list[i].id[0] = 0;
                else
                        bytes += list[i].meta.bytes;
        }
        for (size_t i = 0; i < n && rules->max_bytes && bytes > rules->max_bytes; i++)
                if (list[i].id[0] && remove_unless_held(layers, &list[i], ret))
                        bytes -= list[i].meta.bytes;
        arena_done(&arena);
        folder_each(requests.dir_fd, remove_aged, (void *)(uintptr_t)&requests);
        folder_each(failures.dir_fd, remove_aged, (void *)(uintptr_t)&failures);
        layers_sweep(layers);
        return 0;
}
