/* The log of a sandbox of E2B's clients: the last lines, in memory; see e2b.h. */
#include "front/e2b/request.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_MAX_LEN 400
#define LIMIT 1000

struct e2b_line {
        int64_t ms;
        const char *level;
        char text[LINE_MAX_LEN];
};

/* A ring: `made` counts all lines ever added. */
struct e2b_logs {
        uint64_t made;
        struct e2b_line lines[E2B_LINES_MAX];
};

void e2b_log(struct e2b_sandbox *sandbox, const char *level, const char *fmt, ...)
{
        va_list args;
        if (!sandbox->logs)
                sandbox->logs = mem_alloc(sizeof *sandbox->logs);
        struct e2b_line *line = &sandbox->logs->lines[sandbox->logs->made++ % E2B_LINES_MAX];
        line->ms = time_now_ms();
        line->level = level;
        va_start(args, fmt);
        vsnprintf(line->text, sizeof line->text, fmt, args);
        va_end(args);
}

static json_t *describe(const struct e2b_line *line, struct arena *arena)
{
        size_t len;
        const char *text = model_utf8(arena, line->text, strlen(line->text), &len);
        /* Older clients read a line as JSON. */
        json_t *inner = json_pack("{s:s, s:s, s:s%}", "level", line->level, "logger", "sandbox", "message", text, len);
        char *raw = json_dumps(inner, JSON_COMPACT);
        json_t *json = json_pack("{s:o, s:s, s:s%, s:s, s:{}}", "timestamp", e2b_time(line->ms), "line",
                raw ? raw : "{}", "message", text, len, "level", line->level, "fields");
        json_decref(inner);
        free(raw);
        return json;
}

/* Oldest first, from ?start= (or ?cursor=) on, in milliseconds. */
void e2b_get_logs(struct http_request *request)
{
        const struct e2b_sandbox *sandbox = e2b_named(request);
        const struct e2b_logs *logs = sandbox ? sandbox->logs : NULL;
        int64_t from_ms, limit;
        if (!sandbox || !e2b_query_number(request, "start", 0, &from_ms) ||
                !e2b_query_number(request, "cursor", from_ms, &from_ms) ||
                !e2b_query_number(request, "limit", LIMIT, &limit))
                return;
        json_t *list = json_array();
        for (uint64_t i = logs && logs->made > E2B_LINES_MAX ? logs->made - E2B_LINES_MAX : 0; logs && i < logs->made;
                i++) {
                const struct e2b_line *line = &logs->lines[i % E2B_LINES_MAX];
                if (line->ms >= from_ms && (int64_t)json_array_size(list) < limit)
                        json_array_append_new(list, describe(line, &request->arena));
        }
        http_json(request, MHD_HTTP_OK, json_pack("{s:O, s:O}", "logs", list, "logEntries", list));
        json_decref(list);
}
