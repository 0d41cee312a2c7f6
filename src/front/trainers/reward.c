/*
 * Reward URLs of trainers: POST /reward/slime ({prompt, response, label}, answered by a number) and POST
 * /reward/openrlhf ({query, prompts, labels}, answered by {"rewards": [...]}).
 *
 * A label is a problem: an object, the JSON text of an object, or the name SET/ID of a stored problem.  A sample
 * without a verdict has no number: the answer is 503 with Retry-After, for all samples of the request.
 */
#include "front/grading/gradings.h"
#include "front/trainers/trainers.h"

#include <stdio.h>

#define SAMPLES_MAX 4096                   /* of one request */
#define LIVE_MAX 64                        /* gradings of one request at the same time */

/* Values of the query, which every sample gets; in the arena of the parse. */
struct asked {
        const char *format, *extract, *prelude, *compare, *instance, *reward;
};

/* A converted body, which the request has until its answer. */
struct reward_given {
        struct csn_error error;            /* code 0: the samples are good */
        bool is_batch, partial;
        json_t **samples;                  /* requests to grade; NULL: taken */
        size_t n;
};

struct batch;

struct sample {
        struct batch *batch;
        struct grade_job *job;             /* NULL: not begun, or over */
        double reward;
};

struct batch {
        struct batch *next;
        struct service *service;
        struct http_request *request;      /* NULL: it has gone, or has its answer */
        struct reward_given *given;        /* valid as long as the request */
        struct sample *samples;
        size_t begun, live;
        struct trace trace;
};

/* The state of the front. */
struct reward_state {
        struct batch *batches;
};

static struct batch **batches_of(const struct service *service)
{
        struct reward_state *state = service_state(service, &reward_front);
        return &state->batches;
}

/* ---- the body ---- */

static void *begin(struct http_request *request, struct arena *arena)
{
        struct asked *asked = arena_alloc(arena, sizeof *asked);
        const struct { const char *name, **value;
        } rows[] = { { "format", &asked->format }, { "extract", &asked->extract }, { "prelude", &asked->prelude },
                { "compare", &asked->compare }, { "instance", &asked->instance }, { "reward", &asked->reward } };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const char *value = http_query(request, rows[i].name);
                *rows[i].value = value ? arena_text(arena, "%s", value) : NULL;
        }
        return asked;
}

/* Records of data sets whose tests stand in one member: a label may be this member alone. */
static const struct { const char *format, *has, *outer, *inner;
} wrapped[] = {
        { "verl", "inputs", "ground_truth", NULL },
        { "verl", "assert_case", "ground_truth", NULL },
        { "lcb", "inputs", "input_output", NULL },
        { "apps", "inputs", "input_output", NULL },
        { "taco", "inputs", "input_output", NULL },
        { "skyrl", "inputs", "reward_spec", "ground_truth" },
        { "primeintellect", "test_cases", "verification_info", NULL },
        { "scalebox", "test_cases", "provided_data", NULL },
};

/* Takes the reference, and gives one. */
static json_t *wrap(json_t *problem, const char *format)
{
        for (size_t i = 0; i < ARRAY_LEN(wrapped); i++) {
                if (strcmp(wrapped[i].format, format) != 0 || !json_object_get(problem, wrapped[i].has) ||
                        json_object_get(problem, wrapped[i].outer))
                        continue;
                problem = wrapped[i].inner ? json_pack("{s:o}", wrapped[i].inner, problem) : problem;
                return json_pack("{s:o}", wrapped[i].outer, problem);
        }
        return problem;
}

/* The problem of a JSON text.  The caller's reference; NULL: *err says why. */
static json_t *read_label(const char *text, size_t len, const char *field, struct csn_error *err)
{
        json_error_t where;
        json_t *json = NULL;
        if (model_is_deeper(text, len, MODEL_DEPTH_MAX))
                err_field(err, field, "the label is nested deeper than %d levels", MODEL_DEPTH_MAX);
        else if (model_has_many_parts(text, len, PARSE_CASES_VALUES_MAX))
                err_field(err, field, "the label has more than %d values and names", PARSE_CASES_VALUES_MAX);
        else if (!(json = model_load(text, len, &where)))
                err_field(err, field, "the label is no JSON: %s (line %d, column %d)", where.text, where.line,
                        where.column);
        return json;
}

