/*
 * The interface of ScaleBox (icip-cas/ScaleBox): POST /common_evaluate_batch, one submission with all cases of its
 * problem.  The problem is graded as a record of the format scalebox; the answer is SandboxFusion's EvalResult.
 *
 * The program is taken out of the completion by the rules of SandboxFusion, on which ScaleBox is built.  A grading
 * without a verdict is 503 with Retry-After, and its tests have the status SandboxError.
 */
#include "front/compat/parse.h"
#include "front/compat/sandboxfusion.h"
#include "front/grading/gradings.h"
#include "front/trainers/trainers.h"

#include <stdio.h>

#define RUN_TIMEOUT_S 10                   /* where the request has no run_timeout */
#define TOTAL_TIMEOUT_S 300                /* where it has no extra.total_timeout */
#define DAY_MS 86400000                    /* the highest case_cpu_ms */

/* A converted body. */
struct scalebox_given {
        struct compat_given given;         /* a refusal, if there is one */
        json_t *request;                   /* for the grading; NULL: taken */
        json_t *id, *tests, *code;         /* tests: test_cases of the request, or NULL */
        bool all;                          /* cases behind a failed one count, too */
};

struct evaluation {
        struct evaluation *next;
        struct service *service;
        struct http_request *request;      /* NULL: it has gone */
        struct grade_job *job;             /* NULL: over */
        struct scalebox_given given;
        char *text;                        /* the answer, from on_encode() */
        struct trace trace;
};

/* The state of the front. */
struct scalebox_state {
        struct evaluation *evaluations;
};

static struct evaluation **evaluations_of(const struct service *service)
{
        struct scalebox_state *state = service_state(service, &scalebox_front);
        return &state->evaluations;
}

/* ---- the body ---- */

static json_t *flaws_of(json_t *body)
{
        static const struct { const char *name; bool is_text; const char *type, *message;
        } rows[] = {
                { "completion", true, "string_type", "Input should be a valid string" },
                { "config", false, "dict_type", "Input should be a valid dictionary" },
        };
        json_t *flaws = json_array();
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                json_t *json = json_object_get(body, rows[i].name);
                bool good = rows[i].is_text ? json_is_string(json) : json_is_object(json);
                if (!json)
                        fusion_add_flaw(flaws, "missing", "Field required", rows[i].name, NULL, json_null());
                else if (!good)
                        fusion_add_flaw(flaws, rows[i].type, rows[i].message, rows[i].name, NULL, json);
        }
        json_t *id = json_object_get(body, "id");
        if (id && !json_is_null(id) && !json_is_string(id) && !json_is_integer(id))
                fusion_add_flaw(flaws, "string_type", "Input should be a valid string", "id", NULL, id);
        return flaws;
}

/* A number of seconds.  False: the member is there, and is no number. */
static bool read_seconds(const json_t *object, const char *name, double *ret)
{
        const json_t *json = json_object_get(object, name);
        return !json || json_is_null(json) || compat_number(json, ret);
}

/* The reason against a grading; NULL: none. */
static json_t *refusal(const struct language *added, const json_t *config, const struct language **ret)
{
        const char *language = json_string_value(json_object_get(config, "language"));
        const json_t *logic = json_object_get(config, "custom_extract_logic"),
                     *data = json_object_get(config, "provided_data");
        double seconds;
        struct csn_error err;
        if (!language)
                return fusion_detail("config.language field must exist, got None");
        if (logic && !json_is_null(logic))
                return fusion_detail("config.custom_extract_logic is a program for the server itself, and is not run");
        if (!json_is_object(data) || !json_object_get(data, "test_cases"))
                return fusion_detail("config.provided_data.test_cases is missing; give {type, input, output}");
        if (!read_seconds(config, "run_timeout", &seconds) || !read_seconds(config, "compile_timeout", &seconds))
                return fusion_detail("config.run_timeout and config.compile_timeout are numbers of seconds");
        if (!read_seconds(json_object_get(config, "extra"), "total_timeout", &seconds))
                return fusion_detail("config.extra.total_timeout is a number of seconds");
        if (lang_find(added, language, ret, &err) < 0)
                return fusion_detail("%s", err.text);
        return NULL;
}

/* The members of `extra` that the format reads. */
static json_t *judge_of(const json_t *extra)
{
        static const char *const names[] = { "special_judge_program", "special_judge_language" };
        json_t *judge = json_object();
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (json_object_get(extra, names[i]))
                        json_object_set(judge, names[i], json_object_get(extra, names[i]));
        return judge;
}

