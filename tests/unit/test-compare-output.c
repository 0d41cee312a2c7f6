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
        { compare_TRIMMED, 0, "a\nb\n", "a\nb\n", "" },
        { compare_TRIMMED, 0, "a\nb", "a  \nb\t\n\n \n", "" },
        { compare_TRIMMED, 0, "a\r\nb\r\n", "a\nb\n", "" },
        { compare_TRIMMED, 0, "", "\n\n", "" },
        { compare_TRIMMED, 0, "a", " a", "line 1: expected 'a', got ' a'" },
        { compare_TRIMMED, 0, "a\nb", "a\nc", "line 2: expected 'b', got 'c'" },
        { compare_TRIMMED, 0, "a\n\nb", "a\nb", "line 2: expected '', got 'b'" },
        { compare_TRIMMED, 0, "a", "a\nb", "expected 1 lines, got 2" },
        { compare_TRIMMED, 0, "a", "", "expected 1 lines, got 0" },
        { compare_EXACT, 0, "a\n", "a\n", "" },
        { compare_EXACT, 0, "a\n", "a", "expected 2 bytes, got 1; they differ from byte 1 on" },
        { compare_EXACT, 0, "", "", "" },
        { compare_TOKENS, 0, "1 2 3", "1\n2\t3\n", "" },
        { compare_TOKENS, 0, "1 2 3", "1 2", "more than the 2 words that came are expected" },
        { compare_TOKENS, 0, "1 2", "1 2 3", "2 words are expected, and more came" },
        { compare_TOKENS, 0, "1.0", "1", "word 1: expected '1.0', got '1'" },
        { compare_TOKENS, 0, "", " \n", "" },
        { compare_FLOATS, 1e-6, "1.0 yes", "1 yes", "" },
        { compare_FLOATS, 1e-6, "1000000", "1000000.5", "" },
        { compare_FLOATS, 1e-6, "0.000001", "0.0000019", "" },
        { compare_FLOATS, 1e-6, "1000000007", "1000000008", "word 1: expected '1000000007', got '1000000008'" },
        { compare_FLOATS, 1, "5", "6", "word 1: expected '5', got '6'" },
        { compare_FLOATS, 1e-6, "1000000007", "1000000008.0", "" },
        { compare_FLOATS, 1e-6, "1000000007e0", "1000000008", "" },
        { compare_FLOATS, 1e-6, "007 +5 -0", "7 5 0", "" },
        { compare_FLOATS, 1e-6, "-7", "7", "word 1: expected '-7', got '7'" },
        { compare_FLOATS, 1e-6, "5", "5-", "word 1: expected '5', got '5-'" },
        { compare_FLOATS, 1e-6, "-", "+", "word 1: expected '-', got '+'" },
        { compare_FLOATS, 1e-6, "0.33333333333333333333333333333333333333333333333333333333333333333", "0.333333333",
                "" },
        { compare_FLOATS, 1e-6, "1725436586697640946858688965569256363112777243042596638790631055949824",
                "1.72543658669764094e69", "" },
        { compare_FLOATS, 1e-6, "1725436586697640946858688965569256363112777243042596638790631055949824",
                "1725436586697640946858688965569256363112777243042596638790631055949825",
                "word 1: expected '172543658669764094685868896556925636311277724304259663879063', got '172543658669764094685868896556925636311277724304259663879063'" },
        { compare_FLOATS, 1e-6, "1e400", "1.0000000001e400", "" },
        /* Both sides of the relative and of the absolute tolerance. */
        { compare_FLOATS, 1e-6, "1000000", "1000000.9", "" },
        { compare_FLOATS, 1e-6, "1000000", "1000001.1", "word 1: expected '1000000', got '1000001.1'" },
        { compare_FLOATS, 1e-6, "-1000000", "-1000001.1", "word 1: expected '-1000000', got '-1000001.1'" },
        { compare_FLOATS, 1e-6, "0.001", "0.0010009", "" },
        { compare_FLOATS, 1e-6, "0.001", "0.0010011", "word 1: expected '0.001', got '0.0010011'" },
        { compare_FLOATS, 0.5, "10.0", "19.9", "" },
        { compare_FLOATS, 0.5, "10.0", "20.1", "word 1: expected '10.0', got '20.1'" },
        { compare_FLOATS, 1e-6, "1", "1.1", "word 1: expected '1', got '1.1'" },
        { compare_FLOATS, 1e-6, "1", "nan", "word 1: expected '1', got 'nan'" },
        { compare_FLOATS, 1e-6, "nan", "nan", "" },
        { compare_FLOATS, 1e-6, "1", "inf", "word 1: expected '1', got 'inf'" },
        { compare_FLOATS, 1e-6, "16", "0x10", "word 1: expected '16', got '0x10'" },
        { compare_FLOATS, 1e300, "1", "inf", "word 1: expected '1', got 'inf'" },
        { compare_LINES, 0, "b\na\n", "a\nb", "" },
        { compare_LINES, 0, "b\na\na", "a\nb\nb", "sorted line 2: expected 'a', got 'b'" },
        { compare_LINES, 0, "a", "a\na", "expected 1 lines, got 2" },
        /* verl: line feeds at the end, and nothing else. */
        { compare_VERL, 0, "a\n", "a\n\n\n", "" },
        { compare_VERL, 0, "", "\n", "" },
        { compare_VERL, 0, "a", "a \n", "expected 1 bytes, got 2; they differ from byte 1 on" },
        { compare_VERL, 0, "a\nb", "a\n\nb", "expected 3 bytes, got 4; they differ from byte 2 on" },
        { compare_VERL, 0, "a\r\n", "a\n", "expected 2 bytes, got 1; they differ from byte 1 on" },
        /* EvalPlus has no rule for output. */
        { compare_EVALPLUS, 0, "a\nb", "a  \nb\n", "" },
        { compare_EVALPLUS, 0, "1", "1.0", "line 1: expected '1', got '1.0'" },
        /* LiveCodeBench: stripped lines, else decimal numbers. */
        { compare_LCB, 0, "1\n2", "\n 1 \n\t2\r\n\n", "" },
        { compare_LCB, 0, "", " \n", "" },
        { compare_LCB, 0, "1\n\n2", "1\n2", "expected 3 lines, got 2" },
        { compare_LCB, 0, "1 2", "1  2", "" },
        { compare_LCB, 0, "a b", "a  b", "line 1: expected 'a b', got 'a  b'" },
        { compare_LCB, 0, "1 2", "1", "line 1: expected '1 2', got '1'" },
        { compare_LCB, 0, "1 x", "1.0 x", "line 1: expected '1 x', got '1.0 x'" },
        { compare_LCB, 0, "1", "1.000", "" },
        { compare_LCB, 0, "100", "1e2", "" },
        { compare_LCB, 0, "0.5e1 -0", "5. .0e9", "" },
        { compare_LCB, 0, "1_0", "10", "" },
        { compare_LCB, 0, "+1", "-1", "line 1: expected '+1', got '-1'" },
        { compare_LCB, 0, "50000000000000000", "50000000000000001",
                "line 1: expected '50000000000000000', got '50000000000000001'" },
        { compare_LCB, 0, "0.1", "0.10000000000000000000000000000000000000000000000000000000001",
                "line 1: expected '0.1', got '0.1000000000000000000000000000000000000000000000000000000000'" },
        { compare_LCB, 0, "1e999999999999999999", "10e999999999999999998", "" },
        { compare_LCB, 0, "1e1000000000000000000", "10e999999999999999999",
                "line 1: expected '1e1000000000000000000', got '10e999999999999999999'" },
        { compare_LCB, 0, "0e9", "0e99999999999999999999999", "line 1: expected '0e9', got '0e99999999999999999999999'" },
        { compare_LCB, 0, "inf", "+Infinity", "" },
        { compare_LCB, 0, "inf", "-inf", "line 1: expected 'inf', got '-inf'" },
        { compare_LCB, 0, "nan", "nan", "" },
        { compare_LCB, 0, "nan 1", "nan  1", "line 1: expected 'nan 1', got 'nan  1'" },
        { compare_LCB, 0, "snan12 1", "snan12  1", "line 1: expected 'snan12 1', got 'snan12  1'" },
        { compare_LCB, 0, "infin", "inf", "line 1: expected 'infin', got 'inf'" },
        { compare_LCB, 0, "1e", "1", "line 1: expected '1e', got '1'" },
        { compare_LCB, 0, "16", "0x10", "line 1: expected '16', got '0x10'" },
        { compare_LCB, 0, "a", "\u2003a\u3000\u00a0\xc2\x85", "" },
        { compare_LCB, 0, "1", "\u0661", "line 1: expected '1', got '\u0661'" },
        /* Prime: lines without blank ones, words, numbers within 1e-3. */
        { compare_PRIME, 0, "a b\nc", "\n  a\t b \n\n\nc\n", "" },
        { compare_PRIME, 0, "", " \n", "" },
        { compare_PRIME, 0, "a\nb", "a\u2028b", "" },
        { compare_PRIME, 0, "a\nb", "a\rb", "" },
        { compare_PRIME, 0, "a b", "a\nb", "word 2 is in another line than expected" },
        { compare_PRIME, 0, "a b", "a", "word 2: expected 'b', got ''" },
        { compare_PRIME, 0, "1 2", "1\n2", "" },
        { compare_PRIME, 0, "1 2", "1\n2 3", "word 2 is in another line than expected" },
        { compare_PRIME, 0, "1.0 2", "1.001 1.999", "" },
        { compare_PRIME, 0, "1.0", "1.0010001", "word 1: expected '1.0', got '1.0010001'" },
        { compare_PRIME, 0, "1000000000", "1000000000.001", "" },
        { compare_PRIME, 0, "1000000000", "1000000001", "word 1: expected '1000000000', got '1000000001'" },
        { compare_PRIME, 0, "1e30", "1000000000000000000000000000000.0009", "" },
        { compare_PRIME, 0, "1e30", "999999999999999999999999999999.9992", "" },
        { compare_PRIME, 0, "1e30", "999999999999999999999999999999.9982",
                "word 1: expected '1e30', got '999999999999999999999999999999.9982'" },
        { compare_PRIME, 0, "0", "0.001", "" },
        { compare_PRIME, 0, "0", "-0.00100000000000000002081668171172168", "" },
        { compare_PRIME, 0, "0", "-0.00100000000000000002081668171172169",
                "word 1: expected '0', got '-0.00100000000000000002081668171172169'" },
        { compare_PRIME, 0, "0.0006", "-0.0006", "word 1: expected '0.0006', got '-0.0006'" },
        { compare_PRIME, 0, "0.0004", "-0.0006", "" },
        { compare_PRIME, 0, "1e-999999999999999999", "-1e-999999999999999998", "" },
        { compare_PRIME, 0, "1e999999999999999999", "10e999999999999999998", "" },
        { compare_PRIME, 0, "1e999999999999999999", "1", "word 1: expected '1e999999999999999999', got '1'" },
        { compare_PRIME, 0, "5", "-5", "word 1: expected '5', got '-5'" },
        { compare_PRIME, 0, "nan 1.0", "nan 1", "word 1: expected 'nan', got 'nan'" },
        { compare_PRIME, 0, "inf 1.0", "inf 1", "word 1: expected 'inf', got 'inf'" },
        { compare_PRIME, 0, "x 1.0", "x 1", "word 2: expected '1.0', got '1'" },
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
        CHECK(*compare_output(compare_TRIMMED, 0, &a, &a, &arena) == 0);
        CHECK(*compare_output(compare_TRIMMED, 0, &a, &b, &arena) != 0);
        CHECK(*compare_output(compare_EXACT, 0, &none, &none, &arena) == 0);
        CHECK(*compare_output(compare_TOKENS, 0, &none, &a, &arena) != 0);
        for (int rule = compare_LCB; rule <= compare_EVALPLUS; rule++) {
                CHECK(*compare_output(rule, 0, &a, &a, &arena) == 0);
                CHECK(*compare_output(rule, 0, &a, &b, &arena) != 0);
                CHECK(*compare_output(rule, 0, &none, &none, &arena) == 0);
                CHECK(*compare_output(rule, 0, &none, &a, &arena) != 0);
        }
        arena_done(&arena);
}

int main(void)
{
        RUN(every_checker_sees_what_it_is_to_see);
        RUN(neither_a_NUL_nor_what_is_no_text_ends_a_comparison);
        return tap_done();
}
