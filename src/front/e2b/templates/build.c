/* A build: its steps run in order, in a sandbox of its own; see build.h. */
#include "front/e2b/templates/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define REASON_MAX 1000

static const json_t *step_of(const struct build *build)
{
        return json_array_get(build->steps, build->at);
}

/* A step with its packages in a layer changes no file. */
static bool changes_files(const struct build *build, const json_t *step)
{
        return build_step_changes_files(step) && !build_step_packages(build->service->settings, step, NULL);
}

/* ---- log ---- */

__attribute__((format(printf, 3, 4))) static void note(struct build *build, const char *level, const char *fmt, ...)
{
        char text[2200];
        struct arena arena = { 0 };
        size_t len;
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        const char *clean = model_utf8(&arena, text, strlen(text), &len);
        build->log_bytes += len;
        if (json_array_size(build->log) < BUILD_LINES_MAX && build->log_bytes <= BUILD_LOG_BYTES)
                json_array_append_new(build->log,
                        json_pack("{s:o, s:s, s:s%}", "timestamp", e2b_time(time_now_ms()), "level", level, "message",
                                clean, len));
        arena_done(&arena);
}

static void note_step(struct build *build, bool cached)
{
        const json_t *step = step_of(build);
        char text[400];
        size_t len = 0;
        for (size_t i = 0; i < json_array_size(json_object_get(step, "args")) && len < sizeof text - 1; i++)
                if (build_step_arg(step, i)[0])
                        len += (size_t)snprintf(text + len, sizeof text - len, " %s", build_step_arg(step, i));
        if (!len)
                text[0] = 0;
        note(build, "info", "%s[builder %zu/%zu] %s%s", cached ? "CACHED " : "", build->at + 1,
                json_array_size(build->steps), e2b_text(step, "type"), text);
}

/* ---- end ---- */

static void rest(struct build *build)
{
        loop_untimer(build->service->loop, &build->deadline);
        start_stop(&build->start);
        build_command_stop(&build->build_command);
        psandbox_copy_done(&build->copy);
        psandbox_unwait(&build->ready);
        psandbox_unwait(&build->over);
        if (build->psandbox)
                psandbox_kill(build->psandbox);
        build->psandbox = NULL;
        e2b_close_file(build->service, build->tenant, &build->fd);
        e2b_image_unref(build->image);
        build->image = NULL;
        json_decref(build->steps);
        build->steps = NULL;
        free(build->keys);
        build->keys = NULL;
}

static void build_free(struct build *build)
{
        rest(build);
        json_decref(build->build_spec);
        json_decref(build->log);
        free(build->reason);
        free(build->step);
        free(build);
}

/* Saves the outcome in the template, unless the template was deleted. */
static void keep(struct build *build)
{
        struct csn_error err;
        json_t *template = template_store_find(build->service, build->tenant, build->template_id),
                *kept = template_store_build(template, build->id);
        if (kept) {
                json_object_set_new(kept, "status", json_string(build->state == BUILD_READY ? "ready" : "error"));
                if (build->state == BUILD_READY)
                        json_object_set(kept, "recipe", build->build_spec);
                else
                        json_object_set_new(kept, "reason", json_string(build->reason));
                json_object_set_new(template, "updatedAt", e2b_time(time_now_ms()));
                if (template_store_save(build->service, template, &err) < 0)
                        log_text(LOG_WARN, "%s", err.text);
        }
        json_decref(template);
}

__attribute__((format(printf, 2, 3))) static void fail(struct build *build, const char *fmt, ...)
{
        char text[REASON_MAX], step[24];
        struct arena arena = { 0 };
        size_t len;
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        if (!build->psandbox && build->at == 0 && build->needs_psandbox)
                snprintf(step, sizeof step, "base");
        else if (build->at == json_array_size(build->steps))
                snprintf(step, sizeof step, "finalize");
        else
                snprintf(step, sizeof step, "%zu", build->at + 1);
        const char *clean = model_utf8(&arena, text, strlen(text), &len);
        build->reason = mem_copy(clean, len);
        build->step = mem_copy(step, strlen(step));
        arena_done(&arena);
        note(build, "error", "Build failed: %s", build->reason);
        build->state = BUILD_ERROR;
        keep(build);
        rest(build);
}

