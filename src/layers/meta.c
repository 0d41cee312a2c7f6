/*
 * meta.json: key and contents of a layer.  The file may come from other daemons and archives, so every type and length
 * is checked, and the id is computed again from the fields.
 */
#include "layers/layers_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define SCHEMA 1
#define TEXT_MAX 4096    /* bytes of a text of meta.json */
#define PARTS_MAX 200000 /* values and names of meta.json: LAYER_PACKAGES_MAX packages and LAYER_MODULES_MAX names */
#define DEPTH_MAX 4

struct reader {
        struct arena *arena;
        char *fault;
};

static bool is_sha256(const char *text)
{
        return strlen(text) == LAYER_HASH_MAX - 1 && strspn(text, "0123456789abcdef") == LAYER_HASH_MAX - 1;
}

/* ---- writing ---- */

static json_t *encode_package(const struct layer_package *package)
{
        return json_pack("{s:s,s:s,s:s,s:s,s:s}", "name", package->name, "version", package->version, "file",
                package->file, is_sha256(package->hash) ? "sha256" : "integrity", package->hash, "upload_time",
                package->upload_time);
}

static json_t *encode_texts(const char *const *texts, size_t n)
{
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json_string(texts[i]));
        return list;
}

static json_t *encode(const struct layer_meta *meta)
{
        const struct layer_key *key = &meta->key;
        char id[LAYER_ID_MAX];
        json_t *lock = json_array();
        layer_id(key, id);
        for (size_t i = 0; i < key->lock_n; i++)
                json_array_append_new(lock, encode_package(&key->lock[i]));
        return json_pack("{s:i,s:s, s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s, s:b,s:I,s:s,s:I,s:I, s:o,s:o,s:o}", "schema",
                SCHEMA, "id", id, "domain", key->domain, "language", key->language, "runtime", key->runtime, "arch",
                key->arch, "libc", key->libc, "image", key->image, "index", key->index, "build", key->build, "pinned",
                meta->pinned, "created_ms", (json_int_t)meta->created_ms, "tree_sha256", meta->tree_sha256, "bytes",
                (json_int_t)meta->bytes, "files", (json_int_t)meta->files, "modules",
                encode_texts(meta->modules, meta->modules_n), "warnings",
                encode_texts(meta->warnings, meta->warnings_n), "lock", lock);
}

json_t *layer_json(const struct layer *layer)
{
        json_t *json =
                layer->fault ? json_pack("{s:s,s:s}", "id", layer->id, "fault", layer->fault) : encode(&layer->meta);
        json_object_set_new(json, "used_ms", json_integer(layer->used_ms));
        return json;
}

char *meta_encode(const struct layer_meta *meta, size_t *ret_len)
{
        json_t *json = encode(meta);
        char *text = json ? json_dumps(json, JSON_INDENT(1)) : NULL;
        json_decref(json);
        *ret_len = text ? strlen(text) : 0;
        if (*ret_len <= LAYER_META_MAX)
                return text;
        free(text);
        return NULL;
}

/* ---- reading ---- */

void clean_text(char *text)
{
        for (char *c = text; *c; c++)
                if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
                        *c = '?';
}

static bool wrong(const struct reader *reader, const char *fmt, ...) PRINTF_LIKE(2, 3);
static bool wrong(const struct reader *reader, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        vsnprintf(reader->fault, LAYER_FAULT_MAX, fmt, args);
        va_end(args);
        clean_text(reader->fault);
        return false;
}

static bool copy_text(const struct reader *reader, const json_t *value, const char *what, const char **ret)
{
        size_t len = json_string_length(value);
        if (!json_is_string(value) || len > TEXT_MAX || memchr(json_string_value(value), 0, len))
                return wrong(reader, META_FILE ": %s is not a text of at most %d bytes", what, TEXT_MAX);
        *ret = arena_copy(reader->arena, json_string_value(value), len);
        return true;
}

static bool take_text(const struct reader *reader, const json_t *json, const char *name, const char **ret)
{
        return copy_text(reader, json_object_get(json, name), name, ret);
}

static bool take_number(const struct reader *reader, const json_t *json, const char *name, uint64_t *ret)
{
        const json_t *value = json_object_get(json, name);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return wrong(reader, META_FILE ": %s is not a number from 0 on", name);
        *ret = (uint64_t)json_integer_value(value);
        return true;
}

static bool take_list(const struct reader *reader, const json_t *json, const char *name, size_t max, const json_t **ret)
{
        *ret = json_object_get(json, name);
        if (!json_is_array(*ret) || json_array_size(*ret) > max)
                return wrong(reader, META_FILE ": %s is not a list of at most %zu", name, max);
        return true;
}

static bool take_texts(const struct reader *reader, const json_t *json, const char *name, size_t max,
        const char *const **ret, size_t *ret_n)
{
        const json_t *list;
        if (!take_list(reader, json, name, max, &list))
                return false;
        size_t n = json_array_size(list);
        const char **texts = arena_alloc(reader->arena, (n + 1) * sizeof *texts);
        for (size_t i = 0; i < n; i++)
                if (!copy_text(reader, json_array_get(list, i), name, &texts[i]))
                        return false;
        *ret = texts;
        *ret_n = n;
        return true;
}

