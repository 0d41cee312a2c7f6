/*
 * Files of persistent sandboxes.  The guest inside does all the work; for a folder as one stream tar(1) runs in the
 * sandbox like any program.
 */
#include "front/api/api.h"

#include "net/http_headers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ENTRIES_MAX 10000                  /* of a list */
#define ENTRIES_BYTES_MAX (4 * MIB)
#define ERRORS_MAX 2000                    /* bytes of tar's error output */

struct transfer {
        struct service *service;
        struct guest_call call;
        struct http_request *request;
        enum { OTHER, LIST, DOWNLOAD, UPLOAD, PACK, UNPACK, WATCH } what;
        char *path;
        struct psandbox *psandbox;
        bool begun;                        /* the answer is on its way */
        bool ranged, beyond;               /* the request has a range; the range begins behind the end */
        uint64_t offset, left;             /* of a download: left: bytes still to send, of the size or of the range */
        bool sized;
        uint64_t in_flight;                /* of an unpack: bytes not read by tar yet */
        bool ended;                        /* the call is over */
        bool whole;                        /* of an upload: the body has come */
        bool end_due;                      /* the end is not sent yet: the socket was full */
        struct csn_error error;            /* code 0: none */
        json_t *entries;
        size_t bytes;                      /* of the names in `entries` */
        bool truncated;
        int status;                        /* of tar */
        struct buf said;
        unsigned made;                     /* status of the answer: 200, or 201 for a new file */
};

static void transfer_free(struct transfer *one)
{
        guest_call_close(&one->call);
        json_decref(one->entries);
        buf_done(&one->said);
        free(one->path);
        free(one);
}

static void on_gone(struct http_request *request)
{
        transfer_free(request->owner);
}

/* ---- entries ---- */

static const char *last_part(const char *path)
{
        const char *slash = strrchr(path, '/');
        return slash && slash[1] ? slash + 1 : path;
}

static const char *type_of(uint64_t mode)
{
        unsigned kind = (unsigned)mode & S_IFMT;
        return kind == S_IFREG ? "file" : kind == S_IFDIR ? "folder" : kind == S_IFLNK ? "link" : "other";
}

json_t *api_entry(const struct guest_entry *entry)
{
        struct arena arena = { 0 };
        char mode[8], modified[40];
        size_t len;
        const char *path = model_utf8(&arena, entry->path, strlen(entry->path), &len), *name = last_part(entry->path);
        snprintf(mode, sizeof mode, "%04o", (unsigned)entry->mode & 07777);
        time_print((int64_t)entry->mtime_ms, modified, sizeof modified);
        json_t *json = json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:s}", "path", path, "name",
                model_utf8(&arena, name, strlen(name), &len), "type", type_of(entry->mode), "size_bytes",
                (json_int_t)entry->size, "mode", mode, "modified_at", modified, "owner",
                model_utf8(&arena, entry->owner, strlen(entry->owner), &len), "group",
                model_utf8(&arena, entry->group, strlen(entry->group), &len));
        if (!utf8_valid(entry->path, strlen(entry->path)))
                json_object_set_new(json, "path_base64",
                        json_string(model_base64(&arena, entry->path, strlen(entry->path))));
        if (entry->target[0])
                json_object_set_new(json, "target",
                        json_string(model_utf8(&arena, entry->target, strlen(entry->target), &len)));
        if (entry->real[0]) {
                json_object_set_new(json, "real_path",
                        json_string(model_utf8(&arena, entry->real, strlen(entry->real), &len)));
                json_object_set_new(json, "real_type", json_string(type_of(entry->target_mode)));
        }
        arena_done(&arena);
        return json;
}

/* ---- answers ---- */

void api_file_error(struct http_request *request, const struct csn_error *error)
{
        static const struct { int sys; unsigned status; int code;
        } rows[] = {
                { ENOENT, MHD_HTTP_NOT_FOUND, CSN_E_INPUT },
                { ENOTDIR, MHD_HTTP_NOT_FOUND, CSN_E_INPUT },
                { EISDIR, MHD_HTTP_CONFLICT, CSN_E_INPUT },
                { EEXIST, MHD_HTTP_CONFLICT, CSN_E_INPUT },
                { EBUSY, MHD_HTTP_CONFLICT, CSN_E_INPUT },
                { ENOTEMPTY, MHD_HTTP_CONFLICT, CSN_E_INPUT },
                { EACCES, MHD_HTTP_FORBIDDEN, CSN_E_DENIED },
                { EPERM, MHD_HTTP_FORBIDDEN, CSN_E_DENIED },
                { EROFS, MHD_HTTP_FORBIDDEN, CSN_E_DENIED },
                { ENOSPC, MHD_HTTP_INSUFFICIENT_STORAGE, CSN_E_BUSY },
                { EDQUOT, MHD_HTTP_INSUFFICIENT_STORAGE, CSN_E_BUSY },
                { EFBIG, MHD_HTTP_INSUFFICIENT_STORAGE, CSN_E_BUSY },
        };
        struct csn_error err = *error;
        for (size_t i = 0; error->code == CSN_E_INPUT && i < ARRAY_LEN(rows); i++)
                if (rows[i].sys == error->sys) {
                        err.code = rows[i].code;
                        http_problem(request, rows[i].status, &err);
                        return;
                }
        error->code == CSN_E_BUSY ? api_conflict(request, error) : http_fail(request, error);
}

