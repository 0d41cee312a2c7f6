/* Queries for layers: an existing layer, a remembered failure, or a build, possibly queued. */
#include "packages/packages_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PRUNE_US 600000000ULL /* between two removals of expired layers */
#define FILE_MAX (4 * MIB)    /* of a token or certificate file */

/* ---- requests ---- */

static const struct package_language *const languages[PACKAGES_LANGUAGES] = { &packages_python, &packages_node };

/*
 * Size and time of runtime and installer, as part of the hash of a request: an upgrade changes the hash.  For a
 * language with a probe the image counts as well, as the runtime is the image's.
 */
static char *runtime_identity(const struct package_language *language, const struct stored_image *image,
        struct arena *arena)
{
        char *text = arena_text(arena, "%s", language->probe && image ? image->digest : "");
        for (size_t i = 0; language->files[i]; i++) {
                struct stat st = { 0 };
                if (stat(language->files[i], &st) == 0)
                        text = arena_text(arena, "%s%s%" PRIu64 ":%" PRId64, text, i ? " " : "", (uint64_t)st.st_size,
                                (int64_t)st.st_mtime);
        }
        return text;
}

/* The language of packages named without a language: the program's.  NULL: the program's language has no packages. */
static const struct package_language *own_language(const struct layer_query *query)
{
        const char *name = strcmp(query->language, "typescript") == 0 ? "javascript" : query->language;
        for (size_t i = 0; i < PACKAGES_LANGUAGES; i++)
                if (strcmp(languages[i]->name, name) == 0)
                        return languages[i];
        return NULL;
}

/* Whether an entry of the field packages is of a language; *text becomes the entry without the language's name. */
static bool is_of(const struct package_language *language, const struct layer_query *query, const char **text)
{
        const char *named = package_entry_language(text);
        return named ? strcmp(named, language->name) == 0 : own_language(query) == language;
}

static void add_warnings(struct layer_query *query, const struct warning *more, size_t more_n)
{
        struct warning *all = arena_alloc(query->arena, (query->warnings_n + more_n + 1) * sizeof *all);
        for (size_t i = 0; i < query->warnings_n + more_n; i++)
                all[i] = i < query->warnings_n ? query->warnings[i] : more[i - query->warnings_n];
        query->warnings = all;
        query->warnings_n += more_n;
}

static int check_count(const struct package_set *set, const struct packages_settings *settings, struct csn_error *err)
{
        return set->n <= settings->max_count
                ? 0
                : err_field(err, "/packages", "%zu packages are named; packages.max_count=%" PRIu64, set->n,
                          settings->max_count);
}

/* A text of requirements and a block of PEP 723 are of Python alone, and a lock is of Node alone. */
static int make_set(const struct packages *packages, const struct package_language *language, struct layer_query *query,
        const struct layer *pin, struct package_set *set, struct csn_error *err)
{
        const struct run_request *request = query->request;
        const struct packages_settings *settings = &packages->settings->packages;
        const bool is_own = own_language(query) == language, is_python = language == &packages_python;
        if (request->deps == deps_IMAGE)
                return 0;
        for (size_t i = 0; i < request->packages_n; i++) {
                const char *text = request->packages[i];
                if (is_of(language, query, &text) && package_set_add(set, text, "/packages", err) < 0)
                        return -err->code;
        }
        if (!is_python && HAS(request, run_request, lock)) {
                if (set->n)
                        return err_field(err, "/lock", "lock and packages of Node are named; give one of both");
                return lock_read(set, request->lock, err) < 0 ? -err->code : check_count(set, settings, err);
        }
        if (is_python && HAS(request, run_request, requirements) &&
                package_set_add_requirements(set, request->requirements, "/requirements", err) < 0)
                return -err->code;
        if (is_python && is_own && (request->packages_from_code || request->deps == deps_AUTO) &&
                package_set_add_script(set, request->code.bytes, request->code.len, err) < 0)
                return -err->code;
        if (is_own && request->deps == deps_AUTO) {
                const struct import_rules rules = { settings->allow, settings->deny, query->image, pin };
                struct warning *warnings;
                size_t n;
                if (packages_know_image(query->image, err) < 0)
                        return -err->code;
                imports_add(set, query->imports, query->imports_n, &rules, query->arena, &warnings, &n);
                add_warnings(query, warnings, n);
        }
        if (set->n && pin && named_add_pin(set, pin, err) < 0)
                return -err->code;
        return check_count(set, settings, err);
}

