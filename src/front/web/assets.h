/* assets: the files of the page, in the order of their paths.  A path of NULL ends the list. */
#ifndef FRONT_WEB_ASSETS_H
#define FRONT_WEB_ASSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct web_asset {
        const char *path;                  /* "/ui/page-A6YN3KGA.js"; "/ui/" is the page itself */
        const char *type;                  /* media type */
        const char *hash;                  /* SHA-256 of the content, in hexadecimal */
        bool immutable;                    /* the path has a hash of the content; else a place for a nonce */
        const uint8_t *bytes;              /* gzip of an immutable file, made at build; else the file itself */
        size_t bytes_len, len;             /* of `bytes`, and of the content */
};

extern const struct web_asset web_assets[];

#endif
