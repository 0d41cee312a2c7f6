/* The documents served by the index; see document.h. */
#include "packages/index/document.h"

#include <stdio.h>

#define HOUR_MS 3600000

static void add_reason(struct buf *text, uint64_t n, const char *reason)
{
        if (n)
                buf_printf(text, "%s%llu %s", text->len ? ", " : "", (unsigned long long)n, reason);
}

/* Report the hidden files; a problem if all files are hidden. */
static void explain(struct document *document, const struct document_rules *rules)
{
        const struct package_counts *counts = &document->counts;
        const bool python = rules->kind == PACKAGE_PYTHON;
        char age[40];
        struct buf text;
        if (rules->min_age_ms % HOUR_MS == 0)
                snprintf(age, sizeof age, "%lluh", (unsigned long long)rules->min_age_ms / HOUR_MS);
        else
                duration_print(rules->min_age_ms, age, sizeof age);
        buf_init(&text, sizeof document->text - 1);
        add_reason(&text, counts->hidden_by_age, "too new");
        if (counts->hidden_by_age)
                buf_printf(&text, " (the minimum age is %s)", age);
        add_reason(&text, counts->hidden_without_time, "without an upload time");
        add_reason(&text, counts->hidden_by_kind, python && rules->wheels_only ? "not a wheel" : "not usable");
        add_reason(&text, counts->hidden_yanked, "yanked");
        add_reason(&text, counts->hidden_without_hash, "without a hash");
        if (text.len)
                snprintf(document->text, sizeof document->text, "%s hidden: %s",
                        python ? "files" : "versions", text.bytes);
        buf_done(&text);
        if (counts->offered)
                return;
        document->problem = counts->hidden_by_age   ? PACKAGE_TOO_NEW
                : counts->hidden_without_time       ? PACKAGE_NO_UPLOAD_TIME
                : counts->hidden_without_hash       ? PACKAGE_UNTRUSTED
                : counts->hidden_by_kind && python  ? PACKAGE_NO_WHEEL
                                                    : PACKAGE_NOT_FOUND;
        if (!document->text[0])
                snprintf(document->text, sizeof document->text, "the index has no file of this name");
}

static void write_simple(struct document_maker *maker)
{
        struct document *document = maker->document;
        json_t *json = json_pack("{s:{s:s}, s:s, s:O}", "meta", "api-version", "1.0", "name", maker->rules->name,
                "files", maker->files);
        document->body = json ? json_dumps(json, JSON_COMPACT) : NULL;
        json_decref(json);
}

/* A search reads the hashes alone: the descriptions of 20,000 files are four megabytes. */
static void hash_paths(struct document *document)
{
        document->path_hashes = mem_alloc((document->files_n + 1) * sizeof *document->path_hashes);
        for (size_t i = 0; i < document->files_n; i++) {
                const char *path = document->files[i].file.path;
                document->path_hashes[i] = hash_text(path, strlen(path));
        }
}

void document_make(const struct document_rules *rules, enum document_format format, const char *text, size_t len,
        struct document *ret)
{
        struct document_maker maker = { .rules = rules, .document = ret, .seen = json_object(),
                .files = json_array() };
        *ret = (struct document){ 0 };
        if (format == DOCUMENT_NPM)
                npm_document_parse(&maker, text, len);
        else if (format == DOCUMENT_SIMPLE_JSON)
                simple_json_parse(&maker, text, len);
        else if (rules->require_upload_time)
                document_refuse(ret, PACKAGE_NO_UPLOAD_TIME,
                        "the index sends HTML, which has no upload times, and upload times are required");
        else
                simple_html_parse(&maker, text, len);
        if (ret->problem == PACKAGE_FINE) {
                ret->counts.offered = ret->files_n;
                explain(ret, rules);
                if (format != DOCUMENT_NPM)
                        write_simple(&maker);
        } else {
                ret->files_n = 0;
        }
        hash_paths(ret);
        ret->body_len = ret->body ? strlen(ret->body) : 0;
        json_decref(maker.seen);
        json_decref(maker.files);
}

void document_done(struct document *document)
{
        arena_done(&document->arena);
        free(document->files);
        free(document->path_hashes);
        free(document->body);
        *document = (struct document){ 0 };
}
