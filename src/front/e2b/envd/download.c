/* GET /files: a file's content. */
#include "front/e2b/envd/envd.h"

#include "net/http_headers.h"

#include <inttypes.h>
#include <stdio.h>

struct download {
        struct http_request *request;
        struct guest_call call;
        char *path;
        bool ranged, beyond;               /* the request has a Range; the range begins behind the end */
        uint64_t offset, left;             /* of the range; then the bytes left of the announced length */
        bool begun, sized;
        uint64_t size;                     /* of the file, by its entry */
        struct csn_error error;            /* code 0: none */
};

static void download_free(struct download *one)
{
        guest_call_close(&one->call);
        free(one->path);
        free(one);
}

static void on_gone(struct http_request *request)
{
        download_free(request->owner);
}

static void on_stream_room(struct http_request *request)
{
        struct download *one = request->owner;
        guest_call_hold(&one->call, false);
}

static void begin(struct download *one, uint64_t size)
{
        one->begun = true;
        one->sized = size != UINT64_MAX;
        one->left = size;
        http_stream_sized(one->request, one->ranged ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK,
                "application/octet-stream", size);
}

static void begin_range(struct download *one, uint64_t size)
{
        one->beyond = one->offset >= size;
        uint64_t len = one->beyond ? 0 : min_u64(one->left, size - one->offset);
        http_set_range(one->request, one->offset, len, size);
        if (!one->beyond)
                begin(one, len);
}

static void on_entry(struct download *one, const struct guest_entry *entry)
{
        http_set_modified(one->request, entry->mtime_ms);
        http_set_header(one->request, "Accept-Ranges", "bytes");
        one->size = entry->size;
        if (one->ranged)
                begin_range(one, entry->size);
        else if (entry->size)              /* /proc files report size 0: the status waits for data */
                begin(one, entry->size);
}

static void on_data(struct download *one, const uint8_t *bytes, size_t len)
{
        if (one->beyond)
                return;
        if (!one->begun)
                begin(one, UINT64_MAX);
        if (one->sized) {
                len = min_u64(len, one->left);
                one->left -= len;
        }
        if (!http_add(one->request, bytes, len))
                err_set(&one->error, CSN_E_SYSTEM, 0, "an answer did not fit");   /* cannot happen: held before */
        if (!http_has_room(one->request))
                guest_call_hold(&one->call, true);
}

static void on_packet(struct guest_call *call, enum guest_kind kind, const uint8_t *bytes, size_t len,
        int fds[WIRE_FDS_MAX])
{
        struct download *one = call->owner;
        struct arena arena = { 0 };
        struct guest_entry entry;
        (void)fds;
        if (kind == GUEST_ENTRY && !one->begun && !one->beyond &&
                guest_get_entry(bytes, len, &arena, &entry, &one->error) == 0)
                on_entry(one, &entry);
        else if (kind == GUEST_DATA && len > 1)
                on_data(one, bytes + 1, len - 1);
        arena_done(&arena);
}

static void on_room(struct guest_call *call)
{
        (void)call;
}

static void on_ended(struct guest_call *call, const struct csn_error *error)
{
        struct download *one = call->owner;
        struct http_request *request = one->request;
        bool cut = error || one->error.code || (one->sized && one->left);
        request->gone = NULL;
        request->room = NULL;
        if (one->begun)
                cut ? http_cut(request) : http_end(request);
        else if (error)
                envd_file_failed(request, call, error, one->path);
        else if (one->beyond)
                e2b_error(request, MHD_HTTP_RANGE_NOT_SATISFIABLE, "path '%.300s' has no byte %" PRIu64, one->path,
                        one->offset);
        else if (one->error.code)
                e2b_error(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "the sandbox answered what is no entry");
        else
                http_answer(request, MHD_HTTP_OK, "application/octet-stream", mem_copy("", 0), 0);
        download_free(one);
}

void envd_get_file(struct http_request *request)
{
        static const struct guest_call_events events = { on_packet, on_room, on_ended };
        struct envd_target target;
        struct csn_error err;
        char path[GUEST_PATH_MAX];
        const char *given = http_query(request, "path");
        if (!envd_file_target(request, false, &target))
                return;
        if (spell_path(given ? given : "", target.account, target.folder, path, &err) < 0) {
                e2b_error(request, MHD_HTTP_BAD_REQUEST, "%s", err.text);
                return;
        }
        struct download *one = mem_alloc(sizeof *one);
        *one = (struct download){
                .request = request, .path = mem_copy(path, strlen(path)), .call = { .events = &events, .owner = one }
        };
        struct guest_file file = { .verb = GUEST_READ, .flags = target.flags, .length = UINT64_MAX, .path = path };
        one->ranged = header_range(http_header(request, "Range"), &one->offset, &one->left);
        if (one->ranged)
                file.offset = one->offset, file.length = one->left;
        if (guest_call_file(target.sandbox->psandbox, &one->call, &file, &err) < 0) {
                download_free(one);
                e2b_error(request, err.code == CSN_E_INPUT ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
                        err.text);
                return;
        }
        request->owner = one;
        request->gone = on_gone;
        request->room = on_stream_room;
}
