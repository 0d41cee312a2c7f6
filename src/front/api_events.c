/*
 * The events of a run, numbered from 1, as JSON lines in a buffer with a ceiling; and those who read them.
 *
 * A reader has a place in the numbers and takes what its client reads, so a slow one costs nothing but its own time.
 * What it wanted to read may be gone by then; it is told how much.
 */
#include "front/api.h"

#include <inttypes.h>
#include <stdio.h>

#define RECORD_MAX (2 * MIB)               /* a longer one has to be asked for */

struct reader {
        struct reader *next;
        struct events *events;
        struct http_request *request;
        uint64_t after;                    /* the last event that was sent */
        bool ndjson;
        struct timer beat;
};

void events_init(struct events *events)
{
        *events = (struct events){ .next_id = 1 };
        buf_init(&events->text, API_EVENTS_MAX);
        buf_init(&events->rest[1], 8);
        buf_init(&events->rest[2], 8);
}

size_t events_bytes(const struct events *events)
{
        return events->text.size + events->size * sizeof *events->list;
}

/* ---- readers ---- */

static void reader_free(struct reader *reader)
{
        for (struct reader **at = &reader->events->readers; *at; at = &(*at)->next)
                if (*at == reader) {
                        *at = reader->next;
                        break;
                }
        loop_untimer(api_of(reader->request)->loop, &reader->beat);
        free(reader);
}

static bool send_line(struct reader *reader, uint64_t id, const char *json, size_t len)
{
        struct buf text;
        size_t type_len = 0;
        buf_init(&text, len + 200);
        /* Each line begins with {"type":"…", */
        const char *type = json + strlen("{\"type\":\"");
        type_len = strcspn(type, "\"");
        if (!reader->ndjson && id)
                buf_printf(&text, "id: %" PRIu64 "\n", id);
        if (!reader->ndjson)
                buf_printf(&text, "event: %.*s\ndata: ", (int)type_len, type);
        buf_add(&text, json, len);
        buf_add(&text, "\n\n", reader->ndjson ? 1 : 2);
        bool fits = http_add(reader->request, text.bytes, text.len);
        buf_done(&text);
        return fits;
}

static bool send_lost(struct reader *reader, uint64_t first)
{
        char json[100];
        int len = snprintf(json, sizeof json, "{\"type\":\"lost\",\"events\":%" PRIu64 "}", first - reader->after - 1);
        return send_line(reader, 0, json, (size_t)len);
}

/* What the client has room for. */
static void pump(struct reader *reader)
{
        const struct events *events = reader->events;
        uint64_t first = events->next_id - events->n;
        loop_timer(api_of(reader->request)->loop, &reader->beat, API_BEAT_US);
        if (reader->after + 1 < first && send_lost(reader, first))
                reader->after = first - 1;
        while (reader->after + 1 < events->next_id && http_queued(reader->request) < HTTP_STREAM_MAX / 2) {
                const struct event *event = &events->list[reader->after + 1 - first];
                if (!send_line(reader, event->id, events->text.bytes + event->at, event->len))
                        break;
                reader->after = event->id;
        }
        if (events->over && reader->after + 1 == events->next_id) {
                struct http_request *request = reader->request;
                reader_free(reader);
                http_end(request);
        }
}

static void on_room(struct http_request *request)
{
        pump(request->owner);
}

static void on_gone(struct http_request *request)
{
        reader_free(request->owner);
}

static void on_beat(struct timer *timer)
{
        struct reader *reader = timer->owner;
        http_add(reader->request, reader->ndjson ? "\n" : ":\n\n", reader->ndjson ? 1 : 3);
        loop_timer(api_of(reader->request)->loop, &reader->beat, API_BEAT_US);
}

void events_send(struct events *events, struct http_request *request, uint64_t after, bool ndjson)
{
        struct reader *reader = mem_alloc(sizeof *reader);
        *reader = (struct reader){ .next = events->readers, .events = events, .request = request, .ndjson = ndjson,
                                   .after = after < events->next_id ? after : events->next_id - 1 };
        reader->beat = (struct timer){ .fired = on_beat, .owner = reader };
        events->readers = reader;
        request->owner = reader;
        request->gone = on_gone;
        request->room = on_room;
        http_stream(request, MHD_HTTP_OK, ndjson ? "application/x-ndjson" : "text/event-stream");
        pump(reader);
}

