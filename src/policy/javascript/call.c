/* Calls: members by name, and values of calls. */
#include "policy/javascript/javascript.h"

#define UNWRAPPED_MAX 4

/* ---- a call taken apart ---- */

static void add_argument(struct js_call *call, size_t size, struct js_value *value)
{
        if (call->args_n < size)
                call->args[call->args_n++] = value;
        else
                call->splat = true;
}

static void arguments(struct js *js, struct js_call *call, uint32_t list)
{
        size_t size = 0;
        for (uint32_t child = js_first(js->tree, list); child && size < JS_ITEMS_MAX;
                child = js_next(js->tree, child)) {
                const struct js_value *spread =
                        JS_NODE(js, child)->kind == JS_SPREAD ? js_only(js->values[child], JSV_LIST) : NULL;
                size += spread ? spread->n : 1;
        }
        if (size > JS_ITEMS_MAX)
                size = JS_ITEMS_MAX;
        call->args = arena_alloc(js->arena, (size + 1) * sizeof(struct js_value *));
        for (uint32_t child = js_first(js->tree, list); child; child = js_next(js->tree, child)) {
                if (JS_NODE(js, child)->kind != JS_SPREAD) {
                        add_argument(call, size, js->values[child]);
                        continue;
                }
                const struct js_value *spread = js_only(js->values[child], JSV_LIST);
                call->splat = call->splat || !spread;
                for (size_t i = 0; spread && i < spread->n; i++)
                        add_argument(call, size, spread->items[i]);
        }
}

static bool has_callable(const struct js_value *value)
{
        for (; value; value = value->next)
                if (js_is_callable(value))
                        return true;
        return false;
}

static void shift(struct js_call *call, size_t by)
{
        by = by < call->args_n ? by : call->args_n;
        call->args += by;
        call->args_n -= by;
}

/* Take the arguments from a list. */
static void spread(struct js_call *call, struct js_value *list)
{
        const struct js_value *items = js_only(list, JSV_LIST);
        call->args_n = items ? items->n : 0;
        call->splat = !items;
        if (items)
                call->args = items->items;
}

static bool calls_path(const struct js_call *call, const char *path)
{
        for (const struct js_value *f = call->function; f; f = f->next)
                if (f->what == JSV_PATH && strcmp(f->text, path) == 0)
                        return true;
        return false;
}

static bool unwrap(struct js_call *call)
{
        bool reflected = calls_path(call, "globalThis.Reflect.apply"),
             built = calls_path(call, "globalThis.Reflect.construct");
        if (reflected || built) {
                size_t at = reflected ? 2 : 1;
                if (!call->args_n)
                        return false;
                call->function = call->args[0];
                call->method = NULL;
                call->is_new = built;
                spread(call, call->args_n > at ? call->args[at] : NULL);
                return true;
        }
        if (!call->method || !has_callable(call->object))
                return false;
        bool calls = js_is("call", call->method, call->method_len),
             applies = js_is("apply", call->method, call->method_len);
        bool binds = js_is("bind", call->method, call->method_len);
        if (!calls && !applies && !binds)
                return false;
        call->function = call->object;
        call->object = NULL;
        call->method = NULL;
        call->is_bind = binds;
        if (applies)
                spread(call, call->args_n > 1 ? call->args[1] : NULL), call->splat = call->splat && call->args_n != 1;
        else
                shift(call, 1);
        return !binds;
}

struct js_call js_call(struct js *js, uint32_t node)
{
        const struct tree *tree = js->tree;
        bool new = JS_NODE(js, node)->kind == JS_NEW;
        struct js_call call = { .node = node, .is_new = new };
        uint32_t list = tree_field(tree, node, JSF_arguments),
                 callee = js_bare(tree, tree_field(tree, node, new ? JSF_constructor : JSF_function));
        unsigned kind = callee ? JS_NODE(js, callee)->kind : JS_OTHER;
        call.is_import = kind == JS_IMPORT_WORD;
        call.function = callee ? js->values[callee] : NULL;
        if (kind == JS_MEMBER || kind == JS_SUBSCRIPT) {
                uint32_t object = tree_field(tree, callee, JSF_object),
                         property = tree_field(tree, callee, JSF_property);
                uint32_t index = tree_field(tree, callee, JSF_index);
                const struct js_value *name = index ? js_only(js->values[index], JSV_TEXT) : NULL;
                call.object = object ? js->values[object] : NULL;
                if (property) {
                        const struct name word = js_word(js, property);
                        call.method = word.text, call.method_len = word.len;
                } else if (name) {
                        call.method = name->text, call.method_len = name->len;
                }
        }
        if (list && JS_NODE(js, list)->kind == JS_TEMPLATE) {
                call.args = arena_alloc(js->arena, sizeof(struct js_value *));
                call.args[call.args_n++] = js->values[list];
        } else if (list) {
                arguments(js, &call, list);
        }
        for (unsigned i = 0; i < UNWRAPPED_MAX && unwrap(&call); i++)
                continue;
        return call;
}

