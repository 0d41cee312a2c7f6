/*
 * Nesting of expressions, targets, patterns and clauses; for syntax.c.  The grammar is generous: a star, "as" or := may
 * stand anywhere, and any expression may be assigned to or deleted.
 */
#include "policy/python/python.h"

#define KIND(tree, at) ((tree)->nodes[at].kind)

static void invalid(struct facts *facts, const struct tree *tree, uint32_t at, const char *why)
{
        facts_break(facts, tree->nodes[at].start, why ? why : "invalid syntax");
}

static uint32_t next_node(const struct tree *tree, uint32_t child)
{
        while (child && KIND(tree, child) == PY_COMMENT)
                child = tree->nodes[child].next;
        return child;
}

static uint32_t first_of(const struct tree *tree, uint32_t at)
{
        return next_node(tree, tree->nodes[at].child);
}

static uint32_t after(const struct tree *tree, uint32_t child)
{
        return next_node(tree, tree->nodes[child].next);
}

/* Signs of a node outside of its children. */
struct signs {
        uint32_t n;
        bool last;                     /* a sign stands behind the last child */
};

static struct signs signs_of(const struct tree *tree, uint32_t at, char sign)
{
        struct signs signs = { 0 };
        uint32_t from = tree->nodes[at].start;
        for (uint32_t child = tree->nodes[at].child;; child = tree->nodes[child].next) {
                uint32_t to = child ? tree->nodes[child].start : tree->nodes[at].end;
                if (!child || KIND(tree, child) != PY_COMMENT)
                        signs.last = signs.last && !child;
                for (; from < to; from++)
                        if (tree->text[from] == sign)
                                signs.n++, signs.last = true;
                if (!child)
                        return signs;
                signs.last = signs.last && KIND(tree, child) == PY_COMMENT;
                from = tree->nodes[child].end;
        }
}

/* ---- words ---- */

/* By their first letter. */
#define ON(letter) [(letter) - 'a']   /* NOLINT(bugprone-macro-parentheses): a designator */
static const char *const keywords[26][6] = {
        ON('a') = { "and", "as", "assert", "async", "await" },  ON('b') = { "break" },
        ON('c') = { "class", "continue" },                      ON('d') = { "def", "del" },
        ON('e') = { "elif", "else", "except" },                 ON('f') = { "finally", "for", "from", "False" },
        ON('g') = { "global" },                                 ON('i') = { "if", "import", "in", "is" },
        ON('l') = { "lambda" },                                 ON('n') = { "nonlocal", "not", "None" },
        ON('o') = { "or" },                                     ON('p') = { "pass" },
        ON('r') = { "raise", "return" },                        ON('t') = { "try", "True" },
        ON('w') = { "while", "with" },                          ON('y') = { "yield" },
};
#undef ON

static void check_word(struct facts *facts, const struct tree *tree, uint32_t at)
{
        const char *word = tree->text + tree->nodes[at].start;
        size_t len = tree->nodes[at].end - tree->nodes[at].start;
        unsigned letter = (unsigned)((unsigned char)word[0] | 0x20) - 'a';
        if (len < 2 || len > 8 || letter >= 26)
                return;
        for (const char *const *keyword = keywords[letter]; *keyword; keyword++)
                if (strlen(*keyword) == len && memcmp(*keyword, word, len) == 0)
                        invalid(facts, tree, at, NULL);
}

/* ---- expressions ---- */

/* Expressions that bind less than an operator. */
static bool is_loose(unsigned kind)
{
        return kind == PY_LAMBDA || kind == PY_CONDITIONAL || kind == PY_NAMED;
}

static void check_operands(struct facts *facts, const struct tree *tree, uint32_t at, unsigned n)
{
        for (uint32_t child = first_of(tree, at); child && n; child = after(tree, child)) {
                if (tree->nodes[child].token)
                        continue;
                if (is_loose(KIND(tree, child)))
                        invalid(facts, tree, child, NULL);
                n--;
        }
}

