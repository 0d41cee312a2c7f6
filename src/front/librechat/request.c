/* Bodies of LibreChat as requests to run, and the files that they name. */
#include "front/librechat/librechat.h"

#define TIMEOUT_MS_MIN 1                   /* as limits.wall_ms has it */

/* A member that is absent or null counts as absent. */
static json_t *member(const json_t *body, const char *name)
{
        json_t *value = json_object_get(body, name);
        return value && !json_is_null(value) ? value : NULL;
}

static int text_member(const json_t *body, const char *name, const char **ret, struct csn_error *err)
{
        const json_t *value = member(body, name);
        *ret = json_string_value(value);
        if (!value)
                return 0;
        if (!*ret || strlen(*ret) != json_string_length(value))
                return err_field(err, name, "%s has to be a text without U+0000", name);
        return 0;
}

/* Whether the request's programs may keep files, and get files. */
static bool can_keep(const struct http_request *request)
{
        const struct store_key *key = service_key(request);
        return service_of(request)->store && (!key || (key->scopes & (SCOPE_FILES | SCOPE_ADMIN)));
}

/* ---- files ---- */

/* An id of LibreChat; older clients send session_id in place of storage_session_id. */
static int read_id(const json_t *file, size_t i, const char *name, const char *other,
        char ret[static ID_COMPACT_LEN + 1], struct csn_error *err)
{
        char digits[ID_DIGITS + 1];
        json_t *value = member(file, name);
        value = !value && other ? member(file, other) : value;
        const char *text = json_string_value(value);
        if (!text || !id_from_compact(text, json_string_length(value), digits))
                return err_field(err, "files",
                        "files[%zu].%s has to be an id of %d characters, A-Z, a-z, 0-9, _ and -", i, name,
                        ID_COMPACT_LEN);
        memcpy(ret, text, ID_COMPACT_LEN + 1);
        return 0;
}

static const char *kept_text(const json_t *file, const char *name, struct arena *arena)
{
        const char *text = json_string_value(json_object_get(file, name));
        return text ? arena_text(arena, "%s", text) : NULL;
}

static int read_file(const json_t *json, size_t i, struct arena *arena, struct librechat_file *ret,
        struct csn_error *err)
{
        const char *name = json_string_value(json_object_get(json, "name"));
        int rc = read_id(json, i, "id", NULL, ret->id, err);
        rc = rc < 0 ? rc : read_id(json, i, "storage_session_id", "session_id", ret->session, err);
        if (rc < 0)
                return rc;
        if (!name || strlen(name) != json_string_length(json_object_get(json, "name")))
                return err_field(err, "files", "files[%zu].name has to be the file's name below " LIBRECHAT_FOLDER, i);
        if (strncmp(name, LIBRECHAT_FOLDER "/", strlen(LIBRECHAT_FOLDER "/")) == 0)
                name += strlen(LIBRECHAT_FOLDER "/");
        const json_t *version = json_object_get(json, "version");
        ret->name = arena_text(arena, "%s", name);
        ret->kind = kept_text(json, "kind", arena);
        ret->resource = kept_text(json, "resource_id", arena);
        ret->version = json_is_integer(version) ? json_integer_value(version) : -1;
        return 0;
}

/* Of several files with one name the last counts: LibreChat sends the newest one last. */
static struct librechat_file *place_of(struct librechat_exec *exec, const char *name)
{
        for (size_t i = 0; i < exec->files_n; i++)
                if (strcmp(exec->files[i].name, name) == 0)
                        return &exec->files[i];
        return &exec->files[exec->files_n++];
}

static int read_files(const json_t *body, struct arena *arena, struct librechat_exec *exec, struct csn_error *err)
{
        const json_t *files = member(body, "files");
        json_t *json;
        size_t i;
        if (!files)
                return 0;
        if (!json_is_array(files))
                return err_field(err, "files", "files has to be an array");
        if (json_array_size(files) > LIBRECHAT_FILES_MAX)
                return err_field(err, "files", "files has %zu members, at most %d are possible", json_array_size(files),
                        LIBRECHAT_FILES_MAX);
        exec->files = arena_alloc(arena, (json_array_size(files) + 1) * sizeof *exec->files);
        json_array_foreach(files, i, json) {
                struct librechat_file file = { .name = "" };
                if (read_file(json, i, arena, &file, err) < 0)
                        return -err->code;
                *place_of(exec, file.name) = file;
        }
        return 0;
}

