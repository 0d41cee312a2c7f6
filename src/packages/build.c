/*
 * One build of a layer.
 *
 *   waiting -> (probing ->) resolving -> downloading -> installing -> publishing
 *
 * Any step can fail; then a helper thread discards the files, the failure is remembered, and all queries are answered.
 */
#include "packages/packages_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_US 100000 /* between two attempts to get the lock from another process */
#define LOG_MAX 2000   /* bytes of the end of an installer's output in an error */

static struct loop *loop_of(const struct build *build)
{
        return engine_loop(build->packages->engine);
}

/* ---- the end ---- */

void layer_build_free(struct build *build)
{
        struct packages *packages = build->packages;
        for (struct build **at = &packages->builds; *at; at = &(*at)->next)
                if (*at == build) {
                        *at = build->next;
                        break;
                }
        packages->builds_n--;
        if (build->state != BUILD_WAITING)
                packages->running--;
        loop_untimer(loop_of(build), &build->timer);
        loop_untimer(loop_of(build), &build->step);
        worker_wait(engine_workers(packages->engine), &build->job);
        run_free(build->run);
        package_index_close(build->index);
        json_decref(build->lock);
        json_decref(build->locked.entries);
        json_decref(build->report);
        layers_abort(packages->layers, &build->staging);
        layers_unlock(packages->layers, build->hash, &build->lock_fd);
        arena_done(&build->arena);
        free(build);
}

static void on_discarded(struct job *job)
{
        if (!job->dropped)
                ((struct build *)job->owner)->over(job->owner);
}

static void discard(struct job *job)
{
        struct build *build = job->owner;
        layers_abort(build->packages->layers, &build->staging);
}

/* Only for lasting failures; a transient failure is not remembered. */
static void remember_failure(struct build *build)
{
        struct layer_failure failure = { 0 };
        struct csn_error err;
        snprintf(failure.code, sizeof failure.code, "%s", build->problem);
        snprintf(failure.text, sizeof failure.text, "%s", build->err.text);
        if (layers_remember_failure(build->packages->layers, build->hash, &failure, &err) < 0)
                log_text(LOG_WARN, "remember a failed build: %s", err.text);
}

void layer_build_fail(struct build *build, const char *problem, const char *fmt, ...)
{
        char text[sizeof build->err.text];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        if (build->err.code)
                return;
        err_field(&build->err, "/packages", "%s: %.400s", problem, text);
        build->err.code = CSN_E_SYSTEM;
        build->problem = problem;
        if (strcmp(problem, "build_failed") != 0)
                remember_failure(build);
        loop_untimer(loop_of(build), &build->timer);
        loop_untimer(loop_of(build), &build->step);
        if (build->run)
                run_cancel(build->run);
        build->state = BUILD_DISCARDING;
        build->job = (struct job){ .work = discard, .done = on_discarded, .owner = build };
        worker_submit(engine_workers(build->packages->engine), build->domain, &build->job);
}

static void fail_by(struct build *build, const struct csn_error *err)
{
        layer_build_fail(build, "build_failed", "%s", err->text);
}

static void on_late(struct timer *timer)
{
        struct build *build = timer->owner;
        layer_build_fail(build, "build_timeout", "the build took longer than packages.build_wall=%" PRIu64 " ms",
                build->packages->settings->packages.build_wall);
}

/* ---- build sandboxes ---- */

/* NULL for `image`: pip and npm are the host's. */
static struct run_request *new_run(struct build *build, const char *image, const char *program)
{
        build->run = run_new(build->packages->engine);
        struct run_request *request = run_request(build->run);
        struct arena *arena = run_arena(build->run);
        run_set_owner(build->run, build->domain);
        run_set_quota(build->run, &build->quota);
        run_set_charged(build->run);
        run_set_builds(build->run);
        run_set_unreviewed(build->run);
        SET(request, run_request, language, arena_text(arena, "%s", build->language->name));
        SET(request, run_request, image, arena_text(arena, "%s", image ? image : "system"));
        SET(request, run_request, code, ((struct bytes){ (char *)(uintptr_t)program, strlen(program) }));
        SET(request, run_request, profile, arena_text(arena, "build"));
        return request;
}

