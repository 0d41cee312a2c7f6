/* Scopes and bindings as in the language reference (4.2. Naming and binding). */
#include "policy/python/python.h"

#define NOWHERE UINT32_MAX
#define SOURCES_LOOKED_AT 32

/* ---- names and bindings ---- */

static struct binding *binding_new(struct python *py, uint32_t scope, uint32_t name)
{
        py->bindings = list_room(py->bindings, py->bindings_n, &py->bindings_size, sizeof *py->bindings);
        py->bindings[py->bindings_n] = (struct binding){ .scope = scope, .name = name };
        index_add(&py->binding_index, index_hash(scope, name), (uint32_t)py->bindings_n);
        return &py->bindings[py->bindings_n++];
}

/* ---- binding ---- */

/* A comprehension binds only its own targets; its := binds outside (PEP 572). */
static uint32_t scope_for(const struct python *py, uint32_t node, bool walrus)
{
        while (py->scope_of[node] == NOWHERE)
                node = NODE(py, node)->parent;
        uint32_t scope = py->scope_of[node];
        while (walrus && py->scopes[scope].kind == SCOPE_COMPREHENSION)
                scope = py->scopes[scope].parent;
        return scope;
}

static void bind(struct python *py, uint32_t identifier, struct source source)
{
        bool walrus = NODE(py, NODE(py, identifier)->parent)->kind == PY_NAMED;
        uint32_t scope = scope_for(py, identifier, walrus), name = python_name(py, identifier);
        struct binding *binding = python_binding(py, scope, name);
        if (binding && binding->elsewhere) {
                scope = binding->other;
                binding = python_binding(py, scope, name);
        }
        if (!binding)
                binding = binding_new(py, scope, name);
        struct source *copy = arena_alloc(py->arena, sizeof *copy);
        *copy = source;
        copy->at = identifier;
        copy->binding = (uint32_t)(binding - py->bindings);
        copy->next = binding->sources;
        binding->sources = copy;
        if (source.kind == SOURCE_NODE || source.kind == SOURCE_ITEMS) {
                copy->next_fed = py->feeds[source.node];
                py->feeds[source.node] = copy;
                binding->fed++;
                return;
        }
        struct value *value = source.kind == SOURCE_PATH ? source.value : NULL;
        if (source.kind == SOURCE_FUNCTION) {
                value = value_new(py, VALUE_FUNCTION);
                value->node = source.node;
        }
        binding->fixed = binding->has_fixed ? value_either(py, binding->fixed, value) : value;
        binding->has_fixed = true;
}

static bool is_sequence(const struct python *py, uint32_t node)
{
        switch (NODE(py, node)->kind) {
        case PY_EXPRESSIONS:
        case PY_TUPLE:
        case PY_LIST:
        case PY_PATTERN_LIST:
        case PY_TUPLE_PATTERN:
        case PY_LIST_PATTERN: return true;
        default:
                return false;
        }
}

static struct source from_node(uint32_t node)
{
        return (struct source){ .kind = node ? SOURCE_NODE : SOURCE_UNKNOWN, .node = node, .place = -1 };
}

/* The first item of a written sequence: a, (b, c) = x, (y, z) is three pairs; 0: no such sequence. */
static uint32_t first_item(const struct python *py, uint32_t node)
{
        while (NODE(py, node)->kind == PY_PARENTHESES && NODE(py, node)->child)
                node = NODE(py, node)->child;
        if (!is_sequence(py, node))
                return 0;
        for (uint32_t item = NODE(py, node)->child; item; item = NODE(py, item)->next)
                if (python_is_starred(py->tree, item) || NODE(py, item)->kind == PY_COMMENT)
                        return 0;
        return NODE(py, node)->child;
}

