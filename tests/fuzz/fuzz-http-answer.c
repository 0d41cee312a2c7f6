/* Answers of HTTP servers from any bytes.  The first byte decides on the request and on the size of pieces. */
#include "net/http_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct seen {
        struct http_answer answer;
        size_t heads, ends, stop;          /* stop: after so many callbacks; 0: never */
};

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void count(struct seen *seen)
{
        require(!seen->answer.stopped);
        if (seen->stop && --seen->stop == 0)
                http_answer_stop(&seen->answer);
}

static void on_head(void *owner)
{
        struct seen *seen = owner;
        count(seen);
        require(seen->heads++ == 0 && seen->answer.headers_n <= HTTP_ANSWER_HEADERS_MAX && seen->answer.status);
        for (size_t i = 0; i < seen->answer.headers_n; i++)
                require(strlen(seen->answer.headers[i].value) <= HTTP_ANSWER_VALUE_MAX);
}

static void on_bytes(void *owner, const char *bytes, size_t len)
{
        struct seen *seen = owner;
        count(seen);
        require(bytes && len && seen->heads == 1 && !seen->ends);
}

static void on_end(void *owner)
{
        struct seen *seen = owner;
        count(seen);
        require(seen->heads == 1 && seen->ends++ == 0 && !seen->answer.raw);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static const struct http_answer_events events = { on_head, on_bytes, on_end };
        if (!len)
                return 0;
        struct seen seen = { .stop = bytes[0] >> 6 };
        size_t step = 1 + (bytes[0] >> 2 & 15) * 7;
        http_answer_init(&seen.answer, &events, &seen);
        seen.answer.head = bytes[0] & 1;
        seen.answer.upgrade = bytes[0] & 2;
        bool good = true;
        for (size_t at = 1; good && at < len; at += step)
                good = http_answer_take(&seen.answer, (const char *)bytes + at, min_u64(step, len - at));
        if (good)
                http_answer_take(&seen.answer, "", 0);
        http_answer_done(&seen.answer);
        return 0;
}
