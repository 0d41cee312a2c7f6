/*
 * POST /files: a single file as octet-stream, or several files as multipart/form-data; either may be compressed.  The
 * body passes two steps with a buffer each: inflation, then separation into files.  The guest writes the files one
 * after another.
 */
#include "front/e2b/envd/envd.h"

#include "net/multipart.h"

#include <stdio.h>
#include <zlib.h>

#define PARTS_MAX 1000
#define PLAIN_MAX (64 * KIB)               /* inflated, and not consumed yet */
#define INFLATED_MAX (1 * GIB)             /* of one body */
#define INFLATED_AT_ONCE (1 * MIB)         /* then other requests have their turn */

struct upload {
        struct http_request *request;
        const char *folder;                /* base of relative paths; NULL: the home */
        int account; /* fields.def; no pointer to the sandbox is kept: the sandbox may end between two files */
        uint64_t flags;
        bool multipart;
        struct multipart parser;
        bool compressed, inflated;         /* the end of the gzip stream was read */
        z_stream inflater;
        struct buf plain;                  /* inflated bytes, not consumed yet */
        uint64_t inflated_n;
        struct timer turn;                 /* for the next INFLATED_AT_ONCE bytes */
        struct guest_call call;
        char path[GUEST_PATH_MAX];         /* given by the request; "": each part gives its own */
        char current[GUEST_PATH_MAX];      /* of the file in progress */
        char **labels;                     /* the request's */
        size_t labels_n;
        bool open, ending;                 /* its call is running; its end was sent */
        bool whole, finished;              /* the body has arrived; its rest is ignored */
        size_t parts;
        json_t *written;
        unsigned failed;                   /* HTTP status, with the text in `why`; 0: none */
        struct csn_error why;
};

static void upload_free(struct upload *upload)
{
        loop_untimer(service_of(upload->request)->loop, &upload->turn);
        guest_call_close(&upload->call);
        multipart_done(&upload->parser);
        if (upload->compressed)
                inflateEnd(&upload->inflater);
        buf_done(&upload->plain);
        json_decref(upload->written);
        free(upload);
}

static void on_gone(struct http_request *request)
{
        upload_free(request->owner);
}

static void answer(struct upload *upload)
{
        struct http_request *request = upload->request;
        request->gone = NULL;
        if (upload->failed == MHD_HTTP_BAD_GATEWAY)
                e2b_not_found(request);
        else if (upload->failed)
                e2b_error(request, upload->failed, "%s", upload->why.text);
        else
                http_json(request, MHD_HTTP_OK, json_incref(upload->written));
        upload_free(upload);
}

/* Records the first failure.  The rest of the body is discarded before the answer. */
static void fail(struct upload *upload, unsigned status, const struct csn_error *why)
{
        if (upload->failed)
                return;
        upload->failed = status;
        upload->why = *why;
        guest_call_close(&upload->call);
        upload->open = upload->ending = false;
}

/* ---- one file ---- */

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct upload *upload = call->owner;
        struct arena arena = { 0 };
        struct guest_entry entry;
        struct csn_error err;
        size_t text_len;
        (void)fds;
        /* Only at the end of the file, and once for each file: further entries of the guest are ignored. */
        if (kind == GUEST_ENTRY && upload->ending && json_array_size(upload->written) < upload->parts &&
                guest_get_entry(bytes, len, &arena, &entry, &err) == 0) {
                const char *path = model_utf8(&arena, upload->current, strlen(upload->current), &text_len);
                json_t *json = json_pack("{s:s, s:s, s:s}", "path", path, "name", spell_name(path), "type", "file"),
                       *metadata = envd_metadata(&entry);
                if (metadata)
                        json_object_set_new(json, "metadata", metadata);
                json_array_append_new(upload->written, json);
        }
        arena_done(&arena);
}

static void go_on(struct upload *upload);

static void on_room(struct guest_call *call)
{
        go_on(call->owner);
}

