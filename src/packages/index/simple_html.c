/*
 * The HTML of a simple index (PEP 503, with the attributes of PEP 592, 658 and 714); see document.h.
 *
 * The parser knows tags, attributes, character references and comments.  Of all elements it uses <base href> and
 * <a href>.  A page that ends within a tag or a comment is refused: the rest may be missing.
 */
#include "packages/index/document.h"

#include <ctype.h>

#define ATTRIBUTE_MAX PACKAGE_URL_MAX      /* bytes of a value */

/* The attributes used. */
enum attribute { HREF, YANKED, REQUIRES_PYTHON, CORE_METADATA, DIST_INFO_METADATA, ATTRIBUTES_N };

static const char *const attribute_names[ATTRIBUTES_N] = {
        [HREF] = "href",
        [YANKED] = "data-yanked",
        [REQUIRES_PYTHON] = "data-requires-python",
        [CORE_METADATA] = "data-core-metadata",
        [DIST_INFO_METADATA] = "data-dist-info-metadata",
};

struct tag {
        bool is_anchor, is_base;
        bool has[ATTRIBUTES_N];
        struct buf values[ATTRIBUTES_N];
};

/* ---- character references ---- */

static void add_character(struct buf *text, unsigned long c)
{
        char bytes[4];
        size_t n = 0;
        if (c < 0x80) {
                bytes[n++] = (char)c;
        } else if (c < 0x800) {
                bytes[n++] = (char)(0xc0 | c >> 6);
                bytes[n++] = (char)(0x80 | (c & 63));
        } else if (c < 0x10000) {
                bytes[n++] = (char)(0xe0 | c >> 12);
                bytes[n++] = (char)(0x80 | (c >> 6 & 63));
                bytes[n++] = (char)(0x80 | (c & 63));
        } else {
                bytes[n++] = (char)(0xf0 | c >> 18);
                bytes[n++] = (char)(0x80 | (c >> 12 & 63));
                bytes[n++] = (char)(0x80 | (c >> 6 & 63));
                bytes[n++] = (char)(0x80 | (c & 63));
        }
        buf_add(text, bytes, n);
}