/* A request to grade with the problem of a label.  The caller's reference; NULL: *err has the field. */
static json_t *problem_of(json_t *label, const struct asked *asked, const char *field, struct csn_error *err)
{
        const char *text = json_string_value(label);
        size_t blank = text ? strspn(text, " \t\r\n") : 0;
        json_t *problem;
        if (text && text[blank] != '{') {
                struct arena arena = { 0 };
                const char *set, *id;
                int rc = problem_split(text, &arena, &set, &id, err);
                arena_done(&arena);
                if (rc < 0) {
                        err_field(err, field,
                                "the label \"%.60s\" is no problem; a label is an object, its JSON text, or SET/ID", text);
                        return NULL;
                }
                return json_pack("{s:O}", "problem", label);
        }
        problem = text ? read_label(text, json_string_length(label), field, err) : json_incref(label);
        if (text && !problem)
                return NULL;
        if (!json_is_object(problem)) {
                json_decref(problem);
                err_field(err, field, "the label is no problem; a label is an object, its JSON text, or SET/ID");
                return NULL;
        }
        if (asked->format && !json_object_get(problem, "format")) {
                problem = wrap(problem, asked->format);
                json_object_set_new(problem, "format", json_string(asked->format));
        }
        return problem;
}

/* Takes the reference of the response. */
static json_t *sample_of(json_t *label, json_t *response, const struct asked *asked, const char *field,
        struct csn_error *err)
{
        const struct { const char *name, *value;
        } rows[] = { { "extract", asked->extract }, { "prelude", asked->prelude }, { "compare", asked->compare },
                { "instance", asked->instance } };
        json_t *sample = problem_of(label, asked, field, err);
        if (!sample) {
                json_decref(response);
                return NULL;
        }
        json_object_del(sample, "code");
        json_object_set_new(sample, "completion", response);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                if (!rows[i].value)
                        continue;
                if (strcmp(rows[i].name, "compare") == 0 && json_is_string(json_object_get(sample, "checker")))
                        json_object_del(sample, "checker"); /* the old name of compare */
                json_object_set_new(sample, rows[i].name, json_string(rows[i].value));
        }
        return sample;
}

static int read_one(const json_t *body, const struct asked *asked, struct arena *arena, struct reward_given *ret)
{
        struct csn_error *err = &ret->error;
        json_t *response = json_object_get(body, "response"), *label = json_object_get(body, "label");
        if (!json_is_string(response))
                return err_field(err, "/response", "response is missing, or no text; give the answer of the model");
        if (!label || json_is_null(label))
                return err_field(err, "/label", "label is missing; give a problem: an object, its JSON text, or SET/ID");
        ret->samples = arena_alloc(arena, sizeof(json_t *));
        ret->samples[0] = sample_of(label, json_incref(response), asked, "/label", err);
        ret->n = ret->samples[0] ? 1 : 0;
        return ret->samples[0] ? 0 : -err->code;
}

static int check_lists(const json_t *body, struct csn_error *err)
{
        static const struct { const char *name, *field;
        } rows[] = { { "query", "/query" }, { "prompts", "/prompts" }, { "labels", "/labels" }, { "metas", "/metas" } };
        size_t n = json_array_size(json_object_get(body, "query"));
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const json_t *list = json_object_get(body, rows[i].name);
                bool may_lack = strcmp(rows[i].name, "metas") == 0;
                if (may_lack && (!list || json_is_null(list)))
                        continue;
                if (!json_is_array(list))
                        return err_field(err, rows[i].field, "%s is missing, or no array", rows[i].name);
                if (json_array_size(list) != n)
                        return err_field(err, rows[i].field, "%s has %zu members, and query has %zu", rows[i].name,
                                json_array_size(list), n);
        }
        return n <= SAMPLES_MAX ? 0
                                : err_field(err, "/query", "query has %zu members; a request has at most %d samples", n,
                                          SAMPLES_MAX);
}

