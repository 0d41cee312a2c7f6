/*
 * List and watch of pods (Kubernetes API concepts, "Efficient detection of changes"); see kube.h.
 *
 * libcurl forbids new requests inside of its callbacks, and the fleet begins requests for each new worker.  So pods are
 * queued, and applied from the loop: a list when complete, an event of a watch with the next turn.
 */
#include "gateway/kube/api.h"
#include "gateway/kube/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

#define REFUSAL_MAX (64 * KIB)
#define BUCKETS 1024                       /* of pods by the hash of their names */

static const struct kube_times usual_times = { .watch_s = 290,
        .silent_ms = 320000,
        .backoff_min_ms = 1000,
        .backoff_max_ms = 30000,
        .token_ms = 60000,
        .request_ms = 30000 };

/* An event read, but not yet applied. */
struct news {
        struct news *next;
        enum kube_event_type type;
        struct kube_pod pod;               /* of a bookmark: its resource_version alone */
        long code;                         /* of KUBE_ERROR */
        char message[200];
};

enum follow { FOLLOW_STOPPED, FOLLOW_LIST, FOLLOW_WATCH, FOLLOW_WAIT };

struct kube {
        struct kube_api api;
        struct kube_times times;
        struct fleet *fleet;
        const struct kubernetes_settings *settings;
        const struct kube_events *events;
        void *owner;
        struct kube_pod *pods, *buckets[BUCKETS];
        uint64_t list;                     /* number of the newest list */
        enum follow follow;
        struct fetch fetch;                /* of the list or watch */
        struct curl_slist *headers;
        struct kube_stream stream;
        struct csn_error stream_error;     /* code 0: none */
        struct buf refusal;                /* body of an answer with another status than 200 */
        struct news *news, **news_end;
        char version[32];                  /* resource version: the next watch begins behind it */
        bool has_listed, must_list, renewed;
        bool heard, fruitful;              /* this list or watch had an answer's head; an object */
        bool reported;                     /* the failure of the API server was logged */
        uint64_t begun_us;                 /* clock_us() of the list's or watch's begin */
        uint64_t listed_us;                /* of the last complete list */
        uint64_t backoff_ms;
        struct timer apply, retry, silence;
        uint64_t away_us;                  /* start of the API server's failure; 0: answers */
        char why[400];
};

/* ---- pods and the fleet ---- */

static bool is_over(const struct kube_pod *pod)
{
        return strcmp(pod->phase, "Succeeded") == 0 || strcmp(pod->phase, "Failed") == 0;
}

static const char *end_reason(const struct kube_pod *pod)
{
        return pod->reason[0] ? pod->reason : "Deleted";
}

/* A worker under deletion still answers for its sandboxes, but gets no new work. */
static void follow_pod(struct kube *kube, struct kube_pod *pod, bool restarted)
{
        if (is_over(pod)) {
                struct gateway_worker *worker = pod->worker;
                pod->worker = NULL;
                if (worker)
                        fleet_remove(worker, end_reason(pod));
                return;
        }
        if (strcmp(pod->phase, "Running") != 0 || !pod->ip[0])
                return;
        char url[300];
        bool v6 = strchr(pod->ip, ':') != NULL;
        snprintf(url, sizeof url, "%s://%s%s%s:%" PRIu64, kube->settings->tls ? "https" : "http", v6 ? "[" : "",
                pod->ip, v6 ? "]" : "", kube->settings->port);
        pod->worker = fleet_add(kube->fleet, pod->name, pod->uid, url);
        if (!pod->worker)
                return;
        fleet_cordon(pod->worker, pod->deleting || pod->cordoned);
        if (restarted)
                fleet_restarted(pod->worker, pod->restart_reason[0] ? pod->restart_reason : "Restarted");
}

static struct kube_pod **bucket_of(struct kube *kube, const char *name)
{
        return &kube->buckets[hash_text(name, strlen(name)) % BUCKETS];
}

static struct kube_pod *find_pod(struct kube *kube, const char *name)
{
        struct kube_pod *pod = *bucket_of(kube, name);
        while (pod && strcmp(pod->name, name) != 0)
                pod = pod->bucket_next;
        return pod;
}