static void write_failed(struct upload *upload, const struct guest_call *call, const struct csn_error *error)
{
        struct csn_error why;
        int sys = error->sys;
        if (!call->refused)
                fail(upload, MHD_HTTP_BAD_GATEWAY, error);
        else if (sys == ENOSPC || sys == EDQUOT || sys == EFBIG)
                err_set(&why, CSN_E_INPUT, 0, "not enough disk space available"),
                        fail(upload, MHD_HTTP_INSUFFICIENT_STORAGE, &why);
        else if (sys == EISDIR)
                err_set(&why, CSN_E_INPUT, 0, "path is a directory: %.300s", upload->current),
                        fail(upload, MHD_HTTP_BAD_REQUEST, &why);
        else
                fail(upload, error->code == CSN_E_INPUT ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_INTERNAL_SERVER_ERROR, error);
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct upload *upload = call->owner;
        upload->open = upload->ending = false;
        if (error)
                write_failed(upload, call, error);
        go_on(upload);
}

static void begin_file(struct upload *upload, const char *path)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        const struct guest_file file = { .verb = GUEST_WRITE,
                .flags = upload->flags | GUEST_FILE_IN_PLACE,
                .path = upload->current,
                .space = (char[]){ ENVD_LABELS },
                .labels = upload->labels,
                .labels_n = upload->labels_n };
        const struct e2b_sandbox *sandbox = e2b_target(upload->request);
        struct csn_error err;
        if (!sandbox) {
                err_set(&err, CSN_E_BUSY, 0, "the sandbox has gone");
                fail(upload, MHD_HTTP_BAD_GATEWAY, &err);
                return;
        }
        snprintf(upload->current, sizeof upload->current, "%s", path);
        upload->call = (struct guest_call){ .events = &events, .owner = upload };
        upload->parts++;
        upload->open = guest_call_file(sandbox->psandbox, &upload->call, &file, &err) == 0;
        if (!upload->open)
                fail(upload, err.code == CSN_E_INPUT ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_BAD_GATEWAY, &err);
}

/* A part named "file" goes to the path of the request, or else to its filename; parts of other names are discarded. */
static void begin_part(struct upload *upload)
{
        const struct multipart *part = &upload->parser;
        struct csn_error err;
        char path[GUEST_PATH_MAX];
        if (strcmp(part->field, "file") != 0)
                return;
        if (upload->parts == PARTS_MAX) {
                err_field(&err, "/", "there are more than %d files in the body", PARTS_MAX);
                fail(upload, MHD_HTTP_BAD_REQUEST, &err);
        } else if (!upload->path[0] && (!part->has_name || !part->name[0])) {
                err_field(&err, "/", "a part has no filename, and the request no path");
                fail(upload, MHD_HTTP_BAD_REQUEST, &err);
        } else if (upload->path[0] && upload->parts) {
                err_field(&err, "/",
                        "you cannot upload multiple files to the same path '%.300s' in one upload request, only the first specified file was uploaded",
                        upload->path);
                fail(upload, MHD_HTTP_BAD_REQUEST, &err);
        } else if (upload->path[0]) {
                begin_file(upload, upload->path);
        } else if (spell_path(part->name, upload->account, upload->folder, path, &err) < 0) {
                fail(upload, MHD_HTTP_BAD_REQUEST, &err);
        } else {
                begin_file(upload, path);
        }
}

static bool end_file(struct upload *upload)
{
        upload->ending = guest_call_send(&upload->call, GUEST_DATA_END, "", 0);
        return upload->ending;
}

/* ---- the content of the body ---- */

/* A step of multipart.  False: the parser needs more of the body or room at the guest, or is at its end. */
static bool step_on(struct upload *upload, bool last)
{
        struct multipart *parser = &upload->parser;
        struct csn_error err;
        if (upload->failed || upload->ending || upload->finished)
                return false;
        int step = multipart_next(parser, &err);
        size_t len = min_u64(parser->len, GUEST_DATA_MAX);
        if (step == MULTIPART_MORE && last)
                step = err_field(&err, "/", "the body ends before its last boundary");
        if (step < 0) {
                fail(upload, MHD_HTTP_BAD_REQUEST, &err);
                return false;
        }
        if (step == MULTIPART_DATA && upload->open && !guest_call_send(&upload->call, GUEST_DATA, parser->bytes, len))
                return false;
        if (step == MULTIPART_END && upload->open && !end_file(upload))
                return false;
        if (step == MULTIPART_PART)
                begin_part(upload);
        upload->finished = step == MULTIPART_DONE;
        if (step == MULTIPART_MORE || step == MULTIPART_DONE)
                return false;
        multipart_take(parser, step, len);
        return true;
}

