/* Facts about a program. */
#include "policy/python/python.h"

static void say(struct python *py, enum fact_kind kind, uint32_t node, const char *name, size_t len)
{
        facts_add(py->facts,
                (struct fact){ .kind = kind,
                        .name = name,
                        .len = len,
                        .start = NODE(py, node)->start,
                        .end = NODE(py, node)->end });
}

/* Two names of the same function: a policy may list only one. */
static const struct {
        const char *name, *other;
} two_names[] = { { "builtins.open", "io.open" }, { "io.open", "builtins.open" } };

static void say_path(struct python *py, enum fact_kind kind, uint32_t node, const struct value *value)
{
        say(py, kind, node, value->text, value->len);
        for (size_t i = 0; i < ARRAY_LEN(two_names); i++)
                if (strcmp(value->text, two_names[i].name) == 0)
                        say(py, kind, node, two_names[i].other, strlen(two_names[i].other));
}

static bool is_call_result(const struct value *value)
{
        return value->text[value->len - 1] == ')';
}

static bool is_function_of_call(const struct python *py, uint32_t node)
{
        uint32_t parent = NODE(py, node)->parent;
        while (NODE(py, parent)->kind == PY_PARENTHESES)
                node = parent, parent = NODE(py, parent)->parent;
        return NODE(py, parent)->kind == PY_CALL && NODE(py, node)->field == PYF_function;
}

/* sqlite3.connect(":memory:") touches no file; `node` is the called function.  An import alone touches none either. */
static bool is_in_memory(struct python *py, uint32_t node)
{
        uint32_t parent = NODE(py, node)->parent;
        if (NODE(py, parent)->kind != PY_CALL || NODE(py, node)->field != PYF_function)
                return false;
        struct call parts = python_call(py, parent);
        const struct value *name =
                value_only(parts.args_n ? parts.args[0] : python_keyword(py, &parts, "database"), VALUE_TEXT);
        return name && name->len == 8 && memcmp(name->text, ":memory:", 8) == 0;
}

static const char in_memory[] = "sqlite3.connect(':memory:')";

/* Report the paths of a node; with `reaches`, a module reached without an import counts as imported. */
static void references(struct python *py, uint32_t node, const struct value *value, bool reaches)
{
        for (; value; value = value->next) {
                if (value->kind != VALUE_PATH || is_call_result(value))
                        continue;
                if (strcmp(value->text, "sqlite3.connect") == 0 &&
                        (NODE(py, node)->kind == PY_DOTTED || is_in_memory(py, node)))
                        say(py, FACT_REFERENCE, node, in_memory, strlen(in_memory));
                else
                        say_path(py, FACT_REFERENCE, node, value);
                if (value->reached && reaches)
                        say(py, FACT_IMPORT, node, value->text, value->len);
                /* Passed as an argument, __import__ may be called with any name. */
                if (strcmp(value->text, "builtins.__import__") == 0 && NODE(py, node)->kind != PY_CALL &&
                        !is_function_of_call(py, node))
                        say(py, FACT_DYNAMIC_IMPORT, node, value->text, value->len);
        }
}

/* ---- names ---- */

static bool is_parameter(const struct python *py, uint32_t node, uint32_t name)
{
        for (uint32_t scope = py->scope_of[node]; scope; scope = py->scopes[scope].parent) {
                const struct binding *binding = python_binding((struct python *)(uintptr_t)py, scope, name);
                if (!binding || py->scopes[scope].kind == SCOPE_CLASS)
                        continue;
                unsigned looks = 32;
                for (const struct source *source = binding->sources; source && looks-- && !binding->elsewhere;
                        source = source->next) {
                        unsigned above = NODE(py, NODE(py, source->at)->parent)->kind;
                        if (above == PY_PARAMETERS || above == PY_LAMBDA_PARAMETERS || above == PY_DEFAULT ||
                                above == PY_TYPED || above == PY_TYPED_DEFAULT)
                                return true;
                }
                return false;
        }
        return false;
}