/* The answer of the model, which follows the prompt in the text.  The caller's reference. */
static json_t *response_of(const json_t *query, const json_t *prompt)
{
        const char *text = json_string_value(query), *begin_ = json_string_value(prompt);
        size_t len = json_string_length(query), skipped = json_string_length(prompt);
        if (!begin_ || skipped > len || memcmp(text, begin_, skipped) != 0)
                skipped = 0;
        return json_stringn(text + skipped, len - skipped);
}

static int read_batch(const json_t *body, const struct asked *asked, struct arena *arena, struct reward_given *ret)
{
        struct csn_error *err = &ret->error;
        char field[64];
        json_t *query;
        size_t i;
        ret->is_batch = true;
        if (check_lists(body, err) < 0)
                return -err->code;
        const json_t *queries = json_object_get(body, "query"), *prompts = json_object_get(body, "prompts"),
                     *labels = json_object_get(body, "labels");
        ret->samples = arena_alloc(arena, (json_array_size(queries) + 1) * sizeof(json_t *));
        json_array_foreach(queries, i, query) {
                snprintf(field, sizeof field, "/query/%zu", i);
                if (!json_is_string(query))
                        return err_field(err, field, "a member of query has to be a text");
                snprintf(field, sizeof field, "/labels/%zu", i);
                ret->samples[i] = sample_of(json_array_get(labels, i), response_of(query, json_array_get(prompts, i)),
                        asked, field, err);
                if (!ret->samples[i])
                        return -err->code;
                ret->n++;
        }
        return 0;
}

static int check_reward(const struct asked *asked, struct reward_given *ret)
{
        ret->partial = asked->reward && strcmp(asked->reward, "partial") == 0;
        if (!asked->reward || ret->partial || strcmp(asked->reward, "binary") == 0)
                return 0;
        return err_field(&ret->error, "/reward", "reward is \"%.40s\"; it has to be binary or partial", asked->reward);
}

static struct reward_given *convert(const json_t *body, const struct csn_error *error, const struct asked *asked,
        struct arena *arena, int (*read)(const json_t *, const struct asked *, struct arena *, struct reward_given *))
{
        struct reward_given *given = arena_alloc(arena, sizeof *given);
        if (!body)
                given->error = *error;
        else if (check_reward(asked, given) == 0)
                read(body, asked, arena, given);
        return given;
}

static void *convert_slime(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        return convert(body, error, context, arena, read_one);
}

static void *convert_openrlhf(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        return convert(body, error, context, arena, read_batch);
}

static void drop(void *own)
{
        struct reward_given *given = own;
        for (size_t i = 0; i < given->n; i++)
                json_decref(given->samples[i]);
        given->n = 0;
}

/* ---- the answer ---- */

static void batch_free(struct batch *batch)
{
        struct service *service = batch->service;
        if (batch->request)
                batch->request->gone = NULL;
        for (struct batch **at = batches_of(service); *at; at = &(*at)->next)
                if (*at == batch) {
                        *at = batch->next;
                        break;
                }
        for (size_t i = 0; i < batch->begun; i++)
                grade_job_free(batch->samples[i].job);
        free(batch->samples);
        free(batch);
        service->live--;
        if (service_is_idle(service))
                service->idle(service->owner);
}

static struct http_request *take_request(struct batch *batch)
{
        struct http_request *request = batch->request;
        batch->request = NULL;
        if (request)
                request->gone = NULL;
        return request;
}

/* No further sample counts. */
static void cancel_all(struct batch *batch)
{
        for (size_t i = 0; i < batch->begun; i++)
                if (batch->samples[i].job)
                        grade_job_cancel(batch->samples[i].job);
}

