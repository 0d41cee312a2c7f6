/*
 * Policies from their files.  A file with a mistake is refused as a whole, with the place of the mistake: without the
 * wrong rule the policy would be weaker than wanted.
 */
#include "policy/rules.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "model/settings.h"

#define FILE_MAX (256 * KIB)
#define EXTENDS_MAX 8

const struct fact_info fact_infos[FACT_KINDS] = {
#define FACT(name, word, how, meaning) [FACT_##name] = { word, how },
#include "policy/analysis/facts.def"
#undef FACT
};

struct loading {
        struct policies *policies;
        struct policy *policy;         /* policy of the file */
        struct csn_error *err;
};

static int wrong(const struct loading *load, unsigned line, const char *fmt, ...) PRINTF_LIKE(3, 4);

static int wrong(const struct loading *load, unsigned line, const char *fmt, ...)
{
        char text[300];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        return err_set(load->err, CSN_E_CONFIG, 0, "%s:%u: %s", load->policy->file, line, text);
}

/* ---- scalars ---- */

static int read_threshold(const struct loading *load, const struct yaml_node *node, int *ret)
{
        for (size_t i = 0; node->value && i < choices_threshold.n; i++)
                if (strcmp(choices_threshold.values[i].text, node->value) == 0) {
                        *ret = (int)i;
                        return 0;
                }
        return wrong(load, node->line, "%s is LOW, MEDIUM, HIGH, CRITICAL or SAFE", node->key);
}

static int read_severity(const struct loading *load, const struct yaml_node *node, int *ret)
{
        if (node->value && strcmp(node->value, "OFF") == 0) {
                *ret = -1;
                return 0;
        }
        for (size_t i = 0; node->value && i < choices_severity.n; i++)
                if (strcmp(choices_severity.values[i].text, node->value) == 0) {
                        *ret = (int)i;
                        return 0;
                }
        return wrong(load, node->line, "%s is LOW, MEDIUM, HIGH, CRITICAL or OFF", node->key);
}

static int read_number(const struct loading *load, const struct yaml_node *node, uint64_t *ret)
{
        char *end = NULL;
        errno = 0;
        unsigned long long number =
                node->value && isdigit((unsigned char)node->value[0]) ? strtoull(node->value, &end, 10) : 0;
        if (!end || *end || errno)
                return wrong(load, node->line, "%s has to be a number", node->key);
        *ret = number;
        return 0;
}

static int read_text(const struct loading *load, const struct yaml_node *node, const char **ret)
{
        if (!node->value)
                return wrong(load, node->line, "%s has to be one text", node->key);
        *ret = node->value;
        return 0;
}

/* ---- patterns ---- */

/* NULL: no pattern, and the error says so. */
static struct pattern *read_pattern(const struct loading *load, const struct yaml_node *item, enum fact_kind kind,
        size_t rule)
{
        struct pattern *pattern = arena_alloc(&load->policies->arena, sizeof *pattern);
        if (!item->value)
                return wrong(load, item->line, "a list of texts is wanted here"), NULL;
        *pattern = (struct pattern){ .kind = kind, .text = item->value, .len = strlen(item->value), .rule = rule };
        if (fact_infos[kind].how == WORDS) {
                int rc = regcomp(&pattern->regex, item->value, REG_EXTENDED | REG_ICASE | REG_NOSUB);
                char why[100] = "";
                if (rc)
                        regerror(rc, &pattern->regex, why, sizeof why);
                if (rc)
                        return wrong(load, item->line, "\"%.60s\" is no regular expression: %s", item->value, why),
                               NULL;
        } else {
                const char *star = strchr(item->value, '*');
                if (!pattern->len || (star && star[1]) || strpbrk(item->value, " \t"))
                        return wrong(load, item->line, "\"%.60s\" is no name; a * may stand at the end only",
                                       item->value),
                               NULL;
                pattern->prefix = star != NULL;
                pattern->len -= pattern->prefix;
        }
        return pattern;
}

