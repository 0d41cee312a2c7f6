/*
 * The quick parse (policy/analysis/fast_parser.h): it says what tree-sitter says, for every program of tests/policy,
 * and it has an answer for what people write.  Where it gives up nothing is wrong but the time, so both have to be
 * looked at.
 */
#include "policy/javascript/javascript.h"
#include "policy/python/python.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>

#include "tap.h"

#define FILE_MAX_BYTES MIB

enum answer { ANSWER_SAME, ANSWER_OTHER, ANSWER_GAVE_UP, ANSWER_BROKEN };

/*
 * BROKEN: it gave up, and rightly, for the text does not parse; or nobody knows, for tree-sitter came to no end in its
 * time.
 */
static enum answer compare(const struct grammar *grammar, const char *text, size_t len)
{
        struct arena arena = { 0 };
        struct tree parser, slow;
        struct csn_error err;
        bool answered = tree_parse_fast(grammar, text, len, &arena, &parser);
        bool ended = tree_parse_slowly(grammar, text, len, &arena, &slow, &err) == 0, good = ended && !slow.broken;
        enum answer answer = good ? ANSWER_GAVE_UP : ANSWER_BROKEN;
        if (answered && ended) {
                bool same = good && parser.n == slow.n &&
                        memcmp(parser.nodes, slow.nodes, slow.n * sizeof *slow.nodes) == 0;
                answer = same ? ANSWER_SAME : ANSWER_OTHER;
        }
        arena_done(&arena);
        return answer;
}

/* With two blanks for each: runs of them are skipped as one. */
static enum answer compare_spaced(const struct grammar *grammar, const char *text, size_t len)
{
        char *spaced = mem_alloc(2 * len + 1);
        size_t n = 0;
        for (size_t i = 0; i < len; i++) {
                spaced[n++] = text[i];
                if (text[i] == ' ')
                        spaced[n++] = ' ';
        }
        enum answer answer = compare(grammar, spaced, n);
        free(spaced);
        return answer;
}

static enum answer compare_text(const struct grammar *grammar, const char *text)
{
        return compare(grammar, text, strlen(text));
}

static void is_the_same(const struct grammar *grammar, const char *text)
{
        enum answer answer = compare_text(grammar, text);
        CHECK(answer == ANSWER_SAME);
        CHECK(compare_spaced(grammar, text, strlen(text)) != ANSWER_OTHER);
        if (answer != ANSWER_SAME)
                printf("# %s\n", text);
}

/* ---- what is ambiguous while it is read ---- */

