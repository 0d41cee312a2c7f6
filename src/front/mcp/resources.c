/* Resources: kept files, and files of sandboxes; a prompt; and the completion of arguments. */
#include "front/mcp/mcp.h"

#include <stdio.h>

#define PAGE "100"
#define SCHEME "sandbox:"
#define SANDBOXES "/v1/sandboxes/"
#define TEMPLATE SCHEME "/v1/sandboxes/{sandbox}/files/{+path}"
#define KEPT "/v1/files/"
#define KEPT_TEMPLATE SCHEME "/v1/files/{file}"
#define URI_MAX (16 * KIB)                 /* bytes of a resource's name, with %XX for bytes of its path */
#define VALUES_MAX 100                     /* of a completion; the protocol's */

/* ---- resources/list ---- */

/* A caller without kept files, or without the right to see files, gets an empty list. */
static void on_listed(struct mcp_call *call)
{
        json_t *answer = call->status == MHD_HTTP_OK ? mcp_json(call) : NULL, *list = json_array(),
               *files = json_object_get(answer, "files"), *file;
        size_t at;
        json_array_foreach(files, at, file) {
                json_array_append_new(list,
                        json_pack("{s:O, s:O, s:O, s:O}", "uri", json_object_get(file, "url"), "name",
                                json_object_get(file, "name"), "mimeType", json_object_get(file, "mime"), "size",
                                json_object_get(file, "size_bytes")));
        }
        json_t *result = json_pack("{s:o}", "resources", list);
        if (json_array_size(files) == strtoul(PAGE, NULL, 10))
                json_object_set(result, "nextCursor",
                        json_object_get(json_array_get(files, json_array_size(files) - 1), "id"));
        json_decref(answer);
        mcp_answer_list(call, result);
}

void mcp_list_resources(struct mcp_call *call)
{
        json_t *cursor = json_object_get(call->params, "cursor");
        const char *before = json_string_value(cursor);
        if (cursor && (!before || strlen(before) != json_string_length(cursor) || strlen(before) > 64)) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "the cursor is none of ours");
                return;
        }
        const struct pair query[] = { { (char *)(uintptr_t) "limit", (char *)(uintptr_t)PAGE },
                { (char *)(uintptr_t) "before", (char *)(uintptr_t)before } };
        mcp_ask(call, "GET", "/v1/files", query, before ? 2 : 1, NULL, 0, false, on_listed);
}

void mcp_list_templates(struct mcp_call *call)
{
        mcp_answer_list(call,
                json_pack("{s:[{s:s, s:s, s:s}, {s:s, s:s, s:s}]}", "resourceTemplates", "uriTemplate", TEMPLATE,
                        "name", "sandbox_file", "description",
                        "A file of a sandbox: an absolute path, or one from /home/user on.", "uriTemplate",
                        KEPT_TEMPLATE, "name", "kept_file", "description", "A file that a run has kept, by its id."));
}

/* ---- resources/read ---- */

static void not_found(struct mcp_call *call, const char *why)
{
        mcp_fail(call, mcp_is_modern(call) ? RPC_INVALID_PARAMS : MCP_NOT_FOUND, json_pack("{s:s}", "uri", call->uri),
                "%s", why);
}

static void on_read(struct mcp_call *call)
{
        if (call->status == MHD_HTTP_OK) {
                mcp_give(call, GIVES_RESOURCE);
        } else if (call->status == 0 || call->status >= 500) {
                mcp_fail(call, RPC_INTERNAL_ERROR, NULL, "%s", mcp_problem(call));
        } else {
                not_found(call, mcp_problem(call));
        }
}

/* The type noted when the file was kept. */
static void on_info(struct mcp_call *call)
{
        json_t *info = call->status == MHD_HTTP_OK ? mcp_json(call) : NULL;
        const char *mime = json_string_value(json_object_get(info, "mime"));
        if (!info) {
                on_read(call);
                return;
        }
        call->mime = arena_text(&call->arena, "%s", mime ? mime : "");
        json_decref(info);
        mcp_ask(call, "GET", call->uri + strlen(SCHEME), NULL, 0, NULL, 0, false, on_read);
}

static int hex_of(char c)
{
        return c >= '0' && c <= '9'    ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
}

/* Decodes %XX (RFC 3986); NULL: malformed, or a NUL. */
static char *unescape(struct arena *arena, const char *text)
{
        char *copy = arena_text(arena, "%s", text), *to = copy;
        for (; *text; text++) {
                if (*text != '%') {
                        *to++ = *text;
                        continue;
                }
                int high = hex_of(text[1]), low = high < 0 ? -1 : hex_of(text[2]);
                if (low < 0 || high * 16 + low == 0)
                        return NULL;
                *to++ = (char)(high * 16 + low);
                text += 2;
        }
        *to = 0;
        return copy;
}

static void read_of_sandbox(struct mcp_call *call, const char *rest)
{
        size_t len = strcspn(rest, "/");
        const char *path = strncmp(rest + len, "/files/", 7) == 0 ? unescape(&call->arena, rest + len + 7) : NULL;
        if (!len || !path || !path[0]) {
                not_found(call, "a file of a sandbox is " TEMPLATE);
                return;
        }
        const struct pair query[] = { { (char *)(uintptr_t)"path", (char *)(uintptr_t)path } };
        mcp_ask(call, "GET", arena_text(&call->arena, SANDBOXES "%.*s/files", (int)len, rest), query, 1, NULL, 0, false,
                on_read);
}

