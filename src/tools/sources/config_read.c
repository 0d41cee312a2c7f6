/* Checked values of a configuration entry, and its secrets; see config_read.h. */
#include "tools/sources/config_read.h"

#include <fcntl.h>
#include <stdio.h>

#define SECRET_MAX (64 * KIB)              /* bytes of a secret file */

int config_wrong(struct config_reader *r, const char *key, const char *fmt, ...)
{
        char text[400];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        err_field(r->err, r->where, "%s%s%s: %s", r->where, key ? "." : "", key ? key : "", text);
        return -(r->err->code = CSN_E_CONFIG);
}

/* ---- secrets ---- */

static int read_secret_file(struct config_reader *r, const char *key, const char *path, const char **ret)
{
        char *text = arena_alloc(r->arena, SECRET_MAX + 1);
        ssize_t len = path[0] == '/' ? io_read_file(AT_FDCWD, path, text, SECRET_MAX) : 0;
        if (path[0] != '/')
                return config_wrong(r, key, "${file:%.100s} has to name a file from the root on", path);
        if (len < 0)
                return config_wrong(r, key, "${file:%.100s}: %s", path, strerrordesc_np(errno));
        while (len && strchr("\r\n", text[len - 1]))
                text[--len] = 0;
        if (memchr(text, 0, (size_t)len))
                return config_wrong(r, key, "${file:%.100s} has a NUL byte in it", path);
        *ret = text;
        return 0;
}

/* Replace ${env:NAME} and ${file:/path} in a text; other text is unchanged. */
static int put_text_secrets(struct config_reader *r, const char *key, const char *text, char **ret)
{
        struct buf buf;
        int rc = 0;
        bool fits = true;
        buf_init(&buf, 2 * SECRET_MAX);
        for (const char *at = text; rc == 0 && fits && *at;) {
                bool env = strncmp(at, "${env:", 6) == 0, file = strncmp(at, "${file:", 7) == 0;
                const char *end = env || file ? strchr(at, '}') : NULL;
                if (!end) {
                        fits = buf_add(&buf, at++, 1);
                        continue;
                }
                const char *from = at + (env ? 6 : 7), *value = "";
                const char *name = arena_copy(r->arena, from, (size_t)(end - from)), *set = env ? getenv(name) : NULL;
                if (env && !set)
                        rc = config_wrong(r, key, "the environment has no %.100s, which ${env:%.100s} asks for", name,
                                name);
                else if (file)
                        rc = read_secret_file(r, key, name, &value);
                else
                        value = set;
                fits = rc < 0 || buf_add(&buf, value, strlen(value));
                at = end + 1;
        }
        if (!fits)
                rc = config_wrong(r, key, "with what ${env:} and ${file:} stand for it is longer than %llu bytes",
                        2 * SECRET_MAX);
        *ret = arena_copy(r->arena, buf.len ? buf.bytes : "", buf.len);
        buf_done(&buf);
        return rc;
}

/* Replace the secrets in all texts of an entry, in a copy. */
int config_put_secrets(struct config_reader *r, const char *key, json_t *json, json_t **ret)
{
        char *text;
        int rc = 0;
        if (json_is_string(json)) {
                rc = put_text_secrets(r, key, json_string_value(json), &text);
                *ret = rc == 0 ? json_string(text) : NULL;
                return rc == 0 && !*ret ? config_wrong(r, key, "it is not UTF-8") : rc;
        }
        json_t *copy = json_is_array(json) ? json_array()
                : json_is_object(json)     ? json_object()
                                           : json_incref(json),
               *value, *one;
        const char *name;
        size_t i;
        if (json_is_array(json)) {
                json_array_foreach(json, i, value) {
                        if (rc == 0 && (rc = config_put_secrets(r, key, value, &one)) == 0)
                                json_array_append_new(copy, one);
                }
        } else if (json_is_object(json)) {
                json_object_foreach(json, name, value) {
                        if (rc == 0 && (rc = config_put_secrets(r, key ? key : name, value, &one)) == 0)
                                json_object_set_new(copy, name, one);
                }
        }
        *ret = copy;
        if (rc < 0) {
                json_decref(copy);
                *ret = NULL;
        }
        return rc;
}

/* ---- values ---- */

int config_text(struct config_reader *r, json_t *json, const char *key, const char **ret)
{
        json_t *value = json_object_get(json, key);
        if (!value)
                return 0;
        const char *text = json_string_value(value);
        if (!text || strlen(text) != json_string_length(value))
                return config_wrong(r, key, "it has to be a text");
        *ret = arena_text(r->arena, "%s", text);
        return 0;
}

int config_bool(struct config_reader *r, json_t *json, const char *key, bool *ret)
{
        json_t *value = json_object_get(json, key);
        if (!value)
                return 0;
        if (json_is_boolean(value))
                *ret = json_is_true(value);
        else if (!json_is_string(value) || !model_parse_bool(json_string_value(value), ret))
                return config_wrong(r, key, "it has to be true or false");
        return 0;
}

