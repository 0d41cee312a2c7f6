/*
 * Requests as people have them: with the names of older systems, and problems of HumanEval and MBPP as their files are.
 * Whatever else is in these files is not ours to interpret, and is taken from a list of names, so that a slip of the
 * pen in a request is an error and not ignored.
 */
#include "grading/grading_private.h"

#include <stdio.h>

static const struct {
        const char *other, *ours;
} of_cases[] = {
        { "input_args", "args" },
        { "input_kwargs", "kwargs" },
        { "expected_output", "expected" },
        { "input", "stdin" },
        { "output", "expected_stdout" },
}, of_requests[] = {
        { "task_id", "id" },
        { "func_name", "function" },
        { "test_cases", "cases" },
        { "setup_code", "setup" },
        { "test_setup_code", "setup" },
        { "test", "tests" },
        { "timeout_ms", "case_cpu_ms" },
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

/* HumanEval: the program is the prompt and what follows it. */
static int join_prompt(json_t *json, struct csn_error *err)
{
        json_t *prompt = json_object_get(json, "prompt"), *rest = json_object_get(json, "completion");
        if (!rest)
                rest = json_object_get(json, "canonical_solution");
        if (!prompt)
                return 0;
        if (!json_is_string(prompt))
                return err_field(err, "/prompt", "prompt has to be a text");
        if (!json_object_get(json, "code")) {
                if (!json_is_string(rest))
                        return err_field(err, "/code",
                                "there is a prompt, and neither code nor completion nor canonical_solution");
                const char *head = json_string_value(prompt), *tail = json_string_value(rest);
                size_t len = strlen(head) + strlen(tail);
                char *code = mem_alloc(len + 1);
                snprintf(code, len + 1, "%s%s", head, tail);
                json_object_set_new(json, "code", json_string(code));
                free(code);
        }
        json_object_del(json, "prompt");
        json_object_del(json, "completion");
        json_object_del(json, "canonical_solution");
        return 0;
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
                /* For a call, expected_output is a value; beside standard input it is what has to be written. */
                bool stream = json_object_get(one, "stdin") || json_object_get(one, "input") ||
                        json_object_get(one, "stdin_base64");
                if (stream && json_object_get(one, "expected_output") &&
                        rename_one(one, "expected_output", "expected_stdout", err) < 0)
                        return -err->code;
                for (size_t k = 0; k < ARRAY_LEN(of_cases); k++)
                        if (rename_one(one, of_cases[k].other, of_cases[k].ours, err) < 0) {
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

/* It is known even where the rest is wrong. */
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
        for (size_t i = 0; i < ARRAY_LEN(of_requests); i++)
                if (rename_one(json, of_requests[i].other, of_requests[i].ours, err) < 0)
                        return -err->code;
        for (size_t i = 0; i < ARRAY_LEN(of_no_use); i++)
                json_object_del(json, of_no_use[i]);
        json_t *setup = json_object_get(json, "setup");
        if (json_is_string(setup) && !json_string_length(setup))
                json_object_del(json, "setup");
        if (join_prompt(json, err) < 0 || join_lines(json, "test_list", "tests", err) < 0 ||
                join_lines(json, "test_imports", "setup", err) < 0 ||
                rename_cases(json_object_get(json, "cases"), err) < 0)
                return -err->code;
        return model_decode(&object_grade_request, json, arena, ret, err);
}
