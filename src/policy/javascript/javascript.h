/*
 * The analysis of JavaScript and TypeScript; shared by the files of this folder.
 *
 *   javascript.c  the program as Node.js reads it, and the order of the steps
 *   typescript.c  removes types from the tree of a TypeScript program, which leaves a JavaScript tree
 *   syntax.c      syntax errors that the grammar accepts and Node.js rejects
 *   scope.c       scopes, and the bindings of each name
 *   nodes.c       nodes of the tree, and names as the analysis compares them
 *   value.c       values, and alternatives of a value
 *   member.c      paths such as globalThis.eval or node:fs.promises: modules, members, items
 *   string.c      constant texts: escapes, and the methods that put texts together
 *   call.c        calls that take or return names: require, Reflect.get, call, apply, fromCharCode …
 *   eval.c        possible values of expressions
 *   facts.c       facts from values
 *
 * A name without a binding in the program is a member of globalThis.  Built-in modules of Node.js are node:NAME in each
 * way of importing, their submodules node:NAME.SUB; packages have their npm name.  As in the analysis of Python, values
 * are found bottom-up in rounds, without recursion.
 */
#ifndef POLICY_JAVASCRIPT_JAVASCRIPT_H
#define POLICY_JAVASCRIPT_JAVASCRIPT_H

#include "policy/analysis/facts.h"
#include "policy/analysis/symbols.h"

#define JS_KINDS_OF(X)                                                                                                 \
        X(PROGRAM, program) X(EXPORT, export_statement) X(EXPORT_CLAUSE, export_clause)                                \
        X(EXPORT_NAME, export_specifier) X(NAMESPACE_EXPORT, namespace_export) X(IMPORT_WORD, import)                  \
        X(IMPORT, import_statement) X(IMPORT_CLAUSE, import_clause) X(NAMESPACE, namespace_import)                     \
        X(NAMED_IMPORTS, named_imports) X(IMPORT_NAME, import_specifier) X(STATEMENT, expression_statement)            \
        X(VAR, variable_declaration) X(LEXICAL, lexical_declaration) X(DECLARATOR, variable_declarator)                \
        X(BLOCK, statement_block) X(ELSE, else_clause) X(IF, if_statement) X(SWITCH, switch_statement)                 \
        X(SWITCH_BODY, switch_body) X(DEFAULT_CASE, switch_default) X(FOR, for_statement)                              \
        X(FOR_IN, for_in_statement) X(WHILE, while_statement) X(DO, do_statement) X(TRY, try_statement)                \
        X(WITH, with_statement) X(BREAK, break_statement) X(CONTINUE, continue_statement)                              \
        X(RETURN, return_statement) X(THROW, throw_statement) X(LABELED, labeled_statement) X(CATCH, catch_clause)     \
        X(PAREN, parenthesized_expression) X(YIELD, yield_expression) X(OBJECT, object)                                \
        X(OBJECT_PATTERN, object_pattern) X(ASSIGNMENT_PATTERN, assignment_pattern)                                    \
        X(OBJECT_DEFAULT, object_assignment_pattern) X(ARRAY, array) X(ARRAY_PATTERN, array_pattern)                   \
        X(JSX, jsx_element) X(JSX_OPEN, jsx_opening_element) X(JSX_SINGLE, jsx_self_closing_element) X(CLASS, class)   \
        X(CLASS_DECLARATION, class_declaration) X(HERITAGE, class_heritage) X(FUNCTION, function_expression)           \
        X(FUNCTION_DECLARATION, function_declaration) X(GENERATOR, generator_function)                                 \
        X(GENERATOR_DECLARATION, generator_function_declaration) X(ARROW, arrow_function) X(CHAIN, optional_chain)     \
        X(CALL, call_expression) X(NEW, new_expression) X(AWAIT, await_expression) X(MEMBER, member_expression)        \
        X(SUBSCRIPT, subscript_expression) X(ASSIGNMENT, assignment_expression)                                        \
        X(AUGMENTED, augmented_assignment_expression) X(SPREAD, spread_element) X(TERNARY, ternary_expression)         \
        X(BINARY, binary_expression) X(UNARY, unary_expression) X(UPDATE, update_expression)                           \
        X(SEQUENCE, sequence_expression) X(STRING, string) X(TEMPLATE, template_string) X(FRAGMENT, string_fragment)   \
        X(ESCAPE, escape_sequence) X(HOLE, template_substitution) X(REGEX, regex) X(REGEX_PATTERN, regex_pattern)      \
        X(REGEX_FLAGS, regex_flags) X(NUMBER, number) X(IDENTIFIER, identifier) X(PROPERTY, property_identifier)       \
        X(PRIVATE, private_property_identifier) X(SHORTHAND, shorthand_property_identifier)                            \
        X(SHORTHAND_PATTERN, shorthand_property_identifier_pattern) X(LABEL, statement_identifier)                     \
        X(META, meta_property) X(THIS, this) X(SUPER, super) X(TRUE, true) X(FALSE, false) X(NULL, null)               \
        X(UNDEFINED, undefined) X(ARGUMENTS, arguments) X(DECORATOR, decorator) X(CLASS_BODY, class_body)              \
        X(FIELD, field_definition) X(PARAMETERS, formal_parameters) X(STATIC_BLOCK, class_static_block)                \
        X(REST, rest_pattern) X(METHOD, method_definition) X(PAIR, pair) X(PAIR_PATTERN, pair_pattern)                 \
        X(COMPUTED, computed_property_name) X(COMMENT, comment) X(HTML_COMMENT, html_comment) X(ERROR, ERROR)

