/* image.json: the facts about an image. */
#include "images/images_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

const char *image_language_name(enum image_language language)
{
        static const char *const names[IMAGE_LANGUAGES] = {
                [IMAGE_PYTHON] = "python", [IMAGE_NODE] = "node", [IMAGE_BASH] = "bash"
        };
        return names[language];
}

static json_t *texts(const char *const *list, size_t n)
{
        json_t *json = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(json, json_string(list[i]));
        return json;
}

static json_t *modules_json(const struct stored_image *image)
{
        json_t *json = json_object();
        for (int i = 0; i < IMAGE_LANGUAGES; i++)
                if (i != IMAGE_BASH)
                        json_object_set_new(json, image_language_name((enum image_language)i),
                                texts(image->modules[i], image->modules_n[i]));
        return json;
}

json_t *image_json(const struct stored_image *image)
{
        if (image->fault)
                return json_pack("{s:s, s:s}", "name", image->name, "fault", image->fault);
        char created[40];
        json_t *interpreters = json_object();
        for (int i = 0; i < IMAGE_LANGUAGES; i++)
                if (image->interpreters[i].path[0])
                        json_object_set_new(interpreters, image_language_name((enum image_language)i),
                                json_pack("{s:s, s:s}", "path", image->interpreters[i].path, "version",
                                        image->interpreters[i].version));
        time_print(image->created_ms, created, sizeof created);
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:o, s:o, s:o}", "name", image->name,
                "id", image->id, "kind", image->kind, "digest", image->digest, "created_at", created, "size_bytes",
                (json_int_t)image->bytes, "files", (json_int_t)image->files, "dropped", (json_int_t)image->dropped,
                "glibc", (int)image->has_glibc, "interpreters", interpreters, "libraries",
                texts(image->libraries, image->libraries_n), "expected", texts(image->expected, image->expected_n));
        if (image->lists_modules) {
                json_object_set_new(json, "modules", modules_json(image));
                json_object_set_new(json, "hides_node_packages", json_boolean(image->hides_node_packages));
        }
        return json;
}

int image_write_manifest(int dir_fd, const struct stored_image *image, struct csn_error *err)
{
        json_t *json = image_json(image);
        json_object_set_new(json, "created_ms", json_integer(image->created_ms));
        char *text = json_dumps(json, JSON_INDENT(1));
        json_decref(json);
        if (!text || strlen(text) > IMAGE_MANIFEST_MAX) {
                free(text);
                return err_field(err, "archive",
                        IMAGE_MANIFEST " would have more than %llu bytes, or has a text that is not UTF-8",
                        (unsigned long long)IMAGE_MANIFEST_MAX);
        }
        auto_fd fd = openat(dir_fd, IMAGE_MANIFEST, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        int rc = fd < 0 || io_write_all(fd, text, strlen(text)) < 0 || fchmod(fd, 0644) < 0
                ? err_storage(err, errno, "write " IMAGE_MANIFEST)
                : 0;
        free(text);
        return rc;
}

/* ---- reading ---- */

static const char *text_of(json_t *json, const char *key, struct arena *arena)
{
        const char *text = json_string_value(json_object_get(json, key));
        return text ? arena_text(arena, "%s", text) : "";
}

static uint64_t number_of(json_t *json, const char *key)
{
        json_int_t number = json_integer_value(json_object_get(json, key));
        return number > 0 ? (uint64_t)number : 0;
}

static const char *const *list_of(json_t *json, const char *key, struct arena *arena, size_t *ret_n)
{
        json_t *list = json_object_get(json, key);
        const char **all = arena_alloc(arena, (json_array_size(list) + 1) * sizeof *all);
        *ret_n = 0;
        for (size_t i = 0; i < json_array_size(list); i++)
                if (json_is_string(json_array_get(list, i)))
                        all[(*ret_n)++] = arena_text(arena, "%s", json_string_value(json_array_get(list, i)));
        return all;
}

static void read_facts(json_t *json, struct arena *arena, struct stored_image *ret)
{
        ret->kind = text_of(json, "kind", arena);
        ret->digest = text_of(json, "digest", arena);
        ret->created_ms = (int64_t)number_of(json, "created_ms");
        ret->bytes = number_of(json, "size_bytes");
        ret->files = number_of(json, "files");
        ret->dropped = number_of(json, "dropped");
        ret->has_glibc = json_is_true(json_object_get(json, "glibc"));
        ret->libraries = list_of(json, "libraries", arena, &ret->libraries_n);
        ret->expected = list_of(json, "expected", arena, &ret->expected_n);
        json_t *modules = json_object_get(json, "modules");
        ret->lists_modules = json_is_object(modules);
        ret->hides_node_packages = json_is_true(json_object_get(json, "hides_node_packages"));
        for (int i = 0; i < IMAGE_LANGUAGES; i++) {
                json_t *found = json_object_get(json_object_get(json, "interpreters"),
                        image_language_name((enum image_language)i));
                ret->interpreters[i] =
                        (struct stored_interpreter){ text_of(found, "path", arena), text_of(found, "version", arena) };
                ret->modules[i] = list_of(modules, image_language_name((enum image_language)i), arena,
                        &ret->modules_n[i]);
        }
}

static uint64_t half_of(const char *digits)
{
        char half[IMAGE_ID_LEN / 2 + 1];
        snprintf(half, sizeof half, "%.*s", IMAGE_ID_LEN / 2, digits);
        return strtoull(half, NULL, 16);
}

int image_read_manifest(int dir_fd, const char *name, const char *id, struct arena *arena, struct stored_image *ret,
        struct csn_error *err)
{
        json_error_t why;
        char *text = mem_alloc(IMAGE_MANIFEST_MAX + 1);
        ssize_t len = io_read_file(dir_fd, IMAGE_MANIFEST, text, IMAGE_MANIFEST_MAX);
        int sys = len < 0 ? errno : 0;
        json_t *json = len < 0 ? NULL : json_loadb(text, (size_t)len, 0, &why);
        free(text);
        if (!json_is_object(json)) {
                json_decref(json);
                return err_set(err, CSN_E_SYSTEM, sys,
                        "the image %s is damaged: " IMAGE_MANIFEST " cannot be read; import the image again", name);
        }
        *ret = (struct stored_image){ .name = arena_text(arena, "%s", name) };
        memcpy(ret->id, id, sizeof ret->id);
        ret->high = half_of(id);
        ret->low = half_of(id + IMAGE_ID_LEN / 2);
        read_facts(json, arena, ret);
        json_decref(json);
        return 0;
}
