/*
 * caisson policy test: programs, and the expected verdict of a policy on each.
 *
 *     === a title
 *     --- deny mine[no_print] codemie@HIGH
 *     --- allow kodeagent+os+json[!disallowed_import] off
 *     the program, as far as the next title
 *
 * A policy may be followed by allowed modules, by a threshold, and by the complete list of rules with findings.
 * `!rule` must find nothing, though the program looks suspicious.  `*` is every policy but off.
 */
#include "front/cli/check.h"

#define FILE_MAX (16 * MIB)
#define MODULES_MAX 20

struct claim {
        const char *verdict;           /* "allow" or "deny" */
        const char *level;             /* a severity, or NULL */
        const char *modules[MODULES_MAX];
        size_t modules_n;
        const char *rules;             /* with commas between, or NULL: any */
};

struct test {
        struct engine *engine;
        const char *policy, *language;
        const char *file, *title;
        unsigned line;                 /* of the title */
        size_t n, wrong;
};

/* ---- claims ---- */

/* NAME[+MODULE...][@LEVEL][[RULES]]; the word is cut up.  0: a claim on another policy. */
static int read_claim(const struct test *test, char *word, struct claim *ret, struct csn_error *err)
{
        char *rules = strchr(word, '['), *end = rules ? strchr(rules, ']') : NULL;
        if (rules && (!end || end[1]))
                return err_field(err, "", "%s:%u: %s: the rules are to be followed by ] and nothing else", test->file,
                        test->line, word);
        if (rules && end)
                *rules = *end = 0, ret->rules = rules + 1;
        char *level = strchr(word, '@');
        if (level)
                *level = 0, ret->level = level + 1;
        char *rest = word, *name = strsep(&rest, "+");
        while (rest && ret->modules_n < MODULES_MAX)
                ret->modules[ret->modules_n++] = strsep(&rest, "+");
        if (rest)
                return err_field(err, "", "%s:%u: more than %d modules", test->file, test->line, MODULES_MAX);
        return strcmp(name, test->policy) == 0 || (strcmp(name, "*") == 0 && strcmp(test->policy, "off") != 0);
}

static bool is_found(const struct check_result *result, const char *rule, size_t len)
{
        for (size_t i = 0; i < result->findings_n; i++)
                if (strlen(result->findings[i].rule) == len && memcmp(result->findings[i].rule, rule, len) == 0)
                        return true;
        return false;
}

static bool is_listed(const char *rules, const char *rule)
{
        for (size_t len; *rules; rules += len + (rules[len] == ',')) {
                len = strcspn(rules, ",");
                if (strlen(rule) == len && memcmp(rules, rule, len) == 0)
                        return true;
        }
        return false;
}

static bool holds(const struct claim *claim, const struct check_result *result)
{
        if (strcmp(choices_verdict.values[result->verdict].text, claim->verdict) != 0)
                return false;
        if (!claim->rules)
                return true;
        for (size_t i = 0; i < result->findings_n; i++)
                if (!is_listed(claim->rules, result->findings[i].rule))
                        return false;
        for (const char *rule = claim->rules; *rule;) {
                size_t len = strcspn(rule, ",");
                if (len && *rule != '!' && !is_found(result, rule, len))
                        return false;
                rule += len + (rule[len] == ',');
        }
        return true;
}

static void tell_wrong(const struct test *test, const struct claim *claim, const struct check_result *result)
{
        printf("%s:%u: %s: %s%s%s%s wanted, %s[", test->file, test->line, test->title, claim->verdict,
                claim->rules ? "[" : "", claim->rules ? claim->rules : "", claim->rules ? "]" : "",
                choices_verdict.values[result->verdict].text);
        for (size_t i = 0, told = 0; i < result->findings_n; i++) {
                const struct check_result before = { .findings = result->findings, .findings_n = i };
                const char *rule = result->findings[i].rule;
                if (!is_found(&before, rule, strlen(rule)))
                        printf("%s%s", told++ ? "," : "", rule);
        }
        puts("] found");
}

static int try_claim(struct test *test, const struct claim *claim, const struct bytes *code, struct csn_error *err)
{
        struct source_check source_check = { 0 };
        struct check_request *request = &source_check.check.request;
        struct arena *arena = &source_check.check.arena;
        struct csn_error trouble;
        const struct field *block_at = model_field(&object_check_request, "block_at");
        SET(request, check_request, language, arena_text(arena, "%s", test->language));
        SET(request, check_request, policy, arena_text(arena, "%s", test->policy));
        SET(request, check_request, code, *code);
        request->allow_imports = arena_alloc(arena, MODULES_MAX * sizeof(char *));
        for (size_t i = 0; i < claim->modules_n; i++)
                request->allow_imports[request->allow_imports_n++] = arena_text(arena, "%s", claim->modules[i]);
        MARK(request, check_request, allow_imports);
        int rc = 0;
        if (claim->level)
                rc = model_set_text(&object_check_request, block_at, request, claim->level, test->file, arena, err);
        if (rc == 0)
                rc = source_check_wait(test->engine, &source_check, err);
        if (rc == 0 && policy_trouble(&source_check.check.result, &trouble) < 0) {
                *err = trouble;
                rc = -err->code;
        }
        if (rc == 0 && !holds(claim, &source_check.check.result)) {
                tell_wrong(test, claim, &source_check.check.result);
                test->wrong++;
        }
        test->n += rc == 0;
        source_check_done(&source_check);
        return rc;
}

