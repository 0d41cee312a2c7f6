/* A run and its source policy. */
#include "engine/run/run_private.h"

#include "backend/backend.h"

static int start_worker(int sock, pid_t *ret_pid, struct csn_error *err)
{
        return helpers_spawn(WIRE_START_POLICY, sock, ret_pid, err);
}

static struct checker_paths paths_of(const struct engine *engine)
{
        return (struct checker_paths){ .worker = backend_policy_worker(), .start = helpers_are_there() ? start_worker : NULL,
                                       .folders = { engine->settings->engine.policies_dir, backend_policies_dir() } };
}

void engine_reload(struct engine *engine)
{
        const struct checker_paths paths = paths_of(engine);
        if (engine->checker)
                checker_reload(engine->checker, &paths);
        engine_dispatch(engine);
}

struct checker *engine_checker(struct engine *engine)
{
        const struct checker_paths paths = paths_of(engine);
        if (!engine->checker)
                checker_open(engine->loop, &paths, &engine->checker);
        return engine->checker;
}

/* Nobody has looked: nothing is run, but where the policy was only to advise.  A wrong request is wrong there, too. */
static void refuse(struct run *run, const struct csn_error *trouble)
{
        if (run->request.advise && trouble->code != CSN_E_INPUT)
                run_warn(run, "not_checked", "%s", trouble->text);
        else
                run->refusal = *trouble;
}

static void on_checked(struct check *check)
{
        struct run *run = check->owner;
        const struct check_result *result = &check->result;
        bool broken = HAS(result, check_result, error) && HAS(&result->error, failure, line);
        /* Words about syntax are the interpreter's.  It only compiles, whatever our parser made of the text. */
        struct csn_error trouble;
        run->engine->checking--;
        if (policy_trouble(result, &trouble) < 0) {
                refuse(run, &trouble);
        } else if (result->verdict == verdict_DENY && !run->request.advise) {
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
        run->check.key = run->owner_key;
        checker_start(engine_checker(run->engine), &run->check);
}
