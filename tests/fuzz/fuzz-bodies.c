/*
 * Hostile JSON as any object of fields.def: what is refused says where it is wrong, and what is accepted is the same
 * after it was written and read again.  The first byte says which object, so that '0' is the first; the rest is the
 * text.
 */
#include "model/model.h"

#include <stdio.h>

static const struct object *const objects[] = {
#define CHOICES(choices)
#define VALUE(choices, name, text, number, meaning)
#define END_CHOICES(choices)
#define OBJECT(object, title, text) &object_##object,
#define NUM(object, member, presence, min, max, def, unit, option, help)
#define INT(object, member, presence, help)
#define REAL(object, member, presence, help)
#define BOOL(object, member, presence, def, option, help)
#define TEXT(object, member, presence, max, def, option, help)
#define BYTES(object, member, presence, max, option, help)
#define JSON(object, member, presence, help)
#define ENUM(object, member, presence, choices, def, option, help)
#define TEXTS(object, member, presence, items, max, option, help)
#define PAIRS(object, member, presence, items, option, help)
#define SUB(object, member, presence, other, help)
#define LIST(object, member, presence, other, items, option, help)
#define ALIAS(object, member, other)
#define END(object)
#include "model/fields.def"
#include "model/undef.h"
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool condition)
{
        if (!condition)
                abort();
}

/* Bytes that are no text are written twice, and only one of the two may be read. */
static void drop_doubles(const struct object *object, json_t *json)
{
        json_t *below;
        size_t at;
        for (size_t i = 0; i < object->n; i++) {
                const struct field *field = &object->fields[i];
                char name[100];
                snprintf(name, sizeof name, "%s_base64", field->name);
                if (field->kind == KIND_BYTES && json_object_get(json, name))
                        json_object_del(json, field->name);
                if (field->kind == KIND_SUB && json_is_object(json_object_get(json, field->name)))
                        drop_doubles(field->object, json_object_get(json, field->name));
                if (field->kind == KIND_LIST)
                        json_array_foreach(json_object_get(json, field->name), at, below)
                                drop_doubles(field->object, below);
        }
}

static void survives_the_journey(const struct object *object, const void *first, struct arena *arena)
{
        void *second = arena_alloc(arena, object->size);
        struct csn_error err;
        memset(second, 0, object->size);
        json_t *json = model_encode(object, first);
        drop_doubles(object, json);
        require(model_decode(object, json, arena, second, &err) == 0);
        json_t *again = model_encode(object, second);
        drop_doubles(object, again);
        require(json_equal(json, again));
        json_decref(again);
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct csn_error err = { 0 };
        if (!len)
                return 0;
        const struct object *object = objects[(uint8_t)(bytes[0] - '0') % ARRAY_LEN(objects)];
        void *ret = arena_alloc(&arena, object->size);
        memset(ret, 0, object->size);
        if (model_decode_text(object, (const char *)bytes + 1, len - 1, &arena, ret, &err) < 0) {
                require(err.code == CSN_E_INPUT && err.text[0] && utf8_valid(err.text, strlen(err.text)));
        } else {
                survives_the_journey(object, ret, &arena);
                model_defaults(object, ret);
                survives_the_journey(object, ret, &arena);
        }
        arena_done(&arena);
        return 0;
}
