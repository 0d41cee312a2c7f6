/*
 * Streams of events: output cut anywhere, displays of any size, readers that begin at any number, read as much as they
 * like and go when they like.  Bytes are a script (see play()).
 *
 * Whatever happens, a line is one JSON document, numbers ascend, what is missing is told and counted, and who has
 * missed nothing has every byte of the output.  HTTP is not there: its functions are below.
 */
#include "front/service/service.h"

#include <openssl/evp.h>
#include <stdio.h>

#define READERS_MAX 4
#define SCALE 256                          /* all that is large is so much smaller here, and found sooner */
#define KEPT_MAX (EVENTS_MAX / SCALE)
#define QUEUE_MAX (HTTP_STREAM_MAX / SCALE)
#define OUTPUT_MAX (8 * KEPT_MAX)          /* of one script, so that it has an end soon */
#define PIECE_MAX 2000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct client {
        struct http_request request;
        bool open, ndjson, follows, lost, ended;
        uint64_t after;                    /* the last event it has, or knows of */
        size_t queued;
        struct buf output[3];
};

static struct service service;
static struct client clients[READERS_MAX];

static void require(bool condition)
{
        if (!condition)
                abort();
}

static struct events events;
static struct buf written[3];              /* all that was given to events_output() */

/* ---- what http.c and api.c would do ---- */

static struct client *client_of(const struct http_request *request)
{
        return (struct client *)((char *)(uintptr_t)request - offsetof(struct client, request));
}

struct service *service_of(const struct http_request *request)
{
        (void)request;
        return &service;
}

const char *http_query(const struct http_request *request, const char *name)
{
        require(strcmp(name, "follow") == 0);
        return client_of(request)->follows ? NULL : "false";
}

bool http_accepts(const struct http_request *request, const char *type)
{
        require(strcmp(type, "application/x-ndjson") == 0);
        return client_of(request)->ndjson;
}

void http_stream(struct http_request *request, unsigned status, const char *type)
{
        require(status == MHD_HTTP_OK && (strcmp(type, "application/x-ndjson") == 0) == client_of(request)->ndjson);
}

size_t http_queued(const struct http_request *request)
{
        return client_of(request)->queued * SCALE;
}

bool http_has_room(struct http_request *request)
{
        return client_of(request)->queued < QUEUE_MAX / 2;
}

int http_charge(struct http_request *request, enum share share, uint64_t amount, struct csn_error *err)
{
        (void)request, (void)share, (void)amount, (void)err;
        return 0;
}

void http_answer_excess(struct http_request *request, const struct csn_error *err)
{
        (void)request, (void)err;
        require(false);
}

static void client_close(struct client *client)
{
        client->open = false;
        for (int stream = 1; stream <= 2; stream++)
                buf_done(&client->output[stream]);
}

/* Who has missed nothing has it all. */
static void compare(const struct client *client)
{
        for (int stream = 1; stream <= 2 && !client->lost; stream++)
                require(client->output[stream].len == written[stream].len &&
                        (!written[stream].len ||
                                memcmp(client->output[stream].bytes, written[stream].bytes, written[stream].len) == 0));
}

void http_end(struct http_request *request)
{
        struct client *client = client_of(request);
        require(client->open && client->after + 1 == events.next_id && (client->ended || !client->follows));
        if (client->ended)
                compare(client);
        client_close(client);
}

void http_cut(struct http_request *request)
{
        require(client_of(request)->open);
        client_close(client_of(request));
}

/* ---- what a client makes of it ---- */

static void take_output(struct client *client, int stream, const json_t *line)
{
        const json_t *base64 = json_object_get(line, "base64"), *text = json_object_get(line, "text");
        require(text && utf8_valid(json_string_value(text), json_string_length(text)));
        if (!base64) {
                buf_add(&client->output[stream], json_string_value(text), json_string_length(text));
                return;
        }
        const char *digits = json_string_value(base64);
        size_t digits_n = json_string_length(base64);
        unsigned char *bytes = mem_alloc(digits_n);
        int len = EVP_DecodeBlock(bytes, (const unsigned char *)digits, (int)digits_n);
        for (size_t i = digits_n; i > 0 && digits[i - 1] == '='; i--)
                len--;
        require(len > 0 && !utf8_valid((const char *)bytes, (size_t)len));
        buf_add(&client->output[stream], bytes, (size_t)len);
        free(bytes);
}

static void take_event(struct client *client, uint64_t id, const char *type, const json_t *line)
{
        if (strcmp(type, "lost") == 0) {
                uint64_t n = (uint64_t)json_integer_value(json_object_get(line, "events"));
                client->lost = true;
                require(n);
                client->after += id ? n - 1 : n;     /* one that was never kept has a number itself */
        }
        if (id)
                require(id == ++client->after);
        else if (client->ndjson && strcmp(type, "lost") != 0)
                client->after++;
        require(client->after < events.next_id && !client->ended);
        if (strcmp(type, "stdout") == 0 || strcmp(type, "stderr") == 0)
                take_output(client, type[3] == 'o' ? 1 : 2, line);
        client->ended = strcmp(type, "end") == 0;
}

