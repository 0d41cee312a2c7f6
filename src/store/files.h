/* Uploads, for files.c and upload.c. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "store/sql.h"

#include <openssl/evp.h>

#define INCOMING_NAME_MAX 64
#define INCOMING_PREFIX "new."             /* followed by the opener's number (secret.c) and a counter */

/*
 * In the list of the store from incoming_open() to incoming_close(), or apart: then a helper thread writes the content,
 * and uses nothing of the store but the descriptor of the folder.
 */
struct incoming {
        struct incoming *next;
        struct store *store;
        char tenant[TENANT_MAX + 1];
        struct store_room room;
        int fd;
        char name[INCOMING_NAME_MAX];      /* in the folder; "" after the move out of the folder */
        uint64_t size;
        EVP_MD_CTX *digest;
        struct store_use *use;             /* of an upload that is apart; or NULL */
        char sha256[65];                   /* after incoming_seal(), or "" */
};

/*
 * Check for space for `more` bytes of a tenant, with all uploads in progress except `but`.  Errors: as
 * incoming_add().
 */
int room_check(struct store *store, const char *tenant, const struct store_room *room, const struct incoming *but,
        uint64_t more, struct csn_error *err);
/* SHA-256 of the received content, in hexadecimal; ends the upload's digest.  Errors: CSN_E_SYSTEM. */
int incoming_digest(struct incoming *incoming, char hex[static 65], struct csn_error *err);
/* Rename the upload to its permanent name in the same folder.  -1 with errno. */
int incoming_name(struct incoming *incoming, const char *name);

#endif
