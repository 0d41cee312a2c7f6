/*
 * policy: files that are wrong are refused with their place, points and thresholds, and a worker that hostile text
 * cannot hurt.
 */
#include "policy/analyses.h"
#include "policy/rules.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "tap.h"

/* ---- folders and files ---- */

static const char *folder(void)
{
        static char path[] = "/tmp/test-policy-XXXXXX";
        static bool made;
        made = made || mkdtemp(path);
        return path;
}

static void remove_folder(void)
{
        auto_fd tmp = open("/tmp", O_DIRECTORY | O_CLOEXEC);
        io_remove_tree(tmp, folder() + strlen("/tmp/"));
}

static void put(const char *name, const char *text)
{
        char path[200];
        snprintf(path, sizeof path, "%s/%s.yaml", folder(), name);
        unlink(path);
        if (!text)
                return;
        auto_fd fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0);
}

/* What was built with this test. */
static const char *built(const char *what)
{
        static char paths[2][5000];
        static int turn;
        char *path = paths[turn++ % 2], program[4000];
        ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
        program[len > 0 ? len : 0] = 0;
        char *slash = strrchr(program, '/');
        if (slash)
                *slash = 0;
        snprintf(path, sizeof paths[0], "%s/../../%s", program, what);
        return path;
}

static int load_own(struct policies **ret, struct csn_error *err)
{
        *err = (struct csn_error){ 0 };
        return policies_load((const char *const[]){ folder() }, 1, ret, err);
}

static struct check_result look_for_doubt(const struct policies *policies, const char *policy, const char *code,
        struct arena *arena, int block_at, bool *ret_doubtful)
{
        struct check_request request = { 0 };
        struct check_result result;
        SET(&request, check_request, policy, arena_text(arena, "%s", policy));
        SET(&request, check_request, language, arena_text(arena, "python"));
        SET(&request, check_request, code, ((struct bytes){ arena_copy(arena, code, strlen(code)), strlen(code) }));
        if (block_at >= 0)
                SET(&request, check_request, block_at, block_at);
        policy_defaults(&request);
        policy_check(policies, &request, arena, &result, ret_doubtful);
        return result;
}

static struct check_result look(const struct policies *policies, const char *policy, const char *code,
        struct arena *arena, int block_at)
{
        return look_for_doubt(policies, policy, code, arena, block_at, NULL);
}

/* ---- files that are wrong ---- */

#define RULE(more) "policy: own\nrules:\n  - id: a\n    severity: HIGH\n    message: m\n    " more "\n"

