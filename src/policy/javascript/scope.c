/* Scopes and bindings as in ECMA-262 (9.1 Environment Records, 14.3 Declarations). */
#include "policy/javascript/javascript.h"

#define NOWHERE UINT32_MAX
#define WITHS_MAX 4                     /* `with` statements around a name to look into */

/* ---- names and bindings ---- */

static struct js_binding *js_binding(const struct js *js, uint32_t scope, uint32_t name)
{
        uint32_t place;
        for (size_t at = 0; (place = index_next(&js->binding_index, index_hash(scope, name), &at)) != NAMES_NONE;) {
                struct js_binding *binding = &js->bindings[place];
                if (binding->scope == scope && binding->name == name)
                        return binding;
        }
        return NULL;
}

static struct js_binding *binding_of(struct js *js, uint32_t scope, uint32_t name)
{
        struct js_binding *binding = js_binding(js, scope, name);
        if (binding)
                return binding;
        js->bindings = list_room(js->bindings, js->bindings_n, &js->bindings_size, sizeof *js->bindings);
        js->bindings[js->bindings_n] = (struct js_binding){ .scope = scope, .name = name };
        index_add(&js->binding_index, index_hash(scope, name), (uint32_t)js->bindings_n);
        return &js->bindings[js->bindings_n++];
}

/* ---- sources of names ---- */

static struct js_source *source_add(struct js *js, struct js_binding *binding, struct js_from from)
{
        struct js_source *source = arena_alloc(js->arena, sizeof *source);
        if (binding->sources_n++ >= JS_SOURCES_MAX)
                from = (struct js_from){ 0 };
        source->from = from;
        source->binding = (uint32_t)(binding - js->bindings);
        source->next = binding->sources;
        binding->sources = source;
        if (from.node) {
                source->next_fed = js->feeds[from.node];
                js->feeds[from.node] = source;
        } else {
                source->ready = true;
                binding->value = binding->any ? js_open(js, binding->value) : NULL;
                binding->any = true;
        }
        return source;
}

static void source_value(struct js *js, struct js_binding *binding, struct js_value *value)
{
        struct js_source *source = source_add(js, binding, (struct js_from){ 0 });
        source->value = value;
        struct js_value *all = NULL;
        bool any = false;
        for (const struct js_source *s = binding->sources; s; s = s->next)
                if (s->ready)
                        all = any ? js_either(js, all, s->value) : s->value, any = true;
        binding->value = all;
}

/* The scope of `var`. */
static uint32_t var_scope(const struct js *js, uint32_t scope)
{
        while (js->scopes[scope].kind != JSC_MODULE && js->scopes[scope].kind != JSC_BODY &&
                js->scopes[scope].kind != JSC_FUNCTION)
                scope = js->scopes[scope].parent;
        return scope;
}

static void clash(struct js *js, uint32_t at, uint32_t name)
{
        facts_break(js->facts, JS_NODE(js, at)->start,
                arena_text(js->arena, "SyntaxError: Identifier '%.*s' has already been declared",
                        (int)(js->names.list[name].len < 100 ? js->names.list[name].len : 100),
                        js->names.list[name].text));
}

static struct js_binding *declare(struct js *js, uint32_t at, uint32_t scope, unsigned how)
{
        uint32_t name = js_name(js, at), into = how == JSD_VAR ? var_scope(js, scope) : scope;
        js->roles[at] = JSR_WORD;
        for (uint32_t s = scope; how == JSD_VAR && s != into; s = js->scopes[s].parent) {
                const struct js_binding *between = js_binding(js, s, name);
                if (between && between->declared & JSD_LEXICAL)
                        clash(js, at, name);
        }
        struct js_binding *binding = binding_of(js, into, name);
        bool lexical = how == JSD_LEXICAL, was_lexical = binding->declared & JSD_LEXICAL;
        unsigned kind = JS_NODE(js, js->scopes[into].node)->kind;
        bool twice =
                how == JSD_PARAMETER && binding->declared & JSD_PARAMETER && (kind == JS_ARROW || kind == JS_METHOD);
        if ((was_lexical && how != JSD_MERGED) || twice || (lexical && binding->declared & ~JSD_MERGED))
                clash(js, at, name);
        if (lexical && js->scopes[into].kind == JSC_BODY) {
                const struct js_binding *parameter = js_binding(js, js->scopes[into].parent, name);
                if (parameter && parameter->declared & JSD_PARAMETER)
                        clash(js, at, name);
        }
        if (lexical && js->scopes[into].kind == JSC_BLOCK && js->scopes[js->scopes[into].parent].kind == JSC_CATCH) {
                const struct js_binding *caught = js_binding(js, js->scopes[into].parent, name);
                if (caught && caught->declared & JSD_CATCH)
                        clash(js, at, name);
        }
        binding->declared |= how;
        return binding;
}

