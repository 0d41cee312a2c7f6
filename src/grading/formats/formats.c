/* The table of formats: the reader of each, its trainer's defaults, and unused members of records. */
#include "grading/formats/formats.h"
#include "grading/formats/record.h"

#include <stdio.h>

struct format {
        const char *name;
        int (*apply)(json_t *json, struct csn_error *err);
        /* Defaults; NULL or 0: the default of grade_request. */
        const char *compare, *prelude, *instance, *extract, *helpers;
        unsigned case_cpu_ms;
        const char *id; /* the member with the problem's id, or NULL: id or task_id */
        /* Members for describing the problem, between blanks. */
        const char *unused;
};

static const struct format formats[] = {
        { .name = "lcb",
                .apply = format_lcb,
                .id = "question_id",
                .compare = "lcb",
                .prelude = "lcb",
                .instance = "shared",
                .case_cpu_ms = 6000,
                .unused =
                        "question_title question_content platform question_id contest_id contest_date starter_code difficulty "
                        "problem problem_id prompt source data_source solutions" },
        { .name = "apps",
                .apply = format_apps,
                .id = "problem_id",
                .compare = "lcb",
                .prelude = "lcb",
                .instance = "shared",
                .case_cpu_ms = 4000,
                .unused =
                        "problem_id question solutions difficulty url starter_code prompt source problem data_source" },
        { .name = "taco",
                .apply = format_taco,
                .compare = "lcb",
                .prelude = "lcb",
                .instance = "shared",
                .case_cpu_ms = 12000,
                .unused =
                        "question solutions starter_code difficulty raw_tags name source tags skill_types url time_limit date "
                        "picture_num memory_limit prompt problem problem_id data_source "
                        "Expected|Auxiliary|Space Expected|Time|Complexity" },
        { .name = "codecontests",
                .apply = format_codecontests,
                .id = "name",
                .compare = "tokens",
                .unused =
                        "name description source difficulty solutions incorrect_solutions cf_contest_id cf_index cf_points "
                        "cf_rating cf_tags is_description_translated untranslated_description prompt" },
        { .name = "primeintellect",
                .apply = format_primeintellect,
                .id = "problem_id",
                .compare = "prime",
                .prelude = "rllm",
                .case_cpu_ms = 10000,
                .unused = "problem_id task_type source in_source_id prompt gold_standard_solution metadata problem "
                          "gold_standard_response llm_response hf_dataset_name" },
        { .name = "verl",
                .apply = format_verl,
                .compare = "verl",
                .prelude = "verl",
                .extract = "verl",
                .case_cpu_ms = 10000,
                .unused = "data_source prompt ability extra_info agent_name raw_prompt index" },
        { .name = "scalebox",
                .apply = format_scalebox,
                .compare = "lcb",
                .prelude = "lcb",
                .case_cpu_ms = 10000,
                .unused = "dataset prompt compile_timeout run_timeout" },
        { .name = "humanevalplus",
                .apply = format_humanevalplus,
                .compare = "evalplus",
                .instance = "shared",
                .unused = "contract" },
        { .name = "mbppplus",
                .apply = format_mbppplus,
                .compare = "evalplus",
                .instance = "shared",
                .unused = "contract assertion prompt source_file" },
        { .name = "kodcode",
                .apply = format_kodcode,
                .id = "question_id",
                .unused =
                        "style subset conversation_id question solution test_code question_id test_info gpt_pass_sequence "
                        "gpt_pass_trial_num gpt_difficulty gpt_pass_percentage trials chat_reason metadata r1_solution "
                        "r1_correctness conversations prompt" },
        { .name = "codeforces",
                .apply = format_codeforces,
                .compare = "tokens",
                .unused =
                        "contest_id contest_name contest_type contest_start contest_start_year index title description "
                        "input_format output_format interaction_format note examples editorial rating tags testset_size "
                        "official_tests_complete executable generated_tests_count prompt problem" },
        { .name = "leetcode",
                .apply = format_leetcode,
                .prelude = "lcb",
                .helpers = "leetcode",
                .unused =
                        "question_id difficulty tags problem_description starter_code estimated_date prompt query response "
                        "input_output meta problem question solutions data_source" },
        { .name = "skyrl",
                .apply = format_skyrl,
                .compare = "lcb",
                .prelude = "lcb",
                .instance = "shared",
                .case_cpu_ms = 6000,
                .unused = "data_source prompt ability env_class extra_info" },
};

