/* What expressions stand for. */
#include "policy/python/python.h"

#include <stdio.h>

/* ---- values ---- */

struct value *value_new(struct python *py, enum value_kind kind)
{
        struct value *value = arena_alloc(py->arena, sizeof *value);
        value->kind = kind;
        return value;
}

struct value *value_text(struct python *py, enum value_kind kind, const char *text, size_t len)
{
        struct value *value = value_new(py, kind);
        value->text = text;
        value->len = len;
        return value;
}

struct value *value_number(struct python *py, int64_t number)
{
        struct value *value = value_new(py, VALUE_NUMBER);
        value->number = number;
        return value;
}

struct value *value_list(struct python *py, struct value **items, size_t n)
{
        struct value *value = value_new(py, VALUE_LIST);
        value->items = arena_alloc(py->arena, (n + 1) * sizeof(struct value *));
        if (n)
                memcpy(value->items, items, n * sizeof(struct value *));
        value->n = n;
        return value;
}

struct value *value_of_class(struct python *py, enum value_kind kind, uint32_t class_node)
{
        struct value *value = value_new(py, kind);
        value->node = class_node;
        value->open = true;
        return value;
}

/* Of which only the dictionary is worth a path: it may be a module's. */
#define UNKNOWN_OBJECT "?"

/* Two modules under another name: what they have is what the first one has. */
static const struct { const char *name, *same; } module_aliases[] = {
        { "posix", "os" }, { "nt", "os" }, { "_io", "io" }, { "__builtin__", "builtins" }, { "_socket", "socket" }, { "_pyio", "io" },
};

/* Functions that other modules have under a name of their own. */
static const struct { const char *base, *name, *same; } same_functions[] = {
        { "bz2", "_builtin_open", "builtins.open" },
        { "tarfile", "bltn_open", "builtins.open" },
        { "tokenize", "_builtin_open", "builtins.open" },
        { "asyncio.subprocess", "create_subprocess_exec", "asyncio.create_subprocess_exec" },
        { "asyncio.subprocess", "create_subprocess_shell", "asyncio.create_subprocess_shell" },
        { "_sqlite3", "connect", "sqlite3.connect" },
        { "sqlite3.dbapi2", "connect", "sqlite3.connect" },
        { "tempfile", "_rmtree", "shutil.rmtree" },
        { "timeit", "_globals", "builtins.globals" },
        { "importlib.metadata", "import_module", "importlib.import_module" },
};

/* Modules that many others import, and that can be come by through them: random._os. */
static const char *const often_imported[] = { "os", "sys", "subprocess", "builtins", "posix", "pty", "socket", "shutil", "importlib" };

static bool is_word(const char *word, const char *text, size_t len)
{
        return strlen(word) == len && memcmp(word, text, len) == 0;
}

static const char *through_another(const char *base, const char *name, size_t len)
{
        while (len && *name == '_')
                name++, len--;
        if (strstr(base, "()") || strncmp(base, "builtins", 8) == 0 || strcmp(base, "asyncio") == 0 || is_word(base, name, len))
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(often_imported); i++)
                if (is_word(often_imported[i], name, len))
                        return often_imported[i];
        return NULL;
}

struct value *value_module(struct python *py, const char *name, size_t len)
{
        struct value *value = value_path(py, NULL, name, len);
        if (value)
                value->reached = true;
        return value;
}

struct value *value_dict_of(struct python *py, const char *path)
{
        return value_path(py, path ? path : UNKNOWN_OBJECT, "__dict__", 8);
}

/* base.name, without the price of a format: there is one for each name of a program. */
static char *dotted(struct arena *arena, const char *base, size_t base_len, const char *name, size_t len)
{
        char *text = arena_alloc(arena, base_len + len + 2);
        memcpy(text, base, base_len);
        text[base_len] = '.';
        memcpy(text + base_len + 1, name, len);
        return text;
}