/* ---- patterns ---- */

/* The possible values of a target: the value handed over, and the nearest default. */
struct target {
        uint32_t node;
        struct js_from from, other;
        bool has_other;
};

struct targets {
        struct target *list;
        size_t n, size;
};

static void push(struct targets *todo, struct target target)
{
        todo->list = list_room(todo->list, todo->n, &todo->size, sizeof *todo->list);
        todo->list[todo->n++] = target;
}

static struct js_from step(struct js *js, struct js_from from, enum js_step_how how, uint32_t key, int64_t index)
{
        if (!from.node || (from.steps && from.steps->depth == JS_STEPS_MAX))
                return (struct js_from){ 0 };
        struct js_step *step = arena_alloc(js->arena, sizeof *step);
        *step = (struct js_step){ how, key, index, from.steps ? from.steps->depth + 1 : 1, from.steps };
        return (struct js_from){ from.node, step };
}

static struct target part(struct js *js, const struct target *of, uint32_t node, enum js_step_how how, uint32_t key,
        int64_t index)
{
        struct target target = {
                .node = node, .from = step(js, of->from, how, key, index), .has_other = of->has_other
        };
        if (of->has_other)
                target.other = step(js, of->other, how, key, index);
        const struct js_from taken[] = { target.from, target.other };
        for (size_t i = 0; i < 2; i++)
                if (taken[i].node && how != JSS_INDEX) {
                        js->taken = list_room(js->taken, js->taken_n, &js->taken_size, sizeof *js->taken);
                        js->taken[js->taken_n++] = (struct js_taken){ key ? key : node, taken[i] };
                }
        return target;
}

static void object_pattern(struct js *js, struct targets *todo, const struct target *of)
{
        const struct tree *tree = js->tree;
        for (uint32_t child = js_first(tree, of->node); child; child = js_next(tree, child)) {
                unsigned kind = JS_NODE(js, child)->kind;
                uint32_t inner = js_first(tree, child);
                if (kind == JS_SHORTHAND_PATTERN) {
                        push(todo, part(js, of, child, JSS_MEMBER, child, 0));
                } else if (kind == JS_OBJECT_DEFAULT) {
                        struct target target = part(js, of, child, JSS_MEMBER, tree_field(tree, child, JSF_left), 0);
                        push(todo, target);
                } else if (kind == JS_PAIR_PATTERN || kind == JS_PAIR) {
                        uint32_t value = tree_field(tree, child, JSF_value);
                        if (value)
                                push(todo, part(js, of, value, JSS_MEMBER, tree_field(tree, child, JSF_key), 0));
                } else if ((kind == JS_REST || kind == JS_SPREAD) && inner) {
                        push(todo, part(js, of, inner, JSS_REST, 0, 0));
                }
        }
}

static void array_pattern(struct js *js, struct targets *todo, const struct target *of)
{
        int64_t index = 0;
        for (uint32_t child = JS_NODE(js, of->node)->child; child; child = JS_NODE(js, child)->next) {
                const struct node *node = JS_NODE(js, child);
                uint32_t inner = js_first(js->tree, child);
                if (node->token)
                        index += js->tree->text[node->start] == ',';
                else if (node->kind == JS_REST && inner)
                        push(todo, (struct target){ .node = inner });
                else if (node->kind != JS_COMMENT)
                        push(todo, part(js, of, child, JSS_INDEX, 0, index));
        }
}

/* A name with a value: a declaration, or an assignment, which is resolved after all declarations. */
static void bind_name(struct js *js, const struct target *target, unsigned how)
{
        uint32_t at = target->node;
        if (!how) {
                js->roles[at] = JSR_STORE;
                for (int i = 0; i < 1 + target->has_other; i++) {
                        js->assigned =
                                list_room(js->assigned, js->assigned_n, &js->assigned_size, sizeof *js->assigned);
                        js->assigned[js->assigned_n++] = (struct js_assigned){ at, i ? target->other : target->from };
                }
                return;
        }
        struct js_binding *binding = declare(js, at, js->scope_of[at], how);
        source_add(js, binding, target->from);
        if (target->has_other)
                source_add(js, js_binding(js, binding->scope, binding->name), target->other);
}

