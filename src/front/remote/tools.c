/*
 * caisson tools: the sources of the configuration, started here and for this command alone.
 *
 * The command needs no daemon, and shows the result of this user's configuration: why a server does not start, the
 * user of the server, and its tools.
 */
#include "front/remote/remote.h"

#include "tools/sources/sources.h"

#include <inttypes.h>
#include <signal.h>

#define START_MS 60000
#define CALL_MS 60000
#define SUMMARY_MAX 100                    /* bytes of a description, in a list */
#define PROBLEM_MAX 400

struct bench {
        struct engine *engine;
        struct tools *tools;
        struct sources *sources;
};

static int open_bench(struct bench *bench, struct remote *remote, struct csn_error *err)
{
        signal(SIGPIPE, SIG_IGN);
        if (sources_prepare(&remote->settings, &bench->sources, err) < 0 ||
                engine_open(&remote->settings, &bench->engine, err) < 0)
                return -err->code;
        bench->tools = tools_open(bench->engine);
        return sources_open(bench->sources, bench->tools, err);
}

static void close_bench(struct bench *bench)
{
        tools_close(bench->tools);
        sources_close(bench->sources);
        engine_close(bench->engine);
}

static bool is_starting(const struct bench *bench, const char *server)
{
        for (struct tool_source *source = tools_next(bench->tools, NULL); source;
                source = tools_next(bench->tools, source))
                if (source->state == TOOLS_STARTING && (!server || strcmp(server, source->server) == 0))
                        return true;
        return false;
}

static int wait_for(const struct bench *bench, const char *server, struct csn_error *err)
{
        uint64_t end_ms = clock_ms() + START_MS;
        while (is_starting(bench, server) && clock_ms() < end_ms)
                if (engine_step(bench->engine, 100, err) < 0)
                        return -err->code;
        return 0;
}

/* Do the work with an open bench, and close everything.  Returns the exit status. */
static int with_bench(struct remote *remote, const char *server,
        int (*work)(struct remote *remote, struct bench *bench, struct csn_error *err))
{
        struct bench bench = { 0 };
        struct csn_error err = { 0 };
        int status = open_bench(&bench, remote, &err) < 0 || wait_for(&bench, server, &err) < 0
                ? -1
                : work(remote, &bench, &err);
        close_bench(&bench);
        return status < 0 ? cli_fail(&err) : status;
}

/* ---- list and check ---- */

static json_t *tool_as_json(const struct tool_source *source, const struct tool *tool)
{
        json_t *json = json_pack("{s:s, s:s, s:s*, s:s*, s:b}", "server", source->server, "name", tool->name, "title",
                tool->title, "description", tool->description, "ask", tool->ask);
        if (tool->input_schema)
                json_object_set(json, "input_schema", tool->input_schema);
        if (tool->output_schema)
                json_object_set(json, "output_schema", tool->output_schema);
        if (tool->annotations)
                json_object_set(json, "annotations", tool->annotations);
        return json;
}

/* The first line of a foreign text, without control characters for a terminal. */
static void print_line(const char *text, size_t max)
{
        size_t len = text ? strcspn(text, "\r\n") : 0;
        size_t good = 0;
        for (size_t step; good < len && (step = utf8_step(text + good, len - good)) > 0 && good + step <= max;)
                good += step;
        if (good)
                remote_print(STDOUT_FILENO, false, text, good);
        remote_print(STDOUT_FILENO, false, good < len ? "…\n" : "\n", good < len ? 4 : 1);
}

static const char *state_of(const struct tool_source *source)
{
        return source->state == TOOLS_READY ? "ready" : source->state == TOOLS_DOWN ? "down" : "starting";
}

static void note_none(void)
{
        cli_note(
                "the configuration has no servers of tools; mcpServers and tools in caisson.conf(5) name them, and docs/use/tool-sources.md shows how");
}

