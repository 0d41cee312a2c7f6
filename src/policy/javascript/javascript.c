/* The analysis of JavaScript: the text as read by Node.js, and the order of the steps (javascript.h). */
#include "policy/javascript/javascript.h"

const struct TSLanguage *tree_sitter_javascript(void);
const struct TSLanguage *tree_sitter_typescript(void);

#define X(name, text) #text,
static const char *const kinds[] = { "", JS_KINDS_OF(X) NULL };
static const char *const typescript_kinds[] = { "", JS_KINDS_OF(X) JS_TYPES_OF(X) NULL };
#undef X
#define X(name) #name,
static const char *const fields[] = { "", JS_FIELDS_OF(X) NULL };
#undef X

const struct grammar js_grammar = { tree_sitter_javascript, kinds, fields, NULL, true };
const struct grammar js_typescript_grammar = { tree_sitter_typescript, typescript_kinds, fields, NULL, true };

/* ---- the text ---- */

/* Equal line ends, and U+FFFD for bytes outside of UTF-8, as Node.js reads files. */
static const char *cleaned(struct arena *arena, const char *text, size_t len, size_t *ret_len)
{
        struct buf buf;
        buf_init(&buf, 3 * len + 1);
        for (size_t at = 0; at < len;) {
                size_t step = utf8_step(text + at, len - at);
                if (text[at] == '\r') {
                        buf_add(&buf, "\n", 1);
                        at += at + 1 < len && text[at + 1] == '\n' ? 2 : 1;
                } else if (step) {
                        buf_add(&buf, text + at, step);
                        at += step;
                } else {
                        buf_add(&buf, "\xef\xbf\xbd", 3);
                        at++;
                }
        }
        char *copy = arena_copy(arena, buf.bytes ? buf.bytes : "", buf.len);
        *ret_len = buf.len;
        buf_done(&buf);
        return copy;
}

/*
 * Node.js gives up on brackets some thousands deep, every name is looked for in all scopes around, and the parser's
 * error recovery (tree-sitter 0.20) corrupts memory on nodes with more than 65,535 parts.  Brackets in texts and
 * comments count too; no real program has so many.
 */
#define DEPTH_MAX 2000

static size_t too_deep(const char *text, size_t len)
{
        size_t depth = 0;
        for (size_t i = 0; i < len; i++) {
                char c = text[i];
                if (c == '(' || c == '[' || c == '{')
                        depth++;
                else if ((c == ')' || c == ']' || c == '}') && depth)
                        depth--;
                if (depth > DEPTH_MAX)
                        return i;
        }
        return 0;
}

static const char *prepare(const char *text, size_t len, struct facts *facts, size_t *ret_len)
{
        if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
                text += 3, len -= 3;
        if (memchr(text, '\r', len) || !utf8_valid(text, len))
                text = cleaned(facts->arena, text, len, &len);
        const char *nul = memchr(text, 0, len);
        if (nul)
                facts_break(facts, (uint32_t)(nul - text), "SyntaxError: Invalid or unexpected token (a NUL byte)");
        size_t deep = too_deep(text, len);
        if (deep)
                facts_break(facts, (uint32_t)deep,
                        "RangeError: Maximum call stack size exceeded: brackets are nested too deeply");
        *ret_len = len;
        return text;
}

/* ---- the steps ---- */

static void done(struct js *js)
{
        free(js->scopes);
        names_done(&js->names);
        free(js->bindings);
        free(js->binding_index.slots);
        free(js->taken);
        free(js->assigned);
        free(js->returns);
        free(js->members);
}

/*
 * `const f = () => { }` ends with its line, even if the next line begins with a bracket; the grammar goes on in the
 * next line.  After an error, the text is parsed again with a semicolon in place of the line end.
 */
static const char *with_semicolons(const struct tree *tree, struct arena *arena)
{
        char *copy = NULL;
        for (uint32_t at = 1; at < tree->n; at++) {
                uint32_t body = tree->nodes[at].kind == JS_ARROW ? tree_field(tree, at, JSF_body) : 0, feed = 0;
                uint32_t next = tree->nodes[at].end;
                if (!body || tree->nodes[body].kind != JS_BLOCK)
                        continue;
                for (; next < tree->len && strchr(" \t\n", tree->text[next]) && tree->text[next]; next++)
                        if (tree->text[next] == '\n' && !feed)
                                feed = next;
                if (!feed || next == tree->len || !strchr("[(`", tree->text[next]))
                        continue;
                if (!copy)
                        copy = arena_copy(arena, tree->text, tree->len);
                copy[feed] = ';';
        }
        return copy;
}

#define MENDED_MAX 3                  /* times */

static int without_types(size_t len, struct facts *facts, struct tree *tree, struct csn_error *err)
{
        struct tree better = *tree;
        const char *again;
        for (unsigned i = 0; i < MENDED_MAX && better.broken && (again = js_mend_types(&better, facts->arena)); i++)
                if (tree_parse(&js_typescript_grammar, again, len, facts->arena, &better, err) < 0)
                        return -err->code;
        if (!better.broken && js_mended_types(&better, tree->text))
                *tree = better;
        if (!tree->broken)
                js_erase_types(facts, tree);
        return 0;
}

static int analyse_as(const struct grammar *grammar, const char *text, size_t len, struct facts *facts,
        struct csn_error *err)
{
        struct tree tree;
        struct js js = { .tree = &tree, .arena = facts->arena, .facts = facts };
        if (facts->broken)
                return 0;
        if (tree_parse(grammar, text, len, facts->arena, &tree, err) < 0)
                return -err->code;
        const char *again = tree.broken ? with_semicolons(&tree, facts->arena) : NULL;
        if (again && tree_parse(grammar, again, len, facts->arena, &tree, err) < 0)
                return -err->code;
        if (grammar == &js_typescript_grammar && without_types(len, facts, &tree, err) < 0)
                return -err->code;
        js_check(facts, &tree);
        if (!facts->broken) {
                js.order = tree_order(&tree, facts->arena);
                js_scopes(&js);
                if (!facts->broken) {
                        js_values(&js);
                        js_facts(&js);
                }
        }
        done(&js);
        return 0;
}

static int analyse_javascript(const char *text, size_t len, struct facts *facts, struct csn_error *err)
{
        return analyse_as(&js_grammar, text, len, facts, err);
}

static int analyse_typescript(const char *text, size_t len, struct facts *facts, struct csn_error *err)
{
        return analyse_as(&js_typescript_grammar, text, len, facts, err);
}

const struct analysis analysis_javascript = { "javascript", analyse_javascript, prepare };
const struct analysis analysis_typescript = { "typescript", analyse_typescript, prepare };