static void a_wrong_file_is_refused_with_its_line(void)
{
        static const struct { const char *yaml, *line, *part;
        } rows[] = {
                { "policy: own\ncolour: red\n", ":2:", "a policy has no \"colour\"" },
                { "policy: other\n", ":1:", "has to be called own" },
                { RULE("import: [os]\n    colour: red"), ":7:", "a rule has no \"colour\"" },
                { RULE("string: [\"(\"]"), ":6:", "no regular expression" },
                { RULE("string:\n      - fine\n      - \"[\""), ":8:", "no regular expression" },
                { RULE("import: [\"o*s\"]"), ":6:", "is no name" },
                { RULE("import: [\"\"]"), ":6:", "is no name" },
                { RULE("import: [\"o s\"]"), ":6:", "is no name" },
                { RULE("import: os"), ":6:", "has to be a list" },
                { RULE("import: [[os]]"), ":6:", "a list of texts" },
                { RULE("endless_loop: all"), ":6:", "say any" },
                { RULE("large_range: many"), ":6:", "has to be a number" },
                { RULE("large_range: 99999999999999999999999"), ":6:", "has to be a number" },
                { RULE("import: [os]\n    score: -1"), ":7:", "has to be a number" },
                { RULE("import: [os]\n    always: perhaps"), ":7:", "true or false" },
                { RULE("import: [os]\n    languages: []"), ":7:", "languages has to be a list" },
                { RULE("import: [os]\n    languages: [klingon]"), ":7:", "languages is a list of python" },
                { "languages: [klingon]\n", ":1:", "languages is a list of python" },
                { "sentences:\n  - { when: nobody, text: a }\n", ":2:", "\"nobody\" is no rule" },
                { RULE("score: 1"), ":3:", "needs something that it looks for" },
                { "rules:\n  - severity: HIGH\n", ":2:", "a rule needs an id" },
                { "rules:\n  - [a, b]\n", ":2:", "a rule needs an id" },
                { "rules:\n  - a\n", ":2:", "a rule needs an id" },
                { "rules: a\n", ":1:", "rules has to be a list" },
                { "rules:\n  - { id: a, message: m, import: [os] }\n", ":2:", "needs a severity" },
                { "rules:\n  - { id: a, severity: HIGH, import: [os] }\n", ":2:", "needs a message" },
                { "rules:\n  - { id: a, severity: HIGHER, message: m, import: [os] }\n", ":2:", "LOW, MEDIUM, HIGH" },
                { RULE("import: [os]\n  - { id: a, severity: LOW, message: m, import: [os] }"),
                        ":7:", "already, in line 3" },
                { "block_at: OFF\n", ":1:", "LOW, MEDIUM, HIGH, CRITICAL or SAFE" },
                { "block_score: x\n", ":1:", "has to be a number" },
                { "description: [a]\n", ":1:", "has to be one text" },
                { "sentences:\n  - { when: clean }\n", ":2:", "a sentence has when and text" },
                { "deny: os\n", ":1:", "has to be a list" },
                { "allow: os\n", ":1:", "has to be a list" },
                { "extends: nothing\n", ":1:", "there is no policy nothing" },
                { "extends: [a]\n", ":1:", "there is no policy" },
                { "policy: own\nextends: own\n", ":2:", "extends this policy in turn" },
                { "policy: own\npolicy: own\n", ":2:", "is there twice" },
                { "- a\n", ":1:", "one mapping" },
                { "policy: \"\n", ":2:", "" },
                { "", ":1:", "needs rules, extends, deny or allow" },
                { "description: x\n", ":1:", "needs rules, extends, deny or allow" },
                { "policy: own\nblock_at: LOW\nlanguages: [python]\n", ":1:", "needs rules, extends, deny or allow" },
                { "rules:\n", ":1:", "rules has to be a list" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct policies *policies = NULL;
                struct csn_error err;
                char place[300];
                put("own", rows[i].yaml);
                int rc = load_own(&policies, &err);
                snprintf(place, sizeof place, "%s/own.yaml%s", folder(), rows[i].line);
                bool good = rc == -CSN_E_CONFIG && err.code == CSN_E_CONFIG && strstr(err.text, place) &&
                        strstr(err.text, rows[i].part);
                if (!good)
                        printf("# row %zu: %d \"%s\" has no \"%s\" and \"%s\"\n", i, rc, err.text, place, rows[i].part);
                CHECK(good);
                if (rc == 0)
                        policies_free(policies);
        }
        put("own", NULL);
}

/* Wherever it stands in the file, it is for rules that name none themselves, and for nobody who extends the policy. */
static void languages_of_a_policy_are_those_of_its_rules(void)
{
        struct policies *policies = NULL;
        struct csn_error err;
        const struct analysis *analysis;
        struct buf yaml;
        buf_init(&yaml, 1000);
        buf_printf(&yaml,
                "policy: parent\nrules:\n  - { id: a, severity: HIGH, message: m, import: [os] }\nlanguages: [");
        for (size_t i = 0; (analysis = analysis_at(i)); i++)
                buf_printf(&yaml, "%s%s", i ? ", " : "", analysis->language);
        buf_printf(&yaml, "]\n");
        put("parent", yaml.bytes);
        buf_done(&yaml);
        put("own", "policy: own\nextends: parent\nrules:\n  - { id: b, severity: HIGH, message: m, import: [os] }\n");
        CHECK(load_own(&policies, &err) == 0);
        const struct policy *own;
        CHECK(policies_find(policies, "own", &own, &err) == 0 && own->rules_n == 2);
        CHECK(own->rules[0].languages && strcmp(own->rules[0].languages[0], analysis_at(0)->language) == 0 &&
                !own->rules[1].languages);
        policies_free(policies);
        put("parent", NULL);
        put("own", NULL);
}

/* Whoever raises a doubt pays for the interpreter. */
static void ordinary_programs_raise_no_doubt(void)
{
        static const struct { const char *code; bool doubtful;
        } rows[] = {
                { "from __future__ import annotations\nimport os\n", false },
                { "r'a'\n# b\nfrom __future__ import (division, print_function as p)\n", false },
                { "import os\nfrom __future__ import annotations\n", true },
                { "async def f(a, b=1, *c, d, **e):\n    async with a as b:\n        return [await x async for x in y]\n",
                        false },
                { "async def f():\n    def g():\n        await x\n", true },
                { "async def f():\n    lambda: await x\n", true },
                { "n = 0\ndef f():\n    global n\n    n += 1\n", false },
                { "def f():\n    n += 1\n    global n\n", true },
                { "def f():\n    global n\n    n: int = 1\n", true },
                { "def f(self, x):\n    yield from x\n    y = yield\n", false },
                { "if (m := f(a=1, b=2)): pass\n", false },
                { "[y for x in z if (y := x)]\n", true },
                { "a, *b = c\n[*a, b], (d, *e) = f(*a, *b, **c)\n", false },
                { "*a, *b = c\n", true },
                { "f'{a[\"b\"]} {x:{y}}' f\"\"\"{a['b']}\"\"\"\n", false },
                { "f'{a['b']}'\n", true },
                { "f'{chr(10)!r:{x:{y}}}'\n", true },
                { "x: dict[str, int] = {}\ndef f(x: list[int]) -> set[str]: pass\n", false },
                { "class A(B, metaclass=C):\n    pass\n", false },
                { "try:\n    pass\nexcept A:\n    pass\nexcept:\n    pass\n", false },
                { "x = '\\n\\x41'\n", false },
                /* Types of Python 3.12. */
                { "type Vec = list[float]\n", true },
                { "type X[T] = list[T]\n", true },
                { "type X[T: int, *Ts, **P] = int\n", true },
                { "class A[T: int](B[T]): pass\n", true },
                { "def f[T](a: T) -> T: pass\n", true },
        };
        struct policies *policies = NULL;
        struct csn_error err;
        put("own", "policy: own\nrules: []\n");
        CHECK(load_own(&policies, &err) == 0);
        for (size_t i = 0; policies && i < ARRAY_LEN(rows); i++) {
                struct arena arena = { 0 };
                bool doubtful;
                struct check_result result = look_for_doubt(policies, "own", rows[i].code, &arena, -1, &doubtful);
                bool good = result.verdict == verdict_ALLOW && doubtful == rows[i].doubtful;
                if (!good)
                        printf("# row %zu: %s\n", i, result.reason);
                CHECK(good);
                arena_done(&arena);
        }
        policies_free(policies);
        put("own", NULL);
}

static void a_circle_of_policies_is_refused(void)
{
        struct policies *policies;
        struct csn_error err;
        put("a", "policy: a\nextends: b\n");
        put("b", "policy: b\n\nextends: c\n");
        put("c", "policy: c\n\n\nextends: a\n");
        CHECK(load_own(&policies, &err) == -CSN_E_CONFIG);
        CHECK(strstr(err.text, "c.yaml:4:") && strstr(err.text, "in turn"));
        put("b", NULL);
        put("c", NULL);
        put("a", NULL);
}

static void a_file_that_cannot_be_read_is_named(void)
{
        struct policies *policies;
        struct csn_error err;
        char path[200];
        snprintf(path, sizeof path, "%s/own.yaml", folder());
        CHECK(mkdir(path, 0700) == 0);
        CHECK(load_own(&policies, &err) == -CSN_E_CONFIG && strstr(err.text, "own.yaml"));
        rmdir(path);
        CHECK(mkfifo(path, 0600) == 0);   /* and nobody waits for its other end */
        CHECK(load_own(&policies, &err) == -CSN_E_CONFIG && strstr(err.text, "own.yaml is no regular file"));
        unlink(path);
        char *large = malloc(300 * KIB);
        memset(large, '#', 300 * KIB - 1);
        large[300 * KIB - 1] = 0;
        put("own", large);
        CHECK(load_own(&policies, &err) == -CSN_E_CONFIG && strstr(err.text, "own.yaml"));
        put("own", NULL);
        free(large);
}

static void a_folder_that_is_not_there_is_empty(void)
{
        struct policies *policies;
        const struct policy *policy;
        struct csn_error err = { 0 };
        CHECK(policies_load((const char *const[]){ "/nowhere", NULL, "" }, 3, &policies, &err) == 0);
        CHECK(policies_find(policies, "linx", &policy, &err) == -CSN_E_INPUT && strcmp(err.field, "/policy") == 0);
        policies_free(policies);
}

/* ---- policies that extend others ---- */

static void an_extension_changes_nothing_in_what_it_extends(void)
{
        struct policies *policies;
        struct csn_error err;
        struct arena arena = { 0 };
        put("base",
                "policy: base\nblock_at: HIGH\nrules:\n"
                "  - { id: a, severity: HIGH, score: 2, message: \"{name}\", reference: [\"os.*\"], except: [os.path] }\n"
                "  - { id: b, severity: LOW, score: 1, message: m, import: [json] }\n");
        put("more",
                "policy: more\nextends: base\nallow: [json]\ndeny: [re]\nrules:\n  - { id: a, except: [os.getcwd] }\n");
        put("none", "policy: none\nextends: base\nrules:\n  - { id: a, severity: OFF }\n");
        CHECK(load_own(&policies, &err) == 0);
        static const char code[] = "import os, json, re\nos.getcwd()\n";
        struct check_result result = look(policies, "base", code, &arena, -1);
        CHECK(result.verdict == verdict_DENY && result.findings_n == 2 && result.score == 3);
        result = look(policies, "more", code, &arena, -1);
        CHECK(result.verdict == verdict_DENY && result.findings_n == 1 &&
                strcmp(result.findings[0].rule, "denied") == 0);
        result = look(policies, "none", code, &arena, -1);
        CHECK(result.verdict == verdict_ALLOW && result.findings_n == 1 && result.score == 1);
        policies_free(policies);
        arena_done(&arena);
        put("base", NULL);
        put("more", NULL);
        put("none", NULL);
}

static void the_first_folder_counts(void)
{
        struct policies *policies;
        struct csn_error err = { 0 };
        struct arena arena = { 0 };
        put("mcp-light", "policy: mcp-light\nextends: codemie\ndeny: [math]\n");
        CHECK(policies_load((const char *const[]){ folder(), built("src/policy/policies") }, 2, &policies, &err) == 0);
        CHECK(look(policies, "mcp-light", "import math\n", &arena, -1).verdict == verdict_DENY);
        CHECK(look(policies, "codemie", "import math\n", &arena, -1).verdict == verdict_ALLOW);
        policies_free(policies);
        arena_done(&arena);
        put("mcp-light", NULL);
}

static void points_and_thresholds_decide(void)
{
        struct policies *policies;
        struct csn_error err;
        struct arena arena = { 0 };
        put("own", "policy: own\nblock_at: HIGH\nblock_score: 6\nrules:\n"
                   "  - { id: low, severity: LOW, score: 2, message: \"{last}\", reference: [os.getcwd] }\n"
                   "  - { id: high, severity: HIGH, score: 1, message: \"{name}\", reference: [os.system] }\n"
                   "sentences:\n  - { when: refused, text: \"no: {messages}\" }\n  - { when: clean, text: fine }\n");
        CHECK(load_own(&policies, &err) == 0);
        struct check_result result = look(policies, "own", "import os\nos.getcwd()\nos.getcwd()\n", &arena, -1);
        CHECK(result.verdict == verdict_ALLOW && result.score == 4 && result.findings_n == 2);
        result = look(policies, "own", "import os\nos.getcwd()\nos.getcwd()\nos.getcwd()\n", &arena, -1);
        CHECK(result.verdict == verdict_DENY && result.score == 6);
        result = look(policies, "own", "import os\nos.system('ls')\n", &arena, -1);
        CHECK(result.verdict == verdict_DENY && strcmp(result.reason, "no: os.system") == 0);
        CHECK(look(policies, "own", "import os\nos.system('ls')\n", &arena, severity_CRITICAL).verdict ==
                verdict_ALLOW);
        CHECK(look(policies, "own", "import os\nos.getcwd()\n", &arena, severity_LOW).verdict == verdict_DENY);
        result = look(policies, "own", "x = 1\n", &arena, -1);
        CHECK(result.verdict == verdict_ALLOW && result.findings_n == 0 && strcmp(result.reason, "fine") == 0);
        result = look(policies, "nope", "x = 1\n", &arena, -1);
        CHECK(result.verdict == verdict_DENY && strcmp(result.error.field, "/policy") == 0 &&
                strstr(result.reason, "own"));
        policies_free(policies);
        arena_done(&arena);
        put("own", NULL);
}

/* ---- words ---- */

static void names_are_compared_in_normal_form(void)
{
        static const struct { const char *from, *to;
        } rows[] = {
                { "eval", "eval" }, { "\xef\xbd\x85\xef\xbd\x96\xef\xbd\x81\xef\xbd\x8c", "eval" }, /* full width */
                { "\xf0\x9d\x93\xae\xf0\x9d\x93\xbf\xf0\x9d\x93\xaa\xf0\x9d\x93\xb5", "eval" },     /* script */
                { "\xef\xac\x81le", "file" },                                                       /* a ligature */
                { "e\xcc\x81", "\xc3\xa9" }, { "\xff\xfe", "\xff\xfe" },                            /* no UTF-8 stays */
        };
        struct arena arena = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                size_t len;
                const char *got = unicode_normal(&arena, rows[i].from, strlen(rows[i].from), &len);
                CHECK(len == strlen(rows[i].to) && memcmp(got, rows[i].to, len) == 0);
        }
        size_t len;
        const char *got = unicode_latin1(&arena, "a\xe9\0z", 4, &len);
        CHECK(len == 5 && memcmp(got, "a\xc3\xa9\0z", 5) == 0);
        arena_done(&arena);
}

