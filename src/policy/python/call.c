/* Calls: members and modules by name, and functions of constants. */
#include "policy/python/python.h"

#include <stdio.h>

#define CALL_DEPTH_MAX 8
#define RETURNS_MAX 64

/* The first path among the values of an expression; NULL: none. */
static const char *path_of(const struct value *value)
{
        for (; value; value = value->next)
                if (value->kind == VALUE_PATH)
                        return value->text;
        return NULL;
}

static bool ends_with(const char *text, const char *end)
{
        size_t len = strlen(text), n = strlen(end);
        return len >= n && strcmp(text + len - n, end) == 0;
}

struct call python_call(struct python *py, uint32_t node)
{
        const struct tree *tree = py->tree;
        struct call call = { .node = node };
        uint32_t function = tree_field(tree, node, PYF_function), arguments = tree_field(tree, node, PYF_arguments);
        while (function && (NODE(py, function)->kind == PY_PARENTHESES || NODE(py, function)->kind == PY_LIST_SPLAT))
                function = NODE(py, function)->child;
        call.function = function ? py->values[function] : NULL;
        if (function && NODE(py, function)->kind == PY_ATTRIBUTE) {
                const struct name name = python_word(py, tree_field(tree, function, PYF_attribute));
                call.method = name.text;
                call.method_len = name.len;
                call.object = py->values[tree_field(tree, function, PYF_object)];
        }
        if (!arguments)
                return call;
        if (NODE(py, arguments)->kind == PY_GENERATOR) {
                call.args[call.args_n++] = py->values[arguments];
                return call;
        }
        for (uint32_t arg = NODE(py, arguments)->child; arg; arg = NODE(py, arg)->next) {
                unsigned kind = NODE(py, arg)->kind;
                bool splat = kind != PY_DICT_SPLAT && python_is_starred(py->tree, arg);
                const struct value *list = splat ? value_only(py->values[arg], VALUE_LIST) : NULL;
                if (kind == PY_COMMENT)
                        continue;
                call.splat = call.splat || kind == PY_DICT_SPLAT || (splat && !list);
                if (kind == PY_KEYWORD || kind == PY_DICT_SPLAT)
                        continue;
                if (call.args_n + (list ? list->n : 1) > ARRAY_LEN(call.args))
                        call.splat = true;
                if (call.args_n == ARRAY_LEN(call.args))
                        continue;
                if (!list)
                        call.args[call.args_n++] = splat ? NULL : py->values[arg];
                for (size_t i = 0; list && i < list->n && call.args_n < ARRAY_LEN(call.args); i++)
                        call.args[call.args_n++] = list->items[i];
        }
        return call;
}

static uint32_t keyword_node(struct python *py, const struct call *call, const char *name)
{
        uint32_t arguments = call->node ? tree_field(py->tree, call->node, PYF_arguments) : 0;
        for (uint32_t arg = arguments ? NODE(py, arguments)->child : 0; arg; arg = NODE(py, arg)->next) {
                if (NODE(py, arg)->kind != PY_KEYWORD)
                        continue;
                const struct name word = python_word(py, tree_field(py->tree, arg, PYF_name));
                if (python_is(name, word.text, word.len))
                        return tree_field(py->tree, arg, PYF_value);
        }
        return 0;
}

struct value *python_keyword(struct python *py, const struct call *call, const char *name)
{
        uint32_t node = keyword_node(py, call, name);
        return node ? py->values[node] : NULL;
}

/* ---- names of members ---- */

static const char *const getters[] = { "builtins.getattr", "inspect.getattr_static", "builtins.object.__getattribute__",
        "builtins.type.__getattribute__", "types.ModuleType.__getattribute__", NULL };

static bool is_one_of(const char *const *words, const char *word)
{
        for (; *words; words++)
                if (strcmp(*words, word) == 0)
                        return true;
        return false;
}

static bool is_mapping(const char *path)
{
        return strcmp(path, "sys.modules") == 0 || ends_with(path, ".__dict__") ||
                strcmp(path, "builtins.globals()") == 0 || strcmp(path, "builtins.locals()") == 0;
}

static bool is_getattribute(const char *name, size_t len)
{
        return python_is("__getattribute__", name, len) || python_is("__getattr__", name, len);
}

