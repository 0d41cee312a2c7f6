/* The value of each node from the values of its children, in rounds, until the values of names are stable. */
#include "policy/javascript/javascript.h"

#include <stdio.h>

#define ROUNDS_MAX 12
#define ROUNDS_LARGE 3                 /* of a program with more than NODES_LARGE nodes */
#define NODES_LARGE 400000
#define MEMBERS_MAX 64

/* ---- literals ---- */

static struct js_value *string(struct js *js, uint32_t node)
{
        const struct node *n = JS_NODE(js, node);
        struct js_value *value = js_value_new(js, JSV_SOME_TEXT);
        struct buf buf;
        if (n->end - n->start < 2)
                return value;
        buf_init(&buf, JS_TEXT_MAX);
        if (js_unescape(js->tree->text, n->start + 1, n->end - 1, false, &buf))
                value = js_value_text(js, JSV_TEXT, arena_copy(js->arena, buf.bytes ? buf.bytes : "", buf.len),
                        buf.len);
        buf_done(&buf);
        return value;
}

static struct js_value *template(struct js *js, uint32_t node)
{
        struct js_value *value = NULL;
        struct buf buf;
        bool good = true;
        uint32_t at = JS_NODE(js, node)->start + 1, end = JS_NODE(js, node)->end;
        buf_init(&buf, JS_TEXT_MAX);
        for (uint32_t child = JS_NODE(js, node)->child; child && good; child = JS_NODE(js, child)->next) {
                if (JS_NODE(js, child)->kind != JS_HOLE)
                        continue;
                uint32_t inner = js_first(js->tree, child);
                struct js_value *text = inner ? js_string_of(js, js->values[inner]) : NULL;
                good = js_unescape(js->tree->text, at, JS_NODE(js, child)->start, false, &buf) && text &&
                        buf_add(&buf, text->text, text->len);
                at = JS_NODE(js, child)->end;
        }
        if (good && end > at && js_unescape(js->tree->text, at, end - 1, false, &buf))
                value = js_value_text(js, JSV_TEXT, arena_copy(js->arena, buf.bytes ? buf.bytes : "", buf.len),
                        buf.len);
        buf_done(&buf);
        return value ? value : js_value_new(js, JSV_SOME_TEXT);
}

static struct js_value *number(struct js *js, uint32_t node)
{
        const struct node *n = JS_NODE(js, node);
        char text[40], *end = NULL;
        size_t len = 0;
        int base = 10;
        for (uint32_t i = n->start; i < n->end && len < sizeof text - 1; i++)
                if (js->tree->text[i] != '_')
                        text[len++] = js->tree->text[i];
        text[len] = 0;
        const char *from = text;
        if (text[0] == '0' && text[1])
                switch (text[1] | 0x20) {
                case 'x': base = 16, from += 2; break;
                case 'o': base = 8, from += 2; break;
                case 'b': base = 2, from += 2; break;
                default: break;
                }
        errno = 0;
        long long value = strtoll(from, &end, base);
        if (end == from || errno || (*end && strcmp(end, "n") != 0))
                return js_value_new(js, JSV_PLAIN);
        return js_value_number(js, value);
}

static struct js_value *array(struct js *js, uint32_t node)
{
        struct js_value *items[JS_ITEMS_MAX], *nothing = js_value_text(js, JSV_PLAIN, "undefined", 9);
        size_t n = 0;
        bool was_item = false;
        for (uint32_t child = JS_NODE(js, node)->child; child; child = JS_NODE(js, child)->next) {
                const struct node *c = JS_NODE(js, child);
                const struct js_value *spread = c->kind == JS_SPREAD ? js_only(js->values[child], JSV_LIST) : NULL;
                if ((c->token && js->tree->text[c->start] != ',') || c->kind == JS_COMMENT)
                        continue;
                if ((c->kind == JS_SPREAD && !spread) || n + (spread ? spread->n : 1) >= JS_ITEMS_MAX)
                        return js_value_new(js, JSV_PLAIN);
                if (c->token) {
                        if (!was_item)
                                items[n++] = nothing;
                        was_item = false;
                        continue;
                }
                was_item = true;
                if (!spread)
                        items[n++] = js->values[child];
                for (size_t i = 0; spread && i < spread->n; i++)
                        items[n++] = spread->items[i];
        }
        return js_value_list(js, items, n);
}