/* Whether := may stand there without brackets of its own. */
static bool may_name(const struct tree *tree, uint32_t at)
{
        uint32_t parent = tree->nodes[at].parent;
        unsigned field = tree->nodes[at].field;
        switch (KIND(tree, parent)) {
        case PY_PARENTHESES:
        case PY_TUPLE:
        case PY_LIST:
        case PY_SET:
        case PY_ARGUMENTS:
        case PY_DECORATOR:
        case PY_INTERPOLATION: return true;
        case PY_SUBSCRIPT: return field == PYF_subscript;
        case PY_IF: case PY_ELIF: case PY_WHILE: return field == PYF_condition;
        case PY_LIST_COMPREHENSION: case PY_SET_COMPREHENSION: case PY_GENERATOR: return field == PYF_body;
        case PY_MATCH: return field == PYF_subject;
        case PY_IF_CLAUSE: return KIND(tree, tree->nodes[parent].parent) == PY_CASE;
        case PY_TYPE: return KIND(tree, tree->nodes[parent].parent) == PY_TYPE_PARAMETER;
        case PY_WITH_ITEM: return tree->text[tree->nodes[tree->nodes[parent].parent].start] == '(';
        default: return false;
        }
}

static bool may_yield(const struct tree *tree, uint32_t at)
{
        unsigned above = KIND(tree, tree->nodes[at].parent);
        return above == PY_STATEMENT || above == PY_ASSIGNMENT || above == PY_AUGMENTED || above == PY_PARENTHESES ||
                above == PY_INTERPOLATION || above == PY_FORMAT_EXPRESSION;
}

static bool is_operator(unsigned kind)
{
        return kind == PY_COMPARISON || kind == PY_BOOLEAN || kind == PY_CONDITIONAL;
}

/* "*a.b(c) + d" is a star before a sum, but a sum of a star to the grammar. */
static bool may_be_starred(const struct tree *tree, uint32_t at)
{
        uint32_t start = tree->nodes[at].start, parent = tree->nodes[at].parent;
        bool tight = true;
        for (; parent && tree->nodes[parent].start == start; at = parent, parent = tree->nodes[at].parent) {
                unsigned kind = KIND(tree, parent);
                if (is_operator(kind))
                        tight = false;
                else if (kind != PY_BINARY && kind != PY_ATTRIBUTE && kind != PY_SUBSCRIPT && kind != PY_CALL)
                        break;
        }
        switch (KIND(tree, parent)) {
        case PY_ARGUMENTS: case PY_TYPE: case PY_EXCEPT: return true;
        case PY_LIST:
        case PY_TUPLE:
        case PY_SET:
        case PY_EXPRESSIONS:
        case PY_PATTERN_LIST:
        case PY_STATEMENT:
        case PY_RETURN:
        case PY_ASSIGNMENT:
        case PY_AUGMENTED: case PY_FOR: case PY_INTERPOLATION: case PY_FORMAT_EXPRESSION:
                return tight;
        case PY_PRINT: return tight && tree->nodes[at].field == PYF_argument;
        case PY_SUBSCRIPT: return tight && tree->nodes[at].field == PYF_subscript;
        case PY_YIELD: return tight && !signs_of(tree, parent, 'f').n;
        case PY_MATCH: return tight && signs_of(tree, parent, ',').n;
        case PY_AS_PATTERN:
                return KIND(tree, tree->nodes[parent].parent) == PY_EXCEPT ||
                        KIND(tree, tree->nodes[parent].parent) == PY_TUPLE;
        default: return false;
        }
}

static void check_splat(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t of = first_of(tree, at), parent = tree->nodes[at].parent;
        if (!may_be_starred(tree, at))
                invalid(facts, tree, at, "can't use starred expression here");
        if (KIND(tree, parent) != PY_ARGUMENTS &&
                (is_loose(KIND(tree, of)) || is_operator(KIND(tree, of)) || KIND(tree, of) == PY_NOT))
                invalid(facts, tree, of, NULL);
}

static void check_dict_splat(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t of = first_of(tree, at);
        unsigned kind = KIND(tree, of);
        if (KIND(tree, tree->nodes[at].parent) == PY_DICTIONARY &&
                (is_loose(kind) || is_operator(kind) || kind == PY_NOT))
                invalid(facts, tree, of, NULL);
}

/* [x for x in a, b] is Python 2, and the iterable has no bare lambda or if. */
static void check_for_in(struct facts *facts, const struct tree *tree, uint32_t at)
{
        unsigned n = 0;
        for (uint32_t child = first_of(tree, at); child; child = after(tree, child)) {
                if (tree->nodes[child].field != PYF_right)
                        continue;
                if (n++ || is_loose(KIND(tree, child)))
                        invalid(facts, tree, child, NULL);
        }
        if (signs_of(tree, at, ',').n)
                invalid(facts, tree, at, "Generator expression must be parenthesized");
}