/* The additional kinds of TypeScript's grammar. */
#define JS_TYPES_OF(X)                                                                                                 \
        X(TYPE_ANNOTATION, type_annotation) X(TYPE_ARGUMENTS, type_arguments) X(TYPE_PARAMETERS, type_parameters)      \
        X(ASSERTS_ANNOTATION, asserts_annotation) X(PREDICATE_ANNOTATION, type_predicate_annotation)                   \
        X(INTERFACE, interface_declaration) X(TYPE_ALIAS, type_alias_declaration) X(AMBIENT, ambient_declaration)      \
        X(FUNCTION_SIGNATURE, function_signature) X(METHOD_SIGNATURE, method_signature)                                \
        X(ABSTRACT_SIGNATURE, abstract_method_signature) X(INDEX_SIGNATURE, index_signature)                           \
        X(IMPLEMENTS, implements_clause) X(TYPE_NAME, type_identifier) X(PREDEFINED, predefined_type)                  \
        X(AS, as_expression) X(SATISFIES, satisfies_expression) X(NON_NULL, non_null_expression)                       \
        X(TYPE_ASSERTION, type_assertion) X(INSTANTIATION, instantiation_expression) X(EXTENDS, extends_clause)        \
        X(ABSTRACT_CLASS, abstract_class_declaration) X(TYPED_FIELD, public_field_definition)                          \
        X(REQUIRED_PARAMETER, required_parameter) X(OPTIONAL_PARAMETER, optional_parameter)                            \
        X(MODIFIER, accessibility_modifier) X(OVERRIDE, override_modifier) X(ENUM, enum_declaration)                   \
        X(ENUM_BODY, enum_body) X(ENUM_MEMBER, enum_assignment) X(SPACE, internal_module) X(MODULE, module)            \
        X(NESTED_NAME, nested_identifier) X(IMPORT_ALIAS, import_alias) X(IMPORT_REQUIRE, import_require_clause)       \
        X(OBJECT_TYPE, object_type) X(INTERFACE_BODY, interface_body)

