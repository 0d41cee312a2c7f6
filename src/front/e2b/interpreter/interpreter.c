/* Port 49999, E2B's code interpreter: its routes, and which contexts there are; see interpreter.h. */
#include "front/e2b/envd/envd.h"
#include "front/e2b/interpreter/interpreter.h"

#include "front/compat/compat.h"

#include <stdio.h>

#define HOME "/home/user"
#define ROOT_HOME "/root"

struct e2b_interpreter {
        struct e2b_context *contexts;
        struct e2b_context *lost;          /* that did not begin; the engine was telling so, and they are closed before the next one begins */
        struct guest_call health;                /* for those inside, who ask its port */
};

/* ---- which there are ---- */

static void context_free(struct e2b_context *one)
{
        free(one->cwd);
        free(one);
}

static struct e2b_context *context_new(struct e2b_interpreter *interpreter, const char *language, const char *cwd, bool is_default)
{
        struct e2b_context *one = mem_alloc(sizeof *one), **at = &interpreter->contexts;
        char id[2 * 16 + 1];
        *one = (struct e2b_context){ .language = language, .cwd = mem_copy(cwd, strlen(cwd)), .is_default = is_default };
        hex_random(16, id);
        snprintf(one->id, sizeof one->id, "%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8, id + 12, id + 16, id + 20);
        while (*at)
                at = &(*at)->next;
        *at = one;
        return one;
}

/* Two are there from the beginning, and cost nothing until they are used. */
static struct e2b_interpreter *interpreter_of(struct e2b_sandbox *sandbox)
{
        if (sandbox->interpreter)
                return sandbox->interpreter;
        sandbox->interpreter = mem_alloc(sizeof *sandbox->interpreter);
        *sandbox->interpreter = (struct e2b_interpreter){ 0 };
        context_new(sandbox->interpreter, lang_python.name, HOME, true);
        context_new(sandbox->interpreter, lang_javascript.name, HOME, true);
        return sandbox->interpreter;
}

static void free_all(struct e2b_context *one)
{
        for (struct e2b_context *next; one; one = next) {
                next = one->next;
                context_free(one);
        }
}

void e2b_interpreter_free(struct e2b_interpreter *interpreter)
{
        if (!interpreter)
                return;
        free_all(interpreter->contexts);
        free_all(interpreter->lost);
        guest_call_close(&interpreter->health);
        free(interpreter);
}

struct e2b_context *e2b_context_find(struct e2b_sandbox *sandbox, const char *id)
{
        for (struct e2b_context *one = interpreter_of(sandbox)->contexts; one; one = one->next)
                if (strcmp(one->id, id) == 0)
                        return one;
        return NULL;
}

/* Our name of it.  Errors: CSN_E_LANGUAGE, CSN_E_INPUT. */
static int find_language(const char *name, const char **ret, struct csn_error *err)
{
        const struct language *language;
        int rc = lang_find(NULL, name ? name : lang_python.name, &language, err);
        if (rc < 0)
                return rc;
        *ret = language->name;
        return language->context ? 0 : err_field(err, "language", "there are no contexts of %s", language->title);
}

int e2b_context_of(struct e2b_sandbox *sandbox, const char *language, struct e2b_context **ret, struct csn_error *err)
{
        const char *name;
        int rc = find_language(language, &name, err);
        if (rc < 0)
                return rc;
        struct e2b_context *one = interpreter_of(sandbox)->contexts;
        while (one && !(one->is_default && strcmp(one->language, name) == 0))
                one = one->next;
        *ret = one ? one : context_new(interpreter_of(sandbox), name, HOME, true);
        return 0;
}

/* Only root can work in its home. */
static bool is_for_root(const char *cwd)
{
        size_t len = strlen(ROOT_HOME);
        return strncmp(cwd, ROOT_HOME, len) == 0 && (cwd[len] == 0 || cwd[len] == '/');
}

static void close_engines(struct e2b_sandbox *sandbox, const struct e2b_context *one)
{
        struct context *context = one->engine_id[0] ? context_find(sandbox->service->engine, one->engine_id,
                                                                   sandbox->tenant) : NULL;
        if (context)
                context_close(context);
}

static void close_lost(struct e2b_sandbox *sandbox)
{
        struct e2b_interpreter *interpreter = interpreter_of(sandbox);
        for (struct e2b_context *one = interpreter->lost; one; one = one->next)
                close_engines(sandbox, one);
        free_all(interpreter->lost);
        interpreter->lost = NULL;
}

int e2b_context_open(struct e2b_sandbox *sandbox, struct e2b_context *one, struct context_waiter *waiter, struct context **ret, bool *ret_new,
                     struct csn_error *err)
{
        struct context_request given = { 0 };
        *ret_new = false;
        *ret = one->engine_id[0] ? context_find(sandbox->service->engine, one->engine_id, sandbox->tenant) : NULL;
        if (*ret)
                return 0;
        SET(&given, context_request, language, (char *)one->language);
        SET(&given, context_request, cwd, one->cwd);
        if (is_for_root(one->cwd))
                SET(&given, context_request, user, account_ROOT);
        model_defaults(&object_context_request, &given);
        close_lost(sandbox);
        if (context_open(sandbox->psandbox, &given, waiter, ret, err) < 0)
                return -err->code;
        *ret_new = true;
        snprintf(one->engine_id, sizeof one->engine_id, "%s", context_id(*ret));
        return 0;
}

/* ---- what is there from the beginning ---- */

static void on_health_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len, int fds[WIRE_FDS_MAX])
{
        (void)call, (void)kind, (void)bytes, (void)len, (void)fds;
}

static void on_health_room(struct guest_call *call)
{
        (void)call;
}

