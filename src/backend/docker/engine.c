/* Calls to the REST API of a Docker or Podman engine; see engine.h. */
#include "backend/docker/engine.h"

#include <inttypes.h>
#include <stdio.h>

#define ANSWER_MAX (16 * MIB)
#define PING_MS 10000L
#define LIST_MS 30000L
#define REMOVE_MS 30000L
#define SENT_MAX 4096        /* removals at once */
#define REPEATED_MAX 10      /* attempts after the first one */
#define REPEAT_US 1000000ULL /* between two attempts */

/* A removal. */
struct sent {
        struct sent *next;
        struct docker_call call;
        char *path;
        bool unsure;                 /* 404 is no end: the container may be in creation */
        unsigned repeated;
        struct timer again;
};

struct docker_engine {
        struct loop *loop;
        const struct docker_settings *settings;
        struct fetcher *fetcher;
        char *identity;
        char *path; /* of a Unix socket, or NULL */
        char *url;  /* "http://127.0.0.1" or "https://HOST:PORT" */
        bool tls;
        char prefix[16];        /* "/v1.41" once agreed, or "" */
        bool cleaned;           /* leftovers of an earlier life are removed: what bears the label is this daemon's */
        struct docker_call ask; /* the version, and leftovers */
        struct docker_wait *waits;
        struct timer told; /* answers the waits once the version is known */
        struct sent *sent;
        size_t sent_n;
};

/* ---- one call ---- */

static size_t on_answer(char *bytes, size_t size, size_t n, void *owner)
{
        struct docker_call *call = owner;
        return buf_add(&call->answer, bytes, size * n) ? size * n : 0;
}

static int unreachable(struct csn_error *err, const struct docker_engine *engine, const char *why)
{
        return err_set(err, CSN_E_SYSTEM, 0,
                "backend_unreachable: the engine at %.200s (docker.host): %.200s; is it running, and may this user use its socket?",
                engine->settings->host, why);
}

static void on_fetched(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct docker_call *call = fetch->owner;
        struct csn_error err;
        (void)code;
        if (why) {
                unreachable(&err, call->engine, why);
                docker_engine_forget(call->engine);
                call->done(call, NULL, &err);
                return;
        }
        json_t *json = call->answer.len ? json_loadb(call->answer.bytes, call->answer.len, JSON_DISABLE_EOF_CHECK, NULL)
                                        : NULL;
        const char *message = json_string_value(json_object_get(json, "message"));
        const struct docker_reply reply = { .status = status, .json = json, .message = message ? message : "" };
        call->done(call, &reply, NULL);
        json_decref(json);
}

static void set_tls(const struct docker_engine *engine, CURL *easy)
{
        static const struct {
                CURLoption option;
                const char *file;
        } files[] = { { CURLOPT_CAINFO, "ca.pem" }, { CURLOPT_SSLCERT, "cert.pem" }, { CURLOPT_SSLKEY, "key.pem" } };
        for (size_t i = 0; engine->settings->cert_path[0] && i < ARRAY_LEN(files); i++) {
                char path[4100];
                snprintf(path, sizeof path, "%s/%s", engine->settings->cert_path, files[i].file);
                curl_easy_setopt(easy, files[i].option, path);
        }
}

static int open_fetch(struct docker_engine *engine, struct fetch *fetch, const char *url, struct csn_error *err)
{
        if (fetch_open(fetch, engine->fetcher, url, "docker.host", "docker.cert_path", err) < 0)
                return -err->code;
        if (engine->path)
                curl_easy_setopt(fetch->easy, CURLOPT_UNIX_SOCKET_PATH, engine->path);
        if (engine->tls)
                set_tls(engine, fetch->easy);
        curl_easy_setopt(fetch->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)engine->settings->connect_timeout);
        return 0;
}

