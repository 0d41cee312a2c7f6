/*
 * Requests for the descriptions of the interface: /openapi.json, /docs and /problems.
 *
 * The texts are the same for the whole life of the daemon, and need no key.  A helper thread makes all texts for the
 * first request, because the loop would take 12 ms, and the start of the daemon does not wait for texts of few clients.
 */
#include "front/api/openapi.h"

#include "base/worker.h"
#include "engine/engine.h"
#include "front/api/api.h"

#define TEXT_MAX (2 * MIB)

static const struct {
        void (*write)(const struct service *service, struct buf *buf);
        const char *type, *content_policy;
} descriptions[DESCRIPTIONS_N] = {
        [DESCRIPTION_OPENAPI] = { openapi_write, "application/json", NULL },
        [DESCRIPTION_DOCS] = { openapi_write_docs, "text/html; charset=utf-8", OPENAPI_PAGE_POLICY },
        [DESCRIPTION_PROBLEMS] = { openapi_write_problems, "text/html; charset=utf-8", OPENAPI_PAGE_POLICY },
};

/* A request waiting for its text, in the request's arena. */
struct api_waiter {
        struct api_waiter *next;
        struct http_request *request;
        enum description which;
};

static void send_text(struct http_request *request, enum description which)
{
        const struct buf *text = &operations_state(service_of(request))->texts[which];
        if (descriptions[which].content_policy)
                http_set_header(request, "Content-Security-Policy", descriptions[which].content_policy);
        http_answer(request, MHD_HTTP_OK, descriptions[which].type, mem_copy(text->bytes, text->len), text->len);
}

/* In a helper thread.  Of the service, only fronts and routes are read, which do not change. */
static void work(struct job *job)
{
        struct service *service = job->owner;
        struct operations_state *state = operations_state(service);
        for (size_t i = 0; i < DESCRIPTIONS_N; i++) {
                buf_init(&state->texts[i], TEXT_MAX);
                descriptions[i].write(service, &state->texts[i]);
        }
}

static void on_made(struct job *job)
{
        struct operations_state *state = operations_state(job->owner);
        state->has_texts = true;
        for (struct api_waiter *waiter; (waiter = state->waiting);) {
                state->waiting = waiter->next;
                send_text(waiter->request, waiter->which);
        }
}

static void on_gone(struct http_request *request)
{
        for (struct api_waiter **at = &operations_state(service_of(request))->waiting; *at; at = &(*at)->next)
                if ((*at)->request == request) {
                        *at = (*at)->next;
                        break;
                }
}

static void answer(struct http_request *request, enum description which)
{
        struct service *service = service_of(request);
        struct operations_state *state = operations_state(service);
        if (state->has_texts) {
                send_text(request, which);
                return;
        }
        struct api_waiter *waiter = arena_alloc(&request->arena, sizeof *waiter);
        *waiter = (struct api_waiter){ state->waiting, request, which };
        state->waiting = waiter;
        request->gone = on_gone;
        if (state->job.active)
                return;
        state->job = (struct job){ .work = work, .done = on_made, .owner = service };
        worker_submit(engine_workers(service->engine), request->tenant, &state->job);
}

void api_openapi(struct http_request *request)
{
        answer(request, DESCRIPTION_OPENAPI);
}

void api_docs(struct http_request *request)
{
        answer(request, DESCRIPTION_DOCS);
}

void api_problems(struct http_request *request)
{
        answer(request, DESCRIPTION_PROBLEMS);
}

void api_close_descriptions(struct service *service)
{
        struct operations_state *state = operations_state(service);
        if (state->job.active)
                worker_wait(engine_workers(service->engine), &state->job);
        for (size_t i = 0; i < DESCRIPTIONS_N; i++)
                buf_done(&state->texts[i]);
}
