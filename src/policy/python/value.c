/* Values of expressions. */
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

/* Second names of modules; the members are the same. */
static const struct { const char *name, *same;
} module_aliases[] = {
        { "posix", "os" },
        { "nt", "os" },
        { "_io", "io" },
        { "__builtin__", "builtins" },
        { "_socket", "socket" },
        { "_pyio", "io" },
};

/* Functions with a second name in another module. */
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

/* Modules imported by many others, and reachable through their importers: random._os. */
static const char *const often_imported[] = { "os", "sys", "subprocess", "builtins", "posix", "pty", "socket", "shutil",
        "importlib" };

static const char *through_another(const char *base, const char *name, size_t len)
{
        while (len && *name == '_')
                name++, len--;
        if (strstr(base, "()") || strncmp(base, "builtins", 8) == 0 || strcmp(base, "asyncio") == 0 ||
                python_is(base, name, len))
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(often_imported); i++)
                if (python_is(often_imported[i], name, len))
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

/* base.name without the price of a format: called for each name of a program. */
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
        if (base &&
                ((strncmp(base, "builtins.", 9) == 0 && !strchr(base + 9, '.') && python_is("__self__", name, len)) ||
                        python_is("__builtins__", name, len)))
                return value_path(py, NULL, "builtins", 8);
        for (size_t i = 0; base && i < ARRAY_LEN(same_functions); i++)
                if (strcmp(base, same_functions[i].base) == 0 && python_is(same_functions[i].name, name, len))
                        return value_text(py, VALUE_PATH, same_functions[i].same, strlen(same_functions[i].same));
        size_t base_len = base ? strlen(base) : 0;
        if (base_len + len + 1 > PATH_LEN_MAX || memchr(name, 0, len))
                return NULL;
        const char *first = base ? base : name;
        for (size_t i = 0; i < ARRAY_LEN(module_aliases); i++) {
                size_t n = first[0] == module_aliases[i].name[0] ? strlen(module_aliases[i].name) : 0;
                if (n && !base && len >= n && memcmp(name, module_aliases[i].name, n) == 0 &&
                        (len == n || name[n] == '.'))
                        return value_text(py, VALUE_PATH,
                                arena_text(py->arena, "%s%.*s", module_aliases[i].same, (int)(len - n), name + n),
                                strlen(module_aliases[i].same) + len - n);
                if (n && base && strcmp(base, module_aliases[i].name) == 0)
                        return value_path(py, module_aliases[i].same, name, len);
        }
        if (!base)
                return value_text(py, VALUE_PATH, arena_copy(py->arena, name, len), len);
        return value_text(py, VALUE_PATH, dotted(py->arena, base, base_len, name, len), base_len + 1 + len);
}

bool value_same_one(const struct value *a, const struct value *b)
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
                if (!value_same_one(a, b))
                        return false;
        return !a && !b;
}

struct value *value_open(struct python *py, struct value *value)
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
                return value_open(py, a ? a : b);
        if (a == b)
                return a;
        struct value *all[VALUES_MAX];
        size_t n = 0;
        bool open = a->open || b->open;
        for (int side = 0; side < 2; side++)
                for (struct value *v = side ? b : a; v; v = v->next) {
                        size_t i = 0;
                        while (i < n && !value_same_one(all[i], v))
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
                value = with->kind == VALUE_LIST ? (used < with->n ? with->items[used] : NULL)
                        : used == 0              ? with
                                                 : NULL;
                used++;
                if (value && !value->open && !value->next && value->kind == VALUE_TEXT && what == 's')
                        buf_add(&buf, value->text, value->len);
                else if (value && !value->open && !value->next && value->kind == VALUE_NUMBER && what == 'c')
                        unicode_put(&buf, (uint32_t)value->number);
                else if (value && !value->open && !value->next && value->kind == VALUE_NUMBER &&
                        (what == 'd' || what == 's'))
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
        return a->kind == VALUE_NUMBER && b->kind == VALUE_NUMBER ? calculated(py, operator, a->number, b->number)
                                                                  : NULL;
}

/* The parts of [a:b:c], as numbers; the colons tell a missing part. */
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
        int64_t from = given[0] ? parts[0]->number
                : step > 0      ? low
                                : high,
                to = given[1] ? parts[1]->number
                : step > 0    ? high
                              : low;
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
