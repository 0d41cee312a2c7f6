/*
 * The judge: an interpreter in a sandbox of its own, in which no submission ever runs.  It reads what came out of one, and
 * what was expected, and compares them by Python's own equality.
 *
 * What it reads is hostile all the same.  If it dies of something, or does not come back, that was one of the things that it
 * had been asked; they are asked again one by one, and one of which it dies again and again is no value that can be compared.
 */
#include "grading/parts.h"

#include <stdio.h>

#define ASK_BYTES (4 * MIB)            /* of documents in one question */
#define ASK_MS 20000                   /* for one answer */
#define IDLE_MS 10000                  /* without a question, and it goes */
#define JUDGE_MEMORY (1 * GIB)
#define KILLS_MAX 3
#define STARTS_MAX 5                   /* in a row, without an answer */

struct judging {
        struct judging *next;
        struct judge *judge;
        struct grading *grading;       /* NULL: nobody wants to know any more */
        uint64_t id;
        size_t from, to;               /* of the question that is asked now */
        size_t end;
        unsigned kills;
        bool asked;
};

struct judge {
        struct grader *grader;
        struct run *run;               /* NULL: it is not there */
        bool ready;
        bool works;                    /* it has answered */
        bool idle;                     /* nobody asks; the clock is for its end */
        bool careful;                  /* it died: one question at a time, until all are answered */
        unsigned starts;
        uint64_t ids;
        struct judging *first;
        struct timer clock, again;
};

/* ---- questions ---- */

/* The submission's text is asked about once, with its first question. */
static json_t *question(struct judging *judging)
{
        const struct grading *grading = judging->grading;
        size_t bytes = 0, len;
        struct arena arena = { 0 };
        json_t *cases = json_array();
        const char *code = judging->from == 0 ? model_utf8(&arena, grading->request.code.bytes, grading->request.code.len, &len) : "";
        for (judging->to = judging->from; judging->to < judging->end && (judging->to == judging->from || bytes < ASK_BYTES); judging->to++) {
                const struct slot *slot = &grading->slots[judging->to];
                const struct grade_case *given = slot->given;
                if (!slot->document || slot->settled)
                        continue;
                json_t *spec = json_object();
                if (HAS(given, grade_case, expected))
                        json_object_set_new(spec, "expected", json_string(given->expected));
                if (HAS(given, grade_case, expected_python))
                        json_object_set_new(spec, "expected_python", json_string(given->expected_python));
                if (HAS(given, grade_case, expected_type))
                        json_object_set_new(spec, "expected_type", json_string(given->expected_type));
                if (HAS(given, grade_case, expected_exception))
                        json_object_set_new(spec, "expected_exception", json_string(given->expected_exception));
                if (HAS(given, grade_case, tolerance))
                        json_object_set_new(spec, "tolerance", json_real(given->tolerance));
                else if (HAS(&grading->request, grade_request, tolerance))
                        json_object_set_new(spec, "tolerance", json_real(grading->request.tolerance));
                json_object_set_new(spec, "exact", json_boolean(given->exact));
                json_object_set_new(spec, "strict_type", json_boolean(given->strict_type));
                const char *value = json_string_value(json_object_get(slot->document, "value"));
                bytes += 1000 + (value ? strlen(value) : 0) + (given->expected ? strlen(given->expected) : 0);
                json_array_append_new(cases, json_pack("{s:I, s:o, s:O}", "i", (json_int_t)judging->to, "case", spec, "result", slot->document));
        }
        json_t *json = json_pack("{s:s, s:I, s:s, s:s, s:o}", "op", "judge", "id", (json_int_t)judging->id, "language", grading->language->name, "code", code,
                                 "cases", cases);
        arena_done(&arena);
        return json;
}

static void judging_free(struct judging *judging)
{
        for (struct judging **at = &judging->judge->first; *at; at = &(*at)->next)
                if (*at == judging) {
                        *at = judging->next;
                        break;
                }
        if (judging->grading)
                judging->grading->judging = NULL;
        free(judging);
}

static void start(struct judge *judge);

/* Its grading may be over, and gone, after it. */
static void finish(struct judging *judging)
{
        struct grading *grading = judging->grading;
        judging_free(judging);
        if (grading)
                grading_go_on(grading);
}

/* What it cannot be asked. */
static void give_up(struct judging *judging, const char *why)
{
        struct grading *grading = judging->grading;
        for (size_t i = judging->from; grading && i < judging->to; i++)
                if (grading->slots[i].document && !grading->slots[i].settled)
                        slot_settle(&grading->slots[i], &grading->arena, case_status_UNENCODABLE, "%s", why);
        judging->from = judging->to;
        judging->kills = 0;
}

