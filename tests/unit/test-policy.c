/* Policies from files, what is found in programs, and programs that want to hurt whoever looks at them. */
#include "policy/policy.h"
#include "policy/rules.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tap.h"

static char folder[] = "/tmp/test-policy-XXXXXX";

static const char *write_policy(const char *name, const char *text)
{
        static char path[200];
        snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
        auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
        return path;
}

/* The error of loading one file of that text, or "" if it loads. */
static const char *load_error(const char *text)
{
        static struct csn_error err;
        const char *folders[] = { folder };
        struct policies *policies = NULL;
        const char *path = write_policy("own", text);
        err = (struct csn_error){ 0 };
        if (policies_load(folders, 1, &policies, &err) == 0)
                err.text[0] = 0;
        else
                CHECK(err.code == CSN_E_CONFIG);
        policies_free(policies);
        unlink(path);
        return err.text;
}

#define RULE "policy: own\nrules:\n  - id: a\n    severity: HIGH\n    message: x\n"

static void a_policy_that_is_wrong_is_refused_with_its_line(void)
{
        static const struct { const char *text, *line, *why; } cases[] = {
                { "policy: other\n", ":1:", "has to be called own" },
                { "policy: own\nblok_at: LOW\n", ":2:", "has no \"blok_at\"" },
                { "policy: own\nblock_at: SOME\n", ":2:", "LOW, MEDIUM, HIGH or CRITICAL" },
                { "policy: own\nblock_score: many\n", ":2:", "number" },
                { "policy: own\nextends: nobody\n", ":2:", "no policy nobody" },
                { "policy: own\nextends: own\n", ":2:", "extends this policy" },
                { RULE, ":3:", "something that it looks for" },
                { RULE "    import: os\n", ":6:", "list" },
                { RULE "    import: ['o*s']\n", ":6:", "no name" },
                { RULE "    string: ['(']\n", ":6:", "no regular expression" },
                { RULE "    frobnicate: [x]\n", ":6:", "has no \"frobnicate\"" },
                { RULE "    large_range: x\n", ":6:", "number" },
                { RULE "    endless_loop: some\n", ":6:", "say any" },
                { RULE "    import: [os]\n  - id: a\n    severity: LOW\n", ":7:", "already, in line 3" },
                { "policy: own\nrules:\n  - severity: LOW\n", ":3:", "needs an id" },
                { "policy: own\nrules:\n  - id: a\n    message: x\n    import: [os]\n", ":3:", "needs a severity" },
        };
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
                const char *error = load_error(cases[i].text);
                CHECK(strstr(error, "/own.yaml") && strstr(error, cases[i].line) && strstr(error, cases[i].why));
        }
        CHECK(load_error(RULE "    import: [os]\n")[0] == 0);
}

/* ---- programs ---- */

static struct policies *shipped;

static struct check_result check_with(const char *policy, const char *code, size_t len, struct arena *arena)
{
        struct check_request request = { 0 };
        struct check_result result;
        SET(&request, check_request, language, arena_text(arena, "python"));
        SET(&request, check_request, policy, arena_text(arena, "%s", policy));
        request.code = (struct bytes){ arena_copy(arena, code, len), len };
        MARK(&request, check_request, code);
        policy_check(shipped, &request, arena, &result);
        return result;
}

static bool is_denied(const char *policy, const char *code)
{
        struct arena arena = { 0 };
        struct check_result result = check_with(policy, code, strlen(code), &arena);
        bool denied = result.verdict == verdict_DENY && !HAS(&result, check_result, error);
        arena_done(&arena);
        return denied;
}

