/*
 * Saved files of a sandbox: kept as a template, or loaded into forks at once; see e2b.h.
 *
 * A snapshot is two files in the folder `snapshots` beside the store: ID.tar, and ID.json with tenant, name and origin.
 * The files get their names when complete, ID.json last, so a snapshot is never partial.
 */
#include "front/e2b/request.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ID_LEN ID_SHORT_DIGITS
#define NAME_MAX_LEN 128
#define ABOUT_MAX (16 * KIB)

struct saving {
        struct psandbox_copy copy;
        struct http_request *request;
        struct e2b_image *image;
        struct e2b_wish wish;              /* of a fork: the parameters of its sandbox */
        json_t *about;                     /* of a snapshot */
        size_t count;                      /* of forks */
        uint64_t life_ms;
};

/* ---- stored snapshots ---- */

static int open_folder(const struct service *service, struct csn_error *err)
{
        int fd;
        if (!service->store)
                return err_set(err, CSN_E_UNSUPPORTED, 0, "this daemon keeps no snapshots, for engine.http is empty");
        return store_folder(service->store, "snapshots", &fd, err) < 0 ? -err->code : fd;
}

static bool is_id(const char *text, size_t len)
{
        return len == ID_LEN && strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz") >= len;
}

/* The caller's reference; NULL: no such id. */
static json_t *load_about(int folder, const char *id)
{
        char path[ID_LEN + 6];
        static char text[ABOUT_MAX];
        snprintf(path, sizeof path, "%.*s.json", ID_LEN, id);
        auto_fd fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
        return n <= 0 ? NULL : json_loadb(text, (size_t)n, 0, NULL);
}

/* All snapshots of a tenant, newest first by "createdAt"; the caller's reference. */
static json_t *load_all(const struct service *service, const char *tenant, size_t *ret_all)
{
        struct csn_error err;
        json_t *list = json_array();
        int folder = open_folder(service, &err);
        DIR *dir = folder < 0 ? NULL : fdopendir(folder);
        *ret_all = 0;
        for (struct dirent *found; dir && (found = readdir(dir));) {
                size_t len = strlen(found->d_name), at = 0;
                json_t *about =
                        len > 5 && is_id(found->d_name, len - 5) && strcmp(found->d_name + len - 5, ".json") == 0
                        ? load_about(folder, found->d_name)
                        : NULL;
                const char *made = json_string_value(json_object_get(about, "createdAt")),
                           *of = json_string_value(json_object_get(about, "tenant"));
                *ret_all += about != NULL;
                if (made && of && strcmp(of, tenant) == 0) {
                        while (at < json_array_size(list) &&
                                strcmp(json_string_value(json_object_get(json_array_get(list, at), "createdAt")),
                                        made) > 0)
                                at++;
                        json_array_insert(list, at, about);
                }
                json_decref(about);
        }
        if (dir)
                closedir(dir);
        return list;
}

/* "name", "team/name", "name:default". */
static bool is_called(const json_t *about, const char *given)
{
        const char *id = json_string_value(json_object_get(about, "id")),
                   *name = json_string_value(json_object_get(about, "name"));
        const char *slash = strrchr(given, '/'), *bare = slash ? slash + 1 : given;
        size_t len = strcspn(bare, ":");
        if (bare[len] && strcmp(bare + len, ":default") != 0)
                return false;
        return (id && strlen(id) == len && memcmp(id, bare, len) == 0) ||
                (name && strlen(name) == len && memcmp(name, bare, len) == 0);
}

/* The newest snapshot of this name; the caller's reference, or NULL. */
static json_t *find(const struct service *service, const char *tenant, const char *name)
{
        size_t all, i;
        json_t *list = load_all(service, tenant, &all), *about, *found = NULL;
        json_array_foreach(list, i, about) {
                if (!found && is_called(about, name))
                        found = json_incref(about);
        }
        json_decref(list);
        return found;
}

bool e2b_snapshot_is_there(const struct service *service, const char *tenant, const char *name)
{
        json_t *about = find(service, tenant, name);
        json_decref(about);
        return about != NULL;
}

