/* Opens the sources of the configuration; see sources.h. */
#include "tools/sources/mcp.h"

#include <sys/epoll.h>

int sources_prepare(const struct settings *settings, struct sources **ret, struct csn_error *err)
{
        struct sources *sources = mem_alloc(sizeof *sources);
        sources->launcher.sock = sources->launcher_watch.fd = -1;
        sources->settings = settings;
        int rc = registry_read(settings, &sources->registry, err);
        if (rc == 0 && sources->registry.programs_n)
                rc = launcher_start(&sources->launcher, sources->registry.programs, sources->registry.programs_n, err);
        if (rc < 0) {
                sources_close(sources);
                return rc;
        }
        *ret = sources;
        return 0;
}

static int add(struct sources *sources, const struct server *server, struct csn_error *err)
{
        struct tool_source *source;
        int rc = 0;
        if (server->kind == SERVER_DEFINED)
                rc = defined_new(sources, server, &source, err);
        else
                source = mcp_new(sources, server, server->kind == SERVER_STDIO ? &mcp_stdio : &mcp_http);
        if (rc == 0 && (rc = tools_add(sources->tools, source, err)) < 0)
                source->kind->close(source);
        return rc < 0 ? err_wrap(err, "%s", server->where) : 0;
}

int sources_open(struct sources *sources, struct tools *tools, struct csn_error *err)
{
        sources->tools = tools;
        sources->loop = engine_loop(tools_engine(tools));
        for (const struct server *server = sources->registry.servers; server; server = server->next)
                if (add(sources, server, err) < 0)
                        return -err->code;
        return 0;
}

/* Each answer is read at once by its request, so an event here is the launcher's end. */
static void on_launcher(struct watch *watch, uint32_t events)
{
        struct sources *sources = watch->owner;
        (void)events;
        loop_unwatch(sources->loop, watch);
        sources->launcher_lost(sources->launcher_owner);
}

int sources_watch(struct sources *sources, void (*lost)(void *owner), void *owner, struct csn_error *err)
{
        if (sources->launcher.sock < 0)
                return 0;
        sources->launcher_watch = (struct watch){ .fd = -1, .ready = on_launcher, .owner = sources };
        sources->launcher_lost = lost;
        sources->launcher_owner = owner;
        return loop_watch(sources->loop, &sources->launcher_watch, sources->launcher.sock, EPOLLIN, err);
}

void sources_close(struct sources *sources)
{
        if (!sources)
                return;
        if (sources->loop)
                loop_unwatch(sources->loop, &sources->launcher_watch);
        fetcher_close(sources->fetcher);
        launcher_stop(&sources->launcher);
        registry_done(&sources->registry);
        free(sources);
}
