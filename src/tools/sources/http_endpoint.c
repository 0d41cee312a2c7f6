/*
 * An HTTP endpoint as a tool.
 *
 * Scheme and host are fixed in the configuration.  Arguments are percent-encoded, so an argument cannot add a path
 * segment, a parameter or a header.  Arguments in the path may not contain "..", nor slashes unless `slashes` is set:
 * some servers decode before splitting the path.
 */
#include "tools/sources/defined.h"

#include <stdio.h>
#include <strings.h>

#define URL_MAX (64 * KIB)
#define PROBLEM_MAX 2000                   /* bytes of the body of an error answer */
#define ENDPOINT_MS_MAX 3600000L           /* the broker's time limit ends a call first */

struct endpoint {
        struct act act;
        struct fetch fetch;
        struct curl_slist *headers;
        struct buf body;
};

static bool add_encoded(struct buf *url, const char *text)
{
        char *escaped = curl_easy_escape(NULL, text, (int)strlen(text));
        bool fits = escaped && buf_add(url, escaped, strlen(escaped));
        curl_free(escaped);
        return fits;
}

/* No path to another resource: one segment, or several where the configuration allows slashes. */
static bool is_one_segment(const char *text, bool slashes)
{
        if (!slashes || !strpbrk(text, "/\\"))
                return !strpbrk(text, "/\\");
        for (const char *at = text;; at++) {
                size_t len = strcspn(at, "/\\");
                if (!len || (len == 1 && at[0] == '.') || (len == 2 && memcmp(at, "..", 2) == 0))
                        return false;
                at += len;
                if (!*at)
                        return true;
        }
}

/* A "name={name}" pair of the query is left out if its argument is missing; `pair` is its start in the new URL. */
static int fill(const struct act *act, struct arena *arena, json_t *used, struct buf *url, struct csn_error *err)
{
        bool query = false, fits = true;
        size_t pair = 0;
        for (const char *at = act->tool->url; fits && *at;) {
                query |= *at == '?';
                if (*at == '?' || *at == '&')
                        pair = url->len;
                if (*at != '{') {
                        fits = buf_add(url, at++, 1);
                        continue;
                }
                const char *end = strchr(at, '}'), *name = arena_copy(arena, at + 1, (size_t)(end - at - 1));
                const char *text;
                if (act_argument(act, name, arena, &text, err) < 0)
                        return -err->code;
                at = end + 1;
                json_object_set_new(used, name, json_true());
                if (!query && (!text || !text[0] || strcmp(text, ".") == 0 || strcmp(text, "..") == 0))
                        return err_set(err, CSN_E_INPUT, 0,
                                "the argument %.60s is a part of a path; it cannot be missing, empty, \".\" or \"..\"",
                                name);
                /* Some servers decode before splitting the path. */
                if (!query && !is_one_segment(text, act->tool->slashes))
                        return err_set(err, CSN_E_INPUT, 0, "the argument %.60s is a part of a path; it cannot have %s",
                                name,
                                act->tool->slashes ? "a segment that is empty, \".\" or \"..\"" : "\"/\" or \"\\\"");
                if (text) {
                        fits = add_encoded(url, text);
                        continue;
                }
                url->len = pair;
                at += strcspn(at, "&");
        }
        return fits ? 0 : err_set(err, CSN_E_INPUT, 0, "with its arguments the URL has more than %llu bytes", URL_MAX);
}

/* Add arguments without a {place} to the query. */
static int add_rest(const struct act *act, struct arena *arena, json_t *used, struct buf *url, struct csn_error *err)
{
        const char *name;
        json_t *value;
        bool fits = true;
        json_object_foreach(act->call->arguments, name, value) {
                const char *text;
                if (json_object_get(used, name))
                        continue;
                /* An undeclared argument could override a parameter fixed in the configuration. */
                if (!json_object_get(json_object_get(act->tool->schema, "properties"), name))
                        return err_set(err, CSN_E_INPUT, 0, "the tool has no argument %.60s", name);
                if (act_argument(act, name, arena, &text, err) < 0)
                        return -err->code;
                if (!text)
                        continue;
                fits = fits && buf_printf(url, "%s", memchr(url->bytes, '?', url->len) ? "&" : "?") &&
                        add_encoded(url, name) && buf_add(url, "=", 1) && add_encoded(url, text);
        }
        return fits ? 0 : err_set(err, CSN_E_INPUT, 0, "with its arguments the URL has more than %llu bytes", URL_MAX);
}

static char *body_of(const struct act *act, json_t *used)
{
        json_t *body = json_copy(act->call->arguments), *value;
        const char *name;
        json_object_foreach(used, name, value) {
                json_object_del(body, name);
        }
        char *text = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        return text;
}

