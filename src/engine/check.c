/* A run and its source policy. */
#include "engine/run.h"

#include "backend/backend.h"

#define CODES_MAX 32

struct checker *engine_checker(struct engine *engine)
{
        const struct checker_paths paths = { .worker = backend_policy_worker(),
                                             .folders = { engine->settings->engine.policies_dir, backend_policies_dir() } };
        if (!engine->checker)
                checker_open(engine->loop, &paths, &engine->checker);
        return engine->checker;
}

/* A policy that is not known, or a worker that cannot be had: then nobody has looked, and nothing is run. */
static bool is_refusal(struct run *run)
{
        const struct check_result *result = &run->check.result;
        const struct failure *error = &result->error;
        if (!HAS(result, check_result, error) || !HAS(error, failure, code))
                return false;
        bool of_program = HAS(error, failure, field) && strcmp(error->field, "/code") == 0;
        for (int code = 1; code < CODES_MAX && !of_program; code++)
                if (strcmp(csn_code_name(code), error->code) == 0) {
                        err_set(&run->refusal, code, 0, "%s", error->message);
                        snprintf(run->refusal.field, sizeof run->refusal.field, "%s", HAS(error, failure, field) ? error->field : "");
                }
        return run->refusal.code != 0;
}

static void on_checked(struct check *check)
{
        struct run *run = check->owner;
        const struct check_result *result = &check->result;
        bool broken = HAS(result, check_result, error) && HAS(&result->error, failure, line);
        /* Words about syntax are the interpreter's.  It only compiles, whatever our parser made of the text. */
        run->engine->checking--;
        if (!is_refusal(run) && result->verdict == verdict_DENY && !run->request.advise) {
                if (broken && run->language == &lang_python)
                        run_prepare_compile(run);
                else
                        run->blocked = true;
        }
        run_checked(run);
}

void run_check(struct run *run)
{
        struct check_request *request = &run->check.request;
        struct arena *arena = &run->arena;
        run->engine->checking++;
        SET(request, check_request, language, arena_text(arena, "%s", run->language->name));
        SET(request, check_request, policy, run->request.policy);
        SET(request, check_request, code, run->request.code);
        if (run->request.allow_imports_n) {
                request->allow_imports = run->request.allow_imports;
                request->allow_imports_n = run->request.allow_imports_n;
                MARK(request, check_request, allow_imports);
        }
        policy_defaults(request);
        run->check.done = on_checked;
        run->check.owner = run;
        checker_start(engine_checker(run->engine), &run->check);
}
