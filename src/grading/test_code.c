/*
 * Test code: runs in one sandbox and the submission in another; messages between the two pass through here, unread.
 * With shared_process both are in one sandbox, by the caller's request, and the result says so.
 */
#include "grading/grading_private.h"

#include <stdio.h>

#define TESTS_MAX 10000
#define LEAVE_MS 500                   /* for the submission to end when the tests are over */

static struct attempt *other_of(const struct attempt *attempt)
{
        for (struct attempt *one = attempt->grading->attempts; one; one = one->next)
                if (one != attempt)
                        return one;
        return NULL;
}

/* ---- messages between the sandboxes ---- */

static void pass_on(struct attempt *attempt, const char *message, size_t len)
{
        struct attempt *other = other_of(attempt);
        int said = other ? run_send_message(other->run, message, len) : 0;
        if (said < 0 && said != -EPIPE)
                attempt_break(attempt);
}

/* ---- the tests ---- */

static void begin_tests(struct attempt *attempt)
{
        const struct grade_request *request = &attempt->grading->request;
        const char *setup = request->setup ? request->setup : "";
        json_int_t test_ms =
                (json_int_t)(HAS(request, grade_request, case_cpu_ms) ? request->case_cpu_ms : CASE_CPU_MS);
        json_t *members = json_pack("{s:n, s:I, s:b, s:i, s:[sss]}", "shared", "test_ms", test_ms,
                "stop_on_fail", request->stop_on_fail, "output_max", CASE_OUTPUT, "modules", "solution", "submission",
                "main");
        json_object_set_new(members, "entry_point",
                request->entry_point ? json_string(request->entry_point) : json_null());
        struct message *begin = message_new(attempt->grading, "begin", members);
        message_add_text(begin, "setup", setup, strlen(setup));
        prelude_add(attempt->grading, begin);
        if (request->shared_process)
                message_add_text(begin, "shared", request->code.bytes, request->code.len);
        attempt->ready = true;   /* its limits are the run's */
        attempt_begin(attempt, begin);
}

static struct case_result *add_test(struct grading *grading)
{
        if (grading->tests_n == grading->tests_size) {
                size_t size = grading->tests_size ? 2 * grading->tests_size : 16;
                struct case_result *more = arena_alloc(&grading->arena, size * sizeof *more);
                if (grading->tests_n)
                        memcpy(more, grading->tests, grading->tests_n * sizeof *more);
                grading->tests = more;
                grading->tests_size = size;
        }
        struct case_result *test = &grading->tests[grading->tests_n++];
        *test = (struct case_result){ 0 };
        SET(test, case_result, weight, 1);
        return test;
}

static void add_verdict(struct grading *grading, const char *name, int status, const char *detail)
{
        struct case_result *test = add_test(grading);
        SET(test, case_result, name, arena_text(&grading->arena, "%s", name));
        SET(test, case_result, status, status);
        SET(test, case_result, passed, status == case_status_PASSED);
        SET(test, case_result, detail, arena_text(&grading->arena, "%s", detail));
}

