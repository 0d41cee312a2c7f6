/* Files of sessions: lists, downloads, removal. */
#include "front/librechat/librechat.h"

#include <ctype.h>
#include <stdio.h>

void librechat_id_of(const struct store_file *file, char ret[static ID_COMPACT_LEN + 1])
{
        const char *digits = strrchr(file->id, '_');
        id_to_compact(digits + 1, ret);
}

/* ---- the store ---- */

/* A run and an upload never have the same id, so at most one of the two lists has files. */
int librechat_session_files(struct store *store, const char *tenant, const char *session, struct arena *arena,
        struct store_file **ret, size_t *ret_n, struct csn_error *err)
{
        static const char *const kinds[] = { LIBRECHAT_RUN, LIBRECHAT_UPLOAD };
        char digits[ID_DIGITS + 1], owner[LIBRECHAT_OWNER_MAX];
        *ret_n = 0;
        if (!id_from_compact(session, strlen(session), digits))
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(kinds) && !*ret_n; i++) {
                snprintf(owner, sizeof owner, "%s%s", kinds[i], digits);
                const struct files_filter filter = { .tenant = tenant, .run = owner, .n = LIBRECHAT_FILES_MAX + 1 };
                if (files_of(store, &filter, arena, ret, ret_n, err) < 0)
                        return -err->code;
        }
        for (size_t i = 0; i < *ret_n / 2; i++) {      /* the store has the newest first */
                struct store_file file = (*ret)[i];
                (*ret)[i] = (*ret)[*ret_n - 1 - i];
                (*ret)[*ret_n - 1 - i] = file;
        }
        return 0;
}

int librechat_find(struct store *store, const char *tenant, const char *session, const char *id, struct arena *arena,
        struct store_file *ret, bool *ret_there, struct csn_error *err)
{
        char digits[ID_DIGITS + 1], owner[ID_DIGITS + 1], name[FILE_ID_MAX];
        *ret_there = false;
        if (!id_from_compact(id, strlen(id), digits) || !id_from_compact(session, strlen(session), owner))
                return 0;
        snprintf(name, sizeof name, "file_%s", digits);
        if (files_find(store, name, tenant, arena, ret, ret_there, err) < 0)
                return -err->code;
        const char *has = *ret_there ? strrchr(ret->run, '_') : NULL;
        *ret_there = has && strcmp(has + 1, owner) == 0;
        return 0;
}

/* ---- requests ---- */

static bool check_id(struct http_request *request, size_t part, const char *name)
{
        char digits[ID_DIGITS + 1];
        struct csn_error err;
        const char *text = http_part(request, part);
        if (id_from_compact(text, strlen(text), digits))
                return true;
        err_field(&err, name, "%s has to be an id of %d characters, A-Z, a-z, 0-9, _ and -", name, ID_COMPACT_LEN);
        librechat_problem(request, MHD_HTTP_BAD_REQUEST, &err);
        return false;
}

/* The file of a path.  false: the request has its answer. */
static bool find_file(struct http_request *request, struct store_file *ret)
{
        struct csn_error err;
        bool there;
        if (!check_id(request, 0, "session_id") || !check_id(request, 1, "file_id"))
                return false;
        if (librechat_find(service_of(request)->store, request->tenant, http_part(request, 0), http_part(request, 1),
                    &request->arena, ret, &there, &err) < 0) {
                librechat_fail(request, &err);
                return false;
        }
        if (there)
                return true;
        err_field(&err, "file_id", "the file does not exist or has expired");
        librechat_problem(request, MHD_HTTP_NOT_FOUND, &err);
        return false;
}

/* ---- lists ---- */

static json_t *time_json(const struct store_file *file)
{
        char text[40];
        time_print(file->created_ms, text, sizeof text);
        return json_string(text);
}

/* "normalized": a file as a request to /exec names it. */
static json_t *reference_json(const struct store_file *file, const char *session, const char *id, const char *path)
{
        (void)file;
        return json_pack("{s:s, s:s, s:s, s:s, s:o}", "id", id, "name", path, "session_id", session,
                "storage_session_id", session, "path", json_sprintf(LIBRECHAT_FOLDER "/%s", path));
}

/* LibreChat looks for the entry of which the name begins with SESSION/FILE. */
static json_t *summary_json(const struct store_file *file, const char *session, const char *id, const char *path)
{
        (void)path;
        return json_pack("{s:o, s:o}", "name", json_sprintf("%s/%s", session, id), "lastModified", time_json(file));
}

