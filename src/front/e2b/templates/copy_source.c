/*
 * Archives of client files, the sources of COPY; see build.h.
 *
 * A client asks for an upload URL and sends the archive without its key, as to a foreign store.  So the URL is signed
 * over tenant, key of the archive and expiry.
 */
#include "front/e2b/templates/build.h"

#include <inttypes.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <unistd.h>

#define GRANT_S 3600
#define SIGNATURE_LEN (2 * SHA256_DIGEST_LENGTH)

struct grant {
        char tenant[80], key[BUILD_KEY_LEN + 1];
};

struct incoming {
        struct grant grant;
        int fd;
        uint64_t size;
        struct csn_error error;            /* code 0: no error so far */
};

/* ---- upload URL ---- */

/* Signed with a secret of this process: a URL is valid for an hour and does not outlive the daemon. */
static void sign(const struct grant *grant, int64_t until_s, char ret[static SIGNATURE_LEN + 1])
{
        static char secret[65];
        struct arena arena = { 0 };
        uint8_t digest[SHA256_DIGEST_LENGTH];
        if (!secret[0])
                hex_random(32, secret);
        const char *text = arena_text(&arena, "%s %s %" PRId64, grant->key, grant->tenant, until_s);
        HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, strlen(text), digest, NULL);
        hex_print(digest, sizeof digest, ret);
        arena_done(&arena);
}

void archive_get(struct http_request *request)
{
        struct service *service = service_of(request);
        const char *host = http_header(request, "Host"), *proto = http_header(request, "X-Forwarded-Proto");
        char signature[SIGNATURE_LEN + 1], tenant[2 * sizeof request->tenant + 1], upload[ID_DIGITS + 1];
        int64_t until_s = time_now_ms() / 1000 + GRANT_S;
        struct grant grant;
        json_t *template = template_store_find(service, request->tenant, http_part(request, 0));
        if (!template) {
                e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", http_part(request, 0));
                return;
        }
        json_decref(template);
        snprintf(grant.tenant, sizeof grant.tenant, "%s", request->tenant);
        build_key(http_part(request, 1), grant.key);
        sign(&grant, until_s, signature);
        hex_print(grant.tenant, strlen(grant.tenant), tenant);
        id_new(upload);                    /* for a gateway: this process alone knows the signature */
        const char *url =
                arena_text(&request->arena,
                        "%s://%s/templates/files/%s?owner=%s&until=%" PRId64 "&signature=%s&upload=%s",
                        proto && strcmp(proto, "https") == 0 ? "https" : "http", host ? host : "localhost", grant.key,
                        tenant, until_s, signature, upload);
        http_json(request, MHD_HTTP_CREATED, json_pack("{s:b, s:s}", "present", template_store_has(service,
                TEMPLATE_STORE_ARCHIVE, request->tenant, grant.key), "url", url));
}

/* Decodes hexadecimal digits to text.  False: another character, an odd number of digits, or too many. */
static bool read_hex(const char *hex, char *ret, size_t size)
{
        size_t n = strlen(hex) / 2;
        if (strlen(hex) % 2 || n >= size || strspn(hex, "0123456789abcdef") < 2 * n)
                return false;
        for (size_t i = 0; i < n; i++) {
                const char pair[] = { hex[2 * i], hex[2 * i + 1], 0 };
                ret[i] = (char)strtoul(pair, NULL, 16);
        }
        ret[n] = 0;
        return true;
}

static bool read_grant(const struct http_request *request, struct grant *ret)
{
        const char *key = http_part(request, 0), *owner = http_query(request, "owner"),
                   *until = http_query(request, "until");
        const char *signature = http_query(request, "signature");
        char expected[SIGNATURE_LEN + 1];
        int64_t until_s = until ? strtoll(until, NULL, 10) : 0;
        if (!owner || !signature || strlen(key) != BUILD_KEY_LEN || strspn(key, "0123456789abcdef") < BUILD_KEY_LEN ||
            !read_hex(owner, ret->tenant, sizeof ret->tenant))
                return false;
        memcpy(ret->key, key, sizeof ret->key);
        sign(ret, until_s, expected);
        return e2b_same(expected, signature) && until_s > time_now_ms() / 1000;
}

/* ---- upload ---- */

static void incoming_free(struct incoming *one)
{
        fd_close(&one->fd);
        free(one);
}

static void on_gone(struct http_request *request)
{
        incoming_free(request->owner);
}

/* Bytes after an error are discarded: the answer has to wait for the end of the body. */
static size_t on_bytes(struct http_request *request, const char *bytes, size_t len)
{
        struct incoming *one = request->owner;
        uint64_t max = service_of(request)->settings->engine.file_bytes_max;
        if (!one->error.code && one->size + len > max)
                err_set(&one->error, CSN_E_INPUT, EFBIG,
                        "the archive is longer than the %llu bytes of engine.file_bytes_max", (unsigned long long)max);
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
                template_store_name(service_of(request), TEMPLATE_STORE_ARCHIVE, one->grant.tenant, one->grant.key,
                                    one->fd, &one->error);
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
        struct grant grant;
        struct csn_error err;
        if (!read_grant(request, &grant)) {
                e2b_error(request, MHD_HTTP_FORBIDDEN, "nobody was told to put files here, or it was too long ago");
                return;
        }
        int fd = template_store_file(service_of(request), TEMPLATE_STORE_ARCHIVE, &err);
        if (fd < 0) {
                http_fail(request, &err);
                return;
        }
        struct incoming *one = mem_alloc(sizeof *one);
        *one = (struct incoming){ .grant = grant, .fd = fd };
        request->owner = one;
        request->gone = on_gone;
        request->take = on_bytes;
        request->whole = on_whole;
}
