/* The value of each node from the values of its children, in rounds, until the values of names are stable. */
#include "policy/python/python.h"

#include <stdio.h>
#include <strings.h>

#define ROUNDS_MAX 16

/* ---- literals ---- */

struct literal {
        bool raw, bytes, format;
};

static struct literal literal_of(const struct python *py, uint32_t node)
{
        struct literal how = { 0 };
        uint32_t start = tree_kind(py->tree, node, PY_STRING_START);
        for (uint32_t i = start ? NODE(py, start)->start : 0; start && i < NODE(py, start)->end; i++) {
                char c = (char)(py->tree->text[i] | 0x20);
                how.raw = how.raw || c == 'r';
                how.bytes = how.bytes || c == 'b';
                how.format = how.format || c == 'f';
        }
        return how;
}

static int hex(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
}

/* \N{LATIN SMALL LETTER A} and the few other named characters of identifiers and modules. */
static bool named_character(const char *name, size_t len, struct buf *buf)
{
        static const struct { const char *before; char add; } letters[] = {
                { "LATIN SMALL LETTER ", 'a' - 'A' }, { "LATIN CAPITAL LETTER ", 0 },
        };
        static const struct { const char *name, *text; } others[] = {
                { "LOW LINE", "_" }, { "FULL STOP", "." }, { "SPACE", " " }, { "SOLIDUS", "/" },
        };
        for (size_t i = 0; i < ARRAY_LEN(letters); i++) {
                size_t n = strlen(letters[i].before);
                if (len == n + 1 && strncasecmp(name, letters[i].before, n) == 0) {
                        char c = (char)((name[n] & ~0x20) + letters[i].add);
                        return buf_add(buf, &c, 1);
                }
        }
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                if (strlen(others[i].name) == len && strncasecmp(name, others[i].name, len) == 0)
                        return buf_add(buf, others[i].text, 1);
        return false;
}

/* The escape at text[*at], a backslash; moves *at behind the escape.  False: unknown character. */
static bool escape(const char *text, size_t end, size_t *at, const struct literal *how, struct buf *buf)
{
        static const char plain[] = "\\\\''\"\"a\ab\bf\fn\nr\rt\tv\v";
        size_t i = *at + 1;
        char c = i < end ? text[i] : 0;
        uint32_t code = 0;
        size_t digits = c == 'x' ? 2 : c == 'u' && !how->bytes ? 4 : c == 'U' && !how->bytes ? 8 : 0;
        if (c == '\n') {
                *at = i + 1;
                return true;
        }
        for (size_t k = 0; k + 1 < sizeof plain; k += 2)
                if (c == plain[k]) {
                        *at = i + 1;
                        return buf_add(buf, plain + k + 1, 1);
                }
        if (c >= '0' && c <= '7') {
                size_t k = 0;
                for (; k < 3 && i + k < end && text[i + k] >= '0' && text[i + k] <= '7'; k++)
                        code = code * 8 + (uint32_t)(text[i + k] - '0');
                *at = i + k;
        } else if (digits) {
                if (i + digits >= end)
                        return false;
                for (size_t k = 1; k <= digits; k++) {
                        if (hex(text[i + k]) < 0)
                                return false;
                        code = code * 16 + (uint32_t)hex(text[i + k]);
                }
                *at = i + digits + 1;
        } else if (c == 'N' && !how->bytes && i + 1 < end && text[i + 1] == '{') {
                const char *close = memchr(text + i, '}', end - i);
                if (!close)
                        return false;
                *at = (size_t)(close - text) + 1;
                return named_character(text + i + 2, (size_t)(close - text) - i - 2, buf);
        } else {
                *at = i;
                return buf_add(buf, "\\", 1);
        }
        if (!how->bytes)
                return unicode_put(buf, code);
        char byte = (char)code;
        return buf_add(buf, &byte, 1);
}

