/*
 * Usage of models: tokens and cost, as sums by tenant, key, component, model and day.
 *
 * All numbers are integers, so sums are exact.  A row of the table holds at most USAGE_MAX of each counter, which no
 * honest server reaches.  The table usage_costs has the cost of each key, kept by triggers, so the check of a budget
 * costs the same for any number of rows.
 *
 * Usage refused by the database (a full disk) is counted in memory until usage_retry() has written the rows: a full
 * disk opens no budget.
 */
#include "store/sql.h"

#include <inttypes.h>

#define USAGE_MAX 1000000000000000         /* 10^15: a million US dollars in nano-dollars */

struct unsaved_usage {
        struct unsaved_usage *next;
        struct store_usage usage;          /* its texts live in `arena` */
        struct arena arena;
};

static struct sql_value capped(uint64_t number)
{
        return sql_count(min_u64(number, USAGE_MAX));
}

/* min() keeps the sum an integer, where SQLite would make a real number of a sum beyond 63 bits. */
#define MORE(column) column " = min(" column " + excluded." column ", 1000000000000000)"

static int add(struct store *store, const struct store_usage *usage, struct csn_error *err)
{
        return sql_do_surely(store, err,
                "INSERT INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "
                "ON CONFLICT (tenant, key, component, model, day) DO UPDATE SET "
                MORE("calls") ", " MORE("usage_missing") ", " MORE("prompt_tokens") ", " MORE("completion_tokens") ", "
                MORE("total_tokens") ", " MORE("cached_tokens") ", " MORE("reasoning_tokens") ", " MORE("cost_nanousd"),
                SQL_VALUES(sql_text(usage->tenant), sql_text(usage->key), sql_text(usage->component),
                        sql_text(usage->model), sql_number(usage->day), capped(usage->calls),
                        capped(usage->usage_missing), capped(usage->prompt_tokens), capped(usage->completion_tokens),
                        capped(usage->total_tokens), capped(usage->cached_tokens), capped(usage->reasoning_tokens),
                        capped(usage->cost_nanousd)));
}

/* ---- refused usage ---- */

static bool is_same(const struct store_usage *a, const struct store_usage *b)
{
        return a->day == b->day && strcmp(a->tenant, b->tenant) == 0 && strcmp(a->key, b->key) == 0 &&
                strcmp(a->component, b->component) == 0 && strcmp(a->model, b->model) == 0;
}

static void accumulate(struct store_usage *sum, const struct store_usage *usage)
{
        sum->calls += usage->calls;
        sum->usage_missing += usage->usage_missing;
        sum->prompt_tokens += usage->prompt_tokens;
        sum->completion_tokens += usage->completion_tokens;
        sum->total_tokens += usage->total_tokens;
        sum->cached_tokens += usage->cached_tokens;
        sum->reasoning_tokens += usage->reasoning_tokens;
        sum->cost_nanousd += usage->cost_nanousd;
}

static void keep(struct store *store, const struct store_usage *usage)
{
        struct unsaved_usage *one = store->unsaved_usage;
        while (one && !is_same(&one->usage, usage))
                one = one->next;
        if (one) {
                accumulate(&one->usage, usage);
                return;
        }
        one = mem_alloc(sizeof *one);
        *one = (struct unsaved_usage){ .next = store->unsaved_usage, .usage = *usage };
        one->usage.tenant = arena_text(&one->arena, "%s", usage->tenant);
        one->usage.key = arena_text(&one->arena, "%s", usage->key);
        one->usage.component = arena_text(&one->arena, "%s", usage->component);
        one->usage.model = arena_text(&one->arena, "%s", usage->model);
        store->unsaved_usage = one;
}

static void drop(struct unsaved_usage **at)
{
        struct unsaved_usage *one = *at;
        *at = one->next;
        arena_done(&one->arena);
        free(one);
}

void usage_retry(struct store *store)
{
        while (store->unsaved_usage && add(store, &store->unsaved_usage->usage, NULL) == 0)
                drop(&store->unsaved_usage);
}