static int read_patterns(const struct loading *load, const struct yaml_node *list, enum fact_kind kind, size_t rule,
        struct pattern **ret)
{
        struct pattern **tail = ret;
        while (*tail)
                tail = &(*tail)->next;
        if (!list->is_list)
                return wrong(load, list->line, "%s has to be a list", list->key);
        for (const struct yaml_node *item = list->children; item; item = item->next) {
                struct pattern *pattern = read_pattern(load, item, kind, rule);
                if (!pattern)
                        return -CSN_E_CONFIG;
                *tail = pattern;
                tail = &pattern->next;
        }
        return 0;
}

static int read_fact(const struct loading *load, const struct yaml_node *node, enum fact_kind kind, size_t rule,
        struct pattern **ret)
{
        struct pattern *pattern;
        if (fact_infos[kind].how != ABOVE && fact_infos[kind].how != ANY)
                return read_patterns(load, node, kind, rule, ret);
        pattern = arena_alloc(&load->policies->arena, sizeof *pattern);
        *pattern = (struct pattern){ .kind = kind, .text = "", .prefix = true, .rule = rule };
        if (fact_infos[kind].how == ANY && (!node->value || strcmp(node->value, "any") != 0))
                return wrong(load, node->line, "%s: say any", node->key);
        if (fact_infos[kind].how == ABOVE && read_number(load, node, &pattern->above) < 0)
                return -CSN_E_CONFIG;
        pattern->next = *ret;
        *ret = pattern;
        return 0;
}

/* ---- rules ---- */

/* Languages with an analysis (policy/analysis/facts.c); not every program with policies has the analyses. */
static bool is_language(const char *name)
{
        static const char *const names[] = { "python", "javascript", "typescript", "bash" };
        for (size_t i = 0; i < ARRAY_LEN(names); i++)
                if (strcmp(names[i], name) == 0)
                        return true;
        return false;
}

static int read_languages(const struct loading *load, const struct yaml_node *node, const char *const **ret)
{
        size_t n = 0;
        for (const struct yaml_node *item = node->children; item; item = item->next)
                n++;
        const char **languages = arena_alloc(&load->policies->arena, (n + 1) * sizeof *languages);
        n = 0;
        for (const struct yaml_node *item = node->children; item; item = item->next) {
                if (!item->value || !is_language(item->value))
                        return wrong(load, item->line,
                                "languages is a list of python, javascript, typescript and bash");
                languages[n++] = item->value;
        }
        if (!n)
                return wrong(load, node->line, "languages has to be a list");
        *ret = languages;
        return 0;
}

