/*
 * The page: GET /ui/ and the files that it loads.
 *
 * Files with a hash in their name go out as they were packed at build, and a browser keeps them for ever.  The first
 * file is made for each answer, because each answer has a nonce of its own in its policy and in its text.
 */
#include "front/web/web.h"

#include "front/web/assets.h"
#include "net/http_headers.h"

#include <stdio.h>
#include <zlib.h>

#define FIRST "/ui/"
#define NONCE_BYTES 16
#define NONCE_MARK "__CSP_NONCE__"
#define KEPT "public, max-age=31536000, immutable"

/*
 * Scripts and styles are files of the page alone; editors set styles by the nonce.  Documents of programs are shown in
 * frames, which have a policy of their own (previews.c).
 */
#define POLICY \
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; connect-src 'self'; img-src 'self' data:; " \
        "frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

bool page_is_built(void)
{
        return web_assets[0].path;
}

static const struct web_asset *find_asset(const char *path)
{
        for (const struct web_asset *asset = web_assets; asset->path; asset++)
                if (strcmp(asset->path, path) == 0)
                        return asset;
        return NULL;
}

/* ---- answers ---- */

static void set_safety(struct http_request *request)
{
        http_set_header(request, "Referrer-Policy", "no-referrer");
        http_set_header(request, "Cross-Origin-Opener-Policy", "same-origin");
        http_set_header(request, "Cross-Origin-Resource-Policy", "same-origin");
}

static void send_first(struct http_request *request, const struct web_asset *asset)
{
        char nonce[2 * NONCE_BYTES + 1], policy[500];
        const char *at = (const char *)asset->bytes, *end = at + asset->len;
        struct buf text;
        hex_random(NONCE_BYTES, nonce);
        buf_init(&text, asset->len + 16 * sizeof nonce);
        for (const char *mark; (mark = memmem(at, (size_t)(end - at), NONCE_MARK, strlen(NONCE_MARK)));
                at = mark + strlen(NONCE_MARK)) {
                buf_add(&text, at, (size_t)(mark - at));
                buf_add(&text, nonce, strlen(nonce));
        }
        buf_add(&text, at, (size_t)(end - at));
        snprintf(policy, sizeof policy, POLICY, nonce);
        set_safety(request);
        http_set_header(request, "Content-Security-Policy", policy);
        http_answer(request, MHD_HTTP_OK, asset->type, text.bytes, text.len);
}

/* NULL: the packed bytes are damaged. */
static char *unpack(const struct web_asset *asset)
{
        z_stream stream = { .next_in = (Bytef *)(uintptr_t)asset->bytes, .avail_in = (uInt)asset->bytes_len };
        char *text = mem_alloc(asset->len + 1);
        stream.next_out = (Bytef *)text;
        stream.avail_out = (uInt)asset->len;
        bool is_whole = inflateInit2(&stream, 15 + 16) == Z_OK && inflate(&stream, Z_FINISH) == Z_STREAM_END &&
                stream.total_out == asset->len;
        inflateEnd(&stream);
        if (is_whole)
                return text;
        free(text);
        return NULL;
}

static size_t assets_n(void)
{
        size_t n = 0;
        while (web_assets[n].path)
                n++;
        return n;
}

/* For clients without gzip, once for all of them. */
static const char *unpacked(const struct service *service, const struct web_asset *asset)
{
        struct web_state *state = web_state(service);
        size_t at = (size_t)(asset - web_assets);
        if (!state->unpacked)
                state->unpacked = mem_alloc(assets_n() * sizeof *state->unpacked);
        if (!state->unpacked[at])
                state->unpacked[at] = unpack(asset);
        return state->unpacked[at];
}

void page_close(struct service *service)
{
        struct web_state *state = web_state(service);
        for (size_t i = 0; state->unpacked && i < assets_n(); i++)
                free(state->unpacked[i]);
        free(state->unpacked);
        state->unpacked = NULL;
}

