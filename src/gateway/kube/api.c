/* Requests to the API server of Kubernetes; see api.h and kube_ask(). */
#include "gateway/kube/api.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>

#define ANSWER_MAX (4 * MIB)
#define TOKEN_MAX (64 * KIB)
#define BUSY_MAX 5                         /* repetitions after status 429 */
#define BUSY_MS 1000                       /* between two attempts without a Retry-After */
#define RETRY_AFTER_MAX_MS 600000

struct kube_request {
        struct kube_request *next;
        struct kube_api *api;
        struct fetch fetch;
        struct curl_slist *headers;
        struct buf answer;
        char *method, *path, *body;        /* body: NULL for none */
        kube_answered_fn *answered;
        void *owner;
        unsigned busy;                     /* 429s so far */
        bool renewed;                      /* the token was read again after a 401 */
        struct timer again;
};

/* ---- address, token ---- */

/* https to any host; http to loopback addresses alone, because the token is sent in clear text. */
static bool is_loopback(const char *rest)
{
        static const char *const hosts[] = { "localhost", "127.", "[::1]" };
        for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
                size_t len = strlen(hosts[i]);
                if (strncmp(rest, hosts[i], len) != 0)
                        continue;
                if (hosts[i][len - 1] != '.')
                        return strchr(":/", rest[len]) != NULL;   /* the NUL is part of the set */
                char address[64];
                uint8_t bytes[4];
                snprintf(address, sizeof address, "%.*s", (int)strcspn(rest, ":/"), rest);
                return inet_pton(AF_INET, address, bytes) == 1;
        }
        return false;
}

static int find_url(struct kube_api *api, struct csn_error *err)
{
        const char *set = api->settings->api_url;
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        if (set[0])
                snprintf(api->url, sizeof api->url, "%s", set);
        else if (host && host[0])
                snprintf(api->url, sizeof api->url, "https://%s%.200s%s:%.8s", strchr(host, ':') ? "[" : "", host,
                        strchr(host, ':') ? "]" : "", port && port[0] ? port : "443");
        else
                return err_setting(err, "kubernetes.api_url",
                        "kubernetes.api_url is empty, and the gateway is in no pod: there is no KUBERNETES_SERVICE_HOST");
        for (size_t len = strlen(api->url); len && api->url[len - 1] == '/'; len--)
                api->url[len - 1] = 0;
        if (fetch_check(api->url, "kubernetes.api_url", "kubernetes.token_file", err) < 0)
                return -err->code;
        if (strncasecmp(api->url, "http://", 7) == 0 && !is_loopback(api->url + 7))
                return err_setting(err, "kubernetes.api_url",
                        "kubernetes.api_url is \"%.200s\": it has to be https, because the token is secret; http is for "
                        "loopback addresses", api->url);
        return 0;
}

/* A file of one word.  NULL with errno: unreadable, or no word (EINVAL); free() is the caller's. */
static char *read_word(const char *path, size_t max)
{
        char *text = mem_alloc(max + 1);
        ssize_t len = io_read_file(AT_FDCWD, path, text, max);
        if (len < 0) {
                int sys = errno;
                free(text);
                errno = sys;
                return NULL;
        }
        while (len && strchr(" \t\r\n", text[len - 1]))
                text[--len] = 0;
        for (ssize_t i = 0; i < len; i++)
                if (text[i] <= ' ' || text[i] > '~')
                        len = 0;
        if (!len) {
                free(text);
                errno = EINVAL;
                return NULL;
        }
        return text;
}

/* A server on a loopback address, such as kubectl proxy, needs no token. */
static int find_token(struct kube_api *api, struct csn_error *err)
{
        const char *path = api->settings->token_file;
        api->token = path[0] ? read_word(path, TOKEN_MAX) : NULL;
        api->token_us = clock_us();
        bool optional = strncasecmp(api->url, "http://", 7) == 0 && (!path[0] || errno == ENOENT);
        if (api->token || optional)
                return 0;
        return err_setting(err, "kubernetes.token_file", "kubernetes.token_file is \"%.300s\": %s", path,
                path[0] ? strerror(errno) : "the API server needs a token");
}

