/* Spans to a collector; see otlp.h. */
#include "front/service/otlp.h"

#include "config.h"
#include "net/http_client.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#define SEND_MS 10000L                     /* of an attempt; OTEL_EXPORTER_OTLP_TIMEOUT's default */
#define RETRY_US_MAX 30000000ULL
#define BATCH_BYTES_MAX (16 * MIB)
#define ANSWER_MAX (64 * KIB)
#define ATTRIBUTE_MAX 1000                 /* bytes of a text */
#define LOOK_US 20                         /* largest distance of the two clocks' readings */
#define LOOKS_MAX 10

struct queued {
        struct queued *next;
        char *text;                        /* the span as JSON */
};

struct otlp {
        struct loop *loop;
        char *url;
        char *head;                        /* of a request's body, up to the first span */
        struct curl_slist *headers;
        struct fetcher *fetcher;
        struct fetch fetch;
        struct timer due;                  /* the next batch, or the next attempt */
        struct queued *first, **end;
        size_t waiting;
        struct buf body, answer;
        size_t batch;                      /* spans in body; 0: nothing is under way */
        unsigned tries;
        uint64_t sent, dropped;
};

/* ---- a span as JSON ---- */

static json_t *value_of(json_t *json)
{
        char number[24];
        if (json_is_string(json))
                return json_pack("{s:O}", "stringValue", json);
        if (json_is_boolean(json))
                return json_pack("{s:O}", "boolValue", json);
        if (json_is_real(json))
                return json_pack("{s:O}", "doubleValue", json);
        /* JSON of protobuf has 64-bit numbers as texts. */
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        return json_pack("{s:s}", "intValue", number);
}

static json_t *attributes_of(json_t *object)
{
        json_t *list = json_array(), *value;
        const char *key;
        json_object_foreach(object, key, value) {
                json_array_append_new(list, json_pack("{s:s, s:o}", "key", key, "value", value_of(value)));
        }
        return list;
}

/* Nanoseconds since 1970. */
static json_t *moment(uint64_t us, uint64_t clock_began_us)
{
        char text[32];
        snprintf(text, sizeof text, "%" PRIu64, (clock_began_us + us) * 1000);
        return json_string(text);
}

/*
 * When our clock began, in microseconds since 1970.  After an interruption between two readings both clocks are read
 * again, or spans of a trace would not fit.
 */
static uint64_t clock_began_us(void)
{
        struct timespec now;
        uint64_t before_us;
        int looks = 0;
        do {
                before_us = clock_us();
                clock_gettime(CLOCK_REALTIME, &now);
        } while (clock_us() - before_us > LOOK_US && ++looks < LOOKS_MAX);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000 - before_us;
}

static json_t *span_of(const struct span *span)
{
        const uint64_t began_us = clock_began_us();
        json_t *json = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:o}", "traceId", span->trace->id, "spanId",
                span->trace->span, "name", span->name, "kind", (int)span->kind, "startTimeUnixNano",
                moment(span->begun_us, began_us), "endTimeUnixNano", moment(span->ended_us, began_us), "attributes",
                attributes_of(span->attributes));
        if (span->trace->parent[0])
                json_object_set_new(json, "parentSpanId", json_string(span->trace->parent));
        if (span->error)
                json_object_set_new(json, "status", json_pack("{s:i, s:s}", "code", 2, "message", span->error));
        return json;
}

/* ---- batches ---- */

static void drop_batch(struct otlp *otlp)
{
        otlp->dropped += otlp->batch;
        otlp->batch = 0;
}

static void plan(struct otlp *otlp)
{
        if (otlp->batch || !otlp->waiting)
                return;
        if (otlp->waiting >= OTLP_BATCH_MAX)
                loop_timer(otlp->loop, &otlp->due, 0);
        else if (!otlp->due.active)
                loop_timer(otlp->loop, &otlp->due, OTLP_DELAY_US);
}

