/* HTTP to the daemon, by libcurl over its Unix socket. */
#include "front/remote/remote.h"

#include "front/socket/endpoint.h"

#include <inttypes.h>

#define ANSWER_MAX (64 * MIB)
#define EVENT_MAX (16 * MIB)

/* ---- the daemon's socket ---- */

static int try_path(const char *path, struct link *link, struct csn_error *err)
{
        int fd;
        if (!endpoint_http_path(path, link->path))
                return err_set(err, CSN_E_CONFIG, 0,
                        "engine.socket is longer than " ENDPOINT_HTTP " leaves room for: %s", path);
        if (endpoint_connect(link->path, &fd, err) < 0)
                return -err->code;
        fd_close(&fd);
        return 0;
}

/* Our own daemon, or the daemon of root, as in caisson run. */
int link_open(struct link *link, const struct settings *settings, struct csn_error *err)
{
        char path[ENDPOINT_PATH_MAX];
        const char *set = settings->engine.socket;
        bool elsewhere = geteuid() != 0 && !(set && set[0]);
        int rc = endpoint_path(settings, false, path)
                ? try_path(path, link, err)
                : err_set(err, CSN_E_SYSTEM, 0,
                          "engine.socket is empty, there is no XDG_RUNTIME_DIR, and /tmp/caisson-%u is no folder of this user alone",
                          geteuid());
        if (rc < 0 && elsewhere && endpoint_path(settings, true, path))
                rc = try_path(path, link, err);
        if (rc < 0 && err->code == CSN_E_DENIED)
                return rc;
        if (rc < 0)
                return err_wrap(err, "this command needs a running daemon");
        curl_global_init(CURL_GLOBAL_NOTHING);
        link->easy = curl_easy_init();
        return link->easy ? 0 : err_set(err, CSN_E_SYSTEM, 0, "libcurl could not be used");
}

void link_close(struct link *link)
{
        curl_easy_cleanup(link->easy);
        link->easy = NULL;
}

char *link_escape(const char *text, struct arena *arena)
{
        char *escaped = curl_easy_escape(NULL, text, (int)strlen(text));
        char *copy = arena_text(arena, "%s", escaped ? escaped : "");
        curl_free(escaped);
        return copy;
}

/* ---- requests ---- */

static void prepare(CURL *easy, const struct link *link, const char *method, const char *path)
{
        char url[16 * KIB];
        snprintf(url, sizeof url, "http://localhost%s", path);
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, link->path);
        curl_easy_setopt(easy, CURLOPT_URL, url);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_USERAGENT, "caisson");
}

CURL *link_request(const struct link *link, const char *method, const char *path)
{
        CURL *easy = curl_easy_init();
        if (easy)
                prepare(easy, link, method, path);
        return easy;
}

int link_broken(const struct link *link, CURLcode code, struct csn_error *err)
{
        return err_set(err, CSN_E_SYSTEM, 0, "the daemon at %s did not answer, or broke off: %s", link->path,
                curl_easy_strerror(code));
}

int link_problem(long status, const char *text, size_t len, struct csn_error *err)
{
        json_t *problem = len ? model_read(text, len, 0, NULL) : NULL;
        const char *detail = json_string_value(json_object_get(problem, "detail")),
                   *code = json_string_value(json_object_get(problem, "code"));
        int known = code ? err_code_of(code) : 0,
            by_status = status == 401           ? CSN_E_DENIED
                : status >= 400 && status < 500 ? CSN_E_INPUT
                                                : CSN_E_SYSTEM;
        err_set(err, known ? known : by_status, 0, "%.500s",
                detail ? detail : "the daemon answered without saying what is wrong");
        if (!detail)
                err_wrap(err, "HTTP status %ld", status);
        json_decref(problem);
        return -err->code;
}

static size_t add_answer(char *bytes, size_t size, size_t n, void *owner)
{
        return buf_add(owner, bytes, size * n) ? size * n : 0;
}

