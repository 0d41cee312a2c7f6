/*
 * TypeScript without its types.  Types are erased before a program runs (lang/node/typescript.js), so no code in a type
 * is ever run; without the types, the analysis of JavaScript is right for the rest.
 */
#include "policy/javascript/javascript.h"

#include <ctype.h>

enum fate { KEPT, GONE, OPENED };      /* OPENED: replaced by one of its parts */

struct eraser {
        struct facts *facts;
        const struct tree *tree;
        uint8_t *fates;
        uint32_t *kept;                /* remaining parts, without signs and comments */
};

static struct node *node_at(const struct eraser *eraser, uint32_t at)
{
        return &eraser->tree->nodes[at];
}

/* ---- from the top: the fate of each node ---- */

/* `part` takes the place of the node. */
static void open_up(const struct eraser *eraser, uint32_t at, uint32_t part)
{
        if (!part) {
                eraser->fates[at] = GONE;
                return;
        }
        for (uint32_t child = node_at(eraser, at)->child; child; child = node_at(eraser, child)->next)
                if (child != part)
                        eraser->fates[child] = GONE;
        node_at(eraser, part)->field = node_at(eraser, at)->field;
        eraser->fates[at] = OPENED;
}

static uint32_t last_part(const struct tree *tree, uint32_t at)
{
        uint32_t last = 0;
        for (uint32_t child = js_first(tree, at); child; child = js_next(tree, child))
                last = child;
        return last;
}

static void rename_field(const struct eraser *eraser, uint32_t at, unsigned from, unsigned to)
{
        uint32_t child = tree_field(eraser->tree, at, from);
        if (child)
                node_at(eraser, child)->field = (uint8_t)to;
}

/* private, readonly and override before a parameter of a constructor make the parameter a member. */
static bool mark_member(const struct eraser *eraser, uint32_t at)
{
        bool member = false;
        for (uint32_t child = node_at(eraser, at)->child; child; child = node_at(eraser, child)->next) {
                struct node *node = node_at(eraser, child);
                if (node->kind == JS_OVERRIDE || (node->token && js_text_is(eraser->tree, child, "readonly")))
                        node->kind = JS_MODIFIER, node->token = false;
                member = member || node->kind == JS_MODIFIER;
        }
        return member;
}

static void parameter(const struct eraser *eraser, uint32_t at)
{
        uint32_t pattern = tree_field(eraser->tree, at, JSF_pattern), value = tree_field(eraser->tree, at, JSF_value);
        if (pattern && node_at(eraser, pattern)->kind == JS_THIS)
                pattern = 0;
        if (pattern && (mark_member(eraser, at) || value || tree_kind(eraser->tree, at, JS_DECORATOR))) {
                node_at(eraser, at)->kind = JS_ASSIGNMENT_PATTERN;
                rename_field(eraser, at, JSF_pattern, JSF_left);
                rename_field(eraser, at, JSF_value, JSF_right);
        } else {
                open_up(eraser, at, pattern);
        }
}

static bool names_module(const struct eraser *eraser, uint32_t at)
{
        uint32_t parent = node_at(eraser, at)->parent;
        return node_at(eraser, at)->field == JSF_name &&
                (node_at(eraser, parent)->kind == JS_MODULE || eraser->fates[parent] == OPENED);
}

static void class(const struct eraser *eraser, uint32_t at)
{
        uint32_t name = tree_field(eraser->tree, at, JSF_name);
        if (node_at(eraser, at)->kind == JS_ABSTRACT_CLASS)
                node_at(eraser, at)->kind = JS_CLASS_DECLARATION;
        if (name)
                node_at(eraser, name)->kind = JS_IDENTIFIER;
}

static void field(const struct eraser *eraser, uint32_t at)
{
        node_at(eraser, at)->kind = JS_FIELD;
        rename_field(eraser, at, JSF_name, JSF_property);
        bool elsewhere = js_has_word(eraser->tree, at, "declare") || js_has_word(eraser->tree, at, "abstract");
        if (elsewhere && !tree_kind(eraser->tree, at, JS_DECORATOR))
                eraser->fates[at] = GONE;
}