static void hash_request(const struct packages *packages, const struct package_language *language,
        const struct layer_query *query, struct package_set *set, char ret[static LAYER_HASH_MAX])
{
        struct buf text;
        buf_init(&text, 32 * MIB);
        buf_printf(&text, "%s\n%s\n%s\n%s\n%s\n%s%s", PACKAGES_BUILD_VERSION, query->owner_key, set->language,
                runtime_identity(language, query->image, set->arena), language->url(packages->settings),
                package_set_text(set), set->lock ? set->lock : "");
        files_sha256_bytes(text.bytes, text.len, ret);
        buf_done(&text);
}

/* 1: the layer of the request was built before.  0: a build is needed. */
static int use_remembered(struct packages *packages, struct layer_query *query, const struct package_set *set,
        const char *hash, struct csn_error *err)
{
        char id[LAYER_ID_MAX];
        struct layer layer;
        uint64_t ttl = package_set_is_pinned(set) ? INT64_MAX : packages->settings->packages.cache_ttl;
        int rc = layers_request(packages->layers, hash, ttl, id, err);
        if (rc <= 0)
                return rc;
        rc = layers_find(packages->layers, id, query->arena, &layer, &query->holds[query->uses_n], err);
        if (rc > 0)
                named_note(query, &layer, true, 0);
        return rc;
}

/* Another answer of the index, or more time, may help; everything else needs another request. */
static void note_problem(struct layer_query *query, const char *problem)
{
        query->problem = arena_text(query->arena, "%s", problem);
        query->retryable = strcmp(problem, "index_unreachable") == 0 || strcmp(problem, "build_timeout") == 0 ||
                strcmp(problem, "build_failed") == 0;
}

static int fail_remembered(struct packages *packages, struct layer_query *query, const char *hash,
        struct csn_error *err)
{
        struct layer_failure failure;
        int rc = layers_failure(packages->layers, hash, packages->settings->packages.negative_ttl, &failure, err);
        if (rc <= 0)
                return rc;
        note_problem(query, failure.code);
        err_field(err, "/packages", "%.440s", failure.text);
        return -(err->code = CSN_E_SYSTEM);
}

/* ---- pruning ---- */

static void prune(struct job *job)
{
        struct packages *packages = job->owner;
        struct layers_pruned pruned;
        struct csn_error err;
        const struct layers_prune_rules rules = { .max_bytes = packages->prune_bytes,
                .ttl_ms = packages->prune_ttl_ms,
                .now_ms = time_now_ms(),
                .kept = packages->prune_kept,
                .kept_n = packages->prune_kept_n };
        if (layers_prune(packages->layers, &rules, &pruned, &err) < 0)
                log_text(LOG_WARN, "remove expired layers: %s", err.text);
}

static void begin_prune(struct packages *packages)
{
        struct csn_error err;
        packages->prune_again = packages->prune.active;
        if (packages->prune.active)
                return;
        packages->prune_bytes = packages->settings->packages.cache_bytes;
        packages->prune_ttl_ms = packages->settings->packages.cache_ttl;
        arena_done(&packages->prune_arena);
        packages->prune_arena = (struct arena){ 0 };
        /* No layer is removed while the setting has an error. */
        if (image_pins(packages->settings->images.layers, NULL, &packages->prune_arena, &packages->prune_kept,
                    &packages->prune_kept_n, &err) < 0) {
                log_text(LOG_WARN, "no layers are removed: %s", err.text);
                loop_timer(engine_loop(packages->engine), &packages->pruning, PRUNE_US);
                return;
        }
        worker_submit(engine_workers(packages->engine), "packages", &packages->prune);
}

static void pruned(struct job *job)
{
        struct packages *packages = job->owner;
        if (job->dropped)
                return;
        if (packages->prune_again)
                begin_prune(packages);
        else
                loop_timer(engine_loop(packages->engine), &packages->pruning, PRUNE_US);
}

static void on_prune(struct timer *timer)
{
        begin_prune(timer->owner);
}

/* ---- builds ---- */

