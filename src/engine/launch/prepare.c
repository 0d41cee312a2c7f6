/* From a request to what a backend needs: the whole request, arguments, environment, input files; or to what an interpreter needs. */
#include "engine/run/run_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "sandbox/sandbox.h"

/* ---- language and program ---- */

static int choose_language(struct run *run, struct csn_error *err)
{
        const struct run_request *request = &run->request;
        if (HAS(request, run_request, language))
                return lang_find(engine_languages(run->engine), request->language, &run->language, err);
        if (!HAS(request, run_request, name))
                return err_field(err, "/language", "no language is given; give language");
        run->language = lang_of_file(engine_languages(run->engine), request->name);
        if (!run->language)
                return err_field(err, "/language", "no language is given, and the name \"%.60s\" does not tell one; give language", request->name);
        return 0;
}

static int check_code(const struct run_request *request, struct csn_error *err)
{
        return HAS(request, run_request, code) ? 0 : err_field(err, "/code", "there is no program; give code");
}

int run_check_needed(struct run *run, struct csn_error *err)
{
        const struct run_request *request = &run->request;
        const char *name = HAS(request, run_request, profile) ? request->profile : run->engine->settings->engine.profile;
        struct profile profile;
        if (check_code(request, err) < 0)
                return -err->code;
        if (HAS(request, run_request, language) || HAS(request, run_request, context))
                return 0;
        /* A profile that is not there is another fault. */
        if (profile_find(run->engine->settings, name, &run->arena, &profile, err) < 0 || HAS(&profile.request, run_request, language))
                return 0;
        return choose_language(run, err);
}

static int choose_name(struct run *run, struct csn_error *err)
{
        struct run_request *request = &run->request;
        struct csn_error why;
        run->main_file = HAS(request, run_request, name) ? request->name : run->language->file;
        if (strchr(run->main_file, '/') || wire_name_check(run->main_file, strlen(run->main_file), &why) < 0)
                return err_field(err, "/name", "\"%.60s\" cannot be the program's name: %s", run->main_file,
                                 strchr(run->main_file, '/') ? "it has a slash" : why.text);
        return 0;
}

/* ---- environment ---- */

#define PROXY_URL "http://127.0.0.1:3128"   /* WIRE_PROXY_PORT */
#define PROXY_NOT "localhost,127.0.0.1,::1,0.0.0.0"

/* What every program finds; a request's variables of the same name replace these. */
static const char *const usual_env[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin",
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
        "PYTHONUNBUFFERED=1",                    /* what was printed is not lost when the program is killed */
        NULL
};

const char *const *run_usual_env(void)
{
        return usual_env;
}

/* Both spellings, because programs look for either; and the switch that makes node's fetch look at all. */
static const struct pair proxy_env[] = {
        { "HTTP_PROXY", PROXY_URL },  { "http_proxy", PROXY_URL },  { "HTTPS_PROXY", PROXY_URL },
        { "https_proxy", PROXY_URL }, { "NO_PROXY", PROXY_NOT },    { "no_proxy", PROXY_NOT },
        { "NODE_USE_ENV_PROXY", "1" },
};

