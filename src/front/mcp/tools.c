/*
 * The tools: each is a route of the HTTP interface, in a row of a table.
 *
 * Arguments replace {…} in the path, or go into the query or the body, an object of fields.def.  So a tool's schema is
 * made of its parameters and its fields, and the route checks the arguments again.
 */
#include "front/mcp/mcp.h"

#include "front/service/parse.h"

#include <stdio.h>

#define PARAMS_MAX 4
#define PARAM_BYTES_MAX 4096               /* of an argument in a path or a query */

enum place { NOWHERE, IN_PATH, IN_QUERY, AS_BODY, AS_BASE64 };

struct param {
        const char *name;
        enum place place;
        bool required, number;
        const char *text;
        const char *usually;               /* default of a parameter in the query; NULL: none */
};

struct mcp_tool {
        const char *name, *title, *text;
        const char *method, *path;
        struct param params[PARAMS_MAX];
        const struct object *takes;        /* object of the body, or NULL */
        const char *fields, *required;     /* of the body; required NULL with a run_request: the profile decides */
        const char *usually;               /* JSON: default members of the body, or NULL */
        const struct object *gives;        /* NULL: no JSON */
        enum mcp_gives how;
        bool events;                       /* the route can send events */
        bool reads, destroys, repeats, outside;   /* readOnlyHint, destructiveHint, idempotentHint, openWorldHint */
};

#define SANDBOX { "sandbox", IN_PATH, true, false, "The sandbox's id." }
#define CONTEXT { "context", IN_PATH, true, false, "The context's id." }
#define PATH(text) { "path", IN_QUERY, true, false, text " From /home/user on unless it is absolute." }

/* A program without a time limit could make its caller wait for ever. */
#define COMMAND_TIME "{\"timeout_ms\": 120000}"