struct value *value_path(struct python *py, const char *base, const char *name, size_t len)
{
        const char *other = base ? through_another(base, name, len) : NULL;
        if (other)
                return value_module(py, other, strlen(other));
        if (base && ((strncmp(base, "builtins.", 9) == 0 && !strchr(base + 9, '.') && is_word("__self__", name, len)) ||
                     is_word("__builtins__", name, len)))
                return value_path(py, NULL, "builtins", 8);
        for (size_t i = 0; base && i < ARRAY_LEN(same_functions); i++)
                if (strcmp(base, same_functions[i].base) == 0 && is_word(same_functions[i].name, name, len))
                        return value_text(py, VALUE_PATH, same_functions[i].same, strlen(same_functions[i].same));
        size_t base_len = base ? strlen(base) : 0;
        if (base_len + len + 1 > PATH_LEN_MAX || memchr(name, 0, len))
                return NULL;
        const char *first = base ? base : name;
        for (size_t i = 0; i < ARRAY_LEN(module_aliases); i++) {
                size_t n = first[0] == module_aliases[i].name[0] ? strlen(module_aliases[i].name) : 0;
                if (n && !base && len >= n && memcmp(name, module_aliases[i].name, n) == 0 && (len == n || name[n] == '.'))
                        return value_text(py, VALUE_PATH, arena_text(py->arena, "%s%.*s", module_aliases[i].same, (int)(len - n), name + n),
                                          strlen(module_aliases[i].same) + len - n);
                if (n && base && strcmp(base, module_aliases[i].name) == 0)
                        return value_path(py, module_aliases[i].same, name, len);
        }
        if (!base)
                return value_text(py, VALUE_PATH, arena_copy(py->arena, name, len), len);
        return value_text(py, VALUE_PATH, dotted(py->arena, base, base_len, name, len), base_len + 1 + len);
}

static bool same_one(const struct value *a, const struct value *b)
{
        if (a->kind != b->kind || a->len != b->len || a->number != b->number || a->node != b->node || a->n != b->n)
                return false;
        if (a->len && memcmp(a->text, b->text, a->len) != 0)
                return false;
        for (size_t i = 0; i < a->n; i++) {
                const struct value *x = a->items[i], *y = b->items[i];
                if (x != y && (!x || !y || x->kind != y->kind || x->number != y->number || x->len != y->len ||
                               (x->len && memcmp(x->text, y->text, x->len) != 0)))
                        return false;
        }
        return true;
}

bool value_same(const struct value *a, const struct value *b)
{
        if (a && b && a->open != b->open)
                return false;
        for (; a && b; a = a->next, b = b->next)
                if (!same_one(a, b))
                        return false;
        return !a && !b;
}

static struct value *open_one(struct python *py, struct value *value)
{
        if (!value || value->open)
                return value;
        struct value *copy = value_new(py, value->kind);
        *copy = *value;
        copy->open = true;
        return copy;
}

struct value *value_either(struct python *py, struct value *a, struct value *b)
{
        if (!a || !b)
                return open_one(py, a ? a : b);
        if (a == b)
                return a;
        struct value *all[VALUES_MAX];
        size_t n = 0;
        bool open = a->open || b->open;
        for (int side = 0; side < 2; side++)
                for (struct value *v = side ? b : a; v; v = v->next) {
                        size_t i = 0;
                        while (i < n && !same_one(all[i], v))
                                i++;
                        if (i < n)
                                continue;
                        if (n == VALUES_MAX)
                                open = true;
                        else
                                all[n++] = v;
                }
        struct value *chain = NULL;
        for (size_t i = n; i-- > 0;) {
                struct value *copy = value_new(py, all[i]->kind);
                *copy = *all[i];
                copy->open = open;
                copy->next = chain;
                chain = copy;
        }
        return chain;
}

struct value *value_only(struct value *value, enum value_kind kind)
{
        return value && !value->open && !value->next && value->kind == kind ? value : NULL;
}

/* ---- members and items ---- */

static struct value *plus(struct python *py, struct value *so_far, bool *any, struct value *more)
{
        struct value *both = *any ? value_either(py, so_far, more) : more;
        *any = true;
        return both;
}

/* Of an object that nobody knows: what was once put into a member of that name. */
static struct value *put_there(struct python *py, struct value *value, bool any, const char *name, size_t len)
{
        for (size_t i = 0; i < py->members_n; i++)
                if (is_word(py->names.list[py->members[i].name].text, name, len))
                        value = plus(py, value, &any, py->members[i].value);
        return value;
}

/* ---- members of the program's own classes ---- */

#define BASES_DEEP 16

/* Of os: the same whatever they were taken from. */
static const char *const commands[] = { "system", "popen" };

