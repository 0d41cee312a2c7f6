/*
 * JSON and text into structs: a single walk over the descriptions.  A request outside of the schema is refused
 * with a pointer to the place and with the allowed values.
 */
#include "model/model.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>

/* Where we are, as a JSON pointer (RFC 6901). */
struct path {
        char text[128];
};

static struct path path_below(const struct path *path, const char *name)
{
        struct path below;
        size_t above = strlen(path->text), len = strlen(name), room = sizeof below.text - above - 1;
        len = len < room ? len : room - (room > 0);
        memcpy(below.text, path->text, above);
        if (room)
                below.text[above++] = '/';
        memcpy(below.text + above, name, len);
        below.text[above + len] = 0;
        return below;
}

static void *member(const struct field *field, void *of)
{
        return (char *)of + field->at;
}

static size_t *count(const struct field *field, void *of)
{
        return (size_t *)(void *)((char *)of + field->count_at);
}

static uint64_t *present(void *of)
{
        return of;
}

/* ---- texts of allowed values ---- */

void model_print(const struct field *field, uint64_t number, char *text, size_t size)
{
        if (field->unit && strcmp(field->unit, "ms") == 0)
                duration_print(number, text, size);
        else if (field->unit && strcmp(field->unit, "bytes") == 0)
                size_print(number, text, size);
        else if (field->unit && strcmp(field->unit, "milli") == 0)
                cores_print(number, text, size);
        else
                snprintf(text, size, "%" PRIu64, number);
}

void model_print_exact(const struct field *field, uint64_t number, char *text, size_t size)
{
        if (field->unit && strcmp(field->unit, "milli") == 0)
                snprintf(text, size, "%" PRIu64 "m", number);
        else
                model_print(field, number, text, size);
}

void model_allowed(const struct field *field, char *text, size_t size)
{
        char low[40], high[40];
        size_t len = 0;
        text[0] = 0;
        switch (field->kind) {
        case KIND_NUM:
                model_print_exact(field, field->min, low, sizeof low);
                model_print_exact(field, field->max, high, sizeof high);
                if (field->max)
                        snprintf(text, size, "%s to %s", low, high);
                else
                        snprintf(text, size, "%s or more", low);
                break;
        case KIND_ENUM:
                for (size_t i = 0; i < field->choices->n && len < size; i++)
                        len += (size_t)snprintf(text + len, size - len, "%s%s",
                                                i == 0                       ? ""
                                                : i + 1 == field->choices->n ? " or "
                                                                             : ", ",
                                                field->choices->values[i].text);
                break;
        case KIND_BOOL:
                snprintf(text, size, "true or false");
                break;
        default:
                break;
        }
}

static int wrong_type(const struct path *path, const char *wanted, struct csn_error *err)
{
        return err_field(err, path->text, "%s has to be %s", path->text[0] ? path->text + 1 : "the request",
                         wanted);
}

/* ---- text ---- */

static bool parse_number(const struct field *field, const char *text, uint64_t *ret)
{
        if (strcmp(field->unit, "ms") == 0)
                return duration_parse(text, ret);
        if (strcmp(field->unit, "bytes") == 0)
                return size_parse(text, ret);
        if (strcmp(field->unit, "milli") == 0)
                return cores_parse(text, ret);
        char *end;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        return text[0] >= '0' && text[0] <= '9' && *end == 0 && errno == 0;
}

bool model_parse_bool(const char *text, bool *ret)
{
        static const struct { const char *text; bool value; } words[] = {
                { "true", true }, { "yes", true }, { "on", true }, { "1", true },
                { "false", false }, { "no", false }, { "off", false }, { "0", false },
        };
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
                if (strcasecmp(words[i].text, text) == 0) {
                        *ret = words[i].value;
                        return true;
                }
        return false;
}

static bool parse_choice(const struct field *field, const char *text, int *ret)
{
        for (size_t i = 0; i < field->choices->n; i++)
                if (strcmp(field->choices->values[i].text, text) == 0) {
                        *ret = (int)i;
                        return true;
                }
        return false;
}

static bool in_bounds(const struct field *field, uint64_t number)
{
        return number >= field->min && (field->max == 0 || number <= field->max);
}

