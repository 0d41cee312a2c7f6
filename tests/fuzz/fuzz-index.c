/*
 * Documents of a hostile package index: the format is the low two bits of the first byte, settings are the higher bits,
 * the rest is the document.
 */
#include "packages/index/document.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
        if (!good)
                abort();
}

static void check_file(const struct document_rules *rules, const struct document_file *file)
{
        char canonical[PACKAGE_NAME_MAX], version[PACKAGE_VERSION_MAX];
        const struct package_file *offered = &file->file;
        must(strcmp(offered->name, rules->name) == 0 && !strchr(offered->filename, '/') && offered->filename[0]);
        must(package_name_canonical(rules->kind, offered->name, strlen(offered->name), canonical));
        must(strncmp(file->url, "http://", 7) == 0 || strncmp(file->url, "https://", 8) == 0);
        must(strncmp(offered->path, "/files/", 7) == 0 && !strstr(offered->path, "/../"));
        for (const char *c = offered->path; *c; c++)
                must(*c > ' ' && *c < 0x7f);
        must(!rules->require_upload_time || offered->upload_time_ms > 0);
        must(!offered->upload_time_ms ||
                (uint64_t)(rules->now_ms - offered->upload_time_ms) >= rules->min_age_ms);
        if (rules->kind == PACKAGE_PYTHON)
                must(strlen(offered->hash) == 64 && (!rules->wheels_only ||
                        (package_wheel_version(offered->filename, rules->name, version) &&
                                strcmp(version, offered->version) == 0)));
        else
                must(strncmp(offered->hash, "sha512-", 7) == 0);
}

/* The answer lists the offered files and no other address. */
static void check_body(const struct document_rules *rules, const struct document *document)
{
        json_t *json = json_loadb(document->body, document->body_len, 0, NULL);
        must(json != NULL);
        must(rules->kind == PACKAGE_PYTHON
                ? json_array_size(json_object_get(json, "files")) == document->files_n
                : json_object_size(json_object_get(json, "versions")) == document->files_n);
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct document document;
        if (len == 0)
                return 0;
        enum document_format format = (enum document_format)((bytes[0] & 3) % 3);
        struct document_rules rules = { .kind = format == DOCUMENT_NPM ? PACKAGE_NODE : PACKAGE_PYTHON, .name = "alpha",
                .page_url = "https://index.example/simple/alpha/", .base_url = PACKAGE_INDEX_BASE,
                .now_ms = 1800000000000, .min_age_ms = bytes[0] & 4 ? 86400000 : 0,
                .require_upload_time = bytes[0] & 8, .wheels_only = !(bytes[0] & 16) };
        char *text = mem_copy((const char *)bytes + 1, len - 1);
        document_make(&rules, format, text, len - 1, &document);
        must(document.problem == PACKAGE_FINE ? document.files_n > 0 : document.files_n == 0 && document.text[0]);
        must(document.counts.offered == document.files_n);
        for (size_t i = 0; i < document.files_n; i++) {
                const char *path = document.files[i].file.path;
                must(document.path_hashes[i] == hash_text(path, strlen(path)));
                check_file(&rules, &document.files[i]);
        }
        if (document.body)
                check_body(&rules, &document);
        for (const char *c = document.text; *c; c++)
                must(*c >= ' ' && *c <= '~');
        must(document.problem == PACKAGE_FINE || package_problem_name(document.problem)[0]);
        document_done(&document);
        free(text);
        return 0;
}
