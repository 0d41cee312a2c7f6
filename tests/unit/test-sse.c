/* Streams of events: their messages, however the bytes come, and their bounds. */
#include "net/sse.h"

#include "tap.h"

struct seen {
        struct buf text;           /* messages, with a | behind each */
        unsigned most;             /* of them; 0: all */
        unsigned n;
};

static bool add(void *owner, const char *text, size_t len)
{
        struct seen *seen = owner;
        buf_add(&seen->text, text, len);
        buf_add(&seen->text, "|", 1);
        return ++seen->n != seen->most;
}

/* What comes of these bytes, in pieces of `step`; and the rest of the parser's state. */
static bool gives(const char *bytes, size_t step, const char *wanted, struct sse *sse)
{
        struct seen seen = { 0 };
        struct csn_error err;
        int rc = 0;
        sse_init(sse, 100);
        buf_init(&seen.text, 1000);
        for (size_t at = 0, len = strlen(bytes); rc == 0 && at < len; at += step)
                rc = sse_take(sse, bytes + at, min_u64(step, len - at), add, &seen, &err);
        bool good = rc == 0 && strcmp(seen.text.len ? seen.text.bytes : "", wanted) == 0;
        buf_done(&seen.text);
        return good;
}

static void messages_come_whole_however_the_bytes_come(void)
{
        static const struct { const char *bytes, *wanted; } rows[] = {
                { "data: a\n\ndata:b\n\n", "a|b|" },
                { ": hello\r\nevent: message\r\ndata: {\"x\":1}\r\n\r\n", "{\"x\":1}|" },
                { "data: one\ndata: two\n\n", "one\ntwo|" },
                { "data:\n\ndata\n\n\n\n", "" },
                { "data: not whole\n", "" },
                { "data:  two spaces\n\n", " two spaces|" },
                { "dat: a\nDATA: b\ndata: c\n\n", "c|" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                for (size_t step = 1; step < 12; step++) {
                        struct sse sse;
                        CHECK(gives(rows[i].bytes, step, rows[i].wanted, &sse));
                        sse_done(&sse);
                }
}

static void the_id_and_the_time_are_kept(void)
{
        struct sse sse;
        CHECK(gives("id: e1\nretry: 250\ndata:\n\n", 5, "", &sse));
        CHECK(strcmp(sse.id, "e1") == 0 && sse.retry_ms == 250 && sse.events == 1);
        sse_done(&sse);
        CHECK(gives("retry: 0\n\n\n: still here\n\n", 5, "", &sse));
        CHECK(sse.retry_ms == SSE_RETRY_MS_MIN && sse.events == 0);
        sse_done(&sse);
        CHECK(gives("id: e1\nretry: 250\ndata:\n\n", 5, "", &sse));
        sse_reset(&sse);
        CHECK(strcmp(sse.id, "e1") == 0);
        sse_done(&sse);
        CHECK(gives("id: a\tb\nretry: -1\nretry: 99999999999999999999\nretry: x\n\n", 7, "", &sse));
        CHECK(sse.id[0] == 0 && sse.retry_ms == SSE_RETRY_MS_MAX);
        sse_done(&sse);
}

static void nothing_grows_without_end(void)
{
        struct sse sse;
        struct seen seen = { 0 };
        struct csn_error err;
        char line[200];
        memset(line, 'x', sizeof line);
        sse_init(&sse, 100);
        CHECK(sse_take(&sse, line, sizeof line, add, &seen, &err) == -CSN_E_INPUT);
        sse_done(&sse);
        sse_init(&sse, 100);
        int rc = 0;
        for (int i = 0; i < 20 && rc == 0; i++)
                rc = sse_take(&sse, "data: 1234567890\n", 17, add, &seen, &err);
        CHECK(rc == -CSN_E_INPUT);
        sse_done(&sse);
}

static void who_has_heard_enough_hears_no_more(void)
{
        struct sse sse;
        struct seen seen = { .most = 1 };
        struct csn_error err;
        buf_init(&seen.text, 100);
        sse_init(&sse, 100);
        CHECK(sse_take(&sse, "data: a\n\ndata: b\n\n", 18, add, &seen, &err) == 0 && seen.n == 1);
        sse_done(&sse);
        buf_done(&seen.text);
}

int main(void)
{
        RUN(messages_come_whole_however_the_bytes_come);
        RUN(the_id_and_the_time_are_kept);
        RUN(nothing_grows_without_end);
        RUN(who_has_heard_enough_hears_no_more);
        return tap_done();
}
