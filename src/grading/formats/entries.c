/* Inputs and outputs of a record as cases of a request: calls of a function, or runs with standard input. */
#include "grading/formats/record.h"

#include <stdio.h>

#define LITERAL_MAX (16 * MIB)

struct place {
        const struct entries *entries;
        const struct entry_rule *rule;
        size_t i;
        bool unwrap;
        struct csn_error *err;
};

static int fail_at(const struct place *place, const char *name, const char *why)
{
        char field[RECORD_FIELD_MAX];
        snprintf(field, sizeof field, "%s/%s/%zu", place->entries->field, name, place->i);
        return record_fail(place->err, field, "%s", why);
}

/* ---- calls ---- */

/* A JSON value on each line.  NULL: a line is no JSON. */
static json_t *arguments_in(const char *text, size_t len)
{
        json_t *list = json_array();
        while (len && strchr(" \t\r\n", text[len - 1]))
                len--;
        for (const char *at = text, *end = text + len; list && at < end;) {
                const char *line = memchr(at, '\n', (size_t)(end - at));
                size_t n = line ? (size_t)(line - at) : (size_t)(end - at);
                json_t *value = record_parse(at, n, true);
                if (value) {
                        json_array_append_new(list, value);
                } else {
                        json_decref(list);
                        list = NULL;
                }
                at += n + 1;
        }
        return list;
}

static json_t *literal_of(const json_t *value)
{
        struct buf buf;
        buf_init(&buf, LITERAL_MAX);
        json_t *text = literal_put(&buf, value, LITERAL_PLAIN) ? json_stringn(buf.bytes, buf.len) : NULL;
        buf_done(&buf);
        return text;
}

/* Set `name` of the case, or NAME_python for a dict with integer keys. */
static int set_value(const struct place *place, json_t *one, const char *name, json_t *value)
{
        char python[40];
        if (!place->rule->integer_keys || !literal_has_integer_keys(value)) {
                json_object_set_new(one, name, value);
                return 0;
        }
        json_t *text = literal_of(value);
        json_decref(value);
        if (!text)
                return fail_at(place, place->entries->inputs_name, "the value is longer than 16 MiB as a literal");
        snprintf(python, sizeof python, "%s_python", name);
        json_object_set_new(one, python, text);
        return 0;
}

static int set_arguments(const struct place *place, json_t *one, json_t *input)
{
        json_t *arguments;
        if (json_is_string(input) && !model_digits(input))
                arguments = arguments_in(json_string_value(input), json_string_length(input));
        else if (json_is_array(input))
                arguments = json_incref(input);
        else
                arguments = json_pack("[O]", input);
        if (!arguments)
                return fail_at(place, place->entries->inputs_name,
                        "an input of a function has to be one JSON value a line; a line is no JSON, or there are too many values");
        return set_value(place, one, "args", arguments);
}

static int set_expected(const struct place *place, json_t *one, json_t *output)
{
        bool is_text = json_is_string(output) && !model_digits(output);
        json_t *value = json_incref(output);
        if (is_text && place->rule->output != ENTRY_TEXT_IS_VALUE) {
                json_t *parsed = record_parse(json_string_value(output), json_string_length(output), true);
                if (!parsed && place->rule->output == ENTRY_TEXT_IS_JSON) {
                        json_decref(value);
                        return fail_at(place, place->entries->outputs_name,
                                "an output of a function has to be a JSON value, and is no JSON");
                }
                if (parsed) {
                        json_decref(value);
                        value = parsed;
                }
        }
        if (place->unwrap) {
                json_t *inner = json_incref(json_array_get(value, 0));
                json_decref(value);
                value = inner;
        }
        return set_value(place, one, "expected", value);
}

/* ---- standard input ---- */

static bool add_line(struct buf *buf, json_t *line)
{
        if (json_is_string(line) && !model_digits(line))
                return buf_add(buf, json_string_value(line), json_string_length(line));
        char *text = model_write(line, JSON_ENCODE_ANY);
        bool fits = text && buf_add(buf, text, strlen(text));
        free(text);
        return fits;
}

/* The text itself, or the lines of a list. */
static json_t *stream_of(json_t *value)
{
        struct buf buf;
        size_t i;
        json_t *line;
        bool fits = true;
        if (json_is_string(value) && !model_digits(value))
                return json_incref(value);
        buf_init(&buf, 64 * MIB);
        if (json_is_array(value)) {
                json_array_foreach(value, i, line) {
                        fits = fits && (!i || buf_add(&buf, "\n", 1)) && add_line(&buf, line);
                }
        } else {
                fits = add_line(&buf, value);
        }
        json_t *text = fits ? json_stringn(buf.bytes ? buf.bytes : "", buf.len) : NULL;
        buf_done(&buf);
        return text;
}

static int set_streams(const struct place *place, json_t *one, json_t *input, json_t *output)
{
        json_t *in = stream_of(input), *out = stream_of(output);
        if (!in || !out) {
                json_decref(in);
                json_decref(out);
                return fail_at(place, in ? place->entries->outputs_name : place->entries->inputs_name,
                        "it has to be a text or a list of lines, of 64 MiB at most");
        }
        json_object_set_new(one, "stdin", in);
        json_object_set_new(one, "expected_stdout", out);
        return 0;
}

/* ---- all ---- */

static bool all_are_wrapped(const json_t *outputs)
{
        size_t i;
        json_t *output;
        json_array_foreach(outputs, i, output) {
                if (!json_is_array(output) || json_array_size(output) != 1)
                        return false;
        }
        return true;
}

