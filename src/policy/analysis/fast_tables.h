/*
 * fast_tables: what the fast parser reads: the tables of a grammar, and the text as lexers and scanners see it.
 *
 * State, production and action are tree-sitter's terms.
 */
#ifndef POLICY_ANALYSIS_FAST_TABLES_H
#define POLICY_ANALYSIS_FAST_TABLES_H

#include "base/base.h"

#include <tree_sitter/parser.h>

#define NONE UINT32_MAX

/* ---- tables ---- */

/* The table of a language by state and symbol.  A line is unpacked on first use; NULL before. */
struct tables {
        const TSLanguage *language;
        uint16_t **lines;
};

/* The tables of a language, for the life of the process; NULL: another version of the format, or too many languages. */
struct tables *tables_of(const TSLanguage *language);
/* Unpack the line of a state.  The caller frees it. */
uint16_t *tables_unpack(const TSLanguage *language, uint16_t state);

static inline uint16_t look_up(struct tables *tables, uint16_t state, uint16_t symbol)
{
        if (!tables->lines[state])
                tables->lines[state] = tables_unpack(tables->language, state);
        return tables->lines[state][symbol];
}

static inline const TSParseActionEntry *actions_of(struct tables *tables, uint16_t state, uint16_t symbol)
{
        return &tables->language->parse_actions[look_up(tables, state, symbol)];
}

/* ---- the text ---- */

struct lexer {
        TSLexer data;                  /* first member: lexers and scanners get its address */
        const char *text;
        uint32_t len, at, start, end;
        uint8_t size;                  /* of the character at `at` */
        bool runs;                     /* skip a run of blanks at once */
        bool strange;                  /* the text has something that tree-sitter has to decide */
};

extern const TSLexer lexer_functions;

/* Begin a token at a byte offset. */
void lexer_begin(struct lexer *lexer, uint32_t at);
/* Fix the end of a token. */
void lexer_finish(struct lexer *lexer);

#endif