void kube_api_renew_token(struct kube_api *api)
{
        char *fresh = api->settings->token_file[0] ? read_word(api->settings->token_file, TOKEN_MAX) : NULL;
        api->token_us = clock_us();
        if (!fresh) {
                if (api->token)
                        log_text(LOG_WARN, "read kubernetes.token_file %s: %s; the old token stays",
                                api->settings->token_file, strerror(errno));
                return;
        }
        free(api->token);
        api->token = fresh;
}

/* The namespace of a pod is a file beside its token. */
static int find_namespace(struct kube_api *api, struct csn_error *err)
{
        const char *token = api->settings->token_file, *slash = strrchr(token, '/');
        char path[4200], *word = NULL;
        if (api->settings->namespace[0]) {
                word = mem_copy(api->settings->namespace, strlen(api->settings->namespace));
        } else {
                snprintf(path, sizeof path, "%.*snamespace", slash ? (int)(slash - token) + 1 : 0, token);
                word = read_word(path, sizeof api->namespace - 1);
                if (!word)
                        return err_setting(err, "kubernetes.namespace",
                                "kubernetes.namespace is empty, and %s has none: %s", path, strerror(errno));
        }
        size_t len = strlen(word);
        bool good = len < sizeof api->namespace &&
                strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && word[0] != '-';
        snprintf(api->namespace, sizeof api->namespace, "%s", word);
        free(word);
        return good ? 0
                    : err_setting(err, "kubernetes.namespace",
                              "kubernetes.namespace is \"%.80s\": it has to be of a-z, 0-9 and -", api->namespace);
}

static int check_authority(const struct kube_api *api, struct csn_error *err)
{
        const char *path = api->settings->ca_file;
        if (strncasecmp(api->url, "https://", 8) != 0 || !path[0] || access(path, R_OK) == 0)
                return 0;
        return err_setting(err, "kubernetes.ca_file",
                "kubernetes.ca_file is \"%.300s\": %s; empty means the authorities of this host", path, strerror(errno));
}

int kube_api_open(struct kube_api *api, struct loop *loop, struct fetcher *fetcher, const struct settings *settings,
        const struct kube_times *times, struct csn_error *err)
{
        *api = (struct kube_api){
                .loop = loop, .fetcher = fetcher, .settings = &settings->kubernetes, .times = times
        };
        if (find_url(api, err) < 0 || find_token(api, err) < 0 || find_namespace(api, err) < 0 ||
                check_authority(api, err) < 0) {
                kube_api_close(api);
                return -err->code;
        }
        return 0;
}

/* ---- requests ---- */

int kube_api_prepare(struct kube_api *api, struct fetch *fetch, const char *path, const char *content_type,
        struct curl_slist **headers, struct csn_error *err)
{
        struct buf text;
        const char *group = strncmp(path, "leases", 6) == 0 ? "apis/coordination.k8s.io/v1" : "api/v1";
        if (clock_us() - api->token_us >= api->times->token_ms * 1000)
                kube_api_renew_token(api);
        buf_init(&text, TOKEN_MAX + 4 * KIB);
        buf_printf(&text, "%s/%s/namespaces/%s/%s", api->url, group, api->namespace, path);
        int rc = fetch_open(fetch, api->fetcher, text.bytes, "kubernetes.api_url", "kubernetes.token_file", err);
        buf_done(&text);
        if (rc < 0)
                return rc;
        curl_slist_free_all(*headers);
        *headers = curl_slist_append(NULL, "Accept: application/json");
        *headers = curl_slist_append(*headers, "Expect:");
        if (api->token) {
                buf_init(&text, TOKEN_MAX + 4 * KIB);
                buf_printf(&text, "Authorization: Bearer %s", api->token);
                *headers = curl_slist_append(*headers, text.bytes);
                buf_done(&text);
        }
        if (content_type) {
                char line[100];
                snprintf(line, sizeof line, "Content-Type: %s", content_type);
                *headers = curl_slist_append(*headers, line);
        }
        curl_easy_setopt(fetch->easy, CURLOPT_HTTPHEADER, *headers);
        curl_easy_setopt(fetch->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(fetch->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)min_u64(api->times->request_ms, 10000));
        if (api->settings->ca_file[0])
                curl_easy_setopt(fetch->easy, CURLOPT_CAINFO, api->settings->ca_file);
        return 0;
}

uint64_t kube_api_retry_after(CURL *easy)
{
        curl_off_t seconds = 0;
        curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &seconds);
        return seconds > 0 ? min_u64((uint64_t)seconds * 1000, RETRY_AFTER_MAX_MS) : 0;
}