static const struct mcp_tool tools[] = {
        { .name = "run_code",
                .title = "Run a program",
                .method = "POST",
                .path = "/v1/runs",
                .takes = &object_run_request,
                .fields = front_run_code_fields,
                .gives = &object_run_result,
                .how = GIVES_RECORD,
                .events = true,
                .outside = true },
        { .name = "check_code",
                .title = "Check a program",
                .text = "Compare a program with a source policy. Nothing is run.",
                .method = "POST",
                .path = "/v1/check",
                .takes = &object_check_request,
                .fields = "language code prelude profile policy allow_imports forbidden_modules block_at",
                .required = "code language",
                .gives = &object_check_result,
                .how = GIVES_JSON,
                .reads = true,
                .repeats = true },
        { .name = "grade_code",
                .title = "Grade a program",
                .text = "Grade a submission by cases (calls of a function, or standard input and output) and by test code in Python.",
                .method = "POST",
                .path = "/v1/grade",
                .takes = &object_grade_request,
                .fields =
                        "language code setup function cases tests entry_point compare checker tolerance stop_on_fail show_expected profile limits policy files",
                .required = "code",
                .gives = &object_grade_result,
                .how = GIVES_JSON },
        { .name = "create_sandbox",
                .title = "Make a sandbox",
                .text = "Make a sandbox that lasts: files in it stay until it ends.",
                .method = "POST",
                .path = "/v1/sandboxes",
                .takes = &object_sandbox_request,
                .fields = "profile limits network allow env ttl_ms idle_ms",
                .gives = &object_sandbox_info,
                .how = GIVES_JSON,
                .outside = true },
        { .name = "list_sandboxes",
                .title = "List sandboxes",
                .text = "The sandboxes that are there.",
                .method = "GET",
                .path = "/v1/sandboxes",
                .gives = &object_sandbox_list,
                .how = GIVES_JSON,
                .reads = true,
                .repeats = true },
        { .name = "kill_sandbox",
                .title = "End a sandbox",
                .text = "End a sandbox, with everything in it.",
                .method = "DELETE",
                .path = "/v1/sandboxes/{sandbox}",
                .params = { SANDBOX },
                .how = GIVES_NOTHING,
                .destroys = true,
                .repeats = true },
        { .name = "run_command",
                .title = "Run a command in a sandbox",
                .text = "Run a command line in a sandbox that lasts, and get what it prints. It is killed after timeout_ms, which is 120000 if it is not given.",
                .method = "POST",
                .path = "/v1/sandboxes/{sandbox}/processes",
                .params = { SANDBOX },
                .takes = &object_process_request,
                .fields = "command args cwd env timeout_ms",
                .usually = COMMAND_TIME,
                .gives = &object_process_info,
                .how = GIVES_JSON,
                .destroys = true,
                .outside = true },
        { .name = "create_context",
                .title = "Start an interpreter in a sandbox",
                .text = "Start a live interpreter in a sandbox: variables last from one run_code with its id as `context` to the next.",
                .method = "POST",
                .path = "/v1/sandboxes/{sandbox}/contexts",
                .params = { SANDBOX },
                .takes = &object_context_request,
                .fields = "language cwd env",
                .gives = &object_context_info,
                .how = GIVES_JSON },
        { .name = "list_contexts",
                .title = "List interpreters",
                .text = "The live interpreters of a sandbox.",
                .method = "GET",
                .path = "/v1/sandboxes/{sandbox}/contexts",
                .params = { SANDBOX },
                .gives = &object_context_list,
                .how = GIVES_JSON,
                .reads = true,
                .repeats = true },
        { .name = "interrupt_context",
                .title = "Interrupt an interpreter",
                .text = "Interrupt what an interpreter executes; its variables stay.",
                .method = "POST",
                .path = "/v1/contexts/{context}/interrupt",
                .params = { CONTEXT },
                .gives = &object_context_info,
                .how = GIVES_JSON,
                .repeats = true },
        { .name = "restart_context",
                .title = "Restart an interpreter",
                .text = "A new interpreter in its place, without variables.",
                .method = "POST",
                .path = "/v1/contexts/{context}/restart",
                .params = { CONTEXT },
                .gives = &object_context_info,
                .how = GIVES_JSON,
                .destroys = true },
        { .name = "close_context",
                .title = "End an interpreter",
                .text = "End a live interpreter; the sandbox and its files stay.",
                .method = "DELETE",
                .path = "/v1/contexts/{context}",
                .params = { CONTEXT },
                .how = GIVES_NOTHING,
                .destroys = true,
                .repeats = true },
        { .name = "list_files",
                .title = "List files",
                .text = "What is in a folder of a sandbox.",
                .method = "GET",
                .path = "/v1/sandboxes/{sandbox}/entries",
                .params = { SANDBOX,
                        { "path", IN_QUERY, false, false, "The folder. Default: /home/user.", "/home/user" },
                        { "depth", IN_QUERY, false, true, "How many folders deep. Default: 1." } },
                .gives = &object_entry_list,
                .how = GIVES_JSON,
                .reads = true,
                .repeats = true },
        { .name = "read_file",
                .title = "Read a file",
                .text = "The content of a file of a sandbox: text, an image, or any bytes.",
                .method = "GET",
                .path = "/v1/sandboxes/{sandbox}/files",
                .params = { SANDBOX, PATH("The file.") },
                .how = GIVES_BYTES,
                .reads = true,
                .repeats = true },
        { .name = "write_file",
                .title = "Write a file",
                .text = "Write a file in a sandbox, and the folders above it.",
                .method = "PUT",
                .path = "/v1/sandboxes/{sandbox}/files",
                .params = { SANDBOX, PATH("The file."), { "content", AS_BODY, false, false, "The content, as text." },
                        { "content_base64", AS_BASE64, false, false,
                                "The content as any bytes, in base64, instead." } },
                .gives = &object_entry_info,
                .how = GIVES_JSON,
                .destroys = true,
                .repeats = true },
        { .name = "delete_file",
                .title = "Remove a file",
                .text = "Remove a file of a sandbox, or a folder with all in it.",
                .method = "DELETE",
                .path = "/v1/sandboxes/{sandbox}/files",
                .params = { SANDBOX, PATH("The file or folder.") },
                .how = GIVES_NOTHING,
                .destroys = true,
                .repeats = true },
};