static void add_pod(struct kube *kube, struct kube_pod *pod)
{
        struct kube_pod **bucket = bucket_of(kube, pod->name);
        pod->next = kube->pods;
        kube->pods = pod;
        pod->bucket_next = *bucket;
        *bucket = pod;
}

static void unlink_pod(struct kube *kube, struct kube_pod *pod)
{
        struct kube_pod **at = &kube->pods, **bucket = bucket_of(kube, pod->name);
        while (*at != pod)
                at = &(*at)->next;
        *at = pod->next;
        while (*bucket != pod)
                bucket = &(*bucket)->bucket_next;
        *bucket = pod->bucket_next;
}

static void drop_pod(struct kube *kube, struct kube_pod *pod, const char *reason)
{
        struct gateway_worker *worker = pod->worker;
        unlink_pod(kube, pod);
        pod->worker = NULL;
        if (worker)
                fleet_remove(worker, reason);
        if (kube->events && kube->events->gone)
                kube->events->gone(kube->owner, pod);
        free(pod);
}

static void apply_pod(struct kube *kube, const struct kube_pod *seen)
{
        struct kube_pod *pod = find_pod(kube, seen->name);
        if (pod && strcmp(pod->uid, seen->uid) != 0) {
                drop_pod(kube, pod, "Deleted");
                pod = NULL;
        }
        bool restarted = pod && seen->restarts > pod->restarts;
        if (pod) {
                struct kube_pod old = *pod;
                *pod = *seen;
                pod->next = old.next;
                pod->bucket_next = old.bucket_next;
                pod->worker = old.worker;
                pod->owner = old.owner;
        } else {
                pod = mem_alloc(sizeof *pod);
                *pod = *seen;
                add_pod(kube, pod);
        }
        pod->list = kube->list;
        follow_pod(kube, pod, restarted);
        if (kube->events && kube->events->pod)
                kube->events->pod(kube->owner, pod);
}

static void apply_deleted(struct kube *kube, const struct kube_pod *seen)
{
        struct kube_pod *pod = find_pod(kube, seen->name);
        if (pod && strcmp(pod->uid, seen->uid) == 0)
                drop_pod(kube, pod, seen->reason[0] ? seen->reason : end_reason(pod));
}

/* Drop the pods missing in a complete list. */
static void drop_unlisted(struct kube *kube)
{
        for (struct kube_pod *pod = kube->pods, *next; pod; pod = next) {
                next = pod->next;
                if (pod->list != kube->list)
                        drop_pod(kube, pod, end_reason(pod));
        }
}

/* ---- answers ---- */

static void forget_news(struct kube *kube)
{
        while (kube->news) {
                struct news *next = kube->news->next;
                free(kube->news);
                kube->news = next;
        }
        kube->news_end = &kube->news;
}

static void on_object(void *owner, enum kube_event_type type, const json_t *object)
{
        struct kube *kube = owner;
        struct news *news = mem_alloc(sizeof *news);
        const json_t *version = json_object_get(json_object_get(object, "metadata"), "resourceVersion");
        bool good = kube_pod_read(object, &news->pod) || type == KUBE_BOOKMARK || type == KUBE_ERROR;
        if (!good || (type == KUBE_BOOKMARK && !json_is_string(version))) {
                log_text(LOG_WARN, "the API server sent a pod without a usable name and uid, or a bookmark without a revision");
                free(news);
                return;
        }
        news->type = type;
        if (json_is_string(version))
                snprintf(news->pod.resource_version, sizeof news->pod.resource_version, "%s",
                        json_string_value(version));
        if (type == KUBE_ERROR) {
                const char *message = json_string_value(json_object_get(object, "message"));
                news->code = (long)json_integer_value(json_object_get(object, "code"));
                snprintf(news->message, sizeof news->message, "%s", message ? message : "");
        }
        *kube->news_end = news;
        kube->news_end = &news->next;
        kube->fruitful = true;
        if (kube->follow == FOLLOW_WATCH)
                loop_timer(kube->api.loop, &kube->apply, 0);
}

static void on_metadata(void *owner, const json_t *metadata)
{
        struct kube *kube = owner;
        const char *version = json_string_value(json_object_get(metadata, "resourceVersion"));
        if (version)
                snprintf(kube->version, sizeof kube->version, "%s", version);
}

