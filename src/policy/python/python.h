/*
 * The analysis of Python, in five steps; shared by the files of this folder.
 *
 *   python.c          the program as the interpreter reads it (encoding, line ends), and the order of the steps
 *   syntax.c          syntax errors that the grammar accepts and the interpreter rejects: places, lines and columns;
 *                     and programs that only the interpreter can decide
 *   syntax_nesting.c  the same: nesting of constructs
 *   syntax_literal.c  the same: string and number literals
 *   scope.c           scopes, and the bindings of each name
 *   nodes.c           nodes of the tree, names and bindings
 *   value.c           possible values of expressions: a path such as os.path.join, or a constant
 *   member.c          members and items of values
 *   call.c            functions that take or return names: getattr, import_module, chr, join …
 *   facts.c           facts from values; obfuscation.c: decoded text that becomes code
 *
 * Values are found bottom-up in rounds over the whole program, until no name's value changes: there is no recursion,
 * and a name may be used above the line that binds it.
 */
#ifndef POLICY_PYTHON_PYTHON_H
#define POLICY_PYTHON_PYTHON_H

#include "policy/analysis/facts.h"
#include "policy/analysis/symbols.h"

/* The kinds of nodes that matter here, by their names in the grammar. */
#define PYTHON_KINDS(X)                                                                                                \
        X(MODULE, module) X(IMPORT, import_statement) X(IMPORT_FROM, import_from_statement)                            \
        X(FUTURE, future_import_statement) X(ALIASED, aliased_import) X(WILDCARD, wildcard_import)                     \
        X(RELATIVE, relative_import) X(DOTTED, dotted_name) X(PRINT, print_statement) X(EXEC, exec_statement)          \
        X(ASSIGNMENT, assignment) X(AUGMENTED, augmented_assignment) X(NAMED, named_expression)                        \
        X(RETURN, return_statement) X(DELETE, delete_statement) X(RAISE, raise_statement) X(BREAK, break_statement)    \
        X(CONTINUE, continue_statement) X(YIELD, yield) X(AWAIT, await) X(GLOBAL, global_statement)                    \
        X(NONLOCAL, nonlocal_statement) X(FOR, for_statement) X(WHILE, while_statement) X(IF, if_statement)            \
        X(TRY, try_statement) X(WITH, with_statement) X(MATCH, match_statement) X(CASE, case_clause)                   \
        X(EXCEPT, except_clause) X(EXCEPT_GROUP, except_group_clause) X(FINALLY, finally_clause)                       \
        X(ELSE, else_clause) X(ELIF, elif_clause) X(FUNCTION, function_definition) X(CLASS, class_definition)          \
        X(LAMBDA, lambda) X(DECORATED, decorated_definition) X(DECORATOR, decorator) X(BLOCK, block)                   \
        X(PARAMETERS, parameters) X(LAMBDA_PARAMETERS, lambda_parameters) X(DEFAULT, default_parameter)                \
        X(TYPED, typed_parameter) X(TYPED_DEFAULT, typed_default_parameter) X(SPLAT_PATTERN, list_splat_pattern)       \
        X(DICT_SPLAT_PATTERN, dictionary_splat_pattern) X(PATTERN_LIST, pattern_list)                                  \
        X(TUPLE_PATTERN, tuple_pattern) X(LIST_PATTERN, list_pattern) X(AS_PATTERN, as_pattern)                        \
        X(AS_TARGET, as_pattern_target) X(CASE_PATTERN, case_pattern) X(CLASS_PATTERN, class_pattern)                  \
        X(KEYWORD_PATTERN, keyword_pattern) X(SPLAT_CASE, splat_pattern) X(IDENTIFIER, identifier)                     \
        X(ATTRIBUTE, attribute) X(SUBSCRIPT, subscript) X(SLICE, slice) X(CALL, call) X(ARGUMENTS, argument_list)      \
        X(KEYWORD, keyword_argument) X(LIST_SPLAT, list_splat) X(DICT_SPLAT, dictionary_splat)                         \
        X(PARENTHESES, parenthesized_expression) X(EXPRESSIONS, expression_list) X(STATEMENT, expression_statement)    \
        X(LIST, list) X(TUPLE, tuple) X(SET, set) X(DICTIONARY, dictionary) X(PAIR, pair)                              \
        X(LIST_COMPREHENSION, list_comprehension) X(SET_COMPREHENSION, set_comprehension)                              \
        X(DICT_COMPREHENSION, dictionary_comprehension) X(GENERATOR, generator_expression) X(FOR_IN, for_in_clause)    \
        X(CONDITIONAL, conditional_expression) X(BINARY, binary_operator) X(UNARY, unary_operator)                     \
        X(BOOLEAN, boolean_operator) X(STRING, string) X(CONCATENATED, concatenated_string)                            \
        X(STRING_START, string_start) X(STRING_CONTENT, string_content) X(STRING_END, string_end)                      \
        X(INTERPOLATION, interpolation) X(FORMAT, format_specifier) X(CONVERSION, type_conversion)                     \
        X(INTEGER, integer) X(TRUE, true) X(FALSE, false) X(NONE, none) X(COMMENT, comment)                            \
        X(TYPE_ALIAS, type_alias_statement) X(TYPE_PARAMETER, type_parameter) X(DICT_PATTERN, dict_pattern)            \
        X(CHEVRON, chevron) X(ASSERT, assert_statement) X(FLOAT, float) X(NOT, not_operator)                           \
        X(COMPARISON, comparison_operator) X(IF_CLAUSE, if_clause) X(WITH_CLAUSE, with_clause)                         \
        X(WITH_ITEM, with_item) X(POSITIONAL_SEPARATOR, positional_separator)                                          \
        X(KEYWORD_SEPARATOR, keyword_separator) X(COMPLEX_PATTERN, complex_pattern) X(TYPE, type)                      \
        X(SPLAT_TYPE, splat_type) X(CONSTRAINED_TYPE, constrained_type) X(GENERIC_TYPE, generic_type)                  \
        X(MEMBER_TYPE, member_type) X(FORMAT_EXPRESSION, format_expression)

