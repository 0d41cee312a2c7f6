/*
 * caisson layers: works on the folder of layers itself, with and without a daemon; build alone asks the daemon.
 *
 * Root becomes the owner of the folder first: the daemon has to be able to remove an import's files, and no hostile
 * archive is unpacked with the rights of root.  An import also enters Landlock (landlock(7)), and can then write
 * nothing but the folder of layers.
 */
#include "front/remote/remote.h"

#include "images/images.h"
#include "layers/archive.h"
#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define LIST_MAX (64 * MIB) /* bytes of a table */
#define REQUIREMENTS_MAX ((size_t)65536) /* layer_request.requirements in fields.def */
#define LOCK_MAX ((size_t)1048576)       /* layer_request.lock */
#define AGE_MAX_MS (36500ULL * 24 * 3600 * 1000)

/* ---- build ---- */

/* A file named by an option, as a member of the request. */
static int read_text(const struct remote *remote, const char *option, size_t max, json_t *body, struct csn_error *err)
{
        const char *path = remote_option(remote, option);
        if (!path)
                return 0;
        char *text = mem_alloc(max + 1);
        ssize_t len = io_read_file(AT_FDCWD, path, text, max + 1);
        int rc = 0;
        if (len < 0)
                rc = err_set(err, CSN_E_INPUT, errno, "read %.200s", path);
        else if ((size_t)len > max)
                rc = err_set(err, CSN_E_INPUT, 0, "%.200s is longer than %zu bytes", path, max);
        else if (!utf8_valid(text, (size_t)len) || memchr(text, 0, (size_t)len))
                rc = err_set(err, CSN_E_INPUT, 0, "%.200s is not UTF-8", path);
        else
                json_object_set_new(body, option, json_stringn(text, (size_t)len));
        free(text);
        return rc;
}

int remote_build_layer(struct remote *remote)
{
        const char *image = remote_option(remote, "image");
        json_t *body = json_object(), *packages = json_array();
        struct csn_error err;
        for (size_t i = 0; i < remote->args_n; i++)
                json_array_append_new(packages, json_string(remote->args[i]));
        json_object_set_new(body, "packages", packages);
        if (image)
                json_object_set_new(body, "image", json_string(image));
        if (read_text(remote, "requirements", REQUIREMENTS_MAX, body, &err) < 0 ||
                read_text(remote, "lock", LOCK_MAX, body, &err) < 0) {
                json_decref(body);
                return remote_fail(&err);
        }
        return remote_make(remote, "/v1/layers", body);
}

/* ---- the folder ---- */

static int open_layers(struct remote *remote, struct layers **ret, struct csn_error *err)
{
        const char *path = settings_layers_dir(&remote->settings, &remote->arena);
        return remote_become_owner(path, err) < 0 ? -err->code : layers_open(path, ret, err);
}

/* Open the folder, do the work, close the folder.  Returns the exit status. */
static int with_layers(struct remote *remote,
        int (*work)(struct remote *remote, struct layers *layers, struct csn_error *err))
{
        struct csn_error err = { 0 };
        struct layers *layers = NULL;
        int status = open_layers(remote, &layers, &err);
        status = status < 0 ? status : work(remote, layers, &err);
        layers_close(layers);
        return status < 0 ? cli_fail(&err) : status;
}

/* An id, or the beginning of a single id, with or without its prefix. */
static int find_id(struct remote *remote, struct layers *layers, const char *typed, const char **ret,
        struct csn_error *err)
{
        struct layer *list;
        size_t n, found = 0, prefix = strlen(LAYER_ID_PREFIX);
        if (strncmp(typed, LAYER_ID_PREFIX, prefix) == 0)
                typed += prefix;
        if (layers_list(layers, &remote->arena, &list, &n, err) < 0)
                return -err->code;
        for (size_t i = 0; i < n && typed[0]; i++)
                if (strncmp(list[i].id + prefix, typed, strlen(typed)) == 0) {
                        *ret = list[i].id;
                        found++;
                }
        if (found != 1)
                return err_set(err, CSN_E_INPUT, 0,
                        found ? "several layers begin with \"%.60s\": type more of the id"
                              : "there is no layer \"%.60s\"; caisson layers list shows all",
                        typed);
        return 0;
}

