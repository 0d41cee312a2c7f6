/* Descriptions of a context for callers; its life is in context.c. */
#include "engine/persistent/psandbox_private.h"

struct context *context_next(struct psandbox *psandbox, struct context *context)
{
        return context ? context->next : psandbox->contexts;
}

const char *context_id(const struct context *context)
{
        return context->id;
}

uint64_t context_number(const struct context *context)
{
        return context->made;
}

json_t *context_describe(const struct context *context)
{
        static const char *const states[] = { "starting", "idle", "busy", "dead" };
        char created[40];
        time_print(context->created_ms, created, sizeof created);
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:b}", "id", context->id, "sandbox",
                context->psandbox->id, "language", context->language->name, "state", states[context->state], "cwd",
                context->request.cwd, "executions", (json_int_t)context->executions, "waiting",
                (json_int_t)context->waiting, "created_at", created, "warm", context->instance != NULL);
        if (context->request.user == account_ROOT)
                json_object_set_new(json, "user", json_string("root"));
        if (context->state == CONTEXT_DEAD)
                json_object_set_new(json, "reason", json_string(context->why));
        return json;
}

void context_unwait(struct context_waiter *waiter)
{
        if (waiter->context)
                waiter->context->waiter = NULL;
        waiter->context = NULL;
}

struct context *context_find(struct engine *engine, const char *id, const char *owner)
{
        for (struct psandbox *psandbox = psandbox_next(engine, NULL, owner); psandbox;
                psandbox = psandbox_next(engine, psandbox, owner))
                for (struct context *context = psandbox->contexts; context; context = context->next)
                        if (strcmp(context->id, id) == 0)
                                return context;
        return NULL;
}