const struct e2b_template *e2b_snapshot_find(const struct service *service, const char *tenant, const char *name,
                                             struct e2b_image **ret_image,
                                             json_t **ret_build_spec, struct csn_error *err)
{
        char path[ID_LEN + 5];
        json_t *about = find(service, tenant, name);
        const struct e2b_template *template = about ? e2b_template_named(e2b_text(about, "template")) : NULL;
        err->code = 0;
        if (template) {
                snprintf(path, sizeof path, "%.*s.tar", ID_LEN, e2b_text(about, "id"));
                auto_fd folder = open_folder(service, err);
                int fd = folder < 0 ? -1 : openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
                if (fd >= 0) {
                        *ret_image = e2b_image_of(service, tenant, fd);
                        *ret_build_spec = json_incref(json_object_get(about, "recipe"));
                } else if (folder >= 0)
                        err_set(err, CSN_E_SYSTEM, errno, "open the snapshot %s", path);
        }
        json_decref(about);
        return err->code ? NULL : template;
}

bool e2b_snapshot_forget(const struct service *service, const char *tenant, const char *name)
{
        struct csn_error err;
        char path[ID_LEN + 6];
        json_t *about = find(service, tenant, name);
        auto_fd folder = about ? open_folder(service, &err) : -1;
        for (size_t i = 0; about && i < 2; i++) {
                snprintf(path, sizeof path, "%.*s.%s", ID_LEN, e2b_text(about, "id"), i ? "tar" : "json");
                if (e2b_remove_file(service, tenant, folder, path) < 0)
                        log_text(LOG_WARN, "the snapshot %s could not be removed: %s", path, strerror(errno));
        }
        json_decref(about);
        return about != NULL;
}

static int name_file(int folder, int fd, const char *id, const char *suffix, struct csn_error *err)
{
        char from[40], to[ID_LEN + 6];
        snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
        snprintf(to, sizeof to, "%.*s.%s", ID_LEN, id, suffix);
        return linkat(AT_FDCWD, from, folder, to, AT_SYMLINK_FOLLOW) < 0
                ? err_set(err, CSN_E_SYSTEM, errno, "keep the snapshot %s", to)
                : 0;
}

static int keep(const struct service *service, const struct saving *saving, struct csn_error *err)
{
        const char *id = e2b_text(saving->about, "id");
        auto_fd folder = open_folder(service, err);
        auto_fd about = folder < 0 ? -1 : openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (folder < 0)
                return -err->code;
        char *text = json_dumps(saving->about, JSON_COMPACT);
        int rc = about < 0 || !text || io_write_all(about, text, strlen(text)) < 0
                ? err_set(err, CSN_E_SYSTEM, errno, "write what a snapshot is of")
                : 0;
        free(text);
        rc = rc < 0 ? rc : name_file(folder, saving->image->fd, id, "tar", err);
        return rc < 0 ? rc : name_file(folder, about, id, "json", err);
}

/* ---- saving ---- */

static void saving_free(struct saving *saving)
{
        psandbox_copy_done(&saving->copy);
        e2b_image_unref(saving->image);
        e2b_wish_done(&saving->wish);
        json_decref(saving->about);
        free(saving);
}

static void on_gone(struct http_request *request)
{
        saving_free(request->owner);
}

/* Takes `saving`; done() finds the files in saving->image, and frees `saving`. */
static void save(struct http_request *request, struct e2b_sandbox *sandbox, struct saving *saving,
        void (*done)(struct psandbox_copy *, const struct csn_error *))
{
        struct csn_error err;
        saving->request = request;
        saving->copy = (struct psandbox_copy){ .done = done, .owner = saving };
        if (sandbox->state != E2B_RUNNING) {
                err_set(&err, CSN_E_BUSY, 0, "sandbox %s is not running", sandbox->id);
                e2b_conflict(request, &err);
        } else if (e2b_image_new(sandbox->service, sandbox->tenant, &saving->image, &err) < 0 ||
                psandbox_save(sandbox->psandbox, &saving->copy, saving->image->fd, &err) < 0) {
                e2b_fail(request, &err);
        } else {
                request->owner = saving;
                request->gone = on_gone;
                return;
        }
        saving_free(saving);
}