/* ---- the answer ---- */

static size_t on_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        struct endpoint *endpoint = owner;
        return buf_add(&endpoint->body, bytes, size * n) ? size * n : 0;
}

static void refuse(struct act *act, long status, const struct buf *body)
{
        struct buf text;
        size_t good = 0;
        for (size_t step;
                good < body->len && good < PROBLEM_MAX && (step = utf8_step(body->bytes + good, body->len - good)) > 0;)
                good += step;
        buf_init(&text, 2 * PROBLEM_MAX);
        buf_printf(&text, "HTTP status %ld%s%.*s", status, good ? ": " : "", (int)good, good ? body->bytes : "");
        act_add(act, text.bytes, text.len, "text/plain");
        buf_done(&text);
        act->is_error = true;
        act_finish(act, NULL);
}

static void on_done(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct endpoint *endpoint = fetch->owner;
        struct act *act = &endpoint->act;
        struct buf *body = &endpoint->body;
        char text[200], *mime = NULL;
        curl_easy_getinfo(fetch->easy, CURLINFO_CONTENT_TYPE, &mime);
        if (code == CURLE_WRITE_ERROR) {
                snprintf(text, sizeof text, "the answer has more than %zu bytes", body->max);
                act_finish(act, text);
        } else if (code != CURLE_OK) {
                snprintf(text, sizeof text, "the endpoint cannot be reached: %s", why);
                act_finish(act, text);
        } else if (status / 100 == 3) {
                act_finish(act, "the endpoint sends on to another place, which is not followed");
        } else if (status / 100 != 2) {
                refuse(act, status, body);
        } else {
                act_finish(act,
                        act_add(act, body->len ? body->bytes : "", body->len, mime ? mime : "")
                                ? NULL
                                : "the answer is neither text nor an image");
        }
}

/* ---- the request ---- */

static int send_it(struct endpoint *endpoint, const char *url, json_t *used, struct csn_error *err)
{
        struct act *act = &endpoint->act;
        const struct defined *tool = act->tool;
        bool has_body = strcmp(tool->method, "GET") != 0 && strcmp(tool->method, "DELETE") != 0;
        if (fetch_open(&endpoint->fetch, act->sources->fetcher, url, act->tool->name, "headers", err) < 0)
                return -err->code;
        CURL *easy = endpoint->fetch.easy;
        endpoint->headers = curl_slist_append(NULL, "Expect:");
        if (has_body)
                endpoint->headers = curl_slist_append(endpoint->headers, "Content-Type: application/json");
        for (size_t i = 0; i < tool->headers.n; i++)
                endpoint->headers = curl_slist_append(endpoint->headers, tool->headers.texts[i]);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, endpoint->headers);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, endpoint);
        if (has_body) {
                char *body = body_of(act, used);
                if (!body)
                        return err_set(err, CSN_E_INPUT, 0, "the arguments cannot be written as JSON");
                curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
                free(body);
        }
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, tool->method);
        fetch_start(&endpoint->fetch, ENDPOINT_MS_MAX);
        return 0;
}

static int endpoint_begin(struct act *act, struct csn_error *err)
{
        struct endpoint *endpoint = (struct endpoint *)act;
        struct sources *sources = act->sources;
        struct arena arena = { 0 };
        struct buf url;
        json_t *used = json_object();
        bool in_url = strcmp(act->tool->method, "GET") == 0 || strcmp(act->tool->method, "DELETE") == 0;
        endpoint->fetch = (struct fetch){ .done = on_done, .owner = endpoint };
        buf_init(&endpoint->body, act->tool->output_bytes);
        buf_init(&url, URL_MAX);
        int rc = !sources->fetcher ? fetcher_open(sources->loop, &sources->fetcher, err) : 0;
        if (rc == 0)
                rc = fill(act, &arena, used, &url, err);
        if (rc == 0 && in_url)
                rc = add_rest(act, &arena, used, &url, err);
        if (rc == 0) {
                /* fill() may have shortened `url`, so its bytes need a new NUL. */
                char *text = arena_copy(&arena, url.bytes, url.len);
                rc = send_it(endpoint, text, used, err);
        }
        buf_done(&url);
        json_decref(used);
        arena_done(&arena);
        return rc;
}

static void endpoint_end(struct act *act)
{
        struct endpoint *endpoint = (struct endpoint *)act;
        fetch_close(&endpoint->fetch);
        curl_slist_free_all(endpoint->headers);
        buf_done(&endpoint->body);
}

const struct act_kind act_endpoint = { .size = sizeof(struct endpoint), .begin = endpoint_begin, .end = endpoint_end };
