/*
 * The interface of the sandbox of NeMo-Skills (NVIDIA/NeMo-Skills): POST /execute, GET /sessions and DELETE
 * /sessions/{id}.
 *
 * A program of ipython belongs to the session that X-Session-ID names.  Variables last, and stdout has the value of the
 * last expression and the traceback of an error, as IPython prints them.  Other programs are runs.  new_session_created
 * is true for the first execution of an interpreter; a client replays its history then.
 */
#include "front/compat/compat.h"
#include "front/trainers/nemo.h"
#include "front/trainers/trainers.h"

#include <math.h>
#include <stdio.h>

#define TIMEOUT_S 10                       /* where the request has no timeout */
#define WALL_MS_MAX 86400000               /* the highest limits.wall_ms */
#define CHARACTERS 1000                    /* of each stream, where the request does not say */
#define CUT "<output cut>"
#define TEXT_MAX (64 * MIB)                /* bytes of a stream while it is made */

enum verbosity { VERBOSITY_PLAIN, VERBOSITY_MINIMAL, VERBOSITY_CONTEXT, VERBOSITY_VERBOSE };

/* A converted body; of a run the struct is in the run's arena. */
struct nemo {
        struct compat_given given;
        const char *session;               /* the id of the session, or NULL */
        bool is_ipython;                      /* ipython */
        bool is_shell;
        int verbosity;
        size_t characters;                 /* of each stream */
        const char *timeout;               /* as the client wrote it */
        bool is_new;                       /* the first execution of its session */
        const struct service *service;
        char tenant[80];
        char *text;                        /* of the answer */
        unsigned status;
};

/* ---- the body ---- */

static json_t *error_form(const char *text)
{
        return json_pack("{s:s, s:s, s:s}", "process_status", "error", "stdout", "", "stderr", text);
}

static void *refuse(struct nemo *nemo, unsigned status, const char *text)
{
        compat_refuse(&nemo->given, status, error_form(text));
        return nemo;
}

static const char *language_of(const char *name)
{
        static const struct { const char *theirs, *ours;
        } names[] = { { "ipython", "python" }, { "python", "python" }, { "python3", "python" }, { "shell", "bash" } };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strcmp(names[i].theirs, name) == 0)
                        return names[i].ours;
        return name;
}

/* A flaw in the types of the body, as a sentence; NULL: none. */
static const char *flaw_of(const json_t *body)
{
        static const struct { const char *name, *text; bool required, is_number;
        } rows[] = {
                { "generated_code", "generated_code is missing or no text; give the program\n", true, false },
                { "language", "language is no text; it is ipython, python, python3, pypy3, lean4 or shell\n", false, false },
                { "std_input", "std_input is no text\n", false, false },
                { "traceback_verbosity", "traceback_verbosity is no text; it is Plain, Minimal, Context or Verbose\n", false,
                        false },
                { "session_id", "session_id is no text\n", false, false },
                { "timeout", "timeout is no number of seconds\n", false, true },
                { "max_output_characters", "max_output_characters is no number\n", false, true },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const json_t *json = json_object_get(body, rows[i].name);
                bool absent = !json || json_is_null(json);
                if (absent ? rows[i].required : rows[i].is_number ? !json_is_number(json) : !json_is_string(json))
                        return rows[i].text;
        }
        return NULL;
}

static int verbosity_of(const char *name)
{
        static const char *const names[] = { "Plain", "Minimal", "Context", "Verbose" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strcmp(names[i], name) == 0)
                        return (int)i;
        return VERBOSITY_PLAIN;
}

static const char *text_of(const json_t *body, const char *name, const char *other)
{
        const char *text = json_string_value(json_object_get(body, name));
        return text ? text : other;
}

