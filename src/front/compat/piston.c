/*
 * The interface of Piston (engineer-man/piston, API v2): POST /api/v2/execute, GET /api/v2/runtimes.
 *
 * A client of Piston names a version of the language, in npm's form of ranges.  Only the interpreters know their
 * versions, so each is asked once, in a sandbox like any program's; requests for versions wait meanwhile.
 */
#include "front/compat/interleave.h"
#include "front/compat/compat.h"
#include "front/compat/parse.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define RUN_MS 3000                        /* wall clock and CPU time where the request says nothing */
#define MEMORY_MIN (4 * MIB)               /* as in limits.memory_bytes */
#define OUTPUT_MAX (64 * MIB)              /* of both streams together */
#define RANGE_MAX 1024                     /* bytes of a range of versions; a longer range is unknown */
#define ASK_AGAIN_US (60 * 1000000ULL)     /* an interpreter without a version may have been installed */

/* ---- versions ---- */

struct probe {
        const char *language, *code;
        char version[32];                  /* "": not known */
        struct run *run;                   /* for the version, or NULL */
        struct piston *piston;
};

struct waiter {
        struct waiter *next;
        struct http_request *request;
        void (*then)(struct http_request *request);
};

struct piston {
        struct probe probes[3];
        struct waiter *waiters;
        size_t asked;                      /* go on */
        uint64_t asked_us;
};

extern const struct front piston_front;

static struct piston *piston_of(const struct http_request *request)
{
        struct piston *piston = service_state(service_of(request), &piston_front);
        if (!piston->probes[0].language)
                *piston = (struct piston){ .probes = {
                        { .language = "python", .code = "import platform; print(platform.python_version())" },
                        { .language = "javascript", .code = "console.log(process.versions.node)" },
                        { .language = "bash",
                          .code = "echo ${BASH_VERSINFO[0]}.${BASH_VERSINFO[1]}.${BASH_VERSINFO[2]}" },
                } };
        return piston;
}

static void on_close(struct service *service)
{
        struct piston *piston = service_state(service, &piston_front);
        for (size_t i = 0; i < ARRAY_LEN(piston->probes); i++)
                run_free(piston->probes[i].run);
}

/* Serve the waiting requests with the known versions. */
static void serve(struct piston *piston)
{
        while (piston->waiters) {
                struct waiter *waiter = piston->waiters;
                piston->waiters = waiter->next;
                waiter->request->gone = NULL;
                waiter->then(waiter->request);
        }
}

static void on_version(void *owner, const struct run_result *result)
{
        struct probe *probe = owner;
        struct piston *piston = probe->piston;
        size_t len = result->stdout.bytes ? strspn(result->stdout.bytes, "0123456789.") : 0;
        if (result->status == status_COMPLETED && len < sizeof probe->version)
                snprintf(probe->version, sizeof probe->version, "%.*s", (int)len, result->stdout.bytes);
        run_free(probe->run);
        probe->run = NULL;
        if (--piston->asked == 0)
                serve(piston);
}

static const struct run_events version_events = { .done = on_version };

static void ask(struct service *service, struct piston *piston)
{
        piston->asked_us = clock_us();
        for (size_t i = 0; i < ARRAY_LEN(piston->probes); i++) {
                struct probe *probe = &piston->probes[i];
                if (probe->version[0])
                        continue;
                probe->piston = piston;
                probe->run = run_new(service->engine);
                struct run_request *request = run_request(probe->run);
                run_set_unreviewed(probe->run);
                SET(request, run_request, language, arena_text(run_arena(probe->run), "%s", probe->language));
                SET(request, run_request, policy, arena_text(run_arena(probe->run), "off"));
                request->code =
                        (struct bytes){ arena_text(run_arena(probe->run), "%s", probe->code), strlen(probe->code) };
                MARK(request, run_request, code);
                piston->asked++;
                run_start(probe->run, false, &version_events, probe);
        }
}

static void on_gone(struct http_request *request)
{
        struct piston *piston = piston_of(request);
        for (struct waiter **at = &piston->waiters; *at; at = &(*at)->next)
                if ((*at)->request == request) {
                        *at = (*at)->next;
                        return;
                }
}

static bool all_known(const struct piston *piston)
{
        for (size_t i = 0; i < ARRAY_LEN(piston->probes); i++)
                if (!piston->probes[i].version[0])
                        return false;
        return true;
}