/* attrgetter("a", "b.c"), itemgetter("a"), methodcaller("a", 1), methodcaller("__getattribute__", "a"). */
static struct value *fn_getter(struct python *py, const struct call *call, unsigned depth)
{
        const char *path = path_of(call->function);
        struct value *value = value_list(py, (struct value **)(uintptr_t)call->args, call->args_n);
        (void)depth;
        if (call->splat && value->n == ARGS_MAX)
                value->items[ARGS_MAX - 1] = NULL;   /* there are more */
        value->kind = ends_with(path, "itemgetter") ? VALUE_ITEM
                : ends_with(path, "methodcaller")   ? VALUE_METHOD
                                                    : VALUE_MEMBER;
        return value;
}

static bool names_of_getter(const struct value *function, struct taking *ret)
{
        if (function->kind != VALUE_MEMBER && function->kind != VALUE_ITEM && function->kind != VALUE_METHOD)
                return false;
        size_t from = 0, n = function->n;
        const struct value *first = n ? function->items[0] : NULL;
        if (function->kind == VALUE_METHOD) {
                from = n > 1 && first && first->kind == VALUE_TEXT && is_getattribute(first->text, first->len);
                n = n > from ? from + 1 : n;
        }
        ret->item = function->kind == VALUE_ITEM;
        ret->steps = function->kind == VALUE_MEMBER;
        for (size_t i = from; i < n && ret->names_n < ARRAY_LEN(ret->names); i++)
                ret->names[ret->names_n++] = function->items[i];
        return true;
}

bool python_taking(struct python *py, const struct call *call, struct taking *ret)
{
        const char *path = path_of(call->function);
        ret->object = NULL;
        ret->names_n = 0;
        ret->steps = ret->pending = ret->item = false;
        if (path && is_one_of(getters, path) && (call->args_n >= 2 || call->splat)) {
                *ret = (struct taking){
                        .object = call->args[0], .names = { call->args[1] }, .names_n = call->args_n >= 2
                };
                return true;
        }
        if (path && strcmp(path, "operator.getitem") == 0 && call->args_n == 2) {
                *ret = (struct taking){
                        .object = call->args[0], .names = { call->args[1] }, .names_n = 1, .item = true
                };
                return true;
        }
        if (path && (strcmp(path, "operator.attrgetter") == 0 || strcmp(path, "operator.methodcaller") == 0)) {
                const struct value *function = fn_getter(py, call, 0);
                *ret = (struct taking){ .pending = true };
                names_of_getter(function, ret);
                return true;
        }
        if (call->function && call->args_n && names_of_getter(call->function, ret)) {
                ret->object = call->args[0];
                return true;
        }
        if (call->method && is_getattribute(call->method, call->method_len)) {
                bool own = call->args_n == 1;
                *ret = (struct taking){
                        .object = own ? call->object : call->args[0], .names = { call->args[own ? 0 : 1] }, .names_n = 1
                };
                return call->args_n >= 1;
        }
        const char *mapping = call->method ? path_of(call->object) : NULL;
        if (mapping && is_mapping(mapping) && call->args_n &&
                (python_is("get", call->method, call->method_len) || python_is("pop", call->method, call->method_len) ||
                        python_is("__getitem__", call->method, call->method_len) ||
                        python_is("setdefault", call->method, call->method_len))) {
                *ret = (struct taking){
                        .object = call->object, .names = { call->args[0] }, .names_n = 1, .item = true
                };
                return true;
        }
        return false;
}

/* "a.b" of attrgetter is two steps. */
static struct value *take_member(struct python *py, struct value *object, const struct value *name, bool steps)
{
        size_t at = 0;
        struct value *value = object;
        while (at <= name->len) {
                const char *dot = steps ? memchr(name->text + at, '.', name->len - at) : NULL;
                size_t len = dot ? (size_t)(dot - name->text) - at : name->len - at;
                value = value_member(py, value, name->text + at, len);
                at += len + 1;
        }
        return value;
}

static struct value *take_one(struct python *py, const struct taking *taking, struct value *names)
{
        struct value *value = NULL;
        bool any = false;
        if (taking->item)
                return value_item(py, taking->object, names);
        for (const struct value *name = names; name; name = name->next) {
                struct value *one =
                        name->kind == VALUE_TEXT ? take_member(py, taking->object, name, taking->steps) : NULL;
                value = any ? value_either(py, value, one) : one;
                any = true;
        }
        return names && names->open ? value_either(py, value, NULL) : value;
}

