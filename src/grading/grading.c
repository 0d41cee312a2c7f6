/* A submission's way through its phases; see grading.h. */
#include "grading/grading_private.h"

#include <stdio.h>

#define BUSY_MS 50             /* before the engine is asked again; twice that the next time */
#define PATIENCE_MS 10000      /* for others to end */
#define SIGNS_MAX 200
#define ARGUMENTS_MAX (4 * MIB)

/* ---- small things ---- */

struct arena *grading_arena(struct grading *grading)
{
        return &grading->arena;
}

struct grade_request *grading_request(struct grading *grading)
{
        return &grading->request;
}

const char *grading_id(const struct grading *grading)
{
        return grading->id;
}

void grading_set_owner(struct grading *grading, const char *key, size_t running_max, size_t queued_max)
{
        snprintf(grading->owner_key, sizeof grading->owner_key, "%s", key);
        grading->running_max = running_max;
        grading->queued_max = queued_max;
}

uint64_t load_ms(const struct grading *grading)
{
        const struct limits *given = &grading->request.limits, *usual = &grading->grader->settings->limits;
        return HAS(given, limits, wall_ms) ? given->wall_ms : usual->wall_ms;
}

uint64_t case_cpu_ms(const struct grading *grading, const struct grade_case *given)
{
        if (HAS(given, grade_case, cpu_ms))
                return given->cpu_ms;
        return HAS(&grading->request, grade_request, case_cpu_ms) ? grading->request.case_cpu_ms : min_u64(CASE_CPU_MS, load_ms(grading));
}

/* A program that sleeps is to end all the same.  What was kept waiting for the CPU gets more. */
uint64_t case_wall_ms(const struct grading *grading, const struct grade_case *given)
{
        uint64_t wall_ms = HAS(given, grade_case, wall_ms) && given->wall_ms ? given->wall_ms : 2 * case_cpu_ms(grading, given) + 1000;
        return grading->retried ? 2 * wall_ms : wall_ms;
}

int case_status_of(const char *name)
{
        for (size_t i = 0; name && i < choices_case_status.n; i++)
                if (strcmp(choices_case_status.values[i].text, name) == 0)
                        return (int)i;
        return -1;
}

char *grading_text(struct grading *grading, const char *text)
{
        size_t len = text ? strlen(text) : 0;
        return len ? model_utf8(&grading->arena, text, len < CASE_TEXT_MAX ? len : CASE_TEXT_MAX, &len) : NULL;
}

void grading_note(struct grading *grading, struct case_result *result, const json_t *message)
{
        char *out = grading_text(grading, json_string_value(json_object_get(message, "stdout")));
        char *error = grading_text(grading, json_string_value(json_object_get(message, "stderr")));
        json_int_t line = json_integer_value(json_object_get(message, "line"));
        SET(result, case_result, cpu_ms, json_number_value(json_object_get(message, "cpu_ms")));
        SET(result, case_result, duration_ms, json_number_value(json_object_get(message, "wall_ms")));
        if (out)
                SET(result, case_result, stdout, out);
        if (error)
                SET(result, case_result, stderr, error);
        if (line > 0)
                SET(result, case_result, line, (uint64_t)line);
}

void slot_settle(struct slot *slot, struct arena *arena, int status, const char *fmt, ...)
{
        char text[1000];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        slot->settled = true;
        slot->result->status = status;
        slot->result->passed = status == case_status_PASSED;
        slot->result->detail = arena_text(arena, "%s", text);
}

void grading_keep(struct grading *grading, const struct object *object, const void *from, void *to)
{
        struct csn_error err;
        json_t *json = model_encode(object, from);
        if (model_decode(object, json, &grading->arena, to, &err) < 0)
                log_text(LOG_ERROR, "%s: %s", object->name, err.text);   /* we wrote it ourselves */
        json_decref(json);
}

void grading_sign(struct grading *grading, const char *sign, const char *detail, const char *name)
{
        if (!grading->signs)
                grading->signs = arena_alloc(&grading->arena, SIGNS_MAX * sizeof *grading->signs);
        for (size_t i = 0; i < grading->signs_n; i++)
                if (strcmp(grading->signs[i].sign, sign) == 0 && strcmp(grading->signs[i].case_name ? grading->signs[i].case_name : "", name ? name : "") == 0)
                        return;
        if (grading->signs_n == SIGNS_MAX)
                return;
        struct grade_sign *one = &grading->signs[grading->signs_n++];
        SET(one, grade_sign, sign, arena_text(&grading->arena, "%.63s", sign));
        if (detail && *detail)
                SET(one, grade_sign, detail, arena_text(&grading->arena, "%.500s", detail));
        if (name)
                SET(one, grade_sign, case_name, arena_text(&grading->arena, "%s", name));
}

