/* Standard output beside the expected output.  Bytes, and no locale; both may be anything. */
#include "grading/pieces.h"

#include <math.h>

struct reader {
        const char *at, *end;
};

static bool is_blank(char c)
{
        return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- lines ---- */

/* Without blanks at its end. */
static bool next_line(struct reader *reader, struct piece *ret)
{
        if (reader->at == reader->end)
                return false;
        const char *feed = memchr(reader->at, '\n', (size_t)(reader->end - reader->at)),
                   *end = feed ? feed : reader->end;
        *ret = (struct piece){ reader->at, (size_t)(end - reader->at) };
        reader->at = feed ? feed + 1 : reader->end;
        while (ret->len && is_blank(ret->at[ret->len - 1]))
                ret->len--;
        return true;
}

/* Without empty lines at the end; the array is the arena's. */
static struct piece *lines_of(const struct bytes *bytes, struct arena *arena, size_t *ret_n)
{
        struct reader reader = { bytes->bytes, bytes->bytes + bytes->len };
        size_t n = 1;
        for (size_t i = 0; i < bytes->len; i++)
                n += bytes->bytes[i] == '\n';
        struct piece *lines = arena_alloc(arena, n * sizeof *lines), line;
        for (n = 0; next_line(&reader, &line);)
                lines[n++] = line;
        while (n && !lines[n - 1].len)
                n--;
        *ret_n = n;
        return lines;
}

static int by_bytes(const void *a, const void *b)
{
        const struct piece *left = a, *right = b;
        size_t n = left->len < right->len ? left->len : right->len;
        int rc = n ? memcmp(left->at, right->at, n) : 0;
        return rc ? rc : (left->len > right->len) - (left->len < right->len);
}

static const char *compare_lines(const struct bytes *got, const struct bytes *expected, bool ordered,
        struct arena *arena)
{
        size_t got_n, expected_n;
        struct piece *ours = lines_of(expected, arena, &expected_n), *theirs = lines_of(got, arena, &got_n);
        if (!ordered) {
                qsort(ours, expected_n, sizeof *ours, by_bytes);
                qsort(theirs, got_n, sizeof *theirs, by_bytes);
        }
        for (size_t i = 0; i < expected_n && i < got_n; i++)
                if (!piece_same(ours[i], theirs[i]))
                        return piece_differ(arena, ordered ? "line" : "sorted line", i + 1, ours[i], theirs[i]);
        return expected_n == got_n ? "" : piece_count_differs(arena, "lines", expected_n, got_n);
}

/* ---- words ---- */

static bool next_word(struct reader *reader, struct piece *ret)
{
        while (reader->at < reader->end && is_blank(*reader->at))
                reader->at++;
        const char *from = reader->at;
        while (reader->at < reader->end && !is_blank(*reader->at))
                reader->at++;
        *ret = (struct piece){ from, (size_t)(reader->at - from) };
        return ret->len > 0;
}

/* A sign and digits, and nothing else. */
static bool is_integer(struct piece word)
{
        size_t at = word.len && (*word.at == '-' || *word.at == '+');
        if (at == word.len)
                return false;
        for (; at < word.len; at++)
                if (word.at[at] < '0' || word.at[at] > '9')
                        return false;
        return true;
}

/* The digits of an integer without leading zeros; and whether the integer is below zero, which 0 is not. */
static struct piece digits_of(struct piece word, bool *ret_negative)
{
        bool negative = *word.at == '-';
        size_t at = *word.at == '-' || *word.at == '+';
        while (at < word.len && word.at[at] == '0')
                at++;
        *ret_negative = negative && at < word.len;
        return (struct piece){ word.at + at, word.len - at };
}

static bool same_integers(struct piece a, struct piece b)
{
        bool of_a, of_b;
        return piece_same(digits_of(a, &of_a), digits_of(b, &of_b)) && of_a == of_b;
}

/* Of any length: strtold() reads all digits.  The copy in the arena has a zero at its end. */
static bool number_of(struct piece word, struct arena *arena, long double *ret)
{
        char *text = arena_copy(arena, word.at, word.len), *end;
        *ret = strtold(text, &end);
        return end == text + word.len && !memchr(word.at, 'x', word.len) && !memchr(word.at, 'X', word.len);
}

/* Two integers are compared exactly, and numbers that are not finite by their text. */
static bool close_to(struct piece a, struct piece b, double tolerance, struct arena *arena)
{
        long double x, y;
        if (piece_same(a, b))
                return true;
        if (is_integer(a) && is_integer(b))
                return same_integers(a, b);
        if (!number_of(a, arena, &x) || !number_of(b, arena, &y) || !isfinite(x) || !isfinite(y))
                return false;
        long double off = fabsl(x - y), size = fabsl(x) > fabsl(y) ? fabsl(x) : fabsl(y);
        return off <= tolerance || off <= tolerance * size;
}

static const char *compare_words(const struct bytes *got, const struct bytes *expected, bool numbers, double tolerance,
        struct arena *arena)
{
        struct reader ours = { expected->bytes, expected->bytes + expected->len },
                      theirs = { got->bytes, got->bytes + got->len };
        struct piece mine, other;
        size_t n = 0;
        for (;;) {
                bool more = next_word(&ours, &mine), came = next_word(&theirs, &other);
                if (!more && !came)
                        return "";
                n++;
                if (!more)
                        return arena_text(arena, "%zu words are expected, and more came", n - 1);
                if (!came)
                        return arena_text(arena, "more than the %zu words that came are expected", n - 1);
                if (numbers ? !close_to(mine, other, tolerance, arena) : !piece_same(mine, other))
                        return piece_differ(arena, "word", n, mine, other);
        }
}

/* ---- bytes ---- */

static const char *compare_bytes(const struct bytes *got, const struct bytes *expected, struct arena *arena)
{
        size_t n = got->len < expected->len ? got->len : expected->len, at = 0;
        while (at < n && got->bytes[at] == expected->bytes[at])
                at++;
        if (at == got->len && at == expected->len)
                return "";
        return arena_text(arena, "expected %zu bytes, got %zu; they differ from byte %zu on", expected->len, got->len,
                at);
}

static void strip_feeds(struct bytes *bytes)
{
        while (bytes->len && bytes->bytes[bytes->len - 1] == '\n')
                bytes->len--;
}

/* EvalPlus compares values alone; its rule for output is `trimmed`. */
const char *compare_output(int checker, double tolerance, const struct bytes *got, const struct bytes *expected,
        struct arena *arena)
{
        static char nothing[] = "";
        struct bytes ours = { expected->bytes ? expected->bytes : nothing, expected->len },
                     theirs = { got->bytes ? got->bytes : nothing, got->len };
        switch (checker) {
        case compare_EXACT:
                return compare_bytes(&theirs, &ours, arena);
        case compare_VERL:
                strip_feeds(&ours);
                strip_feeds(&theirs);
                return compare_bytes(&theirs, &ours, arena);
        case compare_LCB:
                return compare_lcb(&theirs, &ours, arena);
        case compare_PRIME:
                return compare_prime(&theirs, &ours, arena);
        case compare_TOKENS:
        case compare_FLOATS:
                return compare_words(&theirs, &ours, checker == compare_FLOATS, tolerance, arena);
        default:
                return compare_lines(&theirs, &ours, checker != compare_LINES, arena);
        }
}
