/* Two streams in a text; see interleave.h. */
#include "front/compat/interleave.h"

void interleave_init(struct interleave *lines, size_t max)
{
        *lines = (struct interleave){ 0 };
        buf_init(&lines->text, max);
        for (unsigned i = 0; i < INTERLEAVE_STREAMS; i++)
                buf_init(&lines->rests[i], max);
}

/*
 * A chunk beyond the ceiling is added as far as there is room, so a cut text still has its beginning.
 */
static void add(struct buf *buf, const char *bytes, size_t len)
{
        size_t room = buf->max - buf->len;
        if (len)
                buf_add(buf, bytes, len < room ? len : room);
}

static void flush(struct interleave *lines, struct buf *rest)
{
        add(&lines->text, rest->bytes, rest->len);
        rest->len = 0;
}

void interleave_add(struct interleave *lines, int stream, const void *bytes, size_t len)
{
        unsigned own = (unsigned)stream - 1;
        struct buf *rest = &lines->rests[own];
        const char *from = bytes, *last = memrchr(bytes, '\n', len);
        size_t whole = last ? (size_t)(last - from) + 1 : 0;
        if (whole) {
                flush(lines, rest);
                add(&lines->text, from, whole);
        }
        if (!rest->len && whole < len)
                lines->first = lines->rests[!own].len ? !own : own;
        add(rest, from + whole, len - whole);
}

void interleave_end(struct interleave *lines)
{
        flush(lines, &lines->rests[lines->first]);
        flush(lines, &lines->rests[!lines->first]);
}

void interleave_done(struct interleave *lines)
{
        buf_done(&lines->text);
        for (unsigned i = 0; i < INTERLEAVE_STREAMS; i++)
                buf_done(&lines->rests[i]);
}
