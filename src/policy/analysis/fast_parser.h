/*
 * Fast path of a parse: reads a correct program with a grammar's own tables, without the parts that an editor needs.
 *
 * tree-sitter's runtime keeps the state to parse a text again after each key, and to recover from errors; this is most
 * of its work.  Here the same tables, lexer and scanner drive a plain stack; where a grammar is ambiguous there are
 * several stacks until a single stack remains, as in tree-sitter.  In every other case, syntax errors first of all,
 * this parser gives up and tree-sitter decides.
 *
 * Where this parser has an answer, the answer must equal tree-sitter's: tests/fuzz/fuzz-tree.c and
 * tests/unit/test-tree.c compare both.
 */
#ifndef POLICY_ANALYSIS_FAST_PARSER_H
#define POLICY_ANALYSIS_FAST_PARSER_H

#include "base/base.h"

struct TSLanguage;

/* A token, or a rule with its children; rules without a name in the tree are nodes, too. */
struct parse_node {
        uint32_t start, end;    /* byte offsets in the text */
        uint32_t n;             /* number of children; 0: a token, or an empty rule */
        uint32_t first;         /* with one child: its index in `list`; with more: the index of the first in `kids` */
        uint16_t symbol;        /* in the grammar */
        uint16_t production;
        int32_t precedence;            /* dynamic precedence, the sum of the subtree */
        bool extra;                    /* may stand anywhere */
};

/* A parsed program.  Freed by fast_parser_free(). */
struct parse_nodes {
        struct parse_node *list;
        uint32_t n, size;
        uint32_t *kids;                /* indexes in `list` */
        uint32_t kids_n, kids_size;
        uint32_t root;
};

static inline uint32_t parse_node_child(const struct parse_nodes *parse_nodes, const struct parse_node *parse_node,
        uint32_t i)
{
        return parse_node->n == 1 ? parse_node->first : parse_nodes->kids[parse_node->first + i];
}

/*
 * Parse a text.  false: this parser gave up; use tree-sitter.  In either case *ret is the caller's until
 * fast_parser_free().
 */
bool fast_parser_parse(const struct TSLanguage *language, const char *text, uint32_t len, struct parse_nodes *ret);
void fast_parser_free(struct parse_nodes *parse_nodes);

#endif
