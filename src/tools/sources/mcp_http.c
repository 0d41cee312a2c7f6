/*
 * MCP over streamable HTTP: each message is a POST, answered with JSON or a stream of events (SSE).
 *
 * A legacy stream that ends before its answer is resumed by GET, with the id of the last event (Last-Event-ID) and
 * after the server's `retry` time.  A legacy session has an id; status 404 means that the session has ended.
 */
#include "tools/sources/mcp.h"
#include "net/sse.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>

#define SESSION_MAX 1024                   /* bytes of a session id with its NUL */
#define RESUMES_MAX 10                     /* without a new event */
#define HEADER_VALUE_MAX 4096
#define CONNECT_MS 15000L

struct http;

/* One HTTP request with its answer. */
struct post {
        struct post *next;
        struct http *http;
        struct waiting *waiting;           /* the MCP request to be answered, or NULL */
        bool listens;                      /* a GET for requests of the server */
        bool over;                         /* to be freed by the clean timer */
        bool ended;                        /* libcurl has reported the end */
        CURLcode code;
        char why[200];
        struct fetch fetch;
        struct curl_slist *headers;
        struct buf input;                  /* received bytes, not yet parsed */
        struct sse sse;
        bool streams, known;               /* the answer is SSE; its headers were read */
        long status;
        unsigned resumes;
        struct timer look;                 /* parses `input`, outside libcurl's callbacks */
        struct timer again;
};

struct http {
        struct mcp *mcp;
        char session[SESSION_MAX];
        struct post *posts;
        struct timer clean;
};

/* ---- headers ---- */

static struct curl_slist *add_header(struct curl_slist *list, const char *name, const char *value)
{
        struct buf line;
        buf_init(&line, HEADER_VALUE_MAX * 3);
        buf_printf(&line, value[0] ? "%s: %s" : "%s;%s", name, value);
        list = curl_slist_append(list, line.bytes ? line.bytes : name);
        buf_done(&line);
        return list;
}

/* A value not allowed in a header is sent as Base64. */
static struct curl_slist *add_encoded(struct curl_slist *list, const char *name, const char *value)
{
        size_t len = strlen(value);
        bool plain = len == 0 ||
                (value[0] != ' ' && value[0] != '\t' && value[len - 1] != ' ' && value[len - 1] != '\t' &&
                        strncmp(value, "=?base64?", 9) != 0);
        for (size_t i = 0; i < len; i++)
                plain = plain && ((value[i] >= ' ' && value[i] < 0x7f) || value[i] == '\t');
        if (len > HEADER_VALUE_MAX)
                return list;
        if (plain)
                return add_header(list, name, value);
        unsigned char coded[HEADER_VALUE_MAX * 2];
        char text[sizeof coded + 20];
        EVP_EncodeBlock(coded, (const unsigned char *)value, (int)len);
        snprintf(text, sizeof text, "=?base64?%s?=", coded);
        return add_header(list, name, text);
}

static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* Names of headers already used are put into `seen` in lower case. */
static const char *check_mark(json_t *property, json_t *seen)
{
        json_t *mark = json_object_get(property, "x-mcp-header");
        const char *name = json_string_value(mark), *type = json_string_value(json_object_get(property, "type"));
        char lower[100] = "";
        if (!mark)
                return NULL;
        if (!name || !name[0] || strlen(name) >= sizeof lower || strlen(name) != json_string_length(mark) ||
                name[strspn(name, token)])
                return "x-mcp-header has to be the name of a header";
        if (!type || (strcmp(type, "string") != 0 && strcmp(type, "integer") != 0 && strcmp(type, "boolean") != 0))
                return "x-mcp-header is for arguments that are a string, an integer or a boolean";
        for (size_t i = 0; name[i]; i++)
                lower[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] + 'a' - 'A') : name[i];
        if (json_object_get(seen, lower))
                return "x-mcp-header has one name twice";
        json_object_set_new(seen, lower, json_true());
        return NULL;
}

/* `plain`: only "properties" lead here, so the arguments have a value at the same path. */
static const char *check_marks(json_t *schema, bool plain, unsigned depth, json_t *seen)
{
        const char *key, *name, *why = NULL;
        json_t *value, *property;
        size_t i;
        if (json_is_array(schema))
                json_array_foreach(schema, i, value) {
                        why = why ? why : check_marks(value, false, depth + 1, seen);
                }
        if (json_is_object(schema) && !plain && json_object_get(schema, "x-mcp-header"))
                return "x-mcp-header is where no argument is found";
        json_object_foreach(schema, key, value) {
                if (why || depth > RPC_DEPTH_MAX)
                        break;
                if (strcmp(key, "properties") != 0) {
                        why = check_marks(value, false, depth + 1, seen);
                        continue;
                }
                json_object_foreach(value, name, property) {
                        if (!why && plain)
                                why = check_mark(property, seen);
                        why = why ? why : check_marks(property, plain, depth + 1, seen);
                }
        }
        return why;
}

