/* The description of a policy for its readers: the rules, with all extended policies applied. */
#include "policy/rules.h"

static json_t *texts_of(const struct pattern *list, enum fact_kind kind)
{
        json_t *texts = json_array();
        for (; list; list = list->next)
                if (list->kind == kind)
                        json_array_append_new(texts, json_string(list->text));
        return texts;
}

static json_t *finds_of(const struct rule *rule)
{
        json_t *finds = json_object();
        for (const struct pattern *p = rule->patterns; p; p = p->next) {
                const char *word = fact_infos[p->kind].word;
                if (json_object_get(finds, word))
                        continue;
                if (fact_infos[p->kind].how == ANY)
                        json_object_set_new(finds, word, json_string("any"));
                else if (fact_infos[p->kind].how == ABOVE)
                        json_object_set_new(finds, word, json_integer((json_int_t)p->above));
                else
                        json_object_set_new(finds, word, texts_of(rule->patterns, p->kind));
        }
        return finds;
}

static json_t *describe_rule(const struct rule *rule)
{
        json_t *json = json_pack("{s:s, s:s, s:I, s:b, s:s}", "id", rule->id, "severity",
                rule->severity < 0 ? "OFF" : choices_severity.values[rule->severity].text, "score",
                (json_int_t)rule->score, "inherited", rule->line == 0, "message", rule->message);
        if (rule->advice)
                json_object_set_new(json, "advice", json_string(rule->advice));
        if (rule->languages) {
                json_t *languages = json_array();
                for (const char *const *l = rule->languages; *l; l++)
                        json_array_append_new(languages, json_string(*l));
                json_object_set_new(json, "languages", languages);
        }
        json_object_set_new(json, "finds", finds_of(rule));
        if (rule->excepts)
                json_object_set_new(json, "except", texts_of(rule->excepts, rule->excepts->kind));
        return json;
}

const char *policies_name(const struct policies *policies, size_t n)
{
        for (const struct policy *policy = policies->list; policy; policy = policy->next)
                if (policy->name[0] != '_' && n-- == 0)
                        return policy->name;
        return NULL;
}

json_t *policy_describe(const struct policy *policy)
{
        json_t *json = json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", policy->name, "description",
                policy->description ? policy->description : "", "file", policy->file, "block_at",
                choices_threshold.values[policy->block_at].text, "block_score", (json_int_t)policy->block_score);
        json_t *extends = json_array(), *rules = json_array();
        for (const struct policy *p = policy->extends; p; p = p->extends)
                json_array_append_new(extends, json_string(p->name));
        for (size_t i = 0; i < policy->rules_n; i++)
                json_array_append_new(rules, describe_rule(&policy->rules[i]));
        json_object_set_new(json, "extends", extends);
        json_object_set_new(json, "allow", texts_of(policy->allow, FACT_IMPORT));
        json_object_set_new(json, "rules", rules);
        return json;
}
