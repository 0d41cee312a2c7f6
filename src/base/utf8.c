/* UTF-8 as RFC 3629 has it: no surrogates, nothing above U+10FFFF, no overlong forms. */
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
                size_t n = utf8_step(bytes, len);
                if (!n)
                        return false;
                bytes += n;
                len -= n;
        }
        return true;
}
