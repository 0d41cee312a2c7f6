/* Bytes as hexadecimal digits, and random ids. */
#include "base/base.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

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

#define BATCH 1024

void hex_id(size_t len, char *text)
{
        static _Thread_local uint8_t batch[BATCH];
        static _Thread_local size_t left;
        static _Thread_local pid_t pid;
        len = min_u64(len, HEX_RANDOM_MAX);
        if (left < len || pid != getpid()) {
                while (getrandom(batch, sizeof batch, 0) != (ssize_t)sizeof batch)
                        ;
                left = sizeof batch;
                pid = getpid();   /* a child of fork(2) has another batch */
        }
        left -= len;
        hex_print(batch + left, len, text);
        if (strspn(text, "0") == 2 * len)
                text[0] = '1';
}

uint64_t hash_text(const char *text, size_t len)
{
        uint64_t h = 14695981039346656037U;
        for (size_t i = 0; i < len; i++)
                h = (h ^ (unsigned char)text[i]) * 1099511628211U;
        return h ^ h >> 29;
}
