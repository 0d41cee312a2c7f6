/*
 * Errors accepted by the grammar and rejected by Node.js.  The grammar is made for editors: unfinished text passes.
 * Programs are scripts and modules at once here, so code right in either is right.
 */
#include "policy/javascript/javascript.h"

#include <ctype.h>
#include <utf8proc.h>

#define LABELS_LOOKED_AT 2000          /* nodes on the way out of a loop */

struct check {
        struct facts *facts;
        const struct tree *tree;
        uint32_t *function;            /* around each node; 0: none */
        uint8_t *around;               /* bits: */
};

enum { IN_LOOP = 1, IN_SWITCH = 2, IN_CLASS = 4, IN_METHOD = 8 };

static const struct node *node_at(const struct check *check, uint32_t at)
{
        return &check->tree->nodes[at];
}

static void wrong(const struct check *check, uint32_t at, const char *why)
{
        facts_break(check->facts, node_at(check, at)->start, why);
}

/* ---- words ---- */

static const char *const reserved[] = { "break", "case", "catch", "class", "const", "continue", "debugger", "default",
        "delete", "do", "else", "enum", "export", "extends", "false", "finally", "for", "function", "if", "import",
        "in", "instanceof", "new", "null", "return", "super", "switch", "this", "throw", "true", "try", "typeof", "var",
        "void", "while", "with", NULL };

static bool is_identifier(const char *text, size_t len)
{
        for (size_t i = 0; i < len;) {
                utf8proc_int32_t code;
                utf8proc_ssize_t step =
                        utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(len - i), &code);
                if (step <= 0)
                        return false;
                if (code < 0x80) {
                        if (!isalnum(code) && code != '_' && code != '$')
                                return false;
                } else {
                        utf8proc_category_t category = utf8proc_category(code);
                        bool start = (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) ||
                                category == UTF8PROC_CATEGORY_NL || (code >= 0x2118 && code <= 0x212e) ||
                                code == 0x309b || code == 0x309c;
                        bool later = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
                                category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_PC ||
                                code == 0x200c || code == 0x200d || code == 0xb7;
                        /* A character unknown to this version of Unicode may be any. */
                        if (!start && (!later || i == 0) && category != UTF8PROC_CATEGORY_CN)
                                return false;
                }
                i += (size_t)step;
        }
        return len > 0 && !isdigit((unsigned char)text[0]);
}

static void check_word(const struct check *check, uint32_t at)
{
        const struct node *node = node_at(check, at);
        const char *text = check->tree->text + node->start;
        size_t len = node->end - node->start;
        unsigned above = node_at(check, node->parent)->kind;
        struct buf buf;
        if (node->kind == JS_PRIVATE)
                text++, len--;
        buf_init(&buf, len + 1);
        bool escaped = memchr(text, '\\', len);
        if (escaped && js_unescape(text, 0, len, true, &buf))
                text = buf.bytes, len = buf.len;
        bool plain = !escaped;
        for (size_t i = 0; i < len && plain; i++)
                plain = (unsigned char)text[i] < 0x80;
        if (!plain && !is_identifier(text, len))
                wrong(check, at, "SyntaxError: Invalid or unexpected token");
        /* import { default as x }, export { x as default }, export { default } from. */
        bool outside = above == JS_NAMESPACE_EXPORT || above == JS_EXPORT_NAME ||
                (above == JS_IMPORT_NAME && node->field == JSF_name &&
                        tree_field(check->tree, node->parent, JSF_alias));
        bool name = node->kind == JS_IDENTIFIER || node->kind == JS_SHORTHAND || node->kind == JS_SHORTHAND_PATTERN ||
                node->kind == JS_LABEL;
        for (size_t i = 0; name && !outside && reserved[i]; i++)
                if (js_is(reserved[i], text, len))
                        wrong(check, at, "SyntaxError: Unexpected token: a reserved word");
        buf_done(&buf);
}

/* ---- places ---- */

static bool is_loop(unsigned kind)
{
        return kind == JS_FOR || kind == JS_FOR_IN || kind == JS_WHILE || kind == JS_DO;
}

