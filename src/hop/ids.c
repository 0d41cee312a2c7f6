/* Ids with the tag of their worker; base/ids.c makes the digits. */
#include "hop/secrets.h"

#include <openssl/crypto.h>
#include <stdio.h>

#define SEAL_LABEL "caisson id "           /* no text of a call begins so, see sign.c */
#define SEAL_DIGITS 8
#define SHORT_SEAL_DIGITS 4

static void seal(const struct hop_keys *keys, size_t i, const char *digits, size_t len, uint8_t ret[static 8])
{
        char text[sizeof SEAL_LABEL + HOP_ID_LEN];
        uint8_t mac[HOP_MAC_LEN];
        int text_len = snprintf(text, sizeof text, SEAL_LABEL "%.*s", (int)len, digits);
        hop_mac(keys, i, text, (size_t)text_len, mac);
        memcpy(ret, mac, 8);
}

static void seal_new(const void *owner, const char *digits, size_t len, uint8_t ret[8])
{
        seal(owner, 0, digits, len, ret);
}

void hop_name_ids(const struct hop_keys *keys, const char *tag)
{
        static struct id_form form;
        form = (struct id_form){ .seal = seal_new, .owner = keys };
        snprintf(form.tag, sizeof form.tag, "%s", tag);
        id_set_form(&form);
}

/* Bytes of the prefix: up to the last "_", or the i of an id of E2B. */
static size_t prefix_of(const char *text, size_t len)
{
        const char *mark = memrchr(text, '_', len);
        if (mark)
                return (size_t)(mark - text) + 1;
        return len == 1 + HOP_SHORT_ID_LEN && text[0] == 'i';
}

/* Copy the digits behind a prefix, without the hyphens of a UUID.  Returns their number; 0: the text is no such id. */
static size_t plain_digits(const char *text, size_t len, char ret[static HOP_ID_LEN + 1])
{
        size_t n = 0, skip = prefix_of(text, len);
        bool is_uuid = len - skip == ID_UUID_LEN;
        for (size_t i = skip; i < len; i++) {
                size_t at = i - skip;
                if (is_uuid && (at == 8 || at == 13 || at == 18 || at == 23) && text[i] == '-')
                        continue;
                bool is_digit = text[i] >= '0' && text[i] <= '9', is_letter = text[i] >= 'a' && text[i] <= 'z';
                if (n == HOP_ID_LEN || (!is_digit && !is_letter))
                        return 0;
                ret[n++] = text[i];
        }
        ret[n] = 0;
        bool is_hex = n == HOP_ID_LEN && strspn(ret, "0123456789abcdef") == n;
        return is_hex || n == HOP_SHORT_ID_LEN ? n : 0;
}

/* The same of an id in any form; see id_to_compact(). */
static size_t digits_of(const char *text, size_t len, char ret[static HOP_ID_LEN + 1])
{
        size_t n = plain_digits(text, len, ret);
        return !n && id_from_compact(text, len, ret) ? HOP_ID_LEN : n;
}

bool hop_tag_unsealed(const char *text, size_t len, char ret_tag[HOP_TAG_LEN + 1])
{
        char digits[HOP_ID_LEN + 1];
        size_t n = digits_of(text, len, digits);
        if (n == HOP_SHORT_ID_LEN)
                return id_short_tag(digits, ret_tag);
        if (n)
                snprintf(ret_tag, HOP_TAG_LEN + 1, "%.*s", HOP_TAG_LEN, digits);
        return n > 0;
}

bool hop_tag_of(const struct hop_keys *keys, const char *text, size_t len, char ret_tag[HOP_TAG_LEN + 1])
{
        char digits[HOP_ID_LEN + 1], expected[9];
        size_t n = digits_of(text, len, digits), seal_len = n == HOP_ID_LEN ? SEAL_DIGITS : SHORT_SEAL_DIGITS;
        bool is_sealed = false;
        for (size_t i = 0; n && i < keys->n; i++) {
                uint8_t bytes[8];
                seal(keys, i, digits, n - seal_len, bytes);
                id_print_seal(bytes, n, expected);
                is_sealed |= CRYPTO_memcmp(expected, digits + n - seal_len, seal_len) == 0;
        }
        return is_sealed && hop_tag_unsealed(text, len, ret_tag);
}
