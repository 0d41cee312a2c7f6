/* Records as LibreChat has them. */
#include "front/librechat/librechat.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

/* ---- files ---- */

/* The stored file's id, from the address of an output file.  false: the file was not kept. */
static bool id_of_output(const struct output_file *file, char ret[static ID_COMPACT_LEN + 1])
{
        const char *id = HAS(file, output_file, url) ? strrchr(file->url, '_') : NULL;
        if (!id || strlen(id + 1) != ID_DIGITS)
                return false;
        id_to_compact(id + 1, ret);
        return true;
}

/* Both names of a session, the current and the older one. */
static json_t *file_json(const char *id, const char *session, const char *name)
{
        struct arena arena = { 0 };
        size_t len;
        const char *text = model_utf8(&arena, name, strlen(name), &len);
        json_t *json = json_pack("{s:s, s:s, s:o, s:s, s:s}", "id", id, "name", text, "path",
                json_sprintf(LIBRECHAT_FOLDER "/%s", text), "session_id", session, "storage_session_id", session);
        arena_done(&arena);
        return json;
}

static const struct librechat_file *input_of(const struct librechat_exec *exec, const char *name)
{
        for (size_t i = 0; i < exec->files_n; i++)
                if (strcmp(exec->files[i].name, name) == 0)
                        return &exec->files[i];
        return NULL;
}

static json_t *inherited_json(const struct librechat_file *file)
{
        json_t *json = file_json(file->id, file->session, file->name);
        json_object_set_new(json, "inherited", json_true());
        if (file->kind)
                json_object_set_new(json, "kind", json_string(file->kind));
        if (file->resource)
                json_object_set_new(json, "resource_id", json_string(file->resource));
        if (file->version >= 0)
                json_object_set_new(json, "version", json_integer(file->version));
        return json;
}

static bool is_output(const struct run_result *result, const char *name)
{
        for (size_t i = 0; i < result->files_n; i++)
                if (strcmp(result->files[i].name, name) == 0)
                        return true;
        return false;
}

/* Files that the run made or changed, and inputs that it left as they were. */
static json_t *files_json(const struct librechat_exec *exec, const struct run_result *result, const char *session)
{
        json_t *list = json_array();
        char id[ID_COMPACT_LEN + 1];
        for (size_t i = 0; i < result->files_n; i++) {
                const struct output_file *file = &result->files[i];
                if (!id_of_output(file, id))
                        continue;
                json_t *json = file_json(id, session, file->name);
                const struct librechat_file *input = file->changed ? input_of(exec, file->name) : NULL;
                if (input)
                        json_object_set_new(json, "modified_from",
                                json_pack("{s:s, s:s, s:s}", "id", input->id, "session_id", input->session,
                                        "storage_session_id", input->session));
                json_array_append_new(list, json);
        }
        for (size_t i = 0; i < exec->files_n; i++)
                if (!is_output(result, exec->files[i].name))
                        json_array_append_new(list, inherited_json(&exec->files[i]));
        return list;
}

static bool is_lost(const struct output_file *file)
{
        return HAS(file, output_file, error) && strcmp(file->error, RUN_FILE_UNCHANGED) != 0;
}

/* LibreChat warns the model of files that were not kept. */
static void add_delivery(json_t *answer, const struct run_result *result)
{
        json_int_t kept = 0, lost = 0;
        for (size_t i = 0; i < result->files_n; i++) {
                lost += is_lost(&result->files[i]);
                kept += HAS(&result->files[i], output_file, url);
        }
        if (lost)
                json_object_set_new(answer, "artifact_delivery",
                        json_pack("{s:s, s:s, s:I, s:I, s:I}", "code", "artifact_delivery_failed", "status",
                                kept ? "partial" : "failed", "attempted", kept + lost, "delivered", kept, "failed",
                                lost));
}

/* The reason why a file was not kept. */
static void add_lost(const struct run_result *result, struct buf *stderr_text)
{
        for (size_t i = 0; i < result->files_n; i++) {
                const struct output_file *file = &result->files[i];
                if (is_lost(file))
                        buf_printf(stderr_text, "%s" LIBRECHAT_FOLDER "/%.200s was not kept: %.300s\n",
                                stderr_text->len && stderr_text->bytes[stderr_text->len - 1] != '\n' ? "\n" : "",
                                file->name, file->error);
        }
}

/* ---- streams ---- */

#define STDERR_MAX (80 * MIB)              /* of the stream and the lines of this file */

