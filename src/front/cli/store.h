/* Helpers shared by the commands that show or change the store. */
#ifndef FRONT_CLI_STORE_H
#define FRONT_CLI_STORE_H

#include "front/cli/cli.h"
#include "store/store.h"

/* Append a time to a table: "2026-11-21 10:00" in UTC, "-" for never.  ms since the epoch. */
void store_cell(struct buf *buf, int64_t ms);
/* A time in RFC 3339 format, null for never.  The caller owns the reference. */
json_t *store_time(int64_t ms);

/* Parse the number of --NAME, between min and max.  Errors: CSN_E_INPUT naming option, value and range. */
int store_number(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *ret, struct csn_error *err);

#endif