static void take_batch(struct otlp *otlp)
{
        otlp->body.len = 0;
        otlp->tries = 0;
        buf_printf(&otlp->body, "%s", otlp->head);
        while (otlp->first && otlp->batch < OTLP_BATCH_MAX) {
                struct queued *one = otlp->first;
                size_t len = strlen(one->text);
                /* Room for the end as well. */
                if (otlp->body.len + len + 8 > otlp->body.max)
                        break;
                buf_printf(&otlp->body, "%s", otlp->batch ? "," : "");
                buf_add(&otlp->body, one->text, len);
                otlp->batch++;
                otlp->waiting--;
                otlp->first = one->next;
                free(one->text);
                free(one);
        }
        if (!otlp->first)
                otlp->end = &otlp->first;
        buf_printf(&otlp->body, "]}]}]}");
}

void otlp_add(struct otlp *otlp, const struct span *span)
{
        json_t *attributes = span->attributes;
        if (!otlp || otlp->waiting >= OTLP_QUEUE_MAX) {
                if (otlp)
                        otlp->dropped++;
                json_decref(attributes);
                return;
        }
        json_t *json = span_of(span);
        json_decref(attributes);
        char *text = json_dumps(json, JSON_COMPACT);
        json_decref(json);
        if (!text) {
                otlp->dropped++;
                return;
        }
        struct queued *one = mem_alloc(sizeof *one);
        one->text = text;
        *otlp->end = one;
        otlp->end = &one->next;
        otlp->waiting++;
        plan(otlp);
}

struct otlp_counts otlp_counts(const struct otlp *otlp)
{
        return otlp ? (struct otlp_counts){ otlp->sent, otlp->dropped, otlp->waiting + otlp->batch }
                    : (struct otlp_counts){ 0 };
}

/* ---- results of batches ---- */

/* A collector may take some spans of a request and refuse others. */
static uint64_t rejected(const struct otlp *otlp)
{
        json_t *json = otlp->answer.len ? json_loadb(otlp->answer.bytes, otlp->answer.len, 0, NULL) : NULL;
        const json_t *number = json_object_get(json_object_get(json, "partialSuccess"), "rejectedSpans");
        uint64_t n = json_is_string(number) ? strtoull(json_string_value(number), NULL, 10)
                                            : (uint64_t)json_integer_value(number);
        json_decref(json);
        return min_u64(n, otlp->batch);
}

/* Retryable, by the specification. */
static bool may_go_again(CURLcode code, long status)
{
        if (code != CURLE_OK)
                return code != CURLE_PEER_FAILED_VERIFICATION && code != CURLE_SSL_CACERT_BADFILE;
        return status == 429 || status == 502 || status == 503 || status == 504;
}

static void try_later(struct otlp *otlp)
{
        curl_off_t wanted_s = 0;
        uint64_t wait_us = OTLP_DELAY_US << otlp->tries++;
        curl_easy_getinfo(otlp->fetch.easy, CURLINFO_RETRY_AFTER, &wanted_s);
        wait_us = max_u64(wait_us, (uint64_t)min_u64((uint64_t)wanted_s, RETRY_US_MAX / 1000000) * 1000000);
        loop_timer(otlp->loop, &otlp->due, min_u64(wait_us, RETRY_US_MAX));
}

static void failed(struct otlp *otlp, const char *why, bool again)
{
        if (again && otlp->tries + 1 < OTLP_TRIES_MAX) {
                log_text(LOG_DEBUG, "the collector %s:%u: %s; once more", otlp->fetch.host, otlp->fetch.port, why);
                try_later(otlp);
                return;
        }
        log_text(LOG_WARN, "the collector %s:%u does not take %zu spans, which are dropped: %s", otlp->fetch.host,
                otlp->fetch.port, otlp->batch, why);
        drop_batch(otlp);
        plan(otlp);
}

static void succeeded(struct otlp *otlp)
{
        uint64_t refused = rejected(otlp);
        if (refused)
                log_text(LOG_WARN, "the collector %s:%u refuses %" PRIu64 " spans", otlp->fetch.host, otlp->fetch.port,
                        refused);
        otlp->sent += otlp->batch - refused;
        otlp->dropped += refused;
        otlp->batch = 0;
        plan(otlp);
}

