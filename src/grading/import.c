/*
 * Requests in foreign forms: with the names of older systems, records of data sets (formats/), and problems of
 * HumanEval and MBPP as in their files.  Other names of a field are ALIAS rows of fields.def.  Unused members of
 * HumanEval and MBPP are in a list, so a misspelled member of a request is an error and not ignored.
 */
#include "grading/formats/formats.h"
#include "grading/grading_private.h"
#include "lang/extract.h"

#include <stdio.h>

static const struct alias {
        const struct object *object;
        const char *ours, *other;
} aliases[] = {
#define CHOICES(choices)
#define VALUE(choices, name, text, number, meaning)
#define END_CHOICES(choices)
#define OBJECT(object, title, text)
#define NUM(object, member, presence, min, max, def, unit, option, help)
#define INT(object, member, presence, help)
#define REAL(object, member, presence, help)
#define BOOL(object, member, presence, def, option, help)
#define TEXT(object, member, presence, max, def, option, help)
#define BYTES(object, member, presence, max, option, help)
#define JSON(object, member, presence, help)
#define ENUM(object, member, presence, choices, def, option, help)
#define TEXTS(object, member, presence, items, max, option, help)
#define PAIRS(object, member, presence, items, option, help)
#define SUB(object, member, presence, other, help)
#define LIST(object, member, presence, other, items, option, help)
#define ALIAS(of, member, name) { &object_##of, #member, name },
#define END(object)
#include "model/fields.def"
#include "model/undef.h"
};

/* Of datasets: described there, of no use here. */
static const char *const of_no_use[] = { "text", "source_file", "challenge_test_list", "prompt_text", "difficulty",
        "source", "split" };

static int rename_one(json_t *json, const char *other, const char *ours, struct csn_error *err)
{
        json_t *value = json_object_get(json, other);
        if (!value)
                return 0;
        if (json_object_get(json, ours))
                return err_field(err, "", "there are both %s and %s, which mean the same; give one of them", ours,
                        other);
        json_object_set(json, ours, value);
        json_object_del(json, other);
        return 0;
}

/* The name of a field is an alias of another field only for a text. */
static bool is_alias(const json_t *json, const struct alias *alias)
{
        return !model_field(alias->object, alias->other) || json_is_string(json_object_get(json, alias->other));
}

static int rename_all(json_t *json, const struct object *object, struct csn_error *err)
{
        for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
                if (aliases[i].object == object && is_alias(json, &aliases[i]) &&
                        rename_one(json, aliases[i].other, aliases[i].ours, err) < 0)
                        return -err->code;
        return 0;
}

/* The text behind a prompt: a program goes on there, or, in a fenced block, begins anew or goes on. */
static char *text_behind(const char *prompt, const char *rest, const char *extract, struct arena *arena)
{
        const struct bytes text = { (char *)(uintptr_t)rest, strlen(rest) };
        int mode = extract_LAST_FENCE;
        struct lang_extracted found;
        for (size_t i = 0; extract && i < choices_extract.n; i++)
                if (strcmp(choices_extract.values[i].text, extract) == 0)
                        mode = (int)i;
        if (!lang_extract(NULL, mode, NULL, &text, arena, &found))
                return arena_text(arena, "%s%s", prompt, rest);
        return arena_text(arena, "%s\n%s", prompt, found.program.bytes);
}

/* HumanEval: the program is the prompt and its completion. */
static int join_prompt(json_t *json, struct arena *arena, struct csn_error *err)
{
        json_t *prompt = json_object_get(json, "prompt"), *rest = json_object_get(json, "completion");
        bool is_answer = rest != NULL;
        if (!rest)
                rest = json_object_get(json, "canonical_solution");
        if (!prompt)
                return 0;
        if (!json_is_string(prompt))
                return err_field(err, "/prompt", "prompt has to be a text");
        if (!json_object_get(json, "code")) {
                const char *extract = json_string_value(json_object_get(json, "extract"));
                if (!json_is_string(rest))
                        return err_field(err, "/code",
                                "there is a prompt, and neither code nor completion nor canonical_solution");
                json_object_set_new(json, "code",
                        json_string(text_behind(json_string_value(prompt), json_string_value(rest),
                                is_answer ? extract : "none", arena)));
                json_object_del(json, "extract");
        }
        json_object_del(json, "prompt");
        json_object_del(json, "completion");
        json_object_del(json, "canonical_solution");
        return 0;
}

