/*
 * The events of a run, numbered from 1, as JSON lines in a buffer with a ceiling; and their readers.
 *
 * A reader has a place in the numbers and goes on as its client reads, so a slow client costs only its own time.
 * Events dropped before the client reads on are reported by their number.
 */
#include "front/service/service.h"
#include "tools/tools.h"

#include <inttypes.h>
#include <stdio.h>

#define RECORD_MAX (2 * MIB)               /* the client has to ask for a longer record */
#define END_BEGIN "{\"type\":\"end\",\"record\":"

struct reader {
        struct reader *next;
        struct events *events;
        struct http_request *request;
        uint64_t after;                    /* the last event sent */
        bool ndjson;
        bool once;                         /* only existing events */
        struct timer keepalive;
        uint64_t sent_us;                  /* time of the last event or empty line */
};

void events_init(struct events *events)
{
        *events = (struct events){ .next_id = 1 };
        _Static_assert(2 * TOOL_EVENT_MAX <= EVENTS_MAX,
                       "a call of the client's fits, and so does what is said beside it");
        buf_init(&events->text, EVENTS_MAX);
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
        loop_untimer(service_of(reader->request)->loop, &reader->keepalive);
        if (reader->events->flow_control == reader) {
                reader->events->flow_control = NULL;
                reader->events->room(reader->events);
        }
        free(reader);
}

bool events_wait(const struct events *events)
{
        uint64_t first = events->next_id - events->n;
        if (!events->flow_control || events->flow_control->after + 1 < first ||
                events->flow_control->after + 1 == events->next_id)
                return false;
        return events->text.len - events->list[events->flow_control->after + 1 - first].at > events->text.max / 4;
}

void events_set_flow_control(struct events *events, void (*room)(struct events *events))
{
        events->room = room;
        events->flow_control = events->readers;
}

/* Each line begins with {"type":"…", */
static void format_line(struct buf *text, bool ndjson, uint64_t id, const char *json, size_t len)
{
        static const char begin[] = "{\"type\":\"";
        const char *type = len >= sizeof begin ? json + sizeof begin - 1 : "";
        if (!ndjson && id)
                buf_printf(text, "id: %" PRIu64 "\n", id);
        if (!ndjson)
                buf_printf(text, "event: %.*s\ndata: ", (int)strcspn(type, "\""), type);
        buf_add(text, json, len);
        buf_add(text, "\n\n", ndjson ? 1 : 2);
}

