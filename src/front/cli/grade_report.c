/* Results of grading for people, and as JUnit's XML for collectors of test results. */
#include "front/cli/grade.h"

#include <stdio.h>

#define SHOWN_CASES 5          /* cases without a pass, of a submission */

bool grade_is_trouble(const struct grade_result *result)
{
        switch (result->status) {
        case status_CAPACITY:
        case status_ENGINE_ERROR:
        case status_BAD_REQUEST:
        case status_ISOLATION_UNAVAILABLE:
        case status_UNSUPPORTED_LANGUAGE:
        case status_DEPENDENCY_FAILED:
        case status_CANCELLED:
                return true;
        default:
                return false;
        }
}

bool grade_is_good(const struct grade_result *result)
{
        return result->all_passed || (result->status == status_COMPLETED && !result->total);
}

void grade_count(struct grade_totals *totals, const struct grade_result *result)
{
        totals->submissions++;
        totals->all_passed += grade_is_good(result);
        totals->troubled += grade_is_trouble(result);
        totals->cases += result->total;
        totals->cases_passed += result->passed;
        totals->score += grade_is_trouble(result) ? 0 : result->score;
}

static void add_visible(struct buf *buf, const char *text)
{
        size_t len = strlen(text);
        char *out = mem_alloc(4 * len + 1);
        size_t n = cli_visible(text, len, out);
        buf_add(buf, out, n);
        free(out);
}

static const char *name_of(const struct grade_result *result)
{
        return HAS(result, grade_result, id) ? result->id : result->grade_id;
}

void grade_show(const struct grade_result *result, bool verbose, struct buf *buf)
{
        size_t shown = 0, hidden = 0;
        if (result->all_passed && !verbose)
                return;
        buf_printf(buf, "%s  ", grade_is_trouble(result) ? "ERROR" : grade_is_good(result) ? "ok   " : "FAIL ");
        add_visible(buf, name_of(result));
        if (result->mask)
                buf_printf(buf, "  no score");
        else if (result->total)
                buf_printf(buf, "  %llu/%llu, score %.2f", (unsigned long long)result->passed,
                        (unsigned long long)result->total, result->score);
        else if (grade_is_good(result))
                buf_printf(buf, "  Code executed, no tests");
        buf_add(buf, "\n", 1);
        if (HAS(result, grade_result, error)) {
                buf_printf(buf, "       %s: ", status_name(result->status));
                add_visible(buf, result->error.message);
                if (HAS(&result->error, failure, field))
                        buf_printf(buf, " (%s)", result->error.field);
                buf_add(buf, "\n", 1);
        }
        for (size_t i = 0; i < result->cases_n; i++) {
                const struct case_result *one = &result->cases[i];
                if (one->passed || one->status == case_status_NOT_RUN || one->status == case_status_SKIPPED)
                        continue;
                if (shown == SHOWN_CASES && !verbose) {
                        hidden++;
                        continue;
                }
                shown++;
                buf_printf(buf, "       ");
                add_visible(buf, one->name);
                buf_printf(buf, ": ");
                add_visible(buf, one->detail);
                buf_add(buf, "\n", 1);
        }
        if (hidden)
                buf_printf(buf, "       and %zu more\n", hidden);
        for (size_t i = 0; i < result->warnings_n; i++)
                buf_printf(buf, "       warning: %s\n", result->warnings[i].text);
        for (size_t i = 0; i < result->signs_n; i++) {
                buf_printf(buf, "       sign of cheating: %s ", result->signs[i].sign);
                add_visible(buf, HAS(&result->signs[i], grade_sign, detail) ? result->signs[i].detail : "");
                buf_add(buf, "\n", 1);
        }
}