static struct js_value *name_value(struct js *js, uint32_t key)
{
        if (JS_NODE(js, key)->kind == JS_PROPERTY || JS_NODE(js, key)->kind == JS_SHORTHAND) {
                const struct name name = js_word(js, key);
                return js_value_text(js, JSV_TEXT, name.text, name.len);
        }
        return js->values[key] ? js_string_of(js, js->values[key]) : NULL;
}

static struct js_value *object(struct js *js, uint32_t node)
{
        struct js_value *value = js_value_new(js, JSV_OBJECT), *also = NULL;
        size_t size = 0;
        for (uint32_t child = js_first(js->tree, node); child && size < JS_ITEMS_MAX; child = js_next(js->tree, child))
                size += 2;
        value->items = arena_alloc(js->arena, (size + 1) * sizeof(struct js_value *));
        for (uint32_t child = js_first(js->tree, node); child && value->n < size; child = js_next(js->tree, child)) {
                unsigned kind = JS_NODE(js, child)->kind;
                uint32_t key = kind == JS_PAIR     ? tree_field(js->tree, child, JSF_key)
                               : kind == JS_METHOD ? tree_field(js->tree, child, JSF_name)
                                                   : child;
                uint32_t item = kind == JS_PAIR ? tree_field(js->tree, child, JSF_value) : child;
                if (kind == JS_SPREAD) {
                        also = js->values[child];
                        value->open = true;
                        continue;
                }
                struct js_value *name = name_value(js, key);
                /* { get e() {…} }: the value of a getter is unknown. */
                bool getter = kind == JS_METHOD &&
                        (js_has_word(js->tree, child, "get") || js_has_word(js->tree, child, "set"));
                value->open = value->open || !name;
                value->items[value->n++] = name;
                value->items[value->n++] = getter || !item ? NULL : js->values[item];
        }
        return also ? js_either(js, value, also) : value;
}

/* ---- operators ---- */

static int truth(const struct js_value *value)
{
        if (!value || value->open || value->next)
                return -1;
        switch (value->what) {
        case JSV_TEXT: return value->len > 0;
        case JSV_NUMBER: return value->number != 0;
        case JSV_LIST: case JSV_OBJECT: case JSV_FUNCTION: case JSV_METHOD: return 1;
        case JSV_PLAIN:
                if (!value->text)
                        return -1;
                return js_is("true", value->text, value->len) || js_is("Infinity", value->text, value->len);
        default: return -1;
        }
}

static struct js_value *plain(struct js *js, const char *text)
{
        return js_value_text(js, JSV_PLAIN, text, strlen(text));
}

static struct js_value *to_number(struct js *js, struct js_value *value)
{
        int known = truth(value);
        if (known < 0)
                return NULL;
        if (value->what == JSV_NUMBER)
                return value;
        if (value->what == JSV_PLAIN)
                return js_is("undefined", value->text, value->len) || js_is("NaN", value->text, value->len)
                        ? plain(js, "NaN")
                        : js_value_number(js, known);
        const struct js_value *text = js_string_of(js, value);
        char *end = NULL;
        if (!text || value->what == JSV_METHOD || value->what == JSV_OBJECT)
                return text ? plain(js, "NaN") : NULL;
        errno = 0;
        long long number = text->len ? strtoll(text->text, &end, 10) : 0;
        return errno || (end && *end) ? plain(js, "NaN") : js_value_number(js, number);
}

