/* Values: construction, and alternatives. */
#include "policy/javascript/javascript.h"

struct js_value *js_value_new(struct js *js, enum js_what what)
{
        struct js_value *value = arena_alloc(js->arena, sizeof *value);
        value->what = what;
        return value;
}

struct js_value *js_value_text(struct js *js, enum js_what what, const char *text, size_t len)
{
        struct js_value *value = js_value_new(js, what);
        value->text = text;
        value->len = len;
        return value;
}

bool js_spend(struct js *js, size_t bytes)
{
        if (js->spent + bytes > JS_SPENT_MAX)
                return false;
        js->spent += bytes;
        return true;
}

struct js_value *js_value_number(struct js *js, int64_t number)
{
        struct js_value *value = js_value_new(js, JSV_NUMBER);
        value->number = number;
        return value;
}

struct js_value *js_value_list(struct js *js, struct js_value **items, size_t n)
{
        struct js_value *value = js_value_new(js, JSV_LIST);
        if (!js_spend(js, n * sizeof(struct js_value *))) {
                value->what = JSV_PLAIN;
                return value;
        }
        value->items = arena_alloc(js->arena, (n + 1) * sizeof(struct js_value *));
        if (n)
                memcpy(value->items, items, n * sizeof(struct js_value *));
        value->n = n;
        return value;
}

/* ---- alternatives ---- */

static bool same_one(const struct js_value *a, const struct js_value *b)
{
        if (a == b)
                return true;
        if (a->what != b->what || a->len != b->len || a->number != b->number || a->node != b->node || a->n != b->n ||
                !a->text != !b->text)
                return false;
        if (a->len && a->text && b->text && memcmp(a->text, b->text, a->len) != 0)
                return false;
        for (size_t i = 0; i < a->n; i++) {
                const struct js_value *x = a->items[i], *y = b->items[i];
                if (x != y &&
                        (!x || !y || x->what != y->what || x->number != y->number || x->node != y->node ||
                                x->len != y->len || x->n != y->n || x->open != y->open ||
                                (x->len && memcmp(x->text, y->text, x->len) != 0)))
                        return false;
        }
        return true;
}

bool js_same(const struct js_value *a, const struct js_value *b)
{
        if (a && b && a->open != b->open)
                return false;
        for (; a && b; a = a->next, b = b->next)
                if (!same_one(a, b))
                        return false;
        return !a && !b;
}

struct js_value *js_open(struct js *js, struct js_value *value)
{
        if (!value || value->open)
                return value;
        struct js_value *copy = js_value_new(js, value->what);
        *copy = *value;
        copy->open = true;
        return copy;
}

struct js_value *js_either(struct js *js, struct js_value *a, struct js_value *b)
{
        if (!a || !b)
                return js_open(js, a ? a : b);
        if (a == b)
                return a;
        struct js_value *all[JS_VALUES_MAX];
        size_t n = 0;
        bool open = a->open || b->open;
        for (int side = 0; side < 2; side++)
                for (struct js_value *v = side ? b : a; v; v = v->next) {
                        size_t i = 0;
                        while (i < n && !same_one(all[i], v))
                                i++;
                        if (i < n)
                                continue;
                        if (n == JS_VALUES_MAX)
                                open = true;
                        else
                                all[n++] = v;
                }
        struct js_value *chain = NULL;
        for (size_t i = n; i-- > 0;) {
                struct js_value *copy = js_value_new(js, all[i]->what);
                *copy = *all[i];
                copy->open = open;
                copy->next = chain;
                chain = copy;
        }
        return chain;
}

struct js_value *js_only(struct js_value *value, enum js_what what)
{
        return value && !value->open && !value->next && value->what == what ? value : NULL;
}
