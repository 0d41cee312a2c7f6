/* ScaleBox: provided_data.test_cases, and special judges. */
#include "grading/formats/record.h"

#include <stdio.h>

#define FIELD "/provided_data/test_cases"

static const struct entry_rule rule = { .wrapped = true, .output = ENTRY_TEXT_MAY_BE_JSON };

static int add_asserts(json_t *json, json_t *tests, struct csn_error *err)
{
        json_t *text = json_object_get(tests, "tests"), *entry = json_object_get(tests, "entry_point");
        if (!json_is_string(text))
                text = json_object_get(tests, "test");
        if (!json_is_string(text))
                return record_fail(err, FIELD "/tests",
                        "test_cases is of the type assert, and has neither tests nor test");
        record_default(json, "tests", json_incref(text));
        if (json_is_string(entry) && json_string_length(entry))
                record_default(json, "entry_point", json_incref(entry));
        return 0;
}

static int add_tests(json_t *json, json_t *tests, struct csn_error *err)
{
        const char *type = json_string_value(json_object_get(tests, "type"));
        const char *function = json_string_value(json_object_get(tests, "fn_name"));
        if (json_is_array(tests))
                return entries_add_list(json, tests, FIELD, NULL, &rule, err);
        if (!json_is_object(tests))
                return record_fail(err, FIELD,
                        "test_cases has to be an object {type, input, output}, or an array of them");
        if (!type)
                type = function && *function ? "function_call" : "stdin_stdout";
        if (strcmp(type, "assert") == 0)
                return add_asserts(json, tests, err);
        bool calls = strcmp(type, "function_call") == 0;
        if (!calls && strcmp(type, "stdin_stdout") != 0)
                return record_fail(err, FIELD "/type",
                        "type is \"%.40s\"; it has to be stdin_stdout, function_call or assert", type);
        if (calls && (!function || !*function))
                return record_fail(err, FIELD "/fn_name", "fn_name is missing; the type is function_call");
        const struct entries entries = { .inputs = json_object_get(tests, "input"),
                .outputs = json_object_get(tests, "output"),
                .function = calls ? function : NULL,
                .field = FIELD,
                .inputs_name = "input",
                .outputs_name = "output" };
        return entries_add(json, &entries, &rule, err);
}

static int take_judge(json_t *json, struct csn_error *err)
{
        json_t *extra = record_take(json, "extra");
        json_t *program = json_object_get(extra, "special_judge_program");
        const char *language = json_string_value(json_object_get(extra, "special_judge_language"));
        int rc = 0;
        if (json_is_string(program) && json_string_length(program)) {
                record_default(json, "checker",
                        json_pack("{s:s, s:s, s:O}", "kind", "scalebox", "language", language ? language : "python",
                                "code", program));
                record_default(json, "compare", json_string("program"));
        } else if (program && !json_is_null(program) && !json_is_string(program)) {
                rc = record_fail(err, "/extra/special_judge_program",
                        "special_judge_program has to be the text of a program");
        }
        json_decref(extra);
        return rc;
}

int format_scalebox(json_t *json, struct csn_error *err)
{
        json_t *data = record_take(json, "provided_data"), *tests = json_incref(json_object_get(data, "test_cases"));
        if (!tests)
                tests = record_take(json, "test_cases");
        json_t *opened = NULL;
        int rc = tests ? record_open(tests, FIELD, &opened, err)
                       : record_fail(err, FIELD, "provided_data.test_cases is missing");
        if (rc == 0)
                rc = add_tests(json, opened, err);
        if (rc == 0)
                rc = take_judge(json, err);
        json_decref(opened);
        json_decref(tests);
        json_decref(data);
        return rc;
}