#define JS_FIELDS_OF(X)                                                                                                \
        X(name) X(alias) X(source) X(value) X(body) X(parameters) X(parameter) X(function) X(arguments) X(object)      \
        X(property) X(index) X(operator) X(argument) X(condition) X(alternative) X(consequence) X(left) X(right)       \
        X(kind) X(key) X(label) X(constructor) X(declaration) X(handler) X(finalizer) X(optional_chain) X(pattern)

#define X(name, text) JS_##name,
enum js_kind {
        JS_OTHER,
        JS_KINDS_OF(X)
        JS_TYPES_OF(X)
        JS_IMPORT_TYPES,               /* import { type A } from "x": binds nothing, but loads x */
};
#undef X
#define X(name) JSF_##name,
enum js_field { JSF_NONE, JS_FIELDS_OF(X) };
#undef X

extern const struct grammar js_grammar, js_typescript_grammar;

/* ---- values ---- */

enum js_what {
        JSV_TEXT,                      /* text, len */
        JSV_SOME_TEXT,                 /* a text that is not constant */
        JSV_BYTES,                     /* of a Buffer */
        JSV_NUMBER,
        JSV_PLAIN,      /* any other primitive, or an object that is no function; text: its string, or NULL */
        JSV_LIST,       /* items, n; NULL: not constant */
        JSV_OBJECT,     /* items, n: key, value, key, value … */
        JSV_PATH,       /* text: "globalThis.eval", "node:fs.promises", "lodash" */
        JSV_FUNCTION,   /* node: a function of the program; 0: any other */
        JSV_METHOD,     /* a method of a primitive, an array, a function …; text: its name */
};

/* One possible value of an expression, the head of a list of alternatives.  NULL: unknown.  Lives in the arena. */
struct js_value {
        enum js_what what;
        bool open;                     /* of the head: other values are possible */
        bool reached;                  /* a module obtained without an import */
        const char *text;
        size_t len;
        int64_t number;
        struct js_value **items;
        size_t n;
        uint32_t node;
        struct js_value *next;         /* the next alternative */
};

#define JS_VALUES_MAX 8                /* alternatives */
#define JS_TEXT_MAX (64 * KIB)         /* of a text put together from parts */
#define JS_ITEMS_MAX 2048
#define JS_SPENT_MAX (32 * MIB)        /* bytes for all of them; a program beyond the limit keeps unknown values */
#define JS_PATH_MAX 200
#define JS_SOURCES_MAX 64              /* per name */

/* ---- names ---- */

enum js_role { JSR_LOAD, JSR_STORE, JSR_WORD };   /* WORD: not looked up as a name */

/* How a part is taken from the value that a pattern destructures. */
enum js_step_how { JSS_MEMBER, JSS_INDEX, JSS_REST, JSS_ITEM };
struct js_step {
        enum js_step_how how;
        uint32_t key;                  /* MEMBER: the node with the name */
        int64_t index;
        unsigned depth;
        const struct js_step *up;      /* the enclosing part */
};
#define JS_STEPS_MAX 32

/* The origin of a value: a node, and the steps into its value.  node 0: unknown. */
struct js_from {
        uint32_t node;
        const struct js_step *steps;
};

/* One way in which a name gets a value. */
struct js_source {
        struct js_from from;
        struct js_value *value;        /* so far */
        bool ready;
        uint32_t binding;
        struct js_source *next;        /* of the same binding */
        struct js_source *next_fed;    /* from the same node */
};

/* How a name was declared; bits.  MERGED: an enum or a namespace, several of which may share a name. */
enum {
        JSD_LEXICAL = 1,
        JSD_VAR = 2,
        JSD_FUNCTION = 4,
        JSD_PARAMETER = 8,
        JSD_CATCH = 16,
        JSD_IMPLICIT = 32,
        JSD_MERGED = 64
};

/* A name in a scope. */
struct js_binding {
        uint32_t scope, name;
        unsigned declared;
        struct js_source *sources;
        unsigned sources_n;
        struct js_value *value;
        bool any, read;                /* read: evaluated in this round */
};