static int list(struct remote *remote, struct bench *bench, struct csn_error *err)
{
        const char *only = remote->args_n ? remote->args[0] : NULL;
        bool as_json = remote_option(remote, "json");
        json_t *all = json_array(), *servers = json_array();
        if (only && !tools_find(bench->tools, only))
                return err_set(err, CSN_E_INPUT, 0, "the configuration has no server of tools \"%.100s\"", only);
        for (struct tool_source *source = tools_next(bench->tools, NULL); source;
                source = tools_next(bench->tools, source)) {
                size_t n;
                const struct tool *tools = source->kind->list(source, &n);
                if (only && strcmp(only, source->server) != 0)
                        continue;
                json_array_append_new(servers,
                        json_pack("{s:s, s:s, s:s*}", "name", source->server, "state", state_of(source), "problem",
                                source->problem));
                for (size_t i = 0; i < n; i++) {
                        json_array_append_new(all, tool_as_json(source, &tools[i]));
                        if (as_json)
                                continue;
                        printf("%s.%-*s ", source->server, (int)(30 - min_u64(strlen(source->server), 29)),
                                tools[i].name);
                        fflush(stdout);
                        print_line(tools[i].description ? tools[i].description : tools[i].title, SUMMARY_MAX);
                }
                if (!as_json && source->state != TOOLS_READY)
                        fprintf(stderr, "caisson: %s is %s: %s\n", source->server, state_of(source),
                                source->problem ? source->problem : "it has not answered yet");
        }
        json_t *answer = json_pack("{s:o, s:o}", "servers", servers, "tools", all);
        if (!as_json && !json_array_size(servers))
                note_none();
        if (as_json) {
                json_dumpf(answer, stdout, JSON_INDENT(2));
                printf("\n");
        }
        json_decref(answer);
        return 0;
}

static int check(struct remote *remote, struct bench *bench, struct csn_error *err)
{
        int status = 0;
        (void)remote, (void)err;
        if (!tools_next(bench->tools, NULL))
                note_none();
        for (struct tool_source *source = tools_next(bench->tools, NULL); source;
                source = tools_next(bench->tools, source)) {
                size_t n;
                source->kind->list(source, &n);
                if (source->state == TOOLS_READY) {
                        printf("%s: %zu tools\n", source->server, n);
                        continue;
                }
                status = 1;
                printf("%s: %s: ", source->server, state_of(source));
                fflush(stdout);
                print_line(source->problem ? source->problem : "it has not answered yet", PROBLEM_MAX);
        }
        return status;
}

/* As the daemon tells a model. */
static int describe(struct remote *remote, struct bench *bench, struct csn_error *err)
{
        const char *name = remote_option(remote, "profile");
        struct arena arena = { 0 };
        struct profile profile;
        struct run_request whole;
        struct buf buf;
        if (!name)
                name = remote->settings.engine.profile;
        int rc = front_profile(&remote->settings, name, &arena, &profile, &whole, err);
        if (rc == 0) {
                json_t *all = tools_describe(bench->tools, &whole.tools, true);
                buf_init(&buf, 1 * MIB);
                if (remote_option(remote, "json"))
                        json_dumpf(all, stdout, JSON_COMPACT), printf("\n");
                else
                        describe_tools(&buf, all, &whole.tools), fputs(buf.bytes, stdout);
                buf_done(&buf);
                json_decref(all);
        }
        arena_done(&arena);
        return rc < 0 ? -1 : 0;
}

int remote_describe_tools(struct remote *remote)
{
        return with_bench(remote, NULL, describe);
}

int remote_list_tools(struct remote *remote)
{
        return with_bench(remote, remote->args_n ? remote->args[0] : NULL, list);
}

int remote_check_tools(struct remote *remote)
{
        return with_bench(remote, NULL, check);
}

/* ---- call ---- */

struct calling {
        struct tool_call call;
        bool over;
        bool failed;
        char *error;
        json_t *value;
};

static void on_done(struct tool_call *call, const struct tool_result *result)
{
        struct calling *calling = (struct calling *)call;
        calling->over = true;
        calling->failed = result->error || result->is_error;
        if (calling->failed)
                calling->error = result_error(result, 64 * KIB);
        else
                calling->value = result_value(result, TOOL_RESULT_MAX);
}