static bool send_line(struct reader *reader, uint64_t id, const char *json, size_t len)
{
        struct buf text;
        buf_init(&text, len + 200);
        format_line(&text, reader->ndjson, id, json, len);
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

/* Send as far as the client has room. */
static void pump(struct reader *reader)
{
        const struct events *events = reader->events;
        uint64_t first = events->next_id - events->n;
        reader->sent_us = clock_us();
        if (reader->after + 1 < first && send_lost(reader, first))
                reader->after = first - 1;
        while (reader->after + 1 < events->next_id && http_has_room(reader->request)) {
                const struct event *event = &events->list[reader->after + 1 - first];
                if (!send_line(reader, event->id, events->text.bytes + event->at, event->len))
                        break;
                reader->after = event->id;
        }
        if ((events->over || reader->once) && reader->after + 1 == events->next_id) {
                struct http_request *request = reader->request;
                reader_free(reader);
                http_end(request);
        } else if (events->flow_control == reader && !events_wait(events)) {
                reader->events->room(reader->events);
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

static void on_keepalive(struct timer *timer)
{
        struct reader *reader = timer->owner;
        uint64_t quiet_us = clock_us() - reader->sent_us;
        loop_timer(service_of(reader->request)->loop, timer,
                quiet_us < EVENTS_KEEPALIVE_US ? EVENTS_KEEPALIVE_US - quiet_us : EVENTS_KEEPALIVE_US);
        if (quiet_us < EVENTS_KEEPALIVE_US)
                return;
        if (!http_queued(reader->request))
                http_add(reader->request, reader->ndjson ? "\n" : ":\n\n", reader->ndjson ? 1 : 3);
        pump(reader);
}

bool events_admit(struct http_request *request)
{
        struct csn_error err;
        if (http_charge(request, SHARE_READERS, 1, &err) == 0)
                return true;
        http_answer_excess(request, &err);
        return false;
}

void events_send(struct events *events, struct http_request *request, uint64_t after, bool ndjson)
{
        struct reader *reader = mem_alloc(sizeof *reader);
        const char *follow = http_query(request, "follow");
        *reader = (struct reader){ .once = follow && strcmp(follow, "false") == 0,
                .next = events->readers,
                .events = events,
                .request = request,
                .ndjson = ndjson,
                .after = after < events->next_id ? after : events->next_id - 1 };
        reader->keepalive = (struct timer){ .fired = on_keepalive, .owner = reader };
        events->readers = reader;
        request->owner = reader;
        request->gone = on_gone;
        request->room = on_room;
        http_stream(request, MHD_HTTP_OK, ndjson ? "application/x-ndjson" : "text/event-stream");
        loop_timer(service_of(request)->loop, &reader->keepalive, EVENTS_KEEPALIVE_US);
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

/*
 * The first key of the text is the type.  A text longer than the whole buffer gets a number, and is lost.
 */
void events_add(struct events *events, const char *text, size_t len)
{
        static const char lost[] = "{\"type\":\"lost\",\"events\":1}";
        if (len > events->text.max) {
                text = lost;
                len = strlen(lost);
        }
        if (events->text.len + len > events->text.max)
                drop_oldest(events, len > events->text.max / 2 ? len : events->text.max / 2);
        if (events->n == events->size) {
                events->size = events->size ? 2 * events->size : 16;
                events->list = mem_resize(events->list, events->size * sizeof *events->list);
        }
        events->list[events->n++] = (struct event){ events->next_id++, events->text.len, len };
        buf_add(&events->text, text, len);
        for (struct reader *reader = events->readers, *next; reader; reader = next) {
                next = reader->next;
                pump(reader);
        }
}

/* Takes the reference. */
static void add(struct events *events, json_t *json)
{
        char *text = model_write(json, JSON_COMPACT | MODEL_MEASURED);
        json_decref(json);
        if (text)
                events_add(events, text, strlen(text));
        free(text);
}

void events_begin(struct events *events, json_t *json)
{
        add(events, json);
}

void events_start(struct events *events, const char *id)
{
        add(events, json_pack("{s:s, s:s}", "type", "start", "id", id));
}

void events_tell(struct events *events, json_t *json)
{
        add(events, json);
}

char *events_encode_display(const json_t *bundle)
{
        json_t *json = json_pack("{s:s, s:O}", "type", "display", "data", bundle);
        char *text = model_write(json, JSON_COMPACT | MODEL_MEASURED);
        json_decref(json);
        return text;
}

static void add_output(struct events *events, int stream, const char *bytes, size_t len)
{
        struct arena arena = { 0 };
        struct buf text;
        buf_init(&text, 8 * len + KIB);
        buf_printf(&text, "{\"type\":\"%s\",\"text\":", stream == 1 ? "stdout" : "stderr");
        model_put_text(&text, bytes, len);
        if (!utf8_valid(bytes, len))
                buf_printf(&text, ",\"base64\":\"%s\"", model_base64(&arena, bytes, len));
        buf_add(&text, "}", 1);
        events_add(events, text.bytes, text.len);
        buf_done(&text);
        arena_done(&arena);
}

void events_output(struct events *events, int stream, const void *bytes, size_t len)
{
        struct buf *rest = &events->rest[stream], all;
        buf_init(&all, rest->len + len);
        buf_add(&all, rest->bytes ? rest->bytes : "", rest->len);
        buf_add(&all, bytes, len);
        rest->len = 0;
        size_t whole = utf8_whole(all.bytes, all.len);
        buf_add(rest, all.bytes + whole, all.len - whole);
        if (whole)
                add_output(events, stream, all.bytes, whole);
        buf_done(&all);
}

/* The rest of the output, an incomplete character. */
static void end_output(struct events *events)
{
        for (int stream = 1; stream <= 2; stream++)
                if (events->rest[stream].len)
                        add_output(events, stream, events->rest[stream].bytes, events->rest[stream].len);
        events->over = true;
}

void events_finish(struct events *events, json_t *record)
{
        end_output(events);
        add(events, json_pack("{s:s, s:o}", "type", "end", "record", record));
}

void events_end(struct events *events, const char *record, size_t len)
{
        struct buf text;
        buf_init(&text, RECORD_MAX + KIB);
        end_output(events);
        buf_add(&text, END_BEGIN, strlen(END_BEGIN));
        if (!record || len > RECORD_MAX || !buf_add(&text, record, len))
                buf_add(&text, "null", 4);
        buf_add(&text, "}", 1);
        events_add(events, text.bytes, text.len);
        buf_done(&text);
}

/* ---- retained bytes ---- */

static size_t share_of(const char *tenant)
{
        return hash_text(tenant, strlen(tenant)) % RETAINED_SHARES;
}

void retained_add(struct retained *kept, const char *tenant, size_t bytes)
{
        kept->bytes += bytes;
        kept->of[share_of(tenant)] += bytes;
}

void retained_drop(struct retained *kept, const char *tenant, size_t bytes)
{
        kept->bytes -= bytes;
        kept->of[share_of(tenant)] -= bytes;
}

size_t retained_most(const struct retained *kept)
{
        size_t most = 0;
        for (size_t i = 0; i < RETAINED_SHARES; i++)
                most = kept->of[i] > most ? kept->of[i] : most;
        return most;
}

size_t retained_of(const struct retained *kept, const char *tenant)
{
        return kept->of[share_of(tenant)];
}

/* ---- streams without a past ---- */

void events_line(struct http_request *request, json_t *json)
{
        char *text = model_write(json, JSON_COMPACT | MODEL_MEASURED);
        bool ndjson = http_accepts(request, "application/x-ndjson");
        struct buf line;
        json_decref(json);
        buf_init(&line, HTTP_STREAM_MAX);
        format_line(&line, ndjson, 0, text ? text : "{}", text ? strlen(text) : 2);
        http_add(request, line.bytes, line.len);
        buf_done(&line);
        free(text);
}

void events_begin_line(struct http_request *request, json_t *json)
{
        http_stream(request, MHD_HTTP_OK,
                http_accepts(request, "application/x-ndjson") ? "application/x-ndjson" : "text/event-stream");
        events_line(request, json);
}