/* Call then() once the versions are known, as far as possible. */
static void with_versions(struct http_request *request, void (*then)(struct http_request *request))
{
        struct piston *piston = piston_of(request);
        if (!piston->asked && !all_known(piston) && (!piston->asked_us || clock_us() - piston->asked_us > ASK_AGAIN_US))
                ask(service_of(request), piston);
        if (!piston->asked) {
                then(request);
                return;
        }
        struct waiter *waiter = arena_alloc(&request->arena, sizeof *waiter);
        *waiter = (struct waiter){ .next = piston->waiters, .request = request, .then = then };
        piston->waiters = waiter;
        request->gone = on_gone;
}

/* "" for an interpreter without a version; a language added by a file has no version to ask for. */
static const char *version_of(const struct piston *piston, const struct language *language)
{
        const char *name = language == &lang_typescript ? "javascript" : language->name;
        for (size_t i = 0; i < ARRAY_LEN(piston->probes); i++)
                if (strcmp(piston->probes[i].language, name) == 0)
                        return piston->probes[i].version;
        return "0.0.0";
}

/* ---- GET /api/v2/runtimes ---- */

static json_t *runtime_of(const struct piston *piston, const struct language *language)
{
        const char *version = version_of(piston, language);
        json_t *aliases = json_array();
        for (const char *const *alias = language->aliases; alias && *alias; alias++)
                json_array_append_new(aliases, json_string(*alias));
        json_t *json = json_pack("{s:s, s:s, s:o}", "language", language->name, "version", version, "aliases", aliases);
        if (language == &lang_javascript || language == &lang_typescript)
                json_object_set_new(json, "runtime", json_string("node"));
        return json;
}

static void answer_runtimes(struct http_request *request)
{
        const struct piston *piston = piston_of(request);
        json_t *list = json_array();
        for (size_t i = 0; lang_at(i); i++)
                if (version_of(piston, lang_at(i))[0])
                        json_array_append_new(list, runtime_of(piston, lang_at(i)));
        for (const struct language *added = engine_languages(service_of(request)->engine); added; added = added->next)
                json_array_append_new(list, runtime_of(piston, added));
        http_json(request, MHD_HTTP_OK, list);
}

static void piston_runtimes(struct http_request *request)
{
        with_versions(request, answer_runtimes);
}

/* ---- flaws of a request ---- */

static void refuse(struct http_request *request, unsigned status, const char *text)
{
        http_json(request, status, json_pack("{s:o}", "message", json_text(text, strlen(text))));
}

/* The ceilings for a client, in Piston's names. */
static int check_limits(const struct limits *most, const json_t *body, struct csn_error *err)
{
        const struct { const char *name; uint64_t most; bool time;
        } rows[] = {
                { "compile_memory_limit", most->memory_bytes, false },
                { "run_memory_limit", most->memory_bytes, false },
                { "compile_timeout", most->wall_ms, true },
                { "run_timeout", most->wall_ms, true },
                { "compile_cpu_time", most->cpu_ms, true },
                { "run_cpu_time", most->cpu_ms, true },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const json_t *json = json_object_get(body, rows[i].name);
                if (!json || json_is_null(json) || json_is_false(json) ||
                        (json_is_string(json) && !json_string_length(json)))
                        continue;
                if (!json_is_number(json))
                        return err_field(err, rows[i].name, "If specified, %s must be a number", rows[i].name);
                if (json_number_value(json) > (double)rows[i].most)
                        return err_field(err, rows[i].name, "%s cannot exceed the configured limit of %" PRIu64,
                                rows[i].name, rows[i].most);
                if (rows[i].time && json_number_value(json) < 0)
                        return err_field(err, rows[i].name, "%s must be non-negative", rows[i].name);
        }
        return 0;
}

static const char *encoding_of(const json_t *file)
{
        const char *encoding = json_string_value(json_object_get(file, "encoding"));
        return encoding && (strcmp(encoding, "base64") == 0 || strcmp(encoding, "hex") == 0) ? encoding : "utf8";
}

static int check_files(const json_t *files, struct csn_error *err)
{
        bool plain = false;
        json_t *file;
        size_t i;
        if (!json_is_array(files))
                return err_field(err, "files", "files is required as an array");
        json_array_foreach(files, i, file) {
                const json_t *name = json_object_get(file, "name");
                if (!json_is_string(json_object_get(file, "content")))
                        return err_field(err, "files", "files[%zu].content is required as a string", i);
                if (name && !json_is_null(name) && !json_is_string(name))
                        return err_field(err, "files", "files[%zu].name must be a string", i);
                plain = plain || strcmp(encoding_of(file), "utf8") == 0;
        }
        return plain ? 0 : err_field(err, "files", "files must include at least one utf8 encoded file");
}

