/*
 * Stored files: uploads, lists, downloads.  The bytes of an upload go to the disk on arrival, and become a file when
 * the body is complete; a client gone earlier leaves nothing.
 */
#include "front/api/api.h"
#include "front/service/page.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "engine/output/files.h"
#include "net/http_headers.h"

#define PARTS_MAX 100                      /* files of one upload */
#define POST_BUFFER 4096                   /* libmicrohttpd's, for the heads of parts */
#define STORED_LIST 100                    /* files of a list where the query has no limit */
#define HEAD_BYTES 16                      /* at the start of a file, for its media type */
#define HEADS_PIECE 1024                   /* bytes of a form, while each piece had heads of parts: 1 ms */
#define PARTS_AT_ONCE 4                    /* files of which the rows are added in the step of the body's end */
#define SLICE_US 1000                      /* of one step: rows of the store, and the disk may be busy */
#define LIST_SLICE 25                      /* rows of a list between two looks at the clock: 0.5 ms */

struct part {
        struct part *next;
        struct incoming *incoming;
        char head[HEAD_BYTES];
        size_t head_len;
        struct store_file file;
};

struct api_upload {
        struct api_upload *next; /* in the list of the front, if `whole` */
        struct service *service;
        struct http_request *request; /* NULL: the client has gone */
        char tenant[80];
        struct arena arena;
        struct MHD_PostProcessor *post;    /* NULL: the body is the file */
        struct part *parts, *last;
        size_t parts_n;
        struct csn_error error;            /* code 0: none */
        bool form, whole;                  /* whole: the body has come, and rows are added, or removed after an error */
        struct part *at;                   /* of the next row */
        struct timer later;                /* the step was long enough */
};

/* A list read in slices, in the request's arena. */
struct listing {
        struct http_request *request;
        struct service_page page;
        int64_t below; /* rows of smaller numbers follow */
        bool begun;
        struct timer later;
};

/* ---- errors ---- */

void api_no_such(struct http_request *request, const char *what)
{
        struct csn_error err;
        err_field(&err, "", "the %s does not exist or was removed", what);
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
}

/* ---- the content of a file ---- */

/* RFC 8187: every byte outside `plain` is written as %XX. */
static void set_disposition(struct http_request *request, const char *name)
{
        static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
        struct buf text;
        size_t len;
        const char *safe = model_utf8(&request->arena, name, strlen(name), &len);
        buf_init(&text, 16 * KIB);
        buf_printf(&text, "attachment; filename*=UTF-8''");
        for (size_t i = 0; i < len; i++)
                buf_printf(&text, safe[i] && strchr(plain, safe[i]) ? "%c" : "%%%02X", (unsigned char)safe[i]);
        http_set_header(request, "Content-Disposition", text.bytes);
        buf_done(&text);
}

/*
 * Range (RFC 9110, 14.2) of one range: "bytes=5-", "bytes=5-9", "bytes=-5".  0: no range, or an unknown form: send the
 * whole file; 1: send the range; -1: the file has no byte of the range.
 */
static int take_range(const char *text, uint64_t size, uint64_t *ret_offset, uint64_t *ret_length)
{
        char *end;
        uint64_t first, length;
        if (header_range(text, &first, &length)) {
                if (first >= size)
                        return -1;
                *ret_offset = first;
                *ret_length = min_u64(length, size - first);
                return 1;
        }
        if (!text || strncmp(text, "bytes=-", 7) != 0 || text[7] < '0' || text[7] > '9')
                return 0;
        length = strtoull(text + 7, &end, 10);
        if (*end)
                return 0;
        *ret_length = min_u64(length, size);
        *ret_offset = size - *ret_length;
        return *ret_length ? 1 : -1;
}

