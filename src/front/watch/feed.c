/*
 * The feed: events of the daemon in a bounded ring, and streams that read them.
 *
 * A reader has a place in the ring, and takes as much as its client has room for.  Events are gathered for
 * FEED_GATHER_US, and readers are served in turn in steps of FEED_STEP_US, so thousands of readers delay no other work
 * of the loop.  A reader in arrears of the whole ring gets the event `lagged` and is ended; its client asks the lists.
 */
#include "front/watch/watch.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the ring ---- */

static struct feed_event *event_at(const struct feed *feed, uint64_t number)
{
        return feed->ring[number % FEED_EVENTS_MAX];
}

static void drop_oldest(struct feed *feed)
{
        struct feed_event **oldest = &feed->ring[feed->first++ % FEED_EVENTS_MAX];
        feed->bytes -= (*oldest)->text_len;
        free(*oldest);
        *oldest = NULL;
}

/* By the clock of the day, so that the ids of a daemon's life are above those of the life before. */
static uint64_t next_id(struct feed *feed)
{
        uint64_t now = (uint64_t)time_now_ms() * 1000;
        feed->newest_id = now > feed->newest_id ? now : feed->newest_id + 1;
        return feed->newest_id;
}

/* The number of the first event with a higher id. */
static uint64_t number_after(const struct feed *feed, uint64_t id)
{
        uint64_t low = feed->first, high = feed->end;
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                if (event_at(feed, middle)->id <= id)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

/* ---- readers ---- */

static void reader_free(struct feed_reader *reader)
{
        struct feed *feed = reader->feed;
        *(reader->prev ? &reader->prev->next : &feed->readers) = reader->next;
        if (reader->next)
                reader->next->prev = reader->prev;
        if (feed->turn == reader)
                feed->turn = reader->next;
        feed->readers_n--;
        loop_untimer(feed->loop, &reader->keepalive);
        free(reader);
}

static void reader_end(struct feed_reader *reader)
{
        struct http_request *request = reader->request;
        reader_free(reader);
        http_end(request);
}

/* An event without an id, for one reader: a client that comes back still has the id of the last event that it got. */
static void reader_tell(struct feed_reader *reader, const char *type, const char *text)
{
        char line[400];
        int len = 0;
        if (!reader->ndjson)
                len = snprintf(line, sizeof line, "event: %s\ndata: ", type);
        len += snprintf(line + len, sizeof line - (size_t)len, "{\"type\":\"%s\",\"message\":\"%s\"}%s", type, text,
                reader->ndjson ? "\n" : "\n\n");
        http_add(reader->request, line, (size_t)len);
}

static bool is_for(const struct feed_reader *reader, const struct feed_event *event)
{
        if (!(event->type & reader->types))
                return false;
        return !reader->tenant || !event->tenant[0] || strcmp(event->tenant, reader->tenant) == 0;
}

static bool reader_send(struct feed_reader *reader, const struct feed_event *event)
{
        size_t from = reader->ndjson ? event->json_at : 0;
        return http_has_room(reader->request) &&
                http_add(reader->request, event->text + from, event->text_len - from - (reader->ndjson ? 1 : 0));
}

/* Queue what the client has room for.  May free the reader. */
static void reader_serve(struct feed_reader *reader)
{
        const struct feed *feed = reader->feed;
        if (reader->at < feed->first) {
                reader_tell(reader, "lagged",
                        "this stream was read more slowly than events came, and some are lost: read the lists, and open a new stream");
                reader_end(reader);
                return;
        }
        for (reader->waits = false; reader->at < feed->end; reader->at++) {
                const struct feed_event *event = event_at(feed, reader->at);
                if (!is_for(reader, event))
                        continue;
                if (!reader_send(reader, event)) {
                        reader->waits = true;
                        return;
                }
                reader->sent_us = clock_us();
        }
}

static void on_room(struct http_request *request)
{
        reader_serve(request->owner);
}

static void on_gone(struct http_request *request)
{
        reader_free(request->owner);
}

static void on_keepalive(struct timer *timer)
{
        struct feed_reader *reader = timer->owner;
        uint64_t quiet_us = clock_us() - reader->sent_us;
        bool is_due = quiet_us >= EVENTS_KEEPALIVE_US;
        if (is_due && !http_queued(reader->request))
                http_add(reader->request, reader->ndjson ? "\n" : ":\n\n", reader->ndjson ? 1 : 3);
        if (is_due)
                reader->sent_us = clock_us();
        loop_timer(reader->feed->loop, timer, is_due ? EVENTS_KEEPALIVE_US : EVENTS_KEEPALIVE_US - quiet_us);
}

/* Readers that wait for their clients are looked at as well: the ring may have overtaken them. */
static void on_round(struct timer *timer)
{
        struct feed *feed = timer->owner;
        uint64_t until_us = clock_us() + FEED_STEP_US;
        if (!feed->turn)
                feed->turn = feed->readers;
        while (feed->turn && clock_us() < until_us) {
                struct feed_reader *reader = feed->turn;
                feed->turn = reader->next;
                if (!reader->waits || reader->at < feed->first)
                        reader_serve(reader);
        }
        if (feed->turn)
                loop_timer(feed->loop, timer, FEED_PAUSE_US);
}

/* ---- in order ---- */

void feed_open(struct feed *feed, struct loop *loop)
{
        feed->loop = loop;
        feed->round = (struct timer){ .fired = on_round, .owner = feed };
}

void feed_add(struct feed *feed, unsigned type, const char *name, const char *tenant, const char *json, size_t len)
{
        char head[100];
        uint64_t id = next_id(feed);
        int begin = snprintf(head, sizeof head, "id: %" PRIu64 "\nevent: %s\ndata: ", id, name);
        size_t text_len = (size_t)begin + len + 2;
        while (feed->first < feed->end &&
                (feed->end - feed->first == FEED_EVENTS_MAX || feed->bytes + text_len > FEED_BYTES_MAX))
                drop_oldest(feed);
        struct feed_event *event = mem_alloc(sizeof *event + text_len + 1);
        *event = (struct feed_event){ .id = id,
                .type = type,
                .json_at = (unsigned)begin,
                .text_len = (unsigned)text_len };
        snprintf(event->tenant, sizeof event->tenant, "%s", tenant);
        memcpy(event->text, head, (size_t)begin);
        memcpy(event->text + begin, json, len);
        memcpy(event->text + begin + len, "\n\n", 2);
        feed->ring[feed->end++ % FEED_EVENTS_MAX] = event;
        feed->bytes += text_len;
        if (feed->readers && !feed->round.active)
                loop_timer(feed->loop, &feed->round, FEED_GATHER_US);
}

void feed_send(struct feed *feed, struct http_request *request, unsigned types, const char *tenant, uint64_t after)
{
        struct feed_reader *reader = mem_alloc(sizeof *reader);
        bool ndjson = http_accepts(request, "application/x-ndjson");
        *reader = (struct feed_reader){ .next = feed->readers,
                .feed = feed,
                .request = request,
                .types = types,
                .tenant = tenant,
                .at = after ? number_after(feed, after) : feed->end,
                .ndjson = ndjson,
                .keepalive = { .fired = on_keepalive, .owner = reader },
                .sent_us = clock_us() };
        if (feed->readers)
                feed->readers->prev = reader;
        feed->readers = reader;
        feed->readers_n++;
        request->owner = reader;
        request->gone = on_gone;
        request->room = on_room;
        http_stream(request, MHD_HTTP_OK, ndjson ? "application/x-ndjson" : "text/event-stream");
        /* A first line at once: proxies and clients wait for it. */
        http_add(request, ndjson ? "\n" : ": events\n\n", ndjson ? 1 : 10);
        loop_timer(feed->loop, &reader->keepalive, EVENTS_KEEPALIVE_US);
        if (after && (feed->first == feed->end || event_at(feed, feed->first)->id > after))
                reader_tell(reader, "lost", "events after Last-Event-ID are not kept any more: read the lists");
        reader_serve(reader);
}

bool feed_is_read(const struct feed *feed, unsigned types)
{
        for (const struct feed_reader *reader = feed->readers; reader; reader = reader->next)
                if (reader->types & types)
                        return true;
        return false;
}

void feed_end_all(struct feed *feed)
{
        for (struct feed_reader *reader = feed->readers, *next; reader; reader = next) {
                next = reader->next;
                reader_end(reader);
        }
}

void feed_close(struct feed *feed)
{
        for (struct feed_reader *reader = feed->readers, *next; reader; reader = next) {
                struct http_request *request = reader->request;
                next = reader->next;
                reader_free(reader);
                http_cut(request);
        }
        if (feed->loop)
                loop_untimer(feed->loop, &feed->round);
        while (feed->first < feed->end)
                drop_oldest(feed);
}