/* "class A: eval = 1" makes a member, like a method of the same name. */
static bool is_field(const struct python *py, uint32_t node, uint32_t name)
{
        uint32_t scope = py->scope_of[node];
        if (py->roles[node] != ROLE_STORE || py->scopes[scope].kind != SCOPE_CLASS ||
                NODE(py, NODE(py, node)->parent)->kind != PY_ASSIGNMENT)
                return false;
        const struct binding *binding = python_binding((struct python *)(uintptr_t)py, scope, name);
        return !binding || !binding->elsewhere;
}

static void identifier(struct python *py, uint32_t node)
{
        if (py->roles[node] == ROLE_WORD)
                return;
        uint32_t name = python_name(py, node);
        if (!is_parameter(py, node, name) && !is_field(py, node, name))
                say(py, FACT_NAME, node, py->names.list[name].text, py->names.list[name].len);
        references(py, node, py->values[node], false);
}

/* x.__class__.__name__ only names a type. */
static bool is_class_name(struct python *py, uint32_t node, const struct name *name)
{
        static const char *const harmless[] = { "__name__", "__qualname__", "__module__", "__doc__" };
        uint32_t parent = NODE(py, node)->parent;
        if (name->len != 9 || memcmp(name->text, "__class__", 9) != 0 || NODE(py, parent)->kind != PY_ATTRIBUTE)
                return false;
        const struct name next = python_word(py, tree_field(py->tree, parent, PYF_attribute));
        for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
                if (strlen(harmless[i]) == next.len && memcmp(harmless[i], next.text, next.len) == 0)
                        return true;
        return false;
}

static void attribute(struct python *py, uint32_t node)
{
        uint32_t word = tree_field(py->tree, node, PYF_attribute);
        if (!word)
                return;
        const struct name name = python_word(py, word);
        if (!is_class_name(py, node, &name))
                facts_add(py->facts,
                        (struct fact){ .kind = FACT_ATTRIBUTE,
                                .name = name.text,
                                .len = name.len,
                                .start = NODE(py, word)->start,
                                .end = NODE(py, word)->end });
        references(py, node, py->values[node], true);
}

/* case type(member=x): takes the member. */
static void keyword_pattern(struct python *py, uint32_t node)
{
        uint32_t word = NODE(py, node)->child;
        if (!word || NODE(py, word)->kind != PY_IDENTIFIER)
                return;
        const struct name name = python_word(py, word);
        say(py, FACT_ATTRIBUTE, word, name.text, name.len);
        const struct value *value = value_member(py, NULL, name.text, name.len);
        references(py, word, value, true);
}

/* case {"name": x}: takes an item of the subject of the match statement. */
static void dict_pattern(struct python *py, uint32_t node)
{
        uint32_t match = node;
        while (match && NODE(py, match)->kind != PY_MATCH)
                match = NODE(py, match)->parent;
        uint32_t subject = tree_field(py->tree, match, PYF_subject);
        for (uint32_t key = NODE(py, node)->child; key && subject; key = NODE(py, key)->next)
                if (NODE(py, key)->field == PYF_key)
                        references(py, key, value_item(py, py->values[subject], py->values[key]), true);
}

/* ---- imports ---- */

#define TRY_DEPTH_MAX 64           /* statements looked at around an import */

/* Whether an except clause handles ImportError, as far as the text in front of its block says. */
static bool handles_import_error(const struct python *py, uint32_t clause)
{
        static const char *const names[] = { "ImportError", "ModuleNotFoundError", "Exception", "BaseException" };
        const struct node *node = NODE(py, clause);
        uint32_t block = tree_kind(py->tree, clause, PY_BLOCK), end = block ? NODE(py, block)->start : node->end;
        const char *text = py->tree->text + node->start;
        size_t len = end - node->start;
        const char *colon = memchr(text, ':', len);
        if (strspn(text, "except* \t") >= (colon ? (size_t)(colon - text) : len))
                return true;
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (memmem(text, len, names[i], strlen(names[i])))
                        return true;
        return false;
}

/* Whether an import stands in the first block of a try statement with a handler of ImportError. */
static bool is_optional(const struct python *py, uint32_t node)
{
        for (int depth = 0; node && depth < TRY_DEPTH_MAX; depth++) {
                uint32_t parent = NODE(py, node)->parent;
                unsigned kind = NODE(py, parent)->kind;
                if (kind == PY_FUNCTION || kind == PY_LAMBDA)
                        return false;
                uint32_t clause = kind == PY_TRY && NODE(py, node)->field == PYF_body ? NODE(py, node)->next : 0;
                for (; clause; clause = NODE(py, clause)->next)
                        if (NODE(py, clause)->kind == PY_EXCEPT && handles_import_error(py, clause))
                                return true;
                node = parent;
        }
        return false;
}