static void forget(void *owner, struct layer_query *query)
{
        struct build *build = query->build;
        (void)owner;
        if (!build)
                return;
        for (struct layer_query **at = &build->queries; *at; at = &(*at)->next)
                if (*at == query) {
                        *at = query->next;
                        break;
                }
        query->build = NULL;
}

static int find_next(struct packages *packages, struct layer_query *query, struct csn_error *err);

/* Look the layer up for each query: each query owns its texts and the descriptor holding the layer. */
static void answer(struct build *build, struct layer_query *query)
{
        struct packages *packages = build->packages;
        struct csn_error err = build->err;      /* all zeros without a failure */
        struct layer layer;
        uint64_t waited_ms = (clock_us() - query->asked_us) / 1000;
        query->build = NULL;
        if (!err.code &&
                layers_find(packages->layers, build->layer, query->arena, &layer, &query->holds[query->uses_n], &err) ==
                        0)
                err_set(&err, CSN_E_SYSTEM, 0,
                        "the new layer %s was removed at once; packages.cache_bytes is too small", build->layer);
        if (err.code && build->problem)
                note_problem(query, build->problem);
        if (!err.code) {
                named_note(query, &layer, false, waited_ms);
                if (find_next(packages, query, &err) == 0)
                        return;
        }
        query->done(query, err.code ? &err : NULL);
}

static void answer_all(struct build *build)
{
        while (build->queries) {
                struct layer_query *query = build->queries;
                build->queries = query->next;
                answer(build, query);
        }
}

/* The running builds of an owner; with `waiting`, queued builds, too. */
static size_t count_builds(const struct packages *packages, const char *owner_key, bool waiting)
{
        size_t n = 0;
        for (const struct build *build = packages->builds; build; build = build->next)
                n += (waiting || build->state != BUILD_WAITING) && strcmp(build->domain, owner_key) == 0;
        return n;
}

static void on_serve(struct timer *timer)
{
        struct packages *packages = timer->owner;
        for (struct build *build = packages->builds, *next; build; build = next) {
                next = build->next;
                if (packages->running >= PACKAGES_BUILDS_MAX)
                        return;
                if (build->state == BUILD_WAITING && !build->timer.active &&
                        count_builds(packages, build->domain, false) < PACKAGES_OWNER_BUILDS_MAX)
                        layer_build_begin(build);
        }
}

static void serve_later(struct packages *packages)
{
        loop_timer(engine_loop(packages->engine), &packages->serving, 0);
}

static void on_over(struct build *build)
{
        struct packages *packages = build->packages;
        bool published = build->state == BUILD_PUBLISHING;
        answer_all(build); /* the queries hold the new layer from here on */
        layer_build_free(build);
        if (published)
                begin_prune(packages);
        serve_later(packages);
}

static void on_due(struct build *build)
{
        serve_later(build->packages);
}

static const char *token_of(const struct packages *packages, const struct package_language *language)
{
        for (size_t i = 0; i < PACKAGES_LANGUAGES; i++)
                if (languages[i] == language)
                        return packages->tokens[i];
        return NULL;
}

static int join_build(struct packages *packages, const struct package_language *language, struct layer_query *query,
        const struct package_set *set, const char *hash, struct csn_error *err)
{
        struct build **at = &packages->builds;
        while (*at && strcmp((*at)->hash, hash) != 0)
                at = &(*at)->next;
        if (!*at && packages->builds_n == PACKAGES_WAITING_MAX)
                return err_set(err, CSN_E_BUSY, 0, "%d layers are being built or wait for their build; try again later",
                        PACKAGES_WAITING_MAX);
        if (!*at && count_builds(packages, query->owner_key, true) == PACKAGES_OWNER_WAITING_MAX)
                return err_set(err, CSN_E_BUSY, 0,
                        "%d layers of yours are being built or wait for their build; try again later",
                        PACKAGES_OWNER_WAITING_MAX);
        if (!*at) {
                struct build *build = mem_alloc(sizeof *build);
                *build = (struct build){ .packages = packages,
                        .lock_fd = -1,
                        .staging = LAYER_STAGING_NONE,
                        .begun_us = clock_us(),
                        .over = on_over,
                        .due = on_due };
                build->domain = arena_text(&build->arena, "%s", query->owner_key);
                build->quota = query->quota ? *query->quota : (struct run_quota){ 0 };
                build->language = language;
                build->token = token_of(packages, language);
                if (query->image && language->probe) {
                        build->image = arena_text(&build->arena, "%s", query->image->name);
                        build->image_digest = arena_text(&build->arena, "%s", query->image->digest);
                }
                build->set = (struct package_set){ .arena = &build->arena, .language = language->name };
                package_set_add_requirements(&build->set, package_set_text(set), "/packages", err);
                if (set->lock)
                        build->set.lock = arena_text(&build->arena, "%s", set->lock);
                snprintf(build->hash, sizeof build->hash, "%s", hash);
                *at = build;
                packages->builds_n++;
        }
        struct build *build = *at;
        query->build = build;
        query->asked_us = clock_us();
        query->next = build->queries;
        build->queries = query;
        serve_later(packages);
        return 0;
}

