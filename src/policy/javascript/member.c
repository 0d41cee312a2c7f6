/* Values of paths: modules, members and items. */
#include "policy/javascript/javascript.h"

/* ---- modules ---- */

/* Modules of Node.js (module.builtinModules). */
static const char *const builtin_modules[] = { "assert", "async_hooks", "buffer", "child_process", "cluster", "console",
        "constants", "crypto", "dgram", "diagnostics_channel", "dns", "domain", "events", "fs", "http", "http2",
        "https", "inspector", "module", "net", "os", "path", "perf_hooks", "process", "punycode", "querystring",
        "readline", "repl", "stream", "string_decoder", "sys", "timers", "tls", "trace_events", "tty", "url", "util",
        "v8", "vm", "wasi", "worker_threads", "zlib", "_http_agent", "_http_client", "_http_common", "_http_incoming",
        "_http_outgoing", "_http_server", "_stream_duplex", "_stream_passthrough", "_stream_readable",
        "_stream_transform", "_stream_wrap", "_stream_writable", "_tls_common", "_tls_wrap", NULL };

static bool is_builtin(const char *name, size_t len)
{
        for (size_t i = 0; builtin_modules[i]; i++)
                if (js_is(builtin_modules[i], name, len))
                        return true;
        return false;
}

const char *js_module_name(struct js *js, const char *name, size_t len, size_t *ret_len)
{
        bool node = len > 5 && memcmp(name, "node:", 5) == 0;
        if (!len || len > JS_PATH_MAX || name[0] == '.' || name[0] == '/' || name[0] == '#' ||
                (len > 5 && memcmp(name, "file:", 5) == 0))
                return NULL;
        const char *bare = node ? name + 5 : name;
        size_t bare_len = node ? len - 5 : len;
        const char *slash = memchr(bare, '/', bare_len), *query = memchr(bare, '?', bare_len);
        size_t first = slash ? (size_t)(slash - bare) : bare_len;
        if (node || is_builtin(bare, first)) {
                char *path = arena_text(js->arena, "node:%.*s", (int)(query ? query - bare : (int)bare_len), bare);
                for (char *c = path; *c; c++)
                        *c = *c == '/' ? '.' : *c;
                *ret_len = strlen(path);
                return path;
        }
        /* data:text/javascript,… is a program, and whole. */
        if (memchr(name, ':', len)) {
                *ret_len = len;
                return arena_copy(js->arena, name, len);
        }
        /* A package's name ends at the first slash, behind a @scope at the second. */
        if (slash && name[0] == '@') {
                const char *second = memchr(slash + 1, '/', len - first - 1);
                first = second ? (size_t)(second - name) : len;
        }
        *ret_len = first;
        return arena_copy(js->arena, name, first);
}

struct js_value *js_module(struct js *js, const char *name, size_t len)
{
        size_t path_len;
        const char *path = js_module_name(js, name, len, &path_len);
        return path ? js_path(js, NULL, path, path_len) : NULL;
}

/* ---- paths ---- */

/* Other paths of the same object.  A name behind "+" is a module reached without an import. */
static const struct { const char *path, *same; } module_aliases[] = {
        { "globalThis.globalThis", "globalThis" },
        { "globalThis.window", "globalThis" },
        { "globalThis.global", "globalThis" },
        { "globalThis.self", "globalThis" },
        { "globalThis.top", "globalThis" },
        { "globalThis.parent", "globalThis" },
        { "globalThis.frames", "globalThis" },
        { "globalThis.document.defaultView", "globalThis" },
        { "globalThis.import.meta.require", "globalThis.require" },
        { "globalThis.module.require", "globalThis.require" },
        { "globalThis.module.parent", "globalThis.module" },
        { "globalThis.module.constructor", "+node:module" },
        { "globalThis.module.__proto__", "+node:module" },
        { "globalThis.require.main", "globalThis.module" },
        { "globalThis.process.mainModule.require", "globalThis.require" },
        { "globalThis.process.mainModule.constructor", "+node:module" },
        { "node:process", "globalThis.process" },
        { "node:console", "globalThis.console" },
        { "node:sys", "node:util" },
        { "node:buffer.Buffer", "globalThis.Buffer" },
        { "node:buffer.atob", "globalThis.atob" },
        { "node:timers.setTimeout", "globalThis.setTimeout" },
        { "node:timers.setInterval", "globalThis.setInterval" },
        { "node:timers.setImmediate", "globalThis.setImmediate" },
        { "node:module.Module", "node:module" },
        { "node:module.createRequire()", "globalThis.require" },
        { "globalThis.Function.prototype.constructor", "globalThis.Function" },
};