static void judge(const struct eraser *eraser, uint32_t at)
{
        const struct tree *tree = eraser->tree;
        struct node *node = node_at(eraser, at);
        if (eraser->fates[node->parent] == GONE)
                eraser->fates[at] = GONE;
        if (eraser->fates[at] == GONE || node->token)
                return;
        switch (node->kind) {
        case JS_TYPE_ANNOTATION:
        case JS_TYPE_ARGUMENTS:
        case JS_TYPE_PARAMETERS:
        case JS_ASSERTS_ANNOTATION:
        case JS_PREDICATE_ANNOTATION:
        case JS_INTERFACE: case JS_TYPE_ALIAS: case JS_AMBIENT: case JS_FUNCTION_SIGNATURE: case JS_METHOD_SIGNATURE:
        case JS_ABSTRACT_SIGNATURE: case JS_INDEX_SIGNATURE: case JS_IMPLEMENTS: case JS_OVERRIDE:
                eraser->fates[at] = GONE;
                break;
        case JS_MODIFIER:
                if (node_at(eraser, node->parent)->kind != JS_ASSIGNMENT_PATTERN)
                        eraser->fates[at] = GONE;
                break;
        case JS_IMPORT: case JS_EXPORT: case JS_IMPORT_NAME: case JS_EXPORT_NAME:
                if (js_has_word(tree, at, "type") || js_has_word(tree, at, "typeof"))
                        eraser->fates[at] = GONE;
                break;
        case JS_AS:
        case JS_SATISFIES:
        case JS_NON_NULL:
        case JS_INSTANTIATION: open_up(eraser, at, js_first(tree, at)); break;
        case JS_TYPE_ASSERTION: open_up(eraser, at, last_part(tree, at)); break;
        case JS_EXTENDS: open_up(eraser, at, tree_field(tree, at, JSF_value)); break;
        case JS_IMPORT_REQUIRE: eraser->fates[at] = OPENED; break;
        case JS_REQUIRED_PARAMETER: case JS_OPTIONAL_PARAMETER: parameter(eraser, at); break;
        case JS_CLASS: case JS_CLASS_DECLARATION: case JS_ABSTRACT_CLASS: class(eraser, at); break;
        case JS_TYPED_FIELD: field(eraser, at); break;
        case JS_ENUM_BODY: node->kind = JS_OBJECT; break;
        case JS_ENUM_MEMBER:
                node->kind = JS_PAIR;
                rename_field(eraser, at, JSF_name, JSF_key);
                break;
        case JS_SPACE: node->kind = JS_MODULE; break;
        case JS_NESTED_NAME: case JS_MEMBER:
                node->kind = JS_MEMBER;
                /* namespace A.B.C { }: only A is a name outside. */
                if (names_module(eraser, at))
                        open_up(eraser, at, tree_field(tree, at, JSF_object));
                break;
        case JS_PREDEFINED:
                /* In a[string], `string` is a name like others. */
                if (node->field == JSF_index)
                        node->kind = JS_IDENTIFIER;
                break;
        /* TypeScript knows decorators, Node.js does not. */
        case JS_DECORATOR: node->kind = JS_OTHER; break;
        default: break;
        }
}

/* ---- code hidden as a type ---- */

/* Whether a line ends between two neighbours. */
static bool line_between(const struct eraser *eraser, uint32_t before, uint32_t after)
{
        const struct node *a = node_at(eraser, before), *b = node_at(eraser, after);
        return before && after && memchr(eraser->tree->text + a->end, '\n', b->start - a->end);
}

/*
 * At a line end `type`, `interface`, `declare` and `abstract` are names, and `as` and `!` belong to the next line; the
 * grammar ignores the line end.  And only import() may be called in a type.
 */
