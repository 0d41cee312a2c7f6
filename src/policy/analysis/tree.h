/*
 * A parse tree as one flat array, for all languages.
 *
 * tree-sitter's own nodes cost a search for each parent and each field; and whoever walks them by recursion
 * can be killed by 100,000 brackets.  So its tree is copied once, in the order of the text: a node's children
 * come after it, each node knows its parent and its next sibling, and every walk is a loop over numbers.
 *
 * A text that parses does not need its runtime at all (fast_parser.h), which is two thirds of the time.
 */
#ifndef POLICY_TREE_H
#define POLICY_TREE_H

#include "base/base.h"

struct TSLanguage;

/* What nodes and fields are called in a grammar; a node's `kind` and `field` are places in these lists. */
struct grammar {
        const struct TSLanguage *(*language)(void);
        const char *const *kinds;      /* [0] stands for every other kind; NULL-terminated */
        const char *const *fields;     /* [0] stands for no field, or one without a name here */
        const char *skipped;           /* a kind of node that stands anywhere and means nothing, or NULL */
        bool tokens;                   /* keep words and signs that have no name in the grammar, too */
};

struct node {
        uint32_t start, end;           /* bytes of the text */
        uint32_t parent, child, next;  /* 0: none, which is the root's number and never a child's */
        uint16_t kind;
        uint8_t field;
        bool token;                    /* a word or a sign */
};

struct tree {
        const char *text;
        size_t len;
        struct node *nodes;            /* [0] is the root */
        uint32_t n;
        bool broken;                   /* the text does not parse; where, as far as one can tell: */
        uint32_t broken_at;
};

/*
 * Errors: CSN_E_INPUT (more nodes than TREE_NODES_MAX, or more CPU time than TREE_TIME_US).  A text that does not
 * parse is no error.  Everything lives in the arena; the text has to stay.
 */
#define TREE_NODES_MAX 4000000
#define TREE_TIME_US 1000000
#define TREE_TIMES_MAX 60              /* so often as much time may pass, for others */
int tree_parse(const struct grammar *grammar, const char *text, size_t len, struct arena *arena, struct tree *ret, struct csn_error *err);

/*
 * Its two ways, for the tests that compare them.  The first is for a text that is right and gives up, false, whenever
 * something is not as usual (fast_parser.h); the second is tree-sitter's.
 */
bool tree_parse_fast(const struct grammar *grammar, const char *text, size_t len, struct arena *arena, struct tree *ret);
int tree_parse_slowly(const struct grammar *grammar, const char *text, size_t len, struct arena *arena, struct tree *ret, struct csn_error *err);

/*
 * Whether this process should not go on.  In tree-sitter 0.20 a node has at most 65,535 children, an ERROR node may
 * get more, and then some of them are freed twice.  Such trees are not freed here; a new process is the way out.
 */
bool tree_is_worn(void);

/* The first child of `parent` in a field or of a kind; 0 if there is none. */
uint32_t tree_field(const struct tree *tree, uint32_t parent, unsigned field);
uint32_t tree_kind(const struct tree *tree, uint32_t parent, unsigned kind);

/* Whether `inner` is `outer` or somewhere in it. */
static inline bool tree_within(const struct tree *tree, uint32_t inner, uint32_t outer)
{
        return inner == outer || (inner > outer && tree->nodes[inner].start < tree->nodes[outer].end &&
                                  tree->nodes[inner].end <= tree->nodes[outer].end);
}

/* Every node once, children before their parents, otherwise in the order of the text; tree->n numbers. */
uint32_t *tree_order(const struct tree *tree, struct arena *arena);

#endif
