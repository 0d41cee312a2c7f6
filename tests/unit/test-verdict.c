/* verdict: what came of a run, for every kind of end, and the sentences about it. */
#include "engine/output/verdict.h"

#include <signal.h>

#include "tap.h"

#define EXITED(code) ((uint64_t)(code) << 8)
#define SIGNALED(sig) ((uint64_t)(sig))

static const struct limits limits = { .wall_ms = 5000,
        .cpu_ms = 1500,
        .memory_bytes = 512 * MIB,
        .pids = 64,
        .disk_bytes = 100 * MIB,
        .disk_files = 1000,
        .output_bytes = 1000000 };
static const struct wire_boundary full = { .controllers = WIRE_CTL_ALL }, poor = { 0 };

static struct evidence well(const struct wire_exit *how)
{
        return (struct evidence){
                .how = how, .limits = &limits, .boundary = &full, .language = "Python", .parsed = true
        };
}

static int status_of(struct wire_exit how)
{
        struct evidence evidence = well(&how);
        return verdict_status(&evidence);
}

static void an_exit_status_decides_and_nothing_else(void)
{
        CHECK(status_of((struct wire_exit){ .status = EXITED(0), .has_status = 1 }) == status_COMPLETED);
        CHECK(status_of((struct wire_exit){ .status = EXITED(1), .has_status = 1 }) == status_FAILED);
        CHECK(status_of((struct wire_exit){ .status = EXITED(255), .has_status = 1 }) == status_FAILED);
        CHECK(status_of((struct wire_exit){ .status = SIGNALED(SIGSEGV), .has_status = 1 }) == status_CRASHED);
        CHECK(status_of((struct wire_exit){ .status = SIGNALED(SIGKILL), .has_status = 1 }) == status_CRASHED);
        CHECK(status_of((struct wire_exit){ .has_status = 0 }) == status_CRASHED);
}

static void limits_have_statuses_of_their_own(void)
{
        CHECK(status_of((struct wire_exit){ .reasons = WIRE_WALL }) == status_TIMEOUT);
        CHECK(status_of((struct wire_exit){ .reasons = WIRE_CPU }) == status_TIMEOUT);
        CHECK(status_of((struct wire_exit){ .status = SIGNALED(SIGXCPU), .has_status = 1 }) == status_TIMEOUT);
        CHECK(status_of((struct wire_exit){ .reasons = WIRE_MEMORY }) == status_MEMORY_EXCEEDED);
        CHECK(status_of((struct wire_exit){ .status = SIGNALED(SIGXFSZ), .has_status = 1 }) == status_DISK_EXCEEDED);
        CHECK(status_of((struct wire_exit){ .status = EXITED(1), .has_status = 1, .pids_hits = 1 }) ==
                status_PROCESS_LIMIT);
}

/* A child that the memory limit killed ends the run, whatever exit status its parent hurried to give. */
static void memory_wins_over_a_good_exit_status(void)
{
        CHECK(status_of((struct wire_exit){ .status = EXITED(0), .has_status = 1, .reasons = WIRE_MEMORY }) ==
                status_MEMORY_EXCEEDED);
}

/* `limits` has 512 MiB.  Without a controller the poll kills, and what it saw is no proof. */
static void memory_that_the_host_lacked_is_no_limit_of_the_run(void)
{
        const struct wire_boundary none = { .controllers = 0 };
        struct wire_exit how = {
                .status = SIGNALED(SIGKILL), .has_status = 1, .reasons = WIRE_MEMORY, .memory_peak = 200 * MIB
        };
        struct evidence evidence = well(&how);
        struct arena arena = { 0 };
        CHECK(status_of(how) == status_CAPACITY);
        CHECK(strcmp(verdict_message(status_CAPACITY, &evidence, &arena),
                      "The host had no memory left, and the kernel ended the run at 200MiB of the 512MiB that it may use") ==
                0);
        CHECK(strstr(verdict_hint(status_CAPACITY, &evidence, &arena), "engine.running_max"));
        how.memory_peak = 510 * MIB;
        CHECK(status_of(how) == status_CAPACITY);
        how.memory_peak = 512 * MIB - 32 * KIB;
        CHECK(status_of(how) == status_MEMORY_EXCEEDED);
        how.memory_peak = 0;   /* a kernel that does not tell it */
        CHECK(status_of(how) == status_MEMORY_EXCEEDED);
        how.memory_peak = 200 * MIB;
        evidence.boundary = &none;
        CHECK(verdict_status(&evidence) == status_MEMORY_EXCEEDED);
        arena_done(&arena);
}