#define PYTHON_FIELDS(X)                                                                                               \
        X(name) X(alias) X(module_name) X(left) X(right) X(value) X(body) X(parameters) X(superclasses) X(function)    \
        X(arguments) X(object) X(attribute) X(subscript) X(operator) X(argument) X(condition) X(return_type) X(type)   \
        X(subject) X(expression) X(key) X(type_conversion) X(format_specifier) X(alternative) X(consequence)           \
        X(guard) X(cause)

#define X(name, text) PY_##name,
enum python_kind { PY_OTHER, PYTHON_KINDS(X) PY_KINDS };
#undef X
#define X(name) PYF_##name,
enum python_field { PYF_NONE, PYTHON_FIELDS(X) };
#undef X

extern const struct grammar python_grammar;

/* ---- values ---- */

enum value_kind {
        VALUE_TEXT, VALUE_BYTES, /* text, len */
        VALUE_NUMBER,            /* number */
        VALUE_LIST,              /* items, n; NULL: not constant */
        VALUE_DICT,              /* items, n: key, value, key, value … */
        VALUE_PATH, /* text: "os", "os.path", "builtins.eval"; "pathlib.Path()" is the result of that call */
        VALUE_FUNCTION,          /* node: a function of the program */
        VALUE_MEMBER,            /* operator.attrgetter; items are the names */
        VALUE_ITEM,              /* operator.itemgetter; items are the keys */
        VALUE_METHOD,            /* operator.methodcaller; items: the name, its arguments */
        VALUE_PARTIAL,           /* functools.partial; items: the function, its arguments */
        VALUE_CLASS, /* node: a class of the program; always open, because members of classes are not followed */
        VALUE_OBJECT,            /* node: the class of an instance; always open */
};

/* One possible value of an expression, the head of a list of alternatives.  NULL: unknown.  Lives in the arena. */
struct value {
        enum value_kind kind;
        bool open;                     /* of the head: other values are possible */
        bool reached;                  /* a module obtained without an import */
        const char *text;
        size_t len;
        int64_t number;
        struct value **items;
        size_t n;
        uint32_t node;
        struct value *next;            /* the next alternative */
};

/* an unknown object, of which only __dict__ has a path: that of a module, perhaps */
#define UNKNOWN_OBJECT "?"
#define VALUES_MAX 8                   /* alternatives */
#define TEXT_MAX (64 * KIB)            /* of a text put together from parts */
#define PATH_LEN_MAX 200
#define ITEMS_MAX 4096
#define CALLS_MAX 3000000              /* more calls than this: the program cannot be judged */
#define JOINED_MAX (256 * MIB)         /* the same for bytes of joined texts */

