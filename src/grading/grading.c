/* A submission's way through its phases; see grading.h. */
#include "grading/grading_private.h"
#include "lang/extract.h"

#include <stdio.h>

#define PATIENCE_MS 10000      /* for others to end */
#define ARGUMENTS_MAX (4 * MIB)
#define REPORT_AT_ONCE_MAX (32 * KIB) /* bytes of a result made in the loop */
#define CASE_BYTES 200                /* of a case in a result, without its texts */

/* ---- small things ---- */

struct arena *grading_arena(struct grading *grading)
{
        return &grading->arena;
}

struct grade_request *grading_request(struct grading *grading)
{
        return &grading->request;
}

void grading_set_owner(struct grading *grading, const char *key, const struct run_quota *quota)
{
        snprintf(grading->owner_key, sizeof grading->owner_key, "%s", key);
        grading->quota = *quota;
}

/* ---- phases ---- */

static bool has_slots(const struct grading *grading, bool stdin)
{
        for (size_t i = 0; i < grading->slots_n; i++)
                if (!grading->slots[i].settled && HAS(grading->slots[i].given, grade_case, expected_stdout) == stdin)
                        return true;
        return false;
}

static bool has_forks(const struct grading *grading)
{
        for (size_t i = 0; i < grading->slots_n; i++)
                if (!grading->slots[i].settled && grading->slots[i].forks)
                        return true;
        return false;
}

static bool has_failed(const struct grading *grading)
{
        for (size_t i = 0; i < grading->slots_n; i++)
                if (grading->slots[i].settled && !grading->slots[i].result->passed)
                        return true;
        return false;
}

/* Settle the cases for which total_cpu_ms leaves no time. */
static void settle_late(struct grading *grading)
{
        for (size_t i = 0; i < grading->slots_n && !cases_cpu_left_ms(grading); i++)
                if (!grading->slots[i].settled && !grading->slots[i].document)
                        slot_settle(&grading->slots[i], &grading->arena, case_status_TIMEOUT,
                                "the CPU time of all cases, total_cpu_ms, is used up");
}

static bool is_over(const struct grading *grading)
{
        return grading->has_error || grading->cancelled || (grading->request.stop_on_fail && has_failed(grading));
}

/* Bytes of a case in the result, or more than REPORT_AT_ONCE_MAX. */
static size_t size_of_case(const struct case_result *result)
{
        const char *texts[] = { result->name, result->detail, result->output, result->expected, result->stdout,
                result->stderr };
        size_t size = CASE_BYTES;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                size += texts[i] ? strnlen(texts[i], REPORT_AT_ONCE_MAX + 1) : 0;
        return size;
}

static bool is_long(const struct grading *grading)
{
        size_t size = grading->result.stdout.len + grading->result.stderr.len + grading->result_bytes;
        for (size_t i = 0; i < grading->slots_n && size <= REPORT_AT_ONCE_MAX; i++)
                size += size_of_case(grading->slots[i].result);
        for (size_t i = 0; i < grading->tests_n && size <= REPORT_AT_ONCE_MAX; i++)
                size += size_of_case(&grading->tests[i]);
        return size > REPORT_AT_ONCE_MAX;
}

/* Perhaps in a helper thread. */
static void make_report(struct grading *grading)
{
        for (size_t i = 0; i < grading->slots_n; i++) {
                struct slot *slot = &grading->slots[i];
                if (!slot->settled)
                        slot_settle(slot, &grading->arena, case_status_NOT_RUN, "%s",
                                grading->has_error ? grading->result.error.message : "grading ended before it");
                json_decref(slot->document);
                slot->document = NULL;
        }
        report(grading);
        if (grading->events->encode)
                grading->events->encode(grading->owner, &grading->result);
}

static void work_report(struct job *job)
{
        make_report(job->owner);
}

static void on_reported(struct job *job)
{
        struct grading *grading = job->owner;
        if (job->dropped)
                make_report(grading);
        grading->events->done(grading->owner, &grading->result);
}

