/* The pure parts of the package index: names, file names, versions, times, and what becomes of documents. */
#include "packages/index/document.h"

#include "tap.h"

#define DAY_MS 86400000LL
#define NOW_MS 1800000000000LL     /* 2027-01-15T08:00:00Z */
#define OLD "2026-12-01T00:00:00Z"
#define YOUNG "2027-01-15T07:00:00.123456Z"
#define SHA "0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"
/* 64 bytes of zeros */
#define INTEGRITY "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="

static bool is_canonical(enum package_kind kind, const char *text, const char *wanted)
{
        char name[PACKAGE_NAME_MAX];
        bool good = package_name_canonical(kind, text, strlen(text), name);
        return wanted ? good && strcmp(name, wanted) == 0 : !good;
}

static void names_of_python_are_folded(void)
{
        static const char *const none[] = { "", "-a", "a-", "a b", "a/b", "a@1", "a==1", "a[x]", "\xc3\xa9", ".", "a\n",
                "..", "_" };
        char longest[PACKAGE_NAME_MAX + 1];
        CHECK(is_canonical(PACKAGE_PYTHON, "Requests", "requests"));
        CHECK(is_canonical(PACKAGE_PYTHON, "zope.interface", "zope-interface"));
        CHECK(is_canonical(PACKAGE_PYTHON, "A__b.-_C", "a-b-c"));
        CHECK(is_canonical(PACKAGE_PYTHON, "7", "7"));
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(is_canonical(PACKAGE_PYTHON, none[i], NULL));
        memset(longest, 'a', sizeof longest);
        longest[PACKAGE_NAME_MAX] = 0;
        CHECK(is_canonical(PACKAGE_PYTHON, longest, NULL));
        longest[PACKAGE_NAME_MAX - 1] = 0;
        CHECK(is_canonical(PACKAGE_PYTHON, longest, longest));
}

static void names_of_node_are_kept(void)
{
        static const char *const none[] = { "", ".a", "_a", "@", "@a", "@a/", "@/a", "@a/b/c", "a/b", "a b", "@a/.b",
                "a%2fb", "@a/_b" };
        CHECK(is_canonical(PACKAGE_NODE, "left-pad", "left-pad"));
        CHECK(is_canonical(PACKAGE_NODE, "JSONStream", "JSONStream"));
        CHECK(is_canonical(PACKAGE_NODE, "@types/node", "@types/node"));
        CHECK(is_canonical(PACKAGE_NODE, "a.b~c_d", "a.b~c_d"));
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(is_canonical(PACKAGE_NODE, none[i], NULL));
}

static void lists_have_names_and_prefixes(void)
{
        char *python[] = { "Alpha_One", "beta-*", "no name" }, *all[] = { "*" }, *node[] = { "@types/*", "Left" };
        CHECK(package_is_listed(PACKAGE_PYTHON, python, ARRAY_LEN(python), "alpha-one"));
        CHECK(package_is_listed(PACKAGE_PYTHON, python, ARRAY_LEN(python), "beta-two"));
        CHECK(!package_is_listed(PACKAGE_PYTHON, python, ARRAY_LEN(python), "beta"));
        CHECK(!package_is_listed(PACKAGE_PYTHON, python, ARRAY_LEN(python), "alpha-one-two"));
        CHECK(!package_is_listed(PACKAGE_PYTHON, python, 0, "alpha-one"));
        CHECK(package_is_listed(PACKAGE_PYTHON, all, 1, "gamma"));
        CHECK(package_is_listed(PACKAGE_NODE, node, ARRAY_LEN(node), "@types/node"));
        CHECK(!package_is_listed(PACKAGE_NODE, node, ARRAY_LEN(node), "left"));
}

static bool wheel_has(const char *filename, const char *name, const char *wanted)
{
        char version[PACKAGE_VERSION_MAX];
        bool good = package_wheel_version(filename, name, version);
        return wanted ? good && strcmp(version, wanted) == 0 : !good;
}