static void succeed(struct build *build)
{
        json_object_set_new(build->build_spec, "layer", json_string(build->layer));
        note(build, "info", "Build finished");
        build->state = BUILD_READY;
        keep(build);
        rest(build);
}

static void on_late(struct timer *timer)
{
        struct build *build = timer->owner;
        fail(build, "the build took longer than the %llu ms of engine.build_ms",
             (unsigned long long)build->service->settings->engine.build_ms);
}

static void on_over(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct build *build = waiter->owner;
        (void)error;
        build->psandbox = NULL;
        fail(build, "the sandbox of the build has ended");
}

/* ---- a step ---- */

static void go_on(struct build *build);

static void step_done(struct build *build)
{
        build->at++;
        go_on(build);
}

static void on_saved(struct psandbox_copy *copy, const struct csn_error *error)
{
        struct build *build = copy->owner;
        struct csn_error err;
        psandbox_copy_done(copy);
        if (!error && template_store_name(build->service, TEMPLATE_STORE_LAYER, build->tenant, build->keys[build->at],
                                          build->fd, &err) < 0)
                error = &err;
        e2b_close_file(build->service, build->tenant, &build->fd);
        if (error) {
                fail(build, "%s", error->text);
                return;
        }
        snprintf(build->layer, sizeof build->layer, "%s", build->keys[build->at]);
        step_done(build);
}

static void save(struct build *build)
{
        struct csn_error err;
        build->fd = template_store_file(build->service, TEMPLATE_STORE_LAYER, &err);
        build->copy = (struct psandbox_copy){ .done = on_saved, .owner = build };
        if (build->fd < 0 || psandbox_save(build->psandbox, &build->copy, build->fd, &err) < 0)
                fail(build, "%s", err.text);
}

static void on_line(struct build_command *build_command, bool error, const char *text)
{
        struct build *build = build_command->owner;
        note(build, error ? "warn" : "info", "[builder %zu/%zu] [%s]: %s", build->at + 1, json_array_size(build->steps),
                error ? "stderr" : "stdout", text);
}

static void on_step(struct build_command *build_command, int status, const struct csn_error *error)
{
        struct build *build = build_command->owner;
        if (error)
                fail(build, "failed to run command '%.300s': %s", build_step_arg(step_of(build), 0), error->text);
        else if (!WIFEXITED(status))
                fail(build, "failed to run command '%.300s': signal %d", build_step_arg(step_of(build), 0),
                        WTERMSIG(status));
        else if (WEXITSTATUS(status))
                fail(build, "failed to run command '%.300s': exit status %d", build_step_arg(step_of(build), 0),
                        WEXITSTATUS(status));
        else
                save(build);
}

/* Account of helper commands: root if the sandbox has root. */
static int helper(const struct build *build)
{
        struct csn_error err;
        return psandbox_has_account(build->psandbox, account_ROOT, &err) == 0 ? account_ROOT : account_USER;
}

static void run(struct build *build)
{
        struct build_command_what what;
        struct csn_error err;
        char path[GUEST_PATH_MAX];
        build->build_command.line = on_line;
        build->build_command.done = on_step;
        build->build_command.owner = build;
        if (build_step_command(build->build_spec, step_of(build), helper(build), path, &what, &err) < 0 ||
            build_command_run(build->psandbox, &build->build_command, &what, &err) < 0)
                fail(build, "%s", err.text);
}

static void on_unpacked(struct psandbox_copy *copy, const struct csn_error *error)
{
        struct build *build = copy->owner;
        psandbox_copy_done(copy);
        e2b_close_file(build->service, build->tenant, &build->fd);
        if (error)
                fail(build, "failed to unpack the files of COPY %.300s: %s", build_step_arg(step_of(build), 0),
                        error->text);
        else
                run(build);
}

static void copy(struct build *build)
{
        const json_t *step = step_of(build);
        char key[BUILD_KEY_LEN + 1];
        struct csn_error err;
        const char *owner = build_step_arg(step, 2);
        int account;
        build_key(e2b_text(step, "filesHash"), key);
        build->fd = template_store_open(build->service, TEMPLATE_STORE_ARCHIVE, build->tenant, key);
        build->copy = (struct psandbox_copy){ .done = on_unpacked, .owner = build };
        if (!e2b_account(owner, &account))
                fail(build, "COPY for '%.60s': there are user and root", owner);
        else if (build->fd < 0)
                fail(build, "the files of COPY %.300s were not uploaded", build_step_arg(step, 0));
        else if (psandbox_unpack(build->psandbox, &build->copy, build->fd, BUILD_CONTEXT, &err) < 0)
                fail(build, "%s", err.text);
}

