/* Nodes of the tree: children without signs and comments, words, and names as compared. */
#include "policy/javascript/javascript.h"

bool js_is_function(unsigned kind)
{
        switch (kind) {
        case JS_FUNCTION:
        case JS_FUNCTION_DECLARATION:
        case JS_GENERATOR:
        case JS_GENERATOR_DECLARATION:
        case JS_ARROW:
        case JS_METHOD: return true;
        default:
                return false;
        }
}

static uint32_t from(const struct tree *tree, uint32_t child)
{
        while (child &&
                (tree->nodes[child].token || tree->nodes[child].kind == JS_COMMENT ||
                        tree->nodes[child].kind == JS_HTML_COMMENT))
                child = tree->nodes[child].next;
        return child;
}

uint32_t js_first(const struct tree *tree, uint32_t parent)
{
        return from(tree, tree->nodes[parent].child);
}

uint32_t js_next(const struct tree *tree, uint32_t child)
{
        return from(tree, tree->nodes[child].next);
}

uint32_t js_bare(const struct tree *tree, uint32_t node)
{
        for (uint32_t inner; tree->nodes[node].kind == JS_PAREN && (inner = js_first(tree, node));)
                node = inner;
        return node;
}

bool js_text_is(const struct tree *tree, uint32_t node, const char *text)
{
        return js_is(text, tree->text + tree->nodes[node].start, tree->nodes[node].end - tree->nodes[node].start);
}

bool js_has_word(const struct tree *tree, uint32_t node, const char *word)
{
        for (uint32_t child = tree->nodes[node].child; child; child = tree->nodes[child].next)
                if (tree->nodes[child].token && js_text_is(tree, child, word))
                        return true;
        return false;
}

uint32_t js_intern(struct js *js, const char *text, size_t len)
{
        return names_intern(&js->names, js->arena, text, len);
}

/* An identifier as compared: its escapes undone. */
uint32_t js_name(struct js *js, uint32_t node)
{
        if (!js->name_of[node]) {
                const struct node *n = JS_NODE(js, node);
                const char *text = js->tree->text + n->start;
                size_t len = n->end - n->start;
                struct buf buf;
                buf_init(&buf, len + 1);
                if (memchr(text, '\\', len) && js_unescape(text, 0, len, true, &buf))
                        text = buf.bytes, len = buf.len;
                js->name_of[node] = js_intern(js, text, len) + 1;
                buf_done(&buf);
        }
        return js->name_of[node] - 1;
}

struct name js_word(struct js *js, uint32_t node)
{
        uint32_t name = js_name(js, node);
        return js->names.list[name];
}
