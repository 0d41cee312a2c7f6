/*
 * Sessions of NeMo-Skills: each is a persistent sandbox with one Python context.  A client chooses the id of a session.
 * The first request with an id makes the session, and the session ends with its sandbox.
 */
#include "front/trainers/nemo.h"

#include <stdio.h>

#define TTL_MS 86400000                    /* the longest life of a sandbox; sessions.idle ends an idle one earlier */

struct nemo_session {
        struct nemo_session *next;
        struct service *service;
        char *id;
        char tenant[80], sandbox[40];
        char context[40];                  /* "": the sandbox is made */
        bool used;                         /* an execution has ended in it */
        int64_t created_ms, used_ms;
        struct psandbox_waiter made, over;
        struct nemo_waiter *waiters;
};

static struct nemo_state *nemo_state(const struct service *service)
{
        size_t i = 0;
        while (strcmp(service->fronts[i]->name, "nemo_skills") != 0)
                i++;
        return service->states[i];
}

static struct nemo_session *find(const struct service *service, const char *tenant, const char *id)
{
        for (struct nemo_session *one = nemo_state(service)->sessions; one; one = one->next)
                if (strcmp(one->id, id) == 0 && strcmp(one->tenant, tenant) == 0 &&
                        psandbox_find(service->engine, one->sandbox, tenant))
                        return one;
        return NULL;
}

/* Tell all waiters. */
static void tell(struct nemo_session *one, const struct csn_error *error)
{
        while (one->waiters) {
                struct nemo_waiter *waiter = one->waiters;
                one->waiters = waiter->next;
                waiter->session = NULL;
                waiter->done(waiter, one->context, error);
        }
}

static void session_free(struct nemo_session *one)
{
        for (struct nemo_session **at = &nemo_state(one->service)->sessions; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
        while (one->waiters) {
                one->waiters->session = NULL;
                one->waiters = one->waiters->next;
        }
        psandbox_unwait(&one->made);
        psandbox_unwait(&one->over);
        free(one->id);
        free(one);
}

static void on_over(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct nemo_session *one = waiter->owner;
        struct csn_error over;
        (void)error;
        err_set(&over, CSN_E_BUSY, 0, "the sandbox of the session ended before the session began");
        tell(one, &over);
        session_free(one);
}

static void on_made(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct nemo_session *one = waiter->owner;
        struct psandbox *psandbox = psandbox_find(one->service->engine, one->sandbox, one->tenant);
        struct context_request wanted = { 0 };
        struct context *context;
        struct csn_error err;
        if (error || !psandbox) {
                if (error)
                        tell(one, error); /* on_over() frees the session */
                return;
        }
        SET(&wanted, context_request, language, (char *)(uintptr_t)lang_python.name);
        model_defaults(&object_context_request, &wanted);
        if (context_open(psandbox, &wanted, NULL, &context, &err) < 0) {
                tell(one, &err);
                psandbox_kill(psandbox);
                return;
        }
        snprintf(one->context, sizeof one->context, "%s", context_id(context));
        tell(one, NULL);
}

static struct nemo_session *make(struct http_request *request, const char *id, struct http_limit *ret_limit,
        struct csn_error *err)
{
        struct service *service = service_of(request);
        struct nemo_state *state = nemo_state(service);
        const struct run_quota quota = service_quota(request);
        struct sandbox_request wanted = { 0 };
        struct psandbox *psandbox;
        SET(&wanted, sandbox_request, idle_ms, service->settings->sessions.idle);
        SET(&wanted, sandbox_request, ttl_ms, TTL_MS);
        if (service_has_cpu_time(request, ret_limit, err) < 0 ||
                psandbox_open(service->engine, &wanted, request->tenant, &quota, &psandbox, err) < 0)
                return NULL;
        struct nemo_session *one = mem_alloc(sizeof *one);
        *one = (struct nemo_session){ .next = state->sessions, .service = service, .created_ms = time_now_ms() };
        state->sessions = one;
        one->id = mem_copy(id, strlen(id));
        one->used_ms = one->created_ms;
        one->made = (struct psandbox_waiter){ .done = on_made, .owner = one };
        one->over = (struct psandbox_waiter){ .done = on_over, .owner = one };
        snprintf(one->tenant, sizeof one->tenant, "%s", request->tenant);
        snprintf(one->sandbox, sizeof one->sandbox, "%s", psandbox_id(psandbox));
        psandbox_wait(psandbox, PSANDBOX_WANTS_READY, &one->made);
        psandbox_wait(psandbox, PSANDBOX_WANTS_OVER, &one->over);
        return one;
}

int nemo_session_open(struct http_request *request, const char *id, struct nemo_waiter *waiter,
        struct http_limit *ret_limit, struct csn_error *err)
{
        struct nemo_session *one = find(service_of(request), request->tenant, id);
        if (!one && !(one = make(request, id, ret_limit, err)))
                return -err->code;
        one->used_ms = time_now_ms();
        if (one->context[0]) {
                waiter->done(waiter, one->context, NULL);
                return 0;
        }
        waiter->session = one;
        waiter->next = one->waiters;
        one->waiters = waiter;
        return 0;
}

void nemo_session_unwait(struct nemo_waiter *waiter)
{
        if (!waiter->session)
                return;
        for (struct nemo_waiter **at = &waiter->session->waiters; *at; at = &(*at)->next)
                if (*at == waiter) {
                        *at = waiter->next;
                        break;
                }
        waiter->session = NULL;
}

bool nemo_session_is_new(const struct service *service, const char *tenant, const char *id)
{
        const struct nemo_session *one = find(service, tenant, id);
        return !one || !one->used;
}

void nemo_session_used(const struct service *service, const char *tenant, const char *id)
{
        struct nemo_session *one = find(service, tenant, id);
        if (!one)
                return;
        one->used = true;
        one->used_ms = time_now_ms();
}

bool nemo_session_exists(const struct service *service, const char *tenant, const char *id)
{
        return find(service, tenant, id) != NULL;
}

bool nemo_session_delete(const struct http_request *request, const char *id)
{
        struct service *service = service_of(request);
        const struct nemo_session *one = find(service, request->tenant, id);
        if (!one)
                return false;
        psandbox_kill(psandbox_find(service->engine, one->sandbox, one->tenant));
        return true;
}

json_t *nemo_sessions_list(const struct http_request *request)
{
        const struct service *service = service_of(request);
        json_t *list = json_object();
        for (const struct nemo_session *one = nemo_state(service)->sessions; one; one = one->next)
                if (strcmp(one->tenant, request->tenant) == 0 &&
                        psandbox_find(service->engine, one->sandbox, one->tenant))
                        json_object_set_new(list, one->id,
                                json_pack("{s:s, s:f, s:f, s:b}", "backend", "ipython", "created",
                                        (double)one->created_ms / 1000, "last_used", (double)one->used_ms / 1000,
                                        "alive", true));
        return list;
}

/* Requests that wait are told by their own front. */
void nemo_sessions_close(struct service *service)
{
        for (struct nemo_session *one = nemo_state(service)->sessions, *next; one; one = next) {
                next = one->next;
                session_free(one);
        }
}