static void set_scope_below(struct js *js, uint32_t node, uint32_t scope)
{
        if (js->scope_of[node] == NOWHERE)
                js->scope_of[node] = scope;
}

/* `how`: JSD_…, or 0 for an assignment. */
static void bind_target(struct js *js, uint32_t node, uint32_t scope, struct js_from from, unsigned how)
{
        struct targets todo = { 0 };
        if (node)
                push(&todo, (struct target){ .node = node, .from = from });
        while (todo.n) {
                struct target target = todo.list[--todo.n];
                unsigned kind = JS_NODE(js, target.node)->kind;
                set_scope_below(js, target.node, scope);
                switch (kind) {
                case JS_IDENTIFIER: case JS_SHORTHAND_PATTERN: bind_name(js, &target, how); break;
                case JS_OBJECT_PATTERN: case JS_OBJECT: object_pattern(js, &todo, &target); break;
                case JS_ARRAY_PATTERN: case JS_ARRAY: array_pattern(js, &todo, &target); break;
                case JS_ASSIGNMENT_PATTERN: case JS_OBJECT_DEFAULT: case JS_ASSIGNMENT: {
                        uint32_t left = tree_field(js->tree, target.node, JSF_left),
                                 right = tree_field(js->tree, target.node, JSF_right);
                        if (left)
                                push(&todo,
                                        (struct target){ .node = left,
                                                .from = target.from,
                                                .other = { right, NULL },
                                                .has_other = right });
                        break;
                }
                case JS_REST: case JS_PAREN:
                        if (js_first(js->tree, target.node))
                                push(&todo,
                                        (struct target){ .node = js_first(js->tree, target.node),
                                                .from = kind == JS_PAREN ? target.from : (struct js_from){ 0 } });
                        break;
                default: break;
                }
        }
        free(todo.list);
}

/* ---- the walk ---- */

static uint32_t scope_new(struct js *js, enum js_scope_kind kind, uint32_t parent, uint32_t node)
{
        js->scopes = list_room(js->scopes, js->scopes_n, &js->scopes_size, sizeof *js->scopes);
        js->scopes[js->scopes_n] = (struct js_scope){ kind, parent, node };
        return (uint32_t)js->scopes_n++;
}

static void set_scope(struct js *js, uint32_t node, uint32_t scope)
{
        if (node)
                js->scope_of[node] = scope;
}

static void word(struct js *js, uint32_t node)
{
        if (node)
                js->roles[node] = JSR_WORD;
}

static void bind_fixed(struct js *js, uint32_t at, uint32_t scope, unsigned how, struct js_value *value)
{
        struct js_binding *binding = declare(js, at, scope, how);
        source_value(js, binding, value);
}

static struct js_value *function_value(struct js *js, uint32_t node)
{
        struct js_value *value = js_value_new(js, JSV_FUNCTION);
        value->node = node;
        return value;
}

static void add_return(struct js *js, uint32_t function, uint32_t node)
{
        js->returns = list_room(js->returns, js->returns_n, &js->returns_size, sizeof *js->returns);
        js->returns[js->returns_n].function = function;
        js->returns[js->returns_n++].node = node;
}

/* ["a", "b"].map(item => …): neither function nor list are anywhere else, so its first parameter is an item. */
static struct js_from item_of_list(struct js *js, uint32_t at)
{
        static const char *const methods[] = { "map", "forEach", "filter", "flatMap", "some", "every", "find" };
        uint32_t list = JS_NODE(js, at)->parent, call = JS_NODE(js, list)->parent;
        bool argument = JS_NODE(js, list)->kind == JS_ARGUMENTS && JS_NODE(js, call)->kind == JS_CALL &&
                js_first(js->tree, list) == at;
        uint32_t callee =
                argument && !tree_field(js->tree, at, JSF_name) ? tree_field(js->tree, call, JSF_function) : 0;
        uint32_t property =
                callee && JS_NODE(js, callee)->kind == JS_MEMBER ? tree_field(js->tree, callee, JSF_property) : 0;
        uint32_t object = property ? js_bare(js->tree, tree_field(js->tree, callee, JSF_object)) : 0;
        for (size_t i = 0; JS_NODE(js, object)->kind == JS_ARRAY && i < ARRAY_LEN(methods); i++)
                if (js_text_is(js->tree, property, methods[i]))
                        return step(js, (struct js_from){ object, NULL }, JSS_ITEM, 0, 0);
        return (struct js_from){ 0 };
}

