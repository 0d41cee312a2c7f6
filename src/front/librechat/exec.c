/* POST /exec: one program. */
#include "front/librechat/librechat.h"

/* In the arena of the run. */
struct execution {
        struct librechat_exec exec;
        char *text;                        /* of the answer */
};

static void on_encode(void *own, const struct run_result *result)
{
        struct execution *execution = own;
        execution->text = http_json_text(librechat_answer(&execution->exec, result));
}

static void on_answer(struct http_request *request, void *own, const struct run_result *result)
{
        struct execution *execution = own;
        if (librechat_refused(request, result))
                return;
        http_answer_json(request, MHD_HTTP_OK, execution->text);
        execution->text = NULL;
}

static void on_drop(void *own)
{
        struct execution *execution = own;
        free(execution->text);
}

static const struct run_responder responder = { .encode = on_encode, .answer = on_answer, .drop = on_drop };

void librechat_exec(struct http_request *request)
{
        struct csn_error err;
        json_t *ours = NULL, *body = json_body(request, &err);
        struct run *run = run_new(service_of(request)->engine);
        struct execution *execution = arena_alloc(run_arena(run), sizeof *execution);
        int rc = body ? librechat_read(request, body, NULL, run_arena(run), &execution->exec, &ours, &err)
                      : -CSN_E_INPUT;
        rc = rc < 0 ? rc : compat_decode(ours, run_arena(run), run_request(run), &err);
        json_decref(body);
        if (rc < 0) {
                run_free(run);
                librechat_fail(request, &err);
                return;
        }
        if (librechat_begin(request, run, &execution->exec))
                service_start_run(request, run, &responder, execution, false);
}
