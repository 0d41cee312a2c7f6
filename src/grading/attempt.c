/*
 * One run of a submission in a grading.
 *
 * A helper thread parses a long message of the runner.  Meanwhile the runner's messages are not read, and messages
 * already read wait, so messages keep their order.  The end of the run waits for these messages, too.
 */
#include "grading/grading_private.h"

#include <stdio.h>

#define AT_ONCE_MAX (64 * KIB) /* bytes of a message parsed in the loop */
#define KEPT_WAITING 4     /* a ready run without CPU for 1/4 of its time limit was kept waiting */

/* ---- messages of the runner ---- */

void attempt_break(struct attempt *attempt)
{
        attempt->broken = true;
        run_cancel(attempt->run);
}

struct incoming {
        struct incoming *next;
        struct job job;
        struct attempt *attempt;   /* NULL: the attempt was freed */
        struct buf raw;
        json_t *json;              /* of a long message, after its job; NULL: the message is not valid */
};

/* The first byte names the receiver of the message. */
static bool is_for_peer(const struct attempt *attempt, const struct buf *raw)
{
        return raw->len > 1 && raw->bytes[0] == 'P' && attempt->kind->passed_on;
}

static json_t *parse(const struct buf *raw)
{
        bool cheap = raw->len > 1 && raw->bytes[0] == 'E' &&
                !model_has_many_parts(raw->bytes + 1, raw->len - 1, MESSAGE_PARTS_MAX);
        return cheap ? json_loadb(raw->bytes + 1, raw->len - 1, JSON_ALLOW_NUL, NULL) : NULL;
}

/* Takes the reference. */
static void take_json(struct attempt *attempt, json_t *json)
{
        const char *op = json_string_value(json_object_get(json, "op"));
        if (op && strcmp(op, "set_up") == 0)
                attempt->set_up = true;
        else if (op)
                attempt->kind->said(attempt, op, json);
        else
                attempt_break(attempt);
        json_decref(json);
}

static void work_incoming(struct job *job)
{
        struct incoming *incoming = job->owner;
        incoming->json = parse(&incoming->raw);
        buf_done(&incoming->raw);
}

static void incoming_free(struct incoming *incoming)
{
        json_decref(incoming->json);
        buf_done(&incoming->raw);
        free(incoming);
}

static void settle(struct attempt *attempt, const struct run_result *result);
static void on_parsed(struct job *job);

static bool is_long(const struct attempt *attempt, const struct buf *raw)
{
        return raw->len > AT_ONCE_MAX && !is_for_peer(attempt, raw) && engine_workers(attempt->grading->grader->engine);
}

/* Takes messages up to the next long message, which goes to a helper thread. */
static void take_incoming(struct attempt *attempt)
{
        while (attempt->incoming) {
                struct incoming *first = attempt->incoming;
                bool is_wanted = !attempt->broken && !attempt->late && !attempt->grading->cancelled;
                if (is_wanted && is_long(attempt, &first->raw)) {
                        struct grading *grading = attempt->grading;
                        first->job = (struct job){ .work = work_incoming, .done = on_parsed, .owner = first };
                        worker_submit(engine_workers(grading->grader->engine), grading->owner_key, &first->job);
                        return;
                }
                attempt->incoming = first->next;
                if (is_wanted && is_for_peer(attempt, &first->raw))
                        attempt->kind->passed_on(attempt, first->raw.bytes, first->raw.len);
                else if (is_wanted)
                        take_json(attempt, parse(&first->raw));
                incoming_free(first);
        }
        if (attempt->result)
                settle(attempt, attempt->result);
        else
                run_hold_messages(attempt->run, false);
}

static void on_parsed(struct job *job)
{
        struct incoming *incoming = job->owner;
        struct attempt *attempt = incoming->attempt;
        if (attempt) {
                attempt->incoming = incoming->next;
                if (!attempt->broken && !attempt->late && !attempt->grading->cancelled && !job->dropped)
                        take_json(attempt, json_incref(incoming->json));
                take_incoming(attempt);
        }
        incoming_free(incoming);
}

