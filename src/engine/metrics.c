/*
 * Counters of the engine since its start, in Prometheus' text form (exposition format 0.0.4): base units, and labels
 * with values of our own only, so that no client can make their number grow.
 */
#include "engine/engine.h"
#include "engine/persistent/context.h"
#include "engine/run/run_private.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const stage_names[STAGES] = { "queue", "prepare", "run", "collect", "total" };

static void head(struct buf *buf, const char *name, const char *type, const char *help)
{
        buf_printf(buf, "# HELP caisson_%s %s\n# TYPE caisson_%s %s\n", name, help, name, type);
}

static void one(struct buf *buf, const char *name, const char *type, const char *help, double value)
{
        head(buf, name, type, help);
        buf_printf(buf, "caisson_%s %.15g\n", name, value);
}

/* label: "stage=\"run\"", or "". */
static void print_histogram(struct buf *buf, const char *name, const char *label, const struct histogram *histogram)
{
        uint64_t sum = 0;
        for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++) {
                char bound[32] = "+Inf";
                if (i < HISTOGRAM_BOUNDS)
                        snprintf(bound, sizeof bound, "%g", histogram_bounds[i]);
                sum += histogram->counts[i];
                buf_printf(buf, "caisson_%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", name, label, label[0] ? "," : "", bound,
                        sum);
        }
        const char *open = label[0] ? "{" : "", *close = label[0] ? "}" : "";
        buf_printf(buf, "caisson_%s_sum%s%s%s %.9g\ncaisson_%s_count%s%s%s %" PRIu64 "\n", name, open, label, close,
                histogram->sum, name, open, label, close, sum);
}

static void print_runs(struct buf *buf, const struct counters *counters)
{
        head(buf, "executions_total", "counter", "Runs that are over, by language and status.");
        for (size_t i = 0; i < COUNTED_LANGUAGES; i++)
                for (int status = 0; status < COUNTED_STATUSES; status++)
                        if (counters->runs[i][status])
                                buf_printf(buf, "caisson_executions_total{language=\"%s\",status=\"%s\"} %" PRIu64 "\n",
                                        i < COUNTED_LANGUAGES - 1 && lang_at(i) ? lang_at(i)->name : "other",
                                        status_name(status), counters->runs[i][status]);
}

static void print_tools(struct buf *buf, const struct counters *counters)
{
        static const char *const outcomes[] = { "done", "failed", "refused" };
        head(buf, "tool_calls_total", "counter", "Calls of tools in runs that are over, by what came of them.");
        for (size_t i = 0; i < ARRAY_LEN(outcomes); i++)
                buf_printf(buf, "caisson_tool_calls_total{outcome=\"%s\"} %" PRIu64 "\n", outcomes[i],
                        counters->tools[i]);
}

static void print_reviews(struct buf *buf, const struct counters *counters)
{
        static const char *const kinds[REVIEW_TOKENS] = { [TOKENS_PROMPT] = "prompt",
                [TOKENS_COMPLETION] = "completion",
                [TOKENS_CACHED] = "cached",
                [TOKENS_REASONING] = "reasoning" };
        head(buf, "review_calls_total", "counter", "Reviews of programs by a model, by verdict.");
        for (size_t i = 0; i < COUNTED_VERDICTS; i++)
                buf_printf(buf, "caisson_review_calls_total{verdict=\"%s\"} %" PRIu64 "\n",
                        choices_review_verdict.values[i].text, counters->reviews[i]);
        one(buf, "review_requests_total", "counter", "Requests of reviews to a model's server.",
                (double)counters->review_calls);
        one(buf, "review_usage_missing_total", "counter", "Requests that the server answered without usage.",
                (double)counters->review_usage_missing);
        head(buf, "review_tokens_total", "counter",
                "Tokens of reviews; cached are a part of prompt, reasoning of completion.");
        for (size_t i = 0; i < REVIEW_TOKENS; i++)
                buf_printf(buf, "caisson_review_tokens_total{kind=\"%s\"} %" PRIu64 "\n", kinds[i],
                        counters->review_tokens[i]);
        head(buf, "review_cost_nanousd_total", "counter", "Cost of reviews in thousand-millionths of a US dollar.");
        buf_printf(buf, "caisson_review_cost_nanousd_total %" PRIu64 "\n", counters->review_nanousd);
        head(buf, "review_seconds", "histogram", "How long reviews took, without those of the cache.");
        print_histogram(buf, "review_seconds", "", &counters->review_time);
}

struct row {
        const char *name, *type, *key, *help;
};

/* A sample of each row for each object of the list, which `label` tells apart by the object's member `of`. */
static void print_rows(struct buf *buf, const struct row *rows, size_t n, json_t *list, const char *label,
        const char *of)
{
        json_t *object;
        size_t at;
        for (size_t i = 0; i < n; i++) {
                head(buf, rows[i].name, rows[i].type, rows[i].help);
                json_array_foreach(list, at, object) {
                        buf_printf(buf, "caisson_%s{%s=\"%s\"} %" JSON_INTEGER_FORMAT "\n", rows[i].name, label,
                                json_string_value(json_object_get(object, of)),
                                json_integer_value(json_object_get(object, rows[i].key)));
                }
        }
}

