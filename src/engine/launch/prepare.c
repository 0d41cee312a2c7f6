/*
 * From a request to the input of a backend: the whole request, arguments, environment; or to the input of an
 * interpreter.  inputs.c has the input files.
 */
#include "engine/launch/launch_private.h"

#include "egress/egress.h"
#include "lang/extract.h"
#include "lang/lang.h"
#include "sandbox/sandbox.h"

#include <inttypes.h>
#include <stdio.h>

#define JUDGED_WAITING 9                  /* times wall_ms; see run_set_judged() */
#define JUDGED_WAITING_MAX_MS 86400000    /* the supervisor's maximum */

/* ---- language and program ---- */

static int choose_language(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        if (HAS(request, run_request, language))
                return lang_find(launch->added, request->language, &launch->language, err);
        if (!HAS(request, run_request, name))
                return err_field(err, "/language", "no language is given; give language, such as python");
        launch->language = lang_of_file(launch->added, request->name);
        if (!launch->language)
                return err_field(err, "/language",
                        "no language is given, and the name \"%.60s\" does not tell one; give language", request->name);
        return 0;
}

/* The language of the request, by its name or by the name of the file; NULL: no known language. */
static const struct language *named_language(const struct launch *launch)
{
        const struct run_request *request = &launch->request;
        const struct language *language = NULL;
        struct csn_error err;
        if (HAS(request, run_request, language))
                return lang_find(launch->added, request->language, &language, &err) < 0 ? NULL : language;
        return HAS(request, run_request, name) ? lang_of_file(launch->added, request->name) : NULL;
}

/*
 * Replaces code by the program extracted from the text.  The program's tag names the language if the request does not.
 */
static void extract_program(struct launch *launch)
{
        struct run_request *request = &launch->request;
        struct lang_extracted found;
        const struct language *named = named_language(launch);
        if (!lang_extract(launch->added, request->extract, named, &request->code, &launch->arena, &found))
                return;
        SET(request, run_request, code, found.program);
        if (!HAS(request, run_request, language) && !named && found.language)
                SET(request, run_request, language, arena_text(&launch->arena, "%s", found.language->name));
        launch_warn(launch, "extracted", "the program begins in line %zu of code, because extract is %s",
                found.line, choices_extract.values[request->extract].text);
}

static int check_code(const struct run_request *request, struct csn_error *err)
{
        return HAS(request, run_request, code) ? 0 : err_field(err, "/code", "there is no program; give code");
}

int launch_check_needed(struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        const char *name = HAS(request, run_request, profile) ? request->profile : launch->settings->engine.profile;
        struct profile profile;
        if (check_code(request, err) < 0)
                return -err->code;
        if (HAS(request, run_request, language) || HAS(request, run_request, context) || request->extract)
                return 0;
        /* A missing profile is another error.  Extraction may find a language. */
        if (profile_find(launch->settings, name, &launch->arena, &profile, err) < 0 ||
                HAS(&profile.request, run_request, language) || profile.request.extract)
                return 0;
        return choose_language(launch, err);
}

static int choose_name(struct launch *launch, struct csn_error *err)
{
        struct run_request *request = &launch->request;
        struct csn_error why;
        launch->main_file = HAS(request, run_request, name) ? request->name : launch->language->file;
        if (strchr(launch->main_file, '/') || wire_name_check(launch->main_file, strlen(launch->main_file), &why) < 0)
                return err_field(err, "/name", "\"%.60s\" cannot be the program's name: %s", launch->main_file,
                                 strchr(launch->main_file, '/') ? "it has a slash" : why.text);
        return 0;
}

/* ---- environment ---- */

#define INSTALLS "/opt/caisson/installs" /* scripts that answer typed installations (src/lang/installs) */
#define TOOLS_PYTHON "/opt/caisson/tools/python"
#define TOOLS_NODE "/opt/caisson/tools/node"
#define PROXY_URL "http://127.0.0.1:3128"   /* WIRE_PROXY_PORT */
#define PROXY_NOT "localhost,127.0.0.1,::1,0.0.0.0"

