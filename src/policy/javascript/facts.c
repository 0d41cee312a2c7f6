/* Facts about a program. */
#include "policy/javascript/javascript.h"

static void say(struct js *js, enum fact_kind kind, uint32_t node, const char *name, size_t len)
{
        const struct node *n = JS_NODE(js, node);
        facts_add(js->facts, (struct fact){ .kind = kind, .name = name, .len = len, .start = n->start, .end = n->end });
}

static bool is_path(const struct js_value *value, const char *path)
{
        return value->what == JSV_PATH && strcmp(value->text, path) == 0;
}

/* ---- uses of names ---- */

/* The outermost parentheses around a node. */
static uint32_t outermost(const struct js *js, uint32_t node)
{
        while (node && JS_NODE(js, JS_NODE(js, node)->parent)->kind == JS_PAREN)
                node = JS_NODE(js, node)->parent;
        return node;
}

static bool operator_is(const struct js *js, uint32_t node, const char *const *list)
{
        uint32_t operator = tree_field(js->tree, node, JSF_operator);
        for (size_t i = 0; operator && list[i]; i++)
                if (js_text_is(js->tree, operator, list[i]))
                        return true;
        return false;
}

static const char *const comparisons[] = { "===", "!==", "==", "!=", "instanceof", "in", NULL };

static bool is_assigned(const struct js *js, uint32_t node)
{
        return JS_NODE(js, JS_NODE(js, node)->parent)->kind == JS_ASSIGNMENT && JS_NODE(js, node)->field == JSF_left;
}

/* A mention of which nothing comes: typeof fetch, x instanceof Function, Function.prototype. */
static bool is_harmless(const struct js *js, uint32_t node, const struct js_value *value)
{
        static const char *const tests[] = { "typeof", "delete", NULL };
        uint32_t at = outermost(js, node), parent = JS_NODE(js, at)->parent;
        unsigned above = JS_NODE(js, parent)->kind;
        if (above == JS_UNARY && operator_is(js, parent, tests))
                return true;
        if (is_assigned(js, at) && JS_NODE(js, at)->kind != JS_IDENTIFIER &&
                strncmp(value->text, "globalThis.", 11) == 0 && !strchr(value->text + 11, '.'))
                return true;
        if (!is_path(value, "globalThis.Function"))
                return false;
        if (above == JS_MEMBER && JS_NODE(js, at)->field == JSF_object) {
                uint32_t property = tree_field(js->tree, parent, JSF_property);
                return property &&
                        (js_text_is(js->tree, property, "prototype") || js_text_is(js->tree, property, "name") ||
                                js_text_is(js->tree, property, "length"));
        }
        return above == JS_BINARY && operator_is(js, parent, comparisons);
}

/* Whether an argument goes to a known parameter, or to a function with no more than its kind as a result. */
static bool is_followed(struct js *js, uint32_t argument, uint32_t call)
{
        struct js_value *object, *name;
        uint32_t function = js_called_function(js, call), list = tree_field(js->tree, call, JSF_arguments);
        uint32_t parameters = function ? tree_field(js->tree, function, JSF_parameters) : 0;
        uint32_t parameter = parameters ? js_first(js->tree, parameters)
                : function              ? tree_field(js->tree, function, JSF_parameter)
                                        : 0;
        const struct js_call parts = js_call(js, call);
        if (js_taking(&parts, &object, &name))
                return true;
        /* The last is Reflect.apply(require, …). */
        for (const struct js_value *f = parts.function; f; f = f->next)
                if (is_path(f, "globalThis.Object.prototype.toString") ||
                        (argument == js_first(js->tree, list) && js_same(f, js->values[argument])))
                        return true;
        for (uint32_t at = js_first(js->tree, list); at && at != argument; at = js_next(js->tree, at))
                parameter = parameter && parameters ? js_next(js->tree, parameter) : 0;
        return parameter && JS_NODE(js, parameter)->kind != JS_REST;
}

