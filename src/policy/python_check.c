/*
 * What the grammar lets pass and the interpreter does not: its grammar is that of an editor, which has to make the
 * best of what somebody is typing, and still knows Python 2.  Messages are the interpreter's.
 */
#include "policy/python.h"

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

static bool is_target(const struct tree *tree, uint32_t at)
{
        switch (tree->nodes[at].kind) {
        case PY_INTEGER: case PY_STRING: case PY_CONCATENATED: case PY_TRUE: case PY_FALSE: case PY_NONE: case PY_CALL: case PY_BINARY:
        case PY_LAMBDA: case PY_CONDITIONAL: case PY_DICTIONARY: case PY_BOOLEAN: case PY_UNARY:
                return false;
        default:
                return true;
        }
}

static void check_arguments(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool keyword = false;
        for (uint32_t arg = tree->nodes[at].child; arg; arg = tree->nodes[arg].next) {
                unsigned kind = tree->nodes[arg].kind;
                if (kind == PY_KEYWORD || kind == PY_DICT_SPLAT)
                        keyword = true;
                else if (keyword && kind != PY_LIST_SPLAT && kind != PY_COMMENT && !tree->nodes[arg].token)
                        facts_break(facts, tree->nodes[arg].start, "positional argument follows keyword argument");
        }
}

static void check_parameters(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool with_default = false, star = false;
        for (uint32_t p = tree->nodes[at].child; p; p = tree->nodes[p].next) {
                unsigned kind = tree->nodes[p].kind;
                if (kind == PY_DEFAULT || kind == PY_TYPED_DEFAULT)
                        with_default = true;
                else if (kind == PY_IDENTIFIER || (kind == PY_TYPED && tree_kind(tree, p, PY_IDENTIFIER))) {
                        if (with_default && !star)
                                facts_break(facts, tree->nodes[p].start, "non-default argument follows default argument");
                } else if (kind != PY_COMMENT) {
                        star = star || tree->text[tree->nodes[p].start] == '*';
                }
        }
}

/* Quotes that do not close, and line feeds where only three quotes may have them. */
static void check_string(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t start = tree_kind(tree, at, PY_STRING_START), end = tree_kind(tree, at, PY_STRING_END);
        if (!start || !end)
                return;
        uint32_t quotes = tree->nodes[start].start;
        while (quotes < tree->nodes[start].end && tree->text[quotes] != '"' && tree->text[quotes] != '\'')
                quotes++;
        uint32_t n = tree->nodes[start].end - quotes;
        /* Backslashes at the end of a raw text are taken for a part of what ends it. */
        uint32_t last = tree->nodes[end].end;
        bool open = last < quotes + 2 * n || memcmp(tree->text + quotes, tree->text + last - n, n) != 0;
        for (uint32_t i = quotes + n; n == 1 && i < last - n && !open; i++)
                if (tree->text[i] == '\\')
                        i++;
                else
                        open = tree->text[i] == '\n';
        if (open)
                facts_break(facts, tree->nodes[at].start, n == 1 ? "unterminated string literal" : "unterminated triple-quoted string literal");
}

/* 2x is no number, and 1if is one before a keyword. */
static void check_number(struct facts *facts, const struct tree *tree, uint32_t at)
{
        static const char *const keywords[] = { "and", "else", "for", "if", "in", "is", "not", "or" };
        const struct node *node = &tree->nodes[at];
        if (node->end - node->start > 1 && tree->text[node->start] == '0' && tree->text[node->start + 1] >= '1' && tree->text[node->start + 1] <= '9')
                facts_break(facts, node->start, "leading zeros in decimal integer literals are not permitted; "
                                                "use an 0o prefix for octal integers");
        uint32_t to = node->end;
        while (to < tree->len && ((tree->text[to] | 0x20) >= 'a' && (tree->text[to] | 0x20) <= 'z'))
                to++;
        for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
                if (strlen(keywords[i]) == to - node->end && memcmp(keywords[i], tree->text + node->end, to - node->end) == 0)
                        return;
        if (to > node->end)
                facts_break(facts, node->start, "invalid decimal literal");
}

