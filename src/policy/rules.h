/* Policies in memory, shared by rules.c, which loads them, and match.c, which applies them. */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include <regex.h>

#include "policy/analysis/facts.h"
#include "policy/policy.h"

/* How the values of a kind of fact are compared (see facts.def). */
enum pattern_how { NAMES, MODULES, WORDS, ABOVE, ANY };

/* The name of a kind of fact in policy files, and its comparison. */
struct fact_info {
        const char *word;
        enum pattern_how how;
};
extern const struct fact_info fact_infos[FACT_KINDS];

/* One value in a rule's `finds`, `except` or `allow`.  Lives in the arena of struct policies. */
struct pattern {
        enum fact_kind kind;
        const char *text;
        size_t len;                    /* without the final * */
        bool prefix;                   /* the text had a final * */
        uint64_t above;
        regex_t regex;
        bool copied;                   /* copied from the extended policy, which owns the regex */
        struct pattern *next;          /* in the same rule */
        struct pattern *next_equal;    /* in the same slot of the policy's table */
        size_t rule;
};

/* One rule of a policy. */
struct rule {
        const char *id;
        int severity;                  /* enum severity; -1: disabled */
        uint64_t score;
        const char *message, *advice;
        const char *once;              /* group name: of the rules of a group only the first counts per place */
        bool always;                   /* `allow` does not apply */
        bool note;                     /* a finding that refuses nothing, whatever its severity */
        const char *const *languages;  /* NULL-terminated; NULL: all */
        struct pattern *patterns;
        struct pattern *excepts;
        unsigned line;
};

/* The sentence for a verdict: the first with a true condition. */
struct sentence {
        const char *when;              /* the id of a rule with a finding, or a condition of match.c */
        const char *text, *join;
        unsigned line;
};

#define RULES_MAX 400

struct policy {
        const char *name, *file, *description;
        const struct policy *extends;
        int block_at;                  /* enum threshold */
        uint64_t block_score;          /* 0: none */
        const char *const *languages;  /* for rules without languages; NULL: all */
        struct rule *rules;
        size_t rules_n;
        struct sentence *sentences;
        size_t sentences_n;
        struct pattern *allow;
        struct pattern **table;        /* exact patterns, by hash of kind and text */
        size_t table_size;
        struct pattern **prefixes;     /* all other patterns */
        size_t prefixes_n;
        bool ready, loading;
        struct policy *next;
};

/* All policies.  The arena owns them. */
struct policies {
        struct arena arena;
        struct policy *list;
};

/* The first exact pattern of this kind and text, or NULL; follow next_equal and compare again with pattern_is(). */
const struct pattern *policy_lookup(const struct policy *policy, enum fact_kind kind, const char *text, size_t len);
bool pattern_is(const struct pattern *pattern, enum fact_kind kind, const char *text, size_t len);
/* Whether a list of names has this name; with `below` a name also stands for all names below. */
bool patterns_cover(const struct pattern *list, const char *text, size_t len, bool below);

#endif
