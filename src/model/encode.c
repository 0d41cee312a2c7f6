/* Structs into JSON: any bytes become valid JSON, with the exact bytes beside them when they are not text. */
#include "model/model.h"

#include <openssl/evp.h>
#include <stdio.h>

char *model_utf8(struct arena *arena, const char *bytes, size_t len, size_t *ret_len)
{
        char *text = arena_alloc(arena, len * 3 + 1);
        size_t n = 0;
        while (len) {
                size_t step = utf8_step(bytes, len);
                if (step) {
                        memcpy(text + n, bytes, step);
                        n += step;
                } else {
                        memcpy(text + n, "\xef\xbf\xbd", 3);
                        n += 3;
                        step = 1;
                }
                bytes += step;
                len -= step;
        }
        text[n] = 0;
        *ret_len = n;
        return text;
}

char *model_base64(struct arena *arena, const char *bytes, size_t len)
{
        char *text = arena_alloc(arena, len / 3 * 4 + 5);
        EVP_EncodeBlock((unsigned char *)text, (const unsigned char *)bytes, (int)len);
        return text;
}

/* Our own texts are UTF-8, but some quote what came from a sandbox. */
static json_t *encode_text(const char *text, size_t len)
{
        json_t *json = json_stringn(text, len);
        if (json)
                return json;
        struct arena arena = { 0 };
        size_t safe_len;
        const char *safe = model_utf8(&arena, text, len, &safe_len);
        json = json_stringn(safe, safe_len);
        arena_done(&arena);
        return json;
}

static json_t *encode_texts(char *const *texts, size_t n)
{
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, encode_text(texts[i], strlen(texts[i])));
        return list;
}

static json_t *encode_pairs(const struct pair *pairs, size_t n)
{
        json_t *object = json_object();
        for (size_t i = 0; i < n; i++)
                json_object_set_new(object, pairs[i].name,
                                    encode_text(pairs[i].value, strlen(pairs[i].value)));
        return object;
}

static json_t *encode_list(const struct object *object, const char *items, size_t n)
{
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, model_encode(object, items + i * object->size));
        return list;
}

/* The program wrote this JSON; it was decoded once before, so this cannot fail but for memory. */
static json_t *encode_json(const char *text)
{
        json_t *json = text ? json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
        return json ? json : json_null();
}

/* Three decimals: we measure in microseconds, and further digits would be noise. */
/* Times to the microsecond; nothing that we measure has more digits than six. */
static json_t *encode_real(const struct field *field, double number)
{
        size_t len = strlen(field->name);
        double digits = len > 3 && strcmp(field->name + len - 3, "_ms") == 0 ? 1e3 : 1e6;
        bool sane = number >= 0 && number < 1e12;
        return json_real(sane ? (double)(int64_t)(number * digits + 0.5) / digits : 0);
}

static json_t *encode_field(const struct field *field, const void *from)
{
        const void *at = (const char *)from + field->at;
        size_t n =
                field->count_at ? *(const size_t *)(const void *)((const char *)from + field->count_at) : 0;
        switch (field->kind) {
        case KIND_NUM:
                return json_integer((json_int_t)*(const uint64_t *)at);
        case KIND_INT:
                return json_integer(*(const int64_t *)at);
        case KIND_REAL:
                return encode_real(field, *(const double *)at);
        case KIND_BOOL:
                return json_boolean(*(const bool *)at);
        case KIND_TEXT:
                return *(char *const *)at ? encode_text(*(char *const *)at, strlen(*(char *const *)at))
                                          : json_null();
        case KIND_BYTES:
                return encode_text(((const struct bytes *)at)->bytes ? ((const struct bytes *)at)->bytes : "",
                                   ((const struct bytes *)at)->len);
        case KIND_JSON:
                return encode_json(*(char *const *)at);
        case KIND_ENUM:
                return json_string(field->choices->values[*(const int *)at].text);
        case KIND_TEXTS:
                return encode_texts(*(char **const *)at, n);
        case KIND_PAIRS:
                return encode_pairs(*(struct pair *const *)at, n);
        case KIND_SUB:
                return model_encode(field->object, at);
        case KIND_LIST:
                return encode_list(field->object, *(const char *const *)at, n);
        }
        return json_null();
}

static void add_base64(json_t *json, const struct field *field, const struct bytes *bytes)
{
        struct arena arena = { 0 };
        char name[80];
        snprintf(name, sizeof name, "%s_base64", field->name);
        json_object_set_new(json, name, json_string(model_base64(&arena, bytes->bytes, bytes->len)));
        arena_done(&arena);
}

json_t *model_encode(const struct object *object, const void *from)
{
        json_t *json = json_object();
        uint64_t present = *(const uint64_t *)from;
        for (size_t i = 0; i < object->n; i++) {
                const struct field *field = &object->fields[i];
                if (!(present >> i & 1) && field->presence != REQUIRED) {
                        if (field->presence == NULLABLE)
                                json_object_set_new(json, field->name, json_null());
                        continue;
                }
                json_object_set_new(json, field->name, encode_field(field, from));
                const struct bytes *bytes = (const void *)((const char *)from + field->at);
                if (field->kind == KIND_BYTES && bytes->len && !utf8_valid(bytes->bytes, bytes->len))
                        add_base64(json, field, bytes);
        }
        return json;
}