static const char *const objects[] = { /* members of globalThis other than functions, with functions as members */
        "Math", "JSON", "Reflect", "Atomics", "Intl", "WebAssembly", "console", "process", "module", "exports",
        "crypto", "performance", "navigator", "document", "import", "undefined", "NaN", "Infinity", "arguments", NULL
};

static bool is_object(const char *name)
{
        for (size_t i = 0; objects[i]; i++)
                if (strcmp(objects[i], name) == 0)
                        return true;
        return false;
}

/* Functions of globalThis with a small first letter. */
static const char *const functions[] = { "eval", "parseInt", "parseFloat", "isNaN", "isFinite", "fetch", "require",
        "atob", "btoa", "structuredClone", "queueMicrotask", "setTimeout", "setInterval", "setImmediate",
        "clearTimeout", "clearInterval", "clearImmediate", "escape", "unescape", "encodeURI", "encodeURIComponent",
        "decodeURI", "decodeURIComponent", "alert", "gc", NULL };

static bool is_function_path(const char *path)
{
        const char *name = strncmp(path, "globalThis.", 11) == 0 ? path + 11 : NULL,
                   *dot = name ? strchr(name, '.') : NULL;
        const char *last = strrchr(path, '.');
        size_t len = strlen(path);
        if (last && (strcmp(last, ".prototype") == 0 || strcmp(last, ".__proto__") == 0))
                return strcmp(path, "globalThis.Function.prototype") == 0;
        if (!name)
                return strncmp(path, "node:", 5) == 0 && strchr(path, '.') && path[len - 1] != ')';
        if (path[len - 1] == ')' || is_object(name))
                return false;
        if (dot && last)
                return strncmp(name, "process.", 8) != 0 || strcmp(last, ".on") == 0 ||
                        strcmp(last, ".nextTick") == 0 || strcmp(last, ".cwd") == 0 || strcmp(last, ".exit") == 0 ||
                        strcmp(last, ".hrtime") == 0 || strcmp(last, ".uptime") == 0 ||
                        strcmp(last, ".memoryUsage") == 0 || strcmp(last, ".write") == 0;
        for (size_t i = 0; functions[i]; i++)
                if (strcmp(functions[i], name) == 0)
                        return true;
        return name[0] >= 'A' && name[0] <= 'Z';
}

bool js_is_callable(const struct js_value *value)
{
        return value->what == JSV_FUNCTION || value->what == JSV_METHOD ||
                (value->what == JSV_PATH && is_function_path(value->text));
}

struct js_value *js_path(struct js *js, const char *base, const char *name, size_t len)
{
        size_t base_len = base ? strlen(base) : 0;
        if (base_len + len + 1 > JS_PATH_MAX || memchr(name, 0, len))
                return NULL;
        /* The default export of a module is the module. */
        if (base && js_is("default", name, len) &&
                (strncmp(base, "node:", 5) == 0 || strcmp(base, "globalThis.process") == 0))
                return js_value_text(js, JSV_PATH, base, base_len);
        char *text = base ? arena_text(js->arena, "%s.%.*s", base, (int)len, name) : arena_copy(js->arena, name, len);
        for (size_t i = 0; i < ARRAY_LEN(module_aliases); i++)
                if (strcmp(module_aliases[i].path, text) == 0) {
                        bool reached = module_aliases[i].same[0] == '+';
                        struct js_value *value = js_value_text(js, JSV_PATH, module_aliases[i].same + reached,
                                strlen(module_aliases[i].same + reached));
                        value->reached = reached;
                        return value;
                }
        return js_value_text(js, JSV_PATH, text, strlen(text));
}

