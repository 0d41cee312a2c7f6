/*
 * POST /execute of E2B: the answer is a stream of JSON lines.  If the client goes away, its execution is cancelled; the
 * context stays.
 */
#include "front/e2b/interpreter/interpreter.h"

#include "front/service/json_body.h"
#include "front/service/parse.h"

#include <stdio.h>

#define KEEPALIVE_US (5 * 1000000ULL)           /* interval of keepalive lines */
#define GATHER_US 50000                    /* output of this period becomes a single line of the answer */
/* additional wait for the rest of a line: print() writes text and line end by two calls */
#define REST_US 200000
#define LINE_MAX (64 * MIB)

struct execution {
        struct http_request *request;      /* NULL: its client has gone */
        struct loop *loop;
        struct run *run;
        const char *language;
        struct timer keepalive, gather;
        struct buf printed;                /* output not sent yet */
        struct buf last;                   /* the lines about the end of the execution */
        int stream;                        /* stream of the output in `printed` */
        bool waits_for_rest;               /* of the last line in `printed` */
        bool begun;                        /* the execution number was sent */
        bool lost;                         /* a line could not be sent: the client did not read */
        bool cut;                          /* the last lines exceed LINE_MAX */
        bool held;                         /* the run is held until the client has read */
};

/* ---- lines ---- */

static void send_text(struct execution *execution, const char *text, size_t len)
{
        if (!execution->request || execution->lost)
                return;
        execution->lost = !http_add(execution->request, text, len);
        if (!execution->held && !http_has_room(execution->request)) {
                execution->held = true;
                run_hold(execution->run, true);
        }
}

/* Takes the reference. */
static void send_line(struct execution *execution, json_t *line)
{
        char *text = model_write(line, JSON_COMPACT);
        json_decref(line);
        if (text) {
                size_t len = strlen(text);
                text[len] = '\n';          /* overwrites the NUL */
                send_text(execution, text, len + 1);
        }
        free(text);
}

/* Takes the reference. */
static void add_last(struct execution *execution, json_t *line)
{
        char *text = model_write(line, JSON_COMPACT);
        json_decref(line);
        if (!text || !buf_add(&execution->last, text, strlen(text)) || !buf_add(&execution->last, "\n", 1))
                execution->cut = true;
        free(text);
}

static void go_on(struct execution *execution)
{
        if (execution->held)
                run_hold(execution->run, false);
        execution->held = false;
}

static void begin(struct execution *execution)
{
        uint64_t number = run_number(execution->run);
        if (execution->begun || !number)
                return;
        execution->begun = true;
        send_line(execution,
                json_pack("{s:s, s:I}", "type", "number_of_executions", "execution_count", (json_int_t)number));
}

/* Sends the gathered output.  An incomplete UTF-8 character at its end is sent only with `all`. */
static void send_printed(struct execution *execution, bool all)
{
        struct buf *printed = &execution->printed;
        size_t len = all ? printed->len : utf8_whole(printed->bytes ? printed->bytes : "", printed->len);
        char now[40];
        loop_untimer(execution->loop, &execution->gather);
        execution->waits_for_rest = false;
        if (!len)
                return;
        time_print(time_now_ms(), now, sizeof now);
        send_line(execution,
                json_pack("{s:s, s:o, s:s}", "type", execution->stream == 1 ? "stdout" : "stderr", "text",
                        json_text(printed->bytes, len), "timestamp", now));
        memmove(printed->bytes, printed->bytes + len, printed->len - len);
        printed->len -= len;
}

static void on_room(void *own)
{
        go_on(own);
}

static bool ends_a_line(const struct buf *printed)
{
        return printed->len > 0 && printed->bytes[printed->len - 1] == '\n';
}

static void on_gathered(struct timer *timer)
{
        struct execution *execution = timer->owner;
        if (execution->waits_for_rest || ends_a_line(&execution->printed)) {
                send_printed(execution, false);
                return;
        }
        execution->waits_for_rest = true;
        loop_timer(execution->loop, timer, REST_US);
}

static void on_keepalive(struct timer *timer)
{
        struct execution *execution = timer->owner;
        send_line(execution, json_pack("{s:s}", "type", "keepalive"));
        loop_timer(execution->loop, timer, KEEPALIVE_US);
}

