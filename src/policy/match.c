/* Facts and a policy -> findings and a verdict. */
#include "policy/analyses.h"
#include "policy/rules.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>

#define FINDINGS_MAX 1000
#define LINE_SHOWN 400             /* bytes of a line of the program in a finding */
#define TEXT_SEARCHED (64 * KIB)   /* of a constant text by a rule for texts */

struct hit {
        const struct rule *rule;
        const struct fact *fact;
        const char *pattern;
};

struct match {
        const struct policy *policy;
        const struct check_request *request;
        const char *language;
        int block_at;
        struct arena *arena;
        struct hit *hits;
        size_t n;
        bool truncated, refused_more;  /* more hits than listed; refused hits among the rest */
        uint64_t score_more;
        const char *text;              /* as analysed */
        size_t len;
        const char *file;              /* "prelude", or NULL: the program */
        char **tools;                  /* names not to be defined by the program */
        size_t tools_n;
};

/* The rules of a request. */
static const struct rule forbidden_module = { .id = "forbidden_module",
        .severity = severity_CRITICAL,
        .score = 10,
        .message = "Forbidden import: {pattern}",
        .advice = "Do without the module; the request forbids it." };
static const struct rule forbidden_dynamic = { .id = "forbidden_module",
        .severity = severity_CRITICAL,
        .score = 10,
        .message = "Import of a module whose name is not constant",
        .advice = "Write an import statement." };
static const struct rule shadows_tool = { .id = "shadows_tool",
        .severity = severity_LOW,
        .note = true,
        .message = "The program defines {name}, which is the name of a tool",
        .advice = "Call the tool, or give the definition another name." };

/* ---- which rules a fact meets ---- */

static bool speaks(const struct rule *rule, const char *language)
{
        for (const char *const *l = rule->languages; l && *l; l++)
                if (strcmp(*l, language) == 0)
                        return true;
        return !rule->languages;
}

/* A program inside of the program has its own language. */
static const char *language_of(const struct match *match, const struct fact *fact)
{
        return fact->language ? fact->language : match->language;
}

static bool is_allowed(const struct match *match, const struct fact *fact)
{
        bool import = fact->kind == FACT_IMPORT;
        size_t module_len = fact->module ? strlen(fact->module) : 0;
        if (patterns_cover(match->policy->allow, fact->name, fact->len, import))
                return true;
        if (import && module_len && patterns_cover(match->policy->allow, fact->module, module_len, true))
                return true;
        for (size_t i = 0; import && i < match->request->allow_imports_n; i++) {
                const struct pattern one = { .text = match->request->allow_imports[i],
                        .len = strlen(match->request->allow_imports[i]) };
                if (patterns_cover(&one, fact->name, fact->len, true) ||
                        (module_len && patterns_cover(&one, fact->module, module_len, true)))
                        return true;
        }
        return false;
}

static void hit_rule(struct match *match, const struct rule *rule, const char *pattern, const struct fact *fact)
{
        for (size_t i = 0; i < match->n; i++) {
                const struct hit *other = &match->hits[i];
                bool same_group = rule->once && other->rule->once && strcmp(rule->once, other->rule->once) == 0;
                if (other->fact->start == fact->start && (other->rule == rule || same_group))
                        return;
        }
        if (match->n == FINDINGS_MAX) {
                match->truncated = true;
                match->refused_more = match->refused_more || (!rule->note && rule->severity >= match->block_at);
                match->score_more += rule->score;
                return;
        }
        match->hits[match->n++] = (struct hit){ rule, fact, pattern };
}

static void hit(struct match *match, const struct pattern *pattern, const struct fact *fact)
{
        const struct rule *rule = &match->policy->rules[pattern->rule];
        if (rule->severity < 0 || !speaks(rule, language_of(match, fact)) ||
                (!rule->always && is_allowed(match, fact)) ||
                patterns_cover(rule->excepts, fact->name, fact->len, false))
                return;
        hit_rule(match, rule, pattern->text, fact);
}

/* ---- modules forbidden by a request ---- */

#define MODULE_MAX 300                 /* bytes of a name compared with patterns */