static const char *wanted_text(const struct field *field)
{
        if (field->kind == KIND_NUM && strcmp(field->unit, "ms") == 0)
                return "a duration such as 30s, 500ms or 2min, ";
        if (field->kind == KIND_NUM && strcmp(field->unit, "bytes") == 0)
                return "a size such as 512MiB, 100M or 4096, ";
        if (field->kind == KIND_NUM && strcmp(field->unit, "milli") == 0)
                return "a number of cores such as 1, 0.5 or 500m, ";
        return "";
}

int model_set_text(const struct object *object, const struct field *field, void *into, const char *text,
                   const char *where, struct arena *arena, struct csn_error *err)
{
        char allowed[300];
        bool good = true;
        uint64_t number = 0;
        switch (field->kind) {
        case KIND_NUM:
                good = parse_number(field, text, &number) && in_bounds(field, number);
                if (good)
                        *(uint64_t *)member(field, into) = number;
                break;
        case KIND_BOOL:
                good = model_parse_bool(text, member(field, into));
                break;
        case KIND_ENUM:
                good = parse_choice(field, text, member(field, into));
                break;
        case KIND_TEXT:
                if (field->max && strlen(text) > field->max)
                        return err_field(err, where, "%s has %zu bytes; at most %" PRIu64 " are allowed",
                                         where, strlen(text), field->max);
                if (!utf8_valid(text, strlen(text)))
                        return err_field(err, where, "%s is not valid UTF-8", where);
                *(char **)member(field, into) = arena_copy(arena, text, strlen(text));
                break;
        default:
                return err_field(err, where, "%s cannot be given as text", where);
        }
        if (!good) {
                model_allowed(field, allowed, sizeof allowed);
                return err_field(err, where, "%s is \"%.60s\"; it has to be %s%s", where, text,
                                 wanted_text(field), allowed);
        }
        *present(into) |= (uint64_t)1 << (field - object->fields);
        return 0;
}

int model_set_value(const struct object *object, const struct field *field, void *into, const char *text,
                    const char *where, struct arena *arena, struct csn_error *err)
{
        static const struct { const char *unit, *suffix, *advice; } units[] = {
                { "ms", "ms", "milliseconds (1500) or with a unit (1.5s)" },
                { "milli", "m", "thousandths of a core (500)" },
        };
        char exact[64];
        size_t digits = strspn(text, "0123456789.");
        bool bare = field->kind == KIND_NUM && digits > 0 && text[digits] == 0;
        for (size_t i = 0; i < ARRAY_LEN(units) && bare; i++) {
                if (strcmp(units[i].unit, field->unit) != 0)
                        continue;
                if (strchr(text, '.'))
                        return err_field(err, where, "%s is \"%.40s\"; write it in whole %s", where, text,
                                         units[i].advice);
                snprintf(exact, sizeof exact, "%.40s%s", text, units[i].suffix);
                text = exact;
        }
        return model_set_text(object, field, into, text, where, arena, err);
}

/* ---- JSON ---- */

static int decode_object(const struct object *object, json_t *json, const struct path *path,
                         struct arena *arena, void *ret, struct csn_error *err);

static int decode_number(const struct field *field, json_t *json, const struct path *path, void *to,
                         struct csn_error *err)
{
        char allowed[100];
        json_int_t number = json_integer_value(json);
        const char *digits = model_digits(json);
        if (digits && *digits != '-') {
                model_allowed(field, allowed, sizeof allowed);
                return err_field(err, path->text, "%s is %.40s; %" PRIu64 " to %" PRIu64 " are allowed (%s)",
                        path->text + 1, digits, field->min, field->max, allowed);
        }
        if (!json_is_integer(json) || number < 0)
                return wrong_type(path, "a whole number that is not negative", err);
        if (!in_bounds(field, (uint64_t)number)) {
                model_allowed(field, allowed, sizeof allowed);
                return err_field(err, path->text,
                                 "%s is %" JSON_INTEGER_FORMAT "; %" PRIu64 " to %" PRIu64
                                 " are allowed (%s)",
                                 path->text + 1, number, field->min, field->max, allowed);
        }
        *(uint64_t *)to = (uint64_t)number;
        return 0;
}

