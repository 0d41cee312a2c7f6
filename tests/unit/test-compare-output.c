/* grading: standard output beside what it should be. */
#include "grading/grading_private.h"

#include "tap.h"

static const char *compare(int checker, double tolerance, const char *expected, const char *got, struct arena *arena)
{
        const struct bytes ours = { (char *)expected, strlen(expected) }, theirs = { (char *)got, strlen(got) };
        return compare_output(checker, tolerance, &theirs, &ours, arena);
}

static const struct {
        int checker;
        double tolerance;
        const char *expected, *got;
        const char *wrong;             /* "": accepted */
} rows[] = {
        { checkers_TRIMMED, 0, "a\nb\n", "a\nb\n", "" },
        { checkers_TRIMMED, 0, "a\nb", "a  \nb\t\n\n \n", "" },
        { checkers_TRIMMED, 0, "a\r\nb\r\n", "a\nb\n", "" },
        { checkers_TRIMMED, 0, "", "\n\n", "" },
        { checkers_TRIMMED, 0, "a", " a", "line 1: expected 'a', got ' a'" },
        { checkers_TRIMMED, 0, "a\nb", "a\nc", "line 2: expected 'b', got 'c'" },
        { checkers_TRIMMED, 0, "a\n\nb", "a\nb", "line 2: expected '', got 'b'" },
        { checkers_TRIMMED, 0, "a", "a\nb", "expected 1 lines, got 2" },
        { checkers_TRIMMED, 0, "a", "", "expected 1 lines, got 0" },
        { checkers_EXACT, 0, "a\n", "a\n", "" },
        { checkers_EXACT, 0, "a\n", "a", "expected 2 bytes, got 1; they differ from byte 1 on" },
        { checkers_EXACT, 0, "", "", "" },
        { checkers_TOKENS, 0, "1 2 3", "1\n2\t3\n", "" },
        { checkers_TOKENS, 0, "1 2 3", "1 2", "more than the 2 words that came are expected" },
        { checkers_TOKENS, 0, "1 2", "1 2 3", "2 words are expected, and more came" },
        { checkers_TOKENS, 0, "1.0", "1", "word 1: expected '1.0', got '1'" },
        { checkers_TOKENS, 0, "", " \n", "" },
        { checkers_FLOATS, 1e-6, "1.0 yes", "1 yes", "" },
        { checkers_FLOATS, 1e-6, "1000000", "1000000.5", "" },
        { checkers_FLOATS, 1e-6, "0.000001", "0.0000019", "" },
        { checkers_FLOATS, 1e-6, "1000000007", "1000000008", "word 1: expected '1000000007', got '1000000008'" },
        { checkers_FLOATS, 1, "5", "6", "word 1: expected '5', got '6'" },
        { checkers_FLOATS, 1e-6, "1000000007", "1000000008.0", "" },
        { checkers_FLOATS, 1e-6, "1000000007e0", "1000000008", "" },
        { checkers_FLOATS, 1e-6, "007 +5 -0", "7 5 0", "" },
        { checkers_FLOATS, 1e-6, "-7", "7", "word 1: expected '-7', got '7'" },
        { checkers_FLOATS, 1e-6, "5", "5-", "word 1: expected '5', got '5-'" },
        { checkers_FLOATS, 1e-6, "-", "+", "word 1: expected '-', got '+'" },
        { checkers_FLOATS, 1e-6, "0.33333333333333333333333333333333333333333333333333333333333333333", "0.333333333",
                "" },
        { checkers_FLOATS, 1e-6, "1725436586697640946858688965569256363112777243042596638790631055949824",
                "1.72543658669764094e69", "" },
        { checkers_FLOATS, 1e-6, "1725436586697640946858688965569256363112777243042596638790631055949824",
                "1725436586697640946858688965569256363112777243042596638790631055949825",
                "word 1: expected '172543658669764094685868896556925636311277724304259663879063', got '172543658669764094685868896556925636311277724304259663879063'" },
        { checkers_FLOATS, 1e-6, "1e400", "1.0000000001e400", "" },
        /* Both sides of the relative and of the absolute tolerance. */
        { checkers_FLOATS, 1e-6, "1000000", "1000000.9", "" },
        { checkers_FLOATS, 1e-6, "1000000", "1000001.1", "word 1: expected '1000000', got '1000001.1'" },
        { checkers_FLOATS, 1e-6, "-1000000", "-1000001.1", "word 1: expected '-1000000', got '-1000001.1'" },
        { checkers_FLOATS, 1e-6, "0.001", "0.0010009", "" },
        { checkers_FLOATS, 1e-6, "0.001", "0.0010011", "word 1: expected '0.001', got '0.0010011'" },
        { checkers_FLOATS, 0.5, "10.0", "19.9", "" },
        { checkers_FLOATS, 0.5, "10.0", "20.1", "word 1: expected '10.0', got '20.1'" },
        { checkers_FLOATS, 1e-6, "1", "1.1", "word 1: expected '1', got '1.1'" },
        { checkers_FLOATS, 1e-6, "1", "nan", "word 1: expected '1', got 'nan'" },
        { checkers_FLOATS, 1e-6, "nan", "nan", "" },
        { checkers_FLOATS, 1e-6, "1", "inf", "word 1: expected '1', got 'inf'" },
        { checkers_FLOATS, 1e-6, "16", "0x10", "word 1: expected '16', got '0x10'" },
        { checkers_FLOATS, 1e300, "1", "inf", "word 1: expected '1', got 'inf'" },
        { checkers_LINES, 0, "b\na\n", "a\nb", "" },
        { checkers_LINES, 0, "b\na\na", "a\nb\nb", "sorted line 2: expected 'a', got 'b'" },
        { checkers_LINES, 0, "a", "a\na", "expected 1 lines, got 2" },
};

static void every_checker_sees_what_it_is_to_see(void)
{
        struct arena arena = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const char *wrong = compare(rows[i].checker, rows[i].tolerance, rows[i].expected, rows[i].got, &arena);
                if (strcmp(wrong, rows[i].wrong) != 0)
                        printf("# row %zu: %s\n", i, wrong);
                CHECK(strcmp(wrong, rows[i].wrong) == 0);
        }
        arena_done(&arena);
}

static void neither_a_NUL_nor_what_is_no_text_ends_a_comparison(void)
{
        struct arena arena = { 0 };
        const struct bytes a = { (char[]){ 'a', 0, (char)0xff, '\n', 'b' }, 5 },
                           b = { (char[]){ 'a', 0, (char)0xff, '\n', 'c' }, 5 }, none = { NULL, 0 };
        CHECK(*compare_output(checkers_TRIMMED, 0, &a, &a, &arena) == 0);
        CHECK(*compare_output(checkers_TRIMMED, 0, &a, &b, &arena) != 0);
        CHECK(*compare_output(checkers_EXACT, 0, &none, &none, &arena) == 0);
        CHECK(*compare_output(checkers_TOKENS, 0, &none, &a, &arena) != 0);
        arena_done(&arena);
}

int main(void)
{
        RUN(every_checker_sees_what_it_is_to_see);
        RUN(neither_a_NUL_nor_what_is_no_text_ends_a_comparison);
        return tap_done();
}