static void check_node(struct facts *facts, const struct tree *tree, uint32_t at)
{
        const struct node *node = &tree->nodes[at];
        uint32_t left;
        switch (node->kind) {
        case PY_PRINT:
                facts_break(facts, node->start, "Missing parentheses in call to 'print'. Did you mean print(...)?");
                break;
        case PY_EXEC:
                facts_break(facts, node->start, "Missing parentheses in call to 'exec'. Did you mean exec(...)?");
                break;
        case PY_RETURN: case PY_YIELD: case PY_BREAK: case PY_CONTINUE: case PY_NONLOCAL:
                check_place(facts, tree, at);
                break;
        case PY_ASSIGNMENT: case PY_AUGMENTED:
                left = tree_field(tree, at, PYF_left);
                if (left && !is_target(tree, left))
                        facts_break(facts, node->start, "cannot assign to expression here. Maybe you meant '==' instead of '='?");
                break;
        case PY_ARGUMENTS:
                check_arguments(facts, tree, at);
                break;
        case PY_PARAMETERS: case PY_LAMBDA_PARAMETERS:
                check_parameters(facts, tree, at);
                break;
        case PY_INTEGER:
                check_number(facts, tree, at);
                break;
        case PY_STRING:
                check_string(facts, tree, at);
                break;
        case PY_TYPE_ALIAS:
                /* Python 3.12 has these; `type(x).member = y` is taken for one, too. */
                for (left = node->start + 4; left < node->end && (tree->text[left] == ' ' || tree->text[left] == '\t');)
                        left++;
                if (left < node->end && tree->text[left] != '(')
                        facts_break(facts, node->start, "invalid syntax");
                break;
        default:
                break;
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

/* Blanks that the grammar skips and the interpreter has no token for. */
static void check_blanks(struct facts *facts, const struct tree *tree)
{
        static const char *const strange[] = { "\xef\xbb\xbf", "\xe2\x81\xa0", "\xe2\x80\x8b", "\v" };
        for (size_t s = 0; s < ARRAY_LEN(strange); s++) {
                size_t n = strlen(strange[s]);
                uint32_t top = tree->nodes[0].child;
                for (const char *at = tree->text; (at = memmem(at, tree->len - (size_t)(at - tree->text), strange[s], n)); at += n) {
                        uint32_t place = (uint32_t)(at - tree->text);
                        while (top && tree->nodes[top].end <= place)
                                top = tree->nodes[top].next;
                        unsigned kind = top ? tree->nodes[deepest(tree, top, place)].kind : PY_OTHER;
                        if (kind != PY_COMMENT && kind != PY_STRING && kind != PY_STRING_CONTENT && kind != PY_STRING_END) {
                                facts_break(facts, place, "invalid non-printable character");
                                break;
                        }
                }
        }
}

/* How deep brackets stand in each other, by the nodes that have them. */
static void check_depth(struct facts *facts, const struct tree *tree)
{
        uint32_t depth = 0, blocks = 0;
        for (uint32_t at = 0;;) {
                char open = tree->nodes[at].end > tree->nodes[at].start ? tree->text[tree->nodes[at].start] : 0;
                unsigned kind = tree->nodes[at].kind;
                bool bracket = kind != PY_STRING_CONTENT && kind != PY_COMMENT && (open == '(' || open == '[' || open == '{') &&
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
                        bracket = kind != PY_STRING_CONTENT && kind != PY_COMMENT && (open == '(' || open == '[' || open == '{') &&
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

/* The width of the blanks before a node, or -1 if something else stands before it in its line. */
static int64_t indent_of(const struct tree *tree, uint32_t start)
{
        uint32_t line = start;
        int64_t width = 0;
        while (line && (tree->text[line - 1] == ' ' || tree->text[line - 1] == '\t' || tree->text[line - 1] == '\f'))
                line--;
        if (line && tree->text[line - 1] != '\n')
                return -1;
        for (uint32_t i = line; i < start; i++)
                width = tree->text[i] == '\t' ? (width / 8 + 1) * 8 : tree->text[i] == '\f' ? 0 : width + 1;
        return width;
}

/* The same of the line in which it stands. */
static int64_t indent_of_line(const struct tree *tree, uint32_t start)
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

/* Two statements have a line feed or a semicolon between them. */
static bool is_parted(const struct tree *tree, uint32_t from, uint32_t to)
{
        for (uint32_t i = from ? from - 1 : 0; i < to; i++)
                if (tree->text[i] == '\n' || tree->text[i] == ';')
                        return true;
        return false;
}

/* The statements of a block or of the module: in one column, and further in than what they belong to. */
static void check_block(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool module = at == 0, any = false;
        const struct node *above = &tree->nodes[tree->nodes[at].parent];
        int64_t outer = module ? -1 : indent_of_line(tree, above->start), first = module ? 0 : -1;
        uint32_t before = 0;
        for (uint32_t child = tree->nodes[at].child; child; child = tree->nodes[child].next) {
                const struct node *node = &tree->nodes[child];
                if (node->kind == PY_COMMENT || node->token)
                        continue;
                int64_t width = indent_of(tree, node->start);
                if (any && width < 0 && !is_parted(tree, before, node->start))
                        facts_break(facts, node->start, "invalid syntax");
                any = true;
                before = node->end;
                if (width < 0)
                        continue;   /* behind a colon or a semicolon */
                if (width <= outer)
                        facts_break(facts, node->start, "expected an indented block");
                if (first < 0)
                        first = width;
                else if (width > first)
                        facts_break(facts, node->start, "unexpected indent");
                else if (width < first)
                        facts_break(facts, node->start, "unindent does not match any outer indentation level");
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
                int64_t width = is_clause(node->kind) ? indent_of(tree, node->start) : -1;
                if (width >= 0 && width != indent_of_line(tree, tree->nodes[node->parent].start))
                        facts_break(facts, node->start, "unindent does not match any outer indentation level");
        }
}

void python_check(struct facts *facts, const struct tree *tree)
{
        if (tree->broken)
                facts_break(facts, tree->broken_at, "invalid syntax");
        check_depth(facts, tree);
        for (uint32_t at = 0; at < tree->n; at++)
                check_node(facts, tree, at);
        check_blanks(facts, tree);
        check_indents(facts, tree);
}
