/*
 * GET /v1/metrics/series: figures of the last hour, in steps of ten seconds.
 *
 * A timer takes a sample at each full step of the clock.  The samples are a ring in the state of the front, so the
 * memory is constant, and a restart of the daemon begins anew.
 */
#include "front/watch/watch.h"

#include "engine/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TEXT_MAX (1 * MIB)

static const struct {
        const char *name;
        int digits;                        /* behind the point */
} series[SERIES_N] = {
        [SERIES_RUNS] = { "runs_per_s", 3 },
        [SERIES_LATENCY_P50] = { "latency_p50_ms", 3 },
        [SERIES_LATENCY_P99] = { "latency_p99_ms", 3 },
        [SERIES_QUEUE_DEPTH] = { "queue_depth", 0 },
        [SERIES_RUNNING] = { "running", 0 },
        [SERIES_POOL_READY] = { "pool_ready", 0 },
        [SERIES_MEMORY] = { "memory_bytes", 0 },
        [SERIES_DENIALS] = { "denials_per_s", 3 },
        [SERIES_ERRORS] = { "errors_per_s", 3 },
        [SERIES_FAILURES] = { "failures_per_s", 3 },
        [SERIES_CPU] = { "cpu_cores", 3 },
        [SERIES_SANDBOXES] = { "sandboxes", 0 },
        [SERIES_CONTEXTS] = { "contexts", 0 },
        [SERIES_REQUESTS] = { "http_requests_per_s", 3 },
        [SERIES_CONNECTIONS] = { "http_connections", 0 },
};

/* ---- samples ---- */

/* A choice of SERIES_LATENCIES_MAX among all of the step, each with the same probability (reservoir, Vitter 1985). */
static void count_latency(struct watch_samples *samples, double total_ms)
{
        uint64_t at = samples->seen++;
        if (at >= SERIES_LATENCIES_MAX)
                at = (uint64_t)random() % samples->seen;
        if (at < SERIES_LATENCIES_MAX)
                samples->latencies[at] = (float)total_ms;
}

void watch_count_run(struct watch_samples *samples, const struct run_result *result)
{
        samples->runs++;
        if (result->status == status_ENGINE_ERROR || result->status == status_CAPACITY ||
                result->status == status_ISOLATION_UNAVAILABLE)
                samples->errors++;
        else if (result->status != status_COMPLETED && result->status != status_CANCELLED)
                samples->failures++;
        if (HAS(result, run_result, boundary))
                count_latency(samples, result->timings.total_ms);
}

static int compare(const void *first, const void *second)
{
        float a = *(const float *)first, b = *(const float *)second;
        return a < b ? -1 : a > b;
}

/* Of sorted values, the smallest one with at least this part of all values at or below it. */
static double quantile(const float *values, size_t n, double part)
{
        return n ? (double)values[(size_t)ceil(part * (double)n) - 1] : (double)NAN;
}

static uint64_t answers_of(const struct service *service)
{
        uint64_t sum = 0;
        for (size_t i = 0; i < ARRAY_LEN(service->answers); i++)
                sum += service->answers[i];
        return sum;
}

static void take_sums(struct watch_samples *samples, const struct service *service, const struct engine_gauges *gauges)
{
        samples->before.denied = gauges->denied;
        samples->before.cpu_seconds = gauges->cpu_seconds;
        samples->before.answers = answers_of(service);
        samples->before.us = clock_us();
        samples->runs = samples->errors = samples->failures = samples->seen = 0;
}

static void take_sample(struct watch_samples *samples, const struct service *service)
{
        const struct engine_gauges gauges = engine_gauges(service->engine);
        const struct engine_load load = engine_load(service->engine);
        size_t n = (size_t)min_u64(samples->seen, SERIES_LATENCIES_MAX);
        double *values = samples->values[samples->at];
        double seconds = (double)(clock_us() - samples->before.us) / 1e6;
        qsort(samples->latencies, n, sizeof samples->latencies[0], compare);
        values[SERIES_RUNS] = ((double)samples->runs / seconds);
        values[SERIES_LATENCY_P50] = quantile(samples->latencies, n, 0.5);
        values[SERIES_LATENCY_P99] = quantile(samples->latencies, n, 0.99);
        values[SERIES_QUEUE_DEPTH] = (double)load.queued;
        values[SERIES_RUNNING] = (double)load.running;
        values[SERIES_POOL_READY] = (double)gauges.pool_ready;
        values[SERIES_MEMORY] = (double)gauges.pool_memory_bytes;
        values[SERIES_DENIALS] = ((double)(gauges.denied - samples->before.denied) / seconds);
        values[SERIES_ERRORS] = ((double)samples->errors / seconds);
        values[SERIES_FAILURES] = ((double)samples->failures / seconds);
        values[SERIES_CPU] = (gauges.cpu_seconds - samples->before.cpu_seconds) / seconds;
        values[SERIES_SANDBOXES] = (double)gauges.sandboxes;
        values[SERIES_CONTEXTS] = (double)gauges.contexts;
        values[SERIES_REQUESTS] = ((double)(answers_of(service) - samples->before.answers) / seconds);
        values[SERIES_CONNECTIONS] = (double)((service->http ? http_connections(service->http) : 0) +
                                              (service->local ? http_connections(service->local) : 0));
        take_sums(samples, service, &gauges);
}

