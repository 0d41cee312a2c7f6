/* Tools without a sandbox: names, grants, schemas, results. */
#include "tools/tools_private.h"

#include "tap.h"

static json_t *parse(const char *text)
{
        json_t *json = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        if (!json)
                abort();
        return json;
}

static bool fits(const char *schema_text, const char *value_text, struct csn_error *err)
{
        json_t *schema = parse(schema_text), *value = parse(value_text);
        int rc = schema_check(schema, value, err);
        json_decref(schema);
        json_decref(value);
        return rc == 0;
}

static void a_pattern_with_a_dot_is_about_a_server(void)
{
        CHECK(grant_matches("weather", "home", "weather") && !grant_matches("weather", "home", "weather2"));
        CHECK(grant_matches("home.weather", "home", "weather") && !grant_matches("home.weather", "away", "weather"));
        CHECK(grant_matches("home.*", "home", "a.b") && !grant_matches("home.*", "homes", "x"));
        CHECK(grant_matches("get_*", "home", "get_") && !grant_matches("get_*", "home", "forget_x"));
        CHECK(grant_matches("*", "home", "anything") && grant_matches("*a*b*", "x", "xxaxxbxx") &&
                !grant_matches("*a*b", "x", "ba"));
        /* A tool of another server that is called as if it were this one's. */
        CHECK(!grant_matches("files.*", "evil", "files.delete") &&
                grant_matches("evil.files.*", "evil", "files.delete"));
}

static bool narrows(struct tools_request *given, const struct tools_request *granted, const char *field)
{
        struct csn_error err = { 0 };
        int rc = tools_check_narrow(given, granted, "adm", &err);
        return field ? rc == -CSN_E_DENIED && strcmp(err.field, field) == 0 && strstr(err.text, "adm") &&
                        strstr(err.text, "scope tools")
                     : rc == 0;
}

static bool with_lists(const struct tools_request *granted, char **allow, size_t allow_n, char **deny, size_t deny_n,
        const char *field)
{
        struct tools_request given = { .allow = allow, .allow_n = allow_n, .deny = deny, .deny_n = deny_n };
        MARK(&given, tools_request, allow);
        MARK(&given, tools_request, deny);
        return narrows(&given, granted, field);
}

static void a_request_narrows_what_its_profile_grants(void)
{
        static char s_all[] = "s.*", get_all[] = "get_*", s_env[] = "s.env", s_x[] = "s.x*", anything[] = "*",
                    s_a[] = "s.a*", get_x[] = "get_x", add[] = "add", t_get_x[] = "t.get_x";
        char *allow[] = { s_all, get_all }, *deny[] = { s_env, s_x }, *all[] = { anything }, *none[] = { NULL };
        char *within[] = { s_a, get_x }, *tool[] = { add }, *other[] = { t_get_x }, *more[] = { s_all };
        struct tools_request granted = { .allow = allow,
                .allow_n = 2,
                .deny = deny,
                .deny_n = 2,
                .ask = deny,
                .ask_n = 1,
                .calls = 2 },
                             empty = { 0 };
        MARK(&granted, tools_request, allow);
        MARK(&granted, tools_request, deny);
        MARK(&granted, tools_request, ask);
        MARK(&granted, tools_request, calls);
        CHECK(with_lists(&granted, allow, 2, deny, 2, NULL) && with_lists(&granted, within, 2, all, 1, NULL) &&
                with_lists(&granted, none, 0, more, 1, NULL));
        CHECK(with_lists(&granted, all, 1, deny, 2, "/tools/allow") &&
                with_lists(&granted, tool, 1, deny, 2, "/tools/allow"));
        CHECK(with_lists(&granted, other, 1, deny, 2, "/tools/allow") &&
                with_lists(&empty, tool, 1, none, 0, "/tools/allow"));
        CHECK(with_lists(&granted, allow, 2, deny, 1, "/tools/deny") &&
                with_lists(&granted, allow, 2, none, 0, "/tools/deny"));

        struct tools_request given = { 0 };
        CHECK(narrows(&given, &granted, NULL));
        MARK(&given, tools_request, ask);
        CHECK(narrows(&given, &granted, "/tools/ask") && narrows(&given, &empty, NULL));
        given = (struct tools_request){ 0 };
        SET(&given, tools_request, calls, 2);
        CHECK(narrows(&given, &granted, NULL));
        SET(&given, tools_request, calls, 3);
        CHECK(narrows(&given, &granted, "/tools/calls") && narrows(&given, &empty, NULL));
        /* What it does not say has its default there. */
        given = (struct tools_request){ 0 };
        SET(&given, tools_request, payload_bytes, 200001);
        CHECK(narrows(&given, &granted, "/tools/payload_bytes") && narrows(&given, &empty, NULL));
}