/* The environment of every program; a request's variables of the same name replace these. */
static const char *const usual_env[] = {
        "PATH=/opt/caisson/installs/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME=/home/user",                       /* SANDBOX_HOME */
        "USER=user",
        "LOGNAME=user",
        "LANG=C.UTF-8",
        "TZ=UTC",
        "TMPDIR=/tmp",
        "SANDBOX_MODE=1",
        "MPLBACKEND=Agg",
        "MPLCONFIGDIR=/tmp/.matplotlib",         /* caches are no output of the program */
        "XDG_CACHE_HOME=/tmp/.cache",
        "PYTHONDONTWRITEBYTECODE=1",
        "PYTHONUNBUFFERED=1",                    /* the output survives a kill of the program */
        NULL
};

const char *const *launch_usual_env(void)
{
        return usual_env;
}

/* Both spellings, because programs read either; and the switch of node's fetch for reading proxy variables. */
static const struct pair proxy_env[] = {
        { "HTTP_PROXY", PROXY_URL },  { "http_proxy", PROXY_URL },  { "HTTPS_PROXY", PROXY_URL },
        { "https_proxy", PROXY_URL }, { "NO_PROXY", PROXY_NOT },    { "no_proxy", PROXY_NOT },
        { "NODE_USE_ENV_PROXY", "1" },
};

/* For programs started inside; a runner reads the first, and gives its own program the rest. */
static const char *const tools_env[] = {
        "CAISSON_TOOLS=" WIRE_TOOL_SOCKET_PATH,
        "PATH=/opt/caisson/installs/bin:/usr/local/bin:/usr/bin:/bin" TOOLS_PATH,
        "PYTHONPATH=" TOOLS_PYTHON,
        "NODE_PATH=" TOOLS_NODE,
};

/* `name` may be followed by its value. */
static bool has_variable(const struct run_request *request, const char *name)
{
        size_t len = strcspn(name, "=");
        for (size_t i = 0; i < request->env_n; i++)
                if (strncmp(request->env[i].name, name, len) == 0 && request->env[i].name[len] == 0)
                        return true;
        return false;
}

static bool has_layer(const struct launch *launch)
{
        return launch->shape.python_layer_high || launch->shape.python_layer_low;
}

/*
 * The search paths that differ from tools_env and usual_env: of modules, and of a layer, both behind the tools.  A
 * request with a layer has no PYTHONPATH.
 */
static size_t add_search_paths(const struct launch *launch, bool tools, struct arena *arena, char **env)
{
        const struct run_request *request = &launch->request;
        bool modules = request->modules_n > 0;
        size_t n = 0;
        if ((modules && !has_variable(request, "PYTHONPATH")) || has_layer(launch))
                env[n++] = arena_text(arena, "PYTHONPATH=%s%s%s%s", tools ? TOOLS_PYTHON ":" : "",
                        modules ? SANDBOX_MODULES : "", modules && has_layer(launch) ? ":" : "",
                        has_layer(launch) ? SANDBOX_PYTHON_LAYER : "");
        if (modules && !has_variable(request, "NODE_PATH"))
                env[n++] = arena_text(arena, "NODE_PATH=%s" SANDBOX_MODULES, tools ? TOOLS_NODE ":" : "");
        if (modules && !has_variable(request, "PATH"))
                env[n++] = arena_text(arena, "%s%s:" SANDBOX_MODULES, usual_env[0], tools ? TOOLS_PATH : "");
        return n;
}

/* Whether add_search_paths() has added this variable. */
static bool has_path(char *const *env, size_t n, const char *entry)
{
        size_t len = strcspn(entry, "=") + 1;
        for (size_t i = 0; i < n; i++)
                if (strncmp(env[i], entry, len) == 0)
                        return true;
        return false;
}

