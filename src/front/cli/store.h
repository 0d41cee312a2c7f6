/* What the commands about the store share. */
#ifndef FRONT_CLI_STORE_H
#define FRONT_CLI_STORE_H

#include "front/cli/cli.h"
#include "store/store.h"

/* "2026-11-21 10:00" in UTC, "-" for never. */
void store_cell(struct buf *buf, int64_t ms);
/* RFC 3339, null for never.  The caller's reference. */
json_t *store_time(int64_t ms);

/* A number of --NAME between min and max.  Errors: CSN_E_INPUT naming option, value and what it may be. */
int store_number(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *ret, struct csn_error *err);

#endif