void usage_close(struct store *store)
{
        while (store->unsaved_usage)
                drop(&store->unsaved_usage);
}

/* ---- public functions ---- */

int64_t usage_day(int64_t ms)
{
        return ms / 86400000;
}

int usage_add(struct store *store, const struct store_usage *usage, struct csn_error *err)
{
        if (add(store, usage, err) == 0)
                return 0;
        keep(store, usage);
        return err_wrap(err, "record the usage of %.100s", usage->model);
}

int usage_add_review(struct store *store, const char *tenant, const char *key, const struct review *review,
        struct csn_error *err)
{
        const struct review_usage *usage = &review->usage;
        static char component[] = "CodeSecurityReviewer", unknown[] = "";   /* the name in kodeagent's reports */
        if (!HAS(review, review, usage))
                return 0;
        return usage_add(store,
                &(struct store_usage){ .tenant = (char *)(uintptr_t)tenant,
                        .key = (char *)(uintptr_t)key,
                        .component = component,
                        .model = review->model ? review->model : unknown,
                        .day = usage_day(time_now_ms()),
                        .calls = usage->calls,
                        .usage_missing = usage->usage_missing,
                        .prompt_tokens = usage->prompt_tokens,
                        .completion_tokens = usage->completion_tokens,
                        .total_tokens = usage->total_tokens,
                        .cached_tokens = usage->cached_tokens,
                        .reasoning_tokens = usage->reasoning_tokens,
                        .cost_nanousd = usage->cost_nanousd },
                err);
}

static void read_sum(struct sql_rows *rows, struct arena *arena, struct store_usage *ret)
{
        *ret = (struct store_usage){
                .tenant = sql_get_text(rows, 0, arena),
                .key = sql_get_text(rows, 1, arena),
                .component = sql_get_text(rows, 2, arena),
                .model = sql_get_text(rows, 3, arena),
                .calls = (uint64_t)sql_get_number(rows, 4),
                .usage_missing = (uint64_t)sql_get_number(rows, 5),
                .prompt_tokens = (uint64_t)sql_get_number(rows, 6),
                .completion_tokens = (uint64_t)sql_get_number(rows, 7),
                .total_tokens = (uint64_t)sql_get_number(rows, 8),
                .cached_tokens = (uint64_t)sql_get_number(rows, 9),
                .reasoning_tokens = (uint64_t)sql_get_number(rows, 10),
                .cost_nanousd = (uint64_t)sql_get_number(rows, 11),
        };
}

/* A statement for each grouping: the grouped columns, or '' for each other column. */
#define SUMS                                                                                               \
        " sum(calls), sum(usage_missing), sum(prompt_tokens), sum(completion_tokens), sum(total_tokens), " \
        "sum(cached_tokens), sum(reasoning_tokens), sum(cost_nanousd) FROM usage "                         \
        "WHERE (?1 = '' OR tenant = ?1) AND day >= ?2 "
#define SORTED " ORDER BY sum(cost_nanousd) DESC, "

static const char *const statements[] = {
        [USAGE_BY_COMPONENT] = "SELECT '', '', component, ''," SUMS "GROUP BY component" SORTED "component",
        [USAGE_BY_MODEL] = "SELECT '', '', '', model," SUMS "GROUP BY model" SORTED "model",
        [USAGE_BY_KEY] = "SELECT tenant, key, '', ''," SUMS "GROUP BY tenant, key" SORTED "tenant, key",
};

static const char *const by_names[] = {
        [USAGE_BY_COMPONENT] = "component", [USAGE_BY_MODEL] = "model", [USAGE_BY_KEY] = "key"
};

int usage_parse_by(const char *word, enum usage_by *ret, struct csn_error *err)
{
        for (size_t i = 0; i < ARRAY_LEN(by_names); i++)
                if (strcmp(by_names[i], word) == 0) {
                        *ret = (enum usage_by)i;
                        return 0;
                }
        return err_field(err, "by", "by is \"%.40s\"; it has to be component, model or key", word);
}

const char *usage_by_name(enum usage_by by)
{
        return by < ARRAY_LEN(by_names) ? by_names[by] : "";
}