/* ---- sequence of steps ---- */

static void on_start_line(struct start *start, bool error, const char *text)
{
        note(start->owner, error ? "warn" : "info", "[start] [%s]: %s", error ? "stderr" : "stdout", text);
}

static void on_started(struct start *start, const struct csn_error *error)
{
        struct build *build = start->owner;
        error ? fail(build, "%s", error->text) : succeed(build);
}

static void finalize(struct build *build)
{
        struct csn_error err;
        if (!start_is_there(build->build_spec)) {
                succeed(build);
                return;
        }
        note(build, "info", "[finalize] %s; ready: %s", e2b_text(build->build_spec, "start"),
                e2b_text(build->build_spec, "ready"));
        build->start = (struct start){ .line = on_start_line, .done = on_started, .owner = build };
        if (start_begin(&build->start, build->service, build->psandbox, build->build_spec, true, &err) < 0)
                fail(build, "%s", err.text);
}

static void go_on(struct build *build)
{
        struct csn_error err;
        for (; build->at < json_array_size(build->steps); build->at++) {
                const json_t *step = step_of(build);
                bool cached = build->at < build->cached;
                note_step(build, cached && changes_files(build, step));
                if (build_step_packages(build->service->settings, step, NULL))
                        note(build, "info", "[builder %zu/%zu] the packages are in a layer, in each sandbox of the template",
                                build->at + 1, json_array_size(build->steps));
                if (build_step_apply(build->build_spec, step, &err) < 0) {
                        fail(build, "%s", err.text);
                        return;
                }
                if (!cached && changes_files(build, step)) {
                        strcmp(e2b_text(step, "type"), "COPY") == 0 ? copy(build) : run(build);
                        return;
                }
        }
        finalize(build);
}

static void on_loaded(struct psandbox_copy *copy, const struct csn_error *error)
{
        struct build *build = copy->owner;
        psandbox_copy_done(copy);
        e2b_close_file(build->service, build->tenant, &build->fd);
        if (error)
                fail(build, "%s", error->text);
        else
                go_on(build);
}

static void on_ready(struct psandbox_waiter *waiter, const struct csn_error *error)
{
        struct build *build = waiter->owner;
        struct csn_error err;
        if (error) {
                fail(build, "%s", error->text);
                return;
        }
        if (build->layer[0])
                build->fd = template_store_open(build->service, TEMPLATE_STORE_LAYER, build->tenant, build->layer);
        int from = build->layer[0] ? build->fd : build->image ? build->image->fd : -1;
        build->copy = (struct psandbox_copy){ .done = on_loaded, .owner = build };
        if (build->layer[0] && build->fd < 0)
                fail(build, "the files of an earlier step have gone; build it again");
        else if (from < 0)
                go_on(build);
        else if (psandbox_load(build->psandbox, &build->copy, from, &err) < 0)
                fail(build, "%s", err.text);
}

/* ---- start ---- */

/* Computes the key of the files after each step, and finds the steps with cached files. */
static void find_cached(struct build *build, const char *base, bool force)
{
        size_t n = json_array_size(build->steps), i;
        const json_t *step;
        const char *image = build->service->settings->images.e2b;
        struct arena text = { 0 };
        char last[BUILD_KEY_LEN + 1];
        build->keys = mem_alloc((n + 1) * sizeof *build->keys);
        /* Files left by a step in another image do not fit. */
        build_key(strcmp(image, "system") == 0 ? base : arena_text(&text, "%s %s", base, image), last);
        arena_done(&text);
        json_array_foreach(build->steps, i, step) {
                char *args = json_dumps(json_object_get(step, "args"), JSON_COMPACT);
                struct arena arena = { 0 };
                build_key(arena_text(&arena, "%s %s %s %s", last, e2b_text(step, "type"), args ? args : "",
                                  e2b_text(step, "filesHash")),
                        build->keys[i]);
                snprintf(last, sizeof last, "%s", build->keys[i]);
                arena_done(&arena);
                free(args);
                force = force || json_is_true(json_object_get(step, "force"));
                if (changes_files(build, step) && !force && template_store_has(build->service, TEMPLATE_STORE_LAYER,
                                                                        build->tenant, last)) {
                        build->cached = i + 1;
                        snprintf(build->layer, sizeof build->layer, "%s", last);
                }
        }
        build->needs_psandbox = start_is_there(build->build_spec) ||
                json_array_size(json_object_get(build->build_spec, "packages"));
        for (i = build->cached; i < n; i++)
                build->needs_psandbox = build->needs_psandbox || changes_files(build, json_array_get(build->steps, i));
}

