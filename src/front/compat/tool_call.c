/*
 * POST /v1/tool: a program in the form of an agent's tool code_execution, and the record with its text.
 *
 * The body is {"tool": "code_execution", "code": ...} with the names of kodeagent, agentos, LinX, CodeMie or the light
 * executor for the rest (tool_names.c).  Errors are problems, as of POST /v1/runs.
 */
#include "front/compat/compat.h"
#include "front/compat/tool_call.h"

#define TEXT_MAX (512 * MIB)               /* bytes of a record as text; each of its parts has a lower limit */

/* A converted body; of a run the struct is in the run's arena. */
struct tool_call {
        struct csn_error error;            /* code 0: there is a request */
        struct run_request given;
        char **notes;                      /* sentences about names without a meaning */
        size_t notes_n;
        struct run *run;
        char *text;                        /* of the answer */
        size_t len;
};

static void *convert(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        struct tool_call *one = arena_alloc(arena, sizeof *one);
        json_t *notes = json_array(), *note, *ours = body ? tool_call_convert(body, notes, &one->error) : NULL;
        size_t at;
        (void)context;
        if (!body)
                one->error = *error;
        else if (ours)
                compat_decode(ours, arena, &one->given, &one->error);
        one->notes = arena_alloc(arena, (json_array_size(notes) + 1) * sizeof *one->notes);
        json_array_foreach(notes, at, note) {
                one->notes[one->notes_n++] = arena_text(arena, "%s", json_string_value(note));
        }
        json_decref(notes);
        return one;
}

/* ---- the answer ---- */

static json_t *text_of(const struct tool_call *one, const struct run_result *result)
{
        const struct run_request *request = run_request(one->run);
        struct buf buf;
        buf_init(&buf, TEXT_MAX);
        render_text(request->format, result, &buf);
        json_t *text = json_text(buf.bytes, buf.len);
        buf_done(&buf);
        return text;
}

static void on_encode(void *own, const struct run_result *result)
{
        struct tool_call *one = own;
        json_t *record = front_record(result, true), *warnings = json_object_get(record, "warnings");
        for (size_t i = 0; i < one->notes_n; i++)
                json_array_append_new(warnings,
                        json_pack("{s:s, s:s}", "code", "name_without_meaning", "text", one->notes[i]));
        json_object_set_new(record, "text", text_of(one, result));
        one->text = http_json_text(record);
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct tool_call *one = own;
        struct csn_error err;
        if (service_ran_nothing(result)) {
                service_error_of(result, &err);
                http_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
                return;
        }
        http_answer_json(request, MHD_HTTP_OK, one->text);
        one->text = NULL;
}

static void on_drop(void *own)
{
        struct tool_call *one = own;
        free(one->text);
}

static const struct run_responder responder = { .encode = on_encode, .answer = on_answer, .drop = on_drop };

/* ---- the route ---- */

/* Language and form of the request, else of its profile, else Python and the form of LinX. */
static void choose_language_and_form(const struct http_request *request, struct tool_call *one, struct arena *arena)
{
        const struct settings *settings = service_of(request)->settings;
        const struct run_request *given = &one->given;
        struct profile profile;
        struct csn_error err;
        const char *name = HAS(given, run_request, profile) ? given->profile : settings->engine.profile;
        bool has_language = HAS(given, run_request, language) || HAS(given, run_request, context) ||
                HAS(given, run_request, name);
        if (profile_find(settings, name, arena, &profile, &err) < 0)
                return;   /* the run reports the error */
        if (!has_language && !HAS(&profile.request, run_request, language))
                SET(&one->given, run_request, language, arena_text(arena, "python"));
        if (!HAS(given, run_request, format) && !HAS(&profile.request, run_request, format))
                SET(&one->given, run_request, format, text_form_LINX);
}

static void tool_post(struct http_request *request)
{
        struct tool_call *one = parse_of(request)->given;
        struct csn_error err = one->error;
        if (err.code) {
                http_fail(request, &err);
                return;
        }
        choose_language_and_form(request, one, &parse_of(request)->arena);
        struct run *run = one->run = run_new(service_of(request)->engine);
        *run_request(run) = one->given;
        if (run_check_needed(run, &err) < 0 ||
                service_check_tools(request, one->given.profile, &one->given.tools, &err) < 0 ||
                run_storage_is_free(request, &one->given, &err) < 0) {
                run_free(run);
                service_fail_room(request, &err);
                return;
        }
        if (!compat_may_run(request, run))
                return;
        parse_move(parse_of(request), run_arena(run));
        service_start_run(request, run, &responder, one, false);
}

static const struct http_route routes[] = {
        { "POST", "/v1/tool", NULL, SCOPE_RUN, BODY_TREE | BODY_MIB(64), tool_post,
          "Run a program in the words of the tool code_execution, with the names of kodeagent, agentos, LinX, CodeMie and the light executor for timeout, files and packages. The answer is the record with aliases, and `text`.",
          NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { tool_post, "200:json", "409 429 503 507", "json", NULL, NULL,
          "{\"tool\": \"code_execution\", \"code\": \"print(6 * 7)\", \"language\": \"python\", \"timeout\": 10}" },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = tool_post, .convert = convert },
        { .handle = NULL },
};

const struct front tool_call_front = { .name = "tool", .routes = routes, .notes = notes, .converters = converters };