static struct binding *in_class(struct python *py, uint32_t class_node, uint32_t name)
{
        for (uint32_t scope = 1; scope < py->scopes_n; scope++)
                if (py->scopes[scope].kind == SCOPE_CLASS && py->scopes[scope].node == class_node)
                        return python_binding(py, scope, name);
        return NULL;
}

/* The binding of a name in a class, or in a base that the program has as well. */
static struct binding *class_member(struct python *py, uint32_t class_node, uint32_t name, unsigned depth)
{
        struct binding *found = in_class(py, class_node, name);
        uint32_t bases = tree_field(py->tree, class_node, PYF_superclasses);
        for (uint32_t base = bases && !found && depth < BASES_DEEP ? NODE(py, bases)->child : 0; base && !found; base = NODE(py, base)->next)
                for (const struct value *value = py->values ? py->values[base] : NULL; value && !found; value = value->next)
                        if (value->kind == VALUE_CLASS && value->node != class_node)
                                found = class_member(py, value->node, name, depth + 1);
        return found;
}

uint32_t python_method(struct python *py, uint32_t class_node, const char *name, size_t len)
{
        const struct binding *binding = class_member(py, class_node, python_intern(py, name, len), 0);
        const struct value *value = binding ? binding->fixed : NULL;
        return value && value->kind == VALUE_FUNCTION ? value->node : 0;
}

/* Without one of these an object that nobody knows cannot be the module os. */
static bool leads_to_os(struct name name)
{
        static const char *const ways[] = {
                "os", "posix", "nt", "sys", "modules", "importlib", "import__", "import_module", "builtins", "builtins__", "globals__", "eval", "exec",
                "ctypes", "gc", "inspect", "pickle", "runpy", "pty", "pkgutil", "imp",
        };
        while (name.len && *name.text == '_')
                name.text++, name.len--;
        for (size_t i = 0; i < ARRAY_LEN(ways); i++)
                if (is_word(ways[i], name.text, name.len))
                        return true;
        return false;
}

/* Which names are assigned to as members, or have a type in a class; and whether any leads to os. */
static void look_at_names(struct python *py)
{
        for (uint32_t node = 0; node < py->tree->n; node++)
                if (NODE(py, node)->kind == PY_IDENTIFIER)
                        py->reaches_os = leads_to_os(python_word(py, node)) || py->reaches_os;
        for (size_t i = 0; i < ARRAY_LEN(commands); i++)
                python_intern(py, commands[i], strlen(commands[i]));
        py->stored = arena_alloc(py->arena, py->names.n + 1);
        for (uint32_t node = 0; node < py->tree->n; node++) {
                uint32_t word = NODE(py, node)->kind == PY_ATTRIBUTE && py->roles[node] == ROLE_STORE ? tree_field(py->tree, node, PYF_attribute) : 0;
                if (NODE(py, node)->kind == PY_IDENTIFIER && py->roles[node] == ROLE_STORE && py->scopes[py->scope_of[node]].kind == SCOPE_CLASS)
                        word = node;
                if (word)
                        py->stored[python_name(py, word)] = true;
        }
}

/* Whether a class of the program, or any object there, has a member of that name. */
static bool has_own(struct python *py, uint32_t name)
{
        bool found = py->stored[name];
        for (uint32_t scope = 1; scope < py->scopes_n && !found; scope++)
                found = py->scopes[scope].kind == SCOPE_CLASS && python_binding(py, scope, name);
        return found;
}

/*
 * Whether a member is the program's own: that of an instance of a class which has it, or of an object that nobody knows, if
 * such a class is there and nothing leads to os.
 */
static bool is_own(struct python *py, const struct value *base, const char *text, size_t len)
{
        if (!py->stored)
                look_at_names(py);
        uint32_t name = python_intern(py, text, len);
        bool own = has_own(py, name), unknown = !base;
        if (!own)
                return false;
        for (; base; base = base->next) {
                bool of_class = base->kind == VALUE_CLASS || base->kind == VALUE_OBJECT;
                if ((of_class && (py->stored[name] || class_member(py, base->node, name, 0))) ||
                    (base->kind == VALUE_PATH && strcmp(base->text, "builtins.super()") == 0))
                        return true;
        }
        return unknown && !py->reaches_os;
}

