/* The reader of answers of HTTP/1.1 servers: heads, bodies, ends, and what a hostile server sends. */
#include "net/http_answer.h"
#include "tap.h"

#include <stdio.h>

struct seen {
        struct http_answer answer;
        struct buf body;
        unsigned heads, ends;
};

static void on_head(void *owner)
{
        struct seen *seen = owner;
        seen->heads++;
}

static void on_bytes(void *owner, const char *bytes, size_t len)
{
        struct seen *seen = owner;
        buf_add(&seen->body, bytes, len);
}

static void on_end(void *owner)
{
        struct seen *seen = owner;
        seen->ends++;
}

static const struct http_answer_events events = { on_head, on_bytes, on_end };

/* Read the text in pieces of `step` bytes, and the end of the connection.  false: the reader refused it. */
static bool take(struct seen *seen, const char *text, size_t len, size_t step, bool closed)
{
        bool good = true;
        for (size_t at = 0; good && at < len; at += step)
                good = http_answer_take(&seen->answer, text + at, min_u64(step, len - at));
        return good && (!closed || http_answer_take(&seen->answer, "", 0));
}

static void begin(struct seen *seen)
{
        *seen = (struct seen){ 0 };
        http_answer_init(&seen->answer, &events, seen);
        buf_init(&seen->body, MIB);
}

static void done(struct seen *seen)
{
        http_answer_done(&seen->answer);
        buf_done(&seen->body);
}

static bool has_body(const struct seen *seen, const char *text)
{
        return seen->body.len == strlen(text) &&
                (!seen->body.len || memcmp(seen->body.bytes, text, seen->body.len) == 0);
}

static void answers_are_read_however_the_bytes_come(void)
{
        static const struct {
                const char *name, *text, *body;
                bool closed, keeps;
        } rows[] = {
                { "a length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "hi", false, true },
                { "chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\n\r\n", "hi", false, true },
                { "the end of the connection", "HTTP/1.1 200 OK\r\n\r\nhi", "hi", true, false },
                { "Connection: close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi", "hi", false, false },
                { "204", "HTTP/1.1 204 No Content\r\n\r\n", "", false, true },
                { "interim answers", "HTTP/1.1 103 X\r\nA: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", false, true },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                for (size_t step = 1; step < 40; step += 13) {
                        struct seen seen;
                        begin(&seen);
                        CHECK(take(&seen, rows[i].text, strlen(rows[i].text), step, rows[i].closed) &&
                                seen.heads == 1 && seen.ends == 1 && has_body(&seen, rows[i].body) &&
                                seen.answer.keeps == rows[i].keeps);
                        done(&seen);
                }
}

static void headers_are_found_by_name(void)
{
        static const char text[] = "HTTP/1.1 200 OK\r\nA: 1\r\nEmpty:\r\nContent-Length: 0\r\n\r\n";
        struct seen seen;
        begin(&seen);
        CHECK(take(&seen, text, strlen(text), 3, false) && seen.answer.status == 200 && seen.answer.length == 0);
        CHECK(strcmp(http_answer_header(&seen.answer, "a"), "1") == 0 &&
                strcmp(http_answer_header(&seen.answer, "empty"), "") == 0 && !http_answer_header(&seen.answer, "b"));
        CHECK(!http_answer_take(&seen.answer, "HTTP/1.1 200 OK\r\n", 17));
        done(&seen);
}

static void answers_that_are_no_HTTP_are_refused(void)
{
        static const struct { const char *name, *text; } rows[] = {
                { "no HTTP", "hello\r\n\r\n" },
                { "101 that nothing asked for", "HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" },
                { "a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n" },
                { "two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx" },
                { "a chunk without a size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct seen seen;
                begin(&seen);
                CHECK(!take(&seen, rows[i].text, strlen(rows[i].text), 1000, false) && !seen.ends);
                done(&seen);
        }
        struct seen seen;
        begin(&seen);
        CHECK(!take(&seen, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", 40, 1000, true) && !seen.ends);
        done(&seen);
}

static void nothing_grows_without_end(void)
{
        struct seen seen;
        struct buf text;
        buf_init(&text, MIB);
        begin(&seen);
        buf_printf(&text, "HTTP/1.1 200 OK\r\n");
        for (int i = 0; i <= HTTP_ANSWER_HEADERS_MAX; i++)
                buf_printf(&text, "A%d: 1\r\n", i);
        buf_printf(&text, "\r\n");
        CHECK(!take(&seen, text.bytes, text.len, 100, false));
        done(&seen);
        begin(&seen);
        text.len = 0;
        for (int i = 0; i <= HTTP_ANSWER_INTERIMS_MAX; i++)
                buf_printf(&text, "HTTP/1.1 102 X\r\n\r\n");
        CHECK(!take(&seen, text.bytes, text.len, 100, false));
        done(&seen);
        buf_done(&text);
}

static void after_101_bytes_are_raw(void)
{
        static const char text[] = "HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw";
        struct seen seen;
        begin(&seen);
        seen.answer.upgrade = true;
        CHECK(take(&seen, text, strlen(text), 7, false) && seen.answer.raw && has_body(&seen, "raw"));
        CHECK(http_answer_take(&seen.answer, "\r\n\r\n", 4) && has_body(&seen, "raw\r\n\r\n") && !seen.ends);
        done(&seen);
}

static void an_answer_to_HEAD_has_no_body(void)
{
        static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        struct seen seen;
        begin(&seen);
        seen.answer.head = true;
        CHECK(take(&seen, text, strlen(text), 7, false) && seen.ends == 1 && seen.answer.length == 5);
        done(&seen);
        begin(&seen);
        http_answer_stop(&seen.answer);
        CHECK(take(&seen, text, strlen(text), 7, false) && !seen.heads);
        done(&seen);
}

int main(void)
{
        RUN(answers_are_read_however_the_bytes_come);
        RUN(headers_are_found_by_name);
        RUN(answers_that_are_no_HTTP_are_refused);
        RUN(nothing_grows_without_end);
        RUN(after_101_bytes_are_raw);
        RUN(an_answer_to_HEAD_has_no_body);
        return tap_done();
}