static void import_from(struct python *py, uint32_t item, uint32_t from, const char *module)
{
        const struct node *place = NODE(py, from ? from : item);
        const char *name = NODE(py, item)->kind == PY_WILDCARD ? NULL : python_dotted(py, item).text;
        const char *whole = name ? arena_text(py->arena, "%s.%s", module, name) : module;
        facts_add(py->facts,
                (struct fact){ .kind = FACT_IMPORT,
                        .name = whole,
                        .module = module,
                        .optional = is_optional(py, item),
                        .start = place->start,
                        .end = place->end });
        if (name)
                references(py, item, value_path(py, module, name, strlen(name)), true);
}

static void import(struct python *py, uint32_t node)
{
        unsigned statement = NODE(py, node)->kind;
        uint32_t from = tree_field(py->tree, node, PYF_module_name);
        const char *module = statement == PY_FUTURE ? "__future__" : NULL;
        if (from && NODE(py, from)->kind == PY_RELATIVE) {
                say(py, FACT_RELATIVE_IMPORT, from, ".", 1);
                return;
        }
        if (from)
                module = python_dotted(py, from).text;
        for (uint32_t child = NODE(py, node)->child; child; child = NODE(py, child)->next) {
                unsigned kind = NODE(py, child)->kind;
                uint32_t item = kind == PY_ALIASED ? tree_field(py->tree, child, PYF_name) : child;
                if (child == from || (kind != PY_DOTTED && kind != PY_ALIASED && kind != PY_WILDCARD))
                        continue;
                if (module)
                        import_from(py, item, from, module);
                else
                        facts_add(py->facts,
                                (struct fact){ .kind = FACT_IMPORT,
                                        .name = python_dotted(py, item).text,
                                        .optional = is_optional(py, item),
                                        .start = NODE(py, item)->start,
                                        .end = NODE(py, item)->end });
        }
}

/* ---- calls ---- */

static void taken_by(struct python *py, uint32_t node, const struct taking *taking, const struct value *names)
{
        for (const struct value *name = names; name; name = name->next) {
                if (name->kind != VALUE_TEXT || taking->item)
                        continue;
                for (size_t at = 0; at <= name->len;) {
                        const char *dot = memchr(name->text + at, '.', name->len - at);
                        size_t len = dot ? (size_t)(dot - name->text) - at : name->len - at;
                        const char *part = arena_copy(py->arena, name->text + at, len);
                        say(py, FACT_ATTRIBUTE, node, part, len);
                        if (taking->pending)
                                references(py, node, value_member(py, NULL, part, len), true);
                        at += len + 1;
                }
        }
        bool constant = names && !names->open;
        for (const struct value *name = names; name; name = name->next)
                constant = constant && (name->kind == VALUE_TEXT || (name->kind == VALUE_NUMBER && taking->item));
        for (const struct value *object = taking->object; object && !constant; object = object->next) {
                const char *dict = object->kind == VALUE_PATH ? strstr(object->text, ".__dict__") : NULL;
                if (object->kind == VALUE_PATH && !is_call_result(object))
                        say(py, FACT_DYNAMIC, node,
                                arena_copy(py->arena, object->text, dict ? (size_t)(dict - object->text) : object->len),
                                dict ? (size_t)(dict - object->text) : object->len);
        }
}

static void taken_members(struct python *py, uint32_t node, const struct taking *taking)
{
        for (size_t i = 0; i < taking->names_n; i++)
                taken_by(py, node, taking, taking->names[i]);
        if (taking->names_n == 0)
                taken_by(py, node, taking, NULL);
        const struct value *all = taking->names_n > 1 ? value_only(py->values[node], VALUE_LIST) : NULL;
        for (size_t i = 0; all && i < all->n; i++)
                references(py, node, all->items[i], true);
}

