/*
 * The documents of an index, without input and output: the upstream's, the filter, and the answers for resolvers.
 *
 * document_make() may run in a helper thread: the functions of this header use their arguments alone.
 */
#ifndef PACKAGES_INDEX_DOCUMENT_H
#define PACKAGES_INDEX_DOCUMENT_H

#include "packages/index/index.h"

#include <jansson.h>

#define PACKAGE_NAME_MAX 215               /* npm's 214 and a NUL; PyPI has shorter names */
#define PACKAGE_VERSION_MAX 129
#define PACKAGE_DIGEST_MAX 64              /* SHA-512 */
#define PACKAGE_FILENAME_MAX 255
#define PACKAGE_URL_MAX 4096
#define WHEEL_PARTS_MAX 6                  /* name, version, build number (optional), three tags: PEP 427 */
#define DOCUMENT_DEPTH_MAX 64              /* levels of JSON */
#define DOCUMENT_VALUES_MAX 4000000        /* values and names of JSON, which take about fifty bytes each */

/* ---- names.c ---- */

/* A valid name in the form for comparisons (Python: PEP 503).  false: no name. */
bool package_name_canonical(enum package_kind kind, const char *text, size_t len, char ret[static PACKAGE_NAME_MAX]);
/* Whether a list of struct package_index_settings contains a canonical name. */
bool package_is_listed(enum package_kind kind, char *const *list, size_t n, const char *name);
/* The version in the name of a wheel of this project (PEP 427).  false: no such wheel. */
bool package_wheel_version(const char *filename, const char *name, char ret[static PACKAGE_VERSION_MAX]);
/* The same for a source archive (.tar.gz, .zip). */
bool package_archive_version(const char *filename, const char *name, char ret[static PACKAGE_VERSION_MAX]);

/* A version of npm; `pre` points into the parsed text. */
struct package_semver {
        uint64_t numbers[3];
        const char *pre;                   /* "beta.1"; "": none */
        size_t pre_len;
};

bool package_semver_parse(const char *text, struct package_semver *ret);
/* The precedence of semver.org: negative, 0 or positive. */
int package_semver_compare(const struct package_semver *a, const struct package_semver *b);

/* RFC 3339 in UTC, with up to nine digits of a fraction: milliseconds since 1970.  false: no time after 1970. */
bool package_time_parse(const char *text, int64_t *ret_ms);
/* Exactly 2 * len digits. */
bool package_hex_parse(const char *text, uint8_t *digest, size_t len);

/* ---- documents ---- */

enum document_format { DOCUMENT_SIMPLE_JSON, DOCUMENT_SIMPLE_HTML, DOCUMENT_NPM };

/* Input of document_make(); the texts are the caller's. */
struct document_rules {
        enum package_kind kind;
        const char *name;                  /* canonical */
        const char *page_url;              /* of the document, after redirects; the base of relative addresses */
        const char *base_url;              /* of this index */
        int64_t now_ms;                    /* since 1970 */
        uint64_t min_age_ms;
        bool require_upload_time;
        bool wheels_only;
};

/* An offered file. */
struct document_file {
        struct package_file file;
        const char *url;                   /* at the upstream */
        uint8_t digest[PACKAGE_DIGEST_MAX];
        bool has_metadata;                 /* Python: the upstream has the wheel's metadata, with this SHA-256 */
        uint8_t metadata_digest[32];
};

struct document {
        struct arena arena;                /* of all texts of `files` */
        struct document_file *files;
        uint64_t *path_hashes;             /* hash_text() of file.path of each of `files` */
        size_t files_n;
        struct package_counts counts;
        enum package_problem problem;      /* why nothing is offered */
        char text[PACKAGE_TEXT_MAX];
        char *body;                        /* JSON for the resolver; free() */
        size_t body_len;
};

/* Fill *ret, which the caller frees with document_done() in any case. */
void document_make(const struct document_rules *rules, enum document_format format, const char *text, size_t len,
        struct document *ret);
void document_done(struct document *document);

/* ---- for the parsers of single formats ---- */

/* A document in the making. */
struct document_maker {
        const struct document_rules *rules;
        struct document *document;
        size_t files_size;
        json_t *seen;                      /* names of files: of two files with the same name the second is hidden */
        json_t *files;                     /* Python: the list of the answer */
};

/* The description of a file by a simple index; NULL: absent. */
struct simple_file {
        const char *filename;
        const char *url;                   /* absolute */
        const char *sha256;
        const char *metadata_sha256;
        const char *requires_python;
        const char *upload_time;
        uint64_t size;                     /* 0: unknown */
        bool is_yanked;
};

/* Judge a file, and add an offered file to the document.  false: the document has too many files. */
bool document_add_simple(struct document_maker *maker, const struct simple_file *simple);
/* Whether a file of this age may be offered; else the file is counted as hidden.  upload_time_ms 0: unknown. */
bool document_is_old(struct document_maker *maker, int64_t upload_time_ms);
/* A new element of document->files, which is zeroed.  NULL: too many. */
struct document_file *document_new_file(struct document_maker *maker);
/* Set problem and text of an unusable document. */
void document_refuse(struct document *document, enum package_problem problem, const char *text);
/* The URL that `reference` means in a page; in the arena.  NULL: no http or https URL, or a URL with a user. */
const char *document_resolve(struct arena *arena, const char *page_url, const char *reference);
/* JSON within the ceilings of this header.  NULL: refused, with the reason in the document.  The caller's. */
json_t *document_load(struct document *document, const char *text, size_t len);

/* Parsers: each adds files, or refuses the document. */
void simple_json_parse(struct document_maker *maker, const char *text, size_t len);
void simple_html_parse(struct document_maker *maker, const char *text, size_t len);
/* Sets the body, too. */
void npm_document_parse(struct document_maker *maker, const char *text, size_t len);

#endif