static void convert_valid(const json_t *body, const struct language *language, struct scalebox_given *ret,
        struct arena *arena)
{
        const json_t *config = json_object_get(body, "config"), *extra = json_object_get(config, "extra");
        json_t *data = json_object_get(config, "provided_data"), *id = json_object_get(body, "id");
        struct bytes code =
                compat_program(json_string_value(json_object_get(body, "completion")), language->name, arena);
        double run_s = RUN_TIMEOUT_S, total_s = TOTAL_TIMEOUT_S;
        read_seconds(config, "run_timeout", &run_s);
        read_seconds(extra, "total_timeout", &total_s);
        ret->id = id && !json_is_null(id) ? json_incref(id) : json_integer(0);
        ret->code = json_stringn(code.bytes ? code.bytes : "", code.len);
        ret->tests = json_incref(json_object_get(data, "test_cases"));
        ret->all = json_is_true(json_object_get(extra, "run_all_cases"));
        ret->request = json_pack("{s:s, s:s, s:O, s:{s:O}, s:o, s:o, s:o, s:b, s:b}", "format", "scalebox", "language",
                language->name, "code", ret->code, "provided_data", "test_cases", ret->tests, "extra", judge_of(extra),
                "case_cpu_ms", compat_scaled(run_s, 1000, 1, DAY_MS), "total_cpu_ms",
                compat_scaled(total_s, 1000, 1, DAY_MS), "stop_on_fail", !ret->all, "show_expected", true);
}

static void *convert(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        const struct language *language = NULL;
        struct scalebox_given *given = arena_alloc(arena, sizeof *given);
        json_t *flaws = body ? flaws_of(body) : fusion_no_json(error), *why = NULL;
        if (json_array_size(flaws))
                compat_refuse(&given->given, MHD_HTTP_UNPROCESSABLE_CONTENT, fusion_flaws(json_incref(flaws)));
        else if ((why = refusal(context, json_object_get(body, "config"), &language)) || !language)
                compat_refuse(&given->given, MHD_HTTP_BAD_REQUEST, why);
        else
                convert_valid(body, language, given, arena);
        json_decref(flaws);
        return given;
}

static void *begin(struct http_request *request, struct arena *arena)
{
        (void)arena;
        return (void *)(uintptr_t)engine_languages(service_of(request)->engine);
}

static void drop(void *own)
{
        struct scalebox_given *given = own;
        compat_drop(given);
        json_decref(given->request);
        json_decref(given->id);
        json_decref(given->tests);
        json_decref(given->code);
        given->request = given->id = given->tests = given->code = NULL;
}

/* ---- the answer ---- */

static const char *text_or(const char *text, const char *other)
{
        return text && text[0] ? text : other;
}

/* Whether the program ran to its end, whatever it wrote. */
static bool has_run(const struct case_result *result)
{
        return result->status == case_status_PASSED || result->status == case_status_FAILED ||
                result->status == case_status_UNENCODABLE;
}

/* What went wrong, as its interpreter would write it. */
static json_t *errors_of(const struct grade_result *whole, const struct case_result *result)
{
        const char *text = text_or(result->stderr, has_run(result) ? "" : text_or(result->detail, ""));
        if (result->status == case_status_NOT_RUN && whole->error.type && whole->error.message)
                return json_sprintf("%s: %s", whole->error.type, whole->error.message);
        return json_text(text, strlen(text));
}

static json_t *run_result_of(const struct grade_result *whole, const struct case_result *result, bool is_call)
{
        bool late = result->status == case_status_TIMEOUT;
        const char *output = text_or(result->stdout, is_call ? "" : text_or(result->output, ""));
        return json_pack("{s:s, s:f, s:o, s:o, s:o}", "status", late ? "TimeLimitExceeded" : "Finished",
                "execution_time", HAS(result, case_result, duration_ms) ? result->duration_ms / 1000 : 0.0,
                "return_code", late ? json_null() : json_integer(has_run(result) ? 0 : 1), "stdout",
                json_text(output, strlen(output)), "stderr", errors_of(whole, result));
}

static json_t *exec_info_of(const struct grade_result *whole, const struct case_result *result, bool is_call)
{
        const char *status = whole->mask ? "SandboxError" : has_run(result) ? "Success" : "Failed";
        const char *message = whole->mask && whole->error.message ? whole->error.message : "";
        return json_pack("{s:s, s:o, s:n, s:o, s:n, s:{}}", "status", status, "message",
                json_text(message, strlen(message)), "compile_result", "run_result",
                whole->mask ? json_null() : run_result_of(whole, result, is_call), "executor_pod_name", "files");
}

static bool has_calls(const json_t *tests)
{
        const char *type = json_string_value(json_object_get(tests, "type"));
        return type ? strcmp(type, "stdin_stdout") != 0 : json_string_length(json_object_get(tests, "fn_name")) > 0;
}

/* The case as ScaleBox repeats it. */
static json_t *test_info_of(const json_t *tests, size_t i)
{
        json_t *input = json_array_get(json_object_get(tests, "input"), i),
               *output = json_array_get(json_object_get(tests, "output"), i);
        if (!input || !output)
                return json_null();
        if (has_calls(tests))
                return json_pack("{s:s, s:O, s:O, s:O}", "type", "function_call", "fn_name",
                        json_object_get(tests, "fn_name"), "input", input,
                        "output", output);
        return json_pack("{s:{s:O}, s:{s:O}}", "input", "stdin", input, "output", "stdout", output);
}