/* ---- events of the execution ---- */

static void on_output(void *own, int stream, const void *bytes, size_t len)
{
        struct execution *execution = own;
        if (!execution->request)
                return;
        begin(execution);
        if (stream != execution->stream)
                send_printed(execution, true);
        execution->stream = stream;
        if (!buf_add(&execution->printed, bytes, len))
                execution->lost = true;
        else if (execution->printed.len > HTTP_STREAM_LOW / 2 ||
                (execution->waits_for_rest && ends_a_line(&execution->printed)))
                send_printed(execution, false);
        else if (!execution->gather.active)
                loop_timer(execution->loop, &execution->gather, GATHER_US);
}

static char *encode_for(const json_t *bundle, const char *language)
{
        json_t *line = e2b_result(bundle, language, false);
        char *text = model_write(line, JSON_COMPACT);
        json_decref(line);
        return text;
}

static char *encode_display(const json_t *bundle)
{
        return encode_for(bundle, lang_python.name);
}

static char *encode_display_of_script(const json_t *bundle)
{
        return encode_for(bundle, lang_javascript.name);
}

static display_encoder *find_encoder(void *own)
{
        const struct execution *execution = own;
        return e2b_is_script(execution->language) ? encode_display_of_script : encode_display;
}

static void on_display(void *own, const char *text, size_t len)
{
        struct execution *execution = own;
        begin(execution);
        send_printed(execution, true);
        send_text(execution, text, len);
        send_text(execution, "\n", 1);
}

/* E2B reports Python lists and dictionaries as JSON, too. */
static void add_json(json_t *bundle, const struct value *value)
{
        bool is_plain = strcmp(value->type, "dict") == 0 || strcmp(value->type, "list") == 0;
        if (is_plain && HAS(value, value, value) && !json_object_get(bundle, "application/json"))
                json_object_set_new(bundle, "application/json",
                        model_read(value->value, strlen(value->value), JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL));
}

/* The value as a bundle again: a record has its contents as texts.  Returns a new reference. */
static json_t *bundle_of(const struct value *value)
{
        json_t *bundle = json_object();
        for (size_t i = 0; i < value->data_n; i++) {
                const char *name = value->data[i].name, *text = value->data[i].value, *plus = strrchr(name, '+');
                bool is_json = strcmp(name, "application/json") == 0 || (plus && strcmp(plus, "+json") == 0);
                json_t *content = is_json ? model_read(text, strlen(text), JSON_DECODE_ANY, NULL) : NULL;
                json_object_set_new(bundle, name, content ? content : json_string(text));
        }
        add_json(bundle, value);
        return bundle;
}

static json_t *error_line(const char *name, const char *value, const char *traceback)
{
        return json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", name, "value", value, "traceback", traceback);
}

/* The traceback as a single text; a syntax error has none: its source line instead. */
static json_t *error_of(const struct failure *error)
{
        struct buf text;
        buf_init(&text, LINE_MAX);
        for (size_t i = 0; i < error->traceback_n; i++)
                buf_printf(&text, "%s%s", i ? "\n" : "", error->traceback[i]);
        if (!error->traceback_n && error->text)
                buf_printf(&text, "  line %d\n    %s\n    %*s^\n", (int)error->line, error->text,
                        error->column > 1 ? (int)min_u64(error->column - 1, 1000) : 0, "");
        if (!error->traceback_n)
                buf_printf(&text, "%s: %s", error->type, error->message);
        json_t *line = error_line(error->type, error->message, text.bytes ? text.bytes : "");
        buf_done(&text);
        return line;
}

/* May run in a helper thread. */
static void on_encode(void *own, const struct run_result *result)
{
        struct execution *execution = own;
        buf_init(&execution->last, LINE_MAX);
        if (HAS(&result->result, value, data)) {
                json_t *bundle = bundle_of(&result->result);
                add_last(execution, e2b_result(bundle, execution->language, true));
                json_decref(bundle);
        }
        if (result->error.type)
                add_last(execution, error_of(&result->error));
        else if (result->status != status_COMPLETED)
                add_last(execution,
                        error_line(result->status == status_CANCELLED ? "ContextRestarting"
                                                                      : "UnexpectedEndOfExecution",
                                result->error.message ? result->error.message : "the execution ended", ""));
        add_last(execution, json_pack("{s:s}", "type", "end_of_execution"));
}

