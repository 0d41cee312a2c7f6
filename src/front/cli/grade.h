/* Output formats of `caisson grade`; shared by grade.c and grade_report.c. */
#ifndef FRONT_CLI_GRADE_H
#define FRONT_CLI_GRADE_H

#include "front/cli/cli.h"
#include "grading/grading.h"

struct grade_totals {
        size_t submissions, all_passed, troubled;  /* troubled: not graded, because of the engine or the request */
        uint64_t cases, cases_passed;
        double score;              /* sum of the scores of graded submissions */
        uint64_t begun_us;
};

/* Whether a failure of the engine or of the request prevented the grading. */
bool grade_is_trouble(const struct grade_result *result);
/* Whether nothing failed: each case passed, or the submission was executed and there are none. */
bool grade_is_good(const struct grade_result *result);
void grade_count(struct grade_totals *totals, const struct grade_result *result);

/* Append a line for a person, and the cases that did not pass. */
void grade_show(const struct grade_result *result, bool verbose, struct buf *buf);
void grade_show_totals(const struct grade_totals *totals, struct buf *buf);
/* Append one testsuite in JUnit's XML format. */
void grade_junit(const struct grade_result *result, struct buf *buf);

#endif
