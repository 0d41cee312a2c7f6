/*
 * Errors accepted by the grammar and rejected by the interpreter.  The grammar is made for editors: unfinished text
 * passes, and so does Python 2.  Messages are the interpreter's.
 */
#include "policy/python/python.h"

#define BRACKETS_MAX 200   /* MAXLEVEL of CPython's tokenizer */
#define INDENTS_MAX 100    /* MAXINDENT */

static bool is_loop(unsigned kind)
{
        return kind == PY_FOR || kind == PY_WHILE;
}

/* The nearest function, class or module; `ret_loop`: a loop stands between, with `at` in its body. */
static unsigned around(const struct tree *tree, uint32_t at, bool *ret_loop)
{
        *ret_loop = false;
        for (uint32_t below = at; below; below = at) {
                at = tree->nodes[below].parent;
                unsigned kind = tree->nodes[at].kind;
                if (kind == PY_FUNCTION || kind == PY_CLASS || kind == PY_LAMBDA)
                        return kind;
                *ret_loop = *ret_loop || (is_loop(kind) && tree->nodes[below].kind == PY_BLOCK);
        }
        return PY_MODULE;
}

static void check_place(struct facts *facts, const struct tree *tree, uint32_t at)
{
        const struct node *node = &tree->nodes[at];
        bool loop;
        if (node->token)
                return;
        unsigned inside = around(tree, at, &loop);
        bool function = inside == PY_FUNCTION || inside == PY_LAMBDA;
        if (node->kind == PY_RETURN && inside != PY_FUNCTION)
                facts_break(facts, node->start, "'return' outside function");
        if (node->kind == PY_YIELD && !function)
                facts_break(facts, node->start, "'yield' outside function");
        if (node->kind == PY_BREAK && !loop)
                facts_break(facts, node->start, "'break' outside loop");
        if (node->kind == PY_CONTINUE && !loop)
                facts_break(facts, node->start, "'continue' not properly in loop");
        if (node->kind == PY_NONLOCAL && inside == PY_MODULE)
                facts_break(facts, node->start, "nonlocal declaration not allowed at module level");
}

static void check_node(struct facts *facts, const struct tree *tree, uint32_t at)
{
        switch (tree->nodes[at].kind) {
        case PY_EXEC:
                facts_break(facts, tree->nodes[at].start,
                        "Missing parentheses in call to 'exec'. Did you mean exec(...)?");
                break;
        case PY_RETURN: case PY_BREAK: case PY_CONTINUE: case PY_NONLOCAL:
                check_place(facts, tree, at);
                break;
        case PY_YIELD:
                check_place(facts, tree, at);
                python_check_form(facts, tree, at);
                break;
        case PY_INTEGER: case PY_FLOAT: python_check_number(facts, tree, at); break;
        case PY_STRING: python_check_string(facts, tree, at); break;
        case PY_CONCATENATED: python_check_concatenated(facts, tree, at); break;
        case PY_INTERPOLATION: case PY_FORMAT_EXPRESSION: python_check_interpolation(facts, tree, at); break;
        default: python_check_form(facts, tree, at); break;
        }
}

/* The smallest node over a place, from `node` on. */
static uint32_t deepest(const struct tree *tree, uint32_t node, uint32_t place)
{
        for (uint32_t child = tree->nodes[node].start <= place ? tree->nodes[node].child : 0; child;) {
                if (tree->nodes[child].start <= place && place < tree->nodes[child].end) {
                        node = child;
                        child = tree->nodes[child].child;
                } else {
                        child = tree->nodes[child].next;
                }
        }
        return node;
}

