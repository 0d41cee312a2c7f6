/* Tools defined by the configuration, as a source; see defined.h. */
#include "tools/sources/defined.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>

struct definitions {
        struct tool_source source;
        struct sources *sources;
        const struct server *server;
        struct tool *tools;
        struct act *acts;
};

static void act_free(struct act *act)
{
        struct definitions *own = act->definitions;
        for (struct act **at = &own->acts; *at; at = &(*at)->next)
                if (*at == act) {
                        *at = act->next;
                        break;
                }
        act->kind->end(act);
        loop_untimer(act->sources->loop, &act->over);
        json_decref(act->content);
        json_decref(act->structured);
        free(act);
}

static void on_over(struct timer *timer)
{
        struct act *act = timer->owner;
        struct tool_call *call = act->call;
        const struct tool_result result = { .content = act->error[0] ? NULL : act->content,
                .structured = act->error[0] ? NULL : act->structured,
                .is_error = act->is_error || act->error[0],
                .error = act->error[0] ? act->error : NULL };
        act->call = NULL;
        if (call) {
                call->handle = NULL;
                call->done(call, &result);
        }
        act_free(act);
}

/* ---- as a source ---- */

static const struct tool *defined_list(struct tool_source *source, size_t *ret_n)
{
        const struct definitions *own = (const struct definitions *)source;
        *ret_n = own->server->defined_n;
        return own->tools;
}

static int defined_call(struct tool_source *source, struct tool_call *call, struct csn_error *err)
{
        struct definitions *own = (struct definitions *)source;
        const struct defined *tool = NULL;
        for (size_t i = 0; i < own->server->defined_n; i++)
                if (strcmp(own->server->defined[i].name, call->name) == 0)
                        tool = &own->server->defined[i];
        if (!tool)
                return err_set(err, CSN_E_SYSTEM, 0, "the server %s has no tool of that name any more",
                        own->server->name);
        const struct act_kind *kind = tool->url ? &act_endpoint : &act_command;
        struct act *act = mem_alloc(kind->size);
        *act = (struct act){
                .next = own->acts, .definitions = own, .sources = own->sources, .tool = tool, .call = call, .kind = kind
        };
        act->over = (struct timer){ .fired = on_over, .owner = act };
        own->acts = act;
        if (kind->begin(act, err) < 0) {
                act_free(act);
                return -err->code;
        }
        call->handle = act;
        return 0;
}

static void defined_cancel(struct tool_source *source, struct tool_call *call)
{
        (void)source;
        struct act *act = call->handle;
        call->handle = NULL;
        if (act)
                act_free(act);
}

static void defined_close(struct tool_source *source)
{
        struct definitions *own = (struct definitions *)source;
        for (struct act *act = own->acts, *next; act; act = next) {
                next = act->next;
                act_free(act);
        }
        free(own->tools);
        free(own);
}

static const struct tool_source_kind defined_kind = {
        .list = defined_list, .call = defined_call, .cancel = defined_cancel, .close = defined_close
};

int defined_new(struct sources *sources, const struct server *server, struct tool_source **ret, struct csn_error *err)
{
        struct definitions *own = mem_alloc(sizeof *own);
        (void)err;
        *own = (struct definitions){ .source = { .kind = &defined_kind, .server = server->name, .state = TOOLS_READY },
                .sources = sources,
                .server = server };
        own->tools = mem_alloc(server->defined_n * sizeof *own->tools);
        for (size_t i = 0; i < server->defined_n; i++) {
                const struct defined *tool = &server->defined[i];
                own->tools[i] = (struct tool){ .name = tool->name,
                        .title = tool->title,
                        .description = tool->description,
                        .input_schema = tool->schema,
                        .ask = tool->ask,
                        .timeout_ms = tool->timeout_ms };
        }
        *ret = &own->source;
        return 0;
}
