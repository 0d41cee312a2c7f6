/* Everything known of a run, as its record. */
#include "engine/run/run_private.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#define FEEDBACK_MAX 16
#define HOST_MISSING_MAX 20                /* as in fields.def */
#define PRELUDE_FAILED "prelude_failed"

/* ---- the program's own report ---- */

/* At most max bytes, cut between characters. */
static char *cut(struct arena *arena, const char *text, size_t max)
{
        size_t len = strlen(text), at = 0;
        if (len > max) {
                for (size_t step; at < max && (step = utf8_step(text + at, len - at)) && at + step <= max; at += step)
                        ;
                len = at;
        }
        return arena_copy(arena, text, len);
}

static json_t *frame_json(const struct run *run, enum channel_type type)
{
        const struct buf *part = &run->channel.part[type];
        if (run->channel.state == CHANNEL_BROKEN || !part->len)
                return NULL;
        return model_read(part->bytes, part->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
}

static const char *text_of(json_t *json, const char *name)
{
        json_t *value = json_object_get(json, name);
        return json_is_string(value) && strlen(json_string_value(value)) == json_string_length(value)
                ? json_string_value(value)
                : NULL;
}

static bool is_blank(const char *text)
{
        return !text || !text[strspn(text, " \t\r\n")];
}

/* As in the last line of a traceback of Python: "NameError: name 'x' is not defined". */
static char *summary_of(struct arena *arena, const char *type, const char *message)
{
        const char *line = is_blank(message) ? "" : message;
        return cut(arena,
                arena_text(arena, "%s%s%.*s", type, line[0] ? ": " : "", (int)strcspn(line, "\r\n"), line), 1000);
}

/* SYNTAX and ERROR frames have the same members (docs/protocols/runner-channel.md). */
static void take_error(struct run *run, json_t *json, struct failure *ret)
{
        struct arena *arena = &run->launch.arena;
        const char *type = text_of(json, "type"), *message = text_of(json, "message"), *text = text_of(json, "text");
        json_int_t line = json_integer_value(json_object_get(json, "line"));
        json_int_t column = json_integer_value(json_object_get(json, "column"));
        json_t *traceback = json_object_get(json, "traceback");
        if (type)
                SET(ret, failure, type, cut(arena, type, 200));
        SET(ret, failure, message, cut(arena, is_blank(message) ? "raised without a message" : message, 10000));
        if (type)
                SET(ret, failure, summary, summary_of(arena, type, message));
        if (line > 0)
                SET(ret, failure, line, (uint64_t)line);
        if (column > 0)
                SET(ret, failure, column, (uint64_t)column);
        if (text)
                SET(ret, failure, text, cut(arena, text, 2000));
        size_t n = json_array_size(traceback);
        n = n > 100 ? 100 : n;
        char **lines = arena_alloc(arena, n * sizeof *lines + 1);
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
                if (json_is_string(json_array_get(traceback, i)))
                        lines[kept++] = cut(arena, json_string_value(json_array_get(traceback, i)), 1000);
        if (kept) {
                ret->traceback = lines;
                ret->traceback_n = kept;
                MARK(ret, failure, traceback);
        }
}

#define VALUE_DEPTH_MAX 64     /* readers of the record have stacks too */

/* MIME types to text, or to base64; a JSON value becomes its text. */
static struct pair *bundle(struct run *run, json_t *data, size_t *ret_n)
{
        const char *type;
        json_t *content;
        struct pair *pairs = arena_alloc(&run->launch.arena, json_object_size(data) * sizeof *pairs + 1);
        size_t n = 0;
        json_object_foreach(data, type, content) {
                char *text = json_is_string(content) && !model_digits(content)
                        ? NULL
                        : model_write(content, JSON_ENCODE_ANY | JSON_COMPACT);
                const char *from = text ? text : json_string_value(content);
                if (n < 100 && from)
                        pairs[n++] = (struct pair){ .name = cut(&run->launch.arena, type, 200),
                                .value = arena_text(&run->launch.arena, "%s", from) };
                free(text);
        }
        *ret_n = n;
        return pairs;
}

static void take_value(struct run *run)
{
        struct value *value = &run->result.result;
        json_t *json = frame_json(run, CHANNEL_VALUE);
        const char *type = text_of(json, "type"), *repr = text_of(json, "repr");
        json_t *content = json_object_get(json, "value");
        size_t max = (size_t)run->launch.request.limits.value_bytes;
        if (!json_is_object(json) || run->channel.pending == CHANNEL_VALUE) {
                json_decref(json);
                return;
        }
        SET(value, value, type, cut(&run->launch.arena, type ? type : "", 200));
        if (content) {
                char *text = model_write(content, JSON_ENCODE_ANY | JSON_COMPACT);
                if (text && strlen(text) <= max && !model_value_is_deeper(content, VALUE_DEPTH_MAX)) {
                        SET(value, value, value, arena_copy(&run->launch.arena, text, strlen(text)));
                } else {
                        SET(value, value, repr, cut(&run->launch.arena, text ? text : "", max));
                        SET(value, value, truncated, true);
                }
                free(text);
        } else {
                SET(value, value, repr, cut(&run->launch.arena, repr ? repr : "", max));
                if (json_is_true(json_object_get(json, "truncated")) || (repr && strlen(repr) > max))
                        SET(value, value, truncated, true);
        }
        if (HAS(value, value, truncated))
                run_warn(run, RUN_VALUE_TRUNCATED, "the value is longer than value_bytes=%zu; its beginning is in "
                                                        "result.repr", max);
        json_t *data = json_object_get(json, "data");
        if (json_object_size(data)) {
                value->data = bundle(run, data, &value->data_n);
                MARK(value, value, data);
        }
        MARK(&run->result, run_result, result);
        json_decref(json);
        buf_done(&run->channel.part[CHANNEL_VALUE]);
}

static void take_displays(struct run *run)
{
        struct run_result *result = &run->result;
        json_t *data;
        size_t i;
        result->displays =
                arena_alloc(&run->launch.arena, json_array_size(run->displays) * sizeof *result->displays + 1);
        json_array_foreach(run->displays, i, data) {
                struct display *display = &result->displays[result->displays_n++];
                display->data = bundle(run, data, &display->data_n);
                MARK(display, display, data);
        }
        MARK(result, run_result, displays);
        json_decref(run->displays);
        run->displays = NULL;
}

/* ---- evidence ---- */

static void look_at_disk(const struct run *run, struct evidence *evidence)
{
        struct statfs fs;
        evidence->home_full = run->how.home_full;
        evidence->inodes_full = run->how.inodes_full;
        if (run->home_fd < 0 || run->launch.backend != &backend_native || fstatfs(run->home_fd, &fs) < 0)
                return;
        evidence->home_full = fs.f_blocks > 0 && fs.f_bfree == 0;
        evidence->inodes_full = fs.f_files > 0 && fs.f_ffree == 0;
}

/* Our own other runs are known at once, others from the load of the last minute; see struct evidence. */
static unsigned fair_milli(const struct run *run)
{
        double load = 0, cores = (double)run->engine->cores;
        double others = (double)(run->engine->running + run->engine->beside - (run->queue_owner != NULL));
        if (!(run->how.reasons & WIRE_WALL))
                return 0;
        if (getloadavg(&load, 1) == 1 && load > others)
                others = load;
        return others + 1 <= cores ? 1000 : (unsigned)(1000 * cores / (others + 1)) + 1;
}

/* Advice for a program that failed by itself. */
static const char *advise(struct run *run, int error_errno)
{
        const struct run_result *result = &run->result;
        const struct failure *error = &result->error;
        const struct stored_image *image = run->launch.image;
        const bool python = run->launch.language == &lang_python;
        const enum image_language kind = python ? IMAGE_PYTHON : IMAGE_NODE;
        const struct complaint complaint = {
                .image = image ? image->name : NULL,
                .modules = image ? image->modules[kind] : NULL,
                .modules_n = image ? image->modules_n[kind] : 0,
                .installed = !image ? NULL : python ? image->libraries : image->modules[kind],
                .installed_n = !image ? 0 : python ? image->libraries_n : image->modules_n[kind],
                .language = run->launch.language->name,
                .type = HAS(error, failure, type) ? error->type : NULL,
                .message = error->message,
                .traceback = error->traceback,
                .traceback_n = error->traceback_n,
                .error_errno = error_errno,
                .no_network = run->launch.backend->has_sockets && run->launch.request.network == network_NONE,
                .code = run->launch.request.code,
                .printed = result->stderr,
                .exit_status = HAS(result, run_result, exit_code) ? (int)result->exit_code : -1,
                .layers = result->layers,
                .layers_n = result->layers_n,
        };
        const char *missing = modules_advice(&complaint, &run->launch.arena);
        return missing ? missing : feedback_for(&complaint);
}

/* Python's types with more information than SyntaxError. */
static bool is_kind_of_syntax_error(const char *type)
{
        return type && (strcmp(type, "IndentationError") == 0 || strcmp(type, "TabError") == 0);
}

static void decide(struct run *run)
{
        struct run_result *result = &run->result;
        struct arena *arena = &run->launch.arena;
        json_t *syntax = frame_json(run, CHANNEL_SYNTAX), *error = frame_json(run, CHANNEL_ERROR);
        struct evidence evidence = {
                .how = &run->how,
                .limits = &run->launch.request.limits,
                .boundary = &run->boundary,
                .language = run->launch.language->title,
                .cancelled = run->cancelled,
                .quota_ms = run_quota_ended(run) ? run->quota.cpu_ms_per_day : 0,
                .output_killed = run->output_killed,
                .parsed = run->launch.language->command || run->channel.state == CHANNEL_RUNNING ||
                          ((run->channel.state == CHANNEL_ENDED || run->channel.state == CHANNEL_GONE) && !syntax),
                .syntax = syntax != NULL,
                .fair_milli = run->fair_milli,
                .channel_broken = run->channel.state == CHANNEL_BROKEN,
                .error_errno = (int)json_integer_value(json_object_get(error, "errno")),
                .error_type = text_of(error, "type"),
                .has_volumes = run->launch.shape.volumes_n > 0,
        };
        look_at_disk(run, &evidence);
        int status = verdict_status(&evidence);
        SET(result, run_result, status, status);

        const char *message = verdict_message(status, &evidence, arena), *hint = verdict_hint(status, &evidence, arena);
        if (status == status_SYNTAX_ERROR && syntax)
                take_error(run, syntax, &result->error);
        else if (status == status_FAILED && error)
                take_error(run, error, &result->error);
        else if (message)
                SET(&result->error, failure, message, arena_copy(arena, message, strlen(message)));
        if (status == status_SYNTAX_ERROR && is_kind_of_syntax_error(text_of(syntax, "type")))
                hint = feedback_for_type(run->launch.language->name, text_of(syntax, "type"));
        if (status == status_SYNTAX_ERROR && feedback_for_fences(&run->launch.request.code))
                hint = feedback_for_fences(&run->launch.request.code);
        if (!hint && status == status_FAILED)
                hint = advise(run, evidence.error_errno);
        if (status == status_FAILED && json_is_true(json_object_get(error, "prelude"))) {
                SET(&result->error, failure, code, arena_text(arena, PRELUDE_FAILED));
                SET(&result->error, failure, field, arena_text(arena, "/prelude"));
                hint = "The prelude failed, and the program did not run. Line and text are those of the prelude.";
        }
        if (status == status_TIMEOUT)
                SET(&result->error, failure, limit, arena_text(arena, "%s", verdict_time_limit(&evidence)));
        if (hint)
                SET(&result->error, failure, hint, arena_copy(arena, hint, strlen(hint)));
        if (status != status_COMPLETED)
                MARK(result, run_result, error);

        if (status == status_COMPLETED && run->how.pids_hits)
                run_warn(run, "process_limit_reached",
                        "a fork or a thread was refused %" PRIu64 " times at pids=%" PRIu64, run->how.pids_hits,
                        run->launch.request.limits.pids);
        if (status == status_COMPLETED && (evidence.home_full || evidence.inodes_full))
                run_warn(run, "disk_limit_reached", "the home directory was full at the end: disk_bytes or disk_files");
        if (run->how.reasons & WIRE_LEFTOVERS)
                run_warn(run, "background_killed", "processes that the program left behind were ended %" PRIu64
                         " ms after it, by background_ms", run->launch.request.limits.background_ms);
        json_decref(syntax);
        json_decref(error);
}

/* ---- the parts of the record ---- */

#define TAIL_LINES 5               /* of standard error */
#define TAIL_LINE_MAX 1000         /* bytes of a line */

/* The last lines of standard error, which have the useful end of a traceback. */
static void record_tail(struct run *run)
{
        struct arena *arena = &run->launch.arena;
        const struct bytes *text = &run->result.stderr;
        size_t end = text->len, n = 0;
        char *lines[TAIL_LINES];
        while (end && (text->bytes[end - 1] == '\n' || text->bytes[end - 1] == '\r'))
                end--;
        for (size_t from = end; end && n < TAIL_LINES; end = from ? from - 1 : 0, from = end) {
                size_t len;
                while (from && text->bytes[from - 1] != '\n')
                        from--;
                lines[n++] = cut(arena, model_utf8(arena, text->bytes + from, end - from, &len), TAIL_LINE_MAX);
                if (!from)
                        break;
        }
        if (!n || !HAS(&run->result, run_result, error))
                return;
        struct failure *error = &run->result.error;
        error->tail = arena_alloc(arena, n * sizeof *error->tail);
        while (error->tail_n < n) {
                error->tail[error->tail_n] = lines[n - 1 - error->tail_n];
                error->tail_n++;
        }
        MARK(error, failure, tail);
}

static void record_exit(struct run *run)
{
        struct run_result *result = &run->result;
        int status = (int)run->how.status;
        if (run->how.has_status && WIFEXITED(status))
                SET(result, run_result, exit_code, WEXITSTATUS(status));
        else if (run->how.has_status)
                SET(result, run_result, signal, WTERMSIG(status));
        else
                SET(result, run_result, signal, SIGKILL);   /* any end from outside is a SIGKILL */
}

static struct bytes stream_text(struct run *run, int i, uint64_t *ret_cut, uint64_t *ret_total)
{
        struct capture *capture = &run->streams[i].capture;
        struct bytes text;
        size_t cut_at;
        text.bytes = capture_text(capture, &run->launch.arena, &text.len, &cut_at);
        capture_drop(capture);   /* its text is in the arena now */
        *ret_cut = capture->total - text.len;
        *ret_total = capture->total;
        if (*ret_cut == 0)
                return text;
        /* The gap may be inside a character; half a character at its edges says nothing and is left out. */
        size_t from = cut_at, to = cut_at;
        while (from > 0 && cut_at - from < 3 && ((unsigned char)text.bytes[from - 1] & 0xc0) == 0x80)
                from--;
        if (from > 0 && (unsigned char)text.bytes[from - 1] >= 0xc0 &&
                !utf8_step(text.bytes + from - 1, cut_at - from + 1))
                from--;
        else
                from = cut_at;
        while (to < text.len && to - cut_at < 3 && ((unsigned char)text.bytes[to] & 0xc0) == 0x80)
                to++;
        memmove(text.bytes + from, text.bytes + to, text.len - to);
        text.len -= to - from;
        *ret_cut += to - from;
        return text;
}

static void record_output(struct run *run)
{
        struct run_result *result = &run->result;
        struct truncated *truncated = &result->truncated;
        SET(result, run_result, stdout, stream_text(run, 0, &truncated->stdout_bytes, &truncated->stdout_total_bytes));
        SET(result, run_result, stderr, stream_text(run, 1, &truncated->stderr_bytes, &truncated->stderr_total_bytes));
        if (truncated->stdout_bytes || truncated->stderr_bytes)
                run_warn(run, RUN_OUTPUT_TRUNCATED,
                        "%s was longer than output_bytes=%" PRIu64 "; head and tail are kept",
                        truncated->stdout_bytes ? "standard output" : "standard error",
                        run->launch.request.limits.output_bytes);
}

/* The home directory is a tmpfs of its own, with one inode for the root directory (tmpfs(5)). */
static void record_disk(struct run *run)
{
        struct statfs fs;
        struct usage *usage = &run->result.usage;
        if (run->home_fd < 0 || run->launch.backend != &backend_native || fstatfs(run->home_fd, &fs) < 0 ||
                fs.f_type != TMPFS_MAGIC || fs.f_files <= fs.f_ffree)
                return;
        SET(usage, usage, disk_bytes, (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize);
        SET(usage, usage, disk_files, (uint64_t)(fs.f_files - fs.f_ffree - 1));
}

static void record_traffic(struct run *run)
{
        struct usage *usage = &run->result.usage;
        if (!run->has_traffic)
                return;
        SET(usage, usage, network_connections, run->traffic.connections);
        SET(usage, usage, network_refused, run->traffic.refused);
        SET(usage, usage, network_in_bytes, run->traffic.in_bytes);
        SET(usage, usage, network_out_bytes, run->traffic.out_bytes);
}

static void record_usage(struct run *run)
{
        const struct wire_exit *how = &run->how;
        struct usage *usage = &run->result.usage;
        SET(usage, usage, wall_ms, (double)how->wall_us / 1000);
        SET(usage, usage, cpu_ms, (double)how->cpu_us / 1000);
        if (how->throttled_us)
                SET(usage, usage, throttled_ms, (double)how->throttled_us / 1000);
        if (how->waited_us)
                SET(usage, usage, waited_ms, (double)how->waited_us / 1000);
        if (how->memory_peak)
                SET(usage, usage, memory_peak_bytes, how->memory_peak);
        if (how->pids_peak)
                SET(usage, usage, processes_peak, how->pids_peak);
        record_disk(run);
        record_traffic(run);
}

/* Of a worker of a gateway. */
static void record_host(const struct engine *engine, struct arena *arena, struct boundary *boundary)
{
        const char *names = engine->host_missing;
        SET(boundary, boundary, tier, arena_text(arena, "%s", engine->host_tier));
        boundary->missing = arena_alloc(arena, HOST_MISSING_MAX * sizeof *boundary->missing);
        for (size_t len; *names && boundary->missing_n < HOST_MISSING_MAX; names += len + (names[len] == ' ')) {
                len = strcspn(names, " ");
                boundary->missing[boundary->missing_n++] = arena_copy(arena, names, len);
        }
        MARK(boundary, boundary, missing);
}

static void record_boundary(struct run *run)
{
        boundary_describe(&run->launch, &run->boundary, run->no_proxy, &run->launch.arena, &run->result.boundary);
        MARK(&run->result, run_result, boundary);
        if (run->engine->host_tier)
                record_host(run->engine, &run->launch.arena, &run->result.boundary);
}

/* ---- inputs ---- */

static void record_inputs(struct run *run)
{
        struct run_result *result = &run->result;
        result->inputs = arena_alloc(&run->launch.arena, run->launch.inputs_n * sizeof *result->inputs + 1);
        for (size_t i = 0; run->launch.digests && i < run->launch.inputs_n; i++) {
                struct taken_file *file = &result->inputs[result->inputs_n];
                if (run->launch.inputs[i].hidden)
                        continue;
                SET(file, taken_file, name, arena_text(&run->launch.arena, "%s", run->launch.inputs[i].name));
                SET(file, taken_file, size_bytes, run->launch.digests[i].size);
                SET(file, taken_file, sha256, arena_text(&run->launch.arena, "%s", run->launch.digests[i].sha256));
                SET(file, taken_file, ms, run->launch.digests[i].ms);
                result->inputs_n++;
        }
}

/* ---- feedback for a model ---- */

static void say(struct run *run, const char *text)
{
        struct run_result *result = &run->result;
        if (!result->feedback)
                result->feedback = arena_alloc(&run->launch.arena, FEEDBACK_MAX * sizeof *result->feedback);
        for (size_t i = 0; i < result->feedback_n; i++)
                if (strcmp(result->feedback[i], text) == 0)
                        return;
        if (text[0] && result->feedback_n < FEEDBACK_MAX)
                result->feedback[result->feedback_n++] = arena_text(&run->launch.arena, "%s", text);
}

static void record_feedback(struct run *run)
{
        const struct run_result *result = &run->result;
        const struct failure *error = &result->error;
        if (!HAS(result, run_result, error))
                return;
        const char *where = error->code && strcmp(error->code, PRELUDE_FAILED) == 0 ? "Prelude, line" : "Line";
        if (error->type && HAS(error, failure, line))
                say(run,
                        arena_text(&run->launch.arena, "%s %" PRIu64 ": %s: %s", where, error->line, error->type,
                                error->message));
        else if (error->type)
                say(run, arena_text(&run->launch.arena, "%s: %s", error->type, error->message));
        else
                say(run, error->message);
        if (error->hint)
                say(run, error->hint);
        if (!error->hint && !error->type && result->status == status_FAILED) {
                say(run, "Code failed to execute. Check logic and edge cases.");
                const struct bytes *text = &result->stderr;
                size_t from = text->len > 200 ? text->len - 200 : 0, len;
                if (text->len)
                        say(run,
                                arena_text(&run->launch.arena, "Error: %s",
                                        model_utf8(&run->launch.arena, text->bytes + from, text->len - from, &len)));
        }
}

/* ---- whole ---- */

static void record_refusal(struct run *run)
{
        static const struct { int code, status; bool retryable; } rows[] = {
                { CSN_E_INPUT, status_BAD_REQUEST, false },
                { CSN_E_PROFILE, status_BAD_REQUEST, false },
                { CSN_E_LANGUAGE, status_UNSUPPORTED_LANGUAGE, false },
                { CSN_E_UNSUPPORTED, status_ISOLATION_UNAVAILABLE, false },
                { CSN_E_BUSY, status_CAPACITY, true },
                { CSN_E_CANCELLED, status_CANCELLED, false },
                { CSN_E_LOST, status_ENGINE_ERROR, false },
                { CSN_E_SYSTEM, status_ENGINE_ERROR, true },
        };
        struct run_result *result = &run->result;
        struct failure *error = &result->error;
        int status = status_ENGINE_ERROR;
        bool retryable = false;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
                if (rows[i].code == run->refusal.code) {
                        status = rows[i].status;
                        retryable = rows[i].retryable;
                }
        if (run->refusal.code == CSN_E_SYSTEM && strcmp(run->refusal.field, "/packages") == 0)
                status = status_DEPENDENCY_FAILED;
        SET(result, run_result, status, run->cancelled ? status_CANCELLED : status);
        SET(error, failure, code, arena_text(&run->launch.arena, "%s", csn_code_name(run->refusal.code)));
        if (run->layers.problem) {
                SET(error, failure, code, (char *)(uintptr_t)run->layers.problem);
                retryable = run->layers.retryable;
        }
        SET(error, failure, retryable, retryable && !run->cancelled);
        if (run->refusal.field[0])
                SET(error, failure, field, arena_text(&run->launch.arena, "%s", run->refusal.field));
        SET(error, failure, message, arena_text(&run->launch.arena, "%s", run->refusal.text));
        MARK(result, run_result, error);
        if (run->has_boundary) {   /* the program did run; its output is kept */
                record_output(run);
                record_boundary(run);
        }
        say(run, error->message);
}

static void record_findings(struct run *run)
{
        struct run_result *result = &run->result;
        result->findings = run->check.result.findings;
        result->findings_n = run->check.result.findings_n;
}

/* The policy's own sentence is for the model that wrote the program; advice follows. */
static void record_blocked(struct run *run)
{
        struct run_result *result = &run->result;
        const struct check_result *check = &run->check.result;
        SET(result, run_result, status, status_BLOCKED);
        SET(&result->error, failure, message, check->reason);
        if (HAS(check, check_result, code))
                SET(&result->error, failure, code, check->code);
        MARK(result, run_result, error);
        if (!HAS(check, check_result, code) || strcmp(check->code, PRELUDE_FAILED) != 0)
                say(run, "Code violates sandbox security rules; avoid system calls and I/O.");
        say(run, check->reason);
        for (size_t i = 0; i < check->findings_n; i++) {
                const struct finding *finding = &check->findings[i];
                say(run,
                        arena_text(&run->launch.arena, "%s %" PRIu64 ": %s",
                                HAS(finding, finding, file) ? "Prelude, line" : "Line", finding->line,
                                finding->message));
                if (HAS(finding, finding, advice))
                        say(run, finding->advice);
        }
}

static void record_review(struct run *run)
{
        if (!run->review.answered)
                return;
        run->result.review = run->review.review;
        MARK(&run->result, run_result, review);
}

/* run->result.error is set (review.c). */
static void record_refused_by_review(struct run *run)
{
        SET(&run->result, run_result, status, status_BLOCKED);
        say(run, run->result.error.message);
}

static void record_request(struct run *run)
{
        struct run_result *result = &run->result;
        const struct run_request *request = &run->launch.request;
        SET(result, run_result, schema, MODEL_SCHEMA_VERSION);
        SET(result, run_result, id, run->id);
        result->limits = request->limits;
        if (run->launch.language)
                SET(result, run_result, language, arena_text(&run->launch.arena, "%s", run->launch.language->name));
        else if (HAS(request, run_request, language))
                SET(result, run_result, language, request->language);
#define KEEP(member) \
        if (HAS(request, run_request, member)) \
                SET(result, run_result, member, request->member)
        KEEP(profile);
        KEEP(format);
        KEEP(task_id);
        KEEP(user);
        KEEP(workspace);
#undef KEEP
        if (request->labels_n) {
                result->labels = request->labels;
                result->labels_n = request->labels_n;
                MARK(result, run_result, labels);
        }
        if (request->packages_n) {
                result->packages = request->packages;
                result->packages_n = request->packages_n;
                MARK(result, run_result, packages);
        }
        if (run->launch.image) {
                launch_describe_image(&run->launch, &result->image);
                MARK(result, run_result, image);
        }
        result->volumes = run->launch.request.volumes;
        result->volumes_n = run->launch.request.volumes_n;
        if (result->volumes_n)
                MARK(result, run_result, volumes);
        result->devices = run->launch.devices;
        result->devices_n = run->launch.devices_n;
        if (result->devices_n)
                MARK(result, run_result, devices);
        if (run->launch.work_dir)
                SET(result, run_result, work_dir, arena_text(&run->launch.arena, "%s", run->launch.work_dir));
}

static void record_times(struct run *run)
{
        struct timings *timings = &run->result.timings;
        uint64_t now = clock_us();
        char text[40];
        timings->queue_ms = run->begun_us ? (double)(run->begun_us - run->queued_us) / 1000 : 0;
        timings->prepare_ms =
                run->started_us ? (double)(run->started_us - run->created_us) / 1000 - timings->queue_ms : 0;
        timings->run_ms = (double)run->how.wall_us / 1000;
        timings->collect_ms = run->ended_us ? (double)(now - run->started_us) / 1000 - timings->run_ms : 0;
        timings->collect_ms = timings->collect_ms < 0 ? 0 : timings->collect_ms;
        timings->total_ms = (double)(now - run->created_us) / 1000;
        time_print(time_now_ms(), text, sizeof text);
        if (run->started_at[0])
                SET(&run->result, run_result, started_at, run->started_at);
        SET(&run->result, run_result, finished_at, arena_text(&run->launch.arena, "%s", text));
}

void run_record_begin(struct run *run)
{
        run->fair_milli = fair_milli(run);
        if (run->launch.entered)
                run->room.left = run->launch.storage->room(run->launch.storage_owner, &run->room.each);
        if (run->tool_session.broker) {
                run->tool_session.tools->report(run->tool_session.broker, &run->launch.arena, &run->result.tools);
                MARK(&run->result, run_result, tools);
        }
}

void run_record(struct run *run)
{
        struct run_result *result = &run->result;
        record_request(run);
        record_inputs(run);
        record_findings(run);
        record_review(run);
        if (run->refusal.code) {
                record_refusal(run);
        } else if (run->blocked_by_review) {
                record_refused_by_review(run);
        } else if (run->blocked) {
                record_blocked(run);
        } else {
                record_exit(run);
                record_output(run);
                record_usage(run);
                if (run->has_boundary)
                        record_boundary(run);
                take_value(run);
                if (run->displays)
                        take_displays(run);
                decide(run);
                record_tail(run);
                if (run->launch.compile_only && result->status == status_COMPLETED &&
                        HAS(&run->check.result, check_result, reason)) {
                        check_unreadable(&run->check);
                        record_blocked(run);
                }
                run_record_files(run);
                record_feedback(run);
        }
        record_times(run);
        run_record_stages(run);
        result->warnings = run->launch.warnings;
        result->warnings_n = run->launch.warnings_n;
}