/* Whether a value goes where the analysis cannot follow. */
static bool is_handed_on(struct js *js, uint32_t node)
{
        static const char *const choices[] = { "||", "??", "&&", NULL }, *const and[] = { "&&", NULL };
        for (;;) {
                uint32_t parent = JS_NODE(js, node)->parent, left;
                unsigned field = JS_NODE(js, node)->field;
                switch (JS_NODE(js, parent)->kind) {
                case JS_PAREN: case JS_AWAIT: break;
                case JS_MEMBER:
                case JS_SUBSCRIPT:
                case JS_CALL:
                case JS_NEW:
                case JS_DECLARATOR:
                case JS_ASSIGNMENT_PATTERN:
                case JS_OBJECT_DEFAULT:
                case JS_UNARY:
                case JS_STATEMENT:
                case JS_IF:
                case JS_WHILE:
                case JS_DO:
                case JS_WITH:
                case JS_FOR:
                case JS_UPDATE:
                case JS_AUGMENTED:
                        return false;
                case JS_ASSIGNMENT:
                        left = js_bare(js->tree, tree_field(js->tree, parent, JSF_left));
                        if (field == JSF_left)
                                return false;
                        if (JS_NODE(js, left)->kind == JS_MEMBER || JS_NODE(js, left)->kind == JS_SUBSCRIPT)
                                return true;
                        break;
                case JS_BINARY:
                        if (!operator_is(js, parent, choices) || (field == JSF_left && operator_is(js, parent, and)))
                                return false;
                        break;
                case JS_TERNARY:
                        if (field == JSF_condition)
                                return false;
                        break;
                case JS_SEQUENCE:
                        if (js_next(js->tree, node))
                                return false;
                        break;
                case JS_ARGUMENTS: return !is_followed(js, node, JS_NODE(js, parent)->parent);
                default: return true;
                }
                node = parent;
        }
}

static void handed_on(struct js *js, uint32_t node, const struct js_value *value)
{
        bool process = is_path(value, "globalThis.process"), require = is_path(value, "globalThis.require");
        if ((!process && !require) || !is_handed_on(js, node))
                return;
        say(js, process ? FACT_DYNAMIC : FACT_DYNAMIC_IMPORT, node, process ? value->text : "require",
                process ? value->len : 7);
}

static void references(struct js *js, uint32_t node, const struct js_value *value)
{
        for (; value; value = value->next) {
                if (value->what != JSV_PATH || is_harmless(js, node, value))
                        continue;
                say(js, FACT_REFERENCE, node, value->text, value->len);
                if (value->reached)
                        say(js, FACT_IMPORT, node, value->text, value->len);
                handed_on(js, node, value);
        }
}

/* Report a member with a variable name, of each path. */
static void dynamic(struct js *js, uint32_t node, const struct js_value *base)
{
        for (; base; base = base->next)
                if (base->what == JSV_PATH)
                        say(js, FACT_DYNAMIC, node, base->text, base->len);
}

static bool is_constant(struct js *js, const struct js_value *name)
{
        bool constant = name && !name->open;
        for (; name && constant; name = name->next) {
                struct js_value one = *name;
                one.next = NULL;
                /* No member with a name has a symbol for its name. */
                constant = js_string_of(js, &one) != NULL || is_path(name, "globalThis.Symbol()");
        }
        return constant;
}

/* ---- names and members ---- */

static void identifier(struct js *js, uint32_t node)
{
        if (js->roles[node] == JSR_WORD)
                return;
        const struct name name = js_word(js, node);
        say(js, FACT_NAME, node, name.text, name.len);
        if (js->roles[node] == JSR_LOAD)
                references(js, node, js->values[node]);
}

static void member(struct js *js, uint32_t node)
{
        uint32_t property = tree_field(js->tree, node, JSF_property);
        if (property) {
                const struct name name = js_word(js, property);
                say(js, FACT_ATTRIBUTE, property, name.text, name.len);
        }
        references(js, node, js->values[node]);
}

static void subscript(struct js *js, uint32_t node)
{
        uint32_t base = tree_field(js->tree, node, JSF_object), index = tree_field(js->tree, node, JSF_index);
        references(js, node, js->values[node]);
        if (!base || !index)
                return;
        for (const struct js_value *name = js->values[index]; name; name = name->next)
                if (name->what == JSV_TEXT)
                        say(js, FACT_ATTRIBUTE, index, name->text, name->len);
        if (!is_constant(js, js->values[index]) && !is_assigned(js, node))
                dynamic(js, node, js->values[base]);
}

