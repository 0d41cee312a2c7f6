/*
 * Requests to the upstream; see index_private.h.
 *
 * Documents of the upstream name addresses, and the upstream redirects to addresses.  A request to another origin than
 * the upstream's is made over https, without the token, and to public addresses alone: the check is in the function
 * that libcurl calls for each socket, so the checked address is the address of the connection.
 */
#include "packages/index/index_private.h"

#include "egress/egress.h"
#include "model/model.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#define REQUEST_MS 30000                   /* default of request_ms */
#define SLOW_BYTES 100                     /* a second: a slower download is given up after request_ms */
#define READ_BYTES 1024                    /* libcurl reads up to 100 times in a step of the loop */
#define IGNORED_MAX MIB                    /* bytes of unused bodies */
#define TOKEN_MAX 8192                     /* bytes */

static const char token_place[] = "the file of its token";

/* ---- the configured upstream ---- */

struct origin {
        char *scheme, *host, *port;        /* curl_free() */
};

/* The caller frees *ret with origin_done() in any case. */
static bool origin_read(const char *text, struct origin *ret)
{
        CURLU *url = curl_url();
        *ret = (struct origin){ 0 };
        bool good = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_HOST, &ret->host, 0) == CURLUE_OK &&
                curl_url_get(url, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) == CURLUE_OK;
        curl_url_cleanup(url);
        return good;
}

static void origin_done(struct origin *origin)
{
        curl_free(origin->scheme);
        curl_free(origin->host);
        curl_free(origin->port);
}

static char *copy(const char *text)
{
        return text && text[0] ? mem_copy(text, strlen(text)) : NULL;
}

/* A token with a line end would add another header. */
static int set_token(struct upstream *upstream, const char *token, struct csn_error *err)
{
        struct arena arena = { 0 };
        struct buf header;
        if (!token || !token[0])
                return 0;
        size_t len = strlen(token);
        for (size_t i = 0; i < len; i++)
                if (token[i] < ' ' || token[i] == 0x7f || len > TOKEN_MAX)
                        return err_set(err, CSN_E_CONFIG, 0,
                                "the token of the package index has a control character or more than %d bytes",
                                TOKEN_MAX);
        buf_init(&header, 2 * TOKEN_MAX);
        if (strchr(token, ':'))
                buf_printf(&header, "Authorization: Basic %s", model_base64(&arena, token, len));
        else
                buf_printf(&header, "Authorization: Bearer %s", token);
        upstream->authorization = mem_copy(header.bytes, header.len);
        buf_done(&header);
        arena_done(&arena);
        return 0;
}

int upstream_init(struct upstream *upstream, struct loop *loop, const struct package_index_settings *settings,
        struct csn_error *err)
{
        const char *url = settings->url ? settings->url : "";
        size_t len = strlen(url);
        struct origin origin = { 0 };
        if (fetch_check(url, "the URL of the package index", token_place, err) < 0)
                return -err->code;
        if (len >= PACKAGE_URL_MAX - PACKAGE_NAME_MAX || strpbrk(url, "?#") || !origin_read(url, &origin)) {
                origin_done(&origin);
                return err_set(err, CSN_E_CONFIG, 0,
                        "the URL of the package index has a query or a fragment, or is longer than %d bytes",
                        PACKAGE_URL_MAX - PACKAGE_NAME_MAX);
        }
        while (len && url[len - 1] == '/')
                len--;
        *upstream = (struct upstream){ .url = mem_copy(url, len), .scheme = copy(origin.scheme),
                .host = copy(origin.host), .port = (unsigned)strtoul(origin.port, NULL, 10),
                .trust = settings->trust,
                .request_ms = settings->request_ms ? settings->request_ms : REQUEST_MS };
        origin_done(&origin);
        if (set_token(upstream, settings->token, err) < 0)
                return -err->code;
        return fetcher_open(loop, &upstream->fetcher, err);
}

void upstream_done(struct upstream *upstream)
{
        fetcher_close(upstream->fetcher);
        free(upstream->url);
        free(upstream->scheme);
        free(upstream->host);
        if (upstream->authorization)
                explicit_bzero(upstream->authorization, strlen(upstream->authorization));
        free(upstream->authorization);
        *upstream = (struct upstream){ 0 };
}

/* ---- one request ---- */

static bool request_send(struct upstream_request *request);

static void request_end(struct upstream_request *request, enum package_problem problem, const char *text)
{
        request->done(request, problem, text);
}

static bool net_address_of(const struct curl_sockaddr *from, struct net_address *ret)
{
        if (from->family == AF_INET) {
                const struct sockaddr_in *v4 = (const struct sockaddr_in *)&from->addr;
                *ret = (struct net_address){ .len = 4 };
                memcpy(ret->bytes, &v4->sin_addr, 4);
                return true;
        }
        if (from->family != AF_INET6)
                return false;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&from->addr;
        *ret = (struct net_address){ .len = 16 };
        memcpy(ret->bytes, &v6->sin6_addr, 16);
        return true;
}

static curl_socket_t on_open_socket(void *owner, curlsocktype purpose, struct curl_sockaddr *address)
{
        struct upstream_request *request = owner;
        struct net_address checked;
        (void)purpose;
        if (!request->at_origin && (!net_address_of(address, &checked) || egress_refused_class(&checked))) {
                request->refused_address = true;
                return CURL_SOCKET_BAD;
        }
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Bodies of redirects and errors are read and not used. */
static size_t on_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        struct upstream_request *request = owner;
        long status = 0;
        curl_easy_getinfo(request->fetch.easy, CURLINFO_RESPONSE_CODE, &status);
        if (status != 200) {
                request->ignored += size * n;
                return request->ignored <= IGNORED_MAX ? size * n : 0;
        }
        request->too_large = !request->bytes(request, bytes, size * n);
        return request->too_large ? 0 : size * n;
}