static void finish(struct grading *grading)
{
        struct workers *workers = engine_workers(grading->grader->engine);
        grading->phase = PHASE_OVER;
        if (workers && is_long(grading)) {
                worker_submit(workers, grading->owner_key, &grading->report);
                return;
        }
        make_report(grading);
        grading->events->done(grading->owner, &grading->result);
}

/* Whether another grading of the same caller goes on and does not wait. */
static bool has_company(struct grader *grader, const struct grading *but)
{
        for (struct grading *one = grader->gradings; one; one = one->next)
                if (one != but && one->phase != PHASE_NEW && one->phase != PHASE_OVER && !one->waits &&
                        strcmp(one->owner_key, but->owner_key) == 0)
                        return true;
        return false;
}

/* Wakes the caller's gradings that wait for the end of others. */
static void wake_others(struct grader *grader, const char *owner_key)
{
        for (struct grading *one = grader->gradings; one; one = one->next)
                if (one->waits && strcmp(one->owner_key, owner_key) == 0)
                        loop_timer(engine_loop(grader->engine), &one->later, 0);
}

/*
 * Grades once more after a wait for the CPU, when no other grading of the caller goes on, or after PATIENCE_MS. Waiting
 * gradings hold up no other.
 */
static bool wants_again(struct grading *grading)
{
        if (!grading->kept_waiting || grading->retried || grading->cancelled)
                return false;
        grading->retried = grading->waits = true;
        grading->patient_until_us = clock_us() + PATIENCE_MS * 1000ULL;
        grading->kept_waiting = grading->has_error = false;
        grading->result.present &= ~((uint64_t)1 << FIELD_grade_result_error);
        grading->result.status = status_COMPLETED;
        if (grading->tests_kept_waiting) {
                grading->tests_begun = false;
                grading->tests_n = 0;
        }
        for (size_t i = 0; i < grading->slots_n; i++) {
                struct slot *slot = &grading->slots[i];
                if (!slot->kept_waiting)
                        continue;
                slot->settled = slot->answered = false;
                json_decref(slot->document);
                slot->document = NULL;
        }
        grading->phase = PHASE_CASES;
        loop_timer(engine_loop(grading->grader->engine), &grading->later, 0);
        wake_others(grading->grader, grading->owner_key);
        return true;
}

static void go_on(struct grading *grading)
{
        if (grading->attempts || grading->judging || grading->waits || grading->phase == PHASE_OVER ||
                grading->later.active || grading->reviewing ||
                (grading->reference_state == REFERENCE_WAITS && !grading->cancelled))
                return;
        if (!is_over(grading) && grading->fault == FAULT_CONTROL_DUE) {
                control_go_on(grading);
                return;
        }
        if (!is_over(grading) && !grading->review_begun) {
                grading->review_begun = true;
                if (grading_review(grading))
                        return;
        }
        settle_late(grading);
        if (!is_over(grading) && grading->phase <= PHASE_CASES) {
                grading->phase = PHASE_CASES;
                if (reference_go_on(grading))
                        return;
                if (has_slots(grading, false)) {
                        cases_go_on(grading);
                        return;
                }
                if (!grading->slots_n && !HAS(&grading->request, grade_request, tests) && !grading->loaded) {
                        load_go_on(grading);
                        return;
                }
                grading->phase = PHASE_STREAMS;
        }
        if (!is_over(grading) && grading->phase == PHASE_STREAMS) {
                if (has_slots(grading, true)) {
                        if (has_forks(grading))
                                programs_go_on(grading);
                        else
                                streams_go_on(grading);
                        return;
                }
                grading->phase = PHASE_TESTS;
                if (HAS(&grading->request, grade_request, tests) && !grading->tests_begun) {
                        tests_go_on(grading);
                        return;
                }
        }
        if (wants_again(grading))
                return;
        finish(grading);
}

static void on_later(struct timer *timer)
{
        struct grading *grading = timer->owner;
        struct grader *grader = grading->grader;
        uint64_t now = clock_us();
        if (grading->waits && now < grading->patient_until_us && !grading->cancelled && has_company(grader, grading)) {
                loop_timer(engine_loop(grader->engine), timer,
                        grading->patient_until_us - now); /* or earlier, by wake_others() */
                return;
        }
        grading->waits = false;
        go_on(grading);
}

