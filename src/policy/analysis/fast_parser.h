/*
 * The usual case of a parse: a text that is right, read with a grammar's own tables and none of what an editor needs.
 *
 * tree-sitter's runtime keeps what it takes to parse a text again after each key, and to go on after a mistake.  That is
 * most of its work.  Here the same tables, the same lexer and the same scanner drive a plain stack; where a grammar is
 * ambiguous there are a few stacks until one is left, as in tree-sitter.  Whatever does not come out even, a mistake
 * first of all, is given up, and tree-sitter says what it is.
 *
 * So the two must never differ where this one has an answer: tests/fuzz/fuzz-tree.c and tests/unit/test-tree.c compare them.
 */
#ifndef POLICY_QUICK_H
#define POLICY_QUICK_H

#include "base/base.h"

struct TSLanguage;

/* A token, or the children of a rule; also of rules that have no name in the tree. */
struct parse_node {
        uint32_t start, end;           /* bytes of the text */
        uint32_t n;                    /* of children; 0: a token, or a rule without anything */
        uint32_t first;                /* of one child: its place in `list`; of more: the place of theirs in `kids` */
        uint16_t symbol;               /* of the grammar */
        uint16_t production;
        int32_t precedence;            /* dynamic, of all that is in it */
        bool extra;                    /* may stand anywhere */
};

struct parse_nodes {
        struct parse_node *list;
        uint32_t n, size;
        uint32_t *kids;                /* places in `list` */
        uint32_t kids_n, kids_size;
        uint32_t root;
};

static inline uint32_t parse_node_child(const struct parse_nodes *parse_nodes, const struct parse_node *parse_node, uint32_t i)
{
        return parse_node->n == 1 ? parse_node->first : parse_nodes->kids[parse_node->first + i];
}

/* false: ask tree-sitter.  *ret is the caller's to release, in either case. */
bool fast_parser_parse(const struct TSLanguage *language, const char *text, uint32_t len, struct parse_nodes *ret);
void fast_parser_free(struct parse_nodes *parse_nodes);

#endif