/* The surroundings of each node, from the surroundings of its parent. */
static void surroundings(struct check *check, struct arena *arena)
{
        const struct tree *tree = check->tree;
        check->function = arena_alloc(arena, tree->n * sizeof *check->function);
        check->around = arena_alloc(arena, tree->n);
        for (uint32_t at = 1; at < tree->n; at++) {
                uint32_t parent = tree->nodes[at].parent;
                unsigned above = tree->nodes[parent].kind;
                uint8_t around = check->around[parent];
                check->function[at] = check->function[parent];
                if (js_is_function(above) && tree->nodes[at].field != JSF_name) {
                        check->function[at] = parent;
                        around &= (uint8_t)~(IN_LOOP | IN_SWITCH);
                        if (above != JS_ARROW)
                                around &= (uint8_t)~IN_METHOD;
                        if (above == JS_METHOD)
                                around |= IN_METHOD;
                } else if (above == JS_CLASS_BODY) {
                        around = (around & (uint8_t)~(IN_LOOP | IN_SWITCH)) | IN_CLASS | IN_METHOD;
                        check->function[at] = parent;
                } else if (is_loop(above) && tree->nodes[at].field == JSF_body) {
                        around |= IN_LOOP;
                } else if (above == JS_SWITCH) {
                        around |= IN_SWITCH;
                }
                check->around[at] = around;
        }
}

static bool has_label(const struct check *check, uint32_t at, uint32_t label)
{
        const struct node *wanted = node_at(check, label);
        size_t len = wanted->end - wanted->start;
        unsigned looks = LABELS_LOOKED_AT;
        for (uint32_t up = node_at(check, at)->parent; up && looks; up = node_at(check, up)->parent, looks--) {
                if (js_is_function(node_at(check, up)->kind))
                        return false;
                uint32_t name = node_at(check, up)->kind == JS_LABELED ? tree_field(check->tree, up, JSF_label) : 0;
                const struct node *n = node_at(check, name);
                if (name && n->end - n->start == len &&
                        memcmp(check->tree->text + n->start, check->tree->text + wanted->start, len) == 0)
                        return true;
        }
        return !looks;
}

static void check_jump(const struct check *check, uint32_t at)
{
        uint32_t label = tree_field(check->tree, at, JSF_label);
        bool breaks = node_at(check, at)->kind == JS_BREAK;
        if (label && !has_label(check, at, label))
                wrong(check, at, "SyntaxError: Undefined label");
        if (!label && !(check->around[at] & (breaks ? IN_LOOP | IN_SWITCH : IN_LOOP)))
                wrong(check, at,
                        breaks ? "SyntaxError: Illegal break statement"
                               : "SyntaxError: Illegal continue statement: no surrounding iteration statement");
}

/* `await (x)` and `yield (x)` outside of their functions are calls of functions with such names. */
static bool may_be_call(const struct check *check, uint32_t at)
{
        uint32_t operand = js_first(check->tree, at);
        return !operand || strchr("([+-`/", check->tree->text[node_at(check, operand)->start]);
}

static void check_await(const struct check *check, uint32_t at)
{
        uint32_t function = check->function[at];
        bool async = !function ||
                (js_is_function(node_at(check, function)->kind) && js_has_word(check->tree, function, "async"));
        if (!async && !may_be_call(check, at))
                wrong(check, at,
                        "SyntaxError: await is only valid in async functions and the top level bodies of modules");
}

static void check_yield(const struct check *check, uint32_t at)
{
        uint32_t function = check->function[at];
        if (!(function && js_is_function(node_at(check, function)->kind) && js_has_word(check->tree, function, "*")) &&
                !may_be_call(check, at))
                wrong(check, at, "SyntaxError: Unexpected identifier: yield outside of a generator");
}

/* ---- statements ---- */