/* Prepare a call, without the start. */
static void prepare(struct docker_engine *engine, struct docker_call *call, const char *method, const char *path,
        json_t *body)
{
        struct csn_error err;
        struct buf url;
        docker_call_stop(call);
        call->engine = engine;
        buf_init(&call->answer, ANSWER_MAX);
        call->body = body ? json_dumps(body, JSON_COMPACT) : NULL;
        json_decref(body);
        buf_init(&url, 64 * KIB);
        buf_printf(&url, "%s%s%s", engine->url, engine->prefix, path);
        if (open_fetch(engine, &call->fetch, url.bytes, &err) < 0)
                log_text(LOG_WARN, "%s", err.text); /* the call fails from the loop */
        buf_done(&url);
        CURL *easy = call->fetch.easy;
        call->headers = curl_slist_append(NULL, "Content-Type: application/json");
        call->headers = curl_slist_append(call->headers, "Expect:");
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
        if (strcmp(method, "POST") == 0) {
                curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body ? call->body : "");
                curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, call->body ? (long)strlen(call->body) : 0L);
        }
}

void docker_call_start(struct docker_engine *engine, struct docker_call *call, const char *method, const char *path,
        json_t *body, long ms)
{
        prepare(engine, call, method, path, body);
        call->fetch.done = on_fetched;
        call->fetch.owner = call;
        fetch_start(&call->fetch, ms);
}

void docker_engine_remove_now(struct docker_engine *engine, const char *name, long ms)
{
        struct docker_call call = { 0 };
        struct buf path;
        long status;
        buf_init(&path, 4 * KIB);
        buf_printf(&path, "/containers/%s?force=1&v=1", name);
        prepare(engine, &call, "DELETE", path.bytes, NULL);
        buf_done(&path);
        fetch_now(&call.fetch, ms, &status);
        docker_call_stop(&call);
}

void docker_call_stop(struct docker_call *call)
{
        fetch_close(&call->fetch);
        curl_slist_free_all(call->headers);
        call->headers = NULL;
        free(call->body);
        call->body = NULL;
        buf_done(&call->answer);
}

static void sent_free(struct sent *sent)
{
        struct docker_engine *engine = sent->call.engine;
        for (struct sent **at = &engine->sent; *at; at = &(*at)->next)
                if (*at == sent) {
                        *at = sent->next;
                        engine->sent_n--;
                        break;
                }
        docker_call_stop(&sent->call);
        loop_untimer(engine->loop, &sent->again);
        free(sent->path);
        free(sent);
}

static void on_sent(struct docker_call *call, const struct docker_reply *reply, const struct csn_error *error)
{
        struct sent *sent = call->owner;
        /* 404: no such container.  409: under removal, or under creation. */
        bool done = !error && (reply->status / 100 == 2 || (reply->status == 404 && !sent->unsure));
        if (!done && sent->repeated++ < REPEATED_MAX) {
                loop_timer(call->engine->loop, &sent->again, REPEAT_US);
                return;
        }
        if (error)
                log_text(LOG_WARN, "%s", error->text);
        else if (!done && reply->status != 404)
                log_text(LOG_WARN, "the engine answers %ld to the removal %s: %.300s", reply->status, sent->path,
                        reply->message);
        sent_free(sent);
}

static void on_again(struct timer *timer)
{
        struct sent *sent = timer->owner;
        docker_call_start(sent->call.engine, &sent->call, "DELETE", sent->path, NULL, REMOVE_MS);
}

void docker_engine_remove(struct docker_engine *engine, const char *name, bool unsure)
{
        if (engine->sent_n == SENT_MAX) {
                log_text(LOG_WARN, "the engine does not answer: the container %.80s is left to the next start", name);
                return;
        }
        struct sent *sent = mem_alloc(sizeof *sent);
        struct buf path;
        buf_init(&path, 4 * KIB);
        buf_printf(&path, "/containers/%s?force=1&v=1", name);
        sent->next = engine->sent;
        engine->sent = sent;
        engine->sent_n++;
        sent->call.done = on_sent;
        sent->call.owner = sent;
        sent->path = mem_copy(path.bytes, path.len);
        sent->unsure = unsure;
        sent->again = (struct timer){ .fired = on_again, .owner = sent };
        docker_call_start(engine, &sent->call, "DELETE", sent->path, NULL, REMOVE_MS);
        buf_done(&path);
}

/* ---- version and leftovers ---- */

/* Is done() still to be called? */
static bool is_on(const struct docker_call *call)
{
        return call->fetch.sending || call->fetch.late.active || call->fetch.lookup;
}