static bool take_package(const struct reader *reader, const json_t *json, struct layer_package *ret)
{
        const char *hash = json_object_get(json, "sha256") ? "sha256" : "integrity";
        return take_text(reader, json, "name", &ret->name) && take_text(reader, json, "version", &ret->version) &&
                take_text(reader, json, "file", &ret->file) && take_text(reader, json, hash, &ret->hash) &&
                take_text(reader, json, "upload_time", &ret->upload_time);
}

static bool take_lock(const struct reader *reader, const json_t *json, struct layer_key *ret)
{
        const json_t *list;
        if (!take_list(reader, json, "lock", LAYER_PACKAGES_MAX, &list))
                return false;
        struct layer_package *packages = arena_alloc(reader->arena, (json_array_size(list) + 1) * sizeof *packages);
        for (size_t i = 0; i < json_array_size(list); i++)
                if (!take_package(reader, json_array_get(list, i), &packages[i]))
                        return false;
        ret->lock = packages;
        ret->lock_n = json_array_size(list);
        return true;
}

static bool take_key(const struct reader *reader, const json_t *json, struct layer_key *ret)
{
        const struct {
                const char *name, **into;
        } texts[] = {
                { "domain", &ret->domain },
                { "language", &ret->language },
                { "runtime", &ret->runtime },
                { "arch", &ret->arch },
                { "libc", &ret->libc },
                { "image", &ret->image },
                { "index", &ret->index },
                { "build", &ret->build },
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (!take_text(reader, json, texts[i].name, texts[i].into))
                        return false;
        return take_lock(reader, json, ret);
}

static bool take_meta(const struct reader *reader, const json_t *json, struct layer_meta *ret,
        char ret_id[static LAYER_ID_MAX])
{
        const char *id = "", *hash = "";
        uint64_t schema = 0, created = 0;
        const json_t *pinned = json_object_get(json, "pinned");
        if (!take_number(reader, json, "schema", &schema))
                return false;
        if (schema != SCHEMA)
                return wrong(reader, META_FILE ": schema is %llu; this program reads %d", (unsigned long long)schema,
                        SCHEMA);
        if (!take_text(reader, json, "id", &id) || !take_key(reader, json, &ret->key) ||
                !take_number(reader, json, "created_ms", &created) || !take_text(reader, json, "tree_sha256", &hash) ||
                !take_number(reader, json, "bytes", &ret->bytes) || !take_number(reader, json, "files", &ret->files) ||
                !take_texts(reader, json, "modules", LAYER_MODULES_MAX, &ret->modules, &ret->modules_n) ||
                !take_texts(reader, json, "warnings", LAYER_WARNINGS_MAX, &ret->warnings, &ret->warnings_n))
                return false;
        if (!json_is_boolean(pinned))
                return wrong(reader, META_FILE ": pinned is not true or false");
        if (!is_sha256(hash))
                return wrong(reader, META_FILE ": tree_sha256 is not a SHA-256");
        ret->pinned = json_is_true(pinned);
        ret->created_ms = (int64_t)created;
        memcpy(ret->tree_sha256, hash, LAYER_HASH_MAX);
        layer_id(&ret->key, ret_id);
        if (strcmp(id, ret_id) != 0)
                return wrong(reader, META_FILE ": id is %.40s, and its fields make %s", id, ret_id);
        return true;
}

bool meta_decode(const char *text, size_t len, struct arena *arena, struct layer_meta *ret,
        char ret_id[static LAYER_ID_MAX], char fault[static LAYER_FAULT_MAX])
{
        const struct reader reader = { .arena = arena, .fault = fault };
        json_error_t where;
        *ret = (struct layer_meta){ 0 };
        if (model_has_many_parts(text, len, PARTS_MAX) || model_is_deeper(text, len, DEPTH_MAX))
                return wrong(&reader, META_FILE " has too many parts");
        json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);
        if (!json)
                return wrong(&reader, META_FILE ":%d: %.200s", where.line, where.text);
        bool good = take_meta(&reader, json, ret, ret_id);
        json_decref(json);
        return good;
}

bool meta_read(int dir_fd, const char *id, struct arena *arena, struct layer_meta *ret,
        char fault[static LAYER_FAULT_MAX])
{
        const struct reader reader = { .arena = arena, .fault = fault };
        char found[LAYER_ID_MAX];
        struct stat st;
        auto_fd fd = openat(dir_fd, META_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return wrong(&reader, META_FILE ": %s", strerrordesc_np(errno));
        if (!S_ISREG(st.st_mode) || st.st_size > (off_t)LAYER_META_MAX)
                return wrong(&reader, META_FILE " is not a file of at most %llu bytes", LAYER_META_MAX);
        char *text = mem_alloc((size_t)st.st_size + 1);
        ssize_t len = pread(fd, text, (size_t)st.st_size, 0);
        bool good = len == st.st_size ? meta_decode(text, (size_t)len, arena, ret, found, fault)
                                      : wrong(&reader, META_FILE " cannot be read");
        free(text);
        if (good && strcmp(found, id) != 0)
                return wrong(&reader, META_FILE " is of the layer %s", found);
        return good;
}
