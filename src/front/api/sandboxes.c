/* Persistent sandboxes and their contexts. */
#include "front/api/api.h"
#include "front/service/page.h"

#include <stdio.h>
#include <unistd.h>

/* ---- finding ---- */

struct psandbox *api_psandbox(struct http_request *request)
{
        struct csn_error err;
        struct psandbox *psandbox = psandbox_find(service_of(request)->engine, http_part(request, 0), request->tenant);
        if (psandbox)
                return psandbox;
        err_field(&err, "", "there is no sandbox %.60s, or it has ended", http_part(request, 0));
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
        return NULL;
}

struct context *api_context(struct http_request *request)
{
        struct csn_error err;
        struct context *context = context_find(service_of(request)->engine, http_part(request, 0), request->tenant);
        if (context)
                return context;
        err_field(&err, "", "there is no context %.60s, or its sandbox has ended", http_part(request, 0));
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
        return NULL;
}

void api_conflict(struct http_request *request, const struct csn_error *error)
{
        http_problem(request, MHD_HTTP_CONFLICT, error);
}

/* ---- waiting for a sandbox ---- */

struct waiting {
        struct psandbox_waiter waiter;
        struct http_request *request;
        struct psandbox *psandbox;
        unsigned status;
        bool killing;                       /* kill the sandbox if the client goes before the answer */
};

static void answer_psandbox(struct http_request *request, unsigned status, const struct psandbox *psandbox)
{
        char link[80];
        snprintf(link, sizeof link, "/v1/sandboxes/%s", psandbox_id(psandbox));
        if (status == MHD_HTTP_CREATED)
                http_set_header(request, "Location", link);
        http_json(request, status, psandbox_describe(psandbox));
}

static void on_psandbox(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct waiting *one = waiter->owner;
        struct http_request *request = one->request;
        request->gone = NULL;
        if (error && one->status == MHD_HTTP_CREATED)
                http_fail(request, error);
        else if (error)
                api_conflict(request, error);
        else if (one->status == MHD_HTTP_NO_CONTENT)
                http_answer(request, one->status, "application/json", mem_copy("", 0), 0);
        else if (waiter->want == PSANDBOX_WANTS_STATS)
                http_json(request, one->status, psandbox_use(one->psandbox));
        else
                answer_psandbox(request, one->status, one->psandbox);
        free(one);
}

static void on_waiting_gone(struct http_request *request)
{
        struct waiting *one = request->owner;
        psandbox_unwait(&one->waiter);
        if (one->killing)
                psandbox_kill(one->psandbox);
        free(one);
}

static void answer_when(struct http_request *request, struct psandbox *psandbox, enum psandbox_want want,
        unsigned status)
{
        struct waiting *one = mem_alloc(sizeof *one);
        *one = (struct waiting){ .waiter = { .done = on_psandbox, .owner = one },
                .request = request,
                .psandbox = psandbox,
                .status = status,
                .killing = status == MHD_HTTP_CREATED };
        request->owner = one;
        request->gone = on_waiting_gone;
        psandbox_wait(psandbox, want, &one->waiter);
}

/* ---- sandboxes ---- */

void api_post_sandbox(struct http_request *request)
{
        struct sandbox_request given = { 0 };
        struct psandbox *psandbox;
        struct http_limit limit = { 0 };
        struct csn_error err;
        struct service *service = service_of(request);
        if (!service_decode(request, &object_sandbox_request, &request->arena, &given))
                return;
        const struct run_quota quota = service_quota(request);
        if (service_has_cpu_time(request, &limit, &err) < 0)
                service_answer_busy(request, &limit, &err);
        else if (service_check_tools(request, given.profile, &given.tools, &err) < 0 || psandbox_open(service->engine,
                &given, request->tenant, &quota, &psandbox, &err) < 0)
                http_fail(request, &err);
        else
                answer_when(request, psandbox, PSANDBOX_WANTS_READY, MHD_HTTP_CREATED);
}

void api_list_sandboxes(struct http_request *request)
{
        struct engine *engine = service_of(request)->engine;
        struct service_page page;
        if (!service_page_begin(request, SERVICE_PAGE_MAX, "sandboxes", &page))
                return;
        for (struct psandbox *psandbox = psandbox_next(engine, NULL, request->tenant); psandbox && !page.more;
                psandbox = psandbox_next(engine, psandbox, request->tenant))
                if (service_page_has(&page, psandbox_number(psandbox), 0))
                        service_page_add(&page, psandbox_describe(psandbox));
        service_page_answer(request, &page);
}

void api_get_sandbox(struct http_request *request)
{
        const struct psandbox *psandbox = api_psandbox(request);
        if (psandbox)
                answer_psandbox(request, MHD_HTTP_OK, psandbox);
}

void api_patch_sandbox(struct http_request *request)
{
        struct psandbox *psandbox = api_psandbox(request);
        struct sandbox_change change = { 0 };
        struct csn_error err;
        if (!psandbox || !service_decode(request, &object_sandbox_change, &request->arena, &change))
                return;
        if (psandbox_extend(psandbox, change.ttl_ms, &err) < 0)
                http_fail(request, &err);
        else
                answer_psandbox(request, MHD_HTTP_OK, psandbox);
}