/* Blanks skipped by the grammar; the interpreter has no token for such blanks. */
static void check_blanks(struct facts *facts, const struct tree *tree)
{
        static const char *const strange[] = { "\xef\xbb\xbf", "\xe2\x81\xa0", "\xe2\x80\x8b", "\v" };
        for (size_t s = 0; s < ARRAY_LEN(strange); s++) {
                size_t n = strlen(strange[s]);
                uint32_t top = tree->nodes[0].child;
                /* memchr(3) is quick, and mostly there is none. */
                for (const char *at = memchr(tree->text, strange[s][0], tree->len);
                     at && (at = memmem(at, tree->len - (size_t)(at - tree->text), strange[s], n)); at += n) {
                        uint32_t place = (uint32_t)(at - tree->text);
                        while (top && tree->nodes[top].end <= place)
                                top = tree->nodes[top].next;
                        unsigned kind = top ? tree->nodes[deepest(tree, top, place)].kind : PY_OTHER;
                        if (kind != PY_COMMENT && kind != PY_STRING && kind != PY_STRING_CONTENT &&
                                kind != PY_STRING_END) {
                                facts_break(facts, place, "invalid non-printable character");
                                break;
                        }
                }
        }
}

/* The depth of nested brackets and blocks, by nodes. */
static void check_depth(struct facts *facts, const struct tree *tree)
{
        uint32_t depth = 0, blocks = 0;
        for (uint32_t at = 0;;) {
                char open = tree->nodes[at].end > tree->nodes[at].start ? tree->text[tree->nodes[at].start] : 0;
                unsigned kind = tree->nodes[at].kind;
                bool bracket = kind != PY_STRING_CONTENT && kind != PY_COMMENT &&
                        (open == '(' || open == '[' || open == '{') &&
                        !(at && tree->nodes[tree->nodes[at].parent].start == tree->nodes[at].start);
                depth += bracket;
                blocks += kind == PY_BLOCK;
                if (depth > BRACKETS_MAX)
                        facts_break(facts, tree->nodes[at].start, "too many nested parentheses");
                if (blocks > INDENTS_MAX)
                        facts_break(facts, tree->nodes[at].start, "too many levels of indentation");
                if (tree->nodes[at].child) {
                        at = tree->nodes[at].child;
                        continue;
                }
                while (at) {
                        kind = tree->nodes[at].kind;
                        open = tree->nodes[at].end > tree->nodes[at].start ? tree->text[tree->nodes[at].start] : 0;
                        bracket = kind != PY_STRING_CONTENT && kind != PY_COMMENT &&
                                (open == '(' || open == '[' || open == '{') &&
                                tree->nodes[tree->nodes[at].parent].start != tree->nodes[at].start;
                        depth -= bracket && depth;
                        blocks -= kind == PY_BLOCK;
                        if (tree->nodes[at].next)
                                break;
                        at = tree->nodes[at].parent;
                }
                if (!at || !tree->nodes[at].next)
                        return;
                at = tree->nodes[at].next;
        }
}

/*
 * The width of the blanks before a node with tabs of 8 columns and of 1: the interpreter wants no difference between
 * the two.  -1: other text stands before the node in its line.
 */
struct indent {
        int64_t width, narrow;
};

static struct indent indent_of(const struct tree *tree, uint32_t start)
{
        uint32_t line = start;
        struct indent indent = { 0, 0 };
        while (line && (tree->text[line - 1] == ' ' || tree->text[line - 1] == '\t' || tree->text[line - 1] == '\f'))
                line--;
        if (line && tree->text[line - 1] != '\n')
                return (struct indent){ -1, -1 };
        for (uint32_t i = line; i < start; i++)
                if (tree->text[i] == '\f') {
                        indent = (struct indent){ 0, 0 };
                } else {
                        indent.width = tree->text[i] == '\t' ? (indent.width / 8 + 1) * 8 : indent.width + 1;
                        indent.narrow++;
                }
        return indent;
}

/* The indentation of the line around `start`. */
static struct indent indent_of_line(const struct tree *tree, uint32_t start)
{
        while (start && tree->text[start - 1] != '\n')
                start--;
        while (tree->text[start] == ' ' || tree->text[start] == '\t' || tree->text[start] == '\f')
                start++;
        return indent_of(tree, start);
}

static bool is_clause(unsigned kind)
{
        return kind == PY_ELSE || kind == PY_ELIF || kind == PY_EXCEPT || kind == PY_EXCEPT_GROUP || kind == PY_FINALLY;
}