static void code_points_become_utf8(void)
{
        struct buf buf;
        buf_init(&buf, KIB);
        CHECK(unicode_put(&buf, 'a') && unicode_put(&buf, 0xe9) && unicode_put(&buf, 0x20ac) &&
                unicode_put(&buf, 0x1f600));
        CHECK(buf.len == 10 && memcmp(buf.bytes, "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 10) == 0);
        CHECK(!unicode_put(&buf, 0x110000) && buf.len == 10);
        buf_done(&buf);
}

/* ---- the worker ---- */

/* For what has to come; how long the worker may take is its own business. */
#define PATIENCE_MS 30000

static uint64_t now_ms(void)
{
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct loop *loop;
static struct checker *checker;

static void open_worker_with(int (*start)(int sock, pid_t *ret_pid, struct csn_error *err), uint64_t wall_ms)
{
        static char worker[5000], policies[5000];
        struct csn_error err;
        snprintf(worker, sizeof worker, "%s", built("caisson-policy"));
        snprintf(policies, sizeof policies, "%s", built("src/policy/policies"));
        const struct checker_paths paths = {
                .worker = worker, .folders = { policies }, .start = start, .wall_ms = wall_ms
        };
        CHECK(loop_new(&loop, &err) == 0);
        checker_open(loop, &paths, &checker);
}

static void open_worker(void)
{
        open_worker_with(NULL, 0);
}

static void close_worker(void)
{
        checker_close(checker);
        loop_free(loop);
}

/* The only child of this process. */
static pid_t worker_pid(void)
{
        char path[100], text[100] = "";
        snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
        return io_read_file(AT_FDCWD, path, text, sizeof text - 1) > 0 ? (pid_t)atoi(text) : 0;
}

static size_t answers;

static void count_answer(struct check *check)
{
        (void)check;
        answers++;
}

static void ask(struct check *check, const char *code, size_t len)
{
        *check = (struct check){ .done = count_answer };
        SET(&check->request, check_request, policy, arena_text(&check->arena, "kodeagent"));
        SET(&check->request, check_request, language, arena_text(&check->arena, "python"));
        SET(&check->request, check_request, code, ((struct bytes){ arena_copy(&check->arena, code, len), len }));
        policy_defaults(&check->request);
        checker_start(checker, check);
}

static void step_until(size_t wanted, uint64_t ms)
{
        struct csn_error err;
        for (uint64_t end = now_ms() + ms; answers < wanted && now_ms() < end;)
                loop_step(loop, 50, &err);
}

static bool is_answered(const char *code, bool allowed)
{
        struct check check;
        answers = 0;
        ask(&check, code, strlen(code));
        step_until(1, PATIENCE_MS);
        bool good = answers == 1 && (check.result.verdict == verdict_ALLOW) == allowed &&
                !HAS(&check.result, check_result, error);
        if (!good)
                printf("# %s: %zu answers, %s\n", code, answers, answers ? check.result.reason : "");
        checker_cancel(checker, &check);
        check_done(&check);
        return good;
}

static void a_program_is_checked(void)
{
        open_worker();
        CHECK(is_answered("x = 1\n", true) && is_answered("eval('1')\n", false));
        pid_t pid = worker_pid();
        CHECK(is_answered("y = 1\n", true) && worker_pid() == pid);
        close_worker();
}

static char order[8];

static void note_order(struct check *check)
{
        order[answers++] = check->key[0];
}

static void checks_of_one_key_let_others_pass(void)
{
        struct check checks[7];
        static const char *const keys[] = { "a", "a", "a", "a", "b", "b", "c" };
        open_worker();
        answers = 0;
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
                ask(&checks[i], "x = 1\n", 6);
                checks[i].done = note_order;
                checks[i].key = keys[i];
        }
        step_until(ARRAY_LEN(checks), PATIENCE_MS);
        CHECK(answers == ARRAY_LEN(checks) && strcmp(order, "ababaca") == 0);
        printf("# %s\n", order);
        for (size_t i = 0; i < ARRAY_LEN(checks); i++)
                check_done(&checks[i]);
        close_worker();
}

/* `n` times `unit`, between `before` and `after`. */
static char *repeated(const char *before, const char *unit, size_t n, const char *after, size_t *ret_len)
{
        size_t len = strlen(unit), at = strlen(before);
        struct buf text;
        buf_init(&text, at + n * len + strlen(after) + 1);
        buf_add(&text, before, at);
        for (size_t i = 0; i < n; i++)
                buf_add(&text, unit, len);
        buf_add(&text, after, strlen(after));
        *ret_len = text.len;
        return text.bytes;
}

static void survives(const char *what, char *text, size_t len)
{
        struct check check;
        uint64_t begin = now_ms();
        answers = 0;
        ask(&check, text, len);
        step_until(1, 2 * CHECK_WALL_MS);
        uint64_t took = now_ms() - begin;
        printf("# %-28s %7zu bytes %5llu ms: %s\n", what, len, (unsigned long long)took,
                answers ? check.result.reason : "no answer");
        CHECK(answers == 1);
        CHECK(answers == 1 && check.result.reason);
        checker_cancel(checker, &check);
        check_done(&check);
        free(text);
        CHECK(is_answered("x = 1\n", true));
}

static void hostile_texts_are_answered_and_the_next_as_well(void)
{
        static const struct { const char *what, *before, *unit; size_t n; const char *after; } rows[] = {
                { "round brackets", "", "(", 100000, "" },
                { "square brackets", "", "[", 100000, "" },
                { "curly brackets", "", "{", 100000, "" },
                { "closing brackets", "", ")", 100000, "" },
                { "brackets of all kinds", "", "([{", 33333, "" },
                { "brackets that close", "x = ", "()", 100000, "" },
                { "a long line", "x = '", "a", 900 * 1024, "'\n" },
                { "a long name", "", "a", 900 * 1024, "" },
                { "a chain of members", "", "a.b.", 262143, "c" },
                { "a chain of calls", "a", "()", 100000, "" },
                { "a chain of subscripts", "a", "[0]", 60000, "" },
                { "a sum", "x = 1", "+1", 100000, "\n" },
                { "a sum of texts", "x = ''", "+'a'", 50000, "\n" },
                { "not not not", "x = ", "not ", 50000, "1\n" },
                { "minus signs", "x = ", "-", 200000, "1\n" },
                { "lambdas", "x = ", "lambda:", 28000, "1\n" },
                { "conditions", "x = ", "1 if 1 else ", 80000, "1\n" },
                { "f-strings in f-strings", "", "f'{", 60000, "" },
                { "many texts", "x = ", "'a' ", 50000, "\n" },
                { "assignments in a row", "", "a=", 100000, "1\n" },
                { "aliases in a circle", "", "a=b\nb=a\n", 100000, "a()\n" },
                { "imports", "", "import os\n", 100000, "" },
                { "uses", "import os\n", "os.system\n", 100000, "" },
                { "functions", "", "def f():pass\n", 70000, "" },
                { "decorators", "", "@a\n", 60000, "def f():pass\n" },
                { "keywords alone", "", "def ", 250000, "" },
                { "lines without anything", "", "\n", 200000, "" },
                { "backslashes and line ends", "x = 1", "\\\n", 100000, "\n" },
                { "no UTF-8", "x = '", "\xff\xc3\x28", 60000, "'\n" },
                { "no UTF-8 as names", "", "\xff\xfe\xc3 ", 40000, "" },
                { "letters with marks", "a", "\xcc\x81", 100000, " = 1\n" },
                { "escapes", "x = '", "\\x41", 50000, "'\n" },
                { "commas", "x = ", "a,", 100000, "\n" },
                { "elif", "if a: pass\n", "elif a: pass\n", 75000, "" },
        };
        open_worker();
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                size_t len;
                char *text = repeated(rows[i].before, rows[i].unit, rows[i].n, rows[i].after, &len);
                survives(rows[i].what, text, len);
        }
        close_worker();
}

static char *balanced(const char *open, const char *middle, const char *close, size_t n, size_t *ret_len)
{
        size_t left, right;
        char *begin = repeated("", open, n, middle, &left), *end = repeated("", close, n, "\n", &right);
        begin = realloc(begin, left + right + 1);
        memcpy(begin + left, end, right + 1);
        free(end);
        *ret_len = left + right;
        return begin;
}

static void texts_that_are_deep_and_whole_are_answered(void)
{
        static const struct { const char *what, *open, *middle, *close; size_t n; } rows[] = {
                { "round brackets", "(", "1", ")", 100000 },
                { "square brackets", "[", "1", "]", 100000 },
                { "curly brackets", "{", "1", "}", 100000 },
                { "a subscript in a subscript", "a[", "1", "]", 100000 },
                { "a call in a call", "f(", "1", ")", 100000 },
                { "getattr of getattr", "getattr(", "os", ",'a')", 50000 },
                { "a dictionary in a dictionary", "{1:", "1", "}", 100000 },
                { "an f-string in an f-string", "f'{", "1", "}'", 1000 },
                { "a comprehension in another", "[x for x in ", "y", "]", 20000 },
        };
        open_worker();
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                size_t len;
                char *text = balanced(rows[i].open, rows[i].middle, rows[i].close, rows[i].n, &len);
                survives(rows[i].what, text, len);
        }
        /* Blocks in blocks: each a column further in. */
        size_t depth = 900, at = 0;
        char *text = malloc(depth * (depth + 10));
        for (size_t i = 0; i < depth; i++) {
                memset(text + at, ' ', i);
                at += i;
                for (const char *c = i + 1 < depth ? "if 1:\n" : "pass\n"; *c; c++)
                        text[at++] = *c;
        }
        survives("blocks in blocks", text, at);
        close_worker();
}