/* "deny WORD WORD": the line is cut up. */
static int try_line(struct test *test, char *line, const struct bytes *code, struct csn_error *err)
{
        const char *verdict = strsep(&line, " ");
        if (strcmp(verdict, "deny") != 0 && strcmp(verdict, "allow") != 0)
                return err_field(err, "", "%s:%u: \"%.40s\" is no verdict; say --- deny or --- allow, and policies",
                        test->file, test->line, verdict);
        for (char *word; (word = strsep(&line, " "));) {
                struct claim claim = { .verdict = verdict };
                int rc = *word ? read_claim(test, word, &claim, err) : 0;
                if (rc > 0)
                        rc = try_claim(test, &claim, code, err);
                if (rc < 0)
                        return rc;
        }
        return 0;
}

/* ---- files of programs ---- */

static char *after_line(char *at)
{
        at += strcspn(at, "\n");
        return at + (*at == '\n');
}

static bool begins(const char *at, const char *mark)
{
        return strncmp(at, mark, strlen(mark)) == 0;
}

static unsigned lines_between(const char *from, const char *to)
{
        unsigned n = 0;
        while ((from = memchr(from, '\n', (size_t)(to - from)))) {
                from++;
                n++;
        }
        return n;
}

/* From a title to the next; an empty line before the next title is for the eye. */
static int try_program(struct test *test, char *at, char *end, struct arena *arena, struct csn_error *err)
{
        char *claims = after_line(at), *code = claims;
        while (code < end && begins(code, "--- "))
                code = after_line(code);
        test->title = arena_text(arena, "%.*s", (int)strcspn(at + 4, "\n"), at + 4);
        if (code == claims)
                return err_field(err, "",
                        "%s:%u: no line after the title says what is right; write --- deny or --- allow, and policies",
                        test->file, test->line);
        size_t len = (size_t)(end - code);
        len -= len > 1 && end[-1] == '\n' && end[-2] == '\n';
        const struct bytes program = { code, len };
        for (char *line = claims; line < code;) {
                char *next = after_line(line);
                char *copy = arena_text(arena, "%.*s", (int)strcspn(line + 4, "\n"), line + 4);
                if (try_line(test, copy, &program, err) < 0)
                        return -err->code;
                line = next;
        }
        return 0;
}

static int try_programs(struct test *test, const struct bytes *text, struct arena *arena, struct csn_error *err)
{
        bool any = false;
        test->line = 1;
        for (char *at = text->bytes, *next; *at; at = next) {
                next = after_line(at);
                if (begins(at, "=== ")) {
                        any = true;
                        while (*next && !begins(next, "=== "))
                                next = after_line(next);
                        if (try_program(test, at, next, arena, err) < 0)
                                return -err->code;
                }
                test->line += lines_between(at, next);
        }
        return any ? 0
                   : err_field(err, "", "%s: there is no program in it; each begins with a line === TITLE", test->file);
}

/* The name of a file's folder. */
static const char *folder_of(const char *file, struct arena *arena)
{
        char *folder = arena_text(arena, "%s", file), *slash = strrchr(folder, '/');
        if (!slash)
                return "";
        *slash = 0;
        slash = strrchr(folder, '/');
        return slash ? slash + 1 : folder;
}

/* `given` may be NULL. */
static int try_file(struct test *test, const char *given, struct arena *arena, struct csn_error *err)
{
        struct bytes text;
        const struct language *language = NULL;
        const char *name = given ? given : folder_of(test->file, arena);
        if (cli_read_whole(test->file, FILE_MAX, "", arena, &text, err) < 0)
                return -err->code;
        if (!name[0])
                return err_field(err, "",
                        "%s: its language is what -l says, or the name of the folder that it is in; give -l LANGUAGE",
                        test->file);
        if (lang_find(engine_languages(test->engine), name, &language, err) < 0)
                return err_wrap(err, "%s: the language is what -l says, or the name of the folder", test->file);
        test->language = language->name;
        return try_programs(test, &text, arena, err);
}

static int find_policy(const struct settings *settings, const char *name, struct csn_error *err)
{
        struct policies *policies = NULL;
        const struct policy *policy;
        int rc = front_load_policies(settings, &policies, err);
        if (rc == 0)
                rc = policies_find(policies, name, &policy, err);
        policies_free(policies);
        return rc;
}

int cli_cases(int argc, char **argv, const char *language, const struct settings *settings)
{
        struct test test = { .policy = argv[0] };
        struct arena arena = { 0 };
        struct csn_error err = { 0 };
        int rc = find_policy(settings, test.policy, &err);
        if (rc == 0)
                rc = engine_open(settings, &test.engine, &err);
        for (int i = 1; rc == 0 && i < argc; i++) {
                test.file = argv[i];
                rc = try_file(&test, language, &arena, &err);
        }
        if (rc == 0 && !test.n)
                rc = err_field(&err, "",
                        "no line of these files says what %s should say; write --- deny %s or --- allow %s",
                        test.policy, test.policy, test.policy);
        engine_close(test.engine);
        arena_done(&arena);
        if (rc < 0)
                return cli_fail(&err);
        printf("%zu of %zu are right\n", test.n - test.wrong, test.n);
        return test.wrong ? 1 : 0;
}