static void on_said(void *owner, struct buf *message)
{
        struct attempt *attempt = owner;
        struct incoming **last = &attempt->incoming;
        if (!attempt->incoming && !is_long(attempt, message)) {
                if (is_for_peer(attempt, message))
                        attempt->kind->passed_on(attempt, message->bytes, message->len);
                else
                        take_json(attempt, parse(message));
                return;
        }
        while (*last)
                last = &(*last)->next;
        *last = mem_alloc(sizeof **last);
        **last = (struct incoming){ .attempt = attempt, .raw = *message };
        *message = (struct buf){ 0 };
        if (attempt->incoming != *last)
                return;
        run_hold_messages(attempt->run, true);
        take_incoming(attempt);
}

static void on_broke(void *owner)
{
        struct attempt *attempt = owner;
        attempt->broken = true;
}

static void on_hello(void *owner)
{
        struct attempt *attempt = owner;
        attempt->kind->hello_received(attempt);
}

static void on_late(struct timer *timer)
{
        struct attempt *attempt = timer->owner;
        if (attempt->ready)
                return;
        attempt->late = true;
        run_cancel(attempt->run);
}

/* If the runner has ended, the end of its run follows. */
static void on_begin_made(void *owner, struct send_queue_packet *frames)
{
        struct attempt *attempt = owner;
        struct loop *loop = engine_loop(attempt->grading->grader->engine);
        attempt->begin = NULL;
        if (!frames) {
                attempt->kind->too_long(attempt);
                return;
        }
        if (run_send_frames(attempt->run, frames) < 0)
                return;
        loop_timer(loop, &attempt->clock, load_ms(attempt->grading) * 1000);
        if (attempt->kind->begun)
                attempt->kind->begun(attempt);
}

void attempt_begin(struct attempt *attempt, struct message *message)
{
        message_set_role(message, attempt->kind->role);
        attempt->begin = message_make(message, on_begin_made, attempt);
}

/* ---- its life ---- */

void attempt_free(struct attempt *attempt)
{
        struct grading *grading = attempt->grading;
        for (struct attempt **at = &grading->attempts; *at; at = &(*at)->next)
                if (*at == attempt) {
                        *at = attempt->next;
                        break;
                }
        loop_untimer(engine_loop(grading->grader->engine), &attempt->clock);
        message_forget(attempt->begin);
        for (struct incoming *one = attempt->incoming, *next; one; one = next) {
                next = one->next;
                one->attempt = NULL;
                if (!one->job.active || worker_cancel(engine_workers(grading->grader->engine), &one->job))
                        incoming_free(one);
        }
        run_free(attempt->run);
        free(attempt);
}

/* The layers, and why packages are not installed, of the first run. */
static void keep_packages(struct grading *grading, const struct run_result *result)
{
        const struct grade_request *given = &grading->request;
        struct grade_result *whole = &grading->result;
        const struct warning *own = whole->warnings;   /* of extraction, or NULL */
        struct run_result kept = { 0 };
        bool named = given->packages_n || given->layers_n || HAS(given, grade_request, requirements) ||
                HAS(given, grade_request, lock);
        if (!named || grading->has_packages)
                return;
        grading->has_packages = true;
        grading_keep(grading, &object_run_result, result, &kept);
        whole->layers = kept.layers;
        whole->layers_n = kept.layers_n;
        if (kept.layers_n)
                MARK(whole, grade_result, layers);
        whole->warnings =
                arena_alloc(&grading->arena, (kept.warnings_n + whole->warnings_n + 1) * sizeof *kept.warnings);
        for (size_t i = 0; i < whole->warnings_n; i++)
                whole->warnings[i] = own[i];
        for (size_t i = 0; i < kept.warnings_n; i++)
                if (strncmp(kept.warnings[i].code, "packages_", 9) == 0)
                        whole->warnings[whole->warnings_n++] = kept.warnings[i];
        if (whole->warnings_n)
                MARK(whole, grade_result, warnings);
}