static void check_await(struct facts *facts, const struct tree *tree, uint32_t at)
{
        unsigned of = KIND(tree, first_of(tree, at));
        if (of == PY_UNARY || of == PY_BINARY || of == PY_AWAIT)
                invalid(facts, tree, at, NULL);
}

static void check_comparison(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t from = tree->nodes[at].start;
        for (uint32_t child = tree->nodes[at].child; child; child = tree->nodes[child].next) {
                for (; from + 1 < tree->nodes[child].start; from++)
                        if (tree->text[from] == '<' && tree->text[from + 1] == '>')
                                invalid(facts, tree, child, NULL);
                from = tree->nodes[child].end;
        }
}

/* ---- targets ---- */

/*
 * Every part of a target written as an expression, of "del" and "with … as".  The walk has no recursion and opens only
 * lists, tuples and brackets.
 */
static void check_targets(struct facts *facts, const struct tree *tree, uint32_t top, bool starred)
{
        for (uint32_t at = top;;) {
                unsigned kind = KIND(tree, at);
                bool open = kind == PY_TUPLE || kind == PY_LIST || kind == PY_PARENTHESES || kind == PY_EXPRESSIONS ||
                        kind == PY_AS_TARGET || (kind == PY_LIST_SPLAT && starred);
                if (open && tree->nodes[at].child) {
                        at = tree->nodes[at].child;
                        continue;
                }
                if (!open && kind != PY_IDENTIFIER && kind != PY_ATTRIBUTE && kind != PY_SUBSCRIPT &&
                        kind != PY_COMMENT)
                        invalid(facts, tree, at, "cannot assign to or delete expression");
                while (at != top && !tree->nodes[at].next)
                        at = tree->nodes[at].parent;
                if (at == top)
                        return;
                at = tree->nodes[at].next;
        }
}

/* a, a.b, a[0], also in brackets: targets with a type, or with an operation in the assignment. */
static bool is_single(const struct tree *tree, uint32_t at)
{
        while (KIND(tree, at) == PY_TUPLE_PATTERN && first_of(tree, at) && !signs_of(tree, at, ',').n)
                at = first_of(tree, at);
        return KIND(tree, at) == PY_IDENTIFIER || KIND(tree, at) == PY_ATTRIBUTE || KIND(tree, at) == PY_SUBSCRIPT;
}

static bool is_target(const struct tree *tree, uint32_t at)
{
        switch (KIND(tree, at)) {
        case PY_INTEGER:
        case PY_STRING:
        case PY_CONCATENATED:
        case PY_TRUE:
        case PY_FALSE:
        case PY_NONE:
        case PY_CALL:
        case PY_BINARY:
        case PY_LAMBDA: case PY_CONDITIONAL: case PY_DICTIONARY: case PY_BOOLEAN: case PY_UNARY:
                return false;
        default:
                return true;
        }
}

static void check_assignment(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t left = tree_field(tree, at, PYF_left), right = tree_field(tree, at, PYF_right),
                 type = tree_field(tree, at, PYF_type);
        unsigned above = KIND(tree, tree->nodes[at].parent);
        bool augmented = KIND(tree, at) == PY_AUGMENTED,
             chained = KIND(tree, right) == PY_ASSIGNMENT || KIND(tree, right) == PY_AUGMENTED;
        if (left && !is_target(tree, left))
                invalid(facts, tree, at, "cannot assign to expression here. Maybe you meant '==' instead of '='?");
        if (left && (augmented || type) && !is_single(tree, left))
                invalid(facts, tree, at, augmented ? "this is an illegal expression for augmented assignment"
                                                   : "only single target (not tuple) can be annotated");
        if ((augmented || type) && (above == PY_ASSIGNMENT || above == PY_AUGMENTED || (right && chained)))
                invalid(facts, tree, at, NULL);
}