static void over(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct otlp *otlp = fetch->owner;
        char text[60];
        if (!why && status / 100 == 2) {
                succeeded(otlp);
                return;
        }
        snprintf(text, sizeof text, "it answers %ld", status);
        failed(otlp, why ? why : text, may_go_again(code, status));
}

static size_t on_answer(char *bytes, size_t size, size_t n, void *owner)
{
        struct otlp *otlp = owner;
        /* The rest of a longer answer is read and dropped. */
        buf_add(&otlp->answer, bytes, size * n);
        return size * n;
}

/* ---- an attempt ---- */

static void prepare(struct otlp *otlp)
{
        otlp->answer.len = 0;
        curl_easy_setopt(otlp->fetch.easy, CURLOPT_POSTFIELDS, otlp->body.bytes);
        curl_easy_setopt(otlp->fetch.easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)otlp->body.len);
}

static void on_due(struct timer *timer)
{
        struct otlp *otlp = timer->owner;
        if (!otlp->batch)
                take_batch(otlp);
        prepare(otlp);
        fetch_start(&otlp->fetch, SEND_MS);
}

/* ---- the settings ---- */

static const char *key_of(const struct settings *settings)
{
        return settings->engine.otlp_traces_endpoint[0] ? "engine.otlp_traces_endpoint" : "engine.otlp_endpoint";
}

static int hex(char c)
{
        return isdigit((unsigned char)c)     ? c - '0'
                : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                             : -1;
}

/* Decode percent signs, in place.  False: a percent sign or a byte is not allowed in a header. */
static bool decode(char *text)
{
        char *to = text;
        for (const char *at = text; *at; at++) {
                bool coded = *at == '%';
                int high = coded ? hex(at[1]) : 0, low = coded && high >= 0 ? hex(at[2]) : 0;
                if (coded && (high < 0 || low < 0))
                        return false;
                *to = coded ? (char)(high * 16 + low) : *at;
                if ((unsigned char)*to < ' ' || *to == 0x7f)
                        return false;
                to++;
                at += coded ? 2 : 0;
        }
        *to = 0;
        return true;
}

static char *trim(char *text)
{
        text += strspn(text, " \t");
        for (size_t len = strlen(text); len && strchr(" \t", text[len - 1]);)
                text[--len] = 0;
        return text;
}

/*
 * "NAME=VALUE,NAME=VALUE", as in OTEL_EXPORTER_OTLP_HEADERS.  The value may be secret, and is never part of an error.
 */
static int add_headers(struct otlp *otlp, const char *given, struct csn_error *err)
{
        static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        struct arena arena = { 0 };
        char *rest = arena_text(&arena, "%s", given);
        int rc = 0;
        otlp->headers = curl_slist_append(NULL, "Content-Type: application/json");
        otlp->headers = curl_slist_append(otlp->headers, "Expect:");
        for (size_t n = 1; rc == 0 && rest; n++) {
                char *one = trim(strsep(&rest, ",")), *value = strchr(one, '=');
                if (!one[0])
                        continue;
                if (value)
                        *value++ = 0;
                char *name = trim(one);
                value = value ? trim(value) : NULL;
                if (!value || !name[0] || name[strspn(name, token)] || !decode(value))
                        rc = err_set(err, CSN_E_CONFIG, 0,
                                "engine.otlp_headers: entry %zu is not NAME=VALUE, where NAME is that of a header and VALUE is "
                                "percent-encoded",
                                n);
                else
                        otlp->headers = curl_slist_append(otlp->headers,
                                arena_text(&arena, value[0] ? "%s: %s" : "%s;%s", name, value));
        }
        arena_done(&arena);
        return rc;
}

