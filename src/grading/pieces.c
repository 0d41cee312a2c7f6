/* Sentences about differences of outputs.  Bytes, and no locale; both sides may be anything. */
#include "grading/pieces.h"

#include <stdio.h>

#define SHOWN 60               /* bytes of a word or line in a sentence */

bool piece_same(struct piece a, struct piece b)
{
        return a.len == b.len && (!a.len || memcmp(a.at, b.at, a.len) == 0);
}

static struct piece show(struct piece piece)
{
        piece.len = piece.len < SHOWN ? piece.len : SHOWN;
        return piece;
}

const char *piece_differ(struct arena *arena, const char *what, size_t number, struct piece expected, struct piece got)
{
        char text[2 * 4 * SHOWN + 100];
        size_t len;
        expected = show(expected);
        got = show(got);
        snprintf(text, sizeof text, "%s %zu: expected '%.*s', got '%.*s'", what, number, (int)expected.len, expected.at,
                (int)got.len, got.at);
        return model_utf8(arena, text, strlen(text), &len);
}

const char *piece_count_differs(struct arena *arena, const char *what, size_t expected, size_t got)
{
        return arena_text(arena, "expected %zu %s, got %zu", expected, what, got);
}