static void send_end(struct execution *execution)
{
        begin(execution);
        send_printed(execution, true);
        if (execution->cut)
                execution->lost = true;
        send_text(execution, execution->last.bytes, execution->last.len);
}

/* The stream of a client whose sandbox has ended is cut, to show an incomplete answer. */
static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct execution *execution = own;
        const struct e2b_sandbox *sandbox = e2b_target(request);
        bool is_over = !sandbox || psandbox_state(sandbox->psandbox) == PSANDBOX_OVER;
        (void)result;
        if (!is_over)
                send_end(execution);
        execution->request = NULL;
        if (is_over || execution->lost)
                http_cut(request);
        else
                http_end(request);
}

static void on_gone(void *own)
{
        struct execution *execution = own;
        execution->request = NULL;
        go_on(execution);                  /* a held run would delay its cancellation */
}

static void on_drop(void *own)
{
        struct execution *execution = own;
        loop_untimer(execution->loop, &execution->keepalive);
        loop_untimer(execution->loop, &execution->gather);
        buf_done(&execution->printed);
        buf_done(&execution->last);
}

static const struct run_responder words = { .encode = on_encode,
        .answer = on_answer,
        .output = on_output,
        .display_encoder = find_encoder,
        .display = on_display,
        .room = on_room,
        .gone = on_gone,
        .drop = on_drop };

/* ---- start of the execution ---- */

static void start(struct http_request *request, struct run *run, const char *language)
{
        struct loop *loop = service_of(request)->loop;
        struct execution *execution = arena_alloc(run_arena(run), sizeof *execution);
        *execution = (struct execution){ .request = request,
                .loop = loop,
                .run = run,
                .language = language,
                .keepalive = { .fired = on_keepalive, .owner = execution },
                .gather = { .fired = on_gathered, .owner = execution } };
        buf_init(&execution->printed, HTTP_STREAM_MAX / 2);
        http_stream(request, MHD_HTTP_OK, "application/x-ndjson");
        loop_timer(loop, &execution->keepalive, KEEPALIVE_US);
        service_start_run(request, run, &words, execution, false);
}

static void fail_text(struct http_request *request, unsigned status, const char *text)
{
        http_answer(request, status, "text/plain; charset=utf-8", mem_copy(text, strlen(text)), strlen(text));
}

/* ---- the converter ---- */

/* A body decoded as a run request. */
struct given {
        char *answer;                      /* JSON of a refusal with status 422; NULL: none */
        const char *context, *language;    /* as the body names them, or NULL */
        struct csn_error error;            /* code 0: `request` is good */
        struct run_request request;
};

static json_t *flaw_of(const char *name, const char *type, const char *text, json_t *input)
{
        return json_pack("{s:[{s:s, s:[s,s], s:s, s:O}]}", "detail", "type", type, "loc", "body", name, "msg", text,
                "input", input ? input : json_null());
}

static json_t *text_flaw(const json_t *body, const char *name)
{
        json_t *given = json_object_get(body, name);
        bool good = !given || json_is_null(given) || json_is_string(given);
        return good ? NULL : flaw_of(name, "string_type", "Input should be a valid string", given);
}

bool e2b_check_text(struct http_request *request, const json_t *body, const char *name)
{
        json_t *flaw = text_flaw(body, name);
        if (flaw)
                http_json(request, MHD_HTTP_UNPROCESSABLE_CONTENT, flaw);
        return !flaw;
}

/* The error about the first member of a wrong type, as the answer; NULL: none. */
static json_t *find_flaw(const json_t *body)
{
        json_t *code = json_object_get(body, "code"), *variables = json_object_get(body, "env_vars"), *value, *flaw;
        const char *name;
        if (!json_is_string(code))
                return flaw_of("code", code ? "string_type" : "missing",
                        code ? "Input should be a valid string" : "Field required", code);
        if ((flaw = text_flaw(body, "context_id")) || (flaw = text_flaw(body, "language")))
                return flaw;
        if (variables && !json_is_null(variables) && !json_is_object(variables))
                return flaw_of("env_vars", "dict_type", "Input should be a valid dictionary", variables);
        json_object_foreach(variables, name, value) {
                if (!json_is_string(value))
                        return flaw_of("env_vars", "string_type", "Input should be a valid string", value);
        }
        return NULL;
}

