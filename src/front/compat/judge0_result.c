/* A run as a submission of Judge0: its status, and the fields of an answer. */
#include "front/compat/judge0.h"

#include "front/compat/compat.h"
#include "front/compat/parse.h"

#include <signal.h>

/* ---- languages ---- */

/* Ids of CE, old and new; which version runs is the host's affair. */
const struct judge0_language judge0_languages_table[JUDGE0_LANGUAGES] = {
        { 46, "bash", "Bash" },
        { 63, "javascript", "JavaScript (Node.js)" }, { 64, "lua", "Lua" },
        { 68, "php", "PHP" },                         { 71, "python", "Python (3)" },
        { 72, "ruby", "Ruby" },                       { 74, "typescript", "TypeScript (Node.js)" },
        { 80, "r", "R" },                             { 85, "perl", "Perl" },
        { 92, "python", "Python (3)" },               { 93, "javascript", "JavaScript (Node.js)" },
        { 94, "typescript", "TypeScript (Node.js)" }, { 97, "javascript", "JavaScript (Node.js)" },
        { 100, "python", "Python (3)" },              { 101, "typescript", "TypeScript (Node.js)" },
        { 102, "javascript", "JavaScript (Node.js)" }, { 109, "python", "Python (3)" },
        { 113, "python", "Python (3)" },
};

/* ---- statuses ---- */

enum {
        IN_QUEUE = 1,
        PROCESSING,
        ACCEPTED,
        WRONG_ANSWER,
        TIME_LIMIT,
        COMPILATION_ERROR,
        SIGSEGV_ID,
        SIGXFSZ_ID,
        SIGFPE_ID,
        SIGABRT_ID,
        NZEC,
        OTHER,
        INTERNAL,
        EXEC_FORMAT
};

static const char *const statuses[] = {
        [IN_QUEUE] = "In Queue",
        [PROCESSING] = "Processing",
        [ACCEPTED] = "Accepted",
        [WRONG_ANSWER] = "Wrong Answer",
        [TIME_LIMIT] = "Time Limit Exceeded",
        [COMPILATION_ERROR] = "Compilation Error",
        [SIGSEGV_ID] = "Runtime Error (SIGSEGV)",
        [SIGXFSZ_ID] = "Runtime Error (SIGXFSZ)",
        [SIGFPE_ID] = "Runtime Error (SIGFPE)",
        [SIGABRT_ID] = "Runtime Error (SIGABRT)",
        [NZEC] = "Runtime Error (NZEC)",
        [OTHER] = "Runtime Error (Other)",
        [INTERNAL] = "Internal Error",
        [EXEC_FORMAT] = "Exec Format Error",
};

json_t *judge0_status(int id)
{
        return json_pack("{s:i, s:s}", "id", id, "description", statuses[id]);
}

/* ---- fields of an answer ---- */

#define USUAL "token,time,memory,stdout,stderr,compile_output,message,status"

static const char *const known[] = {
        "token",
        "source_code",
        "language_id",
        "stdin",
        "expected_output",
        "stdout",
        "status_id",
        "created_at",
        "finished_at",
        "time",
        "memory",
        "stderr",
        "number_of_runs",
        "cpu_time_limit",
        "cpu_extra_time",
        "wall_time_limit",
        "memory_limit",
        "stack_limit",
        "max_processes_and_or_threads",
        "enable_per_process_and_thread_time_limit",
        "enable_per_process_and_thread_memory_limit",
        "max_file_size",
        "compile_output",
        "exit_code",
        "exit_signal",
        "message",
        "wall_time",
        "compiler_options",
        "command_line_arguments",
        "redirect_stderr_to_stdout",
        "callback_url",
        "additional_files",
        "enable_network",
        "status",
        "language",
};

bool judge0_has_field(const char *name)
{
        for (size_t i = 0; i < ARRAY_LEN(known); i++)
                if (strcmp(known[i], name) == 0)
                        return true;
        return strcmp(name, "*") == 0;
}

static bool lists(const char *fields, const char *name)
{
        size_t len = strlen(name);
        for (const char *at = fields; *at; at += strcspn(at, ","), at += *at == ',')
                if (strcspn(at, ",") == len && memcmp(at, name, len) == 0)
                        return true;
        return false;
}