static void request_free(struct kube_request *request)
{
        struct kube_request **at = &request->api->requests;
        while (*at && *at != request)
                at = &(*at)->next;
        if (*at)
                *at = request->next;
        loop_untimer(request->api->loop, &request->again);
        fetch_close(&request->fetch);
        curl_slist_free_all(request->headers);
        buf_done(&request->answer);
        free(request->method);
        free(request->path);
        free(request->body);
        free(request);
}

static void request_answer(struct kube_request *request, long status, const char *why)
{
        const struct kube_api *api = request->api;
        struct csn_error err;
        json_t *body = why || !request->answer.len
                ? NULL
                : json_loadb(request->answer.bytes, request->answer.len, JSON_REJECT_DUPLICATES, NULL);
        const char *reason = json_string_value(json_object_get(body, "reason"));
        const char *message = json_string_value(json_object_get(body, "message"));
        struct kube_question question = { .url = api->url,
                .namespace = api->namespace,
                .token_file = api->settings->token_file,
                .method = request->method,
                .path = request->path };
        struct kube_answer answer = { .status = why ? 0 : status, .body = body, .reason = reason ? reason : "" };
        if (!why)
                why = message ? message : "";
        answer.refusal = kube_explain(&question, answer.status, answer.reason, why, &err);
        answer.error = answer.refusal == KUBE_DONE ? NULL : &err;
        answer.retry_after_ms = kube_api_retry_after(request->fetch.easy);
        kube_answered_fn *answered = request->answered;
        void *owner = request->owner;
        request_free(request);
        answered(owner, &answer);
        json_decref(body);
}

static void request_send(struct kube_request *request);

static void on_fetched(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct kube_request *request = fetch->owner;
        (void)code;
        if (!why && status == 401 && !request->renewed) {
                request->renewed = true;
                kube_api_renew_token(request->api);
                request_send(request);
                return;
        }
        if (!why && status == 429 && request->busy < BUSY_MAX) {
                uint64_t ms = kube_api_retry_after(fetch->easy);
                request->busy++;
                loop_timer(request->api->loop, &request->again, (ms ? ms : BUSY_MS) * 1000);
                return;
        }
        request_answer(request, status, why);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        struct kube_request *request = owner;
        return buf_add(&request->answer, bytes, size * n) ? size * n : 0;
}

static void request_send(struct kube_request *request)
{
        struct kube_api *api = request->api;
        struct csn_error err;
        const char *type = !request->body ? NULL
                : strcmp(request->method, "PATCH") == 0 ? "application/merge-patch+json"
                                                        : "application/json";
        fetch_close(&request->fetch);
        request->answer.len = 0;
        if (kube_api_prepare(api, &request->fetch, request->path, type, &request->headers, &err) < 0) {
                log_text(LOG_WARN, "%s", err.text);
                loop_timer(api->loop, &request->again, BUSY_MS * 1000ULL);
                return;
        }
        CURL *easy = request->fetch.easy;
        request->fetch.done = on_fetched;
        request->fetch.owner = request;
        if (request->body) {
                curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
                curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)strlen(request->body));
        }
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, request);
        fetch_start(&request->fetch, (long)api->times->request_ms);
}

static void on_again(struct timer *timer)
{
        request_send(timer->owner);
}

void kube_api_ask(struct kube_api *api, const char *method, const char *path, json_t *body, kube_answered_fn *answered,
        void *owner)
{
        struct kube_request *request = mem_alloc(sizeof *request);
        *request = (struct kube_request){ .next = api->requests,
                .api = api,
                .method = mem_copy(method, strlen(method)),
                .path = mem_copy(path, strlen(path)),
                .body = body ? json_dumps(body, JSON_COMPACT) : NULL,
                .answered = answered,
                .owner = owner,
                .again = { .fired = on_again, .owner = request } };
        json_decref(body);
        buf_init(&request->answer, ANSWER_MAX);
        api->requests = request;
        request_send(request);
}

void kube_api_forget(struct kube_api *api, const void *owner)
{
        for (struct kube_request *request = api->requests, *next; request; request = next) {
                next = request->next;
                if (request->owner == owner)
                        request_free(request);
        }
}

void kube_api_close(struct kube_api *api)
{
        while (api->requests)
                request_free(api->requests);
        free(api->token);
        api->token = NULL;
}