static const struct kube_stream_events stream_events = { on_object, on_metadata };

/* A part of an answer has arrived. */
static void hear(struct kube *kube)
{
        kube->heard = true;
        if (kube->follow == FOLLOW_WATCH)
                loop_timer(kube->api.loop, &kube->silence, kube->times.silent_ms * 1000);
}

static void follow_succeeded(struct kube *kube)
{
        if (kube->reported)
                log_text(LOG_WARN, "the API server answers again");
        kube->reported = false;
        kube->away_us = 0;
        kube->why[0] = 0;
        kube->renewed = false;
        kube->backoff_ms = kube->times.backoff_min_ms;
}

static size_t on_head(char *bytes, size_t size, size_t n, void *owner)
{
        struct kube *kube = owner;
        long status = 0;
        hear(kube);
        curl_easy_getinfo(kube->fetch.easy, CURLINFO_RESPONSE_CODE, &status);
        if (kube->follow == FOLLOW_WATCH && status == 200 && size * n <= 2 && bytes[0] == '\r')
                follow_succeeded(kube);
        return size * n;
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        struct kube *kube = owner;
        size_t len = size * n;
        long status = 0;
        hear(kube);
        curl_easy_getinfo(kube->fetch.easy, CURLINFO_RESPONSE_CODE, &status);
        if (status != 200) {
                buf_add(&kube->refusal, bytes, min_u64(len, REFUSAL_MAX - kube->refusal.len));
                return len;
        }
        return kube_stream_take(&kube->stream, bytes, len, &kube->stream_error) < 0 ? 0 : len;
}

/* ---- the steps ---- */

static void follow_end(struct kube *kube)
{
        fetch_close(&kube->fetch);
        loop_untimer(kube->api.loop, &kube->silence);
        loop_untimer(kube->api.loop, &kube->apply);
        loop_untimer(kube->api.loop, &kube->retry);
        kube_stream_done(&kube->stream);
        buf_done(&kube->refusal);
        forget_news(kube);
}

static void follow_wait(struct kube *kube, uint64_t ms)
{
        follow_end(kube);
        kube->follow = FOLLOW_WAIT;
        loop_timer(kube->api.loop, &kube->retry, ms * 1000);
}

/* Half to all of the next step of the back-off, so that gateways do not return at the same moment. */
static uint64_t next_backoff(struct kube *kube)
{
        uint32_t random = 0;
        uint64_t ms = kube->backoff_ms;
        kube->backoff_ms = min_u64(ms * 2, kube->times.backoff_max_ms);
        (void)!getrandom(&random, sizeof random, 0);
        return ms / 2 + random % (ms / 2 + 1);
}

static void follow_failed(struct kube *kube, const char *why, uint64_t after_ms)
{
        if (!kube->reported)
                log_text(LOG_WARN, "%s; the last known workers stay", why);
        if (!kube->away_us)
                kube->away_us = clock_us();
        kube->reported = true;
        snprintf(kube->why, sizeof kube->why, "%s", why);
        uint64_t ms = next_backoff(kube);
        follow_wait(kube, after_ms ? after_ms : ms);
}

static void on_followed(struct fetch *fetch, long status, const char *why, CURLcode code);