static void doubt(const struct eraser *eraser, uint32_t at)
{
        const struct tree *tree = eraser->tree;
        const struct node *node = node_at(eraser, at);
        bool wrong = false;
        if (node->token)
                return;
        switch (node->kind) {
        case JS_INTERFACE: case JS_TYPE_ALIAS: case JS_AMBIENT:
                wrong = node->child && line_between(eraser, node->child, node_at(eraser, node->child)->next);
                break;
        case JS_FIELD:
                for (uint32_t child = node->child; child; child = node_at(eraser, child)->next)
                        if (js_text_is(tree, child, "declare") || js_text_is(tree, child, "abstract"))
                                wrong = wrong || line_between(eraser, child, node_at(eraser, child)->next);
                break;
        case JS_AS: case JS_SATISFIES: case JS_NON_NULL:
                for (uint32_t child = node->child, next; child; child = next) {
                        next = node_at(eraser, child)->next;
                        wrong = wrong || (next && node_at(eraser, next)->token && line_between(eraser, child, next));
                }
                break;
        case JS_CALL: {
                uint32_t function = tree_field(tree, at, JSF_function);
                wrong = node_at(eraser, function)->kind != JS_IMPORT_WORD;
                break;
        }
        default: break;
        }
        if (wrong)
                facts_break(eraser->facts, node->start,
                        "SyntaxError: Unexpected token: a line's end, or a call, in what would be a type");
}

/* ---- from the bottom: emptied nodes ---- */

static void empty(const struct eraser *eraser, uint32_t at)
{
        const struct tree *tree = eraser->tree;
        struct node *node = node_at(eraser, at);
        uint32_t body, clause;
        bool emptied = !eraser->kept[at] && js_first(tree, at);
        switch (node->kind) {
        case JS_MODULE:
                /* A namespace with nothing but types is a type. */
                body = tree_field(tree, at, JSF_body);
                if (!body || !eraser->kept[body])
                        eraser->fates[at] = GONE;
                break;
        case JS_STATEMENT: case JS_HERITAGE: case JS_NAMED_IMPORTS: case JS_IMPORT_CLAUSE: case JS_EXPORT_CLAUSE:
                if (emptied)
                        eraser->fates[at] = GONE;
                break;
        case JS_IMPORT: case JS_EXPORT:
                clause = tree_kind(tree, at, node->kind == JS_IMPORT ? JS_IMPORT_CLAUSE : JS_EXPORT_CLAUSE);
                if (emptied)
                        eraser->fates[at] = GONE;
                else if (clause && eraser->fates[clause] == GONE)
                        node->kind = JS_IMPORT_TYPES;
                break;
        default: break;
        }
}

/* ---- remaining nodes ---- */

/* Numbers only become smaller, so this is done in place. */
static void move_together(const struct eraser *eraser, struct tree *tree, struct arena *arena)
{
        uint32_t *place = arena_alloc(arena, tree->n * sizeof *place),
                 *last = arena_alloc(arena, tree->n * sizeof *last), n = 1;
        tree->nodes[0].child = 0;
        for (uint32_t at = 1; at < tree->n; at++) {
                struct node node = tree->nodes[at];
                uint32_t parent = place[node.parent];
                if (eraser->fates[at] == GONE)
                        continue;
                if (eraser->fates[at] == OPENED) {
                        place[at] = parent;
                        continue;
                }
                node.parent = parent;
                node.child = node.next = 0;
                place[at] = n;
                if (last[parent])
                        tree->nodes[last[parent]].next = n;
                else
                        tree->nodes[parent].child = n;
                last[parent] = n;
                tree->nodes[n++] = node;
        }
        tree->n = n;
}

void js_erase_types(struct facts *facts, struct tree *tree)
{
        struct arena *arena = facts->arena;
        const struct eraser eraser = { facts, tree, arena_alloc(arena, tree->n),
                arena_alloc(arena, tree->n * sizeof(uint32_t)) };
        for (uint32_t at = 1; at < tree->n; at++) {
                judge(&eraser, at);
                if (eraser.fates[at] != KEPT)
                        doubt(&eraser, at);
        }
        for (uint32_t at = tree->n - 1; at; at--) {
                const struct node *node = node_at(&eraser, at);
                if (eraser.fates[at] != GONE)
                        empty(&eraser, at);
                if (eraser.fates[at] != GONE && !node->token && node->kind != JS_COMMENT &&
                        node->kind != JS_HTML_COMMENT)
                        eraser.kept[node->parent]++;
        }
        /* An erased node goes with all nodes inside. */
        for (uint32_t at = 1; at < tree->n; at++)
                if (eraser.fates[node_at(&eraser, at)->parent] == GONE)
                        eraser.fates[at] = GONE;
        move_together(&eraser, tree, arena);
}