/* Bind a target to `source`, through nested patterns: each level passes on its parts. */
static void bind_target(struct python *py, uint32_t target, struct source source)
{
        struct { uint32_t node; struct source source; } *todo = NULL;
        size_t n = 0, size = 0;
        todo = list_room(todo, n, &size, sizeof *todo);
        todo[n].node = target;
        todo[n++].source = source;
        while (n) {
                uint32_t at = todo[--n].node;
                struct source with = todo[n].source;
                py->roles[at] = ROLE_STORE;
                unsigned kind = NODE(py, at)->kind;
                if (kind == PY_IDENTIFIER) {
                        bind(py, at, with);
                        continue;
                }
                if (kind == PY_ATTRIBUTE || kind == PY_SUBSCRIPT)
                        continue;
                bool sequence = is_sequence(py, at), known = with.kind == SOURCE_NODE && with.place < 0;
                int32_t place = 0;
                uint32_t item = sequence && known ? first_item(py, with.node) : 0;
                for (uint32_t child = NODE(py, at)->child; child; child = NODE(py, child)->next, place++) {
                        struct source part = with;
                        if (item)
                                part = from_node(item);
                        else if (sequence)
                                part = known ? (struct source){ .kind = SOURCE_NODE, .node = with.node, .place = place }
                                             : (struct source){ 0 };
                        item = item ? NODE(py, item)->next : 0;
                        if (NODE(py, child)->kind == PY_SPLAT_PATTERN)
                                item = 0, known = false, part = (struct source){ 0 };
                        if (NODE(py, child)->kind == PY_COMMENT)
                                continue;
                        todo = list_room(todo, n, &size, sizeof *todo);
                        todo[n].node = child;
                        todo[n++].source = part;
                }
        }
        free(todo);
}

/* ---- the walk ---- */

static uint32_t scope_new(struct python *py, enum scope_kind kind, uint32_t parent, uint32_t node)
{
        py->scopes = list_room(py->scopes, py->scopes_n, &py->scopes_size, sizeof *py->scopes);
        py->scopes[py->scopes_n] = (struct scope){ kind, parent, node };
        return (uint32_t)py->scopes_n++;
}

static void set_scope(struct python *py, uint32_t node, uint32_t scope)
{
        if (node)
                py->scope_of[node] = scope;
}

static void word(struct python *py, uint32_t node)
{
        if (node)
                py->roles[node] = ROLE_WORD;
}

/* A dotted name in an import: its parts are not looked up. */
static struct name dotted(struct python *py, uint32_t node)
{
        for (uint32_t part = NODE(py, node)->child; part; part = NODE(py, part)->next)
                word(py, part);
        return python_dotted(py, node);
}

static void import_one(struct python *py, uint32_t item, const char *module, bool relative)
{
        const struct node *node = NODE(py, item);
        uint32_t name_node = node->kind == PY_ALIASED ? tree_field(py->tree, item, PYF_name) : item;
        uint32_t alias = node->kind == PY_ALIASED ? tree_field(py->tree, item, PYF_alias) : 0;
        const struct name name = dotted(py, name_node);
        struct source source = { .kind = SOURCE_PATH };
        uint32_t target = alias ? alias : NODE(py, name_node)->child;
        word(py, alias);
        if (!target)
                return;
        if (relative)
                source.kind = SOURCE_UNKNOWN;
        else if (module)
                source.value = value_path(py, module, name.text, name.len);
        else
                source.value = value_path(py, NULL, name.text, alias ? name.len : strcspn(name.text, "."));
        bind(py, target, source);
        py->roles[target] = ROLE_WORD;
}

static void import_statement(struct python *py, uint32_t at)
{
        uint32_t from = tree_field(py->tree, at, PYF_module_name);
        bool relative = from && NODE(py, from)->kind == PY_RELATIVE;
        const char *module = from && !relative ? dotted(py, from).text : NULL;
        for (uint32_t child = NODE(py, at)->child; child; child = NODE(py, child)->next) {
                unsigned kind = NODE(py, child)->kind;
                if (child == from || (kind != PY_DOTTED && kind != PY_ALIASED && kind != PY_WILDCARD))
                        continue;
                if (kind != PY_WILDCARD) {
                        import_one(py, child, module, relative);
                } else if (module) {
                        py->stars = list_room(py->stars, py->stars_n, &py->stars_size, sizeof *py->stars);
                        py->stars[py->stars_n++] = module;
                }
        }
}

static bool is_static(const struct python *py, uint32_t function)
{
        uint32_t above = NODE(py, function)->parent;
        for (uint32_t child = NODE(py, above)->kind == PY_DECORATED ? NODE(py, above)->child : 0; child;
                child = NODE(py, child)->next) {
                const struct node *node = NODE(py, child);
                if (node->kind == PY_DECORATOR &&
                        memmem(py->tree->text + node->start, node->end - node->start, "staticmethod", 12))
                        return true;
        }
        return false;
}

/*
 * The class of a parameter: the enclosing class for the first parameter of a method, else its annotation; 0: unknown.
 */
