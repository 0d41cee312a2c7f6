/*
 * Expected values from a reference: a program of the caller; its functions are called with the arguments of the cases
 * without an expected value.  The reference has a sandbox of its own, as a submission has; its values leave the sandbox
 * in canonical form and go to the judge, never to the submission.
 *
 * Values are kept for the next grading of the same problem, by a hash of all their inputs: the reference, the code
 * before the reference, the arguments, image, packages and layers.  The hash covers the caller as well, so no caller
 * can get another caller's values, and a layer may have one name for two callers.  While one grading runs a reference,
 * gradings with the same hash wait for the values.
 */
#include "engine/output/files.h"
#include "grading/grading_private.h"

#include <stdio.h>

#define BEGIN_BYTES (8 * MIB) /* of arguments in a message */
#define OUTPUT_MAX 200        /* characters kept of each stream */
#define PATIENCE 4            /* a reference may use so many times the limits of a case */
#define SAID_MAX 300
#define KEY_BYTES_MAX (1 * GIB) /* of hashed bytes: more than a request has */

/* The values of a reference, in a single allocation. */
struct reference_values {
        struct reference_values *next; /* the most recently used comes first */
        char key[65];
        size_t n, bytes;
        size_t *lengths; /* of each value */
        char *texts;     /* all values in sequence */
};

struct references {
        struct reference_values *first;
        uint64_t bytes;
};

/* ---- the cache ---- */

static void values_free(struct reference_values *values)
{
        free(values->lengths);
        free(values->texts);
        free(values);
}

static void drop_oldest(struct references *references)
{
        struct reference_values **at = &references->first;
        while (*at && (*at)->next)
                at = &(*at)->next;
        if (!*at)
                return;
        references->bytes -= (*at)->bytes;
        values_free(*at);
        *at = NULL;
}

void references_close(struct references *references)
{
        while (references && references->first)
                drop_oldest(references);
        free(references);
}

/* The values become the most recently used; NULL: not in the cache. */
static const struct reference_values *find_values(struct references *references, const char *key)
{
        for (struct reference_values **at = references ? &references->first : NULL; at && *at; at = &(*at)->next) {
                struct reference_values *found = *at;
                if (strcmp(found->key, key) != 0)
                        continue;
                *at = found->next;
                found->next = references->first;
                references->first = found;
                return found;
        }
        return NULL;
}

/* ---- which cases, and their hash ---- */

static bool is_wanted(const struct grading *grading, size_t i)
{
        const struct grade_case *given = grading->slots[i].given;
        return !HAS(given, grade_case, expected_stdout) && !HAS(given, grade_case, expected) &&
                !HAS(given, grade_case, expected_python) && !HAS(given, grade_case, expected_type) &&
                !HAS(given, grade_case, expected_exception);
}

static bool is_open(const struct grading *grading, size_t i)
{
        return is_wanted(grading, i) && !grading->slots[i].reference;
}

/* With its length, so that the boundaries of parts are unambiguous. */
static void add_part(struct buf *buf, const char *bytes, size_t len)
{
        buf_printf(buf, "%zu:", bytes ? len : SIZE_MAX);
        buf_add(buf, bytes ? bytes : "", bytes ? len : 0);
}

static void add_text(struct buf *buf, const char *text)
{
        add_part(buf, text, text ? strlen(text) : 0);
}

static void add_texts(struct buf *buf, char *const *texts, size_t n)
{
        buf_printf(buf, "%zu;", n);
        for (size_t i = 0; i < n; i++)
                add_text(buf, texts[i]);
}

static void make_key(const struct grading *grading, char key[static 65])
{
        const struct grade_request *request = &grading->request;
        struct buf buf;
        buf_init(&buf, KEY_BYTES_MAX);
        add_text(&buf, grading->owner_key);
        add_part(&buf, request->reference.bytes, request->reference.len);
        add_text(&buf, request->setup);
        add_text(&buf, request->function);
        buf_printf(&buf, "%d,%d;", HAS(request, grade_request, prelude) ? request->prelude : 0,
                HAS(request, grade_request, helpers) ? request->helpers : 0);
        add_text(&buf, HAS(request, grade_request, image) ? request->image : NULL);
        add_text(&buf, HAS(request, grade_request, profile) ? request->profile : NULL);
        add_text(&buf, HAS(request, grade_request, requirements) ? request->requirements : NULL);
        add_text(&buf, HAS(request, grade_request, lock) ? request->lock : NULL);
        add_texts(&buf, request->packages, request->packages_n);
        buf_printf(&buf, "%zu;", request->layers_n);
        for (size_t i = 0; i < request->layers_n; i++) {
                json_t *layer = model_encode(&object_layer_use, &request->layers[i]);
                char *text = json_dumps(layer, JSON_COMPACT | JSON_SORT_KEYS);
                add_text(&buf, text);
                free(text);
                json_decref(layer);
        }
        for (size_t i = 0; i < grading->slots_n; i++) {
                const struct grade_case *given = grading->slots[i].given;
                if (!is_wanted(grading, i))
                        continue;
                add_text(&buf, given->function);
                add_text(&buf, given->args);
                add_text(&buf, given->args_python);
                add_text(&buf, given->kwargs);
                add_text(&buf, given->kwargs_python);
        }
        files_sha256_bytes(buf.bytes, buf.len, key);
        buf_done(&buf);
}