static void ask(struct judge *judge)
{
        struct judging *judging = judge->first;
        if (!judge->run && judging && !judge->again.active)
                start(judge);
        while (judge->ready && judging) {
                struct judging *next = judging->next;
                if (judging->asked && judge->careful)
                        return;
                if (!judging->grading) {
                        if (!judging->asked)
                                judging_free(judging);
                } else if (!judging->asked) {
                        judging->id = ++judge->ids;
                        json_t *json = question(judging);
                        if (!json_array_size(json_object_get(json, "cases"))) {
                                json_decref(json);
                                finish(judging);
                                judging = judge->first;   /* anything may have come or gone */
                                continue;
                        }
                        int told = talk_json(judge->run, json);
                        judging->asked = told == 0;
                        if (told == -EMSGSIZE) {
                                give_up(judging, "what came is too large to be compared");
                                continue;
                        }
                        if (told < 0)
                                return;   /* it is asked again when this one has answered, or the next has come */
                        if (judge->idle || !judge->clock.active)
                                loop_timer(engine_loop(judge->grader->engine), &judge->clock, ASK_MS * 1000);
                        judge->idle = false;
                        if (judge->careful)
                                return;
                }
                judging = next;
        }
}

/* ---- answers ---- */

static const char *text_of(const json_t *json, const char *name)
{
        const char *text = json_string_value(json_object_get(json, name));
        return text ? text : "";
}

static void take_verdict(struct grading *grading, const struct judging *judging, json_t *verdict)
{
        json_int_t i = json_integer_value(json_object_get(verdict, "i"));
        int status = case_status_of(text_of(verdict, "status"));
        if (i < (json_int_t)judging->from || i >= (json_int_t)judging->to || status < 0)
                return;
        struct slot *slot = &grading->slots[i];
        if (slot->settled || !slot->document)
                return;
        struct case_result *result = slot->result;
        char *output = grading_text(grading, text_of(verdict, "output")), *expected = grading_text(grading, text_of(verdict, "expected"));
        slot_settle(slot, &grading->arena, status, "%s", text_of(verdict, "detail"));
        if (output)
                SET(result, case_result, output, output);
        if (expected)
                SET(result, case_result, expected, expected);
        json_decref(slot->document);
        slot->document = NULL;
}

/* Of the whole program, or of the case `i`. */
static void take_sign(struct grading *grading, const struct judging *judging, const json_t *sign)
{
        const json_t *of = json_object_get(sign, "i");
        json_int_t i = json_integer_value(of);
        bool known = of && i >= (json_int_t)judging->from && i < (json_int_t)judging->to;
        grading_sign(grading, text_of(sign, "sign"), text_of(sign, "detail"), known ? grading->slots[i].result->name : NULL);
}

static void on_said(void *owner, const char *message, size_t len)
{
        struct judge *judge = owner;
        json_t *json = len > 1 && message[0] == 'E' ? json_loadb(message + 1, len - 1, JSON_ALLOW_NUL, NULL) : NULL, *verdict, *sign;
        json_int_t id = json_integer_value(json_object_get(json, "id"));
        struct judging *judging = judge->first;
        size_t i;
        while (judging && (!judging->asked || judging->id != (uint64_t)id))
                judging = judging->next;
        if (!judging) {
                json_decref(json);
                run_cancel(judge->run);
                return;
        }
        judge->starts = 0;
        judge->works = true;
        if (judging->grading) {
                json_array_foreach(json_object_get(json, "verdicts"), i, verdict) {
                        take_verdict(judging->grading, judging, verdict);
                }
                json_array_foreach(json_object_get(json, "signs"), i, sign) {
                        take_sign(judging->grading, judging, sign);
                }
                give_up(judging, "it was not compared");   /* what has no verdict */
        }
        json_decref(json);
        judging->asked = false;
        bool others = false;
        for (struct judging *one = judge->first; one; one = one->next)
                others = others || one->asked;
        judge->idle = !others;
        loop_timer(engine_loop(judge->grader->engine), &judge->clock, (others ? ASK_MS : IDLE_MS) * 1000ULL);
        if (!judge->first->next && judging->to >= judging->end)
                judge->careful = false;
        if (!judging->grading)
                judging_free(judging);
        else if (judging->to >= judging->end)
                finish(judging);
        ask(judge);
}