int config_ms(struct config_reader *r, json_t *json, const char *key, uint64_t *ret)
{
        json_t *value = json_object_get(json, key);
        uint64_t ms = 0;
        if (!value)
                return 0;
        bool good = json_is_integer(value) ? json_integer_value(value) > 0 &&
                        json_integer_value(value) <= (json_int_t)(SERVER_TIMEOUT_MS_MAX / 1000)
                                           : json_is_string(value) && duration_parse(json_string_value(value), &ms);
        if (json_is_integer(value))
                ms = (uint64_t)json_integer_value(value) * 1000;
        if (!good || !ms || ms > SERVER_TIMEOUT_MS_MAX)
                return config_wrong(r, key, "it has to be a time of 1 ms to 1 h, as 30s; a number alone is seconds");
        *ret = ms;
        return 0;
}

int config_size(struct config_reader *r, json_t *json, const char *key, uint64_t max, uint64_t *ret)
{
        json_t *value = json_object_get(json, key);
        uint64_t bytes = 0;
        char most[40];
        if (!value)
                return 0;
        bool good = json_is_integer(value) ? json_integer_value(value) > 0
                                           : json_is_string(value) && size_parse(json_string_value(value), &bytes);
        if (json_is_integer(value))
                bytes = (uint64_t)json_integer_value(value);
        size_print(max, most, sizeof most);
        if (!good || !bytes || bytes > max)
                return config_wrong(r, key, "it has to be a size up to %s, as 64KiB", most);
        *ret = bytes;
        return 0;
}

void config_add_text(struct config_reader *r, struct texts *list, const char *text)
{
        char **more = arena_alloc(r->arena, (list->n + 2) * sizeof *more);
        if (list->n)
                memcpy(more, list->texts, list->n * sizeof *more);
        more[list->n++] = arena_text(r->arena, "%s", text);
        list->texts = more;
}

/* A key without a value, in YAML. */
static bool is_nothing(const json_t *value)
{
        return json_is_object(value) && !json_object_size(value);
}

/* A list of texts, or a single text. */
int config_texts(struct config_reader *r, json_t *json, const char *key, struct texts *ret)
{
        json_t *value = json_object_get(json, key), *one;
        size_t i, n = json_array_size(value);
        if (n > LAUNCH_TEXTS_MAX)
                return config_wrong(r, key, "it has more than %d entries", LAUNCH_TEXTS_MAX);
        if (json_is_string(value))
                config_add_text(r, ret, json_string_value(value));
        else if (value && !json_is_array(value) && !is_nothing(value))
                return config_wrong(r, key, "it has to be a list of texts");
        json_array_foreach(value, i, one) {
                if (!json_is_string(one))
                        return config_wrong(r, key, "entry %zu has to be a text", i + 1);
                config_add_text(r, ret, json_string_value(one));
        }
        return 0;
}

/* NAME: VALUE pairs as texts, joined by `between`. */
int config_pairs(struct config_reader *r, json_t *json, const char *key, const char *between, struct texts *ret)
{
        static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        json_t *object = json_object_get(json, key), *value;
        const char *name;
        char number[32];
        if (object && !json_is_object(object))
                return config_wrong(r, key, "it has to be names with a value each");
        if (json_object_size(object) > SERVER_HEADERS_MAX * 4)
                return config_wrong(r, key, "it has more than %d entries", SERVER_HEADERS_MAX * 4);
        json_object_foreach(object, name, value) {
                const char *text = json_string_value(value);
                if (json_is_integer(value)) {
                        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                        text = number;
                }
                if (!text || !name[0] || name[strspn(name, token)])
                        return config_wrong(r, key, "\"%.60s\" is no name, or its value is no text", name);
                for (const char *c = text; *c; c++)
                        if ((unsigned char)*c < ' ' && *c != '\t')
                                return config_wrong(r, key, "the value of %.60s has a control character in it", name);
                config_add_text(r, ret, arena_text(r->arena, "%s%s%s", name, between, text));
        }
        return 0;
}

static char *words_of(struct arena *arena, const char *const *words)
{
        char *text = arena_text(arena, "%s", words[0]);
        for (size_t i = 1; words[i]; i++)
                text = arena_text(arena, "%s, %s", text, words[i]);
        return text;
}

/* Report unknown keys, so that a misspelt key is noticed. */
int config_check_keys(struct config_reader *r, json_t *json, const char *const *known)
{
        const char *name;
        json_t *value;
        json_object_foreach(json, name, value) {
                bool found = false;
                const char *near = NULL;
                for (const char *const *at = known; *at; at++) {
                        found |= strcmp(*at, name) == 0;
                        if (model_alike(*at, name))
                                near = *at;
                }
                if (!found && r->strict && near)
                        return config_wrong(r, name, "there is no such key; did you mean %s?", near);
                if (!found && r->strict)
                        return config_wrong(r, name, "there is no such key; known are %s", words_of(r->arena, known));
                if (!found)
                        log_text(LOG_INFO, "%s.%.100s is not known here, and left alone", r->where, name);
        }
        return 0;
}