static void check_body(const struct check *check, uint32_t at)
{
        const struct node *node = node_at(check, at);
        unsigned above = node_at(check, node->parent)->kind;
        bool loop = is_loop(above) && node->field == JSF_body, with = above == JS_WITH && node->field == JSF_body;
        bool branch = (above == JS_IF && node->field == JSF_consequence) || above == JS_ELSE;
        bool labeled = above == JS_LABELED && node->field == JSF_body;
        bool function = node->kind == JS_FUNCTION_DECLARATION || node->kind == JS_GENERATOR_DECLARATION;
        if (!loop && !with && !branch && !labeled)
                return;
        if (!function || loop || with || node->kind == JS_GENERATOR_DECLARATION)
                wrong(check, at, "SyntaxError: Lexical declaration cannot appear in a single-statement context");
}

static void check_declaration(const struct check *check, uint32_t at)
{
        uint32_t kind = tree_field(check->tree, at, JSF_kind);
        bool constant = kind && js_text_is(check->tree, kind, "const");
        for (uint32_t d = js_first(check->tree, at); d; d = js_next(check->tree, d)) {
                uint32_t name = tree_field(check->tree, d, JSF_name);
                if (node_at(check, d)->kind != JS_DECLARATOR || tree_field(check->tree, d, JSF_value) || !name)
                        continue;
                if (node_at(check, name)->kind != JS_IDENTIFIER)
                        wrong(check, d, "SyntaxError: Missing initializer in destructuring declaration");
                else if (constant)
                        wrong(check, d, "SyntaxError: Missing initializer in const declaration");
        }
        for (uint32_t d = js_first(check->tree, at); d && node_at(check, at)->kind == JS_LEXICAL;
                d = js_next(check->tree, d)) {
                uint32_t name = tree_field(check->tree, d, JSF_name);
                if (name && js_text_is(check->tree, name, "let"))
                        wrong(check, name, "SyntaxError: let is disallowed as a lexically bound name");
        }
}

static bool starts_with(const struct check *check, uint32_t at, const char *word)
{
        const struct node *node = node_at(check, at);
        size_t len = strlen(word);
        if (node->end - node->start <= len || memcmp(check->tree->text + node->start, word, len) != 0)
                return false;
        char next = check->tree->text[node->start + len];
        return !isalnum((unsigned char)next) && next != '_' && next != '$' && next != '\\' &&
                (unsigned char)next < 0x80;
}

static bool is_first_kind(const struct check *check, uint32_t at, unsigned kind)
{
        uint32_t start = node_at(check, at)->start;
        for (at++; at < check->tree->n && node_at(check, at)->start == start; at++)
                if (node_at(check, at)->kind == kind && !node_at(check, at)->token)
                        return true;
        return false;
}

static void check_statement(const struct check *check, uint32_t at)
{
        char first = check->tree->text[node_at(check, at)->start];
        if ((starts_with(check, at, "function") || starts_with(check, at, "async")) &&
            (is_first_kind(check, at, JS_FUNCTION) || is_first_kind(check, at, JS_GENERATOR)))
                wrong(check, at, "SyntaxError: Function statements require a function name");
        else if (starts_with(check, at, "class") && is_first_kind(check, at, JS_CLASS))
                wrong(check, at, "SyntaxError: Unexpected token '{'");
        else if (first == '{')
                wrong(check, at, "SyntaxError: Unexpected token");
}

static void check_for_in(const struct check *check, uint32_t at)
{
        const struct tree *tree = check->tree;
        uint32_t operator= tree_field(tree, at, JSF_operator), right = tree_field(tree, at, JSF_right),
                 function = check->function[at];
        bool of = operator && js_text_is(tree, operator, "of");
        if (of && right && node_at(check, right)->kind == JS_SEQUENCE)
                wrong(check, right, "SyntaxError: Unexpected token ','");
        if (of && tree_field(tree, at, JSF_value))
                wrong(check, at, "SyntaxError: for-of loop variable declaration may not have an initializer.");
        if (js_has_word(tree, at, "await") && function && !js_has_word(tree, function, "async"))
                wrong(check, at, "SyntaxError: Unexpected reserved word");
}

