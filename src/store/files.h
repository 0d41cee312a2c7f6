/* Uploads, for files.c and upload.c. */
#ifndef STORE_FILES_H
#define STORE_FILES_H

#include "store/sql.h"

#include <openssl/evp.h>

#define RECORD_FILE_PREFIX "record_"       /* of the file of a long record; the id of its run follows */
#define RECORD_ID_MAX 64                   /* bytes of the id of a run */
#define RECORD_FILE_NAME_MAX (sizeof RECORD_FILE_PREFIX + RECORD_ID_MAX)
#define PROBLEMS_FILE_PREFIX "problems_"   /* of the file of a problem set; the id of the set follows */
#define PROBLEMS_FILE_NAME_MAX (sizeof PROBLEMS_FILE_PREFIX + PROBLEM_SET_ID_MAX)
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
        bool is_listed;                    /* in the list of the store */
        struct store_use *use;             /* of an upload that is apart; or NULL */
        char sha256[65];                   /* after incoming_seal(), or "" */
};

/*
 * Check for space for `more` bytes of a tenant, with all uploads in progress except `but`.  Errors: as
 * incoming_add().
 */
int room_check(struct store *store, const char *tenant, const struct store_room *room, const struct incoming *but,
        uint64_t more, struct csn_error *err);
/*
 * Add a row with insert(store, row) and give the received content its permanent name, in one transaction, if the tenant
 * has space for both.  Errors: those of insert(), and as incoming_add().
 */
typedef int content_insert(struct store *store, const void *row, struct csn_error *err);
int content_add(struct incoming *incoming, const char *name, content_insert *insert, const void *row,
        struct csn_error *err);
/*
 * Delete expired rows and their contents.  sql deletes at most ?2 rows whose end is not after ?1, and returns the names
 * of their contents.  *ret_more: more rows may have expired.
 */
int content_clean(struct store *store, const char *sql, size_t most, bool *ret_more, struct csn_error *err);
/* SHA-256 of the received content, in hexadecimal; ends the upload's digest.  Errors: CSN_E_SYSTEM. */
int incoming_digest(struct incoming *incoming, char hex[static 65], struct csn_error *err);
/* Remove content that has no row; a crash before the removal leaves the content to files_sweep(). */
void content_remove(const struct store *store, const char *share, const char *name);
/* Rename the upload to its permanent name in the same folder.  -1 with errno. */
int incoming_name(struct incoming *incoming, const char *name);

#endif