/* "ZeroDivisionError: division by zero" */
static char *type_in(struct grading *grading, const char *detail)
{
        size_t len = strspn(detail, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.");
        return len && (detail[len] == ':' || !detail[len]) ? arena_text(&grading->arena, "%.*s", (int)len, detail)
                                                           : NULL;
}

static void take_test(struct attempt *attempt, json_t *message)
{
        struct grading *grading = attempt->grading;
        char *name = grading_text(grading, json_string_value(json_object_get(message, "name")));
        char *detail = grading_text(grading, json_string_value(json_object_get(message, "detail")));
        int status = case_status_of(json_string_value(json_object_get(message, "status")));
        status = status < 0 ? case_status_ERROR : status;
        if (grading->tests_n >= TESTS_MAX || !name) {
                attempt_break(attempt);
                return;
        }
        add_verdict(grading, name, status, detail ? detail : "OK");
        struct case_result *test = &grading->tests[grading->tests_n - 1];
        char *type = status == case_status_ERROR && detail ? type_in(grading, detail) : NULL;
        grading_note(grading, test, message);
        if (type)
                SET(test, case_result, error_type, type);
}

static void leave(struct attempt *subject);

static bool again(struct grading *grading, const struct run_result *result)
{
        if (!grading_again(grading, result))
                return false;
        grading->phase = PHASE_STREAMS;   /* this phase comes next */
        grading->tests_begun = false;
        grading->tests_n = 0;
        return true;
}

static void tests_said(struct attempt *attempt, const char *op, json_t *message)
{
        if (strcmp(op, "test") == 0) {
                take_test(attempt, message);
        } else if (strcmp(op, "end") == 0) {
                attempt->ended = true;
                grading_signs(attempt->grading, json_object_get(message, "signs"), NULL);
        } else {
                attempt_break(attempt);
        }
}

static void tests_done(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        struct attempt *subject = other_of(attempt);
        const char *text;
        if (grading->request.shared_process)
                attempt_keep_streams(attempt, result);
        if (subject)
                leave(subject);
        if (attempt->ended || grading->cancelled || grading->has_error)
                return;
        if (status_is_ours(result->status) && again(grading, result))
                return;
        /* A run cancelled here for a broken channel has the status CANCELLED, which would mask the grading. */
        if (HAS(result, run_result, error) && !attempt->broken &&
                (result->status == status_SYNTAX_ERROR || status_is_ours(result->status) ||
                        status_is_final(result->status))) {
                struct failure error = result->error;
                SET(&error, failure, field, arena_text(&grading->arena, "/tests"));
                grading_fail(grading, result->status == status_SYNTAX_ERROR ? status_BAD_REQUEST : result->status,
                        &error);
                return;
        }
        if (grading->request.shared_process && attempt_ended_in_setup(attempt, result)) {
                attempt_trouble(attempt, result);
                return;
        }
        int status = attempt_verdict(attempt, result, &text);
        if (status == case_status_TIMEOUT && kept_waiting(result->usage.waited_ms, result->limits.wall_ms))
                grading->kept_waiting = grading->tests_kept_waiting = true;
        add_verdict(grading, grading->tests_n ? "the rest" : "tests", status,
                HAS(result, run_result, error) && !attempt->broken ? result->error.message : text);
}

/* ---- the submission ---- */

static void begin_subject(struct attempt *attempt)
{
        const struct grade_request *request = &attempt->grading->request;
        const char *setup = request->setup ? request->setup : "";
        struct message *begin = message_new(attempt->grading, "begin", json_object());
        message_add_text(begin, "setup", setup, strlen(setup));
        prelude_add(attempt->grading, begin);
        attempt_begin(attempt, begin);
}

/* The submission is loaded: the tests, in a sandbox of their own. */
static void start_tests(struct attempt *attempt)
{
        static const struct attempt_kind kind = { .role = "tests",
                .hello_received = begin_tests,
                .said = tests_said,
                .passed_on = pass_on,
                .too_long = attempt_break,
                .done = tests_done };
        struct grading *grading = attempt->grading;
        const struct bytes tests = { grading->request.tests, strlen(grading->request.tests) };
        struct attempt *other = attempt_new(grading, &kind, &tests);
        attempt_limit(other, load_ms(grading), 2 * load_ms(grading) + 1000);
        run_set_skips_queue(other->run);
        attempt_start(other);
}

static void subject_said(struct attempt *attempt, const char *op, json_t *message)
{
        if (strcmp(op, "ready") == 0)
                attempt->ready = true;
        else if (strcmp(op, "signs") == 0)
                grading_signs(attempt->grading, json_object_get(message, "signs"), NULL);
        else
                attempt_break(attempt);
}

/* The submission had LEAVE_MS after the tests for the rest of its output. */
static void on_leave(struct timer *timer)
{
        struct attempt *subject = timer->owner;
        run_cancel(subject->run);
}

static void leave(struct attempt *subject)
{
        subject->ended = true;
        subject->clock.fired = on_leave;
        message_send_json(subject->run, json_pack("{s:s}", "op", "end"));
        loop_timer(engine_loop(subject->grading->grader->engine), &subject->clock, LEAVE_MS * 1000);
}

static void subject_done(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        struct attempt *tests = other_of(attempt);
        const char *text;
        attempt_keep_streams(attempt, result);
        if (attempt->ended || grading->cancelled)
                return;
        if (status_is_ours(result->status) && !grading->tests_n && again(grading, result)) {
                if (tests) {
                        tests->ended = true;
                        run_cancel(tests->run);
                }
                return;
        }
        int status = attempt_verdict(attempt, result, &text);
        if (status == case_status_TIMEOUT && kept_waiting(result->usage.waited_ms, result->limits.wall_ms))
                grading->kept_waiting = grading->tests_kept_waiting = true;
        if (!attempt->ready)
                attempt_trouble(attempt, result);
        if (!tests)
                return;
        if (grading->has_error) {
                tests->ended = true;
                run_cancel(tests->run);
        } else {
                message_send_json(tests->run,
                        json_pack("{s:s, s:s, s:s}", "op", "peer_gone", "status",
                                choices_case_status.values[status].text, "message", text));
        }
}

/* ---- the phase ---- */

void tests_go_on(struct grading *grading)
{
        static const struct attempt_kind subject = { .role = "subject",
                .hello_received = begin_subject,
                .said = subject_said,
                .passed_on = pass_on,
                .too_long = attempt_break,
                .begun = start_tests,
                .done = subject_done };
        static const struct attempt_kind shared = { .role = "tests",
                .hello_received = begin_tests,
                .said = tests_said,
                .too_long = attempt_break,
                .done = tests_done };
        struct attempt *attempt;
        grading->tests_begun = true;
        if (grading->request.shared_process) {
                const struct bytes tests = { grading->request.tests, strlen(grading->request.tests) };
                attempt = attempt_new(grading, &shared, &tests);
        } else {
                attempt = attempt_new(grading, &subject, NULL);
        }
        attempt_limit(attempt, load_ms(grading), 2 * load_ms(grading) + 1000);
        attempt_start(attempt);
}