static void taken_by_patterns(struct js *js)
{
        for (size_t i = 0; i < js->taken_n; i++) {
                const struct js_taken *taken = &js->taken[i];
                const struct js_step *step = taken->from.steps;
                const struct js_value *value = js_apply(js, &taken->from);
                unsigned kind = JS_NODE(js, taken->at)->kind;
                if (step->how != JSS_MEMBER)
                        continue;
                for (const struct js_value *v = value; v; v = v->next)
                        if (v->what == JSV_PATH) {
                                say(js, FACT_REFERENCE, taken->at, v->text, v->len);
                                if (v->reached)
                                        say(js, FACT_IMPORT, taken->at, v->text, v->len);
                        }
                struct js_from base = { taken->from.node, step->up };
                if (kind == JS_COMPUTED && !is_constant(js, js->values[taken->at]))
                        dynamic(js, taken->at, js_apply(js, &base));
        }
}

/* ---- modules ---- */

static void import_named(struct js *js, uint32_t node, const char *text, size_t text_len)
{
        size_t len;
        const char *name = js_module_name(js, text, text_len, &len);
        if (name)
                say(js, FACT_IMPORT, node, name, len);
        else
                say(js, FACT_RELATIVE_IMPORT, node, ".", 1);
}

/* import and export … from. */
static void import(struct js *js, uint32_t node)
{
        const struct tree *tree = js->tree;
        uint32_t source = tree_field(tree, node, JSF_source), clause = tree_kind(tree, node, JS_IMPORT_CLAUSE);
        const struct js_value *name = source ? js_only(js->values[source], JSV_TEXT) : NULL;
        if (!source)
                return;
        if (!name) {
                say(js, FACT_DYNAMIC_IMPORT, source, "import", 6);
                return;
        }
        import_named(js, source, name->text, name->len);
        struct js_value *module = js_module(js, name->text, name->len);
        uint32_t list = clause ? tree_kind(tree, clause, JS_NAMED_IMPORTS) : tree_kind(tree, node, JS_EXPORT_CLAUSE);
        for (uint32_t one = list ? js_first(tree, list) : 0; one && module; one = js_next(tree, one)) {
                uint32_t member = tree_field(tree, one, JSF_name);
                if (!member)
                        continue;
                const struct name word = js_word(js, member);
                const struct js_value *text = js_only(js->values[member], JSV_TEXT), *value;
                value = text ? js_member(js, module, text->text, text->len)
                             : js_member(js, module, word.text, word.len);
                if (value && value->what == JSV_PATH)
                        say(js, FACT_REFERENCE, member, value->text, value->len);
        }
        if (JS_NODE(js, node)->kind == JS_EXPORT && !list && module && is_path(module, "globalThis.process"))
                dynamic(js, node, module);
}

/* An import of types takes nothing, but loads the module.  Modules of Node.js do nothing when loaded. */
static void import_of_types(struct js *js, uint32_t node)
{
        uint32_t source = tree_field(js->tree, node, JSF_source);
        const struct js_value *name = source ? js_only(js->values[source], JSV_TEXT) : NULL;
        size_t len;
        const char *module = name ? js_module_name(js, name->text, name->len, &len) : NULL;
        if (name && (!module || strncmp(module, "node:", 5) != 0))
                import_named(js, source, name->text, name->len);
}

static void imported_by_call(struct js *js, const struct js_call *call)
{
        const char *importer = js_importing(call);
        if (!importer || (!call->args_n && !call->splat))
                return;
        bool constant = call->args_n && call->args[0] && !call->args[0]->open;
        for (const struct js_value *name = call->args_n ? call->args[0] : NULL; name; name = name->next) {
                constant = constant && name->what == JSV_TEXT;
                if (name->what == JSV_TEXT)
                        import_named(js, call->node, name->text, name->len);
        }
        if (!constant)
                say(js, FACT_DYNAMIC_IMPORT, call->node, importer, strlen(importer));
}

/* ---- calls ---- */