static void imported_by_call(struct python *py, const struct call *call)
{
        struct value *name;
        const char *importer = python_importing(py, call, &name);
        bool constant = name && !name->open;
        if (!importer)
                return;
        for (; name; name = name->next) {
                constant = constant && name->kind == VALUE_TEXT;
                const char *colon = name->kind == VALUE_TEXT ? memchr(name->text, ':', name->len) : NULL;
                if (name->kind == VALUE_TEXT && name->len && name->text[0] != '.')
                        say(py, FACT_IMPORT, call->node,
                                arena_copy(py->arena, name->text, colon ? (size_t)(colon - name->text) : name->len),
                                colon ? (size_t)(colon - name->text) : name->len);
                if (name->kind == VALUE_TEXT && strcmp(importer, "pkgutil.resolve_name") != 0 &&
                        strstr(importer, "__import__"))
                        say(py, FACT_IMPORT_CALL, call->node, name->text, name->len);
        }
        if (!constant)
                say(py, FACT_DYNAMIC_IMPORT, call->node, importer, strlen(importer));
}

/* reduce(getattr, names, os), map(getattr, [os], names): the called function takes any member. */
static void handed_getattr(struct python *py, const struct call *call)
{
        bool handed = false;
        for (size_t i = 0; i < call->args_n; i++)
                handed = handed ||
                        (call->args[i] && call->args[i]->kind == VALUE_PATH &&
                                strcmp(call->args[i]->text, "builtins.getattr") == 0);
        if (!handed ||
                (call->function && call->function->kind == VALUE_PATH &&
                        strcmp(call->function->text, "functools.partial") == 0))
                return;
        for (size_t i = 0; i < call->args_n; i++)
                for (const struct value *value = call->args[i]; value; value = value->next) {
                        const struct value *one = value->kind == VALUE_LIST && value->n ? value->items[0] : value;
                        if (one && one->kind == VALUE_PATH && !is_call_result(one))
                                say(py, FACT_DYNAMIC, call->node, one->text, one->len);
                }
}

/*
 * map(import_module, names): the called function imports any module.  Not so partial(import_module, "json"), and
 * functions of the program, where the calls of the parameter are analysed.  references() reports __import__.
 */
static void handed_importer(struct python *py, const struct call *call)
{
        bool partial = call->function && call->function->kind == VALUE_PATH &&
                strcmp(call->function->text, "functools.partial") == 0;
        if (call->function && call->function->kind == VALUE_FUNCTION)
                return;
        const struct value *name = partial && call->args_n > 1 ? value_only(call->args[1], VALUE_TEXT) : NULL;
        for (size_t i = 0; i < call->args_n; i++)
                for (const struct value *value = call->args[i]; value; value = value->next) {
                        if (value->kind != VALUE_PATH || strcmp(value->text, "builtins.__import__") == 0 ||
                                !python_is_importer(value->text))
                                continue;
                        if (name && i == 0)
                                say(py, FACT_IMPORT, call->node, name->text, name->len);
                        else
                                say(py, FACT_DYNAMIC_IMPORT, call->node, value->text, value->len);
                }
}

static void call(struct python *py, uint32_t node)
{
        struct call parts = python_call(py, node);
        uint32_t function = tree_field(py->tree, node, PYF_function);
        struct taking taking;
        if (!function)
                return;
        for (const struct value *value = parts.function; value; value = value->next)
                if (value->kind == VALUE_PATH)
                        say_path(py, FACT_CALL, function, value);
        if (python_taking(py, &parts, &taking))
                taken_members(py, node, &taking);
        handed_getattr(py, &parts);
        handed_importer(py, &parts);
        imported_by_call(py, &parts);
        python_decoded(py, &parts, function);
        references(py, node, py->values[node], false);
        for (const struct value *value = py->values[node]; value; value = value->next)
                if (value->kind == VALUE_PATH && value->reached && taking.object)
                        say(py, FACT_IMPORT, node, value->text, value->len);
}

/* os.__dict__[name] and vars(os)[name] are getattr() in other words. */
static void subscript(struct python *py, uint32_t node)
{
        uint32_t base = tree_field(py->tree, node, PYF_value), key = tree_field(py->tree, node, PYF_subscript);
        references(py, node, py->values[node], true);
        if (!base || !key || NODE(py, key)->kind == PY_SLICE)
                return;
        const struct value *names = py->values[key];
        bool constant = names && !names->open;
        for (const struct value *name = names; name; name = name->next)
                constant = constant && name->kind == VALUE_TEXT;
        for (const struct value *of = py->values[base]; of; of = of->next) {
                const char *dict = of->kind == VALUE_PATH ? strstr(of->text, ".__dict__") : NULL;
                if (dict && !dict[9] && !constant)
                        say(py, FACT_DYNAMIC, node, arena_copy(py->arena, of->text, (size_t)(dict - of->text)),
                                (size_t)(dict - of->text));
        }
}