static int decode_text(const struct field *field, json_t *json, const struct path *path, struct arena *arena,
                       char **ret, struct csn_error *err)
{
        size_t len = json_string_length(json);
        if (!json_is_string(json) || model_digits(json))
                return wrong_type(path, "a string", err);
        if (memchr(json_string_value(json), 0, len))
                return err_field(err, path->text, "%s has a NUL byte in it", path->text + 1);
        uint64_t max = field->kind == KIND_TEXTS ? field->max_length : field->max;
        if (max && len > max)
                return err_field(err, path->text, "%s has %zu bytes; at most %" PRIu64 " are allowed",
                                 path->text + 1, len, max);
        *ret = arena_copy(arena, json_string_value(json), len);
        return 0;
}

static int decode_bytes(const struct field *field, json_t *json, const struct path *path, struct arena *arena,
                        struct bytes *ret, struct csn_error *err)
{
        size_t len = json_string_length(json);
        if (!json_is_string(json) || model_digits(json))
                return wrong_type(path, "a string", err);
        if (field->max && len > field->max)
                return err_field(err, path->text, "%s has %zu bytes; at most %" PRIu64 " are allowed",
                                 path->text + 1, len, field->max);
        ret->bytes = arena_copy(arena, json_string_value(json), len);
        ret->len = len;
        return 0;
}

bool model_unbase64(struct arena *arena, const char *text, size_t len, struct bytes *ret)
{
        size_t padding = len && text[len - 1] == '=' ? (len > 1 && text[len - 2] == '=' ? 2 : 1) : 0;
        ret->bytes = arena_alloc(arena, len / 4 * 3 + 1);
        if (len % 4 ||
                strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") != len - padding ||
                (len && EVP_DecodeBlock((unsigned char *)ret->bytes, (const unsigned char *)text, (int)len) < 0))
                return false;
        ret->len = len / 4 * 3 - padding;
        ret->bytes[ret->len] = 0;
        return true;
}

static int decode_base64(const struct field *field, json_t *json, const struct path *path,
                         struct arena *arena, struct bytes *ret, struct csn_error *err)
{
        size_t len = json_string_length(json);
        const char *text = json_string_value(json);
        if (!json_is_string(json) || model_digits(json))
                return wrong_type(path, "a string of base64", err);
        if (field->max && len / 4 * 3 > field->max)
                return err_field(err, path->text, "%s is longer than %" PRIu64 " bytes", path->text + 1,
                                 field->max);
        if (!model_unbase64(arena, text, len, ret))
                return err_field(err, path->text, "%s is not base64", path->text + 1);
        return 0;
}

static int decode_list(const struct field *field, json_t *json, const struct path *path, struct arena *arena,
                       void *ret, struct csn_error *err)
{
        size_t n = json_array_size(json);
        if (!json_is_array(json))
                return wrong_type(path, "a list", err);
        if (n > field->max)
                return err_field(err, path->text, "%s has %zu items; at most %" PRIu64 " are allowed",
                                 path->text + 1, n, field->max);
        size_t size = field->kind == KIND_LIST ? field->object->size : sizeof(char *);
        char *items = arena_alloc(arena, n * size + 1);
        for (size_t i = 0; i < n; i++) {
                char index[24];
                snprintf(index, sizeof index, "%zu", i);
                struct path below = path_below(path, index);
                json_t *item = json_array_get(json, i);
                int rc = field->kind == KIND_LIST
                                 ? decode_object(field->object, item, &below, arena, items + i * size, err)
                                 : decode_text(field, item, &below, arena, (char **)(void *)items + i, err);
                if (rc < 0)
                        return rc;
        }
        *(void **)member(field, ret) = items;
        *count(field, ret) = n;
        return 0;
}

