/* counters: sums over all runs of an engine that are over. */
#ifndef ENGINE_RUN_COUNTERS_H
#define ENGINE_RUN_COUNTERS_H

#include "base/base.h"

#define COUNTED_LANGUAGES 5                /* the built-in ones, and one for all added languages */
#define COUNTED_STATUSES 32
#define HISTOGRAM_BOUNDS 19

#define COUNTED_VERDICTS 4

enum review_tokens { TOKENS_PROMPT, TOKENS_COMPLETION, TOKENS_CACHED, TOKENS_REASONING, REVIEW_TOKENS };
enum counted_stage { STAGE_QUEUE, STAGE_PREPARE, STAGE_RUN, STAGE_COLLECT, STAGE_TOTAL, STAGES };

/* Upper bounds of the buckets in seconds; the first ones are for runs that take an instance from a pool. */
extern const double histogram_bounds[HISTOGRAM_BOUNDS];

struct histogram {
        uint64_t counts[HISTOGRAM_BOUNDS + 1];   /* the last bucket has no bound */
        double sum;                              /* seconds */
};

struct counters {
        uint64_t runs[COUNTED_LANGUAGES][COUNTED_STATUSES];
        uint64_t out_of_memory, denied, output_bytes;
        uint64_t tools[3];                 /* calls that were done, failed, refused */
        double cpu_seconds;
        struct histogram stages[STAGES];
        uint64_t reviews[COUNTED_VERDICTS];   /* by enum review_verdict */
        uint64_t review_calls, review_usage_missing;
        uint64_t review_tokens[REVIEW_TOKENS];
        uint64_t review_nanousd;
        struct histogram review_time;      /* without cached ones */
};

#endif
