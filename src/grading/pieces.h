/* Parts of an output, and sentences about their differences; shared by the comparisons of standard output. */
#ifndef GRADING_PIECES_H
#define GRADING_PIECES_H

#include "grading/grading_private.h"

/* Bytes within an output or an expected output. */
struct piece {
        const char *at;
        size_t len;
};

bool piece_same(struct piece a, struct piece b);
/* "word 3: expected 'x', got 'y'"; the pieces are cut.  From the arena. */
const char *piece_differ(struct arena *arena, const char *what, size_t number, struct piece expected, struct piece got);
/* "expected 3 lines, got 2" */
const char *piece_count_differs(struct arena *arena, const char *what, size_t expected, size_t got);

/* ---- decimal.c ---- */

/*
 * A decimal number of any length, as Python's Decimal reads one; its digits have neither zeros at the beginning nor at
 * the end, and zero has no digits.
 */
struct decimal {
        char buffer[64];               /* digits of a short word; so the struct cannot be copied */
        enum { DECIMAL_FINITE, DECIMAL_INFINITE, DECIMAL_NAN } kind;
        bool negative;
        const char *digits;
        size_t n;
        int64_t top;                   /* power of ten of the first digit */
};

/*
 * Read a word.  false: Decimal refuses the word.  The grammar is Decimal's: underscores are ignored, and exponents
 * have at most 18 digits.  Digits of other scripts than ASCII are no digits here.  A long word takes memory of the
 * arena.
 */
bool decimal_read(struct piece word, struct arena *arena, struct decimal *ret);
/* Equality as Decimal has it: -0 equals 0, and nan equals nothing. */
bool decimal_same(const struct decimal *a, const struct decimal *b);
/* Whether two numbers differ by at most 1e-3.  false for nan and infinities, whose difference is no number. */
bool decimal_near(const struct decimal *a, const struct decimal *b);

/* ---- compare_trainers.c ---- */

/*
 * The rules of LiveCodeBench and of Prime.  As compare_output(); bytes may be anything, and are UTF-8 where a rule
 * speaks of white space.
 */
const char *compare_lcb(const struct bytes *got, const struct bytes *expected, struct arena *arena);
const char *compare_prime(const struct bytes *got, const struct bytes *expected, struct arena *arena);

#endif
