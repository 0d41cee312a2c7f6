/* The usage of models: the report in kodeagent's form, and JSON. */
#include "front/views/usage_report.h"

#include "store/store.h"

#include <inttypes.h>
#include <time.h>

#define LINE "============================================================"
#define THIN_LINE "------------------------------------------------------------"
#define USD_DIGITS 4                       /* of the report; JSON has all nine */

struct report {
        enum usage_by by;
        struct usage_filter filter;
        struct arena arena;
        struct store_usage total, *sums;
        size_t n;
};

static int parse_since(const char *since, int64_t *ret_day, struct csn_error *err)
{
        struct tm tm = { 0 };
        uint64_t ms;
        *ret_day = 0;
        if (!since)
                return 0;
        const char *end = strptime(since, "%Y-%m-%d", &tm);
        if (end && !*end) {
                /* strptime(3) takes the 31st of February; timegm(3) would make a day of March */
                struct tm again = tm;
                time_t seconds = timegm(&again);
                if (seconds >= 0 && again.tm_mday == tm.tm_mday) {
                        *ret_day = usage_day((int64_t)seconds * 1000);
                        return 0;
                }
        } else if (duration_parse(since, &ms) && ms <= (uint64_t)time_now_ms()) {
                *ret_day = usage_day(time_now_ms() - (int64_t)ms);
                return 0;
        }
        return err_field(err, "since",
                "since is \"%.40s\"; it has to be a day such as 2026-11-01, or a time before now such as 30d", since);
}

/* All sums are read at once, and the total is made of the sums, so both agree. */
static int read_report(struct store *store, const struct usage_question *question, struct report *ret,
        struct csn_error *err)
{
        *ret = (struct report){ .filter = { .tenant = question->tenant } };
        int rc = usage_parse_by(question->by, &ret->by, err);
        rc = rc < 0 ? rc : parse_since(question->since, &ret->filter.since_day, err);
        rc = rc < 0 ? rc : usage_sums(store, &ret->filter, ret->by, &ret->arena, &ret->sums, &ret->n, err);
        for (size_t i = 0; rc == 0 && i < ret->n; i++) {
                ret->total.calls += ret->sums[i].calls;
                ret->total.usage_missing += ret->sums[i].usage_missing;
                ret->total.prompt_tokens += ret->sums[i].prompt_tokens;
                ret->total.completion_tokens += ret->sums[i].completion_tokens;
                ret->total.total_tokens += ret->sums[i].total_tokens;
                ret->total.cached_tokens += ret->sums[i].cached_tokens;
                ret->total.reasoning_tokens += ret->sums[i].reasoning_tokens;
                ret->total.cost_nanousd += ret->sums[i].cost_nanousd;
        }
        return rc;
}

/* ---- JSON ---- */

static json_t *sum_json(const struct store_usage *sum)
{
        char usd[40];
        usd_print(sum->cost_nanousd, 9, usd, sizeof usd);
        return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "calls", (json_int_t)sum->calls,
                "usage_missing", (json_int_t)sum->usage_missing, "prompt_tokens", (json_int_t)sum->prompt_tokens,
                "completion_tokens", (json_int_t)sum->completion_tokens, "total_tokens", (json_int_t)sum->total_tokens,
                "cached_tokens", (json_int_t)sum->cached_tokens, "reasoning_tokens",
                (json_int_t)sum->reasoning_tokens, "cost_nanousd", (json_int_t)sum->cost_nanousd, "cost_usd", usd);
}

static json_t *row_json(const struct report *report, const struct store_usage *sum)
{
        json_t *row = report->by == USAGE_BY_KEY ? json_pack("{s:s, s:s}", "tenant", sum->tenant, "key", sum->key)
                : report->by == USAGE_BY_MODEL   ? json_pack("{s:s}", "model", sum->model)
                                                 : json_pack("{s:s}", "component", sum->component);
        json_object_update_new(row, sum_json(sum));
        return row;
}

json_t *front_usage(struct store *store, const struct usage_question *question, struct csn_error *err)
{
        struct report report;
        json_t *answer = NULL;
        if (read_report(store, question, &report, err) == 0) {
                char since[40];
                json_t *rows = json_array();
                for (size_t i = 0; i < report.n; i++)
                        json_array_append_new(rows, row_json(&report, &report.sums[i]));
                time_print(report.filter.since_day * 86400000, since, sizeof since);
                answer = json_pack("{s:o, s:s, s:o, s:o}", "since",
                        report.filter.since_day ? json_string(since) : json_null(), "by", usage_by_name(report.by),
                        "total", sum_json(&report.total), "usage", rows);
        }
        arena_done(&report.arena);
        return answer;
}

/* ---- text ---- */

/* "1,234,567" */
static const char *grouped(uint64_t number, char text[static 40])
{
        char digits[24];
        int len = snprintf(digits, sizeof digits, "%" PRIu64, number);
        size_t at = 0;
        for (int i = 0; i < len; i++) {
                if (i && (len - i) % 3 == 0)
                        text[at++] = ',';
                text[at++] = digits[i];
        }
        text[at] = 0;
        return text;
}

static const char *name_of(const struct report *report, const struct store_usage *sum)
{
        return report->by == USAGE_BY_KEY ? sum->key[0] ? sum->key : "(without a key)"
                : report->by == USAGE_BY_MODEL ? sum->model : sum->component;
}

/* Clients and administrators choose names: control characters are escaped, so no name looks like another line. */
static void add_name(struct buf *buf, const char *name)
{
        for (; *name; name++)
                buf_printf(buf, (unsigned char)*name < 0x20 || *name == 0x7f ? "\\x%02x" : "%c", (unsigned char)*name);
}

int front_usage_text(struct store *store, const struct usage_question *question, struct buf *buf, struct csn_error *err)
{
        static const char *const titles[] = { [USAGE_BY_COMPONENT] = "Component", [USAGE_BY_MODEL] = "Model",
                [USAGE_BY_KEY] = "Key" };
        struct report report;
        char tokens[40], prompt[40], completion[40], usd[40];
        int rc = read_report(store, question, &report, err);
        const struct store_usage *total = &report.total;
        if (rc == 0) {
                usd_print(total->cost_nanousd, USD_DIGITS, usd, sizeof usd);
                buf_printf(buf,
                        "LLM Usage Report\n" LINE "\nTotal LLM Calls: %" PRIu64 "\nTotal Tokens: %s\n"
                        "  - Prompt Tokens: %s\n  - Completion Tokens: %s\nTotal Cost: $%s\n",
                        total->calls, grouped(total->total_tokens, tokens), grouped(total->prompt_tokens, prompt),
                        grouped(total->completion_tokens, completion), usd);
                if (report.n)
                        buf_printf(buf, "\nBreakdown by %s:\n" THIN_LINE "\n", titles[report.by]);
        }
        for (size_t i = 0; rc == 0 && i < report.n; i++) {
                const struct store_usage *sum = &report.sums[i];
                usd_print(sum->cost_nanousd, USD_DIGITS, usd, sizeof usd);
                buf_printf(buf, "\n");
                add_name(buf, name_of(&report, sum));
                buf_printf(buf, ":\n  Calls: %" PRIu64 " | Tokens: %s | Cost: $%s\n", sum->calls,
                        grouped(sum->total_tokens, tokens), usd);
        }
        if (rc == 0)
                buf_printf(buf, LINE "\n");
        arena_done(&report.arena);
        return rc;
}
