/*
 * The timing loop of bench/run for source policies.
 *
 *   bench-policy WORKER FOLDER POLICY COUNT < PROGRAM
 *
 * Gives a Python program to a warm worker by way of the checker, COUNT times one after the other, and prints the
 * nanoseconds of each; then "= ELAPSED CPU", in nanoseconds too, the CPU time being that of the worker and its caller.
 */
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define WARM 20

static struct loop *loop;
static struct checker *checker;

static int64_t now_ns(clockid_t clock)
{
        struct timespec now;
        clock_gettime(clock, &now);
        return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static int64_t cpu_ns(int who)
{
        struct rusage used;
        getrusage(who, &used);
        return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL +
                (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL;
}

static void on_done(struct check *check)
{
        *(bool *)check->owner = true;
}

/* The answer has to be one about the program. */
static int64_t check_once(const char *policy, const char *code, size_t len)
{
        struct csn_error err;
        bool done = false;
        struct check check = { .done = on_done, .owner = &done };
        SET(&check.request, check_request, policy, arena_text(&check.arena, "%s", policy));
        SET(&check.request, check_request, language, arena_text(&check.arena, "python"));
        SET(&check.request, check_request, code, ((struct bytes){ arena_copy(&check.arena, code, len), len }));
        policy_defaults(&check.request);
        int64_t began = now_ns(CLOCK_MONOTONIC);
        checker_start(checker, &check);
        while (!done)
                loop_step(loop, 1000, &err);
        int64_t took = now_ns(CLOCK_MONOTONIC) - began;
        if (HAS(&check.result, check_result, error)) {
                fprintf(stderr, "%s\n", check.result.reason);
                exit(1);
        }
        check_done(&check);
        return took;
}

int main(int argc, char **argv)
{
        static char code[1 << 20];
        struct csn_error err;
        if (argc != 5 || loop_new(&loop, &err) < 0)
                return 2;
        const struct checker_paths paths = { .worker = argv[1], .folders = { argv[2] } };
        size_t len = fread(code, 1, sizeof code, stdin);
        long count = strtol(argv[4], NULL, 10);
        checker_open(loop, &paths, &checker);
        for (int i = 0; i < WARM; i++)
                check_once(argv[3], code, len);
        int64_t start = now_ns(CLOCK_MONOTONIC);
        for (long i = 0; i < count; i++)
                printf("%" PRId64 "\n", check_once(argv[3], code, len));
        int64_t elapsed = now_ns(CLOCK_MONOTONIC) - start;
        checker_close(checker);
        /* With the start of the worker and what came before the count, which is divided among all. */
        int64_t cpu = cpu_ns(RUSAGE_SELF) + cpu_ns(RUSAGE_CHILDREN);
        printf("= %" PRId64 " %" PRId64 "\n", elapsed, cpu * count / (count + WARM));
        loop_free(loop);
        return 0;
}
