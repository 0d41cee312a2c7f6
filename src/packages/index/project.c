/* Projects: their documents, and the offered files; see index_private.h. */
#include "packages/index/index_private.h"

#include <stdio.h>

/* ---- the document of a project ---- */

static void counts_add(struct package_counts *sum, const struct package_counts *counts)
{
        sum->offered += counts->offered;
        sum->hidden_by_age += counts->hidden_by_age;
        sum->hidden_without_time += counts->hidden_without_time;
        sum->hidden_by_kind += counts->hidden_by_kind;
        sum->hidden_yanked += counts->hidden_yanked;
        sum->hidden_without_hash += counts->hidden_without_hash;
}

static void project_finish(struct project *project)
{
        struct package_project *info = &project->info;
        project->state = PROJECT_LOADED;
        info->is_loaded = true;
        info->problem = project->document.problem;
        info->text = project->document.text;
        info->counts = project->document.counts;
        counts_add(&project->index->usage.counts, &info->counts);
        waiters_call(&project->waiters);
}

static void project_refuse(struct project *project, enum package_problem problem, const char *text)
{
        document_refuse(&project->document, problem, text);
        project_finish(project);
}

static void on_parse(struct job *job)
{
        struct project *project = job->owner;
        document_make(&project->rules, project->format, project->raw.len ? project->raw.bytes : "", project->raw.len,
                &project->document);
        buf_done(&project->raw);
}

static void on_parsed(struct job *job)
{
        struct project *project = job->owner;
        if (job->dropped)
                document_refuse(&project->document, PACKAGE_UNREACHABLE, "the engine ends");
        upstream_stop(&project->request);
        project_finish(project);
}

static void project_parse(struct project *project)
{
        const struct package_index *index = project->index;
        project->state = PROJECT_PARSING;
        project->rules = (struct document_rules){ .kind = index->settings.kind, .name = project->name,
                .page_url = project->request.url, .base_url = index->settings.base_url, .now_ms = time_now_ms(),
                .min_age_ms = index->settings.min_age_ms,
                .require_upload_time = index->settings.require_upload_time,
                .wheels_only = index->settings.wheels_only };
        project->job = (struct job){ .work = on_parse, .done = on_parsed, .owner = project };
        if (project->raw.len > DOCUMENT_AT_ONCE_MAX) {
                worker_submit(index->workers, index->settings.share, &project->job);
        } else {
                on_parse(&project->job);
                on_parsed(&project->job);
        }
}

static bool set_format(struct project *project, const char *type)
{
        static const struct { const char *type; enum package_kind kind; enum document_format format; } rows[] = {
                { "application/vnd.pypi.simple.v1+json", PACKAGE_PYTHON, DOCUMENT_SIMPLE_JSON },
                { "application/vnd.pypi.simple.v1+html", PACKAGE_PYTHON, DOCUMENT_SIMPLE_HTML },
                { "text/html", PACKAGE_PYTHON, DOCUMENT_SIMPLE_HTML },
                { "application/json", PACKAGE_NODE, DOCUMENT_NPM },
        };
        size_t len = strcspn(type, "; \t");
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].kind == project->index->settings.kind && strlen(rows[i].type) == len &&
                    strncasecmp(rows[i].type, type, len) == 0) {
                        project->format = rows[i].format;
                        return true;
                }
        return false;
}

static bool on_document_bytes(struct upstream_request *request, const void *bytes, size_t len)
{
        struct project *project = request->owner;
        struct package_index *index = project->index;
        index->usage.bytes += len;
        index->document_bytes += len;
        return index->document_bytes <= PACKAGE_DOCUMENTS_BYTES_MAX && buf_add(&project->raw, bytes, len);
}

static void on_document(struct upstream_request *request, enum package_problem problem, const char *text)
{
        struct project *project = request->owner;
        if (problem == PACKAGE_FINE) {
                project->index->usage.documents++;
                if (set_format(project, upstream_content_type(request))) {
                        project_parse(project);
                        return;
                }
                problem = PACKAGE_UNTRUSTED;
                text = "the index sent a document that is neither JSON nor HTML of an index";
        }
        buf_done(&project->raw);
        upstream_stop(request);
        project_refuse(project, problem, text);
}