static bool is_at_origin(const struct upstream *upstream, const struct origin *origin)
{
        return strcasecmp(origin->scheme, upstream->scheme) == 0 && strcasecmp(origin->host, upstream->host) == 0 &&
                strtoul(origin->port, NULL, 10) == upstream->port;
}

/* false: the address of a redirect or of a file may not be asked. */
static bool set_url(struct upstream_request *request, const char *url)
{
        struct origin origin = { 0 };
        bool good = strlen(url) < PACKAGE_URL_MAX && origin_read(url, &origin);
        if (good) {
                request->at_origin = is_at_origin(request->upstream, &origin);
                good = request->at_origin || strcmp(origin.scheme, "https") == 0;
        }
        origin_done(&origin);
        if (!good)
                return false;
        memmove(request->url, url, strlen(url) + 1);
        return true;
}

static void follow(struct upstream_request *request)
{
        char *next = NULL;
        curl_easy_getinfo(request->fetch.easy, CURLINFO_REDIRECT_URL, &next);
        if (request->redirects == PACKAGE_REDIRECTS_MAX) {
                request_end(request, PACKAGE_UNTRUSTED, "the index redirects more often than it may");
                return;
        }
        request->redirects++;
        if (!next || !set_url(request, next) || !request_send(request))
                request_end(request, PACKAGE_UNTRUSTED, "the index redirects to an address that is not permitted");
}

static void end_with_status(struct upstream_request *request, long status)
{
        char text[PACKAGE_TEXT_MAX];
        if (status == 200) {
                request_end(request, PACKAGE_FINE, "");
        } else if (status == 404 || status == 410) {
                request_end(request, PACKAGE_NOT_FOUND, "the index does not have it");
        } else if (status == 401 || status == 403) {
                snprintf(text, sizeof text, "the index refuses access (HTTP status %ld); its token may be wrong", status);
                request_end(request, PACKAGE_UNREACHABLE, text);
        } else {
                snprintf(text, sizeof text, "the index answers with HTTP status %ld", status);
                request_end(request, PACKAGE_UNREACHABLE, text);
        }
}

static bool is_about_certificates(CURLcode code)
{
        return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
                code == CURLE_SSL_ISSUER_ERROR;
}

static void on_done(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct upstream_request *request = fetch->owner;
        char text[PACKAGE_TEXT_MAX];
        if (request->refused_address) {
                request_end(request, PACKAGE_UNTRUSTED, "the index names an address that is not public");
        } else if (request->too_large) {
                request_end(request, PACKAGE_TOO_LARGE, "the index sends more bytes than it may");
        } else if (code != CURLE_OK && !(code == CURLE_WRITE_ERROR && status != 200)) {
                bool untrusted = is_about_certificates(code);
                snprintf(text, sizeof text, "the index %s: %s",
                        untrusted ? "is not what its certificate says" : "cannot be reached", why);
                request_end(request, untrusted ? PACKAGE_UNTRUSTED : PACKAGE_UNREACHABLE, text);
        } else if (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) {
                follow(request);
        } else {
                end_with_status(request, status);
        }
}

/*
 * The host's certificates as a file take 50 ms to parse, in a step of the loop at each connection; from the hashed
 * folder OpenSSL reads the needed certificate only.
 */
static void set_certificates(const struct upstream *upstream, CURL *easy)
{
        if (upstream->trust)
                package_trust_use(upstream->trust, easy);
        else if (curl_version_info(CURLVERSION_NOW)->capath)
                curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
}

static void set_options(struct upstream_request *request)
{
        const struct upstream *upstream = request->upstream;
        CURL *easy = request->fetch.easy;
        char accept[200];
        request->headers = curl_slist_append(NULL, "Expect:");
        if (request->accept) {
                snprintf(accept, sizeof accept, "Accept: %s", request->accept);
                request->headers = curl_slist_append(request->headers, accept);
        }
        if (request->at_origin && upstream->authorization)
                request->headers = curl_slist_append(request->headers, upstream->authorization);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, request->headers);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, request);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)upstream->request_ms);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
        if (request->is_file) {
                curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES);
                curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)(upstream->request_ms + 999) / 1000);
        }
        set_certificates(upstream, easy);
}

static bool request_send(struct upstream_request *request)
{
        struct upstream *upstream = request->upstream;
        struct csn_error err;
        fetch_close(&request->fetch);
        curl_slist_free_all(request->headers);
        request->headers = NULL;
        request->fetch = (struct fetch){ .done = on_done, .owner = request };
        if (fetch_open(&request->fetch, upstream->fetcher, request->url, "the address", token_place, &err) < 0)
                return false;
        set_options(request);
        fetch_start(&request->fetch, request->is_file ? 0 : (long)upstream->request_ms);
        return true;
}

bool upstream_start(struct upstream_request *request, struct upstream *upstream, const char *url)
{
        request->upstream = upstream;
        return set_url(request, url) && request_send(request);
}

const char *upstream_content_type(const struct upstream_request *request)
{
        char *type = NULL;
        if (request->fetch.easy)
                curl_easy_getinfo(request->fetch.easy, CURLINFO_CONTENT_TYPE, &type);
        return type ? type : "";
}

void upstream_stop(struct upstream_request *request)
{
        fetch_close(&request->fetch);
        curl_slist_free_all(request->headers);
        request->headers = NULL;
}
