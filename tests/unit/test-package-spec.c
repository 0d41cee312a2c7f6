/* spec: packages as people write them, and everything that no resolver may read. */
#include "model/package_spec.h"

#include "tap.h"

static struct arena arena;

static const char *text_of(const char *language, const char *text)
{
        struct package_set set = { .arena = &arena, .language = language };
        struct csn_error err;
        return package_set_add(&set, text, "/packages", &err) < 0 ? arena_text(&arena, "! %s", err.text)
                                                                  : package_set_text(&set);
}

static const char *lines_of(const char *text, bool *ret_pinned)
{
        struct package_set set = { .arena = &arena, .language = "python" };
        struct csn_error err;
        *ret_pinned = false;
        if (package_set_add_requirements(&set, text, "/requirements", &err) < 0)
                return arena_text(&arena, "! %s", err.text);
        *ret_pinned = package_set_is_pinned(&set);
        return package_set_text(&set);
}

static const char *script_of(const char *code)
{
        struct package_set set = { .arena = &arena, .language = "python" };
        struct csn_error err;
        if (package_set_add_script(&set, code, strlen(code), &err) < 0)
                return arena_text(&arena, "! %s", err.text);
        return package_set_text(&set);
}

#define SAME(got, want)                                         \
        do {                                                    \
                const char *got_ = (got);                       \
                CHECK(strcmp(got_, want) == 0);                 \
                if (strcmp(got_, want) != 0)                    \
                        printf("# got: %s\n", got_);            \
        } while (0)

/* S0-88: one text of a configuration file becomes a list, without blanks and without empty items. */
static void a_list_of_packages_is_split_at_commas_semicolons_and_lines(void)
{
        SAME(text_of("python", "numpy, pandas;requests==2.28.0;"), "numpy\npandas\nrequests==2.28.0\n");
        SAME(text_of("python", "a\n b \r\nc,,;"), "a\nb\nc\n");
        SAME(text_of("python", ""), "");
        SAME(text_of("python", " , ; \n"), "");
}

static void a_comma_in_versions_and_extras_separates_nothing(void)
{
        SAME(text_of("python", "a>=1, <2, b"), "a>=1,<2\nb\n");
        SAME(text_of("python", "a[x, Y]==1.*,b"), "a[x,y]==1.*\nb\n");
        SAME(text_of("python", "markitdown[all]"), "markitdown[all]\n");
        SAME(text_of("python", "a (>=1.0)"), "a>=1.0\n");
}

static void equal_sets_have_one_text(void)
{
        SAME(text_of("python", "Foo.Bar, zeta"), "foo-bar\nzeta\n");
        SAME(text_of("python", "zeta, foo__bar, FOO-BAR"), "foo-bar\nzeta\n");
        SAME(text_of("python", "a[z,b,z] == 1"), "a[b,z]==1\n");
}

static void the_first_of_a_name_counts(void)
{
        SAME(text_of("python", "requests==2.28.0, requests"), "requests==2.28.0\n");
}

static void markers_are_kept(void)
{
        SAME(text_of("python", "a; python_version < '3.9'"), "a ; python_version < '3.9'\n");
        SAME(text_of("python", "a; b"), "a\nb\n");
}

static void options_addresses_and_commands_are_refused(void)
{
        static const char *const bad[] = { "--index-url x", "-e git+https://example.org/x", "git+https://example.org/x",
                "a @ https://example.org/a.whl", "./a.whl", "/etc/passwd", "x;$(id)", "x`id`", "a b", "a==",
                "a[", "a[]b[", "a<>1", "a==1 --hash=sha256:00", "\x01", "a\x7f", "..", "_a", "a==1;rm -rf /",
                "a==1 --pre", "a>=1 <2", "a==$(id)",
                "a ; os.system('x')" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct package_set set = { .arena = &arena, .language = "python" };
                struct csn_error err = { 0 };
                int rc = package_set_add(&set, bad[i], "/packages", &err);
                CHECK(rc == -CSN_E_INPUT && strcmp(err.field, "/packages") == 0 && err.text[0]);
                if (rc == 0)
                        printf("# accepted: %s as %s\n", bad[i], package_set_text(&set));
        }
}

static void long_texts_are_refused(void)
{
        char *name = arena_alloc(&arena, 600);
        struct package_set set = { .arena = &arena, .language = "python" };
        struct csn_error err;
        memset(name, 'a', SPEC_NAME_MAX + 1);
        CHECK(package_set_add(&set, name, "/packages", &err) == -CSN_E_INPUT);
        name[SPEC_NAME_MAX] = 0;
        CHECK(package_set_add(&set, name, "/packages", &err) == 0);
        memset(name + 1, ' ', 598);
        memcpy(name + 590, "==1", 3);
        name[593] = 0;
        CHECK(package_set_add(&set, name, "/packages", &err) == -CSN_E_INPUT);
}