void mcp_read_resource(struct mcp_call *call)
{
        json_t *uri = json_object_get(call->params, "uri");
        const char *path = json_string_value(uri);
        if (!path || strlen(path) != json_string_length(uri)) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "uri has to be a text");
                return;
        }
        if (strlen(path) > URI_MAX) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "uri is longer than %llu bytes", URI_MAX);
                return;
        }
        call->uri = path;
        path += strncmp(path, SCHEME, strlen(SCHEME)) == 0 ? strlen(SCHEME) : 0;
        if (path == call->uri)
                not_found(call, "resources begin with " SCHEME);
        else if (strncmp(path, KEPT, strlen(KEPT)) == 0 && !strchr(path + strlen(KEPT), '/'))
                mcp_ask(call, "GET", arena_text(&call->arena, "%s/info", path), NULL, 0, NULL, 0, false, on_info);
        else if (strncmp(path, SANDBOXES, strlen(SANDBOXES)) == 0)
                read_of_sandbox(call, path + strlen(SANDBOXES));
        else
                not_found(call, "there is no such resource");
}

/* ---- prompts ---- */

#define PROMPT "write_program"
#define TASK_MAX (64 * KIB)                /* bytes of the task in a prompt */

void mcp_list_prompts(struct mcp_call *call)
{
        mcp_answer_list(call,
                json_pack("{s:[{s:s, s:s, s:s, s:[{s:s, s:s, s:b}, {s:s, s:s, s:b}]}]}", "prompts", "name", PROMPT,
                        "title", "Write a program for the sandbox", "description",
                        "What a program may expect of a profile here and now, before a task: languages, libraries, limits, and what is refused.",
                        "arguments", "name", "task", "description", "What the program is to do.", "required", 1, "name",
                        "profile", "description", "The profile. Default: the daemon's.", "required", 0));
}

void mcp_get_prompt(struct mcp_call *call)
{
        json_t *arguments = json_object_get(call->params, "arguments");
        const char *name = json_string_value(json_object_get(call->params, "name")),
                   *task = json_string_value(json_object_get(arguments, "task"));
        const char *profile = json_string_value(json_object_get(arguments, "profile"));
        struct csn_error err;
        struct buf buf;
        if (!name || strcmp(name, PROMPT) != 0 || !task) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL,
                        name && strcmp(name, PROMPT) == 0 ? PROMPT " needs the argument \"task\""
                                                          : "there is no such prompt");
                return;
        }
        if (strlen(task) > TASK_MAX) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "the argument \"task\" is longer than %llu bytes", TASK_MAX);
                return;
        }
        buf_init(&buf, 2 * MIB);
        if (mcp_describe(call, profile ? profile : call->service->settings->engine.profile, &buf, &err) < 0) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL, "%s", err.text);
        } else {
                buf_printf(&buf, "\nWrite a program for this task, and run it with the tool run_code:\n%s\n", task);
                mcp_answer(call,
                        json_pack("{s:[{s:s, s:{s:s, s:s}}]}", "messages", "role", "user", "content", "type", "text",
                                "text", buf.bytes));
        }
        buf_done(&buf);
}

/* ---- completion/complete ---- */

static void add_value(json_t *values, size_t *total, const char *prefix, const char *value)
{
        if (!value || strncmp(value, prefix, strlen(prefix)) != 0)
                return;
        if ((*total)++ < VALUES_MAX)
                json_array_append_new(values, json_string(value));
}

static void give_values(struct mcp_call *call, json_t *values, size_t total)
{
        mcp_answer(call,
                json_pack("{s:{s:o, s:I, s:b}}", "completion", "values", values, "total", (json_int_t)total, "hasMore",
                        total > VALUES_MAX));
}

static const char *prefix_of(const struct mcp_call *call)
{
        const char *prefix = json_string_value(json_object_get(json_object_get(call->params, "argument"), "value"));
        return prefix ? prefix : "";
}

static void on_sandboxes(struct mcp_call *call)
{
        json_t *answer = call->status == MHD_HTTP_OK ? mcp_json(call) : NULL, *values = json_array(), *sandbox;
        size_t at, total = 0;
        json_array_foreach(json_object_get(answer, "sandboxes"), at, sandbox) {
                add_value(values, &total, prefix_of(call), json_string_value(json_object_get(sandbox, "id")));
        }
        json_decref(answer);
        give_values(call, values, total);
}

void mcp_complete(struct mcp_call *call)
{
        json_t *ref = json_object_get(call->params, "ref"), *argument = json_object_get(call->params, "argument");
        const char *type = json_string_value(json_object_get(ref, "type")),
                   *name = json_string_value(json_object_get(argument, "name"));
        const char *prompt = json_string_value(json_object_get(ref, "name")),
                   *uri = json_string_value(json_object_get(ref, "uri"));
        bool of_prompt = type && strcmp(type, "ref/prompt") == 0 && prompt,
             of_resource = type && strcmp(type, "ref/resource") == 0 && uri;
        if (!name || !json_is_string(json_object_get(argument, "value")) || (!of_prompt && !of_resource)) {
                mcp_fail(call, RPC_INVALID_PARAMS, NULL,
                        "ref is {type: ref/prompt, name} or {type: ref/resource, uri}, and argument is {name, value}");
                return;
        }
        if (of_resource && strcmp(uri, TEMPLATE) == 0 && strcmp(name, "sandbox") == 0) {
                mcp_ask(call, "GET", "/v1/sandboxes", NULL, 0, NULL, 0, false, on_sandboxes);
                return;
        }
        json_t *values = json_array();
        size_t total = 0;
        if (of_prompt && strcmp(prompt, PROMPT) == 0 && strcmp(name, "profile") == 0) {
                char **names = profile_names(call->service->settings, &call->arena);
                for (size_t i = 0; names[i]; i++)
                        if (!profile_is_internal(names[i]))
                                add_value(values, &total, prefix_of(call), names[i]);
        }
        give_values(call, values, total);
}
