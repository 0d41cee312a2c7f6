/*
 * The document of a package of an npm registry; see document.h.
 *
 * Only the full document has upload times, in the map "time", so the full document is read.  The answer has the members
 * of npm's abbreviated document, enough for a resolver.
 */
#include "packages/index/document.h"

#include "model/model.h"

#include <stdio.h>

/* Members of a version copied to the answer. */
static const char *const kept[] = {
        "name", "version", "deprecated", "dependencies", "optionalDependencies", "devDependencies",
        "bundleDependencies", "bundledDependencies", "peerDependencies", "peerDependenciesMeta", "bin", "directories",
        "engines", "os", "cpu", "libc", "funding", "_hasShrinkwrap",
};

static const char *text_of(json_t *object, const char *name)
{
        return json_string_value(json_object_get(object, name));
}

/* Does npm run a script of this version on installation? */
static bool has_install_script(json_t *version)
{
        static const char *const names[] = { "preinstall", "install", "postinstall" };
        json_t *scripts = json_object_get(version, "scripts");
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (json_object_get(scripts, names[i]))
                        return true;
        return json_is_true(json_object_get(version, "hasInstallScript")) ||
                json_is_true(json_object_get(version, "gypfile"));
}

/* The SHA-512 of an integrity, which may have several hashes.  false: none. */
static bool read_integrity(struct arena *arena, const char *text, uint8_t digest[static PACKAGE_DIGEST_MAX])
{
        static const char prefix[] = "sha512-";
        for (; text && *text; text += strspn(text, " ")) {
                size_t len = strcspn(text, " ");
                struct bytes bytes;
                if (len > sizeof prefix && strncmp(text, prefix, sizeof prefix - 1) == 0 &&
                    model_unbase64(arena, text + sizeof prefix - 1, len - (sizeof prefix - 1), &bytes) &&
                    bytes.len == PACKAGE_DIGEST_MAX) {
                        memcpy(digest, bytes.bytes, PACKAGE_DIGEST_MAX);
                        return true;
                }
                text += len;
        }
        return false;
}

static json_t *answer_of(const struct document_maker *maker, const struct document_file *file, json_t *version)
{
        char url[PACKAGE_URL_MAX];
        json_t *answer = json_object();
        for (size_t i = 0; i < ARRAY_LEN(kept); i++)
                json_object_set(answer, kept[i], json_object_get(version, kept[i]));
        if (file->file.has_install_script)
                json_object_set_new(answer, "hasInstallScript", json_true());
        snprintf(url, sizeof url, "%s%s", maker->rules->base_url, file->file.path);
        json_object_set_new(answer, "dist", json_pack("{s:s, s:s}", "tarball", url, "integrity", file->file.hash));
        return answer;
}

/* "left-pad-1.3.0.tgz" of left-pad and of @scope/left-pad: the path at this index has the whole name before. */
static void fill(struct document_maker *maker, struct document_file *file, const char *number, json_t *version,
        int64_t time_ms)
{
        struct arena *arena = &maker->document->arena;
        const char *name = maker->rules->name, *slash = strchr(name, '/');
        char digits[2 * PACKAGE_DIGEST_MAX + 1];
        json_int_t size = json_integer_value(json_object_get(json_object_get(version, "dist"), "size"));
        hex_print(file->digest, PACKAGE_DIGEST_MAX, digits);
        file->file.name = arena_copy(arena, name, strlen(name));
        file->file.version = arena_copy(arena, number, strlen(number));
        file->file.filename = arena_text(arena, "%s-%s.tgz", slash ? slash + 1 : name, number);
        file->file.path = arena_text(arena, "/files/%s/%s/%s", digits, name, file->file.filename);
        file->file.hash = arena_text(arena, "sha512-%s",
                model_base64(arena, (const char *)file->digest, PACKAGE_DIGEST_MAX));
        file->file.upload_time_ms = time_ms;
        file->file.size = size > 0 ? (uint64_t)size : 0;
        file->file.requires_python = "";
        file->file.has_install_script = has_install_script(version);
}