static void function(struct js *js, uint32_t at)
{
        const struct tree *tree = js->tree;
        unsigned kind = JS_NODE(js, at)->kind;
        uint32_t outer = js->scope_of[at], name = tree_field(tree, at, JSF_name), body = tree_field(tree, at, JSF_body);
        uint32_t inner = scope_new(js, JSC_FUNCTION, outer, at), parameters = tree_field(tree, at, JSF_parameters);
        uint32_t single = tree_field(tree, at, JSF_parameter);
        if (kind == JS_FUNCTION_DECLARATION || kind == JS_GENERATOR_DECLARATION) {
                if (name)
                        bind_fixed(js, name, outer, JSD_FUNCTION, function_value(js, at));
        } else if (kind != JS_METHOD && name) {
                source_value(js, binding_of(js, inner, js_name(js, name)), function_value(js, at));
                word(js, name);
        }
        set_scope(js, parameters, inner);
        if (single) {
                js->scope_of[single] = inner;
                bind_target(js, single, inner, item_of_list(js, at), JSD_PARAMETER);
        }
        for (uint32_t p = parameters ? js_first(tree, parameters) : 0; p; p = js_next(tree, p))
                bind_target(js, p, inner,
                        p == js_first(tree, parameters) ? item_of_list(js, at) : (struct js_from){ 0 }, JSD_PARAMETER);
        set_scope(js, body, scope_new(js, JSC_BODY, inner, at));
        if (kind == JS_ARROW && body && JS_NODE(js, body)->kind != JS_BLOCK)
                add_return(js, at, body);
}

static void class(struct js *js, uint32_t at)
{
        uint32_t name = tree_field(js->tree, at, JSF_name), outer = js->scope_of[at],
                 inner = scope_new(js, JSC_CLASS, outer, at);
        if (name && JS_NODE(js, at)->kind == JS_CLASS_DECLARATION)
                bind_fixed(js, name, outer, JSD_LEXICAL, function_value(js, at));
        if (name)
                source_value(js, binding_of(js, inner, js_name(js, name)), function_value(js, at));
        word(js, name);
        for (uint32_t child = JS_NODE(js, at)->child; child; child = JS_NODE(js, child)->next)
                if (child != name)
                        js->scope_of[child] = inner;
}

static void variables(struct js *js, uint32_t at, unsigned how)
{
        for (uint32_t d = js_first(js->tree, at); d; d = js_next(js->tree, d)) {
                uint32_t name = tree_field(js->tree, d, JSF_name), value = tree_field(js->tree, d, JSF_value);
                if (JS_NODE(js, d)->kind != JS_DECLARATOR || !name)
                        continue;
                if (value || how != JSD_VAR)
                        bind_target(js, name, js->scope_of[at], (struct js_from){ value, NULL }, how);
                else
                        js->scope_of[name] = js->scope_of[at], declare(js, name, js->scope_of[at], how);
        }
}

static void for_in(struct js *js, uint32_t at)
{
        uint32_t left = tree_field(js->tree, at, JSF_left), right = tree_field(js->tree, at, JSF_right);
        uint32_t kind = tree_field(js->tree, at, JSF_kind), operator = tree_field(js->tree, at, JSF_operator);
        uint32_t inner = scope_new(js, JSC_BLOCK, js->scope_of[at], at);
        js->scope_of[at] = inner;
        if (!left || !right)
                return;
        struct js_from from = { 0 };
        if (operator && js_text_is(js->tree, operator, "of"))
                from = step(js, (struct js_from){ right, NULL }, JSS_ITEM, 0, 0);
        bind_target(js, left, inner, from, !kind ? 0 : js_text_is(js->tree, kind, "var") ? JSD_VAR : JSD_LEXICAL);
}

/* The text of a string node between its quotes, or NULL. */
static const char *constant(struct js *js, uint32_t node, size_t *ret_len)
{
        const struct node *n = JS_NODE(js, node);
        struct buf buf;
        char *text = NULL;
        if (!node || n->kind != JS_STRING || n->end - n->start < 2)
                return NULL;
        buf_init(&buf, JS_TEXT_MAX);
        if (js_unescape(js->tree->text, n->start + 1, n->end - 1, false, &buf)) {
                text = arena_copy(js->arena, buf.bytes ? buf.bytes : "", buf.len);
                *ret_len = buf.len;
        }
        buf_done(&buf);
        return text;
}

