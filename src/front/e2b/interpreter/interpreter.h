/*
 * The code interpreter of E2B (port 49999), from the inside; for the files of this folder.
 *
 *   interpreter   its routes, and which contexts there are
 *   execute       executions in them, as lines of JSON
 *   result        what a program shows, in E2B's words
 */
#ifndef FRONT_E2B_INTERPRETER_H
#define FRONT_E2B_INTERPRETER_H

#include "front/e2b/e2b.h"

/* A context as its client knows it.  That of the engine is made when it is first used. */
struct e2b_context {
        struct e2b_context *next;          /* as they were made */
        char id[37];
        char engine_id[40];                /* "": there is none yet */
        const char *language;              /* the engine's name */
        char *cwd;                         /* allocated */
        bool is_default;                   /* its language's, for those who name none */
};

/* By id.  NULL: there is none. */
struct e2b_context *e2b_context_find(struct e2b_sandbox *sandbox, const char *id);
/* The default one of a language by any of its names.  Errors: CSN_E_LANGUAGE, CSN_E_INPUT, there are no contexts of it. */
int e2b_context_of(struct e2b_sandbox *sandbox, const char *language, struct e2b_context **ret, struct csn_error *err);
/*
 * The engine's, which begins if it is not there.  waiter may be NULL; it is told once when a new one is ready, and of one that was
 * there already it is not told: *ret_new says which.  Errors: those of context_open().
 */
int e2b_context_open(struct e2b_sandbox *sandbox, struct e2b_context *one, struct context_waiter *waiter, struct context **ret, bool *ret_new,
                     struct csn_error *err);

/* A member that is none, as E2B's framework tells it; input may be NULL. */
void e2b_fail_member(struct http_request *request, const char *name, const char *type, const char *text, json_t *input);
/* Whether a member is a text or not there.  False: it is something else, and that is answered. */
bool e2b_check_text(struct http_request *request, const json_t *body, const char *name);

/* POST /execute */
void e2b_execute(struct http_request *request);

/* A line {"type":"result",…} of a bundle of MIME types; the caller's reference. */
json_t *e2b_result(const json_t *bundle, const char *language, bool is_main);

#endif