/* ---- texts ---- */

static bool is_text(const struct value *value)
{
        return value && (value->kind == VALUE_TEXT || value->kind == VALUE_BYTES);
}

static void text(struct python *py, uint32_t node)
{
        const struct value *value = py->values[node];
        uint32_t parent = NODE(py, node)->parent;
        while (NODE(py, parent)->kind == PY_PARENTHESES)
                parent = NODE(py, parent)->parent;
        unsigned above = NODE(py, parent)->kind;
        if ((above == PY_CONCATENATED || above == PY_BINARY) && is_text(py->values[parent]))
                return;
        for (; value; value = value->next)
                if (is_text(value) && value->len)
                        say(py, FACT_STRING, node, value->text, value->len);
        if (py->values[node] || NODE(py, node)->kind != PY_STRING)
                return;
        /* With holes: report the text between the holes. */
        for (uint32_t child = NODE(py, node)->child; child; child = NODE(py, child)->next)
                if (NODE(py, child)->kind == PY_STRING_CONTENT)
                        say(py, FACT_STRING, child, py->tree->text + NODE(py, child)->start,
                                NODE(py, child)->end - NODE(py, child)->start);
}

/* A tuple is a list here, too. */
static bool is_repeated(const struct value *value)
{
        return is_text(value) || (value->kind == VALUE_LIST && value->n);
}

static void large_text(struct python *py, uint32_t node)
{
        uint32_t left = tree_field(py->tree, node, PYF_left), right = tree_field(py->tree, node, PYF_right);
        const struct node *sign = NODE(py, tree_field(py->tree, node, PYF_operator));
        const struct value *a = left ? py->values[left] : NULL, *b = right ? py->values[right] : NULL;
        if (py->tree->text[sign->start] != '*' || sign->end != sign->start + 1 || !a || !b)
                return;
        bool first = is_repeated(a) && b->kind == VALUE_NUMBER, second = is_repeated(b) && a->kind == VALUE_NUMBER;
        if (!first && !second)
                return;
        const struct value *times = first ? b : a;
        const char *what = is_text(first ? a : b) ? "string" : "list", *name;
        if (first)
                name = arena_text(py->arena, "%s * %lld", what, (long long)times->number);
        else
                name = arena_text(py->arena, "%lld * %s", (long long)times->number, what);
        if (times->number > 0)
                facts_add(py->facts,
                        (struct fact){ .kind = FACT_LARGE_TEXT,
                                .name = name,
                                .number = (uint64_t)times->number,
                                .start = NODE(py, node)->start,
                                .end = NODE(py, node)->end });
}

/* ---- loops ---- */

static bool is_loop(unsigned kind)
{
        return kind == PY_FOR || kind == PY_WHILE;
}

static bool is_true(const struct python *py, uint32_t condition)
{
        while (NODE(py, condition)->kind == PY_PARENTHESES && NODE(py, condition)->child)
                condition = NODE(py, condition)->child;
        const struct value *value = py->values[condition];
        if (NODE(py, condition)->kind == PY_TRUE)
                return true;
        return value && !value->open && !value->next &&
                ((value->kind == VALUE_NUMBER && value->number) || (is_text(value) && value->len)) &&
                NODE(py, condition)->kind != PY_IDENTIFIER;
}