static void follow_begin(struct kube *kube, enum follow follow)
{
        struct csn_error err;
        struct buf path;
        char *selector = curl_easy_escape(NULL, kube->settings->selector, 0);
        follow_end(kube);
        kube->follow = follow;
        kube->heard = kube->fruitful = false;
        kube->begun_us = clock_us();
        kube->stream_error = (struct csn_error){ 0 };
        kube_stream_init(&kube->stream, follow == FOLLOW_LIST ? KUBE_LIST : KUBE_WATCH, &stream_events, kube);
        buf_init(&kube->refusal, REFUSAL_MAX);
        buf_init(&path, 8 * KIB);
        /* A later list must not be older than the known state: without a revision the list is the newest. */
        if (follow == FOLLOW_LIST)
                buf_printf(&path, "pods?labelSelector=%s%s", selector, kube->has_listed ? "" : "&resourceVersion=0");
        else
                buf_printf(&path,
                        "pods?labelSelector=%s&watch=1&resourceVersion=%s&allowWatchBookmarks=true&timeoutSeconds=%u",
                        selector, kube->version, kube->times.watch_s);
        curl_free(selector);
        int rc = kube_api_prepare(&kube->api, &kube->fetch, path.bytes, NULL, &kube->headers, &err);
        buf_done(&path);
        if (rc < 0) {
                follow_failed(kube, err.text, 0);
                return;
        }
        CURL *easy = kube->fetch.easy;
        kube->fetch.done = on_followed;
        kube->fetch.owner = kube;
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, kube);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, kube);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        if (follow == FOLLOW_WATCH)
                loop_timer(kube->api.loop, &kube->silence, kube->times.request_ms * 1000);
        fetch_start(&kube->fetch, follow == FOLLOW_LIST ? 2 * (long)kube->times.request_ms : 0);
}

static void follow_again(struct kube *kube)
{
        follow_begin(kube, kube->must_list ? FOLLOW_LIST : FOLLOW_WATCH);
}

static void on_retry(struct timer *timer)
{
        follow_again(timer->owner);
}

/* A second list soon after the first has to wait: the server may drop history faster than this gateway reads. */
static void follow_relist(struct kube *kube, const char *why)
{
        bool soon = clock_us() - kube->listed_us < kube->times.backoff_min_ms * 1000;
        log_text(LOG_INFO, "pods are listed again: %s", why);
        kube->must_list = true;
        if (soon)
                follow_wait(kube, next_backoff(kube));
        else
                follow_begin(kube, FOLLOW_LIST);
}

static void on_silence(struct timer *timer)
{
        struct kube *kube = timer->owner;
        if (kube->heard) {
                log_text(LOG_INFO, "the API server was silent, a new watch begins");
                follow_begin(kube, FOLLOW_WATCH);
                return;
        }
        char why[200];
        snprintf(why, sizeof why, "the API server at %.100s does not answer a watch", kube->api.url);
        follow_failed(kube, why, 0);
}

/*
 * Apply the queued events.  False: an ERROR event has ended the watch, and the next step has begun.  A listener may
 * send requests, and must not close the kube.
 */
static bool apply_news(struct kube *kube)
{
        while (kube->news) {
                struct news *news = kube->news;
                kube->news = news->next;
                if (!kube->news)
                        kube->news_end = &kube->news;
                struct news one = *news;
                free(news);
                if (one.type == KUBE_ERROR) {
                        if (one.code == 410)
                                follow_relist(kube, one.message);
                        else
                                follow_failed(kube, one.message, 0);
                        return false;
                }
                if (one.pod.resource_version[0] && kube->follow == FOLLOW_WATCH)
                        snprintf(kube->version, sizeof kube->version, "%s", one.pod.resource_version);
                if (one.type == KUBE_DELETED)
                        apply_deleted(kube, &one.pod);
                else if (one.type != KUBE_BOOKMARK)
                        apply_pod(kube, &one.pod);
        }
        return true;
}

static void on_apply(struct timer *timer)
{
        apply_news(timer->owner);
}

static void list_done(struct kube *kube)
{
        kube->list++;
        if (!apply_news(kube))
                return;
        drop_unlisted(kube);
        follow_succeeded(kube);
        kube->has_listed = true;
        kube->must_list = false;
        kube->listed_us = clock_us();
        if (kube->events && kube->events->listed)
                kube->events->listed(kube->owner);
        follow_begin(kube, FOLLOW_WATCH);
}

/* A watch ends regularly.  After a short watch without an event the next watch must wait. */
static void watch_done(struct kube *kube)
{
        bool short_one = clock_us() - kube->begun_us < kube->times.backoff_min_ms * 1000;
        if (!apply_news(kube))
                return;
        if (short_one && !kube->fruitful)
                follow_wait(kube, next_backoff(kube));
        else
                follow_begin(kube, FOLLOW_WATCH);
}

