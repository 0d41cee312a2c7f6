/*
 * POST /upload and /upload/batch: a form of files becomes a session.
 *
 * LibreChat sends the files in parts "file", and entity_id, kind, id, version and read_only as parts of their own.  A
 * file is written to the disk as it comes.  Of /upload all files are kept or none; of /upload/batch each file has a
 * status of its own.
 */
#include "front/librechat/librechat.h"

#include "engine/output/files.h"
#include "net/multipart.h"

#include <stdio.h>

#define HEAD_BYTES 16                      /* of the content, which tell the MIME type */
#define FIELD_BYTES_MAX (64 * KIB)         /* of all parts that are no files */
#define NAME_BYTES_MAX 1024                /* as of an input file */

struct part {
        struct part *next;
        struct incoming *incoming;         /* NULL: refused */
        struct store_file file;
        const char *path;                  /* as sent */
        char head[HEAD_BYTES];
        size_t head_len;
        struct csn_error error;            /* code 0: none */
};

struct upload {
        struct http_request *request;
        struct service *service;
        struct arena arena;
        struct multipart parser;
        struct part *first, **last, *open; /* open: gets the bytes; NULL: a part that is no file */
        size_t n, field_bytes;
        char session[ID_DIGITS + 1], owner[LIBRECHAT_OWNER_MAX];
        bool is_batch;
        struct csn_error error;            /* of the whole form; code 0: none */
};

static void upload_drop(struct upload *upload)
{
        for (struct part *part = upload->first; part; part = part->next) {
                incoming_close(part->incoming);
                part->incoming = NULL;
        }
}

static void upload_free(struct upload *upload)
{
        upload_drop(upload);
        multipart_done(&upload->parser);
        arena_done(&upload->arena);
        free(upload);
}

static void on_gone(struct http_request *request)
{
        upload_free(request->owner);
}

/* ---- parts ---- */

static int check_path(const char *path, struct csn_error *err)
{
        if (!path[0] || strlen(path) > NAME_BYTES_MAX)
                return err_field(err, "file", "a file's name has 1 to %d bytes", NAME_BYTES_MAX);
        for (const char *at = path; *at; at += strcspn(at, "/")) {
                at += *at == '/' && at > path;
                size_t len = strcspn(at, "/");
                bool is_dots = (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.');
                if (!len || is_dots)
                        return err_field(err, "file",
                                "the name %.60s has an empty part, . or ..; send a path below " LIBRECHAT_FOLDER, path);
        }
        return utf8_valid(path, strlen(path)) ? 0 : err_field(err, "file", "a file's name has to be UTF-8");
}

static void begin_file(struct upload *upload)
{
        const struct service *service = upload->service;
        const struct store_room room = service_room(upload->request);
        struct part *part = arena_alloc(&upload->arena, sizeof *part);
        part->path = arena_text(&upload->arena, "%s", upload->parser.name);
        part->file = (struct store_file){ .name = stored_name_of_path(&upload->arena, part->path),
                .run = upload->owner,
                .user = arena_text(&upload->arena, "%s", ""),
                .expires_ms = time_now_ms() + (int64_t)service->settings->engine.files_keep_ms };
        files_make_compact_id(part->file.id);
        *upload->last = part;
        upload->last = &part->next;
        upload->open = part;
        if (++upload->n > LIBRECHAT_FILES_MAX) {
                err_field(&upload->error, "file", "the form has more than %d files", LIBRECHAT_FILES_MAX);
                upload->error.sys = EFBIG;
        } else if (check_path(part->path, &part->error) == 0 &&
                files_check_name(part->file.name, strlen(part->file.name), &part->error) == 0) {
                incoming_open(service->store, upload->request->tenant, &room, &part->incoming, &part->error);
        }
}

static void add_bytes(struct upload *upload, const char *bytes, size_t len)
{
        struct part *part = upload->open;
        if (!part) {
                upload->field_bytes += len;
                if (upload->field_bytes > FIELD_BYTES_MAX)
                        err_field(&upload->error, "", "the parts of the form that are no files have more than %llu bytes",
                                FIELD_BYTES_MAX);
                return;
        }
        size_t head = min_u64(len, HEAD_BYTES - part->head_len);
        memcpy(part->head + part->head_len, bytes, head);
        part->head_len += head;
        if (part->incoming && incoming_add(part->incoming, bytes, len, &part->error) < 0) {
                incoming_close(part->incoming);
                part->incoming = NULL;
        }
}

/* ---- the body ---- */

static bool step_on(struct upload *upload)
{
        struct multipart *parser = &upload->parser;
        if (upload->error.code)
                return false;
        int step = multipart_next(parser, &upload->error);
        if (step < 0 || step == MULTIPART_MORE || step == MULTIPART_DONE)
                return false;
        size_t len = parser->len;
        if (step == MULTIPART_PART && parser->has_name)
                begin_file(upload);
        else if (step == MULTIPART_PART)
                upload->open = NULL;
        else if (step == MULTIPART_DATA)
                add_bytes(upload, parser->bytes, len);
        multipart_take(parser, step, len);
        return true;
}

/* After an error the rest of the body is thrown away: the answer has to wait for its end. */
static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct upload *upload = request->owner;
        size_t taken = upload->error.code ? len : multipart_add(&upload->parser, bytes, len);
        while (step_on(upload))
                continue;
        if (upload->error.code)
                upload_drop(upload);
        return taken;
}

