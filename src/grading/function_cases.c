/*
 * Calls of functions.  Python loads the submission once, and each case is a fork of this process; if the whole sandbox
 * ends, the current case was the cause, and the other cases go on in a new sandbox.  JavaScript cannot fork, so each
 * case has a sandbox.
 */
#include "grading/grading_private.h"

#include <stdio.h>

#define BEGIN_BYTES (8 * MIB)          /* of arguments in a message */
#define AT_ONCE 4                      /* sandboxes of a submission */
#define CASE_WAITING 4                 /* a case waiting for the CPU may last so many times its wall-clock limit */
#define SLOT_BYTES 1000                /* of a question about a case, without its values */
#define SHARED_MORE_MS 1000            /* beyond total_cpu_ms, for the waiting process */
#define STOP_AFTER 16                  /* cases of a batch, if the first failure ends the grading */

/* ---- messages to the runner ---- */

static void add_text(json_t *json, const char *name, const char *text)
{
        if (text)
                json_object_set_new(json, name, json_string(text));
}

json_t *function_case_encode(const struct grading *grading, const struct message_case *one)
{
        const struct grade_case *given = one->given;
        json_t *json = HAS(given, grade_case, expected_stdout) ? program_encode(given) : json_object();
        json_object_set_new(json, "i", json_integer((json_int_t)one->i));
        json_object_set_new(json, "cpu_ms", json_integer((json_int_t)one->cpu_ms));
        json_object_set_new(json, "wall_ms", json_integer((json_int_t)one->wall_ms));
        (void)grading;
        add_text(json, "function", given->function);
        add_text(json, "args", given->args);
        add_text(json, "args_python", given->args_python);
        add_text(json, "kwargs", given->kwargs);
        add_text(json, "kwargs_python", given->kwargs_python);
        return json;
}

size_t function_case_bytes(const struct grade_case *given)
{
        const char *texts[] = { given->args, given->args_python, given->kwargs, given->kwargs_python };
        size_t bytes = given->stdin.len;
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                bytes += texts[i] ? strlen(texts[i]) : 0;
        return bytes;
}

static bool is_open(const struct grading *grading, size_t i)
{
        const struct slot *slot = &grading->slots[i];
        bool of_phase = grading->phase == PHASE_STREAMS ? slot->forks : !HAS(slot->given, grade_case, expected_stdout);
        return of_phase && !slot->settled && !slot->document && !slot->answered;
}

static void on_hello(struct attempt *attempt)
{
        struct grading *grading = attempt->grading;
        const struct grade_request *request = &grading->request;
        const char *setup = request->setup ? request->setup : "";
        json_t *members = json_pack("{s:i, s:b, s:s}", "output_max", CASE_OUTPUT, "main",
                grading->phase == PHASE_STREAMS, "instance",
                choices_grade_instance.values[attempt->shares ? grade_instance_SHARED : grade_instance_FRESH].text);
        if (cases_cpu_left_ms(grading) != UINT64_MAX)
                json_object_set_new(members, "total_ms", json_integer((json_int_t)cases_cpu_left_ms(grading)));
        add_text(members, "function", request->function);
        struct message *begin = message_new(grading, "begin", members);
        message_add_text(begin, "setup", setup, strlen(setup));
        prelude_add(grading, begin);
        message_set_encoder(begin, function_case_encode);
        for (size_t i = attempt->from; i < attempt->to; i++) {
                const struct grade_case *given = grading->slots[i].given;
                const struct message_case one = { .i = i,
                        .given = given,
                        .cpu_ms = case_cpu_ms(grading, given),
                        .wall_ms = case_wall_ms(grading, given) };
                if (is_open(grading, i))
                        message_add_case(begin, &one, function_case_bytes(given));
        }
        attempt_begin(attempt, begin);
}

static void on_too_long(struct attempt *attempt)
{
        struct grading *grading = attempt->grading;
        for (size_t i = attempt->from; i < attempt->to; i++)
                if (is_open(grading, i))
                        slot_settle(&grading->slots[i], &grading->arena, case_status_BAD_CASE,
                                "the arguments are too long to be handed over");
        run_cancel(attempt->run);
}

/* ---- messages of the runner ---- */