/* platform.system is a question. */
static bool is_command(struct python *py, const struct value *base, const char *name, size_t len)
{
        bool command = false;
        for (size_t i = 0; i < ARRAY_LEN(commands); i++)
                command = command || is_word(commands[i], name, len);
        if (!command)
                return false;
        for (const struct value *b = base; b; b = b->next)
                if (b->kind == VALUE_PATH && strncmp(b->text, "platform", 8) == 0)
                        return false;
        return !is_own(py, base, name, len);
}

static bool is_of_class(const struct value *base)
{
        for (; base; base = base->next)
                if (base->kind != VALUE_CLASS && base->kind != VALUE_OBJECT)
                        return false;
        return true;
}

struct value *value_member(struct python *py, struct value *base, const char *name, size_t len)
{
        struct value *value = NULL;
        bool any = false;
        if (is_command(py, base, name, len))
                return value_path(py, "os", name, len);
        if (is_of_class(base))
                base = NULL;   /* its members are not followed */
        if (!base && is_word("__dict__", name, len))
                return value_dict_of(py, NULL);
        for (const struct value *b = base; b; b = b->next)
                value = plus(py, value, &any, b->kind == VALUE_PATH ? value_path(py, b->text, name, len) : NULL);
        if (base && !base->open)
                return value;
        return open_one(py, put_there(py, value, any, name, len));
}

static struct value *item_of_path(struct python *py, const struct value *base, const struct value *key)
{
        static const char dict[] = ".__dict__";
        if (strcmp(base->text, "sys.modules") == 0)
                return value_module(py, key->text, key->len);
        if (strcmp(base->text, "builtins") == 0)
                return value_path(py, "builtins", key->text, key->len);
        /* Modules have it in their dictionaries, and copies of these have it, too. */
        if (is_word("__builtins__", key->text, key->len) && strstr(base->text, dict))
                return value_path(py, NULL, "builtins", 8);
        if (base->text[0] == UNKNOWN_OBJECT[0])
                return NULL;
        if (base->len > strlen(dict) && strcmp(base->text + base->len - strlen(dict), dict) == 0) {
                struct value *object = value_text(py, VALUE_PATH, arena_copy(py->arena, base->text, base->len - strlen(dict)),
                                                  base->len - strlen(dict));
                return value_member(py, object, key->text, key->len);
        }
        if (strcmp(base->text, "builtins.globals()") == 0 || strcmp(base->text, "builtins.locals()") == 0) {
                if (is_word("__builtins__", key->text, key->len))
                        return value_path(py, NULL, "builtins", 8);
                return python_global(py, python_intern(py, key->text, key->len), base->text[9] == 'l');
        }
        return NULL;
}

static struct value *item_of_list(struct python *py, const struct value *base, int64_t at)
{
        if (base->kind == VALUE_TEXT || base->kind == VALUE_BYTES) {
                size_t from = 0, place = 0;
                int64_t n = 0;
                for (size_t i = 0; i < base->len; i++)
                        n += base->kind == VALUE_BYTES || ((unsigned char)base->text[i] & 0xc0) != 0x80;
                at = at < 0 ? at + n : at;
                if (at < 0 || at >= n)
                        return NULL;
                if (base->kind == VALUE_BYTES)
                        return value_number(py, (unsigned char)base->text[at]);
                while (place < (size_t)at)
                        from += utf8_step(base->text + from, base->len - from) + !utf8_step(base->text + from, base->len - from), place++;
                size_t step = utf8_step(base->text + from, base->len - from);
                return value_text(py, base->kind, base->text + from, step ? step : 1);
        }
        at = at < 0 ? at + (int64_t)base->n : at;
        return base->kind == VALUE_LIST && at >= 0 && at < (int64_t)base->n ? base->items[at] : NULL;
}

static struct value *item_of_dict(const struct value *base, const struct value *key)
{
        struct value *found = NULL;
        bool any = false;
        for (size_t i = 0; i + 1 < base->n; i += 2) {
                const struct value *k = base->items[i];
                if (!k || k->open || k->next)
                        return NULL;
                if (k->kind == key->kind && same_one(k, key)) {
                        found = base->items[i + 1];
                        any = true;
                }
        }
        return any ? found : NULL;
}

