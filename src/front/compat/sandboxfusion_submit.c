/*
 * POST /submit of SandboxFusion, as far as it needs no data set: a model's answer, and tests that the request brings
 * with it (CommonOJDataset with provided_data).  The program is taken out of the answer, runs once for each test, and
 * what it prints is compared; all by the rules of that service, for they decide a reward.
 *
 * Tests run one after another, each as a run of its own: so a tenant's quotas hold for them, and the first that fails
 * ends it.
 */
#include "front/compat/sandboxfusion.h"
#include "front/compat/parse.h"

#define TIMEOUT_S 20                       /* run_timeout where none is given */
#define CASES_MAX 1000

/* ---- one test after another ---- */

/* Goes with the last of its runs. */
struct submission {
        size_t runs;
        json_t *body, *cases, *code, *tests;
        const char *language;
        bool all;                          /* also after one has failed */
        bool accepted;
};

static const struct run_responder words;

static json_t *config_of(const json_t *body)
{
        return json_object_get(body, "config");
}

static void submission_free(struct submission *submission)
{
        json_decref(submission->body);
        json_decref(submission->cases);
        json_decref(submission->code);
        json_decref(submission->tests);
        free(submission);
}

static json_t *next_case(const struct submission *submission)
{
        return json_array_get(submission->cases, json_array_size(submission->tests));
}

static json_t *ours_of(const struct submission *submission)
{
        double seconds = 0;
        compat_number(json_object_get(config_of(submission->body), "run_timeout"), &seconds);
        return json_pack("{s:s, s:O, s:O, s:{s:o}}", "language", submission->language, "code", submission->code,
                "stdin", json_object_get(json_object_get(next_case(submission), "input"), "stdin"), "limits", "wall_ms",
                compat_scaled(seconds != 0 ? seconds : TIMEOUT_S, 1000, 1, FUSION_WALL_MS_MAX));
}

/* False: the request has its answer. */
static bool start_next(struct http_request *request, struct submission *submission)
{
        struct csn_error err;
        struct run *run = compat_judged_run(request, ours_of(submission), &err);
        if (!run)
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST, "%s", err.text);
        if (!run || !compat_may_run(request, run))
                return false;
        submission->runs++;
        service_start_run(request, run, &words, submission, false);
        return true;
}

static void answer(struct http_request *request, const struct submission *submission)
{
        http_json(request, MHD_HTTP_OK,
                json_pack("{s:O, s:b, s:O, s:n, s:n, s:O, s:n, s:n}", "id", json_object_get(submission->body, "id"),
                        "accepted", submission->accepted, "extracted_code", submission->code, "full_code", "test_code",
                        "tests", submission->tests, "extracted_type", "extra"));
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct submission *submission = own;
        json_t *test = next_case(submission);
        const char *expected = json_string_value(json_object_get(json_object_get(test, "output"), "stdout"));
        bool passed = fusion_succeeded(result) && compat_alike(&result->stdout, expected);
        json_array_append_new(submission->tests,
                json_pack("{s:b, s:o, s:O}", "passed", passed, "exec_info", fusion_answer(result, json_object()),
                        "test_info", test));
        submission->accepted = submission->accepted && passed;
        if (next_case(submission) && (passed || submission->all))
                start_next(request, submission);
        else
                answer(request, submission);
}

static void on_drop(void *own)
{
        struct submission *submission = own;
        if (--submission->runs == 0)
                submission_free(submission);
}

static const struct run_responder words = { .answer = on_answer, .drop = on_drop };

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

/* As a list, or as the text of one, as tables have it.  The caller's reference; NULL: it is neither. */
static json_t *cases_of(const json_t *config)
{
        json_t *test = json_object_get(json_object_get(config, "provided_data"), "test"), *one;
        json_t *cases = json_is_string(test)
                ? json_loadb(json_string_value(test), json_string_length(test), JSON_ALLOW_NUL, NULL)
                : json_incref(test);
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

/* What hinders it, in the words of the service as far as it has some; false: the request has its answer. */
static bool can_grade(struct http_request *request, const json_t *body, const struct language **ret)
{
        const json_t *config = config_of(body), *logic = json_object_get(config, "custom_extract_logic");
        const char *set = json_string_value(json_object_get(body, "dataset")),
                   *type = json_string_value(json_object_get(config, "dataset_type"));
        const char *language = json_string_value(json_object_get(config, "language"));
        struct csn_error err;
        if (!type)
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST,
                        "no eval class found for dataset %s: there are no data sets here; tests have to come with "
                        "the request, as config.provided_data of dataset_type CommonOJDataset",
                        set);
        else if (strcmp(type, "CommonOJDataset") != 0)
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST,
                        "eval class %s not found: CommonOJDataset is the only one here", type);
        else if (!language)
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST,
                        "config.language field must exist for CommonOJDataset, got None");
        else if (!json_is_object(json_object_get(config, "provided_data")))
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST,
                        "request.config.provided_data should be a dict: there is no database to look in for %s", set);
        else if (logic && !json_is_null(logic))
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST,
                        "config.custom_extract_logic is a program for the server itself, and is not run");
        else if (lang_find(engine_languages(service_of(request)->engine), language, ret, &err) < 0)
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST, "%s", err.text);
        else
                return true;
        return false;
}

static void grade(struct http_request *request, json_t *body, json_t *cases, const struct language *language)
{
        const char *completion = json_string_value(json_object_get(body, "completion"));
        struct bytes code = compat_program(completion, language->name, &request->arena);
        struct submission *submission = mem_alloc(sizeof *submission);
        *submission = (struct submission){ .body = json_incref(body),
                .cases = json_incref(cases),
                .code = json_stringn(code.bytes, code.len),
                .tests = json_array(),
                .language = language->name,
                .accepted = true,
                .all = json_is_true(json_object_get(json_object_get(config_of(body), "extra"), "run_all_cases")) };
        if (!start_next(request, submission))
                submission_free(submission);
}

void fusion_submit(struct http_request *request)
{
        const struct language *language = NULL;
        json_t *body = fusion_body(request), *flaws = body ? flaws_of(body) : NULL, *cases = NULL;
        if (json_array_size(flaws))
                fusion_answer_flaws(request, json_incref(flaws));
        else if (body && can_grade(request, body, &language) && !(cases = cases_of(config_of(body))))
                fusion_answer_detail(request, MHD_HTTP_BAD_REQUEST,
                        "config.provided_data.test should be a list of 1 to %d tests, each with input.stdin and "
                        "output.stdout",
                        CASES_MAX);
        else if (cases)
                grade(request, body, cases, language);
        json_decref(cases);
        json_decref(flaws);
        json_decref(body);
}