/* The number as Python prints it in "timed out after N seconds". */
static const char *seconds_text(const json_t *json, struct arena *arena)
{
        if (json_is_integer(json))
                return arena_text(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        return json_is_real(json) ? arena_text(arena, "%.12g", json_real_value(json))
                                  : arena_text(arena, "%d.0", TIMEOUT_S);
}

static json_t *ours_of(const json_t *body, const struct nemo *nemo, const char *language)
{
        double seconds = TIMEOUT_S;
        json_t *input = json_object_get(body, "std_input");
        compat_number(json_object_get(body, "timeout"), &seconds);
        json_t *ours = json_pack("{s:s, s:O, s:{s:o}}", "language", language, "code",
                json_object_get(body, "generated_code"), "limits", "wall_ms",
                compat_scaled(seconds, 1000, 1, WALL_MS_MAX));
        if (nemo->is_ipython)
                json_object_set_new(ours, "quiet_errors", json_true());
        if (!nemo->is_ipython && json_is_string(input))
                json_object_set(ours, "stdin", input);
        return ours;
}

static void *convert(json_t *body, const struct csn_error *error, void *context, struct arena *arena)
{
        const struct language *added = context, *language;
        struct nemo *nemo = arena_alloc(arena, sizeof *nemo);
        const char *flaw = body ? flaw_of(body) : NULL;
        struct csn_error err;
        if (!body || flaw)
                return refuse(nemo, MHD_HTTP_BAD_REQUEST, flaw ? flaw : arena_text(arena, "%s\n", error->text));
        const char *name = text_of(body, "language", "ipython"), *session = text_of(body, "session_id", NULL);
        double characters = json_number_value(json_object_get(body, "max_output_characters"));
        nemo->is_ipython = strcmp(name, "ipython") == 0;
        nemo->is_shell = strcmp(name, "shell") == 0;
        nemo->session = session && nemo->is_ipython ? arena_text(arena, "%s", session) : NULL;
        nemo->verbosity = verbosity_of(text_of(body, "traceback_verbosity", "Plain"));
        nemo->characters = characters >= 1 ? (size_t)fmin(characters, TEXT_MAX)
                : json_is_number(json_object_get(body, "max_output_characters")) ? 0
                                                                                 : CHARACTERS;
        nemo->timeout = seconds_text(json_object_get(body, "timeout"), arena);
        if (lang_find(added, language_of(name), &language, &err) < 0)
                return refuse(nemo, MHD_HTTP_OK, arena_text(arena, "language \"%.40s\" is not here: %s\n", name, err.text));
        json_t *ours = ours_of(body, nemo, language->name);
        if (compat_decode(ours, arena, &nemo->given.request, &err) < 0)
                return refuse(nemo, MHD_HTTP_BAD_REQUEST, arena_text(arena, "%s: %s\n", err.field, err.text));
        return nemo;
}

static void *begin(struct http_request *request, struct arena *arena)
{
        (void)arena;
        return (void *)(uintptr_t)engine_languages(service_of(request)->engine);
}

/* ---- streams of a cell ---- */

/* A CSI sequence of ECMA-48: its length, or 0. */
static size_t csi_length(const char *text)
{
        size_t n = 2;
        if (text[0] != '\x1b' || text[1] != '[')
                return 0;
        n += strspn(text + n, "0123456789:;<=>?");
        n += strspn(text + n, " !\"#$%&'()*+,-./");
        return text[n] >= '@' && text[n] <= '~' ? n + 1 : 0;
}

/* As NeMo-Skills cleans streams for Plain and Minimal: without colours, blank begin and blank end. */
static void clean(struct buf *buf)
{
        size_t n = 0, from = 0;
        if (!buf_add(buf, "", 1))
                return;
        for (const char *at = buf->bytes, *end = buf->bytes + buf->len - 1; at < end;) {
                size_t skipped = csi_length(at);
                if (!skipped)
                        buf->bytes[n++] = *at;
                at += skipped ? skipped : 1;
        }
        while (n && strchr(" \t\r\n\v\f", buf->bytes[n - 1]))
                n--;
        while (from < n && buf->bytes[from] == '\n')
                from++;
        memmove(buf->bytes, buf->bytes + from, n - from);
        buf->len = n - from;
        if (buf->len)
                buf_add(buf, "\n", 1);
}

/* Lines of a traceback that are no text of IPython's: files of cells, and marks below a line. */
static bool is_hidden(const char *line)
{
        const char *text = line + strspn(line, " ");
        return strncmp(text, "File \"/home/user/", 17) == 0 || strncmp(text, "File \"<", 7) == 0 ||
                (strspn(text, "~^ ") == strlen(text) && text[0]);
}

static void add_error(struct buf *buf, const struct failure *error, int verbosity)
{
        bool minimal = verbosity == VERBOSITY_MINIMAL, plain = minimal || verbosity == VERBOSITY_PLAIN;
        for (size_t i = minimal && error->traceback_n ? error->traceback_n - 1 : 0; i < error->traceback_n; i++)
                if (!plain || !is_hidden(error->traceback[i]))
                        buf_printf(buf, "%s\n", error->traceback[i]);
        if (error->traceback_n)
                return;
        if (error->text && !minimal)
                buf_printf(buf, "    %s\n    %*s^\n", error->text,
                        error->column > 1 ? (int)min_u64(error->column - 1, 1000) : 0, "");
        buf_printf(buf, "%s: %s\n", error->type, error->message);
}

static const char *text_form_of(const struct value *value)
{
        for (size_t i = 0; i < value->data_n; i++)
                if (strcmp(value->data[i].name, "text/plain") == 0)
                        return value->data[i].value;
        return value->repr ? value->repr : value->value;
}

/* What IPython prints beside what the program prints: the value of the last expression, and the error. */
static void add_ipython(struct buf *buf, const struct run_result *result, int verbosity)
{
        bool has_value = HAS(result, run_result, result) && result->result.type &&
                strcmp(result->result.type, "NoneType") != 0;
        const char *value = has_value ? text_form_of(&result->result) : NULL;
        if (value)
                buf_printf(buf, "%s\n", value);
        if (HAS(result, run_result, error) && result->error.type)
                add_error(buf, &result->error, verbosity);
}

/* At most so many characters, as a text. */
static json_t *cut_text(const char *bytes, size_t len, size_t characters)
{
        struct arena arena = { 0 };
        struct buf buf;
        size_t n, at = 0, count = 0;
        const char *text = model_utf8(&arena, bytes ? bytes : "", len, &n);
        while (at < n && count < characters) {
                at++;
                while (at < n && ((unsigned char)text[at] & 0xc0) == 0x80)
                        at++;
                count++;
        }
        buf_init(&buf, TEXT_MAX + sizeof CUT);
        buf_add(&buf, text, at);
        if (at < n)
                buf_add(&buf, CUT, strlen(CUT));
        json_t *json = json_stringn(buf.bytes ? buf.bytes : "", buf.len);
        buf_done(&buf);
        arena_done(&arena);
        return json;
}

/* ---- the answer ---- */

static const char *status_of(const struct nemo *nemo, const struct run_result *result)
{
        if (result->status == status_TIMEOUT)
                return "timeout";
        if (result->status == status_COMPLETED)
                return "completed";
        bool ended = HAS(result, run_result, exit_code) &&
                (result->status == status_FAILED || result->status == status_SYNTAX_ERROR);
        return ended && !nemo->is_ipython && !nemo->is_shell ? "completed" : "error";
}

static bool is_restarted(const struct run_result *result)
{
        for (size_t i = 0; i < result->warnings_n; i++)
                if (strcmp(result->warnings[i].code, "context_restarted") == 0)
                        return true;
        return false;
}

/* What ended the program, where its own streams do not say so. */
static const char *ending_of(const struct run_result *result)
{
        bool own = result->status == status_COMPLETED || result->status == status_FAILED ||
                result->status == status_SYNTAX_ERROR || result->status == status_TIMEOUT;
        return own || !HAS(result, run_result, error) ? NULL : result->error.message;
}

static void add_streams(const struct nemo *nemo, const struct run_result *result, struct buf *out, struct buf *errors)
{
        bool late = result->status == status_TIMEOUT, is_plain = nemo->verbosity <= VERBOSITY_MINIMAL;
        const char *ending = ending_of(result);
        if (!late || nemo->is_ipython)
                buf_add(out, result->stdout.bytes ? result->stdout.bytes : "", result->stdout.len);
        if (!late || nemo->is_ipython)
                buf_add(errors, result->stderr.bytes ? result->stderr.bytes : "", result->stderr.len);
        if (nemo->is_ipython && !late)
                add_ipython(out, result, nemo->verbosity);
        if (nemo->is_ipython && is_plain) {
                clean(out);
                clean(errors);
        }
        if (late)
                buf_printf(errors, "Execution timed out after %s seconds\n", nemo->timeout);
        else if (ending)
                buf_printf(errors, "%s\n", ending);
}

/* Perhaps in a helper thread. */
static void on_encode(void *own, const struct run_result *result)
{
        struct nemo *nemo = own;
        struct buf out, errors;
        buf_init(&out, TEXT_MAX);
        buf_init(&errors, TEXT_MAX);
        add_streams(nemo, result, &out, &errors);
        json_t *answer = json_pack("{s:s, s:o, s:o}", "process_status", status_of(nemo, result), "stdout",
                cut_text(out.bytes, out.len, nemo->characters), "stderr",
                cut_text(errors.bytes, errors.len, nemo->characters));
        if (nemo->is_ipython)
                json_object_set_new(answer, "new_session_created",
                        json_boolean(nemo->is_new || is_restarted(result)));
        buf_done(&out);
        buf_done(&errors);
        nemo->text = http_json_text(answer);
        nemo->status = service_ran_nothing(result) ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct nemo *nemo = own;
        char *text = nemo->text;
        nemo->text = NULL;
        if (nemo->session && !service_ran_nothing(result))
                nemo_session_used(nemo->service, nemo->tenant, nemo->session);
        if (nemo->status != MHD_HTTP_OK)
                http_set_header(request, "Retry-After", "1");
        http_answer_json(request, nemo->status, text);
}

static void on_gone(void *own)
{
        struct nemo *nemo = own;
        if (nemo->session)
                nemo_session_used(nemo->service, nemo->tenant, nemo->session);
}

static void on_drop(void *own)
{
        struct nemo *nemo = own;
        free(nemo->text);
        nemo->text = NULL;
}

static const struct run_responder words = { .encode = on_encode, .answer = on_answer, .gone = on_gone,
        .drop = on_drop };

/* ---- POST /execute ---- */

/* A request that waits for its session, in the request's arena. */
struct waiting {
        struct nemo_waiter waiter;
        struct http_request *request;
};

static void start(struct http_request *request, const char *context)
{
        struct nemo *nemo = parse_of(request)->given;
        struct run *run;
        if (context) {
                run = run_new(service_of(request)->engine);
                *run_request(run) = nemo->given.request;
                UNMARK(run_request(run), run_request, language);
                SET(run_request(run), run_request, context, arena_text(run_arena(run), "%s", context));
                nemo->is_new = nemo_session_is_new(service_of(request), request->tenant, nemo->session);
        } else {
                run = compat_run(request, &nemo->given.request);
        }
        if (!compat_may_run(request, run))
                return;
        parse_move(parse_of(request), run_arena(run));
        nemo->session = nemo->session ? arena_text(run_arena(run), "%s", nemo->session) : NULL;
        nemo->service = service_of(request);
        snprintf(nemo->tenant, sizeof nemo->tenant, "%s", request->tenant);
        service_start_run(request, run, &words, nemo, false);
}

static void on_context(struct nemo_waiter *waiter, const char *context, const struct csn_error *error)
{
        struct waiting *waiting = waiter->owner;
        struct http_request *request = waiting->request;
        request->gone = NULL;
        request->owner = NULL;
        if (error)
                http_fail(request, error);
        else
                start(request, context);
}

static void on_waiter_gone(struct http_request *request)
{
        struct waiting *waiting = request->owner;
        nemo_session_unwait(&waiting->waiter);
}

static bool has_scope(struct http_request *request, unsigned scope, const char *what)
{
        const struct store_key *key = service_key(request);
        struct csn_error err;
        char name[KEY_SCOPES_MAX];
        if (!key || (key->scopes & (scope | SCOPE_ADMIN)))
                return true;
        scopes_print(scope, name, sizeof name);
        err_set(&err, CSN_E_DENIED, 0, "this key does not allow %s: it needs the scope %s", what, name);
        http_fail(request, &err);
        return false;
}

static bool take_session(struct http_request *request, struct nemo *nemo)
{
        struct csn_error err;
        const char *id = http_header(request, "X-Session-ID");
        if (id && nemo->is_ipython)
                nemo->session = arena_text(&request->arena, "%s", id);
        if (!nemo->session || (nemo->session[0] && strlen(nemo->session) <= NEMO_SESSION_MAX &&
                                      utf8_valid(nemo->session, strlen(nemo->session))))
                return true;
        err_field(&err, "X-Session-ID", "the id of a session is a text of 1 to %d bytes", NEMO_SESSION_MAX);
        http_problem(request, MHD_HTTP_BAD_REQUEST, &err);
        return false;
}

static void nemo_execute(struct http_request *request)
{
        struct nemo *nemo = parse_of(request)->given;
        struct http_limit limit = { 0 };
        struct csn_error err;
        if (compat_answer(request, &nemo->given) || !take_session(request, nemo))
                return;
        if (!nemo->is_ipython) {
                if (has_scope(request, SCOPE_RUN, "runs"))
                        start(request, NULL);
                return;
        }
        if (!nemo->session) {
                http_json(request, MHD_HTTP_OK, error_form("X-Session-ID header required for ipython sessions\n"));
                return;
        }
        if (!has_scope(request, SCOPE_SANDBOXES, "sessions"))
                return;
        struct waiting *waiting = arena_alloc(&request->arena, sizeof *waiting);
        *waiting = (struct waiting){ .request = request };
        waiting->waiter = (struct nemo_waiter){ .done = on_context, .owner = waiting };
        request->owner = waiting;
        request->gone = on_waiter_gone;
        if (nemo_session_open(request, nemo->session, &waiting->waiter, &limit, &err) == 0)
                return;
        request->gone = NULL;
        if (limit.name)
                service_answer_busy(request, &limit, &err);
        else
                http_fail(request, &err);
}

/* ---- sessions ---- */

static void nemo_list_sessions(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK,
                json_pack("{s:o, s:s}", "sessions", nemo_sessions_list(request), "backend", "ipython"));
}

