/*
 * Judges: interpreters in sandboxes of their own, in which no submission ever runs.  A judge reads a submission's
 * output and the expected values, and compares both by Python's own equality.
 *
 * The output is hostile all the same.  So no submission can hold up another submission:
 *
 *   - There are several judges, and each has one question at a time.
 *   - A first question has QUICK_CPU_MS of CPU time.  A longer grading goes on with the last judge only, and the other
 *     judges stay free for short questions.
 *   - All questions of a grading together have a budget of CPU time.  Cases beyond the budget have failed.
 *   - If a judge ends, its question goes to the last judge, one case at a time.  A case fails after the end of
 *     KILLS_MAX judges.
 */
#include "grading/grading_private.h"

#include <sched.h>
#include <stdio.h>

#define JUDGES_MIN 2
#define JUDGES_MAX 4
#define ASK_BYTES (4 * MIB)            /* of documents in a question */
#define ASK_CASES 500                  /* cases in a question, whose answer the loop parses */
#define QUICK_CPU_MS 1000              /* for a first question */
#define SLOW_CPU_MS 5000               /* for each further question */
#define BUDGET_CPU_MS 10000            /* for all questions of a grading, */
#define BUDGET_CPU_MS_PER_MIB 1000     /* and for each MiB of its values */
#define PATIENCE 6                     /* an answer may take so many times its CPU time */
#define AGAIN_MS 20                    /* until an unsent question is tried again */
#define IDLE_MS 10000                  /* without a question, and a judge goes */
#define JUDGE_MEMORY (1 * GIB)
#define KILLS_MAX 2
#define STARTS_MAX 5                   /* in a row, without a judge's HELLO */

struct judging {
        struct judging *next;
        struct judges *judges;
        struct grading *grading;       /* NULL: the grading has ended */
        struct judge *asked;           /* the judge with its question now, or NULL */
        size_t from, to;               /* of the current question */
        size_t end;
        bool slow;                     /* for the last judge only */
        bool single;                   /* each case in a question of its own */
        unsigned kills;
};

struct judge {
        struct judges *judges;
        struct run *run;               /* NULL: the judge does not run */
        bool hello_received, ready;
        uint64_t id, asked_us;         /* of its question */
        struct judging *judging;       /* the owner of its question, or NULL */
        struct message *question;      /* made, but not sent yet; or NULL */
        struct timer clock;            /* for its answer, or, without a question, for its end */
};

struct judges {
        struct grader *grader;
        struct judge all[JUDGES_MAX];
        size_t n;
        unsigned starts;
        uint64_t ids;
        struct judging *first;
        struct timer again;
};

/* ---- questions ---- */

static bool is_of_trainer(int compare)
{
        return compare == compare_LCB || compare == compare_VERL || compare == compare_PRIME ||
                compare == compare_EVALPLUS;
}

static void add_text(json_t *spec, const char *name, const char *text)
{
        if (text)
                json_object_set_new(spec, name, json_string(text));
}

/* The rule of a trainer, and the input of EvalPlus' oracles: the task and the arguments. */
static void add_rule(json_t *spec, const struct grade_request *request, const struct grade_case *given)
{
        add_text(spec, "compare", choices_compare.values[request->compare].text);
        if (request->compare != compare_EVALPLUS)
                return;
        add_text(spec, "task", request->id);
        add_text(spec, "format", choices_grade_format.values[request->format].text);
        add_text(spec, "function", given->function ? given->function : request->function);
        add_text(spec, "args", given->args);
        add_text(spec, "args_python", given->args_python);
}

/* Perhaps in a helper thread. */
static json_t *encode_case(const struct grading *grading, const struct message_case *one)
{
        const struct grade_case *given = one->given;
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
        if (is_of_trainer(grading->request.compare))
                add_rule(spec, &grading->request, given);
        if (one->reference)
                json_object_set_new(spec, "expected_canonical", json_string(one->reference));
        return json_pack("{s:I, s:o, s:O}", "i", (json_int_t)one->i, "case", spec, "result", one->document);
}

static bool is_open(const struct slot *slot)
{
        return slot->document && !slot->settled;
}

/* Questions have the submission's text until a judge has answered one. */
static struct message *question(struct judging *judging, uint64_t id, uint64_t cpu_ms)
{
        struct grading *grading = judging->grading;
        const struct bytes *code = &grading->request.code;
        size_t bytes = 0, n = 0;
        struct message *message = message_new(grading, "judge",
                json_pack("{s:I, s:s, s:I, s:b}", "id", (json_int_t)id, "language", grading->language->name, "cpu_ms",
                        (json_int_t)cpu_ms, "last", judging->slow));
        message_add_text(message, "code", code->bytes, grading->code_judged ? 0 : code->len);
        message_set_encoder(message, encode_case);
        for (judging->to = judging->from; judging->to < judging->end &&
                (!n || (bytes < ASK_BYTES && n < ASK_CASES && !judging->single));
                judging->to++) {
                const struct slot *slot = &grading->slots[judging->to];
                const struct message_case one = { .i = judging->to,
                        .given = slot->given,
                        .document = slot->document,
                        .reference = slot->reference };
                if (!is_open(slot))
                        continue;
                n++;
                bytes += slot->bytes;
                message_add_case(message, &one, slot->bytes);
        }
        return message;
}