static bool is_text(const struct js_value *value)
{
        for (; value; value = value->next)
                if (value->what == JSV_TEXT || value->what == JSV_SOME_TEXT)
                        return true;
        return false;
}

static void text_as_code(struct js *js, const struct js_call *call)
{
        static const char *const timers[] = { "globalThis.setTimeout", "globalThis.setInterval",
                "globalThis.setImmediate" };
        for (const struct js_value *f = call->function; f; f = f->next)
                for (size_t i = 0; i < ARRAY_LEN(timers); i++)
                        if (is_path(f, timers[i]) && call->args_n && is_text(call->args[0]))
                                say(js, FACT_TEXT_CODE, call->node, f->text, f->len);
}

/* anything.constructor("text")(): if the call does anything at all, for any object, the text runs. */
static void made_and_called(struct js *js, uint32_t node)
{
        uint32_t inner = js_bare(js->tree, tree_field(js->tree, node, JSF_function));
        if (JS_NODE(js, inner)->kind != JS_CALL && JS_NODE(js, inner)->kind != JS_NEW)
                return;
        const struct js_call call = js_call(js, inner);
        if (call.method && js_is("constructor", call.method, call.method_len) && call.args_n &&
                is_text(call.args[call.args_n - 1]))
                say(js, FACT_REFERENCE, inner, "globalThis.Function", 19);
}

static void call(struct js *js, uint32_t node)
{
        const struct js_call parts = js_call(js, node);
        uint32_t function = tree_field(js->tree, node, parts.is_new ? JSF_constructor : JSF_function);
        struct js_value *object, *name;
        if (!function)
                return;
        for (const struct js_value *f = parts.function; f; f = f->next)
                if (f->what == JSV_PATH)
                        say(js, FACT_CALL, function, f->text, f->len);
        imported_by_call(js, &parts);
        text_as_code(js, &parts);
        made_and_called(js, node);
        if (!js_taking(&parts, &object, &name)) {
                for (const struct js_value *value = js->values[node]; value; value = value->next)
                        if (is_path(value, "globalThis.process"))
                                handed_on(js, node, value);
                return;
        }
        if (!is_constant(js, name))
                dynamic(js, node, object);
        for (const struct js_value *one = name; one; one = one->next)
                if (one->what == JSV_TEXT)
                        references(js, node, js_member(js, object, one->text, one->len));
}

/* ---- texts ---- */

static void text(struct js *js, uint32_t node)
{
        const struct js_value *value = js_only(js->values[node], JSV_TEXT);
        uint32_t at = outermost(js, node), parent = JS_NODE(js, at)->parent;
        unsigned kind = JS_NODE(js, node)->kind;
        if (JS_NODE(js, parent)->kind == JS_BINARY && js_only(js->values[parent], JSV_TEXT))
                return;
        if (value && value->len)
                say(js, FACT_STRING, node, value->text, value->len);
        /* With holes: report the text between the holes. */
        for (uint32_t child = JS_NODE(js, node)->child; child && !value && kind == JS_TEMPLATE;
                child = JS_NODE(js, child)->next)
                if (JS_NODE(js, child)->kind == JS_FRAGMENT)
                        say(js, FACT_STRING, child, js->tree->text + JS_NODE(js, child)->start,
                                JS_NODE(js, child)->end - JS_NODE(js, child)->start);
}

void js_facts(struct js *js)
{
        /* The parts first: of process.env.HOME the finding is process.env. */
        for (uint32_t i = 0; i < js->tree->n; i++) {
                uint32_t node = js->order[i];
                if (JS_NODE(js, node)->token)
                        continue;
                switch (JS_NODE(js, node)->kind) {
                case JS_IMPORT: case JS_EXPORT: import(js, node); break;
                case JS_IMPORT_TYPES: import_of_types(js, node); break;
                case JS_IDENTIFIER: case JS_SHORTHAND: identifier(js, node); break;
                case JS_MEMBER: member(js, node); break;
                case JS_SUBSCRIPT: subscript(js, node); break;
                case JS_CALL: case JS_NEW: call(js, node); text(js, node); break;
                case JS_STRING: case JS_TEMPLATE: case JS_BINARY: text(js, node); break;
                default: break;
                }
        }
        taken_by_patterns(js);
}
