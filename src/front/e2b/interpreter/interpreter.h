/*
 * The code interpreter of E2B (port 49999); shared by the files of this folder.
 *
 *   execute       executions, streamed as JSON lines
 *   result        rich output of a program in E2B's format
 *   context       the contexts of a sandbox
 *   interpreter   its routes, and requests about contexts
 */
#ifndef FRONT_E2B_INTERPRETER_INTERPRETER_H
#define FRONT_E2B_INTERPRETER_INTERPRETER_H

#include "front/e2b/request.h"

#define E2B_CONTEXT_HOME "/home/user"      /* the default working folder */

/* A context for a client.  The engine's context is created at first use. */
struct e2b_context {
        struct e2b_context *next;          /* in the order of creation */
        char id[37];
        char engine_id[40];                /* "": not created yet */
        const char *language;              /* the engine's name of the language */
        char *cwd;                         /* allocated */
        bool is_default;                   /* default of its language, for requests without a context */
};

/* ---- contexts (context.c) ---- */

/* Add a context; the sandbox owns it.  language is the engine's name, a static text; cwd is copied. */
struct e2b_context *e2b_context_new(struct e2b_sandbox *sandbox, const char *language, const char *cwd);
/* The first context in the order of creation; the two default contexts exist from the beginning. */
const struct e2b_context *e2b_contexts(struct e2b_sandbox *sandbox);
/* The context with this id; NULL: none. */
struct e2b_context *e2b_context_find(struct e2b_sandbox *sandbox, const char *id);
/*
 * The default context of a language, by any of its names.  Errors: CSN_E_LANGUAGE, CSN_E_INPUT (no contexts for the
 * language).
 */
int e2b_context_of(struct e2b_sandbox *sandbox, const char *language, struct e2b_context **ret, struct csn_error *err);
/*
 * The engine's context, created if missing.  waiter may be NULL; it is called once when a new context is ready, and not
 * called for an existing context: *ret_new tells the difference.  Errors: as context_open().
 */
int e2b_context_open(struct e2b_sandbox *sandbox, struct e2b_context *one, struct context_waiter *waiter,
        struct context **ret, bool *ret_new, struct csn_error *err);

/*
 * The engine's name of a language, by any of its names; NULL is Python.  Errors: CSN_E_LANGUAGE (unknown), CSN_E_INPUT
 * (no contexts for the language).
 */
int e2b_context_language(const char *name, const char **ret, struct csn_error *err);
/* Close the engine's context, and free the context. */
void e2b_context_forget(struct e2b_sandbox *sandbox, struct e2b_context *one);
/*
 * The same for a context that failed to begin, from the engine's callback: the engine's context is closed later, before
 * the next one begins.
 */
void e2b_context_lose(struct e2b_sandbox *sandbox, struct e2b_context *one);
/*
 * Start a Python context in advance for the next client.  Programs inside can then see on the interpreter's port that
 * it is ready.
 */
void e2b_interpreter_warm(struct e2b_sandbox *sandbox);
/* Free all contexts; NULL is harmless. */
void e2b_interpreter_free(struct e2b_interpreter *interpreter);

/* ---- requests (execute.c, interpreter.c) ---- */

extern const struct http_route e2b_interpreter_routes[];

/* Whether a member is a text or missing.  false: another type, and the request was answered. */
bool e2b_check_text(struct http_request *request, const json_t *body, const char *name);

/* Handler of POST /execute. */
void e2b_execute(struct http_request *request);
/* convert() and drop() of its converter. */
void *e2b_convert_execution(json_t *body, const struct csn_error *error, void *context, struct arena *arena);
void e2b_drop_execution(void *given);

/* A line {"type":"result",…} for a bundle of MIME types; the caller's reference. */
json_t *e2b_result(const json_t *bundle, const char *language, bool is_main);
/* Whether the language is JavaScript or TypeScript: e2b_result() leaves out JSON beside a plain text for these. */
bool e2b_is_script(const char *language);

#endif