/* {"node": ["left-pad@1"], "python": "six"}: a list of entries with their language. */
static int decode_packages(const struct field *field, json_t *json, const struct path *path, struct arena *arena,
                           void *ret, struct csn_error *err)
{
        const char *language;
        json_t *items, *all = json_array();
        int rc = 0;
        json_object_foreach(json, language, items) {
                struct path below = path_below(path, language);
                bool is_text = json_is_string(items);
                if (strcmp(language, "python") != 0 && strcmp(language, "node") != 0)
                        rc = err_field(err, below.text, "packages are of \"python\" and \"node\", not of \"%.40s\"",
                                       language);
                else if (!is_text && !json_is_array(items))
                        rc = wrong_type(&below, "a list", err);
                for (size_t i = 0; rc == 0 && i < (is_text ? 1 : json_array_size(items)); i++) {
                        json_t *item = is_text ? items : json_array_get(items, i);
                        const char *text = json_string_value(item);
                        if (!text || strlen(text) != json_string_length(item))
                                rc = wrong_type(&below, "a list of strings", err);
                        else
                                json_array_append_new(all, json_pack("s++", language, ":", text));
                }
                if (rc < 0)
                        break;
        }
        rc = rc < 0 ? rc : decode_list(field, all, path, arena, ret, err);
        json_decref(all);
        return rc;
}

static int decode_pairs(const struct field *field, json_t *json, const struct path *path, struct arena *arena,
                        void *ret, struct csn_error *err)
{
        const char *key;
        json_t *value;
        size_t i = 0;
        if (!json_is_object(json))
                return wrong_type(path, "an object of strings", err);
        if (json_object_size(json) > field->max)
                return err_field(err, path->text, "%s has %zu entries; at most %" PRIu64 " are allowed",
                                 path->text + 1, json_object_size(json), field->max);
        struct pair *pairs = arena_alloc(arena, json_object_size(json) * sizeof *pairs + 1);
        json_object_foreach(json, key, value) {
                struct path below = path_below(path, key);
                static const struct field text = { .kind = KIND_TEXT };
                pairs[i].name = arena_copy(arena, key, strlen(key));
                if (decode_text(&text, value, &below, arena, &pairs[i].value, err) < 0)
                        return -err->code;
                i++;
        }
        *(struct pair **)member(field, ret) = pairs;
        *count(field, ret) = i;
        return 0;
}

static int decode_choice(const struct field *field, json_t *json, const struct path *path, int *ret,
                         struct csn_error *err)
{
        char allowed[300];
        if (json_is_string(json) && parse_choice(field, json_string_value(json), ret))
                return 0;
        model_allowed(field, allowed, sizeof allowed);
        return err_field(err, path->text, "%s is \"%.60s\"; it has to be %s", path->text + 1,
                         json_is_string(json) ? json_string_value(json) : "", allowed);
}

static int decode_field(const struct field *field, json_t *json, const struct path *path, struct arena *arena,
                        void *ret, struct csn_error *err)
{
        void *to = member(field, ret);
        switch (field->kind) {
        case KIND_NUM:
                return decode_number(field, json, path, to, err);
        case KIND_INT:
                if (!json_is_integer(json))
                        return wrong_type(path, "a whole number", err);
                *(int64_t *)to = json_integer_value(json);
                return 0;
        case KIND_REAL:
                if (!json_is_number(json))
                        return wrong_type(path, "a number", err);
                *(double *)to = json_number_value(json);
                return 0;
        case KIND_BOOL:
                if (!json_is_boolean(json))
                        return wrong_type(path, "true or false", err);
                *(bool *)to = json_is_true(json);
                return 0;
        case KIND_TEXT:
                return decode_text(field, json, path, arena, to, err);
        case KIND_BYTES:
                return decode_bytes(field, json, path, arena, to, err);
        case KIND_JSON: {
                char *text = model_write(json, JSON_ENCODE_ANY | JSON_COMPACT);
                *(char **)to = text ? arena_copy(arena, text, strlen(text)) : NULL;
                free(text);
                return 0;
        }
        case KIND_ENUM:
                return decode_choice(field, json, path, to, err);
        case KIND_TEXTS:
                if (json_is_object(json) && strcmp(field->name, "packages") == 0)
                        return decode_packages(field, json, path, arena, ret, err);
                /* "numpy, pandas" is a usual list of packages in a line. */
                if (json_is_string(json) && strcmp(field->name, "packages") == 0)
                        return model_parse_packages(json_string_value(json), arena, to, count(field, ret),
                                                    err);
                return decode_list(field, json, path, arena, ret, err);
        case KIND_LIST:
                return decode_list(field, json, path, arena, ret, err);
        case KIND_PAIRS:
                return decode_pairs(field, json, path, arena, ret, err);
        case KIND_SUB:
                return decode_object(field->object, json, path, arena, to, err);
        }
        return -CSN_E_INPUT;
}