static void names_of_wheels_have_their_parts(void)
{
        static const char *const none[] = {
                "requests-2.31.0.whl", "requests-2.31.0-py3-none.whl", "requests-2.31.0-1-py3-none-any-x.whl",
                "requests-2.31.0-x1-py3-none-any.whl", "requests-2.31.0-py3-none-.whl", "requests--py3-none-any.whl",
                "requests-2.31.0-py3-none-any.whl.exe", "requests-2.31.0-py3-none-any", ".whl", "",
                "-2.31.0-py3-none-any.whl", "requests-2 31-py3-none-any.whl", "requests-2/31-py3-none-any.whl",
                "evil-2.31.0-py3-none-any.whl", "requests2-2.31.0-py3-none-any.whl",
        };
        CHECK(wheel_has("requests-2.31.0-py3-none-any.whl", "requests", "2.31.0"));
        CHECK(wheel_has("Zope.Interface-5!1.0+local.1-2b-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
                "zope-interface", "5!1.0+local.1"));
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(wheel_has(none[i], "requests", NULL));
}

static void names_of_archives_end_in_a_version(void)
{
        char version[PACKAGE_VERSION_MAX];
        CHECK(package_archive_version("zope-interface-5.0.tar.gz", "zope-interface", version) &&
                !strcmp(version, "5.0"));
        CHECK(package_archive_version("Zope_interface-5.0.zip", "zope-interface", version) && !strcmp(version, "5.0"));
        CHECK(!package_archive_version("zope-interface-5.0.exe", "zope-interface", version));
        CHECK(!package_archive_version("zope-interface.tar.gz", "zope-interface", version));
        CHECK(!package_archive_version("zope-interface-.tar.gz", "zope-interface", version));
        CHECK(!package_archive_version("zope-interface-extra-5.0.tar.gz", "zope-interface-x", version));
}

static int order(const char *a, const char *b)
{
        struct package_semver one, two;
        if (!package_semver_parse(a, &one) || !package_semver_parse(b, &two))
                return 99;
        int there = package_semver_compare(&one, &two), back = package_semver_compare(&two, &one);
        return (there > 0) == (back < 0) && (there == 0) == (back == 0) ? (there > 0) - (there < 0) : 98;
}

static void versions_of_npm_have_an_order(void)
{
        /* The example of semver.org, section 11. */
        static const char *const rising[] = { "0.9.10", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta",
                "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.10.0", "10.0.0" };
        static const char *const none[] = { "", "1", "1.2", "1.2.", "1.2.3.4", "v1.2.3", "1.2.x", "1.2.3-", "1.2.3+",
                "1.2.3-a_b", "1.2.3 ", "99999999999999999999.0.0" };
        struct package_semver version;
        for (size_t i = 0; i < ARRAY_LEN(rising); i++)
                for (size_t j = 0; j < ARRAY_LEN(rising); j++)
                        CHECK(order(rising[i], rising[j]) == (i > j) - (i < j));
        CHECK(order("1.0.0+a", "1.0.0+b") == 0);
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(!package_semver_parse(none[i], &version));
}

static void times_are_utc(void)
{
        static const char *const none[] = { "", "2023-05-22", "2023-05-22T15:12:44", "2023-05-22T15:12:44+02:00",
                "2023-13-22T15:12:44Z", "2023-00-22T15:12:44Z", "2023-05-32T15:12:44Z", "2023-05-22T25:12:44Z",
                "2023-05-22 15:12:44Z", "2023-05-22T15:12:44.Z", "2023-05-22T15:12:44.1234567890Z",
                "1969-12-31T00:00:00Z", "2023-05-22T15:12:44Zx", "x023-05-22T15:12:44Z", "1684768364" };
        int64_t ms = 0;
        CHECK(package_time_parse("2023-05-22T15:12:44.175000Z", &ms) && ms == 1684768364175);
        CHECK(package_time_parse("2023-05-22T15:12:44Z", &ms) && ms == 1684768364000);
        CHECK(package_time_parse("2023-05-22T15:12:44.1+00:00", &ms) && ms == 1684768364100);
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                CHECK(!package_time_parse(none[i], &ms));
}