static bool add_content(const char *text, size_t at, size_t end, const struct literal *how, struct buf *buf)
{
        while (at < end) {
                size_t run = at;
                while (run < end && text[run] != '\\' && !(how->format && (text[run] == '{' || text[run] == '}')))
                        run++;
                if (run > at && !buf_add(buf, text + at, run - at))
                        return false;
                at = run;
                if (at == end)
                        return true;
                if (text[at] == '\\' && !how->raw) {
                        if (!escape(text, end, &at, how, buf))
                                return false;
                        continue;
                }
                if (!buf_add(buf, text + at, 1))
                        return false;
                at += text[at] != '\\' && at + 1 < end && text[at + 1] == text[at] ? 2 : 1;
        }
        return true;
}

/* {expression!s:}, if constant. */
static bool add_hole(const struct python *py, uint32_t hole, struct buf *buf)
{
        uint32_t expression = tree_field(py->tree, hole, PYF_expression),
                 format = tree_field(py->tree, hole, PYF_format_specifier);
        uint32_t conversion = tree_field(py->tree, hole, PYF_type_conversion);
        const struct value *value = expression ? py->values[expression] : NULL;
        char how = 0;
        if (format && NODE(py, format)->end > NODE(py, format)->start + 1)
                how = py->tree->text[NODE(py, format)->end - 1];
        if (!value || value->open || value->next ||
                (conversion && py->tree->text[NODE(py, conversion)->end - 1] != 's'))
                return false;
        if (format && NODE(py, format)->end > NODE(py, format)->start + 2)
                return false;
        if (value->kind == VALUE_TEXT && (!how || how == 's'))
                return buf_add(buf, value->text, value->len);
        if (value->kind == VALUE_NUMBER && how == 'c')
                return unicode_put(buf, (uint32_t)value->number);
        return value->kind == VALUE_NUMBER && (!how || how == 'd') && buf_printf(buf, "%lld", (long long)value->number);
}

static struct value *string(struct python *py, uint32_t node)
{
        struct literal how = literal_of(py, node);
        struct buf buf;
        bool known = true;
        uint32_t start = tree_kind(py->tree, node, PY_STRING_START), end = tree_kind(py->tree, node, PY_STRING_END);
        enum value_kind kind = how.bytes ? VALUE_BYTES : VALUE_TEXT;
        uint32_t from = start ? NODE(py, start)->end : 0, to = end ? NODE(py, end)->end : 0;
        uint32_t quotes = 0;
        while (quotes < from && start && from - quotes > NODE(py, start)->start &&
                py->tree->text[from - quotes - 1] == py->tree->text[from - 1])
                quotes++;
        if (!start || !end || to < from + quotes)
                return NULL;
        to -= quotes;
        /* Text without escapes needs no copy. */
        if (!how.format && (how.raw || !memchr(py->tree->text + from, '\\', to - from)))
                return value_text(py, kind, py->tree->text + from, to - from);
        buf_init(&buf, MIB);
        if (!how.format)
                known = add_content(py->tree->text, from, to, &how, &buf);
        for (uint32_t child = NODE(py, node)->child; child && known && how.format; child = NODE(py, child)->next) {
                if (NODE(py, child)->kind == PY_STRING_CONTENT)
                        known = add_content(py->tree->text, NODE(py, child)->start, NODE(py, child)->end, &how, &buf);
                else if (NODE(py, child)->kind == PY_INTERPOLATION)
                        known = add_hole(py, child, &buf);
        }
        struct value *value = known
                ? value_text(py, kind, arena_copy(py->arena, buf.bytes ? buf.bytes : "", buf.len), buf.len)
                : NULL;
        buf_done(&buf);
        return value;
}