/* ---- snapshots ---- */

static json_t *describe(const json_t *about)
{
        char full[NAME_MAX_LEN + 10];
        const char *name = e2b_text(about, "name");
        snprintf(full, sizeof full, "%s:default", name);
        return json_pack("{s:s, s:o, s:s, s:s}", "snapshotID", e2b_text(about, "id"), "names",
                name[0] ? json_pack("[s]", full) : json_array(), "sandboxID", e2b_text(about, "sandbox"), "createdAt",
                e2b_text(about, "createdAt"));
}

static void on_snapshot(struct psandbox_copy *copy, const struct csn_error *error)
{
        struct saving *saving = copy->owner;
        struct http_request *request = saving->request;
        struct csn_error err;
        request->gone = NULL;
        if (error)
                e2b_fail(request, error);
        else if (keep(service_of(request), saving, &err) < 0)
                e2b_fail(request, &err);
        else
                http_json(request, MHD_HTTP_CREATED, describe(saving->about));
        saving_free(saving);
}

static bool is_name(const char *name)
{
        return strlen(name) <= NAME_MAX_LEN && name[0] &&
                strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == strlen(name);
}

static void begin_snapshot(struct http_request *request, struct e2b_sandbox *sandbox, const char *name)
{
        char id[ID_LEN + 1];
        size_t all;
        json_t *list = load_all(sandbox->service, sandbox->tenant, &all);
        size_t own = json_array_size(list);
        json_decref(list);
        if (own >= E2B_SNAPSHOTS_OWNER_MAX || all >= E2B_SNAPSHOTS_MAX) {
                e2b_error(request, MHD_HTTP_TOO_MANY_REQUESTS,
                        "there are %zu snapshots, %zu of them yours; there may be %d, and %d of one owner: delete one",
                        all, own, E2B_SNAPSHOTS_MAX, E2B_SNAPSHOTS_OWNER_MAX);
                return;
        }
        struct saving *saving = mem_alloc(sizeof *saving);
        id_new_short(id);
        *saving = (struct saving){ .about = json_pack("{s:s, s:s, s:s, s:s, s:s, s:o}", "id", id, "name", name,
                                           "tenant", sandbox->tenant, "template", sandbox->wish.template->name,
                                           "sandbox", sandbox->id, "createdAt", e2b_time(time_now_ms())) };
        json_object_set(saving->about, "recipe", sandbox->wish.build_spec);
        save(request, sandbox, saving, on_snapshot);
}

void e2b_post_snapshot(struct http_request *request)
{
        static const struct e2b_member members[] = { { .name = "name", .kind = E2B_TEXT }, { 0 } };
        struct e2b_sandbox *sandbox = e2b_named(request);
        json_t *body = sandbox ? e2b_body(request, members) : NULL;
        const char *name = json_string_value(json_object_get(body, "name"));
        if (name && !is_name(name))
                e2b_error(request, MHD_HTTP_BAD_REQUEST,
                        "name has to be a text of letters, digits, - _ and ., at most %d", NAME_MAX_LEN);
        else if (body)
                begin_snapshot(request, sandbox, name ? name : "");
        json_decref(body);
}

void e2b_list_snapshots(struct http_request *request)
{
        const char *sandbox = http_query(request, "sandboxID"), *name = http_query(request, "name"),
                   *token = http_query(request, "nextToken");
        size_t limit, all, i, skip = token ? strtoul(token, NULL, 10) : 0, seen = 0;
        char next[24];
        json_t *about, *page = json_array();
        if (!e2b_limit(request, &limit)) {
                json_decref(page);
                return;
        }
        json_t *list = load_all(service_of(request), request->tenant, &all);
        json_array_foreach(list, i, about) {
                if ((sandbox && strcmp(e2b_text(about, "sandbox"), sandbox) != 0) ||
                        (name && !is_called(about, name)) || seen++ < skip)
                        continue;
                if (json_array_size(page) == limit) {
                        snprintf(next, sizeof next, "%zu", skip + limit);
                        http_set_header(request, "x-next-token", next);
                        break;
                }
                json_array_append_new(page, describe(about));
        }
        json_decref(list);
        http_json(request, MHD_HTTP_OK, page);
}