/* ---- values of calls ---- */

static struct js_value *argument(const struct js_call *call, size_t i)
{
        return i < call->args_n ? call->args[i] : NULL;
}

static struct js_value *some_text(struct js *js)
{
        return js_value_new(js, JSV_SOME_TEXT);
}

static struct js_value *give_from_codes(struct js *js, const struct js_call *call)
{
        struct js_value *text = call->splat ? NULL : js_from_codes(js, call->args, call->args_n);
        return text ? text : some_text(js);
}

static struct js_value *give_string(struct js *js, const struct js_call *call)
{
        struct js_value *text = call->args_n ? js_string_of(js, call->args[0]) : js_value_text(js, JSV_TEXT, "", 0);
        return text ? text : some_text(js);
}

static struct js_value *give_atob(struct js *js, const struct js_call *call)
{
        const struct js_value *text = js_only(argument(call, 0), JSV_TEXT);
        struct js_value *bytes = text ? js_decoded(js, text, "base64", 6) : NULL;
        return bytes ? js_value_text(js, JSV_TEXT, bytes->text, bytes->len) : some_text(js);
}

static struct js_value *give_unpercent(struct js *js, const struct js_call *call)
{
        const struct js_value *text = js_only(argument(call, 0), JSV_TEXT);
        struct js_value *plain = text ? js_unpercent(js, text) : NULL;
        return plain ? plain : some_text(js);
}

static struct js_value *give_buffer(struct js *js, const struct js_call *call)
{
        struct js_value *from = argument(call, 0);
        const struct js_value *encoding = js_only(argument(call, 1), JSV_TEXT), *list = js_only(from, JSV_LIST);
        struct js_value *text = list ? js_from_codes(js, list->items, list->n) : js_only(from, JSV_TEXT);
        if (!text || (call->args_n > 1 && !encoding))
                return js_value_new(js, JSV_PLAIN);
        return js_decoded(js, text, encoding ? encoding->text : "", encoding ? encoding->len : 0);
}

static struct js_value *give_list(struct js *js, const struct js_call *call)
{
        struct js_value *from = argument(call, 0), *text = js_only(from, JSV_TEXT);
        struct js_value *nothing = js_value_text(js, JSV_TEXT, "", 0);
        if (text && call->args_n == 1)
                return js_text_method(js, text, "split", 5, &nothing, 1);
        return call->args_n == 1 ? js_only(from, JSV_LIST) : NULL;
}

static struct js_value *give_first(struct js *js, const struct js_call *call)
{
        (void)js;
        return argument(call, 0);
}

static struct js_value *give_all(struct js *js, const struct js_call *call)
{
        struct js_value *value = argument(call, 0);
        for (size_t i = 1; i < call->args_n && i < JS_VALUES_MAX; i++)
                if (call->args[i])
                        value = js_either(js, value, call->args[i]);
        return value;
}

static struct js_value *give_prototype(struct js *js, const struct js_call *call)
{
        struct js_value *of = argument(call, 0);
        return of ? js_member(js, of, "__proto__", 9) : NULL;
}

static struct js_value *give_member(struct js *js, const struct js_call *call)
{
        return js_item(js, argument(call, 0), argument(call, 1));
}

static struct js_value *give_descriptor(struct js *js, const struct js_call *call)
{
        struct js_value *member = give_member(js, call), *object = js_value_new(js, JSV_OBJECT);
        object->items = arena_alloc(js->arena, 4 * sizeof(struct js_value *));
        object->items[0] = js_value_text(js, JSV_TEXT, "value", 5);
        object->items[1] = member;
        object->items[2] = js_value_text(js, JSV_TEXT, "get", 3);
        object->items[3] = member;
        object->n = 4;
        return member ? object : NULL;
}

