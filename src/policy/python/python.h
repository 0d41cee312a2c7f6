/*
 * The analysis of Python, in five steps; for python*.c.
 *
 *   python.c         the program as the interpreter reads it (encoding, line ends), and the order of the rest
 *   syntax.c   what the grammar lets pass and the interpreter does not: places, lines and columns;
 *                    syntax_nesting.c: what stands in what; syntax_literal.c: texts and numbers.  And what only
 *                    the interpreter can say
 *   scope.c   scopes, and what each name is bound to
 *   value.c   what expressions stand for: a path such as os.path.join, or a constant
 *   call.c    functions that take or give names: getattr, import_module, chr, join …
 *   facts.c   all that, said as facts; obfuscation.c: what is decoded to be run
 *
 * Values are found bottom-up in rounds over the whole program, until no name's value changes: no recursion, and
 * a name may be used above the line that binds it.
 */
#ifndef POLICY_PYTHON_H
#define POLICY_PYTHON_H

#include "policy/analysis/facts.h"
#include "policy/analysis/symbols.h"

/* The kinds of nodes that matter here, as the grammar calls them. */
#define PYTHON_KINDS(X)                                                                                                            \
        X(MODULE, module) X(IMPORT, import_statement) X(IMPORT_FROM, import_from_statement) X(FUTURE, future_import_statement)     \
        X(ALIASED, aliased_import) X(WILDCARD, wildcard_import) X(RELATIVE, relative_import) X(DOTTED, dotted_name)                \
        X(PRINT, print_statement) X(EXEC, exec_statement) X(ASSIGNMENT, assignment) X(AUGMENTED, augmented_assignment)             \
        X(NAMED, named_expression) X(RETURN, return_statement) X(DELETE, delete_statement) X(RAISE, raise_statement)               \
        X(BREAK, break_statement) X(CONTINUE, continue_statement) X(YIELD, yield) X(AWAIT, await) X(GLOBAL, global_statement)      \
        X(NONLOCAL, nonlocal_statement) X(FOR, for_statement) X(WHILE, while_statement) X(IF, if_statement) X(TRY, try_statement)  \
        X(WITH, with_statement) X(MATCH, match_statement) X(CASE, case_clause) X(EXCEPT, except_clause)                            \
        X(EXCEPT_GROUP, except_group_clause) X(FINALLY, finally_clause) X(ELSE, else_clause) X(ELIF, elif_clause)                  \
        X(FUNCTION, function_definition) X(CLASS, class_definition) X(LAMBDA, lambda) X(DECORATED, decorated_definition)           \
        X(DECORATOR, decorator) X(BLOCK, block) X(PARAMETERS, parameters) X(LAMBDA_PARAMETERS, lambda_parameters)                  \
        X(DEFAULT, default_parameter) X(TYPED, typed_parameter) X(TYPED_DEFAULT, typed_default_parameter)                          \
        X(SPLAT_PATTERN, list_splat_pattern) X(DICT_SPLAT_PATTERN, dictionary_splat_pattern) X(PATTERN_LIST, pattern_list)         \
        X(TUPLE_PATTERN, tuple_pattern) X(LIST_PATTERN, list_pattern) X(AS_PATTERN, as_pattern) X(AS_TARGET, as_pattern_target)    \
        X(CASE_PATTERN, case_pattern) X(CLASS_PATTERN, class_pattern) X(KEYWORD_PATTERN, keyword_pattern)                          \
        X(SPLAT_CASE, splat_pattern) X(IDENTIFIER, identifier) X(ATTRIBUTE, attribute) X(SUBSCRIPT, subscript) X(SLICE, slice)     \
        X(CALL, call) X(ARGUMENTS, argument_list) X(KEYWORD, keyword_argument) X(LIST_SPLAT, list_splat)                           \
        X(DICT_SPLAT, dictionary_splat) X(PARENTHESES, parenthesized_expression) X(EXPRESSIONS, expression_list)                   \
        X(STATEMENT, expression_statement) X(LIST, list) X(TUPLE, tuple) X(SET, set) X(DICTIONARY, dictionary) X(PAIR, pair)       \
        X(LIST_COMPREHENSION, list_comprehension) X(SET_COMPREHENSION, set_comprehension)                                          \
        X(DICT_COMPREHENSION, dictionary_comprehension) X(GENERATOR, generator_expression) X(FOR_IN, for_in_clause)                \
        X(CONDITIONAL, conditional_expression) X(BINARY, binary_operator) X(UNARY, unary_operator) X(BOOLEAN, boolean_operator)    \
        X(STRING, string) X(CONCATENATED, concatenated_string) X(STRING_START, string_start) X(STRING_CONTENT, string_content)     \
        X(STRING_END, string_end) X(INTERPOLATION, interpolation) X(FORMAT, format_specifier) X(CONVERSION, type_conversion)       \
        X(INTEGER, integer) X(TRUE, true) X(FALSE, false) X(NONE, none) X(COMMENT, comment) X(TYPE_ALIAS, type_alias_statement)    \
        X(TYPE_PARAMETER, type_parameter) X(DICT_PATTERN, dict_pattern) X(CHEVRON, chevron) X(ASSERT, assert_statement)          \
        X(FLOAT, float) X(NOT, not_operator) X(COMPARISON, comparison_operator) X(IF_CLAUSE, if_clause) X(WITH_CLAUSE, with_clause) \
        X(WITH_ITEM, with_item) X(POSITIONAL_SEPARATOR, positional_separator) X(KEYWORD_SEPARATOR, keyword_separator)              \
        X(COMPLEX_PATTERN, complex_pattern) X(TYPE, type) X(SPLAT_TYPE, splat_type) X(CONSTRAINED_TYPE, constrained_type)          \
        X(GENERIC_TYPE, generic_type) X(MEMBER_TYPE, member_type) X(FORMAT_EXPRESSION, format_expression)

