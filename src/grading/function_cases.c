/*
 * Calls of functions.  Python loads the submission once, and each case is a fork of that process; what ends the whole
 * sandbox was the case that was going on, and the others go on in a new one.  JavaScript cannot fork, so there each
 * case has a sandbox.
 */
#include "grading/grading_private.h"

#include <stdio.h>

#define BEGIN_BYTES (8 * MIB)          /* of arguments in one message */
#define AT_ONCE 4                      /* sandboxes of one submission */
#define CASE_WAITING 4                 /* a case may last so many times its wall-clock limit, if it waits for the CPU */
#define SLOT_BYTES 1000                /* of a question about a case, without its values */
#define STOP_AFTER 16                  /* cases between two looks, when one that fails is to be the last */

/* ---- what it is told ---- */

static void add_text(json_t *json, const char *name, const char *text)
{
        if (text)
                json_object_set_new(json, name, json_string(text));
}

static json_t *encode_case(const struct grading *grading, const struct message_case *one)
{
        const struct grade_case *given = one->given;
        json_t *json = json_pack("{s:I, s:I, s:I}", "i", (json_int_t)one->i, "cpu_ms", (json_int_t)one->cpu_ms,
                "wall_ms", (json_int_t)one->wall_ms);
        (void)grading;
        add_text(json, "function", given->function);
        add_text(json, "args", given->args);
        add_text(json, "args_python", given->args_python);
        add_text(json, "kwargs", given->kwargs);
        add_text(json, "kwargs_python", given->kwargs_python);
        return json;
}

static size_t bytes_of(const struct grade_case *given)
{
        const char *texts[] = { given->args, given->args_python, given->kwargs, given->kwargs_python };
        size_t bytes = 0;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                bytes += texts[i] ? strlen(texts[i]) : 0;
        return bytes;
}

static bool is_open(const struct grading *grading, size_t i)
{
        const struct slot *slot = &grading->slots[i];
        return !slot->settled && !slot->document && !HAS(slot->given, grade_case, expected_stdout);
}

static void on_hello(struct attempt *attempt)
{
        struct grading *grading = attempt->grading;
        const struct grade_request *request = &grading->request;
        const char *setup = request->setup ? request->setup : "";
        json_t *members = json_pack("{s:i}", "output_max", CASE_OUTPUT);
        add_text(members, "function", request->function);
        struct message *begin = message_new(grading, "begin", members);
        message_add_text(begin, "setup", setup, strlen(setup));
        message_set_encoder(begin, encode_case);
        for (size_t i = attempt->from; i < attempt->to; i++) {
                const struct grade_case *given = grading->slots[i].given;
                const struct message_case one = { .i = i,
                        .given = given,
                        .cpu_ms = case_cpu_ms(grading, given),
                        .wall_ms = case_wall_ms(grading, given) };
                if (is_open(grading, i))
                        message_add_case(begin, &one, bytes_of(given));
        }
        attempt_begin(attempt, begin);
}

static void on_too_long(struct attempt *attempt)
{
        struct grading *grading = attempt->grading;
        for (size_t i = attempt->from; i < attempt->to; i++)
                if (!grading->slots[i].settled && !HAS(grading->slots[i].given, grade_case, expected_stdout))
                        slot_settle(&grading->slots[i], &grading->arena, case_status_BAD_CASE,
                                "the arguments are too long to be handed over");
        run_cancel(attempt->run);
}

/* ---- what it says ---- */

static void take_result(struct attempt *attempt, json_t *message)
{
        struct grading *grading = attempt->grading;
        json_int_t i = json_integer_value(json_object_get(message, "i"));
        struct slot *slot = i >= (json_int_t)attempt->from && i < (json_int_t)attempt->to ? &grading->slots[i] : NULL;
        const char *how = json_string_value(json_object_get(message, "how"));
        if (!slot || slot->document || slot->settled || !how || HAS(slot->given, grade_case, expected_stdout)) {
                attempt_break(attempt);
                return;
        }
        struct case_result *result = slot->result;
        char *type = strcmp(how, "raised") == 0
                ? grading_text(grading, json_string_value(json_object_get(message, "type")))
                : NULL;
        grading_note(grading, result, message);
        if (type)
                SET(result, case_result, error_type, type);
        if (kept_waiting(json_number_value(json_object_get(message, "waited_ms")), case_wall_ms(grading, slot->given)))
                slot->kept_waiting = grading->kept_waiting = true;
        grading_signs(grading, json_object_get(message, "signs"), result->name);
        slot->bytes = SLOT_BYTES + json_string_length(json_object_get(message, "value")) +
                (slot->given->expected ? strlen(slot->given->expected) : 0) +
                (slot->given->expected_python ? strlen(slot->given->expected_python) : 0);
        grading->result_bytes += json_string_length(json_object_get(message, "value"));
        if (grading->result_bytes > RESULTS_BYTES_MAX)
                slot_settle(slot, &grading->arena, case_status_UNENCODABLE,
                        "the values of all cases together are longer than %llu MiB", RESULTS_BYTES_MAX / MIB);
        else
                slot->document = json_incref(message);
}