void events_done(struct events *events)
{
        while (events->readers) {
                struct http_request *request = events->readers->request;
                reader_free(events->readers);
                http_cut(request);
        }
        buf_done(&events->text);
        buf_done(&events->rest[1]);
        buf_done(&events->rest[2]);
        free(events->list);
        events->list = NULL;
}

/* ---- events ---- */

static void drop_oldest(struct events *events, size_t wanted)
{
        size_t n = 0;
        while (n < events->n && events->list[n].at < wanted)
                n++;
        size_t from = n < events->n ? events->list[n].at : events->text.len;
        memmove(events->text.bytes, events->text.bytes + from, events->text.len - from);
        events->text.len -= from;
        memmove(events->list, events->list + n, (events->n - n) * sizeof *events->list);
        events->n -= n;
        for (size_t i = 0; i < events->n; i++)
                events->list[i].at -= from;
}

/* Takes the reference.  Its first key is the type. */
static void add(struct events *events, json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT);
        size_t len = text ? strlen(text) : 0;
        json_decref(json);
        if (!text)
                return;
        if (events->text.len + len > API_EVENTS_MAX)
                drop_oldest(events, len > API_EVENTS_MAX / 2 ? len : API_EVENTS_MAX / 2);
        if (events->n == events->size) {
                events->size = events->size ? 2 * events->size : 16;
                events->list = mem_resize(events->list, events->size * sizeof *events->list);
        }
        events->list[events->n++] = (struct event){ events->next_id++, events->text.len, len };
        buf_add(&events->text, text, len);
        free(text);
        for (struct reader *reader = events->readers, *next; reader; reader = next) {
                next = reader->next;
                pump(reader);
        }
}

void events_start(struct events *events, const char *id)
{
        add(events, json_pack("{s:s, s:s}", "type", "start", "id", id));
}

/* How much of these bytes ends with a whole character; what cannot become one counts as whole. */
static size_t whole_characters(const char *bytes, size_t len)
{
        for (size_t back = 1; back <= 3 && back <= len; back++) {
                unsigned char c = (unsigned char)bytes[len - back];
                if (c < 0x80 || c > 0xf4)
                        return len;
                if (c >= 0xc0)
                        return back < (c >= 0xf0 ? 4U : c >= 0xe0 ? 3U : 2U) ? len - back : len;
        }
        return len;
}

static void add_output(struct events *events, int stream, const char *bytes, size_t len)
{
        struct arena arena = { 0 };
        size_t text_len;
        const char *text = model_utf8(&arena, bytes, len, &text_len);
        json_t *json = json_pack("{s:s, s:s%}", "type", stream == 1 ? "stdout" : "stderr", "text", text, text_len);
        if (!utf8_valid(bytes, len))
                json_object_set_new(json, "base64", json_string(model_base64(&arena, bytes, len)));
        add(events, json);
        arena_done(&arena);
}

void events_output(struct events *events, int stream, const void *bytes, size_t len)
{
        struct buf *rest = &events->rest[stream], all;
        buf_init(&all, rest->len + len);
        buf_add(&all, rest->bytes ? rest->bytes : "", rest->len);
        buf_add(&all, bytes, len);
        rest->len = 0;
        size_t whole = whole_characters(all.bytes, all.len);
        buf_add(rest, all.bytes + whole, all.len - whole);
        if (whole)
                add_output(events, stream, all.bytes, whole);
        buf_done(&all);
}

void events_end(struct events *events, const char *record, size_t len)
{
        for (int stream = 1; stream <= 2; stream++)
                if (events->rest[stream].len)
                        add_output(events, stream, events->rest[stream].bytes, events->rest[stream].len);
        json_t *json = len <= RECORD_MAX ? json_loadb(record, len, JSON_ALLOW_NUL, NULL) : NULL;
        events->over = true;
        add(events, json_pack("{s:s, s:o}", "type", "end", "record", json ? json : json_null()));
}