/* ---- keeping and taking ---- */

static void take_values(struct grading *grading, const struct reference_values *values)
{
        size_t k = 0, at = 0;
        for (size_t i = 0; i < grading->slots_n && k < values->n; i++) {
                if (!is_wanted(grading, i))
                        continue;
                grading->slots[i].reference = arena_copy(&grading->arena, values->texts + at, values->lengths[k]);
                at += values->lengths[k++];
        }
}

static void keep_values(struct grading *grading)
{
        struct grader *grader = grading->grader;
        uint64_t most = grader->settings->grading.reference_cache_bytes;
        struct buf texts;
        struct reference_values *values = mem_alloc(sizeof *values);
        *values = (struct reference_values){ .lengths = mem_alloc((grading->slots_n + 1) * sizeof *values->lengths) };
        snprintf(values->key, sizeof values->key, "%s", grading->reference_key);
        buf_init(&texts, most);
        bool fits = true;
        for (size_t i = 0; i < grading->slots_n; i++) {
                if (!is_wanted(grading, i))
                        continue;
                size_t len = strlen(grading->slots[i].reference);
                fits = fits && buf_add(&texts, grading->slots[i].reference, len);
                values->lengths[values->n++] = len;
        }
        values->texts = texts.bytes;
        values->bytes = sizeof *values + texts.len + values->n * sizeof *values->lengths;
        if (!fits || values->bytes > most) {
                values_free(values);
                return;
        }
        if (!grader->references)
                grader->references = mem_alloc(sizeof *grader->references);
        while (grader->references->bytes + values->bytes > most)
                drop_oldest(grader->references);
        grader->references->bytes += values->bytes;
        values->next = grader->references->first;
        grader->references->first = values;
}

/* ---- the run of the reference ---- */

static void wake_waiting(struct grading *grading)
{
        struct grader *grader = grading->grader;
        for (struct grading *one = grader->gradings; one; one = one->next)
                if (one->reference_state == REFERENCE_WAITS &&
                        strcmp(one->reference_key, grading->reference_key) == 0) {
                        one->reference_state = REFERENCE_NEW;
                        loop_timer(engine_loop(grader->engine), &one->later, 0);
                }
}

void reference_leave(struct grading *grading)
{
        bool runs = grading->reference_state == REFERENCE_RUNS;
        grading->reference_state = REFERENCE_OVER;
        if (runs)
                wake_waiting(grading);
}

static void fail(struct grading *grading, const char *text)
{
        grading->persists = true;
        grading_fail_text(grading, status_ENGINE_ERROR, "reference_failed", "/reference", text);
        reference_leave(grading);
}

static void on_hello(struct attempt *attempt)
{
        struct grading *grading = attempt->grading;
        const struct grade_request *request = &grading->request;
        const char *setup = request->setup ? request->setup : "";
        struct message *begin = message_new(grading, "begin", json_pack("{s:i}", "output_max", OUTPUT_MAX));
        message_add_text(begin, "setup", setup, strlen(setup));
        prelude_add(grading, begin);
        if (request->function)
                message_add_text(begin, "function", request->function, strlen(request->function));
        message_set_encoder(begin, function_case_encode);
        for (size_t i = attempt->from; i < attempt->to; i++) {
                const struct grade_case *given = grading->slots[i].given;
                const struct message_case one = { .i = i,
                        .given = given,
                        .cpu_ms = PATIENCE * case_cpu_ms(grading, given),
                        .wall_ms = PATIENCE * case_wall_ms(grading, given) };
                if (is_open(grading, i))
                        message_add_case(begin, &one, function_case_bytes(given));
        }
        attempt_begin(attempt, begin);
}

static void on_too_long(struct attempt *attempt)
{
        fail(attempt->grading, "the arguments of the cases are too long to be handed to the reference");
        run_cancel(attempt->run);
}

static const char *text_of(const json_t *message, const char *name)
{
        const char *text = json_string_value(json_object_get(message, name));
        return text ? text : "";
}

