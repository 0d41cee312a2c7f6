/*
 * For the grammars, before their own text: sets of characters where ASCII comes first.
 *
 * A generated lexer asks for each character of a name whether it is in a set of some 650 ranges, by halving, although
 * what people write is in the first four.  That was 7 % of a check.  The ranges are sorted, so those of ASCII are the
 * first ones; the answer is the same for every character.
 */
#ifndef POLICY_SETS_H
#define POLICY_SETS_H

#include <tree_sitter/parser.h>

static inline bool sets_contain(TSCharacterRange *ranges, uint32_t len, int32_t lookahead)
{
        if (lookahead >= 0x80)
                return set_contains(ranges, len, lookahead);
        for (uint32_t i = 0; i < len && lookahead >= ranges[i].start; i++)
                if (lookahead <= ranges[i].end)
                        return true;
        return false;
}

#define set_contains sets_contain

#endif