static void take_result(struct attempt *attempt, json_t *message)
{
        struct grading *grading = attempt->grading;
        json_int_t i = json_integer_value(json_object_get(message, "i"));
        struct slot *slot = i >= (json_int_t)attempt->from && i < (json_int_t)attempt->to ? &grading->slots[i] : NULL;
        const char *how = json_string_value(json_object_get(message, "how"));
        if (!slot || !how || !is_open(grading, (size_t)i) ||
                (slot->forks && !program_take(grading, (size_t)i, message))) {
                attempt_break(attempt);
                return;
        }
        if (attempt->shares)
                grading->instance = grade_instance_SHARED;
        if (slot->forks) {
                attempt->stopped = grading->request.stop_on_fail && slot->settled && !slot->result->passed;
                if (attempt->stopped)
                        run_cancel(attempt->run);
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
                (slot->given->expected_python ? strlen(slot->given->expected_python) : 0) +
                (slot->reference ? strlen(slot->reference) : 0);
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
                if (!attempt->stopped)
                        take_result(attempt, message);
        } else if (strcmp(op, "shared") == 0) {
                attempt->shares = false;
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

/* ---- the end of a sandbox ---- */

static struct slot *first_open(const struct attempt *attempt)
{
        for (size_t i = attempt->from; i < attempt->to; i++)
                if (is_open(attempt->grading, i))
                        return &attempt->grading->slots[i];
        return NULL;
}

/*
 * A case's process cannot have used more than its sandbox, and the sandbox's figure is measured outside.  A case alone
 * in a sandbox has the sandbox's figure.
 */
static void note_memory(const struct attempt *attempt, const struct run_result *result)
{
        uint64_t most = result->usage.memory_peak_bytes;
        for (size_t i = attempt->from; most && i < attempt->to; i++) {
                struct case_result *of_case = attempt->grading->slots[i].result;
                bool own = HAS(of_case, case_result, memory_peak_bytes), alone = attempt->to - attempt->from == 1;
                if (own)
                        of_case->memory_peak_bytes = min_u64(of_case->memory_peak_bytes, most);
                else if (alone && attempt->ready)
                        SET(of_case, case_result, memory_peak_bytes, most);
        }
}

static void on_done(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        struct slot *slot = first_open(attempt);
        const char *text;
        note_memory(attempt, result);
        grading->cases_cpu_ms += result->usage.cpu_ms;
        if (!slot || attempt->missing || attempt->stopped || grading->cancelled)
                return;
        if (status_is_ours(result->status) && grading_again(grading, result))
                return;
        if (!attempt->ready || status_is_final(result->status) || status_is_ours(result->status)) {
                attempt_trouble(attempt, result);
                return;
        }
        /* The cause of a shared process's end is unknown: all cases run again, in processes of their own. */
        grading->never_shares = true;
        if (attempt->shares)
                return;
        /* The current case ended the sandbox. */
        int status = attempt_verdict(attempt, result, &text);
        slot_settle(slot, &grading->arena, status, "%s", text);
        SET(slot->result, case_result, duration_ms, result->usage.wall_ms);
        if (++grading->lost == LOST_MAX)
                grading_fail_text(grading, status_FAILED, NULL, NULL, "too many cases ended the whole sandbox");
        if (status == case_status_TIMEOUT && kept_waiting(result->usage.waited_ms, result->limits.wall_ms))
                slot->kept_waiting = grading->kept_waiting = true;
}

/* ---- a submission without cases ---- */

static void on_loaded(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        bool ended = attempt->ended || !attempt->kind->role;
        if (attempt->missing || grading->cancelled)
                return;
        if (status_is_ours(result->status) && grading_again(grading, result))
                return;
        if (!ended || attempt->broken || attempt->late || result->status != status_COMPLETED) {
                attempt_trouble(attempt, result);
                return;
        }
        grading->loaded = true;
        attempt_keep_streams(attempt, result);
}

void load_go_on(struct grading *grading)
{
        static const struct attempt_kind loads = { .role = "cases",
                .hello_received = on_hello,
                .said = on_said,
                .too_long = on_too_long,
                .done = on_loaded },
                                         runs = { .done = on_loaded };
        struct attempt *attempt = attempt_new(grading, grading->language->cases ? &loads : &runs, NULL);
        attempt_limit(attempt, load_ms(grading), load_ms(grading));
        attempt_start(attempt);
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
        attempt->shares = grading->request.instance == grade_instance_SHARED && grading->language == &lang_python &&
                !grading->never_shares;
        for (size_t i = from; i < to; i++) {
                cpu_ms += case_cpu_ms(grading, grading->slots[i].given) + 100;
                wall_ms += CASE_WAITING * case_wall_ms(grading, grading->slots[i].given) + 100;
        }
        /* With cases in one process the runner ends the process first, and reports the earlier cases. */
        uint64_t left_ms = cases_cpu_left_ms(grading), more_ms = attempt->shares ? SHARED_MORE_MS : 0;
        attempt_limit(attempt, min_u64(cpu_ms, left_ms > UINT64_MAX - more_ms ? left_ms : left_ms + more_ms), wall_ms);
        attempt_start(attempt);
}

static size_t end_of_batch(const struct grading *grading, size_t from, size_t most)
{
        size_t bytes = 0, n = 0, to = from;
        for (; to < grading->slots_n && n < most && bytes < BEGIN_BYTES; to++) {
                bytes += function_case_bytes(grading->slots[to].given);
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

void programs_go_on(struct grading *grading)
{
        size_t from = first_of(grading), most = grading->request.stop_on_fail ? STOP_AFTER : SIZE_MAX;
        begin(grading, from, end_of_batch(grading, from, most));
}