/* &#62; or &#x3e;: the length of the reference, 0 for none. */
static size_t take_number(const char *at, const char *end, struct buf *text)
{
        const bool hex = end - at > 3 && (at[2] | 0x20) == 'x';
        const char *digit = at + (hex ? 3 : 2);
        unsigned long c = 0;
        for (; digit < end && c <= 0x10ffff && (hex ? isxdigit((unsigned char)*digit) : isdigit((unsigned char)*digit));
             digit++)
                c = c * (hex ? 16 : 10) + (unsigned long)(*digit <= '9' ? *digit - '0' : (*digit | 0x20) - 'a' + 10);
        if (digit >= end || *digit != ';' || c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
                return 0;
        add_character(text, c);
        return (size_t)(digit + 1 - at);
}

static size_t take_reference(const char *at, const char *end, struct buf *text)
{
        static const struct { const char *name, *text; } rows[] = {
                { "&amp;", "&" }, { "&lt;", "<" }, { "&gt;", ">" }, { "&quot;", "\"" }, { "&apos;", "'" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                size_t len = strlen(rows[i].name);
                if ((size_t)(end - at) >= len && memcmp(at, rows[i].name, len) == 0) {
                        buf_add(text, rows[i].text, 1);
                        return len;
                }
        }
        return end - at > 2 && at[1] == '#' ? take_number(at, end, text) : 0;
}

static void add_value(struct buf *value, const char *at, const char *end)
{
        while (at < end) {
                size_t n = *at == '&' ? take_reference(at, end, value) : 0;
                if (n == 0) {
                        buf_add(value, at, 1);
                        n = 1;
                }
                at += n;
        }
}

/* ---- tags ---- */

static const char *skip_space(const char *at, const char *end)
{
        while (at < end && isspace((unsigned char)*at))
                at++;
        return at;
}

static bool is_word(const char *at, size_t len, const char *word)
{
        return len == strlen(word) && strncasecmp(at, word, len) == 0;
}

static const char *word_end(const char *at, const char *end, const char *stops)
{
        while (at < end && !isspace((unsigned char)*at) && (!*at || !strchr(stops, *at)))
                at++;
        return at;
}

/* A value behind "=": *ret_begin to *ret_end.  Returns the end of the attribute, NULL for an open quote. */
static const char *find_value(const char *at, const char *end, const char **ret_begin, const char **ret_end)
{
        at = skip_space(at + 1, end);
        if (at < end && (*at == '"' || *at == '\'')) {
                *ret_begin = at + 1;
                *ret_end = memchr(at + 1, *at, (size_t)(end - at - 1));
                return *ret_end ? *ret_end + 1 : NULL;
        }
        *ret_begin = at;
        *ret_end = word_end(at, end, ">");
        return *ret_end;
}

/* Parse one attribute; the first of several with the same name counts.  NULL: the page ends within the attribute. */
static const char *take_attribute(struct tag *tag, const char *at, const char *end)
{
        const char *name = at, *name_end = word_end(at, end, "=/>"), *begin = "", *value_end = begin;
        at = skip_space(name_end, end);
        if (at < end && *at == '=') {
                at = find_value(at, end, &begin, &value_end);
                if (!at)
                        return NULL;
        }
        for (size_t i = 0; i < ATTRIBUTES_N; i++)
                if (!tag->has[i] && is_word(name, (size_t)(name_end - name), attribute_names[i])) {
                        tag->has[i] = true;
                        add_value(&tag->values[i], begin, value_end);
                }
        return at == name ? at + 1 : at;   /* a stray "=" or "/" */
}

static void tag_reset(struct tag *tag)
{
        for (size_t i = 0; i < ATTRIBUTES_N; i++) {
                tag->has[i] = false;
                tag->values[i].len = 0;
        }
}

/* Parse the tag with its "<" at `at`.  Returns the byte behind the tag, NULL if the page ends within the tag. */
static const char *take_tag(struct tag *tag, const char *at, const char *end)
{
        const char *name = at + 1, *name_end = word_end(name, end, "/>");
        tag->is_anchor = is_word(name, (size_t)(name_end - name), "a");
        tag->is_base = is_word(name, (size_t)(name_end - name), "base");
        tag_reset(tag);
        for (at = skip_space(name_end, end); at && at < end && *at != '>'; at = skip_space(at, end)) {
                at = *at == '/' ? at + 1 : take_attribute(tag, at, end);
                if (!at)
                        return NULL;
        }
        return at < end ? at + 1 : NULL;
}

static const char *value_of(struct tag *tag, enum attribute attribute)
{
        struct buf *value = &tag->values[attribute];
        if (!tag->has[attribute] || value->len >= ATTRIBUTE_MAX || (value->len && memchr(value->bytes, 0, value->len)))
                return NULL;
        return value->len ? value->bytes : "";
}

/* ---- anchors ---- */

static const char *sha256_of(const char *text)
{
        return text && strncmp(text, "sha256=", 7) == 0 ? text + 7 : NULL;
}

/* The digits behind "#sha256=", up to the next parameter. */
static const char *fragment_hash(struct arena *arena, const char *reference)
{
        const char *fragment = strchr(reference, '#');
        const char *digits = fragment ? sha256_of(fragment + 1) : NULL;
        return digits ? arena_copy(arena, digits, strcspn(digits, "&")) : NULL;
}

/* The last segment of the path: pip takes the name of the file from there, too. */
static const char *filename_of(struct arena *arena, const char *url)
{
        size_t len = strcspn(url, "?#");
        size_t begin = len;
        while (begin > 0 && url[begin - 1] != '/')
                begin--;
        char *name = arena_alloc(arena, len - begin + 1);
        size_t n = 0;
        for (size_t i = begin; i < len; i++) {
                uint8_t byte;
                char digits[3] = { 0 };
                if (url[i] == '%' && len - i > 2)
                        memcpy(digits, url + i + 1, 2);
                bool coded = digits[0] && package_hex_parse(digits, &byte, 1);
                name[n++] = coded ? (char)byte : url[i];
                i += coded ? 2 : 0;
        }
        name[n] = 0;
        return name;
}

static bool add_anchor(struct document_maker *maker, struct tag *tag, const char *page_url)
{
        struct arena *arena = &maker->document->arena;
        const char *reference = value_of(tag, HREF);
        const char *url = reference ? document_resolve(arena, page_url, reference) : NULL;
        const char *metadata = value_of(tag, tag->has[CORE_METADATA] ? CORE_METADATA : DIST_INFO_METADATA);
        struct simple_file simple = {
                .filename = url ? filename_of(arena, url) : NULL,
                .url = url,
                .sha256 = url ? fragment_hash(arena, reference) : NULL,
                .metadata_sha256 = sha256_of(metadata),
                .requires_python = value_of(tag, REQUIRES_PYTHON),
                .is_yanked = tag->has[YANKED],
        };
        return document_add_simple(maker, &simple);
}

/* ---- the page ---- */

/* "<!--...-->" and "<!DOCTYPE ...>".  NULL: the page ends before. */
static const char *skip_declaration(const char *at, const char *end)
{
        const bool comment = end - at >= 4 && memcmp(at, "<!--", 4) == 0;
        const char *close = comment ? memmem(at + 4, (size_t)(end - at - 4), "-->", 3)
                                    : memchr(at, '>', (size_t)(end - at));
        return close ? close + (comment ? 3 : 1) : NULL;
}

static bool parse_page(struct document_maker *maker, struct tag *tag, const char *at, const char *end)
{
        const char *page_url = maker->rules->page_url;
        bool has_base = false;
        while ((at = memchr(at, '<', (size_t)(end - at)))) {
                if (end - at > 1 && (at[1] == '!' || at[1] == '?')) {
                        tag->is_anchor = tag->is_base = false;
                        at = skip_declaration(at, end);
                } else {
                        at = take_tag(tag, at, end);
                }
                if (!at)
                        return false;
                if (tag->is_base && !has_base && value_of(tag, HREF)) {
                        const char *base = document_resolve(&maker->document->arena, page_url, value_of(tag, HREF));
                        page_url = base ? base : page_url;
                        has_base = true;
                }
                if (tag->is_anchor && tag->has[HREF] && !add_anchor(maker, tag, page_url))
                        return true;
        }
        return true;
}

void simple_html_parse(struct document_maker *maker, const char *text, size_t len)
{
        struct tag tag = { 0 };
        for (size_t i = 0; i < ATTRIBUTES_N; i++)
                buf_init(&tag.values[i], ATTRIBUTE_MAX);
        if (len && !parse_page(maker, &tag, text, text + len))
                document_refuse(maker->document, PACKAGE_UNTRUSTED, "the index sent a page that is not complete");
        for (size_t i = 0; i < ATTRIBUTES_N; i++)
                buf_done(&tag.values[i]);
}