void grading_signs(struct grading *grading, const json_t *signs, const char *name)
{
        size_t i;
        json_t *one;
        json_array_foreach(signs, i, one) {
                const char *sign = json_string_value(json_object_get(one, "sign"));
                if (sign)
                        grading_sign(grading, sign, json_string_value(json_object_get(one, "detail")), name);
        }
}

/* ---- what is in the way ---- */

void grading_fail(struct grading *grading, int status, const struct failure *error)
{
        if (grading->has_error)
                return;
        grading->has_error = true;
        grading->result.status = status;
        MARK(&grading->result, grade_result, error);
        grading_keep(grading, &object_failure, error, &grading->result.error);
}

void grading_fail_text(struct grading *grading, int status, const char *code, const char *field, const char *text)
{
        struct failure error = { 0 };
        SET(&error, failure, message, arena_text(&grading->arena, "%s", text));
        if (code)
                SET(&error, failure, code, arena_text(&grading->arena, "%s", code));
        if (field && *field)
                SET(&error, failure, field, arena_text(&grading->arena, "%s", field));
        grading_fail(grading, status, &error);
}

/* ---- phases ---- */

static bool has_slots(const struct grading *grading, bool stdin)
{
        for (size_t i = 0; i < grading->slots_n; i++)
                if (!grading->slots[i].settled && HAS(grading->slots[i].given, grade_case, expected_stdout) == stdin)
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

static bool is_over(const struct grading *grading)
{
        return grading->has_error || grading->cancelled || (grading->request.stop_on_fail && has_failed(grading));
}

static void finish(struct grading *grading)
{
        grading->phase = PHASE_OVER;
        for (size_t i = 0; i < grading->slots_n; i++)
                if (!grading->slots[i].settled)
                        slot_settle(&grading->slots[i], &grading->arena, case_status_NOT_RUN, "%s",
                                    grading->has_error ? grading->result.error.message : "grading ended before it");
        report(grading);
        grading->events->done(grading->owner, &grading->result);
}

/* Another one of the same caller that does not wait. */
static bool has_company(struct grader *grader, const struct grading *but)
{
        for (struct grading *one = grader->gradings; one; one = one->next)
                if (one != but && one->phase != PHASE_NEW && one->phase != PHASE_OVER && !one->waits && strcmp(one->owner_key, but->owner_key) == 0)
                        return true;
        return false;
}

/* Others of the same caller that wait until those which go on are over. */
static void wake_others(struct grader *grader, const char *owner_key)
{
        for (struct grading *one = grader->gradings; one; one = one->next)
                if (one->waits && strcmp(one->owner_key, owner_key) == 0)
                        loop_timer(engine_loop(grader->engine), &one->later, 0);
}

/*
 * What was kept waiting for the CPU is graded once more, when nothing else of the caller's goes on, or after a while.  Nobody
 * waits for it.
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
                slot->settled = false;
                json_decref(slot->document);
                slot->document = NULL;
        }
        grading->phase = PHASE_CASES;
        loop_timer(engine_loop(grading->grader->engine), &grading->later, 0);
        wake_others(grading->grader, grading->owner_key);
        return true;
}

void grading_go_on(struct grading *grading)
{
        if (grading->attempts || grading->judging || grading->waits || grading->phase == PHASE_OVER || grading->later.active)
                return;
        if (!is_over(grading) && grading->phase <= PHASE_CASES) {
                grading->phase = PHASE_CASES;
                if (has_slots(grading, false)) {
                        cases_go_on(grading);
                        return;
                }
                grading->phase = PHASE_STREAMS;
        }
        if (!is_over(grading) && grading->phase == PHASE_STREAMS) {
                if (has_slots(grading, true)) {
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
                loop_timer(engine_loop(grader->engine), timer, grading->patient_until_us - now);   /* or the last of them wakes us */
                return;
        }
        grading->waits = false;
        grading_go_on(grading);
}

bool grading_again(struct grading *grading)
{
        if (grading->tries == BUSY_TRIES || grading->cancelled)
                return false;
        loop_timer(engine_loop(grading->grader->engine), &grading->later, (BUSY_MS << grading->tries++) * 1000ULL);
        return true;
}

/* ---- starting ---- */