static struct js_value *unary(struct js *js, uint32_t node)
{
        uint32_t argument = tree_field(js->tree, node, JSF_argument),
                 operator= tree_field(js->tree, node, JSF_operator);
        struct js_value *value = argument ? js->values[argument] : NULL;
        int known = truth(value);
        if (!operator || !argument)
                return NULL;
        if (js_text_is(js->tree, operator, "!"))
                return known < 0 ? NULL : plain(js, known ? "false" : "true");
        if (js_text_is(js->tree, operator, "void"))
                return plain(js, "undefined");
        if (js_text_is(js->tree, operator, "typeof"))
                return js_value_new(js, JSV_SOME_TEXT);
        if (js_text_is(js->tree, operator, "delete"))
                return NULL;
        value = to_number(js, value);
        if (!value || value->what != JSV_NUMBER || js_text_is(js->tree, operator, "+"))
                return value;
        return js_value_number(js,
                js_text_is(js->tree, operator, "-") ? (int64_t)(0 - (uint64_t)value->number) : ~value->number);
}

static bool is_text(const struct js_value *value)
{
        for (; value; value = value->next)
                if (value->what == JSV_TEXT || value->what == JSV_SOME_TEXT)
                        return true;
        return false;
}

static bool is_numeric(const struct js_value *value)
{
        return value && !value->open && !value->next &&
                (value->what == JSV_NUMBER || (value->what == JSV_PLAIN && value->text));
}

static struct js_value *sum(struct js *js, struct js_value *a, struct js_value *b)
{
        if (is_numeric(a) && is_numeric(b)) {
                const struct js_value *x = to_number(js, a), *y = to_number(js, b);
                int64_t result;
                if (!x || !y || x->what != JSV_NUMBER || y->what != JSV_NUMBER)
                        return plain(js, "NaN");
                return __builtin_add_overflow(x->number, y->number, &result) ? NULL : js_value_number(js, result);
        }
        const struct js_value *x = js_string_of(js, a), *y = js_string_of(js, b);
        if (x && y && x->len + y->len <= JS_TEXT_MAX && js_spend(js, x->len + y->len)) {
                char *text = arena_alloc(js->arena, x->len + y->len + 1);
                memcpy(text, x->text, x->len);
                memcpy(text + x->len, y->text, y->len);
                return js_value_text(js, JSV_TEXT, text, x->len + y->len);
        }
        return is_text(a) || is_text(b) ? js_value_new(js, JSV_SOME_TEXT) : NULL;
}

static struct js_value *calculated(struct js *js, const char *sign, size_t len, int64_t a, int64_t b)
{
        int64_t result;
        if (js_is("-", sign, len))
                return __builtin_sub_overflow(a, b, &result) ? NULL : js_value_number(js, result);
        if (js_is("*", sign, len))
                return __builtin_mul_overflow(a, b, &result) ? NULL : js_value_number(js, result);
        if (js_is("^", sign, len))
                return js_value_number(js, a ^ b);
        if (js_is("|", sign, len))
                return js_value_number(js, a | b);
        if (js_is("&", sign, len))
                return js_value_number(js, a & b);
        if (js_is("%", sign, len))
                return a >= 0 && b > 0 ? js_value_number(js, a % b) : NULL;
        if (js_is("/", sign, len))
                return a >= 0 && b > 0 && a % b == 0 ? js_value_number(js, a / b) : NULL;
        if (js_is("<<", sign, len))
                return a >= 0 && a < 1 << 20 && b >= 0 && b < 11 ? js_value_number(js, a << b) : NULL;
        return js_is(">>", sign, len) && a >= 0 && b >= 0 && b < 32 ? js_value_number(js, a >> b) : NULL;
}

static struct js_value *binary(struct js *js, uint32_t node)
{
        uint32_t left = tree_field(js->tree, node, JSF_left), right = tree_field(js->tree, node, JSF_right);
        uint32_t operator = tree_field(js->tree, node, JSF_operator);
        if (!left || !right || !operator)
                return NULL;
        const char *sign = js->tree->text + JS_NODE(js, operator)->start;
        size_t len = JS_NODE(js, operator)->end - JS_NODE(js, operator)->start;
        /* The operator of a += b is +. */
        if (JS_NODE(js, node)->kind == JS_AUGMENTED && len > 1)
                len--;
        struct js_value *a = js->values[left], *b = js->values[right];
        int known = truth(a);
        if (js_is("||", sign, len) && known >= 0)
                return known ? a : b;
        if (js_is("&&", sign, len) && known >= 0)
                return known ? b : a;
        if (js_is("||", sign, len) || js_is("??", sign, len))
                return js_either(js, a, b);
        if (js_is("&&", sign, len))
                return js_open(js, b);
        if (js_is("+", sign, len))
                return sum(js, a, b);
        struct js_value *x = js_only(a, JSV_NUMBER), *y = js_only(b, JSV_NUMBER);
        return x && y ? calculated(js, sign, len, x->number, y->number) : NULL;
}