/* Consumes plain bytes; returns the number of bytes consumed. */
static size_t take_plain(struct upload *upload, const char *bytes, size_t len)
{
        size_t taken = 0;
        if (upload->failed || upload->finished)
                return len;                /* discarded */
        if (upload->multipart) {
                taken = multipart_add(&upload->parser, bytes, len);
                while (step_on(upload, false))
                        ;
                return taken;
        }
        while (taken < len && upload->open && !upload->ending) {
                size_t n = min_u64(len - taken, GUEST_DATA_MAX);
                if (!guest_call_send(&upload->call, GUEST_DATA, bytes + taken, n))
                        break;
                taken += n;
        }
        return taken;
}

/* ---- the encoding of the body ---- */

/* False: inflated bytes are left, and the guest has no room. */
static bool empty_plain(struct upload *upload)
{
        struct buf *plain = &upload->plain;
        while (plain->len) {
                size_t taken = take_plain(upload, plain->bytes, plain->len);
                if (!taken)
                        return false;
                memmove(plain->bytes, plain->bytes + taken, plain->len - taken);
                plain->len -= taken;
        }
        return true;
}

static size_t take_compressed(struct upload *upload, const char *bytes, size_t len)
{
        static char room[PLAIN_MAX];
        struct csn_error err;
        z_stream *inflater = &upload->inflater;
        inflater->next_in = (Bytef *)(uintptr_t)bytes;
        inflater->avail_in = (uInt)min_u64(len, UINT32_MAX);
        size_t given = inflater->avail_in;
        uint64_t turn_n = upload->inflated_n + INFLATED_AT_ONCE;
        while (!upload->failed && !upload->inflated && upload->inflated_n < turn_n && empty_plain(upload)) {
                inflater->next_out = (Bytef *)room;
                inflater->avail_out = sizeof room;
                int rc = inflate(inflater, Z_NO_FLUSH);
                if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR) {
                        err_field(&err, "/", "error decompressing request body: it is no gzip");
                        fail(upload, MHD_HTTP_BAD_REQUEST, &err);
                        break;
                }
                buf_add(&upload->plain, room, sizeof room - inflater->avail_out);
                upload->inflated_n += sizeof room - inflater->avail_out;
                if (upload->inflated_n > INFLATED_MAX) {
                        err_field(&err, "/",
                                "the body is longer than %llu MiB when it is decompressed; send it in several, or as it is",
                                INFLATED_MAX / MIB);
                        fail(upload, MHD_HTTP_CONTENT_TOO_LARGE, &err);
                }
                upload->inflated = rc == Z_STREAM_END;
                if (!upload->inflated && !inflater->avail_in && inflater->avail_out)
                        break;             /* the whole input is inflated */
        }
        empty_plain(upload);
        if (upload->inflated_n >= turn_n)
                loop_timer(service_of(upload->request)->loop, &upload->turn, 0);
        return upload->failed || upload->inflated ? len : given - inflater->avail_in;
}

static void on_turn(struct timer *timer)
{
        struct upload *upload = timer->owner;
        http_more(upload->request);
}

static size_t take(struct http_request *request, const char *bytes, size_t len)
{
        struct upload *upload = request->owner;
        if (upload->failed)
                return len;
        return upload->compressed ? take_compressed(upload, bytes, len) : take_plain(upload, bytes, len);
}

/* The body has arrived: the bytes still buffered are written, then the request is answered. */
static void end_body(struct upload *upload)
{
        struct csn_error err;
        if (upload->compressed && !upload->failed && !empty_plain(upload))
                return;
        if (upload->compressed && !upload->inflated && !upload->failed) {
                err_field(&err, "/", "error decompressing request body: it is cut");
                fail(upload, MHD_HTTP_BAD_REQUEST, &err);
        }
        while (upload->multipart && step_on(upload, true))
                ;
        if (!upload->multipart && upload->open && !upload->ending) {
                upload->finished = end_file(upload);
                return;
        }
        if (!upload->open)
                answer(upload);
}