static int check_case(const struct grade_request *request, size_t i, struct csn_error *err)
{
        const struct grade_case *one = &request->cases[i];
        char field[80];
        snprintf(field, sizeof field, "/cases/%zu", i);
        bool stream = HAS(one, grade_case, expected_stdout);
        if (HAS(one, grade_case, stdin) && !stream)
                return err_field(err, field, "the case has stdin and no expected_stdout; give it what the program has to write");
        if (!stream && !HAS(one, grade_case, function) && !HAS(request, grade_request, function))
                return err_field(err, field, "the case calls a function, and neither it nor the request names one; give function");
        if (stream && (HAS(one, grade_case, args) || HAS(one, grade_case, args_python) || HAS(one, grade_case, expected) || HAS(one, grade_case, expected_python)))
                return err_field(err, field, "the case has both expected_stdout and what belongs to a call of a function; make two cases of it");
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

static int check(struct grading *grading, struct csn_error *err)
{
        const struct grade_request *request = &grading->request;
        if (lang_find(engine_languages(grading->grader->engine), HAS(request, grade_request, language) ? request->language : "python", &grading->language, err) < 0)
                return -err->code;
        bool python = grading->language == &lang_python;
        if (HAS(request, grade_request, tests) && !python)
                return err_field(err, "/tests", "test code is for Python; for %s give cases", grading->language->title);
        if (HAS(request, grade_request, setup) && !python)
                return err_field(err, "/setup", "set-up code is for Python; for %s put it before the code", grading->language->title);
        if (!request->cases_n && !HAS(request, grade_request, tests))
                return err_field(err, "/cases", "there is nothing to grade by; give cases or tests");
        if (request->checker == checkers_PROGRAM && !HAS(request, grade_request, check))
                return err_field(err, "/check", "checker is \"program\", and there is none; give check {language, code}");
        if (HAS(request, grade_request, tolerance) && !(request->tolerance >= 0))
                return err_field(err, "/tolerance", "tolerance is %g; it has to be 0 or more", request->tolerance);
        for (size_t i = 0; i < request->cases_n; i++) {
                if (check_case(request, i, err) < 0)
                        return -err->code;
                if (!HAS(&request->cases[i], grade_case, expected_stdout) && !grading->language->cases) {
                        char field[80];
                        snprintf(field, sizeof field, "/cases/%zu", i);
                        return err_field(err, field, "cases that call functions are for Python, JavaScript and TypeScript; for %s give stdin and expected_stdout",
                                         grading->language->title);
                }
        }
        return 0;
}

static void make_slots(struct grading *grading)
{
        const struct grade_request *request = &grading->request;
        grading->slots_n = request->cases_n;
        grading->slots = arena_alloc(&grading->arena, (request->cases_n + 1) * sizeof *grading->slots);
        struct case_result *results = arena_alloc(&grading->arena, (request->cases_n + 1) * sizeof *results);
        for (size_t i = 0; i < request->cases_n; i++) {
                const struct grade_case *given = &request->cases[i];
                grading->slots[i] = (struct slot){ .given = given, .result = &results[i] };
                SET(&results[i], case_result, weight, HAS(given, grade_case, weight) ? given->weight : 1);
                SET(&results[i], case_result, name, HAS(given, grade_case, name) ? given->name : arena_text(&grading->arena, "case %zu", i + 1));
        }
}

struct grading *grading_new(struct grader *grader)
{
        struct grading *grading = mem_alloc(sizeof *grading);
        *grading = (struct grading){ .next = grader->gradings, .grader = grader, .created_us = clock_us(), .later = { .fired = on_later, .owner = grading },
                                     .result = { .status = status_COMPLETED } };
        grader->gradings = grading;
        snprintf(grading->id, sizeof grading->id, "grade_");
        hex_random(16, grading->id + strlen(grading->id));
        return grading;
}

void grading_refuse(struct grading *grading, const struct csn_error *error, const struct grading_events *events, void *owner)
{
        grading->events = events;
        grading->owner = owner;
        grading->phase = PHASE_CASES;
        grading_fail_text(grading, error->code == CSN_E_LANGUAGE ? status_UNSUPPORTED_LANGUAGE : status_BAD_REQUEST, csn_code_name(error->code), error->field,
                          error->text);
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
        loop_timer(engine_loop(grading->grader->engine), &grading->later, 0);
}

void grading_cancel(struct grading *grading)
{
        if (grading->phase == PHASE_NEW || grading->phase == PHASE_OVER || grading->cancelled)
                return;
        grading->cancelled = true;
        grading_fail_text(grading, status_CANCELLED, csn_code_name(CSN_E_CANCELLED), NULL, "The grading was cancelled");
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
        while (grading->attempts)
                attempt_free(grading->attempts);
        judge_forget(grading->judging);
        loop_untimer(engine_loop(grader->engine), &grading->later);
        for (struct grading **at = &grader->gradings; *at; at = &(*at)->next)
                if (*at == grading) {
                        *at = grading->next;
                        break;
                }
        wake_others(grader, grading->owner_key);
        for (size_t i = 0; i < grading->slots_n; i++)
                json_decref(grading->slots[i].document);
        arena_done(&grading->arena);
        free(grading);
}

struct grader *grader_open(struct engine *engine, const struct settings *settings)
{
        struct grader *grader = mem_alloc(sizeof *grader);
        *grader = (struct grader){ .engine = engine, .settings = settings };
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
        free(grader);
}
