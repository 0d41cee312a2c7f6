/*
 * The interface of Judge0 (judge0/judge0, CE 1.13): submissions, alone or in batches, waited for or asked for by their
 * token, and lists for its clients: languages, statuses, configuration.
 *
 * A token is the id of a run, kept like a run of respond-async.  Members of a submission without a place in our record,
 * such as the expected output, go into a label of the record; so a submission outlives the daemon as its record does.
 */
#include "net/http_headers.h"
#include "front/compat/compat.h"
#include "front/compat/judge0.h"
#include "front/compat/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#define SPEAKS "1.13.1"                    /* the version of the interface */
#define BATCH_MAX 20
#define ARGUMENTS_MAX 512
#define KB 1024.0

/* ---- languages ---- */

static const struct language *added_of(const struct http_request *request)
{
        return engine_languages(service_of(request)->engine);
}

/* A language's place in the table; -1: not run on this host.  added: languages beside the built-in languages. */
static int language_at(const struct language *added, double id)
{
        const struct language *language;
        for (size_t i = 0; i < JUDGE0_LANGUAGES; i++)
                if (judge0_languages_table[i].id == id)
                        return lang_find(added, judge0_languages_table[i].name, &language, NULL) == 0 ? (int)i : -1;
        return -1;
}

static void judge0_languages(struct http_request *request)
{
        json_t *list = json_array();
        for (size_t i = 0; i < JUDGE0_LANGUAGES; i++)
                if (language_at(added_of(request), judge0_languages_table[i].id) >= 0)
                        json_array_append_new(list,
                                json_pack("{s:i, s:s}", "id", judge0_languages_table[i].id, "name",
                                        judge0_languages_table[i].title));
        http_json(request, MHD_HTTP_OK, list);
}

static void answer_nothing_there(struct http_request *request)
{
        http_json(request, MHD_HTTP_NOT_FOUND,
                json_pack("{s:i, s:s}", "status", MHD_HTTP_NOT_FOUND, "error", "Not Found"));
}

static void judge0_language(struct http_request *request)
{
        uint64_t id;
        int at = header_event(http_part(request, 0), &id) ? language_at(added_of(request), (double)id) : -1;
        if (at < 0)
                answer_nothing_there(request);
        else
                http_json(request, MHD_HTTP_OK,
                        json_pack("{s:i, s:s, s:b}", "id", judge0_languages_table[at].id, "name",
                                judge0_languages_table[at].title, "is_archived", 0));
}

/* ---- statuses ---- */

static void judge0_statuses(struct http_request *request)
{
        json_t *list = json_array();
        for (int id = JUDGE0_STATUS_FIRST; id <= JUDGE0_STATUS_LAST; id++)
                json_array_append_new(list, judge0_status(id));
        http_json(request, MHD_HTTP_OK, list);
}

/* ---- limits ---- */

enum { CPU_TIME, CPU_EXTRA, WALL_TIME, MEMORY, STACK, PROCESSES, FILE_SIZE, RUNS, LIMITS };

struct limit {
        const char *name;
        double least, most, otherwise;
        bool whole;
};

/* Values for a converter. */
struct judge0_context {
        const struct language *added; /* to the built-in languages */
        struct limits most;
        struct limit limits[LIMITS];
        bool base64; /* texts are in base64 */
};

/* Times are seconds and sizes kB; each limit has its default and its maximum. */
static void limits_of(const struct http_request *request, struct limit limits[static LIMITS])
{
        const struct limits *usual = &service_of(request)->settings->limits,
                *most = &service_of(request)->settings->ceilings;
        const struct limit rows[LIMITS] = {
                [CPU_TIME] = { "cpu_time_limit", 0, (double)most->cpu_ms / 1000, 5, false },
                [CPU_EXTRA] = { "cpu_extra_time", 0, 5, 1, false },
                [WALL_TIME] = { "wall_time_limit", 1, (double)most->wall_ms / 1000, 10, false },
                [MEMORY] = { "memory_limit", 2048, floor((double)most->memory_bytes / KB),
                        floor((double)usual->memory_bytes / KB), true },
                [STACK] = { "stack_limit", 0, 128000, 64000, true },
                [PROCESSES] = { "max_processes_and_or_threads", 1, (double)most->pids, (double)usual->pids, true },
                [FILE_SIZE] = { "max_file_size", 0, floor((double)most->output_bytes / KB), 1024, true },
                [RUNS] = { "number_of_runs", 1, 1, 1, true },
        };
        memcpy(limits, rows, sizeof rows);
        for (size_t i = 0; i < LIMITS; i++)
                if (limits[i].otherwise > limits[i].most)
                        limits[i].otherwise = limits[i].most;
}