#define PYTHON_FIELDS(X)                                                                                                           \
        X(name) X(alias) X(module_name) X(left) X(right) X(value) X(body) X(parameters) X(superclasses) X(function) X(arguments)   \
        X(object) X(attribute) X(subscript) X(operator) X(argument) X(condition) X(return_type) X(type) X(subject) X(expression)   \
        X(key) X(type_conversion) X(format_specifier) X(alternative) X(consequence) X(guard) X(cause)

#define X(name, text) PY_##name,
enum python_kind { PY_OTHER, PYTHON_KINDS(X) PY_KINDS };
#undef X
#define X(name) PYF_##name,
enum python_field { PYF_NONE, PYTHON_FIELDS(X) };
#undef X

extern const struct grammar python_grammar;

/* ---- values ---- */

enum value_kind {
        VALUE_TEXT, VALUE_BYTES,       /* text, len */
        VALUE_NUMBER,                  /* number */
        VALUE_LIST,                    /* items, n; NULL: not constant */
        VALUE_DICT,                    /* items, n: key, value, key, value … */
        VALUE_PATH,                    /* text: "os", "os.path", "builtins.eval"; "pathlib.Path()" is what that call gives */
        VALUE_FUNCTION,                /* node: of the program */
        VALUE_MEMBER,                  /* operator.attrgetter; items are the names */
        VALUE_ITEM,                    /* operator.itemgetter; likewise */
        VALUE_METHOD,                  /* operator.methodcaller; items: the name, its arguments */
        VALUE_PARTIAL,                 /* functools.partial; items: the function, its arguments */
        VALUE_CLASS,                   /* node: of the program; always open, because members of it are not followed */
        VALUE_OBJECT,                  /* likewise, an instance of it */
};

/* One of the things that an expression may stand for; NULL: nobody knows. */
struct value {
        enum value_kind kind;
        bool open;                     /* of the first: it may be something else, too */
        bool reached;                  /* a module that was come by in another way than by an import */
        const char *text;
        size_t len;
        int64_t number;
        struct value **items;
        size_t n;
        uint32_t node;
        struct value *next;            /* what else it may be */
};

