/* Projects, and the functions of index.h. */
#include "packages/index/index_private.h"

#include <stdio.h>

#define MAX_BYTES GIB                      /* defaults of struct package_index_settings */
#define MAX_FILES 256

/* ---- files ---- */

static struct document_file *find_url(const struct package_index *index, const char *url)
{
        const char *scheme_end = strstr(url, "://");
        const char *path = scheme_end ? strchr(scheme_end + 3, '/') : url;
        bool is_metadata;
        struct document_file *file = path ? package_index_find_path(index, path, &is_metadata) : NULL;
        return file && !is_metadata ? file : NULL;
}

const struct package_file *package_index_file(const struct package_index *index, const char *url)
{
        const struct document_file *file = find_url(index, url);
        return file ? &file->file : NULL;
}

/* ---- callers in the engine ---- */

/* A waiting call of package_index_load() or package_index_download(). */
struct call {
        struct call *next;
        struct package_index *index;
        struct waiter waiter;
        void (*loaded)(void *owner, const struct package_project *project);
        void (*fetched)(void *owner, int fd, uint64_t size, enum package_problem problem, const char *text);
        void *owner;
        struct project *project;
        struct spool *spool;
};

static void call_remove(struct call *call)
{
        for (struct call **at = &call->index->calls; *at; at = &(*at)->next)
                if (*at == call) {
                        *at = call->next;
                        break;
                }
}

static void on_call(struct waiter *waiter)
{
        struct call *call = waiter->owner;
        const struct spool *spool = call->spool;
        call_remove(call);
        if (call->loaded)
                call->loaded(call->owner, &call->project->info);
        else
                call->fetched(call->owner, spool->fd, spool->size, spool->problem, spool->text);
        free(call);
}

static struct call *call_new(struct package_index *index, void *owner)
{
        struct call *call = mem_alloc(sizeof *call);
        *call = (struct call){ .index = index, .next = index->calls, .owner = owner,
                .waiter = { .ready = on_call, .owner = call } };
        index->calls = call;
        return call;
}

static void calls_close(struct package_index *index)
{
        for (struct call *call = index->calls, *next; call; call = next) {
                next = call->next;
                if (call->project)
                        project_leave(call->project, &call->waiter);
                if (call->spool)
                        spool_leave(call->spool, &call->waiter);
                free(call);
        }
        index->calls = NULL;
}

void package_index_load(struct package_index *index, const char *name,
        void (*done)(void *owner, const struct package_project *project), void *owner)
{
        struct call *call = call_new(index, owner);
        call->loaded = done;
        project_wait(index, name, strlen(name), &call->waiter, &call->project);
}

void package_index_download(struct package_index *index, const struct package_file *file,
        void (*done)(void *owner, int fd, uint64_t size, enum package_problem problem, const char *text), void *owner)
{
        const struct document_file *found = find_url(index, file->path);
        if (!found) {
                done(owner, -1, 0, PACKAGE_NOT_FOUND, "the index does not offer this file");
                return;
        }
        struct call *call = call_new(index, owner);
        call->fetched = done;
        spool_wait(index, found, false, &call->waiter, &call->spool);
}

const struct package_project *package_index_project(const struct package_index *index, const char *name)
{
        char canonical[PACKAGE_NAME_MAX];
        const struct project *project =
                package_name_canonical(index->settings.kind, name, strlen(name), canonical)
                ? project_find(index, canonical) : NULL;
        return project ? &project->info : NULL;
}

const struct package_project *package_index_project_at(const struct package_index *index, size_t at)
{
        return at < index->projects_n ? &index->projects[at]->info : NULL;
}

enum package_problem package_index_failure(const struct package_index *index, const char **ret_text)
{
        *ret_text = index->failure_text;
        return index->failure;
}

void package_index_usage(const struct package_index *index, struct package_index_usage *ret)
{
        *ret = index->usage;
}

/* ---- the whole ---- */

static const char *copy_text(struct package_index *index, const char *text)
{
        return text ? arena_copy(&index->arena, text, strlen(text)) : NULL;
}

static char **copy_list(struct package_index *index, char *const *list, size_t n)
{
        char **copy = arena_alloc(&index->arena, (n + 1) * sizeof *copy);
        for (size_t i = 0; i < n; i++)
                copy[i] = arena_copy(&index->arena, list[i], strlen(list[i]));
        return copy;
}

static void copy_settings(struct package_index *index, const struct package_index_settings *from)
{
        struct package_index_settings *settings = &index->settings;
        *settings = *from;
        settings->url = settings->token = NULL;
        settings->base_url = copy_text(index, from->base_url ? from->base_url : PACKAGE_INDEX_BASE);
        settings->spool_folder = copy_text(index, from->spool_folder);
        settings->share = copy_text(index, from->share ? from->share : "");
        settings->allow = copy_list(index, from->allow, from->allow_n);
        settings->deny = copy_list(index, from->deny, from->deny_n);
        settings->max_bytes = from->max_bytes ? from->max_bytes : MAX_BYTES;
        settings->max_files = from->max_files ? from->max_files : MAX_FILES;
}

int package_index_open(struct loop *loop, struct workers *workers, int listen_fd,
        const struct package_index_settings *settings, struct package_index **ret, struct csn_error *err)
{
        auto_fd fd = listen_fd;
        struct package_index *index = mem_alloc(sizeof *index);
        index->loop = loop;
        index->workers = workers;
        copy_settings(index, settings);
        project_fix(&index->invalid, index, PACKAGE_NOT_FOUND, "this is no name of a package");
        project_fix(&index->surplus, index, PACKAGE_TOO_MANY, "more packages were asked for than may be");
        int rc = upstream_init(&index->upstream, loop, settings, err);
        if (rc == 0 && fd >= 0)
                rc = server_open(index, take_fd(&fd), err);
        if (rc < 0) {
                package_index_close(index);
                return rc;
        }
        *ret = index;
        return 0;
}

void package_index_stop_serving(struct package_index *index)
{
        server_close(index);
}

void package_index_close(struct package_index *index)
{
        if (!index)
                return;
        server_close(index);
        calls_close(index);
        spools_close(index);
        for (size_t i = 0; i < index->projects_n; i++)
                project_free(index->projects[i]);
        free(index->projects);
        upstream_done(&index->upstream);
        arena_done(&index->arena);
        free(index);
}