static uint32_t class_of_parameter(struct python *py, uint32_t at, uint32_t outer)
{
        uint32_t list = NODE(py, at)->parent, function = NODE(py, list)->parent,
                 type = tree_field(py->tree, at, PYF_type);
        if (py->scopes[outer].kind == SCOPE_CLASS && NODE(py, function)->kind == PY_FUNCTION &&
                NODE(py, list)->child == at && !is_static(py, function))
                return py->scopes[outer].node;
        uint32_t word_node = type && NODE(py, type)->kind == PY_TYPE ? NODE(py, type)->child : 0;
        struct binding *binding = word_node && NODE(py, word_node)->kind == PY_IDENTIFIER
                ? python_binding(py, 0, python_name(py, word_node))
                : NULL;
        return binding && binding->fixed && binding->fixed->kind == VALUE_CLASS ? binding->fixed->node : 0;
}

static void parameter(struct python *py, uint32_t at, uint32_t outer)
{
        unsigned kind = NODE(py, at)->kind;
        uint32_t name = kind == PY_IDENTIFIER ? at : tree_field(py->tree, at, PYF_name),
                 value = tree_field(py->tree, at, PYF_value);
        if (!name && kind != PY_COMMENT)
                name = tree_kind(py->tree, at, PY_IDENTIFIER);
        for (uint32_t child = NODE(py, at)->child; child; child = NODE(py, child)->next) {
                unsigned inner = NODE(py, child)->kind;
                if (inner == PY_SPLAT_PATTERN || inner == PY_DICT_SPLAT_PATTERN)
                        name = tree_kind(py->tree, child, PY_IDENTIFIER);
                if (child != name)
                        set_scope(py, child,
                                inner == PY_SPLAT_PATTERN || inner == PY_DICT_SPLAT_PATTERN ? py->scope_of[at] : outer);
        }
        if (!name)
                return;
        py->scope_of[name] = py->scope_of[at];
        /* The argument of the caller is unknown; the default is a possible value. */
        bind(py, name, from_node(value));
        if (value)
                bind(py, name, (struct source){ 0 });
        uint32_t class = class_of_parameter(py, at, outer);
        if (class)
                bind(py, name,
                        (struct source){ .kind = SOURCE_PATH, .value = value_of_class(py, VALUE_OBJECT, class) });
        py->roles[name] = ROLE_WORD;
}

static void add_return(struct python *py, uint32_t function, uint32_t value)
{
        py->returns = list_room(py->returns, py->returns_n, &py->returns_size, sizeof *py->returns);
        py->returns[py->returns_n].node = value;
        py->returns[py->returns_n].next = py->first_return[function];
        py->first_return[function] = (uint32_t)++py->returns_n;
}

static void function(struct python *py, uint32_t at)
{
        const struct tree *tree = py->tree;
        bool lambda = NODE(py, at)->kind == PY_LAMBDA;
        uint32_t outer = py->scope_of[at], name = tree_field(tree, at, PYF_name);
        if (name && !lambda) {
                bind(py, name, (struct source){ .kind = SOURCE_FUNCTION, .node = at });
                word(py, name);
        }
        uint32_t inner = scope_new(py, SCOPE_FUNCTION, outer, at), parameters = tree_field(tree, at, PYF_parameters);
        set_scope(py, parameters, inner);
        set_scope(py, tree_field(tree, at, PYF_body), inner);
        for (uint32_t p = parameters ? NODE(py, parameters)->child : 0; p; p = NODE(py, p)->next) {
                py->scope_of[p] = inner;
                parameter(py, p, outer);
        }
        if (lambda)
                add_return(py, at, tree_field(tree, at, PYF_body));
}

static void elsewhere(struct python *py, uint32_t at)
{
        uint32_t scope = py->scope_of[at];
        for (uint32_t child = NODE(py, at)->child; child; child = NODE(py, child)->next) {
                if (NODE(py, child)->kind != PY_IDENTIFIER)
                        continue;
                uint32_t name = python_name(py, child), other = 0;
                word(py, child);
                if (NODE(py, at)->kind == PY_NONLOCAL)
                        for (other = py->scopes[scope].parent;
                             other && (py->scopes[other].kind != SCOPE_FUNCTION || !python_binding(py, other, name));)
                                other = py->scopes[other].parent;
                struct binding *binding = python_binding(py, scope, name);
                if (scope == 0)
                        continue;
                if (!binding)
                        binding = binding_new(py, scope, name);
                binding->elsewhere = true;
                binding->other = other;
        }
}