/* The last line written by the installer; without output the engine's error message. */
static const char *log_tail(struct build *build, const struct run_result *result)
{
        const struct bytes *text = &result->stderr;
        size_t from = text->len > LOG_MAX ? text->len - LOG_MAX : 0;
        char *tail = arena_copy(&build->arena, text->len ? text->bytes + from : "", text->len - from);
        if (!text->len && HAS(result, run_result, error) && result->error.message)
                tail = arena_text(&build->arena, "%.400s", result->error.message);
        log_text(LOG_DEBUG, "a build sandbox has written: %s", tail);
        /* The last line names the error; earlier lines lead up to the error. */
        for (size_t end = strlen(tail); end && (unsigned char)tail[end - 1] <= ' ';)
                tail[--end] = 0;
        char *line = strrchr(tail, '\n');
        tail = line ? line + 1 : tail;
        for (char *at = tail; *at; at++)
                if ((unsigned char)*at < ' ')
                        *at = ' ';
        return tail;
}

static bool went_well(const struct run_result *result)
{
        return result->status == status_COMPLETED && HAS(result, run_result, exit_code) && result->exit_code == 0;
}

/* The engine's message for a run refused or ended by the quota of CPU time; NULL: another end. */
static const char *quota_text(struct build *build, const struct run_result *result)
{
        const struct failure *error = &result->error;
        bool ended = HAS(error, failure, limit) && strcmp(error->limit, QUOTA_CPU) == 0;
        bool refused = HAS(error, failure, field) && strcmp(error->field, QUOTA_CPU) == 0;
        if (!HAS(result, run_result, error) || !(ended || refused))
                return NULL;
        return arena_text(&build->arena, "%.400s", error->message ? error->message : QUOTA_CPU);
}

/* The run of a build sandbox is over, and `quota` is its quota_text(). */
static void end_run(struct build *build, const char *quota)
{
        run_free(build->run);
        build->run = NULL;
        if (quota)
                layer_build_fail(build, "build_failed", "%s", quota);
}

