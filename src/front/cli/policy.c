/* caisson policy: the list of policies, and the content of a policy. */
#include "front/cli/check.h"

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
                (long long)json_integer_value(json_object_get(rule, "score")),
                json_is_true(json_object_get(rule, "inherited")) ? ", inherited" : "", text_of(rule, "message"));
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
        printf("%s: %s\n  file: %s\n", text_of(policy, "name"), text_of(policy, "description"),
                text_of(policy, "file"));
        json_array_foreach(json_object_get(policy, "extends"), i, parent) {
                printf("%s%s", i ? ", " : "  extends: ", json_string_value(parent));
        }
        printf("%s  refuses: %s and above", json_array_size(json_object_get(policy, "extends")) ? "\n" : "",
                text_of(policy, "block_at"));
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
        json_t *list = front_policies(policies), *policy;
        size_t i;
        json_array_foreach(list, i, policy) {
                if (!json)
                        printf("%-14s %s\n", text_of(policy, "name"), text_of(policy, "description"));
        }
        if (json)
                cli_print_json(json_incref(list));
        json_decref(list);
}

const struct cli_option cli_policy_options[] = {
        { "json", 'j', NULL, "Of list and show: as JSON.", NULL },
        { "language", 'l', "TEXT", "Of test: the language of all files; else the name of the folder that each is in.",
                NULL },
        { NULL, 0, NULL, NULL, NULL },
};

struct policy_cli {
        bool json;
        const char *language;
};

static int take_option(void *owner, const char *name, const char *value, struct csn_error *err)
{
        struct policy_cli *cli = owner;
        (void)err;
        if (strcmp(name, "json") == 0)
                cli->json = true;
        else
                cli->language = value;
        return 0;
}

static int policy_command(int argc, char **argv, const struct settings *settings)
{
        struct policy_cli cli = { 0 };
        struct policies *policies = NULL;
        const struct policy *found;
        struct csn_error err = { 0 };
        if (cli_parse(cli_policy_options, argc, argv, take_option, &cli, &err) < 0)
                return cli_fail(&err);
        const char *word = argv[optind] ? argv[optind] : "list", *name = argv[optind] ? argv[optind + 1] : NULL;
        int words = argc - optind;
        bool list = words <= 1 && strcmp(word, "list") == 0;
        if (words > 2 && strcmp(word, "test") == 0)
                return cli_cases(words - 1, argv + optind + 1, cli.language, settings);
        if ((words == 2 || words == 3) && strcmp(word, "import") == 0)
                return cli_import_policy(name, argv[optind + 2], &err) < 0 ? cli_fail(&err) : 0;
        if (!list && (words != 2 || strcmp(word, "show") != 0))
                return cli_usage_of("policy",
                        "give a subcommand: list, show NAME, import FILE [NAME], or test NAME [-l LANGUAGE] FILE...");
        if (front_load_policies(settings, &policies, &err) < 0)
                return cli_fail(&err);
        if (list)
                list_policies(policies, cli.json);
        else if (policies_find(policies, name, &found, &err) == 0 && cli.json)
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