static json_t *number_json(const struct limit *limit, double number)
{
        return limit->whole ? json_integer((json_int_t)number) : json_real(number);
}

static void judge0_config(struct http_request *request)
{
        static const char *const no[] = {
                "maintenance_mode",
                "enable_compiler_options",
                "enable_submission_delete",
                "enable_callbacks",
                "enable_additional_files",
                "enable_per_process_and_thread_time_limit",
                "allow_enable_per_process_and_thread_time_limit",
                "enable_per_process_and_thread_memory_limit",
                "allow_enable_per_process_and_thread_memory_limit",
                "redirect_stderr_to_stdout",
                "use_docs_as_homepage",
                "allow_enable_network",
                "enable_network",
        };
        const struct engine_settings *engine = &service_of(request)->settings->engine;
        struct limit limits[LIMITS];
        json_t *json = json_pack("{s:b, s:b, s:b, s:b, s:[], s:i, s:i, s:i, s:i, s:i, s:I}", "enable_wait_result", 1,
                "enable_command_line_arguments", 1, "enable_batched_submissions", 1, "disable_implicit_base64_encoding",
                1, "allowed_languages_for_compile_options", "max_submission_batch_size", BATCH_MAX,
                "callbacks_max_tries", 0, "callbacks_timeout", 0, "max_extract_size", 0, "submission_cache_duration", 0,
                "max_queue_size", (json_int_t)engine->queue_max);
        limits_of(request, limits);
        for (size_t i = 0; i < LIMITS; i++) {
                char name[60];
                snprintf(name, sizeof name, "max_%s", limits[i].name);
                json_object_set_new(json, limits[i].name, number_json(&limits[i], limits[i].otherwise));
                json_object_set_new(json, name, number_json(&limits[i], limits[i].most));
        }
        for (size_t i = 0; i < ARRAY_LEN(no); i++)
                json_object_set_new(json, no[i], json_false());
        http_json(request, MHD_HTTP_OK, json);
}

static void judge0_about(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK, json_pack("{s:s, s:s}", "version", SPEAKS, "maintainer", "Caisson"));
}

/* ---- flaws of a submission ---- */

/* {"field": ["message"]}, as in ActiveModel. */
static void add_flaw(json_t *flaws, const char *field, const char *fmt, ...) PRINTF_LIKE(3, 4);

static void add_flaw(json_t *flaws, const char *field, const char *fmt, ...)
{
        json_t *list = json_object_get(flaws, field);
        va_list args;
        if (!list)
                json_object_set_new(flaws, field, list = json_array());
        va_start(args, fmt);
        json_array_append_new(list, json_vsprintf(fmt, args));
        va_end(args);
}

static bool is_given(const json_t *json)
{
        return json && !json_is_null(json) && !(json_is_string(json) && !json_string_length(json));
}

static void check_limit(json_t *flaws, const struct limit *limit, const json_t *json)
{
        double number;
        if (!is_given(json))
                return;
        if (!compat_number(json, &number))
                add_flaw(flaws, limit->name, "is not a number");
        else if (number < limit->least)
                add_flaw(flaws, limit->name, "must be greater than or equal to %g", limit->least);
        else if (number > limit->most)
                add_flaw(flaws, limit->name, "must be less than or equal to %.15g", limit->most);
}

static void check_text(json_t *flaws, const json_t *asked, const char *name)
{
        const json_t *json = json_object_get(asked, name);
        if (json && !json_is_null(json) && !json_is_string(json))
                add_flaw(flaws, name, "is not a text");
}

static bool is_on(const json_t *json)
{
        const char *text = json_string_value(json);
        return json_is_true(json) || (json_is_integer(json) && json_integer_value(json)) ||
                (text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0));
}

