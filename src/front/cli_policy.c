/* caisson policy: which there are, and what one says. */
#include "front/cli_check.h"

#include <inttypes.h>

#include "backend/backend.h"

static void print_texts(const char *word, json_t *texts)
{
        size_t i;
        json_t *text;
        printf("      %s:", word);
        if (json_is_string(texts))
                printf(" %s", json_string_value(texts));
        if (json_is_integer(texts))
                printf(" %lld", (long long)json_integer_value(texts));
        json_array_foreach(texts, i, text) {
                printf("%s%s", i ? ", " : " ", json_string_value(text));
        }
        putchar('\n');
}

static const char *text_of(json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));
        return text ? text : "";
}

static void print_rule(json_t *rule)
{
        const char *word;
        json_t *texts, *advice = json_object_get(rule, "advice");
        printf("  %s  %s, %lld points%s\n      %s\n", text_of(rule, "id"), text_of(rule, "severity"),
               (long long)json_integer_value(json_object_get(rule, "score")), json_is_true(json_object_get(rule, "inherited")) ? ", inherited" : "",
               text_of(rule, "message"));
        json_object_foreach(json_object_get(rule, "finds"), word, texts) {
                print_texts(word, texts);
        }
        if (json_object_get(rule, "except"))
                print_texts("except", json_object_get(rule, "except"));
        if (json_object_get(rule, "languages"))
                print_texts("only in", json_object_get(rule, "languages"));
        if (advice)
                printf("      advice: %s\n", json_string_value(advice));
}

static void print_policy(json_t *policy)
{
        size_t i;
        json_t *rule, *parent;
        json_int_t score = json_integer_value(json_object_get(policy, "block_score"));
        printf("%s: %s\n  file: %s\n", text_of(policy, "name"), text_of(policy, "description"), text_of(policy, "file"));
        json_array_foreach(json_object_get(policy, "extends"), i, parent) {
                printf("%s%s", i ? ", " : "  extends: ", json_string_value(parent));
        }
        printf("%s  refuses: %s and above", json_array_size(json_object_get(policy, "extends")) ? "\n" : "", text_of(policy, "block_at"));
        if (score)
                printf(", or %lld points", (long long)score);
        putchar('\n');
        if (json_array_size(json_object_get(policy, "allow")))
                print_texts("allow", json_object_get(policy, "allow"));
        json_array_foreach(json_object_get(policy, "rules"), i, rule) {
                print_rule(rule);
        }
}

static void list_policies(const struct policies *policies, bool json)
{
        json_t *list = json_array();
        const struct policy *policy;
        for (size_t i = 0; policies_name(policies, i); i++) {
                if (policies_find(policies, policies_name(policies, i), &policy, NULL) < 0)
                        continue;
                json_t *all = policy_describe(policy);
                if (json)
                        json_array_append_new(list, json_pack("{s:O, s:O, s:O, s:O}", "name", json_object_get(all, "name"), "description",
                                                              json_object_get(all, "description"), "extends", json_object_get(all, "extends"),
                                                              "file", json_object_get(all, "file")));
                else
                        printf("%-14s %s\n", text_of(all, "name"), text_of(all, "description"));
                json_decref(all);
        }
        if (json)
                cli_print_json(json_incref(list));
        json_decref(list);
}

/* ---- test: programs with what a policy should say to them ---- */

/* One claim, "deny" or "allow", and a word "mine+os@HIGH[rule,rule]", against one program. */
static int test_claim(struct engine *engine, const char *where, const char *language, const char *policy, const char *verdict, char *word,
                      const struct bytes *code, size_t *ret_wrong, struct csn_error *err)
{
        struct inquiry inquiry = { 0 };
        struct check_request *request = &inquiry.check.request;
        struct arena *arena = &inquiry.check.arena;
        const struct field *block_at = model_field(&object_check_request, "block_at");
        char *rules = strchr(word, '['), *level, *modules[20], found[1000] = "";
        size_t modules_n = 0, len = 0;
        bool wrong = false;
        if (rules)
                *rules++ = 0, rules[strcspn(rules, "]")] = 0;
        if ((level = strchr(word, '@')))
                *level++ = 0;
        char *rest = word, *name = strsep(&rest, "+");
        while (rest && modules_n < ARRAY_LEN(modules))
                modules[modules_n++] = strsep(&rest, "+");
        if (strcmp(name, policy) != 0 && (strcmp(name, "*") != 0 || strcmp(policy, "off") == 0))
                return 0;
        if (level && model_set_text(&object_check_request, block_at, request, level, where, arena, err) < 0)
                return -err->code;
        SET(request, check_request, language, arena_text(arena, "%s", language));
        SET(request, check_request, policy, arena_text(arena, "%s", policy));
        SET(request, check_request, code, *code);
        request->allow_imports = modules;
        request->allow_imports_n = modules_n;
        MARK(request, check_request, allow_imports);
        int rc = check_wait(engine, &inquiry, err);
        const struct check_result *result = &inquiry.check.result;
        for (size_t i = 0; rc == 0 && i < result->findings_n; i++) {
                char list[1100], one[110];
                snprintf(list, sizeof list, ",%s,", found);
                snprintf(one, sizeof one, ",%s,", result->findings[i].rule);
                if (!strstr(list, one) && len < sizeof found)
                        len += (size_t)snprintf(found + len, sizeof found - len, "%s%s", len ? "," : "", result->findings[i].rule);
                char wanted[1100];
                snprintf(wanted, sizeof wanted, ",%s,", rules ? rules : "");
                wrong = wrong || (rules && !strstr(wanted, one));
        }
        for (char *all = rules, *one; rc == 0 && (one = strsep(&all, ","));) {
                bool there = !*one;
                for (size_t i = 0; i < result->findings_n; i++)
                        there = there || strcmp(result->findings[i].rule, one) == 0;
                wrong = wrong || !there;
                if (all)
                        all[-1] = ',';   /* the list stays whole for the message */
        }
        const char *said = rc == 0 ? choices_verdict.values[result->verdict].text : "";
        if (rc == 0 && (wrong || strcmp(said, verdict) != 0)) {
                printf("%s: %s%s%s%s wanted, %s[%s] found\n", where, verdict, rules ? "[" : "", rules ? rules : "", rules ? "]" : "", said, found);
                ++*ret_wrong;
        }
        inquiry_done(&inquiry);
        return rc < 0 ? rc : 1;
}