struct value *value_item(struct python *py, struct value *base, struct value *key)
{
        struct value *value = NULL;
        bool any = false;
        if (!key)
                return NULL;
        for (const struct value *b = base; b; b = b->next)
                for (const struct value *k = key; k; k = k->next) {
                        struct value *one = NULL;
                        if (b->kind == VALUE_PATH && k->kind == VALUE_TEXT)
                                one = item_of_path(py, b, k);
                        else if (b->kind == VALUE_DICT)
                                one = item_of_dict(b, k);
                        else if (k->kind == VALUE_NUMBER)
                                one = item_of_list(py, b, k->number);
                        value = plus(py, value, &any, one);
                }
        for (const struct value *k = key; k && py->members_n && (!value || value->open); k = k->next)
                if (k->kind == VALUE_TEXT)
                        value = put_there(py, value, value != NULL, k->text, k->len);
        return (base && base->open) || key->open ? open_one(py, value) : value;
}

/* ---- constants ---- */

static struct value *joined(struct python *py, const struct value *a, const struct value *b)
{
        py->joined += a->len + b->len;
        py->facts->full = py->facts->full || py->joined > JOINED_MAX;
        if (a->len + b->len > TEXT_MAX || py->facts->full)
                return NULL;
        char *text = arena_alloc(py->arena, a->len + b->len + 1);
        memcpy(text, a->text, a->len);
        memcpy(text + a->len, b->text, b->len);
        return value_text(py, a->kind, text, a->len + b->len);
}

static struct value *repeated(struct python *py, const struct value *text, int64_t times)
{
        if (times < 0)
                times = 0;
        if (times && text->len > TEXT_MAX / (size_t)times)
                return NULL;
        py->joined += text->len * (size_t)times;
        py->facts->full = py->facts->full || py->joined > JOINED_MAX;
        if (py->facts->full)
                return NULL;
        char *bytes = arena_alloc(py->arena, text->len * (size_t)times + 1);
        for (int64_t i = 0; i < times; i++)
                memcpy(bytes + (size_t)i * text->len, text->text, text->len);
        return value_text(py, text->kind, bytes, text->len * (size_t)times);
}

static struct value *formatted(struct python *py, const struct value *format, const struct value *with)
{
        struct buf buf;
        size_t used = 0;
        const struct value *value = NULL;
        buf_init(&buf, TEXT_MAX);
        for (size_t i = 0; i < format->len; i++) {
                if (format->text[i] != '%') {
                        buf_add(&buf, format->text + i, 1);
                        continue;
                }
                char what = ++i < format->len ? format->text[i] : 0;
                if (what == '%') {
                        buf_add(&buf, "%", 1);
                        continue;
                }
                value = with->kind == VALUE_LIST ? (used < with->n ? with->items[used] : NULL) : used == 0 ? with : NULL;
                used++;
                if (value && !value->open && !value->next && value->kind == VALUE_TEXT && what == 's')
                        buf_add(&buf, value->text, value->len);
                else if (value && !value->open && !value->next && value->kind == VALUE_NUMBER && what == 'c')
                        unicode_put(&buf, (uint32_t)value->number);
                else if (value && !value->open && !value->next && value->kind == VALUE_NUMBER && (what == 'd' || what == 's'))
                        buf_printf(&buf, "%lld", (long long)value->number);
                else
                        goto unknown;
        }
        value = value_text(py, format->kind, arena_copy(py->arena, buf.bytes ? buf.bytes : "", buf.len), buf.len);
        buf_done(&buf);
        return (struct value *)(uintptr_t)value;
unknown:
        buf_done(&buf);
        return NULL;
}

static struct value *calculated(struct python *py, char operator, int64_t a, int64_t b)
{
        int64_t result = 0;
        switch (operator) {
        case '+': return __builtin_add_overflow(a, b, &result) ? NULL : value_number(py, result);
        case '-': return __builtin_sub_overflow(a, b, &result) ? NULL : value_number(py, result);
        case '*': return __builtin_mul_overflow(a, b, &result) ? NULL : value_number(py, result);
        case '^': return value_number(py, a ^ b);
        case '&': return value_number(py, a & b);
        case '|': return value_number(py, a | b);
        case '/': return b && a >= 0 && b > 0 ? value_number(py, a / b) : NULL;      /* of "//" */
        case '%': return b > 0 && a >= 0 ? value_number(py, a % b) : NULL;
        case '<': return b >= 0 && b < 40 && a >= 0 && a < (1 << 20) ? value_number(py, a << b) : NULL;
        case '>': return b >= 0 && b < 63 && a >= 0 ? value_number(py, a >> b) : NULL;
        case 'p':
                result = 1;
                for (int64_t i = 0; i < b && i < 64; i++)
                        if (__builtin_mul_overflow(result, a, &result))
                                return NULL;
                return b >= 0 && b < 64 ? value_number(py, result) : NULL;
        default: return NULL;
        }
}