/* Options of Judge0, forbidden here; the messages are Judge0's own for forbidden options. */
static void check_options(json_t *flaws, const json_t *asked)
{
        static const struct { const char *name, *why; bool flag; } rows[] = {
                { "compiler_options", "setting compiler options is not allowed", false },
                { "callback_url", "setting callback is not allowed", false },
                { "additional_files", "setting additional files is not allowed", false },
                { "enable_network", "enabling network is not allowed", true },
                { "redirect_stderr_to_stdout", "this option cannot be enabled", true },
                { "enable_per_process_and_thread_time_limit", "this option cannot be enabled", true },
                { "enable_per_process_and_thread_memory_limit", "this option cannot be enabled", true },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const json_t *json = json_object_get(asked, rows[i].name);
                if (rows[i].flag ? is_on(json) : is_given(json))
                        add_flaw(flaws, rows[i].name, "%s", rows[i].why);
        }
}

static void check_language(json_t *flaws, const struct language *added, const json_t *json)
{
        double id;
        if (!is_given(json))
                add_flaw(flaws, "language_id", "can't be blank");
        else if (!compat_number(json, &id))
                add_flaw(flaws, "language_id", "is not a number");
        else if (language_at(added, id) < 0)
                add_flaw(flaws, "language_id", "language with id %.15g doesn't exist", id);
}

static json_t *flaws_of(const struct judge0_context *context, const json_t *asked)
{
        static const char *const texts[] = { "source_code", "stdin", "expected_output", "command_line_arguments" };
        json_t *flaws = json_object();
        if (!is_given(json_object_get(asked, "source_code")))
                add_flaw(flaws, "source_code", "can't be blank");
        check_language(flaws, context->added, json_object_get(asked, "language_id"));
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                check_text(flaws, asked, texts[i]);
        if (json_string_length(json_object_get(asked, "command_line_arguments")) > ARGUMENTS_MAX)
                add_flaw(flaws, "command_line_arguments", "is too long (maximum is %d characters)", ARGUMENTS_MAX);
        for (size_t i = 0; i < LIMITS; i++)
                check_limit(flaws, &context->limits[i], json_object_get(asked, context->limits[i].name));
        check_options(flaws, asked);
        return flaws;
}

/* ---- a submission as a request of ours ---- */

static json_t *arguments_of(const json_t *line)
{
        struct arena arena = { 0 };
        json_t *list = json_array();
        size_t n = 0;
        char **compat_of = is_given(line) ? compat_split(json_string_value(line), &arena, &n) : NULL;
        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json_text(compat_of[i], strlen(compat_of[i])));
        arena_done(&arena);
        return list;
}

static double limit_asked(const struct limit *limit, const json_t *asked)
{
        double number = limit->otherwise;
        const json_t *json = json_object_get(asked, limit->name);
        if (is_given(json))
                compat_number(json, &number);
        return number;
}

/* The extra time is for the program to end by itself; judge() finds the excess all the same. */
static json_t *our_limits(const struct judge0_context *context, const json_t *asked)
{
        const struct limits *most = &context->most;
        double n[LIMITS];
        for (size_t i = 0; i < LIMITS; i++)
                n[i] = limit_asked(&context->limits[i], asked);
        double cpu = n[CPU_TIME] > 0 ? n[CPU_TIME] + n[CPU_EXTRA] : 0;
        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s}", "cpu_ms", compat_scaled(cpu, 1000, 0, most->cpu_ms),
                "wall_ms", compat_scaled(n[WALL_TIME], 1000, 1, most->wall_ms), "memory_bytes",
                compat_scaled(n[MEMORY], KB, 4 * MIB, most->memory_bytes), "pids",
                compat_scaled(n[PROCESSES], 1, 1, most->pids), "output_bytes",
                compat_scaled(n[FILE_SIZE], KB, 0, most->output_bytes), "output_action", "kill");
}

static bool is_base64_encoded(const struct http_request *request)
{
        const char *given = http_query(request, "base64_encoded");
        return given && strcmp(given, "true") == 0;
}

static json_t *as_base64(const json_t *text, bool base64)
{
        struct arena arena = { 0 };
        if (!json_is_string(text))
                return json_null();
        if (base64)
                return compat_base64(text);
        json_t *json = json_string(model_base64(&arena, json_string_value(text), json_string_length(text)));
        arena_done(&arena);
        return json;
}