void api_delete_sandbox(struct http_request *request)
{
        struct psandbox *psandbox = api_psandbox(request);
        if (!psandbox)
                return;
        answer_when(request, psandbox, PSANDBOX_WANTS_OVER, MHD_HTTP_NO_CONTENT);
        psandbox_kill(psandbox);
}

void api_pause_sandbox(struct http_request *request)
{
        struct psandbox *psandbox = api_psandbox(request);
        struct csn_error err;
        if (psandbox && psandbox_pause(psandbox, &err) < 0)
                api_conflict(request, &err);
        else if (psandbox)
                answer_when(request, psandbox, PSANDBOX_WANTS_PAUSED, MHD_HTTP_OK);
}

void api_resume_sandbox(struct http_request *request)
{
        struct psandbox *psandbox = api_psandbox(request);
        struct csn_error err;
        if (psandbox && psandbox_resume(psandbox, &err) < 0)
                api_conflict(request, &err);
        else if (psandbox)
                answer_when(request, psandbox, PSANDBOX_WANTS_READY, MHD_HTTP_OK);
}

void api_sandbox_metrics(struct http_request *request)
{
        struct psandbox *psandbox = api_psandbox(request);
        struct csn_error err;
        if (!psandbox)
                return;
        if (psandbox_state(psandbox) == PSANDBOX_MAKING) { /* there is nothing to look at, and no answer would come */
                err_set(&err, CSN_E_BUSY, 0, "the sandbox is not ready yet");
                api_conflict(request, &err);
                return;
        }
        answer_when(request, psandbox, PSANDBOX_WANTS_STATS, MHD_HTTP_OK);
        psandbox_request_stats(psandbox);
}

/* ---- contexts ---- */

struct context_waiting {
        struct context_waiter waiter;
        struct http_request *request;
        struct context *context;
        char id[40];
        unsigned status;
};

static void on_context(struct context_waiter *waiter, const struct csn_error *error)
{
        struct context_waiting *one = waiter->owner;
        struct http_request *request = one->request;
        char link[80];
        request->gone = NULL;
        snprintf(link, sizeof link, "/v1/contexts/%s", one->id);
        if (error) {
                http_fail(request, error);
        } else {
                if (one->status == MHD_HTTP_CREATED)
                        http_set_header(request, "Location", link);
                http_json(request, one->status, context_describe(one->context));
        }
        free(one);
}

static void on_context_gone(struct http_request *request)
{
        struct context_waiting *one = request->owner;
        context_unwait(&one->waiter);
        free(one);
}

static struct context_waiting *wait_for_context(struct http_request *request, unsigned status)
{
        struct context_waiting *one = mem_alloc(sizeof *one);
        *one = (struct context_waiting){
                .waiter = { .done = on_context, .owner = one }, .request = request, .status = status
        };
        return one;
}

static void is_waiting(struct context_waiting *one, struct context *context)
{
        one->context = context;
        snprintf(one->id, sizeof one->id, "%s", context_id(context));
        one->request->owner = one;
        one->request->gone = on_context_gone;
}

void api_post_context(struct http_request *request)
{
        struct psandbox *psandbox = api_psandbox(request);
        struct context_request given = { 0 };
        struct context *context;
        struct csn_error err;
        if (!psandbox || !service_decode(request, &object_context_request, &request->arena, &given))
                return;
        model_defaults(&object_context_request, &given);
        struct context_waiting *one = wait_for_context(request, MHD_HTTP_CREATED);
        if (context_open(psandbox, &given, &one->waiter, &context, &err) == 0) {
                is_waiting(one, context);
                return;
        }
        free(one);
        err.code == CSN_E_BUSY ? api_conflict(request, &err) : http_fail(request, &err);
}

void api_list_contexts(struct http_request *request)
{
        struct psandbox *psandbox = api_psandbox(request);
        struct service_page page;
        if (!psandbox || !service_page_begin(request, SERVICE_PAGE_MAX, "contexts", &page))
                return;
        for (struct context *context = context_next(psandbox, NULL); context && !page.more;
                context = context_next(psandbox, context))
                if (service_page_has(&page, context_number(context), 0))
                        service_page_add(&page, context_describe(context));
        service_page_answer(request, &page);
}

void api_get_context(struct http_request *request)
{
        const struct context *context = api_context(request);
        if (context)
                http_json(request, MHD_HTTP_OK, context_describe(context));
}

void api_delete_context(struct http_request *request)
{
        struct context *context = api_context(request);
        if (!context)
                return;
        context_close(context);
        http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
}

void api_interrupt_context(struct http_request *request)
{
        struct context *context = api_context(request);
        if (!context)
                return;
        context_interrupt(context);
        http_json(request, MHD_HTTP_OK, context_describe(context));
}

void api_restart_context(struct http_request *request)
{
        struct context *context = api_context(request);
        struct csn_error err;
        if (!context)
                return;
        struct context_waiting *one = wait_for_context(request, MHD_HTTP_OK);
        if (context_restart(context, &one->waiter, &err) == 0) {
                is_waiting(one, context);
                return;
        }
        free(one);
        api_conflict(request, &err);
}
