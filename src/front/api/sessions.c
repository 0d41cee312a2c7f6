/*
 * Sessions: a persistent sandbox with one context in it.  Sandbox and context do all the work; a session only creates
 * both together, and finds both by its id.
 */
#include "front/api/api.h"
#include "front/service/page.h"

#include <stdio.h>

struct api_session {
        struct api_session *next;
        struct service *service;
        char id[40], sandbox[40], context[40], tenant[80];
        uint64_t number;                   /* rises with each session */
        int mode;
        struct session_request given;      /* in the arena, until the context is there */
        struct arena arena;
        struct psandbox_waiter made, over;
        struct context_waiter started;
        struct http_request *request;      /* waits until the session is ready, or NULL */
};

static void session_free(struct api_session *one)
{
        for (struct api_session **at = &api_state(one->service)->sessions; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        psandbox_unwait(&one->made);
        psandbox_unwait(&one->over);
        context_unwait(&one->started);
        arena_done(&one->arena);
        free(one);
}

static struct psandbox *psandbox_of(const struct api_session *one)
{
        return psandbox_find(one->service->engine, one->sandbox, one->tenant);
}

static json_t *describe(const struct api_session *one)
{
        static const char *const modes[] = {
                [session_mode_NONE] = "none", [session_mode_FILES] = "files", [session_mode_INTERPRETER] = "interpreter"
        };
        const struct context *context = context_find(one->service->engine, one->context, one->tenant);
        const struct psandbox *psandbox = psandbox_of(one);
        json_t *json = json_pack("{s:s, s:s}", "id", one->id, "mode", modes[one->mode]);
        if (context)
                json_object_set_new(json, "context", context_describe(context));
        if (psandbox)
                json_object_set_new(json, "sandbox", psandbox_describe(psandbox));
        return json;
}

/* ---- making ---- */

static void give_up(struct api_session *one, const struct csn_error *error)
{
        struct http_request *request = one->request;
        struct psandbox *psandbox = psandbox_of(one);
        one->request = NULL;
        if (request) {
                request->gone = NULL;
                http_fail(request, error);
        }
        if (psandbox)
                psandbox_kill(psandbox);           /* and with its end the session goes */
        else
                session_free(one);
}

static void on_started(struct context_waiter *waiter, const struct csn_error *error)
{
        struct api_session *one = waiter->owner;
        struct http_request *request = one->request;
        char link[80];
        if (error) {
                give_up(one, error);
                return;
        }
        one->request = NULL;
        if (!request)
                return;
        request->gone = NULL;
        snprintf(link, sizeof link, "/v1/sessions/%s", one->id);
        http_set_header(request, "Location", link);
        http_json(request, MHD_HTTP_CREATED, describe(one));
}

static void on_over(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct api_session *one = waiter->owner;
        struct csn_error over;
        struct http_request *request = one->request;
        (void)error;
        one->request = NULL;
        if (request) {
                request->gone = NULL;
                err_set(&over, CSN_E_BUSY, 0, "the sandbox ended before the session began");
                http_fail(request, &over);
        }
        session_free(one);
}

static void on_made(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct api_session *one = waiter->owner;
        struct psandbox *psandbox = psandbox_of(one);
        struct context_request wanted = { 0 };
        struct context *context;
        struct csn_error err;
        if (error || !psandbox) {
                if (error)
                        err = *error;
                else
                        err_set(&err, CSN_E_BUSY, 0, "the sandbox ended before the session began");
                give_up(one, &err);
                return;
        }
        if (one->given.language)
                SET(&wanted, context_request, language, one->given.language);
        SET(&wanted, context_request, fresh, one->mode == session_mode_FILES);
        model_defaults(&object_context_request, &wanted);
        one->started = (struct context_waiter){ .done = on_started, .owner = one };
        if (context_open(psandbox, &wanted, &one->started, &context, &err) < 0)
                give_up(one, &err);
        else
                snprintf(one->context, sizeof one->context, "%s", context_id(context));
}

/* No other client knows the session. */
static void on_gone(struct http_request *request)
{
        struct api_session *one = request->owner;
        struct psandbox *psandbox = psandbox_of(one);
        one->request = NULL;
        if (psandbox)
                psandbox_kill(psandbox);
}

/* A session for a profile without state would be a run, so its mode is then the default: an interpreter. */
static int mode_of_profile(struct api_session *one)
{
        const struct settings *settings = one->service->settings;
        const struct sandbox_request *sandbox = &one->given.sandbox;
        struct profile profile;
        struct csn_error err;
        const char *name = HAS(sandbox, sandbox_request, profile) ? sandbox->profile : settings->engine.profile;
        bool found = profile_find(settings, name, &one->arena, &profile, &err) == 0;
        return found && profile.session != session_mode_NONE ? (int)profile.session : session_mode_INTERPRETER;
}

void api_post_session(struct http_request *request)
{
        struct service *service = service_of(request);
        struct api_state *state = api_state(service);
        struct api_session *one = mem_alloc(sizeof *one);
        struct psandbox *psandbox = NULL;
        struct http_limit limit = { 0 };
        struct csn_error err;
        *one = (struct api_session){ .next = state->sessions, .service = service, .request = request,
                                     .number = clock_number(&state->newest_session) };
        state->sessions = one;
        one->made = (struct psandbox_waiter){ .done = on_made, .owner = one };
        one->over = (struct psandbox_waiter){ .done = on_over, .owner = one };
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        if (!service_decode(request, &object_session_request, &one->arena, &one->given)) {
                session_free(one);
                return;
        }
        one->mode = HAS(&one->given, session_request, mode) ? one->given.mode : mode_of_profile(one);
        if (!HAS(&one->given.sandbox, sandbox_request, idle_ms))
                SET(&one->given.sandbox, sandbox_request, idle_ms, service->settings->sessions.idle);
        if (service_has_cpu_time(request, &limit, &err) < 0) {
                session_free(one);
                service_answer_busy(request, &limit, &err);
                return;
        }
        const struct run_quota quota = service_quota(request);
        int rc = one->mode == session_mode_NONE
                ? err_field(&err, "/mode", "without anything that lasts it is a run: POST /v1/runs")
                : service_check_tools(request, one->given.sandbox.profile, &one->given.sandbox.tools, &err) < 0
                ? -err.code
                : psandbox_open(service->engine, &one->given.sandbox, one->tenant, &quota, &psandbox, &err);
        if (rc < 0) {
                session_free(one);
                http_fail(request, &err);
                return;
        }
        snprintf(one->sandbox, sizeof one->sandbox, "%s", psandbox_id(psandbox));
        snprintf(one->id, sizeof one->id, "ses_%s", psandbox_id(psandbox) + strlen("sbx_"));
        request->owner = one;
        request->gone = on_gone;
        psandbox_wait(psandbox, PSANDBOX_WANTS_READY, &one->made);
        psandbox_wait(psandbox, PSANDBOX_WANTS_OVER, &one->over);
}

/* ---- the others ---- */

static struct api_session *find_by_id(struct http_request *request, const char *id)
{
        struct csn_error err;
        for (struct api_session *one = api_state(service_of(request))->sessions; one; one = one->next)
                if (strcmp(one->id, id) == 0 && strcmp(one->tenant, request->tenant) == 0 && psandbox_of(one))
                        return one;
        err_field(&err, "", "there is no session %.60s, or it has ended", id);
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
        return NULL;
}

static struct api_session *find(struct http_request *request)
{
        return find_by_id(request, http_part(request, 0));
}

struct psandbox *api_session_psandbox(struct http_request *request, const char *id, int *ret_mode)
{
        const struct api_session *one = find_by_id(request, id);
        if (one)
                *ret_mode = one->mode;
        return one ? psandbox_of(one) : NULL;
}

void api_list_sessions(struct http_request *request)
{
        struct service_page page;
        if (!service_page_begin(request, SERVICE_PAGE_MAX, "sessions", &page))
                return;
        for (const struct api_session *one = api_state(service_of(request))->sessions; one &&
             !page.more; one = one->next)
                if (strcmp(one->tenant, request->tenant) == 0 && psandbox_of(one) && service_page_has(&page,
                                                                                                      one->number, 0))
                        service_page_add(&page, describe(one));
        service_page_answer(request, &page);
}

void api_get_session(struct http_request *request)
{
        const struct api_session *one = find(request);
        if (one)
                http_json(request, MHD_HTTP_OK, describe(one));
}

void api_delete_session(struct http_request *request)
{
        struct api_session *one = find(request);
        if (!one)
                return;
        psandbox_kill(psandbox_of(one));
        http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

void api_post_session_run(struct http_request *request)
{
        const struct api_session *one = find(request);
        if (one)
                api_post_run_in(request, one->context);
}

void api_sessions_close(struct service *service)
{
        for (struct api_session *one = api_state(service)->sessions, *next; one; one = next) {
                next = one->next;
                if (one->request)
                        one->request->gone = NULL;
                session_free(one);
        }
}