static struct value *concatenated(struct python *py, uint32_t node)
{
        struct buf buf;
        enum value_kind kind = VALUE_TEXT;
        bool known = true;
        buf_init(&buf, MIB);
        for (uint32_t child = NODE(py, node)->child; child && known; child = NODE(py, child)->next) {
                const struct value *part = py->values[child];
                if (NODE(py, child)->kind == PY_COMMENT)
                        continue;
                known = part && buf_add(&buf, part->text, part->len);
                kind = part ? part->kind : kind;
        }
        struct value *value = known
                ? value_text(py, kind, arena_copy(py->arena, buf.bytes ? buf.bytes : "", buf.len), buf.len)
                : NULL;
        buf_done(&buf);
        return value;
}

static struct value *integer(struct python *py, uint32_t node)
{
        char digits[80];
        size_t n = 0;
        for (uint32_t i = NODE(py, node)->start; i < NODE(py, node)->end && n + 1 < sizeof digits; i++)
                if (py->tree->text[i] != '_')
                        digits[n++] = py->tree->text[i];
        digits[n] = 0;
        int base = 10;
        const char *text = digits;
        if (n > 2 && digits[0] == '0') {
                char c = (char)(digits[1] | 0x20);
                base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
                text += base == 10 ? 0 : 2;
        }
        char *end;
        errno = 0;
        long long number = strtoll(text, &end, base);
        if (errno == ERANGE && !*end)
                return value_number(py, INT64_MAX);   /* as large as matters here */
        return *end || end == text ? NULL : value_number(py, number);
}

/* ---- compound ---- */

static struct value *list(struct python *py, uint32_t node, bool dict)
{
        struct value **items = NULL;
        size_t n = 0, size = 0;
        struct value *value = NULL;
        bool known = true;
        for (uint32_t child = NODE(py, node)->child; child && known; child = NODE(py, child)->next) {
                unsigned kind = NODE(py, child)->kind;
                if (kind == PY_COMMENT)
                        continue;
                if (python_is_starred(py->tree, child) || n >= ITEMS_MAX)
                        known = false;
                if (!dict) {
                        items = list_room(items, n, &size, sizeof(struct value *));
                        items[n++] = py->values[child];
                } else if (kind == PY_PAIR) {
                        uint32_t key = tree_field(py->tree, child, PYF_key),
                                 item = tree_field(py->tree, child, PYF_value);
                        items = list_room(items, n + 1, &size, sizeof(struct value *));
                        items[n++] = py->values[key];
                        items[n++] = py->values[item];
                }
        }
        if (known) {
                value = value_list(py, items, n);
                value->kind = dict ? VALUE_DICT : VALUE_LIST;
        }
        free(items);
        return value;
}

/* The value of a node in the body of a comprehension whose target is `item`; one level of calls and calculations. */
static struct value *with_item(struct python *py, uint32_t node, uint32_t target, struct value *item, unsigned depth)
{
        const struct tree *tree = py->tree;
        struct value *left, *right;
        struct call call;
        uint32_t arg;
        if (depth > 8)
                return NULL;
        switch (NODE(py, node)->kind) {
        case PY_IDENTIFIER:
                return python_name(py, node) == target ? item : py->values[node];
        case PY_PARENTHESES:
                return NODE(py, node)->child ? with_item(py, NODE(py, node)->child, target, item, depth + 1) : NULL;
        case PY_BINARY:
                left = with_item(py, tree_field(tree, node, PYF_left), target, item, depth + 1);
                right = with_item(py, tree_field(tree, node, PYF_right), target, item, depth + 1);
                return value_binary(py, tree->text[NODE(py, tree_field(tree, node, PYF_operator))->start], left, right);
        case PY_CALL:
                call = python_call(py, node);
                arg = NODE(py, tree_field(tree, node, PYF_arguments))->child;
                for (size_t i = 0; arg && i < call.args_n; i++, arg = NODE(py, arg)->next)
                        call.args[i] = with_item(py, arg, target, item, depth + 1);
                return value_call(py, &call, depth + 1);
        default:
                return py->values[node];
        }
}

