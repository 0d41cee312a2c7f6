/* The front of the daemon's operation: health, metrics, the log, and the description of all fronts. */
#include "front/api/api.h"
#include "front/views/log_reader.h"

#include <ctype.h>
#include <stdio.h>

#include "config.h"

/* ---- the log ---- */

#define LOGS_TEXT_MAX (64 * MIB)

static int take_lines(const struct http_request *request, struct logs_filter *filter, size_t *n, struct csn_error *err)
{
        const char *lines = http_query(request, "n"), *level = http_query(request, "level");
        char *end = NULL;
        unsigned long number = lines && isdigit((unsigned char)lines[0]) ? strtoul(lines, &end, 10) : 0;
        *filter = (struct logs_filter){ .run = http_query(request, "run"),
                .request = http_query(request, "request"),
                .trace = http_query(request, "trace"),
                .owner = http_query(request, "owner"),
                .level = LOG_DEBUG };
        *n = lines ? number : LOGS_DEFAULT;
        if (lines && (!end || *end || number < 1 || number > LOGS_LIST_MAX))
                return err_field(err, "n", "n is \"%.40s\"; it has to be a number from 1 to %d", lines, LOGS_LIST_MAX);
        return level ? logs_level(level, "level", &filter->level, err) : 0;
}

static void api_logs(struct http_request *request)
{
        struct csn_error err;
        struct logs_filter filter;
        struct buf lines;
        size_t n;
        buf_init(&lines, LOGS_TEXT_MAX);
        int rc = take_lines(request, &filter, &n, &err);
        rc = rc < 0 ? rc : logs_read(logs_path(service_of(request)->settings, &request->arena), &filter, n, &lines,
                                     NULL, &err);
        if (rc < 0) {
                err.field[0] ? http_fail(request, &err) : http_problem(request, MHD_HTTP_NOT_FOUND, &err);
                buf_done(&lines);
                return;
        }
        http_answer(request, MHD_HTTP_OK, "application/x-ndjson", lines.bytes ? lines.bytes : mem_copy("", 0),
                lines.len);
}

/* ---- health ---- */

static void api_health(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK, json_pack("{s:s, s:s}", "status", "ok", "version", VERSION));
}

/* Of all holders together: a row for each tenant would have no ceiling. */
static void add_shares(const struct service *service, struct buf *buf)
{
        static const char *const reasons[HTTP_CLOSED_N] = { [HTTP_CLOSED_HEAD] = "head",
                [HTTP_CLOSED_IDLE] = "idle",
                [HTTP_CLOSED_RATE] = "rate",
                [HTTP_CLOSED_FULL] = "full" };
        buf_printf(buf, "# HELP caisson_share_used What clients hold of a bounded resource, all together.\n"
                        "# TYPE caisson_share_used gauge\n");
        for (size_t i = 0; i < SHARES_N; i++)
                buf_printf(buf, "caisson_share_used{resource=\"%s\"} %llu\n", share_name((enum share)i),
                        (unsigned long long)shares_used(service->shares, (enum share)i));
        buf_printf(buf, "# HELP caisson_share_total The most of it.\n# TYPE caisson_share_total gauge\n");
        for (size_t i = 0; i < SHARES_N; i++)
                buf_printf(buf, "caisson_share_total{resource=\"%s\"} %llu\n", share_name((enum share)i),
                        (unsigned long long)shares_total(service->shares, (enum share)i));
        buf_printf(buf,
                "# HELP caisson_http_closed_total Connections that were closed: a slow head, a slow body, an idle one, or for "
                "another client.\n# TYPE caisson_http_closed_total counter\n");
        for (size_t i = 0; i < HTTP_CLOSED_N; i++) {
                unsigned long long network = service->http ? http_closed(service->http, (enum http_closed)i) : 0,
                                   local = service->local ? http_closed(service->local, (enum http_closed)i) : 0;
                buf_printf(buf, "caisson_http_closed_total{reason=\"%s\"} %llu\n", reasons[i], network + local);
        }
}

static void api_metrics(struct http_request *request)
{
        const struct service *service = service_of(request);
        struct buf buf;
        buf_init(&buf, 4 * MIB);
        engine_metrics(service->engine, &buf);
        buf_printf(&buf,
                "# HELP caisson_http_answers_total Answers to HTTP requests, by the first digit of their status.\n"
                "# TYPE caisson_http_answers_total counter\n");
        for (size_t i = 1; i < ARRAY_LEN(service->answers); i++)
                buf_printf(&buf, "caisson_http_answers_total{status=\"%zuxx\"} %llu\n", i,
                           (unsigned long long)service->answers[i]);
        buf_printf(&buf,
                "# HELP caisson_http_connections Connections that are open.\n# TYPE caisson_http_connections gauge\n"
                "caisson_http_connections %zu\n",
                (service->http ? http_connections(service->http) : 0) +
                        (service->local ? http_connections(service->local) : 0));
        add_shares(service, &buf);
        trace_metrics(service, &buf);
        buf_printf(&buf, "# HELP caisson_build_info The version of this program.\n# TYPE caisson_build_info gauge\n"
                         "caisson_build_info{version=\"%s\"} 1\n", VERSION);
        http_answer(request, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", buf.bytes, buf.len);
}

static void api_ready(struct http_request *request)
{
        service_answer_ready(request);
}

/* ---- the front ---- */

static const struct http_route routes[] = {
        { "GET", "/healthz", NULL, 0, BODY_NONE, api_health, "Whether the daemon answers.", NULL, &object_health },
        { "GET", "/readyz", NULL, 0, BODY_NONE, api_ready,
                "Whether it can run programs: 503, with the reason, where the last one could not begin, and while the daemon ends.",
                NULL, &object_health },
        { "GET", "/metrics", NULL, SCOPE_METRICS, BODY_NONE, api_metrics, "Counters for Prometheus.", NULL, NULL },
        { "GET", "/v1/logs", "n level run request trace owner", SCOPE_ADMIN, BODY_NONE, api_logs,
                "The last `n` lines that the daemon has logged, oldest first, of a `level` and what is worse, or about a run, a request, a trace or an owner.",
                NULL, NULL },
        { "GET", "/openapi.json", NULL, 0, BODY_NONE, api_openapi, "This description.", NULL, NULL },
        { "GET", "/docs", NULL, 0, BODY_NONE, api_docs, "A page that shows this description.", NULL, NULL },
        { "GET", "/problems", NULL, 0, BODY_NONE, api_problems,
                "A page that explains each `code` of a problem; `type` of a problem leads there.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct front_note notes[] = {
        { api_ready, "200:health", "503", NULL, NULL, NULL, NULL },
        { api_metrics, "200:text", NULL, NULL, NULL, NULL, NULL },
        { api_logs, "200:ndjson", "404", NULL, NULL, NULL, NULL },
        { api_openapi, "200:json", NULL, NULL, NULL, NULL, NULL },
        { api_docs, "200:page", NULL, NULL, NULL, "Content-Security-Policy", NULL },
        { api_problems, "200:page", NULL, NULL, NULL, "Content-Security-Policy", NULL },
        { NULL, NULL, NULL, NULL, NULL, NULL, NULL },
};

static const struct front_tag tags[] = {
        { "/", "The daemon", "Health, metrics, the log, and this description." },
        { NULL, NULL, NULL },
};

const struct front operations_front = { .name = "operations",
        .routes = routes,
        .notes = notes,
        .tags = tags,
        .state_size = sizeof(struct operations_state),
        .stop = service_ready_close,
        .close = api_close_descriptions };