static bool wants(const struct judge0_form *form, const char *name)
{
        return form->fields && lists(form->fields, "*") ? true : lists(form->fields ? form->fields : USUAL, name);
}

/* Takes the reference. */
static void put(const struct judge0_form *form, json_t *answer, const char *name, json_t *json)
{
        if (wants(form, name))
                json_object_set(answer, name, json);
        json_decref(json);
}

static void put_bytes(struct judge0_form *form, json_t *answer, const char *name, const struct bytes *bytes)
{
        struct arena arena = { 0 };
        json_t *json = json_null();
        if (bytes && form->base64)
                json = json_string(model_base64(&arena, bytes->bytes ? bytes->bytes : "", bytes->len));
        else if (bytes && !(json = json_stringn(bytes->bytes ? bytes->bytes : "", bytes->len)))
                form->broken = form->broken || wants(form, name);
        put(form, answer, name, json ? json : json_null());
        arena_done(&arena);
}

/* An empty stream is none. */
static const struct bytes *stream(const struct bytes *bytes)
{
        return bytes->len ? bytes : NULL;
}

static const struct bytes *decoded(const json_t *about, const char *name, struct arena *arena)
{
        const json_t *text = json_object_get(about, name);
        struct bytes *bytes = arena_alloc(arena, sizeof *bytes);
        bool good =
                json_is_string(text) && model_unbase64(arena, json_string_value(text), json_string_length(text), bytes);
        return good ? bytes : NULL;
}

static int signal_id(int number)
{
        switch (number) {
        case SIGSEGV:
                return SIGSEGV_ID;
        case SIGXFSZ:
                return SIGXFSZ_ID;
        case SIGFPE:
                return SIGFPE_ID;
        case SIGABRT:
                return SIGABRT_ID;
        default:
                return OTHER;
        }
}

/* Only TypeScript has a compiler here and in Judge0; in Judge0 too much output is too large a file (SIGXFSZ). */
static int judge(const struct run_result *result, const json_t *about, struct compat_ending *ending,
        struct arena *arena)
{
        double cpu_s = json_number_value(json_object_get(about, "cpu_time_limit"));
        const struct bytes *expected = decoded(about, "expected_output", arena);
        if (ending->status && strcmp(ending->status, "XX") == 0)
                return INTERNAL;
        if (result->status == status_SYNTAX_ERROR && result->language &&
                strcmp(result->language, lang_typescript.name) == 0)
                return COMPILATION_ERROR;
        if (ending->status && strcmp(ending->status, "TO") == 0)
                return TIME_LIMIT;
        if (cpu_s > 0 && result->usage.cpu_ms > cpu_s * 1000) {
                *ending = (struct compat_ending){ .status = "TO", .message = "Time limit exceeded", .code = -1 };
                return TIME_LIMIT;
        }
        if (result->status == status_OUTPUT_LIMIT)
                *ending = (struct compat_ending){
                        .status = "SG", .message = "Caught fatal signal 25", .code = -1, .signal = SIGXFSZ
                };
        if (ending->signal)
                return signal_id(ending->signal);
        if (ending->code)
                return NZEC;
        return !expected || compat_same(expected, &result->stdout) ? ACCEPTED : WRONG_ANSWER;
}

static json_t *seconds(double ms)
{
        return json_sprintf("%.3f", ms / 1000);
}

static json_t *text_or_null(const char *text)
{
        return text ? json_string(text) : json_null();
}