static void bytes_of_every_kind_are_answered(void)
{
        open_worker();
        survives("nothing", malloc(1), 0);
        survives("one NUL", calloc(1, 1), 1);
        survives("NULs", calloc(1, 900 * KIB), 900 * KIB);
        char *text = malloc(MIB + 1);
        uint32_t random = 1;
        for (size_t i = 0; i < MIB + 1; i++)
                text[i] = (char)((random = random * 1664525 + 1013904223) >> 24);
        struct check check;
        answers = 0;
        ask(&check, text, MIB + 1);
        step_until(1, PATIENCE_MS);
        CHECK(answers == 1 && check.result.verdict == verdict_DENY && strstr(check.result.reason, "longer than"));
        check_done(&check);
        survives("noise", text, MIB);
        close_worker();
        struct rusage usage;
        getrusage(RUSAGE_CHILDREN, &usage);
        printf("# largest worker: %ld MiB\n", usage.ru_maxrss / 1024);
}

static void two_hundred_at_once_are_all_answered(void)
{
        static struct check checks[200];
        size_t len;
        char *broken = repeated("", "(", 100000, "", &len);
        open_worker();
        answers = 0;
        /* After each of the first, which leaves a worn worker, another one has to take the next. */
        for (size_t i = 0; i < ARRAY_LEN(checks); i++)
                if (i % 50 == 0)
                        ask(&checks[i], broken, len);
                else
                        ask(&checks[i], i % 2 ? "x = 1\n" : "eval('1')\n", i % 2 ? 6 : 10);
        step_until(ARRAY_LEN(checks), PATIENCE_MS);
        CHECK(answers == ARRAY_LEN(checks));
        size_t wrong = 0;
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
                const struct check_result *result = &checks[i].result;
                bool error = HAS(result, check_result, error);
                wrong += i % 50 == 0 ? !error : error || (result->verdict == verdict_ALLOW) != (i % 2 == 1);
        }
        CHECK(wrong == 0);
        for (size_t i = 0; i < ARRAY_LEN(checks); i++) {
                checker_cancel(checker, &checks[i]);
                check_done(&checks[i]);
        }
        close_worker();
        free(broken);
}