static void nemo_delete_session(struct http_request *request)
{
        const char *id = http_part(request, 0);
        if (nemo_session_delete(request, id))
                http_json(request, MHD_HTTP_OK,
                        json_pack("{s:o}", "message", json_sprintf("IPython session %s deleted successfully", id)));
        else
                http_json(request, MHD_HTTP_NOT_FOUND,
                        json_pack("{s:o}", "error", json_sprintf("IPython session %s not found", id)));
}

/* ---- the front ---- */

static enum front_found find_session(struct service *service, const struct front_name *name)
{
        bool found = strcmp(name->kind, "nemo_session") == 0 &&
                nemo_session_exists(service, name->tenant, name->name);
        return found ? FRONT_FOUND : FRONT_ABSENT;
}

static const struct http_route routes[] = {
        { "POST", "/execute", NULL, SCOPE_RUN | SCOPE_SANDBOXES, BODY_TREE | BODY_MIB(16), nemo_execute,
                "As the sandbox of NeMo-Skills: execute a program, in a session if X-Session-ID names one.", NULL, NULL },
        { "GET", "/sessions", NULL, SCOPE_SANDBOXES | SCOPE_READ, BODY_NONE, nemo_list_sessions,
                "As the sandbox of NeMo-Skills: the sessions of this key's tenant.", NULL, NULL },
        { "DELETE", "/sessions/{id}", NULL, SCOPE_SANDBOXES, BODY_NONE, nemo_delete_session,
                "As the sandbox of NeMo-Skills: end a session.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { nemo_execute, "200:json", "400:json 429 503:json", "json", "X-Session-ID", NULL,
                "{\"generated_code\": \"print(6 * 7)\", \"language\": \"ipython\", \"timeout\": 10}" },
        { nemo_list_sessions, "200:json", NULL, NULL, NULL, NULL, NULL },
        { nemo_delete_session, "200:json", "404:json", NULL, NULL, NULL, NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_value parameters[] = {
        { "X-Session-ID", "{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 200}", NULL, false,
                "The session of NeMo-Skills; an unknown one is made." },
        { NULL, NULL, NULL, false, NULL },
};

static const struct front_tag tags[] = {
        { "/execute", "NeMo-Skills", "Requests in the words of the sandbox of NeMo-Skills." },
        { "/sessions", "NeMo-Skills", NULL },
        { NULL, NULL, NULL },
};

static const struct parse_converter converters[] = {
        { .handle = nemo_execute, .begin = begin, .convert = convert, .drop = compat_drop },
        { .handle = NULL },
};

const struct front nemo_front = { .name = "nemo_skills",
        .routes = routes,
        .notes = notes,
        .converters = converters,
        .parameters = parameters,
        .tags = tags,
        .state_size = sizeof(struct nemo_state),
        .find = find_session,
        .stop = nemo_sessions_close };