static const char *similar(const struct object *object, const char *name)
{
        for (size_t i = 0; i < object->n; i++)
                if (model_alike(object->fields[i].name, name))
                        return object->fields[i].name;
        return NULL;
}

static int unknown_field(const struct object *object, const char *name, const struct path *path,
                         struct csn_error *err)
{
        struct path below = path_below(path, name);
        const char *near = similar(object, name);
        char known[400];
        size_t len = 0;
        if (near)
                return err_field(err, below.text, "there is no field \"%.60s\"; did you mean \"%s\"?", name,
                                 near);
        for (size_t i = 0; i < object->n && len < sizeof known; i++)
                len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", i ? ", " : "",
                                        object->fields[i].name);
        return err_field(err, below.text, "there is no field \"%.60s\"; known are %s", name, known);
}

/* "code_base64" is another way to give a field of bytes. */
static const struct field *base64_field(const struct object *object, const char *name)
{
        static const char suffix[] = "_base64";
        char base[64];
        size_t len = strlen(name);
        if (len <= strlen(suffix) || len >= sizeof base || strcmp(name + len - strlen(suffix), suffix) != 0)
                return NULL;
        snprintf(base, sizeof base, "%.*s", (int)(len - strlen(suffix)), name);
        const struct field *field = model_field(object, base);
        return field && field->kind == KIND_BYTES ? field : NULL;
}

static int decode_object(const struct object *object, json_t *json, const struct path *path,
                         struct arena *arena, void *ret, struct csn_error *err)
{
        const char *key;
        json_t *value;
        if (!json_is_object(json))
                return wrong_type(path, "an object", err);
        json_object_foreach(json, key, value) {
                struct path below = path_below(path, key);
                const struct field *field = model_field(object, key);
                bool base64 = !field && (field = base64_field(object, key));
                if (!field)
                        return unknown_field(object, key, path, err);
                uint64_t bit = (uint64_t)1 << (field - object->fields);
                if (json_is_null(value) && field->kind != KIND_JSON)
                        continue;
                if (field->kind == KIND_BYTES && *present(ret) & bit)
                        return err_field(err, below.text,
                                         "%s is given as text and as base64; give one of them", field->name);
                int rc = base64 ? decode_base64(field, value, &below, arena, member(field, ret), err)
                                : decode_field(field, value, &below, arena, ret, err);
                if (rc < 0)
                        return rc;
                *present(ret) |= bit;
        }
        for (size_t i = 0; i < object->n; i++)
                if (object->fields[i].presence == REQUIRED && !(*present(ret) >> i & 1)) {
                        struct path below = path_below(path, object->fields[i].name);
                        return err_field(err, below.text, "%s is missing", below.text + 1);
                }
        return 0;
}

int model_decode(const struct object *object, json_t *json, struct arena *arena, void *ret,
                 struct csn_error *err)
{
        struct path root = { "" };
        return decode_object(object, json, &root, arena, ret, err);
}

/* jansson itself stops at a depth of 2048, and calls itself for each level. */
bool model_is_deeper(const char *text, size_t len, unsigned max)
{
        unsigned depth = 0;
        bool in_string = false;
        for (size_t i = 0; i < len; i++) {
                if (in_string) {
                        if (text[i] == '\\')
                                i++;
                        else if (text[i] == '"')
                                in_string = false;
                } else if (text[i] == '"') {
                        in_string = true;
                } else if (text[i] == '{' || text[i] == '[') {
                        if (++depth > max)
                                return true;
                } else if ((text[i] == '}' || text[i] == ']') && depth) {
                        depth--;
                }
        }
        return false;
}

bool model_value_is_deeper(json_t *value, unsigned max)
{
        const char *name;
        json_t *item;
        size_t i;
        if (!json_is_object(value) && !json_is_array(value))
                return false;
        if (max == 0)
                return true;
        json_object_foreach(value, name, item)
                if (model_value_is_deeper(item, max - 1))
                        return true;
        json_array_foreach(value, i, item)
                if (model_value_is_deeper(item, max - 1))
                        return true;
        return false;
}