/* ---- types unknown to the grammar ---- */

static void blank(char *text, size_t start, size_t end)
{
        for (size_t i = start; i < end; i++)
                if (text[i] != '\n')
                        text[i] = ' ';
}

/* The last byte of a comment or a text in quotes at `at`; otherwise `at`. */
static size_t past_text(const char *text, size_t at, size_t end)
{
        char quote = text[at];
        size_t i = at + 1;
        const char *close;
        if (quote == '/' && i < end && text[i] == '/') {
                close = memchr(text + at, '\n', end - at);
                return close ? (size_t)(close - text) : end;
        }
        if (quote == '/' && i < end && text[i] == '*') {
                close = memmem(text + at + 2, end - at - 2, "*/", 2);
                return close ? (size_t)(close - text) + 1 : end;
        }
        if (quote != '"' && quote != '\'' && quote != '`')
                return at;
        for (; i < end && text[i] != quote; i++) {
                if (text[i] == '\n' && quote != '`')
                        return at;
                i += text[i] == '\\';
        }
        return i;
}

/* Behind the closing brace of the brace at `at`; 0: none. */
static size_t closing(const char *text, size_t at, size_t end)
{
        size_t depth = 0;
        for (size_t i = at; i < end; i++) {
                depth += text[i] == '{';
                if (text[i] == '}' && --depth == 0)
                        return i + 1;
                i = past_text(text, i, end);
        }
        return 0;
}