/* At the next full step of the clock of the day. */
static void set_timer(const struct service *service, struct watch_samples *samples)
{
        uint64_t into_ms = (uint64_t)time_now_ms() % (SERIES_STEP_S * 1000);
        loop_timer(service->loop, &samples->timer, (SERIES_STEP_S * 1000 - into_ms) * 1000);
}

/* A clock that was set back makes no second sample of a step. */
static void on_step(struct timer *timer)
{
        const struct service *service = timer->owner;
        struct watch_samples *samples = &watch_state(service)->samples;
        int64_t now_s = time_now_ms() / 1000;
        now_s -= now_s % SERIES_STEP_S;
        set_timer(service, samples);
        if (now_s <= samples->newest_s || clock_us() == samples->before.us)
                return;
        take_sample(samples, service);
        samples->times[samples->at] = samples->newest_s = now_s;
        samples->at = (samples->at + 1) % SERIES_STEPS;
        samples->n += samples->n < SERIES_STEPS;
}

void watch_open_series(struct service *service)
{
        struct watch_samples *samples = &watch_state(service)->samples;
        const struct engine_gauges gauges = engine_gauges(service->engine);
        samples->timer = (struct timer){ .fired = on_step, .owner = service };
        take_sums(samples, service, &gauges);
        set_timer(service, samples);
}

void watch_close_series(struct service *service)
{
        loop_untimer(service->loop, &watch_state(service)->samples.timer);
}

/* ---- the request ---- */

/* "2026-11-30T10:00:00Z", with a fraction or an offset: seconds since 1970.  False: no such time. */
static bool parse_time(const char *text, int64_t *ret_s)
{
        struct tm tm = { 0 };
        const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        int hours = 0, minutes = 0, used = 0;
        if (!end)
                return false;
        if (*end == '.')
                end += 1 + strspn(end + 1, "0123456789");
        *ret_s = timegm(&tm);
        if (strcmp(end, "Z") == 0 || strcmp(end, "z") == 0)
                return true;
        if ((*end != '+' && *end != '-') || sscanf(end + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 ||
                end[1 + used] || hours < 0 || hours > 23 || minutes < 0 || minutes > 59)
                return false;
        *ret_s += (*end == '+' ? -1 : 1) * (int64_t)(hours * 3600 + minutes * 60);
        return true;
}

static int take_since(const struct http_request *request, int64_t *ret_s, struct csn_error *err)
{
        const char *since = http_query(request, "since");
        uint64_t ms;
        *ret_s = 0;
        if (!since || parse_time(since, ret_s))
                return 0;
        if (!duration_parse(since, &ms))
                return err_field(err, "since",
                        "since is \"%.40s\"; it has to be a time such as 2026-11-30T10:00:00Z, or a time before now such as 10min",
                        since);
        *ret_s = time_now_ms() / 1000 - (int64_t)min_u64(ms / 1000, INT32_MAX);
        return 0;
}

static int take_names(const struct http_request *request, bool wanted[static SERIES_N], struct csn_error *err)
{
        const char *text = http_query(request, "name");
        for (size_t i = 0; i < SERIES_N; i++)
                wanted[i] = !text;
        for (bool more = text; more; text++) {
                size_t len = strcspn(text, ","), i = 0;
                while (i < SERIES_N && (strlen(series[i].name) != len || memcmp(series[i].name, text, len) != 0))
                        i++;
                if (i == SERIES_N)
                        return err_field(err, "name",
                                "name has \"%.*s\", which is no series; without name the answer has all series", (int)min_u64(len, 40),
                                text);
                wanted[i] = true;
                text += len;
                more = *text == ',';
        }
        return 0;
}

static void add_series(struct buf *buf, const struct watch_samples *samples, size_t which, int64_t since_s)
{
        bool begun = false;
        size_t first = (samples->at + SERIES_STEPS - samples->n) % SERIES_STEPS;
        for (size_t i = 0; i < samples->n; i++) {
                size_t at = (first + i) % SERIES_STEPS;
                double value = samples->values[at][which];
                if (samples->times[at] <= since_s)
                        continue;
                buf_printf(buf, "%s[%" PRId64 ",", begun ? "," : "", samples->times[at]);
                if (isnan(value))
                        buf_printf(buf, "null]");
                else
                        buf_printf(buf, "%.*f]", series[which].digits, value);
                begun = true;
        }
}

void watch_get_series(struct http_request *request)
{
        const struct watch_samples *samples = &watch_state(service_of(request))->samples;
        bool wanted[SERIES_N], begun = false;
        struct csn_error err;
        struct buf buf;
        char from[40];
        int64_t since_s;
        if (take_names(request, wanted, &err) < 0 || take_since(request, &since_s, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        int64_t oldest_s = samples->n ? samples->times[(samples->at + SERIES_STEPS - samples->n) % SERIES_STEPS] : 0;
        int64_t from_s = oldest_s > since_s ? oldest_s : since_s;
        time_print((from_s ? from_s : time_now_ms() / 1000) * 1000, from, sizeof from);
        buf_init(&buf, TEXT_MAX);
        buf_printf(&buf, "{\"step_s\":%d,\"from\":\"%s\",\"series\":{", SERIES_STEP_S, from);
        for (size_t i = 0; i < SERIES_N; i++) {
                if (!wanted[i])
                        continue;
                buf_printf(&buf, "%s\"%s\":[", begun ? "," : "", series[i].name);
                add_series(&buf, samples, i, since_s);
                buf_printf(&buf, "]");
                begun = true;
        }
        buf_printf(&buf, "}}");
        http_answer(request, MHD_HTTP_OK, "application/json", buf.bytes, buf.len);
}