static bool is_compound(unsigned kind)
{
        return kind == PY_IF || kind == PY_FOR || kind == PY_WHILE || kind == PY_TRY || kind == PY_WITH ||
                kind == PY_FUNCTION || kind == PY_CLASS || kind == PY_DECORATED || kind == PY_MATCH;
}

/* Whether a line feed or a semicolon parts two statements. */
static bool is_parted(const struct tree *tree, uint32_t from, uint32_t to)
{
        for (uint32_t i = from ? from - 1 : 0; i < to; i++)
                if (tree->text[i] == '\n' || tree->text[i] == ';')
                        return true;
        return false;
}

/* The statements of a block or of the module: in one column, and further in than the owner of the block. */
static void check_block(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool module = at == 0, any = false;
        const struct node *above = &tree->nodes[tree->nodes[at].parent];
        struct indent outer = { -1, -1 }, first = { module ? 0 : -1, module ? 0 : -1 };
        if (!module)
                outer = indent_of_line(tree, above->start);
        uint32_t before = 0;
        for (uint32_t child = tree->nodes[at].child; child; child = tree->nodes[child].next) {
                const struct node *node = &tree->nodes[child];
                if (node->kind == PY_COMMENT || node->token)
                        continue;
                struct indent indent = indent_of(tree, node->start);
                if (indent.width < 0 && ((any && !is_parted(tree, before, node->start)) || is_compound(node->kind)))
                        facts_break(facts, node->start, "invalid syntax");
                any = true;
                before = node->end;
                if (indent.width < 0)
                        continue;   /* behind a colon or a semicolon */
                if (indent.width <= outer.width)
                        facts_break(facts, node->start, "expected an indented block");
                if (first.width < 0)
                        first = indent;
                else if (indent.width > first.width)
                        facts_break(facts, node->start, "unexpected indent");
                else if (indent.width < first.width)
                        facts_break(facts, node->start, "unindent does not match any outer indentation level");
                if (indent.narrow != first.narrow || indent.narrow <= outer.narrow)
                        facts_break(facts, node->start, "inconsistent use of tabs and spaces in indentation");
        }
        if (!module && !any)
                facts_break(facts, tree->nodes[at].start, "expected an indented block");
}

static void check_indents(struct facts *facts, const struct tree *tree)
{
        check_block(facts, tree, 0);
        for (uint32_t at = 1; at < tree->n; at++) {
                const struct node *node = &tree->nodes[at];
                if (node->kind == PY_BLOCK)
                        check_block(facts, tree, at);
                if (!is_clause(node->kind))
                        continue;
                struct indent indent = indent_of(tree, node->start),
                              outer = indent_of_line(tree, tree->nodes[node->parent].start);
                if (indent.width >= 0 && indent.width != outer.width)
                        facts_break(facts, node->start, "unindent does not match any outer indentation level");
                if (indent.width >= 0 && indent.narrow != outer.narrow)
                        facts_break(facts, node->start, "inconsistent use of tabs and spaces in indentation");
        }
}

/* ---- lines ---- */

static bool is_body(unsigned kind)
{
        return kind == PY_MODULE || kind == PY_BLOCK || kind == PY_DECORATED;
}

/*
 * A line feed in a node's own text, outside of brackets and before the colon of its block.  `inside` tells for each
 * child whether the child stands in brackets.
 */