/* The list of cases of the request, which may be there already.  Borrowed. */
static json_t *cases_of(json_t *json)
{
        json_t *cases = json_object_get(json, "cases");
        if (!cases) {
                cases = json_array();
                json_object_set_new(json, "cases", cases);
        }
        return cases;
}

static int check_lists(const struct entries *entries, struct csn_error *err)
{
        char field[RECORD_FIELD_MAX];
        snprintf(field, sizeof field, "%s/%s", entries->field, entries->inputs_name);
        if (!json_is_array(entries->inputs))
                return record_fail(err, field, "%s has to be an array", entries->inputs_name);
        size_t inputs = json_array_size(entries->inputs), outputs = json_array_size(entries->outputs);
        if (!json_is_array(entries->outputs) || inputs != outputs) {
                snprintf(field, sizeof field, "%s/%s", entries->field, entries->outputs_name);
                return record_fail(err, field,
                        "%s has to be an array as long as %s: there are %zu inputs and %zu outputs",
                        entries->outputs_name, entries->inputs_name, inputs, outputs);
        }
        return 0;
}

int entries_add(json_t *json, const struct entries *entries, const struct entry_rule *rule, struct csn_error *err)
{
        struct place place = { .entries = entries, .rule = rule, .err = err };
        json_t *cases, *input;
        if (check_lists(entries, err) < 0)
                return -err->code;
        cases = cases_of(json);
        place.unwrap = rule->wrapped && entries->function && all_are_wrapped(entries->outputs);
        json_array_foreach(entries->inputs, place.i, input) {
                json_t *output = json_array_get(entries->outputs, place.i), *one = json_object();
                json_array_append_new(cases, one);
                if (entries->function)
                        json_object_set_new(one, "function", json_string(entries->function));
                int rc =
                        entries->function ? set_arguments(&place, one, input) : set_streams(&place, one, input, output);
                if (rc == 0 && entries->function)
                        rc = set_expected(&place, one, output);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

int entries_add_object(json_t *json, json_t *object, const char *field, const struct entry_rule *rule,
        struct csn_error *err)
{
        json_t *function = json_object_get(object, "fn_name");
        char place[RECORD_FIELD_MAX];
        if (!json_is_object(object))
                return record_fail(err, field, "it has to be an object {inputs, outputs, fn_name}");
        snprintf(place, sizeof place, "%s/fn_name", field);
        if (function && !json_is_null(function) && !json_is_string(function))
                return record_fail(err, place, "fn_name has to be a text or null");
        const char *name = json_string_value(function);
        const struct entries entries = { .inputs = json_object_get(object, "inputs"),
                .outputs = json_object_get(object, "outputs"),
                .function = name && *name ? name : NULL,
                .field = field,
                .inputs_name = "inputs",
                .outputs_name = "outputs" };
        return entries_add(json, &entries, rule, err);
}

/* The function called by an entry, or NULL. */
static const char *function_of(const json_t *entry, const char *usual)
{
        const char *type = json_string_value(json_object_get(entry, "type"));
        const char *name = json_string_value(json_object_get(entry, "fn_name"));
        if (!type)
                type = json_string_value(json_object_get(entry, "testtype"));
        if (!name)
                name = json_string_value(json_object_get(json_object_get(entry, "metadata"), "func_name"));
        if (type && strncmp(type, "stdin", 5) == 0)
                return NULL;
        return name && *name ? name : usual;
}

static bool calls_function(const json_t *entry)
{
        const char *type = json_string_value(json_object_get(entry, "type"));
        if (!type)
                type = json_string_value(json_object_get(entry, "testtype"));
        return type && (strcmp(type, "functional") == 0 || strcmp(type, "function_call") == 0);
}

/* Entries of one function follow one another, so the rule for outputs sees all entries together. */
int entries_add_list(json_t *json, json_t *list, const char *field, const char *function, const struct entry_rule *rule,
        struct csn_error *err)
{
        size_t n = json_array_size(list);
        if (!json_is_array(list))
                return record_fail(err, field, "it has to be an array of {input, output}");
        for (size_t from = 0, to; from < n; from = to) {
                const char *name = NULL;
                json_t *inputs = json_array(), *outputs = json_array();
                int rc = 0;
                for (to = from; to < n && rc == 0; to++) {
                        json_t *entry = json_array_get(list, to), *input = json_object_get(entry, "input"),
                               *output = json_object_get(entry, "output");
                        const char *of_entry = function_of(entry, function);
                        char place[RECORD_FIELD_MAX];
                        snprintf(place, sizeof place, "%s/%zu", field, to);
                        if (to == from)
                                name = of_entry;
                        else if (!name != !of_entry || (name && strcmp(name, of_entry) != 0))
                                break;
                        if (!input || !output)
                                rc = record_fail(err, place, "it has to be an object with input and output");
                        else if (!name && calls_function(entry))
                                rc = record_fail(err, place,
                                        "it calls a function, and neither fn_name nor metadata.func_name names one");
                        json_array_append(inputs, input);
                        json_array_append(outputs, output);
                }
                const struct entries entries = { .inputs = inputs,
                        .outputs = outputs,
                        .function = name,
                        .field = field,
                        .inputs_name = "input",
                        .outputs_name = "output" };
                rc = rc ? rc : entries_add(json, &entries, rule, err);
                json_decref(inputs);
                json_decref(outputs);
                if (rc < 0)
                        return rc;
        }
        return 0;
}
