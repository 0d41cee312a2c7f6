/* The analysis of Python: the text as read by the interpreter, and the order of the steps (python.h). */
#include "policy/python/python.h"

#include <strings.h>

const struct TSLanguage *tree_sitter_python(void);

#define X(name, text) #text,
static const char *const kinds[] = { "", PYTHON_KINDS(X) NULL };
#undef X
#define X(name) #name,
static const char *const fields[] = { "", PYTHON_FIELDS(X) NULL };
#undef X

const struct grammar python_grammar = { tree_sitter_python, kinds, fields, "line_continuation", false };

/* ---- the text ---- */

/* "utf-8" of `# -*- coding: utf-8 -*-` in the first two lines (PEP 263); its length, 0 if there is none. */
static size_t cookie(const char *text, size_t len, size_t *ret_at)
{
        size_t line = 0;
        for (int number = 0; number < 2 && line < len; number++) {
                const char *feed = memchr(text + line, '\n', len - line);
                size_t end = feed ? (size_t)(feed - text) : len, at = line;
                while (at < end && (text[at] == ' ' || text[at] == '\t' || text[at] == '\f'))
                        at++;
                if (at < end && text[at] != '#')
                        return 0;
                for (; at + 7 < end; at++) {
                        if (memcmp(text + at, "coding", 6) != 0 || (text[at + 6] != ':' && text[at + 6] != '='))
                                continue;
                        size_t name = at + 7, to;
                        while (name < end && (text[name] == ' ' || text[name] == '\t'))
                                name++;
                        for (to = name; to < end &&
                                (text[to] == '-' || text[to] == '_' || text[to] == '.' ||
                                        (text[to] >= '0' && text[to] <= '9') ||
                                        ((text[to] | 0x20) >= 'a' && (text[to] | 0x20) <= 'z'));)
                                to++;
                        if (to > name) {
                                *ret_at = name;
                                return to - name;
                        }
                }
                line = end + 1;
        }
        return 0;
}

enum encoding { ENCODING_UTF8, ENCODING_ASCII, ENCODING_LATIN1, ENCODING_OTHER };

/* Names are compared as codecs does: case, and which sign stands between the parts, do not matter. */
static enum encoding encoding_of(const char *name, size_t len)
{
        static const struct { const char *name; enum encoding encoding;
        } known[] = {
                { "utf8", ENCODING_UTF8 },
                { "utf", ENCODING_UTF8 },
                { "u8", ENCODING_UTF8 },
                { "utf8sig", ENCODING_UTF8 },
                { "utf8unix", ENCODING_UTF8 },
                { "utf8dos", ENCODING_UTF8 },
                { "utf8mac", ENCODING_UTF8 },
                { "cp65001", ENCODING_UTF8 },
                { "ascii", ENCODING_ASCII },
                { "usascii", ENCODING_ASCII },
                { "646", ENCODING_ASCII },
                { "latin1", ENCODING_LATIN1 },
                { "latin", ENCODING_LATIN1 },
                { "l1", ENCODING_LATIN1 },
                { "iso88591", ENCODING_LATIN1 },
                { "8859", ENCODING_LATIN1 },
                { "cp819", ENCODING_LATIN1 },
                { "iso885915", ENCODING_OTHER },
        };
        char plain[32];
        size_t n = 0;
        for (size_t i = 0; i < len && n + 1 < sizeof plain; i++)
                if (name[i] != '-' && name[i] != '_' && name[i] != '.')
                        plain[n++] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
        plain[n] = 0;
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                if (strcmp(known[i].name, plain) == 0)
                        return known[i].encoding;
        return ENCODING_OTHER;
}

static bool is_ascii(const char *text, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)text[i] >= 0x80)
                        return false;
        return true;
}

/* Line ends become line feeds: to the interpreter a carriage return alone is a line end, and ends a comment. */
static char *equal_line_ends(struct arena *arena, const char *text, size_t len, size_t *ret_len)
{
        if (!memchr(text, '\r', len)) {
                *ret_len = len;
                return arena_copy(arena, text, len);
        }
        char *out = arena_alloc(arena, len + 1);
        size_t n = 0;
        for (size_t i = 0; i < len; i++) {
                if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n')
                        continue;
                out[n++] = (char)(text[i] == '\r' ? '\n' : text[i]);
        }
        *ret_len = n;
        return out;
}

