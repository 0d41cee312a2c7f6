/* Lists of runs: from this daemon's memory, and from the audit. */
#include "front/api/api.h"

#include "front/service/page.h"
#include "front/service/run.h"

#include <stdio.h>

/*
 * The order of a list with the audit: unfinished runs come before rows of the audit, so the numbers of the former are
 * above all numbers of rows.
 */
#define GOES_ON (1ULL << 62)
#define HISTORY_ROWS_MAX 200               /* rows of the audit of a page: more would hold up the loop */

/* The filter of a list.  A text of NULL matches all. */
struct filter {
        const char *tenant, *language, *profile, *key;
        int status;                        /* enum status; -1: all */
        bool is_running;                   /* only unfinished runs */
};

static void set_text(json_t *json, const char *name, const char *text)
{
        if (text && text[0])
                json_object_set_new(json, name, json_string(text));
}

static json_t *member(const char *id, const char *state, int64_t created_ms, int64_t age_ms)
{
        char link[80], created[40];
        snprintf(link, sizeof link, "/v1/runs/%s", id);
        time_print(created_ms, created, sizeof created);
        return json_pack("{s:s, s:s, s:s, s:I, s:s}", "id", id, "state", state, "url", link, "age_ms",
                (json_int_t)(age_ms > 0 ? age_ms : 0), "created_at", created);
}

/* The request of an unfinished run has no language or profile before its preparation. */
static const char *language_of(const struct service_run *one)
{
        const char *given = one->run ? run_request(one->run)->language : one->language;
        return given ? given : "";
}

static const char *profile_of(const struct service_run *one)
{
        const char *given = one->run ? run_request(one->run)->profile : one->profile;
        return given ? given : "";
}

json_t *api_run_state(const struct service_run *one)
{
        json_t *json = member(one->id, one->run ? run_state_name(one->run) : "over", one->created_ms,
                (int64_t)((clock_us() - one->created_us) / 1000));
        set_text(json, "language", language_of(one));
        set_text(json, "profile", profile_of(one));
        set_text(json, "key_id", one->key);
        set_text(json, "tenant", one->tenant);
        if (one->run)
                return json;
        set_text(json, "status", status_name(one->status));
        json_object_set_new(json, "total_ms", json_real(one->total_ms));
        return json;
}

static json_t *row_state(const struct store_run *row, int64_t now_ms)
{
        json_t *json = member(row->id, "over", row->started_ms, now_ms - row->started_ms);
        set_text(json, "language", row->language);
        set_text(json, "profile", row->profile);
        set_text(json, "key_id", row->key);
        set_text(json, "tenant", row->tenant);
        set_text(json, "status", status_name(row->status));
        if (row->exit_code >= 0)
                json_object_set_new(json, "exit_code", json_integer(row->exit_code));
        json_object_set_new(json, "total_ms", json_real((double)(row->finished_ms - row->started_ms)));
        json_object_set_new(json, "cpu_ms", json_real((double)row->cpu_ms));
        json_object_set_new(json, "memory_peak_bytes", json_integer((json_int_t)row->memory_peak_bytes));
        return json;
}

/* ---- filters of a request ---- */

static int take_status(const char *text, struct filter *ret, struct csn_error *err)
{
        ret->status = -1;
        if (!text)
                return 0;
        ret->is_running = strcmp(text, "running") == 0;
        if (ret->is_running)
                return 0;
        for (size_t i = 0; i < choices_status.n; i++)
                if (strcmp(choices_status.values[i].text, text) == 0)
                        ret->status = (int)i;
        return ret->status >= 0 ? 0
                                : err_field(err, "status",
                                          "status is \"%.40s\"; it has to be running, or a status of records such as completed, failed or timeout",
                                          text);
}

static bool fits(const char *wanted, const char *value)
{
        return !wanted || strcmp(wanted, value) == 0;
}

static bool has(const struct filter *filter, const struct service_run *one)
{
        return fits(filter->tenant, one->tenant) && fits(filter->key, one->key) &&
                fits(filter->language, language_of(one)) && fits(filter->profile, profile_of(one)) &&
                (!filter->is_running || one->run) && (filter->status < 0 || filter->status == one->status);
}

/* ---- the lists ---- */

static void add_kept(const struct service *service, const struct filter *filter, struct service_page *page)
{
        for (const struct service_run *one = service->runs; one && !page->more; one = one->next)
                if (one->watched && has(filter, one) && service_page_has(page, one->number, 0))
                        service_page_add(page, api_run_state(one));
}

static int add_rows(struct http_request *request, const struct filter *filter, struct service_page *page,
        struct csn_error *err)
{
        const struct runs_search search = { .tenant = filter->tenant,
                .key = filter->key,
                .language = filter->language,
                .profile = filter->profile,
                .status = filter->status,
                .below = (int64_t)min_u64(page->below, GOES_ON),
                .n = (size_t)min_u64(page->most - page->n, HISTORY_ROWS_MAX) };
        struct store_run *rows;
        size_t n;
        int64_t next, now_ms = time_now_ms();
        if (runs_search(service_of(request)->store, &search, &request->arena, &rows, &n, &next, err) < 0)
                return -err->code;
        for (size_t i = 0; i < n; i++)
                service_page_add(page, row_state(&rows[i], now_ms));
        page->more = next > 0;
        page->last = (uint64_t)next;
        page->last_second = 0;
        return 0;
}

static int add_history(struct http_request *request, const struct filter *filter, struct service_page *page,
        struct csn_error *err)
{
        const struct service *service = service_of(request);
        for (const struct service_run *one = service->runs; one && !page->more; one = one->next)
                if (one->run && has(filter, one) && service_page_has(page, GOES_ON + one->number, 0))
                        service_page_add(page, api_run_state(one));
        if (page->more || filter->is_running || !service->store)
                return 0;
        if (page->n == page->most)
                return page->more = true, 0;
        return add_rows(request, filter, page, err);
}

void api_list_runs(struct http_request *request)
{
        const char *history = http_query(request, "history");
        struct filter filter = { .language = http_query(request, "language"),
                .profile = http_query(request, "profile"),
                .key = http_query(request, "key") };
        struct service_page page;
        struct csn_error err;
        if (take_status(http_query(request, "status"), &filter, &err) < 0 ||
                service_asked_tenant(request, &filter.tenant, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        if (!service_page_begin(request, SERVICE_PAGE_MAX, "runs", &page))
                return;
        if (history && strcmp(history, "true") == 0) {
                if (add_history(request, &filter, &page, &err) < 0) {
                        service_page_done(&page);
                        http_fail(request, &err);
                        return;
                }
        } else {
                add_kept(service_of(request), &filter, &page);
        }
        service_page_answer(request, &page);
}