/* For programs that are started inside; a runner looks for the first, and gives its own program the rest. */
static const char *const tools_env[] = {
        "CAISSON_TOOLS=" WIRE_TOOL_SOCKET_PATH,
        "PATH=/usr/local/bin:/usr/bin:/bin" TOOLS_PATH,
        "PYTHONPATH=/opt/caisson/tools/python",
        "NODE_PATH=/opt/caisson/tools/node",
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

static void build_env(struct run *run)
{
        static const char *const threads[] = { "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS" };
        const struct run_request *request = &run->request;
        struct arena *arena = &run->arena;
        bool tools = tool_session_wanted(&request->tools);
        char **env = arena_alloc(arena, (ARRAY_LEN(usual_env) + ARRAY_LEN(tools_env) + ARRAY_LEN(proxy_env) + ARRAY_LEN(threads) + request->env_n + 1) * sizeof *env);
        size_t n = 0;
        for (size_t i = 0; tools && i < ARRAY_LEN(tools_env); i++)
                if (!has_variable(request, tools_env[i]))
                        env[n++] = (char *)(uintptr_t)tools_env[i];
        for (size_t i = tools; usual_env[i]; i++)      /* the first is PATH, and with tools it is another */
                if (!has_variable(request, usual_env[i]))
                        env[n++] = (char *)(uintptr_t)usual_env[i];
        for (size_t i = 0; request->network != network_NONE && i < ARRAY_LEN(proxy_env); i++)
                if (!has_variable(request, proxy_env[i].name))
                        env[n++] = arena_text(arena, "%s=%s", proxy_env[i].name, proxy_env[i].value);
        /* These libraries start a thread for each core of the host, whatever the share; 128 of them hit any pids limit. */
        for (size_t i = 0; i < ARRAY_LEN(threads); i++)
                if (!has_variable(request, threads[i]))
                        env[n++] = arena_text(arena, "%s=%" PRIu64, threads[i], (request->limits.cpu_milli + 999) / 1000);
        for (size_t i = 0; i < request->env_n; i++)
                env[n++] = arena_text(arena, "%s=%s", request->env[i].name, request->env[i].value);
        run->what.program.env = env;
        run->what.program.env_n = n;
}

/* ---- input files ---- */

int run_open_input(void *owner, size_t i, struct wire_file *ret_file, int *ret_fd, struct csn_error *err)
{
        struct run *run = owner;
        const struct run_input *input = &run->inputs[i];
        *ret_fd = -1;
        *ret_file = (struct wire_file){ .mode = input->mode, .name = (char *)(uintptr_t)input->name };
        if (!input->path && !input->id && input->content.len <= WIRE_INLINE_MAX) {
                ret_file->content = input->content.bytes ? input->content.bytes : "";
                ret_file->content_len = input->content.len;
        } else if (input->id) {
                char *name;
                return run->storage->open(run->run_storage_owner, input->id, &run->arena, &name, ret_fd, err);
        } else if (input->path) {
                /* Opened again here, one at a time: there may be more inputs than descriptors. */
                *ret_fd = input->work ? files_open_input(run->work_fd, input->name)
                                      : open(input->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
                if (*ret_fd < 0)
                        return err_set(err, CSN_E_INPUT, errno, "open the input file %s", run->entered ? input->name : input->path);
        } else {
                *ret_fd = io_memfd("input", input->content.bytes, input->content.len);
                if (*ret_fd < 0)
                        return err_set(err, CSN_E_SYSTEM, errno, "hold the input file %s", input->name);
        }
        return 0;
}

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash ? slash + 1 : path;
}

/* Size and hash of an input, which also shows that it can be read and is a file. */
static int examine_input(struct run *run, size_t i, uint64_t *left, struct csn_error *err)
{
        const struct run_input *input = &run->inputs[i];
        struct file_input *digest = &run->digests[i];
        struct wire_file file;
        struct stat st;
        int opened = -1;
        bool fits = true;
        digest->name = input->name;
        digest->size = input->content.len;
        if (input->path || input->id) {
                if (run_open_input(run, i, &file, &opened, err) < 0)
                        return -err->code;
                auto_fd fd = opened;
                if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                        return err_field(err, "/files", "%s is not a regular file", input->name);
                fits = (uint64_t)st.st_size <= *left && files_sha256(fd, *left, digest->sha256, &digest->size) == 0;
        } else if (digest->size <= *left) {
                files_sha256_bytes(input->content.bytes, input->content.len, digest->sha256);
        } else {
                fits = false;
        }
        if (!fits)
                return err_field(err, "/files", "the input files are together larger than input_bytes=%" PRIu64 " or disk_bytes=%" PRIu64
                                                " allow; %s does not fit", run->request.limits.input_bytes,
                                 run->request.limits.disk_bytes, input->name);
        *left -= digest->size;
        return 0;
}

/* What a file is called that has no name of its own here. */
static int name_of_kept(struct run *run, const struct input_file *file, const char **ret, struct csn_error *err)
{
        char *name;
        int opened = -1;
        if (!file->id) {
                *ret = last_part(file->path);
                return 0;
        }
        if (run->storage->open(run->run_storage_owner, file->id, &run->arena, &name, &opened, err) < 0)
                return -err->code;
        fd_close(&opened);
        *ret = name;
        return 0;
}

static int add_request_files(struct run *run, struct csn_error *err)
{
        const struct run_request *request = &run->request;
        for (size_t i = 0; i < request->files_n; i++) {
                const struct input_file *file = &request->files[i];
                struct run_input *input = &run->inputs[run->inputs_n++];
                struct csn_error why;
                const char *name = file->name;
                if (!HAS(file, input_file, name) && name_of_kept(run, file, &name, err) < 0)
                        return -err->code;
                *input = (struct run_input){ .name = name, .path = file->path, .id = file->id,
                                             .content = file->content, .mode = 0644 };
                if (wire_name_check(input->name, strlen(input->name), &why) < 0)
                        return err_field(err, "/files", "\"%.80s\" cannot be the name of an input file: %s", input->name, why.text);
        }
        return 0;
}

static int check_names(const struct run *run, struct csn_error *err)
{
        for (size_t i = 0; i < run->inputs_n; i++)
                for (size_t k = 0; k < i; k++)
                        if (strcmp(run->inputs[i].name, run->inputs[k].name) == 0)
                                return err_field(err, k == 0 ? "/name" : "/files", "two input files have the name %s%s", run->inputs[i].name,
                                                 k == 0 ? ", which is the program's; give the program another" : "");
        return 0;
}

/* The files of a work folder come last, so that what the request itself brings wins. */
static int add_work_files(struct run *run, struct csn_error *err)
{
        struct file_rules rules = { .files_max = run->request.limits.disk_files, .time_ms = 30000 };
        struct file_list list;
        if (run->work_fd < 0)
                return 0;
        if (files_list(run->work_fd, &rules, &run->arena, &list, err) < 0)
                return -err->code;
        if (list.truncated)
                return err_field(err, run->entered ? "/workspace" : "/work_dir", "the folder has more files than disk_files=%" PRIu64 " allows",
                                 run->request.limits.disk_files);
        struct run_input *all = arena_alloc(&run->arena, (run->inputs_n + list.n + 1) * sizeof *all);
        memcpy(all, run->inputs, run->inputs_n * sizeof *all);
        run->inputs = all;
        for (size_t i = 0; i < list.n; i++) {
                bool known = wire_name_check(list.files[i].name, strlen(list.files[i].name), NULL) < 0;
                for (size_t k = 0; k < run->inputs_n && !known; k++)
                        known = strcmp(all[k].name, list.files[i].name) == 0;
                if (!known)
                        all[run->inputs_n++] = (struct run_input){ .name = list.files[i].name, .mode = 0644, .work = true,
                                .path = run->entered ? list.files[i].name : arena_text(&run->arena, "%s/%s", run->work_dir, list.files[i].name) };
        }
        return 0;
}

static int gather_inputs(struct run *run, struct csn_error *err)
{
        const struct run_request *request = &run->request;
        uint64_t left = min_u64(request->limits.input_bytes, request->limits.disk_bytes);
        run->inputs = arena_alloc(&run->arena, (1 + request->files_n) * sizeof *run->inputs);
        run->inputs[run->inputs_n++] = (struct run_input){ .name = run->main_file, .content = request->code, .mode = 0444,
                                                           .hidden = true };
        if (add_request_files(run, err) < 0 || check_names(run, err) < 0 || add_work_files(run, err) < 0)
                return -err->code;
        if (run->inputs_n > WIRE_FILES_MAX)
                return err_field(err, "/files", "%zu input files; at most %d are possible", run->inputs_n, WIRE_FILES_MAX);
        run->digests = arena_alloc(&run->arena, run->inputs_n * sizeof *run->digests);
        for (size_t i = 0; i < run->inputs_n; i++)
                if (examine_input(run, i, &left, err) < 0)
                        return -err->code;
        return 0;
}

/* ---- the sandbox ---- */

static void build_argv(struct run *run)
{
        const struct run_request *request = &run->request;
        struct buf options;
        buf_init(&options, 32 * KIB);
        buf_printf(&options, "value_max=%" PRIu64, request->limits.value_bytes);
        if (run->compile_only)
                buf_printf(&options, ",compile_only=1");
        else if (run->has_messages)
                buf_printf(&options, ",graded=1,alone=%d", run->backend == &backend_native);
        else if (request->image == image_DATA)
                buf_printf(&options, ",figures=1");
        for (size_t i = 0; i < request->preload_n; i++)
                buf_printf(&options, "%s%s", i == 0 ? ",preload=" : ":", request->preload[i]);
        const char *file = arena_text(&run->arena, SANDBOX_HOME "/%s", run->main_file), *list = arena_copy(&run->arena, options.bytes, options.len);
        run->what.program.argv = lang_argv(run->language, &run->arena, list, file, request->args, request->args_n, &run->what.program.argv_n);
        buf_done(&options);
}

void run_prepare_compile(struct run *run)
{
        run->compile_only = true;
        build_argv(run);
}

/*
 * The caller's name of the run, as far as it can stand in a path, and enough of ours to be unique.  One without a name is called as
 * all that wait are: then a cgroup that is used again needs no new name.
 */
static char *build_label(struct run *run)
{
        char name[24];
        size_t n = 0;
        for (const char *c = HAS(&run->request, run_request, task_id) ? run->request.task_id : ""; *c && n + 1 < sizeof name; c++)
                name[n++] = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ? *c : '_';
        name[n] = 0;
        return n ? arena_text(&run->arena, "%s-%.12s", name, run->id + 4) : arena_text(&run->arena, "%s", POOL_LABEL);
}

static void build_sandbox(struct run *run)
{
        const struct run_request *request = &run->request;
        const struct limits *limits = &request->limits;
        run->shape = (struct wire_shape){
                .flags = (request->landlock == need_REQUIRE ? WIRE_LANDLOCK_REQUIRED : 0) |
                         (request->landlock == need_OFF ? WIRE_LANDLOCK_OFF : 0) |
                         (request->cgroup == cgroup_need_REQUIRE ? WIRE_CGROUP_REQUIRED : 0) |
                         (request->strict_proc ? WIRE_PROC_STRICT : 0) | (request->network != network_NONE ? WIRE_PROXY : 0) |
                         (tool_session_wanted(&request->tools) ? WIRE_TOOL_SOCKET : 0),
                .disk_bytes = limits->disk_bytes,
                .disk_files = limits->disk_files,
                .tmp_bytes = limits->tmp_bytes,
                .memory_bytes = limits->memory_bytes,
                .cpu_milli = limits->cpu_milli,
                .pids = limits->pids,
                .label = build_label(run),
        };
        run->what.limits = (struct wire_limits){
                .wall_ms = limits->wall_ms,
                .waiting_ms = run->judged ? min_u64(JUDGED_WAITING * limits->wall_ms, JUDGED_WAITING_MAX_MS) : 0,
                .cpu_ms = limits->cpu_ms,
                .memory_bytes = limits->memory_bytes,
                .cpu_milli = limits->cpu_milli,
                .pids = limits->pids,
                .open_files = limits->open_files,
                .background_ms = limits->background_ms,
        };
        run->what.files_n = run->inputs_n;
        run->what.file = run_open_input;
        run->what.owner = run;
        run->what.stdin_fd = -1;
}

static int check_network(const struct run_request *request, struct csn_error *err)
{
        struct csn_error why;
        if (request->network == network_ALLOW && !request->allow_n)
                return err_field(err, "/allow", "network is \"allow\" and no host is named; give allow, such as example.org");
        if (request->network != network_ALLOW && request->allow_n)
                return err_field(err, "/network", "hosts are named in allow; that needs network \"allow\"");
        for (size_t i = 0; i < request->allow_n; i++)
                if (egress_check_rule(request->allow[i], &why) < 0)
                        return err_field(err, "/allow", "%s", why.text);
        return 0;
}

static int check_tools(const struct run *run, struct csn_error *err)
{
        if (!tool_session_wanted(&run->request.tools))
                return 0;
        if (run->backend != &backend_native)
                return err_field(err, "/tools", "the backend %s has no way for tools; they need the native one", run->backend->name);
        return 0;
}

/* Who keeps files for others knows whose they are, and nobody else can. */
static int check_storage(const struct run *run, struct csn_error *err)
{
        static const char why[] = "only the HTTP interface has that, for keys with the scope files";
        const struct run_request *request = &run->request;
        if (run->storage)
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

static bool is_elsewhere(const struct run *run)
{
        return run->backend != &backend_native && run->backend != &backend_host;
}

/* What cannot be had where there are interpreters of others. */
static int check_elsewhere(const struct run *run, struct csn_error *err)
{
        const struct run_request *request = &run->request;
        if (request->stdin.len)
                return err_field(err, "/stdin", "with the backend %s a program has no standard input", run->backend->name);
        if (request->args_n)
                return err_field(err, "/args", "with the backend %s a program has no arguments", run->backend->name);
        if (request->network == network_ALLOW)
                return err_field(err, "/network", "with the backend %s network is none or public", run->backend->name);
        if (run->has_messages)
                return err_field(err, "/backend", "gradings need sandboxes of this host, and the settings name the backend %s", run->backend->name);
        return 0;
}

/* An empty program is a program; whether the text parses is for the runner to say, inside. */
int run_prepare(struct run *run, struct csn_error *err)
{
        struct run_request *request = &run->request;
        if (model_check_request(request, run->local, err) < 0)
                return -err->code;
        if (settings_apply(run->engine->settings, request, &run->arena, err) < 0 || check_storage(run, err) < 0)
                return -err->code;
        if (check_code(request, err) < 0 || check_network(request, err) < 0 || choose_language(run, err) < 0 || choose_name(run, err) < 0)
                return -err->code;
        run->backend = backend_find(request->backend);
        if (!run->backend)
                return err_field(err, "/backend", "there is no backend \"%.40s\"; known are native and host, and e2b in the daemon", request->backend);
        if (is_elsewhere(run) && check_elsewhere(run, err) < 0)
                return -err->code;
        if (run->backend == &backend_host && request->network != network_NONE)
                return err_field(err, "/network", "the host backend has the host's own network; network has to be none");
        if (check_tools(run, err) < 0 || work_open(run, err) < 0 || gather_inputs(run, err) < 0)
                return -err->code;
        build_env(run);
        build_argv(run);
        build_sandbox(run);
        run->what.request = request;
        run->what.language = run->language->name;
        if (request->packages_n && !is_elsewhere(run))
                run_warn(run, "packages_not_installed", "packages are checked and recorded, not installed: the image has to have them");
        if (run->backend == &backend_host)
                run_warn(run, "host_backend", "You are running LLM-generated code on your host. This could be potentially dangerous! Please "
                                              "consider using a different code runner environment.");
        return 0;
}

json_t *run_as_execution(const struct run *run)
{
        const struct run_request *request = &run->request;
        size_t len;
        struct arena arena = { 0 };
        const char *code = model_utf8(&arena, request->code.bytes, request->code.len, &len);
        json_t *json = json_pack("{s:s%, s:I}", "code", code, len, "value_max", (json_int_t)request->limits.value_bytes);
        arena_done(&arena);
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