int usage_sums(struct store *store, const struct usage_filter *filter, enum usage_by by, struct arena *arena,
        struct store_usage **ret, size_t *ret_n, struct csn_error *err)
{
        auto_rows rows = { 0 };
        struct store_usage *sums = NULL;
        size_t n = 0, room = 0;
        usage_retry(store);
        int rc = sql_open(store, &rows, err, statements[by],
                SQL_VALUES(sql_text(filter->tenant), sql_number(filter->since_day)));
        while (rc >= 0 && (rc = sql_next(&rows, err)) > 0) {
                if (n == room) {
                        struct store_usage *more = arena_alloc(arena, (room = room * 2 + 16) * sizeof *more);
                        if (n)
                                memcpy(more, sums, n * sizeof *more);
                        sums = more;
                }
                read_sum(&rows, arena, &sums[n++]);
        }
        if (rc < 0)
                return err_wrap(err, "add up the usage of models");
        *ret = sums;
        *ret_n = n;
        return 0;
}

int usage_reset(struct store *store, const char *tenant, struct csn_error *err)
{
        for (struct unsaved_usage **at = &store->unsaved_usage; *at;)
                if (!tenant[0] || strcmp((*at)->usage.tenant, tenant) == 0)
                        drop(at);
                else
                        at = &(*at)->next;
        int rc = sql_do_surely(store, err, "DELETE FROM usage WHERE ?1 = '' OR tenant = ?1",
                SQL_VALUES(sql_text(tenant)));
        return rc < 0 ? err_wrap(err, "reset the usage of models") : 0;
}

int usage_key_cost(struct store *store, const char *key, uint64_t *ret_nanousd, struct csn_error *err)
{
        auto_rows rows = { 0 };
        int rc = sql_open(store, &rows, err, "SELECT cost_nanousd FROM usage_costs WHERE key = ?1",
                SQL_VALUES(sql_text(key)));
        rc = rc < 0 ? rc : sql_next(&rows, err);
        if (rc < 0)
                return err_wrap(err, "look up the cost of the key %.40s", key);
        *ret_nanousd = rc ? (uint64_t)sql_get_number(&rows, 0) : 0;
        for (const struct unsaved_usage *one = store->unsaved_usage; one; one = one->next)
                if (strcmp(one->usage.key, key) == 0)
                        *ret_nanousd += one->usage.cost_nanousd;
        return 0;
}

/* ---- money ---- */

/* Digits of a decimal number behind the point, as a number of nano-dollars; more than nine are refused. */
static bool parse_fraction(const char *text, uint64_t *ret)
{
        uint64_t value = 0;
        size_t n = 0;
        for (; text[n] >= '0' && text[n] <= '9' && n < 9; n++)
                value = value * 10 + (uint64_t)(text[n] - '0');
        if (text[n] || !n)
                return false;
        for (; n < 9; n++)
                value *= 10;
        *ret = value;
        return true;
}

bool usd_parse(const char *text, uint64_t *ret_nanousd)
{
        uint64_t whole = 0, fraction = 0;
        size_t n = 0;
        for (; text[n] >= '0' && text[n] <= '9' && n < 7; n++)
                whole = whole * 10 + (uint64_t)(text[n] - '0');
        if (!n || (text[n] && text[n] != '.') || (text[n] == '.' && !parse_fraction(text + n + 1, &fraction)))
                return false;
        uint64_t sum = whole * 1000000000 + fraction;
        if (sum > USAGE_MAX)
                return false;
        *ret_nanousd = sum;
        return true;
}

void usd_print(uint64_t nanousd, unsigned digits, char *text, size_t size)
{
        uint64_t step = 1;
        for (unsigned i = digits; i < 9; i++)
                step *= 10;
        uint64_t rounded = nanousd / step, rest = nanousd % step;
        rounded += rest * 2 > step || (rest * 2 == step && rounded % 2);
        uint64_t unit = 1000000000 / step;
        snprintf(text, size, "%" PRIu64 ".%0*" PRIu64, rounded / unit, (int)digits, rounded % unit);
}