static void build_env(struct launch *launch)
{
        static const char *const threads[] = { "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS" };
        const struct run_request *request = &launch->request;
        struct arena *arena = &launch->arena;
        bool tools = launch_wants_tools(&request->tools);
        char **env = arena_alloc(arena,
                (ARRAY_LEN(usual_env) + ARRAY_LEN(tools_env) + ARRAY_LEN(proxy_env) + ARRAY_LEN(threads) +
                        request->env_n + 5) *
                        sizeof *env);
        size_t n = add_search_paths(launch, tools, arena, env), paths = n;
        for (size_t i = 0; tools && i < ARRAY_LEN(tools_env); i++)
                if (!has_variable(request, tools_env[i]) && !has_path(env, paths, tools_env[i]))
                        env[n++] = (char *)(uintptr_t)tools_env[i];
        for (size_t i = tools; usual_env[i]; i++)      /* usual_env begins with PATH; tools_env has another PATH */
                if (!has_variable(request, usual_env[i]) && !has_path(env, paths, usual_env[i]))
                        env[n++] = (char *)(uintptr_t)usual_env[i];
        for (size_t i = 0; request->network != network_NONE && i < ARRAY_LEN(proxy_env); i++)
                if (!has_variable(request, proxy_env[i].name))
                        env[n++] = arena_text(arena, "%s=%s", proxy_env[i].name, proxy_env[i].value);
        /*
         * These libraries start a thread for each core of the host, regardless of the share; 128 threads reach any pids
         * limit.
         */
        for (size_t i = 0; i < ARRAY_LEN(threads); i++)
                if (!has_variable(request, threads[i]))
                        env[n++] =
                                arena_text(arena, "%s=%" PRIu64, threads[i], (request->limits.cpu_milli + 999) / 1000);
        /* Each form of a call of pip asks this interpreter; with a network the real pip works. */
        if (request->network == network_NONE && launch->backend == &backend_native &&
                !has_variable(request, "PIP_PYTHON"))
                env[n++] = arena_text(arena, "PIP_PYTHON=" INSTALLS "/pip");
        for (size_t i = 0; i < request->env_n; i++)
                env[n++] = arena_text(arena, "%s=%s", request->env[i].name, request->env[i].value);
        launch->program.program.env = env;
        launch->program.program.env_n = n;
}

/* ---- the sandbox ---- */

static void build_argv(struct launch *launch)
{
        const struct run_request *request = &launch->request;
        struct buf options;
        buf_init(&options, 32 * KIB);
        buf_printf(&options, "value_max=%" PRIu64, request->limits.value_bytes);
        if (launch->compile_only)
                buf_printf(&options, ",compile_only=1");
        else if (launch->has_messages)
                buf_printf(&options, ",graded=1,alone=%d", launch->backend == &backend_native);
        else if (launch->ahead == image_DATA)
                buf_printf(&options, ",figures=1");
        if (launch->awaits)
                buf_printf(&options, ",awaits=1");
        if (HAS(request, run_request, prelude) && !launch->compile_only)
                buf_printf(&options, ",prelude=%s", launch->language->prelude);
        for (size_t i = 0; i < request->preload_n; i++)
                buf_printf(&options, "%s%s", i == 0 ? ",preload=" : ":", request->preload[i]);
        const char *file = arena_text(&launch->arena, SANDBOX_HOME "/%s", launch->main_file),
                   *list = arena_copy(&launch->arena, options.bytes, options.len);
        launch->program.program.argv = lang_argv(launch->language, launch->interpreter, &launch->arena, list, file,
                request->args, request->args_n, &launch->program.program.argv_n);
        buf_done(&options);
}

void launch_for_compiling(struct launch *launch)
{
        launch->compile_only = true;
        build_argv(launch);
}

/*
 * The task_id, reduced to characters of a path, and enough of the run's id to be unique.  Without a task_id the label
 * is the pooled instances' label: a reused cgroup then needs no new name.
 */
static char *build_label(struct launch *launch)
{
        char name[24];
        size_t n = 0;
        for (const char *c = HAS(&launch->request, run_request, task_id) ? launch->request.task_id : "";
                *c && n + 1 < sizeof name; c++)
                name[n++] = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ? *c : '_';
        name[n] = 0;
        return n ? arena_text(&launch->arena, "%s-%.12s", name, launch->id + 4)
                 : arena_text(&launch->arena, "%s", LAUNCH_LABEL);
}