static int check_texts(const json_t *body, struct csn_error *err)
{
        const json_t *args = json_object_get(body, "args"), *input = json_object_get(body, "stdin");
        json_t *arg;
        size_t i;
        if (args && !json_is_null(args) && !json_is_array(args))
                return err_field(err, "args", "args must be an array");
        json_array_foreach(args, i, arg) {
                if (!json_is_string(arg))
                        return err_field(err, "args", "args[%zu] must be a string", i);
        }
        return input && !json_is_null(input) && !json_is_string(input)
                ? err_field(err, "stdin", "stdin must be a string")
                : 0;
}

static int check_runtime(const json_t *body, struct csn_error *err)
{
        const char *name = json_string_value(json_object_get(body, "language")),
                   *version = json_string_value(json_object_get(body, "version"));
        if (!name || !name[0])
                return err_field(err, "language", "language is required as a string");
        if (!version || !version[0])
                return err_field(err, "version", "version is required as a string");
        if (!json_is_array(json_object_get(body, "files")))
                return err_field(err, "files", "files is required as an array");
        return 0;
}

/* ---- the request ---- */

static bool unhex(const json_t *text, json_t **ret)
{
        const char *from = json_string_value(text);
        size_t len = json_string_length(text);
        struct arena arena = { 0 };
        if (len % 2 || strspn(from, "0123456789abcdefABCDEF") != len)
                return false;
        char *bytes = arena_alloc(&arena, len / 2 + 1);
        for (size_t i = 0; i < len / 2; i++) {
                const char digits[3] = { from[2 * i], from[2 * i + 1], 0 };
                bytes[i] = (char)strtoul(digits, NULL, 16);
        }
        *ret = json_string(model_base64(&arena, bytes, len / 2));
        arena_done(&arena);
        return true;
}

static int file_of(const json_t *file, size_t i, json_t *list, struct csn_error *err)
{
        const char *name = json_string_value(json_object_get(file, "name")), *encoding = encoding_of(file);
        json_t *content = json_object_get(file, "content"), *ours, *bytes;
        ours = name && name[0] ? json_pack("{s:s}", "name", name)
                               : json_pack("{s:o}", "name", json_sprintf("file%zu.code", i));
        json_array_append_new(list, ours);
        if (strcmp(encoding, "utf8") == 0)
                json_object_set(ours, "content", content);
        else if (strcmp(encoding, "base64") == 0)
                json_object_set_new(ours, "content_base64", compat_base64(content));
        else if (unhex(content, &bytes))
                json_object_set_new(ours, "content_base64", bytes);
        else
                return err_field(err, "files", "files[%zu].content is no hex", i);
        return 0;
}

/* The first text file is the program. */
static int add_files(json_t *ours, json_t *files, struct csn_error *err)
{
        json_t *list = json_array(), *file;
        bool found = false;
        size_t i;
        json_object_set_new(ours, "files", list);
        json_array_foreach(files, i, file) {
                json_t *name = json_object_get(file, "name");
                if (found || strcmp(encoding_of(file), "utf8") != 0) {
                        if (file_of(file, i, list, err) < 0)
                                return -err->code;
                        continue;
                }
                found = true;
                json_object_set(ours, "code", json_object_get(file, "content"));
                if (json_string_length(name))
                        json_object_set(ours, "name", name);
        }
        return 0;
}

static json_t *limit_of(const json_t *body, const char *name, uint64_t otherwise, uint64_t least, uint64_t most)
{
        double number = json_number_value(json_object_get(body, name));
        return number > 0 ? compat_scaled(number, 1, least, most) : json_integer((json_int_t)min_u64(otherwise, most));
}

static json_t *limits_of(const struct limits *most, const json_t *body)
{
        json_t *limits =
                json_pack("{s:o, s:o, s:s}", "wall_ms", limit_of(body, "run_timeout", RUN_MS, 1, most->wall_ms),
                        "cpu_ms", limit_of(body, "run_cpu_time", RUN_MS, 1, most->cpu_ms), "output_action", "kill");
        if (json_number_value(json_object_get(body, "run_memory_limit")) > 0)
                json_object_set_new(limits, "memory_bytes",
                        limit_of(body, "run_memory_limit", 0, MEMORY_MIN, most->memory_bytes));
        return limits;
}