static void hashes_have_all_their_digits(void)
{
        uint8_t digest[32];
        CHECK(package_hex_parse(SHA, digest, 32) && digest[0] == 0x01 && digest[31] == 0xef);
        CHECK(!package_hex_parse(SHA "00", digest, 32) && !package_hex_parse(&SHA[1], digest, 32));
        CHECK(!package_hex_parse("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeg", digest, 32));
}

/* ---- documents ---- */

static struct document_rules rules_of(enum package_kind kind, const char *name)
{
        return (struct document_rules){ .kind = kind, .name = name, .page_url = "https://index.example/simple/alpha/",
                .base_url = "http://127.0.0.1:3128", .now_ms = NOW_MS, .min_age_ms = DAY_MS,
                .require_upload_time = true, .wheels_only = true };
}

static struct document made(const struct document_rules *rules, enum document_format format, const char *text)
{
        struct document document;
        document_make(rules, format, text, strlen(text), &document);
        return document;
}

#define FILE_JSON(name, more)                                                                                          \
        "{\"filename\":\"" name "\",\"url\":\"../../f/" name "\",\"hashes\":{\"sha256\":\"" SHA "\"}," more "}"
#define PAGE_JSON(files) "{\"meta\":{\"api-version\":\"1.1\"},\"name\":\"Alpha\",\"files\":[" files "]}"
#define TIME(text) "\"upload-time\":\"" text "\""

static void a_json_page_is_filtered(void)
{
        struct document_rules rules = rules_of(PACKAGE_PYTHON, "alpha");
        struct document document = made(&rules, DOCUMENT_SIMPLE_JSON,
                PAGE_JSON(FILE_JSON("alpha-1-py3-none-any.whl",
                        TIME(OLD) ",\"size\":7,\"requires-python\":\">=3\",\"core-metadata\":{\"sha256\":\"" SHA
                                  "\"}") "," FILE_JSON("alpha-2-py3-none-any.whl",
                        TIME(YOUNG)) "," FILE_JSON("alpha-3-py3-none-any.whl",
                        "\"size\":1") "," FILE_JSON("alpha-4-py3-none-any.whl",
                        TIME(OLD) ",\"yanked\":true") "," FILE_JSON("alpha-5.tar.gz",
                        TIME(OLD)) "," FILE_JSON("alpha-1-py3-none-any.whl",
                        TIME(OLD)) ","
                                   "{\"filename\":\"alpha-6-py3-none-any.whl\",\"url\":\"x\",\"hashes\":{\"md5\":\"1\"}," TIME(
                                           OLD) "}, 7, {}, null"));
        CHECK(document.problem == PACKAGE_FINE && document.files_n == 1 && document.counts.offered == 1);
        CHECK(document.counts.hidden_by_age == 1 && document.counts.hidden_without_time == 1 &&
              document.counts.hidden_yanked == 1 && document.counts.hidden_by_kind == 5 &&
              document.counts.hidden_without_hash == 1);
        const struct document_file *file = document.files;
        CHECK(strcmp(file->url, "https://index.example/f/alpha-1-py3-none-any.whl") == 0);
        CHECK(strcmp(file->file.path,
                      "/files/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/alpha/alpha-1-py3-none-any.whl") ==
                0);
        CHECK(file->file.size == 7 && file->has_metadata && strcmp(file->file.requires_python, ">=3") == 0);
        json_t *json = json_loadb(document.body, document.body_len, 0, NULL);
        json_t *entry = json_array_get(json_object_get(json, "files"), 0);
        CHECK(json_array_size(json_object_get(json, "files")) == 1);
        CHECK(strcmp(json_string_value(json_object_get(entry, "url")), file->file.path) == 0);
        json_decref(json);
        document_done(&document);
}