static void python_that_reads_in_two_ways_is_read_as_before(void)
{
        static const char *const texts[] = {
                "",
                "\n",
                "# nothing\n",
                "   \n\t\n# a\n\n# b",
                "x",
                "x = 1",
                "print(x)\nprint (x, y)\nprint(x); y\n",
                "print\n",
                "print >> f, x\n",
                "f(*args)\n",
                "f(a, *b, **c)\ng(*a, *b)\n",
                "a, b = c, d\n",
                "a.b, c.d = x, y\nz = [], []\n",
                "(a, b), [c, *d] = e\n",
                "[a, b] = c = d, e\n",
                "x = *a, b\n",
                "for a, b in c: pass\n",
                "for (a, b), c in d:\n    continue\nelse:\n    pass\n",
                "with a as b, c as d: pass\nwith (a as b, c as d): pass\nwith (a, b): pass\n",
                "match x:\n    case [a, *b]: pass\n    case {'k': v}: pass\n",
                "match = 1\nmatch(x)\nmatch[x]\ntype X = int\ntype(x)\n",
                "lambda *a, **b: (a, b)\n",
                "return_([*self])\n{**a, 'b': 1}\n{*a, b}\n",
                "if (n := f(x)) > 1: pass\n[y := 1, y**2]\n",
                "exec = 1\nexec('x')\nexec 'x'\n",
                "async def f():\n    await x\n    async for a in b: pass\n",
                "class A(B, metaclass=C):\n    x: int = 1\n    @d(1)\n    def f(self, a, /, b, *, c=1, **k) -> None: ...\n",
                "try:\n    pass\nexcept (A, B) as e:\n    raise C from e\nelse:\n    pass\nfinally:\n    del a, b\n",
                "f'{x!r:>{width}} {{}} {y=}' 'b' rb'c' '''d\n'''\n",
                "if a:\n    if b:\n        c\n# out\n    # in\n    d\ne\n",
                "x = (1,\n     2) \\\n  + 3\n",
                "global a; nonlocal b; assert c, d; import e.f as g, h; from . import *; from ..i import (j, k as l)\n",
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                is_the_same(&python_grammar, texts[i]);
}

static void javascript_that_reads_in_two_ways_is_read_as_before(void)
{
        static const char *const texts[] = {
                "",
                "// nothing",
                "#!/usr/bin/env node\nx",
                "a = b\n(c)\n",
                "let a = 1\nlet b\n++b\n",
                "x = a / b / c; y = /b/.test(c)\n",
                "({ a, b: [c] } = d); ({ a, b() { } })\n",
                "(a, b) => c; async (a) => b; async a => b; async(a)\n",
                "a ? (b) : c => d\n",
                "for (const [a, b] of c) ; for (let in d) ; for (;;) break\n",
                "`a${`b${c}`}d`\n",
                "if (a) b\nelse c\n",
                "label: for (;;) continue label\n",
                "class A extends B { static #c = 1; get d() { } async *e() { } static { } }\n",
                "import a, { b as c } from 'd'; export default function () { }\n",
                "a?.b?.[c]?.(d) ?? e\n",
                "x = <a b={c}>d {e} </a>\n",
                "return\n",
                "a\n++b\nc = function* () { yield\n* 1 }\n",
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                is_the_same(&js_grammar, texts[i]);
}

static void typescript_that_reads_in_two_ways_is_read_as_before(void)
{
        static const char *const texts[] = {
                "let a: b<c<d>> = e<f>(g)\n",
                "a < b > (c)\n",
                "<T>(a: T) => a\n",
                "type A = B extends infer C ? (d: C) => void : [e?: string, ...f[]]\n",
                "abstract class A<T> implements B { constructor(private readonly c: D) { super() } declare e: F; abstract g(): void }\n",
                "function f(this: A, b?: C): asserts b is D { return b! as E satisfies F }\n",
                "enum A { B = 1, C }\nnamespace D.E { export const f = 1 }\n",
                "interface A { (b: C): D; new (e): F; [g: string]: H; i?(): J }\n",
                "let x = a as const, y = <B>c\n",
                "import type { A } from 'b'; export = c\n",
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                is_the_same(&js_typescript_grammar, texts[i]);
}

static void what_does_not_parse_is_left_to_tree_sitter(void)
{
        static const char *const texts[] = {
                "x = = 1\n",
                "def f(:\n",
                "(",
                "'a\n",
                "x = ?\n",
                "\xef\xbb\xbfx = 1\n",
                "x = '\xff'\n",
                "class\n",
                "a b\n",
                "x = 1 2\n",
                "  a\n b\nc\n)",
                "f(a, b\n\ndef g(): pass\n",
        };
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
                enum answer answer = compare_text(&python_grammar, texts[i]);
                CHECK(answer == ANSWER_GAVE_UP || answer == ANSWER_BROKEN);
                if (answer == ANSWER_SAME || answer == ANSWER_OTHER)
                        printf("# %s\n", texts[i]);
        }
}

/* ---- what is large ---- */

static char *repeated(struct arena *arena, const char *text, size_t times, size_t *ret_len)
{
        size_t len = strlen(text);
        char *all = arena_alloc(arena, len * times + 1);
        for (size_t i = 0; i < len * times; i++)
                all[i] = text[i % len];
        *ret_len = len * times;
        return all;
}

static void long_and_deep_texts_have_an_end(void)
{
        static const struct { const char *text; size_t times;
        } many[] = {
                { "print(a, *b); x, y = c, d\n", 2000 },
                { "(", 60000 },
                { "[", 60000 },
                { "{", 60000 },
                { "#\n", 30000 },
                { "a.", 30000 },
                { "f(*", 20000 },
                { "if a:\n ", 9000 },
                { "a, ", 20000 },
                { "lambda: ", 8000 },
                { "f'{", 20000 },
                { "print (", 8000 },
                { "\n", 60000 },
                { "x = ", 15000 },
        };
        for (size_t i = 0; i < ARRAY_LEN(many); i++) {
                struct arena arena = { 0 };
                size_t len;
                char *text = repeated(&arena, many[i].text, many[i].times, &len);
                CHECK(compare(&python_grammar, text, len) != ANSWER_OTHER);
                CHECK(compare(&js_grammar, text, len) != ANSWER_OTHER);
                arena_done(&arena);
        }
}

static volatile sig_atomic_t slept;

static void sleep_for_a_while(int number)
{
        (void)number;
        slept = poll(NULL, 0, 1200) == 0;
}

/* A busy machine lets us wait in the middle of it. */
static void time_that_others_have_is_not_that_of_the_parser(void)
{
        struct arena arena = { 0 };
        struct tree tree;
        struct csn_error err;
        size_t len;
        char *text = repeated(&arena, "print(a, *b); x, y = c, d\n", 600, &len);
        signal(SIGPROF, sleep_for_a_while);
        CHECK(setitimer(ITIMER_PROF, &(struct itimerval){ .it_value.tv_usec = 1000 }, NULL) == 0);
        for (int i = 0; i < 100 && !slept; i++)
                CHECK(tree_parse_slowly(&python_grammar, text, len, &arena, &tree, &err) == 0 && !tree.broken);
        signal(SIGPROF, SIG_IGN);
        CHECK(slept);
        arena_done(&arena);
}

/* ---- tests/policy ---- */

struct count {
        unsigned answers[4];
};

/* A title, lines that say what comes of it, and the program: tests/integration/policy/test_policy.py. */
static void compare_cases(const struct grammar *grammar, const char *path, struct count *count)
{
        static char text[FILE_MAX_BYTES + 1];
        ssize_t len = io_read_file(AT_FDCWD, path, text, FILE_MAX_BYTES);
        CHECK(len > 0);
        for (char *at = len > 0 ? strstr(text, "=== ") : NULL, *next; at; at = next) {
                next = strstr(at + 1, "\n=== ");
                char *end = next ? next + 1 : text + len, *line = strchr(at, '\n');
                next = next ? next + 1 : NULL;
                while (line && strncmp(line + 1, "--- ", 4) == 0)
                        line = strchr(line + 1, '\n');
                if (!line || line + 1 >= end)
                        continue;
                enum answer answer = compare(grammar, line + 1, (size_t)(end - line) - 1);
                CHECK(compare_spaced(grammar, line + 1, (size_t)(end - line) - 1) != ANSWER_OTHER);
                if (answer == ANSWER_OTHER || answer == ANSWER_GAVE_UP)
                        printf("# %s: %s: %.*s\n", path, answer == ANSWER_OTHER ? "another tree" : "gave up",
                                (int)(strchr(at, '\n') - at), at);
                count->answers[answer]++;
        }
}

static void every_program_of_tests_policy_has_one_tree(void)
{
        static const struct { const char *pattern; const struct grammar *grammar; } folders[] = {
                { "tests/policy/python/*.cases", &python_grammar },
                { "tests/policy/javascript/*.cases", &js_grammar },
                { "tests/policy/typescript/*.cases", &js_typescript_grammar },
        };
        if (access("tests/policy", R_OK) < 0)
                SKIP("needs the sources: start it in their folder");
        for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
                struct count count = { 0 };
                glob_t found;
                CHECK(glob(folders[i].pattern, 0, NULL, &found) == 0);
                for (size_t k = 0; k < found.gl_pathc; k++)
                        compare_cases(folders[i].grammar, found.gl_pathv[k], &count);
                globfree(&found);
                CHECK(count.answers[ANSWER_OTHER] == 0);
                /* Evasions are not what people write, and still nearly all are answered. */
                CHECK(count.answers[ANSWER_SAME] > 100 &&
                        count.answers[ANSWER_GAVE_UP] * 100 <= count.answers[ANSWER_SAME]);
                printf("# %s: %u the same, %u given up, %u that do not parse\n", folders[i].pattern,
                        count.answers[ANSWER_SAME], count.answers[ANSWER_GAVE_UP], count.answers[ANSWER_BROKEN]);
        }
}

int main(void)
{
        RUN(python_that_reads_in_two_ways_is_read_as_before);
        RUN(javascript_that_reads_in_two_ways_is_read_as_before);
        RUN(typescript_that_reads_in_two_ways_is_read_as_before);
        RUN(what_does_not_parse_is_left_to_tree_sitter);
        RUN(long_and_deep_texts_have_an_end);
        RUN(time_that_others_have_is_not_that_of_the_parser);
        RUN(every_program_of_tests_policy_has_one_tree);
        return tap_done();
}
