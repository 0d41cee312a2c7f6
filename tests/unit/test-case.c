#include "lang/python/grading/case.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "tap.h"

#define ENDING "\",\"type\":\"int\",\"signs\":[]}"
#define RETURNED "{\"how\":\"returned\",\"value\":\""

static bool is_plain(const char *message)
{
        return case_is_plain(message, strlen(message), ENDING);
}

static void a_plain_result_is_one_text_between_what_we_write(void)
{
        CHECK(is_plain(RETURNED "3" ENDING));
        CHECK(is_plain(RETURNED ENDING));
        CHECK(is_plain(RETURNED "[\\\"a\\\\n\\\"]" ENDING));
}

static void what_else_is_in_it_makes_it_another(void)
{
        static const char *const others[] = {
                "",
                RETURNED,
                RETURNED "3",
                RETURNED "3\\",
                RETURNED "3\\\"",
                RETURNED "\\" ENDING,
                RETURNED "\\u0041" ENDING,
                RETURNED "\n" ENDING,
                RETURNED "\xc3\xa4" ENDING,
                RETURNED "\x7f" ENDING,
                RETURNED "3" ENDING " ",
                " " RETURNED "3" ENDING,
                RETURNED "3\",\"i\":7,\"x\":\"" ENDING,
                RETURNED "3\",\"type\":\"str\",\"signs\":[]}",
        };
        for (size_t i = 0; i < ARRAY_LEN(others); i++)
                CHECK(!is_plain(others[i]));
        CHECK(!case_is_plain(RETURNED "3\0" ENDING, sizeof(RETURNED "3\0" ENDING) - 1, ENDING));
}

/* In the new process it ends by `act`; the rest is told. */
static struct case_end run(void (*act)(int writer), double cpu_s, double wall_s, size_t message_max)
{
        static int ends[2];
        struct case_end end = { .status = -1 };
        struct csn_error err;
        int writer;
        auto_fd null = open("/dev/null", O_RDWR | O_CLOEXEC);
        CHECK(pipe(ends) == 0);   /* nobody closes the other end: the engine is there */
        struct case_rules rules = {
                .channel_fd = ends[0], .null_fd = null, .cpu_s = cpu_s, .wall_s = wall_s, .message_max = message_max
        };
        int where = case_run(&rules, fork, &end, &writer, &err);
        if (where == 1) {
                act(writer);
                _exit(0);
        }
        CHECK(where == 0);
        close(ends[0]);
        close(ends[1]);
        return end;
}

static void close_outputs(struct case_end *end)
{
        fd_close(&end->outputs[0]);
        fd_close(&end->outputs[1]);
}

static void tell(int writer)
{
        static const char message[] = "\3\0\0\0\0\0\0\0abc";
        CHECK(write(1, "out", 3) == 3);
        CHECK(write(writer, message, sizeof message - 1) == (ssize_t)sizeof message - 1);
}

static void a_case_tells_its_end_and_what_it_wrote_is_kept(void)
{
        struct stat about;
        struct case_end end = run(tell, 5, 5, 1000);
        CHECK(end.status == 0 && !end.reason);
        CHECK(end.len == 11 && memcmp(end.message + 8, "abc", 3) == 0);
        CHECK(fstat(end.outputs[0], &about) == 0 && about.st_size == 3);
        CHECK(fstat(end.outputs[1], &about) == 0 && about.st_size == 0);
        close_outputs(&end);
}

static void sleep_on(int writer)
{
        (void)writer;
        pause();
}

static void busy(int writer)
{
        for (volatile int n = writer; n >= 0; n = writer)
                ;
}

static void each_limit_ends_a_case_and_is_told(void)
{
        struct case_end end = run(sleep_on, 5, 0.05, 1000);
        CHECK(end.reason && strcmp(end.reason, "wall") == 0);
        close_outputs(&end);
        end = run(busy, 0.05, 20, 1000);
        CHECK(end.reason && strcmp(end.reason, "cpu") == 0);
        CHECK(end.cpu_s >= 0.05);
        close_outputs(&end);
}

static void write_on(int writer)
{
        static const char bytes[4096] = { [7] = 1 };
        while (write(writer, bytes, sizeof bytes) > 0)
                ;
}

static void who_tells_too_much_is_ended(void)
{
        struct case_end end = run(write_on, 5, 5, 100000);
        CHECK(end.len == 100001);
        CHECK(end.status == SIGKILL);
        close_outputs(&end);
}

static void start_another(int writer)
{
        if (fork() == 0)
                pause();
        tell(writer);
}

static void whoever_a_case_has_started_ends_with_it(void)
{
        int ends[2];
        char byte;
        CHECK(pipe(ends) == 0);
        struct case_end end = run(start_another, 5, 5, 1000);
        close(ends[1]);
        CHECK(end.status == 0);
        CHECK(read(ends[0], &byte, 1) == 0);   /* nobody has it open any more */
        close(ends[0]);
        close_outputs(&end);
}

int main(void)
{
        RUN(a_plain_result_is_one_text_between_what_we_write);
        RUN(what_else_is_in_it_makes_it_another);
        RUN(a_case_tells_its_end_and_what_it_wrote_is_kept);
        RUN(each_limit_ends_a_case_and_is_told);
        RUN(who_tells_too_much_is_ended);
        RUN(whoever_a_case_has_started_ends_with_it);
        return tap_done();
}
