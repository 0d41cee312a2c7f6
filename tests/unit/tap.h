/*
 * TAP in one header (testanything.org), because frameworks with a runner of their own do not survive fork
 * and unshare.  A test is a function whose name is a sentence; a failed CHECK names its line and goes on,
 * and counts in a forked child too, because the counters are shared.
 */
#ifndef TESTS_UNIT_TAP_H
#define TESTS_UNIT_TAP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct tap {
        int tests, failures;
        int failed_checks;        /* of the running test, children included */
        char skip[200];
};

static struct tap *tap_shared(void)
{
        static struct tap *tap;
        if (!tap) {
                tap = mmap(NULL, sizeof *tap, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
                if (tap == MAP_FAILED)
                        abort();
                setvbuf(stdout, NULL, _IOLBF, 0);
        }
        return tap;
}

static inline void tap_check(bool good, const char *text, const char *file, int line)
{
        if (!good) {
                tap_shared()->failed_checks++;
                printf("# %s:%d: not true: %s\n", file, line, text);
        }
}

static inline void tap_run(void (*test)(void), const char *name)
{
        struct tap *tap = tap_shared();
        char sentence[200];
        snprintf(sentence, sizeof sentence, "%s", name);
        for (char *c = sentence; *c; c++)
                *c = *c == '_' ? ' ' : *c;
        tap->failed_checks = 0;
        tap->skip[0] = 0;
        fflush(stdout);
        test();
        tap->tests++;
        tap->failures += tap->failed_checks > 0;
        printf("%sok %d - %s%s%s\n", tap->failed_checks ? "not " : "", tap->tests, sentence,
                tap->skip[0] ? " # SKIP " : "", tap->skip);
}

static inline int tap_done(void)
{
        struct tap *tap = tap_shared();
        printf("1..%d\n", tap->tests);
        return tap->failures > 0;
}

#define CHECK(condition) tap_check((condition), #condition, __FILE__, __LINE__)
#define RUN(test) tap_run(test, #test)

/* Leave the test; "needs NAME: ..." is a failure where NAME is required (tests/run). */
#define SKIP(...)                                                                                               \
        do {                                                                                                    \
                snprintf(tap_shared()->skip, sizeof tap_shared()->skip, __VA_ARGS__);                           \
                return;                                                                                         \
        } while (0)

#endif