static void a_refused_fork_that_was_handled_is_no_failure(void)
{
        CHECK(status_of((struct wire_exit){ .status = EXITED(0), .has_status = 1, .pids_hits = 3 }) ==
                status_COMPLETED);
        CHECK(status_of((struct wire_exit){
                      .status = EXITED(0), .has_status = 1, .pids_hits = 3, .reasons = WIRE_LEFTOVERS }) ==
                status_PROCESS_LIMIT);
}

static void a_full_disk_counts_only_for_a_program_that_failed(void)
{
        struct wire_exit good = { .status = EXITED(0), .has_status = 1 },
                         bad = { .status = EXITED(1), .has_status = 1 };
        struct evidence evidence = well(&good);
        evidence.home_full = true;
        CHECK(verdict_status(&evidence) == status_COMPLETED);
        evidence.how = &bad;
        CHECK(verdict_status(&evidence) == status_DISK_EXCEEDED);
        evidence.home_full = false;
        CHECK(verdict_status(&evidence) == status_FAILED);
        evidence.error_errno = ENOSPC;
        CHECK(verdict_status(&evidence) == status_DISK_EXCEEDED);
}

static void syntax_errors_come_from_the_runner_or_from_a_dead_parser(void)
{
        struct wire_exit one = { .status = EXITED(1), .has_status = 1 },
                         crash = { .status = SIGNALED(SIGSEGV), .has_status = 1 };
        struct evidence evidence = well(&one);
        evidence.parsed = false;
        evidence.syntax = true;
        CHECK(verdict_status(&evidence) == status_SYNTAX_ERROR);
        evidence.syntax = false;
        CHECK(verdict_status(&evidence) == status_FAILED);
        evidence.how = &crash;
        CHECK(verdict_status(&evidence) == status_SYNTAX_ERROR);
        evidence.channel_broken = true;
        CHECK(verdict_status(&evidence) == status_CRASHED);
}

static void what_the_caller_did_is_told_as_such(void)
{
        struct wire_exit how = { .reasons = WIRE_KILLED };
        struct evidence evidence = well(&how);
        evidence.cancelled = true;
        CHECK(verdict_status(&evidence) == status_CANCELLED);
        evidence.cancelled = false;
        evidence.output_killed = true;
        CHECK(verdict_status(&evidence) == status_OUTPUT_LIMIT);
}

static void rlimits_that_stand_in_are_recognised(void)
{
        struct wire_exit how = { .status = EXITED(1), .has_status = 1 };
        struct evidence evidence = well(&how);
        evidence.error_type = "MemoryError";
        CHECK(verdict_status(&evidence) == status_FAILED);
        evidence.boundary = &poor;
        CHECK(verdict_status(&evidence) == status_MEMORY_EXCEEDED);
        struct arena arena = { 0 };
        const char *hint = verdict_hint(status_MEMORY_EXCEEDED, &evidence, &arena);
        CHECK(strncmp(hint, "A request for memory was refused", 32) == 0 && strstr(hint, "memory_bytes="));
        arena_done(&arena);
        evidence.error_type = NULL;
        evidence.error_errno = EAGAIN;
        CHECK(verdict_status(&evidence) == status_PROCESS_LIMIT);
}

/*
 * A request may come by the command line or by another interface: the sentence has the field, and the front adds its
 * own word for it.
 */