/* The end of a transfer without a stream. */
static void answer(struct transfer *one)
{
        struct http_request *request = one->request;
        request->gone = NULL;
        if (one->error.code && one->beyond)
                http_problem(request, MHD_HTTP_RANGE_NOT_SATISFIABLE, &one->error);
        else if (one->error.code)
                api_file_error(request, &one->error);
        else if (one->what == LIST)
                http_json(request, MHD_HTTP_OK,
                        json_pack("{s:O, s:b}", "entries", one->entries, "truncated", one->truncated));
        else if (json_array_size(one->entries))
                http_json(request, one->made, json_incref(json_array_get(one->entries, 0)));
        else
                http_answer(request, MHD_HTTP_NO_CONTENT, "application/json", mem_copy("", 0), 0);
        transfer_free(one);
}

static void end_stream(struct transfer *one)
{
        struct http_request *request = one->request;
        if (one->what == WATCH) {
                events_line(request, json_pack("{s:s, s:o}", "type", "end", "error", api_error(&one->error)));
                transfer_free(one);
                http_end(request);
                return;
        }
        bool cut = one->error.code || (one->sized && one->left) || (one->what == PACK && one->status);
        if (cut && !one->error.code)
                log_text(LOG_INFO, "a download was cut: %.200s",
                        one->said.len ? one->said.bytes : "the file became shorter");
        transfer_free(one);
        cut ? http_cut(request) : http_end(request);
}

/* ---- downloads ---- */

static void begin_stream(struct transfer *one, const char *type, uint64_t size)
{
        one->begun = true;
        one->sized = size != UINT64_MAX;
        one->left = size;
        http_stream_sized(one->request, one->ranged ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, type, size);
}

/* The answer has the part and the size of the file in Content-Range. */
static void begin_range(struct transfer *one, uint64_t size)
{
        one->beyond = one->offset >= size;
        uint64_t len = one->beyond ? 0 : min_u64(one->left, size - one->offset);
        http_set_range(one->request, one->offset, len, size);
        if (one->beyond)
                err_set(&one->error, CSN_E_INPUT, 0, "the file has no byte %" PRIu64, one->offset);
        else
                begin_stream(one, "application/octet-stream", len);
}

static void begin_download(struct transfer *one, const struct guest_entry *entry)
{
        http_set_modified(one->request, entry->mtime_ms);
        http_set_header(one->request, "Accept-Ranges", "bytes");
        if (one->ranged)
                begin_range(one, entry->size);
        else                               /* files of /proc have size 0 */
                begin_stream(one, "application/octet-stream", entry->size ? entry->size : UINT64_MAX);
}

static void add_data(struct transfer *one, const uint8_t *bytes, size_t len)
{
        if (one->sized) {
                len = min_u64(len, one->left);
                one->left -= len;
        }
        if (!http_add(one->request, bytes, len))
                err_set(&one->error, CSN_E_SYSTEM, 0, "an answer did not fit");   /* impossible: held before */
        if (!http_has_room(one->request))
                guest_call_hold(&one->call, true);
}

static void on_stream_room(struct http_request *request)
{
        struct transfer *one = request->owner;
        guest_call_hold(&one->call, false);
}

/* ---- packets of the guest ---- */

static void on_entry(struct transfer *one, const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct guest_entry entry;
        struct csn_error err;
        if (guest_get_entry(bytes, len, &arena, &entry, &err) < 0) {
                one->error = err;
        } else if (one->what == DOWNLOAD) {
                if (!one->begun)
                        begin_download(one, &entry);
        } else if (one->what == WATCH) {
                if (!one->begun)           /* a guest might send the entry twice */
                        events_begin_line(one->request,
                                json_pack("{s:s, s:o}", "type", "start", "entry", api_entry(&entry)));
                one->begun = true;
        } else if (json_array_size(one->entries) >= ENTRIES_MAX || one->bytes >= ENTRIES_BYTES_MAX) {
                one->truncated = true;
        } else {
                json_array_append_new(one->entries, api_entry(&entry));
                one->bytes += strlen(entry.path) + strlen(entry.target);
        }
        arena_done(&arena);
}