static void capture(struct python *py, uint32_t at)
{
        /* A single name is bound, a dotted name is looked up; _ is neither, and harmless. */
        uint32_t dotted_name = tree_kind(py->tree, at, PY_DOTTED);
        uint32_t name = dotted_name ? NODE(py, dotted_name)->child : 0;
        if (!name || NODE(py, name)->kind != PY_IDENTIFIER)
                return;
        if (!NODE(py, name)->next) {
                bind(py, name, (struct source){ 0 });
                py->roles[name] = ROLE_STORE;
        }
}

static void delete_names(struct python *py, uint32_t at)
{
        for (uint32_t child = at + 1; child < py->tree->n && tree_within(py->tree, child, at); child++) {
                uint32_t parent = NODE(py, child)->parent;
                unsigned above = NODE(py, parent)->kind;
                if (NODE(py, child)->kind != PY_IDENTIFIER ||
                        (above != PY_DELETE && above != PY_EXPRESSIONS && above != PY_TUPLE))
                        continue;
                py->roles[child] = ROLE_DELETE;
                bind(py, child, (struct source){ 0 });
                struct binding *binding = python_binding(py, scope_for(py, child, false), python_name(py, child));
                if (binding)
                        binding->is_deleted = true;
        }
}

static void return_statement(struct python *py, uint32_t at)
{
        uint32_t scope = py->scope_of[at], value = NODE(py, at)->child;
        while (scope && py->scopes[scope].kind != SCOPE_FUNCTION)
                scope = py->scopes[scope].parent;
        if (scope && value)
                add_return(py, py->scopes[scope].node, value);
}

/* The iterable of the first clause is evaluated outside. */
static void comprehension(struct python *py, uint32_t at)
{
        uint32_t outer = py->scope_of[at], scope = scope_new(py, SCOPE_COMPREHENSION, outer, at),
                 first = tree_kind(py->tree, at, PY_FOR_IN);
        for (uint32_t child = NODE(py, at)->child; child; child = NODE(py, child)->next)
                py->scope_of[child] = scope;
        if (first)
                set_scope(py, tree_field(py->tree, first, PYF_right), outer);
}

/* "name: type" alone binds nothing, but makes the name local in a function. */
static void assignment(struct python *py, uint32_t at)
{
        uint32_t left = tree_field(py->tree, at, PYF_left), right = tree_field(py->tree, at, PYF_right);
        if (right || py->scopes[py->scope_of[at]].kind == SCOPE_FUNCTION)
                bind_target(py, left, from_node(right));
        else if (left)
                py->roles[left] = ROLE_STORE;
}

/* "with X as y", "except X as y", "case X as y": the last name is the target. */
static void as_pattern(struct python *py, uint32_t at)
{
        uint32_t alias = tree_field(py->tree, at, PYF_alias);
        if (!alias)
                return;
        /* A context manager may return anything; files return themselves. */
        uint32_t above = NODE(py, NODE(py, at)->parent)->kind;
        bool matched = above == PY_CASE || above == PY_CASE_PATTERN;
        bind_target(py, alias, from_node(matched ? 0 : NODE(py, at)->child));
}

