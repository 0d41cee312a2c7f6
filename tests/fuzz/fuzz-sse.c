/* Hostile streams of events: the same messages however the bytes come, and nothing beyond the bounds. */
#include "net/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define MAX 64

static bool add(void *owner, const char *text, size_t len)
{
        if (!len || len > MAX)
                abort();
        return buf_add(owner, text, len) && buf_add(owner, "\n", 1);
}

static int take(const uint8_t *bytes, size_t len, size_t step, struct buf *ret)
{
        struct sse sse;
        struct csn_error err;
        int rc = 0;
        sse_init(&sse, MAX);
        for (size_t at = 0; rc == 0 && at < len; at += step)
                rc = sse_take(&sse, (const char *)bytes + at, min_u64(step, len - at), add, ret, &err);
        if (strlen(sse.id) >= SSE_ID_MAX || sse.retry_ms > SSE_RETRY_MS_MAX)
                abort();
        sse_done(&sse);
        return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct buf once, slowly;
        buf_init(&once, MIB);
        buf_init(&slowly, MIB);
        int rc = take(bytes, len, len ? len : 1, &once);
        /* A line that is too long is told sooner where it comes in pieces. */
        if (rc == 0 && take(bytes, len, 3, &slowly) == 0 &&
                (once.len != slowly.len || (once.len && memcmp(once.bytes, slowly.bytes, once.len) != 0)))
                abort();
        buf_done(&once);
        buf_done(&slowly);
        return 0;
}