/* Members of a submission missing in its record, as the text of a label. */
static json_t *label_of(const struct judge0_context *context, const json_t *asked)
{
        static const char *const texts[] = { "source_code", "stdin", "expected_output" };
        const json_t *arguments = json_object_get(asked, "command_line_arguments");
        const struct limit *limits = context->limits;
        char created[40];
        double id;
        json_t *about = json_object();
        time_print(time_now_ms(), created, sizeof created);
        compat_number(json_object_get(asked, "language_id"), &id);
        json_object_set_new(about, "language_id", json_integer((json_int_t)id));
        json_object_set_new(about, "created_at", json_string(created));
        json_object_set_new(about, "command_line_arguments",
                is_given(arguments) ? json_deep_copy(arguments) : json_null());
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                json_object_set_new(about, texts[i], as_base64(json_object_get(asked, texts[i]), context->base64));
        for (size_t i = 0; i < LIMITS; i++)
                json_object_set_new(about, limits[i].name, number_json(&limits[i], limit_asked(&limits[i], asked)));
        char *text = json_dumps(about, JSON_COMPACT);
        json_t *json = json_string(text);
        free(text);
        json_decref(about);
        return json;
}

static json_t *ours_of(const struct judge0_context *context, const json_t *asked)
{
        double id;
        const json_t *arguments = json_object_get(asked, "command_line_arguments"),
                     *input = json_object_get(asked, "stdin");
        compat_number(json_object_get(asked, "language_id"), &id);
        return json_pack("{s:s, s:o, s:o, s:o, s:o, s:{s:o}}", "language",
                judge0_languages_table[language_at(context->added, id)].name, "code_base64",
                as_base64(json_object_get(asked, "source_code"), context->base64), "stdin_base64",
                is_given(input) ? as_base64(input, context->base64) : json_string(""), "args", arguments_of(arguments),
                "limits", our_limits(context, asked), "labels", JUDGE0_LABEL, label_of(context, asked));
}

static bool is_base64(const json_t *text)
{
        struct arena arena = { 0 };
        struct bytes bytes;
        bool good = model_unbase64(&arena, json_string_value(text), json_string_length(text), &bytes);
        arena_done(&arena);
        return good;
}

/* Decode a submission.  Returns the flaws of the submission, the caller's reference; NULL: there are none. */
static json_t *decode(const struct judge0_context *context, const json_t *asked, struct arena *arena,
        struct run_request *ret)
{
        struct csn_error err;
        json_t *flaws = flaws_of(context, asked),
               *expected = as_base64(json_object_get(asked, "expected_output"), context->base64);
        if (json_is_string(expected) && !is_base64(expected))
                add_flaw(flaws, "expected_output", "is not base64");
        json_decref(expected);
        if (!json_object_size(flaws) && compat_decode(ours_of(context, asked), arena, ret, &err) < 0)
                add_flaw(flaws,
                        strncmp(err.field, "/code", 5) == 0            ? "source_code"
                                : strncmp(err.field, "/stdin", 6) == 0 ? "stdin"
                                                                       : "base",
                        "%s", err.text);
        if (json_object_size(flaws))
                return flaws;
        json_decref(flaws);
        return NULL;
}

static void *begin(struct http_request *request, struct arena *arena)
{
        struct judge0_context *context = arena_alloc(arena, sizeof *context);
        context->added = added_of(request);
        context->most = service_of(request)->settings->ceilings;
        context->base64 = is_base64_encoded(request);
        limits_of(request, context->limits);
        return context;
}

static void refuse_body(struct compat_given *given, const struct csn_error *error)
{
        compat_refuse(given, MHD_HTTP_BAD_REQUEST,
                json_pack("{s:i, s:o}", "status", MHD_HTTP_BAD_REQUEST, "error",
                        json_text(error->text, strlen(error->text))));
}

/* ---- requests ---- */

static void answer_error(struct http_request *request, unsigned status, const char *text)
{
        http_json(request, status, json_pack("{s:s}", "error", text));
}