static void import_one(struct js *js, uint32_t at, struct js_value *module)
{
        const struct tree *tree = js->tree;
        uint32_t name = tree_field(tree, at, JSF_name), alias = tree_field(tree, at, JSF_alias),
                 target = alias ? alias : name;
        size_t len = 0;
        if (!name || !target || JS_NODE(js, target)->kind != JS_IDENTIFIER)
                return;
        const char *text = constant(js, name, &len);
        word(js, name);
        if (!text) {
                const struct name member = js_word(js, name);
                text = member.text, len = member.len;
        }
        bind_fixed(js, target, js->scope_of[at], JSD_LEXICAL, module ? js_member(js, module, text, len) : NULL);
}

static void import_statement(struct js *js, uint32_t at)
{
        const struct tree *tree = js->tree;
        uint32_t clause = tree_kind(tree, at, JS_IMPORT_CLAUSE);
        size_t len;
        const char *name = constant(js, tree_field(tree, at, JSF_source), &len);
        struct js_value *module = name ? js_module(js, name, len) : NULL;
        uint32_t whole = tree_kind(tree, at, JS_IDENTIFIER);
        if (whole)
                bind_fixed(js, whole, js->scope_of[at], JSD_LEXICAL, module);
        for (uint32_t part = clause ? js_first(tree, clause) : 0; part; part = js_next(tree, part)) {
                unsigned kind = JS_NODE(js, part)->kind;
                uint32_t inner = js_first(tree, part);
                js->scope_of[part] = js->scope_of[at];
                if (kind == JS_IDENTIFIER)
                        bind_fixed(js, part, js->scope_of[at], JSD_LEXICAL,
                                module ? js_member(js, module, "default", 7) : NULL);
                else if (kind == JS_NAMESPACE && inner)
                        bind_fixed(js, inner, js->scope_of[at], JSD_LEXICAL, module);
                for (; kind == JS_NAMED_IMPORTS && inner; inner = js_next(tree, inner)) {
                        js->scope_of[inner] = js->scope_of[at];
                        import_one(js, inner, module);
                }
        }
}

static void export_statement(struct js *js, uint32_t at)
{
        const struct tree *tree = js->tree;
        uint32_t clause = tree_kind(tree, at, JS_EXPORT_CLAUSE), space = tree_kind(tree, at, JS_NAMESPACE_EXPORT);
        bool from = tree_field(tree, at, JSF_source);
        for (uint32_t one = clause ? js_first(tree, clause) : 0; one; one = js_next(tree, one)) {
                word(js, tree_field(tree, one, JSF_alias));
                if (from)
                        word(js, tree_field(tree, one, JSF_name));
        }
        if (space)
                word(js, js_first(tree, space));
}

/* import a = b.c */
static void import_alias(struct js *js, uint32_t at)
{
        uint32_t name = js_first(js->tree, at), of = name ? js_next(js->tree, name) : 0;
        bind_target(js, name, js->scope_of[at], (struct js_from){ of, NULL }, JSD_LEXICAL);
}

/* An enum's members are names in its body. */
static void enumeration(struct js *js, uint32_t at)
{
        const struct tree *tree = js->tree;
        uint32_t body = tree_field(tree, at, JSF_body);
        /* A const enum may be gone when the program runs. */
        bind_target(js, tree_field(tree, at, JSF_name), js->scope_of[at], (struct js_from){ body, NULL },
                    js_has_word(tree, at, "const") ? JSD_IMPLICIT : JSD_MERGED);
        if (!body)
                return;
        js->scope_of[body] = scope_new(js, JSC_BLOCK, js->scope_of[at], at);
        for (uint32_t member = js_first(tree, body); member; member = js_next(tree, member)) {
                bool pair = JS_NODE(js, member)->kind == JS_PAIR;
                uint32_t name = pair ? tree_field(tree, member, JSF_key) : member;
                if (name && JS_NODE(js, name)->kind == JS_PROPERTY)
                        source_add(js, declare(js, name, js->scope_of[body], JSD_MERGED),
                                   (struct js_from){ pair ? tree_field(tree, member, JSF_value) : 0, NULL });
        }
}

/* namespace N { } runs as a function does. */
static void module(struct js *js, uint32_t at)
{
        uint32_t name = tree_field(js->tree, at, JSF_name), body = tree_field(js->tree, at, JSF_body);
        if (name && JS_NODE(js, name)->kind == JS_IDENTIFIER)
                bind_target(js, name, js->scope_of[at], (struct js_from){ at, NULL }, JSD_MERGED);
        set_scope(js, body, scope_new(js, JSC_BODY, js->scope_of[at], at));
}