void api_send_file(struct http_request *request, int fd, const char *name)
{
        struct csn_error err;
        struct stat st;
        uint64_t offset = 0, length;
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                err_set(&err, CSN_E_SYSTEM, errno, "read the file");
                fd_close(&fd);
                http_fail(request, &err);
                return;
        }
        uint64_t size = length = (uint64_t)st.st_size;
        int range = take_range(http_header(request, "Range"), size, &offset, &length);
        http_set_header(request, "Accept-Ranges", "bytes");
        if (range)
                http_set_range(request, offset, range > 0 ? length : 0, size);
        if (range < 0) {
                fd_close(&fd);
                err_field(&err, "Range", "the file has %" PRIu64 " bytes, and none of this range", size);
                http_problem(request, MHD_HTTP_RANGE_NOT_SATISFIABLE, &err);
                return;
        }
        set_disposition(request, name);
        http_answer_file(request, range ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, "application/octet-stream", fd,
                offset, length);
}

static json_t *file_json(const struct store_file *file)
{
        struct arena arena = { 0 };
        char created[40], expires[40], url[80];
        size_t len;
        time_print(file->created_ms, created, sizeof created);
        time_print(file->expires_ms, expires, sizeof expires);
        snprintf(url, sizeof url, "sandbox:/v1/files/%s", file->id);
        json_t *json = json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "id", file->id, "name",
                model_utf8(&arena, file->name, strlen(file->name), &len), "size_bytes", (json_int_t)file->size,
                "sha256", file->sha256, "mime", file->mime, "url", url, "created_at", created, "expires_at", expires);
        if (!utf8_valid(file->name, strlen(file->name)))
                json_object_set_new(json, "name_base64",
                        json_string(model_base64(&arena, file->name, strlen(file->name))));
        if (file->run[0])
                json_object_set_new(json, "run", json_string(file->run));
        if (file->user[0])
                json_object_set_new(json, "user", json_string(file->user));
        arena_done(&arena);
        return json;
}

void api_get_stored(struct http_request *request)
{
        struct store_file file;
        struct csn_error err;
        bool there;
        int fd = -1;
        if (files_content(service_of(request)->store, http_part(request, 0), request->tenant, &request->arena, &file,
                          &fd, &there, &err) < 0)
                http_fail(request, &err);
        else if (there)
                api_send_file(request, fd, file.name);
        else
                api_no_such(request, "file");
}

void api_stored_info(struct http_request *request)
{
        struct store_file file;
        struct csn_error err;
        bool there;
        if (files_find(service_of(request)->store, http_part(request, 0), request->tenant, &request->arena, &file,
                       &there, &err) < 0)
                http_fail(request, &err);
        else if (there)
                http_json(request, MHD_HTTP_OK, file_json(&file));
        else
                api_no_such(request, "file");
}

void api_delete_stored(struct http_request *request)
{
        struct csn_error err;
        bool there;
        if (files_forget(service_of(request)->store, http_part(request, 0), request->tenant, &there, &err) < 0)
                http_fail(request, &err);
        else if (there)
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
        else
                api_no_such(request, "file");
}

/* The next rows.  Returns 1 if more follow, 0 at the end. */
static int list_rows(struct listing *listing, struct csn_error *err)
{
        struct http_request *request = listing->request;
        struct service_page *page = &listing->page;
        struct store_file *files;
        size_t found;
        const struct files_filter filter = { .tenant = request->tenant,
                .before = listing->begun ? NULL : http_query(request, "before"),
                .run = http_query(request, "run"),
                .user = http_query(request, "user"),
                .below = listing->below,
                .n = min_u64(LIST_SLICE, page->most + 1 - page->n) };
        if (files_of(service_of(request)->store, &filter, &request->arena, &files, &found, err) < 0)
                return -err->code;
        listing->begun = true;
        for (size_t i = 0; i < found; i++) {
                listing->below = files[i].number;
                if (service_page_has(page, (uint64_t)files[i].number, 0))
                        service_page_add(page, file_json(&files[i]));
        }
        return found == filter.n && !page->more;
}

