/*
 * Decimal numbers of any length, compared without arithmetic on floating point: LiveCodeBench and Prime compare by
 * Python's Decimal, which keeps every digit.  All work is linear in the length of the words.
 */
#include "grading/pieces.h"

#include <strings.h>

#define EXPONENT_MAX 999999999999999999     /* MAX_EMAX of libmpdec on 64 bits */
#define EXPONENT_MIN (-1999999999999999997) /* MIN_ETINY */
#define EXPONENT_CUT (INT64_C(1) << 61)     /* exponents beyond are cut, and stay beyond the limits */

/* ---- reading ---- */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_special(const char *text, struct decimal *ret)
{
        if (strcasecmp(text, "inf") == 0 || strcasecmp(text, "infinity") == 0) {
                ret->kind = DECIMAL_INFINITE;
                return true;
        }
        text += *text == 's' || *text == 'S';
        if (strncasecmp(text, "nan", 3) != 0)
                return false;
        for (text += 3; is_digit(*text); text++)
                ;
        ret->kind = DECIMAL_NAN;
        return !*text;
}

/* An exponent up to the end of the text; false: no exponent. */
static bool read_exponent(const char *text, int64_t *ret)
{
        bool negative = *text == '-';
        int64_t sum = 0;
        text += *text == '-' || *text == '+';
        if (!is_digit(*text))
                return false;
        for (; is_digit(*text); text++)
                sum = sum > EXPONENT_CUT / 10 ? EXPONENT_CUT : 10 * sum + (*text - '0');
        *ret = negative ? -sum : sum;
        return !*text;
}

/* Without the zeros at both ends.  `exponent` belongs to the last digit. */
static void set_digits(struct decimal *decimal, const char *digits, size_t n, int64_t exponent)
{
        while (n && *digits == '0') {
                digits++;
                n--;
        }
        decimal->top = exponent + (int64_t)n - 1;
        while (n && digits[n - 1] == '0')
                n--;
        decimal->digits = digits;
        decimal->n = n;
}

/* Decimal refuses a number instead of changing its exponent. */
static bool is_in_range(const struct decimal *decimal, int64_t exponent)
{
        return exponent >= EXPONENT_MIN && (decimal->n ? decimal->top : exponent) <= EXPONENT_MAX;
}

bool decimal_read(struct piece word, struct arena *arena, struct decimal *ret)
{
        char *text = word.len < sizeof ret->buffer ? ret->buffer : arena_alloc(arena, word.len + 1);
        char *at = text, *digits;
        int64_t exponent = 0, places = 0;
        size_t len = 0, n = 0;
        for (size_t i = 0; i < word.len; i++)
                if (word.at[i] != '_')
                        text[len++] = word.at[i];
        text[len] = 0;
        if (strlen(text) < len)
                return false;
        ret->kind = DECIMAL_FINITE;
        ret->negative = *at == '-';
        at += *at == '-' || *at == '+';
        if (is_special(at, ret))
                return true;
        digits = at;           /* the digits move over the point */
        for (bool point = false; is_digit(*at) || (*at == '.' && !point); at++) {
                if (*at == '.') {
                        point = true;
                        continue;
                }
                digits[n++] = *at;
                places += point;
        }
        if (!n || (*at && *at != 'e' && *at != 'E') || (*at && !read_exponent(at + 1, &exponent)))
                return false;
        exponent -= places;
        set_digits(ret, digits, n, exponent);
        return is_in_range(ret, exponent);
}

/* ---- comparing ---- */

bool decimal_same(const struct decimal *a, const struct decimal *b)
{
        if (a->kind == DECIMAL_NAN || a->kind != b->kind)
                return false;
        if (a->kind == DECIMAL_INFINITE)
                return a->negative == b->negative;
        if (!a->n || !b->n)
                return a->n == b->n;
        return a->negative == b->negative && a->top == b->top && a->n == b->n &&
                memcmp(a->digits, b->digits, a->n) == 0;
}

/* The digit of a power of ten, with its sign. */
static int digit_of(const struct decimal *decimal, int64_t power)
{
        bool there = decimal->n && power <= decimal->top && (uint64_t)(decimal->top - power) < decimal->n;
        int digit = there ? decimal->digits[decimal->top - power] - '0' : 0;
        return decimal->negative ? -digit : digit;
}

/* Whether all digits below a power of ten are 0. */
static bool is_past(const struct decimal *decimal, int64_t power)
{
        return !decimal->n || (power <= decimal->top && (uint64_t)(decimal->top - power) + 1 >= decimal->n);
}

/* Digits of a - b between two powers of ten, as an integer. */
static int64_t difference(const struct decimal *a, const struct decimal *b, int64_t from, int64_t to)
{
        int64_t sum = 0;
        for (int64_t power = from; power >= to; power--)
                sum = 10 * sum + digit_of(a, power) - digit_of(b, power);
        return sum;
}

/*
 * Further digits change a difference by less than 2 of its last place.  So a difference of 2 ends the comparison before
 * the sum overflows.  The limit is the float 0.001, 0.001000000000000000020816681711721685..., and is compared in two
 * steps of 18 digits.
 */
bool decimal_near(const struct decimal *a, const struct decimal *b)
{
        const int64_t step = INT64_C(1000000000000000000), first = step / 1000, second = INT64_C(20816681711721685);
        int64_t top = !a->n ? b->top : !b->n || a->top > b->top ? a->top : b->top, sum = 0;
        if (a->kind != DECIMAL_FINITE || b->kind != DECIMAL_FINITE)
                return false;
        if ((!a->n && !b->n) || top < -4)
                return true;
        for (int64_t power = top; power >= 0; power--) {
                sum = 10 * sum + digit_of(a, power) - digit_of(b, power);
                if (sum >= 2 || sum <= -2)
                        return false;
                if (is_past(a, power) && is_past(b, power))
                        return sum == 0;
        }
        sum = 100 * sum + difference(a, b, -1, -2);
        if (sum >= 3 || sum <= -3)
                return false;
        sum = sum * (step / 100) + difference(a, b, -3, -18);
        int64_t off = sum < 0 ? -sum : sum, rest = difference(a, b, -19, -36);
        if (off < first - 3)
                return true;
        return off <= first + 3 && (off - first) * step + (sum < 0 ? -rest : rest) <= second;
}
