/* What E2B's daemon is asked and answers, on paper: envelopes, accounts, paths, permissions, signatures, metadata. */
#include "front/e2b/envd/envd.h"

#include <sys/stat.h>

#include "tap.h"

static void a_message_is_taken_out_of_its_envelope(void)
{
        struct csn_error err;
        size_t at = 0, len = 0;
        uint8_t head[RPC_ENVELOPE];
        CHECK(rpc_unwrap("\0\0\0\0\2{}", 7, &at, &len, &err) == 0 && at == 5 && len == 2);
        CHECK(rpc_unwrap("\0\0\0\0\0", 5, &at, &len, &err) == 0 && len == 0);
        rpc_wrap(RPC_FLAG_END, 0x01020304, head);
        CHECK(memcmp(head, "\2\1\2\3\4", 5) == 0);
}

static void an_envelope_that_is_none_is_refused(void)
{
        static const struct { const char *bytes; size_t len;
        } wrong[] = {
                { "", 0 },
                { "\0\0\0\0", 4 },
                { "\0\0\0\0\3{}", 7 },
                { "\0\0\0\0\1{}", 7 },
                { "\1\0\0\0\2{}", 7 },
                { "\2\0\0\0\2{}", 7 },
                { "\0\377\377\377\377{}", 7 },
        };
        struct csn_error err;
        size_t at = 77, len = 77;
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
                CHECK(rpc_unwrap(wrong[i].bytes, wrong[i].len, &at, &len, &err) == -CSN_E_INPUT && at == 77 &&
                        len == 77);
}

static void every_code_has_a_name_and_a_status(void)
{
        for (enum rpc_code code = RPC_CANCELED; code < RPC_CODES; code++)
                CHECK(rpc_code_name(code) && rpc_code_status(code) >= 400);
        CHECK(strcmp(rpc_code_name(RPC_NOT_FOUND), "not_found") == 0 && rpc_code_status(RPC_NOT_FOUND) == 404);
        CHECK(rpc_code_status(RPC_ALREADY_EXISTS) == 409 && rpc_code_status(RPC_DEADLINE_EXCEEDED) == 504 &&
                rpc_code_status(RPC_UNAUTHENTICATED) == 401);
}

static void numbers_are_read_as_they_are_written(void)
{
        json_t *json = json_pack("{s:i, s:s, s:s, s:i, s:f, s:b}", "plain", 7, "text", "18446744073709551", "bad", "7x",
                "minus", -1, "real", 1.5, "yes", 1);
        CHECK(rpc_header_number("1500") == 1500 && rpc_header_number("9999999999") == 9999999999);
        CHECK(!rpc_header_number(NULL) && !rpc_header_number("") && !rpc_header_number("-1") &&
                !rpc_header_number("1s") && !rpc_header_number("10000000000"));
        CHECK(rpc_number(json, "plain", 1) == 7 && rpc_number(json, "text", 1) == 18446744073709551 &&
                rpc_number(json, "bad", 1) == 1);
        CHECK(rpc_number(json, "minus", 1) == 1 && rpc_number(json, "real", 1) == 1 &&
                rpc_number(json, "none", 1) == 1 && rpc_number(NULL, "x", 1) == 1);
        CHECK(rpc_bool(json, "yes", false) && rpc_bool(json, "none", true) && !rpc_bool(json, "plain", false));
        CHECK(rpc_string(json, "bad") && !rpc_string(json, "plain") && !rpc_string(json, "none"));
        json_decref(json);
}

