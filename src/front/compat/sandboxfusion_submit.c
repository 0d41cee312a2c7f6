/*
 * POST /submit of SandboxFusion, without data sets: a model's answer, and the tests in the request (CommonOJDataset
 * with provided_data).  The program is taken out of the answer, runs once for each test, and its output is compared;
 * all by SandboxFusion's rules, because the rules decide a reward.
 *
 * Tests run in sequence, each as a run of its own: so a tenant's quotas hold for tests, and the first failed test ends
 * the submission.
 */
#include "front/compat/sandboxfusion.h"
#include "front/compat/parse.h"

#define TIMEOUT_S 20                       /* run_timeout where none is given */
#define CASES_MAX 1000

/* ---- tests in sequence ---- */

/* A converted body.  The last of its runs frees the struct. */
struct submission {
        struct compat_given given; /* the request of each run, without its input */
        struct arena arena;        /* the memory of all this, from the first run on */
        size_t runs;
        json_t *id, *cases, *code, *tests;
        bool all;                          /* also after a failed test */
        bool accepted;
        bool over;                         /* no other run follows */
        char *text;                        /* of the answer, then */
};

static const struct run_responder words;

static json_t *config_of(const json_t *body)
{
        return json_object_get(body, "config");
}

void fusion_drop_submit(void *given)
{
        struct submission *submission = given;
        compat_drop(submission);
        json_decref(submission->id);
        json_decref(submission->cases);
        json_decref(submission->code);
        json_decref(submission->tests);
        free(submission->text);
}

static void submission_free(struct submission *submission)
{
        struct arena arena = submission->arena;
        fusion_drop_submit(submission);
        arena_done(&arena);
}

static json_t *next_case(const struct submission *submission)
{
        return json_array_get(submission->cases, json_array_size(submission->tests));
}

/* False: the request has its answer. */
static bool start_next(struct http_request *request, struct submission *submission)
{
        const json_t *input = json_object_get(json_object_get(next_case(submission), "input"), "stdin");
        struct run_request given = submission->given.request;
        given.stdin = (struct bytes){ (char *)(uintptr_t)json_string_value(input), json_string_length(input) };
        MARK(&given, run_request, stdin);
        struct run *run = compat_run(request, &given);
        if (!compat_may_run(request, run))
                return false;
        submission->runs++;
        service_start_run(request, run, &words, submission, false);
        return true;
}

static char *answer_text(const struct submission *submission)
{
        return http_json_text(json_pack("{s:O, s:b, s:O, s:n, s:n, s:O, s:n, s:n}", "id", submission->id, "accepted",
                submission->accepted, "extracted_code", submission->code, "full_code", "test_code", "tests",
                submission->tests, "extracted_type", "extra"));
}

static char *take_text(struct submission *submission)
{
        char *text = submission->text;
        submission->text = NULL;
        return text;
}

static void on_encode(void *own, const struct run_result *result)
{
        struct submission *submission = own;
        json_t *test = next_case(submission);
        const char *expected = json_string_value(json_object_get(json_object_get(test, "output"), "stdout"));
        bool passed = fusion_succeeded(result) && compat_alike(&result->stdout, expected);
        json_array_append_new(submission->tests,
                json_pack("{s:b, s:o, s:O}", "passed", passed, "exec_info", fusion_answer(result, json_object()),
                        "test_info", test));
        submission->accepted = submission->accepted && passed;
        submission->over = !next_case(submission) || (!passed && !submission->all);
        if (submission->over)
                submission->text = answer_text(submission);
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct submission *submission = own;
        (void)result;
        if (submission->over)
                http_answer_json(request, MHD_HTTP_OK, take_text(submission));
        else
                start_next(request, submission);
}

static void on_drop(void *own)
{
        struct submission *submission = own;
        if (--submission->runs == 0)
                submission_free(submission);
}

static const struct run_responder words = { .encode = on_encode, .answer = on_answer, .drop = on_drop };

/* ---- POST /submit ---- */

static json_t *flaws_of(json_t *body)
{
        static const struct { const char *name, *type, *message;
        } rows[] = {
                { "dataset", "string_type", "Input should be a valid string" },
                { "id", "string_type", "Input should be a valid string" },
                { "completion", "string_type", "Input should be a valid string" },
                { "config", "dict_type", "Input should be a valid dictionary" },
        };
        json_t *flaws = json_array();
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                json_t *json = json_object_get(body, rows[i].name);
                bool good = rows[i].type[0] == 'd' ? json_is_object(json)
                                                   : json_is_string(json) || (i == 1 && json_is_integer(json));
                if (!json)
                        fusion_add_flaw(flaws, "missing", "Field required", rows[i].name, NULL, json_null());
                else if (!good)
                        fusion_add_flaw(flaws, rows[i].type, rows[i].message, rows[i].name, NULL, json);
        }
        return flaws;
}