static void take_result(struct attempt *attempt, const json_t *message)
{
        struct grading *grading = attempt->grading;
        json_int_t i = json_integer_value(json_object_get(message, "i"));
        const char *how = text_of(message, "how");
        const json_t *value = json_object_get(message, "value");
        char text[SAID_MAX + 200];
        if (i < (json_int_t)attempt->from || i >= (json_int_t)attempt->to || !is_open(grading, (size_t)i)) {
                attempt_break(attempt);
                return;
        }
        struct slot *slot = &grading->slots[i];
        if (strcmp(how, "returned") != 0 || !json_is_string(value)) {
                const char *more = strcmp(how, "raised") == 0 ? text_of(message, "message") : text_of(message, "repr");
                snprintf(text, sizeof text, "the reference gives no value for %.100s: %.40s %.100s %.*s",
                        slot->result->name, how, text_of(message, "type"), SAID_MAX, more);
                fail(grading, text);
                run_cancel(attempt->run);
                return;
        }
        grading->reference_bytes += json_string_length(value);
        if (grading->reference_bytes > RESULTS_BYTES_MAX) {
                snprintf(text, sizeof text, "the values of the reference are longer than %llu MiB",
                        RESULTS_BYTES_MAX / MIB);
                fail(grading, text);
                run_cancel(attempt->run);
                return;
        }
        slot->reference = arena_text(&grading->arena, "%s", json_string_value(value));
}

static void on_said(struct attempt *attempt, const char *op, json_t *message)
{
        char text[400];
        if (strcmp(op, "ready") == 0) {
                attempt->ready = true;
        } else if (strcmp(op, "result") == 0) {
                attempt->ready = true;
                take_result(attempt, message);
        } else if (strcmp(op, "end") == 0) {
                attempt->ended = true;
        } else if (strcmp(op, "missing") == 0) {
                snprintf(text, sizeof text, "function '%.200s' is not in the reference", text_of(message, "function"));
                fail(attempt->grading, text);
        } else {
                attempt_break(attempt);
        }
}

static bool has_open(const struct grading *grading, size_t from, size_t to)
{
        for (size_t i = from; i < to; i++)
                if (is_open(grading, i))
                        return true;
        return false;
}

static void on_done(struct attempt *attempt, const struct run_result *result)
{
        struct grading *grading = attempt->grading;
        const char *text;
        char why[600];
        if (grading->cancelled || grading->has_error) {
                reference_leave(grading);
                return;
        }
        if (status_is_ours(result->status) && grading_again(grading, result))
                return;
        if (status_is_ours(result->status) ||
                (status_is_final(result->status) && result->status != status_SYNTAX_ERROR)) {
                grading_fail(grading, result->status, &result->error);
                reference_leave(grading);
                return;
        }
        if (!has_open(grading, attempt->from, attempt->to)) {
                if (!has_open(grading, 0, grading->slots_n)) {
                        keep_values(grading);
                        reference_leave(grading);
                }
                return;
        }
        attempt_verdict(attempt, result, &text);
        snprintf(why, sizeof why, "the reference failed: %.500s",
                HAS(result, run_result, error) && !attempt->late && !attempt->broken ? result->error.message : text);
        fail(grading, why);
}

static void begin(struct grading *grading)
{
        static const struct attempt_kind kind = {
                .role = "cases", .hello_received = on_hello, .said = on_said, .too_long = on_too_long, .done = on_done
        };
        struct attempt *attempt = attempt_new(grading, &kind, &grading->request.reference);
        uint64_t cpu_ms = load_ms(grading), wall_ms = load_ms(grading);
        size_t bytes = 0, i = 0;
        while (!is_open(grading, i))
                i++;
        attempt->from = i;
        for (; i < grading->slots_n && bytes < BEGIN_BYTES; i++) {
                const struct grade_case *given = grading->slots[i].given;
                bytes += function_case_bytes(given);
                cpu_ms += PATIENCE * case_cpu_ms(grading, given) + 100;
                wall_ms += PATIENCE * PATIENCE * case_wall_ms(grading, given) + 100;
        }
        attempt->to = i;
        grading->reference_state = REFERENCE_RUNS;
        attempt_limit(attempt, cpu_ms, wall_ms);
        attempt_start(attempt);
}

static bool another_runs(const struct grading *grading)
{
        for (const struct grading *one = grading->grader->gradings; one; one = one->next)
                if (one != grading && one->reference_state == REFERENCE_RUNS &&
                        strcmp(one->reference_key, grading->reference_key) == 0)
                        return true;
        return false;
}

bool reference_go_on(struct grading *grading)
{
        const struct reference_values *values;
        if (grading->reference_state == REFERENCE_OVER)
                return false;
        if (!HAS(&grading->request, grade_request, reference) || !has_open(grading, 0, grading->slots_n)) {
                reference_leave(grading);
                return false;
        }
        if (!*grading->reference_key)
                make_key(grading, grading->reference_key);
        if (grading->reference_state == REFERENCE_RUNS) {
                begin(grading);
                return true;
        }
        values = find_values(grading->grader->references, grading->reference_key);
        if (values) {
                take_values(grading, values);
                reference_leave(grading);
                return false;
        }
        if (another_runs(grading))
                grading->reference_state = REFERENCE_WAITS;
        else
                begin(grading);
        return true;
}