static void build_sandbox(struct launch *launch)
{
        const struct run_request *request = &launch->request;
        const struct limits *limits = &request->limits;
        launch->shape = (struct wire_shape){
                .flags = (request->landlock == need_REQUIRE ? WIRE_LANDLOCK_REQUIRED : 0) |
                        (request->landlock == need_OFF ? WIRE_LANDLOCK_OFF : 0) |
                        (request->cgroup == cgroup_need_REQUIRE ? WIRE_CGROUP_REQUIRED : 0) |
                        (request->strict_proc ? WIRE_PROC_STRICT : 0) |
                        (request->network != network_NONE || launch->served ? WIRE_PROXY : 0) |
                        (launch_wants_tools(&request->tools) ? WIRE_TOOL_SOCKET : 0) |
                        (request->modules_n ? WIRE_MODULES : 0),
                .disk_bytes = limits->disk_bytes,
                .disk_files = limits->disk_files,
                .tmp_bytes = limits->tmp_bytes,
                .memory_bytes = limits->memory_bytes,
                .cpu_milli = limits->cpu_milli,
                .pids = limits->pids,
                .image_high = launch->image ? launch->image->high : 0,
                .image_low = launch->image ? launch->image->low : 0,
                .label = build_label(launch),
        };
        launch->program.limits = (struct wire_limits){
                .wall_ms = limits->wall_ms,
                .waiting_ms = launch->judged ? min_u64(JUDGED_WAITING * limits->wall_ms, JUDGED_WAITING_MAX_MS) : 0,
                .cpu_ms = limits->cpu_ms,
                .memory_bytes = limits->memory_bytes,
                .cpu_milli = limits->cpu_milli,
                .pids = limits->pids,
                .open_files = limits->open_files,
                .background_ms = limits->background_ms,
        };
        launch->program.stdin_bytes = request->stdin.bytes;
        launch->program.stdin_len = request->stdin.len;
}

static int check_network(const struct run_request *request, struct csn_error *err)
{
        struct csn_error why;
        if (request->network == network_ALLOW && !request->allow_n)
                return err_field(err, "/allow",
                        "network is \"allow\" and no host is named; give allow, such as example.org");
        if (request->network != network_ALLOW && request->allow_n)
                return err_field(err, "/network", "hosts are named in allow; that needs network \"allow\"");
        for (size_t i = 0; i < request->allow_n; i++)
                if (egress_check_rule(request->allow[i], &why) < 0)
                        return err_field(err, "/allow", "%s", why.text);
        return 0;
}

static int check_tools(const struct launch *launch, struct csn_error *err)
{
        if (!launch_wants_tools(&launch->request.tools))
                return 0;
        if (!launch->backend->has_sockets)
                return err_field(err, "/tools", "the backend %s has no way for tools; native and docker have one",
                        launch->backend->name);
        return 0;
}

/* Only the HTTP interface has storage, and knows the owners of kept files. */
static int check_storage(const struct launch *launch, struct csn_error *err)
{
        static const char why[] = "only the HTTP interface has that, for keys with the scope files";
        const struct run_request *request = &launch->request;
        if (launch->storage)
                return 0;
        if (HAS(request, run_request, workspace))
                return err_field(err, "/workspace", "workspaces: %s; use work_dir", why);
        for (size_t i = 0; i < request->exports_n; i++)
                if (!HAS(&request->exports[i], export_rule, path))
                        return err_field(err, "/exports", "an export without path is kept: %s; give path", why);
        for (size_t i = 0; i < request->files_n; i++)
                if (HAS(&request->files[i], input_file, id))
                        return err_field(err, "/files", "files by id: %s; give content or path", why);
        return 0;
}

/* A backend with interpreters of its own. */
static int check_elsewhere(const struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        if (request->stdin.len)
                return err_field(err, "/stdin", "with the backend %s a program has no standard input",
                        launch->backend->name);
        if (request->args_n)
                return err_field(err, "/args", "with the backend %s a program has no arguments", launch->backend->name);
        if (request->network == network_ALLOW)
                return err_field(err, "/network", "with the backend %s network is none or public",
                        launch->backend->name);
        return 0;
}