static void check_own_lines(struct facts *facts, const struct tree *tree, uint32_t at, bool *inside)
{
        unsigned kind = tree->nodes[at].kind, depth = 0;
        uint32_t from = tree->nodes[at].start, feed = 0;
        bool fed = false, headed = is_body(kind), clause = is_compound(kind) || is_clause(kind) || kind == PY_CASE;
        for (uint32_t child = tree->nodes[at].child;; child = tree->nodes[child].next) {
                uint32_t to = child ? tree->nodes[child].start : tree->nodes[at].end;
                for (; from < to; from++) {
                        char c = tree->text[from];
                        bool blank = c == ' ' || c == '\t' || c == '\f' || c == '\n';
                        if (fed && !blank)
                                break;
                        depth += c == '(' || c == '[' || c == '{';
                        depth -= depth && (c == ')' || c == ']' || c == '}');
                        headed = headed || (clause && c == ':' && !depth);
                        if (c == '\n' && !depth && !headed && !(from && tree->text[from - 1] == '\\'))
                                feed = from, fed = true;
                }
                if (fed && (child || from < to)) {
                        facts_break(facts, feed, "invalid syntax");
                        return;
                }
                if (!child)
                        return;
                inside[child] = depth > 0;
                from = tree->nodes[child].end;
        }
}

/* Statements end where their line does, unless a bracket is open; to the grammar a line feed is a blank. */
static void check_lines(struct facts *facts, const struct tree *tree)
{
        bool *inside = arena_alloc(facts->arena, tree->n * sizeof *inside);
        for (uint32_t at = 0; at < tree->n && !facts->broken; at++) {
                const struct node *node = &tree->nodes[at];
                inside[at] = inside[at] || (at && inside[node->parent]);
                if (inside[at] || !node->child)
                        continue;
                if (node->kind == PY_STRING || !memchr(tree->text + node->start, '\n', node->end - node->start))
                        inside[at] = true;
                else
                        check_own_lines(facts, tree, at, inside);
        }
}

/* A backslash at the end, behind which nothing comes. */
static void check_end(struct facts *facts, const struct tree *tree)
{
        uint32_t end = (uint32_t)tree->len, last = 0;
        while (end &&
                (tree->text[end - 1] == ' ' || tree->text[end - 1] == '\t' || tree->text[end - 1] == '\n' ||
                        tree->text[end - 1] == '\f'))
                end--;
        for (uint32_t child = tree->nodes[0].child; child; child = tree->nodes[child].next)
                last = child;
        if (end && tree->text[end - 1] == '\\' &&
                (!last || tree->nodes[deepest(tree, last, end - 1)].kind != PY_COMMENT))
                facts_break(facts, end - 1, "unexpected EOF while parsing");
}

void python_check(struct facts *facts, const struct tree *tree)
{
        if (tree->broken)
                facts_break(facts, tree->broken_at, "invalid syntax");
        check_depth(facts, tree);
        for (uint32_t at = 0; at < tree->n; at++)
                check_node(facts, tree, at);
        check_blanks(facts, tree);
        check_end(facts, tree);
        check_lines(facts, tree);
        check_indents(facts, tree);
}

/* ---- doubts ---- */

/*
 * Code accepted by the grammar, but perhaps not by the compiler of the interpreter or by its version: await outside of
 * a coroutine, a repeated parameter, types with parameters.  Such code only raises a doubt, and the interpreter
 * decides.  A needless doubt costs the interpreter's time, so common code raises none.
 */

#define KIND(tree, at) ((tree)->nodes[at].kind)
#define LIST_LONG 64               /* parameters or arguments; longer lists are not compared */
#define NESTED_DEEP 10             /* nested statements: the interpreter allows 20, and some statements count twice */
#define DIGITS_MAX 4300            /* of a decimal number */

struct doubts {
        struct facts *facts;
        const struct tree *tree;
        uint64_t work;                 /* steps left; at zero the program is doubtful */
};

static bool step(struct doubts *d)
{
        if (d->work)
                d->work--;
        return d->work > 0;
}

static bool same_word(struct doubts *d, uint32_t a, uint32_t b)
{
        const struct node *x = &d->tree->nodes[a], *y = &d->tree->nodes[b];
        return step(d) && x->end - x->start == y->end - y->start &&
                memcmp(d->tree->text + x->start, d->tree->text + y->start, x->end - x->start) == 0;
}

static bool is_word(const struct tree *tree, uint32_t at, const char *word)
{
        size_t len = strlen(word);
        return tree->nodes[at].end - tree->nodes[at].start == len &&
                memcmp(tree->text + tree->nodes[at].start, word, len) == 0;
}

