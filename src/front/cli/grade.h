/* The forms in which caisson grade shows results; for its two files. */
#ifndef FRONT_CLI_GRADE_H
#define FRONT_CLI_GRADE_H

#include "front/cli/cli.h"
#include "grading/grading.h"

struct grade_totals {
        size_t submissions, all_passed, troubled;  /* troubled: the engine or the request was in the way */
        uint64_t cases, cases_passed;
        double score;              /* of all submissions, added up */
        uint64_t begun_us;
};

/* What is in the way is not the submission's fault. */
bool grade_is_trouble(const struct grade_result *result);
void grade_count(struct grade_totals *totals, const struct grade_result *result);

/* A line for people, and what did not pass. */
void grade_show(const struct grade_result *result, bool verbose, struct buf *buf);
void grade_show_totals(const struct grade_totals *totals, struct buf *buf);
/* One testsuite of JUnit's XML. */
void grade_junit(const struct grade_result *result, struct buf *buf);

#endif