static void patterns_and_names_have_an_alphabet(void)
{
        CHECK(grant_check_pattern("a-b_c.d/e*") && !grant_check_pattern("") && !grant_check_pattern("a b") &&
                !grant_check_pattern("a\n"));
        CHECK(tools_is_name("get_time") && tools_is_name("a/b.c-d") && !tools_is_name("__class__") &&
                !tools_is_name("_x") && !tools_is_name("") && !tools_is_name("a b"));
        CHECK(tools_is_server("my-server_1") && !tools_is_server("a.b") && !tools_is_server("-a") &&
                !tools_is_server(""));
        char name[TOOL_NAME_MAX + 2];
        memset(name, 'a', sizeof name);
        name[TOOL_NAME_MAX + 1] = 0;
        CHECK(!tools_is_name(name));
        name[TOOL_NAME_MAX] = 0;
        CHECK(tools_is_name(name));
}

static const struct { const char *schema, *good, *bad;
} pairs[] = {
        { "{\"type\":\"object\"}", "{}", "[]" },
        { "{\"type\":[\"string\",\"null\"]}", "null", "1" },
        { "{\"type\":\"integer\"}", "1.0", "1.5" },
        { "{\"required\":[\"a\"]}", "{\"a\":null}", "{\"b\":1}" },
        { "{\"properties\":{\"a\":{\"type\":\"string\"}},\"additionalProperties\":false}", "{\"a\":\"x\"}",
                "{\"b\":1}" },
        { "{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"b\":1}", "{\"a\":1}" },
        { "{\"patternProperties\":{\"^x\":{\"type\":\"number\"}},\"additionalProperties\":{\"type\":\"string\"}}",
                "{\"x1\":1,\"y\":\"\"}", "{\"y\":1}" },
        { "{\"propertyNames\":{\"maxLength\":2}}", "{\"ab\":1}", "{\"abc\":1}" },
        { "{\"minimum\":1,\"exclusiveMaximum\":3}", "1", "3" },
        { "{\"multipleOf\":0.01}", "0.07", "0.075" },
        { "{\"minLength\":2,\"maxLength\":2}", "\"\\u00e4\\ud83d\\ude00\"", "\"\xc3\xa4\"" },
        { "{\"pattern\":\"^[a-z]+$\"}", "\"abc\"", "\"ab1\"" },
        { "{\"enum\":[1,\"a\",{\"b\":[1]}]}", "{\"b\":[1.0]}", "{\"b\":[2]}" },
        { "{\"const\":{\"a\":1}}", "{\"a\":1}", "{\"a\":true}" },
        { "{\"items\":{\"type\":\"integer\"},\"maxItems\":2}", "[1,2]", "[1,\"2\"]" },
        { "{\"prefixItems\":[{\"type\":\"integer\"}],\"items\":false}", "[1]", "[1,2]" },
        { "{\"uniqueItems\":true}", "[1,\"1\",[1],[2]]", "[{\"a\":1},{\"a\":1.0}]" },
        { "{\"contains\":{\"const\":1},\"maxContains\":1}", "[1,2]", "[1,1]" },
        { "{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}", "2", "3" },
        { "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":5}]}", "6", "4" },
        { "{\"oneOf\":[{\"type\":\"integer\"},{\"minimum\":5}]}", "4", "6" },
        { "{\"not\":{\"type\":\"string\"}}", "1", "\"\"" },
        { "{\"if\":{\"required\":[\"a\"]},\"then\":{\"required\":[\"b\"]},\"else\":{\"required\":[\"c\"]}}",
                "{\"a\":1,\"b\":1}", "{\"b\":1}" },
        { "{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"b\":1}", "{\"a\":1}" },
        { "{\"$ref\":\"#/$defs/a~1b\",\"$defs\":{\"a/b\":{\"type\":\"string\"}}}", "\"\"", "1" },
        { "{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}", "{\"next\":{\"next\":{}}}",
                "{\"next\":{\"x\":1}}" },
        { "{\"type\":\"object\",\"properties\":{\"a\":false}}", "{}", "{\"a\":1}" },
};

