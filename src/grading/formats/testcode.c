/* Records with code as tests: KodCode, and LeetCode in rLLM's form. */
#include "grading/formats/record.h"

/* pytest, which imports the functions from the module `solution`. */
int format_kodcode(json_t *json, struct csn_error *err)
{
        if (record_move_text(json, "test", "tests", err) < 0)
                return -err->code;
        return json_object_get(json, "tests") ? 0
                                              : record_fail(err, "/test", "test is missing; it has the text of pytest");
}

/* "Solution().twoSum" is the method, of which the candidate of check() is made. */
static int take_entry_point(json_t *json, struct csn_error *err)
{
        static const char made[] = "Solution().";
        json_t *entry = json_object_get(json, "entry_point");
        const char *text = json_string_value(entry);
        if (entry && !text)
                return record_fail(err, "/entry_point", "entry_point has to be a text");
        if (text && strncmp(text, made, sizeof made - 1) == 0) {
                struct arena arena = { 0 };
                json_object_set_new(json, "entry_point",
                        json_string(arena_text(&arena, "Solution.%s", text + sizeof made - 1)));
                arena_done(&arena);
        }
        return 0;
}

int format_leetcode(json_t *json, struct csn_error *err)
{
        json_t *tests = record_take(json, "tests"), *functional = json_object_get(tests, "functional");
        if (json_is_string(functional))
                record_default(json, "functional", json_incref(functional));
        else if (json_is_string(tests))
                record_default(json, "functional", json_incref(tests));
        json_decref(tests);
        if (record_move_text(json, "functional", "tests", err) < 0 ||
                record_move_text(json, "test", "tests", err) < 0 || take_entry_point(json, err) < 0)
                return -err->code;
        return json_object_get(json, "tests")
                ? 0
                : record_fail(err, "/functional", "functional is missing; it has the test code");
}
