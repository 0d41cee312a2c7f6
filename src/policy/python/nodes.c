/* Nodes of the tree, and names as compared. */
#include "policy/python/python.h"

bool python_is_starred(const struct tree *tree, uint32_t at)
{
        uint32_t start = tree->nodes[at].start;
        if (tree->text[start] == '*')
                return true;
        while (start &&
                (tree->text[start - 1] == ' ' || tree->text[start - 1] == '\t' || tree->text[start - 1] == '\n'))
                start--;
        return start && tree->text[start - 1] == '*';
}

uint32_t python_intern(struct python *py, const char *text, size_t len)
{
        return names_intern(&py->names, py->arena, text, len);
}

uint32_t python_name(struct python *py, uint32_t node)
{
        if (!py->name_of[node]) {
                size_t len;
                const struct node *n = NODE(py, node);
                const char *text = unicode_normal(py->arena, py->tree->text + n->start, n->end - n->start, &len);
                py->name_of[node] = python_intern(py, text, len) + 1;
        }
        return py->name_of[node] - 1;
}

struct name python_word(struct python *py, uint32_t node)
{
        uint32_t name = python_name(py, node);
        return py->names.list[name];
}

struct name python_dotted(struct python *py, uint32_t node)
{
        struct buf buf;
        buf_init(&buf, 4 * KIB);
        for (uint32_t part = NODE(py, node)->child; part; part = NODE(py, part)->next) {
                if (NODE(py, part)->kind != PY_IDENTIFIER)
                        continue;
                const struct name name = python_word(py, part);
                if (buf.len)
                        buf_add(&buf, ".", 1);
                buf_add(&buf, name.text, name.len);
        }
        const struct name name = { arena_copy(py->arena, buf.bytes ? buf.bytes : "", buf.len), buf.len };
        buf_done(&buf);
        return name;
}

struct binding *python_binding(struct python *py, uint32_t scope, uint32_t name)
{
        uint32_t place;
        for (size_t at = 0; (place = index_next(&py->binding_index, index_hash(scope, name), &at)) != NAMES_NONE;) {
                struct binding *binding = &py->bindings[place];
                if (binding->scope == scope && binding->name == name)
                        return binding;
        }
        return NULL;
}