static void schemas_say_what_fits(void)
{
        struct csn_error err;
        for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
                bool good = fits(pairs[i].schema, pairs[i].good, &err), bad = fits(pairs[i].schema, pairs[i].bad, &err);
                if (!good || bad)
                        printf("# %s\n", pairs[i].schema);
                CHECK(good && !bad && err.code == CSN_E_INPUT && err.text[0]);
        }
}

static void what_is_wrong_has_its_place(void)
{
        struct csn_error err;
        CHECK(!fits("{\"properties\":{\"a\":{\"items\":{\"type\":\"string\"}}}}", "{\"a\":[\"\",1]}", &err) &&
                strcmp(err.field, "/a/1") == 0 && strcmp(err.text, "has to be of type string") == 0);
}

static void unknown_words_and_foreign_references_let_pass(void)
{
        struct csn_error err;
        CHECK(fits(
                "{\"format\":\"email\",\"unevaluatedProperties\":false,\"$ref\":\"http://example.org/x\",\"shoe\":{\"type\":\"none\"}}",
                "{\"a\":1}", &err));
        CHECK(fits(
                "{\"type\":7,\"enum\":{},\"required\":\"a\",\"properties\":[],\"minimum\":\"1\",\"allOf\":1,\"pattern\":2}",
                "\"x\"", &err));
        CHECK(fits("{\"$ref\":\"#/$defs/a%\"}", "1", &err) && fits("{\"$ref\":\"#/$defs/a%b\"}", "1", &err) &&
                fits("{\"$ref\":\"#/~\"}", "1", &err));
        CHECK(fits("true", "1", &err) && !fits("false", "1", &err));
}

/* Each of these would take for ever. */
static void work_is_bounded(void)
{
        struct csn_error err;
        struct buf text;
        CHECK(!fits("{\"$ref\":\"#\"}", "1", &err) && strstr(err.text, "nested too deeply"));
        CHECK(!fits("{\"pattern\":\"^(a|aa|aaa)+$\"}",
                      "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\"", &err) &&
                strstr(err.text, "too much work"));
        CHECK(!fits("{\"pattern\":\"(\"}", "\"a\"", &err) && strstr(err.text, "cannot be used"));
        CHECK(!fits(
                "{\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#/$defs/b\"},{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"anyOf\":[{\"$ref\":\"#/$defs/a\"},{\"$ref\":\"#/$defs/a\"}]}},"
                "\"$ref\":\"#/$defs/a\"}",
                "1", &err));
        buf_init(&text, MIB);
        buf_printf(&text, "[");
        for (int i = 0; i < 10000; i++)
                buf_printf(&text, "%s%d", i ? "," : "", i);
        buf_printf(&text, "]");
        uint64_t begun = clock_ms();
        CHECK(!fits("{\"uniqueItems\":true}", text.bytes, &err) && strstr(err.text, "too much work"));
        CHECK(clock_ms() - begun < 30000);
        buf_done(&text);
}

/*
 * What costs by its length: an expression tries each place of a text anew, and a limit of length counts all characters.
 */
static void long_texts_are_work_too(void)
{
        struct csn_error err;
        struct buf text, schema;
        buf_init(&text, MIB);
        buf_init(&schema, MIB);
        buf_printf(&text, "\"%0190000d @\"", 0);
        uint64_t begun = clock_ms();
        CHECK(!fits("{\"pattern\":\"\\\\w+@\\\\w+\"}", text.bytes, &err) && strstr(err.text, "too much work"));
        CHECK(fits("{\"pattern\":\"^[0-9]+ @$\"}", text.bytes, &err) &&
                fits("{\"maxLength\":190002}", text.bytes, &err));
        buf_printf(&schema, "{\"$defs\":{\"a\":{\"anyOf\":[");
        for (int i = 0; i < 1000; i++)
                buf_printf(&schema, "%s{\"minLength\":1e9}", i ? "," : "");
        buf_printf(&schema, "]}},\"anyOf\":[");
        for (int i = 0; i < 90; i++)
                buf_printf(&schema, "%s{\"$ref\":\"#/$defs/a\"}", i ? "," : "");
        buf_printf(&schema, "]}");
        CHECK(!fits(schema.bytes, text.bytes, &err) && strstr(err.text, "too much work"));
        CHECK(clock_ms() - begun < 30000);
        buf_done(&text);
        buf_done(&schema);
}

