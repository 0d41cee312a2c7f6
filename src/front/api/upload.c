/*
 * Many files in a body of multipart/form-data, written by the guest in sequence.  The error of a file is in the answer
 * and does not hinder the others; after a truncated or malformed body the files complete by then stay.
 */
#include "front/api/api.h"
#include "net/multipart.h"

#define PARTS_MAX 1000

struct upload {
        struct http_request *request;
        struct psandbox *psandbox;
        char *folder;
        struct multipart parser;
        struct guest_call call;
        char *name;                        /* of the file being written */
        bool open, ending;                 /* the file's call goes on; all its bytes were sent */
        bool whole;                        /* the body has come */
        size_t parts;
        struct csn_error broken;           /* code 0: the body is well-formed so far */
        struct csn_error first;            /* of the first file with an error */
        json_t *entries, *errors;
};

static void upload_free(struct upload *upload)
{
        guest_call_close(&upload->call);
        multipart_done(&upload->parser);
        json_decref(upload->entries);
        json_decref(upload->errors);
        free(upload->folder);
        free(upload->name);
        free(upload);
}

static void on_gone(struct http_request *request)
{
        upload_free(request->owner);
}

static void answer(struct upload *upload)
{
        struct http_request *request = upload->request;
        struct csn_error err;
        request->gone = NULL;
        if (upload->broken.code)
                http_fail(request, &upload->broken);
        else if (!upload->parts)
                err_field(&err, "/", "there is no file in the body"), http_fail(request, &err);
        else if (!json_array_size(upload->entries))
                api_file_error(request, &upload->first);
        else
                http_json(request, MHD_HTTP_CREATED,
                        json_pack("{s:O, s:O}", "entries", upload->entries, "errors", upload->errors));
        upload_free(upload);
}

/* ---- files ---- */

static void file_failed(struct upload *upload, const struct csn_error *error)
{
        struct arena arena = { 0 };
        size_t name_len, text_len;
        const char *name = model_utf8(&arena, upload->name, strlen(upload->name), &name_len);
        const char *text = model_utf8(&arena, error->text, strlen(error->text), &text_len);
        if (!upload->first.code)
                upload->first = *error;
        json_array_append_new(upload->errors,
                json_pack("{s:s, s:s, s:s}", "name", name, "code", csn_code_name(error->code), "message", text));
        arena_done(&arena);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct upload *upload = call->owner;
        struct arena arena = { 0 };
        struct guest_entry entry;
        struct csn_error err;
        (void)fds;
        /* A file has one entry, at its end: other entries of a guest are not put into the answer. */
        if (kind == GUEST_ENTRY && upload->ending && guest_get_entry(bytes, len, &arena, &entry, &err) == 0 &&
            json_array_size(upload->entries) + json_array_size(upload->errors) < upload->parts)
                json_array_append_new(upload->entries, api_entry(&entry));
        arena_done(&arena);
}

static void go_on(struct upload *upload);

static void on_room(struct guest_call *call)
{
        go_on(call->owner);
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct upload *upload = call->owner;
        upload->open = upload->ending = false;
        if (error)
                file_failed(upload, error);
        go_on(upload);
}

static void begin_file(struct upload *upload)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        const struct multipart *part = &upload->parser;
        struct arena arena = { 0 };
        struct csn_error err;
        struct guest_file file = { .verb = GUEST_WRITE,
                .path = arena_text(&arena, "%s/%s", upload->folder, part->name) };
        int rc = 0;
        free(upload->name);
        upload->name = mem_copy(part->has_name ? part->name : "", part->has_name ? strlen(part->name) : 0);
        upload->call = (struct guest_call){ .events = &events, .owner = upload };
        upload->parts++;
        if (!part->has_name || !part->name[0])
                rc = err_field(&err, "/", "a part has no filename, or one that is too long");
        else if (strlen(file.path) >= GUEST_PATH_MAX)
                rc = err_field(&err, "/", "the path of %.60s... is longer than %d bytes", part->name,
                        GUEST_PATH_MAX - 1);
        else
                rc = guest_call_file(upload->psandbox, &upload->call, &file, &err);
        upload->open = rc == 0;
        if (rc < 0)
                file_failed(upload, &err);
        arena_done(&arena);
}

/* ---- the body ---- */

/* False: wait for more of the body or for the guest, or the body is at its end. */
static bool step_on(struct upload *upload)
{
        struct multipart *parser = &upload->parser;
        struct csn_error err;
        if (upload->broken.code || upload->ending)
                return false;
        int step = multipart_next(parser, &err);
        size_t len = min_u64(parser->len, GUEST_DATA_MAX);
        if (step == MULTIPART_DATA && upload->open && !guest_call_send(&upload->call, GUEST_DATA, parser->bytes, len))
                return false;
        if (step == MULTIPART_END && upload->open) {
                upload->ending = guest_call_send(&upload->call, GUEST_DATA_END, "", 0);
                if (!upload->ending)
                        return false;
        }
        if (step == MULTIPART_PART && upload->parts == PARTS_MAX)
                step = err_field(&err, "/", "there are more than %d files in the body", PARTS_MAX);
        else if (step == MULTIPART_PART)
                begin_file(upload);
        if (step < 0 || (step == MULTIPART_MORE && upload->whole)) {
                if (step == MULTIPART_MORE)
                        err_field(&err, "/", "the body ends before its last boundary");
                upload->broken = err;
                guest_call_close(&upload->call);
                upload->open = false;
                return false;
        }
        if (step == MULTIPART_MORE || step == MULTIPART_DONE)
                return false;
        multipart_take(parser, step, len);
        return true;
}

static void go_on(struct upload *upload)
{
        while (step_on(upload))
                ;
        if (!upload->whole)
                http_more(upload->request);
        else if (!upload->open)
                answer(upload);
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct upload *upload = request->owner;
        size_t n = upload->broken.code ? len : multipart_add(&upload->parser, bytes, len);
        while (step_on(upload))
                ;
        return n;
}

static void whole(struct http_request *request)
{
        struct upload *upload = request->owner;
        upload->whole = true;
        go_on(upload);
}

void api_post_files(struct http_request *request)
{
        const char *path;
        struct csn_error err;
        struct psandbox *psandbox = api_file_target(request, &path);
        if (!psandbox)
                return;
        struct upload *upload = mem_alloc(sizeof *upload);
        *upload = (struct upload){ .request = request,
                .psandbox = psandbox,
                .folder = mem_copy(path, strlen(path)),
                .entries = json_array(),
                .errors = json_array() };
        if (multipart_init(&upload->parser, http_header(request, "Content-Type"), &err) < 0) {
                upload_free(upload);
                http_fail(request, &err);
                return;
        }
        request->owner = upload;
        request->gone = on_gone;
        request->take = take;
        request->whole = whole;
}