enum js_scope_kind { JSC_MODULE, JSC_FUNCTION, JSC_BODY, JSC_BLOCK, JSC_CATCH, JSC_CLASS, JSC_WITH };
struct js_scope {
        enum js_scope_kind kind;
        uint32_t parent, node;
};

/* A member taken by a pattern: const { env } = process. */
struct js_taken {
        uint32_t at;
        struct js_from from;
};

/* An assignment to a target. */
struct js_assigned {
        uint32_t target;
        struct js_from from;
};

/* State of the analysis of one program.  Lists live until the analysis returns, all else in the arena. */
struct js {
        const struct tree *tree;
        struct arena *arena;
        struct facts *facts;
        uint32_t *order;
        uint8_t *roles;
        uint32_t *scope_of;
        uint32_t *name_of;             /* of an identifier: index in names + 1 */
        uint8_t *alone;                /* functions called without an object */
        uint32_t *owner;               /* by node: the function that defines its `this`; UINT32_MAX: unknown */
        struct js_scope *scopes;
        size_t scopes_n, scopes_size;
        struct names names;
        struct js_binding *bindings;
        size_t bindings_n, bindings_size;
        struct index binding_index;
        struct js_taken *taken;
        size_t taken_n, taken_size;
        struct js_assigned *assigned;  /* kept until all declarations are known */
        size_t assigned_n, assigned_size;
        struct js_value **values;      /* by node */
        struct js_source **feeds;      /* by node: the names that get its value */
        struct { uint32_t function, node, next; struct js_value *before; } *returns;
        size_t returns_n, returns_size;
        uint32_t *first_return; /* by function: index in returns + 1, as in `next` */
        struct { uint32_t name; struct js_value *value; } *members; /* values assigned to members of any object */
        size_t members_n, members_size;
        size_t spent;                  /* bytes of texts and lists put together */
        bool changed;
};

#define JS_NODE(js, i) (&(js)->tree->nodes[i])

static inline bool js_is(const char *word, const char *text, size_t len)
{
        return strlen(word) == len && memcmp(word, text, len) == 0;
}

/* ---- nodes.c ---- */

bool js_is_function(unsigned kind);
/* The first child that is neither punctuation nor a comment; the next such child after `child`.  0: none. */
uint32_t js_first(const struct tree *tree, uint32_t parent);
uint32_t js_next(const struct tree *tree, uint32_t child);
/* The node without surrounding parentheses. */
uint32_t js_bare(const struct tree *tree, uint32_t node);
/* Whether a node has this word among its tokens: async, *, get. */
bool js_has_word(const struct tree *tree, uint32_t node, const char *word);
bool js_text_is(const struct tree *tree, uint32_t node, const char *text);
uint32_t js_name(struct js *js, uint32_t node);                    /* of an identifier, by its number */
struct name js_word(struct js *js, uint32_t node);                 /* the same as text */
uint32_t js_intern(struct js *js, const char *text, size_t len);

/* ---- syntax.c ---- */

/* Report the first syntax error that the grammar does not find. */
void js_check(struct facts *facts, const struct tree *tree);

/* ---- typescript.c ---- */

/*
 * Turn the tree of a TypeScript program into the tree of the program that runs: removes types, ambient declarations and
 * signatures, and replaces casts by their operands.  Constructs without a JavaScript equivalent remain as JS_ENUM (its
 * body a JS_OBJECT), JS_MODULE for both keywords, JS_IMPORT_ALIAS, JS_IMPORT_TYPES, an identifier directly in a
 * JS_IMPORT for import a = require("b"), and a JS_MODIFIER beside a parameter that declares a member.
 */
void js_erase_types(struct facts *facts, struct tree *tree);
/* The text with type syntax that the grammar does not know rewritten, from the arena; NULL: none found. */
const char *js_mend_types(const struct tree *tree, struct arena *arena);
/* Whether the rewritten text, as parsed into `tree`, differs from `text` in types alone. */
bool js_mended_types(const struct tree *tree, const char *text);

