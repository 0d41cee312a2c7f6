/* What comes in, as files.c sees it. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "store/sql.h"

#include <openssl/evp.h>

#define INCOMING_NAME_MAX 64
#define INCOMING_PREFIX "new."             /* then the opener, who lives or not (secret.c), and a number */

struct incoming {
        struct incoming *next;
        struct store *store;
        char tenant[TENANT_MAX + 1];
        struct store_room room;
        int fd;
        char name[INCOMING_NAME_MAX];      /* in the folder; "" once it is elsewhere */
        uint64_t size;
        EVP_MD_CTX *digest;
};

/* Whether a tenant may keep so many bytes more, with all that comes in but one: errors as incoming_add(). */
int room_check(struct store *store, const char *tenant, const struct store_room *room, const struct incoming *but, uint64_t more, struct csn_error *err);
/* The digest of all that came, which ends it. */
int incoming_digest(struct incoming *incoming, char hex[static 65], struct csn_error *err);
/* Take it away from its name of its own to this one of the folder; for good.  -1 with errno. */
int incoming_name(struct incoming *incoming, const char *name);

#endif