/* ---- starting ---- */

static int check_case(const struct grade_request *request, size_t i, struct csn_error *err)
{
        const struct grade_case *one = &request->cases[i];
        char field[80];
        snprintf(field, sizeof field, "/cases/%zu", i);
        bool stream = HAS(one, grade_case, expected_stdout);
        if (HAS(one, grade_case, stdin) && !stream)
                return err_field(err, field,
                        "the case has stdin and no expected_stdout; give it what the program has to write");
        if (!stream && !HAS(one, grade_case, function) && !HAS(request, grade_request, function))
                return err_field(err, field,
                        "the case calls a function, and neither it nor the request names one; give function");
        if (stream &&
                (HAS(one, grade_case, args) || HAS(one, grade_case, args_python) || HAS(one, grade_case, expected) ||
                        HAS(one, grade_case, expected_python)))
                return err_field(err, field,
                        "the case has both expected_stdout and what belongs to a call of a function; make two cases of it");
        if (HAS(one, grade_case, args) && HAS(one, grade_case, args_python))
                return err_field(err, field, "the case has args and args_python; give one of them");
        if (HAS(one, grade_case, kwargs) && HAS(one, grade_case, kwargs_python))
                return err_field(err, field, "the case has kwargs and kwargs_python; give one of them");
        if (HAS(one, grade_case, expected) && HAS(one, grade_case, expected_python))
                return err_field(err, field, "the case has expected and expected_python; give one of them");
        if ((one->args && strlen(one->args) > ARGUMENTS_MAX) || (one->kwargs && strlen(one->kwargs) > ARGUMENTS_MAX))
                return err_field(err, field, "the arguments are longer than %llu MiB", ARGUMENTS_MAX / MIB);
        if (HAS(one, grade_case, weight) && !(one->weight >= 0 && one->weight <= 1e9))
                return err_field(err, field, "weight is %g; it has to be 0 to 1e9", one->weight);
        if (HAS(one, grade_case, tolerance) && !(one->tolerance >= 0))
                return err_field(err, field, "tolerance is %g; it has to be 0 or more", one->tolerance);
        return 0;
}

static void warn_of_extraction(struct grading *grading, int mode, const char *from, size_t line)
{
        grading->result.warnings = arena_alloc(&grading->arena, sizeof *grading->result.warnings);
        struct warning *warning = &grading->result.warnings[grading->result.warnings_n++];
        SET(warning, warning, code, arena_text(&grading->arena, "extracted"));
        SET(warning, warning, text,
                arena_text(&grading->arena, "the submission begins in line %zu of %s, because extract is %s", line, from,
                        choices_extract.values[mode].text));
        MARK(&grading->result, grade_result, warnings);
}

/*
 * Take the submission out of the text.  Without a block, `code` is the submission, and `completion` has none.  The tag
 * names the language where the request names none.
 */
static void extract_submission(struct grading *grading)
{
        struct grade_request *request = &grading->request;
        const struct language *added = engine_languages(grading->grader->engine), *named = NULL;
        bool is_answer = HAS(request, grade_request, completion);
        int mode = HAS(request, grade_request, extract) ? request->extract
                : is_answer                             ? extract_LAST_FENCE
                                                        : extract_NONE;
        const struct bytes *text = is_answer ? &request->completion : &request->code;
        struct lang_extracted found;
        struct csn_error err;
        if (is_answer)
                SET(request, grade_request, code, request->completion);
        if (HAS(request, grade_request, language) && lang_find(added, request->language, &named, &err) < 0)
                return;
        if (!lang_extract(added, mode, named, text, &grading->arena, &found)) {
                grading->no_block = is_answer && mode != extract_NONE;
                return;
        }
        warn_of_extraction(grading, mode, is_answer ? "completion" : "code", found.line);
        SET(request, grade_request, code, found.program);
        if (!named && found.language)
                SET(request, grade_request, language, arena_text(&grading->arena, "%s", found.language->name));
}