static struct js_value *give_module(struct js *js, const struct js_call *call)
{
        struct js_value *value = NULL;
        bool any = false;
        for (const struct js_value *name = argument(call, 0); name; name = name->next) {
                struct js_value *module = name->what == JSV_TEXT ? js_module(js, name->text, name->len) : NULL;
                value = any ? js_either(js, value, module) : module;
                any = true;
        }
        return value;
}

static struct js_value *give_require(struct js *js, const struct js_call *call)
{
        (void)call;
        return js_path(js, NULL, "globalThis.require", 18);
}

static struct js_value *give_number(struct js *js, const struct js_call *call)
{
        const struct js_value *text = js_only(argument(call, 0), JSV_TEXT),
                              *base = js_only(argument(call, 1), JSV_NUMBER);
        if (!text || text->len > 18 || (base && (base->number < 2 || base->number > 36)))
                return js_only(argument(call, 0), JSV_NUMBER);
        return js_value_number(js, strtoll(text->text, NULL, base ? (int)base->number : 10));
}

static struct js_value *give_function(struct js *js, const struct js_call *call)
{
        (void)call;
        return js_value_new(js, JSV_FUNCTION);
}

/* All loaded modules, as in module.children. */
static struct js_value *give_values(struct js *js, const struct js_call *call)
{
        const struct js_value *of = argument(call, 0);
        return of && of->what == JSV_PATH && strcmp(of->text, "globalThis.require.cache") == 0
                ? js_path(js, NULL, "globalThis.module.children", 26)
                : NULL;
}

static struct js_value *give_symbol(struct js *js, const struct js_call *call)
{
        (void)call;
        return js_path(js, NULL, "globalThis.Symbol()", 19);
}

static const struct { const char *path; struct js_value *(*give)(struct js *, const struct js_call *); } givers[] = {
        { "globalThis.Array", give_list },
        { "globalThis.Array.from", give_list },
        { "globalThis.Buffer", give_buffer },
        { "globalThis.Buffer.from", give_buffer },
        { "globalThis.Function", give_function },
        { "globalThis.Number", give_number },
        { "globalThis.Object", give_first },
        { "globalThis.Object.assign", give_all },
        { "globalThis.Object.create", give_first },
        { "globalThis.Object.freeze", give_first },
        { "globalThis.Object.seal", give_first },
        { "globalThis.Object.getOwnPropertyDescriptor", give_descriptor },
        { "globalThis.Object.getPrototypeOf", give_prototype },
        { "globalThis.Object.values", give_values },
        { "globalThis.Promise.resolve", give_first },
        { "globalThis.Proxy", give_first },
        { "globalThis.Reflect.get", give_member },
        { "globalThis.Reflect.getOwnPropertyDescriptor", give_descriptor },
        { "globalThis.Reflect.getPrototypeOf", give_prototype },
        { "globalThis.String", give_string },
        { "globalThis.String.fromCharCode", give_from_codes },
        { "globalThis.String.fromCodePoint", give_from_codes },
        { "globalThis.String.raw", give_first },
        { "globalThis.Symbol", give_symbol },
        { "globalThis.Symbol.for", give_symbol },
        { "globalThis.atob", give_atob },
        { "globalThis.decodeURI", give_unpercent },
        { "globalThis.decodeURIComponent", give_unpercent },
        { "globalThis.parseInt", give_number },
        { "globalThis.process.getBuiltinModule", give_module },
        { "globalThis.require", give_module },
        { "globalThis.unescape", give_unpercent },
        { "node:module._load", give_module },
        { "node:module.createRequire", give_require },
        { "node:module.createRequireFromPath", give_require },
};

