/* The secrets of a key file; for the files of this folder. */
#ifndef HOP_SECRETS_H
#define HOP_SECRETS_H

#include "hop/hop.h"

#include <sys/stat.h>

#define HOP_MAC_LEN 32                     /* bytes of a HMAC-SHA256 */

struct hop_secret {
        char text[HOP_SECRET_MAX + 1];
        size_t len;
};

struct hop_keys {
        char *path;
        struct stat read;                  /* of the file at the last reading; zeros: there was none */
        struct hop_secret secrets[HOP_KEYS_MAX];
        size_t n;                          /* at least 1 */
};

/* HMAC-SHA256 with the i-th secret; random bytes, which verify nothing, if libcrypto has no SHA-256. */
void hop_mac(const struct hop_keys *keys, size_t i, const char *bytes, size_t len, uint8_t ret[static HOP_MAC_LEN]);

#endif