static void ages_end_exactly_at_the_minimum(void)
{
        struct document_rules rules = rules_of(PACKAGE_PYTHON, "alpha");
        static const struct { const char *time; uint64_t offered; } rows[] = {
                { "2027-01-14T08:00:00Z", 1 }, { "2027-01-14T08:00:00.001Z", 0 }, { "2027-01-15T08:00:00Z", 0 },
                { "2027-01-16T08:00:00Z", 0 }, { "3000-01-01T00:00:00Z", 0 },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                char text[600];
                snprintf(text, sizeof text, PAGE_JSON(FILE_JSON("alpha-1-py3-none-any.whl", TIME("%s"))), rows[i].time);
                struct document document = made(&rules, DOCUMENT_SIMPLE_JSON, text);
                CHECK(document.counts.offered == rows[i].offered &&
                        (rows[i].offered || document.problem == PACKAGE_TOO_NEW));
                document_done(&document);
        }
        rules.min_age_ms = 0;
        struct document document = made(&rules, DOCUMENT_SIMPLE_JSON,
                PAGE_JSON(FILE_JSON("alpha-1-py3-none-any.whl", TIME("2027-01-15T08:00:01Z"))));
        CHECK(document.problem == PACKAGE_TOO_NEW);
        document_done(&document);
}

static void addresses_are_http(void)
{
        static const struct { const char *reference, *url; } rows[] = {
                { "a.whl", "https://index.example/simple/alpha/a.whl" },
                { "/a.whl#sha256=1", "https://index.example/a.whl" },
                { "//other.example/a.whl?x=1#y", "https://other.example/a.whl?x=1" },
                { "http://other.example:81/a.whl", "http://other.example:81/a.whl" },
                { "file:///etc/passwd", NULL }, { "ftp://other.example/a.whl", NULL },
                { "https://user:word@other.example/", NULL }, { "javascript:x", NULL }, { "data:,x", NULL },
        };
        struct arena arena = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                const char *url = document_resolve(&arena, "https://index.example/simple/alpha/", rows[i].reference);
                CHECK(rows[i].url ? url && strcmp(url, rows[i].url) == 0
                                  : !url || strncmp(url, "https://index.example/", 22) == 0);
        }
        arena_done(&arena);
}

static void an_html_page_is_filtered(void)
{
        struct document_rules rules = rules_of(PACKAGE_PYTHON, "alpha");
        static const char page[] =
                "<!DOCTYPE html><html><head><base href='/pool/'><!-- <a href=\"alpha-9-py3-none-any.whl#sha256=" SHA
                "\"> --></head>"
                "<A class=x HREF = \"alpha-1-py3-none-any.whl?a=1&amp;b=2#sha256=" SHA
                "&amp;x=1\" data-requires-python=\"&gt;=3, &#60;&#x34;\" data-core-metadata=sha256=" SHA ">alpha</a>\n"
                "<a href=alpha-2-py3-none-any.whl#sha256=" SHA
                " data-yanked>2</a><a data-yanked=\"\" href='alpha-3-py3-none-any.whl#sha256=" SHA "'/>"
                "<a href=\"alpha-4-py3-none-any.whl#md5=1\">4</a><a>5</a><abbr href=\"alpha-5-py3-none-any.whl#sha256=" SHA
                "\">"
                "<a href=\"al%70ha-6-py3-none-any.whl#sha256=" SHA
                "\" href=\"evil\">6</a><a href=\"a%2falpha-7-py3-none-any.whl#sha256=" SHA "\">7</a>";
        struct document document = made(&rules, DOCUMENT_SIMPLE_HTML, page);
        CHECK(document.problem == PACKAGE_NO_UPLOAD_TIME && !document.body);
        document_done(&document);
        rules.require_upload_time = false;
        document = made(&rules, DOCUMENT_SIMPLE_HTML, page);
        CHECK(document.problem == PACKAGE_FINE && document.files_n == 2 && document.counts.hidden_yanked == 2 &&
              document.counts.hidden_without_hash == 1 && document.counts.hidden_by_kind == 1);
        if (document.files_n == 2) {
                CHECK(strcmp(document.files[0].url, "https://index.example/pool/alpha-1-py3-none-any.whl?a=1&b=2") ==
                        0);
                CHECK(strcmp(document.files[0].file.requires_python, ">=3, <4") == 0 && document.files[0].has_metadata);
                CHECK(strcmp(document.files[1].file.filename, "alpha-6-py3-none-any.whl") == 0);
        }
        document_done(&document);
}