static int test_file(struct engine *engine, const char *policy, const char *language, const char *path, struct arena *arena, size_t *ret_n,
                     size_t *ret_wrong, struct csn_error *err)
{
        struct bytes text;
        if (cli_read_whole(path, 16 * MIB, "", arena, &text, err) < 0)
                return -err->code;
        unsigned line = 1;
        for (char *at = text.bytes, *next; *at; at = next) {
                char *feed = strchr(at, '\n'), *code = feed ? feed + 1 : at + strlen(at), where[600];
                bool begins = strncmp(at, "=== ", 4) == 0;
                char *claims = code;
                snprintf(where, sizeof where, "%s:%u: %.*s", path, line++, (int)strcspn(at, "\n") - 4, at + 4);
                next = code;
                if (!begins)
                        continue;
                while (strncmp(code, "--- ", 4) == 0)
                        code += strcspn(code, "\n"), code += *code == '\n';
                for (next = code; *next && strncmp(next, "=== ", 4) != 0;)
                        next += strcspn(next, "\n"), next += *next == '\n';
                size_t len = (size_t)(next - code);
                len -= len > 1 && next[-1] == '\n' && next[-2] == '\n';
                struct bytes program = { arena_copy(arena, code, len), len };
                char *copy = arena_copy(arena, claims, (size_t)(code - claims));
                for (const char *c = claims; c < next; c++)
                        line += *c == '\n';
                for (char *claim; (claim = strsep(&copy, "\n"));) {
                        char *words = claim + (strncmp(claim, "--- ", 4) == 0 ? 4 : strlen(claim)), *verdict = strsep(&words, " "), *word;
                        while ((word = strsep(&words, " "))) {
                                int rc = *word ? test_claim(engine, where, language, policy, verdict, word, &program, ret_wrong, err) : 0;
                                if (rc < 0)
                                        return rc;
                                *ret_n += (size_t)rc;
                        }
                }
        }
        return 0;
}

/* The language is -l's, or the name of the folder that a file is in. */
static int test_policy(int argc, char **argv, const struct settings *settings)
{
        struct engine *engine = NULL;
        struct arena arena = { 0 };
        struct csn_error err = { 0 };
        size_t n = 0, wrong = 0;
        const char *language = argc > 4 && strcmp(argv[3], "-l") == 0 ? argv[4] : NULL;
        int rc = engine_open(settings, &engine, &err);
        for (int i = language ? 5 : 3; rc == 0 && i < argc; i++) {
                char *path = arena_text(&arena, "%s", argv[i]), *slash = strrchr(path, '/');
                if (slash)
                        *slash = 0;
                const char *folder = slash && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
                rc = test_file(engine, argv[2], language ? language : slash ? folder : "", argv[i], &arena, &n, &wrong, &err);
        }
        engine_close(engine);
        arena_done(&arena);
        if (rc < 0)
                return cli_fail(&err);
        printf("%zu of %zu are right\n", n - wrong, n);
        return wrong || !n ? 1 : 0;
}

static int policy_command(int argc, char **argv, const struct settings *settings)
{
        const char *const folders[] = { settings->engine.policies_dir, backend_policies_dir() };
        bool json = cli_has_flag(&argc, argv, "--json");
        bool list = argc == 1 || (argc == 2 && strcmp(argv[1], "list") == 0);
        struct policies *policies = NULL;
        const struct policy *found;
        struct csn_error err = { 0 };
        if (argc > 3 && strcmp(argv[1], "test") == 0)
                return test_policy(argc, argv, settings);
        if (!list && (argc != 3 || strcmp(argv[1], "show") != 0))
                return cli_usage("policy: say list, show NAME, or test NAME FILE");
        if (policies_load(folders, ARRAY_LEN(folders), &policies, &err) < 0)
                return cli_fail(&err);
        if (list)
                list_policies(policies, json);
        else if (policies_find(policies, argv[2], &found, &err) == 0 && json)
                cli_print_json(policy_describe(found));
        else if (!err.code) {
                json_t *all = policy_describe(found);
                print_policy(all);
                json_decref(all);
        }
        policies_free(policies);
        return err.code ? cli_fail(&err) : 0;
}

int cli_policy(int argc, char **argv)
{
        return cli_with_settings(argc, argv, policy_command);
}