struct value *value_binary(struct python *py, char operator, struct value *a, struct value *b)
{
        bool alone = a && b && !a->open && !a->next && !b->open && !b->next;
        if (!alone)
                return NULL;
        bool text = a->kind == VALUE_TEXT || a->kind == VALUE_BYTES;
        if (operator == '+' && text && b->kind == a->kind)
                return joined(py, a, b);
        if (operator == '%' && a->kind == VALUE_TEXT)
                return formatted(py, a, b);
        if (operator == '*' && text && b->kind == VALUE_NUMBER)
                return repeated(py, a, b->number);
        if (operator == '*' && a->kind == VALUE_NUMBER && (b->kind == VALUE_TEXT || b->kind == VALUE_BYTES))
                return repeated(py, b, a->number);
        if (operator == '+' && a->kind == VALUE_LIST && b->kind == VALUE_LIST && a->n + b->n <= ITEMS_MAX) {
                struct value **items = arena_alloc(py->arena, (a->n + b->n + 1) * sizeof(struct value *));
                memcpy(items, a->items, a->n * sizeof(struct value *));
                memcpy(items + a->n, b->items, b->n * sizeof(struct value *));
                return value_list(py, items, a->n + b->n);
        }
        return a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER ? calculated(py, operator, a->number, b->number) : NULL;
}

/* The parts of [a:b:c], as numbers; which are there is told by the colons. */
static bool slice_parts(const struct python *py, uint32_t slice, struct value *parts[3], bool given[3])
{
        int part = 0;
        uint32_t at = NODE(py, slice)->start;
        for (uint32_t child = NODE(py, slice)->child;; child = NODE(py, child)->next) {
                uint32_t until = child ? NODE(py, child)->start : NODE(py, slice)->end;
                for (; at < until; at++)
                        part += py->tree->text[at] == ':';
                if (!child || part > 2)
                        return part <= 2;
                given[part] = NODE(py, child)->kind != PY_NONE;
                parts[part] = value_only(py->values[child], VALUE_NUMBER);
                if (given[part] && !parts[part])
                        return false;
                at = NODE(py, child)->end;
        }
}

struct value *value_slice(struct python *py, struct value *base, uint32_t slice)
{
        struct value *parts[3] = { 0 };
        bool given[3] = { 0 };
        if (!base || base->open || base->next || !slice_parts(py, slice, parts, given))
                return NULL;
        bool list = base->kind == VALUE_LIST;
        if (!list && base->kind != VALUE_TEXT && base->kind != VALUE_BYTES)
                return NULL;
        for (size_t i = 0; !list && i < base->len; i++)
                if ((unsigned char)base->text[i] >= 0x80)
                        return NULL;
        int64_t n = (int64_t)(list ? base->n : base->len), step = given[2] ? parts[2]->number : 1;
        if (step == 0 || n > (int64_t)TEXT_MAX)
                return NULL;
        int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
        int64_t from = given[0] ? parts[0]->number : step > 0 ? low : high, to = given[1] ? parts[1]->number : step > 0 ? high : low;
        if (given[0])
                from = from < 0 ? from + n : from, from = from < low ? low : from > high ? high : from;
        if (given[1])
                to = to < 0 ? to + n : to, to = to < low ? low : to > high ? high : to;
        char *text = arena_alloc(py->arena, (size_t)n + 1);
        struct value **items = arena_alloc(py->arena, ((size_t)n + 1) * sizeof(struct value *));
        size_t len = 0;
        for (int64_t i = from; step > 0 ? i < to : i > to; i += step, len++) {
                if (list)
                        items[len] = base->items[i];
                else
                        text[len] = base->text[i];
                if (step > n || step < -n) {
                        len++;
                        break;
                }
        }
        return list ? value_list(py, items, len) : value_text(py, base->kind, text, len);
}