static void a_worker_that_was_killed_is_replaced(void)
{
        open_worker();
        CHECK(is_answered("x = 1\n", true));
        pid_t pid = worker_pid();
        if (!pid) {
                close_worker();
                SKIP("the kernel does not tell a process's children");
        }
        /* Idle: nobody notices before the next request is sent. */
        kill(pid, SIGKILL);
        CHECK(is_answered("x = 1\n", true) && is_answered("eval('1')\n", false));
        CHECK(worker_pid() != pid);
        /*
         * At work, stopped first so that it cannot be faster than we are: it has answered before, so a new one is
         * asked.
         */
        struct check check;
        struct csn_error err;
        pid = worker_pid();
        kill(pid, SIGSTOP);
        answers = 0;
        ask(&check, "x = 1\n", 6);
        for (int i = 0; i < 5; i++)
                loop_step(loop, 10, &err);
        CHECK(answers == 0);
        kill(pid, SIGKILL);
        step_until(1, PATIENCE_MS);
        CHECK(answers == 1 && check.result.verdict == verdict_ALLOW);
        check_done(&check);
        close_worker();
}

static void a_worker_that_hangs_is_given_up(void)
{
        struct check check;
        open_worker_with(NULL, CHECK_TIME_MS);
        CHECK(is_answered("x = 1\n", true));
        pid_t pid = worker_pid();
        if (pid) {
                uint64_t begin = now_ms();
                kill(pid, SIGSTOP);
                answers = 0;
                ask(&check, "x = 1\n", 6);
                step_until(1, PATIENCE_MS);
                CHECK(answers == 1 && check.result.verdict == verdict_DENY && strstr(check.result.reason, "too long"));
                CHECK(now_ms() - begin >= CHECK_TIME_MS - 100);
                check_done(&check);
                CHECK(is_answered("x = 1\n", true));
        }
        close_worker();
}