static void list_some(struct timer *timer)
{
        struct listing *listing = timer->owner;
        struct http_request *request = listing->request;
        uint64_t until_us = clock_us() + SLICE_US;
        struct csn_error err;
        int more;
        while ((more = list_rows(listing, &err)) > 0)
                if (clock_us() > until_us) {
                        loop_timer(service_of(request)->loop, &listing->later, 0);
                        return;
                }
        if (more == 0) {
                service_page_answer(request, &listing->page);
                return;
        }
        service_page_done(&listing->page);
        http_fail(request, &err);
}

static void on_list_gone(struct http_request *request)
{
        struct listing *listing = request->owner;
        loop_untimer(service_of(request)->loop, &listing->later);
        service_page_done(&listing->page);
}

void api_list_stored(struct http_request *request)
{
        struct listing *listing = arena_alloc(&request->arena, sizeof *listing);
        *listing = (struct listing){ .request = request, .later = { .fired = list_some, .owner = listing } };
        if (!service_page_begin(request, STORED_LIST, "files", &listing->page))
                return;
        listing->below = (int64_t)listing->page.below;
        request->owner = listing;
        request->gone = on_list_gone;
        list_some(&listing->later);
}

/* ---- uploads ---- */

/* Received bytes take room from other files. */
static void drop_parts(struct api_upload *upload)
{
        for (struct part *part = upload->parts; part; part = part->next) {
                incoming_close(part->incoming);
                part->incoming = NULL;
        }
}

static void upload_free(struct api_upload *upload)
{
        struct api_upload **at = &api_state(upload->service)->uploads;
        while (*at && *at != upload)
                at = &(*at)->next;
        if (*at)
                *at = upload->next;
        loop_untimer(upload->service->loop, &upload->later);
        drop_parts(upload);
        if (upload->post)
                MHD_destroy_post_processor(upload->post);
        arena_done(&upload->arena);
        free(upload);
}

static void on_gone(struct http_request *request)
{
        upload_free(request->owner);
}

static struct part *part_new(struct api_upload *upload, const char *name, size_t len, struct csn_error *err)
{
        struct http_request *request = upload->request;
        const struct service *service = service_of(request);
        const struct store_room room = service_room(request);
        const char *user = http_query(request, "user");
        struct part *part = arena_alloc(&upload->arena, sizeof *part);
        if (upload->parts_n == PARTS_MAX) {
                err_field(err, "", "an upload has at most %d files", PARTS_MAX);
                return NULL;
        }
        if (files_check_name(name, len, err) < 0 || incoming_open(service->store, request->tenant, &room,
                                                                  &part->incoming, err) < 0)
                return NULL;
        part->file = (struct store_file){ .name = arena_copy(&upload->arena, name, len),
                .run = arena_text(&upload->arena, "%s", ""),
                .user = arena_text(&upload->arena, "%s", user ? user : ""),
                .expires_ms = time_now_ms() + (int64_t)service->settings->engine.files_keep_ms };
        *(upload->last ? &upload->last->next : &upload->parts) = part;
        upload->last = part;
        upload->parts_n++;
        return part;
}

static int part_add(struct part *part, const char *bytes, size_t len, struct csn_error *err)
{
        size_t head = min_u64(len, HEAD_BYTES - part->head_len);
        memcpy(part->head + part->head_len, bytes, head);
        part->head_len += head;
        return len ? incoming_add(part->incoming, bytes, len, err) : 0;
}

/* A name in a form (WHATWG, multipart/form-data): three bytes, which a quoted text cannot have, are written as %XX. */
static size_t decode_name(char *name)
{
        static const struct {
                const char *code;
                char byte;
        } codes[] = { { "%22", '"' }, { "%0A", '\n' }, { "%0D", '\r' } };
        char *to = name;
        for (const char *at = name; *at; to++) {
                size_t i = 0;
                while (i < ARRAY_LEN(codes) && strncasecmp(at, codes[i].code, 3) != 0)
                        i++;
                *to = i < ARRAY_LEN(codes) ? codes[i].byte : *at;
                at += i < ARRAY_LEN(codes) ? 3 : 1;
        }
        *to = 0;
        return (size_t)(to - name);
}

