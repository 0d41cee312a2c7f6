/*
 * Standard output as trainers compare it.  The rules are the originals', for text of Python: white space as for
 * str.strip() and str.split(), and numbers as for Decimal.
 *
 *   LiveCodeBench  both outputs without white space at their ends, in lines, which are stripped as well; as many lines;
 *                  equal lines, or lines of equal numbers
 *   Prime          stripped lines without blank lines, equal word by word; or, in whatever lines, as many words, all
 *                  numbers, and no pair off by more than 1e-3
 */
#include "grading/pieces.h"

/* ---- text by Python's rules ---- */

/* White space beyond ASCII, and whether str.splitlines() ends a line there. */
static const struct {
        const char *bytes;
        bool ends_line;
} wide_spaces[] = {
        { "\xc2\x85", true },      { "\xc2\xa0", false },     { "\xe1\x9a\x80", false }, { "\xe2\x80\x80", false },
        { "\xe2\x80\x81", false }, { "\xe2\x80\x82", false }, { "\xe2\x80\x83", false }, { "\xe2\x80\x84", false },
        { "\xe2\x80\x85", false }, { "\xe2\x80\x86", false }, { "\xe2\x80\x87", false }, { "\xe2\x80\x88", false },
        { "\xe2\x80\x89", false }, { "\xe2\x80\x8a", false }, { "\xe2\x80\xa8", true },  { "\xe2\x80\xa9", true },
        { "\xe2\x80\xaf", false }, { "\xe2\x81\x9f", false }, { "\xe3\x80\x80", false },
};

/* Bytes of the white space at the beginning of a text; 0: there is none. */
static size_t space_at(const char *at, const char *end, bool *ret_ends_line)
{
        unsigned char c = (unsigned char)*at;
        *ret_ends_line = (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e);
        if (c < 0x80)
                return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f);
        if (c != 0xc2 && (c < 0xe1 || c > 0xe3))
                return 0;
        for (size_t i = 0; i < ARRAY_LEN(wide_spaces); i++) {
                size_t len = strlen(wide_spaces[i].bytes);
                *ret_ends_line = wide_spaces[i].ends_line;
                if ((size_t)(end - at) >= len && memcmp(at, wide_spaces[i].bytes, len) == 0)
                        return len;
        }
        return 0;
}

/* Bytes of the white space at the end of a nonempty text; 0: none. */
static size_t space_before(struct piece text)
{
        const char *end = text.at + text.len, *at = end - 1;
        bool ends_line;
        while (at > text.at && end - at < 3 && ((unsigned char)*at & 0xc0) == 0x80)
                at--;
        return space_at(at, end, &ends_line) == (size_t)(end - at) ? (size_t)(end - at) : 0;
}

static struct piece strip(struct piece text)
{
        size_t len;
        bool ends_line;
        while (text.len && (len = space_at(text.at, text.at + text.len, &ends_line))) {
                text.at += len;
                text.len -= len;
        }
        while (text.len && (len = space_before(text)))
                text.len -= len;
        return text;
}

/* The next word of a text, which is cut off from the text.  *ret_new_line: a line has ended before the word. */
static bool next_word(struct piece *text, struct piece *ret, bool *ret_new_line)
{
        const char *at = text->at, *end = text->at + text->len;
        bool ends_line;
        size_t len;
        *ret_new_line = false;
        while (at < end && (len = space_at(at, end, &ends_line))) {
                *ret_new_line = *ret_new_line || ends_line;
                at += len;
        }
        const char *from = at;
        while (at < end && !space_at(at, end, &ends_line))
                at++;
        *ret = (struct piece){ from, (size_t)(at - from) };
        *text = (struct piece){ at, (size_t)(end - at) };
        return ret->len > 0;
}

/* ---- LiveCodeBench ---- */

/* Up to the line feed, which is cut off as well. */
static struct piece next_line(struct piece *text)
{
        const char *feed = text->len ? memchr(text->at, '\n', text->len) : NULL;
        struct piece line = { text->at, feed ? (size_t)(feed - text->at) : text->len };
        size_t used = line.len + (feed != NULL);
        text->at += used;
        text->len -= used;
        return strip(line);
}

static size_t count_lines(struct piece text)
{
        size_t n = 1;
        for (size_t i = 0; i < text.len; i++)
                n += text.at[i] == '\n';
        return n;
}

/* As many words on both sides, and each pair equal numbers. */
static bool same_numbers(struct piece a, struct piece b, struct arena *arena)
{
        struct piece word_a, word_b;
        struct decimal number_a, number_b;
        bool feed;
        for (;;) {
                bool more_a = next_word(&a, &word_a, &feed), more_b = next_word(&b, &word_b, &feed);
                if (!more_a || !more_b)
                        return more_a == more_b;
                if (!decimal_read(word_a, arena, &number_a) || !decimal_read(word_b, arena, &number_b) ||
                        !decimal_same(&number_a, &number_b))
                        return false;
        }
}

const char *compare_lcb(const struct bytes *got, const struct bytes *expected, struct arena *arena)
{
        struct piece ours = strip((struct piece){ expected->bytes, expected->len }),
                     theirs = strip((struct piece){ got->bytes, got->len });
        size_t n = count_lines(ours), came = count_lines(theirs);
        if (n != came)
                return piece_count_differs(arena, "lines", n, came);
        for (size_t i = 0; i < n; i++) {
                struct piece mine = next_line(&ours), other = next_line(&theirs);
                if (!piece_same(mine, other) && !same_numbers(other, mine, arena))
                        return piece_differ(arena, "line", i + 1, mine, other);
        }
        return "";
}

/* ---- Prime ---- */

/* The first word with a difference, in its text or in its line. */
struct word_difference {
        size_t number;                 /* from 1; 0: there is none */
        struct piece expected, got;
};

static struct word_difference first_difference(struct piece ours, struct piece theirs)
{
        bool our_line, their_line;
        for (struct word_difference found = { .number = 1 };; found.number++) {
                bool more = next_word(&ours, &found.expected, &our_line), came = next_word(&theirs, &found.got,
                                                                                   &their_line);
                if (!more && !came)
                        return (struct word_difference){ 0 };
                if (!piece_same(found.expected, found.got) || (found.number > 1 && our_line != their_line))
                        return found;
        }
}

static const char *tell_word(struct arena *arena, const struct word_difference *found)
{
        if (piece_same(found->expected, found->got))
                return arena_text(arena, "word %zu is in another line than expected", found->number);
        return piece_differ(arena, "word", found->number, found->expected, found->got);
}

const char *compare_prime(const struct bytes *got, const struct bytes *expected, struct arena *arena)
{
        struct piece ours = { expected->bytes, expected->len }, theirs = { got->bytes, got->len }, mine, other;
        struct word_difference found = first_difference(ours, theirs);
        struct decimal number, other_number;
        bool new_line;
        if (!found.number)
                return "";
        for (size_t n = 1;; n++) {
                bool more = next_word(&ours, &mine, &new_line), came = next_word(&theirs, &other, &new_line);
                if (!more && !came)
                        return "";
                if (!more || !came || !decimal_read(mine, arena, &number) || !decimal_read(other, arena, &other_number))
                        return tell_word(arena, &found);
                if (!decimal_near(&number, &other_number))
                        return piece_differ(arena, "word", n, mine, other);
        }
}
