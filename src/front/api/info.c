/* What needs no sandbox: checks, profiles, policies, languages, health. */
#include "front/api/api.h"
#include "front/views/log_reader.h"

#include <ctype.h>
#include <stdio.h>

#include "config.h"

/* ---- POST /v1/check ---- */

struct api_check {
        struct source_check source_check;
        struct http_request *request;      /* NULL: it has gone */
        char tenant[80];
};

static void api_check_free(struct api_check *one)
{
        source_check_done(&one->source_check);
        free(one);
}

static void on_checked(struct source_check *source_check)
{
        struct api_check *one = source_check->owner;
        struct csn_error err;
        const struct check_result *result = &source_check->check.result;
        if (one->request) {
                one->request->gone = NULL;
                if (policy_trouble(result, &err) < 0)
                        http_fail(one->request, &err);
                else
                        http_json(one->request, MHD_HTTP_OK, model_encode(&object_check_result, result));
        }
        api_check_free(one);
}

static void on_check_gone(struct http_request *request)
{
        struct api_check *one = request->owner;
        one->request = NULL;
        source_check_cancel(&one->source_check);
}

void api_check(struct http_request *request)
{
        struct csn_error err;
        struct service *service = service_of(request);
        struct api_check *one = mem_alloc(sizeof *one);
        struct check *check = &one->source_check.check;
        *one = (struct api_check){ .source_check = { .done = on_checked, .owner = one }, .request = request };
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        one->source_check.run_owner = one->tenant;
        if (!service_decode(request, &object_check_request, &check->arena, &check->request)) {
                api_check_free(one);
                return;
        }
        if (source_check_find_language(service->engine, &one->source_check, &err) < 0) {
                api_check_free(one);
                http_fail(request, &err);
                return;
        }
        request->owner = one;
        request->gone = on_check_gone;
        source_check_start(service->engine, &one->source_check);
}

/* ---- lists ---- */

static void answer_list(struct http_request *request, const char *name, json_t *list)
{
        http_json(request, MHD_HTTP_OK, json_pack("{s:o}", name, list));
}

static void nothing_of_that_name(struct http_request *request, const struct csn_error *error)
{
        http_problem(request, error->code == CSN_E_INPUT ? MHD_HTTP_NOT_FOUND : MHD_HTTP_INTERNAL_SERVER_ERROR, error);
}

void api_profiles(struct http_request *request)
{
        struct csn_error err;
        json_t *list = front_profiles(service_of(request)->settings, &err);
        if (list)
                answer_list(request, "profiles", list);
        else
                http_fail(request, &err);
}

void api_profile(struct http_request *request)
{
        struct csn_error err;
        struct profile profile;
        struct run_request whole;
        if (front_profile(service_of(request)->settings, http_part(request, 0), &request->arena, &profile, &whole,
                          &err) < 0)
                nothing_of_that_name(request, &err);
        else
                http_json(request, MHD_HTTP_OK, model_encode(&object_run_request, &whole));
}

void api_policies(struct http_request *request)
{
        struct csn_error err;
        struct policies *policies;
        if (front_load_policies(service_of(request)->settings, &policies, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        answer_list(request, "policies", front_policies(policies));
        policies_free(policies);
}

void api_policy(struct http_request *request)
{
        struct csn_error err;
        struct policies *policies;
        const struct policy *policy;
        if (front_load_policies(service_of(request)->settings, &policies, &err) < 0) {
                http_fail(request, &err);
                return;
        }
        if (policies_find(policies, http_part(request, 0), &policy, &err) < 0)
                nothing_of_that_name(request, &err);
        else
                http_json(request, MHD_HTTP_OK, policy_describe(policy));
        policies_free(policies);
}

void api_languages(struct http_request *request)
{
        json_t *list = json_array();
        for (size_t i = 0; lang_at(i); i++) {
                const struct language *language = lang_at(i);
                json_t *aliases = json_array();
                for (const char *const *alias = language->aliases; alias && *alias; alias++)
                        json_array_append_new(aliases, json_string(*alias));
                json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", language->name, "title", language->title, "aliases", aliases));
        }
        for (const struct language *added = engine_languages(service_of(request)->engine); added; added = added->next)
                json_array_append_new(list, json_pack("{s:s, s:s, s:[]}", "name", added->name, "title", added->title, "aliases"));
        answer_list(request, "languages", list);
}

/* ---- the log ---- */

#define LOGS_TEXT_MAX (64 * MIB)

static int take_lines(const struct http_request *request, struct logs_filter *filter, size_t *n, struct csn_error *err)
{
        const char *lines = http_query(request, "n"), *level = http_query(request, "level");
        char *end = NULL;
        unsigned long number = lines && isdigit((unsigned char)lines[0]) ? strtoul(lines, &end, 10) : 0;
        *filter = (struct logs_filter){ .run = http_query(request, "run"), .request = http_query(request, "request"), .trace = http_query(request, "trace"),
                                        .owner = http_query(request, "owner"), .level = LOG_DEBUG };
        *n = lines ? number : LOGS_DEFAULT;
        if (lines && (!end || *end || number < 1 || number > LOGS_LIST_MAX))
                return err_field(err, "n", "n is \"%.40s\"; it has to be a number from 1 to %d", lines, LOGS_LIST_MAX);
        return level ? logs_level(level, "level", &filter->level, err) : 0;
}

void api_logs(struct http_request *request)
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
        http_answer(request, MHD_HTTP_OK, "application/x-ndjson", lines.bytes ? lines.bytes : mem_copy("", 0), lines.len);
}

/* ---- health ---- */

void api_health(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK, json_pack("{s:s, s:s}", "status", "ok", "version", VERSION));
}

void api_metrics(struct http_request *request)
{
        const struct service *service = service_of(request);
        struct buf buf;
        buf_init(&buf, 4 * MIB);
        engine_metrics(service->engine, &buf);
        buf_printf(&buf, "# HELP caisson_http_answers_total Answers to HTTP requests, by the first digit of their status.\n"
                         "# TYPE caisson_http_answers_total counter\n");
        for (size_t i = 1; i < ARRAY_LEN(service->answers); i++)
                buf_printf(&buf, "caisson_http_answers_total{status=\"%zuxx\"} %llu\n", i,
                           (unsigned long long)service->answers[i]);
        buf_printf(&buf, "# HELP caisson_http_connections Connections that are open.\n# TYPE caisson_http_connections gauge\n"
                         "caisson_http_connections %zu\n", (service->http ? http_connections(service->http)
                                 : 0) + (service->local ? http_connections(service->local) : 0));
        trace_metrics(service, &buf);
        buf_printf(&buf, "# HELP caisson_build_info The version of this program.\n# TYPE caisson_build_info gauge\n"
                         "caisson_build_info{version=\"%s\"} 1\n", VERSION);
        http_answer(request, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", buf.bytes, buf.len);
}