/* (*a) = b */
static void check_tuple_pattern(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t first = first_of(tree, at), parent = tree->nodes[at].parent;
        bool parameter = KIND(tree, parent) == PY_PARAMETERS || KIND(tree, parent) == PY_LAMBDA_PARAMETERS ||
                         (KIND(tree, parent) == PY_DEFAULT && tree->nodes[at].field == PYF_name);
        if (parameter)
                invalid(facts, tree, at, "Function parameters cannot be parenthesized");
        if (first && KIND(tree, first) == PY_CASE_PATTERN)
                first = first_of(tree, first);
        if (first && (KIND(tree, first) == PY_SPLAT_PATTERN || KIND(tree, first) == PY_SPLAT_CASE) &&
                !signs_of(tree, at, ',').n)
                invalid(facts, tree, at, "cannot use starred expression here");
}

/* x as y: in with, except and case, and nowhere else. */
static void check_as(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t parent = tree->nodes[at].parent, alias = tree_field(tree, at, PYF_alias);
        unsigned above = KIND(tree, parent);
        if (above == PY_CASE || above == PY_CASE_PATTERN) {
                uint32_t of = first_of(tree, at), name = of ? after(tree, of) : 0;
                bool nested = of && KIND(tree, first_of(tree, of)) == PY_AS_PATTERN;
                if (nested ||
                        (name && tree->nodes[name].end - tree->nodes[name].start == 1 &&
                                tree->text[tree->nodes[name].start] == '_'))
                        invalid(facts, tree, at, "cannot use '_' as a target");
                return;
        }
        if (above == PY_EXCEPT || above == PY_EXCEPT_GROUP) {
                uint32_t name = alias ? first_of(tree, alias) : 0;
                if (name && (KIND(tree, name) != PY_IDENTIFIER || after(tree, name)))
                        invalid(facts, tree, name, NULL);
                return;
        }
        /* "with a if b else c as d" is taken for "a if b else (c as d)". */
        while ((KIND(tree, parent) == PY_CONDITIONAL || KIND(tree, parent) == PY_LAMBDA) &&
                tree->nodes[parent].end == tree->nodes[at].end)
                parent = tree->nodes[parent].parent;
        bool whole = true;
        if (KIND(tree, parent) == PY_PARENTHESES || KIND(tree, parent) == PY_TUPLE) {   /* with (a as b): */
                parent = tree->nodes[parent].parent;
                whole = !after(tree, first_of(tree, tree->nodes[parent].parent));
        }
        if (KIND(tree, parent) != PY_WITH_ITEM || !whole)
                invalid(facts, tree, at, NULL);
        else if (alias)
                check_targets(facts, tree, alias, true);
}

/* ---- parameters and arguments ---- */

static void check_arguments(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool keyword = false, dict = false;
        uint32_t first = first_of(tree, at);
        for (uint32_t arg = first; arg; arg = after(tree, arg)) {
                unsigned kind = KIND(tree, arg);
                if (kind == PY_LIST_SPLAT && dict)
                        invalid(facts, tree, arg, "iterable argument unpacking follows keyword argument unpacking");
                if (kind == PY_KEYWORD || kind == PY_DICT_SPLAT)
                        keyword = true, dict = dict || kind == PY_DICT_SPLAT;
                else if (keyword && !python_is_starred(tree, arg) && !tree->nodes[arg].token)
                        invalid(facts, tree, arg, "positional argument follows keyword argument");
        }
        if (!first && signs_of(tree, at, ',').n)
                invalid(facts, tree, at, NULL);
}

enum parameter {
        PARAMETER_PLAIN,
        PARAMETER_DEFAULT,
        PARAMETER_SLASH,
        PARAMETER_BARE,
        PARAMETER_STAR,
        PARAMETER_DICT,
        PARAMETER_WRONG
};

static enum parameter parameter_of(const struct tree *tree, uint32_t at)
{
        unsigned kind = KIND(tree, at);
        if (kind == PY_TYPED) {
                at = first_of(tree, at);
                kind = KIND(tree, at);
        }
        if ((kind == PY_SPLAT_PATTERN || kind == PY_DICT_SPLAT_PATTERN) &&
                KIND(tree, first_of(tree, at)) != PY_IDENTIFIER)
                return PARAMETER_WRONG;
        switch (kind) {
        case PY_IDENTIFIER: return PARAMETER_PLAIN;
        case PY_DEFAULT: case PY_TYPED_DEFAULT: return PARAMETER_DEFAULT;
        case PY_POSITIONAL_SEPARATOR: return PARAMETER_SLASH;
        case PY_KEYWORD_SEPARATOR: return PARAMETER_BARE;
        case PY_SPLAT_PATTERN: return PARAMETER_STAR;
        case PY_DICT_SPLAT_PATTERN: return PARAMETER_DICT;
        default: return PARAMETER_WRONG;
        }
}