/* Images close to the template `base`, which stands in for each image. */
static bool is_image(const char *name)
{
        static const char *const known[] = { "e2bdev/base", "e2bdev/code-interpreter", "debian", "ubuntu", "python",
                "node", "buildpack-deps" };
        size_t prefix = strncmp(name, "docker.io/", 10) == 0 ? 10 : 0;
        prefix += strncmp(name + prefix, "library/", 8) == 0 ? 8 : 0;
        size_t len = strcspn(name + prefix, ":@");
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                if (strlen(known[i]) == len && memcmp(known[i], name + prefix, len) == 0)
                        return true;
        return false;
}

/* Puts the packages of the base and of all steps into the build spec: the sandbox has all from its start. */
static void name_packages(struct build *build, json_t *of_base)
{
        json_t *packages = json_is_array(of_base) ? json_copy(of_base) : json_array();
        const json_t *step;
        size_t i;
        json_array_foreach(build->steps, i, step) {
                build_step_packages(build->service->settings, step, packages);
        }
        if (json_array_size(packages))
                json_object_set(build->build_spec, "packages", packages);
        json_decref(packages);
}

/* Starts the build spec from the base template; *ret_key identifies the base in keys of layers. */
static int find_base(struct build *build, const json_t *body, const char **ret_key, struct arena *arena,
        struct csn_error *err)
{
        const char *from = e2b_text(body, "fromTemplate"), *image = e2b_text(body, "fromImage");
        const struct e2b_template *template = e2b_template_named("base");
        json_t *build_spec = NULL;
        if (from[0] && e2b_template_find(build->service, build->tenant, from, &template, &build->image, &build_spec,
                                         err) < 0)
                return -err->code;
        struct stat st = { 0 };
        if (build->image)
                fstat(build->image->fd, &st);
        *ret_key = arena_text(arena, "%s %s %s %llu %lld.%09ld", build->tenant, template->name,
                build_spec ? e2b_text(build_spec, "buildID") : "", (unsigned long long)st.st_ino,
                (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        json_t *env = build_spec ? json_deep_copy(json_object_get(build_spec, "env")) : json_object();
        build->build_spec = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:s, s:s}", "templateID",
                build->template_id, "name", "", "buildID", build->id, "base", template->name, "layer", "", "env", env,
                "user", build_spec ? e2b_text(build_spec, "user") : "user", "workdir",
                build_spec ? e2b_text(build_spec, "workdir") : "/home/user", "start", e2b_text(body, "startCmd"),
                "ready", e2b_text(body, "readyCmd"));
        if (build_spec && !start_is_there(build->build_spec)) {
                json_object_set(build->build_spec, "start", json_object_get(build_spec, "start"));
                json_object_set(build->build_spec, "ready", json_object_get(build_spec, "ready"));
        }
        if (build_spec)
                snprintf(build->layer, sizeof build->layer, "%s", e2b_text(build_spec, "layer"));
        name_packages(build, json_object_get(build_spec, "packages"));
        json_decref(build_spec);
        note(build, "info", "[base] FROM %s", from[0] ? from : image[0] ? image : "e2bdev/base");
        if (!from[0] && image[0] && strncmp(image, "e2bdev/", 7) != 0)
                note(build, "warn", "[base] there is no registry here: the base is the template base");
        return 0;
}

/* Why a base is unavailable; NULL: available, or not known yet. */
static const char *why_no_base(const json_t *body)
{
        const char *image = e2b_text(body, "fromImage");
        if (json_is_object(json_object_get(body, "fromImageRegistry")))
                return "there is no registry here; begin with e2bdev/base, or with a template";
        return image[0] && !is_image(image)
                ? "this image is not there, and there is no registry here; begin with e2bdev/base, debian, ubuntu, python or node, "
                  "which all are the template base"
                : NULL;
}