static void on_event(struct transfer *one, const uint8_t *bytes, size_t len)
{
        static const char *const names[] = { [GUEST_CREATED] = "created",
                [GUEST_CHANGED] = "changed",
                [GUEST_ATTRIBUTES] = "attributes",
                [GUEST_REMOVED] = "removed",
                [GUEST_RENAMED] = "renamed",
                [GUEST_LOST] = "lost" };
        struct arena arena = { 0 };
        struct guest_event event;
        struct csn_error err;
        size_t text_len;
        if (one->what == WATCH && one->begun && guest_get_event(bytes, len, &arena, &event, &err) == 0)
                events_line(one->request,
                        json_pack("{s:s, s:s, s:b}", "type", names[event.what], "path",
                                model_utf8(&arena, event.path, strlen(event.path), &text_len), "folder",
                                (int)event.is_folder));
        arena_done(&arena);
        if (!http_has_room(one->request))
                guest_call_hold(&one->call, true);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct transfer *one = call->owner;
        struct csn_error err;
        uint64_t number;
        (void)fds;
        switch (kind) {
        case GUEST_ENTRY:
                on_entry(one, bytes, len);
                break;
        case GUEST_EVENT:
                on_event(one, bytes, len);
                break;
        case GUEST_STARTED:
                break;
        case GUEST_OUT:
        case GUEST_DATA:
                if ((one->what == DOWNLOAD && kind == GUEST_DATA && one->begun) ||
                        (one->what == PACK && kind == GUEST_OUT)) {
                        if (!one->begun)
                                begin_stream(one, "application/x-tar", UINT64_MAX);
                        add_data(one, bytes + 1, len - 1);
                }
                break;
        case GUEST_ERROR:
                buf_add(&one->said, bytes + 1, min_u64(len - 1, ERRORS_MAX - min_u64(one->said.len, ERRORS_MAX)));
                break;
        case GUEST_ROOM:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        one->in_flight -= min_u64(number, one->in_flight);
                if (!one->whole && one->what == UNPACK)
                        http_more(one->request);
                break;
        case GUEST_EXITED:
                if (guest_get_number(bytes, len, &number, &err) == 0)
                        one->status = (int)(number & 0xffff);
                break;
        default:
                break;
        }
}

static void send_end(struct transfer *one)
{
        one->end_due = !guest_call_send(&one->call, one->what == UPLOAD ? GUEST_DATA_END : GUEST_IN_END, "", 0);
}

static void on_room(struct guest_call *call)
{
        struct transfer *one = call->owner;
        if (one->end_due)
                send_end(one);
        else if ((one->what == UPLOAD || one->what == UNPACK) && !one->whole)
                http_more(one->request);
}

static void tar_failed(struct transfer *one)
{
        const char *said = one->said.bytes ? one->said.bytes : "it said nothing";
        int sig = WIFSIGNALED(one->status) ? WTERMSIG(one->status) : 0;
        if (sig)
                err_set(&one->error, CSN_E_INPUT, 0, "tar failed: signal %d (%s) ended it", sig,
                        sigabbrev_np(sig) ? sigabbrev_np(sig) : "?");
        else
                err_set(&one->error, CSN_E_INPUT, 0, "tar failed: %.*s", (int)min_u64(strcspn(said, "\n"), 300), said);
        /* The largest possible file is as large as the disk. */
        one->error.sys = sig == SIGXFSZ || strstr(said, strerrordesc_np(ENOSPC)) ? ENOSPC : 0;
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct transfer *one = call->owner;
        one->ended = true;
        if (error && !one->error.code)
                one->error = *error;
        if ((one->what == PACK || one->what == UNPACK) && one->status && !one->error.code && !one->begun)
                tar_failed(one);
        if (one->begun)
                end_stream(one);
        else if ((one->what == UPLOAD || one->what == UNPACK) && !one->whole)
                http_more(one->request);   /* an answer has to wait for the rest of the body, which is thrown away */
        else
                answer(one);
}

/* ---- requests ---- */