/* ---- tools/list ---- */

/* Names in {…} differ between routes and tools: a tool names the kind of the id. */
static bool same_pattern(const char *one, const char *other)
{
        while (*one && *one == *other) {
                if (*one == '{') {
                        one += strcspn(one, "}");
                        other += strcspn(other, "}");
                }
                one++;
                other++;
        }
        return *one == *other;
}

static bool may_call(const struct mcp_call *call, const struct mcp_tool *tool)
{
        const struct store_key *key = service_key(call->http);
        const struct http_route *route = call->service->routes;
        while (route->path && (!same_pattern(route->path, tool->path) || strcmp(route->method, tool->method) != 0))
                route++;
        return !key || (key->scopes & (route->scope | SCOPE_ADMIN));
}

static void add_params(json_t *schema, const struct mcp_tool *tool)
{
        json_t *properties = json_object_get(schema, "properties"), *required = json_object_get(schema, "required");
        for (size_t i = 0; i < PARAMS_MAX && tool->params[i].name; i++) {
                const struct param *param = &tool->params[i];
                json_object_set_new(properties, param->name,
                        json_pack("{s:s, s:s}", "type", param->number ? "integer" : "string", "description",
                                param->text));
                if (param->required)
                        json_array_append_new(required, json_string(param->name));
        }
}

static json_t *input_schema(const struct mcp_call *call, const struct mcp_tool *tool)
{
        const struct settings *settings = call->service->settings;
        json_t *schema;
        if (tool->takes == &object_run_request)
                schema = front_run_code_schema(settings, settings->engine.profile);
        else if (tool->takes)
                schema = model_tool_schema(tool->takes, tool->fields, tool->required);
        else
                schema = json_pack("{s:s, s:{}, s:[], s:b}", "type", "object", "properties", "required",
                        "additionalProperties", 0);
        json_t *profile = json_object_get(json_object_get(schema, "properties"), "profile");
        if (profile)
                json_object_set_new(profile, "default", json_string(settings->engine.profile));
        add_params(schema, tool);
        return schema;
}

int mcp_describe(const struct mcp_call *call, const char *name, struct buf *buf, struct csn_error *err)
{
        const struct service *service = call->service;
        struct arena arena = { 0 };
        struct profile profile;
        int rc = profile_find(service->settings, name, &arena, &profile, err);
        if (rc == 0) {
                json_t *live = service_tools(call->http, name, false);
                const struct describe about = { .profile = name,
                        .session = profile.session,
                        .by_context = true,
                        .tools = live };
                rc = front_describe(service->settings, engine_languages(service->engine), &about, buf, err);
                json_decref(live);
        }
        arena_done(&arena);
        return rc;
}

/* NULL: a profile or a policy is wrong; the call is answered. */
static json_t *text_of(struct mcp_call *call, const struct mcp_tool *tool)
{
        struct csn_error err;
        struct buf buf;
        if (tool->text)
                return json_string(tool->text);
        buf_init(&buf, 1 * MIB);
        json_t *text = NULL;
        if (mcp_describe(call, call->service->settings->engine.profile, &buf, &err) == 0)
                text = json_stringn(buf.bytes, buf.len);
        buf_done(&buf);
        if (!text)
                mcp_fail(call, RPC_INTERNAL_ERROR, NULL, "%s", err.text);
        return text;
}

