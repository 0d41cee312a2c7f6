/*
 * Spans for collectors: a span for each request, below the request a span for each run, below the run a span for each
 * stage.  Names and keys are OpenTelemetry's (semantic conventions); others begin with "caisson.".  No span has code,
 * output or keys.
 */
#include "front/service/service.h"

#include <stdio.h>

#define TEXT_MAX 500                       /* bytes of a value; paths and ids are the client's to choose */

/* Texts from outside are cut, and are UTF-8 afterwards. */
static void add_text(json_t *attributes, const char *key, const char *text)
{
        struct arena arena = { 0 };
        size_t len;
        if (!text || !text[0])
                return;
        const char *clean = model_utf8(&arena, text, min_u64(strlen(text), TEXT_MAX), &len);
        json_object_set_new(attributes, key, json_stringn(clean, len));
        arena_done(&arena);
}

static void add_number(json_t *attributes, const char *key, uint64_t number)
{
        json_object_set_new(attributes, key, json_integer((json_int_t)number));
}

void trace_admitted(const struct service *service, struct http_request *request)
{
        /* A poll of /metrics each second needs no trace; a client asks for a trace by its header traceparent. */
        if (service->otlp && !request->trace.parent[0] && strncmp(request->path, "/v1/", 4) == 0)
                request->trace.sampled = true;
}

void trace_request(const struct service *service, const struct http_request *request)
{
        char name[100], status[12];
        if (!service->otlp || !request->trace.sampled)
                return;
        json_t *attributes = json_object();
        unsigned answer = request->response ? request->status : 0;
        snprintf(name, sizeof name, "%s%s%s", request->method, request->route ? " " : "",
                request->route ? request->route->path : "");
        snprintf(status, sizeof status, "%u", answer);
        add_text(attributes, "http.request.method", request->method);
        add_text(attributes, "http.route", request->route ? request->route->path : "");
        add_text(attributes, "url.path", request->path);
        add_text(attributes, "url.scheme", "http");
        add_text(attributes, "caisson.request.id", request->id);
        add_text(attributes, "caisson.tenant", request->tenant);
        if (answer)
                add_number(attributes, "http.response.status_code", answer);
        /* In the span of a server only the server's own fault is an error. */
        const char *error = !answer ? "client_gone" : answer >= 500 ? status : NULL;
        add_text(attributes, "error.type", error);
        otlp_add(service->otlp, &(struct span){ .trace = &request->trace, .name = name, .kind = SPAN_SERVER,
                                                .begun_us = request->began_us,
                                            .ended_us = clock_us(), .attributes = attributes, .error = error });
}

void trace_run(const struct service *service, const struct trace *trace, struct run *run,
               const struct run_result *result)
{
        struct run_stage stages[RUN_STAGES_MAX];
        const struct run_request *request = run_request(run);
        if (!service->otlp || !trace->sampled)
                return;
        json_t *attributes = json_object();
        const char *status = status_name(result->status);
        size_t n = run_stages(run, stages);
        add_text(attributes, "caisson.run.id", result->id);
        add_text(attributes, "caisson.run.status", status);
        add_text(attributes, "caisson.language", request->language);
        add_text(attributes, "caisson.profile", request->profile);
        add_text(attributes, "caisson.policy", request->policy);
        add_text(attributes, "caisson.task_id", request->task_id);
        if (HAS(result, run_result, exit_code))
                json_object_set_new(attributes, "process.exit.code", json_integer(result->exit_code));
        json_object_set_new(attributes, "caisson.cpu_ms", json_real(result->usage.cpu_ms));
        add_number(attributes, "caisson.memory_peak_bytes", result->usage.memory_peak_bytes);
        if (result->status != status_COMPLETED)
                add_text(attributes, "error.type", status);
        otlp_add(service->otlp,
                &(struct span){ .trace = trace,
                        .name = "execute",
                        .kind = SPAN_INTERNAL,
                        .begun_us = run_created_us(run),
                        .ended_us = clock_us(),
                        .attributes = attributes,
                        .error = result->status == status_ENGINE_ERROR ? status : NULL });
        for (size_t i = 0; i < n; i++) {
                struct trace below;
                trace_below(trace, &below);
                otlp_add(service->otlp, &(struct span){ .trace = &below, .name = stages[i].name,
                                                        .kind = SPAN_INTERNAL, .begun_us = stages[i].begun_us,
                                                    .ended_us = stages[i].ended_us });
        }
}

void trace_metrics(const struct service *service, struct buf *buf)
{
        struct otlp_counts counts = otlp_counts(service->otlp);
        const struct { const char *name, *type, *help; uint64_t value;
        } rows[] = {
                { "spans_sent_total", "counter", "Spans that the collector took.", counts.sent },
                { "spans_dropped_total", "counter", "Spans that it did not take, or that there was no room for.",
                        counts.dropped },
                { "spans_queued", "gauge", "Spans that wait for it.", counts.queued },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                buf_printf(buf, "# HELP caisson_%s %s\n# TYPE caisson_%s %s\ncaisson_%s %llu\n", rows[i].name,
                        rows[i].help, rows[i].name, rows[i].type, rows[i].name, (unsigned long long)rows[i].value);
}
