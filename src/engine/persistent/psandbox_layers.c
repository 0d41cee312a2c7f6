/* Persistent sandboxes waiting for layers of packages. */
#include "engine/persistent/psandbox_private.h"

static void use(struct psandbox *psandbox)
{
        launch_set_layers(&psandbox->launch, &psandbox->layers.found);
}

static void on_found(struct layer_query *query, const struct csn_error *error)
{
        struct psandbox *psandbox = query->owner;
        struct csn_error refusal;
        psandbox->waits_for_layers = false;
        if (error)
                layer_query_refuse(query, error, &refusal);
        else
                use(psandbox);
        psandbox->has_layers(psandbox, error ? &refusal : NULL);
}

int psandbox_find_layers(struct psandbox *psandbox,
        void (*found)(struct psandbox *psandbox, const struct csn_error *error), struct csn_error *err)
{
        struct engine *engine = psandbox->engine;
        const struct run_request *request = &psandbox->launch.request;
        if (!layers_are_wanted(&psandbox->launch))
                return 1;
        psandbox->layers = (struct layer_query){ .request = request,
                .language = lang_python.name,
                .image = psandbox->launch.image,
                .pinned = psandbox->launch.pinned,
                .pinned_n = psandbox->launch.pinned_n,
                .owner_key = psandbox->owner,
                .quota = &psandbox->quota,
                .arena = &psandbox->launch.arena,
                .done = on_found,
                .owner = psandbox,
                .holds = { -1, -1 } };
        psandbox->has_layers = found;
        int rc = layers_ask(engine, &psandbox->layers, err);
        psandbox->waits_for_layers = rc == 0;
        if (rc > 0)
                use(psandbox);
        return rc < 0 ? layer_query_refuse(&psandbox->layers, err, err) : rc;
}

void psandbox_forget_layers(struct psandbox *psandbox)
{
        const struct engine *engine = psandbox->engine;
        if (psandbox->waits_for_layers && engine->layer_source)
                engine->layer_source->forget(engine->layer_source_owner, &psandbox->layers);
        psandbox->waits_for_layers = false;
}