static void project_fetch(struct project *project)
{
        static const char simple[] = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
                                     "text/html;q=0.1";
        struct package_index *index = project->index;
        const bool node = index->settings.kind == PACKAGE_NODE;
        const char *slash = node ? strchr(project->name, '/') : NULL;
        char url[PACKAGE_URL_MAX];
        if (slash)
                snprintf(url, sizeof url, "%s/%.*s%%2f%s", index->upstream.url, (int)(slash - project->name),
                        project->name, slash + 1);
        else
                snprintf(url, sizeof url, "%s/%s%s", index->upstream.url, project->name, node ? "" : "/");
        project->state = PROJECT_FETCHING;
        buf_init(&project->raw, PACKAGE_DOCUMENT_BYTES_MAX);
        project->request = (struct upstream_request){ .accept = node ? "application/json" : simple,
                .bytes = on_document_bytes, .done = on_document, .owner = project };
        if (!upstream_start(&project->request, &index->upstream, url))
                project_refuse(project, PACKAGE_UNTRUSTED, "the index has an address that is not permitted");
}

static bool is_permitted(const struct package_index *index, const char *name)
{
        const struct package_index_settings *settings = &index->settings;
        return !package_is_listed(settings->kind, settings->deny, settings->deny_n, name) &&
                (!settings->allow_n || package_is_listed(settings->kind, settings->allow, settings->allow_n, name));
}

static void project_begin(struct project *project)
{
        if (is_permitted(project->index, project->name)) {
                project_fetch(project);
                return;
        }
        project->index->usage.hidden_by_list++;
        project_refuse(project, PACKAGE_NOT_ALLOWED, "the configuration does not permit this name");
}

/* ---- all projects ---- */

struct project *project_find(const struct package_index *index, const char *name)
{
        for (size_t i = 0; i < index->projects_n; i++)
                if (strcmp(index->projects[i]->name, name) == 0)
                        return index->projects[i];
        return NULL;
}

static struct project *project_of(struct package_index *index, const char *name, size_t len)
{
        char canonical[PACKAGE_NAME_MAX];
        if (!package_name_canonical(index->settings.kind, name, len, canonical))
                return &index->invalid;
        struct project *project = project_find(index, canonical);
        if (project)
                return project;
        if (index->projects_n == PACKAGE_PROJECTS_MAX)
                return &index->surplus;
        project = mem_alloc(sizeof *project);
        project->index = index;
        snprintf(project->name, sizeof project->name, "%s", canonical);
        project->info = (struct package_project){ .name = project->name, .text = "" };
        index->projects = mem_resize(index->projects, (index->projects_n + 1) * sizeof(struct project *));
        index->projects[index->projects_n++] = project;
        return project;
}

void project_wait(struct package_index *index, const char *name, size_t len, struct waiter *waiter,
        struct project **ret)
{
        struct project *project = project_of(index, name, len);
        *ret = project;
        waiters_add(&project->waiters, waiter);
        if (project->state == PROJECT_LOADED)
                waiters_call(&project->waiters);
        else if (project->state == PROJECT_IDLE)
                project_begin(project);
}

/* A running parse job continues: its result serves later requests. */
void project_leave(struct project *project, struct waiter *waiter)
{
        waiters_remove(&project->waiters, waiter);
        if (project->waiters || project->state != PROJECT_FETCHING)
                return;
        upstream_stop(&project->request);
        buf_done(&project->raw);
        project->state = PROJECT_IDLE;
}

void project_free(struct project *project)
{
        worker_wait(project->index->workers, &project->job);
        upstream_stop(&project->request);
        buf_done(&project->raw);
        document_done(&project->document);
        free(project);
}

void project_fix(struct project *project, struct package_index *index, enum package_problem problem,
        const char *text)
{
        project->index = index;
        project->info.name = project->name;
        project_refuse(project, problem, text);
}

struct document_file *package_index_find_path(const struct package_index *index, const char *path,
        bool *ret_is_metadata)
{
        static const char files[] = "/files/", suffix[] = ".metadata";
        char text[PACKAGE_URL_MAX], name[PACKAGE_NAME_MAX];
        size_t len = strlen(path);
        *ret_is_metadata = len > sizeof suffix && strcmp(path + len - (sizeof suffix - 1), suffix) == 0;
        len -= *ret_is_metadata ? sizeof suffix - 1 : 0;
        if (len >= sizeof text || strncmp(path, files, sizeof files - 1) != 0)
                return NULL;
        snprintf(text, sizeof text, "%.*s", (int)len, path);
        const char *begin = strchr(text + sizeof files - 1, '/'), *end = strrchr(text, '/');
        if (!begin || end <= begin || (size_t)(end - begin) > sizeof name)
                return NULL;
        snprintf(name, sizeof name, "%.*s", (int)(end - begin - 1), begin + 1);
        const struct project *project = project_find(index, name);
        uint64_t hash = hash_text(text, len);
        for (size_t i = 0; project && project->state == PROJECT_LOADED && i < project->document.files_n; i++) {
                struct document_file *file = &project->document.files[i];
                if (project->document.path_hashes[i] == hash && strcmp(file->file.path, text) == 0)
                        return !*ret_is_metadata || file->has_metadata ? file : NULL;
        }
        return NULL;
}
