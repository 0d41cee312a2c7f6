/* Policies from the inside; for rules.c and match.c. */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include <regex.h>

#include "policy/analysis/facts.h"
#include "policy/policy.h"

/* How the values of a kind of fact are compared (facts.def). */
enum pattern_how { NAMES, MODULES, WORDS, ABOVE, ANY };

struct fact_info {
        const char *word;
        enum pattern_how how;
};
extern const struct fact_info fact_infos[FACT_KINDS];

struct pattern {
        enum fact_kind kind;
        const char *text;
        size_t len;                    /* without a * at its end */
        bool prefix;                   /* there was one */
        uint64_t above;
        regex_t regex;
        bool copied;                   /* from the policy that is extended: its regex is */
        struct pattern *next;          /* of the same rule */
        struct pattern *next_equal;    /* in the policy's table */
        size_t rule;
};

struct rule {
        const char *id;
        int severity;                  /* enum severity; -1: switched off */
        uint64_t score;
        const char *message, *advice;
        const char *once;              /* of the rules of one group only the first counts in a place */
        bool always;                   /* `allow` has no say in it */
        const char *const *languages;  /* NULL-terminated; NULL: all */
        struct pattern *patterns;
        struct pattern *excepts;
        unsigned line;
};

/* The sentence for a verdict; the first whose condition holds. */
struct sentence {
        const char *when;              /* the id of a rule that found something, or a word of match.c */
        const char *text, *join;
        unsigned line;
};

#define RULES_MAX 400

struct policy {
        const char *name, *file, *description;
        const struct policy *extends;
        int block_at;                  /* enum severity */
        uint64_t block_score;          /* 0: none */
        const char *const *languages;  /* of rules that name none; NULL: all */
        struct rule *rules;
        size_t rules_n;
        struct sentence *sentences;
        size_t sentences_n;
        struct pattern *allow;
        struct pattern **table;        /* exact patterns by hash of kind and text */
        size_t table_size;
        struct pattern **prefixes;     /* and the others */
        size_t prefixes_n;
        bool ready, loading;
        struct policy *next;
};

struct policies {
        struct arena arena;
        struct policy *list;
};

/* The exact patterns of this kind and text; go on by next_equal and compare again. */
const struct pattern *policy_lookup(const struct policy *policy, enum fact_kind kind, const char *text, size_t len);
bool pattern_is(const struct pattern *pattern, enum fact_kind kind, const char *text, size_t len);
/* Whether a list of names has this one; with `below` a name stands for what is below it. */
bool patterns_cover(const struct pattern *list, const char *text, size_t len, bool below);

#endif