/* Counts the separators of values, outside of strings. */
bool model_has_many_parts(const char *text, size_t len, size_t max)
{
        size_t n = 0;
        bool string = false;
        for (size_t i = 0; i < len && n <= max; i++) {
                char c = text[i];
                if (string && c == '\\')
                        i++;
                else if (c == '"')
                        string = !string;
                else if (!string)
                        n += c == ',' || c == ':' || c == '[' || c == '{';
        }
        return n > max;
}

int model_decode_text(const struct object *object, const char *text, size_t len, struct arena *arena,
                      void *ret, struct csn_error *err)
{
        json_error_t error;
        if (model_is_deeper(text, len, MODEL_DEPTH_MAX))
                return err_field(err, "", "the JSON is nested deeper than %d levels", MODEL_DEPTH_MAX);
        json_t *json = model_load(text, len, &error);
        if (!json)
                return err_field(err, "", "not JSON: %s (line %d, column %d)", error.text, error.line,
                                 error.column);
        int rc = model_decode(object, json, arena, ret, err);
        json_decref(json);
        return rc;
}

/* ---- defaults and overlays ---- */

void model_defaults(const struct object *object, void *ret)
{
        for (size_t i = 0; i < object->n; i++) {
                const struct field *field = &object->fields[i];
                void *to = member(field, ret);
                if (field->kind == KIND_SUB) {
                        model_defaults(field->object, to);
                        *present(ret) |= (uint64_t)1 << i;
                        continue;
                }
                if (*present(ret) >> i & 1)
                        continue;
                if (field->kind == KIND_NUM)
                        *(uint64_t *)to = field->def;
                else if (field->kind == KIND_BOOL)
                        *(bool *)to = field->def != 0;
                else if (field->kind == KIND_ENUM)
                        *(int *)to = (int)field->def;
                else if (field->kind == KIND_TEXT && field->def_text)
                        *(const char **)to = field->def_text;
                else
                        continue;
                *present(ret) |= (uint64_t)1 << i;
        }
}

static void overlay_pairs(const struct field *field, void *under, const void *over, struct arena *arena)
{
        struct pair *old = *(struct pair **)member(field, under);
        const struct pair *new = *(struct pair *const *)((const char *)over + field->at);
        size_t old_n = *count(field, under), new_n = *(const size_t *)((const char *)over + field->count_at);
        struct pair *all = arena_alloc(arena, (old_n + new_n) * sizeof *all + 1);
        size_t n = 0;
        for (size_t i = 0; i < old_n; i++) {
                bool replaced = false;
                for (size_t k = 0; k < new_n && !replaced; k++)
                        replaced = strcmp(old[i].name, new[k].name) == 0;
                if (!replaced)
                        all[n++] = old[i];
        }
        if (new_n)
                memcpy(all + n, new, new_n * sizeof *new);
        *(struct pair **)member(field, under) = all;
        *count(field, under) = n + new_n;
}

static size_t size_of(const struct field *field)
{
        static const size_t sizes[] = { [KIND_NUM] = sizeof(uint64_t),  [KIND_INT] = sizeof(int64_t),
                                        [KIND_REAL] = sizeof(double),   [KIND_BOOL] = sizeof(bool),
                                        [KIND_TEXT] = sizeof(char *),   [KIND_BYTES] = sizeof(struct bytes),
                                        [KIND_JSON] = sizeof(char *),   [KIND_ENUM] = sizeof(int),
                                        [KIND_TEXTS] = sizeof(char **), [KIND_LIST] = sizeof(void *) };
        return sizes[field->kind];
}

void model_overlay(const struct object *object, void *under, const void *over, struct arena *arena)
{
        for (size_t i = 0; i < object->n; i++) {
                const struct field *field = &object->fields[i];
                if (!(*(const uint64_t *)over >> i & 1))
                        continue;
                if (field->kind == KIND_SUB) {
                        model_overlay(field->object, member(field, under), (const char *)over + field->at,
                                      arena);
                } else if (field->kind == KIND_PAIRS) {
                        overlay_pairs(field, under, over, arena);
                } else {
                        memcpy(member(field, under), (const char *)over + field->at, size_of(field));
                        if (field->count_at)
                                *count(field, under) =
                                        *(const size_t *)((const char *)over + field->count_at);
                }
                *present(under) |= (uint64_t)1 << i;
        }
}