static void names_and_ranges_of_npm_are_read(void)
{
        SAME(text_of("javascript", "left-pad@1.3.0, lodash"), "left-pad@1.3.0\nlodash\n");
        SAME(text_of("javascript", "@scope/a.b@^2.0.0\nx@>=1 <2\ny==1.0.0\nz@1.x || 2"),
                "@scope/a.b@^2.0.0\nx@>=1 <2\ny@1.0.0\nz@1.x || 2\n");
        static const char *const bad[] = { "@scope", "@/x", "@scope/", "a/b", "a@file:../x", "a@latest",
                "a@git+https://x", "A", ".a", "_a", "@.a/b", "a@1;id@$(x)", "-g" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
                struct package_set set = { .arena = &arena, .language = "javascript" };
                struct csn_error err;
                CHECK(package_set_add(&set, bad[i], "/packages", &err) == -CSN_E_INPUT);
        }
}

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_requirements_file_is_read(void)
{
        bool pinned;
        SAME(lines_of("# all\n\nB==2 # why\nA>=1 ; python_version >= '3.8'\n", &pinned),
                "a>=1 ; python_version >= '3.8'\nb==2\n");
        CHECK(!pinned);
        SAME(lines_of("a==1 \\\r\n    --hash=sha256:" HASH " \\\n --hash=sha256:" HASH "\r\n", &pinned),
                "a==1 --hash=sha256:" HASH " --hash=sha256:" HASH "\n");
        CHECK(pinned);
        lines_of("a==1.* --hash=sha256:" HASH "\n", &pinned);
        CHECK(!pinned);
        lines_of("a==1 --hash=sha256:" HASH "\nb==1\n", &pinned);
        CHECK(!pinned);
        lines_of("", &pinned);
        CHECK(!pinned);
}

static void options_of_a_requirements_file_are_refused_with_their_line(void)
{
        bool pinned;
        static const char *const bad[] = { "a\n-r other.txt", "a\n--extra-index-url https://x", "a\n-e .",
                "a\nb --hash=md5:00", "a\nb --hash=sha256:xyz", ("a\n--hash=sha256:" HASH), "a\nhttps://x/y.whl",
                "a\nb --install-option=x" };
        for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(strstr(lines_of(bad[i], &pinned), "! line 2: ") != NULL);
}

static void a_block_of_inline_metadata_is_read(void)
{
        SAME(script_of("# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"requests<3\", # why\n#\n"
                       "#   'rich',\n# ]\n# ///\nimport requests\n"), "requests<3\nrich\n");
        SAME(script_of("print(1)\r\n# /// script\r\n# dependencies = [\"a\"]\r\n# ///\r\n"), "a\n");
        SAME(script_of("# /// script\n# dependencies = []\n# ///\n"), "");
}

static void what_is_no_block_adds_nothing(void)
{
        SAME(script_of("# /// script\n# dependencies = ['a']\n"), "");
        SAME(script_of("# /// script\n# dependencies = ['a']\nx\n# ///\n"), "");
        SAME(script_of("# /// other\n# dependencies = ['a']\n# ///\n"), "");
        SAME(script_of("# /// script\n# [tool]\n# dependencies = ['a']\n# ///\n"), "");
        SAME(script_of("# /// script\n# dependencies_of = ['a']\n# ///\n"), "");
        SAME(script_of(""), "");
}

static void a_malformed_block_is_refused(void)
{
        CHECK(script_of("# /// script\n# dependencies = 'a'\n# ///\n")[0] == '!');
        CHECK(script_of("# /// script\n# dependencies = ['a\n# ///\n")[0] == '!');
        CHECK(script_of("# /// script\n# dependencies = [1]\n# ///\n")[0] == '!');
        CHECK(script_of("# /// script\n# dependencies = ['a\\x62']\n# ///\n")[0] == '!');
        CHECK(script_of("# /// script\n# dependencies = ['git+https://x']\n# ///\n")[0] == '!');
        CHECK(script_of("# /// script\n# dependencies = ['a',\n# ///\n")[0] == '!');
}

int main(void)
{
        RUN(a_list_of_packages_is_split_at_commas_semicolons_and_lines);
        RUN(a_comma_in_versions_and_extras_separates_nothing);
        RUN(equal_sets_have_one_text);
        RUN(the_first_of_a_name_counts);
        RUN(markers_are_kept);
        RUN(options_addresses_and_commands_are_refused);
        RUN(long_texts_are_refused);
        RUN(names_and_ranges_of_npm_are_read);
        RUN(a_requirements_file_is_read);
        RUN(options_of_a_requirements_file_are_refused_with_their_line);
        RUN(a_block_of_inline_metadata_is_read);
        RUN(what_is_no_block_adds_nothing);
        RUN(a_malformed_block_is_refused);
        arena_done(&arena);
        return tap_done();
}