/* ---- names and members ---- */

/* (function () { … this … })(), and functions called by their name alone: no object. */
static bool is_called_alone(const struct js *js, uint32_t function)
{
        uint32_t at = function;
        unsigned kind = JS_NODE(js, function)->kind;
        if (js->alone[function] == 1)
                return true;
        while (JS_NODE(js, JS_NODE(js, at)->parent)->kind == JS_PAREN)
                at = JS_NODE(js, at)->parent;
        return (kind == JS_FUNCTION || kind == JS_GENERATOR) && JS_NODE(js, JS_NODE(js, at)->parent)->kind == JS_CALL &&
               JS_NODE(js, at)->field == JSF_function;
}

static struct js_value *this_value(struct js *js, uint32_t node)
{
        uint32_t owner = js->owner[node];
        if (owner && !is_called_alone(js, owner))
                return NULL;
        return js_open(js, js_path(js, NULL, "globalThis", 10));
}

static struct js_value *identifier(struct js *js, uint32_t node)
{
        const struct name name = js_word(js, node);
        if (js->roles[node] == JSR_WORD)
                return NULL;
        if (js_is("arguments", name.text, name.len) && js->owner[node])
                return NULL;
        if (js_is("NaN", name.text, name.len) || js_is("Infinity", name.text, name.len))
                return js_value_text(js, JSV_PLAIN, name.text, name.len);
        return js_lookup(js, node);
}

static struct js_value *subscript(struct js *js, uint32_t node)
{
        uint32_t base = tree_field(js->tree, node, JSF_object), index = tree_field(js->tree, node, JSF_index);
        const struct js_value *number = index ? js_only(js->values[index], JSV_NUMBER) : NULL;
        if (!base || !index)
                return NULL;
        /* Around a program stands function (exports, require, module, __filename, __dirname). */
        if (number && js->values[base] && js->values[base]->what == JSV_PATH &&
                strcmp(js->values[base]->text, "globalThis.arguments") == 0)
                return number->number == 1   ? js_path(js, NULL, "globalThis.require", 18)
                       : number->number == 2 ? js_path(js, NULL, "globalThis.module", 17)
                                             : NULL;
        return js_item(js, js->values[base], js->values[index]);
}

static struct js_value *member(struct js *js, uint32_t node)
{
        uint32_t base = tree_field(js->tree, node, JSF_object), property = tree_field(js->tree, node, JSF_property);
        if (!base || !property || JS_NODE(js, property)->kind == JS_PRIVATE)
                return NULL;
        const struct name name = js_word(js, property);
        return js_member(js, js->values[base], name.text, name.len);
}

static struct js_value *last_value(const struct js *js, uint32_t node)
{
        uint32_t last = 0;
        for (uint32_t child = js_first(js->tree, node); child; child = js_next(js->tree, child))
                last = child;
        return last ? js->values[last] : NULL;
}

/* The exports of a statement of a namespace: a name and a value each. */
static size_t exported(struct js *js, uint32_t statement, struct js_value **items, size_t size)
{
        const struct tree *tree = js->tree;
        uint32_t what = JS_NODE(js, statement)->kind == JS_EXPORT ? js_first(tree, statement) : 0;
        unsigned kind = JS_NODE(js, what)->kind;
        bool many = kind == JS_LEXICAL || kind == JS_VAR;
        size_t n = 0;
        for (uint32_t one = many ? js_first(tree, what) : what; one && n + 2 <= size;
                one = many ? js_next(tree, one) : 0) {
                uint32_t name = kind == JS_IMPORT_ALIAS ? js_first(tree, one) : tree_field(tree, one, JSF_name),
                         value = one;
                if (!name || JS_NODE(js, name)->kind != JS_IDENTIFIER)
                        continue;
                if (many || kind == JS_ENUM)
                        value = tree_field(tree, one, many ? JSF_value : JSF_body);
                else if (kind == JS_IMPORT_ALIAS)
                        value = js_next(tree, name);
                if (items) {
                        const struct name word = js_word(js, name);
                        items[n] = js_value_text(js, JSV_TEXT, word.text, word.len);
                        items[n + 1] = value ? js->values[value] : NULL;
                }
                n += 2;
        }
        return n;
}