static void tell_waits(struct docker_engine *engine, const struct csn_error *error)
{
        struct docker_wait *wait;
        while ((wait = engine->waits)) {
                engine->waits = wait->next;
                wait->active = false;
                wait->ready(wait->owner, error);
        }
}

/* Versions are MAJOR.MINOR.  Less than, equal to or greater than 0; an unreadable version is older than any. */
static int compare_versions(const char *a, const char *b)
{
        unsigned major[2] = { 0 }, minor[2] = { 0 };
        sscanf(a, "%u.%u", &major[0], &minor[0]);
        sscanf(b, "%u.%u", &major[1], &minor[1]);
        return major[0] != major[1] ? (int)major[0] - (int)major[1] : (int)minor[0] - (int)minor[1];
}

static void on_leftovers(struct docker_call *call, const struct docker_reply *reply, const struct csn_error *error)
{
        struct docker_engine *engine = call->owner;
        const json_t *one;
        size_t i;
        if (error) {
                engine->prefix[0] = 0;
                tell_waits(engine, error);
                return;
        }
        engine->cleaned = reply->status == 200;
        json_array_foreach(reply->json, i, one)
        {
                const char *id = json_string_value(json_object_get(one, "Id"));
                if (!id || strlen(id) > 64 || strspn(id, "0123456789abcdef") != strlen(id))
                        continue;
                docker_engine_remove(engine, id, false);
        }
        tell_waits(engine, NULL);
}