static bool becomes(const char *content, const char *structured, const char *wanted)
{
        struct tool_result result = { .content = content ? parse(content) : NULL,
                .structured = structured ? parse(structured) : NULL };
        json_t *value = result_value(&result, MIB), *other = parse(wanted);
        bool same = json_equal(value, other);
        json_decref(value);
        json_decref(other);
        json_decref(result.content);
        json_decref(result.structured);
        return same;
}

static void a_result_is_one_value(void)
{
        CHECK(becomes(NULL, "{\"a\":1}", "{\"a\":1}"));
        CHECK(becomes("[{\"type\":\"text\",\"text\":\"{}\"}]", "[2]", "[2]"));
        CHECK(becomes("[{\"type\":\"text\",\"text\":\"{\\\"t\\\":1}\"}]", NULL, "{\"t\":1}"));
        CHECK(becomes("[{\"type\":\"text\",\"text\":\"warm\"}]", NULL, "\"warm\""));
        CHECK(becomes("[{\"type\":\"text\",\"text\":\"a\\u0000b\"}]", NULL, "\"a\\u0000b\""));
        CHECK(becomes("[{\"type\":\"text\",\"text\":\"123456789012345678901234567890\"}]", NULL,
                "\"123456789012345678901234567890\""));
        CHECK(becomes("[{\"type\":\"text\",\"text\":\"1\"},{\"type\":\"image\",\"data\":\"\"}]", NULL,
                "[{\"type\":\"text\",\"text\":\"1\"},{\"type\":\"image\",\"data\":\"\"}]"));
        CHECK(becomes("[]", NULL, "null") && becomes(NULL, NULL, "null"));
}

static void a_text_of_too_many_parts_stays_a_text(void)
{
        struct buf text;
        buf_init(&text, MIB);
        buf_printf(&text, "[0");
        for (int i = 0; i < TOOL_PARTS_MAX; i++)
                buf_printf(&text, ",1");
        buf_printf(&text, "]");
        struct tool_result result = { .content = json_pack("[{s:s, s:s}]", "type", "text", "text", text.bytes) };
        json_t *value = result_value(&result, MIB);
        CHECK(json_is_string(value) && json_string_length(value) == text.len);
        json_decref(value);
        json_decref(result.content);
        buf_done(&text);
        result.content = parse("[{\"type\":\"text\",\"text\":\"[1,2,3]\"}]");
        json_t *list = result_value(&result, 7), *same = result_value(&result, 6);
        CHECK(json_is_array(list) && json_is_string(same));
        json_decref(list);
        json_decref(same);
        json_decref(result.content);
}

static void a_pattern_concerns_servers(void)
{
        static char *const dotted[] = { "home.weather", "ho*e.x" }, *const plain[] = { "get_*" },
                           *const any[] = { "*.x" };
        CHECK(grant_concerns(dotted, 1, "home") && !grant_concerns(dotted, 1, "homes") &&
                !grant_concerns(dotted, 1, "hom") && !grant_concerns(dotted, 2, "away"));
        CHECK(grant_concerns(dotted, 2, "horse") && grant_concerns(dotted, 2, "ho") &&
                grant_concerns(plain, 1, "home") && grant_concerns(any, 1, "home"));
        CHECK(!grant_concerns(NULL, 0, "home"));
}

static void an_error_is_a_text_within_bounds(void)
{
        struct tool_result result = {
                .content = parse(
                        "[{\"type\":\"text\",\"text\":\"one\"},{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"zw\xc3\xb6lf\"}]"),
                .is_error = true
        };
        char *text = result_error(&result, 100), *cut = result_error(&result, 7);
        CHECK(strcmp(text, "one\nzw\xc3\xb6lf") == 0 && strcmp(cut, "one\nzw") == 0);
        free(text);
        free(cut);
        json_decref(result.content);
        text = result_error(&(struct tool_result){ .is_error = true }, 100);
        CHECK(strcmp(text, "the tool failed") == 0);
        free(text);
}

int main(void)
{
        RUN(a_pattern_with_a_dot_is_about_a_server);
        RUN(a_request_narrows_what_its_profile_grants);
        RUN(patterns_and_names_have_an_alphabet);
        RUN(schemas_say_what_fits);
        RUN(what_is_wrong_has_its_place);
        RUN(unknown_words_and_foreign_references_let_pass);
        RUN(work_is_bounded);
        RUN(long_texts_are_work_too);
        RUN(a_result_is_one_value);
        RUN(a_text_of_too_many_parts_stays_a_text);
        RUN(a_pattern_concerns_servers);
        RUN(an_error_is_a_text_within_bounds);
        return tap_done();
}