/* ---- list and show ---- */

static void add_line(struct buf *buf, const struct layer *layer)
{
        char text[80];
        const struct layer_meta *meta = &layer->meta;
        cli_add_cell(buf, 36, layer->id);
        if (layer->fault) {
                buf_printf(buf, "damaged: ");
                cli_add_cell(buf, 100, layer->fault);
                cli_end_line(buf);
                return;
        }
        snprintf(text, sizeof text, "%.20s %.20s", meta->key.language, meta->key.runtime);
        cli_add_cell(buf, 14, text);
        snprintf(text, sizeof text, "%zu", meta->key.lock_n);
        cli_add_cell(buf, 8, text);
        snprintf(text, sizeof text, "%llu", (unsigned long long)meta->files);
        cli_add_cell(buf, 7, text);
        snprintf(text, sizeof text, "%.1f", (double)meta->bytes / (double)MIB);
        cli_add_cell(buf, 8, text);
        cli_add_time(buf, meta->created_ms);
        cli_add_time(buf, layer->used_ms);
        buf_printf(buf, "%s", meta->pinned ? "pinned" : "");
        cli_end_line(buf);
}

static int list(struct remote *remote, struct layers *layers, struct csn_error *err)
{
        struct layer *list;
        struct buf buf;
        size_t n;
        json_t *json = json_array();
        if (layers_list(layers, &remote->arena, &list, &n, err) < 0) {
                json_decref(json);
                return -err->code;
        }
        buf_init(&buf, LIST_MAX);
        buf_printf(&buf, "%-36s %-14s %-8s %-7s %-8s %-16s %-16s %s\n", "ID", "LANGUAGE", "PACKAGES", "FILES", "MIB",
                "CREATED", "USED", "");
        for (size_t i = 0; i < n; i++) {
                add_line(&buf, &list[i]);
                json_array_append_new(json, layer_json(&list[i]));
        }
        if (remote_option(remote, "json"))
                cli_print_json(json_incref(json));
        else if (n)
                fputs(buf.bytes, stdout);
        else
                cli_note("there are no layers in %s", layers_path(layers));
        json_decref(json);
        buf_done(&buf);
        return 0;
}

static void add_row(struct buf *buf, const char *name, const char *text)
{
        cli_add_cell(buf, 10, name);
        cli_add_cell(buf, 200, text[0] ? text : "-");
        cli_end_line(buf);
}

static void add_time_row(struct buf *buf, const char *name, int64_t ms)
{
        cli_add_cell(buf, 10, name);
        cli_add_time(buf, ms);
        cli_end_line(buf);
}

static void print_layer(const struct layer *layer)
{
        const struct layer_meta *meta = &layer->meta;
        const struct layer_key *key = &meta->key;
        const char *const rows[][2] = { { "id", layer->id }, { "language", key->language }, { "runtime", key->runtime },
                { "arch", key->arch }, { "libc", key->libc }, { "image", key->image }, { "index", key->index },
                { "domain", key->domain }, { "build", key->build }, { "pinned", meta->pinned ? "yes" : "no" },
                { "tree", meta->tree_sha256 } };
        char text[100];
        struct buf buf;
        buf_init(&buf, LIST_MAX);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                add_row(&buf, rows[i][0], rows[i][1]);
        snprintf(text, sizeof text, "%llu files, %.1f MiB", (unsigned long long)meta->files,
                (double)meta->bytes / (double)MIB);
        add_row(&buf, "size", text);
        add_time_row(&buf, "created", meta->created_ms);
        add_time_row(&buf, "used", layer->used_ms);
        for (size_t i = 0; i < meta->warnings_n; i++)
                add_row(&buf, "warning", meta->warnings[i]);
        for (size_t i = 0; i < meta->modules_n; i++)
                add_row(&buf, "module", meta->modules[i]);
        for (size_t i = 0; i < key->lock_n; i++) {
                cli_add_cell(&buf, 10, "package");
                cli_add_cell(&buf, 30, key->lock[i].name);
                cli_add_cell(&buf, 16, key->lock[i].version);
                cli_add_cell(&buf, 100, key->lock[i].file);
                cli_end_line(&buf);
        }
        fputs(buf.bytes, stdout);
        buf_done(&buf);
}

