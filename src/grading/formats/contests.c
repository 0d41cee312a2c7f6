/* Contests: CodeContests, and Codeforces in open-r1's form. */
#include "grading/formats/record.h"

#include <stdio.h>

static const struct entry_rule rule = { 0 };

/* {input[], output[]}, or an array of {input, output}. */
static int take_tests(json_t *json, const char *name, bool *ret_found, struct csn_error *err)
{
        json_t *value = record_take(json, name), *tests = NULL;
        char field[RECORD_FIELD_MAX];
        if (!value)
                return 0;
        *ret_found = true;
        snprintf(field, sizeof field, "/%s", name);
        int rc = record_open(value, field, &tests, err);
        const struct entries entries = { .inputs = json_object_get(tests, "input"),
                .outputs = json_object_get(tests, "output"),
                .field = field,
                .inputs_name = "input",
                .outputs_name = "output" };
        if (rc == 0)
                rc = json_is_array(tests) ? entries_add_list(json, tests, field, NULL, &rule, err)
                                          : entries_add(json, &entries, &rule, err);
        json_decref(tests);
        json_decref(value);
        return rc;
}

static int take_all_tests(json_t *json, const char *const *names, struct csn_error *err)
{
        bool found = false;
        char field[RECORD_FIELD_MAX];
        snprintf(field, sizeof field, "/%s", names[0]);
        for (size_t i = 0; names[i]; i++)
                if (take_tests(json, names[i], &found, err) < 0)
                        return -err->code;
        return found ? 0 : record_fail(err, field, "the record has no tests; give %s", names[0]);
}

/* Seconds, or {seconds, nanos}. */
static int take_time_limit(json_t *json, struct csn_error *err)
{
        json_t *limit = record_take(json, "time_limit");
        double seconds = json_number_value(limit);
        if (json_is_object(limit))
                seconds = json_number_value(json_object_get(limit, "seconds")) +
                        json_number_value(json_object_get(limit, "nanos")) / 1e9;
        bool given = limit != NULL, good = json_is_number(limit) || json_is_object(limit);
        json_decref(limit);
        if (given && (!good || !(seconds > 0) || seconds > 86400))
                return record_fail(err, "/time_limit",
                        "time_limit has to be seconds, or an object {seconds, nanos}: more than 0, at most 86400");
        if (given)
                record_default(json, "case_cpu_ms", json_integer((json_int_t)(seconds * 1000 + 0.5)));
        return 0;
}

static int take_memory_limit(json_t *json, const char *name, double unit, struct csn_error *err)
{
        json_t *limit = record_take(json, name);
        double bytes = json_number_value(limit) * unit;
        char field[RECORD_FIELD_MAX];
        bool given = limit != NULL, good = json_is_number(limit) && bytes >= 0 && bytes < 1e15;
        json_decref(limit);
        snprintf(field, sizeof field, "/%s", name);
        if (given && !good)
                return record_fail(err, field, "%s has to be a number that is not negative", name);
        if (!given || bytes < 1)
                return 0;
        record_default(json, "limits", json_object());
        json_t *limits = json_object_get(json, "limits");
        if (json_is_object(limits))
                record_default(limits, "memory_bytes", json_integer((json_int_t)bytes));
        return 0;
}

/* Problems with programs reading files by name are not supported. */
static int refuse_file(json_t *json, const char *name, struct csn_error *err)
{
        json_t *value = record_take(json, name);
        bool is_file = json_string_length(value) > 0;
        char field[RECORD_FIELD_MAX];
        json_decref(value);
        snprintf(field, sizeof field, "/%s", name);
        return is_file
                ? record_fail(err, field,
                          "problems whose programs read or write files by name cannot be graded; leave the record out")
                : 0;
}

int format_codecontests(json_t *json, struct csn_error *err)
{
        static const char *const names[] = { "public_tests", "private_tests", "generated_tests", NULL };
        if (refuse_file(json, "input_file", err) < 0 || refuse_file(json, "output_file", err) < 0 ||
                take_time_limit(json, err) < 0 || take_memory_limit(json, "memory_limit_bytes", 1, err) < 0)
                return -err->code;
        return take_all_tests(json, names, err);
}

static int take_input_mode(json_t *json, struct csn_error *err)
{
        json_t *mode = record_take(json, "input_mode");
        const char *text = json_string_value(mode);
        bool good = !mode || (text && strcmp(text, "stdio") == 0);
        char shown[40];
        snprintf(shown, sizeof shown, "%s", text ? text : "");
        json_decref(mode);
        return good
                ? 0
                : record_fail(err, "/input_mode",
                          "input_mode is \"%s\"; only problems with \"stdio\" can be graded, so leave the record out",
                          shown);
}

static int take_checker(json_t *json, struct csn_error *err)
{
        json_t *checker = record_take(json, "generated_checker");
        if (!checker)
                return 0;
        if (!json_is_string(checker)) {
                json_decref(checker);
                return record_fail(err, "/generated_checker",
                        "generated_checker has to be the text of a program, or null");
        }
        record_default(json, "checker",
                json_pack("{s:s, s:s, s:o}", "kind", "openr1", "language", "python", "code", checker));
        record_default(json, "compare", json_string("program"));
        return 0;
}

int format_codeforces(json_t *json, struct csn_error *err)
{
        static const char *const names[] = { "official_tests", "generated_tests", NULL };
        json_t *generated = json_object_get(json, "generated_tests"), *aliases = json_object_get(json, "aliases");
        /* A row of the data set has the number of generated tests, which are files of their own. */
        if (json_is_integer(generated))
                json_object_del(json, "generated_tests");
        /* Other ids of the problem; the field of the request is true or false. */
        if (!json_is_boolean(aliases))
                json_object_del(json, "aliases");
        if (take_input_mode(json, err) < 0 || take_time_limit(json, err) < 0 ||
                take_memory_limit(json, "memory_limit", 1 << 20, err) < 0 || take_checker(json, err) < 0)
                return -err->code;
        return take_all_tests(json, names, err);
}