/*
 * Bytes at 0 begin a part.  libmicrohttpd 0.9.75 calls twice at 0, first without bytes, where a piece of the body ends
 * before the end of the part is known.
 */
static void begin_part(struct api_upload *upload, const char *filename, size_t len)
{
        char *name = arena_text(&upload->arena, "%s", filename);
        size_t name_len = decode_name(name);
        const struct part *last = upload->last;
        if (!len || !last || last->head_len || strcmp(last->file.name, name) != 0)
                part_new(upload, name, name_len, &upload->error);
}

/* libmicrohttpd: some bytes of a part. */
static enum MHD_Result on_form(void *owner, enum MHD_ValueKind kind, const char *key, const char *filename,
        const char *type, const char *coding, const char *bytes, uint64_t at, size_t len)
{
        struct api_upload *upload = owner;
        struct csn_error *err = &upload->error;
        (void)kind, (void)type, (void)coding;
        if (err->code)
                return MHD_NO;
        if (!filename)
                err_field(err, "", "the part \"%.60s\" of the form is no file: it has no filename", key ? key : "");
        else if (at == 0)
                begin_part(upload, filename, len);
        if (!err->code && len && upload->last)
                part_add(upload->last, bytes, len, err);
        return err->code ? MHD_NO : MHD_YES;
}

/* The heads of many parts may be in a few bytes, and each part makes a file. */
static size_t take_form(struct api_upload *upload, const char *bytes, size_t len)
{
        uint64_t until_us = clock_us() + SLICE_US;
        size_t taken = 0, parts_n = SIZE_MAX;
        while (taken < len && !upload->error.code) {
                size_t n = min_u64(len - taken, parts_n == upload->parts_n ? POST_BUFFER : HEADS_PIECE);
                parts_n = upload->parts_n;
                if (taken && clock_us() > until_us) {
                        loop_timer(upload->service->loop, &upload->later, 0);
                        return taken;
                }
                if (MHD_post_process(upload->post, bytes + taken, n) != MHD_YES && !upload->error.code)
                        err_field(&upload->error, "/", "the body is no multipart/form-data that can be read");
                taken += n;
        }
        return len;
}

/* Bytes after an error are discarded: the answer has to wait for the end of the body. */
static size_t on_bytes(struct http_request *request, const char *bytes, size_t len)
{
        struct api_upload *upload = request->owner;
        if (upload->error.code)
                return len;
        if (upload->post)
                len = take_form(upload, bytes, len);
        else
                part_add(upload->parts, bytes, len, &upload->error);
        if (upload->error.code)
                drop_parts(upload);
        return len;
}

/* ---- rows of uploads ---- */

/* All parts get a row, or none: a repeated upload has no file twice.  False: no row is left. */
static bool keep_next(struct api_upload *upload)
{
        struct part *part = upload->at;
        struct csn_error ignored;
        bool there;
        if (!part || (upload->error.code && !part->file.id[0]))
                return false;
        upload->at = part->next;
        if (upload->error.code) {
                files_forget(upload->service->store, part->file.id, upload->tenant, &there, &ignored);
                return true;
        }
        part->file.mime = arena_text(&upload->arena, "%s", files_mime(part->file.name, part->head, part->head_len));
        if (files_add(part->incoming, &part->file, &upload->error) < 0)
                upload->at = upload->parts;
        return true;
}

static void answer_upload(struct api_upload *upload)
{
        struct http_request *request = upload->request;
        if (upload->error.code) {
                service_fail_room(request, &upload->error);
        } else if (upload->form) {
                json_t *list = json_array();
                for (const struct part *part = upload->parts; part; part = part->next)
                        json_array_append_new(list, file_json(&part->file));
                http_json(request, MHD_HTTP_CREATED, json_pack("{s:o}", "files", list));
        } else {
                char link[80];
                snprintf(link, sizeof link, "/v1/files/%s", upload->parts->file.id);
                http_set_header(request, "Location", link);
                http_json(request, MHD_HTTP_CREATED, file_json(&upload->parts->file));
        }
}

