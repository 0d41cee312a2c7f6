/* PrimeIntellect: verification_info. */
#include "grading/formats/record.h"

#include <stdio.h>

static const struct entry_rule rule = { .output = ENTRY_TEXT_MAY_BE_JSON };

int format_primeintellect(json_t *json, struct csn_error *err)
{
        json_t *value = record_take(json, "verification_info"), *info = NULL;
        int rc = value ? record_open(value, "/verification_info", &info, err)
                       : record_fail(err, "/verification_info", "verification_info is missing");
        json_t *tests = json_object_get(info, "test_cases"), *language = json_object_get(info, "language");
        const char *function = json_string_value(json_object_get(info, "fn_name"));
        if (rc == 0 && json_is_array(info))
                rc = entries_add_list(json, info, "/verification_info", NULL, &rule, err);
        else if (rc == 0)
                rc = entries_add_list(json, tests, "/verification_info/test_cases", function, &rule, err);
        if (rc == 0 && json_is_string(language))
                record_default(json, "language", json_incref(language));
        json_decref(info);
        json_decref(value);
        return rc;
}