static struct transfer *transfer_new(struct http_request *request, int what, struct psandbox *psandbox,
        const char *path)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct transfer *one = mem_alloc(sizeof *one);
        *one = (struct transfer){ .service = service_of(request),
                .request = request,
                .what = what,
                .psandbox = psandbox,
                .path = mem_copy(path, strlen(path)),
                .entries = json_array(),
                .made = MHD_HTTP_OK };
        one->call = (struct guest_call){ .events = &events, .owner = one };
        buf_init(&one->said, ERRORS_MAX);
        return one;
}

/* The sandbox and the path of a request.  NULL: the request is answered. */
struct psandbox *api_file_target(struct http_request *request, const char **ret_path)
{
        struct csn_error err;
        const char *path = http_query(request, "path");
        struct psandbox *psandbox = api_psandbox(request);
        *ret_path = path;
        if (!psandbox)
                return NULL;
        if (path && path[0] && strlen(path) < GUEST_PATH_MAX)
                return psandbox;
        err_field(&err, "path", "path is %s; give ?path=, absolute or from /home/user on, of at most %d bytes",
                path && path[0] ? "too long" : "missing", GUEST_PATH_MAX - 1);
        http_fail(request, &err);
        return NULL;
}

/* From here on the request waits for the guest. */
static void begin(struct transfer *one, int rc, const struct csn_error *err)
{
        struct http_request *request = one->request;
        if (rc < 0) {
                transfer_free(one);
                api_file_error(request, err);
                return;
        }
        request->owner = one;
        request->gone = on_gone;
        request->room = on_stream_room;
}

static void ask(struct http_request *request, int what, struct psandbox *psandbox, const struct guest_file *file)
{
        struct csn_error err;
        struct transfer *one = transfer_new(request, what, psandbox, file->path);
        int rc = guest_call_file(psandbox, &one->call, file, &err);
        begin(one, rc, &err);
}

/* A number of the query.  False: the request is answered. */
static bool number_of(struct http_request *request, const char *name, uint64_t def, uint64_t max, uint64_t *ret)
{
        const char *text = http_query(request, name);
        struct csn_error err;
        char *end;
        *ret = def;
        if (!text)
                return true;
        unsigned long long number = strtoull(text, &end, 10);
        if (text[0] >= '0' && text[0] <= '9' && !*end && number >= 1 && number <= max) {
                *ret = number;
                return true;
        }
        err_field(&err, name, "%s is \"%.20s\"; it has to be a number from 1 to %" PRIu64, name, text, max);
        http_fail(request, &err);
        return false;
}

void api_list_files(struct http_request *request)
{
        const char *path;
        uint64_t depth;
        struct psandbox *psandbox = api_file_target(request, &path);
        if (psandbox && number_of(request, "depth", 1, 64, &depth))
                ask(request, LIST, psandbox,
                        &(struct guest_file){ .verb = GUEST_LIST, .depth = depth, .path = (char *)(uintptr_t)path });
}

void api_stat_file(struct http_request *request)
{
        const char *path;
        struct psandbox *psandbox = api_file_target(request, &path);
        if (psandbox)
                ask(request, OTHER, psandbox,
                        &(struct guest_file){ .verb = GUEST_STAT, .path = (char *)(uintptr_t)path });
}

void api_delete_file(struct http_request *request)
{
        const char *path;
        struct psandbox *psandbox = api_file_target(request, &path);
        if (psandbox)
                ask(request, OTHER, psandbox,
                        &(struct guest_file){ .verb = GUEST_REMOVE, .path = (char *)(uintptr_t)path });
}

void api_watch_files(struct http_request *request)
{
        const char *path;
        uint64_t depth;
        struct psandbox *psandbox = api_file_target(request, &path);
        if (psandbox && number_of(request, "depth", 1, 32, &depth))
                ask(request, WATCH, psandbox,
                        &(struct guest_file){ .verb = GUEST_WATCH, .depth = depth, .path = (char *)(uintptr_t)path });
}

static int plan_change(const struct file_change *change, struct guest_file *file, struct csn_error *err)
{
        char *end = NULL;
        if (strcmp(change->action, "folder") == 0) {
                file->verb = GUEST_FOLDER;
        } else if (strcmp(change->action, "rename") == 0) {
                file->verb = GUEST_RENAME;
                file->to = change->to;
                if (!change->to || !change->to[0])
                        return err_field(err, "/to", "rename needs to, the new path");
        } else if (strcmp(change->action, "mode") == 0) {
                file->verb = GUEST_MODE;
                file->mode = change->mode ? strtoull(change->mode, &end, 8) : 0;
                if (!change->mode || !change->mode[0] || *end || file->mode > 07777)
                        return err_field(err, "/mode", "mode has to be octal, as 0644");
        } else {
                return err_field(err, "/action", "action is \"%.20s\"; it has to be rename, mode or folder",
                        change->action);
        }
        return 0;
}