static void judging_free(struct judging *judging)
{
        for (struct judging **at = &judging->judges->first; *at; at = &(*at)->next)
                if (*at == judging) {
                        *at = judging->next;
                        break;
                }
        if (judging->grading)
                judging->grading->judging = NULL;
        free(judging);
}

/* Frees the judging; go_on() may end and free the grading. */
static void finish(struct judging *judging)
{
        struct grading *grading = judging->grading;
        judging_free(judging);
        if (grading)
                grading->go_on(grading);
}

/* Fails the open cases from `from` up to `to`, without comparing their values. */
static void give_up(struct judging *judging, size_t from, size_t to, const char *why)
{
        struct grading *grading = judging->grading;
        for (size_t i = from; grading && i < to; i++)
                if (is_open(&grading->slots[i]))
                        slot_settle(&grading->slots[i], &grading->arena, case_status_FAILED, "%s", why);
        judging->kills = 0;
}

/* Skips to the first case without a verdict; judging->end: all cases have a verdict. */
static void skip_settled(struct judging *judging)
{
        while (judging->grading && judging->from < judging->end && !is_open(&judging->grading->slots[judging->from]))
                judging->from++;
}

/* ---- the choice of a judge ---- */

static struct judge *last_judge(struct judges *judges)
{
        return &judges->all[judges->n - 1];
}

static bool may_take(struct judge *judge, const struct judging *judging)
{
        return !judging->slow || judge == last_judge(judge->judges);
}

static void start(struct judge *judge);

/* A free judge for a question; without a free judge, another judge starts. */
static struct judge *free_judge(struct judges *judges, const struct judging *judging)
{
        struct judge *absent = NULL;
        bool coming = false;
        for (size_t i = 0; i < judges->n; i++) {
                struct judge *judge = &judges->all[i];
                if (!may_take(judge, judging))
                        continue;
                if (judge->ready && !judge->judging)
                        return judge;
                coming = coming || (judge->run && !judge->ready);
                if (!judge->run && !absent)
                        absent = judge;
        }
        if (absent && !coming && !judges->again.active)
                start(absent);
        return NULL;
}

static uint64_t cpu_ms_for(const struct judging *judging)
{
        uint64_t most = judging->slow ? SLOW_CPU_MS : QUICK_CPU_MS;
        return min_u64(most, judging->grading->judge_ms);
}

static void take_back(struct judge *judge)
{
        struct judging *judging = judge->judging;
        message_forget(judge->question);
        judge->question = NULL;
        judge->judging = NULL;
        judging->asked = NULL;
        loop_timer(engine_loop(judge->judges->grader->engine), &judge->judges->again, AGAIN_MS * 1000);
}

static void on_made(void *owner, struct send_queue_packet *frames)
{
        struct judge *judge = owner;
        struct judging *judging = judge->judging;
        struct loop *loop = engine_loop(judge->judges->grader->engine);
        judge->question = NULL;
        if (!judging->grading) {
                send_queue_packets_free(frames);
                take_back(judge);
                return;
        }
        int told = frames ? run_send_frames(judge->run, frames) : -EMSGSIZE;
        if (told == -EMSGSIZE)
                give_up(judging, judging->from, judging->to, "what came is too large to be compared");
        if (told == -EPIPE)
                judge->ready = false;   /* no more questions until its end is reported */
        if (told < 0) {
                take_back(judge);
                return;
        }
        judge->asked_us = clock_us();
        loop_timer(loop, &judge->clock, PATIENCE * (cpu_ms_for(judging) + 1000) * 1000);
}

static void put_question(struct judge *judge, struct judging *judging)
{
        judge->id = ++judge->judges->ids;
        judge->judging = judging;
        judging->asked = judge;
        loop_untimer(engine_loop(judge->judges->grader->engine), &judge->clock);
        judge->question = message_make(question(judging, judge->id, cpu_ms_for(judging)), on_made, judge);
}

/* Whether the judging is over, and freed. */
static bool is_through(struct judging *judging)
{
        if (judging->asked)
                return false;
        if (judging->grading && !judging->grading->judge_ms)
                give_up(judging, judging->from, judging->end, "the values take too long to compare");
        skip_settled(judging);
        if (judging->grading && judging->from < judging->end)
                return false;
        finish(judging);
        return true;
}