static void check_parameters(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool with_default = false, star = false, bare = false, slash = false, dict = false, any = false;
        for (uint32_t p = first_of(tree, at); p; p = after(tree, p)) {
                enum parameter what = parameter_of(tree, p);
                bool wrong = what == PARAMETER_WRONG || dict;
                switch (what) {
                case PARAMETER_PLAIN:
                        if (with_default && !star)
                                invalid(facts, tree, p, "non-default argument follows default argument");
                        bare = false;
                        break;
                case PARAMETER_DEFAULT: with_default = true; bare = false; break;
                case PARAMETER_SLASH: wrong = wrong || slash || star || !any; slash = true; break;
                case PARAMETER_BARE: case PARAMETER_STAR:
                        wrong = wrong || star;
                        star = true;
                        bare = what == PARAMETER_BARE;
                        break;
                case PARAMETER_DICT: wrong = wrong || bare; dict = true; break;
                default: break;
                }
                if (wrong)
                        invalid(facts, tree, p, NULL);
                any = true;
        }
        if (bare)
                invalid(facts, tree, at, "named arguments must follow bare *");
}

/* ---- statements ---- */

/* from a import b, without brackets; import a,; from a import b.c */
static void check_import(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool brackets = tree->text[tree->nodes[at].end - 1] == ')', plain = KIND(tree, at) == PY_IMPORT;
        uint32_t from = tree_field(tree, at, PYF_module_name);
        if (!brackets && signs_of(tree, at, ',').last)
                invalid(facts, tree, at, "trailing comma not allowed without surrounding parentheses");
        for (uint32_t child = first_of(tree, at); child && !plain; child = after(tree, child)) {
                uint32_t name = KIND(tree, child) == PY_ALIASED ? tree_field(tree, child, PYF_name) : child;
                if (child != from && KIND(tree, name) == PY_DOTTED && after(tree, first_of(tree, name)))
                        invalid(facts, tree, name, NULL);
        }
}

static void check_raise(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t what = first_of(tree, at);
        if (what && (KIND(tree, what) == PY_EXPRESSIONS || tree->nodes[what].field == PYF_cause))
                invalid(facts, tree, at, NULL);
}

static void check_assert(struct facts *facts, const struct tree *tree, uint32_t at)
{
        if (signs_of(tree, at, ',').n > 1)
                invalid(facts, tree, at, NULL);
}

static void check_except(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t alias = tree_field(tree, at, PYF_alias);
        if (signs_of(tree, at, ',').n)
                invalid(facts, tree, at, "multiple exception types must be parenthesized");
        if (alias && KIND(tree, alias) != PY_IDENTIFIER)
                invalid(facts, tree, alias, NULL);
}

static bool is_group(const struct tree *tree, uint32_t clause)
{
        uint32_t at = tree->nodes[clause].start + 6;
        while (at < tree->nodes[clause].end && (tree->text[at] == ' ' || tree->text[at] == '\t'))
                at++;
        return tree->text[at] == '*';
}

static void check_try(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t before = 0;
        for (uint32_t child = first_of(tree, at); child; child = after(tree, child)) {
                if (KIND(tree, child) != PY_EXCEPT && KIND(tree, child) != PY_EXCEPT_GROUP)
                        continue;
                if (before && is_group(tree, before) != is_group(tree, child))
                        invalid(facts, tree, child, "cannot have both 'except' and 'except*' on the same 'try'");
                before = child;
        }
}

static void check_with(struct facts *facts, const struct tree *tree, uint32_t clause)
{
        if (tree->text[tree->nodes[clause].start] != '(' || tree->text[tree->nodes[clause].end - 1] != ')')
                if (signs_of(tree, clause, ',').last)
                        invalid(facts, tree, clause, NULL);
}

/* Python 2's print; but "print >>f, x" is a tuple in Python 3. */
static void check_print(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t chevron = tree_kind(tree, at, PY_CHEVRON), of = chevron ? first_of(tree, chevron) : 0;
        if (!of || is_loose(KIND(tree, of)) || KIND(tree, of) == PY_NOT)
                invalid(facts, tree, at, "Missing parentheses in call to 'print'. Did you mean print(...)?");
}