static const char *http_refuses(const struct mcp *mcp, json_t *schema)
{
        if (mcp->era != MCP_MODERN)
                return NULL;
        json_t *seen = json_object();
        const char *why = check_marks(schema, true, 0, seen);
        json_decref(seen);
        return why;
}

/* Arguments repeated in headers: "x-mcp-header" of a property, at any depth of properties. */
static struct curl_slist *add_marked(struct curl_slist *list, json_t *schema, json_t *arguments, unsigned depth)
{
        json_t *properties = json_object_get(schema, "properties"), *property;
        const char *name;
        if (depth > 8 || !json_is_object(arguments))
                return list;
        json_object_foreach(properties, name, property) {
                const char *mark = json_string_value(json_object_get(property, "x-mcp-header"));
                json_t *value = json_object_get(arguments, name);
                char header[200], number[32];
                const char *text = json_is_string(value) ? json_string_value(value)
                        : json_is_true(value)            ? "true"
                        : json_is_false(value)           ? "false"
                                                         : NULL;
                if (json_is_integer(value)) {
                        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                        text = number;
                }
                if (mark && text && mark[0] && strlen(mark) < 100 && !mark[strspn(mark, token)]) {
                        snprintf(header, sizeof header, "Mcp-Param-%s", mark);
                        list = add_encoded(list, header, text);
                }
                list = add_marked(list, property, value, depth + 1);
        }
        return list;
}

static json_t *schema_of(const struct mcp *mcp, const char *name)
{
        for (size_t i = 0; i < mcp->tools_n; i++)
                if (strcmp(mcp->tools[i].name, name) == 0)
                        return mcp->tools[i].input_schema;
        return NULL;
}

static struct curl_slist *headers_of(const struct http *http, json_t *message, bool get)
{
        const struct mcp *mcp = http->mcp;
        const struct server *server = mcp->server;
        const char *method = json_string_value(json_object_get(message, "method"));
        json_t *params = json_object_get(message, "params");
        struct curl_slist *list = curl_slist_append(NULL,
                get ? "Accept: text/event-stream" : "Accept: application/json, text/event-stream");
        list = curl_slist_append(list, "Expect:");
        if (!get)
                list = curl_slist_append(list, "Content-Type: application/json");
        for (size_t i = 0; i < server->headers.n; i++) {
                const char *given = server->headers.texts[i], *value = strstr(given, ": ");
                /* libcurl writes a header without a value as "NAME;". */
                char *name = value && !value[2] ? mem_copy(given, (size_t)(value - given)) : NULL;
                list = name ? add_header(list, name, "") : curl_slist_append(list, given);
                free(name);
        }
        if (mcp->era != MCP_LEGACY) {
                const char *tool = json_string_value(json_object_get(params, "name"));
                list = add_header(list, "MCP-Protocol-Version", MCP_VERSION);
                if (method)
                        list = add_header(list, "Mcp-Method", method);
                if (method && tool && strcmp(method, "tools/call") == 0) {
                        list = add_encoded(list, "Mcp-Name", tool);
                        list = add_marked(list, schema_of(mcp, tool), json_object_get(params, "arguments"), 0);
                }
                return list;
        }
        if (mcp->version[0])
                list = add_header(list, "MCP-Protocol-Version", mcp->version);
        return http->session[0] ? add_header(list, "Mcp-Session-Id", http->session) : list;
}

/* ---- the life of a post ---- */

static void on_clean(struct timer *timer)
{
        struct http *http = timer->owner;
        for (struct post **at = &http->posts, *post; (post = *at);) {
                if (!post->over) {
                        at = &post->next;
                        continue;
                }
                *at = post->next;
                fetch_close(&post->fetch);
                loop_untimer(http->mcp->loop, &post->look);
                loop_untimer(http->mcp->loop, &post->again);
                curl_slist_free_all(post->headers);
                buf_done(&post->input);
                sse_done(&post->sse);
                free(post);
        }
}

/* A caller may still use the post, so the clean timer frees it; until then it does nothing. */
static void end_post(struct post *post)
{
        if (post->waiting)
                post->waiting->post = NULL;
        post->waiting = NULL;
        post->over = true;
        loop_timer(post->http->mcp->loop, &post->http->clean, 0);
}

