/* The calls of a broker in the record of its run: within bounds, with the memory of the broker. */
#include "tools/tools_private.h"

#define KEPT_MAX 100000                    /* calls in one record */
#define KEPT_BYTES_MAX (16 * MIB)          /* bytes of the calls in one record */

void broker_keep_call(struct broker *broker, const struct ask *ask, const char *result, const char *error, double ms)
{
        char *arguments = json_dumps(ask->call.arguments, JSON_COMPACT | JSON_ENCODE_ANY);
        size_t bytes = (arguments ? strlen(arguments) : 0) + (result ? strlen(result) : 0) +
                (error ? strlen(error) : 0) + sizeof(struct kept_call);
        if (!arguments || broker->kept_n == KEPT_MAX || broker->kept_bytes + bytes > KEPT_BYTES_MAX) {
                broker->kept_truncated = true;
                free(arguments);
                return;
        }
        struct kept_call *kept = arena_alloc(&broker->kept, sizeof *kept);
        SET(&kept->record, tool_record, server, arena_text(&broker->kept, "%s", ask->server));
        SET(&kept->record, tool_record, tool, arena_text(&broker->kept, "%s", ask->tool));
        SET(&kept->record, tool_record, arguments, arena_text(&broker->kept, "%s", arguments));
        if (result)
                SET(&kept->record, tool_record, result, arena_copy(&broker->kept, result, strlen(result)));
        if (error)
                SET(&kept->record, tool_record, error, arena_copy(&broker->kept, error, strlen(error)));
        SET(&kept->record, tool_record, duration_ms, ms);
        if (broker->last)
                broker->last->next = kept;
        else
                broker->first = kept;
        broker->last = kept;
        broker->kept_n++;
        broker->kept_bytes += bytes;
        free(arguments);
}

void broker_report_calls(const struct broker *broker, struct arena *arena, struct tools_used *ret)
{
        size_t n = 0;
        if (!broker->request->record)
                return;
        ret->list = arena_alloc(arena, (broker->kept_n + 1) * sizeof *ret->list);
        for (const struct kept_call *kept = broker->first; kept; kept = kept->next)
                ret->list[n++] = kept->record;
        ret->list_n = n;
        MARK(ret, tools_used, list);
        if (broker->kept_truncated)
                SET(ret, tools_used, list_truncated, true);
}
