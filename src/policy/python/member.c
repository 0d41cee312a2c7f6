/* Members and items of values. */
#include "policy/python/python.h"

static struct value *plus(struct python *py, struct value *so_far, bool *any, struct value *more)
{
        struct value *both = *any ? value_either(py, so_far, more) : more;
        *any = true;
        return both;
}

/* Add each value stored by the program in a member of this name, of any object. */
static struct value *put_there(struct python *py, struct value *value, bool any, const char *name, size_t len)
{
        for (size_t i = 0; i < py->members_n; i++)
                if (python_is(py->names.list[py->members[i].name].text, name, len))
                        value = plus(py, value, &any, py->members[i].value);
        return value;
}

/* ---- members of the program's own classes ---- */

#define BASES_DEEP 16

/* Members of os, also when taken from an unknown object. */
static const char *const commands[] = { "system", "popen" };

static struct binding *in_class(struct python *py, uint32_t class_node, uint32_t name)
{
        for (uint32_t scope = 1; scope < py->scopes_n; scope++)
                if (py->scopes[scope].kind == SCOPE_CLASS && py->scopes[scope].node == class_node)
                        return python_binding(py, scope, name);
        return NULL;
}

/* The binding of a name in a class, or in a base class of the program. */
static struct binding *class_member(struct python *py, uint32_t class_node, uint32_t name, unsigned depth)
{
        struct binding *found = in_class(py, class_node, name);
        uint32_t bases = tree_field(py->tree, class_node, PYF_superclasses);
        for (uint32_t base = bases && !found && depth < BASES_DEEP ? NODE(py, bases)->child : 0; base && !found;
                base = NODE(py, base)->next)
                for (const struct value *value = py->values ? py->values[base] : NULL; value && !found;
                        value = value->next)
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

/* Ways to the module os: in a program without such a name, no unknown object is os. */
static bool leads_to_os(struct name name)
{
        static const char *const ways[] = {
                "os",
                "posix",
                "nt",
                "sys",
                "modules",
                "importlib",
                "import__",
                "import_module",
                "builtins",
                "builtins__",
                "globals__",
                "eval",
                "exec",
                "ctypes",
                "gc",
                "inspect",
                "pickle",
                "runpy",
                "pty",
                "pkgutil",
                "imp",
        };
        while (name.len && *name.text == '_')
                name.text++, name.len--;
        for (size_t i = 0; i < ARRAY_LEN(ways); i++)
                if (python_is(ways[i], name.text, name.len))
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
                uint32_t word = NODE(py, node)->kind == PY_ATTRIBUTE && py->roles[node] == ROLE_STORE
                        ? tree_field(py->tree, node, PYF_attribute)
                        : 0;
                if (NODE(py, node)->kind == PY_IDENTIFIER && py->roles[node] == ROLE_STORE &&
                        py->scopes[py->scope_of[node]].kind == SCOPE_CLASS)
                        word = node;
                if (word)
                        py->stored[python_name(py, word)] = true;
        }
}

/* Whether a class or object of the program has a member of this name. */
static bool has_own(struct python *py, uint32_t name)
{
        bool found = py->stored[name];
        for (uint32_t scope = 1; scope < py->scopes_n && !found; scope++)
                found = py->scopes[scope].kind == SCOPE_CLASS && python_binding(py, scope, name);
        return found;
}

/*
 * Whether a member is the program's own: of an instance of a class with the member, or of an unknown object if such a
 * class exists and no name leads to os.
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
                command = command || python_is(commands[i], name, len);
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
        if (!base && python_is("__dict__", name, len))
                return value_dict_of(py, NULL);
        for (const struct value *b = base; b; b = b->next)
                value = plus(py, value, &any, b->kind == VALUE_PATH ? value_path(py, b->text, name, len) : NULL);
        if (base && !base->open)
                return value;
        return value_open(py, put_there(py, value, any, name, len));
}

static struct value *item_of_path(struct python *py, const struct value *base, const struct value *key)
{
        static const char dict[] = ".__dict__";
        if (strcmp(base->text, "sys.modules") == 0)
                return value_module(py, key->text, key->len);
        if (strcmp(base->text, "builtins") == 0)
                return value_path(py, "builtins", key->text, key->len);
        /* Dictionaries of modules have __builtins__, and so have their copies. */
        if (python_is("__builtins__", key->text, key->len) && strstr(base->text, dict))
                return value_path(py, NULL, "builtins", 8);
        if (base->text[0] == UNKNOWN_OBJECT[0])
                return NULL;
        if (base->len > strlen(dict) && strcmp(base->text + base->len - strlen(dict), dict) == 0) {
                struct value *object = value_text(py, VALUE_PATH,
                        arena_copy(py->arena, base->text, base->len - strlen(dict)), base->len - strlen(dict));
                return value_member(py, object, key->text, key->len);
        }
        if (strcmp(base->text, "builtins.globals()") == 0 || strcmp(base->text, "builtins.locals()") == 0) {
                if (python_is("__builtins__", key->text, key->len))
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
                        from += utf8_step(base->text + from, base->len - from) +
                                !utf8_step(base->text + from, base->len - from),
                                place++;
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
                if (k->kind == key->kind && value_same_one(k, key)) {
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
        return (base && base->open) || key->open ? value_open(py, value) : value;
}