/* "type X = y" of Python 3.12.  The grammar parses the assignments `type(x).member = y` and `type[x] = y` alike. */
static void check_type_alias(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t type = tree_field(tree, at, PYF_left), left = type ? first_of(tree, type) : 0;
        unsigned kind = left ? KIND(tree, left) : PY_OTHER;
        char first = left ? tree->text[tree->nodes[left].start] : 0;
        bool called = first == '(' && (kind == PY_ATTRIBUTE || kind == PY_SUBSCRIPT || kind == PY_MEMBER_TYPE);
        if (kind != PY_IDENTIFIER && kind != PY_GENERIC_TYPE && !called && (first != '[' || kind == PY_CALL))
                invalid(facts, tree, at, NULL);
}

/* A colon or a star in a type, which is only right between brackets. */
static void check_type(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t type = tree->nodes[at].parent, above = tree->nodes[type].parent;
        bool starred = KIND(tree, at) == PY_SPLAT_TYPE && KIND(tree, above) == PY_TYPED &&
                KIND(tree, first_of(tree, above)) == PY_SPLAT_PATTERN;
        if (KIND(tree, above) != PY_TYPE_PARAMETER && !starred)
                invalid(facts, tree, at, NULL);
}

/* ---- patterns of match ---- */

/* A keyword stands in the brackets of a class; "as" may stand between. */
static bool is_of_class(const struct tree *tree, uint32_t keyword)
{
        uint32_t above = tree->nodes[keyword].parent;
        while (KIND(tree, above) == PY_CASE_PATTERN || KIND(tree, above) == PY_AS_PATTERN)
                above = tree->nodes[above].parent;
        return KIND(tree, above) == PY_CLASS_PATTERN;
}

static void check_class_pattern(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool keyword = false;
        for (uint32_t child = first_of(tree, at); child; child = after(tree, child)) {
                uint32_t inner = KIND(tree, child) == PY_CASE_PATTERN ? first_of(tree, child) : 0;
                if (inner && KIND(tree, inner) == PY_AS_PATTERN)
                        inner = first_of(tree, first_of(tree, inner));
                if (KIND(tree, child) != PY_CASE_PATTERN)
                        continue;
                if (inner && KIND(tree, inner) == PY_KEYWORD_PATTERN)
                        keyword = true;
                else if (keyword)
                        invalid(facts, tree, child, "positional patterns follow keyword patterns");
        }
}

static void check_dict_pattern(struct facts *facts, const struct tree *tree, uint32_t at)
{
        bool rest = false;
        for (uint32_t child = first_of(tree, at); child; child = after(tree, child)) {
                unsigned kind = KIND(tree, child);
                if (rest)
                        invalid(facts, tree, child, NULL);
                rest = rest || kind == PY_SPLAT_CASE;
                if (tree->nodes[child].field != PYF_key ||
                        (tree->nodes[child].token && tree->text[tree->nodes[child].start] == '-'))
                        continue;
                bool constant = kind == PY_STRING || kind == PY_CONCATENATED || kind == PY_INTEGER ||
                        kind == PY_FLOAT || kind == PY_TRUE || kind == PY_FALSE || kind == PY_NONE ||
                        kind == PY_COMPLEX_PATTERN;
                if (!constant && (kind != PY_DOTTED || !after(tree, first_of(tree, child))))
                        invalid(facts, tree, child, NULL);
        }
}

static void check_splat_case(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t parent = tree->nodes[at].parent, start = tree->nodes[at].start;
        bool two = tree->text[start + 1] == '*';
        if (two) {
                uint32_t name = first_of(tree, at);
                if (KIND(tree, parent) != PY_DICT_PATTERN || !name)   /* **_ has no name */
                        invalid(facts, tree, at, NULL);
                return;
        }
        uint32_t list = tree->nodes[parent].parent;
        bool right = KIND(tree, list) == PY_LIST_PATTERN || KIND(tree, list) == PY_TUPLE_PATTERN ||
                     (KIND(tree, list) == PY_CASE && signs_of(tree, list, ',').n);
        if (KIND(tree, parent) != PY_CASE_PATTERN || !right)
                invalid(facts, tree, at, NULL);
}

static void check_complex(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t real = first_of(tree, at), imaginary = real ? after(tree, real) : 0;
        if (imaginary &&
                ((tree->text[tree->nodes[real].end - 1] | 0x20) == 'j' ||
                        (tree->text[tree->nodes[imaginary].end - 1] | 0x20) != 'j'))
                invalid(facts, tree, at, "imaginary number required in complex literal");
}