static void check_switch(const struct check *check, uint32_t at)
{
        unsigned defaults = 0;
        for (uint32_t child = js_first(check->tree, at); child; child = js_next(check->tree, child))
                defaults += node_at(check, child)->kind == JS_DEFAULT_CASE;
        if (defaults > 1)
                wrong(check, at, "SyntaxError: More than one default clause in switch statement");
}

static void check_throw(const struct check *check, uint32_t at)
{
        uint32_t what = js_first(check->tree, at);
        const char *from = check->tree->text + node_at(check, at)->start;
        if (what && memchr(from, '\n', node_at(check, what)->start - node_at(check, at)->start))
                wrong(check, at, "SyntaxError: Illegal newline after throw");
}

/* ---- expressions ---- */

static bool is_target(const struct check *check, uint32_t at)
{
        at = js_bare(check->tree, at);
        unsigned kind = node_at(check, at)->kind;
        if (kind == JS_IDENTIFIER || kind == JS_UNDEFINED)
                return true;
        return (kind == JS_MEMBER || kind == JS_SUBSCRIPT) && !tree_field(check->tree, at, JSF_optional_chain);
}

static void check_target(const struct check *check, uint32_t at)
{
        unsigned kind = node_at(check, at)->kind;
        if (at && kind != JS_OBJECT_PATTERN && kind != JS_ARRAY_PATTERN && !is_target(check, at))
                wrong(check, at, "SyntaxError: Invalid left-hand side in assignment");
}

/* Behind an arrow function a new line begins a new statement. */
static bool has_line_end(const struct check *check, uint32_t at)
{
        for (uint32_t i = node_at(check, at)->end; i < check->tree->len && strchr(" \t\n", check->tree->text[i]); i++)
                if (check->tree->text[i] == '\n')
                        return true;
        return false;
}

static bool is_binary_of(const struct check *check, uint32_t at, const char *a, const char *b)
{
        uint32_t operator = at && node_at(check, at)->kind == JS_BINARY ? tree_field(check->tree, at, JSF_operator) : 0;
        return operator && (js_text_is(check->tree, operator, a) || js_text_is(check->tree, operator, b));
}

static void check_binary(const struct check *check, uint32_t at)
{
        const struct tree *tree = check->tree;
        uint32_t left = tree_field(tree, at, JSF_left),
                 right = tree_field(tree, at, JSF_right), operator= tree_field(tree, at, JSF_operator);
        if (!left || !right || !operator)
                return;
        if (js_text_is(tree, operator, "**") && node_at(check, left)->kind == JS_UNARY)
                wrong(check, at, "SyntaxError: Unary operator used immediately before exponentiation expression");
        bool either = is_binary_of(check, left, "||", "&&") || is_binary_of(check, right, "||", "&&");
        bool coalesce = is_binary_of(check, left, "??", "??") || is_binary_of(check, right, "??", "??");
        if ((js_text_is(tree, operator, "??") && either) ||
                ((js_text_is(tree, operator, "||") || js_text_is(tree, operator, "&&")) && coalesce))
                wrong(check, at, "SyntaxError: Unexpected token: ?? beside || or &&");
        if (node_at(check, left)->kind == JS_ARROW && !has_line_end(check, left))
                wrong(check, operator, "SyntaxError: Malformed arrow function parameter list");
}

/* f(,) and { , }: commas with nothing before. */
static void check_commas(const struct check *check, uint32_t at)
{
        bool something = false;
        for (uint32_t child = node_at(check, at)->child; child; child = node_at(check, child)->next) {
                const struct node *node = node_at(check, child);
                bool comma = node->token && check->tree->text[node->start] == ',';
                if (comma && !something)
                        wrong(check, child, "SyntaxError: Unexpected token ','");
                if (node->kind != JS_COMMENT)
                        something = !comma && !node->token;
        }
}