/* A list, or the list in a text, as in tables.  The caller's reference; NULL: neither, or over a ceiling. */
static json_t *list_of(json_t *test)
{
        const char *text = json_string_value(test);
        size_t len = json_string_length(test);
        if (!text)
                return json_incref(test);
        return model_is_deeper(text, len, JSON_BODY_DEPTH_MAX) || model_has_many_parts(text, len, JSON_BODY_PARTS_MAX)
                ? NULL
                : json_loadb(text, len, JSON_ALLOW_NUL, NULL);
}

/* The caller's reference; NULL: there are none. */
static json_t *cases_of(const json_t *config)
{
        json_t *cases = list_of(json_object_get(json_object_get(config, "provided_data"), "test")), *one;
        size_t i, n = json_array_size(cases);
        bool good = n && n <= CASES_MAX;
        json_array_foreach(cases, i, one) {
                good = good && json_is_string(json_object_get(json_object_get(one, "input"), "stdin")) &&
                       json_is_string(json_object_get(json_object_get(one, "output"), "stdout"));
        }
        if (good)
                return cases;
        json_decref(cases);
        return NULL;
}

/* The reason against a grading, in the words of the service as far as the service has some; NULL: none. */
static json_t *refusal(const struct language *added, const json_t *body, const struct language **ret)
{
        const json_t *config = config_of(body), *logic = json_object_get(config, "custom_extract_logic");
        const char *set = json_string_value(json_object_get(body, "dataset")),
                   *type = json_string_value(json_object_get(config, "dataset_type"));
        const char *language = json_string_value(json_object_get(config, "language"));
        struct csn_error err;
        if (!type)
                return fusion_detail(
                        "no eval class found for dataset %s: there are no data sets here; tests have to come with "
                        "the request, as config.provided_data of dataset_type CommonOJDataset",
                        set);
        if (strcmp(type, "CommonOJDataset") != 0)
                return fusion_detail("eval class %s not found: CommonOJDataset is the only one here", type);
        if (!language)
                return fusion_detail("config.language field must exist for CommonOJDataset, got None");
        if (!json_is_object(json_object_get(config, "provided_data")))
                return fusion_detail(
                        "request.config.provided_data should be a dict: there is no database to look in for %s", set);
        if (logic && !json_is_null(logic))
                return fusion_detail("config.custom_extract_logic is a program for the server itself, and is not run");
        if (lang_find(added, language, ret, &err) < 0)
                return fusion_detail("%s", err.text);
        return NULL;
}

static void convert_valid(const json_t *body, const struct language *language, struct submission *submission,
        struct arena *arena)
{
        const json_t *config = config_of(body);
        struct bytes code =
                compat_program(json_string_value(json_object_get(body, "completion")), language->name, arena);
        struct csn_error err;
        double seconds = 0;
        submission->cases = cases_of(config);
        if (!submission->cases) {
                compat_refuse(&submission->given, MHD_HTTP_BAD_REQUEST,
                        fusion_detail(
                                "config.provided_data.test should be a list of 1 to %d tests, each with input.stdin and "
                                "output.stdout",
                                CASES_MAX));
                return;
        }
        compat_number(json_object_get(config, "run_timeout"), &seconds);
        submission->id = json_incref(json_object_get(body, "id"));
        submission->code = json_stringn(code.bytes, code.len);
        submission->tests = json_array();
        submission->accepted = true;
        submission->all = json_is_true(json_object_get(json_object_get(config, "extra"), "run_all_cases"));
        json_t *ours = json_pack("{s:s, s:O, s:{s:o}}", "language", language->name, "code", submission->code, "limits",
                "wall_ms", compat_scaled(seconds != 0 ? seconds : TIMEOUT_S, 1000, 1, FUSION_WALL_MS_MAX));
        if (compat_decode(ours, arena, &submission->given.request, &err) < 0)
                compat_refuse(&submission->given, MHD_HTTP_BAD_REQUEST, fusion_detail("%s", err.text));
}

void *fusion_convert_submit(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        const struct language *language = NULL;
        struct submission *submission = arena_alloc(arena, sizeof *submission);
        json_t *flaws = body ? flaws_of(body) : fusion_no_json(error), *why = NULL;
        if (json_array_size(flaws))
                compat_refuse(&submission->given, MHD_HTTP_UNPROCESSABLE_CONTENT, fusion_flaws(json_incref(flaws)));
        else if ((why = refusal(context, body, &language)) || !language)
                compat_refuse(&submission->given, MHD_HTTP_BAD_REQUEST, why);
        else
                convert_valid(body, language, submission, arena);
        json_decref(flaws);
        return submission;
}

void fusion_submit(struct http_request *request)
{
        struct submission *submission = parse_of(request)->given;
        if (compat_answer(request, &submission->given))
                return;
        parse_move(parse_of(request), &submission->arena);
        if (!start_next(request, submission))
                submission_free(submission);
}