static void put_ending(struct judge0_form *form, json_t *answer, const struct run_result *result, const json_t *about,
        struct arena *arena)
{
        static const struct bytes none = { 0 };
        struct compat_ending ending;
        compat_ending(result, arena, &ending);
        int id = judge(result, about, &ending, arena);
        bool ran = id != INTERNAL && id != COMPILATION_ERROR,
             has_memory = ran && HAS(&result->usage, usage, memory_peak_bytes);
        struct bytes message = {
                arena_text(arena, "%s", ending.message && id != COMPILATION_ERROR ? ending.message : ""), 0
        };
        message.len = strlen(message.bytes);
        put(form, answer, "status", judge0_status(id));
        put(form, answer, "status_id", json_integer(id));
        put_bytes(form, answer, "stdout", stream(ran ? &result->stdout : &none));
        put_bytes(form, answer, "stderr", stream(ran ? &result->stderr : &none));
        put_bytes(form, answer, "compile_output", stream(id == COMPILATION_ERROR ? &result->stderr : &none));
        put_bytes(form, answer, "message", stream(&message));
        put(form, answer, "time", ran ? seconds(result->usage.cpu_ms) : json_null());
        put(form, answer, "wall_time", ran ? seconds(result->usage.wall_ms) : json_null());
        put(form, answer, "memory",
                has_memory ? json_integer((json_int_t)(result->usage.memory_peak_bytes / 1024)) : json_null());
        put(form, answer, "exit_code", ran && ending.code >= 0 ? json_integer(ending.code) : json_null());
        put(form, answer, "exit_signal", ran && ending.signal ? json_integer(ending.signal) : json_null());
        put(form, answer, "finished_at", text_or_null(result->finished_at));
}

/* The state of an unfinished submission. */
static void put_state(struct judge0_form *form, json_t *answer, const char *state)
{
        static const char *const empty[] = { "stdout", "stderr", "compile_output", "message", "time", "wall_time",
                "memory", "exit_code", "exit_signal", "finished_at" };
        int id = strcmp(state, "running") == 0 ? PROCESSING : IN_QUEUE;
        put(form, answer, "status", judge0_status(id));
        put(form, answer, "status_id", json_integer(id));
        for (size_t i = 0; i < ARRAY_LEN(empty); i++)
                put(form, answer, empty[i], json_null());
}

static void put_asked(struct judge0_form *form, json_t *answer, const json_t *about, struct arena *arena)
{
        static const char *const texts[] = { "source_code", "stdin", "expected_output" };
        static const char *const as_given[] = { "created_at", "language_id", "command_line_arguments", "number_of_runs",
                "cpu_time_limit", "cpu_extra_time", "wall_time_limit", "memory_limit", "stack_limit",
                "max_processes_and_or_threads", "max_file_size" };
        static const char *const off[] = { "enable_per_process_and_thread_time_limit",
                "enable_per_process_and_thread_memory_limit", "redirect_stderr_to_stdout", "enable_network" };
        static const char *const none[] = { "compiler_options", "callback_url", "additional_files" };
        json_int_t id = json_integer_value(json_object_get(about, "language_id"));
        for (size_t i = 0; i < ARRAY_LEN(texts); i++)
                put_bytes(form, answer, texts[i], decoded(about, texts[i], arena));
        for (size_t i = 0; i < ARRAY_LEN(as_given); i++) {
                json_t *json = json_object_get(about, as_given[i]);
                put(form, answer, as_given[i], json ? json_incref(json) : json_null());
        }
        for (size_t i = 0; i < ARRAY_LEN(off); i++)
                put(form, answer, off[i], json_false());
        for (size_t i = 0; i < ARRAY_LEN(none); i++)
                put(form, answer, none[i], json_null());
        for (size_t i = 0; i < JUDGE0_LANGUAGES; i++)
                if (judge0_languages_table[i].id == id)
                        put(form, answer, "language",
                                json_pack("{s:I, s:s}", "id", id, "name", judge0_languages_table[i].title));
}

static json_t *about_of(const struct pair *labels, size_t n)
{
        json_t *about = NULL;
        for (size_t i = 0; i < n && !about; i++)
                if (strcmp(labels[i].name, JUDGE0_LABEL) == 0)
                        about = json_loads(labels[i].value, 0, NULL);
        if (json_is_object(about))
                return about;
        json_decref(about);
        return NULL;
}

json_t *judge0_submission_of(struct judge0_form *form, const char *token, const char *state, const struct pair *labels,
        size_t labels_n, const struct run_result *result)
{
        struct arena arena = { 0 };
        json_t *about = about_of(labels, labels_n), *answer = about ? json_object() : NULL;
        if (about) {
                put(form, answer, "token", json_string(token));
                put_asked(form, answer, about, &arena);
                if (result)
                        put_ending(form, answer, result, about, &arena);
                else
                        put_state(form, answer, state);
        }
        json_decref(about);
        arena_done(&arena);
        return answer;
}