static void on_said(struct attempt *attempt, const char *op, json_t *message)
{
        struct grading *grading = attempt->grading;
        if (strcmp(op, "ready") == 0) {
                attempt->ready = true;
        } else if (strcmp(op, "result") == 0) {
                attempt->ready = true;
                take_result(attempt, message);
        } else if (strcmp(op, "end") == 0) {
                attempt->ended = true;
                grading_signs(grading, json_object_get(message, "signs"), NULL);
        } else if (strcmp(op, "missing") == 0) {
                size_t i;
                json_t *name;
                struct buf names;
                attempt->ready = attempt->missing = true;
                buf_init(&names, 600);
                json_array_foreach(json_object_get(message, "functions"), i, name) {
                        buf_printf(&names, "%s%s", i ? ", " : "",
                                json_string_value(name) ? json_string_value(name) : "");
                }
                const char *wanted = json_string_value(json_object_get(message, "function"));
                char text[1000];
                snprintf(text, sizeof text, "Function '%.200s' not found in code; %s%.600s", wanted ? wanted : "",
                        names.len ? "there are: " : "there is none", names.len ? names.bytes : "");
                grading_fail_text(grading, status_FAILED, "function_not_found", NULL, text);
                buf_done(&names);
        } else {
                attempt_break(attempt);
        }
}

/* ---- how it ended ---- */

static struct slot *first_open(const struct attempt *attempt)
{
        for (size_t i = attempt->from; i < attempt->to; i++)
                if (is_open(attempt->grading, i))
                        return &attempt->grading->slots[i];
        return NULL;
}

static void on_done(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        struct slot *slot = first_open(attempt);
        const char *text;
        if (!slot || attempt->missing || grading->cancelled)
                return;
        if (status_is_ours(result->status) && grading_again(grading, result))
                return;
        if (!attempt->ready || status_is_final(result->status) || status_is_ours(result->status)) {
                attempt_trouble(attempt, result);
                return;
        }
        /* What ended the sandbox is the case that was going on. */
        int status = attempt_verdict(attempt, result, &text);
        slot_settle(slot, &grading->arena, status, "%s", text);
        SET(slot->result, case_result, duration_ms, result->usage.wall_ms);
        if (++grading->lost == LOST_MAX)
                grading_fail_text(grading, status_FAILED, NULL, NULL, "too many cases ended the whole sandbox");
        if (status == case_status_TIMEOUT && kept_waiting(result->usage.waited_ms, result->limits.wall_ms))
                slot->kept_waiting = grading->kept_waiting = true;
}

/* ---- the phase ---- */

static void begin(struct grading *grading, size_t from, size_t to)
{
        static const struct attempt_kind kind = { .role = "cases",
                .hello_received = on_hello,
                .said = on_said,
                .too_long = on_too_long,
                .done = on_done };
        struct attempt *attempt = attempt_new(grading, &kind, NULL);
        uint64_t cpu_ms = load_ms(grading), wall_ms = load_ms(grading);
        attempt->from = from;
        attempt->to = to;
        for (size_t i = from; i < to; i++) {
                cpu_ms += case_cpu_ms(grading, grading->slots[i].given) + 100;
                wall_ms += CASE_WAITING * case_wall_ms(grading, grading->slots[i].given) + 100;
        }
        attempt_limit(attempt, cpu_ms, wall_ms);
        attempt_start(attempt);
}

static size_t end_of_batch(const struct grading *grading, size_t from, size_t most)
{
        size_t bytes = 0, n = 0, to = from;
        for (; to < grading->slots_n && n < most && bytes < BEGIN_BYTES; to++) {
                bytes += bytes_of(grading->slots[to].given);
                n += is_open(grading, to);
        }
        return to;
}

static size_t first_of(const struct grading *grading)
{
        size_t at = 0;
        while (at < grading->slots_n && !is_open(grading, at))
                at++;
        return at;
}

void cases_go_on(struct grading *grading)
{
        bool forks = grading->language == &lang_python;
        size_t from = first_of(grading), most = grading->request.stop_on_fail ? STOP_AFTER : SIZE_MAX;
        bool undecided = false;
        for (size_t i = 0; i < from; i++)
                undecided = undecided || (grading->slots[i].document && !grading->slots[i].settled);
        if (undecided && (from == grading->slots_n || grading->request.stop_on_fail)) {
                judge_ask(grading, 0, grading->slots_n);
                return;
        }
        if (forks) {
                begin(grading, from, end_of_batch(grading, from, most));
                return;
        }
        for (size_t i = from, n = 0; i < grading->slots_n && n < (grading->request.stop_on_fail ? 1 : AT_ONCE); i++)
                if (is_open(grading, i)) {
                        begin(grading, i, i + 1);
                        n++;
                }
}