/* One event, and nothing besides. */
bool http_add(struct http_request *request, const void *bytes, size_t len)
{
        struct client *client = client_of(request);
        const char *text = bytes, *json = text;
        uint64_t id = 0;
        char event[20] = "";
        int n = 0;
        require(client->open && len < KEPT_MAX + 200);
        if (client->queued + len > QUEUE_MAX)
                return false;
        client->queued += len;
        if (!client->ndjson) {
                if (sscanf(json, "id: %lu\n%n", &id, &n) == 1)
                        json += n;
                n = 0;
                require(sscanf(json, "event: %19[a-z]\ndata: %n", event, &n) == 1 && n);
                json += n;
                require(text[len - 1] == '\n');
                len--;
        }
        require(text[len - 1] == '\n' && !memchr(json, '\n', (size_t)(text + len - 1 - json)));
        json_t *line = json_loadb(json, (size_t)(text + len - 1 - json), JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
        const char *type = json_string_value(json_object_get(line, "type"));
        require(type && (client->ndjson || strcmp(type, event) == 0));
        take_event(client, id, type, line);
        json_decref(line);
        return true;
}

/* ---- scripts ---- */

struct script {
        const uint8_t *bytes;
        size_t len;
};

static uint8_t next(struct script *script)
{
        uint8_t byte = script->len ? *script->bytes : 0;
        script->bytes += script->len > 0;
        script->len -= script->len > 0;
        return byte;
}

static void open_client(struct script *script, struct client *client)
{
        uint8_t how = next(script);
        uint64_t after = how & 4 ? UINT64_MAX - next(script) : how & 8 ? next(script) : 0;
        if (client->open)
                return;
        *client = (struct client){ .open = true, .ndjson = how & 1, .follows = !(how & 2),
                                   .after = after < events.next_id ? after : events.next_id - 1 };
        client->lost = client->after > 0;
        buf_init(&client->output[1], 2 * OUTPUT_MAX);
        buf_init(&client->output[2], 2 * OUTPUT_MAX);
        events_send(&events, &client->request, after, client->ndjson);
}

static void read_some(struct client *client, size_t n)
{
        client->queued -= min_u64(client->queued, n);
        if (client->open)
                client->request.room(&client->request);
}

static void go(struct client *client)
{
        if (!client->open)
                return;
        client->request.gone(&client->request);
        client_close(client);
}

static void output(int stream, const char *bytes, size_t len)
{
        if (!len || written[1].len + written[2].len + len > OUTPUT_MAX)
                return;
        buf_add(&written[stream], bytes, len);
        events_output(&events, stream, bytes, len);
}

/* A piece of the script again and again; characters are cut where it is. */
static void output_much(struct script *script, int stream)
{
        static char text[PIECE_MAX];
        size_t period = 1 + next(script) % 16, len = PIECE_MAX - next(script);
        for (size_t i = 0; i < len; i++)
                text[i] = (char)(i < period ? next(script) : (uint8_t)text[i - period]);
        for (int times = 1 + next(script) % 32; times; times--)
                output(stream, text, len);
}

static void display(struct script *script)
{
        size_t len = (size_t)next(script) * next(script);
        char *text = mem_alloc(len + 1);
        memset(text, next(script) % 128, len);
        json_t *bundle = json_pack("{s:s%}", "text/plain", text, len);
        char *event = events_encode_display(bundle);
        if (event)
                events_add(&events, event, strlen(event));
        free(event);
        json_decref(bundle);
        free(text);
}

static void on_room(struct events *of)
{
        require(of == &events);
}

static bool play(struct script *script)
{
        uint8_t what = next(script);
        struct client *client = &clients[(what >> 4) % READERS_MAX];
        int stream = 1 + (what >> 3 & 1);
        size_t len;
        switch (what & 7) {
        case 0:
                open_client(script, client);
                break;
        case 1:
                read_some(client, (size_t)next(script) * 64);
                break;
        case 2:
                go(client);
                break;
        case 3:
                output_much(script, stream);
                break;
        case 4:
                display(script);
                break;
        case 5:
                if (events.readers)
                        events_set_flow_control(&events, on_room);
                events_wait(&events);
                break;
        case 6:
                return what != 0xfe;
        default:
                len = min_u64(next(script), script->len);
                output(stream, (const char *)script->bytes, len);
                script->bytes += len;
                script->len -= len;
        }
        require(events.text.len <= KEPT_MAX && events.n <= events.next_id - 1);
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct script script = { bytes, len };
        struct csn_error err;
        require(service.loop || loop_new(&service.loop, &err) == 0);
        events_init(&events);
        events.text.max = KEPT_MAX;
        buf_init(&written[1], OUTPUT_MAX);
        buf_init(&written[2], OUTPUT_MAX);
        events_start(&events, "run_1");
        while (script.len && play(&script))
                ;
        bool cut = next(&script) & 1;
        if (!cut)
                events_end(&events, "{}", 2);
        /* A queue has room for two events, and there are no more than a few dozen large ones. */
        for (size_t i = 0; i < READERS_MAX; i++)
                for (int times = 0; clients[i].open && !cut; times++) {
                        require(times < 100);
                        read_some(&clients[i], QUEUE_MAX);
                }
        events_done(&events);
        for (size_t i = 0; i < READERS_MAX; i++)
                require(!clients[i].open);
        buf_done(&written[1]);
        buf_done(&written[2]);
        return 0;
}