/* False: the request has its answer. */
static bool take_form(struct http_request *request, struct judge0_form *ret)
{
        struct buf wrong;
        *ret = (struct judge0_form){ .base64 = is_base64_encoded(request), .fields = http_query(request, "fields") };
        if (ret->fields && !ret->fields[0])
                ret->fields = NULL;
        buf_init(&wrong, 4 * KIB);
        for (const char *at = ret->fields; at && *at; at += strcspn(at, ","), at += *at == ',') {
                const char *name = arena_copy(&request->arena, at, strcspn(at, ","));
                if (!judge0_has_field(name))
                        buf_printf(&wrong, "%s%s", wrong.len ? ", " : "", name);
        }
        bool good = !wrong.len;
        if (!good)
                answer_error(request, MHD_HTTP_BAD_REQUEST,
                        arena_text(&request->arena, "invalid fields: [%s]", wrong.bytes));
        buf_done(&wrong);
        return good;
}

#define NOT_TEXT "some attributes for this submission cannot be converted to UTF-8, use base64_encoded=true query parameter"

/* A submission with a waiting client; in the run's arena. */
struct waited {
        struct judge0_form form;
        char *text;                        /* of the answer */
};

static void on_encode(void *own, const struct run_result *result)
{
        struct waited *waited = own;
        struct judge0_form *form = &waited->form;
        json_t *answer = judge0_submission_of(form, result->id, "over", result->labels, result->labels_n, result);
        if (form->broken) {
                json_decref(answer);
                answer = json_pack("{s:s, s:s}", "error", NOT_TEXT, "token", result->id);
        }
        waited->text = http_json_text(answer);
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct waited *waited = own;
        (void)result;
        http_answer_json(request, MHD_HTTP_CREATED, waited->text);
        waited->text = NULL;
}

static void on_drop(void *own)
{
        struct waited *waited = own;
        free(waited->text);
}

static const struct run_responder words = { .encode = on_encode, .answer = on_answer, .drop = on_drop };

static void *convert(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        struct compat_given *given = arena_alloc(arena, sizeof *given);
        json_t *flaws = body ? decode(context, body, arena, &given->request) : NULL;
        if (!body)
                refuse_body(given, error);
        else if (flaws)
                compat_refuse(given, MHD_HTTP_UNPROCESSABLE_CONTENT, flaws);
        return given;
}

static void judge0_submit(struct http_request *request)
{
        const char *wait = http_query(request, "wait");
        bool waits = wait && strcmp(wait, "true") == 0;
        struct compat_given *given = parse_of(request)->given;
        struct judge0_form form;
        if (!take_form(request, &form) || compat_answer(request, given))
                return;
        struct run *run = compat_run(request, &given->request);
        if (!compat_may_run(request, run))
                return;
        parse_move(parse_of(request), run_arena(run));
        struct waited *own = arena_alloc(run_arena(run), sizeof *own);
        own->form = form;
        if (form.fields)   /* the request may go before the run ends */
                own->form.fields = arena_text(run_arena(run), "%s", form.fields);
        service_start_run(request, run, waits ? &words : NULL, own, true);
        if (!waits)
                http_json(request, MHD_HTTP_CREATED, json_pack("{s:s}", "token", run_id(run)));
}

/* Answer with a text.  The memory of the text becomes the callee's. */
static void answer_text(struct http_request *request, struct buf *text)
{
        http_answer_json(request, MHD_HTTP_OK, text->bytes);
        *text = (struct buf){ 0 };
}

static void answer_submission(struct http_request *request, const struct judge0_form *form, struct buf *text)
{
        if (strcmp(text->bytes, "null") == 0)
                answer_nothing_there(request);
        else if (form->broken)
                answer_error(request, MHD_HTTP_BAD_REQUEST, NOT_TEXT);
        else
                answer_text(request, text);
}

static void judge0_submission(struct http_request *request)
{
        struct judge0_form form;
        const char *token = http_part(request, 0);
        if (take_form(request, &form))
                judge0_look_up(request, &form, "", &token, 1, answer_submission);
}

/* ---- batches ---- */

/* The error of a batch of n submissions; NULL: none. */
static const char *batch_flaw(size_t n)
{
        return n > BATCH_MAX ? "number of submissions in a batch should be less than or equal to 20"
                : n == 0     ? "there should be at least one submission in a batch"
                             : NULL;
}