static void check_call(const struct check *check, uint32_t at)
{
        uint32_t function = tree_field(check->tree, at, JSF_function), object = tree_field(check->tree, at, JSF_object);
        uint32_t arrow = function ? function : object;
        if (arrow && node_at(check, arrow)->kind == JS_ARROW && !has_line_end(check, arrow))
                wrong(check, at, "SyntaxError: Malformed arrow function parameter list");
        if (function && node_at(check, function)->kind == JS_SUPER) {
                uint32_t method = check->function[at];
                while (method && node_at(check, method)->kind == JS_ARROW)
                        method = check->function[method];
                uint32_t name = method ? tree_field(check->tree, method, JSF_name) : 0;
                uint32_t class = method ? node_at(check, node_at(check, method)->parent)->parent : 0;
                bool quoted = name && node_at(check, name)->kind == JS_STRING;
                if (!name || node_at(check, method)->kind != JS_METHOD ||
                        (!quoted && !js_text_is(check->tree, name, "constructor")) || !class ||
                        !tree_kind(check->tree, class, JS_HERITAGE))
                        wrong(check, at, "SyntaxError: 'super' keyword unexpected here");
        }
}

/* The grammar lets blanks, and so line ends, stand before a closing quote. */
static void check_string(const struct check *check, uint32_t at)
{
        const struct node *node = node_at(check, at);
        for (uint32_t i = node->start; i < node->end; i++) {
                if (check->tree->text[i] == '\n')
                        wrong(check, at, "SyntaxError: Invalid or unexpected token");
                i += check->tree->text[i] == '\\';
        }
}

static void check_arrow(const struct check *check, uint32_t at)
{
        uint32_t before = 0;
        for (uint32_t child = node_at(check, at)->child; child; child = node_at(check, child)->next) {
                if (before && node_at(check, child)->token && js_text_is(check->tree, child, "=>") &&
                        has_line_end(check, before))
                        wrong(check, child, "SyntaxError: Unexpected token '=>'");
                before = child;
        }
}

/* In (a.b) => 1 the grammar takes a.b for the target of an assignment, as elsewhere. */
static void check_parameters(const struct check *check, uint32_t at)
{
        for (uint32_t p = js_first(check->tree, at); p; p = js_next(check->tree, p)) {
                uint32_t inner = node_at(check, p)->kind == JS_REST        ? js_first(check->tree, p)
                        : node_at(check, p)->kind == JS_ASSIGNMENT_PATTERN ? tree_field(check->tree, p, JSF_left)
                                                                           : p;
                if (node_at(check, inner)->kind == JS_MEMBER || node_at(check, inner)->kind == JS_SUBSCRIPT)
                        wrong(check, inner, "SyntaxError: Invalid destructuring assignment target");
        }
}

static void check_rest(const struct check *check, uint32_t at)
{
        const struct node *rest = node_at(check, at);
        for (uint32_t next = rest->next; next; next = node_at(check, next)->next)
                if (node_at(check, next)->token ? check->tree->text[node_at(check, next)->start] == ','
                                                : node_at(check, next)->kind != JS_COMMENT)
                        wrong(check, at, "SyntaxError: Rest element must be last element");
}

static void check_method(const struct check *check, uint32_t at)
{
        uint32_t parameters = tree_field(check->tree, at, JSF_parameters);
        unsigned n = 0;
        for (uint32_t p = parameters ? js_first(check->tree, parameters) : 0; p; p = js_next(check->tree, p))
                n++;
        if (n && js_has_word(check->tree, at, "get"))
                wrong(check, parameters, "SyntaxError: Getter must not have any formal parameters.");
        if (n != 1 && js_has_word(check->tree, at, "set"))
                wrong(check, parameters, "SyntaxError: Setter must have exactly one formal parameter.");
}

static void check_class(const struct check *check, uint32_t at)
{
        unsigned n = 0;
        for (uint32_t m = js_first(check->tree, at); m; m = js_next(check->tree, m)) {
                uint32_t name = node_at(check, m)->kind == JS_METHOD ? tree_field(check->tree, m, JSF_name) : 0;
                n += name && js_text_is(check->tree, name, "constructor") && !js_has_word(check->tree, m, "static");
                if (n > 1)
                        wrong(check, m, "SyntaxError: A class may only have one constructor");
        }
}

/* ---- names with # ---- */

