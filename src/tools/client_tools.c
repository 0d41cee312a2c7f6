/*
 * Tools served by the client of the run: a call is an event of the run, and the answer a separate request.
 *
 * The source holds the list only.  The broker matches answers to calls, as for approvals.
 */
#include "tools/tools_private.h"

struct client {
        struct tool_source source;
        struct broker *broker;
        struct arena arena;
        struct tool *list;
        size_t n;
};

static const struct tool *client_list(struct tool_source *source, size_t *ret_n)
{
        const struct client *client = (const struct client *)source;
        *ret_n = client->n;
        return client->list;
}

static int client_call(struct tool_source *source, struct tool_call *call, struct csn_error *err)
{
        const struct client *client = (const struct client *)source;
        const struct ask *ask = (const struct ask *)call;
        struct run *run = client->broker->whom.run;
        if (ask->bytes > TOOL_EVENT_MAX)
                return err_set(err, CSN_E_INPUT, 0,
                        "The arguments have %zu bytes; at most %llu are allowed for a tool of the client", ask->bytes,
                        TOOL_EVENT_MAX);
        run_tell(run,
                json_pack("{s:s, s:s, s:s, s:O}", "type", "tool_call", "call", ask->id, "tool", call->name, "arguments",
                        call->arguments));
        return 0;
}

static void client_cancel(struct tool_source *source, struct tool_call *call)
{
        const struct client *client = (const struct client *)source;
        run_tell(client->broker->whom.run,
                json_pack("{s:s, s:s}", "type", "tool_cancelled", "call", ((const struct ask *)call)->id));
}

static void client_close(struct tool_source *source)
{
        struct client *client = (struct client *)source;
        for (size_t i = 0; i < client->n; i++)
                json_decref(client->list[i].input_schema);
        arena_done(&client->arena);
        free(client);
}

static const struct tool_source_kind client_kind = { client_list, client_call, client_cancel, client_close };

static int take_tool(struct client *client, const struct client_tool *given, size_t i, struct csn_error *err)
{
        json_t *schema = NULL;
        if (!tools_is_name(given->name))
                return err_field(err, "/tools/client",
                        "\"%.100s\" is no name of a tool: letters, digits, _ - . and /, at most %d, and no _ first",
                        given->name, TOOL_NAME_MAX);
        for (size_t k = 0; k < i; k++)
                if (strcmp(client->list[k].name, given->name) == 0)
                        return err_field(err, "/tools/client", "the tool %.100s is there twice", given->name);
        if (HAS(given, client_tool, input_schema)) {
                if (strlen(given->input_schema) > TOOL_SCHEMA_MAX)
                        return err_field(err, "/tools/client", "input_schema of %.100s is longer than %llu bytes",
                                given->name, TOOL_SCHEMA_MAX);
                schema = json_loads(given->input_schema, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
                if (!json_is_object(schema) && !json_is_boolean(schema)) {
                        json_decref(schema);
                        return err_field(err, "/tools/client", "input_schema of %.100s has to be an object",
                                given->name);
                }
        }
        client->list[i] = (struct tool){ .name = given->name,
                .description = HAS(given, client_tool, description) ? given->description : NULL,
                .input_schema = schema,
                .ask = given->ask };
        client->n = i + 1;
        return 0;
}

int own_tools_open(struct broker *broker, struct tool_source **ret, struct csn_error *err)
{
        const struct tools_request *request = broker->request;
        *ret = NULL;
        if (!request->client_n)
                return 0;
        if (!broker->whom.run || !run_has_listener(broker->whom.run))
                return err_field(err, "/tools/client",
                        "tools of the client's own need a run whose events are read: POST /v1/runs with Accept: text/event-stream "
                        "or application/x-ndjson, or with Prefer: respond-async");
        struct client *client = mem_alloc(sizeof *client);
        client->source = (struct tool_source){ .kind = &client_kind, .server = TOOLS_CLIENT, .state = TOOLS_READY };
        client->broker = broker;
        client->list = arena_alloc(&client->arena, request->client_n * sizeof *client->list);
        for (size_t i = 0; i < request->client_n; i++)
                if (take_tool(client, &request->client[i], i, err) < 0) {
                        client_close(&client->source);
                        return -err->code;
                }
        *ret = &client->source;
        return 0;
}