/* namespace N { export … }: an object.  N.M { … } makes N, with the members of M. */
static struct js_value *module(struct js *js, uint32_t node)
{
        struct js_value *object = js_value_new(js, JSV_OBJECT);
        uint32_t body = tree_field(js->tree, node, JSF_body), first = body ? js_first(js->tree, body) : 0;
        size_t size = 0;
        for (uint32_t child = first; child && size < JS_ITEMS_MAX; child = js_next(js->tree, child))
                size += exported(js, child, NULL, JS_ITEMS_MAX - size);
        object->items = arena_alloc(js->arena, (size + 1) * sizeof(struct js_value *));
        for (uint32_t child = first; child && object->n < size; child = js_next(js->tree, child))
                object->n += exported(js, child, object->items + object->n, size - object->n);
        object->open = true;
        return object;
}

static struct js_value *evaluate(struct js *js, uint32_t node)
{
        const struct tree *tree = js->tree;
        if (JS_NODE(js, node)->token)
                return NULL;
        switch (JS_NODE(js, node)->kind) {
        case JS_STRING: return string(js, node);
        case JS_TEMPLATE: return template(js, node);
        case JS_NUMBER: return number(js, node);
        case JS_TRUE: return plain(js, "true");
        case JS_FALSE: return plain(js, "false");
        case JS_NULL: return plain(js, "null");
        case JS_UNDEFINED: return plain(js, "undefined");
        case JS_REGEX: return js_value_new(js, JSV_PLAIN);
        case JS_ARRAY: return array(js, node);
        case JS_OBJECT: return object(js, node);
        case JS_FUNCTION:
        case JS_FUNCTION_DECLARATION:
        case JS_GENERATOR:
        case JS_GENERATOR_DECLARATION:
        case JS_ARROW:
        case JS_METHOD:
        case JS_CLASS: case JS_CLASS_DECLARATION: {
                struct js_value *value = js_value_new(js, JSV_FUNCTION);
                value->node = node;
                return value;
        }
        case JS_IDENTIFIER: case JS_SHORTHAND: return identifier(js, node);
        case JS_THIS: return this_value(js, node);
        case JS_META:
                return js_text_is(tree, node, "import.meta") ? js_path(js, NULL, "globalThis.import.meta", 22) : NULL;
        case JS_MEMBER: return member(js, node);
        case JS_SUBSCRIPT: return subscript(js, node);
        case JS_PAREN: case JS_SEQUENCE: case JS_AWAIT: case JS_COMPUTED: case JS_SPREAD: return last_value(js, node);
        case JS_MODULE: return module(js, node);
        case JS_ASSIGNMENT: return js->values[tree_field(tree, node, JSF_right)];
        case JS_AUGMENTED: case JS_BINARY: return binary(js, node);
        case JS_UNARY: return unary(js, node);
        case JS_TERNARY:
                return js_either(js, js->values[tree_field(tree, node, JSF_consequence)],
                        js->values[tree_field(tree, node, JSF_alternative)]);
        case JS_CALL: case JS_NEW: {
                const struct js_call call = js_call(js, node);
                return js_call_value(js, &call);
        }
        default: return NULL;
        }
}

/* ---- rounds ---- */