/* attrgetter and itemgetter with more than one name give a tuple of members. */
static struct value *take(struct python *py, const struct taking *taking)
{
        struct value *taken[ARGS_MAX] = { 0 };
        for (size_t i = 0; i < taking->names_n; i++)
                taken[i] = take_one(py, taking, taking->names[i]);
        return taking->names_n > 1 ? value_list(py, taken, taking->names_n) : taken[0];
}

/* ---- modules by name ---- */

static const char *const importers[] = { "builtins.__import__", "importlib.import_module", "importlib.__import__",
        "importlib._bootstrap._gcd_import", "pkgutil.resolve_name", "importlib._bootstrap.__import__", NULL };

bool python_is_importer(const char *path)
{
        return is_one_of(importers, path);
}

/* ".request" in "urllib" is urllib.request; NULL: unknown, or outside of the package. */
static struct value *resolved(struct python *py, const struct value *name, const struct value *package)
{
        size_t dots = 0, len = package ? package->len : 0;
        while (dots < name->len && name->text[dots] == '.')
                dots++;
        if (!package || package->open || package->next || package->kind != VALUE_TEXT)
                return NULL;
        for (size_t i = 1; i < dots; i++) {
                const char *dot = len ? memrchr(package->text, '.', len) : NULL;
                if (!dot)
                        return NULL;
                len = (size_t)(dot - package->text);
        }
        const char *text = arena_text(py->arena, "%.*s%s%.*s", (int)len, package->text, name->len > dots ? "." : "",
                (int)(name->len - dots), name->text + dots);
        return value_text(py, VALUE_TEXT, text, strlen(text));
}

static struct value *fn_resolve(struct python *py, const struct call *call, unsigned depth)
{
        const struct value *name = call->args_n ? value_only(call->args[0], VALUE_TEXT) : NULL;
        (void)depth;
        if (!name || !name->len || name->text[0] != '.')
                return call->args_n ? call->args[0] : NULL;
        return resolved(py, name, call->args_n > 1 ? call->args[1] : python_keyword(py, call, "package"));
}

/* The program's own package: None, or with modules among the program's files. */
static bool is_own_package(const struct value *package)
{
        return package && package->kind == VALUE_PATH &&
               (strcmp(package->text, "builtins.__package__") == 0 || strcmp(package->text, "builtins.__name__") == 0);
}

const char *python_importing(struct python *py, const struct call *call, struct value **ret_name)
{
        const char *path = path_of(call->function);
        *ret_name = call->args_n ? call->args[0] : python_keyword(py, call, "name");
        const struct value *relative = value_only(*ret_name, VALUE_TEXT);
        if (path && relative && relative->len && relative->text[0] == '.' &&
                strcmp(path, "importlib.import_module") == 0) {
                struct value *package = call->args_n > 1 ? call->args[1] : python_keyword(py, call, "package");
                bool given = call->args_n > 1 || keyword_node(py, call, "package");
                if (given && !is_own_package(package))
                        *ret_name = resolved(py, relative, package);
        }
        if (path && is_one_of(importers, path))
                return path;
        if (call->method && call->args_n && python_is("load_module", call->method, call->method_len) &&
                value_only(call->args[0], VALUE_TEXT))
                return "load_module";
        return NULL;
}

static struct value *import(struct python *py, const char *path, struct value *names)
{
        struct value *value = NULL;
        bool any = false;
        for (const struct value *name = names; name; name = name->next) {
                struct value *one = NULL;
                size_t len = name->len;
                if (name->kind == VALUE_TEXT && len && name->text[0] != '.') {
                        const char *colon =
                                strcmp(path, "pkgutil.resolve_name") == 0 ? memchr(name->text, ':', len) : NULL;
                        /* __import__("os.path") is os. */
                        if (ends_with(path, "__import__"))
                                len = (size_t)(memchr(name->text, '.', len)
                                                ? (char *)memchr(name->text, '.', len) - name->text
                                                : (ssize_t)len);
                        one = value_module(py, name->text, colon ? (size_t)(colon - name->text) : len);
                        if (colon) {
                                struct value rest = { .kind = VALUE_TEXT,
                                        .text = colon + 1,
                                        .len = name->len - (size_t)(colon + 1 - name->text) };
                                one = take_member(py, one, &rest, true);
                        }
                }
                value = any ? value_either(py, value, one) : one;
                any = true;
        }
        return names && names->open ? value_either(py, value, NULL) : value;
}

