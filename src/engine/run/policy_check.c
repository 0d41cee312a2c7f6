/* A run and its source policy. */
#include "engine/run/run_private.h"

#include "backend/backend.h"

#include <inttypes.h>

/* Of check_request.tools in fields.def. */
#define CHECK_NAMES 1000
#define CHECK_NAME_MAX 200

static int start_worker(int sock, pid_t *ret_pid, struct csn_error *err)
{
        return helpers_spawn(WIRE_START_POLICY, sock, ret_pid, err);
}

static struct checker_paths paths_of(const struct engine *engine)
{
        return (struct checker_paths){ .worker = backend_policy_worker(),
                .start = helpers_are_there() ? start_worker : NULL,
                .folders = { engine->settings->engine.policies_dir, backend_policies_dir() } };
}

void run_reload_policies(struct engine *engine)
{
        const struct checker_paths paths = paths_of(engine);
        for (size_t i = 0; i < ARRAY_LEN(engine->checkers); i++)
                if (engine->checkers[i])
                        checker_reload(engine->checkers[i], &paths);
}

struct checker *engine_checker(struct engine *engine, const struct check *check)
{
        const struct checker_paths paths = paths_of(engine);
        size_t len = check->request.code.len + check->request.prelude.len;
        struct checker **checker = &engine->checkers[len > CHECK_SHORT_MAX];
        if (!*checker)
                checker_open(engine->loop, &paths, checker);
        return *checker;
}

void check_unreadable(struct check *check)
{
        struct check_result *result = &check->result;
        SET(&result->error, failure, message,
                arena_text(&check->arena, "%s",
                        "Python can read this, but the check cannot; please write it in another way"));
        SET(result, check_result, reason,
                arena_text(&check->arena, "Line %" PRIu64 ": %s", result->error.line, result->error.message));
}

/* The check failed.  The run is refused, unless the policy only advises; an invalid request is refused always. */
static void refuse(struct run *run, const struct csn_error *trouble)
{
        if (run->launch.request.advise && trouble->code != CSN_E_INPUT)
                run_warn(run, "not_checked", "%s", trouble->text);
        else
                run->refusal = *trouble;
}

static void on_checked(struct check *check)
{
        struct run *run = check->owner;
        const struct check_result *result = &check->result;
        bool broken = HAS(result, check_result, error) && HAS(&result->error, failure, line);
        /* Only the interpreter reports syntax errors.  The run only compiles the text, whatever our parser found. */
        struct csn_error trouble;
        run->engine->checking--;
        if (policy_trouble(result, &trouble) < 0) {
                refuse(run, &trouble);
        } else if (result->verdict == verdict_DENY && !run->launch.request.advise) {
                if (broken && run->launch.language == &lang_python)
                        launch_for_compiling(&run->launch);
                else
                        run->blocked = true;
        }
        run->checked(run);
}

/* Names of the requested tools: "get" of "server.get"; a pattern names none. */
static void name_tools(struct run *run, struct check_request *request)
{
        const struct tools_request *tools = &run->launch.request.tools;
        struct arena *arena = &run->launch.arena;
        request->tools = arena_alloc(arena, (tools->allow_n + tools->client_n + 1) * sizeof *request->tools);
        for (size_t i = 0; i < tools->allow_n; i++) {
                const char *dot = strrchr(tools->allow[i], '.'), *name = dot ? dot + 1 : tools->allow[i];
                if (!strpbrk(name, "*?[") && strlen(name) <= CHECK_NAME_MAX)
                        request->tools[request->tools_n++] = arena_text(arena, "%s", name);
        }
        for (size_t i = 0; i < tools->client_n; i++)
                request->tools[request->tools_n++] = tools->client[i].name;
        request->tools_n = request->tools_n < CHECK_NAMES ? request->tools_n : CHECK_NAMES;
        if (request->tools_n)
                MARK(request, check_request, tools);
}

void run_check(struct run *run, void (*checked)(struct run *run))
{
        struct check_request *request = &run->check.request;
        struct arena *arena = &run->launch.arena;
        run->engine->checking++;
        SET(request, check_request, language, arena_text(arena, "%s", run->launch.language->name));
        SET(request, check_request, policy, run->launch.request.policy);
        SET(request, check_request, code, run->launch.request.code);
        if (run->launch.request.allow_imports_n) {
                request->allow_imports = run->launch.request.allow_imports;
                request->allow_imports_n = run->launch.request.allow_imports_n;
                MARK(request, check_request, allow_imports);
        }
        if (HAS(&run->launch.request, run_request, forbidden_modules)) {
                request->forbidden_modules = run->launch.request.forbidden_modules;
                request->forbidden_modules_n = run->launch.request.forbidden_modules_n;
                MARK(request, check_request, forbidden_modules);
        }
        if (HAS(&run->launch.request, run_request, prelude) && !run->own_prelude)
                SET(request, check_request, prelude, run->launch.request.prelude);
        name_tools(run, request);
        policy_defaults(request);
        run->checked = checked;
        run->check.done = on_checked;
        run->check.owner = run;
        run->check.key = run->owner_key;
        checker_start(engine_checker(run->engine, &run->check), &run->check);
}

void run_set_own_prelude(struct run *run)
{
        run->own_prelude = true;
}