/* Does the request name packages of a language, judged without parsing the program? */
static bool names_packages(const struct package_language *language, const struct layer_query *query)
{
        const struct run_request *request = query->request;
        bool names = own_language(query) == language && request->deps == deps_AUTO;
        if (language == &packages_python)
                names = names || HAS(request, run_request, requirements) || request->packages_from_code;
        else
                names = names || HAS(request, run_request, lock);
        for (size_t i = 0; i < request->packages_n && !names; i++) {
                const char *text = request->packages[i];
                names = is_of(language, query, &text);
        }
        return names;
}

static void warn_off(struct layer_query *query, const char *text)
{
        struct warning warning = { 0 };
        SET(&warning, warning, code, arena_text(query->arena, "packages_not_installed"));
        SET(&warning, warning, text, arena_text(query->arena, "packages are recorded, not installed: %s", text));
        add_warnings(query, &warning, 1);
}

/* Find the layer of the packages named by the request.  1: the query has the layer; 0: the query waits. */
static int find_set(struct packages *packages, const struct package_language *language, struct layer_query *query,
        struct package_set *set, struct csn_error *err)
{
        char hash[LAYER_HASH_MAX];
        if (packages_fit_image(language, query->image, err) < 0)
                return -err->code;
        if (named_has(query, language))
                return err_field(err, "/packages", "a run has one layer of a language: give layers or packages");
        hash_request(packages, language, query, set, hash);
        int rc = use_remembered(packages, query, set, hash, err);
        if (rc == 0)
                rc = fail_remembered(packages, query, hash, err);
        return rc ? rc : join_build(packages, language, query, set, hash, err);
}

/*
 * The packages of a language.  1: the query has its layer or needs none; 0: the query waits.  A layer pinned to the
 * image is used unchanged, or its packages become part of the layer of the request.
 */
static int find_one(struct packages *packages, const struct package_language *language, struct layer_query *query,
        struct csn_error *err)
{
        struct package_set set = { .arena = query->arena, .language = language->name };
        struct layer pin;
        auto_fd hold = -1;
        const bool is_off = !language->url(packages->settings)[0];
        int pinned = named_has(query, language) ? 0 : named_find_pin(packages, language, query, &pin, &hold, err);
        if (pinned < 0)
                return pinned;
        if (is_off && names_packages(language, query))
                warn_off(query,
                        arena_text(query->arena, "the setting %s names no index; the image has to have the packages",
                                language->url_setting));
        if (!is_off && make_set(packages, language, query, pinned ? &pin : NULL, &set, err) < 0)
                return -err->code;
        if (set.n)
                return find_set(packages, language, query, &set, err);
        if (pinned) {
                query->holds[query->uses_n] = take_fd(&hold);
                named_note(query, &pin, true, 0);
        }
        return 1;
}

/* The languages in their order, one by one, because a query waits for a single build at a time. */
static int find_next(struct packages *packages, struct layer_query *query, struct csn_error *err)
{
        int rc = 1;
        while (rc > 0 && query->next_language < PACKAGES_LANGUAGES)
                rc = find_one(packages, languages[query->next_language++], query, err);
        return rc;
}

/* A program in Bash may be for both languages, so a name alone says too little. */
static void warn_unnamed(struct layer_query *query)
{
        const struct run_request *request = query->request;
        for (size_t i = 0; i < request->packages_n && !own_language(query); i++) {
                const char *text = request->packages[i];
                if (package_entry_language(&text))
                        continue;
                warn_off(query, "a program in this language has packages of Python or Node; name the language, such as "
                                "python:six or node:left-pad");
                return;
        }
}

