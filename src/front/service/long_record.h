/*
 * long_record: the text of a record above SERVICE_STORED_MAX, in a file and not in memory.
 *
 * The helper thread that encodes a record writes its text with long_record_write().  In the loop long_record_keep()
 * makes the file known to the store then.  Where there is no store, or the store refuses the file, the file has no
 * name, and exists until long_record_done().
 */
#ifndef FRONT_SERVICE_LONG_RECORD_H
#define FRONT_SERVICE_LONG_RECORD_H

#include "base/worker.h"
#include "store/store.h"

struct long_record {
        struct incoming *incoming;         /* written, and not yet kept; or NULL */
        struct store_use use;              /* the limits of the tenant */
        int fd;                            /* of the file without a name; -1: none */
        uint64_t size;                     /* bytes */
};

/* room: the limits of the tenant's stored bytes. */
void long_record_init(struct long_record *record, const struct store_room *room);
/*
 * Write the text of a record of a tenant; store may be NULL.  For a helper thread; the store's folder of files is open.
 * After a failure, which is logged, the record is in no file, and the caller keeps the text.
 */
void long_record_write(struct long_record *record, struct store *store, const char *tenant, const char *text,
        size_t len);
/* Make a written record known to the store, as the record of the run `id`, until until_ms.  False: it is not stored. */
bool long_record_keep(struct long_record *record, const char *id, int64_t until_ms);
/* A descriptor of the file without a name, for reading from offset 0 on; the caller's.  -1: there is none, or errno. */
int long_record_open(const struct long_record *record);
/* A helper thread closes a long file without a name.  tenant: the share of its job. */
void long_record_done(struct long_record *record, struct workers *workers, const char *tenant);

#endif