/* [BODY for NAME in CONSTANTS], which is how texts are taken apart and put together. */
static struct value *comprehension(struct python *py, uint32_t node)
{
        uint32_t body = tree_field(py->tree, node, PYF_body), clause = tree_kind(py->tree, node, PY_FOR_IN);
        uint32_t target = clause ? tree_field(py->tree, clause, PYF_left) : 0,
                 from = clause ? tree_field(py->tree, clause, PYF_right) : 0;
        const struct value *over = from ? py->values[from] : NULL;
        if (!body || !target || NODE(py, target)->kind != PY_IDENTIFIER || NODE(py, clause)->next || !over ||
                over->open || over->next)
                return NULL;
        bool text = over->kind == VALUE_TEXT || over->kind == VALUE_BYTES;
        size_t n = text ? over->len : over->n;
        if ((!text && over->kind != VALUE_LIST) || n > 256)
                return NULL;
        struct value *items[256];
        for (size_t i = 0; i < n; i++) {
                struct value *place = value_number(py, (int64_t)i), *whole = value_new(py, over->kind);
                *whole = *over;
                items[i] = with_item(py, body, python_name(py, target), value_item(py, whole, place), 0);
        }
        return value_list(py, items, n);
}

static struct value *unary(struct python *py, uint32_t node)
{
        const struct value *of = py->values[tree_field(py->tree, node, PYF_argument)];
        char operator = py->tree->text[NODE(py, node)->start];
        if (!of || of->open || of->next || of->kind != VALUE_NUMBER || of->number == INT64_MIN)
                return NULL;
        return value_number(py, operator == '-' ? -of->number : operator == '~' ? ~of->number : of->number);
}

static struct value *binary(struct python *py, uint32_t node)
{
        const struct node *sign = NODE(py, tree_field(py->tree, node, PYF_operator));
        char operator = py->tree->text[sign->start];
        if (operator == '*' && sign->end == sign->start + 2)
                operator = 'p';
        if (operator == '/' && sign->end != sign->start + 2)
                return NULL;
        return value_binary(py, operator, py->values[tree_field(py->tree, node, PYF_left)],
                py->values[tree_field(py->tree, node, PYF_right)]);
}

static struct value *subscript(struct python *py, uint32_t node)
{
        uint32_t base = tree_field(py->tree, node, PYF_value), key = tree_field(py->tree, node, PYF_subscript);
        if (!base || !key)
                return NULL;
        return NODE(py, key)->kind == PY_SLICE ? value_slice(py, py->values[base], key)
                                               : value_item(py, py->values[base], py->values[key]);
}

static struct value *attribute(struct python *py, uint32_t node)
{
        uint32_t object = tree_field(py->tree, node, PYF_object), name = tree_field(py->tree, node, PYF_attribute);
        if (!object || !name)
                return NULL;
        const struct name text = python_word(py, name);
        return value_member(py, py->values[object], text.text, text.len);
}

static uint32_t only_child(const struct python *py, uint32_t node)
{
        uint32_t child = NODE(py, node)->child;
        while (child && NODE(py, child)->kind == PY_COMMENT)
                child = NODE(py, child)->next;
        return child;
}

static struct value *either_children(struct python *py, uint32_t node, bool skip_second)
{
        struct value *value = NULL;
        int i = 0, taken = 0;
        for (uint32_t child = NODE(py, node)->child; child; child = NODE(py, child)->next) {
                if (NODE(py, child)->kind == PY_COMMENT || NODE(py, child)->token || (i++ == 1 && skip_second))
                        continue;
                value = taken++ ? value_either(py, value, py->values[child]) : py->values[child];
        }
        return value;
}

static struct value *either_of_all(struct python *py, uint32_t node)
{
        return either_children(py, node, false);
}

/* a if b else c: not b. */
static struct value *either_of_two(struct python *py, uint32_t node)
{
        return either_children(py, node, true);
}