/* ---- names ---- */

enum role { ROLE_LOAD, ROLE_STORE, ROLE_DELETE, ROLE_WORD };   /* WORD: not looked up as a name */

enum source_kind { SOURCE_UNKNOWN, SOURCE_NODE, SOURCE_ITEMS, SOURCE_PATH, SOURCE_FUNCTION };

/* One way in which a name gets a value. */
struct source {
        enum source_kind kind;
        uint32_t at;                   /* the node of the bound name */
        uint32_t node;
        int32_t place;                 /* NODE: index in a list of values; -1: the value itself */
        struct value *value;           /* PATH */
        uint32_t binding;
        struct source *next;           /* of the same binding */
        struct source *next_fed;       /* from the same node */
};

/* A name in a scope. */
struct binding {
        uint32_t scope, name;
        bool elsewhere;                /* global, nonlocal: the binding of scope `other` counts */
        bool is_deleted;
        bool run;                      /* the value becomes code */
        uint32_t other;
        struct source *sources;
        struct value *fixed;           /* the value from imports and definitions, and whether there are any */
        bool has_fixed;
        struct value *passed;          /* the value passed to a parameter by calls in the program */
        unsigned fed, seen;            /* number of sources that are nodes; number of those evaluated in this round */
        struct value *value, *before;  /* in this round so far; at the end of the previous round */
        bool any, any_before;
};

enum scope_kind { SCOPE_MODULE, SCOPE_CLASS, SCOPE_FUNCTION, SCOPE_COMPREHENSION };

struct scope {
        enum scope_kind kind;
        uint32_t parent, node;
};

/* State of the analysis of one program.  Lists live until the analysis returns, all else in the arena. */
struct python {
        const struct tree *tree;
        struct arena *arena;
        struct facts *facts;
        uint32_t *order;
        uint8_t *roles;
        uint32_t *scope_of;
        uint32_t *name_of;             /* of an identifier: index in names + 1 */
        struct scope *scopes;
        size_t scopes_n, scopes_size;
        struct names names;
        struct binding *bindings;
        size_t bindings_n, bindings_size;
        struct index binding_index;
        const char **stars;            /* modules imported by "from X import *" */
        size_t stars_n, stars_size;
        struct value **values;                    /* by node */
        struct source **feeds;                    /* by node: the names that get its value */
        struct { uint32_t node, next; } *returns; /* next: index + 1; 0: the last return of its function */
        uint32_t *first_return;                   /* by node of a function: index + 1 */
        bool *run;                                /* by node: its value becomes code or a module; NULL: no node does */
        uint64_t calls;                           /* calls evaluated */
        uint64_t joined;                          /* bytes of texts put together */
        size_t returns_n, returns_size;
        struct { uint32_t name; struct value *value; } *members;   /* values assigned to attributes of any object */
        size_t members_n, members_size;
        bool *stored;                  /* by name: assigned to as an attribute; NULL: not determined yet */
        bool reaches_os;               /* determined with `stored` */
};

#define NODE(py, i) (&(py)->tree->nodes[i])

static inline bool python_is(const char *word, const char *text, size_t len)
{
        return strlen(word) == len && memcmp(word, text, len) == 0;
}

/* Whether a star precedes a node, or is a part of it. */
bool python_is_starred(const struct tree *tree, uint32_t at);

/* Report the first syntax error that the grammar does not find. */
void python_check(struct facts *facts, const struct tree *tree);
/* For a program without an error so far: whether only the interpreter can decide. */
bool python_is_doubtful(struct facts *facts, const struct tree *tree);
/* Check the nesting of one node of any kind: brackets and clauses (syntax_nesting.c). */
void python_check_form(struct facts *facts, const struct tree *tree, uint32_t at);
void python_check_string(struct facts *facts, const struct tree *tree, uint32_t at);          /* syntax_literal.c */
void python_check_concatenated(struct facts *facts, const struct tree *tree, uint32_t at);
void python_check_interpolation(struct facts *facts, const struct tree *tree, uint32_t at);
void python_check_number(struct facts *facts, const struct tree *tree, uint32_t at);

