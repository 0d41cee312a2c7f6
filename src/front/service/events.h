/*
 * events: the numbered events of one run or program as JSON lines in a buffer with a ceiling, and requests that read
 * them.
 *
 * A reader has a place in the numbers and gets events as fast as its client reads, so a slow client costs only its own
 * time. Events that were dropped before a reader came to them are reported to it by number.
 */
#ifndef FRONT_SERVICE_EVENTS_H
#define FRONT_SERVICE_EVENTS_H

#include "front/http/http.h"

#define EVENTS_MAX (4 * MIB)                    /* bytes of one run's events; the oldest are dropped */
#define EVENTS_KEEPALIVE_US (15 * 1000000ULL)   /* microseconds without an event until a stream gets an empty line */

/* ---- a ceiling for kept results ---- */

#define RETAINED_SHARES 256

/*
 * Bytes of kept results by tenant.  The tenant with most loses its oldest first.  A share is a hash of the tenant's
 * name.
 */
struct retained {
        size_t bytes, of[RETAINED_SHARES];
};

void retained_add(struct retained *kept, const char *tenant, size_t bytes);
void retained_drop(struct retained *kept, const char *tenant, size_t bytes);
size_t retained_most(const struct retained *kept);                      /* bytes of the largest share */
size_t retained_of(const struct retained *kept, const char *tenant);    /* bytes of the tenant's share */

/* ---- events ---- */

struct event {
        uint64_t id;                       /* from 1 on */
        size_t at, len;                    /* in the text */
};

struct events {
        struct buf text;
        struct event *list;
        size_t n, size;
        uint64_t next_id;
        struct buf rest[3];                /* by stream: the bytes of a character that is not complete yet */
        struct reader *readers;
        struct reader *flow_control;       /* the reader for which no event may be dropped, or NULL */
        void (*room)(struct events *events);   /* that reader has read; more events may come */
        bool over;
};

void events_init(struct events *events);
void events_done(struct events *events);   /* cuts the answers of all readers */
size_t events_bytes(const struct events *events);

/*
 * The first event of a run; the first event of other programs, and the last with their record.  The references are
 * taken.
 */
void events_start(struct events *events, const char *id);
void events_begin(struct events *events, json_t *json);
void events_finish(struct events *events, json_t *record);
/* Any other event; its first member is "type".  The reference is taken. */
void events_tell(struct events *events, json_t *json);
/* The text of the event of a display, from malloc(3); see display_encoder. */
char *events_encode_display(const json_t *bundle);
/* An event as JSON text; its first member is "type". */
void events_add(struct events *events, const char *text, size_t len);
void events_output(struct events *events, int stream, const void *bytes, size_t len);   /* stream: 1 or 2 */
/* The last event of a run, with its record as JSON text; NULL: there is none. */
void events_end(struct events *events, const char *record, size_t len);

/*
 * Charge the tenant of a request for one more reader, before events_send().  false: the tenant has too many, and the
 * request has its answer.
 */
bool events_admit(struct http_request *request);
/*
 * Answer an admitted request with all events after the number `after`, and with later events unless the query has
 * follow=false, as text/event-stream or application/x-ndjson.
 */
void events_send(struct events *events, struct http_request *request, uint64_t after, bool ndjson);

/* Let the last reader set the pace: while events_wait(), add nothing until room() is called. */
void events_set_flow_control(struct events *events, void (*room)(struct events *events));
bool events_wait(const struct events *events);

/*
 * A stream of events that are not kept: its first event, and later ones ("type" is the first member).  The references
 * are taken.
 */
void events_begin_line(struct http_request *request, json_t *json);
void events_line(struct http_request *request, json_t *json);

#endif
