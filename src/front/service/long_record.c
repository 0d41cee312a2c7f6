/* Records in files; see long_record.h. */
#include "front/service/long_record.h"

#include "base/discard.h"

#include <fcntl.h>
#include <stdio.h>

void long_record_init(struct long_record *record, const struct store_room *room)
{
        *record = (struct long_record){ .use = { .room = *room }, .fd = -1 };
        record->use.room.file_max = 0;   /* a limit for files of clients */
}

static int write_incoming(struct long_record *record, struct store *store, const char *tenant, const char *text,
        size_t len, struct csn_error *err)
{
        struct incoming *incoming = NULL;
        int rc = incoming_open_apart(store, tenant, &record->use, &incoming, err);
        rc = rc < 0 ? rc : incoming_add(incoming, text, len, err);
        rc = rc < 0 ? rc : incoming_seal(incoming, err);
        if (rc < 0)
                incoming_close(incoming);
        else
                record->incoming = incoming;
        return rc;
}

void long_record_write(struct long_record *record, struct store *store, const char *tenant, const char *text,
        size_t len)
{
        struct csn_error err = { 0 };
        record->size = len;
        if (store && write_incoming(record, store, tenant, text, len, &err) == 0)
                return;
        if (store)
                log_text(LOG_ERROR, "a record of %zu bytes is kept in memory: %s", len, err.text);
        record->fd = io_memfd("record", text, len);
        if (record->fd < 0)
                log_text(LOG_ERROR, "no file for a record of %zu bytes: %s", len, strerrordesc_np(errno));
}

bool long_record_keep(struct long_record *record, const char *id, int64_t until_ms)
{
        struct csn_error err;
        if (!record->incoming)
                return false;
        bool kept = runs_keep_content(record->incoming, id, until_ms, &err) == 0;
        if (!kept) {
                log_text(LOG_ERROR, "the record of %s is not kept over a restart: %s", id, err.text);
                record->fd = incoming_open_content(record->incoming);
        }
        incoming_close(record->incoming);
        record->incoming = NULL;
        return kept;
}

int long_record_open(const struct long_record *record)
{
        return record->fd < 0 ? -1 : fcntl(record->fd, F_DUPFD_CLOEXEC, 0);
}

void long_record_done(struct long_record *record, struct workers *workers, const char *tenant)
{
        incoming_close(record->incoming);
        record->incoming = NULL;
        discard_fd(workers, tenant, &record->fd);
}