static void answer_rewards(struct batch *batch)
{
        json_t *rewards = json_array(), *answer;
        for (size_t i = 0; i < batch->given->n; i++)
                json_array_append_new(rewards, json_real(batch->samples[i].reward));
        answer = batch->given->is_batch ? json_pack("{s:O}", "rewards", rewards)
                                        : json_incref(json_array_get(rewards, 0));
        json_decref(rewards);
        http_json(take_request(batch), MHD_HTTP_OK, answer);
}

static void pump(struct batch *batch);

static void refuse(struct batch *batch, unsigned status, const struct http_limit *limit, const struct csn_error *error)
{
        struct http_request *request = take_request(batch);
        if (request && limit && limit->name)
                http_too_many(request, limit, error);
        else if (request)
                http_problem(request, status, error);
        cancel_all(batch);
}

/* The field of a request to grade as the member of the body that has it. */
static void name_field(const struct sample *sample, const char *field, struct csn_error *err)
{
        const struct batch *batch = sample->batch;
        size_t i = (size_t)(sample - batch->samples);
        bool of_response = field && (strcmp(field, "/completion") == 0 || strcmp(field, "/code") == 0);
        char rest[sizeof err->field];
        snprintf(rest, sizeof rest, "%.40s", field && !of_response && strcmp(field, "/problem") != 0 ? field : "");
        if (batch->given->is_batch)
                snprintf(err->field, sizeof err->field, "/%s/%zu%.32s", of_response ? "query" : "labels", i, rest);
        else
                snprintf(err->field, sizeof err->field, "/%s%.32s", of_response ? "response" : "label", rest);
}

static void refuse_label(struct sample *sample, const char *field, const char *text)
{
        struct csn_error err;
        err_field(&err, "", "%s", text);
        name_field(sample, field, &err);
        refuse(sample->batch, MHD_HTTP_BAD_REQUEST, NULL, &err);
}

static void refuse_masked(struct sample *sample, const struct grade_result *result)
{
        struct csn_error err;
        size_t i = (size_t)(sample - sample->batch->samples);
        err_set(&err, CSN_E_BUSY, 0, "sample %zu has no verdict: %s: %.300s", i,
                result->error.code ? result->error.code : status_name(result->status),
                result->error.message ? result->error.message : "the grading was not carried out");
        refuse(sample->batch, MHD_HTTP_SERVICE_UNAVAILABLE, NULL, &err);
}

/* Whether the request is wrong, and not the host. */
static bool is_wrong(const struct csn_error *error)
{
        return csn_code_http(error->code) == MHD_HTTP_UNPROCESSABLE_CONTENT;
}

static void on_done(void *owner, const struct grade_result *result, const struct csn_error *error)
{
        struct sample *sample = owner;
        struct batch *batch = sample->batch;
        sample->job = NULL;
        batch->live--;
        if (batch->request && error && is_wrong(error))
                refuse_label(sample, error->field, error->text);
        else if (batch->request && error)
                refuse(batch, (unsigned)csn_code_http(error->code), NULL, error);
        else if (batch->request && result->mask)
                refuse_masked(sample, result);
        else if (batch->request && result->status == status_BAD_REQUEST)
                refuse_label(sample, result->error.field, result->error.message);
        else if (batch->request)
                sample->reward = batch->given->partial ? result->reward.partial : result->reward.binary;
        pump(batch);
}

static const struct grade_job_events events = { .done = on_done };

static void start_next(struct batch *batch)
{
        struct sample *sample = &batch->samples[batch->begun];
        json_t *json = batch->given->samples[batch->begun];
        struct http_limit limit = { 0 };
        struct csn_error err;
        batch->given->samples[batch->begun++] = NULL;
        if (grade_job_start(batch->request, &batch->trace, json, &events, sample, &sample->job, &limit, &err) == 0) {
                batch->live++;
                return;
        }
        sample->job = NULL;
        if (is_wrong(&err))
                refuse_label(sample, err.field, err.text);
        else
                refuse(batch, (unsigned)csn_code_http(err.code), &limit, &err);
}

/* Begin samples, as many as may go on; at the end answer, and free the batch. */
static void pump(struct batch *batch)
{
        while (batch->request && batch->live < LIVE_MAX && batch->begun < batch->given->n)
                start_next(batch);
        if (batch->live)
                return;
        if (batch->request)
                answer_rewards(batch);
        batch_free(batch);
}