static void visit(struct python *py, uint32_t at)
{
        const struct tree *tree = py->tree;
        switch (NODE(py, at)->kind) {
        case PY_IMPORT: case PY_IMPORT_FROM: case PY_FUTURE:
                import_statement(py, at);
                break;
        case PY_ASSIGNMENT:
                assignment(py, at);
                break;
        case PY_AUGMENTED:
                bind_target(py, tree_field(tree, at, PYF_left), (struct source){ 0 });
                break;
        case PY_NAMED:
                if (NODE(py, NODE(py, at)->parent)->kind != PY_INTERPOLATION)   /* f'{x:=5}' has a format */
                        bind_target(py, tree_field(tree, at, PYF_name), from_node(tree_field(tree, at, PYF_value)));
                break;
        case PY_FOR: case PY_FOR_IN:
                bind_target(py, tree_field(tree, at, PYF_left),
                            (struct source){ .kind = SOURCE_ITEMS, .node = tree_field(tree, at, PYF_right) });
                break;
        case PY_AS_PATTERN:
                as_pattern(py, at);
                break;
        case PY_FUNCTION: case PY_LAMBDA:
                function(py, at);
                break;
        case PY_CLASS:
                bind(py, tree_field(tree, at, PYF_name),
                        (struct source){ .kind = SOURCE_PATH, .value = value_of_class(py, VALUE_CLASS, at) });
                word(py, tree_field(tree, at, PYF_name));
                set_scope(py, tree_field(tree, at, PYF_body), scope_new(py, SCOPE_CLASS, py->scope_of[at], at));
                break;
        case PY_LIST_COMPREHENSION: case PY_SET_COMPREHENSION: case PY_DICT_COMPREHENSION: case PY_GENERATOR:
                comprehension(py, at);
                break;
        case PY_GLOBAL: case PY_NONLOCAL:
                elsewhere(py, at);
                break;
        case PY_RETURN:
                return_statement(py, at);
                break;
        case PY_DELETE:
                delete_names(py, at);
                break;
        case PY_CASE_PATTERN:
                capture(py, at);
                break;
        case PY_RELATIVE: {
                uint32_t name = tree_kind(tree, at, PY_DOTTED);
                if (name)
                        dotted(py, name);
                break;
        }
        case PY_ATTRIBUTE:
                word(py, tree_field(tree, at, PYF_attribute));
                break;
        case PY_KEYWORD:
                word(py, tree_field(tree, at, PYF_name));
                break;
        case PY_KEYWORD_PATTERN:
                word(py, NODE(py, at)->child);
                break;
        default:
                break;
        }
}

void python_scopes(struct python *py)
{
        size_t n = py->tree->n;
        py->roles = arena_alloc(py->arena, n);
        py->scope_of = arena_alloc(py->arena, n * sizeof *py->scope_of);
        py->name_of = arena_alloc(py->arena, n * sizeof *py->name_of);
        py->first_return = arena_alloc(py->arena, n * sizeof *py->first_return);
        py->feeds = arena_alloc(py->arena, n * sizeof(struct source *));
        memset(py->scope_of, 0xff, n * sizeof *py->scope_of);
        py->scope_of[0] = scope_new(py, SCOPE_MODULE, 0, 0);
        for (uint32_t at = 0; at < n; at++) {
                if (py->scope_of[at] == NOWHERE)
                        py->scope_of[at] = py->scope_of[NODE(py, at)->parent];
                visit(py, at);
        }
}

/* ---- looking up ---- */

/* The nearest block around a node: its earlier statements have run before the node. */
static uint32_t block_of(const struct python *py, uint32_t node)
{
        for (node = NODE(py, node)->parent; node; node = NODE(py, node)->parent) {
                unsigned kind = NODE(py, node)->kind;
                if (kind == PY_BLOCK || kind == PY_MODULE || kind == PY_FOR || kind == PY_WITH || kind == PY_EXCEPT ||
                        kind == PY_CASE)
                        return node;
        }
        return 0;
}

/* The node to evaluate before a name is bound; 0: none. */
static uint32_t binder_of(const struct python *py, uint32_t at)
{
        for (at = NODE(py, at)->parent; at; at = NODE(py, at)->parent)
                switch (NODE(py, at)->kind) {
                case PY_ASSIGNMENT: case PY_NAMED: case PY_FOR: case PY_AS_PATTERN: case PY_FUNCTION: case PY_CLASS:
                        return at;
                case PY_PATTERN_LIST:
                case PY_TUPLE_PATTERN:
                case PY_LIST_PATTERN:
                case PY_SPLAT_PATTERN:
                case PY_AS_TARGET:
                case PY_TUPLE: case PY_LIST: case PY_PARENTHESES:
                        break;
                default:
                        return 0;
                }
        return 0;
}

/* In "eval = eval" the right name is not bound yet; in "f = lambda: f()" the inner name is. */
static bool is_bound_by_then(const struct python *py, uint32_t at, uint32_t use)
{
        uint32_t binder = binder_of(py, at), run_later = 0;
        if (!binder || !tree_within(py->tree, use, binder))
                return true;
        switch (NODE(py, binder)->kind) {
        case PY_FUNCTION: case PY_FOR:
                run_later = tree_field(py->tree, binder, PYF_body);
                break;
        case PY_CLASS:
                for (uint32_t s = py->scope_of[use]; s && py->scopes[s].node > binder && !run_later;
                        s = py->scopes[s].parent)
                        run_later = py->scopes[s].kind == SCOPE_FUNCTION ? py->scopes[s].node : 0;
                return run_later != 0;
        default:
                run_later = tree_field(py->tree, binder, NODE(py, binder)->kind == PY_NAMED ? PYF_value : PYF_right);
                while (run_later && NODE(py, run_later)->kind == PY_PARENTHESES)
                        run_later = NODE(py, run_later)->child;
                if (run_later && NODE(py, run_later)->kind == PY_LAMBDA)
                        run_later = tree_field(py->tree, run_later, PYF_body);
                else
                        run_later = 0;
        }
        return run_later && tree_within(py->tree, use, run_later);
}