static void settle(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        grading->runs++;
        grading->result.cpu_ms += result->usage.cpu_ms;
        if (result->usage.memory_peak_bytes > grading->result.memory_peak_bytes)
                SET(&grading->result, grade_result, memory_peak_bytes, result->usage.memory_peak_bytes);
        if (HAS(result, run_result, boundary) && !grading->has_boundary) {
                grading->has_boundary = true;
                MARK(&grading->result, grade_result, boundary);
                grading_keep(grading, &object_boundary, &result->boundary, &grading->result.boundary);
        }
        keep_packages(grading, result);
        if (grading->events->ran)
                grading->events->ran(grading->owner, attempt->run, result);
        attempt->kind->done(attempt, result);
        attempt_free(attempt);
        grading->go_on(grading);
}

static void on_done(void *owner, const struct run_result *result)
{
        struct attempt *attempt = owner;
        message_forget(attempt->begin);
        attempt->begin = NULL;
        if (attempt->incoming)
                attempt->result = result;
        else
                settle(attempt, result);
}

static const struct run_message_handler message_handler = {
        .hello_received = on_hello, .said = on_said, .protocol_error = on_broke
};

static char *copy(struct attempt *attempt, const char *text)
{
        return arena_copy(run_arena(attempt->run), text, strlen(text));
}

/*
 * The caller chooses the packages, not the submission, so test code and checkers have the packages, too.  A judge
 * serves several callers, and has none.
 */
static void name_packages(const struct grade_request *given, struct run_request *request)
{
        if (HAS(given, grade_request, requirements))
                SET(request, run_request, requirements, given->requirements);
        if (HAS(given, grade_request, lock))
                SET(request, run_request, lock, given->lock);
        if (given->packages_n) {
                request->packages_n = given->packages_n;
                SET(request, run_request, packages, given->packages);
        }
        if (given->layers_n) {
                request->layers_n = given->layers_n;
                SET(request, run_request, layers, given->layers);
        }
}

/* The grading's arena outlives the run. */
struct attempt *attempt_new(struct grading *grading, const struct attempt_kind *kind, const struct bytes *other)
{
        const struct grade_request *given = &grading->request;
        struct attempt *attempt = mem_alloc(sizeof *attempt);
        *attempt = (struct attempt){ .next = grading->attempts,
                .grading = grading,
                .kind = kind,
                .run = run_new(grading->grader->engine),
                .clock = { .fired = on_late, .owner = attempt } };
        grading->attempts = attempt;
        struct run_request *request = run_request(attempt->run);
        SET(request, run_request, language, copy(attempt, other ? lang_python.name : grading->language->name));
        SET(request, run_request, code, other ? *other : given->code);
        SET(request, run_request, limits, given->limits);
        if (HAS(given, grade_request, profile))
                SET(request, run_request, profile, given->profile);
        if (HAS(given, grade_request, image))
                SET(request, run_request, image, copy(attempt, given->image));
        else if (!HAS(given, grade_request, profile))
                SET(request, run_request, image, copy(attempt, prelude_image(grading)));
        if (HAS(given, grade_request, id))
                SET(request, run_request, task_id, given->id);
        if (!other && HAS(given, grade_request, policy))
                SET(request, run_request, policy, given->policy);
        if (!other && HAS(given, grade_request, forbidden_modules)) {
                request->forbidden_modules_n = given->forbidden_modules_n;
                SET(request, run_request, forbidden_modules, given->forbidden_modules);
        }
        if (!other && given->allow_imports_n) {
                request->allow_imports_n = given->allow_imports_n;
                SET(request, run_request, allow_imports, given->allow_imports);
        }
        if (!other && given->env_n) {
                request->env_n = given->env_n;
                SET(request, run_request, env, given->env);
        }
        if (!other && given->files_n) {
                request->files_n = given->files_n;
                SET(request, run_request, files, given->files);
        }
        name_packages(given, request);
        /* The submission has been reviewed (review.c); test code and checkers are the caller's own. */
        if (other || grading->review.answered)
                run_set_unreviewed(attempt->run);
        else if (HAS(given, grade_request, review))
                SET(request, run_request, review, given->review);
        run_set_owner(attempt->run, grading->owner_key);
        run_set_quota(attempt->run, &grading->quota);
        if (kind->role)
                run_set_message_handler(attempt->run, &message_handler, attempt);
        return attempt;
}