static void a_worker_that_has_to_wait_for_a_processor_is_not_given_up(void)
{
        struct check check;
        open_worker();
        CHECK(is_answered("x = 1\n", true));
        pid_t pid = worker_pid();
        if (pid) {
                kill(pid, SIGSTOP);
                answers = 0;
                ask(&check, "x = 1\n", 6);
                step_until(1, CHECK_TIME_MS + 500);
                CHECK(answers == 0);
                kill(pid, SIGCONT);
                step_until(1, PATIENCE_MS);
                CHECK(answers == 1 && check.result.verdict == verdict_ALLOW && worker_pid() == pid);
                check_done(&check);
        }
        close_worker();
}

static int start_toiler(int sock, pid_t *ret_pid, struct csn_error *err)
{
        (void)sock, (void)err;
        *ret_pid = fork();
        while (*ret_pid == 0)
                ;
        return 0;
}

/* Only its work can end this one. */
static void a_worker_that_works_too_long_is_given_up(void)
{
        struct check check;
        open_worker_with(start_toiler, 10ULL * PATIENCE_MS);
        answers = 0;
        ask(&check, "x = 1\n", 6);
        step_until(1, 5ULL * PATIENCE_MS);
        CHECK(answers == 1 && check.result.verdict == verdict_DENY && strstr(check.result.reason, "too long"));
        checker_cancel(checker, &check);
        check_done(&check);
        close_worker();
}