static struct name private_name(const struct check *check, uint32_t at)
{
        const struct node *node = node_at(check, at);
        return (struct name){ check->tree->text + node->start, node->end - node->start };
}

static int by_name(const void *a, const void *b)
{
        const struct name *x = a, *y = b;
        int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
        return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

static bool declares(const struct check *check, uint32_t at)
{
        unsigned above = node_at(check, node_at(check, at)->parent)->kind;
        return node_at(check, at)->kind == JS_PRIVATE && (above == JS_FIELD || above == JS_METHOD);
}

/* A private name not declared by any class of the program. */
static void check_private(const struct check *check)
{
        struct name *names = NULL;
        size_t n = 0, size = 0;
        for (uint32_t at = 1; at < check->tree->n; at++)
                if (declares(check, at)) {
                        names = list_room(names, n, &size, sizeof *names);
                        names[n++] = private_name(check, at);
                }
        if (n)
                qsort(names, n, sizeof *names, by_name);
        for (uint32_t at = 1; at < check->tree->n; at++) {
                if (node_at(check, at)->kind != JS_PRIVATE)
                        continue;
                const struct name name = private_name(check, at);
                if (!memchr(name.text, '\\', name.len) && (!n || !bsearch(&name, names, n, sizeof name, by_name)))
                        wrong(check, at, "SyntaxError: Private field must be declared in an enclosing class");
        }
        free(names);
}

/* ---- regular expressions: errors of every engine ---- */

static bool is_quantifier(const char *text, size_t at, size_t end)
{
        if (text[at] == '*' || text[at] == '+' || text[at] == '?')
                return true;
        return text[at] == '{' && at + 1 < end && isdigit((unsigned char)text[at + 1]) &&
                memchr(text + at, '}', end - at);
}

static const char *regex_fault(const char *text, size_t at, size_t end)
{
        int depth = 0;
        bool atom = false;             /* an atom to repeat stands before */
        for (; at < end; at++) {
                switch (text[at]) {
                case '\\':
                        at++;
                        atom = true;
                        break;
                case '[':
                        for (at++; at < end && text[at] != ']'; at++)
                                at += text[at] == '\\';
                        atom = true;
                        break;
                case '(':
                        depth++;
                        atom = false;
                        if (at + 1 < end && text[at + 1] == '?')
                                at++;
                        break;
                case ')':
                        if (--depth < 0)
                                return "SyntaxError: Invalid regular expression: Unmatched ')'";
                        atom = true;
                        break;
                case '|': case '^': atom = false; break;
                default:
                        if (!is_quantifier(text, at, end)) {
                                atom = true;
                                break;
                        }
                        if (!atom)
                                return "SyntaxError: Invalid regular expression: Nothing to repeat";
                        if (text[at] == '{')
                                at = (size_t)((const char *)memchr(text + at, '}', end - at) - text);
                        if (at + 1 < end && text[at + 1] == '?')
                                at++;
                        atom = false;
                }
        }
        return depth ? "SyntaxError: Invalid regular expression: Unterminated group" : NULL;
}

static void check_regex(const struct check *check, uint32_t at)
{
        uint32_t pattern = tree_kind(check->tree, at, JS_REGEX_PATTERN),
                 flags = tree_kind(check->tree, at, JS_REGEX_FLAGS);
        const char *text = check->tree->text;
        unsigned seen = 0;
        for (uint32_t i = flags ? node_at(check, flags)->start : 0; flags && i < node_at(check, flags)->end; i++) {
                const char *known = "dgimsuvy", *flag = strchr(known, text[i]);
                if (!flag || seen & 1U << (flag - known))
                        wrong(check, flags, "SyntaxError: Invalid regular expression flags");
                else
                        seen |= 1U << (flag - known);
        }
        /* With the flag v, classes have classes inside. */
        const char *fault = pattern && !(seen & 1U << 6)
                ? regex_fault(text, node_at(check, pattern)->start, node_at(check, pattern)->end)
                : NULL;
        if (fault)
                wrong(check, at, fault);
}

/* ---- every node ---- */

static void check_node(const struct check *check, uint32_t at)
{
        const struct node *node = node_at(check, at);
        unsigned above = node_at(check, node->parent)->kind;
        switch (node->kind) {
        case JS_IDENTIFIER:
        case JS_SHORTHAND:
        case JS_SHORTHAND_PATTERN:
        case JS_LABEL:
        case JS_PROPERTY:
        case JS_PRIVATE:
                if (node->kind == JS_PRIVATE && !(check->around[at] & IN_CLASS))
                        wrong(check, at, "SyntaxError: Private field must be declared in an enclosing class");
                check_word(check, at);
                break;
        case JS_JSX: case JS_JSX_OPEN: case JS_JSX_SINGLE: wrong(check, at, "SyntaxError: Unexpected token '<'"); break;
        case JS_DECORATOR: wrong(check, at, "SyntaxError: Invalid or unexpected token"); break;
        case JS_BREAK: case JS_CONTINUE: check_jump(check, at); break;
        case JS_AWAIT: check_await(check, at); break;
        case JS_YIELD: check_yield(check, at); break;
        case JS_IMPORT: case JS_EXPORT:
                if (above != JS_PROGRAM && node_at(check, node_at(check, node->parent)->parent)->kind != JS_MODULE)
                        wrong(check, at,
                                node->kind == JS_IMPORT ? "SyntaxError: Cannot use import statement outside a module"
                                                        : "SyntaxError: Unexpected token 'export'");
                break;
        case JS_LEXICAL:
                check_body(check, at);
                check_declaration(check, at);
                break;
        case JS_VAR: check_declaration(check, at); break;
        case JS_CLASS_DECLARATION:
        case JS_FUNCTION_DECLARATION:
        case JS_GENERATOR_DECLARATION: check_body(check, at); break;
        case JS_STATEMENT: check_statement(check, at); break;
        case JS_FOR_IN:
                check_for_in(check, at);
                if (!tree_field(check->tree, at, JSF_kind))
                        check_target(check, tree_field(check->tree, at, JSF_left));
                break;
        case JS_SWITCH_BODY: check_switch(check, at); break;
        case JS_THROW: check_throw(check, at); break;
        case JS_TRY:
                if (!tree_field(check->tree, at, JSF_handler) && !tree_field(check->tree, at, JSF_finalizer))
                        wrong(check, at, "SyntaxError: Missing catch or finally after try");
                break;
        case JS_ASSIGNMENT: case JS_AUGMENTED: check_target(check, tree_field(check->tree, at, JSF_left)); break;
        case JS_UPDATE:
                if (!is_target(check, tree_field(check->tree, at, JSF_argument)))
                        wrong(check, at, "SyntaxError: Invalid left-hand side expression in postfix operation");
                break;
        case JS_BINARY: check_binary(check, at); break;
        case JS_ARGUMENTS: case JS_OBJECT: case JS_OBJECT_PATTERN: check_commas(check, at); break;
        case JS_CALL: case JS_MEMBER: check_call(check, at); break;
        case JS_SUPER:
                if (!(check->around[at] & IN_METHOD))
                        wrong(check, at, "SyntaxError: 'super' keyword unexpected here");
                break;
        case JS_STRING: check_string(check, at); break;
        case JS_ARROW: check_arrow(check, at); break;
        case JS_PARAMETERS: check_parameters(check, at); break;
        case JS_REST: check_rest(check, at); break;
        case JS_METHOD: check_method(check, at); break;
        case JS_CLASS_BODY: check_class(check, at); break;
        case JS_REGEX: check_regex(check, at); break;
        default: break;
        }
}

void js_check(struct facts *facts, const struct tree *tree)
{
        struct check check = { .facts = facts, .tree = tree };
        if (tree->broken)
                facts_break(facts, tree->broken_at, "SyntaxError: Invalid or unexpected token");
        surroundings(&check, facts->arena);
        for (uint32_t at = 1; at < tree->n && !facts->broken; at++)
                if (!tree->nodes[at].token)
                        check_node(&check, at);
        if (!facts->broken)
                check_private(&check);
}
