/* Sends events to the watcher of an engine; see watcher.h. */
#include "engine/run/watcher.h"

#include "engine/run/run_private.h"

void engine_set_watcher(struct engine *engine, const struct engine_watcher *watcher, void *owner)
{
        engine->watcher = watcher;
        engine->watcher_owner = owner;
}

void watcher_tell(const struct engine *engine, const struct watched_event *what)
{
        if (engine->watcher)
                engine->watcher->happened(engine->watcher_owner, what);
}

static void tell_run(const struct run *run, enum watched_kind kind, const struct run_result *result)
{
        const struct run_request *request = &run->launch.request;
        watcher_tell(run->engine, &(const struct watched_event){ .kind = kind,
                .id = run->id,
                .owner = run->owner_key,
                .key = run->quota.key,
                .language = run->launch.language ? run->launch.language->name : request->language,
                .profile = request->profile,
                .context = HAS(request, run_request, context) ? request->context : NULL,
                .result = result });
}

void run_tell_started(struct run *run)
{
        if (run->launch.builds || run->is_watched)
                return;
        run->is_watched = true;
        tell_run(run, WATCHED_RUN_STARTED, NULL);
}

void run_tell_finished(struct run *run, const struct run_result *result)
{
        if (!run->is_watched)
                return;
        run->is_watched = false;
        tell_run(run, WATCHED_RUN_FINISHED, result);
}
