/* LiveCodeBench, APPS and TACO: input_output; and the tests of SkyRL's LiveCodeBench environment. */
#include "grading/formats/record.h"

#include <stdio.h>

static const struct entry_rule lcb_rule = { .output = ENTRY_TEXT_IS_JSON };
/* APPS and TACO have each output in a list with a single item. */
static const struct entry_rule apps_rule = { .wrapped = true, .integer_keys = true, .output = ENTRY_TEXT_IS_VALUE };

static int add_tests(json_t *json, json_t *tests, const char *field, const char *function,
        const struct entry_rule *rule, struct csn_error *err)
{
        return json_is_array(tests) ? entries_add_list(json, tests, field, function, rule, err)
                                    : entries_add_object(json, tests, field, rule, err);
}

/* A member with tests, which is optional here. */
static int take_tests(json_t *json, const char *name, const char *function, const struct entry_rule *rule,
        bool *ret_found, struct csn_error *err)
{
        json_t *value = record_take(json, name), *tests = NULL;
        char field[RECORD_FIELD_MAX];
        if (!value)
                return 0;
        *ret_found = true;
        snprintf(field, sizeof field, "/%s", name);
        int rc = record_unpack(value, field, &tests, err);
        if (rc == 0)
                rc = add_tests(json, tests, field, function, rule, err);
        json_decref(tests);
        json_decref(value);
        return rc;
}

/* The rows of the data set have JSON text in each of the three members. */
static int take_split_tests(json_t *json, bool *ret_found, struct csn_error *err)
{
        json_t *value = record_take(json, "metadata"), *metadata = NULL;
        int rc = value ? record_open(value, "/metadata", &metadata, err) : 0;
        const char *function = json_string_value(json_object_get(metadata, "func_name"));
        if (rc == 0)
                rc = take_tests(json, "public_test_cases", function, &lcb_rule, ret_found, err);
        if (rc == 0)
                rc = take_tests(json, "private_test_cases", function, &lcb_rule, ret_found, err);
        json_decref(metadata);
        json_decref(value);
        return rc;
}

int format_lcb(json_t *json, struct csn_error *err)
{
        bool found = false, split = false;
        int rc = take_tests(json, "input_output", NULL, &lcb_rule, &found, err);
        if (rc == 0)
                rc = take_tests(json, "tests", NULL, &lcb_rule, &found, err);
        if (rc == 0)
                rc = take_split_tests(json, &split, err);
        if (rc == 0 && !found && !split)
                return record_fail(err, "/input_output",
                        "the record has no tests; give input_output, or public_test_cases and private_test_cases");
        return rc;
}

int format_apps(json_t *json, struct csn_error *err)
{
        bool found = false;
        int rc = take_tests(json, "input_output", NULL, &apps_rule, &found, err);
        if (rc == 0 && !found)
                rc = take_tests(json, "tests", NULL, &apps_rule, &found, err);
        return rc || found ? rc : record_fail(err, "/input_output", "input_output is missing");
}

int format_taco(json_t *json, struct csn_error *err)
{
        return format_apps(json, err);
}

int format_skyrl(json_t *json, struct csn_error *err)
{
        json_t *spec = record_take(json, "reward_spec"), *truth = json_object_get(spec, "ground_truth"), *tests = NULL;
        int rc = truth ? record_unpack(truth, "/reward_spec/ground_truth", &tests, err)
                       : record_fail(err, "/reward_spec/ground_truth", "reward_spec.ground_truth is missing");
        if (rc == 0)
                rc = add_tests(json, tests, "/reward_spec/ground_truth", NULL, &lcb_rule, err);
        json_decref(tests);
        json_decref(spec);
        return rc;
}