static json_t *describe(const struct mcp_call *call, const struct mcp_tool *tool, json_t *text)
{
        json_t *json = json_pack("{s:s, s:s, s:o, s:o}", "name", tool->name, "title", tool->title, "description", text,
                "inputSchema", input_schema(call, tool));
        if (tool->gives)
                json_object_set_new(json, "outputSchema", model_tool_schema(tool->gives, NULL, NULL));
        json_object_set_new(json, "annotations",
                json_pack("{s:s, s:b, s:b, s:b, s:b}", "title", tool->title, "readOnlyHint", tool->reads,
                        "destructiveHint", tool->destroys, "idempotentHint", tool->repeats, "openWorldHint",
                        tool->outside));
        return json;
}

void mcp_list_tools(struct mcp_call *call)
{
        json_t *list = json_array();
        if (json_object_get(call->params, "cursor")) {
                json_decref(list);
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "the cursor is none: all tools are in one list");
                return;
        }
        for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
                if (!may_call(call, &tools[i]))
                        continue;
                json_t *text = text_of(call, &tools[i]);
                if (!text) {
                        json_decref(list);
                        return;
                }
                json_array_append_new(list, describe(call, &tools[i], text));
        }
        mcp_answer_list(call, json_pack("{s:o}", "tools", list));
}

/* ---- tools/call ---- */

static const struct param *param_of(const struct mcp_tool *tool, const char *name)
{
        for (size_t i = 0; i < PARAMS_MAX && tool->params[i].name; i++)
                if (strcmp(tool->params[i].name, name) == 0)
                        return &tool->params[i];
        return NULL;
}

static bool is_field(const struct mcp_tool *tool, const char *name)
{
        size_t len = strlen(name);
        for (const char *at = tool->takes ? tool->fields : ""; *at; at += strcspn(at, " "), at += *at == ' ')
                if (strcspn(at, " ") == len && memcmp(at, name, len) == 0)
                        return true;
        return false;
}

/* The arguments of a call as the request to the route of the tool. */
struct asked {
        const struct mcp_tool *tool;       /* NULL: no such tool, or the message calls none */
        bool no_object;                    /* the arguments are no object */
        char error[400];                   /* in the arguments; "": none */
        char path[400];
        struct pair query[PARAMS_MAX];
        size_t query_n;
        char *body;                        /* from malloc(3), or NULL */
        size_t body_len;
};

/* Always false. */
static bool refuse(struct asked *asked, const char *fmt, ...) PRINTF_LIKE(2, 3);

static bool refuse(struct asked *asked, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        vsnprintf(asked->error, sizeof asked->error, fmt, args);
        va_end(args);
        return false;
}

