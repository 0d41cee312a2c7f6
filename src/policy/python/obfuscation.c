/*
 * Hidden texts: decoded to be run, or long and unreadable.  Clean programs decode all the time, so decoding is a fact
 * only where the result becomes code or a module, or where the text is long.
 */
#include "policy/python/python.h"

#define HIDDEN_MIN 100                 /* bytes of a decoded constant */

/* ---- arguments of exec, eval and imports ---- */

static bool is_runner(const struct value *function)
{
        for (; function; function = function->next)
                if (function->kind == VALUE_PATH &&
                    (strcmp(function->text, "builtins.exec") == 0 || strcmp(function->text, "builtins.eval") == 0 ||
                     strcmp(function->text, "builtins.compile") == 0 || python_is_importer(function->text)))
                        return true;
        return false;
}

struct todo {
        uint32_t *nodes;
        size_t n, size;
};

static void add(struct python *py, struct todo *todo, uint32_t node)
{
        if (!node || py->run[node])
                return;
        todo->nodes = list_room(todo->nodes, todo->n, &todo->size, sizeof *todo->nodes);
        todo->nodes[todo->n++] = node;
}

/* Add the sources of a name: the nodes of its values, and the bodies of its functions. */
static void add_sources(struct python *py, struct todo *todo, uint32_t identifier)
{
        uint32_t name = python_name(py, identifier);
        for (uint32_t scope = py->scope_of[identifier];; scope = py->scopes[scope].parent) {
                struct binding *binding = python_binding(py, scope, name);
                if (binding && binding->elsewhere)
                        binding = python_binding(py, binding->other, name);
                const struct source *sources = binding && !binding->run ? binding->sources : NULL;
                if (binding)
                        binding->run = true;
                for (const struct source *source = sources; source; source = source->next)
                        add(py, todo,
                                source->kind == SOURCE_FUNCTION ? tree_field(py->tree, source->node, PYF_body)
                                                                : source->node);
                if (binding || scope == 0)
                        return;
        }
}

void python_hidden(struct python *py)
{
        struct todo todo = { 0 };
        for (uint32_t node = 0; node < py->tree->n; node++) {
                uint32_t function = NODE(py, node)->kind == PY_CALL ? tree_field(py->tree, node, PYF_function) : 0;
                if (!function || !is_runner(py->values[function]))
                        continue;
                if (!py->run)
                        py->run = arena_alloc(py->arena, py->tree->n * sizeof *py->run);
                add(py, &todo, tree_field(py->tree, node, PYF_arguments));
        }
        while (todo.n) {
                uint32_t top = todo.nodes[--todo.n];
                for (uint32_t node = top; node < py->tree->n && tree_within(py->tree, node, top); node++) {
                        bool seen = py->run[node];
                        py->run[node] = true;
                        if (node == top && seen)
                                break;
                        if (!seen && NODE(py, node)->kind == PY_IDENTIFIER && py->roles[node] == ROLE_LOAD)
                                add_sources(py, &todo, node);
                }
        }
        free(todo.nodes);
}

/* ---- decoding ---- */

static bool is_long(const struct value *value)
{
        return value && (value->kind == VALUE_TEXT || value->kind == VALUE_BYTES) && value->len >= HIDDEN_MIN;
}

void python_decoded(struct python *py, const struct call *call, uint32_t function)
{
        static const char *const decoders[] = { "b64decode", "fromhex", "unhexlify", "b32decode", "a85decode",
                "b85decode" };
        const char *name = call->method, *found = NULL;
        size_t len = call->method_len;
        if (!name && call->function && call->function->kind == VALUE_PATH) {
                const char *dot = strrchr(call->function->text, '.');
                name = dot ? dot + 1 : call->function->text;
                len = strlen(name);
        }
        bool run = py->run && py->run[call->node], much = call->args_n && is_long(call->args[0]);
        for (size_t i = 0; i < ARRAY_LEN(decoders) && name; i++)
                if (python_is(decoders[i], name, len))
                        found = decoders[i];
        if (call->method && python_is("decode", name, len)) {
                uint32_t object = tree_field(py->tree, function, PYF_object);
                found = "decode";
                much = call->object && call->object->kind == VALUE_BYTES && is_long(call->object) && object &&
                        NODE(py, object)->kind != PY_CALL;
        }
        if (found && (run || much))
                facts_add(py->facts,
                        (struct fact){ .kind = FACT_DECODED,
                                .name = found,
                                .len = strlen(found),
                                .start = NODE(py, function)->start,
                                .end = NODE(py, function)->end });
}
