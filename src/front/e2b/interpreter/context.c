/* The contexts of a sandbox, and the context started with the sandbox; see interpreter.h. */
#include "front/e2b/interpreter/interpreter.h"

#include <stdio.h>

#define ROOT_HOME "/root"

struct e2b_interpreter {
        struct e2b_context *contexts;
        /* Contexts that failed to begin, as the engine reports; closed before the next begins. */
        struct e2b_context *lost;
        struct guest_call health;                /* health port of the interpreter, for programs inside */
};

static void context_free(struct e2b_context *one)
{
        free(one->cwd);
        free(one);
}

static struct e2b_context *context_new(struct e2b_interpreter *interpreter, const char *language, const char *cwd,
        bool is_default)
{
        struct e2b_context *one = mem_alloc(sizeof *one), **at = &interpreter->contexts;
        char id[2 * 16 + 1];
        *one = (struct e2b_context){
                .language = language, .cwd = mem_copy(cwd, strlen(cwd)), .is_default = is_default
        };
        hex_random(16, id);
        snprintf(one->id, sizeof one->id, "%.8s-%.4s-%.4s-%.4s-%.12s", id, id + 8, id + 12, id + 16, id + 20);
        while (*at)
                at = &(*at)->next;
        *at = one;
        return one;
}

/* Two default contexts exist from the beginning, and cost nothing until used. */
static struct e2b_interpreter *interpreter_of(struct e2b_sandbox *sandbox)
{
        if (sandbox->interpreter)
                return sandbox->interpreter;
        sandbox->interpreter = mem_alloc(sizeof *sandbox->interpreter);
        *sandbox->interpreter = (struct e2b_interpreter){ 0 };
        context_new(sandbox->interpreter, lang_python.name, E2B_CONTEXT_HOME, true);
        context_new(sandbox->interpreter, lang_javascript.name, E2B_CONTEXT_HOME, true);
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

struct e2b_context *e2b_context_new(struct e2b_sandbox *sandbox, const char *language, const char *cwd)
{
        return context_new(interpreter_of(sandbox), language, cwd, false);
}

const struct e2b_context *e2b_contexts(struct e2b_sandbox *sandbox)
{
        return interpreter_of(sandbox)->contexts;
}

struct e2b_context *e2b_context_find(struct e2b_sandbox *sandbox, const char *id)
{
        for (struct e2b_context *one = interpreter_of(sandbox)->contexts; one; one = one->next)
                if (strcmp(one->id, id) == 0)
                        return one;
        return NULL;
}

/* Caisson's name of a language.  Errors: CSN_E_LANGUAGE, CSN_E_INPUT. */
int e2b_context_language(const char *name, const char **ret, struct csn_error *err)
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
        int rc = e2b_context_language(language, &name, err);
        if (rc < 0)
                return rc;
        struct e2b_context *one = interpreter_of(sandbox)->contexts;
        while (one && !(one->is_default && strcmp(one->language, name) == 0))
                one = one->next;
        *ret = one ? one : context_new(interpreter_of(sandbox), name, E2B_CONTEXT_HOME, true);
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

int e2b_context_open(struct e2b_sandbox *sandbox, struct e2b_context *one, struct context_waiter *waiter,
        struct context **ret, bool *ret_new, struct csn_error *err)
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

/* Clients do not see the context any more. */
static void unlist(struct e2b_sandbox *sandbox, struct e2b_context *one)
{
        for (struct e2b_context **at = &interpreter_of(sandbox)->contexts; *at; at = &(*at)->next)
                if (*at == one) {
                        *at = one->next;
                        break;
                }
}

void e2b_context_forget(struct e2b_sandbox *sandbox, struct e2b_context *one)
{
        unlist(sandbox, one);
        close_engines(sandbox, one);
        context_free(one);
}

void e2b_context_lose(struct e2b_sandbox *sandbox, struct e2b_context *one)
{
        unlist(sandbox, one);
        one->next = interpreter_of(sandbox)->lost;
        interpreter_of(sandbox)->lost = one;
}

/* ---- the start with a sandbox ---- */

static void on_health_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        (void)call, (void)kind, (void)bytes, (void)len, (void)fds;
}

static void on_health_room(struct guest_call *call)
{
        (void)call;
}

/* Ends with its sandbox, or at once if a program inside has the port. */
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
        if (e2b_context_of(sandbox, lang_python.name, &one, &err) < 0 ||
                e2b_context_open(sandbox, one, NULL, &context, &is_new, &err) < 0)
                log_text(LOG_DEBUG, "no interpreter is started ahead in sandbox %s: %s", sandbox->id, err.text);
}
