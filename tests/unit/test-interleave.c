/* Two streams in one text: whole lines in order of arrival. */
#include "front/compat/interleave.h"

#include "tap.h"

struct chunk {
        int stream;
        const char *bytes;
};

static bool gives(const struct chunk *chunks, size_t max, const char *wanted)
{
        struct interleave lines;
        interleave_init(&lines, max);
        for (; chunks->bytes; chunks++)
                interleave_add(&lines, chunks->stream, chunks->bytes, strlen(chunks->bytes));
        interleave_end(&lines);
        bool same = lines.text.len == strlen(wanted) &&
                memcmp(lines.text.len ? lines.text.bytes : "", wanted, lines.text.len) == 0;
        interleave_done(&lines);
        return same;
}

#define GIVES(max, wanted, ...) gives((const struct chunk[]){ __VA_ARGS__, { 0, NULL } }, max, wanted)

static void whole_lines_keep_the_order_of_arrival(void)
{
        CHECK(GIVES(100, "", { 1, "" }));
        CHECK(GIVES(100, "a\nb\nc\n", { 1, "a\n" }, { 2, "b\n" }, { 1, "c\n" }));
        CHECK(GIVES(100, "a\nb\nc\nd\n", { 1, "a\nb\n" }, { 2, "c\nd\n" }));
        CHECK(GIVES(100, "\n\n", { 1, "\n" }, { 2, "\n" }));
}

static void a_line_waits_for_its_end(void)
{
        CHECK(GIVES(100, "x\nab\n", { 1, "a" }, { 2, "x\n" }, { 1, "b\n" }));
        CHECK(GIVES(100, "1\nx\n23\n", { 1, "1\n2" }, { 2, "x\n" }, { 1, "3\n" }));
        CHECK(GIVES(100, "abc\nxyz\n", { 1, "a" }, { 2, "x" }, { 1, "b" }, { 2, "y" }, { 1, "c\n" }, { 2, "z\n" }));
}

static void unfinished_lines_are_last_in_the_order_of_their_beginning(void)
{
        CHECK(GIVES(100, "ac" "b", { 1, "a" }, { 2, "b" }, { 1, "c" }));
        CHECK(GIVES(100, "b" "ac", { 2, "b" }, { 1, "a" }, { 1, "c" }));
        CHECK(GIVES(100, "a\n" "b" "c", { 1, "a" }, { 2, "b" }, { 1, "\nc" }));
        CHECK(GIVES(100, "a\nz\n" "c" "d", { 1, "a" }, { 1, "\nc" }, { 2, "z\nd" }));
}

static void what_is_beyond_the_ceiling_is_left_out(void)
{
        CHECK(GIVES(3, "a\nb", { 1, "a\n" }, { 2, "bcd\n" }));
        CHECK(GIVES(3, "abc", { 1, "abcdef" }, { 1, "ghi" }));
        CHECK(GIVES(3, "a\nx", { 2, "xyz" }, { 1, "a\n" }));
}

int main(void)
{
        RUN(whole_lines_keep_the_order_of_arrival);
        RUN(a_line_waits_for_its_end);
        RUN(unfinished_lines_are_last_in_the_order_of_their_beginning);
        RUN(what_is_beyond_the_ceiling_is_left_out);
        return tap_done();
}