static const char *prepare(const char *text, size_t len, struct facts *facts, size_t *ret_len)
{
        bool mark = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
        size_t at = 0, name_len;
        if (mark)
                text += 3, len -= 3;
        text = equal_line_ends(facts->arena, text, len, &len);
        name_len = cookie(text, len, &at);
        enum encoding encoding = name_len ? encoding_of(text + at, name_len) : ENCODING_UTF8;
        if (mark && encoding != ENCODING_UTF8)
                facts_break(facts, 0, "encoding problem: with BOM");
        if (encoding == ENCODING_OTHER)
                facts_add(facts,
                        (struct fact){ .kind = FACT_ENCODING,
                                .name = arena_copy(facts->arena, text + at, name_len),
                                .start = (uint32_t)at,
                                .end = (uint32_t)(at + name_len) });
        else if (encoding == ENCODING_LATIN1)
                text = unicode_latin1(facts->arena, text, len, &len);
        else if (encoding == ENCODING_ASCII && !is_ascii(text, len))
                facts_break(facts, 0, "'ascii' codec can't decode the source");
        const char *nul = memchr(text, 0, len);
        if (nul)
                facts_break(facts, (uint32_t)(nul - text), "source code cannot contain null bytes");
        if (!utf8_valid(text, len))
                facts_break(facts, 0, "(unicode error) 'utf-8' codec can't decode the source");
        *ret_len = len;
        return text;
}

/* ---- syntax unknown to the grammar ---- */

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n';
}

/* x[*(1, 2)], x[1, *f()], except *(A, B): stars new since Python 3.11. */
static bool is_new_star(const char *text, size_t len, size_t at)
{
        size_t before = at, after = at + 1;
        while (before && is_blank(text[before - 1]))
                before--;
        while (after < len && is_blank(text[after]))
                after++;
        bool place = before &&
                (text[before - 1] == '[' || text[before - 1] == ',' ||
                        (before >= 6 && memcmp(text + before - 6, "except", 6) == 0));
        return place && after < len && strchr("([{'\"0123456789", text[after]);
}

/*
 * The program with blanks for the new stars and for the = in f'{x:=}', a part of the format.  The length, and so all
 * positions, are the same.  NULL: no such sign.  Only the parser gets this copy: texts are read from the program
 * itself.
 */
static const char *without_signs(struct arena *arena, const char *text, size_t len)
{
        char *out = NULL;
        for (size_t i = 0; i < len; i++) {
                bool format = text[i] == '=' && i && text[i - 1] == ':' && i + 1 < len && strchr("}<>^", text[i + 1]);
                if (!format && !(text[i] == '*' && is_new_star(text, len, i)))
                        continue;
                if (!out)
                        out = arena_copy(arena, text, len);
                out[i] = ' ';
        }
        return out;
}

static int parse(const char *text, size_t len, struct facts *facts, struct tree *ret, struct csn_error *err)
{
        struct arena *arena = facts->arena;
        struct tree again;
        int rc = tree_parse(&python_grammar, text, len, arena, ret, err);
        const char *other = rc == 0 && ret->broken ? without_signs(arena, text, len) : NULL;
        if (!other)
                return rc;
        rc = tree_parse(&python_grammar, other, len, arena, &again, err);
        if (rc == 0 && !again.broken) {
                facts->doubtful = true;   /* new syntax may be too new for the interpreter */
                *ret = again;
                ret->text = text;
        }
        return rc;
}

/* ---- the steps ---- */

static void done(struct python *py)
{
        free(py->scopes);
        names_done(&py->names);
        free(py->bindings);
        free(py->binding_index.slots);
        free(py->stars);
        free(py->returns);
        free(py->members);
}

static int analyse(const char *text, size_t len, struct facts *facts, struct csn_error *err)
{
        struct tree tree;
        struct python py = { .tree = &tree, .arena = facts->arena, .facts = facts };
        if (facts->broken)
                return 0;
        if (parse(text, len, facts, &tree, err) < 0)
                return -err->code;
        python_check(facts, &tree);
        if (facts->broken)
                return 0;
        facts->doubtful = facts->doubtful || python_is_doubtful(facts, &tree);
        py.order = tree_order(&tree, facts->arena);
        python_scopes(&py);
        python_values(&py);
        python_facts(&py);
        done(&py);
        return 0;
}

const struct analysis analysis_python = { "python", analyse, prepare };