/*
 * In a module or a class a name means the outer binding until its own binding, and again when the own binding is
 * deleted or stands in a branch not taken.
 */
static bool is_covered(const struct python *py, const struct binding *binding, uint32_t use)
{
        if (binding->is_deleted)
                return false;
        unsigned looks = SOURCES_LOOKED_AT;
        for (const struct source *source = binding->sources; source && looks; source = source->next, looks--)
                if (source->at < use && tree_within(py->tree, use, block_of(py, source->at)) &&
                        is_bound_by_then(py, source->at, use))
                        return true;
        return false;
}

/* Builtin functions worth hiding behind another name. */
static const char *const builtins[] = { "__import__", "breakpoint", "compile", "delattr", "eval", "exec", "file",
        "getattr", "globals", "input", "locals", "open", "setattr", "vars", NULL };

static bool is_builtin(const struct name *name)
{
        for (size_t i = 0; builtins[i]; i++)
                if (builtins[i][0] == name->text[0] && strlen(builtins[i]) == name->len &&
                        memcmp(builtins[i], name->text, name->len) == 0)
                        return true;
        return false;
}

/*
 * Modules named without an import: a preload of the run has bound the module, or the import is missing and the program
 * fails by itself.
 */
static bool is_preloadable(const struct name *name)
{
        static const char *const modules[] = { "ctypes", "importlib", "os", "pty", "shutil", "socket", "subprocess" };
        for (size_t i = 0; i < ARRAY_LEN(modules); i++)
                if (strlen(modules[i]) == name->len && memcmp(modules[i], name->text, name->len) == 0)
                        return true;
        return false;
}

static struct value *unbound(struct python *py, uint32_t name)
{
        const struct name *text = &py->names.list[name];
        struct value *value;
        if (is_preloadable(text))
                value = value_path(py, NULL, text->text, text->len);
        else if (text->len == 12 && memcmp(text->text, "__builtins__", 12) == 0)
                value = value_path(py, NULL, "builtins", 8);
        else
                value = value_path(py, "builtins", text->text, text->len);
        for (size_t i = 0; i < py->stars_n && i < VALUES_MAX; i++)
                value = value_either(py, value, value_path(py, py->stars[i], text->text, text->len));
        return value;
}

/* The value of this round if complete, else the value at the end of the last round. */
static struct value *bound(const struct binding *binding)
{
        return binding->seen == binding->fed || !binding->any_before ? binding->value : binding->before;
}

struct value *python_global(struct python *py, uint32_t name, bool locals)
{
        const struct binding *binding = python_binding(py, 0, name);
        if (binding || !is_builtin(&py->names.list[name]))
                return binding ? bound(binding) : NULL;
        for (uint32_t scope = 1; locals && scope < py->scopes_n; scope++)
                if (python_binding(py, scope, name))
                        return NULL;
        return unbound(py, name);
}

struct value *python_lookup(struct python *py, uint32_t name, uint32_t scope, uint32_t use)
{
        struct value *found = NULL;
        bool any = false;
        for (uint32_t at = scope;; at = py->scopes[at].parent) {
                bool class = py->scopes[at].kind == SCOPE_CLASS;
                struct binding *binding = class && at != scope ? NULL : python_binding(py, at, name);
                if (binding && binding->elsewhere) {
                        at = binding->other;
                        class = py->scopes[at].kind == SCOPE_CLASS;
                        binding = python_binding(py, at, name);
                }
                if (binding) {
                        found = any ? value_either(py, found, bound(binding)) : bound(binding);
                        any = true;
                        if ((!class && at != 0) || is_covered(py, binding, use))
                                return found;
                }
                if (at == 0)
                        break;
        }
        if (any && !is_builtin(&py->names.list[name]))
                return found;
        return any ? value_either(py, found, unbound(py, name)) : unbound(py, name);
}