static void block(struct js *js, uint32_t at, enum js_scope_kind kind)
{
        js->scope_of[at] = scope_new(js, kind, js->scope_of[at], at);
}

static void return_statement(struct js *js, uint32_t at)
{
        uint32_t scope = js->scope_of[at], value = js_first(js->tree, at);
        while (scope && js->scopes[scope].kind != JSC_BODY)
                scope = js->scopes[scope].parent;
        if (scope && value)
                add_return(js, js->scopes[scope].node, value);
}

static void visit(struct js *js, uint32_t at)
{
        const struct tree *tree = js->tree;
        unsigned above;
        switch (JS_NODE(js, at)->kind) {
        case JS_FUNCTION:
        case JS_FUNCTION_DECLARATION:
        case JS_GENERATOR:
        case JS_GENERATOR_DECLARATION:
        case JS_ARROW:
        case JS_METHOD: function(js, at); break;
        case JS_CLASS: case JS_CLASS_DECLARATION: class(js, at); break;
        case JS_STATIC_BLOCK: block(js, at, JSC_BODY); break;
        case JS_BLOCK:
                /* A function's body has its scope already, and a namespace's, too. */
                above = JS_NODE(js, JS_NODE(js, at)->parent)->kind;
                if (!js_is_function(above) && above != JS_MODULE)
                        block(js, at, JSC_BLOCK);
                break;
        case JS_SWITCH_BODY: case JS_FOR: block(js, at, JSC_BLOCK); break;
        case JS_WITH: block(js, at, JSC_WITH); break;
        case JS_CATCH:
                block(js, at, JSC_CATCH);
                bind_target(js, tree_field(tree, at, JSF_parameter), js->scope_of[at], (struct js_from){ 0 },
                        JSD_CATCH);
                break;
        case JS_FOR_IN: for_in(js, at); break;
        case JS_VAR: variables(js, at, JSD_VAR); break;
        case JS_LEXICAL: variables(js, at, JSD_LEXICAL); break;
        case JS_IMPORT: import_statement(js, at); break;
        case JS_IMPORT_ALIAS: import_alias(js, at); break;
        case JS_ENUM: enumeration(js, at); break;
        case JS_MODULE: module(js, at); break;
        case JS_EXPORT: export_statement(js, at); break;
        case JS_ASSIGNMENT:
                bind_target(js, tree_field(tree, at, JSF_left), js->scope_of[at],
                        (struct js_from){ tree_field(tree, at, JSF_right), NULL }, 0);
                break;
        case JS_AUGMENTED: {
                uint32_t left = js_bare(tree, tree_field(tree, at, JSF_left));
                if (JS_NODE(js, left)->kind == JS_IDENTIFIER) {
                        bind_target(js, left, js->scope_of[at], (struct js_from){ at, NULL }, 0);
                        js->roles[left] = JSR_LOAD;
                }
                break;
        }
        case JS_UPDATE: {
                uint32_t left = js_bare(tree, tree_field(tree, at, JSF_argument));
                if (JS_NODE(js, left)->kind == JS_IDENTIFIER)
                        bind_target(js, left, js->scope_of[at], (struct js_from){ 0 }, 0);
                break;
        }
        case JS_RETURN: return_statement(js, at); break;
        default: break;
        }
}

/* ---- after all declarations ---- */

/* The binding of a name as seen from a scope; NULL: a global. */
static struct js_binding *js_resolve(const struct js *js, uint32_t scope, uint32_t name)
{
        for (;; scope = js->scopes[scope].parent) {
                struct js_binding *binding = js_binding(js, scope, name);
                if (binding || scope == 0)
                        return binding;
        }
}

static void assignments(struct js *js)
{
        for (size_t i = 0; i < js->assigned_n; i++) {
                uint32_t at = js->assigned[i].target, name = js_name(js, at);
                struct js_binding *binding = js_resolve(js, js->scope_of[at], name);
                if (!binding) {
                        binding = binding_of(js, 0, name);
                        binding->declared = JSD_IMPLICIT;
                }
                source_add(js, binding, js->assigned[i].from);
        }
}