/* Each text is the word "system" to Python; on os a word that is not known is denied, so "getcwd" is what shows it. */
static void constant_texts_are_put_together(void)
{
        static const char *const words[] = {
                "'get' + 'cwd'", "'get' 'cwd'", "''.join(['get', 'cwd'])", "'dwcteg'[::-1]", "f\"{'get'}cwd\"", "b'getcwd'.decode()",
                "'\\x67et\\143wd'", "'%s%s' % ('get', 'cwd')", "'{}{}'.format('get', 'cwd')", "'GETCWD'.lower()", "'get-cwd'.replace('-', '')",
                "'get|cwd'.split('|')[0] + 'cwd'", "chr(103) + 'etcwd'", "''.join(map(chr, [103, 101, 116, 99, 119, 100]))",
                "bytes([103, 101, 116, 99, 119, 100]).decode()", "''.join(chr(c + 1) for c in [102, 100, 115, 98, 118, 99])",
                "'xgetcwdx'[1:-1]", "' getcwd '.strip()", "str('getcwd')", "''.join(reversed('dwcteg'))", "r'getcwd'", "'''getcwd'''",
                "'\\N{LATIN SMALL LETTER G}etcwd'", "bytes.fromhex('676574637764').decode()", "('getcwd', 'x')[0]", "{'a': 'getcwd'}['a']",
        };
        for (size_t i = 0; i < ARRAY_LEN(words); i++) {
                char code[400];
                snprintf(code, sizeof code, "import os\ngetattr(os, %s)\n", words[i]);
                bool good = !is_denied("linx", code);
                if (!good)
                        printf("# %s\n", words[i]);
                CHECK(good);
        }
        CHECK(is_denied("linx", "import os\ngetattr(os, 'get' + x)\n"));
        CHECK(is_denied("linx", "import os\ngetattr(os, 'sys' + 'tem')\n"));
}

static void findings_have_their_place_in_characters(void)
{
        struct arena arena = { 0 };
        static const char code[] = "x = 1\ny = 'äö'; eval('1')\n";
        struct check_result result = check_with("linx", code, strlen(code), &arena);
        CHECK(result.findings_n == 1);
        CHECK(result.findings[0].line == 2 && result.findings[0].column == 11 && result.findings[0].end_column == 15);
        CHECK(strcmp(result.findings[0].text, "y = 'äö'; eval('1')") == 0);
        CHECK(strcmp(result.reason, "Security validation failed: Dangerous function call: eval") == 0);
        arena_done(&arena);
}

static void unknown_policies_are_named_with_the_known_ones(void)
{
        struct arena arena = { 0 };
        struct check_result result = check_with("linux", "", 0, &arena);
        CHECK(result.verdict == verdict_DENY && HAS(&result, check_result, error));
        CHECK(strstr(result.reason, "linx-strict") && !strstr(result.reason, "_common"));
        arena_done(&arena);
}

/* ---- programs that want to hurt ---- */

static bool is_answered(const char *piece, size_t times, const char *end)
{
        struct arena arena = { 0 };
        struct buf buf;
        buf_init(&buf, MIB);
        while (times-- && buf_add(&buf, piece, strlen(piece)))
                ;
        buf_add(&buf, end, strlen(end));
        struct check_result result = check_with("kodeagent", buf.bytes, buf.len, &arena);
        bool answered = result.reason != NULL;
        buf_done(&buf);
        arena_done(&arena);
        return answered;
}

static void deep_and_long_programs_are_answered(void)
{
        CHECK(is_answered("(", 20000, ")"));
        CHECK(is_answered("x = [", 20000, ""));
        CHECK(is_answered("a.", 100000, "b\n"));
        CHECK(is_answered("'a'+", 50000, "'b'\n"));
        CHECK(is_answered("lambda:", 50000, "1\n"));
        CHECK(is_answered("f(getattr(", 90, "a, b))\n"));
        CHECK(is_answered("not ", 100000, "1\n"));
        CHECK(is_answered("a = a\n", 50000, ""));
        CHECK(is_answered("if a: a = 1\n", 30000, ""));
        CHECK(is_answered("\\\n", 1000, "x\n"));
        CHECK(is_answered("# \v", 10000, ""));
}

