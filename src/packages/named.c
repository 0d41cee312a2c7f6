/* Existing layers: layers named by a request, and layers pinned to an image by the administrator. */
#include "packages/packages_private.h"

#include <fcntl.h>
#include <sys/stat.h>

static uint64_t big_endian(const uint8_t *bytes)
{
        uint64_t number = 0;
        for (size_t i = 0; i < 8; i++)
                number = number << 8 | bytes[i];
        return number;
}

/* The folder's inode and time of birth (statx(2)): a number of an inode is used again soon after a removal. */
static uint64_t identity_of(int folder)
{
        struct statx of;
        if (statx(folder, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &of) < 0)
                return 0;
        return of.stx_ino * 1000000007 + (uint64_t)of.stx_btime.tv_sec * 1000000000 + of.stx_btime.tv_nsec;
}

/* The language of a layer. */
static const struct package_language *language_of(const struct layer *layer)
{
        return strcmp(layer->meta.key.language, packages_python.name) == 0 ? &packages_python : &packages_node;
}

void named_note(struct layer_query *query, const struct layer *layer, bool cached, uint64_t wait_ms)
{
        uint8_t id[LAYER_ID_BYTES];
        bool python = language_of(layer) == &packages_python;
        struct arena *arena = query->arena;
        layer_id_parse(layer->id, id);
        if (python) {
                query->found.python_high = big_endian(id);
                query->found.python_low = big_endian(id + 8);
        } else {
                query->found.node_high = big_endian(id);
                query->found.node_low = big_endian(id + 8);
        }
        if (!query->uses)
                query->uses = arena_alloc(arena, LAYERS_OF_RUN * sizeof *query->uses);
        query->found.folders = query->found.folders * 31 + identity_of(query->holds[query->uses_n]);
        struct layer_use *use = &query->uses[query->uses_n++];
        SET(use, layer_use, id, arena_text(arena, "%s", layer->id));
        SET(use, layer_use, language, arena_text(arena, "%s", layer->meta.key.language));
        SET(use, layer_use, cached, cached);
        SET(use, layer_use, wait_ms, wait_ms);
        use->packages = arena_alloc(arena, (layer->meta.key.lock_n + 1) * sizeof *use->packages);
        for (size_t i = 0; i < layer->meta.key.lock_n; i++)
                use->packages[i] = arena_text(arena, "%s%s%s", layer->meta.key.lock[i].name, python ? "==" : "@",
                        layer->meta.key.lock[i].version);
        use->packages_n = layer->meta.key.lock_n;
        MARK(use, layer_use, packages);
}

bool named_has(const struct layer_query *query, const struct package_language *language)
{
        return language == &packages_python ? query->found.python_high || query->found.python_low
                                            : query->found.node_high || query->found.node_low;
}

/* A layer of another domain does not exist for this query. */
static bool may_use(const struct layer_query *query, const struct layer *layer)
{
        return !layer->meta.key.domain[0] || strcmp(layer->meta.key.domain, query->owner_key) == 0;
}

/* A layer of the request; *hold is the caller's in each case. */
static int check_named(const struct layer_query *query, const char *id, bool found, const struct layer *layer,
        struct csn_error *err)
{
        if (!found || !may_use(query, layer))
                return err_field(err, "/layers", "there is no layer %.60s; see caisson layers list", id);
        if (packages_fit_image(language_of(layer), query->image, err) < 0)
                return -err->code;
        if (named_has(query, language_of(layer)))
                return err_field(err, "/layers", "a run has one layer of a language; %.60s is the second one", id);
        return 0;
}

int named_use(struct packages *packages, struct layer_query *query, struct csn_error *err)
{
        const struct run_request *request = query->request;
        for (size_t i = 0; i < request->layers_n; i++) {
                struct layer layer;
                uint8_t id[LAYER_ID_BYTES];
                auto_fd hold = -1;
                if (!layer_id_parse(request->layers[i], id))
                        return err_field(err, "/layers", "\"%.60s\" is no id of a layer; see caisson layers list",
                                request->layers[i]);
                int rc = layers_find(packages->layers, request->layers[i], query->arena, &layer, &hold, err);
                rc = rc < 0 ? rc : check_named(query, request->layers[i], rc > 0, &layer, err);
                if (rc < 0)
                        return rc;
                query->holds[query->uses_n] = take_fd(&hold);
                named_note(query, &layer, true, 0);
        }
        return 0;
}

/* ---- layers of an image ---- */

static int no_pin(const struct layer_query *query, const char *id, const char *why, struct csn_error *err)
{
        return err_field(err, "/image",
                "image is \"%s\", to which the setting images.layers pins the layer %.60s, and %s; the administrator has to "
                "build or import the layer, or to change the setting",
                query->image->name, id, why);
}

int named_find_pin(struct packages *packages, const struct package_language *language, struct layer_query *query,
        struct layer *ret, int *ret_hold, struct csn_error *err)
{
        bool found = false;
        for (size_t i = 0; i < query->pinned_n; i++) {
                struct layer layer;
                uint8_t bytes[LAYER_ID_BYTES];
                const char *id = query->pinned[i];
                auto_fd hold = -1;
                if (!layer_id_parse(id, bytes))
                        return no_pin(query, id, "that is no id of a layer", err);
                int rc = layers_find(packages->layers, id, query->arena, &layer, &hold, err);
                if (rc < 0)
                        return rc;
                if (rc == 0)
                        return no_pin(query, id, "there is no such layer", err);
                if (language_of(&layer) != language)
                        continue;
                if (found)
                        return no_pin(query, id, "another layer of the same language", err);
                if (packages_fit_image(language, query->image, err) < 0)
                        return -err->code;
                found = true;
                *ret = layer;
                *ret_hold = take_fd(&hold);
        }
        return found;
}

int named_add_pin(struct package_set *set, const struct layer *pin, struct csn_error *err)
{
        for (size_t i = 0; i < pin->meta.key.lock_n; i++) {
                const struct layer_package *one = &pin->meta.key.lock[i];
                const bool python = strcmp(set->language, packages_python.name) == 0;
                if (!python && strcmp(one->file, one->name) != 0)
                        continue; /* another version for one module alone, or an alias */
                const char *text = arena_text(set->arena, "%s%s%s", one->name, python ? "==" : "@", one->version);
                if (package_set_add(set, text, "/packages", err) < 0)
                        return -err->code;
        }
        return 0;
}