/* A pattern of fnmatch(3) for a name, or for a module above: os covers os.path, and fs is node:fs. */
static bool covers(const char *pattern, const char *name, size_t len)
{
        char text[MODULE_MAX];
        if (len > 5 && memcmp(name, "node:", 5) == 0 && strncmp(pattern, "node:", 5) != 0)
                name += 5, len -= 5;
        if (len >= sizeof text)
                return strcmp(pattern, "*") == 0;
        for (; len; len--) {
                memcpy(text, name, len);
                text[len] = 0;
                if (fnmatch(pattern, text, 0) == 0)
                        return true;
                do
                        len--;
                while (len && name[len] != '.' && name[len] != '/');
                len++;
        }
        return false;
}

static const char *covering(char *const *patterns, size_t n, const char *name, size_t len)
{
        for (size_t i = 0; i < n; i++)
                if (covers(patterns[i], name, len))
                        return patterns[i];
        return NULL;
}

/* The name of the module, where a pattern says nothing. */
static const char *forbidden_name(const struct match *match, const struct fact *fact, const char *pattern)
{
        if (!strpbrk(pattern, "*?["))
                return pattern;
        return fact->module ? fact->module : arena_copy(match->arena, fact->name, fact->len);
}

/* Whether the list of the request decides about this fact, in place of the policy's rules. */
static bool match_forbidden(struct match *match, const struct fact *fact)
{
        const struct check_request *request = match->request;
        if (!HAS(request, check_request, forbidden_modules))
                return false;
        if (fact->kind == FACT_DYNAMIC_IMPORT) {
                if (request->forbidden_modules_n)
                        hit_rule(match, &forbidden_dynamic, fact->name, fact);
                return true;
        }
        bool import = fact->kind == FACT_IMPORT || fact->kind == FACT_IMPORT_CALL;
        if ((!import && fact->kind != FACT_REFERENCE) || (fact->len == 10 && memcmp(fact->name, "__future__", 10) == 0))
                return import;
        if (fact->module && strcmp(fact->module, "__future__") == 0)
                return true;
        const char *pattern =
                covering(request->forbidden_modules, request->forbidden_modules_n, fact->name, fact->len);
        /* os.system in the list means the function, not a module. */
        if (!import && pattern && !(strchr(pattern, '.') && strlen(pattern) == fact->len))
                pattern = NULL;
        if (pattern && !covering(request->allow_imports, request->allow_imports_n, fact->name, fact->len))
                hit_rule(match, &forbidden_module, forbidden_name(match, fact, pattern), fact);
        return import;
}

static void match_tools(struct match *match, const struct fact *fact)
{
        for (size_t i = 0; fact->kind == FACT_DEFINE && i < match->tools_n; i++)
                if (strlen(match->tools[i]) == fact->len && memcmp(match->tools[i], fact->name, fact->len) == 0) {
                        hit_rule(match, &shadows_tool, fact->name, fact);
                        return;
                }
}

/* Whether a denying rule looks for this name, for a name inside, or for a module around. */
static bool is_denied(const struct match *match, const struct fact *fact)
{
        const char *name = fact->name;
        size_t len = fact->len;
        const struct policy *policy = match->policy;
        for (size_t i = 0; i < policy->rules_n; i++) {
                const struct rule *rule = &policy->rules[i];
                if (rule->severity < match->block_at || !speaks(rule, language_of(match, fact)))
                        continue;
                for (const struct pattern *p = rule->patterns; p; p = p->next) {
                        if (p->kind != FACT_IMPORT && p->kind != FACT_REFERENCE && p->kind != FACT_CALL)
                                continue;
                        bool inside = p->len > len && memcmp(p->text, name, len) == 0 && p->text[len] == '.';
                        bool equal = p->len == len && memcmp(p->text, name, len) == 0;
                        bool above = p->kind == FACT_IMPORT && p->len && p->len < len &&
                                memcmp(p->text, name, p->len) == 0 && name[p->len] == '.';
                        if (inside || equal || above)
                                return true;
                }
        }
        return false;
}

static void match_exact(struct match *match, const struct fact *fact, size_t len)
{
        for (const struct pattern *p = policy_lookup(match->policy, fact->kind, fact->name, len); p; p = p->next_equal)
                if (pattern_is(p, fact->kind, fact->name, len))
                        hit(match, p, fact);
}

/* The text of a fact for regexec(3); NULL: not searched. */
static const char *searched(const struct match *match, const struct fact *fact)
{
        if (fact->len == 0 || fact->len > TEXT_SEARCHED)
                return NULL;
        char *text = arena_copy(match->arena, fact->name, fact->len);
        for (char *nul = text; (nul = memchr(nul, 0, fact->len - (size_t)(nul - text)));)
                *nul = ' ';
        return text;
}