static bool is_async(const struct tree *tree, uint32_t at)
{
        return tree->nodes[at].end - tree->nodes[at].start > 5 &&
                memcmp(tree->text + tree->nodes[at].start, "async", 5) == 0;
}

/* ---- places ---- */

enum { WAY_COMPREHENSION = 1, WAY_TYPE = 2 };

/* The function, lambda or class around a node, 0 for the module; `ret_way` gets the kinds between. */
static uint32_t scope_of(struct doubts *d, uint32_t at, unsigned *ret_way)
{
        *ret_way = 0;
        while (at && step(d)) {
                uint32_t below = at;
                at = d->tree->nodes[at].parent;
                unsigned kind = KIND(d->tree, at);
                if (kind == PY_LIST_COMPREHENSION || kind == PY_SET_COMPREHENSION || kind == PY_DICT_COMPREHENSION ||
                        kind == PY_GENERATOR)
                        *ret_way |= WAY_COMPREHENSION;
                else if (kind == PY_TYPE)
                        *ret_way |= WAY_TYPE;
                else if ((kind == PY_FUNCTION || kind == PY_LAMBDA || kind == PY_CLASS) &&
                        d->tree->nodes[below].field == PYF_body)
                        return at;
        }
        return 0;
}

/* await, and clauses with async. */
static bool is_odd_await(struct doubts *d, uint32_t at)
{
        unsigned way;
        uint32_t scope = scope_of(d, at, &way);
        return KIND(d->tree, scope) != PY_FUNCTION || !is_async(d->tree, scope) || way & WAY_TYPE;
}

static bool is_odd_yield(struct doubts *d, uint32_t at)
{
        unsigned way, kind;
        uint32_t scope = scope_of(d, at, &way);
        kind = KIND(d->tree, scope);
        return way || (kind != PY_FUNCTION && kind != PY_LAMBDA) || is_async(d->tree, scope);
}

static bool is_odd_naming(struct doubts *d, uint32_t at)
{
        unsigned way;
        do
                at = scope_of(d, at, &way);
        while (!way && KIND(d->tree, at) == PY_LAMBDA);
        return way != 0;
}

static bool is_inside(struct doubts *d, uint32_t at)
{
        unsigned way;
        return scope_of(d, at, &way) != 0;
}

/* Loops and the like in each other. */
static bool is_deep(struct doubts *d, uint32_t at)
{
        unsigned n = 0;
        for (; at && step(d) && KIND(d->tree, at) != PY_FUNCTION; at = d->tree->nodes[at].parent) {
                unsigned kind = KIND(d->tree, at);
                n += kind == PY_FOR || kind == PY_WHILE || kind == PY_TRY || kind == PY_WITH;
        }
        return n >= NESTED_DEEP;
}

/* ---- names ---- */

/* A global name with a use before its global statement, or with a type. */
static bool is_odd_global(struct doubts *d, uint32_t at)
{
        const struct tree *tree = d->tree;
        unsigned way;
        uint32_t scope = scope_of(d, at, &way), end = scope ? tree->nodes[scope].end : (uint32_t)tree->len;
        for (uint32_t name = tree_kind(tree, at, PY_IDENTIFIER); name; name = tree->nodes[name].next)
                for (uint32_t other = scope; other < tree->n && tree->nodes[other].start < end && step(d); other++) {
                        bool before = other < at,
                             typed = tree->nodes[other].field == PYF_left &&
                                tree_field(tree, tree->nodes[other].parent, PYF_type);
                        if (KIND(tree, other) == PY_IDENTIFIER && (before || typed) && same_word(d, name, other))
                                return true;
                }
        return false;
}

