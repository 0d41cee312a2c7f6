/* Headers of HTTP requests from any bytes, as a client may send them: they have no NUL. */
#include "net/http_headers.h"

#include <ctype.h>
#include <stdio.h>

#include "net/traceparent.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void require(bool condition)
{
        if (!condition)
                abort();
}

/* Some bytes before and behind do not change what a list has. */
static void check_list(struct arena *arena, const char *text)
{
        static const char *const members[] = { "respond-async", "text/event-stream", "application/x-ndjson" };
        for (size_t i = 0; i < ARRAY_LEN(members); i++) {
                bool has = header_lists(text, members[i]);
                require(!has || strcasestr(text, members[i]));
                require(header_lists(arena_text(arena, "%s,\t%s;q=0", text, members[i]), members[i]));
                require(header_lists(arena_text(arena, "x , %s", text), members[i]) == has);
                require(!header_lists(arena_text(arena, "x%s", members[i]), members[i]));
        }
}

static void check_range(struct arena *arena, const char *text)
{
        uint64_t offset, size, again_offset, again_size;
        if (!header_range(text, &offset, &size))
                return;
        require(size && offset <= INT64_MAX && (size == UINT64_MAX || offset + size - 1 >= offset));
        const char *again = size == UINT64_MAX ? arena_text(arena, "bytes=%lu-", offset)
                                               : arena_text(arena, "bytes=%lu-%lu", offset, offset + size - 1);
        require(header_range(again, &again_offset, &again_size) && again_offset == offset && again_size == size);
}

static void check_event(struct arena *arena, const char *text)
{
        uint64_t number, again;
        if (!header_event(text, &number))
                return;
        for (const char *c = text; *c; c++)
                require(isdigit((unsigned char)*c));
        require(header_event(arena_text(arena, "%lu", number), &again) && again == number);
}

static void check_trace(const char *text)
{
        struct trace trace, again;
        char printed[TRACEPARENT_MAX];
        trace_begin(&trace, text, false);
        require(strlen(trace.id) == TRACE_ID_MAX - 1 && strlen(trace.span) == SPAN_ID_MAX - 1);
        require(!trace.parent[0] || (strstr(text, trace.id) && strstr(text, trace.parent)));
        trace_print(&trace, printed);
        trace_begin(&again, printed, !trace.sampled);
        require(strcmp(again.id, trace.id) == 0 && strcmp(again.parent, trace.span) == 0 &&
                again.sampled == trace.sampled);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct arena arena = { 0 };
        const char *text = arena_copy(&arena, (const char *)bytes, len);
        check_list(&arena, text);
        check_range(&arena, text);
        check_event(&arena, text);
        check_trace(text);
        const char *key = header_bearer(text);
        require(key >= text && key <= text + strlen(text) && (key == text || key[0] != ' '));
        arena_done(&arena);
        return 0;
}