/* ---- the worker ---- */

struct asked {
        struct check check;
        bool done;
};

static void on_done(struct check *check)
{
        ((struct asked *)check->owner)->done = true;
}

static void ask(struct loop *loop, struct checker *checker, struct asked *asked, const char *code, size_t len)
{
        struct csn_error err;
        *asked = (struct asked){ .check = { .done = on_done, .owner = asked } };
        struct check_request *request = &asked->check.request;
        SET(request, check_request, language, arena_text(&asked->check.arena, "python"));
        SET(request, check_request, policy, arena_text(&asked->check.arena, "mcp-light"));
        request->code = (struct bytes){ arena_copy(&asked->check.arena, code, len), len };
        MARK(request, check_request, code);
        checker_start(checker, &asked->check);
        while (!asked->done && loop_step(loop, -1, &err) == 0)
                ;
}

static void a_worker_serves_many_and_is_replaced_when_it_is_worn(void)
{
        struct loop *loop = NULL;
        struct checker *checker = NULL;
        struct csn_error err;
        struct asked asked;
        char path[300];
        snprintf(path, sizeof path, "%s/caisson-policy", BUILD_ROOT);
        const struct checker_paths paths = { path, { POLICIES } };
        char *brackets = mem_alloc(2 * MIB);
        memset(brackets, '[', 2 * MIB);
        CHECK(loop_new(&loop, &err) == 0);
        checker_open(loop, &paths, &checker);
        for (int round = 0; round < 3; round++) {
                ask(loop, checker, &asked, "import json", 11);
                CHECK(asked.check.result.verdict == verdict_ALLOW);
                check_done(&asked.check);
                ask(loop, checker, &asked, "eval(1)", 7);
                CHECK(asked.check.result.verdict == verdict_DENY && asked.check.result.findings_n == 1);
                check_done(&asked.check);
                ask(loop, checker, &asked, brackets, round == 2 ? 2 * MIB : 100000);
                CHECK(asked.check.result.verdict == verdict_DENY && HAS(&asked.check.result, check_result, error));
                check_done(&asked.check);
                ask(loop, checker, &asked, "x = b'\xff\xfe'", 10);
                CHECK(strcmp(asked.check.result.error.type ? asked.check.result.error.type : "", "SyntaxError") == 0);
                check_done(&asked.check);
        }
        checker_close(checker);
        loop_free(loop);
        free(brackets);
}

static void a_worker_that_is_not_there_is_an_answer(void)
{
        struct loop *loop = NULL;
        struct checker *checker = NULL;
        struct csn_error err;
        struct asked asked;
        const struct checker_paths paths = { "/nonexistent/caisson-policy", { POLICIES } };
        CHECK(loop_new(&loop, &err) == 0);
        checker_open(loop, &paths, &checker);
        ask(loop, checker, &asked, "x = 1", 5);
        CHECK(asked.check.result.verdict == verdict_DENY && strstr(asked.check.result.reason, "/nonexistent/caisson-policy"));
        check_done(&asked.check);
        checker_close(checker);
        loop_free(loop);
}

int main(void)
{
        const char *folders[] = { POLICIES };
        struct csn_error err = { 0 };
        if (!mkdtemp(folder) || policies_load(folders, 1, &shipped, &err) < 0) {
                printf("# %s\n", err.text);
                return 1;
        }
        RUN(a_policy_that_is_wrong_is_refused_with_its_line);
        RUN(constant_texts_are_put_together);
        RUN(findings_have_their_place_in_characters);
        RUN(unknown_policies_are_named_with_the_known_ones);
        RUN(deep_and_long_programs_are_answered);
        RUN(a_worker_serves_many_and_is_replaced_when_it_is_worn);
        RUN(a_worker_that_is_not_there_is_an_answer);
        policies_free(shipped);
        rmdir(folder);
        return tap_done();
}