/* The name of a fact as a key begins its list anew: a changed rule gives the whole list. */
static int read_rule_key(const struct loading *load, const struct yaml_node *node, size_t number, struct rule *rule,
        uint64_t *begun)
{
        const char *key = node->key;
        const struct { const char *key; const char **into; } texts[] = {
                { "message", &rule->message }, { "advice", &rule->advice }, { "once", &rule->once },
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                if (strcmp(texts[i].key, key) == 0)
                        return read_text(load, node, texts[i].into);
        if (strcmp(key, "id") == 0)
                return 0;
        if (strcmp(key, "severity") == 0)
                return read_severity(load, node, &rule->severity);
        if (strcmp(key, "score") == 0)
                return read_number(load, node, &rule->score);
        if (strcmp(key, "languages") == 0)
                return read_languages(load, node, &rule->languages);
        if (strcmp(key, "except") == 0)
                return read_patterns(load, node, FACT_REFERENCE, number, &rule->excepts);
        if (strcmp(key, "always") == 0)
                return model_parse_bool(node->value ? node->value : "", &rule->always)
                        ? 0
                        : wrong(load, node->line, "always: say true or false");
        for (unsigned kind = 0; kind < FACT_KINDS; kind++)
                if (strcmp(fact_infos[kind].word, key) == 0) {
                        if (!*begun)
                                rule->patterns = NULL;
                        *begun = 1;
                        return read_fact(load, node, kind, number, &rule->patterns);
                }
        return wrong(load, node->line, "a rule has no \"%.40s\"", key);
}

static const struct yaml_node *entry(const struct yaml_node *node, const char *key)
{
        for (const struct yaml_node *child = node->children; child; child = child->next)
                if (child->key && strcmp(child->key, key) == 0)
                        return child;
        return NULL;
}

static struct rule *rule_of(struct policy *policy, const char *id)
{
        for (size_t i = 0; i < policy->rules_n; i++)
                if (strcmp(policy->rules[i].id, id) == 0)
                        return &policy->rules[i];
        return NULL;
}

static struct pattern *copy_patterns(const struct loading *load, const struct pattern *from, size_t rule)
{
        struct pattern *list = NULL, **tail = &list;
        for (; from; from = from->next) {
                *tail = arena_alloc(&load->policies->arena, sizeof **tail);
                **tail = *from;
                (*tail)->rule = rule;
                (*tail)->copied = true;
                (*tail)->next = (*tail)->next_equal = NULL;
                tail = &(*tail)->next;
        }
        return list;
}

static int read_rule(const struct loading *load, const struct yaml_node *node)
{
        struct policy *policy = load->policy;
        const struct yaml_node *id = entry(node, "id");
        uint64_t begun = 0;
        if (!id || !id->value)
                return wrong(load, node->line, "a rule needs an id");
        struct rule *rule = rule_of(policy, id->value);
        bool inherited = rule && rule->line == 0;
        if (rule && !inherited)
                return wrong(load, id->line, "there is a rule %.60s already, in line %u", id->value, rule->line);
        if (!rule && policy->rules_n == RULES_MAX)
                return wrong(load, node->line, "more than %d rules", RULES_MAX);
        if (!rule) {
                rule = &policy->rules[policy->rules_n++];
                *rule = (struct rule){ .id = id->value, .severity = -2, .languages = policy->languages };
        }
        rule->line = node->line;
        for (const struct yaml_node *key = node->children; key; key = key->next)
                if (read_rule_key(load, key, (size_t)(rule - policy->rules), rule, &begun) < 0)
                        return -CSN_E_CONFIG;
        if (rule->severity == -2)
                return wrong(load, node->line, "rule %.60s needs a severity", rule->id);
        if (!rule->message || !rule->patterns)
                return wrong(load, node->line, "rule %.60s needs %s", rule->id,
                        rule->message ? "something that it looks for" : "a message");
        return 0;
}

static int read_rules(const struct loading *load, const struct yaml_node *list)
{
        if (!list->is_list)
                return wrong(load, list->line, "rules has to be a list");
        for (const struct yaml_node *node = list->children; node; node = node->next)
                if (read_rule(load, node) < 0)
                        return -CSN_E_CONFIG;
        return 0;
}

/* Names under `deny` become a rule like any other. */
static int read_deny(const struct loading *load, const struct yaml_node *list)
{
        struct policy *policy = load->policy;
        struct rule *rule = rule_of(policy, "denied");
        if (!rule && policy->rules_n < RULES_MAX)
                rule = &policy->rules[policy->rules_n++];
        if (!rule)
                return wrong(load, list->line, "more than %d rules", RULES_MAX);
        size_t number = (size_t)(rule - policy->rules);
        *rule = (struct rule){ .id = "denied",
                .severity = severity_CRITICAL,
                .score = 10,
                .message = "{name} is denied",
                .always = true,
                .patterns = rule->patterns,
                .line = list->line };
        if (read_patterns(load, list, FACT_IMPORT, number, &rule->patterns) < 0)
                return -CSN_E_CONFIG;
        return read_patterns(load, list, FACT_REFERENCE, number, &rule->patterns);
}

static int read_sentences(const struct loading *load, const struct yaml_node *list)
{
        struct policy *policy = load->policy;
        size_t n = 0;
        for (const struct yaml_node *node = list->children; node; node = node->next)
                n++;
        policy->sentences = arena_alloc(&load->policies->arena, (n + 1) * sizeof *policy->sentences);
        policy->sentences_n = 0;
        for (const struct yaml_node *node = list->children; node; node = node->next) {
                const struct yaml_node *when = entry(node, "when"), *text = entry(node, "text"),
                                       *join = entry(node, "join");
                if (!when || !when->value || !text || !text->value)
                        return wrong(load, node->line, "a sentence has when and text, and join if wanted");
                policy->sentences[policy->sentences_n++] = (struct sentence){
                        .when = when->value,
                        .text = text->value,
                        .join = join && join->value ? join->value : "; ",
                        .line = node->line,
                };
        }
        return 0;
}

static int check_sentences(const struct loading *load)
{
        static const char *const words[] = { "clean", "critical", "refused", "score", "found" };
        for (size_t i = 0; i < load->policy->sentences_n; i++) {
                const struct sentence *sentence = &load->policy->sentences[i];
                bool known = rule_of(load->policy, sentence->when);
                for (size_t k = 0; k < ARRAY_LEN(words); k++)
                        known = known || strcmp(words[k], sentence->when) == 0;
                if (!known)
                        return wrong(load, sentence->line,
                                "when: \"%.60s\" is no rule, and none of clean, critical, refused, score and found",
                                sentence->when);
        }
        return 0;
}

/* ---- a policy ---- */

static int make_ready(struct loading *load, struct policy *policy, unsigned depth);

static struct policy *find(const struct policies *policies, const char *name)
{
        struct policy *policy = policies->list;
        while (policy && strcmp(policy->name, name) != 0)
                policy = policy->next;
        return policy;
}

static int extend(struct loading *load, const struct yaml_node *node, unsigned depth)
{
        struct policy *policy = load->policy, *parent = node->value ? find(load->policies, node->value) : NULL;
        if (!parent)
                return wrong(load, node->line, "there is no policy %.60s to extend",
                        node->value ? node->value : "\"\"");
        if (parent->loading || depth > EXTENDS_MAX)
                return wrong(load, node->line, "%.60s extends this policy in turn", parent->name);
        if (make_ready(load, parent, depth + 1) < 0)
                return -CSN_E_CONFIG;
        load->policy = policy;
        policy->extends = parent;
        policy->block_at = parent->block_at;
        policy->block_score = parent->block_score;
        policy->sentences = parent->sentences;
        policy->sentences_n = parent->sentences_n;
        policy->allow = copy_patterns(load, parent->allow, 0);
        for (size_t i = 0; i < parent->rules_n; i++) {
                struct rule *rule = &policy->rules[policy->rules_n++];
                *rule = parent->rules[i];
                rule->line = 0;
                rule->patterns = copy_patterns(load, rule->patterns, i);
                rule->excepts = copy_patterns(load, rule->excepts, i);
        }
        return 0;
}

static int read_policy_key(struct loading *load, const struct yaml_node *node)
{
        struct policy *policy = load->policy;
        const char *text = NULL;
        if (strcmp(node->key, "policy") == 0) {
                if (read_text(load, node, &text) < 0 || !text)
                        return -CSN_E_CONFIG;
                return strcmp(text, policy->name) == 0
                        ? 0
                        : wrong(load, node->line, "the policy of this file has to be called %s", policy->name);
        }
        if (strcmp(node->key, "extends") == 0 || strcmp(node->key, "languages") == 0)
                return 0;              /* read before, because the others need both */
        if (strcmp(node->key, "description") == 0)
                return read_text(load, node, &policy->description);
        if (strcmp(node->key, "block_at") == 0)
                return read_threshold(load, node, &policy->block_at);
        if (strcmp(node->key, "block_score") == 0)
                return read_number(load, node, &policy->block_score);
        if (strcmp(node->key, "rules") == 0)
                return read_rules(load, node);
        if (strcmp(node->key, "sentences") == 0)
                return read_sentences(load, node);
        if (strcmp(node->key, "allow") == 0)
                return read_patterns(load, node, FACT_IMPORT, 0, &policy->allow);
        if (strcmp(node->key, "deny") == 0)
                return read_deny(load, node);
        return wrong(load, node->line,
                "a policy has no \"%.40s\"; it has policy, description, extends, languages, block_at, block_score, allow, "
                "deny, sentences and rules",
                node->key);
}

static size_t place_of(const struct policy *policy, enum fact_kind kind, const char *text, size_t len)
{
        uint64_t h = 14695981039346656037U ^ kind;
        for (size_t i = 0; i < len; i++)
                h = (h ^ (unsigned char)text[i]) * 1099511628211U;
        return (size_t)(h ^ h >> 29) & (policy->table_size - 1);
}

static void index_patterns(const struct loading *load, struct policy *policy)
{
        size_t n = 0;
        for (size_t i = 0; i < policy->rules_n; i++)
                for (const struct pattern *p = policy->rules[i].patterns; p; p = p->next)
                        n++;
        policy->table_size = 64;
        while (policy->table_size < 2 * n)
                policy->table_size *= 2;
        policy->table = arena_alloc(&load->policies->arena, policy->table_size * sizeof(struct pattern *));
        policy->prefixes = arena_alloc(&load->policies->arena, (n + 1) * sizeof(struct pattern *));
        for (size_t i = policy->rules_n; i-- > 0;)
                for (struct pattern *p = policy->rules[i].patterns; p; p = p->next) {
                        if (policy->rules[i].severity < 0)
                                continue;
                        if (p->prefix || fact_infos[p->kind].how == WORDS) {
                                policy->prefixes[policy->prefixes_n++] = p;
                                continue;
                        }
                        struct pattern **slot = &policy->table[place_of(policy, p->kind, p->text, p->len)];
                        p->next_equal = *slot;
                        *slot = p;
                }
}

/* To open a FIFO would block until its other end is opened. */
static ssize_t read_policy(const char *file, char *text, struct csn_error *err)
{
        struct stat st;
        if (stat(file, &st) == 0 && !S_ISREG(st.st_mode))
                return err_set(err, CSN_E_CONFIG, 0,
                        "%s is no regular file, which a policy has to be; remove it, or give it another ending", file);
        ssize_t len = io_read_file(AT_FDCWD, file, text, FILE_MAX);
        return len < 0 ? err_set(err, CSN_E_CONFIG, errno, "read %s", file) : len;
}

static int make_ready(struct loading *load, struct policy *policy, unsigned depth)
{
        struct yaml_node root;
        struct arena *arena = &load->policies->arena;
        if (policy->ready)
                return 0;
        policy->loading = true;
        load->policy = policy;
        char *text = arena_alloc(arena, FILE_MAX + 1);
        ssize_t len = read_policy(policy->file, text, load->err);
        if (len < 0)
                return -CSN_E_CONFIG;
        if (yaml_parse(text, (size_t)len, policy->file, arena, &root, load->err) < 0)
                return -CSN_E_CONFIG;
        policy->rules = arena_alloc(arena, RULES_MAX * sizeof *policy->rules);
        const struct yaml_node *extends = entry(&root, "extends"), *languages = entry(&root, "languages");
        if (extends && extend(load, extends, depth) < 0)
                return -CSN_E_CONFIG;
        if (languages && read_languages(load, languages, &policy->languages) < 0)
                return -CSN_E_CONFIG;
        for (const struct yaml_node *node = root.children; node; node = node->next)
                if (read_policy_key(load, node) < 0)
                        return -CSN_E_CONFIG;
        if (check_sentences(load) < 0)
                return -CSN_E_CONFIG;
        if (!extends && !entry(&root, "rules") && !entry(&root, "allow") && !entry(&root, "deny"))
                return wrong(load, 1,
                        "this decides nothing: a policy needs rules, extends, deny or allow; \"rules: []\" is one that looks for nothing");
        index_patterns(load, policy);
        policy->ready = true;
        policy->loading = false;
        return 0;
}

/* ---- all ---- */

/* Without the ending: linx comes before linx-strict. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
        size_t a_len = strcspn((*a)->d_name, "."), b_len = strcspn((*b)->d_name, ".");
        int order = memcmp((*a)->d_name, (*b)->d_name, a_len < b_len ? a_len : b_len);
        return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int is_policy_file(const struct dirent *entry_)
{
        size_t len = strlen(entry_->d_name);
        return len > 5 && entry_->d_name[0] != '.' && strcmp(entry_->d_name + len - 5, ".yaml") == 0;
}

static void list_folder(struct policies *policies, const char *folder)
{
        struct dirent **entries;
        int n = folder && folder[0] ? scandir(folder, &entries, is_policy_file, by_name) : 0;
        struct policy **tail = &policies->list;
        for (int i = 0; i < n; i++) {
                char *name = arena_copy(&policies->arena, entries[i]->d_name, strlen(entries[i]->d_name) - 5);
                if (!find(policies, name)) {
                        while (*tail)
                                tail = &(*tail)->next;
                        *tail = arena_alloc(&policies->arena, sizeof **tail);
                        (*tail)->name = name;
                        (*tail)->file = arena_text(&policies->arena, "%s/%s", folder, entries[i]->d_name);
                }
                free(entries[i]);
        }
        if (n > 0)
                free(entries);
}

int policies_load(const char *const *folders, size_t n, struct policies **ret, struct csn_error *err)
{
        struct policies *policies = mem_alloc(sizeof *policies);
        struct loading load = { .policies = policies, .err = err };
        for (size_t i = 0; i < n; i++)
                list_folder(policies, folders[i]);
        for (struct policy *policy = policies->list; policy; policy = policy->next)
                if (make_ready(&load, policy, 0) < 0) {
                        policies_free(policies);
                        return -err->code;
                }
        *ret = policies;
        return 0;
}

void policies_free(struct policies *policies)
{
        if (!policies)
                return;
        for (struct policy *policy = policies->list; policy; policy = policy->next)
                for (size_t i = 0; i < policy->rules_n; i++)
                        for (struct pattern *p = policy->rules[i].patterns; p; p = p->next)
                                if (fact_infos[p->kind].how == WORDS && !p->copied)
                                        regfree(&p->regex);
        arena_done(&policies->arena);
        free(policies);
}

int policies_find(const struct policies *policies, const char *name, const struct policy **ret, struct csn_error *err)
{
        char known[300] = "";
        size_t len = 0;
        const struct policy *policy = find(policies, name);
        if (policy && policy->name[0] != '_') {
                *ret = policy;
                return 0;
        }
        for (policy = policies->list; policy && len < sizeof known; policy = policy->next)
                if (policy->name[0] != '_')
                        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", policy->name);
        return err_field(err, "/policy", "there is no policy \"%.40s\"; known are %s", name, known);
}

const struct pattern *policy_lookup(const struct policy *policy, enum fact_kind kind, const char *text, size_t len)
{
        const struct pattern *pattern = policy->table[place_of(policy, kind, text, len)];
        while (pattern && !pattern_is(pattern, kind, text, len))
                pattern = pattern->next_equal;
        return pattern;
}

bool pattern_is(const struct pattern *pattern, enum fact_kind kind, const char *text, size_t len)
{
        return pattern->kind == kind && pattern->len == len && !pattern->prefix &&
                memcmp(pattern->text, text, len) == 0;
}

bool patterns_cover(const struct pattern *list, const char *text, size_t len, bool below)
{
        for (; list; list = list->next) {
                bool begins = len >= list->len && memcmp(list->text, text, list->len) == 0;
                if (begins && (list->prefix || len == list->len || (below && text[list->len] == '.')))
                        return true;
        }
        return false;
}
