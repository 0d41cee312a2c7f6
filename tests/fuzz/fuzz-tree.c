/*
 * Hostile programs for the quick parse (policy/analysis/fast_parser.h): where it has an answer, tree-sitter has the
 * same.
 *
 * The first byte is the language, as in fuzz-policy: '@' is Python, 'P' JavaScript, '`' TypeScript.  The rest is the
 * program.
 */
#include "policy/javascript/javascript.h"
#include "policy/python/python.h"

/* In tree-sitter 0.20 longer texts that do not parse wear the process out (policy/analysis/tree.h). */
#define LEN_MAX (UINT16_MAX - 1)

static void require(bool condition)
{
        if (!condition)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static const struct grammar *const grammars[] = { &python_grammar, &js_grammar, &js_typescript_grammar };
        struct arena arena = { 0 };
        struct tree parser, slow;
        struct csn_error err;
        if (!len || len > LEN_MAX)
                return 0;
        const struct grammar *grammar = grammars[(bytes[0] >> 4 & 3) % ARRAY_LEN(grammars)];
        const char *text = arena_copy(&arena, (const char *)bytes + 1, len - 1);
        if (tree_parse_fast(grammar, text, len - 1, &arena, &parser)) {
                require(tree_parse_slowly(grammar, text, len - 1, &arena, &slow, &err) == 0 && !slow.broken &&
                        parser.n == slow.n);
                require(memcmp(parser.nodes, slow.nodes, slow.n * sizeof *slow.nodes) == 0);
        }
        arena_done(&arena);
        return 0;
}