struct member {
        struct arena arena; /* the memory of the request; a run takes the arena over */
        struct run_request request;
        json_t *flaws; /* NULL: the request can run */
};

/* The converted body of a batch.  A step of the loop begins one run, for each takes up to some milliseconds. */
struct batch {
        struct compat_given given; /* an answer, or nothing */
        struct member members[BATCH_MAX];
        size_t n, at; /* members; members begun or refused */
        struct http_request *request;
        struct timer timer;
        json_t *answers;
        bool started;
};

static void *convert_batch(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        struct batch *batch = arena_alloc(arena, sizeof *batch);
        json_t *all = json_object_get(body, "submissions"), *one;
        const char *flaw = batch_flaw(json_array_size(all));
        size_t i;
        if (!body)
                refuse_body(&batch->given, error);
        else if (flaw)
                compat_refuse(&batch->given, MHD_HTTP_BAD_REQUEST, json_pack("{s:s}", "error", flaw));
        if (batch->given.status)
                return batch;
        json_array_foreach(all, i, one) {
                struct member *member = &batch->members[batch->n++];
                member->flaws = decode(context, one, &member->arena, &member->request);
        }
        return batch;
}

static void drop_batch(void *given)
{
        struct batch *batch = given;
        compat_drop(batch);
        json_decref(batch->answers);
        for (size_t i = 0; i < batch->n; i++) {
                json_decref(batch->members[i].flaws);
                arena_done(&batch->members[i].arena);
        }
}

/* A token, or the flaws of this submission; when there is no room for the first run, there is for none. */
static json_t *start_one(struct batch *batch, struct member *member)
{
        struct http_limit limit;
        struct csn_error err = { 0 };
        if (member->flaws)
                return json_incref(member->flaws);
        struct run *run = compat_run(batch->request, &member->request);
        if (service_may_run(batch->request, run, &limit, &err) < 0) {
                run_free(run);
                return json_pack("{s:o}", "error", json_text(err.text, strlen(err.text)));
        }
        arena_join(run_arena(run), &member->arena);
        service_start_run(batch->request, run, NULL, NULL, true);
        batch->started = true;
        return json_pack("{s:s}", "token", run_id(run));
}

static void on_next(struct timer *timer)
{
        struct batch *batch = timer->owner;
        struct http_request *request = batch->request;
        json_array_append_new(batch->answers, start_one(batch, &batch->members[batch->at++]));
        if (batch->at < batch->n) {
                loop_timer(service_of(request)->loop, timer, 0);
                return;
        }
        request->gone = NULL;
        http_json(request, batch->started ? MHD_HTTP_CREATED : MHD_HTTP_UNPROCESSABLE_CONTENT,
                json_incref(batch->answers));
}

/* Started runs go on, as after the answer. */
static void on_batch_gone(struct http_request *request)
{
        struct batch *batch = request->owner;
        loop_untimer(service_of(request)->loop, &batch->timer);
}

static void judge0_submit_batch(struct http_request *request)
{
        struct batch *batch = parse_of(request)->given;
        struct judge0_form form;
        if (!take_form(request, &form) || compat_answer(request, &batch->given))
                return;
        batch->request = request;
        batch->timer = (struct timer){ .fired = on_next, .owner = batch };
        batch->answers = json_array();
        request->owner = batch;
        request->gone = on_batch_gone;
        loop_timer(service_of(request)->loop, &batch->timer, 0);
}

static void answer_batch(struct http_request *request, const struct judge0_form *form, struct buf *text)
{
        if (form->broken) {
                answer_error(request, MHD_HTTP_BAD_REQUEST,
                        "some attributes for one or more submissions cannot be converted to UTF-8, use base64_encoded=true "
                        "query parameter");
                return;
        }
        buf_add(text, "]}", 2);
        answer_text(request, text);
}

static void judge0_batch(struct http_request *request)
{
        const char *header = http_header(request, "tokens"), *list = header ? header : http_query(request, "tokens");
        const char *tokens[BATCH_MAX];
        struct judge0_form form;
        size_t n = 0;
        for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
                if (n++ < BATCH_MAX)
                        tokens[n - 1] = arena_copy(&request->arena, at, strcspn(at, ","));
        if (!take_form(request, &form))
                return;
        if (batch_flaw(n))
                answer_error(request, MHD_HTTP_BAD_REQUEST, batch_flaw(n));
        else
                judge0_look_up(request, &form, "{\"submissions\":[", tokens, n, answer_batch);
}