static void check_match(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t body = tree_field(tree, at, PYF_body);
        if (body && !tree_kind(tree, body, PY_CASE))
                invalid(facts, tree, at, "expected an indented block after 'match' statement");
}

static void check_pattern(struct facts *facts, const struct tree *tree, uint32_t at)
{
        switch (KIND(tree, at)) {
        case PY_KEYWORD_PATTERN:
                if (!is_of_class(tree, at))
                        invalid(facts, tree, at, NULL);
                break;
        case PY_CLASS_PATTERN: check_class_pattern(facts, tree, at); break;
        case PY_DICT_PATTERN: check_dict_pattern(facts, tree, at); break;
        case PY_SPLAT_CASE: check_splat_case(facts, tree, at); break;
        case PY_COMPLEX_PATTERN: check_complex(facts, tree, at); break;
        case PY_MATCH: check_match(facts, tree, at); break;
        default: break;
        }
}

/* ---- every node ---- */

static void check_expression(struct facts *facts, const struct tree *tree, uint32_t at)
{
        switch (KIND(tree, at)) {
        case PY_NAMED:
                if (!may_name(tree, at))
                        invalid(facts, tree, at, NULL);
                break;
        case PY_YIELD:
                if (!tree->nodes[at].token && !may_yield(tree, at))
                        invalid(facts, tree, at, NULL);
                break;
        case PY_BOOLEAN: case PY_CONDITIONAL: check_operands(facts, tree, at, 2); break;
        case PY_NOT: check_operands(facts, tree, at, 1); break;
        case PY_IF_CLAUSE:
                if (KIND(tree, tree->nodes[at].parent) != PY_CASE)
                        check_operands(facts, tree, at, 1);
                break;
        case PY_LIST_SPLAT: check_splat(facts, tree, at); break;
        case PY_DICT_SPLAT: check_dict_splat(facts, tree, at); break;
        case PY_TUPLE:
                if (first_of(tree, at) && !signs_of(tree, at, ',').n)   /* (*a) */
                        invalid(facts, tree, at, "cannot use starred expression here");
                break;
        case PY_DICTIONARY:
                if (!first_of(tree, at) && signs_of(tree, at, ',').n)
                        invalid(facts, tree, at, NULL);
                break;
        case PY_FOR_IN: check_for_in(facts, tree, at); break;
        case PY_AWAIT: check_await(facts, tree, at); break;
        case PY_COMPARISON: check_comparison(facts, tree, at); break;
        case PY_AS_PATTERN: check_as(facts, tree, at); break;
        case PY_SPLAT_TYPE: case PY_CONSTRAINED_TYPE: check_type(facts, tree, at); break;
        default: check_pattern(facts, tree, at); break;
        }
}

void python_check_form(struct facts *facts, const struct tree *tree, uint32_t at)
{
        uint32_t of;
        switch (KIND(tree, at)) {
        case PY_IDENTIFIER: check_word(facts, tree, at); break;
        case PY_ARGUMENTS: check_arguments(facts, tree, at); break;
        case PY_PARAMETERS: case PY_LAMBDA_PARAMETERS: check_parameters(facts, tree, at); break;
        case PY_ASSIGNMENT: case PY_AUGMENTED: check_assignment(facts, tree, at); break;
        case PY_TUPLE_PATTERN: check_tuple_pattern(facts, tree, at); break;
        case PY_DELETE:
                of = first_of(tree, at);
                if (of)
                        check_targets(facts, tree, of, false);
                break;
        case PY_IMPORT: case PY_IMPORT_FROM: case PY_FUTURE: check_import(facts, tree, at); break;
        case PY_RAISE: check_raise(facts, tree, at); break;
        case PY_ASSERT: check_assert(facts, tree, at); break;
        case PY_EXCEPT: case PY_EXCEPT_GROUP: check_except(facts, tree, at); break;
        case PY_TRY: check_try(facts, tree, at); break;
        case PY_WITH_CLAUSE: check_with(facts, tree, at); break;
        case PY_PRINT: check_print(facts, tree, at); break;
        case PY_TYPE_ALIAS: check_type_alias(facts, tree, at); break;
        default: check_expression(facts, tree, at); break;
        }
}
