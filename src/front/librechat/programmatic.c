/*
 * POST /exec/programmatic: a program that calls tools of the client, which cannot be asked in the middle of a request.
 *
 * The program runs until all its tasks wait for tools.  Then the run is ended, and the answer has the calls and a
 * token.  A request with the token and the results runs the program again from its begin: calls of the history are
 * answered as before, by tool and arguments in their order.  So no sandbox waits for a client, and the effects of a
 * program other than calls happen once in each run.
 */
#include "front/librechat/librechat.h"

#include "tools/tools.h"

#include <stdio.h>

#define SETTLE_US (50 * 1000ULL)           /* without a new call: all tasks wait */
#define KEEP_US SERVICE_KEEP_US            /* for which a token is valid */
#define ROUNDS_MAX 100                     /* runs of one program */
#define BYTES_MAX (4 * MIB)                /* of the program, its tools, and its history as JSON */
#define PAUSED_MAX 1024                    /* of all tenants */
#define PAUSED_BYTES_MAX (128 * MIB)
#define PAUSED_TENANT_MAX 64               /* of one tenant, whose oldest goes beyond that */
#define PAUSED_TENANT_BYTES_MAX (16 * MIB)
#define TOKEN_PREFIX "lct_"
#define CALLS_AT_ONCE 64                   /* as the field concurrent has it */
#define PAYLOAD_BYTES (1 * MIB)            /* of the arguments of a call, and of its result */

struct programmatic {
        struct programmatic *next;         /* in the front's list, while paused */
        struct service *service;
        char tenant[80], token[sizeof TOKEN_PREFIX + ID_DIGITS];
        struct arena arena;
        struct librechat_exec exec;
        char **tools, **names;             /* of the sandbox, and of the client */
        size_t tools_n;
        json_t *ours;                      /* the run_request */
        json_t *history;                   /* {"key", "result" or "error"} of each answered call */
        json_t *pending;                   /* {"id", "name", "input", "key"} of each call without an answer */
        json_t *arrived;                   /* events of this run that were not looked at */
        bool *used;                        /* rows of the history that this run has had */
        size_t rounds, calls, bytes;
        struct run *run;                   /* NULL: paused */
        struct timer look, settle, expiry;
        bool asks;                         /* the run is ended because of pending calls */
        bool paused;
        char *text;                        /* of the answer */
};

static struct librechat_state *librechat_state(const struct service *service)
{
        return service_state_of(service, "librechat");
}

static void programmatic_free(struct programmatic *one)
{
        struct loop *loop = one->service->loop;
        loop_untimer(loop, &one->look);
        loop_untimer(loop, &one->settle);
        loop_untimer(loop, &one->expiry);
        json_decref(one->ours);
        json_decref(one->history);
        json_decref(one->pending);
        json_decref(one->arrived);
        free(one->used);
        free(one->text);
        arena_done(&one->arena);
        free(one);
}

/* ---- paused executions ---- */