/* The called function, if certain: the callee itself, or the only value of its name. */
static uint32_t function_of(struct js *js, uint32_t callee)
{
        if (js_is_function(JS_NODE(js, callee)->kind))
                return callee;
        if (JS_NODE(js, callee)->kind != JS_IDENTIFIER)
                return 0;
        const struct js_binding *binding = js_resolve(js, js->scope_of[callee], js_name(js, callee));
        const struct js_source *only = binding ? binding->sources : NULL;
        if (!only || only->next)
                return 0;
        uint32_t node = only->from.node && !only->from.steps ? js_bare(js->tree, only->from.node) : 0;
        if (only->value && only->value->what == JSV_FUNCTION)
                node = only->value->node;
        return node && js_is_function(JS_NODE(js, node)->kind) ? node : 0;
}

uint32_t js_called_function(struct js *js, uint32_t call)
{
        return function_of(js, js_bare(js->tree, tree_field(js->tree, call, JSF_function)));
}

/* [].map(function () { … }), and no object for its `this`. */
static uint32_t called_back(struct js *js, uint32_t call, uint32_t callee)
{
        static const char *const methods[] = { "map", "forEach", "filter", "some", "every", "find", "findIndex",
                "flatMap", "reduce", "sort" };
        uint32_t property = JS_NODE(js, callee)->kind == JS_MEMBER ? tree_field(js->tree, callee, JSF_property) : 0;
        uint32_t list = tree_field(js->tree, call, JSF_arguments),
                 function = property && list ? js_first(js->tree, list) : 0;
        for (size_t i = 0; function && i < ARRAY_LEN(methods); i++)
                if (js_text_is(js->tree, property, methods[i]) &&
                        (!js_next(js->tree, function) || strcmp(methods[i], "reduce") == 0))
                        return js_bare(js->tree, function);
        return 0;
}

/*
 * Functions called by their name alone or by a method of lists: `this` is the global object there.  Constructors are
 * left out.
 */
static void called_alone(struct js *js)
{
        js->alone = arena_alloc(js->arena, js->tree->n);
        for (uint32_t at = 0; at < js->tree->n; at++) {
                bool new = JS_NODE(js, at)->kind == JS_NEW;
                if (JS_NODE(js, at)->token || (!new && JS_NODE(js, at)->kind != JS_CALL))
                        continue;
                uint32_t callee = js_bare(js->tree, tree_field(js->tree, at, new ? JSF_constructor : JSF_function));
                uint32_t back = new ? 0 : called_back(js, at, callee), function = function_of(js, back ? back : callee);
                unsigned kind = JS_NODE(js, function)->kind;
                if (kind == JS_FUNCTION || kind == JS_FUNCTION_DECLARATION || kind == JS_GENERATOR ||
                        kind == JS_GENERATOR_DECLARATION)
                        js->alone[function] |= new ? 2 : 1;
        }
}

static void hand_over(struct js *js, uint32_t parameter, struct js_from from)
{
        if (js->roles[parameter] == JSR_WORD || JS_NODE(js, parameter)->kind != JS_IDENTIFIER) {
                struct targets todo = { 0 };
                push(&todo, (struct target){ .node = parameter, .from = from });
                while (todo.n) {
                        struct target target = todo.list[--todo.n];
                        switch (JS_NODE(js, target.node)->kind) {
                        case JS_IDENTIFIER: case JS_SHORTHAND_PATTERN: {
                                struct js_binding *binding =
                                        js_resolve(js, js->scope_of[target.node], js_name(js, target.node));
                                if (binding && target.from.node)
                                        source_add(js, binding, target.from);
                                break;
                        }
                        case JS_OBJECT_PATTERN: object_pattern(js, &todo, &target); break;
                        case JS_ARRAY_PATTERN: array_pattern(js, &todo, &target); break;
                        case JS_ASSIGNMENT_PATTERN: case JS_OBJECT_DEFAULT:
                                target.node = tree_field(js->tree, target.node, JSF_left);
                                if (target.node)
                                        push(&todo, target);
                                break;
                        default: break;
                        }
                }
                free(todo.list);
        }
}

#define ARGUMENTS_MAX 8