/* "gzip", "*" or "gzip;q=0.5", and not "gzip;q=0" (RFC 9110, 12.5.3). */
static bool takes_gzip(const struct http_request *request)
{
        const char *at = http_header(request, "Accept-Encoding");
        for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
                at += strspn(at, " \t");
                size_t len = strcspn(at, ",; \t");
                bool is_named = (len == 4 && strncasecmp(at, "gzip", 4) == 0) || (len == 1 && *at == '*');
                const char *weight = at + len + strspn(at + len, " \t");
                if (!is_named)
                        continue;
                if (*weight != ';')
                        return true;
                weight += 1 + strspn(weight + 1, " \t");
                return strncasecmp(weight, "q=", 2) != 0 || strtod(weight + 2, NULL) > 0;
        }
        return false;
}

static void send_asset(struct http_request *request, const struct web_asset *asset)
{
        const char *known = http_header(request, "If-None-Match");
        char etag[100];
        bool packed = takes_gzip(request);
        snprintf(etag, sizeof etag, "\"%.32s%s\"", asset->hash, packed ? "-gzip" : "");
        set_safety(request);
        http_set_header(request, "ETag", etag);
        http_set_header(request, "Vary", "Accept-Encoding");
        http_set_header(request, "Cache-Control", KEPT);
        if (known && (strstr(known, etag) || strcmp(known, "*") == 0)) {
                http_answer(request, MHD_HTTP_NOT_MODIFIED, asset->type, mem_copy("", 0), 0);
                return;
        }
        if (packed)
                http_set_header(request, "Content-Encoding", "gzip");
        const char *text = packed ? (const char *)asset->bytes : unpacked(service_of(request), asset);
        if (text) {
                http_answer_shared(request, MHD_HTTP_OK, asset->type, text,
                        packed ? asset->bytes_len : asset->len, NULL);
                return;
        }
        struct csn_error err;
        err_set(&err, CSN_E_SYSTEM, 0, "a file of the page could not be unpacked");
        http_fail(request, &err);
}

/* ---- requests ---- */

static void redirect(struct http_request *request)
{
        set_safety(request);
        http_set_header(request, "Location", FIRST);
        http_answer(request, MHD_HTTP_FOUND, "text/plain; charset=utf-8", mem_copy("", 0), 0);
}

static void get_file(struct http_request *request)
{
        const char *name = http_part(request, 0), *why = service_no_page(request);
        struct csn_error err;
        const struct web_asset *asset =
                why ? NULL : find_asset(arena_text(&request->arena, FIRST "%s", name ? name : ""));
        if (asset) {
                asset->immutable ? send_asset(request, asset) : send_first(request, asset);
                return;
        }
        if (why)
                err_field(&err, "", "this daemon shows no page: %s; /docs shows the interface without scripts", why);
        else
                err_field(&err, "", "the page has no file %.60s", name ? name : "");
        http_problem(request, MHD_HTTP_NOT_FOUND, &err);
}

/* A page needs no key: its requests do. */
static int admit(struct http_request *request, struct csn_error *err)
{
        if (service_check_page(request, err) < 0)
                return http_refuse(request, MHD_HTTP_FORBIDDEN, err);
        return 0;
}

static const struct http_route routes[] = {
        { "GET", "/", "*", 0, BODY_NONE, redirect, "To the page.", NULL, NULL },
        { "GET", "/ui", "*", 0, BODY_NONE, redirect, "To the page.", NULL, NULL },
        { "GET", "/ui/", "*", 0, BODY_NONE, get_file, "The page.", NULL, NULL },
        { "GET", "/ui/{name}", "*", 0, BODY_NONE, get_file, "A file of the page.", NULL, NULL },
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

static const struct http_app app = { .routes = routes, .admit = admit };

static bool is_browser(const struct http_request *request)
{
        return strcmp(request->method, "GET") == 0 && http_accepts(request, "text/html");
}

const struct http_app *page_app(struct service *service, struct http_request *request)
{
        const char *path = request->path;
        (void)service;
        if (strcmp(path, "/ui") == 0 || strncmp(path, FIRST, strlen(FIRST)) == 0)
                return &app;
        return strcmp(path, "/") == 0 && is_browser(request) && !service_no_page(request) ? &app : NULL;
}