/* In Piston standard input ends with a line feed, also if empty. */
static json_t *stdin_of(const json_t *body)
{
        const json_t *given = json_object_get(body, "stdin");
        const char *text = json_is_string(given) ? json_string_value(given) : "";
        size_t len = json_string_length(given);
        char *whole = mem_alloc(len + 2);
        memcpy(whole, text, len);
        whole[len] = '\n';
        json_t *json = json_stringn(whole, len && text[len - 1] == '\n' ? len : len + 1);
        free(whole);
        return json;
}

static json_t *ours_of(const struct limits *most, json_t *body, const struct language *language, struct csn_error *err)
{
        json_t *args = json_object_get(body, "args");
        json_t *ours = json_pack("{s:s, s:o, s:o}", "language", language->name, "stdin", stdin_of(body), "limits",
                limits_of(most, body));
        if (json_is_array(args))
                json_object_set(ours, "args", args);
        if (add_files(ours, json_object_get(body, "files"), err) == 0)
                return ours;
        json_decref(ours);
        return NULL;
}

/* ---- the answer ---- */

/* A converted body; of a run the struct is in the run's arena. */
struct execution {
        struct csn_error unnamed;        /* language or version missing in the body; code 0: none */
        const char *name, *range;        /* of the language and its versions, as asked */
        const struct language *language; /* NULL: unknown */
        struct csn_error flaw;           /* in the rest of the body; code 0: there is none */
        struct run_request given;
        struct run *run;
        char version[32];
        struct interleave output;          /* of both streams */
        char *text;                        /* of the answer */
};

static json_t *text_or_null(const char *text)
{
        return text ? json_text(text, strlen(text)) : json_null();
}

/* A program ended by us counts as ended by SIGKILL. */
static json_t *signal_of(const struct compat_ending *ending)
{
        char name[32];
        bool ours = ending->status && (strcmp(ending->status, "TO") == 0 || ending->status[1] == 'L');
        int signal = ours ? SIGKILL : ending->signal;
        if (!signal)
                return json_null();
        snprintf(name, sizeof name, "SIG%s", sigabbrev_np(signal) ? sigabbrev_np(signal) : "?");
        return json_string(name);
}

static json_t *stage_of(const struct execution *execution, const struct run_result *result,
        const struct compat_ending *ending)
{
        bool has_code = ending->code >= 0, has_memory = HAS(&result->usage, usage, memory_peak_bytes);
        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:o}", "stdout",
                json_text(result->stdout.bytes, result->stdout.len), "stderr",
                json_text(result->stderr.bytes, result->stderr.len), "output",
                json_text(execution->output.text.bytes, execution->output.text.len), "code",
                has_code ? json_integer(ending->code) : json_null(), "signal", signal_of(ending), "message",
                text_or_null(ending->message), "status", text_or_null(ending->status), "cpu_time", result->usage.cpu_ms,
                "wall_time", result->usage.wall_ms, "memory",
                has_memory ? json_integer((json_int_t)result->usage.memory_peak_bytes) : json_null());
}

static bool is_refused(const struct compat_ending *ending)
{
        return ending->status && strcmp(ending->status, "XX") == 0;
}

static void on_encode(void *own, const struct run_result *result)
{
        struct execution *execution = own;
        struct compat_ending ending;
        interleave_end(&execution->output);
        compat_ending(result, run_arena(execution->run), &ending);
        if (!is_refused(&ending))
                execution->text = http_json_text(json_pack("{s:s, s:s, s:o}", "language", execution->language->name,
                        "version", execution->version, "run", stage_of(execution, result, &ending)));
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct execution *execution = own;
        struct compat_ending ending;
        compat_ending(result, &request->arena, &ending);
        if (is_refused(&ending)) {
                bool theirs = result->status == status_BAD_REQUEST || result->status == status_BLOCKED;
                refuse(request, theirs ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_INTERNAL_SERVER_ERROR, ending.message);
                return;
        }
        http_answer_json(request, MHD_HTTP_OK, execution->text);
        execution->text = NULL;
}