/* ---- forks ---- */

struct fork;

struct child {
        struct e2b_waiter waiter;
        struct fork *fork;
        struct e2b_sandbox *sandbox;       /* NULL: could not be made */
        json_t *told;                      /* its entry in the answer */
};

struct fork {
        struct http_request *request;
        size_t n, waiting;
        struct child children[];
};

static json_t *told_error(const struct csn_error *error)
{
        return json_pack("{s:{s:i, s:s}}", "error", "code", csn_code_http(error->code), "message", error->text);
}

static void fork_free(struct fork *fork)
{
        for (size_t i = 0; i < fork->n; i++)
                json_decref(fork->children[i].told);
        free(fork);
}

static void answer_fork(struct fork *fork)
{
        json_t *list = json_array();
        if (fork->waiting)
                return;
        for (size_t i = 0; i < fork->n; i++)
                json_array_append(list, fork->children[i].told);
        fork->request->gone = NULL;
        http_json(fork->request, MHD_HTTP_CREATED, list);
        fork_free(fork);
}

static void on_child(struct e2b_waiter *waiter, const struct csn_error *error)
{
        struct child *child = waiter->owner;
        child->told = error ? told_error(error) : json_pack("{s:o}", "sandbox", e2b_sandbox_made(child->sandbox));
        child->fork->waiting--;
        answer_fork(child->fork);
}

static void on_fork_gone(struct http_request *request)
{
        struct fork *fork = request->owner;
        for (size_t i = 0; i < fork->n; i++)
                if (fork->children[i].waiter.sandbox) {
                        e2b_unwait(&fork->children[i].waiter);
                        e2b_sandbox_kill(fork->children[i].sandbox);
                }
        fork_free(fork);
}

static void make_children(const struct saving *saving)
{
        struct http_request *request = saving->request;
        struct fork *fork = mem_alloc(sizeof *fork + saving->count * sizeof fork->children[0]);
        struct csn_error err;
        *fork = (struct fork){ .request = request, .n = saving->count, .waiting = saving->count };
        request->owner = fork;
        request->gone = on_fork_gone;
        for (size_t i = 0; i < fork->n; i++) {
                struct child *child = &fork->children[i];
                *child = (struct child){ .fork = fork, .waiter = { .done = on_child, .owner = child } };
                if (e2b_sandbox_new(service_of(request), request->tenant, &saving->wish, saving->image,
                                    &child->sandbox, &err) < 0) {
                        child->told = told_error(&err);
                        fork->waiting--;
                        continue;
                }
                e2b_sandbox_set_end(child->sandbox, saving->life_ms);
                e2b_wait(child->sandbox, E2B_WANTS_READY, &child->waiter);
        }
        answer_fork(fork);
}

static void on_forked(struct psandbox_copy *copy, const struct csn_error *error)
{
        struct saving *saving = copy->owner;
        saving->request->gone = NULL;
        if (error)
                e2b_fail(saving->request, error);
        else
                make_children(saving);
        saving_free(saving);
}

/* The body is checked before the sandbox, as E2B does. */
void e2b_fork(struct http_request *request)
{
        struct e2b_sandbox *sandbox;
        static const struct e2b_member members[] = { { .name = "count", .kind = E2B_NUMBER, .most = E2B_FORKS_MAX },
                { 0 } };
        json_t *body = e2b_body(request, members);
        uint64_t count = 1, life_ms;
        e2b_number(json_object_get(body, "count"), &count);
        if (body && !count) {
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "count is 0; it has to be a whole number from 1 to %d",
                        E2B_FORKS_MAX);
        } else if (body && e2b_life(request, body, "timeout", E2B_LIFE_S, &life_ms) && (sandbox = e2b_named(request))) {
                struct saving *saving = mem_alloc(sizeof *saving);
                *saving = (struct saving){ .wish = e2b_wish_copy(&sandbox->wish), .count = count, .life_ms = life_ms };
                save(request, sandbox, saving, on_forked);
        }
        json_decref(body);
}
