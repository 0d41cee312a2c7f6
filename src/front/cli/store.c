/* What caisson keys and caisson runs have in common. */
#include "front/cli/store.h"

#include <inttypes.h>

void store_cell(struct buf *buf, int64_t ms)
{
        char text[40] = "-";
        if (ms) {
                time_print(ms, text, sizeof text);
                text[strlen("2026-11-21")] = ' ';
                text[strlen("2026-11-21 10:00")] = 0;
        }
        cli_add_cell(buf, 16, text);
}

json_t *store_time(int64_t ms)
{
        char text[40];
        time_print(ms, text, sizeof text);
        return ms ? json_string(text) : json_null();
}

int store_number(const char *name, const char *value, uint64_t min, uint64_t max, uint64_t *ret, struct csn_error *err)
{
        char *end;
        errno = 0;
        unsigned long long number = strtoull(value, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end || errno || number < min || number > max)
                return err_field(err, name, "--%s is \"%.60s\"; it has to be a number from %" PRIu64 " to %" PRIu64, name, value, min, max);
        *ret = number;
        return 0;
}
