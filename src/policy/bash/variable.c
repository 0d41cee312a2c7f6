/* Variables with all values from the program, and the choice between the values. */
#include "policy/bash/bash.h"

/* ---- choices ---- */

size_t bash_pick(struct shell *sh, size_t n)
{
        if (n < 2)
                return 0;
        size_t at = sh->choice % n;
        sh->choice /= n;
        sh->total = sh->total > CHOICES_MAX ? sh->total : sh->total * n;
        return at;
}

bool bash_more(struct shell *sh, struct choices *choices)
{
        if (choices->n)
                choices->at++;
        if (choices->n && choices->at >= (sh->total < CHOICES_MAX ? sh->total : CHOICES_MAX))
                return false;
        if (++sh->steps > STEPS_MAX) {
                sh->too_complex = true;
                return false;
        }
        choices->n = 1;
        sh->choice = choices->at;
        sh->total = 1;
        return true;
}

/* ---- variables ---- */

struct variable *bash_variable(struct shell *sh, const char *name, size_t len, bool local)
{
        unsigned hash = 5381;
        for (size_t i = 0; i < len; i++)
                hash = hash * 33 + (unsigned char)name[i];
        struct variable **slot = &sh->variables[hash % ARRAY_LEN(sh->variables)], *global = NULL;
        for (struct variable *v = *slot; v; v = v->next)
                if (v->len == len && memcmp(v->name, name, len) == 0) {
                        if (v->scope == sh->function && (sh->function || !global))
                                return v;
                        if (!v->scope)
                                global = v;
                }
        if (global && !(local && sh->function))
                return global;
        struct variable *v = arena_alloc(sh->arena, sizeof *v);
        v->name = arena_copy(sh->arena, name, len);
        v->len = len;
        v->scope = local ? sh->function : NULL;
        v->next = *slot;
        return *slot = v;
}

static bool same(const struct field *a, const struct field *b)
{
        return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static void add_value(struct values *values, struct field value)
{
        for (size_t i = 0; i < values->n; i++)
                if (same(&values->texts[i], &value))
                        return;
        if (values->n == VALUES_MAX)
                values->texts[VALUES_MAX - 1] = (struct field){ .text = "", .len = 1, .hole = true };
        else
                values->texts[values->n++] = value;
}

const struct values *bash_values(const struct shell *sh, const struct variable *v)
{
        if (!sh->loops && !sh->function && (v->now.n || v->now.arrays_n))
                return &v->now;
        return v->before.n || v->before.arrays_n ? &v->before : v->all.n || v->all.arrays_n ? &v->all : &v->now;
}

/*
 * A certain unset empties the variable from here on.  Elsewhere only ${x:-…} asks: a folder removed before the unset of
 * its variable is still the same folder.
 */
void bash_unset(struct shell *sh, struct variable *v)
{
        sh->learned = sh->learned || !v->unset;
        v->unset = true;
        if (sh->conditional || sh->loops || sh->function)
                return;
        v->unset_now = true;
        v->now = (struct values){ .texts = { { .text = "" } }, .n = 1 };
}

void bash_set(struct shell *sh, struct variable *v, struct field value, bool append)
{
        if (v->unset_now)
                v->now = (struct values){ 0 };
        v->unset_now = false;
        if (value.len > TEXT_MAX / 16)
                value = (struct field){ .text = "", .len = 1, .hole = true };
        if (append) {
                struct values old = v->now;
                for (size_t i = 0; i < old.n; i++) {
                        size_t len = old.texts[i].len + value.len;
                        char *text = arena_alloc(sh->arena, len + 1);
                        memcpy(text, old.texts[i].text, old.texts[i].len);
                        memcpy(text + old.texts[i].len, value.text, value.len);
                        struct field both = { .text = text, .len = len, .hole = old.texts[i].hole || value.hole };
                        if (len > TEXT_MAX / 16)
                                both = (struct field){ .text = "", .len = 1, .hole = true };
                        if (i == 0 && !sh->conditional && !sh->loops && !sh->function)
                                v->now.n = 0;
                        add_value(&v->now, both);
                        add_value(&v->all, both);
                }
                /* The number of rounds of a loop is unknown. */
                if (sh->loops)
                        add_value(&v->all, (struct field){ .text = "", .len = 1, .hole = true });
                if (old.n)
                        return;
        }
        if (!sh->conditional && !sh->loops && !sh->function && sh->total < 2)
                v->now.n = v->now.arrays_n = 0;
        add_value(&v->now, value);
        add_value(&v->all, value);
}

static void add_item(struct shell *sh, struct values *values, struct item item, bool clear)
{
        if (clear && values->arrays_n == ARRAY_LEN(values->arrays))
                values->arrays_n--;
        if (clear || !values->arrays_n) {
                values->arrays[values->arrays_n] = values->last[values->arrays_n] = NULL;
                values->arrays_n++;
        }
        for (size_t i = clear ? values->arrays_n - 1 : 0; item.value.text && i < values->arrays_n; i++) {
                struct item *copy = arena_alloc(sh->arena, sizeof *copy);
                *copy = item;
                if (values->last[i])
                        values->last[i]->next = copy;
                else
                        values->arrays[i] = copy;
                values->last[i] = copy;
        }
}

/* A value without text only begins an array. */
void bash_set_item(struct shell *sh, struct variable *v, const char *key, size_t key_len, struct field value,
        bool clear)
{
        struct item item = { .key = key, .key_len = key_len, .value = value };
        v->unset_now = false;
        if (clear && !sh->conditional && !sh->loops && !sh->function)
                v->now.arrays_n = v->now.n = 0;
        add_item(sh, &v->now, item, clear);
        add_item(sh, &v->all, item, clear);
}

void bash_round(struct shell *sh)
{
        sh->learned = false;
        for (size_t i = 0; i < ARRAY_LEN(sh->variables); i++)
                for (struct variable *v = sh->variables[i]; v; v = v->next) {
                        v->unset_now = false;
                        v->before = v->all;
                        v->all = v->now = (struct values){ 0 };
                }
}

bool bash_stable(struct shell *sh)
{
        if (sh->learned)
                return false;
        for (size_t i = 0; i < ARRAY_LEN(sh->variables); i++)
                for (const struct variable *v = sh->variables[i]; v; v = v->next) {
                        if (v->all.n != v->before.n || v->all.arrays_n != v->before.arrays_n)
                                return false;
                        for (size_t k = 0; k < v->all.n; k++)
                                if (!same(&v->all.texts[k], &v->before.texts[k]))
                                        return false;
                        for (size_t k = 0; k < v->all.arrays_n; k++) {
                                const struct item *a = v->all.arrays[k], *b = v->before.arrays[k];
                                for (; a && b && same(&a->value, &b->value); a = a->next)
                                        b = b->next;
                                if (a || b)
                                        return false;
                        }
                }
        return true;
}
