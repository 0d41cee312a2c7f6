/*
 * Included by grammars before their generated code: character sets with a fast test for ASCII.
 *
 * A generated lexer tests each character of a name against a set of some 650 ranges by binary search, although most
 * characters are in the first four ranges.  The search took 7 % of a check.  The ranges are sorted, so ASCII comes
 * first; the result is equal for every character.
 */
#ifndef POLICY_ANALYSIS_SCANNER_SETS_H
#define POLICY_ANALYSIS_SCANNER_SETS_H

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
