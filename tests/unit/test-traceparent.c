/* traceparent: what the specification allows is taken, what it forbids begins a trace of its own. */
#include "net/traceparent.h"

#include <stdio.h>

#include "tap.h"

#define ID "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"
#define GOOD "00-" ID "-" SPAN "-01"

static bool is_taken(const char *header)
{
        struct trace trace;
        trace_begin(&trace, header, false);
        CHECK(strlen(trace.id) == 32 && strspn(trace.id, "0123456789abcdef") == 32 && strspn(trace.id, "0") < 32);
        CHECK(strlen(trace.span) == 16 && strspn(trace.span, "0123456789abcdef") == 16 && strspn(trace.span, "0") < 16);
        CHECK(strcmp(trace.span, SPAN) != 0);
        bool same = strcmp(trace.id, ID) == 0;
        CHECK(strcmp(trace.parent, same ? SPAN : "") == 0);
        return same;
}

static void a_header_that_is_valid_is_taken(void)
{
        static const char *const good[] = {
                GOOD, "00-" ID "-" SPAN "-00", "00-" ID "-" SPAN "-ff",
                "01-" ID "-" SPAN "-01", "cc-" ID "-" SPAN "-01-what-will-be", "fe-" ID "-" SPAN "-01-",
        };
        for (size_t i = 0; i < ARRAY_LEN(good); i++)
                CHECK(is_taken(good[i]));
}

static void a_header_that_is_not_begins_a_new_trace(void)
{
        static const char *const bad[] = {
                "",
                "00",
                "00-" ID "-" SPAN,
                "00-" ID "-" SPAN "-0",
                "00-" ID "-" SPAN "-01 ",
                "00-" ID "-" SPAN "-01-",
                "00-" ID "-" SPAN "-01-x",
                "ff-" ID "-" SPAN "-01",
                "0x-" ID "-" SPAN "-01",
                "0-" ID "-" SPAN "-011",
                "cc-" ID "-" SPAN "-01.x",
                "cc-" ID "-" SPAN "-012",
                "00-00000000000000000000000000000000-" SPAN "-01",
                "00-" ID "-0000000000000000-01",
                "00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
                "00-" ID "-B7AD6B7169203331-01",
                "00-" ID "-" SPAN "-0G",
                "00-" ID "-" SPAN "-0A",
                "00_" ID "-" SPAN "-01",
                "00-" ID "_" SPAN "-01",
                "00-" ID "-" SPAN "_01",
                " " GOOD,
                "00-" ID "-" SPAN "-.1",
                "00-.af7651916cd43dd8448eb211c80319c-" SPAN "-01",
                "00-" ID "-.7ad6b7169203331-01",
                GOOD "," GOOD,
        };
        CHECK(!is_taken(NULL));
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(!is_taken(bad[i]));
}

static void who_asks_says_whether_spans_are_kept(void)
{
        struct trace trace;
        trace_begin(&trace, GOOD, false);
        CHECK(trace.sampled);
        trace_begin(&trace, "00-" ID "-" SPAN "-00", true);
        CHECK(!trace.sampled);
        trace_begin(&trace, "00-" ID "-" SPAN "-fe", true);
        CHECK(!trace.sampled);
        trace_begin(&trace, NULL, true);
        CHECK(trace.sampled);
        trace_begin(&trace, NULL, false);
        CHECK(!trace.sampled);
}

static void what_is_printed_is_valid_and_has_our_span(void)
{
        struct trace trace, below, again;
        char text[TRACEPARENT_MAX];
        trace_begin(&trace, GOOD, false);
        trace_print(&trace, text);
        CHECK(strlen(text) == 55 && strncmp(text, "00-" ID "-", 36) == 0 && strncmp(text + 36, trace.span, 16) == 0 &&
                strcmp(text + 52, "-01") == 0);
        trace_below(&trace, &below);
        CHECK(strcmp(below.id, ID) == 0 && strcmp(below.parent, trace.span) == 0 &&
                strcmp(below.span, trace.span) != 0 && below.sampled);
        trace_begin(&again, text, false);
        CHECK(strcmp(again.id, ID) == 0 && strcmp(again.parent, trace.span) == 0);
        trace.sampled = false;
        trace_print(&trace, text);
        CHECK(strcmp(text + 52, "-00") == 0);
}

int main(void)
{
        RUN(a_header_that_is_valid_is_taken);
        RUN(a_header_that_is_not_begins_a_new_trace);
        RUN(who_asks_says_whether_spans_are_kept);
        RUN(what_is_printed_is_valid_and_has_our_span);
        return tap_done();
}