static void members_are_what_a_table_says(void)
{
        static const struct e2b_member members[] = {
                { .name = "text", .kind = E2B_TEXT },
                { .name = "flag", .kind = E2B_BOOL },
                { .name = "number", .kind = E2B_NUMBER, .most = 100 },
                { .name = "object", .kind = E2B_OBJECT },
                { .name = "object.in.text", .kind = E2B_TEXT },
                { .name = "texts", .kind = E2B_TEXTS },
                { .name = "variables", .kind = E2B_VARIABLES },
                { .name = "word", .kind = E2B_WORD, .words = "ONE TWO" },
                { 0 },
        };
        static const struct { const char *json, *text;
        } rows[] = {
                { "{}", NULL },
                { "{\"unknown\": 5}", NULL },
                { "{\"text\": null, \"flag\": null, \"number\": null, \"object\": null}", NULL },
                { "{\"text\": \"\", \"flag\": false, \"number\": 100, \"object\": {\"in\": {\"text\": \"x\"}}}", NULL },
                { "{\"number\": \"7\", \"texts\": [], \"variables\": {\"A\": \"=\"}, \"word\": \"TWO\"}", NULL },
                { "{\"number\": 7.0}", NULL },
                { "{\"text\": 5}", "text is 5; it has to be a text" },
                { "{\"flag\": \"no\"}", "flag is \"no\"; it has to be true or false" },
                { "{\"number\": -1}", "number is -1; it has to be a whole number from 0 to 100" },
                { "{\"number\": 101}", "from 0 to 100" },
                { "{\"number\": \"x\"}", "number is \"x\"" },
                { "{\"number\": 1.5}", "number is 1.5" },
                { "{\"number\": true}", "number is true" },
                { "{\"object\": []}", "object is []; it has to be an object" },
                { "{\"object\": {\"in\": {\"text\": [1]}}}", "object.in.text is [1]" },
                { "{\"texts\": \"x\"}", "texts is \"x\"; it has to be a list of texts" },
                { "{\"texts\": [1]}", "texts is [1]" },
                { "{\"variables\": {\"A=B\": \"1\"}}", "variables is {\"A=B\":\"1\"}" },
                { "{\"variables\": {\"\": \"1\"}}", "variables is" },
                { "{\"variables\": {\"A\": 1}}", "variables is" },
                { "{\"word\": \"ON\"}", "word is \"ON\"; it has to be one of: ONE TWO" },
                { "{\"word\": \"ONE TWO\"}", "word is" },
                { "{\"word\": 1}", "word is 1" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct csn_error err = { 0 };
                json_t *json = json_loads(rows[i].json, 0, NULL);
                int rc = e2b_check(json, members, &err);
                CHECK(rows[i].text ? rc == -CSN_E_INPUT && strstr(err.text, rows[i].text) : rc == 0);
                json_decref(json);
        }
}

static void what_is_shown_of_a_value_has_a_length(void)
{
        char shown[E2B_SHOWN_MAX], longest[200];
        memset(longest, 'x', sizeof longest);
        json_t *json = json_stringn(longest, sizeof longest);
        e2b_show(json, shown);
        CHECK(strlen(shown) == E2B_SHOWN_MAX - 1 && strcmp(shown + E2B_SHOWN_MAX - 4, "...") == 0);
        json_decref(json);
        e2b_show(NULL, shown);
        CHECK(strcmp(shown, "missing") == 0);
}

static void homes_are_known_by_any_spelling(void)
{
        static const char *const homes[] = { "/", "//", "/.", "/home", "/home/", "/home/user", "/home/./user/",
                "/home/user/x/..", "/tmp/../home/user", "/root", "/../root" };
        static const char *const others[] = { "/home/user/x", "/home/user2", "/home/use", "/hom", "/root/x", "/tmp",
                "/home/user/x/../y" };
        for (size_t i = 0; i < ARRAY_LEN(homes); i++)
                CHECK(spell_is_home(homes[i]));
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                CHECK(!spell_is_home(others[i]));
}

static void accounts_are_root_and_user(void)
{
        int account = -1;
        CHECK(e2b_account("", &account) && account == account_USER && e2b_account("user", &account) &&
                account == account_USER);
        CHECK(e2b_account("root", &account) && account == account_ROOT);
        CHECK(!e2b_account("User", &account) && !e2b_account("nobody", &account) && !e2b_account("user ", &account));
}

static bool leads(const char *path, int account, const char *to)
{
        char got[GUEST_PATH_MAX] = "";
        struct csn_error err;
        return spell_path(path, account, NULL, got, &err) == 0 && strcmp(got, to) == 0;
}

static void paths_are_from_the_home_folder_on(void)
{
        static const char *const rows[][2] = {
                { "", "/home/user" },
                { ".", "/home/user" },
                { "a", "/home/user/a" },
                { "a/", "/home/user/a" },
                { "./a//b/./c", "/home/user/a/b/c" },
                { "~", "/home/user" },
                { "~/", "/home/user" },
                { "~/a", "/home/user/a" },
                { "..", "/home" },
                { "../..", "/" },
                { "../../../../etc", "/etc" },
                { "a/../b", "/home/user/b" },
                { "...", "/home/user/..." },
                { "/", "/" },
                { "//", "/" },
                { "/a/", "/a" },
                { "/a/../b", "/a/../b" },
                { "a~", "/home/user/a~" },
                { ".a", "/home/user/.a" },
                { "/a//b", "/a//b" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                CHECK(leads(rows[i][0], account_USER, rows[i][1]));
        CHECK(leads("x", account_ROOT, "/root/x") && leads("~", account_ROOT, "/root") &&
                leads("../x", account_ROOT, "/x"));
        CHECK(strcmp(spell_name("/a/b"), "b") == 0 && strcmp(spell_name("/"), "/") == 0 &&
                strcmp(spell_name("x"), "x") == 0);
}

static void homes_of_others_and_long_paths_are_refused(void)
{
        static char longest[GUEST_PATH_MAX + 10];
        char got[GUEST_PATH_MAX];
        struct csn_error err;
        CHECK(spell_path("~other/x", account_USER, NULL, got, &err) == -CSN_E_INPUT &&
                strstr(err.text, "user-specific home dir"));
        CHECK(spell_path("~~", account_USER, NULL, got, &err) == -CSN_E_INPUT);
        CHECK(spell_path("a/../b", account_USER, "/app", got, &err) == 0 && strcmp(got, "/app/b") == 0);
        CHECK(spell_path("", account_USER, "/", got, &err) == 0 && strcmp(got, "/") == 0);
        CHECK(spell_path("~/b", account_ROOT, "/app", got, &err) == 0 && strcmp(got, "/root/b") == 0);
        memset(longest, 'x', sizeof longest - 1);
        CHECK(spell_path(longest, account_USER, NULL, got, &err) == -CSN_E_INPUT);
        longest[0] = '/';
        CHECK(spell_path(longest, account_USER, NULL, got, &err) == -CSN_E_INPUT);
        longest[GUEST_PATH_MAX - 1] = 0;
        CHECK(spell_path(longest, account_USER, NULL, got, &err) == 0 && strlen(got) == GUEST_PATH_MAX - 1);
}

static void permissions_are_spelled(void)
{
        static const struct { unsigned mode; const char *text;
        } rows[] = {
                { S_IFREG | 0644, "-rw-r--r--" },
                { S_IFDIR | 0755, "drwxr-xr-x" },
                { S_IFLNK | 0777, "Lrwxrwxrwx" },
                { S_IFREG | 04755, "urwxr-xr-x" },
                { S_IFDIR | 01777, "dtrwxrwxrwx" },
                { S_IFCHR | 0666, "Dcrw-rw-rw-" },
                { S_IFIFO | 0600, "prw-------" },
                { S_IFSOCK | 0, "S---------" },
                { S_IFBLK | 0660, "Drw-rw----" },
                { S_IFREG | 06711, "ugrwx--x--x" },
        };
        char got[SPELL_MODE_MAX];
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                spell_mode(rows[i].mode, got);
                CHECK(strcmp(got, rows[i].text) == 0);
        }
        spell_mode(UINT64_MAX, got);
        CHECK(strlen(got) < SPELL_MODE_MAX);
}

/* By sha256sum and base64. */
static void signatures_are_those_of_the_clients(void)
{
        char got[SPELL_SIGNATURE_MAX];
        spell_signature("f", false, "", "token", NULL, got);
        CHECK(strcmp(got, "v1_686IM6yvb6iuW5WdI2/dneTbgFwOHCZ4p+KNQ6I6ggk") == 0);
        spell_signature("a b", true, "root", "token", "1700000000", got);
        CHECK(strcmp(got, "v1_VzaukV6xGYJSrwFpTr9JORK77ye4w1aj4KipbUpk8RY") == 0);
}

static void metadata_is_in_headers(void)
{
        struct arena arena = { 0 };
        struct csn_error err;
        char *label = NULL;
        CHECK(spell_label("x-metadata-Author", "me = I", &arena, &label, &err) == 1 &&
                strcmp(label, "author=me = I") == 0);
        CHECK(spell_label("X-METADATA-A", "", &arena, &label, &err) == 1 && strcmp(label, "a=") == 0);
        CHECK(spell_label("X-Meta", "x", &arena, &label, &err) == 0 &&
                spell_label("Host", "x", &arena, &label, &err) == 0);
        CHECK(spell_label("X-Metadata-", "x", &arena, &label, &err) == -CSN_E_INPUT &&
                spell_label("X-Metadata-a=b", "x", &arena, &label, &err) == -CSN_E_INPUT);
        CHECK(spell_label("X-Metadata-A", "\xc3\xa4", &arena, &label, &err) == -CSN_E_INPUT &&
                spell_label("X-Metadata-A", "a\tb", &arena, &label, &err) == -CSN_E_INPUT);
        arena_done(&arena);
}

int main(void)
{
        RUN(a_message_is_taken_out_of_its_envelope);
        RUN(an_envelope_that_is_none_is_refused);
        RUN(every_code_has_a_name_and_a_status);
        RUN(numbers_are_read_as_they_are_written);
        RUN(members_are_what_a_table_says);
        RUN(what_is_shown_of_a_value_has_a_length);
        RUN(homes_are_known_by_any_spelling);
        RUN(accounts_are_root_and_user);
        RUN(paths_are_from_the_home_folder_on);
        RUN(homes_of_others_and_long_paths_are_refused);
        RUN(permissions_are_spelled);
        RUN(signatures_are_those_of_the_clients);
        RUN(metadata_is_in_headers);
        return tap_done();
}