/* ---- the program ---- */

static int add_args(json_t *ours, json_t *args, struct csn_error *err)
{
        json_t *list = json_array(), *arg;
        size_t i;
        json_object_set_new(ours, "args", list);
        if (json_is_string(args))
                json_array_append(list, args);
        else if (args && !json_is_array(args))
                return err_field(err, "args", "args has to be an array of texts");
        json_array_foreach(args, i, arg) {
                if (!json_is_string(arg))
                        return err_field(err, "args", "args[%zu] has to be a text", i);
                json_array_append(list, arg);
        }
        return 0;
}

static int add_timeout(const struct http_request *request, json_t *ours, const json_t *body, struct csn_error *err)
{
        const json_t *timeout = member(body, "timeout");
        const struct limits *most = &service_of(request)->settings->ceilings;
        if (!timeout)
                return 0;
        if (!json_is_number(timeout) || json_number_value(timeout) <= 0)
                return err_field(err, "timeout", "timeout has to be a number of milliseconds above 0");
        json_object_set_new(ours, "limits",
                json_pack("{s:o}", "wall_ms",
                        compat_scaled(json_number_value(timeout), 1, TIMEOUT_MS_MIN, most->wall_ms)));
        return 0;
}

static int read_session(const json_t *body, struct librechat_exec *exec, struct csn_error *err)
{
        const json_t *session = member(body, "session_id");
        char digits[ID_DIGITS + 1];
        const char *text = json_string_value(session);
        if (!session || (text && !text[0]))
                return 0;
        if (!text || !id_from_compact(text, json_string_length(session), digits))
                return err_field(err, "session_id", "session_id has to be an id of %d characters, A-Z, a-z, 0-9, _ and -",
                        ID_COMPACT_LEN);
        memcpy(exec->session, text, ID_COMPACT_LEN + 1);
        return 0;
}

static int read_program(const struct http_request *request, const json_t *body, const char *language, json_t *ours,
        struct librechat_exec *exec, struct csn_error *err)
{
        json_t *code = member(body, "code");
        const char *lang, *user, *entity;
        if (!json_is_string(code) || !json_string_length(code))
                return err_field(err, "code", "code is required as a text");
        if (text_member(body, "lang", &lang, err) < 0 || text_member(body, "user_id", &user, err) < 0 ||
                text_member(body, "entity_id", &entity, err) < 0)
                return -err->code;
        if (!lang && !language)
                return err_field(err, "lang", "lang is required, such as py, js, ts or bash");
        if (lang_find(engine_languages(service_of(request)->engine), lang ? lang : language, &exec->language, err) < 0)
                return -err->code;
        json_object_set(ours, "code", code);
        json_object_set_new(ours, "language", json_string(exec->language->name));
        if (can_keep(request))
                json_object_set_new(ours, "exports", json_pack("[{s:s}]", "pattern", "*"));
        if (user)
                json_object_set(ours, "user", json_object_get(body, "user_id"));
        return 0;
}

static int check_environment(const struct http_request *request, struct csn_error *err)
{
        const char *profile = http_header(request, LIBRECHAT_PROFILE_HEADER);
        if (profile && strcmp(profile, "default") != 0)
                return err_field(err, LIBRECHAT_PROFILE_HEADER,
                        "the execution profile %.40s is not served here; the only one is default", profile);
        if (http_header(request, LIBRECHAT_WORKSPACE_HEADER))
                return err_field(err, LIBRECHAT_WORKSPACE_HEADER,
                        "workspaces that last are not served here; leave the header out and name files");
        return 0;
}

int librechat_read(const struct http_request *request, json_t *body, const char *language, struct arena *arena,
        struct librechat_exec *ret, json_t **ret_ours, struct csn_error *err)
{
        json_t *ours = json_object();
        *ret = (struct librechat_exec){ 0 };
        int rc = check_environment(request, err);
        rc = rc < 0 ? rc : read_program(request, body, language, ours, ret, err);
        rc = rc < 0 ? rc : add_args(ours, member(body, "args"), err);
        rc = rc < 0 ? rc : add_timeout(request, ours, body, err);
        rc = rc < 0 ? rc : read_files(body, arena, ret, err);
        rc = rc < 0 ? rc : read_session(body, ret, err);
        if (rc < 0) {
                json_decref(ours);
                return rc;
        }
        *ret_ours = ours;
        return 0;
}