static void give_up(struct post *post, const char *why)
{
        struct waiting *waiting = post->waiting;
        struct mcp *mcp = post->http->mcp;
        end_post(post);
        if (waiting)
                mcp_unanswered(mcp, waiting, why);
}

static int begin(struct post *post, json_t *message, struct csn_error *err);

/* Resume the stream by GET after its last event. */
static void on_post_again(struct timer *timer)
{
        struct post *post = timer->owner;
        struct csn_error err;
        post->input.len = 0;
        sse_reset(&post->sse);
        post->known = post->streams = post->ended = false;
        post->status = 0;
        curl_slist_free_all(post->headers);
        post->headers = NULL;
        fetch_close(&post->fetch);
        if (begin(post, NULL, &err) < 0)
                give_up(post, err.text);
}

static bool may_resume(const struct post *post)
{
        return post->streams && post->http->mcp->era == MCP_LEGACY && post->resumes < RESUMES_MAX &&
                (post->listens || (post->waiting && post->sse.id[0]));
}

static void resume(struct post *post)
{
        uint64_t wait_ms = min_u64(post->sse.retry_ms << post->resumes++, SSE_RETRY_MS_MAX);
        loop_timer(post->http->mcp->loop, &post->again, wait_ms * 1000);
}

/* ---- answers ---- */

static void message(struct post *post, const char *text, size_t len)
{
        if (len && !mcp_message(post->http->mcp, text, len) && !post->over)
                give_up(post, "it answers with what is no message of the protocol");
}

static bool take_message(void *owner, const char *text, size_t len)
{
        struct post *post = owner;
        message(post, text, len);
        return !post->over;
}

/* Bytes appended to `input` during the call stay, behind the parsed bytes. */
static void take_events(struct post *post)
{
        struct csn_error err;
        uint64_t events = post->sse.events;
        size_t len = post->input.len;
        int rc = len ? sse_take(&post->sse, post->input.bytes, len, take_message, post, &err) : 0;
        if (post->over)
                return;
        if (post->sse.events > events)
                post->resumes = 0;
        post->input.len -= len;
        memmove(post->input.bytes, post->input.bytes + len, post->input.len);
        if (rc < 0)
                give_up(post, err.text);
}

static const char *header(const struct post *post, const char *name)
{
        struct curl_header *found = NULL;
        return curl_easy_header(post->fetch.easy, name, 0, CURLH_HEADER, -1, &found) == CURLHE_OK ? found->value : "";
}

static void learn(struct post *post)
{
        struct http *http = post->http;
        const char *session = header(post, "Mcp-Session-Id");
        curl_easy_getinfo(post->fetch.easy, CURLINFO_RESPONSE_CODE, &post->status);
        post->known = true;
        post->streams = post->status == 200 && strncasecmp(header(post, "Content-Type"), "text/event-stream", 17) == 0;
        if (!session[0] || strlen(session) >= sizeof http->session || !post->waiting ||
                strcmp(post->waiting->method, "initialize") != 0)
                return;
        for (const char *c = session; *c; c++)
                if (*c < 0x21 || *c > 0x7e)
                        return;
        snprintf(http->session, sizeof http->session, "%s", session);
}

/* The HTTP request has ended without an answer. */
static void conclude(struct post *post)
{
        struct http *http = post->http;
        struct mcp *mcp = http->mcp;
        struct waiting *waiting = post->waiting;
        char why[260];
        if (may_resume(post) &&
                (post->code == CURLE_OK || post->code == CURLE_PARTIAL_FILE || post->code == CURLE_RECV_ERROR)) {
                resume(post);
        } else if (post->listens || !waiting) {
                /*
                 * No request waits.  A server need not offer the listening stream, and answers a notification with 202.
                 */
                end_post(post);
        } else if (post->code != CURLE_OK) {
                snprintf(why, sizeof why, "it cannot be reached: %s", post->why);
                give_up(post, why);
        } else if (post->status == 404 && http->session[0]) {
                http->session[0] = 0;
                end_post(post);
                mcp_renew(mcp, waiting);
        } else {
                snprintf(why, sizeof why,
                        post->status / 100 == 2 ? "it ended its answer before it was whole (HTTP %ld)"
                                                : "it answers with HTTP status %ld",
                        post->status);
                give_up(post, why);
        }
}

static void on_look(struct timer *timer)
{
        struct post *post = timer->owner;
        if (post->over)
                return;
        if (post->streams)
                take_events(post);
        else if (post->ended && post->status != 404 && post->input.len)
                /* With an error status the body may still be the answer to the request. */
                (void)(post->status / 100 == 2
                                ? message(post, post->input.bytes, post->input.len)
                                : (void)mcp_message(post->http->mcp, post->input.bytes, post->input.len));
        if (post->ended && !post->over)
                conclude(post);
}