static void match_fact(struct match *match, const struct fact *fact)
{
        enum pattern_how how = fact_infos[fact->kind].how;
        if (match_forbidden(match, fact))
                return;
        match_tools(match, fact);
        const char *text = how == WORDS ? searched(match, fact) : NULL;
        if (how == NAMES || how == MODULES)
                match_exact(match, fact, fact->len);
        for (size_t i = fact->len; how == MODULES && i-- > 0;)
                if (fact->name[i] == '.')
                        match_exact(match, fact, i);
        for (size_t i = 0; i < match->policy->prefixes_n; i++) {
                const struct pattern *p = match->policy->prefixes[i];
                if (p->kind != fact->kind)
                        continue;
                bool hits = how == WORDS   ? text && regexec(&p->regex, text, 0, NULL, 0) == 0
                            : how == ABOVE ? fact->number > p->above
                            : how == ANY   ? true
                                           : fact->len >= p->len && memcmp(fact->name, p->text, p->len) == 0;
                if (hits)
                        hit(match, p, fact);
        }
        if (fact->kind == FACT_DYNAMIC && is_denied(match, fact))
                for (const struct pattern *p = policy_lookup(match->policy, FACT_DYNAMIC, "denied", 6); p;
                        p = p->next_equal)
                        if (pattern_is(p, FACT_DYNAMIC, "denied", 6))
                                hit(match, p, fact);
}

/* ---- texts ---- */

/* A constant text is a part of the program, with no end of its own. */
static const char *name_of(const struct match *match, const struct fact *fact)
{
        return arena_copy(match->arena, fact->name, fact->len);
}

static const char *last_part(const char *name)
{
        const char *dot = strrchr(name, '.');
        return dot && dot[1] ? dot + 1 : name;
}

static const char *module_of(const struct match *match, const struct fact *fact)
{
        return fact->module ? fact->module : name_of(match, fact);
}

/* {name}, {last}, {module}, {from}, {pattern}, {number} of a message. */
static char *message_of(const struct match *match, const struct hit *hit, const char *template)
{
        struct buf buf;
        char number[24];
        buf_init(&buf, 4 * KIB);
        snprintf(number, sizeof number, "%" PRIu64, hit->fact->number);
        const char *name = name_of(match, hit->fact);
        const struct { const char *word, *text;
        } words[] = {
                { "{name}", name },
                { "{last}", last_part(name) },
                { "{module}", module_of(match, hit->fact) },
                { "{pattern}", hit->pattern },
                { "{number}", number },
                { "{from}", hit->fact->module ? "from " : "" },
        };
        for (const char *c = template; *c;) {
                size_t i = 0, plain = strcspn(c, "{");
                while (i < ARRAY_LEN(words) && (plain || strncmp(c, words[i].word, strlen(words[i].word)) != 0))
                        i++;
                if (i == ARRAY_LEN(words)) {
                        plain += plain == 0;   /* a bracket of the message's own */
                        buf_add(&buf, c, plain);
                        c += plain;
                        continue;
                }
                size_t len = strlen(words[i].text);
                buf_add(&buf, words[i].text, len < 200 ? len : 200);
                c += strlen(words[i].word);
        }
        size_t len;
        char *text = model_utf8(match->arena, buf.bytes ? buf.bytes : "", buf.len, &len);
        buf_done(&buf);
        return text;
}

/* Lines and columns are asked for in the order of the text, so a single walk serves all places. */
struct place {
        uint32_t at;
        uint64_t line, column;
        uint32_t line_start;
};

static struct place place_of(const struct match *match, struct place from, uint32_t at)
{
        if (at < from.at)
                from = (struct place){ 0, 1, 1, 0 };
        at = at < match->len ? at : (uint32_t)match->len;
        for (const char *feed; from.at < at && (feed = memchr(match->text + from.at, '\n', at - from.at));
                from.line++) {
                from.at = from.line_start = (uint32_t)(feed + 1 - match->text);
                from.column = 1;
        }
        for (; from.at < at; from.at++)
                from.column += ((unsigned char)match->text[from.at] & 0xc0) != 0x80;
        return from;
}