static int check(struct grading *grading, struct csn_error *err)
{
        struct grade_request *request = &grading->request;
        if (HAS(request, grade_request, problem))
                return err_field(err, "/problem",
                        "stored problems are the daemon's: send the request to POST /v1/grade, or give the problem's fields");
        extract_submission(grading);
        if (lang_find(engine_languages(grading->grader->engine),
                    HAS(request, grade_request, language) ? request->language : "python", &grading->language, err) < 0)
                return -err->code;
        bool python = grading->language == &lang_python;
        if (HAS(request, grade_request, tests) && !python)
                return err_field(err, "/tests", "test code is for Python; for %s give cases", grading->language->title);
        if (HAS(request, grade_request, reference) && !python)
                return err_field(err, "/reference", "a reference is a program in Python; for %s give expected values",
                        grading->language->title);
        if (HAS(request, grade_request, setup) && !python)
                return err_field(err, "/setup", "set-up code is for Python; for %s put it before the code",
                        grading->language->title);
        if (!request->cases_n && HAS(request, grade_request, function) && !grading->language->cases)
                return err_field(err, "/function",
                        "a function is looked up in Python, JavaScript and TypeScript; for %s leave function out",
                        grading->language->title);
        if (checker_check(grading, err) < 0)
                return -err->code;
        if (HAS(request, grade_request, checker))
                SET(request, grade_request, compare, compare_PROGRAM);
        if (HAS(request, grade_request, tolerance) && !(request->tolerance >= 0))
                return err_field(err, "/tolerance", "tolerance is %g; it has to be 0 or more", request->tolerance);
        for (size_t i = 0; i < request->cases_n; i++) {
                if (check_case(request, i, err) < 0)
                        return -err->code;
                if (!HAS(&request->cases[i], grade_case, expected_stdout) && !grading->language->cases) {
                        char field[80];
                        snprintf(field, sizeof field, "/cases/%zu", i);
                        return err_field(err, field,
                                "cases that call functions are for Python, JavaScript and TypeScript; for %s give stdin and expected_stdout",
                                grading->language->title);
                }
        }
        return 0;
}

static size_t length_of_input(const struct grade_case *given)
{
        const char *texts[] = { given->args, given->args_python, given->kwargs, given->kwargs_python };
        size_t length = given->stdin.len;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                length += texts[i] ? strlen(texts[i]) : 0;
        return length;
}

struct input_length {
        size_t i, length;
};

/* Longer inputs first; inputs of equal length in their order. */
static int by_length(const void *left, const void *right)
{
        const struct input_length *a = left, *b = right;
        if (a->length != b->length)
                return a->length > b->length ? -1 : 1;
        return a->i < b->i ? -1 : a->i > b->i;
}

/* Which cases are run, of request->select and max_cases; the others are not in the result. */
static bool *select_cases(struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        size_t n = request->cases_n, most = HAS(request, grade_request, max_cases) ? request->max_cases : 0;
        bool *taken = arena_alloc(&grading->arena, (n + 1) * sizeof *taken);
        most = most && most < n ? most : n;
        if (most == n || request->select != case_select_LONGEST) {
                memset(taken, true, most * sizeof *taken);
                return taken;
        }
        struct input_length *lengths = mem_alloc((n + 1) * sizeof *lengths);
        for (size_t i = 0; i < n; i++)
                lengths[i] = (struct input_length){ i, length_of_input(&request->cases[i]) };
        qsort(lengths, n, sizeof *lengths, by_length);
        for (size_t i = 0; i < most; i++)
                taken[lengths[i].i] = true;
        free(lengths);
        return taken;
}

static void make_slots(struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        const bool *taken = select_cases(grading);
        grading->slots = arena_alloc(&grading->arena, (request->cases_n + 1) * sizeof *grading->slots);
        struct case_result *results = arena_alloc(&grading->arena, (request->cases_n + 1) * sizeof *results);
        for (size_t i = 0; i < request->cases_n; i++) {
                const struct grade_case *given = &request->cases[i];
                struct case_result *result = &results[grading->slots_n];
                if (!taken[i])
                        continue;
                grading->slots[grading->slots_n++] = (struct slot){
                        .given = given, .result = result, .forks = program_can_fork(grading, given)
                };
                SET(result, case_result, weight, HAS(given, grade_case, weight) ? given->weight : 1);
                SET(result, case_result, name,
                        HAS(given, grade_case, name) ? given->name : arena_text(&grading->arena, "case %zu", i + 1));
        }
}