static void feed(struct js *js, uint32_t node)
{
        for (struct js_source *source = js->feeds[node]; source; source = source->next_fed) {
                struct js_binding *binding = &js->bindings[source->binding];
                struct js_value *value = js_apply(js, &source->from), *all = NULL;
                bool any = false;
                if (source->ready && js_same(value, source->value))
                        continue;
                source->value = value;
                source->ready = true;
                for (const struct js_source *s = binding->sources; s; s = s->next)
                        if (s->ready)
                                all = any ? js_either(js, all, s->value) : s->value, any = true;
                if (binding->any && js_same(all, binding->value))
                        continue;
                js->changed = js->changed || binding->read;
                binding->value = all;
                binding->any = true;
        }
}

static bool is_gateway(const struct js_value *value)
{
        static const char *const paths[] = { "globalThis", "globalThis.process", "globalThis.require",
                "globalThis.module", "globalThis.Reflect" };
        for (; value; value = value->next)
                for (size_t i = 0; value->what == JSV_PATH && i < ARRAY_LEN(paths); i++)
                        if (strcmp(paths[i], value->text) == 0)
                                return true;
        return false;
}

static void note_member(struct js *js, uint32_t property, struct js_value *value)
{
        if (!is_gateway(value) || js->members_n == MEMBERS_MAX)
                return;
        const struct name word = js_word(js, property);
        uint32_t name = js_intern(js, word.text, word.len);
        for (size_t i = 0; i < js->members_n; i++)
                if (js->members[i].name == name && js_same(js->members[i].value, value))
                        return;
        js->members = list_room(js->members, js->members_n, &js->members_size, sizeof *js->members);
        js->members[js->members_n].name = name;
        js->members[js->members_n++].value = value;
        js->changed = true;
}

/* this.g = globalThis, class { g = globalThis }, and constructor(private g = globalThis). */
static void note_members(struct js *js, uint32_t node)
{
        const struct tree *tree = js->tree;
        unsigned kind = JS_NODE(js, node)->kind;
        uint32_t left = 0, property = 0, value = 0;
        if (kind == JS_ASSIGNMENT || kind == JS_ASSIGNMENT_PATTERN)
                left = tree_field(tree, node, JSF_left);
        if (kind == JS_FIELD)
                property = tree_field(tree, node, JSF_property), value = tree_field(tree, node, JSF_value);
        else if (kind == JS_ASSIGNMENT && left && JS_NODE(js, left)->kind == JS_MEMBER)
                property = tree_field(tree, left, JSF_property), value = tree_field(tree, node, JSF_right);
        else if (kind == JS_ASSIGNMENT_PATTERN && left && JS_NODE(js, left)->kind == JS_IDENTIFIER &&
                tree_kind(tree, node, JS_MODIFIER))
                note_member(js, left, js_lookup(js, left));
        if (property && value && JS_NODE(js, property)->kind == JS_PROPERTY)
                note_member(js, property, js->values[value]);
}

static void link_returns(struct js *js)
{
        js->first_return = arena_alloc(js->arena, js->tree->n * sizeof *js->first_return);
        for (size_t i = 0; i < js->returns_n; i++) {
                js->returns[i].before = NULL;
                js->returns[i].next = js->first_return[js->returns[i].function];
                js->first_return[js->returns[i].function] = (uint32_t)i + 1;
        }
}

void js_values(struct js *js)
{
        unsigned rounds = js->tree->n > NODES_LARGE ? ROUNDS_LARGE : ROUNDS_MAX;
        js->values = arena_alloc(js->arena, js->tree->n * sizeof(struct js_value *));
        link_returns(js);
        for (unsigned round = 0; round < rounds; round++) {
                js->changed = false;
                for (size_t i = 0; i < js->bindings_n; i++)
                        js->bindings[i].read = false;
                for (uint32_t i = 0; i < js->tree->n; i++) {
                        uint32_t node = js->order[i];
                        js->values[node] = evaluate(js, node);
                        if (js->feeds[node])
                                feed(js, node);
                        note_members(js, node);
                }
                for (size_t i = 0; i < js->returns_n; i++) {
                        struct js_value *now = js->values[js->returns[i].node];
                        js->changed = js->changed || (now && !js_same(now, js->returns[i].before));
                        js->returns[i].before = now;
                }
                if (!js->changed)
                        break;
        }
}