/* ---- inputs ---- */

/* All files of the session, where the request names none. */
static int add_session(const struct http_request *request, struct librechat_exec *exec, struct arena *arena,
        struct csn_error *err)
{
        struct store_file *list;
        size_t n;
        if (librechat_session_files(service_of(request)->store, request->tenant, exec->session, arena, &list, &n,
                    err) < 0)
                return -err->code;
        if (n > LIBRECHAT_FILES_MAX)
                return err_field(err, "session_id", "the session has more than %d files; name those that are needed in files",
                        LIBRECHAT_FILES_MAX);
        exec->files = arena_alloc(arena, (n + 1) * sizeof *exec->files);
        for (size_t i = 0; i < n; i++) {
                struct librechat_file file = { .name = stored_path_of_name(arena, list[i].name), .version = -1 };
                memcpy(file.session, exec->session, sizeof file.session);
                librechat_id_of(&list[i], file.id);
                *place_of(exec, file.name) = file;
        }
        return 0;
}

static int check_file(const struct http_request *request, const struct librechat_file *file, struct arena *arena,
        struct store_file *ret, struct csn_error *err)
{
        bool there = false;
        if (librechat_find(service_of(request)->store, request->tenant, file->session, file->id, arena, ret, &there,
                    err) < 0)
                return -err->code;
        if (there)
                return 0;
        err_field(err, "files", "the file %s/%s does not exist or has expired; upload it again", file->session,
                file->id);
        err->sys = ENOENT;
        return -err->code;
}

/*
 * Check that the tenant has the files, and set them as the inputs.  Errors: CSN_E_INPUT, with err->sys ENOENT for an
 * absent file.
 */
static int take_files(const struct http_request *request, struct librechat_exec *exec, struct arena *arena,
        struct run_request *given, struct csn_error *err)
{
        if (!exec->files_n && !exec->session[0])
                return 0;
        if (!can_keep(request))
                return err_field(err, "files", "files need a key with the scope files");
        if (!exec->files_n && add_session(request, exec, arena, err) < 0)
                return -err->code;
        struct input_file *list = arena_alloc(arena, (exec->files_n + 1) * sizeof *list);
        for (size_t i = 0; i < exec->files_n; i++) {
                struct store_file file;
                if (check_file(request, &exec->files[i], arena, &file, err) < 0)
                        return -err->code;
                SET(&list[i], input_file, name, arena_text(arena, "%s", exec->files[i].name));
                SET(&list[i], input_file, id, arena_text(arena, "%s", file.id));
        }
        given->files = list;
        given->files_n = exec->files_n;
        MARK(given, run_request, files);
        return 0;
}

/* A file of the user may have the name of the program's own file. */
static void choose_name(const struct librechat_exec *exec, struct arena *arena, struct run_request *given)
{
        const char *file = exec->language->file;
        char *name = arena_text(arena, "%s", file);
        for (size_t i = 0, n = 1; i < exec->files_n;)
                if (strcmp(exec->files[i].name, name) == 0) {
                        name = arena_text(arena, "program%zu.%s", n++, file);
                        i = 0;                 /* from the first file on again */
                } else {
                        i++;
                }
        if (strcmp(name, file) != 0)
                SET(given, run_request, name, name);
}

bool librechat_begin(struct http_request *request, struct run *run, struct librechat_exec *exec)
{
        struct http_limit limit = { 0 };
        struct csn_error err = { 0 };
        run_make_compact_id(run);
        if (take_files(request, exec, run_arena(run), run_request(run), &err) < 0) {
                run_free(run);
                librechat_fail(request, &err);
                return false;
        }
        choose_name(exec, run_arena(run), run_request(run));
        if (service_may_run(request, run, &limit, &err) < 0) {
                run_free(run);
                librechat_busy(request, &limit, &err);
                return false;
        }
        run_storage_set_session(request, run);
        return true;
}