static char *make_head(const char *service)
{
        struct arena arena = { 0 };
        size_t len;
        json_t *resource =
                json_pack("{s:s, s:s, s:i}", "service.name", model_utf8(&arena, service, strlen(service), &len),
                        "service.version", VERSION, "process.pid", (int)getpid());
        json_t *attributes = attributes_of(resource);
        char *text = json_dumps(attributes, JSON_COMPACT), *head;
        arena_done(&arena);
        json_decref(resource);
        json_decref(attributes);
        head = arena_text(&arena,
                "{\"resourceSpans\":[{\"resource\":{\"attributes\":%s},\"scopeSpans\":[{\"scope\":{\"name\":\"caisson\",\"version\":\"%s\"},"
                "\"spans\":[",
                text ? text : "[]", VERSION);
        head = mem_copy(head, strlen(head));
        free(text);
        arena_done(&arena);
        return head;
}

static int open_fetch(struct otlp *otlp, const char *key, struct csn_error *err)
{
        if (fetcher_open(otlp->loop, &otlp->fetcher, err) < 0 ||
                fetch_open(&otlp->fetch, otlp->fetcher, otlp->url, key, "engine.otlp_headers", err) < 0)
                return -err->code;
        otlp->fetch.done = over;
        otlp->fetch.owner = otlp;
        curl_easy_setopt(otlp->fetch.easy, CURLOPT_HTTPHEADER, otlp->headers);
        curl_easy_setopt(otlp->fetch.easy, CURLOPT_WRITEFUNCTION, on_answer);
        curl_easy_setopt(otlp->fetch.easy, CURLOPT_WRITEDATA, otlp);
        return 0;
}

int otlp_open(struct loop *loop, const struct settings *settings, struct otlp **ret, struct csn_error *err)
{
        const struct engine_settings *engine = &settings->engine;
        const char *whole = engine->otlp_traces_endpoint, *base = engine->otlp_endpoint;
        *ret = NULL;
        if (engine->otlp_disabled || (!whole[0] && !base[0]))
                return 0;
        struct otlp *otlp = mem_alloc(sizeof *otlp);
        struct arena arena = { 0 };
        size_t len = strlen(base);
        *otlp = (struct otlp){ .loop = loop, .due = { .fired = on_due, .owner = otlp } };
        otlp->end = &otlp->first;
        buf_init(&otlp->body, BATCH_BYTES_MAX);
        buf_init(&otlp->answer, ANSWER_MAX);
        while (len && base[len - 1] == '/')
                len--;
        const char *url = whole[0] ? whole : arena_text(&arena, "%.*s/v1/traces", (int)len, base);
        otlp->url = mem_copy(url, strlen(url));
        arena_done(&arena);
        otlp->head = make_head(engine->otlp_service);
        if (add_headers(otlp, engine->otlp_headers, err) < 0 || open_fetch(otlp, key_of(settings), err) < 0) {
                otlp_close(otlp);
                return -err->code;
        }
        *ret = otlp;
        return 0;
}

/* ---- the end ---- */

/* Nothing else is to be done any more, so this may wait.  A name never resolved is not resolved now. */
static void send_rest(struct otlp *otlp)
{
        uint64_t end_ms = clock_ms() + OTLP_END_MS;
        fetch_stop(&otlp->fetch);
        while (otlp->batch || otlp->waiting) {
                uint64_t now_ms = clock_ms();
                long status;
                if (now_ms >= end_ms)
                        break;
                if (!otlp->batch)
                        take_batch(otlp);
                prepare(otlp);
                if (!fetch_now(&otlp->fetch, (long)(end_ms - now_ms), &status) || status / 100 != 2)
                        break;
                otlp->batch = 0;
        }
        if (otlp->batch + otlp->waiting)
                log_text(LOG_WARN, "%zu spans could not be sent before the end", otlp->batch + otlp->waiting);
}

void otlp_close(struct otlp *otlp)
{
        if (!otlp)
                return;
        loop_untimer(otlp->loop, &otlp->due);
        if (otlp->fetch.easy)
                send_rest(otlp);
        fetch_close(&otlp->fetch);
        fetcher_close(otlp->fetcher);
        while (otlp->first) {
                struct queued *next = otlp->first->next;
                free(otlp->first->text);
                free(otlp->first);
                otlp->first = next;
        }
        curl_slist_free_all(otlp->headers);
        buf_done(&otlp->body);
        buf_done(&otlp->answer);
        free(otlp->url);
        free(otlp->head);
        free(otlp);
}