/* false: the document has too many versions. */
static bool add_version(struct document_maker *maker, const char *number, json_t *version, json_t *times,
        json_t *versions)
{
        struct package_counts *counts = &maker->document->counts;
        struct arena *arena = &maker->document->arena;
        const char *own_number = text_of(version, "version"), *own_name = text_of(version, "name");
        json_t *dist = json_object_get(version, "dist");
        const char *time = text_of(times, number), *tarball = text_of(dist, "tarball");
        const char *url = tarball ? document_resolve(arena, maker->rules->page_url, tarball) : NULL;
        struct package_semver parsed;
        struct document_file found = { .url = url }, *file;
        int64_t time_ms = 0;
        if (!url || !own_number || strcmp(own_number, number) != 0 || !own_name ||
            strcmp(own_name, maker->rules->name) != 0 || !package_semver_parse(number, &parsed)) {
                counts->hidden_by_kind++;
                return true;
        }
        if (!read_integrity(arena, text_of(dist, "integrity"), found.digest)) {
                counts->hidden_without_hash++;
                return true;
        }
        if (!time || !package_time_parse(time, &time_ms))
                time_ms = 0;
        if (!document_is_old(maker, time_ms))
                return true;
        if (!(file = document_new_file(maker)))
                return false;
        *file = found;
        fill(maker, file, number, version, time_ms);
        json_object_set_new(versions, number, answer_of(maker, file, version));
        return true;
}

/* ---- tags ---- */

/* Whether `a` is the better version for "latest", which the upstream has at `limit`. */
static bool is_better(const struct package_semver *a, const struct package_semver *b,
        const struct package_semver *limit)
{
        bool a_above = package_semver_compare(a, limit) > 0, b_above = package_semver_compare(b, limit) > 0;
        if (a_above != b_above)
                return b_above;
        if ((a->pre_len > 0) != (b->pre_len > 0))
                return b->pre_len > 0;
        return package_semver_compare(a, b) > 0;
}

/*
 * The version for "latest" if the upstream's is hidden: the highest that is not above the upstream's and no
 * pre-release; else the highest.
 */
static const char *find_latest(const struct document *document, const char *upstream)
{
        struct package_semver limit = { .numbers = { UINT64_MAX } }, best, parsed;
        const char *found = NULL;
        if (upstream && !package_semver_parse(upstream, &limit))
                limit = (struct package_semver){ .numbers = { UINT64_MAX } };
        for (size_t i = 0; i < document->files_n; i++) {
                const char *version = document->files[i].file.version;
                if (package_semver_parse(version, &parsed) && (!found || is_better(&parsed, &best, &limit))) {
                        found = version;
                        best = parsed;
                }
        }
        return found;
}

/* The upstream's tags of offered versions. */
static json_t *tags_of(const struct document_maker *maker, json_t *tags, json_t *versions)
{
        json_t *kept_tags = json_object(), *value;
        const char *name;
        json_object_foreach(tags, name, value) {
                if (json_is_string(value) && json_object_get(versions, json_string_value(value)))
                        json_object_set(kept_tags, name, value);
        }
        if (!json_object_get(kept_tags, "latest") && maker->document->files_n)
                json_object_set_new(kept_tags, "latest",
                        json_string(find_latest(maker->document, text_of(tags, "latest"))));
        return kept_tags;
}

void npm_document_parse(struct document_maker *maker, const char *text, size_t len)
{
        struct document *document = maker->document;
        json_t *json = document_load(document, text, len), *version;
        const char *number;
        if (!json)
                return;
        const char *name = text_of(json, "name");
        json_t *versions = json_object(), *all = json_object_get(json, "versions");
        if (!name || strcmp(name, maker->rules->name) != 0)
                document_refuse(document, PACKAGE_UNTRUSTED, "the registry sent the document of another name");
        else if (!json_is_object(all))
                document_refuse(document, PACKAGE_NOT_FOUND, "the registry has no version of this name");
        else
                json_object_foreach(all, number, version) {
                        if (!add_version(maker, number, version, json_object_get(json, "time"), versions))
                                break;
                }
        if (document->problem == PACKAGE_FINE) {
                json_t *tags = tags_of(maker, json_object_get(json, "dist-tags"), versions);
                json_t *answer = json_pack("{s:s, s:o, s:O}", "name", name, "dist-tags", tags, "versions", versions);
                document->body = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
                json_decref(answer);
        }
        json_decref(versions);
        json_decref(json);
}