static int find(void *owner, struct layer_query *query, struct csn_error *err)
{
        struct packages *packages = owner;
        int rc = named_use(packages, query, err);
        if (rc < 0)
                return rc;
        query->next_language = 0;
        warn_unnamed(query);
        return find_next(packages, query, err);
}

/* ---- life ---- */

void packages_free(struct packages *packages)
{
        if (!packages)
                return;
        layers_close(packages->layers);
        for (size_t i = 0; i < PACKAGES_LANGUAGES; i++) {
                if (packages->tokens[i])
                        explicit_bzero(packages->tokens[i], strlen(packages->tokens[i]));
                free(packages->tokens[i]);
        }
        package_trust_free(packages->trust);
        arena_done(&packages->prune_arena);
        free(packages);
}

static void end(void *owner)
{
        struct packages *packages = owner;
        loop_untimer(engine_loop(packages->engine), &packages->pruning);
        loop_untimer(engine_loop(packages->engine), &packages->serving);
        worker_wait(engine_workers(packages->engine), &packages->prune);
        while (packages->builds)
                layer_build_free(packages->builds);
        packages_free(packages);
}

/* A text file of the administrator.  *ret is the caller's, by malloc(3); NULL: no file is named. */
static int read_setting_file(const char *path, const char *setting, char **ret, struct csn_error *err)
{
        *ret = NULL;
        if (!path[0])
                return 0;
        char *text = mem_alloc(FILE_MAX + 1);
        ssize_t len = io_read_file(AT_FDCWD, path, text, FILE_MAX);
        if (len < 0 || len == FILE_MAX) {
                int sys = len < 0 ? errno : EFBIG;
                free(text);
                err_field(err, setting, "%s: %.200s cannot be read: %s", setting, path, strerrordesc_np(sys));
                return -(err->code = CSN_E_CONFIG);
        }
        text[len] = 0;
        *ret = text;
        return 0;
}

static int read_trust(const char *path, struct package_trust **ret, struct csn_error *err)
{
        struct csn_error why;
        char *pem = NULL;
        int rc = read_setting_file(path, "packages.ca_file", &pem, err);
        if (rc == 0 && pem && package_trust_new(pem, ret, &why) < 0) {
                err_field(err, "packages.ca_file", "packages.ca_file: %.200s: %.200s", path, why.text);
                rc = -(err->code = CSN_E_CONFIG);
        }
        free(pem);
        return rc;
}

int packages_prepare(const struct settings *settings, struct packages **ret, struct csn_error *err)
{
        struct packages *packages = mem_alloc(sizeof *packages);
        *packages = (struct packages){ .settings = settings };
        *ret = NULL;
        int rc = read_trust(settings->packages.ca_file, &packages->trust, err);
        for (size_t i = 0; i < PACKAGES_LANGUAGES && rc == 0; i++) {
                const struct package_language *language = languages[i];
                rc = read_setting_file(language->token_file(settings), language->token_setting, &packages->tokens[i],
                        err);
                if (packages->tokens[i])
                        packages->tokens[i][strcspn(packages->tokens[i], " \t\r\n")] = 0;
        }
        if (rc < 0) {
                packages_free(packages);
                return rc;
        }
        *ret = packages;
        return 0;
}

int packages_open(struct packages *packages, struct engine *engine, struct csn_error *err)
{
        static const struct layer_source source = { .find = find, .forget = forget, .end = end };
        struct arena texts = { 0 };
        packages->engine = engine;
        packages->prune = (struct job){ .work = prune, .done = pruned, .owner = packages };
        packages->pruning = (struct timer){ .fired = on_prune, .owner = packages };
        packages->serving = (struct timer){ .fired = on_serve, .owner = packages };
        int rc = layers_open(settings_layers_dir(packages->settings, &texts), &packages->layers, err);
        arena_done(&texts);
        if (rc < 0) {
                packages_free(packages);
                return rc;
        }
        loop_timer(engine_loop(engine), &packages->pruning, PRUNE_US);
        engine_set_layers(engine, &source, packages);
        return 0;
}