/* ---- the front ---- */

#define TEXT_SCHEMA "{\"type\": \"string\"}"

static const struct http_route routes[] = {
        { "POST", "/submissions/batch", "base64_encoded *", SCOPE_RUN, BODY_TREE | BODY_MIB(16), judge0_submit_batch,
          "As Judge0: start up to 20 submissions. The answer has their tokens.",
          NULL, NULL },
        { "GET", "/submissions/batch", "tokens base64_encoded fields *", SCOPE_READ, BODY_NONE, judge0_batch,
          "As Judge0: submissions by their tokens.", NULL, NULL },
        { "POST", "/submissions", "base64_encoded wait fields *", SCOPE_RUN, BODY_TREE | BODY_MIB(16), judge0_submit,
          "As Judge0: start a submission. The answer has its token, with `?wait=true` what became of it.", NULL, NULL },
        { "GET", "/submissions/{token}", "base64_encoded fields *", SCOPE_READ, BODY_NONE, judge0_submission,
          "As Judge0: a submission by its token.", NULL, NULL },
        { "GET", "/languages", "*", SCOPE_READ, BODY_NONE, judge0_languages,
          "As Judge0: the languages that run here, by its ids.", NULL, NULL },
        { "GET", "/languages/{id}", "*", SCOPE_READ, BODY_NONE, judge0_language, "As Judge0: one of them.", NULL,
          NULL },
        { "GET", "/statuses", "*", SCOPE_READ, BODY_NONE, judge0_statuses,
          "As Judge0: what a submission's status can be.", NULL, NULL },
        { "GET", "/config_info", "*", SCOPE_READ, BODY_NONE, judge0_config,
          "As Judge0: limits, and what is switched off.", NULL, NULL },
        { "GET", "/about", "*", SCOPE_READ, BODY_NONE, judge0_about, "As Judge0: the version whose words these are.",
          NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { judge0_submit_batch, "201:json", "400:json 422:json 429 503", "json", NULL, NULL,
          "{\"submissions\": [{\"language_id\": 71, \"source_code\": \"print(6 * 7)\"}]}" },
        { judge0_batch, "200:json", "400:json", NULL, NULL, NULL, NULL },
        { judge0_submit, "201:json", "400:json 422:json 429 503", "json", NULL, NULL,
          "{\"language_id\": 71, \"source_code\": \"print(6 * 7)\"}" },
        { judge0_submission, "200:json", "400:json 404:json", NULL, NULL, NULL, NULL },
        { judge0_languages, "200:json", NULL, NULL, NULL, NULL, NULL },
        { judge0_language, "200:json", "404:json", NULL, NULL, NULL, NULL },
        { judge0_statuses, "200:json", NULL, NULL, NULL, NULL, NULL },
        { judge0_config, "200:json", NULL, NULL, NULL, NULL, NULL },
        { judge0_about, "200:json", NULL, NULL, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_value parameters[] = {
        { "{token}", TEXT_SCHEMA, NULL, true, "The token of the submission." },
        { "base64_encoded", TEXT_SCHEMA, NULL, false, "`true`: texts are in base64." },
        { "tokens", TEXT_SCHEMA, "$TOKEN", false, "Tokens with commas between." },
        { "fields", TEXT_SCHEMA, NULL, false, "Members of the answer, with commas between; `*` is all." },
        { "wait", TEXT_SCHEMA, NULL, false, "`true`: the answer comes at the end of the submission." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { "/submissions", "Judge0", "Requests in the words of Judge0." },
        { "/languages", "Judge0", NULL },
        { "/statuses", "Judge0", NULL },
        { "/config_info", "Judge0", NULL },
        { "/about", "Judge0", NULL },
        { NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = judge0_submit, .begin = begin, .convert = convert, .drop = compat_drop },
        { .handle = judge0_submit_batch, .begin = begin, .convert = convert_batch, .drop = drop_batch },
        { .handle = NULL },
};

const struct front judge0_front = { .name = "judge0",
        .routes = routes,
        .notes = notes,
        .converters = converters,
        .parameters = parameters,
        .tags = tags };