/* ---- members and items ---- */

/* Methods known by name, on any object. */
static const char *const known_methods[] = { "at", "bind", "call", "apply", "charAt", "concat", "copyWithin", "every",
        "fill", "filter", "find", "findIndex", "flat", "flatMap", "forEach", "hasOwnProperty", "includes", "indexOf",
        "isPrototypeOf", "join", "lastIndexOf", "map", "pop", "push", "reduce", "reduceRight", "replace", "reverse",
        "shift", "slice", "some", "sort", "splice", "split", "sub", "substr", "substring", "toLocaleString",
        "toLowerCase", "toString", "toUpperCase", "trim", "unshift", "valueOf", NULL };

static bool is_known_method(const char *name, size_t len)
{
        for (size_t i = 0; known_methods[i]; i++)
                if (js_is(known_methods[i], name, len))
                        return true;
        return false;
}

static struct js_value *constructor_of(struct js *js, const struct js_value *of)
{
        if (of && js_is_callable(of))
                return js_path(js, NULL, "globalThis.Function", 19);
        if (of && of->what == JSV_PATH) {
                size_t len = of->len;
                if (len > 10 && strcmp(of->text + len - 10, ".prototype") == 0)
                        return js_path(js, NULL, of->text, len - 10);
                struct js_value *path = js_path(js, of->text, "constructor", 11);
                if (path && path->reached)
                        return path;
                if (path && strncmp(of->text, "globalThis.process", 18) == 0 && !of->text[18])
                        return path;
        }
        return js_value_new(js, JSV_FUNCTION);
}

static struct js_value *own_member(const struct js_value *object, const char *name, size_t len, bool *ret_found)
{
        struct js_value *found = NULL;
        *ret_found = false;
        for (size_t i = 0; i + 1 < object->n; i += 2) {
                const struct js_value *key = object->items[i];
                if (key && key->what == JSV_TEXT && key->len == len && memcmp(key->text, name, len) == 0) {
                        found = object->items[i + 1];
                        *ret_found = true;
                }
        }
        return found;
}

/* The items of require.cache and of module.children are modules, under any name. */
static bool holds_modules(const struct js_value *of, bool named)
{
        return of && of->what == JSV_PATH &&
                (strcmp(of->text, "globalThis.require.cache") == 0 ||
                        (!named && strcmp(of->text, "globalThis.module.children") == 0));
}

static struct js_value *member_of(struct js *js, const struct js_value *of, const char *name, size_t len)
{
        bool found = false;
        struct js_value *own = of->what == JSV_OBJECT ? own_member(of, name, len, &found) : NULL;
        if (found)
                return own;
        if (holds_modules(of, true))
                return js_path(js, NULL, "globalThis.module", 17);
        if (js_is("constructor", name, len))
                return constructor_of(js, of);
        if (js_is("__proto__", name, len) && js_is_callable(of))
                return js_path(js, NULL, "globalThis.Function.prototype", 29);
        switch (of->what) {
        case JSV_PATH:
                return js_path(js, of->text, name, len);
        case JSV_TEXT: case JSV_LIST:
                if (js_is("length", name, len))
                        return js_value_number(js, (int64_t)(of->what == JSV_TEXT ? of->len : of->n));
                return js_value_text(js, JSV_METHOD, name, len);
        case JSV_SOME_TEXT: case JSV_BYTES: case JSV_NUMBER:
                return js_is("length", name, len) ? NULL : js_value_text(js, JSV_METHOD, name, len);
        default:
                return is_known_method(name, len) ? js_value_text(js, JSV_METHOD, name, len) : NULL;
        }
}