/* The client shows only the streams, so an end by a limit or a refusal is a line of standard error. */
static json_t *stderr_json(const struct run_result *result, const struct compat_ending *ending)
{
        struct buf text;
        buf_init(&text, STDERR_MAX);
        if (result->stderr.len)
                buf_add(&text, result->stderr.bytes, result->stderr.len);
        if (ending->message && strcmp(ending->status, "RE") != 0)
                buf_printf(&text, "%s%s\n", text.len && text.bytes[text.len - 1] != '\n' ? "\n" : "", ending->message);
        add_lost(result, &text);
        json_t *json = json_text(text.bytes, text.len);
        buf_done(&text);
        return json;
}

static json_t *text_or_null(const char *text)
{
        return text ? json_text(text, strlen(text)) : json_null();
}

/* The members that the answer and its older form, `run`, have. */
static json_t *streams_json(const struct run_result *result, const struct compat_ending *ending)
{
        const char *signal = ending->signal ? sigabbrev_np(ending->signal) : NULL;
        return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:f}", "stdout",
                json_text(result->stdout.bytes, result->stdout.len), "stderr", stderr_json(result, ending), "code",
                ending->code < 0 ? json_null() : json_integer(ending->code), "signal",
                signal ? json_sprintf("SIG%s", signal) : json_null(), "status", text_or_null(ending->status), "message",
                text_or_null(ending->message), "wall_time", result->usage.wall_ms);
}

static void session_of(const struct run_result *result, char ret[static ID_COMPACT_LEN + 1])
{
        id_to_compact(result->id + strlen(LIBRECHAT_RUN), ret);
}

json_t *librechat_answer(const struct librechat_exec *exec, const struct run_result *result)
{
        struct arena arena = { 0 };
        struct compat_ending ending;
        char session[ID_COMPACT_LEN + 1];
        compat_ending(result, &arena, &ending);
        session_of(result, session);
        json_t *json = streams_json(result, &ending), *run = json_copy(json);
        json_object_set_new(json, "session_id", json_string(session));
        json_object_set_new(json, "files", files_json(exec, result, session));
        json_object_set_new(json, "run", run);
        add_delivery(json, result);
        json_object_set_new(json, "language", json_string(exec->language->name));
        arena_done(&arena);
        return json;
}

/* ---- the end of a programmatic execution ---- */

/* Of the texts that @librechat/agents passes on to the model (CodeExecutor.ts); NULL: the run was good. */
static const char *error_of(const struct run_result *result, struct arena *arena)
{
        switch (result->status) {
        case status_COMPLETED:
                return NULL;
        case status_TIMEOUT:
                return "Time limit exceeded";
        case status_MEMORY_EXCEEDED:
                return "Out of memory";
        case status_OUTPUT_LIMIT:
                return result->truncated.stdout_bytes ? "stdout length exceeded" : "stderr length exceeded";
        default:
                if (HAS(result, run_result, exit_code))
                        return arena_text(arena, "Sandbox exited with code %" PRId64, result->exit_code);
                return "Execution failed or timed out";
        }
}

json_t *librechat_programmatic_answer(const struct librechat_exec *exec, const struct run_result *result)
{
        struct arena arena = { 0 };
        struct compat_ending ending;
        char session[ID_COMPACT_LEN + 1];
        compat_ending(result, &arena, &ending);
        session_of(result, session);
        const char *error = error_of(result, &arena);
        json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o}", "status", error ? "error" : "completed", "session_id",
                session, "stdout", json_text(result->stdout.bytes, result->stdout.len), "stderr",
                stderr_json(result, &ending), "files", files_json(exec, result, session));
        if (error)
                json_object_set_new(json, "error", json_string(error));
        add_delivery(json, result);
        arena_done(&arena);
        return json;
}

/* ---- runs that did not begin ---- */

/* The refusal by a policy or a reviewer is an answer: the model reads its reason in standard error. */
bool librechat_refused(struct http_request *request, const struct run_result *result)
{
        struct csn_error err;
        if (service_ran_nothing(result)) {
                service_error_of(result, &err);
                librechat_problem(request, MHD_HTTP_SERVICE_UNAVAILABLE, &err);
                return true;
        }
        if (result->status != status_BAD_REQUEST)
                return false;
        err_field(&err, "", "%s", HAS(result, run_result, error) ? result->error.message : "the program did not run");
        librechat_problem(request, MHD_HTTP_BAD_REQUEST, &err);
        return true;
}
