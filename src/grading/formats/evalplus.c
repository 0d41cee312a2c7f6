/* EvalPlus: HumanEval+ and MBPP+, with expected values from the canonical solution. */
#include "grading/formats/record.h"

#include <stdio.h>

#define LITERAL_MAX (16 * MIB)
#define IDS_MAX 24

/* Arguments of MBPP+ without a form in JSON, by task: the meaning of lists and texts of the record. */
static const struct {
        enum literal_shape first, others;
        int ids[IDS_MAX];
} mbpp_shapes[] = {
        { LITERAL_TUPLE, LITERAL_TUPLE,
                { 2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744,
                        809 } },
        { LITERAL_ITEMS, LITERAL_ITEMS, { 63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780 } },
        { LITERAL_ITEMS, LITERAL_PLAIN, { 75, 413, 444, 753 } },
        { LITERAL_PLAIN, LITERAL_TUPLE, { 106, 750 } },
        { LITERAL_SETS, LITERAL_PLAIN, { 115 } },
        { LITERAL_FLOAT, LITERAL_FLOAT, { 124, 252 } },
        { LITERAL_TUPLE, LITERAL_PLAIN, { 250, 307, 405, 446, 617, 720, 763, 808 } },
        { LITERAL_BOTH, LITERAL_BOTH, { 259, 278, 401, 445 } },
        { LITERAL_VALUES, LITERAL_PLAIN, { 722 } },
        { LITERAL_ALL, LITERAL_ALL, { 580, 615, 791 } },
};

struct inputs {
        const char *name, *label; /* of the member, and of its cases */
        json_t *function;
        enum literal_shape first, others;
};

/* -1: not in the table. */
static int shape_of(const json_t *task)
{
        const char *text = json_string_value(task), *number = text ? strrchr(text, '/') : NULL;
        long id = json_is_integer(task) ? (long)json_integer_value(task)
                : text                  ? strtol(number ? number + 1 : text, NULL, 10)
                                        : 0;
        for (size_t i = 0; id > 0 && i < ARRAY_LEN(mbpp_shapes); i++)
                for (size_t k = 0; k < IDS_MAX && mbpp_shapes[i].ids[k]; k++)
                        if (mbpp_shapes[i].ids[k] == id)
                                return (int)i;
        return -1;
}

static bool put_arguments(struct buf *buf, const json_t *arguments, const struct inputs *inputs)
{
        size_t i;
        json_t *value;
        bool fits = buf_add(buf, "[", 1);
        json_array_foreach(arguments, i, value) {
                fits = fits && (!i || buf_add(buf, ", ", 2)) &&
                        literal_put(buf, value, i ? inputs->others : inputs->first);
        }
        return fits && buf_add(buf, "]", 1);
}

static int set_arguments(json_t *one, json_t *arguments, const struct inputs *inputs, const char *field,
        struct csn_error *err)
{
        struct buf buf;
        if (inputs->first == LITERAL_PLAIN && inputs->others == LITERAL_PLAIN) {
                json_object_set(one, "args", arguments);
                return 0;
        }
        buf_init(&buf, LITERAL_MAX);
        bool fits = put_arguments(&buf, arguments, inputs);
        if (fits)
                json_object_set_new(one, "args_python", json_stringn(buf.bytes, buf.len));
        buf_done(&buf);
        return fits ? 0 : record_fail(err, field, "the arguments do not have the shape that this task of MBPP+ has");
}

static int add_inputs(json_t *json, json_t *list, const struct inputs *inputs, struct csn_error *err)
{
        json_t *cases = json_object_get(json, "cases"), *arguments;
        char field[RECORD_FIELD_MAX];
        size_t i;
        snprintf(field, sizeof field, "/%s", inputs->name);
        if (!json_is_array(list))
                return record_fail(err, field, "%s has to be an array of lists of arguments", inputs->name);
        json_array_foreach(list, i, arguments) {
                json_t *one = json_object();
                char name[60];
                json_array_append_new(cases, one);
                snprintf(field, sizeof field, "/%s/%zu", inputs->name, i);
                snprintf(name, sizeof name, "%s %zu", inputs->label, i + 1);
                if (!json_is_array(arguments))
                        return record_fail(err, field, "it has to be a list of arguments");
                json_object_set_new(one, "name", json_string(name));
                json_object_set(one, "function", inputs->function);
                if (set_arguments(one, arguments, inputs, field, err) < 0)
                        return -err->code;
        }
        return 0;
}

