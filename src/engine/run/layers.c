/* Runs waiting for layers of packages. */
#include "engine/run/layers.h"

#include "engine/run/run_private.h"

static bool names_packages(const struct run_request *request)
{
        bool named = request->packages_n || request->packages_from_code || HAS(request, run_request, requirements) ||
                HAS(request, run_request, lock);
        return request->layers_n || request->deps == deps_AUTO || (named && request->deps == deps_LOCKED);
}

bool layers_are_wanted(const struct launch *launch)
{
        return launch->pinned_n || names_packages(&launch->request);
}

int layers_ask(struct engine *engine, struct layer_query *query, struct csn_error *err)
{
        if (!engine->layer_source)
                return err_field(err, query->request->layers_n ? "/layers" : "/packages",
                        "layers of packages need a daemon that keeps its state (engine.state_dir)");
        return engine->layer_source->find(engine->layer_source_owner, query, err);
}

void layer_query_release(struct layer_query *query)
{
        for (size_t i = 0; i < LAYERS_OF_RUN; i++)
                fd_close(&query->holds[i]);
}

int layer_query_refuse(const struct layer_query *query, const struct csn_error *error, struct csn_error *ret)
{
        if (ret != error)
                *ret = *error;
        if (query->problem)
                ret->code = query->retryable ? CSN_E_BUSY : CSN_E_INPUT;
        return -ret->code;
}

/* Backends of other hosts install the packages themselves. */
bool run_needs_layers(const struct run *run)
{
        const struct backend *backend = run->launch.backend;
        bool here = backend == &backend_native || backend == &backend_host;
        return here && layers_are_wanted(&run->launch);
}

static void use(struct run *run)
{
        launch_set_layers(&run->launch, &run->layers.found);
        run->result.layers = run->layers.uses;
        run->result.layers_n = run->layers.uses_n;
        for (size_t i = 0; i < run->layers.warnings_n; i++)
                run_warn(run, run->layers.warnings[i].code, "%s", run->layers.warnings[i].text);
        if (run->layers.uses_n)
                MARK(&run->result, run_result, layers);
}

static void on_found(struct layer_query *query, const struct csn_error *error)
{
        struct run *run = query->owner;
        run->waits_for_layers = false;
        run->engine->checking--;
        if (error)
                run->refusal = *error;
        else
                use(run);
        run->has_layers(run);
}

/* The required imports; both lists are sorted, and each optional import is in both. */
static void needed_imports(const struct check_result *checked, struct layer_query *query)
{
        size_t optional = 0;
        query->imports = arena_alloc(query->arena, (checked->imports_n + 1) * sizeof *query->imports);
        for (size_t i = 0; i < checked->imports_n; i++)
                if (optional < checked->optional_imports_n &&
                        strcmp(checked->imports[i], checked->optional_imports[optional]) == 0)
                        optional++;
                else
                        query->imports[query->imports_n++] = checked->imports[i];
}

/* A context has the layers of its sandbox; another run has none, because no layer source is there. */
static void warn_missing(struct run *run)
{
        if (names_packages(&run->launch.request))
                run_warn(run, "packages_not_installed",
                        run->executor ? "packages are recorded, not installed: a context has the packages of its sandbox; "
                                        "name them in the request for the sandbox"
                                      : "packages are recorded, not installed: the image has to have them");
        else if (!run->executor)
                run_warn(run, "packages_not_installed",
                        "the layers that images.layers pins to the image are missing: they need the daemon");
}

void run_find_layers(struct run *run, void (*has_layers)(struct run *run))
{
        struct engine *engine = run->engine;
        const struct check_result *checked = &run->check.result;
        run->layers = (struct layer_query){ .request = &run->launch.request,
                .language = run->launch.language->name,
                .image = run->launch.image,
                .pinned = run->launch.pinned,
                .pinned_n = run->launch.pinned_n,
                .owner_key = run->owner_key,
                .quota = &run->quota,
                .arena = &run->launch.arena,
                .done = on_found,
                .owner = run,
                .holds = { -1, -1 } };
        needed_imports(checked, &run->layers);
        run->has_layers = has_layers;
        if (!engine->layer_source || run->launch.backend != &backend_native || run->executor) {
                if (run->launch.request.layers_n)
                        err_field(&run->refusal, "/layers",
                                "layers of packages need the daemon, the backend native and no context");
                warn_missing(run);
                has_layers(run);
                return;
        }
        int rc = layers_ask(engine, &run->layers, &run->refusal);
        if (rc == 0) {
                run->waits_for_layers = true;
                run->engine->checking++;
                run->state = RUN_CHECKING;
                return;
        }
        if (rc > 0)
                use(run);
        has_layers(run);
}

void run_forget_layers(struct run *run)
{
        if (!run->waits_for_layers)
                return;
        if (run->engine->layer_source)
                run->engine->layer_source->forget(run->engine->layer_source_owner, &run->layers);
        run->waits_for_layers = false;
        run->engine->checking--;
}