static void an_html_page_that_ends_early_is_refused(void)
{
        struct document_rules rules = rules_of(PACKAGE_PYTHON, "alpha");
        static const char *const pages[] = { "<", "<a", "<a href", "<a href=\"x", "<a href=\"x\"", "<!-- x",
                "<!DOCTYPE", "text <a href=x" };
        rules.require_upload_time = false;
        for (size_t i = 0; i < ARRAY_LEN(pages); i++) {
                struct document document = made(&rules, DOCUMENT_SIMPLE_HTML, pages[i]);
                CHECK(document.problem == PACKAGE_UNTRUSTED);
                document_done(&document);
        }
        struct document document = made(&rules, DOCUMENT_SIMPLE_HTML, "");
        CHECK(document.problem == PACKAGE_NOT_FOUND);
        document_done(&document);
}

#define VERSION_JSON(number, more)                                                                                     \
        "\"" number "\":{\"name\":\"left\",\"version\":\"" number                                                      \
        "\",\"dist\":{\"tarball\":\"https://r.example/left.tgz\",\"integrity\":\"sha1-x " INTEGRITY "\"}" more "}"

static void a_document_of_npm_is_filtered(void)
{
        struct document_rules rules = rules_of(PACKAGE_NODE, "left");
        struct document document = made(&rules, DOCUMENT_NPM,
                "{\"name\":\"left\",\"dist-tags\":{\"latest\":\"1.2.0\",\"next\":\"2.0.0\",\"old\":\"1.0.0\",\"odd\":7},\"versions\":{" VERSION_JSON(
                        "1.0.0", ",\"scripts\":{\"install\":\"x\"},\"readme\":\"x\"") "," VERSION_JSON("1.1.0",
                        ",\"bin\":{\"a\":\"b\"}") "," VERSION_JSON("1.2.0", "") "," VERSION_JSON("2.0.0",
                        "") "," VERSION_JSON("1.1.1-rc.1", "") "," VERSION_JSON("01.x",
                        "") ","
                            "\"3.0.0\":{\"name\":\"right\",\"version\":\"3.0.0\",\"dist\":{\"tarball\":\"https://r.example/x\",\"integrity\":\"" INTEGRITY
                            "\"}},"
                            "\"4.0.0\":{\"name\":\"left\",\"version\":\"4.0.0\",\"dist\":{\"tarball\":\"https://r.example/x\",\"shasum\":\"x\"}}},"
                            "\"time\":{\"1.0.0\":\"" OLD "\",\"1.1.0\":\"" OLD "\",\"1.2.0\":\"" YOUNG
                            "\",\"2.0.0\":\"" OLD "\",\"1.1.1-rc.1\":\"" OLD "\"}}");
        CHECK(document.problem == PACKAGE_FINE && document.files_n == 4 && document.counts.hidden_by_age == 1 &&
              document.counts.hidden_by_kind == 2 && document.counts.hidden_without_hash == 1);
        json_t *json = json_loadb(document.body, document.body_len, 0, NULL),
               *tags = json_object_get(json, "dist-tags");
        CHECK(json_object_size(tags) == 3 && strcmp(json_string_value(json_object_get(tags, "latest")), "1.1.0") == 0);
        json_t *first = json_object_get(json_object_get(json, "versions"), "1.0.0");
        CHECK(json_is_true(json_object_get(first, "hasInstallScript")) && !json_object_get(first, "readme"));
        CHECK(strcmp(json_string_value(json_object_get(json_object_get(first, "dist"), "integrity")), INTEGRITY) == 0);
        CHECK(json_object_size(json_object_get(first, "dist")) == 2);
        json_decref(json);
        document_done(&document);
}