static void on_gone(struct http_request *request)
{
        struct batch *batch = request->owner;
        take_request(batch);
        cancel_all(batch);
}

static void handle(struct http_request *request)
{
        struct service *service = service_of(request);
        struct reward_given *given = parse_of(request)->given;
        if (given->error.code) {
                http_problem(request, MHD_HTTP_BAD_REQUEST, &given->error);
                return;
        }
        struct batch *batch = mem_alloc(sizeof *batch);
        *batch = (struct batch){ .next = *batches_of(service), .service = service, .request = request, .given = given };
        *batches_of(service) = batch;
        batch->samples = mem_alloc((given->n + 1) * sizeof *batch->samples);
        for (size_t i = 0; i < given->n; i++)
                batch->samples[i].batch = batch;
        trace_below(&request->trace, &batch->trace);
        service->live++;
        request->owner = batch;
        request->gone = on_gone;
        pump(batch);
}

static void reward_slime(struct http_request *request)
{
        handle(request);
}

static void reward_openrlhf(struct http_request *request)
{
        handle(request);
}

/* ---- the front ---- */

static void on_stop(struct service *service)
{
        while (*batches_of(service))
                batch_free(*batches_of(service));
}

#define QUERY "format extract prelude compare instance reward=binary|partial"
#define LABEL "{\\\"function\\\": \\\"f\\\", \\\"cases\\\": [{\\\"args\\\": [1], \\\"expected\\\": 2}]}"

static const struct http_route routes[] = {
        { "POST", "/reward/slime", QUERY, SCOPE_RUN, BODY_TREE | BODY_MIB(64), reward_slime,
                "As a remote reward of slime: the reward of one answer, as a number. A grading without a verdict is 503.",
                NULL, NULL },
        { "POST", "/reward/openrlhf", QUERY, SCOPE_RUN, BODY_TREE | BODY_MIB(64), reward_openrlhf,
                "As a remote reward of OpenRLHF: the rewards of many answers. One grading without a verdict makes it 503.",
                NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { reward_slime, "200:json", "400 429 503", "json", NULL, NULL,
                "{\"prompt\": \"Write f.\", \"response\": \"```python\\ndef f(x): return x + 1\\n```\", \"label\": \"" LABEL "\"}" },
        { reward_openrlhf, "200:json", "400 429 503", "json", NULL, NULL,
                "{\"query\": [\"Write f.```python\\ndef f(x): return x + 1\\n```\"], \"prompts\": [\"Write f.\"], \"labels\": [\"" LABEL "\"]}" },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

#define TEXT_SCHEMA "{\"type\": \"string\"}"

static const struct front_value parameters[] = {
        { "extract", TEXT_SCHEMA, NULL, false, "Which part of the answer is the program, as in a request to grade." },
        { "prelude", TEXT_SCHEMA, NULL, false, "Imports before the program, as in a request to grade." },
        { "compare", TEXT_SCHEMA, NULL, false, "How outputs and values are compared, as in a request to grade." },
        { "instance", TEXT_SCHEMA, NULL, false, "Whether each case has a process of its own, as in a request to grade." },
        { "reward", TEXT_SCHEMA, NULL, false, "`binary` (default): 1 if all cases have passed, else 0; `partial`: the part that has passed." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { "/reward", "Rewards", "Reward URLs of trainers." },
        { NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = reward_slime, .begin = begin, .load = grade_body_load, .convert = convert_slime, .drop = drop },
        { .handle = reward_openrlhf,
                .begin = begin,
                .load = grade_body_load,
                .convert = convert_openrlhf,
                .drop = drop },
        { .handle = NULL },
};

const struct front reward_front = { .name = "reward",
        .routes = routes,
        .notes = notes,
        .converters = converters,
        .parameters = parameters,
        .tags = tags,
        .state_size = sizeof(struct reward_state),
        .stop = on_stop };