#define VALUES_MAX 8                   /* alternatives */
#define TEXT_MAX (64 * KIB)            /* of a text that is put together */
#define PATH_LEN_MAX 200
#define ITEMS_MAX 4096
#define CALLS_MAX 3000000              /* more is a program that nobody can judge */
#define JOINED_MAX (256 * MIB)         /* likewise */

/* ---- names ---- */

enum role { ROLE_LOAD, ROLE_STORE, ROLE_DELETE, ROLE_WORD };   /* WORD: not a name that is looked up */

enum source_kind { SOURCE_UNKNOWN, SOURCE_NODE, SOURCE_ITEMS, SOURCE_PATH, SOURCE_FUNCTION };

/* One way in which a name got its value. */
struct source {
        enum source_kind kind;
        uint32_t at;                   /* the node of the name that is bound */
        uint32_t node;
        int32_t place;                 /* NODE: in a list of values; -1: the value itself */
        struct value *value;           /* PATH */
        uint32_t binding;
        struct source *next;           /* of the same binding */
        struct source *next_fed;       /* from the same node */
};

struct binding {
        uint32_t scope, name;
        bool elsewhere;                /* global, nonlocal: it is that of scope `other` */
        bool is_deleted;
        bool run;                      /* its value becomes code */
        uint32_t other;
        struct source *sources;
        struct value *fixed;           /* what imports and definitions give it, and whether there are any */
        bool has_fixed;
        struct value *passed;          /* to a parameter, by calls of the program's own */
        unsigned fed, seen;            /* sources that are nodes; and those that had their turn in this round */
        struct value *value, *before;  /* so far in this round; at the end of the one before */
        bool any, any_before;
};

enum scope_kind { SCOPE_MODULE, SCOPE_CLASS, SCOPE_FUNCTION, SCOPE_COMPREHENSION };

struct scope {
        enum scope_kind kind;
        uint32_t parent, node;
};

struct python {
        const struct tree *tree;
        struct arena *arena;
        struct facts *facts;
        uint32_t *order;
        uint8_t *roles;
        uint32_t *scope_of;
        uint32_t *name_of;             /* of an identifier: place in names + 1 */
        struct scope *scopes;
        size_t scopes_n, scopes_size;
        struct names names;
        struct binding *bindings;
        size_t bindings_n, bindings_size;
        struct index binding_index;
        const char **stars;            /* modules of "from X import *" */
        size_t stars_n, stars_size;
        struct value **values;         /* of each node */
        struct source **feeds;         /* the names that get a node's value */
        struct { uint32_t node, next; } *returns;   /* place + 1; 0: the last one of its function */
        uint32_t *first_return;        /* of a function's node: likewise */
        bool *run;                     /* nodes whose value becomes code or a module; NULL: none */
        uint64_t calls;                /* that were worked out */
        uint64_t joined;               /* bytes of texts that were put together */
        size_t returns_n, returns_size;
        struct { uint32_t name; struct value *value; } *members;   /* what is assigned to members of anything */
        size_t members_n, members_size;
        bool *stored;                  /* of each name: it is assigned to as a member of something; NULL: not looked at yet */
        bool reaches_os;               /* likewise */
};

#define NODE(py, i) (&(py)->tree->nodes[i])

/* Whether a star stands before it, or is a part of it. */
bool python_is_starred(const struct tree *tree, uint32_t at);

void python_check(struct facts *facts, const struct tree *tree);
/* Of a program in which nothing is wrong so far: whether the interpreter may know better. */
bool python_is_doubtful(struct facts *facts, const struct tree *tree);
/* Of one node of any kind, with all that is in a kind of brackets or a clause: syntax_nesting.c. */
void python_check_form(struct facts *facts, const struct tree *tree, uint32_t at);
void python_check_string(struct facts *facts, const struct tree *tree, uint32_t at);          /* syntax_literal.c */
void python_check_concatenated(struct facts *facts, const struct tree *tree, uint32_t at);
void python_check_interpolation(struct facts *facts, const struct tree *tree, uint32_t at);
void python_check_number(struct facts *facts, const struct tree *tree, uint32_t at);