void attempt_limit(struct attempt *attempt, uint64_t cpu_ms, uint64_t wall_ms)
{
        struct run_request *request = run_request(attempt->run);
        const struct limits *most = &attempt->grading->grader->settings->ceilings;
        SET(&request->limits, limits, cpu_ms, min_u64(cpu_ms, most->cpu_ms));
        SET(&request->limits, limits, wall_ms, min_u64(wall_ms, most->wall_ms));
        MARK(request, run_request, limits);
}

void attempt_start(struct attempt *attempt)
{
        static const struct run_events events = { .done = on_done };
        struct grading *grading = attempt->grading;
        struct csn_error err;
        if (grading->events->begins && grading->events->begins(grading->owner, attempt->run, &err) < 0)
                run_refuse(attempt->run, &err, &events, attempt);
        else
                run_start(attempt->run, grading->local, &events, attempt);
}

/* ---- the end of a run ---- */

bool kept_waiting(double waited_ms, uint64_t wall_ms)
{
        return waited_ms * KEPT_WAITING >= (double)wall_ms;
}

bool status_is_ours(int status)
{
        return status == status_CAPACITY || status == status_ENGINE_ERROR;
}

bool status_is_final(int status)
{
        return status == status_BLOCKED || status == status_SYNTAX_ERROR || status == status_CANCELLED ||
                status == status_DEPENDENCY_FAILED || status == status_UNSUPPORTED_LANGUAGE ||
                status == status_ISOLATION_UNAVAILABLE || status == status_BAD_REQUEST;
}

/* The time limit that ended the run; for another limit in the record, the duration of the run. */
static double seconds_of(const struct attempt *attempt, const struct run_result *result)
{
        const char *limit = HAS(&result->error, failure, limit) ? result->error.limit : "";
        return (attempt->late                            ? (double)load_ms(attempt->grading)
                        : strcmp(limit, "wall_ms") == 0 ? (double)result->limits.wall_ms
                                                         : result->usage.wall_ms) /
                1000;
}

int attempt_verdict(const struct attempt *attempt, const struct run_result *result, const char **ret_text)
{
        static char text[200];
        *ret_text = text;
        if (attempt->broken) {
                snprintf(text, sizeof text, "it wrote to the channel of its runner");
                return case_status_CRASH;
        }
        switch (attempt->late ? status_TIMEOUT : result->status) {
        case status_TIMEOUT:
                snprintf(text, sizeof text, "Timeout after %.3gs", seconds_of(attempt, result));
                return case_status_TIMEOUT;
        case status_MEMORY_EXCEEDED:
                snprintf(text, sizeof text, "Memory limit of %llu MiB exceeded",
                        (unsigned long long)(result->limits.memory_bytes / MIB));
                return case_status_MEMORY_EXCEEDED;
        case status_OUTPUT_LIMIT:
                snprintf(text, sizeof text, "More than %llu bytes of output",
                        (unsigned long long)result->limits.output_bytes);
                return case_status_OUTPUT_LIMIT;
        default:
                if (HAS(result, run_result, signal))
                        snprintf(text, sizeof text, "ended by signal %lld before there was an answer",
                                (long long)result->signal);
                else
                        snprintf(text, sizeof text, "exit(%lld) before there was an answer",
                                (long long)result->exit_code);
                return case_status_CRASH;
        }
}

void attempt_keep_streams(struct attempt *attempt, const struct run_result *result)
{
        struct arena *arena = &attempt->grading->arena;
        struct grade_result *whole = &attempt->grading->result;
        whole->stdout =
                (struct bytes){ arena_copy(arena, result->stdout.bytes ? result->stdout.bytes : "", result->stdout.len),
                        result->stdout.len };
        whole->stderr =
                (struct bytes){ arena_copy(arena, result->stderr.bytes ? result->stderr.bytes : "", result->stderr.len),
                        result->stderr.len };
}