/* ---- texts ---- */

static struct value *make_text(struct python *py, enum value_kind kind, struct buf *buf, bool known)
{
        struct value *value = known
                ? value_text(py, kind, arena_copy(py->arena, buf->bytes ? buf->bytes : "", buf->len), buf->len)
                : NULL;
        buf_done(buf);
        return value;
}

/* The items of a list, or the characters of a text. */
static struct value *pieces(struct python *py, const struct value *from)
{
        struct value *items[1024];
        size_t n = 0;
        if (!from || from->open || from->next)
                return NULL;
        if (from->kind == VALUE_LIST)
                return (struct value *)(uintptr_t)from;
        if ((from->kind != VALUE_TEXT && from->kind != VALUE_BYTES) || from->len > ARRAY_LEN(items))
                return NULL;
        for (size_t i = 0; i < from->len;) {
                size_t step = from->kind == VALUE_TEXT ? utf8_step(from->text + i, from->len - i) : 1;
                step = step ? step : 1;
                items[n++] = from->kind == VALUE_BYTES ? value_number(py, (unsigned char)from->text[i])
                                                       : value_text(py, VALUE_TEXT, from->text + i, step);
                i += step;
        }
        return value_list(py, items, n);
}

static struct value *join(struct python *py, const struct value *between, const struct value *list)
{
        struct buf buf;
        bool known = true;
        list = pieces(py, list);
        if (!list)
                return NULL;
        buf_init(&buf, TEXT_MAX);
        for (size_t i = 0; i < list->n && known; i++) {
                const struct value *item = list->items[i];
                known = item && !item->open && !item->next && item->kind == between->kind &&
                        (i == 0 || buf_add(&buf, between->text, between->len)) && buf_add(&buf, item->text, item->len);
        }
        return make_text(py, between->kind, &buf, known);
}

static struct value *replace(struct python *py, const struct value *text, const struct value *old,
        const struct value *new)
{
        struct buf buf;
        bool known =
                old && new && old->kind == text->kind &&new->kind == text->kind && !old->open && !new->open && old->len;
        buf_init(&buf, TEXT_MAX);
        for (size_t i = 0; known && i < text->len;) {
                bool hit = text->len - i >= old->len && memcmp(text->text + i, old->text, old->len) == 0;
                known = hit ? buf_add(&buf, new->text, new->len) : buf_add(&buf, text->text + i, 1);
                i += hit ? old->len : 1;
        }
        return make_text(py, text->kind, &buf, known);
}

static struct value *change_case(struct python *py, const struct value *text, const char *how)
{
        char *out = arena_copy(py->arena, text->text, text->len);
        for (size_t i = 0; i < text->len; i++) {
                bool upper = out[i] >= 'A' && out[i] <= 'Z', lower = out[i] >= 'a' && out[i] <= 'z';
                bool change = (upper &&
                                      (strcmp(how, "lower") == 0 || strcmp(how, "casefold") == 0 ||
                                              strcmp(how, "swapcase") == 0)) ||
                        (lower && (strcmp(how, "upper") == 0 || strcmp(how, "swapcase") == 0)) ||
                        (strcmp(how, "capitalize") == 0 && (i == 0 ? lower : upper));
                out[i] = (char)(change ? out[i] ^ 0x20 : out[i]);
        }
        return value_text(py, text->kind, out, text->len);
}

static struct value *strip(struct python *py, const struct value *text, const struct value *what, bool left, bool right)
{
        const char *set = what && what->kind == text->kind ? what->text : " \t\r\n\f\v";
        size_t set_len = what && what->kind == text->kind ? what->len : 6, from = 0, to = text->len;
        while (left && from < to && memchr(set, text->text[from], set_len))
                from++;
        while (right && to > from && memchr(set, text->text[to - 1], set_len))
                to--;
        return value_text(py, text->kind, text->text + from, to - from);
}