void launch_set_layers(struct launch *launch, const struct launch_layers *layers)
{
        launch->shape.python_layer_high = layers->python_high;
        launch->shape.python_layer_low = layers->python_low;
        launch->shape.node_layer_high = layers->node_high;
        launch->shape.node_layer_low = layers->node_low;
        launch->layer_folders = layers->folders;
        build_env(launch);
}

static int check_profile(const struct launch *launch, struct csn_error *err)
{
        const struct run_request *request = &launch->request;
        if (launch->builds || !HAS(request, run_request, profile) || !profile_is_internal(request->profile))
                return 0;
        return err_field(err, "/profile", "the profile %s is the engine's own; name another one of caisson profiles list",
                request->profile);
}

/* An empty program is a program; whether the text parses is for the runner to say, inside. */
int launch_prepare(struct launch *launch, struct csn_error *err)
{
        struct run_request *request = &launch->request;
        if (model_check_request(request, launch->local, err) < 0 || check_profile(launch, err) < 0)
                return -err->code;
        if (settings_apply(launch->settings, request, &launch->arena, err) < 0 || check_storage(launch, err) < 0)
                return -err->code;
        extract_program(launch);
        if (check_code(request, err) < 0 || check_network(request, err) < 0 || choose_language(launch, err) < 0 ||
                choose_name(launch, err) < 0)
                return -err->code;
        launch->backend = backend_find(request->backend);
        if (!launch->backend)
                return err_field(err, "/backend",
                        "there is no backend \"%.40s\"; known are native and host, and docker and e2b in the daemon",
                        request->backend);
        if (!launch->backend->has_runners && check_elsewhere(launch, err) < 0)
                return -err->code;
        if (launch->has_messages && launch->backend != &backend_native && launch->backend != &backend_host)
                return err_field(err, "/backend",
                        "gradings need sandboxes of this host, and the settings name the backend %s",
                        launch->backend->name);
        if (launch->backend == &backend_host && request->network != network_NONE)
                return err_field(err, "/network",
                        "the host backend has the host's own network; network has to be none");
        if (extras_check(launch, err) < 0)
                return -err->code;
        if (launch_find_image(launch, err) < 0 || check_tools(launch, err) < 0 || work_open(launch, err) < 0)
                return -err->code;
        build_env(launch);
        build_argv(launch);
        build_sandbox(launch);
        if (launch_find_volumes(launch, err) < 0 || launch_find_devices(launch, err) < 0)
                return -err->code;
        launch->program.request = request;
        launch->program.language = launch->language->name;
        if (launch->backend == &backend_host)
                launch_warn(launch, "host_backend",
                        "You are running LLM-generated code on your host. This could be potentially dangerous! Please "
                        "consider using a different code runner environment.");
        return 0;
}

void launch_init(struct launch *launch, const struct settings *settings, const struct language *added)
{
        *launch = (struct launch){
                .settings = settings, .added = added, .work_fd = -1, .work_temp_fd = -1, .image_hold = -1
        };
}

void launch_done(struct launch *launch)
{
        launch_close_work(launch);
        arena_done(&launch->arena);
}

json_t *launch_as_execution(const struct launch *launch)
{
        const struct run_request *request = &launch->request;
        json_t *json = json_pack("{s:I}", "value_max", (json_int_t)request->limits.value_bytes);
        if (request->svg)
                json_object_set_new(json, "svg", json_true());
        if (request->show_saved)
                json_object_set_new(json, "show_saved", json_true());
        if (request->quiet_errors)
                json_object_set_new(json, "quiet", json_true());
        if (HAS(request, run_request, cwd))
                json_object_set_new(json, "cwd", json_string(request->cwd));
        if (HAS(request, run_request, name))
                json_object_set_new(json, "name", json_string(request->name));
        json_t *env = json_object();
        for (size_t i = 0; HAS(request, run_request, env) && i < request->env_n; i++)
                json_object_set_new(env, request->env[i].name, json_string(request->env[i].value));
        if (json_object_size(env))
                json_object_set(json, "env", env);
        json_decref(env);
        return json;
}
