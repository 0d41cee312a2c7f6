/* Buffers with a ceiling, and the capture of a stream's head and tail. */
#include "base/base.h"

#include <stdio.h>

#define FIRST_SIZE 256     /* most messages and records have more than a few bytes, and come in many parts */

void buf_init(struct buf *buf, size_t max)
{
        *buf = (struct buf){ .max = max };
}

void buf_done(struct buf *buf)
{
        free(buf->bytes);
        *buf = (struct buf){ .max = buf->max };
}

static bool reserve(struct buf *buf, size_t more)
{
        if (more > buf->max || buf->len > buf->max - more)
                return false;
        size_t need = buf->len + more + 1;
        if (need > buf->size) {
                size_t size = buf->size * 2 > need ? buf->size * 2 : need;
                if (size < FIRST_SIZE)
                        size = FIRST_SIZE;
                if (size > buf->max + 1)
                        size = buf->max + 1;
                buf->bytes = mem_resize(buf->bytes, size);
                buf->size = size;
        }
        return true;
}

void buf_reserve(struct buf *buf, size_t len)
{
        size_t size = (len < buf->max ? len : buf->max) + 1;
        if (size <= buf->size)
                return;
        buf->bytes = mem_resize(buf->bytes, size);
        buf->bytes[buf->len] = 0;
        buf->size = size;
}

bool buf_add(struct buf *buf, const void *bytes, size_t len)
{
        if (!reserve(buf, len))
                return false;
        if (len)
                memcpy(buf->bytes + buf->len, bytes, len);
        buf->len += len;
        buf->bytes[buf->len] = 0;
        return true;
}

char *buf_extend(struct buf *buf, size_t len)
{
        if (!reserve(buf, len))
                return NULL;
        char *at = buf->bytes + buf->len;
        buf->len += len;
        buf->bytes[buf->len] = 0;
        return at;
}

#define TRIM_MIN (64 * KIB)    /* bytes; realloc(3) moves less for nothing */

void buf_trim(struct buf *buf)
{
        if (buf->size - buf->len < TRIM_MIN)
                return;
        buf->size = buf->len + 1;
        buf->bytes = mem_resize(buf->bytes, buf->size);
}

bool buf_printf(struct buf *buf, const char *fmt, ...)
{
        va_list args, again;
        va_start(args, fmt);
        va_copy(again, args);
        int len = vsnprintf(NULL, 0, fmt, args);
        va_end(args);
        bool fits = len >= 0 && reserve(buf, (size_t)len);
        if (fits) {
                vsnprintf(buf->bytes + buf->len, (size_t)len + 1, fmt, again);
                buf->len += (size_t)len;
        }
        va_end(again);
        return fits;
}

void capture_init(struct capture *cap, size_t max)
{
        *cap = (struct capture){ .max = max };
}

void capture_done(struct capture *cap)
{
        free(cap->bytes);
        *cap = (struct capture){ .max = cap->max };
}

void capture_drop(struct capture *cap)
{
        uint64_t total = cap->total;
        capture_done(cap);
        cap->total = total;
}

static size_t head_max(const struct capture *cap)
{
        return cap->max - cap->max / 2;
}

/* Most programs print little: the memory grows with the output, up to the ceiling. */
static void grow(struct capture *cap, size_t need)
{
        if (need <= cap->size)
                return;
        size_t size = cap->size * 2 > need ? cap->size * 2 : need;
        if (size < 4 * KIB)
                size = 4 * KIB;
        if (size > cap->max)
                size = cap->max;
        cap->bytes = mem_resize(cap->bytes, size);
        cap->size = size;
}

void capture_add(struct capture *cap, const void *bytes, size_t len)
{
        const char *at = bytes;
        cap->total += len;

        size_t room = head_max(cap) - cap->head;
        size_t n = len < room ? len : room;
        if (n) {
                grow(cap, cap->head + n);
                memcpy(cap->bytes + cap->head, at, n);
                cap->head += n;
                at += n;
                len -= n;
        }
        if (!len)
                return;

        size_t ring_max = cap->max / 2;
        if (!ring_max)
                return;
        if (len >= ring_max) {
                at += len - ring_max;
                len = ring_max;
                cap->ring = cap->ring_at = 0;
        }
        /* The ring turns only when full; until then the ring grows like the head. */
        if (cap->ring < ring_max) {
                n = ring_max - cap->ring < len ? ring_max - cap->ring : len;
                grow(cap, head_max(cap) + cap->ring + n);
                memcpy(cap->bytes + head_max(cap) + cap->ring, at, n);
                cap->ring += n;
                at += n;
                len -= n;
        }
        while (len) {
                n = ring_max - cap->ring_at < len ? ring_max - cap->ring_at : len;
                memcpy(cap->bytes + head_max(cap) + cap->ring_at, at, n);
                cap->ring_at = (cap->ring_at + n) % ring_max;
                at += n;
                len -= n;
        }
}

char *capture_text(const struct capture *cap, struct arena *arena, size_t *ret_len, size_t *ret_cut)
{
        size_t len = cap->head + cap->ring;
        char *text = arena_alloc(arena, len + 1);
        if (cap->head)
                memcpy(text, cap->bytes, cap->head);
        if (cap->ring) {
                const char *ring = cap->bytes + head_max(cap);
                size_t first = cap->ring - cap->ring_at;
                memcpy(text + cap->head, ring + cap->ring_at, first);
                memcpy(text + cap->head + first, ring, cap->ring_at);
        }
        *ret_len = len;
        *ret_cut = cap->head;
        return text;
}
