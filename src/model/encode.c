/*
 * Structs into JSON: any bytes become valid JSON, with the exact bytes added if the bytes are no text.  The
 * result is a tree, for further processing, or directly a text: a record has about a hundred parts, and a tree
 * allocates each part.
 */
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

/* Our own texts are UTF-8, but may quote a sandbox. */
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

/* The program wrote this JSON; the text was decoded once before, so only memory can fail. */
static json_t *encode_json(const char *text)
{
        json_t *json = text ? model_read(text, strlen(text), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : NULL;
        return json ? json : json_null();
}

/* Times to the microsecond; no measured time has more than six digits.  *ret_digits is 1000 or a million. */
static int64_t real_parts(const struct field *field, double number, int64_t *ret_digits)
{
        size_t len = strlen(field->name);
        *ret_digits = len > 3 && strcmp(field->name + len - 3, "_ms") == 0 ? 1000 : 1000000;
        bool sane = number >= 0 && number < 1e12;
        return sane ? (int64_t)(number * (double)*ret_digits + 0.5) : 0;
}

static json_t *encode_real(const struct field *field, double number)
{
        int64_t digits, parts = real_parts(field, number, &digits);
        return json_real((double)parts / (double)digits);
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

/* ---- as text ---- */

static bool put(struct buf *buf, const char *text)
{
        return buf_add(buf, text, strlen(text));
}

static int put_part(const char *bytes, size_t len, void *buf)
{
        return buf_add(buf, bytes, len) ? 0 : -1;
}

bool model_dump(const json_t *json, bool indented, struct buf *buf)
{
        size_t flags = JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY | (indented ? JSON_INDENT(2) : JSON_COMPACT);
        if (!model_has_marks())
                return json_dump_callback(json, put_part, buf, flags) == 0;
        char *text = model_write(json, flags);
        bool fits = text && put(buf, text);
        free(text);
        return fits;
}

static bool put_tree(struct buf *buf, json_t *json)
{
        bool fits = model_dump(json, false, buf);
        json_decref(json);
        return fits;
}

/* Of a control character with a letter of its own, or of a quote or backslash; 0: none. */
static char escape_letter(unsigned char c)
{
        static const char letters[] = {
                ['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
        };
        return c < sizeof letters ? letters[c] : 0;
}

static size_t escaped_len(const char *text, size_t len)
{
        size_t n = len;
        for (size_t i = 0; i < len; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c < 0x20 || c == '"' || c == '\\')
                        n += escape_letter(c) ? 1 : 5;
        }
        return n;
}

static char *escape(char *to, unsigned char c)
{
        static const char digits[] = "0123456789ABCDEF";
        char letter = escape_letter(c);
        *to++ = '\\';
        if (letter) {
                *to++ = letter;
                return to;
        }
        to[0] = 'u';
        to[1] = to[2] = '0';
        to[3] = digits[c >> 4];
        to[4] = digits[c & 15];
        return to + 5;
}

/* Of UTF-8.  The length is known first: a text of many escapes then grows the buffer once. */
static bool put_string(struct buf *buf, const char *text, size_t len)
{
        size_t whole = escaped_len(text, len) + 2;
        char *to = buf_extend(buf, whole);
        if (!to)
                return false;
        *to++ = '"';
        if (whole == len + 2) {
                memcpy(to, text, len);
                to += len;
        }
        for (size_t i = 0; whole != len + 2 && i < len; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c < 0x20 || c == '"' || c == '\\')
                        to = escape(to, c);
                else
                        *to++ = text[i];
        }
        *to = '"';
        return true;
}

bool model_put_text(struct buf *buf, const char *text, size_t len)
{
        if (utf8_valid(text, len))
                return put_string(buf, text, len);
        struct arena arena = { 0 };
        size_t safe_len;
        const char *safe = model_utf8(&arena, text, len, &safe_len);
        bool fits = put_string(buf, safe, safe_len);
        arena_done(&arena);
        return fits;
}

static bool put_number(struct buf *buf, int64_t number)
{
        char digits[24];
        size_t at = sizeof digits;
        uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
        do
                digits[--at] = (char)('0' + left % 10);
        while (left /= 10);
        if (number < 0)
                digits[--at] = '-';
        return buf_add(buf, digits + at, sizeof digits - at);
}

/* A number goes through a tree if the tree prints an exponent, or fewer digits. */
static bool put_real(struct buf *buf, const struct field *field, double number)
{
        int64_t digits, parts = real_parts(field, number, &digits);
        char decimals[8] = ".";
        size_t len = 1;
        if (parts >= 1000000000000 || (parts && parts < digits / 10000))
                return put_tree(buf, encode_real(field, number));
        int64_t left = parts % digits;
        if (!put_number(buf, parts / digits))
                return false;
        do {
                digits /= 10;
                decimals[len++] = (char)('0' + left / digits);
                left %= digits;
        } while (left);
        return buf_add(buf, decimals, len);
}

static bool put_texts(struct buf *buf, char *const *texts, size_t n)
{
        bool fits = buf_add(buf, "[", 1);
        for (size_t i = 0; fits && i < n; i++)
                fits = (i == 0 || buf_add(buf, ",", 1)) && model_put_text(buf, texts[i], strlen(texts[i]));
        return fits && buf_add(buf, "]", 1);
}

static bool put_list(struct buf *buf, const struct object *object, const char *items, size_t n)
{
        bool fits = buf_add(buf, "[", 1);
        for (size_t i = 0; fits && i < n; i++)
                fits = (i == 0 || buf_add(buf, ",", 1)) && model_encode_text(object, items + i * object->size, buf);
        return fits && buf_add(buf, "]", 1);
}

static bool put_field(struct buf *buf, const struct field *field, const void *from)
{
        const void *at = (const char *)from + field->at;
        size_t n = field->count_at ? *(const size_t *)(const void *)((const char *)from + field->count_at) : 0;
        const char *text;
        switch (field->kind) {
        case KIND_NUM:
        case KIND_INT:
                return put_number(buf, *(const int64_t *)at);
        case KIND_REAL:
                return put_real(buf, field, *(const double *)at);
        case KIND_BOOL:
                return put(buf, *(const bool *)at ? "true" : "false");
        case KIND_TEXT:
                text = *(char *const *)at;
                return text ? model_put_text(buf, text, strlen(text)) : put(buf, "null");
        case KIND_BYTES:
                return model_put_text(buf, ((const struct bytes *)at)->len ? ((const struct bytes *)at)->bytes : "",
                        ((const struct bytes *)at)->len);
        case KIND_ENUM:
                text = field->choices->values[*(const int *)at].text;
                return model_put_text(buf, text, strlen(text));
        case KIND_TEXTS:
                return put_texts(buf, *(char **const *)at, n);
        case KIND_SUB:
                return model_encode_text(field->object, at, buf);
        case KIND_LIST:
                return put_list(buf, field->object, *(const char *const *)at, n);
        case KIND_JSON:    /* foreign JSON, and possibly repeated names: a tree puts names in order */
        case KIND_PAIRS:
                return put_tree(buf, encode_field(field, from));
        }
        return put(buf, "null");
}

static bool put_name(struct buf *buf, const struct field *field, const char *more, bool first)
{
        return put(buf, first ? "{\"" : ",\"") && put(buf, field->name) && put(buf, more);
}

static bool put_base64(struct buf *buf, const struct field *field, const struct bytes *bytes)
{
        struct arena arena = { 0 };
        bool fits = put_name(buf, field, "_base64\":\"", false) &&
                put(buf, model_base64(&arena, bytes->bytes, bytes->len)) && buf_add(buf, "\"", 1);
        arena_done(&arena);
        return fits;
}

bool model_encode_text(const struct object *object, const void *from, struct buf *buf)
{
        uint64_t present = *(const uint64_t *)from;
        bool fits = true, first = true;
        for (size_t i = 0; fits && i < object->n; i++) {
                const struct field *field = &object->fields[i];
                bool there = (present >> i & 1) || field->presence == REQUIRED;
                if (!there && field->presence != NULLABLE)
                        continue;
                fits = put_name(buf, field, "\":", first) && (there ? put_field(buf, field, from) : put(buf, "null"));
                first = false;
                const struct bytes *bytes = (const void *)((const char *)from + field->at);
                if (fits && there && field->kind == KIND_BYTES && bytes->len && !utf8_valid(bytes->bytes, bytes->len))
                        fits = put_base64(buf, field, bytes);
        }
        return fits && put(buf, first ? "{}" : "}");
}