static void go_on(struct upload *upload)
{
        if (upload->whole) {
                end_body(upload);
                return;
        }
        if (upload->compressed)
                empty_plain(upload);
        while (upload->multipart && step_on(upload, false))
                ;
        http_more(upload->request);
}

static void whole(struct http_request *request)
{
        struct upload *upload = request->owner;
        upload->whole = true;
        end_body(upload);
}

/* ---- requests ---- */

struct labels {
        struct http_request *request;
        char **list;
        size_t n, bytes;
        struct csn_error err;              /* code 0: none */
};

static bool add_label(void *owner, const char *name, const char *value)
{
        struct labels *labels = owner;
        char *label;
        int rc = labels->err.code ? 0 : spell_label(name, value, &labels->request->arena, &label, &labels->err);
        if (rc <= 0)
                return rc == 0;
        labels->bytes += strlen(label);
        if (labels->n == WIRE_ARGS_MAX || labels->bytes > GUEST_LABELS_MAX)
                err_field(&labels->err, name, "the metadata is longer than %d bytes", GUEST_LABELS_MAX);
        else
                labels->list[labels->n++] = label;
        return !labels->err.code;
}

static bool is_type(const char *type, const char *wanted)
{
        size_t len = strlen(wanted);
        return type && strncasecmp(type, wanted, len) == 0 && (!type[len] || strchr("; \t", type[len]));
}

/* How the body is to be read.  Fails for a body of another type or encoding. */
static int open_body(struct upload *upload, struct csn_error *err)
{
        const struct http_request *request = upload->request;
        const char *type = http_header(request, "Content-Type"), *encoding = http_header(request, "Content-Encoding");
        upload->multipart = !is_type(type, "application/octet-stream");
        if (upload->multipart && (!type || strncasecmp(type, "multipart/", 10) != 0))
                return err_field(err, "",
                        "unsupported content type: %.100s, expected multipart/form-data or application/octet-stream",
                        type ? type : "");
        if (upload->multipart && multipart_init(&upload->parser, type, err) < 0)
                return -err->code;
        if (!upload->multipart && !upload->path[0])
                return err_field(err, "path", "path query parameter is required for raw body upload");
        if (!encoding || strcasecmp(encoding, "identity") == 0)
                return 0;
        if (strcasecmp(encoding, "gzip") != 0)
                return err_field(err, "", "unsupported Content-Encoding: %.60s, supported: gzip, identity", encoding);
        if (inflateInit2(&upload->inflater, MAX_WBITS + 16) != Z_OK)
                return err_set(err, CSN_E_SYSTEM, 0, "no memory to inflate a body");
        upload->compressed = true;
        return 0;
}

void envd_post_files(struct http_request *request)
{
        struct envd_target target;
        struct csn_error err;
        struct labels labels = { .request = request };
        const char *given = http_query(request, "path");
        if (!envd_file_target(request, true, &target))
                return;
        struct upload *upload = mem_alloc(sizeof *upload);
        *upload = (struct upload){ .request = request,
                .folder = target.folder ? arena_text(&request->arena, "%s", target.folder) : NULL,
                .account = target.account,
                .flags = target.flags,
                .written = json_array(),
                .turn = { .fired = on_turn, .owner = upload } };
        buf_init(&upload->plain, 2 * PLAIN_MAX);
        labels.list = arena_alloc(&request->arena, WIRE_ARGS_MAX * sizeof *labels.list);
        http_each_header(request, add_label, &labels);
        upload->labels = labels.list;
        upload->labels_n = labels.n;
        int rc = labels.err.code ? -labels.err.code
                : given          ? spell_path(given, target.account, target.folder, upload->path, &labels.err)
                                 : 0;
        if (rc == 0)
                rc = open_body(upload, &labels.err);
        if (rc < 0) {
                err = labels.err;
                upload_free(upload);
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "%s", err.text);
                return;
        }
        request->owner = upload;
        request->gone = on_gone;
        request->take = take;
        request->whole = whole;
        if (!upload->multipart)
                begin_file(upload, upload->path);
}