static bool is_word(char c)
{
        return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static size_t word_end(const char *text, size_t at, size_t end)
{
        while (at < end && is_word(text[at]))
                at++;
        return at;
}

static size_t past_blanks(const char *text, size_t at, size_t end)
{
        while (at < end && isspace((unsigned char)text[at]))
                at++;
        return at;
}

/* <in A, out B, in out C>: the words, if a name follows. */
static bool blank_variance(char *text, size_t start, size_t end)
{
        bool found = false, first = false;
        for (size_t at = start; at < end;) {
                size_t stop = word_end(text, at, end);
                if (stop == at) {
                        size_t last = past_text(text, at, end);
                        first = text[at] == '<' || text[at] == ',' ||
                                (first && (isspace((unsigned char)text[at]) || last > at));
                        at = last + 1;
                        continue;
                }
                size_t next = past_blanks(text, stop, end), len = word_end(text, next, end) - next;
                bool variance = js_is("in", text + at, stop - at) || js_is("out", text + at, stop - at);
                bool operator= js_is("extends", text + next, len) || js_is("instanceof", text + next, len) ||
                        js_is("in", text + next, len);
                if (first && variance && len && !operator) {
                        blank(text, at, stop);
                        found = true;
                } else {
                        first = first && js_is("const", text + at, stop - at);
                }
                at = stop;
        }
        return found;
}

/* Whether a type continues behind this text. */
static bool goes_on(const char *text, size_t start, size_t end)
{
        static const char *const words[] = { "extends", "infer", "is", "keyof", "new", "readonly", "typeof", NULL };
        size_t word = end;
        if (end == start || (!is_word(text[end - 1]) && !strchr("])}>\"'`", text[end - 1])))
                return true;
        if (end - start > 1 && memcmp(text + end - 2, "=>", 2) == 0)
                return true;
        while (word > start && is_word(text[word - 1]))
                word--;
        for (size_t i = 0; words[i]; i++)
                if (js_is(words[i], text + word, end - word))
                        return true;
        return false;
}

/* Signatures divided only by a line end from the text before get a semicolon. */
static bool divide(const char *text, char *copy, size_t start, size_t end)
{
        bool found = false, line = false;
        size_t before = start;         /* behind the last byte outside of blanks and comments */
        for (size_t at = start, next; at < end; at = next) {
                char c = text[at];
                next = past_text(text, at, end) + 1;
                if (isspace((unsigned char)c) || (c == '/' && next > at + 1)) {
                        line = line || memchr(text + at, '\n', (next < end ? next : end) - at);
                        continue;
                }
                if (line && (c == '(' || c == '<') && !goes_on(text, start, before)) {
                        blank(copy, before, at);
                        copy[before] = ';';
                        found = true;
                }
                before = next;
                line = false;
        }
        return found;
}

/* `const NAME: {` and the like, where `at` is the brace. */
static bool is_annotation(const char *text, size_t at)
{
        size_t end = at, start;
        while (end && isspace((unsigned char)text[end - 1]))
                end--;
        if (!end || text[end - 1] != ':')
                return false;
        for (end--; end && isspace((unsigned char)text[end - 1]);)
                end--;
        for (start = end; start && is_word(text[start - 1]);)
                start--;
        if (start == end)
                return false;
        for (end = start; end && isspace((unsigned char)text[end - 1]);)
                end--;
        for (start = end; start && is_word(text[start - 1]);)
                start--;
        return js_is("const", text + start, end - start) || js_is("let", text + start, end - start) ||
                js_is("var", text + start, end - start);
}

/* For trees with too many errors to show the braces of types. */
static bool divide_annotations(const struct tree *tree, char *copy)
{
        const char *text = tree->text;
        bool found = false, interface = false;
        for (size_t at = 0, end; at < tree->len; at = end) {
                end = word_end(text, at, tree->len);
                if (end > at) {
                        interface = interface || js_is("interface", text + at, end - at);
                        continue;
                }
                end = past_text(text, at, tree->len) + 1;
                if (text[at] != '{' || (!interface && !is_annotation(text, at)))
                        continue;
                end = closing(text, at, tree->len);
                if (!end)
                        return found;
                found = divide(text, copy, at + 1, end - 1) || found;
                interface = false;
        }
        return found;
}

/* export type * from "x" becomes a type. */
static void rewrite_export(char *copy, const struct node *statement, uint32_t source)
{
        static const char start[] = "type _=";
        blank(copy, statement->start, source);
        for (size_t i = 0; start[i]; i++)
                copy[statement->start + i] = start[i];
}

/*
 * The grammar has no in and out before the parameters of a type, no export type *, and no signatures divided only by a
 * line end.
 */
const char *js_mend_types(const struct tree *tree, struct arena *arena)
{
        char *copy = arena_copy(arena, tree->text, tree->len);
        uint32_t *outer = arena_alloc(arena, tree->n * sizeof *outer), last = 0;
        bool found = divide_annotations(tree, copy);
        for (uint32_t at = 1; at < tree->n; at++) {
                const struct node *node = &tree->nodes[at], *above = &tree->nodes[node->parent];
                outer[at] = outer[node->parent];
                if (!outer[at] && (node->kind == JS_OBJECT_TYPE || node->kind == JS_INTERFACE_BODY))
                        outer[at] = at;
                if (node->kind == JS_TYPE_PARAMETERS)
                        found = blank_variance(copy, node->start, node->end) || found;
                if (node->kind != JS_ERROR && node->start != node->end)
                        continue;
                uint32_t source = above->kind == JS_EXPORT ? tree_field(tree, node->parent, JSF_source) : 0;
                const struct node *braces = &tree->nodes[outer[at]];
                if (outer[at] && outer[at] != last && closing(tree->text, braces->start, tree->len) == braces->end) {
                        found = divide(tree->text, copy, braces->start + 1, braces->end - 1) || found;
                } else if (source && js_text_is(tree, at, "type")) {
                        rewrite_export(copy, above, tree->nodes[source].start);
                        found = true;
                }
                last = outer[at];
        }
        return found ? copy : NULL;
}

bool js_mended_types(const struct tree *tree, const char *text)
{
        size_t same = 0;
        for (uint32_t at = 1; at < tree->n; at++) {
                const struct node *node = &tree->nodes[at];
                bool type = node->kind == JS_OBJECT_TYPE || node->kind == JS_INTERFACE_BODY ||
                        node->kind == JS_TYPE_PARAMETERS || node->kind == JS_TYPE_ALIAS;
                if (!type || node->start < same)
                        continue;
                if (memcmp(tree->text + same, text + same, node->start - same) != 0)
                        return false;
                same = node->end;
        }
        return memcmp(tree->text + same, text + same, tree->len - same) == 0;
}