static int take_inputs(json_t *json, struct inputs *inputs, const char *name, const char *label, struct csn_error *err)
{
        json_t *list = record_take(json, name);
        inputs->name = name;
        inputs->label = label;
        int rc = list ? add_inputs(json, list, inputs, err) : 0;
        json_decref(list);
        return rc;
}

static int take_atol(json_t *json, struct csn_error *err)
{
        json_t *atol = record_take(json, "atol");
        double value = json_number_value(atol);
        bool good = !atol || (json_is_number(atol) && value >= 0);
        json_decref(atol);
        if (!good)
                return record_fail(err, "/atol", "atol has to be a number that is not negative");
        if (value > 0)
                record_default(json, "tolerance", json_real(value));
        return 0;
}

/* Cases of base_input and plus_input.  false in *ret_found: the record has neither, and its tests are code. */
static int take_cases(json_t *json, int shape, bool *ret_found, struct csn_error *err)
{
        json_t *entry = json_object_get(json, "entry_point");
        struct inputs inputs = { .function = entry };
        if (shape >= 0) {
                inputs.first = mbpp_shapes[shape].first;
                inputs.others = mbpp_shapes[shape].others;
        }
        *ret_found = json_object_get(json, "base_input") || json_object_get(json, "plus_input");
        if (take_atol(json, err) < 0 || !*ret_found)
                return *ret_found ? -err->code : 0;
        if (!json_is_string(entry) || !json_string_length(entry))
                return record_fail(err, "/entry_point", "entry_point is missing; it names the function");
        record_default(json, "cases", json_array());
        if (!json_is_array(json_object_get(json, "cases")))
                return record_fail(err, "/cases", "cases has to be an array");
        if (take_inputs(json, &inputs, "base_input", "base", err) < 0 ||
                take_inputs(json, &inputs, "plus_input", "plus", err) < 0)
                return -err->code;
        /* The text of the tests has the same inputs. */
        json_object_del(json, "test");
        json_object_del(json, "test_list");
        return 0;
}

static int set_reference(json_t *json, const char *before, struct csn_error *err)
{
        const char *solution = json_string_value(json_object_get(json, "canonical_solution"));
        struct arena arena = { 0 };
        if (json_object_get(json, "reference"))
                return 0;
        if (!solution)
                return record_fail(err, "/canonical_solution",
                        "canonical_solution is missing; its values are the expected ones");
        json_object_set_new(json, "reference", json_string(arena_text(&arena, "%s%s", before, solution)));
        arena_done(&arena);
        return 0;
}

int format_humanevalplus(json_t *json, struct csn_error *err)
{
        const char *prompt = json_string_value(json_object_get(json, "prompt"));
        bool found;
        if (take_cases(json, -1, &found, err) < 0)
                return -err->code;
        if (found)
                return set_reference(json, prompt ? prompt : "", err);
        return json_object_get(json, "test") || json_object_get(json, "tests")
                ? 0
                : record_fail(err, "/base_input", "the record has no tests; give base_input and plus_input, or test");
}

/* The prompt is a text about the function, and not the beginning of the program. */
int format_mbppplus(json_t *json, struct csn_error *err)
{
        bool found;
        json_object_del(json, "prompt");
        /* Some records have the solution as `code`. */
        if (json_object_get(json, "completion"))
                json_object_del(json, "code");
        if (take_cases(json, shape_of(json_object_get(json, "task_id")), &found, err) < 0)
                return -err->code;
        if (found && set_reference(json, "", err) < 0)
                return -err->code;
        json_t *solution = record_take(json, "canonical_solution");
        if (!json_object_get(json, "code") && !json_object_get(json, "completion") && json_is_string(solution))
                json_object_set(json, "code", solution);
        json_decref(solution);
        if (json_object_get(json, "test"))
                json_object_del(json, "test_list");
        return found || json_object_get(json, "test") || json_object_get(json, "test_list")
                ? 0
                : record_fail(err, "/base_input", "the record has no tests; give base_input and plus_input, or test");
}