static void arguments(struct js *js, uint32_t call)
{
        uint32_t function = js_called_function(js, call), list = tree_field(js->tree, call, JSF_arguments);
        uint32_t argument = list ? js_first(js->tree, list) : 0, parameters = 0, parameter = 0;
        uint32_t callee = js_bare(js->tree, tree_field(js->tree, call, JSF_function));
        if (function) {
                parameters = tree_field(js->tree, function, JSF_parameters);
                parameter = parameters ? js_first(js->tree, parameters) : tree_field(js->tree, function, JSF_parameter);
                for (unsigned i = 0;
                        argument && parameter && i < ARGUMENTS_MAX && JS_NODE(js, argument)->kind != JS_SPREAD; i++) {
                        hand_over(js, parameter, (struct js_from){ argument, NULL });
                        argument = js_next(js->tree, argument);
                        parameter = parameters ? js_next(js->tree, parameter) : 0;
                }
                return;
        }
        /* import("x").then(module => …) */
        if (!argument || JS_NODE(js, callee)->kind != JS_MEMBER || !js_is_function(JS_NODE(js, argument)->kind))
                return;
        uint32_t property = tree_field(js->tree, callee, JSF_property),
                 object = js_bare(js->tree, tree_field(js->tree, callee, JSF_object));
        parameters = tree_field(js->tree, argument, JSF_parameters);
        parameter = parameters ? js_first(js->tree, parameters) : tree_field(js->tree, argument, JSF_parameter);
        if (property && js_text_is(js->tree, property, "then") && JS_NODE(js, object)->kind == JS_CALL && parameter)
                hand_over(js, parameter, (struct js_from){ object, NULL });
}

/* The owner of `this` for each node: an arrow function has the owner of its place. */
static void owners(struct js *js)
{
        for (uint32_t at = 0; at < js->tree->n; at++) {
                uint32_t parent = JS_NODE(js, at)->parent;
                unsigned above = JS_NODE(js, parent)->kind;
                bool owns = (js_is_function(above) && above != JS_ARROW) || above == JS_CLASS_BODY;
                js->owner[at] = at == 0 ? 0 : owns ? parent : js->owner[parent];
        }
}

void js_scopes(struct js *js)
{
        size_t n = js->tree->n;
        js->roles = arena_alloc(js->arena, n);
        js->scope_of = arena_alloc(js->arena, n * sizeof *js->scope_of);
        js->name_of = arena_alloc(js->arena, n * sizeof *js->name_of);
        js->owner = arena_alloc(js->arena, n * sizeof *js->owner);
        js->feeds = arena_alloc(js->arena, n * sizeof(struct js_source *));
        memset(js->scope_of, 0xff, n * sizeof *js->scope_of);
        js->scope_of[0] = scope_new(js, JSC_MODULE, 0, 0);
        for (uint32_t at = 0; at < n; at++) {
                if (js->scope_of[at] == NOWHERE)
                        js->scope_of[at] = js->scope_of[JS_NODE(js, at)->parent];
                visit(js, at);
        }
        owners(js);
        assignments(js);
        for (uint32_t at = 0; at < n; at++)
                if (JS_NODE(js, at)->kind == JS_CALL)
                        arguments(js, at);
        called_alone(js);
}

/* ---- looking up ---- */

/* `var require` names the parameter of the function of Node.js around a program, and keeps its value. */
static bool is_wrapped(const struct js *js, const struct js_binding *binding)
{
        const struct name *name = &js->names.list[binding->name];
        return binding->scope == 0 && binding->declared == JSD_VAR &&
               (js_is("require", name->text, name->len) || js_is("module", name->text, name->len));
}

struct js_value *js_lookup(struct js *js, uint32_t node)
{
        uint32_t name = js_name(js, node), scope = js->scope_of[node];
        const struct name *text = &js->names.list[name];
        struct js_value *value = NULL;
        bool any = false;
        unsigned withs = WITHS_MAX;
        for (;; scope = js->scopes[scope].parent) {
                struct js_binding *binding = js_binding(js, scope, name);
                if (binding) {
                        binding->read = true;
                        value = any ? js_either(js, value, binding->value) : binding->value;
                        any = true;
                        if (binding->declared != JSD_IMPLICIT && !is_wrapped(js, binding))
                                return value;
                }
                if (js->scopes[scope].kind == JSC_WITH && js->values && withs) {
                        uint32_t object = tree_field(js->tree, js->scopes[scope].node, JSF_object);
                        withs--;
                        /* The object itself is named outside of the statement. */
                        if (object && !tree_within(js->tree, node, object) && js->values[object]) {
                                struct js_value *member = js_member(js, js->values[object], text->text, text->len);
                                value = any ? js_either(js, value, member) : member;
                                any = true;
                        }
                }
                if (scope == 0)
                        break;
        }
        struct js_value *global = js_path(js, "globalThis", text->text, text->len);
        return any ? js_either(js, value, global) : global;
}