static struct value *name(struct python *py, uint32_t node)
{
        return python_lookup(py, python_name(py, node), py->scope_of[node], node);
}

static struct value *call(struct python *py, uint32_t node)
{
        const struct call call = python_call(py, node);
        return value_call(py, &call, 0);
}

static struct value *inner(struct python *py, uint32_t node)
{
        uint32_t child = only_child(py, node);
        return child ? py->values[child] : NULL;
}

static struct value *right(struct python *py, uint32_t node)
{
        uint32_t child = tree_field(py->tree, node, PYF_right);
        return child ? py->values[child] : NULL;
}

static struct value *named(struct python *py, uint32_t node)
{
        uint32_t child = tree_field(py->tree, node, PYF_value);
        return child ? py->values[child] : NULL;
}

static struct value *sequence(struct python *py, uint32_t node)
{
        return list(py, node, false);
}

static struct value *dictionary(struct python *py, uint32_t node)
{
        return list(py, node, true);
}

static struct value *lambda(struct python *py, uint32_t node)
{
        struct value *value = value_new(py, VALUE_FUNCTION);
        value->node = node;
        return value;
}

/* By kind; nodes of other kinds have no value. */
static struct value *(*const values[PY_KINDS])(struct python *, uint32_t) = {
        [PY_STRING] = string,
        [PY_CONCATENATED] = concatenated,
        [PY_INTEGER] = integer,
        [PY_IDENTIFIER] = name,
        [PY_ATTRIBUTE] = attribute,
        [PY_SUBSCRIPT] = subscript,
        [PY_CALL] = call,
        [PY_PARENTHESES] = inner,
        [PY_AWAIT] = inner,
        [PY_STATEMENT] = inner,
        [PY_LIST_SPLAT] = inner,
        [PY_ASSIGNMENT] = right,
        [PY_NAMED] = named,
        [PY_BINARY] = binary,
        [PY_UNARY] = unary,
        [PY_BOOLEAN] = either_of_all,
        [PY_CONDITIONAL] = either_of_two,
        [PY_LIST] = sequence,
        [PY_TUPLE] = sequence,
        [PY_EXPRESSIONS] = sequence,
        [PY_SET] = sequence,
        [PY_DICTIONARY] = dictionary,
        [PY_LIST_COMPREHENSION] = comprehension,
        [PY_GENERATOR] = comprehension,
        [PY_SET_COMPREHENSION] = comprehension,
        [PY_LAMBDA] = lambda,
};

/* Bound or deleted names are not looked up. */
static bool has_value(const struct python *py, uint32_t node)
{
        unsigned kind = NODE(py, node)->kind;
        bool reads =
                py->roles[node] == ROLE_LOAD || (kind != PY_IDENTIFIER && kind != PY_ATTRIBUTE && kind != PY_SUBSCRIPT);
        return values[kind] && reads;
}

/* ---- rounds ---- */

static struct value *items_of(struct python *py, const struct value *list)
{
        struct value *value = NULL;
        bool any = false;
        if (!list || list->open || list->next || list->kind != VALUE_LIST)
                return NULL;
        for (size_t i = 0; i < list->n && i < 64; i++) {
                value = any ? value_either(py, value, list->items[i]) : list->items[i];
                any = true;
        }
        return list->n > 64 ? value_either(py, value, NULL) : value;
}

/* Pass the value of a node on to the names bound to the node. */
static void feed(struct python *py, uint32_t node)
{
        for (const struct source *source = py->feeds[node]; source; source = source->next_fed) {
                struct binding *binding = &py->bindings[source->binding];
                struct value *value = py->values[node], *list = value_only(value, VALUE_LIST);
                if (source->kind == SOURCE_ITEMS)
                        value = items_of(py, value);
                else if (source->place >= 0)
                        value = list && (size_t)source->place < list->n ? list->items[source->place] : NULL;
                binding->value = binding->any ? value_either(py, binding->value, value) : value;
                binding->any = true;
                binding->seen++;
        }
}