static void on_ping(struct docker_call *call, const struct docker_reply *reply, const struct csn_error *error)
{
        struct docker_engine *engine = call->owner;
        struct csn_error err = { 0 };
        struct curl_header *header;
        const char *theirs = "";
        if (!error && curl_easy_header(call->fetch.easy, "Api-Version", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
                theirs = header->value;
        if (error)
                err = *error;
        else if (reply->status != 200)
                unreachable(&err, engine, reply->message[0] ? reply->message : "it answers no ping");
        else if (compare_versions(theirs, engine->settings->api_min) < 0)
                err_set(&err, CSN_E_UNSUPPORTED, 0,
                        "backend_version: the engine at %.200s has version \"%.16s\" of the API, and at least %.16s "
                        "(docker.api_min) is needed; versions up to " DOCKER_API_MAX " are known",
                        engine->settings->host, theirs, engine->settings->api_min);
        if (err.code) {
                tell_waits(engine, &err);
                return;
        }
        unsigned major = 0, minor = 0;
        sscanf(compare_versions(theirs, DOCKER_API_MAX) < 0 ? theirs : DOCKER_API_MAX, "%u.%u", &major, &minor);
        snprintf(engine->prefix, sizeof engine->prefix, "/v%u.%u", major, minor);
        if (engine->cleaned) {
                tell_waits(engine, NULL);
                return;
        }
        struct buf path;
        char *filter = NULL;
        json_t *filters = json_pack("{s:[o]}", "label", json_sprintf(DOCKER_LABEL "=%s", engine->identity));
        char *text = json_dumps(filters, JSON_COMPACT);
        json_decref(filters);
        filter = curl_easy_escape(NULL, text, 0);
        buf_init(&path, 4 * KIB);
        buf_printf(&path, "/containers/json?all=1&filters=%s", filter);
        curl_free(filter);
        free(text);
        engine->ask.done = on_leftovers;
        docker_call_start(engine, &engine->ask, "GET", path.bytes, NULL, LIST_MS);
        buf_done(&path);
}

static void ask_version(struct docker_engine *engine)
{
        engine->ask.done = on_ping;
        engine->ask.owner = engine;
        docker_call_start(engine, &engine->ask, "GET", "/_ping", NULL, PING_MS);
}

static void on_told(struct timer *timer)
{
        struct docker_engine *engine = timer->owner;
        if (engine->prefix[0] && !is_on(&engine->ask))
                tell_waits(engine, NULL);
        else if (engine->waits && !is_on(&engine->ask))
                ask_version(engine);
}

void docker_engine_wait(struct docker_engine *engine, struct docker_wait *wait)
{
        struct docker_wait **at = &engine->waits;
        while (*at)
                at = &(*at)->next;
        wait->next = NULL;
        wait->active = true;
        *at = wait;
        if (is_on(&engine->ask))
                return;
        if (engine->prefix[0]) {
                loop_timer(engine->loop, &engine->told, 0);
                return;
        }
        ask_version(engine);
}

void docker_engine_unwait(struct docker_engine *engine, struct docker_wait *wait)
{
        for (struct docker_wait **at = &engine->waits; wait->active && *at; at = &(*at)->next)
                if (*at == wait) {
                        *at = wait->next;
                        wait->active = false;
                        return;
                }
}

void docker_engine_forget(struct docker_engine *engine)
{
        if (!is_on(&engine->ask))
                engine->prefix[0] = 0;
}

/* ---- the address ---- */

static int bad_host(struct csn_error *err, const char *host, const char *why)
{
        return err_setting(err, "docker.host", "docker.host is \"%.200s\": %s", host, why);
}

static int read_host(struct docker_engine *engine, struct csn_error *err)
{
        const struct docker_settings *settings = engine->settings;
        const char *host = settings->host, *rest = strstr(host, "://");
        size_t scheme = rest ? (size_t)(rest - host) : 0;
        rest = rest ? rest + 3 : "";
        if (scheme == 4 && strncmp(host, "unix", 4) == 0 && rest[0] == '/' && strlen(rest) < 108) {
                engine->path = mem_copy(rest, strlen(rest));
                engine->url = mem_copy("http://127.0.0.1", strlen("http://127.0.0.1"));
                return 0;
        }
        bool tcp = scheme == 3 && strncmp(host, "tcp", 3) == 0, https = scheme == 5 && strncmp(host, "https", 5) == 0;
        if ((!tcp && !https) || !rest[0])
                return bad_host(err, host, "it has to be unix:///PATH or tcp://HOST:PORT");
        engine->tls = https || settings->tls_verify || settings->cert_path[0];
        if (!engine->tls && !settings->plain_tcp)
                return bad_host(err, host,
                        "tcp without TLS gives root on the engine's host to all who reach the address; set docker.tls_verify "
                        "(DOCKER_TLS_VERIFY) and docker.cert_path, or allow it by docker.plain_tcp");
        if (settings->guest == docker_guest_BIND)
                return bad_host(err, host,
                        "an engine on another host has none of our files; put the folder lang of this installation into the image "
                        "(COPY lang /opt/caisson), and set docker.guest to image");
        struct arena arena = { 0 };
        char *url = arena_text(&arena, "%s://%s", engine->tls ? "https" : "http", rest);
        engine->url = mem_copy(url, strlen(url) - (url[strlen(url) - 1] == '/'));
        arena_done(&arena);
        return fetch_check(engine->url, "docker.host", "docker.cert_path", err);
}

int docker_engine_open(struct loop *loop, const struct docker_settings *settings, const char *identity,
        struct docker_engine **ret, struct csn_error *err)
{
        struct docker_engine *engine = mem_alloc(sizeof *engine);
        *engine = (struct docker_engine){
                .loop = loop, .settings = settings, .told = { .fired = on_told, .owner = engine }
        };
        engine->identity = mem_copy(identity, strlen(identity));
        if (read_host(engine, err) < 0 || fetcher_open(loop, &engine->fetcher, err) < 0) {
                docker_engine_close(engine);
                return -err->code;
        }
        *ret = engine;
        return 0;
}

void docker_engine_close(struct docker_engine *engine)
{
        if (!engine)
                return;
        for (struct sent *sent = engine->sent, *next; sent; sent = next) {
                next = sent->next;
                sent_free(sent);
        }
        docker_call_stop(&engine->ask);
        loop_untimer(engine->loop, &engine->told);
        fetcher_close(engine->fetcher);
        free(engine->identity);
        free(engine->path);
        free(engine->url);
        free(engine);
}

int docker_engine_connect(struct docker_engine *engine, struct fetch *fetch, const char **ret_prefix,
        struct csn_error *err)
{
        *ret_prefix = engine->prefix;
        return open_fetch(engine, fetch, engine->url, err);
}

const char *docker_engine_identity(const struct docker_engine *engine)
{
        return engine->identity;
}

const char *docker_engine_host(const struct docker_engine *engine)
{
        return engine->settings->host;
}