/* ---- scope.c ---- */

/* Find all scopes and bindings. */
void js_scopes(struct js *js);
struct js_value *js_lookup(struct js *js, uint32_t node);
/* The function of the program that a call calls, if known; 0: unknown. */
uint32_t js_called_function(struct js *js, uint32_t call);

/* ---- string.c ---- */

/* Append the text between two offsets with its escapes decoded; false: not decodable, or buf is full. */
bool js_unescape(const char *text, size_t start, size_t end, bool identifier, struct buf *buf);
/* The value of `"" + value`; NULL: not constant. */
struct js_value *js_string_of(struct js *js, struct js_value *value);
/* The result of a method of a constant text, list or Buffer; NULL: unknown. */
struct js_value *js_text_method(struct js *js, struct js_value *of, const char *name, size_t len,
        struct js_value **args, size_t args_n);
struct js_value *js_decoded(struct js *js, const struct js_value *text, const char *encoding, size_t len);
struct js_value *js_from_codes(struct js *js, struct js_value **args, size_t n);
struct js_value *js_unpercent(struct js *js, const struct js_value *text);

/* ---- value.c ---- */

struct js_value *js_value_new(struct js *js, enum js_what what);
struct js_value *js_value_text(struct js *js, enum js_what what, const char *text, size_t len);
/* Count `bytes` against JS_SPENT_MAX; false: exceeded. */
bool js_spend(struct js *js, size_t bytes);
struct js_value *js_value_number(struct js *js, int64_t number);
struct js_value *js_value_list(struct js *js, struct js_value **items, size_t n);
bool js_same(const struct js_value *a, const struct js_value *b);
struct js_value *js_either(struct js *js, struct js_value *a, struct js_value *b);
struct js_value *js_open(struct js *js, struct js_value *value);
struct js_value *js_only(struct js_value *value, enum js_what what);

/* ---- member.c ---- */

struct js_value *js_path(struct js *js, const char *base, const char *name, size_t len);   /* base may be NULL */
/* a module by its name in require() or import */
struct js_value *js_module(struct js *js, const char *name, size_t len);
bool js_is_callable(const struct js_value *value);
struct js_value *js_member(struct js *js, struct js_value *base, const char *name, size_t len);
struct js_value *js_item(struct js *js, struct js_value *base, struct js_value *key);
/* The value of a pattern's part. */
struct js_value *js_apply(struct js *js, const struct js_from *from);
/* "fs/promises", "node:fs" -> "node:fs.promises"; "@a/b/c" -> "@a/b"; NULL: a file of the program. */
const char *js_module_name(struct js *js, const char *name, size_t len, size_t *ret_len);

/* ---- call.c ---- */

/* A call with its arguments; f.call(this, x), f.apply(this, [x]) and Reflect.apply(f, this, [x]) become f(x). */
struct js_call {
        uint32_t node;
        bool is_new, is_import, is_bind;   /* bind: f.bind(this, x), a later f(x) */
        struct js_value *function;
        const char *method;            /* obj.method(…): the method's name; or NULL */
        size_t method_len;
        struct js_value *object;
        struct js_value **args;        /* NULL: unknown */
        size_t args_n;
        bool splat;                    /* further arguments are unknown */
};
struct js_call js_call(struct js *js, uint32_t node);
struct js_value *js_call_value(struct js *js, const struct js_call *call);
/* For Reflect.get and similar calls: the object, and the name (NULL: not constant).  false: another call. */
bool js_taking(const struct js_call *call, struct js_value **ret_object, struct js_value **ret_name);
/* The name of the importing function, require() or import(); NULL: another call. */
const char *js_importing(const struct js_call *call);

/* Find the values of all nodes, in rounds. */
void js_values(struct js *js);
void js_facts(struct js *js);

#endif
