/* Values as literals of Python, if JSON has no form for the value: tuples, sets, integer keys. */
#include "grading/formats/record.h"

#include <stdio.h>

static bool put_text(struct buf *buf, const char *text)
{
        return buf_add(buf, text, strlen(text));
}

static bool is_digits(const char *text)
{
        return *text && strspn(text + (*text == '-'), "0123456789") == strlen(text) - (*text == '-') &&
                strlen(text) < 19 && strcmp(text, "-") != 0;
}

static bool has_integer_keys(const json_t *value)
{
        const char *key;
        json_t *item;
        if (!json_is_object(value) || !json_object_size(value) || model_digits(value))
                return false;
        json_object_foreach((json_t *)(uintptr_t)value, key, item) {
                if (!is_digits(key))
                        return false;
        }
        return true;
}

bool literal_has_integer_keys(const json_t *value)
{
        size_t i;
        json_t *item;
        if (has_integer_keys(value))
                return true;
        json_array_foreach(value, i, item) {
                if (has_integer_keys(item))
                        return true;
        }
        return false;
}

/* The escapes of JSON are escapes of Python, too. */
static bool put_scalar(struct buf *buf, const json_t *value)
{
        if (json_is_null(value))
                return put_text(buf, "None");
        if (json_is_boolean(value))
                return put_text(buf, json_is_true(value) ? "True" : "False");
        char *text = model_write(value, JSON_ENCODE_ANY);
        bool fits = text && put_text(buf, text);
        free(text);
        return fits;
}

/* Only the characters of a number of Python: "(1+2j)", "1e3"; not "nan". */
static bool put_number(struct buf *buf, const json_t *value)
{
        const char *text = json_string_value(value);
        if (!text)
                return json_is_number(value) && put_scalar(buf, value);
        return *text && strspn(text, "0123456789.+-eEj() ") == strlen(text) && put_text(buf, text);
}

static bool put_items(struct buf *buf, const json_t *list, const char *open, const char *close,
        enum literal_shape of_items)
{
        size_t i;
        json_t *item;
        bool is_tuple = *open == '(';
        if (!put_text(buf, open))
                return false;
        json_array_foreach(list, i, item) {
                if ((i && !put_text(buf, ", ")) || !literal_put(buf, item, of_items))
                        return false;
        }
        return put_text(buf, is_tuple && json_array_size(list) == 1 ? ",)" : close);
}

static bool put_dict(struct buf *buf, const json_t *dict, enum literal_shape of_values)
{
        const char *key;
        json_t *item;
        size_t n = 0;
        bool integers = has_integer_keys(dict);
        if (!put_text(buf, "{"))
                return false;
        json_object_foreach((json_t *)(uintptr_t)dict, key, item) {
                json_t *text = json_string(key);
                bool fits = (!n++ || put_text(buf, ", ")) && (integers ? put_text(buf, key) : put_scalar(buf, text)) &&
                        put_text(buf, ": ") && literal_put(buf, item, of_values);
                json_decref(text);
                if (!fits)
                        return false;
        }
        return put_text(buf, "}");
}

static bool put_list(struct buf *buf, const json_t *list, enum literal_shape shape)
{
        switch (shape) {
        case LITERAL_TUPLE: return put_items(buf, list, "(", ")", LITERAL_PLAIN);
        case LITERAL_ITEMS: return put_items(buf, list, "[", "]", LITERAL_TUPLE);
        case LITERAL_BOTH: return put_items(buf, list, "(", ")", LITERAL_TUPLE);
        case LITERAL_ALL: return put_items(buf, list, "(", ")", LITERAL_ALL);
        case LITERAL_FLOAT: return false;
        default: return put_items(buf, list, "[", "]", LITERAL_PLAIN);
        }
}

static bool put_sets(struct buf *buf, const json_t *list)
{
        size_t i;
        json_t *item;
        if (!put_text(buf, "["))
                return false;
        json_array_foreach(list, i, item) {
                bool fits = !i || put_text(buf, ", ");
                if (!fits ||
                        !(json_is_array(item) ? put_items(buf, item, "{", "}", LITERAL_PLAIN) : put_text(buf, "{}")))
                        return false;
        }
        return put_text(buf, "]");
}

bool literal_put(struct buf *buf, const json_t *value, enum literal_shape shape)
{
        if (shape == LITERAL_FLOAT)
                return put_number(buf, value);
        if (json_is_array(value))
                return shape == LITERAL_SETS ? put_sets(buf, value) : put_list(buf, value, shape);
        if (json_is_object(value) && !model_digits(value))
                return put_dict(buf, value, shape == LITERAL_VALUES ? LITERAL_TUPLE : LITERAL_PLAIN);
        return put_scalar(buf, value);
}