static uint32_t name_of(const struct tree *tree, uint32_t at)
{
        for (;;) {
                unsigned kind = KIND(tree, at);
                if (kind == PY_TYPED || kind == PY_SPLAT_PATTERN || kind == PY_DICT_SPLAT_PATTERN)
                        at = tree->nodes[at].child;
                else if (kind == PY_DEFAULT || kind == PY_TYPED_DEFAULT || kind == PY_KEYWORD)
                        at = tree_field(tree, at, PYF_name);
                else
                        return kind == PY_IDENTIFIER ? at : 0;
        }
}

/* Repeated parameters, or repeated keyword arguments. */
static bool has_repeated(struct doubts *d, uint32_t list)
{
        const struct tree *tree = d->tree;
        struct name { const char *text; size_t len; } names[LIST_LONG];
        bool call = KIND(tree, list) == PY_ARGUMENTS;
        size_t n = 0;
        for (uint32_t child = tree->nodes[list].child; child; child = tree->nodes[child].next) {
                uint32_t at = call && KIND(tree, child) != PY_KEYWORD ? 0 : name_of(tree, child);
                if (!at)
                        continue;
                if (n == LIST_LONG)
                        return true;
                struct name *name = &names[n++];
                name->text = unicode_normal(d->facts->arena, tree->text + tree->nodes[at].start,
                        tree->nodes[at].end - tree->nodes[at].start, &name->len);
                for (size_t i = 0; i + 1 < n; i++)
                        if (names[i].len == name->len && memcmp(names[i].text, name->text, name->len) == 0)
                                return true;
        }
        return false;
}

/* ---- statements ---- */

static bool is_docstring(const struct tree *tree, uint32_t statement)
{
        uint32_t of = KIND(tree, statement) == PY_STATEMENT ? tree->nodes[statement].child : 0;
        const char *text = tree->text + tree->nodes[of].start;
        if (!of || KIND(tree, of) != PY_STRING || tree->nodes[of].next)
                return false;
        return strspn(text, "rRuU") == strcspn(text, "'\"");
}

/* A __future__ import after a statement other than a docstring, or of a feature not in all versions. */
static bool is_odd_future(const struct tree *tree, uint32_t at)
{
        static const char *const known[] = { "annotations", "print_function", "division", "absolute_import",
                "unicode_literals", "with_statement", "generators", "nested_scopes", "generator_stop" };
        if (tree->nodes[at].parent)
                return true;
        for (uint32_t before = tree->nodes[0].child; before != at; before = tree->nodes[before].next)
                if (KIND(tree, before) != PY_COMMENT && KIND(tree, before) != PY_FUTURE && !is_docstring(tree, before))
                        return true;
        for (uint32_t child = tree->nodes[at].child; child; child = tree->nodes[child].next) {
                uint32_t name = KIND(tree, child) == PY_ALIASED ? tree_field(tree, child, PYF_name) : child;
                size_t i = 0;
                while (i < ARRAY_LEN(known) && !is_word(tree, name, known[i]))
                        i++;
                if (i == ARRAY_LEN(known) && KIND(tree, child) != PY_COMMENT)
                        return true;
        }
        return false;
}

/* "except:" before another except clause. */
static bool is_early_except(const struct tree *tree, uint32_t at)
{
        uint32_t first = tree->nodes[at].child, next = tree->nodes[at].next;
        while (first && KIND(tree, first) == PY_COMMENT)
                first = tree->nodes[first].next;
        while (next && KIND(tree, next) == PY_COMMENT)
                next = tree->nodes[next].next;
        return KIND(tree, first) == PY_BLOCK && next && KIND(tree, next) == PY_EXCEPT;
}

/* A star outside of a list, a call or the head of a function, or a second star in a target. */
static bool is_odd_star(struct doubts *d, uint32_t at)
{
        const struct tree *tree = d->tree;
        uint32_t parent = tree->nodes[at].parent;
        unsigned above = KIND(tree, parent);
        if (KIND(tree, at) == PY_LIST_SPLAT) {
                while ((above == PY_LIST || above == PY_TUPLE) && step(d))
                        above = KIND(tree, parent = tree->nodes[parent].parent);
                return above == PY_AS_TARGET || above == PY_DELETE ||
                        (tree->nodes[at].parent == parent && above != PY_ARGUMENTS && above != PY_SET &&
                                above != PY_EXPRESSIONS);
        }
        if (above == PY_PARAMETERS || above == PY_LAMBDA_PARAMETERS || above == PY_TYPED)
                return false;
        return (above != PY_PATTERN_LIST && above != PY_TUPLE_PATTERN && above != PY_LIST_PATTERN) ||
                tree_kind(tree, parent, PY_SPLAT_PATTERN) != at;
}