/* Whether a statement inside leaves this loop, and not an inner loop or function. */
static bool leaves(const struct python *py, uint32_t node, uint32_t loop)
{
        unsigned kind = NODE(py, node)->kind;
        if (kind == PY_CALL) {
                const struct value *function = py->values[tree_field(py->tree, node, PYF_function)];
                if (!function || function->kind != VALUE_PATH ||
                    (strcmp(function->text, "sys.exit") != 0 && strcmp(function->text, "os._exit") != 0 &&
                     strcmp(function->text, "builtins.exit") != 0 && strcmp(function->text, "builtins.quit") != 0))
                        return false;
        } else if (kind != PY_BREAK && kind != PY_RETURN && kind != PY_RAISE && kind != PY_YIELD) {
                return false;
        }
        uint32_t below = node;
        for (uint32_t at = NODE(py, node)->parent; at != loop; below = at, at = NODE(py, at)->parent) {
                unsigned above = NODE(py, at)->kind;
                if (above == PY_FUNCTION || above == PY_LAMBDA || above == PY_CLASS)
                        return false;
                if (kind == PY_BREAK && is_loop(above) && NODE(py, below)->kind != PY_ELSE)
                        return false;
        }
        return true;
}

static void while_loop(struct python *py, uint32_t node)
{
        uint32_t condition = tree_field(py->tree, node, PYF_condition);
        if (!condition || !is_true(py, condition))
                return;
        for (uint32_t at = node + 1; at < py->tree->n && tree_within(py->tree, at, node); at++)
                if (leaves(py, at, node))
                        return;
        facts_add(py->facts, (struct fact){ .kind = FACT_ENDLESS_LOOP, .name = "while", .start = NODE(py, node)->start,
                                            .end = NODE(py, condition)->end });
}

static void for_loop(struct python *py, uint32_t node)
{
        uint32_t over = tree_field(py->tree, node, PYF_right);
        if (!over || NODE(py, over)->kind != PY_CALL)
                return;
        struct call parts = python_call(py, over);
        if (!parts.function || parts.function->kind != VALUE_PATH ||
                strcmp(parts.function->text, "builtins.range") != 0 || !parts.args_n)
                return;
        const struct value *end = value_only(parts.args[parts.args_n > 1 ? 1 : 0], VALUE_NUMBER);
        if (end && end->number > 0)
                facts_add(py->facts,
                        (struct fact){ .kind = FACT_LARGE_RANGE,
                                .name = "range",
                                .number = (uint64_t)end->number,
                                .start = NODE(py, over)->start,
                                .end = NODE(py, over)->end });
}

/* ---- names of the program's own ---- */

static bool makes_code(struct name name)
{
        static const char *const builtins[] = { "__import__", "compile", "eval", "exec" };
        for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
                if (python_is(builtins[i], name.text, name.len))
                        return true;
        return false;
}

static void definitions(struct python *py)
{
        for (size_t i = 0; i < py->bindings_n; i++) {
                const struct binding *binding = &py->bindings[i];
                const struct source *source = binding->sources;
                const struct name name = py->names.list[binding->name];
                bool defined = binding->fixed &&
                        (binding->fixed->kind == VALUE_FUNCTION || binding->fixed->kind == VALUE_CLASS);
                if (!source || py->scopes[binding->scope].kind == SCOPE_CLASS)
                        continue;
                while (source->next)
                        source = source->next;   /* the first in the text is the last in the list */
                /* A parameter is seen by its function alone. */
                bool variable = py->roles[source->at] == ROLE_STORE && makes_code(name);
                if (!variable && !(defined && (binding->scope == 0 || makes_code(name))))
                        continue;
                say(py, FACT_DEFINE, source->at, name.text, name.len);
        }
}

void python_facts(struct python *py)
{
        definitions(py);
        python_hidden(py);
        for (uint32_t node = 0; node < py->tree->n; node++)
                switch (NODE(py, node)->kind) {
                case PY_IMPORT: case PY_IMPORT_FROM: case PY_FUTURE: import(py, node); break;
                case PY_IDENTIFIER: identifier(py, node); break;
                case PY_ATTRIBUTE: attribute(py, node); break;
                case PY_KEYWORD_PATTERN: keyword_pattern(py, node); break;
                case PY_DICT_PATTERN: dict_pattern(py, node); break;
                case PY_CALL: call(py, node); text(py, node); break;
                case PY_SUBSCRIPT: subscript(py, node); text(py, node); break;
                case PY_STRING: case PY_CONCATENATED: text(py, node); break;
                case PY_BINARY: text(py, node); large_text(py, node); break;
                case PY_WHILE: while_loop(py, node); break;
                case PY_FOR: case PY_FOR_IN: for_loop(py, node); break;
                default: break;
                }
}