static const char *text_of(const json_t *body, const char *name, struct arena *arena)
{
        const char *text = json_string_value(json_object_get(body, name));
        return text ? arena_text(arena, "%s", text) : NULL;
}

void *e2b_convert_execution(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        struct given *given = arena_alloc(arena, sizeof *given);
        json_t *flaw = body ? find_flaw(body) : flaw_of("", "json_invalid", error->text, NULL);
        (void)context;
        if (flaw) {
                given->answer = http_json_text(flaw);
                return given;
        }
        given->context = text_of(body, "context_id", arena);
        given->language = text_of(body, "language", arena);
        json_t *variables = json_object_get(body, "env_vars");
        json_t *ours = json_pack("{s:s, s:O, s:b, s:b}", "profile", "e2b", "code", json_object_get(body, "code"),
                "show_saved", true, "quiet_errors", true);
        if (json_is_object(variables))
                json_object_set(ours, "env", variables);
        model_decode(&object_run_request, ours, arena, &given->request, &given->error);
        json_decref(ours);
        return given;
}

void e2b_drop_execution(void *own)
{
        struct given *given = own;
        free(given->answer);
        given->answer = NULL;
}

/* ---- POST /execute ---- */

/* The context named by the body.  NULL: none; the request is answered. */
static struct e2b_context *context_for(struct http_request *request, const struct given *given)
{
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct e2b_context *one = NULL;
        struct csn_error err;
        if (given->context && given->language)
                fail_text(request, MHD_HTTP_BAD_REQUEST, "Only one of context_id or language can be provided");
        else if (given->context && !(one = e2b_context_find(sandbox, given->context)))
                fail_text(request, MHD_HTTP_NOT_FOUND,
                        arena_text(&request->arena, "Context %.100s not found", given->context));
        else if (!given->context && e2b_context_of(sandbox, given->language, &one, &err) < 0)
                fail_text(request, MHD_HTTP_BAD_REQUEST, err.text);
        return one;
}

/* NULL with err on failure. */
static struct run *run_of(struct http_request *request, struct e2b_context *one, const struct given *given,
        struct csn_error *err)
{
        struct context *context;
        bool is_new;
        if (e2b_context_open(e2b_target(request), one, NULL, &context, &is_new, err) < 0)
                return NULL;
        *err = given->error;
        if (err->code)
                return NULL;
        struct run *run = run_new(service_of(request)->engine);
        *run_request(run) = given->request;
        parse_move(parse_of(request), run_arena(run));
        SET(run_request(run), run_request, context, arena_text(run_arena(run), "%s", context_id(context)));
        return run;
}

/* The execution is charged to the owner of the sandbox. */
static void become_owner(struct http_request *request)
{
        snprintf(request->tenant, sizeof request->tenant, "%s", e2b_target(request)->tenant);
}

void e2b_execute(struct http_request *request)
{
        struct csn_error err;
        struct http_limit limit = { 0 };
        struct given *given = parse_of(request)->given;
        become_owner(request);
        if (given->answer) {
                http_answer_json(request, MHD_HTTP_UNPROCESSABLE_CONTENT, given->answer);
                given->answer = NULL;
                return;
        }
        struct e2b_context *one = context_for(request, given);
        struct run *run = one ? run_of(request, one, given, &err) : NULL;
        if (!one)
                return;
        if (!run) {
                e2b_error(request, err.code == CSN_E_BUSY ? MHD_HTTP_TOO_MANY_REQUESTS : MHD_HTTP_BAD_REQUEST, "%s",
                        err.text);
                return;
        }
        run_set_quota(run, &e2b_target(request)->wish.quota);
        if (e2b_has_cpu_time(e2b_target(request), &limit, &err) < 0 ||
                service_may_run(request, run, &limit, &err) < 0) {
                run_free(run);
                service_answer_busy(request, &limit, &err);
        } else {
                start(request, run, one->language);
        }
}
