/*
 * Hostile requests to start programs, and tables of them: read within their bytes, and only what fits a program becomes
 * its arguments.
 */
#include "wire/tool_launcher.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static char *const argv_of[] = { (char *)(uintptr_t) "Fls", (char *)(uintptr_t) "W1:--sort", (char *)(uintptr_t) "P1",
        (char *)(uintptr_t) "P0" };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        static struct launch_values values;
        const struct launch_program known = { .argv = { (char **)(uintptr_t)argv_of, ARRAY_LEN(argv_of) } };
        struct launch_program program;
        struct arena arena = { 0 };
        struct csn_error err;
        char **argv;
        size_t which, at = 0;
        if (launch_get_request((const char *)bytes, len, &arena, &which, &values, &err) == 0) {
                if (which >= LAUNCH_PROGRAMS_MAX || values.n > LAUNCH_PLACES_MAX)
                        abort();
                if (launch_fill(&known, &values, &arena, &argv, &err) == 0 && strcmp(argv[0], "ls") != 0)
                        abort();
        }
        while (at < len && launch_get_program((const char *)bytes, len, &at, &arena, &program, &err) == 0)
                launch_fill(&program, &values, &arena, &argv, &err);
        arena_done(&arena);
        return 0;
}
