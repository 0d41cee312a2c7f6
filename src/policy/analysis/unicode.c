/* Text: Unicode's normal form by utf8proc, which has the tables of the standard, and encodings. */
#include "policy/analysis/facts.h"

#include <utf8proc.h>

static bool is_ascii(const char *text, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)text[i] >= 0x80)
                        return false;
        return true;
}

const char *unicode_normal(struct arena *arena, const char *text, size_t len, size_t *ret_len)
{
        utf8proc_uint8_t *normal = NULL;
        *ret_len = len;
        if (is_ascii(text, len))
                return text;
        utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)len, &normal,
                                          UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
        if (n < 0)
                return text;
        char *copy = arena_copy(arena, (const char *)normal, (size_t)n);
        free(normal);
        *ret_len = (size_t)n;
        return copy;
}

char *unicode_latin1(struct arena *arena, const char *text, size_t len, size_t *ret_len)
{
        char *out = arena_alloc(arena, 2 * len + 1);
        size_t n = 0;
        for (size_t i = 0; i < len; i++) {
                unsigned char c = (unsigned char)text[i];
                if (c >= 0x80)
                        out[n++] = (char)(0xc0 | c >> 6);
                out[n++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
        }
        *ret_len = n;
        return out;
}

bool unicode_put(struct buf *buf, uint32_t code)
{
        utf8proc_uint8_t bytes[4];
        if (code > 0x10ffff)
                return false;
        return buf_add(buf, bytes, (size_t)utf8proc_encode_char((utf8proc_int32_t)code, bytes));
}