bool attempt_ended_in_setup(const struct attempt *attempt, const struct run_result *result)
{
        const struct grade_request *request = &attempt->grading->request;
        bool there = HAS(request, grade_request, setup) && *request->setup && attempt->kind->role;
        return there && !attempt->set_up && !status_is_ours(result->status) &&
                (attempt->late || !status_is_final(result->status));
}

/* The last line of the set-up in a traceback; 0: the traceback has none. */
static unsigned long line_in_setup(const struct failure *error)
{
        static const char place[] = "File \"<setup>\", line ";
        unsigned long line = 0;
        for (size_t i = 0; i < error->traceback_n; i++) {
                const char *at = strstr(error->traceback[i], place);
                if (at)
                        line = strtoul(at + strlen(place), NULL, 10);
        }
        return line;
}

static void blame_setup(struct attempt *attempt, const struct run_result *result)
{
        const char *text;
        char why[600];
        attempt_verdict(attempt, result, &text);
        unsigned long line = line_in_setup(&result->error);
        if (HAS(result, run_result, error) && HAS(&result->error, failure, type) && !attempt->late && line)
                snprintf(why, sizeof why, "the set-up failed in line %lu: %.100s: %.400s", line, result->error.type,
                        result->error.message);
        else if (HAS(result, run_result, error) && HAS(&result->error, failure, type) && !attempt->late)
                snprintf(why, sizeof why, "the set-up failed: %.100s: %.400s", result->error.type,
                        result->error.message);
        else
                snprintf(why, sizeof why, "the set-up failed: %.400s", text);
        grading_fail_text(attempt->grading, status_BAD_REQUEST, csn_code_name(CSN_E_INPUT), "/setup", why);
}

/* A recurring fault is the submission's (faults.c): of the case with standard input, else of the whole grading. */
static void blame_submission(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        bool alone = grading->phase == PHASE_STREAMS && !attempt->kind->role;
        struct slot *slot = alone ? &grading->slots[attempt->from] : NULL;
        grading->fault = FAULT_NONE;
        grading_sign(grading, "breaks_engine", result->error.message, slot ? slot->result->name : NULL);
        if (slot)
                slot_settle(slot, &grading->arena, case_status_ERROR, "the submission breaks its sandbox: %s",
                        result->error.message);
        else
                grading_fail_text(grading, status_FAILED, "breaks_engine", NULL,
                        "the submission breaks its sandbox each time, and an empty program does not");
}

void attempt_trouble(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        bool ours = attempt->late || attempt->broken, early = !ours && result->status == status_COMPLETED;
        const char *text;
        attempt_keep_streams(attempt, result);
        if (status_is_ours(result->status) && grading->fault == FAULT_RECURRED) {
                blame_submission(attempt, result);
                return;
        }
        if (attempt->late && kept_waiting(result->usage.waited_ms, load_ms(grading)))
                grading->kept_waiting = grading->tests_kept_waiting = true;
        if (result->findings_n) {
                struct run_result kept = { 0 };
                grading_keep(grading, &object_run_result, result, &kept);
                grading->result.findings = kept.findings;
                grading->result.findings_n = kept.findings_n;
        }
        if (attempt_ended_in_setup(attempt, result)) {
                blame_setup(attempt, result);
                return;
        }
        if (early)
                grading_sign(grading, "early_exit", "it ended as it was loaded", NULL);
        if (HAS(result, run_result, error) && !ours) {
                grading_fail(grading, result->status, &result->error);
        } else {
                attempt_verdict(attempt, result, &text);
                grading_fail_text(grading,
                        attempt->late                      ? status_TIMEOUT
                                : attempt->broken || early ? status_FAILED
                                                           : result->status,
                        NULL, NULL, text);
        }
}
