/* Adds a run that is over to the counters of its engine. */
#include "engine/run/run_private.h"

const double histogram_bounds[HISTOGRAM_BOUNDS] = { 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
        0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300 };

static void observe(struct histogram *histogram, double seconds)
{
        size_t i = 0;
        while (i < HISTOGRAM_BOUNDS && seconds > histogram_bounds[i])
                i++;
        histogram->counts[i]++;
        histogram->sum += seconds;
}

void counters_add_review(struct engine *engine, const struct review *review)
{
        struct counters *counters = &engine->counters;
        const struct review_usage *usage = &review->usage;
        if (review->verdict >= 0 && review->verdict < COUNTED_VERDICTS)
                counters->reviews[review->verdict]++;
        if (review->verdict != review_verdict_SKIPPED && !review->cached)
                observe(&counters->review_time, review->latency_ms / 1000);
        if (!HAS(review, review, usage))
                return;
        counters->review_calls += usage->calls;
        counters->review_usage_missing += usage->usage_missing;
        counters->review_tokens[TOKENS_PROMPT] += usage->prompt_tokens;
        counters->review_tokens[TOKENS_COMPLETION] += usage->completion_tokens;
        counters->review_tokens[TOKENS_CACHED] += usage->cached_tokens;
        counters->review_tokens[TOKENS_REASONING] += usage->reasoning_tokens;
        counters->review_nanousd += usage->cost_nanousd;
}

void counters_add(struct run *run)
{
        struct counters *counters = &run->engine->counters;
        const struct run_result *result = &run->result;
        const struct timings *timings = &result->timings;
        const double stages[STAGES] = { timings->queue_ms, timings->prepare_ms, timings->run_ms, timings->collect_ms,
                timings->total_ms };
        size_t language = 0;
        while (language < COUNTED_LANGUAGES - 1 && lang_at(language) != run->launch.language)
                language++;
        if (result->status >= 0 && result->status < COUNTED_STATUSES)
                counters->runs[language][result->status]++;
        counters->out_of_memory += result->status == status_MEMORY_EXCEEDED;
        counters->denied += result->status == status_BLOCKED;
        counters->output_bytes += run->streams[0].capture.total + run->streams[1].capture.total;
        counters->cpu_seconds += result->usage.cpu_ms / 1000;
        counters->tools[0] += result->tools.calls - result->tools.failed;
        counters->tools[1] += result->tools.failed;
        counters->tools[2] += result->tools.refused;
        for (size_t i = 0; i < STAGES && run->has_boundary; i++)
                observe(&counters->stages[i], stages[i] / 1000);
}