/* Without run_all_cases the cases behind the first failed one were not run, and are not told. */
static json_t *tests_of(const struct scalebox_given *given, const struct grade_result *result)
{
        json_t *tests = json_array();
        bool failed = false;
        for (size_t i = 0; i < result->cases_n; i++) {
                const struct case_result *one = &result->cases[i];
                if (failed && !given->all && one->status == case_status_NOT_RUN)
                        continue;
                failed = failed || !one->passed;
                json_array_append_new(tests,
                        json_pack("{s:b, s:o, s:o}", "passed", one->passed && !result->mask, "exec_info",
                                exec_info_of(result, one, has_calls(given->tests)), "test_info",
                                test_info_of(given->tests, i)));
        }
        return tests;
}

/* Perhaps in a helper thread. */
static void on_encode(void *owner, const struct grade_request *request, const struct grade_result *result)
{
        struct evaluation *one = owner;
        struct scalebox_given *given = &one->given;
        (void)request;
        one->text = http_json_text(json_pack("{s:O, s:b, s:O, s:n, s:n, s:o, s:n, s:n}", "id", given->id, "accepted",
                result->all_passed, "extracted_code", given->code, "full_code", "test_code", "tests",
                tests_of(given, result), "extracted_type", "extra"));
        json_decref(given->tests);
        given->tests = NULL;
}

static void evaluation_free(struct evaluation *one)
{
        struct service *service = one->service;
        if (one->request)
                one->request->gone = NULL;
        for (struct evaluation **at = evaluations_of(service); *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        grade_job_free(one->job);
        drop(&one->given);
        free(one->text);
        free(one);
        service->live--;
        if (service_is_idle(service))
                service->idle(service->owner);
}

static void refuse(struct http_request *request, const char *field, const char *text)
{
        bool named = field && field[0];
        http_json(request, MHD_HTTP_BAD_REQUEST, fusion_detail("%s%s%s", named ? field : "", named ? ": " : "", text));
}

static void on_done(void *owner, const struct grade_result *result, const struct csn_error *error)
{
        struct evaluation *one = owner;
        struct http_request *request = one->request;
        char *text = one->text;
        one->text = NULL;
        one->job = NULL;
        evaluation_free(one);
        if (request && error && csn_code_http(error->code) == MHD_HTTP_UNPROCESSABLE_CONTENT) {
                refuse(request, error->field, error->text);
        } else if (request && error) {
                http_fail(request, error);
        } else if (request && result->status == status_BAD_REQUEST) {
                refuse(request, result->error.field, result->error.message);
        } else if (request && result->mask) {
                grade_answer_masked(request, text);
                return;
        } else if (request) {
                http_answer_json(request, MHD_HTTP_OK, text);
                return;
        }
        free(text);
}

static const struct grade_job_events events = { .encode = on_encode, .done = on_done };

static void on_gone(struct http_request *request)
{
        struct evaluation *one = request->owner;
        one->request = NULL;
        grade_job_cancel(one->job);
}

static void scalebox_evaluate(struct http_request *request)
{
        struct service *service = service_of(request);
        struct scalebox_given *given = parse_of(request)->given;
        struct http_limit limit = { 0 };
        struct csn_error err;
        if (compat_answer(request, &given->given))
                return;
        struct evaluation *one = mem_alloc(sizeof *one);
        *one = (struct evaluation){ .next = *evaluations_of(service), .service = service, .request = request,
                .given = *given };
        *evaluations_of(service) = one;
        *given = (struct scalebox_given){ 0 };
        json_t *json = one->given.request;
        one->given.request = NULL;
        trace_below(&request->trace, &one->trace);
        service->live++;
        request->owner = one;
        request->gone = on_gone;
        if (grade_job_start(request, &one->trace, json, &events, one, &one->job, &limit, &err) == 0)
                return;
        one->job = NULL;
        evaluation_free(one);
        service_answer_busy(request, &limit, &err);
}

/* ---- the front ---- */

static void on_stop(struct service *service)
{
        while (*evaluations_of(service))
                evaluation_free(*evaluations_of(service));
}

static const struct http_route routes[] = {
        { "POST", "/common_evaluate_batch", NULL, SCOPE_RUN, BODY_TREE | BODY_MIB(64), scalebox_evaluate,
                "As ScaleBox: judge the program in a completion by all cases of a problem. docs/use/trainers.md has what of it works.",
                NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { scalebox_evaluate, "200:json", "400:json 422:json 429 503:json", "json", NULL, NULL,
                "{\"completion\": \"```python\\nprint(int(input()) + 1)\\n```\", \"config\": {\"language\": \"python\", \"provided_data\": {\"test_cases\": {\"type\": "
                "\"stdin_stdout\", \"input\": [\"1\"], \"output\": [\"2\"]}}}}" },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_tag tags[] = {
        { "/common_evaluate", "ScaleBox", "Requests in the words of ScaleBox." },
        { NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = scalebox_evaluate, .begin = begin, .load = grade_body_load, .convert = convert, .drop = drop },
        { .handle = NULL },
};

const struct front scalebox_front = { .name = "scalebox",
        .routes = routes,
        .notes = notes,
        .converters = converters,
        .tags = tags,
        .state_size = sizeof(struct scalebox_state),
        .stop = on_stop };