static struct value *split(struct python *py, const struct value *text, const struct value *by)
{
        struct value *items[256];
        size_t n = 0, from = 0;
        bool blanks = !by;
        if (by && (by->kind != text->kind || !by->len || by->open))
                return NULL;
        for (size_t i = 0; i <= text->len; i++) {
                bool hit = i == text->len ||
                        (blanks ? strchr(" \t\r\n", text->text[i]) != NULL
                                : text->len - i >= by->len && memcmp(text->text + i, by->text, by->len) == 0);
                if (!hit)
                        continue;
                if (n == ARRAY_LEN(items))
                        return NULL;
                if (!blanks || i > from)
                        items[n++] = value_text(py, text->kind, text->text + from, i - from);
                from = i + (blanks || i == text->len ? 1 : by->len);
                i = i < text->len ? from - 1 : i;
        }
        return value_list(py, items, n);
}

/* "{}{1}{name}" with texts and numbers, without anything behind the names. */
static struct value *format(struct python *py, const struct value *text, const struct call *call)
{
        struct buf buf;
        size_t next = 0;
        bool known = true;
        buf_init(&buf, TEXT_MAX);
        for (size_t i = 0; i < text->len && known; i++) {
                char c = text->text[i];
                if ((c == '{' || c == '}') && i + 1 < text->len && text->text[i + 1] == c) {
                        known = buf_add(&buf, &c, 1);
                        i++;
                        continue;
                }
                const char *close = c == '{' ? memchr(text->text + i, '}', text->len - i) : NULL;
                if (!close) {
                        known = c != '{' && c != '}' && buf_add(&buf, &c, 1);
                        continue;
                }
                size_t len = (size_t)(close - text->text) - i - 1;
                const char *name = text->text + i + 1;
                const struct value *with = NULL;
                if (len == 0)
                        with = next < call->args_n ? call->args[next++] : NULL;
                else if (len == 1 && name[0] >= '0' && name[0] <= '9')
                        with = (size_t)(name[0] - '0') < call->args_n ? call->args[name[0] - '0'] : NULL;
                else
                        with = python_keyword(py, call, arena_copy(py->arena, name, len));
                known = with && !with->open && !with->next &&
                        (with->kind == VALUE_TEXT     ? buf_add(&buf, with->text, with->len)
                         : with->kind == VALUE_NUMBER ? buf_printf(&buf, "%lld", (long long)with->number)
                                                      : false);
                i += len + 1;
        }
        return make_text(py, text->kind, &buf, known);
}

static struct value *reencode(struct python *py, const struct value *text, bool decode)
{
        if (text->kind != (decode ? VALUE_BYTES : VALUE_TEXT) || !utf8_valid(text->text, text->len))
                return NULL;
        return value_text(py, decode ? VALUE_TEXT : VALUE_BYTES, text->text, text->len);
}

static struct value *text_method(struct python *py, const struct call *call)
{
        static const char *const cases[] = { "lower", "upper", "swapcase", "casefold", "capitalize", NULL };
        const struct value *text = call->object;
        const struct value *first = call->args_n ? call->args[0] : NULL,
                           *second = call->args_n > 1 ? call->args[1] : NULL;
        char name[24];
        if (call->method_len >= sizeof name)
                return NULL;
        memcpy(name, call->method, call->method_len);
        name[call->method_len] = 0;
        if (is_one_of(cases, name))
                return change_case(py, text, name);
        if (strcmp(name, "join") == 0)
                return join(py, text, first);
        if (strcmp(name, "replace") == 0)
                return replace(py, text, first, second);
        if (strcmp(name, "strip") == 0 || strcmp(name, "lstrip") == 0 || strcmp(name, "rstrip") == 0)
                return strip(py, text, first, name[0] != 'r', name[0] != 'l');
        if (strcmp(name, "split") == 0)
                return split(py, text, first);
        if (strcmp(name, "format") == 0)
                return format(py, text, call);
        if (strcmp(name, "decode") == 0 || strcmp(name, "encode") == 0) {
                /* An unusual encoding is a code to hide text in. */
                bool usual = !first ||
                        (first->kind == VALUE_TEXT && first->len >= 3 && strncasecmp(first->text, "utf", 3) == 0) ||
                        (first->kind == VALUE_TEXT && first->len == 5 && strncasecmp(first->text, "ascii", 5) == 0) ||
                        (first->kind == VALUE_TEXT && first->len >= 5 && strncasecmp(first->text, "latin", 5) == 0);
                return usual ? reencode(py, text, name[0] == 'd') : NULL;
        }
        if (strcmp(name, "__add__") == 0 || strcmp(name, "__mul__") == 0 || strcmp(name, "__mod__") == 0)
                return value_binary(py,
                        name[2] == 'a'           ? '+'
                                : name[3] == 'u' ? '*'
                                                 : '%',
                        call->object, call->args_n ? call->args[0] : NULL);
        return strcmp(name, "__getitem__") == 0 && call->args_n ? value_item(py, call->object, call->args[0]) : NULL;
}