static void follow_refused(struct kube *kube, long status, const char *why)
{
        struct csn_error err;
        json_t *body = kube->refusal.len ? json_loadb(kube->refusal.bytes, kube->refusal.len, 0, NULL) : NULL;
        const char *reason = json_string_value(json_object_get(body, "reason"));
        const char *message = json_string_value(json_object_get(body, "message"));
        struct kube_question question = { .url = kube->api.url,
                .namespace = kube->api.namespace,
                .token_file = kube->settings->token_file,
                .method = "GET",
                .path = "pods" };
        uint64_t after_ms = kube_api_retry_after(kube->fetch.easy);
        enum kube_refusal refusal =
                kube_explain(&question, status, reason ? reason : "", message ? message : why ? why : "", &err);
        json_decref(body);
        if (refusal == KUBE_EXPIRED) {
                follow_relist(kube, err.text);
        } else if (refusal == KUBE_TOKEN_REFUSED && !kube->renewed) {
                kube->renewed = true;
                kube_api_renew_token(&kube->api);
                follow_again(kube);
        } else {
                follow_failed(kube, err.text, after_ms);
        }
}

static void on_followed(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct kube *kube = fetch->owner;
        (void)code;
        if (kube->stream_error.code) {
                kube->must_list = true;
                follow_failed(kube, kube->stream_error.text, 0);
        } else if (status != 200) {
                follow_refused(kube, why ? 0 : status, why);
        } else if (kube->follow == FOLLOW_WATCH) {
                watch_done(kube);
        } else if (why || !kube_stream_is_complete(&kube->stream) || !kube->version[0]) {
                follow_failed(kube, why ? why : "the API server's list of pods is incomplete", 0);
        } else {
                list_done(kube);
        }
}

/* ---- open and close ---- */

int kube_open(struct loop *loop, struct fetcher *fetcher, const struct settings *settings, struct fleet *fleet,
        struct kube **ret, struct csn_error *err)
{
        struct kube *kube = mem_alloc(sizeof *kube);
        kube->times = usual_times;
        if (kube_api_open(&kube->api, loop, fetcher, settings, &kube->times, err) < 0) {
                free(kube);
                return -err->code;
        }
        kube->fleet = fleet;
        kube->settings = &settings->kubernetes;
        kube->news_end = &kube->news;
        kube->must_list = true;
        kube->backoff_ms = kube->times.backoff_min_ms;
        kube->apply = (struct timer){ .fired = on_apply, .owner = kube };
        kube->retry = (struct timer){ .fired = on_retry, .owner = kube };
        kube->silence = (struct timer){ .fired = on_silence, .owner = kube };
        *ret = kube;
        return 0;
}

void kube_listen(struct kube *kube, const struct kube_events *events, void *owner)
{
        kube->events = events;
        kube->owner = owner;
}

void kube_set_times(struct kube *kube, const struct kube_times *times)
{
        kube->times = *times;
        kube->backoff_ms = times->backoff_min_ms;
}

void kube_start(struct kube *kube)
{
        kube->away_us = clock_us();
        snprintf(kube->why, sizeof kube->why, "the API server was not asked yet");
        follow_begin(kube, FOLLOW_LIST);
}

void kube_close(struct kube *kube)
{
        if (!kube)
                return;
        follow_end(kube);
        curl_slist_free_all(kube->headers);
        kube_api_close(&kube->api);
        while (kube->pods) {
                struct kube_pod *next = kube->pods->next;
                free(kube->pods);
                kube->pods = next;
        }
        free(kube);
}

/* ---- questions ---- */

struct kube_pod *kube_first(const struct kube *kube)
{
        return kube->pods;
}

bool kube_has_listed(const struct kube *kube)
{
        return kube->has_listed;
}

bool kube_is_connected(const struct kube *kube, char *ret_why, size_t size)
{
        if (!kube->away_us) {
                snprintf(ret_why, size, "%s", "");
                return true;
        }
        snprintf(ret_why, size, "for %" PRIu64 " s: %s", (clock_us() - kube->away_us) / 1000000, kube->why);
        return false;
}

void kube_ask(struct kube *kube, const char *method, const char *path, json_t *body, kube_answered_fn *answered,
        void *owner)
{
        kube_api_ask(&kube->api, method, path, body, answered, owner);
}

void kube_forget(struct kube *kube, const void *owner)
{
        kube_api_forget(&kube->api, owner);
}
