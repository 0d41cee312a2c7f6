/*
 * A request to a review server, and its answer.
 *
 * Redirects are not followed: the key is for the host in the settings.  An answer is bounded in decompressed bytes and
 * in total time.
 */
#include "review/review_private.h"

#include "net/http_client.h"

#include <stdio.h>
#include <strings.h>
#include <time.h>

#define HEADER_MAX (64 * KIB)

struct http_exchange {
        struct fetch fetch;
        struct curl_slist *headers;
        char *body;
        struct buf answer;
};

/* ---- headers ---- */

/* Clear the headers before freeing: a header may contain a key. */
static void free_headers(struct curl_slist *headers)
{
        for (struct curl_slist *one = headers; one; one = one->next)
                explicit_bzero(one->data, strlen(one->data));
        curl_slist_free_all(headers);
}

static struct curl_slist *add_key(struct curl_slist *list, const struct config_file *key)
{
        struct buf line;
        const char *text = key->text + strspn(key->text, " \t\r\n");
        size_t len = strcspn(text, " \t\r\n");
        if (!len)
                return list;
        buf_init(&line, HEADER_MAX);
        if (buf_printf(&line, "Authorization: Bearer %.*s", (int)len, text))
                list = curl_slist_append(list, line.bytes);
        explicit_bzero(line.bytes, line.len);
        buf_done(&line);
        return list;
}

/* Lines "NAME: VALUE"; empty lines and lines with a leading # are comments. */
static struct curl_slist *add_lines(struct curl_slist *list, const struct config_file *file)
{
        for (const char *at = file->text; *at;) {
                size_t len = strcspn(at, "\r\n");
                const char *colon = memchr(at, ':', len);
                if (colon && colon != at && *at != '#') {
                        char *line = mem_copy(at, len);
                        list = curl_slist_append(list, line);
                        explicit_bzero(line, len);
                        free(line);
                }
                at += len;
                at += strspn(at, "\r\n");
        }
        return list;
}

static struct curl_slist *make_headers(struct reviewer *reviewer, const char *run_id)
{
        char trace[100];
        struct curl_slist *list = curl_slist_append(NULL, "Content-Type: application/json");
        list = curl_slist_append(list, "Accept: application/json");
        list = curl_slist_append(list, "Expect:");
        snprintf(trace, sizeof trace, "X-Client-Request-Id: %.60s", run_id);
        list = curl_slist_append(list, trace);
        if (reviewer->key.text)
                list = add_key(list, &reviewer->key);
        return reviewer->headers.text ? add_lines(list, &reviewer->headers) : list;
}

/* ---- the answer ---- */

static size_t on_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        struct http_exchange *http = owner;
        return buf_add(&http->answer, bytes, size * n) ? size * n : 0;
}

/* Seconds, or a date (RFC 9110, 10.2.3). */
static void read_retry_after(CURL *easy, struct review_reply *reply)
{
        struct curl_header *found = NULL;
        if (curl_easy_header(easy, "Retry-After", 0, CURLH_HEADER, -1, &found) != CURLHE_OK)
                return;
        const char *text = found->value;
        size_t n = strspn(text, "0123456789");
        if (n && n < 10 && !text[n]) {
                reply->retry_after_ms = strtoull(text, NULL, 10) * 1000;
                reply->has_retry_after = true;
                return;
        }
        time_t at = curl_getdate(text, NULL), now = time(NULL);
        if (at == -1)
                return;
        reply->retry_after_ms = at > now ? (uint64_t)(at - now) * 1000 : 0;
        reply->has_retry_after = true;
}

static const char *explain(CURLcode code, const char *why)
{
        switch (code) {
        case CURLE_WRITE_ERROR:
                return "the answer of the server is longer than 1 MiB";
        case CURLE_OPERATION_TIMEDOUT:
                return "the server gave no complete answer within review.timeout";
        case CURLE_COULDNT_CONNECT:
                return "the server of the reviewer cannot be reached";
        case CURLE_COULDNT_RESOLVE_HOST:
                return "the name of the server of the reviewer has no address";
        case CURLE_PEER_FAILED_VERIFICATION:
                return "the certificate of the server is not valid; see review.ca_file";
        default:
                return why;
        }
}

static void on_done(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct review_exchange *exchange = fetch->owner;
        struct http_exchange *http = exchange->state;
        struct review_reply reply = { .status = status, .body = http->answer.len ? http->answer.bytes : "",
                .len = http->answer.len };
        char text[200];
        if (why) {
                snprintf(text, sizeof text, "%s", explain(code, why));
                reply.why = text;
                reply.may_retry = code != CURLE_WRITE_ERROR && code != CURLE_PEER_FAILED_VERIFICATION &&
                        code != CURLE_BAD_CONTENT_ENCODING;
        } else {
                read_retry_after(http->fetch.easy, &reply);
        }
        exchange->done(exchange, &reply);
}

static void stop(struct review_exchange *exchange)
{
        struct http_exchange *http = exchange->state;
        fetch_close(&http->fetch);
        free_headers(http->headers);
        free(http->body);
        buf_done(&http->answer);
        free(http);
}

void review_exchange_stop(struct review_exchange *exchange)
{
        if (exchange->state)
                exchange->stop(exchange);
        exchange->state = NULL;
}

/* ---- the question ---- */

static int check_files(struct reviewer *reviewer, struct csn_error *err)
{
        struct config_file *const files[] = { &reviewer->key, &reviewer->headers };
        for (size_t i = 0; i < ARRAY_LEN(files); i++)
                if (!config_file_refresh(files[i])) {
                        err_field(err, files[i]->setting, "%s", files[i]->why);
                        return -(err->code = CSN_E_CONFIG);
                }
        return 0;
}

int http_exchange_start(struct review_exchange *exchange, char *body, const char *run_id, uint64_t timeout_ms,
        struct csn_error *err)
{
        struct reviewer *reviewer = exchange->reviewer;
        struct http_exchange *http = mem_alloc(sizeof *http);
        http->body = body;
        http->fetch = (struct fetch){ .done = on_done, .owner = exchange };
        buf_init(&http->answer, REVIEW_ANSWER_MAX);
        exchange->state = http;
        exchange->stop = stop;
        const char *key = reviewer->settings->review.base_url[0] ? "review.base_url" : "review.url";
        if (check_files(reviewer, err) < 0 ||
                fetch_open(&http->fetch, reviewer->fetcher, reviewer->url, key, "review.api_key_file", err) < 0) {
                review_exchange_stop(exchange);
                return -err->code;
        }
        CURL *easy = http->fetch.easy;
        http->headers = make_headers(reviewer, run_id);
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, http->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(http->body));
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers);
        curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, "");
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, http);
        if (reviewer->ca) {
                struct curl_blob blob = { reviewer->ca, strlen(reviewer->ca), CURL_BLOB_NOCOPY };
                curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
                curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        }
        fetch_start(&http->fetch, (long)timeout_ms);
        return 0;
}
