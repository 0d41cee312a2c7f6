/* Tables of grammars, and the text for lexers and scanners; see fast_tables.h. */
#include "policy/analysis/fast_tables.h"

#define LANGUAGES_MAX 4
#define LANGUAGE_VERSION 14            /* of the tables */

/* ---- tables ---- */

struct tables *tables_of(const TSLanguage *language)
{
        static struct tables known[LANGUAGES_MAX];
        size_t i = 0;
        while (i < LANGUAGES_MAX && known[i].language && known[i].language != language)
                i++;
        if (i == LANGUAGES_MAX || language->version != LANGUAGE_VERSION)
                return NULL;
        if (known[i].language)
                return &known[i];
        known[i] = (struct tables){ language, mem_alloc(language->state_count * sizeof(uint16_t *)) };
        return &known[i];
}

uint16_t *tables_unpack(const TSLanguage *language, uint16_t state)
{
        uint16_t *line = mem_alloc(language->symbol_count * sizeof *line);
        if (state < language->large_state_count) {
                memcpy(line, &language->parse_table[(size_t)state * language->symbol_count],
                        language->symbol_count * sizeof *line);
                return line;
        }
        const uint16_t *data =
                &language->small_parse_table[language->small_parse_table_map[state - language->large_state_count]];
        for (uint16_t groups = *data++; groups; groups--) {
                uint16_t value = *data++;
                for (uint16_t n = *data++; n; n--)
                        line[*data++] = value;
        }
        return line;
}

/* ---- the text for lexers and scanners ---- */

static inline void look(struct lexer *lexer)
{
        if (lexer->at >= lexer->len) {
                lexer->data.lookahead = 0;
                return;
        }
        const unsigned char *b = (const unsigned char *)lexer->text + lexer->at;
        lexer->size = 1;
        lexer->data.lookahead = b[0];
        if (b[0] < 0x80)
                return;
        lexer->size = (uint8_t)utf8_step((const char *)b, lexer->len - lexer->at);
        switch (lexer->size) {
        case 2:
                lexer->data.lookahead = (b[0] & 0x1f) << 6 | (b[1] & 0x3f);
                break;
        case 3:
                lexer->data.lookahead = (b[0] & 0x0f) << 12 | (b[1] & 0x3f) << 6 | (b[2] & 0x3f);
                break;
        case 4:
                lexer->data.lookahead = (b[0] & 0x07) << 18 | (b[1] & 0x3f) << 12 | (b[2] & 0x3f) << 6 | (b[3] & 0x3f);
                break;
        default:
                lexer->size = 1;
                lexer->strange = true;
        }
}

static void lexer_advance(TSLexer *data, bool skip)
{
        struct lexer *lexer = (struct lexer *)data;
        if (lexer->at >= lexer->len)
                return;
        lexer->at += lexer->size;
        if (skip) {
                if (lexer->runs && data->lookahead == ' ')
                        while (lexer->at < lexer->len && lexer->text[lexer->at] == ' ')
                                lexer->at++;
                lexer->start = lexer->at;
        }
        look(lexer);
}

static void lexer_mark_end(TSLexer *data)
{
        struct lexer *lexer = (struct lexer *)data;
        lexer->end = lexer->at;
}

static uint32_t lexer_column(TSLexer *data)
{
        ((struct lexer *)data)->strange = true;   /* not used by our scanners */
        return 0;
}

/* The only range is the text. */
static bool lexer_at_range(const TSLexer *data)
{
        const struct lexer *lexer = (const struct lexer *)data;
        return lexer->at == 0 && lexer->len > 0;
}

static bool lexer_eof(const TSLexer *data)
{
        const struct lexer *lexer = (const struct lexer *)data;
        return lexer->at >= lexer->len;
}

static void lexer_log(const TSLexer *data, const char *fmt, ...)
{
        (void)data;
        (void)fmt;
}

const TSLexer lexer_functions = { .advance = lexer_advance, .mark_end = lexer_mark_end, .get_column = lexer_column,
                                  .is_at_included_range_start = lexer_at_range, .eof = lexer_eof, .log = lexer_log };

void lexer_begin(struct lexer *lexer, uint32_t at)
{
        lexer->at = lexer->start = at;
        lexer->end = NONE;
        lexer->data.result_symbol = 0;
        look(lexer);
}

void lexer_finish(struct lexer *lexer)
{
        if (lexer->end == NONE)
                lexer->end = lexer->at;
        if (lexer->end < lexer->start)
                lexer->start = lexer->end;
}