static const struct format *find_format(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(formats); i++)
                if (strcmp(formats[i].name, name) == 0)
                        return &formats[i];
        return NULL;
}

static int unknown_format(const char *name, struct csn_error *err)
{
        struct buf names;
        buf_init(&names, 600);
        for (size_t i = 0; i < choices_grade_format.n; i++)
                buf_printf(&names, "%s%s", i ? ", " : "", choices_grade_format.values[i].text);
        err_field(err, "/format", "format is \"%.60s\"; the formats are %s", name, names.bytes);
        buf_done(&names);
        err->code = CSN_E_FORMAT;
        return -err->code;
}

/* "|" in the list is a blank of the name. */
static void drop_unused(json_t *json, const char *unused)
{
        char name[64];
        while (*unused) {
                size_t len = strcspn(unused, " ");
                snprintf(name, sizeof name, "%.*s", (int)len, unused);
                for (char *at = name; *at; at++)
                        if (*at == '|')
                                *at = ' ';
                json_object_del(json, name);
                unused += len + strspn(unused + len, " ");
        }
}

static void set_text(json_t *json, const char *name, const char *value)
{
        if (value)
                record_default(json, name, json_string(value));
}

static void set_defaults(json_t *json, const struct format *format)
{
        set_text(json, "compare", format->compare);
        set_text(json, "prelude", format->prelude);
        set_text(json, "instance", format->instance);
        set_text(json, "helpers", format->helpers);
        if (json_object_get(json, "completion"))
                set_text(json, "extract", format->extract);
        if (format->case_cpu_ms)
                record_default(json, "case_cpu_ms", json_integer(format->case_cpu_ms));
}

/* Names of the request itself for choices of the caller, which the record does not replace. */
static void take_own_names(json_t *json)
{
        json_t *checker = json_object_get(json, "checker"), *check = json_object_get(json, "check");
        json_t *timeout = json_object_get(json, "timeout_ms");
        if (json_is_string(checker) && !json_object_get(json, "compare")) {
                json_object_set(json, "compare", checker);
                json_object_del(json, "checker");
        }
        if (check && !json_object_get(json, "checker")) {
                json_object_set(json, "checker", check);
                json_object_del(json, "check");
        }
        if (timeout && !json_object_get(json, "case_cpu_ms")) {
                json_object_set(json, "case_cpu_ms", timeout);
                json_object_del(json, "timeout_ms");
        }
        if (json_is_object(json_object_get(json, "checker")))
                record_default(json, "compare", json_string("program"));
}

/* The caller's id of the request counts, else the id of the record. */
static void take_id(json_t *json, const struct format *format)
{
        json_t *id = format->id ? json_object_get(json, format->id) : NULL;
        if (json_object_get(json, "id"))
                json_object_del(json, "task_id");
        else if (!json_object_get(json, "task_id") && (json_is_string(id) || json_is_integer(id)))
                json_object_set(json, "id", id);
}

static bool has_tests(const json_t *json)
{
        return json_array_size(json_object_get(json, "cases")) || json_object_get(json, "tests") ||
                json_object_get(json, "test") || json_object_get(json, "test_list");
}

int format_apply(json_t *json, struct csn_error *err)
{
        json_t *member = json_object_get(json, "format");
        const char *name = json_string_value(member);
        const struct format *format = name ? find_format(name) : NULL;
        if (name && !format && strcmp(name, choices_grade_format.values[grade_format_CAISSON].text) != 0)
                return unknown_format(name, err);
        if (!format)
                return 0;
        record_begin();
        take_own_names(json);
        if (format->apply(json, err) < 0)
                return -err->code;
        take_id(json, format);
        drop_unused(json, format->unused);
        if (!has_tests(json))
                return record_fail(err, "", "the record has no tests");
        set_defaults(json, format);
        return 0;
}