static int show(struct remote *remote, struct layers *layers, struct csn_error *err)
{
        struct layer *list;
        size_t n;
        const char *id;
        if (find_id(remote, layers, remote->args[0], &id, err) < 0 ||
                layers_list(layers, &remote->arena, &list, &n, err) < 0)
                return -err->code;
        for (size_t i = 0; i < n; i++) {
                if (strcmp(list[i].id, id) != 0)
                        continue;
                if (remote_option(remote, "json"))
                        cli_print_json(layer_json(&list[i]));
                else if (list[i].fault)
                        return err_set(err, CSN_E_SYSTEM, 0, "layer %s is damaged: %s", id, list[i].fault);
                else
                        print_layer(&list[i]);
        }
        return 0;
}

int remote_list_layers(struct remote *remote)
{
        return with_layers(remote, list);
}

int remote_show_layer(struct remote *remote)
{
        return with_layers(remote, show);
}

/* ---- verify, remove, prune ---- */

static int verify_one(struct layers *layers, const char *id, int *status, struct csn_error *err)
{
        char fault[LAYER_FAULT_MAX], visible[4 * LAYER_FAULT_MAX];
        int rc = layers_verify(layers, id, fault, err);
        if (rc < 0)
                return rc;
        if (rc > 0) {
                printf("%s intact\n", id);
                return 0;
        }
        *status = 1;
        printf("%s damaged, removed: %.*s\n", id, (int)cli_visible(fault, strlen(fault), visible), visible);
        return 0;
}

static int verify(struct remote *remote, struct layers *layers, struct csn_error *err)
{
        struct layer *list;
        size_t n;
        int status = 0;
        const char *id;
        for (size_t i = 0; i < remote->args_n; i++)
                if (find_id(remote, layers, remote->args[i], &id, err) < 0 || verify_one(layers, id, &status, err) < 0)
                        return -err->code;
        if (remote->args_n)
                return status;
        if (layers_list(layers, &remote->arena, &list, &n, err) < 0)
                return -err->code;
        for (size_t i = 0; i < n; i++)
                if (verify_one(layers, list[i].id, &status, err) < 0)
                        return -err->code;
        return status;
}

static int remove_each(struct remote *remote, struct layers *layers, struct csn_error *err)
{
        const char *id;
        for (size_t i = 0; i < remote->args_n; i++)
                if (find_id(remote, layers, remote->args[i], &id, err) < 0 || layers_remove(layers, id, err) < 0)
                        return -err->code;
        return 0;
}

static int prune(struct remote *remote, struct layers *layers, struct csn_error *err)
{
        uint64_t bytes = remote->settings.packages.cache_bytes, age = remote->settings.packages.cache_ttl;
        const char *size_text = remote_option(remote, "bytes"), *age_text = remote_option(remote, "age");
        struct layers_pruned pruned;
        struct layers_prune_rules rules = { .now_ms = time_now_ms() };
        if (size_text && (!size_parse(size_text, &bytes) || bytes > INT64_MAX))
                return err_field(err, "bytes", "--bytes is \"%.60s\"; it has to be a size such as 512MiB or 10GiB",
                        size_text);
        if (age_text && (!duration_parse(age_text, &age) || age > AGE_MAX_MS))
                return err_field(err, "age",
                        "--age is \"%.60s\"; it has to be a time such as 90min, 12h or 30d, up to "
                        "36500d",
                        age_text);
        rules.max_bytes = bytes;
        rules.ttl_ms = age;
        if (image_pins(remote->settings.images.layers, NULL, &remote->arena, &rules.kept, &rules.kept_n, err) < 0 ||
                layers_prune(layers, &rules, &pruned, err) < 0)
                return -err->code;
        printf("removed %zu layers, %.1f MiB\n", pruned.layers, (double)pruned.bytes / (double)MIB);
        return 0;
}