static struct value *of_numbers(struct python *py, enum value_kind kind, const struct value *list)
{
        struct buf buf;
        bool known = list && list->kind == VALUE_LIST && !list->open && !list->next;
        buf_init(&buf, TEXT_MAX);
        for (size_t i = 0; known && i < list->n; i++) {
                const struct value *item = list->items[i];
                known = item && !item->open && !item->next && item->kind == VALUE_NUMBER && item->number >= 0 &&
                        item->number < 0x110000;
                char byte = known ? (char)item->number : 0;
                known = known &&
                        (kind == VALUE_TEXT ? unicode_put(&buf, (uint32_t)item->number) : buf_add(&buf, &byte, 1));
        }
        return make_text(py, kind, &buf, known);
}

/* ---- functions ---- */

static struct value *fn_chr(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        struct value *number = call->args_n ? value_only(call->args[0], VALUE_NUMBER) : NULL;
        return number ? of_numbers(py, VALUE_TEXT, value_list(py, &number, 1)) : NULL;
}

static struct value *fn_ord(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        const struct value *text = call->args_n ? value_only(call->args[0], VALUE_TEXT) : NULL;
        return text && text->len == 1 ? value_number(py, (unsigned char)text->text[0]) : NULL;
}

static struct value *fn_str(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        struct value *of = call->args_n ? call->args[0] : NULL;
        if (value_only(of, VALUE_BYTES) && call->args_n > 1)
                return reencode(py, of, true);
        return value_only(of, VALUE_TEXT);
}

static struct value *fn_bytes(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        struct value *of = call->args_n ? call->args[0] : NULL;
        if (value_only(of, VALUE_TEXT) && call->args_n > 1)
                return reencode(py, of, false);
        return value_only(of, VALUE_BYTES) ? of : of_numbers(py, VALUE_BYTES, of);
}

/* A copy of a module's dictionary has the same items. */
static struct value *fn_dict(struct python *py, const struct call *call, unsigned depth)
{
        (void)py, (void)depth;
        const char *path = call->args_n == 1 ? path_of(call->args[0]) : NULL;
        return path && is_mapping(path) ? call->args[0] : NULL;
}

static struct value *fn_list(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        return call->args_n == 1 ? pieces(py, call->args[0]) : NULL;
}

static struct value *fn_reversed(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        const struct value *list = call->args_n == 1 ? pieces(py, call->args[0]) : NULL;
        if (!list)
                return NULL;
        struct value *turned = value_list(py, list->items, list->n);
        for (size_t i = 0; i < list->n; i++)
                turned->items[i] = list->items[list->n - 1 - i];
        return turned;
}

static struct value *fn_map(struct python *py, const struct call *call, unsigned depth)
{
        const struct value *list = call->args_n == 2 ? pieces(py, call->args[1]) : NULL;
        if (!list || list->n > 256)
                return NULL;
        struct value *items[256];
        for (size_t i = 0; i < list->n; i++) {
                const struct call one = { .function = call->args[0], .args = { list->items[i] }, .args_n = 1 };
                items[i] = value_call(py, &one, depth + 1);
        }
        return value_list(py, items, list->n);
}

static struct value *fn_vars(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        const char *path = call->args_n == 1 ? path_of(call->args[0]) : NULL;
        if (call->args_n)
                return value_dict_of(py, path);
        const char *function = path_of(call->function);
        bool globals = function && ends_with(function, "globals");
        return globals ? value_path(py, NULL, "builtins.globals()", 18) : value_path(py, NULL, "builtins.locals()", 17);
}

static struct value *fn_partial(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        struct value *value = value_list(py, (struct value **)(uintptr_t)call->args, call->args_n);
        value->kind = VALUE_PARTIAL;
        return call->args_n ? value : NULL;
}