/* The values returned by a function of the program. */
static struct js_value *returned(struct js *js, const struct js_call *call, uint32_t function)
{
        struct js_value *value = NULL;
        bool any = false;
        unsigned looks = JS_SOURCES_MAX, kind = JS_NODE(js, function)->kind;
        if (call->is_new || kind == JS_GENERATOR || kind == JS_GENERATOR_DECLARATION)
                return NULL;
        for (uint32_t i = js->first_return[function]; i && looks; i = js->returns[i - 1].next, looks--) {
                uint32_t node = js_bare(js->tree, js->returns[i - 1].node);
                struct js_value *one = js->values[node];
                /* A function called by its name alone has the global object for `this`, unless strict. */
                if (JS_NODE(js, node)->kind == JS_THIS && !call->method &&
                        (kind == JS_FUNCTION || kind == JS_FUNCTION_DECLARATION))
                        one = js_path(js, NULL, "globalThis", 10);
                value = any ? js_either(js, value, one) : one;
                any = true;
        }
        return value;
}

static bool gives_text(const struct js_call *call)
{
        static const char *const names[] = { "join", "toString", "toLowerCase", "toUpperCase", "trim", "substring",
                "substr", "charAt", "padStart", "padEnd", "repeat", "replace", "replaceAll" };
        for (size_t i = 0; i < ARRAY_LEN(names) && call->method; i++)
                if (js_is(names[i], call->method, call->method_len))
                        return true;
        return call->method && call->object && call->object->what == JSV_SOME_TEXT &&
               (js_is("slice", call->method, call->method_len) || js_is("concat", call->method, call->method_len));
}

/* object.__lookupGetter__("name"): a call of the getter gives the member. */
static bool is_getter_lookup(const struct js_call *call)
{
        return call->method && call->object && js_is("__lookupGetter__", call->method, call->method_len);
}

static struct js_value *give_looked_up(struct js *js, const struct js_call *call)
{
        return js_item(js, call->object, argument(call, 0));
}

struct js_value *js_call_value(struct js *js, const struct js_call *call)
{
        struct js_value *value = NULL;
        bool any = false;
        if (call->is_bind)
                return call->function;
        if (call->is_import)
                return give_module(js, call);
        if (call->method && call->object)
                value = js_text_method(js, call->object, call->method, call->method_len, call->args, call->args_n);
        if (value)
                return value;
        if (is_getter_lookup(call))
                return give_looked_up(js, call);
        for (const struct js_value *f = call->function; f; f = f->next) {
                struct js_value *one = NULL;
                for (size_t i = 0; f->what == JSV_PATH && i < ARRAY_LEN(givers); i++)
                        if (strcmp(givers[i].path, f->text) == 0)
                                one = givers[i].give(js, call);
                /* process is no function: the path is its getter. */
                if (f->what == JSV_PATH && strcmp(f->text, "globalThis.process") == 0)
                        one = js_path(js, NULL, f->text, f->len);
                if (f->what == JSV_FUNCTION && f->node)
                        one = returned(js, call, f->node);
                value = any ? js_either(js, value, one) : one;
                any = true;
        }
        return value ? value : gives_text(call) ? some_text(js) : NULL;
}

/* ---- members by name ---- */

bool js_taking(const struct js_call *call, struct js_value **ret_object, struct js_value **ret_name)
{
        static const char *const takers[] = { "globalThis.Reflect.get", "globalThis.Reflect.getOwnPropertyDescriptor",
                                              "globalThis.Object.getOwnPropertyDescriptor" };
        /* A call for all members gives the wanted member, too. */
        static const char *const all[] = { "globalThis.Object.values", "globalThis.Object.entries",
                "globalThis.Object.getOwnPropertyDescriptors" };
        if (is_getter_lookup(call)) {
                *ret_object = call->object;
                *ret_name = argument(call, 0);
                return true;
        }
        for (size_t i = 0; i < ARRAY_LEN(takers); i++)
                if (calls_path(call, takers[i])) {
                        *ret_object = argument(call, 0);
                        *ret_name = argument(call, 1);
                        return true;
                }
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
                if (calls_path(call, all[i])) {
                        *ret_object = argument(call, 0);
                        *ret_name = NULL;
                        return true;
                }
        return false;
}

const char *js_importing(const struct js_call *call)
{
        static const char *const importers[] = { "globalThis.require", "globalThis.process.getBuiltinModule",
                "globalThis.process.binding", "node:module._load" };
        if (call->is_import)
                return "import";
        for (size_t i = 0; i < ARRAY_LEN(importers); i++)
                if (calls_path(call, importers[i]))
                        return strrchr(importers[i], '.') + 1;
        return NULL;
}