/* ---- the end ---- */

static void keep_part(struct upload *upload, struct part *part)
{
        if (part->error.code)
                return;
        part->file.mime = arena_text(&upload->arena, "%s", files_mime(part->path, part->head, part->head_len));
        files_add(part->incoming, &part->file, &part->error);
}

/* Without a batch one refused file refuses all. */
static void settle(struct upload *upload)
{
        struct csn_error ignored;
        bool there;
        for (struct part *part = upload->first; part && !upload->error.code; part = part->next) {
                keep_part(upload, part);
                if (part->error.code && !upload->is_batch)
                        upload->error = part->error;
        }
        if (!upload->n && !upload->error.code)
                err_field(&upload->error, "file", "the form has no file: a part needs a filename");
        for (struct part *part = upload->first; part && upload->error.code; part = part->next)
                if (!part->error.code && part->file.size)
                        files_forget(upload->service->store, part->file.id, upload->request->tenant, &there, &ignored);
}

static json_t *part_json(const struct part *part, const char *session, bool is_batch)
{
        char id[ID_COMPACT_LEN + 1];
        if (part->error.code)
                return json_pack("{s:s, s:s, s:s}", "status", "error", "filename", part->path, "error",
                        part->error.text);
        librechat_id_of(&part->file, id);
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:s}", "fileId", id, "filename", part->path, "id", id, "name",
                part->path, "storage_session_id", session);
        if (is_batch)
                json_object_set_new(json, "status", json_string("success"));
        return json;
}

static void answer(struct upload *upload)
{
        struct http_request *request = upload->request;
        char session[ID_COMPACT_LEN + 1];
        size_t failed = 0;
        if (upload->error.code) {
                librechat_fail(request, &upload->error);
                return;
        }
        id_to_compact(upload->session, session);
        json_t *list = json_array();
        for (const struct part *part = upload->first; part; part = part->next) {
                failed += part->error.code != 0;
                json_array_append_new(list, part_json(part, session, upload->is_batch));
        }
        const char *message = !failed ? "success" : failed == upload->n ? "error" : "partial";
        json_t *json = json_pack("{s:s, s:s, s:s, s:o}", "message", message, "session_id", session,
                "storage_session_id", session, "files", list);
        if (upload->is_batch) {
                json_object_set_new(json, "succeeded", json_integer((json_int_t)(upload->n - failed)));
                json_object_set_new(json, "failed", json_integer((json_int_t)failed));
        }
        http_json(request, MHD_HTTP_OK, json);
}

static void whole(struct http_request *request)
{
        struct upload *upload = request->owner;
        struct csn_error err;
        while (step_on(upload))
                continue;
        if (!upload->error.code && multipart_next(&upload->parser, &err) != MULTIPART_DONE)
                err_field(&upload->error, "", "the form ends before its last boundary");
        settle(upload);
        request->gone = NULL;
        answer(upload);
        upload_free(upload);
}

static void begin(struct http_request *request, bool is_batch)
{
        struct upload *upload = mem_alloc(sizeof *upload);
        struct csn_error err;
        *upload = (struct upload){ .request = request, .service = service_of(request), .is_batch = is_batch };
        upload->last = &upload->first;
        id_new_compact(upload->session);
        snprintf(upload->owner, sizeof upload->owner, LIBRECHAT_UPLOAD "%s", upload->session);
        if (multipart_init(&upload->parser, http_header(request, "Content-Type"), &err) < 0) {
                upload_free(upload);
                librechat_fail(request, &err);
                return;
        }
        request->owner = upload;
        request->gone = on_gone;
        request->take = take;
        request->whole = whole;
}

void librechat_upload(struct http_request *request)
{
        begin(request, false);
}

void librechat_upload_batch(struct http_request *request)
{
        begin(request, true);
}
