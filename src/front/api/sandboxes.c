/* Persistent sandboxes, and the contexts in them. */
#include "front/api/api.h"

#include <stdio.h>
#include <unistd.h>

/* ---- which one ---- */

struct cell *api_cell(struct http_request *request)
{
        struct csn_error err;
        struct cell *cell = cell_find(api_of(request)->engine, http_part(request, 0), request->tenant);
        if (cell)
                return cell;
        err_field(&err, "", "there is no sandbox %.60s, or it has ended", http_part(request, 0));
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
        return NULL;
}

struct context *api_context(struct http_request *request)
{
        struct csn_error err;
        struct context *context = context_find(api_of(request)->engine, http_part(request, 0), request->tenant);
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
        struct cell_waiter waiter;
        struct http_request *request;
        struct cell *cell;
        unsigned status;
        bool doomed;                       /* it is nobody's if the client goes before it knows of it */
};

static void answer_cell(struct http_request *request, unsigned status, const struct cell *cell)
{
        char link[80];
        snprintf(link, sizeof link, "/v1/sandboxes/%s", cell_id(cell));
        if (status == MHD_HTTP_CREATED)
                http_set_header(request, "Location", link);
        http_json(request, status, cell_describe(cell));
}

static void on_cell(struct cell_waiter *waiter, const struct csn_error *error)
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
        else if (waiter->want == CELL_WANTS_SEEN)
                http_json(request, one->status, cell_use(one->cell));
        else
                answer_cell(request, one->status, one->cell);
        free(one);
}

static void on_waiting_gone(struct http_request *request)
{
        struct waiting *one = request->owner;
        cell_unwait(&one->waiter);
        if (one->doomed)
                cell_kill(one->cell);
        free(one);
}

static void answer_when(struct http_request *request, struct cell *cell, enum cell_want want, unsigned status)
{
        struct waiting *one = mem_alloc(sizeof *one);
        *one = (struct waiting){ .waiter = { .done = on_cell, .owner = one }, .request = request, .cell = cell, .status = status,
                                 .doomed = status == MHD_HTTP_CREATED };
        request->owner = one;
        request->gone = on_waiting_gone;
        cell_wait(cell, want, &one->waiter);
}

/* ---- sandboxes ---- */

void api_post_sandbox(struct http_request *request)
{
        struct sandbox_request given = { 0 };
        struct cell *cell;
        struct http_limit limit = { 0 };
        struct csn_error err;
        struct api *api = api_of(request);
        if (!api_decode(request, &object_sandbox_request, &request->arena, &given))
                return;
        if (api_has_cpu_time(request, &limit, &err) < 0)
                api_answer_busy(request, &limit, &err);
        else if (api_check_tools(request, given.profile, &given.tools, &err) < 0 || cell_open(api->engine, &given, request->tenant, &cell, &err) < 0)
                http_fail(request, &err);
        else
                answer_when(request, cell, CELL_WANTS_READY, MHD_HTTP_CREATED);
}

void api_list_sandboxes(struct http_request *request)
{
        struct engine *engine = api_of(request)->engine;
        struct api_page page;
        if (!api_page_begin(request, API_PAGE_MAX, &page))
                return;
        for (struct cell *cell = cell_next(engine, NULL, request->tenant); cell && !page.more; cell = cell_next(engine, cell, request->tenant))
                if (api_page_has(&page, cell_number(cell), 0))
                        json_array_append_new(page.list, cell_describe(cell));
        api_page_answer(request, &page, "sandboxes");
}

void api_get_sandbox(struct http_request *request)
{
        const struct cell *cell = api_cell(request);
        if (cell)
                answer_cell(request, MHD_HTTP_OK, cell);
}

void api_patch_sandbox(struct http_request *request)
{
        struct cell *cell = api_cell(request);
        struct sandbox_change change = { 0 };
        struct csn_error err;
        if (!cell || !api_decode(request, &object_sandbox_change, &request->arena, &change))
                return;
        if (cell_extend(cell, change.ttl_ms, &err) < 0)
                http_fail(request, &err);
        else
                answer_cell(request, MHD_HTTP_OK, cell);
}

void api_delete_sandbox(struct http_request *request)
{
        struct cell *cell = api_cell(request);
        if (!cell)
                return;
        answer_when(request, cell, CELL_WANTS_OVER, MHD_HTTP_NO_CONTENT);
        cell_kill(cell);
}

void api_pause_sandbox(struct http_request *request)
{
        struct cell *cell = api_cell(request);
        struct csn_error err;
        if (cell && cell_pause(cell, &err) < 0)
                api_conflict(request, &err);
        else if (cell)
                answer_when(request, cell, CELL_WANTS_PAUSED, MHD_HTTP_OK);
}

void api_resume_sandbox(struct http_request *request)
{
        struct cell *cell = api_cell(request);
        struct csn_error err;
        if (cell && cell_resume(cell, &err) < 0)
                api_conflict(request, &err);
        else if (cell)
                answer_when(request, cell, CELL_WANTS_READY, MHD_HTTP_OK);
}

void api_sandbox_metrics(struct http_request *request)
{
        struct cell *cell = api_cell(request);
        struct csn_error err;
        if (!cell)
                return;
        if (cell_state(cell) == CELL_MAKING) {     /* there is nothing to look at, and no answer would come */
                err_set(&err, CSN_E_BUSY, 0, "the sandbox is not ready yet");
                api_conflict(request, &err);
                return;
        }
        answer_when(request, cell, CELL_WANTS_SEEN, MHD_HTTP_OK);
        cell_look(cell);
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
        *one = (struct context_waiting){ .waiter = { .done = on_context, .owner = one }, .request = request, .status = status };
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
        struct cell *cell = api_cell(request);
        struct context_request given = { 0 };
        struct context *context;
        struct csn_error err;
        if (!cell || !api_decode(request, &object_context_request, &request->arena, &given))
                return;
        model_defaults(&object_context_request, &given);
        struct context_waiting *one = wait_for_context(request, MHD_HTTP_CREATED);
        if (context_open(cell, &given, &one->waiter, &context, &err) == 0) {
                is_waiting(one, context);
                return;
        }
        free(one);
        err.code == CSN_E_BUSY ? api_conflict(request, &err) : http_fail(request, &err);
}

void api_list_contexts(struct http_request *request)
{
        struct cell *cell = api_cell(request);
        struct api_page page;
        if (!cell || !api_page_begin(request, API_PAGE_MAX, &page))
                return;
        for (struct context *context = context_next(cell, NULL); context && !page.more; context = context_next(cell, context))
                if (api_page_has(&page, context_number(context), 0))
                        json_array_append_new(page.list, context_describe(context));
        api_page_answer(request, &page, "contexts");
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