static void messages_name_the_limit_and_hints_its_field(void)
{
        static const struct { struct wire_exit how; const char *message, *field;
        } rows[] = {
                { { .reasons = WIRE_WALL, .cpu_us = 4900000, .wall_us = 5000000 }, "Execution timeout after 5 seconds",
                        "wall_ms=5000" },
                { { .reasons = WIRE_CPU, .cpu_us = 1500000 }, "CPU time limit of 1.5 seconds reached", "cpu_ms=1500" },
                { { .reasons = WIRE_MEMORY }, "Memory limit of 512MiB exceeded", "memory_bytes=536870912" },
                { { .status = SIGNALED(SIGXFSZ), .has_status = 1 }, "Disk limit of 100MiB reached",
                        "disk_bytes=104857600" },
                { { .status = EXITED(1), .has_status = 1, .pids_hits = 2 },
                        "Process limit of 64 processes and threads reached", "pids=64" },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct arena arena = { 0 };
                struct evidence evidence = well(&rows[i].how);
                int status = verdict_status(&evidence);
                const char *hint = verdict_hint(status, &evidence, &arena);
                CHECK(strcmp(verdict_message(status, &evidence, &arena), rows[i].message) == 0);
                CHECK(hint && strstr(hint, rows[i].field) && !strstr(hint, "--") && !strstr(hint, "CAISSON_"));
                arena_done(&arena);
        }
}

static void a_loop_and_a_sleep_get_different_advice(void)
{
        struct wire_exit loop = { .reasons = WIRE_WALL, .cpu_us = 4900000, .wall_us = 5000000 };
        struct wire_exit sleep = { .reasons = WIRE_WALL, .cpu_us = 20000, .wall_us = 5000000 };
        struct arena arena = { 0 };
        struct evidence evidence = well(&loop);
        CHECK(strstr(verdict_hint(status_TIMEOUT, &evidence, &arena), "CPU, not sleep"));
        evidence.how = &sleep;
        CHECK(strstr(verdict_hint(status_TIMEOUT, &evidence, &arena), "waiting"));
        arena_done(&arena);
}

static void the_share_of_the_processors_is_taken_for_no_sleep(void)
{
        enum { COMPUTED = 1, WAITED = 2 };
        static const struct { uint64_t cpu_milli, cpu_us, throttled_us; unsigned fair_milli; int causes;
        } rows[] = {
                { 1000, 4900000, 0, 0, COMPUTED },
                { 1000, 20000, 0, 0, WAITED },
                { 250, 1240000, 3700000, 0, COMPUTED },
                { 100, 490000, 4500000, 1000, COMPUTED },
                { 100, 5000, 0, 0, WAITED },
                { 2000, 4900000, 0, 0, COMPUTED },        /* one thread of a program that may have two */
                { 1000, 4900000, 20000000, 0, COMPUTED }, /* five threads that may have one */
                { 1000, 2000000, 0, 400,
                        COMPUTED | WAITED }, /* a loop beside others, or a program that sleeps between */
                { 1000, 2000000, 0, 0, COMPUTED | WAITED },
                { 1000, 120000, 0, 24, COMPUTED | WAITED }, /* a loop on two processors that 85 want */
                { 1000, 20000, 0, 400, WAITED },            /* a loop would have had a hundred times as much */
                { 250, 400000, 1200000, 0, COMPUTED | WAITED },
                { 0, 4900000, 0, 500, COMPUTED },
        };
        struct arena arena = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct wire_exit how = { .reasons = WIRE_WALL,
                        .cpu_us = rows[i].cpu_us,
                        .wall_us = 5000000,
                        .throttled_us = rows[i].throttled_us };
                struct limits bounds = { .wall_ms = 5000, .cpu_milli = rows[i].cpu_milli };
                struct evidence evidence = well(&how);
                evidence.limits = &bounds;
                evidence.fair_milli = rows[i].fair_milli;
                const char *hint = verdict_hint(status_TIMEOUT, &evidence, &arena);
                CHECK(!strstr(hint, "computing") == !(rows[i].causes & COMPUTED));
                CHECK(!strstr(hint, "waiting") == !(rows[i].causes & WAITED));
                CHECK(!strstr(hint, "cpu_milli=") ==
                        (rows[i].causes != COMPUTED ||
                                (rows[i].cpu_milli != 250 && rows[i].cpu_milli != 100 && !rows[i].throttled_us)));
        }
        arena_done(&arena);
}