/* ---- texts ---- */

/* Before Python 3.12 an expression in a text has none of its quotes, no backslash, no comment and no line feed. */
static bool is_odd_hole(struct doubts *d, uint32_t at)
{
        const struct tree *tree = d->tree;
        const struct node *node = &tree->nodes[at];
        uint32_t start = tree_kind(tree, node->parent, PY_STRING_START);
        if (KIND(tree, node->parent) != PY_STRING || !start)
                return KIND(tree, at) == PY_FORMAT_EXPRESSION && tree_kind(tree, at, PY_FORMAT);
        const char *end = tree->text + tree->nodes[start].end;
        size_t quotes =
                end[-1] == end[-2] && end[-2] == end[-3] && tree->nodes[start].end - tree->nodes[start].start >= 3 ? 3
                                                                                                                   : 1;
        size_t len = node->end - node->start;
        if (d->work <= len)
                return true;
        d->work -= len;
        const char *text = tree->text + node->start;
        return memchr(text, '\\', len) || memchr(text, '#', len) || memmem(text, len, end - quotes, quotes) ||
                (quotes == 1 && memchr(text, '\n', len));
}

/* ---- every doubt ---- */

static bool is_doubtful(struct doubts *d, uint32_t at)
{
        const struct tree *tree = d->tree;
        const struct node *node = &tree->nodes[at];
        switch (node->kind) {
        case PY_NONLOCAL: case PY_EXCEPT_GROUP: case PY_MATCH: case PY_TYPE_ALIAS: return !node->token;
        case PY_AWAIT: return is_odd_await(d, at);
        case PY_FOR: case PY_WITH: return (is_async(tree, at) && is_odd_await(d, at)) || is_deep(d, at);
        case PY_WHILE: case PY_TRY: return is_deep(d, at);
        case PY_FOR_IN: return is_async(tree, at) && is_odd_await(d, at);
        case PY_YIELD: return !node->token && is_odd_yield(d, at);
        case PY_NAMED: return is_odd_naming(d, at);
        case PY_GLOBAL: return is_odd_global(d, at);
        case PY_IDENTIFIER: return node->end - node->start == 9 && is_word(tree, at, "__debug__");
        case PY_WILDCARD: return is_inside(d, at);
        case PY_FUTURE: return is_odd_future(tree, at);
        case PY_PARAMETERS: case PY_LAMBDA_PARAMETERS: case PY_ARGUMENTS: return has_repeated(d, at);
        case PY_TYPE_PARAMETER: return KIND(tree, node->parent) == PY_FUNCTION || KIND(tree, node->parent) == PY_CLASS;
        case PY_EXCEPT: return is_early_except(tree, at);
        case PY_GENERATOR: return KIND(tree, node->parent) == PY_CLASS;
        case PY_SPLAT_PATTERN: case PY_LIST_SPLAT: return is_odd_star(d, at);
        case PY_INTERPOLATION: case PY_FORMAT_EXPRESSION: return is_odd_hole(d, at);
        case PY_INTEGER: return node->end - node->start > DIGITS_MAX;
        default: return false;
        }
}

bool python_is_doubtful(struct facts *facts, const struct tree *tree)
{
        struct doubts d = { facts, tree, 100000 + 50 * (uint64_t)tree->n };
        if (memmem(tree->text, tree->len, "\\N{", 3))   /* a character by its name, and not all names are there */
                return true;
        for (uint32_t at = 0; at < tree->n; at++)
                if (is_doubtful(&d, at))
                        return true;
        return !d.work;
}