void api_change_file(struct http_request *request)
{
        const char *path;
        struct file_change change = { 0 };
        struct csn_error err;
        struct psandbox *psandbox = api_file_target(request, &path);
        struct guest_file file = { .path = (char *)(uintptr_t)path };
        if (!psandbox || !service_decode(request, &object_file_change, &request->arena, &change))
                return;
        if (plan_change(&change, &file, &err) < 0)
                http_fail(request, &err);
        else
                ask(request, OTHER, psandbox, &file);
}

/* ---- a file, or a folder as tar ---- */

static bool wants_tar(const struct http_request *request)
{
        const char *format = http_query(request, "format");
        return format && strcmp(format, "tar") == 0;
}

static int run_tar(struct transfer *one, bool pack, struct csn_error *err)
{
        char *const out[] = { "/usr/bin/tar", "-c", "-f", "-", "--", ".", NULL };
        char *const in[] = { "/usr/bin/tar", "-x", "-f", "-", "--no-same-owner", NULL };
        struct arena arena = { 0 };
        struct guest_process process = { .flags = pack ? 0 : GUEST_INPUT,
                .folder = one->path,
                .argv = (char **)(uintptr_t)(pack ? out : in),
                .argv_n = pack ? ARRAY_LEN(out) - 1 : ARRAY_LEN(in) - 1 };
        process.env = psandbox_env(one->psandbox, account_USER, NULL, 0, &arena, &process.env_n);
        int rc = guest_call_process(one->psandbox, &one->call, &process, err);
        arena_done(&arena);
        return rc;
}

void api_get_file(struct http_request *request)
{
        const char *path;
        struct csn_error err;
        struct psandbox *psandbox = api_file_target(request, &path);
        if (!psandbox)
                return;
        struct transfer *one = transfer_new(request, wants_tar(request) ? PACK : DOWNLOAD, psandbox, path);
        struct guest_file file = { .verb = GUEST_READ, .length = UINT64_MAX, .path = one->path };
        int rc;
        if (one->what == PACK) {
                rc = run_tar(one, true, &err);
        } else {
                one->ranged = header_range(http_header(request, "Range"), &one->offset, &one->left);
                if (one->ranged)
                        file.offset = one->offset, file.length = one->left;
                rc = guest_call_file(psandbox, &one->call, &file, &err);
        }
        begin(one, rc, &err);
}

/* ---- uploads ---- */

static size_t take_upload(struct http_request *request, const char *bytes, size_t len)
{
        struct transfer *one = request->owner;
        if (one->ended)
                return len;
        size_t room = one->what == UPLOAD ? GUEST_DATA_MAX : GUEST_IN_MAX - min_u64(one->in_flight, GUEST_IN_MAX);
        size_t n = min_u64(min_u64(room, len), GUEST_DATA_MAX);
        if (!n || !guest_call_send(&one->call, one->what == UPLOAD ? GUEST_DATA : GUEST_IN, bytes, n))
                return 0;
        if (one->what == UNPACK)
                one->in_flight += n;
        return n;
}

static void upload_whole(struct http_request *request)
{
        struct transfer *one = request->owner;
        one->whole = true;
        if (one->ended)
                answer(one);
        else
                send_end(one);
}

void api_put_file(struct http_request *request)
{
        const char *path, *mode = http_query(request, "mode");
        struct csn_error err;
        char *end = NULL;
        struct psandbox *psandbox = api_file_target(request, &path);
        if (!psandbox)
                return;
        uint64_t bits = mode ? strtoull(mode, &end, 8) : 0;
        if (mode && (!mode[0] || *end || bits > 07777)) {
                err_field(&err, "mode", "mode is \"%.20s\"; it has to be octal, as 0644", mode);
                http_fail(request, &err);
                return;
        }
        struct transfer *one = transfer_new(request, wants_tar(request) ? UNPACK : UPLOAD, psandbox, path);
        one->made = MHD_HTTP_CREATED;
        struct guest_file file = { .verb = GUEST_WRITE, .mode = bits, .path = one->path };
        int rc = one->what == UNPACK ? run_tar(one, false, &err) : guest_call_file(psandbox, &one->call, &file, &err);
        begin(one, rc, &err);
        if (rc == 0) {
                request->take = take_upload;
                request->whole = upload_whole;
        }
}