static size_t on_bytes(char *bytes, size_t size, size_t n, void *owner)
{
        struct post *post = owner;
        if (!post->known)
                learn(post);
        if (!buf_add(&post->input, bytes, size * n))
                return 0;
        if (post->streams && !post->look.active)
                loop_timer(post->http->mcp->loop, &post->look, 0);
        return size * n;
}

static void on_done(struct fetch *fetch, long status, const char *why, CURLcode code)
{
        struct post *post = fetch->owner;
        (void)status;
        if (post->over)
                return;
        if (!post->known && code == CURLE_OK)
                learn(post);
        post->ended = true;
        post->code = code;
        snprintf(post->why, sizeof post->why, "%s",
                code == CURLE_WRITE_ERROR ? "its answer is too long"
                        : why             ? why
                                          : "");
        on_look(&post->look);
}

/* ---- requests ---- */

/* message NULL: a GET. */
static int begin(struct post *post, json_t *message, struct csn_error *err)
{
        const struct mcp *mcp = post->http->mcp;
        post->fetch = (struct fetch){ .done = on_done, .owner = post };
        if (fetch_open(&post->fetch, mcp->sources->fetcher, mcp->server->url, mcp->server->where, "headers", err) < 0)
                return -err->code;
        CURL *easy = post->fetch.easy;
        post->headers = headers_of(post->http, message, !message);
        if (!message && post->sse.id[0])
                post->headers = add_header(post->headers, "Last-Event-ID", post->sse.id);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_bytes);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
        curl_easy_setopt(easy, CURLOPT_ACCEPT_ENCODING, NULL);
        if (message) {
                size_t len;
                char *text = rpc_line(json_incref(message), &len);
                if (!text)
                        return err_set(err, CSN_E_INPUT, 0, "the arguments cannot be written as JSON");
                curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
                curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, text);
                free(text);
        }
        fetch_start(&post->fetch, 0);
        return 0;
}

static struct post *new_post(struct http *http, struct waiting *waiting)
{
        struct post *post = mem_alloc(sizeof *post);
        *post = (struct post){ .next = http->posts, .http = http, .waiting = waiting };
        post->look = (struct timer){ .fired = on_look, .owner = post };
        post->again = (struct timer){ .fired = on_post_again, .owner = post };
        buf_init(&post->input, MCP_MESSAGE_MAX);
        sse_init(&post->sse, MCP_MESSAGE_MAX);
        http->posts = post;
        if (waiting)
                waiting->post = post;
        return post;
}

static int http_send(struct mcp *mcp, json_t *message, struct waiting *waiting, struct csn_error *err)
{
        struct post *post = new_post(mcp->way, waiting);
        int rc = begin(post, message, err);
        json_decref(message);
        if (rc < 0)
                end_post(post);
        return rc;
}

static void http_listen(struct mcp *mcp)
{
        struct csn_error err;
        struct post *post = new_post(mcp->way, NULL);
        post->listens = true;
        if (begin(post, NULL, &err) < 0)
                end_post(post);
}

/* Modern era: the end of its stream cancels the request.  Legacy era: a closed stream cancels nothing. */
static bool http_forget(struct mcp *mcp, struct waiting *waiting)
{
        struct post *post = waiting->post;
        if (post)
                end_post(post);
        waiting->post = NULL;
        return mcp->era != MCP_LEGACY;
}

static int http_open(struct mcp *mcp, struct csn_error *err)
{
        struct http *http = mcp->way;
        struct sources *sources = mcp->sources;
        if (!sources->fetcher && fetcher_open(sources->loop, &sources->fetcher, err) < 0)
                return -err->code;
        if (!http) {
                mcp->way = http = mem_alloc(sizeof *http);
                *http = (struct http){ .mcp = mcp, .clean = { .fired = on_clean, .owner = http } };
        }
        http->session[0] = 0;
        return 0;
}

static void http_shut(struct mcp *mcp)
{
        struct http *http = mcp->way;
        for (struct post *post = http ? http->posts : NULL; post; post = post->next)
                end_post(post);
        if (http)
                http->session[0] = 0;
}

static void http_done(struct mcp *mcp)
{
        struct http *http = mcp->way;
        if (!http)
                return;
        on_clean(&http->clean);
        loop_untimer(mcp->loop, &http->clean);
        free(http);
        mcp->way = NULL;
}

const struct mcp_transport mcp_http = { .open = http_open,
        .send = http_send,
        .forget = http_forget,
        .listen = http_listen,
        .refuses = http_refuses,
        .shut = http_shut,
        .done = http_done };