/* S1-55, S3-86, U-58: a loop on a busy host had a tenth of a CPU, and waited for it the rest of the time. */
static void time_on_a_run_queue_is_no_sleep(void)
{
        static const struct { uint64_t cpu_us, waited_us; bool computed; } rows[] = {
                { 500000, 4400000, true },
                { 120000, 4800000, true },
                { 20000, 30000, false },
                { 400000, 900000, false },
        };
        struct arena arena = { 0 };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct wire_exit how = { .reasons = WIRE_WALL,
                        .cpu_us = rows[i].cpu_us,
                        .wall_us = 5000000,
                        .waited_us = rows[i].waited_us };
                struct limits bounds = { .wall_ms = 5000, .cpu_milli = 1000 };
                struct evidence evidence = well(&how);
                evidence.limits = &bounds;
                evidence.fair_milli = 400;
                const char *hint = verdict_hint(status_TIMEOUT, &evidence, &arena);
                CHECK(!strstr(hint, "computing") == !rows[i].computed);
                CHECK(!strstr(hint, "waiting") == rows[i].computed);
        }
        arena_done(&arena);
}

/* The sentences that models have been given by other systems; they are part of the contract. */
static void advice_by_type_is_golden(void)
{
        static const struct { const char *type, *advice; } golden[] = {
                { "NameError", "Variable or function not defined. Check spelling and scope." },
                { "TypeError", "Wrong type passed to function. Check argument types." },
                { "ValueError", "Invalid value for operation. Check parameter constraints." },
                { "IndexError", "List index out of range. Check bounds." },
                { "KeyError", "Dictionary key not found. Check key existence." },
                { "AttributeError", "Object has no such attribute. Check method/attribute name." },
                { "ImportError", "Missing import. Add 'import X' or 'from X import Y'." },
                { "SyntaxError", "Python syntax error. Check indentation, brackets, colons." },
                { "ZeroDivisionError", "Division by zero. Add guard for zero denominator." },
                { "RecursionError", "Recursion depth exceeded. Add base case or switch to iteration." },
                { "TimeoutError", "Code timed out. Check for infinite loops or optimize." },
        };
        for (size_t i = 0; i < ARRAY_LEN(golden); i++)
                CHECK(feedback_for_type("python", golden[i].type) &&
                        strcmp(feedback_for_type("python", golden[i].type), golden[i].advice) == 0);
        CHECK(feedback_for_type("python", "ModuleNotFoundError") && feedback_for_type("python", "MemoryError"));
        CHECK(feedback_for_type("python", "IndentationError"));
        CHECK(!feedback_for_type("python", "Whatever") && !feedback_for_type("python", NULL));
}

/* JavaScript has errors of the same names, and other reasons for them. */
static void advice_is_the_languages_own(void)
{
        static const char *const both[] = { "SyntaxError", "TypeError" },
                                 *const pythons[] = { "NameError", "KeyError", "ImportError", "ValueError" };
        for (size_t i = 0; i < ARRAY_LEN(both); i++) {
                const char *python = feedback_for_type("python", both[i]),
                           *javascript = feedback_for_type("javascript", both[i]);
                CHECK(python && javascript && strcmp(python, javascript) != 0 && !strstr(javascript, "Python"));
                CHECK(feedback_for_type("typescript", both[i]) == javascript);
                CHECK(!feedback_for_type("bash", both[i]) && !feedback_for_type(NULL, both[i]));
        }
        for (size_t i = 0; i < ARRAY_LEN(pythons); i++)
                CHECK(feedback_for_type("python", pythons[i]) && !feedback_for_type("javascript", pythons[i]));
        CHECK(feedback_for_type("javascript", "ReferenceError") && !feedback_for_type("python", "ReferenceError"));
        CHECK(feedback_for_type(NULL, "TimeoutError") && feedback_for_type("javascript", "MemoryError"));
}