/* With its sandbox; or somebody inside was there first. */
static void on_health_ended(struct guest_call *call, const struct csn_error *error)
{
        (void)call;
        if (error)
                log_text(LOG_DEBUG, "no program inside hears of the interpreter: %s", error->text);
}

static void tell_those_inside(struct e2b_sandbox *sandbox)
{
        static const struct guest_call_events events = { on_health_packet, on_health_room, on_health_ended };
        struct guest_call *health = &interpreter_of(sandbox)->health;
        struct csn_error err;
        *health = (struct guest_call){ .events = &events };
        if (guest_call_health(sandbox->psandbox, health, E2B_INTERPRETER_PORT, &err) < 0)
                on_health_ended(health, &err);
}

void e2b_interpreter_warm(struct e2b_sandbox *sandbox)
{
        struct e2b_context *one = NULL;
        struct context *context;
        struct csn_error err;
        bool is_new;
        tell_those_inside(sandbox);
        if (e2b_context_of(sandbox, lang_python.name, &one, &err) < 0 || e2b_context_open(sandbox, one, NULL, &context, &is_new, &err) < 0)
                log_text(LOG_DEBUG, "no interpreter is started ahead in sandbox %s: %s", sandbox->id, err.text);
}

/* It is none of the client's any more. */
static void unlist(struct e2b_sandbox *sandbox, struct e2b_context *one)
{
        for (struct e2b_context **at = &interpreter_of(sandbox)->contexts; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
}

static void forget(struct e2b_sandbox *sandbox, struct e2b_context *one)
{
        unlist(sandbox, one);
        close_engines(sandbox, one);
        context_free(one);
}

static void lose(struct e2b_sandbox *sandbox, struct e2b_context *one)
{
        unlist(sandbox, one);
        one->next = interpreter_of(sandbox)->lost;
        interpreter_of(sandbox)->lost = one;
}

static json_t *describe(const struct e2b_context *one)
{
        return json_pack("{s:s, s:s, s:s}", "id", one->id, "language", one->language, "cwd", one->cwd);
}

/* ---- waiting for one ---- */

struct opening {
        struct context_waiter waiter;
        struct http_request *request;
        char id[37];
        bool is_restart;
};

static void refuse(struct http_request *request, const struct csn_error *err)
{
        e2b_error(request, err->code == CSN_E_BUSY ? MHD_HTTP_TOO_MANY_REQUESTS : MHD_HTTP_BAD_REQUEST, "%s", err->text);
}

static void answer_opened(struct http_request *request, const struct e2b_context *one, bool is_restart)
{
        if (is_restart)
                http_json(request, MHD_HTTP_OK, json_null());
        else
                http_json(request, MHD_HTTP_OK, describe(one));
}

/* A new one that does not begin is not there. */
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
                refuse(request, error);    /* of its folder */
                forget(sandbox, one);
        } else if (error) {
                e2b_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "%s", error->text);
                if (!opening->is_restart)
                        lose(sandbox, one);
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
        *opening = (struct opening){ .waiter = { .done = on_opened, .owner = opening }, .request = request, .is_restart = is_restart };
        request->owner = opening;
        request->gone = on_gone;
        return opening;
}

/* Nobody waits: it is there, or will not be. */
static void opening_free(struct opening *opening)
{
        opening->request->gone = NULL;
        free(opening);
}

/* ---- what is asked of them ---- */

static void not_found(struct http_request *request)
{
        char *text = arena_text(&request->arena, "Context %.100s not found", http_part(request, 0));
        http_answer(request, MHD_HTTP_NOT_FOUND, "text/plain; charset=utf-8", mem_copy(text, strlen(text)), strlen(text));
}

static void list(struct http_request *request)
{
        json_t *json = json_array();
        for (const struct e2b_context *one = interpreter_of(e2b_target(request))->contexts; one; one = one->next)
                json_array_append_new(json, describe(one));
        http_json(request, MHD_HTTP_OK, json);
}

/* Where there is no such folder the engine makes none: every execution would fail there. */
static void begin(struct http_request *request, const char *language, const char *cwd)
{
        struct e2b_sandbox *sandbox = e2b_target(request);
        struct opening *opening;
        struct context *context;
        char path[GUEST_PATH_MAX];
        struct csn_error err;
        bool is_new;
        if (spell_path(cwd[0] ? cwd : HOME, account_USER, NULL, path, &err) < 0) {
                refuse(request, &err);
                return;
        }
        struct e2b_context *one = context_new(interpreter_of(sandbox), language, path, false);
        opening = opening_new(request, false);
        snprintf(opening->id, sizeof opening->id, "%s", one->id);
        if (e2b_context_open(sandbox, one, &opening->waiter, &context, &is_new, &err) == 0)
                return;
        opening_free(opening);
        forget(sandbox, one);
        refuse(request, &err);
}

static void post(struct http_request *request)
{
        struct csn_error err;
        json_t *body = request->body.len ? compat_body(request, &err) : json_object();
        const char *language;
        if (!body || find_language(json_string_value(json_object_get(body, "language")), &language, &err) < 0)
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
        forget(sandbox, one);
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
        } else if (!context) {             /* it has never been anything but new */
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
        { "POST", "/execute", "*", 0, BODY_WHOLE, e2b_execute, "Execute code in a context, told as lines of JSON.", NULL, NULL },
        { "GET", "/contexts", "*", 0, BODY_NONE, list, "All contexts, as they were made.", NULL, NULL },
        { "POST", "/contexts", "*", 0, BODY_WHOLE, post, "A new context.", NULL, NULL },
        { "DELETE", "/contexts/{id}", "*", 0, BODY_NONE, delete, "End a context.", NULL, NULL },
        { "POST", "/contexts/{id}/restart", "*", 0, BODY_WHOLE, restart, "A new interpreter for a context.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};