static struct value *fn_add(struct python *py, const struct call *call, unsigned depth)
{
        (void)depth;
        return call->args_n == 2 ? value_binary(py, '+', call->args[0], call->args[1]) : NULL;
}

static struct value *fn_first(struct python *py, const struct call *call, unsigned depth)
{
        (void)py, (void)depth;
        return call->args_n ? call->args[0] : NULL;
}

static struct value *fn_fromhex(struct python *py, const struct call *call, unsigned depth)
{
        struct buf buf;
        int high = -1;
        bool known = true;
        const struct value *text = call->args_n ? call->args[0] : NULL;
        (void)depth;
        if (!text || text->open || text->next || (text->kind != VALUE_TEXT && text->kind != VALUE_BYTES))
                return NULL;
        buf_init(&buf, TEXT_MAX);
        for (size_t i = 0; i < text->len && known; i++) {
                char c = text->text[i];
                int digit = c >= '0' && c <= '9'                 ? c - '0'
                        : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                                 : -1;
                char byte = (char)(high * 16 + digit);
                known = digit >= 0 || c == ' ';
                if (digit >= 0 && high >= 0)
                        known = buf_add(&buf, &byte, 1);
                high = digit < 0 ? high : high < 0 ? digit : -1;
        }
        return make_text(py, VALUE_BYTES, &buf, known && high < 0);
}

static struct value *fn_base64(struct python *py, const struct call *call, unsigned depth)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        struct buf buf;
        uint32_t bits = 0;
        unsigned n = 0;
        const struct value *text = call->args_n ? call->args[0] : NULL;
        (void)depth;
        if (!text || text->open || text->next || (text->kind != VALUE_TEXT && text->kind != VALUE_BYTES))
                return NULL;
        buf_init(&buf, TEXT_MAX);
        for (size_t i = 0; i < text->len && text->text[i] != '='; i++) {
                const char *digit = text->text[i] ? strchr(digits, text->text[i]) : NULL;
                if (!digit)
                        continue;
                bits = bits << 6 | (uint32_t)(digit - digits);
                n += 6;
                if (n >= 8) {
                        char byte = (char)(bits >> (n -= 8) & 0xff);
                        buf_add(&buf, &byte, 1);
                }
        }
        return make_text(py, VALUE_BYTES, &buf, true);
}

#define FN(path, give) { (path), sizeof(path) - 1, (give) }
static const struct {
        const char *path;
        size_t len;
        struct value *(*give)(struct python *, const struct call *, unsigned depth);
} functions[] = {
        FN("builtins.chr", fn_chr),
        FN("builtins.ord", fn_ord),
        FN("builtins.str", fn_str),
        FN("builtins.bytes", fn_bytes),
        FN("builtins.bytearray", fn_bytes),
        FN("builtins.list", fn_list),
        FN("builtins.tuple", fn_list),
        FN("builtins.iter", fn_list),
        FN("builtins.reversed", fn_reversed),
        FN("builtins.map", fn_map),
        FN("builtins.vars", fn_vars),
        FN("builtins.globals", fn_vars),
        FN("builtins.locals", fn_vars),
        FN("functools.partial", fn_partial),
        FN("operator.attrgetter", fn_getter),
        FN("operator.itemgetter", fn_getter),
        FN("operator.methodcaller", fn_getter),
        FN("operator.add", fn_add),
        FN("operator.concat", fn_add),
        FN("importlib.reload", fn_first),
        FN("importlib.util.resolve_name", fn_resolve),
        FN("builtins.bytes.fromhex", fn_fromhex),
        FN("builtins.dict", fn_dict),
        FN("builtins.bytearray.fromhex", fn_fromhex),
        FN("binascii.unhexlify", fn_fromhex),
        FN("binascii.a2b_hex", fn_fromhex),
        FN("base64.b64decode", fn_base64),
        FN("base64.standard_b64decode", fn_base64),
        FN("binascii.a2b_base64", fn_base64),
};
#undef FN