static void ask(struct judges *judges)
{
        for (struct judging *judging = judges->first; judging;) {
                if (is_through(judging)) {
                        judging = judges->first;   /* anything may have come or gone */
                        continue;
                }
                struct judge *judge = judging->asked ? NULL : free_judge(judges, judging);
                if (judge)
                        put_question(judge, judging);
                judging = judging->next;
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
        if (i < (json_int_t)judging->from || i >= (json_int_t)judging->to || status < 0 || !is_open(&grading->slots[i]))
                return;
        struct slot *slot = &grading->slots[i];
        struct case_result *result = slot->result;
        char *output = grading_text(grading, text_of(verdict, "output")),
             *expected = grading_text(grading, text_of(verdict, "expected"));
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
        grading_sign(grading, text_of(sign, "sign"), text_of(sign, "detail"),
                known ? grading->slots[i].result->name : NULL);
}

static void spend(struct grading *grading, double cpu_ms)
{
        uint64_t spent = cpu_ms > 0 && cpu_ms < 1e9 ? (uint64_t)cpu_ms : 0;
        grading->judge_ms -= min_u64(spent, grading->judge_ms);
}

/* A case without a verdict ran out of CPU time, and is the first case of the next question. */
static void take_answer(struct judging *judging, json_t *json)
{
        struct grading *grading = judging->grading;
        size_t i;
        json_t *verdict, *sign;
        json_array_foreach(json_object_get(json, "verdicts"), i, verdict) {
                take_verdict(grading, judging, verdict);
        }
        json_array_foreach(json_object_get(json, "signs"), i, sign) {
                take_sign(grading, judging, sign);
        }
        grading->code_judged = true;
        spend(grading, json_number_value(json_object_get(json, "cpu_ms")));
        size_t first = judging->from, to = judging->to;
        skip_settled(judging);
        if (judging->from >= to)
                return;
        if (judging->slow && judging->from == first)
                give_up(judging, first, first + 1, "the value takes too long to compare");
        judging->slow = true;
}

static void on_said(void *owner, struct buf *message)
{
        struct judge *judge = owner;
        json_t *json = message->len > 1 && message->bytes[0] == 'E'
                ? json_loadb(message->bytes + 1, message->len - 1, JSON_ALLOW_NUL, NULL)
                : NULL;
        struct judging *judging = judge->judging;
        if (!judging || judge->question || json_integer_value(json_object_get(json, "id")) != (json_int_t)judge->id) {
                json_decref(json);
                run_cancel(judge->run);
                return;
        }
        judge->judging = NULL;
        judging->asked = NULL;
        if (judging->grading)
                take_answer(judging, json);
        json_decref(json);
        loop_timer(engine_loop(judge->judges->grader->engine), &judge->clock, IDLE_MS * 1000ULL);
        ask(judge->judges);
}

/* ---- a judge's life ---- */

static void on_hello(void *owner)
{
        struct judge *judge = owner;
        judge->hello_received = true;
        judge->ready = message_send_json(judge->run, json_pack("{s:s, s:s}", "op", "begin", "role", "judge")) == 0;
        judge->judges->starts = 0;
        loop_timer(engine_loop(judge->judges->grader->engine), &judge->clock, IDLE_MS * 1000ULL);
        ask(judge->judges);
}

static void on_clock(struct timer *timer)
{
        struct judge *judge = timer->owner;
        judge->ready = false;
        if (judge->run)
                run_cancel(judge->run);
}

static void on_again(struct timer *timer)
{
        ask(timer->owner);
}

static void no_judge(struct judges *judges, const char *why)
{
        while (judges->first) {
                struct grading *grading = judges->first->grading;
                if (grading)
                        grading_fail_text(grading, status_ENGINE_ERROR, csn_code_name(CSN_E_SYSTEM), NULL, why);
                finish(judges->first);
        }
        judges->starts = 0;
}

/* Charges the question of an ended judge with its CPU time; a single case also with the judge's death. */
static void blame(struct judge *judge)
{
        struct judging *judging = judge->judging;
        judge->judging = NULL;
        judging->asked = NULL;
        if (!judging->grading)
                return;
        spend(judging->grading, (double)(clock_us() - judge->asked_us) / 1000);
        if (judging->single && ++judging->kills >= KILLS_MAX)
                give_up(judging, judging->from, judging->to, "the value is too much to be compared");
        judging->slow = judging->single = true;
}

static bool is_anybody_there(const struct judges *judges)
{
        for (size_t i = 0; i < judges->n; i++)
                if (judges->all[i].run)
                        return true;
        return false;
}

static void on_done(void *owner, const struct run_result *result)
{
        struct judge *judge = owner;
        struct judges *judges = judge->judges;
        struct loop *loop = engine_loop(judges->grader->engine);
        char why[300];
        snprintf(why, sizeof why, "the judge does not start: %.200s",
                HAS(result, run_result, error) ? result->error.message : status_name(result->status));
        if (judge->question)
                take_back(judge);
        if (judge->judging)
                blame(judge);
        judge->ready = false;
        loop_untimer(loop, &judge->clock);
        run_free(judge->run);
        judge->run = NULL;
        if (!judge->hello_received)
                judges->starts++;
        judge->hello_received = false;
        if (judges->starts > STARTS_MAX && !is_anybody_there(judges))
                no_judge(judges, why);
        else if (judges->first)
                loop_timer(loop, &judges->again, judges->starts ? 100000 : 0);
}

static void start(struct judge *judge)
{
        static const struct run_message_handler message_handler = { .hello_received = on_hello, .said = on_said };
        static const struct run_events events = { .done = on_done };
        static char nothing[] = "";
        struct grader *grader = judge->judges->grader;
        const struct limits *most = &grader->settings->ceilings;
        judge->run = run_new(grader->engine);
        struct run_request *request = run_request(judge->run);
        SET(request, run_request, language, arena_text(run_arena(judge->run), "python"));
        SET(request, run_request, code, ((struct bytes){ nothing, 0 }));
        /* The image of submissions, so that a batch needs no other zygote. */
        SET(request, run_request, image, arena_text(run_arena(judge->run), "small"));
        SET(&request->limits, limits, wall_ms, most->wall_ms);
        SET(&request->limits, limits, cpu_ms, most->cpu_ms);
        SET(&request->limits, limits, memory_bytes, min_u64(JUDGE_MEMORY, most->memory_bytes));
        MARK(request, run_request, limits);
        run_set_message_handler(judge->run, &message_handler, judge);
        run_set_skips_queue(judge->run);
        run_set_unreviewed(judge->run);
        run_set_owner(judge->run, "judge");
        run_start(judge->run, false, &events, judge);
}

/* One judge more than cores, within bounds: a judge is free when all cores are busy. */
static size_t how_many(void)
{
        cpu_set_t set;
        size_t cores = sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
        return cores + 1 < JUDGES_MIN ? JUDGES_MIN : cores + 1 > JUDGES_MAX ? JUDGES_MAX : cores + 1;
}

static struct judges *judges_of(struct grader *grader)
{
        if (grader->judges)
                return grader->judges;
        struct judges *judges = grader->judges = mem_alloc(sizeof *judges);
        *judges = (struct judges){ .grader = grader, .n = how_many(), .again = { .fired = on_again, .owner = judges } };
        for (size_t i = 0; i < judges->n; i++)
                judges->all[i] =
                        (struct judge){ .judges = judges, .clock = { .fired = on_clock, .owner = &judges->all[i] } };
        return judges;
}

void judge_ask(struct grading *grading, size_t from, size_t to)
{
        struct judges *judges = judges_of(grading->grader);
        struct judging *judging = mem_alloc(sizeof *judging);
        struct judging **last = &judges->first;
        uint64_t bytes = 0;
        while (*last)
                last = &(*last)->next;
        *judging = (struct judging){ .judges = judges, .grading = grading, .from = from, .to = from, .end = to };
        *last = grading->judging = judging;
        for (size_t i = from; i < to; i++)
                bytes += is_open(&grading->slots[i]) ? grading->slots[i].bytes : 0;
        if (!grading->judge_ms_given)
                grading->judge_ms = BUDGET_CPU_MS;
        grading->judge_ms_given = true;
        grading->judge_ms += bytes * BUDGET_CPU_MS_PER_MIB / MIB;
        /* From the loop, not from within the caller's own call. */
        loop_timer(engine_loop(grading->grader->engine), &judges->again, 0);
}

/* A judging with an open question stays until the answer, because a judge refers to the judging. */
void judge_forget(struct judging *judging)
{
        if (!judging)
                return;
        judging->grading->judging = NULL;
        judging->grading = NULL;
        if (!judging->asked)
                judging_free(judging);
}

void judges_close(struct judges *judges)
{
        if (!judges)
                return;
        struct loop *loop = engine_loop(judges->grader->engine);
        for (struct judging *one = judges->first, *next; one; one = next) {
                next = one->next;
                judging_free(one);
        }
        loop_untimer(loop, &judges->again);
        for (size_t i = 0; i < judges->n; i++) {
                loop_untimer(loop, &judges->all[i].clock);
                message_forget(judges->all[i].question);
                run_free(judges->all[i].run);
        }
        free(judges);
}