static void print_pools(struct buf *buf, json_t *pools)
{
        static const struct row rows[] = {
                { "pool_size", "gauge", "ready", "Interpreters and sandboxes that wait." },
                { "pool_target", "gauge", "target", "How many a pool wants to have." },
                { "pool_memory_bytes", "gauge", "memory_bytes", "Memory of what waits, by the kernel's count." },
                { "pool_hits_total", "counter", "hits", "Runs that found something that waited." },
                { "pool_misses_total", "counter", "misses", "Runs that did not." },
        };
        print_rows(buf, rows, ARRAY_LEN(rows), pools, "pool", "key");
}

/* Without a zygote every Python program starts an interpreter of its own. */
static void print_zygotes(struct buf *buf, const struct engine *engine)
{
        static const struct row rows[] = {
                { "zygote_up", "gauge", "serves",
                        "Whether the Python interpreter serves that the runs of an image are forked from." },
                { "zygote_failures_total", "counter", "failures", "How often it could not be made, or ended." },
        };
        json_t *zygotes = pools_zygotes(engine->pools);
        print_rows(buf, rows, ARRAY_LEN(rows), zygotes, "image", "image");
        json_decref(zygotes);
}

static void print_psandboxes(struct buf *buf, struct engine *engine)
{
        static const char *const states[] = {
                [PSANDBOX_MAKING] = "starting", [PSANDBOX_READY] = "running", [PSANDBOX_PAUSED] = "paused"
        };
        size_t counts[ARRAY_LEN(states)] = { 0 }, contexts = 0;
        for (struct psandbox *psandbox = psandbox_next(engine, NULL, NULL); psandbox;
                psandbox = psandbox_next(engine, psandbox, NULL)) {
                counts[psandbox_state(psandbox)]++;
                for (struct context *context = context_next(psandbox, NULL); context;
                        context = context_next(psandbox, context))
                        contexts++;
        }
        head(buf, "sandboxes", "gauge", "Persistent sandboxes, by state.");
        for (size_t i = 0; i < ARRAY_LEN(states); i++)
                buf_printf(buf, "caisson_sandboxes{state=\"%s\"} %zu\n", states[i], counts[i]);
        one(buf, "contexts", "gauge", "Live interpreters in persistent sandboxes.", (double)contexts);
}

static void print_jobs(struct buf *buf, const struct engine *engine)
{
        size_t waiting, running;
        workers_count(engine->workers, &waiting, &running);
        head(buf, "helper_jobs", "gauge", "Jobs of helper threads, by state.");
        buf_printf(buf, "caisson_helper_jobs{state=\"waiting\"} %zu\ncaisson_helper_jobs{state=\"running\"} %zu\n",
                waiting, running);
}

struct engine_gauges engine_gauges(struct engine *engine)
{
        struct engine_gauges gauges = { .denied = engine->counters.denied,
                .cpu_seconds = engine->counters.cpu_seconds };
        pools_count(engine->pools, &gauges.pool_ready, &gauges.pool_memory_bytes);
        for (struct psandbox *psandbox = psandbox_next(engine, NULL, NULL); psandbox;
                psandbox = psandbox_next(engine, psandbox, NULL)) {
                gauges.sandboxes++;
                for (struct context *context = context_next(psandbox, NULL); context;
                        context = context_next(psandbox, context))
                        gauges.contexts++;
        }
        return gauges;
}

void engine_metrics(struct engine *engine, struct buf *buf)
{
        const struct counters *counters = &engine->counters;
        json_t *status = engine_status(engine);
        print_runs(buf, counters);
        head(buf, "stage_duration_seconds", "histogram", "How long the stages of runs took.");
        for (size_t i = 0; i < STAGES; i++) {
                char label[40];
                snprintf(label, sizeof label, "stage=\"%s\"", stage_names[i]);
                print_histogram(buf, "stage_duration_seconds", label, &counters->stages[i]);
        }
        one(buf, "queue_depth", "gauge", "Runs that wait.", (double)engine->queued);
        one(buf, "runs_running", "gauge", "Runs that go on.", (double)engine->running);
        one(buf, "checks_running", "gauge", "Runs whose source policy is being asked.", (double)engine->checking);
        one(buf, "oom_kills_total", "counter", "Runs that were over their memory limit.",
                (double)counters->out_of_memory);
        one(buf, "policy_denials_total", "counter", "Runs that a source policy refused.", (double)counters->denied);
        one(buf, "output_bytes_total", "counter", "What programs wrote to their standard output and error.",
                (double)counters->output_bytes);
        one(buf, "cpu_seconds_total", "counter", "CPU time of programs.", counters->cpu_seconds);
        print_tools(buf, counters);
        print_reviews(buf, counters);
        print_psandboxes(buf, engine);
        print_pools(buf, json_object_get(status, "pools"));
        print_zygotes(buf, engine);
        print_jobs(buf, engine);
        json_decref(status);
}
