/*
 * Files of a client's, from which COPY takes; see build.h.
 *
 * A client asks where to put them and sends them there without its key, as to a store of somebody else's.  So where to put them is a URL with a
 * text that only it knows, for a while.
 */
#include "front/e2b/build.h"

#include <stdio.h>
#include <unistd.h>

#define GRANTS_MAX 256                     /* of all tenants; the oldest go */
#define GRANT_MS (3600 * 1000)

struct grant {
        char token[33], tenant[80], key[BUILD_KEY_LEN + 1];
        int64_t until_ms;
};

struct grants {
        size_t made;
        struct grant grants[GRANTS_MAX];
};

struct incoming {
        struct grant grant;
        int fd;
        uint64_t size;
        struct csn_error error;            /* code 0: it is good so far */
};

/* ---- where to ---- */

void archive_get(struct http_request *request)
{
        struct api *api = api_of(request);
        const char *host = http_header(request, "Host"), *proto = http_header(request, "X-Forwarded-Proto");
        char key[BUILD_KEY_LEN + 1];
        json_t *template = kept_find(api, request->tenant, http_part(request, 0));
        if (!template) {
                e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", http_part(request, 0));
                return;
        }
        json_decref(template);
        if (!api->grants)
                api->grants = mem_alloc(sizeof *api->grants);
        struct grant *grant = &api->grants->grants[api->grants->made++ % GRANTS_MAX];
        build_key(http_part(request, 1), key);
        hex_random(16, grant->token);
        snprintf(grant->tenant, sizeof grant->tenant, "%s", request->tenant);
        memcpy(grant->key, key, sizeof key);
        grant->until_ms = time_now_ms() + GRANT_MS;
        const char *url = arena_text(&request->arena, "%s://%s/templates/files/%s", proto && strcmp(proto, "https") == 0 ? "https" : "http", host ? host : "localhost",
                                     grant->token);
        http_json(request, MHD_HTTP_CREATED, json_pack("{s:b, s:s}", "present", kept_has(api, KEPT_ARCHIVE, request->tenant, key), "url", url));
}

static const struct grant *find(const struct api *api, const char *token)
{
        for (size_t i = 0; api->grants && i < GRANTS_MAX; i++) {
                const struct grant *grant = &api->grants->grants[i];
                if (grant->token[0] && grant->until_ms > time_now_ms() && e2b_same(grant->token, token))
                        return grant;
        }
        return NULL;
}

/* ---- what comes ---- */

static void incoming_free(struct incoming *one)
{
        fd_close(&one->fd);
        free(one);
}

static void on_gone(struct http_request *request)
{
        incoming_free(request->owner);
}

/* What comes after an error is thrown away: the answer has to wait for the end of the body. */
static size_t on_bytes(struct http_request *request, const char *bytes, size_t len)
{
        struct incoming *one = request->owner;
        uint64_t max = api_of(request)->settings->engine.file_bytes_max;
        if (!one->error.code && one->size + len > max)
                err_set(&one->error, CSN_E_INPUT, EFBIG, "the archive is longer than the %llu bytes of engine.file_bytes_max", (unsigned long long)max);
        else if (!one->error.code && pwrite(one->fd, bytes, len, (off_t)one->size) != (ssize_t)len)
                err_set(&one->error, CSN_E_SYSTEM, errno, "write an archive");
        one->size += len;
        return len;
}

static void on_whole(struct http_request *request)
{
        struct incoming *one = request->owner;
        request->gone = NULL;
        if (!one->error.code)
                kept_name(api_of(request), KEPT_ARCHIVE, one->grant.tenant, one->grant.key, one->fd, &one->error);
        if (one->error.code == CSN_E_INPUT)
                e2b_error(request, MHD_HTTP_CONTENT_TOO_LARGE, "%s", one->error.text);
        else if (one->error.code)
                http_fail(request, &one->error);
        else
                http_answer(request, MHD_HTTP_OK, "text/plain", mem_copy("", 0), 0);
        incoming_free(one);
}

void archive_put(struct http_request *request)
{
        const struct grant *grant = find(api_of(request), http_part(request, 0));
        struct csn_error err;
        if (!grant) {
                e2b_error(request, MHD_HTTP_FORBIDDEN, "nobody was told to put files here, or it was too long ago");
                return;
        }
        int fd = kept_file(api_of(request), KEPT_ARCHIVE, &err);
        if (fd < 0) {
                http_fail(request, &err);
                return;
        }
        struct incoming *one = mem_alloc(sizeof *one);
        *one = (struct incoming){ .grant = *grant, .fd = fd };
        request->owner = one;
        request->gone = on_gone;
        request->take = on_bytes;
        request->whole = on_whole;
}

void archive_close(struct api *api)
{
        free(api->grants);
        api->grants = NULL;
}