static void on_output(void *own, int stream, const void *bytes, size_t len)
{
        struct execution *execution = own;
        interleave_add(&execution->output, stream, bytes, len);
}

static void on_drop(void *own)
{
        struct execution *execution = own;
        interleave_done(&execution->output);
        free(execution->text);
}

static const struct run_responder words = {
        .encode = on_encode, .answer = on_answer, .output = on_output, .drop = on_drop
};

/* ---- POST /api/v2/execute ---- */

struct piston_context {
        const struct language *added; /* to the built-in languages */
        struct limits most;
};

static void *begin(struct http_request *request, struct arena *arena)
{
        const struct service *service = service_of(request);
        struct piston_context *context = arena_alloc(arena, sizeof *context);
        *context = (struct piston_context){ engine_languages(service->engine), service->settings->ceilings };
        return context;
}

static void convert_named(json_t *body, const struct piston_context *context, struct execution *execution,
        struct arena *arena)
{
        struct csn_error *err = &execution->flaw;
        const char *name = json_string_value(json_object_get(body, "language")),
                   *range = json_string_value(json_object_get(body, "version"));
        execution->name = arena_text(arena, "%.100s", name);
        execution->range = arena_text(arena, "%.*s", RANGE_MAX, range);
        if (strlen(range) > RANGE_MAX || lang_find(context->added, name, &execution->language, NULL) < 0 ||
                check_files(json_object_get(body, "files"), err) < 0 || check_texts(body, err) < 0 ||
                check_limits(&context->most, body, err) < 0)
                return;
        json_t *ours = ours_of(&context->most, body, execution->language, err);
        if (ours)
                compat_decode(ours, arena, &execution->given, err);
}

static void *convert(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        struct execution *execution = arena_alloc(arena, sizeof *execution);
        if (!body)
                execution->unnamed = *error;
        else if (check_runtime(body, &execution->unnamed) == 0)
                convert_named(body, context, execution, arena);
        return execution;
}

/* Which versions there are the loop alone knows. */
static int check_version(struct http_request *request, struct execution *execution, struct csn_error *err)
{
        const char *version = execution->language ? version_of(piston_of(request), execution->language) : "";
        if (!execution->language || !compat_in_range(version, execution->range))
                return err_field(err, "version", "%s-%.100s runtime is unknown", execution->name, execution->range);
        snprintf(execution->version, sizeof execution->version, "%s", version);
        return 0;
}

static void execute(struct http_request *request)
{
        struct execution *execution = parse_of(request)->given;
        struct csn_error err = execution->unnamed;
        if (!err.code && check_version(request, execution, &err) == 0)
                err = execution->flaw;
        if (err.code) {
                refuse(request, MHD_HTTP_BAD_REQUEST, err.text);
                return;
        }
        execution->run = compat_run(request, &execution->given);
        if (!compat_may_run(request, execution->run))
                return;
        parse_move(parse_of(request), run_arena(execution->run));
        interleave_init(&execution->output, OUTPUT_MAX);
        service_start_run(request, execution->run, &words, execution, false);
}

static void piston_execute(struct http_request *request)
{
        const char *type = http_header(request, "Content-Type");
        if (type && strncmp(type, "application/json", strlen("application/json")) == 0)
                with_versions(request, execute);
        else
                refuse(request, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE, "requests must be of type application/json");
}

/* ---- the front ---- */

static const struct http_route routes[] = {
        { "POST", "/api/v2/execute", "*", SCOPE_RUN, BODY_TREE | BODY_MIB(16), piston_execute,
          "As Piston: run a program.", NULL,
          NULL },
        { "GET", "/api/v2/runtimes", "*", SCOPE_READ, BODY_NONE, piston_runtimes,
          "As Piston: the languages, and the versions of their interpreters.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { piston_execute, "200:json", "400:json 415:json 429:json 500:json 503", "json", NULL, NULL,
          "{\"language\": \"python\", \"version\": \"*\", \"files\": [{\"content\": \"print(6 * 7)\"}]}" },
        { piston_runtimes, "200:json", NULL, NULL, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_tag tags[] = {
        { "/api/v2/", "Piston", "Requests in the words of Piston." },
        { NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = piston_execute, .begin = begin, .convert = convert },
        { .handle = NULL },
};

const struct front piston_front = { .name = "piston",
        .routes = routes,
        .notes = notes,
        .converters = converters,
        .tags = tags,
        .state_size = sizeof(struct piston),
        .close = on_close };