int link_ask(struct link *link, const char *method, const char *path, json_t *body, json_t **ret, struct csn_error *err)
{
        char *text = body ? model_write(body, JSON_COMPACT) : NULL;
        struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
        struct buf answer;
        buf_init(&answer, ANSWER_MAX);
        json_decref(body);
        curl_easy_reset(link->easy);       /* its connection stays */
        prepare(link->easy, link, method, path);
        if (text || strcmp(method, "POST") == 0)
                curl_easy_setopt(link->easy, CURLOPT_POSTFIELDS, text ? text : "");
        curl_easy_setopt(link->easy, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(link->easy, CURLOPT_WRITEFUNCTION, add_answer);
        curl_easy_setopt(link->easy, CURLOPT_WRITEDATA, &answer);
        CURLcode code = curl_easy_perform(link->easy);
        link->status = 0;
        curl_easy_getinfo(link->easy, CURLINFO_RESPONSE_CODE, &link->status);
        int rc = code != CURLE_OK     ? link_broken(link, code, err)
                : link->status >= 300 ? link_problem(link->status, answer.bytes, answer.len, err)
                                      : 0;
        if (rc == 0 && ret)
                *ret = answer.len ? model_read(answer.bytes, answer.len, JSON_ALLOW_NUL, NULL) : NULL;
        curl_slist_free_all(headers);
        buf_done(&answer);
        free(text);
        return rc;
}

/* ---- streams ---- */

static void take_line(struct stream *stream, const char *text, size_t len)
{
        json_t *event = len ? model_read(text, len, JSON_ALLOW_NUL, NULL) : NULL;   /* an empty line is a keepalive */
        const char *type = json_string_value(json_object_get(event, "type"));
        if (type) {
                stream->started = true;
                stream->event(stream->owner, type, event);
        }
        json_decref(event);
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        struct stream *stream = owner;
        const char *at = bytes, *end = bytes + size * n;
        if (!stream->status)
                curl_easy_getinfo(stream->easy, CURLINFO_RESPONSE_CODE, &stream->status);
        for (const char *newline; stream->status < 300 && (newline = memchr(at, '\n', (size_t)(end - at)));
                at = newline + 1) {
                if (stream->line.len) {
                        if (!buf_add(&stream->line, at, (size_t)(newline - at)))
                                return 0;
                        take_line(stream, stream->line.bytes, stream->line.len);
                        stream->line.len = 0;
                } else {
                        take_line(stream, at, (size_t)(newline - at));
                }
        }
        return buf_add(&stream->line, at, (size_t)(end - at)) ? size * n : 0;
}

void stream_begin(struct stream *stream, const struct link *link, const char *method, const char *path, json_t *body)
{
        stream->link = link;
        stream->easy = link_request(link, method, path);
        stream->headers = curl_slist_append(curl_slist_append(NULL, "Accept: application/x-ndjson"),
                "Content-Type: application/json");
        stream->body = body ? model_write(body, JSON_COMPACT) : NULL;
        json_decref(body);
        buf_init(&stream->line, EVENT_MAX);
        if (stream->body)
                curl_easy_setopt(stream->easy, CURLOPT_POSTFIELDS, stream->body);
        curl_easy_setopt(stream->easy, CURLOPT_HTTPHEADER, stream->headers);
        curl_easy_setopt(stream->easy, CURLOPT_WRITEFUNCTION, take_bytes);
        curl_easy_setopt(stream->easy, CURLOPT_WRITEDATA, stream);
}

int stream_end(struct stream *stream, CURLcode code)
{
        curl_easy_getinfo(stream->easy, CURLINFO_RESPONSE_CODE, &stream->status);
        if (stream->status >= 300)
                return link_problem(stream->status, stream->line.bytes, stream->line.len, &stream->error);
        return code == CURLE_OK ? 0 : link_broken(stream->link, code, &stream->error);
}

void stream_close(struct stream *stream)
{
        curl_easy_cleanup(stream->easy);
        curl_slist_free_all(stream->headers);
        buf_done(&stream->line);
        free(stream->body);
        *stream = (struct stream){ 0 };
}
