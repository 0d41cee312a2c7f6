/*
 * A parse tree as one flat array, for all languages.
 *
 * tree-sitter's nodes need a search for each parent and field, and a recursive walk overflows the stack on 100,000
 * brackets.  So the tree is copied once, in the order of the text: a node's children follow the node, each node knows
 * its parent and next sibling, and every walk is a loop over numbers.
 *
 * A correct program needs no tree-sitter runtime at all (fast_parser.h), which is two thirds of the time.
 */
#ifndef POLICY_ANALYSIS_TREE_H
#define POLICY_ANALYSIS_TREE_H

#include "base/base.h"

struct TSLanguage;

/* The names of nodes and fields in a grammar; a node's `kind` and `field` are indexes into these lists. */
struct grammar {
        const struct TSLanguage *(*language)(void);
        const char *const *kinds;      /* [0] stands for all other kinds; NULL-terminated */
        const char *const *fields;     /* [0] stands for no field, or for a field without a name here */
        const char *skipped;           /* a kind of node that may stand anywhere without meaning, or NULL */
        bool tokens;                   /* keep keywords and punctuation without a name in the grammar */
};

struct node {
        uint32_t start, end;           /* byte offsets in the text */
        uint32_t parent, child, next;  /* 0: none; 0 is the root's number, and the root is never a child */
        uint16_t kind;
        uint8_t field;
        bool token;                    /* a keyword or punctuation */
};

/* A tree.  The nodes live in an arena, the text is the caller's. */
struct tree {
        const char *text;
        size_t len;
        struct node *nodes;            /* [0] is the root */
        uint32_t n;
        bool broken;                   /* the text has a syntax error, at this offset as far as known: */
        uint32_t broken_at;
};

/*
 * Parse a text.  Everything lives in the arena; the text must stay.  A text with a syntax error is no error.  Errors:
 * CSN_E_INPUT (more nodes than TREE_NODES_MAX, or more CPU time than TREE_TIME_US microseconds).
 */
#define TREE_NODES_MAX 4000000
#define TREE_TIME_US 1000000
#define TREE_TIMES_MAX 60 /* the wall-clock limit is TREE_TIME_US times this: time that other processes take */
int tree_parse(const struct grammar *grammar, const char *text, size_t len, struct arena *arena, struct tree *ret,
        struct csn_error *err);

/*
 * The two parsers behind tree_parse(), for tests that compare them.  The fast parser reads correct programs alone and
 * returns false in all other cases (fast_parser.h); the slow parser is tree-sitter.  Errors: as tree_parse().
 */
bool tree_parse_fast(const struct grammar *grammar, const char *text, size_t len, struct arena *arena,
        struct tree *ret);
int tree_parse_slowly(const struct grammar *grammar, const char *text, size_t len, struct arena *arena,
        struct tree *ret, struct csn_error *err);

/*
 * Whether this process should exit.  In tree-sitter 0.20 a node has at most 65,535 children; an ERROR node may get
 * more, and then some are freed twice.  Such trees are not freed here; the cure is a new process.
 */
bool tree_is_worn(void);

/* The first child of `parent` with this field, or of this kind; 0: none. */
uint32_t tree_field(const struct tree *tree, uint32_t parent, unsigned field);
uint32_t tree_kind(const struct tree *tree, uint32_t parent, unsigned kind);

/* Whether `inner` is `outer` or a descendant. */
static inline bool tree_within(const struct tree *tree, uint32_t inner, uint32_t outer)
{
        return inner == outer || (inner > outer && tree->nodes[inner].start < tree->nodes[outer].end &&
                                  tree->nodes[inner].end <= tree->nodes[outer].end);
}

/* All tree->n node numbers, children before their parents, else in the order of the text.  From the arena. */
uint32_t *tree_order(const struct tree *tree, struct arena *arena);

#endif
