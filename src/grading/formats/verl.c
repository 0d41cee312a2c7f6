/* verl: ground_truth. */
#include "grading/formats/record.h"

#include <stdio.h>

static const struct entry_rule rule = { .output = ENTRY_TEXT_MAY_BE_JSON };

/* Texts of asserts, which become test code. */
static int add_asserts(json_t *json, const json_t *asserts, const char *field, struct csn_error *err)
{
        struct buf text;
        size_t i;
        json_t *line;
        char place[RECORD_FIELD_MAX];
        snprintf(place, sizeof place, "%s/assert_case", field);
        if (!json_is_array(asserts))
                return record_fail(err, place, "assert_case has to be an array of texts");
        buf_init(&text, 4 * MIB);
        json_array_foreach(asserts, i, line) {
                if (!json_is_string(line) || !buf_printf(&text, "%s\n", json_string_value(line))) {
                        buf_done(&text);
                        return record_fail(err, place, "assert_case has to be an array of texts, of 4 MiB at most");
                }
        }
        record_default(json, "tests", json_stringn(text.bytes ? text.bytes : "", text.len));
        buf_done(&text);
        return 0;
}

static int add_truth(json_t *json, json_t *truth, const char *field, struct csn_error *err)
{
        json_t *asserts = json_object_get(truth, "assert_case");
        if (json_is_array(truth))
                return entries_add_list(json, truth, field, NULL, &rule, err);
        if (asserts && !json_is_null(asserts))
                return add_asserts(json, asserts, field, err);
        return entries_add_object(json, truth, field, &rule, err);
}

/* verl's rows have ground_truth in reward_model. */
int format_verl(json_t *json, struct csn_error *err)
{
        json_t *value = record_take(json, "ground_truth"), *model = record_take(json, "reward_model"), *truth = NULL;
        const char *field = value ? "/ground_truth" : "/reward_model/ground_truth";
        if (!value)
                value = json_incref(json_object_get(model, "ground_truth"));
        int rc = value ? record_open(value, field, &truth, err)
                       : record_fail(err, "/ground_truth", "ground_truth is missing");
        if (rc == 0)
                rc = add_truth(json, truth, field, err);
        json_decref(truth);
        json_decref(value);
        json_decref(model);
        return rc;
}