/* An argument is a possible value of its parameter. */
static void pass_arguments(struct python *py, uint32_t function, const struct call *call)
{
        uint32_t parameters = tree_field(py->tree, function, PYF_parameters);
        size_t i = 0;
        for (uint32_t p = parameters ? NODE(py, parameters)->child : 0; p && i < call->args_n; p = NODE(py, p)->next) {
                unsigned kind = NODE(py, p)->kind;
                if (kind == PY_COMMENT || NODE(py, p)->token)
                        continue;
                uint32_t name = kind == PY_IDENTIFIER ? p : tree_field(py->tree, p, PYF_name);
                if (!name && kind == PY_TYPED)
                        name = tree_kind(py->tree, p, PY_IDENTIFIER);
                struct binding *binding = name ? python_binding(py, py->scope_of[p], python_name(py, name)) : NULL;
                struct value *value = call->args[i++];
                if (!binding)
                        return;
                if (value && !value_same(binding->passed, value))
                        binding->passed = binding->passed ? value_either(py, binding->passed, value) : value;
        }
}

/* A call of a function of the program has the value of any return statement. */
static struct value *own_function(struct python *py, uint32_t function)
{
        struct value *value = NULL;
        unsigned n = 0;
        for (uint32_t i = py->first_return[function]; i && n < RETURNS_MAX; i = py->returns[i - 1].next, n++) {
                struct value *one = py->values[py->returns[i - 1].node];
                value = n ? value_either(py, value, one) : one;
        }
        return n == RETURNS_MAX ? value_either(py, value, NULL) : value;
}

static struct value *call_partial(struct python *py, const struct value *partial, const struct call *call,
        unsigned depth)
{
        struct call whole = { .node = 0, .function = partial->items[0], .splat = call->splat };
        for (size_t i = 1; i < partial->n && whole.args_n < ARRAY_LEN(whole.args); i++)
                whole.args[whole.args_n++] = partial->items[i];
        for (size_t i = 0; i < call->args_n && whole.args_n < ARRAY_LEN(whole.args); i++)
                whole.args[whole.args_n++] = call->args[i];
        return value_call(py, &whole, depth + 1);
}

static struct value *make_object(struct python *py, uint32_t class_node, const struct call *call)
{
        struct value *object = value_of_class(py, VALUE_OBJECT, class_node);
        uint32_t maker = python_method(py, class_node, "__init__", 8);
        struct call whole = { .node = call->node, .args = { object }, .args_n = 1, .splat = call->splat };
        for (size_t i = 0; i < call->args_n && whole.args_n < ARRAY_LEN(whole.args); i++)
                whole.args[whole.args_n++] = call->args[i];
        if (maker)
                pass_arguments(py, maker, &whole);
        return object;
}

static struct value *call_one(struct python *py, const struct value *function, const struct call *call, unsigned depth)
{
        if (function->kind == VALUE_FUNCTION) {
                pass_arguments(py, function->node, call);
                return own_function(py, function->node);
        }
        if (function->kind == VALUE_CLASS)
                return make_object(py, function->node, call);
        if (function->kind == VALUE_PARTIAL && function->n)
                return call_partial(py, function, call, depth);
        if (function->kind != VALUE_PATH)
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(functions); i++)
                if (functions[i].len == function->len && memcmp(functions[i].path, function->text, function->len) == 0)
                        return functions[i].give(py, call, depth);
        if (strchr(function->text, '(') || function->len + 2 > PATH_LEN_MAX)
                return NULL;
        char *text = arena_alloc(py->arena, function->len + 3);
        memcpy(text, function->text, function->len);
        text[function->len] = '(';
        text[function->len + 1] = ')';
        return value_text(py, VALUE_PATH, text, function->len + 2);
}

struct value *value_call(struct python *py, const struct call *call, unsigned depth)
{
        struct value *value = NULL, *name;
        struct taking taking;
        bool any = false;
        if (depth > CALL_DEPTH_MAX || py->facts->full)
                return NULL;
        py->facts->full = ++py->calls > CALLS_MAX;
        if (call->method && call->object && !call->object->open && !call->object->next &&
            (call->object->kind == VALUE_TEXT || call->object->kind == VALUE_BYTES))
                return text_method(py, call);
        if (python_taking(py, call, &taking) && !taking.pending)
                return take(py, &taking);
        const char *importer = python_importing(py, call, &name);
        if (importer)
                return import(py, importer, name);
        for (const struct value *function = call->function; function; function = function->next) {
                struct value *one = call_one(py, function, call, depth);
                value = any ? value_either(py, value, one) : one;
                any = true;
        }
        return value;
}
