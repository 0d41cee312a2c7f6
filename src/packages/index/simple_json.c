/* The JSON of a simple index (PEP 691, with the upload times of PEP 700); see document.h. */
#include "packages/index/document.h"

/* A list entry that is no object, or lacks a text, gets NULL and is hidden later. */
static const char *text_of(json_t *object, const char *name)
{
        return json_string_value(json_object_get(object, name));
}

/* PEP 691: false, true, or the reason as a text. */
static bool is_yanked(json_t *file)
{
        json_t *yanked = json_object_get(file, "yanked");
        return yanked && !json_is_false(yanked) && !json_is_null(yanked);
}

/* PEP 714: the newer name wins. */
static const char *metadata_hash(json_t *file)
{
        static const char *const names[] = { "core-metadata", "dist-info-metadata", "data-dist-info-metadata" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++) {
                json_t *value = json_object_get(file, names[i]);
                if (value)
                        return text_of(value, "sha256");
        }
        return NULL;
}

static bool add_file(struct document_maker *maker, json_t *file)
{
        json_int_t size = json_integer_value(json_object_get(file, "size"));
        const char *reference = text_of(file, "url");
        struct simple_file simple = {
                .filename = text_of(file, "filename"),
                .url = reference ? document_resolve(&maker->document->arena, maker->rules->page_url, reference) : NULL,
                .sha256 = text_of(json_object_get(file, "hashes"), "sha256"),
                .metadata_sha256 = metadata_hash(file),
                .requires_python = text_of(file, "requires-python"),
                .upload_time = text_of(file, "upload-time"),
                .size = size > 0 ? (uint64_t)size : 0,
                .is_yanked = is_yanked(file),
        };
        return document_add_simple(maker, &simple);
}

void simple_json_parse(struct document_maker *maker, const char *text, size_t len)
{
        json_t *json = document_load(maker->document, text, len), *file;
        size_t i;
        if (!json)
                return;
        const char *version = text_of(json_object_get(json, "meta"), "api-version");
        const char *name = text_of(json, "name");
        char canonical[PACKAGE_NAME_MAX] = "";
        json_t *files = json_object_get(json, "files");
        if (!version || strncmp(version, "1.", 2) != 0 || !json_is_array(files))
                document_refuse(maker->document, PACKAGE_UNTRUSTED,
                        "the index sent JSON that is no list of files of PEP 691, version 1");
        else if (name && (!package_name_canonical(PACKAGE_PYTHON, name, strlen(name), canonical) ||
                                 strcmp(canonical, maker->rules->name) != 0))
                document_refuse(maker->document, PACKAGE_UNTRUSTED, "the index sent the files of another name");
        else
                json_array_foreach(files, i, file) {
                        if (!add_file(maker, file))
                                break;
                }
        json_decref(json);
}
