/* The registered sources of tools. */
#include "tools/tools_private.h"

struct engine *tools_engine(const struct tools *tools)
{
        return tools->engine;
}

struct tool_source *tools_find(const struct tools *tools, const char *server)
{
        for (struct tool_source *source = tools->sources; source; source = source->next)
                if (strcmp(source->server, server) == 0)
                        return source;
        return NULL;
}

struct tool_source *tools_next(const struct tools *tools, const struct tool_source *source)
{
        return source ? source->next : tools->sources;
}

int tools_add(struct tools *tools, struct tool_source *source, struct csn_error *err)
{
        if (!tools_is_server(source->server))
                return err_set(err, CSN_E_CONFIG, 0,
                        "\"%.100s\" is no name for a server of tools: letters, digits, _ and -, at most %d, and a letter or digit first",
                        source->server, TOOL_NAME_MAX);
        if (strcmp(source->server, TOOLS_CLIENT) == 0 || tools_find(tools, source->server))
                return err_set(err, CSN_E_CONFIG, 0,
                        "there is a server of tools \"%s\" already; give this one another name", source->server);
        struct tool_source **at = &tools->sources;
        while (*at)
                at = &(*at)->next;
        *at = source;
        source->tools = tools;
        source->next = NULL;
        tools_changed(source);
        return 0;
}

void tools_changed(struct tool_source *source)
{
        for (struct broker *broker = source->tools ? source->tools->brokers : NULL; broker; broker = broker->next)
                broker_changed(broker);
}

/* End the source's calls with an error, and close the source. */
static void tools_remove(struct tools *tools, struct tool_source *source)
{
        for (struct tool_source **at = &tools->sources; *at; at = &(*at)->next)
                if (*at == source) {
                        *at = source->next;
                        break;
                }
        for (struct broker *broker = tools->brokers; broker; broker = broker->next)
                broker_lost(broker, source);
        source->tools = NULL;
        source->kind->close(source);
}

void tools_close(struct tools *tools)
{
        while (tools && tools->sources)
                tools_remove(tools, tools->sources);
}

static void tools_end(void *owner)
{
        tools_close(owner);
        free(owner);
}

static const struct engine_tools engine_tools = {
        .tool_socket = { broker_asked, broker_gone },
        .open = broker_open,
        .stop = broker_stop,
        .report = broker_report,
        .close = broker_close,
        .end = tools_end,
};

struct tools *tools_open(struct engine *engine)
{
        struct tools *tools = mem_alloc(sizeof *tools);
        tools->engine = engine;
        engine_set_tools(engine, &engine_tools, tools);
        return tools;
}
