/* Requests without a sandbox: checks, profiles, policies, languages. */
#include "front/api/api.h"

#include <stdio.h>

/* ---- POST /v1/check ---- */

struct api_check {
        struct source_check source_check;
        struct http_request *request;      /* NULL: the client has gone */
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
        if (source_check_prepare(service->engine, &one->source_check, &err) < 0) {
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
        bool missing = error->code == CSN_E_INPUT || error->code == CSN_E_PROFILE;
        http_problem(request, missing ? MHD_HTTP_NOT_FOUND : MHD_HTTP_INTERNAL_SERVER_ERROR, error);
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
                json_array_append_new(list,
                        json_pack("{s:s, s:s, s:o}", "name", language->name, "title", language->title, "aliases",
                                aliases));
        }
        for (const struct language *added = engine_languages(service_of(request)->engine); added; added = added->next)
                json_array_append_new(list,
                        json_pack("{s:s, s:s, s:[]}", "name", added->name, "title", added->title, "aliases"));
        answer_list(request, "languages", list);
}
