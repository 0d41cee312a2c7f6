/* UTF-8 of RFC 3629: no surrogates, no code point above U+10FFFF, no overlong forms. */
#include "base/base.h"

size_t utf8_step(const char *bytes, size_t len)
{
        const unsigned char *b = (const unsigned char *)bytes;
        if (len == 0)
                return 0;
        if (b[0] < 0x80)
                return 1;
        size_t need = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
        if (b[0] < 0xc2 || b[0] > 0xf4 || len < need)
                return 0;
        for (size_t i = 1; i < need; i++)
                if ((b[i] & 0xc0) != 0x80)
                        return 0;
        if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) || (b[0] == 0xf0 && b[1] < 0x90) ||
            (b[0] == 0xf4 && b[1] > 0x8f))
                return 0;
        return need;
}

bool utf8_valid(const char *bytes, size_t len)
{
        while (len) {
                uint64_t eight;
                if (len >= sizeof eight && (memcpy(&eight, bytes, sizeof eight), (eight & 0x8080808080808080U) == 0)) {
                        bytes += sizeof eight;
                        len -= sizeof eight;
                        continue;
                }
                size_t n = utf8_step(bytes, len);
                if (!n)
                        return false;
                bytes += n;
                len -= n;
        }
        return true;
}

size_t utf8_whole(const char *bytes, size_t len)
{
        for (size_t back = 1; back <= 3 && back <= len; back++) {
                unsigned char c = (unsigned char)bytes[len - back];
                if (c < 0x80 || c > 0xf4)
                        return len;
                if (c >= 0xc0)
                        return back < (c >= 0xf0 ? 4U : c >= 0xe0 ? 3U : 2U) ? len - back : len;
        }
        return len;
}