void python_scopes(struct python *py);
uint32_t python_name(struct python *py, uint32_t node);             /* of an identifier, by its number */
struct name python_word(struct python *py, uint32_t node);           /* the same as text */
struct name python_dotted(struct python *py, uint32_t node);         /* the words of a dotted name, with dots */
uint32_t python_intern(struct python *py, const char *text, size_t len);
struct binding *python_binding(struct python *py, uint32_t scope, uint32_t name);
struct value *python_lookup(struct python *py, uint32_t name, uint32_t scope, uint32_t use);
/*
 * What globals() has under a name of the module; NULL: unknown, or there is none.  A builtin is not there at run time
 * unless somebody saw to it; but asking for one can only have one end.
 */
struct value *python_global(struct python *py, uint32_t name, bool locals);

void python_values(struct python *py);
struct value *value_new(struct python *py, enum value_kind kind);
struct value *value_text(struct python *py, enum value_kind kind, const char *text, size_t len);
struct value *value_number(struct python *py, int64_t number);
struct value *value_path(struct python *py, const char *base, const char *name, size_t len);   /* base may be NULL */
struct value *value_module(struct python *py, const char *name, size_t len);   /* reached */
struct value *value_dict_of(struct python *py, const char *path);   /* its __dict__; NULL: of something unknown */
/* Whether both stand for the same, as far as one can see. */
bool value_same(const struct value *a, const struct value *b);
/* A class of the program, or an instance of it. */
struct value *value_of_class(struct python *py, enum value_kind kind, uint32_t class_node);
/* A function that a class of the program has under a name, or one of its bases there; 0: none. */
uint32_t python_method(struct python *py, uint32_t class_node, const char *name, size_t len);
/* Both; either may be NULL, which leaves the other open. */
struct value *value_either(struct python *py, struct value *a, struct value *b);
/* The only thing that it can be, if it is of that kind; else NULL. */
struct value *value_only(struct value *value, enum value_kind kind);
struct value *value_member(struct python *py, struct value *base, const char *name, size_t len);
struct value *value_item(struct python *py, struct value *base, struct value *key);
struct value *value_binary(struct python *py, char operator, struct value *a, struct value *b);
struct value *value_slice(struct python *py, struct value *base, uint32_t slice);
struct value *value_list(struct python *py, struct value **items, size_t n);

#define ARGS_MAX 12

/* A call taken apart. */
struct call {
        uint32_t node;
        struct value *function;
        const char *method;            /* obj.method(…): its name; or NULL */
        size_t method_len;
        struct value *object;
        struct value *args[ARGS_MAX];  /* positional ones; NULL: unknown */
        size_t args_n;
        bool splat;                    /* there are more that cannot be told */
};

struct call python_call(struct python *py, uint32_t node);
struct value *value_call(struct python *py, const struct call *call, unsigned depth);
/* The argument NAME=…, by which import_module(name="os") says it too; NULL if there is none. */
struct value *python_keyword(struct python *py, const struct call *call, const char *name);

/* A call that takes a member of an object by name. */
struct taking {
        struct value *object;          /* NULL: unknown, or not known yet (attrgetter) */
        struct value *names[ARGS_MAX]; /* more than one: of attrgetter and itemgetter, which give a list then; NULL: not constant */
        size_t names_n;                /* 0: nothing can be told of the name */
        bool steps;                    /* "a.b" is two members */
        bool pending;                  /* no object yet */
        bool item;                     /* of a mapping */
};
bool python_taking(struct python *py, const struct call *call, struct taking *ret);
bool python_is_importer(const char *path);
/* A call that brings in a module: its function's path, and the name. */
const char *python_importing(struct python *py, const struct call *call, struct value **ret_name);

/* Which nodes become code, and a call that decodes something there, or much of it; obfuscation.c. */
void python_hidden(struct python *py);
void python_decoded(struct python *py, const struct call *call, uint32_t function);

void python_facts(struct python *py);

#endif