static void unpause(struct programmatic *one)
{
        struct librechat_state *state = librechat_state(one->service);
        for (struct programmatic **at = &state->paused; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        state->paused_n--;
        state->paused_bytes -= one->bytes;
        one->paused = false;
        loop_untimer(one->service->loop, &one->expiry);
}

static void on_expiry(struct timer *timer)
{
        struct programmatic *one = timer->owner;
        unpause(one);
        programmatic_free(one);
}

static size_t json_bytes(const json_t *json)
{
        return json_dumpb(json, NULL, 0, JSON_COMPACT);
}

/* Clients leave programs behind, so a tenant with many loses its oldest. */
static void make_room(struct programmatic *one)
{
        size_t n = 1, bytes = one->bytes;
        for (struct programmatic *other = librechat_state(one->service)->paused, *next; other; other = next) {
                next = other->next;
                if (strcmp(other->tenant, one->tenant) != 0)
                        continue;
                n++;
                bytes += other->bytes;
                if (n <= PAUSED_TENANT_MAX && bytes <= PAUSED_TENANT_BYTES_MAX)
                        continue;
                unpause(other);
                programmatic_free(other);
        }
}

/* Errors: CSN_E_BUSY. */
static int pause_one(struct programmatic *one, struct csn_error *err)
{
        struct librechat_state *state = librechat_state(one->service);
        one->bytes = json_bytes(one->ours) + json_bytes(one->history) + json_bytes(one->pending);
        make_room(one);
        if (state->paused_n >= PAUSED_MAX || state->paused_bytes + one->bytes > PAUSED_BYTES_MAX)
                return err_set(err, CSN_E_BUSY, 0,
                        "%zu programs wait for the results of tools, with %zu bytes; at most %d with %llu bytes may",
                        state->paused_n, state->paused_bytes, PAUSED_MAX, PAUSED_BYTES_MAX);
        snprintf(one->token, sizeof one->token, TOKEN_PREFIX);
        id_new(one->token + strlen(TOKEN_PREFIX));
        one->next = state->paused;
        state->paused = one;
        state->paused_n++;
        state->paused_bytes += one->bytes;
        one->paused = true;
        loop_timer(one->service->loop, &one->expiry, KEEP_US);
        return 0;
}

static struct programmatic *find_paused(const struct http_request *request, const char *token)
{
        struct programmatic *one = librechat_state(service_of(request))->paused;
        while (one && (strcmp(one->token, token) != 0 || strcmp(one->tenant, request->tenant) != 0))
                one = one->next;
        return one;
}

/* Executions that run are freed with their runs. */
void librechat_programmatic_close(struct service *service)
{
        for (struct programmatic *one; (one = librechat_state(service)->paused);) {
                unpause(one);
                programmatic_free(one);
        }
}

/* ---- calls of a run ---- */

/* Arguments with the same members are the same in any order. */
static json_t *key_of(const char *tool, const json_t *arguments)
{
        char *text = json_dumps(arguments, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
        json_t *key = text ? json_sprintf("%s %s", tool, text) : NULL;
        free(text);
        return key ? key : json_string(tool);
}

/* The next answer of the history to the same call; NULL: none is left. */
static json_t *recorded(struct programmatic *one, const json_t *key)
{
        json_t *row;
        size_t i;
        json_array_foreach(one->history, i, row)
                if (!one->used[i] && json_equal(json_object_get(row, "key"), key)) {
                        one->used[i] = true;
                        return row;
                }
        return NULL;
}

static void answer_call(struct programmatic *one, const char *call, const json_t *row)
{
        struct tool_answer answer = { 0 };
        struct csn_error err;
        const json_t *error = json_object_get(row, "error");
        char *text = error ? NULL : json_dumps(json_object_get(row, "result"), JSON_COMPACT | JSON_ENCODE_ANY);
        answer.call = (char *)(uintptr_t)call;
        if (text)
                SET(&answer, tool_answer, result, text);
        else
                SET(&answer, tool_answer, error,
                        (char *)(uintptr_t)(error ? json_string_value(error) : "the result cannot be written as JSON"));
        if (broker_answer(one->run, &answer, &err) < 0)
                log_text(LOG_INFO, "a call of a replayed program takes no answer: %s", err.text);
        free(text);
}

static const char *client_name(const struct programmatic *one, const char *tool)
{
        for (size_t i = 0; i < one->tools_n; i++)
                if (strcmp(one->tools[i], tool) == 0)
                        return one->names[i];
        return tool;
}

static void on_look(struct timer *timer)
{
        struct programmatic *one = timer->owner;
        json_t *event, *events = one->arrived;
        size_t i;
        one->arrived = json_array();
        json_array_foreach(events, i, event) {
                const char *call = json_string_value(json_object_get(event, "call")),
                           *tool = json_string_value(json_object_get(event, "tool"));
                json_t *arguments = json_object_get(event, "arguments");
                if (!call || !tool || one->asks)
                        continue;
                json_t *key = key_of(tool, arguments), *row = recorded(one, key);
                if (row) {
                        answer_call(one, call, row);
                        json_decref(key);
                        continue;
                }
                json_array_append_new(one->pending,
                        json_pack("{s:o, s:s, s:O, s:o}", "id", json_sprintf("call_%03zu", ++one->calls), "name",
                                client_name(one, tool), "input", arguments, "key", key));
                loop_timer(one->service->loop, &one->settle, SETTLE_US);
        }
        json_decref(events);
}

static void on_settled(struct timer *timer)
{
        struct programmatic *one = timer->owner;
        one->asks = true;
        run_cancel(one->run);
}

/* The broker is in the middle of the call, so the event is looked at from the loop. */
static void on_event(void *owner, json_t *event)
{
        struct programmatic *one = owner;
        const char *type = json_string_value(json_object_get(event, "type"));
        if (type && strcmp(type, "tool_call") == 0) {
                json_array_append(one->arrived, event);
                loop_timer(one->service->loop, &one->look, 0);
        }
        json_decref(event);
}

static const struct run_listener listener = { .told = on_event };

/* ---- the end of a run ---- */

static void on_encode(void *own, const struct run_result *result)
{
        struct programmatic *one = own;
        if (result->status != status_CANCELLED)
                one->text = http_json_text(librechat_programmatic_answer(&one->exec, result));
}

/* Files of a run that comes again, or failed, belong to no session. */
static void forget_files(const struct programmatic *one, const struct run_result *result)
{
        for (size_t i = 0; i < result->files_n; i++) {
                const struct output_file *file = &result->files[i];
                const char *id = HAS(file, output_file, url) ? strstr(file->url, "file_") : NULL;
                struct csn_error err;
                bool there;
                if (id && files_forget(one->service->store, id, one->tenant, &there, &err) < 0)
                        log_text(LOG_ERROR, "%s", err.text);
        }
}

static json_t *calls_json(const struct programmatic *one)
{
        json_t *list = json_array(), *call;
        size_t i;
        json_array_foreach(one->pending, i, call) {
                json_t *copy = json_copy(call);
                json_object_del(copy, "key");
                json_array_append_new(list, copy);
        }
        return list;
}

static void answer_asks(struct http_request *request, struct programmatic *one, const struct run_result *result)
{
        struct csn_error err;
        char session[ID_COMPACT_LEN + 1];
        id_to_compact(result->id + strlen(LIBRECHAT_RUN), session);
        if (pause_one(one, &err) < 0) {
                librechat_fail(request, &err);
                return;
        }
        one->run = NULL;
        http_json(request, MHD_HTTP_OK,
                json_pack("{s:s, s:s, s:s, s:o}", "status", "tool_call_required", "session_id", session,
                        "continuation_token", one->token, "tool_calls", calls_json(one)));
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct programmatic *one = own;
        bool asks = one->asks && result->status == status_CANCELLED;   /* else the program ended by itself before */
        if (result->status != status_COMPLETED)
                forget_files(one, result);
        if (asks) {
                answer_asks(request, one, result);
        } else if (!librechat_refused(request, result)) {
                if (!one->text)
                        one->text = http_json_text(librechat_programmatic_answer(&one->exec, result));
                http_answer_json(request, MHD_HTTP_OK, one->text);
                one->text = NULL;
        }
}

static void on_drop(void *own)
{
        struct programmatic *one = own;
        if (!one->paused)
                programmatic_free(one);
}

static const struct run_responder responder = { .encode = on_encode, .answer = on_answer, .drop = on_drop };

/* ---- a run ---- */

static void start(struct http_request *request, struct programmatic *one)
{
        struct csn_error err;
        struct run *run = run_new(one->service->engine);
        if (compat_decode(json_deep_copy(one->ours), run_arena(run), run_request(run), &err) < 0) {
                run_free(run);
                programmatic_free(one);
                librechat_fail(request, &err);
                return;
        }
        run_set_own_prelude(run);
        if (one->exec.language == &lang_python)
                run_set_awaits(run);
        one->run = run;
        run_set_listener(run, &listener, one);
        if (!librechat_begin(request, run, &one->exec)) {
                programmatic_free(one);
                return;
        }
        one->rounds++;
        one->asks = false;
        json_array_clear(one->arrived);
        free(one->used);
        one->used = mem_alloc((json_array_size(one->history) + 1) * sizeof *one->used);
        memset(one->used, 0, (json_array_size(one->history) + 1) * sizeof *one->used);
        service_start_run(request, run, &responder, one, false);
}

/* ---- tools ---- */

static int read_tool(struct programmatic *one, const json_t *tool, size_t i, char **functions, json_t *client,
        struct csn_error *err)
{
        const char *name = json_string_value(json_object_get(tool, "name"));
        json_t *description = json_object_get(tool, "description"), *schema = json_object_get(tool, "parameters");
        functions[i] = librechat_function(one->exec.language, name ? name : "", &one->arena);
        if (!name || !name[0] || strlen(name) != json_string_length(json_object_get(tool, "name")))
                return err_field(err, "tools", "tools[%zu].name is required as a text", i);
        if (!functions[i][strspn(functions[i], "_")])
                return err_field(err, "tools", "tools[%zu].name \"%.60s\" has no letter and no digit", i, name);
        for (size_t k = 0; k < i; k++)
                if (strcmp(functions[k], functions[i]) == 0)
                        return err_field(err, "tools", "tools[%zu] and tools[%zu] are both the function %.60s", k, i,
                                functions[i]);
        one->names[i] = arena_text(&one->arena, "%s", name);
        one->tools[i] = tools_is_name(name) ? one->names[i] : arena_text(&one->arena, "tool_%zu", i);
        json_t *ours = json_pack("{s:s}", "name", one->tools[i]);
        if (json_is_string(description))
                json_object_set(ours, "description", description);
        if (json_is_object(schema))
                json_object_set(ours, "input_schema", schema);
        json_array_append_new(client, ours);
        return 0;
}

static int read_tools(struct programmatic *one, const json_t *body, struct csn_error *err)
{
        const json_t *tools = json_object_get(body, "tools");
        json_t *client = json_array(), *tool;
        char *functions[LIBRECHAT_TOOLS_MAX] = { 0 };
        size_t i;
        int rc = 0;
        if (tools && !json_is_null(tools) && !json_is_array(tools))
                rc = err_field(err, "tools", "tools has to be an array");
        else if (json_array_size(tools) > LIBRECHAT_TOOLS_MAX)
                rc = err_field(err, "tools", "tools has %zu members, at most %d are possible", json_array_size(tools),
                        LIBRECHAT_TOOLS_MAX);
        one->tools_n = rc < 0 ? 0 : json_array_size(tools);
        one->tools = arena_alloc(&one->arena, (one->tools_n + 1) * sizeof *one->tools);
        one->names = arena_alloc(&one->arena, (one->tools_n + 1) * sizeof *one->names);
        for (i = 0; rc == 0 && i < one->tools_n; i++) {
                tool = json_array_get(tools, i);
                rc = read_tool(one, tool, i, functions, client, err);
        }
        if (rc < 0) {
                json_decref(client);
                return rc;
        }
        json_object_set_new(one->ours, "tools",
                json_pack("{s:o, s:[], s:b, s:b, s:b, s:i, s:I}", "client", client, "allow", "enabled", 1, "decode", 1,
                        "raise", 1, "concurrent", CALLS_AT_ONCE, "payload_bytes", (json_int_t)PAYLOAD_BYTES));
        json_object_set_new(one->ours, "prelude",
                librechat_prelude(one->exec.language, functions, one->tools, one->tools_n));
        return 0;
}

/* ---- requests ---- */

static struct programmatic *programmatic_new(struct http_request *request)
{
        struct programmatic *one = mem_alloc(sizeof *one);
        *one = (struct programmatic){ .service = service_of(request),
                .history = json_array(),
                .pending = json_array(),
                .arrived = json_array(),
                .look = { .fired = on_look, .owner = one },
                .settle = { .fired = on_settled, .owner = one },
                .expiry = { .fired = on_expiry, .owner = one } };
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        return one;
}

static void begin(struct http_request *request, json_t *body)
{
        struct csn_error err;
        struct programmatic *one = programmatic_new(request);
        int rc = librechat_read(request, body, lang_python.name, &one->arena, &one->exec, &one->ours, &err);
        if (rc == 0 && one->exec.language != &lang_python && one->exec.language != &lang_bash)
                rc = err_field(&err, "lang", "programs that call tools are Python (py) or Bash (bash), not %.40s",
                        one->exec.language->name);
        rc = rc < 0 ? rc : read_tools(one, body, &err);
        if (rc == 0 && json_bytes(one->ours) > BYTES_MAX)
                rc = err_field(&err, "code", "the program and its tools have more than %llu bytes as JSON", BYTES_MAX);
        if (rc == 0) {
                start(request, one);
                return;
        }
        programmatic_free(one);
        librechat_fail(request, &err);
}

/* The result for a pending call; NULL: there is none. */
static json_t *result_for(const json_t *results, const char *id)
{
        json_t *result;
        size_t i;
        json_array_foreach(results, i, result) {
                const char *call = json_string_value(json_object_get(result, "call_id"));
                if (call && strcmp(call, id) == 0)
                        return result;
        }
        return NULL;
}

static int check_results(const struct programmatic *one, const json_t *results, struct csn_error *err)
{
        json_t *call;
        size_t i;
        if (!json_is_array(results))
                return err_field(err, "tool_results", "tool_results has to be an array");
        if (json_array_size(results) != json_array_size(one->pending))
                return err_field(err, "tool_results", "tool_results has %zu members, and %zu calls wait",
                        json_array_size(results), json_array_size(one->pending));
        json_array_foreach(one->pending, i, call)
                if (!result_for(results, json_string_value(json_object_get(call, "id"))))
                        return err_field(err, "tool_results", "tool_results has no result with the call_id %s",
                                json_string_value(json_object_get(call, "id")));
        if (one->rounds >= ROUNDS_MAX)
                return err_field(err, "continuation_token", "the program was run %d times, and calls tools again",
                        ROUNDS_MAX);
        if (one->bytes + json_bytes(results) > BYTES_MAX)
                return err_field(err, "tool_results", "the program and the results of its tools have more than %llu bytes as JSON",
                        BYTES_MAX);
        return 0;
}

static void add_results(struct programmatic *one, const json_t *results)
{
        json_t *call;
        size_t i;
        json_array_foreach(one->pending, i, call) {
                const json_t *given = result_for(results, json_string_value(json_object_get(call, "id")));
                json_t *row = json_pack("{s:O}", "key", json_object_get(call, "key")),
                       *result = json_object_get(given, "result"), *message = json_object_get(given, "error_message");
                if (json_is_true(json_object_get(given, "is_error")))
                        json_object_set_new(row, "error",
                                json_is_string(message) ? json_incref(message) : json_string("the tool failed"));
                else
                        json_object_set_new(row, "result", result ? json_incref(result) : json_null());
                json_array_append_new(one->history, row);
        }
        json_array_clear(one->pending);
}

static void go_on(struct http_request *request, const json_t *body)
{
        struct csn_error err;
        const char *token = json_string_value(json_object_get(body, "continuation_token"));
        struct programmatic *one = token ? find_paused(request, token) : NULL;
        if (!token) {
                err_field(&err, "continuation_token", "continuation_token has to be a text");
                librechat_problem(request, MHD_HTTP_BAD_REQUEST, &err);
        } else if (!one) {
                err_field(&err, "continuation_token",
                        "no program waits with this token: it was used, or it is older than %llu s", KEEP_US / 1000000);
                librechat_problem(request, MHD_HTTP_NOT_FOUND, &err);
        } else if (check_results(one, json_object_get(body, "tool_results"), &err) < 0) {
                librechat_problem(request, MHD_HTTP_BAD_REQUEST, &err);
        } else {
                unpause(one);
                add_results(one, json_object_get(body, "tool_results"));
                start(request, one);
        }
}

void librechat_programmatic(struct http_request *request)
{
        struct csn_error err;
        json_t *body = json_body(request, &err);
        const json_t *token = json_object_get(body, "continuation_token");
        if (!body)
                librechat_fail(request, &err);
        else if (token && !json_is_null(token))
                go_on(request, body);
        else
                begin(request, body);
        json_decref(body);
}
