/* Begins and ends of persistent sandboxes and contexts, for the watcher of the engine. */
#include "engine/persistent/psandbox_private.h"

void psandbox_tell(struct psandbox *psandbox, enum watched_kind kind)
{
        if (kind == WATCHED_SANDBOX_ENDED && !psandbox->is_watched)
                return;
        psandbox->is_watched = kind != WATCHED_SANDBOX_ENDED;
        watcher_tell(psandbox->engine, &(const struct watched_event){ .kind = kind,
                .id = psandbox->id,
                .owner = psandbox->owner,
                .key = psandbox->quota.key,
                .profile = psandbox->launch.request.profile });
}

void context_tell(struct context *context, enum watched_kind kind)
{
        const struct psandbox *psandbox = context->psandbox;
        if (kind == WATCHED_CONTEXT_ENDED && !context->is_watched)
                return;
        context->is_watched = kind != WATCHED_CONTEXT_ENDED;
        watcher_tell(psandbox->engine, &(const struct watched_event){ .kind = kind,
                .id = context->id,
                .owner = psandbox->owner,
                .key = psandbox->quota.key,
                .language = context->language->name,
                .sandbox = psandbox->id });
}
