/*
 * What all analyses share; for the files of this folder.
 *
 * An analysis turns a program into a flat list of facts.  It knows a language and no policy: everything that a
 * policy could ask is said, each time with the place.  Policies are lists of names that are compared with facts
 * (match.c) and know no language.  A language is a grammar, one function, and a line in the list of facts.c.
 */
#ifndef POLICY_FACTS_H
#define POLICY_FACTS_H

#include "policy/analysis/tree.h"

enum fact_kind {
#define FACT(name, word, how, meaning) FACT_##name,
#include "policy/analysis/facts.def"
#undef FACT
        FACT_KINDS
};

struct fact {
        enum fact_kind kind;
        const char *name;              /* "os.path.join"; of a text, the text; may have NUL bytes: */
        size_t len;
        const char *module;            /* of "from os import path": "os", while name is "os.path"; or NULL */
        uint64_t number;
        uint32_t start, end;           /* bytes of the text */
        const char *language;          /* of code in another language inside of the program; NULL: the program's */
};

struct facts {
        struct arena *arena;
        struct fact *list;
        size_t n, size;
        bool full;                     /* more than FACTS_MAX, or too much work: a program that nobody can judge */
        /* The program is none: in which place, and in which words. */
        bool broken;
        uint32_t broken_at;
        const char *broken_why;
        bool doubtful;                 /* it may be none, which only its interpreter can say */
};

/* Everything in it lives in the arena.  Names have to. */
void facts_add(struct facts *facts, struct fact fact);
/* Only the first of these counts. */
void facts_break(struct facts *facts, uint32_t at, const char *why);

#define FACTS_MAX 200000

struct analysis {
        const char *language;
        /*
         * `text` is what was analysed and what places refer to: the program, with its line ends made equal, in UTF-8.
         * Errors: those of tree_parse().
         */
        int (*analyse)(const char *text, size_t len, struct facts *facts, struct csn_error *err);
        /* The program as the analysis wants it, or NULL if it wants it as it is. */
        const char *(*prepare)(const char *text, size_t len, struct facts *facts, size_t *ret_len);
};

extern const struct analysis analysis_python;
extern const struct analysis analysis_bash;
extern const struct analysis analysis_javascript;
extern const struct analysis analysis_typescript;

/* NULL: there is none for this language. */
const struct analysis *analysis_find(const char *language);
const struct analysis *analysis_at(size_t n);

/* ---- words (unicode.c): Unicode and the small things that every analysis needs ---- */

/* As Python compares identifiers: NFKC (PEP 3131), from the arena; plain ASCII comes back as it is. */
const char *unicode_normal(struct arena *arena, const char *text, size_t len, size_t *ret_len);

/* Latin-1 into UTF-8. */
char *unicode_latin1(struct arena *arena, const char *text, size_t len, size_t *ret_len);

/* Append a code point in UTF-8; false for a number that is none. */
bool unicode_put(struct buf *buf, uint32_t code);

#endif