void grade_show_totals(const struct grade_totals *totals, struct buf *buf)
{
        double seconds = (double)(clock_us() - totals->begun_us) / 1e6;
        size_t graded = totals->submissions - totals->troubled;
        buf_printf(buf, "%zu submission%s: %zu passed, %zu failed", totals->submissions,
                totals->submissions == 1 ? "" : "s", totals->all_passed,
                graded - totals->all_passed);
        if (totals->troubled)
                buf_printf(buf, ", %zu not graded", totals->troubled);
        buf_printf(buf, "; %llu of %llu cases", (unsigned long long)totals->cases_passed,
                (unsigned long long)totals->cases);
        if (graded)
                buf_printf(buf, ", mean score %.3f", totals->score / (double)graded);
        buf_printf(buf, "; %.2f s", seconds);
        if (graded)
                buf_printf(buf, ", %.1f submissions and %.1f cases a second", (double)totals->submissions / seconds,
                        (double)totals->cases / seconds);
        buf_add(buf, "\n", 1);
}

/* ---- XML ---- */

/* Characters outside XML 1.0 become U+FFFD. */
static void add_xml(struct buf *buf, const char *text)
{
        for (; *text; text++) {
                unsigned char c = (unsigned char)*text;
                if (c == '<')
                        buf_printf(buf, "&lt;");
                else if (c == '>')
                        buf_printf(buf, "&gt;");
                else if (c == '&')
                        buf_printf(buf, "&amp;");
                else if (c == '"')
                        buf_printf(buf, "&quot;");
                else if (c == '\n' || c == '\t' || c == '\r')
                        buf_printf(buf, "&#%u;", c);
                else if (c < 0x20)
                        buf_printf(buf, "\xef\xbf\xbd");
                else
                        buf_add(buf, text, 1);
        }
}

static void add_attribute(struct buf *buf, const char *name, const char *value)
{
        buf_printf(buf, " %s=\"", name);
        add_xml(buf, value);
        buf_printf(buf, "\"");
}

static bool is_fault(int status)
{
        return status == case_status_FAILED || status == case_status_ERROR || status == case_status_UNENCODABLE ||
                status == case_status_UNPROXYABLE;
}

static void add_case(struct buf *buf, const char *suite, const struct case_result *one)
{
        buf_printf(buf, "    <testcase");
        add_attribute(buf, "classname", suite);
        add_attribute(buf, "name", one->name);
        buf_printf(buf, " time=\"%.4f\"", one->duration_ms / 1000);
        if (one->passed) {
                buf_printf(buf, "/>\n");
                return;
        }
        const char *kind = one->status == case_status_NOT_RUN || one->status == case_status_SKIPPED ? "skipped"
                : is_fault(one->status)                                                             ? "failure"
                                                                                                    : "error";
        buf_printf(buf, ">\n      <%s", kind);
        if (strcmp(kind, "skipped") != 0)
                add_attribute(buf, "type", choices_case_status.values[one->status].text);
        add_attribute(buf, "message", one->detail);
        buf_printf(buf, "/>\n    </testcase>\n");
}

void grade_junit(const struct grade_result *result, struct buf *buf)
{
        uint64_t failures = 0, errors = 0, skipped = 0;
        for (size_t i = 0; i < result->cases_n; i++) {
                int status = result->cases[i].status;
                skipped += status == case_status_NOT_RUN || status == case_status_SKIPPED;
                failures += is_fault(status);
                errors += status != case_status_PASSED && status != case_status_NOT_RUN &&
                        status != case_status_SKIPPED && !is_fault(status);
        }
        uint64_t alone = HAS(result, grade_result, error) && !result->cases_n;
        errors += alone;
        buf_printf(buf, "  <testsuite");
        add_attribute(buf, "name", name_of(result));
        buf_printf(buf, " tests=\"%zu\" failures=\"%llu\" errors=\"%llu\" skipped=\"%llu\" time=\"%.4f\">\n",
                result->cases_n + (size_t)alone, (unsigned long long)failures, (unsigned long long)errors,
                (unsigned long long)skipped, result->wall_ms / 1000);
        for (size_t i = 0; i < result->cases_n; i++)
                add_case(buf, name_of(result), &result->cases[i]);
        if (alone) {
                buf_printf(buf, "    <testcase");
                add_attribute(buf, "classname", name_of(result));
                buf_printf(buf, " name=\"load\">\n      <error");
                add_attribute(buf, "type", status_name(result->status));
                add_attribute(buf, "message", result->error.message);
                buf_printf(buf, "/>\n    </testcase>\n");
        }
        buf_printf(buf, "  </testsuite>\n");
}
