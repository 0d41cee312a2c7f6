/* Port 49999, E2B's code interpreter: its routes, and the list of contexts; see interpreter.h. */
#include "front/e2b/envd/envd.h"

#include "front/e2b/interpreter/interpreter.h"
#include "front/service/parse.h"

#include <stdio.h>

static json_t *describe(const struct e2b_context *one)
{
        return json_pack("{s:s, s:s, s:s}", "id", one->id, "language", one->language, "cwd", one->cwd);
}

/* ---- waiting for a context ---- */

struct opening {
        struct context_waiter waiter;
        struct http_request *request;
        char id[37];
        bool is_restart;
};

static void refuse(struct http_request *request, const struct csn_error *err)
{
        e2b_error(request, err->code == CSN_E_BUSY ? MHD_HTTP_TOO_MANY_REQUESTS : MHD_HTTP_BAD_REQUEST, "%s",
                err->text);
}

static void answer_opened(struct http_request *request, const struct e2b_context *one, bool is_restart)
{
        if (is_restart)
                http_json(request, MHD_HTTP_OK, json_null());
        else
                http_json(request, MHD_HTTP_OK, describe(one));
}

/* A new context is removed if its beginning fails. */
static void on_opened(struct context_waiter *waiter, const struct csn_error *error)
{
        struct opening *opening = waiter->owner;
        struct http_request *request = opening->request;
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct e2b_context *one = sandbox ? e2b_context_find(sandbox, opening->id) : NULL;
        request->gone = NULL;
        if (!one || psandbox_state(sandbox->psandbox) == PSANDBOX_OVER) {
                e2b_not_found(request);
        } else if (error && error->code == CSN_E_INPUT && !opening->is_restart) {
                refuse(request, error);    /* its folder is unusable */
                e2b_context_forget(sandbox, one);
        } else if (error) {
                e2b_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", error->text);
                if (!opening->is_restart)
                        e2b_context_lose(sandbox, one);
        } else {
                answer_opened(request, one, opening->is_restart);
        }
        free(opening);
}

static void on_gone(struct http_request *request)
{
        struct opening *opening = request->owner;
        context_unwait(&opening->waiter);
        free(opening);
}

static struct opening *opening_new(struct http_request *request, bool is_restart)
{
        struct opening *opening = mem_alloc(sizeof *opening);
        *opening = (struct opening){
                .waiter = { .done = on_opened, .owner = opening }, .request = request, .is_restart = is_restart
        };
        request->owner = opening;
        request->gone = on_gone;
        return opening;
}

/* Without waiting: the context exists, or never will. */
static void opening_free(struct opening *opening)
{
        opening->request->gone = NULL;
        free(opening);
}

/* ---- requests about contexts ---- */

static void not_found(struct http_request *request)
{
        char *text = arena_text(&request->arena, "Context %.100s not found", http_part(request, 0));
        http_answer(request, MHD_HTTP_NOT_FOUND, "text/plain; charset=utf-8", mem_copy(text, strlen(text)),
                strlen(text));
}

static void list(struct http_request *request)
{
        json_t *json = json_array();
        for (const struct e2b_context *one = e2b_contexts(e2b_target(request)); one; one = one->next)
                json_array_append_new(json, describe(one));
        http_json(request, MHD_HTTP_OK, json);
}

/* The engine does not make a context in a missing folder: every execution would fail there. */
static void begin(struct http_request *request, const char *language, const char *cwd)
{
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct opening *opening;
        struct context *context;
        char path[GUEST_PATH_MAX];
        struct csn_error err;
        bool is_new;
        if (spell_path(cwd[0] ? cwd : E2B_CONTEXT_HOME, account_USER, NULL, path, &err) < 0) {
                refuse(request, &err);
                return;
        }
        struct e2b_context *one = e2b_context_new(sandbox, language, path);
        opening = opening_new(request, false);
        snprintf(opening->id, sizeof opening->id, "%s", one->id);
        if (e2b_context_open(sandbox, one, &opening->waiter, &context, &is_new, &err) == 0)
                return;
        opening_free(opening);
        e2b_context_forget(sandbox, one);
        refuse(request, &err);
}

static void post(struct http_request *request)
{
        struct csn_error err;
        json_t *body = request->body.len ? json_body(request, &err) : json_object();
        const char *language;
        if (!body || e2b_context_language(json_string_value(json_object_get(body, "language")), &language, &err) < 0)
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "%s", err.text);
        else if (e2b_check_text(request, body, "cwd") && e2b_check_text(request, body, "language"))
                begin(request, language, e2b_text(body, "cwd"));
        json_decref(body);
}

static void delete(struct http_request *request)
{
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct e2b_context *one = e2b_context_find(sandbox, http_part(request, 0));
        if (!one) {
                not_found(request);
                return;
        }
        e2b_context_forget(sandbox, one);
        http_json(request, MHD_HTTP_OK, json_null());
}

static void restart(struct http_request *request)
{
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct e2b_context *one = e2b_context_find(sandbox, http_part(request, 0));
        struct context *context = one && one->engine_id[0] ? context_find(sandbox->service->engine, one->engine_id,
                                                                          sandbox->tenant) : NULL;
        struct csn_error err;
        if (!one) {
                not_found(request);
        } else if (!context) {             /* never used, and so still as new */
                answer_opened(request, one, true);
        } else {
                struct opening *opening = opening_new(request, true);
                snprintf(opening->id, sizeof opening->id, "%s", one->id);
                if (context_restart(context, &opening->waiter, &err) == 0)
                        return;
                opening_free(opening);
                e2b_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", err.text);
        }
}

static void health(struct http_request *request)
{
        http_json(request, MHD_HTTP_OK, json_string("OK"));
}

const struct http_route e2b_interpreter_routes[] = {
        { "GET", "/health", "*", 0, BODY_NONE, health, "Whether the interpreter answers.", NULL, NULL },
        { "POST", "/execute", "*", 0, BODY_TREE | BODY_MIB(8), e2b_execute,
                "Execute code in a context, told as lines of JSON.",
                NULL, NULL },
        { "GET", "/contexts", "*", 0, BODY_NONE, list, "All contexts, as they were made.", NULL, NULL },
        { "POST", "/contexts", "*", 0, BODY_TREE, post, "A new context.", NULL, NULL },
        { "DELETE", "/contexts/{id}", "*", 0, BODY_NONE, delete, "End a context.", NULL, NULL },
        { "POST", "/contexts/{id}/restart", "*", 0, BODY_TREE, restart, "A new interpreter for a context.", NULL,
                NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};