/* Find all scopes and bindings. */
void python_scopes(struct python *py);
uint32_t python_name(struct python *py, uint32_t node);              /* the number of an identifier's name */
struct name python_word(struct python *py, uint32_t node);           /* the text of an identifier */
struct name python_dotted(struct python *py, uint32_t node);         /* the text of a dotted name */
uint32_t python_intern(struct python *py, const char *text, size_t len);
struct binding *python_binding(struct python *py, uint32_t scope, uint32_t name);
struct value *python_lookup(struct python *py, uint32_t name, uint32_t scope, uint32_t use);
/*
 * The value of a module's global name in globals(); NULL: unknown or unbound.  A builtin name is in globals() only if
 * the program put it there; but a program that asks for a builtin there has only one purpose.
 */
struct value *python_global(struct python *py, uint32_t name, bool locals);

/* Find the values of all nodes, in rounds. */
void python_values(struct python *py);
/* Constructors.  Memory: the arena. */
struct value *value_new(struct python *py, enum value_kind kind);
struct value *value_text(struct python *py, enum value_kind kind, const char *text, size_t len);
struct value *value_number(struct python *py, int64_t number);
struct value *value_path(struct python *py, const char *base, const char *name, size_t len);    /* base may be NULL */
struct value *value_module(struct python *py, const char *name, size_t len);                    /* sets reached */
/* the __dict__ of a path; NULL: of an unknown object */
struct value *value_dict_of(struct python *py, const char *path);
/* Whether two values are equal, as far as known. */
bool value_same(const struct value *a, const struct value *b);
bool value_same_one(const struct value *a, const struct value *b);    /* without alternatives */
/* A class of the program (VALUE_CLASS), or an instance (VALUE_OBJECT). */
struct value *value_of_class(struct python *py, enum value_kind kind, uint32_t class_node);
/* The node of a method of a class of the program, or of its bases in the program; 0: none. */
uint32_t python_method(struct python *py, uint32_t class_node, const char *name, size_t len);
/* The alternatives of both; either may be NULL, which opens the result. */
struct value *value_either(struct python *py, struct value *a, struct value *b);
struct value *value_open(struct python *py, struct value *value);
/* The value, if it is the only alternative and of this kind; else NULL. */
struct value *value_only(struct value *value, enum value_kind kind);
/* The value of an operation on values; NULL: unknown. */
struct value *value_member(struct python *py, struct value *base, const char *name, size_t len);
struct value *value_item(struct python *py, struct value *base, struct value *key);
struct value *value_binary(struct python *py, char operator, struct value *a, struct value *b);
struct value *value_slice(struct python *py, struct value *base, uint32_t slice);
struct value *value_list(struct python *py, struct value **items, size_t n);

#define ARGS_MAX 12

/* A call with its arguments. */
struct call {
        uint32_t node;
        struct value *function;
        const char *method;            /* obj.method(…): the method's name; or NULL */
        size_t method_len;
        struct value *object;
        struct value *args[ARGS_MAX];  /* positional arguments; NULL: unknown */
        size_t args_n;
        bool splat;                    /* further arguments are unknown */
};

struct call python_call(struct python *py, uint32_t node);
struct value *value_call(struct python *py, const struct call *call, unsigned depth);
/* The value of the keyword argument NAME=…, as in import_module(name="os"); NULL: none. */
struct value *python_keyword(struct python *py, const struct call *call, const char *name);

/* A call that reads an attribute of an object by name. */
struct taking {
        struct value *object;          /* NULL: unknown, or not known yet (attrgetter) */
        /* several: attrgetter and itemgetter, which then return a tuple; NULL: not constant */
        struct value *names[ARGS_MAX];
        size_t names_n;                /* 0: the name is unknown */
        bool steps;                    /* "a.b" means two attributes */
        bool pending;                  /* the object follows in a later call */
        bool item;                     /* a key of a mapping */
};
bool python_taking(struct python *py, const struct call *call, struct taking *ret);
bool python_is_importer(const char *path);
/* For a call that imports a module: the path of its function, and the module's name in *ret_name; else NULL. */
const char *python_importing(struct python *py, const struct call *call, struct value **ret_name);

/*
 * Find the nodes that become code; report a call that decodes text for such a node, or decodes a long text
 * (obfuscation.c).
 */
void python_hidden(struct python *py);
void python_decoded(struct python *py, const struct call *call, uint32_t function);

/* Report the facts of the program. */
void python_facts(struct python *py);

#endif