static void note_member(struct python *py, uint32_t name, struct value *value)
{
        bool of_class = value && (value->kind == VALUE_OBJECT || value->kind == VALUE_CLASS);
        if (!value || (value->kind != VALUE_PATH && !of_class) || (!of_class && strchr(value->text, '(')) ||
                py->members_n >= 256)
                return;
        for (size_t i = 0; i < py->members_n; i++)
                if (py->members[i].name == name && value_same(py->members[i].value, value))
                        return;
        py->members = list_room(py->members, py->members_n, &py->members_size, sizeof *py->members);
        py->members[py->members_n].name = name;
        py->members[py->members_n++].value = value;
}

/* obj.member = value, obj["member"] = value: a possible value of all members of this name, of any object. */
static void assigned_member(struct python *py, uint32_t node)
{
        uint32_t left = tree_field(py->tree, node, PYF_left), right = tree_field(py->tree, node, PYF_right);
        if (!left || !right)
                return;
        unsigned kind = NODE(py, left)->kind;
        uint32_t key = kind == PY_SUBSCRIPT ? tree_field(py->tree, left, PYF_subscript) : 0;
        const struct value *text = key ? value_only(py->values[key], VALUE_TEXT) : NULL;
        if (text)
                note_member(py, python_intern(py, text->text, text->len), py->values[right]);
        else if (kind == PY_ATTRIBUTE)
                note_member(py, python_name(py, tree_field(py->tree, left, PYF_attribute)), py->values[right]);
}

/* The names in the body of a class are members of the class and of its objects. */
static void members_of_classes(struct python *py)
{
        for (size_t i = 0; i < py->bindings_n; i++)
                if (py->scopes[py->bindings[i].scope].kind == SCOPE_CLASS && !py->bindings[i].elsewhere)
                        note_member(py, py->bindings[i].name, py->bindings[i].value);
}

static void begin_round(struct python *py)
{
        for (size_t i = 0; i < py->bindings_n; i++) {
                struct binding *binding = &py->bindings[i];
                binding->before = binding->value;
                binding->any_before = binding->any;
                binding->value = binding->passed ? value_either(py, binding->fixed, binding->passed) : binding->fixed;
                binding->any = binding->has_fixed;
                binding->seen = 0;
        }
}

static bool has_changed(const struct python *py)
{
        for (size_t i = 0; i < py->bindings_n; i++)
                if (!value_same(py->bindings[i].value, py->bindings[i].before))
                        return true;
        return false;
}

/* Nodes with a value or with names bound to the node, in the order of py->order.  The others need no round. */
static uint32_t *with_values(const struct python *py, uint32_t *ret_n)
{
        uint32_t *list = arena_alloc(py->arena, py->tree->n * sizeof *list), n = 0;
        for (uint32_t i = 0; i < py->tree->n; i++)
                if (py->feeds[py->order[i]] || has_value(py, py->order[i]))
                        list[n++] = py->order[i];
        *ret_n = n;
        return list;
}

void python_values(struct python *py)
{
        uint32_t n, *nodes = with_values(py, &n);
        py->values = arena_alloc(py->arena, py->tree->n * sizeof(struct value *));
        for (unsigned round = 0; round < ROUNDS_MAX; round++) {
                size_t members = py->members_n;
                begin_round(py);
                for (uint32_t i = 0; i < n; i++) {
                        uint32_t node = nodes[i];
                        if (has_value(py, node))
                                py->values[node] = values[NODE(py, node)->kind](py, node);
                        if (py->feeds[node])
                                feed(py, node);
                        if (NODE(py, node)->kind == PY_ASSIGNMENT)
                                assigned_member(py, node);
                }
                members_of_classes(py);
                if (members == py->members_n && !has_changed(py))
                        break;
        }
}
