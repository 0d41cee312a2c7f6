/*
 * The interface between analyses and policies.
 *
 * An analysis turns a program into a flat list of facts, each with its place.  An analysis knows its language and no
 * policy: each thing that a policy could ask about becomes a fact.  Policies are lists of names to compare with facts
 * (match.c) and know no language.  A language is a grammar, one function, and a line in the list of policy/analyses.c.
 */
#ifndef POLICY_ANALYSIS_FACTS_H
#define POLICY_ANALYSIS_FACTS_H

#include "policy/analysis/tree.h"

enum fact_kind {
#define FACT(name, word, how, meaning) FACT_##name,
#include "policy/analysis/facts.def"
#undef FACT
        FACT_KINDS
};

/* One fact.  Texts live in the arena of struct facts. */
struct fact {
        enum fact_kind kind;
        const char *name;              /* "os.path.join"; the text of a text; may contain NUL bytes, so len counts */
        size_t len;
        const char *module;            /* of "from os import path": "os", while name is "os.path"; or NULL */
        uint64_t number;
        uint32_t start, end;           /* byte offsets in the program */
        bool optional;                 /* of an import: the program handles its failure */
        const char *language;          /* the language of code embedded in the program; NULL: the program's */
};

struct analysis;

/* The output of an analysis. */
struct facts {
        struct arena *arena;
        /* The analysis of code in another language inside of the program; NULL: such code is not analysed. */
        const struct analysis *(*find_analysis)(const char *language);
        struct fact *list;
        size_t n, size;
        bool full;                     /* more than FACTS_MAX facts, or too much work: the program cannot be judged */
        /* The program has a syntax error: offset and description. */
        bool broken;
        uint32_t broken_at;
        const char *broken_why;
        bool doubtful;                 /* only the interpreter can tell whether the program has a syntax error */
};

/* Append a fact.  The list lives in the arena; the fact's texts must live there, too. */
void facts_add(struct facts *facts, struct fact fact);
/* Report a syntax error.  Only the first report counts. */
void facts_break(struct facts *facts, uint32_t at, const char *why);

#define FACTS_MAX 200000

/* A language's analysis. */
struct analysis {
        const char *language;
        /*
         * Append the facts of a program.  `text` is the program with normalised line ends, in UTF-8; places refer to
         * it.  Errors: those of tree_parse().
         */
        int (*analyse)(const char *text, size_t len, struct facts *facts, struct csn_error *err);
        /* The program in the form that analyse() expects, from the arena; NULL: unchanged. */
        const char *(*prepare)(const char *text, size_t len, struct facts *facts, size_t *ret_len);
};

extern const struct analysis analysis_python;
extern const struct analysis analysis_bash;
extern const struct analysis analysis_javascript;
extern const struct analysis analysis_typescript;

/* ---- unicode.c: Unicode, and small helpers of all analyses ---- */

/* NFKC, as Python compares identifiers (PEP 3131).  From the arena; plain ASCII is returned unchanged. */
const char *unicode_normal(struct arena *arena, const char *text, size_t len, size_t *ret_len);

/* Latin-1 to UTF-8, from the arena. */
char *unicode_latin1(struct arena *arena, const char *text, size_t len, size_t *ret_len);

/* Append a code point in UTF-8; false: no code point, or buf is full. */
bool unicode_put(struct buf *buf, uint32_t code);

#endif