static void wrong_documents_have_a_problem(void)
{
        struct document_rules python = rules_of(PACKAGE_PYTHON, "alpha"), node = rules_of(PACKAGE_NODE, "left");
        static const struct { const char *text; enum document_format format; enum package_problem problem;
        } rows[] = {
                { "", DOCUMENT_SIMPLE_JSON, PACKAGE_UNTRUSTED },
                { "[]", DOCUMENT_SIMPLE_JSON, PACKAGE_UNTRUSTED },
                { "{\"meta\":{\"api-version\":\"1.0\"},\"files\":{}}", DOCUMENT_SIMPLE_JSON, PACKAGE_UNTRUSTED },
                { "{\"meta\":{\"api-version\":\"2.0\"},\"files\":[]}", DOCUMENT_SIMPLE_JSON, PACKAGE_UNTRUSTED },
                { "{\"meta\":{\"api-version\":\"1.0\"},\"name\":\"beta\",\"files\":[]}", DOCUMENT_SIMPLE_JSON,
                        PACKAGE_UNTRUSTED },
                { PAGE_JSON(""), DOCUMENT_SIMPLE_JSON, PACKAGE_NOT_FOUND },
                { PAGE_JSON("1"), DOCUMENT_SIMPLE_JSON, PACKAGE_NO_WHEEL },
                { "{}", DOCUMENT_NPM, PACKAGE_UNTRUSTED },
                { "{\"name\":\"right\",\"versions\":{}}", DOCUMENT_NPM, PACKAGE_UNTRUSTED },
                { "{\"name\":\"left\"}", DOCUMENT_NPM, PACKAGE_NOT_FOUND },
                { "{\"name\":\"left\",\"versions\":{}}", DOCUMENT_NPM, PACKAGE_NOT_FOUND },
                { "{\"name\":\"left\",\"versions\":{\"1.0.0\":null}}", DOCUMENT_NPM, PACKAGE_NOT_FOUND },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct document document =
                        made(rows[i].format == DOCUMENT_NPM ? &node : &python, rows[i].format, rows[i].text);
                CHECK(document.problem == rows[i].problem && document.text[0] && !document.files_n);
                document_done(&document);
        }
}

static void a_document_has_ceilings(void)
{
        struct document_rules rules = rules_of(PACKAGE_PYTHON, "alpha");
        struct buf text;
        buf_init(&text, 64 * MIB);
        buf_printf(&text, "{\"meta\":{\"api-version\":\"1.0\"},\"files\":[");
        for (unsigned i = 0; i <= PACKAGE_DOCUMENT_FILES_MAX; i++)
                buf_printf(&text,
                        "%s{\"filename\":\"alpha-%u-py3-none-any.whl\",\"url\":\"x\",\"hashes\":{\"sha256\":\"" SHA
                        "\"}," TIME(OLD) "}",
                        i ? "," : "", i);
        buf_printf(&text, "]}");
        struct document document = made(&rules, DOCUMENT_SIMPLE_JSON, text.bytes);
        CHECK(document.problem == PACKAGE_TOO_LARGE && document.files_n == 0 && !document.body);
        document_done(&document);
        text.len = 0;
        buf_printf(&text, "[");
        for (unsigned i = 0; i < DOCUMENT_VALUES_MAX; i++)
                buf_add(&text, "1,", 2);
        buf_printf(&text, "1]");
        document = made(&rules, DOCUMENT_SIMPLE_JSON, text.bytes);
        CHECK(document.problem == PACKAGE_TOO_LARGE);
        document_done(&document);
        buf_done(&text);
}

static void problems_have_the_names_of_error_codes(void)
{
        CHECK(strcmp(package_problem_name(PACKAGE_FINE), "") == 0);
        CHECK(strcmp(package_problem_name(PACKAGE_NOT_FOUND), "package_not_found") == 0);
        CHECK(strcmp(package_problem_name(PACKAGE_HASH_MISMATCH), "hash_mismatch") == 0);
}

int main(void)
{
        RUN(names_of_python_are_folded);
        RUN(names_of_node_are_kept);
        RUN(lists_have_names_and_prefixes);
        RUN(names_of_wheels_have_their_parts);
        RUN(names_of_archives_end_in_a_version);
        RUN(versions_of_npm_have_an_order);
        RUN(times_are_utc);
        RUN(hashes_have_all_their_digits);
        RUN(a_json_page_is_filtered);
        RUN(ages_end_exactly_at_the_minimum);
        RUN(addresses_are_http);
        RUN(an_html_page_is_filtered);
        RUN(an_html_page_that_ends_early_is_refused);
        RUN(a_document_of_npm_is_filtered);
        RUN(wrong_documents_have_a_problem);
        RUN(a_document_has_ceilings);
        RUN(problems_have_the_names_of_error_codes);
        return tap_done();
}