static char *line_of(const struct match *match, uint32_t start)
{
        const char *feed = memchr(match->text + start, '\n', match->len - start);
        size_t len = feed ? (size_t)(feed - match->text) - start : match->len - start;
        if (len > LINE_SHOWN) {
                len = LINE_SHOWN;
                while (len && ((unsigned char)match->text[start + len] & 0xc0) == 0x80)
                        len--;
        }
        return model_utf8(match->arena, match->text + start, len, &len);
}

static int by_place(const void *a, const void *b)
{
        const struct hit *x = a, *y = b;
        if (x->fact->start != y->fact->start)
                return x->fact->start < y->fact->start ? -1 : 1;
        return x->rule < y->rule ? -1 : x->rule > y->rule;
}

static void add_findings(struct match *match, struct check_result *ret)
{
        struct place from = { 0, 1, 1, 0 };
        qsort(match->hits, match->n, sizeof *match->hits, by_place);
        ret->findings = arena_alloc(match->arena, (match->n + 1) * sizeof *ret->findings);
        for (size_t i = 0; i < match->n; i++) {
                const struct hit *hit = &match->hits[i];
                struct finding *finding = &ret->findings[ret->findings_n++];
                from = place_of(match, from, hit->fact->start);
                struct place to = place_of(match, from, hit->fact->end);
                if (match->file)
                        SET(finding, finding, file, arena_text(match->arena, "%s", match->file));
                SET(finding, finding, rule, arena_text(match->arena, "%s", hit->rule->id));
                SET(finding, finding, severity, hit->rule->severity);
                SET(finding, finding, score, hit->rule->score);
                SET(finding, finding, line, from.line);
                SET(finding, finding, column, from.column);
                SET(finding, finding, end_line, to.line);
                SET(finding, finding, end_column, to.column);
                SET(finding, finding, message, message_of(match, hit, hit->rule->message));
                SET(finding, finding, text, line_of(match, from.line_start));
                if (hit->rule->advice)
                        SET(finding, finding, advice, message_of(match, hit, hit->rule->advice));
                ret->score += hit->rule->score;
        }
        SET(ret, check_result, score, ret->score + match->score_more);
        SET(ret, check_result, findings_truncated, match->truncated);
}

/* ---- imports ---- */

#define IMPORTS_MAX 1000
#define IMPORT_LEN 100             /* of bytes, which are at most so many characters */