static void print_value(struct remote *remote, json_t *value)
{
        bool raw = remote_option(remote, "raw");
        char *text = json_is_string(value) && !remote_option(remote, "json")
                ? mem_copy(json_string_value(value), json_string_length(value))
                : json_dumps(value, JSON_ENCODE_ANY | JSON_INDENT(2));
        if (text) {
                remote_print(STDOUT_FILENO, raw, text, strlen(text));
                remote_print(STDOUT_FILENO, raw, "\n", 1);
        }
        free(text);
}

/* From the tool's entry; a tool outside the list is the server's to refuse. */
static uint64_t usual_ms(struct tool_source *source, const char *name)
{
        size_t n;
        const struct tool *tools = source->kind->list(source, &n);
        for (size_t i = 0; i < n; i++)
                if (strcmp(tools[i].name, name) == 0 && tools[i].timeout_ms)
                        return tools[i].timeout_ms;
        return CALL_MS;
}

static int wait_for_call(struct remote *remote, const struct bench *bench, struct calling *calling,
        struct tool_source *source, struct csn_error *err)
{
        uint64_t wait_ms = usual_ms(source, calling->call.name);
        const char *timeout = remote_option(remote, "timeout");
        if (timeout && (!duration_parse(timeout, &wait_ms) || !wait_ms))
                return err_field(err, "timeout", "--timeout is \"%.40s\"; it has to be a time, as 30s", timeout);
        calling->call.deadline_us = clock_us() + wait_ms * 1000;
        if (source->kind->call(source, &calling->call, err) < 0)
                return -err->code;
        while (!calling->over) {
                uint64_t now_us = clock_us();
                if (now_us >= calling->call.deadline_us) {
                        source->kind->cancel(source, &calling->call);
                        return err_set(err, CSN_E_SYSTEM, 0, "it has not answered within %" PRIu64 " ms", wait_ms);
                }
                if (engine_step(bench->engine, (int)min_u64((calling->call.deadline_us - now_us) / 1000 + 1, 1000),
                            err) < 0)
                        return -err->code;
        }
        return 0;
}

static int call(struct remote *remote, struct bench *bench, struct csn_error *err)
{
        const char *dot = strchr(remote->args[0], '.');
        json_error_t where;
        if (!dot)
                return err_field(err, "TOOL", "\"%.100s\" has to be SERVER.TOOL, as caisson tools list prints it",
                        remote->args[0]);
        const char *server = arena_copy(&remote->arena, remote->args[0], (size_t)(dot - remote->args[0])),
                   *name = dot + 1;
        struct tool_source *source = tools_find(bench->tools, server);
        if (!source)
                return err_field(err, "TOOL", "the configuration has no server of tools \"%.100s\"", server);
        json_t *arguments = remote->args_n > 1
                ? json_loads(remote->args[1], JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &where)
                : json_object();
        if (!json_is_object(arguments)) {
                json_decref(arguments);
                return err_field(err, "ARGUMENTS", "the arguments have to be a JSON object, as '{\"city\": \"Oslo\"}'");
        }
        struct calling calling = { .call = { .source = source,
                                           .name = name,
                                           .arguments = arguments,
                                           .run = "",
                                           .owner = "",
                                           .done = on_done } };
        int rc = wait_for_call(remote, bench, &calling, source, err);
        json_decref(arguments);
        if (rc == 0 && calling.failed)
                fprintf(stderr, "caisson: %s\n", calling.error);
        if (rc == 0 && !calling.failed)
                print_value(remote, calling.value);
        free(calling.error);
        json_decref(calling.value);
        return rc < 0 ? rc : calling.failed;
}

int remote_call_tool(struct remote *remote)
{
        const char *dot = strchr(remote->args[0], '.');
        return with_bench(remote,
                dot ? arena_copy(&remote->arena, remote->args[0], (size_t)(dot - remote->args[0])) : "", call);
}