/* MBPP: `code` is the solution of the record, and an answer of a model stands in its place. */
static void drop_solution(json_t *json)
{
        if (json_object_get(json, "test_list") && json_object_get(json, "completion"))
                json_object_del(json, "code");
}

/* MBPP: a list of asserts, and lines of imports. */
static int join_lines(json_t *json, const char *name, const char *ours, struct csn_error *err)
{
        json_t *list = json_object_get(json, name), *line;
        struct buf text;
        size_t i;
        if (!list)
                return 0;
        if (!json_is_array(list) || json_object_get(json, ours))
                return err_field(err, "", "%s has to be an array of texts, and without %s beside it", name, ours);
        buf_init(&text, 16 * MIB);
        json_array_foreach(list, i, line) {
                buf_printf(&text, "%s\n", json_is_string(line) ? json_string_value(line) : "");
        }
        json_object_set_new(json, ours, json_string(text.bytes ? text.bytes : ""));
        buf_done(&text);
        json_object_del(json, name);
        return 0;
}

static int rename_cases(json_t *cases, struct csn_error *err)
{
        size_t i;
        json_t *one;
        json_array_foreach(cases, i, one) {
                /*
                 * For a call, expected_output is a value; beside standard input, expected_output is the standard
                 * output.
                 */
                bool stream = json_object_get(one, "stdin") || json_object_get(one, "input") ||
                        json_object_get(one, "stdin_base64");
                if (stream && json_object_get(one, "expected_output") &&
                        rename_one(one, "expected_output", "expected_stdout", err) < 0)
                        return -err->code;
                if (rename_all(one, &object_grade_case, err) < 0) {
                        snprintf(err->field, sizeof err->field, "/cases/%zu", i);
                        return -err->code;
                }
        }
        return 0;
}

/* Numbers are ids as well, and texts from here on. */
static void name_as_text(json_t *json, const char *member)
{
        json_t *id = json_object_get(json, member);
        char text[32];
        snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
        if (model_digits(id))
                json_object_set_new(json, member, json_string(model_digits(id)));
        else if (json_is_integer(id))
                json_object_set_new(json, member, json_string(text));
}

/* The id is known even if the rest is wrong. */
static void take_id(json_t *json, struct arena *arena, struct grade_request *ret)
{
        name_as_text(json, "id");
        name_as_text(json, "task_id");
        json_t *id = json_object_get(json, json_object_get(json, "id") ? "id" : "task_id");
        if (json_is_string(id) && json_string_length(id) <= 1024)
                SET(ret, grade_request, id, arena_text(arena, "%s", json_string_value(id)));
}

int grading_decode(json_t *json, struct arena *arena, struct grade_request *ret, struct csn_error *err)
{
        if (!json_is_object(json))
                return err_field(err, "", "a request to grade is an object");
        take_id(json, arena, ret);
        if (format_apply(json, err) < 0)
                return -err->code;
        take_id(json, arena, ret);
        if (rename_all(json, &object_grade_request, err) < 0)
                return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(of_no_use); i++)
                json_object_del(json, of_no_use[i]);
        json_t *setup = json_object_get(json, "setup");
        if (json_is_string(setup) && !json_string_length(setup))
                json_object_del(json, "setup");
        drop_solution(json);
        if (join_prompt(json, arena, err) < 0 || join_lines(json, "test_list", "tests", err) < 0 ||
                join_lines(json, "test_imports", "setup", err) < 0 ||
                rename_cases(json_object_get(json, "cases"), err) < 0)
                return -err->code;
        if (model_decode(&object_grade_request, json, arena, ret, err) < 0)
                return -err->code;
        if (!HAS(ret, grade_request, code) && !HAS(ret, grade_request, completion))
                return err_field(err, "/code", "code is missing; give it, or completion, the answer of a model");
        if (HAS(ret, grade_request, code) && HAS(ret, grade_request, completion))
                return err_field(err, "/completion", "there are both code and completion; give one of them");
        return 0;
}

void grading_bound_records(const struct settings *settings)
{
        format_set_record_bytes(settings->grading.record_bytes);
}