static int by_text(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct module {
        const char *name;
        bool optional;
};

/* By name, and of the same name first the required modules. */
static int by_name(const void *a, const void *b)
{
        const struct module *one = a, *other = b;
        int order = strcmp(one->name, other->name);
        return order ? order : (int)one->optional - (int)other->optional;
}

static bool is_plain(const char *name, size_t len)
{
        for (size_t i = 0; i < len; i++)
                if ((unsigned char)name[i] <= ' ')
                        return false;
        return len && len <= IMPORT_LEN && utf8_valid(name, len);
}

/* Each module once.  "from os import path" counts as os: path may be no module. */
static void add_imports(const struct match *match, const struct facts *facts, struct check_result *ret)
{
        struct module *modules = arena_alloc(match->arena, (facts->n + 1) * sizeof *modules);
        size_t n = 0;
        for (size_t i = 0; i < facts->n; i++) {
                const struct fact *fact = &facts->list[i];
                const char *name = fact->module ? fact->module : fact->name;
                size_t len = fact->module ? strlen(fact->module) : fact->len;
                if (fact->kind == FACT_IMPORT && is_plain(name, len))
                        modules[n++] = (struct module){ arena_copy(match->arena, name, len), fact->optional };
        }
        qsort(modules, n, sizeof *modules, by_name);
        ret->imports = arena_alloc(match->arena, IMPORTS_MAX * sizeof *ret->imports);
        ret->optional_imports = arena_alloc(match->arena, IMPORTS_MAX * sizeof *ret->optional_imports);
        for (size_t i = 0; i < n && ret->imports_n < IMPORTS_MAX; i++) {
                if (i > 0 && strcmp(modules[i].name, modules[i - 1].name) == 0)
                        continue;
                ret->imports[ret->imports_n++] = (char *)(uintptr_t)modules[i].name;
                if (modules[i].optional)
                        ret->optional_imports[ret->optional_imports_n++] = (char *)(uintptr_t)modules[i].name;
        }
        MARK(ret, check_result, imports);
        if (ret->optional_imports_n)
                MARK(ret, check_result, optional_imports);
}

/* ---- the verdict ---- */

static bool is_of_request(const struct hit *hit)
{
        return hit->rule == &forbidden_module || hit->rule == &forbidden_dynamic;
}

static bool is_refused(const struct match *match, const struct hit *hit)
{
        return is_of_request(hit) || (!hit->rule->note && hit->rule->severity >= match->block_at);
}

/* The stage of the refusal, in the order of the former stages: imports, builtins, patterns. */
static const char *code_of(const struct match *match)
{
        bool builtin = false;
        for (size_t i = 0; i < match->n; i++) {
                const struct fact *fact = match->hits[i].fact;
                if (!is_refused(match, &match->hits[i]))
                        continue;
                if (fact->kind == FACT_IMPORT || fact->kind == FACT_IMPORT_CALL || fact->kind == FACT_DYNAMIC_IMPORT ||
                        fact->kind == FACT_RELATIVE_IMPORT || is_of_request(&match->hits[i]))
                        return "disallowed_import";
                builtin = builtin ||
                        ((fact->kind == FACT_REFERENCE || fact->kind == FACT_CALL) && fact->len > 9 &&
                                memcmp(fact->name, "builtins.", 9) == 0);
        }
        return builtin ? "forbidden_builtin" : "pattern";
}

/* Whether a sentence is about a finding. */
static bool is_meant(const struct match *match, const struct sentence *sentence, const struct hit *hit)
{
        if (hit->rule->note)
                return strcmp(sentence->when, "found") == 0;
        if (strcmp(sentence->when, "critical") == 0)
                return hit->rule->severity == severity_CRITICAL;
        if (strcmp(sentence->when, "refused") == 0)
                return is_refused(match, hit);
        if (strcmp(sentence->when, "score") == 0 || strcmp(sentence->when, "found") == 0)
                return true;
        return strcmp(sentence->when, hit->rule->id) == 0;
}

static bool holds(const struct match *match, const struct sentence *sentence, bool denied, bool by_score)
{
        if (strcmp(sentence->when, "clean") == 0)
                return !match->n;
        if (strcmp(sentence->when, "score") == 0)
                return by_score;
        if (strcmp(sentence->when, "refused") == 0 && !denied)
                return false;
        for (size_t i = 0; i < match->n; i++)
                if (is_meant(match, sentence, &match->hits[i]))
                        return true;
        return false;
}

/* Texts of findings, each once, sorted or in the order of the text. */
static void add_list(struct buf *buf, const char **texts, size_t n, const char *join)
{
        for (size_t i = 0; i < n; i++) {
                size_t k = 0;
                while (k < i && strcmp(texts[k], texts[i]) != 0)
                        k++;
                if (k == i)
                        buf_printf(buf, "%s%s", i ? join : "", texts[i]);
        }
}

static void add_allowed(const struct match *match, struct buf *buf)
{
        const char *texts[200];
        size_t n = 0;
        for (const struct pattern *p = match->policy->allow; p && n < ARRAY_LEN(texts); p = p->next)
                texts[n++] = p->text;
        for (size_t i = 0; i < match->request->allow_imports_n && n < ARRAY_LEN(texts); i++)
                texts[n++] = match->request->allow_imports[i];
        qsort(texts, n, sizeof *texts, by_text);
        add_list(buf, texts, n, ", ");
}

static char *sentence_of(const struct match *match, const struct check_result *result, const struct sentence *sentence)
{
        const char **names = arena_alloc(match->arena, (match->n + 1) * sizeof *names);
        const char **messages = arena_alloc(match->arena, (match->n + 1) * sizeof *messages);
        size_t n = 0, len;
        struct buf buf;
        for (size_t i = 0; i < match->n; i++)
                if (is_meant(match, sentence, &match->hits[i])) {
                        names[n] = arena_text(match->arena, "%.200s", module_of(match, match->hits[i].fact));
                        messages[n++] = result->findings[i].message;
                }
        qsort(names, n, sizeof *names, by_text);
        buf_init(&buf, 64 * KIB);
        for (const char *c = sentence->text; *c;) {
                if (strncmp(c, "{messages}", 10) == 0)
                        add_list(&buf, messages, n, sentence->join), c += 10;
                else if (strncmp(c, "{names}", 7) == 0)
                        add_list(&buf, names, n, sentence->join), c += 7;
                else if (strncmp(c, "{first}", 7) == 0)
                        buf_printf(&buf, "%s", n ? messages[0] : ""), c += 7;
                else if (strncmp(c, "{allowed}", 9) == 0)
                        add_allowed(match, &buf), c += 9;
                else if (strncmp(c, "{score}", 7) == 0)
                        buf_printf(&buf, "%" PRIu64, result->score), c += 7;
                else
                        buf_add(&buf, c++, 1);
        }
        char *text = model_utf8(match->arena, buf.bytes ? buf.bytes : "", buf.len, &len);
        buf_done(&buf);
        return text;
}

/* Whether a policy with rules has none for the language.  The text of a policy without rules says so itself. */
static bool has_no_rule(const struct match *match)
{
        for (size_t i = 0; i < match->policy->rules_n; i++)
                if (match->policy->rules[i].severity >= 0 && speaks(&match->policy->rules[i], match->language))
                        return false;
        return match->policy->rules_n > 0;
}

static void decide(const struct match *match, struct check_result *ret)
{
        bool denied = match->refused_more,
             by_score = match->policy->block_score && ret->score >= match->policy->block_score &&
                match->block_at != threshold_SAFE;
        for (size_t i = 0; i < match->n; i++)
                denied = denied || is_refused(match, &match->hits[i]);
        SET(ret, check_result, verdict, denied || by_score ? verdict_DENY : verdict_ALLOW);
        if (denied || by_score)
                SET(ret, check_result, code, arena_text(match->arena, "%s", code_of(match)));
        SET(ret, check_result, reason, arena_text(match->arena, "%s", ""));
        /* The request's own list, without a sentence in the policy. */
        const struct sentence of_request = { .when = forbidden_module.id, .text = "{messages}", .join = "; " };
        if (holds(match, &of_request, denied, by_score)) {
                ret->reason = sentence_of(match, ret, &of_request);
                return;
        }
        if (!match->n && has_no_rule(match)) {
                ret->reason = arena_text(match->arena, "%s has no rules for %s", ret->policy, match->language);
                return;
        }
        for (size_t i = 0; i < match->policy->sentences_n; i++)
                if (holds(match, &match->policy->sentences[i], denied || by_score, by_score)) {
                        ret->reason = sentence_of(match, ret, &match->policy->sentences[i]);
                        return;
                }
}

/* ---- a check ---- */

static void refuse_broken(const struct match *match, const struct facts *facts, struct check_result *ret)
{
        struct place at = place_of(match, (struct place){ 0, 1, 1, 0 }, facts->broken_at);
        SET(&ret->error, failure, type, arena_text(match->arena, "SyntaxError"));
        SET(&ret->error, failure, message, arena_text(match->arena, "%s", facts->broken_why));
        SET(&ret->error, failure, line, at.line);
        SET(&ret->error, failure, column, at.column);
        SET(&ret->error, failure, text, line_of(match, at.line_start));
        MARK(ret, check_result, error);
        SET(ret, check_result, verdict, verdict_DENY);
        SET(ret, check_result, reason, arena_text(match->arena, "Line %" PRIu64 ": %s", at.line, facts->broken_why));
}

static int analyse(struct match *match, const struct analysis *analysis, struct facts *facts, struct csn_error *err)
{
        const struct bytes *code = &match->request->code;
        match->text = code->bytes ? code->bytes : "";
        match->len = code->len;
        if (analysis->prepare)
                match->text = analysis->prepare(match->text, match->len, facts, &match->len);
        if (!facts->broken && analysis->analyse(match->text, match->len, facts, err) < 0)
                return -err->code;
        return facts->full ? err_field(err, "/code", "the program is too complex to be checked") : 0;
}

/* ---- the prelude ---- */

/* Names defined by the prelude are tools for the program. */
static void add_tools(struct match *match, const struct facts *facts)
{
        const struct check_request *request = match->request;
        match->tools = arena_alloc(match->arena, (request->tools_n + facts->n + 1) * sizeof *match->tools);
        match->tools_n = request->tools_n;
        if (request->tools_n)
                memcpy(match->tools, request->tools, request->tools_n * sizeof *match->tools);
        for (size_t i = 0; i < facts->n; i++)
                if (facts->list[i].kind == FACT_DEFINE)
                        match->tools[match->tools_n++] =
                                arena_copy(match->arena, facts->list[i].name, facts->list[i].len);
}

static void refuse_prelude(const struct match *match, const char *why, struct check_result *ret)
{
        SET(ret, check_result, verdict, verdict_DENY);
        SET(ret, check_result, code, arena_text(match->arena, "prelude_failed"));
        SET(ret, check_result, reason, arena_text(match->arena, "%s", why));
}

/* The findings of the prelude come first, and either of the two can be refused. */
static void add_prelude(const struct match *match, const struct check_result *prelude, struct check_result *ret)
{
        size_t n = ret->findings_n + prelude->findings_n;
        struct finding *all = arena_alloc(match->arena, (n + 1) * sizeof *all);
        if (prelude->findings_n)
                memcpy(all, prelude->findings, prelude->findings_n * sizeof *all);
        if (ret->findings_n)
                memcpy(all + prelude->findings_n, ret->findings, ret->findings_n * sizeof *all);
        ret->findings = all;
        ret->findings_n = n;
        SET(ret, check_result, score, ret->score + prelude->score);
        SET(ret, check_result, findings_truncated, ret->findings_truncated || prelude->findings_truncated);
        if (prelude->verdict != verdict_DENY || ret->verdict == verdict_DENY)
                return;
        SET(ret, check_result, verdict, verdict_DENY);
        SET(ret, check_result, code, prelude->code);
        SET(ret, check_result, reason, arena_text(match->arena, "Prelude: %s", prelude->reason));
}

static void judge(struct match *match, const struct facts *facts, struct check_result *ret)
{
        match->hits = arena_alloc(match->arena, FINDINGS_MAX * sizeof *match->hits);
        for (size_t i = 0; i < facts->n; i++)
                match_fact(match, &facts->list[i]);
        add_findings(match, ret);
        add_imports(match, facts, ret);
        decide(match, ret);
}

/* Judge the prelude; *ret_facts are its imports and definitions. */
static void check_prelude(const struct match *program, const struct analysis *analysis, struct facts *ret_facts,
        struct check_result *ret)
{
        struct csn_error err = { 0 };
        struct check_request request = *program->request;
        struct match match = *program;
        request.code = request.prelude;
        match.request = &request;
        match.file = "prelude";
        policy_result(program->request, match.arena, ret);
        if (analyse(&match, analysis, ret_facts, &err) < 0)
                refuse_prelude(&match, err.text, ret);
        else if (ret_facts->broken)
                refuse_prelude(&match,
                        arena_text(match.arena, "line %" PRIu64 ": %s",
                                place_of(&match, (struct place){ 0, 1, 1, 0 }, ret_facts->broken_at).line,
                                ret_facts->broken_why),
                        ret);
        else
                judge(&match, ret_facts, ret);
}

/* Check a program; true: doubtful. */
static bool check_with(struct match *match, const struct analysis *analysis, struct check_result *ret)
{
        struct csn_error err = { 0 };
        struct facts facts = { .arena = match->arena, .find_analysis = analysis_find }, of_prelude = facts;
        struct check_result prelude;
        bool has_prelude = HAS(match->request, check_request, prelude);
        if (analyse(match, analysis, &facts, &err) < 0) {
                policy_refuse(match->request, &err, match->arena, ret);
                return false;
        }
        if (facts.broken) {
                refuse_broken(match, &facts, ret);
                return false;
        }
        if (has_prelude)
                check_prelude(match, analysis, &of_prelude, &prelude);
        add_tools(match, &of_prelude);
        judge(match, &facts, ret);
        if (has_prelude)
                add_prelude(match, &prelude, ret);
        return facts.doubtful;
}

void policy_check(const struct policies *policies, const struct check_request *request, struct arena *arena,
        struct check_result *ret, bool *ret_doubtful)
{
        struct csn_error err = { 0 };
        const struct analysis *analysis =
                HAS(request, check_request, language) ? analysis_find(request->language) : NULL;
        struct match match = { .request = request, .language = request->language, .arena = arena };
        if (ret_doubtful)
                *ret_doubtful = false;
        policy_result(request, arena, ret);
        if (policies_find(policies, ret->policy, &match.policy, &err) < 0) {
                policy_refuse(request, &err, arena, ret);
                return;
        }
        if (!analysis) {
                err_field(&err, "/language", "programs in \"%.40s\" cannot be checked",
                        request->language ? request->language : "");
                err.code = CSN_E_LANGUAGE;
                policy_refuse(request, &err, arena, ret);
                return;
        }
        match.block_at = HAS(request, check_request, block_at) ? request->block_at : match.policy->block_at;
        bool doubtful = check_with(&match, analysis, ret);
        if (ret_doubtful)
                *ret_doubtful = doubtful;
}
