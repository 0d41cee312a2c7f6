/* Outputs beside expected ones: each rule is symmetric and accepts equal outputs; a strict rule implies a loose one. */
#include "grading/grading_private.h"

static void require(bool condition)
{
        if (!condition)
                abort();
}

static bool accepts(int rule, const struct bytes *got, const struct bytes *expected, struct arena *arena)
{
        const char *wrong = compare_output(rule, 1e-6, got, expected, arena);
        require(wrong && strlen(wrong) < 1000);
        return !*wrong;
}

/* The text before the first NUL, and the text after it. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        const uint8_t *nul = len ? memchr(bytes, 0, len) : NULL;
        size_t first = nul ? (size_t)(nul - bytes) : len, second = nul ? len - first - 1 : 0;
        const struct bytes a = { (char *)(uintptr_t)bytes, first },
                           b = { (char *)(uintptr_t)(nul ? nul + 1 : bytes), second };
        struct arena arena = { 0 };
        for (int rule = compare_TRIMMED; rule < compare_PROGRAM; rule++) {
                require(accepts(rule, &a, &a, &arena) && accepts(rule, &b, &b, &arena));
                require(accepts(rule, &a, &b, &arena) == accepts(rule, &b, &a, &arena));
        }
        if (accepts(compare_VERL, &a, &b, &arena))
                require(accepts(compare_LCB, &a, &b, &arena) && accepts(compare_PRIME, &a, &b, &arena));
        arena_done(&arena);
        return 0;
}