static void a_worker_that_cannot_be_started_is_an_answer(void)
{
        struct check check;
        struct csn_error err;
        const struct checker_paths none = { .worker = "/nowhere/worker" }, wrong = { .worker = "/bin/true" };
        const struct checker_paths *all[] = { &none, &wrong };
        for (size_t i = 0; i < ARRAY_LEN(all); i++) {
                CHECK(loop_new(&loop, &err) == 0);
                checker_open(loop, all[i], &checker);
                answers = 0;
                ask(&check, "x = 1\n", 6);
                step_until(1, PATIENCE_MS);
                CHECK(answers == 1 && check.result.verdict == verdict_DENY && HAS(&check.result, check_result, error));
                checker_cancel(checker, &check);
                check_done(&check);
                close_worker();
        }
}

static void policies_that_are_wrong_are_the_answer(void)
{
        static char worker[5000];
        struct check check;
        struct csn_error err;
        snprintf(worker, sizeof worker, "%s", built("caisson-policy"));
        const struct checker_paths paths = { .worker = worker, .folders = { folder() } };
        put("own", "policy: own\ncolour: red\n");
        CHECK(loop_new(&loop, &err) == 0);
        checker_open(loop, &paths, &checker);
        answers = 0;
        ask(&check, "x = 1\n", 6);
        step_until(1, PATIENCE_MS);
        CHECK(answers == 1 && check.result.verdict == verdict_DENY && strstr(check.result.reason, "own.yaml:2:"));
        check_done(&check);
        close_worker();
        put("own", NULL);
}