static json_t *full_json(const struct store_file *file, const char *session, const char *id, const char *path)
{
        json_t *json = summary_json(file, session, id, path);
        json_t *more = json_pack("{s:s, s:s, s:s, s:I, s:s, s:o, s:{s:s, s:s}}", "id", id, "session_id", session,
                "storage_session_id", session, "size", (json_int_t)file->size, "contentType", file->mime, "etag",
                json_sprintf("\"%s\"", file->sha256), "metadata", "original-filename", path, "content-type",
                file->mime);
        json_object_update(json, more);
        json_decref(more);
        return json;
}

void librechat_list(struct http_request *request)
{
        const char *detail = http_query(request, "detail"), *session = http_part(request, 0);
        struct store_file *files;
        struct csn_error err;
        size_t n, len;
        if (!check_id(request, 0, "session_id"))
                return;
        if (librechat_session_files(service_of(request)->store, request->tenant, session, &request->arena, &files, &n,
                    &err) < 0) {
                librechat_fail(request, &err);
                return;
        }
        json_t *(*make)(const struct store_file *, const char *, const char *, const char *) = full_json;
        if (detail && strcmp(detail, "summary") == 0)
                make = summary_json;
        else if (detail && (strcmp(detail, "simple") == 0 || strcmp(detail, "normalized") == 0))
                make = reference_json;
        json_t *list = json_array();
        for (size_t i = 0; i < n && i < LIBRECHAT_FILES_MAX; i++) {
                char id[ID_COMPACT_LEN + 1];
                const char *path = stored_path_of_name(&request->arena, files[i].name);
                librechat_id_of(&files[i], id);
                json_array_append_new(list, make(&files[i], session, id,
                        model_utf8(&request->arena, path, strlen(path), &len)));
        }
        http_json(request, MHD_HTTP_OK, list);
}

/* ---- one file ---- */

/* The last part of the path, with all bytes but letters, digits and "-._" as %XX (RFC 8187). */
static char *disposition_of(struct http_request *request, const char *path)
{
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        size_t len;
        name = model_utf8(&request->arena, name, strlen(name), &len);
        struct buf text;
        buf_init(&text, 16 * KIB);
        buf_printf(&text, "attachment; filename*=UTF-8''");
        for (const unsigned char *at = (const unsigned char *)name; *at; at++) {
                bool is_plain = *at < 0x80 && (isalnum(*at) || strchr("-._", *at));
                buf_printf(&text, is_plain ? "%c" : "%%%02X", *at);
        }
        char *copy = arena_copy(&request->arena, text.bytes, text.len);
        buf_done(&text);
        return copy;
}

void librechat_download(struct http_request *request)
{
        struct store_file file;
        struct csn_error err;
        bool there;
        int fd = -1;
        if (!find_file(request, &file))
                return;
        if (files_content(service_of(request)->store, file.id, request->tenant, &request->arena, &file, &fd, &there,
                    &err) < 0) {
                librechat_fail(request, &err);
                return;
        }
        if (!there) {
                err_field(&err, "file_id", "the content of the file is lost");
                librechat_problem(request, MHD_HTTP_NOT_FOUND, &err);
                return;
        }
        http_set_header(request, "Content-Disposition",
                disposition_of(request, stored_path_of_name(&request->arena, file.name)));
        http_answer_file(request, MHD_HTTP_OK, "application/octet-stream", fd, 0, file.size);
}

void librechat_delete(struct http_request *request)
{
        struct store_file file;
        struct csn_error err;
        bool there;
        if (!find_file(request, &file))
                return;
        if (files_forget(service_of(request)->store, file.id, request->tenant, &there, &err) < 0)
                librechat_fail(request, &err);
        else
                http_json(request, MHD_HTTP_OK,
                        json_pack("{s:s, s:s, s:s}", "message", "success", "session_id", http_part(request, 0),
                                "fileId", http_part(request, 1)));
}

void librechat_object(struct http_request *request)
{
        struct store_file file;
        size_t len;
        if (!find_file(request, &file))
                return;
        const char *path = stored_path_of_name(&request->arena, file.name);
        json_t *json = full_json(&file, http_part(request, 0), http_part(request, 1),
                model_utf8(&request->arena, path, strlen(path), &len));
        http_json(request, MHD_HTTP_OK, json);
}
