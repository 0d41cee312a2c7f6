/* The filter for files, and helpers of the parsers; see document.h. */
#include "packages/index/document.h"

#include "model/model.h"

#include <curl/curl.h>
#include <stdio.h>

/* ---- for the parsers ---- */

void document_refuse(struct document *document, enum package_problem problem, const char *text)
{
        document->problem = problem;
        snprintf(document->text, sizeof document->text, "%s", text);
}

json_t *document_load(struct document *document, const char *text, size_t len)
{
        json_t *json = NULL;
        if (model_is_deeper(text, len, DOCUMENT_DEPTH_MAX))
                document_refuse(document, PACKAGE_UNTRUSTED, "the index sent JSON that is nested too deep");
        else if (model_has_many_parts(text, len, DOCUMENT_VALUES_MAX))
                document_refuse(document, PACKAGE_TOO_LARGE, "the index sent JSON with too many values");
        else if (!(json = json_loadb(text, len, 0, NULL)))
                document_refuse(document, PACKAGE_UNTRUSTED, "the index sent JSON that cannot be parsed");
        return json;
}

static bool is_http(CURLU *url)
{
        char *scheme = NULL, *user = NULL;
        bool good = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
                (strcmp(scheme, "https") == 0 || strcmp(scheme, "http") == 0) &&
                curl_url_get(url, CURLUPART_USER, &user, 0) != CURLUE_OK;
        curl_free(scheme);
        curl_free(user);
        return good;
}

const char *document_resolve(struct arena *arena, const char *page_url, const char *reference)
{
        const char *found = NULL;
        char *text = NULL;
        CURLU *url = strlen(reference) < PACKAGE_URL_MAX ? curl_url() : NULL;
        if (url && curl_url_set(url, CURLUPART_URL, page_url, 0) == CURLUE_OK &&
            curl_url_set(url, CURLUPART_URL, reference, 0) == CURLUE_OK &&
            curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK && is_http(url) &&
            curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK && strlen(text) < PACKAGE_URL_MAX)
                found = arena_copy(arena, text, strlen(text));
        curl_free(text);
        curl_url_cleanup(url);
        return found;
}

struct document_file *document_new_file(struct document_maker *maker)
{
        struct document *document = maker->document;
        if (document->files_n == PACKAGE_DOCUMENT_FILES_MAX) {
                document_refuse(document, PACKAGE_TOO_LARGE, "the index lists more files than it may");
                return NULL;
        }
        if (document->files_n == maker->files_size) {
                maker->files_size = maker->files_size ? 2 * maker->files_size : 16;
                document->files = mem_resize(document->files, maker->files_size * sizeof *document->files);
        }
        struct document_file *file = &document->files[document->files_n++];
        memset(file, 0, sizeof *file);
        return file;
}

bool document_is_old(struct document_maker *maker, int64_t upload_time_ms)
{
        const struct document_rules *rules = maker->rules;
        struct package_counts *counts = &maker->document->counts;
        if (upload_time_ms <= 0) {
                counts->hidden_without_time += rules->require_upload_time;
                return !rules->require_upload_time;
        }
        /* A time in the future is younger than any minimum, 0 included. */
        bool old = upload_time_ms <= rules->now_ms &&
                (uint64_t)(rules->now_ms - upload_time_ms) >= rules->min_age_ms;
        counts->hidden_by_age += !old;
        return old;
}

/* ---- files of a simple index ---- */

static bool is_name_of_file(const char *filename)
{
        size_t len = strlen(filename);
        if (len == 0 || len > PACKAGE_FILENAME_MAX || filename[0] == '.')
                return false;
        for (const char *c = filename; *c; c++)
                if (*c <= ' ' || *c >= 0x7f || strchr("/\\%?#\"'<>", *c))
                        return false;
        return true;
}

/* The version of a file of an offered kind.  false: hidden by kind. */
static bool judge_kind(const struct document_maker *maker, const struct simple_file *simple,
        char version[static PACKAGE_VERSION_MAX])
{
        const struct document_rules *rules = maker->rules;
        if (!simple->filename || !simple->url || !is_name_of_file(simple->filename))
                return false;
        return package_wheel_version(simple->filename, rules->name, version) ||
                (!rules->wheels_only && package_archive_version(simple->filename, rules->name, version));
}

static const char *copy_text(struct document_maker *maker, const char *text)
{
        return arena_copy(&maker->document->arena, text ? text : "", text ? strlen(text) : 0);
}

static void list_file(struct document_maker *maker, const struct document_file *file, const char *upload_time)
{
        json_t *item = json_pack("{s:s, s:s, s:{s:s}, s:b}", "filename", file->file.filename, "url", file->file.path,
                "hashes", "sha256", file->file.hash, "yanked", 0);
        if (file->file.requires_python[0])
                json_object_set_new(item, "requires-python", json_string(file->file.requires_python));
        if (file->file.size)
                json_object_set_new(item, "size", json_integer((json_int_t)file->file.size));
        if (upload_time)
                json_object_set_new(item, "upload-time", json_string(upload_time));
        if (file->has_metadata) {
                char digits[2 * sizeof file->metadata_digest + 1];
                hex_print(file->metadata_digest, sizeof file->metadata_digest, digits);
                /* pip 23.0 of Debian 12 knows the older name "dist-info-metadata" alone, and fails on its value. */
                json_object_set_new(item, "core-metadata", json_pack("{s:s}", "sha256", digits));
        }
        json_array_append_new(maker->files, item);
}

static void set_path(struct document_maker *maker, struct document_file *file, size_t digest_len)
{
        char digits[2 * PACKAGE_DIGEST_MAX + 1];
        hex_print(file->digest, digest_len, digits);
        file->file.path = arena_text(&maker->document->arena, "/files/%s/%s/%s", digits, file->file.name,
                file->file.filename);
}

bool document_add_simple(struct document_maker *maker, const struct simple_file *simple)
{
        struct package_counts *counts = &maker->document->counts;
        char version[PACKAGE_VERSION_MAX], digits[2 * 32 + 1];
        struct document_file found = { 0 }, *file;
        int64_t time_ms = 0;
        if (!judge_kind(maker, simple, version) || json_object_get(maker->seen, simple->filename)) {
                counts->hidden_by_kind++;
                return true;
        }
        json_object_set_new(maker->seen, simple->filename, json_true());
        bool has_time = simple->upload_time && package_time_parse(simple->upload_time, &time_ms);
        if (simple->is_yanked)
                counts->hidden_yanked++;
        else if (!simple->sha256 || !package_hex_parse(simple->sha256, found.digest, 32))
                counts->hidden_without_hash++;
        else if (document_is_old(maker, time_ms)) {
                if (!(file = document_new_file(maker)))
                        return false;
                *file = found;
                hex_print(file->digest, 32, digits);
                file->url = simple->url;
                file->has_metadata = simple->metadata_sha256 &&
                        package_hex_parse(simple->metadata_sha256, file->metadata_digest, 32);
                file->file = (struct package_file){ .name = copy_text(maker, maker->rules->name),
                        .version = copy_text(maker, version), .filename = copy_text(maker, simple->filename),
                        .hash = copy_text(maker, digits), .upload_time_ms = time_ms, .size = simple->size,
                        .requires_python = copy_text(maker, simple->requires_python) };
                set_path(maker, file, 32);
                list_file(maker, file, has_time ? simple->upload_time : NULL);
        }
        return true;
}