static void a_check_can_be_given_up_at_any_time(void)
{
        struct csn_error err;
        size_t len;
        char *text = balanced("f(", "1", ")", 100000, &len);
        open_worker();
        for (int steps = 0; steps < 6; steps++) {
                struct check one, two;
                answers = 0;
                ask(&one, text, len);
                ask(&two, "x = 1\n", 6);
                for (int i = 0; i < steps; i++)
                        loop_step(loop, 1, &err);
                bool early = answers > 0;
                checker_cancel(checker, &one);
                check_done(&one);
                step_until(early ? 2 : 1, PATIENCE_MS);
                CHECK(answers == (early ? 2 : 1) && two.result.verdict == verdict_ALLOW);
                checker_cancel(checker, &two);   /* it is done: nothing */
                check_done(&two);
        }
        struct check last;
        ask(&last, text, len);
        loop_step(loop, 1, &err);
        close_worker();   /* at work */
        check_done(&last);
        free(text);
}

int main(void)
{
        atexit(remove_folder);
        RUN(a_wrong_file_is_refused_with_its_line);
        RUN(languages_of_a_policy_are_those_of_its_rules);
        RUN(a_circle_of_policies_is_refused);
        RUN(ordinary_programs_raise_no_doubt);
        RUN(a_file_that_cannot_be_read_is_named);
        RUN(a_folder_that_is_not_there_is_empty);
        RUN(an_extension_changes_nothing_in_what_it_extends);
        RUN(the_first_folder_counts);
        RUN(points_and_thresholds_decide);
        RUN(names_are_compared_in_normal_form);
        RUN(code_points_become_utf8);
        RUN(a_program_is_checked);
        RUN(checks_of_one_key_let_others_pass);
        RUN(hostile_texts_are_answered_and_the_next_as_well);
        RUN(texts_that_are_deep_and_whole_are_answered);
        RUN(bytes_of_every_kind_are_answered);
        RUN(two_hundred_at_once_are_all_answered);
        RUN(a_worker_that_was_killed_is_replaced);
        RUN(a_worker_that_hangs_is_given_up);
        RUN(a_worker_that_has_to_wait_for_a_processor_is_not_given_up);
        RUN(a_worker_that_works_too_long_is_given_up);
        RUN(a_worker_that_cannot_be_started_is_an_answer);
        RUN(policies_that_are_wrong_are_the_answer);
        RUN(a_check_can_be_given_up_at_any_time);
        return tap_done();
}