static void syntax_hints_name_the_parts_of_the_language(void)
{
        static const struct { const char *title, *has, *lacks; } rows[] = {
                { "Python", "Python syntax error. Check indentation, brackets, colons.", "commas" },
                { "JavaScript", "JavaScript syntax error. Check brackets", "indentation" },
                { "TypeScript", "TypeScript syntax error. Check brackets", "indentation" },
                { "Bash", "Bash syntax error. Check quotes", "indentation" },
        };
        struct arena arena = { 0 };
        struct wire_exit how = { .status = EXITED(1), .has_status = 1 };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct evidence evidence = well(&how);
                evidence.language = rows[i].title;
                const char *hint = verdict_hint(status_SYNTAX_ERROR, &evidence, &arena);
                CHECK(hint && strstr(hint, rows[i].has) && !strstr(hint, rows[i].lacks));
        }
        arena_done(&arena);
}

/* What was reported decides; where nothing was, the end of standard error; and with a network none of it. */
static void a_program_that_missed_the_network_is_told_so(void)
{
        static char *const cause[] = {
                (char *)(uintptr_t) "socket.gaierror: [Errno -3] Temporary failure in name resolution"
        };
        static const char printed[] = "curl: (6) Could not resolve host: example.org\n";
        const struct bytes quiet = { (char *)(uintptr_t) "curl -s example.org", 19 },
                           own = { (char *)(uintptr_t) "securly", 7 };
        const struct { struct complaint of; bool told;
        } rows[] = {
                { { .language = "python", .type = "gaierror", .message = "[Errno -2] Name or service not known" },
                        true },
                { { .language = "python", .type = "OSError", .message = "[Errno 101] Network is unreachable" }, true },
                { { .language = "python",
                          .type = "RuntimeError",
                          .message = "no weather",
                          .traceback = cause,
                          .traceback_n = 1 },
                        true },
                { { .language = "python",
                          .type = "CalledProcessError",
                          .message = "Command '['curl', 'x']' returned non-zero exit status 6." },
                        true },
                { { .language = "python",
                          .type = "CalledProcessError",
                          .message = "Command '['grep', 'x']' returned non-zero exit status 6." },
                        false },
                { { .language = "javascript", .type = "TypeError", .message = "fetch failed" }, true },
                { { .language = "javascript", .type = "TypeError", .message = "x is not a function" }, false },
                { { .language = "typescript", .type = "Error", .message = "getaddrinfo EAI_AGAIN example.org" }, true },
                { { .language = "bash",
                          .printed = { (char *)(uintptr_t)printed, sizeof printed - 1 },
                          .exit_status = 6 },
                        true },
                { { .language = "bash", .code = quiet, .exit_status = 6 }, true },
                { { .language = "bash", .code = quiet, .exit_status = 3 }, false },
                { { .language = "bash", .code = own, .exit_status = 6 }, false },
                { { .language = "python",
                          .type = "ValueError",
                          .message = "x",
                          .printed = { (char *)(uintptr_t)printed, sizeof printed - 1 } },
                        false },
        };
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
                struct complaint of = rows[i].of;
                of.no_network = true;
                const char *advice = feedback_for(&of);
                CHECK((advice && strstr(advice, "no network in this sandbox")) == rows[i].told);
                of.no_network = false;
                advice = feedback_for(&of);
                CHECK(!advice || !strstr(advice, "network"));
        }
}

int main(void)
{
        RUN(an_exit_status_decides_and_nothing_else);
        RUN(limits_have_statuses_of_their_own);
        RUN(memory_wins_over_a_good_exit_status);
        RUN(memory_that_the_host_lacked_is_no_limit_of_the_run);
        RUN(a_refused_fork_that_was_handled_is_no_failure);
        RUN(a_full_disk_counts_only_for_a_program_that_failed);
        RUN(syntax_errors_come_from_the_runner_or_from_a_dead_parser);
        RUN(what_the_caller_did_is_told_as_such);
        RUN(rlimits_that_stand_in_are_recognised);
        RUN(the_share_of_the_processors_is_taken_for_no_sleep);
        RUN(time_on_a_run_queue_is_no_sleep);
        RUN(messages_name_the_limit_and_hints_its_field);
        RUN(a_loop_and_a_sleep_get_different_advice);
        RUN(advice_by_type_is_golden);
        RUN(advice_is_the_languages_own);
        RUN(syntax_hints_name_the_parts_of_the_language);
        RUN(a_program_that_missed_the_network_is_told_so);
        return tap_done();
}