struct grading *grading_new(struct grader *grader)
{
        struct grading *grading = mem_alloc(sizeof *grading);
        *grading = (struct grading){ .next = grader->gradings,
                .grader = grader,
                .go_on = go_on,
                .created_us = clock_us(),
                .later = { .fired = on_later, .owner = grading },
                .report = { .work = work_report, .done = on_reported, .owner = grading },
                .result = { .status = status_COMPLETED } };
        grader->gradings = grading;
        snprintf(grading->id, sizeof grading->id, "grade_");
        id_new(grading->id + strlen(grading->id));
        return grading;
}

void grading_refuse(struct grading *grading, const struct csn_error *error, const struct grading_events *events,
        void *owner)
{
        grading->events = events;
        grading->owner = owner;
        grading->phase = PHASE_CASES;
        grading_fail_text(grading, error->code == CSN_E_LANGUAGE ? status_UNSUPPORTED_LANGUAGE : status_BAD_REQUEST,
                csn_code_name(error->code), error->field, error->text);
        loop_timer(engine_loop(grading->grader->engine), &grading->later, 0);
}

void grading_start(struct grading *grading, bool local, const struct grading_events *events, void *owner)
{
        struct csn_error err;
        grading->local = local;
        grading->events = events;
        grading->owner = owner;
        if (check(grading, &err) < 0) {
                grading_refuse(grading, &err, events, owner);
                return;
        }
        make_slots(grading);
        grading->phase = PHASE_CASES;
        if (grading->no_block)
                grading_fail_text(grading, status_FAILED, "no_code_block", "/completion",
                        "The answer has no fenced block of code, so there is no program to grade");
        loop_timer(engine_loop(grading->grader->engine), &grading->later, 0);
}

void grading_cancel(struct grading *grading)
{
        if (grading->phase == PHASE_NEW || grading->phase == PHASE_OVER || grading->cancelled)
                return;
        grading->cancelled = true;
        grading_fail_text(grading, status_CANCELLED, csn_code_name(CSN_E_CANCELLED), NULL, "The grading was cancelled");
        grading_review_end(grading);
        for (struct attempt *one = grading->attempts; one; one = one->next)
                run_cancel(one->run);
        loop_timer(engine_loop(grading->grader->engine), &grading->later, 0);
}

void grading_free(struct grading *grading)
{
        struct grader *grader;
        if (!grading)
                return;
        grader = grading->grader;
        if (grading->report.active)
                worker_wait(engine_workers(grader->engine), &grading->report);
        while (grading->attempts)
                attempt_free(grading->attempts);
        judge_forget(grading->judging);
        grading_review_end(grading);
        reference_leave(grading);
        loop_untimer(engine_loop(grader->engine), &grading->later);
        for (struct grading **at = &grader->gradings; *at; at = &(*at)->next)
                if (*at == grading) {
                        *at = grading->next;
                        break;
                }
        wake_others(grader, grading->owner_key);
        for (size_t i = 0; i < grading->slots_n; i++)
                json_decref(grading->slots[i].document);
        grading->freed = true;
        grading->messages_n++;
        grading_put(grading, engine_workers(grader->engine));
}

struct grader *grader_open(struct engine *engine, const struct settings *settings)
{
        struct grader *grader = mem_alloc(sizeof *grader);
        *grader = (struct grader){ .engine = engine, .settings = settings };
        grading_bound_records(settings);
        return grader;
}

void grader_close(struct grader *grader)
{
        if (!grader)
                return;
        for (struct grading *one = grader->gradings, *next; one; one = next) {
                next = one->next;
                grading_free(one);
        }
        judges_close(grader->judges);
        references_close(grader->references);
        free(grader);
}