static void keep_some(struct api_upload *upload)
{
        uint64_t until_us = clock_us() + SLICE_US;
        while (keep_next(upload))
                if (clock_us() > until_us) {
                        loop_timer(upload->service->loop, &upload->later, 0);
                        return;
                }
        if (upload->request)
                answer_upload(upload);
        upload_free(upload);
}

static void on_later(struct timer *timer)
{
        struct api_upload *upload = timer->owner;
        if (upload->whole)
                keep_some(upload);
        else
                http_more(upload->request);
}

/* The client has gone before the answer, so no client knows the ids of the rows: remove the rows. */
static void on_keep_gone(struct http_request *request)
{
        struct api_upload *upload = request->owner;
        upload->request = NULL;
        if (upload->error.code)
                return;
        err_set(&upload->error, CSN_E_CANCELLED, 0, "the client has gone");
        upload->at = upload->parts;
}

static void on_whole(struct http_request *request)
{
        struct api_upload *upload = request->owner;
        if (upload->form && MHD_destroy_post_processor(upload->post) != MHD_YES && !upload->error.code)
                err_field(&upload->error, "/", "the form ends in the middle of a part");
        upload->post = NULL;
        if (!upload->parts && !upload->error.code)
                err_field(&upload->error, "/", "the form has no file");
        upload->whole = true;
        upload->at = upload->parts;
        upload->next = api_state(upload->service)->uploads;
        api_state(upload->service)->uploads = upload;
        request->gone = on_keep_gone;
        if (upload->parts_n <= PARTS_AT_ONCE)
                keep_some(upload);
        else
                loop_timer(upload->service->loop, &upload->later, 0);
}

void api_close_uploads(struct service *service)
{
        for (struct api_upload *upload; (upload = api_state(service)->uploads);) {
                while (keep_next(upload))
                        continue;
                upload_free(upload);
        }
}

/* Checks of the request's head: the length, and the name. */
static int begin_upload(struct api_upload *upload, struct csn_error *err)
{
        struct http_request *request = upload->request;
        const struct store_room room = service_room(request);
        const char *type = http_header(request, "Content-Type"), *length = http_header(request, "Content-Length");
        size_t len;
        const char *name = http_query_bytes(request, "name", &len);
        uint64_t size = length ? strtoull(length, NULL, 10) : 0;
        if (type && strncasecmp(type, "multipart/form-data", 19) == 0) {
                upload->form = true;
                upload->post = MHD_create_post_processor(request->connection, POST_BUFFER, on_form, upload);
                return upload->post ? 0 : err_field(err, "Content-Type", "multipart/form-data needs a boundary");
        }
        if (store_room_check(service_of(request)->store, request->tenant, &room, size, err) < 0) {
                request->early = size > HTTP_BODY_MAX;   /* a smaller body is read before the answer */
                return -err->code;
        }
        if (!name)
                return err_field(err, "name", "a file needs a name; give ?name=");
        return part_new(upload, name, len, err) ? 0 : -err->code;
}

void api_post_stored(struct http_request *request)
{
        struct csn_error err;
        struct api_upload *upload = mem_alloc(sizeof *upload);
        *upload = (struct api_upload){
                .service = service_of(request), .request = request, .later = { .fired = on_later, .owner = upload }
        };
        snprintf(upload->tenant, sizeof upload->tenant, "%s", request->tenant);
        if (begin_upload(upload, &err) < 0) {
                upload_free(upload);
                service_fail_room(request, &err);
                return;
        }
        request->owner = upload;
        request->gone = on_gone;
        request->take = on_bytes;
        request->whole = on_whole;
}