static void begin(struct build *build)
{
        const struct e2b_template *base = e2b_template_named(e2b_text(build->build_spec, "base"));
        json_t *env = json_object_get(build->build_spec, "env");
        struct csn_error err;
        if (!build->needs_psandbox) {
                go_on(build);
                return;
        }
        if (e2b_open_psandbox(build->service, build->tenant, &build->quota, base, build->build_spec, env, "build",
                    &build->psandbox, &err) < 0) {
                fail(build, "%s", err.text);
                return;
        }
        build->ready = (struct psandbox_waiter){ .done = on_ready, .owner = build };
        build->over = (struct psandbox_waiter){ .done = on_over, .owner = build };
        psandbox_wait(build->psandbox, PSANDBOX_WANTS_OVER, &build->over);
        psandbox_wait(build->psandbox, PSANDBOX_WANTS_READY, &build->ready);
}

static int make_room(struct service *service, const char *tenant, struct csn_error *err)
{
        struct build **oldest = NULL;
        size_t all = 0, own = 0;
        for (struct build **at = &e2b_of(service)->builds; *at; at = &(*at)->next) {
                all++;
                own += (*at)->state == BUILD_BUILDING && strcmp((*at)->tenant, tenant) == 0;
                oldest = (*at)->state == BUILD_BUILDING ? oldest : at;
        }
        if (own >= BUILDS_OWNER_MAX || (all >= BUILDS_MAX && !oldest))
                return err_set(err, CSN_E_BUSY, 0, "%zu builds of yours go on, and %d may: wait for one", own,
                        BUILDS_OWNER_MAX);
        if (all >= BUILDS_MAX) {
                struct build *gone = *oldest;
                *oldest = gone->next;
                build_free(gone);
        }
        return 0;
}

int build_begin(struct http_request *request, const json_t *template, const char *id, const json_t *body,
        struct csn_error *err)
{
        struct service *service = service_of(request);
        const char *tenant = request->tenant;
        struct http_limit limit;
        const char *key = "", *why = why_no_base(body);
        size_t commands = strlen(e2b_text(body, "startCmd")) + strlen(e2b_text(body, "readyCmd"));
        struct arena arena = { 0 };
        struct csn_error base;
        json_t *steps = json_object_get(body, "steps");
        if (build_steps_check(steps, err) < 0 || make_room(service, tenant, err) < 0 ||
                service_has_cpu_time(request, &limit, err) < 0)
                return -err->code;
        if (commands > BUILD_SPEC_BYTES)
                return err_field(err, "startCmd", "startCmd and readyCmd have %zu bytes, %llu are possible", commands,
                        BUILD_SPEC_BYTES);
        struct build *build = mem_alloc(sizeof *build);
        *build = (struct build){ .next = e2b_of(service)->builds,
                .service = service,
                .quota = service_quota(request),
                .steps = steps ? json_incref(steps) : json_array(),
                .log = json_array(),
                .fd = -1,
                .deadline = { .fired = on_late, .owner = build } };
        snprintf(build->tenant, sizeof build->tenant, "%s", tenant);
        snprintf(build->template_id, sizeof build->template_id, "%s", e2b_text(template, "id"));
        snprintf(build->id, sizeof build->id, "%s", id);
        e2b_of(service)->builds = build;
        loop_timer(service->loop, &build->deadline, service->settings->engine.build_ms * 1000);
        if (!why && find_base(build, body, &key, &arena, &base) < 0)
                why = base.text;
        if (why) {
                build->needs_psandbox = true;
                fail(build, "%s", why);
        } else {
                json_object_set(build->build_spec, "name", json_object_get(template, "name"));
                json_object_set(build->build_spec, "cpuCount", json_object_get(template, "cpuCount"));
                json_object_set(build->build_spec, "memoryMB", json_object_get(template, "memoryMB"));
                find_cached(build, key, json_is_true(json_object_get(body, "force")));
                begin(build);
        }
        arena_done(&arena);
        return 0;
}

struct build *build_find(const struct service *service, const char *tenant, const char *id)
{
        for (struct build *build = e2b_of(service)->builds; build; build = build->next)
                if (strcmp(build->id, id) == 0 && strcmp(build->tenant, tenant) == 0)
                        return build;
        return NULL;
}

void build_close(struct service *service)
{
        for (struct build *one = e2b_of(service)->builds, *next; one; one = next) {
                next = one->next;
                build_free(one);
        }
        e2b_of(service)->builds = NULL;
}