/* ---- its life ---- */

static void on_greeted(void *owner)
{
        struct judge *judge = owner;
        judge->ready = talk_begin(judge->run, "judge", json_object()) == 0;
        ask(judge);
}

static void on_clock(struct timer *timer)
{
        struct judge *judge = timer->owner;
        if (judge->run)
                run_cancel(judge->run);
}

static void on_again(struct timer *timer)
{
        ask(timer->owner);
}

static void no_judge(struct judge *judge, const char *why)
{
        while (judge->first) {
                struct grading *grading = judge->first->grading;
                if (grading)
                        grading_fail_text(grading, status_ENGINE_ERROR, csn_code_name(CSN_E_SYSTEM), NULL, why);
                finish(judge->first);
        }
        judge->starts = 0;
}

static void on_done(void *owner, const struct run_result *result)
{
        struct judge *judge = owner;
        struct loop *loop = engine_loop(judge->grader->engine);
        char why[300];
        size_t asked = 0;
        snprintf(why, sizeof why, "the judge does not start: %.200s", HAS(result, run_result, error) ? result->error.message : status_name(result->status));
        for (struct judging *one = judge->first; one; one = one->next)
                asked += one->asked;
        for (struct judging *one = judge->first; one; one = one->next) {
                if (one->asked && asked == 1 && judge->works && ++one->kills >= KILLS_MAX)
                        give_up(one, "the judge could not read what came");
                one->asked = false;
        }
        judge->careful = judge->first != NULL;
        judge->ready = judge->idle = false;
        judge->starts = judge->first ? judge->starts + 1 : 0;
        loop_untimer(loop, &judge->clock);
        run_free(judge->run);
        judge->run = NULL;
        if (judge->starts > STARTS_MAX)
                no_judge(judge, why);
        else if (judge->first)
                loop_timer(loop, &judge->again, judge->starts > 1 ? 100000 : 0);
}

static void start(struct judge *judge)
{
        static const struct run_talk talk = { .greeted = on_greeted, .said = on_said };
        static const struct run_events events = { .done = on_done };
        static char nothing[] = "";
        const struct limits *most = &judge->grader->settings->ceilings;
        judge->run = run_new(judge->grader->engine);
        struct run_request *request = run_request(judge->run);
        SET(request, run_request, language, arena_text(run_arena(judge->run), "python"));
        SET(request, run_request, code, ((struct bytes){ nothing, 0 }));
        SET(request, run_request, image, image_SMALL);   /* as submissions have, so that a batch needs no other zygote */
        SET(&request->limits, limits, wall_ms, most->wall_ms);
        SET(&request->limits, limits, cpu_ms, most->cpu_ms);
        SET(&request->limits, limits, memory_bytes, min_u64(JUDGE_MEMORY, most->memory_bytes));
        MARK(request, run_request, limits);
        run_set_talk(judge->run, &talk, judge);
        run_set_companion(judge->run);
        run_set_owner(judge->run, "judge");
        run_start(judge->run, false, &events, judge);
}

void judge_ask(struct grading *grading, size_t from, size_t to)
{
        struct grader *grader = grading->grader;
        struct judging *judging = mem_alloc(sizeof *judging);
        if (!grader->judge) {
                grader->judge = mem_alloc(sizeof *grader->judge);
                *grader->judge = (struct judge){ .grader = grader, .clock = { .fired = on_clock, .owner = grader->judge },
                                                 .again = { .fired = on_again, .owner = grader->judge } };
        }
        struct judging **last = &grader->judge->first;
        while (*last)
                last = &(*last)->next;
        *judging = (struct judging){ .judge = grader->judge, .grading = grading, .from = from, .to = from, .end = to };
        *last = grading->judging = judging;
        /* From the loop, so that nobody is told within his own call. */
        loop_timer(engine_loop(grader->engine), &grader->judge->again, 0);
}

/* One that was asked stays until it is answered: the judge has it. */
void judge_forget(struct judging *judging)
{
        if (!judging)
                return;
        judging->grading->judging = NULL;
        judging->grading = NULL;
        if (!judging->asked)
                judging_free(judging);
}

void judge_close(struct judge *judge)
{
        if (!judge)
                return;
        struct loop *loop = engine_loop(judge->grader->engine);
        for (struct judging *one = judge->first, *next; one; one = next) {
                next = one->next;
                judging_free(one);
        }
        loop_untimer(loop, &judge->clock);
        loop_untimer(loop, &judge->again);
        run_free(judge->run);
        free(judge);
}
