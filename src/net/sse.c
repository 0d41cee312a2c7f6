/* Events, line by line; see sse.h. */
#include "net/sse.h"

#include <stdio.h>

void sse_init(struct sse *sse, size_t max)
{
        *sse = (struct sse){ .retry_ms = SSE_RETRY_MS };
        buf_init(&sse->line, max + 16);    /* a line has the name of a field, too */
        buf_init(&sse->data, max + 1);     /* and a message its last newline, until complete */
}

void sse_done(struct sse *sse)
{
        buf_done(&sse->line);
        buf_done(&sse->data);
}

void sse_reset(struct sse *sse)
{
        sse->line.len = sse->data.len = 0;
}

static bool is(const char *line, size_t len, const char *name)
{
        return strlen(name) == len && memcmp(line, name, len) == 0;
}

static void take_id(struct sse *sse, const char *value, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if (value[i] < ' ' || value[i] > '~')
                        return;
        if (len < sizeof sse->id)
                snprintf(sse->id, sizeof sse->id, "%.*s", (int)len, value);
}

static void take_retry(struct sse *sse, const char *value, size_t len)
{
        uint64_t ms = 0;
        for (size_t i = 0; i < len; i++) {
                if (value[i] < '0' || value[i] > '9')
                        return;
                ms = min_u64(ms * 10 + (uint64_t)(value[i] - '0'), SSE_RETRY_MS_MAX);
        }
        if (len)
                sse->retry_ms = max_u64(ms, SSE_RETRY_MS_MIN);
}

/* False: its data is too long. */
static bool take_field(struct sse *sse, const char *line, size_t len)
{
        const char *colon = memchr(line, ':', len);
        size_t name = colon ? (size_t)(colon - line) : len, skip = colon ? name + 1 : len;
        if (skip < len && line[skip] == ' ')
                skip++;
        if (is(line, name, "data"))
                return buf_add(&sse->data, line + skip, len - skip) && buf_add(&sse->data, "\n", 1);
        if (is(line, name, "id"))
                take_id(sse, line + skip, len - skip);
        else if (is(line, name, "retry"))
                take_retry(sse, line + skip, len - skip);
        return true;
}

int sse_take(struct sse *sse, const char *bytes, size_t len, bool (*message)(void *owner, const char *text, size_t len),
        void *owner, struct csn_error *err)
{
        const char *end = bytes + len;
        bool fits = true;
        for (const char *newline; fits && (newline = memchr(bytes, '\n', (size_t)(end - bytes))); bytes = newline + 1) {
                const char *line = bytes;
                size_t n = (size_t)(newline - bytes);
                if (sse->line.len) {
                        fits = buf_add(&sse->line, bytes, n);
                        line = sse->line.bytes;
                        n = sse->line.len;
                        sse->line.len = 0;
                }
                n -= n && line[n - 1] == '\r';
                if (n) {
                        fits = fits && take_field(sse, line, n);
                        continue;
                }
                size_t whole = sse->data.len;
                sse->data.len = 0;
                sse->events += whole > 0;
                if (whole > 1 && !message(owner, sse->data.bytes, whole - 1))
                        return 0;
        }
        return fits && buf_add(&sse->line, bytes, (size_t)(end - bytes))
                ? 0
                : err_set(err, CSN_E_INPUT, 0, "it sends a message that is too long");
}