/* The last line of standard output, as JSON; the caller owns the reference.  NULL: no such line. */
static json_t *last_line(const struct run_result *result)
{
        const struct bytes *out = &result->stdout;
        size_t end = out->len, from;
        while (end && out->bytes[end - 1] == '\n')
                end--;
        for (from = end; from && out->bytes[from - 1] != '\n'; from--)
                ;
        return end > from ? json_loadb(out->bytes + from, end - from, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

/* ---- publishing ---- */

static void publish(struct job *job)
{
        struct build *build = job->owner;
        struct layers *layers = build->packages->layers;
        int work = openat(build->staging.fd, "work", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        auto_fd work_fd = work;
        /* The second sandbox has filled work/tree; the staging's own tree is empty. */
        if (work_fd < 0 || unlinkat(build->staging.fd, "tree", AT_REMOVEDIR) < 0 ||
                renameat(work_fd, "tree", build->staging.fd, "tree") < 0) {
                err_set(&build->job_error, CSN_E_SYSTEM, errno, "%s has installed nothing", build->language->installer);
                return;
        }
        io_remove_tree(build->staging.fd, "work");
        fd_close(&build->staging.tree_fd);
        build->staging.tree_fd = openat(build->staging.fd, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (build->staging.tree_fd < 0) {
                err_set(&build->job_error, CSN_E_SYSTEM, errno, "open the new tree");
                return;
        }
        build->language->finish(build, build->staging.tree_fd);
        layers_commit(layers, &build->staging, &build->limits, &build->meta, &build->arena, build->layer,
                &build->job_error);
}

static void on_published(struct job *job)
{
        struct build *build = job->owner;
        struct csn_error err;
        if (job->dropped)
                return;
        if (build->job_error.code) {
                bool large = strcmp(build->job_error.field, "max_bytes") == 0 ||
                        strcmp(build->job_error.field, "max_files") == 0;
                layer_build_fail(build,
                        large                                          ? "too_large"
                                : build->job_error.code == CSN_E_INPUT ? "index_untrusted"
                                                                       : "build_failed",
                        "%s", build->job_error.text);
                return;
        }
        if (layers_remember_request(build->packages->layers, build->hash, build->layer, &err) < 0)
                log_text(LOG_WARN, "remember the layer of a request: %s", err.text);
        log_text(LOG_INFO, "built layer %s: %zu packages, %" PRIu64 " files, %" PRIu64 " bytes, %" PRIu64 " ms",
                build->layer, build->files_n, build->meta.files, build->meta.bytes,
                (clock_us() - build->begun_us) / 1000);
        build->over(build);
}

/* ---- installing ---- */

static void on_installed(void *owner, const struct run_result *result)
{
        struct build *build = owner;
        bool truncated = result->files_truncated, well = went_well(result) && !truncated;
        const char *tail = well ? "" : log_tail(build, result);
        const char *status = status_name(result->status);
        build->report = last_line(result);
        end_run(build, quota_text(build, result));
        if (build->err.code)
                return;
        if (truncated) {
                layer_build_fail(build, "too_large", "the packages have more files than packages.max_files=%" PRIu64
                                ", or files that are deeper than 32 folders",
                        build->packages->settings->packages.max_files);
                return;
        }
        if (!well) {
                layer_build_fail(build, "build_failed", "the run of %s has the status %s: %s",
                        build->language->installer, status, tail);
                return;
        }
        loop_untimer(loop_of(build), &build->timer);
        build->state = BUILD_PUBLISHING;
        build->job = (struct job){ .work = publish, .done = on_published, .owner = build };
        worker_submit(engine_workers(build->packages->engine), build->domain, &build->job);
}

int layer_build_write(int work_fd, const char *name, const char *text, size_t len, struct csn_error *err)
{
        auto_fd file = openat(work_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        return file < 0 || io_write_all(file, text, len) < 0 ? err_set(err, CSN_E_SYSTEM, errno, "write %s", name) : 0;
}

static void install(struct build *build)
{
        static const struct run_events events = { .done = on_installed };
        struct csn_error err;
        auto_fd work = openat(build->staging.fd, "work", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (work < 0 || build->language->write_lock(build, work, &err) < 0) {
                layer_build_fail(build, "build_failed", "the work folder cannot be written");
                return;
        }
        package_index_close(build->index);
        build->index = NULL;
        build->files_n = build->meta.key.lock_n;
        build->state = BUILD_INSTALLING;
        struct run_request *request = new_run(build, NULL, build->language->install);
        SET(request, run_request, work_dir, arena_text(run_arena(build->run), "%s", build->work_path));
        run_start(build->run, true, &events, build);
}

/* ---- downloading ---- */

static void download_next(struct build *build);

static void on_fetched(void *owner, int fd, uint64_t size, enum package_problem problem, const char *text)
{
        struct build *build = owner;
        char from[32], to[300];
        (void)size;
        if (build->err.code)
                return;
        if (fd < 0) {
                layer_build_fail(build, package_problem_name(problem), "%.200s: %s",
                        build->files[build->fetched]->filename, text);
                return;
        }
        snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
        snprintf(to, sizeof to, "work/files/%s", build->names[build->fetched]);
        if (linkat(AT_FDCWD, from, build->staging.fd, to, AT_SYMLINK_FOLLOW) < 0) {
                layer_build_fail(build, "build_failed", "keep the file %.200s: %s", build->files[build->fetched]->filename,
                        strerrordesc_np(errno));
                return;
        }
        build->fetched++;
        loop_timer(loop_of(build), &build->step, 0); /* not from here: the index must not be closed by its callback */
}

static void on_step(struct timer *timer)
{
        download_next(timer->owner);
}

static void download_next(struct build *build)
{
        if (build->fetched == build->files_n) {
                install(build);
                return;
        }
        package_index_download(build->index, build->files[build->fetched], on_fetched, build);
}

/* ---- judging ---- */

bool layer_build_take_files(struct build *build, size_t n)
{
        const struct packages_settings *settings = &build->packages->settings->packages;
        if (n > settings->max_count) {
                layer_build_fail(build, "too_many", "%zu packages are needed; packages.max_count=%" PRIu64, n,
                        settings->max_count);
                return false;
        }
        build->files = arena_alloc(&build->arena, (n + 1) * sizeof(void *));
        build->names = arena_alloc(&build->arena, (n + 1) * sizeof(void *));
        build->places = arena_alloc(&build->arena, (n + 1) * sizeof(void *));
        return true;
}

static char *text_of(struct build *build, const json_t *object, const char *name)
{
        const char *text = json_string_value(json_object_get(object, name));
        return arena_text(&build->arena, "%.60s", text ? text : "");
}

static void fill_meta(struct build *build, const json_t *report)
{
        const struct settings *settings = build->packages->settings;
        struct layer_package *lock = arena_alloc(&build->arena, (build->files_n + 1) * sizeof *lock);
        struct arena *arena = &build->arena;
        for (size_t i = 0; i < build->files_n; i++) {
                const struct package_file *file = build->files[i];
                char time[40] = "";
                if (file->upload_time_ms)
                        time_print(file->upload_time_ms, time, sizeof time);
                lock[i] = (struct layer_package){ .name = arena_text(arena, "%s", file->name),
                        .version = arena_text(arena, "%s", file->version),
                        .file = build->places[i],
                        .hash = arena_text(arena, "%s", file->hash),
                        .upload_time = arena_text(arena, "%s", time) };
        }
        build->meta = (struct layer_meta){ .pinned = package_set_is_pinned(&build->set),
                .warnings = build->warnings,
                .warnings_n = build->warnings_n,
                .key = { .domain = build->domain,
                        .language = build->language->name,
                        .runtime = build->runtime ? build->runtime : text_of(build, report, "runtime"),
                        .arch = build->arch ? build->arch : text_of(build, report, "arch"),
                        .libc = build->libc ? build->libc : text_of(build, report, "libc"),
                        .image = "host",
                        .index = build->language->url(settings),
                        .build = PACKAGES_BUILD_VERSION,
                        .lock = lock,
                        .lock_n = build->files_n } };
        build->limits = (struct layer_limits){ .max_bytes = settings->packages.max_bytes,
                .max_files = settings->packages.max_files };
}

/* Has another request built the same layer?  The lock decides, not the request. */
static bool is_built(struct build *build)
{
        struct csn_error err;
        struct layer layer;
        char id[LAYER_ID_MAX];
        layer_id(&build->meta.key, id);
        if (layers_find(build->packages->layers, id, &build->arena, &layer, NULL, &err) <= 0)
                return false;
        snprintf(build->layer, sizeof build->layer, "%s", id);
        if (layers_remember_request(build->packages->layers, build->hash, id, &err) < 0)
                log_text(LOG_WARN, "remember the layer of a request: %s", err.text);
        return true;
}

static bool stage(struct build *build)
{
        struct csn_error err;
        char *tree;
        if (layers_stage(build->packages->layers, &build->staging, &err) < 0) {
                fail_by(build, &err);
                return false;
        }
        tree = layers_staging_tree(build->packages->layers, &build->staging, &build->arena);
        build->work_path = arena_text(&build->arena, "%.*s/work", (int)(strrchr(tree, '/') - tree), tree);
        if (mkdirat(build->staging.fd, "work", 0755) < 0 || mkdirat(build->staging.fd, "work/files", 0755) < 0) {
                layer_build_fail(build, "build_failed", "make the work folder: %s", strerrordesc_np(errno));
                return false;
        }
        return true;
}

/* Explain a failed resolution: the index knows the hidden versions, the resolver does not. */
static void explain(struct build *build, const char *tail)
{
        const struct package_project *project;
        enum package_problem problem;
        const char *text;
        for (size_t i = 0; (project = package_index_project_at(build->index, i)); i++)
                if (project->is_loaded && project->problem != PACKAGE_FINE) {
                        layer_build_fail(build, package_problem_name(project->problem), "%s: %s", project->name,
                                project->text);
                        return;
                }
        problem = package_index_failure(build->index, &text);
        if (problem != PACKAGE_FINE) {
                layer_build_fail(build, package_problem_name(problem), "%s", text);
                return;
        }
        for (size_t i = 0; (project = package_index_project_at(build->index, i)); i++)
                if (project->is_loaded && project->text && project->text[0]) {
                        layer_build_fail(build, "version_conflict", "%s; %s: %s", tail, project->name, project->text);
                        return;
                }
        layer_build_fail(build, "version_conflict", "%s", tail);
}

/* ---- resolving ---- */

void layer_build_take_lock(struct build *build, json_t *report)
{
        json_t *lock = json_object_get(report, "lock");
        if (!build->language->judge(build, lock))
                return;
        if (!build->files_n) {
                layer_build_fail(build, "build_failed", "the resolver has answered with no lock");
                return;
        }
        fill_meta(build, report);
        if (is_built(build)) {
                build->over(build);
                return;
        }
        if (!stage(build))
                return;
        build->state = BUILD_DOWNLOADING;
        build->step = (struct timer){ .fired = on_step, .owner = build };
        download_next(build);
}

static void on_resolved(void *owner, const struct run_result *result)
{
        struct build *build = owner;
        const char *tail = log_tail(build, result);
        bool well = went_well(result);
        json_t *report = well ? last_line(result) : NULL;
        end_run(build, quota_text(build, result));
        if (build->index)
                package_index_stop_serving(build->index);
        if (!build->err.code && !build->index)
                layer_build_fail(build, "build_failed", "the build sandbox did not start: %s", tail);
        else if (!build->err.code && !report)
                explain(build, tail);
        else if (!build->err.code)
                layer_build_take_lock(build, report);
        json_decref(report);
}

bool layer_build_open_index(struct build *build, int listen_fd)
{
        const struct packages *packages = build->packages;
        const struct packages_settings *settings = &packages->settings->packages;
        struct csn_error err;
        size_t deny_n;
        char **deny = imports_split(settings->deny, &build->arena, &deny_n);
        const struct package_index_settings options = { .kind = build->language->kind,
                .url = build->language->url(packages->settings),
                .token = build->token,
                .trust = packages->trust,
                .spool_folder = layers_path(packages->layers),
                .min_age_ms = settings->min_age,
                .require_upload_time = settings->require_upload_time,
                .wheels_only = true,
                .deny = deny,
                .deny_n = deny_n,
                .max_bytes = settings->max_bytes,
                .share = build->domain };
        if (package_index_open(loop_of(build), engine_workers(packages->engine), listen_fd, &options, &build->index,
                    &err) < 0)
                fail_by(build, &err);
        return build->index;
}

static void serve_index(void *owner, int listen_fd)
{
        struct build *build = owner;
        if (build->index) /* a second sandbox for the same run: the first one was lost */
                fd_close(&listen_fd);
        else
                layer_build_open_index(build, listen_fd);
}

/* The runtime and the installer of a language; NULL: both are there. */
static const char *missing_file(const struct package_language *language)
{
        for (size_t i = 0; language->files[i]; i++)
                if (access(language->files[i], X_OK) < 0)
                        return language->files[i];
        return NULL;
}

static void resolve(struct build *build)
{
        static const struct run_events events = { .done = on_resolved };
        static const struct run_network network = { .serve = serve_index };
        const char *missing = missing_file(build->language);
        if (missing) {
                layer_build_fail(build, "build_failed", "this host has no %s; the administrator has to install %s", missing,
                        build->language->installer);
                return;
        }
        struct run_request *request = new_run(build, NULL, build->language->resolve);
        struct arena *arena = run_arena(build->run);
        char *text = build->language->input(build);
        request->files = arena_alloc(arena, sizeof *request->files);
        request->files_n = 1;
        MARK(request, run_request, files);
        SET(request->files, input_file, name, arena_text(arena, "%s", build->language->input_name));
        SET(request->files, input_file, content,
                ((struct bytes){ arena_copy(arena, text, strlen(text)), strlen(text) }));
        run_set_network(build->run, &network, build);
        run_start(build->run, true, &events, build);
}

/* ---- the runtime of an image, or of the host for a lock ---- */

static void on_probed(void *owner, const struct run_result *result)
{
        struct build *build = owner;
        const char *tail = log_tail(build, result);
        json_t *report = went_well(result) ? last_line(result) : NULL;
        bool same = !build->image ||
                (HAS(result, run_result, image) && strcmp(result->image.digest, build->image_digest) == 0);
        end_run(build, quota_text(build, result));
        if (!build->err.code && !same && report)
                layer_build_fail(build, "build_failed", "the image %s has changed meanwhile; try again", build->image);
        else if (!build->err.code && !report)
                layer_build_fail(build, "build_failed", "the interpreter of %s%s does not work: %s",
                        build->image ? "the image " : "this host", build->image ? build->image : "", tail);
        if (!build->err.code) {
                build->runtime = text_of(build, report, "runtime");
                build->arch = text_of(build, report, "arch");
                build->libc = text_of(build, report, "libc");
                build->state = BUILD_RESOLVING;
                if (build->set.lock)
                        build->language->resolve_lock(build);
                else
                        resolve(build);
        }
        json_decref(report);
}

static void probe(struct build *build)
{
        static const struct run_events events = { .done = on_probed };
        build->state = BUILD_PROBING;
        new_run(build, build->image, build->language->probe);
        run_start(build->run, true, &events, build);
}

/* ---- the beginning ---- */

static void on_poll(struct timer *timer)
{
        struct build *build = timer->owner;
        build->due(build);
}

/* Another process may have built the request while this one waited for the lock. */
static bool was_built(struct build *build)
{
        struct csn_error err;
        struct layer layer;
        uint64_t ttl = build->packages->settings->packages.cache_ttl;
        return layers_request(build->packages->layers, build->hash, ttl, build->layer, &err) > 0 &&
                layers_find(build->packages->layers, build->layer, &build->arena, &layer, NULL, &err) > 0;
}

void layer_build_begin(struct build *build)
{
        struct packages *packages = build->packages;
        struct csn_error err;
        int rc = layers_lock(packages->layers, build->hash, &build->lock_fd, &err);
        if (rc == 0) {
                build->timer = (struct timer){ .fired = on_poll, .owner = build };
                loop_timer(loop_of(build), &build->timer, POLL_US);
                return;
        }
        build->state = BUILD_RESOLVING;
        packages->running++;
        build->timer = (struct timer){ .fired = on_late, .owner = build };
        loop_timer(loop_of(build), &build->timer, packages->settings->packages.build_wall * 1000);
        if (rc < 0)
                fail_by(build, &err);
        else if (was_built(build))
                build->over(build);
        else if (build->image || build->set.lock)
                probe(build);
        else
                resolve(build);
}
