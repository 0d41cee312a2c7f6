/* The name of a layer. */
#include "layers/layers.h"

#include <openssl/sha.h>
#include <stdio.h>

#define RULES "caisson layer 1" /* hashed first; each version of the rules has another text */

static void put(struct buf *buf, const char *text)
{
        uint64_t len = strlen(text);
        char size[8];
        for (size_t i = 0; i < sizeof size; i++)
                size[i] = (char)(len >> (56 - 8 * i));
        buf_add(buf, size, sizeof size);
        buf_add(buf, text, len);
}

static int compare(const void *a, const void *b)
{
        const struct layer_package *left = a, *right = b;
        int order = strcmp(left->name, right->name);
        order = order ? order : strcmp(left->version, right->version);
        order = order ? order : strcmp(left->file, right->file);
        return order ? order : strcmp(left->hash, right->hash);
}

void layer_id(const struct layer_key *key, char ret[static LAYER_ID_MAX])
{
        const char *const fields[] = { RULES, key->domain, key->language, key->runtime, key->arch, key->libc,
                key->image, key->index, key->build };
        struct layer_package *sorted = mem_alloc((key->lock_n + 1) * sizeof *sorted);
        uint8_t digest[SHA256_DIGEST_LENGTH];
        char hex[2 * LAYER_ID_BYTES + 1];
        struct buf buf;
        buf_init(&buf, GIB); /* a lock has at most LAYER_META_MAX bytes */
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
                put(&buf, fields[i]);
        if (key->lock_n)
                memcpy(sorted, key->lock, key->lock_n * sizeof *sorted);
        qsort(sorted, key->lock_n, sizeof *sorted, compare);
        for (size_t i = 0; i < key->lock_n; i++) {
                put(&buf, sorted[i].name);
                put(&buf, sorted[i].version);
                put(&buf, sorted[i].file);
                put(&buf, sorted[i].hash);
        }
        SHA256((const unsigned char *)buf.bytes, buf.len, digest);
        hex_print(digest, LAYER_ID_BYTES, hex);
        snprintf(ret, LAYER_ID_MAX, LAYER_ID_PREFIX "%s", hex);
        buf_done(&buf);
        free(sorted);
}

static int digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool layer_id_parse(const char *text, uint8_t ret[static LAYER_ID_BYTES])
{
        uint8_t bytes[LAYER_ID_BYTES];
        size_t prefix = strlen(LAYER_ID_PREFIX);
        if (strlen(text) != LAYER_ID_MAX - 1 || strncmp(text, LAYER_ID_PREFIX, prefix) != 0)
                return false;
        for (size_t i = 0; i < LAYER_ID_BYTES; i++) {
                int high = digit(text[prefix + 2 * i]), low = digit(text[prefix + 2 * i + 1]);
                if (high < 0 || low < 0)
                        return false;
                bytes[i] = (uint8_t)(high << 4 | low);
        }
        memcpy(ret, bytes, sizeof bytes);
        return true;
}
