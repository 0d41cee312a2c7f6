/* The current work of the engine, as JSON for observers. */
#include "engine/engine.h"
#include "engine/run/run_private.h"

static json_t *one_run(const struct run *run, uint64_t now_us)
{
        const struct run_request *request = &run->launch.request;
        const char *language = run->launch.language ? run->launch.language->name : request->language;
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "id", run->id, "state", run_state_name(run),
                "language", language ? language : "", "profile", request->profile ? request->profile : "", "owner",
                run->owner_key, "age_ms", (json_int_t)((now_us - run->created_us) / 1000));
        if (!run->instance)
                return json;
        /* An observer asks repeatedly, so report the last answer and request the next. */
        const struct wire_stats *seen = &run->instance->seen;
        if (seen->processes) {
                json_object_set_new(json, "cpu_ms", json_integer((json_int_t)(seen->cpu_us / 1000)));
                json_object_set_new(json, "memory_bytes", json_integer((json_int_t)seen->memory_bytes));
                json_object_set_new(json, "processes", json_integer((json_int_t)seen->processes));
        }
        instance_request_stats(run->instance);
        return json;
}

json_t *engine_pools(const struct engine *engine)
{
        return pools_status(engine->pools);
}

json_t *engine_status(struct engine *engine)
{
        json_t *runs = json_array();
        uint64_t now_us = clock_us();
        for (const struct run *run = engine->runs; run; run = run->next)
                if (run->state != RUN_NEW)
                        json_array_append_new(runs, one_run(run, now_us));
        return json_pack("{s:o, s:{s:I, s:I, s:I, s:I}, s:o}", "runs", runs, "queue", "waiting",
                (json_int_t)engine->queued, "running", (json_int_t)engine->running, "max",
                (json_int_t)engine->settings->engine.running_max, "waiting_max",
                (json_int_t)engine->settings->engine.queue_max, "pools", pools_status(engine->pools));
}