/* A segment of a path: an id has no characters to end the segment. */
static bool put_in_path(struct asked *asked, const struct param *param, const char *value)
{
        char before[400], name[40];
        snprintf(before, sizeof before, "%s", asked->path);
        snprintf(name, sizeof name, "{%s}", param->name);
        char *at = strstr(before, name);
        if (!at || !value[0] || strlen(value) > 64 ||
                value[strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")])
                return false;
        snprintf(asked->path, sizeof asked->path, "%.*s%s%s", (int)(at - before), before, value, at + strlen(name));
        return true;
}

static void set_body(struct asked *asked, const char *bytes, size_t len)
{
        free(asked->body);
        asked->body = mem_copy(bytes, len);
        asked->body_len = len;
}

static bool put_base64(struct asked *asked, const struct param *param, const char *text)
{
        struct arena arena = { 0 };
        struct bytes bytes;
        bool good = model_unbase64(&arena, text, strlen(text), &bytes);
        if (good)
                set_body(asked, bytes.bytes, bytes.len);
        arena_done(&arena);
        return good || refuse(asked, "%s is not base64", param->name);
}

static bool put(struct asked *asked, const struct param *param, const json_t *value, struct arena *arena)
{
        const char *text = param->number ? NULL : json_string_value(value);
        bool short_one = param->place == IN_PATH || param->place == IN_QUERY;
        if (param->number && json_is_integer(value))
                text = arena_text(arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        if (!text || (param->place != AS_BODY && json_is_string(value) && strlen(text) != json_string_length(value)))
                return refuse(asked, "%s has to be %s", param->name,
                        param->number ? "a whole number" : "a text without NUL");
        if (short_one && strlen(text) > PARAM_BYTES_MAX)
                return refuse(asked, "%s is longer than %d bytes", param->name, PARAM_BYTES_MAX);
        if (param->place == IN_PATH && !put_in_path(asked, param, text))
                return refuse(asked, "%s is \"%.80s\", which is no id", param->name, text);
        if (param->place == IN_QUERY)
                asked->query[asked->query_n++] =
                        (struct pair){ (char *)(uintptr_t)param->name, arena_text(arena, "%s", text) };
        if (param->place == AS_BODY)
                set_body(asked, text, json_string_length(value));
        return param->place != AS_BASE64 || put_base64(asked, param, text);
}

static bool put_missing(struct asked *asked, const json_t *arguments)
{
        for (size_t i = 0; i < PARAMS_MAX && asked->tool->params[i].name; i++) {
                const struct param *param = &asked->tool->params[i];
                bool given = json_object_get(arguments, param->name) != NULL;
                if (param->required && !given)
                        return refuse(asked, "%s needs the argument \"%s\"", asked->tool->name, param->name);
                if (param->usually && !given)
                        asked->query[asked->query_n++] =
                                (struct pair){ (char *)(uintptr_t)param->name, (char *)(uintptr_t)param->usually };
        }
        return true;
}

/* body: gets the arguments for members of the body. */
static bool take_arguments(struct asked *asked, json_t *arguments, json_t *body, struct arena *arena)
{
        const char *name;
        json_t *value;
        json_object_foreach(arguments, name, value) {
                const struct param *param = param_of(asked->tool, name);
                if (!param && !is_field(asked->tool, name))
                        return refuse(asked, "%s has no argument \"%.60s\"", asked->tool->name, name);
                if (!param)
                        json_object_set(body, name, value);
                else if (!put(asked, param, value, arena))
                        return false;
        }
        return put_missing(asked, arguments);
}

/* Facts known to the loop, for the converter in a helper thread. */
struct mcp_context {
        bool keeps;                        /* files of runs can be kept */
        bool has_language;                 /* the daemon's profile names a language */
        bool fresh;                        /* its session mode is files: each execution has a new interpreter */
};

/*
 * Files are kept where possible: a client has no other access to files.  `renamed`: the call names code_execution, with
 * Python as its default language.
 */
static void add_usual(const struct mcp_tool *tool, json_t *body, const struct mcp_context *context, bool renamed)
{
        bool keeps = context->keeps;
        json_t *usually = tool->usually ? json_loads(tool->usually, 0, NULL) : NULL;
        json_object_update_missing(body, usually);
        json_decref(usually);
        if (tool->how == GIVES_RECORD && keeps && !json_object_get(body, "context") &&
                !json_object_get(body, "workspace") && !json_object_get(body, "exports"))
                json_object_set_new(body, "exports", json_pack("[{s:s}]", "pattern", "*"));
        if (renamed && !context->has_language && !json_object_get(body, "language") &&
                !json_object_get(body, "context") && !json_object_get(body, "profile"))
                json_object_set_new(body, "language", json_string("python"));
        if (tool->takes == &object_context_request && context->fresh)
                json_object_set_new(body, "fresh", json_true());
}

/* ---- the converter ---- */

void *mcp_begin(struct http_request *request, struct arena *arena)
{
        const struct store_key *key = service_key(request);
        const struct settings *settings = service_of(request)->settings;
        struct mcp_context *context = arena_alloc(arena, sizeof *context);
        struct profile profile;
        struct csn_error err;
        *context = (struct mcp_context){
                .keeps = service_of(request)->store && (!key || (key->scopes & (SCOPE_FILES | SCOPE_ADMIN)))
        };
        if (profile_find(settings, settings->engine.profile, arena, &profile, &err) == 0) {
                context->has_language = HAS(&profile.request, run_request, language);
                context->fresh = profile.session == session_mode_FILES;
        }
        return context;
}

static void convert_call(struct asked *asked, json_t *arguments, const struct mcp_context *context, bool renamed,
        struct arena *arena)
{
        json_t *body = json_object();
        snprintf(asked->path, sizeof asked->path, "%s", asked->tool->path);
        asked->no_object = arguments && !json_is_object(arguments);
        if (!asked->no_object && take_arguments(asked, arguments, body, arena) && asked->tool->takes) {
                add_usual(asked->tool, body, context, renamed);
                asked->body = model_write(body, JSON_COMPACT);
                asked->body_len = asked->body ? strlen(asked->body) : 0;
        }
        json_decref(body);
}

void *mcp_convert(json_t *message, const struct csn_error *error, void *context, struct arena *arena)
{
        struct asked *asked = arena_alloc(arena, sizeof *asked);
        const char *method = json_string_value(json_object_get(message, "method"));
        json_t *params = json_object_get(message, "params");
        const char *name = json_string_value(json_object_get(params, "name"));
        /* LinX' name of the tool is accepted and not listed: a model would choose between two equal tools. */
        bool renamed = name && strcmp(name, "code_execution") == 0;
        (void)error;
        if (renamed)
                name = "run_code";
        for (size_t i = 0; method && strcmp(method, "tools/call") == 0 && name && i < ARRAY_LEN(tools); i++)
                if (strcmp(tools[i].name, name) == 0)
                        asked->tool = &tools[i];
        if (!asked->tool)
                return asked;
        convert_call(asked, json_object_get(params, "arguments"), context, renamed, arena);
        json_object_del(params, "arguments");
        return asked;
}

void mcp_drop(void *given)
{
        struct asked *asked = given;
        free(asked->body);
}

/* ---- the call ---- */

/* A model mends its arguments itself, so their error is the result of the tool. */
static void give_error(struct mcp_call *call, const char *text)
{
        json_t *words = json_string(text);
        mcp_answer(call,
                json_pack("{s:[{s:s, s:o}], s:b}", "content", "type", "text", "text",
                        words ? words : json_string("the arguments are wrong"), "isError", 1));
}

/* A record too long for an event is missing in the events, and is requested instead. */
static void on_tool_answered(struct mcp_call *call)
{
        if (call->lines && call->status == MHD_HTTP_OK && call->run && !call->has_record)
                mcp_ask(call, "GET", call->run, NULL, 0, NULL, 0, false, on_tool_answered);
        else
                mcp_give(call, call->tool->how);
}

/* URI of the file read by a tool, as in resources/read, but without %XX. */
static const char *uri_of(struct mcp_call *call, const struct asked *asked)
{
        const char *path = "";
        for (size_t i = 0; i < asked->query_n; i++)
                if (strcmp(asked->query[i].name, "path") == 0)
                        path = asked->query[i].value;
        return arena_text(&call->arena, "sandbox:%s/%s", asked->path, path);
}

static void ask(struct mcp_call *call, struct asked *asked)
{
        bool lines = call->tool->events && (call->token || call->session || call->level >= 0);
        char *body = asked->body;
        asked->body = NULL;
        if (call->tool->how == GIVES_BYTES)
                call->uri = uri_of(call, asked);
        mcp_ask(call, call->tool->method, asked->path, asked->query, asked->query_n, body, asked->body_len, lines,
                on_tool_answered);
}

void mcp_call_tool(struct mcp_call *call)
{
        struct asked *asked = parse_of(call->http)->given;
        const char *name = json_string_value(json_object_get(call->params, "name"));
        call->tool = asked->tool;
        if (!call->tool)
                mcp_fail(call, RPC_INVALID_PARAMS, NULL,
                        "there is no tool \"%.60s\"; tools/list has those that there are", name ? name : "");
        else if (asked->no_object)
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "arguments have to be an object");
        else if (asked->error[0])
                give_error(call, asked->error);
        else
                ask(call, asked);
}
