/* What a worker takes of a caller before it trusts the caller: an id (first byte 0), or the signature of a call. */
#include "hop/hop.h"

#include <fcntl.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define SECRET "0123456789abcdef0123456789abcdef\n"

static struct hop_keys *open_keys(void)
{
        char path[64];
        struct hop_keys *keys;
        struct csn_error err;
        auto_fd fd = io_memfd("keys", SECRET, strlen(SECRET));
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (hop_keys_open(path, &keys, &err) < 0)
                abort();
        hop_name_ids(keys, "0badcafe");
        return keys;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static struct hop_keys *keys;
        struct arena arena = { 0 };
        struct hop_claims *claims;
        struct csn_error err;
        char tag[HOP_TAG_LEN + 1];
        if (!keys)
                keys = open_keys();
        if (len < 1)
                return 0;
        char *text = arena_copy(&arena, (const char *)bytes + 1, len - 1);
        if (bytes[0] == 0) {
                /* Whoever has a seal has a tag. */
                if (hop_tag_of(keys, text, len - 1, tag) && !hop_tag_unsealed(text, len - 1, tag))
                        abort();
        } else if (hop_verify(keys, text, "GET", "/", &arena, &claims, &err) == 0) {
                abort();                   /* nobody finds a HMAC */
        }
        arena_done(&arena);
        return 0;
}