struct js_value *js_member(struct js *js, struct js_value *base, const char *name, size_t len)
{
        struct js_value *value = NULL;
        bool any = false;
        name = arena_copy(js->arena, name, len);
        for (const struct js_value *b = base; b; b = b->next) {
                struct js_value *one = member_of(js, b, name, len);
                value = any ? js_either(js, value, one) : one;
                any = true;
        }
        if (base && !base->open)
                return value;
        /* Unknown object: add each value stored by the program in a member of this name. */
        struct js_value *one = js_is("constructor", name, len) ? js_value_new(js, JSV_FUNCTION)
                               : is_known_method(name, len)    ? js_value_text(js, JSV_METHOD, name, len)
                                                               : NULL;
        if (one)
                value = any ? js_either(js, value, one) : one, any = true;
        for (size_t i = 0; i < js->members_n; i++)
                if (js_is(js->names.list[js->members[i].name].text, name, len))
                        value = any ? js_either(js, value, js->members[i].value) : js->members[i].value, any = true;
        return js_open(js, value);
}

static struct js_value *item_of(struct js *js, const struct js_value *base, int64_t at)
{
        if (base->what == JSV_LIST)
                return at >= 0 && at < (int64_t)base->n ? base->items[at] : NULL;
        if (base->what != JSV_TEXT || at < 0 || at >= (int64_t)base->len)
                return NULL;
        for (int64_t i = 0; i <= at; i++)
                if ((unsigned char)base->text[i] >= 0x80)
                        return NULL;
        return js_value_text(js, JSV_TEXT, base->text + at, 1);
}

struct js_value *js_item(struct js *js, struct js_value *base, struct js_value *key)
{
        struct js_value *value = NULL;
        bool any = false;
        if (holds_modules(base, key && key->what == JSV_TEXT))
                return js_path(js, NULL, "globalThis.module", 17);
        for (struct js_value *k = key; k; k = k->next) {
                struct js_value *one = NULL;
                if (k->what == JSV_TEXT) {
                        one = js_member(js, base, k->text, k->len);
                } else if (k->what == JSV_NUMBER && base) {
                        one = item_of(js, base, k->number);
                        for (const struct js_value *b = base->next; b; b = b->next)
                                one = js_either(js, one, item_of(js, b, k->number));
                } else {
                        /* a[b] with a key of another kind: its text. */
                        struct js_value single = *k;
                        single.next = NULL;
                        single.open = false;
                        const struct js_value *text = js_string_of(js, &single);
                        one = text ? js_member(js, base, text->text, text->len) : NULL;
                }
                value = any ? js_either(js, value, one) : one;
                any = true;
        }
        return (base && base->open) || (key && key->open) ? js_open(js, value) : value;
}

/* ---- the parts of patterns ---- */

static struct js_value *any_item(struct js *js, const struct js_value *of)
{
        struct js_value *value = NULL;
        if (holds_modules(of, false))
                return js_path(js, NULL, "globalThis.module", 17);
        if (!of || of->next || of->open || of->what != JSV_LIST || of->n > JS_VALUES_MAX || !of->n)
                return NULL;
        for (size_t i = 0; i < of->n; i++)
                value = i ? js_either(js, value, of->items[i]) : of->items[i];
        return value;
}

static struct js_value *keyed(struct js *js, struct js_value *of, uint32_t key)
{
        const struct node *node = JS_NODE(js, key);
        if (node->kind == JS_PROPERTY || node->kind == JS_SHORTHAND_PATTERN || node->kind == JS_IDENTIFIER) {
                const struct name name = js_word(js, key);
                return js_member(js, of, name.text, name.len);
        }
        return js_item(js, of, js->values[key]);
}

struct js_value *js_apply(struct js *js, const struct js_from *from)
{
        const struct js_step *steps[JS_STEPS_MAX];
        size_t n = 0;
        struct js_value *value = js->values[from->node];
        for (const struct js_step *step = from->steps; step && n < JS_STEPS_MAX; step = step->up)
                steps[n++] = step;
        while (n--) {
                struct js_value index = { .what = JSV_NUMBER, .number = steps[n]->index };
                switch (steps[n]->how) {
                case JSS_MEMBER: value = keyed(js, value, steps[n]->key); break;
                case JSS_INDEX: value = js_item(js, value, &index); break;
                case JSS_ITEM: value = any_item(js, value); break;
                case JSS_REST: break;
                }
        }
        return value;
}
