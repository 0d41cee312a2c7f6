/* Bytes as hexadecimal digits, and random ids. */
#include "base/base.h"

#include <string.h>
#include <sys/random.h>

void hex_print(const void *bytes, size_t len, char *text)
{
        static const char digits[] = "0123456789abcdef";
        const uint8_t *at = bytes;
        for (size_t i = 0; i < len; i++) {
                text[2 * i] = digits[at[i] >> 4];
                text[2 * i + 1] = digits[at[i] & 15];
        }
        text[2 * len] = 0;
}

void hex_random(size_t len, char *text)
{
        uint8_t random[HEX_RANDOM_MAX] = { 0 };
        len = min_u64(len, sizeof random);
        do {
                while (getrandom(random, len, 0) != (ssize_t)len)
                        ;
        } while (!memcmp(random, (uint8_t[HEX_RANDOM_MAX]){ 0 }, len));
        hex_print(random, len, text);
}

uint64_t hash_text(const char *text, size_t len)
{
        uint64_t h = 14695981039346656037U;
        for (size_t i = 0; i < len; i++)
                h = (h ^ (unsigned char)text[i]) * 1099511628211U;
        return h ^ h >> 29;
}