int remote_verify_layers(struct remote *remote)
{
        return with_layers(remote, verify);
}

int remote_remove_layers(struct remote *remote)
{
        return with_layers(remote, remove_each);
}

int remote_prune_layers(struct remote *remote)
{
        return with_layers(remote, prune);
}

/* ---- export and import ---- */

/* Root stays root, and can rename the file in the caller's folder. */
static int open_to_read(struct remote *remote, struct layers **ret, struct csn_error *err)
{
        const char *path = settings_layers_dir(&remote->settings, &remote->arena);
        if (access(path, F_OK) < 0)
                return err_set(err, CSN_E_INPUT, errno, "there are no layers in %s", path);
        return layers_open(path, ret, err);
}

/* The file appears when complete: an incomplete export would look like a backup. */
int remote_export_layer(struct remote *remote)
{
        struct csn_error err = { 0 };
        struct layers *layers = NULL;
        const char *id = "", *path = remote->args[1];
        bool is_stdout = strcmp(path, "-") == 0;
        const char *part = is_stdout ? path : arena_text(&remote->arena, "%s.part", path);
        auto_fd fd = -1;
        remote_use_utf8();
        int rc = remote_open_file(part, O_WRONLY | O_CREAT | O_TRUNC, STDOUT_FILENO, &fd, &err);
        rc = rc < 0 ? rc : open_to_read(remote, &layers, &err);
        rc = rc < 0 ? rc : find_id(remote, layers, remote->args[0], &id, &err);
        rc = rc < 0 ? rc : layers_export(layers, id, fd, &err);
        layers_close(layers);
        if (rc == 0 && !is_stdout && rename(part, path) < 0)
                rc = err_set(&err, CSN_E_SYSTEM, errno, "rename %s to %s", part, path);
        if (rc < 0 && fd >= 0 && !is_stdout)
                unlink(part);
        return rc < 0 ? cli_fail(&err) : 0;
}

/* Landlock for the rest of this process: libarchive reads foreign bytes. */
static int confine(const char *layers_path, struct csn_error *err)
{
        const struct landlock_place places[] = { { layers_path, LANDLOCK_WRITE } };
        unsigned abi;
        auto_fd rules = -1;
        if (landlock_make(places, ARRAY_LEN(places), &rules, &abi, err) < 0)
                return -err->code;
        /* Before Linux 5.19 (version 2) Landlock forbids each rename from one folder to another. */
        if (abi < 2)
                return 0;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "set no_new_privs");
        return landlock_enter(rules, err);
}

int remote_import_layer(struct remote *remote)
{
        struct csn_error err = { 0 };
        struct layers *layers = NULL;
        char id[LAYER_ID_MAX];
        const struct layer_limits limits = { .max_bytes = remote->settings.packages.max_bytes,
                .max_files = remote->settings.packages.max_files };
        auto_fd fd = -1;
        remote_use_utf8();
        int rc = remote_open_file(remote->args[0], O_RDONLY, STDIN_FILENO, &fd, &err);
        rc = rc < 0 ? rc : open_layers(remote, &layers, &err);
        rc = rc < 0 ? rc : confine(layers_path(layers), &err);
        rc = rc < 0 ? rc : layers_import(layers, fd, &limits, id, &err);
        if (rc == 0)
                printf("%s\n", id);
        layers_close(layers);
        return rc < 0 ? cli_fail(&err) : 0;
}
